/* SPDX-License-Identifier: BSD-3-Clause */
/* Which devices, and which boxes of an array, belong to a process: oly_local_devices, oly_sharding_boxes and its kin. Arithmetic on
 * shardings; nothing communicates. */
#include "array/processes/boxes.h"
#include "core/error.h"
#include "graph/type.h"
#include <string.h>

oly_index_box oly_index_box_of(const oly_box *b)
{
    oly_index_box box = {.rank = b->rank};
    for (int d = 0; d < b->rank; d++) {
        box.start[d] = b->lo[d];
        box.extent[d] = b->hi[d] - b->lo[d];
    }
    return box;
}

/* The number of the process; -1: this one. */
static oly_status check_process(int *process)
{
    if (*process == -1)
        *process = oly_mesh_my_process();
    if (*process >= 0 && *process < oly_mesh_processes())
        return OLY_OK;
    return oly_fail(OLY_INVALID, "process %d does not exist; they are 0 to %d, and -1 is this one", *process,
                    oly_mesh_processes() - 1);
}

static oly_status check_room(int n, const void *list)
{
    if (n < 0 || (n > 0 && !list))
        return oly_fail(OLY_INVALID, "room for %d entries%s", n, n > 0 ? ", but the list is NULL" : "");
    return OLY_OK;
}

int oly_local_devices(int process, int n, int *ids)
{
    OLY_ENTER(-1);
    oly_status st = check_process(&process);
    if (st == OLY_OK)
        st = check_room(n, ids);
    if (oly_raise(st) != OLY_OK)
        return -1;
    int first, count = oly_mesh_devices_of(process, &first);
    for (int k = 0; k < n && k < count; k++)
        ids[k] = first + k;
    return count;
}

/* -- what a sharding gives to devices and processes ---------------------------------------------------------------------- */

static oly_status check_shape(oly_sharding s, int rank, const int64_t *shape, oly_layout *l)
{
    oly_type type = {.dtype = OLY_UINT8, .rank = rank};
    if (rank < 0 || rank > OLY_MAX_RANK)
        return oly_fail(OLY_INVALID, "an array has 0 to %d dimensions, not %d", OLY_MAX_RANK, rank);
    if (rank > 0 && !shape)
        return oly_fail(OLY_INVALID, "the shape of %d dimensions is NULL", rank);
    for (int d = 0; d < rank; d++)
        type.shape[d] = shape[d];
    OLY_TRY(oly_type_check(&type));
    OLY_TRY(oly_sharding_check_rank(s, rank));
    *l = oly_layout_canonical(s, rank, type.shape);
    return OLY_OK;
}

oly_status oly_sharding_device_box(oly_sharding s, int rank, const int64_t *shape, oly_device device,
                                   oly_index_box *box)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need(s, OLY_HANDLE_SHARDING));
    OLY_TRY(oly_need(device, OLY_HANDLE_DEVICE));
    oly_layout l;
    oly_status st = check_shape(s, rank, shape, &l);
    if (st == OLY_OK && !box)
        st = oly_fail(OLY_INVALID, "the place for the box is NULL");
    int id = oly_device_id(device), position = st == OLY_OK ? oly_mesh_position_of(s->mesh, id) : -1;
    if (st == OLY_OK && position < 0) {
        char text[160];
        oly_sharding_str(s, text, sizeof text);
        st = oly_fail(OLY_DEVICES, "device %d is not in %s", id, text);
    }
    if (st != OLY_OK)
        return oly_raise(st);
    oly_box b = oly_layout_shard(&l, position);
    *box = oly_index_box_of(&b);
    return OLY_OK;
}

/* Positions in the mesh of the devices of a process, ascending: at most as many as it has devices. Returns how many. */
static int positions_of(oly_mesh mesh, int process, int *positions)
{
    int first, count = oly_mesh_devices_in(mesh, process, &first), n = 0;
    for (int k = 0; k < count; k++) {
        int position = oly_mesh_position_of(mesh, first + k), j = n;
        if (position < 0)
            continue;
        for (; j > 0 && positions[j - 1] > position; j--)
            positions[j] = positions[j - 1];
        positions[j] = position;
        n++;
    }
    return n;
}

