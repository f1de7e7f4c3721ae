/* SPDX-License-Identifier: BSD-3-Clause */
/* The walk backwards through a graph. See gradient.h. */
#include "transform/gradient.h"
#include "transform/rule.h"
#include "graph/varying.h"
#include <string.h>

/* -- the rules of the table ------------------------------------------------------------------------------------------ */
#define OLY_OP(name, operands, factors, typing, lowering, detail, sharding, batching, gradient)                        \
    oly_vjp_rule oly_vjp_##gradient;
#include "graph/ops.def"
#undef OLY_OP

#define oly_vjp_none NULL
static oly_vjp_rule *const rules[OLY_N_OPS] = {
#define OLY_OP(name, operands, factors, typing, lowering, detail, sharding, batching, gradient)                        \
    [OLY_OP_##name] = oly_vjp_##gradient,
#include "graph/ops.def"
#undef OLY_OP
};

oly_vjp_rule *oly_rule_of(oly_op op)
{
    return rules[op];
}

void oly_vjp_zero(oly_rule *r)
{
    (void)r;
}

/* -- the walk -------------------------------------------------------------------------------------------------------- */

/* Values of control operations are taken out by result nodes: they have cotangents of several results. */
typedef struct walk {
    oly_graph *g;
    int n;               /* nodes before the walk */
    bool *active;        /* [n] */
    oly_node **sum;      /* [n] cotangent of a node so far */
    oly_node ***results; /* [n] of control operations: cotangents of their results */
} walk;

static int n_results(const oly_node *n)
{
    return oly_graph_results(n);
}

static bool is_control(const oly_node *n)
{
    return n_results(n) >= 0;
}

void oly_mark_active(const oly_graph *g, bool *active)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const oly_node *node = g->nodes[k];
        if (rules[node->op] == oly_vjp_zero || (!is_control(node) && !oly_differentiable(node->type.dtype)))
            continue;
        for (int j = 0; j < node->n_in; j++)
            active[k] = active[k] || active[node->in[j]->index];
    }
}

static oly_status prepare(walk *w, int n_wrt, oly_node *const *wrt)
{
    w->n = w->g->n_nodes;
    w->active = OLY_ARENA_NEW(&w->g->arena, bool, w->n + 1);
    w->sum = OLY_ARENA_NEW(&w->g->arena, oly_node *, w->n + 1);
    w->results = OLY_ARENA_NEW(&w->g->arena, oly_node **, w->n + 1);
    if (!w->active || !w->sum || !w->results)
        return oly_out_of_memory(sizeof(oly_node *) * (size_t)w->n, "a gradient");
    for (int k = 0; k < n_wrt; k++)
        w->active[wrt[k]->index] = true;
    oly_mark_active(w->g, w->active);
    return OLY_OK;
}

static oly_status sum_over(oly_graph *g, oly_mesh mesh, unsigned axes, oly_node **x)
{
    oly_params p;
    oly_dtype dtype = (*x)->type.dtype;
    bool weak = (*x)->type.weak;
    memset(&p, 0, sizeof p);
    p.mesh = mesh;
    for (int a = 0; a < mesh->n_axes; a++)
        if (axes >> a & 1)
            p.over.axis[p.over.n++] = (uint8_t)a;
    OLY_TRY(oly_build_convert(g, *x, oly_dtype_computed(dtype), weak, x)); /* narrow types are summed in float32 */
    OLY_TRY(oly_graph_add(g, OLY_OP_psum, 1, (oly_node *[]){*x}, &p, x));
    return oly_build_convert(g, *x, dtype, weak, x);
}

static bool is_split(const oly_type *t)
{
    bool any = false;
    for (int d = 0; d < t->rank; d++)
        any = any || t->axes[d].n > 0;
    return any;
}

/* The sum that an unreduced cotangent of a value without a mesh stands for: such a value's type has no place for the mark. */
static oly_status reduce_cotangent(oly_graph *g, oly_node **cotangent)
{
    oly_type reduced = (*cotangent)->type;
    reduced.unreduced = 0;
    oly_sharding sharding = oly_type_sharding(&reduced);
    return sharding ? oly_build_reshard(g, *cotangent, sharding, cotangent) : OLY_MEMORY;
}

