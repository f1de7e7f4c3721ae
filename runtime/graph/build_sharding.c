/* SPDX-License-Identifier: BSD-3-Clause */
/* Single nodes for Explicit axes: resharding, and broadcasting to another operand's sharding. Declared in build.h. */
#include "graph/build.h"
#include "graph/sharding_rule/sharding_rule.h"
#include <string.h>

oly_status oly_build_reshard(oly_graph *g, oly_node *x, oly_sharding out, oly_node **made)
{
    oly_params p;
    *made = x;
    if (x->type.mesh == out->mesh && out->mesh->explicit_axes && oly_type_sharding(&x->type) == out)
        return OLY_OK; /* equal shardings are one handle */
    memset(&p, 0, sizeof p);
    p.sharding = out;
    return oly_graph_add(g, out->mesh->explicit_axes ? OLY_OP_reshard : OLY_OP_place, 1, &x, &p, made);
}

/* May dimension d of x become dimension `to` of the wanted type? It may gain axes, not change them. */
static oly_status check_broadcast(const oly_node *x, const oly_type *wanted)
{
    for (int d = 0; d < x->type.rank; d++) {
        const oly_axis_list *have = &x->type.axes[d], *want = &wanted->axes[wanted->rank - x->type.rank + d];
        if (have->n > 0 && !oly_axis_list_equal(have, want))
            return oly_sharding_fail_types("broadcast", &x->type, wanted, "broadcast_to_conflict",
                                           "the array is to become the other type, but its dimension %d is split "
                                           "another way; move it with oly_reshard first",
                                           d);
    }
    return OLY_OK;
}

oly_status oly_build_broadcast_to(oly_graph *g, oly_node *x, int rank, const int64_t *shape, oly_sharding out,
                                  oly_node **made)
{
    oly_node *plain;
    if (!out || !out->mesh->explicit_axes || rank < x->type.rank || rank > OLY_MAX_RANK)
        return oly_build_broadcast(g, x, rank, shape, made);
    oly_type wanted = {.dtype = x->type.dtype, .rank = rank};
    memcpy(wanted.shape, shape, sizeof *shape * (size_t)rank);
    OLY_TRY(oly_sharding_check_rank(out, rank));
    oly_type_set_sharding(&wanted, out);
    OLY_TRY(check_broadcast(x, &wanted));
    OLY_TRY(oly_build_broadcast(g, x, rank, shape, &plain));
    if (plain == x || plain->op != OLY_OP_broadcast)
        return oly_build_reshard(g, plain, out, made);
    oly_params p = plain->params; /* each device repeats x where it needs it: nothing moves */
    p.sharding = out;
    return oly_graph_add(g, OLY_OP_broadcast, 1, plain->in, &p, made);
}

/* The common sharding of operands of several shapes, aligned at the end. Conflicting axes are an error; single elements
 * do not count. */
static oly_status meet(int n, oly_node *const *in, oly_type *common)
{
    for (int k = 0; k < n; k++) {
        const oly_type *x = &in[k]->type;
        common->mesh = x->mesh ? x->mesh : common->mesh;
        for (int d = 0; d < x->rank; d++) {
            int to = common->rank - x->rank + d;
            if (!oly_axes_merge(&common->axes[to], &x->axes[d]))
                return oly_sharding_fail_types("broadcast", &in[0]->type, x, "broadcast_conflict",
                                               "the operands have incompatible shardings for broadcasting: dimension "
                                               "%d of the result is split in two ways; move one with oly_reshard",
                                               to);
        }
    }
    return OLY_OK;
}

/* No axis may split two dimensions of the common sharding. */
static oly_status check_once(const char *name, oly_node *const *in, int n, const oly_type *common)
{
    unsigned used = 0;
    for (int d = 0; d < common->rank; d++)
        for (int k = 0; k < common->axes[d].n; k++) {
            int axis = common->axes[d].axis[k];
            if (used >> axis & 1)
                return oly_sharding_fail_types(name, &in[0]->type, &in[n - 1]->type, "duplicate_axis",
                                               "the operands meet in %s, with axis '%s' twice; move one with "
                                               "oly_reshard",
                                               oly_type_short(common), common->mesh->name[axis]);
            used |= 1u << axis;
        }
    return OLY_OK;
}

oly_status oly_build_broadcast_all(oly_graph *g, int n, oly_node **in)
{
    oly_node *before[8];
    bool differ = false;
    for (int k = 0; k < n; k++)
        differ =
            differ || in[k]->type.rank != in[0]->type.rank ||
            memcmp(in[k]->type.shape, in[0]->type.shape, sizeof *in[k]->type.shape * (size_t)in[0]->type.rank) != 0;
    if (n > 8 || !differ)
        return oly_build_common_shape(g, n, in);
    memcpy(before, in, sizeof *in * (size_t)n);
    OLY_TRY(oly_build_common_shape(g, n, in));
    oly_type common = in[0]->type;
    oly_type_clear_sharding(&common);
    OLY_TRY(meet(n, before, &common));
    if (!common.mesh || !common.mesh->explicit_axes)
        return OLY_OK; /* inside shard_map types split nothing */
    OLY_TRY(check_once("broadcast", before, n, &common));
    oly_sharding out = oly_type_sharding(&common);
    if (!out)
        return OLY_MEMORY;
    for (int k = 0; k < n; k++)
        if (in[k]->type.mesh) /* operands without a mesh adapt */
            OLY_TRY(oly_build_reshard(g, in[k], out, &in[k]));
    return OLY_OK;
}

oly_status oly_build_check_masked(const char *name, const oly_type *x)
{
    for (int d = 0; x->mesh && x->mesh->explicit_axes && d < x->rank; d++)
        if (x->axes[d].n > 0)
            return oly_sharding_fail_types(name, x, NULL, "select_conflict",
                                           "elements are chosen by a mask, which is not split, but dimension %d of the "
                                           "operand is; move it with oly_reshard",
                                           d);
    return OLY_OK;
}

oly_status oly_build_auto_axes(oly_graph *g, oly_node *x, oly_node **out)
{
    *out = x;
    return x->type.mesh ? oly_graph_add(g, OLY_OP_auto_axes, 1, &x, NULL, out) : OLY_OK;
}

oly_status oly_build_explicit_axes(oly_graph *g, oly_node *x, oly_sharding sharding, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.sharding = sharding;
    return oly_graph_add(g, OLY_OP_place, 1, &x, &p, out);
}

oly_status oly_build_choice(oly_graph *g, oly_node **in)
{
    if (in[0]->type.rank > 0)
        return oly_build_broadcast_all(g, 3, in);
    OLY_TRY(oly_build_broadcast_all(g, 2, in + 1)); /* one condition for all elements */
    oly_type like = in[in[1]->type.mesh ? 1 : 2]->type;
    like.unreduced = like.reduced = 0;
    oly_sharding s = in[0]->type.mesh && like.mesh ? oly_type_sharding(&like) : NULL;
    return oly_build_broadcast_to(g, in[0], like.rank, like.shape, s, &in[0]);
}
