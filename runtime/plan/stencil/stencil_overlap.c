/* SPDX-License-Identifier: BSD-3-Clause */
/* Which tiles of a pass of a stencil loop can be computed while its margins are on their way: those that read nothing
 * beyond the sides at which messages arrive. Every process decides for its own devices, as values do not depend on
 * tiles. If few or no tiles qualify and costs say that it pays, the elements along those sides become tiles of their
 * own. Called by stencil.c when the step is complete. */
#include "plan/cost/cost.h"
#include "plan/move/margin_sides.h"
#include "plan/stencil/stencil.h"
#include "core/optimisation.h"
#include "core/option.h"
#include <string.h>

/* The least time that early tiles must take, and the least fraction of a pass that other tiles must save. */
static const double least_seconds = 2e-5, least_gain = 0.02;

/* -- the sides at which messages arrive ---------------------------------------------------------------------------- */

static oly_block_within block_of(const oly_stencil *stencil, const oly_stencil_work *w)
{
    oly_block_within own = {.rank = stencil->rank, .element = (int64_t)oly_dtype_size(stencil->dtype)};
    for (int d = 0; d < own.rank; d++) {
        own.stride[d] = w->within.stride[d];
        own.lo[d] = w->within.write_lo[d];
        own.hi[d] = w->within.write_hi[d];
    }
    return own;
}

/* Notes the sides at which the movement brings elements to each device. False: they cannot be determined. */
static bool add_sides(const oly_plan *plan, const oly_step *s, const oly_step *move, const oly_stencil_work *work,
                      uint64_t *seen)
{
    oly_block_within own;
    for (int k = 0, last = -1; move && k < move->move.n_arrivals; k++) {
        const oly_piece *piece = &move->move.arrivals[k].piece;
        int device = oly_cell_device(plan, piece->buffer);
        if (device != last)
            own = block_of(s->stencil.stencil, &work[device]);
        last = device;
        if (!oly_margin_sides_add(&seen[device], &own, piece))
            return false;
    }
    return true;
}

/* *any: messages bring something. */
static oly_status find_sides(oly_planner *p, const oly_step *s, const oly_step *first, oly_stencil_work *work,
                             bool *any)
{
    const oly_step *moves[2];
    int n = p->plan->n_devices;
    uint64_t *seen = OLY_PLAN_NEW(p, uint64_t, n);
    OLY_PLAN_CHECK(seen);
    *any = false;
    bool known = oly_margin_moves(s, first, moves);
    for (int k = 0; k < 2 && known; k++)
        known = add_sides(p->plan, s, moves[k], work, seen);
    for (int d = 0; d < n; d++) {
        work[d].late = known ? oly_margin_sides_late(seen[d]) : 0;
        *any = *any || work[d].late;
    }
    return OLY_OK;
}

/* -- tiles and their cost ------------------------------------------------------------------------------------------ */

typedef struct forecast {
    double points, early; /* of all devices */
    double seconds;       /* of a pass, on the slowest device */
} forecast;

static forecast foresee(const oly_plan *plan, const oly_step *s, const oly_stencil_work *work, double flight)
{
    forecast f = {0};
    for (int d = 0; d < plan->n_devices; d++) {
        oly_stencil_points r =
            oly_stencil_points_of(s->stencil.stencil, &work[d].within, s->stencil.pass, work[d].late);
        double all = oly_cost_operations(r.all * s->stencil.stencil->n_taps);
        double early = oly_cost_operations(r.early * s->stencil.stencil->n_taps);
        double seconds = all - early + (early > flight ? early : flight);
        f.points += r.all;
        f.early += r.early;
        f.seconds = seconds > f.seconds ? seconds : f.seconds;
    }
    return f;
}

/* Sets borders as wide as a pass reaches on the late sides. False: a block is too small for them. */
static bool set_borders(const oly_step *s, oly_stencil_work *w)
{
    for (int d = 0; d < s->stencil.stencil->rank; d++) {
        int64_t below = 0, above = 0, *lo = &w->within.border_lo[d], *hi = &w->within.border_hi[d];
        for (int t = 0; t < s->stencil.stencil->n_taps; t++) {
            int offset = s->stencil.stencil->offset[t][d];
            below = -offset > below ? -offset : below;
            above = offset > above ? offset : above;
        }
        *lo = w->late >> (2 * d) & 1 ? below * s->stencil.pass : 0;
        *hi = w->late >> (2 * d + 1) & 1 ? above * s->stencil.pass : 0;
        if ((*lo || *hi) && *lo + *hi >= w->within.write_hi[d] - w->within.write_lo[d])
            return false;
        w->last.border_lo[d] = *lo;
        w->last.border_hi[d] = *hi;
    }
    return true;
}

oly_status oly_overlap_stencil(oly_planner *p, oly_step *s, const oly_step *first, oly_stencil_work *work)
{
    const oly_plan *plan = p->plan;
    const oly_step *move = oly_margins_of(s, 0) ? oly_margins_of(s, 0) : first;
    bool any;
    if (!oly_option.overlap || !oly_enabled(OLY_OPTIMISATION_TILE_OVERLAP) || !move)
        return OLY_OK;
    OLY_TRY(find_sides(p, s, first, work, &any));
    if (!any)
        return OLY_OK;
    double flight = oly_cost_step(plan, move);
    forecast as_is = foresee(plan, s, work, flight);
    oly_stencil_work *cut = OLY_PLAN_NEW(p, oly_stencil_work, plan->n_devices);
    OLY_PLAN_CHECK(cut);
    memcpy(cut, work, sizeof *cut * (size_t)plan->n_devices);
    bool fits = true;
    for (int d = 0; d < plan->n_devices; d++)
        fits = fits && set_borders(s, &cut[d]);
    forecast with_borders = fits ? foresee(plan, s, cut, flight) : as_is;
    if (with_borders.seconds < (1 - least_gain) * as_is.seconds) {
        memcpy(work, cut, sizeof *cut * (size_t)plan->n_devices);
        as_is = with_borders;
    }
    if (oly_cost_operations(as_is.early * s->stencil.stencil->n_taps) < least_seconds * plan->n_devices) {
        for (int d = 0; d < plan->n_devices; d++)
            work[d].late = 0;
        return OLY_OK;
    }
    s->stencil.overlaps = true;
    s->stencil.early = as_is.early / as_is.points;
    for (int k = 0; k < 2; k++)
        if (oly_margins_of(s, k))
            s->stencil.margins[k]->steps[0].starts = s->stencil.margins[k]->steps[0].exchange != NULL;
    return OLY_OK;
}
