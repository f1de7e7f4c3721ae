/* Layouts chosen by price over the whole graph. Propagation has proposed a layout for every value; where the plan that follows
 * from it moves data, a beam search over the products, reductions and elementwise groups, in the order in which they will be
 * lowered, looks for cheaper ones among what their factors allow: which operand is gathered, which sum is left to devices and
 * whether it is scattered, what every device rather works itself. The layouts of propagation are always among the candidates and
 * win unless others are clearly cheaper and move fewer bytes. What users fix, and the shardings of results, never changes.
 * Decisions come from the graph, the mesh and the rates alone: every process makes the same. Called by plan.c. */
#include "plan/choose.h"
#include "core/option.h"
#include <string.h>

enum { BEAM = 6, MOST_CANDIDATES = 24 };

/* One way to decide the units so far. */
typedef struct state {
    oly_bill bill;
    bool greedy; /* every decision is that of propagation */
    oly_decision *decided;
} state;

typedef struct step {
    int from; /* state */
    oly_decision decision;
    oly_bill bill;
    bool greedy;
} step;

typedef struct candidates {
    int n;
    oly_decision d[MOST_CANDIDATES];
} candidates;

/* -- what a unit may do ------------------------------------------------------------------------------------------------ */

static bool same_decision(const oly_decision *a, const oly_decision *b)
{
    return a->work == b->work && a->summed == b->summed && a->lies == b->lies;
}

static void consider(oly_chooser *c, const oly_unit *u, oly_decision d, candidates *list)
{
    oly_settle_sum(c, u, &d);
    if (u->pinned && d.lies != u->greedy.lies)
        return;
    if (d.lies == d.work)
        d.wanted = u->kind == OLY_UNIT_GROUP ? d.work : u->greedy.wanted;
    for (int k = 0; k < list->n; k++)
        if (same_decision(&list->d[k], &d))
            return;
    if (list->n < MOST_CANDIDATES)
        list->d[list->n++] = d;
}

/* No device may be left without elements where without the choice none is: cuts finer than the extent are not tried. */
static oly_cuts fitting(const oly_chooser *c, const oly_node *n, oly_cuts cuts)
{
    oly_axis_list axes[OLY_MAX_RANK];
    oly_cuts_axes(c->mesh, cuts, axes, n->type.rank);
    for (int d = 0; d < n->type.rank; d++)
        while (axes[d].n > 0 && oly_axis_list_parts(c->mesh, &axes[d]) > n->type.shape[d])
            axes[d].n--;
    return oly_cuts_of(axes, n->type.rank);
}

/* Where the unit's operand lies, in dimensions as the unit sees them. */
static oly_cuts seen(const oly_chooser *c, const oly_unit *u, int read, const oly_decision *decided)
{
    const oly_unit_read *r = &c->reads[u->first_read + read];
    return oly_cuts_mapped(c->mesh, oly_read_lies(r, decided), r->from);
}

static void try_group(oly_chooser *c, const oly_unit *u, oly_cuts cuts, candidates *list)
{
    cuts = fitting(c, u->node, cuts);
    consider(c, u, (oly_decision){cuts, 0, cuts, cuts}, list);
}

/* As one of the operands lies, as two of them together, as it is wanted, or all of it everywhere. */
static void group_candidates(oly_chooser *c, const oly_unit *u, const oly_decision *decided, candidates *list)
{
    for (int k = 0; k < u->n_reads; k++) {
        oly_cuts cuts = seen(c, u, k, decided);
        try_group(c, u, cuts, list);
        for (int j = 0; j < u->n_reads && u->n_reads <= 4; j++)
            try_group(c, u, oly_cuts_merged(c->mesh, cuts, seen(c, u, j, decided)), list);
    }
    for (int k = 0; k < u->n_wants; k++)
        try_group(c, u, u->wants[k], list);
    for (int k = 0; k < u->n_demands; k++)
        try_group(c, u, u->demand[k].cuts, list);
    try_group(c, u, 0, list);
}

