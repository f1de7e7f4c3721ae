/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  CUDA kernels of matrix products: every type, any strides, batches, pieces of results; the CPU's bits where OpenBLAS is not asked. */
#include "kernel_launcher.h"
#include "table.h"

/* Elements for sums that may be added in another order. */
static void *even_array(oly_dtype dtype, int64_t n)
{
    char *x = random_array(dtype, n);
    int64_t parts = n * (int64_t)oly_dtype_size(dtype) / (dtype == OLY_FLOAT32 || dtype == OLY_COMPLEX64 ? 4 : 8);
    for (int64_t i = 0; i < parts; i++) {
        double v = (double)(int64_t)random_word() * 0x1p-63;
        if (dtype == OLY_FLOAT32 || dtype == OLY_COMPLEX64)
            ((float *)x)[i] = (float)v;
        else
            ((double *)x)[i] = v;
    }
    return x;
}

static bool is_wide(oly_dtype dtype)
{
    return dtype >= OLY_FLOAT32;
}

static void near(const oly_gemm_task *t, int64_t n, const void *x, const void *y, int round)
{
    bool single = t->dtype == OLY_FLOAT32 || t->dtype == OLY_COMPLEX64;
    int64_t parts = n * (int64_t)oly_dtype_size(t->dtype) / (single ? 4 : 8);
    double most = (single ? 0x1p-24 : 0x1p-53) * 8 * sqrt((double)t->k + 1) * 4;
    for (int64_t i = 0; i < parts; i++) {
        double p = single ? ((const float *)x)[i] : ((const double *)x)[i];
        double q = single ? ((const float *)y)[i] : ((const double *)y)[i];
        if (p != q && !(p != p && q != q) && !(fabs(p - q) <= most))
            fail_msg("product %d of %s, %d x %d x %d: %.17g and %.17g at %d", round, oly_dtype_name(t->dtype),
                     (int)t->m, (int)t->n, (int)t->k, p, q, (int)i);
    }
}

static int64_t span_of(const oly_gemm_task *t, int64_t batch, int64_t row, int64_t column, int64_t rows,
                       int64_t columns, const int64_t *outer)
{
    int64_t last = (t->batch - 1) * batch + (rows - 1) * row + (columns - 1) * column;
    for (int k = 0; k < t->n_outer; k++)
        last += (t->outer[k] - 1) * outer[k];
    return last + 1;
}

/* All of it, or the pieces in the order of the kernels and backwards. */
static void run_on_gpu(const oly_gemm_task *t, const void *a, const void *b, void *c)
{
    int n = oly_gemm_parts(t);
    oly_gemm_part parts[512];
    if (n == 0 || n > 512 || random_below(2)) {
        assert_int_equal(oly_cuda_gemm(&launcher, t, NULL, 0, a, b, c), OLY_OK);
        return;
    }
    for (int k = 0; k < n; k++)
        parts[k] = oly_gemm_part_at(t, k);
    int first = random_below(n + 1);
    assert_int_equal(oly_cuda_gemm(&launcher, t, parts + first, n - first, a, b, c), OLY_OK);
    assert_int_equal(oly_cuda_gemm(&launcher, t, parts, first, a, b, c), OLY_OK);
}

static void one(const oly_gemm_task *t, int round)
{
    int64_t in_a = span_of(t, t->a_batch, t->a_row, t->a_column, t->m, t->k, t->a_outer);
    int64_t in_b = span_of(t, t->b_batch, t->b_row, t->b_column, t->k, t->n, t->b_outer);
    int64_t out = span_of(t, t->c_batch, t->c_row, 1, t->m, t->n, t->c_outer);
    bool exact = !is_wide(t->dtype) || (!oly_gemm_divide(t).blas && t->k < 4096);
    bool same = exact || !is_wide(t->dtype);
    void *a = same ? random_array(t->dtype, in_a) : even_array(t->dtype, in_a);
    void *b = same ? random_array(t->dtype, in_b) : even_array(t->dtype, in_b);
    void *cpu = random_array(t->dtype, out), *gpu = random_array(t->dtype, out), *again = random_array(t->dtype, out);
    memcpy(gpu, cpu, (size_t)out * oly_dtype_size(t->dtype));
    memcpy(again, cpu, (size_t)out * oly_dtype_size(t->dtype));
    for (int c = 0, n = oly_gemm_chunks(t); c < n; c++)
        oly_gemm_run(t, a, b, cpu, c, n);
    run_on_gpu(t, a, b, gpu);
    run_on_gpu(t, a, b, again);
    if (memcmp(gpu, again, (size_t)out * oly_dtype_size(t->dtype)))
        fail_msg("product %d of %s: its pieces have other bits", round, oly_dtype_name(t->dtype));
    int64_t k = same ? first_difference(t->dtype, out, cpu, gpu) : -1;
    if (k >= 0)
        fail_msg("product %d of %s, %d x %d x %d in %d batches: differs at %d", round, oly_dtype_name(t->dtype),
                 (int)t->m, (int)t->n, (int)t->k, (int)t->batch, (int)k);
    if (!same)
        near(t, out, cpu, gpu, round);
    free(a), free(b), free(cpu), free(gpu), free(again);
    free_kept();
}

