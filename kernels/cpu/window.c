/* SPDX-License-Identifier: BSD-3-Clause */
/* Sliding windows whose elements are combined: sum, product, largest, smallest. Compiled once per instruction set;
 * gives oly_window_run_<isa>, called through local.c. Elements are combined in the order of the window. */
#include "cpu/window_line.h"
#include "core/min_max.h"

enum { STRIP = 256 };

OLY_WINDOW_LINE(8, uint8_t)
OLY_WINDOW_LINE(16, uint16_t)
OLY_WINDOW_LINE(32, uint32_t)
OLY_WINDOW_LINE(64, uint64_t)
typedef struct pair {
    uint64_t half[2];
} pair;
OLY_WINDOW_LINE(128, pair)

/* `identity`, x and out point to elements of the same size. */
static void line(const oly_slide *s, int bytes, const int64_t *tap, int64_t first, int64_t n, const void *x,
                 const void *identity, void *out)
{
    switch (bytes) {
    case 1: line_8(s, tap, first, n, x, *(const uint8_t *)identity, out); break;
    case 2: line_16(s, tap, first, n, x, *(const uint16_t *)identity, out); break;
    case 4: line_32(s, tap, first, n, x, *(const uint32_t *)identity, out); break;
    case 8: line_64(s, tap, first, n, x, *(const uint64_t *)identity, out); break;
    default: line_128(s, tap, first, n, x, *(const pair *)identity, out); break;
    }
}

/* What all lines need. */
typedef struct windowed {
    const oly_local_task *t;
    oly_slide s;
    oly_combiner combiner;
    int bytes;
    pair identity;
} windowed;

/* Positions [first, first + n) of a line, strip by strip: each tap's elements are copied first. x: NULL if the operand's part is empty. */
static void run_strips(const windowed *w, const char *x, int64_t first, int64_t n, char *to)
{
    pair seen[STRIP];
    for (int64_t done = 0, length; done < n; done += length, to += length * w->bytes) {
        length = n - done < STRIP ? n - done : STRIP;
        for (int64_t number = 0; number < w->s.taps; number++) {
            int64_t tap[OLY_MAX_WINDOW] = {0};
            oly_slide_indexes(&w->s, w->s.size, number, tap);
            line(&w->s, w->bytes, tap, first + done, length, x, &w->identity, number ? (void *)seen : (void *)to);
            if (number)
                OLY_ISA_NAME(oly_combiners).pair[w->combiner][w->t->out.dtype](length, to, to, seen);
        }
        if (w->s.taps == 0)
            oly_combine_identity(w->combiner, w->t->out.dtype, to, length);
    }
}

/* -- windows that are read where they are ----------------------------------------------------------------------------------------- */

enum { FEWEST_CHANNELS = 2, FEWEST_PLACES = 4, ROW_BYTES = 16384, MANY_CHANNELS = 8, WHOLE = 16 };

/* How the rows of the last dimensions are combined: both by the combiners for rows, which take all elements of a row of the window; next to
 * padding from a copy of what they read. */
typedef enum way {
    BY_STRIPS, /* they are not */
    BY_CHANNEL, /* the window has one element of the last dimension, as of channels that come last: all of a place's together */
    BY_PLACE /* the window slides along the last dimension */
} way;

static bool are_channels(const oly_slide *s)
{
    const int last = s->rank - 1;
    return last > 0 && s->size[last] == 1 && s->stride[last] == 1 && s->lo[last] == 0 &&
           s->extent[last] >= FEWEST_CHANNELS && s->begin[last] <= s->origin[last] &&
           s->end[last] >= s->origin[last] + s->extent[last];
}

/* Elements that the positions of dimension d read. */
static int64_t width_of(const oly_slide *s, int d)
{
    return (s->extent[d] - 1) * s->stride[d] + (s->size[d] - 1) * s->dilation[d] + 1;
}

static int64_t whole_vectors(int64_t n)
{
    return (n + WHOLE - 1) / WHOLE * WHOLE;
}

/* What the positions of dimension d read is sorted by its remainder when divided by the stride, so that the elements of each tap are adjacent:
 * how many there are for a remainder, with those that fill up the last vector. */
static int64_t of_remainder(const oly_slide *s, int d, int64_t each)
{
    return (s->size[d] - 1) / s->stride[d] * each + whole_vectors(s->extent[d] * each);
}

