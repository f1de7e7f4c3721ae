/* SPDX-License-Identifier: BSD-3-Clause */
/* See job_name.h. */
#include "job_name.h"
#include "core/option.h"
#include "environment.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text && text[0] ? text : NULL;
}

/* mpirun and srun; a job of mpirun inside an allocation has both names. */
static void launched_name(char *name, size_t size)
{
    const char *slurm = variable("SLURM_JOB_ID"), *step = variable("SLURM_STEP_ID"),
               *space = variable("PMIX_NAMESPACE");
    bool by_srun = slurm && step && !variable("OMPI_COMM_WORLD_RANK");
    if (by_srun)
        snprintf(name, size, "%s.%s", slurm, step);
    else if (space)
        snprintf(name, size, "%s%s%s", slurm ? slurm : "", slurm ? "." : "", space);
    else if (variable("PMI_JOBID"))
        snprintf(name, size, "%s", variable("PMI_JOBID"));
    else
        snprintf(name, size, "%ld", (long)getppid());
}

void oly_job_name(char *name, size_t size)
{
    const char *coordinator = variable("OLYMPUS_COORDINATOR");
    oly_launch launch = oly_launch_detect();
    if (oly_option.job[0])
        snprintf(name, size, "%s", oly_option.job);
    else if (launch.launcher && !coordinator)
        launched_name(name, size);
    else if (coordinator)
        snprintf(name, size, "%s", coordinator);
    else
        snprintf(name, size, "%ld", (long)getpid());
}
