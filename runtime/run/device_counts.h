/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of how the devices of this process have computed since the start: by kernels and libraries of their own, or on the host (detour.h).
 * Written by runtime/run; read by runtime/array (oly_get_device_counts) and tests. */
#ifndef OLY_RUN_DEVICE_COUNTS_H
#define OLY_RUN_DEVICE_COUNTS_H
#include <stdatomic.h>
#include <stdint.h>

typedef struct oly_device_counters {
    _Atomic int64_t launches;         /* of kernels */
    _Atomic int64_t library_products; /* by cuBLASLt */
    _Atomic int64_t epilogues;        /* of these, with a bias (run/cuda/epilogues.h) */
    _Atomic int64_t features_last;    /* convolutions launched with a copy (run/cuda/features_last.h) */
    _Atomic int64_t row_chains;       /* steps that were one kernel, or run by rows (run/row_blocks.h) */
    _Atomic int64_t rows_in_order;    /* of the latter, those whose memory was used otherwise than in the same rows */
    _Atomic int64_t gathered_sums;    /* blocks of rows of which what is looked up was summed in one pass */
    _Atomic int64_t graph_launches;   /* of recorded segments (run/replay.h) */
    _Atomic int64_t graphs;           /* made for these */
    _Atomic int64_t graph_updates;    /* of those made, for other buffers */
    _Atomic int64_t speculated; /* iterations of loops launched before their condition was known (run/speculation.h) */
    _Atomic int64_t graph_iterations;       /* of counted loops, in graphs of several (run/loop_replay.h) */
    _Atomic int64_t conditional_iterations; /* of conditional loops, in graphs that decide themselves */
    _Atomic int64_t on_host;                /* shares of steps, one for each device */
    _Atomic int64_t bytes_on_host;          /* copied for these, in both directions */
} oly_device_counters;
extern oly_device_counters oly_device_counted;

static inline void oly_count(_Atomic int64_t *counter, int64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}
static inline int64_t oly_counted(const _Atomic int64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}
void oly_counts_begin(void); /* at start */
#endif
