/* SPDX-License-Identifier: BSD-3-Clause */
/* The heat equation on a rod by hand, with MPI calls: what heat1d.c does in three slices.
 *
 * Each rank holds a block of the inner cells with one more cell at each side, for the neighbour's nearest cell (or the
 * fixed end of the rod). Every step exchanges these and computes the block.
 *
 * Run:    launch/olyrun -n 4 build/examples/heat1d_mpi [--size CELLS] [--steps STEPS]        (at most CELLS ranks)
 * Prints: from rank 0, the first two lines of heat1d. */
#include <mpi.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 11 };

static float initial(long i)
{
    return (float)(i * 37 % 101) / 101.f;
}

/* The block of a rank: cells [first, first + count) of the inner cells, which are numbered from 1. */
typedef struct block {
    int rank, size;
    long first, count;
} block;

static block block_of(int rank, int size, long cells)
{
    long share = cells / size, larger = cells % size;
    return (block){rank, size, 1 + rank * share + (rank < larger ? rank : larger), share + (rank < larger)};
}

static void step(const block *b, const float *u, float *next)
{
    for (long i = 1; i <= b->count; i++)
        next[i] = 0.5f * u[i] + (0.25f * u[i - 1] + 0.25f * u[i + 1]);
}

/* u[0] and u[count + 1] become the neighbours' cells; at the ends of the rod they stay. */
static void exchange(const block *b, float *u)
{
    int left = b->rank > 0 ? b->rank - 1 : MPI_PROC_NULL, right = b->rank + 1 < b->size ? b->rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(&u[b->count], 1, MPI_FLOAT, right, 0, &u[0], 1, MPI_FLOAT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&u[1], 1, MPI_FLOAT, left, 1, &u[b->count + 1], 1, MPI_FLOAT, right, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static float *simulate(const block *b, float *u, float *next, int steps)
{
    for (int s = 0; s < steps; s++) {
        exchange(b, u);
        next[0] = u[0];
        next[b->count + 1] = u[b->count + 1];
        step(b, u, next);
        float *old = u;
        u = next;
        next = old;
    }
    return u;
}

/* Sum and samples of the whole rod, each cell taken from the rank that holds it (the ends: from the first and
 * last). */
static void report(const block *b, const float *u, long cells, int steps)
{
    long from = b->rank == 0 ? 0 : b->first, to = b->rank + 1 == b->size ? cells + 2 : b->first + b->count;
    long stride = (cells + 1) / (SAMPLES - 1);
    double mine[1 + SAMPLES] = {0}, all[1 + SAMPLES];
    for (long i = from; i < to; i++) {
        float value = u[i - b->first + 1];
        mine[0] += value;
        if (i % stride == 0 && i / stride < SAMPLES)
            mine[1 + i / stride] = value;
    }
    MPI_Reduce(mine, all, 1 + SAMPLES, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (b->rank != 0)
        return;
    printf("1-D heat equation, %ld cells, %d steps: sum %.4f\nsamples", cells + 2, steps, all[0]);
    for (int k = 0; k < SAMPLES; k++)
        printf(" %.4f", all[1 + k]);
    printf("\n");
}

static void usage(FILE *file)
{
    fprintf(file, "usage: heat1d_mpi [--size CELLS] [--steps STEPS]\n"
                  "  --size CELLS    cells between the two fixed ends (default 100)\n"
                  "  --steps STEPS   time steps (default 100)\n");
}

/* A whole number from 0 to the largest; else -1. */
static long number(const char *text, long largest)
{
    char *end;
    long n = strtol(text, &end, 10);
    return end == text || *end || n < 0 || n > largest ? -1 : n;
}

static void options(int argc, char **argv, long *cells, int *steps)
{
    static const struct option known[] = {{"size", required_argument, NULL, 'n'},
                                          {"steps", required_argument, NULL, 's'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (o) {
        case 'n': *cells = number(optarg, 1L << 40); break;
        case 's': *steps = (int)number(optarg, INT_MAX); break;
        case 'h': usage(stdout); exit(0);
        default: usage(stderr); exit(2);
        }
    }
    if (*cells < SAMPLES || *steps < 0 || optind < argc) {
        usage(stderr);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    long cells = 100;
    int steps = 100, rank, size;
    options(argc, argv, &cells, &steps);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > cells) {
        if (rank == 0)
            fprintf(stderr, "heat1d_mpi: %d ranks are too many for %ld cells; give each rank at least one\n", size,
                    cells);
        MPI_Finalize();
        return 1;
    }

    block b = block_of(rank, size, cells);
    float *u = malloc((size_t)(b.count + 2) * sizeof *u), *next = malloc((size_t)(b.count + 2) * sizeof *next);
    if (!u || !next) {
        free(u);
        free(next);
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 1; /* not reached */
    }
    for (long i = 0; i < b.count + 2; i++)
        u[i] = initial(b.first - 1 + i);

    float *last = simulate(&b, u, next, steps);
    report(&b, last, cells, steps);
    free(u);
    free(next);
    MPI_Finalize();
    return 0;
}
