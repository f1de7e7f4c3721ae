/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Kernels of mathematical functions, of remainders, rounding and bits: each against libm in long double
 * or plain C, for every instruction set, over all magnitudes and special values. */
#include "check.h"
#include "kernel.h"
#include "core/error.h"
#include <float.h>
#include <math.h>

#define N        1021
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const char *const instruction_sets[] = {"base", "avx2", "avx512"};

/* Runs a check with each instruction set of this CPU. */
static void on_each(void (*check)(void))
{
    for (int i = 0; i < COUNT(instruction_sets); i++)
        if (oly_kernels_choose(instruction_sets[i]) == OLY_OK)
            check();
        else
            oly_drop_message();
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
}

static uint64_t state = 88172645463325252u;
static uint64_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545F4914F6CDD1Du;
}
static double random_between(double low, double high)
{
    return low + (high - low) * (double)(random_bits() >> 11) * 0x1p-53;
}

/* out = op(in...) on n elements; bit k of scalars: operand k is one element for all. */
static void apply(int op, int dtype, int to, int n, const void *const *in, int n_in, int scalars, void *out)
{
    oly_tile_instruction instruction = {
        .op = (uint16_t)op, .dtype = (uint8_t)dtype, .to = (uint8_t)to, .in = {-1, -1, -1}, .out = 3};
    int16_t load_register[2] = {0, 1}, store_register = 3;
    uint8_t load_dtype[2] = {(uint8_t)dtype, (uint8_t)dtype}, store_dtype = (uint8_t)to;
    oly_tile_operand loads[2], store = {out, {1}};
    for (int k = 0; k < n_in; k++) {
        instruction.in[k] = (int16_t)k;
        loads[k] = (oly_tile_operand){(char *)(uintptr_t)in[k], {scalars >> k & 1 ? 0 : 1}};
    }
    oly_tile_program program = {1, &instruction, n_in, 1, load_register, load_dtype, &store_register, &store_dtype, 4};
    oly_tile_box box = {1, {n}, {0}, {0}};
    int chunks = oly_tile_chunks(&program, &box);
    for (int c = 0; c < chunks; c++)
        oly_tile_run(&program, &box, loads, &store, c, chunks);
}

/* -- references ------------------------------------------------------------------------------------------------------ */
static long double rsqrt_reference(long double x)
{
    return 1 / sqrtl(x);
}
static long double square_reference(long double x)
{
    return x * x;
}
/* By the asymptotic series from 30 on; below 1/2 by reflection. */
static long double digamma_reference(long double x)
{
    const long double pi = 3.14159265358979323846264338327950288L;
    long double sum = 0;
    if (!(x > -INFINITY) || (x <= 0 && floorl(x) == x))
        return NAN;
    if (x < 0.5L) {
        long double f = x - rintl(x);
        long double cotangent = fabsl(f) < 0.25L ? cosl(pi * f) / sinl(pi * f) : tanl(pi * (0.5L - f));
        return digamma_reference(1 - x) - pi * cotangent;
    }
    for (; x < 30; x += 1)
        sum -= 1 / x;
    long double i = 1 / (x * x);
    long double series =
        i *
        (1 / 12.0L - i * (1 / 120.0L - i * (1 / 252.0L - i * (1 / 240.0L - i * (1 / 132.0L - i * 691 / 32760.0L)))));
    return sum + logl(x) - 0.5L / x - series;
}
/* Newton's method on erf, or on the logarithm of erfc for the tails. */
static long double erf_inv_reference(long double x)
{
    const long double slope = 1.12837916709551257389615890312154517L;
    long double a = fabsl(x), y;
    if (!(a < 1))
        return a == 1 ? x * INFINITY : NAN;
    if (a < 0.5L) {
        y = a / slope;
        for (int k = 0; k < 60; k++)
            y -= (erfl(y) - a) / (slope * expl(-y * y));
        return copysignl(y, x);
    }
    y = sqrtl(-logl((1 - a) * (1 + a)));
    for (int k = 0; k < 200; k++) {
        long double tail = erfcl(y), derivative = -slope * expl(-y * y) / tail;
        y -= (logl(tail) - logl(1 - a)) / derivative;
    }
    return copysignl(y, x);
}

