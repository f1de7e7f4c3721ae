/* SPDX-License-Identifier: BSD-3-Clause */
/* The search for cheaper decisions in one graph: a beam search over its units in the order in which they will be
 * lowered. States that place everything still to be read alike are merged, so on a chain this is dynamic programming.
 * Decisions that are a window of units old are settled as in the best state, so that the time is linear in the size of
 * the graph. A solution is taken where it is clearly better, stretch by stretch: a stretch extends from one point at
 * which everything is placed as propagation has it to the next. See chooser.h. */
#include "plan/choose/chooser.h"
#include <string.h>

enum { BEAM = 12, MOST_PRODUCTS = 4 };

/* One way to decide the units so far; `recent` is the ring of those that are not settled. */
typedef struct state {
    oly_cost_sum cost;
    bool greedy; /* every decision is propagation's */
    oly_decision *recent;
} state;

typedef struct step {
    int from; /* index of the state it extends */
    oly_decision decision;
    oly_cost_sum cost;
    bool greedy;
} step;

/* The settings of one pass. A beam holds few solutions, so several passes try and cost different ones. */
typedef struct passing {
    oly_objective objective;
    bool sharing;    /* the costs of movements are shared: see oly_unit_cost */
    bool bounded;    /* no device does more work than the ceiling allows */
    bool scattering; /* sums may also be reduce-scattered where no reader wants them so */
    bool recutting;  /* products may be split over axes that split neither operand so */
    bool turning;    /* groups may be split along other dimensions than their operands */
} passing;

typedef struct search {
    oly_chooser *c;
    oly_decision *settled; /* [n_units] */
    int begin;             /* first unit that is not settled */
    int *last_reader;      /* [n_units] -1: none */
    int width;             /* of the beam */
    oly_objective objective;
    bool bounded;
    double most_excess; /* work beyond the ceiling */
    bool waits;         /* some reductions may be deferred */
    int n_live, *live;  /* units that are not settled and will still be read */
    state states[2][BEAM + 1];
} search;

static oly_decided decided_by(const search *s, const state *by)
{
    return (oly_decided){s->settled, by->recent, s->begin};
}

/* -- the search ---------------------------------------------------------------------------------------------------- */

/* Do two steps place everything that will still be read alike? */
static bool alike(const search *s, const state *states, const step *a, const step *b)
{
    if (a->decision.placed != b->decision.placed)
        return false;
    if (a->from == b->from)
        return true;
    for (int k = 0; k < s->n_live; k++) {
        int at = s->live[k] % OLY_CHOOSE_WINDOW;
        if (states[a->from].recent[at].placed != states[b->from].recent[at].placed)
            return false;
    }
    return true;
}

/* Keeps the cheapest steps, and propagation's. */
static int keep(const search *s, const state *states, step *steps, int n, const step *next)
{
    for (int k = 0; k < n; k++)
        if (!steps[k].greedy && !next->greedy && alike(s, states, &steps[k], next)) {
            if (oly_is_cheaper(s->objective, &next->cost, &steps[k].cost))
                steps[k] = *next;
            return n;
        }
    if (n < s->width + 1) {
        steps[n] = *next;
        return n + 1;
    }
    int worst = -1;
    for (int k = 0; k < n; k++)
        if (!steps[k].greedy && (worst < 0 || oly_is_cheaper(s->objective, &steps[worst].cost, &steps[k].cost)))
            worst = k;
    if (next->greedy || oly_is_cheaper(s->objective, &next->cost, &steps[worst].cost))
        steps[worst] = *next;
    return n;
}

static void find_last_readers(const oly_chooser *c, int *last)
{
    for (int k = 0; k < c->n_units; k++)
        last[k] = -1;
    for (int k = 0; k < c->n_reads; k++)
        if (c->reads[k].source >= 0)
            last[c->reads[k].source] = c->reads[k].unit;
}

