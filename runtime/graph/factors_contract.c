/* SPDX-License-Identifier: BSD-3-Clause */
/* Factors of products, completed from their parameters. See factors.h. */
#include "graph/contract.h"
#include "graph/factors.h"

/* Factors in the order of the first operand's dimensions, then those that only the second has. */
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

/* A parallel factor of the result and, if `read`, of an operand. */
static void parallel(oly_factors *f, bool read, oly_dim_factors *x, oly_dim_factors *result, int64_t size)
{
    if (size == 1)
        return;
    int factor = oly_factor_new(f, size, OLY_FACTOR_PARALLEL);
    if (read)
        oly_factor_attach(x, factor);
    oly_factor_attach(result, factor);
}

/* Each output element is placed with the element its window is centred on, or near it. With fewer output elements than
 * taps (as in the gradients of kernels) the factor is the kernel's, and the partial results of the devices are
 * summed. */
static void slide(const oly_node *node, oly_factors *f)
{
    const oly_sliding_window *w = node->params.window;
    const oly_type *x = &node->in[0]->type, *y = &node->type;
    for (int d = x->rank - (int)w->rank; d < x->rank; d++) {
        int64_t taps = w->size[d - x->rank + w->rank];
        if (node->n_in == 2 && taps > y->shape[d] && x->shape[d] > 1) {
            int factor = oly_factor_new(f, taps, OLY_FACTOR_REDUCTION);
            oly_factor_attach(&f->operand[0][d], factor);
            oly_factor_attach(&f->operand[1][d], factor);
            continue;
        }
        if (y->shape[d] == 1 || x->shape[d] == 1)
            continue;
        bool still = taps == 1 && x->shape[d] == y->shape[d];
        int factor = oly_factor_new(f, y->shape[d], still ? OLY_FACTOR_PARALLEL : OLY_FACTOR_SHIFTED);
        oly_factor_attach(&f->operand[0][d], factor);
        oly_factor_attach(&f->result[d], factor);
    }
}

oly_status oly_factors_window(const oly_node *node, oly_factors *f)
{
    const oly_type *x = &node->in[0]->type;
    for (int d = 0; d < x->rank - (int)node->params.window->rank; d++)
        parallel(f, true, &f->operand[0][d], &f->result[d], x->shape[d]);
    slide(node, f);
    return OLY_OK;
}

/* [batch, groups * features, ...] with [groups * features out, features, ...]. Batch groups relate only the kernel and
 * the result. */
oly_status oly_factors_conv(const oly_node *node, oly_factors *f)
{
    const oly_type *w = &node->in[1]->type;
    int64_t groups = node->params.window->groups, batch_groups = node->params.window->batch_groups;
    parallel(f, batch_groups == 1, &f->operand[0][0], &f->result[0], node->type.shape[0]);
    if (groups > 1) {
        int factor = oly_factor_new(f, groups, OLY_FACTOR_PARALLEL);
        oly_factor_attach(&f->operand[0][1], factor);
        oly_factor_attach(&f->operand[1][0], factor);
        oly_factor_attach(&f->result[1], factor);
    }
    parallel(f, true, &f->operand[1][0], &f->result[1], w->shape[0] / groups);
    if (w->shape[1] != 1) {
        int factor = oly_factor_new(f, w->shape[1], OLY_FACTOR_REDUCTION);
        oly_factor_attach(&f->operand[0][1], factor);
        oly_factor_attach(&f->operand[1][1], factor);
    }
    slide(node, f);
    return OLY_OK;
}
