/* SPDX-License-Identifier: BSD-3-Clause */
/* Elementwise operations and their values, from ops_elementwise.def, and those with parameters. */
#define _GNU_SOURCE /* M_PIl */
#include "ops_reference.h"
#include <float.h>

/* -- functions missing in libm ------------------------------------------------------------------------------------- */
static long double inverse_erf(long double y)
{
    long double low = -7, high = 7;
    if (y == 0 || isnan(y))
        return y;
    if (fabsl(y) >= 1)
        return fabsl(y) > 1 ? NAN : copysignl(INFINITY, y);
    for (int k = 0; k < 80; k++) {
        long double middle = (low + high) / 2;
        *(erfl(middle) < y ? &low : &high) = middle;
    }
    return (low + high) / 2;
}
/* By the asymptotic series from 30 on. */
static long double digamma(long double x)
{
    long double sum = 0;
    if (x <= 0)
        return NAN;
    for (; x < 30; x += 1)
        sum -= 1 / x;
    long double i = 1 / (x * x);
    return sum + logl(x) - 1 / (2 * x) -
           i * (1 / 12.0L - i * (1 / 120.0L - i * (1 / 252.0L - i * (1 / 240.0L - i / 132.0L))));
}
/* Steps between adjacent numbers of the type: x + 2^(exponent - digits), on the side of y. */
static long double next(oly_dtype dtype, long double x, long double y)
{
    int digits = 1 - ilogb(oly_dtype_epsilon(dtype)), exponent;
    int least = ilogb(oly_dtype_smallest_normal(dtype)) - digits + 1;
    if (x == y || isnan(x) || isnan(y))
        return x == y ? y : NAN;
    if (x == 0)
        return copysignl(ldexpl(1, least), y);
    bool grows = (y > x) == (x > 0);
    long double part = frexpl(fabsl(x), &exponent);
    int unit = exponent - digits - (!grows && part == 0.5L);
    return x + (y > x ? 1 : -1) * ldexpl(1, unit < least ? least : unit);
}
static long double floor_quotient(long double x, long double y)
{
    if (y == 0 || isnan(x) || isnan(y))
        return x / y;
    return floorl(x / y);
}
/* The result of "the truncated quotient, minus one where signs differ and there is a remainder" for a division by 0. */
static whole floor_by_zero(oly_dtype dtype, whole x)
{
    return element_is_unsigned(dtype) || x == 0 ? -1 : -2;
}
static whole power(whole x, whole y)
{
    whole result = 1;
    if (y < 0)
        return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
    for (; y > 0; y--)
        result = (uint64_t)(result * x);
    return result;
}
static whole ones(whole x, int bits)
{
    whole n = 0;
    for (int k = 0; k < bits; k++)
        n += x >> k & 1;
    return n;
}
static whole zeros_in_front(whole x, int bits)
{
    whole n = 0;
    while (n < bits && !(x >> (bits - 1 - (int)n) & 1))
        n++;
    return n;
}
static whole signed_bits(whole x, int bits)
{
    return x >> (bits - 1) & 1 ? x | -((whole)1 << (bits - 1)) : x;
}
/* A floating-point number as an integer: truncated, saturated, NaN as 0. */
static long double saturated(oly_dtype dtype, long double x)
{
    int bits = ops_bits(dtype) - !element_is_unsigned(dtype);
    long double top = ldexpl(1, bits) - 1, bottom = element_is_unsigned(dtype) ? 0 : -top - 1;
    return isnan(x) ? 0 : x > top ? top : x < bottom ? bottom : truncl(x);
}
static long double bits_of_float(long double x)
{
    float value = (float)x;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* -- the table ---------------------------------------------------------------------------------------------------------- */
typedef struct formulas {
    number (*real)(const tensor *in, long double x, long double y, long double z);
    number (*complex)(const tensor *in, number x, number y, number z);
    whole (*integer)(const tensor *in, whole x, whole y, whole z);
} formulas;

/* in: operands as the formula takes them, converted if the result is floating-point; the last one has the type. */
static number value_elementwise(const row *r, const tensor *in, const int64_t *at)
{
    const formulas *f = r->detail;
    int n = 1, rank = 0;
    number operand[3] = {0, 0, 0};
    for (const char *text = r->shapes; *text; text++)
        n += *text == ',';
    for (int k = 0; k < n; k++)
        rank = in[k].rank > rank ? in[k].rank : rank;
    for (int k = 0; k < n; k++)
        operand[k] = ops_meet(&in[k], rank, at);
    const tensor *typed = &in[n - 1];
    if (element_parts(typed->dtype) > 1)
        return f->complex(typed, operand[0], operand[1], operand[2]);
    if (element_is_inexact(typed->dtype))
        return f->real(typed, creall(operand[0]), creall(operand[1]), creall(operand[2]));
    if (element_is_inexact(ops_result_type(r->result, typed->dtype)))
        return (long double)f->integer(typed, (whole)creall(operand[0]), (whole)creall(operand[1]),
                                       (whole)creall(operand[2]));
    whole result = f->integer(typed, (whole)creall(operand[0]), (whole)creall(operand[1]), (whole)creall(operand[2]));
    return (long double)ops_wrapped(ops_result_type(r->result, typed->dtype), result);
}

/* The low bits of a product, which wrap afterwards. */
static whole times(whole x, whole y)
{
    return (whole)((unsigned __int128)x * (unsigned __int128)y);
}

/* Functions of a line of the table are named after its number. */
#define AT_LINE(prefix)              AT_LINE_(prefix, __LINE__)
#define AT_LINE_(prefix, line)       AT_LINE_PASTE_(prefix, line)
#define AT_LINE_PASTE_(prefix, line) prefix##_at_##line
#define UNUSED_OPERANDS              (void)in, (void)x, (void)y, (void)z
#define FORMULAS(CALL, REAL, COMPLEX, INTEGER)                                                                         \
    static number AT_LINE(real)(const tensor *in, long double x, long double y, long double z)                         \
    {                                                                                                                  \
        UNUSED_OPERANDS;                                                                                               \
        return REAL;                                                                                                   \
    }                                                                                                                  \
    static number AT_LINE(complex)(const tensor *in, number x, number y, number z)                                     \
    {                                                                                                                  \
        UNUSED_OPERANDS;                                                                                               \
        return COMPLEX;                                                                                                \
    }                                                                                                                  \
    static whole AT_LINE(integer)(const tensor *in, whole x, whole y, whole z)                                         \
    {                                                                                                                  \
        UNUSED_OPERANDS;                                                                                               \
        return INTEGER;                                                                                                \
    }                                                                                                                  \
    static const formulas AT_LINE(formulas) = {AT_LINE(real), AT_LINE(complex), AT_LINE(integer)};                     \
    static oly_array AT_LINE(call)(const oly_array *operand)                                                           \
    {                                                                                                                  \
        return CALL;                                                                                                   \
    }
#define ONE(name, op, types, result, low, high, ulps, flags, ...) FORMULAS(oly_##name(operand[0]), __VA_ARGS__)
#define TWO(name, op, shapes, types, result, low, high, ulps, flags, ...)                                              \
    FORMULAS(oly_##name(operand[0], operand[1]), __VA_ARGS__)
#define THREE(name, op, shapes, types, result, low, high, ulps, flags, ...)                                            \
    FORMULAS(oly_##name(operand[0], operand[1], operand[2]), __VA_ARGS__)
#define CALLED(name, op, shapes, call, types, result, low, high, ulps, flags, ...) FORMULAS(call, __VA_ARGS__)
#include "ops_elementwise.def"
#undef ONE
#undef TWO
#undef THREE
#undef CALLED

#define ROW(name, op, shapes, types, result, low, high, ulps, flags)                                                   \
    {name, op, shapes, types, result, AT_LINE(call), value_elementwise, low, high, ulps, flags, &AT_LINE(formulas)},
#define ONE(name, op, types, result, low, high, ulps, flags, ...)                                                      \
    ROW(#name, #op, "mn->mn", types, result, low, high, ulps, flags)
#define TWO(name, op, shapes, types, result, low, high, ulps, flags, ...)                                              \
    ROW(#name, #op, shapes, types, result, low, high, ulps, flags)
#define THREE(name, op, shapes, types, result, low, high, ulps, flags, ...)                                            \
    ROW(#name, #op, shapes, types, result, low, high, ulps, flags)
#define CALLED(name, op, shapes, call, types, result, low, high, ulps, flags, ...)                                     \
    ROW(#name, #op, shapes, types, result, low, high, ulps, flags)
static const row rows[] = {
#include "ops_elementwise.def"
};
const row_list ops_elementwise = ROW_LIST(rows);
