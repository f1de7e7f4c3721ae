/* SPDX-License-Identifier: BSD-3-Clause */
/* Gradient rules of operations that read and write by index, and along one dimension. Elements that were read several times get the
 * sum of the cotangents; dropped or filled-in ones get none. */
#include "transform/rule.h"
#include <string.h>

#define G oly_rule_cotangent(r)

/* -- by value -------------------------------------------------------------------------------------------------------- */

/* A gather or scatter by the indexes of the node: of x, with the updates or without. */
static oly_node *by_indexes(oly_rule *r, oly_op op, oly_node *x, oly_node *updates)
{
    int n = r->node->params.n_axes;
    oly_node *in[OLY_MAX_RANK + 2] = {x};
    oly_params p;
    memset(&p, 0, sizeof p);
    p.n_axes = n;
    p.n_batch = r->node->params.n_batch;
    p.index_mode = r->node->params.index_mode;
    memcpy(p.axes, r->node->params.axes, sizeof p.axes);
    for (int k = 0; k < n; k++)
        in[1 + k] = r->node->in[1 + k];
    in[1 + n] = updates;
    /* a result where the program has it: that of a gather is what a scatter's updates are */
    const oly_node *like = op == OLY_OP_gather ? r->node->in[r->node->n_in - 1] : x;
    if (like && op != OLY_OP_scatter_mul)
        p.sharding = oly_rule_sharding(r, like);
    return oly_rule_add(r, op, 1 + n + (updates != NULL), in, &p);
}

/* Whether the indexes are inside the array: bools of the shape of `like`, whose leading dimensions are those of the indexes. */
static oly_node *inside(oly_rule *r, const oly_node *like)
{
    oly_node *all = NULL;
    const oly_params *p = &r->node->params;
    for (int k = 0; k < p->n_axes; k++) {
        oly_node *index = r->node->in[1 + k];
        double size = (double)r->node->in[0]->type.shape[p->axes[k]];
        oly_node *low = oly_rule_binary(r, OLY_OP_ge, index, oly_rule_number(r, index, 0));
        oly_node *high = oly_rule_binary(r, OLY_OP_lt, index, oly_rule_number(r, index, size));
        low = oly_rule_binary(r, OLY_OP_mul, low, high); /* of bools: and */
        all = k == 0 ? low : oly_rule_binary(r, OLY_OP_mul, all, low);
    }
    oly_params to;
    memset(&to, 0, sizeof to);
    to.rank = like->type.rank;
    memcpy(to.shape, like->type.shape, sizeof to.shape);
    to.n_axes = all ? all->type.rank : 0;
    for (int d = 0; d < to.n_axes; d++)
        to.axes[d] = d;
    return all && all->type.rank == to.rank ? all : oly_rule_add(r, OLY_OP_broadcast, 1, &all, &to);
}

/* x at the node's indexes; zeros for indexes outside that are dropped. */
static oly_node *read_back(oly_rule *r, oly_node *x)
{
    oly_node *read = by_indexes(r, OLY_OP_gather, x, NULL);
    if (!read || r->node->params.index_mode != OLY_INDEX_FILL)
        return read;
    return oly_rule_select(r, inside(r, read), read, oly_rule_number(r, read, 0));
}

void oly_vjp_gather(oly_rule *r)
{
    if (r->wanted[0])
        r->operands[0] = by_indexes(r, OLY_OP_scatter_add, oly_rule_zeros(r, r->node->in[0]), G);
}

static int updates_of(const oly_rule *r)
{
    return r->node->n_in - 1;
}

void oly_vjp_scatter_add(oly_rule *r)
{
    if (r->wanted[0])
        r->operands[0] = G;
    if (r->wanted[updates_of(r)])
        r->operands[updates_of(r)] = read_back(r, G);
}

