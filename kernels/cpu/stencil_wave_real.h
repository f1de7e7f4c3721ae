/* SPDX-License-Identifier: BSD-3-Clause */
/* The wavefront of stencil_wave.c for one element type; included there, once per type. */
#include "stencil_strip.h"
#include "stencil_sweep.h"

typedef struct NAME(wave) {
    const oly_stencil_tile *tile;
    int64_t columns, row, slab, rows; /* vectors of a row without and with its ghosts, and of a slab; rows of a slab */
    int ghosts;
    bool shared; /* rows hold values times `scale`; the sweep is that of stencil_2d.c */
    REAL scale;
    int order[4]; /* of the neighbours, for it */
    V *slots;
    bool alternate;      /* a single slab: levels alternate between its two slots */
    int64_t wrapped;     /* slots passed in whole rounds before the current front */
    REAL *spare, *saved; /* room for one row; for the fixed columns of a block */
    V coefficient[OLY_STENCIL_TAPS];
    int64_t in_slab[OLY_STENCIL_TAPS];     /* offset of a tap within a slab, in vectors */
    int64_t fixed[2 * OLY_STENCIL_GHOSTS]; /* elements of a row that are fixed, by position in strip layout */
    int n_fixed;
} NAME(wave);

/* Sets the wave up for a front. All slabs it uses are within `slots` of the lowest slab of the last level, so that one
 * subtraction finds a slot, where a division would be needed. */
static void NAME(set_front)(NAME(wave) * w, int64_t front)
{
    const oly_stencil_tile *t = w->tile;
    int64_t lowest = front - (int64_t)t->steps * t->above[0] - t->window_lo[0];
    w->wrapped = lowest > 0 ? lowest / t->slots * t->slots : 0;
}

static inline int64_t NAME(slot)(const NAME(wave) * w, int64_t y, int level)
{
    const oly_stencil_tile *t = w->tile;
    int64_t behind = w->alternate ? (t->steps - level) & 1 : t->steps - level;
    int64_t slot = y - t->window_lo[0] + behind * t->shift - w->wrapped;
    return slot < t->slots ? slot : slot - t->slots;
}

/* First vector (past the ghosts) of row 0 of slab y at a level. */
static inline V *NAME(place)(const NAME(wave) * w, int64_t y, int level)
{
    return w->slots + NAME(slot)(w, y, level) * w->slab + w->ghosts;
}

/* How many slabs from y on are contiguous in memory, at most n. */
static int64_t NAME(unbroken)(const NAME(wave) * w, int64_t y, int level, int64_t n)
{
    int64_t slot = NAME(slot)(w, y, level);
    return n < w->tile->slots - slot ? n : w->tile->slots - slot;
}

/* -- one level ---------------------------------------------------------------------------------------------------- */

/* Copies rows [lo, hi) of slab y from the level before. */
static void NAME(carry_rows)(const NAME(wave) * w, int64_t y, int level, int64_t lo, int64_t hi)
{
    V *to = NAME(place)(w, y, level) - w->ghosts;
    const V *from = NAME(place)(w, y, level - 1) - w->ghosts;
    if (lo < hi && to != from)
        memcpy(to + lo * w->row, from + lo * w->row, (size_t)((hi - lo) * w->row) * sizeof(V));
}

/* Row r of the rows that a sweep computes: of the n-th slab, or of the single slab from row lo on. */
static inline V *NAME(row_of)(const NAME(wave) * w, int64_t y, int64_t r, int level, int64_t lo)
{
    return w->rows > 1 ? NAME(place)(w, y, level) + (lo + r) * w->row : NAME(place)(w, y + r, level);
}

/* The sweep of stencil_2d.c: four rows at a time, and the rest tap by tap with the same products. */
static void NAME(sweep_cross)(const NAME(wave) * w, int64_t y, int64_t n, int level)
{
    const oly_stencil_tile *t = w->tile;
    for (; n >= 4; n -= 4, y += 4) {
        void *rows[6];
        for (int j = 0; j < 6; j++)
            rows[j] = NAME(place)(w, y + j - 1, level - 1);
        OLY_STENCIL_CROSS(SUFFIX)(w->order, rows, w->columns, t->side, t->ratio);
    }
    for (; n > 0; n--, y++) {
        V *above = NAME(place)(w, y - 1, level - 1), *below = NAME(place)(w, y + 1, level - 1);
        const V *here = NAME(place)(w, y, level - 1), *by_side[4] = {above, below, here - 1, here + 1}, *in[4];
        for (int i = 0; i < 4; i++)
            in[i] = by_side[w->order[i]];
        for (int64_t k = 0; k < w->columns; k++) {
            V sum = NAME(fused)(w->coefficient[1], here[k], in[0][k]);
            above[k] = w->coefficient[0] * (((sum + in[1][k]) + in[2][k]) + in[3][k]);
        }
    }
}

