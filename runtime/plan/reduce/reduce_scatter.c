/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduce-scatter: a reduction over devices whose result is split over the same devices. Every device receives its box
 * of all partial results of its group and reduces only that: half the bytes of an all-reduce, and no device holds the
 * whole. The order of the reduction is that of reduction_order.c. What needs too much memory is done in rounds, as in
 * reduction_steps.c. Long groups, and groups with several devices per process, are done level by level:
 * reduce_scatter_tree.c. */
#include "plan/move/messages.h"
#include "plan/reduce/reduce_scatter_tree.h"
#include "plan/reduce/reduction_steps.h"
#include "core/optimisation.h"
#include "core/option.h"
#include <string.h>

typedef struct scatterer {
    oly_planner *p;
    const oly_node *node;
    const oly_layout *partial, *target;
    int slot, staging; /* partial results; boxes of them that cannot be reduced in place */
    int64_t element;
    int round, n_rounds;
    int n_copies, n_sources;
    int counts[4];
    bool in_pairs;
    oly_copy_work *copies;
    oly_message_list messages;
} scatterer;

static int cell_of(const scatterer *s, int device, int slot)
{
    return oly_cell(s->p->plan, device, slot);
}

static int process_at(const scatterer *s, int position)
{
    return oly_mesh_process_of(oly_mesh_device_id(s->p->mesh, position));
}

static int device_at(const scatterer *s, int position)
{
    for (int d = 0; d < s->p->plan->n_devices; d++)
        if (s->p->position[d] == position)
            return d;
    return -1;
}

/* Where `box` begins in a contiguous buffer that holds `whole`, and its strides. */
static oly_place place_in(const scatterer *s, int base, const oly_box *whole, const oly_box *box)
{
    oly_place place = {.base = base};
    int64_t stride = 1;
    for (int d = box->rank - 1; d >= 0; d--) {
        place.stride[d] = stride;
        place.offset += (box->lo[d] - whole->lo[d]) * stride * s->element;
        stride *= whole->hi[d] - whole->lo[d];
    }
    return place;
}

/* Are the elements of the box contiguous in the buffer? */
static bool is_run(const oly_place *place, const oly_box *box)
{
    int64_t n = 1;
    for (int d = box->rank - 1; d >= 0; d--) {
        int64_t extent = box->hi[d] - box->lo[d];
        if (extent > 1 && place->stride[d] != n)
            return false;
        n *= extent;
    }
    return true;
}

/* A box of a device's, sent to or received from the one at a position. */
static oly_piece piece_of(const scatterer *s, int device, int peer, const oly_place *place, const oly_box *box)
{
    oly_piece piece = {.buffer = place->base,
                       .device = oly_local_id(s->p, device),
                       .peer_device = oly_mesh_device_id(s->p->mesh, peer),
                       .offset = place->offset,
                       .rank = box->rank};
    for (int d = 0; d < box->rank; d++) {
        piece.extent[d] = box->hi[d] - box->lo[d];
        piece.stride[d] = place->stride[d];
    }
    return piece;
}

/* Copies a box of a local partial result to offset `at` of a device's staging buffer. */
static void add_copy(scatterer *s, const oly_place *from, const oly_box *box, int device, int64_t at)
{
    oly_copy_work *c = &s->copies[s->n_copies++];
    *c = (oly_copy_work){.from = *from,
                         .to = place_in(s, cell_of(s, device, s->staging), box, box),
                         .task = {.element_bytes = (size_t)s->element, .rank = box->rank}};
    c->to.offset = at;
    for (int d = 0; d < box->rank; d++) {
        c->task.extent[d] = box->hi[d] - box->lo[d];
        c->task.from_stride[d] = from->stride[d];
        c->task.to_stride[d] = c->to.stride[d];
    }
}

/* The part of a box that is reduced in round `round` of `n`, a contiguous run of its elements: some rows, or part of a
 * row. */
