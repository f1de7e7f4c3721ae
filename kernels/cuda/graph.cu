/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditions of loops in graphs, which the host never sees: one thread between iterations. A module of its own: the function that sets a
 * condition is the driver's, which must have it to load the module. */
#include "device.h"
#include "graph_task.h"

/* Before the loop: does the first iteration take place? */
OLY_KERNEL(oly_loop_begins, oly_cuda_loop_task)
{
    if (oly_index() != 0)
        return;
    bool more = *task.predicate;
    task.state->count = 0;
    task.state->more = more;
    oly_graph_condition(task.handle, more);
}

/* After an iteration, which may have been computed in vain: those after the end do not count. */
OLY_KERNEL(oly_loop_turns, oly_cuda_loop_task)
{
    if (oly_index() != 0)
        return;
    int32_t count = task.state->count, more = task.state->more;
    if (more) {
        more = *task.predicate;
        count++;
        task.state->count = count;
        task.state->more = more;
    }
    if (task.branch)
        oly_graph_condition(task.branch, more);
    if (task.last)
        oly_graph_condition(task.handle, more && count < task.most);
}
