/* SPDX-License-Identifier: BSD-3-Clause */
/* Records what this process is doing. See progress.h. Cheap: a call from the same line as the last takes three comparisons. */
#include "core/progress.h"
#include "core/ticks.h"
#include <stdio.h>
#include <string.h>

static oly_progress own = {.waits_for = OLY_WAITS_FOR_NOBODY};
oly_progress *oly_progress_here = &own;
bool oly_progress_is_read;

static atomic_flag noting = ATOMIC_FLAG_INIT;

void oly_progress_use(oly_progress *place)
{
    if (!place)
        place = &own;
    if (place == oly_progress_here)
        return;
    while (atomic_flag_test_and_set(&noting))
        ;
    memcpy(place, oly_progress_here, sizeof *place);
    oly_progress_here = place;
    oly_progress_is_read = place != &own;
    atomic_flag_clear(&noting);
}

/* The end of a text, as much as fits: the file's name rather than its folders. */
static void copy_end(char *to, size_t size, const char *text)
{
    size_t length = strlen(text), from = length < size ? 0 : length - size + 1;
    memcpy(to, text + from, length - from + 1);
}

void oly_progress_note(const oly_site *site)
{
    static _Thread_local oly_site last;
    if (site->call == last.call && site->line == last.line && site->file == last.file)
        return;
    if (!oly_progress_is_read || atomic_flag_test_and_set(&noting))
        return; /* two threads at once: either call is the last */
    last = *site;
    oly_progress *p = oly_progress_here;
    copy_end(p->call, sizeof p->call, site->call);
    copy_end(p->file, sizeof p->file, site->file);
    atomic_store_explicit(&p->line, site->line, memory_order_relaxed);
    atomic_flag_clear(&noting);
}

void oly_progress_wait(int rank, const char *call, const char *whom)
{
    oly_progress *p = oly_progress_here;
    if (atomic_load(&p->waits_for) == OLY_WAITS_FOR_NOBODY)
        atomic_store(&p->since, oly_monotonic_ns());
    snprintf(p->wait, sizeof p->wait, whom[0] ? "%s for %s" : "%s", call, whom);
    atomic_store(&p->waits_for, rank);
}

void oly_progress_go_on(void)
{
    atomic_store(&oly_progress_here->waits_for, OLY_WAITS_FOR_NOBODY);
}
