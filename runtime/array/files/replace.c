/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that appear whole. See replace.h. */
#include "array/files/replace.h"
#include "core/hash.h"
#include "file/file.h"
#include "file/leftovers.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static oly_status name_temporary(oly_new_file *f, uint64_t number)
{
    int n = oly_temporary_name(f->temporary, sizeof f->temporary, f->path, number);
    return n < 0 || n >= (int)sizeof f->temporary ? oly_file_fail("write", f->path, ENAMETOOLONG) : OLY_OK;
}

static uint64_t fresh_number(void)
{
    static uint64_t made;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t number = oly_hash_mix((uint64_t)now.tv_sec, (uint64_t)now.tv_nsec);
    return oly_hash_mix(oly_hash_mix(number, (uint64_t)getpid()), ++made);
}

static oly_status create(oly_new_file *f, int64_t size, uint64_t number)
{
    bool exists;
    OLY_TRY(oly_file_may_replace(f->path, &exists));
    OLY_TRY(name_temporary(f, number));
    oly_leftovers_remove(f->path);
    OLY_TRY(oly_file_create(f->temporary, f->path, 0666, &f->file));
    f->made = true;
    return oly_file_truncate(f->file, f->path, size);
}

static oly_status open_made(oly_new_file *f, uint64_t number)
{
    OLY_TRY(name_temporary(f, number));
    f->file = oly_storage_get()->open(f->temporary, O_RDWR | O_NOFOLLOW, 0);
    if (f->file >= 0)
        return OLY_OK;
    oly_status st =
        oly_fail(OLY_IO,
                 "cannot write %s: %s; the first process has begun it, and this one cannot open it: is it on "
                 "a file system that all hosts share, and does no other program save this file?",
                 f->path, strerror(-f->file));
    f->file = -1;
    return st;
}

static void remove_made(oly_new_file *f)
{
    if (f->file >= 0)
        oly_storage_get()->close(f->file);
    if (f->made)
        oly_storage_get()->unlink(f->temporary);
    f->file = -1;
    f->made = false;
}

void oly_replace_abandon(const oly_crew *crew, oly_new_file *f)
{
    remove_made(f);
    oly_crew_wait(crew);
}

oly_status oly_replace_begin(const oly_crew *crew, oly_status mine, uint64_t arguments, const char *path, int64_t size,
                             oly_new_file *f)
{
    *f = (oly_new_file){.path = path, .file = -1};
    if (crew->me < 0)
        return mine;
    OLY_TRY(oly_crew_agree_same(crew, mine, arguments));
    int64_t number = oly_crew_leads(crew) ? (int64_t)fresh_number() : 0;
    int64_t *numbers = oly_malloc(sizeof *numbers * (size_t)crew->n);
    oly_status st = numbers ? OLY_OK : oly_out_of_memory(sizeof *numbers * (size_t)crew->n, "writing a file");
    if (st == OLY_OK && oly_crew_leads(crew))
        st = create(f, size, (uint64_t)number);
    st = oly_crew_agree_on(crew, st, 1, &number, numbers ? numbers : &number);
    if (st != OLY_OK)
        remove_made(f);
    number = numbers ? numbers[0] : 0;
    oly_release(numbers);
    OLY_TRY(st);
    st = oly_crew_agree(crew, oly_crew_leads(crew) ? OLY_OK : open_made(f, (uint64_t)number));
    if (st != OLY_OK)
        oly_replace_abandon(crew, f);
    return st;
}

/* The leader's, when all parts are there. */
static oly_status take_name(oly_new_file *f)
{
    int renamed = oly_storage_get()->rename(f->temporary, f->path);
    if (renamed < 0)
        return oly_file_fail_to_name(f->temporary, f->path, renamed);
    f->made = false;
    return oly_file_sync_folder_of(f->path);
}

oly_status oly_replace_end(const oly_crew *crew, oly_status mine, oly_new_file *f)
{
    if (crew->me < 0)
        return mine;
    if (mine == OLY_OK)
        mine = oly_file_sync(f->file, f->path);
    oly_status closed = oly_file_close(f->file, f->path);
    f->file = -1;
    oly_status st = oly_crew_agree(crew, mine == OLY_OK ? closed : mine);
    if (st == OLY_OK) {
        st = oly_crew_leads(crew) ? take_name(f) : OLY_OK;
        if (st != OLY_OK)
            remove_made(f);
        return oly_crew_agree(crew, st);
    }
    oly_replace_abandon(crew, f);
    return st;
}
