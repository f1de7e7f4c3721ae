/* SPDX-License-Identifier: BSD-3-Clause */
/* The vocabulary of gradient rules (vjp_*.c): the call they answer, and nodes as expressions. After a failure every function here
 * passes NULL on, so that a rule reads like its formula; the walk (gradient.c) checks the status.
 * Private to runtime/transform. */
#ifndef OLY_TRANSFORM_RULE_H
#define OLY_TRANSFORM_RULE_H
#include "graph/build.h"

typedef struct oly_rule {
    oly_graph *g;
    oly_status status;
    oly_node *node;              /* being differentiated */
    oly_node *const *cotangents; /* of its results: one, or for loops and branches one each (NULL: zero) */
    const bool *wanted;          /* [n_in] whose cotangents are requested */
    oly_node **operands;         /* [n_in] the answer: in the operand's type; NULL: zero */
    const bool *active;          /* [n_before] nodes that depend on the arguments of differentiation */
    int n_before;                /* number of nodes before this derivative */
} oly_rule;

typedef void oly_vjp_rule(oly_rule *r);

static inline oly_node *oly_rule_in(const oly_rule *r, int k)
{
    return r->node->in[k];
}
static inline oly_node *oly_rule_cotangent(const oly_rule *r)
{
    return r->cotangents[0];
}

oly_node *oly_rule_add(oly_rule *r, oly_op op, int n_in, oly_node *const *in, const oly_params *params);
oly_node *oly_rule_unary(oly_rule *r, oly_op op, oly_node *x);
oly_node *oly_rule_binary(oly_rule *r, oly_op op, oly_node *x, oly_node *y);
oly_node *oly_rule_select(oly_rule *r, oly_node *condition, oly_node *x, oly_node *y);
oly_node *oly_rule_mul(oly_rule *r, oly_node *x, oly_node *y); /* omits the factor 1 with which a derivative starts */
oly_node *oly_rule_number(oly_rule *r, const oly_node *like, double value); /* an array of one number, in like's type */
oly_node *oly_rule_zeros(oly_rule *r,
                         const oly_node *like); /* zeros with the sharding of its cotangent over Explicit axes */
oly_node *oly_rule_convert(oly_rule *r, oly_node *x, oly_dtype dtype);
oly_node *oly_rule_reshape(oly_rule *r, oly_node *x, int rank, const int64_t *shape);
oly_node *oly_rule_reshape_like(oly_rule *r, oly_node *x, const oly_node *like); /* to its shape, and its sharding */
/* The sharding of a cotangent of `like` over Explicit axes; NULL: the type says none. */
oly_sharding oly_rule_sharding(oly_rule *r, const oly_node *like);
oly_node *oly_rule_transpose(oly_rule *r, oly_node *x, const int *axes);
oly_node *oly_rule_slice(oly_rule *r, oly_node *x, const int64_t *start, const int64_t *shape, const int64_t *step);
oly_node *oly_rule_update(oly_rule *r, oly_node *x, oly_node *part, const int64_t *start, const int64_t *step);
oly_node *oly_rule_concatenate(oly_rule *r, oly_node *x, oly_node *y, int dimension);
/* Restores the dimensions that a reduction of `whole` over params.axes dropped, by broadcasting. */
oly_node *oly_rule_repeat(oly_rule *r, oly_node *x, const oly_type *whole, const oly_params *reduced);
oly_node *oly_rule_sum(oly_rule *r, oly_node *x, int n_axes, const int *axes); /* ascending; none: x */

/* x squared, by a product. */
oly_node *oly_rule_square(oly_rule *r, oly_node *x);

/* The cotangent of a value recomputed inside the rule: from `value`, in nodes of its own, down to `of`. */
oly_node *oly_rule_through(oly_rule *r, oly_node *value, oly_node *cotangent, oly_node *of);

/* Marks the nodes that depend differentiably on the marked ones. */
void oly_mark_active(const oly_graph *g, bool *active);
/* x + y (NULL: zero); where one of them is a part among zeros, only that part is added. */
oly_status oly_add_cotangents(oly_graph *g, oly_node *x, oly_node *y, oly_node **sum);

/* The rule of an operation; NULL: not differentiable. oly_vjp_zero: the derivative is zero wherever it exists. */
oly_vjp_rule *oly_rule_of(oly_op op);
oly_vjp_rule oly_vjp_zero;
#endif
