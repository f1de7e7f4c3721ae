/* SPDX-License-Identifier: BSD-3-Clause */
/* The boundary of mapped functions: splits inputs by their specs and assembles results. */
#include "transform/batch_rules.h"
#include "graph/build.h"
#include <inttypes.h>
#include <string.h>

static const oly_axis_list *axes_at(oly_sharding spec, int d)
{
    static const oly_axis_list none;
    return d < spec->spec.n_dims ? &spec->spec.dim[d] : &none;
}

oly_status oly_local_type(const oly_type *whole, oly_sharding spec, const char *what, oly_type *local)
{
    *local = *whole;
    OLY_TRY(oly_sharding_check_rank(spec, whole->rank));
    for (int d = 0; d < whole->rank; d++) {
        const oly_axis_list *axes = axes_at(spec, d);
        int64_t n = whole->shape[d];
        for (int k = 0; k < axes->n; k++) {
            int size = spec->mesh->size[axes->axis[k]];
            if (n % size != 0)
                return oly_fail(OLY_SHAPE,
                                "%s, %s: its dimension %d of size %" PRId64
                                " is split over %d devices by the mesh axis "
                                "'%s' of size %d, which must divide it",
                                what, oly_type_short(whole), d, whole->shape[d], oly_axis_list_parts(spec->mesh, axes),
                                spec->mesh->name[axes->axis[k]], size);
            n /= size;
        }
        local->shape[d] = n;
    }
    return OLY_OK;
}

static oly_status place(oly_graph *g, const oly_batch_axes *axes, oly_node *x, oly_sharding spec, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.sharding = spec;
    p.settled = axes->all;
    return oly_graph_add(g, OLY_OP_place, 1, &x, &p, out);
}

/* The shape with each axis of the spec as a dimension of its own, before the dimension it splits; axis_at[a] and own_at[d] are the
 * positions of the axes and of the original dimensions. */
typedef struct split_shape {
    int rank;
    int64_t shape[2 * OLY_MAX_RANK];
    int axis_at[OLY_MAX_RANK], own_at[OLY_MAX_RANK];
} split_shape;

static oly_status split_of(const oly_batch_axes *axes, const oly_type *local, oly_sharding spec, split_shape *s)
{
    *s = (split_shape){0};
    for (int d = 0; d < local->rank; d++) {
        const oly_axis_list *l = axes_at(spec, d);
        for (int k = 0; k < l->n; k++) {
            s->axis_at[l->axis[k]] = s->rank;
            s->shape[s->rank++] = axes->size[l->axis[k]];
        }
        s->own_at[d] = s->rank;
        s->shape[s->rank++] = local->shape[d];
    }
    if (s->rank > OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE,
                        "%s and its %d mapped axes have more than %d dimensions together; merge some with "
                        "oly_reshape",
                        oly_type_short(local), s->rank - local->rank, OLY_MAX_RANK);
    return OLY_OK;
}

static uint32_t named(oly_sharding spec)
{
    uint32_t all = 0;
    for (int d = 0; d < spec->spec.n_dims; d++)
        for (int k = 0; k < spec->spec.dim[d].n; k++)
            all |= 1u << spec->spec.dim[d].axis[k];
    return all;
}

oly_status oly_split_up(oly_graph *g, const oly_batch_axes *axes, oly_node *x, oly_sharding spec, oly_lifted *out)
{
    oly_type local;
    split_shape s;
    int order[OLY_MAX_RANK], n = 0;
    OLY_TRY(oly_local_type(&x->type, spec, "an argument", &local));
    OLY_TRY(split_of(axes, &local, spec, &s));
    OLY_TRY(place(g, axes, x, spec, &x));
    OLY_TRY(oly_build_reshape(g, x, s.rank, s.shape, &x));
    out->axes = named(spec);
    for (int a = 0; a < OLY_MAX_RANK; a++)
        if (out->axes >> a & 1)
            order[n++] = s.axis_at[a];
    for (int d = 0; d < local.rank; d++)
        order[n++] = s.own_at[d];
    return oly_build_transpose(g, x, order, &out->node);
}

