/* SPDX-License-Identifier: BSD-3-Clause */
/* A transport for tests: it packs every message, cuts it into parts of random length, holds them back and sends them in random
 * order among those of other messages, and reports what has completed in random order, some of it later. So whatever relies on more
 * than transport.h promises ends with a wrong value or a wait that lasts. Every part is an MPI message of its own:
 *
 *   | which chunk, which bytes of it | devices at the ends of its boxes (first part) | bytes |
 *
 * The receiver compares the devices with those of its own boxes, and the boxes' buffers with the memories of their devices on the
 * protected platform. Linked with every test program and with the examples in build/tests/protected; SHUFFLED=seed chooses it before
 * main. */
#include "transport_shuffled.h"
#include "device/platform.h"
#include "layout/mesh.h"
#include "platform_protected.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = OLY_TAG_INQUIRY + 1, TAGS = TAG /* below it */, PART_BYTES = 2000, SMALL_BYTES = 100 };

/* One box of a chunk: where it begins, and the sender's and the receiver's device. */
typedef struct ends {
    int64_t at;
    int from, to;
} ends;

typedef struct header {
    int tag, n_ends;
    uint32_t number; /* of the chunk among those with this tag between these ranks */
    int begin, bytes, total;
} header;

typedef struct request {
    struct request *next; /* posted receives, in order */
    oly_chunk chunk;
    bool receives, pending, done;
    int bytes; /* received */
} request;

typedef struct sent_chunk {
    request *request; /* NULL: given up */
    int n_left;       /* parts */
} sent_chunk;

typedef struct part {
    struct part *next;
    sent_chunk *chunk;
    MPI_Request mpi;
    bool under_way;
    int peer, bytes;
    char message[];
} part;

/* A chunk of which parts have arrived. */
typedef struct arriving {
    struct arriving *next;
    header of;
    int peer, have, n_ends;
    ends *ends;
    char *bytes;
} arriving;

/* The ends of what has been received to an address, until it is unpacked. */
typedef struct kept_ends {
    struct kept_ends *next;
    const char *host;
    int n;
    ends *ends;
} kept_ends;

typedef struct numbers {
    uint32_t sent[TAGS], received[TAGS];
} numbers;

static part *parts;
static request *posted;
static arriving *arrived;
static kept_ends *kept;
static numbers **of_peer;
static uint64_t state = 1;

void transport_shuffled_seed(unsigned seed)
{
    state = seed * 2654435761u + 1;
}

static int below(int n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)n);
}

static void *take(size_t bytes)
{
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory)
        abort();
    return memory;
}

static void check(int code)
{
    if (code != MPI_SUCCESS)
        abort();
}

static numbers *numbers_of(int peer)
{
    if (!of_peer)
        of_peer = take(sizeof *of_peer * (size_t)oly_world_size());
    if (!of_peer[peer])
        of_peer[peer] = take(sizeof *of_peer[peer]);
    return of_peer[peer];
}

/* -- the devices at both ends ----------------------------------------------------------------------------------------- */

static void print_and_abort(const char *line)
{
    fprintf(stderr, "shuffled transport: rank %d: %s\n", oly_world_rank(), line);
    abort();
}

void (*transport_shuffled_complain)(const char *line) = print_and_abort;

static void complain_of(const oly_chunk *c, int k, const char *what, int wrong, int right)
{
    char line[200];
    snprintf(line, sizeof line, "box %d of a message %s rank %d: %s %d, not %d", k, c->head ? "with" : "in chunks with",
             c->payload->peer, what, wrong, right);
    transport_shuffled_complain(line);
}

/* The devices belong to the two processes, and the buffer to the device's memory. */
static void check_own(const oly_chunk *c, int k)
{
    const oly_walk *box = &c->payload->box[k];
    if (box->device < 0 || oly_mesh_total_devices() == 0)
        return;
    if (oly_mesh_process_of(box->device) != oly_world_rank())
        complain_of(c, k, "its device belongs to rank", oly_mesh_process_of(box->device), oly_world_rank());
    if (oly_mesh_process_of(box->peer_device) != c->payload->peer)
        complain_of(c, k, "the other device belongs to rank", oly_mesh_process_of(box->peer_device), c->payload->peer);
    if (oly_platform_get() != &platform_protected)
        return;
    int memory = platform_protected_memory(oly_chunk_buffer(c, k)), own = box->device - oly_mesh_first_local();
    if (memory != own)
        complain_of(c, k, "its buffer is in memory", memory, own);
}

/* Of two boxes at one position the first is sent. */
static bool is_sent(const oly_chunk *c, int k)
{
    const oly_payload *p = c->payload;
    bool inside = p->at[k] < c->end && p->at[k] + p->box[k].bytes > c->begin;
    for (int j = 0; j < k && inside; j++)
        inside = p->at[j] != p->at[k] || p->box[j].bytes == 0;
    return inside;
}

