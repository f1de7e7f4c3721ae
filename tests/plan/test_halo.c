/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Programs that read their neighbours' elements: the values of one device, and no byte sent that a device does
 * not need.
 *
 * What is needed is found without the planner: on one device, each element of the operands is changed in turn; the elements
 * of the results that change depend on it. A device must receive what its part of the results depends on and its part of the
 * operands does not contain: no more, in one exchange.
 *   HALO_PROGRAM=name   only this one
 *   HALO_LIST=1         prints every program with what it moves and what it needs, and continues after a failure */
#include "check.h"
#include "halo_programs.h"
#include <inttypes.h>
#include <math.h>

typedef struct placement {
    const char *mesh, *spec;
    int rank;
    int64_t shape[3];
    bool small; /* some device has fewer than two elements along a dimension that is split */
} placement;

static const placement placements[] = {
    {"x=8", "x", 1, {64}, false},
    {"x=8", "x", 1, {61}, false},
    {"x=8", "x", 1, {11}, true}, /* blocks smaller than the halo */
    {"x=8", "x", 1, {5}, true},  /* and empty ones */
    {"x=2, y=4", "(y,x)", 1, {30}, false},
    {"x=2, y=4", "y", 1, {23}, false}, /* two copies of each block */
    {"x=4, y=2", "x, y", 2, {16, 16}, false},
    {"x=2, y=4", "x, y", 2, {13, 11}, false},
    {"x=2, y=4", "x, y", 2, {3, 7}, true},
    {"x=8", "x, None", 2, {19, 5}, false},
    {"x=8", "None, x", 2, {4, 21}, false},
    {"x=4, y=2", "None, y", 2, {6, 9}, false},
    {"x=2, y=2, z=2", "x, y, z", 3, {6, 6, 6}, false},
    {"x=2, y=4", "y, None, x", 3, {9, 4, 5}, false},
    {"x=2, y=2, z=2", "z, x, y", 3, {5, 3, 7}, true},
};

/* -- which elements depend on which -------------------------------------------------------------------------------- */

typedef struct values {
    int64_t size[HALO_MOST_ARRAYS], total; /* elements of each result */
    float *data[HALO_MOST_ARRAYS];
} values;

static int64_t size_of(int rank, const int64_t *shape)
{
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= shape[d];
    return n;
}

static void fill(float *data, int64_t n, int which)
{
    for (int64_t i = 0; i < n; i++)
        data[i] = 0.5f + (float)((i * 7919 + which * 104729) % 1009) / 1009;
}

/* On one device. The caller frees the data of the results. */
static void run_alone(const halo_program *p, oly_fn f, const placement *at, float *const *operands, values *v)
{
    OLY_SCOPE
    {
        oly_array in[HALO_MOST_ARRAYS], out[HALO_MOST_ARRAYS] = {NULL}, *wanted[HALO_MOST_ARRAYS];
        for (int k = 0; k < p->n_in; k++)
            in[k] = oly_from_host(operands[k], OLY_FLOAT32, at->rank, at->shape);
        for (int k = 0; k < p->n_out; k++)
            wanted[k] = &out[k];
        if (oly_call(f, p->n_in, in, p->n_out, wanted) != OLY_OK)
            fail_msg("%s: %s", p->name, oly_last_error());
        for (int k = 0; k < p->n_out; k++) {
            v->size[k] = oly_size(out[k]);
            if (!v->data[k])
                v->data[k] = malloc(sizeof(float) * (size_t)v->size[k] + 1);
            oly_get(out[k], v->data[k], sizeof(float) * (size_t)v->size[k]);
        }
    }
}

/* bits[o][i]: element o of the results, numbered consecutively, depends on element i of the operands. */
typedef struct dependence {
    int64_t n_in, n_out;
    unsigned char *bits;
    values plain; /* the results */
} dependence;