/* Of several updates to one element the last remains: writes and reads back the number of each update to find it. */
void oly_vjp_scatter(oly_rule *r)
{
    oly_node *updates = r->node->in[updates_of(r)];
    if (r->wanted[0])
        r->operands[0] = by_indexes(r, OLY_OP_scatter, G, oly_rule_number(r, updates, 0));
    if (!r->wanted[updates_of(r)])
        return;
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = oly_type_size(&updates->type) > INT32_MAX ? OLY_INT64 : OLY_INT32;
    p.rank = 1;
    p.shape[0] = oly_type_size(&updates->type);
    oly_node *line = oly_rule_add(r, OLY_OP_iota, 0, NULL, &p);
    oly_node *number = oly_rule_reshape(r, line, updates->type.rank, updates->type.shape);
    oly_node *none = oly_rule_convert(r, oly_rule_number(r, r->node->in[0], 0), p.dtype);
    oly_node *last = by_indexes(r, OLY_OP_gather, by_indexes(r, OLY_OP_scatter, none, number), NULL);
    oly_node *mine = oly_rule_binary(r, OLY_OP_eq, number, last), *read = read_back(r, G);
    r->operands[updates_of(r)] = oly_rule_select(r, mine, read, read ? oly_rule_number(r, read, 0) : NULL);
}

/* As in JAX, updates have derivatives only if no element is written twice, which is not known here. */
void oly_vjp_scatter_mul(oly_rule *r)
{
    if (r->wanted[updates_of(r)]) {
        r->status = oly_fail(OLY_INVALID, "a scatter that multiplies has no derivative by its factors, since an index "
                                          "may occur twice; put oly_stop_gradient around them");
        return;
    }
    oly_node *ones = oly_rule_number(r, r->node->in[0], 1);
    oly_node *factors = by_indexes(r, OLY_OP_scatter_mul, ones, r->node->in[updates_of(r)]);
    r->operands[0] = oly_rule_mul(r, G, factors);
}

/* scatter_min, scatter_max: all that reach the extreme share equally. */
void oly_vjp_scatter_extreme(oly_rule *r)
{
    oly_node *x = r->node->in[0], *updates = r->node->in[updates_of(r)], *y = r->node;
    oly_node *stays =
        oly_rule_select(r, oly_rule_binary(r, OLY_OP_eq, x, y), oly_rule_number(r, x, 1), oly_rule_number(r, x, 0));
    oly_node *reaches = oly_rule_binary(r, OLY_OP_eq, updates, by_indexes(r, OLY_OP_gather, y, NULL));
    oly_node *marks = oly_rule_select(r, reaches, oly_rule_number(r, updates, 1), oly_rule_number(r, updates, 0));
    oly_node *count = by_indexes(r, OLY_OP_scatter_add, stays, marks);
    oly_node *shared = oly_rule_binary(r, OLY_OP_div, G, count);
    if (r->wanted[0])
        r->operands[0] = oly_rule_binary(r, OLY_OP_mul, shared, stays);
    if (r->wanted[updates_of(r)])
        r->operands[updates_of(r)] = oly_rule_binary(r, OLY_OP_mul, read_back(r, shared), marks);
}

/* -- parts whose place is a value ------------------------------------------------------------------------------------ */

/* The part of x at the node's starts (its operands from `first` on), or x with that part written. */
static oly_node *by_starts(oly_rule *r, oly_op op, oly_node *x, oly_node *part, const oly_type *shape, int first)
{
    oly_node *in[OLY_MAX_RANK + 2] = {x, part};
    oly_params p;
    int n = part ? 2 : 1;
    memset(&p, 0, sizeof p);
    p.n_batch = r->node->params.n_batch;
    for (int k = first; k < r->node->n_in; k++)
        in[n++] = r->node->in[k];
    if (!part) {
        p.rank = shape->rank;
        memcpy(p.shape, shape->shape, sizeof p.shape);
    }
    return oly_rule_add(r, op, n, in, &p);
}

void oly_vjp_dynamic_slice(oly_rule *r)
{
    if (r->wanted[0])
        r->operands[0] =
            G ? by_starts(r, OLY_OP_dynamic_update_slice, oly_rule_zeros(r, r->node->in[0]), G, NULL, 1) : NULL;
}

/* Zeros for the part, made from the part: so they are written after it has been read, which allows writing in place. */
static oly_node *zeros_after(oly_rule *r, oly_node *part)
{
    oly_node *never = NULL;
    if (!part)
        return NULL;
    r->status = oly_build_number(r->g, OLY_BOOL, 0, &never);
    if (r->status == OLY_OK)
        r->status = oly_build_broadcast(r->g, never, part->type.rank, part->type.shape, &never);
    return r->status == OLY_OK ? oly_rule_select(r, never, part, oly_rule_number(r, part, 0)) : NULL;
}

