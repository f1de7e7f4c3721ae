/* SPDX-License-Identifier: BSD-3-Clause */
/* `oly status`: asks the ranks of this user's jobs on this host, at their sockets (runtime/core/status_socket.h). */
#define _GNU_SOURCE
#include "oly.h"
#include "core/status_socket.h"
#include "report.h"
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MS = 5000, MOST_SOCKETS = 65536 };

/* -- asking one rank ---------------------------------------------------------------------------------------------------- */

static long long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* Removes the socket of a process that was killed. */
static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path, path, strlen(path) + 1);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s >= 0 && connect(s, (struct sockaddr *)&address, sizeof address) == 0)
        return s;
    if (errno == ECONNREFUSED)
        unlink(path);
    if (s >= 0)
        close(s);
    return -1;
}

/* The whole answer; false: none in time. */
static bool receive(int s, oly_text *answer)
{
    char part[16384];
    long long until = now_ms() + ANSWER_MS;
    for (;;) {
        struct pollfd p = {.fd = s, .events = POLLIN};
        long long left = until - now_ms();
        if (left <= 0 || answer->length > RECORDER_MOST_BYTES || poll(&p, 1, (int)left) <= 0)
            return false;
        ssize_t n = recv(s, part, sizeof part, 0);
        if (n <= 0)
            return n == 0;
        oly_text_add_chars(answer, part, (size_t)n);
    }
}

/* fails if there is no answer, or a strange one; *gone: there is no such process any more. */
static oly_status ask(oly_arena *arena, const char *path, bool dump, recorder *r, bool *gone)
{
    oly_text answer = {0};
    const char *request = dump ? "dump\n" : "status\n";
    int s = connect_to(path);
    *gone = s < 0;
    if (s < 0)
        return oly_fail(OLY_IO, "%s: nobody answers", path);
    bool told = send(s, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request) && receive(s, &answer);
    close(s);
    oly_status st = OLY_OK;
    if (!told)
        st = oly_fail(OLY_TIMEOUT, "%s: no answer within %d s; is the process stopped?", path, ANSWER_MS / 1000);
    else if (strncmp(oly_text_chars(&answer), "refused\t", 8) == 0)
        st = oly_fail(OLY_STATE, "%s: %.*s", path, (int)strcspn(oly_text_chars(&answer) + 8, "\n"),
                      oly_text_chars(&answer) + 8);
    else
        st = recorder_read(arena, path, oly_text_chars(&answer), answer.length, r);
    oly_text_free(&answer);
    return st;
}

/* -- a job --------------------------------------------------------------------------------------------------------------- */

typedef struct wishes {
    bool dump, json, here; /* here: ranks of this host only, even if sockets of others can be reached (containers) */
    int events;
} wishes;

typedef struct seen {
    int n, failed;
    int64_t ranks;
    oly_text json;
} seen;

static void show_rank(const recorder *r, const wishes *w)
{
    oly_text t = {0};
    report_rank(r, &t);
    if (w->dump)
        oly_text_add(&t, *r->because ? "" : "        its recorder was not written\n");
    for (int k = r->n_events > w->events ? r->n_events - w->events : 0; k < r->n_events; k++) {
        oly_text_add(&t, "        %9.3f s ago  ", r->clock - r->events[k].time);
        report_event(&r->events[k], &t);
        oly_text_add(&t, "\n");
    }
    fputs(oly_text_chars(&t), stdout);
    oly_text_free(&t);
}

static int by_version(const struct dirent **a, const struct dirent **b)
{
    return strverscmp((*a)->d_name, (*b)->d_name);
}

