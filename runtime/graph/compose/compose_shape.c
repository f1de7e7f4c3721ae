/* SPDX-License-Identifier: BSD-3-Clause */
/* Compositions that move or make elements: reshape, transpose, broadcast, slices, updates, concatenation, iota,
 * full, place. */
#include "graph/compose/compose.h"
#include "graph/build.h"
#include "graph/sharding_rule/sharding_rule.h"
#include <inttypes.h>
#include <string.h>

/* -- other extents --------------------------------------------------------------------------------------- */

/* Resolves an extent of -1 in `shape` from the number of elements of x. */
static oly_status complete_shape(const oly_type *x, const oly_recipe *recipe, oly_type *shape)
{
    const oly_params *p = &recipe->params;
    int open = -1;
    *shape = (oly_type){.dtype = x->dtype, .rank = p->rank};
    for (int d = 0; d < p->rank; d++) {
        shape->shape[d] = p->shape[d];
        if (p->shape[d] < -1 || (p->shape[d] == -1 && open >= 0))
            return oly_fail(OLY_SHAPE,
                            "extent %d of the new shape is %" PRId64 "; extents are 0 or more, and one may be -1", d,
                            p->shape[d]);
        if (p->shape[d] == -1)
            open = d;
    }
    int64_t n = oly_type_size(x);
    if (open >= 0) {
        shape->shape[open] = 1;
        OLY_TRY(oly_type_check(shape));
        int64_t others = oly_type_size(shape);
        if (others == 0 || n % others != 0)
            return oly_fail(OLY_SHAPE,
                            "%s has %" PRId64 " elements, which the other extents (product %" PRId64
                            ") do not divide; -1 cannot be inferred, choose extents that divide",
                            oly_type_short(x), n, others);
        shape->shape[open] = n / others;
    }
    OLY_TRY(oly_type_check(shape));
    if (oly_type_size(shape) != n)
        return oly_fail(OLY_SHAPE,
                        "%s has %" PRId64 " elements, %s would have %" PRId64
                        "; a reshape keeps the number (one extent may be -1 and is inferred)",
                        oly_type_short(x), n, oly_type_short(shape), oly_type_size(shape));
    return OLY_OK;
}

oly_status oly_compose_reshape(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_type shape;
    OLY_TRY(complete_shape(&in[0]->type, recipe, &shape));
    oly_sharding to = recipe->params.sharding;
    bool same = oly_type_equal(&in[0]->type, &shape);
    if (!to || same || !to->mesh->explicit_axes) {
        OLY_TRY(oly_build_reshape(g, in[0], shape.rank, shape.shape, out));
        return to ? oly_build_reshard(g, *out, to, out) : OLY_OK;
    }
    oly_params p;
    memset(&p, 0, sizeof p);
    p.rank = shape.rank;
    memcpy(p.shape, shape.shape, sizeof p.shape);
    p.sharding = to;
    return oly_graph_add(g, OLY_OP_reshape, 1, in, &p, out);
}

oly_status oly_compose_transpose(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    const oly_type *x = &in[0]->type;
    const oly_params *p = &recipe->params;
    int axes[OLY_MAX_RANK];
    unsigned seen = 0;
    if (p->n_axes != 0 && p->n_axes != x->rank)
        return oly_fail(OLY_SHAPE, "%d axes given for %s; give all %d, each once, or none to reverse them", p->n_axes,
                        oly_type_short(x), x->rank);
    for (int d = 0; d < x->rank; d++) {
        axes[d] = x->rank - 1 - d;
        if (p->n_axes != 0)
            OLY_TRY(oly_build_axis(x, p->axes[d], &axes[d]));
        if (seen & 1u << axes[d])
            return oly_fail(OLY_SHAPE, "axis %d of %s is named twice; give each axis once", axes[d], oly_type_short(x));
        seen |= 1u << axes[d];
    }
    return oly_build_transpose(g, in[0], axes, out);
}

oly_status oly_compose_broadcast(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    const oly_params *p = &recipe->params;
    return oly_build_broadcast_to(g, in[0], p->rank, p->shape, p->sharding, out);
}

/* -- parts ----------------------------------------------------------------------------------------------- */

/* Reads the slice of a recipe: parameters of the node (without the marks of dropped dimensions), and the shape without
 * those dimensions. */
