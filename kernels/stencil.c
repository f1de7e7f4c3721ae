/* SPDX-License-Identifier: BSD-3-Clause */
/* Stencils: which are supported, how a field is divided into tiles, and the call of the kernel for one tile. The tiling depends
 * on shape and step count alone; the values do not depend on it. Called by the interpreter through kernel.h. */
#include "stencil_table.h"
#include "core/min_max.h"
#include <math.h>
#include <string.h>

enum { SHORT_TOGETHER = 4096 }; /* bytes of slabs with short rows that are swept together, about */

static const oly_stencil_table *table = &oly_stencil_table_base;

void oly_stencil_choose(const char *isa)
{
    table = &oly_stencil_table_base;
#ifdef __x86_64__
    if (!strcmp(isa, "avx2"))
        table = &oly_stencil_table_avx2;
    if (!strcmp(isa, "avx512"))
        table = &oly_stencil_table_avx512;
#else
    (void)isa;
#endif
}

bool oly_stencil_supported(const oly_stencil *s)
{
    if ((s->dtype != OLY_FLOAT32 && s->dtype != OLY_FLOAT64) || s->rank < 1 || s->rank > 3)
        return false;
    if (s->n_taps < 1 || s->n_taps > OLY_STENCIL_TAPS)
        return false;
    for (int t = 0; t < s->n_taps; t++)
        for (int d = 0; d < s->rank; d++)
            if (s->offset[t][d] < -4 || s->offset[t][d] > 4)
                return false;
    return true;
}

/* Three dimensions out of fewer: 1 -> column, 2 -> slab and column. */
static int dimension_of(int rank, int d)
{
    return rank == 3 ? d : rank == 2 ? 2 * d : 2;
}

/* -- tiles -------------------------------------------------------------------------------------------------------- */

/* The reach of a tap set in three dimensions, and how the kernels store their slabs. */
typedef struct shape {
    int rank, bytes;
    int below[3], above[3];
    bool is_line; /* one dimension, taps -1, 0 and 1 in any order */
    int shift;    /* see cpu/stencil_wave.c */
} shape;

static shape shape_of(const oly_stencil *s)
{
    shape a = {.rank = s->rank, .bytes = s->dtype == OLY_FLOAT32 ? 4 : 8};
    int seen = 0;
    for (int t = 0; t < s->n_taps; t++)
        for (int d = 0; d < s->rank; d++) {
            int to = dimension_of(s->rank, d), offset = s->offset[t][d];
            a.below[to] = -offset > a.below[to] ? -offset : a.below[to];
            a.above[to] = offset > a.above[to] ? offset : a.above[to];
            seen |= 1 << (offset + 4);
        }
    a.is_line = s->rank == 1 && s->n_taps == 3 && seen == (7 << 3);
    a.shift = a.below[0];
    for (int t = 0; t < s->n_taps; t++) { /* a tap into the part of the lowest slab that the sweep has passed */
        int slab = s->rank > 1 ? s->offset[t][0] : 0, row = s->rank > 2 ? s->offset[t][1] : 0;
        int column = s->offset[t][s->rank - 1];
        if (slab == -a.below[0] && (row < 0 || (row == 0 && column < 0)))
            a.shift = a.below[0] + 1;
    }
    return a;
}

/* Steps of a pass over a large field, and points of a tile's window in each dimension. Measured on a core with 32 KiB and
 * 512 KiB of cache (Zen 3). */
typedef struct proportions {
    int steps, block;
    int64_t window[3];
} proportions;

static proportions proportions_of(const shape *a)
{
    int narrow = a->bytes == 4 ? 1 : 2;
    if (a->is_line)
        return (proportions){128, 1, {1, 1, 32768 / narrow}};
    if (a->rank == 1)
        return (proportions){32, 1, {1, 1, 3072 / narrow}};
    if (a->rank == 2)
        return (proportions){32, 4, {512, 1, 1100 / narrow}};
    return (proportions){6, 1, {256, 40, 560 / narrow}};
}

int oly_stencil_steps(const oly_stencil *s, const int64_t *extent)
{
    shape a = shape_of(s);
    int64_t steps = proportions_of(&a).steps;
    for (int d = 0; d < s->rank; d++) { /* no margin wider than the block */
        int to = dimension_of(s->rank, d), reach = a.below[to] > a.above[to] ? a.below[to] : a.above[to];
        if (reach > 0 && extent[d] / reach < steps)
            steps = extent[d] / reach;
    }
    return steps < 1 ? 1 : (int)steps;
}

