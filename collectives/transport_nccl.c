/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport between GPUs through NCCL. First messages, with tickets and small payloads, and boxes in host memory go through MPI
 * (transport_mpi.c). Larger payloads never touch the host: the sends and receives of an exchange become one NCCL group.
 *
 * A group is made when all tickets of the exchange have arrived and been checked (then the protocol has asked for every chunk), in the
 * order in which exchanges have started, which is the same on all ranks. So no group waits for one that comes later elsewhere, and
 * nothing is received that a rank has diverged from. Boxes with gaps are packed and unpacked on the GPU, in the same stream.
 * Chunks of a payload are not told apart: all of it goes with the first.
 *
 * Communicators are non-blocking. Each GPU of a process is one rank of NCCL; several devices may share it. Nothing here waits but the
 * start: `test` asks, and the protocol's time limit ends a wait for a rank that has died, after which give_up aborts the
 * communicators, so that no kernel waits any more. */
#include "nccl.h"
#include "transport.h"
#include "transport_gpu.h"
#include "transport_nccl.h"
#include "world.h"
#include "core/option.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t PATIENCE = 3000000000; /* ns; peers notice an end within one second, on other nodes in three */

/* As nccl.h numbers them; 0: not added. */
static const int nccl_type[OLY_N_DTYPES] = {
    [OLY_INT32] = 2,   [OLY_UINT32] = 3,  [OLY_INT64] = 4,     [OLY_UINT64] = 5,
    [OLY_FLOAT32] = 7, [OLY_FLOAT64] = 8, [OLY_COMPLEX64] = 7, [OLY_COMPLEX128] = 8};

enum stage { IDLE, POSTING, LAUNCHING, MOVING };

typedef struct nccl_message {
    const oly_payload *payload;
    int first_address; /* in flights.address: of each box's buffer */
    bool receives;
} nccl_message;

/* The requests of an exchange; those of MPI follow in the same memory. */
typedef struct nccl_requests {
    struct nccl_requests *next; /* in the order in which exchanges have started */
    enum stage stage;
    int n, n_first, n_posted, n_messages; /* n_posted: chunks, in this replay */
    void *event[OLY_MOST_GPUS];
    bool *waits;           /* [n] chunks that are NCCL's, and have not been reported */
    int *bytes;            /* [n] of each */
    nccl_message *message; /* [n] */
    void *mpi;
} nccl_requests;

/* A rank's GPUs, as all others know them. */
typedef struct rank_gpus {
    int n, n_devices, has_nccl;
    uint64_t identity[OLY_MOST_GPUS];
    uint8_t of_device[OLY_MOST_GPU_DEVICES];
} rank_gpus;

static struct {
    const oly_nccl *nccl;
    const oly_gpu_access *gpus;
    oly_nccl_comm *comm[OLY_MOST_GPUS];
    rank_gpus *ranks;          /* owned; [world size] */
    int *first_gpu, *first_id; /* owned; of each rank: NCCL's rank of its first GPU, id of its first device */
    bool started, aborted;
    int64_t failed_at; /* by oly_wait_clock: NCCL has reported an error; 0: none */
} job;

/* Exchanges whose group is still to be made or launched, the earliest first; and what belongs to them. */
static struct {
    nccl_requests *first;
    void **address; /* owned */
    int n_addresses, room;
    struct packed {
        void *memory;
        const oly_walk *box;
        int message, gpu, index;
    } * packed; /* owned; of the group that is being launched */
    int n_packed, packed_room;
} flights;

/* Others would wait for this rank: they are told. */
static oly_status failed(const char *call, int result)
{
    oly_status st = oly_fail(OLY_MPI, "%s: %s", call, job.nccl->GetErrorString(result));
    if (!oly_transport_tries)
        oly_world_tell(st);
    return st;
}

static oly_status said(const char *call, int result)
{
    return result == OLY_NCCL_SUCCESS || result == OLY_NCCL_IN_PROGRESS ? OLY_OK : failed(call, result);
}

/* NCCL makes the GPU that was current before a call current again after it. Where none was, that would be GPU 0, also of processes that
 * do not use it: each would have a context there, and half a gigabyte of its memory. So a GPU of this process is current. */
static oly_status left(int gpu, oly_status st)
{
    job.gpus->leave(gpu);
    return st;
}

