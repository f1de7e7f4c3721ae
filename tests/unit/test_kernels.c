/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Elementwise kernels: every operation, element type and instruction set against libm or plain C;
 * programs over broadcast, strided and overlapping boxes, whole and in chunks. */
#include "check_kernels.h"

/* -- functions of the mathematical library --------------------------------------------------------------------------- */

static long double sigmoid_reference(long double x)
{
    return 1 / (1 + expl(-x));
}
static const struct function {
    int op;
    long double (*reference)(long double);
    double low, high;          /* where results are interesting */
    double most_f32, most_f64; /* units in the last place */
} functions[] = {
    {OLY_TILE_exp, expl, -760, 720, 0.9095, 1.0},
    {OLY_TILE_log, logl, 0, 10, 0.94, 1.0},
    {OLY_TILE_sqrt, sqrtl, 0, 10, 0.5001, 0.5001},
    {OLY_TILE_sin, sinl, -100, 100, 0.5001, 1.0},
    {OLY_TILE_cos, cosl, -100, 100, 0.5001, 1.0},
    {OLY_TILE_tanh, tanhl, -20, 20, 0.999, 2.5},
    {OLY_TILE_sigmoid, sigmoid_reference, -800, 800, 2.481, 2.0},
};

/* Distance of `got` from the exact value, in units in the last place of the type. */
static double ulps(long double got, long double truth, bool single)
{
    if (isnan(truth) || isnan(got))
        return isnan(truth) && isnan(got) ? 0 : INFINITY;
    int exponent;
    frexpl(truth, &exponent);
    int last = single ? (exponent - 24 < -149 ? -149 : exponent - 24) : (exponent - 53 < -1074 ? -1074 : exponent - 53);
    long double unit = ldexpl(1, last), largest = single ? (long double)FLT_MAX : (long double)DBL_MAX;
    if (isinf(got) || isinf(truth))
        return fabsl(truth) >= largest + ldexpl(1, single ? 103 : 970) * 0.99L && isinf(got) && (got > 0) == (truth > 0)
                   ? 0
               : got == truth ? 0
                              : INFINITY;
    if (truth == 0)
        return got == 0 && signbit(got) == signbit(truth) ? 0 : INFINITY;
    return (double)(fabsl(got - truth) / unit);
}

static double argument(const struct function *f, int i, bool single)
{
    if (i < COUNT(special))
        return special[i];
    uint64_t bits = random_bits();
    switch (i % 4) {
    case 0: /* any bit pattern */
        if (single) {
            uint32_t half = (uint32_t)bits;
            float x;
            memcpy(&x, &half, sizeof x);
            return x;
        } else {
            double x;
            memcpy(&x, &bits, sizeof x);
            return x;
        }
    case 1: return random_between(-1, 1) * exp2(random_between(-40, 2));
    default: return random_between(f->low, f->high);
    }
}

static void check_functions(void)
{
    static double x[N], y[N];
    static float xs[N], ys[N];
    const void *in[1] = {x}, *in_single[1] = {xs};
    for (int k = 0; k < COUNT(functions); k++)
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
                if (!(off <= functions[k].most_f64) || !(off_single <= functions[k].most_f32))
                    fail_msg("operation %d (%s): f(%a) = %a is %g ulps off; f(%a) = %a is %g ulps off", functions[k].op,
                             oly_kernels_isa(), x[i], y[i], off, xs[i], ys[i], off_single);
            }
        }
}
static void functions_are_accurate_everywhere(void **unused)
{
    (void)unused, on_each(check_functions);
}

