/* SPDX-License-Identifier: BSD-3-Clause */
/* run: devices=8  Loops that GPUs run as graphs of several iterations, and those whose conditions they read themselves: the bits of iterations
 * launched one by one, however many there are. tests/gpu/test_gpu_while.sh runs it on emulated GPUs. */
#include "check.h"
#include "check_session.h"
#include "core/optimisation.h"
#include "loop_bodies.h"
#include "run/device_counts.h"
#include <string.h>

enum { SIDE = 16, MOST_CALLS = 16 };

static const oly_optimisations loops = (oly_optimisations)1 << OLY_OPTIMISATION_LOOP_GRAPHS;
static const oly_optimisations conditions = (oly_optimisations)1 << OLY_OPTIMISATION_CONDITIONAL_GRAPHS;

static bool on_gpu(void)
{
    return strcmp(oly_device_platform(oly_local_device(0)), "cuda") == 0;
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

/* Of counted loops, and of those with a condition, since the start. */
static int64_t counted_in_graphs(void)
{
    return oly_counted(&oly_device_counted.graph_iterations);
}

static int64_t decided_by_graphs(void)
{
    return oly_counted(&oly_device_counted.conditional_iterations);
}

static const char *mesh_axes;

static oly_array placed(oly_array x)
{
    bool one = strcmp(mesh_axes, "x=1") == 0;
    return oly_device_put(x, oly_named(oly_make_mesh(mesh_axes), oly_rank(x) == 2 && !one ? "x, y" : ""));
}

static oly_array matrix(double scale)
{
    oly_array x = oly_reshape(oly_arange(SIDE * SIDE, OLY_FLOAT32), SIDE, SIDE);
    return placed(oly_sin(oly_mul(x, scale)));
}

static void read(oly_array x, void *values, size_t bytes)
{
    assert_int_equal(oly_get(oly_device_put(x, oly_named(oly_make_mesh(mesh_axes), "")), values, bytes), OLY_OK);
}

/* -- programs with conditions: as many iterations as the last input says -------------------------------------------------------- */

/* Two fields that change places and a value from outside. */
static void exchange(oly_array *carry, void *user)
{
    oly_array a = carry[2], outside = *(oly_array *)user;
    carry[0] = oly_add(carry[0], 1);
    carry[2] = oly_add(oly_mul(carry[3], 0.5), oly_mul(outside, oly_sin(oly_mul(a, carry[0]))));
    carry[3] = oly_sin(a);
}

static void fields(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array outside = oly_add(in[0], 2);
    oly_array carry[] = {oly_zeros(OLY_INT32), in[1], in[0], oly_cos(in[0])};
    oly_while(below, exchange, 4, carry, &outside);
    out[0] = oly_sub(carry[2], carry[3]);
    out[1] = carry[0];
}

/* Nothing but moved: the last two values. */
static void shift(oly_array *carry, void *user)
{
    (void)user;
    oly_array next = oly_sub(oly_mul(1.3, carry[2]), oly_mul(0.4, carry[3]));
    carry[0] = oly_add(carry[0], 1);
    carry[3] = carry[2];
    carry[2] = next;
}

static void passed(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array carry[] = {oly_zeros(OLY_INT32), in[1], in[0], oly_cos(in[0])};
    oly_while(below, shift, 4, carry, NULL);
    out[0] = oly_sub(carry[2], carry[3]);
    out[1] = carry[0];
}

static void swap(oly_array *carry, void *user)
{
    (void)user;
    oly_array a = carry[2];
    carry[0] = oly_add(carry[0], 1);
    carry[2] = carry[3];
    carry[3] = a;
}

static void swapped(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array carry[] = {oly_zeros(OLY_INT32), in[1], in[0], oly_cos(in[0])};
    oly_while(below, swap, 4, carry, NULL);
    out[0] = oly_sub(carry[2], carry[3]);
    out[1] = carry[0];
}

/* A loop in a loop: the inner one has as many iterations as the limit, every time. */
static void both(oly_array *carry, void *user)
{
    oly_array inner[] = {oly_zeros(OLY_INT32), carry[1], carry[2], oly_cos(carry[2])};
    oly_while(below, exchange, 4, inner, user);
    carry[2] = inner[3];
    carry[0] = oly_add(carry[0], 3);
}

static void loop_in_loop(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array outside = oly_add(in[0], 2);
    oly_array carry[] = {oly_zeros(OLY_INT32), in[1], in[0]};
    oly_while(below, both, 3, carry, &outside);
    out[0] = carry[2];
    out[1] = carry[0];
}

/* A carry that is updated in place. */
static void write_row(oly_array *carry, void *user)
{
    (void)user;
    carry[2] = oly_dynamic_update_slice(carry[2],
                                        oly_mul(oly_astype(carry[0], OLY_FLOAT32), oly_full(-1, OLY_FLOAT32, 1, SIDE)),
                                        OLY_INDEXES(oly_rem(carry[0], SIDE), 0));
    carry[0] = oly_add(carry[0], 1);
}

static void rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array carry[] = {oly_zeros(OLY_INT32), in[1], in[0]};
    oly_while(below, write_row, 3, carry, NULL);
    out[0] = carry[2];
    out[1] = carry[0];
}

