/* SPDX-License-Identifier: BSD-3-Clause */
/* From a device's share of a step to launches. See steps.h. */
#include "run/cuda/steps.h"
#include "run/call_run.h"
#include "run/cuda/bytes.h"
#include "run/cuda/epilogues.h"
#include "run/cuda/features_last.h"
#include "run/cuda/fields.h"
#include "run/cuda/launcher.h"
#include "run/prepare_cpu.h"
#include "run/stencil_run.h"
#include "run/cuda/products.h"
#include "run/cuda/row_chains.h"
#include <string.h>

bool oly_cells_overlap(const oly_plan *plan, void *const *base, int a, int b)
{
    const char *x = base[a], *y = base[b];
    size_t of_x = plan->slots[oly_cell_slot(plan, a)].bytes, of_y = plan->slots[oly_cell_slot(plan, b)].bytes;
    return x < y + of_y && y < x + of_x;
}

static void *at(void *const *base, const oly_place *p)
{
    return (char *)base[p->base] + p->offset;
}

/* -- steps ------------------------------------------------------------------------------------------------------------------------ */

static oly_status launch_tile(const oly_cuda_launcher *l, void *const *base, const oly_step *step, int device)
{
    oly_tile_operand loads[OLY_TILE_REGISTERS], stores[OLY_TILE_REGISTERS];
    const oly_tile_program *p = &step->tile.program;
    const oly_tile_work *w = &step->tile.device[device];
    size_t strides = sizeof(int64_t) * (size_t)w->box.rank;
    for (int k = 0; k < p->n_loads; k++) {
        loads[k].base = at(base, &w->loads[k]);
        memcpy(loads[k].stride, w->loads[k].stride, strides);
    }
    for (int k = 0; k < p->n_stores; k++) {
        stores[k].base = at(base, &w->stores[k]);
        memcpy(stores[k].stride, w->stores[k].stride, strides);
    }
    oly_cuda_launcher own = *l;
    if (!step->tile.compiles)
        own.generated = NULL;
    return oly_cuda_tile(&own, p, &w->box, loads, stores);
}

static oly_status launch_reduce(const oly_cuda_launcher *l, void *const *base, const oly_step *step, int device)
{
    const oly_reduce_work *w = &step->reduce.device[device];
    return oly_cuda_reduce(l, &w->task, at(base, &w->in), (char *)base[w->out_base] + w->out_offset);
}

static oly_status launch_gemm(oly_cuda_launching *l, void *const *base, const oly_step *step, int device)
{
    const oly_gemm_work *w = &step->gemm.device[device];
    const void *a = at(base, &w->a), *b = at(base, &w->b);
    oly_status st = OLY_OK;
    if (oly_cuda_reads_bytes(step))
        return oly_cuda_launch_byte_product(&l->launcher, base, step, device);
    if (oly_cuda_library_product(l, &w->task, w->parts, w->n_parts, a, b, NULL, base[w->out_base], &st))
        return st;
    return oly_cuda_gemm(&l->launcher, &w->task, w->parts, w->n_parts, a, b, base[w->out_base]);
}

static bool is_later(const oly_step *s)
{
    return s->prepared && s->prepared->with_next;
}

/* An elementwise step, with the product before it that has waited for it. */
static oly_status launch_addition(oly_cuda_launching *l, const oly_device_work *w, const oly_step *add)
{
    const oly_epilogue *e = add->prepared->epilogue;
    const oly_gemm_work *p = &e->product->gemm.device[w->device];
    const void *bias = oly_cuda_bias_of(w->run->plan, e, add, w->base, w->device);
    oly_status st = OLY_OK;
    if (bias && oly_cuda_library_product(l, &p->task, NULL, 0, at(w->base, &p->a), at(w->base, &p->b), bias,
                                         at(w->base, &add->tile.device[w->device].stores[0]), &st))
        return st;
    OLY_TRY(launch_gemm(l, w->base, e->product, w->device));
    return launch_tile(&l->launcher, w->base, add, w->device);
}

static oly_status launch_one(const oly_cuda_launcher *l, void *const *base, const oly_step *s, int device)
{
    return s->kind == OLY_STEP_REDUCE ? launch_reduce(l, base, s, device) : launch_tile(l, base, s, device);
}

static oly_status launch_copies(const oly_cuda_launcher *l, const oly_device_work *w);

