/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the carries of a loop are placed: in the same layout at the start and the end of every iteration, counting the
 * cost of moving them there before the loop and to their readers after it. Carries of one shape and layout are tried
 * together, then each by itself: where the body reads them, where it computes them, where the initial value is, and
 * replicated. See chooser.h. */
#include "plan/choose/chooser.h"
#include <string.h>

enum { MOST_CARRIES = 64, MOST_PLACES = 6, MOST_UNITS_LOOKED_AT = 512 };

typedef struct carry {
    bool free;
    int n_places;
    oly_cuts place[MOST_PLACES]; /* worth trying */
    bool from_outside;           /* the initial value has a known placement: */
    oly_unit_read first;
    oly_cuts placed;
    const oly_node *result; /* in the graph around; NULL: unused */
} carry;

typedef struct loop {
    oly_chooser *c;
    int n;
    carry *carries;
    int tries;         /* remaining */
    oly_cost_sum cost; /* with the current carries */
    const oly_decision *decided;
} loop;

/* -- one carry ----------------------------------------------------------------------------------------------------- */

static oly_node *input_of(const loop *l, int k)
{
    return l->c->f->graph->inputs[1 + k];
}

/* The unit that computes a carry's next value; -1: it is an existing value. */
static bool maker_of(const loop *l, int k, oly_unit_read *r, int *unit)
{
    oly_chooser *c = l->c;
    if (!oly_trace_read(c, c->f->graph->outputs[k], r) || r->owner != c)
        return false;
    *unit = c->unit_of[r->root->index];
    if (*unit >= 0)
        return c->units[*unit].trusted && !c->units[*unit].pinned;
    return oly_ops[r->root->op].lowering == OLY_LOWER_INPUT;
}

static void look_at_carry(loop *l, int k)
{
    oly_chooser *c = l->c;
    carry *x = &l->carries[k];
    const oly_node *input = input_of(l, k), *init = c->f->loop->in[k];
    oly_unit_read r;
    int unit;
    *x = (carry){.result = oly_result_node(c->f->outer, c->f->loop, k)};
    if (input->type.rank == 0 || oly_value_of(c->f, input)->closed || c->elsewhere[input->index] ||
        (x->result && c->outer->elsewhere[x->result->index]) || !maker_of(l, k, &r, &unit))
        return;
    bool clear = oly_is_constant(init) || oly_trace_read(c->outer, init, &x->first);
    x->from_outside = clear && !oly_is_constant(init) && !oly_is_constant(x->first.root);
    x->free = clear && (!x->from_outside || oly_placed_now(x->first.owner, x->first.root, &x->placed));
}

static void add_place(loop *l, int k, oly_cuts cuts)
{
    carry *x = &l->carries[k];
    const oly_node *n = input_of(l, k);
    oly_axis_list axes[OLY_MAX_RANK];
    oly_cuts_axes(l->c->mesh, cuts, axes, n->type.rank);
    for (int d = 0; d < n->type.rank; d++) /* no finer than the extent */
        if (axes[d].n && oly_axis_list_parts(l->c->mesh, &axes[d]) > n->type.shape[d])
            return;
    for (int j = 0; j < x->n_places; j++)
        if (x->place[j] == cuts)
            return;
    if (x->n_places < MOST_PLACES)
        x->place[x->n_places++] = cuts;
}

/* The candidates for its placement, under the decisions for the current carries. */
static void find_places(loop *l, int k)
{
    const oly_chooser *c = l->c;
    carry *x = &l->carries[k];
    oly_unit_read r;
    int unit;
    x->n_places = 0;
    for (int j = c->last_read[input_of(l, k)->index]; j >= 0; j = c->reads[j].previous) {
        const oly_unit *u = &c->units[c->reads[j].unit];
        if (u->trusted && u->kind != OLY_UNIT_REDUCE)
            add_place(l, k,
                      oly_read_needs(c, u, &c->reads[j], l->decided ? &l->decided[c->reads[j].unit] : &u->greedy));
    }
    if (maker_of(l, k, &r, &unit) && unit >= 0) {
        const oly_decision *d = l->decided ? &l->decided[unit] : &c->units[unit].greedy;
        add_place(l, k, oly_cuts_mapped(c->mesh, d->work, r.from));
        add_place(l, k, oly_cuts_mapped(c->mesh, d->placed, r.from));
    }
    if (x->from_outside)
        add_place(l, k, oly_cuts_mapped(c->mesh, x->placed, x->first.from));
    add_place(l, k, 0);
}

/* -- the cost ------------------------------------------------------------------------------------------------------ */

