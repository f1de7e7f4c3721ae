/* SPDX-License-Identifier: BSD-3-Clause */
/* Which points of a tile a level needs: level s is the field after s steps. Included by the stencil kernels in kernels/cpu. */
#ifndef OLY_STENCIL_LEVELS_H
#define OLY_STENCIL_LEVELS_H
#include "stencil_table.h"

/* The part of dimension d that a level must have, and the part of it that is computed: the update region extended by
 * the reach of the remaining steps. */
static inline int64_t level_known_lo(const oly_stencil_tile *t, int d, int level)
{
    int64_t lo = t->update_lo[d] - (int64_t)(t->steps - level) * t->below[d];
    return lo > t->window_lo[d] ? lo : t->window_lo[d];
}
static inline int64_t level_known_hi(const oly_stencil_tile *t, int d, int level)
{
    int64_t hi = t->update_hi[d] + (int64_t)(t->steps - level) * t->above[d];
    return hi < t->window_hi[d] ? hi : t->window_hi[d];
}
static inline int64_t level_swept_lo(const oly_stencil_tile *t, int d, int level)
{
    int64_t lo = level_known_lo(t, d, level);
    return lo > t->fixed_lo[d] ? lo : t->fixed_lo[d];
}
static inline int64_t level_swept_hi(const oly_stencil_tile *t, int d, int level)
{
    int64_t hi = level_known_hi(t, d, level);
    return hi < t->fixed_hi[d] ? hi : t->fixed_hi[d];
}
#endif
