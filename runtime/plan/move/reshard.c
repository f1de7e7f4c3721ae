/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves a value from one layout to the boxes that devices need (found by transfers.c). Boxes for devices of the same
 * process are copied; the boxes for each other process travel in one message. */
#include "plan/move/move.h"
#include "plan/move/transfers.h"
#include "core/text.h"
#include <string.h>

/* -- messages ------------------------------------------------------------------------------------------------------ */

/* Sent boxes first; then by peer, movement, receiver and source. */
static void set_order(remote *r, int item)
{
    r->item = item;
    r->order[0] = (uint64_t)!r->sending << 63 | (uint64_t)r->peer << 31 | (uint64_t)item;
    r->order[1] = (uint64_t)r->receiver << 32 | (uint64_t)r->source;
}

static bool is_before(const remote *a, const remote *b)
{
    for (int k = 0; k < 2; k++)
        if (a->order[k] != b->order[k])
            return a->order[k] < b->order[k];
    for (int d = 0; d < a->box.rank; d++)
        if (a->box.lo[d] != b->box.lo[d])
            return a->box.lo[d] < b->box.lo[d];
    return false;
}

static int end_of_run(remote *const *list, int at, int n)
{
    while (++at < n && !is_before(list[at], list[at - 1]))
        ;
    return at;
}

/* A natural merge sort: the list consists of a few sorted runs, about one of received and one of sent boxes per
 * device. Returns one of the two lists. */
static remote **sort_remotes(int n, remote **list, remote **spare)
{
    for (int runs = 0; runs != 1;) {
        remote **to = spare;
        runs = 0;
        for (int at = 0, end; at < n; at = end, runs++) {
            int middle = end_of_run(list, at, n), left = at, right = middle;
            end = middle < n ? end_of_run(list, middle, n) : n;
            for (int k = at; k < end; k++)
                to[k] = right == end || (left < middle && !is_before(list[right], list[left])) ? list[left++]
                                                                                               : list[right++];
        }
        spare = list;
        list = to;
    }
    return list;
}

static bool same_bytes(const remote *a, const remote *b)
{
    return a->item == b->item && a->source == b->source && oly_box_equal(&a->box, &b->box);
}

/* Enters remote k in a hash table of 2^bits entries (index + 1; 0: empty). Returns the remote entered before with the
 * same bytes; -1: none. */
static int note_bytes(remote *const *remotes, int k, int *table, int bits)
{
    const remote *r = remotes[k];
    uint64_t hash = (uint64_t)r->source + ((uint64_t)r->item << 32);
    for (int d = 0; d < r->box.rank; d++)
        hash = hash * 31 + (uint64_t)(r->box.lo[d] + r->box.hi[d] * 7);
    uint64_t at = hash * 0x9e3779b97f4a7c15u >> (64 - bits);
    for (; table[at] > 0; at = (at + 1) & ((1u << bits) - 1))
        if (same_bytes(remotes[table[at] - 1], r))
            return table[at] - 1;
    table[at] = k + 1;
    return -1;
}

/* Adds the pieces of one message from remotes[0..n). A box that several receivers of the rank need is sent once.
 * table: room for 4 n. */
static void fill_message(remote *const *remotes, int n, int *table, oly_message *message)
{
    int bits = 1;
    while (1 << bits < 2 * n)
        bits++;
    memset(table, 0, sizeof *table << bits);
    message->peer = remotes[0]->peer;
    message->n_pieces = 0;
    for (int k = 0; k < n; k++) {
        int same = note_bytes(remotes, k, table, bits);
        if (same >= 0 && remotes[k]->sending)
            continue;
        message->same[message->n_pieces] = same;
        oly_place_remote(remotes[k]->mover, remotes[k], &message->pieces[message->n_pieces++]);
    }
}

