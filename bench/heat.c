/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of the heat equation: a loop of slices inside a compiled function, the field donated. The same steps as
 * peers/heat_mpi.c. */
#include "bench.h"
#include <stdio.h>
#include <string.h>

enum { STEPS = 100, QUICK_STEPS = 5 };

static int steps(void)
{
    return bench_options.quick ? QUICK_STEPS : STEPS;
}

static void rod_step(oly_array i, oly_array *u, void *user)
{
    (void)i, (void)user;
    oly_array mid = oly_slice(*u, "1:-1"), left = oly_slice(*u, ":-2"), right = oly_slice(*u, "2:");
    *u = oly_update(*u, "1:-1", oly_add(oly_mul(0.5, mid), oly_add(oly_mul(0.25, left), oly_mul(0.25, right))));
}

static void plate_step(oly_array i, oly_array *u, void *user)
{
    (void)i, (void)user;
    oly_array mid = oly_slice(*u, "1:-1, 1:-1");
    oly_array rows = oly_add(oly_slice(*u, ":-2, 1:-1"), oly_slice(*u, "2:, 1:-1"));
    oly_array columns = oly_add(oly_slice(*u, "1:-1, :-2"), oly_slice(*u, "1:-1, 2:"));
    *u = oly_update(*u, "1:-1, 1:-1", oly_add(oly_mul(0.5, mid), oly_mul(0.125, oly_add(rows, columns))));
}

static void block_step(oly_array i, oly_array *u, void *user)
{
    (void)i, (void)user;
    oly_array mid = oly_slice(*u, "1:-1, 1:-1, 1:-1");
    oly_array x = oly_add(oly_slice(*u, ":-2, 1:-1, 1:-1"), oly_slice(*u, "2:, 1:-1, 1:-1"));
    oly_array y = oly_add(oly_slice(*u, "1:-1, :-2, 1:-1"), oly_slice(*u, "1:-1, 2:, 1:-1"));
    oly_array z = oly_add(oly_slice(*u, "1:-1, 1:-1, :-2"), oly_slice(*u, "1:-1, 1:-1, 2:"));
    oly_array around = oly_mul(0.125, oly_add(x, oly_add(y, z)));
    *u = oly_update(*u, "1:-1, 1:-1, 1:-1", oly_add(oly_mul(0.25, mid), around));
}

static void rod(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, steps(), rod_step, 1, out, NULL);
}

static void plate(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, steps(), plate_step, 1, out, NULL);
}

static void block(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, steps(), block_step, 1, out, NULL);
}

static float temperature(int64_t i)
{
    return (float)(i * 7919 % 1000) / 1000.f;
}

typedef struct simulation {
    oly_fn advance;
    oly_array u;
} simulation;

static void simulate(void *data)
{
    simulation *s = data;
    oly_call(s->advance, OLY_IN(s->u), OLY_OUT(s->u));
    oly_block_until_ready(s->u);
}

static void heat1d(const bench_row *row)
{
    int64_t n = bench_size(row);
    simulation s = {oly_jit(rod, 1, 1), bench_array(1, &n, "x", temperature)};
    bench_report(row->name, bench_best(simulate, &s), (double)n * steps(), "Gpoint/s");
}

static void heat2d(const bench_row *row)
{
    int64_t n = bench_size(row);
    simulation s = {oly_jit(plate, 1, 1), bench_array(2, (int64_t[]){n, n}, "x, None", temperature)};
    bench_report(row->name, bench_best(simulate, &s), (double)n * (double)n * steps(), "Gpoint/s");
}

static void heat3d(const bench_row *row)
{
    int64_t n = bench_size(row);
    simulation s = {oly_jit(block, 1, 1), bench_array(3, (int64_t[]){n, n, n}, "x, None, None", temperature)};
    bench_report(row->name, bench_best(simulate, &s), (double)n * (double)n * (double)n * steps(), "Gpoint/s");
}

/* -- planning ------------------------------------------------------------------------------------------------------------ */

static void ring_step(oly_array i, oly_array *u, void *user)
{
    (void)i, (void)user;
    oly_array around = oly_mul(0.25, *u);
    for (int d = 0; d < 3; d++)
        around = oly_add(around, oly_mul(0.125, oly_add(oly_roll(*u, 1, d), oly_roll(*u, -1, d))));
    *u = around;
}

static void ring(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, steps(), ring_step, 1, out, NULL);
}

typedef struct planning {
    oly_function function;
    oly_array u;
} planning;

static void plan(void *data)
{
    planning *p = data;
    OLY_SCOPE
    {
        oly_plan_costs costs;
        oly_costs(&costs, oly_jit(p->function, 1, 1), p->u);
    }
}

/* Blocks of 32 cells along each side per device; the mesh as cubic as the number of devices allows. */
static void plan_blocks(const bench_row *row, oly_function function)
{
    char axes[64] = "";
    int64_t shape[3];
    for (int d = 0, left = oly_device_count(); d < 3; d++) {
        int size = 1;
        while (left % size != 0 || (d == 0 ? size * size * size : d == 1 ? size * size : size) < left)
            size++;
        snprintf(axes + strlen(axes), sizeof axes - strlen(axes), "%s%c=%d", d ? ", " : "", "xyz"[d], size);
        shape[d] = 32 * size;
        left /= size;
    }
    planning p = {function,
                  oly_device_put((oly_zeros_shape)(OLY_FLOAT32, 3, shape), oly_named(oly_make_mesh(axes), "x, y, z"))};
    bench_report_call(row->name, bench_best(plan, &p));
}

static void plan_heat(const bench_row *row)
{
    plan_blocks(row, block);
}

static void plan_ring(const bench_row *row)
{
    plan_blocks(row, ring);
}

const bench_row bench_heat_rows[] = {
    {"heat1d", "3-point heat equation, 2^24 float32, 100 steps", heat1d, 1 << 24, 1 << 12, "heat1d_ports", NULL},
    {"heat1d_small", "the same on 2^20", heat1d, 1 << 20, 1 << 10, "heat1d_ports", NULL},
    {"heat2d", "5-point heat equation, 4096 x 4096 float32, 100 steps", heat2d, 4096, 64, NULL, NULL},
    {"heat3d", "7-point heat equation, 256 x 256 x 256 float32, 100 steps", heat3d, 256, 16, NULL, NULL},
    {"plan_heat", "tracing and planning of that in blocks of 32 x 32 x 32", plan_heat, 0, 0, NULL, NULL},
    {"plan_ring", "the same, periodic in all dimensions", plan_ring, 0, 0, NULL, NULL},
    {0},
};
