/* SPDX-License-Identifier: BSD-3-Clause */
/* The units: products, reductions, convolutions, lookups and fused groups, each with one layout. Everything else is
 * left as it is: a value that another operation reads, or that the program has placed, stays where propagation placed
 * it. See chooser.h. */
#include "plan/choose/chooser.h"
#include "plan/partition/cut_product.h"
#include "plan/partition/partition.h"
#include <stdlib.h>
#include <string.h>

#define NEW(c, type, count) OLY_ARENA_NEW((c)->arena, type, count)

static oly_value *value_of(const oly_chooser *c, const oly_node *n)
{
    return oly_value_of(c->f, n);
}

static bool is_loop(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_LOOP;
}

/* -- units --------------------------------------------------------------------------------------------------------- */

oly_unit *oly_new_unit(oly_chooser *c, oly_unit_kind kind, oly_node *n)
{
    oly_unit *u = &c->units[c->n_units];
    *u = (oly_unit){.kind = kind, .node = n, .trusted = true, .first_read = c->n_reads};
    c->unit_of[n->index] = c->n_units++;
    return u;
}

/* Every device can have as much of a constant as it needs, whatever its propagated layout. */
static bool add_constant(oly_chooser *c, oly_unit *u, const oly_node *in, oly_unit_read *r)
{
    for (int d = 0; d < OLY_MAX_RANK; d++)
        r->to[d] = r->from[d] = d < in->type.rank ? (int8_t)d : -1;
    r->root = in;
    r->owner = c;
    r->entry = in->index;
    r->previous = -1;
    r->fixed = oly_cuts_of(value_of(c, in)->axes, in->type.rank);
    c->n_reads++;
    u->n_reads++;
    return true;
}

/* Adds one operand. Values that are read in two different ways are not modelled. */
bool oly_add_unit_read(oly_chooser *c, oly_unit *u, const oly_node *in, int operand)
{
    oly_unit_read *r = &c->reads[c->n_reads];
    *r = (oly_unit_read){.source = -1, .operand = operand, .unit = c->n_units - 1};
    if (oly_is_constant(in) && u->kind == OLY_UNIT_GROUP)
        return true;
    bool clear = oly_trace_read(c, in, r);
    if (r->shift && u->kind != OLY_UNIT_GROUP)
        return false;
    r->anywhere = oly_is_constant(r->root);
    if (r->anywhere)
        return clear && (u->kind == OLY_UNIT_GROUP || (u->kind != OLY_UNIT_REDUCE && add_constant(c, u, in, r)));
    r->source = r->owner == c ? c->unit_of[r->root->index] : -1;
    for (int k = u->first_read; k < c->n_reads; k++)
        if (u->kind == OLY_UNIT_GROUP && c->reads[k].root == r->root && c->reads[k].shift == r->shift &&
            (r->shift == 0 || c->reads[k].rolled == r->rolled) && memcmp(c->reads[k].to, r->to, sizeof r->to) == 0)
            return clear;
    if (c->n_reads == c->read_capacity)
        return false;
    r->previous = c->last_read[r->entry];
    c->last_read[r->entry] = c->n_reads++;
    c->n_readers[r->entry]++;
    u->n_reads++;
    return clear && oly_placed_now(r->owner, r->root, &r->fixed);
}

/* Notes a value of a graph around, as this one reads it whatever is decided. */
static void need(oly_chooser *c, const oly_unit_read *r, bool known, oly_cuts cuts)
{
    if (c->n_needs < c->need_capacity)
        c->needs[c->n_needs++] = (oly_outer_need){r->owner, r->root, known, cuts};
}

/* A value that is read in an unknown way stays where it is. */
static void pin_root(oly_chooser *c, const oly_node *root)
{
    c->elsewhere[root->index] = true;
    if (c->unit_of[root->index] >= 0)
        c->units[c->unit_of[root->index]].pinned = true;
}

static void pin(oly_chooser *c, const oly_node *n)
{
    oly_unit_read r;
    oly_trace_read(c, n, &r);
    c->elsewhere[r.entry] = true;
    if (r.owner == c)
        pin_root(c, r.root);
    else
        need(c, &r, false, 0);
}

