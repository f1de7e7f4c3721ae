/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of how the devices of this process have computed since the start: by kernels and libraries of their own, or on the host (detour.h).
 * Written by runtime/run; read by runtime/array (oly_device_counts_now) and tests. */
#ifndef OLY_RUN_DEVICE_COUNTS_H
#define OLY_RUN_DEVICE_COUNTS_H
#include <stdatomic.h>
#include <stdint.h>

typedef struct oly_device_counters {
    _Atomic int64_t launches;         /* of kernels */
    _Atomic int64_t library_products; /* by cuBLASLt */
    _Atomic int64_t on_host;          /* shares of steps, one for each device */
    _Atomic int64_t bytes_to_host;    /* copied for these, in both directions */
} oly_device_counters;
extern oly_device_counters oly_device_counted;

static inline void oly_count(_Atomic int64_t *counter, int64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}
#endif
