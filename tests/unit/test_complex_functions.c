/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Functions and powers of complex numbers against C's functions of long double, on every instruction set: parts
 * of any exponents, near the unit circle, special values; and their bits wherever an element lies. */
#include "check_kernels.h"
#include <complex.h>

/* Whether a test of functions of long double can be exact enough for complex128. */
#define LONG_IS_LONGER (LDBL_MANT_DIG > DBL_MANT_DIG)

typedef long double _Complex longest;
/* 1 / (1 + e^-x), exact also near its poles. */
static longest logistic(longest x)
{
    long double a = creall(x), b = cimagl(x), half = cosl(b / 2);
    return 1 / (longest)__builtin_complex(2 * expl(-a) * half * half - expm1l(-a), -expl(-a) * sinl(b));
}
static longest less_one(longest x)
{
    long double a = creall(x), b = cimagl(x), half = sinl(b / 2);
    return __builtin_complex(expm1l(a) * cosl(b) - 2 * half * half, expl(a) * sinl(b));
}
static longest exp2_of(longest x)
{
    const long double ln2 = 0xb.17217f7d1cf79abp-4L;
    long double size = exp2l(creall(x)), angle = ln2 * cimagl(x);
    return cimagl(x) == 0 ? __builtin_complex(size, cimagl(x))
                          : __builtin_complex(size * cosl(angle), size * sinl(angle));
}
/* log(1 + x); near the unit circle 1 + a is not rounded. */
static longest log1p_of(longest x)
{
    long double a = creall(x), b = cimagl(x), large = fmaxl(fabsl(1 + a), fabsl(b));
    bool near = large > 0.5L && large < 2;
    long double real = near ? log1pl(a * (2 + a) + b * b) / 2 : creall(clogl(1 + x));
    return __builtin_complex(real, cimagl(clogl(__builtin_complex(1 + a, b))));
}
/* An imaginary zero has the sign of the conjugate's, as in XLA. */
static longest rsqrt_of(longest x)
{
    longest root = csqrtl(x);
    long double a = creall(root), b = cimagl(root), square = a * a + b * b;
    if (isinf(a) || isinf(b))
        return __builtin_complex(0.L, copysignl(0, -b));
    return x == 0 ? __builtin_complex((long double)INFINITY, (long double)NAN)
                  : __builtin_complex(a / square, -b / square);
}
/* reduced: it has an angle, of which the period is subtracted. */
static const struct function {
    const char *name;
    int op;
    longest (*reference)(longest);
    bool reduced, finite; /* finite: for ordinary numbers alone, and as a whole, not in both parts */
    long double error;    /* of the reference */
} functions[] = {{"sqrt", OLY_TILE_sqrt, csqrtl, false, false, 0},
                 {"log", OLY_TILE_log, clogl, false, false, 0},
                 {"exp", OLY_TILE_exp, cexpl, true, false, 0},
                 {"sin", OLY_TILE_sin, csinl, true, false, 0},
                 {"cos", OLY_TILE_cos, ccosl, true, false, 0},
                 {"tan", OLY_TILE_tan, ctanl, true, false, 0},
                 {"sinh", OLY_TILE_sinh, csinhl, true, false, 0},
                 {"cosh", OLY_TILE_cosh, ccoshl, true, false, 0},
                 {"tanh", OLY_TILE_tanh, ctanhl, true, false, 0},
                 {"sigmoid", OLY_TILE_sigmoid, logistic, true, true, 0},
                 {"expm1", OLY_TILE_expm1, less_one, true, true, 0},
                 {"asin", OLY_TILE_asin, casinl, false, false, 0},
                 {"acos", OLY_TILE_acos, cacosl, false, false, 0},
                 {"atan", OLY_TILE_atan, catanl, false, false, 0},
                 {"asinh", OLY_TILE_asinh, casinhl, false, false, 0},
                 {"acosh", OLY_TILE_acosh, cacoshl, false, false, 0},
                 {"atanh", OLY_TILE_atanh, catanhl, false, false, 0},
                 {"exp2", OLY_TILE_exp2, exp2_of, true, true, 0},
                 {"log1p", OLY_TILE_log1p, log1p_of, false, false, 0x1p-60L},
                 {"rsqrt", OLY_TILE_rsqrt, rsqrt_of, false, false, 0}};

static int part_of(int dtype)
{
    return dtype == OLY_COMPLEX64 ? OLY_FLOAT32 : OLY_FLOAT64;
}
static long double rounded(int dtype, long double x)
{
    return dtype == OLY_COMPLEX64 ? (long double)(float)x : (long double)(double)x;
}

/* -- arguments ------------------------------------------------------------------------------------------------------ */

static double any_exponent(int dtype)
{
    double most = dtype == OLY_COMPLEX64 ? 125 : 1021;
    return (random_bits() & 1 ? 1 : -1) * random_between(1, 2) * exp2(floor(random_between(-most - 22, most)));
}

