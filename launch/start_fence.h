/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of MPI_Init in a Slurm step of several nodes. Called by collectives/world.c. */
#ifndef OLY_LAUNCH_START_FENCE_H
#define OLY_LAUNCH_START_FENCE_H

/* Returns when MPI_Init has returned on all processes of the step; at once where MPI_Init has waited for them itself. Communicates
 * through the launcher, not through MPI. */
void oly_start_fence(void);
#endif
