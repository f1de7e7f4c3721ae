/* Products of arrays: matrix products, dot products, einsum. The same functions work eagerly and while tracing.
 * Included by <olympus.h>; programs include that one.
 *
 * Sharding, for all of them: dimensions that stay keep their axes; where a summed dimension is split, partial sums are added
 * over its axes in an order fixed by the mesh. Element types: operands meet in one type, which is the result's; products and
 * sums are formed in full precision (float16 and bfloat16 are summed as float32), integers wrap, bools are combined by and and or.
 * A C number may stand for an operand where rank 0 is allowed. Errors, for all of them: OLY_SHAPE with both types. */
#ifndef OLYMPUS_CONTRACT_H
#define OLYMPUS_CONTRACT_H

#include <olympus/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- products ------------------------------------------------------------------------------------------------------
 * Options, written behind the operands: oly_matmul(a, b, .out_sharding = s).
 *   preferred_element_type  type of sums and result: at least as wide as the operands' and of their kind, or floating for
 *                           integers; not given: the operands'. fails OLY_DTYPE
 *   out_sharding            where the result is wanted: on Auto axes a constraint (oly_with_sharding_constraint) */
typedef struct oly_product_options {
    char first_; /* not used: lets the macro begin the list */
    oly_dtype preferred_element_type;
    oly_sharding out_sharding;
} oly_product_options;
#define OLY_PRODUCT_OPTIONS(...)                                                                                       \
    (oly_product_options)                                                                                              \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

/* Matrix product.
 *   a        [..., m, k] or [k]
 *   b        [..., k, n] or [k]; leading dimensions of both broadcast
 *   returns  [..., m, n]; a dimension that was missing is missing
 *   source   jax.numpy.matmul */
OLY_API oly_array oly_matmul_with(oly_operand a, oly_operand b, oly_product_options options);
#define oly_matmul(a, b, ...) OLY_AT(oly_matmul_with)(OLY_ARG(a), OLY_ARG(b), OLY_PRODUCT_OPTIONS(__VA_ARGS__))

/* Dot product: sums over the last dimension of a and the last but one (or only) of b: [a..., k] by [b..., k, n] gives
 * [a..., b..., n]. With a number or a rank-0 array: the product. source: jax.numpy.dot */
OLY_API oly_array oly_dot_with(oly_operand a, oly_operand b, oly_product_options options);
#define oly_dot(a, b, ...) OLY_AT(oly_dot_with)(OLY_ARG(a), OLY_ARG(b), OLY_PRODUCT_OPTIONS(__VA_ARGS__))

/* Sums over the last dimension of both: [a..., k] by [b..., k] gives [a..., b...]. source: jax.numpy.inner */
OLY_API oly_array oly_inner_with(oly_operand a, oly_operand b, oly_product_options options);
#define oly_inner(a, b, ...) OLY_AT(oly_inner_with)(OLY_ARG(a), OLY_ARG(b), OLY_PRODUCT_OPTIONS(__VA_ARGS__))

/* Every element of a by every element of b: [size of a, size of b]. source: jax.numpy.outer */
OLY_API oly_array oly_outer_with(oly_operand a, oly_operand b, oly_product_options options);
#define oly_outer(a, b, ...) OLY_AT(oly_outer_with)(OLY_ARG(a), OLY_ARG(b), OLY_PRODUCT_OPTIONS(__VA_ARGS__))

/* Dot product of all elements of two arrays of equal size; complex elements of a are conjugated. source: jax.numpy.vdot */
OLY_API oly_array oly_vdot_with(oly_operand a, oly_operand b, oly_product_options options);
#define oly_vdot(a, b, ...) OLY_AT(oly_vdot_with)(OLY_ARG(a), OLY_ARG(b), OLY_PRODUCT_OPTIONS(__VA_ARGS__))

/* Sums over the last `axes` dimensions of a and the first `axes` of b, in order. For other pairs of dimensions:
 * oly_dot_general. fails OLY_SHAPE, OLY_INVALID (more axes than dimensions). source: jax.numpy.tensordot */
OLY_API oly_array oly_tensordot_with(oly_operand a, oly_operand b, int axes, oly_product_options options);
#define oly_tensordot(a, b, axes, ...)                                                                                 \
    OLY_AT(oly_tensordot_with)(OLY_ARG(a), OLY_ARG(b), axes, OLY_PRODUCT_OPTIONS(__VA_ARGS__))

/* The general product: pairs of dimensions are summed over (contracting) or kept once (batch).
 *   contracting, batch   the dimensions of a, then, behind ';', those of b: "1, 2; 0, 1"; not given: none
 *   n_contracting, ...   the same as numbers, instead
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
#define oly_dot_general(a, b, ...) OLY_AT(oly_dot_general_with)(OLY_ARG(a), OLY_ARG(b), (oly_dot_options){__VA_ARGS__})

/* Einstein's summation: "ij,jk->ik". Every letter is an index; one that the result does not name is summed over.
 *   subscripts  indices of each operand, between commas; then "->" and those of the result. Without "->": the letters that occur
 *               once, in alphabetical order. "..." stands for further dimensions, which broadcast. A letter twice in one operand
 *               takes the diagonal. Dimensions of size 1 broadcast.
 *   fails       OLY_PARSE (with the column), OLY_SHAPE (operand and indices do not fit)
 *   source      jax.numpy.einsum; products of more than two operands are ordered by least work */
OLY_API oly_array oly_einsum_with(const char *subscripts, int n, const oly_array *arrays, oly_product_options options);
#define oly_einsum(subscripts, ...)                                                                                    \
    OLY_AT(oly_einsum_with)                                                                                            \
    (subscripts, (int)(sizeof((oly_array[]){__VA_ARGS__}) / sizeof(oly_array)), (oly_array[]){__VA_ARGS__},            \
     OLY_PRODUCT_OPTIONS())
/* With options: oly_einsum_options("ij,jk->ik", (.out_sharding = s), a, b) */
#define OLY_UNWRAP(...) __VA_ARGS__
#define oly_einsum_options(subscripts, options, ...)                                                                   \
    OLY_AT(oly_einsum_with)                                                                                            \
    (subscripts, (int)(sizeof((oly_array[]){__VA_ARGS__}) / sizeof(oly_array)), (oly_array[]){__VA_ARGS__},            \
     OLY_PRODUCT_OPTIONS(OLY_UNWRAP options))

#ifdef __cplusplus
}
#endif
#endif
