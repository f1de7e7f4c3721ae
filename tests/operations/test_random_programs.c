/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  All operations: random programs give the same values sharded as on one device.
 *
 * Each program (random_program.h) runs on one device first; then call by call on inputs sharded at random, and as a compiled
 * function, twice. Integers, bools and elementwise chains must agree exactly, sums of fractions up to the effect of another
 * order.
 *   RANDOM_SEED=n      seed of the first program; program k has seed n + k
 *   RANDOM_PROGRAMS=n  how many
 *   RANDOM_PRINT=1     print each program before it runs */
#include "check.h"
#include "random_program.h"
#include <inttypes.h>
#include <math.h>

static void fail_program(const program *p, const char *how)
{
    fprintf(stderr, "\nprogram with RANDOM_SEED=%" PRIu64 " RANDOM_PROGRAMS=1, %d devices in a mesh:\n", p->seed,
            p->n_devices);
    print_program(stderr, p);
    fail_msg("seed %" PRIu64 ", %s", p->seed, how);
}

/* -- comparing --------------------------------------------------------------------------------------------- */
static bool same_element(const value *v, const void *data, int64_t i)
{
    if (v->dtype == OLY_INT64 || v->dtype == OLY_UINT64)
        return ((const int64_t *)v->data)[i] == ((const int64_t *)data)[i];
    for (int part = 0; part < element_parts(v->dtype); part++) {
        double want = element_part(v->dtype, v->data, i, part), got = element_part(v->dtype, data, i, part);
        if (want != got && !(isnan(want) && isnan(got)) && !(fabs(want - got) <= v->error))
            return false;
    }
    return true;
}

/* "-3" or "-3+1i" */
static const char *element_text(const value *v, const void *data, int64_t i)
{
    static char text[2][80];
    static int turn;
    char *t = text[turn++ % 2];
    int at = snprintf(t, 80, "%.17g", element_part(v->dtype, data, i, 0));
    if (element_parts(v->dtype) > 1)
        snprintf(t + at, 80 - (size_t)at, "%+.17gi", element_part(v->dtype, data, i, 1));
    return t;
}

static void check_value(const program *p, int k, oly_array x, const char *how)
{
    const value *v = &p->value[k];
    char text[600], sharding[300];
    size_t bytes = (size_t)v->size * oly_dtype_size(v->dtype);
    if (!x) {
        snprintf(text, sizeof text, "%s: v%d failed: %s", how, k, oly_last_error());
        fail_program(p, text);
    }
    if (oly_dtype_of(x) != v->dtype || oly_rank(x) != v->rank ||
        memcmp(oly_shape(x), v->shape, sizeof(int64_t) * (size_t)v->rank) != 0) {
        snprintf(text, sizeof text, "%s: v%d has another type", how, k);
        fail_program(p, text);
    }
    void *data = malloc(bytes + 16);
    memset(data, 0xa5, bytes);
    if (oly_process_allgather(x, data, bytes) != OLY_OK) {
        snprintf(text, sizeof text, "%s: gathering v%d: %s", how, k, oly_last_error());
        fail_program(p, text);
    }
    for (int64_t i = 0; i < v->size; i++)
        if (!same_element(v, data, i)) {
            oly_sharding_str(oly_sharding_of(x), sharding, sizeof sharding);
            snprintf(text, sizeof text, "%s: element %" PRId64 " of v%d is %s and should be %s; it has %s", how, i, k,
                     element_text(v, data, i), element_text(v, v->data, i), sharding);
            fail_program(p, text);
        }
    free(data);
}

/* -- the ways to run a program ----------------------------------------------------------------------------- */
static void place_inputs(const program *p, oly_array *values)
{
    for (int k = 0; k < p->n; k++) {
        values[k] = NULL;
        if (p->call[k].kind != MAKE_INPUT)
            continue;
        values[k] = run_instruction(p, k, values, false);
        if (p->call[k].sharding)
            values[k] = oly_device_put(values[k], p->call[k].sharding);
    }
}

static void run_calls(const program *p, oly_array *values)
{
    for (int k = 0; k < p->n; k++)
        if (p->call[k].kind != MAKE_INPUT)
            values[k] = run_instruction(p, k, values, false);
}

static void check_eager(const program *p)
{
    oly_array values[MOST_VALUES];
    place_inputs(p, values);
    run_calls(p, values);
    for (int k = 0; k < p->n; k++)
        check_value(p, k, values[k], "call by call");
}

