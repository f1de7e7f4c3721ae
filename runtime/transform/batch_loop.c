/* SPDX-License-Identifier: BSD-3-Clause */
/* Batching of loops and branches: their bodies are batched in turn. A carry is batched along an axis if its initial value or
 * its value after the body is; this is determined by iterating until nothing changes. Where elements (or devices) disagree
 * about continuing, the loop runs until all have ended, and elements that have ended keep their values; where they disagree
 * about a branch, all branches are computed and each element selects its own. */
#include "transform/batch_rules.h"
#include "graph/build.h"
#include "graph/call.h"
#include <string.h>

/* A loop being batched. */
typedef struct looping {
    oly_batch *b;
    const oly_node *loop;
    const oly_lifted *in; /* carries, captures */
    uint32_t *carried;    /* [n_carry] axes of the carries */
    uint32_t decided;     /* those of the predicate: elements end independently; 0: all together */
} looping;

static int predicate_of(const oly_node *loop)
{
    return loop->params.predicate - 1;
}

/* Varies along the axes; `typed`: a value that it meets has a mesh, so it has to be split as that is. */
static oly_status vary_as(oly_batch *b, oly_lifted *x, uint32_t axes, bool typed)
{
    return typed ? oly_batch_vary_typed(b, x, axes) : oly_batch_vary(b, x, axes);
}

/* Is carry k over a mesh, before the loop or after an iteration? */
static bool is_typed(const looping *l, int k)
{
    return l->in[k].node->type.mesh || l->loop->params.body->outputs[k]->type.mesh;
}

/* -- one graph inside another --------------------------------------------------------------------------------------- */

/* Adds inputs for these values. */
static oly_status add_inputs(oly_graph *g, int n, const oly_lifted *values, oly_lifted *inputs)
{
    for (int k = 0; k < n; k++) {
        inputs[k].axes = values[k].axes;
        OLY_TRY(oly_graph_input(g, &values[k].node->type, &inputs[k].node));
    }
    return OLY_OK;
}

static oly_status set_outputs(oly_graph *g, int n, const oly_lifted *outputs)
{
    for (int k = 0; k < n; k++)
        OLY_TRY(oly_graph_output(g, outputs[k].node));
    return OLY_OK;
}

/* -- effects ------------------------------------------------------------------------------------------------------- */

/* Graphs inside a graph that is computed for all elements cannot see for which of them effects happen. */
static oly_status check_effects(const oly_batch *b, const oly_graph *inner)
{
    if (!b->axes->active || !inner->has_effects)
        return OLY_OK;
    return oly_fail(OLY_INVALID, "a loop or branch that prints, checks or calls back is inside another one in which "
                                 "the elements of a map go different "
                                 "ways; move the print, check or callback out of the inner one");
}

/* b's axes, with effects for the elements that `active` marks; NULL: for all. */
static oly_batch_axes axes_for(const oly_batch *b, const oly_lifted *active)
{
    oly_batch_axes axes = *b->axes;
    axes.active = active;
    return axes;
}

/* -- loops ---------------------------------------------------------------------------------------------------------- */

/* Whether any element continues. */
static oly_status any_of(oly_batch *b, oly_lifted predicate, oly_node **any)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    for (int d = 0; d < oly_batch_lead(predicate.axes); d++)
        p.axes[p.n_axes++] = d;
    return oly_graph_add(b->into, OLY_OP_reduce_or, 1, &predicate.node, &p, any);
}

/* x where the predicate is true, else y. */
static oly_status choose(oly_batch *b, oly_lifted predicate, oly_lifted *x, oly_lifted y)
{
    oly_lifted in[3] = {predicate, *x, y};
    oly_params p;
    memset(&p, 0, sizeof p);
    OLY_TRY(oly_batch_align(b, 3, in));
    p.rank = in[1].node->type.rank;
    memcpy(p.shape, in[1].node->type.shape, sizeof p.shape);
    for (int d = 0; d < oly_batch_lead(in[0].axes); d++)
        p.axes[p.n_axes++] = d;
    if (p.n_axes < p.rank)
        OLY_TRY(oly_graph_add(b->into, OLY_OP_broadcast, 1, &in[0].node, &p, &in[0].node));
    const oly_type type = in[in[1].node->type.mesh ? 1 : 2].node->type;
    if (type.mesh && type.mesh->explicit_axes && !oly_type_same_sharding(&type, &in[0].node->type)) {
        oly_sharding sharding = oly_type_sharding(&type); /* the program does not place its condition */
        OLY_TRY(sharding ? oly_build_reshard(b->into, in[0].node, sharding, &in[0].node) : OLY_MEMORY);
    }
    return oly_batch_apply(b, OLY_OP_select, 3, in, &(oly_params){0}, x);
}

