/* SPDX-License-Identifier: BSD-3-Clause */
/* Factors: how the dimensions of an operation's operands and result relate. Propagation, the choices of the partitioner
 * and communication follow from them.
 * Rules are einsum-like strings: letters name factors, "..." stands for as many as the operand has, "->" separates the
 * operands from the result: "bmk,bkn->bmn". A letter that the result lacks is a reduction factor. Rules completed from
 * parameters have names: "@reduce", "@transpose", "@broadcast", "@reshape", "@slice", "@update", "@concatenate", "@pad",
 * "@rev", "@loop", "@all_gather", "@psum_scatter", "@all_to_all", "@permute", "@dot_general", "@conv", "@window", and
 * those of factors_local.c. */
#ifndef OLY_GRAPH_FACTORS_H
#define OLY_GRAPH_FACTORS_H
#include "graph/graph.h"

typedef enum {
    OLY_FACTOR_PARALLEL,  /* in the result */
    OLY_FACTOR_REDUCTION, /* reduced: summed, largest, ... */
    OLY_FACTOR_SHIFTED,   /* the same dimension, but elements move along it: slice, update, concatenate */
    OLY_FACTOR_WHOLE,     /* never split: the dimension is sorted, scanned or indexed */
} oly_factor_kind;

/* Exceptions to the order in which propagation passes axes through an operation (plan/propagate/axis_rules.h). */
typedef enum {
    OLY_FACTORS_PLAIN,
    OLY_FACTORS_REGROUP,   /* reshape: a factor of one side only is a remainder */
    OLY_FACTORS_BROADCAST, /* first from the result to the operand */
    OLY_FACTORS_FORWARD,   /* first from the operand to the result: slices at computed positions */
} oly_factors_flow;

#define OLY_MAX_FACTORS 32
typedef struct oly_dim_factors {
    int n;
    int factor[OLY_MAX_RANK]; /* major first; none: the dimension has size 1 or relates to nothing */
} oly_dim_factors;

typedef struct oly_factors {
    int n_factors;
    int64_t size[OLY_MAX_FACTORS]; /* of a shifted factor: that of the result */
    oly_factor_kind kind[OLY_MAX_FACTORS];
    oly_factors_flow flow;
    int n_operands; /* at most 16 are described; the rest relate to nothing */
    oly_dim_factors operand[16][OLY_MAX_RANK];
    oly_dim_factors result[OLY_MAX_RANK];
} oly_factors;

/* -- for the rules -- */
int oly_factor_new(oly_factors *f, int64_t size, oly_factor_kind kind);
static inline void oly_factor_attach(oly_dim_factors *dim, int factor)
{
    dim->factor[dim->n++] = factor;
}
typedef oly_status oly_factor_rule(const oly_node *node, oly_factors *f);
oly_factor_rule oly_factors_call;                                              /* call.c */
oly_factor_rule oly_factors_dot_general, oly_factors_conv, oly_factors_window; /* factors_contract.c */
/* factors_local.c: operations along one dimension and by value */
oly_factor_rule oly_factors_along, oly_factors_top_k, oly_factors_searchsorted, oly_factors_gather, oly_factors_scatter,
    oly_factors_dynamic_slice, oly_factors_dynamic_update_slice;

/* Factors of a node. Dimensions beyond the rank of an operand or the result are not touched. */
oly_status oly_factors_of(const oly_node *node, oly_factors *f);
/* Elementwise: dimension d of every operand and of the result is factor d, and there are no other factors. */
bool oly_factors_alike(const oly_node *node);
#endif
