/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Kernels that depend on shapes: reductions, combined arrays, matrix products and copies against plain
 * loops, for small and odd sizes, every subset of dimensions, every instruction set. */
#include "core/dtype_list.h"
#include "graph/type.h"
#include "check.h"
#include "check_products.h"
#include "check_element.h"
#include "kernel.h"
#include "core/error.h"
#include <math.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
#define ROOM     400000

static const char *const instruction_sets[] = {"base", "avx2", "avx512"};
static char memory_a[ROOM * 16], memory_b[ROOM * 16], memory_c[ROOM * 16], scratch[128 * ROOM];

static void on_each(void (*check)(void))
{
    int ran = 0;
    for (int i = 0; i < COUNT(instruction_sets); i++)
        if (oly_kernels_choose(instruction_sets[i]) == OLY_OK) {
            check();
            ran++;
        } else {
            oly_drop_message();
        }
    assert_true(ran > 0);
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
static int64_t random_below(int64_t n)
{
    return (int64_t)(random_bits() % (uint64_t)n);
}

typedef double _Complex number; /* of any type */

static bool is_integer(int dtype)
{
    return dtype >= OLY_INT8 && dtype <= OLY_UINT64;
}
/* The value as stored in an element of the type: integers wrap. */
static number as_element(int dtype, number x)
{
    char element[16] __attribute__((aligned(16)));
    set_element((oly_dtype)dtype, element, 0, x);
    return element_of((oly_dtype)dtype, element, 0);
}
/* NaN: too large for float8_e4m3fn. */
static bool same(number a, number b)
{
    return a == b || (a != a && b != b);
}
static bool before(number a, number b)
{
    return __real__ a == __real__ b ? __imag__ a < __imag__ b : __real__ a < __real__ b;
}
static number combine(int c, int dtype, number a, number b)
{
    int64_t i = (int64_t) __real__ a, j = (int64_t) __real__ b;
    if (dtype == OLY_BOOL)
        return c == OLY_COMBINE_SUM || c == OLY_COMBINE_MAX || c == OLY_COMBINE_OR ? i || j : i && j;
    switch (c) {
    case OLY_COMBINE_SUM: return is_integer(dtype) ? as_element(dtype, a + b) : a + b;
    case OLY_COMBINE_PROD: return is_integer(dtype) ? as_element(dtype, a * b) : a * b;
    case OLY_COMBINE_MAX: return before(a, b) ? b : a;
    case OLY_COMBINE_MIN: return before(b, a) ? b : a;
    case OLY_COMBINE_AND: return (double)(i & j);
    default: return (double)(i | j);
    }
}
static number identity(int c, int dtype)
{
    oly_combine_identity((oly_combiner)c, (oly_dtype)dtype, scratch, 1);
    if (c == OLY_COMBINE_AND && element_is_unsigned((oly_dtype)dtype)) /* as a double all bits need not fit */
        return -1;
    return element_of((oly_dtype)dtype, scratch, 0);
}
/* Small integers: sums are exact; ones and minus ones for products. */
static void fill(int dtype, int c, void *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        number whole = __builtin_complex((double)(random_bits() % 50), (double)(random_bits() % 50));
        if (c == OLY_COMBINE_PROD)
            whole = random_bits() % 2 ? 1 : element_parts((oly_dtype)dtype) > 1 ? __builtin_complex(0.0, 1.0) : -1;
        if (c == OLY_COMBINE_PROD && element_is_unsigned((oly_dtype)dtype))
            whole = dtype == OLY_UINT64 || random_bits() % 2 ? 1 : 3;
        set_element((oly_dtype)dtype, x, i, whole);
    }
}

/* -- reductions ----------------------------------------------------------------------------------------------------- */

static void reduce(const oly_reduce_task *t, const void *in, void *out)
{
    int chunks = oly_reduce_chunks(t);
    assert_true(oly_reduce_scratch(t) <= sizeof scratch);
    for (int c = chunks - 1; c >= 0; c--)
        oly_reduce_run(t, in, out, scratch, c, chunks);
    if (oly_reduce_scratch(t) > 0)
        oly_reduce_finish(t, out, scratch);
}

