/* SPDX-License-Identifier: BSD-3-Clause */
/* The order in which nodes are lowered: by depth (fusion.c), all of one depth together, so that what they need from
 * neighbours comes in one exchange. Readers of deferred values come after everything else, so that several
 * reductions run in one exchange. A node is examined when its last operand is ready: the time is linear in the graph
 * (times the logarithm of the number of ready nodes). */
#include "plan/lower/lower.h"
#include "graph/call.h"
#include "plan/lower/sink_reductions.h"
#include "plan/partition/partition.h"
#include "core/progress_line.h"
#include <string.h>

/* Nodes are identified by their place in the order: by depth, then by number. A group is lowered at the place of its
 * first node. */
typedef struct order {
    oly_planner *p;
    oly_frame *f;
    int n, *node;              /* [place] */
    int *unit;                 /* [node]: place of the group or node it is lowered with */
    int *missing;              /* [place]: operands that are not ready */
    bool *done;                /* [place] */
    int *first_user, *user;    /* [node]: places of its readers, up to first_user[node + 1] */
    int n_ready, *ready;       /* a heap of places, smallest first */
    int n_deferred, *deferred; /* nodes whose reduction is deferred */
    int n_reduced;             /* f's value, when they were last examined */
    int *effect_before; /* [place]: the unit with an effect that comes before it, -1; NULL: the graph has no effects */
    int *leads;         /* [place]: most reductions over devices on any path from it */
    int n_lowered;
} order;

/* Of a plan so large that it may take a while. */
static void say_progress(order *o)
{
    enum { LARGE = 4096, EACH = 64 };
    if (o->n >= LARGE && ++o->n_lowered % EACH == 0)
        oly_progress_say("planning", o->n_lowered, o->n, o->p->plan->graph->name);
}

/* -- readiness ----------------------------------------------------------------------------------------------------- */

static void push_ready(order *o, int place)
{
    int at = o->n_ready++;
    for (; at > 0 && o->ready[(at - 1) / 2] > place; at = (at - 1) / 2)
        o->ready[at] = o->ready[(at - 1) / 2];
    o->ready[at] = place;
}

static int pop_ready(order *o)
{
    int top = o->ready[0], last = o->ready[--o->n_ready], at = 0;
    for (int child; (child = 2 * at + 1) < o->n_ready; at = child) {
        if (child + 1 < o->n_ready && o->ready[child + 1] < o->ready[child])
            child++;
        if (last <= o->ready[child])
            break;
        o->ready[at] = o->ready[child];
    }
    o->ready[at] = last;
    return top;
}

/* The value is ready: readers that miss no other operand become ready. */
static void value_is_ready(order *o, int node)
{
    for (int k = o->first_user[node]; k < o->first_user[node + 1]; k++)
        if (--o->missing[o->user[k]] == 0 && !o->done[o->user[k]])
            push_ready(o, o->user[k]);
}

/* Removes deferred values that have been reduced. */
static void look_at_deferred(order *o)
{
    if (o->n_reduced == o->f->n_reduced)
        return;
    o->n_reduced = o->f->n_reduced;
    int kept = 0;
    for (int k = 0; k < o->n_deferred; k++) {
        int node = o->deferred[k];
        if (o->f->values[node].waits)
            o->deferred[kept++] = node;
        else
            value_is_ready(o, node);
    }
    o->n_deferred = kept;
}

static void node_is_lowered(order *o, int node)
{
    if (o->f->values[node].waits)
        o->deferred[o->n_deferred++] = node;
    else
        value_is_ready(o, node);
}

static oly_status lower_place(order *o, int place)
{
    oly_node *n = o->f->graph->nodes[o->node[place]];
    int group = oly_value_of(o->f, n)->group;
    o->done[place] = true;
    say_progress(o);
    OLY_TRY(oly_lower_node(o->p, o->f, n));
    look_at_deferred(o);
    if (group < 0)
        node_is_lowered(o, n->index);
    for (int k = 0; group >= 0 && k < o->f->groups[group].n_nodes; k++)
        node_is_lowered(o, o->f->groups[group].nodes[k]->index);
    return OLY_OK;
}