static way way_of(const windowed *w)
{
    const oly_slide *s = &w->s;
    const int last = s->rank - 1;
    bool plain =
        s->taps > 0 && s->step[last] == 1 && OLY_ISA_NAME(oly_combiners).rows[w->combiner][w->t->out.dtype] != NULL;
    for (int d = 0; d <= last; d++)
        plain = plain && s->base_dilation[d] == 1;
    if (!plain)
        return BY_STRIPS;
    const bool channels = are_channels(s);
    const int along = channels ? last - 1 : last;
    const int64_t each = channels ? s->extent[last] : 1, sorted = oly_smaller(s->stride[along], s->size[along]);
    const int64_t most = oly_larger(width_of(s, along) * each, sorted * of_remainder(s, along, each)) * w->bytes;
    if (most > ROW_BYTES || (!channels && s->extent[last] < FEWEST_PLACES))
        return BY_STRIPS;
    return channels ? BY_CHANNEL : BY_PLACE;
}

static void fill_identity(const windowed *w, int64_t n, char *to)
{
    if (n > 0)
        OLY_ISA_NAME(oly_convert).fill[w->bytes](n, to, &w->identity);
}

/* What a row of positions, which lie along dimension d, reads of the operand's row at x (NULL: padding): `each` elements of an index, side by
 * side. *step: of an index, in elements. */
static const char *row_read(const windowed *w, int d, int64_t each, const char *x, char *room, int64_t *step)
{
    const oly_slide *s = &w->s;
    const int64_t n = width_of(s, d), at = s->origin[d] * s->stride[d] - s->lo[d], bytes = each * w->bytes;
    const int64_t from = x ? oly_slide_until(at, 1, s->begin[d], n) : n,
                  to = x ? oly_slide_until(at, 1, s->end[d], n) : n;
    const char *row = x ? x + (at - s->begin[d]) * s->step[d] * w->bytes : NULL;
    *step = s->step[d];
    if (from == 0 && to == n)
        return row;
    fill_identity(w, from * each, room);
    if (to > from && s->step[d] == each)
        memcpy(room + from * bytes, row + from * bytes, (size_t)((to - from) * bytes));
    else
        for (int64_t k = from; k < to; k++)
            memcpy(room + k * bytes, row + k * s->step[d] * w->bytes, (size_t)bytes);
    fill_identity(w, (n - (to > from ? to : from)) * each, room + (to > from ? to : from) * bytes);
    *step = each;
    return room;
}

static bool by_remainders(const oly_slide *s, int d, int64_t each)
{
    return s->dilation[d] == 1 && each < MANY_CHANNELS && each * s->stride[d] > 1;
}

/* One row of the window, combined with `to` (later) or written there, in whole vectors; `each` elements of an index of x, which are `step`
 * elements apart. */
static void combine_sorted(const windowed *w, int d, int64_t each, const char *x, int64_t step, bool later, char *to)
{
    const oly_slide *s = &w->s;
    const int64_t stride = s->stride[d], size = s->size[d], n = whole_vectors(s->extent[d] * each);
    const int64_t apart = of_remainder(s, d, each), by = stride * step;
    char room[ROW_BYTES] __attribute__((aligned(64)));
    for (int64_t r = 0; r < stride && r < size; r++) {
        const int64_t count = s->extent[d] + (size - 1 - r) / stride;
        char *row = room + r * apart * w->bytes;
        OLY_ISA_NAME(oly_convert)
            .gather[w->bytes](each == 1 ? 1 : count, each == 1 ? count : each, row, x + r * step * w->bytes,
                              each == 1 ? 0 : by, each == 1 ? by : 1);
        fill_identity(w, apart - count * each, row + count * each * w->bytes);
    }
    for (int64_t k = 0; k < size; k++) {
        const char *from = room + (k % stride * apart + k / stride * each) * w->bytes;
        if (k == 0 && !later)
            memcpy(to, from, (size_t)(n * w->bytes));
        else
            OLY_ISA_NAME(oly_combiners).pair[w->combiner][w->t->out.dtype](n, to, to, from);
    }
}

