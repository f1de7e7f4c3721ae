/* SPDX-License-Identifier: BSD-3-Clause */
/* Where does the time go? Run it with OLYMPUS_TIMELINE=timeline.json and open the file at ui.perfetto.dev: the ranges below, every step
 * of every device, messages between ranks, waits (docs/timeline.md). OLYMPUS_MEASURE=1 alone prints at the end what steps took beside
 * what the planner predicted.
 *
 *      launch/olyrun -n 2 -d 4 build/examples/timeline [ROUNDS] */
#include <olympus.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 512 };

/* One round of power iteration: w = a v, normalised; the largest eigenvalue of a is the length of w. */
static void iterate(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array w = oly_matmul(in[0], in[1]);
    out[1] = oly_sqrt(oly_sum(oly_mul(w, w)));
    out[0] = oly_div(w, out[1]);
}

/* 2 on the diagonal, -1 beside it: eigenvalues from 0 to 4. */
static oly_array chain(oly_sharding by_rows)
{
    oly_array row = oly_reshape(oly_arange(N, OLY_INT32), N, 1), column = oly_arange(N, OLY_INT32);
    oly_array distance = oly_abs(oly_sub(row, column));
    oly_array a = oly_where(oly_eq(distance, 0), 2.0, oly_where(oly_eq(distance, 1), -1.0, 0.0));
    return oly_device_put(oly_astype(a, OLY_FLOAT32), by_rows);
}

/* A whole number from 0 to the largest; else -1. */
static long number(const char *text, long largest)
{
    char *end;
    long n = strtol(text, &end, 10);
    return end == text || *end || n < 0 || n > largest ? -1 : n;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? (int)number(argv[1], INT_MAX) : 200;
    if (rounds < 1) {
        fprintf(stderr, "usage: timeline [ROUNDS]     (default 200)\n");
        return 2;
    }
    oly_init(&argc, &argv);
    oly_mesh mesh = oly_make_mesh("rows=8");
    oly_fn round = oly_jit(iterate, 2, 2);
    oly_array a = NULL, v = NULL, length = NULL;

    OLY_RANGE("setting up") /* a block with a name */
    {
        a = chain(oly_named(mesh, "rows"));
        v = oly_device_put(oly_random_normal(oly_random_key(1), OLY_FLOAT32, N), oly_named(mesh, "rows"));
    }

    for (int k = 0; k < rounds; k++) {
        char name[32];
        snprintf(name, sizeof name, "round %d", k);
        if (k % 50 == 0)
            oly_range_push(name); /* the same by hand: fifty rounds each */
        oly_call(round, OLY_IN(a, v), OLY_OUT(v, length));
        if (k % 50 == 49 || k == rounds - 1) {
            oly_block_until_ready(length); /* calls are queued: without this, the range would not include their work */
            oly_range_pop();
        }
        oly_progress("power iteration", k + 1, rounds); /* a line on a terminal, if it takes more than two seconds */
    }
    if (oly_process_index() == 0)
        printf("largest eigenvalue about %.2f\n", oly_item(length));
    if (oly_process_index() == 0 && getenv("OLYMPUS_MEASURE"))
        oly_explain(stdout, round, a, v);
    return oly_finalize();
}
