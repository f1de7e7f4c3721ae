/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers as compositions, see compose.h. A key is uint32[2]; in[0] is always one (but for
 * oly_compose_random_key). params.shape (and rank), dtype and sharding are the result's. Bit for bit those of
 * jax.random with its default generator, threefry2x32, partitionable: element i of an array depends on the key and i
 * alone, so every device computes its own. */
#ifndef OLY_GRAPH_COMPOSE_RANDOM_H
#define OLY_GRAPH_COMPOSE_RANDOM_H
#include "graph/compose/compose.h"

oly_compose oly_compose_random_key;     /* params.start[0], [1]: its words */
oly_compose oly_compose_random_split;   /* into params.count keys */
oly_compose oly_compose_random_fold_in; /* in[1]: an integer */
oly_compose
    oly_compose_random_block; /* the block function itself: in[1] counters, uint32, first words then second words */
oly_compose oly_compose_random_bits;             /* of an unsigned dtype */
oly_compose oly_compose_random_uniform;          /* in[1], in[2]: between these */
oly_compose oly_compose_random_normal;           /* complex too */
oly_compose oly_compose_random_truncated_normal; /* in[1], in[2]: between these */
oly_compose oly_compose_random_randint;          /* in[1], in[2]: from the first to before the second */
oly_compose oly_compose_random_bernoulli;        /* in[1]: the probability of true */
oly_compose oly_compose_random_gumbel;
oly_compose oly_compose_random_exponential;
oly_compose oly_compose_random_laplace;
oly_compose oly_compose_random_logistic;
oly_compose oly_compose_random_cauchy;
oly_compose oly_compose_random_rademacher;
/* -- compose_random_order.c -- */
oly_compose
    oly_compose_random_permutation; /* of in[1] along params.dimension; without in[1] of 0 ... params.count - 1 */
oly_compose
    oly_compose_random_categorical; /* in[1]: logits along params.dimension; all_axes: the shape is that of the others */
/* Of 0 ... params.count - 1, or (all_axes) of in[1] along params.dimension; params.reverse: without replacement;
 * keepdims: the last operand has probabilities. */
oly_compose oly_compose_random_choice;

/* -- for compose_random_order.c -- */
struct oly_expression;
/* The key as one word, uint64 of rank 0; and that of key i of its split. */
oly_node *oly_random_word(struct oly_expression *s, oly_node *key);
oly_node *oly_random_subkey(struct oly_expression *s, oly_node *word, int64_t i);
/* Of such a word: */
oly_node *oly_random_bits32(struct oly_expression *s, oly_node *word, int rank, const int64_t *shape);
oly_node *oly_random_unit(struct oly_expression *s, oly_node *word, oly_dtype dtype, int rank, const int64_t *shape);
oly_node *oly_random_gumbels(struct oly_expression *s, oly_node *word, oly_dtype dtype, int rank, const int64_t *shape);
oly_node *oly_random_integers(struct oly_expression *s, oly_node *word, oly_node *low, oly_node *high, oly_dtype dtype,
                              int rank, const int64_t *shape);
#endif
