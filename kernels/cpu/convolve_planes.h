/* SPDX-License-Identifier: BSD-3-Clause */
/* Convolutions by strips: the features of a strip of the operand are copied once, with the padding around them, so that each tap reads them at a
 * fixed distance from the result's position, counted through the padded strip; the few positions between rows are computed and not written. With
 * steps of more than one a strip falls into planes, one for each remainder of the elements' numbers: what a tap reads is side by side in one of
 * them. Compared with a matrix of what every tap reads, a ninth of the copies for 3 x 3 taps. Sums are in the order of convolve.c, DEPTH products
 * at a time, so bits are the same. For convolve.c alone; empty where the instruction set has no such vectors. */
#ifndef OLY_CPU_CONVOLVE_PLANES_H
#define OLY_CPU_CONVOLVE_PLANES_H
#include "cpu/convolve_block.h"
#include "cpu/gemm_real_tiles.h"
#include "cpu/transpose.h"

#ifdef OLY_HAS_TILES
enum {
    PLANE_BYTES = 1 << 18,      /* of a strip with its padding: they stay in the second cache; */
    PLANE_MOST_BYTES = 1 << 19, /* where so few rows would fit that they are read several times */
    PLANE_PLACES = 16384,       /* at most, counted through a strip */
    CLASS_PLACES = 2048,        /* the same of places that are computed elsewhere first */
    PLANE_DEPTH = 8192,         /* products of a sum, at most */
    PLANE_FEATURES = 8,         /* of the result in a group, at least */
    PLANE_ROW = 4,              /* elements of a row of the result, at least */
    PLANE_SLACK = 64            /* elements behind a strip that vectors may read */
};

/* How a convolution falls into strips: some rows of the first dimension of the window. */
typedef struct planes {
    int64_t most_places, fewest_features; /* counted through a strip; of the result in a group */
    int64_t features, depth;
    int64_t remainders[OLY_MAX_WINDOW]; /* of the elements' numbers divided by the step that taps read */
    int64_t planes, plane;              /* their product; elements between planes of a feature */
    int64_t rows, strips;               /* of the result, in one strip at most; strips */
    int64_t pitch[OLY_MAX_WINDOW];      /* of the padded strip's dimensions */
    int64_t padded[OLY_MAX_WINDOW];     /* their extents, of a plane of a strip with most rows */
    int64_t shared;                     /* elements of padding that a row has in common with the next one */
    int64_t feature;                    /* elements between features in it */
    int64_t out_row;                    /* between rows of what is computed */
    int groups;                         /* of products whose sum is added to the others' */
    int32_t group_end[PLANE_DEPTH];     /* their ends */
    int32_t seen[PLANE_DEPTH];          /* where each product's operand is, relative to the result's position */
    int64_t kernel[PLANE_DEPTH];        /* and its element of the kernel, relative to the row */
} planes;

/* Elements of padding that the rows of the last dimension share with the next ones: zeros on both sides of what is read. */
static int64_t shared_padding(const oly_slide *s)
{
    const int last = s->rank - 1;
    const int64_t first = s->origin[last] - s->lo[last], reach = (s->size[last] - 1) * s->dilation[last];
    int64_t low = s->begin[last] - first, high = first + s->extent[last] + reach - s->end[last];
    low = low < high ? low : high;
    return last == 0 || low < 0 || s->stride[last] != 1 ? 0 : low < reach ? low : reach;
}

/* Rows of the first dimension that fit into so many elements with those around them. */
static int64_t rows_that_fit(const planes *p, int64_t elements, int64_t row, int64_t more)
{
    const int64_t fit = (elements / (p->features * p->planes) - p->shared) / row - more, most = p->most_places / row;
    return fit < most ? fit : most;
}

/* Taps of the window that places read: in each dimension the first, and every so many after it. */
typedef struct chosen_taps {
    int64_t first[OLY_MAX_WINDOW], by[OLY_MAX_WINDOW];
    int64_t size[OLY_MAX_WINDOW], all; /* of the window; the product */
} chosen_taps;

/* Places of the result that read the same taps of the window where the operand is dilated (convolve_dilated.h). */
typedef struct place_class {
    oly_slide slide; /* of these places, over the operand as it is */
    chosen_taps taps;
    int64_t first[OLY_MAX_WINDOW], by[OLY_MAX_WINDOW]; /* the places */
    int64_t pitch[OLY_MAX_WINDOW], places;             /* of all places of the result */
} place_class;

static chosen_taps all_taps(const oly_slide *s)
{
    chosen_taps t = {.all = s->taps};
    for (int d = 0; d < s->rank; d++) {
        t.by[d] = 1;
        t.size[d] = s->size[d];
    }
    return t;
}