static oly_status make_exchange(mover *first, int n_remote, remote *const *remotes, oly_exchange **exchange)
{
    int n = 0, n_sends = 0;
    oly_message *messages = oly_arena_take_raw(&first->scratch, sizeof *messages * (size_t)n_remote);
    oly_piece *pieces = oly_arena_take_raw(&first->scratch, sizeof *pieces * (size_t)n_remote);
    int *same = oly_arena_take_raw(&first->scratch, 5 * sizeof *same * (size_t)n_remote); /* and 4 of a table */
    OLY_PLAN_CHECK(messages && pieces ? same : NULL);
    for (int k = 0; k < n_remote;) {
        int end = k + 1;
        while (end < n_remote && remotes[end]->peer == remotes[k]->peer && remotes[end]->sending == remotes[k]->sending)
            end++;
        messages[n].pieces = pieces + k;
        messages[n].same = same + k;
        n_sends += remotes[k]->sending;
        fill_message(&remotes[k], end - k, same + n_remote, &messages[n++]);
        k = end;
    }
    return oly_exchange_make(first->element, n_sends, messages, n - n_sends, messages + n_sends, exchange);
}

/* -- explanations -------------------------------------------------------------------------------------------------- */

static bool has_axis(const oly_axis_list *l, int axis)
{
    for (int k = 0; k < l->n; k++)
        if (l->axis[k] == axis)
            return true;
    return false;
}

/* The usual name of a transfer. */
static const char *name_of(const mover *m)
{
    const oly_layout *l = m->from;
    const oly_region *r = m->to;
    bool dropped = false, moved = false, same = l->mesh == r->mesh;
    if (l->mesh->everywhere)
        return "place";
    if (m->permutation)
        return "permute";
    if (!same)
        return "transfer";
    for (int d = 0; d < l->rank; d++)
        for (int k = 0; k < l->split[d].axes.n; k++) {
            int axis = l->split[d].axes.axis[k];
            if (has_axis(&r->dim[d].split.axes, axis))
                continue;
            bool elsewhere = false;
            for (int e = 0; e < l->rank; e++)
                elsewhere = elsewhere || has_axis(&r->dim[e].split.axes, axis);
            moved = moved || elsewhere;
            dropped = dropped || !elsewhere;
        }
    if (moved)
        return dropped ? "exchange" : "all-to-all";
    if (dropped)
        return "all-gather";
    for (int d = 0; d < l->rank; d++)
        if (!oly_axis_list_equal(&l->split[d].axes, &r->dim[d].split.axes) ||
            (r->dim[d].scale < 0 && r->dim[d].split.parts > 1))
            return "permute";
    return "halo exchange";
}

/* The distinct positions that a device receives from. When full, every further one is counted. */
typedef struct source_list {
    int n, more, position[64];
} source_list;

static void add_source(source_list *l, int position)
{
    for (int k = 0; k < l->n; k++)
        if (l->position[k] == position)
            return;
    if (l->n < 64)
        l->position[l->n++] = position;
    else
        l->more++;
}

/* What a device receives from others: elements, and from which sources. */
typedef struct intake {
    int64_t elements;
    source_list sources;
} intake;

static void count_intake(const mover *m, intake *devices)
{
    const oly_plan *plan = m->p->plan;
    for (int d = 0; d < plan->n_devices && m->wanted_elements; d++) {
        devices[d].elements += m->wanted_elements[d];
        devices[d].sources.more += (int)m->wanted_blocks[d];
    }
    for (int k = 0; k < m->remotes.n; k++) {
        const remote *r = &m->remotes.remote[k];
        if (r->sending)
            continue;
        devices[r->device].elements += oly_box_count(&r->box);
        add_source(&devices[r->device].sources, r->source);
    }
    for (int k = 0; k < m->n_copies && !m->from->mesh->everywhere; k++) {
        const oly_copy_work *c = &m->copies[k];
        int from = oly_cell_device(plan, c->from.base), to = oly_cell_device(plan, c->to.base);
        int64_t n = 1;
        if (from == to)
            continue;
        for (int e = 0; e < c->task.rank; e++)
            n *= c->task.extent[e];
        devices[to].elements += n;
        add_source(&devices[to].sources, oly_position_in(m->p, m->from->mesh, from));
    }
}

