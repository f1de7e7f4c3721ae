/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorting unsigned keys, alone or with numbers that move along, stably: short lines are merged, long ones sorted by radix; where
 * the instruction set has vectors of 256 bits or more, partitioned and sorted in registers (sort_vector.h). For sort.c alone. */
#ifndef OLY_CPU_SORT_KEYS_H
#define OLY_CPU_SORT_KEYS_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { SAMPLES = 31 }; /* keys whose median is the pivot of a partition */

/* The place of sample i among n keys: any, but the same in every run (Knuth's multiplicative hash). */
static inline int64_t drawn_place(uint64_t i, int64_t n)
{
    uint64_t hash = (i + 1 + (uint64_t)n) * 0x9e3779b97f4a7c15u;
    return (int64_t)((double)(hash >> 12) * 0x1p-52 * (double)n);
}

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__BMI2__)
#define HAS_VECTOR_SORT 1
#include <immintrin.h>
enum {
    NETWORK = 16, /* registers of a network: pieces that are not partitioned */
    UNROLLED =
        8, /* vectors that a partition reads before it looks again where there is room; at most half of NETWORK */
    FEW_SAMPLED = 1024, /* of fewer keys, the pivot is the median of one vector */
};
#elif defined(__AVX2__)
#define HAS_VECTOR_SORT 1
#include "cpu/lane_orders.h"
#include <immintrin.h>
enum { NETWORK = 8, UNROLLED = 4, FEW_SAMPLED = 256 };
#endif
#ifdef HAS_VECTOR_SORT
#define KEY_BITS 32
#define KEY      uint32_t
#define NAME(f)  f##_w4
#include "sort_vector.h"
#define KEY_BITS 64
#define KEY      uint64_t
#define NAME(f)  f##_w8
#include "sort_vector.h"
#endif

enum {
    RUN = 24,          /* sorted by insertion */
    MOST_MERGED = 768, /* longer lines: radix sort */
};

/* -- by radix ------------------------------------------------------------------------------------------------------------ */

/* Turns counts into positions. False: all keys have the same digit, nothing to do. */
static bool begin_digits(int64_t n, int64_t *count, int digit)
{
    int64_t at = 0;
    if (count[digit] == n)
        return false;
    for (int k = 0; k < 256; k++) {
        int64_t here = count[k];
        count[k] = at;
        at += here;
    }
    return true;
}
#define COUNT_DIGITS(k, K)                                                                                             \
    static void count_##k(int64_t n, const K *a, int64_t(*count)[256])                                                 \
    {                                                                                                                  \
        memset(count, 0, sizeof(K) * sizeof *count);                                                                   \
        for (int64_t i = 0; i < n; i++)                                                                                \
            for (size_t d = 0; d < sizeof(K); d++)                                                                     \
                count[d][a[i] >> 8 * d & 255]++;                                                                       \
    }
COUNT_DIGITS(w4, uint32_t)
COUNT_DIGITS(w8, uint64_t)

/* Sorts keys with their numbers, stably. b and y are scratch; a and b lie one behind the other. The keys end anywhere, the numbers
 * in x or y, which is returned. */
#define SORT_PAIRS(k, K, i4, I)                                                                                        \
    static I *pairs_##k##_##i4(int64_t n, K *a, K *b, I *x, I *y)                                                      \
    {                                                                                                                  \
        int64_t count[sizeof(K)][256];                                                                                 \
        if (n <= 2 * RUN) {                                                                                            \
            for (int64_t i = 1; i < n; i++) {                                                                          \
                K key = a[i];                                                                                          \
                I number = x[i];                                                                                       \
                int64_t j = i;                                                                                         \
                for (; j > 0 && a[j - 1] > key; j--) {                                                                 \
                    a[j] = a[j - 1];                                                                                   \
                    x[j] = x[j - 1];                                                                                   \
                }                                                                                                      \
                a[j] = key;                                                                                            \
                x[j] = number;                                                                                         \
            }                                                                                                          \
            return x;                                                                                                  \
        }                                                                                                              \
        count_##k(n, a, count);                                                                                        \
        for (size_t d = 0; d < sizeof(K); d++) {                                                                       \
            if (!begin_digits(n, count[d], (int)(a[0] >> 8 * d & 255)))                                                \
                continue;                                                                                              \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                int64_t to = count[d][a[i] >> 8 * d & 255]++;                                                          \
                b[to] = a[i];                                                                                          \
                y[to] = x[i];                                                                                          \
            }                                                                                                          \
            K *c = a;                                                                                                  \
            a = b;                                                                                                     \
            b = c;                                                                                                     \
            I *z = x;                                                                                                  \
            x = y;                                                                                                     \
            y = z;                                                                                                     \
        }                                                                                                              \
        return x;                                                                                                      \
    }
SORT_PAIRS(w4, uint32_t, i8, uint64_t)
SORT_PAIRS(w8, uint64_t, i8, uint64_t)

#ifndef HAS_VECTOR_SORT
SORT_PAIRS(w4, uint32_t, i4, uint32_t)
SORT_PAIRS(w8, uint64_t, i4, uint32_t)

