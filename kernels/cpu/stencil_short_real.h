/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel of stencil_short.c for one element type; included there, once per type. */
#include "stencil_vector.h"
#include "stencil_sweep.h"

typedef struct NAME(short_tile) {
    const oly_stencil_tile *tile;
    int64_t count, row, slab; /* points of a row; elements of a row and of a slab */
    REAL *level[2];           /* the first point of the window, after even and odd numbers of steps */
    V coefficient[OLY_STENCIL_TAPS];
    int64_t offset[OLY_STENCIL_TAPS]; /* of a tap, in elements */
    int64_t below, above;             /* columns of the window that are fixed, at its ends */
} NAME(short_tile);

/* n rows that follow each other, from `at` in both copies on. */
static void NAME(sweep_rows)(const NAME(short_tile) * s, const int64_t *offset, int64_t at, int64_t n, int level)
{
    const REAL *in = s->level[(level - 1) & 1] + at;
    REAL *out = s->level[level & 1] + at;
    const REAL *from[OLY_STENCIL_TAPS];
    if (n <= 0)
        return;
    for (int i = 0; i < s->tile->n_taps; i++)
        from[i] = in + offset[i];
    NAME(sweep)(from, s->coefficient, (V *)out, n * s->row / LANES, s->tile->n_taps);
    for (int64_t r = 0; r < n && s->below + s->above > 0; r++, in += s->row, out += s->row) {
        for (int64_t x = 0; x < s->below; x++)
            out[x] = in[x];
        for (int64_t x = s->count - s->above; x < s->count; x++)
            out[x] = in[x];
    }
}

/* Slabs [begin, end) of a level, as far as it needs them. */
static void NAME(sweep_slabs)(const NAME(short_tile) * s, int64_t begin, int64_t end, int level)
{
    const oly_stencil_tile *t = s->tile;
    int64_t lo = level_swept_lo(t, 1, level) - t->window_lo[1], hi = level_swept_hi(t, 1, level) - t->window_lo[1];
    int64_t slab_lo = level_swept_lo(t, 0, level), slab_hi = level_swept_hi(t, 0, level);
    begin = (begin > slab_lo ? begin : slab_lo) - t->window_lo[0];
    end = (end < slab_hi ? end : slab_hi) - t->window_lo[0];
    if (t->slots == t->window_hi[0] - t->window_lo[0] && t->window_hi[1] - t->window_lo[1] == 1) {
        NAME(sweep_rows)(s, s->offset, begin * s->slab, end - begin, level);
        return;
    }
    for (int64_t slab = begin; slab < end; slab++) {
        int64_t offset[OLY_STENCIL_TAPS], slot = slab % t->slots;
        for (int i = 0; i < t->n_taps; i++) {
            int64_t other = slot + t->offset[i][0];
            int64_t wrapped = other < 0 ? t->slots : other >= t->slots ? -t->slots : 0;
            offset[i] = s->offset[i] + wrapped * s->slab;
        }
        NAME(sweep_rows)(s, offset, slot * s->slab + lo * s->row, hi - lo, level);
    }
}

/* n points, as vectors as far as there are as many. */
static inline void NAME(copy_points)(REAL *to, const REAL *from, int64_t n)
{
    if (n < LANES) {
        memcpy(to, from, (size_t)n * sizeof(REAL));
        return;
    }
    for (int64_t x = 0; x + LANES < n; x += LANES)
        *(NAME(loose) *)(to + x) = *(const NAME(loose) *)(from + x);
    *(NAME(loose) *)(to + n - LANES) = *(const NAME(loose) *)(from + n - LANES);
}