static oly_box part_of(oly_box box, int64_t round, int64_t n)
{
    for (int d = 0; d < box.rank && n > 1; d++) {
        int64_t extent = box.hi[d] - box.lo[d], lo = box.lo[d], each = extent > 1 ? n / extent : n;
        if (extent <= 1)
            continue;
        if (each > 1 && round >= each * extent) { /* no elements are left */
            box.hi[d] = lo;
            return box;
        }
        if (each <= 1) {
            box.lo[d] = lo + extent * round / n;
            box.hi[d] = lo + extent * (round + 1) / n;
            return box;
        }
        box.lo[d] = lo + round / each;
        box.hi[d] = box.lo[d] + 1;
        round %= each;
        n = each;
    }
    if (n > 1 && round > 0 && box.rank > 0)
        box.hi[0] = box.lo[0]; /* fewer elements than rounds */
    return box;
}

static oly_box target_box(const scatterer *s, int position)
{
    return part_of(oly_layout_box(s->target, position), s->round, s->n_rounds);
}

/* Lists what device d reduces: its box of every partial result of the group. */
static oly_status receive(scatterer *s, int d, const int *sources, int target_slot, oly_reduction_work *w,
                          oly_step *move)
{
    oly_planner *p = s->p;
    int position = p->position[d];
    oly_box box = target_box(s, position), all = oly_layout_box(s->target, position);
    int64_t n = oly_box_count(&box), used = 0, begin = place_in(s, 0, &all, &box).offset / s->element;
    int *bases = OLY_PLAN_NEW(p, int, s->n_sources), *out = OLY_PLAN_NEW(p, int, 1);
    int64_t *offsets = OLY_PLAN_NEW(p, int64_t, s->n_sources);
    OLY_PLAN_CHECK(bases && offsets ? out : NULL);
    for (int k = 0; k < s->n_sources && n > 0; k++) {
        int device = device_at(s, sources[k]);
        oly_box whole = oly_layout_box(s->partial, sources[k]);
        oly_place from = place_in(s, device >= 0 ? cell_of(s, device, s->slot) : 0, &whole, &box);
        if (device != d)
            move->wire += n * s->element;
        if (device >= 0 && is_run(&from, &box)) {
            bases[k] = from.base;
            offsets[k] = from.offset - begin * s->element;
            continue;
        }
        bases[k] = cell_of(s, d, s->staging);
        offsets[k] = used - begin * s->element;
        if (device >= 0) {
            add_copy(s, &from, &box, d, used);
        } else {
            oly_place to = place_in(s, bases[k], &box, &box);
            to.offset = used;
            OLY_TRY(oly_messages_add(
                p, &s->messages,
                &(oly_process_message){
                    process_at(s, sources[k]), false, {position, sources[k]}, piece_of(s, d, sources[k], &to, &box)}));
        }
        used += (n * s->element + 63) / 64 * 64;
    }
    oly_slot_grow(p, s->staging, d, (size_t)used);
    *out = cell_of(s, d, target_slot);
    *w = (oly_reduction_work){s->n_sources, bases, offsets, begin, begin + n, 1, out, position, s->in_pairs, 0, {0}};
    for (; w->n_counts < 4 && s->counts[w->n_counts] > 0; w->n_counts++)
        w->counts[w->n_counts] = s->counts[w->n_counts];
    return OLY_OK;
}

/* Lists what the group's members in other processes need of device d's partial result. */
static oly_status send(scatterer *s, int d, const int *members)
{
    int position = s->p->position[d];
    oly_box whole = oly_layout_box(s->partial, position);
    for (int k = 0; k < s->n_sources; k++) {
        oly_box box = target_box(s, members[k]);
        int process = process_at(s, members[k]);
        if (process == oly_mesh_my_process() || oly_box_count(&box) == 0)
            continue;
        oly_place from = place_in(s, cell_of(s, d, s->slot), &whole, &box);
        OLY_TRY(oly_messages_add(
            s->p, &s->messages,
            &(oly_process_message){process, true, {members[k], position}, piece_of(s, d, members[k], &from, &box)}));
    }
    return OLY_OK;
}

/* Notes what is sent, if the step does nothing else, so that the step computing it may send it piece by piece
 * (overlap_scatter.c). */
static oly_status note_departures(const scatterer *s, oly_step *move)
{
    if (s->n_rounds > 1 || s->messages.n == 0)
        return OLY_OK;
    oly_arrival *departures = OLY_PLAN_NEW(s->p, oly_arrival, s->messages.n);
    OLY_PLAN_CHECK(departures);
    for (int k = 0; k < s->messages.n; k++)
        if (s->messages.message[k].sending)
            departures[move->move.n_departures++] =
                (oly_arrival){s->messages.message[k].peer, s->messages.message[k].piece};
    move->move.departures = departures;
    return OLY_OK;
}

