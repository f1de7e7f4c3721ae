/* SPDX-License-Identifier: BSD-3-Clause */
/* Fusion: groups of elementwise operations that run as one tile program. Two connected operations of the same shape are
 * grouped if no path between them leaves the group: every node has a depth that grows by one along every edge that
 * cannot be fused, so nodes of one depth never depend on each other through nodes of another. Depths are first as small
 * as possible, then as large as their users allow, so that a value used late is computed where it is used. */
#include "plan/partition/partition.h"
#include "core/optimisation.h"
#include <string.h>

enum {
    LARGEST_GROUP = 32,
    MOST_REGISTERS = OLY_TILE_REGISTERS - 1, /* one is for the zero of deferred reductions (lower.c) */
};

static bool fusible(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_TILE && !oly_is_constant(n);
}

static bool same_shape(const oly_node *a, const oly_node *b)
{
    return a->type.rank == b->type.rank &&
           memcmp(a->type.shape, b->type.shape, sizeof(int64_t) * (size_t)a->type.rank) == 0;
}

/* Are both computed in the same cuts, where those have been chosen by cost? */
static bool cut_alike(oly_frame *f, const oly_node *a, const oly_node *b)
{
    const oly_choice *x = oly_value_of(f, a)->choice, *y = oly_value_of(f, b)->choice;
    return x == y || (x && y && memcmp(x->work, y->work, sizeof x->work) == 0);
}

static bool joins(oly_frame *f, const oly_node *from, const oly_node *to)
{
    return oly_enabled(OLY_OPTIMISATION_FUSION) && fusible(from) && fusible(to) && same_shape(from, to) &&
           cut_alike(f, from, to);
}

static int least_depth(oly_frame *f, const oly_node *n)
{
    int depth = 0;
    for (int k = 0; k < n->n_in; k++) {
        int d = oly_value_of(f, n->in[k])->depth + (joins(f, n->in[k], n) ? 0 : 1);
        depth = d > depth ? d : depth;
    }
    return depth;
}

static void raise_depths(oly_frame *f, int *limit)
{
    oly_graph *g = f->graph;
    for (int k = 0; k < g->n_nodes; k++)
        limit[k] = INT32_MAX;
    for (int k = 0; k < g->n_outputs; k++)
        limit[g->outputs[k]->index] = oly_value_of(f, g->outputs[k])->depth;
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        oly_graph_ahead(g, k, -1);
        oly_node *n = g->nodes[k];
        oly_value *v = oly_value_of(f, n);
        if (fusible(n) && limit[k] != INT32_MAX && limit[k] > v->depth)
            v->depth = limit[k];
        for (int j = 0; j < n->n_in; j++) {
            int most = v->depth - (joins(f, n->in[j], n) ? 0 : 1), *l = &limit[n->in[j]->index];
            *l = most < *l ? most : *l;
        }
    }
}

static bool is_beside(oly_frame *f, const oly_node *n, int k)
{
    return joins(f, n->in[k], n) && oly_value_of(f, n->in[k])->depth == oly_value_of(f, n)->depth;
}

static int root_of(const int *of, int group)
{
    while (of[group] != group)
        group = of[group];
    return group;
}

/* An upper bound: one for the value, and one for each operand that the group loads. */
static int registers_of(oly_frame *f, const oly_node *n)
{
    int registers = 1;
    for (int k = 0; k < n->n_in; k++)
        registers += !is_beside(f, n, k);
    return registers;
}

static int find_group(oly_frame *f, const oly_node *n, const int *size, int *of)
{
    for (int k = 0; k < n->n_in; k++) {
        if (is_beside(f, n, k)) {
            int g = root_of(of, oly_value_of(f, n->in[k])->group);
            if (size[g] < LARGEST_GROUP)
                return g;
            return -2; /* full: start another group, one deeper */
        }
    }
    return -1;
}

/* Also merges the groups of all operands that qualify. */
static void merge_operands(oly_frame *f, const oly_node *n, int into, int *size, int *registers, int *of)
{
    for (int k = 0; k < n->n_in; k++) {
        if (!is_beside(f, n, k))
            continue;
        int g = root_of(of, oly_value_of(f, n->in[k])->group);
        if (g != into) {
            of[g] = into;
            size[into] += size[g];
            registers[into] += registers[g];
        }
    }
}

