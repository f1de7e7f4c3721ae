/* SPDX-License-Identifier: BSD-3-Clause */
/* Lowering of functions of the program (graph/call.h). The index space of their factors is split: factors of results as propagated,
 * factors that only operands have as these are placed, then partial results are reduced. Every device gets the blocks of its part,
 * extended where the function asks for a halo: the region that it reads, as of any operand. Nodes that are results of one call are
 * lowered together, in one step. */
#include "plan/lower/lower.h"
#include "graph/call.h"
#include <stdio.h>
#include <string.h>

typedef struct calling {
    oly_planner *p;
    oly_frame *f;
    const oly_node *node;
    const oly_user_call *call;
    int n_in, lead;
    oly_node *result[OLY_CALL_MOST]; /* NULL: nobody reads it */
    oly_split batch[OLY_MAX_RANK], once, factor[26];
    bool has_factor[26];
    int64_t size[26];
    oly_axis_list used;
    oly_region region[OLY_CALL_MOST + OLY_MAX_RANK];
    oly_reading reading[OLY_CALL_MOST + OLY_MAX_RANK];
    oly_layout out[OLY_CALL_MOST];
    int slot[OLY_CALL_MOST], scratch;
    double work, bytes;
} calling;

/* -- the results of one call --------------------------------------------------------------------------------------- */

static bool same_call(const oly_node *a, const oly_node *b)
{
    return a->op == b->op && a->params.call_number == b->params.call_number && a->n_in == b->n_in &&
           memcmp(a->in, b->in, sizeof *a->in * (size_t)a->n_in) == 0;
}

static void find_results(calling *c)
{
    const oly_graph *g = c->f->graph;
    for (int k = 0; k < g->n_nodes; k++)
        if (oly_ops[g->nodes[k]->op].lowering == OLY_LOWER_CALL && same_call(g->nodes[k], c->node))
            c->result[g->nodes[k]->params.dimension] = g->nodes[k];
}

/* -- how the index space is split ---------------------------------------------------------------------------------- */

static bool has_axis(const oly_axis_list *l, int axis)
{
    for (int k = 0; k < l->n; k++)
        if (l->axis[k] == axis)
            return true;
    return false;
}

/* The axes of the list that are free, which are then taken. */
static oly_axis_list take(calling *c, const oly_axis_list *axes)
{
    oly_axis_list taken = {0};
    for (int k = 0; k < axes->n; k++)
        if (!has_axis(&c->used, axes->axis[k])) {
            taken.axis[taken.n++] = axes->axis[k];
            c->used.axis[c->used.n++] = axes->axis[k];
        }
    return taken;
}

/* Where a node is cut now, if it is in memory over the plan's mesh. */
static bool cuts_of(const calling *c, oly_node *n, oly_layout *l)
{
    return oly_natural_layout(c->f, n, l) && l->mesh == c->p->mesh;
}

static void split_batch(calling *c)
{
    for (int b = 0; b < c->lead; b++) {
        bool parallel = c->node->params.mapped >> b & 1 || !c->call->host;
        oly_axis_list axes = {0};
        for (int k = 0; parallel && k < c->n_in && axes.n == 0; k++) {
            oly_layout l;
            if (!oly_is_constant(c->node->in[k]))
                axes = oly_node_layout(c->p, c->f, c->node->in[k]).split[b].axes;
            if (axes.n == 0 && cuts_of(c, c->node->in[k], &l))
                axes = l.split[b].axes;
        }
        axes = take(c, &axes);
        c->batch[b] = oly_split_canonical(c->p->mesh, &axes, c->node->in[0]->type.shape[b]);
    }
}

