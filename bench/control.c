/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of loops, branches, functions of the program, and placements. */
#include "families.h"

enum { TURNS = 16 };

static void double_it(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    c[0] = oly_sqrt(oly_add(oly_mul(c[0], c[0]), 1));
}

static void counted(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, TURNS, double_it, 1, out, NULL);
}

static oly_array not_yet(const oly_array *c, void *user)
{
    (void)user;
    return oly_lt(c[1], TURNS);
}
static void once_more(oly_array *c, void *user)
{
    (void)user;
    c[0] = oly_sqrt(oly_add(oly_mul(c[0], c[0]), 1));
    c[1] = oly_add(c[1], 1);
}
static void conditional(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array c[] = {in[0], oly_scalar(0, OLY_INT32)};
    oly_while(not_yet, once_more, 2, c, NULL);
    out[0] = c[0];
}

static void recur(oly_array *c, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    c[0] = oly_tanh(oly_add(oly_mul(0.5, c[0]), x[0]));
    y[0] = c[0];
}
static void scanned(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array c = oly_zeros(OLY_FLOAT32, oly_dim(in[0], 1));
    oly_scan(oly_dim(in[0], 0), false, recur, 1, &c, 1, in, 1, out, NULL);
}

static void larger(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], 2);
}
static void smaller(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], 0.5);
}
static void branched(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_cond(oly_gt(in[1], 0), larger, smaller, 1, in, 1, out, NULL);
}

static void each_square(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    const float *x = in[0].data;
    float *y = out[0].data;
    (void)called, (void)user;
    for (int64_t i = 0; i < out[0].shape[0]; i++)
        y[i] = x[i] * x[i];
}
static const oly_kernel squares = {.name = "squares", .factors = "i->i", .cpu = each_square, .flops = 1};
static void own_kernel(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_kernel_call(&squares, OLY_IN(in[0]), OLY_OUT(out[0]));
}

static void smooth(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_softplus(oly_stop_gradient(in[0])));
}
static void smooth_forward(const oly_array *in, oly_array *out, void *user)
{
    smooth(in, out, user);
    out[1] = oly_sigmoid(in[0]);
}
static void smooth_backward(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], in[1]);
}
static void own_derivative(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_fn f = oly_custom_vjp(smooth, smooth_forward, smooth_backward, 1, 1, 1);
    out[0] = oly_apply(oly_grad(f), in[0]);
}

static void constrained(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_with_sharding_constraint(in[0], oly_named(bench_mesh(), "None, x")), 1);
}

#define WORK(body, amount)                                                                                             \
    static void run_##body(const bench_row *row)                                                                       \
    {                                                                                                                  \
        double n = (double)bench_size(row);                                                                            \
        bench_measure(row, body, #body, amount);                                                                       \
    }
WORK(counted, 8. * TURNS * n)
WORK(conditional, 8. * TURNS * n)
WORK(scanned, 8. * 64 * n)
WORK(branched, 8. * n)
WORK(own_kernel, 8. * n)
WORK(own_derivative, 8. * n)
WORK(constrained, 8. * n * n)

/* Over an Explicit axis: between shardings that are part of the type. */
static void typed(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_add(oly_reshard(in[0], oly_named(*(oly_mesh *)user, "None, x")), 1);
}

typedef struct application {
    oly_fn f;
    oly_array x;
} application;

static void apply(void *data)
{
    application *a = data;
    OLY_SCOPE
    {
        oly_block_until_ready(oly_apply(a->f, a->x));
    }
}

static void run_typed(const bench_row *row)
{
    int64_t n = bench_size(row);
    char axes[40];
    snprintf(axes, sizeof axes, "x=%d:explicit", oly_device_count());
    oly_mesh mesh = oly_make_mesh(axes);
    application a = {oly_jit(typed, 1, 1, .user = &mesh),
                     oly_device_put(oly_zeros(OLY_FLOAT32, n, n), oly_named(mesh, "x"))};
    bench_report(row->name, bench_best(apply, &a), 8. * (double)n * (double)n, "GB/s");
}

const bench_row bench_control_rows[] = {
    {"control_counted", "16 iterations of sqrt(x * x + 1), 2^22 float32", run_counted, 1 << 22, 1 << 8, "copy",
     "f32[n]"},
    {"control_while", "the same while a counter is below 16", run_conditional, 1 << 22, 1 << 8, "copy", "f32[n]"},
    {"control_scan", "tanh(c / 2 + x) over 64 rows of 2^18", run_scanned, 1 << 18, 1 << 8, "copy", "f32[64,n]columns"},
    {"control_branch", "one of two products, 2^24 float32", run_branched, 1 << 24, 1 << 8, "copy", "f32[n] f32[]!"},
    {"control_own_kernel", "a C function over shards, 2^24 float32", run_own_kernel, 1 << 24, 1 << 8, "copy", "f32[n]"},
    {"control_own_derivative", "the gradient of a function with a derivative of its own, 2^22", run_own_derivative,
     1 << 22, 1 << 8, "copy", "f32[n]"},
    {"control_constraint", "4096 x 4096 float32 by rows requested by columns", run_constrained, 4096, 64, "copy",
     "f32[n,n]"},
    {"control_explicit", "the same over an Explicit axis", run_typed, 4096, 64, "copy", NULL},
    {0},
};
