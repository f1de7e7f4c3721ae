/* SPDX-License-Identifier: BSD-3-Clause */
/* Einsum as sums, diagonals and products of two, in the order of jax.numpy.einsum, so that types, shardings and
 * rounding are the same. Each product of a pair is one dot_general; pairs are chosen for the fewest operations. With
 * more than two operands, the planner decides where intermediate products are placed, also when an Explicit sharding of
 * the result is requested. */
#include "graph/build.h"
#include "graph/compose/compose_contract.h"
#include "graph/einsum.h"
#include <string.h>

/* An operand or an intermediate product, with the indices of its dimensions. */
typedef struct value {
    oly_node *node;
    int n;
    uint8_t index[OLY_MAX_RANK];
} value;

typedef struct work {
    oly_graph *g;
    const oly_recipe *recipe;
    oly_einsum e;
    oly_dtype dtype;           /* of sums and result */
    bool whole;                /* a single step makes the result: it takes the requested sharding */
    oly_sharding sum_sharding; /* over Explicit axes, one operand: the requested sharding of its sums */
} work;

static uint64_t set_of(int n, const uint8_t *index)
{
    uint64_t set = 0;
    for (int k = 0; k < n; k++)
        set |= 1ull << index[k];
    return set;
}

static bool has(uint64_t set, int index)
{
    return set >> index & 1;
}

static int find(const value *v, int index)
{
    for (int d = 0; d < v->n; d++)
        if (v->index[d] == index)
            return d;
    return -1;
}

static void drop(value *v, const bool *dropped)
{
    int n = 0;
    for (int d = 0; d < v->n; d++)
        if (!dropped[d])
            v->index[n++] = v->index[d];
    v->n = n;
}

/* -- sums of one operand ---------------------------------------------------------------------------------------------------- */

static oly_status sum_dimensions(const work *w, value *v, const bool *summed)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    for (int d = 0; d < v->n; d++)
        if (summed[d])
            p.axes[p.n_axes++] = d;
    if (p.n_axes == 0)
        return OLY_OK;
    oly_type wanted = {.dtype = w->dtype};
    bool weak;
    if (oly_promote(&v->node->type, &wanted, &weak) != v->node->type.dtype)
        OLY_TRY(oly_build_convert(w->g, v->node, w->dtype, false, &v->node));
    oly_op op = v->node->type.dtype == OLY_BOOL ? OLY_OP_reduce_max : OLY_OP_reduce_sum;
    OLY_TRY(oly_graph_add(w->g, op, 1, &v->node, &p, &v->node));
    drop(v, summed);
    return w->sum_sharding ? oly_build_reshard(w->g, v->node, w->sum_sharding, &v->node) : OLY_OK;
}

/* Sums over the indices that only this operand has, and has once. */
static oly_status sum_unique(const work *w, value *v, uint64_t indices, uint64_t others)
{
    bool summed[OLY_MAX_RANK] = {false};
    for (int d = 0; d < v->n; d++) {
        int times = 0;
        for (int k = 0; k < v->n; k++)
            times += v->index[k] == v->index[d];
        summed[d] = times == 1 && has(indices, v->index[d]) && !has(others, v->index[d]);
    }
    return sum_dimensions(w, v, summed);
}

static oly_status index_along(oly_graph *g, const oly_type *x, int d, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = OLY_INT32;
    p.rank = x->rank;
    memcpy(p.shape, x->shape, sizeof p.shape);
    p.dimension = d;
    return oly_graph_add(g, OLY_OP_iota, 0, NULL, &p, out);
}

/* Zero except where the indexes along these dimensions are equal. */
static oly_status keep_diagonal(oly_graph *g, value *v, int n, const int *dims)
{
    oly_node *first, *zero, *choose[3];
    const oly_type *x = &v->node->type;
    OLY_TRY(oly_build_check_masked("einsum", x));
    OLY_TRY(index_along(g, x, dims[0], &first));
    OLY_TRY(oly_build_number(g, x->dtype, 0, &zero));
    OLY_TRY(oly_build_broadcast(g, zero, x->rank, x->shape, &zero));
    for (int k = 1; k < n; k++) {
        oly_node *both[2] = {first, NULL};
        OLY_TRY(index_along(g, x, dims[k], &both[1]));
        OLY_TRY(oly_build_apply(g, OLY_OP_eq, 2, both, &choose[0]));
        choose[1] = v->node;
        choose[2] = zero;
        OLY_TRY(oly_build_apply(g, OLY_OP_select, 3, choose, &v->node));
    }
    return OLY_OK;
}

