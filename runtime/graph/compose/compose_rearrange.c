/* SPDX-License-Identifier: BSD-3-Clause */
/* Compositions that rearrange elements: padding, reversing, cyclic shifts, repeating, stacking, diagonals and
 * triangles. */
#include "graph/compose/compose_rearrange.h"
#include "core/min_max.h"
#include "graph/build.h"
#include "graph/sharding_rule/sharding_rule.h"
#include <inttypes.h>
#include <string.h>

oly_status oly_rearrange_part(oly_graph *g, oly_node *x, int d, int64_t begin, int64_t end, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.rank = x->type.rank;
    for (int e = 0; e < p.rank; e++) {
        p.shape[e] = x->type.shape[e];
        p.step[e] = 1;
    }
    p.start[d] = begin;
    p.shape[d] = end - begin;
    *out = x;
    return end - begin == x->type.shape[d] ? OLY_OK : oly_graph_add(g, OLY_OP_slice, 1, &x, &p, out);
}

static oly_status join(oly_graph *g, int n, oly_node *const *parts, int d, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dimension = d;
    *out = parts[0];
    return n == 1 ? OLY_OK : oly_graph_add(g, OLY_OP_concatenate, n, parts, &p, out);
}

/* -- padding and reversing --------------------------------------------------------------------------------- */

/* Extent of dimension d after padding: low + high + elements with the gaps between them. fails OLY_SHAPE,
 * OLY_OVERFLOW */
static oly_status padded_extent(const oly_type *x, const oly_params *p, int d, int64_t *extent)
{
    int64_t n = x->shape[d], covered = 0;
    if (p->step[d] < 1)
        return oly_fail(OLY_SHAPE, "%" PRId64 " elements between those of dimension %d of %s; the number is 0 or more",
                        p->step[d] - 1, d, oly_type_short(x));
    if ((n > 0 && __builtin_mul_overflow(n - 1, p->step[d], &covered)) ||
        (n > 0 && __builtin_add_overflow(covered, 1, &covered)) ||
        __builtin_add_overflow(covered, p->start[d], extent) || __builtin_add_overflow(*extent, p->shape[d], extent))
        return oly_fail(OLY_OVERFLOW, "dimension %d of %s would exceed 2^63 elements", d, oly_type_short(x));
    if (*extent < 0)
        return oly_fail(OLY_SHAPE,
                        "padding dimension %d of %s by %" PRId64 " and %" PRId64 " leaves %" PRId64
                        " elements; take away at most what is there",
                        d, oly_type_short(x), p->start[d], p->shape[d], *extent);
    return OLY_OK;
}

oly_status oly_compose_pad(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_node *both[2] = {in[0], in[1]};
    const oly_type *x = &in[0]->type;
    const oly_params *given = &recipe->params;
    oly_params p, part;
    memset(&p, 0, sizeof p);
    memset(&part, 0, sizeof part);
    if (given->rank != x->rank)
        return oly_fail(OLY_SHAPE, "padding for %d dimensions, %s has %d; give each dimension one entry", given->rank,
                        oly_type_short(x), x->rank);
    if (in[1]->type.rank != 0)
        return oly_fail(OLY_SHAPE, "the padding value is %s; it is one element: a number or an array of rank 0",
                        oly_type_short(&in[1]->type));
    bool same = true, cuts = true;
    p.rank = part.rank = x->rank;
    for (int d = 0; d < x->rank; d++) {
        OLY_TRY(padded_extent(x, given, d, &p.shape[d]));
        p.start[d] = given->start[d];
        p.step[d] = given->step[d];
        bool still = p.start[d] == 0 && given->shape[d] == 0 && (p.step[d] == 1 || x->shape[d] <= 1);
        same = same && still;
        cuts = cuts && (still || (p.start[d] <= 0 && given->shape[d] <= 0 && p.step[d] == 1 &&
                                  -p.start[d] <= x->shape[d] && -given->shape[d] <= x->shape[d]));
        part.start[d] = -p.start[d];
        part.shape[d] = p.shape[d];
        part.step[d] = 1;
    }
    *out = in[0];
    if (same)
        return OLY_OK;
    if (cuts)
        return oly_graph_add(g, OLY_OP_slice, 1, in, &part, out);
    OLY_TRY(oly_build_convert(g, in[1], x->dtype, in[1]->type.weak, &both[1]));
    return oly_graph_add(g, OLY_OP_pad, 2, both, &p, out);
}

