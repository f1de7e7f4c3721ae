/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of small programs: what users do that is more than one operation. Bodies get arrays by the description of their row
 * (families.h). */
#include "families.h"

enum { ITERATIONS = 25 };

/* -- learning -------------------------------------------------------------------------------------------------------------- */

/* x, w1, w2, w3: the loss of a network 784-2048-2048-10. */
static void network_loss(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array h = oly_relu(oly_matmul(oly_relu(oly_matmul(in[0], in[1])), in[2]));
    out[0] = oly_mean(oly_square(oly_matmul(h, in[3])));
}

static void network_step(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array slope[3];
    oly_array *slopes[] = {&slope[0], &slope[1], &slope[2]};
    oly_fn f = oly_jit(network_loss, 4, 1);
    oly_fn g = oly_grad(f, .argnums = "1, 2, 3");
    oly_call_n(g, 4, in, 3, slopes);
    oly_array moved = oly_sub(in[1], oly_mul(0.01, slope[0]));
    out[0] = oly_add(oly_sum(moved), oly_add(oly_sum(oly_sub(in[2], oly_mul(0.01, slope[1]))),
                                             oly_sum(oly_sub(in[3], oly_mul(0.01, slope[2])))));
}

/* q, k, v [batch, heads, length, features] */
static oly_array attention(oly_array q, oly_array k, oly_array v)
{
    oly_array scores = oly_mul(oly_einsum("bhqd,bhkd->bhqk", q, k), 0.125);
    return oly_einsum("bhqk,bhkd->bhqd", oly_softmax(scores, -1), v);
}

static void attend(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = attention(in[0], in[1], in[2]);
}

/* -- k-means: points [n, 4], 16 centres --------------------------------------------------------------------------------------- */

static void cluster(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    enum { MANY = 16 };
    oly_array x = in[0], centres = in[1];
    oly_array distance =
        oly_sub(oly_sum(oly_square(centres), OLY_AXES(1)), oly_mul(2, oly_matmul(x, oly_transpose(centres))));
    oly_array nearest = oly_argmin(distance, OLY_AXES(1));
    oly_array sums = oly_segment_sum(x, nearest, MANY);
    oly_array counts = oly_segment_sum(oly_ones(OLY_FLOAT32, oly_dim(x, 0)), nearest, MANY);
    out[0] = oly_div(sums, oly_expand_dims(oly_max2(counts, 1), 1));
}

/* -- linear systems ----------------------------------------------------------------------------------------------------------- */

static oly_array laplace(oly_array u)
{
    int64_t one[] = {1, 1};
    oly_array p = oly_pad(u, 0, one, one, NULL);
    oly_array rows = oly_add(oly_slice(p, ":-2, 1:-1"), oly_slice(p, "2:, 1:-1"));
    oly_array columns = oly_add(oly_slice(p, "1:-1, :-2"), oly_slice(p, "1:-1, 2:"));
    return oly_sub(oly_mul(4, u), oly_add(rows, columns));
}

/* carry: solution, residual, direction, square of the residual */
static void conjugate(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array w = laplace(c[2]), alpha = oly_div(c[3], oly_sum(oly_mul(c[2], w)));
    c[0] = oly_add(c[0], oly_mul(alpha, c[2]));
    c[1] = oly_sub(c[1], oly_mul(alpha, w));
    oly_array square = oly_sum(oly_mul(c[1], c[1]));
    c[2] = oly_add(c[1], oly_mul(oly_div(square, c[3]), c[2]));
    c[3] = square;
}

static void gradients(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array c[] = {oly_zeros_like(in[0]), in[0], in[0], oly_sum(oly_mul(in[0], in[0]))};
    oly_fori(0, ITERATIONS, conjugate, 4, c, NULL);
    out[0] = c[0];
}

/* values, columns, rows (ascending), x */
static void sparse_product(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array terms = oly_mul(in[0], oly_take(in[3], in[1], 0, NULL));
    out[0] = oly_segment_sum(terms, in[2], oly_dim(in[3], 0));
}

/* -- recurrences along a dimension --------------------------------------------------------------------------------------------- */