static void find_dependence(const halo_program *p, const placement *at, float *const *operands, dependence *d)
{
    values changed = {0};
    int64_t size = size_of(at->rank, at->shape);
    oly_fn f = oly_jit(p->function, p->n_in, p->n_out);
    memset(d, 0, sizeof *d);
    run_alone(p, f, at, operands, &d->plain);
    d->n_in = p->n_in * size;
    for (int k = 0; k < p->n_out; k++)
        d->n_out += d->plain.size[k];
    d->bits = calloc((size_t)(d->n_in * d->n_out) + 1, 1);
    for (int64_t i = 0; i < d->n_in; i++) {
        float *element = &operands[i / size][i % size], old = *element;
        *element = old + 1000;
        run_alone(p, f, at, operands, &changed);
        *element = old;
        int64_t o = 0;
        for (int k = 0; k < p->n_out; k++)
            for (int64_t j = 0; j < d->plain.size[k]; j++, o++)
                d->bits[o * d->n_in + i] = d->plain.data[k][j] != changed.data[k][j];
    }
    for (int k = 0; k < p->n_out; k++)
        free(changed.data[k]);
}

static void free_dependence(dependence *d)
{
    for (int k = 0; k < HALO_MOST_ARRAYS; k++)
        free(d->plain.data[k]);
    free(d->bits);
}

/* -- what each device needs ----------------------------------------------------------------------------------------------- */

static bool in_shard(const oly_shard *s, oly_array x, int64_t i)
{
    const int64_t *shape = oly_shape(x);
    for (int d = s->rank - 1; d >= 0; d--) {
        int64_t at = i % shape[d];
        if (at < s->start[d] || at >= s->start[d] + s->extent[d])
            return false;
        i /= shape[d];
    }
    return true;
}

/* Elements of the operands that the s-th device of this process needs and does not have. */
static int64_t missing_on(const halo_program *p, const placement *at, const dependence *d, int s, const oly_array *in,
                          const oly_array *out)
{
    unsigned char *needed = calloc((size_t)d->n_in, 1);
    int64_t o = 0, n = strstr(at->spec, "None") ? p->twice : 0, i = 0;
    for (int k = 0; k < p->n_out; k++) {
        oly_shard shard = oly_get_shard(out[k], s);
        for (int64_t j = 0; j < oly_size(out[k]); j++, o++)
            for (i = 0; i < d->n_in && in_shard(&shard, out[k], j); i++)
                needed[i] |= d->bits[o * d->n_in + i];
    }
    i = 0;
    for (int k = 0; k < p->n_in; k++) {
        oly_shard shard = oly_get_shard(in[k], s);
        for (int64_t j = 0; j < oly_size(in[k]); j++, i++)
            n += needed[i] && !in_shard(&shard, in[k], j);
    }
    free(needed);
    return n;
}

/* -- the table ----------------------------------------------------------------------------------------------------------- */

static int complaints;