static void NAME(sweep_taps)(const NAME(wave) * w, int64_t y, int64_t n, int level, int64_t lo, int64_t hi)
{
    const oly_stencil_tile *t = w->tile;
    const REAL *in[OLY_STENCIL_TAPS];
    V *out = NAME(place)(w, y, level) + lo * w->row;
    for (int i = 0; i < t->n_taps; i++)
        in[i] = (const REAL *)(NAME(place)(w, y + t->offset[i][0], level - 1) + lo * w->row + w->in_slab[i]);
    NAME(sweep)(in, w->coefficient, out, (n - 1) * w->slab + (hi - lo - 1) * w->row + w->columns, t->n_taps);
}

/* Computes rows [lo, hi) of n slabs from y on. Slabs of several rows are computed one at a time. */
static void NAME(sweep_slabs)(const NAME(wave) * w, int64_t y, int64_t n, int level, int64_t lo, int64_t hi)
{
    int64_t n_rows = n * (hi - lo);
    for (int64_t r = 0; r < n_rows && w->n_fixed; r++) {
        const REAL *row = (const REAL *)NAME(row_of)(w, y, r, level - 1, lo);
        for (int i = 0; i < w->n_fixed; i++)
            w->saved[r * w->n_fixed + i] = row[w->fixed[i]];
    }
    if (w->shared)
        NAME(sweep_cross)(w, y, n, level);
    else
        NAME(sweep_taps)(w, y, n, level, lo, hi);
    for (int64_t r = 0; r < n_rows && (w->n_fixed || level < w->tile->steps); r++) {
        V *row = NAME(row_of)(w, y, r, level, lo);
        for (int i = 0; i < w->n_fixed; i++)
            ((REAL *)row)[w->fixed[i]] = w->saved[r * w->n_fixed + i];
        if (level < w->tile->steps)
            NAME(refresh_ghosts)(row, w->columns, w->ghosts);
    }
}

/* Computes slabs [begin, end) of a level from the level before. */
static void NAME(make_level)(const NAME(wave) * w, int level, int64_t begin, int64_t end)
{
    const oly_stencil_tile *t = w->tile;
    int64_t slab_lo = level_swept_lo(t, 0, level), slab_hi = level_swept_hi(t, 0, level);
    int64_t first = t->window_lo[1], lo = level_swept_lo(t, 1, level) - first, hi = level_swept_hi(t, 1, level) - first;
    int64_t known_lo = level_known_lo(t, 1, level) - first, known_hi = level_known_hi(t, 1, level) - first;
    for (int64_t y = begin; y < end;) {
        if (y < slab_lo || y >= slab_hi) {
            NAME(carry_rows)(w, y++, level, known_lo, known_hi);
            continue;
        }
        int64_t n = w->rows > 1 ? 1 : (end < slab_hi ? end : slab_hi) - y;
        if (!w->shared)
            n = NAME(unbroken)(w, y, level, n);
        for (int64_t d = -t->below[0]; d <= t->above[0] && !w->shared; d++)
            n = NAME(unbroken)(w, y + d, level - 1, n);
        NAME(sweep_slabs)(w, y, n, level, lo, hi);
        if (w->rows > 1) {
            NAME(carry_rows)(w, y, level, known_lo, lo);
            NAME(carry_rows)(w, y, level, hi, known_hi);
        }
        y += n;
    }
}

static void NAME(bring_in)(const NAME(wave) * w, int64_t y)
{
    const oly_stencil_tile *t = w->tile;
    V *slab = NAME(place)(w, y, 0);
    const REAL *from = (const REAL *)t->source + (y - t->window_lo[0]) * t->source_stride[0];
    for (int64_t r = 0; r < w->rows; r++) {
        NAME(fill)
        (slab + r * w->row, w->columns, from + r * t->source_stride[1], t->window_hi[2] - t->window_lo[2], w->scale,
         w->spare);
        NAME(refresh_ghosts)(slab + r * w->row, w->columns, w->ghosts);
    }
}

