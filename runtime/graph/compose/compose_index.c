/* SPDX-License-Identifier: BSD-3-Clause */
/* Compositions that read and write by value: take, x.at[...], dynamic slices, segment sums. They wrap negative indexes,
 * which count from the end, and give results the shapes of JAX's functions; what an index outside the array does is the
 * mode of the gather or scatter. */
#include "graph/compose/compose.h"
#include "graph/numbers.h"
#include "graph/build.h"
#include "core/optimisation.h"
#include "graph/sharding_rule/sharding_rule.h"
#include <inttypes.h>
#include <string.h>

/* -- indexes --------------------------------------------------------------------------------------------------------- */

static bool is_unsigned(oly_dtype d)
{
    return !oly_dtype_is_signed(d);
}

static oly_status check_integer(const oly_node *index)
{
    if (oly_dtype_kind(index->type.dtype) != OLY_KIND_INTEGER)
        return oly_fail(OLY_DTYPE, "the indexes are %s; indexes are integers (of a mask, use oly_where)",
                        oly_type_short(&index->type));
    return OLY_OK;
}

/* The type in which indexes into dimensions of x are computed: int32 unless they, or the dimensions, are wider. */
static oly_dtype index_dtype(const oly_type *x, int n, oly_node *const *index)
{
    bool wide = false;
    for (int d = 0; d < x->rank; d++)
        wide = wide || x->shape[d] > INT32_MAX;
    for (int k = 0; k < n; k++) {
        oly_dtype d = index[k]->type.dtype;
        wide = wide || oly_dtype_size(d) > 4 || d == OLY_UINT32;
    }
    return wide ? OLY_INT64 : OLY_INT32;
}

/* Negative ones become index + size. */
static oly_status wrap_negative(oly_graph *g, oly_node *index, int64_t size, oly_node **out)
{
    oly_node *zero, *n, *below, *sum;
    oly_dtype d = index->type.dtype;
    OLY_TRY(oly_build_number(g, d, 0, &zero));
    OLY_TRY(oly_build_number(g, d, (double)size, &n));
    oly_node *compared[2] = {index, zero}, *added[2] = {index, n};
    OLY_TRY(oly_build_common_shape(g, 2, compared));
    OLY_TRY(oly_build_common_shape(g, 2, added));
    OLY_TRY(oly_build_apply(g, OLY_OP_lt, 2, compared, &below));
    OLY_TRY(oly_build_apply(g, OLY_OP_add, 2, added, &sum));
    return oly_build_apply(g, OLY_OP_select, 3, (oly_node *[]){below, sum, index}, out);
}

/* Are its elements positions counted from the beginning, and so never negative? */
static bool gives_places(const oly_node *x)
{
    return x->op == OLY_OP_argsort || x->op == OLY_OP_top_k || x->op == OLY_OP_searchsorted;
}

/* n indexes into the dimensions of x from `first` on: converted to one integer type, negative ones wrapped, broadcast
 * to one shape. */
static oly_status read_indexes(oly_graph *g, const oly_type *x, int first, int n, oly_node *const *in, bool wrap,
                               oly_node **index)
{
    for (int k = 0; k < n; k++)
        OLY_TRY(check_integer(in[k]));
    oly_dtype dtype = index_dtype(x, n, in);
    for (int k = 0; k < n; k++) {
        bool may_be_negative = !is_unsigned(in[k]->type.dtype) && !gives_places(in[k]);
        OLY_TRY(oly_build_convert(g, in[k], dtype, false, &index[k]));
        if (wrap && may_be_negative)
            OLY_TRY(wrap_negative(g, index[k], x->shape[first + k], &index[k]));
    }
    return oly_build_common_shape(g, n, index);
}

/* -- gather ---------------------------------------------------------------------------------------------------------- */

static void index_params(oly_params *p, const oly_recipe *recipe, int n_batch, int first, int n)
{
    memset(p, 0, sizeof *p);
    p->index_mode = recipe->params.index_mode;
    p->sharding = recipe->params.sharding;
    p->n_batch = n_batch;
    p->n_axes = n;
    for (int k = 0; k < n; k++)
        p->axes[k] = first + k;
}

