/* SPDX-License-Identifier: BSD-3-Clause */
/* Sharding types of operations that rearrange elements: transposes, broadcasts, slices and updates, concatenation,
 * reshapes. */
#include "graph/sharding_rule/sharding_rule.h"
#include <inttypes.h>
#include <string.h>

/* Linear, and every result element is one of the operand: unreduced values stay unreduced. */
static void keep_sums(oly_node *node, const oly_type *x)
{
    node->type.unreduced = x->unreduced;
    node->type.reduced = x->reduced;
}

oly_status oly_sharding_rule_transpose(oly_node *node)
{
    const oly_type *x = &node->in[0]->type;
    for (int d = 0; d < x->rank; d++)
        node->type.axes[d] = x->axes[node->params.axes[d]];
    keep_sums(node, x);
    return OLY_OK;
}

/* New dimensions are not split unless an output sharding says so. */
oly_status oly_sharding_rule_broadcast(oly_node *node)
{
    const oly_params *p = &node->params;
    const oly_type *x = &node->in[0]->type;
    for (int d = 0; d < x->rank; d++)
        node->type.axes[p->axes[d]] = x->axes[d];
    keep_sums(node, x);
    return p->sharding && !p->settled ? oly_sharding_take_out(node) : OLY_OK;
}

/* Dimensions keep their axes, whatever their new size: blocks need not be equal. */
oly_status oly_sharding_rule_slice(oly_node *node)
{
    const oly_type *x = &node->in[0]->type;
    memcpy(node->type.axes, x->axes, sizeof x->axes);
    keep_sums(node, x);
    return OLY_OK;
}

/* The axes stay; elements move. */
oly_status oly_sharding_rule_rev(oly_node *node)
{
    const oly_type *x = &node->in[0]->type;
    memcpy(node->type.axes, x->axes, sizeof x->axes);
    return oly_sharding_refuse_marks(node);
}

/* The array that is written into keeps its sharding; one made without a mesh takes the value's. */
static oly_status update(oly_node *node, bool fits, const char *how)
{
    const oly_type *x = &node->in[0]->type, *value = &node->in[1]->type;
    bool adapts = !x->mesh || !value->mesh; /* a number, or made without a mesh */
    if (!adapts && (!fits || x->unreduced != value->unreduced || x->reduced != value->reduced))
        return oly_sharding_fail(node, "update_mismatch",
                                 "the value must be sharded %s as the array it is written into; move one with "
                                 "oly_reshard",
                                 how);
    const oly_type *from = x->mesh ? x : value;
    memcpy(node->type.axes, from->axes, sizeof from->axes);
    keep_sums(node, from);
    return OLY_OK;
}

oly_status oly_sharding_rule_dynamic_update(oly_node *node)
{
    return update(node, oly_axes_same(&node->in[0]->type, &node->in[1]->type), "exactly");
}

/* The value as if broadcast to the part: its unsplit dimensions take the array's axes. */
oly_status oly_sharding_rule_update(oly_node *node)
{
    const oly_type *x = &node->in[0]->type, *value = &node->in[1]->type;
    bool fits = true;
    for (int d = 0; d < value->rank; d++)
        fits = fits && (value->axes[d].n == 0 || oly_axis_list_equal(&value->axes[d], &x->axes[d]));
    return update(node, fits, "not at all, or");
}

oly_status oly_sharding_rule_concatenate(oly_node *node)
{
    const oly_type *first = NULL;
    for (int k = 0; k < node->n_in; k++) {
        const oly_type *x = &node->in[k]->type;
        if (x->mesh && first &&
            (!oly_axes_same(x, first) || x->unreduced != first->unreduced || x->reduced != first->reduced))
            return oly_sharding_fail(node, "concat_mismatch",
                                     "all operands must have the same sharding, but operand %d has another than the "
                                     "first; move it with oly_reshard",
                                     k);
        first = x->mesh && !first ? x : first;
    }
    first = first ? first : &node->in[0]->type;
    memcpy(node->type.axes, first->axes, sizeof first->axes);
    keep_sums(node, first);
    return OLY_OK;
}

/* -- reshapes ---------------------------------------------------------------------------------------------------------------- */

static oly_status refuse_reshape(const oly_node *node)
{
    return oly_sharding_fail(node, "reshape_ambiguous",
                             "the sharding of %s is ambiguous: axes stay only where dimensions of size 1 come or "
                             "go, one dimension is split into several or several are merged; say it with "
                             "oly_reshape_sharded, or move the operand with oly_reshard first",
                             oly_type_short(&node->type));
}

/* Groups the dimensions of the longer shape so that each group's product is one dimension of the shorter: group[i] of
 * them for dimension i. At most one group may have several members. 1: possible; 0: not; -1: there are two such
 * groups. */