static const struct function {
    int op;
    long double (*reference)(long double);
    double low, high;          /* where results are interesting */
    double most_f32, most_f64; /* units in the last place */
} functions[] = {
    {OLY_TILE_tan, tanl, -100, 100, 0.501, 1.1},
    {OLY_TILE_asin, asinl, -1, 1, 0.643, 1.2},
    {OLY_TILE_acos, acosl, -1, 1, 0.615, 1.2},
    {OLY_TILE_atan, atanl, -5, 5, 0.711, 1.7},
    {OLY_TILE_sinh, sinhl, -90, 90, 1.5, 2.5},
    {OLY_TILE_cosh, coshl, -90, 90, 1.9, 1.6},
    {OLY_TILE_asinh, asinhl, -10, 10, 0.731, 2.5},
    {OLY_TILE_acosh, acoshl, 1, 10, 0.909, 2.5},
    {OLY_TILE_atanh, atanhl, -1, 1, 0.636, 2.0},
    {OLY_TILE_exp2, exp2l, -1080, 1030, 0.501, 1.1},
    {OLY_TILE_expm1, expm1l, -40, 720, 0.984, 2.0},
    {OLY_TILE_log1p, log1pl, -1, 5, 2.5, 1.1},
    {OLY_TILE_rsqrt, rsqrt_reference, 0, 10, 0.501, 1.5},
    {OLY_TILE_cbrt, cbrtl, -10, 10, 0.505, 0.7},
    {OLY_TILE_square, square_reference, -10, 10, 0.501, 0.501},
    {OLY_TILE_erf, erfl, -6, 6, 0.986, 2.0},
    {OLY_TILE_erfc, erfcl, -6, 28, 3.67, 3.0},
    {OLY_TILE_erf_inv, erf_inv_reference, -1, 1, 4.0, 128.0}, /* as JAX: a logarithm off by up to 2^-46 */
    {OLY_TILE_lgamma, lgammal, -30, 30, 0.6, 8.0},
    {OLY_TILE_digamma, digamma_reference, -5, 30, 0.6, 40.0},
    {OLY_TILE_ceil, ceill, -30, 30, 0, 0},
    {OLY_TILE_floor, floorl, -30, 30, 0, 0},
    {OLY_TILE_round, rintl, -30, 30, 0, 0},
    {OLY_TILE_round_away, roundl, -30, 30, 0, 0},
};

static const double special[] = {0.0,          -0.0,          1.0,
                                 -1.0,         0.5,           -0.5,
                                 2.0,          -2.0,          3.0,
                                 INFINITY,     -INFINITY,     NAN,
                                 FLT_MAX,      -FLT_MAX,      FLT_MIN,
                                 -FLT_MIN,     DBL_MAX,       DBL_MIN,
                                 1e10,         1e22,          0x1p40,
                                 0x1p53,       0x1p-30,       0x1p-149,
                                 0x1.8p60,     88.8,          -104.5,
                                 709.5,        -745.5,        M_PI,
                                 1.5,          2.5,           -1.5,
                                 -2.5,         0x1.fffffep-1, 0x1.fffffffffffffp-1,
                                 0x1.000002p0, 0x1.fffffep-2, 0x1.fffffffffffffp-2,
                                 8388607.5,    -7.0,          0x1.0p23,
                                 0x1.0p52,     1e-5,          100.5,
                                 1.461632144,  27.0,          -26.5,
                                 0.414213,     1e300};

/* Distance of `got` from the exact value, in units in the last place of the type. Subnormal numbers do not count. */
static double ulps(long double got, long double truth, bool single)
{
    if (isnan(truth) || isnan(got))
        return isnan(truth) && isnan(got) ? 0 : INFINITY;
    int exponent;
    frexpl(truth, &exponent);
    int last = single ? (exponent - 24 < -149 ? -149 : exponent - 24) : (exponent - 53 < -1074 ? -1074 : exponent - 53);
    long double unit = ldexpl(1, last), largest = single ? (long double)FLT_MAX : (long double)DBL_MAX;
    if (isinf(got) || isinf(truth))
        return fabsl(truth) >= largest * 0.9999999999999999L && isinf(got) && (got > 0) == (truth > 0) ? 0 : INFINITY;
    if (truth == 0)
        return got == 0 && signbit(got) == signbit(truth) ? 0 : INFINITY;
    return (double)(fabsl(got - truth) / unit);
}