/* carry: p, q of the row before; x: the right-hand side */
static void eliminate(oly_array *c, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    oly_array divisor = oly_sub(2.5, c[0]);
    c[1] = oly_div(oly_add(x[0], c[1]), divisor);
    c[0] = oly_div(1, divisor);
    y[0] = c[0];
    y[1] = c[1];
}

static void substitute(oly_array *c, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    y[0] = c[0] = oly_add(oly_mul(x[0], c[0]), x[1]);
}

/* Solves -u[i-1] + 2.5 u[i] - u[i+1] = b[i] for each column of b. */
static oly_array solve_columns(oly_array b)
{
    int64_t n = oly_dim(b, 0);
    oly_array zero = oly_zeros(OLY_FLOAT32, oly_dim(b, 1)), c[] = {zero, zero}, pq[2], u;
    oly_scan(n, false, eliminate, 2, c, 1, &b, 2, pq, NULL);
    oly_scan(n, true, substitute, 1, &zero, 2, pq, 1, &u, NULL);
    return u;
}

/* Implicit in both directions. */
static void sweeps(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_transpose(solve_columns(oly_transpose(solve_columns(in[0]))));
}

/* carry: the two results and the signal before */
static void recur(oly_array *c, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    oly_array made =
        oly_add(oly_add(oly_mul(0.2, x[0]), oly_mul(0.1, c[2])), oly_sub(oly_mul(0.9, c[0]), oly_mul(0.2, c[1])));
    c[1] = c[0];
    c[2] = x[0];
    y[0] = c[0] = made;
}

static void recursive_filter(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array zero = oly_zeros(OLY_FLOAT32, oly_dim(in[0], 1)), c[] = {zero, zero, zero};
    oly_scan(oly_dim(in[0], 0), false, recur, 3, c, 1, in, 1, out, NULL);
}

/* -- fields ------------------------------------------------------------------------------------------------------------------ */

static oly_array neighbours(oly_array x)
{
    oly_array rows = oly_add(oly_add(oly_roll(x, 1, 0), x), oly_roll(x, -1, 0));
    return oly_sub(oly_add(oly_add(oly_roll(rows, 1, 1), rows), oly_roll(rows, -1, 1)), x);
}

static void live(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array around = neighbours(c[0]);
    oly_array stays = oly_logical_and(oly_eq(around, 2), oly_eq(c[0], 1));
    c[0] = oly_astype(oly_logical_or(oly_eq(around, 3), stays), OLY_INT8);
}

static void life(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, ITERATIONS, live, 1, out, NULL);
}

/* Height and two velocities on a torus, one staggered step. */
static void flow(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array h = c[0], u = c[1], v = c[2];
    u = oly_sub(u, oly_mul(0.1, oly_sub(h, oly_roll(h, 1, 1))));
    v = oly_sub(v, oly_mul(0.1, oly_sub(h, oly_roll(h, 1, 0))));
    oly_array across = oly_mul(u, oly_mul(0.5, oly_add(h, oly_roll(h, 1, 1))));
    oly_array along = oly_mul(v, oly_mul(0.5, oly_add(h, oly_roll(h, 1, 0))));
    oly_array gone = oly_add(oly_sub(oly_roll(across, -1, 1), across), oly_sub(oly_roll(along, -1, 0), along));
    c[0] = oly_sub(h, oly_mul(0.1, gone));
    c[1] = u;
    c[2] = v;
}

static void shallow_water(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array c[] = {oly_add(1, oly_mul(0.01, in[0])), oly_zeros_like(in[0]), oly_zeros_like(in[0])};
    oly_fori(0, ITERATIONS, flow, 3, c, NULL);
    out[0] = c[0];
}

/* The second derivative along one dimension, 8 points. */
static oly_array curvature(oly_array p, int axis)
{
    static const double weights[] = {1.6, -0.2, 0.0253968, -0.00178571};
    int64_t n = oly_dim(p, axis);
    oly_array sum = NULL;
    for (int k = 1; k <= 4; k++) {
        oly_array pair =
            oly_add(oly_slice_in_dim(p, 4 - k, n - 4 - k, 1, axis), oly_slice_in_dim(p, 4 + k, n - 4 + k, 1, axis));
        oly_array term = oly_mul(weights[k - 1], pair);
        sum = sum ? oly_add(sum, term) : term;
    }
    for (int d = 0; d < 3; d++)
        if (d != axis)
            sum = oly_slice_in_dim(sum, 4, oly_dim(p, d) - 4, 1, d);
    return sum;
}

