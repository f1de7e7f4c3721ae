/* SPDX-License-Identifier: BSD-3-Clause */
/* Layouts chosen by cost over the whole graph. Propagation has proposed a layout for every value. If that plan moves
 * data, a beam search over the products, reductions and fused groups, in the order in which they will be lowered, looks
 * for cheaper layouts among those that their factors allow: which operand is gathered, which sum stays a partial result
 * and whether it is reduce-scattered, what every device computes itself. Propagation's layouts are always among the
 * candidates, and win unless others move clearly fewer bytes within a ceiling of work (choose_ceiling.c). What the
 * program fixes, and the shardings of results, never change.
 * Bodies of loops and branches come first: their cost counts as often as they run, and what they read of the graph
 * around is moved once, before them (choose_loop.c). Decisions depend on the graph, the mesh and the rates alone, so
 * every process makes the same. Called by plan.c. */
#include "plan/choose/choose.h"
#include "plan/choose/chooser.h"
#include "graph/view.h"
#include "plan/partition/partition.h"
#include "core/optimisation.h"
#include "core/option.h"
#include <string.h>

/* -- the graphs ---------------------------------------------------------------------------------------------------- */

/* Assumed number of iterations of a while loop. */
enum { ASSUMED_ITERATIONS = 10 };

static oly_cost_sum times_of(const oly_frame *f)
{
    const oly_params *p = &f->loop->params;
    if (p->n_branches > 0) /* one of them runs; the bytes of all are counted */
        return (oly_cost_sum){.seconds = 1.0 / p->n_branches, .wire = 1};
    if (p->predicate)
        return (oly_cost_sum){.seconds = ASSUMED_ITERATIONS, .wire = 1};
    double n = p->upper > p->lower ? (double)(p->upper - p->lower) : 1;
    return (oly_cost_sum){.seconds = n, .wire = n};
}

static oly_status take_carries(oly_chooser *c)
{
    int n_carry = c->f->loop->params.n_carry;
    c->carries = OLY_ARENA_NEW(c->arena, oly_cuts, n_carry + 1);
    c->propagated = OLY_ARENA_NEW(c->arena, oly_cuts, n_carry + 1);
    OLY_PLAN_CHECK(c->carries ? c->propagated : NULL);
    for (int k = 0; k < n_carry; k++) {
        const oly_node *input = c->f->graph->inputs[1 + k];
        c->carries[k] = c->propagated[k] = oly_cuts_of(oly_value_of(c->f, input)->axes, input->type.rank);
    }
    return OLY_OK;
}

/* Makes a chooser for the frame, and for those inside it. */
static oly_status make_choosers(const oly_chooser *like, oly_chooser *outer, oly_frame *f, oly_chooser **made)
{
    oly_chooser *c = OLY_ARENA_NEW(like->arena, oly_chooser, 1);
    OLY_PLAN_CHECK(c);
    oly_chooser **last = &c->first_child;
    *c = *like;
    c->outer = outer;
    c->f = f;
    f->chooser = *made = c;
    OLY_TRY(oly_make_groups(c->p, f));
    c->has_rolls = oly_find_cyclic_shifts(f);
    if (outer)
        c->times = times_of(f);
    if (outer && f->loop->params.n_branches == 0)
        OLY_TRY(take_carries(c));
    for (int k = 0; k < f->graph->n_nodes; k++)
        for (oly_frame *body = f->bodies[k]; body; body = body->next, last = &(*last)->next) {
            OLY_TRY(make_choosers(like, c, body, last));
            c->has_rolls = c->has_rolls || (*last)->has_rolls;
        }
    return OLY_OK;
}

static void forget(oly_chooser *c)
{
    c->f->chooser = NULL;
    for (oly_chooser *child = c->first_child; child; child = child->next)
        forget(child);
}

/* -- the whole choice ---------------------------------------------------------------------------------------------- */

/* Finds the units of all graphs: those of a body once the placement of what it reads is known; then those of the graph
 * around again, as it is then known how bodies read. */
static oly_status find_all(oly_chooser *c, bool *too_large)
{
    c->split = NULL;
    OLY_TRY(oly_find_units(c));
    *too_large = *too_large || c->too_large;
    for (oly_chooser *child = c->first_child; child && !*too_large; child = child->next)
        OLY_TRY(find_all(child, too_large));
    return c->first_child && !*too_large ? oly_find_units(c) : OLY_OK;
}

static oly_status decisions_of(const oly_chooser *c, const oly_decision **decided)
{
    *decided = c->decided;
    if (c->decided)
        return OLY_OK;
    oly_decision *greedy = OLY_ARENA_NEW(c->arena, oly_decision, c->n_units + 1);
    OLY_PLAN_CHECK(greedy);
    for (int k = 0; k < c->n_units; k++)
        greedy[k] = c->units[k].greedy;
    *decided = greedy;
    return OLY_OK;
}

