/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_save_raw, oly_load_raw: the elements of an array from a byte of a file on. */
#include "array/arguments.h"
#include "array/files/load.h"
#include "array/files/parts.h"
#include "array/files/replace.h"
#include "core/hash.h"
#include "core/min_max.h"
#include "device/platform.h"
#include "file/file.h"
#include <fcntl.h>
#include <inttypes.h>
#include <olympus/files.h>
#include <string.h>

/* What is asked for: where the elements are, and how. */
typedef struct request {
    const char *path;
    int64_t offset, end;
    oly_type type;
    oly_raw_options options;
} request;

static oly_status check(request *r)
{
    if (!r->path)
        return oly_fail(OLY_INVALID, "the path is NULL");
    if (r->offset < 0)
        return oly_fail(OLY_INVALID, "%s: the offset is %" PRId64 " bytes; it is 0 or more", r->path, r->offset);
    OLY_TRY(oly_type_check(&r->type));
    int64_t bytes = oly_type_size(&r->type) * (int64_t)oly_dtype_size(r->type.dtype);
    if (__builtin_add_overflow(r->offset, bytes, &r->end))
        return oly_fail(OLY_OVERFLOW, "%s: %" PRId64 " bytes from byte %" PRId64 " on end beyond 2^63", r->path, bytes,
                        r->offset);
    return OLY_OK;
}

static oly_file_array region_of(const request *r, int file)
{
    bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    oly_file_array a = {.file = file,
                        .path = r->path,
                        .offset = r->offset,
                        .dtype = r->type.dtype,
                        .rank = r->type.rank,
                        .fortran = r->options.fortran,
                        .swapped = r->options.big_endian == little};
    memcpy(a.shape, r->type.shape, sizeof a.shape);
    return a;
}

static uint64_t arguments_of(const request *r, uint64_t seed)
{
    uint64_t h = oly_hash_text(seed, r->path ? r->path : "");
    h = oly_hash_mix(h, (uint64_t)r->offset);
    h = oly_hash_mix(h, (uint64_t)r->type.dtype << 8 | (uint64_t)r->options.big_endian << 1 |
                            (uint64_t)r->options.fortran);
    return r->type.rank > 0 && r->type.rank <= OLY_MAX_RANK
               ? oly_hash(h, r->type.shape, sizeof *r->type.shape * (size_t)r->type.rank)
               : h;
}

/* -- saving ------------------------------------------------------------------------------------------------------------------- */

enum { OTHER_BYTES = 4 << 20 }; /* of a file that is there, up to which it is written anew */

/* Bytes [at, end) of the file that is there. */
static oly_status copy_bytes(int from, int to, const char *path, int64_t at, int64_t end)
{
    size_t n = at < end ? (size_t)(end - at) : 0;
    char *bytes = n ? oly_malloc(n) : NULL;
    oly_status st = n && !bytes ? oly_out_of_memory(n, "the other bytes of a file") : OLY_OK;
    if (st == OLY_OK && n)
        st = oly_file_read(from, path, bytes, n, at);
    if (st == OLY_OK && n)
        st = oly_file_write(to, path, bytes, n, at);
    oly_release(bytes);
    return st;
}

/* What stands before and after the array in the file of `size` bytes. By the first member. */
static oly_status copy_others(const request *r, int to, int64_t size)
{
    int from = oly_storage_get()->open(r->path, O_RDONLY | O_NOFOLLOW, 0);
    if (from < 0)
        return oly_file_fail("write", r->path, from);
    oly_status st = copy_bytes(from, to, r->path, 0, oly_smaller(r->offset, size));
    if (st == OLY_OK)
        st = copy_bytes(from, to, r->path, r->end, size);
    oly_storage_get()->close(from);
    return st;
}

/* As a whole; size: of the file that is there, 0 if there is none. */
static oly_status save_new(const oly_crew *crew, oly_status mine, const request *r, int64_t size, oly_array x)
{
    oly_new_file f;
    OLY_TRY(oly_replace_begin(crew, mine, arguments_of(r, 4), r->path, oly_larger(r->end, size), &f));
    oly_file_array region = region_of(r, f.file);
    oly_status st = oly_crew_leads(crew) && size > 0 ? copy_others(r, f.file, size) : OLY_OK;
    return oly_replace_end(crew, st == OLY_OK ? oly_parts_write(x, &region) : st, &f);
}

