/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1.  The stencil kernels: the bits of the plain loop, whatever the tiles, step counts and taps. */
#include "check.h"
#include "stencil_table.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static uint64_t state = 88172645463325252u;

/* Uniform in [lo, hi]. */
static int64_t random_between(int64_t lo, int64_t hi)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return lo + (int64_t)(state % (uint64_t)(hi - lo + 1));
}

static double random_value(void)
{
    return (double)random_between(-1000000, 1000000) / 1e6;
}

/* -- the plain loop ----------------------------------------------------------------------------------------------- */

static bool has_fused; /* of the instruction set under test */

static double multiply_add(double a, double b, double c, oly_dtype dtype)
{
    if (has_fused) /* without the product: one of the smallest numbers takes a hundred cycles */
        return dtype == OLY_FLOAT64 ? fma(a, b, c) : fmaf((float)a, (float)b, (float)c);
    if (dtype == OLY_FLOAT64) {
        volatile double product = a * b;
        return product + c;
    }
    volatile float product = (float)a * (float)b;
    return product + (float)c;
}

static double get(const void *data, oly_dtype dtype, int64_t i)
{
    return dtype == OLY_FLOAT64 ? ((const double *)data)[i] : ((const float *)data)[i];
}

static void set(void *data, oly_dtype dtype, int64_t i, double value)
{
    if (dtype == OLY_FLOAT64)
        ((double *)data)[i] = value;
    else
        ((float *)data)[i] = (float)value;
}

/* The new value of a point; a point whose taps leave the field keeps its value (it is too far away to matter). */
static double plain_point(const oly_stencil *s, const oly_stencil_field *f, const void *from, const int64_t x[3])
{
    double sum = 0;
    int64_t here = 0;
    bool inside = true;
    for (int d = 0; d < s->rank; d++) {
        here += x[d] * f->stride[d];
        inside = inside && x[d] >= f->fixed_lo[d] && x[d] < f->fixed_hi[d];
    }
    for (int t = 0; t < s->n_taps && inside; t++) {
        int64_t at = 0;
        for (int d = 0; d < s->rank; d++) {
            int64_t y = x[d] + s->offset[t][d];
            if (y < 0 || y >= f->extent[d])
                return get(from, s->dtype, here);
            at += y * f->stride[d];
        }
        double c = s->dtype == OLY_FLOAT64 ? s->coefficient[t] : (float)s->coefficient[t], u = get(from, s->dtype, at);
        sum = t == 0 ? (s->dtype == OLY_FLOAT64 ? c * u : (float)c * (float)u) : multiply_add(c, u, sum, s->dtype);
    }
    return inside ? sum : get(from, s->dtype, here);
}

static void plain_step(const oly_stencil *s, const oly_stencil_field *f, const void *from, void *to)
{
    int64_t n[3] = {1, 1, 1};
    for (int d = 0; d < s->rank; d++)
        n[d] = f->extent[d];
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++)
            for (int64_t k = 0; k < n[2]; k++) {
                int64_t x[3] = {i, j, k}, at = 0;
                for (int d = 0; d < s->rank; d++)
                    at += x[d] * f->stride[d];
                set(to, s->dtype, at, plain_point(s, f, from, x));
            }
}

/* -- random problems ---------------------------------------------------------------------------------------------- */

typedef struct problem {
    oly_stencil stencil;
    oly_stencil_field field;
    int steps;
    int64_t elements, destination_elements;
} problem;

static void random_taps(oly_stencil *s, int rank, oly_dtype dtype, int n_taps, int radius)
{
    *s = (oly_stencil){.dtype = dtype, .rank = rank, .n_taps = n_taps};
    for (int t = 0; t < n_taps; t++) {
        s->coefficient[t] = random_value();
        for (int d = 0; d < rank; d++) {
            s->offset[t][d] = (int)random_between(-radius, radius);
            s->radius[d] = abs(s->offset[t][d]) > s->radius[d] ? abs(s->offset[t][d]) : s->radius[d];
        }
    }
}

