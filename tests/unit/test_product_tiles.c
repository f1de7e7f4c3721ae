/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Products in registers (AVX2, AVX-512) have the bits of the plain loops: any shape, any strides, NaN and signed zeros,
 * integers that fit 16 bits and integers that do not. Large ones that are narrow in one direction, too, and those with few vectors
 * have the values of any order. */
#include "kernel.h"
#include "check.h"
#include "check_products.h"
#include "core/error.h"
#include "core/narrow.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 17, PRODUCTS = 600 };
static uint64_t seed = 1;
static double memory_a[ROOM], memory_b[ROOM], memory_c[ROOM], memory_d[ROOM], first[ROOM];

static int64_t draw(int64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)below);
}

static double special(void)
{
    static const double values[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1e-40, 1e38};
    return values[draw(sizeof values / sizeof values[0])];
}

/* some: one element in so many is special, or an integer that does not fit 16 bits; 0: none. */
static void fill(oly_dtype dtype, void *out, int64_t n, int64_t some)
{
    for (int64_t i = 0; i < n; i++) {
        bool odd = some > 0 && draw(some) == 0;
        double x = odd ? special() : (double)draw(2001) / 1000 - 1;
        int32_t whole = (int32_t)(odd ? draw(UINT32_MAX) - INT32_MAX : draw(4) == 0 ? INT16_MIN : draw(65536) - 32768);
        if (dtype == OLY_FLOAT32)
            ((float *)out)[i] = (float)x;
        else if (dtype == OLY_FLOAT64)
            ((double *)out)[i] = x;
        else if (dtype == OLY_INT32)
            ((int32_t *)out)[i] = whole;
        else
            ((uint16_t *)out)[i] = (uint16_t)(odd ? 0x7f80 + draw(2) : (0x3f00 + draw(256)) | draw(2) << 15);
    }
}

static oly_gemm_task drawn(oly_dtype dtype)
{
    oly_gemm_task t = {.dtype = dtype, .batch = 1 + draw(3), .m = 1 + draw(70), .n = 1 + draw(20), .k = 1 + draw(20)};
    if (dtype == OLY_INT32 || dtype == OLY_BFLOAT16) {
        t.n = 1 + draw(300);
        t.k = draw(150);
    } else if (draw(2)) {
        t.m = 1 + draw(10), t.n = 1 + draw(100);
    }
    if (draw(8) == 0)
        t.k = 0;
    if ((dtype == OLY_FLOAT32 || dtype == OLY_FLOAT64) && draw(2)) { /* with few vectors */
        t.m = 1 + draw(70), t.n = 1 + draw(5), t.k = 1 + draw(dtype == OLY_FLOAT64 ? 63 : 127);
        if (draw(2)) {
            int64_t few = t.n;
            t.n = t.m, t.m = few;
        }
    }
    bool a_turned = draw(2), b_turned = draw(2);
    int64_t gap = draw(3);
    lay_out_operands(&t, a_turned, b_turned, gap);
    t.a_batch = draw(2) ? (t.m + gap) * (t.k + gap) : 0;
    t.b_batch = draw(2) ? (t.n + gap) * (t.k + gap) : 0;
    t.c_row = t.n + draw(4);
    t.c_batch = t.m * t.c_row;
    return t;
}

static void compute(const char *isa, const oly_gemm_task *t, void *c)
{
    assert_int_equal(oly_kernels_choose(isa), OLY_OK);
    memset(c, 0x55, sizeof memory_c);
    int chunks = oly_gemm_chunks(t);
    for (int k = 0; k < chunks; k++)
        oly_gemm_run(t, memory_a, memory_b, c, k, chunks);
}

/* From left to right, each term fused and rounded once; sums of a single product keep the sign of zero. */
static void plain_loops(const oly_gemm_task *t, int64_t a, int64_t b, void *c, int64_t at)
{
    double sum = t->k == 1 ? -0.0 : 0;
    uint32_t whole = 0;
    for (int64_t l = 0; l < t->k; l++, a += t->a_column, b += t->b_row)
        switch (t->dtype) {
        case OLY_FLOAT32: sum = fmaf(((float *)memory_a)[a], ((float *)memory_b)[b], (float)sum); break;
        case OLY_FLOAT64: sum = fma(memory_a[a], memory_b[b], sum); break;
        case OLY_INT32: whole += ((uint32_t *)memory_a)[a] * ((uint32_t *)memory_b)[b]; break;
        default:
            sum = fmaf(oly_float_of_bfloat(((uint16_t *)memory_a)[a]), oly_float_of_bfloat(((uint16_t *)memory_b)[b]),
                       (float)sum);
        }
    switch (t->dtype) {
    case OLY_FLOAT32: ((float *)c)[at] = (float)sum; break;
    case OLY_FLOAT64: ((double *)c)[at] = sum; break;
    case OLY_INT32: ((uint32_t *)c)[at] = whole; break;
    default: ((uint16_t *)c)[at] = oly_bfloat_of_float((float)sum);
    }
}

