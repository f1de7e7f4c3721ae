/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations along one dimension (sorting, running sums, argmax) and by index (take, x.at[...], segment sums).
 * Included by <olympus.h>; programs include that one.
 *
 * Sharding, along one dimension: the other dimensions stay split; a split dimension along which the operation runs is gathered
 * first (its axes move to another dimension if there is one). By index: dimensions of the indexes and dimensions that are not
 * indexed stay split; indexed ones are gathered, but scatters leave the array where it is: each device applies the updates to
 * its part. Results do not depend on the sharding. ranks, errors: as ops.h says for all operations. */
#ifndef OLYMPUS_INDEX_H
#define OLYMPUS_INDEX_H

#include <olympus/ops.h>
#include <limits.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As an axis: the flattened array, in row-major order (None in JAX). */
#define OLY_FLAT INT_MIN

/* -- sorting ------------------------------------------------------------------------------------------------------ */

/* Elements in ascending order along an axis (negative: from the end; OLY_FLAT): oly_sort(x, -1), oly_sort(x, 0, .descending =
 * true). NaN come last (descending: first), zeros of both signs are equal, equal elements keep their order (descending: reversed).
 * Complex numbers: by real part, then imaginary. fails OLY_SHAPE: no such axis. source: jax.numpy.sort */
typedef struct oly_along_options {
    char first_; /* not used: lets the macro begin the list */
    bool descending;
    bool reverse; /* running results: from the end */
} oly_along_options;
#define OLY_ALONG_OPTIONS(...) OLY_OPTIONS_(oly_along_options, __VA_ARGS__)
OLY_API oly_array oly_sort_with(oly_operand x, int axis, oly_along_options options);
#define oly_sort(...)           oly_sort_(__VA_ARGS__, )
#define oly_sort_(x, axis, ...) OLY_AT_AS(oly_sort, oly_sort_with)(OLY_ARG(x), axis, OLY_ALONG_OPTIONS(__VA_ARGS__))

/* The positions of the elements in that order: int32, with 64-bit types enabled int64. Equal elements keep their order, also
 * descending.
 * source: jax.numpy.argsort */
OLY_API oly_array oly_argsort_with(oly_operand x, int axis, oly_along_options options);
#define oly_argsort(...) oly_argsort_(__VA_ARGS__, )
#define oly_argsort_(x, axis, ...)                                                                                     \
    OLY_AT_AS(oly_argsort, oly_argsort_with)(OLY_ARG(x), axis, OLY_ALONG_OPTIONS(__VA_ARGS__))

/* Sorts n arrays of one shape together: the first `num_keys` are the keys, the first of them most significant;
 * the others are permuted alike. At most 16.
 *   results  [n], in the order of the operands; NULL on failure
 *   fails    OLY_SHAPE, OLY_INVALID, OLY_SHARDING (over Explicit axes: different shardings, or split along the axis)
 *   source   jax.lax.sort with num_keys */
OLY_API oly_status oly_sort_together(int n, const oly_array *operands, int axis, int num_keys, oly_array *results);
#define oly_sort_together(...) OLY_AT(oly_sort_together)(__VA_ARGS__)

/* The k largest elements along the last dimension, largest first, and their positions (int32); of equal ones the first. Either
 * result may be NULL if it is not needed. fails OLY_SHAPE (k beyond the dimension), OLY_DTYPE (complex). source: jax.lax.top_k */
OLY_API oly_status oly_top_k(oly_array x, int64_t k, oly_array *values, oly_array *indices);
#define oly_top_k(...) OLY_AT(oly_top_k)(__VA_ARGS__)

/* Positions at which `values` would be inserted into a sorted array of one dimension: before equal elements, with side "right"
 * after them (NULL: "left"). int32. fails OLY_SHAPE, OLY_PARSE (side). source: jax.numpy.searchsorted */
OLY_API oly_array oly_searchsorted(oly_array sorted, oly_operand values, const char *side);
#define oly_searchsorted(sorted, values, side) OLY_AT(oly_searchsorted)(sorted, OLY_ARG(values), side)

/* -- running results ------------------------------------------------------------------------------------------------
 * Element i is the result of elements 0 to i along the axis (OLY_FLAT: of the flattened array); .reverse = true: of i to the last.
 * Types are kept, but bools are summed and multiplied as default integers, and cumlogsumexp (log(sum(exp(x))), without overflow) is
 * floating. NaN wins in cummax and cummin.
 *   fails   OLY_SHAPE (no such axis), OLY_DTYPE (complex, except for cumsum and cumprod)
 *   source  jax.numpy.cumsum, cumprod; jax.lax.cummax, cummin, cumlogsumexp */
