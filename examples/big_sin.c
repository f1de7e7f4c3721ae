/* SPDX-License-Identifier: BSD-3-Clause */
/* In-place computation on one device and on four: the function stays the same, only the placement of the data changes.
 *
 * Computes the sines of a 40 x 40 array in place: the array is both input and output of the call, so it is
 * donated and the result takes its memory. First on one device, then split by rows over a mesh of 4 x 1, then along
 * both dimensions over 2 x 2.
 *
 * Run:    launch/olyrun -n 1 -d 4 build/examples/big_sin      (any ranks x devices that make 4 or more)
 * Prints: from process 0, for each placement: the sharding, a drawing, and the sum of the results. */
#include <olympus.h>

enum { SIDE = 40 };

static void big_sin(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sin(in[0]);
}

static void run(oly_fn compiled, const char *title, oly_sharding sharding)
{
    oly_array numbers = oly_add(oly_arange(SIDE * SIDE, OLY_FLOAT32), 1);
    oly_array x = oly_device_put(oly_reshape(numbers, SIDE, SIDE), sharding);

    oly_call(compiled, OLY_IN(x), OLY_OUT(x)); /* x = sin(x): the old x is gone */

    oly_array sum = oly_sum(oly_astype(x, OLY_FLOAT64));
    if (oly_process_index() != 0) /* process 0 has a part of each of these meshes, others may have none */
        return;
    oly_printf("%s: %S\n", title, oly_sharding_of(x));
    oly_visualize(stdout, x);
    printf("sum of the sines: %.6f\n", oly_item(sum));
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    if (oly_device_count() < 4) {
        if (oly_process_index() == 0)
            fprintf(stderr, "big_sin needs 4 devices, there are %d: try launch/olyrun -n 1 -d 4 %s\n",
                    oly_device_count(), argv[0]);
        oly_finalize();
        return 1;
    }
    oly_fn compiled = oly_jit(big_sin, 1, 1); /* planned anew for each sharding */
    run(compiled, "one device", oly_single_device(oly_get_device(0)));
    run(compiled, "rows over four devices", oly_named(oly_make_mesh("x=4, y=1"), "x, None"));
    run(compiled, "rows and columns over four devices", oly_named(oly_make_mesh("x=2, y=2"), "x, y"));
    return oly_finalize();
}
