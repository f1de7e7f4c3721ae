/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Steps whose values are known, with halos and sums between all ranks: the program that the tests of faults disturb
 * (test_host_faults.sh).
 *
 *     test_steps [SECONDS [PAUSE_RANK PAUSE_SECONDS]]
 *
 * Runs at least SECONDS (0: 50 steps) on every rank alike and prints on rank 0 "step N" about twice a second, at the end "N steps,
 * all right". A value that is not right ends the job with status 3 on the spot. PAUSE_RANK computes nothing for PAUSE_SECONDS in the
 * middle. */
#include <olympus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 1 << 14, PRIME = 8191, LEAST = 50 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* x[i] + x[i - 1] modulo a prime, and its sum (below 2^27): the sum modulo the prime doubles. */
static void step(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mod(oly_add(in[0], oly_roll(in[0], 1, 0)), PRIME);
    out[1] = oly_sum(out[0]);
}

static void pause_for(int seconds)
{
    struct timespec t = {.tv_sec = seconds};
    nanosleep(&t, NULL);
}

/* Process 0 decides for all: their clocks differ. */
static bool goes_on(bool mine)
{
    int32_t more = mine;
    return oly_item(oly_broadcast_one_to_all(oly_from_host(&more, OLY_INT32, OLY_EXTENTS(1)))) != 0;
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    double limit = argc > 1 ? atof(argv[1]) : 0, begin = now(), shown = begin;
    int pausing = argc > 3 ? atoi(argv[2]) : -1, seconds = argc > 3 ? atoi(argv[3]) : 0, steps = 0;
    char mesh[32];
    snprintf(mesh, sizeof mesh, "i=%d", oly_device_count());
    oly_fn f = oly_jit(step, 1, 2);
    oly_array x = oly_device_put(oly_mod(oly_arange(N, OLY_INT32), PRIME), oly_named(oly_make_mesh(mesh), "i"));
    int64_t expected = (int64_t)oly_item(oly_sum(x)) % PRIME;
    for (bool more = true; more; steps++) {
        OLY_SCOPE
        {
            oly_array next = NULL, sum = NULL;
            oly_call(f, OLY_IN(x), OLY_OUT(next, sum));
            oly_assign(&x, next);
            expected = 2 * expected % PRIME;
            if ((int64_t)oly_item(sum) % PRIME != expected) {
                fprintf(stderr, "step %d: the sum is wrong\n", steps);
                exit(3);
            }
            if (steps == LEAST / 2 && oly_process_index() == pausing)
                pause_for(seconds);
            if (steps % LEAST == LEAST - 1)
                more = goes_on(now() - begin < limit);
        }
        if (oly_process_index() == 0 && now() - shown > 0.5) {
            printf("step %d\n", steps);
            fflush(stdout);
            shown = now();
        }
    }
    if (oly_process_index() == 0)
        printf("%d steps, all right\nCHECK: 1 passed, 0 failed, 0 skipped\n", steps);
    return oly_finalize();
}
