/* SPDX-License-Identifier: BSD-3-Clause */
/* Gradient rules of contractions: they are contractions again, of the cotangent with the other operand. */
#include "graph/contract.h"
#include "transform/rule.h"
#include <math.h>
#include <string.h>

/* The sharding of the cotangent of x over Explicit axes, with dimension axes[d] as dimension d. NULL: the type has none. */
static oly_sharding wanted_sharding(oly_rule *r, const oly_node *x, const int *axes)
{
    oly_sharding s = oly_rule_sharding(r, x);
    if (!s)
        return NULL;
    oly_spec spec = s->spec;
    spec.n_dims = x->type.rank;
    for (int d = 0; d < x->type.rank; d++)
        spec.dim[d] = axes[d] < s->spec.n_dims ? s->spec.dim[axes[d]] : (oly_axis_list){0};
    oly_sharding turned = oly_sharding_intern(s->mesh, &spec, x->type.rank);
    if (!turned)
        r->status = OLY_MEMORY;
    return turned;
}

static bool in_order(int n, const int *of)
{
    for (int d = 0; d < n; d++)
        if (of[d] != d)
            return false;
    return true;
}

/* The dimensions of operand o in the order of a product of the cotangent (which has the free ones) with the other operand (which has the
 * contracting ones), the batch dimensions first. */
static void dimensions_of(const oly_contraction *c, const oly_contraction_dims *dims, int o, int rank, bool other_first,
                          int *of)
{
    int n = 0;
    for (int k = 0; k < c->n_batch; k++)
        of[n++] = c->batch[o][k];
    for (int pass = 0; pass < 2; pass++) {
        if (pass == other_first)
            for (int k = 0; k < dims->n_free[o]; k++)
                of[n++] = dims->free[o][k];
        else
            for (int d = 0; d < rank; d++)
                if (dims->role[1 - o][d] == OLY_DIM_CONTRACT)
                    of[n++] = c->contract[o][dims->number[1 - o][d]];
    }
}

/* A result that is so small is read across its rows as fast; and then layouts that cost the same are chosen as XLA chooses them, which has
 * the cotangent first. */
enum { SMALL_RESULT = 1 << 14 };

/* Cotangent of operand o: g times the other operand, summed over the other's free dimensions. The other comes first if the dimensions
 * of the product are then those of o in their order (gradients of the weights in x w); else the product is transposed. */
static void answer(oly_rule *r, int o, const oly_contraction_dims *dims)
{
    const oly_contraction *c = &r->node->params.contraction;
    oly_node *x = r->node->in[o], *other = r->node->in[1 - o], *g = oly_rule_cotangent(r);
    int of[OLY_MAX_RANK], axes[OLY_MAX_RANK]; /* dimension of x that each of the product is, and back */
    dimensions_of(c, dims, o, other->type.rank, true, of);
    const bool other_first = in_order(x->type.rank, of) && oly_type_size(&x->type) >= SMALL_RESULT;
    const int at_g = other_first, at_other = !other_first;
    dimensions_of(c, dims, o, other->type.rank, other_first, of);
    for (int d = 0; d < x->type.rank; d++)
        axes[of[d]] = d;
    oly_params p;
    memset(&p, 0, sizeof p);
    p.contraction.n_batch = c->n_batch;
    for (int k = 0; k < c->n_batch; k++) {
        p.contraction.batch[at_g][k] = (uint8_t)k;
        p.contraction.batch[at_other][k] = c->batch[1 - o][k];
    }
    for (int k = 0; k < dims->n_free[1 - o]; k++) {
        int d = dims->free[1 - o][k];
        p.contraction.contract[at_g][p.contraction.n_contract] = (uint8_t)dims->result[1 - o][d];
        p.contraction.contract[at_other][p.contraction.n_contract++] = (uint8_t)d;
    }
    p.sharding = wanted_sharding(r, x, of);
    oly_node *both[2] = {other_first ? other : g, other_first ? g : other};
    r->operands[o] = oly_rule_transpose(r, oly_rule_add(r, OLY_OP_dot_general, 2, both, &p), axes);
}

void oly_vjp_dot_general(oly_rule *r)
{
    oly_contraction_dims dims;
    r->status = oly_contraction_read(&r->node->in[0]->type, &r->node->in[1]->type, &r->node->params.contraction, &dims);
    for (int o = 0; o < 2 && r->status == OLY_OK; o++)
        if (r->wanted[o])
            answer(r, o, &dims);
}

/* -- convolutions ---------------------------------------------------------------------------------------------------------- */

