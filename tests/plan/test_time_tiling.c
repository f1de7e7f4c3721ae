/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Loops over fields: the values of single steps on one device; the same bits for every number of steps between
 * exchanges, on every mesh; and as many exchanges as passes.
 *   TIME_TILING_PROGRAM=name  only this one
 *   TIME_TILING_LIST=1        prints what each moves, and continues after a failure */
#include "check.h"
#include "time_tiling_programs.h"
#include <inttypes.h>
#include <math.h>

enum { STEPS = 7 };

typedef struct placement {
    const char *mesh, *spec;
    int rank;
    int64_t shape[3];
} placement;

static const placement placements[] = {
    {"x=8", "x", 1, {64}},
    {"x=8", "x", 1, {61}},
    {"x=8", "x", 1, {13}}, /* blocks narrower than the margins */
    {"x=2, y=4", "y", 1, {23}},
    {"x=8", "None", 1, {300}},
    {"x=4, y=2", "x, y", 2, {16, 16}},
    {"x=2, y=4", "x, y", 2, {13, 11}},
    {"x=2, y=4", "y, None", 2, {9, 40}},
    {"x=8", "None, x", 2, {6, 83}},
    {"x=2, y=2, z=2", "x, y, z", 3, {6, 6, 6}},
    {"x=2, y=4", "y, None, x", 3, {9, 4, 5}},
};

static int64_t size_of(const placement *p)
{
    int64_t n = 1;
    for (int d = 0; d < p->rank; d++)
        n *= p->shape[d];
    return n;
}

/* The element type of a program's field. */
static oly_dtype dtype_of(const time_tiling_program *p, int field)
{
    if (strcmp(p->name, "automaton") == 0 || strcmp(p->name, "life") == 0)
        return OLY_INT32;
    return strcmp(p->name, "two_sizes") == 0 && field == 1 ? OLY_FLOAT64 : OLY_FLOAT32;
}

static oly_array make(const time_tiling_program *p, const placement *at, int which)
{
    int64_t n = size_of(at);
    float *data = malloc(sizeof *data * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)((i * 7919 + which * 104729 + 13) % 1009) / 1009;
    oly_array x = oly_from_host(data, OLY_FLOAT32, at->rank, at->shape);
    free(data);
    if (which < p->n_fields && dtype_of(p, which) == OLY_INT32)
        return oly_astype(oly_gt(x, 0.6), OLY_INT32);
    return which < p->n_fields ? oly_astype(x, dtype_of(p, which)) : x;
}

static void advance(const oly_array *in, oly_array *out, void *user)
{
    const time_tiling_program *p = user;
    memcpy(out, in, sizeof *out * (size_t)p->n_fields);
    memcpy(time_tiling_fixed, in + p->n_fields, sizeof *in * (size_t)p->n_fixed);
    oly_fori(2, 2 + STEPS, p->body, p->n_fields, out, NULL);
}

/* One step as a function of its own. */
static void step(const oly_array *in, oly_array *out, void *user)
{
    const time_tiling_program *p = user;
    memcpy(out, in, sizeof *out * (size_t)p->n_fields);
    memcpy(time_tiling_fixed, in + p->n_fields, sizeof *in * (size_t)p->n_fixed);
    p->body(in[p->n_fields + p->n_fixed], out, NULL);
}

static void run_alone(const time_tiling_program *p, const placement *at, oly_array *fields)
{
    oly_array in[2 * TIME_TILING_MOST], out[TIME_TILING_MOST], *wanted[TIME_TILING_MOST];
    int n = p->n_fields + p->n_fixed;
    oly_fn f = oly_jit(step, n + 1, p->n_fields, .user = (void *)p, .name = p->name);
    for (int k = 0; k < n; k++)
        in[k] = make(p, at, k);
    for (int i = 2; i < 2 + STEPS; i++) {
        int32_t counter = i;
        in[n] = oly_from_host(&counter, OLY_INT32, 0, NULL);
        for (int k = 0; k < p->n_fields; k++) {
            out[k] = NULL;
            wanted[k] = &out[k];
        }
        if (oly_call(f, n + 1, in, p->n_fields, wanted) != OLY_OK)
            fail_msg("%s: %s", p->name, oly_last_error());
        memcpy(in, out, sizeof *out * (size_t)p->n_fields);
    }
    memcpy(fields, in, sizeof *in * (size_t)p->n_fields);
}

static int complaints;

