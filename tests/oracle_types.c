/* Oracle cases of explicit sharding: the statements are traced, and each named value must have the type that JAX gives it, or
 * the statement be refused for the same reason. What was traced is then run: the results have these types too. Called by the
 * oracle runner. */
#include "oracle_statements.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 16, MOST_VALUES = 96 };

typedef struct typed_program {
    oracle_run *run;
    oly_mesh mesh;
    int n_in, n_typed, n_values;
    const oracle_line *refused; /* the statement the `error` line names; NULL: none */
    bool reached_refused;
    char message[2048]; /* what it was refused with; "" when it was not */
    const char *name[MOST_VALUES];
    int length[MOST_VALUES];
    oly_array value[MOST_VALUES];
} typed_program;

/* -- operands -------------------------------------------------------------------------------------------------------- */

/* Axes are explicit unless the line says ":auto". */
static bool typed_mesh(typed_program *p)
{
    const oracle_line *line = check_oracle_line(p->run->c, "mesh", 0);
    oly_axis_type types[OLY_MAX_RANK];
    if (!oracle_mesh(p->run, &p->mesh))
        return false;
    for (int k = 1; k < line->n_words; k++)
        types[k - 1] = strstr(line->words[k], ":auto") ? OLY_AXIS_AUTO : OLY_AXIS_EXPLICIT;
    p->mesh = oly_mesh_with_types(p->mesh, types);
    return p->mesh ? true : oracle_fail_call(p->run, "making the mesh");
}

/* Values do not matter: ones. */
static oly_array operand(const typed_program *p, const oracle_line *line)
{
    int64_t shape[OLY_MAX_RANK];
    int rank = check_oracle_list(line->words[3], shape, OLY_MAX_RANK), dtype = check_oracle_dtype(line->words[2]);
    oly_sharding s = oracle_sharding(p->mesh, line->words[4]);
    return s && rank >= 0 ? oly_device_put(oly_ones_shape((oly_dtype)dtype, rank, shape), s) : NULL;
}

/* -- the statements -------------------------------------------------------------------------------------------------- */
static oly_array find(const typed_program *p, const char *name)
{
    for (int k = p->n_values; k-- > 0;)
        if (p->length[k] == (int)strlen(name) && strncmp(p->name[k], name, strlen(name)) == 0)
            return p->value[k];
    return NULL;
}

static void add(typed_program *p, const char *name, int length, oly_array value)
{
    if (p->n_values == MOST_VALUES)
        return;
    p->name[p->n_values] = name;
    p->length[p->n_values] = length;
    p->value[p->n_values++] = value;
}

static bool names(const oracle_line *line, const char *name)
{
    const char *found = strstr(line->words[1], name);
    return found && (found == line->words[1] || found[-1] == ',') &&
           (found[strlen(name)] == 0 || found[strlen(name)] == ',');
}

/* False: refused. */
static bool run_statement(typed_program *p, const oracle_line *line)
{
    oracle_call call = {.c = p->run->c, .line = line, .mesh = p->mesh};
    oly_array results[ORACLE_MOST_RESULTS] = {NULL};
    for (int k = 3; k < line->n_words && call.n < 8; k++) {
        if (strchr(line->words[k], '='))
            continue;
        call.name[call.n] = line->words[k];
        call.arg[call.n++] = find(p, line->words[k]);
    }
    oracle_state(oracle_find_statement(line->words[2]), &call, results);
    const char *name = line->words[1];
    for (int k = 0; name && k < ORACLE_MOST_RESULTS; k++) {
        const char *comma = strchr(name, ',');
        add(p, name, comma ? (int)(comma - name) : (int)strlen(name), results[k]);
        name = comma ? comma + 1 : NULL;
    }
    return results[0] != NULL;
}

static void check_types(typed_program *p)
{
    const oracle_line *line;
    for (int k = 0; (line = check_oracle_line(p->run->c, "type", k)); k++) {
        char text[512];
        oly_typeof(find(p, line->words[1]), text, sizeof text);
        if (strcmp(text, line->words[2]) != 0)
            oracle_fail(p->run, "%s is %s, must be %s", line->words[1], text, line->words[2]);
    }
}

/* What JAX refuses only because sizes do not divide. */
static bool is_allowed(const char *class)
{
    static const char *const allowed[] = {"uneven", "slice_indivisible", "dynamic_slice_indivisible",
                                          "pad_indivisible"};
    for (size_t k = 0; k < sizeof allowed / sizeof allowed[0]; k++)
        if (strcmp(class, allowed[k]) == 0)
            return true;
    return false;
}

/* What JAX refuses because sizes do not divide keeps the axes of the first operand, or takes those asked for. */
static void check_kept(typed_program *p, const oracle_line *line)
{
    const char *spec = check_oracle_value(line, check_oracle_value(line, "out") ? "out" : "spec");
    const oracle_line *in;
    oly_array x = find(p, line->words[1]);
    for (int k = 0; !spec && line->n_words > 3 && (in = check_oracle_line(p->run->c, "in", k)); k++)
        if (strcmp(in->words[1], line->words[3]) == 0)
            spec = in->words[4];
    if (!spec)
        return;
    char got[512], want[512];
    oly_array like = oly_ones_shape(oly_dtype_of(x), oly_rank(x), oly_shape(x));
    oly_typeof(x, got, sizeof got);
    oly_typeof(oly_device_put(like, oracle_sharding(p->mesh, spec)), want, sizeof want);
    if (strcmp(got, want) != 0)
        oracle_fail(p->run, "%s is %s, must keep its axes: %s", line->words[1], got, want);
}