static void complain(const halo_program *p, const placement *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void complain(const halo_program *p, const placement *at, const char *format, ...)
{
    char text[300];
    va_list list;
    va_start(list, format);
    int n = snprintf(text, sizeof text, "%s of %d-D shape (%d, %d, %d) by %s over %s: ", p->name, at->rank,
                     (int)at->shape[0], (int)at->shape[1], (int)at->shape[2], at->spec, at->mesh);
    vsnprintf(text + n, sizeof text - (size_t)n, format, list);
    va_end(list);
    complaints++;
    if (!getenv("HALO_LIST"))
        fail_msg("%s", text);
    printf("WRONG %s\n", text);
}

static void check_values(const halo_program *p, const placement *at, const dependence *d, const oly_array *out)
{
    for (int k = 0; k < p->n_out; k++) {
        size_t bytes = sizeof(float) * (size_t)d->plain.size[k];
        float *data = malloc(bytes + 1);
        if (oly_process_allgather(out[k], data, bytes) != OLY_OK)
            complain(p, at, "%s", oly_last_error());
        for (int64_t i = 0; i < d->plain.size[k]; i++)
            if (fabsf(data[i] - d->plain.data[k][i]) > (at->small && p->large_only ? 1e-6f : 0)) {
                complain(p, at, "result %d has %.9g at %" PRId64 ", one device %.9g", k, (double)data[i], i,
                         (double)d->plain.data[k][i]);
                break;
            }
        free(data);
    }
}

static void check_program(const halo_program *p, const placement *at)
{
    float *operands[HALO_MOST_ARRAYS];
    int64_t size = size_of(at->rank, at->shape);
    for (int k = 0; k < p->n_in; k++) {
        operands[k] = malloc(sizeof(float) * (size_t)size);
        fill(operands[k], size, k);
    }
    dependence d;
    find_dependence(p, at, operands, &d);
    oly_mesh mesh = oly_make_mesh(at->mesh);
    oly_array in[HALO_MOST_ARRAYS], out[HALO_MOST_ARRAYS] = {NULL}, *wanted[HALO_MOST_ARRAYS];
    for (int k = 0; k < p->n_in; k++)
        in[k] = oly_device_put(oly_from_host(operands[k], OLY_FLOAT32, at->rank, at->shape), oly_named(mesh, at->spec));
    for (int k = 0; k < p->n_out; k++)
        wanted[k] = &out[k];
    oly_fn f = oly_jit(p->function, p->n_in, p->n_out, .name = p->name);
    oly_plan_costs costs;
    if (oly_call(f, p->n_in, in, p->n_out, wanted) != OLY_OK || oly_costs_n(&costs, f, p->n_in, in) != OLY_OK)
        fail_msg("%s: %s", p->name, oly_last_error());
    check_values(p, at, &d, out);
    int64_t needed = 0;
    for (int s = 0; s < oly_shard_count(in[0]); s++)
        needed += missing_on(p, at, &d, s, in, out);
    bool counts = (!p->large_only || !at->small) && (p->times == 1 || oly_process_count() == 1);
    if (counts && (costs.wire_bytes < 4 * needed || costs.wire_bytes > 4 * needed * p->times))
        complain(p, at, "%" PRId64 " bytes are received, %" PRId64 " are needed", costs.wire_bytes, 4 * needed);
    if (counts && costs.collectives > p->exchanges)
        complain(p, at, "%" PRId64 " exchanges", costs.collectives);
    if (getenv("HALO_LIST"))
        printf("%s %s (%d,%d,%d): %" PRId64 " bytes of %" PRId64 " needed in %" PRId64 " exchanges\n", p->name,
               at->spec, (int)at->shape[0], (int)at->shape[1], (int)at->shape[2], costs.wire_bytes, 4 * needed,
               costs.collectives);
    for (int k = 0; k < p->n_in; k++)
        free(operands[k]);
    free_dependence(&d);
}

/* -- loops --------------------------------------------------------------------------------------------------------------- */

enum { STEPS = 5 };

static void step(oly_array i, oly_array *carry, void *user)
{
    const halo_program *p = user;
    oly_array next[HALO_MOST_ARRAYS];
    (void)i;
    p->function(carry, next, NULL);
    memcpy(carry, next, sizeof *carry * (size_t)p->n_in);
}

static void steps(const oly_array *in, oly_array *out, void *user)
{
    const halo_program *p = user;
    memcpy(out, in, sizeof *out * (size_t)p->n_in);
    oly_fori(0, STEPS, step, p->n_in, out, user);
}

static bool keeps_its_shape(const halo_program *p, const dependence *d)
{
    bool same = p->n_in == p->n_out;
    for (int k = 0; k < p->n_out; k++)
        same = same && d->plain.size[k] * p->n_in == d->n_in;
    return same;
}

/* A loop of several steps: each moves what a single one would, in an exchange of its own; with time tiling no more
 * along one dimension (along two, corners are added), in fewer exchanges. */
static void check_loop(const halo_program *p, const placement *at)
{
    float *operands[HALO_MOST_ARRAYS];
    int64_t size = size_of(at->rank, at->shape);
    for (int k = 0; k < p->n_in; k++) {
        operands[k] = malloc(sizeof(float) * (size_t)size);
        fill(operands[k], size, k);
    }
    dependence d;
    find_dependence(p, at, operands, &d);
    if (keeps_its_shape(p, &d)) {
        oly_mesh mesh = oly_make_mesh(at->mesh);
        oly_array in[HALO_MOST_ARRAYS], out[HALO_MOST_ARRAYS] = {NULL}, *wanted[HALO_MOST_ARRAYS];
        oly_fn f = oly_jit(steps, p->n_in, p->n_out, .name = p->name, .user = (void *)p);
        oly_plan_costs costs;
        run_alone(p, f, at, operands, &d.plain);
        for (int k = 0; k < p->n_in; k++) {
            oly_array x = oly_from_host(operands[k], OLY_FLOAT32, at->rank, at->shape);
            in[k] = oly_device_put(x, oly_named(mesh, at->spec));
            wanted[k] = &out[k];
        }
        if (oly_costs_n(&costs, f, p->n_in, in) != OLY_OK || oly_call(f, p->n_in, in, p->n_out, wanted) != OLY_OK)
            fail_msg("%s: %s", p->name, oly_last_error());
        check_values(p, at, &d, out);
        int64_t needed = 0;
        for (int s = 0; s < oly_shard_count(in[0]); s++)
            needed += STEPS * missing_on(p, at, &d, s, in, out);
        if (!getenv("OLYMPUS_HALO_STEPS")) /* time tiling adds margins of fields that a single step reads in place */
            needed *= p->n_in;
        bool counts = !at->small && p->times == 1 && (at->rank == 1 || getenv("OLYMPUS_HALO_STEPS"));
        if (counts &&
            (costs.wire_bytes > 4 * needed || (getenv("OLYMPUS_HALO_STEPS") && costs.wire_bytes < 4 * needed)))
            complain(p, at, "%d steps receive %" PRId64 " bytes, %" PRId64 " are needed", STEPS, costs.wire_bytes,
                     4 * needed);
        if (!at->small && costs.collectives > STEPS * p->exchanges)
            complain(p, at, "%" PRId64 " exchanges for %d steps", costs.collectives, STEPS);
        if (getenv("HALO_LIST"))
            printf("%s %s (%d,%d,%d): loop %" PRId64 " bytes in %" PRId64 " exchanges\n", p->name, at->spec,
                   (int)at->shape[0], (int)at->shape[1], (int)at->shape[2], costs.wire_bytes, costs.collectives);
    }
    for (int k = 0; k < p->n_in; k++)
        free(operands[k]);
    free_dependence(&d);
}

static void check_all(void (*check)(const halo_program *, const placement *))
{
    const char *only = getenv("HALO_PROGRAM");
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    for (const halo_program *p = halo_programs; p->name; p++)
        for (size_t k = 0; k < sizeof placements / sizeof placements[0]; k++) {
            const placement *at = &placements[k];
            bool fits = at->rank == p->rank && (!only || strcmp(only, p->name) == 0);
            for (int d = 0; d < at->rank; d++)
                fits = fits && at->shape[d] >= p->least;
            if (fits)
                OLY_SCOPE
                {
                    check(p, at);
                }
        }
    assert_int_equal(complaints, 0);
    assert_int_equal(oly_finalize(), 0);
}

/* -- running results ----------------------------------------------------------------------------------------------------- */

typedef struct running {
    const char *name;
    int axis;
    bool reverse;
} running;

static void run_along(const oly_array *in, oly_array *out, void *user)
{
    const running *r = user;
    switch (r->name[3]) {
    case 's': out[0] = oly_cumsum(in[0], r->axis, .reverse = r->reverse); break;
    case 'p': out[0] = oly_cumprod(in[0], r->axis, .reverse = r->reverse); break;
    default: out[0] = oly_cummax(in[0], r->axis, .reverse = r->reverse); break;
    }
}

static void run_and_shrink(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    run_along(carry, carry, user);
    carry[0] = oly_mul(0.125, carry[0]);
}

static void run_in_a_loop(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, STEPS, run_and_shrink, 1, out, user);
}