static bool in_group(const oly_chooser *c, const oly_group *g, const oly_node *n)
{
    return value_of(c, n)->group == (int)(g - c->f->groups);
}

static double elements(const oly_node *n)
{
    return (double)oly_type_size(&n->type);
}

/* Will the group, or one that continues its values, be written into another array? Then it is split as that array. */
static bool is_written(const oly_chooser *c, const oly_group *g)
{
    for (int chain = 0; g && chain < OLY_LONGEST_CHAIN; chain++) {
        for (int k = 0; k < g->n_nodes; k++)
            if (value_of(c, g->nodes[k])->written_by)
                return true;
        g = g->next >= 0 ? &c->f->groups[g->next] : NULL;
    }
    return false;
}

/* Adds a group, or one node of a group that is split into units. */
static void add_tile(oly_chooser *c, oly_node *first)
{
    oly_group *g = &c->f->groups[value_of(c, first)->group];
    oly_node *last = g->nodes[g->n_nodes - 1], *const *nodes = g->nodes;
    bool alone = c->split && c->split[g - c->f->groups];
    int n_nodes = alone ? 1 : g->n_nodes;
    if (alone)
        nodes = &first;
    oly_unit *u = oly_new_unit(c, OLY_UNIT_GROUP, nodes[n_nodes - 1]);
    u->group = alone ? NULL : g;
    u->trusted = !is_written(c, g);
    double bytes = 0;
    for (int k = 0; k < n_nodes; k++) {
        oly_node *n = nodes[k];
        const oly_value *v = value_of(c, n);
        c->unit_of[n->index] = c->unit_of[u->node->index];
        u->pinned = u->pinned || v->closed;
        for (int j = 0; j < n->n_in; j++) {
            if (!alone && in_group(c, g, n->in[j]))
                continue;
            u->trusted = oly_add_unit_read(c, u, n->in[j], 0) && u->trusted;
            bytes += in_group(c, g, n->in[j]) ? 0 : (double)oly_dtype_size(n->in[j]->type.dtype);
        }
    }
    bytes += alone && u->node != last ? 0 : (double)oly_dtype_size(last->type.dtype);
    double memory = oly_cost_memory(bytes * elements(last)), work = oly_cost_operations(elements(last) * n_nodes);
    u->work = memory > work ? memory : work;
    u->greedy.work = u->greedy.wanted = u->greedy.placed = oly_cuts_of(value_of(c, last)->axes, last->type.rank);
}

oly_cuts oly_greedy_placement(const oly_chooser *c, const oly_unit_read *r)
{
    return r->source >= 0 ? c->units[r->source].greedy.placed : r->fixed;
}

static void map_operand(const oly_unit *u, oly_unit_read *r)
{
    const oly_contraction *product = u->product;
    memset(r->free, -1, sizeof r->free);
    memset(r->pair, -1, sizeof r->pair);
    for (int e = 0; e < u->node->in[r->operand]->type.rank; e++)
        if (u->dims->result[r->operand][e] >= 0)
            r->free[u->dims->result[r->operand][e]] = r->to[e];
    for (int k = 0; k < product->n_contract; k++)
        r->pair[k] = r->to[product->contract[r->operand][k]];
}

