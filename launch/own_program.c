/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the library's own programs. See own_program.h. */
#define _GNU_SOURCE /* dladdr */
#include "own_program.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An executable file of root or of this user, that others may not write. */
static bool is_program(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) && (s.st_uid == 0 || s.st_uid == geteuid()) &&
           !(s.st_mode & 022) && access(path, X_OK) == 0;
}

/* What is looked for: "olymeet", "launch/olymeet". */
typedef struct wanted {
    const char *name, *folder;
    char *path;
} wanted;

static bool look_beside(const wanted *w, const char *folder, size_t length)
{
    static const char *const up[] = {"", "../", "../../"};
    int n = snprintf(w->path, OLY_PROGRAM_PATH_BYTES, "%.*s/../libexec/olympus/%s", (int)length, folder, w->name);
    if (n < OLY_PROGRAM_PATH_BYTES && is_program(w->path))
        return true;
    for (size_t k = 0; k < sizeof up / sizeof *up; k++) {
        n = snprintf(w->path, OLY_PROGRAM_PATH_BYTES, "%.*s/%s%s/%s", (int)length, folder, up[k], w->folder, w->name);
        if (n < OLY_PROGRAM_PATH_BYTES && is_program(w->path))
            return true;
    }
    return false;
}

/* Beside an olyrun in PATH. */
static bool look_in_path(const wanted *w)
{
    for (const char *at = getenv("PATH"); at && *at;) {
        size_t n = strcspn(at, ":");
        char olyrun[OLY_PROGRAM_PATH_BYTES];
        if (n > 0 && snprintf(olyrun, sizeof olyrun, "%.*s/olyrun", (int)n, at) < (int)sizeof olyrun &&
            access(olyrun, X_OK) == 0 && look_beside(w, at, n))
            return true;
        at += n + (at[n] == ':');
    }
    return false;
}

bool oly_find_own_program(const char *name, const char *folder, char path[OLY_PROGRAM_PATH_BYTES])
{
    static const char here = 0;
    const wanted w = {name, folder, path};
    char real[OLY_PROGRAM_PATH_BYTES];
    Dl_info library;
    const char *slash;
    if (dladdr(&here, &library) && library.dli_fname && (slash = strrchr(library.dli_fname, '/')) &&
        look_beside(&w, library.dli_fname, (size_t)(slash - library.dli_fname)))
        return true;
    ssize_t n = readlink("/proc/self/exe", real, sizeof real - 1);
    real[n > 0 ? n : 0] = 0;
    if ((slash = strrchr(real, '/')) && look_beside(&w, real, (size_t)(slash - real)))
        return true;
    if (look_in_path(&w))
        return true;
    snprintf(path, OLY_PROGRAM_PATH_BYTES, "%s/%s/%s", OLY_BUILD_FOLDER, folder, name);
    return is_program(path);
}
