/* SPDX-License-Identifier: BSD-3-Clause */
/* The heat equation on a plate by hand, with MPI calls: what heat2d.c does in five slices.
 *
 * Each rank holds a block of the inner rows, with one more row above and below for the neighbour's nearest row (or the
 * fixed edge of the plate). Every step exchanges these and computes the block.
 *
 * Run:    launch/olyrun -n 4 build/examples/heat2d_mpi [--size N] [--steps S]        (at most N - 2 ranks)
 * Prints: from rank 0, the first two lines of heat2d. */
#include <mpi.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 8 };

/* The rows of a rank: [first, first + count) of the inner rows, which are numbered from 1; n cells a row. */
typedef struct block {
    int rank, size;
    long n, first, count;
} block;

static block block_of(int rank, int size, long n)
{
    long share = (n - 2) / size, larger = (n - 2) % size;
    return (block){rank, size, n, 1 + rank * share + (rank < larger ? rank : larger), share + (rank < larger)};
}

/* A hot upper edge, a hot disc, a hot bar. */
static float initial(long n, long i, long j)
{
    long down = i - n / 2, across = j - n / 3;
    int disc = down * down + across * across < n * n / 36;
    int bar = labs(i - 3 * n / 4) < n / 5 && labs(j - 3 * n / 4) < n / 40 + 1;
    return disc || bar || i == 0;
}

static void step(const block *b, const float *u, float *next)
{
    long n = b->n;
    for (long i = 1; i <= b->count; i++)
        for (long j = 1; j < n - 1; j++) {
            const float *at = &u[i * n + j];
            next[i * n + j] = 0.5f * at[0] + 0.125f * (at[-n] + at[n] + at[-1] + at[1]);
        }
}

/* Rows 0 and count + 1 become the neighbours' rows; at the edges of the plate they stay. */
static void exchange(const block *b, float *u)
{
    int above = b->rank > 0 ? b->rank - 1 : MPI_PROC_NULL, below = b->rank + 1 < b->size ? b->rank + 1 : MPI_PROC_NULL;
    int n = (int)b->n;
    float *last = u + b->count * b->n;
    MPI_Sendrecv(last, n, MPI_FLOAT, below, 0, u, n, MPI_FLOAT, above, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(u + n, n, MPI_FLOAT, above, 1, last + n, n, MPI_FLOAT, below, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static float *simulate(const block *b, float *u, float *next, int steps)
{
    for (int s = 0; s < steps; s++) {
        exchange(b, u);
        step(b, u, next);
        float *old = u;
        u = next;
        next = old;
    }
    return u;
}

/* Sum and samples of the whole plate, each row taken from the rank that holds it (the edges: from the first and
 * last). */
static void report(const block *b, const float *u, int steps)
{
    long n = b->n, stride = (n - 1) / (SAMPLES - 1);
    long from = b->rank == 0 ? 0 : b->first, to = b->rank + 1 == b->size ? n : b->first + b->count;
    double mine[1 + SAMPLES] = {0}, all[1 + SAMPLES];
    for (long i = from; i < to; i++) {
        const float *row = &u[(i - b->first + 1) * n];
        for (long j = 0; j < n; j++)
            mine[0] += row[j];
        for (int k = 0; k < SAMPLES && i == n / 2; k++)
            mine[1 + k] = row[k * stride];
    }
    MPI_Reduce(mine, all, 1 + SAMPLES, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (b->rank != 0)
        return;
    printf("2-D heat equation, %ld x %ld cells, %d steps: sum %.2f\nsamples", n, n, steps, all[0]);
    for (int k = 0; k < SAMPLES; k++)
        printf(" %.4f", all[1 + k]);
    printf("\n");
}

static void usage(FILE *file)
{
    fprintf(file, "usage: heat2d_mpi [--size N] [--steps S]\n"
                  "  --size N     cells along a side of the plate (default 512)\n"
                  "  --steps S    time steps (default 1000)\n");
}

/* A whole number from 0 to the largest; else -1. */
static long number(const char *text, long largest)
{
    char *end;
    long n = strtol(text, &end, 10);
    return end == text || *end || n < 0 || n > largest ? -1 : n;
}

static void options(int argc, char **argv, long *size, int *steps)
{
    static const struct option known[] = {{"size", required_argument, NULL, 'n'},
                                          {"steps", required_argument, NULL, 's'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (o) {
        case 'n': *size = number(optarg, 32768); break;
        case 's': *steps = (int)number(optarg, INT_MAX); break;
        case 'h': usage(stdout); exit(0);
        default: usage(stderr); exit(2);
        }
    }
    if (*size < SAMPLES || *steps < 0 || optind < argc) {
        usage(stderr);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    long n = 512;
    int steps = 1000, rank, size;
    options(argc, argv, &n, &steps);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > n - 2) {
        if (rank == 0)
            fprintf(stderr, "heat2d_mpi: %d ranks are too many for %ld inner rows; give each rank at least one\n", size,
                    n - 2);
        MPI_Finalize();
        return 1;
    }

    block b = block_of(rank, size, n);
    size_t bytes = (size_t)((b.count + 2) * n) * sizeof(float);
    float *u = malloc(bytes), *next = malloc(bytes);
    if (!u || !next) {
        free(u);
        free(next);
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 1; /* not reached */
    }
    for (long i = 0; i < b.count + 2; i++)
        for (long j = 0; j < n; j++)
            u[i * n + j] = initial(n, b.first - 1 + i, j);
    memcpy(next, u, bytes); /* the fixed edges are in both */

    report(&b, simulate(&b, u, next, steps), steps);
    free(u);
    free(next);
    MPI_Finalize();
    return 0;
}
