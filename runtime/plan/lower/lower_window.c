/* SPDX-License-Identifier: BSD-3-Clause */
/* Lowering of sliding windows: convolutions and windowed reductions. Each device computes a box of the result and
 * needs the elements that the windows of the box cover: its own part and a few elements of its neighbours, read as
 * any operand (a halo exchange). Summed features may be split, and so may the taps of large kernels: then partial
 * results are reduced. */
#include "plan/lower/lower.h"
#include "plan/partition/cut_window.h"
#include "graph/contract.h"
#include "graph/factors.h"
#include <string.h>

/* -- the step ------------------------------------------------------------------------------------------------------ */

static oly_local_operand operand_of(const oly_type *type, const oly_box *b)
{
    oly_local_operand x = {.dtype = type->dtype, .rank = type->rank};
    oly_contiguous_strides(b, x.stride);
    for (int d = 0; d < type->rank; d++) {
        x.size[d] = type->shape[d];
        x.origin[d] = b->lo[d];
        x.extent[d] = b->hi[d] - b->lo[d];
    }
    return x;
}

/* The window of a device that has the taps of box `b`. */
static const oly_sliding_window *window_at(const oly_sliding *s, const oly_box *b)
{
    int first = b->rank - (int)s->w->rank;
    bool all = true;
    for (int d = 0; d < s->w->rank; d++)
        all = all && s->kernel.split[first + d].parts == 1;
    oly_sliding_window *w = all ? NULL : OLY_PLAN_NEW(s->p, oly_sliding_window, 1);
    if (!w)
        return all ? s->w : NULL;
    *w = *s->w;
    for (int d = 0; d < w->rank; d++) {
        w->size[d] = b->hi[first + d] - b->lo[first + d];
        w->lo[d] -= b->lo[first + d] * w->dilation[d];
    }
    return w;
}

static oly_status fill_device(const oly_sliding *s, int device, int slot, oly_local_work *work)
{
    const oly_node *n = s->node;
    oly_planner *p = s->p;
    int position = oly_position_in(p, s->out.mesh, device);
    work->scratch_base = -1;
    if (position < 0)
        return OLY_OK;
    oly_local_operand *operands = OLY_PLAN_NEW(p, oly_local_operand, n->n_in);
    oly_place *in = OLY_PLAN_NEW(p, oly_place, n->n_in);
    OLY_PLAN_CHECK(operands ? in : NULL);
    oly_box out = oly_layout_box(&s->out, position);
    const oly_sliding_window *window = s->w;
    for (int k = 0; k < n->n_in; k++) {
        oly_box b = k ? oly_layout_box(&s->kernel, position) : oly_region_box(&s->seen, n->in[0]->type.shape, position);
        if (k)
            window = window_at(s, &b);
        OLY_PLAN_CHECK(window);
        operands[k] = operand_of(&n->in[k]->type, &b);
        in[k] = s->reading[k].place[device];
        for (int d = 0; d < n->in[k]->type.rank; d++) /* the place's strides are per step of the region */
            operands[k].stride[d] = k ? in[k].stride[d] : in[k].stride[d] / s->seen.dim[d].scale;
    }
    work->task = (oly_local_task){.op = (oly_local_op)oly_ops[n->op].detail,
                                  .n_in = n->n_in,
                                  .in = operands,
                                  .out = operand_of(&n->type, &out),
                                  .window = window};
    work->in = in;
    work->out_base = oly_cell(p->plan, device, slot);
    work->has_work = oly_box_count(&out) > 0;
    return OLY_OK;
}

/* Scratch memory, where devices need some: in *slot, else -1. */
static oly_status give_scratch(oly_sliding *s, oly_local_work *work, int *slot)
{
    oly_planner *p = s->p;
    int scratch = -1;
    for (int d = 0; d < p->plan->n_devices; d++) {
        const size_t bytes = work[d].in ? oly_local_scratch(&work[d].task) : 0;
        if (bytes == 0)
            continue;
        if (scratch < 0) {
            scratch = oly_slot_new(p, NULL, 0);
            OLY_PLAN_CHECK(scratch >= 0 ? work : NULL);
            p->plan->slots[scratch].block = s->f->block;
        }
        oly_slot *room = &p->plan->slots[scratch];
        room->device_bytes[d] = bytes;
        room->bytes = bytes > room->bytes ? bytes : room->bytes;
        work[d].scratch_base = oly_cell(p->plan, d, scratch);
    }
    *slot = scratch;
    return OLY_OK;
}

static oly_status add_step(oly_sliding *s)
{
    oly_planner *p = s->p;
    int slot = oly_value_of(s->f, s->node)->slot, scratch;
    oly_local_work *work = OLY_PLAN_NEW(p, oly_local_work, p->plan->n_devices);
    OLY_PLAN_CHECK(work);
    double total = 0;
    for (int d = 0; d < p->plan->n_devices; d++) {
        OLY_TRY(fill_device(s, d, slot, &work[d]));
        total += work[d].in ? oly_local_work_of(&work[d].task) : 0;
    }
    for (int k = 0; k < s->node->n_in; k++)
        oly_reading_use(p, &s->reading[k]);
    OLY_TRY(give_scratch(s, work, &scratch));
    oly_step *step = oly_step_add(p, s->f->block, OLY_STEP_LOCAL, s->node, oly_ops[s->node->op].name);
    OLY_PLAN_CHECK(step);
    step->local.device = work;
    step->work = total;
    step->replicated = s->summed.n == 0;
    for (int k = 0; k < s->node->n_in; k++)
        step->replicated = step->replicated && !oly_value_of(s->f, s->node->in[k])->waits;
    const oly_choice *choice = oly_value_of(s->f, s->node)->choice;
    if (choice && choice->differs)
        step->detail = oly_choice_text(p, s->node, 1, choice);
    oly_slot_use(p, scratch);
    oly_slot_use(p, slot);
    return OLY_OK;
}

oly_status oly_lower_window(oly_planner *p, oly_frame *f, oly_node *n)
{
    oly_sliding s = {.p = p, .f = f, .node = n, .w = n->params.window};
    oly_sliding_cut(&s);
    OLY_TRY(oly_read_operand(p, f, n->in[0], &s.seen, &s.reading[0]));
    OLY_TRY(oly_constant_in_memory(p, f, s.out.mesh, &s.reading[0]));
    if (n->n_in > 1)
        OLY_TRY(oly_read_array(p, f, n->in[1], &s.kernel, &s.reading[1]));
    OLY_TRY(oly_settle(p, f, n, &s.out));
    OLY_TRY(add_step(&s));
    oly_reduction_rule rule = {OLY_COMBINE_SUM, false};
    return oly_place_reduction(p, f, n, &rule, &s.summed);
}
