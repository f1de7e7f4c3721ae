/* SPDX-License-Identifier: BSD-3-Clause */
/* See child.h. */
#include "plan/rewrite/rewrite.h"
#include "plan/schedule/schedule.h" /* before program.h, whose names are short */
#include "child.h"
#include "check_races.h"
#include <signal.h>
#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct shared {
    outcome o;
    long at;
    bool done;
} shared;

/* 1: what is done for arrays of megabytes is done for those of the programs, too. */
#define SMALL_ONES "SOAK_SMALL_ONES"

/* -- options ------------------------------------------------------------------------------------------------------------------- */
static const struct {
    const char *name;
    int n;
    const char *const value[8];
} varied[] = {
    {"OLYMPUS_HALO_STEPS", 6, {"0", "0", "1", "2", "3", "5"}},
    {"OLYMPUS_CHOOSE", 4, {"1", "1", "0", "2"}},
    {"OLYMPUS_OVERLAP", 3, {"1", "1", "0"}},
    {"OLYMPUS_DIRECT_PROCESSES", 5, {"8", "8", "1", "2", "3"}},
    {"OLYMPUS_EXCHANGE_MEMORY", 3, {"256", "256", "1"}},
    {"OLYMPUS_NUM_THREADS", 4, {"0", "1", "2", "3"}},
    {"OLYMPUS_GRADIENT_MEMORY", 3, {"1024", "1024", "0"}},
    {"OLYMPUS_QUEUE_DEPTH", 3, {"64", "64", "1"}},
    {"OLYMPUS_VERIFY", 8, {"0", "0", "0", "0", "0", "0", "0", "1"}},
    {"OLYMPUS_DISABLE", 8, {"", "", "", "", "all", "fusion", "sinking", "layout-choice"}},
    {"OLYMPUS_COSTS",
     8,
     {"", "", "levels", "node=20us,1GB/s", "node=0.01us,0.01GB/s", "process=1ns,9GB/s; network=1ms,1MB/s; memory=1GB/s",
      "node=1us,0.1GB/s; gemm=10Mflop/s; operations=1Mop/s", "gemm=1Mflop/s; node=1ms,1MB/s"}},
    {SMALL_ONES, 3, {"0", "1", "1"}},
    {"OLYMPUS_COMPILE_AFTER", 3, {"262144", "0", "0"}},
    {"OLYMPUS_COMPUTE_ONCE", 3, {"200000", "0", "0"}},
    {"OLYMPUS_ISA", 4, {"", "", "", "base"}},
};
enum { N_VARIED = sizeof varied / sizeof *varied };

void choose_options(uint64_t number)
{
    static bool given[N_VARIED], known;
    for (int k = 0; k < N_VARIED && !known; k++)
        given[k] = getenv(varied[k].name);
    known = true;
    number *= 0x9e3779b97f4a7c15u;
    for (int k = 0; k < N_VARIED; k++) {
        number = number * 6364136223846793005u + 1442695040888963407u;
        if (!given[k])
            setenv(varied[k].name, varied[k].value[(number >> 40) % (uint64_t)varied[k].n], 1);
    }
}

void print_options(FILE *f)
{
    fprintf(f, "/*");
    for (int k = 0; k < N_VARIED; k++)
        if (getenv(varied[k].name))
            fprintf(f, " %s=%s", varied[k].name, getenv(varied[k].name));
    fprintf(f, " */\n");
}

void begin_session(void)
{
    const char *small = getenv(SMALL_ONES);
    bool as_large = small && small[0] == '1';
    check_races();
    oly_row_chains_least = as_large ? 1 : 1 << 21;
    oly_direct_reads_least = as_large ? 1 : 1 << 18;
    oly_field_regions_least = as_large ? 1 : 1 << 13;
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
}

outcome run_child(child_function *f, const void *context, long from, long to, long *reached)
{
    static shared *s;
    int status = 0;
    if (!s) {
        s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (s == MAP_FAILED)
            abort();
    }
    memset(s, 0, sizeof *s);
    s->at = from;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGALRM, SIG_DFL);
        f(context, from, to, &s->o, &s->at);
        s->done = true;
        fflush(NULL);
        exit(0); /* not _exit: coverage is written at the end */
    }
    if (child < 0)
        abort();
    while (waitpid(child, &status, 0) < 0)
        ;
    *reached = s->at;
    outcome o = s->o;
    if (!s->done && !o.failed) {
        int number = WIFSIGNALED(status) ? WTERMSIG(status) : 1000 + WEXITSTATUS(status);
        memset(&o, 0, sizeof o);
        o.failed = true;
        o.value = NOTHING;
        o.status = (oly_status)-number;
        snprintf(o.text, sizeof o.text,
                 number == SIGALRM ? "does not end"
                 : number < 1000   ? "ended by signal %d (%s)"
                                   : "ended with status %d%s",
                 number < 1000 ? number : number - 1000, number < 1000 ? strsignal(number) : "");
    }
    return o;
}

/* -- shrinking ----------------------------------------------------------------------------------------------------------------- */
static double until;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void allow_attempts(double seconds)
{
    until = now() + seconds;
}

bool time_is_over(void)
{
    return now() > until;
}

static void run_one(const void *context, long from, long to, outcome *o, long *at)
{
    begin_session();
    alarm(6);
    *o = run_program((program *)(uintptr_t)context);
    alarm(0);
    (void)from, (void)to, (void)at;
}

bool attempt_alone(program *p, outcome *o)
{
    long reached;
    if (time_is_over())
        return false;
    *o = run_child(run_one, p, 0, 1, &reached);
    return true;
}
