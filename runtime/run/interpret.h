/* SPDX-License-Identifier: BSD-3-Clause */
/* The interpreter: passes each step of a plan to the executor and the exchanges. Private to runtime/run. */
#ifndef OLY_RUN_INTERPRET_H
#define OLY_RUN_INTERPRET_H
#include "run/execute.h"
#include <pthread.h>

typedef struct oly_run {
    oly_job job; /* first member */
    struct oly_run *next;
    oly_program *program;
    const oly_plan *plan;
    void **base;        /* by oly_cell */
    oly_buffer **owner; /* the same; of slots with a buffer of their own */
    oly_buffer **used;  /* [n_used] every buffer of this run, once for each slot and for scratch */
    int n_used;
    bool *apart;        /* [held->n] of the plan: values of which each device has its own in this run (held_once.h) */
    uint64_t number;    /* of this run among all of this process */
    oly_buffer **tiles; /* [oly_workers_slots()] see tile_memory.h */
    oly_buffer *tile;   /* reserved; one of `used` */
    size_t tile_bytes;
    void *
        host_tile; /* where kernels of the host cannot use the devices' memory: for tiles, during a stencil loop; else NULL */
    pthread_mutex_t turn;
    oly_ticket ticket;
    oly_together together;
    pthread_t thread;                /* the interpreting thread, while exchanges are pending */
    oly_status advance;              /* the status of advancing them between steps */
    int64_t submitted;               /* ticks; 0: not timed */
    int not_shown;                   /* runs of the program between the last that is shown and this one */
    int label;                       /* of the step that is running, if its parts are to be shown; else 0 */
    int64_t execution;               /* of that step: a number that no other execution has */
    struct oly_base_copy *base_copy; /* device_order.c's; NULL: none since `base` has changed */
    oly_site site;
    _Atomic int worked;    /* an oly_status: of work that devices have computed late */
    bool may_stay_pending; /* the plan's work, when the run ends (device/pending.h) */
    bool failed;           /* a check has failed: loops end, and the host's functions are not called any more */
} oly_run;

void oly_interpret(oly_job *job);
/* Steps [first, first + n) of a block, one by one. */
oly_status oly_run_steps(oly_run *r, const oly_block *b, int first, int n);
/* After an iteration of a loop: carries change their buffers. */
void oly_turn_buffers(oly_run *r, const oly_step *loop);
/* Sets the owners of the slots that loops bind to those after the run, so that results can be handed out before it
 * starts. */
void oly_settle_loops(oly_run *r);
/* oly_run_fail, attributed to the call issued at `site`. */
void oly_run_fail_in(oly_status status, oly_site site);
oly_buffer *oly_run_copy_of(void *run, int k); /* input k on one of the devices */
#endif
