/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of elementwise.def and families.def: one operation, or a small group of them, of every kernel family. */
#include "families.h"

/* -- what the tables compute with ---------------------------------------------------------------------------------- */

/* Six products and six sums. */
static oly_array twelve(oly_array x, oly_array y)
{
    for (int k = 1; k <= 6; k++)
        x = oly_add(oly_mul(x, y), k);
    return x;
}

static oly_array twelve_bits(oly_array x, oly_array y)
{
    for (int k = 0; k < 4; k++)
        x = oly_logical_xor(oly_logical_and(oly_logical_or(x, y), oly_logical_not(y)), x);
    return x;
}

static oly_array layernorm(oly_array x, int axis)
{
    oly_array mean = oly_mean(x, OLY_AXES(axis), .keepdims = true);
    oly_array var = oly_var(x, OLY_AXES(axis), .keepdims = true);
    return oly_mul(oly_sub(x, mean), oly_rsqrt(oly_add(var, 1e-5)));
}

static oly_array padded(oly_array x)
{
    int64_t low[] = {1, 2}, high[] = {3, 4};
    return oly_pad(x, 0, low, high, NULL);
}

/* Half of the rows and columns from `start` on. */
static oly_array middle(oly_array x, oly_array start)
{
    int64_t half[] = {oly_dim(x, 0) / 2, oly_dim(x, 1) / 2};
    return oly_dynamic_slice(x, OLY_INDEXES(start, start), 2, half);
}

static oly_array largest(oly_array x, int64_t k)
{
    oly_array values, positions;
    oly_top_k(x, k, &values, &positions);
    return oly_add(values, oly_astype(positions, OLY_FLOAT32));
}

static oly_array gradient(oly_function f, int with_respect, oly_array x, oly_array y)
{
    oly_fn g = oly_grad(oly_jit(f, y ? 2 : 1, 1), .argnums = with_respect ? "1" : "0");
    oly_array in[2] = {x, y}, out[1] = {NULL};
    oly_call_arrays(g, y ? 2 : 1, in, 1, out);
    return out[0];
}
#define SQUARE_OF(name, ...)                                                                                           \
    static void square_of_##name(const oly_array *in, oly_array *out, void *user)                                      \
    {                                                                                                                  \
        (void)user;                                                                                                    \
        oly_array v = __VA_ARGS__;                                                                                     \
        out[0] = oly_sum(oly_mul(v, v));                                                                               \
    }
SQUARE_OF(conv, oly_conv(in[0], in[1], .padding = "SAME"))
SQUARE_OF(pool, oly_max_pool(in[0], .window = "2, 2", .strides = "2, 2"))
SQUARE_OF(layernorm, oly_add(layernorm(in[0], 1), 1))
SQUARE_OF(softmax, oly_softmax(in[0], 1))
SQUARE_OF(cumsum, oly_cumsum(in[0], 0))
SQUARE_OF(take, oly_take(in[0], in[1], 0, NULL))
static oly_array cross_entropy(oly_array x, oly_array y)
{
    return oly_neg(oly_mean(oly_take_along_axis(oly_log_softmax(x, 1), oly_expand_dims(y, 1), 1, NULL)));
}
static void total_cross_entropy(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = cross_entropy(in[0], in[1]);
}
static oly_array laplacian(oly_array x)
{
    oly_array s =
        oly_add(oly_add(oly_roll(x, 1, 0), oly_roll(x, -1, 0)), oly_add(oly_roll(x, 1, 1), oly_roll(x, -1, 1)));
    return oly_sub(s, oly_mul(4, x));
}
static oly_array distances(oly_array x, oly_array y)
{
    oly_array d = oly_sub(oly_expand_dims(x, 1), oly_expand_dims(y, 0));
    return oly_sqrt(oly_sum(oly_mul(d, d), OLY_AXES(2)));
}
/* Of listed neighbours: x [n, 3], i [n, k]. */
static oly_array pair_forces(oly_array x, oly_array i)
{
    oly_array apart = oly_sub(oly_expand_dims(x, 1), oly_take(x, i, 0, "clip"));
    oly_array square = oly_add(oly_sum(oly_mul(apart, apart), OLY_AXES(-1), .keepdims = true), 0.1);
    return oly_sum(oly_div(apart, oly_mul(square, square)), OLY_AXES(1));
}

/* A sparse matrix whose rows have the same number of elements, at columns i. */
static oly_array padded_product(oly_array elements, oly_array x, oly_array i)
{
    return oly_sum(oly_mul(elements, oly_take(x, i, 0, "clip")), OLY_AXES(1));
}

