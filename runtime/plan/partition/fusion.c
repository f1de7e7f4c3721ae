/* SPDX-License-Identifier: BSD-3-Clause */
/* Fusion: groups of elementwise operations that run as one tile program. Two connected operations of the same shape are
 * grouped if no path between them leaves the group: every node has a depth that grows by one along every edge that
 * cannot be fused, so nodes of one depth never depend on each other through nodes of another. Depths are first as small
 * as possible, then as large as their users allow, so that a value used late is computed where it is used. What does not fit into
 * a group begins another, one deeper; then depths are made as large as possible once more, so that this group, too, computes
 * what it alone reads. At last groups of results join the one group that reads them. */
#include "plan/partition/partition.h"
#include "core/optimisation.h"
#include <string.h>

enum {
    LARGEST_GROUP = 192, /* operations: a loop of machine code has room for them (kernels/x86/generator.h) */
    MOST_ROUNDS = 12,    /* groups that one sum of many terms is divided into before the rest is left as it is */
    MOST_REGISTERS = OLY_TILE_REGISTERS - 1, /* one is for the zero of deferred reductions (lower.c) */
};

/* What is known of the groups so far. */
typedef struct grouping {
    oly_frame *f;
    int *of, *size;      /* [groups] the group that it has been merged into, or itself; operations */
    int *registers;      /* [groups] an upper bound */
    int *first;          /* [groups] index of the first operation */
    int *last_use, *met; /* [nodes] of registers_needed */
    bool *reads_part;    /* [groups] of raise_results */
    uint8_t *apart;      /* [nodes] operands (bits) that are in a group which has no room for the operation */
} grouping;

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

/* Does operand k of n join it? */
static bool joins_at(const grouping *s, const oly_node *n, int k)
{
    return joins(s->f, n->in[k], n) && !(s->apart[n->index] >> k & 1);
}

static int least_depth(const grouping *s, const oly_node *n)
{
    int depth = 0;
    for (int k = 0; k < n->n_in; k++) {
        int d = oly_value_of(s->f, n->in[k])->depth + (joins_at(s, n, k) ? 0 : 1);
        depth = d > depth ? d : depth;
    }
    return depth;
}

static void raise_depths(const grouping *s, int *limit)
{
    oly_frame *f = s->f;
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
            int most = v->depth - (joins_at(s, n, j) ? 0 : 1), *l = &limit[n->in[j]->index];
            *l = most < *l ? most : *l;
        }
    }
}

static bool is_beside(const grouping *s, const oly_node *n, int k)
{
    return joins_at(s, n, k) && oly_value_of(s->f, n->in[k])->depth == oly_value_of(s->f, n)->depth;
}

static int root_of(const int *of, int group)
{
    while (of[group] != group)
        group = of[group];
    return group;
}

/* An upper bound: one for the value, and one for each operand that the group loads. */
static int registers_of(const grouping *s, const oly_node *n)
{
    int registers = 1;
    for (int k = 0; k < n->n_in; k++)
        registers += !is_beside(s, n, k);
    return registers;
}

static int group_of(const grouping *s, const oly_node *n)
{
    int group = oly_value_of(s->f, n)->group;
    return group < 0 ? -1 : root_of(s->of, group);
}

static int find_group(const grouping *s, const oly_node *n)
{
    for (int k = 0; k < n->n_in; k++) {
        if (is_beside(s, n, k)) {
            int g = group_of(s, n->in[k]);
            if (s->size[g] < LARGEST_GROUP)
                return g;
            return -2; /* full: start another group, one deeper */
        }
    }
    return -1;
}

/* Also merges the groups of all operands that qualify. */
static void merge_operands(grouping *s, const oly_node *n, int into)
{
    for (int k = 0; k < n->n_in; k++) {
        if (!is_beside(s, n, k))
            continue;
        int g = group_of(s, n->in[k]);
        if (g != into) {
            s->of[g] = into;
            s->size[into] += s->size[g];
            s->registers[into] += s->registers[g];
            s->first[into] = s->first[g] < s->first[into] ? s->first[g] : s->first[into];
        }
    }
}

