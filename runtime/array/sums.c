/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreduced values ({U:x}) as inputs and outputs of plans. Inside a plan they are ordinary values that are reduced
 * where the program requests it. As an array, every device along x holds one term: to the plan, an array with one more
 * leading dimension, split over x, that is summed when it enters. When they leave, the terms of sums and products stay
 * where they are; of other values the devices at 0 along x get the value, the others zeros. Called where arrays enter
 * and leave traces. */
#include "array/trace.h"
#include "graph/build.h"
#include "graph/terms.h"
#include <string.h>

/* The type and sharding of the terms, with dimension 0 for them. */
static oly_status with_terms(const oly_type *t, oly_sharding s, oly_type *wide, oly_sharding *split)
{
    oly_spec spec = {.n_dims = t->rank + 1, .reduced = s->spec.reduced};
    int64_t terms = 1;
    if (t->rank == OLY_MAX_RANK)
        return oly_fail(OLY_INVALID, "%s is a sum over devices; those have at most %d dimensions", oly_type_short(t),
                        OLY_MAX_RANK - 1);
    for (int axis = 0; axis < s->mesh->n_axes; axis++)
        if (s->spec.unreduced >> axis & 1) {
            spec.dim[0].axis[spec.dim[0].n++] = (uint8_t)axis;
            terms *= s->mesh->size[axis];
        }
    *wide = (oly_type){.dtype = t->dtype, .weak = t->weak, .rank = t->rank + 1, .shape = {terms}};
    for (int d = 0; d < t->rank; d++) {
        wide->shape[d + 1] = t->shape[d];
        spec.dim[d + 1] = s->spec.dim[d];
    }
    *split = oly_sharding_intern(s->mesh, &spec, spec.n_dims);
    if (!*split)
        return OLY_MEMORY;
    oly_type_set_sharding(wide, *split);
    return OLY_OK;
}

oly_status oly_sums_value(oly_array x, oly_plan_value *value)
{
    *value = (oly_plan_value){x->type, x->sharding, x->committed};
    return x->type.unreduced ? with_terms(&x->type, x->sharding, &value->type, &value->sharding) : OLY_OK;
}

oly_status oly_sums_input(oly_graph *g, oly_array x, oly_node **node)
{
    oly_type wide;
    oly_params p;
    if (x->graph || !x->type.unreduced)
        return oly_graph_input(g, &x->type, node);
    memset(&p, 0, sizeof p);
    OLY_TRY(with_terms(&x->type, x->sharding, &wide, &p.sharding));
    OLY_TRY(oly_graph_input(g, &wide, node));
    if (!(p.sharding = oly_type_sharding(&x->type))) /* over Explicit axes; the others stay open */
        return OLY_MEMORY;
    p.n_axes = 1; /* axis 0 */
    return oly_graph_add(g, OLY_OP_reduce_sum, 1, node, &p, node);
}

/* Repeats `x` for every term, on the devices of the terms. */
static oly_status repeat(oly_graph *g, oly_node *x, const oly_type *wide, oly_sharding split, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.rank = wide->rank;
    memcpy(p.shape, wide->shape, sizeof p.shape);
    p.sharding = split;
    p.n_axes = x->type.rank;
    for (int d = 0; d < x->type.rank; d++)
        p.axes[d] = d + 1;
    return oly_graph_add(g, OLY_OP_broadcast, 1, &x, &p, out);
}

static oly_status is_first_term(oly_graph *g, const oly_type *wide, oly_node **out)
{
    oly_node *both[2];
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = OLY_INT32;
    p.rank = wide->rank;
    memcpy(p.shape, wide->shape, sizeof p.shape);
    OLY_TRY(oly_graph_add(g, OLY_OP_iota, 0, NULL, &p, &both[0]));
    OLY_TRY(oly_build_number(g, OLY_INT32, 0, &both[1]));
    OLY_TRY(oly_build_common_shape(g, 2, both));
    return oly_build_apply(g, OLY_OP_eq, 2, both, out);
}

/* One output, whose terms are placed by the unreduced axes. The terms are not split over Auto axes: the handle does not
 * record such a split of that dimension. */
static oly_status output_terms(oly_graph *g, oly_node *x, oly_sharding split)
{
    oly_params p;
    oly_spec spec = split->spec;
    if (split->mesh->explicit_axes == (1u << split->mesh->n_axes) - 1)
        return oly_graph_output(g, x);
    memset(&p, 0, sizeof p);
    spec.n_dims = x->type.rank;
    for (int d = 1; d < spec.n_dims; d++)
        if (spec.dim[d].n == 0)
            spec.open |= 1u << d;
    if (!(p.sharding = oly_sharding_intern(split->mesh, &spec, spec.n_dims)))
        return OLY_MEMORY;
    OLY_TRY(oly_graph_add(g, OLY_OP_place, 1, &x, &p, &x));
    return oly_graph_output(g, x);
}

oly_status oly_sums_output(oly_graph *g, oly_node *node, oly_sharding *shown)
{
    oly_type wide;
    oly_sharding split, finished;
    oly_node *all[3], *x;
    *shown = NULL;
    if (!node->type.unreduced)
        return oly_graph_output(g, node);
    oly_type done = node->type;
    done.unreduced = 0;
    if (!(*shown = oly_type_sharding(&node->type)) || !(finished = oly_type_sharding(&done)))
        return OLY_MEMORY;
    OLY_TRY(with_terms(&node->type, *shown, &wide, &split));
    OLY_TRY(oly_build_terms(g, node, &wide, split, &x));
    if (x)
        return output_terms(g, x, split);
    OLY_TRY(oly_build_reshard(g, node, finished, &x));
    OLY_TRY(is_first_term(g, &wide, &all[0]));
    OLY_TRY(repeat(g, x, &wide, split, &all[1]));
    OLY_TRY(oly_build_number(g, x->type.dtype, 0, &all[2]));
    OLY_TRY(oly_build_broadcast(g, all[2], wide.rank, wide.shape, &all[2]));
    OLY_TRY(oly_build_apply(g, OLY_OP_select, 3, all, &x));
    return output_terms(g, x, split);
}

oly_status oly_sums_shown(oly_sharding cut, oly_sharding *shown)
{
    int n_dims = cut->spec.n_dims > 0 ? cut->spec.n_dims - 1 : 0;
    oly_spec spec = {.n_dims = n_dims, .unreduced = (*shown)->spec.unreduced, .reduced = cut->spec.reduced};
    memcpy(spec.dim, cut->spec.dim + 1, sizeof *spec.dim * (size_t)n_dims);
    *shown = oly_sharding_intern(cut->mesh, &spec, n_dims);
    return *shown ? OLY_OK : OLY_MEMORY;
}