/* -- reads from neighbours ----------------------------------------------------------------------------------------- */

/* Does the group read parts of arrays? */
static bool looks_around(oly_frame *f, const oly_group *g)
{
    for (int k = 0; k < g->n_nodes; k++)
        for (int j = 0; j < g->nodes[k]->n_in; j++)
            if (oly_value_of(f, g->nodes[k]->in[j])->group < 0 && oly_looks_at(f, g->nodes[k]->in[j]))
                return true;
    return false;
}

/* Appends what a group reads to p->read; with `parts_only` only parts of arrays. */
static void note_group(oly_planner *p, oly_frame *f, const oly_group *g, bool parts_only, int *n_read)
{
    for (int k = 0; k < g->n_nodes; k++)
        for (int j = 0; j < g->nodes[k]->n_in; j++) {
            oly_node *in = g->nodes[k]->in[j];
            if (oly_value_of(f, in)->group == (int)(g - f->groups) || in->type.rank == 0 ||
                (parts_only && !oly_looks_at(f, in)))
                continue;
            p->read[*n_read] = in;
            oly_region_from_layout(&p->read_regions[(*n_read)++], &g->layout);
        }
}

/* Would both groups be split over the same axes? */
static bool same_axes(oly_frame *f, const oly_group *a, const oly_group *b)
{
    const oly_value *x = oly_value_of(f, a->nodes[a->n_nodes - 1]), *y = oly_value_of(f, b->nodes[b->n_nodes - 1]);
    bool same = !x->choice && !y->choice;
    for (int d = 0; d < a->nodes[0]->type.rank; d++)
        same = same && oly_axis_list_equal(&x->axes[d], &y->axes[d]);
    return same;
}

/* The group that continues a sum with more terms than one group can have, if it should be computed in the same
 * layout. NULL: none. */
static oly_group *goes_on(oly_frame *f, const oly_group *g)
{
    oly_group *next = g->next >= 0 && looks_around(f, g) ? &f->groups[g->next] : NULL;
    return next && !next->settled && same_axes(f, next, g) ? next : NULL;
}

/* Appends what a node or its group reads to p->read. */
static oly_status note_reads(oly_planner *p, oly_frame *f, const oly_node *n, int *n_read)
{
    int number = oly_value_of(f, n)->group;
    oly_group *g = number < 0 ? NULL : &f->groups[number];
    oly_write_reads(p, f, n, n_read, p->read, p->read_regions);
    oly_pad_reads(p, f, n, n_read, p->read, p->read_regions);
    if (!g || g->prepared || g->lowered)
        return OLY_OK;
    OLY_TRY(oly_settle_group(p, f, g));
    g->prepared = true;
    note_group(p, f, g, false, n_read);
    for (int k = 0; k < OLY_LONGEST_CHAIN; k++) {
        oly_group *next = goes_on(f, g);
        if (!next)
            break;
        next->layout = g->layout;
        next->settled = true;
        note_group(p, f, next, true, n_read);
        g = next;
    }
    return OLY_OK;
}

static int count_operands(const oly_frame *f, const oly_node *n)
{
    int group = f->values[n->index].group, count = group < 0 ? n->n_in : 0;
    for (int chain = 0; group >= 0 && chain <= OLY_LONGEST_CHAIN; group = f->groups[group].next, chain++)
        for (int k = 0; k < f->groups[group].n_nodes; k++)
            count += f->groups[group].nodes[k]->n_in;
    return count;
}