static oly_status gather(oly_graph *g, oly_node *x, int n, oly_node *const *index, const oly_params *p, oly_node **out)
{
    oly_node *in[OLY_MAX_RANK + 1] = {x};
    for (int k = 0; k < n; k++)
        in[1 + k] = index[k];
    oly_params q = *p;
    bool constrains = p->sharding && !p->sharding->mesh->explicit_axes;
    q.sharding = constrains ? NULL : p->sharding;
    OLY_TRY(oly_graph_add(g, OLY_OP_gather, 1 + n, in, &q, out));
    return constrains ? oly_build_reshard(g, *out, p->sharding, out) : OLY_OK;
}

/* The sharding of the indexed part over Explicit axes: as the indexes, then as the rest of the array. NULL: none. */
static oly_status slice_sharding(const oly_node *x, int n, const oly_node *index, int rank, oly_sharding *slice)
{
    oly_type t = {.rank = rank, .mesh = x->type.mesh ? x->type.mesh : index->type.mesh};
    *slice = NULL;
    if (!t.mesh || !t.mesh->explicit_axes)
        return OLY_OK;
    memcpy(t.axes, index->type.axes, sizeof *t.axes * (size_t)index->type.rank);
    unsigned used = 0;
    for (int d = n; d < x->type.rank; d++)
        t.axes[index->type.rank + d - n] = x->type.axes[d];
    for (int d = 0; d < rank; d++)
        for (int k = 0; k < t.axes[d].n; k++) {
            if (used >> t.axes[d].axis[k] & 1)
                return oly_sharding_fail_types("indexing", &x->type, &index->type, "duplicate_axis",
                                               "the indexed part would be split along axis '%s' twice; move one "
                                               "with oly_reshard, or say how the result is to be sharded "
                                               "(.out_sharding)",
                                               t.mesh->name[t.axes[d].axis[k]]);
            used |= 1u << t.axes[d].axis[k];
        }
    *slice = oly_type_sharding(&t);
    return *slice ? OLY_OK : OLY_MEMORY;
}

/* Does indexing n leading dimensions leave no elements? */
static bool is_empty_part(const oly_node *x, int n, const oly_node *index)
{
    bool empty = oly_type_size(&index->type) == 0;
    for (int d = n; d < x->type.rank; d++)
        empty = empty || x->type.shape[d] == 0;
    return empty;
}

static oly_status flattened(oly_graph *g, oly_node *x, oly_node **out)
{
    int64_t n = oly_type_size(&x->type);
    return oly_build_reshape(g, x, 1, &n, out);
}

static oly_status check_not_empty(const oly_type *x, int axis, const oly_type *index)
{
    if (x->shape[axis] == 0 && oly_type_size(index) > 0)
        return oly_fail(OLY_INVALID, "dimension %d of %s has no elements to take; %s indexes are too many", axis,
                        oly_type_short(x), oly_type_short(index));
    return OLY_OK;
}

/* No indexes: as in JAX, the result is a new array that is not split. */
static oly_status take_nothing(const oly_node *x, const oly_node *index, oly_params *p)
{
    oly_type t = {.rank = x->type.rank - 1 + index->type.rank, .mesh = x->type.mesh ? x->type.mesh : index->type.mesh};
    if (p->sharding || oly_type_size(&index->type) > 0 || !t.mesh || !t.mesh->explicit_axes)
        return OLY_OK;
    p->sharding = oly_type_sharding(&t);
    return p->sharding ? OLY_OK : OLY_MEMORY;
}

/* Indexes into a dimension from which on each row of the dimensions before it is a batch that is looked up by itself, in the
 * order of the result. For fewer, columns are taken one by one and the result is transposed. */
enum { MANY_INDEXES = 16 };

static bool looks_up_batches(const oly_type *x, int axis, const oly_type *index)
{
    bool is_explicit = (x->mesh && x->mesh->explicit_axes) || (index->mesh && index->mesh->explicit_axes);
    return axis > 0 && oly_type_size(index) >= MANY_INDEXES && x->rank - 1 + index->rank <= OLY_MAX_RANK &&
           !is_explicit;
}

