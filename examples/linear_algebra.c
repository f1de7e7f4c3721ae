/* SPDX-License-Identifier: BSD-3-Clause */
/* Products: matrices, vectors, einsum, convolutions, pooling.
 *
 * Every line of output is an expression of this file and its value. a is split by rows and b by columns, so that each device
 * computes its block of the product; where a summed dimension is split, partial sums are reduced over the devices.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/linear_algebra      (8 devices)
 * Prints: from process 0, expressions and their values. */
#include <olympus.h>

static oly_mesh mesh;

/* Prints an expression and its value, gathered on every process. */
#define SHOW(...) show(#__VA_ARGS__, __VA_ARGS__)
static void show(const char *what, oly_array x)
{
    oly_array whole = oly_device_put(x, oly_named(mesh, ""));
    if (oly_process_index() == 0)
        oly_printf(oly_rank(x) > 1 ? "%s =\n%A\n" : "%s = %A\n", what, whole);
}

static void title(const char *text)
{
    if (oly_process_index() == 0)
        printf("-- %s\n", text);
}

/* 0, 1, 2, ... in a shape, placed. */
static oly_array numbers(int rows, int columns, const char *spec)
{
    return oly_device_put(oly_reshape(oly_arange(rows * columns, OLY_FLOAT32), rows, columns), oly_named(mesh, spec));
}

static void products(oly_array a, oly_array b)
{
    title("products");
    oly_array v = oly_arange(3, OLY_FLOAT32);
    SHOW(oly_matmul(a, b));
    SHOW(oly_matmul(a, b, .out_sharding = oly_named(mesh, "x, y")));
    SHOW(oly_dot(a, v));
    SHOW(oly_inner(a, a)); /* every row times every row */
    SHOW(oly_outer(v, v));
    SHOW(oly_vdot(a, a)); /* all elements: one number */
    SHOW(oly_tensordot(a, b, 1));
    SHOW(oly_trace(oly_inner(a, a)));

    title("batches of matrices");
    oly_array many = oly_device_put(oly_reshape(oly_arange(12, OLY_FLOAT32), 2, 2, 3), oly_named(mesh, "x"));
    SHOW(oly_matmul(many, v));
    SHOW(oly_dot_general(many, many, .batch = "0; 0", .contracting = "2; 2"));
    SHOW(oly_dot_general(a, oly_astype(b, OLY_BFLOAT16), .contracting = "1; 0", .preferred_element_type = OLY_FLOAT32));

    title("Einstein's sums: letters that the result does not name are summed over");
    SHOW(oly_einsum("ij,jk->ki", a, b));
    SHOW(oly_einsum("ij->j", a));
    SHOW(oly_einsum("bij,bij->b", many, many));
    SHOW(oly_einsum("ij,kj,kl->il", a, a, a)); /* ordered by least computation */
    SHOW(oly_einsum_options("ij,jk->ik", (.out_sharding = oly_named(mesh, "y")), a, b));
}

/* Of split spatial dimensions only the elements that windows read beyond a device's part are exchanged. */
static void windows(void)
{
    title("convolutions");
    oly_array signal = oly_device_put(oly_arange(8, OLY_FLOAT32), oly_named(mesh, "(x,y)"));
    oly_array kernel = oly_from_host((const float[]){1, 0, -1}, OLY_FLOAT32, 1, (const int64_t[]){3});
    SHOW(oly_convolve(signal, kernel, "same"));
    SHOW(oly_correlate(signal, kernel, "valid"));
    oly_array image = oly_reshape(numbers(4, 4, "x, y"), 1, 1, 4, 4), mean = oly_full(0.25, OLY_FLOAT32, 1, 1, 2, 2);
    SHOW(oly_conv(image, mean));
    SHOW(oly_conv(image, mean, .strides = "2, 2", .padding = "SAME"));

    title("pooling");
    SHOW(oly_max_pool(numbers(4, 4, "x, y"), .window = "2, 2", .strides = "2, 2"));
    SHOW(oly_avg_pool(numbers(4, 4, "x, y"), .window = "2, 2", .strides = "2, 2"));
    SHOW(oly_reduce_window(signal, "sum", .window = "3"));
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    if (oly_device_count() != 8) {
        fprintf(stderr, "linear_algebra: needs 8 devices, there are %d: try launch/olyrun -n 2 -d 4 linear_algebra\n",
                oly_device_count());
        oly_finalize();
        return 1;
    }
    mesh = oly_make_mesh("x=2, y=4");
    products(numbers(2, 3, "x"), numbers(3, 4, "None, y"));
    windows();
    return oly_finalize();
}
