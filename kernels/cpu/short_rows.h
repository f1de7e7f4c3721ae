/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of short rows and of every second to fourth element, as cases of a switch: loops that know how many elements, or how far apart, need no
 * call and are made of vectors. Inside kernels/cpu; `to`, `from`, `rows` and `columns` are the user's. */
#ifndef OLY_CPU_SHORT_ROWS_H
#define OLY_CPU_SHORT_ROWS_H
#include <string.h>

enum { MOST_FEW = 7 }; /* elements of such rows */
#define EACH_FEW(X, ...)                                                                                               \
    X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__) X(7, __VA_ARGS__)

/* Rows of this many elements. */
#define FEW_ELEMENTS(n, to_row, from_row)                                                                              \
    case n:                                                                                                            \
        for (int64_t r = 0; r < rows; r++)                                                                             \
            memcpy(to + r * (to_row), from + r * (from_row), sizeof *to * (n));                                        \
        return;
/* Rows of an element this many times. */
#define FEW_TIMES(n, to_row, from_row)                                                                                 \
    case n:                                                                                                            \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            const __typeof__(*to) repeated = from[r * (from_row)];                                                     \
            _Pragma("GCC unroll 8") for (int c = 0; c < (n); c++) to[r * (to_row) + c] = repeated;                     \
        }                                                                                                              \
        return;

#define EVERY_NTH(distance)                                                                                            \
    case distance:                                                                                                     \
        for (int64_t c = 0; c < columns; c++)                                                                          \
            to[c] = from[c * (distance)];                                                                              \
        break;
#endif
