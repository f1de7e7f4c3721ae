/* SPDX-License-Identifier: BSD-3-Clause */
/* Elementwise compositions: operands are converted to one type and broadcast to one shape, then the row is added. */
#include "graph/compose/compose.h"
#include "graph/build.h"

oly_status oly_compose_unary(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_node *x = in[0];
    if (recipe->op == OLY_OP_logical_not)
        OLY_TRY(oly_build_truth(g, x, &x));
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
    OLY_TRY(oly_op_takes(recipe->op, &both[0]->type)); /* before the shapes are compared */
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

/* x where x > 0, else 0: so the slope at 0 is 0 (that of max would be one half). 0 takes the type of x (of bools:
 * integers, as in JAX). */
oly_status oly_compose_relu(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in, (void)recipe;
    oly_node *both[2] = {in[0], NULL}, *below;
    if (both[0]->type.dtype == OLY_BOOL)
        OLY_TRY(oly_build_convert(g, both[0], oly_default_int(), true, &both[0]));
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
    OLY_TRY(oly_build_truth(g, all[0], &all[0]));
    OLY_TRY(oly_build_promoted(g, 2, all + 1));
    OLY_TRY(oly_build_choice(g, all));
    return oly_build_apply(g, OLY_OP_select, 3, all, out);
}

/* Conversion to bool: x != 0, also where only the imaginary part is not zero. */
oly_status oly_compose_astype(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    if (recipe->params.dtype == OLY_BOOL)
        return oly_build_truth(g, in[0], out);
    return oly_build_convert(g, in[0], recipe->params.dtype, false, out);
}

oly_status oly_compose_convert(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    return oly_build_element(g, in[0], recipe->params.dtype, out);
}