static int group_dimensions(int n_short, const int64_t *shorter, int n_long, const int64_t *longer, int *group)
{
    int ones = 0, several = 0, i = 0, j = 0;
    if (n_long <= n_short)
        return 0;
    while (ones < n_short && shorter[n_short - 1 - ones] == 1 && longer[n_long - 1 - ones] == 1)
        group[n_short - 1 - ones++] = 1;
    n_short -= ones, n_long -= ones;
    while (j < n_long) {
        if (i == n_short)
            return 0;
        group[i] = 1;
        int64_t product = longer[j++];
        if (product != shorter[i]) {
            if (++several > 1)
                return -1;
            while (product != shorter[i] ||
                   (j < n_long && longer[j] == 1)) { /* trailing dimensions of size 1 belong to the group */
                if (product > shorter[i])
                    return 0;
                if (product == shorter[i] && i + 1 < n_short && longer[j] == shorter[i + 1])
                    break;
                if (j == n_long)
                    return 0;
                product *= longer[j++];
                group[i]++;
            }
        }
        i++;
    }
    return i == n_short;
}

/* Distributes axes over n dimensions, major first: each takes whole axes until it is used up. */
static bool hand_out(oly_mesh mesh, const oly_axis_list *axes, int n, const int64_t *shape, oly_axis_list *to)
{
    int next = 0;
    for (int d = 0; d < n; d++)
        for (int64_t left = shape[d]; left > 1 && next < axes->n;) {
            int axis = axes->axis[next++];
            if (left % mesh->size[axis] != 0)
                return false;
            left /= mesh->size[axis];
            to[d].axis[to[d].n++] = (uint8_t)axis;
        }
    return next == axes->n;
}

static bool split_one(oly_node *node, const int *group)
{
    const oly_type *x = &node->in[0]->type;
    oly_type *y = &node->type;
    for (int i = 0, j = 0; i < x->rank; j += group[i++]) {
        if (group[i] == 1)
            y->axes[j] = x->axes[i];
        else if (!hand_out(y->mesh, &x->axes[i], group[i], y->shape + j, y->axes + j))
            return false;
    }
    return true;
}

/* In a merged dimension, none may be split behind one that is not. */
static bool merge_one(oly_node *node, const int *group)
{
    const oly_type *x = &node->in[0]->type;
    oly_type *y = &node->type;
    for (int j = 0, i = 0; j < y->rank; i += group[j++]) {
        oly_axis_list all = {0};
        bool gap = false;
        for (int d = i; d < i + group[j]; d++) {
            if (gap && x->axes[d].n > 0)
                return false;
            gap = x->axes[d].n == 0;
            for (int k = 0; k < x->axes[d].n; k++)
                all.axis[all.n++] = x->axes[d].axis[k];
        }
        if (group[j] == 1)
            y->axes[j] = all;
        else if (!hand_out(y->mesh, &all, 1, y->shape + j, y->axes + j))
            return false;
    }
    return true;
}

static int next_not_one(const oly_type *t, int d)
{
    while (d < t->rank && t->shape[d] == 1)
        d++;
    return d;
}

/* Do the shapes differ in dimensions of size 1 only? Then the others keep their axes. */
static bool only_ones_change(oly_node *node)
{
    const oly_type *x = &node->in[0]->type, *y = &node->type;
    int i = next_not_one(x, 0), j = next_not_one(y, 0);
    for (; i < x->rank && j < y->rank; i = next_not_one(x, i + 1), j = next_not_one(y, j + 1))
        if (x->shape[i] != y->shape[j])
            return false;
    if (i < x->rank || j < y->rank)
        return false;
    for (i = next_not_one(x, 0), j = next_not_one(y, 0); i < x->rank;
         i = next_not_one(x, i + 1), j = next_not_one(y, j + 1))
        node->type.axes[j] = x->axes[i];
    return true;
}

static bool is_split(const oly_type *x)
{
    for (int d = 0; d < x->rank; d++)
        if (x->axes[d].n > 0)
            return true;
    return false;
}

oly_status oly_sharding_rule_reshape(oly_node *node)
{
    const oly_type *x = &node->in[0]->type, *y = &node->type;
    int group[OLY_MAX_RANK];
    keep_sums(node, x);
    if (oly_sharding_asked(node)) {
        oly_sharding s = node->params.sharding;
        if (s->spec.unreduced != x->unreduced || s->spec.reduced != x->reduced)
            return oly_sharding_fail(node, "unreduced",
                                     "the output sharding must be unreduced and reduced along the axes the operand is; "
                                     "reduce the sum with oly_reshard");
        return oly_sharding_take_out(node);
    }
    if (!is_split(x) || only_ones_change(node))
        return OLY_OK;
    int grouped = group_dimensions(x->rank, x->shape, y->rank, y->shape, group);
    if (grouped == 1)
        return split_one(node, group) ? OLY_OK : refuse_reshape(node);
    if (grouped == 0 && group_dimensions(y->rank, y->shape, x->rank, x->shape, group) == 1 && merge_one(node, group))
        return OLY_OK;
    return refuse_reshape(node);
}