OLY_API oly_array oly_cumsum_with(oly_operand x, int axis, oly_along_options options);
OLY_API oly_array oly_cumprod_with(oly_operand x, int axis, oly_along_options options);
OLY_API oly_array oly_cummax_with(oly_operand x, int axis, oly_along_options options);
OLY_API oly_array oly_cummin_with(oly_operand x, int axis, oly_along_options options);
OLY_API oly_array oly_cumlogsumexp_with(oly_operand x, int axis, oly_along_options options);
#define oly_cumsum(...) oly_cumsum_(__VA_ARGS__, )
#define oly_cumsum_(x, axis, ...)                                                                                      \
    OLY_AT_AS(oly_cumsum, oly_cumsum_with)(OLY_ARG(x), axis, OLY_ALONG_OPTIONS(__VA_ARGS__))
#define oly_cumprod(...) oly_cumprod_(__VA_ARGS__, )
#define oly_cumprod_(x, axis, ...)                                                                                     \
    OLY_AT_AS(oly_cumprod, oly_cumprod_with)(OLY_ARG(x), axis, OLY_ALONG_OPTIONS(__VA_ARGS__))
#define oly_cummax(...) oly_cummax_(__VA_ARGS__, )
#define oly_cummax_(x, axis, ...)                                                                                      \
    OLY_AT_AS(oly_cummax, oly_cummax_with)(OLY_ARG(x), axis, OLY_ALONG_OPTIONS(__VA_ARGS__))
#define oly_cummin(...) oly_cummin_(__VA_ARGS__, )
#define oly_cummin_(x, axis, ...)                                                                                      \
    OLY_AT_AS(oly_cummin, oly_cummin_with)(OLY_ARG(x), axis, OLY_ALONG_OPTIONS(__VA_ARGS__))
#define oly_cumlogsumexp(...) oly_cumlogsumexp_(__VA_ARGS__, )
#define oly_cumlogsumexp_(x, axis, ...)                                                                                \
    OLY_AT_AS(oly_cumlogsumexp, oly_cumlogsumexp_with)(OLY_ARG(x), axis, OLY_ALONG_OPTIONS(__VA_ARGS__))

/* -- argmax, argmin ---------------------------------------------------------------------------------------------------
 * Index of the largest (smallest) element: oly_argmax(x) of all, in row-major order, oly_argmax(x, .axes = "1") along an axis;
 * .keepdims as for oly_sum. Of equal elements the first is taken; the first NaN wins over everything. int32; with 64-bit types
 * enabled, or of more than 2^31 elements, int64.
 *   fails   OLY_SHAPE (no such axis, no elements), OLY_DTYPE (complex)
 *   source  jax.numpy.argmax, argmin */
OLY_API oly_array oly_argmax_with(oly_operand x, oly_reduce_options options);
OLY_API oly_array oly_argmin_with(oly_operand x, oly_reduce_options options);
#define oly_argmax(...)     oly_argmax_(__VA_ARGS__, )
#define oly_argmax_(x, ...) OLY_AT_AS(oly_argmax, oly_argmax_with)(OLY_ARG(x), OLY_REDUCE_OPTIONS(__VA_ARGS__))
#define oly_argmin(...)     oly_argmin_(__VA_ARGS__, )
#define oly_argmin_(x, ...) OLY_AT_AS(oly_argmin, oly_argmin_with)(OLY_ARG(x), OLY_REDUCE_OPTIONS(__VA_ARGS__))

/* -- reading by index -----------------------------------------------------------------------------------------------
 * Indexes are integers of any type. `mode` says what indexes outside the array do:
 *   "fill"   give NaN (integers: the lowest, unsigned: the largest, bool: true); NULL means this unless stated otherwise
 *   "clip"   use the nearest index inside
 *   "wrap"   are taken modulo the size
 *   "promise_in_bounds"  do not occur; otherwise the result is unspecified, but read from inside the array
 * Negative indexes count from the end, except in oly_take with "clip" (they count as 0).
 *   fails    OLY_DTYPE (indexes that are not integers), OLY_SHAPE, OLY_INVALID (indexes into an empty dimension), OLY_PARSE
 *            (mode) */

/* Elements, or slices along an axis, at `indices`, whose dimensions replace the axis. source: jax.numpy.take */
OLY_API oly_array oly_take(oly_array x, oly_operand indices, int axis, const char *mode);
#define oly_take(x, indices, axis, mode) OLY_AT(oly_take)(x, OLY_ARG(indices), axis, mode)

/* Element by element along an axis: result[i, j] = x[i, indices[i, j]] for axis 1. The other dimensions broadcast.
 * source: jax.numpy.take_along_axis */
