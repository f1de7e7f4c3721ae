/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays and their boxes in files. See parts.h. */
#include "array/files/parts.h"
#include "array/origin.h"
#include "array/place.h"
#include "core/error.h"
#include "core/simulate.h"
#include "device/platform.h"
#include "run/execute.h"
#include <string.h>

oly_status oly_parts_check(oly_array x)
{
    OLY_TRY(oly_array_readable(x));
    if (!oly_platform_get()->computes)
        return oly_simulation_has_no_values(oly_type_short(&x->type));
    if (!x->type.unreduced)
        return OLY_OK;
    return oly_fail(OLY_SHARDING,
                    "the value of %s is an unreduced sum over devices; reduce it with oly_reshard before it is "
                    "written to a file",
                    oly_type_short(&x->type));
}

/* -- writing --------------------------------------------------------------------------------------------------------------------- */

/* Replicas differ in their coordinates along the axes that split nothing: the first has zeros there. */
bool oly_parts_writes(oly_array x, int s)
{
    oly_mesh mesh = x->sharding->mesh;
    const oly_spec *spec = &x->sharding->spec;
    int position, at[OLY_MAX_RANK];
    oly_array_box(x, s, &position);
    if (mesh->everywhere)
        return oly_process_index() == 0;
    unsigned splitting = 0;
    for (int d = 0; d < spec->n_dims; d++)
        for (int k = 0; k < spec->dim[d].n; k++)
            splitting |= 1u << spec->dim[d].axis[k];
    oly_mesh_coordinates(mesh, position, at);
    for (int axis = 0; axis < mesh->n_axes; axis++)
        if (!(splitting >> axis & 1) && at[axis] != 0)
            return false;
    return true;
}

static size_t bytes_of(const oly_type *type, const oly_box *box)
{
    return (size_t)oly_box_count(box) * oly_dtype_size(type->dtype);
}

static oly_status write_part(oly_array x, int s, const oly_file_array *to)
{
    int position;
    void *host;
    oly_box box = oly_array_box(x, s, &position);
    size_t bytes = bytes_of(&x->type, &box);
    if (bytes == 0)
        return OLY_OK;
    OLY_TRY(oly_buffer_map(x->shard[s], OLY_ACCESS_READ, bytes, &host));
    oly_status st = oly_file_write_box(to, &box, &box, host);
    oly_status unmapped = oly_buffer_unmap(x->shard[s], OLY_ACCESS_READ, bytes, host);
    return st == OLY_OK ? unmapped : st;
}

oly_status oly_parts_write(oly_array x, const oly_file_array *to)
{
    oly_array_wait(x);
    OLY_TRY(oly_run_refused());
    for (int s = 0; s < x->n_shards; s++)
        if (oly_parts_writes(x, s))
            OLY_TRY(write_part(x, s, to));
    return OLY_OK;
}

/* -- reading --------------------------------------------------------------------------------------------------------------------- */

static oly_status take_memory(oly_array x, int s)
{
    int position;
    oly_box box = oly_array_box(x, s, &position);
    size_t bytes = bytes_of(&x->type, &box);
    x->shard[s] = oly_buffer_take(oly_mesh_local_device(x->sharding->mesh, s), bytes);
    return x->shard[s] ? OLY_OK : oly_buffer_fail(bytes, "an array from a file");
}

oly_status oly_parts_make(const oly_type *type, oly_sharding sharding, oly_array *x)
{
    const int *positions;
    oly_sharding placed = sharding ? sharding : oly_sharding_uncommitted();
    *x = NULL;
    OLY_TRY(oly_type_check(type));
    if (!placed)
        return OLY_MEMORY;
    OLY_TRY(oly_sharding_check_rank(placed, type->rank));
    if (placed->spec.unreduced)
        return oly_fail(OLY_SHARDING,
                        "an array from a file is no sum of terms: the sharding has unreduced axes; load it with "
                        "another one");
    int n = oly_mesh_local_positions(placed->mesh, &positions);
    if (!(*x = oly_array_new(type, placed, sharding != NULL, n)))
        return OLY_MEMORY;
    oly_status st = OLY_OK;
    for (int s = 0; s < n && st == OLY_OK; s++)
        st = take_memory(*x, s);
    if (st == OLY_OK)
        return OLY_OK;
    oly_free(*x);
    *x = NULL;
    return st;
}