/* The grid of tiles over the part to be written: in each of the three dimensions the cells of either border, if they are tiles of
 * their own, and those between are each split into balanced parts. */
enum { BELOW, BETWEEN, ABOVE, SECTIONS };
typedef struct grid {
    int64_t lo[3], hi[3], parts[3];
    int64_t from[3][SECTIONS + 1], parts_in[3][SECTIONS]; /* where sections begin, and their parts */
} grid;

static grid grid_of(const shape *a, const oly_stencil_field *f, int steps)
{
    grid g = {.lo = {0, 0, 0}, .hi = {1, 1, 1}, .parts = {1, 1, 1}};
    proportions p = proportions_of(a);
    for (int d = 0; d < 3; d++) {
        g.from[d][ABOVE] = g.from[d][SECTIONS] = 1;
        g.parts_in[d][BETWEEN] = 1;
    }
    for (int d = 0; d < a->rank; d++) {
        int to = dimension_of(a->rank, d);
        int64_t margin = (int64_t)steps * (a->below[to] + a->above[to]);
        int64_t most =
            oly_larger(p.window[to] - margin, oly_larger(margin, 16)); /* at least half of the work is useful */
        g.lo[to] = f->write_lo[d];
        g.hi[to] = oly_larger(f->write_hi[d], f->write_lo[d]);
        g.from[to][BELOW] = g.lo[to];
        g.from[to][BETWEEN] = g.lo[to] + f->border_lo[d];
        g.from[to][ABOVE] = g.hi[to] - f->border_hi[d];
        g.from[to][SECTIONS] = g.hi[to];
        g.parts[to] = 0;
        for (int k = 0; k < SECTIONS; k++) {
            g.parts_in[to][k] = (g.from[to][k + 1] - g.from[to][k] + most - 1) / most;
            g.parts[to] += g.parts_in[to][k];
        }
    }
    return g;
}

static int64_t part_start(const grid *g, int d, int64_t part)
{
    int k = 0;
    while (k + 1 < SECTIONS && part >= g->parts_in[d][k])
        part -= g->parts_in[d][k++];
    if (g->parts_in[d][k] == 0)
        return g->hi[d];
    int64_t n = g->from[d][k + 1] - g->from[d][k], each = n / g->parts_in[d][k], more = n % g->parts_in[d][k];
    return g->from[d][k] + part * each + oly_smaller(part, more);
}

/* Points of the largest part, rounded up. */
static int64_t largest_part(const grid *g, int d)
{
    int64_t most = 0;
    for (int k = 0; k < SECTIONS; k++)
        if (g->parts_in[d][k])
            most = oly_larger(most, (g->from[d][k + 1] - g->from[d][k]) / g->parts_in[d][k] + 1);
    return most;
}

int oly_stencil_chunks(const oly_stencil *s, const oly_stencil_field *f, int steps)
{
    shape a = shape_of(s);
    grid g = grid_of(&a, f, steps);
    return (int)(g.parts[0] * g.parts[1] * g.parts[2]);
}

/* Whether a part of dimension `to` reads nothing beyond the part to be written, on the requested sides. */
static bool stays_inside(const shape *a, const grid *g, const oly_stencil_field *f, int steps, int d, unsigned sides,
                         int64_t part)
{
    int to = dimension_of(a->rank, d);
    int64_t lo = oly_larger(part_start(g, to, part), f->fixed_lo[d]);
    int64_t hi = oly_smaller(part_start(g, to, part + 1), f->fixed_hi[d]);
    if (lo >= hi)
        return true; /* copied only */
    lo = oly_larger(lo - (int64_t)steps * a->below[to], f->fixed_lo[d] - a->below[to]);
    hi = oly_smaller(hi + (int64_t)steps * a->above[to], f->fixed_hi[d] + a->above[to]);
    return !(sides >> (2 * d) & 1 && lo < f->write_lo[d]) && !(sides >> (2 * d + 1) & 1 && hi > f->write_hi[d]);
}