static void reduce_plainly(const oly_reduce_task *t, const void *in, int64_t kept, number *out)
{
    int64_t n = 1;
    for (int64_t i = 0; i < kept; i++)
        out[i] = identity((int)t->combiner, (int)t->dtype);
    for (int d = 0; d < t->rank; d++)
        n *= t->extent[d];
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, from = 0, to = 0, scale = 1;
        for (int d = t->rank - 1; d >= 0; d--) {
            int64_t x = rest % t->extent[d];
            rest /= t->extent[d];
            from += x * t->stride[d];
            if (!t->reduced[d]) {
                to += x * scale;
                scale *= t->extent[d];
            }
        }
        out[to] =
            combine((int)t->combiner, (int)t->dtype, out[to], element_of(t->converts ? t->from : t->dtype, in, from));
    }
    for (int64_t i = 0; i < kept; i++)
        out[i] = as_element((int)t->dtype, out[i]);
}

/* Sometimes elements of another type, converted as they are read: integers that every type has. */
static void convert_some(oly_reduce_task *t)
{
    static const oly_dtype from[] = {OLY_BOOL, OLY_INT8, OLY_UINT8, OLY_INT16, OLY_FLOAT16, OLY_BFLOAT16},
                           to[] = {OLY_INT32, OLY_INT64, OLY_FLOAT32, OLY_FLOAT64};
    if (random_below(2))
        return;
    t->converts = true;
    t->from = from[random_below(COUNT(from))];
    t->dtype = to[random_below(2) + (element_is_inexact(t->from) ? 2 : random_below(2) * 2)];
    t->combiner = OLY_COMBINE_SUM;
}

static void check_reductions(void)
{
    static number expected[ROOM];
    static const int64_t shapes[][4] = {{1, 1, 1, 1},      {0, 3, 1, 1},     {3, 0, 2, 1},     {7, 1, 1, 1},
                                        {63, 1, 1, 1},     {64, 1, 1, 1},    {65, 1, 1, 1},    {4097, 1, 1, 1},
                                        {100003, 1, 1, 1}, {2, 3, 5, 7},     {13, 1, 17, 1},   {97, 101, 1, 1},
                                        {5, 1000, 3, 1},   {300, 300, 2, 1}, {2, 70000, 1, 1}, {70000, 2, 1, 1},
                                        {9, 64, 9, 1},     {4, 3, 70, 11},   {40, 257, 1, 3},  {1000, 5, 1, 1}};
    for (int s = 0; s < COUNT(shapes); s++)
        for (int subset = 0; subset < 16; subset++) {
            int dtype = (int)random_below(OLY_N_DTYPES), gaps = (int)random_below(2);
            int c = (int)random_below(dtype <= OLY_UINT64 ? OLY_N_COMBINERS : OLY_COMBINE_AND);
            if (dtype == OLY_BOOL && c == OLY_COMBINE_SUM)
                c = OLY_COMBINE_MIN;
            oly_reduce_task t = {.combiner = (oly_combiner)c, .dtype = (oly_dtype)dtype, .rank = 4};
            int64_t stride = 1, kept = 1;
            for (int d = 3; d >= 0; d--) {
                t.extent[d] = shapes[s][d];
                t.stride[d] = stride;
                t.reduced[d] = subset >> d & 1;
                stride *= t.extent[d] + gaps;
                kept *= t.reduced[d] ? 1 : t.extent[d];
            }
            if (stride > ROOM)
                continue;
            convert_some(&t);
            dtype = (int)t.dtype, c = (int)t.combiner;
            fill(t.converts ? (int)t.from : dtype, c, memory_a, stride);
            reduce_plainly(&t, memory_a, kept, expected);
            memset(memory_b, 0x7f, (size_t)kept * 16);
            reduce(&t, memory_a, memory_b);
            for (int64_t i = 0; i < kept; i++)
                if (!same(element_of((oly_dtype)dtype, memory_b, i), expected[i]))
                    fail_msg("%s: shape %d subset %d combiner %d dtype %d gaps %d: element %d is %g, not %g",
                             oly_kernels_isa(), s, subset, c, dtype, gaps, (int)i,
                             element_part((oly_dtype)dtype, memory_b, i, 0), __real__ expected[i]);
        }
}
static void reductions_are_right_for_any_subset_of_dimensions(void **unused)
{
    (void)unused, on_each(check_reductions);
}