static bool is_new(const oly_box *boxes, int n, const oly_box *b)
{
    for (int k = 0; k < n; k++)
        if (oly_box_equal(&boxes[k], b))
            return false;
    return true;
}

/* The different boxes of the process that are not empty; *boxes is the caller's to release. */
static oly_status boxes_of(oly_sharding s, const oly_layout *l, int process, int *n, oly_box **boxes)
{
    int first, count = oly_mesh_devices_in(s->mesh, process, &first);
    int *positions = oly_malloc(sizeof *positions * (size_t)(count + 1));
    *n = 0;
    *boxes = oly_malloc(sizeof **boxes * (size_t)(count + 1));
    oly_status st =
        positions && *boxes ? OLY_OK : oly_out_of_memory(sizeof **boxes * (size_t)count, "the boxes of a process");
    int held = st == OLY_OK ? positions_of(s->mesh, process, positions) : 0;
    for (int k = 0; k < held; k++) {
        oly_box b = oly_layout_shard(l, positions[k]);
        if (oly_box_count(&b) > 0 && is_new(*boxes, *n, &b))
            (*boxes)[(*n)++] = b;
    }
    oly_release(positions);
    return st;
}

static oly_status find_boxes(oly_sharding s, int rank, const int64_t *shape, int process, int *n, oly_box **boxes)
{
    oly_layout l;
    *boxes = NULL;
    OLY_TRY(check_process(&process));
    OLY_TRY(check_shape(s, rank, shape, &l));
    return boxes_of(s, &l, process, n, boxes);
}

int oly_sharding_boxes(oly_sharding s, int rank, const int64_t *shape, int process, int n, oly_index_box *boxes)
{
    OLY_ENTER(-1);
    if (oly_need(s, OLY_HANDLE_SHARDING) != OLY_OK)
        return -1;
    oly_box *found = NULL;
    int n_found = 0;
    oly_status st = check_room(n, boxes);
    if (st == OLY_OK)
        st = find_boxes(s, rank, shape, process, &n_found, &found);
    for (int k = 0; st == OLY_OK && k < n_found && k < n; k++)
        boxes[k] = oly_index_box_of(&found[k]);
    oly_release(found);
    return oly_raise(st) == OLY_OK ? n_found : -1;
}

/* The smallest box around all of them. They are balanced blocks of one grid, so no two overlap in part: the union is that box if it
 * has as many elements as they have together. */
static oly_status unite(int n, const oly_box *boxes, oly_box *all)
{
    int64_t elements = 0;
    if (n > 0)
        *all = boxes[0];
    for (int k = 0; k < n; k++) {
        elements += oly_box_count(&boxes[k]);
        for (int d = 0; d < all->rank; d++) {
            all->lo[d] = boxes[k].lo[d] < all->lo[d] ? boxes[k].lo[d] : all->lo[d];
            all->hi[d] = boxes[k].hi[d] > all->hi[d] ? boxes[k].hi[d] : all->hi[d];
        }
    }
    if (n == 0 || elements == oly_box_count(all))
        return OLY_OK;
    return oly_fail(OLY_SHARDING,
                    "this process holds %d boxes of the array, whose union is not one box; go through them with "
                    "oly_sharding_boxes",
                    n);
}

oly_status oly_sharding_box(oly_sharding s, int rank, const int64_t *shape, int process, oly_index_box *box)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need(s, OLY_HANDLE_SHARDING));
    oly_box *found = NULL, all = {.rank = rank};
    int n = 0;
    oly_status st = box ? OLY_OK : oly_fail(OLY_INVALID, "the place for the box is NULL");
    if (st == OLY_OK)
        st = find_boxes(s, rank, shape, process, &n, &found);
    if (st == OLY_OK)
        st = unite(n, found, &all);
    if (st == OLY_OK)
        *box = oly_index_box_of(&all);
    oly_release(found);
    return oly_raise(st);
}
