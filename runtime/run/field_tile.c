/* SPDX-License-Identifier: BSD-3-Clause */
/* The walk through one tile of a pass over fields. See field_tile.h. */
#include "run/field_tile.h"
#include "core/error.h"
#include <string.h>

typedef struct walk {
    const oly_field_tile *tile;
    const oly_field_kernels *kernels;
    void *context;
} walk;

/* Position of a value: element x of the grid at base + sum over d of (x[d] - origin[d]) * stride[d] elements. */
typedef struct located {
    char *base;
    int64_t origin[OLY_TILING_RANK], stride[OLY_TILING_RANK];
} located;

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

static void *slot_at(const oly_field_tile *t, int slot)
{
    return t->base[oly_cell(t->sweep->passes.run->plan, t->number, slot)];
}

static located result_at(const oly_field_tile *t, int j)
{
    return located_in(slot_at(t, t->sweep->to[j]), t->sweep->passes.last ? &t->device->own[j] : &t->device->field[j]);
}

static located instance_at(const oly_field_tile *t, int k)
{
    const oly_field_sweep *s = t->sweep;
    const oly_tiling_instance *i = &s->pass->instance[k];
    if (i->target >= 0)
        return result_at(t, i->target);
    int buffer = t->groups ? i->group_buffer : i->buffer;
    located l = {.base = t->memory + (size_t)buffer * t->buffer_bytes};
    int64_t stride = 1;
    for (int d = s->tiling->form.rank - 1; d >= 0; d--) {
        l.origin[d] = t->lo[d] + s->pass->lo[d];
        l.stride[d] = stride;
        stride *= t->window[d];
    }
    return l;
}

static located fixed_at(const oly_field_tile *t, int k)
{
    const oly_tiling_place *p = &t->device->fixed[k];
    located l = {.base = p->base < 0 ? NULL : (char *)t->base[p->base] + p->offset};
    memcpy(l.origin, p->origin, sizeof l.origin);
    memcpy(l.stride, p->stride, sizeof l.stride);
    return l;
}

static located find(const oly_field_tile *t, const oly_tiling_instance *i, oly_tiling_ref of, int32_t *counter)
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

/* What computes one piece of a stage, or of a group of stages. */
typedef struct work {
    const oly_tiling_instance *instance; /* of the first stage: those of a group are needed over the same elements */
    const oly_tiling_piece *piece;       /* of the first stage */
    const oly_tile_program *program;
    const oly_tiling_load *reads;
    const int *stored; /* [program->n_stores] stages */
    bool machine;
} work;

/* Machine code computes the piece, or the interpreter in its place until there is code; or else the interpreter computes the stage's own
 * program. */
static work work_of_stage(const oly_field_tile *t, const oly_tiling_instance *i, const oly_tiling_piece *piece)
{
    work p = {.instance = i, .piece = piece, .stored = &i->stage};
    p.machine = t->machine && piece->machine.n_instructions > 0;
    p.program = p.machine ? &piece->machine : &piece->program;
    p.reads = p.machine ? piece->machine_loads : piece->loads;
    return p;
}

static work work_of_group(const oly_field_tile *t, const oly_tiling_instance *i, const oly_tiling_group *g, int k)
{
    const oly_tiling_group_piece *piece = &g->pieces[k];
    return (work){.instance = i,
                  .piece = &t->sweep->tiling->form.stages[g->first].pieces[k],
                  .program = &piece->program,
                  .reads = piece->loads,
                  .stored = g->stored,
                  .machine = true};
}

static oly_status compute_box(const walk *w, const work *p, const int64_t *lo, const int64_t *hi, const int64_t *turn)
{
    const oly_field_tile *t = w->tile;
    const oly_tiling_form *form = &t->sweep->tiling->form;
    const oly_tiling_instance *i = p->instance;
    const oly_tiling_stage *stage = &form->stages[i->stage];
    oly_tile_operand loads[OLY_TILE_REGISTERS], stores[OLY_TILE_REGISTERS];
    oly_tile_box box = {.rank = form->rank};
    int32_t counter = (int32_t)(t->sweep->counter + i->step);
    for (int d = 0; d < form->rank; d++) {
        box.extent[d] = hi[d] - lo[d];
        box.origin[d] = lo[d] - stage->align[d] - turn[d];
        box.whole[d] = stage->node->type.shape[d];
    }
    for (int l = 0; l < p->program->n_loads; l++) {
        located at = find(t, i, p->reads[l].of, &counter);
        place(&at, form->rank, lo, p->reads[l].shift, oly_dtype_size((oly_dtype)p->program->load_dtype[l]), &loads[l]);
    }
    for (int k = 0; k < p->program->n_stores; k++) {
        located at = instance_at(t, i->step * form->n_stages + p->stored[k]);
        place(&at, form->rank, lo, NULL, oly_dtype_size((oly_dtype)p->program->store_dtype[k]), &stores[k]);
    }
    const oly_field_box here = {.piece = p->piece,
                                .program = p->program,
                                .reads = p->reads,
                                .machine = p->machine,
                                .dtype = stage->node->type.dtype,
                                .box = &box,
                                .loads = loads,
                                .stores = stores};
    return w->kernels->compute(w->context, &here);
}

