/* SPDX-License-Identifier: BSD-3-Clause */
/* Gradient rules of elementwise operations: y = f(x), g the cotangent of y. Rules are those of jax.lax; names after
 * oly_vjp_ are the entries of the column `gradient` of ops.def. */
#include "transform/rule_words.h"

/* -- one operand ----------------------------------------------------------------------------------------------------- */
void oly_vjp_neg(oly_rule *r)
{
    GIVE(0) = UNARY(neg, G);
}

/* At zero: one; for complex numbers the conjugate divided by the magnitude. */
void oly_vjp_abs(oly_rule *r)
{
    oly_node *x = IN(0);
    if (oly_dtype_kind(x->type.dtype) == OLY_KIND_COMPLEX) {
        oly_node *length = oly_rule_select(r, BINARY(eq, Y, NUMBER(Y, 0)), NUMBER(Y, 1), Y);
        oly_node *scale = BINARY(div, G, length);
        r->operands[0] =
            BINARY(complex, BINARY(mul, scale, UNARY(real, x)), BINARY(mul, UNARY(neg, scale), UNARY(imag, x)));
        return;
    }
    GIVE(0) = oly_rule_select(r, BINARY(ge, x, NUMBER(x, 0)), G, UNARY(neg, G));
}

void oly_vjp_exp(oly_rule *r)
{
    GIVE(0) = oly_rule_mul(r, G, Y);
}

void oly_vjp_log(oly_rule *r)
{
    GIVE(0) = BINARY(div, G, IN(0));
}

void oly_vjp_sqrt(oly_rule *r)
{
    GIVE(0) = oly_rule_mul(r, G, BINARY(div, NUMBER(Y, 0.5), Y));
}

void oly_vjp_sin(oly_rule *r)
{
    GIVE(0) = oly_rule_mul(r, G, UNARY(cos, IN(0)));
}

void oly_vjp_cos(oly_rule *r)
{
    GIVE(0) = UNARY(neg, oly_rule_mul(r, G, UNARY(sin, IN(0))));
}

/* g (1 + y) (1 - y) */
void oly_vjp_tanh(oly_rule *r)
{
    oly_node *one = NUMBER(Y, 1);
    GIVE(0) = oly_rule_mul(r, G, BINARY(mul, BINARY(add, one, Y), BINARY(sub, one, Y)));
}

void oly_vjp_sigmoid(oly_rule *r)
{
    GIVE(0) = oly_rule_mul(r, G, BINARY(mul, Y, BINARY(sub, NUMBER(Y, 1), Y)));
}

/* Converts back to the operand's type; of a complex cotangent the real part. */
void oly_vjp_convert(oly_rule *r)
{
    GIVE(0) = oly_rule_convert(r, G, IN(0)->type.dtype);
}

/* -- complex numbers: the cotangent of x + iy is that of x minus i times that of y ------------------------------------- */
void oly_vjp_real(oly_rule *r)
{
    GIVE(0) = BINARY(complex, G, NUMBER(G, 0));
}

void oly_vjp_imag(oly_rule *r)
{
    GIVE(0) = BINARY(complex, NUMBER(G, 0), UNARY(neg, G));
}

void oly_vjp_conj(oly_rule *r)
{
    GIVE(0) = UNARY(conj, G);
}

void oly_vjp_complex(oly_rule *r)
{
    GIVE(0) = UNARY(real, G);
    GIVE(1) = UNARY(neg, UNARY(imag, G));
}

/* -- two operands ---------------------------------------------------------------------------------------------------- */
void oly_vjp_add(oly_rule *r)
{
    GIVE(0) = G;
    GIVE(1) = G;
}

void oly_vjp_sub(oly_rule *r)
{
    GIVE(0) = G;
    GIVE(1) = UNARY(neg, G);
}

void oly_vjp_mul(oly_rule *r)
{
    GIVE(0) = oly_rule_mul(r, G, IN(1));
    GIVE(1) = oly_rule_mul(r, G, IN(0));
}

void oly_vjp_div(oly_rule *r)
{
    GIVE(0) = BINARY(div, G, IN(1));
    GIVE(1) = UNARY(neg, oly_rule_mul(r, G, BINARY(div, Y, IN(1))));
}

/* y x^(y-1), and y log x, where the logarithm of zero counts as zero. */
void oly_vjp_pow(oly_rule *r)
{
    oly_node *x = IN(0), *y = IN(1);
    GIVE(0) = oly_rule_mul(r, G, BINARY(mul, y, BINARY(pow, x, BINARY(sub, y, NUMBER(y, 1)))));
    if (!r->wanted[1])
        return;
    oly_node *positive = oly_rule_select(r, BINARY(eq, x, NUMBER(x, 0)), NUMBER(x, 1), x);
    r->operands[1] = oly_rule_mul(r, G, BINARY(mul, UNARY(log, positive), Y));
}

/* Of equal operands each gets half. */
static oly_node *share(oly_rule *r, oly_node *mine, oly_node *other)
{
    oly_node *one = NUMBER(Y, 1);
    oly_node *chosen = oly_rule_select(r, BINARY(eq, mine, Y), one, NUMBER(Y, 0));
    return BINARY(div, chosen, oly_rule_select(r, BINARY(eq, other, Y), NUMBER(Y, 2), one));
}

void oly_vjp_extreme(oly_rule *r)
{
    GIVE(0) = oly_rule_mul(r, G, share(r, IN(0), IN(1)));
    GIVE(1) = oly_rule_mul(r, G, share(r, IN(1), IN(0)));
}

/* -- three operands -------------------------------------------------------------------------------------------------- */
void oly_vjp_select(oly_rule *r)
{
    GIVE(1) = oly_rule_select(r, IN(0), G, NUMBER(G, 0));
    GIVE(2) = oly_rule_select(r, IN(0), NUMBER(G, 0), G);
}