/* With these contracting cuts: the loop cut as wanted there; a sum scattered as wanted, or not at all. */
static void try_product(oly_chooser *c, const oly_unit *u, oly_cuts summed, oly_cuts cuts, candidates *list)
{
    oly_cuts work = fitting(c, u->node, oly_cuts_without(c->mesh, cuts, summed));
    consider(c, u, (oly_decision){work, summed, work, 0}, list);
    consider(c, u, (oly_decision){work, summed, u->greedy.wanted, 0}, list);
    for (int k = 0; k < u->n_wants && summed; k++)
        consider(c, u, (oly_decision){work, summed, u->wants[k], 0}, list);
    for (int k = 0; k < u->n_demands && summed; k++)
        consider(c, u, (oly_decision){work, summed, u->demand[k].cuts, 0}, list);
}

static void product_candidates(oly_chooser *c, const oly_unit *u, const oly_decision *decided, candidates *list)
{
    const oly_contraction *product = &u->node->params.contraction;
    oly_cuts free[2], pairs[3] = {0};
    for (int o = 0; o < 2; o++) {
        int8_t result[OLY_MAX_RANK], pair[OLY_MAX_RANK];
        oly_cuts cuts = seen(c, u, o, decided);
        memset(result, -1, sizeof result);
        memset(pair, -1, sizeof pair);
        for (int e = 0; e < u->node->in[o]->type.rank; e++)
            result[e] = (int8_t)u->dims->result[o][e];
        for (int k = 0; k < product->n_contract; k++)
            pair[product->contract[o][k]] = (int8_t)k;
        free[o] = oly_cuts_mapped(c->mesh, cuts, result);
        pairs[o] = oly_cuts_mapped(c->mesh, cuts, pair);
    }
    for (int s = 2; s >= 0; s--) {
        if ((s < 2 && pairs[s] == 0) || (s == 1 && pairs[1] == pairs[0]))
            continue;
        try_product(c, u, pairs[s], u->greedy.work, list);
        try_product(c, u, pairs[s], u->greedy.wanted, list);
        for (int o = 0; o < 2; o++) {
            try_product(c, u, pairs[s], oly_cuts_merged(c->mesh, free[o], free[1 - o]), list);
            try_product(c, u, pairs[s], free[o], list);
        }
        for (int k = 0; k < u->n_wants; k++)
            try_product(c, u, pairs[s], u->wants[k], list);
        for (int k = 0; k < u->n_demands; k++)
            try_product(c, u, pairs[s], u->demand[k].cuts, list);
        try_product(c, u, pairs[s], 0, list);
    }
}

static void reduction_candidates(oly_chooser *c, const oly_unit *u, const oly_decision *decided, candidates *list)
{
    oly_decision d = {0};
    oly_reduction_cuts(c, u, seen(c, u, 0, decided), &d);
    d.wanted = d.work;
    consider(c, u, d, list);
    d.wanted = u->greedy.wanted;
    consider(c, u, d, list);
    for (int k = 0; k < u->n_wants; k++) {
        d.wanted = u->wants[k];
        consider(c, u, d, list);
    }
    for (int k = 0; k < u->n_demands; k++) {
        d.wanted = u->demand[k].cuts;
        consider(c, u, d, list);
    }
}

static void find_candidates(oly_chooser *c, const oly_unit *u, const oly_decision *decided, bool greedy,
                            candidates *list)
{
    list->n = 0;
    if (greedy)
        list->d[list->n++] = u->greedy;
    switch (u->kind) {
    case OLY_UNIT_GROUP:
        if (!greedy)
            list->d[list->n++] = u->greedy;
        group_candidates(c, u, decided, list);
        break;
    case OLY_UNIT_CONTRACT:
        if (!greedy)
            list->d[list->n++] = u->greedy;
        product_candidates(c, u, decided, list);
        break;
    case OLY_UNIT_REDUCE: reduction_candidates(c, u, decided, list); break;
    }
}

/* -- the search -------------------------------------------------------------------------------------------------------- */