/* A dimension that a function names: split as the node is, with the cuts of an operand in memory that has the same axes. */
static void split_factor(calling *c, int k, const oly_axis_list *wanted)
{
    oly_axis_list axes = take(c, wanted);
    c->factor[k] = oly_split_canonical(c->p->mesh, &axes, c->size[k]);
    c->has_factor[k] = true;
    for (int j = 0; j < c->n_in && j < c->call->n_in; j++)
        for (int d = 0; d < c->call->in[j].rank; d++) {
            oly_layout l;
            if (c->call->in[j].letter[d] == 'a' + k && cuts_of(c, c->node->in[j], &l) &&
                oly_axis_list_equal(&l.split[c->lead + d].axes, &axes) && l.shape[c->lead + d] == c->size[k]) {
                c->factor[k] = l.split[c->lead + d];
                return;
            }
        }
}

static bool splits(const calling *c, char letter)
{
    return letter >= 'a' && letter <= 'z' && !(c->call->whole >> (letter - 'a') & 1);
}

/* Those that are never split. */
static void keep_whole(calling *c)
{
    for (int j = 0; j < c->call->n_in; j++)
        for (int d = 0; d < c->call->in[j].rank; d++) {
            int k = c->call->in[j].letter[d] - 'a';
            if (k < 0 || k >= 26 || !(c->call->whole >> k & 1))
                continue;
            c->size[k] = c->node->in[j]->type.shape[c->lead + d];
            c->factor[k] = oly_split_whole(c->size[k]);
            c->has_factor[k] = true;
        }
}

static void split_factors(calling *c)
{
    keep_whole(c);
    for (int r = 0; r < c->call->n_out; r++) {
        const oly_call_operand *x = &c->call->out[r];
        oly_layout l;
        if (c->result[r])
            l = oly_node_layout(c->p, c->f, c->result[r]);
        for (int d = 0; c->result[r] && d < x->rank; d++)
            if (splits(c, x->letter[d]) && !c->has_factor[x->letter[d] - 'a']) {
                c->size[x->letter[d] - 'a'] = x->type.shape[d];
                split_factor(c, x->letter[d] - 'a', &l.split[c->lead + d].axes);
            }
    }
    for (int j = 0; j < c->call->n_in; j++) { /* those of operands only */
        const oly_call_operand *x = &c->call->in[j];
        oly_layout l = oly_node_layout(c->p, c->f, c->node->in[j]);
        for (int d = 0; d < x->rank; d++) {
            if (!splits(c, x->letter[d]) || c->has_factor[x->letter[d] - 'a'])
                continue;
            c->size[x->letter[d] - 'a'] = c->node->in[j]->type.shape[c->lead + d];
            split_factor(c, x->letter[d] - 'a', &l.split[c->lead + d].axes);
        }
    }
}

/* Of a single element: on one of the devices that have the same part of everything else. */
static void split_once(calling *c)
{
    oly_axis_list all = {0};
    for (int a = 0; a < c->p->mesh->n_axes; a++)
        all.axis[all.n++] = (uint8_t)a;
    oly_axis_list rest = take(c, &all);
    c->once = oly_split_canonical(c->p->mesh, &rest, 1);
}

static oly_split split_of(const calling *c, char letter, int64_t size)
{
    if (letter == OLY_CALL_ONCE)
        return c->once;
    return splits(c, letter) && c->has_factor[letter - 'a'] ? c->factor[letter - 'a'] : oly_split_whole(size);
}

static oly_layout layout_of(const calling *c, const oly_call_operand *x, const oly_type *type)
{
    oly_layout l = {.mesh = c->p->mesh, .rank = type->rank};
    memcpy(l.shape, type->shape, sizeof l.shape);
    for (int d = 0; d < type->rank; d++)
        l.split[d] = d < c->lead ? c->batch[d]
                                 : split_of(c, x ? oly_call_letter(x, d - c->lead) : OLY_CALL_WHOLE, type->shape[d]);
    return l;
}

