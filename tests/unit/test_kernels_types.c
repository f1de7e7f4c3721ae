/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Elementwise kernels between types: conversions, select, float16 and bfloat16 through float32, complex
 * numbers against the C library. */
#include "core/dtype_list.h"
#include "core/narrow.h"
#include "check_kernels.h"
#include <complex.h>

/* -- conversions ---------------------------------------------------------------------------------------------------- */

static long double exactly(int dtype, const void *x, int64_t i)
{
    return dtype == OLY_INT64    ? (long double)((const int64_t *)x)[i]
           : dtype == OLY_UINT64 ? (long double)((const uint64_t *)x)[i]
                                 : (long double)element_part((oly_dtype)dtype, x, i, 0);
}

/* The expected conversion to bool or an integer type. */
static long double to_whole(long double x, int from, int to)
{
    bool from_integer = from <= OLY_UINT64;
    int bits = 8 * (int)oly_dtype_size((oly_dtype)to);
    bool negative = to <= OLY_INT64;
    long double high = ldexpl(1, negative ? bits - 1 : bits) - 1, low = negative ? -high - 1 : 0;
    if (to == OLY_BOOL)
        return x != 0;
    if (!from_integer)
        return x != x ? 0 : truncl(x) < low ? low : truncl(x) > high ? high : truncl(x);
    uint64_t wrapped = (x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x) << (64 - bits);
    return negative ? (long double)((int64_t)wrapped >> (64 - bits)) : (long double)(wrapped >> (64 - bits));
}

/* Floating-point results are rounded once, except for integers converted to narrow types, which go through float32. */
static long double to_floating(long double x, int from, int to)
{
    char element[16] __attribute__((aligned(16)));
    oly_dtype part = to == OLY_COMPLEX64 ? OLY_FLOAT32 : to == OLY_COMPLEX128 ? OLY_FLOAT64 : (oly_dtype)to;
    if (part == OLY_FLOAT32)
        return (float)x;
    if (part == OLY_FLOAT64)
        return (double)x;
    set_element(part, element, 0, from <= OLY_UINT64 ? (double)(float)x : (double)x);
    return element_part(part, element, 0, 0);
}

static void check_conversions(void)
{
    static double x[2 * N], y[2 * N];
    const void *in[1] = {x};
    for (int from = 0; from < OLY_N_DTYPES; from++)
        for (int to = 0; to < OLY_N_DTYPES; to++) {
            fill_with_specials(from, x, N);
            apply(OLY_TILE_convert, from, to, N, in, 1, 0, y);
            for (int i = 0; i < N; i++) {
                long double value = exactly(from, x, i), got = exactly(to, y, i);
                long double expected = to <= OLY_UINT64 ? to_whole(value, from, to) : to_floating(value, from, to);
                if (got != expected && !(got != got && expected != expected))
                    fail_msg("%s: %Lg of type %d became %Lg of type %d, not %Lg", oly_kernels_isa(), value, from, got,
                             to, expected);
                if (element_parts((oly_dtype)to) == 1)
                    continue;
                double imaginary = element_part((oly_dtype)to, y, i, 1), wanted = 0;
                if (element_parts((oly_dtype)from) == 2)
                    wanted = (double)to_floating(element_part((oly_dtype)from, x, i, 1), from, to);
                assert_true(imaginary == wanted || (imaginary != imaginary && wanted != wanted));
            }
        }
}
static void conversions_truncate_saturate_and_wrap(void **unused)
{
    (void)unused, on_each(check_conversions);
}

static void check_select(void)
{
    static uint8_t c[N];
    static double x[2 * N], y[2 * N], z[2 * N];
    const void *in[3] = {c, x, y};
    fill_with_specials(OLY_BOOL, c, N);
    for (int dtype = 0; dtype < OLY_N_DTYPES; dtype++)
        for (int scalars = 0; scalars < 8; scalars++) {
            int size = (int)oly_dtype_size((oly_dtype)dtype);
            fill_with_specials(dtype, x, N);
            fill_with_specials(dtype, y, N);
            apply(OLY_TILE_select, dtype, dtype, N, in, 3, scalars, z);
            for (int i = 0; i < N; i++) {
                const char *from = c[scalars & 1 ? 0 : i] ? (char *)x + (scalars & 2 ? 0 : i) * size
                                                          : (char *)y + (scalars & 4 ? 0 : i) * size;
                assert_memory_equal((char *)z + i * size, from, (size_t)size);
            }
        }
}
static void select_takes_any_mix_of_scalars(void **unused)
{
    (void)unused, on_each(check_select);
}

