/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of loops in graphs: one thread. */
#include "device.h"
#include "graph_task.h"

/* Before an iteration of a counted loop. */
OLY_KERNEL(oly_loop_counts, oly_cuda_counter_task)
{
    if (oly_index() == 0)
        ++*task.counter;
}
