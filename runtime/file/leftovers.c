/* SPDX-License-Identifier: BSD-3-Clause */
/* See leftovers.h. A series of ten thousand frames goes into one folder, so what is left there is remembered. */
#include "file/leftovers.h"
#include "file/storage.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NAME_KEPT = 200, DIGITS = 16, MOST_LEFT = 64, PATH_BYTES = 1024 };
static const char suffix[] = ".part";

static struct {
    pthread_mutex_t lock;
    bool read;
    char folder[PATH_BYTES];
    int n; /* the first of them; others are found when these are gone and the folder is read again */
    char left[MOST_LEFT][NAME_KEPT + DIGITS + 8];
} last = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *name_in(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int oly_temporary_name(char *to, size_t room, const char *path, uint64_t number)
{
    const char *name = name_in(path);
    return snprintf(to, room, "%.*s.%.*s-%016" PRIx64 "%s", (int)(name - path), path, NAME_KEPT, name, number, suffix);
}

static bool is_temporary(const char *name)
{
    size_t n = strlen(name), end = DIGITS + sizeof suffix - 1;
    return name[0] == '.' && n > end + 2 && n < sizeof last.left[0] &&
           strcmp(name + n - (sizeof suffix - 1), suffix) == 0 && name[n - end - 1] == '-' &&
           strspn(name + n - end, "0123456789abcdef") == DIGITS;
}

static int remember(void *context, const char *name)
{
    (void)context;
    if (is_temporary(name))
        snprintf(last.left[last.n++], sizeof last.left[0], "%s", name);
    return last.n == MOST_LEFT;
}

static void read_folder(const char *folder)
{
    snprintf(last.folder, sizeof last.folder, "%s", folder);
    last.n = 0;
    oly_storage_get()->list(*folder ? folder : ".", remember, NULL);
    last.read = true;
}

static bool is_of(const char *left, const char *name)
{
    size_t n = strlen(name) < NAME_KEPT ? strlen(name) : NAME_KEPT;
    return strlen(left) == 1 + n + 1 + DIGITS + sizeof suffix - 1 && strncmp(left + 1, name, n) == 0;
}

static void remove_of(const char *folder, const char *name)
{
    char path[PATH_BYTES + sizeof last.left[0]];
    for (int k = 0; k < last.n; k++)
        if (is_of(last.left[k], name)) {
            snprintf(path, sizeof path, "%s%s", folder, last.left[k]);
            oly_storage_get()->unlink(path);
            memmove(last.left[k], last.left[last.n - 1], sizeof last.left[0]);
            last.n--;
            k--;
        }
}

void oly_leftovers_remove(const char *path)
{
    char folder[PATH_BYTES];
    const char *name = name_in(path);
    int n = snprintf(folder, sizeof folder, "%.*s", (int)(name - path), path);
    if (n < 0 || n >= (int)sizeof folder)
        return;
    pthread_mutex_lock(&last.lock);
    if (!last.read || strcmp(last.folder, folder) != 0 || last.n == MOST_LEFT)
        read_folder(folder);
    remove_of(folder, name);
    pthread_mutex_unlock(&last.lock);
}
