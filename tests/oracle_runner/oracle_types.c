/* SPDX-License-Identifier: BSD-3-Clause */
/* Oracle cases of explicit sharding: the statements are traced, and each named value must have the type that JAX gives
 * it, or the statement be refused for the same reason. The traced function is then run: the results have these types
 * too. Called by the oracle runner. */
#include "oracle_statements.h"
#include <string.h>

typedef struct typed_program {
    oracle_program values;      /* first member; `results` are the types */
    const char *class;          /* the expected class of error; NULL: none */
    const oracle_line *refused; /* the statement that must fail; NULL with a class: the operands */
    char message[2048];         /* what was refused; "" if nothing was */
} typed_program;

/* -- operands -------------------------------------------------------------------------------------------------------- */

/* Axes are explicit unless the line says ":auto". */
static bool typed_mesh(oracle_run *run, oly_mesh *mesh)
{
    const oracle_line *line = check_oracle_line(run->c, "mesh", 0);
    oly_axis_type types[OLY_MAX_RANK];
    if (!oracle_mesh(run, mesh))
        return false;
    for (int k = 1; k < line->n_words; k++)
        types[k - 1] = strstr(line->words[k], ":auto") ? OLY_AXIS_AUTO : OLY_AXIS_EXPLICIT;
    *mesh = oly_mesh_with_types(*mesh, types);
    return *mesh ? true : oracle_fail_call(run, "making the mesh");
}

/* Values do not matter: ones. */
static oly_array operand(oly_mesh mesh, const oracle_line *line)
{
    int64_t shape[OLY_MAX_RANK];
    int rank = check_oracle_list(line->words[3], shape, OLY_MAX_RANK), dtype = check_oracle_dtype(line->words[2]);
    oly_sharding s = oracle_sharding(mesh, line->words[4]);
    return s && rank >= 0 ? oly_device_put(oly_ones_shape((oly_dtype)dtype, rank, shape), s) : NULL;
}

/* False: one was refused. */
static bool place_operands(typed_program *t)
{
    oracle_program *p = &t->values;
    const oracle_line *line;
    for (; p->n_in < ORACLE_MOST_INPUTS && (line = check_oracle_line(p->run->c, "in", p->n_in)); p->n_in++)
        if (!(p->in[p->n_in] = operand(p->mesh, line))) {
            snprintf(t->message, sizeof t->message, "%s", oly_last_error());
            oly_clear_error();
            return false;
        }
    return true;
}

/* -- errors ---------------------------------------------------------------------------------------------------------- */

/* What JAX refuses only because sizes do not divide. */
static bool is_allowed(const char *class)
{
    static const char *const allowed[] = {"uneven", "slice_indivisible", "dynamic_slice_indivisible",
                                          "pad_indivisible"};
    for (size_t k = 0; class && k < sizeof allowed / sizeof allowed[0]; k++)
        if (strcmp(class, allowed[k]) == 0)
            return true;
    return false;
}

/* JAX refuses the operands for their sizes alone, before any statement. */
static bool operands_uneven(const typed_program *t)
{
    return is_allowed(t->class) && !t->refused;
}

static void check_refused(const typed_program *t)
{
    oracle_run *run = t->values.run;
    const char *where = t->refused ? t->refused->words[1] : "in";
    char mark[64];
    snprintf(mark, sizeof mark, "[%s]", t->class);
    if (is_allowed(t->class)) {
        if (t->message[0])
            oracle_fail(run, "%s must be accepted (uneven), but: %s", where, t->message);
        else
            oracle_extension(run, t->class);
    } else if (!t->message[0]) {
        oracle_fail(run, "%s must be refused: %s", where, t->class);
    } else if (!strstr(t->message, mark)) {
        oracle_fail(run, "%s must be refused as %s, but: %s", where, t->class, t->message);
    }
}

/* Does the line name this result? */
static bool names(const oracle_line *line, const char *name)
{
    const char *found = strstr(line->words[1], name);
    char after = found ? found[strlen(name)] : 0;
    return found && (found == line->words[1] || found[-1] == ',') && (after == 0 || after == ',');
}

static void read_error(typed_program *t)
{
    const oracle_line *error = check_oracle_line(t->values.run->c, "error", 0), *line;
    t->class = error ? error->words[1] : NULL;
    for (int k = 0; error && (line = check_oracle_line(t->values.run->c, "let", k)); k++)
        if (names(line, error->words[3] + strlen("at=")))
            t->refused = line;
}

