/* A program under verification: what verify.c and blame.c share. Private to runtime/verify. */
#ifndef OLY_VERIFY_PROGRAM_H
#define OLY_VERIFY_PROGRAM_H
#include "verify/compare.h"
#include "verify/evaluate.h"
#include "verify/verify.h"

struct oly_verification {
    oly_graph *graph; /* owned: as it was before any plan */
    oly_evaluator *evaluator;
    int n_inputs, n_outputs;
    oly_plan_value *inputs; /* what each is; owned */
    oly_sharding *wanted;   /* [n_outputs]; owned */
    oly_held **in;          /* copies of what went in; owned */
    oly_mesh mesh;          /* of the plan */
    oly_expected
        *wider[2]; /* of outputs, of nodes: with disturbances that are larger; NULL: not asked for yet. owned */
};

/* Operation by operation: the outputs, or (`nodes`) the values of all nodes, NULL those without. expected: zeros, for as many; to be
 * forgotten, also on failure. scale: of the disturbed evaluations, which are made only where they matter. */
oly_status oly_expect(oly_verification *v, bool nodes, double scale, oly_expected *expected);
void oly_expected_forget(oly_expected *expected, int n);
/* Compares; what depends on roundings must differ by far more than they do. */
oly_status oly_differ(oly_verification *v, bool nodes, int n, oly_held *const *got, const oly_expected *expected,
                      oly_difference *first);

/* -- blame.c -- */
/* Fails OLY_VERIFY with all there is to say of a difference. expected: of the outputs. */
oly_status oly_blame(oly_verification *v, const oly_expected *expected, const oly_difference *found);
#endif
