/* Sharding types: the mesh of a node, what holds for every operation, and the rules that factors give. See sharding_rule.h. */
#include "graph/sharding_rule.h"
#include "graph/factors.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

oly_status oly_sharding_fail(const oly_node *node, const char *rule, const char *what, ...)
{
    char reason[768], operands[1024] = "";
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(reason, sizeof reason, what, arguments);
    va_end(arguments);
    for (int k = 0; k < node->n_in && k < 4; k++) {
        size_t used = strlen(operands);
        snprintf(operands + used, sizeof operands - used, "%s%s", k ? ", " : "", oly_type_short(&node->in[k]->type));
    }
    return oly_fail(OLY_SHARDING, "%s of %s: %s [%s]", oly_ops[node->op].name, operands, reason, rule);
}

bool oly_axes_merge(oly_axis_list *into, const oly_axis_list *axes)
{
    if (into->n == 0)
        *into = *axes;
    return axes->n == 0 || oly_axis_list_equal(into, axes);
}

/* -- by factors ----------------------------------------------------------------------------------------------------------- */

static oly_status conflict(const oly_node *node, int d, const oly_axis_list *a, const oly_axis_list *b)
{
    (void)a, (void)b;
    return oly_sharding_fail(node, "broadcast_conflict",
                             "the operands have incompatible shardings for broadcasting: dimension %d is split in two "
                             "ways; move one with oly_reshard",
                             d);
}

/* Operands of the result's shape, or smaller where they are 1: dimension by dimension. */
static oly_status elementwise(oly_node *node)
{
    oly_type *t = &node->type;
    for (int k = 0; k < node->n_in; k++) {
        const oly_type *x = &node->in[k]->type;
        for (int d = 0; d < t->rank && x->rank == t->rank; d++)
            if (!oly_axes_merge(&t->axes[d], &x->axes[d]))
                return conflict(node, d, &t->axes[d], &x->axes[d]);
    }
    return OLY_OK;
}

static oly_status from_factors(oly_node *node)
{
    oly_factors f;
    oly_axis_list of[OLY_MAX_FACTORS] = {0};
    OLY_TRY(oly_factors_of(node, &f));
    for (int k = 0; k < f.n_operands; k++)
        for (int d = 0; d < node->in[k]->type.rank; d++) {
            const oly_dim_factors *dim = &f.operand[k][d];
            const oly_axis_list *axes = &node->in[k]->type.axes[d];
            if (dim->n == 1 && !oly_axes_merge(&of[dim->factor[0]], axes))
                return conflict(node, d, &of[dim->factor[0]], axes);
        }
    for (int d = 0; d < node->type.rank; d++)
        if (f.result[d].n == 1)
            node->type.axes[d] = of[f.result[d].factor[0]];
    return OLY_OK;
}

oly_status oly_sharding_rule_by_factors(oly_node *node)
{
    return oly_ops[node->op].factors[0] == '.' ? elementwise(node) : from_factors(node);
}

/* -- what holds for all ------------------------------------------------------------------------------------------------------ */

/* The mesh of the operands: one for all that have one. */
static oly_status find_mesh(const oly_node *node, oly_mesh *mesh)
{
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
    return OLY_OK;
}

static oly_status check_axes_once(const oly_node *node)
{
    unsigned used = node->type.unreduced | node->type.reduced;
    for (int d = 0; d < node->type.rank; d++)
        for (int k = 0; k < node->type.axes[d].n; k++) {
            unsigned bit = 1u << node->type.axes[d].axis[k];
            if (used & bit)
                return oly_sharding_fail(node, "out_duplicate",
                                         "the result would be %s, with axis '%s' twice; move an operand with "
                                         "oly_reshard, or say how the result is to be sharded where the call takes an "
                                         "output sharding",
                                         oly_type_short(&node->type),
                                         node->type.mesh->name[node->type.axes[d].axis[k]]);
            used |= bit;
        }
    return OLY_OK;
}

oly_status oly_sharding_rule_apply(oly_node *node)
{
    oly_mesh mesh;
    oly_type_clear_sharding(&node->type);
    OLY_TRY(find_mesh(node, &mesh));
    if (!mesh && node->params.sharding && node->params.sharding->mesh->explicit_axes)
        mesh = node->params.sharding->mesh;
    if (!mesh)
        return OLY_OK;
    node->type.mesh = mesh;
    for (int k = 0; k < node->n_in; k++)
        node->type.varying |= node->in[k]->type.varying;
    OLY_TRY(oly_ops[node->op].sharding(node));
    return check_axes_once(node);
}
