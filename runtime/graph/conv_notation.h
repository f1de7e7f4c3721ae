/* SPDX-License-Identifier: BSD-3-Clause */
/* The dimensions of a convolution's operands by letters: "NHWC,HWIO->NHWC". Callable from graph and above. */
#ifndef OLY_GRAPH_CONV_NOTATION_H
#define OLY_GRAPH_CONV_NOTATION_H
#include "graph/graph.h"

typedef struct oly_conv_dims {
    int rank;
    int operand[OLY_MAX_RANK]; /* dimension k of [batch, features, space...] is this one of the operand */
    int kernel[OLY_MAX_RANK];  /* of [features out, features, space...] */
    int result[OLY_MAX_RANK];  /* dimension k of the result is this one of [batch, features, space...] */
} oly_conv_dims;

/* N batch, C features, O and I features out and in, any other letters space. NULL: "NC...,OI...->NC...".
 * fails OLY_PARSE (with the column): letters missing, twice, or not as many as `rank` */
oly_status oly_conv_dims_read(const char *text, int rank, oly_conv_dims *dims);
#endif
