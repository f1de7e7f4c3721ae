/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations along split dimensions, and gathers from them, without an all-gather: each device processes its part,
 * and only the small results of the parts are exchanged. Running results start from those of the parts before;
 * largest elements and their positions are picked from those of the parts; elements gathered from parts are summed,
 * because each is in one part only. Scatters: lower_scatter.c. Called by lower_local.c, for every node of its kind. */
#include "plan/lower/lower.h"
#include "plan/lower/lower_local.h"
#include "plan/move/move.h"
#include "core/facts.h"
#include "core/optimisation.h"
#include "core/option.h"
#include <string.h>

/* The layout in which the operand is stored, each device holding its own part. False: it is not stored, or not on
 * the plan's mesh. */
static bool placed(oly_planner *p, oly_frame *f, const oly_node *n, oly_layout *own)
{
    return oly_natural_layout(f, n->in[0], own) && own->mesh == p->mesh;
}

/* Dimension d of a layout becomes `each` elements of every part. */
static void one_of_each_part(oly_layout *l, int d, int64_t each)
{
    l->shape[d] = each * l->split[d].parts;
    l->split[d] = oly_split_canonical(l->mesh, &l->split[d].axes, l->shape[d]);
    l->split[d].unit = each;
}

oly_node *oly_stand_in(oly_planner *p, const oly_node *n, oly_dtype dtype, const oly_layout *l)
{
    oly_node *s = OLY_PLAN_NEW(p, oly_node, 1);
    if (!s)
        return NULL;
    *s = *n;
    s->type = (oly_type){.dtype = dtype, .rank = l->rank};
    memcpy(s->type.shape, l->shape, sizeof s->type.shape);
    return s;
}

/* A result of the parts: its slot, its type, and where it is read after the exchange. */
typedef struct found {
    oly_dtype dtype;
    int slot;
    oly_reading reading;
} found;

/* Adds the exchange that brings n of them from layout `from` to layout `to`; only `wanted` is read of them. */
static oly_status bring(oly_planner *p, oly_frame *f, const oly_node *n, int n_found, found *what,
                        const oly_layout *from, const oly_layout *to, oly_wanted wanted)
{
    oly_region region = oly_region_of_layout(to);
    oly_movement moves[2];
    for (int k = 0; k < n_found; k++) {
        oly_node *node = oly_stand_in(p, n, what[k].dtype, from);
        int slot = oly_slot_new(p, &region, oly_dtype_size(what[k].dtype));
        OLY_PLAN_CHECK(slot >= 0 ? node : NULL);
        p->plan->slots[slot].block = f->block;
        moves[k] = (oly_movement){node, from, what[k].slot, &region, slot, wanted, false};
        what[k].slot = slot;
    }
    if (n_found == 2 && oly_dtype_size(what[0].dtype) != oly_dtype_size(what[1].dtype)) {
        OLY_TRY(oly_plan_moves(p, f->block, 1, moves));
        OLY_TRY(oly_plan_moves(p, f->block, 1, moves + 1));
    } else {
        OLY_TRY(oly_plan_moves(p, f->block, n_found, moves));
    }
    for (int k = 0; k < n_found; k++) {
        what[k].reading.place = OLY_PLAN_NEW(p, oly_place, p->plan->n_devices);
        OLY_PLAN_CHECK(what[k].reading.place);
        for (int d = 0; d < p->plan->n_devices; d++) {
            oly_place *place = &what[k].reading.place[d];
            int position = oly_position_in(p, to->mesh, d);
            oly_box b = {0};
            if (position >= 0)
                b = oly_layout_box(to, position);
            place->base = position >= 0 && oly_box_count(&b) > 0 ? oly_cell(p->plan, d, what[k].slot) : -1;
            oly_contiguous_strides(&b, place->stride);
        }
    }
    return OLY_OK;
}

