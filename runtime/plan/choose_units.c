/* What can be chosen: products, reductions and groups of elementwise operations, each laid out as one. Everything else is taken as
 * it comes: a value that an operation of another kind reads, or that the user has placed, stays where propagation has put it. See
 * choose.h. */
#include "plan/choose.h"
#include "graph/view.h"
#include <stdlib.h>
#include <string.h>

#define NEW(c, type, count) OLY_ARENA_NEW((c)->arena, type, count)

static oly_value *value_of(const oly_chooser *c, const oly_node *n)
{
    return oly_value_of(c->f, n);
}

static bool is_view(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_VIEW;
}

/* A view of all elements of its operand, each in one place or repeated, which says nothing of its own about where it lies. */
static bool is_clear(const oly_node *n)
{
    int how = oly_ops[n->op].detail;
    return (how == OLY_VIEW_SAME || how == OLY_VIEW_TRANSPOSE || how == OLY_VIEW_BROADCAST) && !n->params.settled;
}

/* -- values behind views ------------------------------------------------------------------------------------------------ */

/* Follows views to the value in memory. False: one of them shows only a part, or is pinned. */
static bool trace(const oly_node *n, oly_unit_read *r)
{
    bool clear = true;
    for (int d = 0; d < OLY_MAX_RANK; d++)
        r->to[d] = d < n->type.rank ? (int8_t)d : -1;
    int rank = n->type.rank;
    for (; is_view(n); n = n->in[0]) {
        oly_view_dim dims[OLY_MAX_RANK];
        oly_view_of(n, dims);
        clear = clear && is_clear(n);
        for (int d = 0; d < rank; d++)
            if (r->to[d] >= 0)
                r->to[d] = (int8_t)dims[r->to[d]].from;
    }
    r->root = n;
    memset(r->from, -1, sizeof r->from);
    for (int d = 0; d < rank; d++)
        if (r->to[d] >= 0)
            r->from[r->to[d]] = (int8_t)d;
    return clear;
}

/* Where a value that no unit makes lies, if that is known. */
static bool lies_fixed(const oly_chooser *c, const oly_node *n, oly_cuts *cuts)
{
    const oly_value *v = value_of(c, n);
    bool input = oly_ops[n->op].lowering == OLY_LOWER_INPUT && v->layout && v->layout->mesh == c->mesh;
    bool placed = oly_is_placed(n) && oly_settles_all(&n->params) && n->params.sharding->mesh == c->mesh;
    *cuts = oly_cuts_of(v->axes, n->type.rank);
    return (input && oly_layout_is_canonical(v->layout)) || placed;
}

/* -- units -------------------------------------------------------------------------------------------------------------- */

static oly_unit *new_unit(oly_chooser *c, oly_unit_kind kind, oly_node *n)
{
    oly_unit *u = &c->units[c->n_units];
    *u = (oly_unit){.kind = kind, .node = n, .trusted = true, .first_read = c->n_reads};
    c->unit_of[n->index] = c->n_units++;
    return u;
}

/* One operand. What is read in two ways at once is none of the model's business. */
static bool add_read(oly_chooser *c, oly_unit *u, const oly_node *in, int operand)
{
    oly_unit_read *r = &c->reads[c->n_reads];
    *r = (oly_unit_read){.source = -1, .operand = operand};
    if (oly_is_constant(in))
        return u->kind == OLY_UNIT_GROUP;
    bool clear = trace(in, r);
    if (oly_is_constant(r->root))
        return clear && u->kind == OLY_UNIT_GROUP;
    r->source = c->unit_of[r->root->index];
    for (int k = u->first_read; k < c->n_reads; k++)
        if (u->kind == OLY_UNIT_GROUP && c->reads[k].root == r->root &&
            memcmp(c->reads[k].to, r->to, sizeof r->to) == 0)
            return clear;
    if (c->n_reads == c->read_capacity)
        return false;
    c->n_reads++;
    u->n_reads++;
    return clear && (r->source >= 0 ? c->units[r->source].trusted : lies_fixed(c, r->root, &r->fixed));
}

/* A value that is read in an unknown way stays where it is. */
static void pin(oly_chooser *c, const oly_node *n)
{
    oly_unit_read r;
    trace(n, &r);
    c->elsewhere[r.root->index] = true;
    if (c->unit_of[r.root->index] >= 0)
        c->units[c->unit_of[r.root->index]].pinned = true;
}

static bool in_group(const oly_chooser *c, const oly_group *g, const oly_node *n)
{
    return value_of(c, n)->group == (int)(g - c->f->groups);
}

