/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of collectives in per-device programs: one row of `size` float32 for each device. */
#include "bench.h"

typedef struct program {
    oly_function body;
    const char *in, *out;
    oly_mesh mesh;
} program;

static void sum(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_psum(in[0], "x");
}
static void most(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_pmax(in[0], "x");
}
static void least(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_pmin(in[0], "x");
}
static void gather(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_all_gather(in[0], "x", .tiled = true, .invariant = true);
}
static void scatter(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_psum_scatter(in[0], "x", .axis = 1, .tiled = true);
}
static void exchange(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_all_to_all(in[0], "x", 1, 0, true);
}
static void pass_on(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    enum { MOST = 64 };
    int pairs[MOST][2], n = (int)oly_axis_size("x") < MOST ? (int)oly_axis_size("x") : MOST;
    for (int k = 0; k < n; k++)
        pairs[k][0] = k, pairs[k][1] = (k + 1) % n;
    out[0] = oly_ppermute(in[0], "x", n, (const int(*)[2])pairs);
}
static void number(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0],
                     oly_add(oly_pvary(oly_scalar(1, OLY_FLOAT32), "x"), oly_astype(oly_axis_index("x"), OLY_FLOAT32)));
}

static void mapped(const oly_array *in, oly_array *out, void *user)
{
    const program *p = user;
    oly_shard_map(p->body, NULL, p->mesh, OLY_IN(in[0]), OLY_SPECS(p->in), OLY_OUT(out[0]), OLY_SPECS(p->out));
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

/* Bytes: what each device has. */
static void measure(const bench_row *row, program p)
{
    int n_devices = oly_device_count();
    int64_t n = bench_size(row) / n_devices * n_devices;
    p.mesh = bench_mesh();
    application a = {oly_jit(mapped, 1, 1, .user = &p), bench_array(2, (int64_t[]){n_devices, n}, "x", bench_wave)};
    bench_report(row->name, bench_best(apply, &a), 4. * (double)n * n_devices, "GB/s");
}
#define ROW(name, body, in, out)                                                                                       \
    static void run_##name(const bench_row *row)                                                                       \
    {                                                                                                                  \
        measure(row, (program){body, in, out, NULL});                                                                  \
    }
ROW(sum, sum, "x", "")
ROW(most, most, "x", "")
ROW(least, least, "x", "")
ROW(gather, gather, "x", "")
ROW(scatter, scatter, "x", "None, x")
ROW(exchange, exchange, "x", "None, x")
ROW(pass_on, pass_on, "x", "x")
ROW(number, number, "x", "x")

enum { SIZE = 1 << 21, QUICK = 1 << 8 };
const bench_row bench_collective_rows[] = {
    {"collective_psum", "psum of 2^21 float32 of each device; bytes of all", run_sum, SIZE, QUICK, "copy", NULL},
    {"collective_pmax", "pmax", run_most, SIZE, QUICK, "copy", NULL},
    {"collective_pmin", "pmin", run_least, SIZE, QUICK, "copy", NULL},
    {"collective_all_gather", "all_gather", run_gather, SIZE, QUICK, "copy", NULL},
    {"collective_psum_scatter", "psum_scatter", run_scatter, SIZE, QUICK, "copy", NULL},
    {"collective_all_to_all", "all_to_all", run_exchange, SIZE, QUICK, "copy", NULL},
    {"collective_ppermute", "ppermute to the next device", run_pass_on, SIZE, QUICK, "copy", NULL},
    {"collective_axis_index", "x + axis_index", run_number, SIZE, QUICK, "copy", NULL},
    {0},
};
