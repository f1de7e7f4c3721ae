/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums over all GPUs of the job by NCCL's own all-reduce, where OLYMPUS_NCCL_ALLREDUCE=1 asks for it: fewer bytes and launches for each than the
 * plan's own steps, in an order of NCCL's choice. Only sums that are as long as those that are reduced slice by slice; shorter ones
 * keep the order of the mesh. Called by reduction_steps.c. */
#include "plan/reduce/reduction_steps.h"
#include <string.h>

enum { SHORTEST = 1 << 15 };

/* Do all devices of the job, each once, add over these axes? The same on every process. */
static bool is_over_all(const oly_planner *p, const oly_axis_list *axes)
{
    oly_mesh mesh = p->mesh;
    int all = oly_mesh_total_devices();
    return !mesh->everywhere && mesh->n_devices == all && oly_axis_list_parts(mesh, axes) == all &&
           oly_mesh_device_id(mesh, 0) < all; /* CPU devices beside GPUs have higher ids */
}

static int64_t elements_of(const oly_layout *l)
{
    oly_box b = oly_layout_box(l, 0);
    return oly_box_count(&b);
}

bool oly_reduces_by_library(const oly_planner *p, const oly_axis_list *axes, const oly_reduction_item *item)
{
    oly_dtype dtype = item->node->type.dtype;
    return item->rule.combiner == OLY_COMBINE_SUM && oly_transport_adds(dtype) && is_over_all(p, axes) &&
           elements_of(item->layout) * (int64_t)oly_dtype_size(dtype) > SHORTEST;
}

/* The buffers of a slot on this process's devices, in their order. */
static int *cells_of(oly_planner *p, int slot)
{
    int *cells = OLY_PLAN_NEW(p, int, p->plan->n_devices + 1);
    for (int d = 0; cells && d < p->plan->n_devices; d++)
        cells[p->plan->devices[d]] = oly_cell(p->plan, d, slot);
    return cells;
}

oly_status oly_reduce_by_library(oly_planner *p, oly_block *b, const oly_axis_list *axes, int n_items,
                                 const oly_reduction_item *items)
{
    oly_summed values[OLY_REDUCTION_TOGETHER];
    oly_exchange *exchange;
    oly_dtype dtype = items[0].node->type.dtype;
    int64_t element = (int64_t)oly_dtype_size(dtype), bytes = 0;
    int members = p->mesh->n_devices;
    for (int k = 0; k < n_items; k++) {
        values[k] = (oly_summed){.count = elements_of(items[k].layout),
                                 .from = cells_of(p, items[k].from),
                                 .to = cells_of(p, items[k].slot)};
        OLY_PLAN_CHECK(values[k].from ? values[k].to : NULL);
        bytes += values[k].count * element;
    }
    OLY_TRY(oly_exchange_make_sum(dtype, p->plan->n_devices, n_items, values, &exchange));
    oly_step *step = oly_step_add(p, b, OLY_STEP_MOVE, items[0].node, "all-reduce");
    if (!step) {
        oly_exchange_free(exchange);
        return oly_out_of_memory(0, "a plan");
    }
    step->exchange = exchange;
    step->out_slot = -1;
    step->over = *axes;
    step->members = members;
    step->messages = 2 * (members - 1); /* in a ring */
    step->bytes = 2 * (bytes - bytes / members);
    step->wire = step->bytes * p->plan->n_devices;
    step->detail = oly_plan_say(p, "sum over %d devices by NCCL, in an order of its own", members);
    for (int k = 0; k < n_items; k++) {
        oly_slot_use(p, items[k].from);
        oly_slot_use(p, items[k].slot);
    }
    return OLY_OK;
}
