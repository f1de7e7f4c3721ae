/* SPDX-License-Identifier: BSD-3-Clause */
/* Batching, node by node. See batch.h; the rules are in batch_shape.c, batch_collective.c and batch_loop.c. */
#include "transform/batch_rules.h"
#include "graph/build.h"
#include <string.h>

/* -- what rules build with ----------------------------------------------------------------------------------------- */

static oly_status too_many(const oly_type *own, int lead)
{
    return oly_fail(OLY_SHAPE,
                    "%s inside of a mapped function would have %d dimensions with its %d mapped ones; arrays have "
                    "at most %d, merge some with oly_reshape",
                    oly_type_short(own), own->rank + lead, lead, OLY_MAX_RANK);
}

static bool has_auto_axis(oly_mesh mesh)
{
    return (mesh->explicit_axes | mesh->manual_axes) != (1u << mesh->n_axes) - 1;
}

static uint32_t bits_of(const oly_axis_list *list)
{
    uint32_t axes = 0;
    for (int k = 0; k < list->n; k++)
        axes |= 1u << list->axis[k];
    return axes;
}

static uint32_t used_by(const oly_spec *spec)
{
    uint32_t axes = spec->unreduced | spec->reduced;
    for (int d = 0; d < spec->n_dims; d++)
        axes |= bits_of(&spec->dim[d]);
    return axes;
}

/* vmap: the batch is split as the types of the mapped values say, and the planner may split it further. On the devices of a shard_map
 * inside, which have its parts, it is not if a value differs between them. */
static void split_batch(const oly_batch *b, uint32_t named, oly_sharding own, oly_spec *spec)
{
    uint32_t split = bits_of(&b->axes->split);
    bool explicit_split = (own->mesh->explicit_axes & split) == split;
    bool splits = split && (named & split) == split && oly_mesh_same_grid(own->mesh, b->axes->split_mesh) &&
                  (explicit_split || !(used_by(&own->spec) & split));
    if (splits)
        spec->dim[spec->n_dims] = b->axes->split;
    if (has_auto_axis(own->mesh) && !(splits && !explicit_split))
        spec->open |= 1u << spec->n_dims;
}

oly_sharding oly_batch_sharding(const oly_batch *b, uint32_t axes, uint32_t named, oly_sharding own)
{
    oly_mesh mesh = !b->axes->mesh && own ? own->mesh : b->axes->mesh;
    oly_spec spec = {0};
    for (int a = 0; a < OLY_MAX_RANK; a++)
        if (axes >> a & 1) {
            if (b->axes->mesh && named >> a & 1)
                spec.dim[spec.n_dims] = (oly_axis_list){.n = 1, .axis = {(uint8_t)a}};
            if (!b->axes->mesh && own)
                split_batch(b, named, own, &spec);
            spec.n_dims++;
        }
    if (own) {
        spec.open |= own->spec.open << spec.n_dims;
        for (int d = 0; d < own->spec.n_dims && spec.n_dims < OLY_MAX_RANK; d++)
            spec.dim[spec.n_dims++] = own->spec.dim[d];
        spec.unreduced = own->spec.unreduced;
        spec.reduced = own->spec.reduced;
    }
    return oly_sharding_intern(mesh, &spec, spec.n_dims);
}

oly_status oly_batch_shape(oly_lifted x, bool part, oly_params *p)
{
    int lead = oly_batch_lead(x.axes);
    oly_type own = {.dtype = x.node->type.dtype, .rank = p->rank};
    memcpy(own.shape, p->shape, sizeof own.shape);
    if (p->rank + lead > OLY_MAX_RANK)
        return too_many(&own, lead);
    memmove(&p->shape[lead], p->shape, sizeof *p->shape * (size_t)p->rank);
    memcpy(p->shape, x.node->type.shape, sizeof *p->shape * (size_t)lead);
    if (part) {
        memmove(&p->start[lead], p->start, sizeof *p->start * (size_t)p->rank);
        memmove(&p->step[lead], p->step, sizeof *p->step * (size_t)p->rank);
        for (int d = 0; d < lead; d++) {
            p->start[d] = 0;
            p->step[d] = 1;
        }
    }
    p->rank += lead;
    return OLY_OK;
}

/* A node's placement is that of its own dimensions; the leading ones are split over their axes. An output sharding names Explicit
 * axes only. */
static oly_status shift_sharding(oly_batch *b, oly_op op, uint32_t axes, oly_params *p)
{
    oly_mesh mesh = b->axes->mesh;
    if (!p->sharding || (mesh && !oly_mesh_same_grid(mesh, p->sharding->mesh)))
        return OLY_OK;
    bool whole = op == OLY_OP_place || p->settled;
    if (mesh && p->settled)
        p->settled |= b->axes->all;
    uint32_t named = whole || !mesh ? ~0u : mesh->explicit_axes;
    if (!mesh && p->settled) /* the type keeps the others */
        named = p->settled;
    p->sharding = oly_batch_sharding(b, axes, named, p->sharding);
    return p->sharding ? OLY_OK : OLY_MEMORY;
}

