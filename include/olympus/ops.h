/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on arrays. The same functions work eagerly and while tracing (inside oly_jit and loops).
 * Included by <olympus.h>; programs include that one.
 *
 * Sharding, for all of them: an operation runs where its operands are; the result keeps their split dimensions; data moves only
 * where necessary. ranks, for all of them: all ranks of the operands' mesh, in the same order. Errors, for all of them:
 * OLY_DEVICES if operands are committed to different device lists; OLY_DELETED; OLY_MEMORY. */
#ifndef OLYMPUS_OPS_H
#define OLYMPUS_OPS_H

#include <olympus/array.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- operands -----------------------------------------------------------------------------------------------------
 * Where an operation takes an operand, a C number may replace an array. It is weakly typed: it adopts the array's dtype (an
 * integer array with a floating number becomes floating: float32, int64 float64; with a complex one complex). A bool is a
 * bool, not weak. An integer must fit int32, or int64 with 64-bit types on or among the operands (fails OLY_OVERFLOW), except as
 * the fill value of an array (oly_full, oly_full_like), a start of oly_dynamic_slice or the data of oly_random_fold_in, where it
 * wraps. In calls outside of functions another number needs no other plan, unless it decides what is computed: an integer exponent, a
 * start of oly_dynamic_slice, the range of random numbers. Inside a function that is recorded a number is a constant; there use a
 * rank-0 array (oly_scalar) for what changes between calls.
 * source: JAX's weak types */
typedef struct oly_operand {
    oly_array array; /* NULL: the number is the operand */
    char kind;       /* 'a' array, 'b' bool, 'i' integer, 'f' floating, 'c' complex */
    int64_t integer;
    double floating; /* for a complex number the real part */
    double imaginary;
} oly_operand;

static inline oly_operand oly_operand_array(oly_array x)
{
    oly_operand operand = {x, 'a', 0, 0, 0};
    return operand;
}
static inline oly_operand oly_operand_bool(bool x)
{
    oly_operand operand = {NULL, 'b', x, x ? 1.0 : 0.0, 0};
    return operand;
}
static inline oly_operand oly_operand_int(int64_t x)
{
    oly_operand operand = {NULL, 'i', x, (double)x, 0};
    return operand;
}
static inline oly_operand oly_operand_unsigned(uint64_t x)
{
    oly_operand operand = {NULL, 'i', (int64_t)x, (double)x,
                           0}; /* beyond int64_t: negative, and a positive `floating` */
    return operand;
}
static inline oly_operand oly_operand_float(double x)
{
    oly_operand operand = {NULL, 'f', 0, x, 0};
    return operand;
}
static inline oly_operand oly_operand_parts(double real, double imaginary)
{
    oly_operand operand = {NULL, 'c', 0, real, imaginary};
    return operand;
}
#ifndef __cplusplus
static inline oly_operand oly_operand_complex(double _Complex x)
{
    return oly_operand_parts(__real__ x, __imag__ x);
}
#endif
static inline oly_operand oly_operand_self(oly_operand x)
{
    return x;
}

/* An address or a string is not a number: it does not compile. */
#ifndef __cplusplus
#define OLY_ARG(x)                                                                                                     \
    _Generic((x), oly_array                                                                                            \
             : oly_operand_array, oly_operand                                                                          \
             : oly_operand_self, bool                                                                                  \
             : oly_operand_bool, float                                                                                 \
             : oly_operand_float, double                                                                               \
             : oly_operand_float, long double                                                                          \
             : oly_operand_float, float _Complex                                                                       \
             : oly_operand_complex, double _Complex                                                                    \
             : oly_operand_complex, char                                                                               \
             : oly_operand_int, signed char                                                                            \
             : oly_operand_int, unsigned char                                                                          \
             : oly_operand_int, short                                                                                  \
             : oly_operand_int, unsigned short                                                                         \
             : oly_operand_int, int                                                                                    \
             : oly_operand_int, unsigned int                                                                           \
             : oly_operand_int, long                                                                                   \
             : oly_operand_int, unsigned long                                                                          \
             : oly_operand_unsigned, long long                                                                         \
             : oly_operand_int, unsigned long long                                                                     \
             : oly_operand_unsigned)(x)
