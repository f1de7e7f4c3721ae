/* SPDX-License-Identifier: BSD-3-Clause */
/* Running loops over fields (plan/model/time_tiling.h): the passes (tile_passes.h). A tile computes all steps of a
 * pass: the stages of each step over the part that later ones need, in buffers of its own, from the fields before the
 * pass to those after it. The plan knows which tiles read no margins that come in messages
 * (plan/stencil/time_tiling_overlap.c). */
#include "plan/model/time_tiling.h"
#include "machine_code.h"
#include "run/compiled_groups.h"
#include "run/stencil_run.h"
#include "run/tile_memory.h"
#include "run/tile_passes.h"
#include <string.h>

typedef struct field_sweep {
    oly_passes passes; /* first member */
    const oly_tiling *tiling;
    const oly_tiling_pass *pass;
    int64_t counter;      /* at the first step */
    const int *from, *to; /* [n_fields] slots */
    int64_t window[OLY_TILING_RANK];
    size_t buffer_bytes;
    bool machine; /* programs of machine code (time_tiling_fuse.c) are run, whether there is code yet or not */
} field_sweep;

/* Position of a value: element x of the grid at base + sum over d of (x[d] - origin[d]) * stride[d] elements. */
typedef struct located {
    char *base;
    int64_t origin[OLY_TILING_RANK], stride[OLY_TILING_RANK];
} located;

typedef struct field_tile {
    const field_sweep *sweep;
    const oly_tiling_device *device;
    int number; /* of the device */
    char *memory;
    int64_t lo[OLY_TILING_RANK], hi[OLY_TILING_RANK]; /* of the written part */
} field_tile;

static located located_in(void *base, const oly_box *b)
{
    located l = {.base = base};
    int64_t stride = 1;
    for (int d = b->rank - 1; d >= 0; d--) {
        l.origin[d] = b->lo[d];
        l.stride[d] = stride;
        stride *= b->hi[d] - b->lo[d];
    }
    return l;
}

static void *slot_at(const field_tile *t, int slot)
{
    return t->sweep->passes.base[oly_cell(t->sweep->passes.run->plan, t->number, slot)];
}

static located result_at(const field_tile *t, int j)
{
    return located_in(slot_at(t, t->sweep->to[j]), t->sweep->passes.last ? &t->device->own[j] : &t->device->field[j]);
}

static located instance_at(const field_tile *t, int k)
{
    const field_sweep *s = t->sweep;
    const oly_tiling_instance *i = &s->pass->instance[k];
    if (i->target >= 0)
        return result_at(t, i->target);
    located l = {.base = t->memory + (size_t)i->buffer * s->buffer_bytes};
    int64_t stride = 1;
    for (int d = s->tiling->form.rank - 1; d >= 0; d--) {
        l.origin[d] = t->lo[d] + s->pass->lo[d];
        l.stride[d] = stride;
        stride *= s->window[d];
    }
    return l;
}

static located fixed_at(const field_tile *t, int k)
{
    const oly_tiling_place *p = &t->device->fixed[k];
    located l = {.base = p->base < 0 ? NULL : (char *)t->sweep->passes.base[p->base] + p->offset};
    memcpy(l.origin, p->origin, sizeof l.origin);
    memcpy(l.stride, p->stride, sizeof l.stride);
    return l;
}

static located find(const field_tile *t, const oly_tiling_instance *i, oly_tiling_ref of, int32_t *counter)
{
    if (of.kind == OLY_TILING_FIELD && i)
        of = i->fields[of.index];
    else if (of.kind == OLY_TILING_STAGE && i)
        of.index += i->step * t->sweep->tiling->form.n_stages;
    switch (of.kind) {
    case OLY_TILING_FIELD: return located_in(slot_at(t, t->sweep->from[of.index]), &t->device->field[of.index]);
    case OLY_TILING_STAGE: return instance_at(t, of.index);
    case OLY_TILING_FIXED: return fixed_at(t, of.index);
    case OLY_TILING_COUNTER: break;
    }
    return (located){.base = (char *)counter};
}

static void place(const located *l, int rank, const int64_t *lo, const int64_t *shift, size_t element,
                  oly_tile_operand *to)
{
    to->base = l->base;
    for (int d = 0; d < rank; d++) {
        to->base += (lo[d] + (shift ? shift[d] : 0) - l->origin[d]) * l->stride[d] * (int64_t)element;
        to->stride[d] = l->stride[d];
    }
}

/* Does machine code compute the piece, or the interpreter in its place until there is code? */
static bool by_machine(const field_tile *t, const oly_tiling_piece *piece)
{
    return t->sweep->machine && piece->machine.n_instructions > 0;
}

