/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules along which axes propagate: which dimensions of which values must be split alike. Built once per plan from
 * the factors of every node and the edges of loops and branches. Private to axis_rules.c and propagate.c. */
#ifndef OLY_PLAN_PROPAGATE_AXIS_RULES_H
#define OLY_PLAN_PROPAGATE_AXIS_RULES_H
#include "plan/model/planner.h"
#include "graph/factors.h"

/* A value as a rule sees it. */
typedef struct oly_flow_tensor {
    oly_value *value;
    const oly_type *type;
    int number;          /* index of the value, over all frames */
    int64_t elements;    /* in a conflict the larger tensor wins */
    const uint8_t *dims; /* per dimension: the number of factors, then the factors; NULL: dimension d is factor d */
} oly_flow_tensor;

/* In which rounds of propagate.c a rule takes part, and in which direction. */
typedef enum oly_flow_kind {
    OLY_FLOW_OPERATION, /* parallel factors first, the others later */
    OLY_FLOW_THROUGH,   /* every factor is in every value: elementwise, reshape, transpose, loop and branch edges */
    OLY_FLOW_FORWARD,   /* forward as early as THROUGH, backward as OPERATION: slices at computed positions */
    OLY_FLOW_BROADCAST, /* backward only; forward in the last round */
} oly_flow_kind;

typedef struct oly_flow {
    const oly_node *node; /* the node that the rule belongs to */
    uint8_t kind;         /* oly_flow_kind */
    bool single_use;      /* no operand has another use */
    bool constant;        /* the result is computed from constants: applied after all others have settled */
    bool late;            /* has factors that are not parallel */
    int n_tensors;
    oly_flow_tensor *tensors; /* operands, then the result; for an edge every tensor is both */
    int n_operands;           /* equals n_tensors for an edge */
    int n_factors;
    const int64_t *size;
    const uint8_t *factor_kind; /* oly_factor_kind */
} oly_flow;

typedef struct oly_flows {
    oly_arena arena;
    int n, capacity;
    oly_flow *flows; /* in program order; those of a body at the place of its loop */
    int n_values;
    int *first, *of_value; /* the flows of value v: of_value[first[v]] to of_value[first[v + 1]] */
    char *room, *room_end;
} oly_flows;

/* Call it after shardings are fixed: a value whose placement is fixed is not silent. Free it also after a failure. */
oly_status oly_flows_make(oly_flows *flows, oly_frame *f);
void oly_flows_free(oly_flows *flows);
#endif