/* The ends of a chunk's boxes, by position. */
static ends *ends_of(const oly_chunk *c, bool sent, int *n)
{
    ends *list = take(sizeof *list * (size_t)c->payload->n_boxes);
    *n = 0;
    for (int k = 0; k < c->payload->n_boxes; k++) {
        const oly_walk *box = &c->payload->box[k];
        if (is_sent(c, k))
            list[(*n)++] =
                (ends){c->payload->at[k], sent ? box->device : box->peer_device, sent ? box->peer_device : box->device};
    }
    return list;
}

static void keep_ends(const char *host, int n, ends *list)
{
    kept_ends *e = kept;
    while (e && e->host != host)
        e = e->next;
    if (!e) {
        e = take(sizeof *e);
        *e = (kept_ends){.next = kept, .host = host};
        kept = e;
    }
    free(e->ends);
    e->n = n;
    e->ends = list;
}

static void compare_ends(const oly_chunk *c, const kept_ends *sent)
{
    int n;
    ends *mine = ends_of(c, false, &n);
    if (n != sent->n)
        complain_of(c, 0, "the number of boxes sent is", sent->n, n);
    for (int k = 0; k < n && n == sent->n; k++) {
        if (mine[k].from != sent->ends[k].from)
            complain_of(c, k, "it was sent from device", sent->ends[k].from, mine[k].from);
        if (mine[k].to != sent->ends[k].to)
            complain_of(c, k, "it was sent to device", sent->ends[k].to, mine[k].to);
    }
    free(mine);
}

static void check_ends(const oly_chunk *c)
{
    for (int k = 0; k < c->payload->n_boxes; k++)
        check_own(c, k);
    for (kept_ends **e = &kept; *e; e = &(*e)->next)
        if ((*e)->host == c->host) {
            kept_ends *found = *e;
            *e = found->next;
            compare_ends(c, found);
            free(found->ends);
            free(found);
            return;
        }
    transport_shuffled_complain("unpacking what has not been received");
}

static oly_status pack(const oly_chunk *c)
{
    for (int k = 0; k < c->payload->n_boxes; k++)
        check_own(c, k);
    return oly_host_pack(c);
}

static oly_status unpack(const oly_chunk *c)
{
    check_ends(c);
    return oly_host_unpack(c);
}

/* -- sending ------------------------------------------------------------------------------------------------------------ */

static size_t make(int n, int n_first, void *requests)
{
    (void)n_first;
    (void)requests; /* cleared is right */
    return sizeof(request) * (size_t)n;
}

static bool in_place(const oly_payload *p)
{
    (void)p;
    return false;
}

static void add_part(sent_chunk *chunk, const oly_chunk *c, header of, int n_ends, const ends *list)
{
    size_t of_ends = sizeof *list * (size_t)n_ends;
    part *p = take(sizeof *p + sizeof of + of_ends + (size_t)of.bytes);
    of.n_ends = n_ends;
    *p =
        (part){.next = parts, .chunk = chunk, .peer = c->payload->peer, .bytes = (int)(sizeof of + of_ends) + of.bytes};
    memcpy(p->message, &of, sizeof of);
    if (n_ends > 0)
        memcpy(p->message + sizeof of, list, of_ends);
    memcpy(p->message + sizeof of + of_ends, c->host + of.begin, (size_t)of.bytes);
    chunk->n_left++;
    parts = p;
}

/* Of every n parts that are held back one stays so. */
static void send_most(int n)
{
    for (part *p = parts; p; p = p->next)
        if (!p->under_way && below(n)) {
            check(MPI_Isend(p->message, p->bytes, MPI_BYTE, p->peer, TAG, oly_world_comm(), &p->mpi));
            p->under_way = true;
        }
}

static oly_status post_send(void *requests, int k, const oly_chunk *c)
{
    request *r = (request *)requests + k;
    *r = (request){.chunk = *c, .pending = true};
    sent_chunk *chunk = take(sizeof *chunk);
    chunk->request = r;
    int n;
    ends *list = ends_of(c, true, &n);
    header of = {.tag = c->tag, .number = numbers_of(c->payload->peer)->sent[c->tag]++, .total = c->room};
    do {
        int left = of.total - of.begin, most = left < PART_BYTES ? left : PART_BYTES;
        of.bytes = below(3) ? most : 1 + below(most);
        add_part(chunk, c, of, of.begin == 0 ? n : 0, list);
        of.begin += of.bytes;
    } while (of.begin < of.total);
    free(list);
    if (below(2))
        send_most(2);
    return OLY_OK;
}

static void is_sent_now(sent_chunk *chunk)
{
    if (--chunk->n_left > 0)
        return;
    if (chunk->request) {
        chunk->request->pending = false;
        chunk->request->done = true;
    }
    free(chunk);
}

/* What MPI has sent. */
static void forget_sent(void)
{
    for (part **at = &parts; *at;) {
        part *p = *at;
        int sent = 0;
        if (p->under_way)
            check(MPI_Test(&p->mpi, &sent, MPI_STATUS_IGNORE));
        if (!sent) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        is_sent_now(p->chunk);
        free(p);
    }
}

/* -- receiving ---------------------------------------------------------------------------------------------------------- */

static oly_status post_receive(void *requests, int k, const oly_chunk *c)
{
    request *r = (request *)requests + k, **last = &posted;
    *r = (request){.chunk = *c, .receives = true, .pending = true};
    while (*last)
        last = &(*last)->next;
    *last = r;
    return OLY_OK;
}