static oly_status add_reduction(scatterer *s, oly_block *b, const oly_reduction_rule *rule, int n_groups,
                                const oly_reduction_work *groups, int target_slot)
{
    oly_step *step = oly_step_add(s->p, b, OLY_STEP_REDUCTION, s->node, "reduction");
    OLY_PLAN_CHECK(step);
    step->reduction.combiner = rule->combiner;
    step->reduction.dtype = s->node->type.dtype;
    step->reduction.n_groups = n_groups;
    step->reduction.groups = groups;
    for (int g = 0; g < n_groups; g++)
        step->work += (double)(groups[g].end - groups[g].begin) * s->n_sources;
    oly_slot_use(s->p, s->slot);
    oly_slot_use(s->p, s->staging);
    oly_slot_use(s->p, target_slot);
    return OLY_OK;
}

/* Adds one round: transfers the boxes of its part, and reduces them. */
static oly_status add_round(scatterer *s, oly_block *b, const oly_reduction_rule *rule, const oly_axis_list *axes,
                            int target_slot)
{
    oly_planner *p = s->p;
    int sources[OLY_REDUCTION_GROUP], n_groups = 0;
    s->n_sources = oly_reduction_group(p->mesh, rule, axes, 0, s->counts, sources);
    s->n_copies = 0;
    s->copies = OLY_PLAN_NEW(p, oly_copy_work, p->plan->n_devices * s->n_sources + 1);
    oly_reduction_work *groups = OLY_PLAN_NEW(p, oly_reduction_work, p->plan->n_devices + 1);
    OLY_PLAN_CHECK(s->copies ? groups : NULL);
    oly_step move = {0};
    for (int d = 0; d < p->plan->n_devices; d++) {
        if (p->position[d] < 0)
            continue;
        oly_reduction_group(p->mesh, rule, axes, p->position[d], s->counts, sources);
        OLY_TRY(receive(s, d, sources, target_slot, &groups[n_groups++], &move));
        OLY_TRY(send(s, d, sources));
    }
    oly_exchange *exchange;
    OLY_TRY(note_departures(s, &move));
    OLY_TRY(oly_messages_exchange(p, &s->messages, (size_t)s->element, &exchange));
    oly_step *step = oly_step_add(p, b, OLY_STEP_MOVE, s->node, "reduce-scatter");
    if (!step) {
        oly_exchange_free(exchange);
        return oly_out_of_memory(0, "a plan");
    }
    oly_box box = target_box(s, 0); /* the first part is the largest */
    step->exchange = exchange;
    step->out_slot = s->staging;
    step->move.n_copies = s->n_copies;
    step->move.copies = s->copies;
    step->move.n_departures = move.move.n_departures;
    step->move.departures = move.move.departures;
    step->wire = move.wire;
    step->members = s->n_sources;
    step->over = *axes;
    step->messages = s->n_sources - 1;
    step->bytes = oly_box_count(&box) * s->element * (s->n_sources - 1);
    for (int k = 0; k < s->n_copies; k++)
        step->work += 1;
    oly_slot_use(p, s->slot);
    oly_slot_use(p, s->staging);
    return add_reduction(s, b, rule, n_groups, groups, target_slot);
}

/* The memory that a process needs for partial results that cannot be reduced in place. */
static int64_t staged_by(const scatterer *s, const oly_reduction_rule *rule, const oly_axis_list *axes, int process)
{
    int first, n = oly_mesh_devices_in(s->p->mesh, process, &first), counts[4], sources[OLY_REDUCTION_GROUP];
    int64_t bytes = 0;
    for (int id = first; id < first + n; id++) {
        int position = oly_mesh_position_of(s->p->mesh, id);
        if (position < 0)
            continue;
        int n_sources = oly_reduction_group(s->p->mesh, rule, axes, position, counts, sources);
        oly_box box = oly_layout_box(s->target, position);
        for (int k = 0; k < n_sources; k++) {
            oly_box whole = oly_layout_box(s->partial, sources[k]);
            oly_place from = place_in(s, 0, &whole, &box);
            if (process_at(s, sources[k]) != process || !is_run(&from, &box))
                bytes += oly_box_count(&box) * s->element + 64;
        }
    }
    return bytes;
}

