/* SPDX-License-Identifier: BSD-3-Clause */
/* Stencil loops: the body replaces all or an inner part of its one carry by a sum of shifted parts of it; dimensions
 * may be periodic (cyclic shifts). Time tiling then runs many steps from cache: every device holds its block with
 * margins several steps wide; a pass brings the margins from the neighbours once and advances all those steps, tile by
 * tile (kernels/kernel.h). Points outside the replaced part never change. The first pass has the remaining steps, and
 * brings no more than they read. */
#include "plan/stencil/stencil.h"
#include "core/facts.h"
#include "core/min_max.h"
#include "plan/move/move.h"
#include "plan/read/read.h"
#include "plan/stencil/time_tiling_plan.h"
#include "core/optimisation.h"
#include "graph/view.h"
#include "core/option.h"
#include <string.h>

/* What the body computes. */
typedef struct found {
    oly_stencil stencil;
    int64_t lo[3], hi[3];   /* the part that is replaced */
    bool wraps[3];          /* the dimension is periodic: all of it is replaced */
    int below[3], above[3]; /* smallest offset of a tap, at most 0; largest, at least 0 */
} found;

static bool take_taps(const oly_node *carry, const oly_node *value, const int64_t *start, found *s)
{
    oly_linear form;
    int rank = carry->type.rank;
    if (!oly_linear_form(carry, value, &form))
        return false;
    s->stencil.dtype = carry->type.dtype;
    s->stencil.rank = rank;
    s->stencil.n_taps = form.n;
    for (int t = 0; t < form.n; t++) {
        s->stencil.coefficient[t] = form.coefficient[t];
        for (int d = 0; d < rank; d++) {
            int64_t offset = form.start[t][d] - start[d], size = offset < 0 ? -offset : offset;
            if (size > 16)
                return false;
            s->wraps[d] = form.wraps[d];
            s->stencil.offset[t][d] = (int)offset;
            s->below[d] = offset < s->below[d] ? (int)offset : s->below[d];
            s->above[d] = offset > s->above[d] ? (int)offset : s->above[d];
            s->stencil.radius[d] = size > s->stencil.radius[d] ? (int)size : s->stencil.radius[d];
        }
    }
    return oly_stencil_supported(&s->stencil);
}

/* The sum itself, of the carry's full extent: it reads nothing beyond the ends, as dimensions with offsets are
 * periodic. */
static bool match_whole(const oly_node *carry, const oly_node *out, found *s)
{
    static const int64_t zero[OLY_MAX_RANK];
    for (int d = 0; d < carry->type.rank; d++) {
        s->lo[d] = 0;
        s->hi[d] = carry->type.shape[d];
        if (out->type.shape[d] != s->hi[d])
            return false;
    }
    return take_taps(carry, out, zero, s) && (s->wraps[0] || s->wraps[1] || s->wraps[2]);
}

/* x.at[inner].set(sum): the update of a part of the carry. */
static bool match_update(const oly_node *carry, const oly_node *out, found *s)
{
    if (!oly_writes_parts(out) || oly_ops[out->op].lowering != OLY_LOWER_WRITE || out->in[0] != carry ||
        out->in[1]->type.rank != carry->type.rank)
        return false;
    for (int d = 0; d < carry->type.rank; d++) {
        if (out->params.step[d] != 1)
            return false;
        s->lo[d] = out->params.start[d];
        s->hi[d] = s->lo[d] + out->in[1]->type.shape[d];
    }
    return take_taps(carry, out->in[1], out->params.start, s);
}

/* Is it a part of the carry, unchanged, from `offset` along the dimension? */
static bool is_kept(const oly_node *carry, const oly_node *part, int dimension, int64_t offset)
{
    if (!oly_is_part(part, 1) || part->in[0] != carry)
        return false;
    for (int d = 0; d < carry->type.rank; d++)
        if (part->params.start[d] != (d == dimension ? offset : 0))
            return false;
    return true;
}

