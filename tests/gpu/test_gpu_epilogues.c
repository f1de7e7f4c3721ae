/* SPDX-License-Identifier: BSD-3-Clause */
/* run: devices=8  Products with a bias, which the library adds: the bits of two steps, for every placement; only where nothing else reads the
 * product; convolutions with the copy of their result. tests/gpu/test_platform.sh runs it on emulated GPUs. */
#include "check.h"
#include "check_session.h"
#include "core/optimisation.h"
#include "run/device_counts.h"
#include <math.h>
#include <string.h>

enum { ROWS = 96, INNER = 64, COLUMNS = 80, BATCHES = 2 };

static bool on_gpu(void)
{
    return strcmp(oly_device_platform(oly_local_device(0)), "cuda") == 0;
}

static int64_t epilogues(void)
{
    return oly_counted(&oly_device_counted.epilogues);
}

static oly_array drawn(oly_dtype dtype, int seed, int rank, const int64_t *shape, const char *sharding)
{
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= shape[d];
    oly_array x = oly_sin(oly_add(oly_mul(oly_arange(n, OLY_FLOAT32), 0.37 + seed), seed));
    return oly_device_put(oly_astype(oly_reshape_shape(x, rank, shape), dtype),
                          oly_named(oly_make_mesh("x=4, y=2"), sharding));
}

static void linear(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_matmul(in[0], in[1]), in[2]);
    out[1] = oly_sum(out[0]);
}

static void bias_first(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_matmul(oly_add(in[2], oly_matmul(in[0], in[1])), oly_transpose(in[1]));
    out[1] = oly_sum(out[0]);
}

/* Layers in a row: plans give a sum the memory of what the product before it has read. */
static void layers(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array y = oly_cos(in[0]), bias = oly_slice(in[2], ":64");
    oly_array square = oly_mul(0.05, oly_matmul(in[1], oly_transpose(in[1])));
    for (int k = 0; k < 5; k++)
        y = oly_add(oly_matmul(y, square), bias);
    out[0] = y;
    out[1] = oly_sum(y);
}

static void read_twice(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array y = oly_matmul(in[0], in[1]);
    out[0] = oly_add(y, in[2]);
    out[1] = y;
}

static void activated(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_relu(oly_add(oly_matmul(in[0], in[1]), in[2]));
    out[1] = oly_sum(out[0]);
}

/* The sum of two products is no bias, nor is a column. */
static void of_columns(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_matmul(in[0], in[1]), oly_sum(in[0], OLY_AXES(-1), .keepdims = true));
    out[1] = oly_sum(out[0]);
}

static char *values[2][2];

static void call(oly_function function, const oly_array *in, oly_optimisations off, char **to)
{
    oly_optimisations before = oly_disable(off);
    oly_fn f = oly_jit(function, 3, 2);
    for (int round = 0; round < 6; round++) /* also replayed */
        OLY_SCOPE
        {
            oly_array out[2];
            assert_int_equal(oly_call(f, OLY_IN(in[0], in[1], in[2]), OLY_OUT(out[0], out[1])), OLY_OK);
            for (int k = 0; k < 2; k++) {
                oly_array all = oly_device_put(out[k], oly_named(oly_make_mesh("x=4, y=2"), ""));
                size_t bytes = (size_t)oly_size(all) * oly_dtype_size(oly_dtype_of(all));
                assert_true(bytes <= sizeof(double) * BATCHES * ROWS * ROWS);
                assert_int_equal(oly_get(all, to[k], bytes), OLY_OK);
            }
        }
    oly_disable(before);
}

/* fused: does the library add the bias, on GPUs? */
static void compare(oly_function function, const char *name, oly_dtype dtype, int rank, const char *of_left,
                    const char *of_right, const char *of_bias, bool fused)
{
    size_t bytes = sizeof(double) * BATCHES * ROWS * ROWS;
    OLY_SCOPE
    {
        const int64_t left[] = {BATCHES, ROWS, INNER}, right[] = {INNER, COLUMNS}, bias[] = {COLUMNS};
        oly_array in[] = {drawn(dtype, 1, rank, left + 3 - rank, of_left), drawn(dtype, 2, 2, right, of_right),
                          drawn(dtype, 3, 1, bias, of_bias)};
        for (int k = 0; k < 4; k++)
            assert_non_null(values[k / 2][k % 2] = calloc(1, bytes));
        int64_t before = epilogues();
        call(function, in, (oly_optimisations)1 << OLY_OPTIMISATION_PRODUCT_EPILOGUES, values[0]);
        assert_int_equal(epilogues(), before);
        call(function, in, 0, values[1]);
        if ((epilogues() > before) != (fused && on_gpu() && !getenv("EMULATED_FAIL")))
            fail_msg("%s of %s: %d epilogues", name, oly_dtype_name(dtype), (int)(epilogues() - before));
        for (int k = 0; k < 2; k++)
            if (memcmp(values[0][k], values[1][k], bytes))
                fail_msg("%s of %s: result %d has other bits with its bias in the epilogue", name,
                         oly_dtype_name(dtype), k);
        for (int k = 0; k < 4; k++)
            free(values[k / 2][k % 2]);
    }
}

