/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of CUDA's driver, found in libcuda.so.1 when GPUs are first asked for: the library is not linked with CUDA and runs without it.
 * After oly_cuda_driver_open has succeeded, they are oly_driver.NAME. For runtime/device/cuda and runtime/run/cuda only. */
#ifndef OLY_DEVICE_CUDA_DRIVER_H
#define OLY_DEVICE_CUDA_DRIVER_H
#include "core/error.h"
#include <cuda.h>

#define OLY_DRIVER_FUNCTIONS(x)                                                                                        \
    x(cuInit) x(cuDriverGetVersion) x(cuDeviceGetCount) x(cuDeviceGet) x(cuDeviceGetName) x(cuDeviceTotalMem)          \
        x(cuDeviceGetAttribute) x(cuDeviceGetUuid) x(cuDeviceCanAccessPeer) x(cuDevicePrimaryCtxRetain)                \
            x(cuDevicePrimaryCtxRelease) x(cuCtxPushCurrent) x(cuCtxPopCurrent) x(cuStreamCreate) x(cuStreamDestroy)   \
                x(cuStreamSynchronize) x(cuStreamWaitEvent) x(cuEventCreate) x(cuEventDestroy) x(cuEventRecord)        \
                    x(cuEventQuery) x(cuEventSynchronize) x(cuMemPoolCreate) x(cuMemPoolDestroy)                       \
                        x(cuMemPoolSetAttribute) x(cuMemPoolSetAccess) x(cuMemAllocFromPoolAsync) x(cuMemFreeAsync)    \
                            x(cuMemHostAlloc) x(cuMemFreeHost) x(cuMemcpyHtoDAsync) x(cuMemcpyDtoHAsync)               \
                                x(cuMemcpyDtoDAsync) x(cuMemcpyAsync) x(cuMemsetD8Async) x(cuMemsetD32Async)           \
                                    x(cuMemcpy2DAsync) x(cuModuleLoadData) x(cuModuleUnload) x(cuModuleGetFunction)    \
                                        x(cuFuncSetAttribute) x(cuLaunchKernel) x(cuGetErrorName) x(cuGetErrorString)  \
                                            x(cuMemGetInfo) x(cuStreamBeginCapture) x(cuStreamEndCapture)              \
                                                x(cuGraphInstantiateWithFlags) x(cuGraphExecUpdate) x(cuGraphLaunch)   \
                                                    x(cuGraphDestroy) x(cuGraphExecDestroy) x(cuDeviceGetPCIBusId)     \
                                                        x(cuDeviceGetP2PAttribute)

#define OLY_DRIVER_POINTER(name) __typeof__(name) *name;
typedef struct oly_driver_functions {
    OLY_DRIVER_FUNCTIONS(OLY_DRIVER_POINTER)
} oly_driver_functions;
extern oly_driver_functions oly_driver;

/* Conditional nodes of graphs: of drivers from CUDA 12.4 on. */
#if CUDA_VERSION >= 12040
#define OLY_CONDITIONAL_FUNCTIONS(x)                                                                                   \
    x(cuGraphConditionalHandleCreate) x(cuGraphCreate) x(cuGraphAddNode_v2) x(cuGraphAddKernelNode)                    \
        x(cuStreamBeginCaptureToGraph) x(cuStreamGetCaptureInfo_v3)
typedef struct oly_conditional_functions {
    OLY_CONDITIONAL_FUNCTIONS(OLY_DRIVER_POINTER)
} oly_conditional_functions;
/* NULL: the driver has none. Once it is open. Any thread. */
const oly_conditional_functions *oly_cuda_conditionals(void);
#endif
#undef OLY_DRIVER_POINTER

/* Opens and initialises the driver at the first call. False: there is none that will do, and *why (a sentence without its full stop). Any
 * thread. */
bool oly_cuda_driver_open(const char **why);
int oly_cuda_driver_version(void); /* 13000: 13.0 */

/* OLY_OK, or the status and message for a result of the driver. call: "cuMemcpyAsync"; on: "CUDA device 0 (NVIDIA H100)". */
oly_status oly_cuda_check(CUresult result, const char *call, const char *on);
#endif
