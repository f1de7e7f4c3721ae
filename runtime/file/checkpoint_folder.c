/* SPDX-License-Identifier: BSD-3-Clause */
/* Names in a folder of checkpoints. See checkpoint_folder.h. */
#include "file/checkpoint_folder.h"
#include "file/file.h"
#include "core/hash.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static oly_status too_long(const char *folder)
{
    return oly_file_fail("use", folder, ENAMETOOLONG);
}

static oly_status checked_length(int length, const char *folder)
{
    return length >= 0 && length < OLY_CHECKPOINT_PATH ? OLY_OK : too_long(folder);
}

oly_status oly_checkpoint_file(const char *path, const char *name, char file[OLY_CHECKPOINT_PATH])
{
    return checked_length(snprintf(file, OLY_CHECKPOINT_PATH, "%s/%s", path, name), path);
}

oly_status oly_checkpoint_path(const char *folder, const oly_checkpoint_found *which, char path[OLY_CHECKPOINT_PATH])
{
    return checked_length(snprintf(path, OLY_CHECKPOINT_PATH,
                                   which->replaced ? "%s/.step-%08" PRId64 ".old" : "%s/step-%08" PRId64, folder,
                                   which->step),
                          folder);
}

/* -- looking ------------------------------------------------------------------------------------------------------------- */

/* Is this the name of a checkpoint, exactly as it is written? */
static bool is_checkpoint(const char *name, oly_checkpoint_found *found)
{
    char again[64];
    *found = (oly_checkpoint_found){.replaced = name[0] == '.'};
    const char *digits = name + found->replaced + 5;
    if (strlen(name) > 40 || strncmp(name + found->replaced, "step-", 5) != 0 || *digits < '0' || *digits > '9')
        return false;
    errno = 0;
    found->step = strtoll(digits, NULL, 10);
    snprintf(again, sizeof again, found->replaced ? ".step-%08" PRId64 ".old" : "step-%08" PRId64, found->step);
    return errno == 0 && strcmp(name, again) == 0;
}

typedef struct finding {
    int n, room;
    oly_checkpoint_found *found;
    bool failed;
} finding;

static int note_found(void *context, const char *name)
{
    finding *f = context;
    oly_checkpoint_found one;
    if (!is_checkpoint(name, &one))
        return 0;
    if (f->n == f->room) {
        int room = f->room ? 2 * f->room : 16;
        oly_checkpoint_found *more = oly_realloc(f->found, sizeof *more * (size_t)room);
        if (!more) {
            f->failed = true;
            return 1;
        }
        f->found = more;
        f->room = room;
    }
    f->found[f->n++] = one;
    return 0;
}

/* The newest first; a replaced one behind the one that has taken its place. */
static int newest_first(const void *a, const void *b)
{
    const oly_checkpoint_found *p = a, *q = b;
    return p->step != q->step ? (p->step < q->step) - (p->step > q->step) : p->replaced - q->replaced;
}

oly_status oly_checkpoint_scan(const char *folder, int *n, oly_checkpoint_found **found)
{
    finding f = {0};
    int status = oly_storage_get()->list(folder, note_found, &f);
    *n = 0;
    *found = NULL;
    if (f.failed || (status < 0 && status != -ENOENT)) {
        oly_release(f.found);
        return f.failed ? oly_out_of_memory(sizeof *f.found * (size_t)f.room * 2, "the checkpoints of a folder")
                        : oly_file_fail("look into", folder, status);
    }
    if (f.n > 1)
        qsort(f.found, (size_t)f.n, sizeof *f.found, newest_first);
    *n = f.n;
    *found = f.found;
    return OLY_OK;
}

/* -- removing ------------------------------------------------------------------------------------------------------------ */

static int remove_file(void *context, const char *name)
{
    char file[OLY_CHECKPOINT_PATH];
    if (oly_checkpoint_file(context, name, file) == OLY_OK)
        oly_storage_get()->unlink(file);
    else
        oly_drop_message();
    return 0;
}

static bool is_folder(const char *path)
{
    oly_file_facts facts;
    return oly_storage_get()->lstat(path, &facts) >= 0 && facts.folder;
}

