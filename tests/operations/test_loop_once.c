/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Loops that all CPU devices of a process would run alike are run by the first of them: drawn loops (counted, with a
 * condition, nested, with branches, updates in place, carries that are passed on or stay as they are, of no iterations) have the same bits on
 * every device as without that, call after call, with results that take over the memory of the inputs, and what is not donated stays as it is.
 *
 * LOOPS_ONCE=seed:count runs others. */
#include "check_communication.h"
#include "check_draws.h"
#include <stdlib.h>

enum { LENGTH = 24, CARRIES = 4, MOST_OPERATIONS = 6, USUAL = 120, CALLS = 3 };

typedef struct operation {
    int kind, to, from, number;
} operation;
typedef struct drawn {
    int n, count, kind; /* of the loop: COUNTED, UNTIL, NESTED, SCANNED */
    operation operations[MOST_OPERATIONS];
    bool split, mapped, donates; /* mapped: over devices, whose carries differ */
} drawn;
enum { COUNTED, UNTIL, NESTED, SCANNED, LOOPS };
enum { ADDS, PASSES, SWAPS, UPDATES, SCATTERS, RUNS, MULTIPLIES, BRANCHES, SUMS, COUNTS, ROLLS, OPERATIONS };

static oly_mesh mesh;
static void draw(drawn *p, int seed)
{
    check_draws(seed);
    *p = (drawn){.n = 1 + below(MOST_OPERATIONS), .count = below(3) ? 1 + below(6) : below(2), .kind = below(LOOPS)};
    p->split = below(6) == 0;
    p->donates = below(2);
    p->mapped = below(5) == 0;
    for (int k = 0; k < p->n; k++)
        p->operations[k] = (operation){below(OPERATIONS), below(CARRIES - 1), below(CARRIES - 1), below(LENGTH)};
}

/* -- the loops: carries 0 to 2 are numbers, 3 counts iterations ------------------------------------------------------------- */

static void halve(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], 0.5);
}

static void shift(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sub(in[0], 0.125);
}

static void apply(const operation *o, oly_array *c)
{
    oly_array x = c[o->from], to = c[o->to], index = oly_mod(oly_add(c[3], o->number), LENGTH);
    switch (o->kind) {
    case ADDS: c[o->to] = oly_add(oly_mul(to, 0.5), oly_sin(x)); break;
    case PASSES: c[o->to] = x; break;
    case SWAPS: c[o->to] = x, c[o->from] = to; break;
    case UPDATES: c[o->to] = oly_at_set(to, OLY_INDEXES(index), oly_add(oly_take(x, index, 0, NULL), 0.25)); break;
    case SCATTERS:
        c[o->to] =
            oly_at_add(to, OLY_INDEXES(oly_mod(oly_add(oly_arange(7, OLY_INT32), index), LENGTH)), oly_slice(x, ":7"));
        break;
    case RUNS: c[o->to] = oly_mul(oly_cumsum(x, 0), 0.0625); break;
    case MULTIPLIES:
        c[o->to] =
            oly_mul(oly_matmul(oly_cos(oly_reshape(oly_arange(LENGTH * LENGTH, OLY_FLOAT32), LENGTH, LENGTH)), x), 0.1);
        break;
    case BRANCHES:
        oly_cond(oly_gt(oly_take(x, index, 0, NULL), o->number / 24. - 0.5), halve, shift, 1, &to, 1, &c[o->to], NULL);
        break;
    case SUMS: c[o->to] = oly_sub(to, oly_mean(x)); break;
    case COUNTS: c[o->to] = oly_add(to, oly_astype(c[3], OLY_FLOAT32)); break;
    default: c[o->to] = oly_roll(x, o->number, 0);
    }
}

static void iterate(oly_array *c, const drawn *p)
{
    for (int k = 0; k < p->n; k++)
        apply(&p->operations[k], c);
    c[3] = oly_add(c[3], 1);
}

static void counted(oly_array i, oly_array *c, void *user)
{
    (void)i;
    iterate(c, user);
}

static void nested(oly_array i, oly_array *c, void *user)
{
    const drawn *p = user;
    (void)i;
    oly_fori(0, 1 + p->operations[0].number % 3, counted, CARRIES, c, user);
    c[0] = oly_add(c[0], oly_mul(c[1], 0.125));
}

static oly_array goes_on(const oly_array *c, void *user)
{
    const drawn *p = user;
    return oly_lt(c[3], p->count);
}

static void until(oly_array *c, void *user)
{
    iterate(c, user);
}

