/* SPDX-License-Identifier: BSD-3-Clause */
/* Lowering of operations whose kernels need whole dimensions (kernels/local.h). The result is split along the
 * dimensions that its factors leave free, and operands are read in the same split. Mesh axes that split a dimension
 * which must be whole are moved to another dimension: sorting lines that are spread over devices takes two
 * all-to-alls instead of an all-gather. */
#include "plan/lower/lower_local.h"
#include "plan/lower/lower.h"
#include "plan/lower/sink_reductions.h"
#include "core/optimisation.h"
#include "graph/factors.h"
#include <string.h>

/* The result's dimension with a factor; -1: none. */
static int result_dimension(const oly_node *n, const oly_factors *fs, int factor)
{
    for (int e = 0; e < n->type.rank; e++)
        for (int k = 0; k < fs->result[e].n; k++)
            if (fs->result[e].factor[k] == factor)
                return e;
    return -1;
}

static int factor_of(const oly_dim_factors *dim)
{
    return dim->n ? dim->factor[0] : -1;
}

/* The dimension of the result that `parts` more parts leave largest; -1: none can be split. */
static int other_dimension(const oly_node *n, const oly_factors *fs, const oly_layout *l, int parts)
{
    int best = -1;
    int64_t most = 0;
    for (int d = 0; d < l->rank; d++) {
        int factor = factor_of(&fs->result[d]);
        int64_t piece = n->type.shape[d] / ((int64_t)l->split[d].parts * parts);
        if (factor >= 0 && fs->kind[factor] == OLY_FACTOR_PARALLEL && piece > most) {
            most = piece;
            best = d;
        }
    }
    return best;
}

static bool uses_axis(const oly_layout *l, int axis)
{
    for (int d = 0; d < l->rank; d++)
        for (int k = 0; k < l->split[d].axes.n; k++)
            if (l->split[d].axes.axis[k] == axis)
                return true;
    return false;
}

/* Moves the axes of a dimension that must be whole to other dimensions. */
static void rehouse(const oly_node *n, const oly_factors *fs, const oly_axis_list *axes, oly_layout *l)
{
    for (int k = 0; k < axes->n; k++) {
        int axis = axes->axis[k];
        int d = uses_axis(l, axis) ? -1 : other_dimension(n, fs, l, l->mesh->size[axis]);
        if (d < 0)
            continue;
        oly_axis_list list = l->split[d].axes;
        list.axis[list.n++] = (uint8_t)axis;
        l->split[d] = oly_split_canonical(l->mesh, &list, l->shape[d]);
    }
}

static oly_local_way way_of(const oly_node *n)
{
    return oly_local_way_of((oly_local_op)oly_ops[n->op].detail);
}

/* Are the kernel's lines those of operand 0, so that moving its axes to another dimension is cheaper than gathering
 * it? Not for lookups: there operands may be much smaller or larger than the result. */
static bool works_lines(const oly_node *n)
{
    return way_of(n) <= OLY_LOCAL_FINDS;
}

/* Which part of the result each device computes. */
static oly_layout result_layout(oly_planner *p, oly_frame *f, const oly_node *n, const oly_factors *fs)
{
    const oly_choice *choice = oly_value_of(f, n)->choice;
    oly_layout l = oly_node_layout(p, f, n), natural;
    if (choice)
        return oly_axes_layout(p, n, choice->wanted);
    bool has_natural = oly_natural_layout(f, n->in[0], &natural) && natural.mesh == p->mesh;
    oly_axis_list lost[2 * OLY_MAX_RANK];
    int n_lost = 0;
    for (int d = 0; d < l.rank; d++) {
        int factor = factor_of(&fs->result[d]);
        if (factor >= 0 && fs->kind[factor] != OLY_FACTOR_WHOLE)
            continue;
        if (l.split[d].parts > 1)
            lost[n_lost++] = l.split[d].axes;
        l.split[d] = oly_split_whole(l.shape[d]);
    }
    for (int d = 0; has_natural && d < natural.rank; d++) {
        int factor = factor_of(&fs->operand[0][d]), e = factor < 0 ? -1 : result_dimension(n, fs, factor);
        if (e < 0 || fs->kind[factor] == OLY_FACTOR_WHOLE)
            lost[n_lost++] = natural.split[d].axes;
        else if (natural.shape[d] == l.shape[e] && oly_axis_list_equal(&natural.split[d].axes, &l.split[e].axes))
            l.split[e] = natural.split[d]; /* with the operand's cuts */
    }
    for (int k = 0; k < n_lost && works_lines(n); k++)
        rehouse(n, fs, &lost[k], &l);
    return l;
}

