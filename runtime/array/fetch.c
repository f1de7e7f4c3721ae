/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading arrays: waiting, copying to host memory, gathering from processes, shards. */
#include "array/array.h"
#include "array/arguments.h"
#include "array/dispatch.h"
#include "array/origin.h"
#include "communicator.h"
#include "core/element.h"
#include "core/simulate.h"
#include "device/platform.h"
#include "kernel.h"
#include "run/execute.h"
#include <string.h>

/* The local boxes cover the array if the distinct ones add up to its size. */
static bool covered(oly_array x)
{
    int64_t found = 0;
    int position;
    for (int s = 0; s < x->n_shards; s++) {
        oly_box b = oly_array_box(x, s, &position);
        bool fresh = true;
        for (int j = 0; j < s && fresh; j++) {
            oly_box o = oly_array_box(x, j, &position);
            fresh = !oly_box_equal(&o, &b);
        }
        found += fresh ? oly_box_count(&b) : 0;
    }
    return found == oly_type_size(&x->type) && (x->n_shards > 0);
}

/* Copies shard s, which holds the elements of box b, to its position in the whole array. */
static oly_status fetch_shard(oly_array x, int s, const oly_box *b, char *buffer)
{
    size_t element = oly_dtype_size(x->type.dtype), bytes = (size_t)oly_box_count(b) * element;
    oly_copy_task t = {.element_bytes = element, .rank = b->rank};
    int64_t to = 1, from = 1, offset = 0;
    for (int d = b->rank - 1; d >= 0; d--) {
        t.extent[d] = b->hi[d] - b->lo[d];
        t.to_stride[d] = to;
        t.from_stride[d] = from;
        offset += b->lo[d] * to;
        to *= x->type.shape[d];
        from *= t.extent[d];
    }
    void *host;
    OLY_TRY(oly_buffer_map(x->shard[s], OLY_ACCESS_READ, bytes, &host));
    for (int c = 0, n = oly_copy_chunks(&t); c < n; c++)
        oly_copy_run(&t, buffer + (size_t)offset * element, host, c, n);
    return oly_buffer_unmap(x->shard[s], OLY_ACCESS_READ, bytes, host);
}

static oly_status check_reduced(oly_array x)
{
    return !x->type.unreduced
               ? OLY_OK
               : oly_fail(OLY_SHARDING,
                          "the value of %s is an unreduced sum over devices; reduce it with oly_reshard, or read its "
                          "terms with OLY_FOR_EACH_SHARD",
                          oly_type_short(&x->type));
}

oly_status oly_array_fetch(oly_array x, void *buffer)
{
    OLY_TRY(oly_array_readable(x));
    if (!oly_platform_get()->computes)
        return oly_simulation_has_no_values(oly_type_short(&x->type));
    OLY_TRY(check_reduced(x));
    if (!covered(x))
        return oly_fail(
            OLY_NOT_ADDRESSABLE,
            "fetching the value of %s that spans non-addressable (non process local) devices is not possible; use "
            "oly_process_allgather on all processes, or OLY_FOR_EACH_SHARD for this process's part",
            oly_type_short(&x->type));
    oly_array_wait(x);
    OLY_TRY(oly_run_refused());
    for (int s = 0; s < x->n_shards; s++) {
        int position;
        oly_box b = oly_array_box(x, s, &position);
        if (oly_box_count(&b) > 0)
            OLY_TRY(fetch_shard(x, s, &b, buffer));
    }
    return OLY_OK;
}

oly_status(oly_block_until_ready)(oly_array x)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_array(x));
    oly_status st = oly_array_readable(x);
    if (st == OLY_OK) {
        oly_array_wait(x);
        st = oly_run_refused();
    }
    return oly_raise(st);
}

static oly_status check_room(oly_array x, const void *buffer, size_t bytes)
{
    size_t need = (size_t)oly_type_size(&x->type) * oly_dtype_size(x->type.dtype);
    if (bytes < need || (need && !buffer))
        return oly_fail(OLY_INVALID, "the buffer of %zu bytes is too small for %s, which has %zu", buffer ? bytes : 0,
                        oly_type_short(&x->type), need);
    return OLY_OK;
}

oly_status(oly_get)(oly_array x, void *buffer, size_t bytes)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_array(x));
    oly_status st = oly_array_readable(x);
    if (st == OLY_OK)
        st = check_room(x, buffer, bytes);
    if (st == OLY_OK)
        st = oly_array_fetch(x, buffer);
    return oly_raise(st);
}

double(oly_item)(oly_array x)
{
    OLY_ENTER(0);
    if (oly_need_array(x) != OLY_OK)
        return 0;
    double element = 0; /* large enough for any type */
    if (!x)
        return 0;
    oly_status st = oly_array_readable(x);
    if (st == OLY_OK && oly_type_size(&x->type) != 1)
        st = oly_fail(OLY_SHAPE, "only an array of one element can be taken as a number, not %s",
                      oly_type_short(&x->type));
    if (st == OLY_OK && oly_dtype_kind(x->type.dtype) == OLY_KIND_COMPLEX)
        st = oly_fail(OLY_DTYPE,
                      "%s is complex, the number asked for is real; take oly_real or oly_imag of it, or oly_get",
                      oly_type_short(&x->type));
    if (st == OLY_OK)
        st = oly_array_fetch(x, &element);
    return oly_raise(st) == OLY_OK ? oly_real_at(x->type.dtype, &element) : 0;
}