static void complain(const time_tiling_program *p, const placement *at, const char *steps, const char *what,
                     int64_t got)
{
    char text[300];
    snprintf(text, sizeof text, "%s of (%d, %d, %d) by %s over %s, %s steps a pass: %s %" PRId64, p->name,
             (int)at->shape[0], (int)at->shape[1], (int)at->shape[2], at->spec, at->mesh, steps, what, got);
    complaints++;
    if (!getenv("TIME_TILING_LIST"))
        fail_msg("%s", text);
    printf("WRONG %s\n", text);
}

/* bits: the result for every number of steps per pass, set by the first. */
static void check_program(const time_tiling_program *p, const placement *at, const char *steps_a_pass, oly_array *alone,
                          char **bits)
{
    oly_array in[2 * TIME_TILING_MOST], out[TIME_TILING_MOST] = {NULL}, *wanted[TIME_TILING_MOST];
    oly_mesh mesh = oly_make_mesh(at->mesh);
    oly_plan_costs costs;
    int n = p->n_fields + p->n_fixed;
    oly_fn f = oly_jit(advance, n, p->n_fields, .user = (void *)p, .name = p->name);
    for (int k = 0; k < n; k++)
        in[k] = oly_device_put(make(p, at, k), oly_named(mesh, at->spec));
    for (int k = 0; k < p->n_fields; k++)
        wanted[k] = &out[k];
    if (oly_call(f, n, in, p->n_fields, wanted) != OLY_OK || oly_costs_n(&costs, f, n, in) != OLY_OK)
        fail_msg("%s: %s", p->name, oly_last_error());
    for (int k = 0; k < p->n_fields; k++) {
        size_t bytes = (size_t)size_of(at) * (dtype_of(p, k) == OLY_FLOAT64 ? 8 : 4);
        char *data = malloc(bytes), *expected = malloc(bytes);
        oly_process_allgather(out[k], data, bytes);
        if (!bits[k]) { /* the first: of single steps, compared with a function without a loop */
            oly_array apart = oly_abs(oly_sub(oly_astype(out[k], OLY_FLOAT64), oly_astype(alone[k], OLY_FLOAT64)));
            if (oly_item(oly_max(apart)) > 1e-5)
                complain(p, at, steps_a_pass, "values differ in field", k);
            oly_fn f_one = oly_jit(advance, n, p->n_fields, .user = (void *)p, .name = p->name);
            oly_array one_in[2 * TIME_TILING_MOST], one[TIME_TILING_MOST] = {NULL}, *one_wanted[TIME_TILING_MOST];
            for (int j = 0; j < n; j++)
                one_in[j] = make(p, at, j);
            for (int j = 0; j < p->n_fields; j++)
                one_wanted[j] = &one[j];
            oly_call(f_one, n, one_in, p->n_fields, one_wanted);
            oly_process_allgather(one[k], expected, bytes);
            bits[k] = malloc(bytes);
            memcpy(bits[k], p->apart ? data : expected,
                   bytes); /* sums over several devices have an order of their own */
        }
        size_t i = 0;
        while (i < bytes && data[i] == bits[k][i])
            i++;
        if (i < bytes)
            complain(p, at, steps_a_pass, "another value at byte", (int64_t)i);
        free(data);
        free(expected);
    }
    int pass = atoi(steps_a_pass), passes = pass ? (STEPS + pass - 1) / pass : STEPS;
    bool two = strcmp(p->name, "two_sizes") == 0; /* elements of two sizes: two exchanges */
    int fixed = 2 * p->n_fixed; /* before the loop: to the layout in which the loop reads it, and its margins */
    if (!p->apart && costs.collectives > passes * (1 + two) + fixed)
        complain(p, at, steps_a_pass, "exchanges:", costs.collectives);
    if (getenv("TIME_TILING_LIST"))
        printf("%s %s (%d,%d,%d) %s: %" PRId64 " bytes in %" PRId64 " exchanges\n", p->name, at->spec,
               (int)at->shape[0], (int)at->shape[1], (int)at->shape[2], steps_a_pass, costs.wire_bytes,
               costs.collectives);
}

