/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8  The cost model: numbers are read as written and refused with their column; transfers cost
 * latency and bandwidth of the level they cross, collectives the sum of their stages; levels follow from the axes of a
 * mesh. */
#include "check.h"
#include "core/error.h"
#include "core/text.h"
#include "plan/cost/cost.h"
#include "run/measure.h"
#include <math.h>
#include <olympus.h>
#include <stdlib.h>
#include <sys/stat.h>
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
    assert_int_equal(oly_rates_read("measure; levels; node=3us,5GB/s", &r), OLY_OK);
    assert_true(r.measure && r.by_level);
    close_to(r.common.latency, 3e-6); /* choices use a node's costs everywhere */
    assert_int_equal(oly_rates_read("network=3us,5GB/s", &r), OLY_OK);
    assert_memory_equal(&r.common, &fixed.common, sizeof r.common);
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
    close_to(oly_cost_transfer(OLY_LEVEL_NODE, 1e9, 3), 1 + 3e-6);
    /* over y a device receives 3/4 of a value of 4 kB; over both: 1/2 of it over x, then 3/4 of that half over y */
    close_to(oly_cost_collective(OLY_ALL_GATHER, mesh, &y, 4000), 3e-6 + 3e-6);
    close_to(oly_cost_collective(OLY_ALL_GATHER, mesh, &both, 4000), 1e-6 + 2e-6 + 3e-6 + 1.5e-6);
    close_to(oly_cost_collective(OLY_ALL_REDUCE, mesh, &y, 4000), 2 * (3e-6 + 3e-6));
    close_to(oly_cost_collective(OLY_ALL_TO_ALL, mesh, &y, 4000), 3e-6 + 3e-6);
    close_to(oly_cost_collective(OLY_PERMUTE, mesh, &y, 4000), 1e-6 + 4e-6);
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

/* -- measuring ------------------------------------------------------------------------------------------------------------- */

/* A cache folder of this test; only rank 0 reads its own. */
static char folder[40], name[300];

static bool make_folder(void)
{
    char host[128] = "";
    strcpy(folder, "/tmp/olympus-test-XXXXXX");
    if (oly_process_index() != 0)
        return false;
    assert_non_null(mkdtemp(folder));
    gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, "%s/olympus/costs-%s", folder, host);
    setenv("XDG_CACHE_HOME", folder, 1);
    return true;
}

static void remove_folder(void)
{
    char command[400];
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (oly_process_index() == 0)
        assert_int_equal(system(command), 0);
    unsetenv("OLYMPUS_COSTS");
    unsetenv("XDG_CACHE_HOME");
}

static const oly_rates *start_with(const char *costs)
{
    setenv("OLYMPUS_COSTS", costs, 1);
    assert_int_equal(oly_finalize(), 0);
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    assert_true(oly_rates_now()->memory > 1e8 && oly_rates_now()->gemm > 1e6 && oly_rates_now()->operations > 1e7);
    return oly_rates_now();
}

static void write_text(const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static const char *kept(void)
{
    static char text[2000];
    FILE *file = fopen(name, "r");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[n] = 0;
    if (file)
        fclose(file);
    return text;
}

/* The first start measures and stores the numbers, the next ones read them; all ranks have rank 0's. */
static void a_machine_is_measured_once(void **state)
{
    (void)state;
    oly_rates fixed = oly_rates_fixed();
    bool mine = make_folder(), two = oly_process_count() == 2;
    oly_rates first = *start_with("measure");
    if (mine) {
        assert_non_null(strstr(kept(), "olympus costs 2, network to \n"));
        assert_true((strstr(kept(), "node=") != NULL) == two);
        assert_null(strstr(kept(), "network=")); /* there is none */
    }
    assert_true((first.link[OLY_LEVEL_NODE].latency != fixed.link[OLY_LEVEL_NODE].latency) == two);
    oly_rates second = *start_with("measure");
    assert_memory_equal(&second, &first, sizeof first);
    /* choices use neither measured message costs nor levels, unless told to */
    assert_false(first.by_level);
    assert_memory_equal(&first.common, &fixed.common, sizeof fixed.common);
    if (mine) { /* a number entered by hand stays */
        FILE *file = fopen(name, "a");
        fputs("; gemm=7Gflop/s", file);
        fclose(file);
    }
    close_to(start_with("measure")->gemm, 7e9);
    /* the option overrides what was measured, and is not stored */
    const oly_rates *r = start_with("measure; levels; memory=3GB/s; network=7us,2GB/s");
    close_to(r->gemm, 7e9);
    close_to(r->memory, 3e9);
    close_to(r->link[OLY_LEVEL_NETWORK].latency, 7e-6);
    assert_true(r->by_level);
    assert_true(!mine || !strstr(kept(), "memory=3.000"));
    remove_folder();
}

static void unreadable_numbers_are_measured_again(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "process=0.500us,10.000GB/s;\nmemory=1.000GB/s;\ngemm=1.000Gflop/s;\noperations=1.000Gop/s\n", /* older */
        "olympus costs 2, network to \nprocess=0.500us,10.000GB/s;\nmemory=1.000GB/s;\ngemm=1.000Gflop/s;\nopera",
        "olympus costs 2, network to \nprocess=0.500us,10.000GB/s;\nmemory=1.000GB/s;\ngemm=0Gflop/s;\n",
        "olympus costs 2, network to ",
        "olympus costs 3, network to \nprocess=0.500us,10.000GB/s\n",
    };
    bool mine = make_folder();
    start_with("measure");
    /* Rank 0 alone reads them, and every start measures for a second: all of them by one process, two by several. */
    size_t n = oly_process_count() > 1 ? 2 : sizeof texts / sizeof *texts;
    for (size_t k = 0; k < n; k++) {
        if (mine)
            write_text(texts[k]);
        double gemm = start_with("measure")->gemm;
        if (gemm < 1.1e9 || (mine && !strstr(kept(), "olympus costs 2, network to \n")) ||
            (mine && !strstr(kept(), "operations=")))
            fail_msg("\"%s\": gemm %g, now \"%s\"", texts[k], gemm, kept());
    }
    remove_folder();
}