static arriving *chunk_like(int peer, const header *of)
{
    for (arriving *a = arrived; a; a = a->next)
        if (a->peer == peer && a->of.tag == of->tag && a->of.number == of->number)
            return a;
    arriving *a = take(sizeof *a);
    *a = (arriving){.next = arrived, .of = *of, .peer = peer, .bytes = take((size_t)of->total)};
    return arrived = a;
}

static void add_arrived(int peer, const char *message)
{
    header of;
    memcpy(&of, message, sizeof of);
    arriving *a = chunk_like(peer, &of);
    size_t of_ends = sizeof *a->ends * (size_t)of.n_ends;
    if (of.n_ends > 0 && !a->ends) {
        a->n_ends = of.n_ends;
        a->ends = take(of_ends);
        memcpy(a->ends, message + sizeof of, of_ends);
    }
    memcpy(a->bytes + of.begin, message + sizeof of + of_ends, (size_t)of.bytes);
    a->have += of.bytes;
}

static void receive_parts(void)
{
    for (;;) {
        MPI_Message message;
        MPI_Status status;
        int found = 0, bytes = 0;
        check(MPI_Improbe(MPI_ANY_SOURCE, TAG, oly_world_comm(), &found, &message, &status));
        if (!found)
            return;
        check(MPI_Get_count(&status, MPI_BYTE, &bytes));
        char *memory = take((size_t)bytes);
        check(MPI_Mrecv(memory, bytes, MPI_BYTE, &message, &status));
        add_arrived(status.MPI_SOURCE, memory);
        free(memory);
    }
}

/* Takes the next chunk of a rank with this tag off the list, if it is complete. */
static arriving *next_of(int peer, int tag)
{
    uint32_t *number = &numbers_of(peer)->received[tag];
    for (arriving **at = &arrived; *at; at = &(*at)->next) {
        arriving *a = *at;
        if (a->peer != peer || a->of.tag != tag || a->of.number != *number || a->have < a->of.total)
            continue;
        *at = a->next;
        ++*number;
        return a;
    }
    return NULL;
}

static void forget_arrived(arriving *a)
{
    free(a->ends);
    free(a->bytes);
    free(a);
}

/* Gives what is complete to those who wait for it, in the order in which they began to. */
static void deliver(void)
{
    for (request **at = &posted; *at;) {
        request *r = *at;
        arriving *a = next_of(r->chunk.payload->peer, r->chunk.tag);
        if (!a) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        memcpy(r->chunk.host, a->bytes, (size_t)(a->of.total < r->chunk.room ? a->of.total : r->chunk.room));
        if (a->n_ends > 0)
            keep_ends(r->chunk.host, a->n_ends, a->ends);
        a->ends = NULL;
        r->bytes = a->of.total;
        r->pending = false;
        r->done = true;
        forget_arrived(a);
    }
}

/* -- completing --------------------------------------------------------------------------------------------------------- */

static oly_status test(void *requests, int n, int *n_done, oly_completion *done)
{
    request *r = requests;
    int count = 0;
    send_most(2); /* in another order */
    send_most(8);
    forget_sent();
    receive_parts();
    deliver();
    for (int k = 0; k < n; k++)
        if (r[k].done) {
            int other = below(count + 1);
            done[count++] = done[other];
            done[other] = (oly_completion){k, r[k].bytes};
        }
    *n_done = count > 0 && below(8) == 0 ? below(count) : count; /* the others another time */
    for (int k = 0; k < *n_done; k++)
        r[done[k].request].done = false;
    return OLY_OK;
}

/* What was sent is a copy; what was to be received goes nowhere. */
static bool give_up(void *requests, int k)
{
    request *r = (request *)requests + k;
    for (part *p = parts; p; p = p->next)
        p->chunk->request = p->chunk->request == r ? NULL : p->chunk->request;
    for (request **at = &posted; *at;)
        if (*at == r)
            *at = r->next;
        else
            at = &(*at)->next;
    r->pending = r->done = false;
    return false;
}

static int stray(void *bytes)
{
    receive_parts();
    for (int peer = 0; peer < oly_world_size(); peer++) {
        arriving *a = next_of(peer, OLY_TAG_TICKET);
        if (!a)
            continue;
        memcpy(bytes, a->bytes, (size_t)a->of.total);
        forget_arrived(a);
        return peer;
    }
    return -1;
}

const oly_transport transport_shuffled = {.name = "shuffled",
                                          .small_bytes = SMALL_BYTES,
                                          .make = make,
                                          .in_place = in_place,
                                          .pack = pack,
                                          .unpack = unpack,
                                          .send = post_send,
                                          .receive = post_receive,
                                          .test = test,
                                          .give_up = give_up,
                                          .stray = stray};

static void __attribute__((constructor)) choose(void)
{
    const char *seed = getenv("SHUFFLED");
    if (!seed)
        return;
    transport_shuffled_seed((unsigned)atoi(seed));
    oly_transport_register(&transport_shuffled);
}
