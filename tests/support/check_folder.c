/* SPDX-License-Identifier: BSD-3-Clause */
/* Folders of tests. See check_folder.h. */
#define _GNU_SOURCE /* program_invocation_short_name */
#include "check_folder.h"
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

const char *check_path(const char *name)
{
    static char path[8][400];
    static int k;
    k = (k + 1) % 8;
    snprintf(path[k], sizeof path[k], "%s/%s", folder, name);
    return path[k];
}

/* Visits the files; removes them if `remove`. Returns how many there are. */
static int visit(bool remove)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        n++;
        if (remove)
            unlink(check_path(e->d_name));
    }
    if (d)
        closedir(d);
    return n;
}

int check_files_there(void)
{
    return visit(false);
}

int check_folder_start(void **state)
{
    static bool started;
    int result = started ? 0 : check_start(state);
    started = true;
    snprintf(folder, sizeof folder, "/tmp/olympus-test-%ld-%s-%d", (long)getppid(), program_invocation_short_name,
             oly_process_count());
    if (oly_process_index() == 0) {
        mkdir(folder, 0777);
        visit(true);
    }
    oly_sync("the folder is there");
    return result;
}

int check_folder_finish(void **state)
{
    (void)state;
    oly_clear_error();
    oly_sync("the folder is not needed any more");
    if (oly_process_index() == 0) {
        visit(true);
        rmdir(folder);
    }
    return 0;
}

int check_folder_last(void **state)
{
    check_folder_finish(state);
    return check_finish(state);
}

void check_fails(oly_status got, oly_status status, const char *text, const char *call)
{
    if (got != status || !strstr(oly_last_error(), text))
        fail_msg("%s: %s instead of %s with \"%s\": %s", call, oly_status_name(got), oly_status_name(status), text,
                 oly_last_error());
    oly_clear_error();
}
