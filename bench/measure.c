/* SPDX-License-Identifier: BSD-3-Clause */
/* Timing, printing and input data of the bench. Called by every file of rows. */
#include "bench.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

bench_settings bench_options = {.repeats = 5};

int64_t bench_size(const bench_row *row)
{
    return bench_options.quick ? row->quick_size : row->size;
}

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of the programs that the bench has started, once they have ended. */
static double seconds_of_children(void)
{
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

double bench_now(void)
{
    if (!bench_options.processor_time)
        return seconds_of(CLOCK_MONOTONIC);
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID) + seconds_of_children();
}

void bench_together(void)
{
    if (oly_process_count() == 1 || oly_simulated())
        return;
    static int64_t *numbers;
    int n = oly_device_count();
    if (!numbers && !(numbers = malloc((size_t)n * sizeof *numbers)))
        exit(1);
    OLY_SCOPE
    {
        oly_array one_each = oly_device_put(oly_arange(n, OLY_INT64), oly_named(bench_mesh(), "x"));
        oly_process_allgather(one_each, numbers, (size_t)n * sizeof *numbers);
    }
}

/* The kernel adds the time of other threads that still run at its next tick only, some milliseconds later: samples of processor time
 * are longer. On several ranks, which must agree how often, they are not. */
static int times_of_sample(double once)
{
    const double sample = 50e-3, most = 1000;
    if (!bench_options.processor_time || bench_options.quick || oly_process_count() > 1)
        return 1;
    return (int)fmin(ceil(sample / fmax(once, 1e-9)), most);
}

double bench_best(void (*work)(void *data), void *data)
{
    double best = 1e300;
    int times = 1;
    for (int k = -1; k < bench_options.repeats; k++) {
        bench_together();
        double elapsed_begin = seconds_of(CLOCK_MONOTONIC), begin = bench_now();
        for (int i = 0; i < times; i++)
            work(data);
        bench_together();
        double seconds = (bench_now() - begin) / times;
        if (k < 0)
            times = times_of_sample(seconds_of(CLOCK_MONOTONIC) - elapsed_begin);
        else if (seconds < best)
            best = seconds;
    }
    return best;
}

void bench_report(const char *name, double seconds, double amount, const char *unit)
{
    if (oly_process_index() != 0)
        return;
    printf("%s\t%.9f\t%.3f\t%s\n", name, seconds, amount / seconds * (unit[0] == 'G' ? 1e-9 : 1), unit);
    fflush(stdout);
}

void bench_report_call(const char *name, double seconds)
{
    if (oly_process_index() != 0)
        return;
    printf("%s\t%.9f\t%.3f\tus/call\n", name, seconds, seconds * 1e6);
    fflush(stdout);
}

/* -- arrays ------------------------------------------------------------------------------------------------------- */

oly_mesh bench_mesh(void)
{
    char axes[32];
    snprintf(axes, sizeof axes, "x=%d", oly_device_count());
    return oly_make_mesh(axes);
}

float bench_wave(int64_t i)
{
    return (float)(i % 9973) / 1000.f - 4.f;
}

oly_array bench_array(int rank, const int64_t *shape, const char *spec, float (*value)(int64_t i))
{
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= shape[d];
    float *data = malloc((size_t)n * sizeof *data);
    if (!data)
        exit(1);
    for (int64_t i = 0; i < n; i++)
        data[i] = value(i);
    oly_array whole = oly_from_host(data, OLY_FLOAT32, rank, shape);
    oly_array placed = oly_device_put(whole, oly_named(bench_mesh(), spec));
    oly_block_until_ready(placed);
    oly_free(whole);
    free(data);
    return placed;
}