static oly_status add_contract(oly_chooser *c, oly_node *n)
{
    oly_unit *u = oly_new_unit(c, OLY_UNIT_CONTRACT, n);
    oly_contraction_dims *dims = NEW(c, oly_contraction_dims, 1);
    OLY_PLAN_CHECK(dims);
    OLY_TRY(oly_contraction_read(&n->in[0]->type, &n->in[1]->type, &n->params.contraction, dims));
    u->dims = dims;
    u->product = &n->params.contraction;
    u->pinned = value_of(c, n)->closed;
    u->greedy.wanted = oly_cuts_of(value_of(c, n)->axes, n->type.rank);
    for (int o = 0; o < 2; o++)
        u->trusted = oly_add_unit_read(c, u, n->in[o], o) && u->trusted;
    if (u->n_reads < 2 || !u->trusted) {
        u->trusted = false;
        return OLY_OK;
    }
    for (int o = 0; o < 2; o++)
        map_operand(u, &c->reads[u->first_read + o]);
    oly_layout operand[2], out = oly_cuts_layout(c, &n->type, u->greedy.wanted);
    double inner = 1;
    for (int o = 0; o < 2; o++) {
        const oly_unit_read *r = &c->reads[u->first_read + o];
        operand[o] = oly_cuts_layout(c, &n->in[o]->type, oly_cuts_mapped(c->mesh, oly_greedy_placement(c, r), r->from));
    }
    oly_axis_list summed;
    oly_cut_product(c->p, n, operand, &out, &summed);
    u->greedy.work = oly_layout_cuts(&out);
    oly_axis_list pairs[OLY_MAX_RANK];
    for (int k = 0; k < n->params.contraction.n_contract; k++) {
        pairs[k] = operand[0].split[n->params.contraction.contract[0][k]].axes;
        inner *= (double)n->in[0]->type.shape[n->params.contraction.contract[0][k]];
    }
    u->greedy.summed = oly_cuts_of(pairs, n->params.contraction.n_contract);
    oly_settle_sum(c, u, &u->greedy);
    u->work = oly_cost_gemm(n->type.dtype, elements(n) * inner);
    return OLY_OK;
}

static oly_status add_convolution(oly_chooser *c, oly_node *n)
{
    oly_unit *u = oly_new_unit(c, OLY_UNIT_CONTRACT, n);
    u->pinned = value_of(c, n)->closed;
    u->greedy.wanted = oly_cuts_of(value_of(c, n)->axes, n->type.rank);
    for (int o = 0; o < 2; o++)
        u->trusted = oly_add_unit_read(c, u, n->in[o], o) && u->trusted;
    u->trusted = u->trusted && u->n_reads == 2;
    if (!u->trusted)
        return OLY_OK;
    oly_cuts placed[2];
    for (int o = 0; o < 2; o++) {
        const oly_unit_read *r = &c->reads[u->first_read + o];
        placed[o] = oly_cuts_mapped(c->mesh, oly_greedy_placement(c, r), r->from);
    }
    OLY_TRY(oly_convolution_unit(c, u, placed));
    for (int o = 0; o < 2; o++)
        map_operand(u, &c->reads[u->first_read + o]);
    return OLY_OK;
}

void oly_reduction_cuts(const oly_chooser *c, const oly_unit *u, oly_cuts operand, oly_decision *d)
{
    int8_t kept[OLY_MAX_RANK], reduced[OLY_MAX_RANK];
    int rank = u->node->in[0]->type.rank, to = 0;
    memset(kept, -1, sizeof kept);
    memset(reduced, -1, sizeof reduced);
    for (int e = 0; e < rank; e++)
        *(oly_has_axis(u->node, e) ? &reduced[e] : &kept[e]) = (int8_t)(oly_has_axis(u->node, e) ? e : to++);
    d->work = oly_cuts_mapped(c->mesh, operand, kept);
    d->summed = oly_cuts_mapped(c->mesh, operand, reduced);
}

static void add_reduce(oly_chooser *c, oly_node *n)
{
    oly_unit *u = oly_new_unit(c, OLY_UNIT_REDUCE, n);
    u->pinned = value_of(c, n)->closed;
    u->trusted = oly_add_unit_read(c, u, n->in[0], 0);
    if (u->n_reads < 1 || !u->trusted) {
        u->trusted = false;
        return;
    }
    const oly_unit_read *r = &c->reads[u->first_read];
    oly_reduction_cuts(c, u, oly_cuts_mapped(c->mesh, oly_greedy_placement(c, r), r->from), &u->greedy);
    u->greedy.wanted = oly_cuts_of(value_of(c, n)->axes, n->type.rank);
    oly_settle_sum(c, u, &u->greedy);
    u->work = oly_cost_memory(elements(n->in[0]) * (double)oly_dtype_size(n->type.dtype));
}

/* -- demands ------------------------------------------------------------------------------------------------------- */

