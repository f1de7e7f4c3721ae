/* SPDX-License-Identifier: BSD-3-Clause */
/* `oly trace`: runs a command with a timeline, or sums up a timeline that is there. */
#define _GNU_SOURCE
#include "oly.h"
#include "page.h"
#include "trace_summary.h"
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int sum_up(const char *path, const char *html)
{
    oly_text t = {0};
    page_parts parts = {0};
    int status = 0;
    if (trace_sum_up(path, &t) != OLY_OK || tool_write("-", &t) != OLY_OK)
        status = tool_fail_pending();
    if (html && status == 0 && (page_add_file(&parts, path) != OLY_OK || page_write(html, &parts, NULL) != OLY_OK))
        status = tool_fail_pending();
    else if (html && status == 0)
        fprintf(stderr, "oly trace: wrote %s\n", html);
    oly_text_free(&t);
    page_free(&parts);
    return status;
}

/* An absolute path: programs may change their folder, and ranks of other hosts start elsewhere. */
static bool make_absolute(char *to, size_t size, const char *path)
{
    char here[4000];
    if (path[0] == '/')
        return snprintf(to, size, "%s", path) < (int)size;
    return getcwd(here, sizeof here) && snprintf(to, size, "%s/%s", here, path) < (int)size;
}

/* The ranks of a job that fails write a part each, FILE.rank0.json of FILE.json: the first of those that are there; to be freed. */
static char *first_part(const char *path, time_t since)
{
    const char *slash = strrchr(path, '/'), *dot = strchr(slash ? slash : path, '.');
    int before = dot ? (int)(dot - path) : (int)strlen(path);
    char pattern[4300], *first = NULL;
    glob_t found = {0};
    struct stat s;
    snprintf(pattern, sizeof pattern, "%.*s.rank*%s", before, path, dot ? dot : "");
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t k = 0; k < found.gl_pathc && !first; k++)
            if (stat(found.gl_pathv[k], &s) == 0 && s.st_mtime >= since)
                first = strdup(found.gl_pathv[k]);
    globfree(&found);
    return first;
}

static int run_traced(char **command, const char *file, const char *html)
{
    char path[4200];
    struct stat before = {0}, after;
    if (!make_absolute(path, sizeof path, file))
        return tool_fail("%s: the path is too long", file);
    bool was = stat(path, &before) == 0;
    setenv("OLYMPUS_TIMELINE", path, 1);
    setenv("OMPI_MCA_mca_base_env_list", "OLYMPUS_TIMELINE", 0); /* mpirun passes it to other hosts */
    time_t began = time(NULL);
    int status = tool_run(command, -1, -1);
    fflush(stdout);
    if (status == 127)
        return 127;
    if (stat(path, &after) != 0 || (was && after.st_mtime == before.st_mtime && after.st_size == before.st_size &&
                                    after.st_ino == before.st_ino)) {
        char *part = first_part(path, began);
        if (part)
            tool_fail(
                "the job of %s ended early (status %d): each rank wrote its own part, as %s; oly trace %s sums it up",
                command[0], status, part, part);
        else
            tool_fail("%s wrote no timeline (status %d); is it a program of Olympus, and does it reach oly_finalize?",
                      command[0], status);
        free(part);
        return status ? status : TOOL_FAILED;
    }
    printf("\ntimeline: %s; open it at https://ui.perfetto.dev (Open trace file) or chrome://tracing, or as a page: "
           "oly trace %s --html timeline.html\n\n",
           path, file);
    int summed = sum_up(path, html);
    return status ? status : summed;
}

/* A file that cannot be run is to be read, whatever its name: not a program of that name elsewhere on the PATH is meant. */
static bool is_data(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) && access(path, X_OK) != 0;
}

/* Options of oly come before the command; those after it are its own. */
int trace_main(int argc, char **argv)
{
    const char *file = "olympus-timeline.json", *html = NULL;
    int at = 1;
    while (at < argc && argv[at][0] == '-' && strcmp(argv[at], "--") != 0) {
        const char **to = strcmp(argv[at], "-o") == 0 ? &file : strcmp(argv[at], "--html") == 0 ? &html : NULL;
        if (!to || at + 1 == argc)
            return tool_usage(to ? "%s needs a file" : "unknown option %s", argv[at]);
        *to = argv[at + 1];
        at += 2;
    }
    at += at < argc && strcmp(argv[at], "--") == 0;
    if (at == argc)
        return tool_usage("which program, or which timeline?");
    bool page = at + 3 == argc && strcmp(argv[at + 1], "--html") == 0, alone = at + 1 == argc || page;
    if (tool_is_timeline(argv[at]) || (alone && is_data(argv[at])))
        return alone ? sum_up(argv[at], page ? argv[at + 2] : html)
                     : tool_usage("unexpected argument %s", argv[at + 1]);
    if (at + 1 == argc && access(argv[at], F_OK) == 0 && access(argv[at], X_OK) != 0)
        return tool_fail("%s is neither a timeline nor a program", argv[at]);
    if (tool_is_timeline_name(argv[at]))
        return tool_fail("%s: no such file", argv[at]);
    return run_traced(argv + at, file, html);
}
