/* Boxes of local buffers to other ranks and theirs back: built once, replayed without allocation. Used by
 * runtime/run.
 *
 *   small message   | ticket 128 bytes | pieces packed one after the other |
 *   big message     | ticket |   and, with a tag of its own,   | pieces, in chunks of at most 1 GiB |
 *
 * Big is decided by the payload's size alone, so both sides agree. A big payload without gaps needs no staging:
 * it is sent from the buffer and received into the buffer, each side for itself. Payloads are received only
 * after their ticket has been looked at, so that a message of another call never overwrites an array; and every
 * receive of a first message has room for the longest there is, because not every MPI survives a message that
 * is longer than its receive (MPICH calls the error handler of MPI_COMM_WORLD, which is the program's). */
#include "world.h"
#include "pack.h"
#include "core/error.h"
#include "core/option.h"
#include "core/text.h"
#include <string.h>

enum { CHUNK_BYTES = 1 << 30, TICKET = sizeof(oly_ticket), SMALL_BYTES = OLY_FIRST_MESSAGE_BYTES - TICKET };
_Static_assert(TICKET == 128, "the ticket travels between programs built apart");

typedef struct exchange_message {
    int peer, n_pieces;
    oly_walk *walks;    /* owned */
    int64_t *positions; /* owned; where each piece lies in the payload */
    int64_t bytes;      /* payload */
    bool big;
    bool direct;               /* big, and one run in the buffer */
    char *staging;             /* owned; the ticket, then the payload unless direct */
    int first_chunk, n_chunks; /* its requests beyond the ticket's */
    int tag;                   /* of the chunks, in this replay */
    int left;                  /* requests not complete, in this replay */
} exchange_message;

/* What a request is about. */
typedef struct exchange_slot {
    exchange_message *message;
    bool receives;
    int64_t at; /* first byte of the payload; -1: the first message, ticket and small payload */
    int bytes;  /* its length */
} exchange_slot;

struct oly_exchange {
    int n_sends, n_receives, n_peers;
    exchange_message *sends, *receives; /* owned, as all arrays below */
    int n_requests; /* tickets of receives, tickets of sends, chunks; the order is the message's number */
    int left;       /* requests not complete, in this replay */
    bool started;
    /* while it is left under way */
    oly_exchange *next_left;
    oly_ticket ticket;
    void *const *base;
    MPI_Request *requests;
    MPI_Status *statuses;
    int *indices;
    exchange_slot *slots;
};

/* -- making ---------------------------------------------------------------------------------------------- */

static bool is_shared(const oly_message *from, int k)
{
    return from->same && from->same[k] >= 0;
}

static oly_status place_pieces(exchange_message *m, const oly_message *from, size_t element_bytes)
{
    for (int k = 0; k < m->n_pieces; k++) {
        OLY_TRY(oly_walk_make(&from->pieces[k], element_bytes, &m->walks[k]));
        if (is_shared(from, k)) {
            int j = from->same[k];
            if (j >= k || m->walks[j].bytes != m->walks[k].bytes)
                return oly_fail(OLY_INVALID,
                                "exchange: piece %d is said to be the same as piece %d, which is not an "
                                "earlier one of the same size",
                                k, j);
            m->positions[k] = m->positions[j];
            continue;
        }
        m->positions[k] = m->bytes;
        if (__builtin_add_overflow(m->bytes, m->walks[k].bytes, &m->bytes))
            return oly_fail(OLY_OVERFLOW, "exchange: the bytes for rank %d do not fit 64 bits", m->peer);
    }
    return OLY_OK;
}

static oly_status make_staging(exchange_message *m, bool receives)
{
    int64_t bytes = TICKET + (m->direct ? 0 : m->bytes);
    if (receives && bytes < OLY_FIRST_MESSAGE_BYTES)
        bytes = OLY_FIRST_MESSAGE_BYTES; /* pages never written to take no memory */
    m->staging = oly_malloc((size_t)bytes);
    return m->staging ? OLY_OK : oly_out_of_memory((size_t)bytes, "the messages of an exchange");
}