static void many_steps_give_the_bits_of_single_ones(void **state)
{
    static const char *const passes[] = {"1", "", "2", "3", "7"};
    enum { N_PLACEMENTS = sizeof placements / sizeof *placements };
    static char *bits[TIME_TILING_PROGRAMS][N_PLACEMENTS][TIME_TILING_MOST];
    const char *only = getenv("TIME_TILING_PROGRAM");
    (void)state;
    for (size_t s = 0; s < sizeof passes / sizeof *passes; s++) {
        setenv("OLYMPUS_HALO_STEPS", passes[s], 1);
        if (!*passes[s])
            unsetenv("OLYMPUS_HALO_STEPS");
        oly_init(NULL, NULL);
        oly_set_error_mode(OLY_ERRORS_RETURN);
        for (const time_tiling_program *p = time_tiling_programs; p->name; p++)
            for (size_t k = 0; k < N_PLACEMENTS; k++)
                if (placements[k].rank == p->rank && (!only || strcmp(only, p->name) == 0))
                    OLY_SCOPE
                    {
                        oly_array alone[TIME_TILING_MOST];
                        if (s == 0)
                            run_alone(p, &placements[k], alone);
                        check_program(p, &placements[k], passes[s], alone, bits[p - time_tiling_programs][k]);
                    }
        assert_int_equal(complaints, 0);
        assert_int_equal(oly_finalize(), 0);
    }
    unsetenv("OLYMPUS_HALO_STEPS");
    for (int k = 0; k < TIME_TILING_PROGRAMS * N_PLACEMENTS * TIME_TILING_MOST; k++)
        free((&bits[0][0][0])[k]);
}

/* Maxwell's equations in one dimension: e on the grid points, h between them or also beyond the ends. */
static void shine(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    oly_array e = carry[0], h = carry[1];
    bool beyond = *(const int *)user > 0;
    oly_array wide = beyond ? oly_concatenate(0, oly_slice(e, ":1"), e, oly_slice(e, "-1:")) : e;
    h = oly_add(h, oly_mul(0.5, oly_sub(oly_slice(wide, "1:"), oly_slice(wide, ":-1"))));
    oly_array change = oly_mul(0.5, oly_sub(oly_slice(h, "1:"), oly_slice(h, ":-1")));
    carry[0] = beyond ? oly_add(e, change) : oly_update(e, "1:-1", oly_add(oly_slice(e, "1:-1"), change));
    carry[1] = h;
}

static void shine_on(const oly_array *in, oly_array *out, void *user)
{
    memcpy(out, in, 2 * sizeof *in);
    oly_fori(0, 12, shine, 2, out, user);
}

/* One exchange for all fields every four steps, of what four steps read across each of the seven borders: 4 elements of
 * e and 4 of h from below, 4 and 3 from above. Blocks of n + 1 elements are split differently from those of n: they are
 * moved back in the end. */
static void staggered_fields_share_an_exchange(void **state)
{
    static const struct {
        int more, exchanges;
        int64_t bytes;
    } rows[] = {{-1, 3, 3 * 7 * 15 * 4}, {1, 4, 0}};
    (void)state;
    setenv("OLYMPUS_HALO_STEPS", "4", 1);
    oly_init(NULL, NULL);
    oly_mesh mesh = oly_make_mesh("x=8");
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        int more = rows[k].more;
        oly_array e = oly_sin(oly_arange(64, OLY_FLOAT32)), h = oly_zeros(OLY_FLOAT32, 64 + more);
        oly_array cut[] = {oly_device_put(e, oly_named(mesh, "x")), oly_device_put(h, oly_named(mesh, "x"))};
        oly_array out[4] = {NULL};
        oly_plan_costs costs;
        oly_fn f = oly_jit(shine_on, 2, 2, .user = &more);
        oly_call(f, OLY_IN(e, h), OLY_OUT(out[0], out[1]));
        oly_call(f, OLY_IN(cut[0], cut[1]), OLY_OUT(out[2], out[3]));
        oly_costs(&costs, f, cut[0], cut[1]);
        if (oly_process_count() == 1) /* of the devices here */
            assert_int_equal(costs.collectives, rows[k].exchanges);
        if (rows[k].bytes && oly_process_count() == 1)
            assert_int_equal(costs.wire_bytes, rows[k].bytes);
        for (int j = 0; j < 2; j++) {
            float a[65], b[65];
            oly_process_allgather(out[j], a, sizeof *a * (size_t)oly_dim(out[j], 0));
            oly_process_allgather(out[2 + j], b, sizeof *b * (size_t)oly_dim(out[j], 0));
            assert_memory_equal(a, b, sizeof *a * (size_t)oly_dim(out[j], 0));
        }
    }
    assert_int_equal(oly_finalize(), 0);
    unsetenv("OLYMPUS_HALO_STEPS");
}

/* Carries of other extents feed each other. An instance may have elements that no device needs; their operands are not
 * exchanged and must not be read. Only a sanitizer sees such a read. */
static void feed(oly_array i, oly_array *carry, void *user)
{
    static const int64_t low[] = {5, 0}, none[] = {0, 0};
    (void)i;
    (void)user;
    carry[1] = oly_astype(oly_pad(carry[0], 0, low, none, none), OLY_FLOAT64);
    carry[2] = oly_astype(oly_slice(carry[1], "0:4"), OLY_FLOAT32);
}