static oly_array forces(oly_array x)
{
    oly_array d = oly_sub(oly_expand_dims(x, 1), oly_expand_dims(x, 0));
    oly_array r = oly_add(oly_sum(oly_mul(d, d), OLY_AXES(2), .keepdims = true), 1e-3);
    return oly_sum(oly_div(d, oly_mul(r, oly_sqrt(r))), OLY_AXES(1));
}
static oly_array pixels(oly_array x)
{
    int64_t n = oly_dim(x, 0);
    return oly_reshape(oly_transpose(oly_reshape(x, n, 16, 2, 2, 56, 56), 0, 1, 4, 2, 5, 3), n, 16, 112, 112);
}
static void recur(oly_array i, oly_array *c, void *user)
{
    (void)i;
    c[0] = oly_tanh(oly_matmul(c[0], *(oly_array *)user));
}
static oly_array recurrence(oly_array x, oly_array w, int64_t n)
{
    oly_fori(0, n, recur, 1, &x, &w);
    return x;
}
static void average_step(oly_array *c, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    c[0] = y[0] = oly_add(oly_mul(0.9, c[0]), oly_mul(0.1, x[0]));
}
/* Exponentially weighted, of all before each element. */
static oly_array average(oly_array x)
{
    oly_array c = oly_zeros(OLY_FLOAT32), y;
    oly_scan(oly_dim(x, 0), false, average_step, 1, &c, 1, &x, 1, &y, NULL);
    return y;
}
static void diffused_step(oly_array i, oly_array *c, void *user)
{
    int rank = oly_rank(c[0]);
    oly_array inside[3], middle = c[0], sum;
    (void)i, (void)user;
    for (int d = 0; d < rank; d++) { /* inside[d]: without the borders of all dimensions but d */
        inside[d] = c[0];
        for (int e = 0; e < rank; e++)
            if (e != d)
                inside[d] = oly_slice_in_dim(inside[d], 1, oly_dim(c[0], e) - 1, 1, e);
        middle = oly_slice_in_dim(middle, 1, oly_dim(c[0], d) - 1, 1, d);
    }
    sum = oly_mul(-2. * rank, middle);
    for (int d = 0; d < rank; d++)
        sum = oly_add(sum, oly_add(oly_slice_in_dim(inside[d], 0, oly_dim(c[0], d) - 2, 1, d),
                                   oly_slice_in_dim(inside[d], 2, oly_dim(c[0], d), 1, d)));
    middle = oly_add(middle, oly_mul(0.1, sum));
    c[0] = rank == 2 ? oly_dynamic_update_slice(c[0], middle, OLY_INDEXES(1, 1))
                     : oly_dynamic_update_slice(c[0], middle, OLY_INDEXES(1, 1, 1));
}
/* A hundred steps of the heat equation, of two or three dimensions. */
static oly_array diffused(oly_array x)
{
    oly_fori(0, 100, diffused_step, 1, &x, NULL);
    return x;
}
static void logistic_step(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    c[0] = oly_mul(oly_mul(3.7, c[0]), oly_sub(1, c[0]));
}
static oly_array logistic(oly_array x, int64_t n)
{
    oly_fori(0, n, logistic_step, 1, &x, NULL);
    return x;
}
/* Thirty-two rounds of a hash, which depend on their number. */
static oly_array turned(oly_array x, int bits)
{
    return oly_bitwise_or(oly_left_shift(x, bits), oly_shift_right_logical(x, 32 - bits));
}
static void hash_round(oly_array i, oly_array *c, void *user)
{
    (void)user;
    oly_array sum = oly_add(c[0], c[1]);
    c[1] = oly_bitwise_xor(oly_bitwise_xor(turned(c[1], 13), sum), oly_astype(i, OLY_UINT32));
    c[0] = turned(sum, 7);
}
static oly_array hashed(oly_array x)
{
    oly_array c[] = {x, oly_bitwise_not(x)};
    oly_fori(0, 32, hash_round, 2, c, NULL);
    return c[1];
}
/* In how many of 20 iterations of z = z * z + c numbers stay near 0. */
static void escape_step(oly_array i, oly_array *c, void *user)
{
    const oly_array *point = user;
    (void)i;
    oly_array near = oly_le(oly_abs(c[0]), 2);
    c[0] = oly_where(near, oly_add(oly_mul(c[0], c[0]), *point), c[0]);
    c[1] = oly_add(c[1], oly_astype(near, OLY_INT32));
}
static oly_array escapes(oly_array x)
{
    oly_array c[] = {oly_zeros_like(x), oly_zeros(OLY_INT32, oly_dim(x, 0))};
    oly_fori(0, 20, escape_step, 2, c, &x);
    return c[1];
}
/* Ten steps of Runge-Kutta's method of fourth order for n systems of three equations, stacked. */
static oly_array lorenz_slope(oly_array s)
{
    oly_array x = oly_slice(s, "0:1"), y = oly_slice(s, "1:2"), z = oly_slice(s, "2:3");
    return oly_concatenate(0, oly_mul(10, oly_sub(y, x)), oly_sub(oly_mul(x, oly_sub(28, z)), y),
                           oly_sub(oly_mul(x, y), oly_mul(8. / 3, z)));
}
static void lorenz_step(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array s = c[0], k1 = lorenz_slope(s), k2 = lorenz_slope(oly_add(s, oly_mul(0.005, k1)));
    oly_array k3 = lorenz_slope(oly_add(s, oly_mul(0.005, k2))), k4 = lorenz_slope(oly_add(s, oly_mul(0.01, k3)));
    oly_array sum = oly_add(oly_add(k1, oly_mul(2, k2)), oly_add(oly_mul(2, k3), k4));
    c[0] = oly_add(s, oly_mul(0.01 / 6, sum));
}
static oly_array lorenz(oly_array x)
{
    oly_fori(0, 10, lorenz_step, 1, &x, NULL);
    return x;
}
/* One such system to time 1 by Bogacki and Shampine's method, whose steps are as long as the error allows: a loop of operations on numbers. */
static oly_array stage(oly_array s, oly_array length, oly_array slope)
{
    return oly_add(s, oly_mul(length, slope));
}
static oly_array is_before_the_end(const oly_array *c, void *user)
{
    (void)user;
    return oly_lt(c[1], 1);
}
static void adaptive_step(oly_array *c, void *user)
{
    (void)user;
    oly_array s = c[0], h = c[2], k1 = lorenz_slope(s), k2 = lorenz_slope(stage(s, h, oly_mul(0.5, k1)));
    oly_array k3 = lorenz_slope(stage(s, h, oly_mul(0.75, k2)));
    oly_array next = stage(s, h, oly_add(oly_add(oly_mul(2. / 9, k1), oly_mul(1. / 3, k2)), oly_mul(4. / 9, k3)));
    oly_array k4 = lorenz_slope(next), difference = oly_add(oly_mul(-5. / 72, k1), oly_mul(1. / 12, k2));
    difference = oly_add(difference, oly_sub(oly_mul(1. / 9, k3), oly_mul(1. / 8, k4)));
    oly_array error = oly_max(oly_abs(oly_mul(h, difference))), accepted = oly_lt(error, 1e-4);
    c[0] = oly_where(accepted, next, s);
    c[1] = oly_where(accepted, oly_add(c[1], h), c[1]);
    oly_array factor = oly_mul(0.9, oly_pow(oly_div(1e-4, oly_add(error, 1e-12)), 1. / 3));
    c[2] = oly_clip(oly_mul(h, factor), 1e-4, 0.1);
}
static oly_array adaptive(oly_array x)
{
    oly_array c[] = {x, oly_zeros(OLY_FLOAT64), oly_full(0.001, OLY_FLOAT64)};
    oly_while(is_before_the_end, adaptive_step, 3, c, NULL);
    return c[0];
}
/* The mean of 5 x 5 neighbours, weighted by distance and by difference. */
static oly_array bilateral(oly_array x)
{
    int64_t n = oly_dim(x, 0), two[] = {2, 2};
    oly_array wide = oly_pad_mode(x, "edge", two, two), sum = oly_zeros_like(x), weights = sum;
    for (int k = 0; k < 25; k++) {
        int i = k / 5, j = k % 5, square = (i - 2) * (i - 2) + (j - 2) * (j - 2);
        oly_array there = oly_slice_in_dim(oly_slice_in_dim(wide, i, i + n, 1, 0), j, j + n, 1, 1),
                  d = oly_sub(there, x);
        oly_array weight = oly_exp(oly_sub(-0.1 * square, oly_mul(2, oly_mul(d, d))));
        sum = oly_add(sum, oly_mul(weight, there));
        weights = oly_add(weights, weight);
    }
    return oly_div(sum, weights);
}
static oly_array batchnorm(oly_array x)
{
    oly_array mean = oly_mean(x, OLY_AXES(0, 2, 3), .keepdims = true),
              var = oly_var(x, OLY_AXES(0, 2, 3), .keepdims = true);
    return oly_mul(oly_sub(x, mean), oly_rsqrt(oly_add(var, 1e-5)));
}

