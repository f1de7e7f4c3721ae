/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers in which a device has many partners, such as an all-to-all over a long axis. Planning finds only the
 * local copies and the totals of bytes sent and received. Boxes are listed at the first run, in less time than so
 * many messages take anyway. So planning time does not depend on the number of devices. Called by reshard.c. */
#include "plan/move/move.h"
#include "plan/move/tree_exchange.h"
#include "core/min_max.h"
#include <string.h>

/* Below these a transfer is listed when planned: blocks sent and received per device, and neighbours. */
enum { FEW_BLOCKS = 4, FEW_NEIGHBOURS = 64 };

/* What listing needs after the planner is gone. */
typedef struct later {
    oly_exchange_outline outline;
    int n;
    mover *movers;
} later;

/* -- numbers of partners ------------------------------------------------------------------------------------------- */

/* The number of blocks of `from` that meet a run. */
static int64_t blocks_in(const mover *m, const run *r)
{
    int64_t n = 1;
    for (int d = 0; d < r->box.rank; d++) {
        if (r->box.hi[d] <= r->box.lo[d])
            return 0;
        const oly_split *s = &m->from->split[d];
        n *= oly_split_part_of(s, m->shape[d], r->box.hi[d] - 1) - oly_split_part_of(s, m->shape[d], r->box.lo[d]) + 1;
    }
    return n;
}

/* The number of blocks that meet a device's box, and the elements they share with it. */
static int64_t blocks_for(const mover *m, const oly_box *target, int64_t *elements)
{
    oly_box box = *target;
    run r = {0};
    int64_t n = 0;
    *elements = 0;
    while (oly_box_count(&box) > 0 && oly_next_run(m, &box, &r)) {
        n += blocks_in(m, &r);
        *elements += oly_box_count(&r.box);
    }
    return n;
}

/* Roughly how many devices need part of a device's block, and how many of them need the same part. */
static int64_t receivers_of(const mover *m, int source, int64_t *alike)
{
    oly_mesh from = m->from->mesh, to = m->to->mesh;
    int fixed[OLY_MAX_RANK];
    *alike = 1;
    if (to->everywhere)
        return *alike = oly_mesh_processes();
    for (int a = 0; a < OLY_MAX_RANK; a++)
        fixed[a] = -1;
    if (from == to) {
        oly_mesh_coordinates(from, source, fixed);
        for (int d = 0; d < m->from->rank; d++)
            for (int k = 0; k < m->from->split[d].axes.n; k++)
                fixed[m->from->split[d].axes.axis[k]] = -1;
    }
    oly_box block = oly_layout_box(m->from, source);
    if (oly_box_count(&block) == 0)
        return 0;
    oly_receivers r = oly_receivers_of(m->to, &block, fixed);
    for (int k = 0; k < r.n_free; k++)
        *alike *= to->size[r.free_axis[k]];
    int64_t n = *alike;
    for (int d = 0; d < m->to->rank && !r.none; d++) {
        int64_t parts = r.last[d] - r.first[d] + 1, one_in = 1;
        const oly_axis_list *axes = &m->to->dim[d].split.axes;
        for (int k = 0; k < axes->n; k++)
            one_in *= r.fixed[axes->axis[k]] < 0 ? 1 : to->size[axes->axis[k]];
        n *= (parts + one_in - 1) / one_in;
    }
    return r.none ? 0 : n;
}

/* Is it a transfer without margins or selected parts? Others have few partners. */
static bool is_plain(const mover *m)
{
    for (int d = 0; d < m->to->rank; d++)
        if (m->to->dim[d].wraps)
            return false;
    return !m->in_place && m->wanted.n == 0 && !m->from->mesh->everywhere;
}

