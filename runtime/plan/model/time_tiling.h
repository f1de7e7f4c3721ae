/* Loops whose bodies compute fields over one grid from elements near by, in other ways than one linear form: several fields, masks,
 * padded or joined borders, products of fields. Between time_tiling_form.c, which finds what the body does, time_tiling_pass.c, which says
 * what many steps at once need, time_tiling.c, which plans, time_tiling_overlap.c, which says what of a pass needs no messages, and
 * runtime/run/march_run.c, which works them.
 *
 * Everything is said in the coordinates of the grid, which holds all carries; those of a staggered grid have extents of their own,
 * as other values have (the inner part of a field), and a place in it, their `align`. All fields are cut where the grid is. Where a
 * dimension goes round, coordinates go on beyond its ends. */
#ifndef OLY_PLAN_MODEL_TIME_TILING_H
#define OLY_PLAN_MODEL_TIME_TILING_H
#include "plan/model/steps.h"

#define OLY_MARCH_RANK 4

typedef int64_t oly_march_point[OLY_MARCH_RANK];

typedef enum oly_march_kind {
    OLY_MARCH_FIELD,   /* a carry, as it is before the step (before the pass, in oly_march_work) */
    OLY_MARCH_STAGE,   /* a value computed in the step (number in the pass) */
    OLY_MARCH_FIXED,   /* a value from outside the loop */
    OLY_MARCH_COUNTER, /* the loop's counter */
} oly_march_kind;

typedef struct oly_march_ref {
    oly_march_kind kind;
    int index;
} oly_march_ref;

/* Element x of the result reads element x + shift. */
typedef struct oly_march_load {
    oly_march_ref of;
    int64_t shift[OLY_MARCH_RANK];
} oly_march_load;

/* A part of a stage that one program computes. */
typedef struct oly_march_piece {
    int64_t lo[OLY_MARCH_RANK], hi[OLY_MARCH_RANK];
    oly_tile_program program;
    const oly_march_load *loads; /* [program.n_loads] */
    int n_taps;                  /* more than 0: it is a sum of loads, each times a number, worked as stencils are */
    const int *tap;              /* [n_taps] loads */
    const double *coefficient;
} oly_march_piece;

typedef struct oly_march_stage {
    const oly_node *node;
    int64_t align[OLY_MARCH_RANK]; /* of its element 0 */
    int n_pieces;
    oly_march_piece *pieces;
} oly_march_stage;

/* Along each dimension of the grid it is read from x + low to x + high. */
typedef struct oly_march_fixed {
    const oly_node *node;
    int dim[OLY_MAX_RANK]; /* which dimension of the grid each of its dimensions goes along; -1: element `at` of it */
    int64_t at[OLY_MAX_RANK];
    int64_t low[OLY_MARCH_RANK], high[OLY_MARCH_RANK];
} oly_march_fixed;

typedef struct oly_march_form {
    int rank, n_fields, n_stages, n_fixed;
    bool unrolled; /* its step is several of the program's */
    int64_t shape[OLY_MARCH_RANK];
    bool wraps[OLY_MARCH_RANK];
    const oly_node **field;  /* the body's inputs */
    oly_march_point *align;  /* [n_fields] of their elements 0 */
    oly_march_stage *stages; /* each after those it reads */
    oly_march_fixed *fixed;
    oly_march_ref *out; /* [n_fields]: FIELD or STAGE */
} oly_march_form;

/* A stage in one step of a pass. It is computed over what is written of the result, from lo before it to hi behind it. */
typedef struct oly_march_instance {
    int stage, step;
    bool needed;
    int64_t lo[OLY_MARCH_RANK], hi[OLY_MARCH_RANK];
    int target;                  /* the result that it is; -1: it goes to a buffer of its own */
    int buffer;                  /* of the tile */
    const oly_march_ref *fields; /* what carries are before its step */
} oly_march_instance;

/* What is read of a field round what is written: elements i + [lo, hi], for i of what is written that are in [from, to). */
typedef struct oly_march_need {
    int64_t lo[OLY_MARCH_RANK], hi[OLY_MARCH_RANK], from[OLY_MARCH_RANK], to[OLY_MARCH_RANK];
} oly_march_need;

typedef struct oly_march_pass {
    int steps, n_buffers;
    oly_march_instance *instance;                   /* [steps * n_stages] */
    const oly_march_ref *result;                    /* [n_fields] */
    int64_t lo[OLY_MARCH_RANK], hi[OLY_MARCH_RANK]; /* of all instances */
    int64_t field_lo[OLY_MARCH_RANK], field_hi[OLY_MARCH_RANK];
    int *n_needs; /* [n_fields] */
    oly_march_need **needs;
} oly_march_pass;

/* Where a value from outside lies on a device. */
typedef struct oly_march_place {
    int base; /* -1: nothing of it is read */
    int64_t offset, stride[OLY_MARCH_RANK], origin[OLY_MARCH_RANK];
} oly_march_place;

typedef struct oly_march_device {
    bool here;                                                  /* it has a part of the grid */
    oly_box block;                                              /* of the grid: what it writes */
    const oly_box *own, *field;                                 /* [n_fields] of that; what slots with margins hold */
    int64_t early_lo[OLY_MARCH_RANK], early_hi[OLY_MARCH_RANK]; /* what can be written before messages bring margins */
    const oly_march_place *fixed;                               /* [n_fixed] */
} oly_march_device;

/* The plan of such a loop, beside that of any stencil (steps.h). */
typedef struct oly_march {
    oly_march_form form;
    oly_march_pass first, pass;       /* the first has the steps that are left over */
    int64_t lower;                    /* the counter's first value */
    int64_t tile[OLY_MARCH_RANK];     /* elements that are written at a time */
    bool borders;                     /* tiles end where what can be written early does */
    double seconds;                   /* predicted for a pass on one device */
    const int *first_slot, *out_slot; /* [n_fields] */
    const int *field_slot[2];
    const oly_march_device *device; /* [n_devices] */
} oly_march;

/* time_tiling_overlap.c: the tiles of a device along a dimension; the elements that tile `number` of them writes; and whether one that
 * writes these can be worked before messages bring margins. */
int64_t oly_march_parts(const oly_march *m, const oly_march_device *v, int d);
void oly_march_part(const oly_march *m, const oly_march_device *v, int d, int64_t number, int64_t *lo, int64_t *hi);
bool oly_march_is_early(const oly_march *m, const oly_march_device *v, const int64_t *lo, const int64_t *hi);

#endif
