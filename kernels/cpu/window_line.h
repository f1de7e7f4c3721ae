/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by convolve.c and window.c: writes the elements that one tap of a sliding window reads, for a run of
 * positions, side by side. Inside kernels/cpu. */
#ifndef OLY_CPU_WINDOW_LINE_H
#define OLY_CPU_WINDOW_LINE_H
#include "local_table.h"
#include <string.h>

/* The window's dimensions of operand and result, at least one. */
typedef struct oly_slide {
    int rank;
    int64_t places, taps;                                   /* products of extent and size */
    int64_t extent[OLY_MAX_WINDOW], origin[OLY_MAX_WINDOW]; /* of the result's box */
    int64_t size[OLY_MAX_WINDOW], stride[OLY_MAX_WINDOW], lo[OLY_MAX_WINDOW], base_dilation[OLY_MAX_WINDOW],
        dilation[OLY_MAX_WINDOW];
    int64_t begin[OLY_MAX_WINDOW], end[OLY_MAX_WINDOW]; /* of the operand's box */
    int64_t step[OLY_MAX_WINDOW];                       /* its strides in elements */
} oly_slide;

static inline oly_slide oly_slide_of(const oly_local_task *t)
{
    const oly_sliding_window *w = t->window;
    oly_slide s = {.rank = 1,
                   .places = 1,
                   .taps = 1,
                   .extent = {1},
                   .size = {1},
                   .stride = {1},
                   .base_dilation = {1},
                   .dilation = {1},
                   .end = {1}};
    int first = t->out.rank - (int)w->rank;
    for (int d = 0; d < w->rank; d++) {
        const oly_local_operand *x = &t->in[0];
        s.extent[d] = t->out.extent[first + d];
        s.origin[d] = t->out.origin[first + d];
        s.size[d] = w->size[d];
        s.stride[d] = w->stride[d];
        s.lo[d] = w->lo[d];
        s.base_dilation[d] = w->base_dilation[d];
        s.dilation[d] = w->dilation[d];
        s.begin[d] = x->origin[first + d];
        s.end[d] = s.begin[d] + x->extent[first + d];
        s.step[d] = x->stride[first + d];
        s.places *= s.extent[d];
        s.taps *= s.size[d];
        s.rank = d + 1;
    }
    return s;
}

/* Converts a row-major number to indexes. */
static inline void oly_slide_indexes(const oly_slide *s, const int64_t *extent, int64_t number, int64_t *index)
{
    for (int d = s->rank - 1; d >= 0; d--) {
        index[d] = number % extent[d];
        number /= extent[d];
    }
}

/* Finds the operand's row that the tap reads for this row of positions: the offset of its element 0 in all dimensions
 * but the last. False: padding. */
static inline bool oly_slide_row(const oly_slide *s, const int64_t *place, const int64_t *tap, int64_t *offset)
{
    *offset = 0;
    for (int d = 0; d < s->rank - 1; d++) {
        int64_t at = (s->origin[d] + place[d]) * s->stride[d] - s->lo[d] + tap[d] * s->dilation[d];
        if (at < 0 || at % s->base_dilation[d] != 0)
            return false;
        at /= s->base_dilation[d];
        if (at < s->begin[d] || at >= s->end[d])
            return false;
        *offset += (at - s->begin[d]) * s->step[d];
    }
    return true;
}

/* Smallest k >= 0 with from + k * by >= least, at most n. */
static inline int64_t oly_slide_until(int64_t from, int64_t by, int64_t least, int64_t n)
{
    if (from >= least)
        return 0;
    int64_t k = (least - from + by - 1) / by;
    return k < n ? k : n;
}

/* Of n positions that read a dilated operand those that meet an element of it: every period-th from the first on, `by` elements apart. */
typedef struct oly_slide_grid {
    int64_t first, period, n;
    int64_t element, by;
} oly_slide_grid;

/* at: where in the dilated operand position 0 reads, by: how far apart the positions are. */
static inline oly_slide_grid oly_slide_grid_of(int64_t at, int64_t by, int64_t dilation, int64_t begin, int64_t end,
                                               int64_t n)
{
    oly_slide_grid g = {.period = 1};
    while (by * g.period % dilation != 0)
        g.period++;
    while (g.first < g.period && (at + g.first * by) % dilation != 0)
        g.first++;
    if (g.first == g.period || g.first >= n)
        return g;
    int64_t count = (n - g.first + g.period - 1) / g.period, element = (at + g.first * by) / dilation;
    g.by = by * g.period / dilation;
    int64_t from = oly_slide_until(element, g.by, begin, count), to = oly_slide_until(element, g.by, end, count);
    g.n = to > from ? to - from : 0;
    g.element = element + from * g.by;
    g.first += from * g.period;
    return g;
}

/* line_<bits>: out[0, n) for positions [first, first + n) of the result's box, as tap `tap` reads them; x points to the
 * operand's box, at the position in the dimensions before the window's. `padding`: the element there. */
#define OLY_WINDOW_LINE(bits, T)                                                                                       \
    static void run_##bits(const oly_slide *s, int64_t at, const T *row, T padding, int64_t n, T *out)                 \
    {                                                                                                                  \
        int d = s->rank - 1;                                                                                           \
        int64_t by = s->stride[d], begin = s->begin[d], end = s->end[d], step = s->step[d];                            \
        if (s->base_dilation[d] > 1) {                                                                                 \
            oly_slide_grid g = oly_slide_grid_of(at, by, s->base_dilation[d], begin, end, n);                          \
            for (int64_t k = 0; k < n; k++)                                                                            \
                out[k] = padding;                                                                                      \
            for (int64_t k = 0; k < g.n; k++)                                                                          \
                out[g.first + k * g.period] = row[(g.element - begin + k * g.by) * step];                              \
            return;                                                                                                    \
        }                                                                                                              \
        int64_t from = oly_slide_until(at, by, begin, n), to = oly_slide_until(at, by, end, n), k = 0;                 \
        for (; k < from; k++)                                                                                          \
            out[k] = padding;                                                                                          \
        const T *x = row + (at + from * by - begin) * step;                                                            \
        step *= by;                                                                                                    \
        if (step == 1 && to > from)                                                                                    \
            memcpy(out + from, x, sizeof(T) * (size_t)(to - from));                                                    \
        else                                                                                                           \
            for (k = 0; k < to - from; k++)                                                                            \
                out[from + k] = x[k * step];                                                                           \
        for (k = to > from ? to : from; k < n; k++)                                                                    \
            out[k] = padding;                                                                                          \
    }                                                                                                                  \
    static void line_##bits(const oly_slide *s, const int64_t *tap, int64_t first, int64_t n, const T *x, T padding,   \
                            T *out)                                                                                    \
    {                                                                                                                  \
        int d = s->rank - 1;                                                                                           \
        for (int64_t done = 0, length; done < n; done += length) {                                                     \
            int64_t place[OLY_MAX_WINDOW] = {0}, offset;                                                               \
            oly_slide_indexes(s, s->extent, first + done, place);                                                      \
            length = s->extent[d] - place[d] < n - done ? s->extent[d] - place[d] : n - done;                          \
            int64_t at = (s->origin[d] + place[d]) * s->stride[d] - s->lo[d] + tap[d] * s->dilation[d];                \
            if (x && oly_slide_row(s, place, tap, &offset))                                                            \
                run_##bits(s, at, x + offset, padding, length, out + done);                                            \
            else                                                                                                       \
                for (int64_t k = 0; k < length; k++)                                                                   \
                    out[done + k] = padding;                                                                           \
        }                                                                                                              \
    }
#endif
