/* Permutations of positions, as ppermute has them: which position each one receives from. Interned: equal ones are one object,
 * which lives until oly_layout_stop. */
#ifndef OLY_LAYOUT_PERMUTATION_H
#define OLY_LAYOUT_PERMUTATION_H
#include <olympus/base.h>

typedef struct oly_permutation_impl {
    uint64_t hash;                                        /* the same on all ranks */
    _Atomic(const struct oly_permutation_impl *) inverse; /* NULL: not asked for yet */
    int n;
    int source[]; /* of each position; -1: it receives nothing */
} oly_permutation_impl;
typedef const oly_permutation_impl *oly_permutation;

/* No position may be the source of two. NULL: out of memory (message pending). */
oly_permutation oly_permutation_intern(int n, const int *source);
/* Data back to where it came from. */
oly_permutation oly_permutation_inverse(oly_permutation p);
#endif