/* The number among all taps of the window of a tap that is chosen. */
static int64_t number_of_tap(const oly_slide *s, const chosen_taps *t, const int64_t *tap)
{
    int64_t number = 0;
    for (int d = 0; d < s->rank; d++)
        number = number * t->size[d] + t->first[d] + tap[d] * t->by[d];
    return number;
}

/* The first two of p are set. false: the convolution is not of this form, or other ways take less time. */
static bool are_planes(const block *b, planes *p)
{
    const oly_local_task *t = b->t;
    const oly_slide *s = &b->slide;
    const int64_t size = oly_element_bytes[t->out.dtype], groups = t->window->groups * t->window->batch_groups;
    int64_t places = 1, computed = 1;
    if ((t->out.dtype != OLY_FLOAT32 && t->out.dtype != OLY_FLOAT64) || s->places == 0 || b->depth == 0 ||
        b->depth > PLANE_DEPTH || s->extent[s->rank - 1] < PLANE_ROW || t->out.size[1] / groups < p->fewest_features)
        return false;
    p->features = t->in[1].extent[1];
    p->depth = b->depth;
    p->shared = shared_padding(s);
    p->planes = 1;
    for (int d = s->rank - 1; d >= 0; d--) {
        const int64_t reach = (s->size[d] - 1) * s->dilation[d], step = s->stride[d];
        if (s->base_dilation[d] != 1)
            return false;
        p->pitch[d] = computed;
        p->padded[d] = s->extent[d] + reach / step;
        p->remainders[d] = s->dilation[d] % step == 0 ? 1 : reach < step ? reach + 1 : step;
        p->planes *= p->remainders[d];
        if (d > 0) {
            computed *= p->padded[d] - (d == s->rank - 1 ? p->shared : 0);
            places *= s->extent[d];
        }
        if (computed > p->most_places)
            return false;
    }
    const int64_t more = p->padded[0] - s->extent[0];
    if (p->planes > 1 &&
        5 * p->planes * p->padded[0] * computed > 3 * s->taps * s->places) /* most elements are read by few taps */
        return false;
    int64_t most = rows_that_fit(p, PLANE_BYTES / size - PLANE_SLACK, computed, more);
    if (most < s->extent[0] && most < 2 * more)
        most = rows_that_fit(p, PLANE_MOST_BYTES / size - PLANE_SLACK, computed, more);
    if (most < 1 || (most < s->extent[0] && most < more) || 4 * computed > 5 * places) /* the last: mostly padding */
        return false;
    most = most < s->extent[0] ? most : s->extent[0];
    p->strips = (s->extent[0] + most - 1) / most;
    p->rows = (s->extent[0] + p->strips - 1) / p->strips;
    p->padded[0] = p->rows + more;
    p->plane = p->padded[0] * computed + p->shared;
    p->out_row = s->places;
    p->feature = p->planes * p->plane;
    return true;
}

/* Fills the tables of products: features one after the other, all taps of each. */
static void list_products(const block *b, const chosen_taps *t, planes *p)
{
    const oly_slide *s = &b->slide;
    const oly_local_operand *w = &b->t->in[1];
    const int rank = (int)b->t->window->rank;
    int32_t among_all[PLANE_DEPTH];
    for (int64_t number = 0; number < s->taps; number++) {
        int64_t tap[OLY_MAX_WINDOW] = {0}, at = 0, plane = 0, element = 0;
        oly_slide_indexes(s, s->size, number, tap);
        for (int d = 0; d < s->rank; d++) {
            at += tap[d] * s->dilation[d] / s->stride[d] * p->pitch[d];
            plane = plane * p->remainders[d] + tap[d] * s->dilation[d] % s->stride[d];
        }
        at += plane * p->plane;
        among_all[number] = (int32_t)number_of_tap(s, t, tap);
        for (int d = 0; d < rank; d++)
            element += (t->first[d] + tap[d] * t->by[d]) * w->stride[2 + d];
        for (int64_t f = 0; f < p->features; f++) {
            p->seen[f * s->taps + number] = (int32_t)(f * p->feature + at);
            p->kernel[f * s->taps + number] = f * w->stride[1] + element;
        }
    }
    int64_t end = DEPTH; /* of the group, among the products with all taps */
    p->groups = 0;
    for (int64_t f = 0; f < p->features; f++)
        for (int64_t k = 0; k < s->taps; k++) {
            const int64_t l = f * t->all + among_all[k];
            if (l < end)
                continue;
            if (f + k > 0)
                p->group_end[p->groups++] = (int32_t)(f * s->taps + k);
            end = (l / DEPTH + 1) * DEPTH;
        }
    p->group_end[p->groups++] = (int32_t)p->depth;
}

