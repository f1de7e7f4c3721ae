/* SPDX-License-Identifier: BSD-3-Clause */
/* A program being verified: what verify.c and blame.c share. Private to runtime/verify. */
#ifndef OLY_VERIFY_PROGRAM_H
#define OLY_VERIFY_PROGRAM_H
#include "verify/compare.h"
#include "verify/evaluate.h"
#include "verify/verify.h"

struct oly_verification {
    oly_graph *graph; /* owned: as it was before any plan */
    oly_evaluator *evaluator;
    int n_inputs, n_outputs;
    oly_plan_value *inputs; /* types and shardings; owned */
    oly_sharding *wanted;   /* [n_outputs]; owned */
    oly_held **in;          /* copies of the inputs; owned */
    oly_mesh mesh;          /* of the plan */
    oly_expected *wider[2]; /* of outputs, of nodes: with larger disturbances; NULL: not needed so far. owned */
};

/* Evaluates operation by operation: the outputs, or (`nodes`) the values of all nodes, NULL for those without.
 * expected: as many zeros; to be released, also on failure. scale: of the disturbed evaluations, which are made only
 * where they matter. */
oly_status oly_expect(oly_verification *v, bool nodes, double scale, oly_expected *expected);
void oly_expected_forget(oly_expected *expected, int n);
/* Compares; values that depend on rounding must differ by much more than its effect. */
oly_status oly_differ(oly_verification *v, bool nodes, int n, oly_held *const *got, const oly_expected *expected,
                      oly_difference *first);

/* -- blame.c -- */
/* Fails OLY_VERIFY with the full description of a difference. expected: of the outputs. */
oly_status oly_blame(oly_verification *v, const oly_expected *expected, const oly_difference *found);
#endif