static oly_status describe(int n, mover *movers, oly_step *s)
{
    mover *m = &movers[0];
    int64_t most = 0, extra_lo = 0, extra_hi = 0;
    int messages = 0;
    intake *devices = oly_calloc((size_t)m->p->plan->n_devices, sizeof *devices);
    OLY_PLAN_CHECK(devices);
    for (int k = 0; k < n; k++)
        count_intake(&movers[k], devices);
    for (int d = 0; d < m->p->plan->n_devices; d++) {
        int sources = devices[d].sources.n + devices[d].sources.more;
        s->wire += devices[d].elements * (int64_t)m->element;
        most = devices[d].elements > most ? devices[d].elements : most;
        messages = sources > messages ? sources : messages;
    }
    oly_release(devices);
    s->bytes = most * (int64_t)m->element;
    s->messages = messages;
    s->members = m->to->mesh->n_devices > m->from->mesh->n_devices ? m->to->mesh->n_devices : m->from->mesh->n_devices;
    s->what = most == 0 && m->from->mesh == m->to->mesh ? "local copy" : name_of(m);
    if (strcmp(s->what, "halo exchange") != 0)
        return oly_note_transfer(n, movers, s);
    int n_parts = m->wanted.n ? m->wanted.n : 1;
    for (int k = 0; k < n_parts; k++)
        for (int d = 0; d < m->to->rank; d++) {
            const oly_region_dim *r = m->wanted.n ? &m->wanted.part[k].dim[d] : &m->to->dim[d];
            bool steps = r->split.step != 1 || m->from->split[d].step != 1;
            int64_t offset = steps ? 0 : r->split.start - m->from->split[d].start;
            if (r->split.parts == 1)
                continue;
            extra_lo = offset - r->lo > extra_lo ? offset - r->lo : extra_lo;
            extra_hi = r->hi - offset > extra_hi ? r->hi - offset : extra_hi;
        }
    s->detail = oly_plan_say(m->p, "%lld element%s from the left, %lld from the right", (long long)extra_lo,
                             extra_lo == 1 ? "" : "s", (long long)extra_hi);
    return oly_note_transfer(n, movers, s);
}

/* Notes the axes only, for explanations. */
oly_status oly_note_transfer(int n, const mover *movers, oly_step *s)
{
    const mover *m = &movers[0];
    oly_transfer *t = OLY_PLAN_NEW(m->p, oly_transfer, 1);
    OLY_PLAN_CHECK(t);
    *t = (oly_transfer){m->from->mesh, m->to->mesh, oly_layout_spec(m->from), {.n_dims = m->to->rank}, n};
    for (int d = 0; d < m->to->rank; d++)
        t->to.dim[d] = m->to->dim[d].split.axes;
    s->transfer = t;
    return OLY_OK;
}

/* Notes what arrives from other processes, and what is sent to them, for overlap.c and direct_reads.c. */
static oly_status note_boxes(int n, const mover *movers, oly_step *s)
{
    int total[2] = {0};
    for (int k = 0; k < n; k++)
        for (int j = 0; j < movers[k].remotes.n; j++)
            total[movers[k].remotes.remote[j].sending]++;
    oly_arrival *arrivals = oly_arena_take_raw(&movers[0].p->plan->arena, sizeof *arrivals * (size_t)(total[0] + 1));
    oly_arrival *departures =
        oly_arena_take_raw(&movers[0].p->plan->arena, sizeof *departures * (size_t)(total[1] + 1));
    OLY_PLAN_CHECK(arrivals ? departures : NULL);
    for (int k = 0; k < n; k++)
        for (int j = 0; j < movers[k].remotes.n; j++) {
            const remote *r = &movers[k].remotes.remote[j];
            oly_arrival *noted = r->sending ? &departures[s->move.n_departures++] : &arrivals[s->move.n_arrivals++];
            noted->peer = r->peer;
            oly_place_remote(&movers[k], r, &noted->piece);
        }
    s->move.arrivals = arrivals;
    s->move.departures = departures;
    return OLY_OK;
}

/* One exchange for the remotes of all movements. */
oly_status oly_movers_exchange(int n, mover *movers, oly_exchange **exchange)
{
    int total = 0;
    *exchange = NULL;
    for (int k = 0; k < n; k++)
        total += movers[k].remotes.n;
    if (total == 0)
        return OLY_OK;
    remote **all = oly_arena_take_raw(&movers[0].scratch, 2 * sizeof *all * (size_t)total);
    OLY_PLAN_CHECK(all);
    total = 0;
    for (int k = 0; k < n; k++)
        for (int j = 0; j < movers[k].remotes.n; j++) {
            remote *r = all[total++] = &movers[k].remotes.remote[j];
            r->mover = &movers[k];
            set_order(r, k);
        }
    return make_exchange(&movers[0], total, sort_remotes(total, all, all + total), exchange);
}