/* Its results, of every iteration, are written and not read. */
static void scanned(oly_array *c, const oly_array *x, oly_array *y, void *user)
{
    (void)x;
    iterate(c, user);
    y[0] = oly_mul(c[0], 3);
    y[1] = oly_sum(c[1]);
    y[2] = c[2];
}

static void scan(const drawn *p, oly_array *c)
{
    oly_array y[3];
    oly_scan(p->count, p->n % 2, scanned, CARRIES, c, 0, NULL, 3, y, (void *)(uintptr_t)p);
    c[0] = oly_add(c[0], oly_sum(y[0], OLY_AXES(0)));
    c[1] = oly_add(c[1], oly_sum(y[1]));
    c[2] = oly_add(c[2], oly_sum(oly_mul(y[2], 0.5), OLY_AXES(0)));
}

static void run(const oly_array *in, oly_array *out, void *user)
{
    const drawn *p = user;
    oly_array c[CARRIES] = {in[0], in[1], in[2], oly_astype(0, OLY_INT32)};
    if (p->kind == SCANNED)
        scan(p, c);
    else if (p->kind == UNTIL)
        oly_while(goes_on, until, CARRIES, c, user);
    else
        oly_fori(0, p->count, p->kind == NESTED ? nested : counted, CARRIES, c, user);
    for (int k = 0; k < CARRIES - 1; k++)
        out[k] = c[k];
}

static void run_mapped(const oly_array *in, oly_array *out, void *user)
{
    oly_shard_map(run, user, mesh, OLY_IN(in[0], in[1], in[2]), OLY_SPECS("x", "x", "x"),
                  OLY_OUT(out[0], out[1], out[2]), OLY_SPECS("x", "x", "x"));
}

/* -- all its shards ----------------------------------------------------------------------------------------------------------- */

typedef struct values {
    float of[CALLS + 1][3][8][LENGTH]; /* the last: of the inputs, afterwards */
} values;

static void keep(float of[8][LENGTH], oly_array x)
{
    int k = 0;
    OLY_FOR_EACH_SHARD(s, x)
    {
        memcpy(of[k++], s.memory, sizeof(float) * (size_t)s.extent[0]);
    }
}

/* Returns whether explanations say that one device runs a loop. */
static bool run_drawn(drawn *p, values *v)
{
    oly_array in[3], y[3] = {NULL};
    memset(v, 0, sizeof *v);
    for (int k = 0; k < 3; k++)
        in[k] = oly_device_put(oly_cos(oly_add(oly_arange(p->mapped ? 8 * LENGTH : LENGTH, OLY_FLOAT32), k)),
                               oly_named(mesh, p->mapped || (p->split && k == 2) ? "x" : ""));
    oly_fn f = p->mapped ? oly_jit(run_mapped, 3, 3, .user = p) : oly_jit(run, 3, 3, .user = p);
    char *steps = check_steps(f, 3, in);
    bool once = strstr(steps, "loop   [computed once") != NULL;
    free(steps);
    for (int k = 0; k < 3; k++)
        y[k] = oly_keep(in[k]);
    for (int call = 0; call < CALLS; call++) {
        oly_array next[3] = {NULL};
        if (p->donates && call > 0) {
            assert_int_equal(oly_call(f, OLY_IN(y[0], y[1], y[2]), OLY_OUT(y[0], y[1], y[2])), OLY_OK);
        } else {
            assert_int_equal(oly_call(f, OLY_IN(y[0], y[1], y[2]), OLY_OUT(next[0], next[1], next[2])), OLY_OK);
            memcpy(y, next, sizeof y);
        }
        if (call % 2 == 0) /* else the next call may take the memory */
            for (int k = 0; k < 3; k++)
                keep(v->of[call][k], y[k]);
    }
    for (int k = 0; k < 3; k++)
        keep(v->of[CALLS][k], in[k]);
    return once;
}

static void begin(const char *disabled)
{
    if (disabled)
        setenv("OLYMPUS_DISABLE", disabled, 1);
    else
        unsetenv("OLYMPUS_DISABLE");
    setenv("OLYMPUS_COMPUTE_ONCE", "0", 1);
    oly_init(NULL, NULL);
    mesh = oly_make_mesh("x=8");
}

