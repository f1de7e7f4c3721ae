/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds who sends what to whom: every device gets the part it needs of each block from a device that holds the block.
 * If several hold it, the receiver itself is preferred, then a device of its process, then the one at the receiver's
 * coordinates, so that sender and receiver find the same answer independently. Called by reshard.c. */
#include "plan/move/transfers.h"
#include "plan/move/move.h"
#include <stdlib.h>
#include <string.h>

int oly_process_at(oly_mesh mesh, int position)
{
    return mesh->everywhere ? oly_mesh_my_process() : oly_mesh_process_of(oly_mesh_device_id(mesh, position));
}

/* The position of a device, if it holds the block; -1: it does not. */
static int position_with(const mover *m, const int *part, int device)
{
    const oly_layout *l = m->from;
    int position = oly_mesh_position_of(l->mesh, device), coordinates[OLY_MAX_RANK];
    if (position < 0)
        return -1;
    oly_mesh_coordinates(l->mesh, position, coordinates);
    for (int d = 0; d < l->rank; d++)
        if (oly_split_part_at(&l->split[d], l->mesh, coordinates) != part[d])
            return -1;
    return position;
}

/* The first position of a process that holds the block; -1: none. */
static int replica_in(const mover *m, const int *part, int process)
{
    int first, found = -1, n = oly_mesh_devices_in(m->from->mesh, process, &first);
    for (int id = first; id < first + n; id++) {
        int position = position_with(m, part, id);
        if (position >= 0 && (found < 0 || position < found))
            found = position;
    }
    return found;
}

int oly_owner_of(const mover *m, const int *part, int receiver, int receiver_process)
{
    const oly_layout *l = m->from;
    int coordinates[OLY_MAX_RANK], own[OLY_MAX_RANK] = {0}, n_free = 0;
    bool taken[OLY_MAX_RANK] = {false};
    if (l->mesh->everywhere)
        return 0;
    if (l->mesh == m->to->mesh) {
        oly_mesh_coordinates(l->mesh, receiver, own);
    } else if (!m->to->mesh->everywhere) {
        int same = position_with(m, part, oly_mesh_device_id(m->to->mesh, receiver));
        if (same >= 0)
            return same;
    }
    for (int d = 0; d < l->rank; d++) {
        int rest = part[d];
        for (int k = l->split[d].axes.n - 1; k >= 0; k--) {
            int axis = l->split[d].axes.axis[k];
            coordinates[axis] = rest % l->mesh->size[axis];
            rest /= l->mesh->size[axis];
            taken[axis] = true;
        }
    }
    for (int a = 0; a < l->mesh->n_axes; a++)
        if (!taken[a]) {
            coordinates[a] = own[a];
            n_free++;
        }
    int preferred = oly_mesh_position(l->mesh, coordinates);
    if (n_free == 0 || oly_process_at(l->mesh, preferred) == receiver_process)
        return preferred;
    int near = replica_in(m, part, receiver_process);
    return near >= 0 ? near : preferred;
}

static oly_box block_box(const oly_layout *l, const int *part)
{
    oly_box b = {.rank = l->rank};
    for (int d = 0; d < l->rank; d++) {
        b.lo[d] = oly_split_cut(&l->split[d], l->shape[d], part[d]);
        b.hi[d] = oly_split_cut(&l->split[d], l->shape[d], part[d] + 1);
    }
    return b;
}

static int device_of(const mover *m, oly_mesh mesh, int position)
{
    for (int d = 0; d < m->p->plan->n_devices; d++)
        if (oly_position_in(m->p, mesh, d) == position)
            return d;
    return -1;
}

/* Where a box begins in a slot that holds the box `holds`. */
static oly_place corner(const mover *m, int device, int slot, const oly_box *holds, const oly_box *box)
{
    oly_place place = {.base = oly_cell(m->p->plan, device, slot)};
    int64_t stride = 1;
    for (int d = box->rank - 1; d >= 0; d--) {
        place.stride[d] = stride;
        place.offset += (box->lo[d] - holds->lo[d]) * stride * (int64_t)m->element;
        stride *= holds->hi[d] - holds->lo[d];
    }
    return place;
}

