/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements of each type that kernels write where an operand has none. `value` has room for one element. Callable by kernels, of CPUs and of
 * GPUs. */
#ifndef OLY_SPECIAL_VALUES_H
#define OLY_SPECIAL_VALUES_H
#include <olympus/array.h>

/* The result of an index outside the array: NaN (imaginary part 0), the lowest integer, the largest unsigned one, true. */
void oly_outside_value(oly_dtype dtype, void *value);
/* One that does not change a sum: zero, for floating-point types the one that keeps the other operand's sign. */
void oly_unseen_value(oly_dtype dtype, void *value);
/* One after which none sorts: true, the largest integer, NaN in each part. */
void oly_last_value(oly_dtype dtype, void *value);
#endif
