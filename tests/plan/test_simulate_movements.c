/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Transfers planned for simulated machines: all-gathers, broadcasts, all-to-alls, transposes and others take a
 * process on machines of any size at most twice the work and the memory that they take for eight devices, and so do their
 * explanations; they move no more bytes than necessary; gathers and broadcasts have as many stages as the number of processes
 * has bits, which explanations show.
 *   GROWTH_LIST=1   prints every transfer with its work for each size of machine, and continues after a failure */
#include "array/function.h"
#include "check.h"
#include "check_session.h"
#include "count_work.h"
#include "core/simulate.h"
#include <math.h>
#include <olympus.h>

static void start(const char *size, const char *direct)
{
    if (direct)
        setenv("OLYMPUS_DIRECT_PROCESSES", direct, 1);
    check_simulate(size);
}

static void finish(void)
{
    check_simulate_end();
    unsetenv("OLYMPUS_DIRECT_PROCESSES");
}

/* -- transfers ----------------------------------------------------------------------------------------------------- */

/* All devices along one axis. */
static oly_mesh line(void)
{
    char axes[64];
    snprintf(axes, sizeof axes, "x=%d", oly_device_count());
    return oly_make_mesh(axes);
}

/* Devices in another order: from the last, from the second, shuffled; or without the first ones. */
enum { BACKWARDS, SHIFTED, SHUFFLED, REST };

static oly_mesh listed(int order, int n_axes, const int *size)
{
    static const char *const names[] = {"a", "b"}, *const one[] = {"x"};
    int n = oly_device_count(), left_out = order == REST ? (n > 8 ? 8 : 4) : 0,
        *device = malloc(sizeof *device * (size_t)n);
    for (int k = 0; k < n; k++)
        device[k] = order == BACKWARDS ? n - 1 - k
                    : order == SHIFTED ? (k + 1) % n
                    : order == REST    ? k + left_out
                                       : (int)((k * 7919LL + 3) % n);
    n -= left_out;
    oly_mesh mesh = oly_mesh_from_devices(n_axes, n_axes == 1 ? one : names, size ? size : &n, device);
    free(device);
    return mesh;
}

static oly_mesh backwards(void)
{
    return listed(BACKWARDS, 1, NULL);
}

static oly_mesh half(void)
{
    char axes[64];
    snprintf(axes, sizeof axes, "x=%d", oly_device_count() / 2);
    return oly_make_mesh(axes);
}

/* A rectangle, wide or high. */
static oly_mesh rectangle(bool high)
{
    char axes[64];
    int n = oly_device_count(), side = (int)sqrt(n);
    while (n % side)
        side--;
    snprintf(axes, sizeof axes, "a=%d, b=%d", high ? n / side : side, high ? side : n / side);
    return oly_make_mesh(axes);
}

static oly_mesh rectangle_backwards(void)
{
    oly_mesh m = rectangle(true);
    return listed(BACKWARDS, 2, (int[]){oly_mesh_axis_size(m, 0), oly_mesh_axis_size(m, 1)});
}

/* As close to a cube as the number of devices allows. */
static oly_mesh cube(void)
{
    char axes[64];
    int n = oly_device_count(), a = (int)cbrt(n + 0.5), b;
    while (n % a)
        a--;
    b = (int)sqrt(n / a + 0.5);
    while (n / a % b)
        b--;
    snprintf(axes, sizeof axes, "a=%d, b=%d, c=%d", n / a / b, b, a);
    return oly_make_mesh(axes);
}

typedef struct movement {
    const char *name;
    oly_sharding from, to; /* from NULL: the value is on every process */
    int64_t shape[2];
    int64_t received; /* bytes received by the devices of a process together; -1: not checked */
    bool staged;
} movement;

enum { N_TOLD = 13, N_MOVEMENTS = 38 }; /* of the first 13 everything is checked */

