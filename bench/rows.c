/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of operations by index and along one dimension: scatter, gather, segment sums, positions, sorts, reductions of
 * columns. The rate counts the bytes that must be read, so that a copy or a read of memory is the limit. */
#include "bench.h"

typedef struct application {
    oly_fn f;
    int n_in;
    oly_array in[3];
} application;

static void apply(void *data)
{
    application *a = data;
    OLY_SCOPE
    {
        oly_block_until_ready(oly_apply_n(a->f, a->n_in, a->in));
    }
}

static void report(const bench_row *row, application *a, double bytes)
{
    bench_report(row->name, bench_best(apply, a), bytes, "GB/s");
}

/* -- by index: rows of 64 into a table of size / 16 rows --------------------------------------------------------------- */

enum { ROW = 64, SHARE = 16 };

static oly_array drawn_indexes(int64_t n, int64_t below)
{
    return oly_random_randint(oly_random_key(1), OLY_INT32, 0, below, n);
}

static void add_rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_at_add(in[0], OLY_INDEXES(in[1]), in[2]);
}

static void run_scatter_add(const bench_row *row)
{
    int64_t n = bench_size(row);
    application a = {oly_jit(add_rows, 3, 1),
                     3,
                     {oly_zeros(OLY_FLOAT32, n / SHARE, ROW), drawn_indexes(n, n / SHARE),
                      bench_array(2, (int64_t[]){n, ROW}, "", bench_wave)}};
    report(row, &a, (double)n * (4 + 4 * ROW));
}

static void sum_segments(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_segment_sum(in[0], in[1], *(int64_t *)user);
}

static void segments(const bench_row *row, bool sorted)
{
    int64_t n = bench_size(row), many = n / 4;
    oly_array ids = drawn_indexes(n, many);
    application a = {oly_jit(sum_segments, 2, 1, .user = &many),
                     2,
                     {bench_array(1, &n, "", bench_wave), sorted ? oly_sort(ids, 0) : ids}};
    report(row, &a, (double)n * 8);
}

static void run_segment_sum(const bench_row *row)
{
    segments(row, false);
}
static void run_segment_sum_sorted(const bench_row *row)
{
    segments(row, true);
}

static void take_rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_take(in[0], in[1], 0, NULL);
}

static void run_take(const bench_row *row)
{
    int64_t n = bench_size(row);
    application a = {oly_jit(take_rows, 2, 1),
                     2,
                     {bench_array(2, (int64_t[]){n / SHARE, ROW}, "", bench_wave), drawn_indexes(n, n / SHARE)}};
    report(row, &a, (double)n * (4 + 8 * ROW));
}

/* -- along a dimension of size x size / 2 ------------------------------------------------------------------------------ */

static void matrix(const bench_row *row, oly_function body)
{
    int64_t n = bench_size(row), half = n / 2;
    application a = {oly_jit(body, 1, 1), 1, {oly_random_normal(oly_random_key(2), OLY_FLOAT32, n, half)}};
    oly_block_until_ready(a.in[0]);
    report(row, &a, (double)n * (double)half * 4);
}
#define ALONG(name, call)                                                                                              \
    static void name(const oly_array *in, oly_array *out, void *user)                                                  \
    {                                                                                                                  \
        (void)user;                                                                                                    \
        oly_array x = in[0];                                                                                           \
        out[0] = call;                                                                                                 \
    }                                                                                                                  \
    static void run_##name(const bench_row *row)                                                                       \
    {                                                                                                                  \
        matrix(row, name);                                                                                             \
    }
ALONG(sum_columns, oly_sum(x, OLY_AXES(0)))
ALONG(max_columns, oly_max(x, OLY_AXES(0)))
ALONG(max_rows, oly_max(x, OLY_AXES(1)))
ALONG(var_columns, oly_var(x, OLY_AXES(0)))
ALONG(logsumexp_columns, oly_logsumexp(x, OLY_AXES(0)))
ALONG(logsumexp_rows, oly_logsumexp(x, OLY_AXES(1)))
ALONG(argmax_columns, oly_argmax(x, OLY_AXES(0)))
ALONG(argmax_rows, oly_argmax(x, OLY_AXES(1)))
ALONG(sort_rows, oly_sort(x, 1))
ALONG(cumsum_rows, oly_cumsum(x, 1))

const bench_row bench_index_rows[] = {
    {"scatter_add", "2^20 rows of 64 float32 added to rows of a table of 2^16, in any order", run_scatter_add, 1 << 20,
     1 << 10, "read", NULL},
    {"segment_sum", "2^22 float32 into 2^20 sums, in any order", run_segment_sum, 1 << 22, 1 << 10, "read", NULL},
    {"segment_sum_sorted", "the same with ascending segment numbers", run_segment_sum_sorted, 1 << 22, 1 << 10, "read",
     NULL},
    {"take", "2^20 rows of 64 float32 from a table of 2^16", run_take, 1 << 20, 1 << 10, "copy", NULL},
    {"columns_sum", "sum along axis 0 of 8192 x 4096 float32", run_sum_columns, 8192, 64, "read", NULL},
    {"columns_max", "maximum along axis 0", run_max_columns, 8192, 64, "read", NULL},
    {"rows_max", "maximum along axis 1", run_max_rows, 8192, 64, "read", NULL},
    {"columns_var", "variance along axis 0", run_var_columns, 8192, 64, "read", NULL},
    {"columns_logsumexp", "log of sum of exp along axis 0", run_logsumexp_columns, 8192, 64, "read", NULL},
    {"rows_logsumexp", "the same along axis 1", run_logsumexp_rows, 8192, 64, "read", NULL},
    {"columns_argmax", "position of the maximum along axis 0", run_argmax_columns, 8192, 64, "read", NULL},
    {"rows_argmax", "the same along axis 1", run_argmax_rows, 8192, 64, "read", NULL},
    {"rows_sort", "2048 rows of 1024 float32, ascending", run_sort_rows, 2048, 64, "read", NULL},
    {"rows_cumsum", "running sums along axis 1 of 8192 x 4096 float32", run_cumsum_rows, 8192, 64, "read", NULL},
    {0},
};