/* Operand k; one that is taken as it lies is split as it is now. */
static oly_layout operand_layout(const calling *c, int k)
{
    oly_node *n = c->node->in[k];
    const oly_call_operand *x = k < c->call->n_in ? &c->call->in[k] : NULL;
    oly_layout l;
    if (!x || oly_call_letter(x, 0) != OLY_CALL_AS_IT_LIES)
        return layout_of(c, x, &n->type);
    return cuts_of(c, n, &l) ? l : oly_node_layout(c->p, c->f, n);
}

/* -- operands ------------------------------------------------------------------------------------------------------ */

static oly_status read_operand(calling *c, int k)
{
    const oly_node *n = c->node->in[k];
    const oly_call_operand *x = k < c->call->n_in ? &c->call->in[k] : NULL;
    oly_layout l = operand_layout(c, k);
    oly_region *r = &c->region[k];
    oly_region_from_layout(r, &l);
    for (int d = 0; x && d < x->rank; d++) {
        oly_region_dim *e = &r->dim[c->lead + d];
        e->lo -= x->before[d];
        e->hi += x->after[d];
        e->wraps = (x->before[d] || x->after[d]) && x->wraps >> d & 1;
    }
    OLY_TRY(oly_read_operand(c->p, c->f, n, r, &c->reading[k]));
    return oly_constant_in_memory(c->p, c->f, c->p->mesh, &c->reading[k]);
}

static void describe(const oly_type *type, const oly_box *b, oly_shard_part *part)
{
    *part = (oly_shard_part){.dtype = type->dtype, .rank = type->rank};
    oly_contiguous_strides(b, part->stride);
    for (int d = 0; d < type->rank; d++) {
        part->shape[d] = b->hi[d] - b->lo[d];
        part->origin[d] = b->lo[d];
        part->whole[d] = type->shape[d];
    }
}

/* How much of the box is the halo. Where that continues beyond the edges of the array, the part becomes larger than the box. */
static bool describe_halo(const calling *c, int k, int position, oly_shard_part *part, int64_t (*fill)[OLY_MAX_RANK])
{
    const oly_call_operand *x = k < c->call->n_in ? &c->call->in[k] : NULL;
    oly_layout l = operand_layout(c, k);
    oly_box own = oly_layout_shard(&l, position);
    bool filled = false;
    for (int d = 0; d < part->rank; d++) {
        int e = d - c->lead;
        part->before[d] = own.lo[d] - part->origin[d];
        part->after[d] = part->origin[d] + part->shape[d] - own.hi[d];
        if (!x || e < 0 || e >= x->rank || !((x->zero | x->nearest) >> e & 1) || oly_box_count(&own) == 0)
            continue;
        fill[0][d] = x->before[e] - part->before[d];
        fill[1][d] = x->after[e] - part->after[d];
        filled = filled || fill[0][d] || fill[1][d];
        part->before[d] = x->before[e];
        part->after[d] = x->after[e];
        part->origin[d] -= fill[0][d];
        part->shape[d] += fill[0][d] + fill[1][d];
    }
    return filled;
}

static bool is_empty(const oly_shard_part *part)
{
    for (int d = 0; d < part->rank; d++)
        if (part->shape[d] == 0)
            return true;
    return false;
}

/* Are the dimensions of its own, after the batch's, row by row without gaps? */
static bool is_dense(const oly_shard_part *part, int lead, const int64_t *stride)
{
    int64_t expected = 1;
    for (int d = part->rank - 1; d >= lead; d--) {
        if (part->shape[d] != 1 && stride[d] != expected)
            return false;
        expected *= part->shape[d];
    }
    return true;
}

static int64_t elements(const oly_shard_part *part, int first)
{
    int64_t n = 1;
    for (int d = first; d < part->rank; d++)
        n *= part->shape[d];
    return n;
}