static oly_status make_message(exchange_message *m, const oly_message *from, bool receives, size_t element_bytes)
{
    if (from->peer < 0 || from->peer >= oly_world_size() || from->peer == oly_world_rank() || from->n_pieces < 0)
        return oly_fail(OLY_INVALID,
                        "exchange: %d pieces between rank %d and rank %d of %d: it must be another rank of "
                        "the job",
                        from->n_pieces, oly_world_rank(), from->peer, oly_world_size());
    m->peer = from->peer;
    m->n_pieces = from->n_pieces;
    m->walks = oly_calloc((size_t)m->n_pieces, sizeof *m->walks);
    m->positions = oly_calloc((size_t)m->n_pieces, sizeof *m->positions);
    if (m->n_pieces > 0 && (!m->walks || !m->positions))
        return oly_out_of_memory((size_t)m->n_pieces * sizeof *m->walks, "the pieces of an exchange");
    OLY_TRY(place_pieces(m, from, element_bytes));
    m->big = m->bytes > SMALL_BYTES;
    m->direct = m->big && m->n_pieces == 1 && m->walks[0].loops == 0;
    m->n_chunks = m->big ? (int)((m->bytes - 1) / CHUNK_BYTES + 1) : 0;
    return make_staging(m, receives);
}

static exchange_message *message_of(const oly_exchange *x, int number)
{
    return number < x->n_receives ? &x->receives[number] : &x->sends[number - x->n_receives];
}

/* Gives every message its requests. */
static oly_status make_slots(oly_exchange *x)
{
    int n_messages = x->n_receives + x->n_sends;
    x->n_requests = n_messages;
    for (int i = 0; i < n_messages; i++) {
        message_of(x, i)->first_chunk = x->n_requests;
        x->n_requests += message_of(x, i)->n_chunks;
    }
    size_t n = (size_t)x->n_requests;
    x->requests = oly_calloc(n, sizeof *x->requests);
    x->statuses = oly_calloc(n, sizeof *x->statuses);
    x->indices = oly_calloc(n, sizeof *x->indices);
    x->slots = oly_calloc(n, sizeof *x->slots);
    if (n > 0 && (!x->requests || !x->statuses || !x->indices || !x->slots))
        return oly_out_of_memory(n * sizeof *x->slots, "the requests of an exchange");
    for (int i = 0; i < x->n_requests; i++)
        x->requests[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < n_messages; i++) {
        exchange_message *m = message_of(x, i);
        bool receives = i < x->n_receives;
        x->slots[i] = (exchange_slot){m, receives, -1, TICKET + (m->big ? 0 : (int)m->bytes)};
        for (int c = 0; c < m->n_chunks; c++) {
            int64_t at = (int64_t)c * CHUNK_BYTES, rest = m->bytes - at;
            x->slots[m->first_chunk + c] =
                (exchange_slot){m, receives, at, rest < CHUNK_BYTES ? (int)rest : CHUNK_BYTES};
        }
    }
    return OLY_OK;
}

static void count_peers(oly_exchange *x)
{
    for (int i = 0; i < x->n_receives + x->n_sends; i++) {
        int j = 0;
        while (message_of(x, j)->peer != message_of(x, i)->peer)
            j++;
        x->n_peers += i == j;
    }
}

static oly_status fill_exchange(oly_exchange *x, size_t element_bytes, const oly_message *sends,
                                const oly_message *receives)
{
    x->sends = oly_calloc((size_t)x->n_sends, sizeof *x->sends);
    x->receives = oly_calloc((size_t)x->n_receives, sizeof *x->receives);
    if ((x->n_sends > 0 && !x->sends) || (x->n_receives > 0 && !x->receives))
        return oly_out_of_memory((size_t)(x->n_sends + x->n_receives) * sizeof *x->sends, "an exchange");
    for (int i = 0; i < x->n_receives; i++)
        OLY_TRY(make_message(&x->receives[i], &receives[i], true, element_bytes));
    for (int i = 0; i < x->n_sends; i++)
        OLY_TRY(make_message(&x->sends[i], &sends[i], false, element_bytes));
    count_peers(x);
    return make_slots(x);
}