/* Gathers what the nodes of one depth need from neighbours in one exchange. */
static oly_status prepare(order *o, int n, const int *places)
{
    oly_planner *p = o->p;
    int most = 0, n_read = 0;
    for (int k = 0; k < n; k++)
        most += count_operands(o->f, o->f->graph->nodes[o->node[places[k]]]);
    if (p->mesh->n_devices == 1 || most == 0)
        return OLY_OK;
    const oly_node *reader = NULL;
    OLY_TRY(oly_reserve_reads(p, most));
    for (int k = 0; k < n; k++) {
        const oly_node *node = o->f->graph->nodes[o->node[places[k]]];
        OLY_TRY(note_reads(p, o->f, node, &n_read));
        if (n_read > 0 && !reader)
            reader = node;
    }
    if (n_read == 0)
        return OLY_OK;
    p->reader = reader;
    return oly_gather_neighbour_reads(p, o->f, n_read, p->read, p->read_regions);
}

/* -- the order ----------------------------------------------------------------------------------------------------- */

static int depth_of(const order *o, int place)
{
    return o->f->values[o->node[place]].depth;
}

static oly_status sort_by_depth(order *o)
{
    oly_frame *f = o->f;
    int deepest = 0;
    for (int k = 0; k < o->n; k++)
        deepest = f->values[k].depth > deepest ? f->values[k].depth : deepest;
    int *begin = OLY_PLAN_NEW(o->p, int, deepest + 2), *first = OLY_PLAN_NEW(o->p, int, f->n_groups + 1);
    OLY_PLAN_CHECK(begin);
    OLY_PLAN_CHECK(first);
    for (int k = 0; k < o->n; k++)
        begin[f->values[k].depth + 1]++;
    for (int d = 0; d <= deepest; d++)
        begin[d + 1] += begin[d];
    for (int k = 0; k < o->n; k++)
        o->node[begin[f->values[k].depth]++] = k;
    for (int k = 0; k < f->n_groups; k++)
        first[k] = -1;
    for (int place = 0; place < o->n; place++) {
        int node = o->node[place], group = f->values[node].group;
        if (group >= 0 && first[group] < 0)
            first[group] = place;
        o->unit[node] = group < 0 ? place : first[group];
        o->done[place] = o->unit[node] != place;
    }
    return OLY_OK;
}

/* Effects keep the order of the program: a node with one waits for the node with the one before, as if it read that. */
static oly_status order_effects(order *o)
{
    const oly_graph *g = o->f->graph;
    int before = -1;
    if (!g->has_effects)
        return OLY_OK;
    o->effect_before = OLY_PLAN_NEW(o->p, int, o->n + 1);
    OLY_PLAN_CHECK(o->effect_before);
    for (int k = 0; k < o->n; k++)
        o->effect_before[k] = -1;
    for (int k = 0; k < o->n; k++)
        if (oly_node_has_effect(g->nodes[k]) && o->unit[k] != before) {
            o->effect_before[o->unit[k]] = before;
            before = o->unit[k];
        }
    return OLY_OK;
}

/* The effect that node k waits for; -1: none. */
static int effect_before(const order *o, int k)
{
    return o->effect_before && oly_node_has_effect(o->f->graph->nodes[k]) ? o->effect_before[o->unit[k]] : -1;
}

static bool is_blocked(const order *o, int place)
{
    return o->effect_before && o->effect_before[place] >= 0 && !o->done[o->effect_before[place]];
}

