/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays from host memory, and moving arrays to other shardings. */
#include "array/place.h"
#include "array/arguments.h"
#include "array/dispatch.h"
#include "array/origin.h"
#include "array/trace.h"
#include "communicator.h"
#include "core/hash.h"
#include "device/queue.h"
#include "kernel.h"
#include "run/introduction.h"
#include <string.h>

enum { FROM_LOCAL = 23, FROM_SHARDS = 29 }; /* how arrays were made */

/* Memory with the data on the default device; NULL if that belongs to another process. */
static oly_status buffer_of_data(const void *data, oly_sharding s, size_t bytes, oly_buffer **buffer)
{
    const int *positions;
    *buffer = NULL;
    if (oly_mesh_local_positions(s->mesh, &positions) == 0)
        return OLY_OK;
    oly_buffer *b = oly_buffer_take(oly_mesh_local_device(s->mesh, 0), bytes);
    if (!b)
        return oly_buffer_fail(bytes, "an array from host memory");
    oly_status st = oly_buffer_write(b, bytes, data);
    if (st != OLY_OK)
        oly_buffer_drop(b);
    else
        *buffer = b;
    return st;
}

static size_t bytes_of(const oly_type *type)
{
    return (size_t)oly_type_size(type) * oly_dtype_size(type->dtype);
}

static void use_data(oly_array x, oly_buffer *b, const void *data)
{
    if (b)
        x->shard[0] = b;
    if (oly_mesh_leaves_out(
            x->sharding->mesh)) /* processes other than the default device's have the data, but no array */
        x->identity.origin = oly_origin_of_data(data, bytes_of(&x->type));
}

oly_status oly_array_of_data(const void *data, const oly_type *type, bool loose, oly_array *out)
{
    oly_buffer *b;
    oly_sharding s = oly_sharding_uncommitted();
    if (!s)
        return OLY_MEMORY;
    OLY_TRY(buffer_of_data(data, s, bytes_of(type), &b));
    *out = (loose ? oly_array_loose : oly_array_new)(type, s, false, b != NULL);
    if (!*out) {
        oly_buffer_drop(b);
        return OLY_MEMORY;
    }
    use_data(*out, b, data);
    return OLY_OK;
}

oly_status oly_array_rewrite(oly_array x, const void *data)
{
    oly_buffer *b;
    OLY_TRY(buffer_of_data(data, x->sharding, bytes_of(&x->type), &b));
    oly_array_renew(x);
    use_data(x, b, data);
    return OLY_OK;
}

static oly_status from_host(const void *data, oly_dtype dtype, int rank, const int64_t *shape, oly_array *out)
{
    oly_type type = {.dtype = dtype, .rank = rank};
    if ((unsigned)dtype >= OLY_N_DTYPES)
        return oly_fail(OLY_INVALID, "element type %d does not exist", (int)dtype);
    if (rank < 0 || rank > OLY_MAX_RANK)
        return oly_fail(OLY_INVALID, "an array has 0 to %d dimensions, not %d", OLY_MAX_RANK, rank);
    for (int d = 0; d < rank; d++)
        type.shape[d] = shape[d];
    OLY_TRY(oly_type_check(&type));
    if (oly_type_size(&type) && !data)
        return oly_fail(OLY_INVALID, "the data of %s is NULL", oly_type_short(&type));
    return oly_array_of_data(data, &type, false, out);
}

oly_array(oly_from_host)(const void *data, oly_dtype dtype, int rank, const int64_t *shape)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, shape) != OLY_OK)
        return NULL;
    oly_array x = NULL;
    oly_raise(from_host(data, dtype, rank, shape, &x));
    return x;
}

/* -- moving --------------------------------------------------------------------------------------------------------- */