/* concatenate(x[:a], sum, x[b:]) along one dimension, the others whole. */
static bool match_concatenate(const oly_node *carry, const oly_node *out, found *s)
{
    int64_t offset = 0, start[OLY_MAX_RANK] = {0};
    const oly_node *value = NULL;
    int dimension = out->params.dimension;
    if (oly_ops[out->op].lowering != OLY_LOWER_WRITE || oly_ops[out->op].detail != OLY_WRITE_ALL)
        return false;
    for (int k = 0; k < out->n_in; k++) {
        if (!is_kept(carry, out->in[k], dimension, offset)) {
            if (value)
                return false;
            value = out->in[k];
            start[dimension] = offset;
        }
        offset += out->in[k]->type.shape[dimension];
    }
    if (!value)
        return false;
    for (int d = 0; d < carry->type.rank; d++) {
        s->lo[d] = start[d];
        s->hi[d] = start[d] + value->type.shape[d];
    }
    return take_taps(carry, value, start, s);
}

static bool match(const oly_node *loop, found *s)
{
    const oly_graph *body = loop->params.body;
    memset(s, 0, sizeof *s);
    if (loop->params.n_carry != 1 || body->has_effects || body->inputs[0]->n_uses)
        return false;
    const oly_node *carry = body->inputs[1];
    if (carry->type.rank < 1 || carry->type.rank > 3)
        return false;
    bool (*const ways[])(const oly_node *, const oly_node *, found *) = {match_update, match_concatenate, match_whole};
    bool matches = false;
    for (size_t k = 0; k < sizeof ways / sizeof *ways && !matches; k++) {
        memset(s, 0, sizeof *s);
        matches = ways[k](carry, body->outputs[0], s);
    }
    for (int d = 0; d < carry->type.rank && matches; d++) {
        if (s->wraps[d] && (s->lo[d] != 0 || s->hi[d] != carry->type.shape[d]))
            return false; /* a part of a periodic dimension is not replaced */
        if (s->wraps[d])  /* otherwise every read must be inside the array */
            continue;
        if (s->lo[d] - s->stencil.radius[d] < 0 || s->hi[d] + s->stencil.radius[d] > carry->type.shape[d]) {
            for (int t = 0; t < s->stencil.n_taps; t++)
                if (s->lo[d] + s->stencil.offset[t][d] < 0 || s->hi[d] + s->stencil.offset[t][d] > carry->type.shape[d])
                    return false;
        }
    }
    return matches;
}

/* -- the plan ------------------------------------------------------------------------------------------------------ */

enum { FEW_STEPS = 8 }; /* per pass, of a small periodic field */

int64_t oly_halo_steps(void)
{
    return oly_enabled(OLY_OPTIMISATION_TIME_TILING) ? oly_option.halo_steps : 1;
}

/* Time steps per pass: what suits the caches for the largest block, the same on every process. */
static int steps_per_pass(const found *s, const oly_layout *l, int64_t count)
{
    int64_t extent[3] = {1, 1, 1};
    for (int d = 0; d < l->rank; d++)
        extent[d] = oly_split_cut(&l->split[d], l->shape[d], 1);
    int64_t suggested = oly_smaller(oly_stencil_steps(&s->stencil, extent), oly_facts_now()->stencil_steps);
    /* margins of a periodic dimension are only copied: computing mostly margins would take longer */
    for (int d = 0; d < l->rank; d++)
        if (s->wraps[d] && l->split[d].parts == 1 && s->stencil.radius[d] > 0)
            suggested = oly_smaller(suggested, oly_larger(FEW_STEPS, extent[d] / (4 * s->stencil.radius[d])));
    int64_t steps = oly_halo_steps() ? oly_halo_steps() : suggested;
    if (steps > count)
        steps = count;
    return steps < 1 ? 1 : (int)steps;
}