/* Indices that occur more than once: takes the diagonal, or its sum where the index is not needed any more. */
static oly_status take_diagonals(const work *w, value *v, uint64_t wanted)
{
    for (int d = 0; d < v->n; d++) {
        int dims[OLY_MAX_RANK], n = 0, index = v->index[d];
        bool summed[OLY_MAX_RANK] = {false};
        for (int k = 0; k < v->n; k++)
            if (v->index[k] == index)
                dims[n++] = k;
        if (n < 2)
            continue;
        OLY_TRY(keep_diagonal(w->g, v, n, dims));
        for (int k = 0; k < n - has(wanted, index); k++)
            summed[dims[k]] = true;
        OLY_TRY(sum_dimensions(w, v, summed));
        d = -1; /* dimensions were renumbered */
    }
    return OLY_OK;
}

/* -- products of two --------------------------------------------------------------------------------------------------------- */

/* Drops dimensions of size 1 whose index has another size in the other operand. */
static oly_status squeeze(oly_graph *g, value *v, const value *other)
{
    bool dropped[OLY_MAX_RANK] = {false};
    for (int d = 0; d < v->n; d++) {
        int there = find(other, v->index[d]);
        dropped[d] = v->node->type.shape[d] == 1 && there >= 0 && other->node->type.shape[there] != 1;
    }
    OLY_TRY(oly_build_squeeze(g, v->node, dropped, &v->node));
    drop(v, dropped);
    return OLY_OK;
}

/* The order of dimensions of the product of these two: batch, then the rest of each. */
static void product_order(const value *a, const value *b, const value *batch, uint64_t contracted, value *result)
{
    uint64_t gone = contracted | set_of(batch->n, batch->index);
    *result = *batch;
    for (int o = 0; o < 2; o++) {
        const value *v = o ? b : a;
        for (int d = 0; d < v->n; d++)
            if (!has(gone, v->index[d]) && result->n < OLY_MAX_RANK)
                result->index[result->n++] = v->index[d];
    }
}

static bool same_order(const value *a, const value *b)
{
    return a->n == b->n && memcmp(a->index, b->index, (size_t)a->n) == 0;
}

/* The sharding to request of the product when its transpose, the result, is requested at `s`. */
static oly_status untransposed_sharding(oly_sharding s, const value *order, const value *result, oly_sharding *out)
{
    *out = s;
    if (!s || same_order(order, result))
        return OLY_OK;
    oly_spec spec = s->spec;
    memset(spec.dim, 0, sizeof spec.dim);
    spec.open = 0;
    spec.n_dims = order->n;
    for (int d = 0; d < order->n; d++) {
        int from = find(result, order->index[d]);
        if (from < 0 || from >= s->spec.n_dims)
            continue;
        spec.dim[d] = s->spec.dim[from];
        spec.open |= (s->spec.open >> from & 1) << d;
    }
    *out = oly_sharding_intern(s->mesh, &spec, order->n);
    return *out ? OLY_OK : OLY_MEMORY;
}

static oly_status multiply(const work *w, value *a, value *b, const value *result, uint64_t contracted, value *out)
{
    value batch = {0}, order;
    oly_contraction c = {0};
    for (int d = 0; d < result->n; d++)
        if (find(a, result->index[d]) >= 0 && find(b, result->index[d]) >= 0)
            batch.index[batch.n++] = result->index[d];
    product_order(a, b, &batch, contracted, &order);
    if (!same_order(&order, result)) {
        value *swap = a;
        a = b;
        b = swap;
        product_order(a, b, &batch, contracted, &order);
    }
    for (int d = 0; d < batch.n; d++) {
        c.batch[0][c.n_batch] = (uint8_t)find(a, batch.index[d]);
        c.batch[1][c.n_batch++] = (uint8_t)find(b, batch.index[d]);
    }
    for (int index = 0; index < OLY_EINSUM_INDICES; index++)
        if (has(contracted, index)) {
            c.contract[0][c.n_contract] = (uint8_t)find(a, index);
            c.contract[1][c.n_contract++] = (uint8_t)find(b, index);
        }
    oly_sharding wanted = NULL;
    if (w->whole)
        OLY_TRY(untransposed_sharding(w->recipe->params.sharding, &order, result, &wanted));
    oly_node *both[2] = {a->node, b->node};
    for (int o = 0; o < 2; o++)
        OLY_TRY(oly_build_convert(w->g, both[o], w->dtype, false, &both[o]));
    *out = order;
    return oly_product(w->g, both[0], both[1], &c, wanted, &out->node);
}