/* Is it n itself, or in the group of one of the operands that n joins? */
static bool would_join(const grouping *s, const oly_node *n, const oly_node *x)
{
    int group = group_of(s, x);
    for (int k = 0; k < n->n_in && group >= 0; k++)
        if (is_beside(s, n, k) && group_of(s, n->in[k]) == group)
            return true;
    return x == n;
}

/* The registers of the merged groups of n's operands, and n, as lower.c takes them: operands and what is read elsewhere keep
 * theirs. For groups of which the upper bound says nothing: it follows every operation. */
static int registers_needed(const grouping *s, const oly_node *n)
{
    oly_node *const *nodes = s->f->graph->nodes;
    int begin = n->index, held = 0, most = 0;
    for (int k = 0; k < n->n_in; k++)
        if (is_beside(s, n, k) && s->first[group_of(s, n->in[k])] < begin)
            begin = s->first[group_of(s, n->in[k])];
    for (int k = begin; k <= n->index; k++) {
        s->last_use[k] = INT32_MAX;
        s->met[k] = 0; /* reads by the group */
    }
    for (int k = begin; k <= n->index; k++)
        for (int j = 0; j < nodes[k]->n_in && would_join(s, n, nodes[k]); j++) {
            const oly_node *x = nodes[k]->in[j];
            bool inside = x->index >= begin && would_join(s, n, x);
            if (inside && ++s->met[x->index] == x->n_uses)
                s->last_use[x->index] = k;
            held += !inside; /* an operand that is read twice counts twice, unless by one operation */
            for (int i = 0; i < j && !inside; i++)
                if (nodes[k]->in[i] == x) {
                    held--;
                    break;
                }
        }
    for (int k = begin; k <= n->index; k++) {
        if (!would_join(s, n, nodes[k]))
            continue;
        most = ++held > most ? held : most;
        for (int j = 0; j < nodes[k]->n_in; j++) {
            int x = nodes[k]->in[j]->index;
            if (x >= begin && would_join(s, n, nodes[x]) && s->last_use[x] == k) {
                s->last_use[x] = INT32_MAX;
                held--;
            }
        }
    }
    return most;
}

/* Are the merged groups of its operands small enough? */
static bool fits(const grouping *s, const oly_node *n)
{
    int total = 1, all = registers_of(s, n), before = -1;
    for (int k = 0; k < n->n_in; k++) {
        if (!is_beside(s, n, k))
            continue;
        int g = group_of(s, n->in[k]);
        total += s->size[g];
        all += g == before ? 0 : s->registers[g];
        before = g;
    }
    return total <= LARGEST_GROUP && (all <= MOST_REGISTERS || registers_needed(s, n) <= MOST_REGISTERS);
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

/* The operands (bits) in the largest of the groups that an operation would join. */
static uint8_t in_largest(const grouping *s, const oly_node *n)
{
    int largest = -1;
    unsigned operands = 0;
    for (int k = 0; k < n->n_in; k++)
        if (is_beside(s, n, k) && (largest < 0 || s->size[group_of(s, n->in[k])] > s->size[largest]))
            largest = group_of(s, n->in[k]);
    for (int k = 0; k < n->n_in; k++)
        operands |= (unsigned)(is_beside(s, n, k) && group_of(s, n->in[k]) == largest) << k;
    return (uint8_t)operands;
}

/* Puts each operation into a group. *full: whether any was too large, so that depths have changed. */
static int form_groups(grouping *s, bool *full)
{
    oly_frame *f = s->f;
    oly_graph *g = f->graph;
    int n_ids = 0;
    *full = false;
    for (int k = 0; k < g->n_nodes; k++) {
        oly_node *n = g->nodes[k];
        oly_value *v = &f->values[k];
        oly_graph_ahead(g, k, 1);
        int least = least_depth(s, n);
        v->depth = least > v->depth ? least : v->depth;
        if (!fusible(n))
            continue;
        int id = find_group(s, n);
        if (id == -2 || !fits(s, n)) {
            s->apart[k] |= in_largest(s, n);
            v->depth++;
            id = -1;
            *full = true;
        }
        if (id == -1) {
            id = n_ids++;
            s->of[id] = id;
            s->first[id] = k;
            s->size[id] = s->registers[id] = 0;
        }
        v->group = id;
        s->size[id]++;
        s->registers[id] += registers_of(s, n);
        merge_operands(s, n, id);
    }
    return n_ids;
}

/* -- results of groups ------------------------------------------------------------------------------------------------- */

enum { NOBODY = -1, OTHERS = -2 }; /* who reads a group, if not one other group */

/* Does it show a part of its operand? On several devices the part is not split where arrays of its shape are, and a group that reads it may
 * be computed where the part is. */
static bool is_part(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_VIEW &&
           (oly_ops[n->op].detail == OLY_VIEW_SLICE || (n->n_in == 1 && is_part(n->in[0])));
}

/* Raises groups whose values are results, and are otherwise read by one other group alone, to the depth of that one, so that they become
 * one: what both have in common then needs no memory. On several devices groups that read parts of arrays are left as they are. True: some
 * were raised. */
static bool raise_results(const grouping *s, int n_ids, int *reader, int *depth, bool several_devices)
{
    oly_frame *f = s->f;
    const oly_graph *g = f->graph;
    bool any = false;
    for (int k = 0; k < n_ids; k++) {
        reader[k] = NOBODY;
        s->reads_part[k] = false;
    }
    for (int k = 0; k < g->n_nodes; k++) {
        const oly_node *n = g->nodes[k];
        int into = group_of(s, n);
        if (into >= 0)
            depth[into] = f->values[k].depth;
        for (int j = 0; j < n->n_in; j++) {
            int from = group_of(s, n->in[j]);
            if (several_devices && into >= 0 && is_part(n->in[j]))
                s->reads_part[into] = true;
            if (from < 0 || from == into)
                continue;
            bool alone = into >= 0 && joins_at(s, n, j) && (reader[from] == NOBODY || reader[from] == into);
            reader[from] = alone ? into : OTHERS;
        }
    }
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        int group = group_of(s, g->nodes[k]), into = group >= 0 ? reader[group] : NOBODY;
        if (into < 0 || s->reads_part[group] || s->reads_part[into] || s->size[group] + s->size[into] > LARGEST_GROUP ||
            s->registers[group] + s->registers[into] > MOST_REGISTERS || f->values[k].depth >= depth[into])
            continue;
        f->values[k].depth = depth[into];
        any = true;
    }
    return any;
}

