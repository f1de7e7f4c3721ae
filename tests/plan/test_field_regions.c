/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  What computes fields from nearby elements of computed fields outside of counted loops over fields (plan/rewrite/field_regions.c): the
 * bits of the plain evaluation, on one device and on eight, in functions of one step, in loops with a reduction between two parts of a
 * step, in oly_while, and in derivatives.
 *   FIELD_REGIONS=first,last   other random programs */
#include "check.h"
#include "core/optimisation.h"
#include "plan/rewrite/rewrite.h"
#include "random_fields.h"
#include <olympus.h>

enum { PROGRAMS = 60, KINDS = 5 };

/* A program: a random step, or two of them. */
typedef struct program {
    random_case c;
    int kind;
    unsigned seed[2];
} program;

static void step(program *p, int which, oly_array *fields)
{
    p->c.seed = p->seed[which];
    random_case_body(NULL, fields, &p->c);
}

/* Two steps; the second begins from fields that depend on the largest element after the first, as a time step does, and ends at
 * some that were computed before that. */
static void divided(program *p, oly_array *fields)
{
    oly_array first[MOST_FIELDS];
    step(p, 0, fields);
    memcpy(first, fields, sizeof first);
    oly_array largest = oly_max(oly_abs(fields[0]));
    for (int k = 0; k < p->c.n_fields; k++)
        fields[k] = oly_mul(fields[k], oly_div(1, oly_add(1, oly_mul(0.25, largest))));
    step(p, 1, fields);
    for (int k = 0; k < p->c.n_fields; k++)
        fields[k] = oly_add(oly_mul(0.5, fields[k]), oly_mul(0.25, first[k]));
}

static void body(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    divided(user, carry);
}

static oly_array goes_on(const oly_array *carry, void *user)
{
    const program *p = user;
    return oly_logical_and(oly_lt(carry[p->c.n_fields], 5), oly_lt(oly_max(carry[0]), 100));
}

static void until(oly_array *carry, void *user)
{
    program *p = user;
    step(p, 0, carry);
    carry[p->c.n_fields] = oly_add(carry[p->c.n_fields], 1);
}

static void loss(const oly_array *in, oly_array *out, void *user)
{
    program *p = user;
    oly_array fields[MOST_FIELDS];
    memcpy(fields, in, sizeof *in * (size_t)p->c.n_fields);
    step(p, 0, fields);
    out[0] = oly_add(oly_sum(oly_mul(fields[0], fields[0])), oly_sum(fields[p->c.n_fields - 1]));
}

static void run(const oly_array *in, oly_array *out, void *user)
{
    program *p = user;
    oly_array carry[MOST_FIELDS + 1];
    size_t bytes = sizeof *in * (size_t)p->c.n_fields;
    memcpy(out, in, bytes);
    if (p->kind == 0)
        step(p, 0, out);
    else if (p->kind == 1)
        divided(p, out);
    else if (p->kind == 2)
        oly_fori(0, p->c.steps, body, p->c.n_fields, out, p);
    else {
        memcpy(carry, in, bytes);
        carry[p->c.n_fields] = oly_scalar(0, OLY_INT32);
        oly_while(goes_on, until, p->c.n_fields + 1, carry, p);
        memcpy(out, carry, bytes);
    }
}

static int regions_of(oly_fn f, int n, const oly_array *in)
{
    static char text[1 << 20];
    FILE *file = tmpfile();
    int regions = 0;
    assert_int_equal(oly_explain_n(file, f, n, in), OLY_OK);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    for (const char *at = text; (at = strstr(at, " of one step together")); at++)
        regions++;
    return regions;
}

static oly_fn compiled(program *p)
{
    if (p->kind < 4)
        return oly_jit(run, p->c.n_fields, p->c.n_fields, .user = p);
    return oly_grad(oly_jit(loss, p->c.n_fields, 1, .user = p), .argnums = "0");
}

static char *bytes_of(oly_array x, size_t *n)
{
    *n = (size_t)oly_size(x) * sizeof(float);
    char *data = malloc(*n);
    assert_int_equal(oly_process_allgather(x, data, *n), OLY_OK);
    return data;
}

static void compare(int number, const program *p, const char *what, oly_array a, oly_array b)
{
    size_t n, m;
    char *x = bytes_of(a, &n), *y = bytes_of(b, &m);
    if (n != m || memcmp(x, y, n) != 0)
        fail_msg("program %d, kind %d: other bits %s", number, p->kind, what);
    free(x);
    free(y);
}

typedef struct placed_program {
    program *p;
    oly_sharding to;
} placed_program;

