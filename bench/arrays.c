/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of operations on whole large arrays: elementwise functions, sums, a matrix product. */
#include "bench.h"

typedef struct application {
    oly_fn f;
    int n_in;
    oly_array in[2];
} application;

static void apply(void *data)
{
    application *a = data;
    OLY_SCOPE
    {
        oly_block_until_ready(oly_apply_n(a->f, a->n_in, a->in));
    }
}

/* `bytes`: read and written per element. */
static void elementwise(const bench_row *row, oly_fn f, float (*value)(int64_t i), int bytes)
{
    int64_t n = bench_size(row);
    application a = {f, 1, {bench_array(1, &n, "x", value)}};
    bench_report(row->name, bench_best(apply, &a), (double)n * bytes, "GB/s");
}

/* From -10^9 to 10^9. */
static float large(int64_t i)
{
    return (float)((double)(uint32_t)((uint64_t)i * 2654435761u) / 4294967296. * 2e9 - 1e9);
}

static void sine(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_mul(2, oly_sin(in[0])), 1);
}

static void run_sin(const bench_row *row)
{
    elementwise(row, oly_jit(sine, 1, 1), bench_wave, 8);
}

static void run_sin_large(const bench_row *row)
{
    elementwise(row, oly_jit(sine, 1, 1), large, 8);
}

static void chain(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = in[0];
    oly_array product = oly_mul(oly_sigmoid(oly_add(oly_mul(x, 2), 1)), oly_tanh(x));
    out[0] = oly_sub(product, oly_exp(oly_mul(oly_neg(x), x)));
}

static void run_chain(const bench_row *row)
{
    elementwise(row, oly_jit(chain, 1, 1), bench_wave, 8);
}

static void sum(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(in[0]);
}

static void run_sum(const bench_row *row)
{
    elementwise(row, oly_jit(sum, 1, 1), bench_wave, 4);
}

static void product(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_relu(oly_matmul(in[0], in[1]));
}

static float one(int64_t i)
{
    (void)i;
    return 1;
}

static void run_matmul(const bench_row *row)
{
    int64_t n = bench_size(row), k = n / 2;
    application a = {oly_jit(product, 2, 1),
                     2,
                     {bench_array(2, (int64_t[]){n, k}, "x, None", one), bench_array(2, (int64_t[]){k, n}, "", one)}};
    bench_report(row->name, bench_best(apply, &a), 2. * (double)n * (double)n * (double)k, "GFLOP/s");
}

const bench_row bench_array_rows[] = {
    {"sin", "2 * sin(x) + 1, 2^24 float32 from -4 to 6; bytes read and written", run_sin, 1 << 24, 1 << 10, "copy",
     NULL},
    {"sin_large", "the same for x from -10^9 to 10^9", run_sin_large, 1 << 24, 1 << 10, "copy", NULL},
    {"chain", "sigmoid(x * 2 + 1) * tanh(x) - exp(-x * x), 2^24 float32", run_chain, 1 << 24, 1 << 10, "copy", NULL},
    {"sum", "sum of 2^24 float32", run_sum, 1 << 24, 1 << 10, "read", NULL},
    {"matmul", "relu(a @ b), 4096 x 2048 x 4096 float32, a split by rows", run_matmul, 4096, 64, "sgemm", NULL},
    {0},
};