static float chain(const float *x, int64_t n, int64_t stride)
{
    float sum = x[0];
    for (int64_t i = 1; i < n; i++)
        sum += x[i * stride];
    return sum;
}
/* Trees over many rows have little room for each column: in two chunks, which so many columns otherwise have only in
 * far larger arrays. The rows overlap. */
static void check_many_rows(void)
{
    enum { ROWS = 4095, COLUMNS = 4100 };
    static double right[COLUMNS], sums[COLUMNS], data[ROWS + COLUMNS];
    oly_reduce_task t = {.combiner = OLY_COMBINE_SUM,
                         .dtype = OLY_FLOAT64,
                         .rank = 2,
                         .extent = {ROWS, COLUMNS},
                         .stride = {1, 1},
                         .reduced = {true, false}};
    right[0] = 0;
    for (int i = 0; i < ROWS + COLUMNS; i++)
        data[i] = i * 7 % 101 - 20;
    for (int i = 0; i < ROWS; i++)
        right[0] += data[i];
    for (int j = 1; j < COLUMNS; j++)
        right[j] = right[j - 1] + data[j + ROWS - 1] - data[j - 1];
    assert_int_equal(oly_reduce_scratch(&t), 0);
    for (int chunk = 0; chunk < 2; chunk++)
        oly_reduce_run(&t, data, sums, scratch, chunk, 2);
    assert_memory_equal(sums, right, sizeof right);
}
static void many_rows_of_many_columns_have_room(void **unused)
{
    (void)unused;
    on_each(check_many_rows);
}

static void check_chain(void)
{
    float *x = (float *)memory_a, *y = (float *)memory_b;
    for (int i = 0; i < ROOM; i++)
        x[i] = (float)sin(i * 0.37);
    for (int64_t n = 1; n < 64; n++)
        for (int64_t kept = 1; kept < 40; kept += 12) { /* the last dimension reduced, then the first */
            oly_reduce_task last = {
                .dtype = OLY_FLOAT32, .rank = 2, .extent = {kept, n}, .stride = {n, 1}, .reduced = {false, true}};
            oly_reduce_task first = {
                .dtype = OLY_FLOAT32, .rank = 2, .extent = {n, kept}, .stride = {kept, 1}, .reduced = {true, false}};
            reduce(&last, x, y);
            for (int64_t i = 0; i < kept; i++)
                assert_true(y[i] == chain(x + i * n, n, 1));
            reduce(&first, x, y);
            for (int64_t i = 0; i < kept; i++)
                assert_true(y[i] == chain(x + i, n, kept));
        }
}
static void short_sums_add_one_after_the_other(void **unused)
{
    (void)unused, on_each(check_chain);
}

/* The same elements through other strides give the same bits; and the sum is as accurate as pairwise sums are. */
static void check_layouts(void)
{
    float *x = (float *)memory_a, *turned = (float *)memory_c, a[256], b[256];
    static const int64_t shapes[][2] = {{90000, 4}, {3, 30000}, {251, 257}, {1, 200000}};
    for (int s = 0; s < COUNT(shapes); s++)
        for (int subset = 1; subset < 4; subset++) {
            int64_t m = shapes[s][0], n = shapes[s][1], kept = (subset & 1 ? 1 : m) * (subset & 2 ? 1 : n);
            if (kept > 256)
                continue;
            double exact = 0;
            for (int64_t i = 0; i < m * n; i++)
                exact += x[i] = (float)sin((double)i);
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < n; j++)
                    turned[j * m + i] = x[i * n + j];
            oly_reduce_task t = {.dtype = OLY_FLOAT32,
                                 .rank = 2,
                                 .extent = {m, n},
                                 .stride = {n, 1},
                                 .reduced = {subset & 1, subset >> 1 & 1}};
            reduce(&t, x, a);
            t.stride[0] = 1, t.stride[1] = m;
            reduce(&t, turned, b);
            assert_memory_equal(a, b, sizeof(float) * (size_t)kept);
            double sum = 0;
            for (int64_t i = 0; i < kept; i++)
                sum += a[i];
            assert_true(fabs(sum - exact) < 1e-3);
        }
}
static void sums_do_not_depend_on_strides(void **unused)
{
    (void)unused, on_each(check_layouts);
}