static const oly_tile_program *program_of(const field_tile *t, const oly_tiling_piece *piece,
                                          const oly_tiling_load **reads)
{
    bool machine = by_machine(t, piece);
    *reads = machine ? piece->machine_loads : piece->loads;
    return machine ? &piece->machine : &piece->program;
}

static void run_piece(const field_tile *t, const oly_tiling_instance *i, int k, const oly_tiling_piece *piece,
                      const int64_t *lo, const int64_t *hi, const int64_t *turn)
{
    const oly_tiling_form *form = &t->sweep->tiling->form;
    const oly_tiling_stage *stage = &form->stages[i->stage];
    const oly_tiling_load *reads;
    const oly_tile_program *p = program_of(t, piece, &reads);
    oly_tile_operand loads[OLY_TILE_REGISTERS], store;
    oly_tile_box box = {.rank = form->rank};
    int32_t counter = (int32_t)(t->sweep->counter + i->step);
    for (int d = 0; d < form->rank; d++) {
        box.extent[d] = hi[d] - lo[d];
        box.origin[d] = lo[d] - stage->align[d] - turn[d];
        box.whole[d] = stage->node->type.shape[d];
    }
    for (int l = 0; l < p->n_loads; l++) {
        located at = find(t, i, reads[l].of, &counter);
        place(&at, form->rank, lo, reads[l].shift, oly_dtype_size((oly_dtype)p->load_dtype[l]), &loads[l]);
    }
    located at = instance_at(t, k);
    place(&at, form->rank, lo, NULL, oly_dtype_size((oly_dtype)p->store_dtype[0]), &store);
    if (by_machine(t, piece))
        oly_group_run_rows(p, &box, loads, &store);
    else
        oly_tile_run(p, &box, loads, &store, 0, 1);
}

/* A sum of taps, row by row. */
static void run_taps(const field_tile *t, const oly_tiling_instance *i, int k, const oly_tiling_piece *piece,
                     const int64_t *lo, const int64_t *hi)
{
    const oly_tiling_form *form = &t->sweep->tiling->form;
    oly_dtype dtype = form->stages[i->stage].node->type.dtype;
    int64_t element = (int64_t)oly_dtype_size(dtype), row[OLY_TILING_RANK] = {0};
    int last = form->rank - 1;
    const void *in[OLY_STENCIL_TAPS];
    oly_tile_operand loads[OLY_STENCIL_TAPS], store;
    for (int l = 0; l < piece->n_taps; l++) {
        const oly_tiling_load *load = &piece->loads[piece->tap[l]];
        located at = find(t, i, load->of, NULL);
        place(&at, form->rank, lo, load->shift, (size_t)element, &loads[l]);
    }
    located at = instance_at(t, k);
    place(&at, form->rank, lo, NULL, (size_t)element, &store);
    for (;;) {
        char *out = store.base;
        for (int d = 0; d < last; d++)
            out += row[d] * store.stride[d] * element;
        for (int l = 0; l < piece->n_taps; l++) {
            const char *from = loads[l].base;
            for (int d = 0; d < last; d++)
                from += row[d] * loads[l].stride[d] * element;
            in[l] = from;
        }
        oly_taps_run(dtype, piece->n_taps, piece->coefficient, in, out, hi[last] - lo[last]);
        int d = last - 1;
        while (d >= 0 && ++row[d] == hi[d] - lo[d])
            row[d--] = 0;
        if (d < 0)
            return;
    }
}

/* The elements of a value read by an instance that are in memory, in dimension d. */
static void extent_of(const field_tile *t, const oly_tiling_instance *i, oly_tiling_ref of, int d, int64_t *lo,
                      int64_t *hi)
{
    const field_sweep *s = t->sweep;
    const oly_box *box = NULL;
    if (of.kind == OLY_TILING_FIELD)
        of = i->fields[of.index];
    else
        of.index += i->step * s->tiling->form.n_stages;
    int target = of.kind == OLY_TILING_STAGE ? s->pass->instance[of.index].target : -1;
    if (of.kind == OLY_TILING_FIELD)
        box = &t->device->field[of.index];
    else if (target >= 0)
        box = s->passes.last ? &t->device->own[target] : &t->device->field[target];
    *lo = box ? box->lo[d] : t->lo[d] + s->pass->lo[d];
    *hi = box ? box->hi[d] : t->hi[d] + s->pass->hi[d];
}

/* The box of an instance may have elements that this tile does not need; time_tiling_pass.c exchanges no margins for
 * those. Their operands are not in memory, so they are left out. */