static void *grown(oly_planner *p, void *old, int n, int *capacity, size_t bytes)
{
    if (n < *capacity)
        return old;
    int more = *capacity ? 2 * *capacity : 8;
    void *memory = oly_arena_take(&p->plan->arena, bytes * (size_t)more);
    if (memory && n)
        memcpy(memory, old, bytes * (size_t)n);
    *capacity = more;
    return memory;
}

oly_status oly_keep_boxes(mover *m)
{
    int n = m->p->plan->n_devices;
    if (m->held)
        return OLY_OK;
    oly_box *held = OLY_PLAN_NEW(m->p, oly_box, n + 1), *target = OLY_PLAN_NEW(m->p, oly_box, n + 1);
    m->wanted_box = OLY_PLAN_NEW(m->p, oly_box, m->wanted.n + 1);
    OLY_PLAN_CHECK(held && target ? m->wanted_box : NULL);
    for (int d = 0; d < n; d++) {
        int from = oly_position_in(m->p, m->from->mesh, d), to = oly_position_in(m->p, m->to->mesh, d);
        if (to >= 0)
            target[d] = oly_region_box(m->to, m->shape, to);
        if (m->in_place)
            held[d] = target[d];
        else if (from >= 0)
            held[d] = oly_layout_box(m->from, from);
    }
    m->held = held;
    m->target = target;
    return OLY_OK;
}

oly_status oly_room_for_copies(mover *m, int n)
{
    if (m->n_copies + n <= m->copy_capacity)
        return OLY_OK;
    oly_copy_work *more = OLY_PLAN_NEW(m->p, oly_copy_work, m->n_copies + n);
    OLY_PLAN_CHECK(more);
    if (m->n_copies)
        memcpy(more, m->copies, sizeof *more * (size_t)m->n_copies);
    m->copies = more;
    m->copy_capacity = m->n_copies + n;
    return OLY_OK;
}

oly_status oly_add_copy(mover *m, int source_device, int device, const oly_box *holds, const oly_box *box)
{
    m->copies = grown(m->p, m->copies, m->n_copies, &m->copy_capacity, sizeof *m->copies);
    OLY_PLAN_CHECK(m->copies);
    oly_copy_work *c = &m->copies[m->n_copies++];
    *c = (oly_copy_work){.from = corner(m, source_device, m->from_slot, &m->held[source_device], box),
                         .to = corner(m, device, m->to_slot, holds, box)};
    c->task = (oly_copy_task){.element_bytes = m->element, .rank = box->rank};
    for (int d = 0; d < box->rank; d++) {
        c->task.extent[d] = box->hi[d] - box->lo[d];
        c->task.from_stride[d] = c->from.stride[d];
        c->task.to_stride[d] = c->to.stride[d];
    }
    m->work += (double)oly_box_count(box);
    return OLY_OK;
}

oly_status oly_room_for_remotes(mover *m, remote_list *list, int n)
{
    if (n <= list->capacity)
        return OLY_OK;
    int capacity = list->capacity ? 4 * list->capacity : 8;
    capacity = n > capacity ? n : capacity;
    remote *more = oly_arena_take_raw(&m->scratch, sizeof *more * (size_t)capacity);
    OLY_PLAN_CHECK(more);
    if (list->n)
        memcpy(more, list->remote, sizeof *more * (size_t)list->n);
    list->remote = more;
    list->capacity = capacity;
    return OLY_OK;
}

static oly_status add_remote(mover *m, remote r)
{
    OLY_TRY(oly_room_for_remotes(m, &m->remotes, m->remotes.n + 1));
    m->remotes.remote[m->remotes.n++] = r;
    return OLY_OK;
}

/* The parts of one dimension of `from` that meet [lo, hi). */
static void part_range(const oly_split *s, int64_t n, int64_t lo, int64_t hi, int *first, int *last)
{
    *first = oly_split_part_of(s, n, lo);
    *last = oly_split_part_of(s, n, hi - 1);
}

