/* SPDX-License-Identifier: BSD-3-Clause */
/* Tree exchanges: all-gathers and broadcasts between many processes in stages. After stage k every one of n
 * processes in a line has what 2^k of them had, so that ceil(log2 n) messages replace n - 1.
 *
 *   all-gather of six, at process 0                      broadcast from process 0 of six
 *     has 0              from 1: 1                          0 -> 1
 *     has 0 1            from 2: 2 3                        0 -> 2, 1 -> 3
 *     has 0 1 2 3        from 4: 4 5                        0 -> 4, 1 -> 5
 *
 * Nothing is received twice, so no more bytes travel than in direct messages. A process first copies the blocks of
 * its own devices to those of its devices that need them; what arrives from others is then received in place, for
 * all of its devices together. A gather over several axes runs one axis after the other, beginning with those that
 * split a dimension finest, so that what a process has is one box, or two where it wraps around the line's end. All
 * stages are one step, whose exchange lists the messages of each stage when it first runs (tree_exchange_list.c).
 * So planning time does not depend on the number of processes. Called by reshard.c. */
#include "plan/move/tree_exchange.h"
#include <string.h>

/* A MOVE step with the copies found for the movements. */
static oly_status add_step(oly_staged *s, oly_block *b, const char *what, oly_step **added)
{
    const mover *m = &s->movers[0];
    int n_copies = 0;
    oly_step *step = *added = oly_step_add(s->p, b, OLY_STEP_MOVE, m->node, what);
    OLY_PLAN_CHECK(step);
    for (int j = 0; j < s->n; j++)
        n_copies += s->movers[j].n_copies;
    oly_copy_work *copies = OLY_PLAN_NEW(s->p, oly_copy_work, n_copies + 1);
    OLY_PLAN_CHECK(copies);
    step->move.copies = copies;
    step->out_slot = m->to_slot;
    step->members = s->mesh->n_devices;
    for (int j = 0; j < s->n; j++) {
        mover *from = &s->movers[j];
        for (int k = 0; k < from->n_copies; k++)
            copies[step->move.n_copies++] = from->copies[k];
        step->work += from->work;
        from->n_copies = 0;
        from->work = 0;
        oly_slot_use(s->p, from->to_slot);
        s->p->plan->slots[from->to_slot].block = b;
        if (n_copies > 0)
            oly_slot_use(s->p, from->from_slot);
    }
    return oly_note_transfer(s->n, m, step);
}

/* Adds a step of copies within each process; every process has this step. The bytes they move are counted by the next
 * step. */
static oly_status add_copies(oly_staged *s, oly_block *b)
{
    oly_step *step;
    for (int j = 0; j < s->n; j++)
        oly_slot_use(s->p, s->movers[j].from_slot);
    OLY_TRY(add_step(s, b, "copy", &step));
    step->alone = true;
    step->detail = "within each process";
    return OLY_OK;
}

/* Counts what devices here get from other processes. */
static void count_bytes(const oly_staged *s, oly_step *step)
{
    for (int d = 0; d < s->n_devices; d++) {
        int64_t bytes = 0;
        for (int j = 0; j < s->n && oly_staged_here(s, d); j++) {
            const mover *m = &s->movers[j];
            oly_box own = oly_box_intersect(&m->held[d], &m->target[d]);
            bool has = oly_position_in(s->p, m->from->mesh, d) >= 0;
            bytes += (oly_box_count(&m->target[d]) - (has ? oly_box_count(&own) : 0)) * (int64_t)m->element;
        }
        step->wire += bytes;
        step->bytes = bytes > step->bytes ? bytes : step->bytes;
    }
}

/* For overlap.c. */
static oly_status note_arrivals(const oly_staged *s, oly_step *step)
{
    oly_message_list messages = {0};
    OLY_TRY(oly_list_arrivals(s, &messages));
    oly_arrival *arrivals = OLY_PLAN_NEW(s->p, oly_arrival, messages.n + 1);
    OLY_PLAN_CHECK(arrivals);
    for (int k = 0; k < messages.n; k++)
        if (!messages.message[k].sending)
            arrivals[step->move.n_arrivals++] = (oly_arrival){messages.message[k].peer, messages.message[k].piece};
    step->move.arrivals = arrivals;
    oly_messages_drop(s->p, &messages);
    return OLY_OK;
}

/* An exchange whose messages are listed at the first run. */
static oly_status make_later(const oly_staged *s, const oly_step *step, oly_exchange **exchange)
{
    oly_planner *p = s->p;
    oly_staged *kept = OLY_PLAN_NEW(p, oly_staged, 1);
    oly_exchange_outline *o = OLY_PLAN_NEW(p, oly_exchange_outline, 1);
    int n_buffers = s->n * s->n_devices, *buffers = OLY_PLAN_NEW(p, int, 2 * n_buffers + 1);
    OLY_PLAN_CHECK(kept && o ? buffers : NULL);
    *kept = *s;
    OLY_TRY(oly_keep_movers(s->n, s->movers, &kept->p, &kept->movers));
    for (int k = 0; k < 2 * n_buffers; k++)
        buffers[k] = oly_cell(p->plan, k % s->n_devices, s->movers[k / s->n_devices % s->n].to_slot);
    *o = (oly_exchange_outline){.bytes_sent = step->wire,
                                .bytes_received = step->wire,
                                .peers = s->n_stages,
                                .n_buffers = n_buffers,
                                .buffers = buffers,
                                .n_stages = s->n_stages,
                                .list = oly_list_stage,
                                .context = kept};
    return oly_exchange_make_later(o, exchange);
}

