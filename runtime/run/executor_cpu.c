/* SPDX-License-Identifier: BSD-3-Clause */
/* The executor for CPUs: a step's computation is distributed over devices and fixed chunks; a step too small to be
 * worth a hand-over runs on the interpreting thread. Where devices compute late, each device's chunks are submitted to
 * it together. See executor.h. */
#include "run/executor.h"
#include "run/call_run.h"
#include "run/compiled_groups.h"
#include "run/device_order.h"
#include "run/fused_reduction.h"
#include "run/messages.h"
#include "run/narrow_product.h"
#include "run/prepare_cpu.h"
#include "run/held_once.h"
#include "run/repeated_work.h"
#include "run/row_blocks.h"
#include "run/stencil_run.h"
#include "run/tile_memory.h"
#include "run/timed_steps.h"
#include "device/platform.h"
#include "device/workers.h"
#include "gemm_bfloat.h"
#include <stdatomic.h>
#include <string.h>

enum { WORTH_SHOWING = 20000 }; /* element-operations; about 5 us */

static void *at(void *const *base, const oly_place *p)
{
    return (char *)base[p->base] + p->offset;
}

const oly_executor oly_executor_cpu = {.name = "cpu"};

size_t oly_executor_workspace(const oly_plan *plan)
{
    return oly_platform_get()->computes ? oly_tile_bytes(plan) : 0;
}

/* -- chunks of many pieces ---------------------------------------------------------------------------------------------
 * Chunk i of all, the pieces' chunks one after the other: which piece it is in. Chunks are handed out in order, so the search begins
 * at the piece of one of the last. */

typedef struct pieces {
    int (*chunks_of)(const void *list, int piece);
    const void *list;
    _Atomic(uint64_t) last; /* a piece, and its first chunk in the low half */
} pieces;

static int piece_of(pieces *p, int i, int *within)
{
    uint64_t last = atomic_load_explicit(&p->last, memory_order_relaxed);
    int piece = (int)(last >> 32), first = (int)(uint32_t)last;
    if (i < first)
        piece = first = 0;
    for (int n; i - first >= (n = p->chunks_of(p->list, piece)); piece++)
        first += n;
    uint64_t found = (uint64_t)piece << 32 | (uint32_t)first;
    if (found != last)
        atomic_store_explicit(&p->last, found, memory_order_relaxed);
    *within = i - first;
    return piece;
}

/* -- spreading work --------------------------------------------------------------------------------------------------- */

typedef struct spread {
    oly_run *run;
    void *const *base;
    const oly_step *step;
    int phase; /* reductions: 0 parts, 1 finish; local kernels */
    bool under_way;
    pieces devices;
    oly_row_turns turns; /* of a chain of rows */
} spread;

static int chunks_on(const void *list, int device)
{
    const spread *s = list;
    return s->step->prepared->chunks[s->phase][device];
}

static bool run_known(void *const *base, const oly_step *step, const oly_tile_work *w, oly_group_known *known)
{
    const oly_tile_program *p = &step->tile.program;
    char *first[2 * OLY_TILE_REGISTERS];
    for (int k = 0; k < p->n_loads; k++)
        first[k] = at(base, &w->loads[k]);
    for (int k = 0; k < p->n_stores; k++)
        first[p->n_loads + k] = at(base, &w->stores[k]);
    return oly_group_run_known(known, first);
}

static void run_tile(void *const *base, const oly_step *step, int device, int chunk, int n_chunks)
{
    oly_tile_operand loads[OLY_TILE_REGISTERS], stores[OLY_TILE_REGISTERS];
    const oly_tile_work *w = &step->tile.device[device];
    const oly_tile_program *p = &step->tile.program;
    oly_group_known *known = n_chunks == 1 && step->prepared->known ? &step->prepared->known[device] : NULL;
    size_t strides = sizeof(int64_t) * (size_t)w->box.rank;
    if (known && known->code && run_known(base, step, w, known))
        return;
    for (int k = 0; k < p->n_loads; k++) {
        loads[k].base = at(base, &w->loads[k]);
        memcpy(loads[k].stride, w->loads[k].stride, strides);
    }
    for (int k = 0; k < p->n_stores; k++) {
        stores[k].base = at(base, &w->stores[k]);
        memcpy(stores[k].stride, w->stores[k].stride, strides);
    }
    if (known)
        oly_group_run_noting(p, &w->box, loads, stores, known);
    else if (step->tile.compiles)
        oly_group_run(p, &w->box, loads, stores, chunk, n_chunks);
    else
        oly_tile_run(p, &w->box, loads, stores, chunk, n_chunks);
}