static void traced(const oly_array *in, oly_array *out, void *user)
{
    typed_program *p = user;
    const oracle_line *line;
    p->n_values = 0;
    for (int k = 0; k < p->n_in; k++) {
        line = check_oracle_line(p->run->c, "in", k);
        add(p, line->words[1], (int)strlen(line->words[1]), in[k]);
    }
    for (int k = 0; (line = check_oracle_line(p->run->c, "let", k)); k++) {
        p->reached_refused = p->reached_refused || line == p->refused;
        if (run_statement(p, line)) {
            if (line == p->refused && is_allowed(check_oracle_line(p->run->c, "error", 0)->words[1]))
                check_kept(p, line);
            continue;
        }
        if (line != p->refused)
            oracle_fail(p->run, "%s: %s", line->words[1], oly_last_error());
        else
            snprintf(p->message, sizeof p->message, "%s", oly_last_error());
        out[0] = NULL;
        return;
    }
    check_types(p);
    for (int k = 0; k < p->n_typed; k++)
        out[k] = find(p, check_oracle_line(p->run->c, "type", k)->words[1]);
    if (p->n_typed == 0)
        out[0] = p->value[p->n_values - 1];
}

/* -- judging --------------------------------------------------------------------------------------------------------- */

static void check_refused(typed_program *p, const char *class)
{
    char mark[64];
    snprintf(mark, sizeof mark, "[%s]", class);
    if (is_allowed(class) && p->message[0])
        oracle_fail(p->run, "%s must be accepted (uneven), but: %s", p->refused->words[1], p->message);
    else if (!is_allowed(class) && !p->message[0])
        oracle_fail(p->run, "%s must be refused: %s", p->refused ? p->refused->words[1] : "in", class);
    else if (!is_allowed(class) && !strstr(p->message, mark))
        oracle_fail(p->run, "%s must be refused as %s, but: %s", p->refused ? p->refused->words[1] : "in", class,
                    p->message);
}

/* At run time the values have the types they had while tracing. */
static void check_results(typed_program *p, const oly_array *results)
{
    const oracle_line *line;
    for (int k = 0; (line = check_oracle_line(p->run->c, "type", k)); k++) {
        char text[512];
        oly_typeof(results[k], text, sizeof text);
        if (strcmp(text, line->words[2]) != 0)
            oracle_fail(p->run, "run: %s is %s, must be %s", line->words[1], text, line->words[2]);
    }
}

static void run_typed(typed_program *p, const oly_array *inputs)
{
    oly_array results[MOST_VALUES] = {NULL}, *wanted[MOST_VALUES];
    int n_out = p->n_typed ? p->n_typed : 1;
    for (int k = 0; k < n_out; k++)
        wanted[k] = &results[k];
    oly_fn f = oly_jit(traced, p->n_in, n_out, .user = p, .name = p->run->c->id);
    bool ran = oly_call(f, p->n_in, inputs, n_out, wanted) == OLY_OK;
    if (ran)
        check_results(p, results);
    else if (!p->message[0] && !p->run->failed)
        oracle_fail_call(p->run, "running");
    oly_clear_error();
}

static bool is_typed_possible(oracle_run *run)
{
    const oracle_line *line;
    for (int k = 0; (line = check_oracle_line(run->c, "let", k)); k++)
        if (!oracle_find_statement(line->words[2]))
            return oracle_skip(run, "statement `%s` is not there yet", line->words[2]);
    for (int k = 0; (line = check_oracle_line(run->c, "in", k)); k++)
        if (check_oracle_dtype(line->words[2]) < 0)
            return oracle_skip(run, "dtype %s is not there yet", line->words[2]);
    return !check_oracle_line(run->c, "mode", 0) || oracle_skip(run, "types inside shard_map: not checked yet");
}

void oracle_check_types(oracle_run *run)
{
    typed_program p = {.run = run};
    const oracle_line *error = check_oracle_line(run->c, "error", 0), *line;
    oly_array inputs[MOST_INPUTS];
    if (!is_typed_possible(run) || !typed_mesh(&p))
        return;
    for (int k = 0; error && (line = check_oracle_line(run->c, "let", k)); k++)
        if (names(line, error->words[3] + strlen("at=")))
            p.refused = line;
    while (check_oracle_line(run->c, "type", p.n_typed))
        p.n_typed++;
    oly_mesh before = oly_set_mesh(p.mesh);
    for (; (line = check_oracle_line(run->c, "in", p.n_in)) && p.n_in < MOST_INPUTS; p.n_in++)
        if (!(inputs[p.n_in] = operand(&p, line))) {
            snprintf(p.message, sizeof p.message, "%s", oly_last_error());
            oly_clear_error();
            break;
        }
    if (!p.message[0])
        run_typed(&p, inputs);
    else if (!error || p.refused)
        oracle_fail(run, "an operand: %s", p.message);
    if (error)
        check_refused(&p, error->words[1]);
    oly_set_mesh(before);
}