oly_stencil_share oly_stencil_divide(const oly_stencil *s, const oly_stencil_field *f, int steps, unsigned sides)
{
    shape a = shape_of(s);
    grid g = grid_of(&a, f, steps);
    oly_stencil_share r = {.points = 1, .inner_points = 1};
    bool any = true;
    for (int d = 0; d < 3; d++) {
        r.parts[d] = r.end[d] = g.parts[d];
        r.n = (d ? r.n : 1) * (int)g.parts[d];
    }
    for (int d = 0; d < a.rank; d++) {
        int to = dimension_of(a.rank, d);
        int64_t first = 0, end = g.parts[to];
        double around = 0.5 * steps * (a.below[to] + a.above[to]); /* points a part computes in addition, on average */
        while (first < end && !stays_inside(&a, &g, f, steps, d, sides, first))
            first++;
        while (end > first && !stays_inside(&a, &g, f, steps, d, sides, end - 1))
            end--;
        any = any && first < end;
        r.first[to] = first;
        r.end[to] = end;
        r.points *= (double)(g.hi[to] - g.lo[to]) + (double)g.parts[to] * around;
        r.inner_points *=
            first < end ? (double)(part_start(&g, to, end) - part_start(&g, to, first)) + (double)(end - first) * around
                        : 0;
    }
    for (int d = 0; d < 3; d++) {
        if (!any)
            r.first[d] = r.end[d] = 0;
        r.n_inner = (d ? r.n_inner : 1) * (int)(r.end[d] - r.first[d]);
    }
    r.points *= steps;
    r.inner_points *= steps;
    return r;
}

oly_stencil_points oly_stencil_points_of(const oly_stencil *s, const oly_stencil_field *f, int steps, unsigned sides)
{
    oly_stencil_share share = oly_stencil_divide(s, f, steps, sides);
    return (oly_stencil_points){share.points, share.inner_points};
}

/* The overall number of part k of a box of parts. */
static int number_in(const oly_stencil_share *t, const int64_t *lo, const int64_t *hi, int64_t k)
{
    int64_t column = lo[2] + k % (hi[2] - lo[2]), row = lo[1] + k / (hi[2] - lo[2]) % (hi[1] - lo[1]);
    int64_t slab = lo[0] + k / (hi[2] - lo[2]) / (hi[1] - lo[1]);
    return (int)((slab * t->parts[1] + row) * t->parts[2] + column);
}

int oly_stencil_inner(const oly_stencil_share *t, int k)
{
    return t->n_inner == t->n ? k : number_in(t, t->first, t->end, k);
}

int oly_stencil_outer(const oly_stencil_share *t, int k)
{
    for (int side = 0; side < 6; side++) { /* below and above the inner box; dimensions before are the box's */
        int64_t lo[3], hi[3], n = 1;
        for (int d = 0; d < 3; d++) {
            lo[d] = d < side / 2 ? t->first[d] : d == side / 2 && side % 2 ? t->end[d] : 0;
            hi[d] = d < side / 2 ? t->end[d] : d == side / 2 && side % 2 == 0 ? t->first[d] : t->parts[d];
            n *= hi[d] - lo[d];
        }
        if (k < n)
            return number_in(t, lo, hi, k);
        k -= (int)n;
    }
    return 0;
}

/* -- short rows: cpu/stencil_short.c ------------------------------------------------------------------------------- */

/* The longest rows for it, measured (Zen 4): of shorter ones much of the strip layout is padding, and single ones take longer to bring into
 * it and out again. */
static int64_t short_row(const shape *a, int vector_bytes)
{
    return a->rank == 1 ? 64 * vector_bytes / a->bytes : 4 * vector_bytes;
}

static int64_t short_slab(const int64_t window[3])
{
    return window[1] * ((window[2] + OLY_STENCIL_LANES - 1) / OLY_STENCIL_LANES * OLY_STENCIL_LANES);
}

/* How many slabs the front is behind itself after a step. */
static int64_t behind_of(const shape *a)
{
    return oly_larger(a->below[0], a->above[0]);
}

/* Slabs that are swept together, and those of which values are held: all, where they are rows, since those are swept as one line. */
static int64_t short_together(const shape *a, const int64_t window[3])
{
    return SHORT_TOGETHER / (short_slab(window) * a->bytes) + 1;
}
static int64_t short_slots(const shape *a, const int64_t window[3], int steps)
{
    int64_t live = (int64_t)(steps + 2) * behind_of(a) + short_together(a, window);
    return a->rank < 3 ? window[0] : oly_smaller(window[0], live);
}

