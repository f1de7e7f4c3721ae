/* SPDX-License-Identifier: BSD-3-Clause */
/* Batching rules of contractions. */
#include "graph/contract.h"
#include "graph/build.h"
#include "transform/batch_rules.h"
#include <string.h>

/* A requested sharding with the batch, which is dimension `at` of the result. */
static oly_status insert_batch(oly_batch *b, int at, oly_params *p)
{
    if (!p->sharding)
        return OLY_OK;
    oly_sharding lead = oly_batch_sharding(b, 1, ~0u, p->sharding); /* it is dimension 0 */
    if (!lead)
        return OLY_MEMORY;
    oly_spec spec = lead->spec;
    spec.n_dims = at + 1 > lead->spec.n_dims ? at + 1 : lead->spec.n_dims;
    for (int d = 0; d < at; d++)
        spec.dim[d] = lead->spec.dim[d + 1];
    spec.dim[at] = lead->spec.dim[0];
    unsigned before = (1u << at) - 1, open = lead->spec.open;
    spec.open = (open >> 1 & before) | (open & 1) << at | (open & ~(before << 1 | 1));
    p->sharding = oly_sharding_intern(lead->mesh, &spec, spec.n_dims);
    return p->sharding ? OLY_OK : OLY_MEMORY;
}

/* Only one operand varies along the axis (vmap): there the axis is a free dimension, so that rows merge. In the result it
 * follows the batch dimensions, and for the second operand also the first's free dimensions. */
static oly_status one_side(oly_batch *b, const oly_node *node, oly_lifted *in, const oly_contraction_dims *dims,
                           oly_lifted *out)
{
    oly_params p = node->params;
    oly_contraction *c = &p.contraction;
    int o = in[1].axes != 0, order[OLY_MAX_RANK], rank = node->type.rank + 1;
    int at = c->n_batch + (o ? dims->n_free[0] : 0);
    for (int k = 0; k < c->n_batch; k++)
        c->batch[o][k]++;
    for (int k = 0; k < c->n_contract; k++)
        c->contract[o][k]++;
    OLY_TRY(insert_batch(b, at, &p));
    OLY_TRY(oly_graph_add(b->into, node->op, 2, (oly_node *[]){in[0].node, in[1].node}, &p, &out->node));
    out->axes = in[o].axes;
    order[0] = at;
    for (int d = 1; d < rank; d++)
        order[d] = d <= at ? d - 1 : d;
    return oly_batch_reorder(b, &out->node, order);
}

oly_status oly_batching_dot_general(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    oly_params p = node->params;
    oly_contraction *c = &p.contraction;
    oly_contraction_dims dims;
    OLY_TRY(oly_contraction_read(&node->in[0]->type, &node->in[1]->type, c, &dims));
    if (!b->axes->mesh && !in[0].axes != !in[1].axes && node->type.rank < OLY_MAX_RANK)
        return one_side(b, node, in, &dims, out);
    OLY_TRY(oly_batch_align(b, 2, in));
    int lead = oly_batch_lead(in[0].axes);
    if (node->type.rank + lead > OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE, "%s: the result, %s, would get %d batch dimensions more; arrays have at most %d",
                        oly_ops[node->op].name, oly_type_short(&node->type), lead, OLY_MAX_RANK);
    for (int o = 0; o < 2; o++) {
        for (int k = 0; k < c->n_contract; k++)
            c->contract[o][k] = (uint8_t)(c->contract[o][k] + lead);
        for (int k = c->n_batch - 1; k >= 0; k--)
            c->batch[o][k + lead] = (uint8_t)(c->batch[o][k] + lead);
        for (int k = 0; k < lead; k++)
            c->batch[o][k] = (uint8_t)k;
    }
    c->n_batch = (uint8_t)(c->n_batch + lead);
    return oly_batch_apply(b, node->op, 2, in, &p, out);
}

/* -- convolutions ---------------------------------------------------------------------------------------------------------- */

static int64_t lead_size(oly_lifted x)
{
    int64_t n = 1;
    for (int d = 0; d < oly_batch_lead(x.axes); d++)
        n *= x.node->type.shape[d];
    return n;
}

/* Merges the leading dimensions into dimension `into` of the value itself: 0, or 1 after an exchange. */
static oly_status merge_into(oly_batch *b, oly_lifted x, int into, oly_node **out)
{
    int lead = oly_batch_lead(x.axes), rank = oly_batch_rank(x), axes[OLY_MAX_RANK];
    int64_t shape[OLY_MAX_RANK];
    for (int d = 0; d < lead + rank; d++)
        axes[d] = d < into ? lead + d : d < into + lead ? d - into : d;
    OLY_TRY(oly_build_transpose(b->into, x.node, axes, out));
    for (int d = 0; d < rank; d++)
        shape[d] = x.node->type.shape[lead + d];
    shape[into] *= lead_size(x);
    return oly_build_reshape(b->into, *out, rank, shape, out);
}

/* The inverse: splits dimension `from` of a result of the node into the leading ones of `like` and its own. */
static oly_status part_from(oly_batch *b, oly_node *x, oly_lifted like, const oly_type *own, int from, oly_lifted *out)
{
    int lead = oly_batch_lead(like.axes), axes[OLY_MAX_RANK];
    int64_t shape[OLY_MAX_RANK];
    for (int d = 0; d < own->rank + lead; d++) {
        shape[d] = d < from ? own->shape[d] : d < from + lead ? like.node->type.shape[d - from] : own->shape[d - lead];
        axes[d] = d < lead ? from + d : d < lead + from ? d - lead : d;
    }
    out->axes = like.axes;
    OLY_TRY(oly_build_reshape(b->into, x, own->rank + lead, shape, &out->node));
    return oly_build_transpose(b->into, out->node, axes, &out->node);
}

/* The axis joins the batch if the kernels do not vary, the kernels if the operand does not, and the groups if both vary. */
oly_status oly_batching_conv(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    oly_sliding_window w = *node->params.window;
    oly_params p = node->params;
    oly_node *both[2] = {in[0].node, in[1].node}, *made;
    bool one_group = w.groups == 1 && w.batch_groups == 1;
    p.window = &w;
    int joined = 1;
    if (!in[1].axes && w.batch_groups == 1) {
        joined = 0;
        OLY_TRY(merge_into(b, in[0], 0, &both[0]));
    } else if (!in[0].axes && one_group) {
        OLY_TRY(merge_into(b, in[1], 0, &both[1]));
    } else {
        OLY_TRY(oly_batch_align(b, 2, in));
        OLY_TRY(merge_into(b, in[0], w.batch_groups > 1 ? 0 : 1, &both[0]));
        OLY_TRY(merge_into(b, in[1], 0, &both[1]));
        *(w.batch_groups > 1 ? &w.batch_groups : &w.groups) *= lead_size(in[0]);
    }
    p.sharding = NULL;
    OLY_TRY(oly_graph_add(b->into, node->op, 2, both, &p, &made));
    OLY_TRY(part_from(b, made, in[0].axes ? in[0] : in[1], &node->type, joined, out));
    if (!node->params.sharding || !node->params.sharding->mesh->explicit_axes)
        return OLY_OK;
    oly_sharding asked = oly_batch_sharding(b, out->axes, ~0u, node->params.sharding);
    return asked ? oly_build_reshard(b->into, out->node, asked, &out->node) : OLY_MEMORY;
}

/* Windows are over the last dimensions. */
oly_status oly_batching_window(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    return oly_batch_apply(b, node->op, 1, in, &node->params, out);
}
