/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 timeout=60  Planning programs that read their neighbours' elements takes a process as much work for 100,000
 * devices as for hundreds, and at most about twice that for eight, which exchange nothing: counted in calls of the arithmetic
 * functions and in allocated memory, which, unlike time, are reproducible (the Makefile has the linker wrap these calls).
 *   GROWTH_LIST=1   prints every program with its work for each size of machine, and continues after a failure */
#include "array/function.h"
#include "check.h"
#include "count_work.h"
#include "halo_programs.h"
#include "time_tiling_programs.h"
#include <math.h>
#include <olympus.h>

/* -- programs ---------------------------------------------------------------------------------------------------------------- */

/* Sums over the neighbours up to `reach` away along each of `rank` dimensions: bounded or periodic. */
typedef struct star {
    const char *name;
    int rank, reach;
    bool round;
} star;

static const star stars[] = {
    {"line", 1, 1, false},      {"plate", 2, 1, false},      {"space", 3, 1, false},
    {"wide_line", 1, 3, false}, {"wide_plate", 2, 2, false}, {"wide_space", 3, 2, false},
    {"ring", 1, 1, true},       {"torus", 2, 1, true},       {"space_ring", 3, 1, true},
};

static oly_array shifted_part(oly_array u, int rank, int reach, int d, int by)
{
    int start[3], stop[3];
    for (int e = 0; e < rank; e++) {
        start[e] = reach + (e == d ? by : 0);
        stop[e] = (int)oly_dim(u, e) - reach + (e == d ? by : 0);
    }
    char part[128] = "";
    for (int e = 0; e < rank; e++)
        snprintf(part + strlen(part), sizeof part - strlen(part), "%s%d:%d", e ? ", " : "", start[e], stop[e]);
    return oly_slice(u, part);
}

static void star_step(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    const star *s = user;
    oly_array u = carry[0], sum = oly_mul(0.25, s->round ? u : shifted_part(u, s->rank, s->reach, 0, 0));
    for (int d = 0; d < s->rank; d++)
        for (int by = -s->reach; by <= s->reach; by++)
            if (by != 0)
                sum = oly_add(sum,
                              oly_mul(0.1, s->round ? oly_roll(u, by, d) : shifted_part(u, s->rank, s->reach, d, by)));
    char inner[64] = "";
    for (int d = 0; d < s->rank; d++)
        snprintf(inner + strlen(inner), sizeof inner - strlen(inner), "%s%d:-%d", d ? ", " : "", s->reach, s->reach);
    carry[0] = s->round ? sum : oly_update(u, inner, sum);
}

static void star_steps(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, 50, star_step, 1, out, user);
}

static void time_tiling_steps(const oly_array *in, oly_array *out, void *user)
{
    const time_tiling_program *p = user;
    memcpy(out, in, sizeof *out * (size_t)p->n_fields);
    memcpy(time_tiling_fixed, in + p->n_fields, sizeof *in * (size_t)p->n_fixed);
    oly_fori(0, 50, p->body, p->n_fields, out, NULL);
}

/* -- machines ---------------------------------------------------------------------------------------------------------------- */

/* 64x8 is large enough for every device to have neighbours on all sides. */
static const char *const machines[] = {"1x8", "64x8", "12500x8", "25000x4", "100000x1"};
enum { MACHINES = sizeof machines / sizeof *machines, FEW = 0, SOME = 1, MANY = 2 };

typedef struct program {
    char name[64];
    oly_function function;
    void *user;
    int rank, n_in, n_out;
    const oly_dtype *types; /* NULL: all are float32 */
} program;

/* As close to a cube as the number of devices allows. */
static void shape_mesh(int rank, int *size)
{
    for (int d = 0, left = oly_device_count(); d < rank; left /= size[d++]) {
        size[d] = (int)ceil(pow(left, 1.0 / (rank - d)) - 1e-9);
        while (left % size[d] != 0)
            size[d]++;
    }
}