/* A cotangent varies along the manual axes along which its value varies. Over Explicit axes it has the sharding of its value; the
 * cotangent of a reduced value is unreduced, and vice versa. Where a value's type has no sharding (in a region of oly_auto_axes),
 * neither has the cotangent's. */
static oly_status lie_as(oly_graph *g, const oly_node *node, oly_node **cotangent)
{
    oly_type wanted = node->type;
    unsigned extra = (*cotangent)->type.varying & ~wanted.varying;
    wanted.unreduced = node->type.reduced;
    wanted.reduced = node->type.unreduced;
    if (extra)
        OLY_TRY(sum_over(g, (*cotangent)->type.mesh, extra, cotangent));
    if (wanted.varying & ~(*cotangent)->type.varying)
        OLY_TRY(oly_build_vary(g, *cotangent, wanted.mesh, wanted.varying, cotangent));
    if (!wanted.mesh && (*cotangent)->type.unreduced)
        OLY_TRY(reduce_cotangent(g, cotangent));
    if (!wanted.mesh && (*cotangent)->type.mesh && is_split(&(*cotangent)->type))
        return oly_build_apply(g, OLY_OP_auto_axes, 1, (oly_node *[]){*cotangent}, cotangent);
    if (!wanted.mesh || !wanted.mesh->explicit_axes || oly_type_same_sharding(&wanted, &(*cotangent)->type))
        return OLY_OK;
    oly_sharding sharding = oly_type_sharding(&wanted);
    return sharding ? oly_build_reshard(g, *cotangent, sharding, cotangent) : OLY_MEMORY;
}

/* -- sums of cotangents ---------------------------------------------------------------------------------------------- */

static bool is_zeros(const oly_node *x)
{
    while (x->op == OLY_OP_broadcast || x->op == OLY_OP_reshape || x->op == OLY_OP_reshard || x->op == OLY_OP_pvary)
        x = x->in[0];
    return x->op == OLY_OP_constant && x->params.value.i == 0 && x->params.imaginary == 0;
}

/* Whether only a part of x is nonzero, and adding only that part pays. */
static bool is_part(const oly_node *x)
{
    if (x->op == OLY_OP_update && 2 * oly_type_size(&x->in[1]->type) > oly_type_size(&x->type))
        return false;
    return (x->op == OLY_OP_dynamic_update_slice || x->op == OLY_OP_update || x->op == OLY_OP_scatter_add) &&
           is_zeros(x->in[0]);
}

/* Replaces the part of `sum` that x writes by its sum with what x writes. */
static oly_status add_part(oly_graph *g, oly_node *sum, const oly_node *x, oly_node **out)
{
    oly_node *in[128] = {sum}, *part = x->in[1];
    oly_params p;
    if (x->n_in > 128)
        return oly_build_apply(g, OLY_OP_add, 2, (oly_node *[]){sum, (oly_node *)x}, out);
    memcpy(in + 1, x->in + 1, sizeof *in * (size_t)(x->n_in - 1));
    if (x->op == OLY_OP_update) {
        p = x->params;
        OLY_TRY(oly_graph_add(g, OLY_OP_slice, 1, &sum, &p, &in[1]));
        OLY_TRY(oly_build_apply(g, OLY_OP_add, 2, (oly_node *[]){in[1], part}, &in[1]));
    } else if (x->op == OLY_OP_dynamic_update_slice) {
        oly_node *from[128] = {sum};
        memcpy(from + 1, x->in + 2, sizeof *from * (size_t)(x->n_in - 2));
        memset(&p, 0, sizeof p);
        p.n_batch = x->params.n_batch;
        p.rank = part->type.rank;
        memcpy(p.shape, part->type.shape, sizeof p.shape);
        OLY_TRY(oly_graph_add(g, OLY_OP_dynamic_slice, x->n_in - 1, from, &p, &in[1]));
        OLY_TRY(oly_build_apply(g, OLY_OP_add, 2, (oly_node *[]){in[1], part}, &in[1]));
    }
    return oly_graph_add(g, x->op, x->n_in, in, &x->params, out);
}

