/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches kernels of kernels/cuda on the host, for tests that compare them with the CPU's: no driver, no device memory. Included by
 * tests/gpu/test_gpu_*.c. */
#ifndef KERNEL_LAUNCHER_H
#define KERNEL_LAUNCHER_H
#include "check.h"
#include "cuda/launch.h"
#include "core/error.h"
#include "launch.h"
#include <dlfcn.h>
#include <math.h>
#include <unistd.h>

enum { MOST_KEPT = 4096 };
static void *emulated_kernels;
static void (*run_emulated)(const emulated_kernel *, const void *, emulated_size, emulated_size, size_t);
static void *kept[MOST_KEPT]; /* constants and scratch memory */
static int n_kept, n_launched;

/* Folder of the emulated libraries, beside the test program. */
static const char *emulated_folder(void)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    assert_true(n > 0);
    path[n] = 0;
    strcpy(strrchr(path, '/'), "/gpu/emulated");
    return path;
}

static void need_kernels(void)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/libkernels_emulated.so", emulated_folder());
    if (!emulated_kernels && access(path, R_OK)) {
        printf("skipped: no emulated kernels (CUDA's headers were not found when this was built)\n");
        skip();
    }
    if (!emulated_kernels)
        emulated_kernels = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!emulated_kernels)
        fail_msg("%s", dlerror());
    *(void **)&run_emulated = dlsym(emulated_kernels, "emulated_launch");
    assert_non_null(run_emulated);
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
}

static oly_status run_launch(void *context, const oly_cuda_launch *l)
{
    char name[128];
    (void)context;
    n_launched++;
    snprintf(name, sizeof name, "%s__emulated", l->kernel);
    const emulated_kernel *k = dlsym(emulated_kernels, name);
    if (!k)
        fail_msg("no kernel %s", l->kernel);
    assert_int_equal(k->task_bytes, l->task_bytes);
    run_emulated(k, l->task, (emulated_size){l->blocks, 1, 1}, (emulated_size){l->threads, 1, 1}, l->shared);
    return OLY_OK;
}

static oly_status keep(void *context, size_t bytes, void **at)
{
    (void)context;
    assert_true(n_kept < MOST_KEPT);
    *at = kept[n_kept++] = aligned_alloc(256, (bytes + 255) / 256 * 256);
    memset(*at, 0x5a, bytes);
    return OLY_OK;
}

static oly_status keep_constant(void *context, const void *data, size_t bytes, const void **at)
{
    void *copy;
    keep(context, bytes, &copy);
    memcpy(copy, data, bytes);
    *at = copy;
    return OLY_OK;
}

static void free_kept(void)
{
    while (n_kept > 0)
        free(kept[--n_kept]);
}

static const oly_cuda_launcher launcher
    __attribute__((unused)) = {.processors = 2, .launch = run_launch, .constant = keep_constant, .scratch = keep};

/* -- random elements ------------------------------------------------------------------------------------------------------ */
static uint64_t random_state = 88172645463325252u;
static inline uint64_t random_word(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}
static inline int random_below(int n)
{
    return (int)((random_word() >> 33) % (uint64_t)n);
}

/* One real number: small, special, or of any bits. */
static inline double random_real(void)
{
    static const double special[] = {0,        -0.0,      1,   -1,     0.5, 1e300, -1e300,
                                     INFINITY, -INFINITY, NAN, 1e-310, 3,   1e10,  88.5};
    int kind = random_below(8);
    if (kind == 0)
        return special[random_below(sizeof special / sizeof *special)];
    double x = (double)(int64_t)random_word() * 0x1p-63;
    return kind < 5 ? x * 8 : kind < 7 ? x : x * 1000;
}

static inline void random_element(oly_dtype dtype, void *at)
{
    uint64_t word = random_word();
    double re = random_real(), im = random_real();
    float f[2] = {(float)re, (float)im};
    size_t bytes = oly_dtype_size(dtype);
    if (dtype == OLY_BOOL)
        word &= 1;
    else if (dtype < OLY_FLOAT8_E4M3FN && random_below(2)) /* small integers */
        word = (uint64_t)(int64_t)(random_below(21) - (dtype < OLY_UINT8 ? 10 : 0));
    if (dtype == OLY_FLOAT32 || dtype == OLY_COMPLEX64)
        memcpy(at, f, bytes);
    else if (dtype == OLY_FLOAT64)
        memcpy(at, &re, 8);
    else if (dtype == OLY_COMPLEX128)
        memcpy(at, (double[]){re, im}, 16);
    else if (dtype == OLY_BFLOAT16)
        memcpy(at, (char *)f + 2, 2);
    else
        memcpy(at, &word, bytes);
}

static inline void *random_array(oly_dtype dtype, int64_t n)
{
    size_t bytes = oly_dtype_size(dtype);
    char *x = aligned_alloc(64, ((size_t)(n + 8) * bytes + 63) / 64 * 64);
    for (int64_t i = 0; i < n + 8; i++)
        random_element(dtype, x + (size_t)i * bytes);
    return x;
}

/* -- comparison --------------------------------------------------------------------------------------------------------------- */
static inline bool is_nan_element(oly_dtype dtype, const void *x)
{
    uint64_t bits = 0;
    float f;
    double d;
    memcpy(&bits, x, oly_dtype_size(dtype) > 8 ? 8 : oly_dtype_size(dtype));
    memcpy(&f, &bits, 4);
    memcpy(&d, &bits, 8);
    switch (dtype) {
    case OLY_FLOAT8_E4M3FN: return (bits & 0x7f) == 0x7f;
    case OLY_FLOAT8_E5M2: return (bits & 0x7f) > 0x7c;
    case OLY_FLOAT16: return (bits & 0x7fff) > 0x7c00;
    case OLY_BFLOAT16: return (bits & 0x7fff) > 0x7f80;
    case OLY_FLOAT32: return f != f;
    case OLY_FLOAT64: return d != d;
    default: return false;
    }
}
/* The same bits, or both NaN. */
static inline bool same_element(oly_dtype dtype, const void *x, const void *y)
{
    if (dtype == OLY_COMPLEX64 || dtype == OLY_COMPLEX128) {
        oly_dtype part = dtype == OLY_COMPLEX64 ? OLY_FLOAT32 : OLY_FLOAT64;
        size_t bytes = oly_dtype_size(part);
        return same_element(part, x, y) && same_element(part, (const char *)x + bytes, (const char *)y + bytes);
    }
    return !memcmp(x, y, oly_dtype_size(dtype)) || (is_nan_element(dtype, x) && is_nan_element(dtype, y));
}
/* -1: all n elements are the same; else the first that is not. */
static inline int64_t first_difference(oly_dtype dtype, int64_t n, const void *x, const void *y)
{
    size_t bytes = oly_dtype_size(dtype);
    for (int64_t i = 0; i < n; i++)
        if (!same_element(dtype, (const char *)x + (size_t)i * bytes, (const char *)y + (size_t)i * bytes))
            return i;
    return -1;
}
#endif
