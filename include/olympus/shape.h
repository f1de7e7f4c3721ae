/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that rearrange elements, in addition to reshape, transpose, slice, update and concatenate of ops.h. Included by
 * <olympus.h>; programs include that one. Sharding, ranks and errors: as at the top of ops.h. None of them computes; data moves
 * between devices only where elements change their position. Axes and dimensions may be negative: counted from the end. */
#ifndef OLYMPUS_SHAPE_H
#define OLYMPUS_SHAPE_H

#include <olympus/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- dimensions of size 1, order of dimensions ----------------------------------------------------------------------- */

/* Drops dimensions of size 1: oly_squeeze(x) all of them, oly_squeeze(x, 0, -1) the named ones. fails OLY_SHAPE: another size.
 * source: jax.numpy.squeeze */
OLY_API oly_array oly_squeeze_n(oly_array x, int n, const int *axes);
#define oly_squeeze(...)     oly_squeeze_(__VA_ARGS__, )
#define oly_squeeze_(x, ...) OLY_AT_AS(oly_squeeze, oly_squeeze_n)(x, OLY_INTS(__VA_ARGS__))

/* Adds dimensions of size 1, numbered as in the result. fails OLY_SHAPE, OLY_INVALID (named twice).
 * source: jax.numpy.expand_dims */
OLY_API oly_array oly_expand_dims_n(oly_array x, int n, const int *axes);
#define oly_expand_dims(...)     oly_expand_dims_(__VA_ARGS__, )
#define oly_expand_dims_(x, ...) OLY_AT_AS(oly_expand_dims, oly_expand_dims_n)(x, OLY_INTS(__VA_ARGS__))

/* All elements in one dimension, in row-major order. source: jax.numpy.ravel */
OLY_API oly_array oly_ravel(oly_array x);
#define oly_ravel(...) OLY_AT(oly_ravel)(__VA_ARGS__)

/* At least `rank` (1 to 3) dimensions: [] becomes [1] and so on, [n] becomes [1,n] and [1,n,1], [m,n] becomes [m,n,1].
 * source: jax.numpy.atleast_1d, atleast_2d, atleast_3d */
OLY_API oly_array oly_atleast(oly_array x, int rank);
#define oly_atleast_1d(x) OLY_AT_AS(oly_atleast_1d, oly_atleast)(x, 1)
#define oly_atleast_2d(x) OLY_AT_AS(oly_atleast_2d, oly_atleast)(x, 2)
#define oly_atleast_3d(x) OLY_AT_AS(oly_atleast_3d, oly_atleast)(x, 3)

/* Dimension `from` becomes dimension `to`, the others keep their order. source: jax.numpy.moveaxis */
OLY_API oly_array oly_moveaxis(oly_array x, int from, int to);
#define oly_moveaxis(...) OLY_AT(oly_moveaxis)(__VA_ARGS__)

/* Exchanges two dimensions. source: jax.numpy.swapaxes */
OLY_API oly_array oly_swapaxes(oly_array x, int a, int b);
#define oly_swapaxes(...) OLY_AT(oly_swapaxes)(__VA_ARGS__)

/* Broadcasts to a shape in which dimension d of x becomes dimensions[d] (ascending, n of them, one for each dimension of x); sizes
 * are equal, or 1 in x. fails OLY_SHAPE. source: jax.lax.broadcast_in_dim */
OLY_API oly_array oly_broadcast_in_dim(oly_operand x, int rank, const int64_t *shape, int n, const int *dimensions);
/* The same with the sharding `out` over Explicit axes. */
OLY_API oly_array oly_broadcast_in_dim_sharded(oly_operand x, oly_sharding out, int rank, const int64_t *shape, int n,
                                               const int *dimensions);
#define oly_broadcast_in_dim(x, ...)         OLY_AT(oly_broadcast_in_dim)(OLY_ARG(x), __VA_ARGS__)
#define oly_broadcast_in_dim_sharded(x, ...) OLY_AT(oly_broadcast_in_dim_sharded)(OLY_ARG(x), __VA_ARGS__)

/* -- padding and repetition --------------------------------------------------------------------------------------- */

/* Surrounds x with copies of `value` (a number or an array of rank 0, converted to x's type): low[d] before and high[d] after
 * dimension d, between[d] between its elements. Negative low and high remove elements. NULL: none.
 *     oly_pad(x, 0, (int64_t[]){1, 1}, (int64_t[]){1, 1}, NULL)
 *   fails     OLY_SHAPE: more is removed than there is; value has dimensions; between is negative
 *   sharding  a split dimension stays where it is: at most the elements that cross a border move
 *   source    jax.lax.pad */
OLY_API oly_array oly_pad(oly_operand x, oly_operand value, const int64_t *low, const int64_t *high,
                          const int64_t *between);
#define oly_pad(x, value, ...) OLY_AT(oly_pad)(OLY_ARG(x), OLY_ARG(value), __VA_ARGS__)