/* As large as the machine: those that are checked less. */
static movement make_other(int k)
{
    int64_t n = oly_device_count(), few = 4 * n, uneven = few + 5;
    oly_sharding first = oly_single_device(oly_get_device(0)), last = oly_single_device(oly_get_device((int)n - 1));
    oly_mesh x = line(), high = rectangle(true), shuffled = listed(SHUFFLED, 1, NULL), abc = cube();
    movement some[] = {
        {"one further", oly_named(x, "x"), oly_named(listed(SHIFTED, 1, NULL), "x"), {few, 4}, -1, false},
        {"shuffled", oly_named(x, "x"), oly_named(shuffled, "x"), {few, 4}, -1, false},
        {"all-gather of shuffled", oly_named(shuffled, "x"), oly_named(shuffled, ""), {few, 4}, -1, false},
        {"along the minor axis", oly_named(high, "(a, b)"), oly_named(high, "a"), {few, 4}, -1, false},
        {"along the major axis", oly_named(high, "(a, b)"), oly_named(high, "b"), {few, 4}, -1, false},
        {"cut", oly_named(x, ""), oly_named(x, "x"), {few, 4}, -1, false},
        {"cut further", oly_named(high, "a"), oly_named(high, "(a, b)"), {few, 4}, -1, false},
        {"cut further, uneven", oly_named(high, "a"), oly_named(high, "(a, b)"), {uneven, 4}, -1, false},
        {"all to columns", oly_named(high, "a, b"), oly_named(high, "None, (a, b)"), {n, n}, -1, false},
        {"to all but some", oly_named(x, "x"), oly_named(listed(REST, 1, NULL), "x"), {few, 4}, -1, false},
        {"broadcast of the last", last, oly_named(x, ""), {64, 64}, -1, false},
        {"broadcast to a list", first, oly_named(backwards(), ""), {64, 64}, -1, false},
        {"copies to a list", oly_named(x, ""), oly_named(backwards(), ""), {64, 64}, -1, false},
        {"copies of half", oly_named(half(), ""), oly_named(x, ""), {64, 64}, -1, false},
        {"gathered from half", oly_named(half(), "x"), oly_named(x, ""), {few, 4}, -1, false},
        {"uneven backwards", oly_named(x, "x"), oly_named(backwards(), "x"), {uneven, 4}, -1, false},
        {"axes the other way", oly_named(high, "(a, b)"), oly_named(high, "(b, a)"), {few, 4}, -1, false},
        {"columns of a list",
         oly_named(rectangle_backwards(), "a, b"),
         oly_named(rectangle_backwards(), "a"),
         {n, n},
         -1,
         false},
        {"to columns of half", oly_named(x, "x"), oly_named(half(), "None, x"), {n, n}, -1, false},
        {"uneven all-to-all", oly_named(x, "x"), oly_named(x, "None, x"), {n + 3, n + 5}, -1, false},
        {"of every process, cut", NULL, oly_named(x, "x"), {few, 4}, -1, false},
        {"of every process", NULL, oly_named(backwards(), ""), {64, 4}, -1, false},
        {"a box transposed", oly_named(abc, "(a, b), c"), oly_named(abc, "c, (a, b)"), {n, n}, -1, false},
        {"a box otherwise", oly_named(abc, "a, (b, c)"), oly_named(abc, "(c, b), a"), {n + 1, n + 2}, -1, false},
        {"all of a box", oly_named(abc, "(a, b), c"), oly_named(abc, ""), {few, 64}, -1, false},
    };
    assert_int_equal(sizeof some / sizeof *some, N_MOVEMENTS - N_TOLD);
    return some[k];
}

