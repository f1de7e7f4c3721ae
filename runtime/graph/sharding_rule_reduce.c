/* Sharding types of reductions and of contractions: what is summed away vanishes with its axes. */
#include "graph/sharding_rule.h"

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
    return oly_sharding_refuse_sums(node);
}

/* A sum may stay unfinished along the axes that split what it sums over. */
oly_status oly_sharding_rule_reduce_sum(oly_node *node)
{
    const oly_type *x = &node->in[0]->type;
    drop_reduced(node);
    node->type.unreduced = x->unreduced;
    node->type.reduced = x->reduced;
    if (!node->params.sharding)
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