static void sound(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    int64_t four[] = {4, 4, 4};
    oly_array p = oly_pad(c[0], 0, four, four, NULL);
    oly_array sides = oly_add(curvature(p, 0), oly_add(curvature(p, 1), curvature(p, 2)));
    oly_array next = oly_add(oly_sub(oly_mul(2, c[0]), c[1]), oly_mul(0.1, oly_sub(sides, oly_mul(8.5416667, c[0]))));
    c[1] = c[0];
    c[0] = next;
}

static void acoustic_wave(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array c[] = {in[0], in[0]};
    oly_fori(0, ITERATIONS, sound, 2, c, NULL);
    out[0] = c[0];
}

/* Euler's equations in one dimension, Rusanov fluxes; the time step follows from the fastest wave. */
static void gas(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array speed = oly_div(c[1], c[0]);
    oly_array pressure = oly_mul(0.4, oly_sub(c[2], oly_mul(oly_mul(0.5, c[1]), speed)));
    oly_array fastest = oly_add(oly_abs(speed), oly_sqrt(oly_div(oly_mul(1.4, pressure), c[0])));
    oly_array step = oly_div(0.4, oly_max(fastest)), wave = oly_mul(0.5, oly_max2(fastest, oly_roll(fastest, -1, 0)));
    oly_array flux[] = {c[1], oly_add(oly_mul(c[1], speed), pressure), oly_mul(speed, oly_add(c[2], pressure))};
    for (int k = 0; k < 3; k++) {
        oly_array mean = oly_mul(0.5, oly_add(flux[k], oly_roll(flux[k], -1, 0)));
        oly_array through = oly_sub(mean, oly_mul(wave, oly_sub(oly_roll(c[k], -1, 0), c[k])));
        c[k] = oly_sub(c[k], oly_mul(step, oly_sub(through, oly_roll(through, 1, 0))));
    }
}

static void gas_dynamics(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array c[] = {oly_add(1, oly_mul(0.1, in[0])), oly_mul(0.1, in[0]), oly_add(2.5, oly_mul(0.1, in[0]))};
    oly_fori(0, ITERATIONS, gas, 3, c, NULL);
    out[0] = c[0];
}

/* One step of Perona and Malik's diffusion: little where the slope is steep. */
static void diffusion_step(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = in[0], gone = NULL;
    for (int axis = 0; axis < 2; axis++) {
        oly_array slope = oly_sub(oly_roll(x, -1, axis), x);
        oly_array flow = oly_div(slope, oly_add(1, oly_mul(4, oly_mul(slope, slope))));
        oly_array change = oly_sub(flow, oly_roll(flow, 1, axis));
        gone = gone ? oly_add(gone, change) : change;
    }
    out[0] = oly_add(x, oly_mul(0.2, gone));
}

/* A sparse matrix with as many elements in each row, times a vector. */
static void padded_rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_mul(in[0], oly_take(in[2], in[1], 0, "clip")), OLY_AXES(1));
}

/* The mean of each node's neighbours in a graph. */
static void neighbour_means(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mean(oly_take(in[1], in[0], 0, "clip"), OLY_AXES(1));
}

/* Accelerations of n bodies that attract each other: all pairs. */
static void bodies(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array d = oly_sub(oly_expand_dims(in[0], 0), oly_expand_dims(in[0], 1));
    oly_array square = oly_add(oly_sum(oly_mul(d, d), OLY_AXES(2)), 1e-3);
    oly_array pull = oly_mul(oly_expand_dims(in[1], 0), oly_pow(square, -1.5));
    out[0] = oly_sum(oly_mul(oly_expand_dims(pull, 2), d), OLY_AXES(1));
}

