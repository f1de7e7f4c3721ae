/* SPDX-License-Identifier: BSD-3-Clause */
/* run: devices=8  What GPUs compute with kernels of their own: nothing of it goes through the host (runtime/run/detour.h). tests/gpu/test_platform.sh
 * runs it on an emulated GPU. */
#include "check.h"
#include "check_session.h"
#include <math.h>
#include <string.h>

static oly_device_counts counted(void)
{
    oly_device_counts c;
    assert_int_equal(oly_get_device_counts(&c), OLY_OK);
    return c;
}

static bool on_gpu(void)
{
    return strcmp(oly_device_platform(oly_local_device(0)), "cuda") == 0;
}

enum { BATCHES = 2, M = 12, N = 10, K = 8 };
static double left[BATCHES][M][K], right[BATCHES][K][N], result[BATCHES][M][N];

static void fill(void)
{
    for (int b = 0; b < BATCHES; b++)
        for (int l = 0; l < K; l++) {
            for (int i = 0; i < M; i++)
                left[b][i][l] = (3 * i + l + b) % 5 < 3;
            for (int j = 0; j < N; j++)
                right[b][l][j] = (j + 2 * l + b) % 3 < 2;
        }
}

/* Sums of up to 8 ones, which every type holds. */
static double wanted(oly_dtype dtype, int b, int i, int j)
{
    double sum = 0;
    for (int l = 0; l < K; l++)
        sum += left[b][i][l] * right[b][l][j];
    return dtype == OLY_BOOL ? sum != 0 : sum;
}

static void check_product(oly_dtype dtype, const char *of_left, const char *of_right)
{
    oly_mesh mesh = oly_make_mesh("x=4, y=2");
    oly_array a = oly_from_host(left, OLY_FLOAT64, 3, (const int64_t[]){BATCHES, M, K});
    oly_array b = oly_from_host(right, OLY_FLOAT64, 3, (const int64_t[]){BATCHES, K, N});
    a = oly_astype(oly_device_put(a, oly_named(mesh, of_left)), dtype);
    b = oly_astype(oly_device_put(b, oly_named(mesh, of_right)), dtype);
    oly_array c = oly_einsum("bij,bjk->bik", a, b);
    c = oly_device_put(oly_astype(c, OLY_FLOAT64), oly_named(mesh, ""));
    assert_int_equal(oly_get(c, result, sizeof result), OLY_OK);
    for (int k = 0; k < BATCHES; k++)
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++)
                if (result[k][i][j] != wanted(dtype, k, i, j))
                    fail_msg("%s, \"%s\" by \"%s\": [%d][%d][%d] is %g, not %g", oly_dtype_name(dtype), of_left,
                             of_right, k, i, j, result[k][i][j], wanted(dtype, k, i, j));
}

static void products_are_computed_on_the_device(void **state)
{
    static const char *const shardings[][2] = {
        {"", ""}, {"y, x", "y"}, {"None, x", "None, None, y"}, {"None, None, x", "None, x"}};
    (void)state;
    fill();
    int64_t before = counted().on_host;
    for (int dtype = 0; dtype < OLY_N_DTYPES; dtype++)
        for (size_t k = 0; k < sizeof shardings / sizeof *shardings; k++)
            check_product((oly_dtype)dtype, shardings[k][0], shardings[k][1]);
    assert_int_equal(counted().on_host, before);
}