static void drawn_loops(void **state)
{
    (void)state;
    int count = USUAL, seed = check_draws_wanted("LOOPS_ONCE", 1, &count), once = 0;
    values *with = calloc((size_t)count, sizeof *with), *plain = calloc(1, sizeof *plain);
    drawn p;
    begin(NULL);
    int here = oly_local_device_count();
    for (int k = 0; k < count; k++)
        OLY_SCOPE
        {
            draw(&p, seed + k);
            once += run_drawn(&p, &with[k]);
        }
    oly_finalize();
    assert_true(here > 1 ? 3 * once >= count : once == 0);
    begin("compute-once");
    for (int k = 0; k < count; k++)
        OLY_SCOPE
        {
            draw(&p, seed + k);
            assert_false(run_drawn(&p, plain));
            if (memcmp(plain, &with[k], sizeof *plain) != 0)
                fail_msg("loop %d differs", seed + k);
        }
    oly_finalize();
    free(with);
    free(plain);
    unsetenv("OLYMPUS_DISABLE");
    unsetenv("OLYMPUS_COMPUTE_ONCE");
}

/* Of carries that are large and of iterations whose work several threads share. */
static void logistic(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    c[0] = oly_mul(oly_mul(3.7, c[0]), oly_sub(1, c[0]));
}

static void population(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, 5, logistic, 1, out, NULL);
}

static void large_carries(void **state)
{
    (void)state;
    enum { N = 200000 };
    float *first = malloc(sizeof *first * N);
    bool known = false;
    for (int without = 0; without < 2; without++) {
        begin(without ? "compute-once" : NULL);
        OLY_SCOPE
        {
            oly_array x = oly_device_put(oly_div(oly_arange(N, OLY_FLOAT32), N), oly_named(mesh, "")), y = NULL;
            oly_fn f = oly_jit(population, 1, 1);
            assert_int_equal(oly_call(f, OLY_IN(x), OLY_OUT(y)), OLY_OK);
            OLY_FOR_EACH_SHARD(s, y)
            {
                if (!known)
                    memcpy(first, s.memory, sizeof *first * N);
                known = true;
                assert_memory_equal(first, s.memory, sizeof *first * N);
            }
        }
        oly_finalize();
    }
    free(first);
    unsetenv("OLYMPUS_DISABLE");
    unsetenv("OLYMPUS_COMPUTE_ONCE");
}

static void write_columns(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    (void)user;
    carry[0] = oly_update(carry[0], ":, 1:", 1);
}

/* Rows 0 to 3, or 1 to 4, of 6. */
static void write_row(oly_array i, oly_array *carry, void *user)
{
    oly_array row = oly_mul(oly_ones(OLY_FLOAT32, 64), oly_add(oly_astype(i, OLY_FLOAT32), 100));
    carry[0] = oly_at_set(carry[0], OLY_INDEXES(oly_add(i, *(int *)user)), row);
}

static void rows_of_a_split_array(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, 4, write_row, 1, out, user);
}

static void columns_of_a_split_array(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, 3, write_columns, 1, out, user);
}

/* Every device writes the same into the same places of its part; what is beside them differs. */
static void parts_that_are_written_alike_stay_apart(void **state)
{
    (void)state;
    float got[64 * 3];
    oly_init(NULL, NULL);
    mesh = oly_make_mesh("x=8");
    oly_array x = oly_reshape(oly_arange(64 * 3, OLY_FLOAT32), 64, 3);
    oly_array out = oly_apply(oly_jit(columns_of_a_split_array, 1, 1), oly_device_put(x, oly_named(mesh, "x")));
    assert_int_equal(oly_process_allgather(out, got, sizeof got), OLY_OK);
    for (int k = 0; k < 64 * 3; k++)
        assert_true(got[k] == (k % 3 ? 1.0f : (float)k));
    for (int first = 0; first < 2; first++) {
        float rows[6 * 64];
        oly_array y = oly_device_put(oly_reshape(oly_arange(6 * 64, OLY_FLOAT32), 6, 64), oly_named(mesh, "None, x"));
        oly_array end = oly_apply(oly_jit(rows_of_a_split_array, 1, 1, .user = &first), y);
        assert_int_equal(oly_process_allgather(end, rows, sizeof rows), OLY_OK);
        for (int k = 0; k < 6 * 64; k++)
            assert_true(rows[k] ==
                        (k / 64 >= first && k / 64 < first + 4 ? 100.0f + (float)(k / 64 - first) : (float)k));
    }
    oly_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(drawn_loops), cmocka_unit_test(large_carries),
                                       cmocka_unit_test(parts_that_are_written_alike_stay_apart)};
    return CHECK_MAIN(tests);
}
