/* SPDX-License-Identifier: BSD-3-Clause */
/* The tiles of loops over fields (time_tiling.h), and which of them can be computed while margins are on their way:
 * those for which no step of the pass reads, of any field, elements beyond the sides at which messages bring that
 * field. Every process decides for its own devices, as values do not depend on tiles. If few tiles qualify and costs
 * say that it pays, the elements along those sides become tiles of their own. Called by time_tiling.c when the step is
 * complete; the division into tiles also by runtime/run/time_tiling_run.c. */
#include "plan/cost/cost.h"
#include "plan/move/margin_sides.h"
#include "plan/stencil/time_tiling_plan.h"
#include "core/optimisation.h"
#include "core/option.h"
#include <string.h>

/* The least time that early tiles must take, and the least fraction of a pass that borders must save. */
static const double least_seconds = 2e-5, least_gain = 0.02;

/* -- tiles --------------------------------------------------------------------------------------------------------- */

static int64_t parts_of(int64_t n, int64_t tile)
{
    return n > 0 ? (n + tile - 1) / tile : 0;
}

/* The spans of a dimension: before the early part, the early part, and after it; without borders, one span. */
static int spans(const oly_tiling *m, const oly_tiling_device *v, int d, int64_t *edge)
{
    int n = 0;
    edge[n++] = v->block.lo[d];
    if (m->borders && v->early_lo[d] > v->block.lo[d])
        edge[n++] = v->early_lo[d];
    if (m->borders && v->early_hi[d] < v->block.hi[d])
        edge[n++] = v->early_hi[d];
    edge[n] = v->block.hi[d];
    return n;
}

int64_t oly_tiling_parts(const oly_tiling *m, const oly_tiling_device *v, int d)
{
    int64_t edge[4], parts = 0;
    int n = spans(m, v, d, edge);
    for (int k = 0; k < n; k++)
        parts += parts_of(edge[k + 1] - edge[k], m->tile[d]);
    return parts;
}

void oly_tiling_part(const oly_tiling *m, const oly_tiling_device *v, int d, int64_t number, int64_t *lo, int64_t *hi)
{
    int64_t edge[4], parts;
    int n = spans(m, v, d, edge), k = 0;
    for (; k < n - 1 && number >= (parts = parts_of(edge[k + 1] - edge[k], m->tile[d])); k++)
        number -= parts;
    int64_t extent = edge[k + 1] - edge[k];
    parts = parts_of(extent, m->tile[d]);
    *lo = edge[k] + extent * number / parts;
    *hi = edge[k] + extent * (number + 1) / parts;
}

bool oly_tiling_is_early(const oly_tiling *m, const oly_tiling_device *v, const int64_t *lo, const int64_t *hi)
{
    for (int d = 0; d < m->form.rank; d++)
        if (lo[d] < v->early_lo[d] || hi[d] > v->early_hi[d])
            return false;
    return true;
}

/* -- the sides at which messages arrive ---------------------------------------------------------------------------- */

typedef struct finder {
    const oly_plan *plan;
    const oly_tiling *tiling;
    oly_tiling_device *device;
    uint64_t *seen; /* [n_devices * n_fields] sides beyond which elements arrive */
} finder;

static int field_of(const oly_tiling *m, int slot)
{
    for (int j = 0; j < m->form.n_fields; j++)
        if (slot == m->first_slot[j] || slot == m->field_slot[0][j] || slot == m->field_slot[1][j])
            return j;
    return -1;
}

static oly_block_within block_of(const oly_tiling_form *form, const oly_tiling_device *v, int field)
{
    oly_block_within own = {.rank = form->rank, .element = (int64_t)oly_dtype_size(form->field[field]->type.dtype)};
    int64_t stride = 1;
    for (int d = form->rank - 1; d >= 0; d--) {
        own.stride[d] = stride;
        own.lo[d] = v->own[field].lo[d] - v->field[field].lo[d];
        own.hi[d] = v->own[field].hi[d] - v->field[field].lo[d];
        stride *= v->field[field].hi[d] - v->field[field].lo[d];
    }
    return own;
}

/* Notes the sides at which the movement brings elements. False: they cannot be determined. */
static bool add_sides(const finder *f, const oly_step *move)
{
    const oly_tiling_form *form = &f->tiling->form;
    oly_block_within own;
    for (int k = 0, last = -1; move && k < move->move.n_arrivals; k++) {
        const oly_piece *piece = &move->move.arrivals[k].piece;
        int device = oly_cell_device(f->plan, piece->buffer);
        int field = field_of(f->tiling, oly_cell_slot(f->plan, piece->buffer));
        if (field < 0 || !f->device[device].here)
            return false;
        if (piece->buffer != last)
            own = block_of(form, &f->device[device], field);
        last = piece->buffer;
        if (!oly_margin_sides_add(&f->seen[device * form->n_fields + field], &own, piece))
            return false;
    }
    return true;
}

static bool find_sides(const finder *f, const oly_step *s, const oly_step *first)
{
    const oly_step *moves[2];
    bool any = false;
    if (!oly_margin_moves(s, first, moves) || !add_sides(f, moves[0]) || !add_sides(f, moves[1]))
        return false;
    for (int k = 0; k < f->plan->n_devices * f->tiling->form.n_fields; k++)
        any = any || f->seen[k];
    return any;
}