static void feed_on(const oly_array *in, oly_array *out, void *user)
{
    memcpy(out, in, 3 * sizeof *in);
    oly_fori(0, 3, feed, 3, out, user);
}

static void elements_nobody_needs_read_nothing(void **state)
{
    (void)state;
    for (int pass = 1; pass <= 3; pass++) {
        char steps[] = {(char)('0' + pass), 0};
        setenv("OLYMPUS_HALO_STEPS", steps, 1);
        oly_init(NULL, NULL);
        oly_mesh mesh = oly_make_mesh("x=8");
        oly_array small = oly_reshape(oly_arange(4, OLY_FLOAT32), 4, 1), wide = oly_full(7, OLY_FLOAT64, 9, 1);
        oly_array in[3], out[3] = {NULL};
        oly_array from[] = {small, wide, oly_add(small, 10)};
        for (int k = 0; k < 3; k++)
            in[k] = oly_device_put(from[k], oly_named(mesh, "x, None"));
        oly_call(oly_jit(feed_on, 3, 3), OLY_IN(in[0], in[1], in[2]), OLY_OUT(out[0], out[1], out[2]));
        double nine[9];
        float four[2][4];
        oly_process_allgather(out[0], four[0], sizeof four[0]);
        oly_process_allgather(out[1], nine, sizeof nine);
        oly_process_allgather(out[2], four[1], sizeof four[1]);
        for (int i = 0; i < 9; i++)
            assert_true(nine[i] == (i < 5 ? 0 : i - 5));
        for (int i = 0; i < 4; i++)
            assert_true(four[0][i] == i && four[1][i] == 0);
        assert_int_equal(oly_finalize(), 0);
    }
    unsetenv("OLYMPUS_HALO_STEPS");
}

/* A heat equation with a source that depends on time, and a record of every step. */
static void keep(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    oly_array u = carry[0], around = oly_add(oly_roll(u, 1, 0), oly_roll(u, -1, 0)), time = carry[3];
    oly_operand at[] = {oly_operand_array(i)};
    oly_array next = oly_add(oly_mul(0.5, u), oly_add(oly_mul(0.25, around), oly_mul(0.1, time)));
    oly_array change = oly_sub(next, u);
    carry[0] = next;
    carry[1] = (oly_dynamic_update_slice)(carry[1], oly_reshape(oly_sum(oly_mul(change, change)), 1), 1, at);
    carry[2] = oly_max2(carry[2], oly_max(next));
    carry[3] = oly_add(time, 0.25);
}

static void keep_all(const oly_array *in, oly_array *out, void *user)
{
    memcpy(out, in, 4 * sizeof *in);
    oly_fori(0, 12, keep, 4, out, user);
}

/* Every four steps one exchange of the field, one of four sums, one of four maxima. */
static void observations_share_an_exchange(void **state)
{
    (void)state;
    setenv("OLYMPUS_HALO_STEPS", "4", 1);
    oly_init(NULL, NULL);
    oly_array u = oly_device_put(oly_sin(oly_arange(16384, OLY_FLOAT32)), oly_named(oly_make_mesh("x=8"), "x"));
    oly_array in[] = {u, oly_zeros(OLY_FLOAT32, 12), oly_zeros(OLY_FLOAT32), oly_zeros(OLY_FLOAT32)};
    oly_plan_costs costs;
    oly_fn f = oly_jit(keep_all, 4, 4);
    assert_int_equal(oly_costs_n(&costs, f, 4, in), OLY_OK);
    if (oly_process_count() == 1) /* between processes a sum may take two messages */
        assert_int_equal(costs.collectives, 3 * 3);
    oly_array at_once[4] = {NULL}, singly[4];
    float found[2][13];
    memcpy(singly, in, sizeof in);
    oly_call(f, OLY_IN(in[0], in[1], in[2], in[3]), OLY_OUT(at_once[0], at_once[1], at_once[2], at_once[3]));
    for (int i = 0; i < 12; i++)
        keep(oly_scalar(i, OLY_INT32), singly, NULL);
    for (int k = 0; k < 2; k++) {
        oly_array *out = k == 0 ? at_once : singly;
        oly_process_allgather(out[1], found[k], sizeof *found[k] * 12);
        oly_process_allgather(out[2], &found[k][12], sizeof *found[k]);
    }
    for (int i = 0; i < 13; i++)
        assert_true(fabsf(found[0][i] - found[1][i]) <= 1e-5f * fabsf(found[1][i]));
    oly_array differs = oly_max(oly_abs(oly_sub(at_once[0], singly[0])));
    assert_true(oly_item(differs) < 1e-6);
    assert_int_equal(oly_finalize(), 0);
    unsetenv("OLYMPUS_HALO_STEPS");
}

