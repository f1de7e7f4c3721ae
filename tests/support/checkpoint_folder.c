/* SPDX-License-Identifier: BSD-3-Clause */
/* See checkpoint_folder.h. */
#include "checkpoint_folder.h"
#include "check.h"
#include "environment.h"
#include <dirent.h>
#include <unistd.h>

static void run(const char *format, const char *a, const char *b)
{
    char command[1024];
    snprintf(command, sizeof command, format, a, b);
    assert_int_equal(system(command), 0);
}

static bool is_rank_0(void)
{
    return oly_launch_detect().rank <= 0;
}

void check_folder_make(char *path, size_t size)
{
    const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; /* where fsync is fast */
    snprintf(path, size, "%s/olympus-checkpoint-%ld", where, (long)getppid());
    if (is_rank_0())
        run("rm -rf '%s'%s", path, "");
}

void check_folder_remove(const char *path)
{
    if (is_rank_0())
        run("rm -rf '%s'%s", path, "");
}

void check_folder_copy(const char *from, const char *to)
{
    if (is_rank_0())
        run("rm -rf '%2$s'; cp -a '%1$s' '%2$s'", from, to);
}

int check_folder_count(const char *path, const char *name)
{
    char full[512];
    int n = 0;
    snprintf(full, sizeof full, "%s/%s", path, name);
    DIR *folder = opendir(full);
    if (!folder)
        return 0;
    for (const struct dirent *entry; (entry = readdir(folder));)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(folder);
    return n;
}