/* Updates the units that are read after `unit`. */
static void look_at_live(search *s, int unit)
{
    int kept = 0;
    if (unit > 0)
        s->live[s->n_live++] = unit - 1;
    for (int k = 0; k < s->n_live; k++)
        if (s->live[k] >= s->begin && s->last_reader[s->live[k]] > unit)
            s->live[kept++] = s->live[k];
    s->n_live = kept;
}

/* Settles the oldest unit as in the best state and drops the states that decide it otherwise. */
static int settle(search *s, state *states, int n)
{
    int at = s->begin % OLY_CHOOSE_WINDOW, best = 0, kept = 0;
    for (int k = 1; k < n; k++)
        if (oly_is_cheaper(s->objective, &states[k].cost, &states[best].cost))
            best = k;
    s->settled[s->begin++] = states[best].recent[at];
    oly_decision first = states[best].recent[at];
    for (int k = 0; k < n; k++)
        if (oly_same_decision(&states[k].recent[at], &first) && states[k].recent[at].wanted == first.wanted) {
            state swapped = states[kept];
            states[kept++] = states[k];
            states[k] = swapped;
        }
    return kept;
}

/* If bytes decide, the work is divided at least as far as is of use. */
static bool is_beyond(const search *s, const oly_unit *u, const oly_decision *d)
{
    return s->bounded && u->kind != OLY_UNIT_REDUCE && oly_decision_parts(s->c->mesh, d) < u->least;
}

/* Decides one more unit in every state. */
static int advance(search *s, state *states, int n, state *next, int unit)
{
    oly_chooser *c = s->c;
    step steps[BEAM + 1];
    int n_steps = 0;
    oly_candidates list;
    const oly_unit *u = &c->units[unit];
    look_at_live(s, unit);
    for (int k = 0; k < n; k++) {
        oly_decided decided = decided_by(s, &states[k]);
        list.n = 1;
        list.d[0] = u->greedy;
        if (u->trusted)
            oly_find_candidates(c, u, &decided, states[k].greedy, &list);
        for (int j = 0; j < list.n; j++) {
            step t = {k, list.d[j], states[k].cost, states[k].greedy && j == 0};
            if (!t.greedy && is_beyond(s, u, &list.d[j]))
                continue;
            if (u->trusted) {
                oly_cost_sum cost = oly_unit_cost(c, unit, &decided, &list.d[j]);
                oly_cost_add(&t.cost, &cost);
            }
            if (t.greedy || !s->bounded || t.cost.excess <= s->most_excess)
                n_steps = keep(s, states, steps, n_steps, &t);
        }
    }
    int n_recent = unit < OLY_CHOOSE_WINDOW ? unit : OLY_CHOOSE_WINDOW;
    for (int k = 0; k < n_steps; k++) {
        memcpy(next[k].recent, states[steps[k].from].recent, sizeof(oly_decision) * (size_t)n_recent);
        next[k].recent[unit % OLY_CHOOSE_WINDOW] = steps[k].decision;
        next[k].cost = steps[k].cost;
        next[k].greedy = steps[k].greedy;
    }
    return n_steps;
}

/* -- what is taken ------------------------------------------------------------------------------------------------- */

static oly_cost_sum added(oly_cost_sum a, oly_cost_sum b)
{
    oly_cost_add(&a, &b);
    return a;
}

static oly_cost_sum cost_of(oly_chooser *c, int unit, const oly_decision *decided)
{
    oly_decided all = oly_decided_all(decided);
    c->whole = decided;
    oly_cost_sum cost = c->units[unit].trusted ? oly_unit_cost(c, unit, &all, &decided[unit]) : (oly_cost_sum){0};
    c->whole = NULL;
    return cost;
}

oly_cost_sum oly_cost_of_decisions(oly_chooser *c, const oly_decision *decided)
{
    oly_cost_sum all = oly_brought_cost(c);
    for (int k = 0; k < c->n_units; k++)
        all = added(all, cost_of(c, k, decided));
    return all;
}

