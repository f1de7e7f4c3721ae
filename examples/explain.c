/* SPDX-License-Identifier: BSD-3-Clause */
/* The plans of two functions, without running them: the steps, the data that moves, between which devices and why; and what
 * would change if an input were placed differently.
 *
 * Run:    launch/olyrun -n 1 -d 8 build/examples/explain [--json | --dot]     (any even number of devices)
 *         OLYMPUS_SIMULATE=64x8 build/examples/explain               (512 devices that do not exist)
 * Prints: from process 0, the plans of 100 steps of the 1-D heat equation and of relu(x @ y) on all devices, then the
 *         difference that replicating x makes. --json, --dot: the second plan in that form, for programs and for Graphviz. */
#include <olympus.h>
#include <string.h>

static void heat_step(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    oly_array u = carry[0];
    oly_array mid = oly_slice(u, "1:-1"), left = oly_slice(u, ":-2"), right = oly_slice(u, "2:");
    carry[0] = oly_update(u, "1:-1", oly_add(oly_mul(0.5, mid), oly_add(oly_mul(0.25, left), oly_mul(0.25, right))));
}

static void heat1d(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, 100, heat_step, 1, out, user);
}

static void matmul(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_relu(oly_matmul(in[0], in[1]));
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    int devices = oly_device_count();
    bool speaker = oly_process_index() == 0;
    if (devices % 2 != 0) {
        if (speaker)
            fprintf(stderr, "explain needs an even number of devices, there are %d: try launch/olyrun -n 1 -d 8 %s\n",
                    devices, argv[0]);
        oly_finalize();
        return 1;
    }

    char axes[64];
    snprintf(axes, sizeof axes, "a=%d, b=2", devices / 2);
    oly_mesh mesh = oly_make_mesh(axes);
    oly_array u = oly_device_put(oly_zeros(OLY_FLOAT32, 102), oly_named(mesh, "(a,b)"));
    oly_array x = oly_device_put(oly_ones(OLY_FLOAT32, 256, 128), oly_named(mesh, "a, b"));
    oly_array y = oly_device_put(oly_ones(OLY_FLOAT32, 128, 256), oly_named(mesh, "b, None"));
    oly_fn product = oly_jit(matmul, 2, 1);
    if (argc > 1) {
        if (speaker)
            oly_explain_as(stdout, strcmp(argv[1], "--dot") == 0 ? OLY_EXPLAIN_DOT : OLY_EXPLAIN_JSON, product, x, y);
    } else {
        oly_array everywhere = oly_device_put(oly_ones(OLY_FLOAT32, 256, 128), oly_named(mesh, "")); /* all processes */
        if (speaker) {
            if (oly_simulated())
                printf("Plans for %d devices that are not there.\n\n", devices);
            oly_explain(stdout, oly_jit(heat1d, 1, 1), u);
            printf("\n");
            oly_explain(stdout, product, x, y);
            printf("\n");
            oly_explain_diff(stdout, product, OLY_IN(x, y), product, OLY_IN(everywhere, y));
        }
    }
    return oly_finalize();
}
