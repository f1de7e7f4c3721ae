/* SPDX-License-Identifier: BSD-3-Clause */
/* The type rules of the table. Compositions (compose.h) report a user's mistakes first, in terms of the call; the
 * messages here name the row and guard against other makers of nodes. */
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

/* Sets the shape, keeping the node's element type. */
static oly_status set_shape(oly_node *node, int rank, const int64_t *shape)
{
    if (rank < 0 || rank > OLY_MAX_RANK)
        return oly_fail(OLY_INVALID, "%s: %d dimensions asked for; arrays have 0 to %d", name_of(node), rank,
                        OLY_MAX_RANK);
    node->type.rank = rank;
    for (int d = 0; d < rank; d++)
        node->type.shape[d] = shape[d];
    return OLY_OK;
}

oly_status oly_typing_given(oly_node *node)
{
    const oly_params *p = &node->params;
    node->type.dtype = p->dtype;
    node->type.weak = p->weak;
    OLY_TRY(set_shape(node, p->rank, p->shape));
    if (p->dimension < 0 || (p->dimension > 0 && p->dimension >= p->rank))
        return oly_fail(OLY_INVALID, "%s: dimension %d of %s does not exist", name_of(node), p->dimension,
                        oly_type_short(&node->type));
    return OLY_OK;
}

oly_status oly_typing_same(oly_node *node)
{
    OLY_TRY(oly_op_takes(node->op, operand(node, 0)));
    node->type = *operand(node, 0);
    return OLY_OK;
}

/* The real part's type: of real types the same. */
oly_status oly_typing_parts(oly_node *node)
{
    OLY_TRY(oly_op_takes(node->op, operand(node, 0)));
    node->type = *operand(node, 0);
    node->type.dtype = oly_dtype_real(node->type.dtype);
    return OLY_OK;
}

static oly_status check_agree(const oly_node *node, int a, int b)
{
    const oly_type *x = operand(node, a), *y = operand(node, b);
    if (!oly_type_equal(x, y))
        return oly_fail(x->dtype != y->dtype ? OLY_DTYPE : OLY_SHAPE,
                        "%s: operands %s and %s must have one type; convert and broadcast first", name_of(node),
                        oly_type_short(x), oly_type_short(y));
    return OLY_OK;
}

oly_status oly_typing_agree(oly_node *node)
{
    OLY_TRY(check_agree(node, 0, 1));
    OLY_TRY(oly_op_takes(node->op, operand(node, 0)));
    node->type = *operand(node, 0);
    node->type.weak = operand(node, 0)->weak && operand(node, 1)->weak;
    return OLY_OK;
}

oly_status oly_typing_join(oly_node *node)
{
    OLY_TRY(check_agree(node, 0, 1));
    node->type = *operand(node, 0);
    if (node->type.dtype != OLY_FLOAT32 && node->type.dtype != OLY_FLOAT64)
        return oly_fail(OLY_DTYPE, "%s: the parts of complex numbers are float32 or float64, not %s; convert first",
                        name_of(node), oly_type_short(&node->type));
    node->type.dtype = node->type.dtype == OLY_FLOAT32 ? OLY_COMPLEX64 : OLY_COMPLEX128;
    node->type.weak = operand(node, 0)->weak && operand(node, 1)->weak;
    return OLY_OK;
}

oly_status oly_typing_compare(oly_node *node)
{
    OLY_TRY(check_agree(node, 0, 1));
    OLY_TRY(oly_op_takes(node->op, operand(node, 0)));
    node->type = *operand(node, 0);
    node->type.dtype = OLY_BOOL;
    node->type.weak = false;
    return OLY_OK;
}

oly_status oly_typing_select(oly_node *node)
{
    oly_type condition = *operand(node, 1);
    condition.dtype = OLY_BOOL;
    condition.weak = false;
    if (!oly_type_equal(operand(node, 0), &condition))
        return oly_fail(OLY_DTYPE, "%s: the condition is %s, must be %s; compare and broadcast first", name_of(node),
                        oly_type_short(operand(node, 0)), oly_type_short(&condition));
    OLY_TRY(check_agree(node, 1, 2));
    node->type = *operand(node, 1);
    node->type.weak = operand(node, 1)->weak && operand(node, 2)->weak;
    return OLY_OK;
}

/* bool of any */
oly_status oly_typing_test(oly_node *node)
{
    OLY_TRY(oly_typing_same(node));
    node->type.dtype = OLY_BOOL;
    node->type.weak = false;
    return OLY_OK;
}

