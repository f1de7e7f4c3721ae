/* SPDX-License-Identifier: BSD-3-Clause */
/* Padded arrays that row chains read in their operand. See row_pads.h; what writes the step is plan/lower/lower_pad.c: a copy of the
 * operand, then copies of one element to the boxes outside it; together they are the whole array. */
#include "run/cuda/row_pads.h"
#include "graph/graph.h"
#include "graph/ops.h"
#include <string.h>

bool oly_cuda_is_own_copy(const oly_plan *plan, const oly_step *s)
{
    if (s->kind != OLY_STEP_MOVE || s->exchange || s->second || s->awaited || s->starts || s->move.n_arrivals > 0 ||
        s->move.n_departures > 0)
        return false;
    for (int k = 0; k < s->move.n_copies; k++) {
        const oly_copy_work *c = &s->move.copies[k];
        if (oly_cell_device(plan, c->to.base) != oly_cell_device(plan, c->from.base) || !oly_cuda_has_copy(&c->task))
            return false;
    }
    return true;
}

bool oly_cuda_has_copies(const oly_plan *plan, const oly_step *s, int device)
{
    for (int k = 0; k < s->move.n_copies; k++)
        if (oly_cell_device(plan, s->move.copies[k].to.base) == device)
            return true;
    return false;
}

bool oly_cuda_is_row_pad(const oly_plan *plan, const oly_block *b, const oly_step *pad, int last)
{
    if (!oly_cuda_is_own_copy(plan, pad) || !pad->node || oly_ops[pad->node->op].lowering != OLY_LOWER_PAD ||
        pad->out_slot < 0)
        return false;
    const oly_slot *slot = &plan->slots[pad->out_slot];
    return slot->kind == OLY_SLOT_SCRATCH && !slot->claimed && !slot->shared && slot->block == b &&
           slot->first <= pad->number && slot->last <= last;
}

/* The box that a copy writes; false: not one of a dense array with these strides. */
static bool box_of(const oly_copy_work *c, const oly_cuda_row_pad *p, int64_t *begin)
{
    int64_t rest = c->to.offset / (int64_t)c->task.element_bytes;
    if (c->task.rank != p->rank)
        return false;
    for (int d = 0; d < p->rank; d++) {
        if (c->task.extent[d] < 1 || (c->task.extent[d] > 1 && c->task.to_stride[d] != p->stride[d]))
            return false;
        begin[d] = rest / p->stride[d];
        rest %= p->stride[d];
    }
    return true;
}

/* The device's first copy from number k on; NULL: there is none. *at: its number. */
static const oly_copy_work *copy_of(const oly_plan *plan, const oly_step *pad, int device, int k, int *at)
{
    for (*at = k; *at < pad->move.n_copies; ++*at)
        if (oly_cell_device(plan, pad->move.copies[*at].to.base) == device)
            return &pad->move.copies[*at];
    return NULL;
}

bool oly_cuda_row_pad_of(char *(*address)(void *const *base, int cell, int64_t offset), void *const *base,
                         const oly_plan *plan, const oly_step *pad, int device, oly_cuda_row_pad *made)
{
    int64_t begin[OLY_MAX_RANK], filled = 0, copied = 1;
    int at;
    const oly_copy_work *one = copy_of(plan, pad, device, 0, &at), *first = copy_of(plan, pad, device, at + 1, &at);
    if (!one || !first || first->task.rank < 1)
        return false;
    *made = (oly_cuda_row_pad){.to = address(base, one->to.base, 0),
                               .from = address(base, one->from.base, one->from.offset),
                               .value = address(base, first->from.base, first->from.offset),
                               .dtype = (uint8_t)pad->node->type.dtype,
                               .rank = first->task.rank,
                               .n = 1};
    memcpy(made->stride, first->task.to_stride, sizeof made->stride);
    if (oly_dtype_size(pad->node->type.dtype) != one->task.element_bytes || !box_of(one, made, made->begin))
        return false;
    memcpy(made->count, one->task.extent, sizeof made->count);
    memcpy(made->from_stride, one->task.from_stride, sizeof made->from_stride);
    for (int d = 0; d < made->rank; d++) {
        made->extent[d] = made->begin[d] + made->count[d];
        copied *= made->count[d];
    }
    for (const oly_copy_work *c = first; c; c = copy_of(plan, pad, device, at + 1, &at)) {
        int64_t n = 1;
        if (c->to.base != one->to.base || c->from.base != first->from.base || c->from.offset != first->from.offset ||
            !box_of(c, made, begin))
            return false;
        for (int d = 0; d < made->rank; d++) {
            int64_t end = begin[d] + c->task.extent[d];
            if (c->task.extent[d] > 1 && c->task.from_stride[d] != 0)
                return false;
            n *= c->task.extent[d];
            made->extent[d] = end > made->extent[d] ? end : made->extent[d];
        }
        filled += n;
    }
    for (int d = 0; d < made->rank; d++) {
        made->n *= made->extent[d];
        if (made->stride[d] < 1 || (d > 0 && made->stride[d - 1] != made->stride[d] * made->extent[d]))
            return false;
    }
    return made->n == filled + copied;
}
