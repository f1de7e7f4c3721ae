/* SPDX-License-Identifier: BSD-3-Clause */
/* The strip layout of the stencil kernels, and conversion to and from it. Included once for float and once for double, as
 * stencil_vector.h.
 *
 * A row of `count` points is stored as `columns` vectors; lane l of vector k is point l * columns + k. So each lane has its
 * own strip of the row, the neighbours of a vector are whole vectors, and no load is unaligned:
 *
 *      point   0 1 2 3 4 5 6 7 8 9 a b        columns = 3, 4 lanes
 *      vector  0: 0 3 6 9    1: 1 4 7 a    2: 2 5 8 b
 *
 * On either side of a row are ghosts: vector -1 is vector columns-1 shifted up one lane, vector `columns` is vector 0
 * shifted down one lane. The first and the last lane get an arbitrary value of the row there; per step it invalidates as
 * many points at the ends of the window as the taps reach, which are not used any more. Lanes past `count` repeat the last
 * point. */

#include "stencil_vector.h"

typedef JOIN(bits, REAL_BYTES) NAME(mask) __attribute__((vector_size(STENCIL_VECTOR_BYTES), may_alias));

/* All bits set in one lane. */
static inline V NAME(only_lane)(int64_t lane)
{
    NAME(mask) m = {0};
    m[lane] = -1;
    return (V)m;
}

/* Lanes of a where the mask is set, else of b. */
static inline V NAME(choose)(V lanes, V a, V b)
{
    NAME(mask) m = (NAME(mask))lanes;
    return (V)((m & (NAME(mask))a) | (~m & (NAME(mask))b));
}

/* STAGES(X): X(distance, indices that gather the low half of each pair, the high half); MOVE_UP, MOVE_DOWN: by one
 * lane. */
#if LANES == 2
#define STAGES(X) X(1, (0, 2), (1, 3))
#define MOVE_UP   (0, 0)
#define MOVE_DOWN (1, 1)
#elif LANES == 4
#define STAGES(X) X(1, (0, 4, 2, 6), (1, 5, 3, 7)) X(2, (0, 1, 4, 5), (2, 3, 6, 7))
#define MOVE_UP   (0, 0, 1, 2)
#define MOVE_DOWN (1, 2, 3, 3)
#elif LANES == 8
#define STAGES(X)                                                                                                      \
    X(1, (0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15))                                                     \
    X(2, (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15))                                                     \
    X(4, (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15))
#define MOVE_UP   (0, 0, 1, 2, 3, 4, 5, 6)
#define MOVE_DOWN (1, 2, 3, 4, 5, 6, 7, 7)
#elif LANES == 16
#define STAGES(X)                                                                                                      \
    X(1, (0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30),                                                  \
      (1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31))                                                     \
    X(2, (0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),                                                   \
      (2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))                                                    \
    X(4, (0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),                                                   \
      (4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))                                                    \
    X(8, (0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),                                                     \
      (8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
#define MOVE_UP   (0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)
#define MOVE_DOWN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 15)
#endif
#define UNWRAP(...)          __VA_ARGS__
#define SHUFFLE(a, b, ...)   __builtin_shufflevector(a, b, __VA_ARGS__)
#define SHUFFLE_(a, b, list) SHUFFLE(a, b, UNWRAP list)

/* Transposes a square of LANES vectors. */
static inline __attribute__((always_inline)) void NAME(transpose)(V m[LANES])
{
#define STAGE(distance, low, high)                                                                                     \
    _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) if (!(i & distance))                                      \
    {                                                                                                                  \
        V a = m[i], b = m[i + distance];                                                                               \
        m[i] = SHUFFLE_(a, b, low);                                                                                    \
        m[i + distance] = SHUFFLE_(a, b, high);                                                                        \
    }
    STAGES(STAGE)
#undef STAGE
}

static inline void NAME(refresh_ghosts)(V *row, int64_t columns, int n)
{
    for (int j = 1; j <= n; j++) {
        row[-j] = SHUFFLE_(row[columns - j], row[columns - j], MOVE_UP);
        row[columns + j - 1] = SHUFFLE_(row[j - 1], row[j - 1], MOVE_DOWN);
    }
}

/* Vectors of a row of `count` points: enough for ghosts to come from the adjacent lane. */
static inline int64_t NAME(columns)(int64_t count)
{
    int64_t columns = (count + LANES - 1) / LANES, least = LANES > OLY_STENCIL_GHOSTS ? LANES : OLY_STENCIL_GHOSTS;
    return columns < least ? least : columns;
}

/* Position of point x of a row, in elements. */
static inline int64_t NAME(element)(int64_t x, int64_t columns)
{
    return x % columns * LANES + x / columns;
}

/* Blocks of LANES columns; the last one overlaps the one before, so there is no remainder. */
#define FOR_EACH_SQUARE(k, columns)                                                                                    \
    for (int64_t k = 0; k < (columns);                                                                                 \
         k = k + LANES < (columns) && k + 2 * LANES > (columns) ? (columns)-LANES : k + LANES)

/* Copies `count` points into strip layout, times `scale`, through `spare` (one row), so that the last lanes need no
 * special case. */
static void NAME(fill)(V *row, int64_t columns, const REAL *from, int64_t count, REAL scale, REAL *spare)
{
    V factor = NAME(spread)(scale);
    memcpy(spare, from, (size_t)count * sizeof(REAL));
    for (int64_t x = count; x < columns * LANES; x++)
        spare[x] = from[count - 1];
    FOR_EACH_SQUARE(k, columns)
    {
        V m[LANES];
#pragma GCC unroll 16
        for (int l = 0; l < LANES; l++)
            m[l] = *(const NAME(loose) *)(spare + l * columns + k) * factor;
        NAME(transpose)(m);
#pragma GCC unroll 16
        for (int l = 0; l < LANES; l++)
            row[k + l] = m[l];
    }
}

/* Copies points [begin, end) of a row out of strip layout, times `scale`, to to[0], to[1], ... */
static void NAME(drain)(const V *row, int64_t columns, REAL *to, int64_t begin, int64_t end, REAL scale, REAL *spare)
{
    V factor = NAME(spread)(scale);
    FOR_EACH_SQUARE(k, columns)
    {
        V m[LANES];
#pragma GCC unroll 16
        for (int l = 0; l < LANES; l++)
            m[l] = row[k + l] * factor;
        NAME(transpose)(m);
#pragma GCC unroll 16
        for (int l = 0; l < LANES; l++)
            *(NAME(loose) *)(spare + l * columns + k) = m[l];
    }
    memcpy(to, spare + begin, (size_t)(end - begin) * sizeof(REAL));
}