/* Dimension `from` is groups times the rest; moves the groups before dimension `to` and merges them with it. */
static oly_node *move_groups(oly_rule *r, oly_node *x, int from, int to, int64_t groups)
{
    if (!x || groups == 1)
        return x;
    int rank = x->type.rank, axes[OLY_MAX_RANK + 1], n = 0;
    int64_t shape[OLY_MAX_RANK + 1] = {0};
    for (int d = 0; d < rank; d++) {
        if (d == from)
            shape[n++] = groups;
        shape[n++] = d == from ? x->type.shape[d] / groups : x->type.shape[d];
    }
    oly_node *split = oly_rule_reshape(r, x, rank + 1, shape);
    n = 0;
    for (int d = 0; d < rank; d++) { /* dimension d of x is d, or d + 1 from `from` on; the groups are `from` */
        if (d == to)
            axes[n++] = from;
        axes[n++] = d < from ? d : d + 1;
    }
    oly_node *turned = oly_rule_transpose(r, split, axes);
    for (int d = 0; turned && d < rank; d++)
        shape[d] = d < to    ? turned->type.shape[d]
                   : d == to ? turned->type.shape[d] * turned->type.shape[d + 1]
                             : turned->type.shape[d + 1];
    return oly_rule_reshape(r, turned, rank, shape);
}

static oly_node *swap_first(oly_rule *r, oly_node *x)
{
    int axes[OLY_MAX_RANK] = {1, 0};
    for (int d = 2; d < OLY_MAX_RANK; d++)
        axes[d] = d;
    return oly_rule_transpose(r, x, axes);
}

static oly_node *turn_space(oly_rule *r, oly_node *x, int rank)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    for (int d = 2; d < rank; d++)
        p.axes[p.n_axes++] = d;
    return p.n_axes ? oly_rule_add(r, OLY_OP_rev, 1, &x, &p) : x;
}

/* The window that maps the cotangent of positions back to elements, as in jax.lax. */
static oly_sliding_window back_to_elements(const oly_sliding_window *w, const oly_type *x, const oly_type *y)
{
    oly_sliding_window back = *w;
    for (int d = 0; d < w->rank; d++) {
        int64_t n = oly_dilated(x->shape[x->rank - w->rank + d], w->base_dilation[d]);
        int64_t places = oly_dilated(y->shape[x->rank - w->rank + d], w->stride[d]);
        int64_t window = oly_dilated(w->size[d], w->dilation[d]);
        back.stride[d] = w->base_dilation[d];
        back.base_dilation[d] = w->stride[d];
        back.lo[d] = window - w->lo[d] - 1;
        back.hi[d] = n + window - 1 - places - back.lo[d];
    }
    return back;
}

