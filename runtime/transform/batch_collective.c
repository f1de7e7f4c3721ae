/* SPDX-License-Identifier: BSD-3-Clause */
/* Batching rules of collectives. Along axes that are being batched over, a collective is an operation on their leading
 * dimensions; along others (of an enclosing shard_map) it stays a collective, for the next batching. */
#include "transform/batch_rules.h"
#include "graph/build.h"
#include <string.h>

/* The axes of a collective that are batched over here, and the others. */
typedef struct sides {
    oly_axis_list mine, others;
} sides;

static void take(oly_axis_list *list, int axis)
{
    list->axis[list->n++] = (uint8_t)axis;
}

static sides sides_of(const oly_batch *b, const oly_node *node)
{
    const oly_params *p = &node->params;
    sides s = {0};
    bool mine = b->axes->mesh ? oly_mesh_same_grid(p->mesh, b->axes->mesh) : p->mesh == b->axes->named;
    for (int k = 0; k < p->over.n; k++)
        take(mine && (b->axes->all >> p->over.axis[k] & 1) ? &s.mine : &s.others, p->over.axis[k]);
    return s;
}

static uint32_t bits(const oly_axis_list *l)
{
    uint32_t all = 0;
    for (int k = 0; k < l->n; k++)
        all |= 1u << l->axis[k];
    return all;
}

/* A collective along some axes of one shard_map and some of another: possible where the order of the axes does not matter. */
static oly_status check_one_side(const oly_node *node, const sides *s)
{
    if (s->mine.n == 0 || s->others.n == 0)
        return OLY_OK;
    return oly_fail(OLY_INVALID,
                    "%s over axes of two nested shard_maps at once; name those of each in a call of its own",
                    oly_ops[node->op].name);
}

/* The collective over the other axes, in the enclosing graph. */
static oly_params outside(const oly_batch *b, const oly_node *node, const sides *s)
{
    oly_params p = node->params;
    p.over = s->others;
    if (b->axes->mesh && oly_mesh_same_grid(p.mesh, b->axes->mesh))
        p.mesh = b->axes->mesh;
    return p;
}

/* It stays a collective, its own dimensions after the leading ones. */
static oly_status stays(oly_batch *b, const oly_node *node, const sides *s, oly_lifted *in, oly_lifted *out)
{
    oly_params p = outside(b, node, s);
    int lead = node->n_in ? oly_batch_lead(in[0].axes) : 0;
    bool shaped = node->op == OLY_OP_all_gather || node->op == OLY_OP_psum_scatter || node->op == OLY_OP_all_to_all ||
                  node->op == OLY_OP_own_slice;
    if (shaped) {
        p.dimension += lead;
        p.axes[0] += node->op == OLY_OP_all_to_all ? lead : 0;
    }
    return oly_batch_apply(b, node->op, node->n_in, in, &p, out);
}

oly_status oly_batching_pvary(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    sides s = sides_of(b, node);
    *out = in[0];
    OLY_TRY(oly_batch_vary(b, out, bits(&s.mine)));
    if (s.others.n == 0)
        return OLY_OK;
    oly_params p = outside(b, node, &s);
    return oly_batch_apply(b, node->op, 1, out, &p, out);
}

/* psum, pmax, pmin: the row's detail is the combiner of the corresponding reduction. */
static oly_op reduction_with(int combiner)
{
    for (int op = 0; op < OLY_N_OPS; op++)
        if (oly_ops[op].lowering == OLY_LOWER_REDUCE && oly_ops[op].detail == combiner)
            return (oly_op)op;
    return OLY_OP_reduce_sum;
}

/* The order of the sum is that of partial products, so that a layer gives the same bits whether written globally or per device. */
static oly_status reduce(oly_batch *b, oly_op op, const oly_axis_list *over, oly_lifted *x)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.one_by_one = true;
    uint32_t gone = bits(over), left;
    OLY_TRY(oly_batch_vary(b, x, gone));
    left = x->axes & ~gone;
    for (int a = 0; a < OLY_MAX_RANK; a++)
        if (gone >> a & 1)
            p.axes[p.n_axes++] = oly_batch_place(x->axes, a);
    x->axes = left;
    return oly_graph_add(b->into, op, 1, &x->node, &p, &x->node);
}

oly_status oly_batching_preduce(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    sides s = sides_of(b, node);
    *out = in[0];
    if (s.mine.n > 0)
        OLY_TRY(reduce(b, reduction_with(oly_ops[node->op].detail), &s.mine, out));
    if (s.others.n == 0)
        return OLY_OK;
    oly_params p = outside(b, node, &s);
    return oly_batch_apply(b, node->op, 1, out, &p, out);
}

/* -- moving leading dimensions into the value, and dimensions of the value to the front ----------------------------- */

static int64_t product(const oly_batch *b, const oly_axis_list *over)
{
    int64_t n = 1;
    for (int k = 0; k < over->n; k++)
        n *= b->axes->size[over->axis[k]];
    return n;
}

/* Merges the leading dimensions of `over` into one dimension d of the value, major axis first. */
static oly_status lead_to_dimension(oly_batch *b, const oly_axis_list *over, int d, oly_lifted *x)
{
    int order[OLY_MAX_RANK], n = 0, lead = oly_batch_lead(x->axes), rank = x->node->type.rank;
    uint32_t left = x->axes & ~bits(over);
    oly_type merged = x->node->type;
    for (int a = 0; a < OLY_MAX_RANK; a++)
        if (left >> a & 1)
            order[n++] = oly_batch_place(x->axes, a);
    for (int k = 0; k < d; k++)
        order[n++] = lead + k;
    for (int k = 0; k < over->n; k++)
        order[n++] = oly_batch_place(x->axes, over->axis[k]);
    for (int k = lead + d; k < rank; k++)
        order[n++] = k;
    OLY_TRY(oly_batch_reorder(b, &x->node, order));
    merged.rank = 0;
    for (int k = 0, at = oly_batch_lead(left) + d; k < rank; k++) {
        merged.shape[merged.rank] = k == at ? product(b, over) : x->node->type.shape[k];
        merged.rank++;
        k += k == at ? over->n - 1 : 0;
    }
    x->axes = left;
    return oly_build_reshape(b->into, x->node, merged.rank, merged.shape, &x->node);
}