/* -- narrow floating types ------------------------------------------------------------------------------------------- */

static const int of_one[] = {OLY_TILE_neg, OLY_TILE_abs, OLY_TILE_sign, OLY_TILE_exp,  OLY_TILE_log,
                             OLY_TILE_sin, OLY_TILE_cos, OLY_TILE_sqrt, OLY_TILE_tanh, OLY_TILE_floor};
static const int of_two[] = {OLY_TILE_add, OLY_TILE_sub, OLY_TILE_mul, OLY_TILE_div, OLY_TILE_max, OLY_TILE_min,
                             OLY_TILE_pow, OLY_TILE_eq,  OLY_TILE_ne,  OLY_TILE_lt,  OLY_TILE_le,  OLY_TILE_ge};

static bool compares(int op)
{
    return op >= OLY_TILE_eq && op <= OLY_TILE_ge;
}

/* Checks that the operation returns what it returns on float32, rounded. */
static void check_narrow(int op, int n_in, int dtype, int scalars)
{
    static uint16_t x[N], y[N], z[N]; /* or bytes */
    static float xs[N], ys[N], zs[N];
    static uint8_t truth[N], truth_single[N];
    const void *in[2] = {x, y}, *in_single[2] = {xs, ys}, *wide[1] = {x};
    fill_with_specials(dtype, x, N);
    fill_with_specials(dtype, y, N);
    apply(OLY_TILE_convert, dtype, OLY_FLOAT32, N, wide, 1, 0, xs);
    wide[0] = y;
    apply(OLY_TILE_convert, dtype, OLY_FLOAT32, N, wide, 1, 0, ys);
    apply(op, dtype, compares(op) ? OLY_BOOL : dtype, N, in, n_in, scalars, compares(op) ? (void *)truth : (void *)z);
    apply(op, OLY_FLOAT32, compares(op) ? OLY_BOOL : OLY_FLOAT32, N, in_single, n_in, scalars,
          compares(op) ? (void *)truth_single : (void *)zs);
    if (compares(op)) {
        assert_memory_equal(truth, truth_single, N);
        return;
    }
    wide[0] = zs;
    apply(OLY_TILE_convert, OLY_FLOAT32, dtype, N, wide, 1, 0, y);
    assert_memory_equal(z, y, N * oly_dtype_size((oly_dtype)dtype));
}
static void check_narrow_types(void)
{
    for (int dtype = 0; dtype < OLY_N_DTYPES; dtype++)
        for (int scalars = 0; scalars < 4 && oly_is_narrow((oly_dtype)dtype); scalars++) {
            for (int k = 0; k < COUNT(of_one) && scalars < 2; k++)
                check_narrow(of_one[k], 1, dtype, scalars);
            for (int k = 0; k < COUNT(of_two); k++)
                check_narrow(of_two[k], 2, dtype, scalars);
        }
}
static void narrow_floats_are_computed_in_float32(void **unused)
{
    (void)unused, on_each(check_narrow_types);
}

/* -- complex numbers ------------------------------------------------------------------------------------------------ */

static const struct {
    int op;
    long double _Complex (*reference)(long double _Complex);
} functions[] = {{OLY_TILE_exp, cexpl}, {OLY_TILE_log, clogl},   {OLY_TILE_sqrt, csqrtl}, {OLY_TILE_sin, csinl},
                 {OLY_TILE_cos, ccosl}, {OLY_TILE_tanh, ctanhl}, {OLY_TILE_conj, conjl}};

/* Checks that the parts are off by at most a few steps of the larger one. */
static void expect_near(const char *what, int op, int dtype, const void *z, int i, long double _Complex wanted)
{
    double _Complex got = element_of((oly_dtype)dtype, z, i);
    long double steps = op == OLY_TILE_pow ? 64 : 8; /* errors of the exponent are magnified */
    long double most = steps * element_epsilon((oly_dtype)dtype) * (cabsl(wanted) + 1e-30L);
    if (!(cabsl(got - wanted) <= most))
        fail_msg("%s: %s %d of type %d gave %g%+gi, not %Lg%+Lgi", oly_kernels_isa(), what, op, dtype, creal(got),
                 cimag(got), creall(wanted), cimagl(wanted));
}

static void fill_complex(int dtype, void *out)
{
    for (int i = 0; i < N; i++)
        set_element((oly_dtype)dtype, out, i, __builtin_complex(random_between(-4, 4), random_between(-4, 4)));
}

