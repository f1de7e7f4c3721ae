/* SPDX-License-Identifier: BSD-3-Clause */
/* Which transport a job has, and packing by the host for transports through its memory. See transport.h. */
#include "transport.h"
#include "device_trial.h"
#include "transport_gpu.h"
#include "transport_nccl.h"
#include "core/option.h"
#include <stdio.h>
#include <string.h>

static const oly_transport *chosen = &oly_transport_mpi, *registered;
static const oly_device_access *device_access; /* NULL: host memory */
static char why_chosen[300];
static oly_way way = OLY_WAY_HOST;
static oly_transport between_gpus; /* the table in use, with numbers of this job */

void oly_transport_register(const oly_transport *transport)
{
    registered = transport;
}

void oly_transport_choose(const oly_device_access *access)
{
    chosen = registered ? registered : &oly_transport_mpi;
    device_access = access;
    way = OLY_WAY_HOST;
    snprintf(why_chosen, sizeof why_chosen, "%s", access ? "through host memory" : "");
}

static void use(const oly_transport *transport, oly_way chosen_way)
{
    way = chosen_way;
    between_gpus = *transport;
    between_gpus.small_bytes = (int)oly_option.nccl_bytes;
    if (way == OLY_WAY_STAGED)
        between_gpus.chunk_bytes = OLY_STAGED_CHUNK_BYTES;
    chosen = &between_gpus;
}

/* What one rank of each node has found out. */
typedef struct found_aware {
    int yes;
    char why[160];
} found_aware;

/* Does MPI take memory of GPUs on all nodes? `why`: the first reason against it. The same on all ranks. */
static oly_status find_aware(bool *yes, char *why, size_t room)
{
    found_aware mine = {.yes = oly_option.cuda_aware != 0};
    size_t bytes = sizeof mine * (size_t)oly_world_size();
    *yes = false;
    if (!mine.yes)
        snprintf(mine.why, sizeof mine.why, "OLYMPUS_CUDA_AWARE=0");
    else if (oly_option.cuda_aware == 1 && oly_world_node_rank() == 0)
        mine.yes = oly_device_trial(mine.why, sizeof mine.why);
    found_aware *all = oly_malloc(bytes);
    OLY_TRY(oly_world_vote(all ? OLY_OK : oly_out_of_memory(bytes, "messages between GPUs"),
                           "trying MPI with memory of GPUs"));
    oly_status st = oly_world_gather(&mine, all, sizeof mine);
    int no = 0;
    while (st == OLY_OK && no < oly_world_size() && all[no].yes)
        no++;
    *yes = st == OLY_OK && no == oly_world_size();
    if (st == OLY_OK && !*yes)
        snprintf(why, room, "%s", all[no].why);
    oly_release(all);
    return st;
}

/* Without NCCL: `missing` says why. */
static oly_status open_mpi(const char *missing)
{
    char why[160] = "";
    bool aware;
    OLY_TRY(find_aware(&aware, why, sizeof why));
    oly_gpu_messages_aware(aware);
    use(&oly_transport_gpu, aware ? OLY_WAY_AWARE : OLY_WAY_STAGED);
    if (aware)
        snprintf(why_chosen, sizeof why_chosen, "CUDA-aware MPI (no NCCL: %s)", missing);
    else
        snprintf(why_chosen, sizeof why_chosen, "MPI and pinned memory (no NCCL: %s; %s)", missing, why);
    return OLY_OK;
}

oly_status oly_transport_open(const oly_gpu_access *gpus)
{
    bool started = false;
    char missing[120] = "";
    if (!gpus || registered || !oly_world_has_peers())
        return OLY_OK;
    OLY_TRY(oly_gpu_messages_start(gpus));
    oly_status st = oly_nccl_start(gpus, &started, missing, sizeof missing);
    if (started) {
        use(&oly_transport_nccl, OLY_WAY_NCCL);
        snprintf(why_chosen, sizeof why_chosen, "%s", missing);
        return OLY_OK;
    }
    oly_nccl_end();
    return st == OLY_OK ? open_mpi(missing) : st;
}

void oly_transport_close(void)
{
    if (way == OLY_WAY_NCCL)
        oly_nccl_end();
    oly_gpu_messages_end();
    way = OLY_WAY_HOST;
    chosen = &oly_transport_mpi;
}

bool oly_transport_adds(oly_dtype dtype)
{
    return oly_option.nccl_allreduce && chosen->adds && chosen->adds(dtype);
}

oly_way oly_transport_way(void)
{
    return way;
}

const char *oly_transport_why(void)
{
    return why_chosen;
}

oly_transport_name oly_transport_my_name(void)
{
    oly_transport_name name = {{0}};
    snprintf(name.chars, sizeof name.chars, "%s", chosen->name);
    return name;
}

oly_status oly_transport_agree(int n, const oly_transport_name *of, size_t stride)
{
    for (int r = 1; r < n; r++) {
        const oly_transport_name *name = (const oly_transport_name *)((const char *)of + (size_t)r * stride);
        if (strcmp(name->chars, of->chars) != 0)
            return oly_fail(
                OLY_DIVERGED,
                "rank 0 sends over the transport \"%s\", rank %d over \"%s\"; all ranks of a job use the same",
                of->chars, r, name->chars);
    }
    return OLY_OK;
}

const oly_transport *oly_transport_get(void)
{
    return chosen;
}

bool oly_transport_in_host_memory(void)
{
    return !device_access;
}

bool oly_chunk_part(const oly_chunk *c, int k, int64_t *begin, int64_t *end)
{
    const oly_payload *p = c->payload;
    int64_t first = c->begin - p->at[k], last = c->end - p->at[k];
    *begin = first > 0 ? first : 0;
    *end = last < p->box[k].bytes ? last : p->box[k].bytes;
    return *begin < *end;
}

/* Of byte `begin` of box k. */
static char *packed_at(const oly_chunk *c, int k, int64_t begin)
{
    return c->host + c->head + (c->payload->at[k] + begin - c->begin);
}

static oly_status read_run(const oly_walk *box, void *device, char *packed, int64_t bytes)
{
    return device_access->read(packed, box->device, device, (size_t)bytes);
}

static oly_status write_run(const oly_walk *box, void *device, char *packed, int64_t bytes)
{
    return device_access->write(box->device, device, packed, (size_t)bytes);
}

/* The part of box k that is in the chunk, by the host or run by run. */
oly_status oly_host_copy_box(const oly_chunk *c, int k, bool packing)
{
    const oly_walk *box = &c->payload->box[k];
    int64_t begin, end;
    if (!oly_chunk_part(c, k, &begin, &end))
        return OLY_OK;
    char *packed = packed_at(c, k, begin);
    if (device_access && box->device >= 0)
        return oly_walk_runs(box, begin, end, oly_chunk_buffer(c, k), packed, packing ? read_run : write_run);
    if (packing)
        oly_walk_pack(box, begin, end, oly_chunk_buffer(c, k), packed);
    else
        oly_walk_unpack(box, begin, end, oly_chunk_buffer(c, k), packed);
    return OLY_OK;
}

oly_status oly_host_pack(const oly_chunk *c)
{
    for (int k = 0; k < c->payload->n_boxes; k++)
        OLY_TRY(oly_host_copy_box(c, k, true));
    return OLY_OK;
}

oly_status oly_host_unpack(const oly_chunk *c)
{
    for (int k = 0; k < c->payload->n_boxes; k++)
        OLY_TRY(oly_host_copy_box(c, k, false));
    return OLY_OK;
}