/* The part of operand k that a part of the result needs. */
static oly_layout operand_layout(const oly_node *n, const oly_factors *fs, int k, const oly_layout *out)
{
    const oly_type *x = &n->in[k]->type;
    oly_layout l = {.mesh = out->mesh, .rank = x->rank};
    for (int d = 0; d < x->rank; d++) {
        int factor = k < fs->n_operands ? factor_of(&fs->operand[k][d]) : -1;
        int e = factor < 0 ? -1 : result_dimension(n, fs, factor);
        l.shape[d] = x->shape[d];
        l.split[d] = e >= 0 && out->shape[e] == l.shape[d] ? out->split[e] : oly_split_whole(l.shape[d]);
    }
    return l;
}

/* -- arguments of each device -------------------------------------------------------------------------------------- */

static oly_local_operand operand_of(oly_dtype dtype, const oly_layout *l, const oly_region *region, int position)
{
    oly_box b = region ? oly_region_box(region, l->shape, position) : oly_layout_box(l, position);
    oly_local_operand x = {.dtype = dtype, .rank = l->rank};
    int64_t stride = 1;
    for (int d = l->rank - 1; d >= 0; d--) {
        x.size[d] = l->shape[d];
        x.origin[d] = b.lo[d];
        x.extent[d] = b.hi[d] - b.lo[d];
        x.stride[d] = stride;
        stride *= x.extent[d];
    }
    return x;
}

/* Which part of the processed dimension the device has. */
static int part_at(const oly_local_step *s, int position)
{
    const oly_layout *x = &s->in[0];
    int coordinates[OLY_MAX_RANK], d = s->node->params.dimension;
    oly_mesh_coordinates(x->mesh, position, coordinates);
    return d < x->rank ? oly_split_part_at(&x->split[d], x->mesh, coordinates) : 0;
}

/* Of partial results that are summed, only one may start from operand 0 where all devices hold the same: that of the
 * first device. */
static bool begins_empty(const oly_local_step *s, int position)
{
    int coordinates[OLY_MAX_RANK];
    oly_mesh_coordinates(s->out.mesh, position, coordinates);
    for (int k = 0; k < s->over.n && !s->joins; k++)
        if (coordinates[s->over.axis[k]] > 0 && !uses_axis(&s->in[0], s->over.axis[k]))
            return true;
    return false;
}

/* The position `further` along the axes, where operand 0 is read. */
static int position_read(const oly_local_step *s, int position)
{
    int coordinates[OLY_MAX_RANK], number = 0, parts = 1;
    if (s->along.n == 0)
        return position;
    oly_mesh_coordinates(s->out.mesh, position, coordinates);
    for (int k = 0; k < s->along.n; k++) {
        int size = s->out.mesh->size[s->along.axis[k]];
        number = number * size + coordinates[s->along.axis[k]];
        parts *= size;
    }
    number = (number + s->further) % parts;
    for (int k = s->along.n - 1; k >= 0; k--) {
        int size = s->out.mesh->size[s->along.axis[k]];
        coordinates[s->along.axis[k]] = number % size;
        number /= size;
    }
    return oly_mesh_position(s->out.mesh, coordinates);
}

/* The device of this process that is there. */
static int device_at(const oly_planner *p, const oly_local_step *s, int position)
{
    int d = 0;
    while (oly_position_in(p, s->out.mesh, d) != position)
        d++;
    return d;
}

