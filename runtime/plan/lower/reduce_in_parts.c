/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduces in parts: a sum over devices whose terms are in an input of the plan, and whose value is moved elsewhere.
 * One part of the terms after the other is copied, reduced and moved, in the same memory, so that what is stored
 * between terms and result is bounded: a quarter of what partial results may take (reduction_steps.h). A part is
 * every k-th index of a dimension, so that every device has elements of each part. The bytes moved do not change.
 * Called by lower.c for every placement of a deferred value. */
#include "plan/lower/reduce_in_parts.h"
#include "plan/lower/lower.h"
#include "plan/reduce/reduction_steps.h"
#include "core/optimisation.h"
#include <string.h>

static int64_t largest_part(const oly_layout *l)
{
    int64_t most = 1;
    for (int d = 0; d < l->rank; d++)
        most *= oly_split_cut(&l->split[d], l->shape[d], 1);
    return most;
}

/* The number of parts: the same on every process. */
static int64_t parts_of(const oly_node *sum, const oly_layout *from, const oly_layout *scattered, const oly_layout *to)
{
    int64_t each = oly_mesh_devices_each_in(from->mesh) ? oly_mesh_devices_each_in(from->mesh) : from->mesh->n_devices;
    int64_t bytes = each * (largest_part(from) + (scattered ? largest_part(scattered) : 0) + 2 * largest_part(to)) *
                    (int64_t)oly_dtype_size(sum->type.dtype);
    int64_t limit = oly_reduction_limit() / 4;
    if (!oly_enabled(OLY_OPTIMISATION_CHUNKED_REDUCTION))
        return 1;
    return (bytes + limit - 1) / limit;
}

/* The outermost dimension with at least `parts` elements on every device, else the one with most. */
static int dimension_of(const oly_layout *l, int64_t parts)
{
    int best = 0;
    for (int d = 0; d < l->rank; d++) {
        int64_t each = l->shape[d] / l->split[d].parts;
        if (each >= parts)
            return d;
        if (each > l->shape[best] / l->split[best].parts)
            best = d;
    }
    return best;
}

typedef struct finish {
    oly_planner *p;
    oly_frame *f;
    const oly_node *place;
    const oly_layout *from, *to;
    const oly_layout *scattered; /* layout of parts before they are moved; NULL: parts are all-reduced */
    int from_slot, to_slot, terms_slot, scattered_slot; /* the last two: of one part at a time */
    oly_deferred sum;
    int dimension;
    int64_t step;
} finish;

/* Copies the part's terms out of the input. */
static oly_status copy_terms(const finish *w, const oly_node *part, const oly_layout *l, int64_t start, int slot)
{
    oly_planner *p = w->p;
    oly_copy_work *copies = OLY_PLAN_NEW(p, oly_copy_work, p->plan->n_devices);
    OLY_PLAN_CHECK(copies);
    int n = 0;
    double work = 0;
    for (int d = 0; d < p->plan->n_devices; d++) {
        int position = oly_position_in(p, l->mesh, d);
        if (position < 0)
            continue;
        oly_box box = oly_layout_box(l, position), whole = oly_layout_box(w->from, position);
        if (oly_box_count(&box) == 0)
            continue;
        oly_copy_work *c = &copies[n++];
        c->task = (oly_copy_task){.element_bytes = oly_dtype_size(part->type.dtype), .rank = l->rank};
        c->from.base = oly_cell(p->plan, d, w->from_slot);
        c->to.base = oly_cell(p->plan, d, slot);
        oly_contiguous_strides(&whole, c->from.stride);
        oly_contiguous_strides(&box, c->to.stride);
        for (int k = 0; k < l->rank; k++) {
            bool cut = k == w->dimension;
            int64_t first = cut ? start + box.lo[k] * w->step : box.lo[k];
            c->from.offset += (first - whole.lo[k]) * c->from.stride[k] * (int64_t)c->task.element_bytes;
            c->from.stride[k] *= cut ? w->step : 1;
            c->task.extent[k] = box.hi[k] - box.lo[k];
            c->task.from_stride[k] = c->from.stride[k];
            c->task.to_stride[k] = c->to.stride[k];
        }
        work += (double)oly_box_count(&box);
    }
    oly_slot_use(p, w->from_slot);
    oly_step *s = oly_step_add(p, w->f->block, OLY_STEP_MOVE, w->place, "copy");
    OLY_PLAN_CHECK(s);
    s->out_slot = slot;
    s->alone = true;
    s->move.n_copies = n;
    s->move.copies = copies;
    s->work = work;
    oly_slot_use(p, slot);
    return OLY_OK;
}

static oly_layout part_of(const finish *w, const oly_layout *whole, int64_t start)
{
    oly_layout l = *whole;
    int d = w->dimension;
    l.split[d] = oly_split_sliced(&l.split[d], start, w->step);
    l.shape[d] = (l.shape[d] - start + w->step - 1) / w->step;
    return l;
}

static void make_room(const finish *w, const oly_layout *l, int slot)
{
    for (int d = 0; d < w->p->plan->n_devices; d++) {
        int position = oly_position_in(w->p, l->mesh, d);
        if (position < 0)
            continue;
        oly_box b = oly_layout_box(l, position);
        oly_slot_grow(w->p, slot, d, (size_t)oly_box_count(&b) * oly_dtype_size(w->place->type.dtype));
    }
}

