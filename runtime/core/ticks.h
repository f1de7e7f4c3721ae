/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock of events: the processor's counter where it runs at a constant rate on all cores (a read takes 8 ns), else
 * CLOCK_MONOTONIC (25 ns and more). Callable from every layer, and from signal handlers. */
#ifndef OLY_CORE_TICKS_H
#define OLY_CORE_TICKS_H
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

extern bool oly_ticks_count; /* is the counter used? Decided when the program is loaded */
/* The line from ticks to nanoseconds of CLOCK_MONOTONIC, through the first moment and this one. It is better the more time has
 * passed since the start, so ticks are kept as they are and converted when they are read, many with one line. */
typedef struct oly_tick_line {
    int64_t ticks, ns; /* at the start */
    double ns_per_tick;
} oly_tick_line;
oly_tick_line oly_ticks_line(void);
static inline int64_t oly_ticks_to_ns(const oly_tick_line *line, int64_t ticks)
{
    return line->ns + (int64_t)((double)(ticks - line->ticks) * line->ns_per_tick);
}

static inline int64_t oly_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t oly_ticks(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(oly_ticks_count, 1))
        return (int64_t)__builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    if (__builtin_expect(oly_ticks_count, 1)) {
        uint64_t count;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
        return (int64_t)count;
    }
#endif
    return oly_monotonic_ns();
}
#endif
