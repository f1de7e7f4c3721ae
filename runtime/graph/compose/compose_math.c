/* SPDX-License-Identifier: BSD-3-Clause */
/* Mathematical functions of jax.numpy and jax.lax made of several rows, each written as JAX writes it, from which the
 * error bounds, special values and gradients follow. */
#include "graph/numbers.h"
#include "graph/compose/compose_math.h"
#include "graph/sharding_rule/sharding_rule.h"
#include "graph/compose/expression_words.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* -- rows with converted operands -------------------------------------------------------------------------- */
COMPOSE(numeric)
{
    (void)n_in;
    BEGIN oly_node *x = oly_expression_numeric(s, in[0]);
    DONE(oly_expression_unary(s, recipe->op, x));
}
COMPOSE(floating_binary)
{
    (void)n_in;
    BEGIN oly_node *x = in[0], *y = in[1];
    oly_expression_floating_pair(s, &x, &y);
    DONE(oly_expression_binary(s, recipe->op, x, y));
}
COMPOSE(numeric_binary)
{
    (void)n_in;
    BEGIN oly_node *x = in[0], *y = in[1];
    oly_expression_numeric_pair(s, &x, &y);
    DONE(oly_expression_binary(s, recipe->op, x, y));
}
/* jnp's: unsigned numbers are shifted logically. */
COMPOSE(right_shift)
{
    UNUSED;
    BEGIN oly_node *x = in[0], *y = in[1];
    oly_expression_numeric_pair(s, &x, &y);
    bool is_signed = x && oly_dtype_is_signed(x->type.dtype);
    DONE(oly_expression_binary(s, is_signed ? OLY_OP_shift_right_arithmetic : OLY_OP_shift_right_logical, x, y));
}
COMPOSE(logical)
{
    (void)n_in;
    oly_node *both[2];
    for (int k = 0; k < 2; k++)
        OLY_TRY(oly_build_truth(g, in[k], &both[k]));
    OLY_TRY(oly_build_common_shape(g, 2, both));
    return oly_build_apply(g, recipe->op, 2, both, out);
}

/* -- rounding ----------------------------------------------------------------------------------------------------- */
/* floor, ceil: integers stay as they are. */
COMPOSE(whole)
{
    (void)n_in;
    BEGIN DONE(oly_kind_of(in[0]) < OLY_KIND_FLOAT ? in[0] : oly_expression_unary(s, recipe->op, in[0]));
}
COMPOSE(trunc)
{
    UNUSED;
    BEGIN oly_node *x = in[0];
    if (oly_kind_of(x) < OLY_KIND_FLOAT)
        DONE(x);
    DONE(SELECT(BINARY(lt, x, WHOLE(0)), UNARY(ceil, x), UNARY(floor, x)));
}
static oly_node *round_to(oly_expression *s, oly_node *x, int decimals)
{
    if (decimals == 0)
        return UNARY(round, x);
    oly_dtype dtype = x ? x->type.dtype : OLY_FLOAT32;
    x = dtype == OLY_FLOAT16 ? oly_expression_convert(s, x, OLY_FLOAT32) : x;
    oly_node *factor = NUMBER(pow(10, decimals));
    return oly_expression_convert(s, BINARY(div, UNARY(round, BINARY(mul, x, factor)), factor), dtype);
}
COMPOSE(round)
{
    (void)n_in;
    BEGIN oly_node *x = in[0];
    int decimals = recipe->params.dimension;
    if (oly_kind_of(x) == OLY_KIND_INTEGER && decimals < 0)
        return oly_fail(OLY_INVALID, "integers are not rounded to %d decimals: give 0 or more", decimals);
    if (oly_kind_of(x) == OLY_KIND_INTEGER ||
        decimals > (oly_dtype_real(x->type.dtype) == OLY_FLOAT64 ? DBL_MAX_10_EXP : FLT_MAX_10_EXP))
        DONE(x);
    if (oly_kind_of(x) == OLY_KIND_COMPLEX)
        DONE(BINARY(complex, round_to(s, UNARY(real, x), decimals), round_to(s, UNARY(imag, x), decimals)));
    DONE(round_to(s, x, decimals));
}

