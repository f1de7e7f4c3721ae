/* SPDX-License-Identifier: BSD-3-Clause */
/* Type rules of the operations along one dimension and by value (kernels/local.h). As in typing.c, messages name the row. */
#include "graph/typing/typing.h"
#include "graph/graph.h"
#include <inttypes.h>

static const char *name_of(const oly_node *node)
{
    return oly_ops[node->op].name;
}
static const oly_type *operand(const oly_node *node, int k)
{
    return &node->in[k]->type;
}

static oly_status check_dimension(const oly_node *node, int d)
{
    const oly_type *x = operand(node, 0);
    if (d < 0 || d >= x->rank)
        return oly_fail(OLY_SHAPE, "%s: dimension %d of %s does not exist", name_of(node), d, oly_type_short(x));
    return OLY_OK;
}

static oly_status check_operands(const oly_node *node, int least)
{
    if (node->n_in < least || node->n_in > OLY_LOCAL_MOST)
        return oly_fail(OLY_INVALID, "%s: %d operands given; takes %d to %d", name_of(node), node->n_in, least,
                        OLY_LOCAL_MOST);
    return OLY_OK;
}

oly_status oly_typing_along(oly_node *node)
{
    OLY_TRY(check_dimension(node, node->params.dimension));
    node->type = *operand(node, 0);
    return OLY_OK;
}

static void index_type(oly_node *node)
{
    node->type.dtype = node->params.dtype;
    node->type.weak = false;
}

oly_status oly_typing_argsort(oly_node *node)
{
    OLY_TRY(check_operands(node, 1));
    OLY_TRY(oly_typing_along(node));
    for (int k = 1; k < node->n_in; k++) {
        oly_type other = *operand(node, k);
        other.dtype = node->type.dtype;
        if (!oly_type_equal(&node->type, &other))
            return oly_fail(OLY_SHAPE, "%s: %s and %s must have one shape", name_of(node),
                            oly_type_short(operand(node, 0)), oly_type_short(operand(node, k)));
    }
    index_type(node);
    return OLY_OK;
}

oly_status oly_typing_top_k(oly_node *node)
{
    const oly_type *x = operand(node, 0);
    OLY_TRY(check_dimension(node, x->rank - 1));
    if (node->params.dimension != x->rank - 1 || node->params.count < 0 || node->params.count > x->shape[x->rank - 1] ||
        oly_dtype_kind(x->dtype) == OLY_KIND_COMPLEX)
        return oly_fail(OLY_SHAPE, "%s: %" PRId64 " elements along the last dimension of %s", name_of(node),
                        node->params.count, oly_type_short(x));
    node->type = *x;
    node->type.shape[x->rank - 1] = node->params.count;
    index_type(node);
    return OLY_OK;
}

oly_status oly_typing_argreduce(oly_node *node)
{
    const oly_type *x = operand(node, 0);
    OLY_TRY(oly_typing_reduce(node));
    for (int k = 0; k < node->params.n_axes; k++)
        if (x->shape[node->params.axes[k]] == 0)
            return oly_fail(OLY_SHAPE, "%s: dimension %d of %s has no elements", name_of(node), node->params.axes[k],
                            oly_type_short(x));
    if (node->params.n_axes == 0 || oly_dtype_kind(x->dtype) == OLY_KIND_COMPLEX)
        return oly_fail(OLY_DTYPE, "%s: of %s over %d dimensions; takes real elements and one dimension or more",
                        name_of(node), oly_type_short(x), node->params.n_axes);
    index_type(node);
    return OLY_OK;
}

/* The first n_batch dimensions of two operands must be equal. */
static oly_status check_batch(const oly_node *node, int a, int b)
{
    const oly_type *x = operand(node, a), *y = operand(node, b);
    int n = node->params.n_batch;
    bool same = n >= 0 && x->rank >= n && y->rank >= n;
    for (int d = 0; same && d < n; d++)
        same = x->shape[d] == y->shape[d];
    return same ? OLY_OK
                : oly_fail(OLY_SHAPE, "%s: the first %d dimensions of %s and %s must agree", name_of(node), n,
                           oly_type_short(x), oly_type_short(y));
}

oly_status oly_typing_searchsorted(oly_node *node)
{
    const oly_type *lines = operand(node, 0), *sought = operand(node, 1);
    OLY_TRY(check_batch(node, 0, 1));
    if (lines->dtype != sought->dtype || lines->rank != node->params.n_batch + 1)
        return oly_fail(OLY_SHAPE, "%s: %s is not a sorted line of the type of %s", name_of(node),
                        oly_type_short(lines), oly_type_short(sought));
    node->type = *sought;
    index_type(node);
    return OLY_OK;
}

/* -- by value -------------------------------------------------------------------------------------------------------- */