static void biases_have_the_bits_of_two_steps(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        oly_dtype dtype = k ? OLY_FLOAT64 : OLY_FLOAT32;
        compare(linear, "linear", dtype, 2, "", "", "", true);
        compare(linear, "linear, rows", dtype, 2, "x, None", "", "", true);
        compare(linear, "linear, columns", dtype, 2, "", "None, y", "y", true);
        compare(linear, "linear, batches", dtype, 3, "y, x, None", "", "", true);
        compare(linear, "linear, gathered", dtype, 2, "None, x", "x, None", "", true);
        compare(layers, "layers", dtype, 2, "x, None", "", "", true);
        compare(bias_first, "bias first", dtype, 2, "x, None", "", "", true);
    }
}

static void others_keep_their_steps(void **state)
{
    (void)state;
    compare(read_twice, "read twice", OLY_FLOAT32, 2, "x, None", "", "", false);
    compare(activated, "activated", OLY_FLOAT32, 2, "x, None", "", "", false);
    compare(of_columns, "of columns", OLY_FLOAT32, 2, "x, None", "", "", false);
    compare(linear, "linear", OLY_FLOAT16, 2, "x, None", "", "", false);
    compare(linear, "linear", OLY_BFLOAT16, 2, "x, None", "", "", false);
    compare(linear, "linear", OLY_COMPLEX64, 2, "x, None", "", "", false);
}

/* -- convolutions ------------------------------------------------------------------------------------------------------------------- */

static void channels_last(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_conv(in[0], in[1], .padding = "SAME", .dimension_numbers = "NHWC,HWIO->NHWC");
    out[1] = oly_sum(in[1]);
}

static void layers_last(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array y = oly_conv(in[0], in[1], .padding = "SAME", .dimension_numbers = "NHWC,HWIO->NHWC");
    for (int k = 0; k < 3; k++)
        y = oly_conv(y, oly_mul(0.125, in[1]), .padding = "SAME", .dimension_numbers = "NHWC,HWIO->NHWC");
    out[0] = y;
    out[1] = oly_sum(in[1]);
}

/* The sum reads the order without the copy. */
static void summed_last(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_conv(in[0], in[1], .padding = "SAME", .dimension_numbers = "NHWC,HWIO->NHWC");
    out[1] = oly_sum(out[0]);
}

static void compare_convolution(oly_function function, const char *name, const char *of_images, const char *of_kernel,
                                bool joined)
{
    enum { IMAGES = 4, SIDE = 10, CHANNELS = 16 };
    size_t bytes = sizeof(double) * BATCHES * ROWS * ROWS;
    OLY_SCOPE
    {
        const int64_t images[] = {IMAGES, SIDE, SIDE, CHANNELS}, kernel[] = {3, 3, CHANNELS, CHANNELS}, none[] = {1};
        oly_array in[] = {drawn(OLY_FLOAT32, 1, 4, images, of_images), drawn(OLY_FLOAT32, 2, 4, kernel, of_kernel),
                          drawn(OLY_FLOAT32, 3, 1, none, "")};
        for (int k = 0; k < 4; k++)
            assert_non_null(values[k / 2][k % 2] = calloc(1, bytes));
        int64_t before = oly_counted(&oly_device_counted.features_last);
        call(function, in, (oly_optimisations)1 << OLY_OPTIMISATION_PRODUCT_EPILOGUES, values[0]);
        assert_int_equal(oly_counted(&oly_device_counted.features_last), before);
        call(function, in, 0, values[1]);
        bool some = oly_counted(&oly_device_counted.features_last) > before;
        if (some != (joined && on_gpu()))
            fail_msg("%s: the convolution %s the order of the copy", name, some ? "writes" : "does not write");
        for (int k = 0; k < 2; k++)
            if (memcmp(values[0][k], values[1][k], bytes))
                fail_msg("%s: result %d has other bits where the convolution writes the order of the copy", name, k);
        for (int k = 0; k < 4; k++)
            free(values[k / 2][k % 2]);
    }
}

static void convolutions_write_the_order_of_a_copy(void **state)
{
    (void)state;
    compare_convolution(channels_last, "channels last", "", "", true);
    compare_convolution(channels_last, "channels last, images", "x, None, None, None", "", true);
    compare_convolution(channels_last, "channels last, rows", "None, y, None, None", "", true);
    compare_convolution(channels_last, "channels last, features", "", "None, None, None, x", true);
    compare_convolution(layers_last, "layers", "x, None, None, None", "", true);
    compare_convolution(summed_last, "summed", "x, None, None, None", "", false);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(biases_have_the_bits_of_two_steps, check_start_wide, check_close),
        cmocka_unit_test_setup_teardown(convolutions_write_the_order_of_a_copy, check_start_wide, check_close),
        cmocka_unit_test_setup_teardown(others_keep_their_steps, check_start_wide, check_close)};
    return CHECK_MAIN(tests);
}