enum { ALIGNMENT = 64 };
static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Points of the index space of the device's part. */
static double points(const calling *c, int position)
{
    int coordinates[OLY_MAX_RANK];
    double n = 1;
    oly_mesh_coordinates(c->p->mesh, position, coordinates);
    for (int k = 0; k < 26 + c->lead; k++) {
        const oly_split *s = k < 26 ? &c->factor[k] : &c->batch[k - 26];
        int64_t size = k < 26 ? c->size[k] : c->node->in[0]->type.shape[k - 26];
        if (k < 26 && !c->has_factor[k])
            continue;
        int part = oly_split_part_at(s, c->p->mesh, coordinates);
        n *= (double)(oly_split_cut(s, size, part + 1) - oly_split_cut(s, size, part));
    }
    return n;
}

/* -- devices ------------------------------------------------------------------------------------------------------- */

/* Does this device make the call? */
static bool takes_part(const calling *c, int device, int position)
{
    if (c->call->locally && !c->call->gathers && c->p->mesh->everywhere && oly_mesh_processes() > 1 &&
        oly_mesh_first_local() != 0)
        return false;
    for (int d = 0; c->call->agreed && d < device; d++)
        if (oly_position_in(c->p, c->p->mesh, d) >= 0)
            return false;
    return position >= 0;
}

static oly_status fill_operands(calling *c, int device, int position, oly_call_work *w, size_t *bytes)
{
    oly_shard_part *in = OLY_PLAN_NEW(c->p, oly_shard_part, c->n_in + 1);
    oly_place *place = OLY_PLAN_NEW(c->p, oly_place, c->n_in + 1);
    size_t *packed = OLY_PLAN_NEW(c->p, size_t, c->n_in + 1);
    int64_t(*fill)[2][OLY_MAX_RANK] = oly_arena_take(&c->p->plan->arena, sizeof *fill * (size_t)(c->n_in + 1));
    OLY_PLAN_CHECK(in && place && packed ? fill : NULL);
    for (int k = 0; k < c->n_in; k++) {
        const oly_type *type = &c->node->in[k]->type;
        oly_box b = oly_region_box(&c->region[k], type->shape, position);
        oly_layout own = operand_layout(c, k);
        if (oly_box_count(&b) == 0) /* of parts without elements, too, functions are told the extents */
            b = oly_layout_shard(&own, position);
        describe(type, &b, &in[k]);
        bool filled = describe_halo(c, k, position, &in[k], fill[k]);
        place[k] = c->reading[k].place[device];
        bool strided = k < c->call->n_in && c->call->in[k].strided;
        c->bytes += (double)elements(&in[k], 0) * (double)oly_dtype_size(type->dtype);
        if (place[k].base >= 0 && (filled || (!strided && !is_dense(&in[k], c->lead, place[k].stride)))) {
            packed[k] = *bytes + 1;
            *bytes += aligned((size_t)elements(&in[k], c->lead) * oly_dtype_size(type->dtype));
        }
        if (place[k].base >= 0)
            memcpy(in[k].stride, place[k].stride, sizeof in[k].stride);
        w->has_work = w->has_work && (k >= c->call->n_in || !is_empty(&in[k]) || c->call->n_out > 0);
    }
    w->in = in;
    w->in_place = place;
    w->packed = packed;
    w->fill = (const int64_t(*)[2][OLY_MAX_RANK])fill;
    return OLY_OK;
}

static oly_status fill_results(calling *c, int device, int position, oly_call_work *w)
{
    oly_shard_part *out = OLY_PLAN_NEW(c->p, oly_shard_part, c->call->n_out + 1);
    int *base = OLY_PLAN_NEW(c->p, int, c->call->n_out + 1);
    bool any = c->call->n_out == 0; /* one result may be empty, and others not */
    OLY_PLAN_CHECK(out ? base : NULL);
    for (int r = 0; r < c->call->n_out; r++) {
        oly_type type = c->call->out[r].type;
        oly_box b = oly_layout_shard(&c->out[r], position);
        type.rank = c->out[r].rank;
        memcpy(type.shape, c->out[r].shape, sizeof type.shape);
        describe(&type, &b, &out[r]);
        base[r] = oly_cell(c->p->plan, device, c->slot[r]);
        c->bytes += (double)elements(&out[r], 0) * (double)oly_dtype_size(type.dtype);
        any = any || !is_empty(&out[r]);
    }
    w->has_work = w->has_work && any;
    w->out = out;
    w->out_base = base;
    return OLY_OK;
}