/* The part of a vector of positions that is one row's: the mask of its lanes, and where its lane 0 would be in the result. */
typedef struct plane_part {
    uint32_t mask;
    int32_t at;
} plane_part;
typedef struct plane_parts {
    int vectors;
    int16_t first[PLANE_PLACES / 4 + 2]; /* of each vector, and the end */
    plane_part part[PLANE_PLACES / 4 + PLANE_PLACES / PLANE_ROW + 2];
} plane_parts;

/* rows: of the strip. */
static void list_parts(const block *b, const planes *p, int64_t rows, int lanes, plane_parts *parts)
{
    const oly_slide *s = &b->slide;
    const int last = s->rank - 1;
    int64_t extent[OLY_MAX_WINDOW], lines = 1, place[OLY_MAX_WINDOW] = {0};
    int n = 0, vector = 0;
    for (int d = 0; d <= last; d++)
        extent[d] = d == 0 ? rows : s->extent[d];
    for (int d = 0; d < last; d++)
        lines *= extent[d];
    parts->first[0] = 0;
    for (int64_t line = 0; line < lines; line++) {
        int64_t begin = 0;
        for (int d = 0; d < last; d++)
            begin += place[d] * p->pitch[d];
        for (int64_t k = begin, end = begin + extent[last]; k < end;) {
            while (vector < k / lanes)
                parts->first[++vector] = (int16_t)n;
            const int64_t until = (k / lanes + 1) * lanes < end ? (k / lanes + 1) * lanes : end;
            parts->part[n++] =
                (plane_part){TILE_ALL(until - k) << k % lanes, (int32_t)(line * extent[last] + k - begin - k % lanes)};
            k = until;
        }
        for (int d = last - 1; d >= 0 && ++place[d] == extent[d]; d--)
            place[d] = 0;
    }
    parts->first[++vector] = (int16_t)n;
    parts->vectors = vector;
}

