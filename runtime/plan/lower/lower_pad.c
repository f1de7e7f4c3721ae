/* SPDX-License-Identifier: BSD-3-Clause */
/* Lowering of padding: writes the padding value to the margins of each device's part (to all of it, if there are
 * gaps between elements), then copies the operand into it. The result keeps the operand's cuts, so that only
 * elements pushed across a cut move; if that makes the parts too uneven, or the result is an output, it gets
 * balanced blocks. Called by lower.c. */
#include "plan/lower/lower.h"

/* Does the padding, or what is removed, at one end exceed a balanced part? */
static bool too_uneven(const oly_node *n, int d, int parts)
{
    const oly_params *p = &n->params;
    int64_t covered = p->step[d] * (n->in[0]->type.shape[d] - 1) + 1, after = p->shape[d] - p->start[d] - covered;
    int64_t share = p->shape[d] / parts + 1;
    return p->start[d] > share || after > share || -p->start[d] > share || -after > share;
}

static oly_layout padded_layout(oly_planner *p, oly_frame *f, const oly_node *n)
{
    oly_layout l = oly_node_layout(p, f, n), in;
    if (oly_is_result(f, n) || !oly_natural_layout(f, n->in[0], &in) || in.mesh != p->mesh)
        return l;
    for (int d = 0; d < l.rank; d++)
        if (l.split[d].parts > 1 && oly_axis_list_equal(&in.split[d].axes, &l.split[d].axes) &&
            !too_uneven(n, d, l.split[d].parts))
            l.split[d] = oly_split_spread(&in.split[d], n->params.start[d], n->params.step[d]);
    return l;
}

/* -- the padding value --------------------------------------------------------------------------------------------- */

typedef struct filler {
    oly_planner *p;
    oly_reading value;
    size_t element;
    int slot, n, capacity;
    oly_copy_work *copies;
    double work;
} filler;

static void fill_box(filler *w, int device, const oly_box *holds, const int64_t *lo, const int64_t *hi)
{
    oly_copy_work *c = &w->copies[w->n];
    *c = (oly_copy_work){.from = w->value.place[device], .to.base = oly_cell(w->p->plan, device, w->slot)};
    c->task = (oly_copy_task){.element_bytes = w->element, .rank = holds->rank};
    int64_t stride = 1, count = 1;
    for (int d = holds->rank - 1; d >= 0; d--) {
        c->task.extent[d] = hi[d] - lo[d];
        c->task.to_stride[d] = c->to.stride[d] = stride;
        c->to.offset += (lo[d] - holds->lo[d]) * stride * (int64_t)w->element;
        stride *= holds->hi[d] - holds->lo[d];
        count *= hi[d] - lo[d];
    }
    if (count == 0)
        return;
    w->work += (double)count;
    w->n++;
}

static int64_t clamped(int64_t i, int64_t lo, int64_t hi)
{
    return i < lo ? lo : i > hi ? hi : i;
}

/* Fills the part of box b outside the operand: below and above it in each dimension, within it in the dimensions
 * before. */
static void fill_margins(filler *w, const oly_node *n, int device, const oly_box *b)
{
    int64_t lo[OLY_MAX_RANK], hi[OLY_MAX_RANK], begin[OLY_MAX_RANK] = {0}, end[OLY_MAX_RANK] = {0};
    bool gaps = false, empty = false;
    for (int d = 0; d < b->rank; d++) {
        int64_t extent = n->in[0]->type.shape[d];
        begin[d] = clamped(n->params.start[d], b->lo[d], b->hi[d]);
        end[d] = clamped(n->params.start[d] + n->params.step[d] * (extent - 1) + 1, begin[d], b->hi[d]);
        gaps = gaps || (n->params.step[d] > 1 && extent > 1);
        empty = empty || extent == 0 || begin[d] == end[d];
        lo[d] = b->lo[d];
        hi[d] = b->hi[d];
    }
    if (gaps || empty) {
        fill_box(w, device, b, lo, hi);
        return;
    }
    for (int d = 0; d < b->rank; d++) {
        hi[d] = begin[d];
        fill_box(w, device, b, lo, hi);
        lo[d] = end[d];
        hi[d] = b->hi[d];
        fill_box(w, device, b, lo, hi);
        lo[d] = begin[d];
        hi[d] = end[d];
    }
}

static oly_status fill_padding(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *l, int slot)
{
    filler w = {.p = p, .element = oly_dtype_size(n->type.dtype), .slot = slot};
    oly_region scalar = {.mesh = l->mesh};
    w.copies = OLY_PLAN_NEW(p, oly_copy_work, (size_t)p->plan->n_devices * (size_t)(2 * l->rank + 1));
    OLY_PLAN_CHECK(w.copies);
    OLY_TRY(oly_read_operand(p, f, n->in[1], &scalar, &w.value));
    OLY_TRY(oly_constant_in_memory(p, f, l->mesh, &w.value));
    for (int d = 0; d < p->plan->n_devices; d++) {
        int position = oly_position_in(p, l->mesh, d);
        if (position < 0)
            continue;
        oly_box b = oly_layout_box(l, position);
        if (oly_box_count(&b) > 0)
            fill_margins(&w, n, d, &b);
    }
    oly_reading_use(p, &w.value);
    oly_step *s = oly_step_add(p, f->block, OLY_STEP_MOVE, n, "fill");
    OLY_PLAN_CHECK(s);
    s->work = w.work;
    s->out_slot = slot;
    s->boxes = true;
    s->move.n_copies = w.n;
    s->move.copies = w.copies;
    oly_slot_use(p, slot);
    return OLY_OK;
}

/* Does the operand cover the whole result? Even a single element of the result may be in a gap. */
static bool nothing_to_fill(const oly_node *n)
{
    for (int d = 0; d < n->type.rank; d++) {
        int64_t extent = n->in[0]->type.shape[d];
        if (n->params.start[d] > 0 || (n->params.step[d] > 1 && extent > 1) ||
            n->params.start[d] + (extent - 1) * n->params.step[d] + 1 < n->type.shape[d])
            return false;
    }
    return true;
}

void oly_pad_reads(oly_planner *p, oly_frame *f, const oly_node *n, int *n_read, oly_node **nodes, oly_region *regions)
{
    if (oly_ops[n->op].lowering != OLY_LOWER_PAD)
        return;
    oly_layout whole = padded_layout(p, f, n), l = {.mesh = whole.mesh, .rank = whole.rank};
    for (int d = 0; d < l.rank; d++) {
        if (n->params.step[d] > 1 || n->params.start[d] < 0)
            return;
        l.shape[d] = n->in[0]->type.shape[d];
        l.split[d] = oly_split_sliced(&whole.split[d], n->params.start[d], 1);
    }
    nodes[*n_read] = n->in[0];
    regions[(*n_read)++] = oly_region_of_layout(&l);
}

oly_status oly_lower_pad(oly_planner *p, oly_frame *f, oly_node *n)
{
    oly_layout l = padded_layout(p, f, n);
    OLY_TRY(oly_settle(p, f, n, &l));
    int slot = oly_value_of(f, n)->slot;
    if (!nothing_to_fill(n))
        OLY_TRY(fill_padding(p, f, n, &l, slot));
    return oly_write_part(p, f, n->in[0], n, slot, &l, n->params.start, n->params.step);
}
