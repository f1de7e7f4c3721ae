/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  CUDA kernels of stencil passes give the CPU's bits: random taps, fields, update regions and steps, in one to three dimensions. */
#include "kernel_launcher.h"

static oly_stencil draw_stencil(int rank)
{
    int reach = random_below(4) ? 1 : 1 + random_below(4);
    oly_stencil s = {.dtype = random_below(2) ? OLY_FLOAT32 : OLY_FLOAT64, .rank = rank, .n_taps = 1 + random_below(9)};
    for (int t = 0; t < s.n_taps; t++) {
        s.coefficient[t] = (double)(float)(random_below(200) - 100) / 256;
        for (int d = 0; d < rank; d++) {
            s.offset[t][d] = random_below(2) ? 0 : random_below(2 * reach + 1) - reach;
            int size = abs(s.offset[t][d]);
            s.radius[d] = size > s.radius[d] ? size : s.radius[d];
        }
    }
    return s;
}

/* A device's block of a field: it may begin at the field's edge or at a neighbour. */
static oly_stencil_field draw_field(const oly_stencil *s, int steps)
{
    static const int longest[] = {0, 4000, 150, 40};
    oly_stencil_field f = {.extent = {0}};
    for (int d = 0; d < s->rank; d++) {
        int64_t margin = (int64_t)steps * s->radius[d], own = 1 + random_below(longest[s->rank]);
        int64_t below = random_below(2) ? margin : 0, above = random_below(2) ? margin : 0;
        f.extent[d] = below + own + above;
        f.write_lo[d] = below;
        f.write_hi[d] = below + own;
        /* without a neighbour the edge is fixed */
        f.fixed_lo[d] = below ? -random_below(3) : s->radius[d] + random_below(2);
        f.fixed_hi[d] = above ? f.extent[d] + random_below(3) : f.extent[d] - s->radius[d] - random_below(2);
        if (below && margin)
            f.fixed_lo[d] = random_below(3) ? -(int64_t)100000 : s->radius[d];
        if (above && margin)
            f.fixed_hi[d] = random_below(3) ? 100000 : f.extent[d] - s->radius[d];
        f.destination_offset[d] = random_below(3) - (random_below(2) ? below : 0);
        if (f.destination_offset[d] + f.write_lo[d] < 0)
            f.destination_offset[d] = 0;
    }
    int64_t stride = 1, to = 1;
    for (int d = s->rank - 1; d >= 0; d--) {
        f.stride[d] = stride;
        f.destination_stride[d] = to;
        stride *= f.extent[d];
        to *= f.extent[d] + 4;
    }
    return f;
}

static void one(int round)
{
    oly_stencil s = draw_stencil(1 + random_below(3));
    int steps = 1 + random_below(s.rank == 1 ? 80 : s.rank == 2 ? 20 : 5);
    oly_stencil_field f = draw_field(&s, steps);
    int64_t n = 1, to = 1;
    for (int d = 0; d < s.rank; d++) {
        n *= f.extent[d];
        to *= f.extent[d] + 4;
    }
    size_t bytes = oly_dtype_size(s.dtype);
    char *source = calloc((size_t)n + 1, bytes), *cpu = calloc((size_t)to + 1, bytes),
         *gpu = calloc((size_t)to + 1, bytes);
    for (int64_t i = 0; i < n; i++) {
        double x = (double)(int64_t)random_word() * 0x1p-63;
        float y = (float)x;
        memcpy(source + (size_t)i * bytes, bytes == 4 ? (void *)&y : (void *)&x, bytes);
    }
    int chunks = oly_stencil_chunks(&s, &f, steps);
    void *scratch = malloc(oly_stencil_scratch(&s, &f, steps) + 64);
    for (int c = 0; c < chunks; c++)
        oly_stencil_run(&s, &f, steps, source, cpu, scratch, c, chunks);
    assert_true(oly_cuda_has_stencil(&s));
    assert_int_equal(oly_cuda_stencil(&launcher, &s, &f, steps, source, gpu), OLY_OK);
    int64_t at = first_difference(s.dtype, to, cpu, gpu);
    if (at >= 0)
        fail_msg("stencil %d of rank %d, %d taps, %d steps differs at %d of %d", round, s.rank, s.n_taps, steps,
                 (int)at, (int)to);
    free(source), free(cpu), free(gpu), free(scratch);
    free_kept();
}

static void random_stencils(void **state)
{
    (void)state;
    need_kernels();
    int rounds = getenv("STENCILS") ? atoi(getenv("STENCILS")) : 150;
    for (int round = 0; round < rounds; round++)
        one(round);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_stencils)};
    return CHECK_MAIN(tests);
}