static void check_nan(void)
{
    float *x = (float *)memory_a, y[3];
    for (int where = 0; where < 300; where += 37)
        for (int c = OLY_COMBINE_MAX; c <= OLY_COMBINE_MIN; c++) {
            for (int i = 0; i < 300; i++)
                x[i] = i == where ? NAN : (float)i;
            oly_reduce_task all = {.dtype = OLY_FLOAT32, .rank = 1, .extent = {300}, .stride = {1}, .reduced = {true}};
            oly_reduce_task rows = {
                .dtype = OLY_FLOAT32, .rank = 2, .extent = {100, 3}, .stride = {3, 1}, .reduced = {true, false}};
            all.combiner = rows.combiner = (oly_combiner)c;
            reduce(&all, x, y);
            assert_true(isnan(y[0]));
            reduce(&rows, x, y);
            for (int i = 0; i < 3; i++)
                assert_int_equal(isnan(y[i]) != 0, i == where % 3);
            float pairs[2];
            all.dtype = OLY_COMPLEX64, all.extent[0] = 150; /* one of its parts */
            reduce(&all, x, pairs);
            assert_true(isnan(pairs[0]) || isnan(pairs[1]));
        }
}
static void nan_wins_in_max_and_min(void **unused)
{
    (void)unused, on_each(check_nan);
}

/* -- combined arrays ----------------------------------------------------------------------------------------------- */

static void check_folds(void)
{
    static const int counts[][4] = {{1},    {2},    {3},    {13},      {16},         {16},
                                    {4, 2}, {5, 2}, {1, 3}, {3, 1, 2}, {2, 2, 2, 2}, {3, 5}};
    static const int levels[] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 4, 2};
    const int64_t length = 1301;
    for (int k = 0; k < COUNT(levels); k++)
        for (int out_at = -1; out_at < 2; out_at++)
            for (int dtype = OLY_INT8; dtype < OLY_N_DTYPES; dtype++) {
                int sources = 1;
                const void *source[16];
                for (int l = 0; l < levels[k]; l++)
                    sources *= counts[k][l];
                if (out_at >= sources)
                    continue;
                fill(dtype, OLY_COMBINE_SUM, memory_a, sources * length);
                memcpy(memory_c, memory_a, (size_t)(sources * length) * 16);
                for (int i = 0; i < sources; i++)
                    source[i] = memory_a + (size_t)(i * length) * oly_dtype_size((oly_dtype)dtype);
                char *out = out_at < 0 ? memory_b
                                       : memory_a + (size_t)(out_at * (sources - 1) * length) *
                                                        oly_dtype_size((oly_dtype)dtype);
                oly_combine(OLY_COMBINE_SUM, (oly_dtype)dtype, k % 2, levels[k], counts[k], source, out, 0, 700);
                oly_combine(OLY_COMBINE_SUM, (oly_dtype)dtype, k % 2, levels[k], counts[k], source, out, 700, length);
                for (int64_t i = 0; i < length; i++) {
                    number sum = 0;
                    for (int j = 0; j < sources; j++)
                        sum += element_of((oly_dtype)dtype, memory_c, j * length + i);
                    number got = element_of((oly_dtype)dtype, out, i);
                    bool rounds = oly_is_narrow((oly_dtype)dtype) && dtype != OLY_FLOAT16; /* after every pair */
                    double error = rounds ? sources * element_epsilon((oly_dtype)dtype) / 2 * __real__ sum : 0;
                    if (rounds && __real__ sum + error <= oly_dtype_largest((oly_dtype)dtype))
                        assert_true(fabs(__real__ got - __real__ sum) <= error);
                    else if (!rounds)
                        assert_true(got == as_element(dtype, sum));
                }
            }
}
static void combine_adds_every_source_also_in_place(void **unused)
{
    (void)unused, on_each(check_folds);
}

/* [4][2] sources: (((s0+s2)+s4)+s6) + (((s1+s3)+s5)+s7), or in pairs ((s0+s2)+(s4+s6)) + ((s1+s3)+(s5+s7)). Seven sources in
 * pairs: ((s0+s1)+(s2+s3)) + ((s4+s5)+s6). */