void oly_vjp_dynamic_update_slice(oly_rule *r)
{
    oly_node *part = r->node->in[1], *zeros;
    if (r->wanted[1])
        r->operands[1] = by_starts(r, OLY_OP_dynamic_slice, G, NULL, &part->type, 2);
    if (!r->wanted[0])
        return;
    zeros = r->wanted[1] ? zeros_after(r, r->operands[1]) : oly_rule_zeros(r, part);
    r->operands[0] = by_starts(r, OLY_OP_dynamic_update_slice, G, zeros, NULL, 2);
}

/* -- along a dimension ----------------------------------------------------------------------------------------------- */
static oly_node *along(oly_rule *r, oly_op op, oly_node *x, int dimension, bool reverse)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dimension = dimension;
    p.reverse = reverse;
    p.dtype = op == OLY_OP_argsort ? (x && x->type.shape[dimension] > INT32_MAX ? OLY_INT64 : OLY_INT32) : 0;
    return oly_rule_add(r, op, 1, &x, &p);
}

static oly_node *turned(oly_rule *r, oly_node *x, int dimension)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.n_axes = 1;
    p.axes[0] = dimension;
    return oly_rule_add(r, OLY_OP_rev, 1, &x, &p);
}

void oly_vjp_cumsum(oly_rule *r)
{
    r->operands[0] = along(r, OLY_OP_cumsum, G, r->node->params.dimension, !r->node->params.reverse);
}

/* Exchanges dimension d and the last one; its own inverse. */
static oly_node *last_swapped(oly_rule *r, oly_node *x, int d)
{
    int order[OLY_MAX_RANK];
    if (!x)
        return NULL;
    for (int k = 0; k < x->type.rank; k++)
        order[k] = k;
    order[d] = x->type.rank - 1;
    order[x->type.rank - 1] = d;
    return oly_rule_transpose(r, x, order);
}

/* Cotangents move to where the elements came from: by the inverse permutation. */
void oly_vjp_sort(oly_rule *r)
{
    int d = r->node->params.dimension, last = r->node->type.rank - 1;
    oly_node *x = last_swapped(r, r->node->in[0], d), *g = last_swapped(r, G, d);
    oly_node *where = along(r, OLY_OP_argsort, along(r, OLY_OP_argsort, x, last, false), last, false);
    oly_params p;
    memset(&p, 0, sizeof p);
    p.n_batch = last;
    p.n_axes = 1;
    p.axes[0] = last;
    p.index_mode = OLY_INDEX_PROMISE;
    if (r->node->params.reverse)
        g = turned(r, g, last);
    r->operands[0] = last_swapped(r, oly_rule_add(r, OLY_OP_gather, 2, (oly_node *[]){g, where}, &p), d);
}

/* -- running results: computed once more, as JAX does, by pairs ------------------------------------------------------ */
typedef oly_node *combine(oly_rule *r, oly_node *x, oly_node *y);

static oly_node *product(oly_rule *r, oly_node *x, oly_node *y)
{
    return oly_rule_binary(r, OLY_OP_mul, x, y);
}
static oly_node *larger(oly_rule *r, oly_node *x, oly_node *y)
{
    return oly_rule_binary(r, OLY_OP_max, x, y);
}
static oly_node *smaller(oly_rule *r, oly_node *x, oly_node *y)
{
    return oly_rule_binary(r, OLY_OP_min, x, y);
}

/* m + log(exp(x - m) + exp(y - m)), where m, the larger, is a constant (0 where it is infinite). */
static oly_node *log_of_sum(oly_rule *r, oly_node *x, oly_node *y)
{
    oly_node *m = larger(r, x, y);
    if (!m)
        return NULL;
    oly_node *distance = oly_rule_binary(r, OLY_OP_sub, m, m), *zero = oly_rule_number(r, m, 0);
    m = oly_rule_select(r, oly_rule_binary(r, OLY_OP_eq, distance, zero), m, zero);
    m = oly_rule_add(r, OLY_OP_stop_gradient, 1, &m, NULL);
    oly_node *ex = oly_rule_unary(r, OLY_OP_exp, oly_rule_binary(r, OLY_OP_sub, x, m));
    oly_node *ey = oly_rule_unary(r, OLY_OP_exp, oly_rule_binary(r, OLY_OP_sub, y, m));
    return oly_rule_binary(r, OLY_OP_add, m, oly_rule_unary(r, OLY_OP_log, oly_rule_binary(r, OLY_OP_add, ex, ey)));
}