/* Has the device the part of size 1 of what is called once? */
static bool has_the_one(const calling *c, int position)
{
    int coordinates[OLY_MAX_RANK];
    oly_mesh_coordinates(c->p->mesh, position, coordinates);
    int part = oly_split_part_at(&c->once, c->p->mesh, coordinates);
    return oly_split_cut(&c->once, 1, part + 1) > oly_split_cut(&c->once, 1, part);
}

static bool is_once(const oly_user_call *call)
{
    for (int k = 0; k < call->n_in; k++)
        if (oly_call_letter(&call->in[k], 0) == OLY_CALL_ONCE)
            return true;
    return call->n_out > 0 && oly_call_letter(&call->out[0], 0) == OLY_CALL_ONCE;
}

static oly_status fill_device(calling *c, int device, oly_call_work *w)
{
    int position = oly_position_in(c->p, c->p->mesh, device);
    size_t bytes = 0;
    w->scratch_base = -1;
    if (!takes_part(c, device, position))
        return OLY_OK;
    w->has_work = !is_once(c->call) || has_the_one(c, position);
    OLY_TRY(fill_operands(c, device, position, w, &bytes));
    OLY_TRY(fill_results(c, device, position, w));
    if (!w->has_work)
        return OLY_OK;
    double n = points(c, position), per_element = (double)c->call->scratch_per_element * n;
    c->bytes += c->call->moved * n;
    c->work += c->call->flops > 0 ? c->call->flops * n : n;
    w->scratch = bytes;
    oly_slot *s = &c->p->plan->slots[c->scratch];
    s->device_bytes[device] = bytes + c->call->scratch + (size_t)per_element;
    s->bytes = s->device_bytes[device] > s->bytes ? s->device_bytes[device] : s->bytes;
    if (s->device_bytes[device])
        w->scratch_base = oly_cell(c->p->plan, device, c->scratch);
    return OLY_OK;
}

/* -- the step ------------------------------------------------------------------------------------------------------ */

/* Memory for the results; of those that nobody reads only while the function runs. */
static oly_status settle(calling *c)
{
    for (int r = 0; r < c->call->n_out; r++) {
        oly_type type = c->call->out[r].type;
        memmove(type.shape + c->lead, type.shape, sizeof *type.shape * (size_t)type.rank);
        memcpy(type.shape, c->node->in[0]->type.shape, sizeof *type.shape * (size_t)c->lead);
        type.rank += c->lead;
        c->out[r] = layout_of(c, &c->call->out[r], &type);
        if (c->result[r]) {
            OLY_TRY(oly_settle(c->p, c->f, c->result[r], &c->out[r]));
            c->slot[r] = oly_value_of(c->f, c->result[r])->slot;
            continue;
        }
        oly_region region = oly_region_of_layout(&c->out[r]);
        c->slot[r] = oly_slot_new(c->p, &region, oly_dtype_size(type.dtype));
        OLY_PLAN_CHECK(c->slot[r] >= 0 ? c : NULL);
        c->p->plan->slots[c->slot[r]].block = c->f->block;
    }
    if (c->call->n_out == 0) { /* the value that stands for the call */
        oly_layout l = layout_of(c, NULL, &c->node->type);
        OLY_TRY(oly_settle(c->p, c->f, c->node, &l));
    }
    return OLY_OK;
}

