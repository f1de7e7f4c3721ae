/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=4. The timeline in memory: spans in order, its limit, iterations that are shown, measured steps in
 * explanations, ranges. With an argument it is a program that test_timeline.sh runs: it ends in the way the argument names. */
#include "check.h"
#include <olympus.h>
#include "communicator.h"
#include "core/events.h"
#include "core/option.h"
#include "core/timeline.h"
#include <signal.h>
#include <unistd.h>

static void spans_are_kept_up_to_the_limit(void **state)
{
    (void)state;
    enum { SPANS = 8000 };
    assert_int_equal(oly_timeline_begin(OLY_TIMELINE_SPANS, 64 * 1024 + 200 * 1024), OLY_OK);
    for (int k = 0; k < SPANS; k++)
        oly_timeline_add((oly_span){.begin = k, .end = k + 1, .kind = OLY_EVENT_STEP, .a = k});
    int64_t at = 0, n = 0;
    for (const oly_span *s; (s = oly_timeline_next(0, &at)); n++)
        assert_int_equal(s->a, n);
    assert_true(n > 1000 && n < SPANS);
    assert_int_equal(n + oly_timeline_dropped(), SPANS);
    oly_timeline_end();
    oly_timeline_add((oly_span){.kind = OLY_EVENT_STEP}); /* off: nothing happens */
    assert_int_equal(oly_timeline_threads(), 0);
}

static void allocations_may_fail(void **state)
{
    (void)state;
    for (int n = 0; n < 6; n++) {
        assert_int_equal(oly_timeline_begin(OLY_TIMELINE_SPANS, 1 << 20), OLY_OK);
        oly_fail_allocation(n);
        for (int k = 0; k < 3; k++) {
            char name[8];
            snprintf(name, sizeof name, "n%d", k);
            oly_timeline_add((oly_span){.kind = OLY_EVENT_STEP, .label = oly_label_of_text(name)});
        }
        oly_fail_allocation(-1);
        oly_timeline_end();
    }
}

static void equal_labels_are_one(void **state)
{
    (void)state;
    assert_int_equal(oly_timeline_begin(OLY_TIMELINE_STEPS, 1 << 20), OLY_OK);
    oly_label_texts t = {.name = "sum", .detail = "float32[4]", .site = {"a.c", "oly_sum", 3}, .plan = 7, .step = 1};
    int a = oly_label_of(&t), b = oly_label_of(&t);
    t.step = 2;
    int c = oly_label_of(&t);
    assert_true(a > 0 && a == b && c != a);
    assert_string_equal(oly_label_get(c)->detail, "float32[4]");
    oly_label_ran(a, 10);
    oly_label_ran(a, 30);
    assert_int_equal(oly_label_measured(a).runs, 2);
    assert_true(oly_label_measured(a).most >= oly_label_measured(a).mean);
    assert_int_equal(oly_label_measured(c).runs, 0);
    assert_int_equal(oly_label_of_site(t.site), oly_label_of_site(t.site));
    oly_timeline_end();
}

static void iterations_are_shown_ever_less_often(void **state)
{
    (void)state;
    int64_t shown = 0;
    for (int64_t i = 0; i < 1 << 20; i++)
        shown += oly_timeline_shows_iteration(i);
    assert_int_equal(shown, 128 + 64 * (20 - 7));
    for (int64_t i = 0; i < 128; i++)
        assert_true(oly_timeline_shows_iteration(i));
}

/* As many of each doubling as half of the first. */
static void runs_are_shown_ever_less_often(void **state)
{
    (void)state;
    for (int log = 1; log <= 7; log++) {
        int64_t next = 0, shown = 0;
        for (int64_t i = 0; i < 1 << 16; i++) {
            bool is = i < 1 << log;
            if (!is) {
                int64_t doubling = (int64_t)1 << log;
                while (doubling * 2 <= i)
                    doubling *= 2;
                is = i % (doubling * 2 >> log) == 0;
            }
            assert_int_equal(is, i == next);
            next = is ? oly_timeline_next_run(i, log) : next;
            shown += is;
        }
        assert_int_equal(shown, (1 << log) + (1 << (log - 1)) * (16 - log));
    }
}

static void body(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    carry[0] = oly_add(oly_mul(carry[0], 0.5), oly_mul(oly_sum(carry[0]), 1e-3));
}

static void many(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, (int64_t)(intptr_t)user, body, 1, out, NULL);
}

static oly_array some(void)
{
    return oly_device_put(oly_arange(64, OLY_FLOAT32), oly_named(oly_make_mesh("x=4"), "x"));
}

