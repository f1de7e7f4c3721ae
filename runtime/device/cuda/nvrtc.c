/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening NVRTC and compiling with it. See nvrtc.h. */
#include "device/cuda/nvrtc.h"
#include "core/hash.h"
#include "core/late_library.h"
#include "device/cuda/embedded.h"
#include <olympus/base.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct _nvrtcProgram *program;
static struct {
    int (*version)(int *major, int *minor);
    int (*count_archs)(int *n);
    int (*list_archs)(int *archs);
    int (*create)(program *p, const char *source, const char *name, int n, const char *const *headers,
                  const char *const *names);
    int (*compile)(program p, int n, const char *const *options);
    int (*cubin_size)(program p, size_t *bytes);
    int (*cubin)(program p, char *to);
    int (*ptx_size)(program p, size_t *bytes);
    int (*ptx)(program p, char *to);
    int (*log_size)(program p, size_t *bytes);
    int (*log)(program p, char *to);
    int (*destroy)(program *p);
} nvrtc;
static const char *const symbols[] = {"nvrtcVersion",           "nvrtcGetNumSupportedArchs", "nvrtcGetSupportedArchs",
                                      "nvrtcCreateProgram",     "nvrtcCompileProgram",       "nvrtcGetCUBINSize",
                                      "nvrtcGetCUBIN",          "nvrtcGetPTXSize",           "nvrtcGetPTX",
                                      "nvrtcGetProgramLogSize", "nvrtcGetProgramLog",        "nvrtcDestroyProgram"};
_Static_assert(sizeof nvrtc == sizeof symbols, "one pointer for each name");

/* Where the toolkit is installed without telling the loader, its usual folder. */
static const char *const files[] = {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so.13",
                                    "/usr/local/cuda/lib64/libnvrtc.so.12", NULL};
static oly_late_library library = {
    .files = files, .symbols = symbols, .addresses = (void **)&nvrtc, .n = sizeof symbols / sizeof *symbols};

const char *oly_nvrtc_missing(void)
{
    return oly_late_library_open(&library) ? NULL : library.reason;
}

/* The GPU itself if NVRTC knows it; else the latest before it, whose PTX the driver compiles. */
static int known_arch(int arch, bool *itself)
{
    int n = 0, best = 0, archs[128];
    *itself = false;
    if (nvrtc.count_archs(&n) != 0 || n < 1 || n > 128 || nvrtc.list_archs(archs) != 0)
        return 0;
    for (int k = 0; k < n; k++)
        if (archs[k] <= arch && archs[k] > best)
            best = archs[k];
    *itself = best == arch;
    return best;
}

/* Contraction is off: results have the same bits as the interpreter's. */
enum { OPTIONS = 5 };
static bool write_options(int arch, char architecture[40], const char *options[OPTIONS], bool *itself)
{
    int known = known_arch(arch, itself);
    snprintf(architecture, 40, "--gpu-architecture=%s_%d", *itself ? "sm" : "compute", known);
    options[0] = architecture;
    options[1] = "-fmad=false";
    options[2] = "--std=c++17";
    options[3] = "--device-int128";
    options[4] = "-default-device"; /* else generic lambdas are functions of the host */
    return known > 0;
}

static uint64_t headers_hash(uint64_t seed)
{
    for (const oly_embedded *e = oly_cuda_headers; e->name; e++)
        seed = oly_hash(oly_hash_text(seed, e->name), e->begin, (size_t)(e->end - e->begin));
    return seed;
}

const char *oly_nvrtc_description(int arch, char *to, size_t size)
{
    char architecture[40];
    const char *o[OPTIONS];
    bool itself;
    int major = 0, minor = 0;
    *to = 0;
    if (oly_nvrtc_missing() || nvrtc.version(&major, &minor) != 0 || !write_options(arch, architecture, o, &itself))
        return to;
    snprintf(to, size, "Olympus %d.%d, headers %016llx%016llx, NVRTC %d.%d, %s %s %s %s %s\n", OLY_VERSION_MAJOR,
             OLY_VERSION_MINOR, (unsigned long long)headers_hash(1), (unsigned long long)headers_hash(2), major, minor,
             o[0], o[1], o[2], o[3], o[4]);
    return to;
}

static char *take(program p, int (*size)(program, size_t *), int (*get)(program, char *), size_t *bytes)
{
    char *text = NULL;
    if (size(p, bytes) != 0 || !(text = calloc(1, *bytes + 1)))
        return NULL;
    if (get(p, text) == 0)
        return text;
    free(text);
    return NULL;
}

static program create(const char *source)
{
    enum { MOST_HEADERS = 32 };
    const char *text[MOST_HEADERS], *name[MOST_HEADERS];
    program p = NULL;
    int n = 0;
    for (const oly_embedded *e = oly_cuda_headers; e->name && n < MOST_HEADERS; e++, n++) {
        text[n] = (const char *)e->begin;
        name[n] = e->name;
    }
    return nvrtc.create(&p, source, "group.cu", n, text, name) == 0 ? p : NULL;
}

bool oly_nvrtc_compile(int arch, const char *source, char **image, size_t *bytes, char **why)
{
    char architecture[40];
    const char *options[OPTIONS];
    bool itself;
    program p;
    size_t log_bytes;
    *image = *why = NULL;
    if (oly_nvrtc_missing() || !write_options(arch, architecture, options, &itself) || !(p = create(source)))
        return false;
    if (nvrtc.compile(p, OPTIONS, options) == 0)
        *image = itself ? take(p, nvrtc.cubin_size, nvrtc.cubin, bytes) : take(p, nvrtc.ptx_size, nvrtc.ptx, bytes);
    else
        *why = take(p, nvrtc.log_size, nvrtc.log, &log_bytes);
    nvrtc.destroy(&p);
    return *image != NULL;
}
