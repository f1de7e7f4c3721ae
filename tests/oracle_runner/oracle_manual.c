/* SPDX-License-Identifier: BSD-3-Clause */
/* Oracle cases whose statements are the body of a shard_map: values of the results, and types inside. Called by the
 * oracle runner. */
#include "oracle_statements.h"
#include <string.h>

/* Arguments of the body. */
typedef struct body {
    oracle_program *p;
    bool checks_types;
} body;

static void check_types(oracle_program *p)
{
    const oracle_line *line;
    for (int k = 0; (line = check_oracle_line(p->run->c, "type", k)); k++) {
        char type[256] = "";
        oly_array x = oracle_program_find(p, line->words[1]);
        if (!x)
            oracle_fail_call(p->run, line->words[1]);
        else if (oly_typeof(x, type, sizeof type) && strcmp(type, line->words[2]) != 0)
            oracle_fail(p->run, "%s is %s, expected %s", line->words[1], type, line->words[2]);
    }
}

static void run_body(const oly_array *in, oly_array *out, void *user)
{
    body *b = user;
    oracle_program_run(in, out, b->p);
    if (b->checks_types)
        check_types(b->p);
    if (b->p->n_out == 0)
        out[0] = oly_scalar(0, OLY_INT32);
}

static const char *spec_of(const oracle_line *line)
{
    const char *spec = line->words[4];
    return strcmp(spec, "-") == 0 ? "" : spec;
}

/* The shard_map itself, an oly_function. */
static void run_map(const oly_array *in, oly_array *out, void *user)
{
    body *b = user;
    oracle_program *p = b->p;
    const char *in_specs[ORACLE_MOST_INPUTS], *out_specs[ORACLE_MOST_OUTPUTS] = {""};
    oly_array *wanted[ORACLE_MOST_OUTPUTS];
    for (int k = 0; k < p->n_in; k++)
        in_specs[k] = spec_of(check_oracle_line(p->run->c, "in", k));
    for (int k = 0; k < p->n_out; k++)
        out_specs[k] = spec_of(check_oracle_line(p->run->c, "ret", k));
    for (int k = 0; k < p->n_out || k == 0; k++)
        wanted[k] = &out[k];
    oly_shard_map(run_body, b, p->mesh, p->n_in, in, in_specs, p->n_out ? p->n_out : 1, wanted, out_specs);
}

static void compare(oracle_program *p, const oly_array *results, const char *how)
{
    const oracle_line *out, *ret;
    for (int k = 0; (out = check_oracle_line(p->run->c, "out", k)); k++)
        for (int j = 0; (ret = check_oracle_line(p->run->c, "ret", j)); j++) {
            oracle_array expected;
            if (strcmp(out->words[1], ret->words[1]) != 0)
                continue;
            if (!check_oracle_array(p->run->family, out, &expected) || !expected.data)
                oracle_fail(p->run, "line %d cannot be read", out->number);
            else
                oracle_compare(p->run, out, expected, results[j], how);
            check_oracle_array_free(&expected);
        }
}

static bool has_statements(oracle_run *run)
{
    const oracle_line *line;
    for (int k = 0; (line = check_oracle_line(run->c, "let", k)); k++)
        if (!oracle_find_statement(line->words[2]))
            return oracle_skip(run, "statement `%s` is not there yet", line->words[2]);
    return true;
}

void oracle_check_manual(oracle_run *run)
{
    oracle_program p = {.run = run, .results = "ret"};
    body b = {&p, true};
    oly_array results[ORACLE_MOST_OUTPUTS] = {NULL}, *wanted[ORACLE_MOST_OUTPUTS];
    if (!has_statements(run) || !oracle_mesh(run, &p.mesh))
        return;
    p.n_in = oracle_inputs(run, p.mesh, p.in, ORACLE_MOST_INPUTS);
    while (check_oracle_line(run->c, "ret", p.n_out))
        wanted[p.n_out] = &results[p.n_out], p.n_out++;
    if (p.n_in < 0)
        return;
    run_map(p.in, results, &b);
    compare(&p, results, "call by call");
    b.checks_types = false;
    if (p.n_out == 0)
        return;
    memset(results, 0, sizeof results);
    oly_fn f = oly_jit(run_map, p.n_in, p.n_out, .user = &b, .name = run->c->id);
    oly_call(f, p.n_in, p.in, p.n_out, wanted);
    compare(&p, results, "compiled");
    if (check_oracle_line(run->c, "ct", 0))
        oracle_check_pullback(&p, f);
    if (check_oracle_line(run->c, "tan", 0))
        oracle_check_pushforward(&p, f);
}
