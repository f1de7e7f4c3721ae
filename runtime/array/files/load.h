/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that the processes of a crew read together: they must see the same file, and it must stay as it is. Callable by
 * runtime/array. */
#ifndef OLY_ARRAY_FILES_LOAD_H
#define OLY_ARRAY_FILES_LOAD_H
#include "array/files/crew.h"
#include "file/storage.h"

typedef struct oly_shared_file {
    const char *path;
    int file; /* -1 */
    oly_file_facts facts;
} oly_shared_file;

/* Opens it on this member, unless that has failed before (mine). Not agreed: the caller looks into it, and then calls
 * oly_shared_agree. */
oly_status oly_shared_open(oly_status mine, const char *path, oly_shared_file *f);
/* The same status on all members: their own (mine), or OLY_IO if they see files of other sizes, times or contents (a hash of what they
 * have read), OLY_DIVERGED if their arguments differ. After a failure it is closed. */
oly_status oly_shared_agree(const oly_crew *crew, oly_status mine, uint64_t arguments, uint64_t contents,
                            oly_shared_file *f);
/* When all members have read: closes it. fails, on all, if one of them has failed (mine) or the file has changed. */
oly_status oly_shared_end(const oly_crew *crew, oly_status mine, oly_shared_file *f);

/* Instead, after a failure that is the same on all members. */
void oly_shared_close(oly_shared_file *f);

/* The end of every call that loads: others learn the type; on all, x is an array, or NULL after a failure. */
oly_status oly_load_finish(const oly_crew *crew, oly_status mine, const oly_type *type, oly_sharding sharding,
                           oly_array *x);
#endif