static oly_status fill_device(oly_planner *p, const oly_local_step *s, int device, oly_local_work *w)
{
    const oly_params *q = &s->node->params;
    int position = oly_position_in(p, s->out.mesh, device);
    w->scratch_base = -1;
    if (position < 0)
        return OLY_OK;
    oly_local_operand *operands = OLY_PLAN_NEW(p, oly_local_operand, s->n_in);
    oly_place *in = OLY_PLAN_NEW(p, oly_place, s->n_in);
    OLY_PLAN_CHECK(operands);
    OLY_PLAN_CHECK(in);
    for (int k = 0; k < s->n_in; k++) {
        int from = k == 0 ? position_read(s, position) : position;
        operands[k] = operand_of(s->dtype[k], &s->in[k], s->in_region[k], from);
        in[k] = s->reading[k].place[from == position ? device : device_at(p, s, from)];
        memcpy(operands[k].stride, in[k].stride, sizeof operands[k].stride);
    }
    if (begins_empty(s, position))
        memset(operands[0].extent, 0, sizeof operands[0].extent);
    oly_local_task *t = &w->task;
    *t = (oly_local_task){.op = s->op,
                          .n_in = s->n_in,
                          .in = operands,
                          .out = operand_of(s->out_dtype, &s->out, s->out_region, position),
                          .dimension = q->dimension,
                          .reverse = q->reverse || s->reverse,
                          .n_batch = q->n_batch,
                          .n_axes = q->n_axes,
                          .mode = (oly_index_mode)q->index_mode,
                          .partial = s->partial,
                          .keeps = s->along.n > 0,
                          .part = part_at(s, position)};
    memcpy(t->axes, q->axes, sizeof t->axes);
    w->in = in;
    w->out_base = oly_cell(p->plan, device, s->slot);
    w->has_work = true;
    for (int d = 0; d < t->out.rank; d++)
        w->has_work = w->has_work && t->out.extent[d] > 0;
    oly_slot *scratch = &p->plan->slots[s->scratch];
    scratch->device_bytes[device] = oly_local_scratch(t);
    if (scratch->device_bytes[device] > scratch->bytes)
        scratch->bytes = scratch->device_bytes[device];
    if (scratch->device_bytes[device])
        w->scratch_base = oly_cell(p->plan, device, s->scratch);
    return OLY_OK;
}

oly_status oly_local_step_add(oly_planner *p, oly_frame *f, oly_local_step *s)
{
    oly_local_work *work = OLY_PLAN_NEW(p, oly_local_work, p->plan->n_devices);
    s->scratch = oly_slot_new(p, NULL, 0);
    OLY_PLAN_CHECK(s->scratch >= 0 ? work : NULL);
    p->plan->slots[s->scratch].block = f->block;
    double total = 0;
    for (int d = 0; d < p->plan->n_devices; d++) {
        OLY_TRY(fill_device(p, s, d, &work[d]));
        if (!work[d].in)
            continue;
        total += oly_local_work_of(&work[d].task) / oly_axis_list_parts(p->mesh, &s->along);
    }
    for (int k = 0; k < s->n_in; k++)
        oly_reading_use(p, &s->reading[k]);
    oly_step *step = oly_step_add(p, f->block, OLY_STEP_LOCAL, s->node, s->what);
    OLY_PLAN_CHECK(step);
    step->local.device = work;
    step->work = total;
    step->replicated = s->replicated && !s->partial && !s->joins;
    oly_slot_use(p, s->scratch);
    oly_slot_use(p, s->slot);
    return OLY_OK;
}

oly_local_step *oly_local_step_new(oly_planner *p, const oly_node *n, const oly_layout *out)
{
    oly_local_step *s = OLY_PLAN_NEW(p, oly_local_step, 1);
    if (!s)
        return NULL;
    s->node = n;
    s->op = (oly_local_op)oly_ops[n->op].detail;
    s->what = oly_ops[n->op].name;
    s->n_in = n->n_in;
    for (int k = 0; k < n->n_in; k++)
        s->dtype[k] = n->in[k]->type.dtype;
    s->out = *out;
    s->out_dtype = n->type.dtype;
    return s;
}

/* Is it a scatter's updates, each of one element? */
static bool are_single_updates(const oly_local_step *s, int k)
{
    return way_of(s->node) == OLY_LOCAL_WRITES && s->op != OLY_LOCAL_DYNAMIC_UPDATE && k == s->n_in - 1 &&
           s->node->in[k]->type.rank == s->node->in[1]->type.rank;
}

/* Updates that are one number (counts) are read where that is. */
static oly_status read_operand(oly_planner *p, oly_frame *f, oly_local_step *s, int k)
{
    oly_region r = oly_region_of_layout(&s->in[k]);
    if (!are_single_updates(s, k))
        return oly_read_array(p, f, s->node->in[k], &s->in[k], &s->reading[k]);
    OLY_TRY(oly_read_operand(p, f, s->node->in[k], &r, &s->reading[k]));
    return oly_constant_in_memory(p, f, s->in[k].mesh, &s->reading[k]);
}

oly_status oly_local_read_operands(oly_planner *p, oly_frame *f, oly_local_step *s)
{
    for (int k = 0; k < s->node->n_in; k++)
        OLY_TRY(read_operand(p, f, s, k));
    return OLY_OK;
}

/* -- the whole operation ------------------------------------------------------------------------------------------- */

