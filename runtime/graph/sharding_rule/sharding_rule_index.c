/* SPDX-License-Identifier: BSD-3-Clause */
/* Sharding types of operations along one dimension, and of those that read and write by value. */
#include "graph/sharding_rule/sharding_rule.h"
#include <string.h>

static void keep_axes(oly_node *node, const oly_type *x)
{
    for (int d = 0; d < node->type.rank && d < x->rank; d++)
        node->type.axes[d] = x->axes[d];
}

/* -- along one dimension, which must not be split ---------------------------------------------------------- */

static oly_status along(oly_node *node, int d, const char *rule, const char *what)
{
    const oly_type *first = NULL;
    for (int k = 0; k < node->n_in; k++) {
        const oly_type *x = &node->in[k]->type;
        OLY_TRY(oly_sharding_unsplit(node, k, d, rule, what));
        if (first && x->mesh && !oly_axes_same(x, first))
            return oly_sharding_fail(node, rule, "operand %d must be sharded as the first is; move it with oly_reshard",
                                     k);
        first = x->mesh && !first ? x : first;
    }
    keep_axes(node, first ? first : &node->in[0]->type);
    return oly_sharding_refuse_marks(node);
}

oly_status oly_sharding_rule_sort(oly_node *node)
{
    return along(node, node->params.dimension, "sort_sharded", "is sorted along and may not be split");
}

oly_status oly_sharding_rule_top_k(oly_node *node)
{
    return along(node, node->params.dimension, "top_k_sharded", "is searched for its largest and may not be split");
}

oly_status oly_sharding_rule_running(oly_node *node)
{
    return along(node, node->params.dimension, "reduced_axis_sharded",
                 "must not be split: the operation runs along it");
}

/* -- by value ---------------------------------------------------------------------------------------------------------------- */

static bool is_indexed(const oly_params *p, int d)
{
    for (int k = 0; k < p->n_axes; k++)
        if (p->axes[k] == d)
            return true;
    return false;
}

/* Merges the axes of the batch dimensions that operands in[0] to in[last] share. */
static oly_status merge_batch(oly_node *node, int last, const char *rule, oly_axis_list *axes)
{
    for (int d = 0; d < node->params.n_batch; d++)
        for (int k = 0; k <= last; k++)
            if (!oly_axes_merge(&axes[d], &node->in[k]->type.axes[d]))
                return oly_sharding_fail(node, rule,
                                         "dimension %d, which array and indexes share, is split in two ways; move one "
                                         "with oly_reshard, or say how the result is to be sharded (.out_sharding)",
                                         d);
    return OLY_OK;
}

/* The array must not be split along indexed dimensions, nor the indexes (and updates) along dimensions of their own. */
static oly_status check_indexed(const oly_node *node, int last, const char *rule)
{
    const oly_params *p = &node->params;
    const char *what = "and the result could not be made without moving data: move it with oly_reshard, or say how the "
                       "result is to be sharded (.out_sharding)";
    for (int k = 0; k < p->n_axes; k++)
        if (node->in[0]->type.axes[p->axes[k]].n > 0)
            return oly_sharding_fail(node, rule, "dimension %d of the array is indexed and split, %s", p->axes[k],
                                     what);
    for (int k = 1; k <= last; k++)
        for (int d = p->n_batch; d < node->in[1]->type.rank; d++)
            if (node->in[k]->type.axes[d].n > 0)
                return oly_sharding_fail(node, rule, "dimension %d of operand %d, along the indexes, is split, %s", d,
                                         k, what);
    return OLY_OK;
}

oly_status oly_sharding_rule_gather(oly_node *node)
{
    const oly_params *p = &node->params;
    const oly_type *x = &node->in[0]->type;
    OLY_TRY(oly_sharding_refuse_marks(node));
    if (oly_sharding_asked(node))
        return oly_sharding_take_out(node);
    OLY_TRY(merge_batch(node, node->n_in - 1, "gather_ambiguous", node->type.axes));
    OLY_TRY(check_indexed(node, node->n_in - 1, "gather_ambiguous"));
    for (int d = p->n_batch, to = node->in[1]->type.rank; d < x->rank; d++)
        if (!is_indexed(p, d))
            node->type.axes[to++] = x->axes[d];
    return OLY_OK;
}

oly_status oly_sharding_rule_scatter(oly_node *node)
{
    const oly_params *p = &node->params;
    const oly_type *x = &node->in[0]->type, *updates = &node->in[node->n_in - 1]->type;
    OLY_TRY(oly_sharding_refuse_marks(node));
    if (oly_sharding_asked(node))
        return oly_sharding_take_out(node);
    OLY_TRY(merge_batch(node, node->n_in - 1, "scatter_ambiguous", node->type.axes));
    OLY_TRY(check_indexed(node, node->n_in - 1, "scatter_ambiguous"));
    for (int d = p->n_batch, from = node->in[1]->type.rank; d < x->rank; d++) {
        node->type.axes[d] = x->axes[d];
        if (is_indexed(p, d))
            continue;
        if (updates->mesh && !oly_axis_list_equal(&x->axes[d], &updates->axes[from]))
            return oly_sharding_fail(node, "scatter_ambiguous",
                                     "dimension %d of the array and %d of the updates are split in two ways; move one "
                                     "with oly_reshard, or say how the result is to be sharded (.out_sharding)",
                                     d, from);
        from++;
    }
    return OLY_OK;
}

/* Positions are sharded as the values searched for, however the sorted array is. */
oly_status oly_sharding_rule_searchsorted(oly_node *node)
{
    OLY_TRY(merge_batch(node, 1, "gather_ambiguous", node->type.axes));
    for (int d = node->params.n_batch; d < node->type.rank; d++)
        node->type.axes[d] = node->in[1]->type.axes[d];
    return oly_sharding_refuse_marks(node);
}

/* A slice at a computed position keeps the axes, as any slice does. */
oly_status oly_sharding_rule_dynamic_slice(oly_node *node)
{
    keep_axes(node, &node->in[0]->type);
    node->type.reduced = node->in[0]->type.reduced;
    return oly_sharding_refuse_sums(node);
}