static void run_local(void *const *base, const oly_local_work *w, int phase, int chunk, int n_chunks)
{
    const void *in[OLY_LOCAL_MOST];
    for (int k = 0; k < w->task.n_in; k++)
        in[k] = w->in[k].base < 0 ? NULL : at(base, &w->in[k]);
    void *scratch = w->scratch_base >= 0 ? base[w->scratch_base] : NULL;
    oly_local_run(&w->task, in, base[w->out_base], scratch, phase, chunk, n_chunks);
}

static void run_gemm(void *const *base, const oly_step *step, int device, int chunk, int n_chunks)
{
    const oly_gemm_work *w = &step->gemm.device[device];
    const oly_prepared *p = step->prepared;
    if (p->bytes) {
        oly_run_byte_product(base, step, device, (oly_byte_way)p->bytes, chunk, n_chunks);
        return;
    }
    if (p->bfloats && p->reads_narrow) {
        oly_run_converted_bfloats(base, step, device, chunk, n_chunks);
        return;
    }
    (p->bfloats ? oly_gemm_bfloat_run : oly_gemm_run)(&w->task, at(base, &w->a), at(base, &w->b), base[w->out_base],
                                                      p->only ? p->only[device][chunk] : chunk,
                                                      p->only ? p->of[device] : n_chunks);
}

static void run_chunk(spread *s, int device, int chunk)
{
    void *const *base = s->base;
    int n_chunks = chunks_on(s, device);
    if (s->step->prepared->blocks) {
        oly_run_row_block(base, s->run->plan, s->step, device, chunk, &s->turns);
    } else if (s->step->kind == OLY_STEP_TILE) {
        run_tile(base, s->step, device, chunk, n_chunks);
    } else if (s->step->kind == OLY_STEP_REDUCE) {
        const oly_reduce_work *w = &s->step->reduce.device[device];
        void *out = (char *)base[w->out_base] + w->out_offset;
        void *scratch = w->scratch_base >= 0 ? base[w->scratch_base] : NULL;
        if (!s->phase && s->step->prepared->fused)
            oly_run_fused(base, s->step, device, chunk, n_chunks);
        else if (s->phase)
            oly_reduce_finish(&w->task, out, scratch);
        else
            oly_reduce_run(&w->task, at(base, &w->in), out, scratch, chunk, n_chunks);
    } else if (s->step->kind == OLY_STEP_LOCAL) {
        run_local(base, &s->step->local.device[device], s->phase, chunk, n_chunks);
    } else if (s->step->kind == OLY_STEP_CALL) {
        oly_call_on_device(base, s->run->plan, s->step, device, NULL);
    } else {
        run_gemm(base, s->step, device, chunk, n_chunks);
    }
}

static void spread_body(void *context, int i)
{
    spread *s = context;
    int chunk, device = piece_of(&s->devices, i, &chunk);
    int64_t begin = s->run->label ? oly_ticks() : 0;
    run_chunk(s, device, chunk);
    if (begin)
        oly_show_part(s->run, device, begin);
    if (s->under_way && pthread_equal(pthread_self(), s->run->thread))
        oly_advance_exchanges(s->run);
}

/* On this thread, one device after the other. */
static void run_here(spread *s)
{
    oly_run *r = s->run;
    const oly_step *step = s->step;
    bool shows = r->label && oly_operations_of(step) >= WORTH_SHOWING;
    int64_t first = r->label ? oly_ticks() : 0;
    for (int d = 0; d < r->plan->n_devices; d++) {
        int64_t begin = shows ? oly_ticks() : 0;
        int n = chunks_on(s, d);
        for (int c = 0; c < n; c++) {
            run_chunk(s, d, c);
            if (s->under_way && oly_operations_of(step) >= OLY_WORTH_SHARING)
                oly_advance_exchanges(r);
        }
        if (shows && n > 0)
            oly_show_part(r, d, begin);
    }
    if (first && !shows)
        oly_show_together(r, first);
}

