/* SPDX-License-Identifier: BSD-3-Clause */
/* Control flow inside functions: while loops, loops over the first dimension of arrays, branches; costs of plans; gradients that
 * need less memory.
 *
 * A C `if` or `while` runs once, while the function is traced. Control flow that depends on values uses the functions shown
 * here and stays a loop or a branch in the plan. (tour.c and the heat programs show oly_fori, the counted loop.)
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/control      (any ranks, any devices)
 * Prints: from process 0, the results of each function. */
#include <olympus.h>
#include <string.h>

static oly_mesh mesh;

/* Shows a result, gathered on every process. */
static void show(const char *what, oly_array x)
{
    oly_array whole = oly_device_put(x, oly_named(mesh, ""));
    if (oly_process_index() == 0)
        oly_printf("%-34s %A\n", what, whole);
}

/* -- while: Newton's method until all square roots have converged ----------------------------------------------------------- */
static oly_array wrong(const oly_array *carry, void *user)
{
    (void)user;
    oly_array roots = carry[0], x = carry[1];
    return oly_gt(oly_max(oly_abs(oly_sub(oly_square(roots), x))), 1e-3);
}

static void improve(oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_mul(0.5, oly_add(carry[0], oly_div(carry[1], carry[0])));
    carry[2] = oly_add(carry[2], 1);
}

static void square_roots(const oly_array *in, oly_array *out, void *user)
{
    oly_array carry[] = {oly_ones_like(in[0]), in[0], oly_scalar(0, OLY_INT32)};
    oly_while(wrong, improve, 3, carry, user);
    out[0] = carry[0];
    out[1] = carry[2];
}

/* -- scan: over the rows of arrays; a carry passes through, every row gives a result ------------------------------- */
static void deposit(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    carry[0] = oly_add(oly_mul(1.5, carry[0]), x[0]);
    y[0] = carry[0];
}

static void savings(const oly_array *in, oly_array *out, void *user)
{
    oly_array balance = oly_zeros(OLY_FLOAT32, oly_dim(in[0], 1));
    oly_scan(oly_dim(in[0], 0), false, deposit, 1, &balance, 1, in, 1, out, user);
}

/* -- branches: only the one that is chosen runs -------------------------------------------------------------------------- */
static void up(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sort(in[0], 0);
}
static void down(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sort(in[0], 0, .descending = true);
}
static void as_it_is(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
}

static void ordered(const oly_array *in, oly_array *out, void *user)
{
    const oly_function ways[] = {as_it_is, up, down};
    oly_switch(in[1], 3, ways, 1, in, 1, out, user);
}

static void falling_if_negative(const oly_array *in, oly_array *out, void *user)
{
    oly_cond(oly_lt(oly_slice(in[0], "0"), 0), down, up, 1, in, 1, out, user);
}

/* -- gradients that store less -------------------------------------------------------------------------------------------- */
static void long_way(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array y = in[0];
    for (int k = 0; k < 3; k++) /* a C loop: three times the same operations in the plan */
        y = oly_sin(oly_mul(y, y));
    out[0] = oly_sum(y);
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    char axis[32];
    snprintf(axis, sizeof axis, "x=%d", oly_device_count());
    mesh = oly_make_mesh(axis);
    oly_array x = oly_device_put(oly_square(oly_arange(9, OLY_FLOAT32)), oly_named(mesh, "x"));
    oly_array roots = NULL, steps = NULL, result = NULL;

    oly_call(oly_jit(square_roots, 1, 2), OLY_IN(oly_slice(x, "1:")), OLY_OUT(roots, steps));
    show("square roots", oly_round_to(roots, 3));
    show("found in steps", steps);

    oly_array rows = oly_device_put(oly_ones(OLY_FLOAT32, 4, 2), oly_named(mesh, "None, x"));
    show("balances after each year", oly_ravel(oly_apply(oly_jit(savings, 1, 1), rows)));

    oly_fn order = oly_jit(ordered, 2, 1);
    show("as they are", oly_apply(order, x, oly_scalar(0, OLY_INT32)));
    show("rising", oly_apply(order, x, oly_scalar(1, OLY_INT32)));
    show("falling", oly_apply(order, x, oly_scalar(2, OLY_INT32)));
    oly_fn either = oly_jit(falling_if_negative, 1, 1);
    show("falling if it begins below 0", oly_apply(either, oly_sub(x, 1)));

    /* The gradient of a checkpointed function is the same; its plan computes more and stores less. */
    oly_fn far = oly_jit(long_way, 1, 1);
    result = oly_sub(oly_apply(oly_grad(far), x), oly_apply(oly_grad(oly_checkpoint(far)), x));
    show("the same gradient", oly_all(oly_eq(result, 0)));

    /* Plans are kept: a loop of calls makes them once, whatever the numbers. */
    oly_plan_cache first, now;
    for (int k = 0; k < 10; k++)
        OLY_SCOPE
        {
            oly_add(x, k);
            oly_plan_cache_state(k == 0 ? &first : &now);
        }
    show("plans for nine more numbers", oly_scalar(now.made - first.made, OLY_INT32));

    /* GPUs launch kernels; CPUs compute in place and count nothing. */
    oly_device_counts work;
    oly_get_device_counts(&work);
    bool on_cpus = strcmp(oly_device_platform(oly_local_device(0)), "cpu") == 0;
    if (oly_process_index() == 0)
        printf("%-34s %s\n", "kernels are launched", (work.launches > 0) == !on_cpus ? "on GPUs only" : "elsewhere");

    /* What a plan costs, before it runs: a sum over a split array needs all devices. */
    oly_plan_costs costs;
    oly_costs(&costs, far, x);
    if (oly_process_index() == 0)
        printf("%-34s %s\n", "devices exchange", costs.collectives > 0 ? "something" : "nothing");
    return oly_finalize();
}
