/* run: layouts  Matrix products and the communication around them overlap: they begin with the blocks that are here, and send those
 * that are made. Steps of plans, and values: those of one device, and the same bits as without. */
#include "check.h"
#include <olympus.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/option.h"

static int setup(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return oly_finalize();
}

static __attribute__((noinline)) char *explained(oly_fn f, int n, const oly_array *in)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_int_equal(oly_explain_n(file, f, n, in), OLY_OK);
    fclose(file);
    char *steps_end = strstr(text, "  in all:");
    if (steps_end)
        *steps_end = 0;
    return text;
}

static oly_array data(int64_t rows, int64_t columns)
{
    return oly_sin(oly_reshape(oly_arange(rows * columns, OLY_FLOAT32), rows, columns));
}

/* The function's result on sharded operands is that on one device, nearly or exactly. */
static void expect_same(oly_function function, int n, const oly_array *plain, const oly_array *sharded, int64_t count,
                        double tolerance)
{
    float *one = malloc(sizeof *one * (size_t)count), *other = malloc(sizeof *other * (size_t)count);
    oly_array a, b;
    oly_fn f = oly_jit_with(function, "f", n, 1, (oly_jit_options){.user = NULL});
    assert_int_equal(oly_call_n(f, n, plain, 1, (oly_array *[]){&a}), OLY_OK);
    assert_int_equal(oly_call_n(f, n, sharded, 1, (oly_array *[]){&b}), OLY_OK);
    oly_process_allgather(a, one, sizeof *one * (size_t)count);
    oly_process_allgather(b, other, sizeof *other * (size_t)count);
    for (int64_t k = 0; k < count; k++)
        if (!(fabs((double)one[k] - (double)other[k]) <= tolerance * (1 + fabs((double)one[k]))))
            fail_msg("element %lld is %.9g, not %.9g", (long long)k, (double)other[k], (double)one[k]);
    free(one);
    free(other);
}

static int count(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

/* The same bits with and without. */
static void expect_same_bits(oly_function function, int n, const oly_array *in, int64_t count)
{
    float *bits[2];
    for (int overlap = 0; overlap < 2; overlap++) {
        oly_option.overlap = overlap;
        oly_array a;
        oly_fn f = oly_jit_with(function, "f", n, 1, (oly_jit_options){.user = NULL});
        assert_int_equal(oly_call_n(f, n, in, 1, (oly_array *[]){&a}), OLY_OK);
        bits[overlap] = malloc(sizeof(float) * (size_t)count);
        oly_process_allgather(a, bits[overlap], sizeof(float) * (size_t)count);
    }
    assert_memory_equal(bits[0], bits[1], sizeof(float) * (size_t)count);
    free(bits[0]);
    free(bits[1]);
}

/* Rows come from everywhere; the product begins with those that are here. */
static void gathered_product(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_with_sharding_constraint(oly_matmul(in[0], in[1]), oly_named(oly_make_mesh("x=8"), "None, x"));
}

static void products_begin_with_the_blocks_that_are_here(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array plain[] = {data(512, 256), data(256, 2048)};
    oly_array in[] = {oly_device_put(plain[0], oly_named(mesh, "x, None")),
                      oly_device_put(plain[1], oly_named(mesh, "None, x"))};
    char *text = explained(oly_jit_with(gathered_product, "f", 2, 1, (oly_jit_options){.user = NULL}), 2, in);
    assert_int_equal(count(text, " members]"), 1);
    assert_int_equal(count(text, "all-gather"), 1);
    if (oly_process_count() == 1)
        assert_int_equal(count(text, "matrix product"), 1);
    else
        assert_true(count(text, "matrix product") > 1);
    free(text);
    expect_same(gathered_product, 2, plain, in, 512 * 2048, 1e-3);
    expect_same_bits(gathered_product, 2, in, 512 * 2048);
}

/* The second operand comes from everywhere, along its columns. */
static void gathered_columns(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_with_sharding_constraint(oly_matmul(in[0], in[1]), oly_named(oly_make_mesh("x=8"), "x, None"));
}

static void products_begin_with_the_columns_that_are_here(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array plain[] = {data(2048, 128), data(128, 2048)};
    oly_array in[] = {oly_device_put(plain[0], oly_named(mesh, "x, None")),
                      oly_device_put(plain[1], oly_named(mesh, "None, x"))};
    char *text = explained(oly_jit_with(gathered_columns, "f", 2, 1, (oly_jit_options){.user = NULL}), 2, in);
    assert_int_equal(count(text, " members]"), 1);
    assert_int_equal(count(text, "all-gather"), 1);
    assert_int_equal(count(text, "matrix product") > 1, oly_process_count() > 1);
    free(text);
    expect_same(gathered_columns, 2, plain, in, 2048 * 2048, 1e-3);
    expect_same_bits(gathered_columns, 2, in, 2048 * 2048);
}

/* Dimensions of the gathered operand that are one loop of rows: a block of rows may go from one into the next. */
static void gathered_batch(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array product = oly_einsum("abk,kn->abn", in[0], in[1]);
    out[0] = oly_with_sharding_constraint(product, oly_named(oly_make_mesh("x=8"), "None, None, x"));
}

static void blocks_across_dimensions_wait_for_all_they_read(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array plain[] = {oly_reshape(data(512, 256), 4, 128, 256), data(256, 2048)};
    oly_array in[] = {oly_device_put(plain[0], oly_named(mesh, "None, x, None")),
                      oly_device_put(plain[1], oly_named(mesh, "None, x"))};
    expect_same(gathered_batch, 2, plain, in, 512 * 2048, 1e-3);
    expect_same_bits(gathered_batch, 2, in, 512 * 2048);
}

/* Partial products are summed where they are wanted: the blocks of one process travel while those of the next are worked. */
static void scattered_rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_with_sharding_constraint(oly_matmul(in[0], in[1]), oly_named(oly_make_mesh("x=8"), "x, None"));
}

