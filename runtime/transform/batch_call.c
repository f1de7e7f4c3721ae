/* SPDX-License-Identifier: BSD-3-Clause */
/* Batching of functions of the program (graph/call.h): their operands get leading dimensions, and the function is called for every
 * element. A check is made once for all elements: what the first failing one found is brought together, so that all processes learn
 * of it. */
#include "transform/batch_rules.h"
#include "graph/build.h"
#include "graph/call.h"
#include <string.h>

static uint32_t bits_below(int n)
{
    return (1u << n) - 1;
}

static bool same_call(const oly_node *a, const oly_node *b)
{
    return a && a->params.call_number == b->params.call_number && a->n_in == b->n_in &&
           memcmp(a->in, b->in, sizeof *a->in * (size_t)a->n_in) == 0;
}

/* Where elements go different ways and all ways are computed, the effect is that of some elements. */
static oly_status mask(oly_batch *b, oly_lifted *when)
{
    oly_lifted both[2] = {*when, *b->axes->active};
    OLY_TRY(oly_batch_align(b, 2, both));
    return oly_batch_apply(b, OLY_OP_and, 2, both, &(oly_params){0}, when);
}

/* Aligned operands, once for all results of a call. */
static oly_status share_operands(oly_batch *b, const oly_node *node, oly_lifted **in)
{
    if (!same_call(b->call, node)) {
        if (b->axes->active && node->params.call->effect)
            OLY_TRY(mask(b, &(*in)[0]));
        OLY_TRY(oly_batch_align(b, node->n_in, *in));
        OLY_ARENA_LIST(&b->into->arena, b->call_in, node->n_in);
        memcpy(b->call_in, *in, sizeof **in * (size_t)node->n_in);
        b->call = node;
    }
    *in = b->call_in;
    return OLY_OK;
}

/* One node with the batch dimensions of its operands in front. */
static oly_status with_dimensions(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    oly_params p = node->params;
    OLY_TRY(share_operands(b, node, &in));
    int lead = oly_batch_lead(in[0].axes);
    p.n_batch += lead;
    p.mapped = p.mapped << lead | (b->axes->mesh ? bits_below(lead) : 0);
    OLY_TRY(oly_batch_apply(b, node->op, node->n_in, in, &p, out));
    return oly_batch_pin(b, out);
}

/* -- checks -------------------------------------------------------------------------------------------------------- */

/* Reduces the leading dimensions. */
static oly_status reduce_lead(oly_batch *b, oly_op op, int lead, oly_node *x, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.n_axes = lead;
    for (int d = 0; d < lead; d++)
        p.axes[d] = d;
    return oly_graph_add(b->into, op, 1, &x, &p, out);
}

/* x, of the leading dimensions only, repeated over the shape. */
static oly_status spread(oly_batch *b, oly_node *x, const oly_type *over, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.rank = over->rank;
    p.n_axes = x->type.rank;
    memcpy(p.shape, over->shape, sizeof p.shape);
    for (int d = 0; d < p.n_axes; d++)
        p.axes[d] = d;
    *out = x;
    return p.n_axes == p.rank ? OLY_OK : oly_graph_add(b->into, OLY_OP_broadcast, 1, &x, &p, out);
}

static oly_status zeros(oly_batch *b, const oly_type *like, oly_node **out)
{
    OLY_TRY(oly_build_number(b->into, like->dtype, 0, out));
    return oly_build_broadcast(b->into, *out, like->rank, like->shape, out);
}

/* `chosen`, repeated over the shape of x, and sharded as x is. */
static oly_status spread_as(oly_batch *b, oly_node *chosen, oly_node *x, oly_node **out)
{
    OLY_TRY(spread(b, chosen, &x->type, out));
    if (!x->type.mesh || !x->type.mesh->explicit_axes || oly_type_same_sharding(&x->type, &(*out)->type))
        return OLY_OK;
    oly_sharding sharding = oly_type_sharding(&x->type);
    return sharding ? oly_build_reshard(b->into, *out, sharding, out) : OLY_MEMORY;
}

/* The slice of x of the element that `chosen` marks. */
static oly_status pick(oly_batch *b, oly_node *chosen, int lead, oly_node *x, oly_node **out)
{
    oly_node *in[3] = {NULL, x, NULL};
    OLY_TRY(spread_as(b, chosen, x, &in[0]));
    OLY_TRY(zeros(b, &x->type, &in[2]));
    OLY_TRY(oly_build_apply(b->into, OLY_OP_select, 3, in, out));
    return reduce_lead(b, x->type.dtype == OLY_BOOL ? OLY_OP_reduce_or : OLY_OP_reduce_sum, lead, *out, out);
}

static oly_status numbers_of_elements(oly_batch *b, const oly_type *like, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = OLY_UINT64;
    p.rank = like->rank;
    memcpy(p.shape, like->shape, sizeof p.shape);
    return oly_graph_add(b->into, OLY_OP_position, 0, NULL, &p, out);
}

/* The largest number: no element. */
static oly_status none(oly_batch *b, const oly_type *like, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = OLY_UINT64;
    p.value.i = -1;
    OLY_TRY(oly_graph_add(b->into, OLY_OP_constant, 0, NULL, &p, out));
    return oly_build_broadcast(b->into, *out, like->rank, like->shape, out);
}

/* in[0] says whether the element fails. The first that does takes the place of all; its number is appended. */
static oly_status first_failing(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    oly_node *made[OLY_CALL_MOST + OLY_MAX_RANK], *number, *no, *least, *chosen, *spread_least;
    OLY_TRY(share_operands(b, node, &in));
    int lead = oly_batch_lead(in[0].axes), n = node->n_in;
    const oly_type like = in[0].node->type; /* of rank `lead` */
    if (n + 1 > (int)(sizeof made / sizeof *made))
        return oly_fail(OLY_INVALID, "a check inside of more than %d nested maps", OLY_MAX_RANK);
    OLY_TRY(numbers_of_elements(b, &like, &number));
    OLY_TRY(none(b, &like, &no));
    OLY_TRY(oly_build_apply(b->into, OLY_OP_select, 3, (oly_node *[]){in[0].node, number, no}, &least));
    OLY_TRY(reduce_lead(b, OLY_OP_reduce_min, lead, least, &least));
    OLY_TRY(oly_build_broadcast(b->into, least, like.rank, like.shape, &spread_least));
    OLY_TRY(oly_build_apply(b->into, OLY_OP_eq, 2, (oly_node *[]){number, spread_least}, &chosen));
    for (int k = 0; k < n; k++)
        OLY_TRY(pick(b, chosen, lead, in[k].node, &made[k]));
    made[n] = least;
    out->axes = 0;
    return oly_graph_add(b->into, node->op, n + 1, made, &node->params, &out->node);
}

oly_status oly_batching_call(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    return node->params.call->gathers ? first_failing(b, node, in, out) : with_dimensions(b, node, in, out);
}
