/* SPDX-License-Identifier: BSD-3-Clause */
/* Part of a pass over fields, computed in blocks in shared memory. Private to runtime/run/cuda. */
#ifndef OLY_RUN_CUDA_BLOCKED_FIELDS_H
#define OLY_RUN_CUDA_BLOCKED_FIELDS_H
#include "cuda/launch.h"
#include "run/field_tile.h"

/* Computes the elements of the box, as oly_field_tile_walk for a tile of them. *can: the loop can be computed so. *done false: it is not, as the
 * kernel is not compiled (yet), or memory is too large for 32-bit offsets; what was computed will be overwritten. t: lo, hi and memory are not
 * used. */
oly_status oly_cuda_launch_blocked(const oly_cuda_launcher *l, const oly_field_tile *t, const oly_part_box *box,
                                   bool *can, bool *done);
/* The program of a piece that is a sum of taps, with the bits of oly_taps_run: in memory of the caller. */
typedef struct oly_cuda_taps {
    oly_tile_instruction code[2 * OLY_STENCIL_TAPS];
    int16_t from[OLY_STENCIL_TAPS], to;
    uint8_t dtypes[OLY_STENCIL_TAPS], dtype;
} oly_cuda_taps;
oly_tile_program oly_cuda_taps_program(const oly_tiling_piece *piece, oly_dtype dtype, oly_cuda_taps *memory);
#endif
