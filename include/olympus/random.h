/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers, made from keys. Included by <olympus.h>; programs include that one.
 *
 * A key is an array uint32[2]. There is no hidden state: the same key always gives the same numbers, wherever they are made. A
 * program makes one key from a seed and splits it, to have a fresh one for each use:
 *
 *     oly_array keys = oly_random_split(oly_random_key(1701), 2);
 *     oly_array w = oly_random_normal(oly_slice(keys, "0"), OLY_FLOAT32, 32, 4);
 *     oly_array x = oly_random_normal_sharded(oly_slice(keys, "1"), OLY_FLOAT32, oly_named(mesh, "i"), 1024);
 *
 * The numbers equal those of jax.random with its default generator (threefry2x32, partitionable) bit for bit, except for
 * functions whose last bit differs. Element i depends on the key and i alone: every device generates its own, nothing is sent,
 * and the numbers do not depend on the sharding. `..._sharded` gives the result the sharding `out` (NULL: as without it).
 * ranks: as for all operations. fails, for all of them: OLY_DTYPE (not a key, or an unsupported element type),
 * OLY_SHAPE (parameters that do not broadcast to the shape). */
#ifndef OLYMPUS_RANDOM_H
#define OLYMPUS_RANDOM_H

#include <olympus/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- keys ------------------------------------------------------------------------------------------------------------ */

/* The key of a seed: its 32 low bits; with 64-bit types enabled, all of it. source: jax.random.key */
OLY_API oly_array oly_random_key(int64_t seed);
#define oly_random_key(...) OLY_AT(oly_random_key)(__VA_ARGS__)

/* n keys, the rows of uint32[n,2]. fails OLY_INVALID (negative n). source: jax.random.split */
OLY_API oly_array oly_random_split(oly_array key, int64_t n);
#define oly_random_split(...) OLY_AT(oly_random_split)(__VA_ARGS__)

/* A key derived from a number (one integer or bool, as uint32). source: jax.random.fold_in */
OLY_API oly_array oly_random_fold_in(oly_array key, oly_operand data);
#define oly_random_fold_in(key, data) OLY_AT(oly_random_fold_in)(key, OLY_ARG(data))

/* The block function itself, Threefry-2x32 with 20 rounds: uint32 counters of any shape, the first half of them the first
 * words, the second half the second words; likewise the results. source: jax.extend.random.threefry_2x32 */
OLY_API oly_array oly_threefry2x32(oly_array key, oly_array counters);
#define oly_threefry2x32(...) OLY_AT(oly_threefry2x32)(__VA_ARGS__)

/* -- numbers --------------------------------------------------------------------------------------------------------- */

/* Random bits as uint8, uint16, uint32 or uint64. source: jax.random.bits */
OLY_API oly_array oly_random_bits_shape(oly_array key, oly_dtype dtype, oly_sharding out, int rank,
                                        const int64_t *shape);
/* Uniform in [low, high), each a number or an array that broadcasts to the shape; oly_random_uniform: in [0, 1).
 * Any floating type. source: jax.random.uniform */
OLY_API oly_array oly_random_uniform_shape(oly_array key, oly_dtype dtype, oly_operand low, oly_operand high,
                                           oly_sharding out, int rank, const int64_t *shape);
/* Mean 0 and variance 1. Floating, or complex: variance of real and imaginary part together. source: jax.random.normal */
OLY_API oly_array oly_random_normal_shape(oly_array key, oly_dtype dtype, oly_sharding out, int rank,
                                          const int64_t *shape);
/* Normal numbers strictly between low and high. source: jax.random.truncated_normal */
OLY_API oly_array oly_random_truncated_normal_shape(oly_array key, oly_dtype dtype, oly_operand low, oly_operand high,
                                                    oly_sharding out, int rank, const int64_t *shape);
/* Integers in [low, high); low where there are none. Bounds beyond the type are clipped to its range; a high bound of one more
 * includes its greatest value. source: jax.random.randint */
OLY_API oly_array oly_random_randint_shape(oly_array key, oly_dtype dtype, oly_operand low, oly_operand high,
                                           oly_sharding out, int rank, const int64_t *shape);
/* True with probability p, a number or an array that broadcasts to the shape. source: jax.random.bernoulli */
OLY_API oly_array oly_random_bernoulli_shape(oly_array key, oly_operand p, oly_sharding out, int rank,
                                             const int64_t *shape);
