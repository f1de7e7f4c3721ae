/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Layouts chosen by cost on a machine of several nodes (OLYMPUS_SIMULATE): with "levels" in OLYMPUS_COSTS
 * the costs of each level decide what crosses the network, a node or a process; without, layouts do not depend on how
 * devices are distributed over processes and nodes. */
#include "array/function.h"
#include "check.h"
#include <olympus.h>
#include <stdlib.h>

typedef struct machine {
    const char *size, *node, *costs;
} machine;

static void start(machine m)
{
    setenv("OLYMPUS_SIMULATE", m.size, 1);
    setenv("OLYMPUS_SIMULATE_NODE", m.node, 1);
    setenv("OLYMPUS_COSTS", m.costs, 1);
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
}

static void finish(void)
{
    oly_clear_error();
    assert_int_equal(oly_finalize(), 0);
    unsetenv("OLYMPUS_SIMULATE");
    unsetenv("OLYMPUS_SIMULATE_NODE");
    unsetenv("OLYMPUS_COSTS");
}

static void multiply(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_matmul(in[0], in[1]);
}

typedef struct planned {
    char text[20000];
    oly_plan_costs costs;
} planned;

/* x[m, k] @ w[k, n] on mesh (a=4, b=4), results open: how it is computed. */
static const planned *plan_of(machine m, int rows, int inner, int columns, const char *x, const char *w)
{
    static planned p;
    start(m);
    oly_mesh mesh = oly_make_mesh("a=4, b=4");
    oly_array in[2] = {oly_device_put(oly_zeros(OLY_FLOAT32, rows, inner), oly_named(mesh, x)),
                       oly_device_put(oly_zeros(OLY_FLOAT32, inner, columns), oly_named(mesh, w))};
    oly_sharding whole = oly_named(mesh, "None, None");
    oly_fn f = oly_jit(multiply, 2, 1, .out_shardings = &whole);
    memset(&p, 0, sizeof p);
    FILE *file = fmemopen(p.text, sizeof p.text - 1, "w");
    assert_non_null(file);
    assert_int_equal(oly_explain_n(file, f, 2, in), OLY_OK);
    fclose(file);
    assert_int_equal(oly_costs_n(&p.costs, f, 2, in), OLY_OK);
    finish();
    return &p;
}

static bool sums_over(const planned *p, const char *axis)
{
    const char *at = strstr(p->text, "sums over ");
    return at && strncmp(at + strlen("sums over "), axis, strlen(axis)) == 0;
}

/* Contracted dimensions split over different axes: one operand must follow the other. Over the outer axis a, which
 * crosses the network here, or over b, within processes. */
static void sums_stay_where_links_are_fast(void **state)
{
    (void)state;
    const char *costs = "levels; process=0.1us,100GB/s; node=1us,20GB/s; network=50us,0.1GB/s";
    const planned *p = plan_of((machine){"4x4", "1", costs}, 64, 4096, 64, "None, a", "b, None");
    assert_true(sums_over(p, "b"));
    /* the opposite, if processes were the slow link */
    costs = "levels; process=50us,0.1GB/s; node=1us,20GB/s; network=0.1us,100GB/s";
    p = plan_of((machine){"4x4", "1", costs}, 64, 4096, 64, "None, a", "b, None");
    assert_false(sums_over(p, "b"));
}

/* All ranks on one node, two or four: the same layouts without "levels", whatever links cost. */
static void layouts_do_not_depend_on_nodes_unless_asked(void **state)
{
    (void)state;
    static const machine machines[] = {{"1x16", "1", ""}, {"4x4", "1", ""},
                                       {"4x4", "4", ""},  {"8x2", "2", ""},
                                       {"16x1", "1", ""}, {"4x4", "1", "process=0.1us,100GB/s; network=50us,0.1GB/s"}};
    static const struct {
        int rows, inner, columns;
        const char *x, *w;
    } programs[] = {{64, 4096, 64, "None, a", "b, None"},
                    {16, 64, 512, "a", "None, (a,b)"},
                    {128, 8, 128, "None, a", "a, b"},
                    {256, 256, 256, "a, b", "a, b"}};
    for (size_t k = 0; k < sizeof programs / sizeof *programs; k++) {
        char first[200] = "";
        for (size_t m = 0; m < sizeof machines / sizeof *machines; m++) {
            const planned *p = plan_of(machines[m], programs[k].rows, programs[k].inner, programs[k].columns,
                                       programs[k].x, programs[k].w);
            const char *how = strstr(p->text, "by cost: ");
            char now[200] = "";
            if (how)
                snprintf(now, sizeof now, "%.*s", (int)(strstr(how, "   ") - how), how);
            if (m == 0)
                strcpy(first, now);
            assert_string_equal(first, now);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_stay_where_links_are_fast),
        cmocka_unit_test(layouts_do_not_depend_on_nodes_unless_asked),
    };
    return CHECK_MAIN(tests);
}