/* The step in which every device computes its part of the result. */
static oly_status whole_step(oly_planner *p, oly_frame *f, const oly_node *n, oly_local_step **s)
{
    oly_factors fs;
    OLY_TRY(oly_factors_of(n, &fs));
    oly_layout out = result_layout(p, f, n, &fs);
    *s = oly_local_step_new(p, n, &out);
    OLY_PLAN_CHECK(*s);
    for (int k = 0; k < n->n_in; k++)
        (*s)->in[k] = operand_layout(n, &fs, k, &out);
    return OLY_OK;
}

oly_status oly_adds_to_sum(oly_planner *p, oly_frame *f, const oly_node *n, bool *adds)
{
    oly_layout l;
    oly_local_step *s;
    *adds = oly_ops[n->op].lowering == OLY_LOWER_LOCAL && oly_ops[n->op].detail == OLY_LOCAL_SCATTER_ADD &&
            oly_value_of(f, n->in[0])->waits;
    for (int k = 1; k < n->n_in; k++)
        *adds = *adds && (oly_is_constant(n->in[k]) ||
                          (oly_natural_layout(f, n->in[k], &l) && !oly_value_of(f, n->in[k])->waits));
    if (!*adds)
        return OLY_OK;
    OLY_TRY(whole_step(p, f, n, &s));
    *adds = oly_scatter_joins(p, f, s);
    return OLY_OK;
}

static bool is_number(const oly_node *n)
{
    while (oly_ops[n->op].lowering == OLY_LOWER_VIEW)
        n = n->in[0];
    return oly_is_constant(n);
}

/* The result begins as a number that has no memory: it is written where the result will be. *done: that was so. */
static oly_status begin_with_number(oly_planner *p, oly_frame *f, const oly_node *n, oly_local_step *s, bool *done)
{
    oly_reading first = {0};
    oly_region r = oly_region_of_layout(&s->in[0]);
    *done = false;
    if (!oly_local_writes_parts(n) || !oly_layout_equal(&s->in[0], &s->out) ||
        !oly_enabled(OLY_OPTIMISATION_IN_PLACE_UPDATE) || !is_number(n->in[0]))
        return OLY_OK;
    OLY_TRY(oly_read_operand(p, f, n->in[0], &r, &first));
    if (!first.constant)
        return OLY_OK;
    for (int k = 1; k < n->n_in; k++)
        OLY_TRY(read_operand(p, f, s, k));
    OLY_TRY(oly_settle(p, f, n, &s->out));
    int slot = oly_value_of(f, n)->slot;
    OLY_TRY(oly_fill(p, f, first.constant, n, &s->out, slot));
    *done = true;
    return oly_read_slot(p, &s->out, slot, &s->reading[0]);
}

/* Where the result is, and the operands, which are read. */
static oly_status place_all(oly_planner *p, oly_frame *f, const oly_node *n, oly_local_step *s)
{
    oly_value *v = oly_value_of(f, n);
    bool done, in_place = false;
    if (oly_local_writes_parts(n))
        OLY_TRY(oly_may_overwrite(p, f, n, &s->out, &in_place));
    if (!in_place) {
        OLY_TRY(begin_with_number(p, f, n, s, &done));
        if (done)
            return OLY_OK;
    }
    OLY_TRY(oly_local_read_operands(p, f, s));
    if (!in_place)
        return oly_settle(p, f, n, &s->out);
    OLY_TRY(oly_set_layout(p, v, &s->out));
    v->block = f->block;
    v->slot = oly_value_of(f, n->in[0])->slot;
    return OLY_OK;
}

oly_status oly_lower_local(oly_planner *p, oly_frame *f, oly_node *n)
{
    oly_local_step *s;
    bool done = false;
    if (oly_value_of(f, n)->slot >= 0)
        return OLY_OK; /* computed together with another sort by the same keys (lower_sort.c) */
    OLY_TRY(whole_step(p, f, n, &s));
    OLY_TRY(oly_lower_counted(p, f, n, s, &done));
    if (done)
        return OLY_OK;
    OLY_TRY(oly_lower_partial(p, f, n, s, &done));
    if (done)
        return OLY_OK;
    if (oly_local_writes_parts(n))
        OLY_TRY(oly_reduce_now(p, f, n->in[0]));
    OLY_TRY(place_all(p, f, n, s));
    s->replicated = true;
    for (int k = 0; k < n->n_in; k++)
        s->replicated = s->replicated && !oly_value_of(f, n->in[k])->waits;
    s->slot = oly_value_of(f, n)->slot;
    return oly_local_step_add(p, f, s);
}