/* The elements of a value read by an instance that are in memory, in dimension d. */
static void extent_of(const oly_field_tile *t, const oly_tiling_instance *i, oly_tiling_ref of, int d, int64_t *lo,
                      int64_t *hi)
{
    const oly_field_sweep *s = t->sweep;
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
static bool keep_readable(const oly_field_tile *t, const work *p, int64_t *lo, int64_t *hi)
{
    for (int l = 0; l < p->program->n_loads; l++) {
        const oly_tiling_load *load = &p->reads[l];
        if (load->of.kind != OLY_TILING_FIELD && load->of.kind != OLY_TILING_STAGE)
            continue;
        for (int d = 0; d < t->sweep->tiling->form.rank; d++) {
            int64_t first, end;
            extent_of(t, p->instance, load->of, d, &first, &end);
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

/* Computes every image of the piece along periodic dimensions, as far as the instance is needed. */
static oly_status compute_images(const walk *w, const work *p)
{
    const oly_field_tile *t = w->tile;
    const oly_tiling_instance *i = p->instance;
    const oly_tiling_piece *piece = p->piece;
    const oly_tiling_form *form = &t->sweep->tiling->form;
    int64_t first[OLY_TILING_RANK], last[OLY_TILING_RANK], image[OLY_TILING_RANK];
    for (int d = 0; d < form->rank; d++) {
        int64_t lo = t->lo[d] + i->lo[d], hi = t->hi[d] + i->hi[d], n = form->shape[d];
        first[d] = form->wraps[d] ? floor_divide(lo - piece->hi[d], n) + 1 : 0;
        last[d] = form->wraps[d] ? floor_divide(hi - 1 - piece->lo[d], n) : 0;
        image[d] = first[d];
        if (first[d] > last[d])
            return OLY_OK;
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
        any = any && keep_readable(t, p, lo, hi);
        if (any)
            OLY_TRY(compute_box(w, p, lo, hi, turn));
        int d = form->rank - 1;
        while (d >= 0 && ++image[d] > last[d]) {
            image[d] = first[d];
            d--;
        }
        if (d < 0)
            return OLY_OK;
    }
}

/* Copies values that were computed elsewhere than in the result's memory, or that the pass does not change. */
static oly_status copy_result(const walk *w, int j)
{
    const oly_field_tile *t = w->tile;
    const oly_tiling_form *form = &t->sweep->tiling->form;
    oly_tiling_ref of = t->sweep->pass->result[j];
    if (of.kind == OLY_TILING_STAGE && t->sweep->pass->instance[of.index].target == j)
        return OLY_OK;
    located from = find(t, NULL, of, NULL), to = result_at(t, j);
    oly_copy_task task = {.element_bytes = oly_dtype_size(form->field[j]->type.dtype), .rank = form->rank};
    oly_tile_operand a, b;
    int64_t lo[OLY_TILING_RANK];
    for (int d = 0; d < form->rank; d++) { /* the field may be smaller than the tile */
        int64_t hi = t->hi[d] < t->device->own[j].hi[d] ? t->hi[d] : t->device->own[j].hi[d];
        lo[d] = t->lo[d] > t->device->own[j].lo[d] ? t->lo[d] : t->device->own[j].lo[d];
        if (lo[d] >= hi)
            return OLY_OK;
        task.extent[d] = hi - lo[d];
        task.from_stride[d] = from.stride[d];
        task.to_stride[d] = to.stride[d];
    }
    place(&from, form->rank, lo, NULL, task.element_bytes, &a);
    place(&to, form->rank, lo, NULL, task.element_bytes, &b);
    return w->kernels->copy(w->context, &task, b.base, a.base);
}

static oly_status walk_stages(const walk *w, int step)
{
    const oly_field_tile *t = w->tile;
    const oly_tiling_form *form = &t->sweep->tiling->form;
    for (int k = 0; k < form->n_stages; k++) {
        const oly_tiling_instance *instance = &t->sweep->pass->instance[step * form->n_stages + k];
        const oly_tiling_stage *stage = &form->stages[k];
        for (int j = 0; j < stage->n_pieces && instance->needed && !(t->machine && stage->inlined); j++) {
            const work p = work_of_stage(t, instance, &stage->pieces[j]);
            OLY_TRY(compute_images(w, &p));
        }
    }
    return OLY_OK;
}

static oly_status walk_groups(const walk *w, int step)
{
    const oly_field_tile *t = w->tile;
    const oly_tiling_form *form = &t->sweep->tiling->form;
    for (int k = 0; k < form->n_groups; k++) {
        const oly_tiling_group *g = &form->groups[k];
        const oly_tiling_instance *instance = &t->sweep->pass->instance[step * form->n_stages + g->first];
        for (int j = 0; j < g->n_pieces && g->n_stored > 0 && instance->needed; j++) {
            const work p = work_of_group(t, instance, g, j);
            OLY_TRY(compute_images(w, &p));
        }
    }
    return OLY_OK;
}

oly_status oly_field_tile_walk(const oly_field_tile *t, const oly_field_kernels *kernels, void *context)
{
    const walk w = {t, kernels, context};
    for (int step = 0; step < t->sweep->pass->steps; step++)
        OLY_TRY(t->groups ? walk_groups(&w, step) : walk_stages(&w, step));
    for (int j = 0; j < t->sweep->tiling->form.n_fields; j++)
        OLY_TRY(copy_result(&w, j));
    return OLY_OK;
}

/* Buffers as large as the pass needs, with addresses a cache line apart. */
void oly_field_buffers(const oly_tiling *m, const oly_tiling_pass *pass, const int64_t *extent, int64_t *window,
                       size_t *buffer_bytes)
{
    const oly_tiling_form *form = &m->form;
    size_t element = 1, points = 1;
    for (int k = 0; k < form->n_stages; k++)
        if (oly_dtype_size(form->stages[k].node->type.dtype) > element)
            element = oly_dtype_size(form->stages[k].node->type.dtype);
    for (int d = 0; d < form->rank; d++) {
        window[d] = extent[d] + pass->hi[d] - pass->lo[d];
        if (d == form->rank - 1)
            window[d] = (window[d] + 15) / 16 * 16;
        points *= (size_t)window[d];
    }
    *buffer_bytes = (points * element + 63) / 64 * 64 + 64;
}
