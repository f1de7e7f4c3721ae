/* Along what axes flow: which dimensions of which values are one. Made once per plan from the factors of every node and from
 * the edges of loops and branches; propagate.c lets axes flow. Private to those two. */
#ifndef OLY_PLAN_PROPAGATE_AXIS_RULES_H
#define OLY_PLAN_PROPAGATE_AXIS_RULES_H
#include "plan/model/planner.h"
#include "graph/factors.h"

/* A value as one rule sees it. */
typedef struct oly_flow_tensor {
    oly_value *value;
    const oly_type *type;
    int number;          /* of the value, over all frames */
    int64_t elements;    /* the larger wins conflicts */
    const uint8_t *dims; /* of every dimension: how many factors, then their numbers; NULL: dimension d is factor d */
} oly_flow_tensor;

/* How early a rule takes part, and which way (the rounds of propagate.c). */
typedef enum oly_flow_kind {
    OLY_FLOW_OPERATION, /* parallel factors first, others later */
    OLY_FLOW_THROUGH,   /* every factor is in every value: elementwise, reshape, transpose, loop and branch edges */
    OLY_FLOW_FORWARD, /* forward as early as those, otherwise as an operation: slices at positions that are computed */
    OLY_FLOW_BROADCAST, /* only backward, forward last */
} oly_flow_kind;

typedef struct oly_flow {
    const oly_node *node; /* whose rule it is */
    uint8_t kind;         /* oly_flow_kind */
    bool single_use;      /* no operand has another use */
    bool constant;        /* the result is made of constants: speaks only when all else is settled */
    bool late;            /* has factors that are not parallel */
    int n_tensors;
    oly_flow_tensor *tensors; /* operands, then the result; of an edge all are both */
    int n_operands;           /* n_tensors of an edge */
    int n_factors;
    const int64_t *size;
    const uint8_t *factor_kind; /* oly_factor_kind */
} oly_flow;

typedef struct oly_flows {
    oly_arena arena;
    int n, capacity;
    oly_flow *flows; /* in program order, a body's where its loop is */
    int n_values;
    int *first, *of_value; /* flows of value v: of_value[first[v]] to of_value[first[v + 1]] */
    char *room, *room_end;
} oly_flows;

/* After places are fixed: what lies somewhere already is not silent. Free it also after a failure. */
oly_status oly_flows_make(oly_flows *flows, oly_frame *f);
void oly_flows_free(oly_flows *flows);
#endif
