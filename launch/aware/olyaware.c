/* SPDX-License-Identifier: BSD-3-Clause */
/* The program olyaware: does this MPI take memory of GPUs? It asks the library what it claims, and then sends messages to itself from the memory
 * of the first GPU into it, with the calls that Olympus uses. An MPI that does not take it may crash: nobody but this process. Started by
 * collectives/device_trial.c with an environment in which MPI starts alone; its exit status says the outcome (outcome.h). */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "aware/outcome.h"
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SHORT = 256, LONG = 3 << 20 };

/* As cuda.h declares them, which need not be there. */
typedef uint64_t address;
static struct {
    int (*init)(unsigned flags);
    int (*get)(int *device, int number);
    int (*retain)(void **context, int device);
    int (*use)(void *context);
    int (*take)(address *at, size_t bytes);
    int (*write)(address to, const void *from, size_t bytes);
    int (*read)(void *to, address from, size_t bytes);
} gpu;

static int find_functions(void)
{
    static const struct {
        const char *name;
        void *at;
    } functions[] = {
        {"cuInit", &gpu.init},         {"cuDeviceGet", &gpu.get},    {"cuDevicePrimaryCtxRetain", &gpu.retain},
        {"cuCtxSetCurrent", &gpu.use}, {"cuMemAlloc_v2", &gpu.take}, {"cuMemcpyHtoD_v2", &gpu.write},
        {"cuMemcpyDtoH_v2", &gpu.read}};
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    for (size_t k = 0; driver && k < sizeof functions / sizeof *functions; k++) {
        void *function = dlsym(driver, functions[k].name);
        if (!function)
            return 0;
        memcpy(functions[k].at, &function, sizeof function);
    }
    return driver != NULL;
}

static int start_gpu(void)
{
    int device;
    void *context;
    return find_functions() && gpu.init(0) == 0 && gpu.get(&device, 0) == 0 && gpu.retain(&context, device) == 0 &&
           gpu.use(context) == 0;
}

static int claims_not(void)
{
    int (*ask)(void) = NULL;
    void *function = dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");
    memcpy(&ask, &function, sizeof function);
    return ask && ask() == 0;
}

/* From memory of the GPU into it. */
static int try(size_t bytes)
{
    static unsigned char host[LONG];
    address from, to;
    MPI_Request request[2];
    MPI_Status status[2];
    int index[2], left = 2;
    if (gpu.take(&from, bytes) != 0 || gpu.take(&to, bytes) != 0)
        return OLY_AWARE_NO_GPU;
    for (size_t k = 0; k < bytes; k++)
        host[k] = (unsigned char)(k * 7 + k / 251 + 1);
    if (gpu.write(from, host, bytes) != 0)
        return OLY_AWARE_NO_GPU;
    memset(host, 0, bytes);
    if (gpu.write(to, host, bytes) != 0)
        return OLY_AWARE_NO_GPU;
    if (MPI_Irecv((void *)(uintptr_t)to, (int)bytes, MPI_BYTE, 0, 7, MPI_COMM_SELF, &request[0]) != MPI_SUCCESS ||
        MPI_Isend((void *)(uintptr_t)from, (int)bytes, MPI_BYTE, 0, 7, MPI_COMM_SELF, &request[1]) != MPI_SUCCESS)
        return OLY_AWARE_FAILS;
    while (left > 0) {
        int n;
        if (MPI_Testsome(2, request, &n, index, status) != MPI_SUCCESS || n == MPI_UNDEFINED)
            return OLY_AWARE_FAILS;
        left -= n;
    }
    if (gpu.read(host, to, bytes) != 0)
        return OLY_AWARE_FAILS;
    for (size_t k = 0; k < bytes; k++)
        if (host[k] != (unsigned char)(k * 7 + k / 251 + 1))
            return OLY_AWARE_OTHER_BYTES;
    return OLY_AWARE_WORKS;
}

int main(void)
{
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    alarm(OLY_AWARE_SECONDS);
    if (claims_not())
        return OLY_AWARE_CLAIMS_NOT;
    if (!start_gpu())
        return OLY_AWARE_NO_GPU;
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS)
        return OLY_AWARE_NO_MPI;
    int outcome = try(SHORT);
    outcome = outcome == OLY_AWARE_WORKS ? try(LONG) : outcome;
    _exit(outcome); /* nobody waits for this process's MPI_Finalize */
}