/* The dimensions named in the recipe as a set of bits. fails OLY_SHAPE, OLY_INVALID (named twice) */
static oly_status read_set(const oly_type *x, const oly_recipe *recipe, unsigned *set)
{
    *set = recipe->all_axes ? (1u << x->rank) - 1 : 0;
    for (int k = 0; k < recipe->params.n_axes && !recipe->all_axes; k++) {
        int axis;
        OLY_TRY(oly_build_axis(x, recipe->params.axes[k], &axis));
        if (*set >> axis & 1)
            return oly_fail(OLY_INVALID, "axis %d of %s is named twice; name each axis once", recipe->params.axes[k],
                            oly_type_short(x));
        *set |= 1u << axis;
    }
    return OLY_OK;
}

oly_status oly_compose_rev(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    const oly_type *x = &in[0]->type;
    unsigned set;
    oly_params p;
    memset(&p, 0, sizeof p);
    OLY_TRY(read_set(x, recipe, &set));
    for (int d = 0; d < x->rank; d++)
        if (set >> d & 1 && x->shape[d] > 1)
            p.axes[p.n_axes++] = d;
    *out = in[0];
    return p.n_axes == 0 ? OLY_OK : oly_graph_add(g, OLY_OP_rev, 1, in, &p, out);
}

static oly_status roll_axis(oly_graph *g, oly_node *x, int d, int64_t shift, oly_node **out)
{
    int64_t n = x->type.shape[d];
    *out = x;
    if (n == 0 || shift % n == 0)
        return OLY_OK;
    int64_t cut = n - (shift % n + n) % n;
    oly_node *parts[2];
    OLY_TRY(oly_rearrange_part(g, x, d, cut, n, &parts[0]));
    OLY_TRY(oly_rearrange_part(g, x, d, 0, cut, &parts[1]));
    return join(g, 2, parts, d, out);
}

oly_status oly_compose_roll(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    const oly_type *x = &in[0]->type;
    const oly_params *p = &recipe->params;
    *out = in[0];
    if (recipe->all_axes) { /* flattened */
        int64_t n = oly_type_size(x);
        OLY_TRY(oly_build_reshape(g, in[0], 1, &n, out));
        OLY_TRY(roll_axis(g, *out, 0, p->start[0], out));
        return oly_build_reshape(g, *out, x->rank, x->shape, out);
    }
    for (int k = 0; k < p->n_axes; k++) {
        int axis;
        OLY_TRY(oly_build_axis(x, p->axes[k], &axis));
        OLY_TRY(roll_axis(g, *out, axis, p->start[k], out));
    }
    return OLY_OK;
}

/* -- repeating -------------------------------------------------------------------------------------------------------- */

enum { MOST_COPIES = 16 }; /* joined by one concatenation, which reads on each device only what that device needs */

/* `count` copies of x one after the other along d. */
static oly_status copies_along(oly_graph *g, oly_node *x, int d, int64_t count, oly_node **out)
{
    oly_node *parts[MOST_COPIES];
    if (count <= MOST_COPIES) {
        for (int k = 0; k < count; k++)
            parts[k] = x;
        return join(g, (int)count, parts, d, out);
    }
    OLY_TRY(copies_along(g, x, d, MOST_COPIES, &parts[0]));
    OLY_TRY(copies_along(g, parts[0], d, count / MOST_COPIES, &parts[0]));
    *out = parts[0];
    if (count % MOST_COPIES == 0)
        return OLY_OK;
    OLY_TRY(copies_along(g, x, d, count % MOST_COPIES, &parts[1]));
    return join(g, 2, parts, d, out);
}

static oly_status check_product(const oly_type *x, int d, int64_t n, int64_t times)
{
    int64_t extent;
    if (times < 0)
        return oly_fail(OLY_INVALID, "%" PRId64 " copies of dimension %d of %s; the number is 0 or more", times, d,
                        oly_type_short(x));
    if (__builtin_mul_overflow(n, times, &extent))
        return oly_fail(OLY_OVERFLOW, "%" PRId64 " copies of dimension %d of %s would exceed 2^63 elements", times, d,
                        oly_type_short(x));
    return OLY_OK;
}