/* Are they the same bits, or both NaN? */
static bool is_same(oly_dtype dtype, const void *x, const void *y, int64_t at)
{
    switch (dtype) {
    case OLY_FLOAT32: {
        float a = ((const float *)x)[at], b = ((const float *)y)[at];
        return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
    }
    case OLY_FLOAT64: {
        double a = ((const double *)x)[at], b = ((const double *)y)[at];
        return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
    }
    case OLY_INT32: return ((const int32_t *)x)[at] == ((const int32_t *)y)[at];
    default: {
        float a = oly_float_of_bfloat(((const uint16_t *)x)[at]), b = oly_float_of_bfloat(((const uint16_t *)y)[at]);
        return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
    }
    }
}

static void check_loops(const oly_gemm_task *t, const char *isa, const void *got)
{
    bool dots = ((t->m == 1 && t->b_row == 1) || (t->n < 4 && t->a_column == 1)) &&
                t->k >= (t->dtype == OLY_FLOAT64 ? 64 : 128); /* in lanes */
    memset(memory_c, 0x55, sizeof memory_c);
    for (int64_t batch = 0; batch < t->batch; batch++)
        for (int64_t i = 0; i < t->m; i++)
            for (int64_t j = 0; j < t->n; j++)
                plain_loops(t, batch * t->a_batch + i * t->a_row, batch * t->b_batch + j * t->b_column, memory_c,
                            batch * t->c_batch + i * t->c_row + j);
    for (int64_t at = 0; at < t->batch * t->c_batch && !(dots && t->dtype >= OLY_FLOAT32); at++)
        if (!is_same(t->dtype, got, memory_c, at))
            fail_msg("type %d, %d x %d x %d, strides %d %d, %d %d: element %d differs with %s", (int)t->dtype,
                     (int)t->m, (int)t->n, (int)t->k, (int)t->a_row, (int)t->a_column, (int)t->b_row, (int)t->b_column,
                     (int)at, isa);
}

/* Instruction sets with products in registers, as far as this processor has them: how many. */
static int with_tiles(const char *isas[2])
{
    static const char *const all[] = {"avx2", "avx512"};
    int n = 0;
    for (int k = 0; k < 2; k++)
        if (oly_kernels_choose(all[k]) == OLY_OK)
            isas[n++] = all[k];
        else
            oly_drop_message();
    if (n == 0) {
        print_message("skipped: this processor has neither AVX2 nor AVX-512\n");
        skip();
    }
    return n;
}

static void products_have_the_bits_of_plain_loops(void **state)
{
    static const oly_dtype dtypes[] = {OLY_FLOAT32, OLY_FLOAT64, OLY_INT32, OLY_BFLOAT16};
    const char *isas[2];
    const int n_isas = with_tiles(isas);
    (void)state;
    for (int k = 0; k < PRODUCTS; k++) {
        oly_dtype dtype = dtypes[k % 4];
        oly_gemm_task t = drawn(dtype);
        int64_t some = draw(3) ? 0 : 1 + draw(3000);
        if (dtype >= OLY_FLOAT32 && t.m * t.n * t.k >= 32 * 32 * 32)
            continue; /* OpenBLAS */
        fill(dtype, memory_a, 3 * (t.m + 2) * (t.k + 2), some);
        fill(dtype, memory_b, 3 * (t.n + 2) * (t.k + 2), some);
        for (int i = 0; i < n_isas; i++) {
            compute(isas[i], &t, i == 0 ? first : memory_d);
            check_loops(&t, isas[i], i == 0 ? first : memory_d);
            if (i > 0 && memcmp(first, memory_d, sizeof memory_d) != 0) /* NaN, too, and dot products */
                fail_msg("product %d of type %d, %d x %d x %d, differs with %s", k, (int)dtype, (int)t.m, (int)t.n,
                         (int)t.k, isas[i]);
        }
    }
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
}

/* -- large products that are narrow in one direction ------------------------------------------------------------------------ */

enum { LARGE = 1 << 20, NARROW = 128, FEW = 8 };
static double large_a[LARGE], large_b[LARGE], large_c[LARGE];

static double element(oly_dtype dtype, const void *of, int64_t at)
{
    return dtype == OLY_FLOAT32 ? ((const float *)of)[at] : ((const double *)of)[at];
}