/* The standard Gumbel, exponential, Laplace, logistic and Cauchy distributions; and -1 or 1, in any type of numbers.
 * source: jax.random.gumbel, exponential, laplace, logistic, cauchy, rademacher */
OLY_API oly_array oly_random_gumbel_shape(oly_array key, oly_dtype dtype, oly_sharding out, int rank,
                                          const int64_t *shape);
OLY_API oly_array oly_random_exponential_shape(oly_array key, oly_dtype dtype, oly_sharding out, int rank,
                                               const int64_t *shape);
OLY_API oly_array oly_random_laplace_shape(oly_array key, oly_dtype dtype, oly_sharding out, int rank,
                                           const int64_t *shape);
OLY_API oly_array oly_random_logistic_shape(oly_array key, oly_dtype dtype, oly_sharding out, int rank,
                                            const int64_t *shape);
OLY_API oly_array oly_random_cauchy_shape(oly_array key, oly_dtype dtype, oly_sharding out, int rank,
                                          const int64_t *shape);
OLY_API oly_array oly_random_rademacher_shape(oly_array key, oly_dtype dtype, oly_sharding out, int rank,
                                              const int64_t *shape);

/* oly_random_normal(key, OLY_FLOAT32, 4, 8): extents as arguments; none makes one number. */
#define oly_random_bits(...) oly_random_bits_(__VA_ARGS__, )
#define oly_random_bits_(key, dtype, ...)                                                                              \
    OLY_AT_AS(oly_random_bits, oly_random_bits_shape)(key, dtype, NULL, OLY_EXTENTS(__VA_ARGS__))
#define oly_random_uniform(...) oly_random_uniform_(__VA_ARGS__, )
#define oly_random_uniform_(key, dtype, ...)                                                                           \
    OLY_AT_AS(oly_random_uniform, oly_random_uniform_shape)                                                            \
    (key, dtype, oly_operand_int(0), oly_operand_int(1), NULL, OLY_EXTENTS(__VA_ARGS__))
#define oly_random_uniform_between(...) oly_random_uniform_between_(__VA_ARGS__, )
#define oly_random_uniform_between_(key, dtype, low, high, ...)                                                        \
    OLY_AT_AS(oly_random_uniform_between, oly_random_uniform_shape)                                                    \
    (key, dtype, OLY_ARG(low), OLY_ARG(high), NULL, OLY_EXTENTS(__VA_ARGS__))
#define oly_random_normal(...) oly_random_normal_(__VA_ARGS__, )
#define oly_random_normal_(key, dtype, ...)                                                                            \
    OLY_AT_AS(oly_random_normal, oly_random_normal_shape)(key, dtype, NULL, OLY_EXTENTS(__VA_ARGS__))
#define oly_random_truncated_normal(...) oly_random_truncated_normal_(__VA_ARGS__, )
#define oly_random_truncated_normal_(key, dtype, low, high, ...)                                                       \
    OLY_AT_AS(oly_random_truncated_normal, oly_random_truncated_normal_shape)                                          \
    (key, dtype, OLY_ARG(low), OLY_ARG(high), NULL, OLY_EXTENTS(__VA_ARGS__))
#define oly_random_randint(...) oly_random_randint_(__VA_ARGS__, )
#define oly_random_randint_(key, dtype, low, high, ...)                                                                \
    OLY_AT_AS(oly_random_randint, oly_random_randint_shape)                                                            \
    (key, dtype, OLY_ARG(low), OLY_ARG(high), NULL, OLY_EXTENTS(__VA_ARGS__))
#define oly_random_bernoulli(...) oly_random_bernoulli_(__VA_ARGS__, )
#define oly_random_bernoulli_(key, p, ...)                                                                             \
    OLY_AT_AS(oly_random_bernoulli, oly_random_bernoulli_shape)(key, OLY_ARG(p), NULL, OLY_EXTENTS(__VA_ARGS__))
#define oly_random_gumbel(...) oly_random_gumbel_(__VA_ARGS__, )
#define oly_random_gumbel_(key, dtype, ...)                                                                            \
    OLY_AT_AS(oly_random_gumbel, oly_random_gumbel_shape)(key, dtype, NULL, OLY_EXTENTS(__VA_ARGS__))