/* Split unevenly; devices numbered along the first dimension, or the last. */
static int make_operands(const program *p, bool turned, oly_array *in)
{
    static const char *const names[] = {"x", "y", "z"};
    static const int64_t side[] = {4096, 128, 32};
    char spec[16] = "";
    int size[3], n = oly_device_count(), *device = malloc(sizeof *device * (size_t)n);
    int64_t shape[3];
    shape_mesh(p->rank, size);
    for (int d = 0; d < p->rank; d++) {
        shape[d] = side[p->rank - 1] * size[d] + 3;
        snprintf(spec + strlen(spec), sizeof spec - strlen(spec), "%s%s", d ? ", " : "", names[d]);
    }
    for (int k = 0; k < n; k++) { /* position k counts the last dimension first */
        int place = 0, rest = k, stride = n;
        for (int d = p->rank - 1; d >= 0; d--) {
            stride /= size[d];
            place += rest % size[d] * stride;
            rest /= size[d];
        }
        device[k] = turned ? place : k;
    }
    oly_mesh mesh = oly_mesh_from_devices(p->rank, names, size, device);
    for (int k = 0; k < p->n_in; k++)
        in[k] = oly_device_put((oly_zeros_shape)(p->types ? p->types[k] : OLY_FLOAT32, p->rank, shape),
                               oly_named(mesh, spec));
    free(device);
    return 0;
}

static long work_of(const program *p, bool turned)
{
    long work = 0;
    for (int repeat = 0; repeat < 2; repeat++) /* the first one also creates cached data */
        OLY_SCOPE
        {
            const oly_plan *plan = NULL;
            oly_array in[TIME_TILING_MOST * 2];
            make_operands(p, turned, in);
            oly_fn f = oly_jit(p->function, p->n_in, p->n_out, .user = p->user);
            work_done();
            if (oly_function_plan(f, p->n_in, in, &plan) != OLY_OK)
                fail_msg("%s: %s", p->name, oly_last_error());
            work = work_done();
        }
    return work;
}

/* -- tests ------------------------------------------------------------------------------------------------------------------ */

enum { MOST_PROGRAMS = 160 };
static program programs[MOST_PROGRAMS];
static int n_programs;

static void find_programs(void)
{
    static const oly_dtype whole[] = {OLY_INT32}, two_sizes[] = {OLY_FLOAT32, OLY_FLOAT64};
    n_programs = 0;
    for (size_t k = 0; k < sizeof stars / sizeof *stars; k++) {
        program *p = &programs[n_programs++];
        *p = (program){"", star_steps, (void *)&stars[k], stars[k].rank, 1, 1, NULL};
        snprintf(p->name, sizeof p->name, "%s", stars[k].name);
    }
    for (const time_tiling_program *m = time_tiling_programs; m->name; m++) {
        program *p = &programs[n_programs++];
        bool integers = strcmp(m->name, "automaton") == 0 || strcmp(m->name, "life") == 0;
        *p = (program){"",
                       time_tiling_steps,
                       (void *)m,
                       m->rank,
                       m->n_fields + m->n_fixed,
                       m->n_fields,
                       integers                            ? whole
                       : strcmp(m->name, "two_sizes") == 0 ? two_sizes
                                                           : NULL};
        snprintf(p->name, sizeof p->name, "time tiling %s", m->name);
    }
    for (const halo_program *h = halo_programs; h->name; h++) {
        program *p = &programs[n_programs++];
        *p = (program){"", h->function, NULL, h->rank, h->n_in, h->n_out, NULL};
        snprintf(p->name, sizeof p->name, "halo %s", h->name);
    }
    assert_in_range(n_programs, 1, MOST_PROGRAMS);
}

static void work_does_not_grow_with_the_machine(void **state)
{
    (void)state;
    static long work[2][MACHINES][MOST_PROGRAMS];
    int complaints = 0;
    find_programs();
    for (int turned = 0; turned < 2; turned++)
        for (int m = 0; m < MACHINES; m++) {
            setenv("OLYMPUS_SIMULATE", machines[m], 1);
            oly_init(NULL, NULL);
            oly_set_error_mode(OLY_ERRORS_RETURN);
            for (int k = 0; k < n_programs; k++)
                work[turned][m][k] = work_of(&programs[k], turned);
            assert_int_equal(oly_finalize(), 0);
        }
    for (int turned = 0; turned < 2; turned++)
        for (int k = 0; k < n_programs; k++) {
            long few = work[turned][FEW][k], some = work[turned][SOME][k], many = work[turned][MANY][k];
            bool good = true;
            for (int m = SOME; m < MACHINES; m++)
                good = good && work[turned][m][k] <= 2 * few;
            good = good && many <= some + some / 4 + 300;
            complaints += !good;
            if (!good || getenv("GROWTH_LIST"))
                print_message("%s%-30s%s work %6ld  64x8 %6ld  12500x8 %6ld  25000x4 %6ld  100000x1 %6ld: %.2f\n",
                              good ? "      " : "GROWS ", programs[k].name, turned ? " turned" : "", few, some, many,
                              work[turned][3][k], work[turned][4][k], (double)many / (double)few);
        }
    check_growth(complaints);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_does_not_grow_with_the_machine),
    };
    return CHECK_MAIN(tests);
}
