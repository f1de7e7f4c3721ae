/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole functions: traced once, planned once, replayed; loops inside them; explanations of the plan.
 * Included by <olympus.h>; programs include that one. */
#ifndef OLYMPUS_TRANSFORM_H
#define OLYMPUS_TRANSFORM_H

#include <olympus/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- functions ---------------------------------------------------------------------------------------------------- */

/* A function for oly_jit: reads in[] and stores a handle in every out[]. It is called while tracing, so it must not fetch values,
 * and it must return: no C++ exception or longjmp may leave it, or any other function that Olympus calls. Whatever it reads besides
 * in[] (C variables, *user, captured arrays) is part of the plan: later changes have no effect. */
typedef void (*oly_function)(const oly_array *in, oly_array *out, void *user);

typedef struct oly_jit_options {
    char first_;                       /* not used: lets the macro begin the list */
    void *user;                        /* passed to the function */
    const char *name;                  /* for messages and explanations; default the C name */
    const oly_sharding *in_shardings;  /* n_in of them or NULL; a NULL entry: as given */
    const oly_sharding *out_shardings; /* n_out of them or NULL; a NULL entry: the planner chooses */
} oly_jit_options;

/* Makes a function that traces `function` on its first call for each set of input types, shardings and placements, plans it,
 * and replays the plan afterwards. Called while another function is traced, it is inlined into that one.
 *   n_in     0 or more
 *   n_out    1 or more
 *   returns  handle owned by the open scope
 *   ranks    any rank, alone
 *   fails    OLY_INVALID, OLY_MEMORY
 *   source   jax.jit */