/* The body; its new carries have the axes made[]. */
static oly_status fill_body(const looping *l, oly_graph *g, uint32_t *made)
{
    const oly_graph *inner = l->loop->params.body;
    oly_batch within = {.into = g, .axes = l->b->axes};
    oly_lifted *inputs, *outputs;
    int n = l->loop->params.n_carry;
    OLY_ARENA_LIST(&g->arena, inputs, inner->n_inputs);
    OLY_ARENA_LIST(&g->arena, outputs, inner->n_outputs + 1);
    OLY_TRY(oly_graph_input(g, &inner->inputs[0]->type, &inputs[0].node));
    inputs[0].axes = 0;
    OLY_TRY(add_inputs(g, n, l->in, inputs + 1));
    oly_node *unused;
    if (l->decided) /* whether any continues: an additional carry */
        OLY_TRY(oly_graph_input(g, &(oly_type){.dtype = OLY_BOOL}, &unused));
    OLY_TRY(add_inputs(g, inner->n_inputs - 1 - n, l->in + n, inputs + 1 + n));
    OLY_TRY(check_effects(l->b, inner));
    const oly_batch_axes axes = axes_for(l->b, l->decided ? &inputs[1 + predicate_of(l->loop)] : NULL);
    OLY_TRY(oly_batch_graph(g, &axes, inner, inputs, outputs));
    for (int k = 0; k < n; k++) {
        if (l->decided)
            OLY_TRY(choose(&within, inputs[1 + predicate_of(l->loop)], &outputs[k], inputs[1 + k]));
        made[k] = outputs[k].axes;
        OLY_TRY(vary_as(&within, &outputs[k], l->carried[k], is_typed(l, k)));
    }
    if (l->decided) {
        oly_lifted on, both[2] = {outputs[predicate_of(l->loop)], inputs[1 + predicate_of(l->loop)]};
        OLY_TRY(oly_batch_align(&within, 2, both)); /* while axes are being determined they may have others */
        OLY_TRY(oly_batch_apply(&within, OLY_OP_min, 2, both, &(oly_params){0}, &on));
        outputs[predicate_of(l->loop)] = on; /* an element that has ended stays so */
        OLY_TRY(any_of(&within, on, &outputs[n].node));
        n++;
    }
    return set_outputs(g, n, outputs);
}

static oly_status batch_body(const looping *l, oly_graph **body, uint32_t *made)
{
    *body = oly_graph_new(l->loop->params.body->name);
    if (!*body)
        return OLY_MEMORY;
    oly_status st = fill_body(l, *body, made);
    if (st != OLY_OK) {
        oly_graph_free(*body);
        *body = NULL;
    }
    return st;
}

static oly_status add_loop(const looping *l, oly_graph *body, oly_node **loop)
{
    oly_params p = l->loop->params;
    oly_node **operands;
    int n = 0;
    OLY_ARENA_LIST(&l->b->into->arena, operands, l->loop->n_in + 1);
    for (int k = 0; k < l->loop->n_in; k++) {
        operands[n++] = l->in[k].node;
        if (l->decided && k == p.n_carry - 1)
            OLY_TRY(any_of(l->b, l->in[predicate_of(l->loop)], &operands[n++]));
    }
    p.body = body;
    if (l->decided) {
        p.n_carry++;
        p.predicate = p.n_carry;
    }
    return oly_graph_add(l->b->into, l->loop->op, n, operands, &p, loop);
}

