/* SPDX-License-Identifier: BSD-3-Clause */
/* A device of the emulated GPU with the kernels of emulator/toy.cu, for tests that call the driver. Included by tests/gpu/test_emulator*.c. */
#ifndef EMULATOR_SESSION_H
#define EMULATOR_SESSION_H
#include "check.h"
#include "launch.h"
#include "toy.h"
#include <cublasLt.h>
#include <cuda.h>
#include <nvrtc.h>

enum { N = 1000 };

static CUcontext context;
static CUmodule module;
static const unsigned char real_image[16] = {0x50, 0xed, 0x55, 0xba}; /* of nvcc: its first bytes */

#define DO(call) assert_int_equal(call, CUDA_SUCCESS)

static inline void begin(void)
{
    CUdevice device;
    DO(cuInit(0));
    DO(cuDeviceGet(&device, 0));
    DO(cuDevicePrimaryCtxRetain(&context, device));
    DO(cuCtxSetCurrent(context));
    DO(cuModuleLoadData(&module, real_image));
}

static inline void end(void)
{
    DO(cuModuleUnload(module));
    DO(cuDevicePrimaryCtxRelease(0));
    DO(cuCtxSetCurrent(NULL));
}

static inline CUfunction function(const char *name)
{
    CUfunction f;
    DO(cuModuleGetFunction(&f, module, name));
    return f;
}

static inline void launch(const char *name, CUstream stream, unsigned blocks, unsigned threads, unsigned shared,
                          toy_task task)
{
    void *parameters[] = {&task};
    DO(cuLaunchKernel(function(name), blocks, 1, 1, threads, 1, 1, shared, stream, parameters, NULL));
    memset(&task, 0xff, sizeof task); /* read at the call */
}

static inline CUdeviceptr memory(size_t bytes)
{
    CUdeviceptr p;
    DO(cuMemAlloc(&p, bytes));
    return p;
}

static inline CUdeviceptr numbers(void)
{
    float host[N];
    CUdeviceptr p = memory(sizeof host);
    for (int i = 0; i < N; i++)
        host[i] = (float)i;
    DO(cuMemcpyHtoD(p, host, sizeof host));
    return p;
}

static inline CUstream stream(void)
{
    CUstream s;
    DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    return s;
}

/* -- kernels made by NVRTC ------------------------------------------------------------------------------------------ */

static const char *const options[] = {"-arch=sm_90", "-fmad=false"};

/* Of a kernel `generated` of NVRTC. */
typedef struct generated_task {
    float *to;
    long n;
} generated_task;

static inline CUmodule generate(const char *kernel)
{
    static const char words[] = "#include \"emulated_device.h\"\n#define WHAT 5.0f\n";
    const char *headers[] = {words}, *names[] = {"words.h"};
    char source[1000];
    nvrtcProgram program;
    size_t bytes;
    CUmodule made;
    snprintf(source, sizeof source, "#include \"words.h\"\nstruct task { float *to; long n; };\n%s\n", kernel);
    DO(nvrtcCreateProgram(&program, source, "generated.cu", 1, headers, names));
    DO(nvrtcCompileProgram(program, 2, options));
    DO(nvrtcGetCUBINSize(program, &bytes));
    char *image = malloc(bytes);
    DO(nvrtcGetCUBIN(program, image));
    DO(nvrtcDestroyProgram(&program));
    DO(cuModuleLoadData(&made, image));
    free(image);
    return made;
}

static inline void launch_generated(CUmodule made, generated_task task)
{
    CUfunction f;
    void *parameters[] = {&task};
    DO(cuModuleGetFunction(&f, made, "generated"));
    DO(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
}
#endif
