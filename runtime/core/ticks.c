/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock of events: which one, and its rate. See ticks.h. */
#include "core/ticks.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

bool oly_ticks_count;

static struct {
    int64_t ticks, ns; /* when the program was loaded */
} first;

static bool counter_is_constant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1; /* invariant TSC */
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

static void __attribute__((constructor)) begin(void)
{
    oly_ticks_count = counter_is_constant();
    first.ns = oly_monotonic_ns();
    first.ticks = oly_ticks();
}

oly_tick_line oly_ticks_line(void)
{
    int64_t ns = oly_monotonic_ns() - first.ns, ticks = oly_ticks() - first.ticks;
    double rate = oly_ticks_count && ns > 0 && ticks > 0 ? (double)ns / (double)ticks : 1;
    return (oly_tick_line){.ticks = first.ticks, .ns = first.ns, .ns_per_tick = rate};
}
