/* SPDX-License-Identifier: BSD-3-Clause */
/* All-reduce, exchange with the next rank and resharding in plain MPI, for comparison with bench/movement.c and bench/reshard.c
 * with one device per rank. Built and run by bench/compare.sh.
 * Run:    mpirun -n RANKS exchange_mpi [--start-only | --quick]    (--start-only: MPI only starts and ends, to time that)
 * Prints: name, seconds per call, microseconds, unit; the best of five. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 5, SMALL = 1, LARGE = 4 << 20, SIDE = 4096 };

static int rank, n_ranks;
static float *from, *to, *packed;

static void allreduce(int n)
{
    MPI_Allreduce(from, to, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

/* A ring, like the bench's concatenation of the last row and the others. */
static void halo(int n)
{
    MPI_Sendrecv(from, n, MPI_FLOAT, (rank + 1) % n_ranks, 0, to, n, MPI_FLOAT, (rank + n_ranks - 1) % n_ranks, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* An n x n array split by rows becomes one split by columns: blocks of columns are packed, and arrive in a row. */
static void to_columns(int n)
{
    size_t rows = (size_t)(n / n_ranks);
    for (size_t peer = 0; peer < (size_t)n_ranks; peer++)
        for (size_t row = 0; row < rows; row++)
            memcpy(packed + (peer * rows + row) * rows, from + row * (size_t)n + peer * rows, rows * sizeof *from);
    MPI_Alltoall(packed, (int)(rows * rows), MPI_FLOAT, to, (int)(rows * rows), MPI_FLOAT, MPI_COMM_WORLD);
}

/* One split by rows, or by columns, becomes whole on every rank. */
static void gather(int n)
{
    MPI_Allgather(from, n / n_ranks * n, MPI_FLOAT, to, n / n_ranks * n, MPI_FLOAT, MPI_COMM_WORLD);
}

static void gather_columns(int n)
{
    size_t columns = (size_t)(n / n_ranks), block = columns * (size_t)n;
    MPI_Allgather(from, (int)block, MPI_FLOAT, packed, (int)block, MPI_FLOAT, MPI_COMM_WORLD);
    for (size_t row = 0; row < (size_t)n; row++)
        for (size_t peer = 0; peer < (size_t)n_ranks; peer++)
            memcpy(to + row * (size_t)n + peer * columns, packed + peer * block + row * columns, columns * sizeof *to);
}

static void reverse(int n)
{
    int block = n / n_ranks * n, peer = n_ranks - 1 - rank;
    if (peer == rank)
        memcpy(to, from, (size_t)block * sizeof *to);
    else
        MPI_Sendrecv(from, block, MPI_FLOAT, peer, 0, to, block, MPI_FLOAT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* `bytes` is the total that a call moves; 0: report its time. */
static void measure(const char *name, void (*call)(int n), int n, int count, double bytes)
{
    double best = 1e300;
    for (int k = -1; k < REPEATS; k++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double seconds = -MPI_Wtime();
        for (int c = 0; c < count; c++)
            call(n);
        MPI_Barrier(MPI_COMM_WORLD);
        seconds = (seconds + MPI_Wtime()) / count;
        if (k >= 0 && seconds < best)
            best = seconds;
    }
    if (rank == 0 && bytes > 0)
        printf("%s\t%.9f\t%.3f\tGB/s\n", name, best, bytes / best / 1e9);
    else if (rank == 0)
        printf("%s\t%.9f\t%.3f\tus/call\n", name, best, best * 1e6);
}

int main(int argc, char **argv)
{
    const char *option = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    if (strcmp(option, "--start-only") != 0) {
        int many = strcmp(option, "--quick") == 0 ? 3 : 2000, few = many < 10 ? many : 10;
        int side = many < 10 ? 64 : SIDE;
        size_t room = (size_t)side * (size_t)side > LARGE ? (size_t)side * (size_t)side : LARGE;
        from = calloc(room, sizeof *from);
        to = calloc(room, sizeof *to);
        packed = calloc(room, sizeof *packed);
        if (!from || !to || !packed)
            MPI_Abort(MPI_COMM_WORLD, 1);
        measure("halo_mpi", halo, SMALL, many, 0);
        measure("halo_large_mpi", halo, LARGE, few, 0);
        measure("allreduce_mpi", allreduce, SMALL, many, 0);
        measure("allreduce_large_mpi", allreduce, LARGE, few, 0);
        double bytes = (double)side * side * (double)sizeof *from;
        measure("reshard_mpi", to_columns, side, 1, bytes);
        measure("reshard_gather_mpi", gather, side, 1, bytes);
        measure("reshard_gather_columns_mpi", gather_columns, side, 1, bytes);
        measure("reshard_reversed_mpi", reverse, side, 1, bytes);
        free(from);
        free(to);
        free(packed);
    }
    MPI_Finalize();
    return 0;
}