/* Again if the folder is not empty: some systems leave names out when others are removed meanwhile. Of a link only the link: what it
 * leads to is the user's. */
void oly_checkpoint_remove(const char *path)
{
    char where[OLY_CHECKPOINT_PATH];
    snprintf(where, sizeof where, "%s", path);
    if (!is_folder(where)) {
        oly_storage_get()->unlink(where);
        return;
    }
    for (int again = 0; again < 3; again++) {
        oly_storage_get()->list(where, remove_file, where);
        int status = oly_storage_get()->rmdir(where);
        if (status != -ENOTEMPTY && status != -EEXIST)
            return;
    }
}

typedef struct leftover {
    const char *folder;
} leftover;

/* Of writers that were killed: ".step-...tmp", ".step-...gone". */
static int remove_leftover(void *context, const char *name)
{
    const leftover *l = context;
    char path[OLY_CHECKPOINT_PATH];
    size_t n = strlen(name);
    bool is_one = strncmp(name, ".step-", 6) == 0 && n > 10 &&
                  (strcmp(name + n - 4, ".tmp") == 0 || strcmp(name + n - 5, ".gone") == 0);
    if (is_one && oly_checkpoint_file(l->folder, name, path) == OLY_OK)
        oly_checkpoint_remove(path);
    return 0;
}

/* A kill between the two renames of oly_checkpoint_commit has left the old one without its name: it gets it back. */
static oly_status recover(const char *folder)
{
    int n;
    oly_checkpoint_found *found;
    OLY_TRY(oly_checkpoint_scan(folder, &n, &found));
    oly_status st = OLY_OK;
    for (int k = 0; k < n && st == OLY_OK; k++) {
        char old[OLY_CHECKPOINT_PATH], path[OLY_CHECKPOINT_PATH];
        bool taken = k > 0 && found[k - 1].step == found[k].step;
        if (!found[k].replaced)
            continue;
        oly_checkpoint_found right = {.step = found[k].step};
        st = oly_checkpoint_path(folder, &found[k], old);
        if (st == OLY_OK)
            st = oly_checkpoint_path(folder, &right, path);
        if (st != OLY_OK)
            break;
        int status = oly_storage_get()->fsync_folder(folder); /* the new one has its name for good */
        if (taken && status >= 0)
            oly_checkpoint_remove(old);
        else if (!taken)
            status = oly_storage_get()->rename(old, path);
        if (status < 0)
            st = oly_file_fail("give back its name to", old, status);
    }
    oly_release(found);
    return st;
}

/* -- beginning ----------------------------------------------------------------------------------------------------------- */

/* mkdir -p; every new name is on the disk before something is in it. */
static oly_status make_folders(const char *folder, bool *made)
{
    char path[OLY_CHECKPOINT_PATH];
    OLY_TRY(checked_length(snprintf(path, sizeof path, "%s", folder), folder));
    for (char *at = path + 1;; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char here = *at;
        *at = '\0';
        int status = oly_storage_get()->mkdir(path, 0777);
        if (status < 0 && status != -EEXIST &&
            (here == '\0' || (status != -EROFS && status != -EACCES && status != -EPERM)))
            return oly_file_fail("make the folder", path, status);
        *made = status == 0; /* the last one */
        if (status == 0)
            OLY_TRY(oly_file_sync_folder_of(path));
        *at = here;
        if (here == '\0')
            return OLY_OK;
    }
}

/* Not for secrets: to tell writers apart. */
static uint64_t fresh_number(void)
{
    static uint64_t made;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return oly_hash_mix(oly_hash_mix((uint64_t)now.tv_nsec, (uint64_t)getpid()), (uint64_t)now.tv_sec + ++made);
}

static oly_status begin(const char *folder, int64_t step, char path[OLY_CHECKPOINT_PATH], bool *made)
{
    leftover l = {folder};
    if (!folder[0])
        return oly_file_fail("make the folder", "\"\"", ENOENT);
    OLY_TRY(make_folders(folder, made));
    oly_storage_get()->list(folder, remove_leftover, &l);
    oly_drop_message();
    OLY_TRY(recover(folder));
    OLY_TRY(checked_length(snprintf(path, OLY_CHECKPOINT_PATH, "%s/.step-%08" PRId64 ".%08" PRIx32 ".tmp", folder, step,
                                    (uint32_t)(fresh_number() >> 16)),
                           folder));
    int status = oly_storage_get()->mkdir(path, 0777);
    return status < 0 ? oly_file_fail("make the folder", path, status) : OLY_OK;
}