/* A box in the receiver's coordinates, from the source's; sign -1: the reverse. */
static oly_box shifted(const oly_box *box, const int64_t *shift, int sign)
{
    oly_box b = *box;
    for (int d = 0; d < b.rank; d++) {
        b.lo[d] += sign * shift[d];
        b.hi[d] += sign * shift[d];
    }
    return b;
}

/* Finds a run of slices that come from consecutive slices. */
static bool next_slices(const mover *m, const oly_box *box, run *r)
{
    int d = m->permuted;
    const int *source = m->permutation->source;
    if (!r->begun)
        r->at = box->lo[d];
    r->begun = true;
    while (r->at < box->hi[d] && source[r->at] < 0)
        r->at++;
    if (r->at >= box->hi[d])
        return false;
    int64_t end = r->at + 1;
    while (end < box->hi[d] && source[end] == source[end - 1] + 1)
        end++;
    r->box = *box;
    r->shift[d] = r->at - source[r->at];
    r->box.lo[d] = source[r->at];
    r->box.hi[d] = source[r->at] + end - r->at;
    r->at = end;
    return true;
}

int64_t oly_first_repetition(const mover *m, int d, int64_t lo)
{
    int64_t n = m->shape[d];
    return m->to->dim[d].wraps && n > 0 ? (lo - (lo < 0 ? n - 1 : 0)) / n * n : 0;
}

bool oly_next_run(const mover *m, const oly_box *box, run *r)
{
    if (m->permutation)
        return next_slices(m, box, r);
    int d = box->rank - 1;
    for (; d >= 0 && r->begun; d--) {
        if (m->to->dim[d].wraps && r->shift[d] + m->shape[d] < box->hi[d]) {
            r->shift[d] += m->shape[d];
            break;
        }
        r->shift[d] = oly_first_repetition(m, d, box->lo[d]);
    }
    if (r->begun && d < 0)
        return false;
    for (d = 0; d < box->rank && !r->begun; d++)
        r->shift[d] = oly_first_repetition(m, d, box->lo[d]);
    r->begun = true;
    r->box = shifted(box, r->shift, -1);
    for (d = 0; d < box->rank; d++) {
        r->box.lo[d] = r->box.lo[d] < 0 ? 0 : r->box.lo[d];
        r->box.hi[d] = r->box.hi[d] > m->shape[d] ? m->shape[d] : r->box.hi[d];
    }
    return true;
}

static remote remote_of(int peer, int receiver, int source, const oly_box *box, int device, bool sending, const run *r)
{
    remote x = {
        .peer = peer, .receiver = receiver, .source = source, .box = *box, .device = device, .sending = sending};
    memcpy(x.shift, r->shift, sizeof x.shift);
    return x;
}

static bool is_shifted(const run *r, int rank)
{
    for (int d = 0; d < rank; d++)
        if (r->shift[d] != 0)
            return true;
    return false;
}

/* Adds the part `shared` of a block that a receiver gets. holds: the receiver's whole box, in the source's
 * coordinates. */
static oly_status receive_box(mover *m, int device, int position, const oly_box *shared, const oly_box *holds,
                              const run *r, int owner)
{
    int me = oly_mesh_my_process(), process = oly_process_at(m->from->mesh, owner);
    if (process != me)
        return add_remote(m, remote_of(process, position, owner, shared, device, false, r));
    if (m->remotes_only)
        return OLY_OK;
    if (m->in_place && owner == position && !is_shifted(r, shared->rank))
        return OLY_OK; /* its own block is in place */
    int holder = m->from->mesh->everywhere ? -1 : device_of(m, m->from->mesh, owner);
    for (int d = 0; holder < 0 && d < m->p->plan->n_devices; d++)
        if (m->p->plan->devices[d] == 0)
            holder = d;
    return oly_add_copy(m, holder, device, holds, shared);
}