/* One iteration; *more: a carry has more axes than assumed. */
static oly_status round_of(looping *l, oly_lifted *in, uint32_t *made, bool *more, oly_node **loop)
{
    oly_graph *body;
    int n = l->loop->params.n_carry;
    for (int k = 0; k < n; k++)
        OLY_TRY(vary_as(l->b, &in[k], l->carried[k], is_typed(l, k)));
    l->decided = l->loop->params.predicate ? l->carried[predicate_of(l->loop)] : 0;
    OLY_TRY(batch_body(l, &body, made));
    *more = false;
    for (int k = 0; k < n; k++) {
        *more = *more || (made[k] & ~l->carried[k]);
        l->carried[k] |= made[k];
    }
    oly_status st = *more ? OLY_OK : add_loop(l, body, loop);
    if (*more || st != OLY_OK)
        oly_graph_free(body);
    return st;
}

oly_status oly_batching_loop(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    int n = node->params.n_carry;
    uint32_t *carried = OLY_ARENA_NEW(&b->into->arena, uint32_t, 2 * n + 1);
    oly_lifted *results = OLY_ARENA_NEW(&b->into->arena, oly_lifted, n + 1);
    if (!carried || !results)
        return oly_out_of_memory(sizeof *carried * (size_t)n, "a loop");
    for (int k = 0; k < n; k++)
        carried[k] = in[k].axes;
    looping l = {b, node, in, carried, 0};
    for (bool more = true; more;)
        OLY_TRY(round_of(&l, in, carried + n, &more, &out->node));
    for (int k = 0; k < n; k++)
        results[k] = (oly_lifted){out->node, carried[k]};
    b->results[node->index] = results;
    return OLY_OK;
}

/* -- branches ------------------------------------------------------------------------------------------------------- */

/* Has result j of any branch a mesh? */
static bool is_result_typed(const oly_node *node, int j)
{
    for (int k = 0; k < node->params.n_branches; k++)
        if (node->params.branches[k]->outputs[j]->type.mesh)
            return true;
    return false;
}

/* Batches each branch; the results vary along the union of the axes of all branches. */
static oly_status batch_branches(oly_batch *b, const oly_node *node, const oly_lifted *in, oly_graph **graphs,
                                 oly_lifted *results)
{
    int n_branches = node->params.n_branches, n = node->params.branches[0]->n_outputs;
    oly_lifted *outputs = OLY_ARENA_NEW(&b->into->arena, oly_lifted, n * n_branches + 1);
    if (!outputs)
        return oly_out_of_memory(sizeof *outputs * (size_t)n, "the branches");
    for (int k = 0; k < n_branches; k++) {
        oly_lifted *inputs;
        OLY_ARENA_LIST(&b->into->arena, inputs, node->n_in);
        if (!(graphs[k] = oly_graph_new(node->params.branches[k]->name)))
            return OLY_MEMORY;
        OLY_TRY(add_inputs(graphs[k], node->n_in - 1, in + 1, inputs));
        OLY_TRY(check_effects(b, node->params.branches[k]));
        OLY_TRY(oly_batch_graph(graphs[k], b->axes, node->params.branches[k], inputs, outputs + k * n));
        for (int j = 0; j < n; j++)
            results[j].axes |= outputs[k * n + j].axes;
    }
    for (int k = 0; k < n_branches; k++) {
        oly_batch within = {.into = graphs[k], .axes = b->axes};
        for (int j = 0; j < n; j++)
            OLY_TRY(vary_as(&within, &outputs[k * n + j], results[j].axes, is_result_typed(node, j)));
        OLY_TRY(set_outputs(graphs[k], n, outputs + k * n));
    }
    return OLY_OK;
}