static bool entered_first(void)
{
    bool entered = job.gpus->n > 0 && job.gpus->enter(0) == OLY_OK;
    if (!entered)
        oly_drop_message();
    return entered;
}

/* -- the start: a rank of NCCL for each GPU --------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Is a GPU used by two ranks, or twice by one? */
static oly_status find_shared(bool *shared)
{
    int n = 0, all = job.first_gpu[oly_world_size()];
    uint64_t *identity = oly_malloc(sizeof *identity * (size_t)(all + 1));
    *shared = false;
    if (!identity)
        return oly_out_of_memory(sizeof *identity * (size_t)all, "the GPUs of the job");
    for (int r = 0; r < oly_world_size(); r++)
        for (int g = 0; g < job.ranks[r].n; g++)
            identity[n++] = job.ranks[r].identity[g];
    qsort(identity, (size_t)n, sizeof *identity, by_value);
    for (int k = 1; k < n; k++)
        *shared = *shared || identity[k] == identity[k - 1];
    oly_release(identity);
    return OLY_OK;
}

/* why empty: every rank has NCCL and GPUs of its own; otherwise why not. The same on all ranks. */
static oly_status find_obstacle(char *why, size_t room)
{
    bool shared;
    *why = 0;
    for (int r = 0; r < oly_world_size(); r++)
        if (!job.ranks[r].has_nccl || job.ranks[r].n < 1) {
            snprintf(why, room, "rank %d has no %s", r, job.ranks[r].n < 1 ? "GPU" : "NCCL");
            return OLY_OK;
        }
    OLY_TRY(oly_world_vote(find_shared(&shared), "the start of NCCL"));
    if (shared)
        snprintf(why, room, "two ranks, or two devices, share a GPU, which NCCL does not allow");
    return OLY_OK;
}

static oly_status gather_gpus(const oly_gpu_access *gpus, bool has_nccl)
{
    int n = oly_world_size();
    rank_gpus mine = {.n = gpus->n, .n_devices = gpus->n_devices, .has_nccl = has_nccl};
    for (int g = 0; g < gpus->n && g < OLY_MOST_GPUS; g++)
        mine.identity[g] = gpus->identity(g);
    for (int d = 0; d < gpus->n_devices && d < OLY_MOST_GPU_DEVICES; d++)
        mine.of_device[d] = (uint8_t)gpus->of_device(d);
    job.ranks = oly_calloc((size_t)n, sizeof *job.ranks);
    job.first_gpu = oly_calloc((size_t)n + 1, sizeof *job.first_gpu);
    job.first_id = oly_calloc((size_t)n + 1, sizeof *job.first_id);
    oly_status st = job.ranks && job.first_gpu && job.first_id
                        ? OLY_OK
                        : oly_out_of_memory((size_t)n * sizeof *job.ranks, "the GPUs of the job");
    OLY_TRY(oly_world_vote(st, "the start of NCCL"));
    OLY_TRY(oly_world_gather(&mine, job.ranks, sizeof mine));
    for (int r = 0; r < n; r++) {
        job.first_gpu[r + 1] = job.first_gpu[r] + job.ranks[r].n;
        job.first_id[r + 1] = job.first_id[r] + job.ranks[r].n_devices;
    }
    return OLY_OK;
}

/* Begins all communicators of this process; they are ready some time later. */
static oly_status begin_entered(oly_nccl_id id)
{
    int me = oly_world_rank(), all = job.first_gpu[oly_world_size()];
    OLY_TRY(said("ncclGroupStart", job.nccl->GroupStart()));
    for (int g = 0; g < job.gpus->n; g++) {
        oly_nccl_config config = OLY_NCCL_CONFIG;
        OLY_TRY(job.gpus->enter(g));
        int result = job.nccl->CommInitRankConfig(&job.comm[g], all, id, job.first_gpu[me] + g, &config);
        job.gpus->leave(g);
        OLY_TRY(said("ncclCommInitRankConfig", result));
    }
    return said("ncclGroupEnd", job.nccl->GroupEnd());
}

static oly_status begin_communicators(oly_nccl_id id)
{
    OLY_TRY(job.gpus->enter(0));
    return left(0, begin_entered(id));
}

/* Are all communicators ready for the next call? fails as NCCL does, but later: of a rank that has ended the protocol above says more,
 * and in the same words as on CPUs, if it is given the time to notice. */
