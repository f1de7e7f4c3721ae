/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of loops over fields that are not a sum of shifted parts of one array: a reaction of two substances, a wave, a masked plate,
 * light on a staggered grid. */
#include "bench.h"
#include <string.h>

enum { STEPS = 100, QUICK_STEPS = 5, MOST_FIELDS = 3 };

typedef struct problem {
    oly_loop_body body;
    int n_fields;
    int64_t less[MOST_FIELDS][2]; /* elements less than n */
} problem;

static oly_array around(oly_array x)
{
    oly_array rows = oly_add(oly_roll(x, 1, 0), oly_roll(x, -1, 0));
    return oly_sub(oly_add(rows, oly_add(oly_roll(x, 1, 1), oly_roll(x, -1, 1))), oly_mul(4, x));
}

static void react(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array u = c[0], v = c[1], meet = oly_mul(oly_mul(u, v), v);
    c[0] = oly_add(oly_sub(oly_add(u, oly_mul(0.16, around(u))), meet), oly_mul(0.035, oly_sub(1, u)));
    c[1] = oly_sub(oly_add(oly_add(v, oly_mul(0.08, around(v))), meet), oly_mul(0.095, v));
}

static void swing(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array u = c[0], before = oly_slice(c[1], "1:-1, 1:-1"), mid = oly_slice(u, "1:-1, 1:-1");
    oly_array rows = oly_add(oly_slice(u, ":-2, 1:-1"), oly_slice(u, "2:, 1:-1"));
    oly_array columns = oly_add(oly_slice(u, "1:-1, :-2"), oly_slice(u, "1:-1, 2:"));
    oly_array force = oly_mul(0.2, oly_sub(oly_add(rows, columns), oly_mul(4, mid)));
    c[0] = oly_update(u, "1:-1, 1:-1", oly_add(oly_sub(oly_mul(2, mid), before), force));
    c[1] = u;
}

/* No heat outside the plate: zero borders, and a mask computed from the array itself. */
static void warm(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    int64_t one[] = {1, 1};
    oly_array u = c[0], p = oly_pad(u, 0, one, one, NULL);
    oly_array rows = oly_add(oly_slice(p, ":-2, 1:-1"), oly_slice(p, "2:, 1:-1"));
    oly_array columns = oly_add(oly_slice(p, "1:-1, :-2"), oly_slice(p, "1:-1, 2:"));
    oly_array next = oly_add(u, oly_mul(0.2, oly_sub(oly_add(rows, columns), oly_mul(4, u))));
    c[0] = oly_where(oly_gt(u, 0), next, u);
}

static void shine(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array e = c[0];
    oly_array hx = oly_sub(c[1], oly_mul(0.5, oly_sub(oly_slice(e, ":, 1:"), oly_slice(e, ":, :-1"))));
    oly_array hy = oly_add(c[2], oly_mul(0.5, oly_sub(oly_slice(e, "1:, :"), oly_slice(e, ":-1, :"))));
    oly_array turn = oly_sub(oly_sub(oly_slice(hy, "1:, 1:-1"), oly_slice(hy, ":-1, 1:-1")),
                             oly_sub(oly_slice(hx, "1:-1, 1:"), oly_slice(hx, "1:-1, :-1")));
    c[0] = oly_update(e, "1:-1, 1:-1", oly_add(oly_slice(e, "1:-1, 1:-1"), oly_mul(0.5, turn)));
    c[1] = hx;
    c[2] = hy;
}

static void advance(const oly_array *in, oly_array *out, void *user)
{
    const problem *p = user;
    memcpy(out, in, sizeof *in * (size_t)p->n_fields);
    oly_fori(0, bench_options.quick ? QUICK_STEPS : STEPS, p->body, p->n_fields, out, NULL);
}

static float value(int64_t i)
{
    return (float)(i * 7919 % 1000) / 1000.f;
}

typedef struct simulation {
    const problem *problem;
    oly_fn advance;
    oly_array field[MOST_FIELDS];
} simulation;

static void simulate(void *data)
{
    simulation *s = data;
    oly_array out[MOST_FIELDS] = {NULL}, *wanted[MOST_FIELDS];
    for (int k = 0; k < s->problem->n_fields; k++)
        wanted[k] = &out[k];
    oly_call(s->advance, s->problem->n_fields, s->field, s->problem->n_fields, wanted);
    oly_block_until_ready(out[0]);
    for (int k = 0; k < s->problem->n_fields; k++)
        oly_free(out[k]);
}

static void run(const bench_row *row, problem p)
{
    int64_t n = bench_size(row);
    simulation s = {&p, oly_jit(advance, p.n_fields, p.n_fields, .user = &p), {NULL}};
    for (int k = 0; k < p.n_fields; k++)
        s.field[k] = bench_array(2, (int64_t[]){n - p.less[k][0], n - p.less[k][1]}, "x, None", value);
    int steps = bench_options.quick ? QUICK_STEPS : STEPS;
    bench_report(row->name, bench_best(simulate, &s), (double)n * (double)n * steps, "Gpoint/s");
}

static void gray_scott(const bench_row *row)
{
    run(row, (problem){.body = react, .n_fields = 2});
}

static void wave2d(const bench_row *row)
{
    run(row, (problem){.body = swing, .n_fields = 2});
}

static void masked_heat(const bench_row *row)
{
    run(row, (problem){.body = warm, .n_fields = 1});
}

static void maxwell2d(const bench_row *row)
{
    run(row, (problem){.body = shine, .n_fields = 3, .less = {{0, 0}, {0, 1}, {1, 0}}});
}

const bench_row bench_field_rows[] = {
    {"gray_scott", "two substances that react, periodic, 2048 x 2048 float32, 100 steps", gray_scott, 2048, 64, NULL,
     NULL},
    {"wave2d", "wave equation, two time steps kept, 2048 x 2048 float32, 100 steps", wave2d, 2048, 64, NULL, NULL},
    {"masked_heat", "5-point heat equation, zeros around, masked, 2048 x 2048 float32, 100 steps", masked_heat, 2048,
     64, NULL, NULL},
    {"maxwell2d", "Maxwell's equations on a staggered grid, 2048 x 2048 float32, 100 steps", maxwell2d, 2048, 64, NULL,
     NULL},
    {0},
};
