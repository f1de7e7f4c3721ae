/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of combiners: what makes one element of two, for reductions. One row each, in the order of oly_combiner (kernel.h). All
 * that is done for every combiner expands it: the enum, the kernels (cpu/combine.c), identities (chunks.c), the element types a
 * reduction takes and the words of explained plans.
 *
 * A list expands to X(a, number, name, as_bool, op, identity, result) for each row; a: whatever the user of the list gives.
 *   number    OLY_COMBINE_<number>
 *   name      of functions and in plans
 *   as_bool   the name of what it is for bools
 *   op        the pair of elements, in cpu/combine.c: <op>_INTEGER, <op>_FLOAT, <op>_COMPLEX
 *   identity  ZERO, ONE, LOWEST, HIGHEST, or BITS (all bits set)
 *   result    WIDENS: reductions of narrow types have a wider result or are computed in one; KEEPS
 * Callable by kernels and, for the words, by the planner. */
#ifndef OLY_COMBINER_LIST_H
#define OLY_COMBINER_LIST_H

#define OLY_NUMBER_COMBINERS(X, a)                                                                                     \
    X(a, SUM, sum, or, ADD, ZERO, WIDENS)                                                                              \
    X(a, PROD, prod, and, MULTIPLY, ONE, WIDENS)                                                                       \
    X(a, MAX, max, or, LARGER, LOWEST, KEEPS)                                                                          \
    X(a, MIN, min, and, SMALLER, HIGHEST, KEEPS)
/* Of bools and integers only. */
#define OLY_BIT_COMBINERS(X, a)                                                                                        \
    X(a, AND, and, and, AND, BITS, KEEPS)                                                                              \
    X(a, OR, or, or, OR, ZERO, KEEPS)
#define OLY_EVERY_COMBINER(X, a) OLY_NUMBER_COMBINERS(X, a) OLY_BIT_COMBINERS(X, a)
#endif