/* Only the first slice along some axes. */
static oly_status first_slice(oly_graph *g, uint32_t gone, oly_lifted *x)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    int64_t shape[OLY_MAX_RANK];
    int rank = 0;
    p.rank = x->node->type.rank;
    for (int d = 0; d < p.rank; d++) {
        p.shape[d] = x->node->type.shape[d];
        p.step[d] = 1;
    }
    for (int a = 0; a < OLY_MAX_RANK; a++)
        if (x->axes & gone & 1u << a)
            p.shape[oly_batch_place(x->axes, a)] = 1;
    OLY_TRY(oly_graph_add(g, OLY_OP_slice, 1, &x->node, &p, &x->node));
    for (int a = 0, d = 0; a < OLY_MAX_RANK; a++)
        if (x->axes >> a & 1) {
            if (!(gone >> a & 1))
                shape[rank++] = p.shape[d];
            d++;
        }
    for (int d = oly_batch_lead(x->axes); d < p.rank; d++)
        shape[rank++] = p.shape[d];
    x->axes &= ~gone;
    return oly_build_reshape(g, x->node, rank, shape, &x->node);
}

/* The Explicit axes of the assembled value: those that split a device's part, also where the spec joins parts. *joined NULL: it joins none
 * that are split, so that a reshape keeps what there is. */
static oly_status joined_sharding(const oly_type *t, const split_shape *s, oly_sharding spec, int rank,
                                  oly_sharding *joined)
{
    oly_spec kept = {.n_dims = rank, .unreduced = t->unreduced, .reduced = t->reduced};
    bool meet = false;
    *joined = NULL;
    for (int d = 0; t->mesh && d < rank; d++) {
        kept.dim[d] = t->axes[s->own_at[d]];
        meet = meet || (axes_at(spec, d)->n > 0 && kept.dim[d].n > 0);
    }
    if (meet && !(*joined = oly_sharding_intern(t->mesh, &kept, 0)))
        return OLY_MEMORY;
    return OLY_OK;
}

static oly_status join_dimensions(oly_graph *g, const oly_type *whole, oly_sharding joined, oly_node *x, oly_node **out)
{
    oly_params p;
    if (!joined)
        return oly_build_reshape(g, x, whole->rank, whole->shape, out);
    memset(&p, 0, sizeof p);
    p.rank = whole->rank;
    memcpy(p.shape, whole->shape, sizeof *p.shape * (size_t)whole->rank);
    p.sharding = joined;
    return oly_graph_add(g, OLY_OP_reshape, 1, &x, &p, out);
}

oly_status oly_join_up(oly_graph *g, const oly_batch_axes *axes, oly_lifted x, oly_sharding spec, oly_node **out)
{
    oly_batch b = {.into = g, .axes = axes};
    uint32_t wanted = named(spec);
    int order[OLY_MAX_RANK];
    split_shape s;
    if (x.axes & ~wanted)
        OLY_TRY(first_slice(g, x.axes & ~wanted, &x));
    OLY_TRY(oly_batch_vary(&b, &x, wanted));
    int lead = oly_batch_lead(wanted);
    oly_type whole = {.dtype = x.node->type.dtype, .rank = x.node->type.rank - lead}, local = whole;
    memcpy(local.shape, &x.node->type.shape[lead], sizeof *local.shape * (size_t)local.rank);
    OLY_TRY(oly_sharding_check_rank(spec, local.rank));
    OLY_TRY(split_of(axes, &local, spec, &s));
    for (int a = 0; a < OLY_MAX_RANK; a++)
        if (wanted >> a & 1)
            order[s.axis_at[a]] = oly_batch_place(wanted, a);
    for (int d = 0; d < local.rank; d++) {
        order[s.own_at[d]] = lead + d;
        whole.shape[d] = local.shape[d] * oly_axis_list_parts(spec->mesh, axes_at(spec, d));
    }
    OLY_TRY(oly_build_transpose(g, x.node, order, &x.node));
    oly_sharding joined;
    OLY_TRY(joined_sharding(&x.node->type, &s, spec, whole.rank, &joined));
    OLY_TRY(join_dimensions(g, &whole, joined, x.node, &x.node));
    return place(g, axes, x.node, spec, out);
}

/* -- vmap ---------------------------------------------------------------------------------------------------------- */

oly_status oly_batch_dimension(oly_graph *g, oly_node *x, int d, oly_lifted *out)
{
    int order[OLY_MAX_RANK];
    order[0] = d;
    for (int k = 0, n = 1; k < x->type.rank; k++)
        if (k != d)
            order[n++] = k;
    out->axes = 1;
    return oly_build_transpose(g, x, order, &out->node);
}

oly_status oly_unbatch_dimension(oly_graph *g, const oly_batch_axes *axes, oly_lifted x, int d, oly_node **out)
{
    oly_batch b = {.into = g, .axes = axes};
    int order[OLY_MAX_RANK];
    OLY_TRY(oly_batch_vary_typed(&b, &x, 1));
    for (int k = 0, n = 1; k < x.node->type.rank; k++)
        order[k] = k == d ? 0 : n++;
    return oly_build_transpose(g, x.node, order, out);
}