/* The cross: the middle and its neighbours along each dimension, in random order. */
static void cross_taps(oly_stencil *s, int rank, oly_dtype dtype, double middle, double side)
{
    *s = (oly_stencil){.dtype = dtype, .rank = rank, .n_taps = 2 * rank + 1};
    for (int t = 1; t < s->n_taps; t++)
        s->offset[t][(t - 1) / 2] = t % 2 ? -1 : 1;
    for (int t = 0; t < s->n_taps; t++)
        s->coefficient[t] = t == 0 ? middle : side;
    for (int t = s->n_taps - 1; t > 0; t--) {
        int other = (int)random_between(0, t);
        for (int d = 0; d < 3; d++) {
            int offset = s->offset[t][d];
            s->offset[t][d] = s->offset[other][d];
            s->offset[other][d] = offset;
        }
        double c = s->coefficient[t];
        s->coefficient[t] = s->coefficient[other];
        s->coefficient[other] = c;
    }
    for (int d = 0; d < rank; d++)
        s->radius[d] = 1;
}

/* A field around a write box of `extent`, with margins as wide as required, and a random fixed box: around the field,
 * ending inside the write box, beside it, or empty. */
static void random_field(problem *p, const int64_t *extent)
{
    oly_stencil_field *f = &p->field;
    const oly_stencil *s = &p->stencil;
    *f = (oly_stencil_field){.extent = {1, 1, 1}};
    p->elements = p->destination_elements = 1;
    for (int d = s->rank - 1; d >= 0; d--) {
        int64_t margin = (int64_t)p->steps * s->radius[d], radius = s->radius[d], reach = margin + 5;
        int64_t lo = random_between(0, 3) ? random_between(-reach, 3) : -1000;
        int64_t hi = extent[d] + (random_between(0, 3) ? random_between(-3, reach) : 1000);
        int64_t first = -margin > lo - radius ? -margin : lo - radius, end = extent[d] + margin;
        end = end < hi + radius ? end : hi + radius;
        first = (first < 0 ? first : 0) - random_between(0, 2);
        end = (end > extent[d] ? end : extent[d]) + random_between(0, 2);
        if (lo >= hi) {
            first = first < lo - radius ? first : lo - radius;
            end = end > lo + radius ? end : lo + radius;
        }
        f->write_lo[d] = -first;
        f->write_hi[d] = extent[d] - first;
        f->fixed_lo[d] = lo - first;
        f->fixed_hi[d] = hi - first;
        f->extent[d] = end - first;
        f->stride[d] = p->elements;
        p->elements *= f->extent[d] + (d == s->rank - 1 ? random_between(0, 3) : 0);
        int64_t room = random_between(0, 2);
        f->destination_stride[d] = p->destination_elements;
        f->destination_offset[d] = room - f->write_lo[d];
        p->destination_elements *= extent[d] + room + random_between(0, 2);
    }
}

static void shuffle(int *order, int n)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = (int)random_between(0, i), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

/* Position of a point of the field in the destination. */
static int64_t destination_index(const problem *p, const int64_t x[3])
{
    int64_t at = 0;
    for (int d = 0; d < p->stencil.rank; d++)
        at += (x[d] + p->field.destination_offset[d]) * p->field.destination_stride[d];
    return at;
}

/* Writes the expected contents of the destination to `expected`, which starts as a copy of it. */
static void expect(const problem *p, const void *values, void *expected)
{
    const oly_stencil_field *f = &p->field;
    int64_t lo[3] = {0, 0, 0}, hi[3] = {1, 1, 1};
    size_t bytes = oly_dtype_size(p->stencil.dtype);
    for (int d = 0; d < p->stencil.rank; d++) {
        lo[d] = f->write_lo[d];
        hi[d] = f->write_hi[d];
    }
    for (int64_t i = lo[0]; i < hi[0]; i++)
        for (int64_t j = lo[1]; j < hi[1]; j++)
            for (int64_t k = lo[2]; k < hi[2]; k++) {
                int64_t x[3] = {i, j, k}, at = 0;
                for (int d = 0; d < p->stencil.rank; d++)
                    at += x[d] * f->stride[d];
                memcpy((char *)expected + (size_t)destination_index(p, x) * bytes,
                       (const char *)values + (size_t)at * bytes, bytes);
            }
}