/* Does every one of several processes of the job own a device of the mesh? */
static bool spans_all_processes(oly_mesh mesh)
{
    int n = oly_mesh_processes(), covered = 0, last = -1;
    if (n == 1 || mesh->everywhere)
        return false;
    if (!mesh->devices)
        return oly_mesh_process_of(mesh->n_devices - 1) == n - 1;
    for (int r = 0; r < n; r++)
        for (int p = 0; p < mesh->n_devices && last < r; p++)
            if (oly_mesh_process_of(mesh->devices[p]) == r) {
                covered++;
                last = r;
            }
    return covered == n;
}

/* Copies are compared at once, by an exchange that waits for pending work, while arrays are few or large. Those of many small
 * arrays are compared as part of the calls that processes make alike (run/together.c), so before anything computed from
 * them reaches another process. */
enum { COMPARED_AT_ONCE = 64, COMPARED_BYTES = 1 << 20 };
static int compared;

void oly_place_forget(void)
{
    compared = 0;
}

/* Alike on all processes, which make these calls together. */
static bool is_compared_at_once(size_t bytes)
{
    if (bytes < COMPARED_BYTES && compared >= COMPARED_AT_ONCE)
        return false;
    compared += compared < COMPARED_AT_ONCE;
    return true;
}

/* Every process splits its own copy of an uncommitted array, so the copies must be equal. */
static oly_status check_same_everywhere(oly_array x, oly_sharding sharding)
{
    size_t bytes = bytes_of(&x->type);
    if (!oly_world_has_peers() || x->graph || !x->sharding->mesh->everywhere || oly_trace_current() ||
        !spans_all_processes(sharding->mesh) || !is_compared_at_once(bytes))
        return OLY_OK;
    OLY_TRY(oly_array_readable(x));
    int n = oly_world_size();
    oly_queue_drain(); /* the gathering below must not run while another thread's queued exchanges do */
    oly_array_wait(x);
    uint64_t mine = 0, *all = oly_malloc(sizeof *all * (size_t)n);
    oly_status st = all ? oly_contents_of(x->shard[0], x->identity.value, bytes, &mine)
                        : oly_out_of_memory(sizeof *all * (size_t)n, "a check");
    mine = oly_hash_mix(bytes, mine);
    if (st == OLY_OK)
        st = oly_world_gather(&mine, all, sizeof mine);
    for (int r = 1; r < n && st == OLY_OK; r++)
        if (all[r] != all[0])
            st = oly_fail(
                OLY_DIVERGED,
                "the values of %s are not the same on each process (ranks 0 and %d differ); give the same data "
                "everywhere, or each process's own part with oly_from_local",
                oly_type_short(&x->type), r);
    oly_release(all);
    return st;
}

oly_array(oly_device_put)(oly_array x, oly_sharding sharding)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK || oly_need_or_null(sharding, OLY_HANDLE_SHARDING) != OLY_OK)
        return NULL;
    if (x->deleted) {
        oly_raise(oly_array_readable(x));
        return NULL;
    }
    if (!sharding) { /* unchanged */
        oly_array same = x->graph ? x : oly_array_share(x);
        if (!same)
            oly_raise(OLY_MEMORY);
        return same;
    }
    oly_status st = oly_sharding_check_rank(sharding, x->type.rank);
    if (st == OLY_OK)
        st = check_same_everywhere(x, sharding);
    if (st != OLY_OK) {
        oly_raise(st);
        return NULL;
    }
    if (!x->graph && !oly_trace_current() && !x->deleted && x->committed && x->sharding == sharding)
        return oly_array_share(x);
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.params.sharding = sharding;
    oly_operand operand = oly_operand_array(x);
    return oly_dispatch(oly_compose_place, 1, &operand, &recipe);
}

/* By which processes that hold no part of the array know it. */
static void name_for_others(oly_array x, uint64_t event, uint64_t kind, uint64_t how)
{
    const int *positions;
    oly_mesh mesh = x->sharding->mesh;
    oly_origin o = {.call = event, .count = true};
    oly_origin_end(&o);
    oly_origin_result(&o, 0, &x->identity);
    x->identity.lineage = oly_hash_mix(kind, oly_origin_number(kind));
    bool stand_in = how == FROM_SHARDS && oly_mesh_local_positions(mesh, &positions) == 0;
    oly_introduction_made(mesh, kind, x->identity.lineage, stand_in);
}

