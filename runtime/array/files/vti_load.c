/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_load_vti: fields of VTK's images, of which every process reads its own boxes. */
#include "array/arguments.h"
#include "array/files/load.h"
#include "array/files/parts.h"
#include "array/files/vti_load_pieces.h"
#include "core/hash.h"
#include "device/platform.h"
#include <olympus/formats.h>
#include <string.h>

static oly_status load_members(const oly_crew *crew, oly_status mine, oly_vti_source *l, oly_sharding sharding,
                               oly_type *type, oly_array *x)
{
    oly_shared_file f;
    oly_status st = oly_shared_open(mine, l->path, &f);
    if (st == OLY_OK)
        st = oly_vti_source_read(l, f.file, f.facts.size, 0);
    if (st == OLY_OK && l->vti.part)
        st = oly_fail(OLY_IO,
                      "cannot read %s: it has only a part of the image, as its WholeExtent says; read the .pvti that "
                      "names all parts",
                      l->path);
    if (st == OLY_OK)
        *type = oly_vti_source_type(l);
    uint64_t arguments = oly_hash_mix(oly_hash_text(34, l->path ? l->path : ""), sharding ? sharding->hash : 0);
    OLY_TRY(oly_shared_agree(crew, st, oly_hash_text(arguments, l->name ? l->name : ""), l->contents, &f));
    st = oly_parts_make(type, sharding, x);
    if (st == OLY_OK && oly_platform_get()->computes) {
        oly_file_array region = oly_vti_source_region(l, f.file);
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
    oly_vti_source l = {.path = path, .name = name};
    oly_status st = oly_files_need_no_trace();
    if (st == OLY_OK) {
        st = oly_crew_begin(sharding ? sharding->mesh : NULL, 33, &crew);
        if (crew.me >= 0)
            st = oly_names_pieces(path) ? oly_vti_load_pieces(&crew, st, &l, sharding, &type, &x)
                                        : load_members(&crew, st, &l, sharding, &type, &x);
        st = oly_load_finish(&crew, st, &type, sharding, &x);
        oly_crew_end(&crew);
        oly_release(l.vti.field);
    }
    oly_raise(st);
    return st == OLY_OK ? x : NULL;
}