OLY_API oly_fn oly_jit_with(oly_function function, const char *c_name, int n_in, int n_out, oly_jit_options options);
#define oly_jit(...) oly_jit_(__VA_ARGS__, )
#define oly_jit_(function, n_in, n_out, ...)                                                                           \
    OLY_AT_AS(oly_jit, oly_jit_with)(function, #function, n_in, n_out, OLY_OPTIONS_(oly_jit_options, __VA_ARGS__))

/* Calls it: oly_call(f, OLY_IN(x, y), OLY_OUT(z)). Results belong to the open scope. An input that is also named as an
 * output is donated: the old array is freed, the variable holds the new one, in the old one's scope, and using another
 * copy of the old handle is an error (OLY_DELETED) that names the call. Where the plan allows it (same type and sharding, nothing
 * reads the old value after the first write to the new one) the result takes over its memory. The old contents of a variable named
 * in OLY_OUT are only compared with the inputs: initialise it to NULL, otherwise a stale copy of an input's handle donates that
 * input.
 *   returns  OLY_OK, or the error (OLY_ERRORS_RETURN), with the outputs set to NULL
 *   ranks    all ranks of the inputs' mesh
 *   fails    OLY_INVALID (number of arrays, an output not set), OLY_DEVICES, OLY_SHARDING (a committed input differs from
 *            in_shardings), whatever the function's operations fail with on the first call */
OLY_API oly_status oly_call_n(oly_fn f, int n_in, const oly_array *in, int n_out, oly_array *const *out);
#define oly_call(f, ...) OLY_AT_AS(oly_call, oly_call_n)(f, __VA_ARGS__)
#define OLY_IN(...)      OLY_COUNTED_(oly_array, NULL, __VA_ARGS__)
/* Up to 20 variables, whose addresses are passed. For more: oly_call_arrays. */
#define OLY_OUT(...)          OLY_COUNTED_(oly_array *, NULL, OLY_EACH_(OLY_ADDRESS_, , __VA_ARGS__))
#define OLY_ADDRESS_(none, x) &(x),

/* The same with lists of handles: a training step over any number of parameters is
 * oly_call_arrays(step, n, parameters, n, parameters), which donates them all. out[]: initialised, as for oly_call. */
OLY_API oly_status oly_call_arrays(oly_fn f, int n_in, const oly_array *in, int n_out, oly_array *out);
#define oly_call_arrays(...) OLY_AT(oly_call_arrays)(__VA_ARGS__)

/* Calls a function of one result and returns it: y = oly_apply(f, x). */
OLY_API oly_array oly_apply_n(oly_fn f, int n_in, const oly_array *in);
#define oly_apply(...)     oly_apply_(__VA_ARGS__, )
#define oly_apply_(f, ...) OLY_AT_AS(oly_apply, oly_apply_n)(f, OLY_IN(__VA_ARGS__))

/* -- loops --------------------------------------------------------------------------------------------------------
 * Applies body (upper - lower) times to carry[0..n_carry-1] (1 or more); they stay unchanged if that is not positive. `i` is the
 * int32 counter. Inside a traced function the loop stays a loop; outside it is traced, planned and run on every call. The types of
 * the carries must not change.
 *   returns  OLY_OK, or the error (OLY_ERRORS_RETURN), with carry[] set to NULL
 *   fails    OLY_SHAPE or OLY_DTYPE if the body changes a carry's type (both types in the message); OLY_OVERFLOW if a bound
 *            does not fit int32
 *   source   jax.lax.fori_loop */
typedef void (*oly_loop_body)(oly_array i, oly_array *carry, void *user);
OLY_API oly_status oly_fori(int64_t lower, int64_t upper, oly_loop_body body, int n_carry, oly_array *carry,
                            void *user);
#define oly_fori(...) OLY_AT(oly_fori)(__VA_ARGS__)

/* Applies body to carry[] while the condition, a bool computed from the carries, holds; it is tested before each application and
 * must be the same on all devices. Inside a traced function the loop stays a loop; outside it is traced, planned
 * and run on every call, and returns at once like every call.
 *   returns  OLY_OK, or the error (OLY_ERRORS_RETURN), with carry[] set to NULL
 *   fails    OLY_SHAPE or OLY_DTYPE if the body changes a carry's type or the condition is not one bool
 *   source   jax.lax.while_loop */
typedef oly_array (*oly_while_condition)(const oly_array *carry, void *user);
typedef void (*oly_while_body)(oly_array *carry, void *user);
OLY_API oly_status oly_while(oly_while_condition condition, oly_while_body body, int n_carry, oly_array *carry,
                             void *user);
#define oly_while(...) OLY_AT(oly_while)(__VA_ARGS__)

/* A loop over the first dimension of arrays: iteration i (with `reverse` the last first) passes the carries and x[k] = xs[k][i]
 * to the body, which replaces the carries and sets y[k]; ys[k] becomes the stack of the y[k], that of iteration i at index i.
 * Dimension 0 of the xs should not be split, the others may be: xs split along dimension 0 are moved before the loop so that another
 * dimension is split or, where the body has products, every device gets a row in each iteration. Over Explicit axes nothing moves unasked:
 * there it must not be split. The ys are split like the y; where what reads them has them split along dimension 0 instead, they are
 * exchanged once, after the loop.
 *   length   of the xs' first dimensions, and the number of iterations
 *   returns  OLY_OK, or the error (OLY_ERRORS_RETURN), with carry[] and ys[] set to NULL
 *   fails    OLY_SHAPE (xs of another length; a carry that changes), OLY_DTYPE, OLY_INVALID, OLY_SHARDING (xs split over an Explicit
 *            axis along dimension 0)
 *   source   jax.lax.scan */
typedef void (*oly_scan_body)(oly_array *carry, const oly_array *x, oly_array *y, void *user);
OLY_API oly_status oly_scan(int64_t length, bool reverse, oly_scan_body body, int n_carry, oly_array *carry, int n_x,
                            const oly_array *xs, int n_y, oly_array *ys, void *user);
#define oly_scan(...) OLY_AT(oly_scan)(__VA_ARGS__)

/* -- branches -----------------------------------------------------------------------------------------------------
 * Computes out[0..n_out-1] from in[0..n_in-1] by one of the functions; only that one runs. All must give the same types.
 * oly_switch runs branches[index], the first for a negative, the last for a large index; oly_cond runs the first function if the
 * predicate (bool, or a number other than 0) holds, else the second. The functions may capture arrays.
 *   index, predicate   rank 0; the same on all devices
 *   returns  OLY_OK, or the error (OLY_ERRORS_RETURN), with out[] set to NULL
 *   fails    OLY_SHAPE or OLY_DTYPE if the branches' results differ in type (both in the message)
 *   source   jax.lax.cond, jax.lax.switch */
OLY_API oly_status oly_switch(oly_operand index, int n_branches, const oly_function *branches, int n_in,
                              const oly_array *in, int n_out, oly_array *out, void *user);
#define oly_switch(index, ...) OLY_AT(oly_switch)(OLY_ARG(index), __VA_ARGS__)
OLY_API oly_status oly_cond(oly_operand predicate, oly_function if_true, oly_function if_false, int n_in,
                            const oly_array *in, int n_out, oly_array *out, void *user);
#define oly_cond(predicate, ...) OLY_AT(oly_cond)(OLY_ARG(predicate), __VA_ARGS__)

/* -- explanations -------------------------------------------------------------------------------------------------
 * The plan for these inputs, which is made but not run: steps and transfers, the type, sharding and reason for the placement of
 * every value, why data moves, memory per device and step, predicted times, and hints: which other placement of an input,
 * constraint or result would move less (found by planning again). docs/explain.md explains how to read it.
 *   file     written to, not closed
 *   form     text for people, JSON for programs, or a graph for Graphviz
 *   returns  OLY_OK or the error (OLY_ERRORS_RETURN)
 *   ranks    any rank, alone (the text is this rank's view; steps and collectives are the same on all)
 *   fails    OLY_INVALID (number of arrays, form), OLY_IO (writing failed), errors of planning */
typedef enum oly_explain_form { OLY_EXPLAIN_TEXT, OLY_EXPLAIN_JSON, OLY_EXPLAIN_DOT } oly_explain_form;
OLY_API oly_status oly_explain_n(FILE *file, oly_fn f, int n_in, const oly_array *in);
#define oly_explain(...)           (oly_explain_names(#__VA_ARGS__, 2), oly_explain_(__VA_ARGS__, ))
#define oly_explain_(file, f, ...) OLY_AT_AS(oly_explain, oly_explain_n)(file, f, OLY_IN(__VA_ARGS__))
OLY_API oly_status oly_explain_as_n(FILE *file, oly_explain_form form, oly_fn f, int n_in, const oly_array *in);
#define oly_explain_as(...) (oly_explain_names(#__VA_ARGS__, 3), oly_explain_as_(__VA_ARGS__, ))
#define oly_explain_as_(file, form, f, ...)                                                                            \
    OLY_AT_AS(oly_explain_as, oly_explain_as_n)(file, form, f, OLY_IN(__VA_ARGS__))
/* Names the inputs of this thread's next explanation by their expressions, "x, w", of which the first `skipped` are dropped; the
 * pointer is kept. Called by the macros. */
OLY_API void oly_explain_names(const char *arguments, int skipped);

/* The differences between two plans: oly_explain_diff(stdout, f, OLY_IN(x, w), f, OLY_IN(x, w_elsewhere)). Totals (steps,
 * collectives, bytes, memory, predicted time), inputs, results and, for the same function, values placed differently; and the
 * steps, those only of the first plan marked -, those only of the second +. Otherwise like oly_explain. */
OLY_API oly_status oly_explain_diff(FILE *file, oly_fn before, int n_before, const oly_array *in_before, oly_fn after,
                                    int n_after, const oly_array *in_after);
#define oly_explain_diff(...) OLY_AT(oly_explain_diff)(__VA_ARGS__)

/* The same in numbers. */
typedef struct oly_plan_costs {
    int64_t steps;         /* of the plan, loop bodies counted once */
    int64_t collectives;   /* exchanges and reductions over devices in one run; in loops as often as they run (once
                          * where a condition ends the loop), in branches those of all alternatives */
    int64_t wire_bytes;    /* bytes that the devices of this process receive from other devices in one run, summed; a
                          * reduction of B bytes over g devices counts 2 (g - 1) / g B for each of them */
    int64_t scratch_bytes; /* intermediate values, per device */
} oly_plan_costs;
OLY_API oly_status oly_costs_n(oly_plan_costs *costs, oly_fn f, int n_in, const oly_array *in);
#define oly_costs(...)            oly_costs_(__VA_ARGS__, )
#define oly_costs_(costs, f, ...) OLY_AT_AS(oly_costs, oly_costs_n)(costs, f, OLY_IN(__VA_ARGS__))

/* -- plans that are kept --------------------------------------------------------------------------------------------
 * Every function keeps its plans for calls with arrays of the same types and shardings, and eager calls share a cache. Each of these
 * caches has a limit (OLYMPUS_PLAN_CACHE); beyond it the plan that was used least recently is forgotten, and made again when
 * needed.
 *   returns  OLY_OK or the error (OLY_ERRORS_RETURN)
 *   ranks    any rank, alone
 *   fails    OLY_INVALID if state is NULL */
typedef struct oly_plan_cache {
    int64_t plans;   /* now kept, over all caches */
    int64_t most;    /* that one cache keeps */
    int64_t hits;    /* calls of this process that found theirs */
    int64_t made;    /* plans made and kept so far */
    int64_t dropped; /* forgotten because a cache was full */
} oly_plan_cache;
OLY_API oly_status oly_plan_cache_state(oly_plan_cache *state);

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_plan_cache_state(...) OLY_AT(oly_plan_cache_state)(__VA_ARGS__)
#define oly_jit_with(...)         OLY_AT_AS(oly_jit, oly_jit_with)(__VA_ARGS__)
#define oly_call_n(...)           OLY_AT_AS(oly_call, oly_call_n)(__VA_ARGS__)
#define oly_apply_n(...)          OLY_AT_AS(oly_apply, oly_apply_n)(__VA_ARGS__)
#define oly_explain_n(...)        OLY_AT_AS(oly_explain, oly_explain_n)(__VA_ARGS__)
#define oly_explain_as_n(...)     OLY_AT_AS(oly_explain_as, oly_explain_as_n)(__VA_ARGS__)
#define oly_explain_names(...)    OLY_AT(oly_explain_names)(__VA_ARGS__)
#define oly_costs_n(...)          OLY_AT_AS(oly_costs, oly_costs_n)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
