/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  CUDA kernels of stencil passes give the CPU's bits: random taps, fields, update regions and steps, in one to three dimensions. */
#include "collected_kernels.h"

static oly_stencil draw_stencil(int rank)
{
    int reach = random_below(4) ? 1 : 1 + random_below(4);
    bool star = random_below(2); /* taps along one dimension each */
    oly_stencil s = {.dtype = random_below(2) ? OLY_FLOAT32 : OLY_FLOAT64, .rank = rank, .n_taps = 1 + random_below(9)};
    for (int t = 0; t < s.n_taps; t++) {
        s.coefficient[t] = (double)(float)(random_below(200) - 100) / 256;
        int along = random_below(rank);
        for (int d = 0; d < rank; d++) {
            s.offset[t][d] = (star ? d != along : random_below(2)) ? 0 : random_below(2 * reach + 1) - reach;
            int size = abs(s.offset[t][d]);
            s.radius[d] = size > s.radius[d] ? size : s.radius[d];
        }
    }
    return s;
}

/* A device's block of a field: it may begin at the field's edge or at a neighbour. large: columns and rows of several tiles. */
static oly_stencil_field draw_field(const oly_stencil *s, int steps, bool large)
{
    static const int longest[] = {0, 4000, 150, 40}, columns[] = {0, 8000, 600, 300}, rows[] = {0, 0, 90, 30};
    oly_stencil_field f = {.extent = {0}};
    for (int d = 0; d < s->rank; d++) {
        int most = !large ? longest[s->rank] : d == s->rank - 1 ? columns[s->rank] : d ? 120 : rows[s->rank];
        int64_t margin = (int64_t)steps * s->radius[d], own = 1 + random_below(most) + (large ? most / 2 : 0);
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

typedef struct drawn_pass {
    oly_stencil stencil;
    oly_stencil_field field;
    int steps;
    int64_t results; /* elements of the destination */
    char *source, *cpu, *gpu;
} drawn_pass;

static drawn_pass draw_pass(int most_rank, bool large)
{
    drawn_pass p = {.stencil = draw_stencil(1 + random_below(most_rank)), .results = 1};
    const oly_stencil *s = &p.stencil;
    p.steps = 1 + random_below(s->rank == 1 ? 80 : s->rank == 2 ? 20 : 5);
    p.field = draw_field(s, p.steps, large);
    int64_t n = 1;
    for (int d = 0; d < s->rank; d++) {
        n *= p.field.extent[d];
        p.results *= p.field.extent[d] + 4;
    }
    size_t bytes = oly_dtype_size(s->dtype);
    p.source = calloc((size_t)n + 1, bytes);
    p.cpu = calloc((size_t)p.results + 1, bytes);
    p.gpu = calloc((size_t)p.results + 1, bytes);
    for (int64_t i = 0; i < n; i++) {
        double x = (double)(int64_t)random_word() * 0x1p-63;
        float y = (float)x;
        memcpy(p.source + (size_t)i * bytes, bytes == 4 ? (void *)&y : (void *)&x, bytes);
    }
    int chunks = oly_stencil_chunks(s, &p.field, p.steps);
    void *scratch = malloc(oly_stencil_scratch(s, &p.field, p.steps) + 64);
    for (int c = 0; c < chunks; c++)
        oly_stencil_run(s, &p.field, p.steps, p.source, p.cpu, scratch, c, chunks);
    free(scratch);
    return p;
}

static void start_pass(const oly_cuda_launcher *l, const drawn_pass *p)
{
    assert_true(oly_cuda_has_stencil(&p->stencil));
    assert_int_equal(oly_cuda_stencil(l, &p->stencil, &p->field, p->steps, p->source, p->gpu), OLY_OK);
}

static void end_pass(const drawn_pass *p, int round)
{
    int64_t at = first_difference(p->stencil.dtype, p->results, p->cpu, p->gpu);
    if (at >= 0)
        fail_msg("stencil %d of rank %d, %d taps, %d steps differs at %d of %d", round, p->stencil.rank,
                 p->stencil.n_taps, p->steps, (int)at, (int)p->results);
    free(p->source), free(p->cpu), free(p->gpu);
}

/* As before a kernel has been compiled. */
static oly_status refuse(void *context, const oly_cuda_generated *g, const oly_cuda_launch *launch, bool *launched)
{
    (void)context, (void)g, (void)launch;
    *launched = false;
    return OLY_OK;
}
static const oly_cuda_launcher refusing = {
    .processors = 2, .launch = run_launch, .constant = keep_constant, .scratch = keep, .generated = refuse};

static void one(int round)
{
    drawn_pass p = draw_pass(3, false);
    start_pass(round % 2 ? &refusing : &launcher, &p);
    end_pass(&p, round);
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

/* By the kernels that are made for them, where their taps fit. */
static void generated_stencils(void **state)
{
    (void)state;
    need_kernels();
    int rounds = getenv("STENCILS") ? atoi(getenv("STENCILS")) : 16;
    drawn_pass *p = calloc((size_t)rounds, sizeof *p);
    assert_non_null(p);
    collected_begin();
    for (int k = 0; k < rounds; k++) {
        p[k] = draw_pass(3, k % 2);
        start_pass(&collecting, &p[k]);
    }
    assert_true(collected.n_kernels > rounds / 4);
    collected_run();
    for (int k = 0; k < rounds; k++)
        end_pass(&p[k], k);
    free(p);
    free_kept();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_stencils), cmocka_unit_test(generated_stencils)};
    return CHECK_MAIN(tests);
}