/* Splits dimension d of the value, with one element per position along `over`, into their leading dimensions. */
static oly_status dimension_to_lead(oly_batch *b, const oly_axis_list *over, int d, oly_lifted *x)
{
    int order[OLY_MAX_RANK], lead = oly_batch_lead(x->axes), at = lead + d, rank = 0;
    uint32_t all = x->axes | bits(over);
    int64_t shape[OLY_MAX_RANK];
    if (x->node->type.rank - 1 + over->n > OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE, "a collective over %d axes of %s needs more than %d dimensions", over->n,
                        oly_type_short(&x->node->type), OLY_MAX_RANK);
    for (int k = 0; k < x->node->type.rank; k++) {
        for (int j = 0; j < over->n && k == at; j++)
            shape[rank++] = b->axes->size[over->axis[j]];
        if (k != at)
            shape[rank++] = x->node->type.shape[k];
    }
    OLY_TRY(oly_build_reshape(b->into, x->node, rank, shape, &x->node));
    for (int a = 0; a < OLY_MAX_RANK; a++)
        if (x->axes >> a & 1)
            order[oly_batch_place(all, a)] = oly_batch_place(x->axes, a);
    for (int j = 0; j < over->n; j++)
        order[oly_batch_place(all, over->axis[j])] = at + j;
    for (int k = lead, n = oly_batch_lead(all); k < rank; k++)
        if (k < at || k >= at + over->n)
            order[n++] = k;
    OLY_TRY(oly_batch_reorder(b, &x->node, order));
    x->axes = all;
    return oly_batch_pin(b, x);
}

oly_status oly_batching_all_gather(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    sides s = sides_of(b, node);
    OLY_TRY(check_one_side(node, &s));
    if (s.mine.n == 0)
        return stays(b, node, &s, in, out);
    *out = in[0];
    OLY_TRY(oly_batch_vary(b, out, bits(&s.mine)));
    OLY_TRY(lead_to_dimension(b, &s.mine, node->params.dimension, out));
    return oly_batch_settle(b, out);
}

oly_status oly_batching_psum_scatter(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    sides s = sides_of(b, node);
    OLY_TRY(check_one_side(node, &s));
    if (s.mine.n == 0)
        return stays(b, node, &s, in, out);
    *out = in[0];
    OLY_TRY(reduce(b, OLY_OP_reduce_sum, &s.mine, out));
    return dimension_to_lead(b, &s.mine, node->params.dimension, out);
}

oly_status oly_batching_own_slice(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    sides s = sides_of(b, node);
    OLY_TRY(check_one_side(node, &s));
    if (s.mine.n == 0)
        return stays(b, node, &s, in, out);
    *out = in[0];
    return dimension_to_lead(b, &s.mine, node->params.dimension, out);
}

/* The split dimension moves to the front while the devices' dimension moves back: since that dimension of the value does not exist
 * yet, it is first placed after all the others. */
oly_status oly_batching_all_to_all(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    sides s = sides_of(b, node);
    OLY_TRY(check_one_side(node, &s));
    if (s.mine.n == 0)
        return stays(b, node, &s, in, out);
    *out = in[0];
    OLY_TRY(oly_batch_vary(b, out, bits(&s.mine)));
    int split = node->params.dimension, made = node->params.axes[0];
    int at = made < split ? made : made + 1; /* while the split one still exists */
    OLY_TRY(lead_to_dimension(b, &s.mine, at, out));
    return dimension_to_lead(b, &s.mine, split + (at <= split), out);
}

oly_status oly_batching_ppermute(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    sides s = sides_of(b, node);
    OLY_TRY(check_one_side(node, &s));
    if (s.mine.n == 0)
        return stays(b, node, &s, in, out);
    oly_params p;
    memset(&p, 0, sizeof p);
    p.permutation = node->params.permutation;
    *out = in[0];
    OLY_TRY(oly_batch_vary(b, out, bits(&s.mine)));
    if (s.mine.n == 1) {
        p.dimension = oly_batch_place(out->axes, s.mine.axis[0]);
        return oly_graph_add(b->into, OLY_OP_permute, 1, &out->node, &p, &out->node);
    }
    OLY_TRY(lead_to_dimension(b, &s.mine, 0, out));
    p.dimension = oly_batch_lead(out->axes);
    OLY_TRY(oly_graph_add(b->into, OLY_OP_permute, 1, &out->node, &p, &out->node));
    return dimension_to_lead(b, &s.mine, 0, out);
}

oly_status oly_batching_axis_index(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    sides s = sides_of(b, node);
    OLY_TRY(check_one_side(node, &s));
    if (s.mine.n == 0)
        return stays(b, node, &s, in, out);
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = OLY_INT32;
    p.rank = 1;
    p.shape[0] = product(b, &s.mine);
    out->axes = 0;
    OLY_TRY(oly_graph_add(b->into, OLY_OP_iota, 0, NULL, &p, &out->node));
    return dimension_to_lead(b, &s.mine, 0, out);
}