/* The last step of a row chain, with those before it that have waited for it. */
static oly_status launch_rows(const oly_cuda_launcher *l, const oly_device_work *w, const oly_row_steps *rows)
{
    bool launched;
    OLY_TRY(oly_cuda_launch_row_chain(l, w->run->plan, w->base, rows, w->device, &launched));
    for (int k = 0; k < rows->n && !launched; k++) {
        const oly_step *s = &rows->steps[k];
        oly_device_work copies = *w;
        const oly_copies list = {.copies = s->kind == OLY_STEP_MOVE ? s->move.copies : NULL,
                                 .n = s->kind == OLY_STEP_MOVE ? s->move.n_copies : 0};
        copies.what = &list;
        OLY_TRY(s->kind == OLY_STEP_MOVE ? launch_copies(l, &copies) : launch_one(l, w->base, s, w->device));
    }
    return OLY_OK;
}

/* -- kernels of the program (oly_kernel.cuda) ------------------------------------------------------------------------------------- */

static oly_status copy_block(const void *launcher, const oly_copy_task *t, void *to, const void *from)
{
    return oly_cuda_copy(launcher, t, to, from);
}

static oly_status clear_block(const void *launcher, void *to, size_t bytes)
{
    static const char zero;
    return oly_cuda_fill(launcher, 1, (int64_t)bytes, to, &zero);
}

static oly_status launch_call(const oly_cuda_launching *l, const oly_device_work *w)
{
    const oly_call_gpu gpu = {
        .stream = l->device->stream, .context = &l->launcher, .copy = copy_block, .clear = clear_block};
    return oly_call_on_gpu(w->base, w->run->plan, w->what, w->device, &gpu);
}

static bool has_call(const oly_step *s, int device)
{
    return s->call.device[device].has_work && s->call.call->gpu_function && !s->call.call->host;
}

static bool has_step(const oly_step *s, int device)
{
    switch (s->kind) {
    case OLY_STEP_TILE: return s->tile.device[device].has_work && oly_cuda_has_tile(&s->tile.program);
    case OLY_STEP_REDUCE:
        return s->reduce.device[device].has_work && oly_cuda_has_reduce(&s->reduce.device[device].task);
    case OLY_STEP_LOCAL: return oly_cuda_has_local_step(s, device);
    case OLY_STEP_GEMM: return s->gemm.device[device].has_work && oly_cuda_has_gemm(&s->gemm.device[device].task);
    case OLY_STEP_CALL: return has_call(s, device);
    default: return false;
    }
}

static oly_status launch_step(oly_cuda_launching *launching, const oly_device_work *w)
{
    const oly_cuda_launcher *l = &launching->launcher;
    const oly_step *s = w->what;
    if (is_later(s))
        return OLY_OK;
    if (s->prepared && s->prepared->rows)
        return launch_rows(l, w, s->prepared->rows);
    switch (s->kind) {
    case OLY_STEP_TILE:
        if (oly_cuda_is_left_out(s))
            return OLY_OK;
        return s->prepared && s->prepared->epilogue ? launch_addition(launching, w, s)
                                                    : launch_tile(l, w->base, s, w->device);
    case OLY_STEP_LOCAL: return oly_cuda_launch_local(l, w->base, s, w->device);
    case OLY_STEP_REDUCE: return launch_reduce(l, w->base, s, w->device);
    case OLY_STEP_CALL: return launch_call(launching, w);
    default: return launch_gemm(launching, w->base, s, w->device);
    }
}

/* -- copies and sums between devices ---------------------------------------------------------------------------------------------- */

static bool is_mine(const oly_device_work *w, const oly_copy_work *c)
{
    return oly_cell_device(w->run->plan, c->to.base) == w->device;
}

static bool has_copies(const oly_device_work *w)
{
    const oly_copies *c = w->what;
    for (int k = 0; k < c->n; k++)
        if (is_mine(w, &c->copies[k]) && !oly_cuda_has_copy(&c->copies[k].task))
            return false;
    return true;
}

/* The copies of a convolution's result, with the convolution before them that has waited for them. */
static oly_status launch_convolution(const oly_cuda_launcher *l, const oly_device_work *w, const oly_step *convolution)
{
    const oly_copies *c = w->what;
    for (int k = 0; k < c->n; k++) {
        const oly_copy_work *copy = &c->copies[k];
        bool launched;
        if (!is_mine(w, copy))
            continue;
        OLY_TRY(oly_cuda_launch_features_last(l, w->run->plan, w->base, convolution, copy, &launched));
        if (launched)
            continue;
        OLY_TRY(oly_cuda_launch_local(l, w->base, convolution, w->device));
        OLY_TRY(oly_cuda_copy(l, &copy->task, at(w->base, &copy->to), at(w->base, &copy->from)));
    }
    return OLY_OK;
}