oly_status oly_typing_clamp(oly_node *node)
{
    OLY_TRY(check_agree(node, 0, 1));
    OLY_TRY(check_agree(node, 1, 2));
    OLY_TRY(oly_op_takes(node->op, operand(node, 1)));
    node->type = *operand(node, 1);
    return OLY_OK;
}

oly_status oly_typing_bitcast(oly_node *node)
{
    const oly_type *x = operand(node, 0);
    node->type = *x;
    node->type.dtype = node->params.dtype;
    node->type.weak = false;
    if (oly_dtype_size(x->dtype) != oly_dtype_size(node->params.dtype))
        return oly_fail(OLY_DTYPE, "%s: the elements of %s and %s must have the same size", name_of(node),
                        oly_type_short(x), oly_type_short(&node->type));
    return OLY_OK;
}

oly_status oly_typing_convert(oly_node *node)
{
    node->type = *operand(node, 0);
    node->type.dtype = node->params.dtype;
    node->type.weak = node->params.weak;
    return OLY_OK;
}

/* Results of reductions are not weak. */
oly_status oly_typing_reduce(oly_node *node)
{
    const oly_params *p = &node->params;
    const oly_type *x = operand(node, 0);
    oly_type read = *x;
    read.dtype = p->dtype ? p->dtype : x->dtype; /* elements are converted as they are read */
    OLY_TRY(oly_op_takes(node->op, &read));
    node->type.dtype = read.dtype;
    for (int k = 0; k < p->n_axes; k++)
        if (p->axes[k] < 0 || p->axes[k] >= x->rank || (k > 0 && p->axes[k] <= p->axes[k - 1]))
            return oly_fail(OLY_SHAPE, "%s: axis %d of %s; axes must exist and ascend", name_of(node), p->axes[k],
                            oly_type_short(x));
    for (int d = 0, k = 0; d < x->rank; d++) {
        if (k < p->n_axes && p->axes[k] == d)
            k++;
        else
            node->type.shape[node->type.rank++] = x->shape[d];
    }
    return OLY_OK;
}

oly_status oly_typing_reshape(oly_node *node)
{
    const oly_type *x = operand(node, 0);
    node->type = *x;
    OLY_TRY(set_shape(node, node->params.rank, node->params.shape));
    OLY_TRY(oly_type_check(&node->type));
    if (oly_type_size(x) != oly_type_size(&node->type))
        return oly_fail(OLY_SHAPE, "%s: %s has %" PRId64 " elements, %s has %" PRId64 "; the number must stay",
                        name_of(node), oly_type_short(x), oly_type_size(x), oly_type_short(&node->type),
                        oly_type_size(&node->type));
    return OLY_OK;
}

oly_status oly_typing_transpose(oly_node *node)
{
    const oly_params *p = &node->params;
    const oly_type *x = operand(node, 0);
    node->type = *x;
    unsigned seen = 0;
    for (int d = 0; d < x->rank && p->n_axes == x->rank; d++) {
        if (p->axes[d] < 0 || p->axes[d] >= x->rank)
            break;
        seen |= 1u << p->axes[d];
        node->type.shape[d] = x->shape[p->axes[d]];
    }
    if (p->n_axes != x->rank || seen != (1u << x->rank) - 1)
        return oly_fail(OLY_SHAPE, "%s: the %d axes given are not a permutation of the dimensions of %s", name_of(node),
                        p->n_axes, oly_type_short(x));
    return OLY_OK;
}

oly_status oly_typing_broadcast(oly_node *node)
{
    const oly_params *p = &node->params;
    const oly_type *x = operand(node, 0);
    node->type.dtype = x->dtype;
    node->type.weak = x->weak;
    OLY_TRY(set_shape(node, p->rank, p->shape));
    bool fits = p->n_axes == x->rank;
    for (int d = 0; fits && d < x->rank; d++) {
        int to = p->axes[d];
        fits = to >= 0 && to < p->rank && (d == 0 || to > p->axes[d - 1]) &&
               (x->shape[d] == 1 || x->shape[d] == p->shape[to]);
    }
    if (!fits)
        return oly_fail(
            OLY_SHAPE, "%s: %s does not broadcast to %s; dimensions must keep their order, and each must be 1 or equal",
            name_of(node), oly_type_short(x), oly_type_short(&node->type));
    return OLY_OK;
}

