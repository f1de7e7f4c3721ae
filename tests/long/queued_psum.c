/* SPDX-License-Identifier: BSD-3-Clause */
/* A million queued reductions on 64 devices: y = y * 0.5 + sum(y) * 1e-3 and a step, called again and again without waiting.
 * Completes in the memory it started with, on one core too. Not part of `make test`.
 *
 * Run:    make long && taskset -c 0 build/tests/long/queued_psum [CALLS [DEVICES]]     (default 1,000,000 and 64)
 * Prints: progress on standard error; at the end the value, its distance from the fixed point, and the time and memory used.
 *         Exit status 1 when the value is wrong or memory grew by more than 64 MiB after the first hundredth. */
#include <olympus.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { EACH = 4 };

static const double start_value = 3, step = 0.25;

/* The sum has weight 1e-3 for 256 elements, so the value tends to step / (0.5 - 0.256). */
static void next(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_add(oly_mul(in[0], 0.5), oly_mul(oly_sum(in[0]), 1e-3)), step);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Peak memory, in MiB. */
static double memory(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static void progress(long done, long calls, double begin)
{
    double time = seconds() - begin;
    fprintf(stderr, "queued_psum: %9ld of %ld calls, %.1f s, %.2f us each, %.0f MiB\n", done, calls, time,
            time / (double)done * 1e6, memory());
}

int main(int argc, char **argv)
{
    long calls = argc > 1 ? atol(argv[1]) : 1000000, devices = argc > 2 ? atol(argv[2]) : 64;
    if (calls < 100 || devices < 1 || devices * EACH >= 500) {
        fprintf(stderr, "usage: queued_psum [CALLS [DEVICES]]    (from 100 calls on, up to 124 devices)\n");
        return 2;
    }
    char text[32];
    snprintf(text, sizeof text, "%ld", devices);
    setenv("OLYMPUS_NUM_CPU_DEVICES", text, 1);
    oly_init(NULL, NULL);
    snprintf(text, sizeof text, "x=%ld", devices);
    oly_array y =
        oly_device_put(oly_full(start_value, OLY_FLOAT32, devices * EACH), oly_named(oly_make_mesh(text), "x"));
    oly_fn f = oly_jit(next, 1, 1);

    double begin = seconds(), early = 0;
    for (long k = 1; k <= calls; k++) {
        oly_call(f, OLY_IN(y), OLY_OUT(y));
        if (k == calls / 100)
            early = memory();
        if (k % (calls / 20 > 0 ? calls / 20 : 1) == 0)
            progress(k, calls, begin);
    }
    double value = oly_item(oly_max(y)), least = oly_item(oly_min(y)), time = seconds() - begin;
    double limit = step / (0.5 - 1e-3 * (double)(devices * EACH)), off = fabs(value - limit) / limit;
    printf("%ld calls on %ld devices: %.7g, off by %.1e, %.2f us each, %.0f MiB more than early on\n", calls, devices,
           value, off, time / (double)calls * 1e6, memory() - early);
    bool good = off < 1e-5 && value == least && memory() - early < 64;
    return oly_finalize() != 0 || !good;
}