/* In a region with automatic axes, of arrays whose shardings are parts of their types. */
static void run_automatically(const oly_array *in, oly_array *out, void *user)
{
    placed_program *a = user;
    oly_sharding to[MOST_FIELDS];
    oly_array *at[MOST_FIELDS];
    for (int k = 0; k < a->p->c.n_fields; k++) {
        to[k] = a->to;
        at[k] = &out[k];
    }
    oly_auto_axes_with(run, "run", a->p, a->p->c.n_fields, in, a->p->c.n_fields, at, to);
}

static void check_automatic_axes(int number, program *p, const oly_array *in, const char *spec)
{
    const int n = p->c.n_fields;
    oly_mesh mesh = oly_mesh_with_types(oly_sharding_mesh(oly_sharding_of(in[0])),
                                        (oly_axis_type[]){OLY_AXIS_EXPLICIT, OLY_AXIS_EXPLICIT});
    placed_program a = {p, oly_named(mesh, spec)};
    oly_array placed[MOST_FIELDS], out[MOST_FIELDS] = {NULL}, expected[MOST_FIELDS] = {NULL};
    for (int k = 0; k < n; k++)
        placed[k] = oly_device_put(in[k], a.to);
    oly_fn f = oly_jit(run_automatically, n, n, .user = &a), plain = compiled(p);
    assert_int_equal(oly_call_arrays(plain, n, in, n, expected), OLY_OK);
    assert_int_equal(oly_call_arrays(f, n, placed, n, out), OLY_OK);
    assert_int_equal(regions_of(f, n, placed), regions_of(plain, n, in));
    for (int k = 0; k < n; k++)
        compare(number, p, "with automatic axes", expected[k], out[k]);
}

/* Returns the number of regions on eight devices. */
static int check_program(int number)
{
    static const char *const places[][2] = {{"x=4, y=2", "x, y"}, {"x=2, y=4", "x, y"}, {"x=4, y=2", "y, None"}};
    program p = {.c = number % 3 ? random_case_of(number, number % 2) : random_case_long(number),
                 .kind = number % KINDS};
    const char *const *place = places[number / KINDS % 3];
    oly_mesh mesh = oly_make_mesh(p.c.rank == 1 ? "x=8" : place[0]);
    int n = p.c.n_fields, n_out = p.kind < 4 ? n : 1;
    oly_array in[2][MOST_FIELDS], out[2][2][MOST_FIELDS] = {{{NULL}}};
    p.seed[0] = p.c.state;
    p.seed[1] = p.c.state + 77;
    for (int k = 0; k < n; k++) {
        in[0][k] = random_case_start(&p.c, k);
        in[1][k] = oly_device_put(in[0][k], oly_named(mesh, p.c.rank == 1 ? "x" : place[1]));
    }
    for (int on = 0; on < 2; on++) {
        oly_optimisations before = oly_disable(on ? 0 : (oly_optimisations)1 << OLY_OPTIMISATION_FIELD_REGIONS);
        for (int devices = 0; devices < 2; devices++)
            assert_int_equal(oly_call_arrays(compiled(&p), n, in[devices], n_out, out[on][devices]), OLY_OK);
        oly_disable(before);
    }
    for (int k = 0; k < n_out; k++) {
        compare(number, &p, "in a region, on one device", out[0][0][k], out[1][0][k]);
        compare(number, &p, "in a region, on eight devices", out[0][1][k], out[1][1][k]);
        compare(number, &p, "on eight devices than on one", out[1][0][k], out[1][1][k]);
    }
    if (p.kind < 4)
        check_automatic_axes(number, &p, in[1], p.c.rank == 1 ? "x" : place[1]);
    return regions_of(compiled(&p), n, in[1]);
}

static void bits_are_those_of_the_plain_evaluation(void **state)
{
    int first = 0, last = PROGRAMS - 1, n = 0;
    const char *programs = getenv("FIELD_REGIONS");
    (void)state;
    if (programs)
        sscanf(programs, "%d,%d", &first, &last);
    oly_init(NULL, NULL);
    int64_t before = oly_field_regions_least;
    oly_field_regions_least = 1;
    for (int k = first; k <= last; k++)
        OLY_SCOPE
        {
            n += check_program(k) > 0;
        }
    oly_field_regions_least = before;
    assert_int_equal(oly_finalize(), 0);
    if (programs)
        printf("%d of %d programs had regions\n", n, last - first + 1);
    else
        assert_true(n > PROGRAMS / 3);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(bits_are_those_of_the_plain_evaluation)};

int main(void)
{
    return CHECK_MAIN(tests);
}