/* Checks that the part given by start, shape and step is inside `whole`. */
static oly_status check_part(const oly_node *node, const oly_type *whole)
{
    const oly_params *p = &node->params;
    if (p->rank != whole->rank)
        return oly_fail(OLY_SHAPE, "%s: the part has %d dimensions, %s has %d", name_of(node), p->rank,
                        oly_type_short(whole), whole->rank);
    for (int d = 0; d < p->rank; d++) {
        int64_t n = whole->shape[d], start = p->start[d], extent = p->shape[d], step = p->step[d];
        bool inside = step >= 1 && start >= 0 && start <= n && extent >= 0;
        if (inside && extent > 0)
            inside = start < n && extent - 1 <= (n - 1 - start) / step;
        if (!inside)
            return oly_fail(OLY_INVALID,
                            "%s: %" PRId64 " elements from %" PRId64 " in steps of %" PRId64
                            " leave dimension %d of %s",
                            name_of(node), extent, start, step, d, oly_type_short(whole));
    }
    return OLY_OK;
}

oly_status oly_typing_slice(oly_node *node)
{
    OLY_TRY(check_part(node, operand(node, 0)));
    node->type = *operand(node, 0);
    return set_shape(node, node->params.rank, node->params.shape);
}

oly_status oly_typing_update(oly_node *node)
{
    const oly_type *x = operand(node, 0), *value = operand(node, 1);
    OLY_TRY(check_part(node, x));
    oly_type part = *x;
    for (int d = 0; d < x->rank; d++)
        part.shape[d] = node->params.shape[d];
    if (!oly_type_equal(value, &part))
        return oly_fail(value->dtype != x->dtype ? OLY_DTYPE : OLY_SHAPE, "%s: the value is %s, the part of %s is %s",
                        name_of(node), oly_type_short(value), oly_type_short(x), oly_type_short(&part));
    node->type = *x;
    return OLY_OK;
}

oly_status oly_typing_concatenate(oly_node *node)
{
    int along = node->params.dimension;
    if (node->n_in < 1)
        return oly_fail(OLY_INVALID, "%s: no operands; give at least one", name_of(node));
    node->type = *operand(node, 0);
    if (along < 0 || along >= node->type.rank)
        return oly_fail(OLY_SHAPE, "%s: %s has no dimension %d", name_of(node), oly_type_short(&node->type), along);
    for (int k = 1; k < node->n_in; k++) {
        oly_type other = *operand(node, k);
        int64_t extent = other.rank > along ? other.shape[along] : 0;
        other.shape[along] = node->type.shape[along];
        if (!oly_type_equal(&node->type, &other))
            return oly_fail(other.dtype != node->type.dtype ? OLY_DTYPE : OLY_SHAPE,
                            "%s: %s and %s must agree but for dimension %d", name_of(node),
                            oly_type_short(operand(node, 0)), oly_type_short(operand(node, k)), along);
        if (__builtin_add_overflow(node->type.shape[along], extent, &node->type.shape[along]))
            return oly_fail(OLY_OVERFLOW, "%s: dimension %d would exceed 2^63", name_of(node), along);
        node->type.weak = node->type.weak && other.weak;
    }
    return OLY_OK;
}

oly_status oly_typing_place(oly_node *node)
{
    node->type = *operand(node, 0);
    return oly_sharding_check_constraint(node->params.sharding, node->type.rank);
}

/* Checks that the body returns a loop's value with the type it has. */
static oly_status check_carry(const oly_type *is, const oly_type *body, const char *what, int number)
{
    if (oly_type_equal(is, body) && !oly_type_same_sharding(is, body))
        return oly_fail(
            OLY_SHARDING,
            "%s %d of the loop is %s but its body has %s; a loop must keep the types of its values (move it "
            "with oly_reshard) [carry_mismatch]",
            what, number, oly_type_short(is), oly_type_short(body));
    if (oly_type_equal(is, body))
        return OLY_OK;
    return oly_fail(
        is->dtype != body->dtype ? OLY_DTYPE : OLY_SHAPE,
        "%s %d of the loop is %s but its body has %s; a loop must keep the types of its values (convert with "
        "oly_astype)",
        what, number, oly_type_short(is), oly_type_short(body));
}

