/* Gradient rules of contractions. */
#include "transform/rule.h"

static const int swapped[3] = {0, 2, 1};

/* bmk,bkn->bmn: g b^T and a^T g. */
void oly_vjp_dot(oly_rule *r)
{
    oly_node *a = r->node->in[0], *b = r->node->in[1], *g = r->cotangents[0];
    if (r->wanted[0])
        r->operands[0] = oly_rule_binary(r, OLY_OP_dot, g, oly_rule_transpose(r, b, swapped));
    if (r->wanted[1])
        r->operands[1] = oly_rule_binary(r, OLY_OP_dot, oly_rule_transpose(r, a, swapped), g);
}
