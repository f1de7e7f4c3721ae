/* SPDX-License-Identifier: BSD-3-Clause */
/* The emulated NCCL: sends and receives between the processes of one machine, as work of streams. A communicator is memory that its ranks
 * share (the unique id names it), with a ring of bytes for each ordered pair. As strict as the real one may be: nothing is sent before
 * the other side receives, groups on one communicator are done one after the other in the order in which they were made, a
 * non-blocking communicator may say that it is not ready yet. Checked: lengths at both ends, groups left open, use of a
 * communicator that is not ready, two ranks on one GPU. EMULATED_NCCL_SILENT=1: a dead process is not reported. */
#define _GNU_SOURCE
#include "driver.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#pragma GCC visibility push(default)
#include <nccl.h>
#pragma GCC visibility pop

enum { MOST_RANKS = 64, RING = 1 << 16, MOST_OPS = 4096, MOST_COMMS = 64 };

typedef struct ring {          /* of one ordered pair */
    _Atomic uint64_t receives; /* begun by the receiver, the last of them with so many bytes */
    _Atomic uint64_t room[64]; /* bytes of receive k, at k % 64 */
    _Atomic uint64_t written, taken;
    char bytes[RING];
} ring;

typedef struct shared {
    _Atomic int arrived, ranks;
    struct {
        _Atomic int pid, gpu;
    } rank[MOST_RANKS];
    ring ring[MOST_RANKS][MOST_RANKS]; /* from, to; pages that nobody uses take no memory */
} shared;

struct ncclComm {
    shared *with;
    int rank, n, device;
    bool blocking, aborted, deferred; /* a group has been ended and not begun yet */
    uint64_t sent[MOST_RANKS], received[MOST_RANKS];
    uint64_t made, turn; /* groups */
    ncclResult_t error;
};

typedef struct operation {
    ncclComm_t comm;
    CUstream stream;
    bool sends;
    int peer;
    void *address;
    uint64_t bytes, done, number; /* number: of the sends, or receives, between the two; from 1 */
    bool begun;
} operation;

/* Of ncclAllReduce, which sends everybody's values to everybody. They are added from the last rank down, which is no order of Olympus's own. */
typedef struct reduction {
    struct reduction *next;
    ncclComm_t comm;
    const void *from;
    void *to;
    size_t count, bytes;
    ncclDataType_t type;
    char *parts; /* [ranks] but this one's */
} reduction;

typedef struct group_work {
    emulated_work work;
    ncclComm_t comm;
    reduction *reductions;
    uint64_t turn;
    struct timespec begun; /* EMULATED_SLOW */
    int n;
    operation op[];
} group_work;

static __thread struct {
    int depth, n;
    operation op[MOST_OPS];
    reduction *reductions;
    int n_starting;
    ncclComm_t starting[MOST_COMMS];
} group;
static struct {
    group_work *work;
    CUstream stream;
} deferred[MOST_COMMS];

/* -- moving bytes ------------------------------------------------------------------------------------------------------------------------ */

static void check_length(const operation *op, uint64_t theirs)
{
    if (theirs != op->bytes)
        emulated_violation(
            "NCCL: between ranks %d and %d, number %llu: %llu bytes are sent or received here, %llu there",
            op->comm->rank, op->peer, (unsigned long long)op->number, (unsigned long long)op->bytes,
            (unsigned long long)theirs);
}

static void copy_ring(ring *r, uint64_t at, char *memory, uint64_t n, bool into)
{
    uint64_t first = at % RING, before = n < RING - first ? n : RING - first;
    if (into) {
        memcpy(r->bytes + first, memory, before);
        memcpy(r->bytes, memory + before, n - before);
    } else {
        memcpy(memory, r->bytes + first, before);
        memcpy(memory + before, r->bytes, n - before);
    }
}

static void send_some(operation *op, ring *r)
{
    if (atomic_load(&r->receives) < op->number)
        return;
    if (!op->begun)
        check_length(op, atomic_load(&r->room[op->number % 64]));
    op->begun = true;
    uint64_t written = atomic_load(&r->written), n = RING - (written - atomic_load(&r->taken));
    n = n < op->bytes - op->done ? n : op->bytes - op->done;
    if (n > 0)
        copy_ring(r, written, (char *)emulated_memory_at("ncclSend", op->address, op->bytes, false) + op->done, n,
                  true);
    op->done += n;
    atomic_store(&r->written, written + n);
}

