/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of single passes of the planner: a program with and without the pass, its values and what its plan costs. */
#ifndef COMPARE_PASS_H
#define COMPARE_PASS_H
#include "core/optimisation.h"
#include <olympus.h>

enum { COMPARE_PASS_RESULTS = 2, COMPARE_PASS_LENGTH = 2048 };

typedef struct pass_outcome {
    float value[COMPARE_PASS_RESULTS][COMPARE_PASS_LENGTH]; /* zeros after the end of a result */
    oly_plan_costs costs;
} pass_outcome;

/* Runs the function with all passes and without this one, and checks that the values have the same bits. All ranks. At most two float32
 * results of at most 2,048 elements each. */
void compare_pass(int optimisation, oly_function function, void *user, const oly_array *in, int n_in, int n_out,
                  pass_outcome *with, pass_outcome *without);

/* float32[length] from `from` to 1, on the mesh "x=4,y=2" (eight devices) with that spec. */
oly_array compare_pass_numbers(const char *spec, double from, int64_t length);
#endif
