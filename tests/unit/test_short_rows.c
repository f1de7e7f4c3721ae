/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Reductions and positions of the largest elements of many short rows, which are computed side by side: the bits of a
 * loop over each row, with NaN, zeros of both signs and equal elements, for any length, number and distance of rows. Reductions along
 * narrow rows that follow each other ([n, k, 3] along k): the bits of those that are apart. */
#include "check.h"
#include "core/error.h"
#include "kernel.h"
#include "local.h"
#include "planning.h"
#include "table.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 700, LONGEST = 70 };
static uint64_t seed = 1;
static union {
    float f[ROWS * LONGEST];
    int32_t i[ROWS * LONGEST];
    double d[ROWS * LONGEST];
} in;
static float reduced[ROWS], expected[ROWS];
static int32_t found[ROWS];
static char scratch[1 << 20];

static int64_t draw(int64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)below);
}

static void fill(oly_dtype dtype)
{
    static const float values[] = {0, -0.0f, NAN, INFINITY, -INFINITY};
    int64_t some = 3 + draw(100);
    for (int k = 0; k < ROWS * LONGEST; k++)
        if (dtype == OLY_INT32)
            in.i[k] = (int32_t)draw(9) - 4;
        else
            in.f[k] = draw(some) == 0 ? values[draw(5)] : (float)draw(1000) / 8 - 60;
}

static float combined(oly_combiner c, float a, float b)
{
    if (c == OLY_COMBINE_SUM)
        return a + b;
    if (c == OLY_COMBINE_PROD)
        return a * b;
    return a != a || (c == OLY_COMBINE_MAX ? a > b : a < b) ? a : b;
}

static void check_reduction(oly_combiner c, int64_t rows, int64_t n, int64_t between)
{
    oly_reduce_task t = {.combiner = c, .dtype = OLY_FLOAT32, .rank = 2, .extent = {rows, n}, .stride = {between, 1}};
    t.reduced[1] = true;
    int chunks = oly_reduce_chunks(&t);
    for (int k = 0; k < chunks; k++)
        oly_reduce_run(&t, in.f, reduced, scratch, k, chunks);
    for (int64_t i = 0; i < rows; i++) {
        expected[i] = in.f[i * between];
        for (int64_t k = 1; k < n; k++)
            expected[i] = combined(c, expected[i], in.f[i * between + k]);
    }
    for (int64_t i = 0; i < rows; i++)
        if (memcmp(&reduced[i], &expected[i], sizeof(float)) != 0 && !(isnan(reduced[i]) && isnan(expected[i])))
            fail_msg("%s: combiner %d of row %d of %d, %d elements, is %g, not %g", oly_kernels_isa(), (int)c, (int)i,
                     (int)rows, (int)n, (double)reduced[i], (double)expected[i]);
}

static int32_t place(oly_dtype dtype, bool smallest, int64_t n, int64_t from)
{
    int32_t best = 0;
    for (int32_t k = 1; k < n; k++) {
        double x = dtype == OLY_INT32 ? in.i[from + k] : (double)in.f[from + k];
        double held = dtype == OLY_INT32 ? in.i[from + best] : (double)in.f[from + best];
        if ((smallest ? x < held : x > held) || (isnan(x) && !isnan(held)))
            best = k;
    }
    return best;
}

static void check_places(oly_dtype dtype, bool smallest, int64_t rows, int64_t n, int64_t between)
{
    oly_local_operand x = {.dtype = dtype, .rank = 2, .size = {rows, n}, .extent = {rows, n}, .stride = {between, 1}};
    oly_local_task t = {.op = smallest ? OLY_LOCAL_ARGMIN : OLY_LOCAL_ARGMAX, .n_in = 1, .in = &x, .n_axes = 1};
    t.axes[0] = 1;
    t.out = (oly_local_operand){.dtype = OLY_INT32, .rank = 1, .size = {rows}, .extent = {rows}, .stride = {1}};
    assert_in_range(oly_local_scratch(&t), 0, sizeof scratch);
    const void *operands[] = {&in};
    int chunks = oly_local_chunks(&t, 0);
    for (int k = 0; k < chunks; k++)
        oly_local_run(&t, operands, found, scratch, 0, k, chunks);
    for (int64_t i = 0; i < rows; i++)
        if (found[i] != place(dtype, smallest, n, i * between))
            fail_msg("%s: row %d of %d, %d elements of type %d: found %d, not %d", oly_kernels_isa(), (int)i, (int)rows,
                     (int)n, (int)dtype, (int)found[i], (int)place(dtype, smallest, n, i * between));
}

