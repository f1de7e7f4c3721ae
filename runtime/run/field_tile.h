/* SPDX-License-Identifier: BSD-3-Clause */
/* A tile of a pass over fields (plan/model/time_tiling.h): all steps of the pass, stage by stage, for the elements that the tile writes.
 * The walk finds which box of each piece of a stage is needed, and where its operands are; what computes a box is the caller's:
 * kernels of the CPU (time_tiling_run.c), or launches on a GPU (cuda/fields.c). Private to runtime/run. */
#ifndef OLY_RUN_FIELD_TILE_H
#define OLY_RUN_FIELD_TILE_H
#include "plan/model/time_tiling.h"
#include "run/tile_passes.h"

/* A pass under way. */
typedef struct oly_field_sweep {
    oly_passes passes; /* first member */
    const oly_tiling *tiling;
    const oly_tiling_pass *pass;
    int64_t counter;      /* at the first step */
    const int *from, *to; /* [n_fields] slots */
    int64_t window[OLY_TILING_RANK];
    size_t buffer_bytes;
    bool machine; /* programs of machine code (time_tiling_fuse.c) are run, whether there is code yet or not */
    bool groups;  /* those of groups of stages (time_tiling_group.c) */
} oly_field_sweep;

typedef struct oly_field_tile {
    const oly_field_sweep *sweep;
    const oly_tiling_device *device;
    int number; /* of the device */
    void *const *base;
    bool machine, groups; /* as the sweep's */
    char *memory;         /* of the pass's buffers, each of buffer_bytes, which hold a box of extents `window` */
    size_t buffer_bytes;
    int64_t window[OLY_TILING_RANK];
    int64_t lo[OLY_TILING_RANK], hi[OLY_TILING_RANK]; /* of the written part */
} oly_field_tile;

/* A box of a piece of a stage, or of a group: `piece` is then that of its first stage. */
typedef struct oly_field_box {
    const oly_tiling_piece *piece;
    const oly_tile_program *program; /* of the piece; machine: the one for machine code */
    const oly_tiling_load *reads;    /* its loads: the counter's is in memory of the host */
    bool machine;
    oly_dtype dtype; /* of the stage */
    const oly_tile_box *box;
    const oly_tile_operand *loads, *stores; /* of a stage: one store */
} oly_field_box;

typedef struct oly_field_kernels {
    oly_status (*compute)(void *context, const oly_field_box *box);
    oly_status (*copy)(void *context, const oly_copy_task *task, void *to, const void *from);
} oly_field_kernels;

/* Calls these for all boxes in order: each reads what those before have written. Stops where one fails. */
oly_status oly_field_tile_walk(const oly_field_tile *t, const oly_field_kernels *kernels, void *context);

/* Sets window and buffer_bytes for tiles of these extents. */
void oly_field_buffers(const oly_tiling *m, const oly_tiling_pass *pass, const int64_t *extent, int64_t *window,
                       size_t *buffer_bytes);

/* The sweep, if these passes are over fields; else NULL. */
const oly_field_sweep *oly_field_sweep_of(const oly_passes *p);
#endif