static oly_status ask_communicators(bool *ready)
{
    *ready = true;
    for (int g = 0; g < job.gpus->n; g++) {
        int error = OLY_NCCL_SUCCESS, result = job.nccl->CommGetAsyncError(job.comm[g], &error);
        OLY_TRY(said("ncclCommGetAsyncError", result));
        *ready = *ready && error == OLY_NCCL_SUCCESS;
        if (error == OLY_NCCL_SUCCESS || error == OLY_NCCL_IN_PROGRESS)
            continue;
        job.failed_at = job.failed_at ? job.failed_at : oly_wait_clock();
        if (oly_wait_clock() - job.failed_at > PATIENCE)
            return failed("NCCL", error);
    }
    return OLY_OK;
}

static void name_nobody(const void *context, oly_late *late)
{
    (void)context;
    late->otherwise = "the other ranks' communicators of NCCL";
}

static oly_status await_communicators(void)
{
    oly_wait w = {.call = "oly_init", .late = name_nobody};
    oly_status st = OLY_OK;
    for (bool ready = false; st == OLY_OK && !ready;) {
        st = ask_communicators(&ready);
        if (st == OLY_OK && !ready && !oly_wait_more(&w))
            st = oly_fail(OLY_TIMEOUT,
                          "oly_init: NCCL was not ready after %lld s (OLYMPUS_TIMEOUT; OLYMPUS_NCCL=0 does without it)",
                          (long long)oly_option.timeout);
    }
    oly_wait_end(&w);
    return st;
}

oly_status oly_nccl_start(const oly_gpu_access *gpus, bool *started, char *why, size_t room)
{
    const char *missing;
    oly_nccl_id id = {{0}};
    *started = false;
    job.gpus = gpus;
    job.nccl = oly_option.nccl ? oly_nccl_find(&missing) : NULL;
    if (!oly_option.nccl)
        missing = "OLYMPUS_NCCL=0";
    OLY_TRY(gather_gpus(gpus, job.nccl != NULL));
    OLY_TRY(find_obstacle(why, room));
    if (*why && !job.nccl)
        snprintf(why, room, "%s", missing);
    if (*why) {
        oly_nccl_end();
        return OLY_OK;
    }
    oly_status st = oly_world_rank() == 0 ? said("ncclGetUniqueId", job.nccl->GetUniqueId(&id)) : OLY_OK;
    OLY_TRY(oly_world_vote(st, "the start of NCCL"));
    OLY_TRY(oly_world_share(&id, sizeof id, 0));
    OLY_TRY(oly_world_vote(begin_communicators(id), "the start of NCCL"));
    OLY_TRY(await_communicators());
    *started = job.started = true;
    snprintf(why, room, "NCCL %d.%d.%d", job.nccl->version / 10000, job.nccl->version / 100 % 100,
             job.nccl->version % 100);
    return OLY_OK;
}

static void abort_all(void)
{
    bool entered = job.gpus && entered_first();
    for (int g = 0; job.gpus && g < job.gpus->n; g++)
        if (job.comm[g] && !job.aborted)
            job.nccl->CommAbort(job.comm[g]);
    job.aborted = true;
    if (job.gpus && entered)
        job.gpus->leave(0);
}

/* Collective where nothing has failed: every rank has waited for its exchanges. */
static void end_communicators(void)
{
    bool entered = entered_first();
    int64_t until = oly_wait_clock() + PATIENCE;
    for (int g = 0; g < job.gpus->n; g++)
        if (job.comm[g])
            job.nccl->CommFinalize(job.comm[g]);
    bool ready = false;
    while (!ready && oly_wait_clock() < until && ask_communicators(&ready) == OLY_OK)
        sched_yield();
    for (int g = 0; g < job.gpus->n; g++)
        if (job.comm[g])
            job.nccl->CommDestroy(job.comm[g]);
    if (entered)
        job.gpus->leave(0);
}

void oly_nccl_give_up(void)
{
    abort_all();
}

void oly_nccl_end(void)
{
    if (job.comm[0] && (!job.started || oly_world_is_broken() || flights.first))
        abort_all();
    else if (job.comm[0] && !job.aborted)
        end_communicators();
    oly_release(job.ranks);
    oly_release(job.first_gpu);
    oly_release(job.first_id);
    oly_release(flights.address);
    oly_release(flights.packed);
    memset(&job, 0, sizeof job);
    memset(&flights, 0, sizeof flights);
}

/* -- which boxes -------------------------------------------------------------------------------------------------------------------- */

