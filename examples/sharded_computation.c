/* SPDX-License-Identifier: BSD-3-Clause */
/* Sharded computation: how an array is placed on devices, and how computation follows its data.
 *
 * Makes an array on one device, splits it over a mesh of 2 x 4 devices, applies an elementwise function (which keeps
 * the layout), sums over the rows (which leaves the result partially replicated) and then requests another layout.
 *
 * Run:    launch/olyrun -n 1 -d 8 build/examples/sharded_computation     (any ranks x devices that make 8 or more)
 * Prints: from process 0, the devices, each sharding, drawings of which device holds what, and the values. */
#include <olympus.h>

/* Whether this process is the one that prints. */
static bool speaker(void)
{
    return oly_process_index() == 0;
}

static void draw(oly_array x)
{
    if (speaker())
        oly_visualize(stdout, x);
}

/* Prints values that may be on several processes: every process takes part in the gather, one prints. */
static void print_values(oly_array x)
{
    oly_array copy = oly_device_put(x, oly_named(oly_sharding_mesh(oly_sharding_of(x)), ""));
    if (speaker())
        oly_printf("%A\n", copy);
}

static void f_elementwise(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_mul(2, oly_sin(in[0])), 1);
}

static void f_contract(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(in[0], .axes = "0");
}

/* The same sum, with the placement of its result. */
static void f_contract_2(const oly_array *in, oly_array *out, void *user)
{
    oly_sharding sharding = user;
    out[0] = oly_with_sharding_constraint(oly_sum(in[0], .axes = "0"), sharding);
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    if (oly_device_count() < 8) {
        if (speaker())
            fprintf(stderr, "sharded_computation needs 8 devices, there are %d: try launch/olyrun -n 1 -d 8 %s\n",
                    oly_device_count(), argv[0]);
        oly_finalize();
        return 1;
    }

    /* 1. Devices, and an array on one of them. */
    for (int k = 0; k < oly_device_count() && speaker(); k++)
        oly_printf("%D%s", oly_get_device(k), k + 1 < oly_device_count() ? " " : "\n");
    oly_array arr = oly_reshape(oly_arange(32, OLY_FLOAT32), 4, 8);
    if (speaker())
        oly_printf("%S\n", oly_sharding_of(arr));
    draw(arr);

    /* 2. The same array on a mesh: rows split over x, columns over y. */
    oly_mesh mesh = oly_make_mesh("x=2, y=4");
    oly_sharding sharding = oly_named(mesh, "x, y");
    if (speaker())
        oly_printf("%S\n", sharding);
    oly_array arr_sharded = oly_device_put(arr, sharding);
    print_values(arr_sharded);
    draw(arr_sharded);

    /* 3. Computation follows data: each device computes on the part that it holds. */
    oly_array result = oly_apply(oly_jit(f_elementwise, 1, 1), arr_sharded);
    bool match = oly_sharding_equivalent(oly_sharding_of(result), oly_sharding_of(arr_sharded), 2, oly_shape(result));
    if (speaker())
        printf("shardings match: %s\n", match ? "True" : "False");

    /* 4. A sum over rows is reduced over x; devices 0 and 4, 1 and 5, ... end up with the same elements. */
    result = oly_apply(oly_jit(f_contract, 1, 1), arr_sharded);
    draw(result);
    print_values(result);

    /* 5. Requesting another layout of the result. */
    oly_sharding over_x = oly_named(mesh, "x");
    result = oly_apply(oly_jit(f_contract_2, 1, 1, .user = (void *)over_x), arr_sharded);
    draw(result);
    print_values(result);
    return oly_finalize();
}
