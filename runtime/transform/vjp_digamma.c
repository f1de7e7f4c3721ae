/* SPDX-License-Identifier: BSD-3-Clause */
/* The derivative of digamma, trigamma, from operations that have derivatives themselves. */
#include "transform/rule.h"
#include <math.h>

enum { SHIFTS = 10 };

static oly_node *number(oly_rule *r, const oly_node *like, double value)
{
    return oly_rule_number(r, like, value);
}

/* a + b */
static oly_node *plus(oly_rule *r, oly_node *a, oly_node *b)
{
    return oly_rule_binary(r, OLY_OP_add, a, b);
}

/* a * b */
static oly_node *times(oly_rule *r, oly_node *a, oly_node *b)
{
    return oly_rule_binary(r, OLY_OP_mul, a, b);
}

/* For x >= 1/2: 1/x^2 + ... + 1/(x+9)^2, and for z = x + 10 the series 1/z + 1/(2 z^2) + sum of B(2k) / z^(2k+1). */
static oly_node *trigamma_above(oly_rule *r, oly_node *x)
{
    static const double bernoulli[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6};
    oly_node *sum = NULL, *one = number(r, x, 1), *z = x;
    for (int k = 0; k < SHIFTS; k++) {
        oly_node *inverse = oly_rule_binary(r, OLY_OP_div, one, z), *square = times(r, inverse, inverse);
        sum = sum ? plus(r, sum, square) : square;
        z = plus(r, z, one);
    }
    oly_node *inverse = oly_rule_binary(r, OLY_OP_div, one, z), *square = times(r, inverse, inverse);
    oly_node *series = number(r, x, bernoulli[6]);
    for (int k = 5; k >= 0; k--)
        series = plus(r, times(r, series, square), number(r, x, bernoulli[k]));
    series = times(r, times(r, series, square), inverse);
    series = plus(r, series, plus(r, inverse, times(r, number(r, x, 0.5), square)));
    return plus(r, sum, series);
}

/* Below one half by reflection: trigamma(x) + trigamma(1 - x) = (pi / sin(pi x))^2. */
void oly_vjp_digamma(oly_rule *r)
{
    oly_node *x = r->node->in[0], *one = number(r, x, 1);
    oly_node *below = oly_rule_binary(r, OLY_OP_lt, x, number(r, x, 0.5));
    oly_node *mirrored = oly_rule_select(r, below, oly_rule_binary(r, OLY_OP_sub, one, x), x);
    oly_node *above = trigamma_above(r, mirrored), *pi = number(r, x, M_PI);
    oly_node *ratio = oly_rule_binary(r, OLY_OP_div, pi, oly_rule_unary(r, OLY_OP_sin, times(r, pi, x)));
    oly_node *reflected = oly_rule_binary(r, OLY_OP_sub, times(r, ratio, ratio), above);
    r->operands[0] = oly_rule_mul(r, r->cotangents[0], oly_rule_select(r, below, reflected, above));
}
