/* SPDX-License-Identifier: BSD-3-Clause */
/* A CUDA-aware MPI, emulated: preloaded (EMULATED_CUDA_AWARE=1), it takes addresses of emulated GPUs in the calls with which Olympus sends boxes,
 * MPI_Isend, MPI_Irecv and MPI_Testsome, and moves their bytes by the driver's copies. As the real ones, it reads a device's memory at the
 * call or later, and does not wait for streams. EMULATED_CUDA_AWARE=2: it only claims to, and hands such addresses on (and a process
 * that does this crashes). */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "driver.h"
#include <cuda.h>
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct flight {
    struct flight *next;
    MPI_Request request;
    char *host;
    CUdeviceptr to; /* 0: sent */
    size_t bytes;
} flight;
static flight *flights;

static void *next_of(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (!function)
        abort();
    return function;
}

/* The context that has the memory becomes the caller's. False: memory of the host. */
static bool enter(const void *address)
{
    CUcontext context;
    int device;
    return cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (CUdeviceptr)address) == CUDA_SUCCESS &&
           cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS &&
           cuDevicePrimaryCtxRelease(device) == CUDA_SUCCESS && cuCtxPushCurrent(context) == CUDA_SUCCESS;
}

static bool only_claims(void)
{
    const char *text = getenv("EMULATED_CUDA_AWARE");
    return text && *text == '2';
}

static bool is_device(const void *address)
{
    int type = 0;
    return !only_claims() &&
           cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)address) == CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_DEVICE;
}

EXPORT int MPIX_Query_cuda_support(void)
{
    return 1;
}

static flight *begin(size_t bytes)
{
    flight *f = calloc(1, sizeof *f);
    if (!f || !(f->host = malloc(bytes ? bytes : 1)))
        abort();
    f->bytes = bytes;
    f->next = flights;
    flights = f;
    return f;
}

EXPORT int MPI_Isend(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                     MPI_Request *request)
{
    __typeof__(MPI_Isend) *isend = next_of("MPI_Isend");
    if (!is_device(from))
        return isend(from, count, type, to, tag, comm, request);
    flight *f = begin((size_t)count);
    CUcontext context;
    usleep((useconds_t)emulated_slow("aware") * 1000);
    if (!enter(from) || cuMemcpyDtoH(f->host, (CUdeviceptr)from, f->bytes) != CUDA_SUCCESS)
        return MPI_ERR_OTHER;
    cuCtxPopCurrent(&context);
    int code = isend(f->host, count, type, to, tag, comm, request);
    f->request = *request;
    return code;
}

EXPORT int MPI_Irecv(void *to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    __typeof__(MPI_Irecv) *irecv = next_of("MPI_Irecv");
    if (!is_device(to))
        return irecv(to, count, type, from, tag, comm, request);
    flight *f = begin((size_t)count);
    f->to = (CUdeviceptr)to;
    int code = irecv(f->host, count, type, from, tag, comm, request);
    f->request = *request;
    return code;
}

static int end(MPI_Request request)
{
    int code = MPI_SUCCESS;
    for (flight **at = &flights; *at; at = &(*at)->next)
        if ((*at)->request == request) {
            flight *f = *at;
            CUcontext context;
            *at = f->next;
            if (f->to && (!enter((void *)f->to) || cuMemcpyHtoD(f->to, f->host, f->bytes) != CUDA_SUCCESS))
                code = MPI_ERR_OTHER;
            else if (f->to)
                cuCtxPopCurrent(&context);
            free(f->host);
            free(f);
            return code;
        }
    return code;
}

EXPORT int MPI_Testsome(int n, MPI_Request requests[], int *n_done, int indexes[], MPI_Status statuses[])
{
    __typeof__(MPI_Testsome) *testsome = next_of("MPI_Testsome");
    MPI_Request *before = malloc(sizeof *before * (size_t)(n + 1));
    if (!before)
        abort();
    memcpy(before, requests, sizeof *before * (size_t)n);
    int code = testsome(n, requests, n_done, indexes, statuses);
    for (int k = 0; code == MPI_SUCCESS && *n_done != MPI_UNDEFINED && k < *n_done; k++)
        code = end(before[indexes[k]]);
    free(before);
    return code;
}
