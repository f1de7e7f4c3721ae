/* SPDX-License-Identifier: BSD-3-Clause */
/* The smaller and the larger of two integers. Callable by all, kernels included. */
#ifndef OLY_CORE_MIN_MAX_H
#define OLY_CORE_MIN_MAX_H
#include <stdint.h>

static inline int64_t oly_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t oly_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
#endif