/* Computes all chunks in random order and compares the whole destination, its surroundings included. scale: of the
 * values. */
static void solve(const problem *p, double scale)
{
    const oly_stencil *s = &p->stencil;
    size_t bytes = oly_dtype_size(s->dtype), n = (size_t)p->elements, m = (size_t)p->destination_elements;
    void *source = malloc(n * bytes), *a = malloc(n * bytes), *b = malloc(n * bytes);
    void *destination = malloc(m * bytes + 1), *expected = malloc(m * bytes + 1);
    for (size_t i = 0; i < n; i++)
        set(source, s->dtype, (int64_t)i, random_value() * scale);
    for (size_t i = 0; i < m; i++)
        set(destination, s->dtype, (int64_t)i, 77);
    memcpy(expected, destination, m * bytes);
    memcpy(a, source, n * bytes);
    memcpy(b, source, n * bytes);
    for (int step = 0; step < p->steps; step++) {
        plain_step(s, &p->field, a, b);
        void *swap = a;
        a = b;
        b = swap;
    }
    expect(p, a, expected);
    int chunks = oly_stencil_chunks(s, &p->field, p->steps), *order = malloc(sizeof(int) * (size_t)(chunks + 1));
    size_t scratch_bytes = oly_stencil_scratch(s, &p->field, p->steps);
    char *scratch = malloc(scratch_bytes + 16);
    memset(scratch, 0xff, scratch_bytes + 16); /* NaN: any use of uninitialised memory shows */
    shuffle(order, chunks);
    memcpy(b, source, n * bytes);
    for (int i = 0; i < chunks; i++)
        oly_stencil_run(s, &p->field, p->steps, source, destination, scratch + 4, order[i], chunks);
    assert_memory_equal(b, source, n * bytes);
    assert_memory_equal(destination, expected, m * bytes);
    for (size_t i = 0; i < 12; i++)
        assert_int_equal((unsigned char)scratch[scratch_bytes + 4 + i], 0xff);
    free(source);
    free(a);
    free(b);
    free(destination);
    free(expected);
    free(order);
    free(scratch);
}

/* -- promises ----------------------------------------------------------------------------------------------------- */

static const char *const isas[] = {"base", "avx2", "avx512"};

/* Selects an instruction set; false if this machine does not have it. */
static bool use(const char *isa)
{
    bool has = !strcmp(isa, "base");
#ifdef __x86_64__
    has_fused = strcmp(isa, "base");
    if (!strcmp(isa, "avx2"))
        has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (!strcmp(isa, "avx512"))
        has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vl");
#else
    has_fused = true;
#endif
    if (has)
        oly_stencil_choose(isa);
    return has;
}

static void random_problem_of(problem *p, int rank, const int64_t *extent)
{
    static const double sides[] = {0.25, 0.125, -0.5, 0.3, 2.0};
    static const double middles[] = {0.5, 1.0, -1.0, 0.1, 0.0625};
    oly_dtype dtype = random_between(0, 1) ? OLY_FLOAT32 : OLY_FLOAT64;
    if (random_between(0, 1))
        cross_taps(&p->stencil, rank, dtype, middles[random_between(0, 4)], sides[random_between(0, 4)]);
    else
        random_taps(&p->stencil, rank, dtype, (int)random_between(1, random_between(1, OLY_STENCIL_TAPS)),
                    (int)random_between(0, 4));
    p->steps = (int)random_between(1, random_between(1, rank == 1 ? 40 : rank == 2 ? 20 : 8));
    random_field(p, extent);
}

static void random_problem(problem *p, int rank, int64_t most)
{
    int64_t extent[3];
    for (int d = 0; d < rank; d++)
        extent[d] = random_between(0, random_between(1, most));
    random_problem_of(p, rank, extent);
}

static void random_problems(int rank, int count, int64_t most)
{
    for (size_t i = 0; i < COUNT(isas); i++)
        for (int k = 0; k < count && use(isas[i]); k++) {
            problem p;
            random_problem(&p, rank, most);
            solve(&p, 1);
        }
}

