/* SPDX-License-Identifier: BSD-3-Clause */
/* Running loops over fields (plan/model/time_tiling.h): the passes (tile_passes.h). A tile computes all steps of a
 * pass: the stages of each step over the part that later ones need, in buffers of its own, from the fields before the
 * pass to those after it (field_tile.h). The plan knows which tiles read no margins that come in messages
 * (plan/stencil/time_tiling_overlap.c). */
#include "run/field_tile.h"
#include "machine_code.h"
#include "run/compiled_groups.h"
#include "run/stencil_run.h"
#include "run/tile_memory.h"
#include <string.h>

/* -- kernels of the CPU --------------------------------------------------------------------------------------------------- */

/* A sum of taps, row by row. */
static void run_taps(const oly_field_box *b)
{
    const oly_tiling_piece *piece = b->piece;
    int64_t element = (int64_t)oly_dtype_size(b->dtype), row[OLY_TILING_RANK] = {0};
    int last = b->box->rank - 1;
    const void *in[OLY_STENCIL_TAPS];
    for (;;) {
        char *out = b->stores->base;
        for (int d = 0; d < last; d++)
            out += row[d] * b->stores->stride[d] * element;
        for (int l = 0; l < piece->n_taps; l++) {
            const oly_tile_operand *load = &b->loads[piece->tap[l]];
            const char *from = load->base;
            for (int d = 0; d < last; d++)
                from += row[d] * load->stride[d] * element;
            in[l] = from;
        }
        oly_taps_run(b->dtype, piece->n_taps, piece->coefficient, in, out, b->box->extent[last]);
        int d = last - 1;
        while (d >= 0 && ++row[d] == b->box->extent[d])
            row[d--] = 0;
        if (d < 0)
            return;
    }
}

static oly_status compute_box(void *unused, const oly_field_box *b)
{
    (void)unused;
    if (b->machine)
        oly_group_run_rows(b->program, b->box, b->loads, b->stores);
    else if (b->piece->n_taps)
        run_taps(b);
    else
        oly_tile_run(b->program, b->box, b->loads, b->stores, 0, 1);
    return OLY_OK;
}

static oly_status copy_box(void *unused, const oly_copy_task *task, void *to, const void *from)
{
    (void)unused;
    int chunks = oly_copy_chunks(task);
    for (int c = 0; c < chunks; c++)
        oly_copy_run(task, to, from, c, chunks);
    return OLY_OK;
}

/* -- tiles ---------------------------------------------------------------------------------------------------------------- */

static int tiles_on(const oly_passes *p, int device)
{
    const oly_tiling *m = ((const oly_field_sweep *)p)->tiling;
    const oly_tiling_device *v = &m->device[device];
    int64_t n = v->here;
    for (int d = 0; d < m->form.rank && n; d++)
        n *= oly_tiling_parts(m, v, d);
    return (int)n;
}

static oly_device_set uses(const oly_passes *p, int device)
{
    const oly_tiling *m = ((const oly_field_sweep *)p)->tiling;
    oly_device_set set = oly_one_device(device);
    for (int k = 0; k < m->form.n_fixed; k++)
        set |= oly_device_with(p->run, m->device[device].fixed[k].base);
    return set;
}

static void cells(const oly_passes *p, int device, oly_cells *to)
{
    const oly_field_sweep *s = (const oly_field_sweep *)p;
    for (int j = 0; j < s->tiling->form.n_fields; j++) {
        oly_cells_use(to, oly_cell(p->run->plan, device, s->from[j]), false);
        oly_cells_use(to, oly_cell(p->run->plan, device, s->to[j]), true);
    }
    for (int k = 0; k < s->tiling->form.n_fixed; k++)
        oly_cells_use(to, s->tiling->device[device].fixed[k].base, false);
}

/* Enough for stages and for groups. */
static int buffers_of(const oly_tiling_pass *pass)
{
    return pass->n_buffers > pass->n_group_buffers ? pass->n_buffers : pass->n_group_buffers;
}