oly_status oly_exchange_make(size_t element_bytes, int n_sends, const oly_message *sends, int n_receives,
                             const oly_message *receives, oly_exchange **exchange)
{
    *exchange = NULL;
    oly_exchange *x = oly_calloc(1, sizeof *x);
    if (!x)
        return oly_out_of_memory(sizeof *x, "an exchange");
    x->n_sends = n_sends;
    x->n_receives = n_receives;
    oly_status status = fill_exchange(x, element_bytes, sends, receives);
    if (status != OLY_OK) {
        oly_exchange_free(x);
        return status;
    }
    *exchange = x;
    return OLY_OK;
}

/* Of an exchange that failed on its way: MPI may write to the staging of receives and read that of sends for as
 * long as the job lasts, which will not be long, so it is left to MPI. */
static void abandon(oly_exchange *x)
{
    int finalized = 0;
    MPI_Finalized(&finalized);
    for (int i = 0; i < x->n_requests && !finalized; i++) {
        if (x->requests[i] == MPI_REQUEST_NULL)
            continue;
        if (x->slots[i].receives)
            MPI_Cancel(&x->requests[i]);
        MPI_Request_free(&x->requests[i]);
        x->slots[i].message->staging = NULL;
    }
}

/* -- left under way ---------------------------------------------------------------------------------------- */

static oly_exchange *first_left; /* of the one lane */

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

bool oly_exchange_any_left(void)
{
    return first_left;
}

static void free_messages(exchange_message *messages, int n)
{
    for (int i = 0; messages && i < n; i++) {
        oly_release(messages[i].walks);
        oly_release(messages[i].positions);
        oly_release(messages[i].staging);
    }
    oly_release(messages);
}

void oly_exchange_free(oly_exchange *x)
{
    if (!x)
        return;
    unlink_left(x);
    if (x->started)
        abandon(x);
    free_messages(x->sends, x->n_sends);
    free_messages(x->receives, x->n_receives);
    oly_release(x->requests);
    oly_release(x->statuses);
    oly_release(x->indices);
    oly_release(x->slots);
    oly_release(x);
}

/* -- what it is ------------------------------------------------------------------------------------------ */

static int64_t sum_of_bytes(const exchange_message *messages, int n)
{
    int64_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += messages[i].bytes;
    return bytes;
}

int64_t oly_exchange_bytes_sent(const oly_exchange *x)
{
    return sum_of_bytes(x->sends, x->n_sends);
}

int64_t oly_exchange_bytes_received(const oly_exchange *x)
{
    return sum_of_bytes(x->receives, x->n_receives);
}

int oly_exchange_peers(const oly_exchange *x)
{
    return x->n_peers;
}

void oly_exchange_buffers(const oly_exchange *x, void (*visit)(void *context, int buffer, bool receives), void *context)
{
    for (int i = 0; i < x->n_receives + x->n_sends; i++)
        for (int k = 0; k < message_of(x, i)->n_pieces; k++)
            visit(context, message_of(x, i)->walks[k].buffer, i < x->n_receives);
}

/* -- start ----------------------------------------------------------------------------------------------- */

/* The bytes of the payload as MPI is to see them. */
static char *payload_of(const exchange_message *m, void *const *base)
{
    return m->direct ? (char *)base[m->walks[0].buffer] + m->walks[0].offset : m->staging + TICKET;
}

/* Hands request i to MPI. */
static oly_status post(oly_exchange *x, int i, void *const *base)
{
    const exchange_slot *slot = &x->slots[i];
    exchange_message *m = slot->message;
    bool ticket = slot->at < 0;
    char *bytes = ticket ? m->staging : payload_of(m, base) + slot->at;
    int tag = ticket ? OLY_TAG_TICKET : m->tag, room = ticket ? OLY_FIRST_MESSAGE_BYTES : slot->bytes;
    int code = slot->receives
                   ? MPI_Irecv(bytes, room, MPI_BYTE, m->peer, tag, oly_world_comm(), &x->requests[i])
                   : MPI_Isend(bytes, slot->bytes, MPI_BYTE, m->peer, tag, oly_world_comm(), &x->requests[i]);
    if (code == MPI_SUCCESS)
        return OLY_OK;
    oly_world_break();
    return oly_mpi_failed(slot->receives ? "MPI_Irecv" : "MPI_Isend", code);
}

