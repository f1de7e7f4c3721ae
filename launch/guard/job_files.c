/* SPDX-License-Identifier: BSD-3-Clause */
/* Removes the files that a job has left in /tmp and /dev/shm. See job_files.h. Only files of this user are removed: those with the
 * job's name, and segments made since the job began that no process has mapped. */
#define _GNU_SOURCE
#include "job_files.h"
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENTS "/dev/shm"

void job_files_begin(job_files *files)
{
    memset(files, 0, sizeof *files);
    clock_gettime(CLOCK_REALTIME_COARSE, &files->began);
}

static const char *value_of(const char *variable, const char *name)
{
    size_t n = strlen(name);
    return strncmp(variable, name, n) == 0 && variable[n] == '=' ? variable + n + 1 : NULL;
}

void job_files_note(job_files *files, const char *variable)
{
    const char *session = value_of(variable, "OMPI_MCA_orte_jobfam_session_dir");
    const char *job = value_of(variable, "OMPI_MCA_ess_base_jobid");
    if (session && session[0] == '/' && strlen(session) < sizeof files->session)
        snprintf(files->session, sizeof files->session, "%s", session);
    if (job && isdigit((unsigned char)*job))
        files->job = (unsigned)strtoul(job, NULL, 10);
}

/* -- the session's folder ------------------------------------------------------------------------------------ */

static bool is_own(int folder, const char *name, mode_t kind)
{
    struct stat s;
    return fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) == 0 && s.st_uid == geteuid() && (s.st_mode & S_IFMT) == kind;
}

static void remove_folder(int above, const char *name, int depth)
{
    int folder = is_own(above, name, S_IFDIR) && depth < 16
                     ? openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                     : -1;
    DIR *listing = folder >= 0 ? fdopendir(folder) : NULL;
    for (struct dirent *entry; listing && (entry = readdir(listing));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (is_own(folder, entry->d_name, S_IFDIR))
            remove_folder(folder, entry->d_name, depth + 1);
        else
            unlinkat(folder, entry->d_name, 0);
    }
    if (listing)
        closedir(listing);
    else if (folder >= 0)
        close(folder);
    unlinkat(above, name, AT_REMOVEDIR);
}

/* Where mpirun puts it, for jobs whose ranks ended too early to be asked. */
static void guess_session(char *path, size_t size, pid_t launcher)
{
    const char *base = getenv("OMPI_MCA_orte_tmpdir_base"), *tmp = getenv("TMPDIR");
    char host[128] = "";
    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = 0;
    snprintf(path, size, "%s/ompi.%s.%u/pid.%ld",
             base  ? base
             : tmp ? tmp
                   : "/tmp",
             host, (unsigned)geteuid(), (long)launcher);
}

static void remove_session(const job_files *files, pid_t launcher)
{
    char path[512], pid[32];
    snprintf(path, sizeof path, "%s", files->session);
    if (!path[0])
        guess_session(path, sizeof path, launcher);
    snprintf(pid, sizeof pid, "pid.%ld", (long)launcher);
    char *name = strrchr(path, '/');
    if (!name || strcmp(name + 1, pid) != 0) /* not named as by Open MPI 4: kept */
        return;
    *name++ = 0;
    int above = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (above < 0)
        return;
    remove_folder(above, name, 0);
    close(above);
    rmdir(path); /* remains while other jobs of this user run */
}

/* -- segments ------------------------------------------------------------------------------------------------ */

/* vader_segment.HOST.USER.JOB.RANK, JOB in hexadecimal. */
static bool is_of_job(const char *name, unsigned job)
{
    char part[32];
    snprintf(part, sizeof part, ".%x.", job);
    return job && strncmp(name, "vader_segment.", 14) == 0 && strstr(name + 13, part);
}

static bool is_mapped_by(const char *process, const char *path)
{
    char maps[300], line[1024];
    snprintf(maps, sizeof maps, "/proc/%s/maps", process);
    FILE *file = fopen(maps, "re");
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file))
        found = strstr(line, path) != NULL;
    if (file)
        fclose(file);
    return found;
}

static bool is_mapped(const char *name)
{
    char path[320];
    snprintf(path, sizeof path, SEGMENTS "/%s", name);
    DIR *all = opendir("/proc");
    bool found = !all;
    for (struct dirent *entry; all && !found && (entry = readdir(all));)
        found = isdigit((unsigned char)entry->d_name[0]) && is_mapped_by(entry->d_name, path);
    if (all)
        closedir(all);
    return found;
}

static bool is_left(int folder, const char *name, const job_files *files)
{
    static const char *const kinds[] = {"vader_segment.", "osc_rdma.", "ucx_shm_posix_", "mpich_shar_tmp"};
    struct stat s;
    bool known = false;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        known = known || strncmp(name, kinds[k], strlen(kinds[k])) == 0;
    if (!known || !is_own(folder, name, S_IFREG) || fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    if (is_of_job(name, files->job))
        return true;
    bool newer = s.st_ctim.tv_sec > files->began.tv_sec ||
                 (s.st_ctim.tv_sec == files->began.tv_sec && s.st_ctim.tv_nsec >= files->began.tv_nsec);
    return newer && !is_mapped(name);
}

static void remove_segments(const job_files *files)
{
    DIR *listing = opendir(SEGMENTS);
    for (struct dirent *entry; listing && (entry = readdir(listing));)
        if (is_left(dirfd(listing), entry->d_name, files))
            unlinkat(dirfd(listing), entry->d_name, 0);
    if (listing)
        closedir(listing);
}

void job_files_remove(const job_files *files, pid_t launcher)
{
    remove_session(files, launcher);
    remove_segments(files);
}