/* Lists the readers of each node. */
static oly_status note_users(order *o)
{
    const oly_graph *g = o->f->graph;
    int n_uses = 0;
    for (int k = 0; k < o->n; k++) {
        oly_graph_ahead(g, k, 1);
        for (int j = 0; j < g->nodes[k]->n_in; j++)
            if (o->unit[g->nodes[k]->in[j]->index] != o->unit[k]) {
                o->first_user[g->nodes[k]->in[j]->index + 1]++;
                n_uses++;
            }
        if (effect_before(o, k) >= 0) {
            o->first_user[o->node[effect_before(o, k)] + 1]++;
            n_uses++;
        }
    }
    for (int k = 0; k < o->n; k++)
        o->first_user[k + 1] += o->first_user[k];
    o->user = OLY_PLAN_NEW(o->p, int, n_uses + 1);
    int *at = OLY_PLAN_NEW(o->p, int, o->n + 1);
    OLY_PLAN_CHECK(o->user);
    OLY_PLAN_CHECK(at);
    for (int k = 0; k < o->n; k++) {
        oly_graph_ahead(g, k, 1);
        for (int j = 0; j < g->nodes[k]->n_in; j++) {
            int in = g->nodes[k]->in[j]->index;
            if (o->unit[in] == o->unit[k])
                continue;
            o->user[o->first_user[in] + at[in]++] = o->unit[k];
            o->missing[o->unit[k]]++;
        }
        if (effect_before(o, k) >= 0) {
            int before = o->node[effect_before(o, k)];
            o->user[o->first_user[before] + at[before]++] = o->unit[k];
            o->missing[o->unit[k]]++;
        }
    }
    return OLY_OK;
}

static bool may_reduce(const oly_node *n)
{
    switch (oly_ops[n->op].lowering) {
    case OLY_LOWER_REDUCE:
    case OLY_LOWER_CONTRACT:
    case OLY_LOWER_WINDOW:
    case OLY_LOWER_LOCAL: return true;
    default: return false;
    }
}

static void note_leads(order *o)
{
    for (int place = o->n - 1; place >= 0; place--) { /* readers come later */
        int node = o->node[place];
        for (int j = o->first_user[node]; j < o->first_user[node + 1]; j++) {
            int leads = o->leads[o->user[j]] + may_reduce(o->f->graph->nodes[o->node[o->user[j]]]);
            if (leads > o->leads[o->unit[node]])
                o->leads[o->unit[node]] = leads;
        }
    }
}

static oly_status order_new(oly_planner *p, oly_frame *f, order *o)
{
    int n = f->graph->n_nodes;
    *o = (order){.p = p, .f = f, .n = n, .n_reduced = f->n_reduced};
    int **lists[] = {&o->node, &o->unit, &o->missing, &o->first_user, &o->ready, &o->deferred};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        *lists[k] = OLY_PLAN_NEW(p, int, n + 2);
        OLY_PLAN_CHECK(*lists[k]);
    }
    o->done = OLY_PLAN_NEW(p, bool, n + 1);
    o->leads = OLY_PLAN_NEW(p, int, n + 1);
    OLY_PLAN_CHECK(o->done ? o->leads : NULL);
    OLY_TRY(sort_by_depth(o));
    OLY_TRY(order_effects(o));
    OLY_TRY(note_users(o));
    note_leads(o);
    return OLY_OK;
}

/* Is everything that the group reads ready or deferred? */
static bool can_be_read(oly_frame *f, int number)
{
    const oly_group *g = &f->groups[number];
    for (int k = 0; k < g->n_nodes; k++)
        for (int j = 0; j < g->nodes[k]->n_in; j++) {
            const oly_node *in = g->nodes[k]->in[j];
            oly_layout l;
            while (oly_ops[in->op].lowering == OLY_LOWER_VIEW)
                in = in->in[0];
            if (oly_value_of(f, in)->group != number && !oly_is_constant(in) && !oly_natural_layout(f, in, &l))
                return false;
        }
    return true;
}

/* Lowers those readers of a deferred value, direct or through views, that combine it linearly, reduce it further, or
 * add to it. */
