/* SPDX-License-Identifier: BSD-3-Clause */
/* Convolutions that write their result with the features last. See features_last.h. */
#include "run/cuda/features_last.h"
#include "core/error.h"
#include "core/optimisation.h"
#include "device/cuda/gpus.h"
#include "run/cuda/steps.h"
#include "run/device_counts.h"
#include "run/device_order.h"
#include "run/prepare_cpu.h"
#include "run/prepared_steps.h"

/* -- the pattern ------------------------------------------------------------------------------------------------------------------- */

/* The dimension along which neighbours are `stride` apart in the source; -1: none. */
static int dimension_of(const oly_copy_task *t, int64_t stride)
{
    for (int d = 0; d < t->rank; d++)
        if (t->extent[d] != 1 && t->from_stride[d] == stride)
            return d;
    return -1;
}

/* Is [batch][features][places], whole, copied to [batch][places][features]? */
static bool moves_features(const oly_local_operand *x, const oly_copy_task *t)
{
    int64_t features = x->extent[1], places = 1, dense = 1, n = 1;
    for (int d = 2; d < x->rank; d++)
        places *= x->extent[d];
    int64_t all = x->extent[0] * features * places;
    if (features < 2 || places < 2 || all < 1 || t->element_bytes != oly_dtype_size(x->dtype))
        return false;
    while (dense < all) { /* from the source's last dimension on: none is left out, none is read twice */
        int d = dimension_of(t, dense);
        int64_t end = dense < places ? places : dense < places * features ? places * features : all;
        int64_t step = dense < places ? dense * features : dense < places * features ? dense / places : dense;
        if (d < 0 || t->to_stride[d] != step || dense * t->extent[d] > end)
            return false;
        dense *= t->extent[d];
    }
    for (int d = 0; d < t->rank; d++)
        n *= t->extent[d];
    return n == all;
}

static bool fits(const oly_plan *plan, const oly_block *b, const oly_step *convolution, const oly_step *copy,
                 const oly_copy_work *c)
{
    int device = oly_cell_device(plan, c->to.base);
    const oly_local_work *w = &convolution->local.device[device];
    /* scratch of a convolution is for CPUs */
    if (!w->has_work || w->task.op != OLY_LOCAL_CONVOLVE || c->from.base != w->out_base || c->from.offset != 0 ||
        !oly_cuda_has_local_step(convolution, device) || !oly_cuda_has_copy(&c->task) ||
        plan->devices[device] >= oly_cuda_device_count())
        return false;
    const int cells[] = {w->in[0].base, w->in[1].base, w->out_base};
    for (int k = 0; k < 3; k++)
        if (cells[k] < 0 || oly_cell_device(plan, cells[k]) != device)
            return false;
    const oly_slot *s = &plan->slots[oly_cell_slot(plan, w->out_base)];
    return s->kind == OLY_SLOT_SCRATCH && !s->claimed && !s->shared && s->block == b && s->last == copy->number &&
           moves_features(&w->task.out, &c->task);
}

/* On every device that computes: one copy of its result. */
static bool is_pair(const oly_plan *plan, const oly_block *b, const oly_step *convolution, const oly_step *copy)
{
    oly_device_set copying = 0;
    int working = 0;
    if (convolution->kind != OLY_STEP_LOCAL || convolution->exchange || convolution->second || convolution->awaited ||
        copy->kind != OLY_STEP_MOVE || copy->exchange || copy->second || copy->awaited || copy->starts)
        return false;
    for (int d = 0; d < plan->n_devices; d++)
        working += convolution->local.device[d].has_work;
    for (int k = 0; k < copy->move.n_copies; k++) {
        const oly_copy_work *c = &copy->move.copies[k];
        oly_device_set to = oly_one_device(oly_cell_device(plan, c->to.base));
        if (!fits(plan, b, convolution, copy, c) || (copying & to))
            return false;
        copying |= to;
    }
    return working > 0 && working == copy->move.n_copies;
}

/* -- plans ------------------------------------------------------------------------------------------------------------------------- */

static oly_status find_in(const oly_block *b, void *context)
{
    oly_plan *plan = context;
    for (int k = 0; k < b->n_steps; k++) {
        oly_step *s = &b->steps[k];
        if (k + 1 < b->n_steps && is_pair(plan, b, s, s + 1)) {
            oly_prepared *first = oly_prepared_own(plan, s), *second = oly_prepared_own(plan, s + 1);
            if (!first || !second)
                return oly_out_of_memory(sizeof *first, "a program");
            first->with_next = true;
            second->convolution = s;
        }
    }
    return OLY_OK;
}

oly_status oly_cuda_find_features_last(oly_plan *plan)
{
    bool on = oly_enabled(OLY_OPTIMISATION_PRODUCT_EPILOGUES) && oly_enabled(OLY_OPTIMISATION_CONVOLUTION_TILES);
    return on ? oly_each_block(plan->main, find_in, plan) : OLY_OK;
}

/* -- launches ---------------------------------------------------------------------------------------------------------------------- */

oly_status oly_cuda_launch_features_last(const oly_cuda_launcher *l, const oly_plan *plan, void *const *base,
                                         const oly_step *convolution, const oly_copy_work *copy, bool *launched)
{
    const oly_local_work *w = &convolution->local.device[oly_cell_device(plan, copy->to.base)];
    const void *in[2];
    *launched = false;
    for (int k = 0; k < 2; k++) {
        if (oly_cells_overlap(plan, base, w->in[k].base,
                              copy->to.base)) /* the copy does not read it: it may have its memory */
            return OLY_OK;
        in[k] = (char *)base[w->in[k].base] + w->in[k].offset;
    }
    OLY_TRY(oly_cuda_convolve_last(l, &w->task, in, (char *)base[copy->to.base] + copy->to.offset, launched));
    oly_count(&oly_device_counted.features_last, *launched);
    return OLY_OK;
}
