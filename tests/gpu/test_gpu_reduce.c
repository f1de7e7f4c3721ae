/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  CUDA kernels of reductions give the CPU's bits: every type and combiner, any boxes, parts, converted operands. */
#include "kernel_launcher.h"
#include "table.h"

static void one(const oly_reduce_task *t, int64_t span, int round)
{
    oly_dtype from = t->converts ? t->from : t->dtype;
    oly_reduce_shape s = oly_reduce_divide(t);
    void *in = random_array(from, span), *cpu = random_array(t->dtype, s.kept), *gpu = random_array(t->dtype, s.kept);
    void *scratch = malloc(oly_reduce_scratch(t) + 64);
    for (int c = 0, n = oly_reduce_chunks(t); c < n; c++)
        oly_reduce_run(t, in, cpu, scratch, c, n);
    oly_reduce_finish(t, cpu, scratch);
    assert_int_equal(oly_cuda_reduce(&launcher, t, in, gpu), OLY_OK);
    int64_t k = first_difference(t->dtype, s.kept, cpu, gpu);
    if (k >= 0)
        fail_msg("reduction %d by %d of %s (from %s): kept %d, outer %d, run %d, parts %d: differs at %d", round,
                 t->combiner, oly_dtype_name(t->dtype), oly_dtype_name(from), (int)s.kept, (int)s.outer, (int)s.run,
                 s.parts, (int)k);
    free(in), free(cpu), free(gpu), free(scratch);
    free_kept();
}

static oly_reduce_task draw(int rank, const int64_t *extent, unsigned reduced, int64_t *span)
{
    oly_reduce_task t = {.dtype = (oly_dtype)random_below(OLY_N_DTYPES), .rank = rank};
    if (random_below(2))
        t.dtype = (const oly_dtype[]){OLY_FLOAT32, OLY_FLOAT64, OLY_BFLOAT16, OLY_INT32}[random_below(4)];
    t.combiner = (oly_combiner)random_below(t.dtype < OLY_FLOAT8_E4M3FN ? OLY_N_COMBINERS : 4);
    t.converts = random_below(4) == 0 && t.dtype < OLY_COMPLEX64;
    t.from = t.converts ? (oly_dtype)random_below(OLY_COMPLEX64) : t.dtype;
    *span = 1;
    int order[4] = {0, 1, 2, 3};
    for (int i = 0; i < rank && random_below(3) == 0; i++) {
        int j = random_below(rank), x = order[i];
        order[i] = order[j], order[j] = x;
    }
    for (int i = rank - 1; i >= 0; i--) {
        int d = order[i];
        t.extent[d] = extent[d];
        t.reduced[d] = reduced >> d & 1;
        t.stride[d] = *span;
        *span *= extent[d] + (random_below(5) == 0);
    }
    return t;
}

static void small_boxes(void **state)
{
    (void)state;
    need_kernels();
    for (int round = 0; round < 400; round++) {
        int64_t extent[4], span;
        int rank = random_below(5);
        for (int d = 0; d < rank; d++)
            extent[d] = random_below(15) ? 1 + random_below(random_below(3) ? 7 : 90) : 0;
        while (rank == 4 && extent[0] * extent[1] * extent[2] * extent[3] > 200000)
            rank--;
        oly_reduce_task t = draw(rank, extent, (unsigned)random_below(16), &span);
        one(&t, span, round);
    }
}

/* Of parts, pieces and blocks. */
static void long_boxes(void **state)
{
    (void)state;
    need_kernels();
    static const struct {
        int rank;
        int64_t extent[4];
        unsigned reduced;
    } boxes[] = {{1, {200000}, 1},      {2, {3, 50000}, 2},      {2, {3, 50000}, 3},    {2, {5000, 30}, 1},
                 {2, {70000, 2}, 1},    {3, {9, 5, 5000}, 5},    {3, {700, 3, 100}, 5}, {2, {40000, 1}, 1},
                 {3, {2, 9000, 8}, 3},  {2, {131, 1000}, 1},     {2, {2000, 70}, 2},    {2, {64, 4097}, 2},
                 {3, {65, 2, 1000}, 5}, {1, {4096 * 40 + 63}, 1}};
    for (size_t k = 0; k < sizeof boxes / sizeof *boxes; k++)
        for (int round = 0; round < 3; round++) {
            int64_t span;
            oly_reduce_task t = draw(boxes[k].rank, boxes[k].extent, boxes[k].reduced, &span);
            one(&t, span, (int)k);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(small_boxes), cmocka_unit_test(long_boxes)};
    return CHECK_MAIN(tests);
}