static void demand_root(oly_chooser *c, const oly_node *root, oly_cuts cuts)
{
    int k = c->unit_of[root->index];
    oly_unit *u = k >= 0 ? &c->units[k] : NULL;
    oly_unit_want wanted = {root, cuts};
    for (int j = 0; !u && j < c->n_brought; j++)
        if (c->brought[j].node == root && c->brought[j].cuts == cuts)
            return;
    if (u ? u->n_demands == OLY_CHOOSE_WANTS : c->n_brought == c->brought_capacity)
        pin_root(c, root);
    else if (u)
        u->demand[u->n_demands++] = wanted;
    else
        c->brought[c->n_brought++] = wanted;
}

/* A reader with a fixed layout needs the value like this. */
static void demand(oly_chooser *c, const oly_node *n, oly_cuts cuts)
{
    oly_unit_read r;
    if (oly_is_constant(n))
        return;
    if (!oly_trace_read(c, n, &r))
        pin(c, n);
    else if (r.owner == c)
        demand_root(c, r.root, oly_cuts_mapped(c->mesh, cuts, r.to));
    else
        need(c, &r, true, oly_cuts_mapped(c->mesh, cuts, r.to));
}

const oly_node *oly_result_node(const oly_frame *f, const oly_node *n, int k)
{
    for (int j = n->index + 1; j < f->graph->n_nodes; j++) {
        const oly_node *r = f->graph->nodes[j];
        if (oly_ops[r->op].lowering == OLY_LOWER_RESULT && r->in[0] == n && r->params.dimension == k)
            return r;
    }
    return NULL;
}

/* Demands of what a body returns: the next carries, or the results of branches. */
static void demand_given(oly_chooser *c)
{
    const oly_graph *g = c->f->graph;
    for (int k = 0; k < g->n_outputs; k++) {
        const oly_node *result = c->carries ? NULL : oly_result_node(c->f->outer, c->f->loop, k);
        if (c->carries && k < c->f->loop->params.n_carry)
            demand(c, g->outputs[k], c->carries[k]);
        else if (result)
            demand(c, g->outputs[k], oly_cuts_of(value_of(c->outer, result)->axes, result->type.rank));
    }
}

static void demand_outputs(oly_chooser *c)
{
    if (c->outer) {
        demand_given(c);
        return;
    }
    for (int k = 0; k < c->f->graph->n_outputs; k++) {
        oly_node *n = c->f->graph->outputs[k];
        oly_sharding s = c->p->request->outputs ? c->p->request->outputs[k] : NULL;
        if (s && s->mesh != c->mesh)
            pin(c, n);
        else
            demand(c, n,
                   s ? oly_cuts_of(s->spec.dim, s->spec.n_dims) : oly_cuts_of(value_of(c, n)->axes, n->type.rank));
    }
}

/* What the bodies inside this graph read of it. */
static void look_into(oly_chooser *c, const oly_chooser *body)
{
    for (int k = 0; k < body->n_needs; k++) {
        const oly_outer_need *need = &body->needs[k];
        if (need->owner == c && need->known)
            demand_root(c, need->root, need->cuts);
        else if (need->owner == c)
            pin_root(c, need->root);
    }
    for (const oly_chooser *child = body->first_child; child; child = child->next)
        look_into(c, child);
}

static void look_at_operands(oly_chooser *c, const oly_node *n)
{
    const oly_frame *body = c->f->bodies[n->index];
    oly_cuts cuts;
    for (int j = 0; j < n->n_in; j++) {
        bool captured = body && j >= (is_loop(n) ? n->params.n_carry : 1);
        if (captured && body->chooser->unit_of)
            continue; /* the bodies say how */
        if (oly_is_placed(n) && oly_placed_fixed(c, n, &cuts))
            demand(c, n->in[j], cuts);
        else if (body && !captured && is_loop(n))
            demand(c, n->in[j], body->chooser->carries[j]);
        else
            pin(c, n->in[j]);
    }
}