/* Elements start, start + 2, ... of dimension 0, `count` of them. */
static oly_node *every_other(oly_rule *r, oly_node *x, int64_t start, int64_t count, int64_t step)
{
    int64_t from[OLY_MAX_RANK] = {start}, shape[OLY_MAX_RANK], by[OLY_MAX_RANK];
    if (!x)
        return NULL;
    memcpy(shape, x->type.shape, sizeof shape);
    for (int d = 0; d < x->type.rank; d++)
        by[d] = 1;
    shape[0] = count;
    by[0] = step;
    return oly_rule_slice(r, x, from, shape, by);
}

/* x0 y0 x1 y1 ... along dimension 0; x has as many elements as y, or one more. */
static oly_node *interleaved(oly_rule *r, oly_node *x, oly_node *y)
{
    if (!x || !y)
        return NULL;
    int64_t n = x->type.shape[0] + y->type.shape[0], start[OLY_MAX_RANK] = {0}, step[OLY_MAX_RANK];
    oly_params p;
    memset(&p, 0, sizeof p);
    p.rank = x->type.rank;
    memcpy(p.shape, x->type.shape, sizeof p.shape);
    p.shape[0] = n;
    for (int d = 0; d < p.rank; d++)
        step[d] = 1;
    step[0] = 2;
    oly_node *number = oly_rule_number(r, x, 0), *whole;
    while (number && number->op == OLY_OP_broadcast)
        number = number->in[0];
    whole = oly_rule_add(r, OLY_OP_broadcast, 1, &number, &p);
    whole = oly_rule_update(r, whole, x, start, step);
    start[0] = 1;
    return oly_rule_update(r, whole, y, start, step);
}

/* lax.associative_scan along dimension 0. */
static oly_node *scan(oly_rule *r, combine *f, oly_node *x)
{
    int64_t n = x ? x->type.shape[0] : 0, half = n / 2;
    if (n < 2)
        return x;
    oly_node *odd = scan(r, f, f(r, every_other(r, x, 0, half, 2), every_other(r, x, 1, half, 2)));
    oly_node *even = every_other(r, x, 0, 1, 1);
    if (n > 2) {
        int64_t left = (n - 1) / 2;
        oly_node *more = f(r, every_other(r, odd, 0, left, 1), every_other(r, x, 2, left, 2));
        even = oly_rule_concatenate(r, even, more, 0);
    }
    return interleaved(r, even, odd);
}

static oly_node *first_swapped(oly_rule *r, oly_node *x, int d)
{
    int order[OLY_MAX_RANK];
    if (!x)
        return NULL;
    for (int k = 0; k < x->type.rank; k++)
        order[k] = k;
    order[d] = 0;
    order[0] = d;
    return oly_rule_transpose(r, x, order);
}

static void through_scan(oly_rule *r, combine *f)
{
    int d = r->node->params.dimension;
    oly_node *x = r->node->in[0];
    bool reverse = r->node->params.reverse;
    oly_node *line = first_swapped(r, reverse ? turned(r, x, d) : x, d);
    oly_node *results = first_swapped(r, scan(r, f, line), d);
    if (results == x) /* of one element each */
        r->operands[0] = G;
    else
        r->operands[0] = oly_rule_through(r, reverse ? turned(r, results, d) : results, G, x);
}

void oly_vjp_cumprod(oly_rule *r)
{
    through_scan(r, product);
}
void oly_vjp_cummax(oly_rule *r)
{
    through_scan(r, larger);
}
void oly_vjp_cummin(oly_rule *r)
{
    through_scan(r, smaller);
}
void oly_vjp_cumlogsumexp(oly_rule *r)
{
    through_scan(r, log_of_sum);
}