static void check_power(void)
{
    static double x[N], y[N], z[N];
    static float xs[N], ys[N], zs[N];
    const void *in[2] = {x, y}, *in_single[2] = {xs, ys};
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < N; i++) {
            x[i] = i % 3 == 0   ? special[(size_t)i % COUNT(special)]
                   : i % 3 == 1 ? exp2(random_between(-300, 300))
                                : random_between(-3, 3);
            y[i] = i % 5 == 0   ? special[random_bits() % COUNT(special)]
                   : i % 5 == 1 ? floor(random_between(-40, 40))
                                : random_between(-3, 3);
            xs[i] = i % 3 == 1 ? exp2f((float)random_between(-60, 60)) : (float)x[i];
            ys[i] = (float)y[i];
        }
        int scalars = round % 3;
        apply(OLY_TILE_pow, OLY_FLOAT64, OLY_FLOAT64, N, in, 2, scalars, z);
        apply(OLY_TILE_pow, OLY_FLOAT32, OLY_FLOAT32, N, in_single, 2, scalars, zs);
        for (int i = 0; i < N; i++) {
            int a = scalars & 1 ? 0 : i, b = scalars & 2 ? 0 : i;
            double off = ulps(z[i], powl(x[a], y[b]), false), off_single = ulps(zs[i], powl(xs[a], ys[b]), true);
            if (!(off <= 1.0) || !(off_single <= 0.82))
                fail_msg("%s: pow(%a, %a) = %a is %g ulps off; pow(%a, %a) = %a is %g ulps off", oly_kernels_isa(),
                         x[a], y[b], z[i], off, xs[a], ys[b], zs[i], off_single);
        }
    }
}
/* Blocks without special cases have code of their own: the same bits, whatever is beside an element. */
static void check_ordinary_powers(void)
{
    static float x[N], y[N], z[N], among[N];
    const void *in[2] = {x, y};
    for (int scalars = 0; scalars < 3; scalars++) {
        for (int i = 0; i < N; i++) {
            x[i] = (float)exp(random_between(-100, 88));
            y[i] = (float)random_between(-3, 3);
        }
        x[1] = 1, y[2] = 0, x[3] = FLT_MIN / 2, x[4] = FLT_MAX;
        apply(OLY_TILE_pow, OLY_FLOAT32, OLY_FLOAT32, N, in, 2, scalars, z);
        for (int i = 0; i < N; i++) {
            float a = x[scalars & 1 ? 0 : i], b = y[scalars & 2 ? 0 : i];
            if (ulps(z[i], powl(a, b), true) > 0.82)
                fail_msg("%s: pow(%a, %a) = %a", oly_kernels_isa(), (double)a, (double)b, (double)z[i]);
        }
        for (int i = 7; i < N; i += 100)
            x[i] = i % 3 ? -2 : INFINITY, y[i] = i % 5 ? 0 : NAN;
        apply(OLY_TILE_pow, OLY_FLOAT32, OLY_FLOAT32, N, in, 2, scalars, among);
        for (int i = 0; i < N; i++)
            if (i % 100 != 7)
                assert_memory_equal(&z[i], &among[i], sizeof z[i]);
    }
}
static void ordinary_powers_do_not_show(void **unused)
{
    (void)unused, on_each(check_ordinary_powers);
}

static void power_is_accurate_and_special_as_in_c(void **unused)
{
    (void)unused, on_each(check_power);
}

static void check_toy_sines(void)
{
    float x[32], y[32];
    const void *in[1] = {x};
    for (int i = 0; i < 32; i++)
        x[i] = (float)i;
    apply(OLY_TILE_sin, OLY_FLOAT32, OLY_FLOAT32, 32, in, 1, 0, y);
    for (int i = 0; i < 32; i++)
        assert_true(y[i] == (float)sin((double)i));
}
static void sines_of_small_integers_are_correctly_rounded(void **unused)
{
    (void)unused, on_each(check_toy_sines);
}

/* A tile with far arguments among near ones, in place: nothing may be read after it was overwritten. */
static void check_far_in_place(void)
{
    static double x[N], before[N];
    const void *in[1] = {x};
    for (int i = 0; i < N; i++)
        before[i] = x[i] = i % 7 == 3 ? exp2(random_between(30, 1000)) : i % 11 == 0 ? INFINITY : random_between(-9, 9);
    apply(OLY_TILE_cos, OLY_FLOAT64, OLY_FLOAT64, N, in, 1, 0, x);
    for (int i = 0; i < N; i++)
        assert_true(ulps(x[i], cosl(before[i]), false) <= 1);
}
static void far_arguments_work_in_place(void **unused)
{
    (void)unused, on_each(check_far_in_place);
}