/* The boxes to transfer of a run's box, given the parts that are wanted at a position. */
static int wanted_of(mover *m, int position, const oly_box *box, const run *r, oly_box *boxes)
{
    boxes[0] = *box;
    if (m->wanted.n == 0)
        return 1;
    oly_box there = shifted(box, r->shift, 1);
    if (m->wanted_at != position + 1) {
        m->wanted_at = position + 1;
        for (int k = 0; k < m->wanted.n; k++)
            m->wanted_box[k] = oly_region_box(&m->wanted.part[k], m->shape, position);
    }
    int n = oly_wanted_boxes(m->wanted.n, m->wanted_box, &there, boxes);
    for (int k = 0; k < n; k++)
        boxes[k] = shifted(&boxes[k], r->shift, -1);
    return n;
}

static oly_status receive_block(mover *m, int device, int position, const run *r, const oly_box *holds, const int *part)
{
    oly_box block = block_box(m->from, part), shared = oly_box_intersect(&block, &r->box), boxes[OLY_MOST_WANTED];
    m->p->plan->looked_at++;
    if (oly_box_count(&shared) == 0)
        return OLY_OK;
    int owner = oly_owner_of(m, part, position, oly_mesh_my_process()), n = wanted_of(m, position, &shared, r, boxes);
    for (int k = 0; k < n; k++)
        OLY_TRY(receive_box(m, device, position, &boxes[k], holds, r, owner));
    return OLY_OK;
}

static oly_status receive_run(mover *m, int device, int position, const run *r, const oly_box *holds)
{
    int first[OLY_MAX_RANK], last[OLY_MAX_RANK], part[OLY_MAX_RANK];
    for (int d = 0; d < r->box.rank; d++) {
        part_range(&m->from->split[d], m->shape[d], r->box.lo[d], r->box.hi[d], &first[d], &last[d]);
        part[d] = first[d];
    }
    for (;;) {
        OLY_TRY(receive_block(m, device, position, r, holds, part));
        int d = r->box.rank - 1;
        while (d >= 0 && ++part[d] > last[d]) {
            part[d] = first[d];
            d--;
        }
        if (d < 0)
            return OLY_OK;
    }
}

static oly_status receive_all(mover *m, int device)
{
    int position = oly_position_in(m->p, m->to->mesh, device);
    if (position < 0)
        return OLY_OK;
    oly_box box = m->target[device];
    run r = {0};
    while (oly_box_count(&box) > 0 && oly_next_run(m, &box, &r)) {
        oly_box holds = shifted(&box, r.shift, -1);
        OLY_TRY(receive_run(m, device, position, &r, &holds));
    }
    return OLY_OK;
}

