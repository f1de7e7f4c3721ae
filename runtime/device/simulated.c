/* SPDX-License-Identifier: BSD-3-Clause */
/* The platform "simulated": the devices of a machine that does not exist (core/simulate.h). Buffers have no memory,
 * their data is NULL: writes have no effect, and reads are refused. See platform.h. */
#include "device/platform.h"
#include "core/simulate.h"

static int devices(void)
{
    return oly_simulation_get()->devices;
}

static bool allocate(int memory, size_t bytes, void **data)
{
    (void)memory;
    (void)bytes;
    *data = NULL;
    return true;
}

static void release(int memory, void *data, size_t bytes)
{
    (void)memory;
    (void)data;
    (void)bytes;
}

static oly_status read_bytes(void *host, int memory, const void *from, size_t bytes)
{
    (void)host;
    (void)memory;
    (void)from;
    (void)bytes;
    return oly_simulation_has_no_values("a buffer");
}

static oly_status write_bytes(int memory, void *to, const void *host, size_t bytes)
{
    (void)memory;
    (void)to;
    (void)host;
    (void)bytes;
    return OLY_OK;
}

static oly_status copy(int to_memory, void *to, int from_memory, const void *from, size_t bytes)
{
    (void)to_memory;
    (void)to;
    (void)from_memory;
    (void)from;
    (void)bytes;
    return OLY_OK;
}

const oly_platform oly_platform_simulated = {.name = "simulated",
                                             .device_name = "cpu",
                                             .computes = false,
                                             .host_memory = true,
                                             .one_memory = true,
                                             .devices = devices,
                                             .allocate = allocate,
                                             .release = release,
                                             .read = read_bytes,
                                             .write = write_bytes,
                                             .copy = copy};
