/* Moving a value from one layout to the boxes that devices need (found by pieces.c). Between devices of one process that is a copy;
 * between processes the boxes for one rank travel in one message. */
#include "plan/pieces.h"
#include "core/text.h"
#include <stdlib.h>
#include <string.h>

/* -- messages ------------------------------------------------------------------------------------------------------ */

static int in_message_order(const void *a, const void *b)
{
    const remote *x = *(const remote *const *)a, *y = *(const remote *const *)b;
    if (x->sending != y->sending)
        return x->sending ? -1 : 1;
    if (x->peer != y->peer)
        return x->peer - y->peer;
    if (x->item != y->item)
        return x->item - y->item;
    if (x->receiver != y->receiver)
        return x->receiver - y->receiver;
    for (int d = 0; d < x->box.rank && x->source == y->source; d++)
        if (x->box.lo[d] != y->box.lo[d])
            return x->box.lo[d] < y->box.lo[d] ? -1 : 1;
    return x->source - y->source;
}

static bool same_bytes(const remote *a, const remote *b)
{
    return a->item == b->item && a->source == b->source && oly_box_equal(&a->box, &b->box);
}

/* Pieces of one message from remotes[0..n): a box that several receivers of the rank need travels once. */
static void fill_message(const remote *const *remotes, int n, oly_message *message)
{
    message->peer = remotes[0]->peer;
    for (int k = 0; k < n; k++) {
        int same = -1, shown = 0;
        for (int j = 0; j < k && same < 0; j++)
            if (same_bytes(remotes[j], remotes[k]))
                same = j;
        shown = same < 0 || !remotes[k]->sending;
        if (!shown)
            continue;
        message->same[message->n_pieces] = remotes[k]->sending ? -1 : same;
        message->pieces[message->n_pieces++] = remotes[k]->mover->pieces[remotes[k] - remotes[k]->mover->remotes];
    }
}

/* One exchange for all of them. */
static oly_status make_exchange(size_t element, int n_remote, const remote **remotes, oly_exchange **exchange)
{
    qsort(remotes, (size_t)n_remote, sizeof *remotes, in_message_order);
    oly_message *messages = oly_calloc((size_t)n_remote, sizeof *messages);
    oly_piece *pieces = oly_calloc((size_t)n_remote, sizeof *pieces);
    int *same = oly_calloc((size_t)n_remote, sizeof *same);
    int n = 0, n_sends = 0;
    oly_status st = OLY_OK;
    if (!messages || !pieces || !same)
        st = oly_out_of_memory(sizeof *pieces * (size_t)n_remote, "an exchange");
    for (int k = 0; st == OLY_OK && k < n_remote;) {
        int end = k + 1;
        while (end < n_remote && remotes[end]->peer == remotes[k]->peer && remotes[end]->sending == remotes[k]->sending)
            end++;
        messages[n].pieces = pieces + k;
        messages[n].same = same + k;
        n_sends += remotes[k]->sending;
        fill_message(&remotes[k], end - k, &messages[n++]);
        k = end;
    }
    if (st == OLY_OK)
        st = oly_exchange_make(element, n_sends, messages, n - n_sends, messages + n_sends, exchange);
    oly_release(messages);
    oly_release(pieces);
    oly_release(same);
    return st;
}

/* -- for people ---------------------------------------------------------------------------------------------------- */

static bool has_axis(const oly_axis_list *l, int axis)
{
    for (int k = 0; k < l->n; k++)
        if (l->axis[k] == axis)
            return true;
    return false;
}

/* The classical name of a movement. */
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

/* Positions that a device gets something from, each once; beyond so many, all count. */
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

/* What device d gets from others: elements, and from which sources. */
static int64_t received_by(const mover *m, int d, source_list *sources)
{
    int64_t elements = m->wanted_elements ? m->wanted_elements[d] : 0;
    sources->more += m->wanted_blocks ? (int)m->wanted_blocks[d] : 0;
    for (int k = 0; k < m->n_remote; k++)
        if (!m->remotes[k].sending && m->remotes[k].device == d) {
            elements += oly_box_count(&m->remotes[k].box);
            add_source(sources, m->remotes[k].source);
        }
    for (int k = 0; k < m->n_copies; k++) {
        const oly_copy_work *c = &m->copies[k];
        const oly_plan *plan = m->p->plan;
        if (oly_cell_device(plan, c->to.base) != d || oly_cell_device(plan, c->from.base) == d ||
            m->from->mesh->everywhere)
            continue;
        int64_t n = 1;
        for (int e = 0; e < c->task.rank; e++)
            n *= c->task.extent[e];
        elements += n;
        add_source(sources, oly_position_in(m->p, m->from->mesh, oly_cell_device(plan, c->from.base)));
    }
    return elements;
}

