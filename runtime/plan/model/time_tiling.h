/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops whose bodies compute fields over one grid from nearby elements, but not as one linear form: several fields,
 * masks, padded or joined borders, products of fields. Shared by time_tiling_form.c, which recognises the body;
 * time_tiling_group.c, which finds what machine code computes together; time_tiling_pass.c, which finds what several steps
 * need; time_tiling.c, which plans; time_tiling_overlap.c, which finds what can be computed before messages arrive; and
 * runtime/run/time_tiling_run.c, which runs the loop.
 *
 * All coordinates are those of the grid, which contains all carries. Staggered fields, like other values of other
 * extents (the inner part of a field), have a position in it, their `align`. All fields are cut where the grid is. In
 * a periodic dimension coordinates continue beyond its ends. */
#ifndef OLY_PLAN_MODEL_TIME_TILING_H
#define OLY_PLAN_MODEL_TIME_TILING_H
#include "plan/model/steps.h"

#define OLY_TILING_RANK 4

typedef int64_t oly_tiling_point[OLY_TILING_RANK];

typedef enum oly_tiling_kind {
    OLY_TILING_FIELD,   /* a carry, before the step; of an instance, before the pass */
    OLY_TILING_STAGE,   /* a value computed in the step (number in the pass) */
    OLY_TILING_FIXED,   /* a value from outside the loop */
    OLY_TILING_COUNTER, /* the loop's counter */
} oly_tiling_kind;

typedef struct oly_tiling_ref {
    oly_tiling_kind kind;
    int index;
} oly_tiling_ref;

/* Element x of the result reads element x + shift. */
typedef struct oly_tiling_load {
    oly_tiling_ref of;
    int64_t shift[OLY_TILING_RANK];
} oly_tiling_load;

/* A part of a stage that one program computes. */
typedef struct oly_tiling_piece {
    int64_t lo[OLY_TILING_RANK], hi[OLY_TILING_RANK];
    oly_tile_program program;
    const oly_tiling_load *loads; /* [program.n_loads] */
    int n_taps;                   /* > 0: a weighted sum of loads, run by the stencil kernels */
    const int *tap;               /* [n_taps] numbers of loads */
    const double *coefficient;
    /* What machine code computes instead, with the same bits: taps as instructions, values of other stages computed here
     * again. No instructions: none. */
    oly_tile_program machine;
    const oly_tiling_load *machine_loads; /* [machine.n_loads] */
} oly_tiling_piece;

typedef struct oly_tiling_stage {
    const oly_node *node;
    int64_t align[OLY_TILING_RANK]; /* of its element 0 */
    bool inlined;                   /* machine code of other stages computes it: not needed for itself */
    int n_pieces;
    oly_tiling_piece *pieces;
} oly_tiling_stage;

/* The same part of all stages of a group. */
typedef struct oly_tiling_group_piece {
    oly_tile_program program;
    const oly_tiling_load *loads; /* [program.n_loads] */
} oly_tiling_group_piece;

/* Stages that machine code of CPUs computes together (time_tiling_group.c): alike in pieces and place, needed over the same elements. */
typedef struct oly_tiling_group {
    int first, n; /* stages */
    int n_stored; /* of them other groups read, or they are results; none: other groups compute what they need of it */
    const int *stored; /* [n_stored] stages, the stores of the programs */
    int n_pieces;
    oly_tiling_group_piece *pieces;
} oly_tiling_group;

/* A value from outside the loop: for element x of the grid, x + low to x + high is read in each dimension. */
typedef struct oly_tiling_fixed {
    const oly_node *node;
    int dim[OLY_MAX_RANK]; /* the grid dimension of each of its dimensions; -1: only element `at` is read */
    int64_t at[OLY_MAX_RANK];
    int64_t low[OLY_TILING_RANK], high[OLY_TILING_RANK];
} oly_tiling_fixed;