static void spread_chunks(spread *s, double work)
{
    if (work < OLY_WORTH_SHARING || oly_workers_count() == 1)
        run_here(s);
    else
        oly_parallel(s->step->prepared->total[s->phase], spread_body, s);
}

static void spread_rows(spread *s)
{
    double work = 0;
    for (int k = 0; k < s->step->chain; k++)
        work += s->step[-k].work;
    oly_row_turns_begin(s->base, s->run->plan, s->step->prepared->blocks, &s->turns);
    int times = s->turns.in_order ? s->step->chain : 1;
    for (s->turns.only = 0; s->turns.only < times; s->turns.only++)
        spread_chunks(s, work);
}

/* Of the groups that a reduction computes itself. */
static double fused_work(const oly_step *step)
{
    double work = 0;
    for (int k = 0; step->prepared->fused && k < oly_operand_steps(step); k++)
        work += oly_operand_step(step, k)->work;
    return work;
}

static void run_spread(oly_run *r, const oly_step *step, int phase)
{
    spread s = {r, r->base, step, phase, oly_is_under_way(r), {chunks_on, &s, 0}, {0}};
    if (step->prepared->blocks)
        spread_rows(&s);
    else
        spread_chunks(&s, oly_operations_of(step) + fused_work(step));
}

static void compute_device(const oly_device_work *w)
{
    spread s = {.run = w->run, .base = w->base, .step = w->what};
    for (; s.phase < s.step->prepared->phases; s.phase++)
        for (int c = 0, n = chunks_on(&s, w->device); c < n; c++)
            run_chunk(&s, w->device, c);
}

static void cells_of_share(const oly_device_work *w, oly_cells *to)
{
    oly_cells_of_step(to, w->what, w->device);
}

/* The memories that device d uses: operands of which each process has one copy are read where that is. */
static oly_device_set uses_of(const oly_run *r, const oly_step *step, int d)
{
    oly_device_set uses = oly_one_device(d);
    const oly_place *in = NULL;
    int n = 0;
    switch (step->kind) {
    case OLY_STEP_TILE: in = step->tile.device[d].loads, n = step->tile.program.n_loads; break;
    case OLY_STEP_REDUCE: in = &step->reduce.device[d].in, n = 1; break;
    case OLY_STEP_LOCAL: in = step->local.device[d].in, n = step->local.device[d].task.n_in; break;
    case OLY_STEP_CALL: in = step->call.device[d].in_place, n = step->call.n_in; break;
    default: uses |= oly_device_with(r, step->gemm.device[d].a.base) | oly_device_with(r, step->gemm.device[d].b.base);
    }
    for (int k = 0; k < n; k++)
        uses |= oly_device_with(r, in[k].base);
    return uses;
}

static oly_status submit_step(oly_run *r, const oly_step *step)
{
    static const oly_work_kind kind = {OLY_WORK_STEP, compute_device, cells_of_share};
    oly_device_set uses[OLY_MOST_LATE_DEVICES] = {0};
    spread s = {.step = step};
    for (; s.phase < step->prepared->phases; s.phase++)
        for (int d = 0; d < r->plan->n_devices; d++)
            if (!uses[d] && chunks_on(&s, d) > 0)
                uses[d] = uses_of(r, step, d);
    return oly_submit(r, uses, &kind, step, sizeof *step);
}

/* For all devices, which hold the results together. Apart from oly_compute, whose small steps it would slow down. */
static __attribute__((noinline)) oly_status compute_once(oly_run *r, const oly_step *step)
{
    oly_step once = *step;
    once.prepared = step->prepared->once;
    return oly_compute(r, &once);
}

/* Is it a group of one device alone that has been run before, as most steps of small loops are? Then it is run: about half of the time of
 * such a step is that of finding out how steps in general are run. */
static bool run_again(oly_run *r, const oly_step *step)
{
    const oly_prepared *p = step->prepared;
    bool lone = p->known && p->phases == 1 && p->total[0] == 1 && r->plan->n_devices == 1 && !r->label;
    if (!lone || !p->known->code || p->blocks || p->once || p->repeats)
        return false;
    return run_known(r->base, step, step->tile.device, p->known);
}

