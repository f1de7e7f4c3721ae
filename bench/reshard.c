/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of resharding. The peers are in peers/exchange_mpi.c. */
#include "bench.h"

typedef struct resharding {
    oly_array x;
    oly_sharding to;
} resharding;

static void reshard(void *data)
{
    resharding *r = data;
    OLY_SCOPE
    {
        oly_block_until_ready(oly_device_put(r->x, r->to));
    }
}

static void time_reshard(const bench_row *row, int64_t extra, const char *from, oly_sharding to)
{
    int64_t n = bench_size(row) + extra;
    resharding r = {bench_array(2, (int64_t[]){n, n}, from, bench_wave), to};
    bench_report(row->name, bench_best(reshard, &r), (double)n * (double)n * 4, "GB/s");
}

static void run_to_columns(const bench_row *row)
{
    time_reshard(row, 0, "x", oly_named(bench_mesh(), "None, x"));
}

static void run_uneven(const bench_row *row)
{
    time_reshard(row, 3, "x", oly_named(bench_mesh(), "None, x"));
}

static void run_gather(const bench_row *row)
{
    time_reshard(row, 0, "x", oly_named(bench_mesh(), ""));
}

static void run_gather_columns(const bench_row *row)
{
    time_reshard(row, 0, "None, x", oly_named(bench_mesh(), ""));
}

static void run_reversed(const bench_row *row)
{
    enum { MOST = 4096 };
    int n = oly_device_count(), devices[MOST];
    for (int k = 0; k < n && n <= MOST; k++)
        devices[k] = n - 1 - k;
    time_reshard(row, 0, "x",
                 oly_named(oly_mesh_from_devices(1, (const char *[]){"x"}, &n, n <= MOST ? devices : NULL), "x"));
}

const bench_row bench_reshard_rows[] = {
    {"reshard", "4096 x 4096 float32 from P('x') to P(None, 'x'); bytes of the array", run_to_columns, 4096, 64, "copy",
     NULL},
    {"reshard_uneven", "the same of 4099 x 4099", run_uneven, 4096, 64, "copy", NULL},
    {"reshard_gather", "the same array from P('x') to P()", run_gather, 4096, 64, "copy", NULL},
    {"reshard_gather_columns", "from P(None, 'x') to P()", run_gather_columns, 4096, 64, "copy", NULL},
    {"reshard_reversed", "P('x') to P('x') over the devices in reverse order", run_reversed, 4096, 64, "copy", NULL},
    {0},
};
