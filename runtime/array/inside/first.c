/* SPDX-License-Identifier: BSD-3-Clause */
/* The first element for which a condition does not hold. See first.h. */
#include "array/inside/first.h"
#include "core/error.h"
#include "graph/build.h"
#include <inttypes.h>
#include <string.h>

void oly_first_index(oly_text *t, const oly_type *condition, uint64_t number)
{
    int64_t index[OLY_MAX_RANK];
    for (int d = condition->rank - 1; d >= 0; d--) {
        index[d] = (int64_t)(number % (uint64_t)condition->shape[d]);
        number /= (uint64_t)condition->shape[d];
    }
    for (int d = 0; d < condition->rank; d++)
        oly_text_add(t, "%s%" PRId64, d ? ", " : " at index (", index[d]);
    if (condition->rank)
        oly_text_add(t, condition->rank == 1 ? ",)" : ")");
}

/* -- the first element that fails ---------------------------------------------------------------------------------- */

static oly_status reduce_all(oly_graph *g, oly_op op, oly_node *x, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    *out = x;
    for (int d = 0; d < x->type.rank; d++)
        p.axes[p.n_axes++] = d;
    return p.n_axes ? oly_graph_add(g, op, 1, &x, &p, out) : OLY_OK;
}

static oly_status number_like(oly_graph *g, oly_dtype dtype, int64_t value, const oly_type *like, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = dtype;
    p.value.i = value;
    OLY_TRY(oly_graph_add(g, OLY_OP_constant, 0, NULL, &p, out));
    return oly_build_broadcast(g, *out, like->rank, like->shape, out);
}

static oly_status position_in(oly_graph *g, const oly_type *like, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = OLY_UINT64;
    p.rank = like->rank;
    memcpy(p.shape, like->shape, sizeof p.shape);
    return oly_graph_add(g, OLY_OP_position, 0, NULL, &p, out);
}

/* Over Explicit axes the search moves data, which is not the program's: it has no sharding types. */
static oly_status untyped(oly_graph *g, oly_node **x)
{
    const oly_type *t = &(*x)->type;
    return t->mesh && t->mesh->explicit_axes && !t->varying && !t->unreduced ? oly_build_auto_axes(g, *x, x) : OLY_OK;
}

oly_status oly_first_find(oly_first *s, oly_node *condition, oly_node **fails, oly_node **where)
{
    oly_node *position, *none, *least;
    OLY_TRY(untyped(s->g, &condition));
    s->shape = condition->type;
    OLY_TRY(position_in(s->g, &s->shape, &position));
    OLY_TRY(number_like(s->g, OLY_UINT64, -1, &s->shape, &none));
    OLY_TRY(oly_build_apply(s->g, OLY_OP_select, 3, (oly_node *[]){condition, none, position}, where));
    OLY_TRY(reduce_all(s->g, OLY_OP_reduce_min, *where, where));
    OLY_TRY(number_like(s->g, OLY_UINT64, -1, &(oly_type){0}, &none));
    OLY_TRY(oly_build_apply(s->g, OLY_OP_ne, 2, (oly_node *[]){*where, none}, fails));
    if (s->shape.rank == 0)
        return OLY_OK;
    OLY_TRY(oly_build_broadcast(s->g, *where, s->shape.rank, s->shape.shape, &least));
    return oly_build_apply(s->g, OLY_OP_eq, 2, (oly_node *[]){position, least}, &s->chosen);
}

static bool broadcasts(const oly_type *x, const oly_type *to)
{
    if (x->rank == 0 || x->rank > to->rank)
        return false;
    for (int d = 1; d <= x->rank; d++)
        if (x->shape[x->rank - d] != 1 && x->shape[x->rank - d] != to->shape[to->rank - d])
            return false;
    return true;
}

/* The value where the condition fails; of an array of another shape all of it. */
oly_status oly_first_value(oly_first *s, oly_node **x)
{
    oly_node *zero;
    OLY_TRY(untyped(s->g, x));
    if (!s->chosen || !broadcasts(&(*x)->type, &s->shape))
        return OLY_OK;
    oly_op op = (*x)->type.dtype == OLY_BOOL ? OLY_OP_reduce_or : OLY_OP_reduce_sum;
    OLY_TRY(oly_build_broadcast(s->g, *x, s->shape.rank, s->shape.shape, x));
    OLY_TRY(number_like(s->g, (*x)->type.dtype, 0, &s->shape, &zero));
    OLY_TRY(oly_build_apply(s->g, OLY_OP_select, 3, (oly_node *[]){s->chosen, *x, zero}, x));
    return reduce_all(s->g, op, *x, x);
}
