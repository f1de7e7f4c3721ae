/* SPDX-License-Identifier: BSD-3-Clause */
/* Making exchanges: which bytes go in which message, in which chunks, and through which memory. Called by the planner through
 * communicator.h; exchange.c replays the result. */
#define _GNU_SOURCE /* qsort_r */
#include "exchange.h"
#include "staging.h"
#include "core/error.h"
#include "core/option.h"
#include <stdlib.h>
#include <string.h>

enum { SHORTEST_CHUNK = 1 << 16, LONGEST_CHUNK = 1 << 30, CHUNKS_IN_LIMIT = 16 };

/* Bytes of the packed messages of one exchange in one direction, sent or received. */
static int64_t limit_one_way(void)
{
    return oly_exchange_memory_limit() / 2;
}

/* Longest part of a payload that goes in one MPI message: the same on all ranks. */
static int64_t chunk_bytes(void)
{
    int64_t bytes = (oly_option.exchange_memory << 20) / CHUNKS_IN_LIMIT, most = oly_transport_get()->chunk_bytes;
    bytes = most > 0 && most < bytes ? most : bytes;
    return bytes < SHORTEST_CHUNK ? SHORTEST_CHUNK : bytes > LONGEST_CHUNK ? LONGEST_CHUNK : bytes;
}

static bool is_shared(const oly_message *from, int k)
{
    return from->same && from->same[k] >= 0;
}

/* The free part of the memory that messages point to. */
typedef struct lists {
    oly_walk *walks;
    int64_t *positions, *loops;
} lists;

static oly_status place_pieces(exchange_message *m, const oly_message *from, size_t element_bytes, lists *left)
{
    oly_payload *p = &m->payload;
    p->box = left->walks;
    p->at = left->positions;
    left->walks += p->n_boxes;
    left->positions += p->n_boxes;
    for (int k = 0; k < p->n_boxes; k++) {
        OLY_TRY(oly_walk_make(&from->pieces[k], element_bytes, left->loops, &p->box[k]));
        left->loops += 2 * p->box[k].loops;
        if (is_shared(from, k)) {
            int j = from->same[k];
            if (j >= k || p->box[j].bytes != p->box[k].bytes)
                return oly_fail(OLY_INVALID,
                                "exchange: piece %d is declared the same as piece %d, which is not an "
                                "earlier one of the same size",
                                k, j);
            p->at[k] = p->at[j];
            continue;
        }
        p->at[k] = p->bytes;
        if (__builtin_add_overflow(p->bytes, p->box[k].bytes, &p->bytes))
            return oly_fail(OLY_OVERFLOW, "exchange: the bytes for rank %d do not fit 64 bits", p->peer);
    }
    return OLY_OK;
}

static oly_status make_message(exchange_message *m, const oly_message *from, size_t element_bytes, lists *left)
{
    if (from->peer < 0 || from->peer >= oly_world_size() || from->peer == oly_world_rank() || from->n_pieces < 0)
        return oly_fail(OLY_INVALID,
                        "exchange: %d pieces between rank %d and rank %d of %d: it must be another rank of "
                        "the job",
                        from->n_pieces, oly_world_rank(), from->peer, oly_world_size());
    m->payload.peer = from->peer;
    m->payload.n_boxes = from->n_pieces;
    OLY_TRY(place_pieces(m, from, element_bytes, left));
    m->big = m->payload.bytes > oly_transport_get()->small_bytes;
    m->in_place = m->big && oly_transport_get()->in_place(&m->payload);
    m->n_chunks = m->big ? (int)((m->payload.bytes - 1) / chunk_bytes() + 1) : 0;
    return OLY_OK;
}

/* Bytes of a message's staging. A receiver has room for the longest first message; pages never written to take no memory. */
static int64_t staging_bytes(const exchange_message *m, bool receives)
{
    int64_t bytes = TICKET + (m->big ? 0 : m->payload.bytes);
    bytes = receives && bytes < OLY_FIRST_MESSAGE_BYTES ? OLY_FIRST_MESSAGE_BYTES : bytes;
    return (bytes + 63) / 64 * 64;
}

static oly_status make_staging(oly_exchange *x)
{
    int n = x->n_receives + x->n_sends;
    int64_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += staging_bytes(oly_exchange_message(x, i), i < x->n_receives);
    x->staging = bytes > 0 ? oly_malloc((size_t)bytes) : NULL;
    if (bytes > 0 && !x->staging)
        return oly_out_of_memory((size_t)bytes, "the messages of an exchange");
    char *left = x->staging;
    for (int i = 0; i < n; i++) {
        oly_exchange_message(x, i)->staging = left;
        left += staging_bytes(oly_exchange_message(x, i), i < x->n_receives);
    }
    return OLY_OK;
}

