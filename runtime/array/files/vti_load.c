/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_load_vti: fields of VTK's images, of which every process reads its own boxes. */
#include "array/arguments.h"
#include "array/files/load.h"
#include "array/files/parts.h"
#include "core/hash.h"
#include "core/min_max.h"
#include "device/platform.h"
#include "file/file.h"
#include "file/vti.h"
#include <inttypes.h>
#include <olympus/formats.h>
#include <string.h>

enum { LARGEST_HEAD = 1 << 20 };

typedef struct loading {
    const char *path, *name;
    oly_vti vti;
    const oly_vti_field *field;
    int header_bytes;
    uint64_t contents; /* hash of the header */
} loading;

static oly_status find_field(loading *l)
{
    oly_text names = {0};
    for (int k = 0; k < l->vti.n; k++) {
        if (!l->name || strcmp(l->vti.field[k].name, l->name) == 0) {
            l->field = &l->vti.field[k];
            oly_text_free(&names);
            return OLY_OK;
        }
        oly_text_add(&names, "%s%s", k ? ", " : "", l->vti.field[k].name);
    }
    oly_status st = oly_fail(OLY_INVALID, "%s has no array named \"%.80s\"; it has %.300s", l->path, l->name,
                             oly_text_chars(&names));
    oly_text_free(&names);
    return st;
}

/* The number of bytes before the data, which has 4 or 8 bytes itself. */
static oly_status check_count(const oly_shared_file *f, loading *l)
{
    int64_t bytes = oly_vti_field_bytes(&l->vti, l->field), at = l->vti.data + l->field->offset;
    uint64_t count = 0;
    char raw[8];
    int n = l->vti.header_bytes;
    if (bytes > f->facts.size || at > f->facts.size - bytes)
        return oly_fail(OLY_IO,
                        "cannot read %s: it is truncated: it has %" PRId64
                        " bytes, and the data of \"%s\" ends at %" PRId64,
                        l->path, f->facts.size, l->field->name, at + bytes);
    OLY_TRY(oly_file_read(f->file, l->path, raw, (size_t)n, at - n));
    oly_swap_bytes(n == 8 ? OLY_UINT64 : OLY_UINT32, l->vti.swapped, raw);
    memcpy(&count, raw, (size_t)n);
    if (n == 4) {
        uint32_t narrow;
        memcpy(&narrow, raw, sizeof narrow);
        count = narrow;
    }
    if (count != (uint64_t)bytes)
        return oly_fail(OLY_IO, "cannot read %s: \"%s\" should have %" PRId64 " bytes, and its data says %" PRIu64,
                        l->path, l->field->name, bytes, count);
    return OLY_OK;
}

static oly_status read_head(const oly_shared_file *f, loading *l)
{
    size_t n = (size_t)oly_smaller(f->facts.size, LARGEST_HEAD);
    char *bytes = oly_malloc(n + 1);
    if (!bytes)
        return oly_out_of_memory(n + 1, "the header of a file");
    oly_status st = oly_file_read(f->file, f->path, bytes, n, 0);
    if (st == OLY_OK)
        st = oly_vti_read_head(f->path, bytes, n, &l->vti);
    if (st == OLY_OK)
        l->contents = oly_hash(33, bytes, (size_t)l->vti.data);
    oly_release(bytes);
    if (st == OLY_OK)
        st = find_field(l);
    return st == OLY_OK ? check_count(f, l) : st;
}

static oly_type type_of(const loading *l)
{
    oly_type type = {.dtype = l->field->dtype, .rank = l->vti.rank};
    memcpy(type.shape, l->vti.shape, sizeof l->vti.shape);
    if (l->field->components)
        type.shape[type.rank++] = l->field->components;
    return type;
}

static oly_file_array region_of(const loading *l, const oly_type *type, int file)
{
    oly_file_array a = {.file = file,
                        .path = l->path,
                        .offset = l->vti.data + l->field->offset,
                        .dtype = type->dtype,
                        .rank = type->rank,
                        .swapped = l->vti.swapped};
    memcpy(a.shape, type->shape, sizeof a.shape);
    return a;
}

static oly_status load_members(const oly_crew *crew, oly_status mine, loading *l, oly_sharding sharding, oly_type *type,
                               oly_array *x)
{
    oly_shared_file f;
    oly_status st = oly_shared_open(mine, l->path, &f);
    if (st == OLY_OK)
        st = read_head(&f, l);
    if (st == OLY_OK)
        *type = type_of(l);
    uint64_t arguments = oly_hash_mix(oly_hash_text(34, l->path ? l->path : ""), sharding ? sharding->hash : 0);
    OLY_TRY(oly_shared_agree(crew, st, oly_hash_text(arguments, l->name ? l->name : ""), l->contents, &f));
    st = oly_parts_make(type, sharding, x);
    if (st == OLY_OK && oly_platform_get()->computes) {
        oly_file_array region = region_of(l, type, f.file);
        st = oly_parts_read(*x, &region);
    }
    return oly_shared_end(crew, st, &f);
}

oly_array(oly_load_vti)(const char *path, const char *name, oly_sharding sharding)
{
    OLY_ENTER(NULL);
    if (oly_need_or_null(sharding, OLY_HANDLE_SHARDING) != OLY_OK)
        return NULL;
    oly_crew crew;
    oly_type type = {0};
    oly_array x = NULL;
    loading l = {.path = path, .name = name};
    oly_status st = oly_files_need_no_trace();
    if (st == OLY_OK) {
        st = oly_crew_begin(sharding ? sharding->mesh : NULL, 33, &crew);
        if (crew.me >= 0)
            st = load_members(&crew, st, &l, sharding, &type, &x);
        st = oly_load_finish(&crew, st, &type, sharding, &x);
        oly_crew_end(&crew);
        oly_release(l.vti.field);
    }
    oly_raise(st);
    return st == OLY_OK ? x : NULL;
}
