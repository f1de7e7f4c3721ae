/* SPDX-License-Identifier: BSD-3-Clause */
/* What a GPU can do, measured without Olympus: copies within its memory, to and from pinned host memory, a launch of nothing, and products by
 * cuBLASLt alone. The figures that those of the bench are compared with (tests/gpu/run.sh).
 *
 * Run:    build/tests/gpu/rates [--quick]     (quick: small sizes, to see that it works)
 * Prints: name, rate, unit, separated by tabs; the best of several repeats. */
#include <cublasLt.h>
#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REPEATS = 10 };

static bool quick;
static CUstream stream;
static CUevent start, end;

/* Functions of the driver and of cuBLASLt, found when it runs: the program starts everywhere. */
#define TEXT_OF(name) #name
#define TEXT(name)    TEXT_OF(name)
#define DRIVER(name)  ((__typeof__(&name))find(driver, TEXT(name)))
#define BLAS(name)    ((__typeof__(&name))find(blas, TEXT(name)))
static void *driver, *blas;

static void *find(void *library, const char *name)
{
    void *function = dlsym(library, name);
    if (!function) {
        fprintf(stderr, "rates: no %s\n", name);
        exit(1);
    }
    return function;
}

static void check(int result, const char *call)
{
    if (result == 0)
        return;
    fprintf(stderr, "rates: %s failed with %d\n", call, result);
    exit(1);
}
#define DO(call) check((int)(call), #call)

/* Seconds of the best of some repeats of what `work` gives the stream. */
static double best(void (*work)(const void *context), const void *context)
{
    float least = 1e30f;
    for (int k = 0; k < (quick ? 2 : REPEATS); k++) {
        float ms;
        DO(DRIVER(cuEventRecord)(start, stream));
        work(context);
        DO(DRIVER(cuEventRecord)(end, stream));
        DO(DRIVER(cuEventSynchronize)(end));
        DO(DRIVER(cuEventElapsedTime)(&ms, start, end));
        least = ms < least ? ms : least;
    }
    return 1e-3 * least;
}

typedef struct copy {
    CUdeviceptr to, from;
    size_t bytes;
} copy;

static void copy_once(const void *context)
{
    const copy *c = context;
    DO(DRIVER(cuMemcpyAsync)(c->to, c->from, c->bytes, stream));
}

static void copies(void)
{
    size_t bytes = quick ? 1 << 20 : (size_t)1 << 30;
    CUdeviceptr a, b;
    void *host;
    DO(DRIVER(cuMemAlloc)(&a, bytes));
    DO(DRIVER(cuMemAlloc)(&b, bytes));
    DO(DRIVER(cuMemHostAlloc)(&host, bytes, 0));
    memset(host, 1, bytes);
    DO(DRIVER(cuMemsetD8)(a, 1, bytes));
    printf("copy\t%.1f\tGB/s, read and written\n", 2e-9 * (double)bytes / best(copy_once, &(copy){b, a, bytes}));
    printf("copy_to_host\t%.1f\tGB/s\n", 1e-9 * (double)bytes / best(copy_once, &(copy){(CUdeviceptr)host, a, bytes}));
    printf("copy_from_host\t%.1f\tGB/s\n",
           1e-9 * (double)bytes / best(copy_once, &(copy){a, (CUdeviceptr)host, bytes}));
    printf("copy_of_4_bytes\t%.2f\tus\n", 1e6 * best(copy_once, &(copy){b, a, 4}));
    DO(DRIVER(cuMemFree)(a));
    DO(DRIVER(cuMemFree)(b));
    DO(DRIVER(cuMemFreeHost)(host));
}

/* -- what a call of the driver takes of the host's time: many of each, then a wait that is not counted ------------------------------------ */

enum { CALLS = 2000 };
static CUfunction nothing;
static CUcontext current;
static CUgraphExec replayed;