static int twin_of(oly_array x, int s)
{
    int position;
    oly_box box = oly_array_box(x, s, &position);
    for (int j = 0; j < s; j++) {
        oly_box other = oly_array_box(x, j, &position);
        if (oly_box_equal(&other, &box))
            return j;
    }
    return -1;
}

static oly_status read_part(oly_array x, int s, const oly_file_array *from)
{
    int position, twin = twin_of(x, s);
    void *host;
    oly_box box = oly_array_box(x, s, &position);
    size_t bytes = bytes_of(&x->type, &box);
    if (bytes == 0)
        return OLY_OK;
    if (twin >= 0)
        return oly_buffer_copy(x->shard[s], x->shard[twin], bytes);
    OLY_TRY(oly_buffer_map(x->shard[s], OLY_ACCESS_WRITE, bytes, &host));
    oly_status st = host ? oly_file_read_box(from, &box, &box, host) : OLY_OK;
    oly_status unmapped = oly_buffer_unmap(x->shard[s], OLY_ACCESS_WRITE, bytes, host);
    return st == OLY_OK ? unmapped : st;
}

oly_status oly_parts_read(oly_array x, const oly_file_array *from)
{
    for (int s = 0; s < x->n_shards; s++)
        OLY_TRY(read_part(x, s, from));
    return OLY_OK;
}

/* -- all at once ------------------------------------------------------------------------------------------------------------------- */

static void forget(oly_parts_mapped *m)
{
    oly_release(m->box);
    oly_release(m->memory);
    oly_release(m->twin);
    *m = (oly_parts_mapped){0};
}

oly_status oly_parts_map(oly_array x, oly_parts_mapped *m)
{
    size_t n = (size_t)x->n_shards + 1;
    *m = (oly_parts_mapped){.box = oly_malloc(sizeof *m->box * n),
                            .memory = oly_calloc(n, sizeof *m->memory),
                            .twin = oly_malloc(sizeof *m->twin * n)};
    oly_status st =
        m->box && m->memory && m->twin ? OLY_OK : oly_out_of_memory(sizeof *m->box * n, "the parts of an array");
    for (int s = 0; s < x->n_shards && st == OLY_OK; s++) {
        int position;
        m->box[s] = oly_array_box(x, s, &position);
        m->twin[s] = twin_of(x, s);
        if (m->twin[s] < 0 && oly_box_count(&m->box[s]) > 0)
            st = oly_buffer_map(x->shard[s], OLY_ACCESS_WRITE, bytes_of(&x->type, &m->box[s]), &m->memory[s]);
        m->n += st == OLY_OK;
    }
    if (st != OLY_OK) {
        oly_parts_unmap(x, m);
        return st;
    }
    return OLY_OK;
}

oly_status oly_parts_unmap(oly_array x, oly_parts_mapped *m)
{
    oly_status st = OLY_OK;
    for (int s = 0; s < m->n; s++) {
        size_t bytes = bytes_of(&x->type, &m->box[s]);
        oly_status mine = OLY_OK;
        if (m->memory[s])
            mine = oly_buffer_unmap(x->shard[s], OLY_ACCESS_WRITE, bytes, m->memory[s]);
        else if (m->twin[s] >= 0 && bytes > 0)
            mine = oly_buffer_copy(x->shard[s], x->shard[m->twin[s]], bytes);
        st = st == OLY_OK ? mine : st;
    }
    forget(m);
    return st;
}

oly_status oly_parts_done(oly_array x, uint64_t call)
{
    if (x->committed)
        return oly_note_made(x, 31);
    if (oly_mesh_leaves_out(x->sharding->mesh))
        x->identity.origin = call;
    return OLY_OK;
}