/* Runs the kernel on each device's own part; the result has layout s->out. */
static oly_status find_in_parts(oly_planner *p, oly_frame *f, oly_local_step *s, const oly_layout *own)
{
    oly_region region = oly_region_of_layout(&s->out);
    s->in[0] = *own;
    s->partial = true;
    OLY_TRY(oly_local_read_operands(p, f, s));
    s->slot = oly_slot_new(p, &region, oly_dtype_size(s->out_dtype));
    if (s->slot < 0)
        return OLY_MEMORY;
    p->plan->slots[s->slot].block = f->block;
    return oly_local_step_add(p, f, s);
}

/* -- running results ----------------------------------------------------------------------------------------------- */

static oly_status running(oly_planner *p, oly_frame *f, oly_node *n, const oly_layout *own)
{
    int d = n->params.dimension;
    oly_layout each = *own, all;
    one_of_each_part(&each, d, 1);
    all = each;
    all.split[d] = oly_split_whole(all.shape[d]);
    oly_local_step *part = oly_local_step_new(p, n, &each), *whole = oly_local_step_new(p, n, own);
    OLY_PLAN_CHECK(part);
    OLY_PLAN_CHECK(whole);
    part->out_dtype = oly_local_running_dtype(part->op, part->dtype[0]);
    part->what = oly_plan_say(p, "%s of each part", oly_ops[n->op].name);
    OLY_TRY(find_in_parts(p, f, part, own));
    found results = {.dtype = part->out_dtype, .slot = part->slot};
    oly_region *before =
        OLY_PLAN_NEW(p, oly_region, 1); /* results of the parts before this one, or after it if reversed */
    OLY_PLAN_CHECK(before);
    *before = oly_region_of_layout(&each);
    before->dim[d].lo = n->params.reverse ? 1 : -(int64_t)each.split[d].parts;
    before->dim[d].hi = n->params.reverse ? (int64_t)each.split[d].parts : -1;
    /* with very many processes all results are gathered, in stages: cheaper than a message from each part before */
    bool many = oly_mesh_processes() > 2 * oly_option.direct_processes + 1;
    oly_wanted wanted = {many ? 0 : 1, before};
    OLY_TRY(bring(p, f, n, 1, &results, &each, &all, wanted));
    whole->n_in = 2;
    whole->in[0] = *own;
    whole->in[1] = all;
    whole->reading[0] = part->reading[0];
    whole->reading[1] = results.reading;
    whole->dtype[1] = results.dtype;
    OLY_TRY(oly_settle(p, f, n, own));
    whole->slot = oly_value_of(f, n)->slot;
    return oly_local_step_add(p, f, whole);
}

/* -- largest elements and their positions -------------------------------------------------------------------------- */

/* Runs the kernel on the parts, brings their results to where the result is needed, and picks. `each`: layout of the
 * results of the parts; `all`: where they are brought. */
static oly_status pick(oly_planner *p, oly_frame *f, oly_node *n, const oly_layout *own, const oly_layout *each,
                       const oly_layout *all, const oly_layout *out, oly_local_op op)
{
    oly_local_step *part = oly_local_step_new(p, n, each), *best = oly_local_step_new(p, n, out);
    OLY_PLAN_CHECK(part);
    OLY_PLAN_CHECK(best);
    part->what = oly_plan_say(p, "%s of each part", oly_ops[n->op].name);
    OLY_TRY(find_in_parts(p, f, part, own));
    found what[2] = {{.dtype = part->dtype[0], .slot = part->scratch}, {.dtype = part->out_dtype, .slot = part->slot}};
    OLY_TRY(bring(p, f, n, 2, what, each, all, (oly_wanted){0}));
    best->op = op;
    best->reverse = oly_local_finds_smallest(part->op);
    best->n_in = 2;
    for (int k = 0; k < 2; k++) {
        best->in[k] = *all;
        best->dtype[k] = what[k].dtype;
        best->reading[k] = what[k].reading;
    }
    OLY_TRY(oly_settle(p, f, n, out));
    best->slot = oly_value_of(f, n)->slot;
    return oly_local_step_add(p, f, best);
}

