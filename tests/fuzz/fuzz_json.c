/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON texts: oly_json_read. An accepted text is read the same way when it is read value by value; a refused one has a message. */
#include "fuzz.h"
#include "file/json.h"
#include <string.h>

const char *const fuzz_seeds[] = {"{\"a\": [1, 2.5, -3e4], \"b\": {\"c\": \"text\"}, \"d\": null}",
                                  "[true, false, null, \"\\u00e9\\ud83d\\ude00\\n\"]",
                                  "{\"traceEvents\": [{\"ph\": \"X\", \"ts\": 1.5, \"dur\": 2, \"pid\": 0}]}",
                                  "[[[[[]]]]]",
                                  "0",
                                  "\"\"",
                                  NULL};
const char *const fuzz_words[] = {"{",        "}",       "[",       "]",    ",",    ":",  "\"",    "\\",
                                  "\\u",      "\\ud800", "\\udc00", "true", "null", "1e", "-0.5e", "\xc3\xa9",
                                  "\xf0\x9f", "\x01",    "[[[[",    "]]",   " ",    NULL};

static int count(const oly_json *v)
{
    int n = 1;
    for (const oly_json *m = v->first; m; m = m->next)
        n += count(m);
    return n;
}

void fuzz_try(const char *text)
{
    oly_arena a = {0};
    const oly_json *v, *again;
    size_t at = 0;
    oly_status st = oly_json_read(&a, "fuzz", text, strlen(text), &v);
    if (st != OLY_OK) {
        FUZZ_CHECK(!v && oly_pending_message()[0]);
        oly_raise(st);
        fuzz_check_refusal();
    } else {
        FUZZ_CHECK(oly_json_next(&a, "fuzz", text, strlen(text), &at, &again) == OLY_OK);
        FUZZ_CHECK(count(v) == count(again));
        FUZZ_CHECK(a.used <= 400 * strlen(text) + 400);
    }
    oly_arena_free(&a);
}
