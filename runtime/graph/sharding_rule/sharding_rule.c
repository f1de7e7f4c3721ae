/* SPDX-License-Identifier: BSD-3-Clause */
/* Sharding types: the mesh of a node, checks common to all operations, and helpers of the rules. See
 * sharding_rule.h. */
#include "graph/sharding_rule/sharding_rule.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* -- messages ---------------------------------------------------------------------------------------------------------------- */

static oly_status fail(const char *name, const char *operands, const char *rule, const char *what, va_list arguments)
{
    char reason[1024];
    vsnprintf(reason, sizeof reason, what, arguments);
    return oly_fail(OLY_SHARDING, "%s of %s: %s [%s]", name, operands, reason, rule);
}

oly_status oly_sharding_fail(const oly_node *node, const char *rule, const char *what, ...)
{
    char operands[1024] = "";
    for (int k = 0; k < node->n_in && k < 4; k++) {
        size_t used = strlen(operands);
        snprintf(operands + used, sizeof operands - used, "%s%s",
                 k == 0                ? ""
                 : k + 1 == node->n_in ? " and "
                                       : ", ",
                 oly_type_short(&node->in[k]->type));
    }
    va_list arguments;
    va_start(arguments, what);
    oly_status st = fail(oly_ops[node->op].name, operands, rule, what, arguments);
    va_end(arguments);
    return st;
}

oly_status oly_sharding_fail_types(const char *name, const oly_type *x, const oly_type *y, const char *rule,
                                   const char *what, ...)
{
    char operands[1024];
    snprintf(operands, sizeof operands, "%s%s%s", oly_type_short(x), y ? " and " : "", y ? oly_type_short(y) : "");
    va_list arguments;
    va_start(arguments, what);
    oly_status st = fail(name, operands, rule, what, arguments);
    va_end(arguments);
    return st;
}

/* -- helpers of the rules ---------------------------------------------------------------------------------- */

bool oly_axes_merge(oly_axis_list *into, const oly_axis_list *axes)
{
    if (into->n == 0)
        *into = *axes;
    return axes->n == 0 || oly_axis_list_equal(into, axes);
}

bool oly_axes_same(const oly_type *x, const oly_type *y)
{
    for (int d = 0; d < x->rank; d++)
        if (!oly_axis_list_equal(&x->axes[d], &y->axes[d]))
            return false;
    return true;
}

oly_sharding oly_sharding_asked(const oly_node *node)
{
    oly_sharding s = node->params.sharding;
    return s && s->mesh->explicit_axes ? s : NULL;
}

oly_status oly_sharding_take_out(oly_node *node)
{
    oly_sharding s = node->params.sharding;
    unsigned varying = node->type.varying;
    if (s->spec.n_dims > node->type.rank)
        return oly_sharding_fail(node, "spec_rank",
                                 "the output sharding has %d entries, the result %s has %d dimensions", s->spec.n_dims,
                                 oly_type_short(&node->type), node->type.rank);
    for (int d = 0; d < s->spec.n_dims; d++)
        for (int k = 0; k < s->spec.dim[d].n; k++)
            if (!(s->mesh->explicit_axes >> s->spec.dim[d].axis[k] & 1))
                return oly_sharding_fail(node, "auto_axis",
                                         "the output sharding names axis '%s', which is not Explicit; the planner "
                                         "places values along it; guide it with oly_with_sharding_constraint",
                                         s->mesh->name[s->spec.dim[d].axis[k]]);
    oly_type_set_sharding(&node->type, s);
    node->type.varying = varying;
    return OLY_OK;
}

oly_status oly_sharding_refuse_sums(const oly_node *node)
{
    for (int k = 0; k < node->n_in; k++)
        if (node->in[k]->type.unreduced)
            return oly_sharding_fail(node, "unsupported",
                                     "operand %d is an unreduced sum ({U:...}), and this operation is not defined on "
                                     "partial sums; reduce it with oly_reshard first",
                                     k);
    return OLY_OK;
}

oly_status oly_sharding_refuse_marks(const oly_node *node)
{
    for (int k = 0; k < node->n_in; k++)
        if (node->in[k]->type.reduced)
            return oly_sharding_fail(node, "unsupported",
                                     "operand %d is reduced along axes ({R:...}), which this operation does not keep; "
                                     "make it replicated with oly_reshard first",
                                     k);
    return oly_sharding_refuse_sums(node);
}