/* Has box k bytes of its own, not those of an earlier one? For k = 0, 1, ...; *next is 0 before. */
static bool is_first(const oly_payload *p, int k, int64_t *next)
{
    if (p->at[k] != *next)
        return false;
    *next += p->box[k].bytes;
    return true;
}

/* The earlier box with the same bytes. */
static int original(const oly_payload *p, int k)
{
    int j = 0;
    while (p->at[j] != p->at[k] || p->box[j].bytes != p->box[k].bytes)
        j++;
    return j;
}

static int local_gpu(int device)
{
    return job.gpus->of_device(device - job.first_id[oly_world_rank()]);
}

/* NCCL's rank of a device of that process. */
static int nccl_rank(int process, int device)
{
    return job.first_gpu[process] + job.ranks[process].of_device[device - job.first_id[process]];
}

/* No GPUs: -1, memory of the host, and the CPU devices beside GPUs, whose ids follow those of all GPUs. */
static bool is_gpu(int device)
{
    return device >= 0 && device < job.first_id[oly_world_size()];
}

/* Both ends know the same devices, so both decide the same: boxes beyond the first with the same bytes are only the receiver's. */
static bool in_place(const oly_payload *p)
{
    if (p->sum)
        return true;
    int64_t next = 0;
    for (int k = 0; k < p->n_boxes; k++)
        if (is_first(p, k, &next) && (!is_gpu(p->box[k].device) || !is_gpu(p->box[k].peer_device)))
            return false;
    return p->n_boxes > 0;
}

/* -- on a GPU: with its context ------------------------------------------------------------------------------------------ */

static oly_status record(int gpu, void **event)
{
    OLY_TRY(job.gpus->enter(gpu));
    return left(gpu, job.gpus->record(gpu, event));
}

static oly_status has_reached(int gpu, void *event, bool *yes)
{
    OLY_TRY(job.gpus->enter(gpu));
    return left(gpu, job.gpus->reached(gpu, event, yes));
}

static void forget(int gpu, void *event)
{
    if (job.gpus->enter(gpu) != OLY_OK)
        oly_drop_message();
    job.gpus->forget(gpu, event);
    job.gpus->leave(gpu);
}

static oly_status take(int gpu, int64_t bytes, void **memory)
{
    OLY_TRY(job.gpus->enter(gpu));
    return left(gpu, job.gpus->take(gpu, (size_t)bytes, memory));
}

static void give(int gpu, void *memory)
{
    if (job.gpus->enter(gpu) != OLY_OK)
        oly_drop_message();
    job.gpus->give(gpu, memory);
    job.gpus->leave(gpu);
}

static oly_status pack(int gpu, const oly_gpu_box *box, int64_t bytes, const void *from, void *packed)
{
    OLY_TRY(job.gpus->enter(gpu));
    return left(gpu, job.gpus->pack(gpu, gpu, box, 0, bytes, from, packed));
}

static oly_status unpack(int gpu, int box_gpu, const oly_gpu_box *box, int64_t bytes, void *to, const void *packed)
{
    OLY_TRY(job.gpus->enter(gpu));
    return left(gpu, job.gpus->unpack(gpu, box_gpu, box, 0, bytes, to, packed));
}

/* -- requests ----------------------------------------------------------------------------------------------------------------------- */

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static size_t make(int n, int n_first, void *memory)
{
    size_t count = (size_t)n, own = aligned(sizeof(nccl_requests)), messages = aligned(count * sizeof(nccl_message)),
           bytes = aligned(count * sizeof(int)), flags = aligned(count);
    nccl_requests *r = memory;
    if (!r)
        return own + messages + bytes + flags + oly_transport_mpi.make(n, n_first, NULL);
    char *at = (char *)memory + own;
    *r = (nccl_requests){.n = n, .n_first = n_first};
    r->message = (nccl_message *)at;
    r->bytes = (int *)(at + messages);
    r->waits = (bool *)(at + messages + bytes);
    r->mpi = at + messages + bytes + flags;
    memset(r->waits, 0, count);
    oly_transport_mpi.make(n, n_first, r->mpi);
    return 0;
}

static void free_requests(void *requests)
{
    nccl_requests *r = requests;
    for (int g = 0; job.gpus && g < job.gpus->n; g++)
        if (r->event[g])
            forget(g, r->event[g]);
}

