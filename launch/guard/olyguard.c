/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a launcher and ensures that its job ends: olyrun starts mpirun through this. One process without threads, which wakes for
 * signals and a few times a second.
 *
 *     olyguard [--time SECONDS] [--grace SECONDS] [--elsewhere] -- LAUNCHER [ARGUMENT...]      the exit status is the launcher's
 *     olyguard --version
 *
 * What it handles:
 *   signals                      INT, TERM, HUP, QUIT, USR1, USR2 are forwarded; after one that asks for an end the job has the grace time
 *   the time limit               SIGQUIT to ranks that handle it (they write their flight recorders), SIGTERM to the launcher, after the
 *                                grace time SIGKILL to everything; status 124
 *   ranks that have all ended    while the launcher has not: after the grace time SIGKILL to it; status 1. Not with --elsewhere: then
 *                                ranks may be on other hosts, or started by a daemon (srun)
 *   a launcher that has ended    while ranks have not: SIGTERM to them, after the grace time SIGKILL; a second later where it ended well,
 *                                since its daemons may still be on their way out
 *   files that Open MPI leaves   its session folder and its segments in /dev/shm, of this job
 *   its own end by SIGKILL       the launcher gets SIGTERM
 *
 * It is the subreaper of all processes that the launcher starts, so it still finds a rank whose launcher is gone. A rank is a
 * process whose environment has the variables that launchers set for ranks, started by one whose environment has not. Only
 * processes of this machine are seen. */
#define _GNU_SOURCE
#include "job_files.h"
#include "processes.h"
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FAST_TICKS = 100, FAST_MS = 20, SLOW_MS = 250, LINGER_S = 1, TIME_IS_UP = 124 };

static struct {
    double limit, grace; /* s; limit 0: none */
    pid_t launcher;
    bool own_group;                  /* the launcher has a process group of its own */
    double began, last_rank, ending; /* s; ending: since the launcher was asked to end; 0: not asked */
    bool ended;                      /* the launcher */
    double ended_at;
    int status; /* the launcher's, or the one that this program has decided on */
    bool decided;
    bool elsewhere; /* not all ranks are seen here */
    job_files files;
} guard = {.grace = 5};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void say(const char *text)
{
    fprintf(stderr, "olyrun: %s\n", text);
}

/* -- starting ------------------------------------------------------------------------------------------------ */

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

static sigset_t watched_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t k = 0; k < sizeof passed_on / sizeof *passed_on; k++)
        sigaddset(&set, passed_on[k]);
    return set;
}

static void become_launcher(char **command, const sigset_t *mask, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1); /* it has ended in the meantime */
    if (guard.own_group)
        setpgid(0, 0);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(command[0], command);
    fprintf(stderr, "olyrun: cannot run %s: %s\n", command[0], strerror(errno));
    _exit(127);
}

static bool start(char **command)
{
    sigset_t watched = watched_signals(), before;
    sigprocmask(SIG_BLOCK, &watched, &before);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    /* At a terminal the launcher must stay in its foreground group to read from it; keys then signal it directly. */
    guard.own_group = !isatty(STDIN_FILENO);
    guard.began = guard.last_rank = now();
    pid_t self = getpid();
    guard.launcher = fork();
    if (guard.launcher == 0)
        become_launcher(command, &before, self);
    if (guard.launcher < 0)
        fprintf(stderr, "olyrun: cannot start a process: %s\n", strerror(errno));
    return guard.launcher > 0;
}

/* -- ending -------------------------------------------------------------------------------------------------- */

static void decide(int status)
{
    if (!guard.decided)
        guard.status = status;
    guard.decided = true;
}

/* Asks for an end once; after the grace time the job is killed. */
static void ask_to_end(const char *why)
{
    if (guard.ending > 0)
        return;
    if (why)
        say(why);
    guard.ending = now();
    if (!guard.ended)
        kill(guard.launcher, SIGTERM);
    else
        processes_kill(SIGTERM);
}

static void reap(void)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid != guard.launcher)
            continue; /* an orphan of the job */
        guard.ended = true;
        guard.ended_at = now();
        if (!guard.decided)
            guard.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

