/* All-reduce and exchange with the next rank in plain MPI, for comparison with bench/movement.c at one device a rank.
 * Built and run by bench/compare.sh.
 * Run:    mpirun -n RANKS exchange_mpi [--start-only | --quick]    (--start-only: MPI starts and ends, for the time that takes)
 * Prints: name, seconds of a call, microseconds, unit; the best of five. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 5, SMALL = 1, LARGE = 4 << 20 };

static int rank, n_ranks;
static float *from, *to;

static void allreduce(int n)
{
    MPI_Allreduce(from, to, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

/* A ring, as the bench's concatenation of the last row and the others. */
static void halo(int n)
{
    MPI_Sendrecv(from, n, MPI_FLOAT, (rank + 1) % n_ranks, 0, to, n, MPI_FLOAT, (rank + n_ranks - 1) % n_ranks, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void measure(const char *name, void (*call)(int n), int n, int count)
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
    if (rank == 0)
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
        from = calloc(LARGE, sizeof *from);
        to = calloc(LARGE, sizeof *to);
        if (!from || !to)
            MPI_Abort(MPI_COMM_WORLD, 1);
        measure("halo_mpi", halo, SMALL, many);
        measure("halo_large_mpi", halo, LARGE, few);
        measure("allreduce_mpi", allreduce, SMALL, many);
        measure("allreduce_large_mpi", allreduce, LARGE, few);
        free(from);
        free(to);
    }
    MPI_Finalize();
    return 0;
}