static void scattered_columns(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_with_sharding_constraint(oly_matmul(in[0], in[1]), oly_named(oly_make_mesh("x=8"), "None, x"));
}

static void products_send_blocks_as_they_are_made(void **state)
{
    static const oly_function functions[] = {scattered_rows, scattered_columns};
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array plain[] = {data(512, 4096), data(4096, 512)};
    oly_array in[] = {oly_device_put(plain[0], oly_named(mesh, "None, x")),
                      oly_device_put(plain[1], oly_named(mesh, "x, None"))};
    for (int k = 0; k < 2; k++) {
        char *text = explained(oly_jit_with(functions[k], "f", 2, 1, (oly_jit_options){.user = NULL}), 2, in);
        assert_int_equal(count(text, " members]"), 1);
        assert_int_equal(count(text, "reduce-scatter"), 1);
        assert_int_equal(count(text, "sent block by block"), oly_process_count() > 1);
        free(text);
        expect_same(functions[k], 2, plain, in, 512 * 512, 1e-2);
        expect_same_bits(functions[k], 2, in, 512 * 512);
    }
}

/* What is over in no time is not cut. */
static void small_products_stay_whole(void **state)
{
    static const oly_function functions[] = {scattered_rows, scattered_columns};
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array in[] = {oly_device_put(data(32, 64), oly_named(mesh, "None, x")),
                      oly_device_put(data(64, 32), oly_named(mesh, "x, None"))};
    for (int k = 0; k < 2; k++) {
        char *text = explained(oly_jit_with(functions[k], "f", 2, 1, (oly_jit_options){.user = NULL}), 2, in);
        assert_int_equal(count(text, "matrix product"), 1);
        assert_int_equal(count(text, "sent block by block"), 0);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(products_begin_with_the_blocks_that_are_here, setup, teardown),
        cmocka_unit_test_setup_teardown(products_begin_with_the_columns_that_are_here, setup, teardown),
        cmocka_unit_test_setup_teardown(blocks_across_dimensions_wait_for_all_they_read, setup, teardown),
        cmocka_unit_test_setup_teardown(small_products_stay_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(products_send_blocks_as_they_are_made, setup, teardown),
    };
    return CHECK_MAIN(tests);
}