oly_status oly_make_groups(oly_planner *p, oly_frame *f)
{
    oly_graph *g = f->graph;
    if (f->groups)
        return OLY_OK;
    int *scratch = OLY_PLAN_NEW(p, int, g->n_nodes + 1), *count = OLY_PLAN_NEW(p, int, g->n_nodes + 1), n_ids = 0;
    grouping s = {.f = f,
                  .of = OLY_PLAN_NEW(p, int, g->n_nodes + 1),
                  .size = OLY_PLAN_NEW(p, int, g->n_nodes + 1),
                  .registers = OLY_PLAN_NEW(p, int, g->n_nodes + 1),
                  .first = OLY_PLAN_NEW(p, int, g->n_nodes + 1),
                  .last_use = OLY_PLAN_NEW(p, int, g->n_nodes + 1),
                  .met = OLY_PLAN_NEW(p, int, g->n_nodes + 1),
                  .reads_part = OLY_PLAN_NEW(p, bool, g->n_nodes + 1),
                  .apart = OLY_PLAN_NEW(p, uint8_t, g->n_nodes + 1)};
    OLY_PLAN_CHECK(scratch && count && s.of && s.size && s.registers && s.first && s.last_use && s.met && s.reads_part
                       ? s.apart
                       : NULL);
    for (int k = 0; k < g->n_nodes; k++) {
        oly_node *n = g->nodes[k];
        oly_graph_ahead(g, k, 1);
        f->values[k].depth = least_depth(&s, n);
        if (oly_ops[n->op].lowering == OLY_LOWER_WRITE && oly_ops[n->op].detail == OLY_WRITE_PART)
            oly_value_of(f, n->in[1])->written_by = n;
    }
    bool full = true;
    for (int round = 0; round < MOST_ROUNDS && full; round++) {
        raise_depths(&s, scratch);
        n_ids = form_groups(&s, &full);
    }
    if (!full && raise_results(&s, n_ids, scratch, count, p->mesh->n_devices > 1))
        n_ids = form_groups(&s, &full);
    memset(count, 0, sizeof *count * (size_t)(g->n_nodes + 1));
    collect(f, n_ids, s.of, scratch, count);
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