/* Element [i, j..., k] of the result is x[i, index[j...], k], where i are the dimensions before the axis. */
static oly_status take_batches(oly_graph *g, oly_node *x, int axis, oly_node *index, const oly_recipe *recipe,
                               oly_node **out)
{
    int64_t shape[OLY_MAX_RANK];
    oly_params p;
    int rank = axis + index->type.rank;
    memcpy(shape, x->type.shape, sizeof *shape * (size_t)axis);
    memcpy(shape + axis, index->type.shape, sizeof *shape * (size_t)index->type.rank);
    OLY_TRY(oly_build_broadcast(g, index, rank, shape, &index));
    index_params(&p, recipe, axis, axis, 1);
    return gather(g, x, 1, &index, &p, out);
}

oly_status oly_compose_take(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_node *x = in[0], *index;
    oly_params p;
    int axis = 0, order[OLY_MAX_RANK], to = 0;
    bool clips = recipe->params.index_mode == OLY_INDEX_CLIP || recipe->params.index_mode == OLY_INDEX_WRAP;
    if (recipe->all_axes)
        OLY_TRY(flattened(g, x, &x));
    else
        OLY_TRY(oly_build_axis(&x->type, recipe->params.dimension, &axis));
    OLY_TRY(check_not_empty(&x->type, axis, &in[1]->type));
    OLY_TRY(read_indexes(g, &x->type, axis, 1, in + 1, !clips, &index));
    if (looks_up_batches(&x->type, axis, &index->type))
        return take_batches(g, x, axis, index, recipe, out);
    index_params(&p, recipe, 0, axis, 1);
    OLY_TRY(take_nothing(x, index, &p));
    OLY_TRY(gather(g, x, 1, &index, &p, out));
    int rank = (*out)->type.rank, n_index = index->type.rank; /* the indexes' dimensions replace the axis */
    for (int d = 0; d < axis; d++)
        order[to++] = n_index + d;
    for (int d = 0; d < n_index; d++)
        order[to++] = d;
    for (int d = n_index + axis; d < rank; d++)
        order[to++] = d;
    return oly_build_transpose(g, *out, order, out);
}

/* Broadcasts both operands to the same extents in all dimensions but `axis`. */
static oly_status meet_but(oly_graph *g, oly_node **x, oly_node **index, int axis)
{
    int64_t of_x[OLY_MAX_RANK], of_index[OLY_MAX_RANK];
    int rank = (*x)->type.rank;
    for (int d = 0; d < rank; d++) {
        int64_t a = (*x)->type.shape[d], b = (*index)->type.shape[d];
        if (d != axis && a != b && a != 1 && b != 1)
            return oly_fail(OLY_SHAPE, "%s and indexes %s differ along dimension %d; sizes must be equal or 1",
                            oly_type_short(&(*x)->type), oly_type_short(&(*index)->type), d);
        of_x[d] = d == axis ? a : a == 1 ? b : a;
        of_index[d] = d == axis ? b : of_x[d];
    }
    OLY_TRY(oly_build_broadcast(g, *x, rank, of_x, x));
    return oly_build_broadcast(g, *index, rank, of_index, index);
}

static oly_status take_along(oly_graph *g, oly_node *x, oly_node *index, const oly_recipe *recipe, bool wrap,
                             oly_node **out)
{
    oly_params p;
    int axis = 0, order[OLY_MAX_RANK], back[OLY_MAX_RANK];
    if (recipe->all_axes)
        OLY_TRY(flattened(g, x, &x));
    else
        OLY_TRY(oly_build_axis(&x->type, recipe->params.dimension, &axis));
    int rank = x->type.rank;
    if (index->type.rank != rank)
        return oly_fail(OLY_SHAPE, "%s and indexes %s must have as many dimensions; insert some with oly_reshape",
                        oly_type_short(&x->type), oly_type_short(&index->type));
    OLY_TRY(check_not_empty(&x->type, axis, &index->type));
    OLY_TRY(read_indexes(g, &x->type, axis, 1, &index, wrap, &index));
    OLY_TRY(meet_but(g, &x, &index, axis));
    for (int d = 0, to = 0; d < rank; d++) { /* the axis last: the others are batch dimensions */
        int place = d == axis ? rank - 1 : to++;
        order[place] = d;
        back[d] = place;
    }
    OLY_TRY(oly_build_transpose(g, x, order, &x));
    OLY_TRY(oly_build_transpose(g, index, order, &index));
    index_params(&p, recipe, rank - 1, rank - 1, 1);
    OLY_TRY(gather(g, x, 1, &index, &p, out));
    return oly_build_transpose(g, *out, back, out);
}