/* The cost of everything, bodies multiplied by how often they run. Reads from graphs around are counted there; the
 * elements that cyclic shifts read from neighbours only with `rolls`. */
static oly_status total(oly_chooser *c, bool rolls, oly_cost_sum *cost)
{
    const oly_decision *decided;
    OLY_TRY(decisions_of(c, &decided));
    c->without_outer = true;
    c->without_rolls = !rolls;
    *cost = oly_cost_of_decisions(c, decided);
    c->without_outer = c->without_rolls = false;
    for (oly_chooser *child = c->first_child; child; child = child->next) {
        oly_cost_sum inside;
        OLY_TRY(total(child, rolls, &inside));
        oly_cost_repeat(&inside, &child->times);
        oly_cost_add(cost, &inside);
    }
    return OLY_OK;
}

/* Bodies first; with `carries`, theirs may be placed elsewhere. */
static oly_status decide(oly_chooser *c, bool carries, bool *any)
{
    oly_decision *best;
    oly_cost_sum greedy, chosen;
    for (oly_chooser *child = c->first_child; child; child = child->next)
        OLY_TRY(decide(child, carries, any));
    if (c->carries && carries)
        OLY_TRY(oly_choose_carries(c, any));
    OLY_TRY(oly_search(c, &best, &greedy, &chosen));
    c->decided = best;
    *any = *any || best;
    return OLY_OK;
}

static void give_up(oly_chooser *c)
{
    c->decided = NULL;
    for (int k = 0; c->carries && k < c->f->loop->params.n_carry; k++)
        c->carries[k] = c->propagated[k];
    for (oly_chooser *child = c->first_child; child; child = child->next)
        give_up(child);
}

/* -- applying the choice ------------------------------------------------------------------------------------------- */

static bool is_output(const oly_frame *f, const oly_node *n)
{
    for (int k = 0; k < f->graph->n_outputs; k++) {
        const oly_node *o = f->graph->outputs[k];
        int8_t from[OLY_MAX_RANK];
        while (oly_ops[o->op].lowering == OLY_LOWER_VIEW || oly_is_thin(o, from))
            o = o->in[0];
        if (o == n)
            return true;
    }
    return false;
}

/* Places the value there; results of the function stay as they were. */
static void move(oly_chooser *c, const oly_node *n, oly_cuts placed, const oly_choice *choice, const oly_node *by)
{
    oly_value *v = oly_value_of(c->f, n);
    oly_axis_list axes[OLY_MAX_RANK];
    if (choice)
        v->choice = choice;
    if (!c->outer && is_output(c->f, n))
        return;
    oly_cuts_axes(c->mesh, placed, axes, n->type.rank);
    for (int d = 0; d < n->type.rank; d++) {
        if (oly_axis_list_equal(&v->axes[d], &axes[d]))
            continue;
        v->axes[d] = axes[d];
        oly_note_reason(c->p, v, d, (oly_reason){.why = OLY_WHY_COST, .node = by});
    }
}

/* The final placement of a value. */
static oly_cuts placed_then(const oly_chooser *c, const oly_node *n)
{
    int unit = c->unit_of[n->index];
    oly_cuts cuts = 0;
    if (unit >= 0)
        return c->decided ? c->decided[unit].placed : c->units[unit].greedy.placed;
    oly_placed_now(c, n, &cuts);
    return cuts;
}

/* Are all operands placed as before? Otherwise a product must be told its split, even if that is unchanged. */
static bool reads_as_before(const oly_chooser *c, const oly_unit *u, const oly_decision *decided)
{
    for (int k = 0; k < u->n_reads; k++) {
        const oly_unit_read *r = &c->reads[u->first_read + k];
        if (r->source >= 0 ? decided[r->source].placed != c->units[r->source].greedy.placed
                           : r->owner != c && placed_then(r->owner, r->root) != r->fixed)
            return false;
    }
    return true;
}

static oly_status take_unit(oly_chooser *c, const oly_unit *u, const oly_decision *d, const oly_cost_sum *greedy,
                            const oly_cost_sum *chosen)
{
    oly_choice *choice = OLY_PLAN_NEW(c->p, oly_choice, 1);
    OLY_PLAN_CHECK(choice);
    oly_cuts_axes(c->mesh, d->work, choice->work, OLY_MAX_RANK);
    oly_cuts_axes(c->mesh, d->summed, choice->summed, OLY_MAX_RANK);
    oly_cuts_axes(c->mesh, d->wanted, choice->wanted, OLY_MAX_RANK);
    choice->wire[0] = greedy->wire;
    choice->wire[1] = chosen->wire;
    choice->seconds[0] = greedy->seconds;
    choice->seconds[1] = chosen->seconds;
    choice->differs = !oly_same_decision(d, &u->greedy);
    for (int j = 0; u->group && j < u->group->n_nodes; j++)
        move(c, u->group->nodes[j], d->placed, choice, u->group->nodes[j]);
    if (!u->group)
        move(c, u->node, d->placed, choice, u->node);
    return OLY_OK;
}

