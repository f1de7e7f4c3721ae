/* SPDX-License-Identifier: BSD-3-Clause */
/* The heat equation in a block, on a mesh of three axes.
 *
 * A step takes each inner cell to 0.4 of itself plus a tenth of each of its six neighbours; the faces keep their temperature.
 * The block starts with a hot face and a hot ball; each device generates its own part.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/heat3d [--size N] [--steps S] [--explain]     (any ranks x devices)
 * Prints: from process 0, the sum of the temperatures, those along the middle line, and the largest difference from a plain loop on
 *         one core; with --explain also what is computed and moved. */
#include <olympus.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 8 };

typedef struct settings {
    long size; /* cells along an edge */
    int steps; /* time steps */
    bool explain;
} settings;

static oly_array along(int dimension, int64_t n)
{
    int64_t shape[3] = {1, 1, 1};
    shape[dimension] = n;
    return oly_reshape(oly_arange(n, OLY_INT32), shape[0], shape[1], shape[2]);
}

/* 1 where the block is hot at the start, 0 elsewhere. */
static void block(const oly_array *in, oly_array *out, void *user)
{
    (void)in;
    int64_t n = ((const settings *)user)->size;
    oly_array distance = NULL;
    for (int d = 0; d < 3; d++) {
        oly_array aside = oly_sub(along(d, n), n / 3);
        oly_array square = oly_mul(aside, aside);
        distance = distance ? oly_add(distance, square) : square;
    }
    oly_array hot = oly_logical_or(oly_lt(distance, n * n / 36), oly_eq(along(0, n), 0));
    out[0] = oly_where(hot, oly_ones(OLY_FLOAT32, n, n, n), 0);
}

static void body(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    oly_array u = carry[0], mid = oly_slice(u, "1:-1, 1:-1, 1:-1");
    oly_array sum = oly_add(oly_slice(u, ":-2, 1:-1, 1:-1"), oly_slice(u, "2:, 1:-1, 1:-1"));
    sum = oly_add(oly_add(sum, oly_slice(u, "1:-1, :-2, 1:-1")), oly_slice(u, "1:-1, 2:, 1:-1"));
    sum = oly_add(oly_add(sum, oly_slice(u, "1:-1, 1:-1, :-2")), oly_slice(u, "1:-1, 1:-1, 2:"));
    carry[0] = oly_update(u, "1:-1, 1:-1, 1:-1", oly_add(oly_mul(0.4, mid), oly_mul(0.1, sum)));
}

static void advance(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, ((const settings *)user)->steps, body, 1, out, NULL);
}

/* The same without any library, on one core. */
static void plain(float *u, float *next, long n, int steps)
{
    memcpy(next, u, (size_t)(n * n * n) * sizeof *u);
    for (int s = 0; s < steps; s++) {
        for (long i = 1; i < n - 1; i++)
            for (long j = 1; j < n - 1; j++)
                for (long k = 1; k < n - 1; k++) {
                    const float *at = &u[(i * n + j) * n + k];
                    next[(i * n + j) * n + k] =
                        0.4f * at[0] + 0.1f * (at[-n * n] + at[n * n] + at[-n] + at[n] + at[-1] + at[1]);
                }
        memcpy(u, next, (size_t)(n * n * n) * sizeof *u);
    }
}

/* All processes take part; the plain loop runs on process 0. `start` is the block before the first step. */
static void report(oly_array u, float *start, const settings *s)
{
    long n = s->size, count = n * n * n;
    size_t bytes = (size_t)count * sizeof(float);
    float *got = malloc(bytes), *next = malloc(bytes);
    if (!got || !next)
        exit(1);
    double sum = oly_item(oly_sum(oly_astype(u, OLY_FLOAT64))), largest = 0;
    oly_process_allgather(u, got, bytes);
    if (oly_process_index() == 0) {
        printf("3-D heat equation, %ld x %ld x %ld cells, %d steps: sum %.2f\nsamples", n, n, n, s->steps, sum);
        for (long k = 0; k < SAMPLES; k++)
            printf(" %.4f", got[(k * (n - 1) / (SAMPLES - 1) * n + n / 3) * n + n / 3]);
        plain(start, next, n, s->steps);
        for (long k = 0; k < count; k++)
            largest = fmax(largest, fabs((double)got[k] - start[k]));
        printf("\nlargest difference from a plain loop on one core: %.2g\n", largest);
    }
    free(got);
    free(next);
}

/* A mesh over all devices, as cubic as their number allows. */
static oly_mesh cubic_mesh(void)
{
    int n = oly_device_count(), i = 1, j = 1;
    for (int k = 1; k * k * k <= n; k++)
        i = n % k == 0 ? k : i;
    for (int k = 1; k * k <= n / i; k++)
        j = n / i % k == 0 ? k : j;
    char axes[64];
    snprintf(axes, sizeof axes, "i=%d, j=%d, k=%d", n / i / j, j, i);
    return oly_make_mesh(axes);
}

/* A whole number from 0 to the largest; else -1. */
static long number(const char *text, long largest)
{
    char *end;
    long n = strtol(text, &end, 10);
    return end == text || *end || n < 0 || n > largest ? -1 : n;
}

static settings options(int argc, char **argv)
{
    settings s = {.size = 64, .steps = 100};
    for (int k = 1; k < argc; k++) {
        bool more = k + 1 < argc;
        if (more && strcmp(argv[k], "--size") == 0)
            s.size = number(argv[++k], 1024);
        else if (more && strcmp(argv[k], "--steps") == 0)
            s.steps = (int)number(argv[++k], INT_MAX);
        else if (strcmp(argv[k], "--explain") == 0)
            s.explain = true;
        else
            s.size = 0;
    }
    if (s.size < SAMPLES || s.steps < 0) {
        bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
        fprintf(help ? stdout : stderr,
                "usage: heat3d [--size N (cells along an edge, 8 to 1024; default 64)] [--steps S "
                "(default 100)] [--explain]\n");
        exit(help ? 0 : 2);
    }
    return s;
}

int main(int argc, char **argv)
{
    settings s = options(argc, argv);
    oly_init(&argc, &argv);

    oly_sharding sharding = oly_named(cubic_mesh(), "i, j, k");
    oly_array u = NULL;
    oly_call(oly_jit(block, 0, 1, .user = &s, .out_shardings = &sharding), 0, NULL, OLY_OUT(u));
    size_t bytes = (size_t)(s.size * s.size * s.size) * sizeof(float);
    float *start = malloc(bytes);
    if (!start)
        exit(1);
    oly_process_allgather(u, start, bytes);

    oly_fn forward = oly_jit(advance, 1, 1, .user = &s);
    if (s.explain && oly_process_index() == 0)
        oly_explain(stdout, forward, u);
    oly_call(forward, OLY_IN(u), OLY_OUT(u));

    report(u, start, &s);
    free(start);
    return oly_finalize();
}
