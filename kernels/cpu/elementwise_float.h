/* SPDX-License-Identifier: BSD-3-Clause */
/* For the files of floating-point formulas: element types, float32 and float64 (narrower ones are computed as float32:
 * tile_narrow.c), selection by type, and tiles with elements beyond a formula's bound. */
#ifndef OLY_ELEMENTWISE_FLOAT_H
#define OLY_ELEMENTWISE_FLOAT_H
#include "cpu/vector_math.h"

#define BOOL_TYPES(X, ...)
#define INTEGER_TYPES(X, ...)
#define FLOAT_TYPES(X, ...) OLY_WIDE_TYPES(ROW_TYPE, (X, __VA_ARGS__))
#define COMPLEX_TYPES(X, ...)
/* For rows that operate on the bits of narrow types: bits_<s> of math_whole.h. */
#define NARROW_TYPES(X, ...)                      OLY_NARROW_TYPES(BITS_TYPE, (X, __VA_ARGS__))
#define BITS_TYPE(given, number, name, s, T, ...) ROW_CALL(s, bits_##s, OLY_##number, ROW_REST given)
typedef float part_f32;
typedef double part_f64;
typedef float _Complex pair_f32;
typedef double _Complex pair_f64;

#define BY_FLOAT(name, x) _Generic((x), float : name##_f32, double : name##_f64)

/* -- tiles with elements beyond a formula's bound ------------------------------------------------------------------- */
/* Does some element exceed `bound` in magnitude, or is NaN? The bits of magnitudes order as the magnitudes do. */
#define BEYOND(s, T, U)                                                                                                \
    static inline bool beyond_##s(int n, const T *x, T bound)                                                          \
    {                                                                                                                  \
        U limit, largest = 0;                                                                                          \
        memcpy(&limit, &bound, sizeof limit);                                                                          \
        for (int i = 0; i < n; i++) {                                                                                  \
            U bits;                                                                                                    \
            memcpy(&bits, &x[i], sizeof bits);                                                                         \
            bits &= (U)-1 >> 1;                                                                                        \
            largest = bits > largest ? bits : largest;                                                                 \
        }                                                                                                              \
        return largest > limit;                                                                                        \
    }
BEYOND(f32, float, uint32_t)
BEYOND(f64, double, uint64_t)

/* True if some element is far; the tile is then computed here: blocks of 64 by the near formula, then the far elements
 * again. The block is copied first because out may be x. */
#define FAR(name, s, T, abs_of, BOUND, near, careful)                                                                  \
    static bool name##_##s(int n, T *out, const T *x)                                                                  \
    {                                                                                                                  \
        const T bound = BOUND;                                                                                         \
        if (!beyond_##s(n, x, bound))                                                                                  \
            return false;                                                                                              \
        for (int i = 0; i < n; i += 64) {                                                                              \
            T block[64];                                                                                               \
            int m = n - i < 64 ? n - i : 64;                                                                           \
            memcpy(block, x + i, sizeof(T) * (size_t)m);                                                               \
            for (int j = 0; j < m; j++)                                                                                \
                out[i + j] = near(block[j]);                                                                           \
            for (int j = 0; j < m; j++)                                                                                \
                if (abs_of(block[j]) > bound)                                                                          \
                    out[i + j] = (T)careful(block[j]);                                                                 \
        }                                                                                                              \
        return true;                                                                                                   \
    }
/* The same, but the whole tile by a formula that vectorises too, and agrees with the near one where both hold. */
#define FAR_WHOLE(name, s, T, BOUND, whole)                                                                            \
    static bool name##_##s(int n, T *out, const T *x)                                                                  \
    {                                                                                                                  \
        if (!beyond_##s(n, x, BOUND))                                                                                  \
            return false;                                                                                              \
        _Pragma("GCC ivdep") for (int i = 0; i < n; i++) out[i] = whole(x[i]);                                         \
        return true;                                                                                                   \
    }
#endif