/* Surrounds x with its own elements, low[d] before and high[d] after dimension d (NULL: none), continuing it by:
 *   "edge"       d c  ->  d d d c c c      repeating the outermost element
 *   "reflect"    a b c  ->  c b a b c b a  reflection at its outermost elements, which occur once
 *   "symmetric"  a b c  ->  b a a b c c b  reflection behind them
 *   "wrap"       a b c  ->  b c a b c a b  its other end
 *   fails     OLY_PARSE (mode), OLY_SHAPE (a dimension of no elements), OLY_INVALID (negative numbers), OLY_OVERFLOW
 *   sharding  only elements that cross a border between devices move
 *   source    jax.numpy.pad with these modes */
OLY_API oly_array oly_pad_mode(oly_operand x, const char *mode, const int64_t *low, const int64_t *high);
#define oly_pad_mode(x, ...) OLY_AT(oly_pad_mode)(OLY_ARG(x), __VA_ARGS__)

/* Repeats x the given number of times along each dimension, aligned at the last one: oly_tile(x, 2, 3). More numbers than
 * dimensions add leading dimensions. fails OLY_INVALID (negative), OLY_OVERFLOW. source: jax.numpy.tile */
OLY_API oly_array oly_tile_n(oly_array x, int n, const int64_t *times);
#define oly_tile(...)     oly_tile_(__VA_ARGS__, )
#define oly_tile_(x, ...) OLY_AT_AS(oly_tile, oly_tile_n)(x, OLY_EXTENTS(__VA_ARGS__))

/* Repeats each element `times` times in a row along a dimension. fails OLY_SHAPE, OLY_INVALID (negative), OLY_OVERFLOW.
 * source: jax.numpy.repeat */
OLY_API oly_array oly_repeat(oly_array x, int64_t times, int axis);
#define oly_repeat(...) OLY_AT(oly_repeat)(__VA_ARGS__)

/* -- order of elements ----------------------------------------------------------------------------------------------- */

/* Reverses these dimensions; oly_flip(x) all of them. fails OLY_SHAPE, OLY_INVALID (named twice).
 * source: jax.lax.rev, jax.numpy.flip */
OLY_API oly_array oly_rev_n(oly_array x, int n, const int *axes);
OLY_API oly_array oly_flip_n(oly_array x, int n, const int *axes);
#define oly_rev(...)      oly_rev_(__VA_ARGS__, )
#define oly_rev_(x, ...)  OLY_AT_AS(oly_rev, oly_rev_n)(x, OLY_INTS(__VA_ARGS__))
#define oly_flip(...)     oly_flip_(__VA_ARGS__, )
#define oly_flip_(x, ...) OLY_AT_AS(oly_flip, oly_flip_n)(x, OLY_INTS(__VA_ARGS__))

/* Cyclic shift: elements move `shift` positions along an axis, and from the end to the start: oly_roll(x, 1, 0). The structured
 * form shifts n axes one after the other; with axes NULL it shifts the flattened x by shifts[0].
 *   sharding  like a halo exchange: only elements that cross a border move
 *   source    jax.numpy.roll */
OLY_API oly_array oly_roll_axes(oly_array x, int n, const int64_t *shifts, const int *axes);
OLY_API oly_array oly_roll(oly_array x, int64_t shift, int axis);
#define oly_roll_axes(...) OLY_AT(oly_roll_axes)(__VA_ARGS__)
#define oly_roll(...)      OLY_AT(oly_roll)(__VA_ARGS__)

/* -- several arrays -------------------------------------------------------------------------------------------------- */

/* Stacks arrays of one shape along a new dimension of the result; types are promoted. At most 64.
 * fails OLY_SHAPE, OLY_INVALID. source: jax.numpy.stack */
OLY_API oly_array oly_stack_n(int n, const oly_array *arrays, int dimension);
#define oly_stack(dimension, ...)                                                                                      \
    OLY_AT_AS(oly_stack, oly_stack_n)(OLY_COUNTED_(oly_array, NULL, __VA_ARGS__), dimension)

/* n parts of equal size along a dimension, into parts[]. fails OLY_SHAPE: the size is not a multiple of n; parts[] are NULL then.
 * source: jax.numpy.split */
OLY_API oly_status oly_split_evenly(oly_array x, int n, int dimension, oly_array *parts);
#define oly_split_evenly(...) OLY_AT(oly_split_evenly)(__VA_ARGS__)

/* -- matrices -------------------------------------------------------------------------------------------------------- */

/* Ones on diagonal k (0 the main one, 1 the one to its right, -1 the one to its left) of a matrix of zeros.
 * source: jax.numpy.eye */
OLY_API oly_array oly_eye(int64_t rows, int64_t columns, int64_t k, oly_dtype dtype);
/* Ones on and below diagonal k. source: jax.numpy.tri */
OLY_API oly_array oly_tri(int64_t rows, int64_t columns, int64_t k, oly_dtype dtype);
/* x with zeros above (tril), below (triu) diagonal k of its last two dimensions. fails OLY_SHAPE: fewer than two dimensions.
 * source: jax.numpy.tril, triu */
