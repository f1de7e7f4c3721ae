/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport between GPUs through MPI. Boxes are packed and unpacked by the GPUs. A small payload, behind its ticket, is packed into
 * pinned memory and copied from there. Larger ones go in chunks of their own, whose work goes on in the GPUs' streams:
 *
 *   staged            packed into pinned memory -> sent -> received into pinned memory -> unpacked
 *   CUDA-aware MPI    sent from the memory of the GPU, and received into it; boxes with gaps are packed there
 *
 * A chunk is sent as soon as it is packed, while those behind it are still being packed, and unpacked as soon as it has arrived, while
 * those behind it are on the wire. `test` asks for events; nothing here waits but small payloads. */
#include "transport_gpu.h"
#include "staging.h"
#include "world.h"
#include <stdio.h>
#include <string.h>

enum stage { IDLE, PACKING, ON_THE_WIRE, UNPACKING };

/* A request beyond the first messages. */
typedef struct gpu_chunk {
    oly_chunk chunk;
    enum stage stage;
    bool receives;
    unsigned gpus;   /* that have been given work for it, as bits */
    int packing_gpu; /* whose memory `packed` is */
    void *packed;    /* of a box with gaps, for CUDA-aware MPI; NULL: none */
} gpu_chunk;

/* Those of MPI follow in the same memory. */
typedef struct gpu_requests {
    int n, n_first, n_busy; /* n_busy: chunks that GPUs are packing or unpacking */
    gpu_chunk *chunk;       /* [n - n_first] */
    void **event;           /* [n - n_first][GPUs]; NULL: not made yet */
    void *mpi;
} gpu_requests;

static struct {
    const oly_gpu_access *gpus;
    int first_id; /* of this process's devices */
    bool aware;
    char *small; /* pinned: a small payload, and as much again where it is aligned like the packed bytes */
} job;

/* -- the start and end ------------------------------------------------------------------------------------------------------ */

static void *pin(size_t bytes)
{
    if (job.gpus->enter(0) != OLY_OK) {
        oly_drop_message();
        return NULL;
    }
    void *memory = job.gpus->pin(0, bytes);
    job.gpus->leave(0);
    return memory;
}

static void unpin(void *memory)
{
    if (job.gpus->enter(0) != OLY_OK) {
        oly_drop_message();
        return;
    }
    job.gpus->unpin(0, memory);
    job.gpus->leave(0);
}

static const oly_staging_memory pinned = {pin, unpin};

/* Ids of devices follow each other, rank by rank. */
static oly_status find_first_id(void)
{
    int n = oly_world_size(), mine = job.gpus->n_devices, *all = oly_calloc((size_t)n, sizeof *all);
    OLY_TRY(oly_world_vote(all ? OLY_OK : oly_out_of_memory((size_t)n * sizeof *all, "the GPUs of the job"),
                           "the start of messages between GPUs"));
    oly_status st = oly_world_gather(&mine, all, sizeof mine);
    job.first_id = 0;
    for (int r = 0; r < oly_world_rank(); r++)
        job.first_id += all[r];
    oly_release(all);
    return st;
}

oly_status oly_gpu_messages_start(const oly_gpu_access *gpus)
{
    job.gpus = gpus;
    job.aware = false;
    job.small = gpus->n > 0 ? pin(OLY_MOST_SMALL_BYTES) : NULL;
    OLY_TRY(oly_world_vote(job.small ? OLY_OK : oly_out_of_memory(OLY_MOST_SMALL_BYTES, "messages between GPUs"),
                           "the start of messages between GPUs"));
    OLY_TRY(find_first_id());
    oly_staging_use(&pinned);
    return OLY_OK;
}

void oly_gpu_messages_aware(bool aware)
{
    job.aware = aware;
}

void oly_gpu_messages_end(void)
{
    if (!job.gpus)
        return;
    oly_staging_use(NULL);
    if (job.small)
        unpin(job.small);
    memset(&job, 0, sizeof job);
}

/* -- boxes -------------------------------------------------------------------------------------------------------------------- */

/* The GPU of a box's buffer; -1: memory of the host, or of a CPU device beside GPUs. */
static int gpu_of(const oly_walk *box)
{
    int device = box->device - job.first_id;
    return box->device >= 0 && device >= 0 && device < job.gpus->n_devices ? job.gpus->of_device(device) : -1;
}

