/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  CUDA kernels of elementwise groups, conversions and copies give the CPU's bits. */
#include "drawn_program.h"
#include <math.h>

enum { N = 700 };

static void run_program(const oly_tile_program *p, const oly_tile_box *box, const oly_tile_operand *loads,
                        const oly_tile_operand *stores, const oly_tile_operand *on_gpu)
{
    for (int c = 0, n = oly_tile_chunks(p, box); c < n; c++)
        oly_tile_run(p, box, loads, stores, c, n);
    assert_int_equal(oly_cuda_tile(&launcher, p, box, loads, on_gpu), OLY_OK);
}

/* Largest difference of two floating results in units of the last place of the larger one. */
static double distance(oly_dtype d, int64_t n, const void *a, const void *b)
{
    double worst = 0;
    bool single = d == OLY_FLOAT32 || d == OLY_COMPLEX64;
    int parts = d == OLY_COMPLEX64 || d == OLY_COMPLEX128 ? 2 : 1;
    for (int64_t i = 0; i < n; i++) {
        double size = 0, away = 0;
        for (int k = 0; k < parts; k++) {
            double x = single ? ((const float *)a)[i * parts + k] : ((const double *)a)[i * parts + k];
            double y = single ? ((const float *)b)[i * parts + k] : ((const double *)b)[i * parts + k];
            if (!isfinite(x) || !isfinite(y))
                continue;
            size = fmax(size, fmax(fabs(x), fabs(y)));
            away = fmax(away, fabs(x - y));
        }
        if (size > 0)
            worst = fmax(worst, away / (size * (single ? 0x1p-23 : 0x1p-52)));
    }
    return worst;
}

/* Rows whose functions are the C library's, on the CPU: their last bits may differ. */
static bool may_differ(const row *r, oly_dtype d)
{
    if (d == OLY_COMPLEX64 || d == OLY_COMPLEX128)
        return strchr("sp", r->result) && strcmp(r->name, "neg") && strcmp(r->name, "add") && strcmp(r->name, "sub") &&
               strcmp(r->name, "mul") && strcmp(r->name, "max") && strcmp(r->name, "min") && strcmp(r->name, "conj") &&
               strcmp(r->name, "real") && strcmp(r->name, "imag") && strcmp(r->name, "square");
    return false;
}

static void one_operation(const row *r, oly_dtype d)
{
    oly_dtype to = result_of(r, d);
    oly_tile_instruction c = {
        .op = (uint16_t)r->op, .dtype = d, .to = to, .in = {0, r->operands > 1 ? 1 : -1, -1}, .out = 2};
    int16_t loads_at[] = {0, 1}, store_at[] = {2};
    uint8_t load_types[] = {d, d}, store_types[] = {to};
    oly_tile_program p = {1, &c, r->operands, 1, loads_at, load_types, store_at, store_types, 3};
    void *x = random_array(d, N), *y = random_array(d, N), *cpu = random_array(to, N), *gpu = random_array(to, N);
    oly_tile_box box = {.rank = 1, .extent = {N}, .whole = {N}};
    oly_tile_operand loads[] = {{x, {1}}, {y, {1}}}, store = {cpu, {1}}, other = {gpu, {1}};
    run_program(&p, &box, loads, &store, &other);
    int64_t k = first_difference(to, N, cpu, gpu);
    if (may_differ(r, d)) {
        double away = distance(to, N, cpu, gpu);
        if (getenv("SHOW_DISTANCE") && away > 4)
            printf("%s of %s: %g ulp\n", r->name, oly_dtype_name(d), away);
    } else if (k >= 0) {
        size_t a = oly_dtype_size(d), b = oly_dtype_size(to);
        double xv = d == OLY_FLOAT32 ? ((float *)x)[k] : d == OLY_FLOAT64 ? ((double *)x)[k] : 0;
        (void)a;
        fail_msg("%s of %s differs at %d, x %.17g: CPU %08x%08x, GPU %08x%08x", r->name, oly_dtype_name(d), (int)k, xv,
                 b > 4 ? ((unsigned *)cpu)[2 * k + 1] : 0,
                 b >= 4 ? ((unsigned *)cpu)[b / 4 * (size_t)k] : ((unsigned char *)cpu)[b * (size_t)k],
                 b > 4 ? ((unsigned *)gpu)[2 * k + 1] : 0,
                 b >= 4 ? ((unsigned *)gpu)[b / 4 * (size_t)k] : ((unsigned char *)gpu)[b * (size_t)k]);
    }
    free(x), free(y), free(cpu), free(gpu);
    free_kept();
}

