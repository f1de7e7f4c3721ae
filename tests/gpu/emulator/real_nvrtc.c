/* SPDX-License-Identifier: BSD-3-Clause */
/* real_nvrtc LIBRARY FOLDER OPTION...: compiles FOLDER/program.cu, whose headers lie beside it, by NVIDIA's libnvrtc for a GPU that it knows, whatever
 * architecture the options name. Prints what it says against it; status 1. A program of its own, because functions of the
 * emulated NVRTC have the same names. Started by nvrtc.c. */
#include <dlfcn.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *function_of(void *library, const char *name)
{
    void *at = dlsym(library, name);
    if (!at) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return at;
}

static char *read_file(const char *path)
{
    enum { MOST = 1 << 22 };
    FILE *f = fopen(path, "r");
    char *text = f ? calloc(1, MOST) : NULL;
    if (!text || fread(text, 1, MOST - 1, f) == 0) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(2);
    }
    fclose(f);
    return text;
}

int main(int argc, char **argv)
{
    const char *options[32];
    char source[4096], include[4096], *log;
    int n = 0;
    nvrtcProgram program;
    nvrtcResult (*create)(nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *);
    nvrtcResult (*compile)(nvrtcProgram, int, const char *const *), (*log_size)(nvrtcProgram, size_t *),
        (*log_of)(nvrtcProgram, char *);
    void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    size_t bytes = 0;
    if (!library) {
        fprintf(stderr, "real_nvrtc LIBRARY FOLDER OPTION...: %s\n", argc > 2 ? dlerror() : "arguments are missing");
        return 2;
    }
    *(void **)&create = function_of(library, "nvrtcCreateProgram");
    *(void **)&compile = function_of(library, "nvrtcCompileProgram");
    *(void **)&log_size = function_of(library, "nvrtcGetProgramLogSize");
    *(void **)&log_of = function_of(library, "nvrtcGetProgramLog");
    snprintf(source, sizeof source, "%s/program.cu", argv[2]);
    snprintf(include, sizeof include, "-I%s", argv[2]);
    options[n++] = include;
    options[n++] = "--gpu-architecture=sm_90";
    for (int k = 3; k < argc && n < 32; k++)
        if (!strstr(argv[k], "--gpu-architecture"))
            options[n++] = argv[k];
    if (create(&program, read_file(source), "group.cu", 0, NULL, NULL) != NVRTC_SUCCESS)
        return 2;
    if (compile(program, n, options) == NVRTC_SUCCESS)
        return 0;
    log_size(program, &bytes);
    log = calloc(1, bytes + 1);
    if (log && log_of(program, log) == NVRTC_SUCCESS)
        fprintf(stderr, "%s\n", log);
    return 1;
}