/* Newton's roots: how many iterations, the values say. */
static oly_array not_there(const oly_array *carry, void *user)
{
    (void)user;
    return oly_gt(oly_max(oly_abs(oly_sub(oly_div(oly_mul(carry[2], carry[2]), carry[1]), 1))), 1e-4);
}

static void closer(oly_array *carry, void *user)
{
    (void)user;
    carry[2] = oly_mul(0.5, oly_add(carry[2], oly_div(carry[1], carry[2])));
    carry[0] = oly_add(carry[0], 1);
}

static void roots(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array carry[] = {oly_zeros(OLY_INT32), oly_add(oly_add(in[0], 2), oly_astype(in[1], OLY_FLOAT32)),
                         oly_full_like(in[0], 1e6)};
    oly_while(not_there, closer, 3, carry, NULL);
    out[0] = carry[2];
    out[1] = carry[0];
}

/* -- programs of counted loops -------------------------------------------------------------------------------------------------- */

static void step(oly_array i, oly_array *carry, void *user)
{
    oly_array a = carry[0], outside = *(oly_array *)user;
    carry[0] = oly_add(oly_sin(carry[1]), oly_mul(outside, oly_mul(0.01, i)));
    carry[1] = oly_cos(oly_add(a, oly_mul(0.1, i)));
}

static void steps(const oly_array *in, oly_array *out, void *user)
{
    const int64_t *n = user;
    oly_array outside = oly_add(in[0], 2), carry[] = {in[0], oly_cos(in[0])};
    oly_fori(3, 3 + *n, step, 2, carry, &outside);
    out[0] = oly_sub(carry[0], carry[1]);
    out[1] = oly_add(in[1], 1);
}

/* Carries that take over others: buffers come again after four iterations. */
static void delay(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    oly_array next = oly_add(oly_mul(0.7, carry[2]), oly_sin(oly_add(carry[0], oly_mul(0.1, i))));
    carry[2] = carry[1];
    carry[1] = carry[0];
    carry[0] = next;
}

static void delays(const oly_array *in, oly_array *out, void *user)
{
    const int64_t *n = user;
    oly_array carry[] = {in[0], oly_cos(in[0]), oly_sin(in[0])};
    oly_fori(0, *n, delay, 3, carry, NULL);
    out[0] = oly_sub(carry[0], oly_mul(carry[1], carry[2]));
    out[1] = oly_add(in[1], 1);
}

/* Rows are written in place. */
static void accumulate(oly_array *c, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    c[0] = oly_tanh(oly_add(oly_mul(0.5, c[0]), x[0]));
    y[0] = oly_mul(c[0], 3);
}

static void scanned(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array c = oly_zeros(OLY_FLOAT32, SIDE);
    oly_scan(SIDE, false, accumulate, 1, &c, 1, in, 1, out, NULL);
    out[1] = oly_add(in[1], 1);
}

