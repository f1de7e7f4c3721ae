/* SPDX-License-Identifier: BSD-3-Clause */
/* The type rules of products, and the reading of their parameters that others share (contract.h). */
#include "graph/contract.h"
#include "graph/typing/typing.h"
#include <inttypes.h>
#include <string.h>

/* Gives the dimensions in one list their role. */
static oly_status mark(const oly_type *type, int operand, oly_dim_role role, int n, const uint8_t *named,
                       oly_contraction_dims *dims)
{
    for (int k = 0; k < n; k++) {
        int d = named[k];
        if (d >= type->rank)
            return oly_fail(OLY_SHAPE, "dimension %d of the %s operand does not exist: it is %s", d,
                            operand ? "second" : "first", oly_type_short(type));
        if (dims->role[operand][d] != OLY_DIM_FREE)
            return oly_fail(OLY_SHAPE,
                            "dimension %d of the %s operand, %s, is named twice; name each at most once, either as "
                            "batch or as contracting",
                            d, operand ? "second" : "first", oly_type_short(type));
        dims->role[operand][d] = role;
        dims->number[operand][d] = k;
    }
    return OLY_OK;
}

static oly_status check_pairs(const oly_type *left, const oly_type *right, int n, const uint8_t *of_left,
                              const uint8_t *of_right, const char *what)
{
    for (int k = 0; k < n; k++)
        if (left->shape[of_left[k]] != right->shape[of_right[k]])
            return oly_fail(OLY_SHAPE,
                            "%s and %s: %s dimensions %d of the first (size %" PRId64 ") and %d of the second (size "
                            "%" PRId64 ") must have equal sizes",
                            oly_type_short(left), oly_type_short(right), what, of_left[k], left->shape[of_left[k]],
                            of_right[k], right->shape[of_right[k]]);
    return OLY_OK;
}

oly_status oly_contraction_read(const oly_type *left, const oly_type *right, const oly_contraction *c,
                                oly_contraction_dims *dims)
{
    const oly_type *type[2] = {left, right};
    memset(dims, 0, sizeof *dims);
    int next = c->n_batch;
    for (int o = 0; o < 2; o++) {
        OLY_TRY(mark(type[o], o, OLY_DIM_BATCH, c->n_batch, c->batch[o], dims));
        OLY_TRY(mark(type[o], o, OLY_DIM_CONTRACT, c->n_contract, c->contract[o], dims));
        for (int d = 0; d < type[o]->rank; d++) {
            oly_dim_role role = dims->role[o][d];
            dims->result[o][d] = role == OLY_DIM_FREE ? next++ : role == OLY_DIM_BATCH ? dims->number[o][d] : -1;
            if (role == OLY_DIM_FREE) {
                dims->number[o][d] = dims->n_free[o];
                dims->free[o][dims->n_free[o]++] = d;
            }
        }
    }
    OLY_TRY(check_pairs(left, right, c->n_batch, c->batch[0], c->batch[1], "batch"));
    return check_pairs(left, right, c->n_contract, c->contract[0], c->contract[1], "contracting");
}

oly_status oly_typing_dot_general(oly_node *node)
{
    const oly_type *a = &node->in[0]->type, *b = &node->in[1]->type;
    oly_contraction_dims dims;
    if (a->dtype != b->dtype)
        return oly_fail(OLY_DTYPE, "%s: %s and %s must have one element type; convert first", oly_ops[node->op].name,
                        oly_type_short(a), oly_type_short(b));
    OLY_TRY(oly_contraction_read(a, b, &node->params.contraction, &dims));
    node->type.dtype = a->dtype;
    node->type.weak = a->weak && b->weak;
    int rank = node->params.contraction.n_batch + dims.n_free[0] + dims.n_free[1];
    if (rank > OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE,
                        "the product of %s and %s would have %d dimensions; arrays have at most %d, merge some with "
                        "oly_reshape",
                        oly_type_short(a), oly_type_short(b), rank, OLY_MAX_RANK);
    node->type.rank = rank;
    for (int o = 0; o < 2; o++)
        for (int d = 0; d < node->in[o]->type.rank; d++)
            if (dims.result[o][d] >= 0)
                node->type.shape[dims.result[o][d]] = node->in[o]->type.shape[d];
    return OLY_OK;
}
