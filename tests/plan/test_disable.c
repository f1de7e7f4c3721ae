/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8  OLYMPUS_DISABLE: every optimisation has a name; without it programs have the same bits,
 * except where docs/semantics.md 10 says that rounding changes; unknown names are an error that lists the known ones.
 * DISABLE=name: only this one. RANDOM_SEED=n: of the first random program. */
#include "check.h"
#include "core/error.h"
#include "core/optimisation.h"
#include "halo_programs.h"
#include "time_tiling_programs.h"
#include "random_program.h"
#include <inttypes.h>
#include <math.h>

enum { RANDOM_PROGRAMS = 12, MOST_OUT = 8, STEPS = 5 };

/* -- a program with its inputs ------------------------------------------------------------------------------------- */

typedef struct subject {
    const char *name;
    uint64_t seed; /* of a random program */
    oly_function function;
    void *user;
    int n_in, n_out;
    const oly_array *in;
    const double *error; /* [n_out] largest effect of another order of sums; NULL: none */
    bool rounds;         /* its loop is computed with fused multiply-adds where it is recognised */
} subject;

typedef struct bits {
    size_t bytes[MOST_OUT];
    char *data[MOST_OUT];
    oly_dtype dtype[MOST_OUT];
} bits;

static void forget(bits *b)
{
    for (int k = 0; k < MOST_OUT; k++)
        free(b->data[k]);
    *b = (bits){0};
}

static void run(const subject *s, oly_optimisations off, bits *b)
{
    oly_array out[MOST_OUT] = {NULL}, *wanted[MOST_OUT];
    oly_optimisations before = oly_disable(off);
    oly_fn f = oly_jit(s->function, s->n_in, s->n_out, .user = s->user, .name = s->name);
    for (int k = 0; k < s->n_out; k++)
        wanted[k] = &out[k];
    oly_status st = oly_call(f, s->n_in, s->in, s->n_out, wanted);
    oly_disable(before);
    if (st != OLY_OK)
        fail_msg("%s, seed %" PRIu64 ": %s", s->name, s->seed, oly_last_error());
    for (int k = 0; k < s->n_out; k++) {
        b->dtype[k] = oly_dtype_of(out[k]);
        b->bytes[k] = (size_t)oly_size(out[k]) * oly_dtype_size(b->dtype[k]);
        b->data[k] = malloc(b->bytes[k] + 1);
        assert_int_equal(oly_process_allgather(out[k], b->data[k], b->bytes[k]), OLY_OK);
    }
}

/* Is every element within the effect of another order of sums? */
static bool is_near(const bits *a, const bits *b, int k, double error)
{
    oly_dtype dtype = a->dtype[k];
    for (int64_t i = 0; i < (int64_t)(a->bytes[k] / oly_dtype_size(dtype)); i++)
        for (int part = 0; part < element_parts(dtype); part++) {
            double x = element_part(dtype, a->data[k], i, part), y = element_part(dtype, b->data[k], i, part);
            if (x != y && !(isnan(x) && isnan(y)) && !(fabs(x - y) <= 2 * error))
                return false;
        }
    return true;
}

static void compare(const subject *s, const char *without, const bits *wanted, const bits *got)
{
    for (int k = 0; k < s->n_out; k++) {
        bool same = memcmp(wanted->data[k], got->data[k], got->bytes[k]) == 0;
        if (!same && !(s->error && s->error[k] > 0 && is_near(wanted, got, k, s->error[k])))
            fail_msg("%s, seed %" PRIu64 ": result %d has other bits without %s", s->name, s->seed, k, without);
    }
}

static oly_optimisations one(oly_optimisation x)
{
    return (oly_optimisations)1 << x;
}