static double argument(const struct function *f, int i, bool single)
{
    uint64_t bits = random_bits();
    if (i < COUNT(special))
        return special[i];
    if (i % 4 == 0) { /* any bit pattern */
        uint32_t half = (uint32_t)bits;
        float x;
        double y;
        memcpy(&x, &half, sizeof x);
        memcpy(&y, &bits, sizeof y);
        return single ? x : y;
    }
    if (i % 4 == 1)
        return random_between(-1, 1) * exp2(random_between(-40, 2));
    return random_between(f->low, f->high);
}

/* erf_inv rounds 1 - x^2, as JAX does; near its zeros float64's digamma is a difference, and so is its reference. */
static bool left_out(int op, double x, double y)
{
    return op == OLY_TILE_erf_inv ? fabs(x) > 0.9 && fabs(x) < 1 : op == OLY_TILE_digamma && fabs(y) < 0.5;
}

static void check_functions(void)
{
    static double x[N], y[N];
    static float xs[N], ys[N];
    const void *in[1] = {x}, *in_single[1] = {xs};
    bool right = true;
    for (int k = 0; k < COUNT(functions); k++) {
        double worst = 0, worst_single = 0, at = 0, at_single = 0;
        for (int round = 0; round < 40; round++) {
            for (int i = 0; i < N; i++) {
                x[i] = argument(&functions[k], i, false);
                xs[i] = (float)argument(&functions[k], i, true);
            }
            apply(functions[k].op, OLY_FLOAT64, OLY_FLOAT64, N, in, 1, 0, y);
            apply(functions[k].op, OLY_FLOAT32, OLY_FLOAT32, N, in_single, 1, 0, ys);
            for (int i = 0; i < N; i++) {
                double off = ulps(y[i], functions[k].reference(x[i]), false);
                double off_single = ulps(ys[i], functions[k].reference(xs[i]), true);
                off = left_out(functions[k].op, x[i], y[i]) ? 0 : off;
                off_single = left_out(functions[k].op, xs[i], 1) ? 0 : off_single;
                if (!(off <= worst))
                    worst = off, at = x[i];
                if (!(off_single <= worst_single))
                    worst_single = off_single, at_single = xs[i];
            }
        }
        bool good = worst <= functions[k].most_f64 && worst_single <= functions[k].most_f32;
        if (!good || getenv("VERBOSE"))
            printf("%s operation %d (%s): %.3f ulps off at %a; float32 %.3f at %a\n", good ? "" : "FAILED",
                   functions[k].op, oly_kernels_isa(), worst, at, worst_single, at_single);
        right = right && good;
    }
    assert_true(right);
}
static void functions_are_accurate_everywhere(void **unused)
{
    (void)unused, on_each(check_functions);
}

/* -- two operands -------------------------------------------------------------------------------------------------------- */
static long double logaddexp_reference(long double x, long double y)
{
    long double larger = fmaxl(x, y);
    return isnan(x) || isnan(y) ? NAN : isinf(larger) ? larger : larger + log1pl(expl(-fabsl(x - y)));
}
static const struct function2 {
    int op;
    long double (*reference)(long double, long double);
    double most_f32, most_f64;
} functions2[] = {
    {OLY_TILE_atan2, atan2l, 0.88, 1.6},
    {OLY_TILE_logaddexp, logaddexp_reference, 0.501, 3},
    {OLY_TILE_rem, fmodl, 0, 0},
};

