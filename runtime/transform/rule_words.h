/* SPDX-License-Identifier: BSD-3-Clause */
/* Short words for gradient rules of elementwise operations (transform/rule.h): r is the rule. */
#ifndef OLY_TRANSFORM_RULE_WORDS_H
#define OLY_TRANSFORM_RULE_WORDS_H
#include "transform/rule.h"

#define IN(k) oly_rule_in(r, k)
#define G     oly_rule_cotangent(r)
#define Y     (r->node)
#define GIVE(k)                                                                                                        \
    if (r->wanted[k])                                                                                                  \
    r->operands[k]
#define UNARY(op, x)        oly_rule_unary(r, OLY_OP_##op, x)
#define BINARY(op, x, y)    oly_rule_binary(r, OLY_OP_##op, x, y)
#define NUMBER(like, value) oly_rule_number(r, like, value)
#endif