/* -- products ---------------------------------------------------------------------------------------------------------- */
/* Powers by repeated squaring, multiplied in JAX's order. */
static oly_node *whole_power(oly_expression *s, oly_node *x, int64_t y)
{
    bool inverse = y < 0;
    oly_node *result = NULL, *one = WHOLE(1);
    if (y == 3) /* (x x) x */
        return BINARY(mul, BINARY(mul, x, x), x);
    for (uint64_t rest = inverse ? -(uint64_t)y : (uint64_t)y; rest != 0 && s->status == OLY_OK; rest >>= 1) {
        if (rest & 1)
            result = result ? BINARY(mul, result, x) : x;
        if (rest > 1)
            x = BINARY(mul, x, x);
    }
    return inverse ? BINARY(div, one, result) : result;
}
static oly_status compose_power(oly_graph *g, oly_node *x, int64_t y, oly_node **out)
{
    if (x->type.unreduced || x->type.reduced) /* as products it might be defined, but JAX's integer_pow is not */
        return oly_sharding_fail_types("integer_pow", &x->type, NULL, "unsupported",
                                       "an integer power is not defined on unreduced sums ({U:...}) nor on values that "
                                       "are reduced along axes ({R:...}); move the operand with oly_reshard first");
    BEGIN x = oly_expression_numeric(s, x);
    if (x && y < 0 && oly_kind_of(x) == OLY_KIND_INTEGER)
        return oly_fail(
            OLY_DTYPE,
            "%s to the power %lld: integers cannot be raised to negative powers; convert with oly_astype(x, "
            "OLY_FLOAT32)",
            oly_type_short(&x->type), (long long)y);
    if (y == 0 && x)
        DONE(oly_expression_convert(s, oly_expression_all(s, x, true), x->type.dtype));
    DONE(whole_power(s, x, y));
}
COMPOSE(integer_pow)
{
    (void)n_in;
    return compose_power(g, in[0], recipe->params.dimension, out);
}
/* Integer powers select by the bits of y: where shapes are equal, y must be split wherever x is. */
static oly_status check_choice(const oly_type *x, const oly_type *y)
{
    if (!x->mesh || !y->mesh || y->rank == 0 || oly_axes_same(x, y) || x->rank != y->rank ||
        memcmp(x->shape, y->shape, sizeof *x->shape * (size_t)x->rank) != 0)
        return OLY_OK;
    for (int d = 0; d < x->rank; d++)
        if (x->axes[d].n > 0 && y->axes[d].n == 0)
            return oly_sharding_fail_types("pow", x, y, "select_conflict",
                                           "an integer power selects among products by the exponent, whose dimension "
                                           "%d must be split like that of the base; move "
                                           "one with oly_reshard",
                                           d);
    return OLY_OK;
}
/* An integer exponent: by products. */
COMPOSE(power)
{
    (void)n_in, (void)recipe;
    oly_node *x = in[0], *y = in[1];
    if (oly_is_constant(y) && y->type.weak && oly_kind_of(y) == OLY_KIND_INTEGER) {
        oly_number_fix(g, y);
        return compose_power(g, x, y->params.value.i, out);
    }
    if (!y->type.weak && oly_kind_of(y) == OLY_KIND_INTEGER && oly_kind_of(x) > OLY_KIND_INTEGER)
        OLY_TRY(oly_build_convert(g, x, x->type.dtype, false, &x)); /* a number to such powers is not weak */
    BEGIN oly_expression_numeric_pair(s, &x, &y);
    oly_node *result = BINARY(pow, x, y);
    if (result && oly_kind_of(x) == OLY_KIND_INTEGER)
        OLY_TRY(check_choice(&x->type, &y->type));
    DONE(result);
}
COMPOSE(reciprocal)
{
    UNUSED;
    BEGIN DONE(whole_power(s, oly_expression_floating(s, in[0]), -1));
}
/* x times params.value, floating */
COMPOSE(scaled)
{
    (void)n_in;
    BEGIN DONE(BINARY(mul, oly_expression_floating(s, in[0]), NUMBER(recipe->params.value.f)));
}