static void inner(oly_array i, oly_array *carry, void *user)
{
    oly_array more[] = {carry[0], oly_mul(carry[1], oly_mul(0.1, i))};
    int64_t n = *(const int64_t *)user;
    (void)n;
    oly_array outside = carry[1];
    oly_fori(0, 9, step, 2, more, &outside);
    carry[0] = more[0];
    carry[1] = oly_sin(more[1]);
}

static void loops_in_loops(const oly_array *in, oly_array *out, void *user)
{
    const int64_t *n = user;
    oly_array carry[] = {in[0], oly_cos(in[0])};
    oly_fori(0, *n, inner, 2, carry, user);
    out[0] = oly_sub(carry[0], carry[1]);
    out[1] = oly_add(in[1], 1);
}

/* -- comparing -------------------------------------------------------------------------------------------------------------------- */

typedef struct results {
    float field[SIDE * SIDE];
    int32_t count;
} results;

typedef struct calls {
    int n;
    int32_t limit[MOST_CALLS];
} calls;

static void call_often(oly_function function, void *user, oly_optimisations off, const calls *c, results *found)
{
    oly_optimisations before = oly_disable(off);
    oly_fn f = oly_jit(function, 2, 2, .user = user);
    for (int k = 0; k < c->n; k++)
        OLY_SCOPE
        {
            oly_array field, count, limit = placed(oly_scalar(c->limit[k], OLY_INT32));
            assert_int_equal(oly_call(f, OLY_IN(matrix(0.1 * (k % 3)), limit), OLY_OUT(field, count)), OLY_OK);
            read(field, found[k].field, sizeof found[k].field);
            read(count, &found[k].count, sizeof found[k].count);
        }
    oly_disable(before);
}

static void compare(oly_function function, void *user, const calls *c)
{
    static results with[MOST_CALLS], without[MOST_CALLS];
    int64_t before = counted_in_graphs() + decided_by_graphs();
    call_often(function, user, loops | conditions, c, without);
    assert_int_equal(counted_in_graphs() + decided_by_graphs(), before);
    call_often(function, user, 0, c, with);
    for (int k = 0; k < c->n; k++)
        if (memcmp(&with[k], &without[k], sizeof with[k]))
            fail_msg("call %d has other bits when iterations are in graphs: %d and %d of them", k, with[k].count,
                     without[k].count);
}

static const calls many = {15, {40, 41, 0, 1, 2, 3, 12, 13, 9, 10, 11, 30, 31, 40, 41}};
/* For loops in loops, of which every iteration takes as long as a loop of the others. */
static const calls fewer = {10, {14, 13, 0, 1, 2, 3, 9, 10, 13, 14}};

/* Without faults, and where all devices are of this process. */
static bool is_plain(void)
{
    return on_gpu() && oly_process_count() == 1 && !is_set("EMULATED_FAIL");
}

static void compare_while(oly_function function, const calls *c, bool in_graphs)
{
    int64_t before = decided_by_graphs();
    compare(function, NULL, c);
    if (is_plain() && !is_set("EMULATED_CONDITIONS"))
        assert_int_equal(decided_by_graphs() > before, in_graphs);
    if (!on_gpu() || is_set("EMULATED_CONDITIONS"))
        assert_int_equal(decided_by_graphs(), 0);
}

static void compare_counted(oly_function function, int64_t n, bool in_graphs)
{
    static const calls seven = {7, {0, 1, 2, 3, 4, 5, 6}};
    int64_t before = counted_in_graphs();
    compare(function, &n, &seven);
    if (is_plain())
        assert_int_equal(counted_in_graphs() > before, in_graphs);
    if (!on_gpu())
        assert_int_equal(counted_in_graphs(), 0);
}

/* -- tests ------------------------------------------------------------------------------------------------------------------------ */

static int open_all(void **state)
{
    mesh_axes = "x=4, y=2";
    return check_open(state);
}

