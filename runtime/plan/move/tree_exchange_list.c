/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of each stage of a tree exchange. Arithmetic only, on meshes whose processes form a grid. Called by
 * tree_exchange.c, and when a step in stages first runs. */
#include "plan/move/tree_exchange.h"
#include <string.h>

static const int *coordinates_of(const oly_staged *s, int device)
{
    return s->at + (ptrdiff_t)device * OLY_MAX_RANK;
}

bool oly_staged_here(const oly_staged *s, int device)
{
    return *coordinates_of(s, device) >= 0;
}

bool oly_staged_agree(const oly_staged *s, int device, int other, unsigned axes)
{
    const int *x = coordinates_of(s, device), *y = coordinates_of(s, other);
    for (int a = 0; a < s->mesh->n_axes; a++)
        if ((axes >> a & 1) && x[a] != y[a])
            return false;
    return true;
}

int oly_staged_first_alike(const oly_staged *s, int device, unsigned axes)
{
    int d = 0;
    while (d < device && !(oly_staged_here(s, d) && oly_staged_agree(s, d, device, axes)))
        d++;
    return d;
}

bool oly_staged_among(const oly_staged *s)
{
    int d = 0;
    while (d < s->n_devices && !oly_staged_here(s, d))
        d++;
    return d < s->n_devices;
}

/* -- gathers ---------------------------------------------------------------------------------------------------------------- */

unsigned oly_senders_differ(const mover *m, int axis, unsigned gathered)
{
    return oly_axes_to(m) | (oly_axes_from(m) & ~gathered & ~(1u << axis));
}

/* The block of the device's coordinates, extended over all of the gathered axes and over [first, end) along the
 * stage's axis. */
static oly_box gathered_box(const oly_staged *s, const mover *m, int device, const oly_gather_stage *g, int first,
                            int end)
{
    const oly_layout *l = m->from;
    const int *at = coordinates_of(s, device);
    oly_box box = {.rank = l->rank};
    for (int d = 0; d < l->rank; d++) {
        int64_t lo = 0, hi = 1;
        for (int k = 0; k < l->split[d].axes.n; k++) {
            int a = l->split[d].axes.axis[k], size = s->mesh->size[a];
            bool all = g->gathered >> a & 1;
            lo = lo * size + (a == g->axis ? first : all ? 0 : at[a]);
            hi = (hi - 1) * size + (a == g->axis ? end : all ? size : at[a] + 1);
        }
        box.lo[d] = oly_split_cut(&l->split[d], l->shape[d], lo);
        box.hi[d] = oly_split_cut(&l->split[d], l->shape[d], hi);
    }
    return box;
}

/* The coordinates that `count` processes from number `first` on have along an axis, as ascending runs: one, or two if
 * they wrap around. */
static int runs_of(const oly_process_grid *g, int axis, int first, int count, int *begin, int *end)
{
    int size = g->size[axis], each = g->each[axis], n = 0;
    first = (first % size + size) % size;
    int straight = first + count > size ? size - first : count;
    begin[n] = first * each;
    end[n++] = (first + straight) * each;
    if (straight < count) {
        begin[n] = 0;
        end[n++] = (count - straight) * each;
    }
    return n;
}

/* Numbers a process's devices by their coordinates along some axes, the same way on every process. */
static int lane_of(const oly_staged *s, int device, unsigned axes)
{
    const int *at = coordinates_of(s, device);
    int lane = 0;
    for (int a = 0; a < s->mesh->n_axes; a++)
        lane = lane * s->grid.each[a] + ((axes >> a & 1) ? at[a] % s->grid.each[a] : 0);
    return lane;
}

/* The id of the first device of a process that agrees with a device here along some axes, counted within each process. */
static int peer_device(const oly_staged *s, int process, int device, unsigned axes)
{
    int first, n = oly_mesh_devices_in(s->mesh, process, &first), at[OLY_MAX_RANK];
    for (int id = first; id < first + n; id++) {
        int position = oly_mesh_position_of(s->mesh, id), a = 0;
        if (position < 0)
            continue;
        oly_mesh_coordinates(s->mesh, position, at);
        while (a < s->mesh->n_axes &&
               (!(axes >> a & 1) || at[a] % s->grid.each[a] == coordinates_of(s, device)[a] % s->grid.each[a]))
            a++;
        if (a == s->mesh->n_axes)
            return id;
    }
    return first;
}