/* NEAR_POINT: near 1, -1, i or -i, which are branch points; NEAR_AXIS: on an axis, or beside it. */
enum form { SPECIAL, ANY, SIMILAR, NEAR_ONE, NEAR_POINT, NEAR_AXIS, BESIDE_ONE, SMALL, FORMS };
static double _Complex draw(int dtype, enum form form)
{
    double a = any_exponent(dtype), angle = random_between(-4, 4),
           r = 1 + random_between(-1, 1) * exp2(random_between(-50, 0));
    switch (form) {
    case SPECIAL:
        a = random_bits() & 1 ? special[random_bits() % COUNT(special)] : a;
        return __builtin_complex(a,
                                 random_bits() & 1 ? special[random_bits() % COUNT(special)] : random_between(-5, 5));
    case ANY: return __builtin_complex(a, any_exponent(dtype));
    case SIMILAR: return __builtin_complex(a, a * random_between(-4, 4));
    case NEAR_ONE: return __builtin_complex(r * cos(angle), r * sin(angle));
    case BESIDE_ONE: return __builtin_complex(r * cos(angle) - 1, r * sin(angle));
    case NEAR_POINT:
        a = fabs(a) < 4 ? a : 1 / a;
        return random_bits() & 1 ? __builtin_complex(copysign(r, angle), a) : __builtin_complex(a, copysign(r, angle));
    case NEAR_AXIS:
        a = random_bits() & 1 ? a : copysign(0., a);
        return random_bits() & 1 ? __builtin_complex(angle, a) : __builtin_complex(a, angle);
    default: return __builtin_complex(random_between(-9, 9), random_between(-9, 9));
    }
}
static void fill(int dtype, enum form form, void *x)
{
    for (int i = 0; i < N; i++)
        set_element((oly_dtype)dtype, x, i, draw(dtype, form));
}

/* -- comparison ----------------------------------------------------------------------------------------------------- */

/* Within so many steps of the wanted number, plus an error of `size`, and as special: NaN, infinite, a zero of that sign. Sums of
 * large and small numbers that cancel may be off by an error of what was added: `size`. */
static bool is_near(int dtype, long double got, long double wanted, long double steps, long double size)
{
    long double nearest = rounded(dtype, wanted), epsilon = element_epsilon((oly_dtype)dtype);
    long double least = dtype == OLY_COMPLEX64 ? 0x1p-149L : 0x1p-1074L,
                most = dtype == OLY_COMPLEX64 ? FLT_MAX : DBL_MAX;
    if (isnan(nearest))
        return isnan(got);
    if (isinf(wanted) || (isinf(nearest) && isinf(got)))
        return got == nearest;
    if (isinf(nearest) || isinf(got)) /* one step from the border */
        return fabsl(wanted) > most * (1 - steps * epsilon) && (got > 0) == (wanted > 0);
    if (wanted == 0 && got == 0)
        return !signbit(got) == !signbit(wanted);
    if (wanted == 0)
        return fabsl(got) <= size;
    return fabsl(got - wanted) <= steps * epsilon * fabsl(wanted) + size + 2 * least;
}
static void expect(const char *name, int dtype, const void *in, const void *out, int i, longest wanted,
                   long double steps, long double size)
{
    double _Complex got = element_of((oly_dtype)dtype, out, i), x = element_of((oly_dtype)dtype, in, i);
    if (!is_near(dtype, creal(got), creall(wanted), steps, size) ||
        !is_near(dtype, cimag(got), cimagl(wanted), steps, size))
        fail_msg("%s: %s of (%a, %a) of type %d is (%a, %a), not (%La, %La)", oly_kernels_isa(), name, creal(x),
                 cimag(x), dtype, creal(got), cimag(got), creall(wanted), cimagl(wanted));
}

/* -- values --------------------------------------------------------------------------------------------------------- */

/* C's own sine and cosine of very large numbers are off by more steps where they are small. */
static void check_functions(int dtype, enum form form)
{
    static double x[2 * N], y[2 * N];
    const void *in[1] = {x};
    fill(dtype, form, x);
    for (int k = 0; k < COUNT(functions); k++) {
        apply(functions[k].op, dtype, dtype, N, in, 1, 0, y);
        for (int i = 0; i < N; i++) {
            double _Complex z = element_of((oly_dtype)dtype, x, i);
            longest wanted = functions[k].reference(z);
            long double size = functions[k].reduced && isfinite(cabsl(wanted)) ? cabsl(wanted) : 0;
            bool far = functions[k].reduced && (fabs(creal(z)) > 0x1p29 || fabs(cimag(z)) > 0x1p29);
            if (!functions[k].finite || (fabs(creal(z)) < 80 && fabs(cimag(z)) < 80))
                expect(functions[k].name, dtype, x, y, i, wanted, far ? 64 : 4,
                       functions[k].error +
                           size * (functions[k].finite ? 2 : 0x1p-45L) * element_epsilon((oly_dtype)dtype));
        }
    }
    apply(OLY_TILE_abs, dtype, part_of(dtype), N, in, 1, 0, y);
    for (int i = 0; i < N; i++) {
        long double wanted = cabsl(element_of((oly_dtype)dtype, x, i));
        double got = element_part((oly_dtype)part_of(dtype), y, i, 0);
        if (!is_near(dtype, got, wanted, 1.25L, 0))
            fail_msg("%s: abs of element %d of type %d is %a, not %La", oly_kernels_isa(), i, dtype, got, wanted);
    }
}

