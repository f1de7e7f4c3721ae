/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_load_hdf5: every process opens the file for itself and reads its own boxes; nothing waits for another one inside HDF5. */
#include "array/arguments.h"
#include "array/files/load.h"
#include "array/files/parts.h"
#include "core/hash.h"
#include "device/platform.h"
#include "file/hdf5_file.h"
#include <olympus/formats.h>
#include <string.h>

typedef struct loading {
    const char *path, *name;
    oly_hdf5_id file;
    oly_hdf5_set set;
} loading;

static oly_status open_set(loading *l)
{
    OLY_TRY(oly_hdf5_need());
    if (!l->path || !l->name || !*l->name)
        return oly_fail(OLY_INVALID, "the %s is %s", l->path ? "name" : "path", l->path && l->name ? "empty" : "NULL");
    OLY_TRY(oly_hdf5_open(l->path, l->path, false, &l->file));
    OLY_TRY(oly_hdf5_set_open(l->file, l->path, l->name, &l->set));
    return OLY_OK;
}

static oly_type type_of(const oly_hdf5_set *s)
{
    oly_type type = {.dtype = s->dtype, .rank = s->rank};
    memcpy(type.shape, s->shape, sizeof type.shape);
    return type;
}

static oly_status read_boxes(const loading *l, oly_array x)
{
    oly_parts_mapped m;
    OLY_TRY(oly_parts_map(x, &m));
    oly_status st = OLY_OK;
    for (int s = 0; s < m.n && st == OLY_OK; s++)
        if (m.memory[s])
            st = oly_hdf5_read(&l->set, m.box[s].lo, m.box[s].hi, m.memory[s]);
    oly_status unmapped = oly_parts_unmap(x, &m);
    return st == OLY_OK ? unmapped : st;
}

/* What the members have seen and asked for must be the same. */
static uint64_t arguments_of(const loading *l, oly_sharding sharding, const oly_type *type)
{
    uint64_t h = oly_hash_text(oly_hash_text(36, l->path ? l->path : ""), l->name ? l->name : "");
    h = oly_hash(h, type->shape, sizeof type->shape[0] * (size_t)type->rank);
    return oly_hash_mix(oly_hash_mix(h, type->dtype), sharding ? sharding->hash : 0);
}

static oly_status load_members(const oly_crew *crew, oly_status mine, loading *l, oly_sharding sharding, oly_type *type,
                               oly_array *x)
{
    if (mine == OLY_OK)
        mine = open_set(l);
    if (mine == OLY_OK)
        *type = type_of(&l->set);
    oly_status st = oly_crew_agree_same(crew, mine, arguments_of(l, sharding, type));
    if (st == OLY_OK) {
        st = oly_parts_make(type, sharding, x);
        if (st == OLY_OK && oly_platform_get()->computes)
            st = read_boxes(l, *x);
        st = oly_crew_agree(crew, st);
    }
    oly_hdf5_set_close(&l->set);
    if (l->file >= 0)
        oly_hdf5_close(l->file, l->path);
    return st;
}

oly_array(oly_load_hdf5)(const char *path, const char *name, oly_sharding sharding)
{
    OLY_ENTER(NULL);
    if (oly_need_or_null(sharding, OLY_HANDLE_SHARDING) != OLY_OK)
        return NULL;
    oly_crew crew;
    oly_type type = {0};
    oly_array x = NULL;
    loading l = {.path = path, .name = name, .file = -1, .set.id = -1};
    oly_status st = oly_files_need_no_trace();
    if (st == OLY_OK) {
        st = oly_crew_begin(sharding ? sharding->mesh : NULL, 36, &crew);
        if (crew.me >= 0)
            st = load_members(&crew, st, &l, sharding, &type, &x);
        st = oly_load_finish(&crew, st, &type, sharding, &x);
        oly_crew_end(&crew);
    }
    oly_raise(st);
    return st == OLY_OK ? x : NULL;
}
