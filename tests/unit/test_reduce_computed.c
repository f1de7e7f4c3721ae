/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Reductions of operands that are computed while they are reduced: random boxes, types and combiners have the bits of the same reduction of
 * memory, and every element is computed once; results that are asked for a few at a time (oly_reduce_results) have them, too, as have
 * those of rows asked for one by one. */
#include "check.h"
#include "core/error.h"
#include "kernel.h"
#include "planning.h"
#include "reduce_computed.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 19, TRIES = 600 };
static uint64_t seed = 5;
static char in[MOST * 16], memory[MOST * 16], computed[MOST * 16], in_parts[MOST * 16], scratch[2][1 << 22];
static uint8_t times[MOST]; /* that an element was computed */

static int64_t draw(int64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)below);
}

/* Elements of the array `in`, which has the task's strides: row-major. */
static void copy_box(const void *context, const int64_t *low, const int64_t *extent, void *out)
{
    const oly_reduce_task *t = context;
    size_t bytes = oly_dtype_size(t->converts ? t->from : t->dtype);
    int64_t n = 1;
    for (int d = 0; d < t->rank; d++)
        n *= extent[d];
    assert_true(n > 0 && n * (int64_t)bytes <= 1 << 16);
    for (int64_t k = 0; k < n; k++) {
        int64_t at = 0, rest = k;
        for (int d = t->rank - 1; d >= 0; d--) {
            assert_true(low[d] >= 0 && low[d] + extent[d] <= t->extent[d]);
            at += (low[d] + rest % extent[d]) * t->stride[d];
            rest /= extent[d];
        }
        times[at]++;
        memcpy((char *)out + (size_t)k * bytes, in + (size_t)at * bytes, bytes);
    }
}

static void expect_box(const void *context, const int64_t *low, const int64_t *extent)
{
    const oly_reduce_task *t = context;
    for (int d = 0; d < t->rank; d++)
        assert_true(extent[d] > 0 && low[d] >= 0 && low[d] + extent[d] <= t->extent[d]);
}

static int64_t draw_extent(int64_t room)
{
    static const int64_t some[] = {1, 2, 3, 7, 16, 63, 64, 65, 100, 511, 512, 1000, 4096, 5000, 100000, MOST};
    int64_t e = some[draw(sizeof some / sizeof *some)];
    return e < room ? e : room > 1 && draw(3) ? room : 1;
}

static oly_reduce_task draw_task(void)
{
    static const oly_dtype types[] = {OLY_FLOAT32, OLY_FLOAT64, OLY_FLOAT16,   OLY_BFLOAT16,
                                      OLY_INT32,   OLY_INT8,    OLY_COMPLEX64, OLY_COMPLEX128};
    static const oly_combiner combiners[] = {OLY_COMBINE_SUM, OLY_COMBINE_MAX, OLY_COMBINE_MIN, OLY_COMBINE_PROD};
    oly_reduce_task t = {.combiner = combiners[draw(4)], .dtype = types[draw(8)], .rank = (int)draw(5)};
    int64_t room = draw(4) ? MOST / 16 : MOST, stride = 1;
    int order[4] = {0, 1, 2, 3};
    for (int k = 0; k < t.rank; k++) {
        int other = (int)draw(t.rank), kept = order[k];
        order[k] = order[other];
        order[other] = kept;
    }
    for (int k = 0; k < t.rank; k++) {
        t.extent[order[k]] = draw_extent(room);
        room /= t.extent[order[k]];
        t.reduced[order[k]] = draw(2);
    }
    for (int d = t.rank - 1; d >= 0; d--) {
        t.stride[d] = stride;
        stride *= t.extent[d];
    }
    if (t.dtype == OLY_FLOAT32 && draw(3) == 0) {
        t.converts = true;
        t.from = draw(2) ? OLY_FLOAT16 : OLY_INT8;
    }
    return t;
}

static void fill(const oly_reduce_task *t, int64_t n)
{
    oly_dtype type = t->converts ? t->from : t->dtype;
    for (int64_t k = 0; k < n; k++)
        switch (type) {
        case OLY_FLOAT32: ((float *)in)[k] = (float)draw(2000) / 7 - 100; break;
        case OLY_FLOAT64: ((double *)in)[k] = (double)draw(2000) / 7 - 100; break;
        case OLY_FLOAT16: ((uint16_t *)in)[k] = (uint16_t)(0x3000 + draw(0x900)); break;
        case OLY_BFLOAT16: ((uint16_t *)in)[k] = (uint16_t)(0x3f00 + draw(0x100)); break;
        case OLY_INT32: ((int32_t *)in)[k] = (int32_t)draw(100000) - 50000; break;
        case OLY_INT8: ((int8_t *)in)[k] = (int8_t)(draw(200) - 100); break;
        case OLY_COMPLEX64: /* small, so that no product is NaN, whose sign is nobody's concern */
            ((float *)in)[2 * k] = (float)draw(100) / 150, ((float *)in)[2 * k + 1] = (float)draw(9) / 13;
            break;
        default: ((double *)in)[2 * k] = (double)draw(100) / 150, ((double *)in)[2 * k + 1] = (double)draw(9) / 13;
        }
}

