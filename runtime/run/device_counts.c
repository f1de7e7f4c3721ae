/* SPDX-License-Identifier: BSD-3-Clause */
/* See device_counts.h. */
#include "run/device_counts.h"

oly_device_counters oly_device_counted;

void oly_counts_begin(void)
{
    atomic_store(&oly_device_counted.launches, 0);
    atomic_store(&oly_device_counted.library_products, 0);
    atomic_store(&oly_device_counted.graph_launches, 0);
    atomic_store(&oly_device_counted.graphs, 0);
    atomic_store(&oly_device_counted.graph_updates, 0);
    atomic_store(&oly_device_counted.graph_iterations, 0);
    atomic_store(&oly_device_counted.conditional_iterations, 0);
    atomic_store(&oly_device_counted.on_host, 0);
    atomic_store(&oly_device_counted.bytes_on_host, 0);
}
