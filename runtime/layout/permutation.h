/* SPDX-License-Identifier: BSD-3-Clause */
/* Permutations of positions, as in ppermute: the position that each one receives from. Interned: equal ones are one object,
 * which lives until oly_layout_stop. */
#ifndef OLY_LAYOUT_PERMUTATION_H
#define OLY_LAYOUT_PERMUTATION_H
#include <olympus/base.h>

typedef struct oly_permutation_impl {
    uint64_t hash;                                        /* the same on all ranks */
    _Atomic(const struct oly_permutation_impl *) inverse; /* NULL: not made yet */
    int n;
    int source[]; /* of each position; -1: it receives nothing */
} oly_permutation_impl;
typedef const oly_permutation_impl *oly_permutation;

/* No position may be the source of two. NULL: out of memory (message pending). */
oly_permutation oly_permutation_intern(int n, const int *source);
/* The inverse permutation; -1 for positions that are not a source. */
oly_permutation oly_permutation_inverse(oly_permutation p);
#endif