/* -- exact operations ---------------------------------------------------------------------------------------------- */

#define NEGATIVE(x) ((double)(x) < 0) /* of unsigned types too, without a warning */

/* T, U: the type of the arithmetic; whole: an integer type. */
#define REFERENCE(s, T, U, whole)                                                                                      \
    static T power_##s(T x, T y)                                                                                       \
    {                                                                                                                  \
        U result = 1;                                                                                                  \
        if (NEGATIVE(y))                                                                                               \
            return x == 1 ? 1 : x == (T)-1 ? ((int64_t)y % 2 ? x : 1) : 0;                                             \
        for (int bit = 63; bit >= 0; bit--)                                                                            \
            result = result * result * ((uint64_t)y >> bit & 1 ? (U)x : 1);                                            \
        return (T)result;                                                                                              \
    }                                                                                                                  \
    static bool reference_##s(int op, T x, T y, T *out)                                                                \
    {                                                                                                                  \
        bool either_nan = x != x || y != y;                                                                            \
        switch (op) {                                                                                                  \
        case OLY_TILE_neg: *out = whole ? (T)(0 - (U)x) : (T)-x; return true;                                          \
        case OLY_TILE_abs: *out = whole ? (NEGATIVE(x) ? (T)(0 - (U)x) : x) : (T)fabs((double)x); return true;         \
        case OLY_TILE_sign: *out = x > 0 ? (T)1 : NEGATIVE(x) ? (T)-1 : x; return true;                                \
        case OLY_TILE_add: *out = (T)((U)x + (U)y); return true;                                                       \
        case OLY_TILE_sub: *out = (T)((U)x - (U)y); return true;                                                       \
        case OLY_TILE_mul: *out = (T)((U)x * (U)y); return true;                                                       \
        case OLY_TILE_max: *out = either_nan ? (T)NAN_OR_0(whole) : x > y ? x : y; return true;                        \
        case OLY_TILE_min: *out = either_nan ? (T)NAN_OR_0(whole) : x < y ? x : y; return true;                        \
        case OLY_TILE_div:                                                                                             \
            *out = !whole                      ? (T)((double)x / (double)y)                                            \
                   : y == 0                    ? (T) ~(uint64_t)0                                                      \
                   : y == (T)-1 && NEGATIVE(y) ? (T)(0 - (U)x)                                                         \
                                               : (T)(x / y);                                                           \
            return true;                                                                                               \
        case OLY_TILE_pow:                                                                                             \
            if (whole)                                                                                                 \
                *out = power_##s(x, y);                                                                                \
            return whole;                                                                                              \
        case OLY_TILE_floor:                                                                                           \
            if (!whole)                                                                                                \
                *out = (T)floor((double)x);                                                                            \
            return !whole;                                                                                             \
        default: return false;                                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    static bool compare_##s(int op, T x, T y)                                                                          \
    {                                                                                                                  \
        return op == OLY_TILE_eq   ? x == y                                                                            \
               : op == OLY_TILE_ne ? x != y                                                                            \
               : op == OLY_TILE_lt ? x < y                                                                             \
               : op == OLY_TILE_le ? x <= y                                                                            \
               : op == OLY_TILE_gt ? x > y                                                                             \
                                   : x >= y;                                                                           \
    }                                                                                                                  \
    static void check_operations_##s(int dtype)                                                                        \
    {                                                                                                                  \
        static T x[N], y[N], z[N], expected;                                                                           \
        static uint8_t truth[N];                                                                                       \
        const void *in[2] = {x, y};                                                                                    \
        fill_with_specials(dtype, x, N);                                                                               \
        fill_with_specials(dtype, y, N);                                                                               \
        for (int op = 0; op < OLY_TILE_select; op++)                                                                   \
            for (int scalars = 0; scalars < 4; scalars++) {                                                            \
                bool compares = op >= OLY_TILE_eq && op <= OLY_TILE_ge;                                                \
                if (!compares && !reference_##s(op, 1, 1, &expected))                                                  \
                    continue;                                                                                          \
                bool unary = op == OLY_TILE_neg || op == OLY_TILE_abs || op == OLY_TILE_sign || op == OLY_TILE_floor;  \
                apply(op, dtype, compares ? OLY_BOOL : dtype, N, in, unary ? 1 : 2, scalars,                           \
                      compares ? (void *)truth : (void *)z);                                                           \
                for (int i = 0; i < N; i++) {                                                                          \
                    T a = x[scalars & 1 ? 0 : i], b = unary ? 1 : y[scalars & 2 ? 0 : i];                              \
                    if (compares) {                                                                                    \
                        assert_int_equal(truth[i], compare_##s(op, a, b));                                             \
                        continue;                                                                                      \
                    }                                                                                                  \
                    reference_##s(op, a, b, &expected);                                                                \
                    bool both_nan = z[i] != z[i] && expected != expected;                                              \
                    bool zeros = z[i] == 0 && expected == 0 && (op == OLY_TILE_max || op == OLY_TILE_min);             \
                    if (!both_nan && !zeros && memcmp(&z[i], &expected, sizeof(T)) != 0)                               \
                        fail_msg("%s: operation %d on " #T ": (%.17g, %.17g) gave %.17g, not %.17g",                   \
                                 oly_kernels_isa(), op, (double)a, (double)b, (double)z[i], (double)expected);         \
                }                                                                                                      \
            }                                                                                                          \
    }
#define NAN_OR_0(whole) ((whole) ? 0.0 : (double)NAN)
REFERENCE(i8, int8_t, uint32_t, 1)
REFERENCE(i16, int16_t, uint32_t, 1)
REFERENCE(i32, int32_t, uint32_t, 1)
REFERENCE(i64, int64_t, uint64_t, 1)
REFERENCE(u8, uint8_t, uint32_t, 1)
REFERENCE(u16, uint16_t, uint32_t, 1)
REFERENCE(u32, uint32_t, uint32_t, 1)
REFERENCE(u64, uint64_t, uint64_t, 1)
REFERENCE(f32, float, float, 0)
REFERENCE(f64, double, double, 0)

static void check_operations(void)
{
    for (int round = 0; round < 4; round++) {
        check_operations_i8(OLY_INT8);
        check_operations_i16(OLY_INT16);
        check_operations_i32(OLY_INT32);
        check_operations_i64(OLY_INT64);
        check_operations_u8(OLY_UINT8);
        check_operations_u16(OLY_UINT16);
        check_operations_u32(OLY_UINT32);
        check_operations_u64(OLY_UINT64);
        check_operations_f32(OLY_FLOAT32);
        check_operations_f64(OLY_FLOAT64);
    }
}
static void exact_operations_give_the_one_right_answer(void **unused)
{
    (void)unused, on_each(check_operations);
}

static void check_bools(void)
{
    static const struct {
        int op;
        uint8_t of[4]; /* result for (0,0), (0,1), (1,0), (1,1) */
    } rows[] = {
        {OLY_TILE_add, {0, 1, 1, 1}},         {OLY_TILE_mul, {0, 0, 0, 1}},         {OLY_TILE_max, {0, 1, 1, 1}},
        {OLY_TILE_min, {0, 0, 0, 1}},         {OLY_TILE_logical_and, {0, 0, 0, 1}}, {OLY_TILE_logical_or, {0, 1, 1, 1}},
        {OLY_TILE_eq, {1, 0, 0, 1}},          {OLY_TILE_ne, {0, 1, 1, 0}},          {OLY_TILE_lt, {0, 1, 0, 0}},
        {OLY_TILE_le, {1, 1, 0, 1}},          {OLY_TILE_gt, {0, 0, 1, 0}},          {OLY_TILE_ge, {1, 0, 1, 1}},
        {OLY_TILE_logical_not, {1, 1, 0, 0}}, {OLY_TILE_abs, {0, 0, 1, 1}}};
    static uint8_t x[N], y[N], z[N];
    const void *in[2] = {x, y};
    fill_with_specials(OLY_BOOL, x, N);
    fill_with_specials(OLY_BOOL, y, N);
    for (int k = 0; k < COUNT(rows); k++) {
        bool unary = rows[k].op == OLY_TILE_logical_not || rows[k].op == OLY_TILE_abs;
        apply(rows[k].op, OLY_BOOL, OLY_BOOL, N, in, unary ? 1 : 2, 0, z);
        for (int i = 0; i < N; i++)
            assert_int_equal(z[i], rows[k].of[2 * x[i] + y[i]]);
    }
}
static void bools_add_as_or_and_multiply_as_and(void **unused)
{
    (void)unused, on_each(check_bools);
}

/* -- programs over boxes -------------------------------------------------------------------------------------------- */

#define ROOM 250000 /* elements of each operand's memory */

/* Gives an operand random strides: dimensions in random order, some repeated, some reversed, with gaps. */
static oly_tile_operand random_operand(const oly_tile_box *box, char *memory, size_t bytes, bool store)
{
    oly_tile_operand o = {memory, {0}};
    int order[OLY_MAX_RANK];
    bool natural = random_bits() % 2;
    for (int d = 0; d < box->rank; d++)
        order[d] = box->rank - 1 - d;
    for (int d = 0; d < box->rank && !natural; d++) {
        int other = (int)(random_bits() % (uint64_t)box->rank), kept = order[d];
        order[d] = order[other];
        order[other] = kept;
    }
    int64_t stride = random_bits() % 4 == 0 ? 2 : 1, first = 0;
    for (int k = 0; k < box->rank; k++) {
        int d = order[k];
        bool repeats = !store && random_bits() % 4 == 0, backwards = random_bits() % 6 == 0;
        o.stride[d] = repeats ? 0 : backwards ? -stride : stride;
        if (backwards && !repeats)
            first += stride * (box->extent[d] - 1);
        stride *= repeats ? 1 : box->extent[d] + (random_bits() % 4 == 0);
    }
    o.base += first * (int64_t)bytes;
    assert_true(stride + first < ROOM);
    return o;
}

/* r5 = bool(a < b) ? a * 3 + iota : b;  r6 = int32(r5);  store r5, r6. Values are small integers: exact in any type. */
static void check_programs(void)
{
    static double a[ROOM], out_f64[ROOM];
    static float b[ROOM];
    static int32_t out_i32[ROOM];
    static const int64_t extents[] = {1, 1, 2, 3, 5, 7, 13, 33, 64, 70};
    for (int i = 0; i < ROOM; i++)
        a[i] = (double)(random_bits() % 100), b[i] = (float)(random_bits() % 100);
    for (int round = 0; round < 400; round++) {
        oly_tile_box box = {(int)(random_bits() % 5), {0}, {0}, {0}};
        int64_t n = 1;
        for (int d = 0; d < box.rank; d++) {
            box.extent[d] = n > 60 ? 1 + (int64_t)(random_bits() % 3) : extents[random_bits() % COUNT(extents)];
            box.origin[d] = (int64_t)(random_bits() % 10);
            n *= box.extent[d];
        }
        if (round % 40 == 0)
            box.rank = 1, n = box.extent[0] = 5000;
        int counted = box.rank ? (int)(random_bits() % (uint64_t)box.rank) : 0;
        oly_tile_instruction code[] = {
            {.op = OLY_TILE_convert, .dtype = OLY_FLOAT32, .to = OLY_FLOAT64, .in = {1, -1, -1}, .out = 1},
            {.op = OLY_TILE_splat, .dtype = OLY_FLOAT64, .to = OLY_FLOAT64, .in = {-1, -1, -1}, .out = 2, .value.f = 3},
            {.op = OLY_TILE_lt, .dtype = OLY_FLOAT64, .to = OLY_BOOL, .in = {0, 1, -1}, .out = 3},
            {.op = OLY_TILE_mul, .dtype = OLY_FLOAT64, .to = OLY_FLOAT64, .in = {0, 2, -1}, .out = 2},
            {.op = OLY_TILE_iota,
             .dtype = OLY_FLOAT64,
             .to = OLY_FLOAT64,
             .in = {-1, -1, -1},
             .out = 4,
             .attribute = counted},
            {.op = OLY_TILE_add, .dtype = OLY_FLOAT64, .to = OLY_FLOAT64, .in = {2, 4, -1}, .out = 4},
            {.op = OLY_TILE_select, .dtype = OLY_FLOAT64, .to = OLY_FLOAT64, .in = {3, 4, 1}, .out = 5},
            {.op = OLY_TILE_convert, .dtype = OLY_FLOAT64, .to = OLY_INT32, .in = {5, -1, -1}, .out = 6},
        };
        if (box.rank == 0) /* nothing to count */
            code[4] = (oly_tile_instruction){
                .op = OLY_TILE_splat, .dtype = OLY_FLOAT64, .to = OLY_FLOAT64, .in = {-1, -1, -1}, .out = 4};
        int16_t load_register[] = {0, 1}, store_register[] = {5, 6};
        uint8_t load_dtype[] = {OLY_FLOAT64, OLY_FLOAT32}, store_dtype[] = {OLY_FLOAT64, OLY_INT32};
        oly_tile_program program = {COUNT(code), code, 2, 2, load_register, load_dtype, store_register, store_dtype, 7};
        oly_tile_operand loads[] = {random_operand(&box, (char *)a, 8, false),
                                    random_operand(&box, (char *)b, 4, false)};
        oly_tile_operand stores[] = {random_operand(&box, (char *)out_f64, 8, true),
                                     random_operand(&box, (char *)out_i32, 4, true)};
        memset(out_f64, 0xff, sizeof out_f64);
        memset(out_i32, 0xff, sizeof out_i32);
        int chunks = round % 2 ? 3 : oly_tile_chunks(&program, &box);
        for (int c = 0; c < chunks; c++)
            oly_tile_run(&program, &box, loads, stores, c, chunks);
        for (int64_t i = 0; i < n; i++) {
            int64_t rest = i, at[4] = {0}, index = 0;
            for (int d = box.rank - 1; d >= 0; d--) {
                int64_t x = rest % box.extent[d];
                rest /= box.extent[d];
                at[0] += x * loads[0].stride[d], at[1] += x * loads[1].stride[d];
                at[2] += x * stores[0].stride[d], at[3] += x * stores[1].stride[d];
                if (d == counted)
                    index = box.origin[d] + x;
            }
            double x = ((double *)loads[0].base)[at[0]], y = (double)((float *)loads[1].base)[at[1]];
            double expected = x < y ? x * 3 + (double)index : y;
            if (((double *)stores[0].base)[at[2]] != expected ||
                ((int32_t *)stores[1].base)[at[3]] != (int32_t)expected)
                fail_msg("%s, round %d: element %d of rank %d gave %g, not %g", oly_kernels_isa(), round, (int)i,
                         box.rank, ((double *)stores[0].base)[at[2]], expected);
        }
    }
}
static void programs_reach_every_element_of_any_box(void **unused)
{
    (void)unused, on_each(check_programs);
}

/* x, y = y, x + y in place: loads are read although their memory is stored to earlier in the program. */
static void check_in_place(void)
{
    static double x[5000], y[5000];
    const oly_tile_instruction code[] = {
        {.op = OLY_TILE_add, .dtype = OLY_FLOAT64, .to = OLY_FLOAT64, .in = {0, 1, -1}, .out = 2}};
    int16_t load_register[] = {0, 1}, store_register[] = {1, 2};
    uint8_t dtypes[] = {OLY_FLOAT64, OLY_FLOAT64};
    oly_tile_program program = {1, code, 2, 2, load_register, dtypes, store_register, dtypes, 3};
    oly_tile_operand places[] = {{(char *)x, {1}}, {(char *)y, {1}}};
    oly_tile_box box = {1, {5000}, {0}, {0}};
    for (int i = 0; i < 5000; i++)
        x[i] = i, y[i] = 2 * i + 1;
    oly_tile_run(&program, &box, places, places, 0, 1);
    for (int i = 0; i < 5000; i++)
        assert_true(x[i] == 2 * i + 1 && y[i] == 3 * i + 1);
}
static void loads_survive_stores_to_the_same_place(void **unused)
{
    (void)unused, on_each(check_in_place);
}

/* More live registers than fit a full tile: the sum of 60 shifted copies, all live until the end. */
static void check_many_registers(void)
{
    static double x[3000], y[3000];
    oly_tile_instruction code[180];
    int n = 0;
    for (int k = 1; k <= 60; k++) {
        code[n++] = (oly_tile_instruction){
            .op = OLY_TILE_splat, .to = OLY_FLOAT64, .in = {-1, -1, -1}, .out = 63, .value.f = k};
        code[n++] = (oly_tile_instruction){
            .op = OLY_TILE_mul, .dtype = OLY_FLOAT64, .to = OLY_FLOAT64, .in = {0, 63, -1}, .out = (int16_t)k};
    }
    for (int k = 2; k <= 60; k++)
        code[n++] = (oly_tile_instruction){
            .op = OLY_TILE_add, .dtype = OLY_FLOAT64, .to = OLY_FLOAT64, .in = {1, (int16_t)k, -1}, .out = 1};
    int16_t load_register = 0, store_register = 1;
    uint8_t dtype = OLY_FLOAT64;
    oly_tile_program program = {n, code, 1, 1, &load_register, &dtype, &store_register, &dtype, 64};
    oly_tile_operand load = {(char *)x, {1}}, store = {(char *)y, {1}};
    oly_tile_box box = {1, {3000}, {0}, {0}};
    for (int i = 0; i < 3000; i++)
        x[i] = i;
    oly_tile_run(&program, &box, &load, &store, 0, 1);
    for (int i = 0; i < 3000; i++)
        assert_true(y[i] == 1830.0 * i);
}
static void programs_with_many_live_registers_work(void **unused)
{
    (void)unused, on_each(check_many_registers);
}

/* -- selection of the instruction set ------------------------------------------------------------------------------ */

static void unknown_instruction_set_is_refused(void **unused)
{
    (void)unused;
    assert_int_equal(oly_kernels_choose("avx3"), OLY_INVALID);
    assert_non_null(strstr(oly_pending_message(), "base"));
    oly_drop_message();
}

static void chunks_follow_from_shape(void **unused)
{
    (void)unused;
    const oly_tile_instruction code = {
        .op = OLY_TILE_neg, .dtype = OLY_FLOAT32, .to = OLY_FLOAT32, .in = {0, -1, -1}, .out = 1};
    oly_tile_program program = {1, &code, 0, 0, NULL, NULL, NULL, NULL, 2};
    assert_int_equal(oly_tile_chunks(&program, &(oly_tile_box){2, {5, 0}, {0}, {0}}), 0);
    assert_int_equal(oly_tile_chunks(&program, &(oly_tile_box){0, {0}, {0}, {0}}), 1);
    assert_int_equal(oly_tile_chunks(&program, &(oly_tile_box){1, {1000}, {0}, {0}}), 1);
    assert_int_equal(oly_tile_chunks(&program, &(oly_tile_box){1, {1 << 30}, {0}, {0}}), 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_accurate_everywhere),
        cmocka_unit_test(power_is_accurate_and_special_as_in_c),
        cmocka_unit_test(ordinary_powers_do_not_show),
        cmocka_unit_test(sines_of_small_integers_are_correctly_rounded),
        cmocka_unit_test(far_arguments_work_in_place),
        cmocka_unit_test(exact_operations_give_the_one_right_answer),
        cmocka_unit_test(bools_add_as_or_and_multiply_as_and),
        cmocka_unit_test(programs_reach_every_element_of_any_box),
        cmocka_unit_test(loads_survive_stores_to_the_same_place),
        cmocka_unit_test(programs_with_many_live_registers_work),
        cmocka_unit_test(unknown_instruction_set_is_refused),
        cmocka_unit_test(chunks_follow_from_shape),
    };
    return CHECK_MAIN(tests);
}