static oly_status one_branch(oly_batch *b, const oly_node *node, const oly_lifted *in, oly_lifted *results)
{
    oly_node **operands, *made;
    oly_params p = node->params;
    OLY_ARENA_LIST(&b->into->arena, operands, node->n_in);
    oly_graph **graphs = OLY_ARENA_NEW(&b->into->arena, oly_graph *, p.n_branches);
    if (!graphs)
        return oly_out_of_memory(sizeof *graphs * (size_t)p.n_branches, "the branches");
    for (int k = 0; k < node->n_in; k++)
        operands[k] = in[k].node;
    p.branches = graphs;
    oly_status st = batch_branches(b, node, in, graphs, results);
    if (st == OLY_OK)
        st = oly_graph_add(b->into, node->op, node->n_in, operands, &p, &made);
    for (int k = 0; st != OLY_OK && k < p.n_branches; k++)
        oly_graph_free(graphs[k]);
    for (int j = 0; st == OLY_OK && j < p.branches[0]->n_outputs; j++)
        results[j].node = made;
    return st;
}

/* Compares the index with branch k. */
static oly_status is_branch(oly_batch *b, oly_lifted index, int k, oly_lifted *is)
{
    oly_node *both[2] = {index.node, NULL};
    OLY_TRY(oly_build_number(b->into, index.node->type.dtype, k, &both[1]));
    OLY_TRY(oly_build_broadcast(b->into, both[1], index.node->type.rank, index.node->type.shape, &both[1]));
    is->axes = index.axes;
    return oly_graph_add(b->into, OLY_OP_le, 2, both, NULL, &is->node);
}

static oly_status both(oly_batch *b, oly_lifted *x, oly_lifted y)
{
    oly_lifted in[2] = {*x, y};
    OLY_TRY(oly_batch_align(b, 2, in));
    return oly_batch_apply(b, OLY_OP_and, 2, in, &(oly_params){0}, x);
}

/* The elements that take branch k. */
static oly_status takers_of(oly_batch *b, oly_lifted index, int k, int last, oly_lifted *active)
{
    if (k < last)
        OLY_TRY(is_branch(b, index, k, active));
    if (k > 0) {
        oly_lifted before;
        OLY_TRY(is_branch(b, index, k - 1, &before));
        OLY_TRY(oly_graph_add(b->into, OLY_OP_logical_not, 1, &before.node, NULL, &before.node));
        if (k == last)
            *active = before;
        else
            OLY_TRY(both(b, active, before));
    }
    return b->axes->active ? both(b, active, *b->axes->active) : OLY_OK;
}

/* From the last branch to the first: elements whose index is at most k take branch k. An index out of range selects the nearest. */
static oly_status every_branch(oly_batch *b, const oly_node *node, const oly_lifted *in, oly_lifted *results)
{
    oly_lifted *outputs, is;
    OLY_ARENA_LIST(&b->into->arena, outputs, node->params.branches[0]->n_outputs);
    for (int k = node->params.n_branches - 1; k >= 0; k--) {
        const oly_graph *branch = node->params.branches[k];
        bool last = k == node->params.n_branches - 1;
        oly_lifted some;
        const oly_lifted *active = branch->has_effects ? b->axes->active : NULL;
        if (branch->has_effects && node->params.n_branches > 1) { /* all elements take the only branch */
            OLY_TRY(takers_of(b, in[0], k, node->params.n_branches - 1, &some));
            active = &some;
        }
        const oly_batch_axes axes = axes_for(b, active);
        OLY_TRY(oly_batch_graph(b->into, &axes, branch, in + 1, last ? results : outputs));
        if (last)
            continue;
        OLY_TRY(is_branch(b, in[0], k, &is));
        for (int j = 0; j < branch->n_outputs; j++) {
            OLY_TRY(choose(b, is, &outputs[j], results[j]));
            results[j] = outputs[j];
        }
    }
    return OLY_OK;
}

oly_status oly_batching_branch(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    oly_lifted *results;
    OLY_ARENA_LIST(&b->into->arena, results, node->params.branches[0]->n_outputs);
    b->results[node->index] = results;
    out->node = in[0].node; /* never read: results are taken out by result nodes */
    return in[0].axes ? every_branch(b, node, in, results) : one_branch(b, node, in, results);
}

/* -- functions with derivatives of their own ------------------------------------------------------------------------ */