oly_status oly_compose_take_along(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    return take_along(g, in[0], in[1], recipe, recipe->params.index_mode != OLY_INDEX_PROMISE, out);
}

oly_status oly_compose_apply_along(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                   oly_node **out)
{
    (void)n_in;
    return take_along(g, in[0], in[1], recipe, false, out);
}

static oly_status check_index_count(const oly_type *x, int n)
{
    if (n < 1 || n > x->rank)
        return oly_fail(OLY_SHAPE, "%d indexes given for %s; give 1 to %d, for its leading dimensions", n,
                        oly_type_short(x), x->rank);
    return OLY_OK;
}

/* Over Explicit axes: is no leading dimension split, so that a slice of them keeps all other axes? */
static bool keeps_axes(const oly_type *x, int n)
{
    bool whole = x->mesh && x->mesh->explicit_axes;
    for (int d = 0; d < n && whole; d++)
        whole = x->axes[d].n == 0;
    return whole;
}

oly_status oly_compose_at_get(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    oly_params p;
    oly_node *index[OLY_MAX_RANK];
    OLY_TRY(check_index_count(&in[0]->type, n_in - 1));
    OLY_TRY(read_indexes(g, &in[0]->type, 0, n_in - 1, in + 1, true, index));
    for (int d = 0; d < n_in - 1; d++)
        OLY_TRY(check_not_empty(&in[0]->type, d, &index[0]->type));
    index_params(&p, recipe, 0, 0, n_in - 1);
    if (index[0]->type.rank == 0 && p.index_mode == OLY_INDEX_PROMISE)
        p.index_mode = OLY_INDEX_CLIP; /* a dynamic slice */
    bool one_slice = index[0]->type.rank == 0 && p.index_mode == OLY_INDEX_CLIP;
    if (one_slice && keeps_axes(&in[0]->type, n_in - 1))
        p.sharding = NULL; /* slices take no output sharding */
    oly_sharding slice;
    if (!p.sharding) {
        OLY_TRY(slice_sharding(in[0], n_in - 1, index[0], index[0]->type.rank + in[0]->type.rank - n_in + 1, &slice));
        if (one_slice)
            p.sharding = slice; /* the rest of the array keeps its sharding */
        if (is_empty_part(in[0], n_in - 1, index[0]))
            p.sharding = slice; /* nothing is looked up: nothing is ambiguous */
    }
    return gather(g, in[0], n_in - 1, index, &p, out);
}

/* -- scatter --------------------------------------------------------------------------------------------------------- */

static oly_status scatter(oly_graph *g, oly_op op, oly_node *x, int n, oly_node *const *index, oly_node *updates,
                          const oly_params *p, oly_node **out)
{
    oly_node *in[OLY_MAX_RANK + 2] = {x};
    int64_t shape[2 * OLY_MAX_RANK];
    int rank = index[0]->type.rank;
    memcpy(shape, index[0]->type.shape, sizeof(int64_t) * (size_t)rank);
    for (int d = n; d < x->type.rank; d++)
        shape[rank++] = x->type.shape[d];
    oly_sharding slice = NULL;
    if (!p->sharding)
        OLY_TRY(slice_sharding(x, n, index[0], rank, &slice));
    if (slice && is_empty_part(x, n, index[0])) { /* however the updates are split */
        *out = x;
        return oly_build_broadcast(g, updates, rank, shape, &updates);
    }
    if (slice && updates->type.mesh)
        OLY_TRY(oly_build_broadcast_to(g, updates, rank, shape, slice, &updates));
    else
        OLY_TRY(oly_build_broadcast(g, updates, rank, shape, &updates));
    for (int k = 0; k < n; k++)
        in[1 + k] = index[k];
    in[1 + n] = updates;
    oly_params q = *p;
    bool constrains = p->sharding && !p->sharding->mesh->explicit_axes;
    q.sharding = constrains ? NULL : p->sharding;
    OLY_TRY(oly_graph_add(g, op, 2 + n, in, &q, out));
    return constrains ? oly_build_reshard(g, *out, p->sharding, out) : OLY_OK;
}

/* The operand of a set is converted; with other operations it is combined in a promoted type, and the result converted
 * back. */