OLY_API oly_array oly_take_along_axis(oly_array x, oly_array indices, int axis, const char *mode);
#define oly_take_along_axis(...) OLY_AT(oly_take_along_axis)(__VA_ARGS__)

/* x.at[i, j, ...].get(): indexes (arrays or C integers) for the leading dimensions, broadcast together:
 * oly_at_get(x, OLY_INDEXES(i, j), .mode = "fill"). Without a mode indexes are clipped, as in x[i, j],
 * and derivatives at indexes outside the array are 0.
 * source: jax.numpy.ndarray.at */
typedef struct oly_at_options {
    char first_; /* not used: lets the macro begin the list */
    const char *mode;
    /* Of the result; NULL: follows from the operands. Not for a single slice (all indexes numbers, clipped): its remaining
     * Explicit dimensions keep their axes. */
    oly_sharding out_sharding;
} oly_at_options;
#define OLY_AT_OPTIONS(...) OLY_OPTIONS_(oly_at_options, __VA_ARGS__)
OLY_API oly_array oly_at_get_with(oly_array x, int n, const oly_operand *indexes, oly_at_options options);
#define oly_at_get(...) oly_at_get_(__VA_ARGS__, )
#define oly_at_get_(x, n, indexes, ...)                                                                                \
    OLY_AT_AS(oly_at_get, oly_at_get_with)(x, n, indexes, OLY_AT_OPTIONS(__VA_ARGS__))

/* -- writing by index -----------------------------------------------------------------------------------------------
 * x.at[i, j, ...].set(updates), add, ...: copies of x in which the elements that oly_at_get would return are replaced by, or
 * combined with, `updates` (broadcast to them). Complex numbers are ordered by the real part, then the imaginary one. Repeated
 * indexes are applied repeatedly, in row-major order; oly_at_set keeps the last. Negative indexes count from the end; those
 * outside are dropped ("drop", the default, or "fill") or clipped ("clip"). The result has x's type; operands of different
 * types are combined in their common type. Inside a function an intermediate x that nothing else uses is updated in place.
 *   fails    as for reading by index
 *   source   jax.numpy.ndarray.at */
OLY_API oly_array oly_at_set_with(oly_array x, int n, const oly_operand *indexes, oly_operand updates,
                                  oly_at_options options);
OLY_API oly_array oly_at_add_with(oly_array x, int n, const oly_operand *indexes, oly_operand updates,
                                  oly_at_options options);
OLY_API oly_array oly_at_mul_with(oly_array x, int n, const oly_operand *indexes, oly_operand updates,
                                  oly_at_options options);
OLY_API oly_array oly_at_min_with(oly_array x, int n, const oly_operand *indexes, oly_operand updates,
                                  oly_at_options options);
OLY_API oly_array oly_at_max_with(oly_array x, int n, const oly_operand *indexes, oly_operand updates,
                                  oly_at_options options);
#define oly_at_set(...) oly_at_set_(__VA_ARGS__, )
#define oly_at_set_(x, n, indexes, u, ...)                                                                             \
    OLY_AT_AS(oly_at_set, oly_at_set_with)(x, n, indexes, OLY_ARG(u), OLY_AT_OPTIONS(__VA_ARGS__))
#define oly_at_add(...) oly_at_add_(__VA_ARGS__, )
#define oly_at_add_(x, n, indexes, u, ...)                                                                             \
    OLY_AT_AS(oly_at_add, oly_at_add_with)(x, n, indexes, OLY_ARG(u), OLY_AT_OPTIONS(__VA_ARGS__))
#define oly_at_mul(...) oly_at_mul_(__VA_ARGS__, )
#define oly_at_mul_(x, n, indexes, u, ...)                                                                             \
    OLY_AT_AS(oly_at_mul, oly_at_mul_with)(x, n, indexes, OLY_ARG(u), OLY_AT_OPTIONS(__VA_ARGS__))
#define oly_at_min(...) oly_at_min_(__VA_ARGS__, )
#define oly_at_min_(x, n, indexes, u, ...)                                                                             \
    OLY_AT_AS(oly_at_min, oly_at_min_with)(x, n, indexes, OLY_ARG(u), OLY_AT_OPTIONS(__VA_ARGS__))
#define oly_at_max(...) oly_at_max_(__VA_ARGS__, )
#define oly_at_max_(x, n, indexes, u, ...)                                                                             \
    OLY_AT_AS(oly_at_max, oly_at_max_with)(x, n, indexes, OLY_ARG(u), OLY_AT_OPTIONS(__VA_ARGS__))

/* Sums of the elements (slices) of `data` with equal segment numbers: element s of the result sums those with ids == s. Numbers
 * outside 0 to num_segments - 1 are dropped. ids has the shape of data's leading dimensions. source: jax.ops.segment_sum */
