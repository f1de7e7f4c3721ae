/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads /proc for the descendants of this process. See processes.h. */
#define _GNU_SOURCE
#include "processes.h"
#include "core/process_state.h"
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 65536 };

typedef struct process {
    pid_t pid;
    bool of_rank; /* a rank, or started by one */
} process;

static struct {
    process *list; /* owned: descendants, parents first; beginning with this process */
    int n, room;
    bool seen;
} found;

static process *find(pid_t pid)
{
    for (int k = 0; k < found.n; k++)
        if (found.list[k].pid == pid)
            return &found.list[k];
    return NULL;
}

static void add(pid_t pid)
{
    if (find(pid))
        return;
    if (found.n == found.room && found.room < MOST) {
        int room = found.room ? 2 * found.room : 64;
        process *list = realloc(found.list, sizeof *list * (size_t)room);
        if (!list)
            return;
        found.list = list;
        found.room = room;
    }
    if (found.n < found.room)
        found.list[found.n++] = (process){.pid = pid};
}

/* Adds the children that the kernel lists for a thread. False: it does not. */
static bool add_children_of_thread(pid_t pid, const char *thread)
{
    char path[320];
    snprintf(path, sizeof path, "/proc/%ld/task/%s/children", (long)pid, thread);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    for (int child; fscanf(file, "%d", &child) == 1;)
        add(child);
    fclose(file);
    return true;
}

static bool add_children(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *threads = opendir(path);
    bool listed = true;
    for (struct dirent *entry; threads && (entry = readdir(threads));)
        if (isdigit((unsigned char)entry->d_name[0]))
            listed = add_children_of_thread(pid, entry->d_name) && listed;
    if (threads)
        closedir(threads);
    return listed || !threads;
}

/* Where the kernel does not list children: examines the parent of every process. */
static void add_children_by_parent(void)
{
    for (int before = -1; before != found.n;) {
        before = found.n;
        DIR *all = opendir("/proc");
        for (struct dirent *entry; all && (entry = readdir(all));) {
            pid_t pid = (pid_t)atol(entry->d_name);
            long parent;
            if (pid <= 0 || !oly_process_state(pid, &parent))
                continue;
            if (find(parent))
                add(pid);
        }
        if (all)
            closedir(all);
    }
}

static void find_all(void)
{
    found.n = 0;
    add(getpid());
    for (int k = 0; k < found.n; k++)
        if (!add_children(found.list[k].pid) && k == 0) {
            add_children_by_parent();
            return;
        }
}

/* The environment with which it was started, one string after the other. NULL: it cannot be read. */
static char *environment_of(pid_t pid, size_t *bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t room = 0;
    *bytes = 0;
    for (size_t n = 1; file && n > 0; *bytes += n) {
        if (*bytes + 1 >= room) {
            char *longer = realloc(text, room = room ? 2 * room : 16384);
            if (!longer)
                break;
            text = longer;
        }
        n = fread(text + *bytes, 1, room - 1 - *bytes, file);
    }
    if (file)
        fclose(file);
    if (text)
        text[*bytes] = 0;
    return text;
}

static bool is_of_rank(pid_t pid, job_files *files)
{
    static const char *const given[] = {"OMPI_COMM_WORLD_RANK=", "PMIX_RANK=", "PMI_RANK="};
    size_t bytes;
    bool rank = false;
    char *text = environment_of(pid, &bytes);
    for (size_t at = 0; text && at < bytes; at += strlen(text + at) + 1) {
        for (size_t k = 0; k < sizeof given / sizeof *given; k++)
            rank = rank || strncmp(text + at, given[k], strlen(given[k])) == 0;
        job_files_note(files, text + at);
    }
    free(text);
    return rank;
}

process_count processes_look(pid_t launcher, job_files *files)
{
    process_count count = {0, 0};
    find_all();
    for (int k = 1; k < found.n; k++) {
        process *p = &found.list[k];
        long parent;
        char state = oly_process_state(p->pid, &parent);
        if (p->pid == launcher || !state)
            continue;
        found.seen = true; /* one that is not yet reaped has been seen, too */
        if (state == 'Z' || state == 'X')
            continue;
        p->of_rank = is_of_rank(p->pid, files);
        const process *above = find(parent);
        /* what a rank started is none, also when that is gone and this process has become its parent */
        count.ranks += p->of_rank && parent != getpid() && !(above && above->of_rank);
        count.processes++;
    }
    return count;
}

bool processes_any_seen(void)
{
    return found.seen;
}

static bool handles(pid_t pid, int signal)
{
    char path[64], line[256];
    unsigned long long caught = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "SigCgt: %llx", &caught) == 1)
            break;
    if (file)
        fclose(file);
    return caught >> (signal - 1) & 1;
}

bool processes_ask_for_records(void)
{
    bool any = false;
    for (int k = 1; k < found.n; k++)
        if (found.list[k].of_rank && handles(found.list[k].pid, SIGQUIT))
            any = kill(found.list[k].pid, SIGQUIT) == 0 || any;
    return any;
}

void processes_kill(int signal)
{
    for (int k = found.n; k-- > 1;)
        kill(found.list[k].pid, signal);
}