static void describe_slots(oly_exchange *x, int number)
{
    exchange_message *m = oly_exchange_message(x, number);
    bool receives = number < x->n_receives;
    x->slots[number] = (exchange_slot){.message = m,
                                       .receives = receives,
                                       .at = -1,
                                       .bytes = TICKET + (m->big ? 0 : (int)m->payload.bytes),
                                       .memory = -1};
    for (int c = 0; c < m->n_chunks; c++) {
        int64_t at = c * chunk_bytes(), rest = m->payload.bytes - at;
        x->slots[m->first_chunk + c] = (exchange_slot){.message = m,
                                                       .receives = receives,
                                                       .at = at,
                                                       .bytes = (int)(rest < chunk_bytes() ? rest : chunk_bytes()),
                                                       .memory = -1};
    }
}

/* Assigns requests to every message. */
static oly_status make_slots(oly_exchange *x)
{
    int n_messages = x->n_receives + x->n_sends;
    x->n_requests = n_messages;
    for (int i = 0; i < n_messages; i++) {
        oly_exchange_message(x, i)->first_chunk = x->n_requests;
        x->n_requests += oly_exchange_message(x, i)->n_chunks;
    }
    if (x->n_requests == 0)
        return OLY_OK;
    size_t n = (size_t)x->n_requests, of_transport = oly_transport_get()->make(x->n_requests, n_messages, NULL);
    size_t bytes = n * (sizeof *x->slots + sizeof *x->done) + of_transport;
    x->slots = oly_calloc(1, bytes);
    if (!x->slots)
        return oly_out_of_memory(bytes, "the requests of an exchange");
    x->done = (oly_completion *)(x->slots + n);
    x->requests = x->done + n;
    oly_transport_get()->make(x->n_requests, n_messages, x->requests);
    for (int i = 0; i < n_messages; i++)
        describe_slots(x, i);
    return OLY_OK;
}

/* -- memory ---------------------------------------------------------------------------------------------------- */

/* The distance to the other end of a message, cyclically over all ranks. */
static int distance_of(const exchange_slot *slot)
{
    int n = oly_world_size(), away = slot->message->payload.peer - oly_world_rank();
    return ((slot->receives ? -away : away) + n) % n;
}

static int in_round_order(const void *a, const void *b, void *context)
{
    const exchange_slot *slots = context, *x = &slots[*(const int *)a], *y = &slots[*(const int *)b];
    int difference = distance_of(x) - distance_of(y);
    return difference ? difference : (x->at > y->at) - (x->at < y->at);
}

/* Every packed chunk has its own position in the block. */
static void place_at_once(oly_exchange *x, bool receives)
{
    for (int i = x->n_receives + x->n_sends; i < x->n_requests; i++)
        if (x->slots[i].receives == receives && !x->slots[i].message->in_place) {
            x->slots[i].memory = x->block_bytes;
            x->block_bytes += (x->slots[i].bytes + 63) / 64 * 64;
        }
}

/* They are packed and sent, received and unpacked one after the other, those of nearby ranks first: among all remaining ones, the
 * nearest is the next one of both its sender and its receiver, so it can always proceed. */
static oly_status place_in_rounds(oly_exchange *x, bool receives, int n)
{
    exchange_rounds *r = &x->rounds[receives];
    r->order = oly_malloc(sizeof *r->order * (size_t)n);
    if (!r->order)
        return oly_out_of_memory(sizeof *r->order * (size_t)n, "the rounds of an exchange");
    for (int i = x->n_receives + x->n_sends; i < x->n_requests; i++)
        if (x->slots[i].receives == receives && !x->slots[i].message->in_place)
            r->order[r->n++] = i;
    qsort_r(r->order, (size_t)r->n, sizeof *r->order, in_round_order, x->slots);
    r->n_buffers = (int)(limit_one_way() / chunk_bytes());
    for (int k = 0; k < r->n; k++)
        x->slots[r->order[k]].memory = x->block_bytes + (k % r->n_buffers) * chunk_bytes();
    x->block_bytes += r->n_buffers * chunk_bytes();
    for (int i = 0; i < x->n_sends && !receives; i++) {
        oly_payload *p = &x->sends[i].payload;
        p->sources = oly_calloc((size_t)p->n_boxes, sizeof *p->sources);
        if (!p->sources)
            return oly_out_of_memory((size_t)p->n_boxes * sizeof *p->sources, "the rounds of an exchange");
    }
    return OLY_OK;
}

