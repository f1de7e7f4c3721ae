/* SPDX-License-Identifier: BSD-3-Clause */
/* Data used while reduction steps are made. Shared by reduction_steps.c, reduction_rounds.c and lazy_reduction.c;
 * private to these. */
#ifndef OLY_PLAN_REDUCE_REDUCTION_ROOM_H
#define OLY_PLAN_REDUCE_REDUCTION_ROOM_H
#include "plan/reduce/reduction_pattern.h"

/* A value being reduced. */
typedef struct reduced_value {
    const oly_reduction_item *of;
    const oly_reduction_part *part; /* of the current stage */
    const oly_reduction_pattern *pattern;
    int64_t largest;   /* bytes of the first device's partial result, the largest; the same on every process */
    int first, staged; /* numbers of its first group and its first staged partial result */
    int from, read;    /* slot of the partial results, in the first stage possibly another; where those here are read */
    const int64_t *counts; /* [n_devices] elements on a device */
    int at[2];             /* next message of its part: received, sent */
} reduced_value;

enum { TEXTS = 8, EXCHANGES = 16 };

/* An exchange of one value whose groups all have the same number of elements. For another such value only the slots
 * differ. */
typedef struct made_exchange {
    const oly_reduction_part *part;
    bool results;
    int64_t count, element;
    const oly_exchange *exchange; /* owned by a step */
    int slots[2];                 /* of its partial results or its result; of staged partial results */
} made_exchange;

/* Memory reused from step to step. */
typedef struct oly_reduction_room {
    int64_t *counts, *offsets; /* elements of each group in this round; byte offset of each staged partial result */
    oly_message *messages;
    oly_piece *pieces;
    int *same;
    int64_t *of_devices;                                         /* of all values: reduced_value.counts */
    int n_counts, n_offsets, n_messages, n_pieces, n_of_devices; /* capacities */
    reduced_value values[OLY_REDUCTION_TOGETHER];
    struct { /* details of steps: few different ones, so they are shared */
        oly_combiner combiner;
        int members, n_values, levels;
        const char *text;
    } said[TEXTS];
    int n_said;
    made_exchange made[EXCHANGES];
    int n_made;
} oly_reduction_room;

/* One round of one stage of some values. All that they send goes in one exchange. */
typedef struct folder {
    oly_planner *p;
    oly_reduction_room *room;
    int n;
    reduced_value *values[OLY_REDUCTION_TOGETHER];
    int64_t element; /* bytes */
    int round, n_rounds;
    bool once;   /* listed once and then discarded: exchanges are not remembered */
    int staging; /* slot of staged partial results */
    oly_reduction_work *groups;
    int *slots, n_read; /* slots used: those read, then as many written as there are values */
} folder;

/* -- reduction_steps.c -- */
/* Puts the values in p->reduction_room. *most: the largest number of stages. */
oly_status oly_reduction_values(folder *f, oly_planner *p, const oly_axis_list *axes, int n_items,
                                const oly_reduction_item *items, int *most);
/* Selects the values that have a stage `left` before the end. */
void oly_reduction_stage_of(folder *f, int n_items, const oly_reduction_item *items, int left);
/* Computes where everything is that a round of a stage reduces: all groups of its values, with room for staged partial
 * results. */
oly_status oly_reduction_place(folder *f, int *n_groups, int *n_staged);
/* Then lists it: f->groups, f->slots. */
oly_status oly_reduction_fill(folder *f, int n_groups, int n_staged);
/* The exchange of partial results, or of reduced slices. NULL: none. */
oly_status oly_reduction_exchange(const folder *f, bool results, oly_exchange **exchange);
/* The `detail` text of a step. */
const char *oly_reduction_detail(const folder *f, oly_combiner combiner, int members, int levels);
/* Adds a round's figures to a step. *members: the maximum over values. */
void oly_reduction_describe(const folder *f, oly_step *step, int *members);
/* If the last group of positions is shorter, several groups of a process may reduce the same partial result, and one's
 * result must not overwrite it: the stage then reads copies. The same on every process. */
bool oly_reduction_reads_copies(const folder *f, const reduced_value *v);
/* Lists the copies of a value's partial results to another slot. Returns their number, at most that of devices. */
int oly_reduction_copies(const folder *f, const reduced_value *v, int slot, oly_copy_work *copies);

/* -- reduction_rounds.c -- */
/* The number of rounds into which a stage is divided, so that staged partial results fit the limit; the same on every
 * process. */
int oly_reduction_rounds(const folder *f);
/* An upper bound of it that does not examine processes. */
int oly_reduction_rounds_at_most(const folder *f);

/* -- lazy_reduction.c -- */
/* Are reductions over these axes listed when they first run? */
bool oly_reduces_lazily(const oly_planner *p, const oly_axis_list *axes);
/* Are the results of all stages so small that one thread should reduce them? The same on every process. */
bool oly_reduction_is_small(const folder *f, int n_items, int stages);
/* Does the last `stages` stages of oly_add_reductions in one step. */
oly_status oly_reduction_in_levels(oly_planner *p, oly_block *b, const oly_axis_list *axes, int n_items,
                                   const oly_reduction_item *items, int stages);
#endif