static oly_status to_result_order(oly_graph *g, value *v, const value *result)
{
    int axes[OLY_MAX_RANK];
    for (int d = 0; d < result->n; d++)
        axes[d] = find(v, result->index[d]);
    OLY_TRY(oly_build_transpose(g, v->node, axes, &v->node));
    memcpy(v->index, result->index, sizeof v->index);
    return OLY_OK;
}

/* One step: computes a value from one operand (b NULL) or from two. */
static oly_status combine(const work *w, value *a, value *b, const value *result, value *out)
{
    uint64_t wanted = set_of(result->n, result->index);
    uint64_t of_a = set_of(a->n, a->index), of_b = b ? set_of(b->n, b->index) : 0, gone = (of_a | of_b) & ~wanted;
    if (!b) {
        OLY_TRY(sum_unique(w, a, gone, 0));
        OLY_TRY(take_diagonals(w, a, wanted));
        *out = *a;
        return to_result_order(w->g, out, result);
    }
    OLY_TRY(squeeze(w->g, b, a));
    OLY_TRY(squeeze(w->g, a, b));
    of_a = set_of(a->n, a->index), of_b = set_of(b->n, b->index);
    OLY_TRY(sum_unique(w, a, gone, of_b));
    OLY_TRY(sum_unique(w, b, gone, of_a));
    OLY_TRY(take_diagonals(w, a, wanted | of_b));
    OLY_TRY(take_diagonals(w, b, wanted | set_of(a->n, a->index)));
    OLY_TRY(multiply(w, a, b, result, gone & set_of(a->n, a->index) & set_of(b->n, b->index), out));
    return to_result_order(w->g, out, result);
}

/* -- the order of products ---------------------------------------------------------------------------------------------------- */

enum { MOST_SEARCHED = 6 }; /* operands for which every order is tried */

/* The values left, as sets of indices; a product is appended. */
typedef struct state {
    int n;
    uint64_t set[OLY_EINSUM_OPERANDS];
} state;

static uint64_t outside(const state *s, int i, int j, uint64_t result)
{
    for (int k = 0; k < s->n; k++)
        result |= k == i || k == j ? 0 : s->set[k];
    return result;
}

static double elements(const work *w, uint64_t set)
{
    double size = 1;
    for (int index = 0; index < OLY_EINSUM_INDICES; index++)
        if (has(set, index))
            size *= (double)w->e.size[index];
    return size;
}

/* One multiplication per combination of indices, and one addition where some are summed over. */
static double cost(const work *w, const state *s, int i, int j, uint64_t result)
{
    uint64_t all = s->set[i] | s->set[j];
    return elements(w, all) * ((all & ~outside(s, i, j, result)) ? 2 : 1);
}

static state after(const state *s, int i, int j, uint64_t result)
{
    state next = {0};
    for (int k = 0; k < s->n; k++)
        if (k != i && k != j)
            next.set[next.n++] = s->set[k];
    next.set[next.n++] = (s->set[i] | s->set[j]) & outside(s, i, j, result);
    return next;
}

/* The lowest total cost from here; the first pair on that path. */
static double search(const work *w, const state *s, uint64_t result, double limit, int *first, int *second)
{
    double best = -1;
    for (int i = 0; i < s->n; i++)
        for (int j = i + 1; j < s->n; j++) {
            double here = cost(w, s, i, j, result);
            double left = best < 0 || best > limit ? limit : best;
            if (here >= left)
                continue;
            if (s->n > 2) {
                int ignored[2];
                state next = after(s, i, j, result);
                double rest = search(w, &next, result, left - here, &ignored[0], &ignored[1]);
                if (rest < 0)
                    continue;
                here += rest;
            }
            if (here < left) {
                best = here;
                *first = i;
                *second = j;
            }
        }
    return best;
}

