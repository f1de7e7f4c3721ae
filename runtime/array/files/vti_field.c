/* SPDX-License-Identifier: BSD-3-Clause */
/* See vti_field.h. */
#include "array/files/vti_field.h"
#include "core/hash.h"
#include "core/min_max.h"
#include "file/file.h"
#include <inttypes.h>
#include <string.h>

enum { LARGEST_HEAD = 1 << 20 };

static oly_status find_field(oly_vti_source *l)
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
static oly_status check_count(const oly_vti_source *l, int file, int64_t size)
{
    int64_t bytes = oly_vti_field_bytes(&l->vti, l->field), at = l->vti.data + l->field->offset;
    uint64_t count = 0;
    char raw[8];
    int n = l->vti.header_bytes;
    if (bytes > size || at > size - bytes)
        return oly_fail(OLY_IO,
                        "cannot read %s: it is truncated: it has %" PRId64
                        " bytes, and the data of \"%s\" ends at %" PRId64,
                        l->path, size, l->field->name, at + bytes);
    OLY_TRY(oly_file_read(file, l->path, raw, (size_t)n, at - n));
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

oly_status oly_vti_source_read(oly_vti_source *l, int file, int64_t size, int rank)
{
    size_t n = (size_t)oly_smaller(size, LARGEST_HEAD);
    char *bytes = oly_malloc(n + 1);
    if (!bytes)
        return oly_out_of_memory(n + 1, "the header of a file");
    oly_status st = oly_file_read(file, l->path, bytes, n, 0);
    if (st == OLY_OK)
        st = oly_vti_read_head(l->path, bytes, n, rank, &l->vti);
    if (st == OLY_OK)
        l->contents = oly_hash(33, bytes, (size_t)l->vti.data);
    oly_release(bytes);
    if (st == OLY_OK)
        st = find_field(l);
    return st == OLY_OK ? check_count(l, file, size) : st;
}

oly_type oly_vti_source_type(const oly_vti_source *l)
{
    oly_type type = {.dtype = l->field->dtype, .rank = l->vti.rank};
    memcpy(type.shape, l->vti.shape, sizeof l->vti.shape);
    if (l->field->components)
        type.shape[type.rank++] = l->field->components;
    return type;
}

oly_file_array oly_vti_source_region(const oly_vti_source *l, int file)
{
    oly_type type = oly_vti_source_type(l);
    oly_file_array a = {.file = file,
                        .path = l->path,
                        .offset = l->vti.data + l->field->offset,
                        .dtype = type.dtype,
                        .rank = type.rank,
                        .swapped = l->vti.swapped};
    memcpy(a.shape, type.shape, sizeof a.shape);
    return a;
}