static void describe(int n, mover *movers, oly_step *s)
{
    mover *m = &movers[0];
    int64_t most = 0, extra_lo = 0, extra_hi = 0;
    int messages = 0;
    for (int d = 0; d < m->p->plan->n_devices; d++) {
        int64_t elements = 0;
        source_list sources = {0};
        for (int k = 0; k < n; k++)
            elements += received_by(&movers[k], d, &sources);
        s->wire += elements * (int64_t)m->element;
        most = elements > most ? elements : most;
        messages = sources.n + sources.more > messages ? sources.n + sources.more : messages;
    }
    s->bytes = most * (int64_t)m->element;
    s->messages = messages;
    s->members = m->to->mesh->n_devices > m->from->mesh->n_devices ? m->to->mesh->n_devices : m->from->mesh->n_devices;
    if (m->wanted_blocks)
        s->detail = "messages are listed by the first run";
    s->what = most == 0 && m->from->mesh == m->to->mesh ? "local copy" : name_of(m);
    if (strcmp(s->what, "halo exchange") != 0)
        return;
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
}

/* Axes only: of explanations. */
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

/* What comes from other processes, for overlap.c. */
static oly_status note_arrivals(int n, const mover *movers, oly_step *s)
{
    int total = 0;
    for (int k = 0; k < n; k++)
        for (int j = 0; j < movers[k].n_remote; j++)
            total += !movers[k].remotes[j].sending;
    oly_arrival *arrivals = OLY_PLAN_NEW(movers[0].p, oly_arrival, total + 1);
    OLY_PLAN_CHECK(arrivals);
    for (int k = 0; k < n; k++)
        for (int j = 0; j < movers[k].n_remote; j++) {
            const remote *r = &movers[k].remotes[j];
            if (!r->sending)
                arrivals[s->move.n_arrivals++] = (oly_arrival){r->peer, movers[k].pieces[j]};
        }
    s->move.arrivals = arrivals;
    return OLY_OK;
}

/* The remote pieces of all movements, one list. */
oly_status oly_movers_exchange(int n, mover *movers, oly_exchange **exchange)
{
    int total = 0;
    *exchange = NULL;
    for (int k = 0; k < n; k++) {
        OLY_TRY(oly_place_pieces(&movers[k]));
        total += movers[k].n_remote;
    }
    if (total == 0)
        return OLY_OK;
    const remote **all = oly_malloc(sizeof *all * (size_t)total);
    OLY_PLAN_CHECK(all);
    total = 0;
    for (int k = 0; k < n; k++)
        for (int j = 0; j < movers[k].n_remote; j++) {
            movers[k].remotes[j].mover = &movers[k];
            movers[k].remotes[j].item = k;
            all[total++] = &movers[k].remotes[j];
        }
    oly_status st = make_exchange(movers[0].element, total, all, exchange);
    oly_release(all);
    return st;
}

/* Their step, of pieces that are found, unless it is better to list them later. */
static oly_status make_step(int n, mover *movers, bool later, oly_block *b)
{
    oly_planner *p = movers[0].p;
    oly_exchange *exchange;
    int n_copies = 0;
    OLY_TRY(later ? oly_make_outline(n, movers, &exchange) : oly_movers_exchange(n, movers, &exchange));
    for (int k = 0; k < n; k++)
        n_copies += movers[k].n_copies;
    oly_copy_work *copies = n == 1 ? movers[0].copies : OLY_PLAN_NEW(p, oly_copy_work, n_copies + 1);
    oly_step *s = copies || n_copies == 0 ? oly_step_add(p, b, OLY_STEP_MOVE, movers[0].node, "exchange") : NULL;
    if (!s) {
        oly_exchange_free(exchange);
        return oly_out_of_memory(0, "a plan");
    }
    s->exchange = exchange;
    s->out_slot = movers[0].to_slot;
    s->move.copies = copies;
    for (int k = 0; k < n; k++) {
        if (copies && n > 1 && movers[k].n_copies)
            memcpy(copies + s->move.n_copies, movers[k].copies, sizeof *copies * (size_t)movers[k].n_copies);
        s->move.n_copies += movers[k].n_copies;
        s->work += movers[k].work;
        if (!movers[k].in_place)
            p->plan->slots[movers[k].to_slot].block = b;
        oly_slot_use(p, movers[k].from_slot);
        oly_slot_use(p, movers[k].to_slot);
    }
    describe(n, movers, s);
    if (exchange && !later)
        OLY_TRY(note_arrivals(n, movers, s));
    return oly_note_transfer(n, movers, s);
}