bool oly_worth_outline(int n, const mover *movers)
{
    int64_t blocks = 0, elements, alike;
    int n_devices = movers[0].p->plan->n_devices;
    if (oly_mesh_processes() == 1)
        return false;
    for (int k = 0; k < n; k++) {
        if (oly_few_neighbours(&movers[k], FEW_NEIGHBOURS))
            continue;
        for (int d = 0; d < n_devices; d++) {
            const mover *m = &movers[k];
            int target = oly_position_in(m->p, m->to->mesh, d), source = oly_position_in(m->p, m->from->mesh, d);
            oly_box box;
            if (!is_plain(m))
                return false;
            if (target >= 0) {
                box = oly_region_box(m->to, m->shape, target);
                blocks += blocks_for(m, &box, &elements);
            }
            if (source >= 0 && !m->permutation)
                blocks += receivers_of(m, source, &alike);
        }
    }
    return blocks > (int64_t)FEW_BLOCKS * n * n_devices;
}

/* -- local copies -------------------------------------------------------------------------------------------------- */

/* The block of a device of this process. */
typedef struct own_block {
    int position;  /* in from's mesh; -1: not in it */
    bool repeated; /* an earlier device of this process holds the same block */
    int part[OLY_MAX_RANK];
} own_block;

static own_block *own_blocks(const mover *m)
{
    const oly_layout *l = m->from;
    int n = m->p->plan->n_devices, at[OLY_MAX_RANK];
    own_block *own = OLY_PLAN_NEW(m->p, own_block, n + 1);
    for (int e = 0; own && e < n; e++) {
        own[e].position = oly_position_in(m->p, l->mesh, e);
        if (own[e].position < 0)
            continue;
        oly_mesh_coordinates(l->mesh, own[e].position, at);
        for (int d = 0; d < l->rank; d++)
            own[e].part[d] = oly_split_part_at(&l->split[d], l->mesh, at);
        for (int k = 0; k < e && !own[e].repeated; k++)
            own[e].repeated =
                own[k].position >= 0 && memcmp(own[k].part, own[e].part, sizeof *own->part * (size_t)l->rank) == 0;
    }
    return own;
}

/* Adds the copies to a device from devices of this process. */
static oly_status find_own(mover *m, const own_block *own, int device, int position)
{
    oly_box box = m->target[device];
    int n = m->p->plan->n_devices, me = oly_mesh_my_process();
    run r = {0};
    while (oly_box_count(&box) > 0 && oly_next_run(m, &box, &r)) {
        oly_box holds = box;
        for (int d = 0; d < box.rank; d++) {
            holds.lo[d] -= r.shift[d];
            holds.hi[d] -= r.shift[d];
        }
        for (int e = 0; e < n; e++) {
            if (own[e].position < 0 || own[e].repeated)
                continue;
            oly_box shared = oly_box_intersect(&m->held[e], &r.box);
            if (oly_box_count(&shared) == 0)
                continue;
            int owner = oly_owner_of(m, own[e].part, position, me), holder = 0;
            while (holder < n && own[holder].position != owner)
                holder++;
            if (holder < n)
                OLY_TRY(oly_add_copy(m, holder, device, &holds, &shared));
        }
    }
    return OLY_OK;
}

static oly_status find_copies(mover *m)
{
    const oly_plan *plan = m->p->plan;
    m->wanted_elements = OLY_PLAN_NEW(m->p, int64_t, plan->n_devices);
    m->wanted_blocks = OLY_PLAN_NEW(m->p, int64_t, plan->n_devices);
    OLY_PLAN_CHECK(m->wanted_elements ? m->wanted_blocks : NULL);
    OLY_TRY(oly_keep_boxes(m));
    const own_block *own = own_blocks(m);
    OLY_PLAN_CHECK(own);
    for (int d = 0; d < plan->n_devices; d++) {
        int position = oly_position_in(m->p, m->to->mesh, d), before = m->n_copies;
        if (position < 0)
            continue;
        m->wanted_blocks[d] = blocks_for(m, &m->target[d], &m->wanted_elements[d]);
        OLY_TRY(find_own(m, own, d, position));
        for (int k = before; k < m->n_copies; k++) {
            int64_t n = 1;
            for (int e = 0; e < m->copies[k].task.rank; e++)
                n *= m->copies[k].task.extent[e];
            m->wanted_elements[d] -= n;
            m->wanted_blocks[d]--;
        }
    }
    return OLY_OK;
}

