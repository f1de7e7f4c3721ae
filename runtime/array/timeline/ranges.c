/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges of the program, and its progress lines. See include/olympus/timeline.h. */
#include <olympus/timeline.h>
#include "core/events.h"
#include "core/progress_line.h"
#include <string.h>

enum { NAMED = 32 }; /* open ranges whose names are known at their ends; deeper ones end as "range" */

static _Thread_local struct {
    int open;
    char name[NAMED][OLY_EVENT_TEXT];
} ranges;

static const char *name_of(int depth)
{
    return depth < NAMED ? ranges.name[depth] : "range";
}

void(oly_range_push)(const char *name)
{
    OLY_ENTER_ANY_TIME();
    name = name ? name : "range";
    if (ranges.open < NAMED) {
        size_t n = strnlen(name, OLY_EVENT_TEXT - 1);
        memcpy(ranges.name[ranges.open], name, n);
        ranges.name[ranges.open][n] = 0;
    }
    ranges.open++;
    oly_event_text(OLY_EVENT_RANGE, OLY_EVENT_BEGIN, name, 0, 0);
}

void(oly_range_pop)(void)
{
    OLY_ENTER_ANY_TIME();
    if (ranges.open == 0)
        return;
    ranges.open--;
    oly_event_text(OLY_EVENT_RANGE, OLY_EVENT_FINISH, name_of(ranges.open), 0, 0);
}

void(oly_progress_with)(const char *what, int64_t done, int64_t total, oly_progress_options options)
{
    OLY_ENTER_ANY_TIME();
    oly_progress_say(what, done, total, options.note);
}
