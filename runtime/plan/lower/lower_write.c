/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that write operands into parts of their result: updates and concatenations. */
#include "plan/lower/lower.h"
#include "core/optimisation.h"
#include <string.h>

static bool is_concatenation(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_WRITE && oly_ops[n->op].detail == OLY_WRITE_ALL;
}

static const int64_t zeros[OLY_MAX_RANK], ones[OLY_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* What an update keeps of its operand: below and above the replaced part in each dimension, within it in the
 * dimensions before. If the replaced part has gaps, everything. */
static int kept_boxes(const oly_node *n, oly_box *boxes)
{
    oly_box rest = {.rank = n->type.rank};
    int n_boxes = 0;
    memcpy(rest.hi, n->type.shape, sizeof rest.hi);
    for (int d = 0; d < rest.rank; d++)
        if (n->params.step[d] != 1 && n->in[1]->type.shape[d] > 1) {
            boxes[0] = rest;
            return 1;
        }
    for (int d = 0; d < rest.rank; d++) {
        int64_t begin = n->params.start[d], end = begin + n->in[1]->type.shape[d];
        boxes[n_boxes] = boxes[n_boxes + 1] = rest;
        boxes[n_boxes++].hi[d] = begin;
        boxes[n_boxes++].lo[d] = end;
        rest.lo[d] = begin;
        rest.hi[d] = end;
    }
    return n_boxes;
}

static oly_status write_kept(oly_planner *p, oly_frame *f, const oly_node *n, int slot, const oly_layout *l)
{
    oly_box boxes[2 * OLY_MAX_RANK];
    int n_boxes = kept_boxes(n, boxes);
    for (int k = 0; k < n_boxes; k++)
        OLY_TRY(oly_write_box(p, f, n->in[0], n, slot, l, zeros, ones, &boxes[k]));
    return OLY_OK;
}

static oly_status lower_update(oly_planner *p, oly_frame *f, oly_node *n)
{
    oly_layout l = oly_written_layout(p, f, n);
    oly_value *v = oly_value_of(f, n);
    bool in_place;
    OLY_TRY(oly_reduce_now(p, f, n->in[0]));
    OLY_TRY(oly_may_overwrite(p, f, n, &l, &in_place));
    if (in_place) {
        OLY_TRY(oly_set_layout(p, v, &l));
        v->block = f->block;
        v->slot = oly_value_of(f, n->in[0])->slot;
    } else {
        OLY_TRY(oly_settle(p, f, n, &l));
        OLY_TRY(write_kept(p, f, n, v->slot, &l));
    }
    return oly_write_part(p, f, n->in[1], n, v->slot, &l, n->params.start, n->params.step);
}

/* A concatenation is placed along its largest operand; an output has balanced blocks. */
static oly_layout concatenated_layout(oly_planner *p, oly_frame *f, const oly_node *n)
{
    oly_layout l = oly_node_layout(p, f, n), natural;
    int d = n->params.dimension;
    int64_t offset = 0, largest = -1;
    if (oly_is_result(f, n))
        return l;
    for (int k = 0; k < n->n_in; k++) {
        if (n->in[k]->type.shape[d] > largest && oly_natural_layout(f, n->in[k], &natural) && natural.mesh == p->mesh) {
            bool same = true;
            for (int e = 0; e < l.rank; e++)
                same = same && oly_axis_list_equal(&natural.split[e].axes, &l.split[e].axes);
            for (int e = 0; e < l.rank && same; e++)
                l.split[e] = e == d ? oly_split_embedded(&natural.split[e], offset) : natural.split[e];
            largest = same ? n->in[k]->type.shape[d] : largest;
        }
        offset += n->in[k]->type.shape[d];
    }
    return l;
}

/* What a concatenation with this layout reads of its operands. */
static int operands_read(const oly_node *n, const oly_layout *whole, oly_node **nodes, oly_region *regions)
{
    int64_t at = 0;
    for (int j = 0; j < n->n_in; j++) {
        oly_node *in = n->in[j];
        oly_layout l = {.mesh = whole->mesh, .rank = whole->rank};
        for (int d = 0; d < l.rank; d++) {
            l.shape[d] = in->type.shape[d];
            l.split[d] = oly_split_sliced(&whole->split[d], d == n->params.dimension ? at : 0, 1);
        }
        nodes[j] = in;
        regions[j] = oly_region_of_layout(&l);
        at += in->type.shape[n->params.dimension];
    }
    return n->n_in;
}

void oly_write_reads(oly_planner *p, oly_frame *f, const oly_node *n, int *n_read, oly_node **nodes,
                     oly_region *regions)
{
    int dimension;
    int64_t start;
    if (!is_concatenation(n) || oly_is_cyclic_shift(n, &dimension, &start))
        return;
    oly_layout whole = concatenated_layout(p, f, n);
    *n_read += operands_read(n, &whole, nodes + *n_read, regions + *n_read);
}

static oly_status lower_concatenate(oly_planner *p, oly_frame *f, oly_node *n)
{
    oly_layout l = concatenated_layout(p, f, n);
    int64_t start[OLY_MAX_RANK] = {0};
    bool done = oly_value_of(f, n)->rolled;
    if (!done)
        OLY_TRY(oly_lower_cyclic_shift(p, f, n, &l, &done));
    if (done)
        return OLY_OK;
    OLY_TRY(oly_settle(p, f, n, &l));
    OLY_TRY(oly_reserve_reads(p, n->n_in));
    OLY_TRY(oly_gather_reads(p, f, operands_read(n, &l, p->read, p->read_regions), p->read, p->read_regions));
    for (int k = 0; k < n->n_in; k++) {
        OLY_TRY(oly_write_part(p, f, n->in[k], n, oly_value_of(f, n)->slot, &l, start, ones));
        start[n->params.dimension] += n->in[k]->type.shape[n->params.dimension];
    }
    return OLY_OK;
}

oly_status oly_lower_write(oly_planner *p, oly_frame *f, oly_node *n)
{
    return is_concatenation(n) ? lower_concatenate(p, f, n) : lower_update(p, f, n);
}