/* Its replay begins: those after it make their groups after it. */
static void join_flights(nccl_requests *r)
{
    nccl_requests **last = &flights.first;
    while (*last)
        last = &(*last)->next;
    r->next = NULL;
    r->stage = POSTING;
    r->n_posted = r->n_messages = 0;
    *last = r;
}

/* What its boxes' buffers are now: loops may swap them before the group is made. */
static oly_status note_addresses(const oly_chunk *c, nccl_message *m)
{
    const oly_sum_of_all *sum = c->payload->sum;
    int in_sum = sum ? sum->n_values * sum->n_gpus : 0, n = flights.n_addresses + c->payload->n_boxes + 2 * in_sum;
    if (n > flights.room) {
        int room = 2 * n + 64;
        void **more = oly_realloc(flights.address, (size_t)room * sizeof *more);
        if (!more)
            return oly_out_of_memory((size_t)room * sizeof *more, "the boxes of an exchange");
        flights.address = more;
        flights.room = room;
    }
    m->first_address = flights.n_addresses;
    for (int k = 0; k < c->payload->n_boxes; k++)
        flights.address[flights.n_addresses++] = (char *)oly_chunk_buffer(c, k) + c->payload->box[k].offset;
    for (int k = 0; k < 2 * in_sum; k++)
        flights.address[flights.n_addresses++] = c->base[k < in_sum ? sum->from[k] : sum->to[k - in_sum]];
    return OLY_OK;
}

/* A chunk of NCCL's: what it moves is noted with the payload's first. */
static oly_status note_chunk(nccl_requests *r, int k, const oly_chunk *c, bool receives)
{
    r->waits[k] = true;
    r->bytes[k] = c->room;
    if (c->begin > 0)
        return OLY_OK;
    nccl_message *m = &r->message[r->n_messages++];
    *m = (nccl_message){.payload = c->payload, .receives = receives};
    return note_addresses(c, m);
}

static oly_status post(void *requests, int k, const oly_chunk *c, bool receives)
{
    nccl_requests *r = requests;
    if (r->stage == IDLE && r->n > r->n_first)
        join_flights(r);
    r->n_posted += k >= r->n_first;
    if (k >= r->n_first && !c->host)
        return note_chunk(r, k, c, receives);
    return receives ? oly_transport_mpi.receive(r->mpi, k, c) : oly_transport_mpi.send(r->mpi, k, c);
}

static oly_status post_send(void *requests, int k, const oly_chunk *c)
{
    return post(requests, k, c, false);
}

static oly_status post_receive(void *requests, int k, const oly_chunk *c)
{
    return post(requests, k, c, true);
}

/* -- groups -------------------------------------------------------------------------------------------------------------------------- */

static oly_gpu_box box_of(const oly_walk *w)
{
    return (oly_gpu_box){w->loops > 0 ? w->run : w->bytes, w->loops, w->extent, w->stride};
}

static void *address_of(const nccl_message *m, int k)
{
    return flights.address[m->first_address + k];
}

/* They are in the order of messages and boxes. */
static struct packed *packed_of(int message, int box)
{
    int low = 0, high = flights.n_packed;
    while (low < high) {
        int middle = (low + high) / 2;
        const struct packed *p = &flights.packed[middle];
        if (p->message < message || (p->message == message && p->index < box))
            low = middle + 1;
        else
            high = middle;
    }
    struct packed *p = &flights.packed[low];
    return low < flights.n_packed && p->message == message && p->index == box ? p : NULL;
}

/* Where box k is sent from or received: its own place, or packed bytes. */
static void *bytes_of(const nccl_requests *r, int message, int k)
{
    struct packed *p = packed_of(message, k);
    return p ? p->memory : address_of(&r->message[message], k);
}

/* Memory for a box with gaps; those that are sent are packed. */
static oly_status pack_box(const nccl_requests *r, int message, int k)
{
    const nccl_message *m = &r->message[message];
    const oly_walk *box = &m->payload->box[k];
    int gpu = local_gpu(box->device);
    if (flights.n_packed == flights.packed_room) {
        int room = 2 * flights.packed_room + 32;
        struct packed *more = oly_realloc(flights.packed, (size_t)room * sizeof *more);
        if (!more)
            return oly_out_of_memory((size_t)room * sizeof *more, "the boxes of an exchange");
        flights.packed = more;
        flights.packed_room = room;
    }
    struct packed *p = &flights.packed[flights.n_packed];
    *p = (struct packed){.box = box, .message = message, .gpu = gpu, .index = k};
    OLY_TRY(take(gpu, box->bytes, &p->memory));
    flights.n_packed++;
    oly_gpu_box shape = box_of(box);
    return m->receives ? OLY_OK : pack(gpu, &shape, box->bytes, address_of(m, k), p->memory);
}