/* Do two steps leave everything that will still be read in the same places? */
static bool alike(const oly_chooser *c, const state *states, const step *a, const step *b, int unit,
                  const int *last_reader)
{
    if (a->decision.lies != b->decision.lies)
        return false;
    for (int k = 0; k < unit; k++)
        if (last_reader[k] > unit && states[a->from].decided[k].lies != states[b->from].decided[k].lies)
            return false;
    (void)c;
    return true;
}

/* Keeps the cheapest steps, and that of propagation. */
static int keep(const oly_chooser *c, const state *states, step *steps, int n, const step *next, int unit,
                const int *last_reader)
{
    for (int k = 0; k < n; k++)
        if (alike(c, states, &steps[k], next, unit, last_reader) && !steps[k].greedy && !next->greedy) {
            if (next->bill.seconds < steps[k].bill.seconds)
                steps[k] = *next;
            return n;
        }
    if (n < BEAM + 1) {
        steps[n] = *next;
        return n + 1;
    }
    int worst = -1;
    for (int k = 0; k < n; k++)
        if (!steps[k].greedy && (worst < 0 || steps[k].bill.seconds > steps[worst].bill.seconds))
            worst = k;
    if (next->greedy || next->bill.seconds < steps[worst].bill.seconds)
        steps[worst] = *next;
    return n;
}

static void find_last_readers(const oly_chooser *c, int *last)
{
    for (int k = 0; k < c->n_units; k++)
        last[k] = -1;
    for (int k = 0; k < c->n_units; k++)
        for (int j = 0; j < c->units[k].n_reads; j++) {
            int source = c->reads[c->units[k].first_read + j].source;
            if (source >= 0)
                last[source] = k;
        }
}

/* Decides one unit more in every state. */
static int advance(oly_chooser *c, state *states, int n, state *next, int unit, const int *last_reader)
{
    step steps[BEAM + 1];
    int n_steps = 0;
    candidates list;
    const oly_unit *u = &c->units[unit];
    for (int s = 0; s < n; s++) {
        if (u->trusted) {
            find_candidates(c, u, states[s].decided, states[s].greedy, &list);
        } else {
            list.n = 1;
            list.d[0] = u->greedy;
        }
        for (int k = 0; k < list.n; k++) {
            oly_bill bill = {0};
            if (u->trusted)
                bill = oly_unit_price(c, unit, states[s].decided, &list.d[k]);
            step t = {s,
                      list.d[k],
                      {states[s].bill.seconds + bill.seconds, states[s].bill.wire + bill.wire},
                      states[s].greedy && k == 0};
            n_steps = keep(c, states, steps, n_steps, &t, unit, last_reader);
        }
    }
    for (int k = 0; k < n_steps; k++) {
        memcpy(next[k].decided, states[steps[k].from].decided, sizeof(oly_decision) * (size_t)unit);
        next[k].decided[unit] = steps[k].decision;
        next[k].bill = steps[k].bill;
        next[k].greedy = steps[k].greedy;
    }
    return n_steps;
}

static oly_bill greedy_bill(oly_chooser *c, oly_decision *decided)
{
    oly_bill all = {0};
    for (int k = 0; k < c->n_units; k++) {
        decided[k] = c->units[k].greedy;
        if (!c->units[k].trusted)
            continue;
        oly_bill bill = oly_unit_price(c, k, decided, &decided[k]);
        all.seconds += bill.seconds;
        all.wire += bill.wire;
    }
    return all;
}

/* Fewer bytes, and predicted to take clearly less time; by more where bytes are estimated from some of the devices. Where levels
 * are seen, time alone: a byte is not what another one is. */
static bool is_better(const oly_chooser *c, const oly_bill *chosen, const oly_bill *greedy)
{
    double margin = c->n_sample < c->mesh->n_devices ? 0.1 : 0.02;
    if (oly_rates_now()->by_level)
        return chosen->seconds < (0.99 - margin) * greedy->seconds;
    return chosen->wire <= (1 - margin) * greedy->wire - 1 && chosen->seconds < (0.99 - margin) * greedy->seconds;
}