static void receive_some(operation *op, ring *r)
{
    if (!op->begun) {
        atomic_store(&r->room[op->number % 64], op->bytes);
        atomic_store(&r->receives, op->number);
    }
    op->begun = true;
    uint64_t taken = atomic_load(&r->taken), n = atomic_load(&r->written) - taken;
    n = n < op->bytes - op->done ? n : op->bytes - op->done;
    if (n > 0)
        copy_ring(r, taken, (char *)emulated_memory_at("ncclRecv", op->address, op->bytes, true) + op->done, n, false);
    op->done += n;
    atomic_store(&r->taken, taken + n);
}

/* The operations between the same two ranks are done in their order. */
static bool earlier_is_open(const group_work *w, int k)
{
    for (int i = 0; i < k; i++)
        if (w->op[i].sends == w->op[k].sends && w->op[i].peer == w->op[k].peer && w->op[i].done < w->op[i].bytes)
            return true;
    return false;
}

#define ADD_UP(kind)                                                                                                   \
    for (size_t i = 0; i < r->count; i++) {                                                                            \
        kind sum = ((const kind *)(part_of(r, r->comm->n - 1, own)))[i];                                               \
        for (int k = r->comm->n - 2; k >= 0; k--)                                                                      \
            sum += ((const kind *)(part_of(r, k, own)))[i];                                                            \
        ((kind *)all)[i] = sum;                                                                                        \
    }

static const char *part_of(const reduction *r, int rank, const char *own)
{
    return rank == r->comm->rank ? own : r->parts + (size_t)rank * r->bytes;
}

static void reduce(reduction *r)
{
    char *own = malloc(r->bytes), *all = malloc(r->bytes);
    if (!own || !all)
        emulated_violation("no memory");
    memcpy(own, emulated_memory_at("ncclAllReduce", r->from, r->bytes, false), r->bytes);
    switch (r->type) {
    case ncclInt32:
    case ncclUint32: ADD_UP(uint32_t); break;
    case ncclInt64:
    case ncclUint64: ADD_UP(uint64_t); break;
    case ncclFloat32: ADD_UP(float); break;
    case ncclFloat64: ADD_UP(double); break;
    default: emulated_violation("NCCL: a sum of type %d is not emulated", (int)r->type);
    }
    memcpy(emulated_memory_at("ncclAllReduce", r->to, r->bytes, true), all, r->bytes);
    free(own);
    free(all);
}

static void reduce_all(group_work *w)
{
    for (reduction *r = w->reductions, *next; r; r = next) {
        next = r->next;
        reduce(r);
        free(r->parts);
        free(r);
    }
    w->reductions = NULL;
}

/* A slow NCCL takes so long for each group, from when it could begin. */
static bool is_too_early(group_work *w)
{
    struct timespec now;
    long slow = emulated_slow("nccl");
    if (slow == 0)
        return false;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (w->begun.tv_sec == 0)
        w->begun = now;
    return (now.tv_sec - w->begun.tv_sec) * 1000 + (now.tv_nsec - w->begun.tv_nsec) / 1000000 < slow;
}

static bool run_group(emulated_work *work, CUcontext context)
{
    group_work *w = (group_work *)work;
    bool done = true;
    (void)context;
    if (w->comm->aborted)
        return true;
    if (w->turn != w->comm->turn || is_too_early(w))
        return false;
    for (int k = 0; k < w->n; k++) {
        operation *op = &w->op[k];
        shared *with = w->comm->with;
        if (earlier_is_open(w, k)) {
            done = false;
            continue;
        }
        if (op->sends && (op->done < op->bytes || !op->begun))
            send_some(op, &with->ring[w->comm->rank][op->peer]);
        else if (!op->sends && (op->done < op->bytes || !op->begun))
            receive_some(op, &with->ring[op->peer][w->comm->rank]);
        done &= op->begun && op->done == op->bytes;
    }
    if (done)
        reduce_all(w);
    w->comm->turn += done;
    return done;
}

/* -- groups ------------------------------------------------------------------------------------------------------------------------------- */

ncclResult_t ncclGroupStart(void)
{
    group.depth++;
    return ncclSuccess;
}

/* All operations of a group on one communicator and stream. */
static group_work *work_of(ncclComm_t comm, CUstream stream)
{
    group_work *w = calloc(1, sizeof *w + (size_t)group.n * sizeof *w->op);
    if (!w)
        emulated_violation("no memory");
    w->work = (emulated_work){.name = "a group of NCCL", .run = run_group, .foreign = true};
    w->comm = comm;
    w->turn = comm->made++;
    for (int k = 0; k < group.n; k++)
        if (group.op[k].comm == comm) {
            if (group.op[k].stream != stream)
                emulated_violation("NCCL: a group uses one communicator on two streams");
            w->op[w->n++] = group.op[k];
        }
    for (reduction **at = &group.reductions; *at;) {
        reduction *r = *at;
        if (r->comm != comm) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        r->next = w->reductions;
        w->reductions = r;
    }
    return w;
}