oly_status oly_batch_apply(oly_batch *b, oly_op op, int n, const oly_lifted *in, const oly_params *params,
                           oly_lifted *out)
{
    oly_node *few[16], **nodes = n <= 16 ? few : OLY_ARENA_NEW(&b->into->arena, oly_node *, n);
    if (!nodes)
        return oly_out_of_memory(sizeof *nodes * (size_t)n, "a graph");
    for (int k = 0; k < n; k++)
        nodes[k] = in[k].node;
    out->axes = n ? in[0].axes : 0;
    oly_params p = *params;
    OLY_TRY(shift_sharding(b, op, out->axes, &p));
    return oly_graph_add(b->into, op, n, nodes, &p, &out->node);
}

/* vmap: the sharding of x with the batch, which is split; NULL: the types of the mapped values do not split it, or x is on another mesh,
 * or split over the same axes itself. typed: even if x's type has no mesh. */
static oly_status split_lead(const oly_batch *b, const oly_lifted *x, uint32_t axes, bool typed, oly_sharding *sharding)
{
    oly_type own = {.rank = oly_batch_rank(*x), .mesh = b->axes->split_mesh};
    const oly_type *t = &x->node->type;
    *sharding = NULL;
    if (b->axes->split.n == 0 || (!t->mesh && !typed) || (t->mesh && !oly_mesh_same_grid(t->mesh, b->axes->split_mesh)))
        return OLY_OK;
    if (t->mesh) {
        own.mesh = t->mesh;
        own.unreduced = t->unreduced;
        own.reduced = t->reduced;
        memcpy(own.axes, t->axes + t->rank - own.rank, sizeof *own.axes * (size_t)own.rank);
    }
    oly_sharding alone = oly_type_sharding(&own);
    uint32_t split = bits_of(&b->axes->split);
    if (alone && ((used_by(&alone->spec) | ~own.mesh->explicit_axes) & split))
        return OLY_OK;
    *sharding = alone ? oly_batch_sharding(b, axes, ~0u, alone) : NULL;
    return *sharding ? OLY_OK : OLY_MEMORY;
}

/* A view of x: dimension d of x becomes dimension to[d] of the shape; pinned if the axes are those of a mesh. */
static oly_status view(oly_batch *b, oly_lifted *x, uint32_t axes, bool typed, const int *to, int rank,
                       const int64_t *shape)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.rank = rank;
    memcpy(p.shape, shape, sizeof *shape * (size_t)rank);
    p.n_axes = x->node->type.rank;
    memcpy(p.axes, to, sizeof *to * (size_t)p.n_axes);
    if (b->axes->mesh) {
        p.settled = b->axes->all;
        if (!(p.sharding = oly_batch_sharding(b, axes, ~0u, NULL)))
            return OLY_MEMORY;
    } else
        OLY_TRY(split_lead(b, x, axes, typed, &p.sharding));
    x->axes = axes;
    return oly_graph_add(b->into, OLY_OP_broadcast, 1, &x->node, &p, &x->node);
}

static oly_status vary(oly_batch *b, oly_lifted *x, uint32_t axes, bool typed)
{
    uint32_t all = x->axes | axes;
    int lead = oly_batch_lead(all), own = oly_batch_rank(*x), to[OLY_MAX_RANK], n = 0;
    int64_t shape[OLY_MAX_RANK];
    const oly_type *t = &x->node->type;
    if (all == x->axes)
        return OLY_OK;
    if (lead + own > OLY_MAX_RANK) {
        oly_type local = {.dtype = t->dtype, .rank = own};
        memcpy(local.shape, &t->shape[t->rank - own], sizeof *t->shape * (size_t)own);
        return too_many(&local, lead);
    }
    for (int a = 0; a < OLY_MAX_RANK; a++) {
        if (all >> a & 1)
            shape[oly_batch_place(all, a)] = b->axes->size[a];
        if (x->axes >> a & 1)
            to[n++] = oly_batch_place(all, a);
    }
    for (int d = 0; d < own; d++) {
        shape[lead + d] = t->shape[n];
        to[n++] = lead + d;
    }
    return view(b, x, all, typed, to, lead + own, shape);
}

oly_status oly_batch_vary(oly_batch *b, oly_lifted *x, uint32_t axes)
{
    return vary(b, x, axes, false);
}

oly_status oly_batch_vary_typed(oly_batch *b, oly_lifted *x, uint32_t axes)
{
    return vary(b, x, axes, true);
}

oly_status oly_batch_align(oly_batch *b, int n, oly_lifted *in)
{
    uint32_t all = 0;
    for (int k = 0; k < n; k++)
        all |= in[k].axes;
    for (int k = 0; k < n; k++)
        OLY_TRY(oly_batch_vary(b, &in[k], all));
    return OLY_OK;
}