static oly_gemm_task draw(oly_dtype dtype, int64_t batch, int64_t m, int64_t n, int64_t k)
{
    int64_t gap = random_below(3) == 0 ? random_below(5) : 0;
    oly_gemm_task t = {.dtype = dtype, .batch = batch, .m = m, .n = n, .k = k};
    if (random_below(2))
        t.a_row = k + gap, t.a_column = 1, t.a_batch = m * t.a_row;
    else
        t.a_row = 1, t.a_column = m + gap, t.a_batch = k * t.a_column;
    if (random_below(2))
        t.b_row = n + gap, t.b_column = 1, t.b_batch = k * t.b_row;
    else
        t.b_row = 1, t.b_column = k + gap, t.b_batch = n * t.b_column;
    t.c_row = n + gap;
    t.c_batch = m * t.c_row;
    if (random_below(3) == 0)
        t.b_batch = 0; /* one matrix for all */
    if (random_below(3) == 0) {
        t.n_outer = 1;
        t.outer[0] = 1 + random_below(3);
        t.a_outer[0] = random_below(2) ? batch * t.a_batch : 0;
        t.b_outer[0] = batch * t.b_batch;
        t.c_outer[0] = batch * t.c_batch;
    }
    return t;
}

static void small_products(void **state)
{
    (void)state;
    need_kernels();
    for (int round = 0; round < 300; round++) {
        int64_t size[3];
        for (int d = 0; d < 3; d++)
            size[d] = random_below(4) ? 1 + random_below(20) : 1 + random_below(40);
        size[2] = random_below(12) ? size[2] : 0;
        oly_gemm_task t = draw((oly_dtype)(round % OLY_N_DTYPES), 1 + random_below(3), size[0], size[1], size[2]);
        one(&t, round);
    }
}

/* Several blocks, long sums, results in pieces. */
static void large_products(void **state)
{
    (void)state;
    need_kernels();
    static const int64_t sizes[][4] = {{1, 70, 131, 40},  {1, 128, 64, 33},  {2, 65, 65, 16},  {1, 1, 1, 9000},
                                       {1, 3, 2, 20000},  {2, 20, 17, 4500}, {1, 1, 300, 300}, {1, 300, 1, 500},
                                       {1, 200, 600, 70}, {1, 17, 16, 8192}};
    static const oly_dtype dtypes[] = {OLY_FLOAT32, OLY_FLOAT64, OLY_INT32, OLY_COMPLEX64, OLY_BOOL, OLY_INT64};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int j = 0; j < 2; j++) {
            const int64_t *s = sizes[k];
            oly_gemm_task t = draw(dtypes[(2 * k + (size_t)j) % 6], s[0], s[1], s[2], s[3]);
            one(&t, (int)k);
        }
}

/* Products of bytes, by words of four: with and without signs, aligned and not, of rows and of columns, in parts of the sum; and results that
 * are bytes themselves. */
static void products_of_bytes(void **state)
{
    (void)state;
    need_kernels();
    static const int64_t sizes[][4] = {{1, 64, 64, 64},    {1, 70, 131, 40},  {2, 65, 68, 16},  {1, 3, 2, 5000},
                                       {1, 130, 66, 1100}, {3, 1, 300, 33},   {1, 300, 1, 500}, {2, 64, 128, 32},
                                       {1, 17, 16, 1},     {1, 128, 64, 2048}};
    for (int round = 0; round < 16 * (int)(sizeof sizes / sizeof *sizes); round++) {
        const int64_t *s = sizes[round / 16];
        bool is_signed[2] = {round & 1, round & 2};
        oly_gemm_task t = draw(OLY_INT32, s[0], s[1], s[2], s[3]);
        int64_t span[2] = {span_of(&t, t.a_batch, t.a_row, t.a_column, t.m, t.k, t.a_outer),
                           span_of(&t, t.b_batch, t.b_row, t.b_column, t.k, t.n, t.b_outer)};
        int64_t out = span_of(&t, t.c_batch, t.c_row, 1, t.m, t.n, t.c_outer);
        uint8_t *bytes[2];
        int32_t *wide[2], *cpu = random_array(OLY_INT32, out), *gpu = random_array(OLY_INT32, out);
        int64_t offset = random_below(3) ? 0 : 1 + random_below(3);
        for (int o = 0; o < 2; o++) {
            bytes[o] = random_array(OLY_UINT8, span[o] + offset);
            wide[o] = random_array(OLY_INT32, span[o]);
            for (int64_t i = 0; i < span[o]; i++) {
                uint8_t x = bytes[o][offset + i] = random_below(4)   ? (uint8_t)random_word()
                                                   : random_below(2) ? 0x80
                                                                     : 0xff;
                wide[o][i] = is_signed[o] ? (int8_t)x : x;
            }
        }
        memcpy(gpu, cpu, (size_t)out * sizeof *gpu);
        for (int c = 0, n = oly_gemm_chunks(&t); c < n; c++)
            oly_gemm_run(&t, wide[0], wide[1], cpu, c, n);
        assert_int_equal(
            oly_cuda_gemm_bytes(&launcher, &t, is_signed[0], is_signed[1], bytes[0] + offset, bytes[1] + offset, gpu),
            OLY_OK);
        int64_t k = first_difference(OLY_INT32, out, cpu, gpu);
        if (k >= 0)
            fail_msg("product %d of bytes, %d x %d x %d: differs at %d: %d and %d", round, (int)t.m, (int)t.n, (int)t.k,
                     (int)k, cpu[k], gpu[k]);
        free(bytes[0]), free(bytes[1]), free(wide[0]), free(wide[1]), free(cpu), free(gpu);
        free_kept();
        t.dtype = is_signed[0] ? OLY_INT8 : OLY_UINT8;
        one(&t, round);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(small_products), cmocka_unit_test(large_products),
                                       cmocka_unit_test(products_of_bytes)};
    return CHECK_MAIN(tests);
}