static oly_status put_off_users(order *o, int node)
{
    for (int j = o->first_user[node]; j < o->first_user[node + 1]; j++) {
        oly_node *user = o->f->graph->nodes[o->node[o->user[j]]];
        int group = oly_value_of(o->f, user)->group;
        if (o->done[o->user[j]])
            continue;
        if (oly_ops[user->op].lowering == OLY_LOWER_VIEW)
            OLY_TRY(put_off_users(o, user->index));
        bool lowered = oly_reduces_further(o->f, user);
        if (!lowered)
            OLY_TRY(oly_adds_to_sum(o->p, o->f, user, &lowered));
        if (lowered)
            OLY_TRY(lower_place(o, o->user[j]));
        if (group < 0 || o->f->groups[group].lowered || o->f->groups[group].looked_through || !can_be_read(o->f, group))
            continue;
        o->f->groups[group].looked_through = true;
        o->p->reader = user;
        OLY_TRY(oly_sink_group(o->p, o->f, &o->f->groups[group]));
    }
    return OLY_OK;
}

/* Lowers everything that combines deferred values linearly, on their partial results, before the first of them is
 * reduced. */
static oly_status put_off(order *o)
{
    const oly_node *outer = o->p->reader;
    for (int k = 0; k < o->n_deferred; k++) {
        int n_reduced = o->n_reduced;
        OLY_TRY(put_off_users(o, o->deferred[k]));
        if (o->n_reduced != n_reduced) /* the list has changed */
            k = -1;
    }
    o->p->reader = outer;
    look_at_deferred(o);
    return OLY_OK;
}

/* Is everything that the node, or its group, reads ready or deferred? */
static bool is_next(const order *o, int place)
{
    const oly_node *n = o->f->graph->nodes[o->node[place]];
    int group = o->f->values[n->index].group, count = group < 0 ? 1 : o->f->groups[group].n_nodes;
    if (is_blocked(o, place))
        return false;
    for (int k = 0; k < count; k++) {
        const oly_node *member = group < 0 ? n : o->f->groups[group].nodes[k];
        for (int j = 0; j < member->n_in; j++) {
            int unit = o->unit[member->in[j]->index];
            if (unit != place && !o->done[unit])
                return false;
        }
    }
    return true;
}

/* Only readers of deferred values are left: picks the one with the most further reductions after it, so that other
 * deferred reductions can join those. */
static int end_of_deferred(const order *o, int first)
{
    enum { MOST = 256 };
    int best = first;
    for (int k = 0; k < o->n_deferred && k < MOST; k++)
        for (int j = o->first_user[o->deferred[k]]; j < o->first_user[o->deferred[k] + 1]; j++) {
            int place = o->user[j];
            bool better = o->leads[place] > o->leads[best] || (place < best && o->leads[place] == o->leads[best]);
            if (!o->done[place] && better && is_next(o, place))
                best = place;
        }
    return best;
}

oly_status oly_lower_frame(oly_planner *p, oly_frame *f)
{
    order o;
    OLY_TRY(oly_make_groups(p, f));
    oly_find_cyclic_shifts(f);
    OLY_TRY(order_new(p, f, &o));
    int *together = OLY_PLAN_NEW(p, int, o.n + 1);
    OLY_PLAN_CHECK(together);
    for (int place = 0; place < o.n; place++)
        if (!o.done[place] && o.missing[place] == 0)
            push_ready(&o, place);
    for (int next = 0;;) {
        int n = 0;
        while (o.n_ready > 0 && (n == 0 || depth_of(&o, o.ready[0]) == depth_of(&o, together[0])))
            together[n++] = pop_ready(&o);
        if (n > 0) {
            OLY_TRY(prepare(&o, n, together));
            for (int k = 0; k < n; k++)
                OLY_TRY(lower_place(&o, together[k]));
            continue;
        }
        while (next < o.n && o.done[next])
            next++;
        if (next == o.n)
            return OLY_OK;
        OLY_TRY(put_off(&o));
        if (o.n_ready > 0 || o.done[next]) /* may have been lowered above */
            continue;
        int first = next;
        while (o.effect_before && first + 1 < o.n && (o.done[first] || !is_next(&o, first)))
            first++;
        OLY_TRY(lower_place(&o, end_of_deferred(&o, first))); /* this reduces the deferred values that it reads */
    }
}
