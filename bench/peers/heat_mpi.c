/* SPDX-License-Identifier: BSD-3-Clause */
/* The heat equation by hand, for comparison: C and MPI, one cell of halo, one vectorised sweep per step, as an expert in both
 * would write it. The steps and sizes of bench/heat.c. Built and run by bench/compare.sh.
 * Run:    mpirun -n RANKS heat_mpi [CELLS SIDE STEPS]       Prints: name, seconds, rate, unit; the best of five. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 5 };

/* A block of rows of `width` floats, with one row of a neighbour (or of the fixed edge) above and below. */
typedef struct field {
    long rows, width;
    int above, below; /* ranks */
    float *now, *next;
} field;

static int rank, n_ranks;

static float *allocate(long n)
{
    float *p = aligned_alloc(64, (size_t)((n * 4 + 63) / 64 * 64));
    if (!p)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return p;
}

/* The inner rows of a total of `rows`, distributed evenly; the outermost two are fixed. */
static field make_field(long rows, long width)
{
    long inner = rows - 2, first = inner * rank / n_ranks, last = inner * (rank + 1) / n_ranks;
    field f = {last - first,
               width,
               rank > 0 ? rank - 1 : MPI_PROC_NULL,
               rank + 1 < n_ranks ? rank + 1 : MPI_PROC_NULL,
               allocate((last - first + 2) * width),
               allocate((last - first + 2) * width)};
    for (long i = 0; i < (f.rows + 2) * width; i++)
        f.now[i] = f.next[i] = (float)((first * width + i) * 7919 % 1000) / 1000.f;
    return f;
}

static void exchange_halo(const field *f)
{
    MPI_Request requests[4];
    int n = (int)f->width;
    float *u = f->now;
    MPI_Irecv(u, n, MPI_FLOAT, f->above, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(u + (f->rows + 1) * f->width, n, MPI_FLOAT, f->below, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(u + f->rows * f->width, n, MPI_FLOAT, f->below, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(u + f->width, n, MPI_FLOAT, f->above, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

/* Cells of a rod are rows of one. */
static void rod_step(const field *f)
{
    const float *restrict u = f->now;
    float *restrict v = f->next;
    for (long i = 1; i <= f->rows; i++)
        v[i] = 0.5f * u[i] + (0.25f * u[i - 1] + 0.25f * u[i + 1]);
}

static void plate_step(const field *f)
{
    long w = f->width;
    for (long i = 1; i <= f->rows; i++) {
        const float *restrict u = f->now + i * w, *restrict up = u - w, *restrict down = u + w;
        float *restrict v = f->next + i * w;
        for (long j = 1; j < w - 1; j++)
            v[j] = 0.5f * u[j] + 0.125f * ((up[j] + down[j]) + (u[j - 1] + u[j + 1]));
    }
}

static void run(field *f, int steps, void (*step)(const field *))
{
    for (int s = 0; s < steps; s++) {
        exchange_halo(f);
        step(f);
        float *other = f->now;
        f->now = f->next;
        f->next = other;
    }
}

static void measure(const char *name, long rows, long width, int steps, void (*step)(const field *))
{
    field f = make_field(rows, width);
    double best = 1e300;
    for (int k = -1; k < REPEATS; k++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double seconds = -MPI_Wtime();
        run(&f, steps, step);
        MPI_Barrier(MPI_COMM_WORLD);
        seconds += MPI_Wtime();
        if (k >= 0 && seconds < best)
            best = seconds;
    }
    if (rank == 0)
        printf("%s\t%.9f\t%.3f\tGpoint/s\n", name, best, (double)rows * (double)width * steps / best / 1e9);
    free(f.now);
    free(f.next);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    long cells = argc > 1 ? atol(argv[1]) : 1L << 24, side = argc > 2 ? atol(argv[2]) : 4096;
    int steps = argc > 3 ? atoi(argv[3]) : 100;
    measure("heat1d_mpi", cells, 1, steps, rod_step);
    measure("heat1d_small_mpi", cells / 16, 1, steps, rod_step);
    measure("heat2d_mpi", side, side, steps, plate_step);
    MPI_Finalize();
    return 0;
}