static oly_status launch_copies(const oly_cuda_launcher *l, const oly_device_work *w)
{
    const oly_copies *c = w->what;
    oly_cuda_copied some[16];
    int n = 0;
    if (c->prepared && c->prepared->convolution)
        return launch_convolution(l, w, c->prepared->convolution);
    for (int k = 0; k < c->n; k++) {
        if (is_mine(w, &c->copies[k]))
            some[n++] =
                (oly_cuda_copied){&c->copies[k].task, at(w->base, &c->copies[k].to), at(w->base, &c->copies[k].from)};
        if (n == 16 || (n > 0 && k == c->n - 1)) {
            OLY_TRY(oly_cuda_copies(l, n, some));
            n = 0;
        }
    }
    return OLY_OK;
}

static oly_status launch_group(const oly_cuda_launcher *l, const oly_sums *s, const oly_reduction_work *g,
                               void *const *base)
{
    enum { MOST_OUTS = 64 };
    const void *sources[OLY_REDUCTION_GROUP];
    void *outs[MOST_OUTS];
    for (int k = 0; k < g->n_sources; k++)
        sources[k] = (char *)base[g->source_base[k]] + g->source_offset[k];
    for (int k = 0; k < g->n_outs; k++)
        outs[k] = base[g->out_base[k]];
    return oly_cuda_combine(l, s->combiner, s->dtype, g->in_pairs, g->n_counts, g->counts, sources, g->n_outs, outs,
                            g->begin, g->end);
}

static oly_status launch_sums(const oly_cuda_launcher *l, const oly_device_work *w)
{
    const oly_sums *s = w->what;
    for (int k = 0; k < s->n; k++)
        if (oly_summing_device(w->run->plan, &s->groups[k]) == w->device)
            OLY_TRY(launch_group(l, s, &s->groups[k], w->base));
    return OLY_OK;
}

/* -- passes of stencil loops ------------------------------------------------------------------------------------------------------ */

static bool has_tiles(const oly_device_work *w)
{
    oly_stencil_share_now now;
    if (oly_field_sweep_of(w->what))
        return true;
    return oly_stencil_now(w->what, w->base, w->device, &now) && oly_cuda_has_stencil(now.stencil);
}

static oly_status launch_tiles(const oly_cuda_launcher *l, const oly_device_work *w)
{
    oly_stencil_share_now now;
    const oly_field_sweep *fields = oly_field_sweep_of(w->what);
    if (fields)
        return oly_cuda_launch_fields(l, fields, w->base, w->device);
    if (!oly_stencil_now(w->what, w->base, w->device, &now))
        return OLY_OK;
    for (int k = 0; k < now.n; k++)
        OLY_TRY(oly_cuda_stencil(l, now.stencil, &now.field[k], now.steps, now.from, now.to));
    return OLY_OK;
}

bool oly_cuda_has(const oly_plan *plan, const oly_step *s, int device)
{
    if (plan->devices[device] >= oly_cuda_device_count()) /* a CPU beside the GPUs */
        return true;
    if (s->kind == OLY_STEP_STENCIL)
        return s->stencil.tiling || oly_cuda_has_stencil(s->stencil.stencil);
    return has_step(s, device);
}

/* -- shares ------------------------------------------------------------------------------------------------------------------------ */

static bool has_kernels(const oly_device_work *w, oly_work_of of)
{
    const oly_sums *sums = w->what;
    switch (of) {
    case OLY_WORK_STEP: return has_step(w->what, w->device);
    case OLY_WORK_COPIES: return has_copies(w);
    case OLY_WORK_SUMS: return oly_cuda_has_combine(sums->combiner, sums->dtype);
    case OLY_WORK_TILES: return has_tiles(w);
    default: return false;
    }
}

/* Can the device's kernels use the memory of all devices that the share uses? Plans that put arrays have CPU devices, too. */
static bool reaches_all(const oly_device_work *w)
{
    const oly_plan *plan = w->run->plan;
    int n_gpus = oly_cuda_device_count(), own = plan->devices[w->device];
    for (int d = 0; d < plan->n_devices && own < n_gpus; d++)
        if (w->uses & oly_one_device(d) &&
            (plan->devices[d] >= n_gpus ||
             !oly_gpu_reaches(oly_cuda_device_at(own)->gpu, oly_cuda_device_at(plan->devices[d])->gpu)))
            return false;
    return own < n_gpus;
}

bool oly_cuda_launch_share(const oly_device_work *w, oly_work_of of, oly_status *st)
{
    oly_cuda_launching l;
    if (!has_kernels(w, of) || !reaches_all(w))
        return false;
    *st = oly_cuda_launching_begin(&l, w->run->plan->devices[w->device]);
    if (*st != OLY_OK)
        return true;
    *st = of == OLY_WORK_STEP     ? launch_step(&l, w)
          : of == OLY_WORK_COPIES ? launch_copies(&l.launcher, w)
          : of == OLY_WORK_TILES  ? launch_tiles(&l.launcher, w)
                                  : launch_sums(&l.launcher, w);
    oly_cuda_launching_end(&l);
    return true;
}