static void NAME(bring_out)(const NAME(wave) * w, int64_t y)
{
    const oly_stencil_tile *t = w->tile;
    const V *slab = NAME(place)(w, y, t->steps);
    REAL *to = (REAL *)t->destination + (y - t->update_lo[0]) * t->destination_stride[0];
    for (int64_t r = t->update_lo[1]; r < t->update_hi[1]; r++)
        NAME(drain)
    (slab + (r - t->window_lo[1]) * w->row, w->columns, to + (r - t->update_lo[1]) * t->destination_stride[1],
     t->update_lo[2] - t->window_lo[2], t->update_hi[2] - t->window_lo[2], 1 / w->scale, w->spare);
}

static void NAME(prepare)(NAME(wave) * w, const oly_stencil_tile *t, bool shared)
{
    int64_t count = t->window_hi[2] - t->window_lo[2];
    w->tile = t;
    w->ghosts = t->below[2] > t->above[2] ? t->below[2] : t->above[2];
    w->columns = NAME(columns)(count);
    w->row = w->columns + 2 * w->ghosts;
    while ((w->row * STENCIL_VECTOR_BYTES + 320) % 4096 <
           640) /* rows at nearly the same offset within pages conflict in the cache */
        w->row++;
    w->rows = t->window_hi[1] - t->window_lo[1];
    w->slab = w->rows * w->row;
    w->slots = t->scratch;
    w->spare = (REAL *)(w->slots + t->slots * w->slab);
    w->saved = w->spare + w->columns * LANES;
    for (int i = 0; i < t->n_taps; i++) {
        w->coefficient[i] = NAME(spread)((REAL)t->coefficient[i]);
        w->in_slab[i] = t->offset[i][1] * w->row + t->offset[i][2];
    }
    w->alternate = t->slots < 1 + (int64_t)t->steps * t->shift;
    w->shared = shared;
    w->scale = shared ? (REAL)t->side : 1;
    if (shared) {
        w->coefficient[0] = NAME(spread)((REAL)t->side);
        w->coefficient[1] = NAME(spread)((REAL)t->ratio);
        for (int i = 0, n = 0; i < t->n_taps; i++)
            if (t->offset[i][0] != 0 || t->offset[i][2] != 0)
                w->order[n++] = t->offset[i][0] < 0   ? CROSS_UP
                                : t->offset[i][0] > 0 ? CROSS_DOWN
                                : t->offset[i][2] < 0 ? CROSS_LEFT
                                                      : CROSS_RIGHT;
    }
    w->n_fixed = 0;
    for (int64_t x = t->window_lo[2]; x < t->fixed_lo[2]; x++)
        w->fixed[w->n_fixed++] = NAME(element)(x - t->window_lo[2], w->columns);
    for (int64_t x = t->fixed_hi[2]; x < t->window_hi[2]; x++)
        w->fixed[w->n_fixed++] = NAME(element)(x - t->window_lo[2], w->columns);
}

/* The whole tile; false if products were not exact, which is checked only where they are shared. */
static bool NAME(attempt)(const oly_stencil_tile *t, bool shared)
{
    NAME(wave) wave;
    NAME(prepare)(&wave, t, shared);
    for (int64_t front = t->window_lo[0]; front - (int64_t)t->steps * t->above[0] < t->update_hi[0];
         front += t->block) {
        NAME(set_front)(&wave, front);
        for (int64_t y = front; y < front + t->block && y < t->window_hi[0]; y++)
            NAME(bring_in)(&wave, y);
        for (int s = 1; s <= t->steps; s++) {
            int64_t begin = front - (int64_t)s * t->above[0], end = begin + t->block;
            int64_t lo = level_known_lo(t, 0, s), hi = level_known_hi(t, 0, s);
            NAME(make_level)(&wave, s, begin < lo ? lo : begin, end > hi ? hi : end);
        }
        if (shared && fetestexcept(FE_UNDERFLOW))
            return false;
        int64_t begin = front - (int64_t)t->steps * t->above[0], end = begin + t->block;
        for (int64_t y = begin < t->update_lo[0] ? t->update_lo[0] : begin; y < end && y < t->update_hi[0]; y++)
            NAME(bring_out)(&wave, y);
    }
    return true;
}

static void NAME(compute)(const oly_stencil_tile *t)
{
    if (is_shared_cross(t)) {
        fexcept_t before;
        fegetexceptflag(&before, FE_UNDERFLOW);
        feclearexcept(FE_UNDERFLOW);
        bool done = NAME(attempt)(t, true);
        fesetexceptflag(&before, FE_UNDERFLOW);
        if (done)
            return;
    }
    NAME(attempt)(t, false);
}
#undef REAL
#undef REAL_BYTES
#undef SUFFIX
#undef LANES
#undef STAGES
#undef MOVE_UP
#undef MOVE_DOWN
