/* SPDX-License-Identifier: BSD-3-Clause */
/* The type rules the table names, oly_typing_<rule>: each checks a node's operands and parameters and sets its type.
 * Called only by oly_graph_add, through the table. */
#ifndef OLY_GRAPH_TYPING_H
#define OLY_GRAPH_TYPING_H
#include "graph/ops.h"

#define OLY_OP(name, operands, factors, typing, lowering, detail, ...) oly_typing oly_typing_##typing;
#include "graph/ops.def"
#undef OLY_OP
#endif