/* ", i over x, k over y": how the factors are split. */
static const char *axes_text(const calling *c)
{
    char text[512] = "";
    size_t at = 0;
    for (int k = 0; k < 26; k++)
        for (int a = 0; c->has_factor[k] && a < c->factor[k].axes.n && at + 48 < sizeof text; a++) {
            const char *axis = c->p->mesh->name[c->factor[k].axes.axis[a]];
            at += (size_t)(a ? snprintf(text + at, sizeof text - at, " and %s", axis)
                             : snprintf(text + at, sizeof text - at, ", %c over %s", 'a' + k, axis));
        }
    return oly_plan_say(c->p, "%s", text);
}

static oly_status add_step(calling *c)
{
    oly_planner *p = c->p;
    oly_call_work *work = OLY_PLAN_NEW(p, oly_call_work, p->plan->n_devices + 1);
    c->scratch = oly_slot_new(p, NULL, 0);
    OLY_PLAN_CHECK(c->scratch >= 0 ? work : NULL);
    p->plan->slots[c->scratch].block = c->f->block;
    for (int d = 0; d < p->plan->n_devices; d++)
        OLY_TRY(fill_device(c, d, &work[d]));
    for (int k = 0; k < c->n_in; k++)
        oly_reading_use(p, &c->reading[k]);
    oly_step *s = oly_step_add(p, c->f->block, OLY_STEP_CALL, c->node, oly_call_name(c->call));
    OLY_PLAN_CHECK(s);
    s->call.call = c->call;
    s->call.device = work;
    s->call.n_in = c->n_in;
    s->call.n_lead = c->lead;
    s->call.bytes = c->bytes;
    if (*oly_call_text(c->call) && !c->call->effect)
        s->detail = oly_plan_say(p, "%s%s", oly_call_text(c->call), axes_text(c));
    s->work = c->work;
    oly_slot_use(p, c->scratch);
    for (int r = 0; r < c->call->n_out; r++)
        oly_slot_use(p, c->slot[r]);
    if (c->call->n_out == 0)
        oly_slot_use(p, oly_value_of(c->f, c->node)->slot);
    return OLY_OK;
}

/* The axes of factors that result r lacks: devices along them have partial results. */
static oly_axis_list summed_by(const calling *c, int r)
{
    oly_axis_list axes = {0};
    for (int k = 0; k < 26; k++)
        if (c->has_factor[k] && !memchr(c->call->out[r].letter, 'a' + k, (size_t)c->call->out[r].rank))
            oly_append_axes(&axes, &c->factor[k].axes);
    return axes;
}

static oly_status lower(calling *c)
{
    find_results(c);
    split_batch(c);
    split_factors(c);
    split_once(c);
    for (int k = 0; k < c->n_in; k++)
        OLY_TRY(read_operand(c, k));
    OLY_TRY(settle(c));
    OLY_TRY(add_step(c));
    for (int r = 0; r < c->call->n_out; r++) {
        oly_reduction_rule rule = {c->call->out[r].combiner, false};
        oly_axis_list summed = summed_by(c, r);
        if (c->result[r])
            OLY_TRY(oly_place_reduction(c->p, c->f, c->result[r], &rule, &summed));
    }
    return OLY_OK;
}

oly_status oly_lower_call(oly_planner *p, oly_frame *f, oly_node *n)
{
    if (oly_value_of(f, n)->slot >= 0)
        return OLY_OK;                        /* with another result of the call */
    calling *c = OLY_PLAN_NEW(p, calling, 1); /* large */
    OLY_PLAN_CHECK(c);
    c->p = p;
    c->f = f;
    c->node = n;
    c->call = n->params.call;
    c->n_in = n->n_in;
    c->lead = n->params.n_batch;
    if (n->params.muted && n->params.call->effect && n->params.call->n_out > 0)
        return oly_fail(
            OLY_INVALID,
            "the derivative of a loop or branch needs the results of %s once more, which has effects and is not called "
            "twice; put oly_stop_gradient around its results' uses, or declare the callback as pure",
            oly_call_name(n->params.call));
    return lower(c);
}