static void explanations_show_what_steps_took(void **state)
{
    (void)state;
    char text[20000];
    setenv("OLYMPUS_MEASURE", "1", 1);
    oly_init(NULL, NULL);
    unsetenv("OLYMPUS_MEASURE");
    oly_fn f = oly_jit(many, 1, 1, .user = (void *)300);
    oly_array x = some();
    FILE *file = fmemopen(text, sizeof text, "w");
    oly_explain(file, f, x);
    fclose(file);
    assert_null(strstr(text, "measured"));
    oly_block_until_ready(oly_apply(f, x));
    oly_block_until_ready(oly_apply(f, x));
    file = fmemopen(text, sizeof text, "w");
    oly_explain(file, f, x);
    fclose(file);
    assert_non_null(strstr(text, "(2 times, at most"));
    file = fmemopen(text, sizeof text, "w");
    oly_explain_as(file, OLY_EXPLAIN_JSON, f, x);
    fclose(file);
    assert_non_null(strstr(text, "\"measured\": {\"runs\": 2"));
    assert_int_equal(oly_timeline_threads() <= 8, 1);
    assert_int_equal(oly_finalize(), 0);
    assert_int_equal(oly_timeline_mode, OLY_TIMELINE_OFF);
}

static int ranges_open(const char *name)
{
    oly_event_record e;
    oly_event_cursor c = oly_events_recent();
    int n = 0;
    while (oly_events_next(&c, &e))
        if (e.kind == OLY_EVENT_RANGE && strcmp(e.text, name) == 0)
            n += e.phase == OLY_EVENT_BEGIN ? 1 : -1;
    return n;
}

static int leaves_early(void)
{
    OLY_RANGE("early")
    {
        assert_int_equal(ranges_open("early"), 1);
        return 1;
    }
    return 0;
}

static void ranges_close_however_their_blocks_end(void **state)
{
    (void)state;
    assert_int_equal(leaves_early(), 1);
    OLY_RANGE("broken")
    {
        break;
    }
    oly_error_mode before = oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_init(NULL, NULL);
    OLY_RANGE("failing")
    {
        assert_null(oly_reshape(some(), 7));
    }
    assert_int_equal(oly_last_status(), OLY_SHAPE);
    oly_clear_error();
    assert_int_equal(oly_finalize(), 0);
    oly_set_error_mode(before);
    oly_range_pop(); /* without a push */
    (oly_range_push)(NULL);
    oly_range_pop();
    assert_int_equal(ranges_open("early"), 0);
    assert_int_equal(ranges_open("broken"), 0);
    assert_int_equal(ranges_open("failing"), 0);
    assert_int_equal(ranges_open("range"), 0);
}

/* -- the program of test_timeline.sh ------------------------------------------------------------------------------------------ */

/* Three seconds in 300 rounds. */
static int count_slowly(void)
{
    oly_init(NULL, NULL);
    for (int k = 0; k < 300; k++) {
        usleep(10000);
        oly_progress("counting", k + 1, 300, .note = "a note that is much longer than what the terminal has room for");
    }
    return oly_finalize();
}

static void halve(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    body(NULL, out, user);
}

/* 2,000 runs of a plan of a few microseconds. */
static int call_often(void)
{
    oly_init(NULL, NULL);
    oly_fn f = oly_jit(halve, 1, 1);
    oly_array x = some();
    for (int k = 0; k < 2000; k++)
        oly_call(f, OLY_IN(x), OLY_OUT(x));
    oly_block_until_ready(x);
    return oly_finalize();
}

static int end_as(const char *how)
{
    if (strcmp(how, "short") == 0)
        return call_often();
    if (strcmp(how, "progress") == 0)
        return count_slowly();
    if (strcmp(how, "late") == 0) /* every rank but the first pretends that its clock is 3 s ahead */
        oly_clock_pretends = getenv("OMPI_COMM_WORLD_RANK") && atoi(getenv("OMPI_COMM_WORLD_RANK")) ? 3000000000 : 0;
    oly_init(NULL, NULL);
    oly_fn f = oly_jit(many, 1, 1, .user = (void *)(intptr_t)(strcmp(how, "long") == 0 ? 100000 : 20));
    oly_array x = some();
    OLY_RANGE("work")
    {
        for (int k = 0; k < 5; k++)
            oly_call(f, OLY_IN(x), OLY_OUT(x));
        oly_block_until_ready(x);
        if (strcmp(how, "abort") == 0 && oly_process_index() == oly_process_count() - 1)
            oly_reshape(x, 7);
        if (strcmp(how, "crash") == 0)
            raise(SIGSEGV);
        if (strcmp(how, "exit") == 0)
            exit(3);
        if (strcmp(how, "diverge") == 0 && oly_process_index() == 1)
            oly_sum(x);
        if (strcmp(how, "abort") == 0)
            oly_sync("waiting for the one that fails");
    }
    return oly_finalize();
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return end_as(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_kept_up_to_the_limit),
        cmocka_unit_test(allocations_may_fail),
        cmocka_unit_test(equal_labels_are_one),
        cmocka_unit_test(iterations_are_shown_ever_less_often),
        cmocka_unit_test(runs_are_shown_ever_less_often),
        cmocka_unit_test(explanations_show_what_steps_took),
        cmocka_unit_test(ranges_close_however_their_blocks_end),
    };
    return CHECK_MAIN(tests);
}