/* The same on every process: see reduction_steps.c. */
static int rounds_of(const scatterer *s, const oly_reduction_rule *rule, const oly_axis_list *axes, int n_sources)
{
    enum { MOST_COUNTED = 64 };
    int64_t limit = oly_reduction_limit_left(s->p) / 16 * 15, most = 0;
    int64_t each = oly_mesh_devices_each_in(s->p->mesh) ? oly_mesh_devices_each_in(s->p->mesh) : s->p->mesh->n_devices;
    oly_box largest = oly_layout_box(s->target, 0);
    if (each * n_sources * (oly_box_count(&largest) * s->element + 64) <= limit)
        return 1;
    int n = oly_mesh_processes(), step = (n + MOST_COUNTED - 1) / MOST_COUNTED;
    for (int r = 0; r < n; r += step) {
        int64_t bytes = staged_by(s, rule, axes, r);
        most = bytes > most ? bytes : most;
    }
    if (most <= limit)
        return 1;
    int rounds = (int)((most + limit - 1) / limit);
    for (int64_t all = oly_box_count(&largest); rounds < all; rounds *= 2) { /* whole rows may be too large */
        int64_t part = 0;
        for (int k = 0; k < rounds; k += rounds / 16 + 1) {
            oly_box box = part_of(largest, k, rounds);
            part = oly_box_count(&box) > part ? oly_box_count(&box) : part;
        }
        if (part * (most / all) <= limit)
            break;
    }
    return rounds;
}

/* Should every device send its parts directly to all others of the group, which reduce them? Not in long groups, or
 * where a process can first reduce the parts of its own devices. What is sent is then known when the plan is made, so
 * that a product can send its result piece by piece (overlap_scatter.c). The order of the reduction is the same. */
static bool all_at_once(oly_mesh mesh, const oly_reduction_rule *rule, const oly_axis_list *axes)
{
    enum { FEW = 8, SHORT = 16 };
    int counts[4], sources[OLY_REDUCTION_GROUP], n = oly_reduction_group(mesh, rule, axes, 0, counts, sources);
    bool apart = true, one = true;
    for (int k = 0; k < axes->n; k++) {
        apart = apart && mesh->together[axes->axis[k]] == 1;
        one = one && mesh->together[axes->axis[k]] >= mesh->size[axes->axis[k]];
    }
    bool few_processes = oly_mesh_processes() <= oly_option.direct_processes;
    if (n == 0 || one || few_processes)
        return n > 0 && (n <= FEW || one || (n <= SHORT && (apart || !rule->in_pairs)));
    return n <= SHORT && apart && !rule->in_pairs; /* otherwise the messages are listed at the first run */
}

oly_status oly_reduce_scatter(oly_planner *p, oly_block *b, const oly_node *node, const oly_reduction_rule *rule,
                              const oly_layout *partial, int slot, const oly_axis_list *axes, const oly_layout *target,
                              int target_slot)
{
    int counts[4], sources[OLY_REDUCTION_GROUP];
    if (!all_at_once(p->mesh, rule, axes))
        return oly_scatter_levels(p, b, node, rule, partial, slot, axes, target, target_slot);
    scatterer s = {.p = p,
                   .node = node,
                   .partial = partial,
                   .target = target,
                   .slot = slot,
                   .in_pairs = rule->in_pairs,
                   .element = (int64_t)oly_dtype_size(node->type.dtype)};
    s.n_rounds = rounds_of(&s, rule, axes, oly_reduction_group(p->mesh, rule, axes, 0, counts, sources));
    s.staging = oly_reduction_staging(p, b); /* one slot for all rounds, so each waits for the one before */
    if (s.staging < 0)
        return OLY_MEMORY;
    for (s.round = 0; s.round < s.n_rounds; s.round++)
        OLY_TRY(add_round(&s, b, rule, axes, target_slot));
    return OLY_OK;
}

/* -- directly or by levels ----------------------------------------------------------------------------------------- */