oly_status oly_checkpoint_begin(const char *folder, int64_t step, char path[OLY_CHECKPOINT_PATH], bool *made)
{
    *made = false;
    oly_status st = begin(folder, step, path, made);
    if (st != OLY_OK && *made)
        oly_storage_get()->rmdir(folder);
    return st;
}

void oly_checkpoint_abandon(const char *folder, const char *path, bool made)
{
    oly_checkpoint_remove(path);
    if (made)
        oly_storage_get()->rmdir(folder); /* not if something else is in it by now */
}

/* -- committing and pruning -------------------------------------------------------------------------------------------------- */

oly_status oly_checkpoint_commit(const char *folder, int64_t step, const char *path)
{
    const oly_storage *s = oly_storage_get();
    char name[OLY_CHECKPOINT_PATH], old[OLY_CHECKPOINT_PATH];
    oly_file_facts facts;
    OLY_TRY(oly_checkpoint_path(folder, &(oly_checkpoint_found){.step = step}, name));
    OLY_TRY(oly_checkpoint_path(folder, &(oly_checkpoint_found){.step = step, .replaced = true}, old));
    int status = s->fsync_folder(path);
    if (status < 0)
        return oly_file_fail("write", path, status);
    bool replaces = s->lstat(name, &facts) == 0;
    status = replaces ? s->rename(name, old) : 0;
    if (status < 0)
        return oly_file_fail("replace", name, status);
    status = s->rename(path, name);
    if (status < 0 && replaces)
        s->rename(old, name);
    if (status >= 0)
        status = s->fsync_folder(folder);
    if (status < 0)
        return oly_file_fail("give its name to", name, status);
    if (replaces)
        oly_checkpoint_remove(old);
    return OLY_OK;
}

/* Takes its name away; it is removed later, when that is on the disk. */
static oly_status take_name(const char *folder, const oly_checkpoint_found *found)
{
    char path[OLY_CHECKPOINT_PATH], gone[OLY_CHECKPOINT_PATH];
    OLY_TRY(oly_checkpoint_path(folder, found, path));
    OLY_TRY(checked_length(snprintf(gone, sizeof gone, "%s/.step-%08" PRId64 ".%08" PRIx32 ".gone", folder, found->step,
                                    (uint32_t)(fresh_number() >> 16)),
                           folder));
    int status = oly_storage_get()->rename(path, gone);
    return status < 0 ? oly_file_fail("remove", path, status) : OLY_OK;
}

static oly_status prune(const char *folder, int n, const oly_checkpoint_found *found, int64_t step, int keep,
                        int64_t *later)
{
    oly_status st = OLY_OK;
    int kept = 0, taken = 0;
    for (int k = 0; k < n && st == OLY_OK; k++) {
        char path[OLY_CHECKPOINT_PATH];
        if (found[k].replaced)
            continue;
        st = oly_checkpoint_path(folder, &found[k], path);
        if (st != OLY_OK || !is_folder(path)) /* a link to a checkpoint elsewhere, or a file: the user's */
            continue;
        if (found[k].step > step)
            *later = *later < 0 ? found[k].step : *later;
        else if (++kept > keep) {
            st = take_name(folder, &found[k]);
            taken += st == OLY_OK;
        }
    }
    if (taken > 0) {
        leftover l = {folder};
        int status = oly_storage_get()->fsync_folder(folder);
        if (status >= 0)
            oly_storage_get()->list(folder, remove_leftover, &l);
        else if (st == OLY_OK)
            st = oly_file_fail("write", folder, status);
    }
    return st;
}

oly_status oly_checkpoint_prune(const char *folder, int64_t step, int keep, int64_t *later)
{
    int n;
    oly_checkpoint_found *found;
    *later = -1;
    OLY_TRY(oly_checkpoint_scan(folder, &n, &found));
    oly_status st = prune(folder, n, found, step, keep, later);
    oly_release(found);
    return st;
}