static oly_status search(oly_chooser *c, oly_decision **best, oly_bill *greedy, oly_bill *chosen)
{
    state states[2][BEAM + 1] = {0};
    int n = 1, side = 0, *last_reader = OLY_ARENA_NEW(c->arena, int, c->n_units);
    OLY_PLAN_CHECK(last_reader);
    for (int k = 0; k < 2 * (BEAM + 1); k++) {
        state *s = &states[k / (BEAM + 1)][k % (BEAM + 1)];
        s->decided = OLY_ARENA_NEW(c->arena, oly_decision, c->n_units);
        OLY_PLAN_CHECK(s->decided);
    }
    *best = NULL;
    *greedy = greedy_bill(c, states[0][0].decided);
    if (greedy->wire <= 0)
        return OLY_OK;
    find_last_readers(c, last_reader);
    states[0][0].greedy = true;
    for (int unit = 0; unit < c->n_units; unit++, side = 1 - side)
        n = advance(c, states[side], n, states[1 - side], unit, last_reader);
    for (int k = 0; k < n; k++) {
        const state *s = &states[side][k];
        if (is_better(c, &s->bill, greedy) && (!*best || s->bill.seconds < chosen->seconds)) {
            *best = s->decided;
            *chosen = s->bill;
        }
    }
    return OLY_OK;
}

/* -- what was chosen --------------------------------------------------------------------------------------------------- */

static bool is_output(const oly_frame *f, const oly_node *n)
{
    for (int k = 0; k < f->graph->n_outputs; k++) {
        const oly_node *o = f->graph->outputs[k];
        while (oly_ops[o->op].lowering == OLY_LOWER_VIEW)
            o = o->in[0];
        if (o == n)
            return true;
    }
    return false;
}

/* The value lies there from now on; what the caller gets stays as it was. */
static void move(oly_chooser *c, oly_node *n, oly_cuts lies, const oly_choice *choice)
{
    oly_value *v = oly_value_of(c->f, n);
    oly_axis_list axes[OLY_MAX_RANK];
    v->choice = choice;
    if (is_output(c->f, n))
        return;
    oly_cuts_axes(c->mesh, lies, axes, n->type.rank);
    for (int d = 0; d < n->type.rank; d++) {
        if (oly_axis_list_equal(&v->axes[d], &axes[d]))
            continue;
        v->axes[d] = axes[d];
        oly_note_reason(c->p, v, d, (oly_reason){.why = OLY_WHY_PRICE, .node = n});
    }
}

/* A product whose operands have been moved is told how it is cut, also where that is as before. */
static bool reads_as_before(const oly_chooser *c, const oly_unit *u, const oly_decision *decided)
{
    for (int k = 0; k < u->n_reads; k++) {
        int source = c->reads[u->first_read + k].source;
        if (source >= 0 && decided[source].lies != c->units[source].greedy.lies)
            return false;
    }
    return true;
}

static oly_status take(oly_chooser *c, const oly_decision *decided, const oly_bill *greedy, const oly_bill *chosen)
{
    oly_plan *plan = c->p->plan;
    plan->priced_bytes[0] += greedy->wire;
    plan->priced_bytes[1] += chosen->wire;
    plan->priced_seconds[0] += greedy->seconds;
    plan->priced_seconds[1] += chosen->seconds;
    for (int k = 0; k < c->n_units; k++) {
        oly_unit *u = &c->units[k];
        bool member = u->kind == OLY_UNIT_GROUP && !u->group;
        if (!member && (!u->trusted || (same_decision(&decided[k], &u->greedy) && reads_as_before(c, u, decided))))
            continue;
        oly_choice *choice = OLY_PLAN_NEW(c->p, oly_choice, 1);
        OLY_PLAN_CHECK(choice);
        oly_cuts_axes(c->mesh, decided[k].work, choice->work, OLY_MAX_RANK);
        oly_cuts_axes(c->mesh, decided[k].summed, choice->summed, OLY_MAX_RANK);
        oly_cuts_axes(c->mesh, decided[k].wanted, choice->wanted, OLY_MAX_RANK);
        choice->wire[0] = greedy->wire;
        choice->wire[1] = chosen->wire;
        choice->seconds[0] = greedy->seconds;
        choice->seconds[1] = chosen->seconds;
        choice->differs = !same_decision(&decided[k], &u->greedy);
        for (int j = 0; u->group && j < u->group->n_nodes; j++)
            move(c, u->group->nodes[j], decided[k].lies, choice);
        if (!u->group)
            move(c, u->node, decided[k].lies, choice);
    }
    return OLY_OK;
}

