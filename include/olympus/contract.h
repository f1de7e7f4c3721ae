/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of arrays: matrix products, dot products, einsum. The same functions work eagerly and while tracing.
 * Included by <olympus.h>; programs include that one.
 *
 * Sharding, for all of them: remaining dimensions keep their axes; where a summed dimension is split, partial sums are reduced
 * over its axes in an order fixed by the mesh. Element types: operands are promoted to one type, which is the result's;
 * products and sums are computed in full precision (narrower floating types are summed as float32), integers wrap, bools are
 * combined by and and or. A C number may replace an operand where rank 0 is allowed. Errors, for all of them: OLY_SHAPE with
 * both types. */
#ifndef OLYMPUS_CONTRACT_H
#define OLYMPUS_CONTRACT_H

#include <olympus/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- products ------------------------------------------------------------------------------------------------------
 * Options, written after the operands: oly_matmul(a, b, .out_sharding = s).
 *   preferred_element_type  type of sums and result: of the operands' kind and at least as wide, or floating for
 *                           integers; default: the operands'. fails OLY_DTYPE
 *   out_sharding            sharding of the result; on Auto axes a constraint (oly_with_sharding_constraint) */
typedef struct oly_product_options {
    char first_; /* not used: lets the macro begin the list */
    oly_dtype preferred_element_type;
    oly_sharding out_sharding;
} oly_product_options;
#define OLY_PRODUCT_OPTIONS(...) OLY_OPTIONS_(oly_product_options, __VA_ARGS__)

/* Matrix product.
 *   a        [..., m, k] or [k]
 *   b        [..., k, n] or [k]; leading dimensions of both broadcast
 *   returns  [..., m, n], without m or n where the operand has no such dimension
 *   source   jax.numpy.matmul */
OLY_API oly_array oly_matmul_with(oly_operand a, oly_operand b, oly_product_options options);
#define oly_matmul(...) oly_matmul_(__VA_ARGS__, )
#define oly_matmul_(a, b, ...)                                                                                         \
    OLY_AT_AS(oly_matmul, oly_matmul_with)(OLY_ARG(a), OLY_ARG(b), OLY_PRODUCT_OPTIONS(__VA_ARGS__))

/* Dot product: sums over the last dimension of a and the last but one (or only) of b: [a..., k] by [b..., k, n] gives
 * [a..., b..., n]. With a number or a rank-0 array: the product. source: jax.numpy.dot */
OLY_API oly_array oly_dot_with(oly_operand a, oly_operand b, oly_product_options options);
#define oly_dot(...)        oly_dot_(__VA_ARGS__, )
#define oly_dot_(a, b, ...) OLY_AT_AS(oly_dot, oly_dot_with)(OLY_ARG(a), OLY_ARG(b), OLY_PRODUCT_OPTIONS(__VA_ARGS__))

/* Sums over the last dimension of both: [a..., k] by [b..., k] gives [a..., b...]. source: jax.numpy.inner */
OLY_API oly_array oly_inner_with(oly_operand a, oly_operand b, oly_product_options options);
#define oly_inner(...) oly_inner_(__VA_ARGS__, )
#define oly_inner_(a, b, ...)                                                                                          \
    OLY_AT_AS(oly_inner, oly_inner_with)(OLY_ARG(a), OLY_ARG(b), OLY_PRODUCT_OPTIONS(__VA_ARGS__))

/* Every element of a by every element of b: [size of a, size of b]. source: jax.numpy.outer */
OLY_API oly_array oly_outer_with(oly_operand a, oly_operand b, oly_product_options options);
#define oly_outer(...) oly_outer_(__VA_ARGS__, )
#define oly_outer_(a, b, ...)                                                                                          \
    OLY_AT_AS(oly_outer, oly_outer_with)(OLY_ARG(a), OLY_ARG(b), OLY_PRODUCT_OPTIONS(__VA_ARGS__))

/* Dot product of all elements of two arrays of equal size; complex elements of a are conjugated. source: jax.numpy.vdot */
OLY_API oly_array oly_vdot_with(oly_operand a, oly_operand b, oly_product_options options);
#define oly_vdot(...) oly_vdot_(__VA_ARGS__, )
#define oly_vdot_(a, b, ...)                                                                                           \
    OLY_AT_AS(oly_vdot, oly_vdot_with)(OLY_ARG(a), OLY_ARG(b), OLY_PRODUCT_OPTIONS(__VA_ARGS__))

/* Sums over the last `axes` dimensions of a and the first `axes` of b, in order. For other pairs of dimensions:
 * oly_dot_general. fails OLY_SHAPE, OLY_INVALID (more axes than dimensions). source: jax.numpy.tensordot */
OLY_API oly_array oly_tensordot_with(oly_operand a, oly_operand b, int axes, oly_product_options options);
#define oly_tensordot(...) oly_tensordot_(__VA_ARGS__, )
#define oly_tensordot_(a, b, axes, ...)                                                                                \
    OLY_AT_AS(oly_tensordot, oly_tensordot_with)(OLY_ARG(a), OLY_ARG(b), axes, OLY_PRODUCT_OPTIONS(__VA_ARGS__))

