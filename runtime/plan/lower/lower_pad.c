/* SPDX-License-Identifier: BSD-3-Clause */
/* Lowering of padding: copies the operand into each device's part and, in the same step, the padding value around it and between its
 * elements. The result keeps the operand's cuts, so that only elements pushed across a cut move; if that makes the parts too uneven, or the
 * result is an output, it gets balanced blocks. Called by lower.c. */
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
    int slot, n;
    oly_copy_work *copies;
    double work;
} filler;

/* Elements of a dimension: `extent` of them from `first` on, `step` apart, each with `beside` - 1 ones after it. */
typedef struct lattice {
    int64_t first, extent, step, beside;
} lattice;

static lattice range(int64_t lo, int64_t hi)
{
    return (lattice){lo, hi - lo, 1, 1};
}

static void add_dimension(oly_copy_work *c, int64_t extent, int64_t stride)
{
    c->task.extent[c->task.rank] = extent;
    c->task.to_stride[c->task.rank] = c->to.stride[c->task.rank] = stride;
    c->task.rank++;
}

static void fill_part(filler *w, int device, const oly_box *holds, const lattice *part)
{
    oly_copy_work *c = &w->copies[w->n];
    int64_t stride[OLY_MAX_RANK], count = 1;
    for (int64_t s = 1, d = holds->rank - 1; d >= 0; d--) {
        stride[d] = s;
        s *= holds->hi[d] - holds->lo[d];
        count *= part[d].extent * part[d].beside;
    }
    if (count == 0)
        return;
    *c = (oly_copy_work){.from = w->value.place[device], .to.base = oly_cell(w->p->plan, device, w->slot)};
    c->task = (oly_copy_task){.element_bytes = w->element};
    for (int d = 0; d < holds->rank; d++) {
        c->to.offset += (part[d].first - holds->lo[d]) * stride[d] * (int64_t)w->element;
        add_dimension(c, part[d].extent, part[d].step * stride[d]);
        if (part[d].beside > 1)
            add_dimension(c, part[d].beside, stride[d]);
    }
    w->work += (double)count;
    w->n++;
}

/* Where the operand's elements are in the device's box b, in dimension d. */
static lattice elements_in(const oly_node *n, const oly_box *b, int d)
{
    int64_t start = n->params.start[d], step = n->params.step[d], extent = n->in[0]->type.shape[d];
    int64_t before = b->lo[d] <= start ? 0 : (b->lo[d] - start + step - 1) / step;
    int64_t end = b->hi[d] <= start ? 0 : (b->hi[d] - start + step - 1) / step;
    end = end > extent ? extent : end;
    return (lattice){start + before * step, end > before ? end - before : 0, step, 1};
}

/* Fills the part of box b outside the operand: below and above it in each dimension, and between its elements, at its elements in the
 * dimensions before. */
static void fill_margins(filler *w, const oly_node *n, int device, const oly_box *b, bool all)
{
    lattice part[OLY_MAX_RANK], in[OLY_MAX_RANK];
    for (int d = 0; d < b->rank; d++) {
        part[d] = range(b->lo[d], b->hi[d]);
        in[d] = elements_in(n, b, d);
        all = all || in[d].extent == 0;
    }
    if (all)
        fill_part(w, device, b, part);
    for (int d = 0; d < b->rank && !all; d++) {
        int64_t end = in[d].first + (in[d].extent - 1) * in[d].step + 1;
        part[d] = range(b->lo[d], in[d].first);
        fill_part(w, device, b, part);
        part[d] = range(end, b->hi[d]);
        fill_part(w, device, b, part);
        part[d] = (lattice){in[d].first + 1, in[d].extent - 1, in[d].step, in[d].step - 1};
        fill_part(w, device, b, part);
        part[d] = in[d];
    }
}

/* Are there as many dimensions as a copy can have, if it has another one along the gaps between elements? */
static bool has_room(const oly_node *n)
{
    int rank = n->type.rank;
    for (int d = 0; d < n->type.rank; d++)
        rank += n->params.step[d] > 2;
    return rank <= OLY_MAX_RANK;
}

/* all: also where the operand is copied afterwards. */
static oly_status fill_padding(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *l, int slot,
                               const oly_reading *value, bool all)
{
    filler w = {.p = p, .value = *value, .element = oly_dtype_size(n->type.dtype), .slot = slot};
    w.copies = OLY_PLAN_NEW(p, oly_copy_work, (size_t)p->plan->n_devices * (size_t)(3 * l->rank + 1));
    OLY_PLAN_CHECK(w.copies);
    for (int d = 0; d < p->plan->n_devices; d++) {
        int position = oly_position_in(p, l->mesh, d);
        if (position < 0)
            continue;
        oly_box b = oly_layout_box(l, position);
        if (oly_box_count(&b) > 0)
            fill_margins(&w, n, d, &b, all);
    }
    return oly_write_constant(p, f, n, slot, value, all, w.n, w.copies, w.work);
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
    oly_region scalar = {.mesh = l.mesh};
    oly_reading value = {0};
    bool fills = !nothing_to_fill(n), first = fills && !has_room(n);
    OLY_TRY(oly_settle(p, f, n, &l));
    int slot = oly_value_of(f, n)->slot;
    if (fills) {
        OLY_TRY(oly_read_operand(p, f, n->in[1], &scalar, &value));
        OLY_TRY(oly_constant_in_memory(p, f, l.mesh, &value));
    }
    if (first)
        OLY_TRY(fill_padding(p, f, n, &l, slot, &value, true));
    OLY_TRY(oly_write_part(p, f, n->in[0], n, slot, &l, n->params.start, n->params.step));
    return fills && !first ? fill_padding(p, f, n, &l, slot, &value, false) : OLY_OK;
}
