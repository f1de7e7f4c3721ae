/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  The environment of the job is read in the right order, and a job that fell apart is detected. */
#include "check.h"
#include "communicator.h"
#include "core/error.h"
#include "core/option.h"
#include "environment.h"

static const char *const all_variables[] = {
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "PMIX_RANK",
    "PMI_RANK",
    "PMI_SIZE",
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_TASKS_PER_NODE",
    "SLURM_MPI_TYPE",
    "OMPI_MCA_pml",
    "OMPI_MCA_mpi_yield_when_idle",
    "OMPI_MCA_hwloc_base_binding_policy",
};

static int empty_environment(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof all_variables / sizeof all_variables[0]; i++)
        unsetenv(all_variables[i]);
    oly_drop_message();
    return 0;
}

/* Sets "A=1 B=2" in the environment. */
static void set(const char *settings)
{
    char text[512];
    snprintf(text, sizeof text, "%s", settings);
    for (char *save, *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(word, '=');
        *equals = 0;
        setenv(word, equals + 1, 1);
    }
}

static void assert_launch(const char *launcher, int rank, int size, int node_rank, int node_ranks)
{
    oly_launch launch = oly_launch_detect();
    if (launcher)
        assert_string_equal(launch.launcher, launcher);
    else
        assert_null(launch.launcher);
    assert_int_equal(launch.rank, rank);
    assert_int_equal(launch.size, size);
    assert_int_equal(launch.node_rank, node_rank);
    assert_int_equal(launch.node_ranks, node_ranks);
}

static void nothing_set_is_alone(void **state)
{
    (void)state;
    assert_launch(NULL, 0, 1, 0, 1);
    set("OMPI_COMM_WORLD_RANK= PMI_RANK=x SLURM_PROCID=-1");
    assert_launch(NULL, 0, 1, 0, 1);
}

static void mpirun_in_an_allocation_hides_slurm(void **state)
{
    (void)state;
    set("OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 "
        "OMPI_COMM_WORLD_LOCAL_SIZE=2 "
        "PMIX_RANK=3 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_STEP_NUM_TASKS=4");
    assert_launch("mpirun", 3, 8, 1, 2);
    assert_int_equal(oly_launch_check(1, "Open MPI v4.1.4"), OLY_OK);
}

static void srun_with_pmix(void **state)
{
    (void)state;
    set("PMIX_RANK=3 SLURM_PROCID=3 SLURM_LOCALID=0 SLURM_NODEID=1 SLURM_STEP_NUM_TASKS=4 "
        "SLURM_STEP_TASKS_PER_NODE=3,1");
    assert_launch("PMIx", 3, 4, 0, 1);
    set("SLURM_NODEID=3 SLURM_STEP_TASKS_PER_NODE=12(x2),7,5(x30)");
    assert_launch("PMIx", 3, 4, 0, 5);
    set("SLURM_NODEID=2");
    assert_launch("PMIx", 3, 4, 0, 7);
    set("SLURM_NODEID=33");
    assert_launch("PMIx", 3, 4, 0, -1);
}

static void mpich_launchers(void **state)
{
    (void)state;
    set("PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2");
    assert_launch("PMI", 1, 2, 1, 2);
}

static void one_task_of_srun_is_alone(void **state)
{
    (void)state;
    set("SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_STEP_NUM_TASKS=1");
    assert_launch(NULL, 0, 1, 0, 1);
    set("SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=3");
    assert_launch("srun", 2, 3, 0, -1);
}

static void defaults_leave_the_user_alone(void **state)
{
    (void)state;
    set("OMPI_MCA_pml=ucx OMPI_MCA_hwloc_base_binding_policy=core");
    oly_launch many = {"mpirun", 0, 100000, 0, 100000}, one = {NULL, 0, 1, 0, 1};
    oly_launch_defaults(&one);
    assert_string_equal(getenv("OMPI_MCA_pml"), "ucx");
    assert_string_equal(getenv("OMPI_MCA_hwloc_base_binding_policy"), "core");
    assert_null(getenv("OMPI_MCA_mpi_yield_when_idle"));
    unsetenv("OMPI_MCA_pml");
    many.launcher = "srun";
    oly_launch_defaults(&many);
    assert_string_equal(getenv("OMPI_MCA_pml"), "ob1"); /* all on one node */
    assert_string_equal(getenv("OMPI_MCA_mpi_yield_when_idle"), "1");
}

static void tasks_that_became_jobs_of_one_are_noticed(void **state)
{
    (void)state;
    set("SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=4 SLURM_MPI_TYPE=pmix");
    assert_int_equal(oly_launch_check(4, "MPICH Version: 4.0.2"), OLY_OK);
    assert_int_equal(oly_launch_check(1, "MPICH Version: 4.0.2"), OLY_STATE);
    assert_non_null(strstr(oly_pending_message(), "srun started 4 tasks"));
    assert_non_null(strstr(oly_pending_message(), "run srun --mpi=pmi2"));
    oly_drop_message();
    assert_int_equal(oly_launch_check(1, "Open MPI v4.1.4"), OLY_STATE);
    assert_non_null(strstr(oly_pending_message(), "run srun --mpi=pmix"));
}

/* The same through oly_init: MPI itself starts, alone, and the start fails. */
static void start_refuses_such_a_job(void **state)
{
    (void)state;
    assert_int_equal(oly_options_read(), OLY_OK);
    set("SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=4");
    assert_int_equal(oly_world_start(NULL, NULL), OLY_STATE);
    assert_non_null(strstr(oly_pending_message(), "srun started 4 tasks"));
    assert_int_equal(oly_world_size(), 1);
}

#define ENVIRONMENT_TEST(function) cmocka_unit_test_setup(function, empty_environment)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENVIRONMENT_TEST(nothing_set_is_alone),
        ENVIRONMENT_TEST(mpirun_in_an_allocation_hides_slurm),
        ENVIRONMENT_TEST(srun_with_pmix),
        ENVIRONMENT_TEST(mpich_launchers),
        ENVIRONMENT_TEST(one_task_of_srun_is_alone),
        ENVIRONMENT_TEST(defaults_leave_the_user_alone),
        ENVIRONMENT_TEST(tasks_that_became_jobs_of_one_are_noticed),
        ENVIRONMENT_TEST(start_refuses_such_a_job),
    };
    return CHECK_MAIN(tests);
}