/* Inputs like those of the graph, of values that vary along the axes. */
static oly_status add_varying(oly_batch *b, oly_graph *g, int n, oly_node *const *like, uint32_t axes,
                              oly_lifted *inputs)
{
    for (int k = 0; k < n; k++) {
        oly_type type = like[k]->type;
        int lead = oly_batch_lead(axes);
        if (type.rank + lead > OLY_MAX_RANK)
            return oly_fail(OLY_SHAPE,
                            "%s inside of a mapped function would have %d dimensions; arrays have at most %d",
                            oly_type_short(&type), type.rank + lead, OLY_MAX_RANK);
        memmove(type.shape + lead, type.shape, sizeof *type.shape * (size_t)type.rank);
        memmove(type.axes + lead, type.axes, sizeof *type.axes * (size_t)type.rank);
        type.rank += lead;
        for (int a = 0; a < OLY_MAX_RANK; a++)
            if (axes >> a & 1) {
                type.shape[oly_batch_place(axes, a)] = b->axes->size[a];
                type.axes[oly_batch_place(axes, a)] = type.mesh ? b->axes->split : (oly_axis_list){0};
            }
        if (b->axes->mesh) {
            type.mesh = type.mesh && b->axes->mesh->explicit_axes ? b->axes->mesh : NULL;
            type.varying &= ~axes;
        }
        inputs[k].axes = axes;
        OLY_TRY(oly_graph_input(g, &type, &inputs[k].node));
    }
    return OLY_OK;
}

/* The graph on values that all vary along the axes; like: of its inputs, NULL: made. */
static oly_status batch_all(oly_batch *b, const oly_graph *from, uint32_t axes, const oly_lifted *like, oly_graph *g)
{
    oly_lifted *inputs, *outputs;
    oly_batch within = {.into = g, .axes = b->axes};
    const oly_batch_axes all = axes_for(b, NULL);
    OLY_ARENA_LIST(&g->arena, inputs, from->n_inputs);
    OLY_ARENA_LIST(&g->arena, outputs, from->n_outputs);
    OLY_TRY(like ? add_inputs(g, from->n_inputs, like, inputs)
                 : add_varying(b, g, from->n_inputs, from->inputs, axes, inputs));
    OLY_TRY(oly_batch_graph(g, &all, from, inputs, outputs));
    for (int k = 0; k < from->n_outputs; k++)
        OLY_TRY(oly_batch_vary(&within, &outputs[k], axes));
    return set_outputs(g, from->n_outputs, outputs);
}

static oly_status batch_custom(oly_batch *b, const oly_node *node, const oly_lifted *in, oly_graph **graphs,
                               oly_node **made)
{
    oly_node **operands;
    oly_params p = node->params;
    OLY_ARENA_LIST(&b->into->arena, operands, node->n_in);
    for (int k = 0; k < 2; k++)
        if (!(graphs[k] = oly_graph_new(p.branches[k]->name)))
            return OLY_MEMORY;
    OLY_TRY(batch_all(b, p.branches[0], in[0].axes, in, graphs[0]));
    OLY_TRY(batch_all(b, p.branches[1], in[0].axes, NULL, graphs[1]));
    for (int k = 0; k < node->n_in; k++)
        operands[k] = in[k].node;
    p.branches = graphs;
    return oly_graph_add(b->into, node->op, node->n_in, operands, &p, made);
}

oly_status oly_batching_custom(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    oly_lifted *results;
    oly_graph *graphs[2] = {NULL, NULL};
    OLY_ARENA_LIST(&b->into->arena, results, node->params.n_carry);
    OLY_TRY(oly_batch_align(b, node->n_in, in));
    oly_status st = batch_custom(b, node, in, graphs, &out->node);
    for (int k = 0; st != OLY_OK && k < 2; k++)
        oly_graph_free(graphs[k]);
    for (int k = 0; st == OLY_OK && k < node->params.n_carry; k++)
        results[k] = (oly_lifted){out->node, in[0].axes};
    b->results[node->index] = results;
    return st;
}

oly_status oly_batching_result(oly_batch *b, const oly_node *node, oly_lifted *in, oly_lifted *out)
{
    (void)in;
    *out = b->results[node->in[0]->index][node->params.dimension];
    if (oly_graph_results(out->node) < 0)
        return OLY_OK; /* of branches that were all computed */
    return oly_graph_add(b->into, node->op, 1, &out->node, &node->params, &out->node);
}
