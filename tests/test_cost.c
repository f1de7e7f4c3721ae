/* run: ranks=1,2 devices=8  What the cost model promises: numbers read as written and refused with their column, transfers that
 * cost latency and bandwidth of the level they cross, collectives stage by stage, and levels found from the axes of a mesh. */
#include "check.h"
#include "core/error.h"
#include "core/text.h"
#include "plan/cost.h"
#include <math.h>
#include <olympus.h>
#include <stdlib.h>
#include <unistd.h>

static int start(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    oly_clear_error();
    return oly_finalize();
}

static void close_to(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.12g instead of %.12g", value, expected);
}

static void numbers_are_read_as_written(void **state)
{
    (void)state;
    oly_rates r, again, fixed = oly_rates_fixed();
    assert_int_equal(oly_rates_read("", &r), OLY_OK);
    assert_memory_equal(&r, &fixed, sizeof r);
    assert_int_equal(oly_rates_read("node=2.5us,8GB/s; gemm = 12.25 Tflop/s; memory=900MB/s; process=0s,1B/s", &r),
                     OLY_OK);
    close_to(r.link[OLY_LEVEL_NODE].latency, 2.5e-6);
    close_to(r.link[OLY_LEVEL_NODE].bandwidth, 8e9);
    close_to(r.gemm, 12.25e12);
    close_to(r.memory, 900e6);
    assert_true(r.link[OLY_LEVEL_PROCESS].latency == 0);
    close_to(r.link[OLY_LEVEL_PROCESS].bandwidth, 1);
    close_to(r.link[OLY_LEVEL_NETWORK].latency, fixed.link[OLY_LEVEL_NETWORK].latency);
    assert_false(r.by_level);
    assert_int_equal(oly_rates_read("levels", &r), OLY_OK);
    assert_true(r.by_level);
    oly_text t = {0};
    oly_rates_text(&t, &r);
    assert_int_equal(oly_rates_read(oly_text_chars(&t), &again), OLY_OK);
    oly_text_free(&t);
    close_to(again.link[OLY_LEVEL_NETWORK].bandwidth, r.link[OLY_LEVEL_NETWORK].bandwidth);
    assert_true(again.by_level);
}