oly_status oly_add_cotangents(oly_graph *g, oly_node *x, oly_node *y, oly_node **sum)
{
    if (!x || !y) {
        *sum = x ? x : y;
        return OLY_OK;
    }
    if (is_zeros(x) || is_zeros(y)) {
        *sum = is_zeros(x) ? y : x;
        return OLY_OK;
    }
    if (is_part(y))
        return add_part(g, x, y, sum);
    if (is_part(x))
        return add_part(g, y, x, sum);
    return oly_build_apply(g, OLY_OP_add, 2, (oly_node *[]){x, y}, sum);
}

static oly_status accumulate(walk *w, oly_node *node, oly_node *cotangent)
{
    oly_node **sum = &w->sum[node->index];
    if (!cotangent || !w->active[node->index])
        return OLY_OK;
    if (!oly_type_equal(&node->type, &cotangent->type))
        return oly_fail(node->type.dtype != cotangent->type.dtype ? OLY_DTYPE : OLY_SHAPE,
                        "the cotangent of %s %s (%s:%d) is %s; it must have the value's type", oly_ops[node->op].name,
                        oly_type_short(&node->type), node->site.file, node->site.line,
                        oly_type_short(&cotangent->type));
    OLY_TRY(lie_as(w->g, node, &cotangent));
    return oly_add_cotangents(w->g, *sum, cotangent, sum);
}

/* Results are collected at their control operation until the walk reaches it. */
static oly_status hand_to_control(walk *w, oly_node *result)
{
    oly_node *control = result->in[0];
    oly_node ***all = &w->results[control->index];
    if (!*all && !(*all = OLY_ARENA_NEW(&w->g->arena, oly_node *, n_results(control) + 1)))
        return oly_out_of_memory(sizeof **all, "a gradient");
    oly_node **one = &(*all)[result->params.dimension];
    return oly_add_cotangents(w->g, *one, w->sum[result->index], one);
}

static oly_status no_rule(const oly_node *node)
{
    return oly_fail(OLY_INVALID,
                    "%s (%s:%d) has no derivative, and the gradient depends on it; put oly_stop_gradient around what "
                    "is to count as constant",
                    node->site.call[0] ? node->site.call : oly_ops[node->op].name, node->site.file, node->site.line);
}

static oly_status step_back(walk *w, oly_node *node)
{
    bool *wanted, any = false;
    oly_node **operands, **in;
    int n_in = node->n_in; /* a loop may get more operands */
    if (node->op == OLY_OP_result)
        return hand_to_control(w, node);
    OLY_ARENA_LIST(&w->g->arena, wanted, n_in);
    OLY_ARENA_LIST(&w->g->arena, operands, n_in);
    OLY_ARENA_LIST(&w->g->arena, in, n_in);
    for (int j = 0; j < node->n_in; j++) {
        wanted[j] = w->active[node->in[j]->index] && oly_differentiable(node->in[j]->type.dtype);
        any = any || wanted[j];
        in[j] = node->in[j];
    }
    if (!any)
        return OLY_OK;
    if (!rules[node->op])
        return no_rule(node);
    oly_rule r = {.g = w->g,
                  .node = node,
                  .cotangents = is_control(node) ? w->results[node->index] : &w->sum[node->index],
                  .wanted = wanted,
                  .operands = operands,
                  .active = w->active,
                  .n_before = w->n};
    rules[node->op](&r);
    OLY_TRY(r.status);
    for (int j = 0; j < n_in; j++)
        if (wanted[j])
            OLY_TRY(accumulate(w, in[j], operands[j]));
    return OLY_OK;
}

static oly_status walk_back(walk *w, int last)
{
    oly_status st = OLY_OK;
    oly_site here = oly_current_site();
    for (int k = last; k >= 0 && st == OLY_OK; k--) {
        oly_node *node = w->g->nodes[k];
        if (!w->active[k] || (!w->sum[k] && !w->results[k]))
            continue;
        oly_restore_site(node->site); /* nodes added for a call carry its line */
        st = step_back(w, node);
    }
    oly_restore_site(here);
    return st;
}

