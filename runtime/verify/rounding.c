/* SPDX-License-Identifier: BSD-3-Clause */
/* Roundings that depend on the plan. See rounding.h. */
#include "verify/rounding.h"
#include "core/hash.h"
#include "verify/element.h"
#include <math.h>
#include <string.h>

static bool has_fractions(oly_dtype dtype)
{
    oly_kind kind = oly_dtype_kind(dtype);
    return kind == OLY_KIND_FLOAT || kind == OLY_KIND_COMPLEX;
}

/* Is it rounded differently as part of a fused sum? A negation is exact there too, and a conversion is never part of
 * one. */
static bool is_fused(oly_op op)
{
    switch (oly_linearity_of(op)) {
    case OLY_LINEAR_SUM:
    case OLY_LINEAR_DIFFERENCE:
    case OLY_LINEAR_PRODUCT:
    case OLY_LINEAR_QUOTIENT: return true;
    default: return false;
    }
}

oly_rounding oly_rounding_of(const oly_node *n, bool in_taps)
{
    if (!has_fractions(n->type.dtype))
        return OLY_ROUNDING_SAME;
    switch (n->op) {
    case OLY_OP_reduce_sum:
    case OLY_OP_dot_general:
    case OLY_OP_conv:
    case OLY_OP_reduce_window_sum:
    case OLY_OP_cumsum:
    case OLY_OP_scatter_add: return OLY_ROUNDING_OF_TERMS;
    case OLY_OP_reduce_prod:
    case OLY_OP_reduce_window_prod:
    case OLY_OP_cumprod:
    case OLY_OP_cumlogsumexp:
    case OLY_OP_scatter_mul: return OLY_ROUNDING_OF_RESULT;
    default: return in_taps && is_fused(n->op) ? OLY_ROUNDING_OF_RESULT : OLY_ROUNDING_SAME;
    }
}

/* Upper bound of the terms of one element of the result. */
static double terms_of(const oly_node *n)
{
    double in = (double)oly_type_size(&n->in[0]->type), out = (double)oly_type_size(&n->type);
    switch (n->op) {
    case OLY_OP_reduce_sum:
    case OLY_OP_reduce_prod: return out > 0 ? in / out : 1;
    case OLY_OP_conv: return (double)oly_type_size(&n->in[1]->type);
    case OLY_OP_scatter_add:
    case OLY_OP_scatter_mul: return (double)oly_type_size(&n->in[n->n_in - 1]->type);
    case OLY_OP_dot_general:
        out = 1;
        for (int k = 0; k < n->params.contraction.n_contract; k++)
            out *= (double)n->in[0]->type.shape[n->params.contraction.contract[0][k]];
        return out;
    default: return in;
    }
}

double oly_rounding_units(const oly_node *n)
{
    bool halves = oly_dtype_size(oly_dtype_real(n->type.dtype)) == 2;
    double terms = terms_of(n), many = halves ? 8 : 64 + 4 * sqrt(terms); /* chunks and trees keep it far below n */
    if (oly_rounding_of(n, false) == OLY_ROUNDING_SAME)
        return 4;
    return fmin(terms + 4, many);
}

static oly_status add_magnitude(oly_graph *g, const oly_node *operand, oly_node **node)
{
    oly_type type = operand->type;
    oly_type_clear_sharding(&type); /* wherever it is placed */
    OLY_TRY(oly_graph_input(g, &type, node));
    return has_fractions(type.dtype) ? oly_graph_add(g, OLY_OP_abs, 1, node, NULL, node) : OLY_OK;
}

static oly_status magnitudes(const oly_node *n, oly_graph *g)
{
    oly_node **in, *made;
    oly_params p;
    memcpy(&p, &n->params, sizeof p);
    p.sharding = NULL;
    p.settled = 0;
    OLY_ARENA_LIST(&g->arena, in, n->n_in);
    for (int k = 0; k < n->n_in; k++)
        OLY_TRY(add_magnitude(g, n->in[k], &in[k]));
    OLY_TRY(oly_graph_add(g, n->op, n->n_in, in, &p, &made));
    return oly_graph_output(g, made);
}

oly_status oly_rounding_graph(const oly_node *n, oly_graph **g)
{
    *g = oly_graph_new("magnitudes");
    oly_status st = *g ? magnitudes(n, *g) : OLY_MEMORY;
    if (st != OLY_OK)
        oly_graph_free(*g);
    return st;
}

/* -- disturbing elements ----------------------------------------------------------------------------------- */

/* From -1 to 1. */
static double draw(uint64_t seed, uint64_t number)
{
    uint64_t h = oly_hash_mix(oly_hash_mix(seed, number), number >> 7);
    return (double)(int64_t)(h ^ h << 32) * 0x1p-63;
}

