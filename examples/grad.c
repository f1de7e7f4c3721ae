/* SPDX-License-Identifier: BSD-3-Clause */
/* Derivatives of functions of sharded arrays: gradients, products with Jacobians, second derivatives, loops.
 *
 * The gradient of a function is another function, planned like any other: each device computes its own part. Shown for sums of
 * sines on four devices, for a heat step written in slices (whose gradient is again a stencil), and for a hundred steps of a
 * pendulum in a loop, of which only the positions are stored.
 *
 * Run:    launch/olyrun -n 1 -d 4 build/examples/grad      (any ranks x devices that make 4 or more)
 * Prints: from process 0, values and derivatives. */
#include <olympus.h>

enum { SIDE = 40, CELLS = 6, STEPS = 100 };

/* Prints an array, gathered first because every process has only a part of it. */
static void say(const char *format, oly_array x)
{
    oly_array whole = oly_device_put(x, oly_named(oly_make_mesh("x=4"), ""));
    if (oly_process_index() == 0)
        oly_printf(format, whole);
}

/* -- the sum of a sharded array's sines ------------------------------------------------------------------------------ */
static void sum_of_sines(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_sin(in[0]));
}

static void big_sin(const char *mesh, const char *spec)
{
    oly_array numbers = oly_add(oly_arange(SIDE * SIDE, OLY_FLOAT32), 1), value = NULL, slope = NULL;
    oly_array x = oly_device_put(oly_reshape(numbers, SIDE, SIDE), oly_named(oly_make_mesh(mesh), spec));
    oly_fn with_slope = oly_value_and_grad(oly_jit(sum_of_sines, 1, 1));

    oly_call(with_slope, OLY_IN(x), OLY_OUT(value, slope));

    oly_array error = oly_max(oly_abs(oly_sub(slope, oly_cos(x)))), corner = oly_slice(slope, "0, :3");
    say("sum of sines: %A\n", oly_round_to(value, 3));
    if (oly_process_index() == 0)
        oly_printf("its gradient: %S\n", oly_sharding_of(slope));
    say("  begins with %A", corner);
    say(" and differs from the cosine by %A\n", error);
}

/* -- products with the Jacobian of a heat step ----------------------------------------------------------------------- */
static void heat_step(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array middle = oly_slice(in[0], "1:-1"), sides = oly_add(oly_slice(in[0], ":-2"), oly_slice(in[0], "2:"));
    out[0] = oly_update(in[0], "1:-1", oly_add(oly_mul(0.5, middle), oly_mul(0.25, sides)));
}

static void heat(oly_mesh mesh)
{
    oly_array cells = oly_device_put(oly_ones(OLY_FLOAT32, CELLS), oly_named(mesh, "x"));
    oly_array weights = oly_add(oly_arange(CELLS, OLY_FLOAT32), 1), next = NULL, back = NULL, forth = NULL;
    oly_fn step = oly_jit(heat_step, 1, 1);

    oly_call(oly_vjp(step), OLY_IN(cells, weights), OLY_OUT(next, back));
    say("weights 1 to 6 pulled back through a heat step: %A\n", back);
    oly_call(oly_jvp(step), OLY_IN(cells, weights), OLY_OUT(next, forth));
    say("the same pushed forward: %A\n", forth);
}

/* -- second derivatives: a step of Newton's method without a matrix -------------------------------------------------- */
static void valley(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_sub(oly_exp(in[0]), oly_mul(2.0, in[0]))); /* minimal where exp(x) = 2 */
}

static void newton(oly_mesh mesh)
{
    oly_fn slope = oly_grad(oly_jit(valley, 1, 1)), bend = oly_jvp(slope);
    oly_array x = oly_device_put(oly_zeros(OLY_FLOAT32, 4), oly_named(mesh, "x")), g = NULL, curvature = NULL;
    for (int k = 0; k < 6; k++) {
        oly_call(bend, OLY_IN(x, oly_ones(OLY_FLOAT32, 4)), OLY_OUT(g, curvature)); /* diagonal here */
        x = oly_sub(x, oly_div(g, curvature));
    }
    say("Newton's method finds %A\n", x);
}

/* -- inside a function: intermediate values, and constants ------------------------------------------ */
static void scaled(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array largest = oly_stop_gradient(oly_max(in[0])), y = oly_div(in[0], largest), sum = oly_sum(oly_square(y));
    oly_gradients(sum, OLY_IN(in[0], y), OLY_OUT(out[0], out[1]));
}

static void inside(void)
{
    oly_array by_x = NULL, by_y = NULL;
    oly_call(oly_jit(scaled, 1, 2), OLY_IN(oly_add(oly_arange(4, OLY_FLOAT32), 1)), OLY_OUT(by_x, by_y));
    say("by x %A,", by_x);
    say(" by the scaled x %A\n", by_y);
}

/* -- a loop: how the end of a pendulum's swing depends on its start -------------------------------------------------- */
static void kick(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sub(in[1], oly_mul(0.05, oly_sin(in[0]))); /* the new speed */
}

static void swing(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    carry[1] = oly_apply(*(oly_fn *)user, carry[0], carry[1]);
    carry[0] = oly_add(carry[0], oly_mul(0.05, carry[1]));
}

static void pendulum(const oly_array *in, oly_array *out, void *user)
{
    oly_array carry[] = {in[0], oly_mul(in[0], 0)};
    oly_fori(0, STEPS, swing, 2, carry, user);
    out[0] = oly_sum(carry[0]);
}

static void loop(oly_mesh mesh)
{
    oly_array angles = oly_device_put(oly_mul(oly_add(oly_arange(4, OLY_FLOAT32), 1), 0.5), oly_named(mesh, "x"));
    oly_fn thrifty = oly_checkpoint(oly_jit(kick, 2, 1)); /* stores angle and speed, not the sine */
    oly_array slope = oly_apply(oly_grad(oly_jit(pendulum, 1, 1, .user = &thrifty)), angles);
    say("a hundred steps later an angle has moved %A times as far\n", oly_round_to(slope, 4));
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    if (oly_device_count() < 4) {
        if (oly_process_index() == 0)
            fprintf(stderr, "grad needs 4 devices, there are %d: try launch/olyrun -n 1 -d 4 %s\n", oly_device_count(),
                    argv[0]);
        oly_finalize();
        return 1;
    }
    big_sin("x=4, y=1", "x, None");
    big_sin("x=2, y=2", "x, y");
    oly_mesh mesh = oly_make_mesh("x=4");
    heat(mesh);
    newton(mesh);
    inside();
    loop(mesh);
    return oly_finalize();
}
