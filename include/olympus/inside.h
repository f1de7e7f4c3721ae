/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's own code inside functions: values printed in the middle of a plan, conditions checked, host functions called,
 * derivatives and kernels of its own. Included by <olympus.h>; programs include that one. docs/inside.md is the guide. */
#ifndef OLYMPUS_INSIDE_H
#define OLYMPUS_INSIDE_H

#include <olympus/map.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- printing values ----------------------------------------------------------------------------------------------
 * oly_debug_print("step {}: u = {}", i, u) prints values where they are computed: at once outside of functions; inside oly_jit,
 * loops, branches, derivatives, oly_vmap and oly_shard_map whenever the call is reached in the running plan, in the order of the
 * program, and never dropped because nobody needs the result. The line ends with a newline.
 *
 * In the format {} or %A stands for the next array, as oly_printf's %A prints it (NumPy's print); {name} too; {:.3f} formats a
 * single number as printf's %.3f does; %R its repr, %T its type, %D the device that prints. {{ and }} and %% stand for {, } and %.
 *
 * oly_debug_print prints the whole arrays, once, on the process that owns the first device of the mesh, to which they are sent
 * (values that each process has for itself: on process 0). Inside oly_shard_map every device prints its own shards, inside
 * oly_vmap every element, in order. oly_debug_print_shards prints without sending anything: every device its parts.
 *
 * A function that prints returns from oly_call when everything is printed on this process (oly_call otherwise returns at once), so
 * its lines come before those that the program prints next.
 *   values   arrays or C numbers; up to 14
 *   returns  OLY_OK or the error (OLY_ERRORS_RETURN)
 *   ranks    all ranks of the arrays' mesh
 *   fails    OLY_INVALID (as many {} as values; an unknown letter), when the function is traced
 *   source   jax.debug.print */
OLY_API oly_status oly_debug_print_n(const char *format, bool shards, int n, const oly_operand *values);
#define oly_debug_print(...)                                                                                           \
    OLY_AT_AS(oly_debug_print, oly_debug_print_n)(OLY_FIRST_(__VA_ARGS__, ), false, OLY_VALUES_(__VA_ARGS__))
#define oly_debug_print_shards(...)                                                                                    \
    OLY_AT_AS(oly_debug_print_shards, oly_debug_print_n)(OLY_FIRST_(__VA_ARGS__, ), true, OLY_VALUES_(__VA_ARGS__))
/* The first argument; the number and the list of the others. */
#define OLY_FIRST_(first, ...)      first
#define OLY_VALUES_(...)            OLY_VALUES_OF_(OLY_HAS_COMMA_(__VA_ARGS__), __VA_ARGS__)
#define OLY_VALUES_OF_(more, ...)   OLY_VALUES_OF_N_(more, __VA_ARGS__)
#define OLY_VALUES_OF_N_(more, ...) OLY_VALUES_##more##_(__VA_ARGS__)
#define OLY_VALUES_0_(first)        OLY_INDEXES()
#define OLY_VALUES_1_(first, ...)   OLY_INDEXES(__VA_ARGS__)

/* -- checking conditions ------------------------------------------------------------------------------------------
 * oly_check(oly_gt(u, 0), "u must be positive, but is {}", u): an error (OLY_CHECK) unless the condition holds everywhere. The call
 * that runs the check fails - oly_call, oly_fori, ... or this one, outside of functions -, on all ranks with the same message: the line
 * of the check, the index of the first element that fails (in row-major order over the whole array, wherever it is), and the values
 * there. Works inside oly_jit, loops, branches (only of those that are taken), derivatives, oly_vmap (the first element of the batch)
 * and oly_shard_map (the first device). It is never dropped. After a check that fails the results of the call do not exist, its other
 * prints, checks and callbacks do not happen any more, and loops end with the iteration.
 *   condition  bool (or a number other than 0) of any shape
 *   values     for the format, as oly_debug_print's; arrays that broadcast to the condition's shape: their element there; others
 *              whole; up to 14
 *   returns    OLY_OK, or the error (OLY_ERRORS_RETURN); of a check recorded in a function, an error of the recording
 *   ranks      all ranks of the arrays' mesh
 *   fails      OLY_CHECK; OLY_INVALID (the format)
 *   source     jax.experimental.checkify.check */
OLY_API oly_status oly_check_n(oly_operand condition, const char *format, int n, const oly_operand *values);
#define oly_check(condition, ...)                                                                                      \
    OLY_AT_AS(oly_check, oly_check_n)(OLY_ARG(condition), OLY_FIRST_(__VA_ARGS__, ), OLY_VALUES_(__VA_ARGS__))

/* -- functions of the program ------------------------------------------------------------------------------------- */

typedef struct oly_user_call oly_user_call;

/* A block of an array, as functions called inside plans see it. */
typedef struct oly_shard_part {
    void *data; /* its first element, that of the halo included */
    oly_dtype dtype;
    int rank;
    int64_t shape[OLY_MAX_RANK];  /* of the block, with its halo */
    int64_t stride[OLY_MAX_RANK]; /* in elements; row by row unless the operand is declared strided */
    int64_t origin
        [OLY_MAX_RANK]; /* where the first element is in the whole array; in a halo that wraps around it may be negative */
    int64_t whole[OLY_MAX_RANK]; /* extents of the whole array */
    int64_t
        before[OLY_MAX_RANK]; /* elements of the halo in front of the device's own, and after them; fewer at an edge */
    int64_t after[OLY_MAX_RANK];
} oly_shard_part;

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_debug_print_n(...) OLY_AT_AS(oly_debug_print, oly_debug_print_n)(__VA_ARGS__)
#define oly_check_n(...)       OLY_AT_AS(oly_check, oly_check_n)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
