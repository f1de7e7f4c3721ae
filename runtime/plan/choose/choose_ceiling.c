/* SPDX-License-Identifier: BSD-3-Clause */
/* The objective, and how much work a device may do for it. The objective is fewest bytes, then least time; but bytes
 * alone would gather a batch and let every device compute all of it. So the work of a unit has a ceiling, expressed in
 * the number of devices that divide it:
 *
 *   allowed  the number in propagation's plan; for a value that is demanded in some layout, at most that of the axes of
 *            this layout and of those over which both operands of a product have their pairs split alike
 *   least    that of the axes of use only: those over which something demanded is split, or the pairs of both operands
 *
 * The excess of a plan is its work beyond `allowed`; it may take a twentieth of the time of propagation's plan, or where that is
 * short 0.1 ms, in which bytes count more. See chooser.h. */
#include "plan/choose/chooser.h"
#include "core/option.h"
#include <math.h>
#include <string.h>

/* -- what is better ------------------------------------------------------------------------------------------------ */

oly_objective oly_choose_objective(void)
{
    if (oly_rates_now()->by_level)
        return OLY_LEAST_TIME_ONLY;
    return oly_option.choose == OLY_LEAST_TIME ? OLY_LEAST_TIME : OLY_LEAST_BYTES;
}

bool oly_is_cheaper(oly_objective objective, const oly_cost_sum *a, const oly_cost_sum *b)
{
    if (objective != OLY_LEAST_BYTES)
        return a->seconds < b->seconds;
    if (fabs(a->wire - b->wire) > 0.5)
        return a->wire < b->wire;
    double more = oly_cost_choice(OLY_LEVEL_PROCESS, 0, 1) * (a->collectives - b->collectives);
    return a->seconds + more < b->seconds;
}

double oly_most_excess(const oly_cost_sum *greedy)
{
    const double share = 0.05, small = 100e-6;
    return fmin(greedy->seconds, share * greedy->seconds + small);
}

/* As many bytes in fewer collectives, even if all sums of b, which is propagation's, are merged into one. */
static bool has_fewer(const oly_cost_sum *a, const oly_cost_sum *b)
{
    double least = b->collectives + b->movements - (b->sums > 1 ? b->sums - 1 : 0);
    return a->wire <= b->wire + 0.5 && a->seconds <= b->seconds && a->collectives + a->movements < least - 0.5;
}

bool oly_may_take(const oly_cost_sum *chosen, const oly_cost_sum *greedy)
{
    switch (oly_choose_objective()) {
    case OLY_LEAST_BYTES:
        return (chosen->wire < greedy->wire - 0.5 || has_fewer(chosen, greedy)) &&
               (chosen->excess <= oly_most_excess(greedy) || chosen->seconds < greedy->seconds);
    case OLY_LEAST_TIME: return chosen->wire < greedy->wire && chosen->seconds < greedy->seconds;
    default: return chosen->seconds < greedy->seconds;
    }
}

bool oly_is_better(const oly_chooser *c, const oly_cost_sum *chosen, const oly_cost_sum *greedy)
{
    double margin = c->n_sample < c->mesh->n_devices ? 0.1 : 0.02;
    bool faster = chosen->seconds < (0.99 - margin) * greedy->seconds;
    bool fewer = chosen->wire <= (1 - margin) * greedy->wire - 1 ||
                 (c->n_sample == c->mesh->n_devices && has_fewer(chosen, greedy));
    switch (oly_choose_objective()) {
    case OLY_LEAST_BYTES: return fewer && (faster || chosen->excess <= oly_most_excess(greedy));
    case OLY_LEAST_TIME: return fewer && faster;
    default: return faster;
    }
}

/* -- ceilings ------------------------------------------------------------------------------------------------------ */

int oly_decision_parts(oly_mesh mesh, const oly_decision *d)
{
    return oly_cuts_parts(mesh, d->work) * oly_cuts_parts(mesh, d->summed);
}

/* Axes as a set: bit a. */
static unsigned axes_in(const oly_chooser *c, oly_cuts cuts)
{
    unsigned axes = 0;
    for (int a = 0; a < c->mesh->n_axes; a++)
        axes |= (unsigned)(oly_cuts_byte(cuts, a) != 0) << a;
    return axes;
}

static unsigned axes_alike(const oly_chooser *c, oly_cuts x, oly_cuts y)
{
    unsigned axes = 0;
    for (int a = 0; a < c->mesh->n_axes; a++)
        axes |= (unsigned)(oly_cuts_byte(x, a) && oly_cuts_byte(x, a) == oly_cuts_byte(y, a)) << a;
    return axes;
}

static int parts_of(const oly_chooser *c, unsigned axes)
{
    int parts = 1;
    for (int a = 0; a < c->mesh->n_axes; a++)
        if (axes >> a & 1)
            parts *= c->mesh->size[a];
    return parts;
}

static oly_cuts placed(const oly_chooser *c, const oly_unit_read *r)
{
    return r->source >= 0 ? c->units[r->source].greedy.placed : r->fixed;
}

/* The axes over which both operands of a product have their pairs split. */
static unsigned axes_of_pairs(const oly_chooser *c, const oly_unit *u)
{
    oly_cuts pairs[2];
    if (u->kind != OLY_UNIT_CONTRACT)
        return 0;
    for (int o = 0; o < 2; o++) {
        const oly_unit_read *r = &c->reads[u->first_read + o];
        int8_t pair[OLY_MAX_RANK];
        memset(pair, -1, sizeof pair);
        for (int k = 0; k < OLY_MAX_RANK; k++)
            if (k < u->product->n_contract && r->pair[k] >= 0)
                pair[r->pair[k]] = (int8_t)k;
        pairs[o] = oly_cuts_mapped(c->mesh, placed(c, r), pair);
    }
    return axes_alike(c, pairs[0], pairs[1]);
}

static void note_use(oly_chooser *c, const oly_unit *u, unsigned used, unsigned *uses)
{
    for (int k = 0; k < u->n_reads; k++) {
        const oly_unit_read *r = &c->reads[u->first_read + k];
        if (r->source < 0)
            continue;
        oly_cuts there = placed(c, r), needs = u->kind == OLY_UNIT_REDUCE ? there : oly_read_needs(c, u, r, &u->greedy);
        uses[r->source] |= axes_alike(c, there, needs) & used;
    }
}

oly_status oly_note_ceilings(oly_chooser *c)
{
    unsigned *uses = OLY_ARENA_NEW(c->arena, unsigned, c->n_units + 1);
    OLY_PLAN_CHECK(uses);
    for (int k = c->n_units - 1; k >= 0; k--) {
        oly_unit *u = &c->units[k];
        u->allowed = u->least = oly_decision_parts(c->mesh, &u->greedy);
        unsigned all = axes_in(c, u->greedy.work) | axes_in(c, u->greedy.summed), paired = 0;
        if (u->pinned || !u->trusted)
            uses[k] = all | axes_in(c, u->greedy.placed);
        if (u->trusted) {
            uses[k] |= paired = axes_of_pairs(c, u);
            for (int j = 0; j < u->n_demands; j++) {
                unsigned wanted = axes_in(c, u->demand[j].cuts);
                int parts = parts_of(c, wanted | paired);
                uses[k] |= wanted;
                u->allowed = parts < u->allowed ? parts : u->allowed;
            }
            u->least = parts_of(c, uses[k] & all);
            u->least = u->least < u->allowed ? u->least : u->allowed;
        }
        note_use(c, u, uses[k], uses);
    }
    return OLY_OK;
}
