/* SPDX-License-Identifier: BSD-3-Clause */
/* What kernels that look up elements ask of indexes before they read them without a test of each. For kernels/cpu. */
#ifndef OLY_CPU_INDEX_INSIDE_H
#define OLY_CPU_INDEX_INSIDE_H
#include <stdbool.h>
#include <stdint.h>

/* Are n indexes, at least one, all in [low, high)? */
#define OLY_ALL_INSIDE(I)                                                                                              \
    static inline bool oly_all_inside_##I(int64_t n, const I *index, int64_t low, int64_t high)                        \
    {                                                                                                                  \
        I least = index[0], most = index[0];                                                                           \
        for (int64_t j = 1; j < n; j++) {                                                                              \
            least = index[j] < least ? index[j] : least;                                                               \
            most = index[j] > most ? index[j] : most;                                                                  \
        }                                                                                                              \
        return least >= low && most < high;                                                                            \
    }
OLY_ALL_INSIDE(int32_t)
OLY_ALL_INSIDE(int64_t)

/* In a loop that looks up one element after the other: instructions that gather are slower on many processors. */
#define OLY_BY_ONE __asm__ volatile("")
#endif