static oly_status add_exchange(oly_staged *s, oly_block *b, const char *what, int messages, const char *detail)
{
    oly_step *step;
    OLY_TRY(add_step(s, b, what, &step));
    count_bytes(s, step);
    step->messages = step->bytes > 0 ? messages : 0;
    step->detail = detail;
    OLY_TRY(note_arrivals(s, step));
    return oly_staged_among(s) ? make_later(s, step, &step->exchange) : OLY_OK;
}

/* Copies blocks between devices of this process: to the devices that send along the first axis between processes, or
 * to the others. */
static oly_status copy_own(oly_staged *s, mover *m, bool senders)
{
    unsigned gathered, from = oly_axes_from(m), to = oly_axes_to(m);
    int first = oly_stages_own(s, &gathered);
    unsigned differ = oly_senders_differ(m, s->order.axis[first], gathered);
    OLY_TRY(oly_keep_boxes(m));
    for (int d = 0; d < s->n_devices; d++) {
        if (!oly_staged_here(s, d) || (oly_staged_first_alike(s, d, differ) == d) != senders)
            continue;
        for (int e = 0; e < s->n_devices; e++) {
            if (!oly_staged_here(s, e) || !oly_staged_agree(s, d, e, to & from) ||
                oly_staged_first_alike(s, e, from) != e)
                continue; /* not wanted, or an earlier device here holds the same */
            int source = oly_staged_agree(s, d, e, from) ? d : e;
            oly_box box = oly_box_intersect(&m->held[source], &m->target[d]);
            if (oly_box_count(&box) > 0)
                OLY_TRY(oly_add_copy(m, source, d, &m->target[d], &box));
        }
    }
    return OLY_OK;
}

static oly_status add_gather(oly_staged *s, oly_block *b)
{
    int n_processes = 1;
    for (int senders = 1; senders >= 0; senders--) {
        for (int j = 0; j < s->n; j++)
            OLY_TRY(copy_own(s, &s->movers[j], senders));
        if (senders)
            OLY_TRY(add_copies(s, b)); /* the other copies are part of the step with the exchange */
    }
    for (int k = 0; k < s->order.n; k++) {
        n_processes *= s->grid.size[s->order.axis[k]];
        s->n_stages += s->at_once ? 0 : oly_stages_between(s->grid.size[s->order.axis[k]]);
    }
    if (!s->at_once)
        return add_exchange(s, b, "all-gather", s->n_stages,
                            oly_plan_say(s->p, "in %d stages among %d processes", s->n_stages, n_processes));
    s->n_stages = 1;
    return add_exchange(s, b, "all-gather", n_processes - 1, oly_plan_say(s->p, "among %d processes", n_processes));
}

static oly_status add_broadcast(oly_staged *s, oly_block *b)
{
    bool mine = oly_mesh_my_process() == s->movers[0].from->mesh->process;
    for (int j = 0; j < s->n; j++)
        OLY_TRY(mine ? oly_find_copies(&s->movers[j]) : oly_keep_boxes(&s->movers[j]));
    OLY_TRY(add_copies(s, b));
    s->n_stages = oly_stages_between(s->grid.n);
    return add_exchange(s, b, "broadcast", 1,
                        oly_plan_say(s->p, "in %d stages among %d processes", s->n_stages, s->grid.n));
}

/* The mesh coordinates of this process's devices. */
static oly_status find_coordinates(oly_staged *s)
{
    s->n_devices = s->p->plan->n_devices;
    s->at = OLY_PLAN_NEW(s->p, int, (s->n_devices + 1) * OLY_MAX_RANK);
    OLY_PLAN_CHECK(s->at);
    for (int d = 0; d < s->n_devices; d++) {
        int position = oly_position_in(s->p, s->mesh, d);
        s->at[d * OLY_MAX_RANK] = -1;
        if (position >= 0 && s->mesh->n_axes > 0)
            oly_mesh_coordinates(s->mesh, position, s->at + (ptrdiff_t)d * OLY_MAX_RANK);
    }
    return OLY_OK;
}

/* Takes the movements that can share a step with `key`, the first of them, off the list. */
static oly_status take_alike(oly_staged *s, int *n, mover *movers, const mover *key)
{
    int left = 0;
    s->movers = OLY_PLAN_NEW(s->p, mover, *n);
    OLY_PLAN_CHECK(s->movers);
    oly_mesh from = key->from->mesh, to = key->to->mesh;
    for (int k = 0; k < *n; k++) {
        const mover *m = &movers[k];
        oly_axis_list order;
        oly_process_grid g;
        bool at_once;
        if (m->from->mesh == from && m->to->mesh == to &&
            (s->broadcast ? oly_is_broadcast(m, &g)
                          : oly_is_gather(m, &g, &order, &at_once) && at_once == s->at_once &&
                                oly_axis_list_equal(&order, &s->order)))
            s->movers[s->n++] = *m;
        else
            movers[left++] = *m;
    }
    *n = left;
    return OLY_OK;
}

oly_status oly_plan_stages(int *n, mover *movers, oly_block *b)
{
    if (oly_mesh_processes() == 1)
        return OLY_OK;
    for (int k = 0; k < *n;) {
        oly_staged s = {.p = movers[k].p, .mesh = movers[k].to->mesh};
        s.broadcast = !oly_is_gather(&movers[k], &s.grid, &s.order, &s.at_once);
        if (s.broadcast && !oly_is_broadcast(&movers[k], &s.grid)) {
            k++;
            continue;
        }
        mover key = movers[k];
        OLY_TRY(find_coordinates(&s));
        OLY_TRY(take_alike(&s, n, movers, &key));
        OLY_TRY(s.broadcast ? add_broadcast(&s, b) : add_gather(&s, b));
    }
    return OLY_OK;
}