static oly_status read_part(const oly_type *x, const oly_recipe *recipe, oly_params *part, oly_type *shape)
{
    const oly_params *p = &recipe->params;
    if (p->rank != x->rank)
        return oly_fail(OLY_SHAPE, "the part has %d dimensions, %s has %d; name each dimension once", p->rank,
                        oly_type_short(x), x->rank);
    memset(part, 0, sizeof *part);
    *shape = (oly_type){.dtype = x->dtype, .weak = x->weak};
    part->rank = x->rank;
    for (int d = 0; d < x->rank; d++) {
        part->start[d] = p->start[d];
        part->shape[d] = p->shape[d];
        part->step[d] = p->step[d];
        if (p->axes[d] != OLY_PART_DROPPED)
            shape->shape[shape->rank++] = p->shape[d];
    }
    return OLY_OK;
}

/* Reverses the dimensions with a negative step. */
static oly_status reverse_part(oly_graph *g, const oly_recipe *recipe, oly_node **x)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    for (int d = 0; d < recipe->params.rank; d++)
        if (recipe->params.axes[d] == OLY_PART_REVERSED && recipe->params.shape[d] > 1)
            p.axes[p.n_axes++] = d;
    return p.n_axes == 0 ? OLY_OK : oly_graph_add(g, OLY_OP_rev, 1, x, &p, x);
}

static bool is_whole(const oly_type *x, const oly_params *part)
{
    for (int d = 0; d < x->rank; d++)
        if (part->start[d] != 0 || part->shape[d] != x->shape[d] || part->step[d] != 1)
            return false;
    return true;
}

oly_status oly_compose_slice(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_params part;
    oly_type shape;
    oly_node *x = in[0];
    OLY_TRY(read_part(&x->type, recipe, &part, &shape));
    if (!is_whole(&x->type, &part))
        OLY_TRY(oly_graph_add(g, OLY_OP_slice, 1, in, &part, &x));
    OLY_TRY(reverse_part(g, recipe, &x));
    return oly_build_reshape(g, x, shape.rank, shape.shape, out);
}

oly_status oly_compose_update(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_params part;
    oly_type shape;
    oly_node *both[2] = {in[0], in[1]};
    const oly_type *x = &in[0]->type;
    OLY_TRY(read_part(x, recipe, &part, &shape));
    OLY_TRY(oly_build_convert_written(g, x, &both[1]));
    OLY_TRY(oly_build_broadcast(g, both[1], shape.rank, shape.shape, &both[1]));
    *out = in[0];
    if (oly_type_size(&shape) == 0)
        return OLY_OK;
    OLY_TRY(oly_build_reshape(g, both[1], part.rank, part.shape, &both[1]));
    OLY_TRY(reverse_part(g, recipe, &both[1]));
    *out = both[1];
    bool is_placed = !x->mesh || oly_type_same_sharding(x, &both[1]->type);
    return is_whole(x, &part) && is_placed ? OLY_OK : oly_graph_add(g, OLY_OP_update, 2, both, &part, out);
}

/* Operands must agree in all dimensions but `along`. */
static oly_status check_concatenable(int n, oly_node *const *in, int along)
{
    const oly_type *first = &in[0]->type;
    for (int k = 1; k < n; k++) {
        const oly_type *other = &in[k]->type;
        if (other->rank != first->rank)
            return oly_fail(OLY_SHAPE,
                            "%s and %s (operand %d) cannot be joined: they differ in the number of dimensions; "
                            "insert dimensions of size 1 with oly_reshape",
                            oly_type_short(first), oly_type_short(other), k);
        for (int d = 0; d < first->rank; d++)
            if (d != along && other->shape[d] != first->shape[d])
                return oly_fail(OLY_SHAPE,
                                "%s and %s (operand %d) cannot be joined along dimension %d: dimension %d is %" PRId64
                                " and %" PRId64 "; the others must be equal",
                                oly_type_short(first), oly_type_short(other), k, along, d, first->shape[d],
                                other->shape[d]);
    }
    return OLY_OK;
}

oly_status oly_compose_concatenate(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                   oly_node **out)
{
    if (n_in < 1)
        return oly_fail(OLY_INVALID, "no arrays given; give one or more");
    oly_params p;
    memset(&p, 0, sizeof p);
    OLY_TRY(oly_build_axis(&in[0]->type, recipe->params.dimension, &p.dimension));
    OLY_TRY(check_concatenable(n_in, in, p.dimension));
    oly_node **all = OLY_ARENA_NEW(&g->arena, oly_node *, n_in);
    if (!all)
        return oly_out_of_memory(sizeof *all * (size_t)n_in, "the operands of a concatenation");
    memcpy(all, in, sizeof *all * (size_t)n_in);
    OLY_TRY(oly_build_promoted(g, n_in, all));
    *out = all[0];
    return n_in == 1 ? OLY_OK : oly_graph_add(g, OLY_OP_concatenate, n_in, all, &p, out);
}