typedef struct walk {
    oly_dtype dtype, of; /* of the magnitude */
    double units;
    uint64_t seed;
    oly_box box;
    int64_t stride[OLY_MAX_RANK]; /* in the whole array */
    char *x;
    const char *magnitude; /* NULL: x's own */
} walk;

/* Elements i to i + n, which are adjacent in the whole array too. */
static void disturb_generic(const walk *w, int64_t i, int64_t number, int64_t n)
{
    for (int64_t last = i + n; i < last; i++, number++) {
        char *element = w->x + i * (int64_t)oly_dtype_size(w->dtype);
        const char *by = w->magnitude ? w->magnitude + i * (int64_t)oly_dtype_size(w->of) : element;
        double size = 0;
        for (int part = 0; part < oly_element_parts(w->of); part++)
            size = fmax(size, fabs(oly_element_part(w->of, by, part)));
        for (int part = 0; part < oly_element_parts(w->dtype); part++) {
            double value = oly_element_part(w->dtype, element, part);
            double by_much = draw(w->seed + (uint64_t)part, (uint64_t)number) * w->units * size;
            oly_element_set_part(w->dtype, element, part, value + by_much * oly_element_epsilon(w->dtype));
        }
    }
}

/* The common case, fast: loops over fields spend their time here. */
static void disturb_floats(const walk *w, int64_t i, int64_t number, int64_t n)
{
    float *x = (float *)w->x;
    const float *by = w->magnitude ? (const float *)w->magnitude : x;
    double units = w->units * 0x1p-23;
    for (int64_t last = i + n; i < last; i++, number++)
        x[i] = (float)((double)x[i] + draw(w->seed, (uint64_t)number) * units * fabs((double)by[i]));
}

static void disturb_box(const walk *w)
{
    int rank = w->box.rank;
    int64_t at[OLY_MAX_RANK] = {0}, n = oly_box_count(&w->box);
    int64_t row = rank ? w->box.hi[rank - 1] - w->box.lo[rank - 1] : 1;
    for (int64_t i = 0; i < n; i += row) {
        int64_t number = rank ? w->box.lo[rank - 1] : 0;
        for (int d = 0; d < rank - 1; d++)
            number += (w->box.lo[d] + at[d]) * w->stride[d];
        (w->dtype == OLY_FLOAT32 && w->of == OLY_FLOAT32 ? disturb_floats : disturb_generic)(w, i, number, row);
        for (int d = rank - 2; d >= 0 && ++at[d] == w->box.hi[d] - w->box.lo[d]; d--)
            at[d] = 0;
    }
}

/* magnitude: NULL: x's own. */
static oly_status disturb_shard(walk *w, const oly_buffer *x, const oly_buffer *magnitude)
{
    size_t n = (size_t)oly_box_count(&w->box), bytes = n * oly_dtype_size(w->dtype), by = n * oly_dtype_size(w->of);
    void *elements, *magnitudes = NULL;
    OLY_TRY(oly_buffer_map(x, OLY_ACCESS_CHANGE, bytes, &elements));
    oly_status st = magnitude ? oly_buffer_map(magnitude, OLY_ACCESS_READ, by, &magnitudes) : OLY_OK;
    if (st == OLY_OK) {
        w->x = elements;
        w->magnitude = magnitudes;
        disturb_box(w);
        st = magnitude ? oly_buffer_unmap(magnitude, OLY_ACCESS_READ, by, magnitudes) : OLY_OK;
    }
    oly_status written = oly_buffer_unmap(x, OLY_ACCESS_CHANGE, bytes, elements);
    return st == OLY_OK ? written : st;
}

oly_status oly_rounding_disturb(oly_held *x, const oly_held *magnitude, double units, uint64_t seed)
{
    const oly_type *t = &x->is.type;
    walk w = {.dtype = t->dtype, .of = magnitude ? magnitude->is.type.dtype : t->dtype, .units = units, .seed = seed};
    oly_layout l = oly_layout_canonical(x->is.sharding, t->rank, t->shape);
    const int *positions;
    int64_t stride = 1;
    oly_mesh_local_positions(x->is.sharding->mesh, &positions);
    for (int d = t->rank - 1; d >= 0; d--) {
        w.stride[d] = stride;
        stride *= t->shape[d];
    }
    oly_queue_drain();
    for (int s = 0; s < x->n_shards; s++) {
        if (s > 0 && x->shard[s] == x->shard[0]) /* held once for all devices */
            continue;
        w.box = oly_layout_box(&l, positions[s]);
        OLY_TRY(disturb_shard(&w, x->shard[s], magnitude ? magnitude->shard[s] : NULL));
    }
    return OLY_OK;
}
