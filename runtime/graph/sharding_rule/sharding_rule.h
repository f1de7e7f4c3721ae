/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of sharding types, oly_sharding_rule_<rule>, that the table names: each computes the sharding part of a
 * node's type (type.h) from its operands and parameters. They are those of JAX's explicit mode (docs/semantics.md,
 * "Explicit axes"), except that sizes need not divide. Called only by oly_graph_add through oly_sharding_rule_apply,
 * and only if something is explicit. An operand whose type has no mesh (a number, something made without one) adapts to
 * the others. */
#ifndef OLY_GRAPH_SHARDING_RULE_H
#define OLY_GRAPH_SHARDING_RULE_H
#include "graph/graph.h"

#define OLY_OP(name, operands, factors, typing, lowering, detail, sharding, ...)                                       \
    oly_sharding_rule oly_sharding_rule_##sharding;
#include "graph/ops.def"
#undef OLY_OP

/* Applies the row's rule to a node whose shape is known, and checks the result. Fails OLY_SHARDING; the message has the
 * types and ends in the name of the broken rule: "[contract_ambiguous]". */
oly_status oly_sharding_rule_apply(oly_node *node);

/* At the boundary of shard_map (params.sharding, settled): the settled axes as given there, the others as by the rule.
 * In sharding_rule_manual.c. */
void oly_sharding_settle(oly_node *node);

/* -- helpers of the rules ---------------------------------------------------------------------------------- */

/* The message "add of float32[8@x], float32[8@y]: WHAT [rule]", from all operands of the node. */
oly_status oly_sharding_fail(const oly_node *node, const char *rule, const char *what, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for a composition, from one or two types (y may be NULL). */
oly_status oly_sharding_fail_types(const char *name, const oly_type *x, const oly_type *y, const char *rule,
                                   const char *what, ...) __attribute__((format(printf, 5, 6)));
/* Merges the axes of one dimension into *into. False: both have axes, and they differ. */
bool oly_axes_merge(oly_axis_list *into, const oly_axis_list *axes);
/* Are all dimensions (of equally many) split alike? */
bool oly_axes_same(const oly_type *x, const oly_type *y);
/* Checks that no axis splits two dimensions of the node's type as it is so far. fails [out_duplicate] */
oly_status oly_sharding_once(const oly_node *node);
/* params.sharding if it names Explicit axes; NULL: the rule decides. */
oly_sharding oly_sharding_asked(const oly_node *node);
/* Gives the node's type the requested params.sharding. fails OLY_SHARDING [spec_rank] */
oly_status oly_sharding_take_out(oly_node *node);
/* Checks that no operand is unreduced. fails [unsupported] */
oly_status oly_sharding_refuse_sums(const oly_node *node);
/* Checks that none is marked reduced ({R:...}) either: for operations without a gradient rule for it. fails
 * [unsupported] */
oly_status oly_sharding_refuse_marks(const oly_node *node);
/* The axes along which the operands are marked reduced, into *reduced: the same set for all that are, and no other
 * operand may be replicated or split along them. fails [reduced_conflict] */
oly_status oly_sharding_common_reduced(const oly_node *node, unsigned *reduced);
/* Checks that dimension d of operand k is not split. fails [rule] */
oly_status oly_sharding_unsplit(const oly_node *node, int k, int d, const char *rule, const char *what);
#endif
