/* SPDX-License-Identifier: BSD-3-Clause */
/* Oracle cases about derivatives: the case's statements are a function whose Jacobian products are computed; and
 * training loops, whose step is such a function. Called by the oracle runner. */
#include "oracle_statements.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = ORACLE_MOST_INPUTS + ORACLE_MOST_OUTPUTS };

static int input_number(const oracle_run *run, const char *name)
{
    const oracle_line *line;
    for (int k = 0; (line = check_oracle_line(run->c, "in", k)); k++)
        if (strcmp(line->words[1], name) == 0)
            return k;
    return -1;
}

static int result_number(const oracle_run *run, const char *keyword, const char *name)
{
    const oracle_line *line;
    for (int k = 0; (line = check_oracle_line(run->c, keyword, k)); k++)
        if (strcmp(line->words[1], name) == 0)
            return k;
    return -1;
}

/* The array of a line, as large as the whole value; the planner places it. */
static oly_array read_line(oracle_run *run, const oracle_line *line)
{
    oracle_array host;
    oly_array x = NULL;
    if (check_oracle_array(run->family, line, &host) && host.data && host.known_dtype >= 0)
        x = oly_from_host(host.data, (oly_dtype)host.known_dtype, host.rank, host.shape);
    else
        oracle_fail(run, "line %d cannot be read", line->number);
    check_oracle_array_free(&host);
    return x;
}

static void compare(oracle_run *run, const oracle_line *line, oly_array got, const char *how)
{
    oracle_array expected;
    if (!check_oracle_array(run->family, line, &expected) || !expected.data)
        oracle_fail(run, "line %d cannot be read", line->number);
    else
        oracle_compare(run, line, expected, got, how);
    check_oracle_array_free(&expected);
}

/* -- reverse: results, and cotangents of the operands ---------------------------------------------------------------- */

/* The operands that `out grad:NAME` lines name. */
static int read_argnums(oracle_run *run, const char *prefix, const char *keyword, int *argnum)
{
    const oracle_line *line;
    int n = 0;
    for (int k = 0; (line = check_oracle_line(run->c, keyword, k)); k++) {
        if (strncmp(line->words[1], prefix, strlen(prefix)) != 0)
            continue;
        argnum[n] = input_number(run, line->words[1] + strlen(prefix));
        if (argnum[n++] < 0) {
            oracle_fail(run, "line %d names no operand", line->number);
            return -1;
        }
    }
    return n;
}

static void check_results(oracle_program *p, const oly_array *results, const char *how)
{
    const oracle_line *line;
    for (int k = 0; (line = check_oracle_line(p->run->c, "out", k)); k++) {
        int number = result_number(p->run, "ret", line->words[1]);
        if (number >= 0)
            compare(p->run, line, results[number], how);
    }
}

void oracle_check_pullback(oracle_program *p, oly_fn f)
{
    oracle_run *run = p->run;
    oly_array in[MOST], results[MOST] = {NULL}, *wanted[MOST];
    int argnum[ORACLE_MOST_INPUTS], n = read_argnums(run, "grad:", "out", argnum), seen = 0;
    const oracle_line *line;
    if (n < 0)
        return;
    memcpy(in, p->in, sizeof *in * (size_t)p->n_in);
    for (int k = 0; k < p->n_out; k++) {
        int number = result_number(run, "ct", check_oracle_line(run->c, "ret", k)->words[1]);
        if (number < 0) {
            oracle_fail(run, "result %d has no cotangent", k);
            return;
        }
        if (!(in[p->n_in + k] = read_line(run, check_oracle_line(run->c, "ct", number))))
            return;
    }
    for (int k = 0; k < p->n_out + n; k++)
        wanted[k] = &results[k];
    oly_fn pullback = oly_vjp(f, .argnum_list = argnum, .n_argnum_list = n);
    oly_call(pullback, p->n_in + p->n_out, in, p->n_out + n, wanted);
    check_results(p, results, "pulled back");
    for (int k = 0; (line = check_oracle_line(run->c, "out", k)); k++)
        if (strncmp(line->words[1], "grad:", 5) == 0)
            compare(run, line, results[p->n_out + seen++], "pulled back");
}

