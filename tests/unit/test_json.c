/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1
 * The reader of JSON: what it accepts, with which values, what it refuses, with the line, and running out of memory. */
#include "check.h"
#include "file/json.h"
#include <string.h>

static oly_status parse(oly_arena *a, const char *text, const oly_json **v)
{
    oly_drop_message();
    return oly_json_read(a, "x.json", text, strlen(text), v);
}

static void values_are_read(void **state)
{
    (void)state;
    oly_arena a = {0};
    const oly_json *v;
    assert_int_equal(parse(&a,
                           " {\"a\": [1, -2.5e1, true, false, null], \"b\": {\"c\": \"x\\n\\u00e9\\ud83d\\ude00\"},\n"
                           "\"big\": 9223372036854775807, \"huge\": 1e999, \"over\": 9223372036854775808} ",
                           &v),
                     OLY_OK);
    assert_int_equal(v->kind, OLY_JSON_OBJECT);
    assert_int_equal(v->count, 5);
    const oly_json *list = oly_json_get(v, "a");
    assert_int_equal(list->count, 5);
    assert_int_equal(list->first->integer, 1);
    assert_true(list->first->whole);
    assert_true(list->first->next->number == -25 && !list->first->next->whole);
    assert_int_equal(list->first->next->next->kind, OLY_JSON_TRUE);
    assert_string_equal(oly_json_text(oly_json_get(v, "b"), "c", ""), "x\n\xc3\xa9\xf0\x9f\x98\x80");
    assert_true(oly_json_integer(v, "big", 0) == INT64_MAX);
    assert_int_equal(oly_json_integer(v, "over", -7), -7);
    assert_true(oly_json_number(v, "over", 0) > 9.2e18);
    assert_null(oly_json_get(v, "none"));
    assert_null(oly_json_get(list, "a"));
    assert_string_equal(oly_json_text(v, "a", "other"), "other");
    oly_arena_free(&a);
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "  ",
                                      "{",
                                      "[1,]",
                                      "{\"a\":1,}",
                                      "{\"a\" 1}",
                                      "{a:1}",
                                      "[1 2]",
                                      "01",
                                      "-",
                                      "1.",
                                      ".5",
                                      "1e",
                                      "+1",
                                      "nul",
                                      "tru",
                                      "\"a",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\\ud800\"",
                                      "\"\\ud800\\u0041\"",
                                      "\"\t\"",
                                      "\"\xff\"",
                                      "\"\xc0\x80\"",
                                      "\"\xed\xa0\x80\"",
                                      "\"\xf4\x90\x80\x80\"",
                                      "\"\xe2\x82",
                                      "{\"a\":1,\"a\":2}",
                                      "1 2",
                                      "[1]]",
                                      "{\"a\\u0000\":1}",
                                      "NaN",
                                      "Infinity",
                                      "'a'",
                                      "// x",
                                      "\xef\xbb\xbf[]"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        oly_arena a = {0};
        const oly_json *v;
        if (parse(&a, bad[k], &v) != OLY_PARSE)
            fail_msg("accepted: %s", bad[k]);
        assert_non_null(strstr(oly_pending_message(), "x.json:1: not JSON"));
        oly_arena_free(&a);
    }
    oly_arena a = {0};
    const oly_json *v;
    assert_int_equal(parse(&a, "[1,\n2,\n?]", &v), OLY_PARSE);
    assert_non_null(strstr(oly_pending_message(), "x.json:3:"));
    oly_drop_message();
    oly_arena_free(&a);
}

static void depth_is_bounded(void **state)
{
    (void)state;
    char deep[2 * 100000 + 1];
    for (int n = OLY_JSON_DEEPEST; n <= 100000; n += 100000 - OLY_JSON_DEEPEST) {
        oly_arena a = {0};
        const oly_json *v;
        memset(deep, '[', (size_t)n);
        memset(deep + n, ']', (size_t)n);
        deep[2 * n] = 0;
        assert_int_equal(parse(&a, deep, &v), n == OLY_JSON_DEEPEST ? OLY_OK : OLY_PARSE);
        oly_drop_message();
        oly_arena_free(&a);
    }
}

static void several_values_are_read_one_by_one(void **state)
{
    (void)state;
    static const char text[] = "{\"a\": 1}\n{\"a\": 2}\n";
    oly_arena a = {0};
    const oly_json *v;
    size_t at = 0;
    for (int k = 1; k <= 2; k++) {
        assert_int_equal(oly_json_next(&a, "x", text, sizeof text - 1, &at, &v), OLY_OK);
        assert_int_equal(oly_json_integer(v, "a", 0), k);
    }
    assert_int_equal(oly_json_next(&a, "x", text, sizeof text - 1, &at, &v), OLY_OK);
    assert_null(v);
    oly_arena_free(&a);
}

static void memory_may_run_out(void **state)
{
    (void)state;
    oly_status st = OLY_MEMORY;
    for (long n = 0; st != OLY_OK && n < 100; n++) {
        oly_arena a = {0};
        const oly_json *v;
        oly_drop_message();
        oly_fail_allocation(n);
        st = oly_json_read(&a, "x", "[\"a\", {\"b\": [1]}]", 17, &v);
        oly_fail_allocation(-1);
        assert_true(st == OLY_OK || st == OLY_MEMORY);
        oly_arena_free(&a);
    }
    oly_drop_message();
    assert_int_equal(st, OLY_OK);
    oly_arena_trim();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read),    cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(depth_is_bounded),   cmocka_unit_test(several_values_are_read_one_by_one),
        cmocka_unit_test(memory_may_run_out),
    };
    return CHECK_MAIN(tests);
}
