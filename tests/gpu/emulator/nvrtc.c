/* SPDX-License-Identifier: BSD-3-Clause */
/* The emulated NVRTC: compiles a program with the host's C++ compiler (EMULATED_CXX, g++) to an object, which is kept in a folder by the hash of
 * all that it depends on (EMULATED_CACHE; otherwise `cache` beside this library). The image names the object; the emulated driver
 * loads it. With EMULATED_NVRTC NVIDIA's own compiler, that library, must accept the program, too: it refuses what host compilers take. */
#define _GNU_SOURCE
#include "launch.h"
#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#pragma GCC visibility push(default)
#include <nvrtc.h>
#pragma GCC visibility pop

bool emulated_fails(const char *kind);

enum { MOST_HEADERS = 16, PATH = 4096 };

struct _nvrtcProgram {
    char *source, *name, *log;
    int n_headers;
    char *header[MOST_HEADERS], *header_name[MOST_HEADERS];
    char image[PATH]; /* empty: not compiled */
};

static char *text_of(const char *text)
{
    char *copy = strdup(text ? text : "");
    if (!copy)
        emulated_violation("no memory");
    return copy;
}

static bool checked(void)
{
    const char *text = getenv("EMULATED_RACES");
    return text && strcmp(text, "0") != 0;
}

/* Who keeps images on disk keeps those of different versions apart. Kernels that are checked for races have a version of their own:
 * otherwise a run with EMULATED_RACES=1 would be given unchecked ones by an earlier run without. */
nvrtcResult nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = checked();
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetNumSupportedArchs(int *n)
{
    *n = 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *list)
{
    list[0] = 90;
    return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(nvrtcResult r)
{
    return r == NVRTC_SUCCESS             ? "NVRTC_SUCCESS"
           : r == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION"
                                          : "NVRTC_ERROR_INTERNAL_ERROR";
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int n,
                               const char *const *headers, const char *const *names)
{
    if (n > MOST_HEADERS)
        return NVRTC_ERROR_INVALID_INPUT;
    struct _nvrtcProgram *p = calloc(1, sizeof *p);
    if (!p)
        return NVRTC_ERROR_OUT_OF_MEMORY;
    p->source = text_of(source);
    p->name = text_of(name);
    p->log = text_of("");
    for (p->n_headers = 0; p->n_headers < n; p->n_headers++) {
        p->header[p->n_headers] = text_of(headers[p->n_headers]);
        p->header_name[p->n_headers] = text_of(names[p->n_headers]);
    }
    *program = p;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    struct _nvrtcProgram *p = *program;
    for (int k = 0; k < p->n_headers; k++) {
        free(p->header[k]);
        free(p->header_name[k]);
    }
    free(p->source);
    free(p->name);
    free(p->log);
    free(p);
    *program = NULL;
    return NVRTC_SUCCESS;
}

/* -- the cache ---------------------------------------------------------------------------------------------------------------------------- */

static void add_to_hash(uint64_t hash[2], const char *text)
{
    for (size_t k = 0; k <= strlen(text); k++) {
        hash[0] = (hash[0] ^ (unsigned char)text[k]) * 0x100000001b3u;
        hash[1] = (hash[1] + (unsigned char)text[k]) * 0x9e3779b97f4a7c15u;
        hash[1] ^= hash[1] >> 29;
    }
}

/* The folder of this library. */
static const char *here(void)
{
    static char folder[PATH];
    Dl_info info;
    if (!*folder && dladdr((void *)here, &info))
        snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(info.dli_fname, '/') - info.dli_fname), info.dli_fname);
    return folder;
}

/* When the words of kernels change, so does what they mean. */
static void add_file(uint64_t hash[2], const char *name)
{
    char path[PATH + 100], text[64];
    struct stat s = {0};
    snprintf(path, sizeof path, "%s/include/%s", here(), name);
    stat(path, &s);
    snprintf(text, sizeof text, "%lld %lld", (long long)s.st_mtim.tv_sec, (long long)s.st_size);
    add_to_hash(hash, text);
}