oly_status oly_compose_at_update(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    int n = n_in - 2;
    const oly_type *x = &in[0]->type;
    oly_params p;
    oly_node *index[OLY_MAX_RANK], *both[2] = {in[0], in[n_in - 1]};
    OLY_TRY(check_index_count(x, n));
    OLY_TRY(read_indexes(g, x, 0, n, in + 1, true, index));
    if (recipe->op == OLY_OP_scatter)
        OLY_TRY(oly_build_convert_written(g, x, &both[1]));
    else
        OLY_TRY(oly_build_promoted(g, 2, both));
    index_params(&p, recipe, 0, 0, n);
    OLY_TRY(scatter(g, recipe->op, both[0], n, index, both[1], &p, out));
    return oly_build_convert(g, *out, x->dtype, x->weak, out);
}

oly_status oly_compose_segment_sum(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                   oly_node **out)
{
    (void)n_in;
    const oly_type *data = &in[0]->type, *ids = &in[1]->type;
    int64_t shape[OLY_MAX_RANK] = {recipe->params.count};
    int rank = 1;
    oly_params p;
    oly_node *zeros, *index;
    bool fits = ids->rank <= data->rank && data->rank - ids->rank < OLY_MAX_RANK;
    for (int d = 0; fits && d < ids->rank; d++)
        fits = ids->shape[d] == data->shape[d];
    if (!fits || recipe->params.count < 0)
        return oly_fail(OLY_SHAPE,
                        "%s cannot be summed into %" PRId64 " segments by %s; the segment numbers have the shape of "
                        "the data or of its leading dimensions",
                        oly_type_short(data), recipe->params.count, oly_type_short(ids));
    for (int d = ids->rank; d < data->rank; d++)
        shape[rank++] = data->shape[d];
    OLY_TRY(oly_build_number(g, data->dtype, 0, &zeros));
    OLY_TRY(oly_build_broadcast(g, zeros, rank, shape, &zeros));
    OLY_TRY(read_indexes(g, &zeros->type, 0, 1, in + 1, false, &index));
    index_params(&p, recipe, 0, 0, 1);
    return scatter(g, OLY_OP_scatter_add, zeros, 1, &index, in[0], &p, out);
}

/* What x is a reshape of: elements are counted in any order, and a reshape might gather them. */
static oly_node *before_reshapes(oly_node *x)
{
    while (oly_enabled(OLY_OPTIMISATION_RAVELLED_REDUCTIONS) && x->op == OLY_OP_reshape && !x->type.mesh &&
           !x->in[0]->type.mesh && x->in[0]->type.rank > 0)
        x = x->in[0];
    return x;
}

oly_status oly_compose_bincount(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_node *zeros, *one, *index, *low[2];
    oly_params p;
    if (in[0]->type.rank != 1 || recipe->params.count < 0)
        return oly_fail(OLY_SHAPE, "%s cannot be counted in %" PRId64 " bins; give one dimension, and 0 bins or more",
                        oly_type_short(&in[0]->type), recipe->params.count);
    OLY_TRY(oly_build_number(g, recipe->params.dtype, 0, &zeros));
    OLY_TRY(oly_build_broadcast(g, zeros, 1, &recipe->params.count, &zeros));
    OLY_TRY(oly_build_number(g, recipe->params.dtype, 1, &one));
    oly_node *values = before_reshapes(in[0]);
    OLY_TRY(read_indexes(g, &zeros->type, 0, 1, &values, false, &index));
    low[0] = index;
    OLY_TRY(oly_build_number(g, index->type.dtype, 0, &low[1]));
    OLY_TRY(oly_build_common_shape(g, 2, low));
    if (!is_unsigned(values->type.dtype) || oly_dtype_size(values->type.dtype) == 8)
        OLY_TRY(oly_build_apply(g, OLY_OP_max, 2, low, &index)); /* negative numbers count as 0 */
    index_params(&p, recipe, 0, 0, 1);
    return scatter(g, OLY_OP_scatter_add, zeros, 1, &index, one, &p, out);
}

/* -- slices at computed positions -------------------------------------------------------------------------- */

