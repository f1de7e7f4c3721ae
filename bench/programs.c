/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of whole programs: the examples, started as processes of their own with eight devices (some need them), as they come.
 * Process 0 starts them; the time includes their start and end. */
#define _GNU_SOURCE /* posix_spawn_file_actions_addchdir_np */
#include "bench.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The environment without what would make the program a rank of this job. */
static char **alone(void)
{
    static const char *const theirs[] = {"OMPI_",           "PMIX_",           "PMI_",          "MPI_",
                                         "SLURM_",          "OLYMPUS_PROCESS", "OLYMPUS_COORD", "OLYMPUS_NUM_PROCESSES",
                                         "OLYMPUS_EXPLAIN", "OLYMPUS_NUM_CPU"};
    size_t n = 0, kept = 0;
    while (environ[n])
        n++;
    char **list = malloc((n + 5) * sizeof *list);
    if (!list)
        exit(1);
    for (size_t k = 0; k < n; k++) {
        bool job = false;
        for (size_t t = 0; t < sizeof theirs / sizeof theirs[0]; t++)
            job = job || strncmp(environ[k], theirs[t], strlen(theirs[t])) == 0;
        if (!job)
            list[kept++] = environ[k];
    }
    list[kept++] = "OLYMPUS_NUM_CPU_DEVICES=8";
    list[kept++] = "OMPI_ALLOW_RUN_AS_ROOT=1";
    list[kept++] = "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1";
    list[kept] = NULL;
    return list;
}

/* "build/examples/NAME" beside "build/bench/bench" */
static void path_of(const char *name, char path[static 4096])
{
    ssize_t length = readlink("/proc/self/exe", path, 2048);
    path[length > 0 ? length : 0] = 0;
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(path, '/');
        if (slash)
            *slash = 0;
    }
    size_t end = strlen(path);
    snprintf(path + end, 4096 - end, "/examples/%s", name);
}

typedef struct start {
    char path[4096];
    char **environment;
} start;

static void run_once(void *data)
{
    start *s = data;
    if (oly_process_index() != 0)
        return;
    char *argv[] = {s->path, NULL};
    pid_t child;
    int status = 0;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addchdir_np(&actions, "/tmp");
    int failed = posix_spawn(&child, s->path, &actions, NULL, argv, s->environment);
    posix_spawn_file_actions_destroy(&actions);
    while (!failed && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (failed || status != 0) {
        fprintf(stderr, "bench: %s: %s\n", s->path, failed ? strerror(failed) : "failed");
        exit(1);
    }
}

/* With --quick the program is only looked for. */
static void run(const bench_row *row)
{
    start s;
    path_of(row->name + strlen("program_"), s.path);
    s.environment = alone();
    double begin = bench_now();
    if (bench_options.quick && access(s.path, X_OK) != 0) {
        fprintf(stderr, "bench: there is no program %s\n", s.path);
        exit(1);
    }
    double seconds = bench_options.quick ? bench_now() - begin + 1e-6 : bench_best(run_once, &s);
    bench_report_call(row->name, seconds);
    free(s.environment);
}

#define PROGRAM(name)                                                                                                  \
    {                                                                                                                  \
        "program_" #name, "examples/" #name ".c as it comes, by itself on eight devices, its start included", run, 0,  \
            0, NULL, NULL                                                                                              \
    }
const bench_row bench_program_rows[] = {
    PROGRAM(arrays),         PROGRAM(big_sin),
    PROGRAM(control),        PROGRAM(experts),
    PROGRAM(explain),        PROGRAM(formats),
    PROGRAM(grad),           PROGRAM(gray_scott),
    PROGRAM(heat1d),         PROGRAM(heat2d),
    PROGRAM(heat3d),         PROGRAM(inside),
    PROGRAM(linear_algebra), PROGRAM(math),
    PROGRAM(matmul),         PROGRAM(maxwell2d),
    PROGRAM(random_numbers), PROGRAM(sharded_computation),
    PROGRAM(tour),           PROGRAM(toy),
    PROGRAM(train),          PROGRAM(transformer),
    PROGRAM(user_kernel),    {0},
};