/* Row `number` of positions along dimension d, with `each` elements, the channels, of each. */
static void run_row(const windowed *w, int d, int64_t each, const char *x, int64_t number, char *to)
{
    const oly_slide *s = &w->s;
    int64_t first[OLY_MAX_WINDOW], tap[OLY_MAX_WINDOW] = {0}, rows = 1, rest = number;
    char room[ROW_BYTES] __attribute__((aligned(64))), whole[ROW_BYTES] __attribute__((aligned(64)));
    const bool sorted = by_remainders(s, d, each);
    for (int o = d - 1; o >= 0; o--) {
        first[o] = (s->origin[o] + rest % s->extent[o]) * s->stride[o] - s->lo[o];
        rest /= s->extent[o];
        rows *= s->size[o];
    }
    for (int64_t k = 0; k < rows; k++) {
        int64_t offset = 0, step;
        bool seen = x != NULL;
        for (int o = 0; o < d; o++) {
            const int64_t at = first[o] + tap[o] * s->dilation[o];
            seen = seen && at >= s->begin[o] && at < s->end[o];
            offset += (at - s->begin[o]) * s->step[o];
        }
        const char *row = row_read(w, d, each, seen ? x + offset * w->bytes : NULL, room, &step);
        if (sorted)
            combine_sorted(w, d, each, row, step, k > 0, whole);
        else
            OLY_ISA_NAME(oly_combiners)
                .rows[w->combiner][w->t->out.dtype](each, s->size[d], s->extent[d], to, row, s->dilation[d] * step,
                                                    s->stride[d] * step, k > 0);
        for (int o = d - 1; o >= 0 && ++tap[o] == s->size[o]; o--)
            tap[o] = 0;
    }
    if (sorted)
        memcpy(to, whole, (size_t)(s->extent[d] * each * w->bytes));
}

/* Without last dimensions of one position and one tap, in the operand: x is that element. */
static const char *without_single(oly_slide *s, const char *x, int bytes)
{
    for (int last = s->rank - 1; last > 0 && s->extent[last] == 1 && s->size[last] == 1; last--) {
        const int64_t at = s->origin[last] * s->stride[last] - s->lo[last];
        if (s->base_dilation[last] != 1 || at < s->begin[last] || at >= s->end[last])
            break;
        x = x ? x + (at - s->begin[last]) * s->step[last] * bytes : NULL;
        s->rank--;
    }
    return x;
}

void OLY_ISA_NAME(oly_window_run)(const oly_local_task *t, const void *const *in, void *out, void *scratch, int phase,
                                  int chunk, int n_chunks)
{
    (void)scratch, (void)phase;
    static const oly_combiner combiners[] = {OLY_COMBINE_SUM, OLY_COMBINE_PROD, OLY_COMBINE_MAX, OLY_COMBINE_MIN};
    windowed w = {.t = t,
                  .s = oly_slide_of(t),
                  .combiner = combiners[t->op - OLY_LOCAL_WINDOW_SUM],
                  .bytes = oly_element_bytes[t->out.dtype]};
    const int outer = t->out.rank - (int)t->window->rank;
    if (w.s.places == 0)
        return;
    const char *base = without_single(&w.s, in[0], w.bytes);
    const int last = w.s.rank - 1;
    oly_combine_identity(w.combiner, t->out.dtype, &w.identity, 1);
    int64_t lines = 1;
    for (int d = 0; d < outer; d++)
        lines *= t->out.extent[d];
    way by = way_of(&w);
    int64_t row = by == BY_PLACE     ? w.s.extent[last]
                  : by == BY_CHANNEL ? w.s.extent[last - 1] * w.s.extent[last]
                                     : STRIP;
    if (by != BY_STRIPS && lines * (w.s.places / row) < n_chunks) { /* too few for all threads */
        by = BY_STRIPS;
        row = STRIP;
    }
    const int64_t pieces = (w.s.places + row - 1) / row;
    for (int64_t k = lines * pieces * chunk / n_chunks; k < lines * pieces * (chunk + 1) / n_chunks; k++) {
        const int64_t number = k / pieces, piece = k % pieces, first = piece * row;
        char *to = (char *)out + (number * w.s.places + first) * w.bytes;
        const char *x = base;
        if (x)
            x += oly_local_offset(outer, t->out.extent, t->in[0].stride, -1, number) * w.bytes;
        switch (by) {
        case BY_CHANNEL:
            run_row(&w, last - 1, w.s.extent[last], x ? x + (w.s.origin[last] - w.s.begin[last]) * w.bytes : NULL,
                    piece, to);
            break;
        case BY_PLACE: run_row(&w, last, 1, x, piece, to); break;
        default: run_strips(&w, x, first, w.s.places - first < row ? w.s.places - first : row, to);
        }
    }
}