static void wrong_numbers_are_refused_with_their_column(void **state)
{
    (void)state;
    static const struct {
        const char *text, *column;
    } cases[] = {{"node=2us,8GB", "column 13"},   {"node=2us", "column 9"},
                 {"nodes=2us,8GB/s", "column 1"}, {"memory=0GB/s", "column 9"},
                 {"memory=-1GB/s", "column 8"},   {"process=1us,2GB/s node=1us,1GB/s", "column 19"},
                 {"gemm=5GB/s", "column 7"},      {"network=5GB,5us", "column 10"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        oly_rates r;
        assert_int_equal(oly_rates_read(cases[k].text, &r), OLY_PARSE);
        if (!strstr(oly_pending_message(), cases[k].column))
            fail_msg("\"%s\": %s", cases[k].text, oly_pending_message());
        oly_drop_message();
    }
}

static void collectives_cost_their_stages(void **state)
{
    (void)state;
    oly_rates before = *oly_rates_now(), r;
    assert_int_equal(oly_rates_read("process=1us,1GB/s; node=1us,1GB/s; network=1us,1GB/s", &r), OLY_OK);
    oly_rates_use(&r);
    oly_mesh mesh = oly_make_mesh("x=2, y=4");
    oly_axis_list both = {.n = 2, .axis = {0, 1}}, y = {.n = 1, .axis = {1}};
    close_to(oly_price_transfer(OLY_LEVEL_NODE, 1e9, 3), 1 + 3e-6);
    /* over y a device receives 3/4 of a value of 4 kB; over both: 1/2 of it over x, then 3/4 of that half over y */
    close_to(oly_price_collective(OLY_ALL_GATHER, mesh, &y, 4000), 3e-6 + 3e-6);
    close_to(oly_price_collective(OLY_ALL_GATHER, mesh, &both, 4000), 1e-6 + 2e-6 + 3e-6 + 1.5e-6);
    close_to(oly_price_collective(OLY_ALL_REDUCE, mesh, &y, 4000), 2 * (3e-6 + 3e-6));
    close_to(oly_price_collective(OLY_ALL_TO_ALL, mesh, &y, 4000), 3e-6 + 3e-6);
    close_to(oly_price_collective(OLY_PERMUTE, mesh, &y, 4000), 1e-6 + 4e-6);
    oly_rates_use(&before);
}

/* 2 processes with 4 devices each, or one with 8. */
static void levels_follow_from_axes(void **state)
{
    (void)state;
    bool two = oly_process_count() == 2;
    oly_mesh mesh = oly_make_mesh(two ? "p=2, d=4" : "p=1, d=8"), flat = oly_make_mesh("a=4, b=2");
    assert_int_equal(oly_axis_level(mesh, 0), two ? OLY_LEVEL_NODE : OLY_LEVEL_PROCESS);
    assert_int_equal(oly_axis_level(mesh, 1), OLY_LEVEL_PROCESS);
    assert_int_equal(oly_axis_level(flat, 0), two ? OLY_LEVEL_NODE : OLY_LEVEL_PROCESS);
    assert_int_equal(oly_axis_level(flat, 1), OLY_LEVEL_PROCESS);
    oly_nodes_uniform(1); /* as if each process had a node of its own */
    assert_int_equal(oly_axis_level(mesh, 0), two ? OLY_LEVEL_NETWORK : OLY_LEVEL_PROCESS);
    assert_int_equal(oly_axis_level(mesh, 1), OLY_LEVEL_PROCESS);
    assert_int_equal(oly_mesh_level(flat), two ? OLY_LEVEL_NETWORK : OLY_LEVEL_PROCESS);
    oly_nodes_uniform(0);
}

/* The first start measures and keeps the numbers, the next ones read them; all ranks have rank 0's. */
static void a_machine_is_measured_once(void **state)
{
    (void)state;
    char folder[] = "/tmp/olympus-test-XXXXXX", host[128] = "", name[300], command[400];
    oly_rates first;
    bool mine = oly_process_index() == 0;
    if (mine)
        assert_non_null(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1); /* the other ranks' is not used */
    setenv("OLYMPUS_COSTS", "measure", 1);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(oly_finalize(), 0);
        oly_init(NULL, NULL);
        const oly_rates *r = oly_rates_now();
        gethostname(host, sizeof host - 1);
        snprintf(name, sizeof name, "%s/olympus/costs-%s", folder, host);
        assert_int_equal(mine, mine && access(name, R_OK) == 0);
        if (k == 0)
            first = *r;
        if (k == 1) { /* as read: rounded; then with a number put there by hand */
            assert_true(fabs(r->gemm - first.gemm) < 0.01 * first.gemm);
            FILE *file = mine ? fopen(name, "a") : NULL;
            if (file) {
                fputs("; gemm=7Gflop/s", file);
                fclose(file);
            }
        }
        if (k == 2)
            close_to(r->gemm, 7e9);
        assert_true(r->memory > 1e8 && r->gemm > 1e6 && r->operations > 1e7);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (mine)
        assert_int_equal(system(command), 0);
    unsetenv("OLYMPUS_COSTS");
    unsetenv("XDG_CACHE_HOME");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_are_read_as_written, start, finish),
        cmocka_unit_test_setup_teardown(wrong_numbers_are_refused_with_their_column, start, finish),
        cmocka_unit_test_setup_teardown(collectives_cost_their_stages, start, finish),
        cmocka_unit_test_setup_teardown(levels_follow_from_axes, start, finish),
        cmocka_unit_test_setup_teardown(a_machine_is_measured_once, start, finish),
    };
    return CHECK_MAIN(tests);
}