/* Which values have readers other than cyclic shifts that are read through, with their slices. */
static oly_status note_whole_reads(const oly_chooser *c, bool **read)
{
    const oly_graph *g = c->f->graph;
    *read = NEW(c, bool, g->n_nodes + 1);
    OLY_PLAN_CHECK(*read);
    for (int k = 0; k < g->n_nodes; k++)
        for (int j = 0; j < g->nodes[k]->n_in && !c->f->values[k].rolled; j++)
            (*read)[g->nodes[k]->in[j]->index] = true;
    for (int k = 0; k < g->n_outputs; k++)
        (*read)[g->outputs[k]->index] = true;
    return OLY_OK;
}

/* Readers that are no units. */
static oly_status look_at_readers(oly_chooser *c)
{
    bool *read = NULL;
    if (c->has_rolls)
        OLY_TRY(note_whole_reads(c, &read));
    for (int k = 0; k < c->f->graph->n_nodes; k++) {
        oly_graph_ahead(c->f->graph, k, 1);
        oly_node *n = c->f->graph->nodes[k];
        int unit = c->unit_of[k];
        int8_t from[OLY_MAX_RANK];
        if ((unit >= 0 && c->units[unit].trusted) || (oly_looks_through(n, from) && oly_is_clear(n)) ||
            oly_ops[n->op].lowering == OLY_LOWER_RESULT || c->f->values[k].rolled ||
            (read && !read[k] && oly_ops[n->op].lowering == OLY_LOWER_VIEW))
            continue;
        look_at_operands(c, n);
    }
    demand_outputs(c);
    for (const oly_chooser *child = c->first_child; child; child = child->next)
        look_into(c, child);
    return OLY_OK;
}

void oly_note_needs(oly_chooser *c, const oly_decision *decided)
{
    c->n_needs = c->n_fixed_needs;
    for (int k = 0; k < c->n_units; k++) {
        const oly_unit *u = &c->units[k];
        for (int j = 0; j < u->n_reads && u->trusted; j++) {
            const oly_unit_read *r = &c->reads[u->first_read + j];
            bool known = u->kind != OLY_UNIT_REDUCE;
            if (r->owner != c)
                need(c, r, known, known ? oly_read_needs(c, u, r, decided ? &decided[k] : &u->greedy) : 0);
        }
    }
}

/* The layouts in which its readers would read a unit are worth trying. */
static void note_wants(oly_chooser *c)
{
    for (int k = 0; k < c->n_units; k++) {
        const oly_unit *u = &c->units[k];
        for (int j = 0; j < u->n_reads && u->trusted && u->kind != OLY_UNIT_REDUCE; j++) {
            const oly_unit_read *r = &c->reads[u->first_read + j];
            oly_unit *source = r->source >= 0 ? &c->units[r->source] : NULL;
            if (source && source->n_wants < OLY_CHOOSE_WANTS)
                source->wants[source->n_wants++] = oly_read_needs(c, u, r, &u->greedy);
        }
    }
}

/* -- all units ----------------------------------------------------------------------------------------------------- */

static bool makes_unit(const oly_chooser *c, const oly_node *n)
{
    switch (oly_ops[n->op].lowering) {
    case OLY_LOWER_TILE: return value_of(c, n)->group >= 0;
    case OLY_LOWER_REDUCE:
    case OLY_LOWER_CONTRACT: return true;
    case OLY_LOWER_WINDOW: return oly_is_convolution(n);
    case OLY_LOWER_LOCAL: return oly_is_lookup(c, n);
    default: return false;
    }
}

/* The nodes by depth (fusion.c): in this order units come after what they read. */
static oly_status order_nodes(oly_chooser *c, int **order)
{
    int n = c->f->graph->n_nodes, deepest = 0;
    for (int k = 0; k < n; k++)
        deepest = c->f->values[k].depth > deepest ? c->f->values[k].depth : deepest;
    int *begin = NEW(c, int, deepest + 2);
    *order = NEW(c, int, n + 1);
    OLY_PLAN_CHECK(begin ? *order : NULL);
    for (int k = 0; k < n; k++)
        begin[c->f->values[k].depth + 1]++;
    for (int d = 0; d <= deepest; d++)
        begin[d + 1] += begin[d];
    for (int k = 0; k < n; k++)
        (*order)[begin[c->f->values[k].depth]++] = k;
    return OLY_OK;
}

