/* Running stencil loops: passes over the fields, tiles of all devices spread over the threads, margins in between. Where margins come
 * in messages, a pass begins with the tiles that read none of those (plan/stencil_overlap.c):
 *
 *      margins set out, inner tiles, wait, tiles along the borders; margins of what they made set out, inner tiles, ... */
#include "run/stencil_run.h"
#include "run/tile_memory.h"
#include "device/workers.h"
#include <string.h>

typedef enum part { ALL, INNER, OUTER } part;

typedef struct sweep {
    oly_run *run;
    const oly_step *step;
    int steps;
    bool last;
    part part;      /* which tiles */
    bool under_way; /* messages that need MPI to be called now and then */
    int from, to;   /* slots */
} sweep;

static const oly_stencil_field *field(const sweep *s, int device)
{
    const oly_stencil_work *w = &s->step->stencil.device[device];
    return s->last ? &w->last : &w->within;
}

static oly_stencil_share share_of(const sweep *s, int device)
{
    return oly_stencil_divide(s->step->stencil.stencil, field(s, device), s->steps,
                              s->step->stencil.device[device].late);
}

static int tiles_on(const sweep *s, int device)
{
    if (s->part == ALL)
        return oly_stencil_chunks(s->step->stencil.stencil, field(s, device), s->steps);
    oly_stencil_share r = share_of(s, device);
    return s->part == INNER ? r.n_inner : r.n - r.n_inner;
}

/* Number i of the tiles of this part, as a number of all. */
static int tile_number(const sweep *s, int device, int i)
{
    if (s->part == ALL)
        return i;
    oly_stencil_share r = share_of(s, device);
    return s->part == INNER ? oly_stencil_inner(&r, i) : oly_stencil_outer(&r, i);
}

static void tile(void *context, int i)
{
    sweep *s = context;
    int device = 0;
    for (int n; i >= (n = tiles_on(s, device)); device++)
        i -= n;
    oly_run *r = s->run;
    bool turn;
    void *memory = oly_tile_begin(r, &turn);
    oly_stencil_run(s->step->stencil.stencil, field(s, device), s->steps, r->base[oly_cell(r->plan, device, s->from)],
                    r->base[oly_cell(r->plan, device, s->to)], memory, tile_number(s, device, i),
                    oly_stencil_chunks(s->step->stencil.stencil, field(s, device), s->steps));
    oly_tile_end(r, turn);
    if (s->under_way && pthread_equal(pthread_self(), s->run->thread))
        oly_advance_exchanges(s->run);
}

static void run_tiles(sweep *s, part which)
{
    int total = 0;
    s->part = which;
    s->under_way = which == INNER && oly_exchange_any_left();
    for (int d = 0; d < s->run->plan->n_devices; d++)
        total += tiles_on(s, d);
    if (s->step->work > 40000)
        oly_parallel(total, tile, s);
    else
        for (int i = 0; i < total; i++)
            tile(s, i);
}

/* One pass. x: what brings the margins it reads, under way; NULL: they are there. */
static oly_status run_sweep(sweep *s, oly_exchange *x)
{
    run_tiles(s, x ? INNER : ALL);
    if (!x)
        return OLY_OK;
    OLY_TRY(s->run->advance);
    OLY_TRY(oly_exchange_join(x));
    run_tiles(s, OUTER);
    return OLY_OK;
}

size_t oly_stencil_tile_bytes(const oly_plan *plan, const oly_step *step)
{
    size_t most = 0;
    for (int d = 0; d < plan->n_devices; d++)
        for (int64_t steps = step->stencil.pass; steps > 0;
             steps = steps == step->stencil.pass ? step->stencil.count % steps : 0) {
            const oly_stencil_work *w = &step->stencil.device[d];
            size_t a = oly_stencil_scratch(step->stencil.stencil, &w->within, (int)steps);
            size_t b = oly_stencil_scratch(step->stencil.stencil, &w->last, (int)steps);
            most = a > most ? a : most;
            most = b > most ? b : most;
        }
    return (most + 63) / 64 * 64;
}

oly_status oly_run_stencil(oly_run *r, const oly_step *step)
{
    sweep s = {.run = r, .step = step, .from = step->stencil.first_slot};
    oly_exchange *under_way = step->awaited;
    oly_status st = OLY_OK;
    for (int64_t at = 0, pass = 0; at < step->stencil.count && st == OLY_OK; at += s.steps, pass++) {
        int64_t left = step->stencil.count - at,
                over = left % step->stencil.pass; /* the first pass has what is left over */
        int next = (pass + 1) % 2;
        s.steps = over ? (int)over : step->stencil.pass;
        s.last = left <= step->stencil.pass;
        s.to = s.last ? step->out_slot : step->stencil.field_slot[next];
        st = run_sweep(&s, under_way);
        s.from = s.to;
        under_way = NULL;
        if (s.last || !step->stencil.margins[next] || st != OLY_OK)
            continue;
        st = oly_run_block(r, step->stencil.margins[next]);
        if (step->stencil.overlaps)
            under_way = step->stencil.margins[next]->steps[0].exchange;
    }
    oly_tiles_drop(r);
    return st;
}