/* -- creating and placing -------------------------------------------------------------------------------- */

/* For bool, numbers are converted: 0, 1, 1, ... */
oly_status oly_compose_iota(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in, (void)in;
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = recipe->params.dtype == OLY_BOOL ? OLY_INT32 : recipe->params.dtype;
    p.dimension = recipe->params.dimension;
    p.rank = recipe->params.rank;
    memcpy(p.shape, recipe->params.shape, sizeof p.shape);
    OLY_TRY(oly_graph_add(g, OLY_OP_iota, 0, NULL, &p, out));
    OLY_TRY(oly_build_convert(g, *out, recipe->params.dtype, false, out));
    return recipe->params.sharding ? oly_build_reshard(g, *out, recipe->params.sharding, out) : OLY_OK;
}

oly_status oly_compose_full(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    const oly_params *p = &recipe->params;
    OLY_TRY(oly_build_element(g, in[0], p->dtype, out));
    OLY_TRY(oly_build_broadcast(g, *out, p->rank, p->shape, out));
    return p->sharding ? oly_build_reshard(g, *out, p->sharding, out) : OLY_OK;
}

oly_status oly_compose_reshard(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_sharding to = recipe->params.sharding;
    if (!to->mesh->explicit_axes) {
        char mesh[256];
        oly_mesh_str(to->mesh, mesh, sizeof mesh);
        return oly_fail(OLY_SHARDING,
                        "%s cannot be resharded over %s, which has no Explicit axis: there the planner places values; "
                        "guide it with oly_with_sharding_constraint, or move a value with oly_device_put",
                        oly_type_short(&in[0]->type), mesh);
    }
    return oly_build_reshard(g, in[0], to, out);
}

/* A constraint that names Auto axes only, on a mesh with Explicit ones, leaves those as they are: *out has them as the
 * type of x does. A constraint that names an Explicit axis is unchanged. */
static oly_status keep_explicit(const oly_type *x, oly_sharding s, oly_sharding *out)
{
    oly_type named = {.rank = x->rank};
    oly_spec spec = s->spec;
    oly_type_set_sharding(&named, s);
    bool names_any = named.unreduced || named.reduced || x->mesh != s->mesh;
    for (int d = 0; d < x->rank; d++)
        names_any = names_any || named.axes[d].n > 0;
    *out = s;
    if (names_any)
        return OLY_OK;
    spec.n_dims = x->rank;
    spec.unreduced = x->unreduced;
    spec.reduced = x->reduced;
    for (int d = 0; d < x->rank; d++) {
        oly_axis_list here = {0};
        if (d < s->spec.n_dims)
            here = s->spec.dim[d];
        spec.dim[d] = x->axes[d];
        for (int k = 0; k < here.n; k++)
            spec.dim[d].axis[spec.dim[d].n++] = here.axis[k];
    }
    *out = oly_sharding_intern(s->mesh, &spec, x->rank);
    return *out ? OLY_OK : OLY_MEMORY;
}

/* Over Explicit axes the sharding is known: it is only checked. */
oly_status oly_compose_constraint(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    oly_sharding s = recipe->params.sharding;
    oly_type wanted = in[0]->type;
    if (!s->mesh->explicit_axes)
        return oly_compose_place(g, n_in, in, recipe, out);
    OLY_TRY(oly_sharding_check_constraint(s, wanted.rank));
    oly_recipe whole = *recipe;
    if (s->mesh->explicit_axes != (1u << s->mesh->n_axes) - 1)
        OLY_TRY(keep_explicit(&in[0]->type, s, &s));
    whole.params.sharding = s;
    oly_type_set_sharding(&wanted, s);
    oly_type_keep_open(&wanted, &in[0]->type, s);
    wanted.varying = in[0]->type.varying;
    if (!oly_type_same_sharding(&wanted, &in[0]->type))
        return oly_sharding_fail_types("constraint", &in[0]->type, NULL, "assert_mismatch",
                                       "the constraint says %s, and on Explicit axes it only checks what the type is; "
                                       "move the value with oly_reshard",
                                       oly_type_short(&wanted));
    bool only_explicit = s->mesh->explicit_axes == (1u << s->mesh->n_axes) - 1;
    *out = in[0];
    return only_explicit ? OLY_OK : oly_compose_place(g, n_in, in, &whole, out);
}

oly_status oly_compose_place(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_params p;
    memset(&p, 0, sizeof p);
    p.sharding = recipe->params.sharding;
    return oly_graph_add(g, OLY_OP_place, 1, in, &p, out);
}