/* With too many operands to try all orders: the cheapest next product. */
static void choose_greedily(const work *w, const state *s, uint64_t result, int *first, int *second)
{
    double best = -1;
    for (int i = 0; i < s->n; i++)
        for (int j = i + 1; j < s->n; j++) {
            double here = cost(w, s, i, j, result);
            if (best < 0 || here < best) {
                best = here;
                *first = i;
                *second = j;
            }
        }
}

static void choose(const work *w, int n, const value *values, const value *result, int *first, int *second)
{
    state s = {.n = n};
    uint64_t wanted = set_of(result->n, result->index);
    for (int k = 0; k < n; k++)
        s.set[k] = set_of(values[k].n, values[k].index);
    *first = 0;
    *second = 1;
    if (n == 2)
        return;
    if (n > MOST_SEARCHED || search(w, &s, wanted, 1e300, first, second) < 0)
        choose_greedily(w, &s, wanted, first, second);
}

/* The indices of a product that other operands or the result still need, in order of occurrence. */
static oly_status product_indices(int n, const value *values, int i, int j, const value *result, value *of)
{
    uint64_t needed = set_of(result->n, result->index), seen = 0;
    if (n == 2) {
        *of = *result;
        return OLY_OK;
    }
    for (int k = 0; k < n; k++)
        needed |= k == i || k == j ? 0 : set_of(values[k].n, values[k].index);
    *of = (value){0};
    for (int o = 0; o < 2; o++) {
        const value *v = &values[o ? i : j];
        for (int d = 0; d < v->n; d++) {
            if (!has(needed, v->index[d]) || has(seen, v->index[d]))
                continue;
            if (of->n == OLY_MAX_RANK)
                return oly_fail(OLY_SHAPE,
                                "a product inside this einsum would have more than %d dimensions; write it "
                                "as several",
                                OLY_MAX_RANK);
            seen |= 1ull << v->index[d];
            of->index[of->n++] = v->index[d];
        }
    }
    return OLY_OK;
}

oly_status oly_compose_einsum(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    const oly_type *type[OLY_EINSUM_OPERANDS];
    value values[OLY_EINSUM_OPERANDS] = {{0}}, result = {0};
    work w = {.g = g, .recipe = recipe, .whole = n_in <= 2};
    oly_sharding wanted = recipe->params.sharding;
    bool typed = wanted && wanted->mesh->explicit_axes;
    oly_type meet = in[0]->type;
    w.sum_sharding = typed && n_in == 1 ? wanted : NULL;
    for (int k = 0; k < n_in; k++) {
        oly_dtype before = meet.dtype;
        type[k] = &in[k]->type;
        meet.dtype = oly_promote(&meet, type[k], &meet.weak);
        if (meet.dtype == OLY_N_DTYPES)
            return oly_dtypes_do_not_meet(before, type[k]->dtype);
    }
    OLY_TRY(oly_einsum_read(recipe->notation, n_in, type, &w.e));
    w.dtype = recipe->dtype_given ? recipe->params.dtype : meet.dtype;
    if (n_in > 1)
        OLY_TRY(oly_product_check_type(meet.dtype, w.dtype));
    for (int k = 0; k < n_in; k++) {
        values[k] = (value){.node = in[k], .n = w.e.operand[k].n};
        if (typed && n_in > 2)
            OLY_TRY(oly_build_auto_axes(g, in[k], &values[k].node));
        memcpy(values[k].index, w.e.operand[k].index, sizeof values[k].index);
    }
    result.n = w.e.result.n;
    memcpy(result.index, w.e.result.index, sizeof result.index);
    if (n_in == 1)
        OLY_TRY(combine(&w, &values[0], NULL, &result, &values[0]));
    for (int n = n_in; n > 1; n--) {
        int i, j;
        value of, product;
        choose(&w, n, values, &result, &i, &j);
        OLY_TRY(product_indices(n, values, i, j, &result, &of));
        OLY_TRY(combine(&w, &values[i], &values[j], &of, &product));
        memmove(&values[j], &values[j + 1], sizeof *values * (size_t)(n - j - 1));
        memmove(&values[i], &values[i + 1], sizeof *values * (size_t)(n - i - 1));
        values[n - 2] = product;
    }
    oly_node *last = values[0].node;
    OLY_TRY(oly_build_convert(g, last, w.dtype, !recipe->dtype_given && meet.weak, &last));
    if (typed && n_in > 2)
        return oly_build_explicit_axes(g, last, wanted, out);
    return oly_product_place(g, last, recipe, out);
}