/* The copies of a split dimension are not split alike: over Explicit axes the program must say how. */
static oly_status check_not_sharded(const oly_type *x, int d, int64_t times, const char *rule)
{
    if (!x->mesh || x->axes[d].n == 0)
        return OLY_OK;
    return oly_fail(
        OLY_SHARDING,
        "%" PRId64
        " copies of dimension %d of %s, which is sharded: their sharding is ambiguous; move it with oly_reshard [%s]",
        times, d, oly_type_short(x), rule);
}

/* Dimensions of size 1 are broadcast, others concatenated with themselves. */
static oly_status tile_axis(oly_graph *g, oly_node *x, int d, int64_t times, oly_node **out)
{
    int64_t shape[OLY_MAX_RANK];
    OLY_TRY(check_product(&x->type, d, x->type.shape[d], times));
    if (times != 1)
        OLY_TRY(check_not_sharded(&x->type, d, times, "tile_sharded"));
    memcpy(shape, x->type.shape, sizeof shape);
    *out = x;
    if (times == 1)
        return OLY_OK;
    if (times == 0)
        return oly_rearrange_part(g, x, d, 0, 0, out);
    if (shape[d] != 1)
        return shape[d] == 0 ? OLY_OK : copies_along(g, x, d, times, out);
    shape[d] = times;
    return oly_build_broadcast(g, x, x->type.rank, shape, out);
}

oly_status oly_compose_tile(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    const oly_type *x = &in[0]->type;
    const oly_params *p = &recipe->params;
    int rank = p->rank > x->rank ? p->rank : x->rank;
    int64_t shape[OLY_MAX_RANK];
    for (int d = 0; d < rank; d++)
        shape[d] = d < rank - x->rank ? 1 : x->shape[d - (rank - x->rank)];
    OLY_TRY(oly_build_reshape(g, in[0], rank, shape, out));
    for (int k = 0; k < p->rank; k++)
        OLY_TRY(tile_axis(g, *out, rank - p->rank + k, p->shape[k], out));
    return OLY_OK;
}

/* A new dimension after the axis is broadcast and merged with it. Dimensions around the axis are merged first where the
 * rank would be too large. */
oly_status oly_compose_repeat(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_node *x = in[0];
    int64_t times = recipe->params.shape[0], all = oly_type_size(&x->type), shape[OLY_MAX_RANK + 1] = {0},
            final[OLY_MAX_RANK];
    int axis = 0, rank;
    oly_params p;
    if (recipe->all_axes)
        OLY_TRY(oly_build_reshape(g, x, 1, &all, &x));
    else
        OLY_TRY(oly_build_axis(&x->type, recipe->params.dimension, &axis));
    OLY_TRY(check_product(&x->type, axis, x->type.shape[axis], times));
    OLY_TRY(check_not_sharded(&x->type, axis, times, "repeat_sharded"));
    memcpy(final, x->type.shape, sizeof final);
    final[axis] *= times;
    rank = x->type.rank;
    oly_type result = x->type;
    memcpy(result.shape, final, sizeof final);
    *out = x;
    if (times == 1)
        return OLY_OK;
    if (rank == OLY_MAX_RANK) {
        int64_t three[3] = {1, x->type.shape[axis], 1};
        for (int d = 0; d < rank; d++)
            if (d != axis)
                three[d < axis ? 0 : 2] *= x->type.shape[d];
        OLY_TRY(oly_build_reshape(g, x, 3, three, &x));
        axis = 1;
    }
    memset(&p, 0, sizeof p);
    p.rank = x->type.rank + 1;
    p.n_axes = x->type.rank;
    for (int d = 0, e = 0; d < p.n_axes; d++, e++) {
        p.axes[d] = e;
        shape[e] = x->type.shape[d];
        if (d == axis)
            shape[++e] = times;
    }
    memcpy(p.shape, shape, sizeof p.shape);
    OLY_TRY(oly_graph_add(g, OLY_OP_broadcast, 1, &x, &p, out));
    return oly_build_reshape(g, *out, rank, final, out);
}

