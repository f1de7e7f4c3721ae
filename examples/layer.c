/* SPDX-License-Identifier: BSD-3-Clause */
/* One layer of a neural network, sigmoid(x @ W + b), with x and W split over eight devices, in the three ways to distribute
 * computation. All three give the same numbers.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/layer      (eight devices, on any number of ranks)
 * Prints: from process 0, the intermediate types and the layer's four results, for each way. */
#include <olympus.h>

/* Only process 0 prints. */
static FILE *audience;

static oly_array layer(oly_array x, oly_array weights, oly_array bias)
{
    return oly_sigmoid(oly_add(oly_matmul(x, weights), bias));
}

/* Automatic and explicit: the whole layer; the planner inserts the sum over the devices. */
static void whole(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = layer(in[0], in[1], in[2]);
    oly_fprintf(audience, "x %T, weights %T, bias %T: %T\n", in[0], in[1], in[2], out[0]);
}

/* Manual: one device's part of the product, and an explicit sum. */
static void shard(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sigmoid(oly_add(oly_psum(oly_matmul(in[0], in[1]), "x"), in[2]));
    oly_fprintf(audience, "x %T, weights %T, bias %T: %T\n", in[0], in[1], in[2], out[0]);
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    audience = oly_process_index() == 0 ? stdout : fopen("/dev/null", "w");
    if (oly_device_count() < 8) {
        fprintf(stderr, "layer: %d devices; at least 8 are needed: launch/olyrun -n 2 -d 4 build/examples/layer\n",
                oly_device_count());
        oly_finalize();
        return 1;
    }

    /* Every process runs the same code, every device generates its own part. */
    oly_array keys = oly_random_split(oly_random_key(1701), 4);
    oly_array x = oly_random_normal(oly_slice(keys, "1"), OLY_FLOAT32, 32);
    oly_array weights = oly_random_normal(oly_slice(keys, "2"), OLY_FLOAT32, 32, 4);
    oly_array bias = oly_random_normal(oly_slice(keys, "3"), OLY_FLOAT32, 4);

    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array x_cut = oly_device_put(x, oly_named(mesh, "x"));
    oly_array weights_everywhere = oly_device_put(weights, oly_named(mesh, ""));
    oly_fn f = oly_jit(whole, 3, 1);
    oly_fprintf(audience, "automatic: ");
    oly_fprintf(audience, "           %A\n", oly_apply(f, x_cut, weights_everywhere, bias));

    oly_mesh explicit_mesh = oly_make_mesh("X=8:explicit");
    oly_set_mesh(explicit_mesh);
    x_cut = oly_device_put(x, oly_P("X"));
    weights_everywhere = oly_device_put(weights, oly_P(""));
    oly_fprintf(audience, "explicit:  ");
    oly_fprintf(audience, "           %A\n", oly_apply(f, x_cut, weights_everywhere, bias));
    oly_set_mesh(NULL);

    oly_array result = NULL;
    oly_fprintf(audience, "manual:    ");
    oly_shard_map(shard, NULL, mesh, OLY_IN(x, weights, bias), OLY_SPECS("x", "x, None", "None"), OLY_OUT(result),
                  OLY_SPECS("None"));
    oly_fprintf(audience, "           %A\n", result);
    return oly_finalize();
}