/* -- forward: results and their tangents ----------------------------------------------------------------------------- */
void oracle_check_pushforward(oracle_program *p, oly_fn f)
{
    oracle_run *run = p->run;
    oly_array in[MOST], results[MOST] = {NULL}, *wanted[MOST];
    int argnum[ORACLE_MOST_INPUTS], n = read_argnums(run, "", "tan", argnum);
    const oracle_line *line;
    if (n < 0)
        return;
    memcpy(in, p->in, sizeof *in * (size_t)p->n_in);
    for (int k = 0; k < n; k++)
        if (!(in[p->n_in + k] = read_line(run, check_oracle_line(run->c, "tan", k))))
            return;
    for (int k = 0; k < 2 * p->n_out; k++)
        wanted[k] = &results[k];
    oly_fn pushforward = oly_jvp(f, .argnum_list = argnum, .n_argnum_list = n);
    oly_call(pushforward, p->n_in + n, in, 2 * p->n_out, wanted);
    check_results(p, results, "pushed forward");
    for (int k = 0; (line = check_oracle_line(run->c, "out", k)); k++) {
        int number = strncmp(line->words[1], "jvp:", 4) == 0 ? result_number(run, "ret", line->words[1] + 4) : -1;
        if (number >= 0)
            compare(run, line, results[p->n_out + number], "pushed forward");
    }
}

void oracle_check_gradient(oracle_run *run)
{
    oracle_program p;
    if (!oracle_program_begin(&p, run, "ret"))
        return;
    oly_fn f = oly_jit(oracle_program_run, p.n_in, p.n_out, .user = &p, .name = run->c->id);
    if (check_oracle_line(run->c, "tan", 0))
        oracle_check_pushforward(&p, f);
    if (check_oracle_line(run->c, "ct", 0))
        oracle_check_pullback(&p, f);
}

/* -- the gradient of the sum of a result, and its placement -------------------------------------------------------- */
static void value_and_sum(const oly_array *in, oly_array *out, void *user)
{
    oly_array result[ORACLE_MOST_OUTPUTS] = {NULL};
    oracle_program_run(in, result, user);
    out[0] = oly_sum(result[0]);
    out[1] = result[0];
}

/* Each shard of this process covers the ranges that a `dev` line gives for its device: "dev 0 [0:10,0:40]". */
static void check_ranges(oracle_run *run, oly_array x, const char *what)
{
    const oracle_line *line;
    OLY_FOR_EACH_SHARD(s, x)
    {
        char ranges[256] = "[";
        for (int d = 0; d < s.rank; d++)
            snprintf(ranges + strlen(ranges), sizeof ranges - strlen(ranges), "%s%lld:%lld", d ? "," : "",
                     (long long)s.start[d], (long long)(s.start[d] + s.extent[d]));
        strcat(ranges, "]");
        for (int k = 0; (line = check_oracle_line(run->c, "dev", k)); k++)
            if (atoi(line->words[1]) == oly_device_id(s.device) && strcmp(line->words[2], ranges) != 0)
                oracle_fail(run, "device %s holds %s of %s, expected %s", line->words[1], ranges, what, line->words[2]);
    }
}

void oracle_check_summed(oracle_run *run)
{
    oracle_program p;
    oly_array sum = NULL, gradient = NULL, value = NULL;
    const oracle_line *line;
    if (!oracle_program_begin(&p, run, "out"))
        return;
    oly_fn f = oly_jit(value_and_sum, p.n_in, 2, .user = &p, .name = run->c->id);
    oly_call(oly_value_and_grad(f), p.n_in, p.in, OLY_OUT(sum, gradient, value));
    for (int k = 0; (line = check_oracle_line(run->c, "out", k)); k++)
        compare(run, line, strchr(line->words[1], ':') ? gradient : value, "compiled");
    check_ranges(run, p.in[0], "the operand");
    check_ranges(run, value, "the result");
    check_ranges(run, gradient, "the gradient");
}

/* -- training -------------------------------------------------------------------------------------------------------- */

/* The step as a function: its results are the carried values, then the requested losses. */
typedef struct training {
    oracle_program program;
    int steps, n_carry, n_series;
    bool feedback;
    int input[ORACLE_MOST_INPUTS];                                               /* [n_carry] number of the operand */
    char from[ORACLE_MOST_INPUTS][64];                                           /* [n_carry] value that follows it */
    const oracle_line *series[ORACLE_MOST_OUTPUTS], *final[ORACLE_MOST_OUTPUTS]; /* [n_series], [n_carry] */
    const char *loss[ORACLE_MOST_OUTPUTS];
} training;