/* -- dimensions of size 1 --------------------------------------------------------------------------------------------- */

oly_status oly_compose_squeeze(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    const oly_type *x = &in[0]->type;
    unsigned set;
    int rank = 0;
    int64_t shape[OLY_MAX_RANK];
    OLY_TRY(read_set(x, recipe, &set));
    for (int d = 0; d < x->rank; d++) {
        bool named = set >> d & 1;
        if (named && x->shape[d] != 1 && !recipe->all_axes)
            return oly_fail(OLY_SHAPE,
                            "dimension %d of %s has %" PRId64 " elements; only dimensions of size 1 can be dropped", d,
                            oly_type_short(x), x->shape[d]);
        if (!named || x->shape[d] != 1)
            shape[rank++] = x->shape[d];
    }
    return oly_build_reshape(g, in[0], rank, shape, out);
}

oly_status oly_compose_expand_dims(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                   oly_node **out)
{
    (void)n_in;
    const oly_type *x = &in[0]->type;
    oly_type wider = {.dtype = x->dtype, .rank = x->rank + recipe->params.n_axes};
    int64_t shape[OLY_MAX_RANK];
    unsigned set;
    if (wider.rank > OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE, "%s with %d more dimensions; arrays have at most %d", oly_type_short(x),
                        recipe->params.n_axes, OLY_MAX_RANK);
    for (int d = 0; d < wider.rank; d++)
        wider.shape[d] = 1;
    OLY_TRY(read_set(&wider, recipe, &set));
    for (int d = 0, from = 0; d < wider.rank; d++)
        shape[d] = set >> d & 1 ? 1 : x->shape[from++];
    return oly_build_reshape(g, in[0], wider.rank, shape, out);
}

oly_status oly_compose_stack(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    if (n_in < 1)
        return oly_fail(OLY_INVALID, "no arrays given; give one or more");
    oly_node **all = OLY_ARENA_NEW(&g->arena, oly_node *, n_in);
    if (!all)
        return oly_out_of_memory(sizeof *all * (size_t)n_in, "the operands of a stack");
    oly_recipe along;
    memset(&along, 0, sizeof along);
    oly_type wider = in[0]->type;
    wider.rank++;
    if (wider.rank > OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE, "%s with one more dimension; arrays have at most %d", oly_type_short(&in[0]->type),
                        OLY_MAX_RANK);
    OLY_TRY(oly_build_new_axis(&in[0]->type, recipe->params.dimension, &along.params.dimension));
    along.params.n_axes = 1;
    along.params.axes[0] = along.params.dimension;
    for (int k = 0; k < n_in; k++) {
        if (in[k]->type.rank != in[0]->type.rank ||
            memcmp(in[k]->type.shape, in[0]->type.shape, sizeof(int64_t) * (size_t)in[0]->type.rank) != 0)
            return oly_fail(OLY_SHAPE, "%s and %s (operand %d) cannot be stacked; give arrays of one shape",
                            oly_type_short(&in[0]->type), oly_type_short(&in[k]->type), k);
        OLY_TRY(oly_compose_expand_dims(g, 1, &in[k], &along, &all[k]));
    }
    return oly_compose_concatenate(g, n_in, all, &along, out);
}

