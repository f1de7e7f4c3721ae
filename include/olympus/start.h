/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting on a cluster: processes that no launcher has started, and programs that have MPI already (docs/start.md). Programs that
 * mpirun, srun or olyrun starts need oly_init alone. Included by <olympus.h>. */
#ifndef OLYMPUS_START_H
#define OLYMPUS_START_H
#include <olympus/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Starts Olympus, as oly_init does, in a process of a job of several. Under mpirun, srun and other launchers it finds the others as
 * oly_init does and needs no arguments:
 *
 *     oly_distributed_initialize();
 *
 * Processes started by hand, one or more on each host, without a launcher or ssh, meet at process 0:
 *
 *     oly_distributed_initialize("10.0.0.1:10000", 4, id);      (HOST:PORT of process 0, how many there are, 0 to 3)
 *
 *   coordinator    HOST or HOST:PORT (10000); process 0 listens there, on this address only. NULL: OLYMPUS_COORDINATOR, or in an indexed
 *                  Job or JobSet of Kubernetes the pod with index 0
 *   num_processes  -1: OLYMPUS_NUM_PROCESSES
 *   process_id     -1: OLYMPUS_PROCESS_ID, or JOB_COMPLETION_INDEX in Kubernetes
 *
 * oly_init alone does the same where the variables are set. The processes prove to each other that they know a secret: OLYMPUS_SECRET,
 * or the contents of the file OLYMPUS_SECRET_FILE, which must have mode 600. On a loopback address neither is needed: a file in the
 * user's cache folder is made. oly_init may still be called afterwards, and does nothing.
 *   ranks    all processes of the job
 *   returns  OLY_OK, or with OLY_ERRORS_RETURN why the library has not started
 *   fails    OLY_STATE after oly_init (this process has its devices), for a refused secret, two processes of one id, and different
 *            numbers of processes; OLY_TIMEOUT after OLYMPUS_START_TIMEOUT seconds, naming who is missing; OLY_DIVERGED for
 *            different programs, libraries or MPIs; OLY_INVALID for arguments that contradict each other, the launcher, or an MPI
 *            that the program has started itself. All processes that have come get the same error. */
OLY_API oly_status oly_distributed_initialize(const char *coordinator, int num_processes, int process_id);

/* Starts Olympus in a program that has called MPI_Init, on a communicator of it: its ranks are the processes of Olympus, which
 * sends nothing over other communicators and leaves MPI_Finalize to the program. oly_finalize ends it; it may be started again, on
 * another communicator too.
 *
 *     #include <mpi.h>
 *     oly_init_comm(half);      (an MPI_Comm)
 *
 *   comm     the address of an MPI_Comm (the macro of the same name takes the MPI_Comm itself); not an intercommunicator
 *   ranks    all ranks of comm, and no others
 *   returns  OLY_OK, or with OLY_ERRORS_RETURN why the library has not started
 *   fails    OLY_STATE if already started, or without MPI_Init; OLY_INVALID for MPI_COMM_NULL; else as oly_init */
OLY_API oly_status oly_init_comm(const void *comm);

#ifndef OLYMPUS_LIBRARY
#define oly_distributed_initialize(...)                                                                                \
    OLY_AT(oly_distributed_initialize)(OLY_DISTRIBUTED_(OLY_IS_EMPTY_(__VA_ARGS__), __VA_ARGS__))
#define OLY_DISTRIBUTED_(empty, ...)    OLY_DISTRIBUTED_OF_(empty, __VA_ARGS__)
#define OLY_DISTRIBUTED_OF_(empty, ...) OLY_DISTRIBUTED_##empty##_(__VA_ARGS__)
#define OLY_DISTRIBUTED_1_(...)         NULL, -1, -1
#define OLY_DISTRIBUTED_0_(...)         __VA_ARGS__
#define oly_init_comm(comm)             OLY_AT(oly_init_comm)(OLY_LIST_(MPI_Comm, comm, comm))
#endif

#ifdef __cplusplus
}
#endif
#endif