/* The first device in `mesh` of each process that has one, by process number; *result NULL on lack of memory. */
static oly_status device_of_each_owner(oly_mesh mesh, oly_mesh *result)
{
    int n = oly_mesh_processes(), total = oly_mesh_all_ids(), owners = 0;
    int *first = oly_malloc(sizeof *first * (size_t)n);
    if (!first)
        return oly_out_of_memory(sizeof *first * (size_t)n, "a list of processes");
    for (int r = 0; r < n; r++)
        first[r] = total;
    for (int position = 0; position < mesh->n_devices; position++) {
        int id = oly_mesh_device_id(mesh, position), process = oly_mesh_process_of(id);
        first[process] = id < first[process] ? id : first[process];
    }
    for (int r = 0; r < n; r++)
        if (first[r] < total)
            first[owners++] = first[r];
    *result = (oly_mesh_from_devices)(1, (const char *[]){"process"}, &owners, first);
    oly_release(first);
    return *result ? OLY_OK : oly_kept_status();
}

/* Gathers the array on the processes of its mesh, which all take part. */
static oly_status gather_among_owners(oly_array x, bool leaves_out, void *buffer)
{
    oly_mesh owners = NULL;
    if (oly_is_fully_addressable(x))
        return oly_array_fetch(x, buffer);
    if (leaves_out)
        OLY_TRY(device_of_each_owner(x->sharding->mesh, &owners));
    oly_array here = (oly_device_put)(x, owners ? (oly_named)(owners, "") : oly_sharding_default());
    if (!here)
        return oly_kept_status();
    oly_status st = OLY_OK;
    if (oly_sharding_is_replicated(x->sharding) && !oly_together_verified(&x->identity)) /* nothing had to be sent */
        st = oly_together_meet(x->sharding->mesh, "oly_process_allgather");
    if (st == OLY_OK)
        st = oly_array_fetch(here, buffer);
    oly_free(here);
    return st;
}

/* For a process that has no part of the array: asks one that has. */
static oly_status ask(oly_array x, void *buffer)
{
    uint64_t origin = oly_origin_of(x);
    if (!origin)
        return oly_fail(OLY_NOT_ADDRESSABLE, "%s is on another process, and this one does not know how it was made",
                        oly_type_short(&x->type));
    oly_queue_drain();
    OLY_TRY(oly_run_refused());
    return oly_values_ask(oly_mesh_keeper(x->sharding->mesh), origin, buffer,
                          (size_t)oly_type_size(&x->type) * oly_dtype_size(x->type.dtype), oly_type_short(&x->type));
}

/* An array that may be on some processes only: they gather it among themselves. */
static oly_status gather(oly_array x, void *buffer)
{
    oly_mesh mesh = x->sharding->mesh;
    if (mesh->everywhere || !oly_world_has_peers())
        return oly_array_fetch(x, buffer);
    bool leaves_out = oly_mesh_leaves_out(mesh);
    if (leaves_out && x->n_shards == 0)
        return ask(x, buffer);
    OLY_TRY(gather_among_owners(x, leaves_out, buffer));
    if (leaves_out && oly_mesh_keeper(mesh) == oly_process_index()) {
        bool *has_part = oly_mesh_has(mesh);
        oly_values_keep(oly_origin_of(x), buffer, (size_t)oly_type_size(&x->type) * oly_dtype_size(x->type.dtype),
                        has_part);
        oly_release(has_part);
    }
    return OLY_OK;
}

oly_status(oly_process_allgather)(oly_array x, void *buffer, size_t bytes)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_array(x));
    oly_status st = oly_array_readable(x);
    if (st == OLY_OK)
        st = check_room(x, buffer, bytes);
    if (st == OLY_OK)
        st = check_reduced(x);
    if (st == OLY_OK)
        st = gather(x, buffer);
    return oly_raise(st);
}

/* -- shards --------------------------------------------------------------------------------------------------------------------- */

int oly_shard_count(oly_array x)
{
    OLY_ENTER(0);
    if (oly_need_array(x) != OLY_OK)
        return 0;
    return x && !x->graph ? x->n_shards : 0;
}

static int replica_of(oly_array x, int position, const oly_box *box)
{
    oly_layout l = oly_layout_canonical(x->sharding, x->type.rank, x->type.shape);
    int n = 0;
    for (int p = 0; p < position; p++) {
        oly_box b = oly_layout_shard(&l, p);
        n += oly_box_equal(&b, box);
    }
    return n;
}

static oly_status get_shard(oly_array x, int k, oly_shard *shard)
{
    int position;
    OLY_TRY(oly_array_readable(x));
    if (k < 0 || k >= x->n_shards)
        return oly_fail(OLY_INVALID, "shard %d does not exist; this process holds %d", k, x->n_shards);
    oly_array_wait(x);
    OLY_TRY(oly_run_refused());
    oly_box b = oly_array_box(x, k, &position);
    oly_type type = x->type;
    shard->device = oly_get_device(oly_mesh_device_id(x->sharding->mesh, position));
    shard->replica = replica_of(x, position, &b);
    shard->rank = b.rank;
    for (int d = 0; d < b.rank; d++) {
        shard->start[d] = b.lo[d];
        type.shape[d] = shard->extent[d] = b.hi[d] - b.lo[d];
    }
    OLY_TRY(oly_array_host(x, k, &shard->memory));
    shard->device_memory = x->shard[k]->data;
    oly_sharding one = (oly_single_device)(shard->device);
    shard->data = one ? oly_array_new(&type, one, true, 1) : NULL;
    if (!shard->data)
        return OLY_MEMORY;
    oly_buffer_hold(x->shard[k]);
    shard->data->shard[0] = x->shard[k];
    return OLY_OK;
}

oly_shard oly_get_shard(oly_array x, int k)
{
    OLY_ENTER((oly_shard){0});
    if (oly_need_array(x) != OLY_OK)
        return (oly_shard){0};
    oly_shard s = {0};
    if (x)
        oly_raise(get_shard(x, k, &s));
    return s;
}