static oly_status post_chunks(oly_exchange *x, const exchange_message *m, void *const *base)
{
    for (int c = 0; c < m->n_chunks; c++)
        OLY_TRY(post(x, m->first_chunk + c, base));
    return OLY_OK;
}

static void begin_replay(oly_exchange *x)
{
    x->started = true;
    x->left = x->n_requests;
    for (int i = 0; i < x->n_receives + x->n_sends; i++) {
        exchange_message *m = message_of(x, i);
        m->left = 1 + m->n_chunks;
        if (m->big)
            m->tag = oly_world_payload_tag(m->peer, i < x->n_receives);
    }
}

static oly_status start_sends(oly_exchange *x, const oly_ticket *ticket, void *const *base)
{
    for (int i = 0; i < x->n_sends; i++) {
        exchange_message *m = &x->sends[i];
        memcpy(m->staging, ticket, TICKET);
        for (int k = 0; k < m->n_pieces && !m->direct; k++)
            oly_walk_pack(&m->walks[k], base[m->walks[k].buffer], m->staging + TICKET + m->positions[k]);
        OLY_TRY(post(x, x->n_receives + i, base));
        OLY_TRY(post_chunks(x, m, base));
    }
    return OLY_OK;
}

oly_status oly_exchange_start(oly_exchange *x, const oly_ticket *ticket, void *const *send_base)
{
    if (x->started)
        return oly_fail(OLY_STATE, "%s: an exchange is started again before it is finished", ticket->call);
    begin_replay(x);
    for (int i = 0; i < x->n_receives; i++)
        OLY_TRY(post(x, i, NULL));
    return start_sends(x, ticket, send_base);
}

/* -- divergence ------------------------------------------------------------------------------------------ */

static const char same_order[] = "all ranks must issue the same operations in the same order";

/* Both ranks name both calls. When the text is the same, what differs is said. */
static oly_status diverged(const exchange_message *m, const oly_ticket *mine)
{
    oly_ticket theirs;
    memcpy(&theirs, m->staging, TICKET);
    theirs.call[sizeof theirs.call - 1] = 0;
    int here = oly_world_rank(), there = m->peer;
    if (strcmp(mine->call, theirs.call) != 0)
        return oly_fail(OLY_DIVERGED, "rank %d is in %s, rank %d in %s: %s", here, mine->call, there, theirs.call,
                        same_order);
    if (mine->sequence != theirs.sequence)
        return oly_fail(OLY_DIVERGED, "rank %d is in %s, its call %llu, rank %d in %s, its call %llu: %s", here,
                        mine->call, (unsigned long long)mine->sequence, there, theirs.call,
                        (unsigned long long)theirs.sequence, same_order);
    return oly_fail(OLY_DIVERGED,
                    "rank %d is in %s, rank %d in %s, but with other shapes, types, shardings or values that "
                    "the plan depends on: %s",
                    here, mine->call, there, theirs.call, same_order);
}

static oly_status wrong_length(const exchange_message *m, const oly_ticket *mine)
{
    return oly_fail(OLY_DIVERGED, "rank %d is in %s and awaits %lld bytes of rank %d, which sent another number: %s",
                    oly_world_rank(), mine->call, (long long)m->bytes, m->peer, same_order);
}

static oly_status check_message(const exchange_slot *slot, const MPI_Status *status, int code, const oly_ticket *mine)
{
    const exchange_message *m = slot->message;
    if (code != MPI_SUCCESS)
        return oly_mpi_failed("receiving a message of an exchange", code);
    int count = 0;
    MPI_Get_count(status, MPI_BYTE, &count);
    if (slot->at < 0 && count >= TICKET && memcmp(m->staging, mine, offsetof(oly_ticket, call)) != 0)
        return diverged(m, mine);
    return count == slot->bytes ? OLY_OK : wrong_length(m, mine);
}

/* -- finish ---------------------------------------------------------------------------------------------- */

static void unpack(const exchange_message *m, void *const *base)
{
    for (int k = 0; k < m->n_pieces && !m->direct; k++)
        oly_walk_unpack(&m->walks[k], base[m->walks[k].buffer], m->staging + TICKET + m->positions[k]);
}