/* Sorts n keys at a, with n more as scratch at b; returns which of the two has the result. */
#define SORT_KEYS(k, K)                                                                                                \
    static void insert_##k(int64_t n, K *a)                                                                            \
    {                                                                                                                  \
        for (int64_t i = 1; i < n; i++) {                                                                              \
            K x = a[i];                                                                                                \
            int64_t j = i;                                                                                             \
            for (; j > 0 && a[j - 1] > x; j--)                                                                         \
                a[j] = a[j - 1];                                                                                       \
            a[j] = x;                                                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    static K *merge_##k(int64_t n, K *a, K *b)                                                                         \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i += RUN)                                                                           \
            insert_##k(n - i < RUN ? n - i : RUN, a + i);                                                              \
        for (int64_t run = RUN; run < n; run *= 2) {                                                                   \
            for (int64_t i = 0; i < n; i += 2 * run) {                                                                 \
                int64_t x = i, x_end = i + run < n ? i + run : n, y = x_end, to = i;                                   \
                int64_t y_end = i + 2 * run < n ? i + 2 * run : n;                                                     \
                while (x < x_end && y < y_end)                                                                         \
                    b[to++] = a[y] < a[x] ? a[y++] : a[x++];                                                           \
                memcpy(b + to, a + x, sizeof(K) * (size_t)(x_end - x));                                                \
                to += x_end - x;                                                                                       \
                memcpy(b + to, a + y, sizeof(K) * (size_t)(y_end - y));                                                \
            }                                                                                                          \
            K *c = a;                                                                                                  \
            a = b;                                                                                                     \
            b = c;                                                                                                     \
        }                                                                                                              \
        return a;                                                                                                      \
    }                                                                                                                  \
    static K *sort_##k(int64_t n, K *a, K *b)                                                                          \
    {                                                                                                                  \
        int64_t count[sizeof(K)][256];                                                                                 \
        if (n <= MOST_MERGED)                                                                                          \
            return merge_##k(n, a, b);                                                                                 \
        count_##k(n, a, count);                                                                                        \
        for (size_t d = 0; d < sizeof(K); d++) {                                                                       \
            if (!begin_digits(n, count[d], (int)(a[0] >> 8 * d & 255)))                                                \
                continue;                                                                                              \
            for (int64_t i = 0; i < n; i++)                                                                            \
                b[count[d][a[i] >> 8 * d & 255]++] = a[i];                                                             \
            K *c = a;                                                                                                  \
            a = b;                                                                                                     \
            b = c;                                                                                                     \
        }                                                                                                              \
        return a;                                                                                                      \
    }
SORT_KEYS(w4, uint32_t)
SORT_KEYS(w8, uint64_t)

/* Divides keys in two by the median of some: none of the first is above one of the second. Returns the number of the first;
 * *equal: those are all the same. */
#define DIVIDE(k, K)                                                                                                   \
    static int64_t divide_##k(int64_t n, K *a, bool *equal)                                                            \
    {                                                                                                                  \
        K sample[SAMPLES];                                                                                             \
        int64_t below = 0;                                                                                             \
        for (uint64_t i = 0; i < SAMPLES; i++)                                                                         \
            sample[i] = a[drawn_place(i, n)];                                                                          \
        insert_##k(SAMPLES, sample);                                                                                   \
        for (int64_t i = 0; i < n; i++) { /* without branches, which would be mispredicted */                          \
            K x = a[i];                                                                                                \
            a[i] = a[below];                                                                                           \
            a[below] = x;                                                                                              \
            below += x < sample[SAMPLES / 2];                                                                          \
        }                                                                                                              \
        *equal = false;                                                                                                \
        return below;                                                                                                  \
    }
DIVIDE(w4, uint32_t)
DIVIDE(w8, uint64_t)
#endif

/* -- in vectors ----------------------------------------------------------------------------------------------------------- */

#ifdef HAS_VECTOR_SORT
static uint32_t *sort_w4(int64_t n, uint32_t *a, uint32_t *b)
{
    (void)b;
    vector_sort_w4(n, a);
    return a;
}
static uint64_t *sort_w8(int64_t n, uint64_t *a, uint64_t *b)
{
    (void)b;
    vector_sort_w8(n, a);
    return a;
}

typedef uint64_t packed __attribute__((may_alias)); /* 32 bits of a key, then a position: no two are equal */

static uint32_t *pairs_w4_i4(int64_t n, uint32_t *a, uint32_t *b, uint32_t *x, uint32_t *y)
{
    packed *p = (packed *)a;
    (void)b;
    for (int64_t k = n - 1; k >= 0; k--) /* p[k] is behind all a[j] that are still to be read */
        p[k] = (uint64_t)a[k] << 32 | (uint64_t)k;
    vector_sort_w8(n, p);
    for (int64_t k = 0; k < n; k++)
        y[k] = x[(uint32_t)p[k]];
    return y;
}

/* Sorts by the 32 highest bits in which keys differ, then what is equal in these by the rest. */
static uint32_t *pairs_w8_i4(int64_t n, uint64_t *a, uint64_t *b, uint32_t *x, uint32_t *y)
{
    uint64_t differ = 0;
    for (int64_t k = 0; k < n; k++)
        differ |= a[k] ^ a[0];
    const int shift = differ >> 32 ? 32 - __builtin_clzll(differ) : 0;
    const uint64_t rest = ((uint64_t)1 << shift) - 1;
    for (int64_t k = 0; k < n; k++)
        b[k] = a[k] >> shift << 32 | (uint64_t)k;
    vector_sort_w8(n, b);
    for (int64_t k = 0, end; shift > 0 && k < n; k = end) {
        for (end = k + 1; end < n && b[end] >> 32 == b[k] >> 32; end++)
            ;
        if (end - k == 1)
            continue;
        for (int64_t j = k; j < end; j++)
            b[j] = (a[(uint32_t)b[j]] & rest) << 32 | (uint32_t)b[j];
        vector_sort_w8(end - k, b + k);
    }
    for (int64_t k = 0; k < n; k++)
        y[k] = x[(uint32_t)b[k]];
    return y;
}
#endif
#endif