static void every_operation(void **state)
{
    (void)state;
    need_kernels();
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int d = 0; d < OLY_N_DTYPES; d++)
            if (rows[k].types[d] && !(rows[k].op == OLY_TILE_complex && d != OLY_FLOAT32 && d != OLY_FLOAT64))
                one_operation(&rows[k], (oly_dtype)d);
}

static void every_conversion(void **state)
{
    (void)state;
    need_kernels();
    for (int from = 0; from < OLY_N_DTYPES; from++)
        for (int to = 0; to < OLY_N_DTYPES; to++) {
            row r = {"convert", OLY_TILE_convert, 1, 's', {0}};
            oly_tile_instruction c = {
                .op = OLY_TILE_convert, .dtype = (uint8_t)from, .to = (uint8_t)to, .in = {0, -1, -1}, .out = 1};
            int16_t load_at[] = {0}, store_at[] = {1};
            uint8_t load_types[] = {(uint8_t)from}, store_types[] = {(uint8_t)to};
            oly_tile_program p = {1, &c, 1, 1, load_at, load_types, store_at, store_types, 2};
            void *x = random_array((oly_dtype)from, N), *cpu = random_array((oly_dtype)to, N),
                 *gpu = random_array((oly_dtype)to, N);
            oly_tile_box box = {.rank = 1, .extent = {N}, .whole = {N}};
            oly_tile_operand load = {x, {1}}, store = {cpu, {1}}, other = {gpu, {1}};
            run_program(&p, &box, &load, &store, &other);
            if (first_difference((oly_dtype)to, N, cpu, gpu) >= 0)
                fail_msg("%s from %s to %s differs at %d", r.name, oly_dtype_name((oly_dtype)from),
                         oly_dtype_name((oly_dtype)to), (int)first_difference((oly_dtype)to, N, cpu, gpu));
            free(x), free(cpu), free(gpu);
            free_kept();
        }
}

/* -- random programs over random boxes --------------------------------------------------------------------------------------- */

static void random_programs(void **state)
{
    (void)state;
    need_kernels();
    for (int round = 0; round < 300; round++) {
        drawn g;
        draw(&g);
        run_program(&g.program, &g.box, g.loads, g.stores, g.others);
        for (int k = 0; k < g.program.n_stores; k++)
            if (first_difference((oly_dtype)g.store_types[k], g.elements[4 + k], g.stores[k].base, g.others[k].base) >=
                0)
                fail_msg("program %d, store %d differs at %d", round, k,
                         (int)first_difference((oly_dtype)g.store_types[k], g.elements[4 + k], g.stores[k].base,
                                               g.others[k].base));
        for (int k = 0; k < 8; k++)
            free(g.memory[k]);
        free_kept();
    }
}

/* -- copies -------------------------------------------------------------------------------------------------------------------- */

static void copies(void **state)
{
    (void)state;
    need_kernels();
    static const size_t sizes[] = {1, 2, 4, 8, 16};
    for (int round = 0; round < 300; round++) {
        size_t bytes = sizes[random_below(5)];
        oly_copy_task t = {.element_bytes = bytes, .rank = random_below(4)};
        int order[3] = {0, 1, 2};
        int64_t to_span = 1, from_span = 1;
        for (int i = 0; i < t.rank; i++) {
            int j = random_below(t.rank), x = order[i];
            order[i] = order[j], order[j] = x;
            t.extent[i] = random_below(10) ? 1 + random_below(random_below(3) ? 10 : 70) : 0;
        }
        for (int i = t.rank - 1; i >= 0; i--) {
            t.to_stride[i] = to_span;
            to_span *= t.extent[i] + random_below(2);
            t.from_stride[order[i]] = random_below(6) ? from_span : 0;
            from_span *= t.extent[order[i]] + random_below(2);
        }
        char *from = random_array(OLY_UINT8, (from_span + 1) * (int64_t)bytes),
             *cpu = calloc((size_t)to_span + 1, bytes), *gpu = calloc((size_t)to_span + 1, bytes);
        for (int c = 0, n = oly_copy_chunks(&t); c < n; c++)
            oly_copy_run(&t, cpu, from, c, n);
        assert_int_equal(oly_cuda_copy(&launcher, &t, gpu, from), OLY_OK);
        if (memcmp(cpu, gpu, (size_t)to_span * bytes))
            fail_msg("copy %d of %d bytes, rank %d differs", round, (int)bytes, t.rank);
        free(from), free(cpu), free(gpu);
    }
}