static int in_ascending_order(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Was this box just listed for this process, for another receiver? */
static bool just_sent(const mover *m, int process, int source, const oly_box *box)
{
    const remote *last = m->remotes.n > 0 ? &m->remotes.remote[m->remotes.n - 1] : NULL;
    return last && last->sending && last->peer == process && last->source == source && oly_box_equal(&last->box, box);
}

/* Adds what a position of another process needs of this device's block. */
static oly_status send_to(mover *m, int device, int source, const oly_box *block, const int *part, int receiver,
                          int process)
{
    oly_box box = oly_region_box(m->to, m->shape, receiver);
    run r = {0};
    m->p->plan->looked_at++;
    while (oly_box_count(&box) > 0 && oly_next_run(m, &box, &r)) {
        oly_box shared = oly_box_intersect(block, &r.box), boxes[OLY_MOST_WANTED];
        if (oly_box_count(&shared) == 0 || oly_owner_of(m, part, receiver, process) != source)
            continue;
        int n = wanted_of(m, receiver, &shared, &r, boxes);
        for (int k = 0; k < n; k++)
            if (!just_sent(m, process, source, &boxes[k]))
                OLY_TRY(add_remote(m, remote_of(process, receiver, source, &boxes[k], device, true, &r)));
    }
    return OLY_OK;
}

/* The boxes of a block in the receivers' coordinates, and their receivers: each once, in order. */
typedef struct receiver_list {
    int n, capacity, *position;
} receiver_list;

static oly_status add_receivers(const mover *m, receiver_list *list, const oly_box *wanted, const int *fixed)
{
    oly_receivers r = oly_receivers_of(m->to, wanted, fixed);
    for (int receiver; oly_receivers_next(&r, &receiver); list->n++) {
        if (list->n == list->capacity) {
            int capacity = list->capacity ? 2 * list->capacity : 16,
                *more = oly_malloc(sizeof *more * (size_t)capacity);
            OLY_PLAN_CHECK(more);
            if (list->n)
                memcpy(more, list->position, sizeof *more * (size_t)list->n);
            oly_release(list->position);
            list->position = more;
            list->capacity = capacity;
        }
        list->position[list->n] = receiver;
    }
    return OLY_OK;
}

/* Frees the list, also after a failure. */
static oly_status send_to_list(mover *m, oly_status st, int device, int source, const oly_box *block, const int *part,
                               receiver_list *list)
{
    if (list->n > 0)
        qsort(list->position, (size_t)list->n, sizeof *list->position, in_ascending_order);
    for (int k = 0; st == OLY_OK && k < list->n; k++) {
        int process = oly_process_at(m->to->mesh, list->position[k]);
        if (process != oly_mesh_my_process() && (k == 0 || list->position[k] != list->position[k - 1]))
            st = send_to(m, device, source, block, part, list->position[k], process);
    }
    oly_release(list->position);
    return st;
}

void oly_repetitions(const mover *m, int d, int64_t *first, int64_t *end)
{
    const oly_region_dim *r = &m->to->dim[d];
    int64_t n = m->shape[d], a = r->scale < 0 ? r->scale * (r->n - 1) : 0, b = r->scale < 0 ? 0 : r->scale * (r->n - 1);
    *first = 0;
    *end = n;
    if (!r->wraps || n == 0)
        return;
    while (*first > a + r->lo)
        *first -= n;
    while (*end <= b + r->hi)
        *end += n;
}

/* Sends to the devices of other processes whose boxes meet `wanted`, this block's elements in the receivers'
 * coordinates. */
static oly_status send_wanted(mover *m, int device, int source, const oly_box *block, const int *part,
                              const oly_box *wanted, const int *fixed)
{
    receiver_list list = {0};
    int64_t first[OLY_MAX_RANK] = {0}, end[OLY_MAX_RANK] = {0}, shift[OLY_MAX_RANK] = {0};
    for (int d = 0; d < wanted->rank; d++) {
        oly_repetitions(m, d, &first[d], &end[d]);
        shift[d] = first[d];
    }
    for (;;) {
        oly_box there = shifted(wanted, shift, 1);
        oly_status st = add_receivers(m, &list, &there, fixed);
        int d = wanted->rank - 1;
        for (; d >= 0 && (shift[d] += m->shape[d]) >= end[d]; d--)
            shift[d] = first[d];
        if (d < 0 || st != OLY_OK)
            return send_to_list(m, st, device, source, block, part, &list);
    }
}

/* The same with permuted slices: slice by slice. */
static oly_status send_permuted(mover *m, int device, int source, const oly_box *block, const int *part,
                                const int *fixed)
{
    oly_permutation to = oly_permutation_inverse(m->permutation);
    if (!to)
        return OLY_MEMORY;
    int d = m->permuted;
    receiver_list list = {0};
    oly_status st = OLY_OK;
    for (int64_t slice = block->lo[d]; st == OLY_OK && slice < block->hi[d]; slice++) {
        oly_box wanted = *block;
        wanted.lo[d] = to->source[slice];
        wanted.hi[d] = wanted.lo[d] + 1;
        if (wanted.lo[d] >= 0)
            st = add_receivers(m, &list, &wanted, fixed);
    }
    return send_to_list(m, st, device, source, block, part, &list);
}

/* Every process wants its own copy. */
static oly_status send_everywhere(mover *m, int device, int source, const oly_box *block, const int *part)
{
    oly_mesh mesh = m->from->mesh;
    bool whole = true;
    for (int d = 0; d < m->from->rank; d++)
        whole = whole && m->from->split[d].parts == 1;
    if (whole && !mesh->devices && oly_mesh_process_of(mesh->n_devices - 1) == oly_mesh_processes() - 1)
        return OLY_OK; /* every process has one */
    for (int process = 0; process < oly_mesh_processes(); process++)
        if (process != oly_mesh_my_process())
            OLY_TRY(send_to(m, device, source, block, part, 0, process));
    return OLY_OK;
}

/* Adds all receivers of a device's block. If several devices hold it, receivers in other processes get it from the
 * one at their own coordinates or, on another mesh, from the first. */
static oly_status send_all(mover *m, int device)
{
    oly_mesh mesh = m->from->mesh;
    int source = oly_position_in(m->p, mesh, device), coordinates[OLY_MAX_RANK], part[OLY_MAX_RANK],
        fixed[OLY_MAX_RANK], other[OLY_MAX_RANK];
    if (source < 0 || mesh->everywhere)
        return OLY_OK;
    oly_mesh_coordinates(mesh, source, coordinates);
    memcpy(fixed, coordinates, sizeof fixed);
    for (int a = 0; a < OLY_MAX_RANK; a++)
        other[a] = -1;
    for (int d = 0; d < m->from->rank; d++) {
        part[d] = oly_split_part_at(&m->from->split[d], mesh, coordinates);
        for (int k = 0; k < m->from->split[d].axes.n; k++)
            fixed[m->from->split[d].axes.axis[k]] = -1;
    }
    oly_box block = oly_layout_box(m->from, source);
    if (oly_box_count(&block) == 0)
        return OLY_OK;
    bool same = mesh == m->to->mesh;
    for (int a = 0; a < mesh->n_axes && !same; a++)
        if (fixed[a] > 0)
            return OLY_OK;
    if (m->to->mesh->everywhere)
        return send_everywhere(m, device, source, &block, part);
    if (m->permutation)
        return send_permuted(m, device, source, &block, part, same ? fixed : other);
    return send_wanted(m, device, source, &block, part, &block, same ? fixed : other);
}

oly_status oly_find_pieces(mover *m)
{
    OLY_TRY(oly_keep_boxes(m));
    if (oly_between_neighbours(m))
        return oly_find_neighbours(m);
    for (int d = 0; d < m->p->plan->n_devices; d++) {
        OLY_TRY(receive_all(m, d));
        OLY_TRY(send_all(m, d));
    }
    return OLY_OK;
}

oly_status oly_find_copies(mover *m)
{
    OLY_TRY(oly_keep_boxes(m));
    for (int d = 0; d < m->p->plan->n_devices; d++)
        OLY_TRY(receive_all(m, d));
    return OLY_OK;
}

oly_piece oly_piece_in(const mover *m, int device, int peer_device, int slot, const oly_box *holds, const oly_box *box)
{
    oly_place at = corner(m, device, slot, holds, box);
    oly_piece piece = {.buffer = at.base,
                       .device = oly_local_id(m->p, device),
                       .peer_device = peer_device,
                       .offset = at.offset,
                       .rank = box->rank};
    for (int d = 0; d < piece.rank; d++) {
        piece.extent[d] = box->hi[d] - box->lo[d];
        piece.stride[d] = at.stride[d];
    }
    return piece;
}

void oly_place_remote(const mover *m, const remote *r, oly_piece *piece)
{
    const oly_box *holds = r->sending ? &m->held[r->device] : &m->target[r->device];
    int64_t stride = 1, offset = 0;
    piece->buffer = oly_cell(m->p->plan, r->device, r->sending ? m->from_slot : m->to_slot);
    piece->device = oly_local_id(m->p, r->device);
    piece->peer_device =
        r->sending ? oly_id_at(m->to->mesh, r->receiver, r->peer) : oly_id_at(m->from->mesh, r->source, r->peer);
    piece->rank = holds->rank;
    for (int d = holds->rank - 1; d >= 0; d--) {
        piece->extent[d] = r->box.hi[d] - r->box.lo[d];
        piece->stride[d] = stride;
        offset += (r->box.lo[d] - holds->lo[d] + (r->sending ? 0 : r->shift[d])) * stride;
        stride *= holds->hi[d] - holds->lo[d];
    }
    piece->offset = offset * (int64_t)m->element;
}

void oly_forget_pieces(mover *m)
{
    oly_arena_free(&m->scratch);
    m->remotes = (remote_list){0};
}
