/* SPDX-License-Identifier: BSD-3-Clause */
/* Derivatives of functions. Included by <olympus.h>; programs include that one.
 *
 * Each call takes a function made by oly_jit (or by another of these calls) and returns another function, which is called, inlined
 * into others, and differentiated again like any function:
 *
 *     oly_fn loss = oly_jit(loss_of, 3, 1), slope = oly_grad(loss, .argnums = "0, 1");
 *     oly_call(slope, OLY_IN(w, b, data), OLY_OUT(w_slope, b_slope));
 *
 * Derivatives have the shape and the element type of the argument (bfloat16 stays bfloat16) and, over Explicit axes, its
 * sharding; elsewhere the planner chooses as for any value. The gradient of a complex argument z = x + iy is d/dx - i d/dy. At
 * points without a derivative, elements that tie for a maximum share equally, abs has slope 1 and relu slope 0 at 0, oly_clamp
 * is flat at its bounds. Branches and loops with a fixed number of iterations are differentiated; while loops are not. ranks:
 * as the call of the function. */
#ifndef OLYMPUS_GRADIENT_H
#define OLYMPUS_GRADIENT_H

#include <olympus/transform.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- derivatives --------------------------------------------------------------------------------------------------- */

/* The arguments to differentiate with respect to: "0, 2", or a list of numbers. */
typedef struct oly_gradient_options {
    char first_;         /* not used: lets the macro begin the list */
    const char *argnums; /* notation, or NULL */
    int n_argnum_list;   /* numbers instead */
    const int *argnum_list;
    const char *name; /* for messages and explanations; default that of the function */
} oly_gradient_options;
#ifndef __cplusplus
#define OLY_ARGNUMS(...)                                                                                               \
    .n_argnum_list = (int)(sizeof((int const[]){0, __VA_ARGS__}) / sizeof(int) - 1),                                   \
    .argnum_list = OLY_LIST_(int, 0, __VA_ARGS__)
#else
#define OLY_ARGNUMS(...) .set_argnums(OLY_COUNTED_(int, 0, __VA_ARGS__))
#endif
#define OLY_GRADIENT_OPTIONS_(...) OLY_OPTIONS_(oly_gradient_options, __VA_ARGS__)

/* The gradient of f's first result, a real number (rank 0), with respect to the named arguments (default: argument 0).
 *   returns  a function of f's arguments: the gradients in the order named, then f's other results, if it has any
 *   fails    OLY_INVALID: no such argument, an argument named twice; when called OLY_SHAPE: f's first result is not rank 0,
 *            OLY_DTYPE: it is not real, or an argument named is not floating or complex; OLY_INVALID, with the line of the call:
 *            an operation that the result depends on has no derivative
 *   source   jax.grad */
OLY_API oly_fn oly_grad_with(oly_fn f, oly_gradient_options options);
#define oly_grad(...)     oly_grad_(__VA_ARGS__, )
#define oly_grad_(f, ...) OLY_AT_AS(oly_grad, oly_grad_with)(f, OLY_GRADIENT_OPTIONS_(__VA_ARGS__))

/* The same preceded by f's value: first result, gradients, other results. source: jax.value_and_grad */
OLY_API oly_fn oly_value_and_grad_with(oly_fn f, oly_gradient_options options);
#define oly_value_and_grad(...) oly_value_and_grad_(__VA_ARGS__, )
#define oly_value_and_grad_(f, ...)                                                                                    \
    OLY_AT_AS(oly_value_and_grad, oly_value_and_grad_with)(f, OLY_GRADIENT_OPTIONS_(__VA_ARGS__))

/* The product of a cotangent and the Jacobian (reverse mode).
 *   returns  a function of f's arguments, then a cotangent for each of f's results (same type; those of integers are ignored);
 *            it gives f's results, then the cotangents of the arguments named (default: all)
 *   fails    as oly_grad; OLY_SHAPE, OLY_DTYPE: a cotangent's type differs from the result's
 *   source   jax.vjp */
OLY_API oly_fn oly_vjp_with(oly_fn f, oly_gradient_options options);
#define oly_vjp(...)     oly_vjp_(__VA_ARGS__, )
#define oly_vjp_(f, ...) OLY_AT_AS(oly_vjp, oly_vjp_with)(f, OLY_GRADIENT_OPTIONS_(__VA_ARGS__))

/* The product of the Jacobian and a tangent (forward mode).
 *   returns  a function of f's arguments, then a tangent for each argument named (default: all); it gives f's results, then
 *            their tangents (zeros for integers)
 *   fails    as oly_vjp
 *   source   jax.jvp */
OLY_API oly_fn oly_jvp_with(oly_fn f, oly_gradient_options options);
#define oly_jvp(...)     oly_jvp_(__VA_ARGS__, )
#define oly_jvp_(f, ...) OLY_AT_AS(oly_jvp, oly_jvp_with)(f, OLY_GRADIENT_OPTIONS_(__VA_ARGS__))

/* Inside a function: the gradients of `y` (rank 0, real) with respect to values it was computed from in the same function,
 * including intermediate ones. gradient[k] has the type of by[k]; zeros if y does not depend on it. A value that an operation or a
 * call returns unchanged (oly_repeat(x, 1), a result that was also an argument) is the same value as before, and an argument of a
 * function called inside another is the value it is called with: the gradient counts all uses.
 *   fails   OLY_TRACE outside a function; else as oly_grad */
OLY_API oly_status oly_gradients_n(oly_array y, int n_by, const oly_array *by, int n, oly_array *const *gradient);
#define oly_gradients(...) OLY_AT_AS(oly_gradients, oly_gradients_n)(__VA_ARGS__)

/* x, treated as a constant by gradients. source: jax.lax.stop_gradient */
OLY_API oly_array oly_stop_gradient(oly_operand x);
#define oly_stop_gradient(x) OLY_AT(oly_stop_gradient)(OLY_ARG(x))

/* The same function, of which gradients keep only the arguments: the backward pass recomputes its intermediate values. Saves
 * memory for large functions. (Loops keep only their carries in any case.)
 * source: jax.checkpoint */
OLY_API oly_fn oly_checkpoint(oly_fn f);
#define oly_checkpoint(...) OLY_AT(oly_checkpoint)(__VA_ARGS__)

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_grad_with(...)           OLY_AT_AS(oly_grad, oly_grad_with)(__VA_ARGS__)
#define oly_value_and_grad_with(...) OLY_AT_AS(oly_value_and_grad, oly_value_and_grad_with)(__VA_ARGS__)
#define oly_vjp_with(...)            OLY_AT_AS(oly_vjp, oly_vjp_with)(__VA_ARGS__)
#define oly_jvp_with(...)            OLY_AT_AS(oly_jvp, oly_jvp_with)(__VA_ARGS__)
#define oly_gradients_n(...)         OLY_AT_AS(oly_gradients, oly_gradients_n)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