/* Several boxes in one launch: columns of an array, some of them empty. */
static void copies_together(void **state)
{
    (void)state;
    need_kernels();
    enum { BOXES = 30, WIDTH = 40 };
    for (size_t bytes = 1; bytes <= 16; bytes *= 2) {
        oly_copy_task tasks[BOXES];
        oly_cuda_copied copied[BOXES];
        int64_t size = 700 * BOXES * WIDTH * (int64_t)bytes;
        char *from = random_array(OLY_UINT8, size), *cpu = calloc(1, (size_t)size), *gpu = calloc(1, (size_t)size);
        for (int k = 0; k < BOXES; k++) {
            tasks[k] = (oly_copy_task){.element_bytes = bytes,
                                       .rank = 2,
                                       .extent = {random_below(700), random_below(WIDTH)},
                                       .to_stride = {BOXES * WIDTH, 1},
                                       .from_stride = {random_below(2) ? WIDTH : 0, random_below(2)}};
            size_t at = (size_t)k * WIDTH * bytes;
            for (int c = 0, n = oly_copy_chunks(&tasks[k]); c < n; c++)
                oly_copy_run(&tasks[k], cpu + at, from + at, c, n);
            copied[k] = (oly_cuda_copied){&tasks[k], gpu + at, from + at};
        }
        assert_int_equal(oly_cuda_copies(&launcher, BOXES, copied), OLY_OK);
        if (memcmp(cpu, gpu, (size_t)size))
            fail_msg("copies of %d bytes differ", (int)bytes);
        free(from), free(cpu), free(gpu);
    }
}

static void arrays_combined(void **state)
{
    (void)state;
    need_kernels();
    for (int round = 0; round < 200; round++) {
        oly_dtype d = (oly_dtype)random_below(OLY_N_DTYPES);
        oly_combiner c = (oly_combiner)random_below(d < OLY_FLOAT8_E4M3FN && d != OLY_BOOL ? OLY_N_COMBINERS : 4);
        int counts[2] = {1 + random_below(round % 2 ? 40 : 6), round % 2 ? 1 : 1 + random_below(5)},
            n = counts[0] * counts[1];
        void *x[64], *cpu = random_array(d, 100), *outs[2] = {random_array(d, 100), random_array(d, 100)};
        for (int k = 0; k < n; k++)
            x[k] = random_array(d, 100);
        bool in_pairs = random_below(2);
        oly_combine(c, d, in_pairs, 2, counts, (const void *const *)x, cpu, 3, 98);
        assert_int_equal(oly_cuda_combine(&launcher, c, d, in_pairs, 2, counts, (const void *const *)x, 2, outs, 3, 98),
                         OLY_OK);
        size_t at = 3 * oly_dtype_size(d);
        for (int k = 0; k < 2; k++)
            if (first_difference(d, 95, (char *)cpu + at, (char *)outs[k] + at) >= 0)
                fail_msg("combiner %d of %s differs", c, oly_dtype_name(d));
        for (int k = 0; k < n; k++)
            free(x[k]);
        free(cpu), free(outs[0]), free(outs[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_operation), cmocka_unit_test(every_conversion),
                                       cmocka_unit_test(random_programs), cmocka_unit_test(copies),
                                       cmocka_unit_test(copies_together), cmocka_unit_test(arrays_combined)};
    return CHECK_MAIN(tests);
}