static void pass_on(const siginfo_t *info)
{
    int signal = info->si_signo;
    bool asks_for_end = signal != SIGUSR1 && signal != SIGUSR2;
    bool has_it = !guard.own_group && info->si_code == SI_KERNEL; /* a key: the whole group has received it */
    if (!guard.ended && !has_it)
        kill(guard.launcher, signal);
    if (!asks_for_end)
        return;
    if (guard.ending > 0 && now() - guard.ending > 0.2) { /* a second signal, not the other of a pair */
        processes_kill(SIGKILL);
        return;
    }
    if (guard.ending == 0)
        guard.ending = now();
    if (guard.ended)
        processes_kill(SIGTERM);
}

/* -- the watch ----------------------------------------------------------------------------------------------------- */

/* All processes that the launcher has started. */
static void look(void)
{
    process_count count = processes_look(guard.launcher, &guard.files);
    double t = now();
    if (count.ranks > 0 || !processes_any_seen())
        guard.last_rank = t;
    if (guard.limit > 0 && t - guard.began >= guard.limit && guard.ending == 0 && !guard.ended) {
        char text[80];
        snprintf(text, sizeof text, "the time limit of %g s is reached: ending the job", guard.limit);
        decide(TIME_IS_UP);
        if (processes_ask_for_records()) /* a moment, before the launcher ends them */
            nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        ask_to_end(text);
    }
    bool alone = !guard.elsewhere && !guard.ended && t - guard.last_rank >= guard.grace - 1;
    if (alone && guard.ending == 0) { /* it has had its time, and crashes if it is signalled while ending */
        decide(1);
        say("all ranks have ended, but the launcher has not: ending it");
        guard.ending = t - guard.grace;
    }
    if (guard.ended && count.processes > 0 && t - guard.ended_at >= (guard.status == 0 ? LINGER_S : 0))
        ask_to_end("the launcher has ended, but ranks have not: ending them");
    if (guard.ending > 0 && t - guard.ending >= guard.grace) {
        processes_kill(SIGKILL);
        if (!guard.ended)
            kill(guard.launcher, SIGKILL);
    }
}

static bool is_over(void)
{
    return guard.ended && processes_look(guard.launcher, &guard.files).processes == 0;
}

static void watch(void)
{
    sigset_t watched = watched_signals();
    for (int tick = 0;; tick++) {
        struct timespec wait = {.tv_nsec = (tick < FAST_TICKS ? FAST_MS : SLOW_MS) * 1000000L};
        siginfo_t info;
        int signal = sigtimedwait(&watched, &info, &wait);
        if (signal > 0 && signal != SIGCHLD)
            pass_on(&info);
        reap();
        if (is_over())
            return;
        look();
    }
}

/* -- the command --------------------------------------------------------------------------------------------- */

static double seconds(const char *text)
{
    char *end;
    double value = text ? strtod(text, &end) : -1;
    if (!text || *end || !(value > 0)) {
        fprintf(stderr, "olyguard: '%s' is not a number of seconds\n", text ? text : "");
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    int k = 1;
    for (; k < argc && strcmp(argv[k], "--") != 0; k++) {
        if (strcmp(argv[k], "--version") == 0)
            return puts(OLYRUN_VERSION) < 0;
        if (strcmp(argv[k], "--time") == 0)
            guard.limit = seconds(argv[++k]);
        else if (strcmp(argv[k], "--grace") == 0)
            guard.grace = seconds(argv[++k]);
        else if (strcmp(argv[k], "--elsewhere") == 0)
            guard.elsewhere = true;
        else
            break;
    }
    if (k + 1 >= argc || strcmp(argv[k], "--") != 0) {
        fprintf(stderr, "usage: olyguard [--time SECONDS] [--grace SECONDS] [--elsewhere] -- LAUNCHER [ARGUMENT...]\n");
        return 2;
    }
    job_files_begin(&guard.files);
    if (!start(argv + k + 1))
        return 127;
    watch();
    job_files_remove(&guard.files, guard.launcher);
    return guard.status;
}