/* One step for movements of elements of one size. */
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

static oly_status add_move(mover m, oly_block *b)
{
    oly_slot_use(m.p, m.from_slot);
    oly_slot_use(m.p, m.to_slot);
    return add_moves(1, &m, b);
}

oly_status oly_plan_moves(oly_planner *p, oly_block *b, int n, const oly_movement *movements)
{
    mover *movers = OLY_PLAN_NEW(p, mover, n);
    OLY_PLAN_CHECK(movers);
    for (int k = 0; k < n; k++) {
        const oly_movement *v = &movements[k];
        movers[k] = (mover){.p = p,
                            .node = v->node,
                            .from = v->from,
                            .to = v->to,
                            .from_slot = v->from_slot,
                            .to_slot = v->to_slot,
                            .in_place = v->in_place,
                            .wanted = v->wanted,
                            .shape = v->from->shape,
                            .element = oly_dtype_size(v->node->type.dtype)};
        oly_slot_use(p, v->from_slot);
        oly_slot_use(p, v->to_slot);
    }
    return n > 0 ? add_moves(n, movers, b) : OLY_OK;
}

oly_status oly_plan_reshard(oly_planner *p, oly_block *b, const oly_node *node, const oly_layout *from, int from_slot,
                            const oly_region *to, int to_slot)
{
    return add_move((mover){.p = p,
                            .node = node,
                            .from = from,
                            .to = to,
                            .from_slot = from_slot,
                            .to_slot = to_slot,
                            .shape = from->shape,
                            .element = oly_dtype_size(node->type.dtype)},
                    b);
}

oly_status oly_reshard_permuted(oly_planner *p, oly_block *b, const oly_node *node, const oly_layout *from,
                                int from_slot, const oly_region *to, int to_slot, int d, oly_permutation permutation)
{
    return add_move((mover){.p = p,
                            .node = node,
                            .from = from,
                            .to = to,
                            .from_slot = from_slot,
                            .to_slot = to_slot,
                            .permutation = permutation,
                            .permuted = d,
                            .shape = from->shape,
                            .element = oly_dtype_size(node->type.dtype)},
                    b);
}

/* The pieces that were found for one slot, in another one laid out alike. */
static oly_status move_to_slot(mover *m, int slot)
{
    const oly_plan *plan = m->p->plan;
    oly_copy_work *copies = OLY_PLAN_NEW(m->p, oly_copy_work, m->n_copies + 1);
    OLY_PLAN_CHECK(copies);
    for (int k = 0; k < m->n_copies; k++) {
        copies[k] = m->copies[k];
        copies[k].from.base = oly_cell(plan, oly_cell_device(plan, copies[k].from.base), slot);
        copies[k].to.base = oly_cell(plan, oly_cell_device(plan, copies[k].to.base), slot);
    }
    for (int k = 0; k < m->n_remote; k++)
        m->pieces[k].buffer = oly_cell(plan, m->remotes[k].device, slot);
    m->copies = copies;
    m->from_slot = m->to_slot = slot;
    return OLY_OK;
}

oly_status oly_reshard_margins(oly_planner *p, oly_block *b[2], const oly_node *node, const oly_layout *from,
                               const oly_region *region, const oly_wanted *wanted, const int slot[2])
{
    mover m = {.p = p,
               .node = node,
               .from = from,
               .to = region,
               .in_place = true,
               .wanted = *wanted,
               .from_slot = slot[0],
               .to_slot = slot[0],
               .shape = from->shape,
               .element = oly_dtype_size(node->type.dtype)};
    for (int k = 0; k < wanted->n; k++)
        if (oly_region_equal(&wanted->part[k], region))
            m.wanted.n = 0; /* all of it */
    oly_status st = oly_find_pieces(&m);
    for (int k = 0; k < 2 && st == OLY_OK; k++) {
        b[k] = oly_block_new(p);
        oly_slot_use(p, slot[k]);
        st = b[k] ? OLY_OK : oly_out_of_memory(0, "a plan");
        if (st == OLY_OK && k > 0)
            st = move_to_slot(&m, slot[k]);
        if (st == OLY_OK)
            st = make_step(1, &m, false, b[k]);
    }
    oly_forget_pieces(&m);
    return st;
}