/* Axes along which a value is replicated. */
static unsigned replicated_axes(const oly_type *x)
{
    unsigned used = x->unreduced | x->reduced | x->varying;
    for (int d = 0; d < x->rank; d++)
        for (int k = 0; k < x->axes[d].n; k++)
            used |= 1u << x->axes[d].axis[k];
    return ~used;
}

/* A broadcast rank-0 value: it adapts to the other operands. */
static bool is_number(const oly_node *x)
{
    return x->type.rank == 0 || (x->op == OLY_OP_broadcast && x->in[0]->type.rank == 0);
}

oly_status oly_sharding_common_reduced(const oly_node *node, unsigned *reduced)
{
    *reduced = 0;
    for (int k = 0; k < node->n_in; k++) {
        unsigned set = node->in[k]->type.reduced;
        if (set && *reduced && set != *reduced)
            return oly_sharding_fail(node, "reduced_conflict",
                                     "the operands are reduced along different axes ({R:...}); move one with "
                                     "oly_reshard");
        *reduced |= set;
    }
    for (int k = 0; *reduced && k < node->n_in; k++) {
        const oly_type *x = &node->in[k]->type;
        if (x->mesh && x->reduced != *reduced && (*reduced & ~x->unreduced) && !is_number(node->in[k]))
            return oly_sharding_fail(node, "reduced_conflict",
                                     "operand %d is %s along an axis that another is reduced along ({R:...}); move "
                                     "the reduced one with oly_reshard",
                                     k, *reduced & replicated_axes(x) ? "replicated" : "split");
    }
    return OLY_OK;
}

oly_status oly_sharding_unsplit(const oly_node *node, int k, int d, const char *rule, const char *what)
{
    if (node->in[k]->type.axes[d].n == 0)
        return OLY_OK;
    return oly_sharding_fail(node, rule, "dimension %d of operand %d %s; move it with oly_reshard", d, k, what);
}

/* -- checks common to all operations ----------------------------------------------------------------------- */

/* The mesh of the operands (the same for all that have one), else that of an explicit output sharding. */
static oly_status find_mesh(const oly_node *node, oly_mesh *mesh)
{
    oly_sharding out = node->params.sharding;
    *mesh = NULL;
    for (int k = 0; k < node->n_in; k++) {
        oly_mesh m = node->in[k]->type.mesh;
        if (*mesh && m && m != *mesh) {
            char have[256], other[256];
            oly_mesh_str(*mesh, have, sizeof have);
            oly_mesh_str(m, other, sizeof other);
            return oly_sharding_fail(node, "mesh_conflict",
                                     "operands with explicit axes must be on one mesh, but these are on %s and %s; "
                                     "move one with oly_device_put",
                                     have, other);
        }
        *mesh = m ? m : *mesh;
    }
    if (!*mesh && out && out->mesh->explicit_axes)
        *mesh = out->mesh;
    return OLY_OK;
}

oly_status oly_sharding_once(const oly_node *node)
{
    const oly_type *t = &node->type;
    unsigned used = t->unreduced | t->reduced;
    for (int d = 0; d < t->rank; d++)
        for (int k = 0; k < t->axes[d].n; k++) {
            int axis = t->axes[d].axis[k];
            if (used >> axis & 1)
                return oly_sharding_fail(node, "out_duplicate",
                                         "the result would be %s, with axis '%s' twice; move an operand with "
                                         "oly_reshard, or say how the result is to be sharded where the call takes "
                                         ".out_sharding",
                                         oly_type_short(t), t->mesh->name[axis]);
            used |= 1u << axis;
        }
    return OLY_OK;
}

oly_status oly_sharding_rule_apply(oly_node *node)
{
    oly_mesh mesh;
    oly_type_clear_sharding(&node->type);
    OLY_TRY(find_mesh(node, &mesh));
    if (!mesh && node->params.mesh && !node->params.unchecked)
        mesh = node->params.mesh; /* a collective without operands */
    if (!mesh)
        return OLY_OK;
    node->type.mesh = mesh;
    for (int k = 0; k < node->n_in; k++)
        node->type.varying |= node->in[k]->type.varying;
    OLY_TRY(oly_ops[node->op].sharding(node));
    if (node->params.settled)
        oly_sharding_settle(node);
    return oly_sharding_once(node);
}
