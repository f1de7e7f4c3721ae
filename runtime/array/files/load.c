/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading one file by several processes. See load.h. */
#include "array/files/load.h"
#include "array/files/parts.h"
#include "core/hash.h"
#include "file/file.h"
#include <inttypes.h>
#include <string.h>
#include <time.h>

oly_status oly_shared_open(oly_status mine, const char *path, oly_shared_file *f)
{
    *f = (oly_shared_file){.path = path, .file = -1};
    if (mine != OLY_OK)
        return mine;
    if (!path)
        return oly_fail(OLY_INVALID, "the path is NULL");
    return oly_file_open(path, &f->file, &f->facts);
}

/* What members compare. */
enum { ARGUMENTS, SIZE, SECONDS, NANOSECONDS, CONTENTS, COMPARED };

static oly_status differ(const oly_crew *crew, int m, const int64_t *first, const int64_t *other, const char *path)
{
    if (first[ARGUMENTS] != other[ARGUMENTS])
        return oly_fail(OLY_DIVERGED,
                        "ranks %d and %d call with different arguments; all ranks name the same file, and the same of "
                        "everything else",
                        crew->process[0], crew->process[m]);
    if (first[SIZE] != other[SIZE])
        return oly_fail(OLY_IO,
                        "%s is not the same file everywhere: on rank %d it has %" PRId64 " bytes, on rank %d %" PRId64
                        "; put it where all hosts see it",
                        path, crew->process[0], first[SIZE], crew->process[m], other[SIZE]);
    return oly_fail(OLY_IO,
                    "%s is not the same file everywhere: on ranks %d and %d its %s; put it where all hosts see it, and "
                    "do not change it while it is read",
                    path, crew->process[0], crew->process[m],
                    first[CONTENTS] != other[CONTENTS] ? "contents differ" : "times of the last change differ");
}

oly_status oly_shared_agree(const oly_crew *crew, oly_status mine, uint64_t arguments, uint64_t contents,
                            oly_shared_file *f)
{
    int64_t seen[COMPARED] = {[ARGUMENTS] = (int64_t)arguments,
                              [SIZE] = f->facts.size,
                              [SECONDS] = f->facts.seconds,
                              [NANOSECONDS] = f->facts.nanoseconds,
                              [CONTENTS] = (int64_t)contents};
    int64_t *all = oly_malloc(sizeof seen * (size_t)crew->n);
    if (!all && mine == OLY_OK)
        mine = oly_out_of_memory(sizeof seen * (size_t)crew->n, "reading a file");
    oly_status st = oly_crew_agree_on(crew, mine, COMPARED, seen, all ? all : seen);
    for (int m = 1; m < crew->n && st == OLY_OK && crew->me >= 0 && all; m++)
        if (memcmp(all, all + (int64_t)m * COMPARED, sizeof seen) != 0)
            st = differ(crew, m, all, all + (int64_t)m * COMPARED, f->path);
    oly_release(all);
    if (st != OLY_OK)
        oly_shared_close(f);
    return st;
}

void oly_shared_close(oly_shared_file *f)
{
    if (f->file >= 0)
        oly_storage_get()->close(f->file);
    f->file = -1;
}

static oly_status still_the_same(const oly_shared_file *f)
{
    oly_file_facts now;
    int returned = oly_storage_get()->fstat(f->file, &now);
    if (returned < 0)
        return oly_file_fail("read", f->path, returned);
    if (now.size == f->facts.size && now.seconds == f->facts.seconds && now.nanoseconds == f->facts.nanoseconds)
        return OLY_OK;
    return oly_fail(OLY_IO, "cannot read %s: it has changed while it was read (%" PRId64 " bytes, then %" PRId64 ")",
                    f->path, f->facts.size, now.size);
}

oly_status oly_shared_end(const oly_crew *crew, oly_status mine, oly_shared_file *f)
{
    if (f->file >= 0) {
        mine = mine == OLY_OK ? still_the_same(f) : mine;
        oly_shared_close(f);
    }
    return oly_crew_agree(crew, mine);
}

/* What those who are left out learn. */
typedef struct load_record {
    int64_t dtype, rank, shape[OLY_MAX_RANK];
} load_record;

oly_status oly_load_finish(const oly_crew *crew, oly_status mine, const oly_type *type, oly_sharding sharding,
                           oly_array *x)
{
    load_record record = {.dtype = type->dtype, .rank = type->rank};
    memcpy(record.shape, type->shape, sizeof record.shape);
    oly_status st = oly_crew_tell(crew, mine, &record, sizeof record);
    if (st == OLY_OK && crew->me < 0) {
        oly_type told = {.dtype = (oly_dtype)record.dtype, .rank = (int)record.rank};
        memcpy(told.shape, record.shape, sizeof told.shape);
        st = oly_parts_make(&told, sharding, x);
    }
    if (st == OLY_OK)
        st = oly_parts_done(*x, crew->id);
    if (st != OLY_OK && *x) {
        oly_free(*x);
        *x = NULL;
    }
    return st;
}