static void check_functions2(void)
{
    static double x[N], y[N], z[N];
    static float xs[N], ys[N], zs[N];
    const struct function some = {.low = -20, .high = 20};
    const void *in[2] = {x, y}, *in_single[2] = {xs, ys};
    for (int k = 0; k < COUNT(functions2); k++)
        for (int round = 0; round < 60; round++) {
            int scalars = round % 3;
            for (int i = 0; i < N; i++) {
                x[i] = argument(&some, (i + round * 7) % N, false);
                xs[i] = (float)argument(&some, (i + round * 7) % N, true);
                y[i] = argument(&some, (i * 37 + round) % (round < 30 ? COUNT(special) : N), false);
                ys[i] = (float)argument(&some, (i * 37 + round) % (round < 30 ? COUNT(special) : N), true);
            }
            apply(functions2[k].op, OLY_FLOAT64, OLY_FLOAT64, N, in, 2, scalars, z);
            apply(functions2[k].op, OLY_FLOAT32, OLY_FLOAT32, N, in_single, 2, scalars, zs);
            for (int i = 0; i < N; i++) {
                int a = scalars & 1 ? 0 : i, b = scalars & 2 ? 0 : i;
                double off = ulps(z[i], functions2[k].reference(x[a], y[b]), false);
                double off_single = ulps(zs[i], functions2[k].reference(xs[a], ys[b]), true);
                bool cancels = functions2[k].op == OLY_TILE_logaddexp && fabs(z[i]) < 0.5;
                if (!(off <= functions2[k].most_f64 || cancels) || !(off_single <= functions2[k].most_f32))
                    fail_msg("operation %d (%s): f(%a, %a) = %a is %g ulps off; f(%a, %a) = %a is %g ulps off",
                             functions2[k].op, oly_kernels_isa(), x[a], y[b], z[i], off, xs[a], ys[b], zs[i],
                             off_single);
            }
        }
}
static void functions_of_two_are_accurate_everywhere(void **unused)
{
    (void)unused, on_each(check_functions2);
}

static void check_neighbours(void)
{
    static double x[N], y[N], z[N];
    static float xs[N], ys[N], zs[N];
    const struct function some = {.low = -2, .high = 2};
    for (int i = 0; i < N; i++) {
        x[i] = argument(&some, i, false), xs[i] = (float)argument(&some, i, true);
        y[i] = argument(&some, (i * 37) % N, false), ys[i] = (float)argument(&some, (i * 37) % N, true);
    }
    apply(OLY_TILE_nextafter, OLY_FLOAT64, OLY_FLOAT64, N, (const void *[]){x, y}, 2, 0, z);
    apply(OLY_TILE_nextafter, OLY_FLOAT32, OLY_FLOAT32, N, (const void *[]){xs, ys}, 2, 0, zs);
    for (int i = 0; i < N; i++) {
        double want = nextafter(x[i], y[i]);
        float want_single = nextafterf(xs[i], ys[i]);
        assert_true(isnan(want) ? isnan(z[i]) : memcmp(&want, &z[i], sizeof want) == 0);
        assert_true(isnan(want_single) ? isnan(zs[i]) : memcmp(&want_single, &zs[i], sizeof want_single) == 0);
    }
}
static void neighbours_are_those_of_libm(void **unused)
{
    (void)unused, on_each(check_neighbours);
}

/* float16: every number, in both directions. */
static void check_half_neighbours(void)
{
    static uint16_t x[0x7c01], up[0x7c01], down[0x7c01];
    const uint16_t top = 0x7c00, bottom = 0xfc00;
    for (int i = 0; i <= 0x7c00; i++)
        x[i] = (uint16_t)i;
    apply(OLY_TILE_nextafter, OLY_FLOAT16, OLY_FLOAT16, 0x7c01, (const void *[]){x, &top}, 2, 2, up);
    apply(OLY_TILE_nextafter, OLY_FLOAT16, OLY_FLOAT16, 0x7c01, (const void *[]){x, &bottom}, 2, 2, down);
    for (int i = 0; i <= 0x7c00; i++) {
        assert_int_equal(up[i], i < 0x7c00 ? i + 1 : i);
        assert_int_equal(down[i], i > 0 ? i - 1 : 0x8001);
    }
}
static void neighbours_of_halves(void **unused)
{
    (void)unused, on_each(check_half_neighbours);
}