/* The type of a gather from in[0] with the indexes in[1] ... in[n_axes]. */
static oly_status gathered(const oly_node *node, oly_type *result)
{
    const oly_params *p = &node->params;
    const oly_type *x = operand(node, 0), *first = operand(node, 1);
    OLY_TRY(check_batch(node, 0, 1));
    *result = *x;
    result->rank = 0;
    for (int k = 0; k < p->n_axes; k++) {
        oly_type index = *operand(node, 1 + k);
        OLY_TRY(check_dimension(node, p->axes[k]));
        if (!oly_type_equal(first, &index) || (index.dtype != OLY_INT32 && index.dtype != OLY_INT64))
            return oly_fail(OLY_DTYPE, "%s: indexes %s and %s must be int32 or int64 and have one type", name_of(node),
                            oly_type_short(first), oly_type_short(&index));
        if (p->axes[k] < p->n_batch || (k > 0 && p->axes[k] <= p->axes[k - 1]))
            return oly_fail(OLY_INVALID,
                            "%s: dimension %d of %s is indexed; dimensions must ascend, after the %d shared",
                            name_of(node), p->axes[k], oly_type_short(x), p->n_batch);
    }
    if (first->rank + x->rank - p->n_batch - p->n_axes > OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE, "%s: %s indexed by %s would have more than %d dimensions", name_of(node),
                        oly_type_short(x), oly_type_short(first), OLY_MAX_RANK);
    for (int d = 0; d < first->rank; d++)
        result->shape[result->rank++] = first->shape[d];
    for (int d = p->n_batch, k = 0; d < x->rank; d++)
        if (k < p->n_axes && p->axes[k] == d)
            k++;
        else
            result->shape[result->rank++] = x->shape[d];
    return OLY_OK;
}

oly_status oly_typing_gather(oly_node *node)
{
    OLY_TRY(check_operands(node, 2));
    if (node->n_in != 1 + node->params.n_axes)
        return oly_fail(OLY_INVALID, "%s: %d operands for %d indexed dimensions", name_of(node), node->n_in,
                        node->params.n_axes);
    return gathered(node, &node->type);
}

oly_status oly_typing_scatter(oly_node *node)
{
    oly_type updates;
    OLY_TRY(check_operands(node, 3));
    if (node->n_in != 2 + node->params.n_axes)
        return oly_fail(OLY_INVALID, "%s: %d operands for %d indexed dimensions", name_of(node), node->n_in,
                        node->params.n_axes);
    OLY_TRY(gathered(node, &updates));
    if (!oly_type_equal(&updates, operand(node, node->n_in - 1)))
        return oly_fail(OLY_SHAPE, "%s: the updates are %s, must be %s", name_of(node),
                        oly_type_short(operand(node, node->n_in - 1)), oly_type_short(&updates));
    node->type = *operand(node, 0);
    node->type.weak = node->type.weak && operand(node, node->n_in - 1)->weak;
    return OLY_OK;
}

/* Operands from `first` on are start indexes, one per dimension of in[0] but the batch dimensions, which are all they
 * have. */
static oly_status check_starts(const oly_node *node, int first)
{
    const oly_type *x = operand(node, 0);
    int n_batch = node->params.n_batch;
    if (node->n_in != first + x->rank - n_batch)
        return oly_fail(OLY_INVALID, "%s: %d starts for %s; give one for each dimension", name_of(node),
                        node->n_in - first, oly_type_short(x));
    for (int k = first; k < node->n_in; k++) {
        const oly_type *s = operand(node, k);
        OLY_TRY(check_batch(node, 0, k));
        if (s->rank != n_batch || (s->dtype != OLY_INT32 && s->dtype != OLY_INT64))
            return oly_fail(OLY_DTYPE, "%s: start %d is %s; starts are int32[] or int64[]", name_of(node), k - first,
                            oly_type_short(s));
    }
    return OLY_OK;
}

static oly_status check_fits(const oly_node *node, const oly_type *part)
{
    const oly_type *x = operand(node, 0);
    bool fits = part->rank == x->rank && part->dtype == x->dtype;
    for (int d = 0; fits && d < x->rank; d++)
        fits = part->shape[d] >= 0 && part->shape[d] <= x->shape[d] &&
               (d >= node->params.n_batch || part->shape[d] == x->shape[d]);
    return fits ? OLY_OK
                : oly_fail(OLY_SHAPE, "%s: %s is not a part of %s", name_of(node), oly_type_short(part),
                           oly_type_short(x));
}

oly_status oly_typing_dynamic_slice(oly_node *node)
{
    const oly_params *p = &node->params;
    OLY_TRY(check_starts(node, 1));
    node->type = *operand(node, 0);
    node->type.rank = p->rank;
    for (int d = 0; d < p->rank && d < OLY_MAX_RANK; d++)
        node->type.shape[d] = p->shape[d];
    return check_fits(node, &node->type);
}

oly_status oly_typing_dynamic_update_slice(oly_node *node)
{
    OLY_TRY(check_operands(node, 2));
    OLY_TRY(check_starts(node, 2));
    OLY_TRY(check_fits(node, operand(node, 1)));
    node->type = *operand(node, 0);
    return OLY_OK;
}