/* Those of whole numbers below 2^24 are exact in float32, whatever the order of sums. */
static void check_large(oly_dtype dtype, const char *equation, const char *of_left, const char *of_right)
{
    enum { SIDE = 72 };
    static double x[2][SIDE][SIDE], y[2][SIDE][SIDE], z[2][SIDE][SIDE];
    bool a_turned = equation[1] == 'j', b_turned = equation[5] == 'k';
    const int64_t shape[] = {2, SIDE, SIDE};
    for (int k = 0; k < 2 * SIDE * SIDE; k++) {
        (&x[0][0][0])[k] = k % 7;
        (&y[0][0][0])[k] = k % 5 - 2;
    }
    oly_mesh mesh = oly_make_mesh("x=4, y=2");
    oly_array a = oly_device_put(oly_from_host(x, OLY_FLOAT64, 3, shape), oly_named(mesh, of_left));
    oly_array b = oly_device_put(oly_from_host(y, OLY_FLOAT64, 3, shape), oly_named(mesh, of_right));
    oly_array operands[] = {oly_astype(a, dtype), oly_astype(b, dtype)};
    oly_array c = oly_einsum_with(equation, 2, operands, (oly_product_options){0});
    c = oly_device_put(oly_astype(c, OLY_FLOAT64), oly_named(mesh, ""));
    assert_int_equal(oly_get(c, z, sizeof z), OLY_OK);
    for (int n = 0; n < 2; n++)
        for (int i = 0; i < SIDE; i++)
            for (int k = 0; k < SIDE; k++) {
                double sum = 0;
                for (int j = 0; j < SIDE; j++)
                    sum += (a_turned ? x[n][j][i] : x[n][i][j]) * (b_turned ? y[n][k][j] : y[n][j][k]);
                if (dtype == OLY_BFLOAT16 || dtype == OLY_FLOAT16 ? fabs(z[n][i][k] - sum) > 4 : z[n][i][k] != sum)
                    fail_msg("%s of %s: [%d][%d][%d] is %g, not %g", equation, oly_dtype_name(dtype), n, i, k,
                             z[n][i][k], sum);
            }
}

static void large_products_go_to_the_library(void **state)
{
    static const char *const equations[] = {"bij,bjk->bik", "bji,bjk->bik", "bij,bkj->bik"};
    static const oly_dtype dtypes[] = {OLY_FLOAT32,    OLY_FLOAT64,  OLY_COMPLEX64,
                                       OLY_COMPLEX128, OLY_BFLOAT16, OLY_FLOAT16};
    (void)state;
    int64_t before = counted().library_products;
    int64_t on_host = counted().on_host;
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
        for (size_t e = 0; e < 3; e++) {
            check_large(dtypes[k], equations[e], "", "");
            check_large(dtypes[k], equations[e], "None, x", "None, None, y");
        }
    if (on_gpu())
        assert_true(counted().library_products > before);
    assert_int_equal(counted().on_host, on_host);
}

/* A function of the program runs on the host, the product before it does not; explanations say so, and only on GPUs. */
static void twice(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    (void)called, (void)user;
    for (int64_t k = 0; k < in[0].shape[0] * in[0].shape[1]; k++)
        ((float *)out[0].data)[k] = 2 * ((const float *)in[0].data)[k];
}

static void product_twice(const oly_array *in, oly_array *out, void *user)
{
    static const oly_kernel kernel = {.name = "doubled", .factors = "ij->ij", .cpu = twice};
    (void)user;
    oly_kernel_call(&kernel, OLY_IN(oly_matmul(in[0], in[0])), OLY_OUT(out[0]));
}

static void steps_on_the_host_are_marked(void **state)
{
    char *text;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    (void)state;
    oly_array x = oly_device_put(oly_ones(OLY_FLOAT32, 8, 8), oly_named(oly_make_mesh("x=8"), "x"));
    oly_fn f = oly_jit(product_twice, 1, 1);
    oly_explain(file, f, x);
    fclose(file);
    const char *mark = strstr(text, "[on the host]"), *kernel = strstr(text, "doubled");
    assert_non_null(kernel);
    assert_int_equal(mark != NULL, on_gpu());
    if (mark) {
        assert_null(strstr(mark + 1, "[on the host]"));
        assert_null(memchr(kernel, '\n', (size_t)(mark - kernel)));
    }
    free(text);
    int64_t before = counted().on_host, bytes = counted().bytes_on_host;
    oly_array y = oly_apply(f, x);
    oly_array sum = oly_device_put(oly_sum(y), oly_named(oly_make_mesh("x=8"), ""));
    assert_true(oly_item(sum) == 2 * 8 * 64);
    assert_int_equal(counted().on_host - before, on_gpu() ? 8 : 0);
    assert_int_equal(counted().bytes_on_host > bytes, on_gpu());
    assert_int_equal(counted().launches > 0, on_gpu());
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(large_products_go_to_the_library, check_open, check_close),
        cmocka_unit_test_setup_teardown(steps_on_the_host_are_marked, check_open, check_close),
        cmocka_unit_test_setup_teardown(products_are_computed_on_the_device, check_open, check_close)};
    return CHECK_MAIN(tests);
}