static void check_combine_order(void)
{
    float x[8][9], y[9];
    const void *source[8];
    for (int j = 0; j < 8; j++) {
        source[j] = x[j];
        for (int i = 0; i < 9; i++)
            x[j][i] = (float)sin(i + 10.0 * j);
    }
    oly_combine(OLY_COMBINE_SUM, OLY_FLOAT32, false, 2, (int[]){4, 2}, source, y, 0, 9);
    for (int i = 0; i < 9; i++) {
        float even = ((x[0][i] + x[2][i]) + x[4][i]) + x[6][i], odd = ((x[1][i] + x[3][i]) + x[5][i]) + x[7][i];
        assert_true(y[i] == even + odd);
    }
    oly_combine(OLY_COMBINE_SUM, OLY_FLOAT32, true, 2, (int[]){4, 2}, source, y, 0, 9);
    for (int i = 0; i < 9; i++) {
        float even = (x[0][i] + x[2][i]) + (x[4][i] + x[6][i]), odd = (x[1][i] + x[3][i]) + (x[5][i] + x[7][i]);
        assert_true(y[i] == even + odd);
    }
    oly_combine(OLY_COMBINE_SUM, OLY_FLOAT32, true, 1, (int[]){7}, source, y, 0, 9);
    for (int i = 0; i < 9; i++) {
        float four = (x[0][i] + x[1][i]) + (x[2][i] + x[3][i]);
        assert_true(y[i] == four + ((x[4][i] + x[5][i]) + x[6][i]));
    }
}
static void combine_has_a_fixed_order(void **unused)
{
    (void)unused, on_each(check_combine_order);
}

/* -- matrix products ------------------------------------------------------------------------------------------------ */

/* Elements as numbers, once each: a product reads every one of them hundreds of times. */
static number values_a[ROOM], values_b[ROOM];
static void read_values(oly_dtype dtype, const void *x, int64_t n, number *values)
{
    for (int64_t i = 0; i < n; i++)
        values[i] = element_of(dtype, x, i);
}
/* Of finite numbers, without the care for others that makes the operator of complex numbers slow. */
static number times(number a, number b)
{
    return __builtin_complex(__real__ a * __real__ b - __imag__ a * __imag__ b,
                             __real__ a * __imag__ b + __imag__ a * __real__ b);
}

static void check_products(void)
{
    static const int64_t shapes[][3] = {{1, 1, 1},    {0, 3, 2},     {3, 4, 0},      {5, 1, 7},    {1, 5, 7},
                                        {8, 8, 8},    {13, 17, 11},  {1, 300, 70},   {300, 1, 70}, {31, 33, 35},
                                        {70, 2, 130}, {1, 1, 10007}, {200, 300, 50}, {3, 600, 90}, {600, 3, 90},
                                        {64, 64, 64}, {1, 7, 200},   {5, 1, 300},    {1, 1, 129},  {2, 9, 150},
                                        {1, 100, 33}, {1, 16, 20},   {37, 1, 9},     {1, 128, 1}};
    for (int s = 0; s < COUNT(shapes); s++)
        for (int form = 0; form < 4; form++)
            for (int dtype = OLY_BOOL; dtype < OLY_N_DTYPES; dtype++) {
                int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2], batch = s % 3 + 1;
                int64_t a_long = form & 1 ? m + 1 : k + 2, b_long = form & 2 ? k + 1 : n + 3;
                oly_gemm_task t = {.dtype = (oly_dtype)dtype,
                                   .batch = batch,
                                   .m = m,
                                   .n = n,
                                   .k = k,
                                   .a_row = form & 1 ? 1 : a_long,
                                   .a_column = form & 1 ? a_long : 1,
                                   .b_row = form & 2 ? 1 : b_long,
                                   .b_column = form & 2 ? b_long : 1,
                                   .c_row = n + 1};
                t.a_batch = a_long * (form & 1 ? k : m) + 1;
                t.b_batch = s % 2 ? 0 : b_long * (form & 2 ? n : k);
                t.c_batch = t.c_row * m;
                assert_true(batch * t.a_batch < ROOM && batch * t.b_batch < ROOM && batch * t.c_batch < ROOM);
                fill(dtype, OLY_COMBINE_SUM, memory_a, batch * t.a_batch);
                fill(dtype, OLY_COMBINE_SUM, memory_b, batch * t.b_batch + b_long * (form & 2 ? n : k));
                read_values(t.dtype, memory_a, batch * t.a_batch, values_a);
                read_values(t.dtype, memory_b, batch * t.b_batch + b_long * (form & 2 ? n : k), values_b);
                int chunks = oly_gemm_chunks(&t);
                for (int c = 0; c < chunks; c++)
                    oly_gemm_run(&t, memory_a, memory_b, memory_c, c, chunks);
                for (int64_t at = 0; at < batch * m * n; at++) {
                    int64_t j = at % n, i = at / n % m, b = at / n / m;
                    number sum = 0;
                    for (int64_t l = 0; l < k; l++)
                        sum += times(values_a[b * t.a_batch + i * t.a_row + l * t.a_column],
                                     values_b[b * t.b_batch + l * t.b_row + j * t.b_column]);
                    sum = as_element(dtype, sum);
                    number got = element_of(t.dtype, memory_c, b * t.c_batch + i * t.c_row + j);
                    if (!same(got, sum))
                        fail_msg("%s: product %d form %d dtype %d element %d is %g, not %g", oly_kernels_isa(), s, form,
                                 dtype, (int)at, __real__ got, __real__ sum);
                }
            }
}
static void products_of_any_shape_and_order_are_exact_on_integers(void **unused)
{
    (void)unused, on_each(check_products);
}