/* -- the outline --------------------------------------------------------------------------------------------------- */

static oly_status list_remotes(const void *context, int stage, oly_exchange **exchange)
{
    (void)stage;
    const later *l = context;
    oly_status st = OLY_OK;
    mover *movers = oly_calloc((size_t)l->n, sizeof *movers);
    if (!movers)
        return oly_out_of_memory(sizeof *movers * (size_t)l->n, "an exchange");
    for (int k = 0; k < l->n && st == OLY_OK; k++) {
        movers[k] = l->movers[k];
        st = oly_find_pieces(&movers[k]);
    }
    if (st == OLY_OK)
        st = oly_movers_exchange(l->n, movers, exchange);
    for (int k = 0; k < l->n; k++)
        oly_forget_pieces(&movers[k]);
    oly_release(movers);
    return st;
}

static oly_status keep_mover(oly_planner *p, const mover *m, mover *kept)
{
    oly_layout *from = OLY_PLAN_NEW(m->p, oly_layout, 1);
    oly_region *to = OLY_PLAN_NEW(m->p, oly_region, 1);
    OLY_PLAN_CHECK(from ? to : NULL);
    *from = *m->from;
    *to = *m->to;
    *kept = (mover){.p = p,
                    .node = m->node,
                    .from = from,
                    .to = to,
                    .from_slot = m->from_slot,
                    .to_slot = m->to_slot,
                    .permutation = m->permutation,
                    .permuted = m->permuted,
                    .shape = from->shape,
                    .element = m->element,
                    .held = m->held,
                    .target = m->target,
                    .remotes_only = true};
    return OLY_OK;
}

oly_status oly_keep_movers(int n, const mover *movers, oly_planner **planner, mover **kept)
{
    const oly_planner *p = movers[0].p;
    *planner = OLY_PLAN_NEW(p, oly_planner, 1);
    *kept = OLY_PLAN_NEW(p, mover, n);
    OLY_PLAN_CHECK(*planner ? *kept : NULL);
    **planner = (oly_planner){.plan = p->plan, .mesh = p->mesh, .position = p->position};
    for (int k = 0; k < n; k++)
        OLY_TRY(keep_mover(*planner, &movers[k], &(*kept)[k]));
    return OLY_OK;
}

/* The smallest box that contains the blocks of all devices of a process. */
static oly_box blocks_of_process(const oly_layout *l, const oly_process_grid *g, int process)
{
    int first[OLY_MAX_RANK];
    oly_box box = {.rank = l->rank};
    oly_grid_corner(l->mesh, g, process, first);
    for (int d = 0; d < l->rank; d++) {
        int64_t lo = 0, hi = 1;
        for (int k = 0; k < l->split[d].axes.n; k++) {
            int a = l->split[d].axes.axis[k];
            lo = lo * l->mesh->size[a] + first[a];
            hi = (hi - 1) * l->mesh->size[a] + first[a] + g->each[a];
        }
        box.lo[d] = oly_split_cut(&l->split[d], l->shape[d], lo);
        box.hi[d] = oly_split_cut(&l->split[d], l->shape[d], hi);
    }
    return box;
}

/* The part of `box` inside `holds`, the box that a slot holds, as a piece. False: they do not meet. */
static bool part_of_piece(const oly_box *holds, const oly_box *box, size_t element, oly_piece *piece)
{
    piece->offset = 0;
    for (int d = 0; d < holds->rank; d++) {
        int64_t lo = box->lo[d] > holds->lo[d] ? box->lo[d] : holds->lo[d];
        piece->extent[d] = oly_smaller(box->hi[d], holds->hi[d]) - lo;
        piece->offset += (lo - holds->lo[d]) * piece->stride[d] * (int64_t)element;
        if (piece->extent[d] <= 0)
            return false;
    }
    return true;
}

