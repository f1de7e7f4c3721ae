/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_save_npy, oly_load_npy. */
#include "array/arguments.h"
#include "array/files/load.h"
#include "array/files/npy_array.h"
#include "array/files/parts.h"
#include "array/files/replace.h"
#include "core/hash.h"
#include "device/platform.h"
#include "file/file.h"
#include <olympus/files.h>
#include <string.h>

/* -- saving ------------------------------------------------------------------------------------------------------------------- */

static oly_status save_members(const oly_crew *crew, oly_status mine, const char *path, oly_array x)
{
    oly_new_file f;
    char bytes[OLY_NPY_WRITTEN_MOST];
    oly_npy_header h = oly_npy_header_of(&x->type);
    size_t length = oly_npy_header_write(&h, 1, bytes);
    if (mine == OLY_OK && !path)
        mine = oly_fail(OLY_INVALID, "the path is NULL");
    uint64_t arguments = oly_hash(oly_hash_text(1, path ? path : ""), bytes, length);
    OLY_TRY(oly_replace_begin(crew, mine, arguments, path, (int64_t)length + oly_npy_bytes(&h), &f));
    oly_status st = oly_crew_leads(crew) ? oly_file_write(f.file, path, bytes, length, 0) : OLY_OK;
    oly_file_array region = oly_npy_elements(&h, f.file, path, 0);
    if (st == OLY_OK)
        st = oly_parts_write(x, &region);
    return oly_replace_end(crew, st, &f);
}

oly_status(oly_save_npy)(const char *path, oly_array x)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_array(x));
    oly_status st = oly_files_need_no_trace();
    if (st == OLY_OK)
        st = oly_parts_check(x);
    if (st != OLY_OK)
        return oly_raise(st);
    oly_crew crew;
    st = oly_crew_begin(x->sharding->mesh, 1, &crew);
    if (crew.me >= 0)
        st = save_members(&crew, st, path, x);
    st = oly_crew_tell(&crew, st, NULL, 0);
    oly_crew_end(&crew);
    return oly_raise(st);
}

/* -- loading ------------------------------------------------------------------------------------------------------------------ */

static oly_status load_members(const oly_crew *crew, oly_status mine, const char *path, oly_sharding sharding,
                               oly_type *type, oly_array *x)
{
    oly_shared_file f;
    oly_npy_header h;
    uint64_t contents = 0;
    memset(&h, 0, sizeof h);
    oly_status st = oly_shared_open(mine, path, &f);
    if (st == OLY_OK)
        st = oly_npy_read(f.file, path, 0, f.facts.size, &h, &contents);
    uint64_t arguments = oly_hash_mix(oly_hash_text(2, path ? path : ""), sharding ? sharding->hash : 0);
    *type = oly_npy_type_of(&h);
    OLY_TRY(oly_shared_agree(crew, st, arguments, contents, &f));
    st = oly_parts_make(type, sharding, x);
    if (st == OLY_OK && oly_platform_get()->computes) {
        oly_file_array region = oly_npy_elements(&h, f.file, path, 0);
        st = oly_parts_read(*x, &region);
    }
    return oly_shared_end(crew, st, &f);
}

oly_array(oly_load_npy)(const char *path, oly_sharding sharding)
{
    OLY_ENTER(NULL);
    if (oly_need_or_null(sharding, OLY_HANDLE_SHARDING) != OLY_OK)
        return NULL;
    oly_crew crew;
    oly_type type = {0};
    oly_array x = NULL;
    oly_status st = oly_files_need_no_trace();
    if (st == OLY_OK) {
        st = oly_crew_begin(sharding ? sharding->mesh : NULL, 2, &crew);
        if (crew.me >= 0)
            st = load_members(&crew, st, path, sharding, &type, &x);
        st = oly_load_finish(&crew, st, &type, sharding, &x);
        oly_crew_end(&crew);
    }
    oly_raise(st);
    return st == OLY_OK ? x : NULL;
}