/* As large as the machine: four float32 per device, or one per pair of devices. */
static movement make(int k)
{
    int64_t n = oly_device_count(), few = 4 * n, own = 4 * 4 * 4, all = few * 4 * 4, here = oly_local_device_count();
    oly_sharding first = oly_single_device(oly_get_device(0));
    oly_mesh x = line();
    switch (k) {
    case 0: return (movement){"all-gather", oly_named(x, "x"), oly_named(x, ""), {few, 4}, here * (all - own), true};
    case 1: return (movement){"uneven", oly_named(x, "x"), oly_named(x, ""), {few + 5, 4}, -1, true};
    case 2:
        return (movement){"along one axis",
                          oly_named(rectangle(false), "a, b"),
                          oly_named(rectangle(false), "None, b"),
                          {n, n},
                          -1,
                          true};
    case 3:
        return (movement){"along two axes",
                          oly_named(rectangle(false), "a, b"),
                          oly_named(rectangle(false), ""),
                          {few, 64},
                          -1,
                          true};
    case 4:
        return (movement){"all-gather of a list",     oly_named(backwards(), "x"),
                          oly_named(backwards(), ""), {few, 4},
                          here * (all - own),         true};
    case 5: return (movement){"broadcast", first, oly_named(x, ""), {64, 64}, (here - 1) * 64 * 64 * 4, true};
    case 6: return (movement){"scatter", first, oly_named(x, "x"), {few, 4}, (here - 1) * own, false};
    case 7: return (movement){"collect", oly_named(x, "x"), first, {few, 4}, all - own, false};
    case 8:
        return (movement){"all-to-all", oly_named(x, "x"), oly_named(x, "None, x"), {n, n}, here * 4 * (n - 1), false};
    case 9:
        return (movement){
            "transposed", oly_named(rectangle(true), "a, b"), oly_named(rectangle(true), "b, a"), {n, n}, -1, false};
    case 10:
        return (movement){"another rectangle",
                          oly_named(rectangle(true), "a, b"),
                          oly_named(rectangle(false), "a, b"),
                          {n, n},
                          -1,
                          false};
    case 11: return (movement){"half of them", oly_named(x, "x"), oly_named(half(), "x"), {few, 4}, -1, false};
    case 12:
        return (movement){"backwards", oly_named(x, "x"), oly_named(backwards(), "x"), {few, 4}, here * own, false};
    default: return make_other(k - N_TOLD);
    }
}

static void place(const oly_array *in, oly_array *out, void *to)
{
    out[0] = oly_device_put(in[0], to);
}

typedef struct measured {
    oly_plan_costs costs;
    size_t arena;     /* bytes that the plan keeps: in blocks, each as large as those before together */
    long work, bytes; /* what was allocated to make it, without free space in blocks */
} measured;

static oly_array operand(const movement *v)
{
    oly_array x = oly_zeros(OLY_FLOAT32, v->shape[0], v->shape[1]);
    return v->from ? oly_device_put(x, v->from) : x;
}

static measured plan(int k)
{
    measured m = {0};
    for (int repeat = 0; repeat < 2; repeat++) /* the first one makes meshes, too */
        OLY_SCOPE
        {
            const oly_plan *made = NULL;
            movement v = make(k);
            oly_array x = operand(&v);
            oly_fn f = oly_jit(place, 1, 1, .user = (void *)v.to);
            work_done();
            assert_int_equal(oly_function_plan(f, 1, &x, &made), OLY_OK);
            m.bytes = done.bytes;
            m.work = work_done();
            m.arena = made->arena.total;
            assert_int_equal(oly_costs(&m.costs, f, x), OLY_OK);
            if (v.received >= 0)
                assert_int_equal(m.costs.wire_bytes, v.received);
        }
    return m;
}

/* -- tests ------------------------------------------------------------------------------------------------------------------ */

/* The first of each row is the small machine that the others are compared with. */
static const char *const machines[2][7] = {
    {"1x8", "2x8", "17x8", "64x8", "1000x8", "25000x4", "12500x8"},
    {"8x1", "17x1", "64x1", "100000x1"},
};

static bool is_good(const measured *few, const measured *many)
{
    return many->work <= 2 * few->work && many->bytes <= 2 * few->bytes && many->arena <= 256 << 10 &&
           many->costs.steps <= few->costs.steps + 2 && /* copies before the messages, a wait for these */
           many->costs.collectives <= 1 && many->costs.scratch_bytes <= few->costs.scratch_bytes + 65536;
}

static void many_devices_cost_what_few_do(void **state)
{
    (void)state;
    static measured m[7][N_MOVEMENTS];
    int complaints = 0;
    for (int set = 0; set < 2; set++) {
        int n = 0;
        for (; n < 7 && machines[set][n]; n++) {
            start(machines[set][n], NULL);
            for (int k = 0; k < N_MOVEMENTS; k++)
                m[n][k] = plan(k);
            finish();
        }
        for (int k = 0; k < N_MOVEMENTS; k++) {
            bool good = k >= N_TOLD || set == 1 || m[n - 1][k].costs.collectives == 1;
            for (int j = 1; j < n; j++)
                good = good && is_good(&m[0][k], &m[j][k]);
            complaints += !good;
            if (good && !getenv("GROWTH_LIST"))
                continue;
            print_message("%s movement %d:", good ? "     " : "GROWS", k);
            for (int j = 0; j < n; j++)
                print_message("  %s work %ld, %ld KB, %lld steps", machines[set][j], m[j][k].work, m[j][k].bytes >> 10,
                              (long long)m[j][k].costs.steps);
            print_message("\n");
        }
    }
    check_growth(complaints);
}

