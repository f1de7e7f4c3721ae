/* SPDX-License-Identifier: BSD-3-Clause */
/* A look inside functions: values printed while a plan runs, and conditions that are checked where values are computed.
 *
 * A C printf in a function prints once, while the function is traced. oly_debug_print becomes part of the plan: it prints whenever the
 * running plan reaches it, in loops, branches, derivatives and maps, too. oly_check makes an error of a condition that does not hold,
 * on all ranks, with the values.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/inside      (any ranks, any devices that 4 divides)
 * Prints: the values in the order of the program; inside oly_shard_map each device its own shards. */
#include <olympus.h>

/* -- printing from a loop ------------------------------------------------------------------------------------------- */
static void halve(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_mul(carry[0], 0.5);
    oly_debug_print("iteration {}: sum {:.4f}", i, oly_sum(carry[0]));
}

static void decay(const oly_array *in, oly_array *out, void *user)
{
    oly_debug_print("starts from {} of type %T", in[0], in[0]);
    out[0] = in[0];
    oly_fori(0, 3, halve, 1, out, user);
}

/* -- printing on every device --------------------------------------------------------------------------------------- */
static void local_sums(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(in[0], .keepdims = true);
    oly_debug_print("a device has {} with the sum {}", in[0], out[0]);
}

/* -- checking ------------------------------------------------------------------------------------------------------- */
static void square_root(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_check(oly_ge(in[0], 0), "no square root of {}", in[0]);
    out[0] = oly_sqrt(in[0]);
}

/* -- calling back ---------------------------------------------------------------------------------------------------- */

/* Running sums, by the host. */
static int running_sums(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    const float *x = in[0].data;
    float *sums = out[0].data, sum = 0;
    (void)called, (void)user;
    for (int64_t k = 0; k < in[0].shape[0]; k++)
        sums[k] = sum += x[k];
    return 0; /* or another number after an error, with called->message */
}

/* The same for the shard of every device, without communication. */
static int negative(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    (void)called, (void)user;
    for (int64_t k = 0; k < in[0].shape[0]; k++)
        ((float *)out[0].data)[k] = -((const float *)in[0].data)[k];
    return 0;
}

static void calls_back(const oly_array *in, oly_array *out, void *user)
{
    oly_array sums = NULL;
    oly_callback(running_sums, user, OLY_IN(oly_mul(in[0], 2)), OLY_TYPES(OLY_TYPE(OLY_FLOAT32, 8)), OLY_OUT(sums));
    oly_callback_with(negative, user, OLY_CALLBACK_OF(.pure = true, .factors = "i->i"), OLY_IN(sums),
                      OLY_TYPES(OLY_TYPE_LIKE(sums)), OLY_OUT(out[0]));
}

/* -- a derivative of its own ---------------------------------------------------------------------------------------- */

/* The identity, with a derivative of at most 1. */
static void identity(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
}

static void clipped(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_clip(in[0], -1, 1); /* no residuals: only the cotangent */
}

static void cubes(const oly_array *in, oly_array *out, void *user)
{
    oly_fn limit = oly_custom_vjp(identity, identity, clipped, 1, 1, 0, .user = user);
    oly_array x = oly_apply(limit, in[0]);
    out[0] = oly_sum(oly_mul(x, oly_mul(x, x)));
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    oly_mesh mesh = oly_make_mesh("i=4, j=-1");
    oly_array x = oly_device_put(oly_astype(oly_arange(8, OLY_INT32), OLY_FLOAT32), oly_named(mesh, "i"));

    oly_array y = NULL, sums = NULL;
    oly_call(oly_jit(decay, 1, 1), OLY_IN(x), OLY_OUT(y));
    oly_call(oly_grad(oly_jit(decay, 1, 1)), OLY_IN(oly_sum(x)), OLY_OUT(y));
    oly_debug_print("the derivative is {}", y);
    oly_shard_map(local_sums, NULL, mesh, OLY_IN(x), OLY_SPECS("(i,j)"), OLY_OUT(sums), OLY_SPECS("(i,j)"));
    oly_debug_print_shards("%D: {}", x);

    oly_call(oly_jit(calls_back, 1, 1), OLY_IN(x), OLY_OUT(y));
    oly_debug_print("by the host: {}", y);
    oly_debug_print("clipped derivative: {}", oly_apply(oly_grad(oly_jit(cubes, 1, 1)), oly_mul(x, 0.25)));

    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_fn root = oly_jit(square_root, 1, 1);
    oly_call(root, OLY_IN(x), OLY_OUT(y));
    if (oly_call(root, OLY_IN(oly_sub(x, 3)), OLY_OUT(y)) != OLY_OK && oly_process_index() == 0)
        oly_printf("%s\n", oly_last_error());
    oly_clear_error();
    return oly_finalize();
}