static void check_complex_functions(int dtype)
{
    static double x[2 * N], y[2 * N];
    const void *in[1] = {x};
    fill_complex(dtype, x);
    for (int k = 0; k < COUNT(functions); k++) {
        apply(functions[k].op, dtype, dtype, N, in, 1, 0, y);
        for (int i = 0; i < N; i++)
            expect_near("operation", functions[k].op, dtype, y, i,
                        functions[k].reference(element_of((oly_dtype)dtype, x, i)));
    }
}

static void check_complex_pairs(int dtype)
{
    static double x[2 * N], y[2 * N], z[2 * N];
    static uint8_t truth[N];
    const void *in[2] = {x, y};
    static const int pairs[] = {OLY_TILE_add, OLY_TILE_sub, OLY_TILE_mul, OLY_TILE_div, OLY_TILE_pow};
    fill_complex(dtype, x);
    fill_complex(dtype, y);
    for (int i = 0; i < N; i += 3)
        set_element((oly_dtype)dtype, y, i, __builtin_complex(element_part((oly_dtype)dtype, x, i, 0), 1.0));
    for (int k = 0; k < COUNT(pairs); k++) {
        apply(pairs[k], dtype, dtype, N, in, 2, 0, z);
        for (int i = 0; i < N; i++) {
            long double _Complex a = element_of((oly_dtype)dtype, x, i), b = element_of((oly_dtype)dtype, y, i);
            expect_near("operation", pairs[k], dtype, z, i,
                        k == 0   ? a + b
                        : k == 1 ? a - b
                        : k == 2 ? a * b
                        : k == 3 ? a / b
                                 : cpowl(a, b));
        }
    }
    apply(OLY_TILE_lt, dtype, OLY_BOOL, N, in, 2, 0, truth); /* by real part, then by imaginary part */
    for (int i = 0; i < N; i++) {
        double _Complex a = element_of((oly_dtype)dtype, x, i), b = element_of((oly_dtype)dtype, y, i);
        assert_int_equal(truth[i], creal(a) == creal(b) ? cimag(a) < cimag(b) : creal(a) < creal(b));
    }
}

static void check_parts(int dtype)
{
    static double x[2 * N], real[N], imaginary[N], back[2 * N];
    const void *in[1] = {x}, *parts[2] = {real, imaginary};
    int part = dtype == OLY_COMPLEX64 ? OLY_FLOAT32 : OLY_FLOAT64;
    fill_with_specials(dtype, x, N);
    apply(OLY_TILE_real, dtype, part, N, in, 1, 0, real);
    apply(OLY_TILE_imag, dtype, part, N, in, 1, 0, imaginary);
    apply(OLY_TILE_complex, part, dtype, N, parts, 2, 0, back);
    assert_memory_equal(x, back, (size_t)N * oly_dtype_size((oly_dtype)dtype));
    fill_complex(dtype, x);
    apply(OLY_TILE_abs, dtype, part, N, in, 1, 0, real);
    for (int i = 0; i < N; i++)
        expect_near("abs", OLY_TILE_abs, part, real, i, cabsl(element_of((oly_dtype)dtype, x, i)));
}

/* A part is within two steps of the exact value (libm computes some), and exactly as special: NaN or infinity. size: of the whole number. */
static void expect_part(const char *what, int i, float got, long double wanted, long double size)
{
    float nearest = (float)wanted;
    bool is_special = isnan(nearest) || isinf(nearest) || (nearest == 0 && got == 0);
    bool same = isnan(nearest) ? isnan(got) : got == nearest && (nearest == 0 || signbit(got) == signbit(nearest));
    long double most = 0x1p-22L * fabsl(wanted) + 0x1p-50L * size + 0x1p-149L;
    if (is_special ? !same : !(fabsl(got - wanted) <= most))
        fail_msg("%s: a part of %s of element %d is %a, not %a", oly_kernels_isa(), what, i, (double)got,
                 (double)nearest);
}

static void expect_complex(const char *what, int i, const float *got, long double _Complex wanted)
{
    long double size = cabsl(wanted);
    expect_part(what, i, got[0], creall(wanted), isfinite(size) ? size : 0);
    expect_part(what, i, got[1], cimagl(wanted), isfinite(size) ? size : 0);
}