oly_status oly_compose_broadcast_in_dim(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                        oly_node **out)
{
    (void)n_in;
    const oly_type *x = &in[0]->type;
    const oly_params *given = &recipe->params;
    oly_params p;
    memset(&p, 0, sizeof p);
    if (given->n_axes != x->rank)
        return oly_fail(OLY_SHAPE, "%d dimensions named for %s; name one of the result for each of its %d",
                        given->n_axes, oly_type_short(x), x->rank);
    oly_type wanted = {.dtype = x->dtype, .rank = given->rank};
    memcpy(wanted.shape, given->shape, sizeof wanted.shape);
    OLY_TRY(oly_type_check(&wanted));
    p.rank = given->rank;
    memcpy(p.shape, given->shape, sizeof p.shape);
    p.n_axes = x->rank;
    bool same = x->rank == given->rank;
    for (int d = 0; d < x->rank; d++) {
        int to = given->axes[d];
        if (to < 0 || to >= given->rank || (d > 0 && to <= given->axes[d - 1]))
            return oly_fail(OLY_SHAPE,
                            "dimension %d of %s cannot become dimension %d of %s; dimensions must exist and ascend", d,
                            oly_type_short(x), to, oly_type_short(&wanted));
        if (x->shape[d] != 1 && x->shape[d] != given->shape[to])
            return oly_fail(OLY_SHAPE,
                            "dimension %d of %s does not broadcast to dimension %d of %s; sizes must be equal, or 1", d,
                            oly_type_short(x), to, oly_type_short(&wanted));
        same = same && x->shape[d] == given->shape[to];
        p.axes[d] = to;
    }
    *out = in[0];
    if (same)
        return given->sharding ? oly_build_reshard(g, in[0], given->sharding, out) : OLY_OK;
    p.sharding = given->sharding;
    return oly_graph_add(g, OLY_OP_broadcast, 1, in, &p, out);
}

/* -- differences ------------------------------------------------------------------------------------------------------ */

oly_status oly_compose_diff(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    const oly_type *x = &in[0]->type;
    int64_t order = recipe->params.shape[0];
    int axis;
    if (x->rank == 0 || order < 0)
        return oly_fail(x->rank == 0 ? OLY_SHAPE : OLY_INVALID,
                        "differences of order %" PRId64 " of %s; the order is 0 or more, and the array has dimensions",
                        order, oly_type_short(x));
    OLY_TRY(oly_build_axis(x, recipe->params.dimension, &axis));
    *out = in[0];
    for (int64_t k = 0; k < order && (*out)->type.shape[axis] > 0; k++) {
        int64_t n = (*out)->type.shape[axis];
        oly_node *both[2];
        OLY_TRY(oly_rearrange_part(g, *out, axis, 1, n, &both[0]));
        OLY_TRY(oly_rearrange_part(g, *out, axis, 0, n - 1, &both[1]));
        OLY_TRY(oly_build_apply(g, x->dtype == OLY_BOOL ? OLY_OP_ne : OLY_OP_sub, 2, both, out));
    }
    return OLY_OK;
}

/* -- diagonals and triangles ------------------------------------------------------------------------------------------ */

/* Where column - row >= k (or == k) in the last two dimensions of `shape`: bools. */
static oly_status compare_places(oly_graph *g, int rank, const int64_t *shape, int64_t k, oly_op op, oly_node **out)
{
    oly_params p;
    oly_node *both[2], *offset, *sum[2];
    memset(&p, 0, sizeof p);
    p.rank = rank;
    memcpy(p.shape, shape, sizeof *shape * (size_t)rank);
    p.dtype = shape[rank - 1] < INT32_MAX / 2 && shape[rank - 2] < INT32_MAX / 2 ? OLY_INT32 : OLY_INT64;
    p.dimension = rank - 2;
    OLY_TRY(oly_graph_add(g, OLY_OP_iota, 0, NULL, &p, &both[1]));
    p.dimension = rank - 1;
    OLY_TRY(oly_graph_add(g, OLY_OP_iota, 0, NULL, &p, &both[0]));
    int64_t far = shape[rank - 1] > shape[rank - 2] ? shape[rank - 1] : shape[rank - 2];
    k = k > far ? far : k < -far ? -far : k; /* beyond that nothing changes, and k must not overflow */
    if (k != 0) {
        OLY_TRY(oly_build_number(g, p.dtype, (double)k, &offset));
        OLY_TRY(oly_build_broadcast(g, offset, rank, shape, &sum[1]));
        sum[0] = both[1];
        OLY_TRY(oly_build_apply(g, OLY_OP_add, 2, sum, &both[1]));
    }
    return oly_build_apply(g, op, 2, both, out);
}

static oly_status check_matrix(const oly_type *x)
{
    if (x->rank < 2)
        return oly_fail(OLY_SHAPE, "%s has fewer than two dimensions; rows and columns are the last two",
                        oly_type_short(x));
    return OLY_OK;
}