/* Many small products, which are computed side by side, have the bits of each by itself: all shapes up to 9, dense and with gaps, transposed,
 * one matrix for all, batches within another loop. */
static void check_many_small_products(void)
{
    static char alone[ROOM * 16];
    uint64_t seed = 5;
#define DRAW(n) ((int64_t)((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33) % (n))
    for (int s = 0; s < 400; s++) {
        int64_t m = 1 + DRAW(9), n = 1 + DRAW(9), k = 1 + DRAW(9), batch = 1 + DRAW(70), outer = 1 + DRAW(3);
        int64_t gap = DRAW(2) ? DRAW(3) : 0, form = DRAW(4);
        bool wide = DRAW(2);
        int64_t a_long = (form & 1 ? m : k) + gap, b_long = (form & 2 ? k : n) + gap;
        oly_gemm_task t = {.dtype = wide ? OLY_FLOAT64 : OLY_FLOAT32,
                           .batch = batch,
                           .m = m,
                           .n = n,
                           .k = k,
                           .a_row = form & 1 ? 1 : a_long,
                           .a_column = form & 1 ? a_long : 1,
                           .b_row = form & 2 ? 1 : b_long,
                           .b_column = form & 2 ? b_long : 1,
                           .c_row = n + gap,
                           .n_outer = 1,
                           .outer = {outer}};
        t.a_batch = a_long * (form & 1 ? k : m);
        t.b_batch = DRAW(3) ? b_long * (form & 2 ? n : k) : 0;
        t.c_batch = t.c_row * m;
        t.a_outer[0] = batch * t.a_batch;
        t.b_outer[0] = batch * b_long * (form & 2 ? n : k);
        t.c_outer[0] = batch * t.c_batch;
        int64_t elements = outer * (t.c_outer[0] + t.a_outer[0] + t.b_outer[0]);
        assert_true(elements < ROOM);
        for (int64_t i = 0; i < elements; i++) {
            double x = (double)DRAW(1 << 30) / (1 << 28) - 2, y = (double)DRAW(1 << 30) / (1 << 28) - 2;
            if (wide)
                ((double *)memory_a)[i] = x, ((double *)memory_b)[i] = y;
            else
                ((float *)memory_a)[i] = (float)x, ((float *)memory_b)[i] = (float)y;
        }
        size_t bytes = (size_t)(outer * t.c_outer[0]) * (wide ? 8 : 4);
        memset(memory_c, 0, bytes);
        memset(alone, 0, bytes);
        int chunks = oly_gemm_chunks(&t);
        for (int c = 0; c < chunks; c++)
            oly_gemm_run(&t, memory_a, memory_b, memory_c, c, chunks);
        oly_gemm_task one = t;
        one.batch = 1;
        one.n_outer = 0;
        for (int64_t i = 0; i < outer * batch; i++) {
            int64_t o = i / batch, b = i % batch, size = wide ? 8 : 4;
            oly_gemm_run(&one, memory_a + (o * t.a_outer[0] + b * t.a_batch) * size,
                         memory_b + (o * t.b_outer[0] + b * t.b_batch) * size,
                         alone + (o * t.c_outer[0] + b * t.c_batch) * size, 0, 1);
        }
        if (memcmp(memory_c, alone, bytes) != 0)
            fail_msg("%s: %d products of %d x %d x %d, form %d, gap %d, float%d", oly_kernels_isa(), (int)batch, (int)m,
                     (int)k, (int)n, (int)form, (int)gap, wide ? 64 : 32);
    }
#undef DRAW
}
static void many_small_products_have_the_bits_of_each(void **unused)
{
    (void)unused, on_each(check_many_small_products);
}