/* One device, where no process would be without. */
static int open_one(void **state)
{
    int result = check_open(state);
    mesh_axes = oly_process_count() == 1 ? "x=1" : "x=4, y=2";
    return result;
}

static void conditions_of_fields(void **state)
{
    (void)state;
    compare_while(fields, &many, true);
}

static void carries_that_are_swapped(void **state)
{
    (void)state;
    compare_while(swapped, &many, true);
}

static void carries_that_take_over_others_have_too_many_buffers(void **state)
{
    (void)state;
    compare_while(passed, &many, false);
}

static void counted_loops_inside(void **state)
{
    (void)state;
    compare_while(nested, &fewer, strcmp(mesh_axes, "x=1") == 0);
}

static void loops_in_conditional_loops(void **state)
{
    (void)state;
    compare_while(loop_in_loop, &fewer, true);
}

static void carries_written_in_place(void **state)
{
    (void)state;
    compare_while(rows, &many, true);
}

static void conditions_of_values(void **state)
{
    (void)state;
    compare_while(roots, &(calls){6, {0, 1000, 3, 1000000, 0, 7}}, true);
}

/* The host is asked now and then: after 8 iterations, then after twice as many, up to 1024. */
static void very_many_iterations(void **state)
{
    (void)state;
    bool one = oly_process_count() == 1;
    compare_while(fields, &(calls){2, {one ? 2500 : 1100, one ? 1030 : 30}}, true);
}

static void counted_loops(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 6; n++)
        compare_counted(steps, n, n == 5);
    compare_counted(steps, 9, true);
    compare_counted(steps, 16, true);
    compare_counted(steps, 101, true);
}

static void counted_loops_of_many_buffers(void **state)
{
    (void)state;
    compare_counted(delays, 4, false);
    compare_counted(delays, 11, true);
    compare_counted(delays, 42, true);
    compare_counted(delays, 103, true);
}

static void counted_loops_in_place(void **state)
{
    (void)state;
    compare_counted(scanned, 0, strcmp(mesh_axes, "x=1") == 0);
}

static void counted_loops_in_loops(void **state)
{
    (void)state;
    compare_counted(loops_in_loops, 7, true);
}

/* Numbers of graphs do not grow with calls; those of single steps are made after some more than others. */
static void graphs_are_kept(void **state)
{
    (void)state;
    int64_t n = 20, graphs = 0, before = 0;
    oly_fn f = oly_jit(steps, 2, 2, .user = &n);
    oly_array x = matrix(0.2), limit = placed(oly_scalar(1, OLY_INT32));
    for (int k = 0; k < 24; k++)
        OLY_SCOPE
        {
            oly_array field, count;
            if (k == 20) {
                graphs = oly_counted(&oly_device_counted.graphs);
                before = counted_in_graphs();
            }
            assert_int_equal(oly_call(f, OLY_IN(x, limit), OLY_OUT(field, count)), OLY_OK);
            oly_block_until_ready(field);
        }
    if (is_plain()) {
        assert_int_equal(oly_counted(&oly_device_counted.graphs), graphs);
        assert_true(counted_in_graphs() - before >= 4 * 16);
    }
}

#define BOTH(test) TEST(test, open_all), TEST(test, open_one)
#define TEST(test, open)                                                                                               \
    {                                                                                                                  \
#test ", " #open, test, open, check_close, NULL                                                                \
    }

int main(void)
{
    static const struct CMUnitTest tests[] = {BOTH(conditions_of_fields),
                                              BOTH(carries_that_are_swapped),
                                              BOTH(counted_loops_inside),
                                              BOTH(carries_that_take_over_others_have_too_many_buffers),
                                              BOTH(loops_in_conditional_loops),
                                              BOTH(carries_written_in_place),
                                              BOTH(conditions_of_values),
                                              TEST(very_many_iterations, open_one),
                                              BOTH(counted_loops),
                                              BOTH(counted_loops_of_many_buffers),
                                              BOTH(counted_loops_in_place),
                                              BOTH(counted_loops_in_loops),
                                              BOTH(graphs_are_kept)};
    return CHECK_MAIN(tests);
}
