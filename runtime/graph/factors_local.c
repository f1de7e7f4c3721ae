/* SPDX-License-Identifier: BSD-3-Clause */
/* Factors of the operations along one dimension and by value (kernels/local.h). The rules are named in factors.c. */
#include "graph/factors.h"

/* Dimension d of operand `in` and dimension e of the result (-1: none) share a factor. */
static int relate(const oly_node *node, oly_factors *f, int in, int d, int e, oly_factor_kind kind)
{
    int64_t size = node->in[in]->type.shape[d];
    if (size == 1 && (e < 0 || node->type.shape[e] == 1))
        return -1;
    int k = oly_factor_new(f, e < 0 ? size : node->type.shape[e], kind);
    if (size != 1)
        oly_factor_attach(&f->operand[in][d], k);
    if (e >= 0 && node->type.shape[e] != 1)
        oly_factor_attach(&f->result[e], k);
    return k;
}

static void also(const oly_node *node, oly_factors *f, int in, int d, int factor)
{
    if (factor >= 0 && in < f->n_operands && node->in[in]->type.shape[d] != 1)
        oly_factor_attach(&f->operand[in][d], factor);
}

oly_status oly_factors_along(const oly_node *node, oly_factors *f)
{
    for (int d = 0; d < node->type.rank; d++) {
        int k = relate(node, f, 0, d, d, d == node->params.dimension ? OLY_FACTOR_WHOLE : OLY_FACTOR_PARALLEL);
        for (int in = 1; in < node->n_in; in++)
            also(node, f, in, d, k);
    }
    return OLY_OK;
}

oly_status oly_factors_top_k(const oly_node *node, oly_factors *f)
{
    int last = node->type.rank - 1;
    for (int d = 0; d < last; d++)
        relate(node, f, 0, d, d, OLY_FACTOR_PARALLEL);
    relate(node, f, 0, last, -1, OLY_FACTOR_WHOLE);
    return OLY_OK;
}

oly_status oly_factors_searchsorted(const oly_node *node, oly_factors *f)
{
    int n_batch = node->params.n_batch;
    for (int d = 0; d < node->type.rank; d++) {
        int k = relate(node, f, 1, d, d, OLY_FACTOR_PARALLEL);
        if (d < n_batch)
            also(node, f, 0, d, k);
    }
    relate(node, f, 0, n_batch, -1, OLY_FACTOR_WHOLE);
    return OLY_OK;
}

static bool is_indexed(const oly_node *node, int d)
{
    for (int k = 0; k < node->params.n_axes; k++)
        if (node->params.axes[k] == d)
            return true;
    return false;
}

oly_status oly_factors_gather(const oly_node *node, oly_factors *f)
{
    int n_batch = node->params.n_batch, n_index = node->in[1]->type.rank;
    for (int d = 0; d < n_index; d++) {
        int k = relate(node, f, 1, d, d, OLY_FACTOR_PARALLEL);
        for (int in = 2; in < node->n_in; in++)
            also(node, f, in, d, k);
        if (d < n_batch)
            also(node, f, 0, d, k);
    }
    for (int d = n_batch, e = n_index; d < node->in[0]->type.rank; d++)
        if (is_indexed(node, d))
            relate(node, f, 0, d, -1, OLY_FACTOR_WHOLE);
        else
            relate(node, f, 0, d, e++, OLY_FACTOR_PARALLEL);
    return OLY_OK;
}

/* The result is split as the operand is, along indexed dimensions too: each device applies the updates that fall into
 * its part. */
oly_status oly_factors_scatter(const oly_node *node, oly_factors *f)
{
    int n_batch = node->params.n_batch, n_index = node->in[1]->type.rank, updates = node->n_in - 1;
    for (int d = 0, e = n_index; d < node->type.rank; d++) {
        int k = relate(node, f, 0, d, d, OLY_FACTOR_PARALLEL);
        for (int in = 1; in < node->n_in && d < n_batch; in++)
            also(node, f, in, d, k);
        if (d >= n_batch && !is_indexed(node, d))
            also(node, f, updates, e++, k);
    }
    for (int d = n_batch; d < n_index; d++) {
        int k = relate(node, f, 1, d, -1, OLY_FACTOR_WHOLE);
        for (int in = 2; in < node->n_in; in++)
            also(node, f, in, d, k);
    }
    return OLY_OK;
}

oly_status oly_factors_dynamic_slice(const oly_node *node, oly_factors *f)
{
    f->flow = OLY_FACTORS_FORWARD;
    for (int d = 0; d < node->type.rank; d++) {
        bool whole = node->type.shape[d] == node->in[0]->type.shape[d];
        int k = relate(node, f, 0, d, d, whole ? OLY_FACTOR_PARALLEL : OLY_FACTOR_SHIFTED);
        for (int in = 1; in < node->n_in && d < node->params.n_batch; in++)
            also(node, f, in, d, k);
    }
    return OLY_OK;
}

oly_status oly_factors_dynamic_update_slice(const oly_node *node, oly_factors *f)
{
    f->flow = OLY_FACTORS_FORWARD;
    for (int d = 0; d < node->type.rank; d++) {
        bool whole = node->type.shape[d] == node->in[1]->type.shape[d];
        int k = relate(node, f, 0, d, d, whole ? OLY_FACTOR_PARALLEL : OLY_FACTOR_SHIFTED);
        if (whole)
            also(node, f, 1, d, k);
        for (int in = 2; in < node->n_in && d < node->params.n_batch; in++)
            also(node, f, in, d, k);
    }
    return OLY_OK;
}