/* -- logarithms -------------------------------------------------------------------------------------------------------- */
COMPOSE(log2)
{
    UNUSED;
    BEGIN oly_node *x = UNARY(log, oly_expression_floating(s, in[0]));
    oly_node *two = x ? oly_expression_convert(s, NUMBER(2), oly_dtype_real(x->type.dtype)) : NULL;
    oly_node *ln2 = UNARY(log, two);
    if (x && oly_kind_of(x) == OLY_KIND_COMPLEX)
        DONE(BINARY(complex, BINARY(div, UNARY(real, x), ln2), BINARY(div, UNARY(imag, x), ln2)));
    DONE(BINARY(div, x, ln2));
}
COMPOSE(log10)
{
    UNUSED;
    BEGIN oly_node *x = UNARY(log, oly_expression_floating(s, in[0])), *factor = NUMBER(0.4342944819032518);
    if (x && oly_kind_of(x) == OLY_KIND_COMPLEX)
        DONE(BINARY(complex, BINARY(mul, UNARY(real, x), factor), BINARY(mul, UNARY(imag, x), factor)));
    DONE(BINARY(mul, x, factor));
}

/* -- quotients --------------------------------------------------------------------------------------------------------- */
static oly_status refuse_complex(const char *what, const oly_node *x)
{
    if (x && oly_kind_of(x) == OLY_KIND_COMPLEX)
        return oly_fail(OLY_DTYPE, "%s of %s is not defined: it takes real numbers; take oly_real or oly_abs first",
                        what, oly_type_short(&x->type));
    return OLY_OK;
}
/* Truncates for integers, as lax.div. */
COMPOSE(quotient)
{
    UNUSED;
    BEGIN oly_node *x = in[0], *y = in[1];
    oly_expression_numeric_pair(s, &x, &y);
    DONE(BINARY(div, x, y));
}
/* As CPython's float_divmod. */
static oly_node *floating_quotient(oly_expression *s, oly_node *x, oly_node *y)
{
    oly_node *mod = BINARY(rem, x, y), *zero = WHOLE(0);
    oly_node *div = BINARY(div, SELECT(BINARY(eq, y, zero), x, BINARY(sub, x, mod)), y);
    oly_node *differ = BINARY(and, BINARY(ne, mod, zero), BINARY(ne, UNARY(sign, y), UNARY(sign, mod)));
    return UNARY(round_away, SELECT(differ, BINARY(sub, div, NUMBER(1)), div));
}
COMPOSE(floor_divide)
{
    UNUSED;
    BEGIN oly_node *x = in[0], *y = in[1];
    oly_expression_numeric_pair(s, &x, &y);
    OLY_TRY(refuse_complex("floor_divide", x));
    if (x && oly_kind_of(x) == OLY_KIND_FLOAT)
        DONE(floating_quotient(s, x, y));
    oly_node *quotient = BINARY(div, x, y);
    if (x && !oly_dtype_is_signed(x->type.dtype))
        DONE(quotient);
    oly_node *differ = BINARY(ne, UNARY(sign, x), UNARY(sign, y)), *rest = BINARY(ne, BINARY(rem, x, y), WHOLE(0));
    DONE(SELECT(BINARY(and, differ, rest), BINARY(sub, quotient, WHOLE(1)), quotient));
}
/* The divisor of an integer remainder: 1 in place of 0. */
static oly_node *not_zero(oly_expression *s, oly_node *y)
{
    bool whole = y && oly_kind_of(y) == OLY_KIND_INTEGER;
    return whole ? SELECT(BINARY(eq, y, WHOLE(0)), WHOLE(1), y) : y;
}
COMPOSE(remainder)
{
    UNUSED;
    BEGIN oly_node *x = in[0], *y = in[1], *zero = WHOLE(0);
    oly_expression_numeric_pair(s, &x, &y);
    OLY_TRY(refuse_complex("remainder", x));
    y = not_zero(s, y);
    oly_node *mod = BINARY(rem, x, y);
    oly_node *differ = BINARY(ne, BINARY(lt, mod, zero), BINARY(lt, y, zero));
    DONE(SELECT(BINARY(and, differ, BINARY(ne, mod, zero)), BINARY(add, mod, y), mod));
}
COMPOSE(fmod)
{
    UNUSED;
    BEGIN oly_node *x = in[0], *y = in[1];
    oly_expression_numeric_pair(s, &x, &y);
    DONE(BINARY(rem, x, not_zero(s, y)));
}