OLY_API oly_array oly_segment_sum(oly_array data, oly_array ids, int64_t num_segments);
#define oly_segment_sum(...) OLY_AT(oly_segment_sum)(__VA_ARGS__)

/* Counts how often 0, 1, ..., length - 1 occur in x (one dimension of integers). Negative numbers count as 0, larger ones not
 * at all. int32, with 64-bit types enabled int64. source: jax.numpy.bincount with length */
OLY_API oly_array oly_bincount(oly_array x, int64_t length);
#define oly_bincount(...) OLY_AT(oly_bincount)(__VA_ARGS__)

/* -- dynamic slices -------------------------------------------------------------------------------------------------
 * The part of x with the given sizes that starts at rank-0 integers, one for each dimension (arrays or C numbers), shifted to be
 * inside x; negative ones count from the end first: oly_dynamic_slice(x, OLY_INDEXES(i, 0), OLY_EXTENTS(2, 3)).
 *   fails   OLY_SHAPE (sizes larger than x, wrong number of starts), OLY_DTYPE (starts that are not integers)
 *   source  jax.lax.dynamic_slice */
OLY_API oly_array oly_dynamic_slice(oly_array x, int n, const oly_operand *starts, int rank, const int64_t *sizes);
#define oly_dynamic_slice(...) OLY_AT(oly_dynamic_slice)(__VA_ARGS__)
/* x with `update` (converted to its type) written there. Inside a function an intermediate x that nothing else uses is updated in
 * place. source: jax.lax.dynamic_update_slice */
OLY_API oly_array oly_dynamic_update_slice(oly_array x, oly_array update, int n, const oly_operand *starts);
#define oly_dynamic_update_slice(...) OLY_AT(oly_dynamic_update_slice)(__VA_ARGS__)

/* A list of indexes, arrays or C integers, at most 12. */
#ifdef __cplusplus
#define OLY_INDEXES(...) OLY_COUNTED_(oly_operand, {}, __VA_ARGS__)
#else
#define OLY_INDEXES(...)             OLY_COUNTED_(oly_operand, {0}, OLY_OPERANDS_(OLY_IS_EMPTY_(__VA_ARGS__), __VA_ARGS__))
#define OLY_OPERANDS_(empty, ...)    OLY_OPERANDS_OF_(empty, __VA_ARGS__)
#define OLY_OPERANDS_OF_(empty, ...) OLY_OPERANDS_##empty##_(__VA_ARGS__)
#define OLY_OPERANDS_1_(...)
#define OLY_OPERANDS_0_(...)          OLY_EACH_(OLY_OPERAND_IN_LIST_, , __VA_ARGS__)
#define OLY_OPERAND_IN_LIST_(none, x) OLY_ARG(x),
#endif

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_sort_with(...)         OLY_AT_AS(oly_sort, oly_sort_with)(__VA_ARGS__)
#define oly_argsort_with(...)      OLY_AT_AS(oly_argsort, oly_argsort_with)(__VA_ARGS__)
#define oly_cumsum_with(...)       OLY_AT_AS(oly_cumsum, oly_cumsum_with)(__VA_ARGS__)
#define oly_cumprod_with(...)      OLY_AT_AS(oly_cumprod, oly_cumprod_with)(__VA_ARGS__)
#define oly_cummax_with(...)       OLY_AT_AS(oly_cummax, oly_cummax_with)(__VA_ARGS__)
#define oly_cummin_with(...)       OLY_AT_AS(oly_cummin, oly_cummin_with)(__VA_ARGS__)
#define oly_cumlogsumexp_with(...) OLY_AT_AS(oly_cumlogsumexp, oly_cumlogsumexp_with)(__VA_ARGS__)
#define oly_argmax_with(...)       OLY_AT_AS(oly_argmax, oly_argmax_with)(__VA_ARGS__)
#define oly_argmin_with(...)       OLY_AT_AS(oly_argmin, oly_argmin_with)(__VA_ARGS__)
#define oly_at_get_with(...)       OLY_AT_AS(oly_at_get, oly_at_get_with)(__VA_ARGS__)
#define oly_at_set_with(...)       OLY_AT_AS(oly_at_set, oly_at_set_with)(__VA_ARGS__)
#define oly_at_add_with(...)       OLY_AT_AS(oly_at_add, oly_at_add_with)(__VA_ARGS__)
#define oly_at_mul_with(...)       OLY_AT_AS(oly_at_mul, oly_at_mul_with)(__VA_ARGS__)
#define oly_at_min_with(...)       OLY_AT_AS(oly_at_min, oly_at_min_with)(__VA_ARGS__)
#define oly_at_max_with(...)       OLY_AT_AS(oly_at_max, oly_at_max_with)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
