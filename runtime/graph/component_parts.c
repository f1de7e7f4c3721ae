/* SPDX-License-Identifier: BSD-3-Clause */
/* What components are, and nodes that show one. See components.h. */
#include "graph/components.h"
#include "graph/view.h"
#include <string.h>

enum { NARROW = 64 /* elements of all parts together */ };

bool oly_is_plain_slice(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_VIEW && oly_ops[n->op].detail == OLY_VIEW_SLICE && !n->type.mesh &&
           !n->params.sharding;
}

/* Are all parts slices of one array? It is shifted then. */
static bool is_shift(const oly_node *whole)
{
    bool same = true;
    for (int k = 0; same && k < whole->n_in; k++) {
        const oly_node *part = whole->in[k];
        same = oly_ops[part->op].lowering == OLY_LOWER_VIEW && part->in[0] == whole->in[0]->in[0];
    }
    return same;
}

bool oly_has_components(const oly_node *n)
{
    if (n->op != OLY_OP_concatenate || n->n_in < 2 || n->n_in > OLY_MOST_COMPONENTS || n->type.mesh ||
        n->params.sharding)
        return false;
    int d = n->params.dimension;
    bool has = !is_shift(n), narrow = n->type.shape[d] <= NARROW;
    for (int k = 0; has && k < n->n_in; k++)
        has = n->in[k]->type.shape[d] > 0 && (narrow || n->in[k]->type.shape[d] == n->in[0]->type.shape[d]);
    return has;
}

int64_t oly_component_begin(const oly_node *whole, int k)
{
    int64_t begin = 0;
    for (int j = 0; j < k; j++)
        begin += whole->in[j]->type.shape[whole->params.dimension];
    return begin;
}

int oly_component_read(const oly_node *slice, const oly_node *whole)
{
    int d = whole->params.dimension;
    int64_t n = slice->type.shape[d], low = slice->params.start[d], high = low + slice->params.step[d] * (n - 1);
    if (n == 0 || n == slice->in[0]->type.shape[d])
        return -2;
    for (int k = 0; k < whole->n_in; k++) {
        int64_t begin = oly_component_begin(whole, k), end = oly_component_begin(whole, k + 1);
        if (low >= begin && low < end)
            return high >= begin && high < end ? k : -1;
    }
    return -1;
}

oly_status oly_component_slice(oly_graph *g, oly_node *x, int d, int64_t begin, int64_t length, oly_site site,
                               oly_node **made)
{
    oly_params params = {.rank = x->type.rank};
    for (int e = 0; e < x->type.rank; e++) {
        params.shape[e] = e == d ? length : x->type.shape[e];
        params.start[e] = e == d ? begin : 0;
        params.step[e] = 1;
    }
    OLY_TRY(oly_graph_add(g, OLY_OP_slice, 1, &x, &params, made));
    (*made)->site = site;
    return OLY_OK;
}

/* x in the shape of another value with as many elements; not reshaped twice. */
static oly_status reshape(oly_graph *g, oly_node *x, const oly_type *to, oly_site site, oly_node **made)
{
    oly_params params = {.rank = to->rank};
    memcpy(params.shape, to->shape, sizeof params.shape[0] * (size_t)to->rank);
    *made = x;
    if (oly_type_equal(&x->type, to))
        return OLY_OK;
    if (x->op == OLY_OP_reshape && !x->params.sharding && !x->type.mesh && oly_type_equal(&x->in[0]->type, to)) {
        *made = x->in[0];
        return OLY_OK;
    }
    OLY_TRY(oly_graph_add(g, OLY_OP_reshape, 1, &x, &params, made));
    (*made)->site = site;
    return OLY_OK;
}

bool oly_components_are_thin(const oly_node *whole)
{
    int d = whole->params.dimension;
    return whole->type.shape[d] == whole->n_in;
}

oly_type oly_type_without(oly_type type, int d)
{
    type.rank--;
    for (int e = d; e < type.rank; e++)
        type.shape[e] = type.shape[e + 1];
    type.shape[type.rank] = 0;
    return type;
}

/* The type with a dimension d of one element. */
static oly_type with(oly_type type, int d)
{
    for (int e = type.rank++; e > d; e--)
        type.shape[e] = type.shape[e - 1];
    type.shape[d] = 1;
    return type;
}

oly_status oly_component_thin(oly_graph *g, oly_node **x, int d, oly_site site)
{
    oly_type type = oly_type_without((*x)->type, d);
    return reshape(g, *x, &type, site, x);
}

oly_status oly_component_thicken(oly_graph *g, oly_node **x, int d, oly_site site)
{
    oly_type type = with((*x)->type, d);
    return reshape(g, *x, &type, site, x);
}
