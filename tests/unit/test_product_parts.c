/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  The parts into which a product's result divides (kernels/planning.h), by which plans overlap products with messages: they
 * cover the result once, and each is computed by one chunk, with the bits that the whole product has there. */
#include "check_kernels.h"

static oly_gemm_task product(oly_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    return (oly_gemm_task){.dtype = dtype,
                           .batch = 1,
                           .m = m,
                           .n = n,
                           .k = k,
                           .a_row = k,
                           .a_column = 1,
                           .b_row = n,
                           .b_column = 1,
                           .c_row = n};
}

static bool overlap(const oly_gemm_part *a, const oly_gemm_part *b)
{
    return a->row < b->row + b->rows && b->row < a->row + a->rows && a->column < b->column + b->columns &&
           b->column < a->column + a->columns;
}

static void check_cover(const oly_gemm_task *t)
{
    oly_gemm_part parts[64];
    int n = oly_gemm_parts(t);
    int64_t covered = 0;
    assert_int_equal(n, oly_gemm_chunks(t));
    assert_true(n >= 1 && n <= 64);
    for (int k = 0; k < n; k++) {
        const oly_gemm_part *p = &parts[k];
        parts[k] = oly_gemm_part_at(t, k);
        assert_true(p->row >= 0 && p->rows > 0 && p->row + p->rows <= t->m);
        assert_true(p->column >= 0 && p->columns > 0 && p->column + p->columns <= t->n);
        assert_int_equal(oly_gemm_chunk_of(t, p), k);
        for (int j = 0; j < k; j++)
            assert_false(overlap(&parts[j], p));
        covered += p->rows * p->columns;
    }
    assert_int_equal(covered, t->m * t->n);
}

static void parts_cover_the_result_once(void **unused)
{
    (void)unused;
    int several = 0;
    for (int i = 0; i < 20000; i++) {
        oly_dtype dtype = i % 3 ? OLY_FLOAT32 : OLY_INT32;
        int64_t size[3];
        for (int d = 0; d < 3; d++)
            size[d] = (int64_t)exp(random_between(0, 8.5));
        oly_gemm_task t = product(dtype, size[0], size[1], size[2]);
        check_cover(&t);
        several += oly_gemm_parts(&t) > 1;
    }
    assert_true(several > 1000);
}

static void several_products_or_none_have_no_parts(void **unused)
{
    (void)unused;
    oly_gemm_task t = product(OLY_FLOAT32, 500, 600, 700);
    assert_true(oly_gemm_parts(&t) > 1);
    t.batch = 2;
    assert_int_equal(oly_gemm_parts(&t), 0);
    t.batch = 1;
    t.n_outer = 1;
    t.outer[0] = 3;
    assert_int_equal(oly_gemm_parts(&t), 0);
    t = product(OLY_FLOAT32, 500, 0, 700);
    assert_int_equal(oly_gemm_parts(&t), 0);
}

enum { MOST = 320000 };
static float a[MOST], b[MOST], whole[MOST], part[MOST];

static void check_alone(const oly_gemm_task *t, int k)
{
    oly_gemm_part p = oly_gemm_part_at(t, k);
    for (int64_t i = 0; i < t->m * t->n; i++)
        part[i] = -1;
    oly_gemm_run(t, a, b, part, oly_gemm_chunk_of(t, &p), oly_gemm_chunks(t));
    for (int64_t i = 0; i < t->m; i++)
        for (int64_t j = 0; j < t->n; j++) {
            bool inside = i >= p.row && i < p.row + p.rows && j >= p.column && j < p.column + p.columns;
            float expected = inside ? whole[i * t->n + j] : -1;
            assert_memory_equal(&part[i * t->n + j], &expected, sizeof expected);
        }
}

static void a_part_alone_has_the_bits_of_the_whole(void **unused)
{
    (void)unused;
    static const int64_t shapes[][3] = {{500, 600, 70}, {130, 2000, 100}, {3, 40000, 7}, {1200, 260, 200}};
    for (int i = 0; i < MOST; i++) {
        a[i] = (float)random_between(1, 2);
        b[i] = (float)random_between(1, 2);
    }
    for (int s = 0; s < COUNT(shapes); s++) {
        oly_gemm_task t = product(OLY_FLOAT32, shapes[s][0], shapes[s][1], shapes[s][2]);
        int n = oly_gemm_parts(&t);
        assert_true(n > 1 && t.m * t.n <= MOST && t.m * t.k <= MOST && t.k * t.n <= MOST);
        for (int k = 0; k < n; k++)
            oly_gemm_run(&t, a, b, whole, k, n);
        for (int k = 0; k < n; k++)
            check_alone(&t, k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_cover_the_result_once),
        cmocka_unit_test(several_products_or_none_have_no_parts),
        cmocka_unit_test(a_part_alone_has_the_bits_of_the_whole),
    };
    return CHECK_MAIN(tests);
}