static oly_status pack_boxes(const nccl_requests *r)
{
    for (int i = 0; i < r->n_messages; i++) {
        const oly_payload *p = r->message[i].payload;
        int64_t next = 0;
        for (int k = 0; k < p->n_boxes; k++)
            if (is_first(p, k, &next) && p->box[k].loops > 0)
                OLY_TRY(pack_box(r, i, k));
    }
    return OLY_OK;
}

static int call_for(const nccl_requests *r, int message, int k)
{
    const nccl_message *m = &r->message[message];
    const oly_walk *box = &m->payload->box[k];
    int gpu = local_gpu(box->device), peer = nccl_rank(m->payload->peer, box->peer_device);
    void *at = bytes_of(r, message, k), *stream = job.gpus->stream(gpu);
    return m->receives ? job.nccl->Recv(at, (size_t)box->bytes, OLY_NCCL_BYTES, peer, job.comm[gpu], stream)
                       : job.nccl->Send(at, (size_t)box->bytes, OLY_NCCL_BYTES, peer, job.comm[gpu], stream);
}

/* NCCL's own all-reduce: all GPUs of the job add their values, in the order that NCCL finds best. */
static int add_up(const nccl_message *m)
{
    const oly_sum_of_all *sum = m->payload->sum;
    int in_sum = sum->n_values * sum->n_gpus, result = OLY_NCCL_SUCCESS;
    for (int k = 0; k < in_sum && result == OLY_NCCL_SUCCESS; k++) {
        int gpu = k % sum->n_gpus;
        size_t count =
            (size_t)sum->count[k / sum->n_gpus] * (sum->dtype == OLY_COMPLEX64 || sum->dtype == OLY_COMPLEX128 ? 2 : 1);
        result =
            job.nccl->AllReduce(flights.address[m->first_address + k], flights.address[m->first_address + in_sum + k],
                                count, nccl_type[sum->dtype], OLY_NCCL_SUM, job.comm[gpu], job.gpus->stream(gpu));
    }
    return result;
}

/* Boxes between the same two GPUs are in the same order at both ends: that of the message. */
static oly_status group_entered(nccl_requests *r)
{
    OLY_TRY(said("ncclGroupStart", job.nccl->GroupStart()));
    int result = OLY_NCCL_SUCCESS;
    for (int i = 0; i < r->n_messages; i++) {
        const oly_payload *p = r->message[i].payload;
        int64_t next = 0;
        if (p->sum)
            result = add_up(&r->message[i]);
        for (int k = 0; k < p->n_boxes && result == OLY_NCCL_SUCCESS; k++)
            if (is_first(p, k, &next) && p->box[k].bytes > 0)
                result = call_for(r, i, k);
    }
    int ended = job.nccl->GroupEnd();
    OLY_TRY(said(result == OLY_NCCL_SUCCESS ? "ncclGroupEnd" : "ncclSend, ncclRecv or ncclAllReduce",
                 result ? result : ended));
    r->stage = LAUNCHING;
    return OLY_OK;
}

static oly_status make_group(nccl_requests *r)
{
    OLY_TRY(pack_boxes(r));
    OLY_TRY(job.gpus->enter(0));
    return left(0, group_entered(r));
}

/* Into boxes with gaps, and to the other devices that need the same bytes. */
static oly_status unpack_message(const nccl_requests *r, int message)
{
    const nccl_message *m = &r->message[message];
    for (int k = 0; k < m->payload->n_boxes; k++) {
        const oly_walk *box = &m->payload->box[k];
        int first = original(m->payload, k), gpu = local_gpu(m->payload->box[first].device);
        oly_gpu_box shape = box_of(box);
        if (box->bytes > 0 && (first != k || packed_of(message, k)))
            OLY_TRY(
                unpack(gpu, local_gpu(box->device), &shape, box->bytes, address_of(m, k), bytes_of(r, message, first)));
    }
    return OLY_OK;
}

