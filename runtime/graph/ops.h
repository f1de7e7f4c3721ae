/* SPDX-License-Identifier: BSD-3-Clause */
/* The operation table: one row per operation (ops.def), which everything else reads; nothing switches on a name. */
#ifndef OLY_GRAPH_OPS_H
#define OLY_GRAPH_OPS_H
#include "graph/type.h"
#include "kernel.h"

typedef enum oly_op {
#define OLY_OP(name, operands, factors, typing, lowering, detail, ...) OLY_OP_##name,
#include "graph/ops.def"
#undef OLY_OP
    OLY_N_OPS
} oly_op;

/* How the planner splits and runs an operation: runtime/plan has one function for each. */
typedef enum oly_lowering {
    OLY_LOWER_INPUT, /* given from outside */
    OLY_LOWER_TILE, /* elementwise: a tile instruction, fused with its neighbours; detail: oly_tile_op, or two of them */
    OLY_LOWER_VIEW,     /* the same elements under other indexes: read through, never computed */
    OLY_LOWER_REDUCE,   /* detail: oly_combiner */
    OLY_LOWER_CONTRACT, /* matrix product */
    OLY_LOWER_WRITE,    /* operands written into parts of the result */
    OLY_LOWER_PAD,      /* an operand written into a filled result */
    OLY_LOWER_RESHAPE,  /* row-major order kept, extents changed */
    OLY_LOWER_PLACE,    /* fixes a sharding */
    OLY_LOWER_LOOP,
    OLY_LOWER_BRANCH,  /* one of several graphs, selected at run time */
    OLY_LOWER_RESULT,  /* one of a loop's or branch's results */
    OLY_LOWER_PERMUTE, /* slices along one dimension are permuted */
    OLY_LOWER_MANUAL,  /* in bodies of shard_map only: batching (runtime/transform) leaves none */
    OLY_LOWER_WINDOW,  /* a kernel that reads a window of its operand around each element; detail: oly_local_op */
    OLY_LOWER_CUSTOM,  /* a function with a derivative of its own: before planning its results are operands */
    OLY_LOWER_CALL,    /* a function of the program: params.call */
    OLY_LOWER_LOCAL, /* a kernel that needs whole dimensions, which each device has or receives; detail: oly_local_op */
} oly_lowering;

/* Detail of a row of three operands that is two tile operations: then(first(in0, in1), in2). */
#define OLY_TILE_max_then_min (OLY_TILE_max | (OLY_TILE_min + 1) << 16)
static inline int oly_tile_first(int detail)
{
    return detail & 0xffff;
}
static inline int oly_tile_then(int detail) /* -1: none */
{
    return (detail >> 16) - 1;
}

/* Details of VIEW rows (view.h) and WRITE rows: part of operand 0 replaced by operand 1, or operands side by side. */
enum { OLY_VIEW_SAME, OLY_VIEW_TRANSPOSE, OLY_VIEW_BROADCAST, OLY_VIEW_SLICE, OLY_VIEW_REV, OLY_VIEW_SQUEEZE };
enum { OLY_WRITE_PART, OLY_WRITE_ALL };
/* Details of PLACE rows: the sharding fixes every dimension, or only those over Explicit axes. */
enum { OLY_PLACE_ALL, OLY_PLACE_EXPLICIT };

/* Which operations are linear, and how (linear.def). */
typedef enum oly_linearity {
    OLY_NOT_LINEAR,
    OLY_LINEAR_SUM,
    OLY_LINEAR_DIFFERENCE,
    OLY_LINEAR_NEGATION,
    OLY_LINEAR_PRODUCT,
    OLY_LINEAR_QUOTIENT,
    OLY_LINEAR_CAST
} oly_linearity;
oly_linearity oly_linearity_of(oly_op op);

struct oly_node;
typedef oly_status oly_typing(struct oly_node *node);
typedef oly_status oly_sharding_rule(struct oly_node *node);

typedef struct oly_op_row {
    const char *name;
    int n_operands;      /* -1: any number */
    const char *factors; /* see factors.h */
    oly_typing *typing;  /* fills node->type from operands and parameters */
    oly_lowering lowering;
    int detail;
    oly_sharding_rule *sharding; /* fills the sharding part of node->type; see sharding_rule.h */
} oly_op_row;
extern const oly_op_row oly_ops[OLY_N_OPS];

/* Is the operation defined for elements of this type? fails OLY_DTYPE. */
oly_status oly_op_takes(oly_op op, const oly_type *x);
#endif