oly_status oly_compute(oly_run *r, const oly_step *step)
{
    if (oly_platform_is_late())
        return submit_step(r, step);
    if (run_again(r, step))
        return OLY_OK;
    if (step->prepared->once && oly_is_held_once(r->plan, r->base, step->prepared->once_slot))
        return compute_once(r, step);
    for (int phase = 0; phase < step->prepared->phases; phase++)
        run_spread(r, step, phase);
    const oly_repeats *repeats = step->prepared->repeats;
    return repeats ? oly_run_copies(r, &repeats->prepared, repeats->copies, repeats->n_copies, repeats->work) : OLY_OK;
}

oly_status oly_compute_phase(oly_run *r, const oly_step *product, int k)
{
    oly_step part = *product;
    part.gemm.device = product->gemm.phases[k].device;
    part.work = product->gemm.phases[k].work;
    part.prepared = &product->prepared->parts[k];
    return oly_compute(r, &part);
}

/* -- copies ------------------------------------------------------------------------------------------------------------- */

typedef struct copying {
    oly_copies list; /* first member */
    const oly_run *run;
    void *const *base;
    pieces pieces;
} copying;

static int chunks_of_copy(const void *chunks, int k)
{
    return ((const int *)chunks)[k];
}

static void run_copy(void *const *base, const oly_copy_work *c, int chunk, int n_chunks)
{
    oly_copy_run(&c->task, at(base, &c->to), at(base, &c->from), chunk, n_chunks);
}

static void run_all_chunks(void *const *base, const oly_copy_work *c, int n_chunks)
{
    for (int chunk = 0; chunk < n_chunks; chunk++)
        run_copy(base, c, chunk, n_chunks);
}

static void copy_body(void *context, int i)
{
    copying *c = context;
    int chunk, k = piece_of(&c->pieces, i, &chunk);
    int64_t begin = c->run->label ? oly_ticks() : 0;
    run_copy(c->base, &c->list.copies[k], chunk, c->list.chunks[k]);
    if (begin)
        oly_show_part(c->run, oly_cell_device(c->run->plan, c->list.copies[k].to.base), begin);
}

/* The receiving device copies. */
static void copy_to_device(const oly_device_work *w)
{
    const oly_copies *c = w->what;
    for (int k = 0; k < c->n; k++)
        if (oly_cell_device(w->run->plan, c->copies[k].to.base) == w->device)
            run_all_chunks(w->base, &c->copies[k], c->chunks[k]);
}

static void cells_of_copies(const oly_device_work *w, oly_cells *to)
{
    const oly_copies *c = w->what;
    for (int k = 0; k < c->n; k++)
        if (oly_cell_device(w->run->plan, c->copies[k].to.base) == w->device)
            oly_cells_of_copy(to, &c->copies[k]);
}

static oly_status submit_copies(oly_run *r, const oly_copies *c)
{
    static const oly_work_kind kind = {OLY_WORK_COPIES, copy_to_device, cells_of_copies};
    oly_device_set uses[OLY_MOST_LATE_DEVICES] = {0};
    for (int k = 0; k < c->n; k++) {
        int to = oly_cell_device(r->plan, c->copies[k].to.base);
        uses[to] |= oly_one_device(to) | oly_device_with(r, c->copies[k].from.base);
    }
    return oly_submit(r, uses, &kind, c, sizeof *c);
}

void oly_compute_share(oly_run *r, void *const *base, const oly_step *step, int device)
{
    if (step->kind != OLY_STEP_MOVE) {
        compute_device(&(oly_device_work){.run = r, .device = device, .base = base, .what = step});
        return;
    }
    for (int k = 0; k < step->move.n_copies; k++)
        if (oly_cell_device(r->plan, step->move.copies[k].to.base) == device)
            run_all_chunks(base, &step->move.copies[k], step->prepared->copies[k]);
}