static oly_gpu_box shape_of(const oly_walk *w)
{
    return (oly_gpu_box){w->loops > 0 ? w->run : w->bytes, w->loops, w->extent, w->stride};
}

static char *address_of(const oly_chunk *c, int k)
{
    return (char *)oly_chunk_buffer(c, k) + c->payload->box[k].offset;
}

static oly_status left(int gpu, oly_status st)
{
    job.gpus->leave(gpu);
    return st;
}

/* -- small payloads ------------------------------------------------------------------------------------------------------------ */

static oly_status finish(unsigned gpus)
{
    for (int g = 0; g < job.gpus->n; g++)
        if (gpus >> g & 1) {
            OLY_TRY(job.gpus->enter(g));
            OLY_TRY(left(g, job.gpus->finish_now(g)));
        }
    return OLY_OK;
}

static oly_status move_small(const oly_chunk *c, int k, int gpu, bool packing)
{
    const oly_walk *box = &c->payload->box[k];
    oly_gpu_box shape = shape_of(box);
    char *packed = job.small + c->payload->at[k];
    OLY_TRY(job.gpus->enter(gpu));
    return left(gpu, packing ? job.gpus->pack_now(gpu, &shape, 0, box->bytes, address_of(c, k), packed)
                             : job.gpus->unpack_now(gpu, &shape, 0, box->bytes, address_of(c, k), packed));
}

static oly_status move_first(const oly_chunk *c, bool packing)
{
    unsigned gpus = 0;
    if (!packing)
        memcpy(job.small, c->host + c->head, (size_t)(c->end - c->begin));
    for (int k = 0; k < c->payload->n_boxes; k++) {
        int gpu = gpu_of(&c->payload->box[k]);
        if (gpu < 0 || c->payload->box[k].bytes == 0)
            continue;
        OLY_TRY(move_small(c, k, gpu, packing));
        gpus |= 1u << gpu;
    }
    OLY_TRY(finish(gpus));
    if (packing && gpus)
        memcpy(c->host + c->head, job.small, (size_t)(c->end - c->begin));
    for (int k = 0; k < c->payload->n_boxes; k++)
        if (gpu_of(&c->payload->box[k]) < 0)
            OLY_TRY(oly_host_copy_box(c, k, packing));
    return OLY_OK;
}

oly_status oly_gpu_pack_first(const oly_chunk *c)
{
    return move_first(c, true);
}

oly_status oly_gpu_unpack_first(const oly_chunk *c)
{
    return move_first(c, false);
}

/* Chunks are packed when they are sent, and unpacked before they are reported. */
static oly_status pack(const oly_chunk *c)
{
    return c->head > 0 ? oly_gpu_pack_first(c) : OLY_OK;
}

static oly_status unpack(const oly_chunk *c)
{
    return c->head > 0 ? oly_gpu_unpack_first(c) : OLY_OK;
}

/* -- requests -------------------------------------------------------------------------------------------------------------------- */

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static size_t make(int n, int n_first, void *memory)
{
    size_t chunks = (size_t)(n - n_first), own = aligned(sizeof(gpu_requests)),
           of = aligned(chunks * sizeof(gpu_chunk)), events = aligned(chunks * (size_t)job.gpus->n * sizeof(void *));
    gpu_requests *r = memory;
    if (!r)
        return own + of + events + oly_transport_mpi.make(n, n_first, NULL);
    *r = (gpu_requests){.n = n, .n_first = n_first};
    r->chunk = (gpu_chunk *)((char *)memory + own);
    r->event = (void **)((char *)memory + own + of);
    r->mpi = (char *)memory + own + of + events;
    memset(r->chunk, 0, of + events);
    oly_transport_mpi.make(n, n_first, r->mpi);
    return 0;
}

static void free_requests(void *requests)
{
    gpu_requests *r = requests;
    for (int k = 0; job.gpus && k < (r->n - r->n_first) * job.gpus->n; k++) {
        int g = k % job.gpus->n;
        if (!r->event[k])
            continue;
        if (job.gpus->enter(g) != OLY_OK)
            oly_drop_message();
        job.gpus->forget(g, r->event[k]);
        job.gpus->leave(g);
    }
}

static bool in_place(const oly_payload *p)
{
    for (int k = 0; k < p->n_boxes; k++)
        if (gpu_of(&p->box[k]) < 0)
            return false;
    return job.aware && p->n_boxes > 0;
}

