/* SPDX-License-Identifier: BSD-3-Clause */
/* Reinterpreting the bits of elements. source: jax.lax.bitcast_convert_type */
#include "graph/compose/compose_math.h"
#include "graph/compose/expression.h"
#include <string.h>

#define BINARY(op, x, y) oly_expression_binary(s, OLY_OP_##op, x, y)

static oly_dtype unsigned_of(size_t bytes)
{
    return bytes == 1 ? OLY_UINT8 : bytes == 2 ? OLY_UINT16 : bytes == 4 ? OLY_UINT32 : OLY_UINT64;
}

static oly_node *keep(oly_expression *s, oly_status status, oly_node **node)
{
    if (status != OLY_OK)
        s->status = status;
    return status == OLY_OK ? *node : NULL;
}

/* 0, bits, 2 bits, ... along the last of `rank` dimensions. */
static oly_node *shifts(oly_expression *s, oly_dtype dtype, int rank, const int64_t *shape, size_t bits)
{
    oly_params p;
    oly_node *count = NULL, *step = NULL;
    memset(&p, 0, sizeof p);
    p.dtype = dtype;
    p.rank = rank;
    memcpy(p.shape, shape, sizeof *shape * (size_t)rank);
    p.dimension = rank - 1;
    if (s->status != OLY_OK || !keep(s, oly_graph_add(s->g, OLY_OP_iota, 0, NULL, &p, &count), &count))
        return NULL;
    step = oly_expression_convert(s, oly_expression_whole(s, (int64_t)bits), dtype);
    return BINARY(mul, count, step);
}

/* Splits one element into several, the low bits first. */
static oly_node *split(oly_expression *s, oly_node *x, oly_dtype narrow, int64_t pieces)
{
    int64_t shape[OLY_MAX_RANK];
    int rank = x->type.rank;
    memcpy(shape, x->type.shape, sizeof *shape * (size_t)rank);
    shape[rank] = 1;
    x = keep(s, oly_build_reshape(s->g, x, rank + 1, shape, &x), &x);
    shape[rank] = pieces;
    oly_node *by = x ? shifts(s, x->type.dtype, rank + 1, shape, 8 * oly_dtype_size(narrow)) : NULL;
    return oly_expression_convert(s, BINARY(shift_right_logical, x, by), narrow);
}

/* Joins the elements along the last dimension into one. */
static oly_node *join(oly_expression *s, oly_node *x, oly_dtype wide)
{
    oly_params p;
    size_t bits = 8 * oly_dtype_size(x->type.dtype);
    oly_node *by = shifts(s, wide, x->type.rank, x->type.shape, bits), *out = NULL;
    oly_node *parts = BINARY(shift_left, oly_expression_convert(s, x, wide), by);
    memset(&p, 0, sizeof p);
    p.n_axes = 1;
    p.axes[0] = x->type.rank - 1;
    return parts ? keep(s, oly_graph_add(s->g, OLY_OP_reduce_or, 1, &parts, &p, &out), &out) : NULL;
}

static oly_status refuse(const oly_node *x, oly_dtype to)
{
    oly_kind from = oly_kind_of(x), kind = oly_dtype_kind(to);
    size_t old = oly_dtype_size(x->type.dtype), new = oly_dtype_size(to);
    if (from == OLY_KIND_BOOL || from == OLY_KIND_COMPLEX || kind == OLY_KIND_BOOL || kind == OLY_KIND_COMPLEX)
        return oly_fail(OLY_DTYPE,
                        "the bits of %s cannot be reinterpreted as %s: only real types can; convert with "
                        "oly_astype, or take oly_real and oly_imag",
                        oly_type_short(&x->type), oly_dtype_name(to));
    if (old > new && x->type.rank == OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE,
                        "%s reinterpreted as %s would have one dimension more than the %d that arrays can have",
                        oly_type_short(&x->type), oly_dtype_name(to), OLY_MAX_RANK);
    int64_t last = x->type.rank > 0 ? x->type.shape[x->type.rank - 1] : 1;
    if (old < new &&last != (int64_t)(new / old))
        return oly_fail(OLY_SHAPE,
                        "the bits of %s do not make elements of %s: the last dimension must have size %d, the number "
                        "that makes one element; reshape first",
                        oly_type_short(&x->type), oly_dtype_name(to), (int)(new / old));
    return OLY_OK;
}

oly_status oly_compose_bitcast(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_expression expression = {g, OLY_OK}, *s = &expression;
    oly_node *x = in[0];
    oly_dtype to = recipe->params.dtype;
    size_t old = oly_dtype_size(x->type.dtype), new = oly_dtype_size(to);
    if (x->type.dtype == to)
        return oly_expression_done(s, x, out);
    OLY_TRY(refuse(x, to));
    if (old != new)
        x = oly_expression_bits(s, x, unsigned_of(old));
    if (x && old > new)
        x = split(s, x, unsigned_of(new), (int64_t)(old / new));
    else if (x && old < new)
        x = join(s, x, unsigned_of(new));
    return oly_expression_done(s, oly_expression_bits(s, x, to), out);
}
