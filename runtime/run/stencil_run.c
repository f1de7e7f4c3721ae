/* SPDX-License-Identifier: BSD-3-Clause */
/* Running stencil loops: the passes (tile_passes.h) by a kernel of kernels/stencil.c. The plan knows which tiles read
 * no margins that come in messages (plan/stencil/stencil_overlap.c). */
#include "run/stencil_run.h"
#include "run/tile_memory.h"
#include "run/tile_passes.h"
#include <string.h>

typedef struct sweep {
    oly_passes passes; /* first member */
    int steps;
    int from, to; /* slots */
} sweep;

static const oly_stencil_field *field(const sweep *s, int device)
{
    const oly_stencil_work *w = &s->passes.step->stencil.device[device];
    return s->passes.last ? &w->last : &w->within;
}

static const oly_stencil *stencil_of(const sweep *s)
{
    return s->passes.step->stencil.stencil;
}

static oly_stencil_share share_of(const sweep *s, int device)
{
    return oly_stencil_divide(stencil_of(s), field(s, device), s->steps, s->passes.step->stencil.device[device].late);
}

static int tiles_on(const oly_passes *p, int device)
{
    const sweep *s = (const sweep *)p;
    if (p->part == OLY_TILES_ALL)
        return oly_stencil_chunks(stencil_of(s), field(s, device), s->steps);
    oly_stencil_share r = share_of(s, device);
    return p->part == OLY_TILES_EARLY ? r.n_inner : r.n - r.n_inner;
}

/* Number of tile i of this part among all tiles. */
static int tile_number(const sweep *s, int device, int i)
{
    if (s->passes.part == OLY_TILES_ALL)
        return i;
    oly_stencil_share r = share_of(s, device);
    return s->passes.part == OLY_TILES_EARLY ? oly_stencil_inner(&r, i) : oly_stencil_outer(&r, i);
}

static bool run_tile(const oly_passes *p, int device, int i)
{
    const sweep *s = (const sweep *)p;
    oly_run *r = p->run;
    bool turn;
    void *memory = oly_tile_begin(r, &turn);
    oly_stencil_run(stencil_of(s), field(s, device), s->steps, p->base[oly_cell(r->plan, device, s->from)],
                    p->base[oly_cell(r->plan, device, s->to)], memory, tile_number(s, device, i),
                    oly_stencil_chunks(stencil_of(s), field(s, device), s->steps));
    oly_tile_end(r, turn);
    return true;
}

static oly_device_set uses(const oly_passes *p, int device)
{
    (void)p;
    return oly_one_device(device);
}

static void cells(const oly_passes *p, int device, oly_cells *to)
{
    const sweep *s = (const sweep *)p;
    oly_cells_use(to, oly_cell(p->run->plan, device, s->from), false);
    oly_cells_use(to, oly_cell(p->run->plan, device, s->to), true);
}

/* The first pass has the remaining steps. */
static int begin_pass(oly_passes *p, int64_t at, int next)
{
    sweep *s = (sweep *)p;
    const oly_step *step = p->step;
    int64_t left = step->stencil.count - at, over = left % step->stencil.pass;
    s->steps = over ? (int)over : step->stencil.pass;
    p->last = left <= step->stencil.pass;
    s->from = at == 0 ? step->stencil.first_slot : s->to;
    s->to = p->last ? step->out_slot : step->stencil.field_slot[next];
    return s->steps;
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

static const oly_pass_kind kind = {begin_pass, tiles_on, uses, cells, run_tile};

/* Elements that are read in messages are at most `steps` times the reach from the late sides. */
static oly_part_block block_of(const sweep *s, int device)
{
    const oly_stencil *stencil = stencil_of(s);
    const oly_stencil_field *f = field(s, device);
    unsigned late = s->passes.step->stencil.device[device].late;
    oly_part_block b = {.rank = stencil->rank};
    bool empty = false;
    for (int d = 0; d < b.rank; d++) {
        int64_t reach = (int64_t)s->steps * stencil->radius[d];
        b.lo[d] = f->write_lo[d];
        b.hi[d] = f->write_hi[d];
        b.early_lo[d] = b.lo[d] + (late >> (2 * d) & 1 ? reach : 0);
        b.early_hi[d] = b.hi[d] - (late >> (2 * d + 1) & 1 ? reach : 0);
        empty = empty || b.early_lo[d] >= b.early_hi[d];
    }
    for (int d = 0; d < b.rank && empty; d++)
        b.early_lo[d] = b.early_hi[d] = b.hi[d];
    return b;
}

bool oly_stencil_now(const oly_passes *p, void *const *base, int device, oly_stencil_share_now *now)
{
    const sweep *s = (const sweep *)p;
    const oly_plan *plan = p->run->plan;
    if (p->kind != &kind)
        return false;
    const oly_part_block block = block_of(s, device);
    oly_part_box boxes[OLY_PART_BOXES];
    *now = (oly_stencil_share_now){.stencil = stencil_of(s),
                                   .steps = s->steps,
                                   .from = base[oly_cell(plan, device, s->from)],
                                   .to = base[oly_cell(plan, device, s->to)],
                                   .n = oly_part_boxes(p->part, &block, boxes)};
    for (int k = 0; k < now->n; k++) {
        now->field[k] = *field(s, device);
        memcpy(now->field[k].write_lo, boxes[k].lo, sizeof now->field[k].write_lo);
        memcpy(now->field[k].write_hi, boxes[k].hi, sizeof now->field[k].write_hi);
    }
    return true;
}

oly_status oly_run_stencil(oly_run *r, const oly_step *step)
{
    sweep s = {.passes = {.kind = &kind, .bytes = sizeof s, .run = r, .step = step}};
    return oly_run_passes(&s.passes);
}