/* Adds what is sent to or received from one peer: the elements of `count` processes. Of devices that hold the same
 * only the first sends; all that need it receive. */
static oly_status add_messages(const oly_staged *s, oly_message_list *messages, const oly_gather_stage *g, int peer,
                               bool sending, int first, int count)
{
    int begin[2], end[2], n_runs = runs_of(&s->grid, g->axis, first, count, begin, end);
    for (int item = 0; item < s->n; item++) {
        const mover *m = &s->movers[item];
        unsigned to = oly_axes_to(m), differ = oly_senders_differ(m, g->axis, g->gathered);
        for (int d = 0; d < s->n_devices; d++) {
            if (!oly_staged_here(s, d) || oly_staged_first_alike(s, d, differ) != d)
                continue;
            int there = peer_device(s, peer, d, sending ? to : differ);
            for (int k = 0; k < n_runs; k++) {
                oly_box box = gathered_box(s, m, d, g, begin[k], end[k]);
                box = oly_box_intersect(&box, &m->target[d]);
                if (oly_box_count(&box) == 0)
                    continue;
                oly_process_message message = {peer,
                                               sending,
                                               {(int64_t)item << 32 | lane_of(s, d, differ), k},
                                               oly_piece_in(m, d, there, m->to_slot, &m->target[d], &box)};
                if (sending)
                    OLY_TRY(oly_messages_add(s->p, messages, &message));
                for (int e = 0; e < s->n_devices && !sending; e++)
                    if (oly_staged_here(s, e) && oly_staged_agree(s, e, d, to)) {
                        message.piece.buffer = oly_cell(s->p->plan, e, m->to_slot);
                        message.piece.device = oly_local_id(s->p, e);
                        OLY_TRY(oly_messages_add(s->p, messages, &message));
                    }
            }
        }
    }
    return OLY_OK;
}

/* This process's coordinates in the grid. False: it has no device of the mesh. */
static bool place_of(const oly_staged *s, int *place)
{
    for (int d = 0; d < s->n_devices; d++)
        if (oly_staged_here(s, d)) {
            for (int a = 0; a < s->mesh->n_axes; a++)
                place[a] = coordinates_of(s, d)[a] / s->grid.each[a];
            return true;
        }
    return false;
}

/* The process `distance` further along the axis, cyclically. */
static int further(const oly_staged *s, const int *place, int axis, int distance)
{
    int number = 0, size = s->grid.size[axis];
    for (int a = 0; a < s->mesh->n_axes; a++)
        number = number * s->grid.size[a] + (a == axis ? ((place[a] + distance) % size + size) % size : place[a]);
    return oly_grid_process(s->mesh, &s->grid, number);
}

int oly_stages_own(const oly_staged *s, unsigned *gathered)
{
    int first = 0;
    for (*gathered = 0; s->grid.size[s->order.axis[first]] == 1; first++)
        *gathered |= 1u << s->order.axis[first];
    return first;
}

static oly_gather_stage gather_stage(const oly_staged *s, int stage)
{
    oly_gather_stage g = {.distance = 1, .count = 1};
    int k = oly_stages_own(s, &g.gathered);
    for (; !s->at_once; k++) {
        int n = oly_stages_between(s->grid.size[s->order.axis[k]]);
        if (stage < n)
            break;
        g.gathered |= 1u << s->order.axis[k];
        stage -= n;
    }
    g.axis = s->order.axis[k];
    g.distance = s->at_once ? 1 : 1 << stage;
    int left = s->grid.size[g.axis] - g.distance;
    g.count = s->at_once || left > g.distance ? g.distance : left;
    return g;
}

static oly_status list_gather(const oly_staged *s, int stage, oly_message_list *messages)
{
    int place[OLY_MAX_RANK];
    oly_gather_stage g = gather_stage(s, stage);
    if (!place_of(s, place))
        return OLY_OK;
    int end = s->at_once ? s->grid.size[g.axis] : g.distance + 1;
    for (int distance = g.distance; distance < end; distance++) {
        OLY_TRY(add_messages(s, messages, &g, further(s, place, g.axis, -distance), true, place[g.axis], g.count));
        OLY_TRY(add_messages(s, messages, &g, further(s, place, g.axis, distance), false, place[g.axis] + distance,
                             g.count));
    }
    return OLY_OK;
}

