/* SPDX-License-Identifier: BSD-3-Clause */
/* Oracle cases made of statements: run call by call, and as one compiled function. Called by the oracle runner. */
#include "oracle_statements.h"
#include <string.h>

typedef oracle_program program;

/* -- before running -------------------------------------------------------------------------------------------------- */

/* False: skipped, because Olympus lacks something the case needs. */
bool oracle_program_possible(oracle_run *run)
{
    for (int k = 0; k < run->c->n_lines; k++) {
        const oracle_line *line = &run->c->lines[k];
        bool array = strcmp(line->words[0], "in") == 0 || strcmp(line->words[0], "out") == 0;
        bool statement = strcmp(line->words[0], "let") == 0;
        const char *dtype = array ? line->words[2] : statement ? check_oracle_value(line, "dtype") : NULL;
        if (statement && !oracle_find_statement(line->words[2]))
            return oracle_skip(run, "statement `%s` is not there yet", line->words[2]);
        if (dtype && check_oracle_dtype(dtype) < 0)
            return oracle_skip(run, "dtype %s is not there yet", dtype);
    }
    return true;
}

/* -- running --------------------------------------------------------------------------------------------------------- */
oly_array oracle_program_find(const program *p, const char *name)
{
    for (int k = p->n_values; k-- > 0;)
        if (p->length[k] == (int)strlen(name) && strncmp(p->name[k], name, strlen(name)) == 0)
            return p->value[k];
    return NULL;
}

static void add(program *p, const char *name, int length, oly_array value)
{
    if (p->n_values == ORACLE_MOST_VALUES)
        return; /* a later use finds nothing and fails */
    p->name[p->n_values] = name;
    p->length[p->n_values] = length;
    p->value[p->n_values++] = value;
}

/* `wrt=[a,b]` names operands too. */
static bool read_wrt(const program *p, const char *list, oracle_call *call)
{
    static _Thread_local char names[ORACLE_MOST_RESULTS][64];
    bool complete = true;
    for (int n = 0; list && *list && *list != ']' && call->n < ORACLE_MOST_OPERANDS && n < ORACLE_MOST_RESULTS; n++) {
        size_t length = strcspn(++list, ",]");
        snprintf(names[n], sizeof names[n], "%.*s", (int)length, list);
        call->name[call->n] = names[n];
        call->arg[call->n] = oracle_program_find(p, names[n]);
        complete = complete && call->arg[call->n++];
        list += length;
    }
    return complete;
}

/* Adds the results of a line under their names: "a,b" names two. */
bool oracle_program_state(program *p, const oracle_line *line)
{
    oracle_call call = {.c = p->run->c, .line = line, .mesh = p->mesh};
    oly_array results[ORACLE_MOST_RESULTS] = {NULL};
    bool complete = true;
    for (int k = 3; k < line->n_words && call.n < ORACLE_MOST_OPERANDS; k++) {
        if (strchr(line->words[k], '='))
            continue;
        call.name[call.n] = line->words[k];
        call.arg[call.n] = oracle_program_find(p, line->words[k]);
        complete = complete && call.arg[call.n]; /* otherwise an earlier statement failed */
        call.n++;
    }
    complete = read_wrt(p, check_oracle_value(line, "wrt"), &call) && complete;
    if (complete)
        oracle_state(oracle_find_statement(line->words[2]), &call, results);
    const char *name = line->words[1];
    for (int k = 0; name && k < ORACLE_MOST_RESULTS; k++) {
        const char *comma = strchr(name, ',');
        add(p, name, comma ? (int)(comma - name) : (int)strlen(name), results[k]);
        name = comma ? comma + 1 : NULL;
    }
    return results[0] != NULL;
}

void oracle_program_operands(program *p, const oly_array *in)
{
    const oracle_line *line;
    p->n_values = 0;
    for (int k = 0; (line = check_oracle_line(p->run->c, "in", k)); k++)
        add(p, line->words[1], (int)strlen(line->words[1]), in[k]);
}

void oracle_program_run(const oly_array *in, oly_array *out, void *program_)
{
    program *p = program_;
    const oracle_case *c = p->run->c;
    const oracle_line *line;
    oracle_program_operands(p, in);
    for (int k = 0; (line = check_oracle_line(c, "let", k)); k++)
        oracle_program_state(p, line);
    for (int k = 0; (line = check_oracle_line(c, p->results, k)); k++)
        out[k] = oracle_program_find(p, line->words[1]);
}

bool oracle_program_begin(program *p, oracle_run *run, const char *results)
{
    *p = (program){.run = run, .results = results};
    if (!oracle_program_possible(run) || !oracle_mesh(run, &p->mesh))
        return false;
    p->n_in = oracle_inputs(run, p->mesh, p->in, ORACLE_MOST_INPUTS);
    if (p->n_in < 0)
        return false;
    while (check_oracle_line(run->c, results, p->n_out))
        p->n_out++;
    if (p->n_out == 0 || p->n_out > ORACLE_MOST_OUTPUTS)
        return oracle_fail(run, "%d results; a case has 1 to %d", p->n_out, ORACLE_MOST_OUTPUTS);
    return true;
}

static void run_compiled(program *p, oly_array *results)
{
    oly_array *wanted[ORACLE_MOST_OUTPUTS];
    for (int k = 0; k < p->n_out; k++)
        wanted[k] = &results[k];
    oly_fn f = oly_jit(oracle_program_run, p->n_in, p->n_out, .user = p, .name = p->run->c->id);
    oly_call(f, p->n_in, p->in, p->n_out, wanted);
}

/* -- comparing ----------------------------------------------------------------------------------------------------- */
static void compare_results(program *p, const oly_array *results, const char *how)
{
    const oracle_line *line;
    for (int k = 0; (line = check_oracle_line(p->run->c, "out", k)); k++) {
        oracle_array expected;
        if (!check_oracle_array(p->run->family, line, &expected) || !expected.data)
            oracle_fail(p->run, "line %d cannot be read", line->number);
        else
            oracle_compare(p->run, line, expected, results[k], how);
        check_oracle_array_free(&expected);
    }
}

void oracle_check_program(oracle_run *run)
{
    program p;
    oly_array results[ORACLE_MOST_OUTPUTS] = {NULL};
    if (!oracle_program_begin(&p, run, "out"))
        return;
    oracle_program_run(p.in, results, &p);
    compare_results(&p, results, "call by call");
    memset(results, 0, sizeof results);
    run_compiled(&p, results);
    compare_results(&p, results, "compiled");
}