static oly_status make_block(oly_exchange *x)
{
    for (int receives = 0; receives < 2; receives++) {
        int64_t bytes = 0;
        int n = 0;
        for (int i = x->n_receives + x->n_sends; i < x->n_requests; i++)
            if (x->slots[i].receives == (bool)receives && !x->slots[i].message->in_place) {
                bytes += (x->slots[i].bytes + 63) / 64 * 64;
                n++;
            }
        if (bytes <= limit_one_way())
            place_at_once(x, receives);
        else
            OLY_TRY(place_in_rounds(x, receives, n));
    }
    return x->block_bytes > 0 ? oly_staging_reserve(x->block_bytes) : OLY_OK;
}

/* Pieces mostly belong to a few buffers. */
static int list_buffers(int *buffers, int n_messages, const exchange_message *messages)
{
    enum { LOOKED_BACK = 8 };
    int n = 0;
    for (int i = 0; i < n_messages; i++)
        for (int k = 0; k < messages[i].payload.n_boxes; k++) {
            int buffer = messages[i].payload.box[k].buffer, j = n - 1, least = n > LOOKED_BACK ? n - LOOKED_BACK : 0;
            while (j >= least && buffers[j] != buffer)
                j--;
            if (j < least)
                buffers[n++] = buffer;
        }
    return n;
}

static oly_status make_messages(oly_exchange *x, size_t element_bytes, const oly_message *sends,
                                const oly_message *receives)
{
    size_t n_pieces = 0, n_loops = 0, n_messages = (size_t)x->n_sends + (size_t)x->n_receives;
    for (int i = 0; i < x->n_receives + x->n_sends; i++) {
        const oly_message *m = i < x->n_receives ? &receives[i] : &sends[i - x->n_receives];
        n_pieces += m->n_pieces > 0 ? (size_t)m->n_pieces : 0;
        for (int k = 0; k < m->n_pieces; k++)
            n_loops += (size_t)oly_walk_room(&m->pieces[k]);
    }
    lists left;
    x->bytes = n_messages * sizeof *x->receives + n_loops * sizeof *left.loops +
               n_pieces * (sizeof *left.walks + sizeof *left.positions + sizeof *x->buffers);
    if (x->bytes == 0)
        return OLY_OK;
    x->receives = oly_malloc(x->bytes);
    if (!x->receives)
        return oly_out_of_memory(x->bytes, "an exchange");
    memset(x->receives, 0, n_messages * sizeof *x->receives);
    x->sends = x->receives + x->n_receives;
    left.walks = (oly_walk *)(x->receives + n_messages);
    left.positions = (int64_t *)(left.walks + n_pieces);
    left.loops = left.positions + n_pieces;
    x->buffers = (int *)(left.loops + n_loops);
    for (int i = 0; i < x->n_receives; i++)
        OLY_TRY(make_message(&x->receives[i], &receives[i], element_bytes, &left));
    for (int i = 0; i < x->n_sends; i++)
        OLY_TRY(make_message(&x->sends[i], &sends[i], element_bytes, &left));
    for (int i = 0; i < x->n_receives + x->n_sends; i++)
        x->big = x->big || oly_exchange_message(x, i)->big;
    x->n_sent = list_buffers(x->buffers, x->n_sends, x->sends);
    x->n_received = list_buffers(x->buffers + x->n_sent, x->n_receives, x->receives);
    return OLY_OK;
}

/* Allocates what running it needs. */
static oly_status make_ready(oly_exchange *x)
{
    if (!oly_world_has_peers())
        return OLY_OK; /* it is never sent */
    OLY_TRY(make_staging(x));
    OLY_TRY(make_slots(x));
    return make_block(x);
}

/* Returns the exchange, or frees it after an error. */
static oly_status finish_making(oly_exchange *x, oly_status status, oly_exchange **exchange)
{
    status = status == OLY_OK ? make_ready(x) : status;
    *exchange = status == OLY_OK ? x : NULL;
    if (status != OLY_OK)
        oly_exchange_free(x);
    return status;
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
    return finish_making(x, make_messages(x, element_bytes, sends, receives), exchange);
}

