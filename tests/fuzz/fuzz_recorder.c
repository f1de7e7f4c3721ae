/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of flight recorders, and timelines: whatever is in them, they are read or refused with a message, and texts that come out have no
 * control characters. The recorder's text is also tried with a right checksum. */
#include "fuzz.h"
#include "core/raw_text.h"
#include "oly.h"
#include "recorder_read.h"
#include "trace_summary.h"
#include "verdict.h"
#include <stdlib.h>
#include <string.h>

#define HEAD "olympus-recorder\t1\njob\tj\nrank\t0\nranks\t2\nhost\th\nprogram\tp\nreason\tpeer\n"
const char *const fuzz_seeds[] = {
    HEAD "pid\t7\nbecause\tx\nclock\t9.000000000\nwritten\t1.000000000\nbegan\t1.000000000\n",
    HEAD "call\t3\toly_sum\ta.c\nmeetings\t4\nwait\t1\t0.000000001\toly_sum for rank 1\nmemory\t1\t2\t3\n",
    HEAD "peer\t1\t9\t-\t0\t0\t-2\t1.000000000\t5\t3\toly_add\ta.c\t\nrecorded\t9\n",
    HEAD "event\t1.000000000\tcall\tat\t0\t1\t5\t0\t3\toly_sum\ta.c\t\nend\t0x0\n",
    "{\"traceEvents\": "
    "[{\"ph\":\"X\",\"cat\":\"step\",\"ts\":1,\"dur\":2,\"name\":\"a\",\"args\":{\"line\":\"a.c:1\"}}]}",
    "[{\"ph\":\"X\",\"cat\":\"compute\",\"tid\":3001,\"pid\":1,\"ts\":1e3,\"dur\":2}]",
    NULL};
const char *const fuzz_words[] = {"\t",
                                  "\n",
                                  "rank\t1\n",
                                  "ranks\t1\n",
                                  "end\t0x",
                                  "event\t",
                                  "peer\t",
                                  "wait\t-1\t",
                                  "1.000000000",
                                  "-2",
                                  "9223372036854775807",
                                  "\xc2\x9b",
                                  "\xe2\x80\xae",
                                  "\x1b",
                                  "signal",
                                  "diverged",
                                  "timeout",
                                  "\tT\t",
                                  "\"ts\":",
                                  "1e308",
                                  "{",
                                  "]",
                                  "\"cat\":\"exchange\"",
                                  NULL};

int tool_fail(const char *format, ...)
{
    (void)format;
    return 1;
}

static bool is_harmless(const char *text)
{
    for (; text && *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    return true;
}

/* True: accepted. */
static bool take(oly_status st)
{
    FUZZ_CHECK(st == OLY_OK || oly_pending_message()[0]);
    oly_drop_message();
    return st == OLY_OK;
}

static bool try_recorder(const char *text, size_t length)
{
    oly_arena arena = {0};
    recorder r[2];
    bool accepted = take(recorder_read(&arena, "fuzz", text, length, &r[0]));
    if (accepted) {
        r[1] = r[0];
        r[1].rank++;
        r[1].written += 1;
        recorded_job job = {2, r, r[0].ranks > 2 ? r[0].ranks : 2};
        verdict v = verdict_of(&job);
        FUZZ_CHECK(v.text.length > 0 && is_harmless(v.text.chars));
        FUZZ_CHECK(is_harmless(r[0].job) && is_harmless(r[0].because) && is_harmless(r[0].call));
        for (int k = 0; k < r[0].n_events; k++)
            FUZZ_CHECK(is_harmless(r[0].events[k].text));
        oly_text_free(&v.text);
    }
    oly_arena_free(&arena);
    return accepted;
}

void fuzz_try(const char *text)
{
    size_t length = strlen(text);
    oly_text sums = {0}, whole = {0};
    bool accepted = try_recorder(text, length);
    oly_text_add(&whole, "%s%send\t0x%x\n", text, length && text[length - 1] != '\n' ? "\n" : "", 0u);
    size_t before = whole.length - strlen("end\t0x0\n");
    uint32_t sum = oly_raw_sum(OLY_RAW_SUM, whole.chars, before);
    whole.length = before;
    oly_text_add(&whole, "end\t0x%x\n", sum);
    accepted = try_recorder(whole.chars, whole.length) || accepted;
    oly_text_free(&whole);
    if (strchr("{[ ", text[0]))
        accepted = take(trace_sum_up_text("fuzz", text, length, &sums)) || accepted;
    oly_text_free(&sums);
    if (!accepted) {
        oly_raise(oly_fail(OLY_PARSE, "refused"));
        fuzz_check_refusal();
    }
}
