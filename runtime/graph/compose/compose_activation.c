/* SPDX-License-Identifier: BSD-3-Clause */
/* The activations of jax.nn, each written as JAX writes it. */
#include "graph/compose/compose_math.h"
#include "graph/compose/expression_words.h"
#include <math.h>

/* min(max(x, 0), 6.0), in its type. The slope is 1 strictly between the bounds and 0 elsewhere, that of clamp. */
COMPOSE(relu6)
{
    UNUSED;
    BEGIN oly_node *pair[2] = {in[0], WHOLE(0)}, *all[3];
    OLY_TRY(s->status);
    OLY_TRY(oly_build_promoted(g, 2, pair));
    pair[1] = NUMBER(6);
    OLY_TRY(s->status);
    OLY_TRY(oly_build_promoted(g, 2, pair));
    all[1] = pair[0];
    all[2] = pair[1];
    OLY_TRY(oly_build_convert(g, pair[1], all[2]->type.dtype, false, &all[2]));
    all[0] = oly_expression_convert(s, WHOLE(0), all[1]->type.dtype);
    OLY_TRY(s->status);
    OLY_TRY(oly_build_common_shape(g, 3, all));
    return oly_build_apply(g, OLY_OP_clamp, 3, all, out);
}

/* in: x, alpha */
COMPOSE(elu)
{
    UNUSED;
    BEGIN oly_node *x = in[0], *positive = BINARY(gt, x, WHOLE(0));
    oly_node *below = oly_expression_floating(s, SELECT(positive, NUMBER(0), x));
    DONE(SELECT(positive, x, BINARY(mul, in[1], UNARY(expm1, below))));
}

/* in: x, slope */
COMPOSE(leaky_relu)
{
    UNUSED;
    BEGIN DONE(SELECT(BINARY(ge, in[0], WHOLE(0)), in[0], BINARY(mul, in[1], in[0])));
}

COMPOSE(gelu)
{
    (void)n_in;
    BEGIN oly_node *x = oly_expression_floating(s, in[0]);
    if (recipe->op == OLY_OP_erfc)
        DONE(BINARY(mul, BINARY(mul, NUMBER(0.5), x), UNARY(erfc, BINARY(mul, UNARY(neg, x), NUMBER(M_SQRT1_2)))));
    oly_node *cube = BINARY(mul, BINARY(mul, x, x), x), *bent = BINARY(add, x, BINARY(mul, NUMBER(0.044715), cube));
    oly_node *t = UNARY(tanh, BINARY(mul, NUMBER(M_2_SQRTPI * M_SQRT1_2), bent));
    DONE(BINARY(mul, x, BINARY(mul, NUMBER(0.5), BINARY(add, NUMBER(1), t))));
}

COMPOSE(silu)
{
    UNUSED;
    BEGIN DONE(BINARY(mul, in[0], UNARY(sigmoid, oly_expression_floating(s, in[0]))));
}

static oly_node *softplus(oly_expression *s, oly_node *x)
{
    oly_node *zero = WHOLE(0);
    oly_expression_floating_pair(s, &x, &zero);
    return BINARY(logaddexp, x, zero);
}
COMPOSE(softplus)
{
    UNUSED;
    BEGIN DONE(softplus(s, in[0]));
}
COMPOSE(log_sigmoid)
{
    UNUSED;
    BEGIN DONE(UNARY(neg, softplus(s, UNARY(neg, in[0]))));
}