/* Strides that OpenBLAS refuses, or would misread: repeated, reversed, overlapping, with gaps in both dimensions. */
static void check_products_of_any_stride(void)
{
    enum { N = 40, BEGIN = N * N };
    static const int64_t strides[][2] = {{0, 1},  {1, 0}, {-N, 1}, {N, -1},    {1, -N},
                                         {-1, N}, {1, 1}, {2, 1},  {2, 2 * N}, {2 * N, 2}};
    for (int s = 0; s < 2 * COUNT(strides); s++)
        for (int dtype = OLY_FLOAT32; dtype < OLY_N_DTYPES; dtype++) {
            const int64_t *odd = strides[s / 2];
            oly_gemm_task t = {.dtype = (oly_dtype)dtype, .batch = 1, .m = N, .n = N, .k = N, .c_row = N};
            t.a_row = s % 2 ? N : odd[0];
            t.a_column = s % 2 ? 1 : odd[1];
            t.b_row = s % 2 ? odd[0] : N;
            t.b_column = s % 2 ? odd[1] : 1;
            assert_true(BEGIN + 2 * N * N + 2 * N < ROOM);
            fill(dtype, OLY_COMBINE_SUM, memory_a, BEGIN + 2 * N * N + 2 * N);
            fill(dtype, OLY_COMBINE_SUM, memory_b, BEGIN + 2 * N * N + 2 * N);
            read_values(t.dtype, memory_a, BEGIN + 2 * N * N + 2 * N, values_a);
            read_values(t.dtype, memory_b, BEGIN + 2 * N * N + 2 * N, values_b);
            int chunks = oly_gemm_chunks(&t);
            size_t skipped = (size_t)BEGIN * oly_dtype_size((oly_dtype)dtype);
            for (int c = 0; c < chunks; c++)
                oly_gemm_run(&t, (char *)memory_a + skipped, (char *)memory_b + skipped, memory_c, c, chunks);
            for (int64_t at = 0; at < N * N; at++) {
                number sum = 0;
                for (int64_t l = 0; l < N; l++)
                    sum += times(values_a[BEGIN + at / N * t.a_row + l * t.a_column],
                                 values_b[BEGIN + l * t.b_row + at % N * t.b_column]);
                if (element_of(t.dtype, memory_c, at) != as_element(dtype, sum))
                    fail_msg("%s: strides %d dtype %d element %d is %g, not %g", oly_kernels_isa(), s, dtype, (int)at,
                             __real__ element_of(t.dtype, memory_c, at), __real__ sum);
            }
        }
}
static void products_of_any_stride_are_exact_on_integers(void **unused)
{
    (void)unused, on_each(check_products_of_any_stride);
}

static void check_order_of_products(void)
{
    float x[32], w[32][4], y[4];
    bool fused = strcmp(oly_kernels_isa(), "base") != 0;
    for (int i = 0; i < 32; i++) {
        x[i] = (float)sin(i + 0.5);
        for (int j = 0; j < 4; j++)
            w[i][j] = (float)cos(3.0 * i + j);
    }
    oly_gemm_task t = dense_product(OLY_FLOAT32, 1, 4, 32);
    oly_gemm_run(&t, x, w, y, 0, 1);
    for (int j = 0; j < 4 && fused; j++) {
        float sum = 0;
        for (int i = 0; i < 32; i++)
            sum = fmaf(x[i], w[i][j], sum);
        assert_true(y[j] == sum);
    }
}
static void small_products_go_left_to_right_fused(void **unused)
{
    (void)unused, on_each(check_order_of_products);
}

