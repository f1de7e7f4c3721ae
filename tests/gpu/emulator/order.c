/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes after what: a clock for each stream counts its pieces of work, and each piece knows how much of every other stream's comes
 * before it, by events and by what the host had waited for when it was submitted. So a missing wait is found in any order in which
 * work happens to be done. See driver.h. */
#include "driver.h"
#include <stdlib.h>
#include <string.h>

emulated_clock emulated_host_clock;
static bool taken[MOST_CLOCKS];
static struct {
    int number; /* -1: none runs */
    const emulated_clock *before;
} running = {.number = -1};

int emulated_clock_take(void)
{
    for (int k = 0; k < MOST_CLOCKS; k++)
        if (!taken[k]) {
            taken[k] = true;
            return k;
        }
    return MOST_CLOCKS - 1; /* shared: what is missing between those is not found */
}

void emulated_clock_give(int number)
{
    taken[number] = false;
}

void emulated_clock_join(emulated_clock *to, const emulated_clock *from)
{
    for (int k = 0; k < MOST_CLOCKS; k++)
        to->of[k] = to->of[k] > from->of[k] ? to->of[k] : from->of[k];
}

void emulated_order_begin(int number, const emulated_clock *before)
{
    running.number = number;
    running.before = before;
}

void emulated_order_end(void)
{
    running.number = -1;
}

static bool checked(void)
{
    static int wanted = -1;
    if (wanted < 0) {
        const char *text = getenv("EMULATED_ORDER");
        wanted = text && strcmp(text, "0") != 0;
    }
    return wanted;
}

/* Are all these uses before the running piece of work? */
static bool ordered(const emulated_clock *uses, const emulated_clock *before)
{
    for (int k = 0; k < MOST_CLOCKS; k++)
        if (k != running.number && uses->of[k] > before->of[k])
            return false;
    return true;
}

void emulated_order_use(emulated_block *b, bool writes)
{
    if (running.number < 0)
        return;
    if (!b->uses && !(b->uses = calloc(1, sizeof *b->uses)))
        return;
    if (checked() &&
        (!ordered(&b->uses->writes, running.before) || (writes && !ordered(&b->uses->reads, running.before))))
        emulated_violation(
            "block %d (%zu bytes on GPU %d) is %s, and nothing orders this with what another stream does with it",
            b->number, b->bytes, b->device, writes ? "written" : "read");
    emulated_clock *to = writes ? &b->uses->writes : &b->uses->reads;
    to->of[running.number] = running.before->of[running.number] + 1;
}

void emulated_order_free(const emulated_block *b)
{
    const emulated_clock *before = running.number < 0 ? &emulated_host_clock : running.before;
    if (b->uses && (!ordered(&b->uses->writes, before) || !ordered(&b->uses->reads, before)))
        emulated_violation(
            "block %d (%zu bytes on GPU %d) is freed while another stream may still use it: no event is waited for",
            b->number, b->bytes, b->device);
}