/* -- integers ---------------------------------------------------------------------------------------------------------------- */
#define INTEGERS(name, T, U, dtype, is_signed)                                                                         \
    static void integers_##name(void)                                                                                  \
    {                                                                                                                  \
        enum { bits = 8 * sizeof(T) };                                                                                 \
        static T x[N], y[N], z[N];                                                                                     \
        static const int ops[] = {OLY_TILE_rem,                                                                        \
                                  OLY_TILE_square,                                                                     \
                                  OLY_TILE_shift_left,                                                                 \
                                  OLY_TILE_shift_right_logical,                                                        \
                                  OLY_TILE_shift_right_arithmetic,                                                     \
                                  OLY_TILE_population_count,                                                           \
                                  OLY_TILE_clz,                                                                        \
                                  OLY_TILE_not,                                                                        \
                                  OLY_TILE_xor};                                                                       \
        for (int i = 0; i < N; i++) {                                                                                  \
            x[i] = (T)(random_bits() >> random_bits() % 64);                                                           \
            y[i] = i % 3 == 0 ? (T)random_bits() : (T)(random_bits() % (bits + 3));                                    \
        }                                                                                                              \
        x[0] = 0, x[1] = (T)-1, x[2] = (T)((U)1 << (bits - 1)), y[2] = (T)-1, y[3] = (T)-1;                            \
        for (int k = 0; k < COUNT(ops); k++) {                                                                         \
            bool two = ops[k] != OLY_TILE_square && (ops[k] < OLY_TILE_not || ops[k] > OLY_TILE_clz);                  \
            apply(ops[k], dtype, dtype, N, (const void *[]){x, y}, two ? 2 : 1, 0, z);                                 \
            for (int i = 0; i < N; i++) {                                                                              \
                U u = (U)x[i], by = (U)y[i];                                                                           \
                bool far = by >= bits, negative = u >> (bits - 1) != 0;                                                \
                U want = 0;                                                                                            \
                switch (ops[k]) {                                                                                      \
                case OLY_TILE_rem: want = y[i] == 0 ? u : is_signed && y[i] == (T)-1 ? 0 : (U)(x[i] % y[i]); break;    \
                case OLY_TILE_square: want = (U)((uint64_t)u * u); break;                                              \
                case OLY_TILE_shift_left: want = far ? 0 : (U)((uint64_t)u << by); break;                              \
                case OLY_TILE_shift_right_logical: want = far ? 0 : (U)(u >> by); break;                               \
                case OLY_TILE_shift_right_arithmetic:                                                                  \
                    want = far ? (negative ? (U)-1 : 0) : (U)((u >> by) | (negative && by ? (U) ~((U)-1 >> by) : 0));  \
                    break;                                                                                             \
                case OLY_TILE_population_count: want = (U)__builtin_popcountll(u); break;                              \
                case OLY_TILE_clz: want = (U)(u ? __builtin_clzll(u) - (64 - bits) : bits); break;                     \
                case OLY_TILE_not: want = (U)~u; break;                                                                \
                default: want = u ^ by;                                                                                \
                }                                                                                                      \
                if ((U)z[i] != want)                                                                                   \
                    fail_msg("operation %d of " #T " (%s): %llx, %llx give %llx, not %llx", ops[k], oly_kernels_isa(), \
                             (unsigned long long)u, (unsigned long long)by, (unsigned long long)(U)z[i],               \
                             (unsigned long long)want);                                                                \
            }                                                                                                          \
        }                                                                                                              \
    }
INTEGERS(i8, int8_t, uint8_t, OLY_INT8, true)
INTEGERS(i16, int16_t, uint16_t, OLY_INT16, true)
INTEGERS(i32, int32_t, uint32_t, OLY_INT32, true)
INTEGERS(i64, int64_t, uint64_t, OLY_INT64, true)
INTEGERS(u8, uint8_t, uint8_t, OLY_UINT8, false)
INTEGERS(u16, uint16_t, uint16_t, OLY_UINT16, false)
INTEGERS(u32, uint32_t, uint32_t, OLY_UINT32, false)
INTEGERS(u64, uint64_t, uint64_t, OLY_UINT64, false)

static void check_integers(void)
{
    integers_i8(), integers_i16(), integers_i32(), integers_i64();
    integers_u8(), integers_u16(), integers_u32(), integers_u64();
}
static void integers_are_exact(void **unused)
{
    (void)unused, on_each(check_integers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_accurate_everywhere),
        cmocka_unit_test(functions_of_two_are_accurate_everywhere),
        cmocka_unit_test(neighbours_are_those_of_libm),
        cmocka_unit_test(neighbours_of_halves),
        cmocka_unit_test(integers_are_exact),
    };
    return CHECK_MAIN(tests);
}
