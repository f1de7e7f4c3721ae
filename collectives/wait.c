/* How a rank waits for others: polls, gives its core away when that takes long, and gives up at the time limit.
 * Called by the files of collectives/. */
#include "world.h"
#include "core/option.h"
#include <sched.h>
#include <time.h>

/* A look at the clock costs about as much as a poll, so it is not taken each time. */
enum { POLLS_PER_LOOK = 64, SPIN_NS = 20000 };

static bool crowded_node;

void oly_wait_set_crowded(bool crowded)
{
    crowded_node = crowded;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool oly_wait_more(oly_wait *w)
{
    if (w->yielding || crowded_node)
        sched_yield();
    if (++w->polls % POLLS_PER_LOOK)
        return true;
    int64_t now = now_ns();
    if (w->began == 0)
        w->began = now;
    w->yielding = now - w->began > SPIN_NS;
    return now - w->began < oly_option.timeout * 1000000000;
}
