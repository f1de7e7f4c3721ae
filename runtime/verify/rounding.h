/* SPDX-License-Identifier: BSD-3-Clause */
/* Which operations a plan may round differently than alone, and how far that may lead: docs/verify.md. Private to
 * runtime/verify. */
#ifndef OLY_VERIFY_ROUNDING_H
#define OLY_VERIFY_ROUNDING_H
#include "verify/held.h"

typedef enum oly_rounding {
    OLY_ROUNDING_SAME,     /* the same bits in every plan */
    OLY_ROUNDING_OF_TERMS, /* it adds: relative to its terms */
    OLY_ROUNDING_OF_RESULT /* relative to its result */
} oly_rounding;

/* in_taps: the node is in the body of a loop that may run as a stencil, whose sums are fused multiply-adds. */
oly_rounding oly_rounding_of(const oly_node *n, bool in_taps);
/* The effect of other orders, in units of the last place of its terms or result. */
double oly_rounding_units(const oly_node *n);
/* A graph of the same operation on the magnitudes of its operands, whose inputs are in[inputs[k]]. */
oly_status oly_rounding_graph(const oly_node *n, oly_graph **g);
/* Moves every element of x by up to `units` last places of the magnitude (NULL: of its own), pseudo-randomly by `seed`
 * and the element's number, alike in all copies. x has no other reader. */
oly_status oly_rounding_disturb(oly_held *x, const oly_held *magnitude, double units, uint64_t seed);
#endif
