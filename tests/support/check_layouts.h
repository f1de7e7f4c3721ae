/* SPDX-License-Identifier: BSD-3-Clause */
/* The same call on one device and in many layouts: the results must have the same bits. For tests of operations. */
#ifndef CHECK_LAYOUTS_H
#define CHECK_LAYOUTS_H
#include "check.h"
#include <olympus.h>

typedef oly_array check_call(const oly_array *in);

/* Calls `call` with operands on one device, then, eagerly and compiled, with operand k placed by specs[k] of the mesh
 * for each set of n_in specs (a NULL ends a set early: the rest stay where they are). Results must be equal bit for
 * bit. */
void check_layouts(const char *name, check_call *call, int n_in, const oly_array *in, oly_mesh mesh, int n_sets,
                   const char *const (*specs)[3]);
/* The whole array; to be freed. Fails the test if it cannot be fetched. */
void *check_fetch(oly_array x);
/* An array of integers between low and high, drawn by `seed`. */
oly_array check_numbers(oly_dtype dtype, int rank, const int64_t *shape, int low, int high, uint32_t seed);
#define CHECK_SHAPE(...)                                                                                               \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                                       \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#endif