static bool run_tile(const oly_passes *p, int device, int i)
{
    const oly_field_sweep *s = (const oly_field_sweep *)p;
    const oly_tiling_form *form = &s->tiling->form;
    static const oly_field_kernels kernels = {compute_box, copy_box};
    oly_field_tile t = {.sweep = s,
                        .device = &s->tiling->device[device],
                        .number = device,
                        .base = p->base,
                        .machine = s->machine,
                        .groups = s->groups,
                        .buffer_bytes = s->buffer_bytes};
    bool turn = false;
    int64_t number = i;
    memcpy(t.window, s->window, sizeof t.window);
    for (int d = form->rank - 1; d >= 0; d--) {
        int64_t parts = oly_tiling_parts(s->tiling, t.device, d);
        oly_tiling_part(s->tiling, t.device, d, number % parts, &t.lo[d], &t.hi[d]);
        number /= parts;
    }
    if (p->part != OLY_TILES_ALL &&
        oly_tiling_is_early(s->tiling, t.device, t.lo, t.hi) != (p->part == OLY_TILES_EARLY))
        return false;
    t.memory = buffers_of(s->pass) > 0 ? oly_tile_begin(p->run, &turn) : NULL;
    oly_field_tile_walk(&t, &kernels, NULL);
    oly_tile_end(p->run, turn);
    return true;
}

/* For the largest tile of all devices. */
static void size_buffers(oly_field_sweep *s)
{
    const oly_tiling_form *form = &s->tiling->form;
    int64_t longest[OLY_TILING_RANK];
    for (int d = 0; d < form->rank; d++) {
        longest[d] = 1;
        for (int v = 0; v < s->passes.run->plan->n_devices; v++) {
            const oly_tiling_device *device = &s->tiling->device[v];
            int64_t parts = device->here ? oly_tiling_parts(s->tiling, device, d) : 0;
            for (int64_t k = 0; k < parts; k++) {
                int64_t lo, hi;
                oly_tiling_part(s->tiling, device, d, k, &lo, &hi);
                longest[d] = hi - lo > longest[d] ? hi - lo : longest[d];
            }
        }
    }
    oly_field_buffers(s->tiling, s->pass, longest, s->window, &s->buffer_bytes);
}

size_t oly_tiling_tile_bytes(const oly_plan *plan, const oly_step *step)
{
    const oly_tiling *m = step->stencil.tiling;
    const oly_tiling_pass *passes[] = {&m->first, &m->pass};
    oly_run r = {.plan = plan};
    size_t most = 0;
    for (int k = 0; k < 2; k++) {
        oly_field_sweep s = {.passes.run = &r, .tiling = m, .pass = passes[k]};
        if (passes[k]->steps > 0)
            size_buffers(&s);
        size_t bytes = s.buffer_bytes * (size_t)buffers_of(passes[k]);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static int begin_pass(oly_passes *p, int64_t at, int next)
{
    oly_field_sweep *s = (oly_field_sweep *)p;
    const oly_tiling *m = s->tiling;
    const oly_tiling_pass *now = at == 0 && m->first.steps ? &m->first : &m->pass;
    if (now != s->pass) {
        s->pass = now;
        size_buffers(s);
    }
    s->counter = m->lower + at;
    p->last = at + now->steps >= p->step->stencil.count;
    s->from = at == 0 ? m->first_slot : s->to;
    s->to = p->last ? m->out_slot : m->field_slot[next];
    return now->steps;
}

static const oly_pass_kind kind = {begin_pass, tiles_on, uses, cells, run_tile};

const oly_field_sweep *oly_field_sweep_of(const oly_passes *p)
{
    return p->kind == &kind ? (const oly_field_sweep *)p : NULL;
}

oly_status oly_run_time_tiling(oly_run *r, const oly_step *step)
{
    oly_field_sweep s = {.passes = {.kind = &kind, .bytes = sizeof s, .run = r, .step = step},
                         .tiling = step->stencil.tiling,
                         .machine = oly_code_available()};
    s.groups = s.machine && s.tiling->form.n_groups > 0;
    return oly_run_passes(&s.passes);
}