#define WORK(body, amount)                                                                                             \
    static void run_##body(const bench_row *row)                                                                       \
    {                                                                                                                  \
        double n = (double)bench_size(row);                                                                            \
        (void)n;                                                                                                       \
        bench_measure(row, body, #body, amount);                                                                       \
    }
WORK(network_step, 6. * n * (784. * 2048 + 2048. * 2048 + 2048. * 10))
WORK(attend, 4. * 8 * 8 * 64 * n * n)
WORK(cluster, 16. * n)
WORK(sweeps, n *n * 12)
WORK(recursive_filter, n *n * 7)
WORK(gradients, ITERATIONS *n *n * 40)
WORK(sparse_product, 16. * 12 * n)
WORK(padded_rows, 12. * 12 * n)
WORK(neighbour_means, (32. * 4 + 8 * 4) * n)
WORK(bodies, 20. * n * n)
WORK(life, ITERATIONS *n *n * 2)
WORK(shallow_water, ITERATIONS *n *n * 24)
WORK(acoustic_wave, ITERATIONS *n *n *n * 12)
WORK(gas_dynamics, ITERATIONS *n * 24)
WORK(diffusion_step, n *n * 8)

const bench_row bench_workload_rows[] = {
    {"work_network_step", "one step of gradient descent, 784-2048-2048-10, batch n = 512", run_network_step, 512, 8,
     "sgemm", "f32[n,784] f32[784,2048]! f32[2048,2048]! f32[2048,10]!"},
    {"work_attention", "softmax(q k' / 8) v, 8 x 8 heads, n = 512 positions of 64", run_attend, 512, 16, "sgemm",
     "f32[8,8,n,64] f32[8,8,n,64] f32[8,8,n,64]"},
    {"work_k_means", "one step of k-means, n = 10^6 points of 4, 16 centres", run_cluster, 1000000, 256, "read",
     "f32[n,4] f32[16,4]!"},
    {"work_conjugate_gradients", "25 iterations on n x n = 1024 x 1024 cells", run_gradients, 1024, 32, "copy",
     "f32[n,n]"},
    {"work_sparse_product", "gather, product, segment sum over sorted rows: n = 2^17 rows, 12 elements each",
     run_sparse_product, 1 << 17, 64, "read", "f32[n*12] i32[n*12]<n i32[n*12]sorted<n f32[n]!"},
    {"work_padded_rows", "a sparse matrix of n = 2^17 rows of 12 elements, some of them zeros, times a vector",
     run_padded_rows, 1 << 17, 64, "read", "f32[n,12] i32[n,12]<n f32[n]!"},
    {"work_neighbour_means", "the mean of the 8 neighbours of each of n = 2^16 nodes with 32 features",
     run_neighbour_means, 1 << 16, 64, "read", "i32[n,8]<n f32[n,32]!"},
    {"work_n_body", "accelerations of n = 2048 bodies, all pairs", run_bodies, 2048, 64, "fma", "f32[n,3] f32[n]!"},
    {"work_life", "25 generations of Life on a torus of n x n = 2048 x 2048", run_life, 2048, 32, "copy", "i8[n,n]<2"},
    {"work_shallow_water", "25 steps of shallow water on a torus, 1024 x 1024", run_shallow_water, 1024, 32, "copy",
     "f32[n,n]"},
    {"work_acoustic_wave", "25 steps of the wave equation, radius 4, 128 x 128 x 128", run_acoustic_wave, 128, 16,
     "copy", "f32[n,n,n]"},
    {"work_gas_dynamics", "25 steps of Euler's equations, n = 2^20 cells, each as long as the fastest wave allows",
     run_gas_dynamics, 1 << 20, 64, "copy", "f32[n]"},
    {"work_diffusion_step", "one call: a step of diffusion that depends on the slope, 2048 x 2048", run_diffusion_step,
     2048, 32, "copy", "f32[n,n]"},
    {"work_sweeps", "tridiagonal systems along both dimensions of 1024 x 1024", run_sweeps, 1024, 32, "copy",
     "f32[n,n]"},
    {"work_recursive_filter", "a recursive filter of second order along the first dimension of 2048 x 2048",
     run_recursive_filter, 2048, 32, "copy", "f32[n,n]"},
    {0},
};