/* The numbers of a sum, in the memory behind the messages. */
static oly_sum_of_all *place_sum(oly_dtype dtype, int n_gpus, int n_values, const oly_summed *values, oly_exchange *x)
{
    size_t all = (size_t)n_values * (size_t)n_gpus;
    oly_sum_of_all *sum = (oly_sum_of_all *)(x->receives + 2);
    int64_t *count = (int64_t *)(sum + 1);
    int *from = (int *)(count + n_values), *to = from + all;
    for (int k = 0; k < n_values; k++) {
        count[k] = values[k].count;
        memcpy(from + k * n_gpus, values[k].from, sizeof *from * (size_t)n_gpus);
        memcpy(to + k * n_gpus, values[k].to, sizeof *to * (size_t)n_gpus);
    }
    *sum = (oly_sum_of_all){dtype, n_values, n_gpus, count, from, to};
    x->buffers = from; /* those it sends, then those it receives */
    x->n_sent = x->n_received = (int)all;
    return sum;
}

oly_status oly_exchange_make_sum(oly_dtype dtype, int n_gpus, int n_values, const oly_summed *values,
                                 oly_exchange **exchange)
{
    int rank = oly_world_rank(), n = oly_world_size();
    oly_exchange *x = oly_calloc(1, sizeof *x);
    *exchange = NULL;
    if (!x)
        return oly_out_of_memory(sizeof *x, "an exchange");
    x->bytes = 2 * sizeof *x->receives + sizeof(oly_sum_of_all) + (size_t)n_values * sizeof(int64_t) +
               2 * sizeof(int) * (size_t)n_values * (size_t)n_gpus;
    x->receives = oly_calloc(1, x->bytes);
    if (!x->receives)
        return finish_making(x, oly_out_of_memory(x->bytes, "an exchange"), exchange);
    x->n_receives = x->n_sends = 1;
    x->sends = x->receives + 1;
    x->sends[0].payload.peer = (rank + 1) % n;
    exchange_message *m = &x->receives[0];
    m->payload.peer = (rank + n - 1) % n;
    m->payload.sum = place_sum(dtype, n_gpus, n_values, values, x);
    for (int k = 0; k < n_values; k++)
        m->payload.bytes += values[k].count * (int64_t)oly_dtype_size(dtype);
    m->big = m->in_place = x->big = true;
    m->n_chunks = (int)((m->payload.bytes - 1) / chunk_bytes() + 1);
    return finish_making(x, OLY_OK, exchange);
}

static int other_buffer(int buffer, int n, const int *from, const int *to, int width)
{
    for (int k = 0; k < n; k++)
        if (buffer >= from[k] && buffer < from[k] + width)
            return buffer - from[k] + to[k];
    return buffer;
}

static void *moved(void *pointer, intptr_t by)
{
    return pointer ? (void *)((intptr_t)pointer + by) : NULL;
}

/* Copies the messages of `like`; pointers into them point into the copy. */
static oly_status copy_messages(oly_exchange *x, const oly_exchange *like)
{
    if (like->bytes == 0)
        return OLY_OK;
    x->receives = oly_malloc(like->bytes);
    if (!x->receives)
        return oly_out_of_memory(like->bytes, "an exchange");
    memcpy(x->receives, like->receives, like->bytes);
    intptr_t by = (intptr_t)x->receives - (intptr_t)like->receives;
    x->sends = moved(like->sends, by);
    x->buffers = moved(like->buffers, by);
    for (int i = 0; i < x->n_receives + x->n_sends; i++) {
        oly_payload *p = &oly_exchange_message(x, i)->payload;
        oly_exchange_message(x, i)->staging = NULL;
        p->box = moved(p->box, by);
        p->at = moved(p->at, by);
        p->sources = NULL;
        for (int k = 0; p->box && k < p->n_boxes; k++) {
            p->box[k].extent = moved((void *)p->box[k].extent, by);
            p->box[k].stride = moved((void *)p->box[k].stride, by);
        }
    }
    return OLY_OK;
}

oly_status oly_exchange_make_like(const oly_exchange *like, int n, const int *from, const int *to, int width,
                                  oly_exchange **exchange)
{
    *exchange = NULL;
    oly_exchange *x = oly_calloc(1, sizeof *x);
    if (!x)
        return oly_out_of_memory(sizeof *x, "an exchange");
    x->n_sends = like->n_sends;
    x->n_receives = like->n_receives;
    x->n_sent = like->n_sent;
    x->n_received = like->n_received;
    x->bytes = like->bytes;
    x->big = like->big;
    oly_status status = copy_messages(x, like);
    for (int i = 0; status == OLY_OK && i < x->n_receives + x->n_sends; i++)
        for (int k = 0; k < oly_exchange_message(x, i)->payload.n_boxes; k++) {
            int *buffer = &oly_exchange_message(x, i)->payload.box[k].buffer;
            *buffer = other_buffer(*buffer, n, from, to, width);
        }
    for (int k = 0; status == OLY_OK && k < x->n_sent + x->n_received; k++)
        x->buffers[k] = other_buffer(x->buffers[k], n, from, to, width);
    return finish_making(x, status, exchange);
}

