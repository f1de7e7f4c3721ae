/* SPDX-License-Identifier: BSD-3-Clause */
/* Sliding windows whose elements are combined: sum, product, largest, smallest. Compiled once per instruction set;
 * gives oly_window_run_<isa>, called through local.c. Elements are combined in the order of the window. */
#include "cpu/window_line.h"

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

enum { FEWEST_CHANNELS = 4, FEWEST_PLACES = 8, ROW_BYTES = 16384 };

/* How the rows of the last dimensions are combined: both by the combiners for rows, which take all elements of a row of the window. */
typedef enum way {
    BY_STRIPS, /* they are not */
    BY_CHANNEL, /* the window has one element of the last dimension, as of channels that come last: all of a place's together */
    BY_PLACE /* the window slides along the last dimension: next to padding a copy of what it reads */
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
    if (are_channels(s))
        return BY_CHANNEL;
    return s->stride[last] == 1 && s->extent[last] >= FEWEST_PLACES && width_of(s, last) * w->bytes <= ROW_BYTES
               ? BY_PLACE
               : BY_STRIPS;
}

/* Do all taps of positions [place, place + n) of dimension d read elements of the operand's part? *offset: the first one's is added. */
static bool all_inside(const oly_slide *s, int d, int64_t place, int64_t n, int64_t *offset)
{
    const int64_t at = (s->origin[d] + place) * s->stride[d] - s->lo[d];
    *offset += (at - s->begin[d]) * s->step[d];
    return at >= s->begin[d] && at + (n - 1) * s->stride[d] + (s->size[d] - 1) * s->dilation[d] < s->end[d];
}

/* Row `number` of the places before the channels. Next to padding by strips. */
static void run_channels(const windowed *w, const char *x, int64_t number, char *to)
{
    const oly_slide *s = &w->s;
    const int row = s->rank - 2;
    const int64_t channels = s->extent[row + 1], places = s->extent[row];
    int64_t place[OLY_MAX_WINDOW] = {0}, tap[OLY_MAX_WINDOW] = {0}, rows = 1, rest = number,
            offset = s->origin[row + 1] - s->begin[row + 1];
    bool inside = x != NULL;
    for (int d = row - 1; d >= 0; d--) {
        place[d] = rest % s->extent[d];
        rest /= s->extent[d];
        rows *= s->size[d];
        inside = all_inside(s, d, place[d], 1, &offset) && inside;
    }
    if (!all_inside(s, row, 0, places, &offset) || !inside) {
        run_strips(w, x, number * places * channels, places * channels, to);
        return;
    }
    for (int64_t k = 0; k < rows; k++) {
        int64_t from = offset;
        for (int d = 0; d < row; d++)
            from += tap[d] * s->dilation[d] * s->step[d];
        OLY_ISA_NAME(oly_combiners)
            .rows[w->combiner][w->t->out.dtype](channels, s->size[row], places, to, x + from * w->bytes,
                                                s->dilation[row] * s->step[row], s->stride[row] * s->step[row], k > 0);
        for (int d = row - 1; d >= 0 && ++tap[d] == s->size[d]; d--)
            tap[d] = 0;
    }
}

static void fill_identity(const windowed *w, int64_t n, char *to)
{
    if (n > 0)
        OLY_ISA_NAME(oly_convert).fill[w->bytes](n, to, &w->identity);
}

/* What the positions of a row read of the operand's row at `offset` (false: padding), side by side. */
static const char *row_read(const windowed *w, const char *x, bool seen, int64_t offset, char *room)
{
    const oly_slide *s = &w->s;
    const int last = s->rank - 1;
    const int64_t n = width_of(s, last), at = s->origin[last] * s->stride[last] - s->lo[last];
    const int64_t from = seen ? oly_slide_until(at, 1, s->begin[last], n) : n;
    const int64_t to = seen ? oly_slide_until(at, 1, s->end[last], n) : n;
    const char *row = seen ? x + (offset + at - s->begin[last]) * w->bytes : NULL;
    if (from == 0 && to == n)
        return row;
    fill_identity(w, from, room);
    if (to > from)
        memcpy(room + from * w->bytes, row + from * w->bytes, (size_t)((to - from) * w->bytes));
    fill_identity(w, n - (to > from ? to : from), room + (to > from ? to : from) * w->bytes);
    return room;
}

/* Row `number` of the result. */
static void run_places(const windowed *w, const char *x, int64_t number, char *to)
{
    const oly_slide *s = &w->s;
    const int last = s->rank - 1;
    int64_t first[OLY_MAX_WINDOW], tap[OLY_MAX_WINDOW] = {0}, rows = 1, rest = number;
    char room[ROW_BYTES] __attribute__((aligned(64)));
    for (int d = last - 1; d >= 0; d--) {
        first[d] = (s->origin[d] + rest % s->extent[d]) * s->stride[d] - s->lo[d];
        rest /= s->extent[d];
        rows *= s->size[d];
    }
    for (int64_t k = 0; k < rows; k++) {
        int64_t offset = 0;
        bool seen = x != NULL;
        for (int d = 0; d < last; d++) {
            const int64_t at = first[d] + tap[d] * s->dilation[d];
            seen = seen && at >= s->begin[d] && at < s->end[d];
            offset += (at - s->begin[d]) * s->step[d];
        }
        OLY_ISA_NAME(oly_combiners)
            .rows[w->combiner][w->t->out.dtype](1, s->size[last], s->extent[last], to,
                                                row_read(w, x, seen, offset, room), s->dilation[last], 1, k > 0);
        for (int d = last - 1; d >= 0 && ++tap[d] == s->size[d]; d--)
            tap[d] = 0;
    }
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
    const int outer = t->out.rank - (int)t->window->rank, last = w.s.rank - 1;
    if (w.s.places == 0)
        return;
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
        const char *x = in[0];
        if (x)
            x += oly_local_offset(outer, t->out.extent, t->in[0].stride, -1, number) * w.bytes;
        switch (by) {
        case BY_CHANNEL: run_channels(&w, x, piece, to); break;
        case BY_PLACE: run_places(&w, x, piece, to); break;
        default: run_strips(&w, x, first, w.s.places - first < row ? w.s.places - first : row, to);
        }
    }
}
