/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=8 timeout=60  Starting again and again, where ranks have waited for the last one in oly_finalize and ask it for its calls just when it
 * arrives: what they send must have been received when the communicator is freed. Open MPI may take it for a message of the next one, whose
 * own is lost then, and all wait for ever. */
#include "check.h"
#include <olympus.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { SESSIONS = 25, CALLS = 200 /* as many as are kept make a long message */ };

/* A rank that is not scheduled for a while: it has waited longer than 0.1 s then, and all have arrived meanwhile. */
static void doze(int number)
{
    (void)number;
    nanosleep(&(struct timespec){.tv_nsec = 120000000}, NULL);
}

static void nothing_is_left_for_the_next_session(void **state)
{
    (void)state;
    signal(SIGALRM, doze);
    for (int session = 0; session < SESSIONS; session++) {
        oly_init(NULL, NULL);
        int last = session % oly_process_count();
        oly_array x = oly_device_put(oly_ones(OLY_FLOAT32, 8), oly_named(oly_make_mesh("x=-1"), ""));
        for (int k = 0; k < CALLS; k++)
            x = oly_add(x, 1);
        assert_true(oly_item(oly_sum(x)) == 8 * (1 + CALLS));
        oly_sync("before the end");
        if (oly_process_index() == last)
            usleep(80000);
        else
            setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_usec = 40000}}, NULL);
        assert_int_equal(oly_finalize(), OLY_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_left_for_the_next_session)};
    return CHECK_MAIN(tests);
}