/* Powers of finite numbers; the error is that of the exponent y log x, which rounding to double leaves. */
static void check_powers(int dtype, enum form form)
{
    static double x[2 * N], y[2 * N], z[2 * N];
    const void *in[2] = {x, y};
    fill(dtype, form, x);
    fill(dtype, SMALL, y);
    apply(OLY_TILE_pow, dtype, dtype, N, in, 2, 0, z);
    for (int i = 0; i < N; i++) {
        longest a = element_of((oly_dtype)dtype, x, i), b = element_of((oly_dtype)dtype, y, i), w = b * clogl(a);
        long double size = cabsl(b) * cabsl(clogl(a)) * 0x1p-50L * expl(creall(w));
        expect("a power", dtype, x, z, i, cexpl(w), 2, size + element_epsilon((oly_dtype)dtype) * expl(creall(w)));
    }
}

/* The power of numbers one of which is special or zero: C's, but for powers of zero and by zero. */
static double _Complex special_power(double _Complex x, double _Complex y)
{
    if (y == 0)
        return 1;
    if (x == 0)
        return creal(y) > 0 ? 0 : creal(y) < 0 ? INFINITY : NAN;
    return cpow(x, y);
}
static void check_special_powers(int dtype)
{
    static double x[2 * N], y[2 * N], z[2 * N];
    const void *in[2] = {x, y};
    fill(dtype, SPECIAL, x);
    fill(dtype, SPECIAL, y);
    apply(OLY_TILE_pow, dtype, dtype, N, in, 2, 0, z);
    for (int i = 0; i < N; i++) {
        double _Complex a = element_of((oly_dtype)dtype, x, i), b = element_of((oly_dtype)dtype, y, i);
        bool ordinary =
            a != 0 && b != 0 && isfinite(creal(a)) && isfinite(cimag(a)) && isfinite(creal(b)) && isfinite(cimag(b));
        if (!ordinary)
            expect("a special power", dtype, x, z, i, special_power(a, b), 0, 0);
    }
}

static void check_values(void)
{
    for (int dtype = OLY_COMPLEX64; dtype <= OLY_COMPLEX128; dtype++)
        for (int round = 0; round < 8 && (dtype == OLY_COMPLEX64 || LONG_IS_LONGER); round++) {
            for (int form = 0; form < FORMS; form++)
                check_functions(dtype, (enum form)form);
            check_powers(dtype, ANY);
            check_powers(dtype, NEAR_ONE);
            check_powers(dtype, SMALL);
            check_special_powers(dtype);
        }
}

/* -- places --------------------------------------------------------------------------------------------------------- */

/* `count` elements from element `first` on have the bits that they have in the whole array. */
static void expect_same(int op, int dtype, int to, const char *x, const char *y, int scalars, const char *whole,
                        int first, int count)
{
    static char some[16 * N];
    size_t bytes = oly_dtype_size((oly_dtype)dtype), result = oly_dtype_size((oly_dtype)to), at = (size_t)first;
    const void *in[2] = {scalars & 1 ? x : x + at * bytes, scalars & 2 ? y : y + at * bytes};
    apply(op, dtype, to, count, in, op == OLY_TILE_pow ? 2 : 1, scalars, some + at * result);
    if (memcmp(some + at * result, whole + at * result, result * (size_t)count) != 0)
        fail_msg("%s: operation %d of type %d: other bits for %d elements from %d on", oly_kernels_isa(), op, dtype,
                 count, first);
}
static void check_places_of(int op, int dtype, int to, int scalars)
{
    static char x[16 * N], y[16 * N], whole[16 * N];
    const void *in[2] = {x, y};
    fill(dtype, SMALL, x);
    fill(dtype, SMALL, y);
    apply(op, dtype, to, N, in, op == OLY_TILE_pow ? 2 : 1, scalars, whole);
    for (int count = 1; count < 70; count++)
        expect_same(op, dtype, to, x, y, scalars, whole, (int)(random_bits() % 900), count);
}
static void check_places(void)
{
    for (int dtype = OLY_COMPLEX64; dtype <= OLY_COMPLEX128; dtype++) {
        for (int k = 0; k < COUNT(functions); k++)
            check_places_of(functions[k].op, dtype, dtype, 0);
        check_places_of(OLY_TILE_abs, dtype, part_of(dtype), 0);
        for (int scalars = 0; scalars < 3; scalars++)
            check_places_of(OLY_TILE_pow, dtype, dtype, scalars);
    }
}

static void values_are_those_of_c(void **unused)
{
    (void)unused, on_each(check_values);
}
static void bits_do_not_depend_on_the_place(void **unused)
{
    (void)unused, on_each(check_places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_c),
        cmocka_unit_test(bits_do_not_depend_on_the_place),
    };
    return CHECK_MAIN(tests);
}
