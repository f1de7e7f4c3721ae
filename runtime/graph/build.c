/* SPDX-License-Identifier: BSD-3-Clause */
/* Building single nodes: conversion (constants are folded), broadcasting, and what else compositions share. */
#include "graph/build.h"
#include "graph/numbers.h"
#include "core/element.h"
#include <math.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* -- constants ------------------------------------------------------------------------------------------- */

/* Truncates and saturates; NaN becomes 0. */
static int64_t saturated(double f, double low, double high, int64_t lowest, int64_t highest)
{
    if (isnan(f))
        return 0;
    return f <= low ? lowest : f >= high ? highest : (int64_t)f;
}

/* A uint64 is stored as the bits of an int64. */
static void set_from_floating(oly_params *p, double f)
{
    int bits = 8 * (int)oly_dtype_size(p->dtype);
    double top = ldexp(1, bits - oly_dtype_is_signed(p->dtype));
    if (p->dtype == OLY_BOOL)
        p->value.i = f != 0;
    else if (oly_dtype_kind(p->dtype) >= OLY_KIND_FLOAT)
        p->value.f = oly_real_rounded(oly_dtype_real(p->dtype), f);
    else if (oly_dtype_is_signed(p->dtype))
        p->value.i =
            saturated(f, -top, top, -1 - (int64_t)(UINT64_MAX >> (65 - bits)), (int64_t)(UINT64_MAX >> (65 - bits)));
    else
        p->value.i = f > 0 ? (int64_t)(f >= top ? UINT64_MAX >> (64 - bits) : (uint64_t)f) : 0;
}

static void set_from_integer(oly_params *p, int64_t i)
{
    int spare = 64 - 8 * (int)oly_dtype_size(p->dtype);
    if (p->dtype == OLY_BOOL)
        p->value.i = i != 0;
    else if (oly_dtype_kind(p->dtype) >= OLY_KIND_FLOAT)
        p->value.f = oly_real_rounded(oly_dtype_real(p->dtype), (double)i);
    else if (oly_dtype_is_signed(p->dtype))
        p->value.i = (int64_t)((uint64_t)i << spare) >> spare;
    else
        p->value.i = (int64_t)((uint64_t)i << spare >> spare);
}

static void constant_params(oly_params *p, oly_dtype dtype, bool weak)
{
    memset(p, 0, sizeof *p);
    p->dtype = dtype;
    p->weak = weak;
}

oly_status oly_build_number(oly_graph *g, oly_dtype dtype, double value, oly_node **out)
{
    oly_params p;
    constant_params(&p, dtype, false);
    set_from_floating(&p, value);
    return oly_graph_add(g, OLY_OP_constant, 0, NULL, &p, out);
}

void oly_convert_number(oly_params *number, oly_dtype dtype, bool weak)
{
    oly_params p;
    constant_params(&p, dtype, weak);
    if (oly_dtype_kind(number->dtype) >= OLY_KIND_FLOAT)
        set_from_floating(&p, number->value.f);
    else
        set_from_integer(&p, number->value.i);
    p.imaginary =
        oly_dtype_kind(dtype) == OLY_KIND_COMPLEX ? oly_real_rounded(oly_dtype_real(dtype), number->imaginary) : 0;
    *number = p;
}

/* A weak constant keeps the number the program wrote, whatever its type can represent: 5000000000 stays exact for
 * int64. */
static oly_status convert_constant(oly_graph *g, oly_node *x, oly_dtype dtype, bool weak, oly_node **out)
{
    oly_params p = x->params;
    OLY_TRY(oly_type_check(&(oly_type){.dtype = dtype}));
    oly_convert_number(&p, dtype, weak);
    bool same = x->type.dtype == dtype && x->type.weak == weak && p.value.i == x->params.value.i &&
                p.imaginary == x->params.imaginary;
    *out = x;
    if (same && !g->numbers)
        return OLY_OK;
    OLY_TRY(oly_graph_add(g, OLY_OP_constant, 0, NULL, &p, out));
    return oly_number_converted(g, x, *out);
}

/* -- element types --------------------------------------------------------------------------------------- */
/* Where a derivative with respect to x may be requested, the converted constant must be seen to depend on x. Numbers in
 * the program have no handle, so this never concerns them. */
static bool may_be_derived_by(const oly_node *x, oly_dtype dtype)
{
    return !x->type.weak && x->type.dtype != dtype && oly_dtype_kind(x->type.dtype) >= OLY_KIND_FLOAT &&
           oly_dtype_kind(dtype) >= OLY_KIND_FLOAT;
}

oly_status oly_build_convert(oly_graph *g, oly_node *x, oly_dtype dtype, bool weak, oly_node **out)
{
    if (oly_is_constant(x) && !may_be_derived_by(x, dtype))
        return convert_constant(g, x, dtype, weak, out);
    *out = x;
    if (x->type.dtype == dtype)
        return OLY_OK;
    oly_params p;
    constant_params(&p, dtype, weak);
    return oly_graph_add(g, OLY_OP_convert, 1, &x, &p, out);
}

