/* SPDX-License-Identifier: BSD-3-Clause */
/* What the environment says about the job: who started this process, and how many processes there are. Called by
 * collectives/world.c. The order of the table below matters: Open MPI's mpirun inside a Slurm allocation leaves
 * SLURM_PROCID=0 and SLURM_NTASKS=1 in every rank (they describe the step of its daemons), and PMIX_RANK is
 * set under mpirun and srun. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "environment.h"
#include "core/error.h"
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *launcher, *rank, *size, *node_rank, *node_ranks;
} launchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMIx", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
};

/* A variable's value as a number; -1 if it is not set or not a plain number. */
static int number(const char *variable)
{
    const char *text = variable ? getenv(variable) : NULL;
    if (!text || !isdigit((unsigned char)*text))
        return -1;
    char *end;
    long value = strtol(text, &end, 10);
    return *end || value > INT_MAX ? -1 : (int)value;
}

/* Tasks on this node from Slurm's list over nodes: "4", "3,1", "2(x3),1". */
static int slurm_node_tasks(void)
{
    const char *at = getenv("SLURM_STEP_TASKS_PER_NODE");
    int node = number("SLURM_NODEID");
    while (at && node >= 0 && isdigit((unsigned char)*at)) {
        char *end;
        long tasks = strtol(at, &end, 10), nodes = 1;
        if (end[0] == '(' && end[1] == 'x')
            nodes = strtol(end + 2, &end, 10);
        if (node < nodes)
            return tasks > INT_MAX ? -1 : (int)tasks;
        node -= (int)nodes;
        const char *comma = strchr(end, ',');
        at = comma ? comma + 1 : NULL;
    }
    return -1;
}

oly_launch oly_launch_detect(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        if (number(launchers[i].rank) < 0)
            continue;
        oly_launch launch = {launchers[i].launcher, number(launchers[i].rank), number(launchers[i].size),
                             number(launchers[i].node_rank), number(launchers[i].node_ranks)};
        if (launch.node_ranks < 0)
            launch.node_ranks = slurm_node_tasks();
        return launch;
    }
    /* A single task under srun and the script that sbatch runs cannot be distinguished: neither needs MPI. */
    if (number("SLURM_PROCID") >= 0 && number("SLURM_STEP_NUM_TASKS") > 1)
        return (oly_launch){"srun", number("SLURM_PROCID"), number("SLURM_STEP_NUM_TASKS"), number("SLURM_LOCALID"),
                            slurm_node_tasks()};
    return (oly_launch){NULL, 0, 1, 0, 1};
}

/* -- settings -------------------------------------------------------------------------------------------- */

static bool has_entries(const char *folder)
{
    DIR *listing = opendir(folder);
    bool found = false;
    for (struct dirent *entry; listing && !found && (entry = readdir(listing));)
        found = entry->d_name[0] != '.';
    if (listing)
        closedir(listing);
    return found;
}

/* InfiniBand and RoCE, Omni-Path, Slingshot: there Open MPI has faster transports than ob1's TCP and may
 * choose. */
static bool fast_network(void)
{
    return has_entries("/sys/class/infiniband") || has_entries("/sys/class/cxi") || !access("/dev/hfi1_0", F_OK);
}

/* Cores this process may run on. */
static int cores_allowed(void)
{
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed)
                                                               : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Whether there are more ranks than cores on this node, as far as can be known. A single core under mpirun means that mpirun has
 * bound the rank to it; mpirun then knows the count better. Under srun Open MPI is not told: yielding costs under a microsecond,
 * not yielding milliseconds. */
static bool cores_are_short(const oly_launch *launch)
{
    int cores = cores_allowed();
    if (launch->launcher && !strcmp(launch->launcher, "mpirun") && cores == 1)
        return false;
    return launch->node_ranks < 0 || launch->node_ranks > cores;
}

void oly_launch_defaults(const oly_launch *launch)
{
    /* Without it, MPI_Init takes 200 ms longer to look for networks and then chooses ob1 anyway. */
    if ((launch->size > 0 && launch->node_ranks == launch->size) || !fast_network())
        setenv("OMPI_MCA_pml", "ob1", 0);
    if (cores_are_short(launch))
        setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    /* Started without mpirun, Open MPI would bind a rank, and with it all its worker threads, to one core. */
    setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 0);
}

/* -- mismatch of srun and MPI ------------------------------------------------------------ */

oly_status oly_launch_check(int processes, const char *mpi_library)
{
    int tasks = number("SLURM_STEP_NUM_TASKS");
    /* mpirun in an allocation: the step is that of its daemons, one on each node. */
    bool by_mpirun = number("OMPI_COMM_WORLD_SIZE") > 0 || number("PMI_SIZE") == 1;
    if (processes != 1 || tasks <= 1 || by_mpirun)
        return OLY_OK;
    const char *used = getenv("SLURM_MPI_TYPE");
    const char *wanted = strstr(mpi_library, "Open MPI") ? "pmix" : "pmi2";
    return oly_fail(
        OLY_STATE,
        "srun started %d tasks, but MPI sees a job of one process: srun's plugin --mpi=%s does not fit this "
        "MPI library (%.40s); run srun --mpi=%s",
        tasks, used ? used : "none", mpi_library, wanted);
}