/* Resets stretches that are not clearly better to propagation's decisions. True: some remain. */
static bool take_stretches(search *s, oly_decision *found, const oly_decision *greedy)
{
    oly_chooser *c = s->c;
    oly_cost_sum chosen = {0}, before = {0};
    int begin = 0, open = 0; /* open: placed differently and still to be read */
    bool differs = false, any = false;
    int *ends = s->live; /* [unit + 1]: how many of them end there */
    memset(ends, 0, sizeof *ends * (size_t)(c->n_units + 2));
    for (int k = 0; k < c->n_units; k++) {
        chosen = added(chosen, cost_of(c, k, found));
        before = added(before, cost_of(c, k, greedy));
        differs = differs || !oly_same_decision(&found[k], &greedy[k]);
        if (found[k].placed != greedy[k].placed && s->last_reader[k] > k) {
            open++;
            ends[s->last_reader[k]]++;
        }
        open -= ends[k];
        if (open > 0 && k + 1 < c->n_units)
            continue;
        if (differs && !oly_is_better(c, &chosen, &before))
            memcpy(&found[begin], &greedy[begin], sizeof *found * (size_t)(k + 1 - begin));
        else
            any = any || differs;
        begin = k + 1;
        differs = false;
        chosen = before = (oly_cost_sum){0};
    }
    return any;
}

static oly_status make_search(search *s, oly_chooser *c, oly_decision **greedy)
{
    memset(s, 0, sizeof *s);
    s->c = c;
    for (int k = 0; k < c->n_units; k++)
        s->waits = s->waits || c->units[k].deferred < 1;
    s->settled = OLY_ARENA_NEW(c->arena, oly_decision, c->n_units + 1);
    s->last_reader = OLY_ARENA_NEW(c->arena, int, c->n_units + 1);
    s->live = OLY_ARENA_NEW(c->arena, int, c->n_units + 2);
    *greedy = OLY_ARENA_NEW(c->arena, oly_decision, c->n_units + 1);
    oly_decision *rings = OLY_ARENA_NEW(c->arena, oly_decision, 2 * (BEAM + 1) * OLY_CHOOSE_WINDOW);
    OLY_PLAN_CHECK(s->settled && s->last_reader && s->live && *greedy ? rings : NULL);
    for (int k = 0; k < 2 * (BEAM + 1); k++)
        s->states[k / (BEAM + 1)][k % (BEAM + 1)].recent = rings + k * OLY_CHOOSE_WINDOW;
    for (int k = 0; k < c->n_units; k++)
        (*greedy)[k] = c->units[k].greedy;
    find_last_readers(c, s->last_reader);
    s->states[0][0].greedy = true;
    return OLY_OK;
}

/* A state's complete solution. */
static oly_status collect(search *s, const state *by, oly_decision **all)
{
    oly_chooser *c = s->c;
    *all = OLY_ARENA_NEW(c->arena, oly_decision, c->n_units + 1);
    OLY_PLAN_CHECK(*all);
    memcpy(*all, s->settled, sizeof **all * (size_t)s->begin);
    for (int k = s->begin; k < c->n_units; k++)
        (*all)[k] = by->recent[k % OLY_CHOOSE_WINDOW];
    return OLY_OK;
}

/* Is it better than what earlier passes found? */
static bool takes(const search *s, const oly_cost_sum *cost, const oly_cost_sum *chosen, double most)
{
    switch (oly_choose_objective()) {
    case OLY_LEAST_BYTES:
        return cost->wire < 0.98 * chosen->wire - 1 ||
               (cost->wire <= chosen->wire + 0.5 &&
                (cost->collectives < chosen->collectives - 0.5 ||
                 (cost->collectives < chosen->collectives + 0.5 && cost->seconds < chosen->seconds)));
    case OLY_LEAST_TIME:
        return s->objective == OLY_LEAST_BYTES ? cost->wire < 0.98 * chosen->wire - 1
                                               : cost->seconds < chosen->seconds && cost->wire <= most;
    default: return cost->seconds < chosen->seconds;
    }
}