/* In place. The first member extends it, and takes that back if somebody fails. */
static oly_status save_into(const oly_crew *crew, const request *r, oly_array x)
{
    oly_file_facts facts = {0};
    bool exists;
    int file = -1;
    oly_status st = oly_file_may_replace(r->path, &exists);
    if (st == OLY_OK && (file = oly_storage_get()->open(r->path, O_RDWR | O_NOFOLLOW, 0)) < 0)
        st = oly_file_fail("write", r->path, file);
    int returned = st == OLY_OK ? oly_storage_get()->fstat(file, &facts) : 0;
    if (returned < 0)
        st = oly_file_fail("write", r->path, returned);
    bool extends = facts.size < r->end && oly_crew_leads(crew);
    if (st == OLY_OK && extends)
        st = oly_file_truncate(file, r->path, r->end);
    st = oly_crew_agree(crew, st);
    oly_status agreed = st;
    oly_file_array region = region_of(r, file);
    if (st == OLY_OK)
        st = oly_parts_write(x, &region);
    if (st == OLY_OK)
        st = oly_file_sync(file, r->path);
    if (agreed == OLY_OK)
        st = oly_crew_agree(crew, st);
    if (st != OLY_OK && extends && file >= 0)
        oly_storage_get()->truncate(file, facts.size);
    if (st != OLY_OK)
        oly_crew_wait(crew); /* nobody returns before that */
    if (file >= 0)
        oly_storage_get()->close(file);
    return st;
}

/* -1: there is no file. */
static oly_status size_of(const char *path, int64_t *size)
{
    oly_file_facts facts = {0};
    bool exists;
    *size = -1;
    OLY_TRY(oly_file_may_replace(path, &exists));
    int returned = exists ? oly_storage_get()->lstat(path, &facts) : 0;
    if (returned < 0)
        return oly_file_fail("write", path, returned);
    *size = exists ? facts.size : -1;
    return OLY_OK;
}

static oly_status save_members(const oly_crew *crew, oly_status mine, const request *r, oly_array x)
{
    int64_t size = -1, *all = oly_malloc(sizeof *all * (size_t)crew->n);
    oly_status st = mine == OLY_OK ? size_of(r->path, &size) : mine;
    if (!all && st == OLY_OK)
        st = oly_out_of_memory(sizeof *all * (size_t)crew->n, "writing a file");
    st = oly_crew_agree_on(crew, st, 1, &size, all ? all : &size);
    size = st == OLY_OK && all ? all[0] : -1;
    oly_release(all);
    OLY_TRY(st);
    int64_t others = oly_smaller(r->offset, size) + (size > r->end ? size - r->end : 0);
    if (others <= OTHER_BYTES)
        return save_new(crew, st, r, size > 0 ? size : 0, x);
    OLY_TRY(oly_crew_agree_same(crew, st, arguments_of(r, 5)));
    return save_into(crew, r, x);
}

oly_status oly_save_raw_with(const char *path, int64_t offset, oly_array x, oly_raw_options options)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_array(x));
    oly_status st = oly_files_need_no_trace();
    if (st == OLY_OK)
        st = oly_parts_check(x);
    if (st != OLY_OK)
        return oly_raise(st);
    oly_crew crew;
    request r = {.path = path, .offset = offset, .type = x->type, .options = options};
    st = oly_crew_begin(x->sharding->mesh, 3, &crew);
    if (st == OLY_OK)
        st = check(&r);
    if (crew.me >= 0)
        st = save_members(&crew, st, &r, x);
    st = oly_crew_tell(&crew, st, NULL, 0);
    oly_crew_end(&crew);
    return oly_raise(st);
}

/* -- loading ------------------------------------------------------------------------------------------------------------------ */

static oly_status load_members(const oly_crew *crew, oly_status mine, const request *r, oly_sharding sharding,
                               oly_array *x)
{
    oly_shared_file f;
    oly_status st = oly_shared_open(mine, r->path, &f);
    if (st == OLY_OK && f.facts.size < r->end)
        st = oly_fail(OLY_IO,
                      "cannot read %s: %s from byte %" PRId64 " on ends at byte %" PRId64 ", and the file has %" PRId64,
                      r->path, oly_type_short(&r->type), r->offset, r->end, f.facts.size);
    OLY_TRY(oly_shared_agree(crew, st, arguments_of(r, 6), 0, &f));
    st = oly_parts_make(&r->type, sharding, x);
    oly_file_array region = region_of(r, f.file);
    if (st == OLY_OK && oly_platform_get()->computes)
        st = oly_parts_read(*x, &region);
    return oly_shared_end(crew, st, &f);
}

oly_array oly_load_raw_with(const char *path, int64_t offset, oly_dtype dtype, int rank, const int64_t *shape,
                            oly_sharding sharding, oly_raw_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_or_null(sharding, OLY_HANDLE_SHARDING) != OLY_OK || oly_need_numbers(rank, shape) != OLY_OK)
        return NULL;
    oly_crew crew;
    request r = {.path = path, .offset = offset, .type = {.dtype = dtype, .rank = rank}, .options = options};
    oly_array x = NULL;
    for (int d = 0; d < rank && d < OLY_MAX_RANK; d++)
        r.type.shape[d] = shape[d];
    oly_status st = oly_files_need_no_trace();
    if (st == OLY_OK) {
        st = oly_crew_begin(sharding ? sharding->mesh : NULL, 4, &crew);
        if (st == OLY_OK)
            st = check(&r);
        if (crew.me >= 0)
            st = load_members(&crew, st, &r, sharding, &x);
        st = oly_load_finish(&crew, st, &r.type, sharding, &x);
        oly_crew_end(&crew);
    }
    oly_raise(st);
    return st == OLY_OK ? x : NULL;
}