static bool keep_readable(const field_tile *t, const oly_tiling_instance *i, const oly_tiling_piece *piece, int64_t *lo,
                          int64_t *hi)
{
    const oly_tiling_load *reads;
    const oly_tile_program *p = program_of(t, piece, &reads);
    for (int l = 0; l < p->n_loads; l++) {
        const oly_tiling_load *load = &reads[l];
        if (load->of.kind != OLY_TILING_FIELD && load->of.kind != OLY_TILING_STAGE)
            continue;
        for (int d = 0; d < t->sweep->tiling->form.rank; d++) {
            int64_t first, end;
            extent_of(t, i, load->of, d, &first, &end);
            lo[d] = lo[d] < first - load->shift[d] ? first - load->shift[d] : lo[d];
            hi[d] = hi[d] > end - load->shift[d] ? end - load->shift[d] : hi[d];
            if (lo[d] >= hi[d])
                return false;
        }
    }
    return true;
}

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Every image of the piece along periodic dimensions, as far as the instance is needed. */
static void run_images(const field_tile *t, const oly_tiling_instance *i, int k, const oly_tiling_piece *piece)
{
    const oly_tiling_form *form = &t->sweep->tiling->form;
    int64_t first[OLY_TILING_RANK], last[OLY_TILING_RANK], image[OLY_TILING_RANK];
    for (int d = 0; d < form->rank; d++) {
        int64_t lo = t->lo[d] + i->lo[d], hi = t->hi[d] + i->hi[d], n = form->shape[d];
        first[d] = form->wraps[d] ? floor_divide(lo - piece->hi[d], n) + 1 : 0;
        last[d] = form->wraps[d] ? floor_divide(hi - 1 - piece->lo[d], n) : 0;
        image[d] = first[d];
        if (first[d] > last[d])
            return;
    }
    for (;;) {
        int64_t lo[OLY_TILING_RANK], hi[OLY_TILING_RANK], turn[OLY_TILING_RANK];
        bool any = true;
        for (int d = 0; d < form->rank; d++) {
            turn[d] = image[d] * form->shape[d];
            lo[d] = t->lo[d] + i->lo[d] > piece->lo[d] + turn[d] ? t->lo[d] + i->lo[d] : piece->lo[d] + turn[d];
            hi[d] = t->hi[d] + i->hi[d] < piece->hi[d] + turn[d] ? t->hi[d] + i->hi[d] : piece->hi[d] + turn[d];
            any = any && lo[d] < hi[d];
        }
        any = any && keep_readable(t, i, piece, lo, hi);
        if (any && piece->n_taps && !by_machine(t, piece))
            run_taps(t, i, k, piece, lo, hi);
        else if (any)
            run_piece(t, i, k, piece, lo, hi, turn);
        int d = form->rank - 1;
        while (d >= 0 && ++image[d] > last[d]) {
            image[d] = first[d];
            d--;
        }
        if (d < 0)
            return;
    }
}

/* Copies values that were computed elsewhere than in the result's memory, or that the pass does not change. */
static void copy_result(const field_tile *t, int j)
{
    const oly_tiling_form *form = &t->sweep->tiling->form;
    oly_tiling_ref of = t->sweep->pass->result[j];
    if (of.kind == OLY_TILING_STAGE && t->sweep->pass->instance[of.index].target == j)
        return;
    located from = find(t, NULL, of, NULL), to = result_at(t, j);
    oly_copy_task task = {.element_bytes = oly_dtype_size(form->field[j]->type.dtype), .rank = form->rank};
    oly_tile_operand a, b;
    int64_t lo[OLY_TILING_RANK];
    for (int d = 0; d < form->rank; d++) { /* the field may be smaller than the tile */
        int64_t hi = t->hi[d] < t->device->own[j].hi[d] ? t->hi[d] : t->device->own[j].hi[d];
        lo[d] = t->lo[d] > t->device->own[j].lo[d] ? t->lo[d] : t->device->own[j].lo[d];
        if (lo[d] >= hi)
            return;
        task.extent[d] = hi - lo[d];
        task.from_stride[d] = from.stride[d];
        task.to_stride[d] = to.stride[d];
    }
    place(&from, form->rank, lo, NULL, task.element_bytes, &a);
    place(&to, form->rank, lo, NULL, task.element_bytes, &b);
    int chunks = oly_copy_chunks(&task);
    for (int c = 0; c < chunks; c++)
        oly_copy_run(&task, b.base, a.base, c, chunks);
}

/* -- tiles ---------------------------------------------------------------------------------------------------------------- */

static int tiles_on(const oly_passes *p, int device)
{
    const oly_tiling *m = ((const field_sweep *)p)->tiling;
    const oly_tiling_device *v = &m->device[device];
    int64_t n = v->here;
    for (int d = 0; d < m->form.rank && n; d++)
        n *= oly_tiling_parts(m, v, d);
    return (int)n;
}