/* -- bounds ------------------------------------------------------------------------------------------------------------- */
/* recipe.op: gt or lt; where one operand is NaN, the other. */
COMPOSE(ignoring_nan)
{
    (void)n_in;
    BEGIN oly_node *mine = oly_expression_binary(s, recipe->op, in[0], in[1]);
    DONE(SELECT(BINARY(or, mine, BINARY(ne, in[1], in[1])), in[0], in[1]));
}
/* in: lowest, x, highest. The bounds have x's type, and its shape or rank 0. */
COMPOSE(clamp)
{
    UNUSED;
    oly_node *all[3] = {in[0], in[1], in[2]};
    const oly_type *x = &in[1]->type;
    for (int k = 0; k < 3; k += 2) {
        const oly_type *bound = &in[k]->type;
        if (bound->weak ? oly_dtype_kind(bound->dtype) > oly_dtype_kind(x->dtype) : bound->dtype != x->dtype)
            return oly_fail(OLY_DTYPE,
                            "the bounds of clamp must have the type of the operand, not %s for %s; convert with "
                            "oly_astype, or use oly_clip",
                            oly_type_short(bound), oly_type_short(x));
        if (bound->rank > 0 &&
            (bound->rank != x->rank || memcmp(bound->shape, x->shape, sizeof *x->shape * (size_t)x->rank) != 0))
            return oly_fail(OLY_SHAPE,
                            "the bounds of clamp must be numbers or have the shape of the operand, not %s for "
                            "%s; broadcast first, or use oly_clip",
                            oly_type_short(bound), oly_type_short(x));
        OLY_TRY(oly_build_convert(g, in[k], x->dtype, x->weak, &all[k]));
    }
    OLY_TRY(refuse_complex("clamp", in[1]));
    OLY_TRY(oly_build_common_shape(g, 3, all));
    return oly_build_apply(g, OLY_OP_clamp, 3, all, out);
}
/* in: x, lowest, highest */
COMPOSE(clip)
{
    UNUSED;
    for (int k = 0; k < 3; k++)
        OLY_TRY(refuse_complex("clip", in[k]));
    BEGIN DONE(BINARY(min, BINARY(max, in[1], in[0]), in[2]));
}