static void step(const oly_array *in, oly_array *out, void *user)
{
    training *t = user;
    oly_array none[ORACLE_MOST_OUTPUTS];
    oracle_program_run(in, none, &t->program);
    for (int k = 0; k < t->n_carry; k++)
        out[k] = oracle_program_find(&t->program, t->from[k]);
    for (int k = 0; k < t->n_series; k++)
        out[t->n_carry + k] = oracle_program_find(&t->program, t->loss[k]);
}

static int number_after(const oracle_run *run, const char *keyword, int missing)
{
    const oracle_line *line = check_oracle_line(run->c, keyword, 0);
    return line && line->n_words > 1 ? atoi(line->words[1]) : missing;
}

static bool read_training(training *t, oracle_run *run)
{
    const oracle_line *carry = check_oracle_line(run->c, "carry", 0), *line;
    t->steps = number_after(run, "steps", 1);
    t->feedback = number_after(run, "feedback", 1) != 0;
    for (int k = 1; k < carry->n_words && t->n_carry < ORACLE_MOST_INPUTS; k++) {
        char name[64];
        const char *equals = strchr(carry->words[k], '=');
        if (!equals)
            return oracle_fail(run, "line %d: what is carried?", carry->number);
        snprintf(name, sizeof name, "%.*s", (int)(equals - carry->words[k]), carry->words[k]);
        snprintf(t->from[t->n_carry], sizeof t->from[0], "%.63s", equals + 1);
        t->input[t->n_carry] = input_number(run, name);
        t->final[t->n_carry] = NULL;
        for (int j = 0; (line = check_oracle_line(run->c, "out", j)); j++)
            if (strncmp(line->words[1], "final:", 6) == 0 && strcmp(line->words[1] + 6, name) == 0)
                t->final[t->n_carry] = line;
        if (t->input[t->n_carry++] < 0)
            return oracle_fail(run, "line %d carries no operand", carry->number);
    }
    for (int j = 0; (line = check_oracle_line(run->c, "out", j)) && t->n_series < ORACLE_MOST_OUTPUTS; j++)
        if (strncmp(line->words[1], "series:", 7) == 0) {
            t->series[t->n_series] = line;
            t->loss[t->n_series++] = line->words[1] + 7;
        }
    return true;
}

/* One loss per step, gathered into an array. */
static void compare_series(oracle_run *run, const oracle_line *line, int n, oly_array *losses)
{
    for (int k = 0; k < n; k++)
        losses[k] = losses[k] ? oly_reshape(losses[k], 1) : NULL;
    oly_array all = losses[0];
    for (int k = 1; k < n && all; k++)
        all = oly_concatenate(0, all, losses[k]);
    compare(run, line, all, "trained");
}

void oracle_check_training(oracle_run *run)
{
    training t = {.n_carry = 0};
    if (!oracle_program_begin(&t.program, run, "out") || !read_training(&t, run))
        return;
    oly_fn f = oly_jit(step, t.program.n_in, t.n_carry + t.n_series, .user = &t, .name = run->c->id);
    oly_array *losses = calloc((size_t)(t.n_series * t.steps + 1), sizeof *losses), results[MOST] = {NULL};
    for (int s = 0; s < t.steps; s++) { /* all steps are queued before anything is read */
        oly_array *wanted[MOST];
        for (int k = 0; k < t.n_carry + t.n_series; k++)
            wanted[k] = k < t.n_carry ? &results[k] : &losses[(k - t.n_carry) * t.steps + s];
        oly_call(f, t.program.n_in, t.program.in, t.n_carry + t.n_series, wanted);
        for (int k = 0; k < t.n_carry && t.feedback; k++)
            t.program.in[t.input[k]] = results[k];
        if (!results[0])
            break;
    }
    for (int k = 0; k < t.n_series; k++)
        compare_series(run, t.series[k], t.steps, losses + k * t.steps);
    for (int k = 0; k < t.n_carry; k++)
        if (t.final[k])
            compare(run, t.final[k], results[k], "trained");
    free(losses);
}