/* Along a split line each part gets one number from every part before it; in a loop, in each iteration. */
static void check_running(running *r, const placement *at, bool looped)
{
    float data[256];
    int64_t needed = 0, size = size_of(at->rank, at->shape);
    for (int64_t i = 0; i < size; i++)
        data[i] = (float)((i * 7) % 5 + 1) / (r->name[3] == 'p' ? 4 : 1);
    oly_array x = oly_from_host(data, OLY_FLOAT32, at->rank, at->shape), alone = NULL, y = NULL;
    oly_array placed = oly_device_put(x, oly_named(oly_make_mesh(at->mesh), at->spec));
    oly_fn f = oly_jit(looped ? run_in_a_loop : run_along, 1, 1, .user = r, .name = r->name);
    oly_plan_costs costs;
    alone = oly_apply(f, x);
    assert_int_equal(oly_costs(&costs, f, placed), OLY_OK);
    y = oly_apply(f, placed);
    float *a = malloc(sizeof data), *b = malloc(sizeof data);
    assert_int_equal(oly_process_allgather(alone, a, (size_t)size * sizeof *a), OLY_OK);
    assert_int_equal(oly_process_allgather(y, b, (size_t)size * sizeof *b), OLY_OK);
    for (int64_t i = 0; i < size; i++)
        assert_float_equal(a[i], b[i], 1e-5 * (1 + (a[i] < 0 ? -a[i] : a[i])));
    free(a);
    free(b);
    for (int s = 0; s < oly_shard_count(placed); s++) {
        oly_shard shard = oly_get_shard(placed, s);
        int64_t lines = 1, before = 0, from = shard.start[r->axis], n = at->shape[r->axis];
        for (int d = 0; d < at->rank; d++)
            lines *= d == r->axis ? 1 : shard.extent[d];
        if (shard.extent[r->axis] < n) /* here all parts have the same size */
            before = (r->reverse ? n - shard.extent[r->axis] - from : from) / shard.extent[r->axis];
        needed += lines * before;
    }
    int times = looped ? STEPS : 1;
    assert_int_equal(costs.wire_bytes, 4 * needed * times);
    assert_true(costs.collectives <= times);
}