/* Adds what has arrived before the last stage: the elements of the processes up to `distance` further. */
static oly_status list_gathered_before(const oly_staged *s, oly_message_list *messages)
{
    int place[OLY_MAX_RANK];
    oly_gather_stage last = gather_stage(s, s->n_stages - 1), before = gather_stage(s, s->n_stages - 2);
    if (!place_of(s, place))
        return OLY_OK;
    int peer = further(s, place, before.axis, before.distance);
    return add_messages(s, messages, &last, peer, false, place[last.axis], last.distance);
}

/* -- broadcasts -------------------------------------------------------------------------------------------------------------- */

static oly_status add_whole(const oly_staged *s, oly_message_list *messages, int peer, bool sending)
{
    int first = 0;
    while (!oly_staged_here(s, first))
        first++;
    for (int item = 0; item < s->n; item++) {
        const mover *m = &s->movers[item];
        const oly_box *box = &m->target[first];
        oly_process_message message = {
            peer, sending, {item, 0}, oly_piece_in(m, first, peer_device(s, peer, first, 0), m->to_slot, box, box)};
        if (oly_box_count(box) == 0)
            continue;
        for (int d = first; d < (sending ? first + 1 : s->n_devices); d++)
            if (oly_staged_here(s, d)) {
                message.piece.buffer = oly_cell(s->p->plan, d, m->to_slot);
                message.piece.device = oly_local_id(s->p, d);
                OLY_TRY(oly_messages_add(s->p, messages, &message));
            }
    }
    return OLY_OK;
}

/* This process's number in the grid, and its distance from the process that has the value. False: it has no device of
 * the mesh. */
static bool find_root(const oly_staged *s, int *number, int *distance)
{
    int root = oly_grid_number(s->mesh, &s->grid, s->movers[0].from->mesh->process);
    *number = oly_grid_number(s->mesh, &s->grid, oly_mesh_my_process());
    *distance = (*number - root + s->grid.n) % s->grid.n;
    return *number >= 0;
}

static oly_status list_broadcast(const oly_staged *s, int stage, oly_message_list *messages)
{
    int me, distance, n = s->grid.n, have = 1 << stage;
    if (!find_root(s, &me, &distance))
        return OLY_OK;
    if (distance < have && distance + have < n)
        return add_whole(s, messages, oly_grid_process(s->mesh, &s->grid, (me + have) % n), true);
    if (distance >= have && distance < 2 * have)
        return add_whole(s, messages, oly_grid_process(s->mesh, &s->grid, (me - have + n) % n), false);
    return OLY_OK;
}

/* -- gathers and broadcasts ---------------------------------------------------------------------------------------- */

oly_status oly_list_messages(const oly_staged *s, int stage, oly_message_list *messages)
{
    return s->broadcast ? list_broadcast(s, stage, messages) : list_gather(s, stage, messages);
}

oly_status oly_list_arrivals(const oly_staged *s, oly_message_list *messages)
{
    int me, distance;
    if (s->broadcast)
        return find_root(s, &me, &distance) && distance > 0
                   ? list_broadcast(s, oly_stages_between(distance + 1) - 1, messages)
                   : OLY_OK;
    if (s->n_stages > 1)
        OLY_TRY(list_gathered_before(s, messages));
    return list_gather(s, s->n_stages - 1, messages);
}

oly_status oly_list_stage(const void *staged, int stage, oly_exchange **exchange)
{
    oly_staged s = *(const oly_staged *)staged;
    oly_plan plan = *s.p->plan; /* a copy: the plan's own memory must not be used after planning */
    oly_planner p = {.plan = &plan};
    oly_message_list messages = {0};
    plan.arena = (oly_arena){0};
    s.p = &p;
    oly_status st = oly_list_messages(&s, stage, &messages);
    if (st == OLY_OK)
        st = oly_messages_exchange(&p, &messages, s.movers[0].element, exchange);
    oly_arena_free(&plan.arena);
    return st;
}