static void defer(group_work *work, CUstream stream)
{
    for (int k = 0; k < MOST_COMMS; k++)
        if (!deferred[k].work) {
            deferred[k].work = work;
            deferred[k].stream = stream;
            work->comm->deferred = true;
            return;
        }
    emulated_violation("NCCL: too many communicators");
}

/* Gives the group's work to its stream. */
static void begin_deferred(ncclComm_t comm)
{
    for (int k = 0; k < MOST_COMMS; k++)
        if (deferred[k].work && deferred[k].work->comm == comm) {
            group_work *work = deferred[k].work;
            deferred[k].work = NULL;
            comm->deferred = false;
            emulated_submit(deferred[k].stream, &work->work);
        }
}

static ncclResult_t end_group(void)
{
    ncclResult_t result = group.n_starting > 0 ? ncclInProgress : ncclSuccess;
    group.n_starting = 0;
    if (group.n > 0 && emulated_fails("nccl")) {
        group.n = 0;
        return ncclSystemError;
    }
    for (int k = 0; k < group.n; k++) {
        ncclComm_t comm = group.op[k].comm;
        bool seen = false;
        for (int i = 0; i < k; i++)
            seen |= group.op[i].comm == comm;
        if (seen)
            continue;
        group_work *work = work_of(comm, group.op[k].stream);
        if (!comm->blocking && emulated_random(2)) {
            defer(work, group.op[k].stream);
            result = ncclInProgress;
        } else
            emulated_submit(group.op[k].stream, &work->work);
    }
    group.n = 0;
    return result;
}

ncclResult_t ncclGroupEnd(void)
{
    if (group.depth == 0)
        emulated_violation("ncclGroupEnd without ncclGroupStart");
    if (--group.depth > 0)
        return ncclSuccess;
    if (!emulated_context())
        emulated_violation("NCCL: a group ends while no GPU is current: NCCL would make GPU 0 so, and a context there");
    emulated_lock();
    ncclResult_t result = end_group();
    emulated_unlock();
    return result;
}

static void __attribute__((destructor)) check_group(void)
{
    if (group.depth > 0)
        emulated_violation("a group of NCCL was started and not ended");
}

static ncclResult_t add(bool sends, void *address, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                        cudaStream_t stream)
{
    static const uint64_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    if (!comm || peer < 0 || peer >= comm->n || (unsigned)type >= sizeof bytes / sizeof *bytes)
        return ncclInvalidArgument;
    emulated_lock();
    if (comm->deferred || (!comm->blocking && atomic_load(&comm->with->arrived) < comm->n))
        emulated_violation("NCCL: a communicator is used while it is not ready (ncclCommGetAsyncError)");
    if (!emulated_memory_is_device(address) && !emulated_pinned_has(address) && count > 0)
        emulated_violation("NCCL: %p is neither memory of a device nor pinned", address);
    if (group.n == MOST_OPS)
        emulated_violation("NCCL: more than %d operations in a group", MOST_OPS);
    group.op[group.n++] = (operation){.comm = comm,
                                      .stream = (CUstream)stream,
                                      .sends = sends,
                                      .peer = peer,
                                      .address = address,
                                      .bytes = count * bytes[type],
                                      .number = sends ? ++comm->sent[peer] : ++comm->received[peer]};
    ncclResult_t result = group.depth == 0 ? end_group() : ncclSuccess;
    emulated_unlock();
    return result;
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return add(true, (void *)(uintptr_t)from, count, type, peer, comm, stream);
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return add(false, to, count, type, peer, comm, stream);
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t how,
                           ncclComm_t comm, cudaStream_t stream)
{
    static const size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    if (how != ncclSum || (unsigned)type >= sizeof bytes / sizeof *bytes || !comm)
        return ncclInvalidArgument;
    reduction *r = calloc(1, sizeof *r);
    size_t all = count * bytes[type];
    if (!r || !(r->parts = calloc(all, (size_t)comm->n)))
        emulated_violation("no memory");
    emulated_pinned_add(r->parts, all * (size_t)comm->n); /* it is NCCL's own */
    *r = (reduction){group.reductions, comm, from, to, count, all, type, r->parts};
    group.reductions = r;
    ncclGroupStart();
    for (int k = 0; k < comm->n; k++)
        if (k != comm->rank) {
            add(true, (void *)(uintptr_t)from, all, ncclInt8, k, comm, stream);
            add(false, r->parts + (size_t)k * all, all, ncclInt8, k, comm, stream);
        }
    emulated_pinned_remove(r->parts);
    return ncclGroupEnd();
}

