/* What the environment says of the job before MPI is asked, and the settings MPI should start with. Knows no
 * MPI calls. Called by collectives/world.c. */
#ifndef OLY_LAUNCH_ENVIRONMENT_H
#define OLY_LAUNCH_ENVIRONMENT_H
#include <olympus/base.h>

typedef struct oly_launch {
    const char *launcher; /* "mpirun", "PMIx", "PMI", "srun"; NULL: this process was started alone */
    int rank, size;       /* -1: not told */
    int node_rank, node_ranks;
} oly_launch;

/* Reads the environment anew. Only a first opinion: once MPI is up, MPI is right. */
oly_launch oly_launch_detect(void);

/* Sets, before MPI_Init, what Open MPI should do where the user has said nothing. Other MPIs do not read these.
 */
void oly_launch_defaults(const oly_launch *launch);

/* Fails OLY_STATE when srun started several tasks and each became a job of its own, which happens when the
 * plugin given by
 * --mpi= and the MPI library do not know each other. mpi_library: MPI_Get_library_version's text. */
oly_status oly_launch_check(int processes, const char *mpi_library);
#endif
