/* Factors of products, completed from their parameters. See factors.h. */
#include "graph/contract.h"
#include "graph/factors.h"

/* In the order of the first operand's dimensions, then what only the second has. */
oly_status oly_factors_dot_general(const oly_node *node, oly_factors *f)
{
    const oly_contraction *c = &node->params.contraction;
    oly_contraction_dims dims;
    OLY_TRY(oly_contraction_read(&node->in[0]->type, &node->in[1]->type, c, &dims));
    for (int o = 0; o < 2; o++)
        for (int d = 0; d < node->in[o]->type.rank; d++) {
            oly_dim_role role = dims.role[o][d];
            int64_t size = node->in[o]->type.shape[d];
            if (size == 1 || (o == 1 && role != OLY_DIM_FREE))
                continue;
            int factor = oly_factor_new(f, size, role == OLY_DIM_CONTRACT ? OLY_FACTOR_REDUCTION : OLY_FACTOR_PARALLEL);
            oly_factor_attach(&f->operand[o][d], factor);
            if (role != OLY_DIM_FREE) {
                const uint8_t *pair = role == OLY_DIM_BATCH ? c->batch[1] : c->contract[1];
                oly_factor_attach(&f->operand[1][pair[dims.number[o][d]]], factor);
            }
            if (dims.result[o][d] >= 0)
                oly_factor_attach(&f->result[dims.result[o][d]], factor);
        }
    return OLY_OK;
}
