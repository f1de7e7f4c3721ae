/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations made of reductions: any and all, variance, softmax, one-hot. Included by <olympus.h>; programs include
 * that one. Sharding, ranks and errors: as in ops.h, at its top and for reductions. */
#ifndef OLYMPUS_STATISTICS_H
#define OLYMPUS_STATISTICS_H

#include <olympus/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- reductions; axes and keepdims as oly_sum(x, .axes = "0,-1", .keepdims = true) ------------------------------------- */

/* Whether any element, or all, differ from zero (NaN does; of complex numbers only the real part counts). Over no elements:
 * false, true. source: jax.numpy.any, all */
OLY_API oly_array oly_any_with(oly_operand x, oly_reduce_options options);
OLY_API oly_array oly_all_with(oly_operand x, oly_reduce_options options);
/* Mean of |x - mean|^2, and its square root; real also for complex numbers. Integers become floating; 16-bit floats are computed in
 * float32. .ddof = 1: the sum is divided by one less than the number of elements (NaN if that is 0).
 * source: jax.numpy.var, std */
OLY_API oly_array oly_var_with(oly_operand x, oly_reduce_options options);
OLY_API oly_array oly_std_with(oly_operand x, oly_reduce_options options);
/* log(sum(exp(x))) without overflow; floating, complex numbers too. source: jax.nn.logsumexp */
OLY_API oly_array oly_logsumexp_with(oly_operand x, oly_reduce_options options);
#define oly_any(...)           oly_any_(__VA_ARGS__, )
#define oly_any_(x, ...)       OLY_AT_AS(oly_any, oly_any_with)(OLY_ARG(x), OLY_REDUCE_OPTIONS(__VA_ARGS__))
#define oly_all(...)           oly_all_(__VA_ARGS__, )
#define oly_all_(x, ...)       OLY_AT_AS(oly_all, oly_all_with)(OLY_ARG(x), OLY_REDUCE_OPTIONS(__VA_ARGS__))
#define oly_var(...)           oly_var_(__VA_ARGS__, )
#define oly_var_(x, ...)       OLY_AT_AS(oly_var, oly_var_with)(OLY_ARG(x), OLY_REDUCE_OPTIONS(__VA_ARGS__))
#define oly_std(...)           oly_std_(__VA_ARGS__, )
#define oly_std_(x, ...)       OLY_AT_AS(oly_std, oly_std_with)(OLY_ARG(x), OLY_REDUCE_OPTIONS(__VA_ARGS__))
#define oly_logsumexp(...)     oly_logsumexp_(__VA_ARGS__, )
#define oly_logsumexp_(x, ...) OLY_AT_AS(oly_logsumexp, oly_logsumexp_with)(OLY_ARG(x), OLY_REDUCE_OPTIONS(__VA_ARGS__))

/* -- along an axis (negative: from the end) ---------------------------------------------------------------------------- */

/* exp(x) divided by its sum along the axis, without overflow; and the logarithm of that. Integers become floating.
 * fails OLY_SHAPE. source: jax.nn.softmax, log_softmax */
OLY_API oly_array oly_softmax(oly_operand x, int axis);
OLY_API oly_array oly_log_softmax(oly_operand x, int axis);
#define oly_softmax(x, axis)     OLY_AT(oly_softmax)(OLY_ARG(x), axis)
#define oly_log_softmax(x, axis) OLY_AT(oly_log_softmax)(OLY_ARG(x), axis)

/* A new dimension `axis` of the result with n classes: 1 where its index is x's value, else 0 (everywhere if x is not a class).
 * fails OLY_SHAPE, OLY_INVALID (negative n). source: jax.nn.one_hot */
OLY_API oly_array oly_one_hot(oly_array x, int64_t n, oly_dtype dtype, int axis);
#define oly_one_hot(...) OLY_AT(oly_one_hot)(__VA_ARGS__)

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_any_with(...)       OLY_AT_AS(oly_any, oly_any_with)(__VA_ARGS__)
#define oly_all_with(...)       OLY_AT_AS(oly_all, oly_all_with)(__VA_ARGS__)
#define oly_var_with(...)       OLY_AT_AS(oly_var, oly_var_with)(__VA_ARGS__)
#define oly_std_with(...)       OLY_AT_AS(oly_std, oly_std_with)(__VA_ARGS__)
#define oly_logsumexp_with(...) OLY_AT_AS(oly_logsumexp, oly_logsumexp_with)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
