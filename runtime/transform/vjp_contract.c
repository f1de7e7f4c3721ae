/* Gradient rules of contractions: they are contractions again, of the cotangent with the other operand. */
#include "graph/contract.h"
#include "transform/rule.h"
#include <string.h>

/* The sharding of the operand's type, its dimension axes[d] as dimension d. NULL: the type says none, or failed. */
static oly_sharding wanted_sharding(oly_rule *r, const oly_type *x, const int *axes)
{
    if (!x->mesh)
        return NULL;
    oly_type turned = *x;
    for (int d = 0; d < x->rank; d++)
        turned.axes[d] = x->axes[axes[d]];
    turned.reduced = x->unreduced;
    turned.unreduced = x->reduced;
    oly_sharding s = oly_type_sharding(&turned);
    if (!s)
        r->status = OLY_MEMORY;
    return s;
}

/* Cotangent of operand o: g times the other operand, summed over the other's free dimensions. That has the batch dimensions,
 * the free ones of o, and the contracting ones as they lie in the other; transposed, it is the answer. */
static void answer(oly_rule *r, int o, const oly_contraction_dims *dims)
{
    const oly_contraction *c = &r->node->params.contraction;
    oly_node *x = r->node->in[o], *other = r->node->in[1 - o], *g = oly_rule_cotangent(r);
    int of[OLY_MAX_RANK], axes[OLY_MAX_RANK], n = 0; /* dimension of x that each of the product is, and back */
    oly_params p;
    memset(&p, 0, sizeof p);
    p.contraction.n_batch = c->n_batch;
    for (int k = 0; k < c->n_batch; k++) {
        p.contraction.batch[0][k] = (uint8_t)k;
        p.contraction.batch[1][k] = c->batch[1 - o][k];
        of[n++] = c->batch[o][k];
    }
    for (int k = 0; k < dims->n_free[1 - o]; k++) {
        int d = dims->free[1 - o][k];
        p.contraction.contract[0][p.contraction.n_contract] = (uint8_t)dims->result[1 - o][d];
        p.contraction.contract[1][p.contraction.n_contract++] = (uint8_t)d;
    }
    for (int k = 0; k < dims->n_free[o]; k++)
        of[n++] = dims->free[o][k];
    for (int d = 0; d < other->type.rank; d++)
        if (dims->role[1 - o][d] == OLY_DIM_CONTRACT)
            of[n++] = c->contract[o][dims->number[1 - o][d]];
    for (int d = 0; d < n; d++)
        axes[of[d]] = d;
    p.sharding = wanted_sharding(r, &x->type, of);
    oly_node *both[2] = {g, other};
    r->operands[o] = oly_rule_transpose(r, oly_rule_add(r, OLY_OP_dot_general, 2, both, &p), axes);
}

void oly_vjp_dot_general(oly_rule *r)
{
    oly_contraction_dims dims;
    r->status = oly_contraction_read(&r->node->in[0]->type, &r->node->in[1]->type, &r->node->params.contraction, &dims);
    for (int o = 0; o < 2 && r->status == OLY_OK; o++)
        if (r->wanted[o])
            answer(r, o, &dims);
}