oly_status oly_note_made(oly_array x, uint64_t how)
{
    uint64_t type = (uint64_t)x->type.dtype << 8 | (uint64_t)x->type.rank, value = x->identity.value;
    uint64_t kind = oly_hash(type, x->type.shape, sizeof *x->type.shape * (size_t)x->type.rank);
    kind = oly_hash_mix(kind, x->sharding->hash);
    uint64_t event = oly_hash_mix(how, kind);
    OLY_TRY(oly_together_note(x->sharding->mesh, event, oly_current_site(), &x->identity));
    x->identity.value = value;
    if (oly_mesh_leaves_out(x->sharding->mesh))
        name_for_others(x, event, kind, how);
    return OLY_OK;
}

/* -- from each process's part ------------------------------------------------------------------------------ */

/* Where the box's range begins in the local part, along one dimension: local ranges follow each other in global
 * order. */
static int64_t local_start(const oly_box *boxes, int n, int d, int64_t lo)
{
    int64_t start = 0;
    for (int k = 0; k < n; k++) {
        bool fresh = boxes[k].lo[d] < lo && boxes[k].hi[d] > boxes[k].lo[d];
        for (int j = 0; j < k && fresh; j++)
            fresh = boxes[j].lo[d] != boxes[k].lo[d];
        start += fresh ? boxes[k].hi[d] - boxes[k].lo[d] : 0;
    }
    return start;
}

static oly_status copy_shard(oly_array x, int s, const oly_box *boxes, int n, const void *data,
                             const int64_t *local_shape)
{
    const oly_box *b = &boxes[s];
    size_t element = oly_dtype_size(x->type.dtype), bytes = (size_t)oly_box_count(b) * element;
    x->shard[s] = oly_buffer_take(oly_mesh_local_device(x->sharding->mesh, s), bytes);
    if (!x->shard[s])
        return oly_buffer_fail(bytes, "a shard");
    oly_copy_task t = {.element_bytes = element, .rank = b->rank};
    int64_t to = 1, from = 1, offset = 0;
    for (int d = b->rank - 1; d >= 0; d--) {
        t.extent[d] = b->hi[d] - b->lo[d];
        t.to_stride[d] = to;
        t.from_stride[d] = from;
        offset += local_start(boxes, n, d, b->lo[d]) * from;
        to *= t.extent[d];
        from *= local_shape[d];
    }
    void *host;
    OLY_TRY(oly_buffer_map(x->shard[s], OLY_ACCESS_WRITE, bytes, &host));
    for (int c = 0, chunks = bytes && host ? oly_copy_chunks(&t) : 0; c < chunks; c++)
        oly_copy_run(&t, host, (const char *)data + (size_t)offset * element, c, chunks);
    return oly_buffer_unmap(x->shard[s], OLY_ACCESS_WRITE, bytes, host);
}

oly_status oly_given_type(oly_sharding sharding, oly_dtype dtype, int rank, const int64_t *shape, oly_type *type)
{
    if ((unsigned)dtype >= OLY_N_DTYPES)
        return oly_fail(OLY_INVALID, "element type %d does not exist", (int)dtype);
    if (rank < 0 || rank > OLY_MAX_RANK)
        return oly_fail(OLY_INVALID, "an array has 0 to %d dimensions, not %d", OLY_MAX_RANK, rank);
    *type = (oly_type){.dtype = dtype, .rank = rank};
    for (int d = 0; d < rank; d++)
        type->shape[d] = shape[d];
    OLY_TRY(oly_type_check(type));
    return oly_sharding_check_rank(sharding, rank);
}

static bool is_empty(int rank, const int64_t *shape)
{
    bool empty = false;
    for (int d = 0; d < rank; d++)
        empty = empty || shape[d] == 0;
    return empty;
}

