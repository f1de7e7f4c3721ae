/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of transfers between devices: neighbours and sums (resharding: reshard.c). */
#include "bench.h"

/* -- neighbours and sums: one row of `size` float32 for each device ----------------------------------------------- */

static void shift(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_concatenate(0, oly_slice(in[0], "-1:"), oly_slice(in[0], ":-1"));
}

static void sum_of_rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(in[0], .axes = "0");
}

typedef struct movement {
    oly_fn f;
    oly_array x;
    int count;
} movement;

static void move(void *data)
{
    const movement *m = data;
    for (int k = 0; k < m->count; k++)
        OLY_SCOPE
        {
            oly_block_until_ready(oly_apply(m->f, m->x));
        }
}

static void time_rows(const bench_row *row, oly_fn f)
{
    int64_t n = bench_size(row), shape[] = {oly_device_count(), n};
    movement m = {f, bench_array(2, shape, "x", bench_wave), bench_options.quick ? 3 : n < 1024 ? 2000 : 10};
    bench_report_call(row->name, bench_best(move, &m) / m.count);
}

static void run_halo(const bench_row *row)
{
    oly_sharding same = oly_named(bench_mesh(), "x");
    time_rows(row, oly_jit(shift, 1, 1, .out_shardings = &same));
}

static void run_allreduce(const bench_row *row)
{
    oly_sharding everywhere = oly_named(bench_mesh(), "");
    time_rows(row, oly_jit(sum_of_rows, 1, 1, .out_shardings = &everywhere));
}

const bench_row bench_movement_rows[] = {
    {"halo", "every device's 4 bytes to the next device in a ring", run_halo, 1, 1, NULL, NULL},
    {"halo_large", "the same with 16 MiB", run_halo, 4 << 20, 1 << 10, "copy", NULL},
    {"allreduce", "sum over all devices of 4 bytes each, result on all", run_allreduce, 1, 1, NULL, NULL},
    {"allreduce_large", "the same with 16 MiB", run_allreduce, 4 << 20, 1 << 10, "copy", NULL},
    {0},
};