static int64_t elements(const oly_layout *l)
{
    int64_t n = 1;
    for (int d = 0; d < l->rank; d++)
        n *= l->shape[d];
    return n;
}

/* Are the results of the parts smaller than the operand? */
static bool is_less(const oly_node *n, const oly_layout *own, const oly_layout *each)
{
    int64_t element = (int64_t)oly_dtype_size(n->in[0]->type.dtype),
            pair = element + (int64_t)oly_dtype_size(n->type.dtype);
    return elements(each) * pair < elements(own) * element;
}

static oly_status arg_of_parts(oly_planner *p, oly_frame *f, oly_node *n, const oly_layout *own, const oly_layout *out,
                               bool *done)
{
    oly_layout each = *own, all;
    for (int k = 0; k < n->params.n_axes; k++)
        one_of_each_part(&each, n->params.axes[k], 1);
    if (!is_less(n, own, &each))
        return OLY_OK;
    *done = true;
    all = each;
    for (int d = 0, k = 0, e = 0; d < all.rank; d++)
        if (k < n->params.n_axes && n->params.axes[k] == d) {
            all.split[d] = oly_split_whole(all.shape[d]);
            k++;
        } else {
            all.split[d] = out->split[e++];
        }
    return pick(p, f, n, own, &each, &all, out, OLY_LOCAL_PICK);
}

static oly_status top_of_parts(oly_planner *p, oly_frame *f, oly_node *n, const oly_layout *own, const oly_layout *out,
                               bool *done)
{
    int last = n->params.dimension;
    oly_layout each = *own, all;
    if (n->params.count == 0)
        return OLY_OK;
    one_of_each_part(&each, last, n->params.count);
    if (!is_less(n, own, &each))
        return OLY_OK;
    *done = true;
    all = each;
    for (int d = 0; d < all.rank; d++)
        all.split[d] = d == last ? oly_split_whole(all.shape[d]) : out->split[d];
    return pick(p, f, n, own, &each, &all, out, OLY_LOCAL_TOP_K);
}

/* -- gathers ------------------------------------------------------------------------------------------------------- */

static bool has_axis(const oly_axis_list *axes, int axis)
{
    for (int k = 0; k < axes->n; k++)
        if (axes->axis[k] == axis)
            return true;
    return false;
}

bool oly_leave_axes(oly_layout *l, const oly_axis_list *axes)
{
    bool any = false;
    for (int d = 0; d < l->rank; d++) {
        const oly_axis_list *had = &l->split[d].axes;
        oly_axis_list kept = {0};
        while (kept.n < had->n && !has_axis(axes, had->axis[kept.n])) {
            kept.axis[kept.n] = had->axis[kept.n];
            kept.n++;
        }
        if (kept.n == had->n)
            continue;
        l->split[d] = oly_split_canonical(l->mesh, &kept, l->shape[d]);
        any = true;
    }
    return any;
}

/* Elements of the largest part. */
static double part_size(const oly_layout *l)
{
    double n = 1;
    for (int d = 0; d < l->rank; d++) {
        int64_t largest = (l->shape[d] + l->split[d].parts - 1) / l->split[d].parts;
        n *= (double)largest;
    }
    return n;
}

/* Is a value the same along dimension d, because it is a broadcast of one without it? What moves is that one. */
static bool repeats_along(const oly_node *n, int d)
{
    bool repeated = oly_ops[n->op].lowering == OLY_LOWER_VIEW && oly_ops[n->op].detail == OLY_VIEW_BROADCAST;
    for (int k = 0; repeated && k < n->in[0]->type.rank; k++)
        repeated = n->params.axes[k] != d || n->in[0]->type.shape[k] != n->type.shape[d];
    return repeated;
}