#define oly_random_exponential(...) oly_random_exponential_(__VA_ARGS__, )
#define oly_random_exponential_(key, dtype, ...)                                                                       \
    OLY_AT_AS(oly_random_exponential, oly_random_exponential_shape)(key, dtype, NULL, OLY_EXTENTS(__VA_ARGS__))
#define oly_random_laplace(...) oly_random_laplace_(__VA_ARGS__, )
#define oly_random_laplace_(key, dtype, ...)                                                                           \
    OLY_AT_AS(oly_random_laplace, oly_random_laplace_shape)(key, dtype, NULL, OLY_EXTENTS(__VA_ARGS__))
#define oly_random_logistic(...) oly_random_logistic_(__VA_ARGS__, )
#define oly_random_logistic_(key, dtype, ...)                                                                          \
    OLY_AT_AS(oly_random_logistic, oly_random_logistic_shape)(key, dtype, NULL, OLY_EXTENTS(__VA_ARGS__))
#define oly_random_cauchy(...) oly_random_cauchy_(__VA_ARGS__, )
#define oly_random_cauchy_(key, dtype, ...)                                                                            \
    OLY_AT_AS(oly_random_cauchy, oly_random_cauchy_shape)(key, dtype, NULL, OLY_EXTENTS(__VA_ARGS__))
#define oly_random_rademacher(...) oly_random_rademacher_(__VA_ARGS__, )
#define oly_random_rademacher_(key, dtype, ...)                                                                        \
    OLY_AT_AS(oly_random_rademacher, oly_random_rademacher_shape)(key, dtype, NULL, OLY_EXTENTS(__VA_ARGS__))

/* The same on a mesh. */
#define oly_random_bits_sharded(...) oly_random_bits_sharded_(__VA_ARGS__, )
#define oly_random_bits_sharded_(key, dtype, out, ...)                                                                 \
    OLY_AT_AS(oly_random_bits_sharded, oly_random_bits_shape)(key, dtype, out, OLY_EXTENTS(__VA_ARGS__))
#define oly_random_uniform_sharded(...) oly_random_uniform_sharded_(__VA_ARGS__, )
#define oly_random_uniform_sharded_(key, dtype, out, ...)                                                              \
    OLY_AT_AS(oly_random_uniform_sharded, oly_random_uniform_shape)                                                    \
    (key, dtype, oly_operand_int(0), oly_operand_int(1), out, OLY_EXTENTS(__VA_ARGS__))
#define oly_random_normal_sharded(...) oly_random_normal_sharded_(__VA_ARGS__, )
#define oly_random_normal_sharded_(key, dtype, out, ...)                                                               \
    OLY_AT_AS(oly_random_normal_sharded, oly_random_normal_shape)(key, dtype, out, OLY_EXTENTS(__VA_ARGS__))
#define oly_random_randint_sharded(...) oly_random_randint_sharded_(__VA_ARGS__, )
#define oly_random_randint_sharded_(key, dtype, low, high, out, ...)                                                   \
    OLY_AT_AS(oly_random_randint_sharded, oly_random_randint_shape)                                                    \
    (key, dtype, OLY_ARG(low), OLY_ARG(high), out, OLY_EXTENTS(__VA_ARGS__))
#define oly_random_bernoulli_sharded(...) oly_random_bernoulli_sharded_(__VA_ARGS__, )
#define oly_random_bernoulli_sharded_(key, p, out, ...)                                                                \
    OLY_AT_AS(oly_random_bernoulli_sharded, oly_random_bernoulli_shape)(key, OLY_ARG(p), out, OLY_EXTENTS(__VA_ARGS__))

/* -- permutations and choice ------------------------------------------------------------------------------------------------
 * */

/* 0, 1, ..., n-1 in random order (int32, with 64-bit types enabled int64); slices of x along an axis in random order.
 * fails OLY_INVALID (negative n), OLY_SHAPE (axis). source: jax.random.permutation */
OLY_API oly_array oly_random_permutation(oly_array key, int64_t n);
OLY_API oly_array oly_random_permutation_of(oly_array key, oly_array x, int axis);
#define oly_random_permutation(...)    OLY_AT(oly_random_permutation)(__VA_ARGS__)
#define oly_random_permutation_of(...) OLY_AT(oly_random_permutation_of)(__VA_ARGS__)

