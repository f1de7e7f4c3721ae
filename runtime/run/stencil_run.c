/* Running stencil loops: passes over the fields, tiles of all devices spread over the threads, margins in between. */
#include "run/stencil_run.h"
#include "device/workers.h"
#include <stdatomic.h>
#include <string.h>

typedef struct sweep {
    oly_run *run;
    const oly_step *step;
    int steps;
    bool last;
    int from, to;         /* slots */
    oly_buffer **scratch; /* per thread, taken when it first works a tile */
    size_t scratch_bytes;
    _Atomic bool failed;
} sweep;

static const oly_stencil_field *field(const sweep *s, int device)
{
    const oly_stencil_work *w = &s->step->stencil.device[device];
    return s->last ? &w->last : &w->within;
}

static int tiles_on(const sweep *s, int device)
{
    return oly_stencil_chunks(s->step->stencil.stencil, field(s, device), s->steps);
}

static void tile(void *context, int i)
{
    sweep *s = context;
    int device = 0, n;
    for (; i >= (n = tiles_on(s, device)); device++)
        i -= n;
    oly_buffer **scratch = &s->scratch[oly_workers_slot()];
    if (!*scratch && !(*scratch = oly_buffer_take(s->scratch_bytes))) {
        s->failed = true;
        return;
    }
    const oly_run *r = s->run;
    oly_stencil_run(s->step->stencil.stencil, field(s, device), s->steps, r->base[oly_cell(r->plan, device, s->from)],
                    r->base[oly_cell(r->plan, device, s->to)], (*scratch)->data, i, n);
}

static void run_sweep(sweep *s)
{
    int total = 0;
    for (int d = 0; d < s->run->plan->n_devices; d++)
        total += tiles_on(s, d);
    if (s->step->work > 40000)
        oly_parallel(total, tile, s);
    else
        for (int i = 0; i < total; i++)
            tile(s, i);
}

static size_t scratch_needed(const oly_run *r, const oly_step *step)
{
    size_t most = 0;
    for (int d = 0; d < r->plan->n_devices; d++)
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
    sweep s = {.run = r, .step = step, .from = step->stencil.first_slot, .scratch_bytes = scratch_needed(r, step)};
    int slots = oly_workers_slots();
    oly_buffer *table = oly_buffer_take(sizeof(oly_buffer *) * (size_t)slots);
    if (!table)
        return oly_buffer_fail(sizeof(oly_buffer *) * (size_t)slots, "a stencil's tiles");
    s.scratch = memset(table->data, 0, table->bytes);
    oly_status st = OLY_OK;
    for (int64_t at = 0, pass = 0; at < step->stencil.count && st == OLY_OK; at += s.steps, pass++) {
        int64_t left = step->stencil.count - at,
                over = left % step->stencil.pass; /* the first pass has what is left over */
        int next = (pass + 1) % 2;
        s.steps = over ? (int)over : step->stencil.pass;
        s.last = left <= step->stencil.pass;
        s.to = s.last ? step->out_slot : step->stencil.field_slot[next];
        run_sweep(&s);
        s.from = s.to;
        if (!s.last && step->stencil.margins[next])
            st = oly_run_block(r, step->stencil.margins[next]);
    }
    for (int k = 0; k < slots; k++)
        oly_buffer_drop(s.scratch[k]);
    oly_buffer_drop(table);
    return s.failed ? oly_buffer_fail(s.scratch_bytes, "a stencil's tiles") : st;
}