/* Elements of the largest part of a value that differ. */
static double distinct_size(const oly_node *n, oly_layout l)
{
    for (int d = 0; d < l.rank; d++)
        if (repeats_along(n, d)) {
            l.shape[d] = 1;
            l.split[d] = oly_split_whole(1);
        }
    return part_size(&l);
}

/* The dimensions of in[0] in which elements are looked up; returns their number. */
static int looked_up(const oly_node *n, oly_local_way way, const int **dims)
{
    *dims = way == OLY_LOCAL_SEARCHES ? &n->params.n_batch : n->params.axes;
    return way == OLY_LOCAL_SEARCHES ? 1 : n->params.n_axes;
}

/* Has the planner already chosen whether to sum partial results, by cost? */
static bool is_chosen(oly_frame *f, const oly_node *n, bool *parts)
{
    const oly_choice *choice = oly_value_of(f, n)->choice;
    for (int d = 0; choice && d < OLY_MAX_RANK; d++)
        *parts = *parts || choice->summed[d].n > 0;
    return choice != NULL;
}

/* -- sums of parts -------------------------------------------------------------------------------------------------------- */

static bool has_any(const oly_layout *l, int rank, const oly_axis_list *axes)
{
    for (int d = 0; d < rank; d++)
        for (int k = 0; k < axes->n; k++)
            if (has_axis(&l->split[d].axes, axes->axis[k]))
                return true;
    return false;
}

/* Can every device take its part of the result from the parts of the others? Only where their sum would be scattered at once, into that
 * layout: sums that wait, and what is computed from them, are added up in another order, which may not depend on how devices are
 * distributed over processes. Not if batches, or rows that are looked up, were split over the axes; nor for small results, as every part
 * is a step. */
static bool reads_parts(oly_planner *p, oly_frame *f, const oly_node *n, const oly_local_step *s,
                        const oly_local_step *part, const oly_axis_list *axes)
{
    enum { LEAST_BYTES = 1 << 16 };
    oly_layout target;
    if (!oly_facts_now()->one_memory || p->mesh->process < 0 || s->out.mesh != p->mesh ||
        oly_local_way_of(s->op) == OLY_LOCAL_SEARCHES || !oly_enabled(OLY_OPTIMISATION_REDUCE_SCATTER))
        return false;
    bool rows = oly_local_way_of(s->op) == OLY_LOCAL_READS;
    return part_size(&s->out) * (double)oly_dtype_size(n->type.dtype) >= LEAST_BYTES &&
           !has_any(&s->out, n->params.n_batch, axes) && !has_any(&s->in[0], rows ? s->in[0].rank : 0, axes) &&
           oly_scattered_layout(p, f, n, &part->out, axes, &target) && oly_layout_equal(&target, &s->out);
}

/* Every device takes its part of the result from the parts of the array, wherever they are, in as many steps: its own first. */
static oly_status take_from_parts(oly_planner *p, oly_frame *f, oly_node *n, const oly_local_step *s,
                                  oly_local_step *part, const oly_axis_list *axes)
{
    int members = oly_axis_list_parts(p->mesh, axes);
    part->out = s->out;
    part->along = *axes;
    for (int k = 1; k < n->n_in; k++)
        part->in[k] = s->in[k];
    OLY_TRY(oly_local_read_operands(p, f, part));
    OLY_TRY(oly_settle(p, f, n, &part->out));
    part->slot = oly_value_of(f, n)->slot;
    for (part->further = 0; part->further < members; part->further++)
        OLY_TRY(oly_local_step_add(p, f, part));
    return OLY_OK;
}

