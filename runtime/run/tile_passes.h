/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes of stencil loops over tiles: shared by stencil_run.c and time_tiling_run.c. A pass computes several steps of the
 * loop, tile by tile; the tiles of all devices are distributed over the threads. Between passes margins are exchanged, and
 * where those come in messages, a pass begins with the tiles that read none of them:
 *
 *      margins sent, early tiles, wait, late tiles; margins of what they computed sent, early tiles, ...
 *
 * Private to runtime/run. */
#ifndef OLY_RUN_TILE_PASSES_H
#define OLY_RUN_TILE_PASSES_H
#include "run/device_order.h"
#include "run/interpret.h"

typedef enum oly_tile_part { OLY_TILES_ALL, OLY_TILES_EARLY, OLY_TILES_LATE } oly_tile_part;

/* Executors that do not divide a device's block into tiles compute a part of it as a few boxes: all of the block; what no message
 * brings margins for, [early_lo, early_hi); or what is around that. Returns how many are not empty, at most OLY_PART_BOXES. */
#define OLY_PART_RANK  4
#define OLY_PART_BOXES (2 * OLY_PART_RANK)
typedef struct oly_part_box {
    int64_t lo[OLY_PART_RANK], hi[OLY_PART_RANK];
} oly_part_box;
typedef struct oly_part_block {
    int rank;
    int64_t lo[OLY_PART_RANK], hi[OLY_PART_RANK], early_lo[OLY_PART_RANK], early_hi[OLY_PART_RANK];
} oly_part_block;
int oly_part_boxes(oly_tile_part part, const oly_part_block *block, oly_part_box *boxes);

typedef struct oly_passes oly_passes;
typedef struct oly_pass_kind {
    /* Sets up the pass that begins at step `at` of the loop and writes the fields numbered `next` (0 or 1), or the
     * results if it is the last one (p->last, set here). Returns its steps. */
    int (*begin)(oly_passes *p, int64_t at, int next);
    int (*tiles_on)(const oly_passes *p, int device);        /* an upper bound for those of p->part */
    oly_device_set (*uses)(const oly_passes *p, int device); /* the devices whose memory its tiles use */
    void (*cells)(const oly_passes *p, int device, oly_cells *to);
    /* Computes tile i of a device in memory of oly_tile_begin; false if it is not in p->part. */
    bool (*tile)(const oly_passes *p, int device, int i);
} oly_pass_kind;

/* First member of a kind's state of a loop. */
struct oly_passes {
    const oly_pass_kind *kind;
    size_t bytes; /* of the kind's structure: where devices compute late, each gets a copy */
    oly_run *run;
    void *const *base; /* of the run, when the pass began */
    const oly_step *step;
    bool last;
    oly_tile_part part; /* which tiles are computed now */
    bool under_way;     /* there are messages that need calls of MPI to progress */
};

/* All passes of the step. */
oly_status oly_run_passes(oly_passes *p);
#endif