static void one_dimension_gives_the_bits_of_the_plain_loop(void **context)
{
    (void)context;
    random_problems(1, 300, 40);
    random_problems(1, 60, 6000);
}

static void two_dimensions_give_the_bits_of_the_plain_loop(void **context)
{
    (void)context;
    random_problems(2, 100, 20);
    random_problems(2, 20, 150);
}

static void three_dimensions_give_the_bits_of_the_plain_loop(void **context)
{
    (void)context;
    random_problems(3, 60, 12);
    random_problems(3, 3, 60);
}

/* Short rows, which have a kernel of their own, of many slabs, and long rows, which have not. */
static void short_and_long_rows_give_the_bits_of_the_plain_loop(void **context)
{
    static const int64_t most[][3] = {{900, 20, 1}, {900, 90, 1}, {9, 700, 1}, {200, 9, 12}, {90, 30, 20}, {9, 9, 400}};
    (void)context;
    for (size_t i = 0; i < COUNT(isas); i++)
        for (int k = 0; k < 60 && use(isas[i]); k++) {
            const int64_t *m = most[k % 6];
            int64_t extent[3];
            for (int d = 0; d < 3; d++)
                extent[d] = random_between(1 + m[d] / 2, m[d]);
            problem p;
            random_problem_of(&p, k % 6 < 3 ? 2 : 3, extent);
            for (int t = 0; t < p.stencil.n_taps && k % 5 == 0; t++) /* none reaches another slab, or row */
                p.stencil.offset[t][k % 2] = 0;
            solve(&p, 1);
        }
}

/* Large enough for several tiles in each dimension, with forty steps where that is affordable. */
static void many_tiles_give_the_bits_of_the_plain_loop(void **context)
{
    static const struct {
        int rank, steps;
        int64_t extent[3];
    } cases[] = {{1, 40, {70001}}, {1, 7, {100003}}, {2, 16, {301, 1301}}, {2, 3, {1100, 130}}, {3, 5, {30, 100, 331}}};
    (void)context;
    for (size_t i = 0; i < COUNT(isas); i++)
        for (size_t k = 0; k < COUNT(cases) && use(isas[i]); k++)
            for (int dyadic = 0; dyadic < 2; dyadic++) {
                problem p = {.steps = cases[k].steps};
                cross_taps(&p.stencil, cases[k].rank, k % 2 ? OLY_FLOAT64 : OLY_FLOAT32, 0.5, dyadic ? 0.125 : 0.1);
                random_field(&p, cases[k].extent);
                assert_true(oly_stencil_chunks(&p.stencil, &p.field, p.steps) > 1);
                solve(&p, 1);
            }
}

/* Where products of powers of two are no longer exact. */
static void the_smallest_numbers_give_the_bits_of_the_plain_loop(void **context)
{
    static const int64_t extent[3] = {61, 37, 11};
    (void)context;
    for (size_t i = 0; i < COUNT(isas); i++)
        for (int k = 0; k < 30 && use(isas[i]); k++) { /* five of each rank and type: such numbers are slow */
            problem p = {.steps = (int)random_between(1, 12)};
            oly_dtype dtype = k % 2 ? OLY_FLOAT64 : OLY_FLOAT32;
            cross_taps(&p.stencil, 1 + k % 3, dtype, 0.5, 0.25);
            random_field(&p, extent);
            solve(&p, ldexp(1, (int)(dtype == OLY_FLOAT64 ? random_between(-1074, -990) : random_between(-149, -90))));
            solve(&p, dtype == OLY_FLOAT64 ? 1e308 : 3e38);
        }
}

static void an_empty_write_box_has_no_chunks(void **context)
{
    static const int64_t extent[3] = {5, 0, 3};
    (void)context;
    problem p = {.steps = 2};
    cross_taps(&p.stencil, 3, OLY_FLOAT32, 0.5, 0.1);
    random_field(&p, extent);
    assert_int_equal(oly_stencil_chunks(&p.stencil, &p.field, 2), 0);
}