/* Samples of 0, 1, ..., n-1, or of the slices of x along an axis (which the samples' dimensions replace). With replace = false each
 * at most once. p: a probability for each, or NULL: all equal.
 * fails OLY_INVALID (more samples than there are, none to choose from), OLY_SHAPE. source: jax.random.choice */
OLY_API oly_array oly_random_choice_shape(oly_array key, int64_t n, bool replace, oly_array p, int rank,
                                          const int64_t *shape);
OLY_API oly_array oly_random_choice_of_shape(oly_array key, oly_array x, int axis, bool replace, oly_array p, int rank,
                                             const int64_t *shape);
#define oly_random_choice(...) oly_random_choice_(__VA_ARGS__, )
#define oly_random_choice_(key, n, replace, p, ...)                                                                    \
    OLY_AT_AS(oly_random_choice, oly_random_choice_shape)(key, n, replace, p, OLY_EXTENTS(__VA_ARGS__))
#define oly_random_choice_of(...) oly_random_choice_of_(__VA_ARGS__, )
#define oly_random_choice_of_(key, x, axis, replace, p, ...)                                                           \
    OLY_AT_AS(oly_random_choice_of, oly_random_choice_of_shape)(key, x, axis, replace, p, OLY_EXTENTS(__VA_ARGS__))

/* For each row of logits along an axis the index of a category, with probabilities softmax(logits). The structured form gives
 * `rank` dimensions that end in those of the logits without the axis (shape NULL: only those).
 * fails OLY_SHAPE, OLY_DTYPE (logits are floating). source: jax.random.categorical */
OLY_API oly_array oly_random_categorical_shape(oly_array key, oly_array logits, int axis, int rank,
                                               const int64_t *shape);
#define oly_random_categorical_shape(...) OLY_AT_AS(oly_random_categorical, oly_random_categorical_shape)(__VA_ARGS__)
#define oly_random_categorical(key, logits, axis)                                                                      \
    OLY_AT_AS(oly_random_categorical, oly_random_categorical_shape)(key, logits, axis, 0, NULL)

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_random_bits_shape(...)    OLY_AT_AS(oly_random_bits, oly_random_bits_shape)(__VA_ARGS__)
#define oly_random_uniform_shape(...) OLY_AT_AS(oly_random_uniform, oly_random_uniform_shape)(__VA_ARGS__)
#define oly_random_normal_shape(...)  OLY_AT_AS(oly_random_normal, oly_random_normal_shape)(__VA_ARGS__)
#define oly_random_truncated_normal_shape(...)                                                                         \
    OLY_AT_AS(oly_random_truncated_normal, oly_random_truncated_normal_shape)(__VA_ARGS__)
#define oly_random_randint_shape(...)     OLY_AT_AS(oly_random_randint, oly_random_randint_shape)(__VA_ARGS__)
#define oly_random_bernoulli_shape(...)   OLY_AT_AS(oly_random_bernoulli, oly_random_bernoulli_shape)(__VA_ARGS__)
#define oly_random_gumbel_shape(...)      OLY_AT_AS(oly_random_gumbel, oly_random_gumbel_shape)(__VA_ARGS__)
#define oly_random_exponential_shape(...) OLY_AT_AS(oly_random_exponential, oly_random_exponential_shape)(__VA_ARGS__)
#define oly_random_laplace_shape(...)     OLY_AT_AS(oly_random_laplace, oly_random_laplace_shape)(__VA_ARGS__)
#define oly_random_logistic_shape(...)    OLY_AT_AS(oly_random_logistic, oly_random_logistic_shape)(__VA_ARGS__)
#define oly_random_cauchy_shape(...)      OLY_AT_AS(oly_random_cauchy, oly_random_cauchy_shape)(__VA_ARGS__)
#define oly_random_rademacher_shape(...)  OLY_AT_AS(oly_random_rademacher, oly_random_rademacher_shape)(__VA_ARGS__)
#define oly_random_choice_shape(...)      OLY_AT_AS(oly_random_choice, oly_random_choice_shape)(__VA_ARGS__)
#define oly_random_choice_of_shape(...)   OLY_AT_AS(oly_random_choice_of, oly_random_choice_of_shape)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
