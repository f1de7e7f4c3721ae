/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of your own: C functions over shards, which the planner splits, moves data for and differentiates like any operation.
 *
 * `diffuse` is a stencil: it asks for one element of the neighbours on every side (a halo) and treats the edges of the plate itself.
 * `multiply` is a matrix product whose summed dimension may be split over devices, too: then it computes partial sums. Both are compared
 * with the same program in operations of the library.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/user_kernel      (any ranks, any devices that 4 divides)
 * Prints: the largest differences, and a derivative; from process 0. */
#include <olympus.h>

/* -- a stencil ------------------------------------------------------------------------------------------------------ */

/* One step of the heat equation. Cells at the edge of the plate keep their value. */
static void diffuse(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    const float *u = in[0].data; /* with its halo */
    float *next = out[0].data;
    int64_t width = in[0].shape[1], rows = out[0].shape[0], columns = out[0].shape[1];
    (void)called, (void)user;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const float *at = u + (i + in[0].before[0]) * width + j + in[0].before[1];
            int64_t row = out[0].origin[0] + i, column = out[0].origin[1] + j; /* in the whole plate */
            bool edge = row == 0 || column == 0 || row == out[0].whole[0] - 1 || column == out[0].whole[1] - 1;
            next[i * columns + j] = edge ? *at : *at + 0.1f * (at[-width] + at[width] + at[-1] + at[1] - 4 * *at);
        }
}

static const oly_kernel diffusion = {.name = "diffusion",
                                     .factors = "ij->ij",
                                     .cpu = diffuse,
                                     .flops = 6,
                                     .dtypes = "float32",
                                     .halo = {{.radius = {1, 1}}}};

static void step_by_kernel(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    oly_kernel_call(&diffusion, OLY_IN(carry[0]), OLY_OUT(carry[0]));
}

static void step_by_slices(oly_array i, oly_array *carry, void *user)
{
    oly_array u = carry[0], mid = oly_slice(u, "1:-1, 1:-1");
    oly_array across = oly_add(oly_slice(u, ":-2, 1:-1"), oly_slice(u, "2:, 1:-1"));
    oly_array along = oly_add(oly_slice(u, "1:-1, :-2"), oly_slice(u, "1:-1, 2:"));
    (void)i, (void)user;
    carry[0] =
        oly_update(u, "1:-1, 1:-1", oly_add(mid, oly_mul(0.1, oly_sub(oly_add(across, along), oly_mul(4, mid)))));
}

static void ten_steps(const oly_array *in, oly_array *out, void *user)
{
    out[0] = out[1] = in[0];
    oly_fori(0, 10, step_by_kernel, 1, &out[0], user);
    oly_fori(0, 10, step_by_slices, 1, &out[1], user);
}

/* -- a product ------------------------------------------------------------------------------------------------------ */

static void multiply(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    const float *a = in[0].data, *b = in[1].data;
    float *c = out[0].data;
    int64_t rows = out[0].shape[0], columns = out[0].shape[1], inner = in[0].shape[1];
    (void)called, (void)user;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++) {
            float sum = 0;
            for (int64_t j = 0; j < inner; j++) /* those of this device */
                sum += a[i * inner + j] * b[j * columns + k];
            c[i * columns + k] = sum;
        }
}

/* in: a, b, the product, its cotangent */
static void multiply_backwards(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_matmul(in[3], oly_transpose(in[1]));
    out[1] = oly_matmul(oly_transpose(in[0]), in[3]);
}

static const oly_kernel product = {.name = "product",
                                   .factors = "ij,jk->ik",
                                   .cpu = multiply,
                                   .flops = 2,
                                   .dtypes = "float32",
                                   .vjp = multiply_backwards};

static void products(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_kernel_call(&product, OLY_IN(in[0], in[1]), OLY_OUT(out[0]));
    out[1] = oly_matmul(in[0], in[1]);
}

static void loss(const oly_array *in, oly_array *out, void *user)
{
    oly_array c[2];
    products(in, c, user);
    out[0] = oly_sum(oly_square(c[user ? 1 : 0]));
}

static double difference(oly_array x, oly_array y)
{
    return oly_item(oly_max(oly_abs(oly_sub(x, y)))); /* the same on every device */
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    oly_mesh mesh = oly_make_mesh("x=4, y=-1");
    oly_array u = oly_sin(oly_device_put(oly_reshape(oly_astype(oly_arange(32 * 24, OLY_INT32), OLY_FLOAT32), 32, 24),
                                         oly_named(mesh, "x, y")));
    oly_array by_kernel = NULL, by_slices = NULL;
    oly_call(oly_jit(ten_steps, 1, 2), OLY_IN(u), OLY_OUT(by_kernel, by_slices));

    oly_array a = oly_device_put(u, oly_named(mesh, "x, y")),
              b = oly_device_put(oly_transpose(u), oly_named(mesh, "y, None"));
    oly_array c = NULL, d = NULL, slope = NULL, expected = NULL;
    oly_call(oly_jit(products, 2, 2), OLY_IN(a, b), OLY_OUT(c, d));
    oly_call(oly_grad(oly_jit(loss, 2, 1)), OLY_IN(a, b), OLY_OUT(slope));
    oly_call(oly_grad(oly_jit(loss, 2, 1, .user = &mesh)), OLY_IN(a, b), OLY_OUT(expected));

    bool stencil = difference(by_kernel, by_slices) < 1e-5, multiplied = difference(c, d) < 1e-4,
         derived = difference(slope, expected) < 1e-3;
    if (oly_process_index() == 0)
        oly_printf("stencil %s, product %s, derivative %s\n", stencil ? "agrees" : "differs",
                   multiplied ? "agrees" : "differs", derived ? "agrees" : "differs");
    return oly_finalize();
}
