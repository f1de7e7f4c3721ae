/* SPDX-License-Identifier: BSD-3-Clause */
/* Gradient rules of the mathematical functions: y = f(x), g the cotangent of y. Rules are those of jax.lax; names after
 * oly_vjp_ are the entries of the column `gradient` of ops.def. */
#include "transform/rule_words.h"
#include <math.h>

#define X           IN(0)
#define ONE         NUMBER(X, 1)
#define SQUARE(x)   UNARY(square, x)
#define TIMES(x, y) oly_rule_mul(r, x, y)

/* -- exponentials and logarithms --------------------------------------------------------------------------------------- */
void oly_vjp_exp2(oly_rule *r)
{
    GIVE(0) = BINARY(mul, NUMBER(Y, M_LN2), TIMES(G, Y));
}

void oly_vjp_expm1(oly_rule *r)
{
    GIVE(0) = TIMES(G, BINARY(add, Y, NUMBER(Y, 1)));
}

void oly_vjp_log1p(oly_rule *r)
{
    GIVE(0) = BINARY(div, G, BINARY(add, X, ONE));
}

/* Replaces infinity by zero. */
static oly_node *not_infinite(oly_rule *r, oly_node *x)
{
    return oly_rule_select(r, BINARY(eq, x, NUMBER(x, INFINITY)), NUMBER(x, 0), x);
}

void oly_vjp_logaddexp(oly_rule *r)
{
    for (int k = 0; k < 2; k++)
        GIVE(k) = TIMES(G, UNARY(exp, BINARY(sub, not_infinite(r, IN(k)), not_infinite(r, Y))));
}

/* -- powers ------------------------------------------------------------------------------------------------------------- */
void oly_vjp_square(oly_rule *r)
{
    GIVE(0) = TIMES(G, BINARY(mul, NUMBER(X, 2), X));
}

void oly_vjp_rsqrt(oly_rule *r)
{
    GIVE(0) = TIMES(G, BINARY(mul, NUMBER(X, -0.5), BINARY(div, Y, X)));
}

void oly_vjp_cbrt(oly_rule *r)
{
    GIVE(0) = TIMES(G, BINARY(mul, NUMBER(X, 1.0 / 3), BINARY(div, ONE, SQUARE(Y))));
}

/* -- angles --------------------------------------------------------------------------------------------------------------- */
void oly_vjp_tan(oly_rule *r)
{
    GIVE(0) = TIMES(G, BINARY(add, ONE, SQUARE(Y)));
}

void oly_vjp_asin(oly_rule *r)
{
    GIVE(0) = TIMES(G, UNARY(rsqrt, BINARY(sub, ONE, SQUARE(X))));
}

void oly_vjp_acos(oly_rule *r)
{
    GIVE(0) = TIMES(G, UNARY(neg, UNARY(rsqrt, BINARY(sub, ONE, SQUARE(X)))));
}

void oly_vjp_atan(oly_rule *r)
{
    GIVE(0) = BINARY(div, G, BINARY(add, ONE, SQUARE(X)));
}

void oly_vjp_atan2(oly_rule *r)
{
    oly_node *size = BINARY(add, SQUARE(IN(0)), SQUARE(IN(1)));
    GIVE(0) = TIMES(G, BINARY(div, IN(1), size));
    GIVE(1) = TIMES(G, BINARY(div, UNARY(neg, IN(0)), size));
}

void oly_vjp_sinh(oly_rule *r)
{
    GIVE(0) = TIMES(G, UNARY(cosh, X));
}

void oly_vjp_cosh(oly_rule *r)
{
    GIVE(0) = TIMES(G, UNARY(sinh, X));
}

void oly_vjp_asinh(oly_rule *r)
{
    GIVE(0) = TIMES(G, UNARY(rsqrt, BINARY(add, SQUARE(X), ONE)));
}

void oly_vjp_acosh(oly_rule *r)
{
    GIVE(0) = TIMES(G, UNARY(rsqrt, BINARY(sub, SQUARE(X), ONE)));
}

void oly_vjp_atanh(oly_rule *r)
{
    GIVE(0) = TIMES(BINARY(div, ONE, BINARY(add, ONE, X)), BINARY(div, G, BINARY(sub, ONE, X)));
}

/* -- error and gamma functions ---------------------------------------------------------------------------------------------- */
static oly_node *bell(oly_rule *r, double scale)
{
    return BINARY(mul, NUMBER(X, scale), TIMES(G, UNARY(exp, UNARY(neg, SQUARE(X)))));
}

void oly_vjp_erf(oly_rule *r)
{
    GIVE(0) = bell(r, M_2_SQRTPI);
}

void oly_vjp_erfc(oly_rule *r)
{
    GIVE(0) = bell(r, -M_2_SQRTPI);
}

void oly_vjp_erf_inv(oly_rule *r)
{
    GIVE(0) = BINARY(mul, NUMBER(X, 1 / M_2_SQRTPI), TIMES(G, UNARY(exp, SQUARE(Y))));
}

void oly_vjp_lgamma(oly_rule *r)
{
    GIVE(0) = TIMES(G, UNARY(digamma, X));
}

/* -- remainders and bounds ------------------------------------------------------------------------------------------------- */
void oly_vjp_rem(oly_rule *r)
{
    GIVE(0) = G;
    if (!r->wanted[1])
        return;
    oly_node *quotient = BINARY(div, IN(0), IN(1)), *whole = UNARY(floor, UNARY(abs, quotient));
    r->operands[1] = BINARY(mul, UNARY(neg, G), BINARY(mul, UNARY(sign, quotient), whole));
}

/* Goes to the operand that was taken; to none if x is at a bound. */
void oly_vjp_clamp(oly_rule *r)
{
    oly_node *low = IN(0), *x = IN(1), *high = IN(2), *zero = NUMBER(G, 0);
    oly_node *above = BINARY(gt, x, low), *below = BINARY(lt, x, high);
    GIVE(0) = oly_rule_select(r, BINARY(and, BINARY(gt, low, x), BINARY(lt, low, high)), G, zero);
    GIVE(1) = oly_rule_select(r, BINARY(and, above, below), G, zero);
    GIVE(2) = oly_rule_select(r, BINARY(lt, high, x), G, zero);
}