/* Listed at once or later, directly or in stages: the same bytes, and one collective. */
static void however_it_goes_it_costs_the_same(void **state)
{
    (void)state;
    measured m[3][N_MOVEMENTS];
    static const char *const direct[] = {NULL, "1", "1000"};
    for (int j = 0; j < 3; j++) {
        start("32x8", direct[j]);
        for (int k = 0; k < N_MOVEMENTS; k++)
            m[j][k] = plan(k);
        finish();
    }
    for (int k = 0; k < N_MOVEMENTS; k++)
        for (int j = 1; j < 3; j++) {
            assert_int_equal(m[j][k].costs.wire_bytes, m[0][k].costs.wire_bytes);
            assert_int_equal(m[j][k].costs.collectives, m[0][k].costs.collectives);
            assert_int_equal(m[j][k].costs.scratch_bytes, m[0][k].costs.scratch_bytes);
        }
}

/* The explanation of a transfer in a simulated job, to be freed; and its work, with planning. */
static char *explained(int k, oly_explain_form form, long *work)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    movement v = make(k);
    oly_array x = operand(&v);
    work_done();
    assert_int_equal(oly_explain_as(file, form, oly_jit(place, 1, 1, .user = (void *)v.to), x), OLY_OK);
    *work = work_done();
    fclose(file);
    return text;
}

static void explanations_do_not_grow(void **state)
{
    (void)state;
    static size_t length[2][3][N_MOVEMENTS];
    static long work[2][3][N_MOVEMENTS];
    for (int many = 0; many < 2; many++) {
        start(many ? "12500x8" : "1x8", NULL);
        for (int form = OLY_EXPLAIN_TEXT; form <= OLY_EXPLAIN_DOT; form++)
            for (int k = 0; k < N_MOVEMENTS; k++)
                OLY_SCOPE
                {
                    char *text = explained(k, (oly_explain_form)form, &work[many][form][k]);
                    length[many][form][k] = strlen(text);
                    free(text);
                }
        finish();
    }
    for (int form = OLY_EXPLAIN_TEXT; form <= OLY_EXPLAIN_DOT; form++)
        for (int k = 0; k < N_MOVEMENTS; k++) {
            assert_in_range(length[1][form][k], 1, 2 * length[0][form][k] + 512); /* one more step may be explained */
            assert_in_range(work[1][form][k], 1, 2 * work[0][form][k]);
        }
}

static void explanations_tell_the_stages(void **state)
{
    (void)state;
    long work;
    start("12500x8", NULL);
    for (int k = 0; k < N_TOLD; k++) {
        bool staged = make(k).staged;
        char *text = explained(k, OLY_EXPLAIN_TEXT, &work);
        assert_int_equal(strstr(text, " stages among ") != NULL, staged);
        if (k >= 6 && k <= 8)
            assert_non_null(strstr(text, "messages are listed by the first run"));
        free(text);
    }
    char *text = explained(0, OLY_EXPLAIN_TEXT, &work);
    assert_non_null(strstr(text, "all-gather: in 14 stages among 12500 processes"));
    assert_non_null(strstr(text, "in 14 messages"));
    assert_non_null(strstr(text, "100000 members"));
    assert_non_null(strstr(text, "total: 1 collective, "));
    free(text);
    text = explained(5, OLY_EXPLAIN_TEXT, &work);
    assert_non_null(strstr(text, "broadcast: in 14 stages among 12500 processes"));
    free(text);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_devices_cost_what_few_do),
        cmocka_unit_test(however_it_goes_it_costs_the_same),
        cmocka_unit_test(explanations_do_not_grow),
        cmocka_unit_test(explanations_tell_the_stages),
    };
    return CHECK_MAIN(tests);
}
