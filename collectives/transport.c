/* Which transport a job has, and packing by the host for transports through its memory. See transport.h. */
#include "transport.h"
#include <stdio.h>
#include <string.h>

static const oly_transport *chosen = &oly_transport_mpi, *registered;
static bool host_may_use_buffers = true;

void oly_transport_register(const oly_transport *transport)
{
    registered = transport;
}

void oly_transport_choose(bool host_memory)
{
    chosen = registered ? registered : &oly_transport_mpi;
    host_may_use_buffers = host_memory;
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

bool oly_transport_host_memory(void)
{
    return host_may_use_buffers;
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

void oly_host_pack(const oly_chunk *c)
{
    int64_t begin, end;
    for (int k = 0; k < c->payload->n_boxes; k++)
        if (part_of(c, k, &begin, &end))
            oly_walk_pack(&c->payload->box[k], begin, end, oly_chunk_buffer(c, k), packed_at(c, k, begin));
}

void oly_host_unpack(const oly_chunk *c)
{
    int64_t begin, end;
    for (int k = 0; k < c->payload->n_boxes; k++)
        if (part_of(c, k, &begin, &end))
            oly_walk_unpack(&c->payload->box[k], begin, end, oly_chunk_buffer(c, k), packed_at(c, k, begin));
}