#else
#define OLY_ARG(x) oly_cxx::operand(x)
}
#include <olympus/operand_cxx.h>
extern "C" {
#endif

/* -- making arrays (uncommitted, on the default device; inside a function the planner places them) ------------------ */

/* 0, 1, ..., n-1 (for bools: False, True, True, ...). fails OLY_INVALID for negative n. source: jax.numpy.arange */
OLY_API oly_array oly_arange(int64_t n, oly_dtype dtype);
#define oly_arange(...) OLY_AT(oly_arange)(__VA_ARGS__)
/* The same over a mesh; each device generates its own part. `out` NULL: replicated over a context mesh with Explicit axes. */
OLY_API oly_array oly_arange_sharded(int64_t n, oly_dtype dtype, oly_sharding out);
#define oly_arange_sharded(...) OLY_AT(oly_arange_sharded)(__VA_ARGS__)

/* Filled with zero, one, or a number. source: jax.numpy.zeros, ones, full */
OLY_API oly_array oly_zeros_shape(oly_dtype dtype, int rank, const int64_t *shape);
OLY_API oly_array oly_ones_shape(oly_dtype dtype, int rank, const int64_t *shape);
OLY_API oly_array oly_full_shape(oly_operand value, oly_dtype dtype, int rank, const int64_t *shape);
/* Over a mesh, as oly_arange_sharded. */
OLY_API oly_array oly_full_sharded(oly_operand value, oly_dtype dtype, oly_sharding out, int rank,
                                   const int64_t *shape);
/* oly_zeros(OLY_FLOAT32, 4, 8): extents as arguments; none makes a rank-0 array. */
#define oly_zeros(...)         oly_zeros_(__VA_ARGS__, )
#define oly_zeros_(dtype, ...) OLY_AT_AS(oly_zeros, oly_zeros_shape)(dtype, OLY_EXTENTS(__VA_ARGS__))
#define oly_ones(...)          oly_ones_(__VA_ARGS__, )
#define oly_ones_(dtype, ...)  OLY_AT_AS(oly_ones, oly_ones_shape)(dtype, OLY_EXTENTS(__VA_ARGS__))
#define oly_full(...)          oly_full_(__VA_ARGS__, )
#define oly_full_(value, dtype, ...)                                                                                   \
    OLY_AT_AS(oly_full, oly_full_shape)(OLY_ARG(value), OLY_TYPE_(dtype), OLY_EXTENTS(__VA_ARGS__))
/* The value comes first: a floating number as the type does not compile. */
#ifndef __cplusplus
#define OLY_TYPE_(dtype)                                                                                               \
    _Generic((dtype), float                                                                                            \
             : (struct oly_value_comes_before_type *)0, double                                                         \
             : (struct oly_value_comes_before_type *)0, default                                                        \
             : (dtype))
#else
#define OLY_TYPE_(dtype) oly_cxx::type_only(dtype)
#endif

/* A rank-0 array of a number. */
OLY_API oly_array oly_scalar_of(oly_operand value, oly_dtype dtype);
#define oly_scalar(value, dtype) OLY_AT_AS(oly_scalar, oly_scalar_of)(OLY_ARG(value), dtype)

#define OLY_EXTENTS(...) OLY_COUNTED_(int64_t, 0, __VA_ARGS__)
#define OLY_INTS(...)    OLY_COUNTED_(int, 0, __VA_ARGS__)

/* -- elementwise, one operand -------------------------------------------------------------------------------------
 * x any array; the result has its shape. "floating": integers and bools are converted to floating point first (float32, int64
 * to float64). neg and sign fail OLY_DTYPE on bools; relu makes them int32. */
OLY_API oly_array oly_neg(oly_operand x);         /* -x */
OLY_API oly_array oly_abs(oly_operand x);         /* magnitude */
OLY_API oly_array oly_sign(oly_operand x);        /* -1, 0, 1 (NaN stays) */
OLY_API oly_array oly_exp(oly_operand x);         /* floating */
OLY_API oly_array oly_log(oly_operand x);         /* natural logarithm, floating; log(0) = -inf, negative: NaN */
OLY_API oly_array oly_sqrt(oly_operand x);        /* floating; negative: NaN */
OLY_API oly_array oly_sin(oly_operand x);         /* x in radians, any size; floating */
OLY_API oly_array oly_cos(oly_operand x);         /* x in radians, any size; floating */
OLY_API oly_array oly_tanh(oly_operand x);        /* floating */
OLY_API oly_array oly_sigmoid(oly_operand x);     /* 1 / (1 + exp(-x)), floating */
OLY_API oly_array oly_relu(oly_operand x);        /* max(x, 0) */
OLY_API oly_array oly_logical_not(oly_operand x); /* x == 0, bool */
#define oly_neg(x)         OLY_AT(oly_neg)(OLY_ARG(x))
#define oly_abs(x)         OLY_AT(oly_abs)(OLY_ARG(x))
#define oly_sign(x)        OLY_AT(oly_sign)(OLY_ARG(x))
#define oly_exp(x)         OLY_AT(oly_exp)(OLY_ARG(x))
#define oly_log(x)         OLY_AT(oly_log)(OLY_ARG(x))
#define oly_sqrt(x)        OLY_AT(oly_sqrt)(OLY_ARG(x))
#define oly_sin(x)         OLY_AT(oly_sin)(OLY_ARG(x))
#define oly_cos(x)         OLY_AT(oly_cos)(OLY_ARG(x))
#define oly_tanh(x)        OLY_AT(oly_tanh)(OLY_ARG(x))
#define oly_sigmoid(x)     OLY_AT(oly_sigmoid)(OLY_ARG(x))
#define oly_relu(x)        OLY_AT(oly_relu)(OLY_ARG(x))
#define oly_logical_not(x) OLY_AT(oly_logical_not)(OLY_ARG(x))

/* -- elementwise, two operands ------------------------------------------------------------------------------------
 * Operands broadcast (trailing dimensions aligned; equal sizes or 1) and are promoted to a common type. Integers wrap. For two
 * bools add is or, mul is and.
 *   fails  OLY_SHAPE (both types and the dimension); OLY_DTYPE: sub and pow of two bools */
OLY_API oly_array oly_add(oly_operand x, oly_operand y);
OLY_API oly_array oly_sub(oly_operand x, oly_operand y);
OLY_API oly_array oly_mul(oly_operand x, oly_operand y);
OLY_API oly_array oly_div(oly_operand x, oly_operand y); /* true division: integers become floating */
OLY_API oly_array oly_pow(oly_operand x,
                          oly_operand y); /* integers: a negative exponent gives 0 (or +-1 for base +-1) */
OLY_API oly_array oly_max2(oly_operand x, oly_operand y); /* elementwise larger; NaN wins. source: jax.numpy.maximum */
OLY_API oly_array oly_min2(oly_operand x, oly_operand y); /* elementwise smaller; NaN wins */
OLY_API oly_array oly_eq(oly_operand x, oly_operand y);   /* comparisons give bool; NaN is unequal to everything */
OLY_API oly_array oly_ne(oly_operand x, oly_operand y);
OLY_API oly_array oly_lt(oly_operand x, oly_operand y);
OLY_API oly_array oly_le(oly_operand x, oly_operand y);
OLY_API oly_array oly_gt(oly_operand x, oly_operand y);
OLY_API oly_array oly_ge(oly_operand x, oly_operand y);
#define oly_add(x, y)  OLY_AT(oly_add)(OLY_ARG(x), OLY_ARG(y))
#define oly_sub(x, y)  OLY_AT(oly_sub)(OLY_ARG(x), OLY_ARG(y))
#define oly_mul(x, y)  OLY_AT(oly_mul)(OLY_ARG(x), OLY_ARG(y))
#define oly_div(x, y)  OLY_AT(oly_div)(OLY_ARG(x), OLY_ARG(y))
#define oly_pow(x, y)  OLY_AT(oly_pow)(OLY_ARG(x), OLY_ARG(y))
#define oly_max2(x, y) OLY_AT(oly_max2)(OLY_ARG(x), OLY_ARG(y))
#define oly_min2(x, y) OLY_AT(oly_min2)(OLY_ARG(x), OLY_ARG(y))
#define oly_eq(x, y)   OLY_AT(oly_eq)(OLY_ARG(x), OLY_ARG(y))
#define oly_ne(x, y)   OLY_AT(oly_ne)(OLY_ARG(x), OLY_ARG(y))
#define oly_lt(x, y)   OLY_AT(oly_lt)(OLY_ARG(x), OLY_ARG(y))
#define oly_le(x, y)   OLY_AT(oly_le)(OLY_ARG(x), OLY_ARG(y))
#define oly_gt(x, y)   OLY_AT(oly_gt)(OLY_ARG(x), OLY_ARG(y))
#define oly_ge(x, y)   OLY_AT(oly_ge)(OLY_ARG(x), OLY_ARG(y))

/* condition (bool, or non-zero) ? x : y, all three broadcast. source: jax.numpy.where */
OLY_API oly_array oly_where(oly_operand condition, oly_operand x, oly_operand y);
#define oly_where(c, x, y) OLY_AT(oly_where)(OLY_ARG(c), OLY_ARG(x), OLY_ARG(y))

/* Converts elements: float to integer truncates, saturates and maps NaN to 0; integer to integer wraps; a complex number
 * keeps its real part; anything to bool is `!= 0`. source: jax.numpy.astype */
OLY_API oly_array oly_astype(oly_operand x, oly_dtype dtype);
#define oly_astype(x, dtype) OLY_AT(oly_astype)(OLY_ARG(x), dtype)
/* The same, but a complex array to bool is `real part != 0`. source: jax.lax.convert_element_type */
OLY_API oly_array oly_convert_element_type(oly_operand x, oly_dtype dtype);
#define oly_convert_element_type(x, dtype) OLY_AT(oly_convert_element_type)(OLY_ARG(x), dtype)

/* -- complex numbers ----------------------------------------------------------------------------------------------
 * The parts of a complex64 are float32, those of a complex128 float64; real numbers are their own real part and conjugate.
 * source: jax.numpy.real, imag, conj; jax.lax.complex */
OLY_API oly_array oly_real(oly_operand x);
OLY_API oly_array oly_imag(oly_operand x);
OLY_API oly_array oly_conj(oly_operand x);
/* real + imaginary i: complex64, of float64 parts complex128; the operands broadcast. fails OLY_SHAPE, OLY_DTYPE: of complex
 * operands */
OLY_API oly_array oly_complex(oly_operand real, oly_operand imaginary);
#define oly_real(x)                  OLY_AT(oly_real)(OLY_ARG(x))
#define oly_imag(x)                  OLY_AT(oly_imag)(OLY_ARG(x))
#define oly_conj(x)                  OLY_AT(oly_conj)(OLY_ARG(x))
#define oly_complex(real, imaginary) OLY_AT(oly_complex)(OLY_ARG(real), OLY_ARG(imaginary))

/* -- reductions ---------------------------------------------------------------------------------------------------
 * oly_sum(x) over all dimensions; oly_sum(x, .axes = "0,-1") over some; oly_sum(x, OLY_AXES(0, 2)) from numbers; .keepdims =
 * true leaves reduced dimensions with size 1. Over no elements: sum 0, prod 1, mean NaN; max and min fail with OLY_SHAPE. Bools
 * and narrow integers are summed (and multiplied) as int32, unsigned ones as uint32 (with 64-bit types on as int64 and uint64);
 * narrower floating types in float32, the result rounded once; complex numbers are ordered by their real part, then by the
 * imaginary one; the mean of integers is floating.
 *   fails  OLY_SHAPE (no such axis), OLY_INVALID (an axis named twice), OLY_PARSE
 *   sharding  kept dimensions stay split; partial results are combined in an order fixed by the mesh, so that the same mesh
 *             gives the same bits however its devices are distributed over processes */
typedef struct oly_reduce_options {
    char first_;      /* not used: lets the macro begin the list */
    const char *axes; /* notation, or NULL */
    int n_axis_list;  /* numbers instead */
    const int *axis_list;
    bool axes_given; /* set by OLY_AXES, so that an empty list means "over nothing" */
    bool keepdims;
    oly_sharding
        out_sharding; /* of the result (for oly_sum: before .keepdims; "j, unreduced={i}" leaves it unreduced over i) */
    int ddof;         /* oly_var, oly_std */
} oly_reduce_options;
#ifndef __cplusplus
#define OLY_AXES(...)                                                                                                  \
    .n_axis_list = (int)(sizeof((int const[]){0, __VA_ARGS__}) / sizeof(int) - 1),                                     \
    .axis_list = OLY_LIST_(int, 0, __VA_ARGS__), .axes_given = true
#else
#define OLY_AXES(...) .set_axes(OLY_COUNTED_(int, 0, __VA_ARGS__))
#endif
OLY_API oly_array oly_sum_with(oly_operand x, oly_reduce_options options);
OLY_API oly_array oly_prod_with(oly_operand x, oly_reduce_options options);
OLY_API oly_array oly_max_with(oly_operand x, oly_reduce_options options);
OLY_API oly_array oly_min_with(oly_operand x, oly_reduce_options options);
OLY_API oly_array oly_mean_with(oly_operand x, oly_reduce_options options);
#define OLY_REDUCE_OPTIONS(...) OLY_OPTIONS_(oly_reduce_options, __VA_ARGS__)
#define oly_sum(...)            oly_sum_(__VA_ARGS__, )
#define oly_sum_(x, ...)        OLY_AT_AS(oly_sum, oly_sum_with)(OLY_ARG(x), OLY_REDUCE_OPTIONS(__VA_ARGS__))
#define oly_prod(...)           oly_prod_(__VA_ARGS__, )
#define oly_prod_(x, ...)       OLY_AT_AS(oly_prod, oly_prod_with)(OLY_ARG(x), OLY_REDUCE_OPTIONS(__VA_ARGS__))
#define oly_max(...)            oly_max_(__VA_ARGS__, )
#define oly_max_(x, ...)        OLY_AT_AS(oly_max, oly_max_with)(OLY_ARG(x), OLY_REDUCE_OPTIONS(__VA_ARGS__))
#define oly_min(...)            oly_min_(__VA_ARGS__, )
#define oly_min_(x, ...)        OLY_AT_AS(oly_min, oly_min_with)(OLY_ARG(x), OLY_REDUCE_OPTIONS(__VA_ARGS__))
#define oly_mean(...)           oly_mean_(__VA_ARGS__, )
#define oly_mean_(x, ...)       OLY_AT_AS(oly_mean, oly_mean_with)(OLY_ARG(x), OLY_REDUCE_OPTIONS(__VA_ARGS__))

/* -- shape --------------------------------------------------------------------------------------------------------- */

/* The same elements in row-major order with other extents; one extent may be -1 and is inferred. fails OLY_SHAPE */
OLY_API oly_array oly_reshape_shape(oly_array x, int rank, const int64_t *shape);
#define oly_reshape(...)     oly_reshape_(__VA_ARGS__, )
#define oly_reshape_(x, ...) OLY_AT_AS(oly_reshape, oly_reshape_shape)(x, OLY_EXTENTS(__VA_ARGS__))

/* The same with the sharding `out`: for Explicit axes whose result sharding is ambiguous, or to move the result. `out` NULL: as
 * oly_reshape. fails OLY_SHARDING */
OLY_API oly_array oly_reshape_sharded_shape(oly_array x, oly_sharding out, int rank, const int64_t *shape);
#define oly_reshape_sharded(...) oly_reshape_sharded_(__VA_ARGS__, )
#define oly_reshape_sharded_(x, out, ...)                                                                              \
    OLY_AT_AS(oly_reshape_sharded, oly_reshape_sharded_shape)(x, out, OLY_EXTENTS(__VA_ARGS__))

/* Permutes dimensions; without axes: reverses them. fails OLY_SHAPE unless a permutation */
OLY_API oly_array oly_transpose_axes(oly_array x, int n, const int *axes);
#define oly_transpose(...)     oly_transpose_(__VA_ARGS__, )
#define oly_transpose_(x, ...) OLY_AT_AS(oly_transpose, oly_transpose_axes)(x, OLY_INTS(__VA_ARGS__))

/* Broadcasts along new leading dimensions and dimensions of size 1. fails OLY_SHAPE. source: jax.numpy.broadcast_to */
OLY_API oly_array oly_broadcast_shape(oly_operand x, int rank, const int64_t *shape);
#define oly_broadcast_to(...)     oly_broadcast_to_(__VA_ARGS__, )
#define oly_broadcast_to_(x, ...) OLY_AT_AS(oly_broadcast_to, oly_broadcast_shape)(OLY_ARG(x), OLY_EXTENTS(__VA_ARGS__))

/* The same with the sharding `out`, which may add axes to dimensions but not change those that they have. fails OLY_SHARDING */
OLY_API oly_array oly_broadcast_sharded_shape(oly_operand x, oly_sharding out, int rank, const int64_t *shape);
#define oly_broadcast_sharded(...) oly_broadcast_sharded_(__VA_ARGS__, )
#define oly_broadcast_sharded_(x, out, ...)                                                                            \
    OLY_AT_AS(oly_broadcast_sharded, oly_broadcast_sharded_shape)(OLY_ARG(x), out, OLY_EXTENTS(__VA_ARGS__))

/* A part of an array, in Python's slice notation for each dimension: "1:-1, ::2", "3" (drops the dimension), "..." (all the
 * dimensions not named), "::-1" (backwards). Negative numbers count from the end, ranges are clipped.
 *   fails   OLY_PARSE (with the column), OLY_SHAPE (too many dimensions), OLY_INVALID (index out of range, step 0)
 *   source  Python slices */
OLY_API oly_array oly_slice(oly_array x, const char *slices);
#define oly_slice(...) OLY_AT(oly_slice)(__VA_ARGS__)

/* The structured form: elements start, start+step, ... before limit, for each dimension (rank entries each). NULL: from end
 * to end, step 1. Negative numbers count from the end, ranges are clipped. fails OLY_INVALID: step 0 */
OLY_API oly_array oly_slice_ranges(oly_array x, const int64_t *start, const int64_t *limit, const int64_t *step);
#define oly_slice_ranges(...) OLY_AT(oly_slice_ranges)(__VA_ARGS__)

/* Slices one dimension by numbers: elements start, start + step, ... before limit; or one element, dropping the dimension.
 * Negative numbers and axes count from the end.
 *   fails   as oly_slice; OLY_SHAPE (no such axis)
 *   source  jax.lax.slice_in_dim, index_in_dim with keepdims=False */
OLY_API oly_array oly_slice_in_dim(oly_array x, int64_t start, int64_t limit, int64_t step, int axis);
OLY_API oly_array oly_index_in_dim(oly_array x, int64_t index, int axis);
#define oly_slice_in_dim(...) OLY_AT(oly_slice_in_dim)(__VA_ARGS__)
#define oly_index_in_dim(...) OLY_AT(oly_index_in_dim)(__VA_ARGS__)

/* A copy of x with a part replaced by `value` (broadcast to it, converted to x's type as by oly_convert_element_type). Notation
 * and errors as oly_slice. Inside a function, an intermediate x that nothing else uses is updated in place. source:
 * x.at[...].set(value) */
OLY_API oly_array oly_update(oly_array x, const char *slices, oly_operand value);
#define oly_update(x, slices, value) OLY_AT(oly_update)(x, slices, OLY_ARG(value))

/* Concatenates arrays along a dimension (negative: from the end); the other dimensions must agree; types are promoted. At most
 * 64.
 * fails OLY_SHAPE, OLY_INVALID. source: jax.numpy.concatenate */
OLY_API oly_array oly_concatenate_n(int n, const oly_array *arrays, int dimension);
#define oly_concatenate(dimension, ...)                                                                                \
    OLY_AT_AS(oly_concatenate, oly_concatenate_n)(OLY_COUNTED_(oly_array, NULL, __VA_ARGS__), dimension)

/* -- sharding inside programs -------------------------------------------------------------------------------------
 * Fixes the sharding of an intermediate value in every dimension except UNCONSTRAINED ones, which propagation decides. Outside a
 * function it moves x, as oly_device_put does.
 * fails OLY_SHARDING: spec longer than the rank. source: jax.lax.with_sharding_constraint */
OLY_API oly_array oly_with_sharding_constraint(oly_array x, oly_sharding sharding);
#define oly_with_sharding_constraint(...) OLY_AT(oly_with_sharding_constraint)(__VA_ARGS__)

/* The same values with the Explicit axes of `sharding`; Auto axes stay as they are. The only way to move a value over Explicit
 * axes; also reduces unreduced sums ({U:x}).
 *   ranks    all ranks of the mesh
 *   fails    OLY_SHARDING: spec longer than the rank, a mesh without Explicit axes, a spec that names another axis
 *   source   jax.sharding.reshard */
OLY_API oly_array oly_reshard(oly_array x, oly_sharding sharding);
#define oly_reshard(...) OLY_AT(oly_reshard)(__VA_ARGS__)

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_zeros_shape(...)             OLY_AT_AS(oly_zeros, oly_zeros_shape)(__VA_ARGS__)
#define oly_ones_shape(...)              OLY_AT_AS(oly_ones, oly_ones_shape)(__VA_ARGS__)
#define oly_full_shape(...)              OLY_AT_AS(oly_full, oly_full_shape)(__VA_ARGS__)
#define oly_full_sharded(...)            OLY_AT(oly_full_sharded)(__VA_ARGS__)
#define oly_scalar_of(...)               OLY_AT_AS(oly_scalar, oly_scalar_of)(__VA_ARGS__)
#define oly_sum_with(...)                OLY_AT_AS(oly_sum, oly_sum_with)(__VA_ARGS__)
#define oly_prod_with(...)               OLY_AT_AS(oly_prod, oly_prod_with)(__VA_ARGS__)
#define oly_max_with(...)                OLY_AT_AS(oly_max, oly_max_with)(__VA_ARGS__)
#define oly_min_with(...)                OLY_AT_AS(oly_min, oly_min_with)(__VA_ARGS__)
#define oly_mean_with(...)               OLY_AT_AS(oly_mean, oly_mean_with)(__VA_ARGS__)
#define oly_reshape_shape(...)           OLY_AT_AS(oly_reshape, oly_reshape_shape)(__VA_ARGS__)
#define oly_reshape_sharded_shape(...)   OLY_AT_AS(oly_reshape_sharded, oly_reshape_sharded_shape)(__VA_ARGS__)
#define oly_transpose_axes(...)          OLY_AT_AS(oly_transpose, oly_transpose_axes)(__VA_ARGS__)
#define oly_broadcast_shape(...)         OLY_AT_AS(oly_broadcast_to, oly_broadcast_shape)(__VA_ARGS__)
#define oly_broadcast_sharded_shape(...) OLY_AT_AS(oly_broadcast_sharded, oly_broadcast_sharded_shape)(__VA_ARGS__)
#define oly_concatenate_n(...)           OLY_AT_AS(oly_concatenate, oly_concatenate_n)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
