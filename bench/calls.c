/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of small calls, whose time is spent in the library and not on data: calling, queueing, planning. */
#include "bench.h"
#include <stdio.h>

static float ones(int64_t i)
{
    (void)i;
    return 1;
}

/* 4 elements per device. */
static oly_array small_array(void)
{
    int64_t n = 4 * (int64_t)oly_device_count();
    return bench_array(1, &n, "x", ones);
}

/* -- calls -------------------------------------------------------------------------------------------------------- */

typedef struct calling {
    int64_t count;
    oly_fn f;
    oly_array x;
} calling;

static void add_one(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0], 1);
}

static void halve_and_sum(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_mul(in[0], 0.5), oly_mul(oly_sum(in[0]), 1e-3));
}

/* Each call takes the result of the one before; only the last is waited for. */
static void queue_calls(void *data)
{
    calling *c = data;
    OLY_SCOPE
    {
        oly_array y = oly_apply(c->f, c->x);
        for (int64_t k = 1; k < c->count; k++)
            oly_call(c->f, OLY_IN(y), OLY_OUT(y));
        oly_block_until_ready(y);
    }
}

static void wait_for_calls(void *data)
{
    calling *c = data;
    for (int64_t k = 0; k < c->count; k++)
        OLY_SCOPE
        {
            oly_block_until_ready(oly_apply(c->f, c->x));
        }
}

static void queue_eager_add(void *data)
{
    calling *c = data;
    OLY_SCOPE
    {
        oly_array y = oly_add(c->x, 1);
        for (int64_t k = 1; k < c->count; k++)
            oly_assign(&y, oly_add(y, 1));
        oly_block_until_ready(y);
    }
}

/* *y = *y / 2 + sum(*y) / 1000, leaving nothing else behind. */
static void halve_and_sum_eagerly(oly_array *y)
{
    OLY_SCOPE
    {
        oly_assign(y, oly_add(oly_mul(*y, 0.5), oly_mul(oly_sum(*y), 1e-3)));
    }
}

static void queue_eager_sum(void *data)
{
    calling *c = data;
    OLY_SCOPE
    {
        oly_array y = oly_mul(c->x, 1);
        for (int64_t k = 0; k < c->count; k++)
            halve_and_sum_eagerly(&y);
        oly_block_until_ready(y);
    }
}

static void time_calls(const bench_row *row, void (*work)(void *), oly_fn f)
{
    calling c = {bench_size(row), f, small_array()};
    bench_report_call(row->name, bench_best(work, &c) / (double)c.count);
}

static void run_call(const bench_row *row)
{
    time_calls(row, queue_calls, oly_jit(add_one, 1, 1));
}

static void run_call_wait(const bench_row *row)
{
    time_calls(row, wait_for_calls, oly_jit(add_one, 1, 1));
}

static void run_call_eager(const bench_row *row)
{
    time_calls(row, queue_eager_add, NULL);
}

static void run_psum_calls(const bench_row *row)
{
    time_calls(row, queue_calls, oly_jit(halve_and_sum, 1, 1));
}

static void run_psum_eager(const bench_row *row)
{
    time_calls(row, queue_eager_sum, NULL);
}

/* -- planning ----------------------------------------------------------------------------------------------------- */

typedef struct program {
    int64_t operations;
    double constant; /* different in every program, so that no plan is reused */
} program;

/* Ten operations, repeated: elementwise ones, a sum, and the use of the sum. */
static oly_array operation(int64_t k, oly_array x, oly_array *y, double constant)
{
    switch (k % 10) {
    case 0: return oly_mul(x, constant);
    case 1: return oly_add(x, *y);
    case 2: return oly_sin(x);
    case 3: return oly_max2(x, 0.25);
    case 4: return oly_sub(x, *y);
    case 5: *y = oly_sum(x); return x;
    case 6: return oly_mul(x, *y);
    case 7: return oly_tanh(x);
    case 8: return oly_add(x, 0.5);
    default: return oly_abs(x);
    }
}

static void many_operations(const oly_array *in, oly_array *out, void *user)
{
    const program *p = user;
    oly_array x = in[0], y = in[0];
    for (int64_t k = 0; k < p->operations; k++)
        x = operation(k, x, &y, p->constant);
    out[0] = x;
}

typedef struct planning {
    program program;
    oly_array x;
} planning;

static void plan_and_run(void *data)
{
    planning *p = data;
    p->program.constant += 0.125;
    OLY_SCOPE
    {
        oly_block_until_ready(oly_apply(oly_jit(many_operations, 1, 1, .user = &p->program), p->x));
    }
}

static void run_plan(const bench_row *row)
{
    planning p = {{bench_size(row), 0}, small_array()};
    bench_report_call(row->name, bench_best(plan_and_run, &p));
}

/* -- transfers between all devices ------------------------------------------------------------------------------------ */

typedef struct moving {
    oly_array x;
    oly_sharding to;
} moving;

static void place(const oly_array *in, oly_array *out, void *to)
{
    out[0] = oly_device_put(in[0], to);
}

static void plan_and_move(void *data)
{
    moving *m = data;
    OLY_SCOPE
    {
        oly_block_until_ready(oly_apply(oly_jit(place, 1, 1, .user = (void *)m->to), m->x));
    }
}

/* As many columns as devices, or four. */
static void run_plan_moving(const bench_row *row, int64_t columns, const char *to)
{
    char axes[32];
    int n = oly_device_count();
    snprintf(axes, sizeof axes, "x=%d", n);
    oly_mesh mesh = oly_make_mesh(axes);
    moving m = {oly_device_put(oly_zeros(OLY_FLOAT32, n, columns), oly_named(mesh, "x")), oly_named(mesh, to)};
    bench_report_call(row->name, bench_best(plan_and_move, &m));
}

static void run_plan_gather(const bench_row *row)
{
    run_plan_moving(row, 4, "");
}

static void run_plan_all_to_all(const bench_row *row)
{
    run_plan_moving(row, oly_device_count(), "None, x");
}

const bench_row bench_call_rows[] = {
    {"call", "x + 1 compiled, 4 elements per device, one after the other", run_call, 10000, 10, NULL, NULL},
    {"call_wait", "the same, waiting for each", run_call_wait, 10000, 10, NULL, NULL},
    {"call_eager", "the same, not compiled", run_call_eager, 10000, 10, NULL, NULL},
    {"psum_calls", "y * 0.5 + sum(y) * 1e-3 compiled, 1,000 queued", run_psum_calls, 1000, 10, NULL, NULL},
    {"psum_eager", "the same, not compiled", run_psum_eager, 1000, 10, NULL, NULL},
    {"plan_10", "tracing, planning and first run of a program of 10 operations", run_plan, 10, 10, NULL, NULL},
    {"plan_1000", "the same of 1,000 operations", run_plan, 1000, 20, NULL, NULL},
    {"plan_10000", "the same of 10,000 operations", run_plan, 10000, 30, NULL, NULL},
    {"plan_gather", "the same of an all-gather over all devices", run_plan_gather, 0, 0, NULL, NULL},
    {"plan_all_to_all", "the same of an all-to-all", run_plan_all_to_all, 0, 0, NULL, NULL},
    {0},
};