/* Elements of both copies of a tile whose window is at most this one. */
static int64_t short_elements(const shape *a, const int64_t window[3], int steps)
{
    int64_t live = ((int64_t)(steps + 2) * behind_of(a) + 1) * short_slab(window) + SHORT_TOGETHER;
    return 2 * ((a->rank < 3 ? window[0] * short_slab(window) : live) + 2 * OLY_STENCIL_LANES);
}

/* Slabs that are live at a time, and the bytes that a tile with a window of this many rows and columns needs. */
static int64_t slots_of(const shape *a, int steps, int block)
{
    return a->rank == 1 ? 1 + a->shift : (int64_t)steps * (a->above[0] + a->shift) + block;
}

size_t oly_stencil_scratch(const oly_stencil *s, const oly_stencil_field *f, int steps)
{
    shape a = shape_of(s);
    grid g = grid_of(&a, f, steps);
    proportions p = proportions_of(&a);
    int64_t window[3];
    for (int d = 0; d < 3; d++) {
        if (g.parts[d] == 0)
            return 0;
        window[d] = largest_part(&g, d) + (int64_t)steps * (a.below[d] + a.above[d]);
    }
    /* the maximum of lanes, ghosts and padding: cpu/stencil_strip.h, cpu/stencil_wave_real.h */
    int64_t row = window[2] + OLY_STENCIL_LANES * (OLY_STENCIL_LANES + 1 + 2 * OLY_STENCIL_GHOSTS + 16);
    int64_t fixed = oly_larger(window[1], p.block) * 2 * OLY_STENCIL_GHOSTS;
    int64_t elements = row * (slots_of(&a, steps, p.block) * window[1] + 1) + fixed;
    /* parts at a border may have short rows even if others have not */
    window[2] = oly_smaller(window[2], short_row(&a, OLY_STENCIL_LANES * 4));
    elements = oly_larger(elements, short_elements(&a, window, steps));
    return (size_t)(elements * a.bytes + 64);
}

/* Finds whether products are exact and shared (see cpu/stencil_1d.c): coefficients are powers of two, at most 1, those of
 * all taps but the middle one equal, and the middle one not below them. The exponents are far from the ends of float's range. */
static void find_shared_products(const oly_stencil *s, oly_stencil_tile *t)
{
    double middle = 0, side = 0;
    int n_middle = 0;
    for (int i = 0; i < s->n_taps; i++) {
        bool is_middle = true;
        int exponent;
        double c = s->coefficient[i];
        for (int d = 0; d < s->rank; d++)
            is_middle = is_middle && s->offset[i][d] == 0;
        if (fabs(frexp(c, &exponent)) != 0.5 || fabs(c) > 1 || exponent < -32 || (!is_middle && side != 0 && c != side))
            return;
        n_middle += is_middle;
        *(is_middle ? &middle : &side) = c;
    }
    if (n_middle != 1 || side == 0 || fabs(middle) < fabs(side))
        return;
    t->side = side;
    t->ratio = middle / side;
}

static oly_stencil_tile tile_of(const oly_stencil *s, const oly_stencil_field *f, const shape *a, int steps)
{
    oly_stencil_tile t = {.steps = steps, .n_taps = s->n_taps, .shift = a->shift, .block = proportions_of(a).block};
    t.slots = slots_of(a, steps, t.block);
    memcpy(t.coefficient, s->coefficient, sizeof t.coefficient);
    for (int d = 0; d < 3; d++) {
        t.below[d] = a->below[d];
        t.above[d] = a->above[d];
        t.fixed_hi[d] = 1;
    }
    for (int d = 0; d < s->rank; d++) {
        int to = dimension_of(s->rank, d);
        for (int i = 0; i < s->n_taps; i++)
            t.offset[i][to] = s->offset[i][d];
        t.fixed_lo[to] = f->fixed_lo[d];
        t.fixed_hi[to] = f->fixed_hi[d];
        t.source_stride[to] = f->stride[d];
        t.destination_stride[to] = f->destination_stride[d];
    }
    find_shared_products(s, &t);
    return t;
}

void oly_taps_run(oly_dtype dtype, int n_taps, const double *coefficient, const void *const *in, void *out, int64_t n)
{
    table->taps[dtype == OLY_FLOAT64](n_taps, coefficient, in, out, n);
}