static void object_path(const struct _nvrtcProgram *p, char *path, size_t room)
{
    uint64_t hash[2] = {0xcbf29ce484222325u, 1};
    const char *folder = getenv("EMULATED_CACHE");
    add_to_hash(hash, p->source);
    for (int k = 0; k < p->n_headers; k++) {
        add_to_hash(hash, p->header_name[k]);
        add_to_hash(hash, p->header[k]);
    }
    add_file(hash, "emulated_device.h");
    add_file(hash, "launch.h");
    char cache[PATH];
    snprintf(cache, sizeof cache, "%s%s", folder ? folder : here(), folder ? "" : "/cache");
    mkdir(cache, 0777);
    snprintf(path, room, "%s/%016llx%016llx%s.so", cache, (unsigned long long)hash[0], (unsigned long long)hash[1],
             checked() ? "-checked" : "");
}

/* -- compiling ------------------------------------------------------------------------------------------------------------------------------- */

static bool write_file(const char *folder, const char *name, const char *text)
{
    char path[2 * PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *slash = strrchr(name, '/') ? strrchr(path, '/') : NULL;
    if (slash) { /* "cpu/math_single.h" */
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    bool ok = f && fputs(text, f) >= 0;
    return f ? fclose(f) == 0 && ok : false;
}

static char *read_file(const char *path)
{
    char *text = calloc(1, 64 << 10);
    FILE *f = fopen(path, "r");
    if (!text)
        emulated_violation("no memory");
    if (f) {
        size_t n = fread(text, 1, (64 << 10) - 1, f);
        text[n] = 0;
        fclose(f);
    }
    return text;
}

static int run_compiler(const char *folder, const char *source, const char *object, const char *log)
{
    extern char **environ;
    char include[PATH + 16], library[PATH + 16], rpath[PATH + 32], own[PATH + 16];
    const char *compiler = getenv("EMULATED_CXX");
    snprintf(include, sizeof include, "-I%s/include", here());
    snprintf(own, sizeof own, "-I%s", folder);
    snprintf(library, sizeof library, "-L%s", here());
    snprintf(rpath, sizeof rpath, "-Wl,-rpath,%s", here());
    const char *arguments[] = {compiler ? compiler : "g++",
                               "-x",
                               "c++",
                               "-std=gnu++17",
                               "-O1",
                               "-ffp-contract=off",
                               "-fno-exceptions",
                               "-fno-rtti",
                               "-fPIC",
                               "-shared",
                               "-DOLY_EMULATED",
                               own,
                               include,
                               checked() ? "-fsanitize=thread" : "-g0",
                               "-c",
                               source,
                               "-o",
                               object,
                               NULL};
    char linked[PATH + 8];
    snprintf(linked, sizeof linked, "%s.linked", object);
    const char *linking[] = {
        compiler ? compiler : "g++", "-shared", object, library, "-lemulated_device", "-lm", rpath, "-o", linked, NULL};
    const char *const *steps[] = {arguments, linking};
    int status = -1;
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 2, log, 01 | 0100 | 02000, 0666); /* write, create, append */
    for (int k = 0; k < 2; k++) {
        pid_t child;
        status = posix_spawnp(&child, steps[k][0], &files, NULL, (char *const *)steps[k], environ);
        while (status == 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
        if (status != 0)
            break;
    }
    posix_spawn_file_actions_destroy(&files);
    return status;
}

static bool compile(struct _nvrtcProgram *p, const char *object)
{
    char folder[PATH], source[PATH + 32], made[PATH + 32], linked[PATH + 48], log[PATH + 32], command[2 * PATH];
    snprintf(folder, sizeof folder, "%s/emulated-nvrtc-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(folder))
        return false;
    bool ok = write_file(folder, "program.cu", p->source);
    for (int k = 0; k < p->n_headers; k++)
        ok &= write_file(folder, p->header_name[k], p->header[k]);
    snprintf(source, sizeof source, "%s/program.cu", folder);
    snprintf(made, sizeof made, "%s/program.o", folder);
    snprintf(linked, sizeof linked, "%s.linked", made);
    snprintf(log, sizeof log, "%s/log", folder);
    ok = ok && run_compiler(folder, source, made, log) == 0;
    free(p->log);
    p->log = read_file(log);
    /* Beside its place, then in one step: other processes see it whole or not at all. */
    char beside[PATH + 32];
    snprintf(beside, sizeof beside, "%s.%d", object, (int)getpid());
    snprintf(command, sizeof command, "cp '%s' '%s'", linked, beside);
    ok = ok && system(command) == 0 && rename(beside, object) == 0;
    const char *const left[] = {source, made, linked, log};
    for (int k = 0; k < 4; k++)
        unlink(left[k]);
    for (int k = 0; k < p->n_headers; k++) {
        snprintf(command, sizeof command, "%s/%s", folder, p->header_name[k]);
        unlink(command);
    }
    for (int k = 0; k < p->n_headers; k++)
        if (strchr(p->header_name[k], '/')) {
            snprintf(command, sizeof command, "%s/%s", folder, p->header_name[k]);
            *strrchr(command, '/') = 0;
            rmdir(command);
        }
    rmdir(folder);
    return ok;
}

/* -- NVIDIA's own ------------------------------------------------------------------------------------------------------------------ */

/* In a process of its own (real_nvrtc.c). */
static void ask_the_real_one(nvrtcProgram p, int n, const char *const *options)
{
    const char *path = getenv("EMULATED_NVRTC");
    char folder[PATH / 4], command[4 * PATH], *log;
    if (!path)
        return;
    snprintf(folder, sizeof folder, "%s/real-nvrtc-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    bool ok = mkdtemp(folder) && write_file(folder, "program.cu", p->source);
    for (int k = 0; k < p->n_headers && ok; k++)
        ok = write_file(folder, p->header_name[k], p->header[k]);
    if (!ok)
        emulated_violation("%s cannot be written", folder);
    int used = snprintf(command, sizeof command, "env -u LD_PRELOAD -u LD_LIBRARY_PATH '%s/real_nvrtc' '%s' '%s'",
                        here(), path, folder);
    for (int k = 0; k < n; k++)
        used += snprintf(command + used, sizeof command - (size_t)used, " '%s'", options[k]);
    snprintf(command + used, sizeof command - (size_t)used, " >'%s/log' 2>&1", folder);
    ok = system(command) == 0;
    snprintf(command, sizeof command, "%s/log", folder);
    log = read_file(command);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    bool removed = system(command) == 0;
    if (!ok || !removed)
        emulated_violation("NVIDIA's NVRTC refuses a program that g++ takes: %.2000s", log);
    free(log);
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int n, const char *const *options)
{
    char object[PATH - 64];
    bool unfused = false;
    for (int k = 0; k < n; k++)
        unfused |= strstr(options[k], "fmad=false") != NULL;
    if (!unfused)
        emulated_violation("NVRTC is called without -fmad=false: products and sums would be contracted");
    if (emulated_fails("nvrtc"))
        return NVRTC_ERROR_INTERNAL_ERROR;
    ask_the_real_one(p, n, options);
    object_path(p, object, sizeof object);
    if (access(object, R_OK) != 0 && !compile(p, object))
        return NVRTC_ERROR_COMPILATION;
    snprintf(p->image, sizeof p->image, "emulated kernels: %s", object);
    return NVRTC_SUCCESS;
}

#define GET(size_name, name)                                                                                           \
    nvrtcResult size_name(nvrtcProgram p, size_t *bytes)                                                               \
    {                                                                                                                  \
        *bytes = *p->image ? strlen(p->image) + 1 : 0;                                                                 \
        return *p->image ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;                                                \
    }                                                                                                                  \
    nvrtcResult name(nvrtcProgram p, char *to)                                                                         \
    {                                                                                                                  \
        strcpy(to, p->image);                                                                                          \
        return *p->image ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;                                                \
    }
GET(nvrtcGetCUBINSize, nvrtcGetCUBIN)
GET(nvrtcGetPTXSize, nvrtcGetPTX)

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t *bytes)
{
    *bytes = strlen(p->log) + 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char *log)
{
    strcpy(log, p->log);
    return NVRTC_SUCCESS;
}