/* Without the optimisations that change roundings of loops, all others change nothing; nor do they with those. */
static void try_all(const subject *s)
{
    static const oly_optimisations loops =
        (oly_optimisations)1 << OLY_OPTIMISATION_STENCIL_TAPS | (oly_optimisations)1 << OLY_OPTIMISATION_FIELD_LOOPS;
    const char *only = getenv("DISABLE");
    bits all_on = {0}, exact = {0}, got = {0};
    run(s, 0, &all_on);
    run(s, one(OLY_OPTIMISATION_STENCIL_TAPS), &exact);
    for (int k = 0; k <= OLY_N_OPTIMISATIONS; k++) {
        bool every = k == OLY_N_OPTIMISATIONS;
        const char *name = every ? "all" : oly_optimisation_name((oly_optimisation)k);
        oly_optimisations off = every ? OLY_ALL_OPTIMISATIONS : one((oly_optimisation)k);
        if (only && strcmp(only, name) != 0)
            continue;
        run(s, off, &got);
        compare(s, name, s->rounds && off & loops ? &exact : &all_on, &got);
        forget(&got);
        if (!s->rounds || off & loops)
            continue;
        run(s, off | one(OLY_OPTIMISATION_STENCIL_TAPS), &got);
        compare(s, name, &exact, &got);
        forget(&got);
    }
    forget(&all_on);
    forget(&exact);
}

/* -- programs ------------------------------------------------------------------------------------------------------------ */

typedef struct placement {
    const char *mesh, *spec;
    int rank;
    int64_t shape[3];
} placement;

static const placement placements[] = {
    {"x=8", "x", 1, {61}},
    {"x=4, y=2", "x, y", 2, {16, 16}},
    {"x=2, y=4", "y, None, x", 3, {9, 4, 5}},
};
enum { PLACEMENTS = sizeof placements / sizeof *placements };

