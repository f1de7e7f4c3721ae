/* SPDX-License-Identifier: BSD-3-Clause */
/* What Open MPI leaves behind of a job that did not end properly: the folder of its session, and segments in /dev/shm.
 * Used by olyguard. */
#ifndef OLYGUARD_JOB_FILES_H
#define OLYGUARD_JOB_FILES_H
#include <sys/types.h>
#include <time.h>

typedef struct job_files {
    char session[512];     /* folder; "": not known */
    unsigned job;          /* Open MPI's number; 0: not known */
    struct timespec began; /* by the clock of files */
} job_files;

void job_files_begin(job_files *files);
/* "NAME=value" of a rank's environment. */
void job_files_note(job_files *files, const char *variable);
/* When the job is over. */
void job_files_remove(const job_files *files, pid_t launcher);
#endif
