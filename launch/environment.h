/* SPDX-License-Identifier: BSD-3-Clause */
/* What the environment says about the job before MPI starts, and the settings that MPI should start with. Makes no MPI calls.
 * Called by collectives/world.c. */
#ifndef OLY_LAUNCH_ENVIRONMENT_H
#define OLY_LAUNCH_ENVIRONMENT_H
#include <olympus/base.h>

typedef struct oly_launch {
    const char *launcher; /* "mpirun", "PMIx", "PMI", "srun"; NULL: this process was started alone */
    int rank, size;       /* -1: unknown */
    int node_rank, node_ranks;
} oly_launch;

/* Reads the environment. Only a guess: once MPI is initialised, MPI's answers hold. */
oly_launch oly_launch_detect(void);

/* Sets, before MPI_Init, Open MPI's defaults for what the user has not set. Other MPIs do not read these.
 */
void oly_launch_defaults(const oly_launch *launch);

/* Fails with OLY_STATE if srun started several tasks and each became a job of its own, which happens when the plugin given by
 * --mpi= does not match the MPI library. mpi_library: MPI_Get_library_version's text. */
oly_status oly_launch_check(int processes, const char *mpi_library);
#endif