/* Are all carries in sight placed as propagation has them? */
static bool carries_as_propagated(const oly_chooser *c)
{
    bool same = !c->outer || c->outer->as_propagated;
    for (int k = 0; c->carries && k < c->f->loop->params.n_carry; k++)
        same = same && c->carries[k] == c->propagated[k];
    for (const oly_chooser *child = c->first_child; child; child = child->next)
        for (int k = 0; child->carries && k < child->f->loop->params.n_carry; k++)
            same = same && child->carries[k] == child->propagated[k];
    return same;
}

static oly_status make_room(oly_chooser *c, int n_units, int n_reads)
{
    int n_nodes = c->f->graph->n_nodes, most = n_reads + c->f->graph->n_outputs;
    c->units = NEW(c, oly_unit, n_units + 1);
    c->reads = NEW(c, oly_unit_read, n_reads + 1);
    c->unit_of = NEW(c, int, n_nodes + 1);
    c->last_read = NEW(c, int, n_nodes + 1);
    c->n_readers = NEW(c, int, n_nodes + 1);
    c->elsewhere = NEW(c, bool, n_nodes + 1);
    OLY_PLAN_CHECK(c->units && c->reads && c->elsewhere && c->last_read && c->n_readers ? c->unit_of : NULL);
    c->read_capacity = n_reads;
    c->brought_capacity = most < OLY_CHOOSE_BROUGHT ? most : OLY_CHOOSE_BROUGHT;
    c->brought = NEW(c, oly_unit_want, c->brought_capacity + 1);
    OLY_PLAN_CHECK(c->brought);
    if (c->outer && !c->needs) {
        c->need_capacity = 2 * most + 1; /* each operand once in the graph, once in what is decided */
        c->needs = NEW(c, oly_outer_need, c->need_capacity);
        OLY_PLAN_CHECK(c->needs);
    }
    for (int k = 0; k < n_nodes; k++)
        c->unit_of[k] = c->last_read[k] = -1;
    c->n_units = c->n_reads = c->n_brought = c->n_needs = 0;
    c->as_propagated = carries_as_propagated(c);
    return OLY_OK;
}

oly_status oly_find_units(oly_chooser *c)
{
    const oly_graph *g = c->f->graph;
    int *order, n_units = 0, n_reads = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph_ahead(g, k, 1);
        const oly_node *n = g->nodes[k];
        n_reads += n->n_in;
        if (makes_unit(c, n))
            n_units += oly_ops[n->op].lowering != OLY_LOWER_TILE || (c->split && c->split[value_of(c, n)->group]);
    }
    for (int k = 0; k < c->f->n_groups; k++)
        n_units += !(c->split && c->split[k]);
    OLY_TRY(make_room(c, n_units, n_reads));
    if (n_units > OLY_CHOOSE_UNITS) {
        c->too_large = true;
        return OLY_OK;
    }
    OLY_TRY(order_nodes(c, &order));
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph_ahead(g, k, 1);
        oly_node *n = g->nodes[order[k]];
        if (!makes_unit(c, n) || c->unit_of[n->index] >= 0)
            continue;
        switch (oly_ops[n->op].lowering) {
        case OLY_LOWER_CONTRACT: OLY_TRY(add_contract(c, n)); break;
        case OLY_LOWER_REDUCE: add_reduce(c, n); break;
        case OLY_LOWER_WINDOW: OLY_TRY(add_convolution(c, n)); break;
        case OLY_LOWER_LOCAL: OLY_TRY(oly_add_lookup(c, n)); break;
        default: add_tile(c, n); break;
        }
    }
    OLY_TRY(look_at_readers(c));
    note_wants(c);
    OLY_TRY(oly_note_deferred(c));
    if (oly_choose_objective() == OLY_LEAST_BYTES)
        OLY_TRY(oly_note_ceilings(c));
    c->fresh = true;
    c->n_fixed_needs = c->n_needs;
    if (c->outer)
        oly_note_needs(c, NULL);
    return OLY_OK;
}
