/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends boxes of local buffers to other ranks and receives theirs: built once (exchange_make.c), replayed without allocation. The
 * protocol over a transport (transport.h), which moves the bytes. Used by runtime/run.
 *
 *   small message   | ticket 128 bytes | boxes packed one after the other |
 *   big message     | ticket |   and, with a tag of its own,   | boxes, in chunks of a sixteenth of OLYMPUS_EXCHANGE_MEMORY |
 *
 * The size of the payload alone decides which is used, so both sides agree, and chunks are cut at the same bytes on both. A
 * large payload that the transport takes from the buffer, or puts into it, needs no staging, on each side independently. The
 * others are packed and unpacked chunk by chunk. If the total to be sent, or received, is more than half of
 * the limit, chunks are sent in rounds: each waits for the memory of an earlier one (exchange_rounds); the other side need not
 * know. Payloads are received only after their ticket has been checked, so that a message of another call never overwrites an
 * array; and every receive of a first message has room for the longest one, because not every MPI survives a message that is
 * longer than its receive (MPICH calls the error handler of MPI_COMM_WORLD, which is the program's). */
#include "exchange.h"
#include "divergence.h"
#include "staging.h"
#include "core/error.h"
#include "core/timeline.h"
#include "core/hash.h"
#include "core/option.h"
#include "core/progress.h"
#include "core/text.h"
#include <string.h>

/* The transport may still read or write a failed exchange's memory, so it is never freed: the job is about to end. */
static void abandon(oly_exchange *x)
{
    bool in_block = false, in_staging = false;
    for (int i = 0; i < x->n_requests; i++) {
        if (!oly_transport_get()->give_up(x->requests, i))
            continue;
        in_staging = in_staging || x->slots[i].at < 0;
        in_block = in_block || x->slots[i].at >= 0;
    }
    if (in_staging)
        x->staging = NULL;
    if (x->block && in_block)
        oly_staging_abandon(x->block);
    else if (x->block)
        oly_staging_give(x->block);
    x->block = NULL;
}

static void give_block(oly_exchange *x)
{
    if (x->block)
        oly_staging_give(x->block);
    x->block = NULL;
}

/* -- pending exchanges --------------------------------------------------------------------------------------------- */

static oly_exchange *first_left; /* of the communication queue */

static void unlink_left(oly_exchange *x)
{
    for (oly_exchange **at = &first_left; *at; at = &(*at)->next_left)
        if (*at == x) {
            *at = x->next_left;
            x->next_left = NULL;
            return;
        }
}

void oly_exchange_leave(oly_exchange *x, const oly_ticket *ticket, void *const *receive_base)
{
    oly_exchange **last = &first_left;
    while (*last)
        last = &(*last)->next_left;
    x->ticket = *ticket;
    x->base = receive_base;
    x->next_left = NULL;
    *last = x;
}

uint64_t oly_exchange_sequence(const oly_exchange *x)
{
    return x->ticket.sequence;
}

bool oly_exchange_any_left(void)
{
    for (const oly_exchange *x = first_left; x; x = x->next_left)
        if ((x->big || x->stages) && x->left > 0)
            return true;
    return false;
}

void oly_exchange_stop(oly_exchange *x)
{
    unlink_left(x);
    if (x->started)
        abandon(x);
}

/* -- start ----------------------------------------------------------------------------------------------- */

/* The chunk of a request. */
static oly_chunk chunk_of(const oly_exchange *x, const exchange_slot *slot, void *const *base)
{
    const exchange_message *m = slot->message;
    oly_chunk c = {.payload = &m->payload, .room = slot->bytes, .base = base};
    if (slot->at < 0) {
        c.host = m->staging;
        c.head = TICKET;
        c.end = m->big ? 0 : m->payload.bytes;
        c.tag = OLY_TAG_TICKET;
    } else {
        c.host = slot->memory < 0 ? NULL : x->block + slot->memory;
        c.begin = slot->at;
        c.end = slot->at + slot->bytes;
        c.tag = m->tag;
    }
    return c;
}

/* Starts request i. */
static oly_status post(oly_exchange *x, int i, void *const *base)
{
    exchange_slot *slot = &x->slots[i];
    const oly_transport *transport = oly_transport_get();
    oly_chunk c = chunk_of(x, slot, base);
    slot->done = false;
    if (slot->receives) {
        c.room = slot->at < 0 ? OLY_FIRST_MESSAGE_BYTES : c.room;
        return transport->receive(x->requests, i, &c);
    }
    if (c.host && c.begin < c.end)
        OLY_TRY(transport->pack(&c));
    return transport->send(x->requests, i, &c);
}

static oly_status post_chunks(oly_exchange *x, const exchange_message *m, void *const *base)
{
    for (int c = 0; c < m->n_chunks; c++)
        OLY_TRY(post(x, m->first_chunk + c, base));
    return OLY_OK;
}

/* Posts the next chunks of those sent in rounds. */
static oly_status go_on(oly_exchange *x, bool receives, void *const *base)
{
    exchange_rounds *r = &x->rounds[receives];
    for (; r->next < r->n; r->next++) {
        int i = r->order[r->next];
        if (receives && !x->slots[i].message->arrived)
            return OLY_OK;
        if (r->next >= r->n_buffers && !x->slots[r->order[r->next - r->n_buffers]].done)
            return OLY_OK;
        OLY_TRY(post(x, i, base));
    }
    return OLY_OK;
}

static bool goes_in_rounds(const oly_exchange *x, const exchange_slot *slot)
{
    return x->rounds[slot->receives].n > 0 && !slot->message->in_place;
}

static void begin_replay(oly_exchange *x)
{
    x->started = true;
    x->left = x->n_requests;
    x->rounds[0].next = x->rounds[1].next = 0;
    for (int i = 0; i < x->n_receives + x->n_sends; i++) {
        exchange_message *m = oly_exchange_message(x, i);
        m->left = 1 + m->n_chunks;
        m->arrived = m->sent = false;
        if (m->big)
            m->tag = oly_world_payload_tag(m->payload.peer, i < x->n_receives);
    }
}

/* Hashes of the other sets that both this rank and the peer are in. */
static uint64_t shared_with(const oly_ticket *ticket, int peer)
{
    uint64_t hash = 0;
    for (int k = 0; k < ticket->n_shared; k++)
        if (oly_process_set_has(ticket->sets[k].set, peer))
            hash = oly_hash_mix(hash, ticket->sets[k].hash);
    return hash;
}

/* A message is being sent, or has arrived: from `begin` until now. Both sides give it the same number. */
static void show_message(oly_event_kind kind, const exchange_message *m, const oly_ticket *ticket, int64_t begin)
{
    int me = oly_world_rank(), sender = kind == OLY_EVENT_SEND ? me : m->payload.peer,
        receiver = kind == OLY_EVENT_SEND ? m->payload.peer : me;
    uint64_t number = oly_hash_mix(oly_hash_mix(ticket->set, ticket->fingerprint), ticket->sequence);
    number = oly_hash_mix(number, (uint64_t)sender << 32 | (uint64_t)receiver);
    oly_timeline_add((oly_span){.begin = begin,
                                .end = oly_ticks(),
                                .kind = (uint8_t)kind,
                                .device = -1,
                                .label = oly_label_of_text(ticket->call),
                                .a = m->payload.peer,
                                .b = m->payload.bytes,
                                .c = (int64_t)number});
}

static oly_status start_send(oly_exchange *x, int i, const oly_ticket *ticket, void *const *base)
{
    exchange_message *m = &x->sends[i];
    const exchange_slot *first = &x->slots[x->n_receives + i];
    int64_t begin = oly_timeline_spans() && !x->quiet ? oly_ticks() : 0;
    memcpy(m->staging, ticket, TICKET);
    if (ticket->n_shared > 0) {
        uint64_t shared = shared_with(ticket, m->payload.peer);
        memcpy(m->staging + offsetof(oly_ticket, shared), &shared, sizeof shared);
    }
    for (int k = 0; k < m->payload.n_boxes && m->payload.sources; k++)
        m->payload.sources[k] = base[m->payload.box[k].buffer];
    m->sent = true;
    OLY_TRY(post(x, x->n_receives + i, base));
    if (begin)
        show_message(OLY_EVENT_SEND, m, ticket, begin);
    return goes_in_rounds(x, first) ? OLY_OK : post_chunks(x, m, base);
}

static oly_status start_sends(oly_exchange *x, const oly_ticket *ticket, void *const *base)
{
    for (int i = 0; i < x->n_sends; i++)
        if (!x->sends[i].sent)
            OLY_TRY(start_send(x, i, ticket, base));
    return go_on(x, false, base);
}

static oly_status take_block(oly_exchange *x, const oly_ticket *ticket);
static oly_status begin_last_stages(void);

/* Also takes the memory for packed chunks, if any. */
static oly_status post_receives(oly_exchange *x, const oly_ticket *ticket, void *const *send_base)
{
    begin_replay(x);
    x->ticket = *ticket;
    x->base = send_base;
    for (int i = 0; i < x->n_receives; i++)
        OLY_TRY(post(x, i, NULL));
    return OLY_OK;
}

oly_status oly_exchange_begin(oly_exchange *x, const oly_ticket *ticket, void *const *send_base)
{
    if (x->started)
        return oly_fail(OLY_STATE, "%s: an exchange is started again before it is finished", ticket->call);
    OLY_TRY(begin_last_stages());
    OLY_TRY(oly_exchange_list(x));
    x->quiet = oly_timeline_quiet > 0;
    if (x->block_bytes > 0)
        OLY_TRY(take_block(x, ticket));
    OLY_TRY(post_receives(x, ticket, send_base));
    if (x->stages) {
        x->stage = 0;
        x->left = x->outline->n_stages;
    }
    return OLY_OK;
}

static oly_status begin_stage(oly_exchange *x);

oly_status oly_exchange_start(oly_exchange *x, const oly_ticket *ticket, void *const *send_base)
{
    OLY_TRY(oly_exchange_begin(x, ticket, send_base));
    return x->stages ? begin_stage(x) : start_sends(x, ticket, send_base);
}

/* -- stages ---------------------------------------------------------------------------------------------- */

/* Needs memory for it; without, it is retried when other exchanges have ended. */
static oly_status begin_stage(oly_exchange *x)
{
    oly_exchange *s;
    oly_ticket ticket = x->ticket;
    OLY_TRY(oly_exchange_take_stage(x, &s));
    if (s->block_bytes > 0)
        OLY_TRY(oly_staging_take(s->block_bytes, true, &s->block));
    if (s->block_bytes > 0 && !s->block)
        return OLY_OK;
    s->quiet = x->quiet;
    x->running = s;
    ticket.fingerprint += (uint64_t)x->stage;
    OLY_TRY(post_receives(s, &ticket, x->base));
    return start_sends(s, &ticket, x->base);
}

/* Has the message of a rank arrived, or will none? */
static bool has_come(const oly_exchange *x, int peer)
{
    for (int k = 0; x->left > 0 && k <= x->stage; k++)
        for (int i = 0; x->stages[k] && i < x->stages[k]->n_receives; i++)
            if (x->stages[k]->receives[i].payload.peer == peer)
                return k < x->stage || (x->running && x->stages[k]->receives[i].left == 0);
    return x->left == 0;
}

/* Will it start more stages after the current one? */
static bool goes_on_beginning(const oly_exchange *x)
{
    return x->stages && x->left > 0 && (x->stage + 1 < x->outline->n_stages || !x->running);
}

oly_status oly_exchange_send(oly_exchange *x, int peer)
{
    if (peer < 0)
        return start_sends(x, &x->ticket, x->base);
    for (int i = 0; i < x->n_sends && x->rounds[0].n == 0; i++) /* rounds have their own order: all at the end */
        if (x->sends[i].payload.peer == peer && !x->sends[i].sent)
            OLY_TRY(start_send(x, i, &x->ticket, x->base));
    return OLY_OK;
}

/* -- divergence ------------------------------------------------------------------------------------------ */

static const char same_order[] = "all ranks must issue the same operations in the same order";

/* Fails OLY_DIVERGED unless the sender made this call and the same calls before it. */
static oly_status check_ticket(const exchange_message *m, const oly_ticket *mine)
{
    oly_ticket theirs = {0}, expected = *mine;
    memcpy(&theirs, m->staging, TICKET);
    expected.shared = mine->n_shared > 0 ? shared_with(mine, m->payload.peer) : 0;
    theirs.call[sizeof theirs.call - 1] = 0;
    if (memcmp(&theirs, &expected, OLY_TICKET_COMPARED) == 0)
        return oly_introduction_met(m->payload.peer, mine, &theirs);
    return oly_divergence_met(m->payload.peer, &expected, &theirs);
}

static oly_status wrong_length(const exchange_message *m, const oly_ticket *mine)
{
    return oly_fail(OLY_DIVERGED,
                    "rank %d is in %s and expects %lld bytes from rank %d, which sent a different number: %s",
                    oly_world_rank(), mine->call, (long long)m->payload.bytes, m->payload.peer, same_order);
}

static oly_status check_message(const exchange_slot *slot, int bytes, const oly_ticket *mine)
{
    const exchange_message *m = slot->message;
    if (slot->at < 0 && bytes >= TICKET)
        OLY_TRY(check_ticket(m, mine));
    oly_hear(m->payload.peer, mine);
    return bytes == slot->bytes ? OLY_OK : wrong_length(m, mine);
}

/* -- finish ---------------------------------------------------------------------------------------------- */

/* A request is complete. */
static oly_status complete(oly_exchange *x, const oly_completion *done, const oly_ticket *mine, void *const *base)
{
    exchange_slot *slot = &x->slots[done->request];
    exchange_message *m = slot->message;
    int64_t begin = slot->receives && oly_timeline_spans() && !x->quiet ? oly_ticks() : 0;
    x->left--;
    m->left--;
    slot->done = true;
    if (slot->receives) {
        OLY_TRY(check_message(slot, done->bytes, mine));
        oly_chunk c = chunk_of(x, slot, base);
        if (c.host && c.begin < c.end)
            OLY_TRY(oly_transport_get()->unpack(&c));
        m->arrived = true;
        if (begin && m->left == 0)
            show_message(OLY_EVENT_RECEIVE, m, mine, begin);
    }
    if (goes_in_rounds(x, slot))
        return go_on(x, slot->receives, base);
    return slot->receives && slot->at < 0 ? post_chunks(x, m, base) : OLY_OK;
}

/* Adds the ranks of pending messages: those that have to send to this one or, if all have, those that have to receive. */
static void name_late(const void *exchange, oly_late *late)
{
    const oly_exchange *x = exchange;
    late->otherwise = "others to be over";
    x = x->running ? x->running : x;
    for (int i = 0; i < x->n_receives + x->n_sends; i++) {
        const exchange_message *m = oly_exchange_message(x, i);
        if (i == x->n_receives && late->n > 0)
            break;
        if (m->left > 0 && m->payload.sum && m->arrived) /* it may be any rank */
            late->otherwise = "the other ranks' part of a sum over all GPUs";
        else if (m->left > 0)
            oly_late_add(late, m->payload.peer);
    }
}

static oly_wait wait_for(const oly_exchange *x, const oly_ticket *ticket)
{
    return (oly_wait){.call = ticket->call, .late = name_late, .context = x};
}

static oly_status too_late(const oly_exchange *x, const oly_ticket *mine)
{
    OLY_TRY(oly_world_told());
    oly_text more = {0};
    oly_late late = {0};
    name_late(x, &late);
    oly_peers_describe(&more, &late);
    oly_fail(OLY_TIMEOUT,
             "rank %d waited %lld s in %s for %s%s; check whether it has ended, waits in another call, or skips "
             "this one (%s), or is still computing (then raise OLYMPUS_TIMEOUT)",
             oly_world_rank(), (long long)oly_option.timeout, mine->call, oly_late_text_of(&late).chars,
             oly_text_chars(&more), same_order);
    oly_text_free(&more);
    return OLY_TIMEOUT;
}

/* Asks the ranks of pending messages for their calls. */
static void ask_late(const oly_exchange *x)
{
    enum { ASKED = 8 };
    int asked = 0;
    x = x->running ? x->running : x;
    for (int i = 0; i < x->n_receives + x->n_sends && asked < ASKED; i++)
        if (oly_exchange_message(x, i)->left > 0) {
            oly_divergence_ask(oly_exchange_message(x, i)->payload.peer);
            asked++;
        }
}

/* After a poll without progress: have others diverged? */
static oly_status look_out(const oly_exchange *x, const oly_wait *w)
{
    enum { POLLS = 16 };
    if (w->polls % POLLS)
        return OLY_OK;
    oly_status st = oly_divergence_look();
    if (st != OLY_OK)
        oly_world_break(st);
    else if (oly_divergence_is_time(w->began)) {
        oly_values_stuck(w->call);
        ask_late(x);
    }
    return st;
}

static oly_status complete_some(oly_exchange *x, const oly_ticket *ticket, void *const *base, int *n);

/* The same for stages: when one is complete the next one starts. */
static oly_status complete_stages(oly_exchange *x, int *n)
{
    for (*n = 0; x->left > 0; x->left--) {
        if (!x->running)
            OLY_TRY(begin_stage(x));
        if (!x->running)
            return OLY_OK;
        int some = 0;
        if (x->running->left > 0)
            OLY_TRY(complete_some(x->running, &x->running->ticket, x->base, &some));
        *n += some;
        if (x->running->left > 0)
            return OLY_OK;
        x->running->started = false;
        x->running = NULL;
        if (x->outline->between)
            OLY_TRY(x->outline->between(x->outline->context, x->stage, x->base));
        x->stage++;
        (*n)++;
    }
    return OLY_OK;
}

/* Completes what has arrived; n: the number of completions. */
static oly_status complete_some(oly_exchange *x, const oly_ticket *ticket, void *const *base, int *n)
{
    if (x->stages)
        return complete_stages(x, n);
    OLY_TRY(oly_transport_get()->test(x->requests, x->n_requests, n, x->done));
    for (int k = 0; k < *n; k++)
        OLY_TRY(complete(x, &x->done[k], ticket, base));
    if (x->left == 0)
        give_block(x);
    return OLY_OK;
}

/* n: the number of completions. */
static oly_status advance_all(int *n)
{
    *n = 0;
    for (oly_exchange *x = first_left; x; x = x->next_left) {
        int some = 0;
        if (x->left > 0)
            OLY_TRY(complete_some(x, &x->ticket, x->base, &some));
        *n += some;
    }
    return OLY_OK;
}

oly_status oly_exchange_advance(void)
{
    int n;
    return advance_all(&n);
}

/* Waits for memory while pending exchanges hold all of it. Ranks start exchanges in one order, so the earliest pending
 * one has been started everywhere, or will be as soon as those before it are complete. */
static oly_status wait_for_block(oly_exchange *x, oly_wait *w)
{
    for (;;) {
        const oly_exchange *late = first_left;
        while (late && late->left == 0)
            late = late->next_left;
        OLY_TRY(oly_staging_take(x->block_bytes, late, &x->block));
        if (x->block || !late) /* with no other pending exchange there is room */
            return OLY_OK;
        int n;
        OLY_TRY(advance_all(&n));
        w->context = late;
        if (n > 0)
            oly_wait_restart(w);
        else if (!oly_wait_more(w)) {
            oly_world_break(OLY_TIMEOUT);
            return too_late(late, &late->ticket);
        } else
            OLY_TRY(look_out(late, w));
    }
}

static oly_status take_block(oly_exchange *x, const oly_ticket *ticket)
{
    oly_wait w = wait_for(x, ticket);
    oly_status status = wait_for_block(x, &w);
    oly_wait_end(&w);
    return status;
}

/* Messages between two ranks are told apart by their order alone. So an exchange starts when the pending ones have
 * started their last stages, as they then have on every rank. */
static oly_status begin_last_stages_of(const oly_exchange *x)
{
    oly_wait w = wait_for(x, &x->ticket);
    oly_status status = OLY_OK;
    while (status == OLY_OK && goes_on_beginning(x)) {
        int n;
        status = advance_all(&n);
        if (n > 0) {
            oly_wait_restart(&w);
        } else if (status == OLY_OK && !oly_wait_more(&w)) {
            oly_world_break(OLY_TIMEOUT);
            status = too_late(x, &x->ticket);
        } else if (status == OLY_OK) {
            status = look_out(x, &w);
        }
    }
    oly_wait_end(&w);
    return status;
}

static oly_status begin_last_stages(void)
{
    for (const oly_exchange *x = first_left; x; x = x->next_left)
        OLY_TRY(begin_last_stages_of(x));
    return OLY_OK;
}

/* Waits until `left`, of the exchange or one of its messages, is 0. */
static oly_status complete_all(oly_exchange *x, const int *left, const oly_ticket *ticket, void *const *base)
{
    oly_wait w = wait_for(x, ticket);
    oly_status status = OLY_OK;
    while (*left > 0 && status == OLY_OK) {
        int n;
        status = complete_some(x, ticket, base, &n);
        if (n > 0)
            oly_wait_restart(&w); /* the limit is for silence, not for the total */
        else if (status == OLY_OK && !oly_wait_more(&w))
            status = too_late(x, ticket);
        else if (status == OLY_OK)
            status = look_out(x, &w);
        if (n == 0 && status == OLY_OK && first_left)
            status = oly_exchange_advance(); /* others may wait for these */
    }
    oly_wait_end(&w);
    return status;
}

oly_status oly_exchange_finish(oly_exchange *x, const oly_ticket *ticket, void *const *receive_base)
{
    if (!x->started)
        return oly_fail(OLY_STATE, "%s: an exchange is finished before it is started", ticket->call);
    oly_status status = complete_all(x, &x->left, ticket, receive_base);
    if (status != OLY_OK) {
        oly_world_break(status);
        return status;
    }
    x->started = false;
    give_block(x);
    return OLY_OK;
}

oly_status oly_exchange_join(oly_exchange *x)
{
    unlink_left(x);
    return oly_exchange_finish(x, &x->ticket, x->base);
}

/* The same for an exchange in stages. */
static oly_status await_in_stages(oly_exchange *x, int peer)
{
    oly_wait w = wait_for(x, &x->ticket);
    oly_status status = OLY_OK;
    while (status == OLY_OK && !has_come(x, peer)) {
        int n;
        status = advance_all(&n);
        if (n > 0)
            oly_wait_restart(&w);
        else if (status == OLY_OK && !oly_wait_more(&w))
            status = too_late(x, &x->ticket);
        else if (status == OLY_OK)
            status = look_out(x, &w);
    }
    oly_wait_end(&w);
    return status;
}

oly_status oly_exchange_await(oly_exchange *x, int peer)
{
    oly_status status = x->stages ? await_in_stages(x, peer) : OLY_OK;
    for (int i = 0; i < x->n_receives && status == OLY_OK; i++)
        if (x->receives[i].payload.peer == peer)
            status = complete_all(x, &x->receives[i].left, &x->ticket, x->base);
    if (status != OLY_OK)
        oly_world_break(status);
    return status;
}