/* -- the rows ---------------------------------------------------------------------------------------------------------- */

#define X in[0]
#define Y in[1]
#define Z in[2]
/* The text of what a row computes is made before its macros are expanded. */
#define OLY_ROW(name, size, quick, inputs, amount, limit, ...)                                                         \
    OLY_ROW_SHOWN(name, size, quick, inputs, amount, limit, #__VA_ARGS__, __VA_ARGS__)
#define OLY_ROW_SHOWN(name, size, quick, inputs, amount, limit, shown, ...)                                            \
    static void work_##name(const oly_array *in, oly_array *out, void *user)                                           \
    {                                                                                                                  \
        int64_t n = *(int64_t *)user;                                                                                  \
        (void)n;                                                                                                       \
        out[0] = __VA_ARGS__;                                                                                          \
    }                                                                                                                  \
    static void run_##name(const bench_row *row)                                                                       \
    {                                                                                                                  \
        double n = (double)bench_size(row);                                                                            \
        bench_measure(row, work_##name, #name, amount);                                                                \
    }
#include "elementwise.def"
#include "families.def"
#undef OLY_OF_ONE
#undef OLY_SLOW
#undef OLY_ROWS_OF
#undef OLY_ROW_SHOWN

#define OLY_ROW_SHOWN(name, size, quick, inputs, amount, limit, shown, ...)                                            \
    {#name, shown " of " inputs ", n = " #size, run_##name, size, quick, #limit, inputs},
const bench_row bench_elementwise_rows[] = {
#include "elementwise.def"
    {0},
};
const bench_row bench_family_rows[] = {
#include "families.def"
    {0},
};
