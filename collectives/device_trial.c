/* SPDX-License-Identifier: BSD-3-Clause */
/* The trial of MPI with memory of GPUs: a process of its own, which may crash. See device_trial.h. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "device_trial.h"
#include "aware/outcome.h"
#include "core/error.h"
#include "own_program.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* What launchers tell their processes; with it MPI would take this one for a rank. Settings of the user's (OMPI_MCA_btl, ...) stay. */
static bool is_of_a_launcher(const char *variable)
{
    static const char *const begins[] = {
        "OMPI_COMM_",    "OMPI_UNIVERSE", "OMPI_APP_CTX",     "OMPI_MCA_ess", "OMPI_MCA_orte",
        "OMPI_MCA_prte", "OMPI_MCA_pmix", "OMPI_MCA_initial", "OMPI_NUM_APP", "OMPI_FIRST_RANKS",
        "OMPI_FILE_",    "OMPI_ARGV",     "OMPI_COMMAND",     "PMIX_",        "PRTE_",
        "PMI_",          "HYDI_",         "HYDRA_",           "SLURM_",       "MPI_LOCALRANKID"};
    for (size_t k = 0; k < sizeof begins / sizeof *begins; k++)
        if (strncmp(variable, begins[k], strlen(begins[k])) == 0)
            return true;
    return false;
}

/* Owned; its strings are not. NULL: out of memory. */
static char **make_environment(void)
{
    static char alone[] = "OMPI_MCA_ess_singleton_isolated=1";
    size_t n = 0, kept = 0;
    while (environ && environ[n])
        n++;
    char **all = oly_malloc((n + 2) * sizeof *all);
    for (size_t k = 0; all && k < n; k++)
        if (!is_of_a_launcher(environ[k]))
            all[kept++] = environ[k];
    if (all) {
        all[kept++] = alone;
        all[kept] = NULL;
    }
    return all;
}

/* What it prints when it crashes is nobody's concern. 0, or what failed as errno says. */
static int start(const char *path, pid_t *child)
{
    char *arguments[] = {(char *)path, NULL}, **environment = make_environment();
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    if (!environment)
        return ENOMEM;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    for (int k = 0; k < 3; k++)
        posix_spawn_file_actions_addopen(&files, k, "/dev/null", k ? O_WRONLY : O_RDONLY, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int failed = posix_spawn(child, path, &files, &attributes, arguments, environment);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    oly_release(environment);
    return failed;
}

/* The status; -1: it did not end in time, or the program has taken it by a wait of its own. */
static int await(pid_t child)
{
    enum { POLLS = (OLY_AWARE_SECONDS + 2) * 100 };
    const struct timespec pause = {0, 10000000};
    int status = -1;
    for (int k = 0; k < POLLS; k++) {
        pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child)
            return status;
        if (ended < 0 && errno != EINTR)
            return -1;
        nanosleep(&pause, NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -1;
}

/* What the trial came to, or `tried` false if nothing is known of MPI: the program did not start or did not end. */
typedef struct finding {
    bool tried, works;
    char why[160];
} finding;

static void try_once(const char *path, finding *f)
{
#define TEXT_OF(name, number, text) {number, text},
    static const struct {
        int number;
        const char *text;
    } outcomes[] = {OLY_AWARE_OUTCOMES(TEXT_OF)};
    pid_t child;
    int failed = start(path, &child);
    if (failed) {
        snprintf(f->why, sizeof f->why, "the trial of MPI with memory of a GPU did not start: %s", strerror(failed));
        return;
    }
    int status = await(child);
    f->tried = status >= 0;
    f->works = f->tried && WIFEXITED(status) && WEXITSTATUS(status) == OLY_AWARE_WORKS;
    snprintf(f->why, sizeof f->why, "the trial of MPI with memory of a GPU %s", f->tried ? "crashed" : "did not end");
    for (size_t k = 0; f->tried && WIFEXITED(status) && k < sizeof outcomes / sizeof *outcomes; k++)
        if (outcomes[k].number == WEXITSTATUS(status))
            snprintf(f->why, sizeof f->why, "%s", outcomes[k].text);
}

bool oly_device_claim(void)
{
    int (*claims)(void);
    void *function = dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");
    memcpy(&claims, &function, sizeof claims);
    return function && claims();
}

/* One trial serves all sessions of the process: MPI stays what it is, and a trial takes as long as a start of MPI. */
bool oly_device_trial(char *why, size_t room)
{
    static finding found;
    char path[OLY_PROGRAM_PATH_BYTES];
    if (!found.tried && !oly_find_own_program("olyaware", "launch", path))
        snprintf(found.why, sizeof found.why, "%s",
                 "the program olyaware, which tries MPI with memory of GPUs, is not beside the library");
    else if (!found.tried)
        try_once(path, &found);
    snprintf(why, room, "%s", found.why);
    return found.works;
}