/* For overlap.c, if few processes take part: what may arrive from each. With many, a device waits for all. */
oly_status oly_note_outline_arrivals(int n, const mover *movers, oly_step *s)
{
    int n_devices = movers[0].p->plan->n_devices, me = oly_mesh_my_process(), process[OLY_MOST_PEERS + 1];
    oly_box blocks[OLY_MOST_PEERS + 1];
    oly_process_grid g;
    if (oly_mesh_processes() > OLY_MOST_PEERS + 1) {
        s->detail = "messages are listed by the first run";
        return OLY_OK;
    }
    for (int k = 0; k < n; k++)
        if (movers[k].permutation || !oly_process_grid_of(movers[k].from->mesh, &g))
            return OLY_OK;
    int n_receiving = 0;
    for (int k = 0; k < n * n_devices; k++)
        n_receiving += movers[k / n_devices].wanted_elements[k % n_devices] > 0;
    oly_arrival *arrivals = OLY_PLAN_NEW(movers[0].p, oly_arrival, n_receiving * (oly_mesh_processes() - 1) + 1);
    OLY_PLAN_CHECK(arrivals);
    s->move.arrivals = arrivals;
    for (int k = 0; k < n; k++) {
        const mover *m = &movers[k];
        oly_process_grid_of(m->from->mesh, &g);
        for (int j = 0; j < g.n; j++) {
            process[j] = oly_grid_process(m->from->mesh, &g, j);
            blocks[j] = blocks_of_process(m->from, &g, j);
        }
        for (int d = 0; d < n_devices; d++) {
            oly_arrival from = {.piece = oly_piece_in(m, d, -1, m->to_slot, &m->target[d], &m->target[d])};
            for (int j = 0; j < g.n && m->wanted_elements[d] > 0; j++) {
                from.peer = process[j];
                if (from.peer != me && part_of_piece(&m->target[d], &blocks[j], m->element, &from.piece))
                    arrivals[s->move.n_arrivals++] = from;
            }
        }
    }
    return OLY_OK;
}

/* Estimates the bytes sent and received, and the number of peers. */
static void estimate(int n, const mover *movers, oly_exchange_outline *o)
{
    int n_devices = movers[0].p->plan->n_devices;
    int64_t blocks = 0, receivers = 0;
    for (int k = 0; k < n; k++)
        for (int d = 0; d < n_devices; d++) {
            const mover *m = &movers[k];
            int source = oly_position_in(m->p, m->from->mesh, d);
            int64_t alike = 0;
            o->bytes_received += m->wanted_elements[d] * (int64_t)m->element;
            blocks += m->wanted_blocks[d];
            if (source < 0)
                continue;
            receivers += receivers_of(m, source, &alike);
            o->bytes_sent += alike * oly_box_count(&m->held[d]) * (int64_t)m->element;
        }
    o->peers = (int)oly_smaller(blocks > receivers ? blocks : receivers, oly_mesh_processes() - 1);
    int64_t limit = oly_exchange_memory_limit() / 2;
    o->memory = oly_smaller(o->bytes_sent, limit) + oly_smaller(o->bytes_received, limit);
}

oly_status oly_make_outline(int n, mover *movers, oly_exchange **exchange)
{
    oly_planner *p = movers[0].p;
    later *l = OLY_PLAN_NEW(p, later, 1);
    int n_devices = p->plan->n_devices, n_buffers = n * n_devices;
    int *buffers = OLY_PLAN_NEW(p, int, 2 * n_buffers + 1);
    oly_planner *planner;
    OLY_PLAN_CHECK(l ? buffers : NULL);
    l->n = n;
    for (int k = 0; k < n; k++) {
        OLY_TRY(find_copies(&movers[k]));
        for (int d = 0; d < n_devices; d++) {
            buffers[k * n_devices + d] = oly_cell(p->plan, d, movers[k].from_slot);
            buffers[n_buffers + k * n_devices + d] = oly_cell(p->plan, d, movers[k].to_slot);
        }
    }
    OLY_TRY(oly_keep_movers(n, movers, &planner, &l->movers));
    l->outline = (oly_exchange_outline){
        .n_buffers = n_buffers, .buffers = buffers, .n_stages = 1, .list = list_remotes, .context = l};
    estimate(n, movers, &l->outline);
    return oly_exchange_make_later(&l->outline, exchange);
}