static oly_status gradient_of(oly_graph *g, int n_out, oly_node *const *out, oly_node *const *cotangent, int n_wrt,
                              oly_node *const *wrt, oly_node **gradient)
{
    walk w = {.g = g};
    int last = -1;
    OLY_TRY(prepare(&w, n_wrt, wrt));
    for (int k = 0; k < n_out; k++) {
        OLY_TRY(accumulate(&w, out[k], cotangent[k]));
        last = out[k]->index > last ? out[k]->index : last;
    }
    OLY_TRY(walk_back(&w, last));
    for (int k = 0; k < n_wrt; k++)
        gradient[k] = w.sum[wrt[k]->index];
    return OLY_OK;
}

oly_status oly_gradient(oly_graph *g, int n_out, oly_node *const *out, oly_node *const *cotangent, int n_wrt,
                        oly_node *const *wrt, oly_node **gradient)
{
    g->n_walks++;
    oly_status st = gradient_of(g, n_out, out, cotangent, n_wrt, wrt, gradient);
    if (--g->n_walks > 0 || !g->unsorted)
        return st;
    g->unsorted = false;
    oly_status sorted = oly_graph_sort(g);
    return st == OLY_OK ? sorted : st;
}

/* -- forward mode ---------------------------------------------------------------------------------------------------- */

oly_status oly_zeros_like(oly_graph *g, const oly_node *node, oly_node **zeros)
{
    const oly_type type = node->type;
    OLY_TRY(oly_build_number(g, type.dtype, 0, zeros));
    OLY_TRY(oly_build_convert(g, *zeros, type.dtype, type.weak, zeros));
    OLY_TRY(oly_build_broadcast(g, *zeros, type.rank, type.shape, zeros));
    if (type.varying)
        OLY_TRY(oly_build_vary(g, *zeros, type.mesh, type.varying, zeros));
    if (!type.mesh || !type.mesh->explicit_axes)
        return OLY_OK;
    oly_sharding sharding = oly_type_sharding(&type);
    return sharding ? oly_build_reshard(g, *zeros, sharding, zeros) : OLY_MEMORY;
}

/* A cotangent to differentiate with respect to: zeros that are not recognised as zeros. */
static oly_status placeholder_for(oly_graph *g, const oly_node *node, oly_node **made)
{
    oly_node *zeros;
    OLY_TRY(oly_zeros_like(g, node, &zeros));
    return oly_build_apply(g, OLY_OP_stop_gradient, 1, &zeros, made);
}

oly_status oly_pushforward(oly_graph *g, int n_out, oly_node *const *out, int n_wrt, oly_node *const *wrt,
                           oly_node *const *wrt_tangent, oly_node **tangent)
{
    oly_node **memory = OLY_ARENA_NEW(&g->arena, oly_node *, 2 * n_out + 3 * n_wrt + 1);
    if (!memory)
        return oly_out_of_memory(sizeof *memory, "a derivative");
    oly_node **cotangent = memory, **derivative = memory + 2 * n_out, **pulled = memory + 2 * n_out + n_wrt,
             **direction = memory + 2 * n_out + 2 * n_wrt;
    int n_active = 0, n_pulled = 0;
    oly_node **placeholder = memory + n_out;
    for (int k = 0; k < n_out; k++) {
        tangent[k] = NULL;
        if (!oly_differentiable(out[k]->type.dtype))
            continue;
        OLY_TRY(placeholder_for(g, out[k], &cotangent[k]));
        placeholder[n_active++] = cotangent[k];
    }
    OLY_TRY(oly_gradient(g, n_out, out, cotangent, n_wrt, wrt, derivative));
    for (int k = 0; k < n_wrt; k++)
        if (derivative[k] && wrt_tangent[k]) {
            pulled[n_pulled] = derivative[k];
            direction[n_pulled++] = wrt_tangent[k];
        }
    oly_node **given = OLY_ARENA_NEW(&g->arena, oly_node *, n_active + 1);
    if (!given)
        return oly_out_of_memory(sizeof *given, "a derivative");
    OLY_TRY(oly_gradient(g, n_pulled, pulled, direction, n_active, placeholder, given));
    for (int k = 0, j = 0; k < n_out; k++)
        if (cotangent[k])
            tangent[k] = given[j++];
    return OLY_OK;
}