/* -- kinds of numbers --------------------------------------------------------------------------------------------------- */
static oly_node *is_infinite(oly_expression *s, oly_node *x)
{
    return BINARY(eq, UNARY(abs, x), NUMBER(INFINITY));
}
COMPOSE(isnan)
{
    UNUSED;
    BEGIN DONE(BINARY(ne, in[0], in[0]));
}
COMPOSE(isinf)
{
    UNUSED;
    BEGIN oly_node *x = in[0];
    if (oly_kind_of(x) < OLY_KIND_FLOAT)
        DONE(oly_expression_all(s, x, false));
    if (oly_kind_of(x) == OLY_KIND_COMPLEX)
        DONE(BINARY(or, is_infinite(s, UNARY(real, x)), is_infinite(s, UNARY(imag, x))));
    DONE(is_infinite(s, x));
}
COMPOSE(isfinite)
{
    UNUSED;
    BEGIN oly_node *x = in[0];
    if (oly_kind_of(x) < OLY_KIND_FLOAT)
        DONE(oly_expression_all(s, x, true));
    if (oly_kind_of(x) == OLY_KIND_COMPLEX)
        DONE(BINARY(and, UNARY(is_finite, UNARY(real, x)), UNARY(is_finite, UNARY(imag, x))));
    DONE(UNARY(is_finite, x));
}
/* x is params.value, an infinity */
COMPOSE(isinfinity)
{
    (void)n_in;
    OLY_TRY(refuse_complex(recipe->params.value.f > 0 ? "isposinf" : "isneginf", in[0]));
    BEGIN if (oly_kind_of(in[0]) < OLY_KIND_FLOAT) DONE(oly_expression_all(s, in[0], false));
    DONE(BINARY(eq, in[0], NUMBER(recipe->params.value.f)));
}
static oly_node *finite_part(oly_expression *s, oly_node *x, oly_node *nan, oly_node *most, oly_node *least)
{
    x = SELECT(BINARY(ne, x, x), nan, x);
    x = SELECT(BINARY(eq, x, NUMBER(INFINITY)), most, x);
    return SELECT(BINARY(eq, x, NUMBER(-INFINITY)), least, x);
}
COMPOSE(nan_to_num)
{
    UNUSED;
    oly_node *x = in[0];
    oly_dtype part = oly_dtype_real(x->type.dtype);
    BEGIN if (oly_kind_of(x) < OLY_KIND_FLOAT) DONE(x);
    oly_node *nan = oly_expression_convert(s, NUMBER(0), part),
             *most = oly_expression_convert(s, NUMBER(oly_dtype_largest(part)), part);
    oly_node *least = oly_expression_convert(s, NUMBER(-oly_dtype_largest(part)), part);
    if (oly_kind_of(x) == OLY_KIND_COMPLEX)
        DONE(BINARY(complex, finite_part(s, UNARY(real, x), nan, most, least),
                    finite_part(s, UNARY(imag, x), nan, most, least)));
    DONE(finite_part(s, x, nan, most, least));
}

/* -- signs ---------------------------------------------------------------------------------------------------------------- */
static oly_node *sign_bit(oly_expression *s, oly_node *x)
{
    static const oly_dtype whole[] = {[1] = OLY_INT8, [2] = OLY_INT16, [4] = OLY_INT32, [8] = OLY_INT64};
    if (x && oly_kind_of(x) == OLY_KIND_FLOAT)
        x = oly_expression_bits(s, x, whole[oly_dtype_size(x->type.dtype)]);
    return x && x->type.dtype == OLY_BOOL ? oly_expression_all(s, x, false) : BINARY(lt, x, WHOLE(0));
}
COMPOSE(signbit)
{
    UNUSED;
    OLY_TRY(refuse_complex("signbit", in[0]));
    BEGIN DONE(sign_bit(s, in[0]));
}
COMPOSE(copysign)
{
    UNUSED;
    BEGIN oly_node *x = in[0], *y = in[1];
    oly_expression_floating_pair(s, &x, &y);
    OLY_TRY(refuse_complex("copysign", x));
    x = UNARY(abs, x);
    DONE(SELECT(sign_bit(s, y), UNARY(neg, x), x));
}

