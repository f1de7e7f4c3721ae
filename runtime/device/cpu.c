/* SPDX-License-Identifier: BSD-3-Clause */
/* The platform "cpu": virtual devices, computed by the threads of the process, in host memory. See platform.h. */
#include "device/platform.h"
#include "core/option.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT ((size_t)64)
#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_FROM ((size_t)4 << 20)

static int devices(void)
{
    return (int)oly_option.num_cpu_devices;
}

static bool allocate(int memory, size_t bytes, void **data)
{
    bool huge = bytes >= HUGE_FROM;
    (void)memory;
    if (posix_memalign(data, huge ? HUGE_PAGE : ALIGNMENT, bytes) != 0)
        return false;
    if (huge)
        madvise(*data, bytes, MADV_HUGEPAGE); /* advice: kernels without it refuse, which is fine */
    return true;
}

static void release(int memory, void *data, size_t bytes)
{
    (void)memory;
    (void)bytes;
    free(data);
}

static oly_status read_bytes(void *host, int memory, const void *from, size_t bytes)
{
    (void)memory;
    memcpy(host, from, bytes);
    return OLY_OK;
}

static oly_status write_bytes(int memory, void *to, const void *host, size_t bytes)
{
    (void)memory;
    memcpy(to, host, bytes);
    return OLY_OK;
}

static oly_status copy(int to_memory, void *to, int from_memory, const void *from, size_t bytes)
{
    (void)to_memory;
    (void)from_memory;
    memcpy(to, from, bytes);
    return OLY_OK;
}

const oly_platform oly_platform_cpu = {.name = "cpu",
                                       .device_name = "cpu",
                                       .computes = true,
                                       .host_memory = true,
                                       .one_memory = true,
                                       .devices = devices,
                                       .allocate = allocate,
                                       .release = release,
                                       .read = read_bytes,
                                       .write = write_bytes,
                                       .copy = copy};