oly_status oly_build_element(oly_graph *g, oly_node *x, oly_dtype dtype, oly_node **out)
{
    bool number = oly_is_constant(x) && x->type.weak;
    return number && dtype == OLY_BOOL ? oly_build_truth(g, x, out) : oly_build_convert(g, x, dtype, false, out);
}

oly_status oly_build_truth(oly_graph *g, oly_node *x, oly_node **out)
{
    *out = x;
    if (x->type.dtype == OLY_BOOL)
        return OLY_OK;
    bool complex = oly_dtype_kind(x->type.dtype) == OLY_KIND_COMPLEX;
    if (complex)
        oly_number_fix(g, x);
    if (oly_is_constant(x) && (!complex || x->params.imaginary == 0))
        return convert_constant(g, x, OLY_BOOL, false, out);
    oly_node *both[2] = {x, NULL};
    OLY_TRY(oly_build_number(g, x->type.dtype, 0, &both[1]));
    OLY_TRY(oly_build_common_shape(g, 2, both));
    return oly_build_apply(g, OLY_OP_ne, 2, both, out);
}

oly_status oly_build_floating(oly_graph *g, oly_node *x, oly_node **out)
{
    return oly_build_convert(g, x, oly_dtype_inexact(x->type.dtype), x->type.weak, out);
}

oly_status oly_build_wide(oly_graph *g, oly_node *x, oly_node **out)
{
    OLY_TRY(oly_build_floating(g, x, out));
    return oly_build_convert(g, *out, oly_dtype_computed((*out)->type.dtype), x->type.weak, out);
}

oly_status oly_build_square_magnitude(oly_graph *g, oly_node *x, oly_node **out)
{
    oly_node *both[2] = {x, x}, *sum[2];
    if (oly_dtype_kind(x->type.dtype) != OLY_KIND_COMPLEX)
        return oly_build_apply(g, OLY_OP_mul, 2, both, out);
    OLY_TRY(oly_build_apply(g, OLY_OP_real, 1, &x, &both[0]));
    both[1] = both[0];
    OLY_TRY(oly_build_apply(g, OLY_OP_mul, 2, both, &sum[0]));
    OLY_TRY(oly_build_apply(g, OLY_OP_imag, 1, &x, &both[0]));
    both[1] = both[0];
    OLY_TRY(oly_build_apply(g, OLY_OP_mul, 2, both, &sum[1]));
    return oly_build_apply(g, OLY_OP_add, 2, sum, out);
}

oly_status oly_build_convert_written(oly_graph *g, const oly_type *x, oly_node **in)
{
    bool weak;
    if (oly_promote(x, &(*in)->type, &weak) == OLY_N_DTYPES)
        return oly_dtypes_do_not_meet(x->dtype, (*in)->type.dtype);
    return oly_build_convert(g, *in, x->dtype, x->weak, in);
}

oly_status oly_build_promoted(oly_graph *g, int n, oly_node **in)
{
    oly_type meet = in[0]->type;
    for (int k = 1; k < n; k++) {
        oly_dtype before = meet.dtype;
        meet.dtype = oly_promote(&meet, &in[k]->type, &meet.weak);
        if (meet.dtype == OLY_N_DTYPES)
            return oly_dtypes_do_not_meet(before, in[k]->type.dtype);
    }
    for (int k = 0; k < n; k++)
        OLY_TRY(oly_build_convert(g, in[k], meet.dtype, meet.weak, &in[k]));
    return OLY_OK;
}

/* -- shapes ----------------------------------------------------------------------------------------------- */
static void shape_params(oly_params *p, int rank, const int64_t *shape)
{
    memset(p, 0, sizeof *p);
    p->rank = rank;
    if (rank > 0) /* a rank-0 shape may have no list */
        memcpy(p->shape, shape, sizeof *shape * (size_t)rank);
}

static bool has_shape(const oly_node *x, int rank, const int64_t *shape)
{
    return x->type.rank == rank && memcmp(x->type.shape, shape, sizeof *shape * (size_t)rank) == 0;
}

/* Checks the rank a caller requests before anything is copied into arrays of OLY_MAX_RANK. */
static oly_status check_rank(int rank)
{
    if (rank < 0 || rank > OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE, "%d dimensions asked for; arrays have 0 to %d, merge some with oly_reshape", rank,
                        OLY_MAX_RANK);
    return OLY_OK;
}