/* Groups that something is moved for, or whose results are moved, may fall apart: their nodes are decided one by one, unless
 * there are too many. */
static oly_status split_groups(oly_chooser *c)
{
    bool any = false;
    int n_units = c->n_units, n_groups = c->f->n_groups;
    oly_decision *decided = OLY_ARENA_NEW(c->arena, oly_decision, c->n_units);
    bool *split = OLY_ARENA_NEW(c->arena, bool, n_groups + 1);
    OLY_PLAN_CHECK(decided ? split : NULL);
    for (int k = 0; k < c->n_units; k++) {
        const oly_unit *u = &c->units[k];
        decided[k] = u->greedy;
        if (u->group && u->group->n_nodes > 1 && u->trusted && oly_unit_price(c, k, decided, &decided[k]).wire > 0) {
            split[u->group - c->f->groups] = any = true;
            n_units += u->group->n_nodes - 1;
        }
    }
    if (!any || n_units > OLY_CHOOSE_UNITS)
        return OLY_OK;
    c->split = split;
    return oly_find_units(c);
}

/* Groups whose nodes do not lie together any more are made anew: group.c joins only what is worked in the same cuts. */
static oly_status group_again(oly_chooser *c)
{
    bool apart = false;
    oly_frame *f = c->f;
    for (int g = 0; c->split && g < f->n_groups; g++)
        for (int k = 1; c->split[g] && k < f->groups[g].n_nodes; k++)
            apart = apart || memcmp(oly_value_of(f, f->groups[g].nodes[k])->choice->work,
                                    oly_value_of(f, f->groups[g].nodes[0])->choice->work,
                                    sizeof(oly_axis_list[OLY_MAX_RANK])) != 0;
    if (!apart)
        return OLY_OK;
    for (int k = 0; k < f->graph->n_nodes; k++) {
        f->values[k].group = -1;
        f->values[k].depth = 0;
    }
    f->groups = NULL;
    f->n_groups = 0;
    return oly_make_groups(c->p, f);
}

static oly_status choose(oly_chooser *c)
{
    oly_decision *best;
    oly_bill greedy, chosen = {0};
    int coordinates[OLY_CHOOSE_SAMPLE * OLY_CHOOSE_AXES];
    c->coordinates = coordinates;
    oly_chooser_sample(c);
    for (int a = 0; a < c->mesh->n_axes; a++)
        c->level[a] = oly_rates_now()->by_level ? oly_axis_level(c->mesh, a) : OLY_LEVEL_PROCESS;
    OLY_TRY(oly_find_units(c));
    if (c->n_units == 0)
        return OLY_OK;
    OLY_TRY(split_groups(c));
    OLY_TRY(search(c, &best, &greedy, &chosen));
    if (!best)
        return OLY_OK;
    OLY_TRY(take(c, best, &greedy, &chosen));
    return group_again(c);
}

oly_status oly_choose(oly_planner *p, oly_frame *f)
{
    oly_arena arena = {0};
    oly_chooser c = {.p = p, .f = f, .mesh = p->mesh, .arena = &arena};
    if (!oly_option.choose || p->mesh->n_devices == 1 || p->mesh->n_axes > OLY_CHOOSE_AXES || p->mesh->explicit_axes)
        return OLY_OK;
    OLY_TRY(oly_make_groups(p, f));
    oly_status st = choose(&c);
    oly_arena_free(&arena);
    return st;
}