static int is_entry(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool is_this_host(const char *name)
{
    char host[128] = "";
    gethostname(host, sizeof host - 1);
    return strcmp(host, name) == 0;
}

static void ask_job(const char *folder, const char *job, const wishes *w, seen *all)
{
    struct dirent **entries;
    char path[512], place[400];
    snprintf(place, sizeof place, "%s/%s", folder, job);
    int n = scandir(place, &entries, is_entry, by_version);
    for (int k = 0; k < n; k++) {
        oly_arena arena = {0};
        recorder r;
        bool gone = false;
        snprintf(path, sizeof path, "%s/%.64s", place, entries[k]->d_name);
        if (k >= MOST_SOCKETS || ask(&arena, path, w->dump, &r, &gone) != OLY_OK) {
            if (!gone) {
                tool_fail("%s", oly_pending_message());
                all->failed++;
            }
            oly_drop_message();
        } else if (!w->here || is_this_host(r.host)) {
            if (all->n++ == 0 && !w->json)
                printf("job %s: %lld rank%s of %s\n\n", r.job, (long long)r.ranks, r.ranks == 1 ? "" : "s", r.program);
            if (w->json) {
                oly_text_add(&all->json, all->json.length ? ",\n" : "");
                report_rank_json(&r, &all->json);
            } else {
                show_rank(&r, w);
            }
            all->ranks = r.ranks;
        }
        free(entries[k]);
        oly_arena_free(&arena);
    }
    if (n >= 0)
        free(entries);
    rmdir(place); /* if only stale sockets were in it */
}

/* -- the jobs of this user ------------------------------------------------------------------------------------------------ */

static bool answers(const char *folder, const char *job)
{
    struct dirent **entries;
    char path[512], place[400];
    bool any = false;
    snprintf(place, sizeof place, "%s/%s", folder, job);
    int n = scandir(place, &entries, is_entry, by_version);
    for (int k = 0; k < n; k++) {
        snprintf(path, sizeof path, "%s/%.64s", place, entries[k]->d_name);
        int s = any ? -1 : connect_to(path);
        any = any || s >= 0;
        if (s >= 0)
            close(s);
        free(entries[k]);
    }
    if (n >= 0)
        free(entries);
    if (!any)
        rmdir(place);
    return any;
}

/* Jobs that answer; the name of the last one. */
static int list_jobs(const char *folder, bool print, char *last, size_t size)
{
    struct dirent **entries;
    int found = 0, n = scandir(folder, &entries, is_entry, by_version);
    for (int k = 0; k < n; k++) {
        if (answers(folder, entries[k]->d_name)) {
            snprintf(last, size, "%s", entries[k]->d_name);
            if (print)
                printf("  %s\n", last);
            found++;
        }
        free(entries[k]);
    }
    if (n >= 0)
        free(entries);
    return found;
}

/* -- other hosts ------------------------------------------------------------------------------------------------------------ */

static bool is_host(const char *name, size_t n)
{
    return n > 0 && n < 256 && name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_@:") >= n;
}

static void own_path(char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    path[n > 0 ? n : 0] = 0;
}

static bool names_this_host(const char *hosts)
{
    char host[128] = "";
    gethostname(host, sizeof host - 1);
    for (const char *at = hosts; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
        if (strcspn(at, ",") == strlen(host) && strncmp(at, host, strlen(host)) == 0)
            return true;
    return false;
}

static int ask_hosts(const char *hosts, const char *job, bool dump)
{
    char tool[4096], host[260];
    int worst = 0;
    own_path(tool, sizeof tool);
    for (const char *at = hosts; *at;) {
        size_t n = strcspn(at, ",");
        if (!is_host(at, n))
            return tool_fail("--hosts %s: names of hosts, separated by commas", hosts);
        snprintf(host, sizeof host, "%.*s", (int)n, at);
        char *command[] = {"ssh",       "-o",     "BatchMode=yes",        "--", host, tool, "status",
                           (char *)job, "--here", dump ? "--dump" : NULL, NULL};
        printf("host %s\n", host);
        int status = tool_run(command, -1, -1);
        worst = status > worst ? status : worst;
        at += n + (at[n] == ',');
    }
    return worst;
}

/* Inside the job's allocation. */
static bool has_srun(const char *job)
{
    const char *slurm = getenv("SLURM_JOB_ID");
    return slurm && *slurm && strncmp(job, slurm, strlen(slurm)) == 0;
}

static int ask_by_srun(const char *job, bool dump)
{
    char tool[4096];
    own_path(tool, sizeof tool);
    const char *nodes = getenv("SLURM_JOB_NUM_NODES");
    char *command[] = {"srun",
                       "--overlap",
                       "--mpi=none",
                       "-N",
                       (char *)(nodes && *nodes ? nodes : "1"),
                       "--ntasks-per-node=1",
                       tool,
                       "status",
                       (char *)job,
                       "--here",
                       dump ? "--dump" : NULL,
                       NULL};
    return tool_run(command, -1, -1);
}

/* -- all together ------------------------------------------------------------------------------------------------------------ */

static int show_job(const char *folder, const char *job, const wishes *w, const char *hosts, bool here)
{
    seen all = {0};
    if (!here && !hosts && !w->json && has_srun(job))
        return ask_by_srun(job, w->dump);
    if (!hosts || !names_this_host(hosts))
        ask_job(folder, job, w, &all);
    if (w->json)
        printf("[%s]\n", oly_text_chars(&all.json));
    oly_text_free(&all.json);
    if (all.n == 0 && !all.failed && !hosts)
        return here ? 0 : tool_fail("no rank of job %s runs on this host; oly status lists the jobs", job);
    if (hosts)
        return ask_hosts(hosts, job, w->dump);
    if (all.n > 0 && all.n + all.failed < all.ranks && !here && !w->json)
        printf("\n%lld of %lld ranks are not on this host, or have ended: ask there with oly status %s, or from here "
               "with\n"
               "oly status %s --hosts HOST,HOST (ssh); in a Slurm allocation srun asks them\n",
               (long long)(all.ranks - all.n), (long long)all.ranks, job, job);
    return all.failed ? TOOL_FAILED : 0;
}

/* Every job's ranks, as JSON. */
static int show_all(const char *folder, const wishes *w)
{
    struct dirent **entries;
    seen all = {0};
    int n = scandir(folder, &entries, is_entry, by_version);
    for (int k = 0; k < n; k++) {
        ask_job(folder, entries[k]->d_name, w, &all);
        free(entries[k]);
    }
    if (n >= 0)
        free(entries);
    printf("[%s]\n", oly_text_chars(&all.json));
    oly_text_free(&all.json);
    return all.failed ? TOOL_FAILED : 0;
}

int status_main(int argc, char **argv)
{
    char folder[300], last[300] = "";
    const char *hosts = tool_option(&argc, argv, "--hosts"), *events = tool_option(&argc, argv, "--events");
    bool here = tool_flag(&argc, argv, "--here");
    wishes w = {tool_flag(&argc, argv, "--dump"), tool_flag(&argc, argv, "--json"), here || hosts,
                events ? atoi(events) : 3};
    if (tool_unknown_option(argc, argv))
        return tool_usage("unknown option %s", tool_unknown_option(argc, argv));
    tool_end_of_options(&argc, argv);
    if (argc > 2 || (hosts && !*hosts) || w.events < 0)
        return tool_usage("at most one job; --hosts and --events need a value");
    if (hosts && w.json)
        return tool_usage("--json is for one host: ask each with oly status --json --here");
    if (argc > 1 && (strchr(argv[1], '/') || argv[1][0] == '.' || !*argv[1] || strlen(argv[1]) > 200))
        return tool_usage("%s is no name of a job", argv[1]);
    if (!oly_status_folder(folder, sizeof folder))
        return tool_fail("no place for sockets");
    if (argc > 1)
        return show_job(folder, argv[1], &w, hosts, here);
    int n = list_jobs(folder, false, last, sizeof last);
    if (n == 0)
        return tool_fail("no job of this user runs on this host (sockets are in %s)", folder);
    if (n == 1)
        return show_job(folder, last, &w, hosts, here);
    if (w.json)
        return show_all(folder, &w);
    printf("%d jobs of this user run on this host; oly status JOB asks one:\n", n);
    list_jobs(folder, true, last, sizeof last);
    return 0;
}