static oly_status take(oly_chooser *c, const oly_cost_sum *greedy, const oly_cost_sum *chosen)
{
    const oly_decision *decided;
    OLY_TRY(decisions_of(c, &decided));
    for (int k = 0; k < c->n_units; k++) {
        oly_unit *u = &c->units[k];
        bool member = u->kind == OLY_UNIT_GROUP && !u->group;
        if (member || (u->trusted && !(oly_same_decision(&decided[k], &u->greedy) && reads_as_before(c, u, decided))))
            OLY_TRY(take_unit(c, u, &decided[k], greedy, chosen));
    }
    for (int k = 0; c->carries && k < c->f->loop->params.n_carry; k++) {
        const oly_node *result = c->carries[k] != c->propagated[k] ? oly_result_node(c->f->outer, c->f->loop, k) : NULL;
        if (c->carries[k] == c->propagated[k])
            continue;
        move(c, c->f->graph->inputs[1 + k], c->carries[k], NULL, c->f->loop);
        if (result)
            move(c->outer, result, c->carries[k], NULL, c->f->loop);
    }
    return OLY_OK;
}

/* Makes the groups again if some nodes of a group are split differently now: fusion.c groups only nodes computed in the
 * same cuts. */
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
        oly_graph_ahead(f->graph, k, 1);
        f->values[k].group = -1;
        f->values[k].depth = 0;
    }
    f->groups = NULL;
    f->n_groups = 0;
    return oly_make_groups(c->p, f);
}

static oly_status take_all(oly_chooser *c, const oly_cost_sum *greedy, const oly_cost_sum *chosen)
{
    for (oly_chooser *child = c->first_child; child; child = child->next)
        OLY_TRY(take_all(child, greedy, chosen));
    OLY_TRY(take(c, greedy, chosen));
    return group_again(c);
}

/* Tries carries in their best layouts first; if that does not cost less in total, tries again with those of
 * propagation. */
static oly_status choose(oly_chooser *c)
{
    oly_cost_sum greedy, chosen;
    bool too_large = false;
    OLY_TRY(find_all(c, &too_large));
    if (too_large)
        return OLY_OK;
    OLY_TRY(total(c, false, &greedy));
    if (greedy.wire <= 0)
        return OLY_OK;
    if (c->has_rolls)
        OLY_TRY(total(c, true, &greedy));
    for (int carries = 1; carries >= 0; carries--) {
        bool any = false;
        if (carries == 0) {
            give_up(c);
            OLY_TRY(find_all(c, &too_large));
        }
        OLY_TRY(decide(c, carries, &any));
        if (!any)
            return OLY_OK;
        OLY_TRY(total(c, true, &chosen));
        if (oly_may_take(&chosen, &greedy)) {
            c->p->plan->predicted_bytes[0] += greedy.wire;
            c->p->plan->predicted_bytes[1] += chosen.wire;
            c->p->plan->predicted_seconds[0] += greedy.seconds;
            c->p->plan->predicted_seconds[1] += chosen.seconds;
            return take_all(c, &greedy, &chosen);
        }
    }
    return OLY_OK;
}

oly_status oly_choose(oly_planner *p, oly_frame *f)
{
    oly_arena arena = {0};
    int coordinates[OLY_CHOOSE_SAMPLE * OLY_CHOOSE_AXES];
    oly_chooser like = {.p = p, .mesh = p->mesh, .arena = &arena, .times = {.seconds = 1, .wire = 1}}, *c = NULL;
    if (!oly_option.choose || !oly_enabled(OLY_OPTIMISATION_LAYOUT_CHOICE) || p->mesh->n_devices == 1 ||
        p->mesh->n_axes > OLY_CHOOSE_AXES || p->mesh->explicit_axes)
        return OLY_OK;
    oly_chooser_sample(&like, coordinates);
    for (int a = 0; a < like.mesh->n_axes; a++)
        like.level[a] = oly_rates_now()->by_level ? oly_axis_level(like.mesh, a) : OLY_LEVEL_PROCESS;
    oly_status st = make_choosers(&like, NULL, f, &c);
    if (st == OLY_OK)
        st = choose(c);
    if (c)
        forget(c);
    oly_arena_free(&arena);
    return st;
}
