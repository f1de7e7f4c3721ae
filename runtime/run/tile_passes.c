/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes over tiles. See tile_passes.h. */
#include "run/tile_passes.h"
#include "core/error.h"
#include "device/workers.h"
#include "run/device_order.h"
#include "run/messages.h"
#include "run/stencil_run.h"
#include "run/tile_memory.h"
#include "run/timed_steps.h"

/* Smaller passes are not distributed over threads. */
enum { WORK_SPREAD = 40000 };

static int add_box(int rank, const oly_part_box *box, oly_part_box *boxes, int n)
{
    for (int d = 0; d < rank; d++)
        if (box->lo[d] >= box->hi[d])
            return n;
    boxes[n] = *box;
    return n + 1;
}

int oly_part_boxes(oly_tile_part part, const oly_part_block *b, oly_part_box *boxes)
{
    oly_part_box rest = {{0}, {0}};
    int n = 0;
    for (int d = 0; d < b->rank; d++) {
        rest.lo[d] = part == OLY_TILES_EARLY ? b->early_lo[d] : b->lo[d];
        rest.hi[d] = part == OLY_TILES_EARLY ? b->early_hi[d] : b->hi[d];
    }
    if (part != OLY_TILES_LATE)
        return add_box(b->rank, &rest, boxes, 0);
    for (int d = 0; d < b->rank; d++) { /* below and above the early part; dimensions before are that part's */
        oly_part_box side = rest;
        side.hi[d] = rest.lo[d] = b->early_lo[d];
        n = add_box(b->rank, &side, boxes, n);
        side.lo[d] = b->early_hi[d];
        side.hi[d] = rest.hi[d];
        n = add_box(b->rank, &side, boxes, n);
        rest.hi[d] = b->early_hi[d];
    }
    return n;
}

static void tile(void *context, int i)
{
    oly_passes *p = context;
    int device = 0;
    for (int n; i >= (n = p->kind->tiles_on(p, device)); device++)
        i -= n;
    int64_t begin = p->run->label ? oly_ticks() : 0;
    bool done = p->kind->tile(p, device, i);
    if (begin && done)
        oly_show_part(p->run, device, begin);
    if (done && p->under_way && pthread_equal(pthread_self(), p->run->thread))
        oly_advance_exchanges(p->run);
}

static void compute_device(const oly_device_work *w)
{
    oly_passes *p =
        (oly_passes *)(uintptr_t)w->what; /* this device's own copy, or used by one device after the other */
    p->base = w->base;
    for (int i = 0, n = p->kind->tiles_on(p, w->device); i < n; i++)
        p->kind->tile(p, w->device, i);
}

static void cells_of_device(const oly_device_work *w, oly_cells *to)
{
    const oly_passes *p = w->what;
    p->kind->cells(p, w->device, to);
}

static oly_status submit_tiles(oly_passes *p)
{
    static const oly_work_kind kind = {OLY_WORK_TILES, compute_device, cells_of_device};
    oly_device_set uses[OLY_MOST_LATE_DEVICES];
    oly_tile_part part = p->part;
    p->part =
        OLY_TILES_ALL; /* GPUs divide a block otherwise: they may have something early where the CPU's tiles are all late */
    for (int d = 0; d < p->run->plan->n_devices; d++)
        uses[d] = p->kind->tiles_on(p, d) > 0 ? p->kind->uses(p, d) : 0;
    p->part = part;
    return oly_submit(p->run, uses, &kind, p, p->bytes);
}

static oly_status run_tiles(oly_passes *p, oly_tile_part part)
{
    int total = 0;
    p->part = part;
    p->base = p->run->base;
    if (oly_platform_is_late())
        return submit_tiles(p);
    p->under_way = part == OLY_TILES_EARLY && oly_exchange_any_left();
    for (int d = 0; d < p->run->plan->n_devices; d++)
        total += p->kind->tiles_on(p, d);
    if (p->step->work > WORK_SPREAD)
        oly_parallel(total, tile, p);
    else
        for (int i = 0; i < total; i++)
            tile(p, i);
    return OLY_OK;
}

/* x: the pending exchange of the margins that the pass reads; NULL: they are complete. */
static oly_status run_pass(oly_passes *p, oly_exchange *x)
{
    OLY_TRY(run_tiles(p, x ? OLY_TILES_EARLY : OLY_TILES_ALL));
    if (!x)
        return OLY_OK;
    OLY_TRY(p->run->advance);
    OLY_TRY(oly_messages_join(p->run, x));
    return run_tiles(p, OLY_TILES_LATE);
}

static oly_status run_passes(oly_passes *p)
{
    const oly_step *step = p->step;
    oly_exchange *under_way = step->awaited;
    oly_status st = OLY_OK;
    int next = 1;
    oly_iterations shown = oly_iterations_begin(p->run, step);
    int label = p->run->label;
    int64_t passes = 0;
    for (int64_t at = 0; at < step->stencil.count && st == OLY_OK;
         next = 1 - next, oly_iteration_ends(&shown, passes++)) {
        oly_iteration_begins(&shown, passes);
        p->run->label = oly_timeline_shows() ? label : 0;
        p->run->execution = label ? oly_ticks() : 0; /* each pass is shown */
        at += p->kind->begin(p, at, next);
        st = run_pass(p, under_way);
        under_way = NULL;
        if (p->last || !step->stencil.margins[next] || st != OLY_OK)
            continue;
        st = oly_run_block(p->run, step->stencil.margins[next]);
        if (step->stencil.overlaps)
            under_way = step->stencil.margins[next]->steps[0].exchange;
    }
    oly_iterations_end(&shown, passes);
    p->run->label = label;
    bool is_queued = oly_platform_get()->submit; /* tiles that are still to be computed use the memory */
    oly_status late = is_queued ? oly_drain(p->run) : OLY_OK;
    oly_tiles_drop(p->run);
    return st == OLY_OK ? late : st;
}

oly_status oly_run_passes(oly_passes *p)
{
    OLY_TRY(oly_tiles_reserve(p->run));
    return run_passes(p);
}
