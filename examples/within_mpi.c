/* SPDX-License-Identifier: BSD-3-Clause */
/* Olympus inside a program that owns MPI: it runs on a communicator of the program, is started and ended twice, and leaves the rest to
 * the program. The ranks are divided into a half that computes with Olympus and a half that does something else; then all of them
 * check the sum together.
 * Run: mpirun -n 4 build/examples/within_mpi     (any number of ranks, from 2) */
#include <mpi.h>
#include <olympus.h>
#include <stdio.h>

/* The sum of 0, 1, ..., 99, computed on all devices of a communicator's ranks. */
static double sum_on(MPI_Comm ranks)
{
    oly_init_comm(ranks);
    char axes[32];
    snprintf(axes, sizeof axes, "i=%d", oly_device_count());
    oly_array x = oly_device_put(oly_arange(100, OLY_INT32), oly_named(oly_make_mesh(axes), "i"));
    double sum = oly_item(oly_sum(x));
    oly_finalize();
    return sum;
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Comm half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    int computes = rank % 2 == 0;
    MPI_Comm_split(MPI_COMM_WORLD, computes, rank, &half);
    double sum = computes ? sum_on(half) : 4950; /* the other half knows the formula */
    double again = sum_on(MPI_COMM_WORLD), lowest;
    MPI_Allreduce(&sum, &lowest, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0)
        printf("on %d of %d ranks: %g; on all of them: %g\n", (size + 1) / 2, size, lowest, again);
    MPI_Comm_free(&half);
    MPI_Finalize();
    return lowest == 4950 && again == 4950 ? 0 : 1;
}