static double elements(const oly_node *n)
{
    return (double)oly_type_size(&n->type);
}

/* Will the group, or one that goes on with its values, be written into another array? Then it is cut as that is. */
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

/* A group, or of one that is split a node. */
static void add_tile(oly_chooser *c, oly_node *first)
{
    oly_group *g = &c->f->groups[value_of(c, first)->group];
    oly_node *last = g->nodes[g->n_nodes - 1], *const *nodes = g->nodes;
    bool alone = c->split && c->split[g - c->f->groups];
    int n_nodes = alone ? 1 : g->n_nodes;
    if (alone)
        nodes = &first;
    oly_unit *u = new_unit(c, OLY_UNIT_GROUP, nodes[n_nodes - 1]);
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
            u->trusted = add_read(c, u, n->in[j], 0) && u->trusted;
            bytes += in_group(c, g, n->in[j]) ? 0 : (double)oly_dtype_size(n->in[j]->type.dtype);
        }
    }
    bytes += alone && u->node != last ? 0 : (double)oly_dtype_size(last->type.dtype);
    double memory = oly_price_memory(bytes * elements(last)), work = oly_price_operations(elements(last) * n_nodes);
    u->work = memory > work ? memory : work;
    u->greedy.work = u->greedy.wanted = u->greedy.lies = oly_cuts_of(value_of(c, last)->axes, last->type.rank);
}

/* The layout of an operand as the unit sees it. */
static oly_layout layout_of(const oly_chooser *c, const oly_type *type, oly_cuts cuts)
{
    oly_layout l = {.mesh = c->mesh, .rank = type->rank};
    oly_axis_list axes[OLY_MAX_RANK];
    oly_cuts_axes(c->mesh, cuts, axes, type->rank);
    for (int d = 0; d < type->rank; d++) {
        l.shape[d] = type->shape[d];
        l.split[d] = oly_split_canonical(c->mesh, &axes[d], l.shape[d]);
    }
    return l;
}

static oly_cuts cuts_of_layout(const oly_layout *l)
{
    oly_axis_list axes[OLY_MAX_RANK];
    for (int d = 0; d < l->rank; d++)
        axes[d] = l->split[d].axes;
    return oly_cuts_of(axes, l->rank);
}

static oly_cuts greedy_lies(const oly_chooser *c, const oly_unit_read *r)
{
    return r->source >= 0 ? c->units[r->source].greedy.lies : r->fixed;
}

static oly_status add_contract(oly_chooser *c, oly_node *n)
{
    oly_unit *u = new_unit(c, OLY_UNIT_CONTRACT, n);
    oly_contraction_dims *dims = NEW(c, oly_contraction_dims, 1);
    OLY_PLAN_CHECK(dims);
    OLY_TRY(oly_contraction_read(&n->in[0]->type, &n->in[1]->type, &n->params.contraction, dims));
    u->dims = dims;
    u->pinned = value_of(c, n)->closed;
    u->greedy.wanted = oly_cuts_of(value_of(c, n)->axes, n->type.rank);
    for (int o = 0; o < 2; o++)
        u->trusted = add_read(c, u, n->in[o], o) && u->trusted;
    if (u->n_reads < 2 || !u->trusted) {
        u->trusted = false;
        return OLY_OK;
    }
    oly_layout operand[2], out = layout_of(c, &n->type, u->greedy.wanted);
    double inner = 1;
    for (int o = 0; o < 2; o++) {
        const oly_unit_read *r = &c->reads[u->first_read + o];
        operand[o] = layout_of(c, &n->in[o]->type, oly_cuts_mapped(c->mesh, greedy_lies(c, r), r->from));
    }
    oly_axis_list summed;
    oly_cut_product(c->p, n, operand, &out, &summed);
    u->greedy.work = cuts_of_layout(&out);
    oly_axis_list pairs[OLY_MAX_RANK];
    for (int k = 0; k < n->params.contraction.n_contract; k++) {
        pairs[k] = operand[0].split[n->params.contraction.contract[0][k]].axes;
        inner *= (double)n->in[0]->type.shape[n->params.contraction.contract[0][k]];
    }
    u->greedy.summed = oly_cuts_of(pairs, n->params.contraction.n_contract);
    oly_settle_sum(c, u, &u->greedy);
    u->work = oly_price_gemm(n->type.dtype, elements(n) * inner);
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
    oly_unit *u = new_unit(c, OLY_UNIT_REDUCE, n);
    u->pinned = value_of(c, n)->closed;
    u->trusted = add_read(c, u, n->in[0], 0);
    if (u->n_reads < 1 || !u->trusted) {
        u->trusted = false;
        return;
    }
    const oly_unit_read *r = &c->reads[u->first_read];
    oly_reduction_cuts(c, u, oly_cuts_mapped(c->mesh, greedy_lies(c, r), r->from), &u->greedy);
    u->greedy.wanted = oly_cuts_of(value_of(c, n)->axes, n->type.rank);
    oly_settle_sum(c, u, &u->greedy);
    u->work = oly_price_memory(elements(n->in[0]) * (double)oly_dtype_size(n->type.dtype));
}

