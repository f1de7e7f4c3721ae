/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that the processes of a crew write together: under another name beside its own until all of them have written their parts
 * and these are on the disk. It appears whole or not at all, on every failure the file that was there stays, and nothing else is
 * left. Callable by runtime/array. */
#ifndef OLY_ARRAY_FILES_REPLACE_H
#define OLY_ARRAY_FILES_REPLACE_H
#include "array/files/crew.h"
#include <limits.h>

typedef struct oly_new_file {
    const char *path;
    int file;  /* -1 */
    bool made; /* by this process */
    char temporary[PATH_MAX];
} oly_new_file;

/* Creates it with that many bytes, all 0, and opens it for reading and writing on all members. mine: what has failed before;
 * arguments: hash of all that members must call with alike. The same status on all members; after a failure there is no file, and
 * oly_replace_end is not called. */
oly_status oly_replace_begin(const oly_crew *crew, oly_status mine, uint64_t arguments, const char *path, int64_t size,
                             oly_new_file *f);
/* When all members have written: the file takes its name, or, if one of them has failed (mine), is removed. The same status on all
 * members; nobody returns before that is done. */
oly_status oly_replace_end(const oly_crew *crew, oly_status mine, oly_new_file *f);
/* Instead, after a failure that is the same on all members: removes it; nobody returns before that is done. */
void oly_replace_abandon(const oly_crew *crew, oly_new_file *f);
#endif