/* -- angles and lengths --------------------------------------------------------------------------------------------------- */
COMPOSE(hypot)
{
    UNUSED;
    BEGIN oly_node *x = in[0], *y = in[1], *one = WHOLE(1);
    oly_expression_floating_pair(s, &x, &y);
    OLY_TRY(refuse_complex("hypot", x));
    x = UNARY(abs, x), y = UNARY(abs, y);
    oly_node *infinite = BINARY(or, BINARY(eq, x, NUMBER(INFINITY)), BINARY(eq, y, NUMBER(INFINITY)));
    oly_node *larger = BINARY(max, x, y), *smaller = BINARY(min, x, y), *zero = BINARY(eq, larger, WHOLE(0));
    oly_node *ratio = UNARY(square, BINARY(div, smaller, SELECT(zero, one, larger)));
    oly_node *length = SELECT(zero, larger, BINARY(mul, larger, UNARY(sqrt, BINARY(add, one, ratio))));
    DONE(SELECT(infinite, NUMBER(INFINITY), length));
}
/* sin(pi x) / (pi x). At zero the first terms of the series, of an operand that is zero everywhere, for the sake of the
 * derivatives. */
COMPOSE(sinc)
{
    UNUSED;
    BEGIN oly_node *x = oly_expression_floating(s, in[0]), *zero = BINARY(eq, x, WHOLE(0)),
                   *angle = BINARY(mul, NUMBER(M_PI), x);
    oly_node *safe = SELECT(zero, WHOLE(1), angle), *z = UNARY(square, SELECT(zero, angle, WHOLE(0)));
    oly_node *series = BINARY(add, BINARY(mul, z, NUMBER(1.0 / 120)), NUMBER(-1.0 / 6));
    series = BINARY(add, BINARY(mul, z, series), WHOLE(1));
    DONE(SELECT(zero, series, BINARY(div, UNARY(sin, safe), safe)));
}
COMPOSE(angle)
{
    UNUSED;
    BEGIN oly_node *x = in[0];
    if (oly_kind_of(x) == OLY_KIND_COMPLEX)
        DONE(BINARY(atan2, UNARY(imag, x), UNARY(real, x)));
    bool narrow = oly_kind_of(x) == OLY_KIND_FLOAT && x->type.rank > 0;
    x = oly_expression_convert(s, x, narrow ? x->type.dtype : oly_default_float());
    DONE(BINARY(atan2, x ? oly_expression_convert(s, oly_expression_all(s, x, false), x->type.dtype) : NULL, x));
}

/* -- choosing --------------------------------------------------------------------------------------------------------------- */
/* in: the index, then the cases; an index out of range selects the first or last. */
COMPOSE(select_n)
{
    (void)recipe;
    oly_node *which = in[0], *result = in[n_in - 1];
    if (oly_kind_of(which) > OLY_KIND_INTEGER || (which->type.dtype == OLY_BOOL && n_in > 3))
        return oly_fail(OLY_DTYPE, "select_n chooses by integers, or between two cases by bools; not between %d by %s",
                        n_in - 1, oly_type_short(&which->type));
    for (int k = 2; k < n_in; k++)
        if (!oly_type_equal(&in[1]->type, &in[k]->type))
            return oly_fail(in[1]->type.dtype == in[k]->type.dtype ? OLY_SHAPE : OLY_DTYPE,
                            "the cases of select_n must have one type: %s and %s differ; convert or broadcast first",
                            oly_type_short(&in[1]->type), oly_type_short(&in[k]->type));
    oly_type same = in[1]->type;
    same.dtype = which->type.dtype;
    if (which->type.rank > 0 && !oly_type_equal(&same, &which->type))
        return oly_fail(OLY_SHAPE, "select_n: %s must be rank 0 or have the shape of the cases, %s",
                        oly_type_short(&which->type), oly_type_short(&in[1]->type));
    BEGIN bool truth = which->type.dtype == OLY_BOOL;
    if (truth && n_in == 3)
        DONE(SELECT(which, in[2], in[1]));
    for (int k = n_in - 2; k >= 1; k--)
        result = SELECT(BINARY(le, which, WHOLE(k - 1)), in[k], result);
    DONE(result);
}