static void a_cache_that_cannot_be_written_stops_nobody(void **state)
{
    (void)state;
    bool mine = make_folder();
    if (mine) { /* a file where the folder should be */
        *strrchr(name, '/') = 0;
        write_text("not a folder");
    }
    start_with("measure");
    unsetenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    char kept_home[300];
    snprintf(kept_home, sizeof kept_home, "%s", home ? home : "");
    unsetenv("HOME");
    start_with("measure");
    if (home)
        setenv("HOME", kept_home, 1);
    remove_folder();
}

/* Two processes as if on two hosts: messages between them are the network's, and are measured again with another
 * host. */
static void a_network_is_measured_with_its_host(void **state)
{
    (void)state;
    if (oly_process_count() != 2)
        return;
    bool mine = make_folder();
    oly_rates before = *oly_rates_now();
    oly_nodes_uniform(1);
    assert_int_equal(oly_rates_peer(), 1);
    oly_rates_known known = {.rates = oly_rates_fixed(), .host = "here", .there = OLY_RATES_OF_DEVICE | 3};
    known.rates.measure = true;
    assert_int_equal(oly_rates_settle(&known, "there"), OLY_OK);
    oly_rates first = *oly_rates_now();
    assert_true(first.link[OLY_LEVEL_NETWORK].latency != known.rates.link[OLY_LEVEL_NETWORK].latency);
    assert_true(first.link[OLY_LEVEL_NODE].latency == known.rates.link[OLY_LEVEL_NODE].latency);
    assert_true(!mine || strstr(kept(), "network to there\n"));
    known.there |= 1u << OLY_LEVEL_NETWORK;
    known.rates.link[OLY_LEVEL_NETWORK] = (oly_link){1, 1};
    strcpy(known.network_to, "there"); /* known: not measured again */
    assert_int_equal(oly_rates_settle(&known, "there"), OLY_OK);
    assert_true(oly_rates_now()->link[OLY_LEVEL_NETWORK].latency == 1);
    assert_int_equal(oly_rates_settle(&known, "elsewhere"), OLY_OK);
    assert_true(oly_rates_now()->link[OLY_LEVEL_NETWORK].latency < 0.1);
    assert_true(!mine || strstr(kept(), "network to elsewhere\n"));
    oly_rates_use(&before);
    oly_nodes_uniform(0);
    remove_folder();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_are_read_as_written, start, finish),
        cmocka_unit_test_setup_teardown(wrong_numbers_are_refused_with_their_column, start, finish),
        cmocka_unit_test_setup_teardown(collectives_cost_their_stages, start, finish),
        cmocka_unit_test_setup_teardown(levels_follow_from_axes, start, finish),
        cmocka_unit_test_setup_teardown(a_machine_is_measured_once, start, finish),
        cmocka_unit_test_setup_teardown(unreadable_numbers_are_measured_again, start, finish),
        cmocka_unit_test_setup_teardown(a_cache_that_cannot_be_written_stops_nobody, start, finish),
        cmocka_unit_test_setup_teardown(a_network_is_measured_with_its_host, start, finish),
    };
    return CHECK_MAIN(tests);
}
