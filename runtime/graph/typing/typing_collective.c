/* SPDX-License-Identifier: BSD-3-Clause */
/* The type rules of collectives over the axes params.over of params.mesh; n below is how many devices those have. */
#include "graph/typing/typing.h"
#include "graph/graph.h"
#include <inttypes.h>
#include <string.h>

static const char *name_of(const oly_node *node)
{
    return oly_ops[node->op].name;
}

static oly_status positions(const oly_node *node, int64_t *n)
{
    const oly_params *p = &node->params;
    if (!p->mesh || p->over.n == 0)
        return oly_fail(OLY_INVALID, "%s: no mesh axes are named", name_of(node));
    *n = oly_axis_list_parts(p->mesh, &p->over);
    return OLY_OK;
}

oly_status oly_typing_collective(oly_node *node)
{
    int64_t n;
    node->type = node->in[0]->type;
    return positions(node, &n);
}

static oly_status remove_dimension(oly_node *node, int d, int64_t n)
{
    oly_type *t = &node->type;
    if (d < 0 || d >= t->rank || t->shape[d] != n)
        return oly_fail(OLY_SHAPE, "%s: dimension %d of %s must have one element for each of %" PRId64 " devices",
                        name_of(node), d, oly_type_short(t), n);
    t->rank--;
    memmove(&t->shape[d], &t->shape[d + 1], sizeof *t->shape * (size_t)(t->rank - d));
    t->shape[t->rank] = 0;
    return OLY_OK;
}

static oly_status insert_dimension(oly_node *node, int d, int64_t n)
{
    oly_type *t = &node->type;
    if (d < 0 || d > t->rank || t->rank == OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE, "%s: no dimension %d can be put into %s", name_of(node), d, oly_type_short(t));
    memmove(&t->shape[d + 1], &t->shape[d], sizeof *t->shape * (size_t)(t->rank - d));
    t->shape[d] = n;
    t->rank++;
    return OLY_OK;
}

oly_status oly_typing_all_gather(oly_node *node)
{
    int64_t n;
    node->type = node->in[0]->type;
    OLY_TRY(positions(node, &n));
    return insert_dimension(node, node->params.dimension, n);
}

oly_status oly_typing_psum_scatter(oly_node *node)
{
    int64_t n;
    node->type = node->in[0]->type;
    OLY_TRY(positions(node, &n));
    return remove_dimension(node, node->params.dimension, n);
}

oly_status oly_typing_all_to_all(oly_node *node)
{
    int64_t n;
    node->type = node->in[0]->type;
    OLY_TRY(positions(node, &n));
    OLY_TRY(remove_dimension(node, node->params.dimension, n));
    return insert_dimension(node, node->params.axes[0], n);
}

oly_status oly_typing_ppermute(oly_node *node)
{
    int64_t n;
    node->type = node->in[0]->type;
    OLY_TRY(positions(node, &n));
    if (!node->params.permutation || node->params.permutation->n != n)
        return oly_fail(OLY_INVALID, "%s: the permutation is not of %" PRId64 " devices", name_of(node), n);
    return OLY_OK;
}

oly_status oly_typing_axis_index(oly_node *node)
{
    int64_t n;
    node->type = (oly_type){.dtype = OLY_INT32};
    return positions(node, &n);
}

oly_status oly_typing_permute(oly_node *node)
{
    const oly_params *p = &node->params;
    node->type = node->in[0]->type;
    if (p->dimension < 0 || p->dimension >= node->type.rank || !p->permutation ||
        p->permutation->n != node->type.shape[p->dimension])
        return oly_fail(OLY_SHAPE, "%s: dimension %d of %s and the permutation of %d slices do not fit", name_of(node),
                        p->dimension, oly_type_short(&node->type), p->permutation ? p->permutation->n : 0);
    return OLY_OK;
}