/* Are the merged groups of its operands small enough? */
static bool fits(oly_frame *f, const oly_node *n, const int *size, const int *registers, const int *of)
{
    int total = 1, all = registers_of(f, n), before = -1;
    for (int k = 0; k < n->n_in; k++) {
        if (!is_beside(f, n, k))
            continue;
        int g = root_of(of, oly_value_of(f, n->in[k])->group);
        total += size[g];
        all += g == before ? 0 : registers[g];
        before = g;
    }
    return total <= LARGEST_GROUP && all <= MOST_REGISTERS;
}

static void collect(oly_frame *f, int n_ids, const int *of, int *number, int *count)
{
    for (int k = 0; k < n_ids; k++)
        number[k] = -1;
    for (int k = 0; k < f->graph->n_nodes; k++) {
        oly_graph_ahead(f->graph, k, 1);
        oly_value *v = &f->values[k];
        if (v->group < 0)
            continue;
        int g = root_of(of, v->group);
        if (number[g] < 0)
            number[g] = f->n_groups++;
        v->group = number[g];
        count[v->group]++;
    }
}

oly_status oly_make_groups(oly_planner *p, oly_frame *f)
{
    oly_graph *g = f->graph;
    if (f->groups)
        return OLY_OK;
    int *size = OLY_PLAN_NEW(p, int, g->n_nodes + 1), *of = OLY_PLAN_NEW(p, int, g->n_nodes + 1);
    int *scratch = OLY_PLAN_NEW(p, int, g->n_nodes + 1), *count = OLY_PLAN_NEW(p, int, g->n_nodes + 1);
    int *registers = OLY_PLAN_NEW(p, int, g->n_nodes + 1), n_ids = 0;
    OLY_PLAN_CHECK(size && of && scratch && count ? registers : NULL);
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph_ahead(g, k, 1);
        f->values[k].depth = least_depth(f, g->nodes[k]);
    }
    raise_depths(f, scratch);
    for (int k = 0; k < g->n_nodes; k++) {
        oly_node *n = g->nodes[k];
        oly_value *v = &f->values[k];
        oly_graph_ahead(g, k, 1);
        int least = least_depth(f, n);
        v->depth = least > v->depth ? least : v->depth;
        if (oly_ops[n->op].lowering == OLY_LOWER_WRITE && oly_ops[n->op].detail == OLY_WRITE_PART)
            oly_value_of(f, n->in[1])->written_by = n;
        if (!fusible(n))
            continue;
        int id = find_group(f, n, size, of);
        if (id == -2 || !fits(f, n, size, registers, of)) {
            v->depth++;
            id = -1;
        }
        if (id == -1) {
            id = n_ids++;
            of[id] = id;
        }
        v->group = id;
        size[id]++;
        registers[id] += registers_of(f, n);
        merge_operands(f, n, id, size, registers, of);
    }
    collect(f, n_ids, of, scratch, count);
    f->groups = OLY_PLAN_NEW(p, oly_group, f->n_groups + 1);
    OLY_PLAN_CHECK(f->groups);
    for (int k = 0; k < f->n_groups; k++) {
        f->groups[k].nodes = OLY_PLAN_NEW(p, oly_node *, count[k]);
        OLY_PLAN_CHECK(f->groups[k].nodes);
    }
    for (int k = 0; k < g->n_nodes; k++)
        if (f->values[k].group >= 0) {
            oly_group *group = &f->groups[f->values[k].group];
            group->nodes[group->n_nodes++] = g->nodes[k];
        }
    for (int k = 0; k < f->n_groups; k++)
        f->groups[k].next = -1;
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph_ahead(g, k, 1);
        for (int j = 0; j < g->nodes[k]->n_in; j++) {
            int from = oly_value_of(f, g->nodes[k]->in[j])->group;
            if (from >= 0 && from != f->values[k].group && joins(f, g->nodes[k]->in[j], g->nodes[k]))
                f->groups[from].next = f->values[k].group;
        }
    }
    return OLY_OK;
}