static oly_array make(const placement *at, int which)
{
    int64_t n = 1;
    for (int d = 0; d < at->rank; d++)
        n *= at->shape[d];
    float *data = malloc(sizeof *data * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        data[i] = 0.5f + (float)((i * 7919 + which * 104729 + 13) % 1009) / 1009;
    oly_array x = oly_from_host(data, OLY_FLOAT32, at->rank, at->shape);
    free(data);
    return oly_device_put(x, oly_named(oly_make_mesh(at->mesh), at->spec));
}

static void reading_neighbours(void **state)
{
    (void)state;
    for (const halo_program *p = halo_programs; p->name; p++)
        for (int k = 0; k < PLACEMENTS; k++)
            OLY_SCOPE
            {
                oly_array in[HALO_MOST_ARRAYS];
                if (placements[k].rank != p->rank)
                    continue;
                for (int j = 0; j < p->n_in; j++)
                    in[j] = make(&placements[k], j);
                try_all(&(subject){.name = p->name,
                                   .function = p->function,
                                   .n_in = p->n_in,
                                   .n_out = p->n_out,
                                   .in = in,
                                   .rounds = true});
            }
}

static void advance(const oly_array *in, oly_array *out, void *user)
{
    const time_tiling_program *p = user;
    memcpy(out, in, sizeof *out * (size_t)p->n_fields);
    memcpy(time_tiling_fixed, in + p->n_fields, sizeof *in * (size_t)p->n_fixed);
    oly_fori(2, 2 + STEPS, p->body, p->n_fields, out, NULL);
}

static oly_dtype field_type(const time_tiling_program *p, int field)
{
    if (strcmp(p->name, "automaton") == 0 || strcmp(p->name, "life") == 0)
        return OLY_INT32;
    return strcmp(p->name, "two_sizes") == 0 && field == 1 ? OLY_FLOAT64 : OLY_FLOAT32;
}

static void loops_over_fields(void **state)
{
    (void)state;
    for (const time_tiling_program *p = time_tiling_programs; p->name; p++)
        for (int k = 0; k < PLACEMENTS; k++)
            OLY_SCOPE
            {
                oly_array in[2 * TIME_TILING_MOST];
                if (placements[k].rank != p->rank)
                    continue;
                for (int j = 0; j < p->n_fields + p->n_fixed; j++) {
                    in[j] = make(&placements[k], j);
                    if (j < p->n_fields)
                        in[j] = field_type(p, j) == OLY_INT32 ? oly_astype(oly_gt(in[j], 1.1), OLY_INT32)
                                                              : oly_astype(in[j], field_type(p, j));
                }
                try_all(&(subject){.name = p->name,
                                   .function = advance,
                                   .user = (void *)p,
                                   .n_in = p->n_fields + p->n_fixed,
                                   .n_out = p->n_fields,
                                   .in = in,
                                   .rounds = true});
            }
}

/* -- random programs ----------------------------------------------------------------------------------------------------- */

typedef struct random_run {
    const program *p;
    int n_in, in[MOST_VALUES], n_out, out[MOST_OUT];
} random_run;

static void random_function(const oly_array *in, oly_array *out, void *user)
{
    const random_run *r = user;
    oly_array values[MOST_VALUES] = {NULL};
    for (int k = 0; k < r->n_in; k++)
        values[r->in[k]] = in[k];
    for (int k = 0; k < r->p->n; k++)
        if (r->p->call[k].kind != MAKE_INPUT)
            values[k] = run_instruction(r->p, k, values, false);
    for (int k = 0; k < r->n_out; k++)
        out[k] = values[r->out[k]];
}

static void try_random(program *p)
{
    random_run r = {.p = p};
    oly_array in[MOST_VALUES], values[MOST_VALUES] = {NULL};
    double error[MOST_OUT];
    for (int k = 0; k < p->n; k++)
        if (p->call[k].kind == MAKE_INPUT) {
            in[r.n_in] = run_instruction(p, k, values, false);
            if (p->call[k].sharding)
                in[r.n_in] = oly_device_put(in[r.n_in], p->call[k].sharding);
            r.in[r.n_in++] = k;
        }
    for (int k = p->n - 1; k >= 0 && r.n_out < MOST_OUT; k--)
        if (p->call[k].kind != MAKE_INPUT) {
            error[r.n_out] = p->value[k].error;
            r.out[r.n_out++] = k;
        }
    if (r.n_out > 0)
        try_all(&(subject){.name = "a random program",
                           .seed = p->seed,
                           .function = random_function,
                           .user = &r,
                           .n_in = r.n_in,
                           .n_out = r.n_out,
                           .in = in,
                           .error = error});
}

static void random_programs(void **state)
{
    (void)state;
    static program p;
    const char *seed = getenv("RANDOM_SEED");
    for (int k = 0; k < RANDOM_PROGRAMS; k++)
        OLY_SCOPE
        {
            make_program(&p, (seed ? strtoull(seed, NULL, 10) : 1301) + (uint64_t)k);
            try_random(&p);
            free_program(&p);
        }
}

/* -- names --------------------------------------------------------------------------------------------------------------- */

static void names_are_read(void **state)
{
    (void)state;
    oly_optimisations some;
    assert_int_equal(oly_optimisations_parse("", &some), OLY_OK);
    assert_true(some == 0);
    assert_int_equal(oly_optimisations_parse("fusion, time-tiling", &some), OLY_OK);
    assert_true(some == (one(OLY_OPTIMISATION_FUSION) | one(OLY_OPTIMISATION_TIME_TILING)));
    assert_int_equal(oly_optimisations_parse("all", &some), OLY_OK);
    assert_true(some == OLY_ALL_OPTIMISATIONS);
    assert_int_equal(oly_optimisations_parse("overlap,fusio", &some), OLY_INVALID);
    for (int k = 0; k < OLY_N_OPTIMISATIONS; k++)
        assert_non_null(strstr(oly_pending_message(), oly_optimisation_name((oly_optimisation)k)));
    assert_non_null(strstr(oly_pending_message(), "\"fusio\""));
    oly_drop_message();
}

/* Optimisations can be disabled for all that is planned meanwhile, and no longer. */
static void some_can_be_off_for_a_while(void **state)
{
    (void)state;
    oly_optimisations before = oly_disable(one(OLY_OPTIMISATION_OVERLAP));
    assert_true(before == 0 && !oly_enabled(OLY_OPTIMISATION_OVERLAP) && oly_enabled(OLY_OPTIMISATION_FUSION));
    assert_true(oly_disable(before) == one(OLY_OPTIMISATION_OVERLAP) && oly_enabled(OLY_OPTIMISATION_OVERLAP));
}

static int start(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    return oly_device_count() == 8 ? 0 : -1;
}

static int finish(void **state)
{
    (void)state;
    return oly_finalize();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_are_read),
    cmocka_unit_test(some_can_be_off_for_a_while),
    cmocka_unit_test_setup_teardown(reading_neighbours, start, finish),
    cmocka_unit_test_setup_teardown(loops_over_fields, start, finish),
    cmocka_unit_test_setup_teardown(random_programs, start, finish),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