/* -- types ----------------------------------------------------------------------------------------------------------- */

static int rank_of(const oracle_line *in)
{
    int64_t shape[OLY_MAX_RANK];
    return check_oracle_list(in->words[3], shape, OLY_MAX_RANK);
}

/* What JAX refuses because sizes do not divide keeps the axes of the first operand, or takes the requested ones. */
static void check_kept(oracle_program *p, const oracle_line *line)
{
    const char *spec = check_oracle_value(line, check_oracle_value(line, "out") ? "out" : "spec");
    const oracle_line *in;
    if (strcmp(line->words[2], "searchsorted") == 0)
        return; /* placed as the second operand, whose values are searched for */
    oly_array x = oracle_program_find(p, line->words[1]);
    for (int k = 0; !spec && line->n_words > 3 && (in = check_oracle_line(p->run->c, "in", k)); k++)
        if (strcmp(in->words[1], line->words[3]) == 0) {
            spec = in->words[4];
            if (oly_rank(x) != rank_of(in))
                return; /* an indexed dimension is gone */
        }
    if (!spec)
        return;
    char got[512], want[512];
    oly_array like = oly_ones_shape(oly_dtype_of(x), oly_rank(x), oly_shape(x));
    oly_typeof(x, got, sizeof got);
    oly_typeof(oly_device_put(like, oracle_sharding(p->mesh, spec)), want, sizeof want);
    if (strcmp(got, want) != 0)
        oracle_fail(p->run, "%s is %s, must keep its axes: %s", line->words[1], got, want);
}

static void check_type(oracle_run *run, const oracle_line *line, oly_array x, const char *when)
{
    char text[512];
    oly_typeof(x, text, sizeof text);
    if (strcmp(text, line->words[2]) != 0)
        oracle_fail(run, "%s%s is %s, must be %s", when, line->words[1], text, line->words[2]);
}

static void traced(const oly_array *in, oly_array *out, void *user)
{
    typed_program *t = user;
    oracle_program *p = &t->values;
    const oracle_line *line;
    oracle_program_operands(p, in);
    for (int k = 0; (line = check_oracle_line(p->run->c, "let", k)); k++) {
        bool accepted = oracle_program_state(p, line);
        if (accepted && line == t->refused && is_allowed(t->class))
            check_kept(p, line);
        if (accepted)
            continue;
        if (operands_uneven(t)) { /* nothing is known about the statements */
            oly_clear_error();
            out[0] = p->in[0];
            return;
        }
        if (line != t->refused)
            oracle_fail(p->run, "%s: %s", line->words[1], oly_last_error());
        snprintf(t->message, sizeof t->message, "%s", oly_last_error());
        return;
    }
    for (int k = 0; (line = check_oracle_line(p->run->c, "type", k)); k++) {
        out[k] = oracle_program_find(p, line->words[1]);
        check_type(p->run, line, out[k], "");
    }
    if (p->n_out == 0)
        out[0] = p->value[p->n_values - 1];
}

/* At run time the values have the types they had while tracing. */
static void run_typed(typed_program *t)
{
    oracle_program *p = &t->values;
    const oracle_line *line;
    oly_array results[ORACLE_MOST_OUTPUTS] = {NULL}, *wanted[ORACLE_MOST_OUTPUTS];
    int n_out = p->n_out ? p->n_out : 1;
    for (int k = 0; k < n_out; k++)
        wanted[k] = &results[k];
    oly_fn f = oly_jit(traced, p->n_in, n_out, .user = t, .name = p->run->c->id);
    if (oly_call(f, p->n_in, p->in, n_out, wanted) == OLY_OK)
        for (int k = 0; (line = check_oracle_line(p->run->c, "type", k)); k++)
            check_type(p->run, line, results[k], "run: ");
    else if (!t->message[0] && !p->run->failed)
        oracle_fail_call(p->run, "running");
    oly_clear_error();
}

void oracle_check_types(oracle_run *run)
{
    typed_program t = {.values = {.run = run, .results = "type"}};
    if (!oracle_program_possible(run) || !typed_mesh(run, &t.values.mesh))
        return;
    read_error(&t);
    while (check_oracle_line(run->c, "type", t.values.n_out))
        t.values.n_out++;
    oly_mesh before = oly_set_mesh(t.values.mesh);
    if (place_operands(&t))
        run_typed(&t);
    else if (!t.class || t.refused)
        oracle_fail(run, "an operand: %s", t.message);
    if (t.class)
        check_refused(&t);
    oly_set_mesh(before);
}
