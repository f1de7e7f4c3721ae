/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes below this one: which there are, and which of them are ranks. Used by olyguard.c. */
#ifndef OLYGUARD_PROCESSES_H
#define OLYGUARD_PROCESSES_H
#include "job_files.h"
#include <stdbool.h>
#include <sys/types.h>

typedef struct process_count {
    int processes; /* alive, without the launcher */
    int ranks;     /* of them */
} process_count;

/* Reads all of them again; what the ranks' environments say about the job is recorded in files. */
process_count processes_look(pid_t launcher, job_files *files);
/* Has the launcher ever had a process? */
bool processes_any_seen(void);
/* All but the launcher, as last read. */
void processes_kill(int signal);
/* SIGQUIT to the ranks that handle it: those of Olympus write their flight recorders, and go on. True: there are some. */
bool processes_ask_for_records(void);
#endif