/* The general product: pairs of dimensions are summed over (contracting) or kept once (batch).
 *   contracting, batch   the dimensions of a, then, after ';', those of b: "1, 2; 0, 1"; default: none
 *   n_contracting, ...   the same as numbers
 *   returns              batch dimensions in the order named, then the other dimensions of a, then those of b
 *   fails                OLY_PARSE (with the column), OLY_SHAPE (no such dimension, one named twice, unequal sizes), OLY_DTYPE
 *   source               jax.lax.dot_general */
typedef struct oly_dot_options {
    char first_;
    const char *contracting, *batch;
    int n_contracting, n_batch;
    const int *a_contracting, *b_contracting, *a_batch, *b_batch;
    oly_dtype preferred_element_type;
    oly_sharding out_sharding;
} oly_dot_options;
OLY_API oly_array oly_dot_general_with(oly_operand a, oly_operand b, oly_dot_options options);
#define oly_dot_general(...) oly_dot_general_(__VA_ARGS__, )
#define oly_dot_general_(a, b, ...)                                                                                    \
    OLY_AT_AS(oly_dot_general, oly_dot_general_with)(OLY_ARG(a), OLY_ARG(b), OLY_OPTIONS_(oly_dot_options, __VA_ARGS__))

/* Einstein summation: "ij,jk->ik". Every letter is an index; one that the result does not name is summed over.
 *   subscripts  indices of each operand, between commas; then "->" and those of the result. Without "->": the letters that
 *               occur once, in alphabetical order. "..." stands for further dimensions, which broadcast. A letter twice in one
 *               operand takes the diagonal. Dimensions of size 1 broadcast.
 *   fails       OLY_PARSE (with the column), OLY_SHAPE (operand and indices do not fit)
 *   source      jax.numpy.einsum; products of more than two operands are ordered by least computation */
OLY_API oly_array oly_einsum_with(const char *subscripts, int n, const oly_array *arrays, oly_product_options options);
#define oly_einsum(subscripts, ...)                                                                                    \
    OLY_AT_AS(oly_einsum, oly_einsum_with)                                                                             \
    (subscripts, OLY_COUNTED_(oly_array, NULL, __VA_ARGS__), OLY_PRODUCT_OPTIONS())
/* With options: oly_einsum_options("ij,jk->ik", (.out_sharding = s), a, b) */
#define OLY_UNWRAP(...) __VA_ARGS__
#define oly_einsum_options(subscripts, options, ...)                                                                   \
    OLY_AT_AS(oly_einsum_options, oly_einsum_with)                                                                     \
    (subscripts, OLY_COUNTED_(oly_array, NULL, __VA_ARGS__), OLY_PRODUCT_OPTIONS(OLY_UNWRAP options))

/* -- convolutions ---------------------------------------------------------------------------------------------------
 * Slides kernels over an operand and sums the products at every position (kernels are not reversed: cross-correlation).
 *   x          [batch, features, space...], up to 6 spatial dimensions
 *   kernels    [features out, features / groups, space...]
 *   returns    [batch, features out, positions...]
 * Options; lists are text with one entry per spatial dimension ("2, 1") or numbers (as many, `..._list`):
 *   strides                step of the kernels; default: 1
 *   padding                zeros around x: "SAME" (as many positions as x has, divided by the strides), "SAME_LOWER" (an odd
 *                          zero goes before), "VALID" (none: the default), or "(1, 2), 0": before and after, negative removes;
 *                          numbers: pairs
 *   lhs_dilation           distance of x's elements (lhs_dilation - 1 zeros between them); rhs_dilation: of the kernels'
 *   feature_group_count    groups of features that are convolved separately; 0: 1
 *   batch_group_count      groups of the batch for groups of kernels; 0: 1
 *   dimension_numbers      order of the dimensions: "NHWC,HWIO->NHWC": N batch, C features, O out, I in, other letters spatial
 *   preferred_element_type, out_sharding   as for products
 * sharding: batch and features out stay split; where summed features are split, partial sums are reduced; of split spatial
 *   dimensions only the elements that windows read beyond a device's part are exchanged.
 * fails  OLY_PARSE (with the column), OLY_SHAPE, OLY_INVALID, OLY_DTYPE: bools
 * source jax.lax.conv_general_dilated */
typedef struct oly_conv_options {
    char first_;
    const char *strides, *padding, *lhs_dilation, *rhs_dilation, *dimension_numbers;
    int n_list; /* entries of the lists below, those that are not NULL; padding_list has twice as many */
    const int64_t *stride_list, *padding_list, *lhs_dilation_list, *rhs_dilation_list;
    int64_t feature_group_count, batch_group_count;
    oly_dtype preferred_element_type;
    oly_sharding out_sharding;
} oly_conv_options;
OLY_API oly_array oly_conv_with(oly_array x, oly_array kernels, oly_conv_options options);
#define oly_conv(...) oly_conv_(__VA_ARGS__, )
#define oly_conv_(x, kernels, ...)                                                                                     \
    OLY_AT_AS(oly_conv, oly_conv_with)(x, kernels, OLY_OPTIONS_(oly_conv_options, __VA_ARGS__))

