/* SPDX-License-Identifier: BSD-3-Clause */
/* What this job is called in `oly status` and in the names of recorder files: the same for all its ranks. Called by
 * collectives/recording.c. */
#ifndef OLY_LAUNCH_JOB_NAME_H
#define OLY_LAUNCH_JOB_NAME_H
#include <stddef.h>

/* OLYMPUS_JOB, or what the launcher calls it: Slurm's JOB.STEP, PMIx's namespace, the coordinator of processes started by hand; of
 * other launchers the id of their process on this node; of a process started alone its own. */
void oly_job_name(char *name, size_t size);
#endif