oly_status oly_build_broadcast(oly_graph *g, oly_node *x, int rank, const int64_t *shape, oly_node **out)
{
    *out = x;
    OLY_TRY(check_rank(rank));
    if (has_shape(x, rank, shape))
        return OLY_OK;
    oly_type wanted = {.dtype = x->type.dtype, .rank = rank};
    memcpy(wanted.shape, shape, sizeof *shape * (size_t)rank);
    OLY_TRY(oly_type_check(&wanted));
    if (x->type.rank > rank)
        return oly_fail(OLY_SHAPE,
                        "%s has more dimensions than %s, which it must broadcast to; drop some with oly_reshape",
                        oly_type_short(&x->type), oly_type_short(&wanted));
    oly_params p;
    shape_params(&p, rank, shape);
    p.n_axes = x->type.rank;
    for (int d = 0; d < x->type.rank; d++) {
        int to = rank - x->type.rank + d;
        if (x->type.shape[d] != 1 && x->type.shape[d] != shape[to])
            return oly_fail(OLY_SHAPE,
                            "%s does not broadcast to %s: its dimension %d has size %" PRId64
                            "; sizes must be equal to the "
                            "new ones (%" PRId64 ") or 1",
                            oly_type_short(&x->type), oly_type_short(&wanted), d, x->type.shape[d], shape[to]);
        p.axes[d] = to;
    }
    return oly_graph_add(g, OLY_OP_broadcast, 1, &x, &p, out);
}

oly_status oly_build_meet(const oly_type *x, int x_rank, const oly_type *y, int y_rank, oly_type *common)
{
    int rank = x_rank > y_rank ? x_rank : y_rank;
    int64_t shape[OLY_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        int dx = d - (rank - x_rank), dy = d - (rank - y_rank);
        int64_t nx = dx < 0 ? 1 : x->shape[dx], ny = dy < 0 ? 1 : y->shape[dy];
        if (nx != ny && nx != 1 && ny != 1)
            return oly_fail(OLY_SHAPE,
                            "%s and %s differ along dimension %d%s (%" PRId64 " and %" PRId64
                            "); sizes must be equal or 1 to "
                            "broadcast: slice, or insert dimensions of size 1 with oly_reshape",
                            oly_type_short(x), oly_type_short(y), d, x_rank == y_rank ? "" : " of the result", nx, ny);
        shape[d] = nx == 1 ? ny : nx;
    }
    common->rank = rank;
    memcpy(common->shape, shape, sizeof *shape * (size_t)rank);
    return OLY_OK;
}

oly_status oly_build_common_shape(oly_graph *g, int n, oly_node **in)
{
    oly_type common = in[0]->type;
    for (int k = 1; k < n; k++) {
        for (int j = 0; j < k; j++) { /* pair by pair first, so that a message names two operands */
            oly_type pair = {0};
            OLY_TRY(oly_build_meet(&in[j]->type, in[j]->type.rank, &in[k]->type, in[k]->type.rank, &pair));
        }
        OLY_TRY(oly_build_meet(&common, common.rank, &in[k]->type, in[k]->type.rank, &common));
    }
    for (int k = 0; k < n; k++)
        OLY_TRY(oly_build_broadcast(g, in[k], common.rank, common.shape, &in[k]));
    return OLY_OK;
}

oly_status oly_build_reshape(oly_graph *g, oly_node *x, int rank, const int64_t *shape, oly_node **out)
{
    *out = x;
    OLY_TRY(check_rank(rank));
    if (has_shape(x, rank, shape))
        return OLY_OK;
    oly_params p;
    shape_params(&p, rank, shape);
    return oly_graph_add(g, OLY_OP_reshape, 1, &x, &p, out);
}

oly_status oly_build_transpose(oly_graph *g, oly_node *x, const int *axes, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.n_axes = x->type.rank;
    bool moves = false;
    for (int d = 0; d < x->type.rank; d++) {
        p.axes[d] = axes[d];
        moves = moves || axes[d] != d;
    }
    *out = x;
    return moves ? oly_graph_add(g, OLY_OP_transpose, 1, &x, &p, out) : OLY_OK;
}

oly_status oly_build_squeeze(oly_graph *g, oly_node *x, const bool *drop, oly_node **out)
{
    int64_t shape[OLY_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < x->type.rank; d++)
        if (!drop[d])
            shape[rank++] = x->type.shape[d];
    return oly_build_reshape(g, x, rank, shape, out);
}

oly_status oly_build_apply(oly_graph *g, oly_op op, int n_in, oly_node *const *in, oly_node **out)
{
    return oly_graph_add(g, op, n_in, in, NULL, out);
}

oly_status oly_build_axis(const oly_type *x, int axis, int *out)
{
    if (axis < -x->rank || axis >= x->rank)
        return x->rank == 0
                   ? oly_fail(
                         OLY_SHAPE,
                         "axis %d of %s, which has no dimensions; leave the axis out where it is optional, or give "
                         "it a dimension with oly_atleast_1d",
                         axis, oly_type_short(x))
                   : oly_fail(OLY_SHAPE, "axis %d is out of range for %s; axes go from %d to %d", axis,
                              oly_type_short(x), -x->rank, x->rank - 1);
    *out = axis < 0 ? axis + x->rank : axis;
    return OLY_OK;
}

oly_status oly_build_new_axis(const oly_type *x, int axis, int *out)
{
    if (axis < -x->rank - 1 || axis > x->rank)
        return oly_fail(OLY_SHAPE, "axis %d is out of range for a new dimension of %s; axes go from %d to %d", axis,
                        oly_type_short(x), -x->rank - 1, x->rank);
    *out = axis < 0 ? axis + x->rank + 1 : axis;
    return OLY_OK;
}
