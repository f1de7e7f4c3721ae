/* SPDX-License-Identifier: BSD-3-Clause */
/* See check_draws.h. The generator is D. Knuth's MMIX (The Art of Computer Programming, volume 2, 3.3.4). */
#include "check_draws.h"
#include "check.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;

int below(int n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((state >> 33) % (uint64_t)n);
}

void check_draws(int seed)
{
    state = (uint64_t)seed * 7919 + 23;
    for (int k = 0; k < 10; k++) /* seeds next to each other begin alike */
        below(2);
}

int check_draws_wanted(const char *name, int seed, int *count)
{
    const char *wanted = getenv(name);
    if (wanted && sscanf(wanted, "%d:%d", &seed, count) != 2)
        fail_msg("%s=%s is no seed:count", name, wanted);
    return seed;
}