/* -- copies --------------------------------------------------------------------------------------------------------- */

static void check_copies(void)
{
    static const int64_t extents[] = {1, 2, 3, 4, 5, 6, 7, 8, 17, 33, 65}, steps[] = {1, 1, 1, 2, 3, 4, 5, -1, -1};
    static const size_t sizes[] = {1, 2, 4, 8, 16, 3};
    for (int round = 0; round < 1500; round++) {
        oly_copy_task t = {.element_bytes = sizes[round % 6], .rank = (int)random_below(5)};
        int64_t n = 1, to_stride = 1, step = steps[random_below(COUNT(steps))], from_stride = step < 0 ? -step : step,
                last = 0, start = 0;
        for (int d = 0; d < t.rank; d++) {
            t.extent[d] = round % 50 == 7 && d == 0 ? 0 : n > 4000 ? 2 : extents[random_below(COUNT(extents))];
            n *= t.extent[d];
        }
        if (round % 20 == 3)
            t.rank = 2, t.extent[0] = 211, t.extent[1] = 307, n = 211 * 307;
        bool turned = random_bits() % 2, repeats = random_bits() % 4 == 0;
        int repeated = (int)random_below(2);
        for (int k = 0; k < t.rank; k++) {
            int d = t.rank - 1 - k, other = turned ? k : d;
            t.to_stride[d] = to_stride;
            to_stride *= t.extent[d] + round % 3 % 2;
            bool backwards = step < 0 && k == 0, same = repeats && k == repeated;
            t.from_stride[other] = same ? 0 : backwards ? -from_stride : from_stride;
            start += backwards && !same && t.extent[other] > 0 ? (t.extent[other] - 1) * from_stride : 0;
            from_stride *= same ? 1 : t.extent[other] + round % 2;
        }
        if (to_stride > ROOM - 2 || from_stride > ROOM - 2)
            continue;
        for (size_t i = 0; i < (size_t)from_stride * 16; i++)
            memory_a[i] = (char)(i * 2654435761u >> 13);
        memset(memory_b, 0, (size_t)(to_stride + 2) * 16);
        memset(memory_c, 0, (size_t)(to_stride + 2) * 16);
        int chunks = round % 2 ? 5 : oly_copy_chunks(&t);
        for (int c = 0; c < chunks; c++)
            oly_copy_run(&t, memory_b, memory_a + (size_t)start * t.element_bytes, c, chunks);
        for (int64_t i = 0; i < n; i++) {
            int64_t rest = i, to = 0, from = start;
            for (int d = t.rank - 1; d >= 0; d--) {
                to += rest % t.extent[d] * t.to_stride[d];
                from += rest % t.extent[d] * t.from_stride[d];
                rest /= t.extent[d];
            }
            memcpy(memory_c + (size_t)to * t.element_bytes, memory_a + (size_t)from * t.element_bytes, t.element_bytes);
            last = to > last ? to : last;
        }
        assert_memory_equal(memory_b, memory_c, (size_t)(last + 2) * t.element_bytes);
    }
}
static void copies_reach_every_element_and_no_other(void **unused)
{
    (void)unused, on_each(check_copies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_are_right_for_any_subset_of_dimensions),
        cmocka_unit_test(many_rows_of_many_columns_have_room),
        cmocka_unit_test(short_sums_add_one_after_the_other),
        cmocka_unit_test(sums_do_not_depend_on_strides),
        cmocka_unit_test(nan_wins_in_max_and_min),
        cmocka_unit_test(combine_adds_every_source_also_in_place),
        cmocka_unit_test(combine_has_a_fixed_order),
        cmocka_unit_test(products_of_any_shape_and_order_are_exact_on_integers),
        cmocka_unit_test(many_small_products_have_the_bits_of_each),
        cmocka_unit_test(products_of_any_stride_are_exact_on_integers),
        cmocka_unit_test(small_products_go_left_to_right_fused),
        cmocka_unit_test(copies_reach_every_element_and_no_other),
    };
    return CHECK_MAIN(tests);
}
