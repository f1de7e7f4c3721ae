/* What the files of collectives/ share: the communicator and the way to wait. Nobody else includes it. */
#ifndef OLY_COLLECTIVES_WORLD_H
#define OLY_COLLECTIVES_WORLD_H
#include "communicator.h"
#include <mpi.h>

/* The first message of an exchange, which begins with a ticket, travels with one tag, so that MPI keeps their
 * order between two ranks; the payloads of big ones with a tag of their own, see oly_world_payload_tag. */
enum { OLY_TAG_TICKET = 0, OLY_TAG_PAYLOAD = 1, OLY_PAYLOAD_TAGS = 16384 };
/* The longest first message. A longer payload goes apart and need not be packed: between two ranks of a node 16
 * KiB take 1.1 times as long as MPI_Sendrecv apart, 1.9 times packed; 8 KiB take the same either way. */
enum { OLY_FIRST_MESSAGE_BYTES = (8 << 10) + sizeof(oly_ticket) };

/* Duplicate of the world's communicator; MPI_COMM_NULL in a job of one. Errors are returned. */
MPI_Comm oly_world_comm(void);
/* Tag for the next big payload to or from a rank. Both sides count, and as they start their exchanges in the
 * same order they agree; a payload thus finds its receive even when exchanges in flight are finished in another
 * order. */
int oly_world_payload_tag(int peer, bool receiving);
/* A wait has failed: what is in flight will stay there, so that MPI can no longer be ended in peace. */
void oly_world_break(void);
/* OLY_MPI with the name of the call and MPI's text for the code. */
oly_status oly_mpi_failed(const char *call, int code);

/* -- waiting (wait.c)
 * -------------------------------------------------------------------------------------------- oly_wait w =
 * {0}; while (not there yet) if (!oly_wait_more(&w)) too late; */
typedef struct oly_wait {
    int polls;
    bool yielding;
    int64_t began; /* ns; 0 until the first look at the clock */
} oly_wait;

/* Called after each fruitless poll: spins for a moment, then gives the core away each time. False once
 * oly_option.timeout seconds have passed. */
bool oly_wait_more(oly_wait *w);
/* More ranks than cores on this node: then there is no point in spinning. */
void oly_wait_set_crowded(bool crowded);
#endif