static oly_status take_copies(int n, const mover *movers, oly_step *s)
{
    int total = 0;
    for (int k = 0; k < n; k++)
        total += movers[k].n_copies;
    oly_copy_work *copies = n == 1 ? movers[0].copies : OLY_PLAN_NEW(movers[0].p, oly_copy_work, total + 1);
    if (total > 0)
        OLY_PLAN_CHECK(copies);
    for (int k = 0; k < n; k++) {
        if (n > 1 && movers[k].n_copies)
            memcpy(copies + s->move.n_copies, movers[k].copies, sizeof *copies * (size_t)movers[k].n_copies);
        s->move.n_copies += movers[k].n_copies;
        s->work += movers[k].work;
    }
    s->move.copies = copies;
    return OLY_OK;
}

/* A MOVE step with its exchange, which is freed if the step cannot be added. */
static oly_step *add_step(oly_planner *p, oly_block *b, const oly_node *node, oly_exchange *exchange, int out_slot)
{
    oly_step *s = oly_step_add(p, b, OLY_STEP_MOVE, node, "exchange");
    if (!s) {
        oly_exchange_free(exchange);
        return NULL;
    }
    s->exchange = exchange;
    s->out_slot = out_slot;
    return s;
}

/* The step of these movers: with the pieces found, or, if `later`, listed at the first run. */
static oly_status make_step(int n, mover *movers, bool later, oly_block *b)
{
    oly_planner *p = movers[0].p;
    oly_exchange *exchange;
    OLY_TRY(later ? oly_make_outline(n, movers, &exchange) : oly_movers_exchange(n, movers, &exchange));
    oly_step *s = add_step(p, b, movers[0].node, exchange, movers[0].to_slot);
    OLY_PLAN_CHECK(s);
    OLY_TRY(take_copies(n, movers, s));
    for (int k = 0; k < n; k++) {
        if (!movers[k].in_place)
            p->plan->slots[movers[k].to_slot].block = b;
        oly_slot_use(p, movers[k].from_slot);
        oly_slot_use(p, movers[k].to_slot);
    }
    OLY_TRY(describe(n, movers, s));
    if (exchange)
        OLY_TRY(later ? oly_note_outline_arrivals(n, movers, s) : note_boxes(n, movers, s));
    return OLY_OK;
}

/* One step for movements with elements of one size. */
static oly_status add_moves(int n, mover *movers, oly_block *b)
{
    oly_status st = oly_plan_stages(&n, movers, b);
    bool later = st == OLY_OK && n > 0 && oly_worth_outline(n, movers);
    for (int k = 0; k < n && st == OLY_OK && !later; k++)
        st = oly_find_pieces(&movers[k]);
    if (st == OLY_OK && n > 0)
        st = make_step(n, movers, later, b);
    for (int k = 0; k < n; k++)
        oly_forget_pieces(&movers[k]);
    return st;
}

static mover mover_of(oly_planner *p, const oly_movement *v)
{
    return (mover){.p = p,
                   .node = v->node,
                   .from = v->from,
                   .to = v->to,
                   .from_slot = v->from_slot,
                   .to_slot = v->to_slot,
                   .in_place = v->in_place,
                   .wanted = v->wanted,
                   .shape = v->from->shape,
                   .element = oly_dtype_size(v->node->type.dtype)};
}

oly_status oly_plan_moves(oly_planner *p, oly_block *b, int n, const oly_movement *movements)
{
    mover *movers = OLY_PLAN_NEW(p, mover, n);
    OLY_PLAN_CHECK(movers);
    for (int k = 0; k < n; k++) {
        movers[k] = mover_of(p, &movements[k]);
        oly_slot_use(p, movers[k].from_slot);
        oly_slot_use(p, movers[k].to_slot);
    }
    return n > 0 ? add_moves(n, movers, b) : OLY_OK;
}

oly_status oly_plan_reshard(oly_planner *p, oly_block *b, const oly_node *node, const oly_layout *from, int from_slot,
                            const oly_region *to, int to_slot)
{
    return oly_plan_moves(p, b, 1, &(oly_movement){node, from, from_slot, to, to_slot, {0}, false});
}