/* Sums over k of [a, k, width], part of an array: rows follow each other, or have gaps between. */
static void check_narrow(oly_combiner c, oly_dtype dtype, int64_t a, int64_t k, int64_t width)
{
    static char dense[1 << 20], apart[1 << 20], of_dense[1 << 20], of_apart[1 << 20];
    int64_t bytes = (int64_t)oly_element_bytes[dtype], gap = k * (width + 1) + 3;
    for (int64_t i = 0; i < a * k * width; i++) {
        int64_t row = i / width, to = row / k * gap + row % k * (width + 1) + i % width;
        memcpy(dense + (row / k * (k * width + 5) + i % (k * width)) * bytes, (char *)&in + i * bytes, (size_t)bytes);
        memcpy(apart + to * bytes, (char *)&in + i * bytes, (size_t)bytes);
    }
    oly_reduce_task t = {.combiner = c, .dtype = dtype, .rank = 3, .extent = {a, k, width}};
    t.reduced[1] = true;
    for (int form = 0; form < 2; form++) {
        const int64_t stride[] = {form ? gap : k * width + 5, form ? width + 1 : width, 1};
        memcpy(t.stride, stride, sizeof stride);
        int chunks = oly_reduce_chunks(&t);
        assert_in_range(oly_reduce_scratch(&t), 0, sizeof scratch);
        for (int i = 0; i < chunks; i++)
            oly_reduce_run(&t, form ? apart : dense, form ? of_apart : of_dense, scratch, i, chunks);
        oly_reduce_finish(&t, form ? of_apart : of_dense, scratch);
    }
    if (memcmp(of_dense, of_apart, (size_t)(a * width * bytes)) != 0)
        fail_msg("%s: combiner %d, type %d, [%d, %d, %d]: other bits than where rows are apart", oly_kernels_isa(),
                 (int)c, (int)dtype, (int)a, (int)k, (int)width);
    if (dtype != OLY_FLOAT32 || k >= 64 || oly_reduce_scratch(&t) > 0)
        return;
    for (int64_t i = 0; i < a * width; i++) {
        float sum = in.f[i / width * k * width + i % width], found_sum;
        for (int64_t row = 1; row < k; row++)
            sum = combined(c, sum, in.f[(i / width * k + row) * width + i % width]);
        memcpy(&found_sum, of_dense + 4 * i, sizeof found_sum);
        assert_true(memcmp(&sum, &found_sum, sizeof sum) == 0);
    }
}

static void check_narrow_rows(void)
{
    static const oly_combiner combiners[] = {OLY_COMBINE_SUM, OLY_COMBINE_PROD, OLY_COMBINE_MAX, OLY_COMBINE_MIN};
    static const oly_dtype types[] = {OLY_FLOAT32, OLY_INT32, OLY_FLOAT64, OLY_INT8, OLY_FLOAT16};
    for (int round = 0; round < 400; round++) {
        int64_t width = 1 + draw(round % 2 ? 8 : 40), k = 1 + draw(round % 3 ? 70 : 1000), most = 20000 / (width * k);
        oly_dtype dtype = types[draw(5)];
        for (int i = 0; i < ROWS * LONGEST; i++)
            in.f[i] = (float)draw(100000) / 8192 - 6; /* no NaN: whose payload stays is not documented */
        check_narrow(combiners[draw(4)], dtype, 1 + draw(most < 1 ? 1 : most), k, width);
    }
}

static void short_rows_are_as_one_by_one(void **unused)
{
    static const char *const instruction_sets[] = {"base", "avx2", "avx512"};
    static const oly_combiner combiners[] = {OLY_COMBINE_SUM, OLY_COMBINE_MAX, OLY_COMBINE_MIN};
    (void)unused;
    for (int isa = 0; isa < 3; isa++) {
        if (oly_kernels_choose(instruction_sets[isa]) != OLY_OK) {
            oly_drop_message();
            continue;
        }
        for (int round = 0; round < 60; round++) {
            int64_t rows = 1 + draw(ROWS), n = 1 + draw(66), between = n + draw(LONGEST - n + 1);
            oly_dtype dtype = draw(2) ? OLY_FLOAT32 : OLY_INT32;
            fill(dtype);
            check_places(dtype, draw(2), rows, n, between);
            fill(OLY_FLOAT32);
            check_reduction(combiners[draw(3)], rows, n < 64 ? n : 63, between);
        }
        check_narrow_rows();
        for (int round = 0; round < 120; round++) { /* longer ones, of which whole blocks are compared at once */
            int64_t rows = 1 + draw(9), n = 60 + draw(round % 2 ? 200 : 5000), between = n + draw(5);
            oly_dtype dtype = draw(3) ? OLY_FLOAT32 : OLY_INT32;
            fill(dtype);
            check_places(dtype, draw(2), rows, n, between);
        }
    }
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(short_rows_are_as_one_by_one)};
    return CHECK_MAIN(tests);
}