#define OLY_CONVOLVE_PLANES(s, T, V, M, lanes, SET, LOAD, STORE, MADD)                                                     \
    /* n elements, `by` apart. */                                                                                          \
    static void spread_##s(int64_t n, T *to, const T *from, int64_t by)                                                    \
    {                                                                                                                      \
        if (by == 1)                                                                                                       \
            memcpy(to, from, sizeof(T) * (size_t)n);                                                                       \
        else if (by == 2) /* which compilers make vectors of */                                                            \
            for (int64_t k = 0; k < n; k++)                                                                                \
                to[k] = from[2 * k];                                                                                       \
        else                                                                                                               \
            for (int64_t k = 0; k < n; k++)                                                                                \
                to[k] = from[k * by];                                                                                      \
    }                                                                                                                      \
    /* One plane of `rows` rows of the padded strip from row `row` of the result on. x: feature 0 of the operand. */       \
    static void pad_plane_##s(const block *b, const planes *p, const int64_t *remainder, int64_t row, int64_t rows,        \
                              const T *x, T *strip)                                                                        \
    {                                                                                                                      \
        const oly_slide *v = &b->slide;                                                                                    \
        const int last = v->rank - 1;                                                                                      \
        const int64_t feature = b->t->in[0].stride[1], step = v->stride[last], by = step * v->step[last];                  \
        int64_t lines = 1, place[OLY_MAX_WINDOW] = {0}, extent[OLY_MAX_WINDOW] = {0}, start[OLY_MAX_WINDOW] = {0};         \
        for (int d = 0; d <= last; d++) {                                                                                  \
            extent[d] = d == 0 ? rows + p->padded[0] - p->rows : p->padded[d];                                             \
            start[d] = (v->origin[d] + (d == 0 ? row : 0)) * v->stride[d] - v->lo[d] + remainder[d];                       \
            lines *= d < last ? extent[d] : 1;                                                                             \
        }                                                                                                                  \
        const int64_t at = start[last], n = extent[last];                                                                  \
        for (int64_t line = 0; line < lines; line++) {                                                                     \
            int64_t from = 0, to = 0;                                                                                      \
            bool seen = true;                                                                                              \
            for (int d = 0; d < last; d++) {                                                                               \
                const int64_t i = start[d] + place[d] * v->stride[d];                                                      \
                seen = seen && i >= v->begin[d] && i < v->end[d];                                                          \
                from += (i - v->begin[d]) * v->step[d];                                                                    \
                to += place[d] * p->pitch[d];                                                                              \
            }                                                                                                              \
            for (int d = last - 1; d >= 0 && ++place[d] == extent[d]; d--)                                                 \
                place[d] = 0;                                                                                              \
            const int64_t low = seen ? oly_slide_until(at, step, v->begin[last], n) : n;                                   \
            const int64_t high = seen ? oly_slide_until(at, step, v->end[last], n) : n;                                    \
            const int64_t of = from + (at + low * step - v->begin[last]) * v->step[last];                                  \
            const bool together = feature == 1 && by != 1;                                                                 \
            T *y = strip + to;                                                                                             \
            for (int64_t f = 0; f < p->features; f++) {                                                                    \
                memset(y + f * p->feature, 0, sizeof(T) * (size_t)low);                                                    \
                if (high > low && !together)                                                                               \
                    spread_##s(high - low, y + f * p->feature + low, x + of + f * feature, by);                            \
                if (high >= low)                                                                                           \
                    memset(y + f * p->feature + high, 0, sizeof(T) * (size_t)(n - high));                                  \
            }                                                                                                              \
            if (high > low && together)                                                                                    \
                turn_##s(high - low, p->features, y + low, p->feature, x + of, by);                                        \
        }                                                                                                                  \
    }                                                                                                                      \
    static void pad_##s(const block *b, const planes *p, int64_t row, int64_t rows, const T *x, T *strip)                  \
    {                                                                                                                      \
        for (int64_t plane = 0; plane < p->planes; plane++) {                                                              \
            int64_t remainder[OLY_MAX_WINDOW] = {0};                                                                       \
            oly_slide_indexes(&b->slide, p->remainders, plane, remainder);                                                 \
            pad_plane_##s(b, p, remainder, row, rows, x, strip + plane * p->plane);                                        \
        }                                                                                                                  \
    }                                                                                                                      \
    /* Vectors from `vector` on, `rows` rows of the result. */                                                             \
    static inline __attribute__((always_inline)) void plane_tile_##s(                                                      \
        const int rows, const int vectors, const block *b, const planes *p, const plane_parts *parts, int vector,          \
        const T *strip, const T *w, T *out)                                                                                \
    {                                                                                                                      \
        V total[TILE_ROWS][TILE_VECTORS], sum[TILE_ROWS][TILE_VECTORS], x[TILE_VECTORS];                                   \
        const int64_t row = b->t->in[1].stride[0];                                                                         \
        const int32_t *seen = p->seen;                                                                                     \
        const int64_t *kernel = p->kernel;                                                                                 \
        strip += vector * (lanes);                                                                                         \
        _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                                                             \
            _Pragma("GCC unroll 3") for (int v = 0; v < vectors; v++) total[r][v] = SET(0);                                \
        for (int64_t group = 0, from = 0; group < p->groups; from = p->group_end[group++]) {                               \
            const int64_t end = p->group_end[group];                                                                       \
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                                                         \
                _Pragma("GCC unroll 3") for (int v = 0; v < vectors; v++) sum[r][v] = SET(0);                              \
            for (int64_t l = from; l < end; l++) {                                                                         \
                const T *y = w + kernel[l];                                                                                \
                _Pragma("GCC unroll 3") for (int v = 0; v < vectors; v++) x[v] =                                           \
                    LOAD((M)TILE_ALL(lanes), strip + seen[l] + v * (lanes));                                               \
                _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                                                     \
                {                                                                                                          \
                    const V z = SET(y[r * row]);                                                                           \
                    _Pragma("GCC unroll 3") for (int v = 0; v < vectors; v++) sum[r][v] = MADD(sum[r][v], z, x[v]);        \
                }                                                                                                          \
            }                                                                                                              \
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                                                         \
                _Pragma("GCC unroll 3") for (int v = 0; v < vectors; v++) total[r][v] =                                    \
                    MADD(sum[r][v], SET(1), total[r][v]);                                                                  \
        }                                                                                                                  \
        _Pragma("GCC unroll 3") for (int v = 0; v < vectors; v++) for (int k = parts->first[vector + v];                   \
                                                                       k < parts->first[vector + v + 1]; k++)              \
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                                                         \
                STORE(out + r * p->out_row + parts->part[k].at, (M)parts->part[k].mask, total[r][v]);                      \
    }                                                                                                                      \
    static inline __attribute__((always_inline)) void plane_rows_##s(                                                      \
        const int rows, const block *b, const planes *p, const plane_parts *parts, const T *strip, const T *w, T *out)     \
    {                                                                                                                      \
        int v = 0;                                                                                                         \
        for (; v + TILE_VECTORS <= parts->vectors; v += TILE_VECTORS)                                                      \
            plane_tile_##s(rows, TILE_VECTORS, b, p, parts, v, strip, w, out);                                             \
        if (TILE_VECTORS > 2 && v + 2 <= parts->vectors) {                                                                 \
            plane_tile_##s(rows, 2, b, p, parts, v, strip, w, out);                                                        \
            v += 2;                                                                                                        \
        }                                                                                                                  \
        if (v < parts->vectors)                                                                                            \
            plane_tile_##s(rows, 1, b, p, parts, v, strip, w, out);                                                        \
    }                                                                                                                      \
    static __attribute__((noinline)) void planes_together_##s(                                                             \
        int64_t rows, const block *b, const planes *p, const plane_parts *parts, const T *strip, const T *w, T *out)       \
    {                                                                                                                      \
        switch (rows) {                                                                                                    \
        case TILE_ROWS: plane_rows_##s(TILE_ROWS, b, p, parts, strip, w, out); break;                                      \
        case 4: plane_rows_##s(4, b, p, parts, strip, w, out); break;                                                      \
        case 2: plane_rows_##s(2, b, p, parts, strip, w, out); break;                                                      \
        default: plane_rows_##s(1, b, p, parts, strip, w, out);                                                            \
        }                                                                                                                  \
    }                                                                                                                      \
    /* A row of the result at the places of class c, strip rows [row, row + rows). from: NULL for zeros. */                \
    static void spread_places_##s(const place_class *c, int64_t row, int64_t rows, const T *from, T *out)                  \
    {                                                                                                                      \
        const int last = c->slide.rank - 1;                                                                                \
        const int64_t by = c->by[last];                                                                                    \
        int64_t lines = 1, place[OLY_MAX_WINDOW] = {0}, extent[OLY_MAX_WINDOW] = {0};                                      \
        for (int d = 0; d <= last; d++) {                                                                                  \
            extent[d] = d == 0 ? rows : c->slide.extent[d];                                                                \
            lines *= d < last ? extent[d] : 1;                                                                             \
        }                                                                                                                  \
        for (int64_t line = 0; line < lines; line++) {                                                                     \
            T *to = out;                                                                                                   \
            for (int d = 0; d <= last; d++)                                                                                \
                to += (c->first[d] + c->by[d] * (place[d] + (d == 0 ? row : 0))) * c->pitch[d];                            \
            for (int64_t k = 0; k < extent[last]; k++)                                                                     \
                to[k * by] = from ? from[line * extent[last] + k] : 0;                                                     \
            for (int d = last - 1; d >= 0 && ++place[d] == extent[d]; d--)                                                 \
                place[d] = 0;                                                                                              \
        }                                                                                                                  \
    }                                                                                                                      \
    /* Rows [b->row, b->row + b->rows) of a strip, out: the first of them in the result. c: of these places; NULL: all. */ \
    static void convolve_planes_##s(const block *b, const planes *p, const place_class *c, int64_t strip, const T *x,      \
                                    const T *w, T *out)                                                                    \
    {                                                                                                                      \
        T padded[PLANE_MOST_BYTES / sizeof(T)] __attribute__((aligned(64)));                                               \
        T some[TILE_ROWS * CLASS_PLACES] __attribute__((aligned(64)));                                                     \
        plane_parts parts;                                                                                                 \
        const int64_t row = strip * p->rows, left = b->slide.extent[0] - row, rows = left < p->rows ? left : p->rows;      \
        if (rows <= 0)                                                                                                     \
            return;                                                                                                        \
        pad_##s(b, p, row, rows, x, padded);                                                                               \
        memset(padded + p->features * p->feature, 0, sizeof(T) * PLANE_SLACK);                                             \
        list_parts(b, p, rows, (lanes), &parts);                                                                           \
        if (!c)                                                                                                            \
            out += row * (b->slide.places / b->slide.extent[0]);                                                           \
        for (int64_t k = 0, n; k < b->rows; k += n) {                                                                      \
            n = rows_together(b->rows - k);                                                                                \
            planes_together_##s(n, b, p, &parts, padded, w + k * b->t->in[1].stride[0],                                    \
                                c ? some : out + k * p->out_row);                                                          \
            for (int64_t r = 0; c && r < n; r++)                                                                           \
                spread_places_##s(c, row, rows, some + r * p->out_row, out + (k + r) * c->places);                         \
        }                                                                                                                  \
    }
OLY_REAL_VECTORS(OLY_CONVOLVE_PLANES)
#endif
#endif