/* The same in two dimensions. */
static void keep_plate(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    oly_array u = carry[0], around = oly_add(oly_roll(u, 1, 0), oly_roll(u, -1, 1));
    oly_operand at[] = {oly_operand_array(i)};
    carry[0] = oly_add(oly_mul(0.5, u), oly_mul(0.25, around));
    carry[1] = (oly_dynamic_update_slice)(carry[1], oly_reshape(oly_sum(oly_mul(u, u)), 1), 1, at);
}

static void keep_plates(const oly_array *in, oly_array *out, void *user)
{
    memcpy(out, in, 2 * sizeof *in);
    oly_fori(0, 12, keep_plate, 2, out, user);
}

/* As many steps per pass as cause little redundant computation, along whichever dimension it would be. */
static void narrow_fields_take_fewer_steps_at_once(void **state)
{
    (void)state;
    static const struct {
        int rows, columns, passes;
    } shapes[] = {{4, 16384, 12}, {16384, 4, 12}, {9, 8192, 6}, {8192, 9, 6}, {63, 8192, 3}, {8192, 63, 3}};
    oly_init(NULL, NULL);
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        OLY_SCOPE
        {
            int rows = shapes[k].rows, columns = shapes[k].columns;
            oly_sharding cut = oly_named(oly_make_mesh("x=8"), rows < columns ? "None, x" : "x, None");
            oly_array in[] = {oly_device_put(oly_ones(OLY_FLOAT32, rows, columns), cut), oly_zeros(OLY_FLOAT32, 12)};
            oly_plan_costs costs;
            assert_int_equal(oly_costs_n(&costs, oly_jit(keep_plates, 2, 2), 2, in), OLY_OK);
            if (oly_process_count() == 1) /* an exchange and a sum for each pass */
                assert_int_equal(costs.collectives, 2 * shapes[k].passes);
        }
    assert_int_equal(oly_finalize(), 0);
}

static void smooth_beside(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    oly_array around = oly_add(oly_roll(carry[0], 1, 0), oly_roll(carry[0], -1, 0));
    carry[0] = oly_add(oly_mul(0.5, carry[0]), oly_mul(0.25, around));
    carry[1] = oly_mul(0.5, carry[1]);
}

static void smooth_all(const oly_array *in, oly_array *out, void *user)
{
    memcpy(out, in, 2 * sizeof *in);
    oly_fori(0, 12, smooth_beside, 2, out, user);
}

/* A carry of other extents that is independent of the field is not one of the fields, and does not prevent time
 * tiling. */
static void carries_of_other_extents_are_no_fields(void **state)
{
    (void)state;
    enum { N = 16384, FEWER = 9 };
    setenv("OLYMPUS_HALO_STEPS", "4", 1);
    oly_init(NULL, NULL);
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array in[] = {oly_device_put(oly_sin(oly_arange(N, OLY_FLOAT32)), oly_named(mesh, "x")),
                      oly_device_put(oly_cos(oly_arange(N - FEWER, OLY_FLOAT32)), oly_named(mesh, "x"))};
    oly_array at_once[2] = {NULL}, singly[2];
    oly_plan_costs costs;
    oly_fn f = oly_jit(smooth_all, 2, 2);
    assert_int_equal(oly_costs_n(&costs, f, 2, in), OLY_OK);
    assert_int_equal(costs.collectives, 3);
    memcpy(singly, in, sizeof in);
    oly_call(f, OLY_IN(in[0], in[1]), OLY_OUT(at_once[0], at_once[1]));
    for (int i = 0; i < 12; i++)
        smooth_beside(oly_scalar(i, OLY_INT32), singly, NULL);
    for (int k = 0; k < 2; k++)
        assert_true(oly_item(oly_max(oly_abs(oly_sub(at_once[k], singly[k])))) < 1e-6);
    assert_int_equal(oly_finalize(), 0);
    unsetenv("OLYMPUS_HALO_STEPS");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(many_steps_give_the_bits_of_single_ones), cmocka_unit_test(staggered_fields_share_an_exchange),
    cmocka_unit_test(observations_share_an_exchange),          cmocka_unit_test(narrow_fields_take_fewer_steps_at_once),
    cmocka_unit_test(carries_of_other_extents_are_no_fields),  cmocka_unit_test(elements_nobody_needs_read_nothing),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