/* Adds the step of partial results of s and their sum over the axes, or what has the same values. */
static oly_status sum_parts(oly_planner *p, oly_frame *f, oly_node *n, const oly_local_step *s, oly_local_step *part,
                            const oly_axis_list *axes)
{
    part->partial = true;
    if (reads_parts(p, f, n, s, part, axes))
        return take_from_parts(p, f, n, s, part, axes);
    OLY_TRY(oly_local_read_operands(p, f, part));
    OLY_TRY(oly_settle(p, f, n, &part->out));
    part->slot = oly_value_of(f, n)->slot;
    OLY_TRY(oly_local_step_add(p, f, part));
    return oly_place_reduction(p, f, n, &(oly_reduction_rule){OLY_COMBINE_SUM, false}, axes);
}

/* Every device looks up the indexes that fall into its part of the array (or counts the smaller elements in its part
 * of a sorted line), and the results are summed. If the array's axes also split the result, each device looks up the
 * whole of that dimension, and the sum is a reduce-scatter. Not done if moving the array is cheaper. */
static oly_status look_up_in_parts(oly_planner *p, oly_frame *f, oly_node *n, const oly_layout *own,
                                   const oly_local_step *s, bool *done)
{
    oly_local_step *part = oly_local_step_new(p, n, &s->out);
    oly_axis_list axes = {0};
    const int *dims;
    int n_dims = looked_up(n, oly_local_way_of(s->op), &dims);
    OLY_PLAN_CHECK(part);
    for (int k = 0; k < n_dims; k++)
        oly_append_axes(&axes, &own->split[dims[k]].axes);
    if (axes.n == 0)
        return OLY_OK;
    double members = oly_axis_list_parts(p->mesh, &axes), element = (double)oly_dtype_size(n->type.dtype);
    bool scattered = oly_leave_axes(&part->out, &axes);
    double moved = (scattered ? 1 : 2) * element * part_size(&part->out) * (members - 1) / members;
    for (int k = 0; k < n->n_in; k++) {
        part->in[k] = s->in[k];
        oly_leave_axes(&part->in[k], &axes);
        if (k)
            moved += (double)oly_dtype_size(s->dtype[k]) *
                     (distinct_size(n->in[k], part->in[k]) - distinct_size(n->in[k], s->in[k]));
    }
    for (int k = 0; k < n_dims; k++)
        part->in[0].split[dims[k]] = own->split[dims[k]];
    oly_region whole = oly_region_of_layout(&s->in[0]);
    double brought = (double)oly_dtype_size(s->dtype[0]) * (part_size(&s->in[0]) - part_size(&part->in[0]));
    bool chosen = false;
    if (is_chosen(f, n, &chosen) ? !chosen : (moved >= brought || oly_is_at_hand(f, n->in[0], &whole)))
        return OLY_OK;
    *done = true;
    return sum_parts(p, f, n, s, part, &axes);
}

/* -- slices with computed starts ----------------------------------------------------------------------------------- */

/* Every device copies what its part of the array has of the slice, and the results are summed. Not done if moving
 * the array is cheaper. */
static oly_status slice_from_parts(oly_planner *p, oly_frame *f, oly_node *n, const oly_layout *own,
                                   const oly_local_step *s, bool *done)
{
    oly_local_step *part = oly_local_step_new(p, n, &s->out);
    oly_axis_list axes = {0};
    OLY_PLAN_CHECK(part);
    for (int d = 0; d < own->rank; d++)
        if (n->type.shape[d] != own->shape[d])
            oly_append_axes(&axes, &own->split[d].axes);
    if (axes.n == 0)
        return OLY_OK;
    double members = oly_axis_list_parts(p->mesh, &axes), element = (double)oly_dtype_size(n->type.dtype);
    bool scattered = oly_leave_axes(&part->out, &axes);
    for (int k = 0; k < n->n_in; k++) {
        part->in[k] = s->in[k];
        oly_leave_axes(&part->in[k], &axes);
    }
    for (int d = 0; d < own->rank; d++)
        if (n->type.shape[d] != own->shape[d])
            part->in[0].split[d] = own->split[d];
    double moved = (scattered ? 1 : 2) * element * part_size(&part->out) * (members - 1) / members;
    oly_region whole = oly_region_of_layout(&s->in[0]);
    double brought = element * (part_size(&s->in[0]) - part_size(&part->in[0]));
    bool chosen = false;
    if (is_chosen(f, n, &chosen) ? !chosen : (moved >= brought || oly_is_at_hand(f, n->in[0], &whole)))
        return OLY_OK;
    *done = true;
    return sum_parts(p, f, n, s, part, &axes);
}

