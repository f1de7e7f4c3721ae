/* SPDX-License-Identifier: BSD-3-Clause */
/* The structs that the kernels of graph.cu and counter.cu take, filled by runtime/run/cuda/loop_graphs.c. As those of tasks.h. */
#ifndef OLY_CUDA_GRAPH_TASK_H
#define OLY_CUDA_GRAPH_TASK_H
#include <stdbool.h>
#include <stdint.h>

/* Of a loop in a graph, in the device's memory: iterations of this launch that took place, and whether another follows. */
typedef struct oly_cuda_loop_state {
    int32_t count, more;
} oly_cuda_loop_state;

typedef struct oly_cuda_loop_task {
    uint64_t handle; /* of the loop's condition */
    uint64_t branch; /* of that of the next iteration in the same body; 0: it needs none, or there is none */
    oly_cuda_loop_state *state;
    const bool *predicate; /* of the iteration that has been computed */
    int32_t most;          /* iterations after which the host is asked, whatever the predicate */
    int32_t last;          /* 1: may be the last iteration of the body, after which the graph goes on or ends */
} oly_cuda_loop_task;

typedef struct oly_cuda_counter_task {
    int32_t *counter;
} oly_cuda_counter_task;
#endif
