/* The rules of sharding types, oly_sharding_rule_<rule>, that the table names: each fills the sharding part of a node's type
 * (type.h) from its operands' and parameters. They are those of JAX's explicit mode (docs/semantics.md, "Explicit axes"), but
 * for sizes, which need not divide. Called by oly_graph_add through oly_sharding_rule_apply only, and only when something is
 * explicit. An operand whose type has no mesh (a number, something made without one) adapts to the others. */
#ifndef OLY_GRAPH_SHARDING_RULE_H
#define OLY_GRAPH_SHARDING_RULE_H
#include "graph/graph.h"

#define OLY_OP(name, operands, factors, typing, lowering, detail, sharding, ...)                                       \
    oly_sharding_rule oly_sharding_rule_##sharding;
#include "graph/ops.def"
#undef OLY_OP

/* Runs the row's rule on a node whose shape is known, and checks what came out. Fails OLY_SHARDING; the message has the types
 * and ends in the name of the broken rule: "[contract_ambiguous]". */
oly_status oly_sharding_rule_apply(oly_node *node);

/* What shard_map says of a value (params.sharding, settled): the settled axes as they are there, the others as the rule has
 * them. In sharding_rule_manual.c. */
void oly_sharding_settle(oly_node *node);

/* -- what rules are written with ---------------------------------------------------------------------------------------- */

/* The message "add of float32[8@x], float32[8@y]: WHAT [rule]", from all operands of the node. */
oly_status oly_sharding_fail(const oly_node *node, const char *rule, const char *what, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for a composition, from one or two types (y may be NULL). */
oly_status oly_sharding_fail_types(const char *name, const oly_type *x, const oly_type *y, const char *rule,
                                   const char *what, ...) __attribute__((format(printf, 5, 6)));
/* Merges the axes of one dimension: none gives way; *into grows. False: two different ones. */
bool oly_axes_merge(oly_axis_list *into, const oly_axis_list *axes);
/* Are all dimensions (of equally many) split alike? */
bool oly_axes_same(const oly_type *x, const oly_type *y);
/* No axis stands twice in the node's type as it is so far. fails [out_duplicate] */
oly_status oly_sharding_once(const oly_node *node);
/* params.sharding, if it says anything about Explicit axes; NULL: the rule decides. */
oly_sharding oly_sharding_asked(const oly_node *node);
/* The node's type takes what params.sharding says. fails OLY_SHARDING [spec_rank] */
oly_status oly_sharding_take_out(oly_node *node);
/* No operand is a sum over devices. fails [unsupported] */
oly_status oly_sharding_refuse_sums(const oly_node *node);
/* Nor reduced along axes ({R:...}): for what has no gradient rule in those terms. fails [unsupported] */
oly_status oly_sharding_refuse_marks(const oly_node *node);
/* The set of axes the operands are reduced along, into *reduced: the same for all that are, and no other operand may be
 * replicated or split along them. fails [reduced_conflict] */
oly_status oly_sharding_common_reduced(const oly_node *node, unsigned *reduced);
/* Dimension d of operand k is not split. fails [rule] */
oly_status oly_sharding_unsplit(const oly_node *node, int k, int d, const char *rule, const char *what);
#endif