OLY_API oly_array oly_tril(oly_array x, int64_t k);
OLY_API oly_array oly_triu(oly_array x, int64_t k);
/* For a vector the matrix with it on diagonal k, for a matrix its diagonal k. fails OLY_SHAPE. source: jax.numpy.diag */
OLY_API oly_array oly_diag(oly_array x, int64_t k);
/* Diagonal k of dimensions a (rows) and b (columns), as the last dimension of the result; and the sum of its elements, added as
 * by oly_sum. fails OLY_SHAPE, OLY_INVALID. source: jax.numpy.diagonal, trace */
OLY_API oly_array oly_diagonal_of(oly_array x, int64_t k, int a, int b);
OLY_API oly_array oly_trace_of(oly_array x, int64_t k, int a, int b);
#define oly_eye(...)         OLY_AT(oly_eye)(__VA_ARGS__)
#define oly_tri(...)         OLY_AT(oly_tri)(__VA_ARGS__)
#define oly_tril(...)        OLY_AT(oly_tril)(__VA_ARGS__)
#define oly_triu(...)        OLY_AT(oly_triu)(__VA_ARGS__)
#define oly_diag(...)        OLY_AT(oly_diag)(__VA_ARGS__)
#define oly_diagonal_of(...) OLY_AT_AS(oly_diagonal, oly_diagonal_of)(__VA_ARGS__)
#define oly_trace_of(...)    OLY_AT_AS(oly_trace, oly_trace_of)(__VA_ARGS__)
#define oly_diagonal(x)      OLY_AT_AS(oly_diagonal, oly_diagonal_of)(x, 0, 0, 1)
#define oly_trace(x)         OLY_AT_AS(oly_trace, oly_trace_of)(x, 0, 0, 1)

/* -- sequences ------------------------------------------------------------------------------------------------ */

/* The index along one dimension, in an array of this shape. fails OLY_SHAPE. source: jax.lax.broadcasted_iota */
OLY_API oly_array oly_iota_shape(oly_dtype dtype, int dimension, int rank, const int64_t *shape);
#define oly_iota(...)                    oly_iota_(__VA_ARGS__, )
#define oly_iota_(dtype, dimension, ...) OLY_AT_AS(oly_iota, oly_iota_shape)(dtype, dimension, OLY_EXTENTS(__VA_ARGS__))

/* start, start + step, ... below stop (above it for a negative step). fails OLY_INVALID: step 0. source: jax.numpy.arange */
OLY_API oly_array oly_arange_range(double start, double stop, double step, oly_dtype dtype);
#define oly_arange_range(...) OLY_AT(oly_arange_range)(__VA_ARGS__)

/* n evenly spaced numbers from start to stop, both included; each a number or an array of rank 0. fails OLY_INVALID (negative n),
 * OLY_SHAPE. source: jax.numpy.linspace */
OLY_API oly_array oly_linspace(oly_operand start, oly_operand stop, int64_t n, oly_dtype dtype);
#define oly_linspace(start, stop, n, dtype) OLY_AT(oly_linspace)(OLY_ARG(start), OLY_ARG(stop), n, dtype)

/* Arrays of the shape and type of x with the sharding of x: where it is placed (oly_device_put); inside functions that of its type,
 * over Explicit axes, and varying between devices where x does. source: jax.numpy.full_like, zeros_like, ones_like */
OLY_API oly_array oly_full_like_of(oly_array x, oly_operand value);
#define oly_full_like(x, value) OLY_AT_AS(oly_full_like, oly_full_like_of)(x, OLY_ARG(value))
#define oly_zeros_like(x)       OLY_AT_AS(oly_zeros_like, oly_full_like_of)(x, oly_operand_int(0))
#define oly_ones_like(x)        OLY_AT_AS(oly_ones_like, oly_full_like_of)(x, oly_operand_int(1))

/* Differences of neighbours along an axis, applied n times; for bools, whether they differ. fails OLY_SHAPE, OLY_INVALID
 * (negative n). source: jax.numpy.diff */
OLY_API oly_array oly_diff(oly_array x, int64_t n, int axis);
#define oly_diff(...) OLY_AT(oly_diff)(__VA_ARGS__)

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_squeeze_n(...)     OLY_AT_AS(oly_squeeze, oly_squeeze_n)(__VA_ARGS__)
#define oly_expand_dims_n(...) OLY_AT_AS(oly_expand_dims, oly_expand_dims_n)(__VA_ARGS__)
#define oly_atleast(...)       OLY_AT(oly_atleast)(__VA_ARGS__)
#define oly_tile_n(...)        OLY_AT_AS(oly_tile, oly_tile_n)(__VA_ARGS__)
#define oly_rev_n(...)         OLY_AT_AS(oly_rev, oly_rev_n)(__VA_ARGS__)
#define oly_flip_n(...)        OLY_AT_AS(oly_flip, oly_flip_n)(__VA_ARGS__)
#define oly_stack_n(...)       OLY_AT_AS(oly_stack, oly_stack_n)(__VA_ARGS__)
#define oly_iota_shape(...)    OLY_AT_AS(oly_iota, oly_iota_shape)(__VA_ARGS__)
#define oly_full_like_of(...)  OLY_AT_AS(oly_full_like, oly_full_like_of)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
