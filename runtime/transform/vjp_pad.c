/* SPDX-License-Identifier: BSD-3-Clause */
/* Gradient rules of padding, reversal and fma. Names as in vjp_shape.c. */
#include "transform/rule.h"
#include <string.h>

/* Puts x into a longer array of zeros, `before` elements from its start. */
static oly_node *among_zeros(oly_rule *r, oly_node *x, const oly_type *whole, const int64_t *before)
{
    oly_params p;
    oly_node *both[2] = {x, NULL};
    memset(&p, 0, sizeof p);
    p.rank = whole->rank;
    bool same = true;
    for (int d = 0; d < whole->rank; d++) {
        p.shape[d] = whole->shape[d];
        p.start[d] = before[d];
        p.step[d] = 1;
        same = same && x && x->type.shape[d] == whole->shape[d];
    }
    if (!x || same)
        return x;
    r->status = oly_build_number(r->g, x->type.dtype, 0, &both[1]);
    return r->status == OLY_OK ? oly_rule_add(r, OLY_OP_pad, 2, both, &p) : NULL;
}

/* The operand gets the elements at its positions, the padding value the rest. */
void oly_vjp_pad(oly_rule *r)
{
    const oly_params *p = &r->node->params;
    const oly_type *x = &r->node->in[0]->type, *result = &r->node->type;
    int64_t first[OLY_MAX_RANK], count[OLY_MAX_RANK], start[OLY_MAX_RANK];
    int axes[OLY_MAX_RANK];
    bool any = true;
    for (int d = 0; d < x->rank; d++) {
        axes[d] = d;
        first[d] = p->start[d] < 0 ? (-p->start[d] + p->step[d] - 1) / p->step[d] : 0;
        start[d] = p->start[d] + first[d] * p->step[d];
        int64_t end = result->shape[d] > start[d] ? first[d] + (result->shape[d] - 1 - start[d]) / p->step[d] + 1 : 0;
        count[d] = (end < x->shape[d] ? end : x->shape[d]) - first[d];
        any = any && count[d] > 0;
    }
    oly_node *kept = any ? oly_rule_slice(r, r->cotangents[0], start, count, p->step) : NULL;
    if (r->wanted[0] && any)
        r->operands[0] = among_zeros(r, kept, x, first);
    if (!r->wanted[1])
        return;
    oly_node *all = oly_rule_sum(r, r->cotangents[0], x->rank, axes);
    r->operands[1] = any ? oly_rule_binary(r, OLY_OP_sub, all, oly_rule_sum(r, kept, x->rank, axes)) : all;
}

void oly_vjp_rev(oly_rule *r)
{
    r->operands[0] = oly_rule_add(r, OLY_OP_rev, 1, r->cotangents, &r->node->params);
}

void oly_vjp_fma(oly_rule *r)
{
    for (int k = 0; k < 2; k++)
        if (r->wanted[k])
            r->operands[k] = oly_rule_mul(r, r->cotangents[0], r->node->in[1 - k]);
    r->operands[2] = r->cotangents[0];
}