oly_status oly_run_copies(oly_run *r, const oly_prepared *prepared, const oly_copy_work *copies, int n, double work)
{
    copying c = {{copies, prepared->copies, n, prepared}, r, r->base, {chunks_of_copy, prepared->copies, 0}};
    if (oly_platform_is_late())
        return prepared->copied_later ? OLY_OK : submit_copies(r, &c.list);
    if (work >= OLY_WORTH_SHARING && oly_workers_count() > 1) {
        oly_parallel(prepared->total_copied, copy_body, &c);
        return OLY_OK;
    }
    int64_t begin = r->label && n > 0 ? oly_ticks() : 0;
    for (int k = 0; k < n; k++)
        run_all_chunks(r->base, &copies[k], prepared->copies[k]);
    if (begin)
        oly_show_together(r, begin);
    return OLY_OK;
}

/* -- reductions over devices --------------------------------------------------------------------------------------- */

enum { REDUCE_PART = 1 << 14 }; /* elements */

typedef struct reducing {
    oly_sums sums;
    const oly_run *run;
    void *const *base;
    pieces pieces;
    bool shows; /* each device's part in the timeline */
} reducing;

static int parts_of(const void *groups, int k)
{
    const oly_reduction_work *g = (const oly_reduction_work *)groups + k;
    return (int)((g->end - g->begin + REDUCE_PART - 1) / REDUCE_PART);
}

/* Elements [begin, end) of a group's result, for all its devices. */
static void sum_group(const oly_reduction_work *g, oly_combiner combiner, oly_dtype dtype, void *const *base,
                      int64_t begin, int64_t end)
{
    const void *sources[OLY_REDUCTION_GROUP];
    size_t element = oly_dtype_size(dtype);
    for (int k = 0; k < g->n_sources; k++)
        sources[k] = (char *)base[g->source_base[k]] + g->source_offset[k];
    void *out = base[g->out_base[0]];
    oly_combine(combiner, dtype, g->in_pairs, g->n_counts, g->counts, sources, out, begin, end);
    for (int k = 1; k < g->n_outs && begin < end && base[g->out_base[k]] != out; k++)
        memcpy((char *)base[g->out_base[k]] + (size_t)begin * element, (char *)out + (size_t)begin * element,
               (size_t)(end - begin) * element);
}

static void reduce_body(void *context, int i)
{
    reducing *f = context;
    int part, k = piece_of(&f->pieces, i, &part);
    const oly_reduction_work *g = &f->sums.groups[k];
    int64_t begin = g->begin + (int64_t)part * REDUCE_PART;
    int64_t began = f->shows ? oly_ticks() : 0;
    sum_group(g, f->sums.combiner, f->sums.dtype, f->base, begin,
              begin + REDUCE_PART < g->end ? begin + REDUCE_PART : g->end);
    if (began)
        oly_show_part(f->run, oly_summing_device(f->run->plan, g), began);
}

static void sum_on_device(const oly_device_work *w)
{
    const oly_sums *f = w->what;
    for (int k = 0; k < f->n; k++) {
        const oly_reduction_work *g = &f->groups[k];
        if (oly_summing_device(w->run->plan, g) == w->device)
            sum_group(g, f->combiner, f->dtype, w->base, g->begin, g->end);
    }
}

static void cells_of_sums(const oly_device_work *w, oly_cells *to)
{
    const oly_sums *f = w->what;
    for (int k = 0; k < f->n; k++)
        if (oly_summing_device(w->run->plan, &f->groups[k]) == w->device)
            oly_cells_of_reduction(to, &f->groups[k]);
}

static oly_status submit_sums(oly_run *r, const oly_sums *f)
{
    static const oly_work_kind kind = {OLY_WORK_SUMS, sum_on_device, cells_of_sums};
    oly_device_set uses[OLY_MOST_LATE_DEVICES] = {0};
    for (int k = 0; k < f->n; k++) {
        const oly_reduction_work *g = &f->groups[k];
        oly_device_set *by = &uses[oly_summing_device(r->plan, g)];
        for (int j = 0; j < g->n_sources; j++)
            *by |= oly_device_with(r, g->source_base[j]);
        for (int j = 0; j < g->n_outs; j++)
            *by |= oly_device_with(r, g->out_base[j]);
    }
    return oly_submit(r, uses, &kind, f, sizeof *f);
}

