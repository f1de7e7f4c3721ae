/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport through MPI: host memory, or a large contiguous box's own. Requests are MPI's, tags go to MPI as they are. See
 * transport.h. */
#include "transport.h"
#include "world.h"

typedef struct mpi_requests {
    MPI_Request *request; /* [n], in the memory behind this, as the others */
    MPI_Status *status;
    int *index;
    bool *receives;
} mpi_requests;

static size_t make(int n, int n_first, void *memory)
{
    (void)n_first;
    mpi_requests *r = memory;
    size_t count = (size_t)n, each = sizeof *r->request + sizeof *r->status + sizeof *r->index + sizeof *r->receives;
    if (!r)
        return sizeof *r + count * each;
    r->status = (MPI_Status *)(r + 1);
    r->request = (MPI_Request *)(r->status + count);
    r->index = (int *)(r->request + count);
    r->receives = (bool *)(r->index + count);
    for (int k = 0; k < n; k++)
        r->request[k] = MPI_REQUEST_NULL;
    return sizeof *r + count * each;
}

static bool in_place(const oly_payload *p)
{
    return oly_transport_in_host_memory() && p->n_boxes == 1 && p->box[0].loops == 0;
}

static char *bytes_of(const oly_chunk *c)
{
    return c->host ? c->host : (char *)oly_chunk_buffer(c, 0) + c->payload->box[0].offset + c->begin;
}

/* Nothing can be exchanged after a failure. */
static oly_status posted(const char *call, int code)
{
    if (code == MPI_SUCCESS)
        return OLY_OK;
    if (!oly_transport_tries)
        oly_world_break(OLY_MPI);
    return oly_mpi_failed(call, code);
}

static oly_status post_send(void *requests, int k, const oly_chunk *c)
{
    mpi_requests *r = requests;
    r->receives[k] = false;
    return posted("MPI_Isend", MPI_Isend(bytes_of(c), c->room, MPI_BYTE, c->payload->peer, c->tag, oly_world_comm(),
                                         &r->request[k]));
}

static oly_status post_receive(void *requests, int k, const oly_chunk *c)
{
    mpi_requests *r = requests;
    r->receives[k] = true;
    return posted("MPI_Irecv", MPI_Irecv(bytes_of(c), c->room, MPI_BYTE, c->payload->peer, c->tag, oly_world_comm(),
                                         &r->request[k]));
}

static oly_status test(void *requests, int n, int *n_done, oly_completion *done)
{
    mpi_requests *r = requests;
    int code = MPI_Testsome(n, r->request, n_done, r->index, r->status);
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS)
        return oly_mpi_failed("MPI_Testsome", code);
    if (*n_done == MPI_UNDEFINED)
        *n_done = 0;
    for (int i = 0; i < *n_done; i++) {
        int k = r->index[i];
        done[i] = (oly_completion){.request = k};
        if (code != MPI_SUCCESS && r->status[i].MPI_ERROR != MPI_SUCCESS)
            return oly_mpi_failed(r->receives[k] ? "receiving a message of an exchange"
                                                 : "sending a message of an exchange",
                                  r->status[i].MPI_ERROR);
        if (r->receives[k])
            MPI_Get_count(&r->status[i], MPI_BYTE, &done[i].bytes);
    }
    return OLY_OK;
}

static bool give_up(void *requests, int k)
{
    mpi_requests *r = requests;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized || r->request[k] == MPI_REQUEST_NULL)
        return false;
    if (r->receives[k])
        MPI_Cancel(&r->request[k]);
    MPI_Request_free(&r->request[k]);
    return true;
}

static int stray(void *bytes)
{
    MPI_Status status;
    MPI_Message message;
    int found = 0;
    MPI_Improbe(MPI_ANY_SOURCE, OLY_TAG_TICKET, oly_world_comm(), &found, &message, &status);
    if (!found)
        return -1;
    MPI_Mrecv(bytes, OLY_FIRST_MESSAGE_BYTES, MPI_BYTE, &message, &status);
    return status.MPI_SOURCE;
}

const oly_transport oly_transport_mpi = {.name = "mpi",
                                         .small_bytes = OLY_MOST_SMALL_BYTES,
                                         .make = make,
                                         .in_place = in_place,
                                         .pack = oly_host_pack,
                                         .unpack = oly_host_unpack,
                                         .send = post_send,
                                         .receive = post_receive,
                                         .test = test,
                                         .give_up = give_up,
                                         .stray = stray};