static void launch_nothing(void)
{
    DO(DRIVER(cuLaunchKernel)(nothing, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
}

static void record_event(void)
{
    DO(DRIVER(cuEventRecord)(end, stream));
}

static void push_and_pop(void)
{
    CUcontext popped;
    DO(DRIVER(cuCtxPushCurrent)(current));
    DO(DRIVER(cuCtxPopCurrent)(&popped));
}

static void replay_nothing(void)
{
    DO(DRIVER(cuGraphLaunch)(replayed, stream));
}

static void wait_for_launch(void)
{
    launch_nothing();
    DO(DRIVER(cuStreamSynchronize)(stream));
}

static void time_call(const char *name, void (*call)(void))
{
    double least = 1e30;
    for (int k = 0; k < (quick ? 2 : REPEATS); k++) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (int i = 0; i < (quick ? 10 : CALLS); i++)
            call();
        clock_gettime(CLOCK_MONOTONIC, &to);
        DO(DRIVER(cuStreamSynchronize)(stream));
        double took = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
        least = took < least ? took : least;
    }
    printf("%s\t%.2f\tus\n", name, 1e6 * least / (quick ? 10 : CALLS));
}

static void calls(void)
{
    static const char text[] =
        ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing()\n{\n    ret;\n}\n";
    CUmodule module;
    CUgraph graph;
    if (DRIVER(cuModuleLoadData)(&module, text) != CUDA_SUCCESS) {
        printf("no kernel from PTX: calls are not measured\n");
        return;
    }
    DO(DRIVER(cuModuleGetFunction)(&nothing, module, "nothing"));
    DO(DRIVER(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    launch_nothing();
    DO(DRIVER(cuStreamEndCapture)(stream, &graph));
    DO(DRIVER(cuGraphInstantiate)(&replayed, graph, 0));
    time_call("launch_of_nothing", launch_nothing);
    time_call("replay_of_nothing", replay_nothing);
    time_call("launch_and_wait", wait_for_launch);
    time_call("event_record", record_event);
    time_call("context_push_and_pop", push_and_pop);
    DO(DRIVER(cuModuleUnload)(module));
}

typedef struct product {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t layout;
    cublasLtMatmulHeuristicResult_t found;
    CUdeviceptr a, b, c, workspace;
    size_t workspace_bytes;
    float one, zero;
} product;

static void multiply(const void *context)
{
    const product *p = context;
    DO(BLAS(cublasLtMatmul)(p->handle, p->desc, &p->one, (void *)p->a, p->layout, (void *)p->b, p->layout, &p->zero,
                            (void *)p->c, p->layout, (void *)p->c, p->layout, &p->found.algo, (void *)p->workspace,
                            p->workspace_bytes, (cudaStream_t)stream));
}

static void products(const char *name, cudaDataType type, size_t element, cublasComputeType_t compute)
{
    uint64_t n = quick ? 32 : 8192;
    product p = {.one = 1, .workspace_bytes = quick ? 1024 : 64 << 20};
    cublasLtMatmulPreference_t preference;
    int results = 0;
    DO(BLAS(cublasLtCreate)(&p.handle));
    DO(BLAS(cublasLtMatmulDescCreate)(&p.desc, compute, CUDA_R_32F));
    DO(BLAS(cublasLtMatrixLayoutCreate)(&p.layout, type, n, n, (int64_t)n));
    DO(BLAS(cublasLtMatmulPreferenceCreate)(&preference));
    DO(BLAS(cublasLtMatmulPreferenceSetAttribute)(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                  &p.workspace_bytes, sizeof p.workspace_bytes));
    DO(BLAS(cublasLtMatmulAlgoGetHeuristic)(p.handle, p.desc, p.layout, p.layout, p.layout, p.layout, preference, 1,
                                            &p.found, &results));
    CUdeviceptr *all[] = {&p.a, &p.b, &p.c};
    for (int k = 0; k < 3; k++) {
        DO(DRIVER(cuMemAlloc)(all[k], n * n * element));
        DO(DRIVER(cuMemsetD8)(*all[k], 0, n * n * element));
    }
    DO(DRIVER(cuMemAlloc)(&p.workspace, p.workspace_bytes));
    multiply(&p);
    printf("%s\t%.0f\tGflop/s, %llu x %llu\n", name, 2e-9 * (double)(n * n * n) / best(multiply, &p),
           (unsigned long long)n, (unsigned long long)n);
    for (int k = 0; k < 3; k++)
        DO(DRIVER(cuMemFree)(*all[k]));
    DO(DRIVER(cuMemFree)(p.workspace));
    DO(BLAS(cublasLtMatmulPreferenceDestroy)(preference));
    DO(BLAS(cublasLtMatrixLayoutDestroy)(p.layout));
    DO(BLAS(cublasLtMatmulDescDestroy)(p.desc));
    DO(BLAS(cublasLtDestroy)(p.handle));
}

int main(int argc, char **argv)
{
    CUcontext context;
    char name[100];
    quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    blas = dlopen("libcublasLt.so.13", RTLD_NOW);
    blas = blas ? blas : dlopen("libcublasLt.so.12", RTLD_NOW);
    if (!driver) {
        printf("no driver: %s\n", dlerror());
        return 77;
    }
    DO(DRIVER(cuInit)(0));
    DO(DRIVER(cuDevicePrimaryCtxRetain)(&context, 0));
    DO(DRIVER(cuCtxSetCurrent)(context));
    DO(DRIVER(cuDeviceGetName)(name, sizeof name, 0));
    DO(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    DO(DRIVER(cuEventCreate)(&start, 0));
    DO(DRIVER(cuEventCreate)(&end, 0));
    printf("%s\n", name);
    current = context;
    copies();
    calls();
    if (!blas) {
        printf("no cuBLASLt: products are not measured\n");
        return 0;
    }
    products("gemm_float32", CUDA_R_32F, 4, CUBLAS_COMPUTE_32F);
    products("gemm_tf32", CUDA_R_32F, 4, CUBLAS_COMPUTE_32F_FAST_TF32);
    products("gemm_bfloat16", CUDA_R_16BF, 2, CUBLAS_COMPUTE_32F);
    products("gemm_float16", CUDA_R_16F, 2, CUBLAS_COMPUTE_32F);
    return 0;
}
