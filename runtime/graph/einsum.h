/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading einsum's notation: the indices of every operand and of the result as numbers. Inside runtime/graph only. */
#ifndef OLY_GRAPH_EINSUM_H
#define OLY_GRAPH_EINSUM_H
#include "graph/type.h"

/* Indices: A-Z are 0 to 25, a-z 26 to 51; the dimensions that "..." stands for end with 63, counted from the right. */
enum { OLY_EINSUM_INDICES = 64, OLY_EINSUM_OPERANDS = 64 };
typedef struct oly_einsum_term {
    int n;
    uint8_t index[OLY_MAX_RANK];
} oly_einsum_term;

typedef struct oly_einsum {
    int n;
    oly_einsum_term operand[OLY_EINSUM_OPERANDS], result;
    int64_t size[OLY_EINSUM_INDICES]; /* the larger one, where size 1 broadcasts */
} oly_einsum;

/* fails OLY_PARSE (with the column), OLY_SHAPE (an operand does not fit its indices; sizes of one index differ) */
oly_status oly_einsum_read(const char *text, int n, const oly_type *const *type, oly_einsum *e);
/* How an index was written: "i", or "..." */
const char *oly_einsum_name(int index);
#endif
