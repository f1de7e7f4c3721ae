/* Elementwise compositions: numbers and arrays meet in one type and shape, then the row is applied. */
#include "graph/compose.h"
#include "graph/build.h"

/* Arithmetic that JAX has no meaning for on bools. */
static oly_status refuse_bool(oly_op op, const oly_node *x)
{
    bool arithmetic = op == OLY_OP_neg || op == OLY_OP_sign || op == OLY_OP_sub || op == OLY_OP_pow;
    if (arithmetic && x->type.dtype == OLY_BOOL)
        return oly_fail(OLY_DTYPE, "%s of %s is not defined: it takes numbers; convert with oly_astype(x, OLY_INT32)",
                        oly_ops[op].name, oly_type_short(&x->type));
    return OLY_OK;
}

oly_status oly_compose_unary(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_node *x = in[0];
    OLY_TRY(refuse_bool(recipe->op, x));
    if (recipe->op == OLY_OP_logical_not)
        OLY_TRY(oly_build_convert(g, x, OLY_BOOL, false, &x));
    return oly_build_apply(g, recipe->op, 1, &x, out);
}

oly_status oly_compose_floating(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_node *x;
    OLY_TRY(oly_build_floating(g, in[0], &x));
    return oly_build_apply(g, recipe->op, 1, &x, out);
}

oly_status oly_compose_binary(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_node *both[2] = {in[0], in[1]};
    OLY_TRY(oly_build_promoted(g, 2, both));
    OLY_TRY(refuse_bool(recipe->op, both[0]));
    OLY_TRY(oly_build_common_shape(g, 2, both));
    return oly_build_apply(g, recipe->op, 2, both, out);
}

oly_status oly_compose_divide(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in, (void)recipe;
    oly_node *both[2] = {in[0], in[1]};
    OLY_TRY(oly_build_promoted(g, 2, both));
    for (int k = 0; k < 2; k++)
        OLY_TRY(oly_build_floating(g, both[k], &both[k]));
    OLY_TRY(oly_build_common_shape(g, 2, both));
    return oly_build_apply(g, OLY_OP_div, 2, both, out);
}

/* x, or 0 where x is not above it: so the slope at 0 is 0 (that of max would be one half). 0 takes the type of x (of bools:
 * int32, as in JAX). */
oly_status oly_compose_relu(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in, (void)recipe;
    oly_node *both[2] = {in[0], NULL}, *below;
    if (both[0]->type.dtype == OLY_BOOL)
        OLY_TRY(oly_build_convert(g, both[0], OLY_INT32, true, &both[0]));
    OLY_TRY(oly_build_number(g, both[0]->type.dtype, 0, &both[1]));
    OLY_TRY(oly_build_convert(g, both[1], both[0]->type.dtype, both[0]->type.weak, &both[1]));
    OLY_TRY(oly_build_common_shape(g, 2, both));
    OLY_TRY(oly_build_apply(g, OLY_OP_le, 2, both, &below));
    return oly_build_apply(g, OLY_OP_select, 3, (oly_node *[]){below, both[1], both[0]}, out);
}

oly_status oly_compose_where(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in, (void)recipe;
    oly_node *all[3] = {in[0], in[1], in[2]};
    if (oly_is_constant(all[0])) {
        OLY_TRY(oly_build_convert(g, all[0], OLY_BOOL, false, &all[0]));
    } else if (all[0]->type.dtype != OLY_BOOL) {
        oly_node *both[2] = {all[0], NULL};
        OLY_TRY(oly_build_number(g, all[0]->type.dtype, 0, &both[1]));
        OLY_TRY(oly_build_common_shape(g, 2, both));
        OLY_TRY(oly_build_apply(g, OLY_OP_ne, 2, both, &all[0]));
    }
    OLY_TRY(oly_build_promoted(g, 2, all + 1));
    if (all[0]->type.rank == 0)
        OLY_TRY(oly_build_broadcast_all(g, 2, all + 1)); /* one condition for all: the branches decide */
    OLY_TRY(oly_build_broadcast_all(g, 3, all));
    return oly_build_apply(g, OLY_OP_select, 3, all, out);
}

oly_status oly_compose_convert(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    return oly_build_convert(g, in[0], recipe->params.dtype, false, out);
}
