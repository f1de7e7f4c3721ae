/* SPDX-License-Identifier: BSD-3-Clause */
/* Which transport a job has, and packing by the host for transports through its memory. See transport.h. */
#include "transport.h"
#include "transport_nccl.h"
#include "core/option.h"
#include <stdio.h>
#include <string.h>

static const oly_transport *chosen = &oly_transport_mpi, *registered;
static const oly_device_access *device_access; /* NULL: host memory */
static char why_chosen[200];
static oly_transport nccl; /* oly_transport_nccl, with the option's small_bytes */

void oly_transport_register(const oly_transport *transport)
{
    registered = transport;
}

void oly_transport_choose(const oly_device_access *access)
{
    chosen = registered ? registered : &oly_transport_mpi;
    device_access = access;
    snprintf(why_chosen, sizeof why_chosen, "%s", access ? "through host memory" : "");
}

oly_status oly_transport_open(const oly_gpu_access *gpus)
{
    bool started = false;
    if (!gpus || registered || !oly_world_has_peers())
        return OLY_OK;
    oly_status st = oly_nccl_start(gpus, &started, why_chosen, sizeof why_chosen);
    if (!started) {
        oly_nccl_end();
        return st;
    }
    nccl = oly_transport_nccl;
    nccl.small_bytes = (int)oly_option.nccl_bytes;
    chosen = &nccl;
    return OLY_OK;
}

void oly_transport_close(void)
{
    if (chosen == &nccl)
        oly_nccl_end();
    chosen = &oly_transport_mpi;
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

/* Bytes begin to end of box k that are in the chunk; false: none. */
static bool part_of(const oly_chunk *c, int k, int64_t *begin, int64_t *end)
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
static oly_status copy_box(const oly_chunk *c, int k, bool packing)
{
    const oly_walk *box = &c->payload->box[k];
    int64_t begin, end;
    if (!part_of(c, k, &begin, &end))
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
        OLY_TRY(copy_box(c, k, true));
    return OLY_OK;
}

oly_status oly_host_unpack(const oly_chunk *c)
{
    for (int k = 0; k < c->payload->n_boxes; k++)
        OLY_TRY(copy_box(c, k, false));
    return OLY_OK;
}