/* The group is in the streams: what follows it there. */
static oly_status follow_group(nccl_requests *r)
{
    oly_status st = OLY_OK;
    for (int i = 0; i < r->n_messages && st == OLY_OK; i++)
        st = r->message[i].receives ? unpack_message(r, i) : OLY_OK;
    for (int k = 0; k < flights.n_packed; k++)
        give(flights.packed[k].gpu, flights.packed[k].memory);
    flights.n_packed = 0;
    for (int g = 0; g < job.gpus->n && st == OLY_OK; g++)
        st = record(g, &r->event[g]);
    r->stage = MOVING;
    return st;
}

/* The first exchange that has started makes its group when all its tickets are there. */
static oly_status advance_flights(void)
{
    while (flights.first && flights.first->n_posted == flights.first->n - flights.first->n_first) {
        nccl_requests *r = flights.first;
        bool ready = true;
        if (r->stage == POSTING && r->n_messages > 0)
            OLY_TRY(make_group(r));
        if (r->stage == LAUNCHING)
            OLY_TRY(ask_communicators(&ready));
        if (!ready)
            return OLY_OK;
        if (r->stage == LAUNCHING)
            OLY_TRY(follow_group(r));
        else
            r->stage = IDLE; /* all of it was MPI's */
        flights.first = r->next;
        if (!flights.first)
            flights.n_addresses = 0;
    }
    return OLY_OK;
}

static oly_status all_reached(const nccl_requests *r, bool *yes)
{
    *yes = true;
    for (int g = 0; g < job.gpus->n && *yes; g++)
        OLY_TRY(has_reached(g, r->event[g], yes));
    return OLY_OK;
}

static void report(nccl_requests *r, int *n_done, oly_completion *done)
{
    for (int k = r->n_first; k < r->n; k++)
        if (r->waits[k]) {
            done[(*n_done)++] = (oly_completion){.request = k, .bytes = r->bytes[k]};
            r->waits[k] = false;
        }
    r->stage = IDLE;
}

static oly_status test(void *requests, int n, int *n_done, oly_completion *done)
{
    nccl_requests *r = requests;
    bool yes = false, ready;
    OLY_TRY(oly_transport_mpi.test(r->mpi, n, n_done, done));
    OLY_TRY(advance_flights());
    if (r->stage != MOVING)
        return OLY_OK;
    OLY_TRY(all_reached(r, &yes));
    if (yes)
        report(r, n_done, done);
    else
        OLY_TRY(ask_communicators(&ready)); /* has another rank's end been noticed? */
    return OLY_OK;
}

/* -- failures ------------------------------------------------------------------------------------------------------------------------- */

static void leave_flights(nccl_requests *r)
{
    for (nccl_requests **at = &flights.first; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            return;
        }
}

/* No kernel waits for others any more; the job is about to end. */
static bool give_up(void *requests, int k)
{
    nccl_requests *r = requests;
    if (r->stage != IDLE) {
        leave_flights(r);
        abort_all();
        r->stage = IDLE;
    }
    if (k < r->n && r->waits[k]) {
        r->waits[k] = false;
        return false;
    }
    return oly_transport_mpi.give_up(r->mpi, k);
}

/* Types whose sum NCCL rounds once, as the plan's own; complex numbers are two. */
static bool adds(oly_dtype dtype)
{
    for (int r = 0; r < oly_world_size(); r++)
        if (job.ranks[r].n != job.ranks[r].n_devices)
            return false; /* devices of one GPU are one rank of NCCL */
    return nccl_type[dtype] > OLY_NCCL_BYTES;
}

static int stray(void *bytes)
{
    return oly_transport_mpi.stray(bytes);
}

/* Chunks here are those that are packed in memory of the host. */
static oly_status pack_host(const oly_chunk *c)
{
    return c->head > 0 ? oly_gpu_pack_first(c) : oly_host_pack(c);
}

static oly_status unpack_host(const oly_chunk *c)
{
    return c->head > 0 ? oly_gpu_unpack_first(c) : oly_host_unpack(c);
}

const oly_transport oly_transport_nccl = {.name = "nccl",
                                          .small_bytes = OLY_MOST_SMALL_BYTES,
                                          .make = make,
                                          .free = free_requests,
                                          .in_place = in_place,
                                          .pack = pack_host,
                                          .unpack = unpack_host,
                                          .send = post_send,
                                          .receive = post_receive,
                                          .test = test,
                                          .give_up = give_up,
                                          .adds = adds,
                                          .stray = stray};