/* The best of the final states that improve on propagation, as a whole or in stretches. */
static oly_status take_best(search *s, const state *states, int n, const oly_decision *greedy,
                            const oly_cost_sum *before, oly_decision **best, oly_cost_sum *chosen)
{
    oly_cost_sum fewest = *before;
    bool shared = s->c->sharing;
    s->c->too_dear = false;
    double most = *best ? chosen->wire : before->wire - 1; /* must have no more bytes than what an earlier pass found */
    int cheapest = 0;
    s->c->sharing = false;
    for (int k = 1; k < n; k++)
        if (oly_is_cheaper(s->objective, &states[k].cost, &states[cheapest].cost))
            cheapest = k;
    for (int k = 0; k < n; k++) {
        oly_decision *found;
        oly_cost_sum cost = added(states[k].cost, oly_brought_cost(s->c));
        if (states[k].greedy || (s->c->n_units > OLY_CHOOSE_QUICK && k != cheapest))
            continue;
        OLY_TRY(collect(s, &states[k], &found));
        if (shared || s->waits)
            cost = oly_cost_of_decisions(s->c, found);
        if (!oly_is_better(s->c, &cost, before)) {
            if (oly_is_cheaper(OLY_LEAST_BYTES, &cost, &fewest)) {
                fewest = cost;
                s->c->too_dear = true;
            }
            if (!take_stretches(s, found, greedy))
                continue;
            cost = oly_cost_of_decisions(s->c, found);
        }
        bool may = oly_may_take(&cost, before);
        if (oly_is_cheaper(OLY_LEAST_BYTES, &cost, &fewest)) {
            fewest = cost;
            s->c->too_dear = !may;
        }
        if (may && takes(s, &cost, chosen, most)) {
            *best = found;
            *chosen = cost;
        }
    }
    return OLY_OK;
}

static oly_status pass(oly_chooser *c, passing how, const oly_cost_sum *before, oly_decision **best,
                       oly_cost_sum *chosen)
{
    search s;
    oly_decision *greedy;
    int n = 1, side = 0;
    OLY_TRY(make_search(&s, c, &greedy));
    s.objective = how.objective;
    s.width = c->n_units > OLY_CHOOSE_QUICK                                                       ? BEAM / 4
              : c->n_units > OLY_CHOOSE_WINDOW || how.objective != OLY_LEAST_BYTES || how.turning ? BEAM / 2
                                                                                                  : BEAM;
    s.bounded = how.bounded;
    s.most_excess = oly_most_excess(before);
    c->sharing = how.sharing;
    c->recutting = how.recutting;
    c->turning = how.turning;
    c->scattering = how.scattering;
    for (int unit = 0; unit < c->n_units; unit++, side = 1 - side) {
        if (unit - s.begin == OLY_CHOOSE_WINDOW)
            n = settle(&s, s.states[side], n);
        n = advance(&s, s.states[side], n, s.states[1 - side], unit);
    }
    return take_best(&s, s.states[side], n, greedy, before, best, chosen);
}

static int n_products(const oly_chooser *c)
{
    int n = 0;
    for (int k = 0; k < c->n_units; k++)
        n += c->units[k].kind == OLY_UNIT_CONTRACT;
    return n;
}

/* Is anything read often enough to be worth moving once for all readers? */
static bool is_shared(const oly_chooser *c)
{
    for (int k = 0; k < c->n_reads; k++)
        if (c->n_readers[c->reads[k].entry] >= OLY_CHOOSE_SHARED)
            return true;
    return false;
}

/* Fewest bytes; if that solution exceeds the ceiling, once more within it. */
static oly_status frugal_pass(oly_chooser *c, passing how, const oly_cost_sum *before, oly_decision **best,
                              oly_cost_sum *chosen)
{
    OLY_TRY(pass(c, how, before, best, chosen));
    how.bounded = true;
    return c->too_dear && oly_choose_objective() == OLY_LEAST_BYTES ? pass(c, how, before, best, chosen) : OLY_OK;
}

