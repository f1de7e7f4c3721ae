/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_get_device_counts: what devices have computed with kernels of their own, and what the host has. */
#include "array/function.h"
#include "device/platform.h"
#include "run/device_counts.h"

oly_status oly_get_device_counts(oly_device_counts *counts)
{
    OLY_ENTER(OLY_STATE);
    if (!counts)
        return oly_raise(oly_fail(OLY_INVALID, "the address for the counts of devices is NULL"));
    *counts = (oly_device_counts){.launches = oly_counted(&oly_device_counted.launches),
                                  .library_products = oly_counted(&oly_device_counted.library_products),
                                  .graph_launches = oly_counted(&oly_device_counted.graph_launches),
                                  .graphs = oly_counted(&oly_device_counted.graphs),
                                  .graph_updates = oly_counted(&oly_device_counted.graph_updates),
                                  .speculated = oly_counted(&oly_device_counted.speculated),
                                  .graph_iterations = oly_counted(&oly_device_counted.graph_iterations),
                                  .conditional_iterations = oly_counted(&oly_device_counted.conditional_iterations),
                                  .on_host = oly_counted(&oly_device_counted.on_host),
                                  .bytes_on_host = oly_counted(&oly_device_counted.bytes_on_host)};
    if (oly_platform_get()->memory_use)
        oly_platform_get()->memory_use(&counts->memory, &counts->memory_peak, &counts->memory_limit);
    return OLY_OK;
}