oly_status oly_reshard_permuted(oly_planner *p, oly_block *b, const oly_node *node, const oly_layout *from,
                                int from_slot, const oly_region *to, int to_slot, int d, oly_permutation permutation)
{
    mover m = mover_of(p, &(oly_movement){node, from, from_slot, to, to_slot, {0}, false});
    m.permutation = permutation;
    m.permuted = d;
    oly_slot_use(p, from_slot);
    oly_slot_use(p, to_slot);
    return add_moves(1, &m, b);
}

/* The same cell in another slot of the device. */
static int in_other_slot(const oly_plan *plan, int cell, int n, const int *from, const int *to)
{
    for (int k = 0; k < n; k++)
        if (cell >= from[k] && cell < from[k] + plan->n_devices)
            return cell - from[k] + to[k];
    return cell;
}

/* Repeats a step in other slots of the same layout, `slot` being written: cells from from[k] on become those from
 * to[k] on. */
static oly_status repeat_step(oly_planner *p, const oly_step *like, int n, const int *from, const int *to, int slot,
                              oly_block *b)
{
    const oly_plan *plan = p->plan;
    oly_exchange *exchange = NULL;
    if (like->exchange)
        OLY_TRY(oly_exchange_make_like(like->exchange, n, from, to, plan->n_devices, &exchange));
    oly_step *s = add_step(p, b, like->node, exchange, slot);
    OLY_PLAN_CHECK(s);
    int number = s->number;
    *s = *like;
    s->number = number;
    s->exchange = exchange;
    s->out_slot = slot;
    size_t copy_bytes = sizeof(oly_copy_work) * (size_t)like->move.n_copies,
           arrival_bytes = sizeof(oly_arrival) * (size_t)like->move.n_arrivals;
    oly_copy_work *copies = oly_arena_take_raw(&p->plan->arena, copy_bytes);
    oly_arrival *arrivals = oly_arena_take_raw(&p->plan->arena, arrival_bytes);
    OLY_PLAN_CHECK(copies ? arrivals : NULL);
    if (copy_bytes)
        memcpy(copies, like->move.copies, copy_bytes);
    if (arrival_bytes)
        memcpy(arrivals, like->move.arrivals, arrival_bytes);
    for (int k = 0; k < like->move.n_copies; k++) {
        copies[k].from.base = in_other_slot(plan, copies[k].from.base, n, from, to);
        copies[k].to.base = in_other_slot(plan, copies[k].to.base, n, from, to);
    }
    for (int k = 0; k < like->move.n_arrivals; k++)
        arrivals[k].piece.buffer = in_other_slot(plan, arrivals[k].piece.buffer, n, from, to);
    s->move.copies = copies;
    s->move.arrivals = arrivals;
    return OLY_OK;
}

oly_status oly_plan_margins(oly_planner *p, oly_block *const b[2], int n, const oly_movement *movements,
                            const int *const slots[2])
{
    mover *movers = OLY_PLAN_NEW(p, mover, n + 1);
    int *cells[2] = {OLY_PLAN_NEW(p, int, n + 1), OLY_PLAN_NEW(p, int, n + 1)};
    oly_status st = OLY_OK;
    OLY_PLAN_CHECK(movers && cells[0] ? cells[1] : NULL);
    for (int k = 0; k < n; k++) {
        movers[k] = mover_of(p, &movements[k]);
        movers[k].in_place = true;
        movers[k].from_slot = movers[k].to_slot = slots[0][k];
        for (int j = 0; j < 2; j++) {
            oly_slot_use(p, slots[j][k]);
            cells[j][k] = oly_cell(p->plan, 0, slots[j][k]);
        }
    }
    for (int k = 0; k < n && st == OLY_OK; k++)
        st = oly_find_pieces(&movers[k]);
    if (st == OLY_OK && n > 0)
        st = make_step(n, movers, false, b[0]);
    for (int k = 0; k < n; k++)
        oly_forget_pieces(&movers[k]);
    if (st == OLY_OK && n > 0)
        st = repeat_step(p, &b[0]->steps[b[0]->n_steps - 1], n, cells[0], cells[1], slots[1][0], b[1]);
    for (int k = 0; k < n; k++)
        oly_slot_use(p, slots[1][k]);
    return st;
}