static bool has_margins(const found *s, const oly_layout *l, int d)
{
    return s->stencil.radius[d] > 0 && (l->split[d].parts > 1 || s->wraps[d]);
}

static oly_region with_margins(const found *s, const oly_layout *l, int steps)
{
    oly_region r = oly_region_of_layout(l);
    for (int d = 0; d < l->rank; d++)
        if (has_margins(s, l, d)) {
            r.dim[d].lo = (int64_t)steps * s->below[d];
            r.dim[d].hi = (int64_t)steps * s->above[d];
            r.dim[d].wraps = s->wraps[d];
        }
    return r;
}

/* What several steps read: without the far corners, if no tap is diagonal. */
static oly_status margins_of_steps(oly_planner *p, const found *s, const oly_layout *l, int steps, oly_wanted *w)
{
    const oly_tiling_need *needs;
    int n;
    OLY_TRY(oly_tiling_reach(p, &s->stencil, steps, &n, &needs));
    oly_region *part = OLY_PLAN_NEW(p, oly_region, n + 1);
    OLY_PLAN_CHECK(part);
    for (int k = 0; k < n; k++) {
        part[k] = with_margins(s, l, steps);
        for (int d = 0; d < l->rank; d++)
            if (has_margins(s, l, d)) {
                part[k].dim[d].lo = needs[k].lo[d];
                part[k].dim[d].hi = needs[k].hi[d];
            }
    }
    part[n] = oly_region_of_layout(l); /* its own block */
    *w = (oly_wanted){n + 1, part};
    return OLY_OK;
}

/* What `steps` steps read of their margins; for a single step, what its taps reach from the replaced part. */
static oly_status margins_read(oly_planner *p, const found *s, const oly_layout *l, int steps, oly_wanted *w)
{
    int n = steps == 1 ? s->stencil.n_taps : 1;
    if (!oly_enabled(OLY_OPTIMISATION_CORNER_ELIMINATION))
        return OLY_OK; /* everything is wanted */
    if (steps > 1 && l->rank > 1)
        return margins_of_steps(p, s, l, steps, w);
    oly_region *part = OLY_PLAN_NEW(p, oly_region, n + 1);
    OLY_PLAN_CHECK(part);
    part[0] = with_margins(s, l, steps);
    for (int t = 0; t < n && steps == 1; t++) {
        part[t] = oly_region_of_layout(l);
        for (int d = 0; d < l->rank; d++) /* relative to the replaced part */
            part[t].dim[d] = (oly_region_dim){.split = oly_split_sliced(&l->split[d], s->lo[d], 1),
                                              .n = s->hi[d] - s->lo[d],
                                              .scale = 1,
                                              .lo = s->lo[d] + s->stencil.offset[t][d],
                                              .hi = s->lo[d] + s->stencil.offset[t][d],
                                              .wraps = s->wraps[d]};
    }
    part[n] = oly_region_of_layout(l); /* its own block */
    *w = (oly_wanted){n + 1, part};
    return OLY_OK;
}

static void field_strides(int rank, const int64_t *extent, int64_t *stride)
{
    int64_t n = 1;
    for (int d = rank - 1; d >= 0; d--) {
        stride[d] = n;
        n *= extent[d];
    }
}

static void fill_device(const found *s, const oly_layout *l, const oly_region *r, int position, oly_stencil_work *w)
{
    oly_box block = oly_layout_box(l, position), field = oly_region_box(r, l->shape, position);
    oly_stencil_field *f = &w->within;
    for (int d = 0; d < l->rank; d++) {
        f->extent[d] = field.hi[d] - field.lo[d];
        f->write_lo[d] = block.lo[d] - field.lo[d];
        f->write_hi[d] = block.hi[d] - field.lo[d];
        f->fixed_lo[d] = s->lo[d] - field.lo[d];
        f->fixed_hi[d] = s->hi[d] - field.lo[d];
        if (s->wraps[d]) { /* no end within the reach of any step */
            f->fixed_lo[d] = -f->extent[d];
            f->fixed_hi[d] = 2 * f->extent[d];
        }
    }
    field_strides(l->rank, f->extent, f->stride);
    w->last = *f;
    memcpy(f->destination_stride, f->stride, sizeof f->stride);
    int64_t extent[3];
    for (int d = 0; d < l->rank; d++) {
        extent[d] = block.hi[d] - block.lo[d];
        w->last.destination_offset[d] = -w->last.write_lo[d];
    }
    field_strides(l->rank, extent, w->last.destination_stride);
}