static void steps_fit_the_block(void **context)
{
    (void)context;
    oly_stencil s;
    cross_taps(&s, 1, OLY_FLOAT32, 0.5, 0.25);
    assert_int_equal(oly_stencil_steps(&s, (int64_t[]){13}), 13);
    assert_int_equal(oly_stencil_steps(&s, (int64_t[]){0}), 1);
    assert_true(oly_stencil_steps(&s, (int64_t[]){1 << 24}) >= 64);
    cross_taps(&s, 2, OLY_FLOAT32, 0.5, 0.125);
    assert_int_equal(oly_stencil_steps(&s, (int64_t[]){4096, 3}), 3);
    assert_true(oly_stencil_steps(&s, (int64_t[]){4096, 4096}) >= 8);
}

static void only_what_has_a_kernel_is_supported(void **context)
{
    (void)context;
    oly_stencil s;
    cross_taps(&s, 2, OLY_FLOAT32, 0.5, 0.25);
    assert_true(oly_stencil_supported(&s));
    s.offset[2][1] = 5;
    assert_false(oly_stencil_supported(&s));
    cross_taps(&s, 2, OLY_INT32, 1, 1);
    assert_false(oly_stencil_supported(&s));
    s = (oly_stencil){.dtype = OLY_FLOAT32, .rank = 1};
    assert_false(oly_stencil_supported(&s));
}

/* Rows of several fields: every length, as they end anywhere in a vector; nothing behind the end is written. */
static void check_row(oly_dtype dtype, int n_taps, int64_t n)
{
    enum { MOST = 300 };
    static double memory[OLY_STENCIL_TAPS][MOST], out[MOST], before[MOST];
    double coefficient[OLY_STENCIL_TAPS];
    const void *in[OLY_STENCIL_TAPS];
    size_t bytes = oly_dtype_size(dtype);
    for (int t = 0; t < n_taps; t++) {
        coefficient[t] = random_value();
        in[t] = (char *)memory[t] + (size_t)random_between(0, 3) * bytes;
        for (int64_t i = 0; i < n; i++)
            set((void *)(uintptr_t)in[t], dtype, i, random_value());
    }
    memset(out, 7, sizeof out);
    memcpy(before, out, sizeof out);
    oly_taps_run(dtype, n_taps, coefficient, in, out, n);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int t = 0; t < n_taps; t++) {
            double c = dtype == OLY_FLOAT64 ? coefficient[t] : (float)coefficient[t], u = get(in[t], dtype, i);
            sum = t == 0 ? (dtype == OLY_FLOAT64 ? c * u : (float)c * (float)u) : multiply_add(c, u, sum, dtype);
        }
        assert_true(get(out, dtype, i) == sum);
    }
    assert_memory_equal((char *)out + (size_t)n * bytes, (char *)before + (size_t)n * bytes,
                        sizeof out - (size_t)n * bytes);
}

static void rows_of_several_fields_give_the_bits_of_the_plain_loop(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT(isas); i++)
        for (int k = 0; k < 200 && use(isas[i]); k++)
            check_row(k % 2 ? OLY_FLOAT64 : OLY_FLOAT32, (int)random_between(1, OLY_STENCIL_TAPS), k);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_dimension_gives_the_bits_of_the_plain_loop),
    cmocka_unit_test(two_dimensions_give_the_bits_of_the_plain_loop),
    cmocka_unit_test(three_dimensions_give_the_bits_of_the_plain_loop),
    cmocka_unit_test(short_and_long_rows_give_the_bits_of_the_plain_loop),
    cmocka_unit_test(many_tiles_give_the_bits_of_the_plain_loop),
    cmocka_unit_test(the_smallest_numbers_give_the_bits_of_the_plain_loop),
    cmocka_unit_test(rows_of_several_fields_give_the_bits_of_the_plain_loop),
    cmocka_unit_test(an_empty_write_box_has_no_chunks),
    cmocka_unit_test(steps_fit_the_block),
    cmocka_unit_test(only_what_has_a_kernel_is_supported),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