static int n_taken;

static void compare(const char *isa, int attempt)
{
    oly_reduce_task t = draw_task();
    int64_t n = 1, kept = 1;
    for (int d = 0; d < t.rank; d++) {
        n *= t.extent[d];
        kept *= t.reduced[d] ? 1 : t.extent[d];
    }
    size_t bytes = (size_t)kept * oly_dtype_size(t.dtype);
    oly_reduce_source source = {copy_box, expect_box, &t};
    if (!oly_reduce_may_compute(&t))
        return;
    n_taken++;
    assert_true(oly_reduce_scratch(&t) <= sizeof scratch[0]);
    fill(&t, n);
    memset(times, 0, (size_t)n);
    int chunks = oly_reduce_chunks(&t);
    for (int c = 0; c < chunks; c++) {
        oly_reduce_run(&t, in, memory, scratch[0], c, chunks);
        oly_reduce_computed(&t, &source, computed, scratch[1], c, chunks);
    }
    if (oly_reduce_scratch(&t)) {
        oly_reduce_finish(&t, memory, scratch[0]);
        oly_reduce_finish(&t, computed, scratch[1]);
    }
    if (!oly_reduce_scratch(&t)) { /* some results at a time, whatever the chunks */
        memset(in_parts, 0xee, bytes);
        for (int64_t first = 0, few; first < kept; first += few) {
            few = 1 + draw(kept);
            few = few < kept - first ? few : kept - first;
            oly_reduce_results(&t, in, in_parts, first, first + few);
        }
        if (memcmp(memory, in_parts, bytes) != 0)
            fail_msg("%s, attempt %d: other bits in parts", isa, attempt);
    }
    bool once = true;
    for (int64_t k = 0; k < n; k++)
        once = once && times[k] == 1;
    if (!once || memcmp(memory, computed, bytes) != 0)
        fail_msg("%s, attempt %d: %s: combiner %d of %s, rank %d, [%lld%c, %lld%c, %lld%c, %lld%c]", isa, attempt,
                 once ? "other bits" : "not each element once", (int)t.combiner, oly_dtype_name(t.dtype), t.rank,
                 (long long)t.extent[0], t.reduced[0] ? 'r' : 'k', (long long)t.extent[1], t.reduced[1] ? 'r' : 'k',
                 (long long)t.extent[2], t.reduced[2] ? 'r' : 'k', (long long)t.extent[3], t.reduced[3] ? 'r' : 'k');
}

static void on_each_isa(void (*compare_one)(const char *isa, int attempt))
{
    static const char *const isas[] = {"base", "avx2", "avx512"};
    for (size_t k = 0; k < sizeof isas / sizeof *isas; k++) {
        if (oly_kernels_choose(isas[k]) != OLY_OK) {
            oly_drop_message();
            continue;
        }
        for (int attempt = 0; attempt < TRIES; attempt++)
            compare_one(isas[k], attempt);
    }
    oly_kernels_choose("");
}

static void computed_operands_have_the_bits_of_memory(void **state)
{
    (void)state;
    on_each_isa(compare);
    assert_true(n_taken > TRIES / 2);
    printf("%d reductions compared\n", n_taken);
}

/* Rows, perhaps apart in memory, of which many are reduced together. */
static void compare_rows(const char *isa, int attempt)
{
    oly_reduce_task t = draw_task();
    int64_t rows = 1 + draw(60), n = 60 + (draw(3) ? draw(300) : draw(5000)), apart = n + draw(2) * draw(20);
    t.rank = 2;
    t.extent[0] = rows, t.extent[1] = n;
    t.stride[0] = apart, t.stride[1] = 1;
    t.reduced[0] = false, t.reduced[1] = true;
    size_t bytes = oly_dtype_size(t.dtype);
    if (oly_reduce_scratch(&t))
        return;
    fill(&t, rows * apart);
    oly_reduce_results(&t, in, memory, 0, rows);
    for (int64_t k = 0; k < rows; k++)
        oly_reduce_results(&t, in, in_parts, k, k + 1);
    if (memcmp(memory, in_parts, (size_t)rows * bytes) != 0)
        fail_msg("%s, attempt %d: combiner %d of %s, %lld rows of %lld: other bits one by one", isa, attempt,
                 (int)t.combiner, oly_dtype_name(t.dtype), (long long)rows, (long long)n);
}

static void rows_have_the_same_bits_one_by_one(void **state)
{
    (void)state;
    on_each_isa(compare_rows);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(computed_operands_have_the_bits_of_memory),
                                              cmocka_unit_test(rows_have_the_same_bits_one_by_one)};
    return CHECK_MAIN(tests);
}