/* params.shape: rows, columns; start[0]: which diagonal; dtype. */
oly_status oly_compose_eye(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in, (void)in;
    oly_type t = {.dtype = recipe->params.dtype, .rank = 2};
    memcpy(t.shape, recipe->params.shape, sizeof t.shape);
    OLY_TRY(oly_type_check(&t));
    OLY_TRY(compare_places(g, 2, t.shape, recipe->params.start[0], OLY_OP_eq, out));
    return oly_build_convert(g, *out, t.dtype, false, out);
}

oly_status oly_compose_tri(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in, (void)in;
    oly_type t = {.dtype = recipe->params.dtype, .rank = 2};
    memcpy(t.shape, recipe->params.shape, sizeof t.shape);
    OLY_TRY(oly_type_check(&t));
    OLY_TRY(compare_places(g, 2, t.shape, recipe->params.start[0], OLY_OP_le, out));
    return oly_build_convert(g, *out, t.dtype, false, out);
}

/* condition ? x : 0, or with the two exchanged. */
static oly_status keep_where(oly_graph *g, oly_node *condition, oly_node *x, bool keep, oly_node **out)
{
    oly_node *zero, *all[3] = {condition, x, x};
    OLY_TRY(oly_build_number(g, x->type.dtype, 0, &zero));
    OLY_TRY(oly_build_broadcast(g, zero, x->type.rank, x->type.shape, &all[keep ? 2 : 1]));
    return oly_build_apply(g, OLY_OP_select, 3, all, out);
}

oly_status oly_compose_tril(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    const oly_type *x = &in[0]->type;
    oly_node *lower;
    OLY_TRY(check_matrix(x));
    OLY_TRY(compare_places(g, x->rank, x->shape, recipe->params.start[0], OLY_OP_le, &lower));
    return keep_where(g, lower, in[0], true, out);
}

oly_status oly_compose_triu(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    const oly_type *x = &in[0]->type;
    oly_node *upper;
    OLY_TRY(check_matrix(x));
    OLY_TRY(compare_places(g, x->rank, x->shape, recipe->params.start[0], OLY_OP_ge, &upper));
    return keep_where(g, upper, in[0], true, out);
}

/* Moves the recipe's axes to the end. */
static oly_status matrix_last(oly_graph *g, oly_node *x, const oly_recipe *recipe, oly_node **out)
{
    int axis[2], order[OLY_MAX_RANK], n = 0;
    OLY_TRY(check_matrix(&x->type));
    for (int k = 0; k < 2; k++)
        OLY_TRY(oly_build_axis(&x->type, recipe->params.axes[k], &axis[k]));
    if (axis[0] == axis[1])
        return oly_fail(OLY_INVALID, "a diagonal of dimension %d of %s and the same dimension; name two", axis[0],
                        oly_type_short(&x->type));
    for (int d = 0; d < x->type.rank; d++)
        if (d != axis[0] && d != axis[1])
            order[n++] = d;
    order[n] = axis[0];
    order[n + 1] = axis[1];
    return oly_build_transpose(g, x, order, out);
}

/* An empty diagonal over Explicit axes: the other dimensions alone say how it is split. */
static oly_status empty_diagonal(oly_graph *g, const oly_node *x, oly_node **out)
{
    oly_type t = x->type;
    t.rank--;
    t.shape[t.rank - 1] = 0;
    t.axes[t.rank - 1] = (oly_axis_list){0};
    t.unreduced = t.reduced = 0;
    oly_sharding sharding = t.mesh->explicit_axes ? oly_type_sharding(&t) : NULL;
    if (t.mesh->explicit_axes && !sharding)
        return OLY_MEMORY;
    OLY_TRY(oly_build_number(g, t.dtype, 0, out));
    return oly_build_broadcast_to(g, *out, t.rank, t.shape, sharding, out);
}

