/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is where, as the coordinator has divided the processes into nodes; and what serves MPI's start on a node. Used by olymeet. */
#ifndef OLYMEET_PLAN_H
#define OLYMEET_PLAN_H
#include "wire.h"
#include <stdbool.h>
#include <stddef.h>

enum { NODE_NAME = 300, JOB_NAME = 64 };
typedef struct plan {
    char job[JOB_NAME];
    int n, n_nodes, me;
    char (*name)[NODE_NAME]; /* owned; by node */
    int *node;               /* owned; by process */
} plan;

bool plan_read(plan *p, oly_read *fields, int me); /* false: malformed, or no memory */
int plan_leader(const plan *p, int node);          /* its first process */
int plan_node_rank(const plan *p, int process);    /* of those of its node */
int plan_node_ranks(const plan *p, int process);

/* -- Open MPI: a PMIx server for the processes of this node (host_pmix.c; host_none.c where the library is missing) ---------- */
/* Starts it. Whatever it sends to the coordinator, the environments of the ranks first, comes from host_take. False: `why`. */
bool host_start(const plan *p, char *why, size_t size);
int host_wake(void);                                  /* readable when there is something to take; -1: no server here */
bool host_take(oly_wire *message);                    /* false: nothing more */
void host_hear(oly_wire_kind kind, oly_read *fields); /* FENCE, FETCH, FETCHED */
void host_stop(bool clean);                           /* false: the job was ended, and has left files */

/* -- MPICH: PMI-1 for the process of this olymeet (host_pmi.c) --------------------------------------------------------------- */
void pmi_start(const plan *p, int socket);
bool pmi_move(oly_wire *message);                    /* reads lines; true: a message for the coordinator */
void pmi_hear(oly_wire_kind kind, oly_read *fields); /* GET, BARRIER */
#endif