/* Is every box empty? Then any empty local part is right, whatever its other extents. */
static bool holds_nothing(const oly_box *boxes, int n)
{
    bool nothing = true;
    for (int s = 0; s < n; s++)
        nothing = nothing && oly_box_count(&boxes[s]) == 0;
    return nothing;
}

static oly_status from_local(oly_sharding sharding, oly_dtype dtype, int rank, const int64_t *global_shape,
                             const void *data, const int64_t *local_shape, oly_array *out)
{
    oly_type type;
    const int *positions;
    OLY_TRY(oly_given_type(sharding, dtype, rank, global_shape, &type));
    int n = oly_mesh_local_positions(sharding->mesh, &positions);
    oly_box *boxes = oly_malloc(sizeof *boxes * (size_t)(n + 1));
    if (!boxes)
        return oly_out_of_memory(sizeof *boxes * (size_t)n, "the parts of an array");
    oly_layout l = oly_layout_canonical(sharding, rank, type.shape);
    for (int s = 0; s < n; s++)
        boxes[s] = oly_layout_shard(&l, positions[s]);
    oly_status st = OLY_OK;
    bool empty = n == 0 || is_empty(rank, local_shape), nothing = empty && holds_nothing(boxes, n);
    for (int d = 0; d < rank && st == OLY_OK && !nothing; d++) {
        int64_t want = local_start(boxes, n, d, INT64_MAX);
        if (want != local_shape[d])
            st = oly_fail(
                OLY_SHAPE,
                "this process holds %lld of the %lld elements along dimension %d of %s, but its local part has %lld; "
                "give the parts of its own devices, in order",
                (long long)want, (long long)type.shape[d], d, oly_type_short(&type), (long long)local_shape[d]);
    }
    if (st == OLY_OK && !data && !empty)
        st = oly_fail(OLY_INVALID, "the local part of %s is NULL", oly_type_short(&type));
    if (st == OLY_OK && !(*out = oly_array_new(&type, sharding, true, n)))
        st = OLY_MEMORY;
    for (int s = 0; s < n && st == OLY_OK; s++)
        st = copy_shard(*out, s, boxes, n, data, local_shape);
    if (st == OLY_OK)
        st = oly_note_made(*out, FROM_LOCAL);
    oly_release(boxes);
    return st;
}

oly_array(oly_from_local)(oly_sharding sharding, oly_dtype dtype, int rank, const int64_t *global_shape,
                          const void *data, const int64_t *local_shape)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, global_shape) != OLY_OK || oly_need_numbers(rank, local_shape) != OLY_OK ||
        oly_need(sharding, OLY_HANDLE_SHARDING) != OLY_OK)
        return NULL;
    oly_array x = NULL;
    oly_status st = from_local(sharding, dtype, rank, global_shape, data, local_shape, &x);
    oly_raise(st);
    return st == OLY_OK ? x : NULL;
}

/* -- from one array on each device -------------------------------------------------------------------------------------------- */

/* Finds the local position of the device that holds the array. */
static oly_status find_place(const oly_type *type, oly_sharding sharding, oly_array x, int k, int n,
                             const int *positions, int *s)
{
    char have[128];
    if (!x->committed || x->sharding->mesh->n_devices != 1 || x->n_shards != 1) {
        oly_sharding_str(x->sharding, have, sizeof have);
        return oly_fail(OLY_DEVICES,
                        "part %d of %s is %s, %s, %s; put each part on its device first: oly_device_put(x, "
                        "oly_single_device(d))",
                        k, oly_type_short(type), oly_type_short(&x->type),
                        x->committed ? "committed to" : "uncommitted", have);
    }
    int position = oly_mesh_position_of(sharding->mesh, oly_mesh_device_id(x->sharding->mesh, 0));
    for (*s = 0; *s < n && positions[*s] != position; ++*s)
        continue;
    if (*s < n)
        return OLY_OK;
    oly_sharding_str(sharding, have, sizeof have);
    return oly_fail(OLY_DEVICES,
                    "part %d of %s is on device %d, which is not in the sharding, %s; give one part on each device of "
                    "this process that the sharding has",
                    k, oly_type_short(type), oly_mesh_device_id(x->sharding->mesh, 0), have);
}

