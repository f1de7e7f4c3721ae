/* SPDX-License-Identifier: BSD-3-Clause */
/* Instead of host_pmix.c where the PMIx library was missing when olymeet was built. See plan.h. */
#include "plan.h"
#include <stdio.h>

bool host_start(const plan *p, char *why, size_t size)
{
    (void)p;
    snprintf(why, size,
             "Olympus was built without the PMIx library (libpmix-dev), by which Open MPI is started by hand; install "
             "it and "
             "build again, or start the program with mpirun, srun or olyrun");
    return false;
}

int host_wake(void)
{
    return -1;
}

bool host_take(oly_wire *message)
{
    (void)message;
    return false;
}

void host_hear(oly_wire_kind kind, oly_read *fields)
{
    (void)kind, (void)fields;
}

void host_stop(bool clean)
{
    (void)clean;
}