/* Does MPI use the box's own memory? */
static bool is_direct(const oly_chunk *c)
{
    return !c->host && c->payload->n_boxes == 1 && c->payload->box[0].loops == 0;
}

static void **event_of(gpu_requests *r, const gpu_chunk *g, int gpu)
{
    return &r->event[(g - r->chunk) * job.gpus->n + gpu];
}

/* The GPUs have been given all that they have to do for the chunk. */
static oly_status record(gpu_requests *r, gpu_chunk *g, enum stage stage)
{
    for (int gpu = 0; gpu < job.gpus->n; gpu++)
        if (g->gpus >> gpu & 1) {
            OLY_TRY(job.gpus->enter(gpu));
            OLY_TRY(left(gpu, job.gpus->record(gpu, event_of(r, g, gpu))));
        }
    g->stage = stage;
    r->n_busy++;
    return OLY_OK;
}

static oly_status has_reached(gpu_requests *r, const gpu_chunk *g, bool *yes)
{
    *yes = true;
    for (int gpu = 0; gpu < job.gpus->n && *yes; gpu++)
        if (g->gpus >> gpu & 1) {
            OLY_TRY(job.gpus->enter(gpu));
            OLY_TRY(left(gpu, job.gpus->reached(gpu, *event_of(r, g, gpu), yes)));
        }
    return OLY_OK;
}

/* The part of box k that is in the chunk, if any; by its own GPU into pinned memory, else by the GPU that has the packed bytes. */
static oly_status move_box(gpu_chunk *g, int k, bool packing)
{
    const oly_chunk *c = &g->chunk;
    const oly_walk *box = &c->payload->box[k];
    int box_gpu = gpu_of(box), gpu = g->packed ? g->packing_gpu : box_gpu;
    int64_t begin, end;
    if (!oly_chunk_part(c, k, &begin, &end))
        return OLY_OK;
    if (box_gpu < 0)
        return oly_host_copy_box(c, k, packing);
    char *packed = (g->packed ? (char *)g->packed : c->host) + (c->payload->at[k] + begin - c->begin);
    oly_gpu_box shape = shape_of(box);
    g->gpus |= 1u << gpu;
    OLY_TRY(job.gpus->enter(gpu));
    return left(gpu, packing ? job.gpus->pack(gpu, box_gpu, &shape, begin, end, address_of(c, k), packed)
                             : job.gpus->unpack(gpu, box_gpu, &shape, begin, end, address_of(c, k), packed));
}

static oly_status move_boxes(gpu_chunk *g, bool packing)
{
    for (int k = 0; k < g->chunk.payload->n_boxes; k++)
        OLY_TRY(move_box(g, k, packing));
    return OLY_OK;
}

static oly_status take_packed(gpu_chunk *g)
{
    int gpu = g->packing_gpu = gpu_of(&g->chunk.payload->box[0]);
    OLY_TRY(job.gpus->enter(gpu));
    OLY_TRY(left(gpu, job.gpus->take(gpu, (size_t)(g->chunk.end - g->chunk.begin), &g->packed)));
    g->gpus |= 1u << gpu;
    return OLY_OK;
}

static void give_packed(gpu_chunk *g)
{
    if (g->packed) {
        if (job.gpus->enter(g->packing_gpu) != OLY_OK)
            oly_drop_message();
        job.gpus->give(g->packing_gpu, g->packed);
        job.gpus->leave(g->packing_gpu);
    }
    g->packed = NULL;
    g->stage = IDLE;
}

/* An MPI that takes memory of GPUs fails with a code of its own when a GPU has failed: then the GPU's failure is reported. */
static oly_status by_mpi(oly_status st)
{
    char said[300];
    if (st == OLY_OK || !job.aware)
        return st;
    snprintf(said, sizeof said, "%s", oly_pending_message());
    oly_drop_message();
    for (int gpu = 0; gpu < job.gpus->n; gpu++) {
        OLY_TRY(job.gpus->enter(gpu));
        OLY_TRY(left(gpu, job.gpus->finish_now(gpu)));
    }
    return oly_fail(st, "%s", said);
}

static oly_status post_on_the_wire(gpu_requests *r, gpu_chunk *g)
{
    oly_chunk c = g->chunk;
    int k = r->n_first + (int)(g - r->chunk);
    c.host = g->packed ? g->packed : c.host;
    g->stage = ON_THE_WIRE;
    return by_mpi(g->receives ? oly_transport_mpi.receive(r->mpi, k, &c) : oly_transport_mpi.send(r->mpi, k, &c));
}