static void say_margins(oly_text *t, const char *comma, int64_t below, int64_t above, int dimension)
{
    if (below == above)
        oly_text_add(t, "%s %lld element%s each way along dimension %d", comma, (long long)below, below == 1 ? "" : "s",
                     dimension);
    else
        oly_text_add(t, "%s %lld element%s from below and %lld from above along dimension %d", comma, (long long)below,
                     below == 1 ? "" : "s", (long long)above, dimension);
}

static void describe(oly_planner *p, oly_step *s, const found *st, const oly_layout *l, const oly_block *margins)
{
    int64_t passes = (s->stencil.count + s->stencil.pass - 1) / s->stencil.pass;
    oly_text t = {0};
    oly_text_add(&t, "%d taps, %lld steps in %lld pass%s of up to %d", st->stencil.n_taps, (long long)s->stencil.count,
                 (long long)passes, passes == 1 ? "" : "es", s->stencil.pass);
    if (margins && margins->n_steps) {
        const oly_step *m = &margins->steps[0];
        s->bytes = m->bytes;
        s->wire = m->wire;
        s->messages = m->messages;
        s->members = m->members;
        const char *comma = "";
        oly_text_add(&t, "; one halo exchange per pass:");
        for (int d = 0; d < l->rank; d++) {
            if (!has_margins(st, l, d))
                continue;
            say_margins(&t, comma, (int64_t)s->stencil.pass * -st->below[d], (int64_t)s->stencil.pass * st->above[d],
                        d);
            comma = ",";
        }
    }
    if (s->stencil.overlaps)
        oly_text_add(&t, "; %.0f %% of a pass overlaps communication", 100 * s->stencil.early);
    s->detail = oly_plan_say(p, "%s", oly_text_chars(&t));
    oly_text_free(&t);
}

static int field_slot(oly_planner *p, oly_frame *f, const oly_region *r, size_t element)
{
    int slot = oly_slot_new(p, r, element);
    if (slot >= 0)
        p->plan->slots[slot].block = f->block;
    return slot;
}

static oly_status settle(oly_planner *p, oly_frame *f, const oly_node *loop, const oly_layout *l, size_t element,
                         int *slot)
{
    oly_region r = oly_region_of_layout(l);
    *slot = field_slot(p, f, &r, element);
    if (*slot < 0)
        return OLY_MEMORY;
    for (int k = 0; k < f->graph->n_nodes; k++) {
        oly_node *n = f->graph->nodes[k];
        if (oly_ops[n->op].lowering != OLY_LOWER_RESULT || n->in[0] != loop)
            continue;
        oly_value *v = oly_value_of(f, n);
        OLY_TRY(oly_set_layout(p, v, l));
        v->slot = *slot;
        v->block = f->block;
    }
    return OLY_OK;
}

