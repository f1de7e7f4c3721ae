/* SPDX-License-Identifier: BSD-3-Clause */
/* Sharding types of reductions and contractions: the axes of reduced dimensions are dropped. */
#include "graph/sharding_rule/sharding_rule.h"

static bool is_reduced(const oly_params *p, int d)
{
    for (int k = 0; k < p->n_axes; k++)
        if (p->axes[k] == d)
            return true;
    return false;
}

static void drop_reduced(oly_node *node)
{
    const oly_type *x = &node->in[0]->type;
    for (int d = 0, kept = 0; d < x->rank; d++)
        if (!is_reduced(&node->params, d))
            node->type.axes[kept++] = x->axes[d];
}

oly_status oly_sharding_rule_reduce(oly_node *node)
{
    drop_reduced(node);
    return oly_sharding_refuse_marks(node);
}

/* A sum may stay unreduced along the axes that split the dimensions it sums over. */
oly_status oly_sharding_rule_reduce_sum(oly_node *node)
{
    const oly_type *x = &node->in[0]->type;
    drop_reduced(node);
    node->type.unreduced = x->unreduced;
    node->type.reduced = x->reduced;
    if (!oly_sharding_asked(node))
        return OLY_OK;
    unsigned summed = x->unreduced;
    for (int d = 0; d < x->rank; d++)
        for (int k = 0; is_reduced(&node->params, d) && k < x->axes[d].n; k++)
            summed |= 1u << x->axes[d].axis[k];
    if (node->params.sharding->spec.unreduced & ~summed)
        return oly_sharding_fail(
            node, "unreduced",
            "the output sharding may be unreduced only along axes that split the dimensions summed "
            "over");
    OLY_TRY(oly_sharding_take_out(node));
    node->type.reduced = x->reduced;
    if (!node->params.sharding->spec.unreduced)
        node->type.unreduced = x->unreduced;
    return OLY_OK;
}

/* -- products ---------------------------------------------------------------------------------------------------------------- */

/* Paired dimensions of the two operands must be split alike, or one of them not at all. */
static oly_status check_pairs(const oly_node *node, int n, const uint8_t (*pair)[OLY_MAX_RANK], const char *rule,
                              const char *which)
{
    for (int k = 0; k < n; k++) {
        oly_axis_list a = node->in[0]->type.axes[pair[0][k]], b = node->in[1]->type.axes[pair[1][k]];
        if (!oly_axes_merge(&a, &b))
            return oly_sharding_fail(node, rule,
                                     "the %s dimensions %d and %d are split in different ways; move one operand with "
                                     "oly_reshard, or say how the result is to be sharded (.out_sharding)",
                                     which, pair[0][k], pair[1][k]);
    }
    return OLY_OK;
}

/* A product may stay unreduced over axes that split summed dimensions of both operands. */
static oly_status check_unfinished(const oly_node *node)
{
    const oly_contraction *c = &node->params.contraction;
    unsigned axes = 0, asked = node->params.sharding->spec.unreduced;
    bool alike = true;
    for (int k = 0; k < c->n_contract; k++) {
        const oly_axis_list *a = &node->in[0]->type.axes[c->contract[0][k]];
        alike = alike && oly_axis_list_equal(a, &node->in[1]->type.axes[c->contract[1][k]]);
        for (int j = 0; j < a->n; j++)
            axes |= 1u << a->axis[j];
    }
    return !asked || (alike && axes == asked)
               ? OLY_OK
               : oly_sharding_fail(node, "unreduced",
                                   "the output sharding may be unreduced only along the axes that split the summed "
                                   "dimensions, which must be split alike in both operands");
}

static bool is_paired(int d, int n, const uint8_t *dimensions)
{
    for (int k = 0; k < n; k++)
        if (dimensions[k] == d)
            return true;
    return false;
}

/* Free dimensions keep their axes; batch dimensions have those of the first operand. */
static void keep_free(oly_node *node)
{
    const oly_contraction *c = &node->params.contraction;
    int to = 0;
    for (int k = 0; k < c->n_batch; k++)
        node->type.axes[to++] = node->in[0]->type.axes[c->batch[0][k]];
    for (int in = 0; in < 2; in++)
        for (int d = 0; d < node->in[in]->type.rank; d++)
            if (!is_paired(d, c->n_contract, c->contract[in]) && !is_paired(d, c->n_batch, c->batch[in]))
                node->type.axes[to++] = node->in[in]->type.axes[d];
}

oly_status oly_sharding_rule_dot_general(oly_node *node)
{
    const oly_contraction *c = &node->params.contraction;
    for (int k = 0; k < 2; k++)
        if (node->in[k]->type.unreduced)
            return oly_sharding_fail(node, "unreduced",
                                     "operand %d is an unreduced sum ({U:...}); reduce it with oly_reshard first", k);
    if (oly_sharding_asked(node)) {
        OLY_TRY(check_unfinished(node));
        OLY_TRY(oly_sharding_take_out(node));
        node->type.reduced = 0; /* a product is not marked reduced */
        return OLY_OK;
    }
    OLY_TRY(check_pairs(node, c->n_batch, c->batch, "batch_conflict", "batch"));
    OLY_TRY(check_pairs(node, c->n_contract, c->contract, "contract_conflict", "contracting"));
    for (int k = 0; k < c->n_contract; k++)
        if (node->in[0]->type.axes[c->contract[0][k]].n > 0 && node->in[1]->type.axes[c->contract[1][k]].n > 0)
            return oly_sharding_fail(node, "contract_ambiguous",
                                     "the contracting dimensions %d and %d are both split, and it is ambiguous how the "
                                     "result should be sharded; say it with .out_sharding",
                                     c->contract[0][k], c->contract[1][k]);
    keep_free(node);
    return OLY_OK;
}

/* -- windows ----------------------------------------------------------------------------------------------------------------- */

/* Windows read neighbouring elements: the dimensions they slide along keep their axes. */
oly_status oly_sharding_rule_window(oly_node *node)
{
    const oly_type *x = &node->in[0]->type;
    for (int d = 0; d < node->type.rank && d < x->rank; d++)
        node->type.axes[d] = x->axes[d];
    return oly_sharding_refuse_marks(node);
}

/* [batch, features, ...] by [features out, features, ...]: kernel and features must not be split. */
oly_status oly_sharding_rule_conv(oly_node *node)
{
    const oly_type *x = &node->in[0]->type, *kernel = &node->in[1]->type;
    OLY_TRY(oly_sharding_refuse_marks(node));
    if (oly_sharding_asked(node))
        return oly_sharding_take_out(node);
    bool split = x->axes[1].n > 0;
    for (int d = 0; d < kernel->rank; d++)
        split = split || kernel->axes[d].n > 0;
    if (split)
        return oly_sharding_fail(
            node, "conv_ambiguous",
            "the kernel and the features of the input may not be split, else it is ambiguous how the "
            "result should be sharded; move them with oly_reshard");
    return oly_sharding_rule_window(node);
}