/* From left to right over 128 terms (gemm_blocks.h), then over these sums, each rounded once. */
static double by_hand(const oly_gemm_task *t, int64_t i, int64_t j)
{
    double sum = 0, all = 0;
    for (int64_t l = 0; l < t->k; l++) {
        if (l % 128 == 0 && l > 0) {
            all = t->dtype == OLY_FLOAT32 ? (double)((float)all + (float)sum) : all + sum;
            sum = 0;
        }
        double x = element(t->dtype, large_a, i * t->a_row + l * t->a_column);
        double y = element(t->dtype, large_b, l * t->b_row + j * t->b_column);
        sum = t->dtype == OLY_FLOAT32 ? fmaf((float)x, (float)y, (float)sum) : fma(x, y, sum);
    }
    return t->dtype == OLY_FLOAT32 ? (double)((float)all + (float)sum) : all + sum;
}

static int64_t near_blocks(void)
{
    static const int64_t at[] = {4, 8, 16, 24, 32, 48, 64, 96, 128};
    int64_t n = at[draw(sizeof at / sizeof at[0])] + draw(3) - 1;
    return n < 4 ? 4 : n > NARROW ? NARROW : n;
}

/* Integers whose sums are exact in any order, for products with few vectors; the others have any numbers. */
static void fill_large(oly_dtype dtype, void *to, int64_t n, bool whole)
{
    for (int64_t i = 0; i < n; i++) {
        double x = whole ? (double)(draw(33) - 16) : (double)draw(2001) / 1000 - 1;
        if (dtype == OLY_FLOAT32)
            ((float *)to)[i] = (float)x;
        else
            ((double *)to)[i] = x;
    }
}

static oly_gemm_task drawn_narrow(oly_dtype dtype)
{
    int64_t size[3] = {near_blocks(), 1 + draw(300), 1 + draw(300)};
    int narrow = (int)draw(3);
    oly_gemm_task t = {
        .dtype = dtype, .batch = 1, .m = size[narrow], .n = size[(narrow + 1) % 3], .k = size[(narrow + 2) % 3]};
    if (draw(3) == 0) { /* few vectors */
        t.m = 4 + draw(300), t.n = 4 + draw(5), t.k = 100 + draw(1600);
        if (draw(2)) {
            int64_t m = t.m;
            t.m = t.n, t.n = m;
        }
    }
    bool a_turned = draw(2), b_turned = draw(2);
    int64_t gap = draw(3);
    lay_out_operands(&t, a_turned, b_turned, gap);
    t.c_row = t.n + gap;
    return t;
}

static bool has_few_vectors(const oly_gemm_task *t)
{
    return (t->n <= FEW && t->a_column == 1) || (t->m <= FEW && t->b_row == 1);
}

static void check_large(const oly_gemm_task *t)
{
    bool few = has_few_vectors(t);
    fill_large(t->dtype, large_a, (t->m + 2) * (t->k + 2), few);
    fill_large(t->dtype, large_b, (t->n + 2) * (t->k + 2), few);
    memset(large_c, 0x55, sizeof large_c);
    int chunks = oly_gemm_chunks(t);
    for (int k = 0; k < chunks; k++)
        oly_gemm_run(t, large_a, large_b, large_c, k, chunks);
    for (int64_t i = 0; i < t->m; i++)
        for (int64_t j = 0; j < t->n; j++)
            if (element(t->dtype, large_c, i * t->c_row + j) != by_hand(t, i, j))
                fail_msg("%d x %d x %d, strides %d %d, %d %d: element [%d, %d] is %.9g instead of %.9g", (int)t->m,
                         (int)t->n, (int)t->k, (int)t->a_row, (int)t->a_column, (int)t->b_row, (int)t->b_column, (int)i,
                         (int)j, element(t->dtype, large_c, i * t->c_row + j), by_hand(t, i, j));
}

static void narrow_products_are_summed_in_their_order(void **state)
{
    const char *isas[2];
    const int n_isas = with_tiles(isas);
    (void)state;
    int n = 0;
    for (int k = 0; k < PRODUCTS; k++) {
        oly_gemm_task t = drawn_narrow(k % 2 ? OLY_FLOAT32 : OLY_FLOAT64);
        if (t.m < 4 || t.n < 4 || t.k < 2 || t.m * t.n * t.k < 32 * 32 * 32)
            continue;
        for (int i = 0; i < n_isas; i++) {
            assert_int_equal(oly_kernels_choose(isas[i]), OLY_OK);
            check_large(&t);
        }
        n++;
    }
    assert_true(n > PRODUCTS / 4);
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_have_the_bits_of_plain_loops),
                                       cmocka_unit_test(narrow_products_are_summed_in_their_order)};
    return CHECK_MAIN(tests);
}
