/* What the steps of reductions are made with: between reduction_steps.c, reduction_rounds.c and lazy_reduction.c, and private to these. */
#ifndef OLY_PLAN_REDUCE_REDUCTION_ROOM_H
#define OLY_PLAN_REDUCE_REDUCTION_ROOM_H
#include "plan/reduce/reduction_pattern.h"

/* A value being folded. */
typedef struct folded {
    const oly_folded *of;
    const oly_reduction_part *part; /* of the stage at hand */
    const oly_reduction_pattern *pattern;
    int64_t largest;   /* bytes of the first device's partial, which is the largest: the same on every process */
    int first, staged; /* number of its first group, and of its first staged partial */
    int from, read; /* the slot of the partials: in the first stage another one, maybe; and where those here are read */
    const int64_t *counts; /* [n_devices] elements on a device */
    int at[2];             /* the message of its part that is next: of those received, of those sent */
} folded;

enum { TEXTS = 8, EXCHANGES = 16 };

/* An exchange of one value, where all groups have as many elements: another value's of that kind differs in the slots only. */
typedef struct made_exchange {
    const oly_reduction_part *part;
    bool results;
    int64_t count, element;
    const oly_exchange *exchange; /* a step's */
    int slots[2];                 /* that of its partials or its results, and that of staged partials */
} made_exchange;

/* Memory that one step after the other uses while it is made. */
typedef struct oly_reduction_room {
    int64_t *counts,
        *offsets; /* elements that each group folds in this round; of staged partials, bytes from element 0 on */
    oly_message *messages;
    oly_piece *pieces;
    int *same;
    int64_t *of_devices;                                         /* of all values: folded.counts */
    int n_counts, n_offsets, n_messages, n_pieces, n_of_devices; /* room for so many */
    folded values[OLY_REDUCTION_TOGETHER];
    struct { /* what steps say of themselves: the same over and over */
        oly_combiner combiner;
        int members, n_values, levels;
        const char *text;
    } said[TEXTS];
    int n_said;
    made_exchange made[EXCHANGES];
    int n_made;
} oly_reduction_room;

/* One round of one stage of some values; what all of them send goes in one exchange. */
typedef struct folder {
    oly_planner *p;
    oly_reduction_room *room;
    int n;
    folded *values[OLY_REDUCTION_TOGETHER];
    int64_t element; /* bytes */
    int round, n_rounds;
    bool once;   /* what is listed is not looked at again */
    int staging; /* slot of device 0 for partials of other processes */
    oly_reduction_work *groups;
    int *slots,
        n_read; /* that are used: first those that are read, then as many that are written as there are values */
} folder;

/* -- reduction_steps.c -- */
/* Puts down the values, in p->fold_room. *most: stages of the value that has most. */
oly_status oly_reduction_values(folder *f, oly_planner *p, const oly_axis_list *axes, int n_items,
                                const oly_folded *items, int *most);
/* The values whose stage this is, `left` before the end. */
void oly_reduction_stage_of(folder *f, int n_items, const oly_folded *items, int left);
/* Works out where everything lies that a round of a stage folds: all groups of its values, with room for what others send. */
oly_status oly_reduction_place(folder *f, int *n_groups, int *n_staged);
/* And lists them: f->groups, f->slots. */
oly_status oly_reduction_fill(folder *f, int n_groups, int n_staged);
/* What travels: partials, or folded slices. NULL: nothing. */
oly_status oly_reduction_exchange(const folder *f, bool results, oly_exchange **exchange);
/* What a step says of itself. */
const char *oly_reduction_detail(const folder *f, oly_combiner combiner, int members, int levels);
/* Adds to what a step says of itself. *members: the most of any value. */
void oly_reduction_describe(const folder *f, oly_step *step, int *members);
/* Where the last group of positions is shorter, a partial may be folded by several groups of a process, which must not find a result
 * there: then the stage reads copies. The same on every process. */
bool oly_reduction_reads_copies(const folder *f, const folded *v);
/* The copies of a value's partials to another slot: how many, at most as many as there are devices. */
int oly_reduction_copies(const folder *f, const folded *v, int slot, oly_copy_work *copies);

/* -- reduction_rounds.c -- */
/* Into how many parts of the elements a stage goes, so that others' partials have room: the same on every process. */
int oly_reduction_rounds(const folder *f);
/* The same, at most, without looking at processes. */
int oly_reduction_rounds_at_most(const folder *f);

/* -- lazy_reduction.c -- */
/* Are reductions over these axes listed when they first run? */
bool oly_folds_later(const oly_planner *p, const oly_axis_list *axes);
/* Is so little reduced, in so many stages, that one thread may fold it? The same on every process. */
bool oly_reduction_is_small(const folder *f, int n_items, int stages);
/* The last `stages` of oly_add_reductions, in one step. */
oly_status oly_reduction_in_levels(oly_planner *p, oly_block *b, const oly_axis_list *axes, int n_items,
                                   const oly_folded *items, int stages);
#endif