/* A slab of the window into both copies; between its rows is what can be computed with. */
static void NAME(bring_in)(const NAME(short_tile) * s, int64_t y)
{
    const oly_stencil_tile *t = s->tile;
    const REAL *from = (const REAL *)t->source + (y - t->window_lo[0]) * t->source_stride[0];
    int64_t at = (y - t->window_lo[0]) % t->slots * s->slab;
    REAL *to = s->level[0] + at, *other = s->level[1] + at;
    for (int64_t r = t->window_lo[1]; r < t->window_hi[1]; r++) {
        NAME(copy_points)(to, from, s->count);
        NAME(copy_points)(other, from, s->count);
        for (int64_t x = s->count; x < s->row; x++)
            to[x] = other[x] = from[s->count - 1];
        from += t->source_stride[1];
        to += s->row;
        other += s->row;
    }
}

static void NAME(bring_out)(const NAME(short_tile) * s, int64_t y)
{
    const oly_stencil_tile *t = s->tile;
    REAL *to = (REAL *)t->destination + (y - t->update_lo[0]) * t->destination_stride[0];
    const REAL *from = s->level[t->steps & 1] + (y - t->window_lo[0]) % t->slots * s->slab +
                       (t->update_lo[1] - t->window_lo[1]) * s->row + t->update_lo[2] - t->window_lo[2];
    for (int64_t r = t->update_lo[1]; r < t->update_hi[1]; r++) {
        NAME(copy_points)(to, from, t->update_hi[2] - t->update_lo[2]);
        from += s->row;
        to += t->destination_stride[1];
    }
}

static void NAME(prepare)(NAME(short_tile) * s, const oly_stencil_tile *t)
{
    enum { GUARD = OLY_STENCIL_LANES }; /* elements beside the copies, which taps read */
    s->tile = t;
    s->count = t->window_hi[2] - t->window_lo[2];
    s->row = (s->count + LANES - 1) / LANES * LANES;
    s->slab = s->row * (t->window_hi[1] - t->window_lo[1]);
    s->below = t->fixed_lo[2] > t->window_lo[2] ? t->fixed_lo[2] - t->window_lo[2] : 0;
    s->above = t->window_hi[2] > t->fixed_hi[2] ? t->window_hi[2] - t->fixed_hi[2] : 0;
    REAL *at = t->scratch;
    for (int k = 0; k < 2; k++) {
        int64_t n = s->slab * t->slots;
        for (int i = 0; i < GUARD; i++)
            at[i] = at[GUARD + n + i] = 0;
        s->level[k] = at + GUARD;
        at += GUARD + n + GUARD;
    }
    for (int i = 0; i < t->n_taps; i++) {
        s->coefficient[i] = NAME(spread)((REAL)t->coefficient[i]);
        s->offset[i] = t->offset[i][0] * s->slab + t->offset[i][1] * s->row + t->offset[i][2];
    }
}

#define KERNEL__(suffix, isa) oly_stencil_short_##suffix##_##isa
#define KERNEL_(suffix, isa)  KERNEL__(suffix, isa)
oly_stencil_kernel KERNEL_(SUFFIX, OLY_ISA);
void KERNEL_(SUFFIX, OLY_ISA)(const oly_stencil_tile *t)
{
    NAME(short_tile) s;
    NAME(prepare)(&s, t);
    int64_t end = level_swept_hi(t, 0, t->steps) + (t->steps - 1) * t->behind, held = t->window_lo[0];
    for (int64_t front = level_swept_lo(t, 0, 1); front < end; front += t->together) {
        for (; held < front + t->together + t->behind && held < t->window_hi[0]; held++)
            NAME(bring_in)(&s, held);
        for (int level = 1; level <= t->steps; level++) {
            int64_t begin = front - (level - 1) * t->behind;
            NAME(sweep_slabs)(&s, begin, begin + t->together, level);
        }
        int64_t y = front - (t->steps - 1) * t->behind, last = y + t->together;
        for (y = y > t->update_lo[0] ? y : t->update_lo[0]; y < last && y < t->update_hi[0]; y++)
            NAME(bring_out)(&s, y);
    }
}
#undef KERNEL__
#undef KERNEL_
#undef REAL
#undef REAL_BYTES
#undef SUFFIX
#undef LANES