/* -- choice of method ---------------------------------------------------------------------------------------------- */

/* Do all readers, elementwise ones only, need the result in the layout it would have if computed from whole lines,
 * and no larger than the operand's parts? Then the operand is moved there instead of the result, and parts need
 * exchange nothing. */
static bool is_wanted_so(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *own, const oly_layout *out)
{
    enum { MOST_NODES = 512 };
    const oly_graph *g = f->graph;
    bool any = false;
    if (g->n_nodes > MOST_NODES || oly_is_result(f, n) || part_size(out) > part_size(own) ||
        oly_dtype_size(n->in[0]->type.dtype) > oly_dtype_size(n->type.dtype))
        return false;
    for (int k = n->index + 1; k < g->n_nodes; k++) {
        const oly_node *user = g->nodes[k];
        for (int j = 0; j < user->n_in; j++) {
            if (user->in[j] != n)
                continue;
            if (oly_ops[user->op].lowering != OLY_LOWER_TILE)
                return false;
            const oly_choice *choice = oly_value_of(f, user)->choice;
            oly_layout wanted = choice ? oly_axes_layout(p, user, choice->work) : oly_node_layout(p, f, user);
            for (int d = 0; d < out->rank; d++)
                if (!oly_axis_list_equal(&wanted.split[d].axes, &out->split[d].axes))
                    return false;
            any = true;
        }
    }
    return any;
}

oly_status oly_lower_partial(oly_planner *p, oly_frame *f, oly_node *n, const oly_local_step *s, bool *done)
{
    const oly_params *q = &n->params;
    oly_layout own;
    bool is_split = false;
    *done = false;
    if (s->op == OLY_LOCAL_SCATTER_ADD)
        return oly_enabled(OLY_OPTIMISATION_DIVIDED_SCATTER) ? oly_lower_scatter(p, f, n, s, done) : OLY_OK;
    bool sorts = oly_local_way_of(s->op) == OLY_LOCAL_ORDERS;
    if (!oly_enabled(sorts ? OLY_OPTIMISATION_DISTRIBUTED_SORT : OLY_OPTIMISATION_PARTIAL_RESULTS))
        return OLY_OK;
    if (!placed(p, f, n, &own))
        return OLY_OK;
    switch (oly_local_way_of(s->op)) {
    case OLY_LOCAL_RUNS:
        *done =
            own.split[q->dimension].parts > 1 && own.shape[q->dimension] >= 4 * (int64_t)own.split[q->dimension].parts;
        *done = *done && !is_wanted_so(p, f, n, &own, &s->out);
        return *done ? running(p, f, n, &own) : OLY_OK;
    case OLY_LOCAL_FINDS:
        for (int k = 0; k < q->n_axes; k++)
            is_split = is_split || own.split[q->axes[k]].parts > 1;
        return is_split ? arg_of_parts(p, f, n, &own, &s->out, done) : OLY_OK;
    case OLY_LOCAL_ORDERS: return oly_lower_sort(p, f, n, &own, s, done);
    case OLY_LOCAL_LARGEST:
        return own.split[q->dimension].parts > 1 ? top_of_parts(p, f, n, &own, &s->out, done) : OLY_OK;
    case OLY_LOCAL_SEARCHES:
    case OLY_LOCAL_READS: return look_up_in_parts(p, f, n, &own, s, done);
    case OLY_LOCAL_CUTS: return slice_from_parts(p, f, n, &own, s, done);
    default: return OLY_OK;
    }
}