/* Bit for bit the quotient of compilers that compute it in double, as GCC does since version 12. */
static void expect_quotient(int i, const float *got, const float *x, const float *y)
{
    float _Complex a = __builtin_complex(x[0], x[1]), b = __builtin_complex(y[0], y[1]);
    expect_complex("a quotient", i, got, (long double _Complex)a / (long double _Complex)b);
#if !defined(__clang__) && __GNUC__ >= 12
    float _Complex by_compiler = a / b;
    float wanted[2] = {__real__ by_compiler, __imag__ by_compiler};
    for (int k = 0; k < 2; k++)
        if (memcmp(&wanted[k], &got[k], sizeof wanted[k]) != 0 && !(isnan(wanted[k]) && isnan(got[k])))
            fail_msg("%s: (%a, %a) / (%a, %a): a part is %a, not %a", oly_kernels_isa(), (double)x[0], (double)x[1],
                     (double)y[0], (double)y[1], (double)got[k], (double)wanted[k]);
#endif
}

/* What complex64 computes in double has C's special cases. */
static void check_complex_specials(void)
{
    static float x[2 * N], y[2 * N], z[2 * N];
    static const float some[] = {0, -0.0f, 1, -3, INFINITY, -INFINITY, NAN, 90, -110, 0x1p41f, 0x1p-149f, 0x1.8p127f};
    const void *in[2] = {x, y};
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 2 * N; i++) {
            x[i] = random_bits() % 2 ? some[random_bits() % COUNT(some)] : (float)random_between(-9, 9);
            y[i] = random_bits() % 2 ? some[random_bits() % COUNT(some)] : (float)random_between(-9, 9);
        }
        if (round % 2) /* all near, in tiles of their own */
            for (int i = 0; i < 2 * N; i++)
                x[i] = (float)random_between(-80, 80), y[i] = (float)random_between(-3, 3);
        apply(OLY_TILE_div, OLY_COMPLEX64, OLY_COMPLEX64, N, in, 2, 0, z);
        for (int i = 0; i < N; i++)
            expect_quotient(i, z + 2 * i, x + 2 * i, y + 2 * i);
        apply(OLY_TILE_exp, OLY_COMPLEX64, OLY_COMPLEX64, N, in, 1, 0, z);
        for (int i = 0; i < N; i++)
            expect_complex("an exponential", i, z + 2 * i, cexpl(element_of(OLY_COMPLEX64, x, i)));
        apply(OLY_TILE_abs, OLY_COMPLEX64, OLY_FLOAT32, N, in, 1, 0, z);
        for (int i = 0; i < N; i++)
            expect_part("a magnitude", i, z[i], cabsl(element_of(OLY_COMPLEX64, x, i)), 0);
    }
}

static void check_complex(void)
{
    check_complex_specials();
    for (int dtype = OLY_COMPLEX64; dtype <= OLY_COMPLEX128; dtype++) {
        check_complex_functions(dtype);
        check_complex_pairs(dtype);
        check_parts(dtype);
    }
}
/* Every float16, and floats around each and halfway to the next, have the bits of the formulas, NaN too: processors' own instructions give
 * other ones. */
static void check_every_half(void)
{
    enum { HALVES = 1 << 16, EACH = 5 };
    static uint16_t half[HALVES], rounded[HALVES * EACH];
    static float wide[HALVES], around[HALVES * EACH];
    const void *halves[] = {half}, *floats[] = {around};
    for (int h = 0; h < HALVES; h++)
        half[h] = (uint16_t)(h * 31); /* NaN and numbers in one vector */
    apply(OLY_TILE_convert, OLY_FLOAT16, OLY_FLOAT32, HALVES, halves, 1, 0, wide);
    for (int h = 0; h < HALVES; h++) {
        uint32_t bits = oly_float_bits(wide[h]), halfway = bits + 0x1000;
        assert_int_equal(bits, oly_float_bits(oly_float_of_half(half[h])));
        const uint32_t near[EACH] = {bits, bits ^ 1, halfway, halfway - 1, halfway + 1};
        memcpy(around + h * EACH, near, sizeof near);
    }
    apply(OLY_TILE_convert, OLY_FLOAT32, OLY_FLOAT16, HALVES * EACH, floats, 1, 0, rounded);
    for (int k = 0; k < HALVES * EACH; k++)
        assert_int_equal(rounded[k], oly_half_of_float(around[k]));
}
static void float16_has_the_bits_of_the_formulas(void **unused)
{
    (void)unused, on_each(check_every_half);
}

static void complex_numbers_are_those_of_c(void **unused)
{
    (void)unused, on_each(check_complex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conversions_truncate_saturate_and_wrap),
        cmocka_unit_test(select_takes_any_mix_of_scalars),
        cmocka_unit_test(narrow_floats_are_computed_in_float32),
        cmocka_unit_test(float16_has_the_bits_of_the_formulas),
        cmocka_unit_test(complex_numbers_are_those_of_c),
    };
    return CHECK_MAIN(tests);
}
