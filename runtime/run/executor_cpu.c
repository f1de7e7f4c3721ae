/* The executor for CPUs: the work of a step is spread over devices and fixed chunks; a step too small to be worth a hand-over runs on
 * the thread that interprets. See executor.h. */
#include "run/executor.h"
#include "run/stencil_run.h"
#include "run/tile_memory.h"
#include "device/platform.h"
#include "device/workers.h"
#include "plan/reduce/reduction_tree.h"
#include <stdatomic.h>
#include <string.h>

enum { WORTH_SHARING = 40000 }; /* element-operations; about 10 us of work */

static void *at(const oly_run *r, const oly_place *p)
{
    return (char *)r->base[p->base] + p->offset;
}

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
    const oly_step *step;
    int phase; /* reductions: 0 parts, 1 finish; local kernels */
    bool under_way;
    pieces devices;
} spread;

static int chunks_on(const void *list, int device)
{
    const spread *s = list;
    switch (s->step->kind) {
    case OLY_STEP_TILE: return s->step->tile.device[device].chunks;
    case OLY_STEP_REDUCE:
        if (s->phase)
            return s->step->reduce.device[device].scratch_base >= 0;
        return s->step->reduce.device[device].chunks;
    case OLY_STEP_GEMM: return s->step->gemm.device[device].chunks;
    case OLY_STEP_LOCAL: return s->step->local.device[device].chunks[s->phase];
    default: return 0;
    }
}

static void run_tile(oly_run *r, const oly_step *step, const oly_tile_work *w, int chunk)
{
    oly_tile_operand loads[OLY_TILE_REGISTERS], stores[OLY_TILE_REGISTERS];
    const oly_tile_program *p = &step->tile.program;
    size_t strides = sizeof(int64_t) * (size_t)w->box.rank;
    for (int k = 0; k < p->n_loads; k++) {
        loads[k].base = at(r, &w->loads[k]);
        memcpy(loads[k].stride, w->loads[k].stride, strides);
    }
    for (int k = 0; k < p->n_stores; k++) {
        stores[k].base = at(r, &w->stores[k]);
        memcpy(stores[k].stride, w->stores[k].stride, strides);
    }
    oly_tile_run(p, &w->box, loads, stores, chunk, w->chunks);
}

static void run_local(oly_run *r, const oly_local_work *w, int phase, int chunk)
{
    const void *in[OLY_LOCAL_MOST];
    for (int k = 0; k < w->task.n_in; k++)
        in[k] = w->in[k].base < 0 ? NULL : at(r, &w->in[k]);
    void *scratch = w->scratch_base >= 0 ? r->base[w->scratch_base] : NULL;
    oly_local_run(&w->task, in, r->base[w->out_base], scratch, phase, chunk, w->chunks[phase]);
}

static void run_chunk(const spread *s, int device, int chunk)
{
    oly_run *r = s->run;
    if (s->step->kind == OLY_STEP_TILE) {
        run_tile(r, s->step, &s->step->tile.device[device], chunk);
    } else if (s->step->kind == OLY_STEP_REDUCE) {
        const oly_reduce_work *w = &s->step->reduce.device[device];
        void *out = (char *)r->base[w->out_base] + w->out_offset;
        void *scratch = w->scratch_base >= 0 ? r->base[w->scratch_base] : NULL;
        if (s->phase)
            oly_reduce_finish(&w->task, out, scratch);
        else
            oly_reduce_run(&w->task, at(r, &w->in), out, scratch, chunk, w->chunks);
    } else if (s->step->kind == OLY_STEP_LOCAL) {
        run_local(r, &s->step->local.device[device], s->phase, chunk);
    } else {
        const oly_gemm_work *w = &s->step->gemm.device[device];
        oly_gemm_run(&w->task, at(r, &w->a), at(r, &w->b), r->base[w->out_base], w->only ? w->only[chunk] : chunk,
                     w->only ? w->of : w->chunks);
    }
}

static void spread_body(void *context, int i)
{
    spread *s = context;
    int chunk, device = piece_of(&s->devices, i, &chunk);
    run_chunk(s, device, chunk);
    if (s->under_way && pthread_equal(pthread_self(), s->run->thread))
        oly_advance_exchanges(s->run);
}

