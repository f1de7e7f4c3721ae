/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=4. The flight recorder keeps the last 1,000 events of a process, in order and whole, while several
 * threads record; calls, exchanges, planning, meetings and failures of a program are among them. */
#include "check.h"
#include <olympus.h>
#include "core/events.h"
#include <pthread.h>
#include <stdatomic.h>

static oly_site here(int line)
{
    return (oly_site){.file = "here.c", .call = "oly_here", .line = line};
}

static int count_recent(void)
{
    oly_event_record e;
    oly_event_cursor c = oly_events_recent();
    int n = 0;
    while (oly_events_next(&c, &e))
        n++;
    return n;
}

static void what_was_recorded_is_read(void **state)
{
    (void)state;
    uint64_t before = oly_events_count();
    oly_event_call(here(1));
    oly_event_at(OLY_EVENT_EXCHANGE, OLY_EVENT_BEGIN, here(2), 1, 2, 3);
    oly_event_text(OLY_EVENT_NOTE, OLY_EVENT_INSTANT,
                   "a text that is longer than the room for it, which keeps the beginning of it and ends it", 5, 6);
    assert_int_equal(oly_events_count(), before + 3);
    oly_event_record e[3] = {0}, next;
    oly_event_cursor c = oly_events_recent();
    while (oly_events_next(&c, &next)) {
        e[0] = e[1];
        e[1] = e[2];
        e[2] = next;
    }
    assert_int_equal(e[0].kind, OLY_EVENT_CALL);
    assert_int_equal(e[0].line, 1);
    assert_string_equal(e[0].call, "oly_here");
    assert_int_equal(e[1].phase, OLY_EVENT_BEGIN);
    assert_int_equal(e[1].c, 3);
    assert_string_equal(e[1].file, "here.c");
    assert_int_equal(e[2].b, 6);
    assert_string_equal(e[2].text, "a text that is longer than the room for it, which keeps the beg");
    assert_true(e[0].ticks <= e[1].ticks && e[1].ticks <= e[2].ticks);
    oly_tick_line line = oly_ticks_line();
    int64_t age = oly_monotonic_ns() - oly_ticks_to_ns(&line, e[2].ticks);
    assert_true(age >= -1000 && age < 2000000000);
}

static void the_last_thousand_are_kept(void **state)
{
    (void)state;
    for (int k = 0; k < 5000; k++) {
        oly_event_call(here(k));
        oly_event_at(OLY_EVENT_MEMORY, OLY_EVENT_INSTANT, here(k), k, 0, 0);
    }
    assert_int_equal(count_recent(), OLY_EVENTS_KEPT);
    oly_event_record e;
    oly_event_cursor c = oly_events_recent();
    for (int k = 5000 - OLY_EVENTS_KEPT / 2; k < 5000; k++)
        for (int two = 0; two < 2; two++) {
            assert_true(oly_events_next(&c, &e));
            assert_int_equal(e.line, k);
            assert_int_equal(e.kind, two ? OLY_EVENT_MEMORY : OLY_EVENT_CALL);
        }
}

static atomic_bool over;

/* Every number of an event is the same. */
static void *record_many(void *thread)
{
    for (int64_t k = (int64_t)(intptr_t)thread << 32; !atomic_load(&over); k++) {
        char text[OLY_EVENT_TEXT];
        memset(text, 'a' + (int)(k % 26), sizeof text - 1);
        text[sizeof text - 1] = 0;
        oly_event_at(OLY_EVENT_EXCHANGE, OLY_EVENT_INSTANT, here((int)k), k, k, k);
        oly_event_text(OLY_EVENT_RANGE, OLY_EVENT_INSTANT, text, k, k);
    }
    return NULL;
}

static void events_are_whole_while_threads_record(void **state)
{
    (void)state;
    pthread_t threads[3];
    for (intptr_t k = 0; k < 3; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, record_many, (void *)(k + 1)), 0);
    int64_t seen = 0;
    /* On a busy machine the threads may begin late: not before enough of their events were read, or half a minute has passed. */
    time_t begin = time(NULL);
    for (int rounds = 0; rounds < 300 || (seen <= 1000 && time(NULL) < begin + 30); rounds++) {
        oly_event_record e;
        oly_event_cursor c = oly_events_recent();
        while (oly_events_next(&c, &e)) {
            if (e.kind == OLY_EVENT_EXCHANGE && e.phase == OLY_EVENT_INSTANT) {
                assert_true(e.a == e.b && e.b == e.c && e.line == (int)e.a);
                seen++;
            } else if (e.kind == OLY_EVENT_RANGE) {
                assert_int_equal(e.a, e.b);
                assert_int_equal(strspn(e.text, (char[]){e.text[0], 0}), OLY_EVENT_TEXT - 1);
                seen++;
            }
        }
    }
    atomic_store(&over, true);
    for (int k = 0; k < 3; k++)
        pthread_join(threads[k], NULL);
    assert_true(seen > 1000);
}

/* Events of a kind and phase since the given number, whose call begins with a name. */
static int count_of(oly_event_kind kind, oly_event_phase phase, const char *call, oly_event_record *last)
{
    oly_event_record e;
    oly_event_cursor c = oly_events_recent();
    int n = 0;
    while (oly_events_next(&c, &e))
        if (e.kind == kind && e.phase == phase && strcmp(e.call, call) == 0) {
            *last = e;
            n++;
        }
    return n;
}

static void a_program_is_recorded(void **state)
{
    (void)state;
    oly_event_record e;
    oly_init(NULL, NULL);
    oly_array x = oly_device_put(oly_arange(64, OLY_FLOAT32), oly_named(oly_make_mesh("x=4"), "x"));
    for (int k = 0; k < 3; k++)
        OLY_SCOPE
        {
            oly_item(oly_sum(x));
        }
    assert_int_equal(count_of(OLY_EVENT_CALL, OLY_EVENT_INSTANT, "oly_sum", &e), 3);
    assert_non_null(strstr(e.file, "test_events.c"));
    assert_int_equal(count_of(OLY_EVENT_PLANNING, OLY_EVENT_BEGIN, "oly_sum", &e), 1);
    assert_int_equal(count_of(OLY_EVENT_PLANNING, OLY_EVENT_FINISH, "oly_sum", &e), 1);
    assert_true(e.a > 0);
    if (oly_process_count() > 1) {
        assert_true(count_of(OLY_EVENT_EXCHANGE, OLY_EVENT_BEGIN, "oly_sum", &e) >= 3);
        assert_int_equal(e.a, 1 - oly_process_index());
        assert_true(e.b > 0);
        assert_true(count_of(OLY_EVENT_EXCHANGE, OLY_EVENT_FINISH, "oly_sum", &e) >= 3);
    }
    oly_sync("events");
    if (oly_process_count() > 1)
        assert_true(count_of(OLY_EVENT_MEETING, OLY_EVENT_FINISH, "oly_sync", &e) >= 1);
    oly_error_mode before = oly_set_error_mode(OLY_ERRORS_RETURN);
    assert_null(oly_reshape(x, 7));
    assert_int_equal(count_of(OLY_EVENT_FAILURE, OLY_EVENT_INSTANT, "oly_reshape", &e), 1);
    assert_int_equal(e.a, oly_last_status());
    oly_clear_error();
    oly_set_error_mode(before);
    assert_int_equal(oly_finalize(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_recorded_is_read),
        cmocka_unit_test(the_last_thousand_are_kept),
        cmocka_unit_test(events_are_whole_while_threads_record),
        cmocka_unit_test(a_program_is_recorded),
    };
    return CHECK_MAIN(tests);
}