static oly_status read_starts(oly_graph *g, const oly_type *x, int n, oly_node *const *in, oly_node **start)
{
    if (n != x->rank)
        return oly_fail(OLY_SHAPE, "%d starts given for %s; give one for each dimension", n, oly_type_short(x));
    for (int k = 0; k < n; k++)
        if (in[k]->type.rank != 0)
            return oly_fail(OLY_SHAPE, "start %d is %s; starts have no dimensions", k, oly_type_short(&in[k]->type));
    return n == 0 ? OLY_OK : read_indexes(g, x, 0, n, in, true, start);
}

/* Starts known at planning time make it an ordinary slice: true, with start clamped into the array. */
static bool known_part(oly_graph *g, const oly_type *x, int n, oly_node *const *in, const int64_t *extent,
                       oly_params *part)
{
    memset(part, 0, sizeof *part);
    part->rank = x->rank;
    for (int k = 0; k < n; k++)
        if (!oly_is_constant(in[k]))
            return false;
    for (int k = 0; k < n; k++) {
        oly_number_fix(g, in[k]);
        int64_t at = in[k]->params.value.i, most = x->shape[k] - extent[k];
        at = at < 0 && !is_unsigned(in[k]->type.dtype) ? at + x->shape[k] : at;
        part->start[k] = at < 0 ? 0 : at > most ? most : at;
        part->shape[k] = extent[k];
        part->step[k] = 1;
    }
    return true;
}

static oly_status check_part(const oly_type *x, int rank, const int64_t *extent)
{
    bool fits = rank == x->rank;
    for (int d = 0; fits && d < rank; d++)
        fits = extent[d] >= 0 && extent[d] <= x->shape[d];
    if (fits)
        return OLY_OK;
    oly_type part = *x;
    part.rank = rank;
    oly_type_clear_sharding(&part);
    memcpy(part.shape, extent, sizeof *extent * (size_t)rank);
    return oly_fail(OLY_SHAPE, "%s is not a part of %s; sizes are 0 to those of the array", oly_type_short(&part),
                    oly_type_short(x));
}

oly_status oly_compose_dynamic_slice(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                     oly_node **out)
{
    const oly_type *x = &in[0]->type;
    oly_params p;
    oly_node *all[1 + OLY_MAX_RANK] = {in[0]};
    OLY_TRY(check_part(x, recipe->params.rank, recipe->params.shape));
    OLY_TRY(read_starts(g, x, n_in - 1, in + 1, all + 1));
    *out = in[0];
    if (memcmp(x->shape, recipe->params.shape, sizeof(int64_t) * (size_t)x->rank) == 0)
        return OLY_OK; /* all of it */
    if (known_part(g, x, n_in - 1, in + 1, recipe->params.shape, &p))
        return oly_graph_add(g, OLY_OP_slice, 1, in, &p, out);
    memset(&p, 0, sizeof p);
    p.rank = recipe->params.rank;
    memcpy(p.shape, recipe->params.shape, sizeof p.shape);
    return oly_graph_add(g, OLY_OP_dynamic_slice, n_in, all, &p, out);
}

oly_status oly_compose_dynamic_update_slice(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                            oly_node **out)
{
    (void)recipe;
    const oly_type *x = &in[0]->type;
    oly_params p;
    oly_node *all[2 + OLY_MAX_RANK] = {in[0], in[1]};
    OLY_TRY(check_part(x, in[1]->type.rank, in[1]->type.shape));
    OLY_TRY(read_starts(g, x, n_in - 2, in + 2, all + 2));
    OLY_TRY(oly_build_convert_written(g, x, &all[1]));
    *out = oly_type_size(&in[1]->type) == 0 ? in[0] : all[1];
    bool all_or_none = memcmp(x->shape, in[1]->type.shape, sizeof(int64_t) * (size_t)x->rank) == 0;
    if ((all_or_none && !x->mesh) || oly_type_size(&in[1]->type) == 0)
        return OLY_OK;
    bool exact = !x->mesh || !all[1]->type.mesh ||
                 oly_type_same_sharding(x, &all[1]->type); /* otherwise the rule has to refuse it */
    if (exact && known_part(g, x, n_in - 2, in + 2, in[1]->type.shape, &p))
        return oly_graph_add(g, OLY_OP_update, 2, all, &p, out);
    return oly_graph_add(g, OLY_OP_dynamic_update_slice, n_in, all, NULL, out);
}