/* How far a pass reads a field around what it writes. */
static void reach_of(const oly_tiling_pass *pass, int field, int d, int64_t *below, int64_t *above)
{
    for (int k = 0; pass->steps > 0 && k < pass->n_needs[field]; k++) {
        const oly_tiling_need *need = &pass->needs[field][k];
        *below = -need->lo[d] > *below ? -need->lo[d] : *below;
        *above = need->hi[d] > *above ? need->hi[d] : *above;
    }
}

static void set_early(const finder *f, oly_tiling_device *v, const uint64_t *seen)
{
    const oly_tiling *m = f->tiling;
    bool empty = false;
    for (int d = 0; d < m->form.rank; d++) {
        v->early_lo[d] = v->block.lo[d];
        v->early_hi[d] = v->block.hi[d];
        for (int j = 0; j < m->form.n_fields; j++) {
            int64_t below = 0, above = 0;
            unsigned late = oly_margin_sides_late(seen[j]);
            reach_of(&m->first, j, d, &below, &above);
            reach_of(&m->pass, j, d, &below, &above);
            if (late >> (2 * d) & 1 && v->block.lo[d] + below > v->early_lo[d])
                v->early_lo[d] = v->block.lo[d] + below;
            if (late >> (2 * d + 1) & 1 && v->block.hi[d] - above < v->early_hi[d])
                v->early_hi[d] = v->block.hi[d] - above;
        }
        empty = empty || v->early_lo[d] >= v->early_hi[d];
    }
    for (int d = 0; d < m->form.rank && empty; d++)
        v->early_lo[d] = v->early_hi[d] = v->block.hi[d];
}

/* -- cost ---------------------------------------------------------------------------------------------------------- */

/* The work of a device in elements, counting about half of the margins around every tile. */
static void weigh(const oly_tiling *m, const oly_tiling_device *v, double *all, double *early)
{
    *all = *early = v->here;
    for (int d = 0; d < m->form.rank && v->here; d++) {
        double sum = 0, inner = 0;
        int64_t parts = oly_tiling_parts(m, v, d);
        for (int64_t k = 0; k < parts; k++) {
            int64_t lo, hi;
            oly_tiling_part(m, v, d, k, &lo, &hi);
            double length = (double)(hi - lo) + (double)(m->pass.hi[d] - m->pass.lo[d]) / 2;
            sum += length;
            inner += lo >= v->early_lo[d] && hi <= v->early_hi[d] ? length : 0;
        }
        *all *= sum;
        *early *= inner;
    }
}

typedef struct forecast {
    double all, early; /* of all devices, in elements */
    double seconds;    /* of a pass, on the slowest device */
} forecast;

/* second: the seconds per element. */
static forecast foresee(const finder *f, double second, double flight)
{
    forecast sum = {0};
    for (int d = 0; d < f->plan->n_devices; d++) {
        double all, early;
        weigh(f->tiling, &f->device[d], &all, &early);
        double meanwhile = early * second, seconds = all * second - meanwhile;
        seconds += meanwhile > flight ? meanwhile : flight;
        sum.all += all;
        sum.early += early;
        sum.seconds = seconds > sum.seconds ? seconds : sum.seconds;
    }
    return sum;
}

static double second_of_element(const finder *f)
{
    double most = 0;
    for (int d = 0; d < f->plan->n_devices; d++) {
        double all, early;
        weigh(f->tiling, &f->device[d], &all, &early);
        most = all > most ? all : most;
    }
    return most > 0 ? f->tiling->seconds / most : 0;
}

oly_status oly_overlap_tiling(oly_planner *p, oly_step *s, const oly_step *first, oly_tiling *m,
                              oly_tiling_device *device)
{
    finder f = {.plan = p->plan, .tiling = m, .device = device};
    const oly_step *move = oly_margins_of(s, 0) ? oly_margins_of(s, 0) : first;
    if (!oly_option.overlap || !oly_enabled(OLY_OPTIMISATION_TILE_OVERLAP) || !move)
        return OLY_OK;
    f.seen = OLY_PLAN_NEW(p, uint64_t, p->plan->n_devices * m->form.n_fields + 1);
    OLY_PLAN_CHECK(f.seen);
    if (!find_sides(&f, s, first))
        return OLY_OK;
    for (int d = 0; d < p->plan->n_devices; d++)
        if (device[d].here)
            set_early(&f, &device[d], &f.seen[d * m->form.n_fields]);
    double flight = oly_cost_step(p->plan, move), second = second_of_element(&f);
    forecast best = foresee(&f, second, flight);
    m->borders = true;
    forecast with_borders = foresee(&f, second, flight);
    m->borders = with_borders.seconds < (1 - least_gain) * best.seconds;
    best = m->borders ? with_borders : best;
    if (best.early * second < least_seconds * p->plan->n_devices) {
        m->borders = false;
        return OLY_OK;
    }
    s->stencil.overlaps = true;
    s->stencil.early = best.early / best.all;
    for (int k = 0; k < 2; k++)
        if (oly_margins_of(s, k))
            s->stencil.margins[k]->steps[0].starts = s->stencil.margins[k]->steps[0].exchange != NULL;
    return OLY_OK;
}
