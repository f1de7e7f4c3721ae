/* Compares what a plan has made with what operations one by one have made, on every device, and says it on every process of the mesh
 * alike. Private to runtime/verify. */
#ifndef OLY_VERIFY_COMPARE_H
#define OLY_VERIFY_COMPARE_H
#include "verify/held.h"

enum { OLY_DISTURBED = 2 }; /* evaluations that tell how far roundings may lead */

/* One value, evaluated operation by operation; again with disturbed roundings, where it depends on such (else NULL). */
typedef struct oly_expected {
    oly_held *exact;
    oly_held *disturbed[OLY_DISTURBED];
} oly_expected;

typedef struct oly_difference {
    bool any;
    int which;       /* of the values */
    int64_t element; /* its number in the whole array, row by row */
    int device;      /* its id */
    double got[2], expected[2], allowed;
} oly_difference;

/* got[k], expected[k]: of n values; got NULL: not compared. Called by all processes with devices of the mesh. The first value that
 * differs, and the first element of it. */
oly_status oly_compare(oly_mesh mesh, int n, oly_held *const *got, const oly_expected *expected, oly_difference *first);
#endif