static void running_results_bring_one_number_of_each_part(void **state)
{
    (void)state;
    running kinds[] = {
        {"cumsum", 0, false}, {"cumprod", 0, false}, {"cummax", 0, true}, {"cumsum", 1, true}, {"cumsum", 1, false}};
    const placement line = {"x=8", "x", 1, {64}, false}, plate = {"x=2, y=4", "x, y", 2, {6, 16}, false};
    oly_init(NULL, NULL);
    for (int looped = 0; looped < 2; looped++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            check_running(&kinds[k], kinds[k].axis == 0 ? &line : &plate, looped);
    assert_int_equal(oly_finalize(), 0);
}

static void devices_receive_what_they_need(void **state)
{
    (void)state;
    check_all(check_program);
}

static void so_do_steps_of_loops(void **state)
{
    (void)state;
    setenv("OLYMPUS_HALO_STEPS", "1", 1);
    check_all(check_loop);
    unsetenv("OLYMPUS_HALO_STEPS");
}

static void many_steps_at_once_give_the_same(void **state)
{
    (void)state;
    check_all(check_loop);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(devices_receive_what_they_need),
    cmocka_unit_test(so_do_steps_of_loops),
    cmocka_unit_test(many_steps_at_once_give_the_same),
    cmocka_unit_test(running_results_bring_one_number_of_each_part),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
