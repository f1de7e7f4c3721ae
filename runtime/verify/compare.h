/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares the results of a plan with those of operations evaluated one by one, on every device, and reports the same
 * on every process of the mesh. Private to runtime/verify. */
#ifndef OLY_VERIFY_COMPARE_H
#define OLY_VERIFY_COMPARE_H
#include "verify/held.h"

enum { OLY_DISTURBED = 2 }; /* evaluations that estimate the effect of rounding */

/* One value, evaluated operation by operation; and with disturbed roundings, where it depends on them (else NULL). */
typedef struct oly_expected {
    oly_held *exact;
    oly_held *disturbed[OLY_DISTURBED];
} oly_expected;

typedef struct oly_difference {
    bool any;
    int which;       /* of the values */
    int64_t element; /* its position in the whole array, row-major */
    int device;      /* its id */
    double got[2], expected[2], allowed;
} oly_difference;

/* got[k], expected[k]: n values; got NULL: not compared. Called by all processes with devices of the mesh. Finds the
 * first value that differs, and its first element that does. */
oly_status oly_compare(oly_mesh mesh, int n, oly_held *const *got, const oly_expected *expected, oly_difference *first);
#endif