static void run_spread(oly_run *r, const oly_step *step, int phase)
{
    spread s = {r, step, phase, oly_is_under_way(r), {chunks_on, &s, 0}};
    int total = 0;
    if (step->work < WORTH_SHARING || oly_workers_count() == 1) {
        for (int d = 0; d < r->plan->n_devices; d++)
            for (int c = 0, n = chunks_on(&s, d); c < n; c++) {
                run_chunk(&s, d, c);
                if (s.under_way && step->work >= WORTH_SHARING)
                    oly_advance_exchanges(r);
            }
        return;
    }
    for (int d = 0; d < r->plan->n_devices; d++)
        total += chunks_on(&s, d);
    oly_parallel(total, spread_body, &s);
}

void oly_compute(oly_run *r, const oly_step *step)
{
    int phases = step->kind == OLY_STEP_REDUCE ? 2 : step->kind == OLY_STEP_LOCAL ? step->local.phases : 1;
    for (int phase = 0; phase < phases; phase++)
        run_spread(r, step, phase);
}

/* -- copies ------------------------------------------------------------------------------------------------------------- */

typedef struct copying {
    oly_run *run;
    const oly_copy_work *copies;
    pieces pieces;
} copying;

static int chunks_of_copy(const void *copies, int k)
{
    return ((const oly_copy_work *)copies)[k].chunks;
}

static void run_copy(oly_run *r, const oly_copy_work *c, int chunk)
{
    oly_copy_run(&c->task, at(r, &c->to), at(r, &c->from), chunk, c->chunks);
}

static void copy_body(void *context, int i)
{
    copying *c = context;
    int chunk, k = piece_of(&c->pieces, i, &chunk);
    run_copy(c->run, &c->copies[k], chunk);
}

void oly_run_copies(oly_run *r, const oly_copy_work *copies, int n, double work)
{
    copying c = {r, copies, {chunks_of_copy, copies, 0}};
    int total = 0;
    for (int k = 0; k < n; k++)
        total += copies[k].chunks;
    if (work >= WORTH_SHARING && oly_workers_count() > 1) {
        oly_parallel(total, copy_body, &c);
        return;
    }
    for (int k = 0; k < n; k++)
        for (int chunk = 0; chunk < copies[k].chunks; chunk++)
            run_copy(r, &copies[k], chunk);
}

/* -- sums over devices ----------------------------------------------------------------------------------------------- */

enum { FOLD_PART = 1 << 14 }; /* elements */

typedef struct folding {
    oly_run *run;
    const oly_step *step;
    const oly_reduction_work *groups;
    pieces pieces;
} folding;

static int parts_of(const void *groups, int k)
{
    const oly_reduction_work *g = (const oly_reduction_work *)groups + k;
    return (int)((g->end - g->begin + FOLD_PART - 1) / FOLD_PART);
}

static void fold_part(const folding *f, const oly_reduction_work *g, int part)
{
    int64_t begin = g->begin + (int64_t)part * FOLD_PART;
    oly_reduction_group_run(g, f->step->fold.combiner, f->step->fold.dtype, f->run->base, begin,
                            begin + FOLD_PART < g->end ? begin + FOLD_PART : g->end);
}

static void fold_body(void *context, int i)
{
    folding *f = context;
    int part, g = piece_of(&f->pieces, i, &part);
    fold_part(f, &f->groups[g], part);
}

void oly_compute_sums(oly_run *r, const oly_step *step, int n_groups, const oly_reduction_work *groups, double work)
{
    folding f = {r, step, groups, {parts_of, groups, 0}};
    int total = 0;
    for (int g = 0; g < n_groups; g++)
        total += parts_of(groups, g);
    if (work >= WORTH_SHARING) {
        oly_parallel(total, fold_body, &f);
        return;
    }
    for (int i = 0; i < total; i++)
        fold_body(&f, i);
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
    return oly_platform_get()->read(value, memory_of(r, device), slot_at(r, device, slot), bytes);
}

oly_status oly_slot_write(const oly_run *r, int device, int slot, size_t bytes, const void *value)
{
    return oly_platform_get()->write(memory_of(r, device), slot_at(r, device, slot), value, bytes);
}

oly_status oly_slot_copy(const oly_run *r, int device, int to, int from, size_t bytes)
{
    return oly_platform_get()->copy(memory_of(r, device), slot_at(r, device, to), memory_of(r, device),
                                    slot_at(r, device, from), bytes);
}