/* Adds the movements before and after the loop. */
static void add_ends(loop *l, int k, oly_cost_sum *cost)
{
    oly_chooser *c = l->c, *outer = c->outer;
    const carry *x = &l->carries[k];
    oly_cuts done[MOST_PLACES];
    int n_done = 0;
    if (x->from_outside)
        oly_add_movement(c, x->first.root, x->placed, oly_cuts_mapped(c->mesh, c->carries[k], x->first.to), cost);
    for (int j = x->result ? outer->last_read[x->result->index] : -1; j >= 0; j = outer->reads[j].previous) {
        const oly_unit *u = &outer->units[outer->reads[j].unit];
        if (!u->trusted || u->kind == OLY_UNIT_REDUCE || n_done == MOST_PLACES)
            continue;
        oly_cuts needs = oly_read_needs(outer, u, &outer->reads[j], &u->greedy);
        bool again = false;
        for (int i = 0; i < n_done; i++)
            again = again || done[i] == needs;
        if (again)
            continue;
        done[n_done++] = needs;
        oly_add_movement(c, x->result, c->carries[k], needs, cost);
    }
    for (int j = 0; x->result && j < outer->n_brought; j++)
        if (outer->brought[j].node == x->result)
            oly_add_movement(c, x->result, c->carries[k], outer->brought[j].cuts, cost);
}

static oly_status find_cost(loop *l, oly_cost_sum *cost, const oly_decision **decided)
{
    oly_chooser *c = l->c;
    oly_decision *best;
    oly_cost_sum greedy, chosen;
    c->fresh = false;
    OLY_TRY(oly_search(c, &best, &greedy, &chosen));
    *decided = best;
    *cost = chosen;
    oly_cost_repeat(cost, &c->times);
    for (int k = 0; k < l->n; k++)
        if (l->carries[k].free)
            add_ends(l, k, cost);
    return OLY_OK;
}

/* -- the search ---------------------------------------------------------------------------------------------------- */

/* Do two carries have the same shape and layout? */
static bool alike(const loop *l, const oly_cuts *placed, int a, int b)
{
    const oly_type *x = &input_of(l, a)->type, *y = &input_of(l, b)->type;
    return placed[a] == placed[b] && x->rank == y->rank &&
           memcmp(x->shape, y->shape, sizeof *x->shape * (size_t)x->rank) == 0;
}

/* Tries carry k there, with `together` also all others like it. Keeps that if it costs less. */
static oly_status try_place(loop *l, int k, oly_cuts place, bool together, bool *changed)
{
    oly_cuts before[MOST_CARRIES];
    oly_cost_sum cost;
    const oly_decision *decided;
    bool others = false;
    memcpy(before, l->c->carries, sizeof *before * (size_t)l->n);
    if (place == before[k] || l->tries <= 0)
        return OLY_OK;
    for (int j = 0; j < l->n; j++)
        if (j == k || (together && l->carries[j].free && alike(l, before, j, k))) {
            l->c->carries[j] = place;
            others = others || j != k;
        }
    if (together && !others) { /* is tried by itself */
        memcpy(l->c->carries, before, sizeof *before * (size_t)l->n);
        return OLY_OK;
    }
    l->tries--;
    OLY_TRY(find_cost(l, &cost, &decided));
    if (oly_is_better(l->c, &cost, &l->cost)) {
        l->cost = cost;
        l->decided = decided;
        *changed = true;
    } else {
        memcpy(l->c->carries, before, sizeof *before * (size_t)l->n);
        l->c->fresh = false;
    }
    return OLY_OK;
}

/* Finds the units again for the current carries. */
static oly_status refresh(loop *l)
{
    return l->c->fresh ? OLY_OK : find_cost(l, &l->cost, &l->decided);
}

static oly_status try_all(loop *l, bool together, bool *changed)
{
    for (int k = 0; k < l->n && l->tries > 0 && l->cost.wire > 0; k++) {
        if (!l->carries[k].free)
            continue;
        OLY_TRY(refresh(l));
        find_places(l, k);
        for (int j = 0; j < l->carries[k].n_places; j++)
            OLY_TRY(try_place(l, k, l->carries[k].place[j], together, changed));
    }
    return OLY_OK;
}

oly_status oly_choose_carries(oly_chooser *c, bool *changed)
{
    loop l = {.c = c, .n = c->f->loop->params.n_carry, .tries = 4 + MOST_UNITS_LOOKED_AT / (c->n_units + 1)};
    if (l.n > MOST_CARRIES || c->n_units == 0)
        return OLY_OK;
    l.carries = OLY_ARENA_NEW(c->arena, carry, l.n + 1);
    OLY_PLAN_CHECK(l.carries);
    for (int k = 0; k < l.n; k++)
        look_at_carry(&l, k);
    OLY_TRY(find_cost(&l, &l.cost, &l.decided));
    for (bool again = true; again;) {
        again = false;
        OLY_TRY(try_all(&l, true, &again));
        OLY_TRY(try_all(&l, false, &again));
        *changed = *changed || again;
    }
    return refresh(&l);
}