/* Of the operand: the cotangent convolved with reversed kernels, features in and out exchanged. */
static void answer_operand(oly_rule *r)
{
    const oly_node *n = r->node;
    const oly_sliding_window *w = n->params.window;
    int64_t groups = w->groups * w->batch_groups;
    oly_sliding_window back = back_to_elements(w, &n->in[0]->type, &n->type);
    oly_params p;
    memset(&p, 0, sizeof p);
    back.groups = groups;
    back.batch_groups = 1;
    p.window = &back;
    /* [groups by out, in, ...] becomes [out, groups by in, ...], then [groups by in, out, ...] */
    oly_node *kernel = swap_first(r, move_groups(r, n->in[1], 0, 1, groups));
    kernel = turn_space(r, kernel, n->type.rank);
    oly_node *both[2] = {oly_rule_cotangent(r), kernel};
    if (w->batch_groups == 1)
        p.sharding = wanted_sharding(r, n->in[0], (int[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    oly_node *x = oly_rule_add(r, OLY_OP_conv, 2, both, &p);
    r->operands[0] = move_groups(r, x, 1, 0, w->batch_groups);
}

/* Of the kernels: the operand with the cotangent as kernels, summed over the batch. */
static void answer_kernel(oly_rule *r)
{
    const oly_node *n = r->node;
    const oly_sliding_window *w = n->params.window;
    const oly_type *x = &n->in[0]->type, *y = &n->type;
    oly_sliding_window back = {.rank = w->rank, .groups = w->batch_groups, .batch_groups = w->groups};
    oly_params p;
    memset(&p, 0, sizeof p);
    p.window = &back;
    for (int d = 0; d < w->rank; d++) {
        back.size[d] = y->shape[2 + d];
        back.stride[d] = w->dilation[d];
        back.dilation[d] = w->stride[d];
        back.base_dilation[d] = w->base_dilation[d];
        back.lo[d] = w->lo[d];
        back.hi[d] = oly_dilated(y->shape[2 + d], w->stride[d]) + oly_dilated(w->size[d], w->dilation[d]) -
                     oly_dilated(x->shape[2 + d], w->base_dilation[d]) - 1 - w->lo[d];
    }
    p.sharding = wanted_sharding(r, n->in[1], (int[]){1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    oly_node *both[2] = {swap_first(r, n->in[0]), swap_first(r, oly_rule_cotangent(r))};
    r->operands[1] = swap_first(r, oly_rule_add(r, OLY_OP_conv, 2, both, &p));
}

void oly_vjp_conv(oly_rule *r)
{
    if (r->wanted[0])
        answer_operand(r);
    if (r->wanted[1])
        answer_kernel(r);
}

/* -- windowed reductions ----------------------------------------------------------------------------------------------------- */

void oly_vjp_reduce_window_sum(oly_rule *r)
{
    oly_sliding_window back = back_to_elements(r->node->params.window, &r->node->in[0]->type, &r->node->type);
    oly_params p;
    memset(&p, 0, sizeof p);
    p.window = &back;
    oly_node *g = oly_rule_cotangent(r);
    r->operands[0] = oly_rule_add(r, OLY_OP_reduce_window_sum, 1, &g, &p);
}

/* x at start + i * step of an array of this shape; around it `value`, a number. */
static oly_node *padded(oly_rule *r, oly_node *x, const int64_t *start, const int64_t *step, const int64_t *shape,
                        double value)
{
    oly_params p;
    oly_node *number = NULL;
    if (!x)
        return NULL;
    memset(&p, 0, sizeof p);
    p.rank = x->type.rank;
    for (int d = 0; d < p.rank; d++) {
        p.start[d] = start[d];
        p.step[d] = step[d];
        p.shape[d] = shape[d];
    }
    r->status = oly_build_number(r->g, x->type.dtype, value, &number);
    return r->status == OLY_OK ? oly_rule_add(r, OLY_OP_pad, 2, (oly_node *[]){x, number}, &p) : NULL;
}

/* The positions of the window's elements among the dilated ones, and the number of those including padding. */
typedef struct field {
    int64_t start[OLY_MAX_RANK], apart[OLY_MAX_RANK], extent[OLY_MAX_RANK], stride[OLY_MAX_RANK];
} field;

static field field_of(const oly_node *n)
{
    const oly_sliding_window *w = n->params.window;
    const oly_type *x = &n->in[0]->type;
    field f;
    for (int d = 0; d < x->rank; d++) {
        int k = d - (x->rank - (int)w->rank);
        f.start[d] = k < 0 ? 0 : w->lo[k];
        f.apart[d] = k < 0 ? 1 : w->base_dilation[k];
        f.stride[d] = k < 0 ? 1 : w->stride[k];
        f.extent[d] = k < 0 ? x->shape[d] : oly_dilated(x->shape[d], f.apart[d]) + w->lo[k] + w->hi[k];
    }
    return f;
}

/* Adds to the first extreme element of each window, tap by tap. */
void oly_vjp_reduce_window_extreme(oly_rule *r)
{
    static const int64_t zeros[OLY_MAX_RANK], ones[OLY_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    oly_node *n = r->node, *x = n->in[0], *g = oly_rule_cotangent(r), *sum = NULL, *taken = NULL;
    const oly_sliding_window *w = n->params.window;
    const field f = field_of(n);
    int first = x->type.rank - (int)w->rank;
    int64_t taps = 1, back[OLY_MAX_RANK], dilated[OLY_MAX_RANK];
    for (int k = 0; k < w->rank; k++)
        taps *= w->size[k];
    double worst = n->op == OLY_OP_reduce_window_max ? -INFINITY : INFINITY;
    oly_node *seen = padded(r, x, f.start, f.apart, f.extent, worst), *zero = oly_rule_number(r, g, 0);
    for (int64_t tap = 0; tap < taps && r->status == OLY_OK; tap++) {
        int64_t at[OLY_MAX_RANK] = {0}, rest = tap;
        for (int k = (int)w->rank - 1; k >= 0; k--) {
            at[first + k] = rest % w->size[k] * w->dilation[k];
            rest /= w->size[k];
        }
        oly_node *here = oly_rule_binary(r, OLY_OP_eq, oly_rule_slice(r, seen, at, n->type.shape, f.stride), n);
        oly_node *mine = taken ? oly_rule_select(r, taken, oly_rule_number(r, here, 0), here) : here;
        taken = taken ? oly_rule_select(r, taken, taken, here) : here;
        oly_node *part = padded(r, oly_rule_select(r, mine, g, zero), at, f.stride, f.extent, 0);
        sum = sum ? oly_rule_binary(r, OLY_OP_add, sum, part) : part;
    }
    for (int d = 0; d < x->type.rank; d++) {
        back[d] = -f.start[d];
        dilated[d] = oly_dilated(x->type.shape[d], f.apart[d]);
    }
    r->operands[0] = oly_rule_slice(r, padded(r, sum, back, ones, dilated, 0), zeros, x->type.shape, f.apart);
}
