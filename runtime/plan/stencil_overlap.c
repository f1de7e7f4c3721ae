/* Which tiles of a stencil loop's pass can be worked while its margins are on their way: those that read nothing beyond the sides
 * that messages bring. Every process decides for its own devices, as values do not depend on tiles. Where no tile, or few, are
 * like that and prices say that it pays, the cells along those sides become tiles of their own. Called by stencil.c, when the
 * step is complete. */
#include "plan/planner.h"
#include "plan/cost.h"
#include "core/option.h"
#include <string.h>

/* What can be worked early is at least this, and another division into tiles gains that share of a pass. */
static const double least_seconds = 2e-5, least_gain = 0.02;

/* -- the sides that messages bring --------------------------------------------------------------------------------------- */

/* The box of a field that a message brings. False: its strides say something else. */
static bool box_of(const oly_arrival *a, const oly_stencil_field *f, int rank, int64_t element, int64_t *lo,
                   int64_t *hi)
{
    int64_t rest = a->piece.offset / element;
    if (a->piece.rank != rank)
        return false;
    for (int d = 0; d < rank; d++) {
        if (a->piece.stride[d] != f->stride[d])
            return false;
        lo[d] = rest / f->stride[d];
        hi[d] = lo[d] + a->piece.extent[d];
        rest %= f->stride[d];
    }
    return true;
}

/* Sides of the device's own block beyond which all of the box lies: bits as in oly_stencil_divide. */
static unsigned beyond(const oly_stencil_field *f, int rank, const int64_t *lo, const int64_t *hi)
{
    unsigned sides = 0;
    for (int d = 0; d < rank; d++) {
        sides |= (unsigned)(hi[d] <= f->write_lo[d]) << (2 * d);
        sides |= (unsigned)(lo[d] >= f->write_hi[d]) << (2 * d + 1);
    }
    return sides;
}

/* Adds the sides of what the movement brings this device; a corner belongs to one of its sides. False: cannot be said. */
static bool add_sides(const oly_plan *plan, const oly_step *s, const oly_step *move, int device, bool corners,
                      oly_stencil_work *w)
{
    int64_t element = (int64_t)oly_dtype_size(s->stencil.stencil->dtype), lo[3], hi[3];
    for (int k = 0; move && k < move->move.n_arrivals; k++) {
        const oly_arrival *a = &move->move.arrivals[k];
        if (oly_cell_device(plan, a->piece.buffer) != device)
            continue;
        if (!box_of(a, &w->within, s->stencil.stencil->rank, element, lo, hi))
            return false;
        unsigned sides = beyond(&w->within, s->stencil.stencil->rank, lo, hi), lowest = sides & -sides;
        if (sides == 0)
            return false;
        if ((sides != lowest) == corners && !(w->late & sides))
            w->late |= lowest;
    }
    return true;
}

static const oly_step *margins_of(const oly_step *s, int k)
{
    const oly_block *b = s->stencil.margins[k];
    return b && b->n_steps == 1 && b->steps[0].kind == OLY_STEP_MOVE ? &b->steps[0] : NULL;
}

/* Is it said what the movement brings? Not when its boxes are listed later (outline.c). */
static bool is_known(const oly_step *move)
{
    return !move || !move->exchange || move->move.n_arrivals > 0 || oly_exchange_bytes_received(move->exchange) == 0;
}

static bool find_sides(const oly_plan *plan, const oly_step *s, const oly_step *first, oly_stencil_work *work)
{
    const oly_step *moves[3] = {first, margins_of(s, 0), margins_of(s, 1)};
    bool any = false;
    for (int k = 0; k < 3; k++)
        if (!is_known(moves[k]) || (k > 0 && s->stencil.margins[k - 1] && !moves[k]))
            return false;
    for (int d = 0; d < plan->n_devices; d++) {
        work[d].late = 0;
        for (int k = 0; k < 6; k++)
            if (!add_sides(plan, s, moves[k % 3], d, k >= 3, &work[d]))
                return false;
        any = any || work[d].late;
    }
    return any;
}

/* -- tiles and what they take ---------------------------------------------------------------------------------------------- */

typedef struct forecast {
    double points, early; /* of all devices */
    double seconds;       /* of a pass, on the slowest device */
} forecast;

static forecast foresee(const oly_plan *plan, const oly_step *s, const oly_stencil_work *work, double flight)
{
    forecast f = {0};
    for (int d = 0; d < plan->n_devices; d++) {
        oly_stencil_share r = oly_stencil_divide(s->stencil.stencil, &work[d].within, s->stencil.pass, work[d].late);
        double all = oly_price_operations(r.points * s->stencil.stencil->n_taps);
        double early = oly_price_operations(r.inner_points * s->stencil.stencil->n_taps);
        double seconds = all - early + (early > flight ? early : flight);
        f.points += r.points;
        f.early += r.inner_points;
        f.seconds = seconds > f.seconds ? seconds : f.seconds;
    }
    return f;
}

/* Borders of as many cells as a pass reaches, on the late sides. False: a block has no room for them. */
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
    const oly_step *move = margins_of(s, 0) ? margins_of(s, 0) : first;
    if (!oly_option.overlap || !move || !find_sides(plan, s, first, work)) {
        for (int d = 0; d < plan->n_devices; d++)
            work[d].late = 0;
        return OLY_OK;
    }
    double flight = oly_price_step(plan, move);
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
    if (oly_price_operations(as_is.early * s->stencil.stencil->n_taps) < least_seconds * plan->n_devices) {
        for (int d = 0; d < plan->n_devices; d++)
            work[d].late = 0;
        return OLY_OK;
    }
    s->stencil.overlaps = true;
    s->stencil.early = as_is.early / as_is.points;
    for (int k = 0; k < 2; k++)
        if (margins_of(s, k))
            s->stencil.margins[k]->steps[0].starts = s->stencil.margins[k]->steps[0].exchange != NULL;
    return OLY_OK;
}