/* The rows and columns that the diagonal crosses, flattened, where its elements are evenly spaced. */
oly_status oly_compose_diagonal(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    int64_t offset = recipe->params.start[0], shape[OLY_MAX_RANK];
    oly_node *x;
    oly_params p;
    OLY_TRY(matrix_last(g, in[0], recipe, &x));
    int rank = x->type.rank;
    int64_t rows = x->type.shape[rank - 2], columns = x->type.shape[rank - 1];
    int64_t first_row = offset >= 0      ? 0
                        : offset < -rows ? rows
                                         : -offset,
            first_column = offset > 0 ? oly_smaller(offset, columns) : 0;
    if (x->type.mesh && (first_row == rows || first_column == columns))
        return empty_diagonal(g, x, out);
    for (int d = rank - 2; d < rank && x->type.mesh; d++)
        if (x->type.axes[d].n > 0)
            return oly_sharding_fail_types("diagonal", &x->type, NULL, "gather_ambiguous",
                                           "dimension %d, along the diagonal, is split, and the result could not be "
                                           "made without moving data: move it with oly_reshard",
                                           d);
    OLY_TRY(oly_rearrange_part(g, x, rank - 2, first_row, rows, &x));
    OLY_TRY(oly_rearrange_part(g, x, rank - 1, first_column, columns, &x));
    rows -= first_row;
    columns -= first_column;
    memcpy(shape, x->type.shape, sizeof shape);
    shape[rank - 2] = rows * columns;
    OLY_TRY(oly_build_reshape(g, x, rank - 1, shape, &x));
    memset(&p, 0, sizeof p);
    p.rank = rank - 1;
    for (int d = 0; d < p.rank; d++) {
        p.shape[d] = shape[d];
        p.step[d] = 1;
    }
    p.shape[rank - 2] = oly_smaller(rows, columns);
    p.step[rank - 2] = columns + 1;
    *out = x;
    return p.shape[rank - 2] == shape[rank - 2] ? OLY_OK : oly_graph_add(g, OLY_OP_slice, 1, &x, &p, out);
}

/* A matrix of zeros with x as a diagonal. */
oly_status oly_compose_diag(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    const oly_type *x = &in[0]->type;
    int64_t k = recipe->params.start[0];
    if (x->rank == 2) {
        oly_recipe matrix = *recipe;
        matrix.params.axes[0] = 0;
        matrix.params.axes[1] = 1;
        return oly_compose_diagonal(g, n_in, in, &matrix, out);
    }
    if (x->rank != 1)
        return oly_fail(OLY_SHAPE, "%s; a diagonal is made of a vector, or taken of a matrix", oly_type_short(x));
    oly_type t = {.dtype = x->dtype, .rank = 2};
    if (k == INT64_MIN || __builtin_add_overflow(x->shape[0], k < 0 ? -k : k, &t.shape[0]))
        return oly_fail(OLY_OVERFLOW, "diagonal %" PRId64 " of a matrix would exceed 2^63 rows", k);
    t.shape[1] = t.shape[0];
    OLY_TRY(oly_type_check(&t));
    oly_node *both[2] = {in[0], NULL}, *line, *places;
    oly_recipe along;
    memset(&along, 0, sizeof along);
    along.params.rank = 1;
    along.params.start[0] = k < 0 ? -k : 0;
    along.params.shape[0] = k > 0 ? k : 0;
    along.params.step[0] = 1;
    OLY_TRY(oly_build_number(g, x->dtype, 0, &both[1]));
    OLY_TRY(oly_compose_pad(g, 2, both, &along, &line));
    OLY_TRY(oly_build_reshape(g, line, 2, (int64_t[]){t.shape[0], 1}, &line)); /* element i in row i */
    OLY_TRY(oly_build_broadcast(g, line, 2, t.shape, &line));
    OLY_TRY(compare_places(g, 2, t.shape, k, OLY_OP_eq, &places));
    return keep_where(g, places, line, true, out);
}

oly_status oly_compose_trace(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_node *x, *places;
    OLY_TRY(matrix_last(g, in[0], recipe, &x));
    if (x->type.rank == 2) /* for higher ranks the mask is broadcast, and moves */
        OLY_TRY(oly_build_check_masked("trace", &x->type));
    OLY_TRY(compare_places(g, x->type.rank, x->type.shape, recipe->params.start[0], OLY_OP_eq, &places));
    OLY_TRY(keep_where(g, places, x, true, &x));
    oly_recipe sum;
    memset(&sum, 0, sizeof sum);
    sum.op = OLY_OP_reduce_sum;
    sum.params.n_axes = 2;
    sum.params.axes[0] = -2;
    sum.params.axes[1] = -1;
    return oly_compose_reduce(g, 1, &x, &sum, out);
}