/* Request i is complete. */
static oly_status complete(oly_exchange *x, int i, const MPI_Status *status, int code, const oly_ticket *mine,
                           void *const *base)
{
    exchange_slot *slot = &x->slots[i];
    exchange_message *m = slot->message;
    x->left--;
    m->left--;
    if (!slot->receives)
        return code == MPI_SUCCESS ? OLY_OK : oly_mpi_failed("sending a message of an exchange", code);
    OLY_TRY(check_message(slot, status, code, mine));
    if (slot->at < 0)
        OLY_TRY(post_chunks(x, m, base));
    if (m->left == 0)
        unpack(m, base);
    return OLY_OK;
}

/* Ranks of messages under way: those that are to send to this one, or, when all have, those that are to
 * receive. */
static int name_late(const oly_exchange *x, oly_text *text)
{
    enum { NAMED = 8 };
    int late = 0;
    for (int i = 0; i < x->n_receives + x->n_sends; i++) {
        const exchange_message *m = message_of(x, i);
        if (i == x->n_receives && late > 0)
            break;
        if (m->left > 0 && late++ < NAMED)
            oly_text_add(text, late > 1 ? ", %d" : "%d", m->peer);
    }
    if (late > NAMED)
        oly_text_add(text, " and %d more", late - NAMED);
    return late;
}

static oly_status too_late(const oly_exchange *x, const oly_ticket *mine)
{
    oly_text ranks = {0};
    int late = name_late(x, &ranks);
    oly_fail(OLY_TIMEOUT,
             "rank %d waited %lld s in %s for %s %s; look whether it has ended, waits in another call, or skips "
             "this one (%s), or is still computing (then raise OLYMPUS_TIMEOUT)",
             oly_world_rank(), (long long)oly_option.timeout, mine->call, late == 1 ? "rank" : "ranks",
             oly_text_chars(&ranks), same_order);
    oly_text_free(&ranks);
    return OLY_TIMEOUT;
}

/* Completes what is there; n: how much that was. */
static oly_status complete_some(oly_exchange *x, const oly_ticket *ticket, void *const *base, int *n)
{
    *n = 0;
    int code = MPI_Testsome(x->n_requests, x->requests, n, x->indices, x->statuses);
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS)
        return oly_mpi_failed("MPI_Testsome", code);
    if (*n == MPI_UNDEFINED)
        *n = 0;
    for (int k = 0; k < *n; k++) {
        int error = code == MPI_SUCCESS ? MPI_SUCCESS : x->statuses[k].MPI_ERROR;
        OLY_TRY(complete(x, x->indices[k], &x->statuses[k], error, ticket, base));
    }
    return OLY_OK;
}

oly_status oly_exchange_advance(void)
{
    for (oly_exchange *x = first_left; x; x = x->next_left) {
        int n;
        if (x->left > 0)
            OLY_TRY(complete_some(x, &x->ticket, x->base, &n));
    }
    return OLY_OK;
}

static oly_status complete_all(oly_exchange *x, const oly_ticket *ticket, void *const *base)
{
    oly_wait w = {0};
    while (x->left > 0) {
        int n;
        OLY_TRY(complete_some(x, ticket, base, &n));
        if (n > 0)
            w = (oly_wait){0}; /* the limit is for silence, not for the whole */
        else if (!oly_wait_more(&w))
            return too_late(x, ticket);
        else if (first_left)
            OLY_TRY(oly_exchange_advance()); /* others may wait for these */
    }
    return OLY_OK;
}

oly_status oly_exchange_finish(oly_exchange *x, const oly_ticket *ticket, void *const *receive_base)
{
    if (!x->started)
        return oly_fail(OLY_STATE, "%s: an exchange is finished before it is started", ticket->call);
    oly_status status = complete_all(x, ticket, receive_base);
    if (status == OLY_OK)
        x->started = false;
    else
        oly_world_break();
    return status;
}

oly_status oly_exchange_join(oly_exchange *x)
{
    unlink_left(x);
    return oly_exchange_finish(x, &x->ticket, x->base);
}
