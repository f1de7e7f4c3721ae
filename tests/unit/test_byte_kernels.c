/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Products of bytes have the values of plain loops, with each kind of instructions that this processor has: any shape around
 * the borders of blocks, any strides, with and without signs, extreme values and sums that wrap. */
#include "check.h"
#include "check_products.h"
#include "core/error.h"
#include "gemm_bytes.h"
#include <stdlib.h>
#include <string.h>

enum { PRODUCTS = 500, MOST = 1 << 20 };
static uint64_t seed = 1;
/* Rows that begin lines of cache are read in place. */
static uint8_t memory_a[MOST] __attribute__((aligned(64))), memory_b[MOST];
static int32_t memory_c[MOST];

static int64_t draw(int64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)below);
}

static void fill(uint8_t *to, bool extreme)
{
    static const uint8_t ends[] = {0, 1, 0x7f, 0x80, 0xff};
    for (int64_t i = 0; i < MOST; i++)
        to[i] = extreme ? ends[draw(5)] : (uint8_t)draw(256);
}

static int64_t length(int64_t most)
{
    static const int64_t borders[] = {1, 4, 8, 16, 32, 48, 64, 128, 256, 512};
    int64_t n = draw(2) ? borders[draw(10)] + draw(3) - 1 : 1 + draw(most);
    return n < 1 ? 1 : n > most ? most : n;
}

static oly_gemm_task drawn(void)
{
    oly_gemm_task t = {.dtype = OLY_INT32, .batch = 1 + draw(3), .m = length(140), .n = length(140), .k = length(700)};
    if (draw(30) == 0)
        t.k = 0;
    if (draw(20) == 0)
        t.m = length(600), t.n = length(40);
    if (draw(20) == 0)
        t.n = length(600), t.m = length(40);
    bool a_turned = draw(2), b_turned = draw(2);
    int64_t gap = draw(2) ? draw(3) : -t.k & 63;
    lay_out_operands(&t, a_turned, b_turned, gap);
    t.a_batch = draw(2) ? draw(1000) : 0;
    t.b_batch = draw(2) ? draw(1000) : 0;
    t.c_row = t.n + draw(4);
    t.c_batch = t.m * t.c_row;
    return t;
}

static uint32_t widened(uint8_t x, bool has_sign)
{
    return has_sign ? (uint32_t)(int8_t)x : x;
}

static uint32_t by_hand(const oly_gemm_task *t, bool a_signed, bool b_signed, int64_t batch, int64_t i, int64_t j)
{
    uint32_t sum = 0;
    for (int64_t l = 0; l < t->k; l++)
        sum += widened(memory_a[batch * t->a_batch + i * t->a_row + l * t->a_column], a_signed) *
               widened(memory_b[batch * t->b_batch + l * t->b_row + j * t->b_column], b_signed);
    return sum;
}

/* All elements, and that nothing else is written. */
static void check(oly_byte_way way, const oly_gemm_task *t, bool a_signed, bool b_signed)
{
    const int32_t untouched = 0x55555555;
    int64_t end = t->batch * t->c_batch;
    assert_true(end + 16 <= MOST);
    memset(memory_c, 0x55, (size_t)(end + 16) * sizeof *memory_c);
    int chunks = oly_gemm_bytes_chunks(t);
    for (int k = 0; k < chunks; k++)
        oly_gemm_bytes_run(way, t, a_signed, b_signed, memory_a, memory_b, memory_c, k, chunks);
    for (int64_t x = 0; x < end + 16; x++) {
        int64_t row = x / t->c_row, j = x % t->c_row;
        int32_t right =
            x >= end || j >= t->n ? untouched : (int32_t)by_hand(t, a_signed, b_signed, row / t->m, row % t->m, j);
        if (memory_c[x] != right)
            fail_msg("way %d, %s by %s, %d of %d x %d x %d, strides %d %d, %d %d: element %d is %d instead of %d",
                     (int)way, a_signed ? "int8" : "uint8", b_signed ? "int8" : "uint8", (int)t->batch, (int)t->m,
                     (int)t->n, (int)t->k, (int)t->a_row, (int)t->a_column, (int)t->b_row, (int)t->b_column, (int)x,
                     memory_c[x], right);
    }
}

static bool has(oly_byte_way way)
{
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
    return oly_byte_products(way == OLY_BYTES_TILES) == way;
}

static void check_all(oly_byte_way way)
{
    fill(memory_a, false);
    fill(memory_b, false);
    for (int k = 0; k < PRODUCTS; k++) {
        if (k == PRODUCTS / 2)
            fill(memory_a, true), fill(memory_b, true);
        oly_gemm_task t = drawn();
        check(way, &t, k & 1, k & 2);
    }
    /* sums beyond 32 bits */
    memset(memory_a, 0xff, sizeof memory_a);
    memset(memory_b, 0xff, sizeof memory_b);
    oly_gemm_task t = dense_product(OLY_INT32, 3, 3, 140000);
    for (int k = 0; k < 4; k++)
        check(way, &t, k & 1, k & 2);
}

static void four_at_a_time(void **state)
{
    (void)state;
    if (!has(OLY_BYTES_QUADS)) {
        print_message("skipped: this processor has no AVX-512 VNNI\n");
        skip();
    }
    check_all(OLY_BYTES_QUADS);
}

static void in_matrix_registers(void **state)
{
    (void)state;
    if (!has(OLY_BYTES_TILES)) {
        print_message("skipped: this processor has no AMX, or the system does not grant its registers\n");
        skip();
    }
    check_all(OLY_BYTES_TILES);
}

static void other_instruction_sets_have_no_way(void **state)
{
    (void)state;
    assert_int_equal(oly_kernels_choose("base"), OLY_OK);
    assert_int_equal(oly_byte_products(true), OLY_BYTES_NONE);
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(four_at_a_time), cmocka_unit_test(in_matrix_registers),
                                       cmocka_unit_test(other_instruction_sets_have_no_way)};
    return CHECK_MAIN(tests);
}