/* -- evenly spaced numbers -------------------------------------------------------------------------------------------- */

/* in: start and stop, numbers or arrays of rank 0; params.shape[0]: how many; start[0]: 1 if stop is the last of them.
 * Computed as start * (1 - t) + stop * t, with an exact last element. */
oly_status oly_compose_linspace(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    const oly_params *given = &recipe->params;
    oly_dtype dtype = given->dtype, floating = oly_dtype_inexact(dtype);
    int64_t n = given->shape[0], steps = n - (given->start[0] != 0);
    oly_node *ends[2], *t, *product[2], *pair[2], *count;
    for (int k = 0; k < 2; k++) {
        if (in[k]->type.rank != 0)
            return oly_fail(OLY_SHAPE, "numbers from %s to %s; the ends must be single numbers",
                            oly_type_short(&in[0]->type), oly_type_short(&in[1]->type));
        OLY_TRY(oly_build_convert(g, in[k], floating, false, &ends[k]));
    }
    steps = steps < 1 ? 1 : steps;
    int64_t shown = oly_smaller(n, steps);
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = oly_dtype_real(floating);
    p.rank = 1;
    p.shape[0] = shown;
    OLY_TRY(oly_graph_add(g, OLY_OP_iota, 0, NULL, &p, &pair[0]));
    OLY_TRY(oly_build_number(g, p.dtype, (double)steps, &count));
    OLY_TRY(oly_build_broadcast(g, count, 1, &shown, &pair[1]));
    OLY_TRY(oly_build_apply(g, OLY_OP_div, 2, pair, &t));
    OLY_TRY(oly_build_convert(g, t, floating, false, &t));
    for (int k = 0; k < 2; k++) {
        OLY_TRY(oly_build_broadcast(g, ends[k], 1, &shown, &product[0]));
        product[1] = t;
        if (k == 0) {
            OLY_TRY(oly_build_number(g, floating, 1, &count));
            OLY_TRY(oly_build_broadcast(g, count, 1, &shown, &pair[0]));
            pair[1] = t;
            OLY_TRY(oly_build_apply(g, OLY_OP_sub, 2, pair, &product[1]));
        }
        OLY_TRY(oly_build_apply(g, OLY_OP_mul, 2, product, &ends[k]));
    }
    OLY_TRY(oly_build_apply(g, OLY_OP_add, 2, ends, out));
    if (n > shown) {
        const int64_t one = 1;
        oly_node *parts[2] = {*out, NULL};
        OLY_TRY(oly_build_convert(g, in[1], floating, false, &parts[1]));
        OLY_TRY(oly_build_reshape(g, parts[1], 1, &one, &parts[1]));
        OLY_TRY(join(g, 2, parts, 0, out));
    }
    if (oly_dtype_kind(dtype) == OLY_KIND_INTEGER) /* rounded down, not towards zero */
        OLY_TRY(oly_build_apply(g, OLY_OP_floor, 1, out, out));
    return oly_build_convert(g, *out, dtype, false, out);
}

/* in: the first number and the step; params.shape[0] of them. */
oly_status oly_compose_progression(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                   oly_node **out)
{
    (void)n_in;
    oly_node *both[2] = {NULL, NULL}, *first;
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = recipe->params.dtype;
    p.rank = 1;
    p.shape[0] = recipe->params.shape[0];
    OLY_TRY(oly_graph_add(g, OLY_OP_iota, 0, NULL, &p, &both[0]));
    OLY_TRY(oly_build_convert(g, in[1], p.dtype, false, &both[1]));
    OLY_TRY(oly_build_broadcast(g, both[1], 1, p.shape, &both[1]));
    OLY_TRY(oly_build_apply(g, OLY_OP_mul, 2, both, &both[1]));
    OLY_TRY(oly_build_convert(g, in[0], p.dtype, false, &first));
    OLY_TRY(oly_build_broadcast(g, first, 1, p.shape, &both[0]));
    return oly_build_apply(g, OLY_OP_add, 2, both, out);
}
