/* SPDX-License-Identifier: BSD-3-Clause */
/* Oracle cases about explicit heat stencils. Each is written in two ways, and both run as a loop inside a compiled
 * function (one call from each expected step to the next) and call by call. Called by the oracle runner. */
#include "oracle.h"
#include <stdlib.h>
#include <string.h>

typedef struct heat {
    bool flat, periodic; /* 2-D; no boundary */
    double a, b;         /* 1d: of the cell and of each neighbour; 2d: a is the coefficient */
    bool second_way;
    int64_t steps; /* of one call */
} heat;

/* -- one step -------------------------------------------------------------------------------------------------------- */

/* Concatenates slices of x along the dimension they were taken from. */
static oly_array join(int dimension, oly_array x, const char *first, const char *second)
{
    return oly_concatenate(dimension, oly_slice(x, first), oly_slice(x, second));
}

/* (a u[i] + b u[i-1]) + b u[i+1] */
static oly_array sum_1d(const heat *h, oly_array mid, oly_array left, oly_array right)
{
    return oly_add(oly_add(oly_mul(h->a, mid), oly_mul(h->b, left)), oly_mul(h->b, right));
}

/* u + c (((up + down) + (left + right)) - 4 u) */
static oly_array sum_2d(const heat *h, oly_array mid, oly_array up, oly_array down, oly_array left, oly_array right)
{
    oly_array around = oly_add(oly_add(up, down), oly_add(left, right));
    return oly_add(mid, oly_mul(h->a, oly_sub(around, oly_mul(4, mid))));
}

static oly_array inner_1d(const heat *h, oly_array u)
{
    return sum_1d(h, oly_slice(u, "1:-1"), oly_slice(u, ":-2"), oly_slice(u, "2:"));
}

static oly_array inner_2d(const heat *h, oly_array u)
{
    return sum_2d(h, oly_slice(u, "1:-1, 1:-1"), oly_slice(u, ":-2, 1:-1"), oly_slice(u, "2:, 1:-1"),
                  oly_slice(u, "1:-1, :-2"), oly_slice(u, "1:-1, 2:"));
}

/* Fixed boundary. First way: the new interior is written into the array. Second: the boundary is concatenated around
 * it. */
static oly_array fixed_1d(const heat *h, oly_array u)
{
    oly_array inner = inner_1d(h, u);
    if (!h->second_way)
        return oly_update(u, "1:-1", inner);
    return oly_concatenate(0, oly_slice(u, ":1"), inner, oly_slice(u, "-1:"));
}

static oly_array fixed_2d(const heat *h, oly_array u)
{
    oly_array inner = inner_2d(h, u);
    if (!h->second_way)
        return oly_update(u, "1:-1, 1:-1", inner);
    oly_array rows = oly_concatenate(1, oly_slice(u, "1:-1, :1"), inner, oly_slice(u, "1:-1, -1:"));
    return oly_concatenate(0, oly_slice(u, ":1"), rows, oly_slice(u, "-1:"));
}

/* Periodic. First way: cyclic shifts in both directions. Second: padded once, then as with a fixed boundary. */
static oly_array periodic_1d(const heat *h, oly_array u)
{
    if (!h->second_way)
        return sum_1d(h, u, join(0, u, "-1:", ":-1"), join(0, u, "1:", ":1"));
    return inner_1d(h, oly_concatenate(0, oly_slice(u, "-1:"), u, oly_slice(u, ":1")));
}

static oly_array periodic_2d(const heat *h, oly_array u)
{
    if (!h->second_way)
        return sum_2d(h, u, join(0, u, "-1:", ":-1"), join(0, u, "1:", ":1"), join(1, u, ":, -1:", ":, :-1"),
                      join(1, u, ":, 1:", ":, :1"));
    oly_array rows = oly_concatenate(0, oly_slice(u, "-1:"), u, oly_slice(u, ":1"));
    return inner_2d(h, oly_concatenate(1, oly_slice(rows, ":, -1:"), rows, oly_slice(rows, ":, :1")));
}

static void step(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    const heat *h = user;
    if (h->flat)
        carry[0] = h->periodic ? periodic_2d(h, carry[0]) : fixed_2d(h, carry[0]);
    else
        carry[0] = h->periodic ? periodic_1d(h, carry[0]) : fixed_1d(h, carry[0]);
}

/* -- many steps ------------------------------------------------------------------------------------------------------ */
static void loop(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, ((const heat *)user)->steps, step, 1, out, user);
}

static oly_array compiled(oly_array u, heat *h)
{
    oly_array result = NULL;
    oly_call(oly_jit(loop, 1, 1, .user = h), OLY_IN(u), OLY_OUT(result));
    return result;
}

static oly_array call_by_call(oly_array u, heat *h)
{
    for (int64_t k = 0; k < h->steps; k++) {
        oly_array next = u;
        oly_scope_open();
        step(NULL, &next, h);
        oly_keep(next);
        oly_scope_close();
        u = next;
    }
    return u;
}

/* -- a case ---------------------------------------------------------------------------------------------------------- */
static bool read_heat(oracle_run *run, heat *h)
{
    const oracle_line *kind = check_oracle_line(run->c, "kind", 0), *coef = check_oracle_line(run->c, "coef", 0);
    if (!kind || !coef || kind->n_words < 2 || coef->n_words < 2)
        return oracle_fail(run, "kind or coef is missing");
    *h = (heat){
        .flat = kind->words[1][0] == '2', .periodic = kind->words[1][2] == 'p', .a = strtod(coef->words[1], NULL)};
    if (!h->flat && coef->n_words < 3)
        return oracle_fail(run, "coef needs two numbers");
    h->b = h->flat ? 0 : strtod(coef->words[2], NULL);
    return true;
}

static void check_steps(oracle_run *run, heat *h, oly_array u, oly_array (*advance)(oly_array, heat *),
                        const char *name)
{
    int64_t done = 0;
    const oracle_line *line;
    for (int k = 0; u && (line = check_oracle_line(run->c, "out", k)); k++) {
        oracle_array expected;
        char how[64];
        int64_t until = strtoll(line->words[1] + strcspn(line->words[1], ":") + 1, NULL, 10);
        snprintf(how, sizeof how, "%s, way %d", name, h->second_way ? 2 : 1);
        if (!check_oracle_array(run->family, line, &expected)) {
            oracle_fail(run, "line %d cannot be read", line->number);
            return;
        }
        h->steps = until - done;
        done = until;
        u = advance(u, h);
        oracle_compare(run, line, expected, u, how);
        check_oracle_array_free(&expected);
    }
}

void oracle_check_heat(oracle_run *run)
{
    heat h;
    oly_mesh mesh;
    oly_array u;
    if (!read_heat(run, &h) || !oracle_mesh(run, &mesh) || oracle_inputs(run, mesh, &u, 1) != 1)
        return;
    for (int way = 0; way < 2; way++) {
        h.second_way = way == 1;
        check_steps(run, &h, u, compiled, "compiled");
        check_steps(run, &h, u, call_by_call, "call by call");
    }
    const oracle_line *jax = check_oracle_line(run->c, "jax", 0);
    if (jax && strcmp(jax->words[1], "refuses-uneven") == 0)
        oracle_extension(run, "uneven");
}