oly_status oly_batch_pin(oly_batch *b, oly_lifted *x)
{
    int to[OLY_MAX_RANK];
    for (int d = 0; d < x->node->type.rank; d++)
        to[d] = d;
    if (b->axes->mesh)
        return view(b, x, x->axes, false, to, x->node->type.rank, x->node->type.shape);
    oly_sharding sharding;
    OLY_TRY(split_lead(b, x, x->axes, false, &sharding));
    return sharding ? oly_build_reshard(b->into, x->node, sharding, &x->node) : OLY_OK;
}

oly_status oly_batch_settle(oly_batch *b, oly_lifted *x)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    if (!b->axes->mesh)
        return OLY_OK;
    p.settled = b->axes->all;
    if (!(p.sharding = oly_batch_sharding(b, x->axes, ~0u, NULL)))
        return OLY_MEMORY;
    return oly_graph_add(b->into, OLY_OP_place, 1, &x->node, &p, &x->node);
}

oly_status oly_batch_reorder(oly_batch *b, oly_node **x, const int *order)
{
    return oly_build_transpose(b->into, *x, order, x);
}

/* -- node by node -------------------------------------------------------------------------------------------------- */

#define OLY_OP(name, operands, factors, typing, lowering, detail, sharding, batching, ...)                             \
    oly_batching oly_batching_##batching;
#include "graph/ops.def"
#undef OLY_OP

static oly_batching *const rules[OLY_N_OPS] = {
#define OLY_OP(name, operands, factors, typing, lowering, detail, sharding, batching, ...)                             \
    [OLY_OP_##name] = oly_batching_##batching,
#include "graph/ops.def"
#undef OLY_OP
};

/* For rows without a rule. */
oly_status oly_batching_none(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    (void)b, (void)in, (void)out;
    return oly_fail(OLY_INVALID, "%s of %s cannot be mapped over devices or a batch yet", oly_ops[node->op].name,
                    oly_type_short(&node->type));
}

static uint32_t axes_of(int n, const oly_lifted *in)
{
    uint32_t all = 0;
    for (int k = 0; k < n; k++)
        all |= in[k].axes;
    return all;
}

/* Operations that do not depend on a batch axis are copied unchanged, except those that introduce axes and those with graphs of
 * their own. */
static oly_status take_over(oly_batch *b, const oly_node *node, oly_lifted *in)
{
    const oly_op_row *row = &oly_ops[node->op];
    oly_lifted *out = &b->values[node->index];
    bool plain = row->lowering != OLY_LOWER_MANUAL && row->lowering != OLY_LOWER_LOOP &&
                 row->lowering != OLY_LOWER_BRANCH && row->lowering != OLY_LOWER_CUSTOM &&
                 row->lowering != OLY_LOWER_RESULT && !(b->axes->active && row->lowering == OLY_LOWER_CALL);
    if (plain && axes_of(node->n_in, in) == 0)
        return oly_batch_apply(b, node->op, node->n_in, in, &node->params, out);
    return rules[node->op](b, node, in, out);
}

static oly_status batch_node(oly_batch *b, const oly_node *node)
{
    oly_lifted few[16], *in = node->n_in <= 16 ? few : OLY_ARENA_NEW(&b->into->arena, oly_lifted, node->n_in);
    if (!in)
        return oly_out_of_memory(sizeof *in * (size_t)node->n_in, "a graph");
    for (int k = 0; k < node->n_in; k++)
        in[k] = b->values[node->in[k]->index];
    oly_restore_site(node->site);
    return take_over(b, node, in);
}

static oly_status batch_nodes(oly_batch *b, const oly_graph *body)
{
    for (int k = 0; k < body->n_nodes; k++)
        if (body->nodes[k]->op != OLY_OP_input)
            OLY_TRY(batch_node(b, body->nodes[k]));
    return OLY_OK;
}

oly_status oly_batch_graph(oly_graph *into, const oly_batch_axes *axes, const oly_graph *body, const oly_lifted *inputs,
                           oly_lifted *outputs)
{
    oly_site site = oly_current_site();
    oly_batch b = {.into = into, .axes = axes};
    b.values = OLY_ARENA_NEW(&into->arena, oly_lifted, body->n_nodes + 1);
    b.results = OLY_ARENA_NEW(&into->arena, oly_lifted *, body->n_nodes + 1);
    if (!b.values || !b.results)
        return oly_out_of_memory(sizeof *b.values * (size_t)body->n_nodes, "a graph");
    for (int k = 0; k < body->n_inputs; k++)
        b.values[body->inputs[k]->index] = inputs[k];
    oly_status st = batch_nodes(&b, body);
    oly_restore_site(site);
    for (int k = 0; k < body->n_outputs && st == OLY_OK; k++)
        outputs[k] = b.values[body->outputs[k]->index];
    return st;
}