oly_status oly_compute_sums(oly_run *r, const oly_step *step, int n_groups, const oly_reduction_work *groups,
                            double work)
{
    reducing f = {{groups, n_groups, step->reduction.combiner, step->reduction.dtype},
                  r,
                  r->base,
                  {parts_of, groups, 0},
                  r->label && work >= WORTH_SHOWING};
    int total = 0;
    if (oly_platform_is_late())
        return submit_sums(r, &f.sums);
    for (int g = 0; g < n_groups; g++)
        total += parts_of(groups, g);
    if (work >= OLY_WORTH_SHARING) {
        oly_parallel(total, reduce_body, &f);
        return OLY_OK;
    }
    int64_t begin = r->label && !f.shows && total > 0 ? oly_ticks() : 0;
    for (int i = 0; i < total; i++)
        reduce_body(&f, i);
    if (begin)
        oly_show_together(r, begin);
    return OLY_OK;
}

/* -- levels inside exchanges ----------------------------------------------------------------------------------------- */

static void compute_level(const oly_staged_reduction *s, const oly_reduction_level *level, void *const *base)
{
    for (int k = 0; k < level->n_copies; k++)
        run_all_chunks(base, &level->copies[k], oly_copy_chunks(&level->copies[k].task));
    for (int g = 0; g < level->n_groups; g++)
        sum_group(&level->groups[g], s->combiner, s->dtype, base, level->groups[g].begin, level->groups[g].end);
}

/* The devices were drained before the exchange began. */
static oly_status compute_level_apart(const oly_staged_reduction *s, const oly_reduction_level *level,
                                      void *const *base)
{
    oly_detour d = {.cells = {.plan = s->plan, .base = base}};
    void **host;
    for (int k = 0; k < level->n_copies; k++)
        oly_cells_of_copy(&d.cells, &level->copies[k]);
    for (int g = 0; g < level->n_groups; g++)
        oly_cells_of_reduction(&d.cells, &level->groups[g]);
    OLY_TRY(oly_detour_begin(&d, &host));
    compute_level(s, level, host);
    return oly_detour_end(&d);
}

/* On one thread: a level is computed inside the exchange that has received it. */
oly_status oly_compute_level(const void *staged, int stage, void *const *base)
{
    const oly_staged_reduction *s = staged;
    const oly_reduction_level *level = &s->levels->level[stage / s->stages];
    if (stage % s->stages) /* results have arrived, which need nothing more */
        return OLY_OK;
    if (oly_platform_is_apart())
        return compute_level_apart(s, level, base);
    compute_level(s, level, base);
    return OLY_OK;
}

/* -- memory --------------------------------------------------------------------------------------------------------------- */

static void for_buffers(const oly_run *r, void (*open_or_close)(void *data))
{
    for (int k = 0; k < r->n_used; k++)
        open_or_close(r->used[k]->data);
}

void oly_executor_open(const oly_run *r)
{
    for_buffers(r, oly_platform_get()->open);
}

void oly_executor_close(const oly_run *r)
{
    for_buffers(r, oly_platform_get()->close);
}

static int memory_of(const oly_run *r, int device)
{
    return oly_platform_memory(r->plan->devices[device]);
}

static void *slot_at(const oly_run *r, int device, int slot)
{
    return r->base[oly_cell(r->plan, device, slot)];
}

oly_status oly_slot_read(const oly_run *r, int device, int slot, size_t bytes, void *value)
{
    OLY_TRY(oly_drain_device(r, device));
    return oly_platform_get()->read(value, memory_of(r, device), slot_at(r, device, slot), bytes);
}

oly_status oly_slot_write(const oly_run *r, int device, int slot, size_t bytes, const void *value)
{
    if (oly_executor_get()->write)
        return oly_executor_get()->write(r->plan->devices[device], slot_at(r, device, slot), value, bytes);
    OLY_TRY(oly_drain_device(r, device));
    return oly_platform_get()->write(memory_of(r, device), slot_at(r, device, slot), value, bytes);
}

oly_status oly_slot_copy(const oly_run *r, int device, int to, int from, size_t bytes)
{
    if (oly_executor_get()->copy)
        return oly_executor_get()->copy(r->plan->devices[device], slot_at(r, device, to), slot_at(r, device, from),
                                        bytes);
    OLY_TRY(oly_drain_device(r, device));
    return oly_platform_get()->copy(memory_of(r, device), slot_at(r, device, to), memory_of(r, device),
                                    slot_at(r, device, from), bytes);
}