oly_status oly_lower_stencil(oly_planner *p, oly_frame *f, oly_node *n, bool *done)
{
    found s;
    if (!oly_enabled(OLY_OPTIMISATION_STENCIL_LOOPS) || !oly_enabled(OLY_OPTIMISATION_STENCIL_TAPS) || !match(n, &s))
        return OLY_OK;
    *done = true;
    oly_node *input = n->params.body->inputs[1];
    oly_layout l = oly_node_layout(p, f->bodies[n->index], input);
    size_t element = oly_dtype_size(input->type.dtype);
    int64_t count = n->params.upper - n->params.lower;
    int steps = steps_per_pass(&s, &l, count), first, fields[2], out, brings = -1;
    bool margins = false;
    for (int d = 0; d < l.rank; d++)
        margins = margins || has_margins(&s, &l, d);
    oly_region r = with_margins(&s, &l, steps);
    oly_wanted wanted = {0};
    if (!margins) {
        OLY_TRY(oly_materialise(p, f, n->in[0], &l, &first));
    } else {
        OLY_TRY(oly_materialise(p, f, n->in[0], &l, &out)); /* without a copy, unless the layout differs */
        first = field_slot(p, f, &r, element);
        if (first < 0)
            return OLY_MEMORY;
        oly_movement move = {.node = input, .from = &l, .from_slot = out, .to = &r, .to_slot = first};
        OLY_TRY(margins_read(p, &s, &l, (int)(count % steps ? count % steps : steps), &move.wanted));
        wanted = move.wanted;
        int n_steps = f->block->n_steps;
        OLY_TRY(oly_plan_moves(p, f->block, 1, &move));
        brings = f->block->n_steps == n_steps + 1 ? n_steps : -1;
    }
    int64_t passes = (count + steps - 1) / steps;
    fields[0] = margins ? first : passes > 2 ? field_slot(p, f, &r, element) : first;
    fields[1] = passes > 1 ? field_slot(p, f, &r, element) : first;
    if (fields[0] < 0 || fields[1] < 0)
        return OLY_MEMORY;
    oly_block *blocks[2] = {NULL, NULL};
    if (margins && passes > 1) {
        oly_movement move = {.node = input, .from = &l, .to = &r};
        for (int k = 0; k < 2; k++) {
            blocks[k] = oly_block_new(p);
            OLY_PLAN_CHECK(blocks[k]);
        }
        move.wanted = wanted;
        if (count % steps) /* the first pass has fewer */
            OLY_TRY(margins_read(p, &s, &l, steps, &move.wanted));
        OLY_TRY(oly_plan_margins(p, blocks, 1, &move, (const int *const[]){&fields[0], &fields[1]}));
    }
    OLY_TRY(settle(p, f, n, &l, element, &out));
    oly_stencil_work *work = OLY_PLAN_NEW(p, oly_stencil_work, p->plan->n_devices);
    OLY_PLAN_CHECK(work);
    double total = 0;
    for (int d = 0; d < p->plan->n_devices; d++) {
        int position = oly_position_in(p, l.mesh, d);
        if (position < 0)
            continue;
        fill_device(&s, &l, &r, position, &work[d]);
        oly_box b = oly_layout_box(&l, position);
        total += (double)oly_box_count(&b) * (double)count * s.stencil.n_taps / 8;
    }
    oly_slot_use(p, first);
    oly_slot_use(p, out);
    for (int k = 0; k < 2; k++)
        oly_slot_use(p, fields[k]);
    oly_step *step = oly_step_add(p, f->block, OLY_STEP_STENCIL, input, "stencil");
    OLY_PLAN_CHECK(step);
    step->work = total;
    step->out_slot = out;
    oly_stencil *stencil = OLY_PLAN_NEW(p, oly_stencil, 1);
    OLY_PLAN_CHECK(stencil);
    *stencil = s.stencil;
    step->stencil.stencil = stencil;
    step->stencil.count = count;
    step->stencil.pass = steps;
    step->stencil.first_slot = first;
    for (int k = 0; k < 2; k++) {
        step->stencil.field_slot[k] = fields[k];
        step->stencil.margins[k] = blocks[k];
    }
    step->stencil.device = work;
    OLY_TRY(oly_overlap_stencil(p, step, brings >= 0 ? &f->block->steps[brings] : NULL, work));
    describe(p, step, &s, &l, blocks[0]);
    return OLY_OK;
}
