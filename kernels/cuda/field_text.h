/* SPDX-License-Identifier: BSD-3-Clause */
/* Several steps of a loop over fields as one generated kernel: a block computes a tile, stage by stage, with what lies between stages in
 * shared memory. The text depends on the body alone: which stages of which steps are computed on which boxes is data (the schedule), so
 * that one kernel serves all passes. Dimensions are slab, row, column: the last of the grid's. Called by
 * runtime/run/cuda/blocked_fields.c. */
#ifndef OLY_CUDA_FIELD_TEXT_H
#define OLY_CUDA_FIELD_TEXT_H
#include "core/text.h"
#include "cuda/launch.h"

enum {
    OLY_FIELD_GLOBALS = 48,   /* values in memory: fields before and after, fixed ones */
    OLY_FIELD_READS = 20,     /* different values that a stage reads */
    OLY_FIELD_STAGES = 24,    /* of a body */
    OLY_FIELD_PIECES = 96,    /* of a body */
    OLY_FIELD_INSTANCES = 96, /* stages of steps */
};

/* -- the body --------------------------------------------------------------------------------------------------------------------- */

/* Element x of the result reads element x + shift of a value. */
typedef struct oly_field_load {
    int32_t read; /* its number among those that the stage reads; -1: the loop's counter, an int32 */
    int32_t shift[3];
} oly_field_load;

typedef struct oly_field_piece {
    oly_tile_program program;
    const oly_field_load *loads; /* [program.n_loads] */
} oly_field_piece;

typedef struct oly_field_stage {
    int n_reads, n_pieces;
    bool computed; /* false: no instance has it */
    bool copied;   /* it is what it reads: wherever that is, and once */
    bool fixed
        [OLY_FIELD_READS]; /* all of what is read is there, in any strides; else rows are dense and reads may have to be left out */
    int32_t first;              /* dimension of the kernel that is the grid's first */
    int32_t align[3], whole[3]; /* of its element 0; extents, for iotas */
    const oly_field_piece *pieces;
} oly_field_stage;

typedef struct oly_field_body {
    int n_stages;
    const oly_field_stage *stages;
} oly_field_body;

/* -- the schedule: structs of the kernel's text, too -------------------------------------------------------------------------------- */

/* Where a value is: [lo, hi) are there; element `origin` is at its address. */
typedef struct oly_field_place {
    int32_t origin[3], stride[3], lo[3], hi[3];
} oly_field_place;

/* A stage of a step: computed on a tile extended by [lo, hi]. */
typedef struct oly_field_instance {
    int32_t stage, step;
    int32_t lo[3], hi[3];
    int32_t buffer, target;        /* in shared memory; the global value that it is: -1: none */
    int32_t read[OLY_FIELD_READS]; /* globals; ~k: instance k */
} oly_field_instance;

typedef struct oly_field_schedule {
    int32_t n_instances, n_buffers, buffer_bytes;
    int32_t lo[3], hi[3], tile[3], tiles[3]; /* the tiles */
    int32_t from[3], pitch[3];               /* of buffers: their first element, from the tile's; strides */
    int32_t period[3];                       /* 0: not periodic */
    oly_field_place global[OLY_FIELD_GLOBALS];
    int32_t piece[OLY_FIELD_PIECES][6];               /* their boxes, lo and hi, in the order of stages */
    oly_field_instance instance[OLY_FIELD_INSTANCES]; /* [n_instances] */
} oly_field_schedule;

/* bases: of the globals. counter: at the first step. *launched: false where there is no kernel (yet). */
oly_status oly_cuda_fields(const oly_cuda_launcher *l, const oly_field_body *body, const oly_field_schedule *schedule,
                           char *const *bases, int n_bases, int64_t counter, bool *launched);

/* -- shared with field_strips.c ------------------------------------------------------------------------------------------------------ */

/* What the texts of both begin with: oly_words, and the struct of an oly_field_place. */
extern const char oly_field_prelude[];
/* Bytes that tell bodies, and pieces, with different texts apart; to NULL: only how many they are. */
size_t oly_field_write_key(const oly_field_body *body, char *to);
size_t oly_field_put_piece(char *to, size_t at, const oly_field_piece *piece);
/* The instructions, whose operands and results are variables r<number>: now[] is the number of each register, next the first free one. Iotas read
 * x0, x1, x2 and turn. The number of the result. */
int oly_field_write_instructions(oly_text *t, const oly_field_stage *s, const oly_tile_program *p, int *now, int next);
/* The least and the most that is read of a value along a dimension; false: it is not read. */
bool oly_field_reach(const oly_field_piece *piece, int read, int d, int32_t *least, int32_t *most);
/* Operations of a launch. */
double oly_field_work(const oly_field_body *body, const oly_field_schedule *s);
#endif