static oly_status scatter_part(const finish *w, const oly_node *part, oly_value *v, const oly_layout *cut)
{
    oly_planner *p = w->p;
    make_room(w, cut, w->scattered_slot);
    OLY_TRY(oly_reduce_scatter(p, w->f->block, part, &w->sum.rule, v->layout, v->slot, &w->sum.axes, cut,
                               w->scattered_slot));
    OLY_TRY(oly_set_layout(p, v, cut));
    v->slot = w->scattered_slot;
    return OLY_OK;
}

/* During this call the part is the sum's value. */
static oly_status finish_part(const finish *w, oly_node *sum, int64_t start)
{
    oly_planner *p = w->p;
    oly_value *v = oly_value_of(w->f, sum);
    int64_t starts[OLY_MAX_RANK] = {0}, steps[OLY_MAX_RANK];
    oly_layout l = part_of(w, w->from, start);
    oly_node *part = OLY_PLAN_NEW(p, oly_node, 1);
    OLY_PLAN_CHECK(part);
    for (int d = 0; d < OLY_MAX_RANK; d++)
        steps[d] = 1;
    *part = *sum;
    starts[w->dimension] = start;
    steps[w->dimension] = w->step;
    part->type.shape[w->dimension] = l.shape[w->dimension];
    int slot = w->terms_slot;
    make_room(w, &l, slot);
    OLY_TRY(copy_terms(w, part, &l, start, slot));
    OLY_TRY(oly_set_layout(p, v, &l));
    v->slot = slot;
    v->replicas = NULL;
    if (w->scattered) {
        oly_layout cut = part_of(w, w->scattered, start);
        OLY_TRY(scatter_part(w, part, v, &cut));
    } else {
        const oly_reduction_item item = {part, v->layout, slot, slot, w->sum.rule};
        OLY_TRY(oly_add_reductions(p, w->f->block, &w->sum.axes, 1, &item));
    }
    return oly_write_part(p, w->f, part, w->place, w->to_slot, w->to, starts, steps);
}

/* The parts share memory and therefore run one after the other. */
static oly_status finish_parts(finish *w, oly_node *sum)
{
    oly_planner *p = w->p;
    oly_reduction_share share = {oly_reduction_staging(p, w->f->block), oly_reduction_limit() / 4};
    w->terms_slot = oly_reduction_staging(p, w->f->block);
    w->scattered_slot = w->scattered ? oly_reduction_staging(p, w->f->block) : 0;
    if (share.staging < 0 || w->terms_slot < 0 || w->scattered_slot < 0)
        return OLY_MEMORY;
    p->reduction_share = &share;
    oly_status st = OLY_OK;
    for (int64_t start = 0; st == OLY_OK && start < w->step; start++)
        st = finish_part(w, sum, start);
    p->reduction_share = NULL;
    return st;
}

bool oly_reduces_in_parts(oly_planner *p, oly_frame *f, const oly_node *sum, const oly_layout *to)
{
    const oly_value *v = oly_value_of(f, sum);
    const oly_graph *g = f->graph;
    if (sum->n_uses != 1 || sum->type.rank == 0 || p->plan->slots[v->slot].kind != OLY_SLOT_INPUT)
        return false;
    for (int k = sum->index + 1; k < g->n_nodes; k++)
        if (oly_ops[g->nodes[k]->op].lowering == OLY_LOWER_PLACE && g->nodes[k]->in[0] == sum) {
            oly_layout l = oly_place_layout(p, f, g->nodes[k]);
            return !oly_layout_equal(&l, to) && parts_of(sum, v->layout, to, &l) > 1;
        }
    return false;
}

oly_status oly_reduce_in_parts(oly_planner *p, oly_frame *f, const oly_node *place, const oly_layout *to, int *slot,
                               bool *done)
{
    oly_node *sum = place->in[0];
    oly_value *v = oly_value_of(f, sum);
    *done = false;
    if (oly_captured(f, sum) || !v->waits || sum->n_uses != 1 || sum->type.rank == 0 ||
        p->plan->slots[v->slot].kind != OLY_SLOT_INPUT || oly_layout_equal(v->layout, to))
        return OLY_OK;
    const oly_layout from = *v->layout;
    const oly_deferred *waits = oly_deferred_of(p, f, sum);
    OLY_PLAN_CHECK(waits);
    oly_layout scattered;
    finish w = {.p = p, .f = f, .place = place, .from = &from, .to = to, .from_slot = v->slot, .sum = *waits};
    if (oly_scattered_layout(p, f, sum, v->layout, &waits->axes, &scattered))
        w.scattered = &scattered;
    w.step = parts_of(sum, &from, w.scattered, to);
    if (w.step <= 1)
        return OLY_OK;
    w.dimension = dimension_of(&from, w.step);
    if (w.step > from.shape[w.dimension])
        w.step = from.shape[w.dimension];
    *done = true;
    oly_keep_partial(f, sum);
    oly_region r = oly_region_of_layout(to);
    w.to_slot = oly_slot_new(p, &r, oly_dtype_size(sum->type.dtype));
    if (w.to_slot < 0)
        return OLY_MEMORY;
    p->plan->slots[w.to_slot].block = f->block;
    OLY_TRY(finish_parts(&w, sum));
    OLY_TRY(oly_set_layout(p, v, &from));
    v->slot = w.from_slot;
    v->replicas = NULL;
    *slot = w.to_slot;
    return OLY_OK;
}