typedef struct oly_tiling_form {
    int rank, n_fields, n_stages, n_fixed;
    bool unrolled; /* one of its steps stands for several of the program's */
    bool region;   /* it is no loop of the program: rounds as its operations do one by one */
    int64_t shape[OLY_TILING_RANK];
    bool wraps[OLY_TILING_RANK];
    const oly_node **field;   /* the body's inputs */
    oly_tiling_point *align;  /* [n_fields] of their elements 0 */
    oly_tiling_stage *stages; /* in an order in which operands precede their users */
    int n_groups;             /* 0: none; else each stage is in one */
    const oly_tiling_group *groups;
    int *group_of; /* [n_stages] ascending */
    oly_tiling_fixed *fixed;
    oly_tiling_ref *out; /* [n_fields]: FIELD or STAGE */
} oly_tiling_form;

/* A stage in one step of a pass. It is computed on the result's tile extended by lo before it and hi after it. */
typedef struct oly_tiling_instance {
    int stage, step;
    bool needed;
    int64_t lo[OLY_TILING_RANK], hi[OLY_TILING_RANK];
    int target;                   /* the result that it is; -1: none, it is written to a buffer */
    int buffer;                   /* of the tile */
    int group_buffer;             /* where groups are computed; -1: it has none */
    const oly_tiling_ref *fields; /* what the carries are before its step */
} oly_tiling_instance;

/* What is read of a field around the elements written: i + [lo, hi], for written elements i in [from, to). */
typedef struct oly_tiling_need {
    int64_t lo[OLY_TILING_RANK], hi[OLY_TILING_RANK], from[OLY_TILING_RANK], to[OLY_TILING_RANK];
} oly_tiling_need;

typedef struct oly_tiling_pass {
    int steps, n_buffers, n_group_buffers;
    oly_tiling_instance *instance;                    /* [steps * n_stages] */
    const oly_tiling_ref *result;                     /* [n_fields] */
    int64_t lo[OLY_TILING_RANK], hi[OLY_TILING_RANK]; /* of all instances */
    int64_t field_lo[OLY_TILING_RANK], field_hi[OLY_TILING_RANK];
    int *n_needs; /* [n_fields] */
    oly_tiling_need **needs;
    oly_tiling_point *fixed_lo, *fixed_hi; /* [n_fixed] what is read of values from outside, around what is written */
} oly_tiling_pass;

/* Where a value from outside the loop is on a device. */
typedef struct oly_tiling_place {
    int base; /* -1: none of it is read */
    int64_t offset, stride[OLY_TILING_RANK], origin[OLY_TILING_RANK];
} oly_tiling_place;

typedef struct oly_tiling_device {
    bool here;                  /* it has a part of the grid */
    oly_box block;              /* of the grid: what it writes */
    const oly_box *own, *field; /* [n_fields] blocks of the fields; boxes of the slots with margins */
    int64_t early_lo[OLY_TILING_RANK],
        early_hi[OLY_TILING_RANK]; /* what can be written before margins arrive in messages */
    const oly_tiling_place *fixed; /* [n_fixed] */
} oly_tiling_device;

/* The plan of such a loop, in addition to that of any stencil (steps.h). */
typedef struct oly_tiling {
    oly_tiling_form form;
    oly_tiling_pass first, pass;      /* `first` has the remaining steps when the count is not a multiple */
    int64_t lower;                    /* the counter's first value */
    int64_t tile[OLY_TILING_RANK];    /* elements written at a time */
    bool borders;                     /* tiles end where the early part ends */
    double seconds;                   /* predicted for a pass on one device */
    const int *first_slot, *out_slot; /* [n_fields] */
    const int *field_slot[2];
    const oly_tiling_device *device; /* [n_devices] */
} oly_tiling;

/* time_tiling_overlap.c: the number of a device's tiles along a dimension; the elements that tile `number` writes;
 * and whether these can be computed before margins arrive in messages. */
int64_t oly_tiling_parts(const oly_tiling *m, const oly_tiling_device *v, int d);
void oly_tiling_part(const oly_tiling *m, const oly_tiling_device *v, int d, int64_t number, int64_t *lo, int64_t *hi);
bool oly_tiling_is_early(const oly_tiling *m, const oly_tiling_device *v, const int64_t *lo, const int64_t *hi);

#endif