static oly_status post(gpu_requests *r, int k, const oly_chunk *c, bool receives)
{
    if (k < r->n_first)
        return by_mpi(receives ? oly_transport_mpi.receive(r->mpi, k, c) : oly_transport_mpi.send(r->mpi, k, c));
    gpu_chunk *g = &r->chunk[k - r->n_first];
    *g = (gpu_chunk){.chunk = *c, .receives = receives};
    if (!c->host && !is_direct(c))
        OLY_TRY(take_packed(g));
    if (!receives && !is_direct(c))
        OLY_TRY(move_boxes(g, true));
    return g->gpus ? record(r, g, PACKING) : post_on_the_wire(r, g);
}

static oly_status post_send(void *requests, int k, const oly_chunk *c)
{
    return post(requests, k, c, false);
}

static oly_status post_receive(void *requests, int k, const oly_chunk *c)
{
    return post(requests, k, c, true);
}

/* MPI has sent or received a chunk. *over: nothing more is to be done for it. Of a wrong length it is not looked at: the protocol ends the
 * exchange. */
static oly_status arrive(gpu_requests *r, gpu_chunk *g, int bytes, bool *over)
{
    *over = !g->receives || is_direct(&g->chunk) || bytes != g->chunk.room;
    if (!*over) {
        g->gpus = 0;
        OLY_TRY(move_boxes(g, false));
        *over = g->gpus == 0;
    }
    if (!*over)
        return record(r, g, UNPACKING);
    give_packed(g);
    return OLY_OK;
}

/* Chunks of one payload go on the wire in their order. */
static bool follows_one_that_packs(const gpu_requests *r, const gpu_chunk *g)
{
    return g > r->chunk && g[-1].stage == PACKING && g[-1].chunk.payload == g->chunk.payload;
}

/* A chunk on which GPUs have been at work. *over: it is unpacked. */
static oly_status go_on(gpu_requests *r, gpu_chunk *g, bool *over)
{
    bool yes;
    *over = false;
    if (g->stage == PACKING && follows_one_that_packs(r, g))
        return OLY_OK;
    OLY_TRY(has_reached(r, g, &yes));
    if (!yes)
        return OLY_OK;
    r->n_busy--;
    if (g->stage == PACKING)
        return post_on_the_wire(r, g);
    give_packed(g);
    *over = true;
    return OLY_OK;
}

static oly_status test(void *requests, int n, int *n_done, oly_completion *done)
{
    gpu_requests *r = requests;
    int n_there, kept = 0;
    bool over;
    OLY_TRY(by_mpi(oly_transport_mpi.test(r->mpi, n, &n_there, done)));
    for (int i = 0; i < n_there; i++) {
        over = true;
        if (done[i].request >= r->n_first)
            OLY_TRY(arrive(r, &r->chunk[done[i].request - r->n_first], done[i].bytes, &over));
        if (over)
            done[kept++] = done[i];
    }
    for (int k = r->n_first; k < n && r->n_busy > 0; k++) {
        gpu_chunk *g = &r->chunk[k - r->n_first];
        if (g->stage != PACKING && g->stage != UNPACKING)
            continue;
        OLY_TRY(go_on(r, g, &over));
        if (over)
            done[kept++] = (oly_completion){.request = k, .bytes = g->chunk.room};
    }
    *n_done = kept;
    return OLY_OK;
}

static bool give_up(void *requests, int k)
{
    gpu_requests *r = requests;
    bool busy =
        k >= r->n_first && (r->chunk[k - r->n_first].stage == PACKING || r->chunk[k - r->n_first].stage == UNPACKING);
    if (k >= r->n_first)
        r->chunk[k - r->n_first].stage = IDLE;
    return busy || oly_transport_mpi.give_up(r->mpi, k);
}

static int stray(void *bytes)
{
    return oly_transport_mpi.stray(bytes);
}

const oly_transport oly_transport_gpu = {.name = "mpi",
                                         .small_bytes = OLY_MOST_SMALL_BYTES,
                                         .make = make,
                                         .free = free_requests,
                                         .in_place = in_place,
                                         .pack = pack,
                                         .unpack = unpack,
                                         .send = post_send,
                                         .receive = post_receive,
                                         .test = test,
                                         .give_up = give_up,
                                         .stray = stray};