/* -- running ------------------------------------------------------------------------------------------------------ */

/* One tile's part of the destination, and the addresses of both. */
typedef struct part {
    int64_t lo[3], hi[3];
    const char *source; /* element (0, 0, 0) of the field; reading starts at or after the field's first element */
    char *destination;
    int bytes;
} part;

static const char *source_at(const part *p, const oly_stencil_tile *t, const int64_t x[3])
{
    return p->source + (x[0] * t->source_stride[0] + x[1] * t->source_stride[1] + x[2]) * p->bytes;
}

static char *destination_at(const part *p, const oly_stencil_tile *t, const int64_t x[3])
{
    return p->destination + (x[0] * t->destination_stride[0] + x[1] * t->destination_stride[1] + x[2]) * p->bytes;
}

static void copy_columns(const part *p, const oly_stencil_tile *t, int64_t slab, int64_t row, int64_t lo, int64_t hi)
{
    int64_t x[3] = {slab, row, lo};
    if (lo < hi)
        memcpy(destination_at(p, t, x), source_at(p, t, x), (size_t)(hi - lo) * (size_t)p->bytes);
}

/* Copies the points of the part that are outside the update region. */
static void copy_fixed(const part *p, const oly_stencil_tile *t)
{
    for (int64_t slab = p->lo[0]; slab < p->hi[0]; slab++)
        for (int64_t row = p->lo[1]; row < p->hi[1]; row++) {
            bool inside =
                slab >= t->fixed_lo[0] && slab < t->fixed_hi[0] && row >= t->fixed_lo[1] && row < t->fixed_hi[1];
            int64_t lo = oly_larger(p->lo[2], t->fixed_lo[2]), hi = oly_smaller(p->hi[2], t->fixed_hi[2]);
            if (!inside || lo >= hi)
                lo = hi = p->hi[2];
            copy_columns(p, t, slab, row, p->lo[2], lo);
            copy_columns(p, t, slab, row, hi, p->hi[2]);
        }
}

void oly_stencil_run(const oly_stencil *s, const oly_stencil_field *f, int steps, const void *source, void *destination,
                     void *scratch, int chunk, int n_chunks)
{
    shape a = shape_of(s);
    grid g = grid_of(&a, f, steps);
    oly_stencil_tile t = tile_of(s, f, &a, steps);
    part p = {.source = source, .destination = destination, .bytes = a.bytes};
    int64_t index[3] = {chunk / (g.parts[1] * g.parts[2]), chunk / g.parts[2] % g.parts[1], chunk % g.parts[2]};
    bool updates = true;
    (void)n_chunks;
    for (int d = 0; d < s->rank; d++)
        p.destination += f->destination_offset[d] * f->destination_stride[d] * a.bytes;
    for (int d = 0; d < 3; d++) {
        p.lo[d] = part_start(&g, d, index[d]);
        p.hi[d] = part_start(&g, d, index[d] + 1);
        t.update_lo[d] = oly_larger(p.lo[d], t.fixed_lo[d]);
        t.update_hi[d] = oly_smaller(p.hi[d], t.fixed_hi[d]);
        t.window_lo[d] = oly_larger(t.update_lo[d] - (int64_t)steps * a.below[d], t.fixed_lo[d] - a.below[d]);
        t.window_hi[d] = oly_smaller(t.update_hi[d] + (int64_t)steps * a.above[d], t.fixed_hi[d] + a.above[d]);
        updates = updates && t.update_lo[d] < t.update_hi[d];
    }
    copy_fixed(&p, &t);
    if (!updates)
        return;
    t.source = source_at(&p, &t, t.window_lo);
    t.destination = destination_at(&p, &t, t.update_lo);
    t.scratch = (void *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    bool is_double = s->dtype == OLY_FLOAT64;
    int64_t window[3];
    for (int d = 0; d < 3; d++)
        window[d] = t.window_hi[d] - t.window_lo[d];
    if (window[2] <= short_row(&a, table->vector_bytes)) {
        t.behind = behind_of(&a);
        t.together = short_together(&a, window);
        t.slots = short_slots(&a, window, steps);
        table->short_rows[is_double](&t);
        return;
    }
    (a.is_line ? table->line : table->wave)[is_double](&t);
}