static oly_status check_part(const oly_type *type, const oly_box *box, oly_array x, int k)
{
    if (x->type.dtype != type->dtype)
        return oly_fail(OLY_DTYPE, "part %d of %s is %s; all parts have the element type of the whole: oly_astype", k,
                        oly_type_short(type), oly_type_short(&x->type));
    oly_type part = {.dtype = type->dtype, .rank = type->rank};
    bool fits = x->type.rank == type->rank;
    for (int d = 0; d < type->rank; d++) {
        part.shape[d] = box->hi[d] - box->lo[d];
        fits = fits && x->type.shape[d] == part.shape[d];
    }
    if (fits)
        return OLY_OK;
    return oly_fail(OLY_SHAPE, "part %d of %s, on device %d, is %s; that device holds %s of it", k,
                    oly_type_short(type), oly_mesh_device_id(x->sharding->mesh, 0), oly_type_short(&x->type),
                    oly_type_short(&part));
}

/* Takes a reference to the buffer of every part, at its position. */
static oly_status share_parts(oly_array whole, const oly_type *type, const oly_array *parts)
{
    const int *positions;
    int n = oly_mesh_local_positions(whole->sharding->mesh, &positions), s;
    oly_layout l = oly_layout_canonical(whole->sharding, type->rank, type->shape);
    for (int k = 0; k < n; k++) {
        OLY_TRY(oly_array_readable(parts[k]));
        OLY_TRY(find_place(type, whole->sharding, parts[k], k, n, positions, &s));
        if (whole->shard[s])
            return oly_fail(OLY_DEVICES,
                            "part %d of %s is on device %d, as another part is; give one part on each device of "
                            "this process that the sharding has",
                            k, oly_type_short(type), oly_mesh_device_id(parts[k]->sharding->mesh, 0));
        oly_box box = oly_layout_shard(&l, positions[s]);
        OLY_TRY(check_part(type, &box, parts[k], k));
        oly_array_wait(parts[k]);
        whole->shard[s] = parts[k]->shard[0];
        oly_buffer_hold(whole->shard[s]);
    }
    return OLY_OK;
}

static oly_status from_shards(oly_sharding sharding, oly_dtype dtype, int rank, const int64_t *global_shape, int n,
                              const oly_array *parts, oly_array *out)
{
    oly_type type;
    const int *positions;
    OLY_TRY(oly_given_type(sharding, dtype, rank, global_shape, &type));
    int wanted = oly_mesh_local_positions(sharding->mesh, &positions);
    if (n != wanted)
        return oly_fail(OLY_INVALID,
                        "Expected %d per-device arrays (this is how many devices are addressable by the sharding), but "
                        "got %d; give one part of %s on each of them",
                        wanted, n, oly_type_short(&type));
    if (!(*out = oly_array_new(&type, sharding, true, n)))
        return OLY_MEMORY;
    oly_status st = share_parts(*out, &type, parts);
    if (st == OLY_OK)
        st = oly_note_made(*out, FROM_SHARDS);
    if (st != OLY_OK)
        oly_free(*out);
    return st;
}

oly_array(oly_from_shards)(oly_sharding sharding, oly_dtype dtype, int rank, const int64_t *global_shape, int n,
                           const oly_array *shards)
{
    OLY_ENTER(NULL);
    if (oly_need_numbers(rank, global_shape) != OLY_OK)
        return NULL;
    if (oly_need(sharding, OLY_HANDLE_SHARDING) != OLY_OK || oly_need_arrays(n, shards) != OLY_OK)
        return NULL;
    oly_array x = NULL;
    if (!sharding)
        return oly_null_array();
    for (int k = 0; k < n; k++)
        if (!shards[k]) {
            oly_null_handle();
            return NULL;
        }
    oly_status st = from_shards(sharding, dtype, rank, global_shape, n, shards, &x);
    oly_raise(st);
    return st == OLY_OK ? x : NULL;
}
