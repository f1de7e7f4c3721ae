/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes over fields in blocks: what a loop's kernel can be made of, what some steps compute around a tile, and how many steps a launch takes in
 * which tiles. Plain data of the host. Private to runtime/run/cuda; launches are blocked_fields.c's. */
#ifndef OLY_RUN_CUDA_BLOCKED_PLAN_H
#define OLY_RUN_CUDA_BLOCKED_PLAN_H
#include "cuda/field_text.h"
#include "run/cuda/blocked_fields.h"

enum { OLY_BLOCKED_LOADS = 1536, OLY_BLOCKED_TAPS = 48 };
enum { OLY_BLOCKED_LARGEST = 1 << 30 }; /* coordinates and offsets */

/* The body of the loop. */
typedef struct oly_blocked_body {
    const oly_tiling_form *form;
    int shift; /* from dimensions of the grid to slab, row, column */
    int processors, sharing,
        shared;        /* of the device; blocks that share one; bytes of shared memory that a block takes */
    int64_t extent[3]; /* of the part of the grid */
    oly_field_body of;
    oly_field_stage stages[OLY_FIELD_STAGES];
    oly_tiling_ref reads[OLY_FIELD_STAGES][OLY_FIELD_READS];
    int n_pieces, n_loads, n_taps, n_code;
    int n_copies; /* fields that are copied to shared memory first, each a stage after the form's */
    int copy[OLY_FIELD_STAGES];
    int16_t zero;
    uint8_t dtypes[OLY_FIELD_GLOBALS];
    oly_field_piece pieces[OLY_FIELD_PIECES];
    const oly_tiling_piece *boxes[OLY_FIELD_PIECES];
    oly_field_load loads[OLY_BLOCKED_LOADS];
    oly_cuda_taps taps[OLY_BLOCKED_TAPS];
} oly_blocked_body;

/* [lo, hi]: around a tile. */
typedef struct oly_blocked_extent {
    bool any;
    int lo[3], hi[3];
} oly_blocked_extent;

/* Values: globals j are the fields before, n_fields + f fixed ones, n_fields + n_fixed + j the fields after. */
typedef struct oly_blocked_steps {
    int n_instances, n_buffers;
    oly_field_instance instance[OLY_FIELD_INSTANCES];
    oly_blocked_extent need[OLY_FIELD_INSTANCES];
    oly_blocked_extent field[OLY_FIELD_GLOBALS]; /* what is read of the fields before, around what is written */
    int end[OLY_FIELD_GLOBALS]; /* what the fields are after the steps: field j before them, or ~instance */
    int from[3], to[3];         /* of all that is in buffers */
} oly_blocked_steps;

/* The device, and a part of the grid of these extents; false: there can be no kernel. */
bool oly_blocked_make_body(oly_blocked_body *b, const oly_cuda_launcher *l, const oly_tiling_form *form,
                           const int64_t *extents);
/* Bytes of an element of a buffer. */
int oly_blocked_element_bytes(const oly_blocked_body *b);

void oly_blocked_widen(oly_blocked_extent *e, const oly_blocked_extent *at, const int32_t *shift);
/* wanted: the fields that are written after the steps. False: it cannot be done so. */
bool oly_blocked_unroll(const oly_blocked_body *b, int steps, const bool *wanted, oly_blocked_steps *u);
/* Leaves out what nobody needs: numbers of instances change. */
void oly_blocked_drop_unneeded(const oly_blocked_body *b, oly_blocked_steps *u);

/* The tile of these steps in such a window, the extents of buffers; false: there is none, the window would be all margin or too large. */
bool oly_blocked_tile(const oly_blocked_body *b, const oly_blocked_steps *u, const int window[3], int tile[3]);
/* Most steps of a launch, of a pass of `steps`, and its window; 0: none can be computed so. Launches of a pass have the same number of steps,
 * or one less. */
int oly_blocked_best_steps(const oly_blocked_body *b, int steps, oly_blocked_steps *u, int window[3]);
#endif