/* -- communicators -------------------------------------------------------------------------------------------------------------------------- */

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t r)
{
    static const char *const text[] = {"no error",
                                       "unhandled cuda error",
                                       "unhandled system error",
                                       "internal error",
                                       "invalid argument",
                                       "invalid usage",
                                       "remote process exited or there was a network error",
                                       "NCCL operation in progress"};
    return (unsigned)r < sizeof text / sizeof *text ? text[r] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    int file = memfd_create("emulated NCCL", 0);
    if (file < 0 || ftruncate(file, sizeof(shared)) != 0)
        return ncclSystemError;
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "/proc/%d/fd/%d", (int)getpid(), file);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int n, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    CUdevice device;
    char bus[32] = "";
    if (n < 1 || n > MOST_RANKS || rank < 0 || rank >= n || (config && config->magic != 0xcafebeef))
        return ncclInvalidArgument;
    if (cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return ncclUnhandledCudaError;
    int file = open(id.internal, O_RDWR | O_CLOEXEC);
    shared *with =
        file < 0 ? MAP_FAILED : mmap(NULL, sizeof *with, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    struct ncclComm *c = calloc(1, sizeof *c);
    if (with == MAP_FAILED || !c)
        return ncclSystemError;
    close(file);
    cuDeviceGetPCIBusId(bus, sizeof bus, device);
    *c = (struct ncclComm){
        .with = with, .rank = rank, .n = n, .device = device, .blocking = !config || config->blocking != 0};
    atomic_store(&with->rank[rank].gpu, (int)strtol(strchr(bus, ':') ? strchr(bus, ':') + 1 : "0", NULL, 16) + 1);
    atomic_store(&with->rank[rank].pid, (int)getpid());
    atomic_fetch_add(&with->arrived, 1);
    *comm = c;
    if (group.depth > 0 && !c->blocking) {
        group.starting[group.n_starting++ % MOST_COMMS] = c;
        return ncclInProgress;
    }
    while (c->blocking && group.depth == 0 && atomic_load(&with->arrived) < n)
        usleep(1000);
    return c->blocking ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int n, ncclUniqueId id, int rank)
{
    return ncclCommInitRankConfig(comm, n, id, rank, NULL);
}

/* Ended, also if its parent has not noticed yet. */
static bool is_dead(int pid)
{
    char path[64], text[200] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return true;
    bool read = fgets(text, sizeof text, f) != NULL;
    fclose(f);
    const char *end = strrchr(text, ')');
    return !read || !end || end[2] == 'Z' || end[2] == 'X';
}

static ncclResult_t look_at_ranks(const struct ncclComm *c)
{
    const char *silent = getenv("EMULATED_NCCL_SILENT");
    static double looked;
    if (emulated_now() < looked + 0.02)
        return ncclSuccess;
    looked = emulated_now();
    for (int r = 0; r < c->n; r++) {
        int pid = atomic_load(&c->with->rank[r].pid);
        if (pid && !silent && is_dead(pid))
            return ncclRemoteError;
        for (int s = 0; s < r; s++)
            if (atomic_load(&c->with->rank[s].gpu) == atomic_load(&c->with->rank[r].gpu) && pid &&
                !getenv("EMULATED_NCCL_SHARE"))
                return ncclInvalidUsage; /* two ranks on one GPU */
    }
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *error)
{
    emulated_lock();
    if (c->error == ncclSuccess)
        c->error = emulated_fails("nccl_async") ? ncclRemoteError : ncclSuccess;
    if (c->error == ncclSuccess && atomic_load(&c->with->arrived) >= c->n)
        c->error = look_at_ranks(c);
    if (c->deferred && emulated_random(2))
        begin_deferred(c);
    *error = c->error != ncclSuccess                                ? c->error
             : c->deferred || atomic_load(&c->with->arrived) < c->n ? ncclInProgress
                                                                    : ncclSuccess;
    emulated_unlock();
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    (void)c;
    return ncclSuccess;
}

/* Work that streams still have ends without moving anything. What ranks share, and the communicator, which that work names, stay. */
ncclResult_t ncclCommAbort(ncclComm_t c)
{
    emulated_lock();
    c->aborted = true;
    begin_deferred(c);
    emulated_unlock();
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    emulated_lock();
    if (c->turn != c->made && !c->aborted)
        emulated_violation("NCCL: a communicator is destroyed while %llu groups are not done",
                           (unsigned long long)(c->made - c->turn));
    munmap(c->with, sizeof *c->with);
    free(c);
    emulated_unlock();
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t c, int *n)
{
    *n = c->n;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t c, int *rank)
{
    *rank = c->rank;
    return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t c, int *device)
{
    *device = c->device;
    return ncclSuccess;
}
