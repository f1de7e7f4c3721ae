/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Products of bfloat16 in matrix registers have the values of plain loops: any shape around the borders of blocks, any strides,
 * results of float32 and of bfloat16, infinities, NaN, subnormal numbers; and the same bits however they are divided. */
#include "check.h"
#include "check_products.h"
#include "core/error.h"
#include "core/narrow.h"
#include "gemm_bfloat.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PRODUCTS = 400, MOST = 1 << 20 };
static uint64_t seed = 1;
/* Rows that begin lines of cache are read in place. */
static uint16_t memory_a[MOST] __attribute__((aligned(64))), memory_b[MOST];
static uint32_t memory_c[MOST], other_c[MOST];

static int64_t draw(int64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)below);
}

/* Small integers, whose sums are exact in any order. */
static void fill_integers(uint16_t *to)
{
    for (int64_t i = 0; i < MOST; i++)
        to[i] = oly_bfloat_of_float(draw(16) ? (float)(draw(17) - 8) : -0.0f);
}

static void fill_fractions(uint16_t *to)
{
    for (int64_t i = 0; i < MOST; i++)
        to[i] = oly_bfloat_of_float((float)(draw(1 << 20) - (1 << 19)) * 0x1p-19f);
}

/* A few infinities and NaN between small integers. */
static void fill_special(uint16_t *to)
{
    static const uint16_t special[] = {0x7f80, 0xff80, 0x7fc0, 0x7f81, 0xffff};
    fill_integers(to);
    for (int64_t i = 0; i < MOST; i += 1 + draw(2000))
        to[i] = special[draw(5)];
}

static int64_t length(int64_t most)
{
    static const int64_t borders[] = {1, 2, 8, 16, 32, 64, 128, 256, 512};
    int64_t n = draw(2) ? borders[draw(9)] + draw(3) - 1 : 1 + draw(most);
    return n < 1 ? 1 : n > most ? most : n;
}

static oly_gemm_task drawn(void)
{
    oly_gemm_task t = {.dtype = draw(2) ? OLY_BFLOAT16 : OLY_FLOAT32,
                       .batch = 1 + draw(3),
                       .m = length(140),
                       .n = length(140),
                       .k = 1 + length(draw(3) ? 300 : 1500)};
    if (draw(15) == 0)
        t.m = length(600), t.n = length(40);
    if (draw(15) == 0)
        t.n = length(600), t.m = length(40);
    if (draw(15) == 0) /* blocks of more columns than are computed together */
        t.n = 8193 + draw(60), t.m = 1 + draw(3), t.k = 2 + draw(60);
    bool a_turned = draw(2), b_turned = draw(2);
    int64_t gap = draw(2) ? draw(3) : -t.k & 31;
    lay_out_operands(&t, a_turned, b_turned, gap);
    t.a_batch = draw(2) ? draw(1000) : 0;
    t.b_batch = draw(2) ? draw(1000) : 0;
    t.c_row = t.n + draw(4);
    t.c_batch = t.m * t.c_row;
    assert_true(t.batch * t.c_batch + 16 <= MOST);
    return t;
}

static void run(const oly_gemm_task *t, uint32_t *c, int chunks)
{
    memset(c, 0x55, (size_t)(t->batch * t->c_batch + 16) * sizeof *c);
    for (int k = 0; k < chunks; k++)
        oly_gemm_bfloat_run(t, memory_a, memory_b, c, k, chunks);
}

/* The sum, in double precision, and that of the terms' sizes. */
static double by_hand(const oly_gemm_task *t, int64_t batch, int64_t i, int64_t j, double *sizes)
{
    double sum = 0;
    *sizes = 0;
    for (int64_t l = 0; l < t->k; l++) {
        double term = (double)oly_float_of_bfloat(memory_a[batch * t->a_batch + i * t->a_row + l * t->a_column]) *
                      oly_float_of_bfloat(memory_b[batch * t->b_batch + l * t->b_row + j * t->b_column]);
        sum += term;
        *sizes += fabs(term);
    }
    return sum;
}

/* tolerance: in units of the last place of float32 for each term; 0: the bits are those of the sum, rounded once. */
static bool is_right(const oly_gemm_task *t, int64_t x, double tolerance)
{
    double sizes, sum = by_hand(t, x / t->c_batch, x % t->c_batch / t->c_row, x % t->c_row, &sizes);
    const bool narrow = t->dtype == OLY_BFLOAT16;
    const uint16_t bits = ((const uint16_t *)memory_c)[x];
    const double result = narrow ? oly_float_of_bfloat(bits) : oly_float_of_bits(memory_c[x]);
    if (isnan(sum))
        return isnan(result);
    if (isinf(sum))
        return result == sum;
    if (tolerance == 0)
        return narrow ? bits == oly_bfloat_of_float((float)sum) : memory_c[x] == oly_float_bits((float)sum);
    return fabs(result - sum) <= tolerance * 0x1p-24 * sizes * (double)t->k + (narrow ? 0x1p-8 * fabs(sum) : 0);
}

