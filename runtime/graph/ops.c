/* SPDX-License-Identifier: BSD-3-Clause */
/* The operation table, made from ops.def. */
#include "graph/sharding_rule/sharding_rule.h"
#include "graph/typing/typing.h"

const oly_op_row oly_ops[OLY_N_OPS] = {
#define OLY_OP(name, operands, factors, typing, lowering, detail, sharding, ...)                                       \
    [OLY_OP_##name] = {                                                                                                \
        #name, operands, factors, oly_typing_##typing, OLY_LOWER_##lowering, detail, oly_sharding_rule_##sharding},
#include "graph/ops.def"
#undef OLY_OP
};

oly_linearity oly_linearity_of(oly_op op)
{
    static const oly_linearity of[OLY_N_OPS] = {
#define OLY_LINEAR(name, how) [OLY_OP_##name] = OLY_LINEAR_##how,
#include "graph/linear.def"
#undef OLY_LINEAR
    };
    return of[op];
}
