/* SPDX-License-Identifier: BSD-3-Clause */
/* Random programs of products, sums, elementwise operations and views of matrices, on random meshes and layouts, for
 * layouts chosen by cost. Used by test_choose.c and test_choose_loops.c. Every rank makes the same programs. */
#ifndef RANDOM_MATRICES_H
#define RANDOM_MATRICES_H
#include <olympus.h>

enum { MOST_MATRICES = 14, MOST_MATRICES_IN = 4, MOST_MATRICES_OUT = 3 };

typedef struct matrices_call {
    int kind, in[2], axis;
    int rank;
    int64_t shape[2];
    const char *spec; /* inputs; others: a constraint, or NULL */
} matrices_call;

typedef struct matrices {
    uint64_t random;
    oly_mesh mesh;
    int n, n_in, n_out;
    matrices_call call[MOST_MATRICES];
    int out[MOST_MATRICES_OUT];
    bool alone; /* places nothing */
} matrices;

void matrices_make(matrices *p, uint64_t seed);
/* A random number below n. */
int matrices_below(matrices *p, int n);
/* v[0..n_in-1] are given; computes the others. */
void matrices_apply(const matrices *p, oly_array *v);
void matrices_print(const matrices *p); /* on stderr */
/* Its inputs: float64 numbers between -1 and 1, on one device, and sharded. */
void matrices_inputs(const matrices *p, oly_array *alone, oly_array *in);
/* Fails the test if elements differ by more than rounding. */
void matrices_compare(const matrices *p, oly_array x, oly_array expected, uint64_t seed);
#endif