/* All elements, and that nothing else is written. */
static void check(const oly_gemm_task *t, double tolerance)
{
    const int64_t end = t->batch * t->c_batch;
    run(t, memory_c, oly_gemm_bfloat_chunks(t));
    for (int64_t x = 0; x < end + 16; x++) {
        const bool inside = x < end && x % t->c_row < t->n;
        const bool untouched =
            t->dtype == OLY_BFLOAT16 ? ((const uint16_t *)memory_c)[x] == 0x5555 : memory_c[x] == 0x55555555;
        if (inside ? !is_right(t, x, tolerance) : !untouched)
            fail_msg("%s, %d of %d x %d x %d, strides %d %d, %d %d: element %d is wrong",
                     t->dtype == OLY_BFLOAT16 ? "bfloat16" : "float32", (int)t->batch, (int)t->m, (int)t->n, (int)t->k,
                     (int)t->a_row, (int)t->a_column, (int)t->b_row, (int)t->b_column, (int)x);
    }
}

static void begin(void)
{
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
    if (!oly_bfloat_products()) {
        print_message("skipped: this processor has no AMX for bfloat16, or the system does not grant its registers\n");
        skip();
    }
}

static void check_all(void (*fill)(uint16_t *), double tolerance)
{
    begin();
    fill(memory_a);
    fill(memory_b);
    for (int k = 0; k < PRODUCTS; k++) {
        oly_gemm_task t = drawn();
        check(&t, tolerance);
    }
}

static void exact_sums(void **state)
{
    (void)state;
    check_all(fill_integers, 0);
}

static void rounded_sums(void **state)
{
    (void)state;
    check_all(fill_fractions, 1);
}

static void infinities_and_nan(void **state)
{
    (void)state;
    check_all(fill_special, 0);
}

/* Any number of chunks, and rows and columns computed as products of their own. */
static void divisions_have_the_same_bits(void **state)
{
    (void)state;
    begin();
    fill_fractions(memory_a);
    fill_fractions(memory_b);
    for (int k = 0; k < PRODUCTS / 4; k++) {
        oly_gemm_task t = drawn(), part = t;
        const size_t size = t.dtype == OLY_BFLOAT16 ? 2 : 4;
        run(&t, memory_c, oly_gemm_bfloat_chunks(&t));
        run(&t, other_c, 1);
        assert_memory_equal(memory_c, other_c, (size_t)(t.batch * t.c_batch) * size);
        const int64_t i = draw(t.m), j = draw(t.n);
        part.m = 1 + draw(t.m - i);
        part.n = 1 + draw(t.n - j);
        memset(other_c, 0, sizeof other_c);
        oly_gemm_bfloat_run(&part, memory_a + i * t.a_row, memory_b + j * t.b_column, other_c, 0, 1);
        for (int64_t b = 0; b < t.batch; b++)
            for (int64_t r = 0; r < part.m; r++)
                assert_memory_equal((char *)other_c + (size_t)(b * t.c_batch + r * t.c_row) * size,
                                    (char *)memory_c + (size_t)(b * t.c_batch + (i + r) * t.c_row + j) * size,
                                    (size_t)part.n * size);
    }
}

/* As gemm_bfloat.h says. */
static void subnormal_numbers_are_zero(void **state)
{
    (void)state;
    begin();
    oly_gemm_task t = dense_product(OLY_FLOAT32, 1, 1, 2);
    memory_a[0] = 0x0001; /* times 2: an element */
    memory_b[0] = 0x4000;
    memory_a[1] = memory_b[1] = 0;
    run(&t, memory_c, 1);
    assert_int_equal(memory_c[0], 0);
    memory_a[0] = 0x0080; /* the smallest normal number, times 1/2: a sum */
    memory_b[0] = 0x3f00;
    run(&t, memory_c, 1);
    assert_int_equal(memory_c[0], 0);
}

static void other_instruction_sets_have_none(void **state)
{
    (void)state;
    assert_int_equal(oly_kernels_choose("base"), OLY_OK);
    assert_false(oly_bfloat_products());
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exact_sums),
                                       cmocka_unit_test(rounded_sums),
                                       cmocka_unit_test(infinities_and_nan),
                                       cmocka_unit_test(divisions_have_the_same_bits),
                                       cmocka_unit_test(subnormal_numbers_are_zero),
                                       cmocka_unit_test(other_instruction_sets_have_none)};
    return CHECK_MAIN(tests);
}