oly_status oly_exchange_make_later(const oly_exchange_outline *outline, oly_exchange **exchange)
{
    oly_exchange *x = *exchange = oly_calloc(1, sizeof *x);
    if (!x)
        return oly_out_of_memory(sizeof *x, "an exchange");
    x->outline = outline;
    return OLY_OK;
}

oly_status oly_exchange_list(oly_exchange *x)
{
    oly_exchange *listed;
    if (!x->outline || x->stages)
        return OLY_OK;
    if (x->outline->n_stages > 1) {
        size_t n = (size_t)x->outline->n_stages;
        x->stages = oly_calloc(n, sizeof(oly_exchange *));
        return x->stages ? OLY_OK : oly_out_of_memory(n * sizeof(oly_exchange *), "the stages of an exchange");
    }
    OLY_TRY(x->outline->list(x->outline->context, 0, &listed));
    x->outline = NULL;
    if (listed)
        *x = *listed;
    oly_release(listed); /* x owns what it points to */
    return OLY_OK;
}

oly_status oly_exchange_take_stage(oly_exchange *x, oly_exchange **stage)
{
    oly_exchange **s = &x->stages[x->stage];
    if (!*s)
        OLY_TRY(x->outline->list(x->outline->context, x->stage, s));
    if (!*s)
        OLY_TRY(oly_exchange_make(1, 0, NULL, 0, NULL, s));
    *stage = *s;
    return OLY_OK;
}

void oly_exchange_free(oly_exchange *x)
{
    if (!x)
        return;
    oly_exchange_stop(x);
    if (x->requests && oly_transport_get()->free)
        oly_transport_get()->free(x->requests);
    for (int k = 0; x->stages && k < x->outline->n_stages; k++)
        oly_exchange_free(x->stages[k]);
    oly_release(x->stages);
    for (int i = 0; x->rounds[0].order && i < x->n_sends; i++)
        oly_release(x->sends[i].payload.sources);
    oly_release(x->receives);
    oly_release(x->staging);
    oly_release(x->rounds[0].order);
    oly_release(x->rounds[1].order);
    oly_release(x->slots);
    oly_release(x);
}

/* -- properties ---------------------------------------------------------------------------------------------------- */

static int64_t sum_of_bytes(const exchange_message *messages, int n)
{
    int64_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += messages[i].payload.bytes;
    return bytes;
}

int64_t oly_exchange_bytes_sent(const oly_exchange *x)
{
    return x->outline ? x->outline->bytes_sent : sum_of_bytes(x->sends, x->n_sends);
}

int64_t oly_exchange_bytes_received(const oly_exchange *x)
{
    return x->outline ? x->outline->bytes_received : sum_of_bytes(x->receives, x->n_receives);
}

int64_t oly_exchange_memory(const oly_exchange *x)
{
    return x->outline ? x->outline->memory : x->block_bytes;
}

int oly_exchange_peers(const oly_exchange *x)
{
    int n = x->n_receives;
    for (int i = 0; i < x->n_sends; i++) {
        int j = 0;
        while (j < x->n_receives && x->receives[j].payload.peer != x->sends[i].payload.peer)
            j++;
        n += j == x->n_receives;
    }
    return x->outline ? x->outline->peers : n;
}

int oly_exchange_partner(const oly_exchange *x)
{
    int n = x->n_receives > x->n_sends ? x->n_receives : x->n_sends;
    if (x->outline || n == 0)
        return x->outline ? -x->outline->peers : -1;
    int peer = oly_exchange_message(x, 0)->payload.peer;
    for (int i = 1; i < x->n_receives + x->n_sends; i++)
        if (oly_exchange_message(x, i)->payload.peer != peer)
            return -n;
    return peer;
}

void oly_exchange_buffers(const oly_exchange *x, void (*visit)(void *context, int buffer, bool receives), void *context)
{
    for (int k = 0; x->outline && k < 2 * x->outline->n_buffers; k++)
        visit(context, x->outline->buffers[k], k >= x->outline->n_buffers);
    for (int k = 0; k < x->n_sent + x->n_received; k++)
        visit(context, x->buffers[k], k >= x->n_sent);
}