/* Neighbours' elements are read whatever is decided: if nothing else moves, there is nothing to choose. */
static oly_cost_sum cost_without_rolls(oly_chooser *c, const oly_decision *decided)
{
    c->without_rolls = true;
    oly_cost_sum cost = oly_cost_of_decisions(c, decided);
    c->without_rolls = false;
    return cost;
}

static oly_status look(oly_chooser *c, oly_decision **best, oly_cost_sum *before, oly_cost_sum *chosen)
{
    oly_decision *greedy = OLY_ARENA_NEW(c->arena, oly_decision, c->n_units + 1);
    OLY_PLAN_CHECK(greedy);
    for (int k = 0; k < c->n_units; k++)
        greedy[k] = c->units[k].greedy;
    *best = NULL;
    *before = *chosen = cost_without_rolls(c, greedy);
    if (before->wire <= 0)
        return OLY_OK;
    if (c->has_rolls)
        *before = *chosen = oly_cost_of_decisions(c, greedy);
    bool large = c->n_units > OLY_CHOOSE_QUICK, shared = is_shared(c);
    oly_objective aim = oly_choose_objective();
    c->could_recut = false;
    if (!shared || !large)
        OLY_TRY(pass(c, (passing){.objective = OLY_LEAST_TIME}, before, best, chosen));
    if (shared)
        OLY_TRY(pass(c, (passing){.objective = OLY_LEAST_TIME, .sharing = true}, before, best, chosen));
    if (aim != OLY_LEAST_BYTES && c->n_units <= OLY_CHOOSE_THOROUGH && n_products(c) <= MOST_PRODUCTS)
        OLY_TRY(pass(c, (passing){.objective = OLY_LEAST_TIME, .scattering = true}, before, best, chosen));
    if (large || aim == OLY_LEAST_TIME_ONLY)
        return OLY_OK;
    passing how = {.objective = OLY_LEAST_BYTES};
    OLY_TRY(frugal_pass(c, how, before, best, chosen));
    how.scattering = true;
    OLY_TRY(frugal_pass(c, how, before, best, chosen));
    how.recutting = true;
    if (!c->could_recut || c->n_units > OLY_CHOOSE_WINDOW)
        return OLY_OK;
    OLY_TRY(frugal_pass(c, how, before, best, chosen));
    how.turning = true;
    return frugal_pass(c, how, before, best, chosen);
}

/* Splits groups that cause movements, of operands or results, into units of one node, unless that makes too many
 * units. */
static oly_status split_groups(oly_chooser *c)
{
    bool any = false;
    int n_units = c->n_units, n_groups = c->f->n_groups;
    oly_decision *decided = OLY_ARENA_NEW(c->arena, oly_decision, c->n_units + 1);
    bool *split = OLY_ARENA_NEW(c->arena, bool, n_groups + 1);
    OLY_PLAN_CHECK(decided ? split : NULL);
    for (int k = 0; k < c->n_units; k++)
        decided[k] = c->units[k].greedy;
    c->without_rolls = true;
    for (int k = 0; k < c->n_units; k++) {
        const oly_unit *u = &c->units[k];
        if (u->group && u->group->n_nodes > 1 && cost_of(c, k, decided).wire > 0) {
            split[u->group - c->f->groups] = any = true;
            n_units += u->group->n_nodes - 1;
        }
    }
    c->without_rolls = false;
    if (!any || n_units > OLY_CHOOSE_UNITS)
        return OLY_OK;
    c->split = split;
    return oly_find_units(c);
}

oly_status oly_search(oly_chooser *c, oly_decision **best, oly_cost_sum *greedy, oly_cost_sum *chosen)
{
    if (!c->fresh || c->split || c->first_child) {
        c->split = NULL;
        OLY_TRY(oly_find_units(c));
    }
    OLY_TRY(split_groups(c));
    OLY_TRY(look(c, best, greedy, chosen));
    if (!*best && c->split) {
        c->split = NULL;
        OLY_TRY(oly_find_units(c));
    }
    if (c->outer)
        oly_note_needs(c, *best);
    return OLY_OK;
}
