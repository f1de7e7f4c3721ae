/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that several processes make together: which processes, and what must be equal on all of them. Private to
 * runtime/run, except for oly_together_note. */
#ifndef OLY_RUN_TOGETHER_H
#define OLY_RUN_TOGETHER_H
#include "communicator.h"
#include "device/memory.h"
#include "plan/plan.h"

/* The identity of an array among processes: the call that made it. */
typedef struct oly_identity {
    oly_process_set *set; /* that made the call; NULL: this process alone, so others do not know it */
    uint64_t number;      /* of the call in the set, and of the result */
    uint64_t value;       /* number of the value on this process */
    /* by which processes without a part of it know it: the calls that led to it (array/origin.h); 0: none */
    uint64_t origin;
    uint64_t lineage; /* of own data: the same, but by order instead of source lines (introduction.h) */
} oly_identity;

/* Bit of an origin: each process has contributed its own parts. */
enum { OLY_ORIGIN_OWN = 1 };
enum { OLY_MOST_SHARED_SETS = 4 };

/* The identity of a run. */
typedef struct oly_together {
    oly_process_set *set; /* NULL: of this process alone */
    uint64_t number;
    uint64_t event; /* hash of what must be equal, as far as it is known before the call runs */
    oly_called called;
    uint64_t *copies; /* [inputs] value number of uncommitted inputs, whose contents must be equal; 0: another input */
    bool any_copy;
    /* other sets that know operands, whose members all take part */
    int n_shared;
    uint64_t shared_event[OLY_MOST_SHARED_SETS];
    oly_shared_set shared[OLY_MOST_SHARED_SETS];
    oly_introduction introduction; /* of operands made of own data, to members that hold no part of them */
    oly_acquaintance acquaintance;
} oly_together;

/* The processes that own devices of the plan's meshes; NULL if this one owns none, or all. */
oly_status oly_together_set(const oly_plan *plan, oly_process_set **set);
/* When a call is issued. donated: as oly_program_run's. */
void oly_together_issue(oly_together *t, const oly_plan *plan, const oly_identity *inputs, const int *donated,
                        oly_site site);
/* When it runs; copy: of input k, on a device of this process. fails OLY_DIVERGED. */
oly_status oly_together_count(oly_together *t, const oly_plan *plan, oly_buffer *(*copy)(void *context, int input),
                              void *context, oly_ticket *ticket);
/* Hash of these bytes of a buffer that holds this value; cached with the buffer, so that large ones are read once. The
 * size is the value's: the buffer may already be assigned to a later call, which requested another size. */
oly_status oly_contents_of(oly_buffer *b, uint64_t value, size_t bytes, uint64_t *contents);

/* A call without a plan, which makes an array on the mesh of per-process data: queued like a run. *made: its
 * identity. */
oly_status oly_together_note(oly_mesh mesh, uint64_t event, oly_site site, oly_identity *made);
/* Is the array known to have been made alike by all processes that know it? */
static inline bool oly_together_verified(const oly_identity *x)
{
    return oly_process_set_is_verified(x->set, x->number >> 16);
}
/* The identity of the array among all processes; 0: not all know it. */
uint64_t oly_together_digest_of_all(const oly_identity *x);
/* The same among the processes of the mesh. */
uint64_t oly_together_digest_in(oly_mesh mesh, const oly_identity *x);
/* After all queued calls: a meeting of the processes of the mesh, if there are several. */
oly_status oly_together_meet(oly_mesh mesh, const char *call);
void oly_together_forget(void); /* at finalize */
#endif