/* Convolution of two vectors: sums of a[i] * v[k - i]. mode "full": every k with an overlap; "same": the length of the longer
 * one, centred; "valid": every k with a complete overlap. Integers become floating. fails OLY_SHAPE: not vectors, or empty;
 * OLY_INVALID: mode.
 * source jax.numpy.convolve */
OLY_API oly_array oly_convolve_with(oly_array a, oly_array v, const char *mode, oly_product_options options);
#define oly_convolve(...) oly_convolve_(__VA_ARGS__, )
#define oly_convolve_(a, v, mode, ...)                                                                                 \
    OLY_AT_AS(oly_convolve, oly_convolve_with)(a, v, mode, OLY_PRODUCT_OPTIONS(__VA_ARGS__))

/* Sums of a[i + k] * conj(v[i]); modes and errors as oly_convolve. source: jax.numpy.correlate */
OLY_API oly_array oly_correlate_with(oly_array a, oly_array v, const char *mode, oly_product_options options);
#define oly_correlate(...) oly_correlate_(__VA_ARGS__, )
#define oly_correlate_(a, v, mode, ...)                                                                                \
    OLY_AT_AS(oly_correlate, oly_correlate_with)(a, v, mode, OLY_PRODUCT_OPTIONS(__VA_ARGS__))

/* -- pooling --------------------------------------------------------------------------------------------------------
 * Reduces the elements under a window that slides over the last dimensions of x, as many as it has entries.
 *   reduction     "sum", "prod", "max", "min"; padding holds 0, 1, the lowest or the highest value
 *   window        its extents, "2, 2"; strides, padding, base_dilation, window_dilation as for oly_conv
 * oly_avg_pool divides the sum by the number of elements of the window (padding counts).
 * sharding: as oly_conv. fails OLY_PARSE, OLY_SHAPE, OLY_INVALID. source: jax.lax.reduce_window, flax's pooling */
typedef struct oly_window_options {
    char first_;
    const char *window, *strides, *padding, *base_dilation, *window_dilation;
    int n_list;
    const int64_t *window_list, *stride_list, *padding_list, *base_dilation_list, *window_dilation_list;
} oly_window_options;
OLY_API oly_array oly_reduce_window_with(oly_array x, const char *reduction, oly_window_options options);
OLY_API oly_array oly_avg_pool_with(oly_array x, oly_window_options options);
#define oly_reduce_window(...) oly_reduce_window_(__VA_ARGS__, )
#define oly_reduce_window_(x, reduction, ...)                                                                          \
    OLY_AT_AS(oly_reduce_window, oly_reduce_window_with)(x, reduction, OLY_OPTIONS_(oly_window_options, __VA_ARGS__))
#define oly_max_pool(...) oly_max_pool_(__VA_ARGS__, )
#define oly_max_pool_(x, ...)                                                                                          \
    OLY_AT_AS(oly_max_pool, oly_reduce_window_with)(x, "max", OLY_OPTIONS_(oly_window_options, __VA_ARGS__))
#define oly_avg_pool(...) oly_avg_pool_(__VA_ARGS__, )
#define oly_avg_pool_(x, ...)                                                                                          \
    OLY_AT_AS(oly_avg_pool, oly_avg_pool_with)(x, OLY_OPTIONS_(oly_window_options, __VA_ARGS__))

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_matmul_with(...)        OLY_AT_AS(oly_matmul, oly_matmul_with)(__VA_ARGS__)
#define oly_dot_with(...)           OLY_AT_AS(oly_dot, oly_dot_with)(__VA_ARGS__)
#define oly_inner_with(...)         OLY_AT_AS(oly_inner, oly_inner_with)(__VA_ARGS__)
#define oly_outer_with(...)         OLY_AT_AS(oly_outer, oly_outer_with)(__VA_ARGS__)
#define oly_vdot_with(...)          OLY_AT_AS(oly_vdot, oly_vdot_with)(__VA_ARGS__)
#define oly_tensordot_with(...)     OLY_AT_AS(oly_tensordot, oly_tensordot_with)(__VA_ARGS__)
#define oly_dot_general_with(...)   OLY_AT_AS(oly_dot_general, oly_dot_general_with)(__VA_ARGS__)
#define oly_einsum_with(...)        OLY_AT_AS(oly_einsum, oly_einsum_with)(__VA_ARGS__)
#define oly_conv_with(...)          OLY_AT_AS(oly_conv, oly_conv_with)(__VA_ARGS__)
#define oly_convolve_with(...)      OLY_AT_AS(oly_convolve, oly_convolve_with)(__VA_ARGS__)
#define oly_correlate_with(...)     OLY_AT_AS(oly_correlate, oly_correlate_with)(__VA_ARGS__)
#define oly_reduce_window_with(...) OLY_AT_AS(oly_reduce_window, oly_reduce_window_with)(__VA_ARGS__)
#define oly_avg_pool_with(...)      OLY_AT_AS(oly_avg_pool, oly_avg_pool_with)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
