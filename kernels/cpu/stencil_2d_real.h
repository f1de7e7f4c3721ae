/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of stencil_2d.c for one element type; included there, once per type. */
#include "stencil_vector.h"

static inline __attribute__((always_inline)) void NAME(walk)(V *const rows[6], int64_t columns, V side, V ratio,
                                                             int first, int second, int third, int fourth)
{
    V *row[6] = {rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]};
    V left[4], middle[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        left[j] = row[j + 1][-1];
        middle[j] = row[j + 1][0];
    }
#define STEP(k)                                                                                                        \
    {                                                                                                                  \
        V right[4], result[4], above = row[0][k], below = row[5][k];                                                   \
        _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++)                                                            \
        {                                                                                                              \
            right[j] = row[j + 1][(k) + 1];                                                                            \
            V side_of[4] = {j > 0 ? middle[j - 1] : above, j < 3 ? middle[j + 1] : below, left[j], right[j]};          \
            V sum = NAME(fused)(ratio, middle[j], side_of[first]);                                                     \
            sum += side_of[second];                                                                                    \
            sum += side_of[third];                                                                                     \
            sum += side_of[fourth];                                                                                    \
            result[j] = side * sum;                                                                                    \
        }                                                                                                              \
        _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++)                                                            \
        {                                                                                                              \
            row[j][k] = result[j];                                                                                     \
            left[j] = middle[j];                                                                                       \
            middle[j] = right[j];                                                                                      \
        }                                                                                                              \
    }
    int64_t k = 0;
    for (; k + 2 <= columns; k += 2) {
        STEP(k)
        STEP(k + 1)
    }
    if (k < columns)
        STEP(k)
#undef STEP
}

typedef void NAME(walk_function)(V *const rows[6], int64_t columns, V side, V ratio);
#define WALK(a, b, c, d)                                                                                               \
    static void NAME(walk_##a##b##c##d)(V *const rows[6], int64_t columns, V side, V ratio)                            \
    {                                                                                                                  \
        NAME(walk)(rows, columns, side, ratio, a, b, c, d);                                                            \
    }
#define ROW(a, b, c, d) [a][b][c] = NAME(walk_##a##b##c##d),
/* clang-format off */
#define ORDERS(X) \
    X(0, 1, 2, 3) X(0, 1, 3, 2) X(0, 2, 1, 3) X(0, 2, 3, 1) X(0, 3, 1, 2) X(0, 3, 2, 1) \
    X(1, 0, 2, 3) X(1, 0, 3, 2) X(1, 2, 0, 3) X(1, 2, 3, 0) X(1, 3, 0, 2) X(1, 3, 2, 0) \
    X(2, 0, 1, 3) X(2, 0, 3, 1) X(2, 1, 0, 3) X(2, 1, 3, 0) X(2, 3, 0, 1) X(2, 3, 1, 0) \
    X(3, 0, 1, 2) X(3, 0, 2, 1) X(3, 1, 0, 2) X(3, 1, 2, 0) X(3, 2, 0, 1) X(3, 2, 1, 0)
/* clang-format on */
ORDERS(WALK)

/* By the first three neighbours added. */
static NAME(walk_function) *const NAME(walks)[4][4][4] = {ORDERS(ROW)};
#undef REAL
#undef REAL_BYTES
#undef SUFFIX
#undef LANES
#undef WALK
#undef ROW
#undef ORDERS