typedef struct compiled_run {
    const program *program;
    int n_in, n_out, in[MOST_INPUTS], out[32];
    const oly_array *outside; /* inputs that are not arguments */
} compiled_run;

static void traced(const oly_array *in, oly_array *out, void *user)
{
    const compiled_run *run = user;
    oly_array values[MOST_VALUES];
    memcpy(values, run->outside, sizeof values);
    for (int k = 0; k < run->n_in; k++)
        values[run->in[k]] = in[k];
    run_calls(run->program, values);
    for (int k = 0; k < run->n_out; k++)
        out[k] = values[run->out[k]];
}

/* Most inputs are arguments; results are the values without users, and some more. */
static void choose_ends(program *p, compiled_run *run)
{
    bool used[MOST_VALUES] = {false};
    for (int k = 0; k < p->n; k++)
        for (int j = 0; j < p->call[k].n_in; j++)
            used[p->call[k].in[j]] = true;
    for (int k = 0; k < p->n; k++)
        if (p->call[k].kind == MAKE_INPUT && random_below(p, 8) != 0)
            run->in[run->n_in++] = k;
    for (int k = 0; k < p->n && run->n_out < 30; k++)
        if (!used[k] || random_below(p, 6) == 0)
            run->out[run->n_out++] = k;
}

static void check_results(const program *p, const compiled_run *run, oly_array *results, oly_status status,
                          const char *how)
{
    char text[400];
    if (status != OLY_OK) {
        snprintf(text, sizeof text, "%s: %s", how, oly_last_error());
        fail_program(p, text);
    }
    for (int k = 0; k < run->n_out; k++)
        check_value(p, run->out[k], results[k], how);
}

/* Moves a result to any sharding over any devices. */
static void check_move(program *p, const compiled_run *run, oly_array x)
{
    program other = {.random = p->random};
    static const char *const axes[] = {"a=8", "a=2,b=4", "a=3", "a=5", "a=1", "a=2,b=3"};
    for (int k = 0; k < 4; k++)
        other.mesh[k] = oly_make_mesh(axes[random_below(p, 6)]);
    oly_array moved = oly_device_put(x, random_sharding(&other, p->value[run->out[0]].rank));
    check_value(p, run->out[0], moved, "moved to other devices");
}

static void check_compiled(program *p)
{
    oly_array values[MOST_VALUES], arguments[MOST_INPUTS], results[32];
    oly_array *targets[32];
    oly_sharding to[32] = {NULL};
    compiled_run run = {.program = p, .outside = values};
    choose_ends(p, &run);
    place_inputs(p, values);
    for (int k = 0; k < run.n_out; k++) {
        targets[k] = &results[k];
        if (random_below(p, 6) == 0)
            to[k] = random_sharding(p, p->value[run.out[k]].rank);
    }
    oly_fn f = oly_jit(traced, run.n_in, run.n_out, .user = &run, .out_shardings = to);
    for (int k = 0; k < run.n_in; k++)
        arguments[k] = values[run.in[k]];
    oly_status status = oly_call(f, run.n_in, arguments, run.n_out, targets);
    check_results(p, &run, results, status, "compiled");
    for (int k = 0; k < run.n_in; k++)
        check_value(p, run.in[k], arguments[k], "an argument after the call");
    check_move(p, &run, results[0]);
    if (run.n_in > 0) /* donated: the argument's handle receives a result */
        targets[0] = &arguments[0];
    status = oly_call(f, run.n_in, arguments, run.n_out, targets);
    results[0] = *targets[0];
    check_results(p, &run, results, status, "compiled, again");
}

static int64_t setting(const char *name, int64_t fallback)
{
    const char *text = getenv(name);
    return text ? strtoll(text, NULL, 10) : fallback;
}

static void sharded_programs_give_the_values_of_one_device(void **state)
{
    (void)state;
    static program p;
    uint64_t seed = (uint64_t)setting("RANDOM_SEED", 1);
    int64_t programs = setting("RANDOM_PROGRAMS", 200);
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    for (int64_t k = 0; k < programs; k++) {
        OLY_SCOPE
        {
            make_program(&p, seed + (uint64_t)k);
            if (setting("RANDOM_PRINT", 0) && oly_process_index() == 0) {
                fprintf(stderr, "seed %" PRIu64 "\n", p.seed);
                print_program(stderr, &p);
            }
            check_eager(&p);
            check_compiled(&p);
        }
        if (oly_last_status() != OLY_OK)
            fail_program(&p, oly_last_error());
        free_program(&p);
    }
    assert_int_equal(oly_finalize(), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sharded_programs_give_the_values_of_one_device),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