/* -- demands ------------------------------------------------------------------------------------------------------------ */

/* A value must lie like this for somebody whose layout is fixed. */
static void demand(oly_chooser *c, const oly_node *n, oly_cuts cuts)
{
    oly_unit_read r;
    if (!trace(n, &r)) {
        pin(c, n);
        return;
    }
    int k = c->unit_of[r.root->index];
    oly_unit *u = k >= 0 ? &c->units[k] : NULL;
    oly_unit_demand wanted = {r.root, oly_cuts_mapped(c->mesh, cuts, r.to)};
    if (u ? u->n_demands == OLY_CHOOSE_WANTS : c->n_brought == OLY_CHOOSE_READS)
        pin(c, n);
    else if (u)
        u->demand[u->n_demands++] = wanted;
    else
        c->brought[c->n_brought++] = wanted;
}

static void demand_outputs(oly_chooser *c)
{
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

/* Readers of other kinds. */
static void look_at_readers(oly_chooser *c)
{
    for (int k = 0; k < c->f->graph->n_nodes; k++) {
        oly_node *n = c->f->graph->nodes[k];
        int unit = c->unit_of[k];
        oly_cuts cuts;
        if ((unit >= 0 && c->units[unit].trusted) || (is_view(n) && is_clear(n)))
            continue;
        for (int j = 0; j < n->n_in; j++)
            if (oly_is_placed(n) && lies_fixed(c, n, &cuts))
                demand(c, n->in[j], cuts);
            else
                pin(c, n->in[j]);
    }
    demand_outputs(c);
}

/* What its readers would read of a unit is worth a try. */
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

/* -- all ---------------------------------------------------------------------------------------------------------------- */

static bool makes_unit(const oly_chooser *c, const oly_node *n)
{
    switch (oly_ops[n->op].lowering) {
    case OLY_LOWER_TILE: return value_of(c, n)->group >= 0;
    case OLY_LOWER_REDUCE:
    case OLY_LOWER_CONTRACT: return true;
    default: return false;
    }
}

/* The nodes by depth (group.c), which is an order in which units come after what they read. */
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

oly_status oly_find_units(oly_chooser *c)
{
    const oly_graph *g = c->f->graph;
    int *order, n_units = 0, n_reads = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        const oly_node *n = g->nodes[k];
        if (!makes_unit(c, n))
            continue;
        n_units += oly_ops[n->op].lowering != OLY_LOWER_TILE || (c->split && c->split[value_of(c, n)->group]);
        n_reads += n->n_in;
    }
    for (int k = 0; k < c->f->n_groups; k++)
        n_units += !(c->split && c->split[k]);
    c->n_units = c->n_reads = 0;
    if (n_units > OLY_CHOOSE_UNITS || n_units == 0)
        return OLY_OK; /* too many to try */
    c->units = NEW(c, oly_unit, n_units);
    c->reads = NEW(c, oly_unit_read, n_reads + 1);
    c->unit_of = NEW(c, int, g->n_nodes + 1);
    c->elsewhere = NEW(c, bool, g->n_nodes + 1);
    c->n_brought = 0;
    OLY_PLAN_CHECK(c->units && c->reads && c->elsewhere ? c->unit_of : NULL);
    c->read_capacity = n_reads;
    OLY_TRY(order_nodes(c, &order));
    for (int k = 0; k < g->n_nodes; k++)
        c->unit_of[k] = -1;
    for (int k = 0; k < g->n_nodes; k++) {
        oly_node *n = g->nodes[order[k]];
        if (!makes_unit(c, n) || c->unit_of[n->index] >= 0)
            continue;
        switch (oly_ops[n->op].lowering) {
        case OLY_LOWER_CONTRACT: OLY_TRY(add_contract(c, n)); break;
        case OLY_LOWER_REDUCE: add_reduce(c, n); break;
        default: add_tile(c, n); break;
        }
    }
    look_at_readers(c);
    note_wants(c);
    return OLY_OK;
}