/* A loop has no value of its own (its type stays empty); result nodes extract its carries. */
oly_status oly_typing_loop(oly_node *node)
{
    const oly_params *p = &node->params;
    const oly_graph *body = p->body;
    if (!body || p->n_carry < 0 || p->n_carry > node->n_in || body->n_inputs != node->n_in + 1 ||
        body->n_outputs != p->n_carry)
        return oly_fail(OLY_INVALID, "%s: %d operands and %d carries do not fit a body of %d inputs and %d outputs",
                        name_of(node), node->n_in, p->n_carry, body ? body->n_inputs : 0, body ? body->n_outputs : 0);
    oly_type counter = {.dtype = OLY_INT32};
    OLY_TRY(check_carry(&counter, &body->inputs[0]->type, "counter", 0));
    for (int k = 0; k < node->n_in; k++)
        OLY_TRY(check_carry(operand(node, k), &body->inputs[k + 1]->type, "value", k));
    for (int k = 0; k < p->n_carry; k++)
        OLY_TRY(check_carry(operand(node, k), &body->outputs[k]->type, "carry", k));
    const oly_type *predicate = p->predicate ? operand(node, p->predicate - 1) : NULL;
    if (predicate && (predicate->rank || predicate->dtype != OLY_BOOL))
        return oly_fail(OLY_DTYPE, "%s: the condition is %s; it must be bool[]", name_of(node),
                        oly_type_short(predicate));
    return OLY_OK;
}

/* The same for a branch. */
oly_status oly_typing_branch(oly_node *node)
{
    const oly_params *p = &node->params;
    const oly_type *index = operand(node, 0);
    if (index->rank || index->dtype != OLY_INT32 || p->n_branches < 1)
        return oly_fail(OLY_DTYPE, "%s: chosen by %s; it must be int32[] and choose among one graph or more",
                        name_of(node), oly_type_short(index));
    for (int b = 0; b < p->n_branches; b++) {
        const oly_graph *g = p->branches[b], *first = p->branches[0];
        if (g->n_inputs != node->n_in - 1 || g->n_outputs != first->n_outputs)
            return oly_fail(OLY_INVALID, "%s: branch %d takes %d values and gives %d; branch 0 takes %d and gives %d",
                            name_of(node), b, g->n_inputs, g->n_outputs, first->n_inputs, first->n_outputs);
        for (int k = 0; k < g->n_outputs; k++) {
            const oly_type *is = &g->outputs[k]->type, *must = &first->outputs[k]->type;
            if (oly_type_equal(is, must) && !oly_type_same_sharding(is, must))
                return oly_fail(OLY_SHARDING,
                                "%s: result %d of branch %d is %s, of branch 0 %s; all branches must give the same "
                                "types (move it with oly_reshard) [branch_mismatch]",
                                name_of(node), k, b, oly_type_short(is), oly_type_short(must));
            if (!oly_type_equal(&g->outputs[k]->type, &first->outputs[k]->type))
                return oly_fail(g->outputs[k]->type.dtype != first->outputs[k]->type.dtype ? OLY_DTYPE : OLY_SHAPE,
                                "%s: result %d of branch %d is %s, of branch 0 %s; all branches must give the same "
                                "types (convert with oly_astype; of oly_cond, branch 0 is if_false and 1 if_true)",
                                name_of(node), k, b, oly_type_short(&g->outputs[k]->type),
                                oly_type_short(&first->outputs[k]->type));
        }
    }
    return OLY_OK;
}

oly_status oly_typing_result(oly_node *node)
{
    const oly_node *from = node->in[0];
    bool custom = oly_ops[from->op].lowering == OLY_LOWER_CUSTOM,
         branch = oly_ops[from->op].lowering == OLY_LOWER_BRANCH || custom;
    int k = node->params.dimension, n = branch && !custom ? from->params.branches[0]->n_outputs : from->params.n_carry;
    if ((!branch && oly_ops[from->op].lowering != OLY_LOWER_LOOP) || k < 0 || k >= n)
        return oly_fail(OLY_INVALID, "%s: result %d is taken from %s, which has %d", name_of(node), k, name_of(from),
                        n);
    node->type = branch ? from->params.branches[0]->outputs[k]->type : *operand(from, k);
    return OLY_OK;
}

/* Results are taken out by result nodes. */
oly_status oly_typing_custom(oly_node *node)
{
    const oly_params *p = &node->params;
    for (int k = 0; k < p->n_carry; k++) {
        const oly_type *is = operand(node, node->n_in - p->n_carry + k), *forward = &p->branches[0]->outputs[k]->type;
        if (!oly_type_equal(is, forward))
            return oly_fail(
                is->dtype != forward->dtype ? OLY_DTYPE : OLY_SHAPE,
                "result %d of the function is %s, but its forward function has %s; they must have the same types", k,
                oly_type_short(is), oly_type_short(forward));
    }
    return OLY_OK;
}