static oly_device_set uses(const oly_passes *p, int device)
{
    const oly_tiling *m = ((const field_sweep *)p)->tiling;
    oly_device_set set = oly_one_device(device);
    for (int k = 0; k < m->form.n_fixed; k++)
        set |= oly_device_with(p->run, m->device[device].fixed[k].base);
    return set;
}

static void cells(const oly_passes *p, int device, oly_cells *to)
{
    const field_sweep *s = (const field_sweep *)p;
    for (int j = 0; j < s->tiling->form.n_fields; j++) {
        oly_cells_use(to, oly_cell(p->run->plan, device, s->from[j]), false);
        oly_cells_use(to, oly_cell(p->run->plan, device, s->to[j]), true);
    }
    for (int k = 0; k < s->tiling->form.n_fixed; k++)
        oly_cells_use(to, s->tiling->device[device].fixed[k].base, false);
}

static bool run_tile(const oly_passes *p, int device, int i)
{
    const field_sweep *s = (const field_sweep *)p;
    const oly_tiling_form *form = &s->tiling->form;
    field_tile t = {.sweep = s, .device = &s->tiling->device[device], .number = device};
    bool turn = false;
    int64_t number = i;
    for (int d = form->rank - 1; d >= 0; d--) {
        int64_t parts = oly_tiling_parts(s->tiling, t.device, d);
        oly_tiling_part(s->tiling, t.device, d, number % parts, &t.lo[d], &t.hi[d]);
        number /= parts;
    }
    if (p->part != OLY_TILES_ALL &&
        oly_tiling_is_early(s->tiling, t.device, t.lo, t.hi) != (p->part == OLY_TILES_EARLY))
        return false;
    t.memory = s->pass->n_buffers > 0 ? oly_tile_begin(p->run, &turn) : NULL;
    for (int k = 0; k < s->pass->steps * form->n_stages; k++) {
        const oly_tiling_instance *instance = &s->pass->instance[k];
        const oly_tiling_stage *stage = &form->stages[instance->stage];
        for (int j = 0; j < stage->n_pieces && instance->needed && !(s->machine && stage->inlined); j++)
            run_images(&t, instance, k, &stage->pieces[j]);
    }
    for (int j = 0; j < form->n_fields; j++)
        copy_result(&t, j);
    oly_tile_end(p->run, turn);
    return true;
}

/* Buffers as large as the pass needs, with addresses a cache line apart. */
static void size_buffers(field_sweep *s)
{
    const oly_tiling_form *form = &s->tiling->form;
    size_t element = 1, points = 1;
    for (int k = 0; k < form->n_stages; k++)
        if (oly_dtype_size(form->stages[k].node->type.dtype) > element)
            element = oly_dtype_size(form->stages[k].node->type.dtype);
    for (int d = 0; d < form->rank; d++) {
        int64_t longest = 1;
        for (int v = 0; v < s->passes.run->plan->n_devices; v++) {
            const oly_tiling_device *device = &s->tiling->device[v];
            int64_t parts = device->here ? oly_tiling_parts(s->tiling, device, d) : 0;
            for (int64_t k = 0; k < parts; k++) {
                int64_t lo, hi;
                oly_tiling_part(s->tiling, device, d, k, &lo, &hi);
                longest = hi - lo > longest ? hi - lo : longest;
            }
        }
        s->window[d] = longest + s->pass->hi[d] - s->pass->lo[d];
        if (d == form->rank - 1)
            s->window[d] = (s->window[d] + 15) / 16 * 16;
        points *= (size_t)s->window[d];
    }
    s->buffer_bytes = (points * element + 63) / 64 * 64 + 64;
}

size_t oly_tiling_tile_bytes(const oly_plan *plan, const oly_step *step)
{
    const oly_tiling *m = step->stencil.tiling;
    const oly_tiling_pass *passes[] = {&m->first, &m->pass};
    oly_run r = {.plan = plan};
    size_t most = 0;
    for (int k = 0; k < 2; k++) {
        field_sweep s = {.passes.run = &r, .tiling = m, .pass = passes[k]};
        if (passes[k]->steps > 0)
            size_buffers(&s);
        size_t bytes = s.buffer_bytes * (size_t)passes[k]->n_buffers;
        most = bytes > most ? bytes : most;
    }
    return most;
}

static int begin_pass(oly_passes *p, int64_t at, int next)
{
    field_sweep *s = (field_sweep *)p;
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

oly_status oly_run_time_tiling(oly_run *r, const oly_step *step)
{
    static const oly_pass_kind kind = {begin_pass, tiles_on, uses, cells, run_tile};
    field_sweep s = {.passes = {.kind = &kind, .bytes = sizeof s, .run = r, .step = step},
                     .tiling = step->stencil.tiling,
                     .machine = oly_code_available()};
    return oly_run_passes(&s.passes);
}
