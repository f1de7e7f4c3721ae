/* The rules of sharding types, oly_sharding_rule_<rule>, that the table names: each fills the sharding part of a node's type
 * (type.h) from its operands' and parameters. They are those of JAX's explicit mode (docs/semantics.md, "Explicit axes").
 * Called by oly_graph_add through oly_sharding_rule_apply only, and only when something is explicit. */
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

/* -- what rules are written with ---------------------------------------------------------------------------------------- */

/* The message "add: float32[8@x] and float32[8@y]: WHAT [rule]", from all operands of the node. */
oly_status oly_sharding_fail(const oly_node *node, const char *rule, const char *what, ...)
    __attribute__((format(printf, 3, 4)));
/* Merges the axes of one dimension: none gives way; *into grows. False: two different ones. */
bool oly_axes_merge(oly_axis_list *into, const oly_axis_list *axes);
#endif
