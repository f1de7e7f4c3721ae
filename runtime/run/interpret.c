/* The interpreter's loop over steps. Work of one step is spread over devices and fixed chunks; a step too small to be worth a
 * hand-over runs on the thread that interprets. */
#include "run/interpret.h"
#include "run/execute.h"
#include "run/stencil_run.h"
#include "core/hash.h"
#include "device/platform.h"
#include "device/workers.h"
#include "plan/partition/sort_split.h"
#include "plan/reduce/reduction_tree.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { WORTH_SHARING = 40000 }; /* element-operations; about 10 us of work */

static void *at(const oly_run *r, const oly_place *p)
{
    return (char *)r->base[p->base] + p->offset;
}

/* Around what uses the memory of the run's buffers, kernels and messages, where the platform asks for it. */
static void for_buffers(const oly_run *r, void (*open_or_close)(void *data))
{
    for (int k = 0; open_or_close && k < r->n_used; k++)
        open_or_close(r->used[k]->data);
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

static bool is_under_way(const oly_run *r)
{
    return r->plan->distributed && oly_exchange_any_left();
}

/* Exchanges under way need MPI to be called now and then; only the thread that interprets may. */
void oly_advance_exchanges(oly_run *r)
{
    for_buffers(r, oly_platform_get()->open);
    if (r->advance == OLY_OK)
        r->advance = oly_exchange_advance();
    for_buffers(r, oly_platform_get()->close);
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
    spread s = {r, step, phase, is_under_way(r), {chunks_on, &s, 0}};
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

/* -- between processes ---------------------------------------------------------------------------------------------------- */

const oly_ticket *oly_next_ticket(oly_run *r)
{
    if (r->ticket.call[0] == 0)
        oly_site_text(&r->site, r->ticket.call, sizeof r->ticket.call);
    r->ticket.sequence++;
    return &r->ticket;
}

static oly_status start(oly_run *r, oly_exchange *x, const oly_ticket *ticket, bool leave)
{
    OLY_TRY(oly_exchange_start(x, ticket, r->base));
    if (leave)
        oly_exchange_leave(x, ticket, r->base);
    return OLY_OK;
}

static oly_status run_move(oly_run *r, const oly_step *step)
{
    const oly_ticket *ticket = r->plan->distributed && !step->alone ? oly_next_ticket(r) : &r->ticket;
    if (step->exchange)
        OLY_TRY(start(r, step->exchange, ticket, step->starts));
    oly_run_copies(r, step->move.copies, step->move.n_copies, step->work);
    return step->exchange && !step->starts ? oly_exchange_finish(step->exchange, ticket, r->base) : OLY_OK;
}

/* Blocks that go to one process after the other; what is made meanwhile is on its way. */
static oly_status run_product(oly_run *r, const oly_step *step)
{
    oly_run_copies(r, step->gemm.copies, step->gemm.n_copies, step->work);
    if (!step->exchange) {
        run_spread(r, step, 0);
        return OLY_OK;
    }
    const oly_ticket *ticket = oly_next_ticket(r);
    OLY_TRY(oly_exchange_begin(step->exchange, ticket, r->base));
    oly_exchange_leave(step->exchange, ticket, r->base);
    for (int k = 0; k < step->gemm.n_phases; k++) {
        oly_step part = *step;
        part.gemm.device = step->gemm.phases[k].device;
        part.work = step->gemm.phases[k].work;
        run_spread(r, &part, 0);
        OLY_TRY(oly_exchange_send(step->exchange, step->gemm.phases[k].peer));
    }
    return OLY_OK;
}

/* -- reductions over devices ----------------------------------------------------------------------------------------------- */

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

static void run_groups(oly_run *r, const oly_step *step, int n_groups, const oly_reduction_work *groups, double work)
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

static oly_status run_exchange(oly_run *r, oly_exchange *x, const oly_ticket *ticket)
{
    if (!x)
        return OLY_OK;
    OLY_TRY(oly_exchange_start(x, ticket, r->base));
    return oly_exchange_finish(x, ticket, r->base);
}

static const oly_ticket *ticket_of(oly_run *r)
{
    return r->plan->distributed ? oly_next_ticket(r) : &r->ticket;
}

/* The exchange of the first may have been the step's own. */
static oly_status run_levels(oly_run *r, const oly_step *step)
{
    for (int k = 0; k < step->fold.n_levels_run; k++) {
        oly_reduction_level *level;
        OLY_TRY(oly_reduction_level_of(r->plan, step->fold.levels, k, &level));
        OLY_TRY(run_exchange(r, level->exchange, ticket_of(r)));
        oly_run_copies(r, level->copies, level->n_copies, level->copied);
        run_groups(r, step, level->n_groups, level->groups, level->work);
        if (step->fold.sliced)
            OLY_TRY(run_exchange(r, level->second, ticket_of(r)));
    }
    return OLY_OK;
}

static oly_status run_fold(oly_run *r, const oly_step *step)
{
    const oly_ticket *ticket = step->begun ? &r->ticket : ticket_of(r);
    OLY_TRY(run_exchange(r, step->exchange, ticket));
    run_groups(r, step, step->fold.n_groups, step->fold.groups, step->work);
    if (step->fold.levels)
        return run_levels(r, step);
    if (step->fold.sliced)
        ticket = ticket_of(r); /* also where there is nothing to hand round: the count stays the same everywhere */
    if (!step->second)
        return OLY_OK;
    OLY_TRY(start(r, step->second, ticket, step->starts));
    return step->starts ? OLY_OK : oly_exchange_finish(step->second, ticket, r->base);
}

/* -- loops ------------------------------------------------------------------------------------------------------------------ */

static void **cell(oly_run *r, int device, int slot)
{
    return &r->base[oly_cell(r->plan, device, slot)];
}

static int memory_of(const oly_run *r, int device)
{
    return oly_platform_memory(r->plan->devices[device]);
}

/* The value of a slot on the first device that has it; all devices hold the same. *here: is one of the devices here? */
static oly_status read_common(oly_run *r, int slot, size_t bytes, void *value, bool *here)
{
    for (int d = 0; d < r->plan->n_devices; d++)
        if (r->plan->slots[slot].device_bytes[d] > 0) {
            *here = true;
            return oly_platform_get()->read(value, memory_of(r, d), *cell(r, d, slot), bytes);
        }
    *here = false;
    return OLY_OK;
}

/* Does iteration i follow? */
static oly_status goes_on(oly_run *r, const oly_step *s, int64_t i, bool *more)
{
    bool predicate = false, here = true;
    oly_status st = OLY_OK;
    if (s->loop.predicate < 0)
        predicate = i < s->loop.count;
    else
        st = read_common(r, s->loop.in_slot[s->loop.predicate], sizeof predicate, &predicate, &here);
    *more = st == OLY_OK && here && predicate;
    return st;
}

static oly_status set_counter(oly_run *r, const oly_step *s, int64_t i)
{
    int32_t counter = (int32_t)(s->loop.lower + i);
    for (int d = 0; d < r->plan->n_devices && s->loop.counter_slot >= 0; d++) {
        void *at = *cell(r, d, s->loop.counter_slot);
        if (at) /* none on a process that has no device of the mesh */
            OLY_TRY(oly_platform_get()->write(memory_of(r, d), at, &counter, sizeof counter));
    }
    return OLY_OK;
}

/* What an iteration wrote is read by the next, which writes over what that one has read. */
static void turn_buffers(oly_run *r, const oly_step *s, bool read)
{
    for (int d = 0; d < r->plan->n_devices; d++)
        for (int k = 0; k < s->loop.n_carry; k++) {
            void **out = cell(r, d, s->loop.out_slot[k]), **spare = cell(r, d, s->loop.spare_slot[k]), *written = *out;
            if (s->loop.out_slot[k] == s->loop.in_slot[k])
                continue; /* it is written over where it is */
            if (read)
                *cell(r, d, s->loop.in_slot[k]) = written;
            *out = *spare;
            *spare = written;
        }
}

static oly_status copy_results(oly_run *r, const oly_step *s)
{
    for (int d = 0; d < r->plan->n_devices; d++)
        for (int k = 0; k < s->loop.n_carry; k++) {
            size_t bytes = r->plan->slots[s->loop.result_slot[k]].device_bytes[d];
            if (bytes)
                OLY_TRY(oly_platform_get()->copy(memory_of(r, d), *cell(r, d, s->loop.result_slot[k]), memory_of(r, d),
                                                 *cell(r, d, s->loop.in_slot[k]), bytes));
        }
    return OLY_OK;
}

static oly_status run_loop(oly_run *r, const oly_step *s)
{
    int n = r->plan->n_devices;
    oly_status st = OLY_OK;
    int64_t i = 0;
    bool more;
    for (int d = 0; d < n; d++)
        for (int k = 0; k < s->loop.n_carry; k++)
            *cell(r, d, s->loop.in_slot[k]) = *cell(r, d, s->loop.init_slot[k]);
    for (; st == OLY_OK && (st = goes_on(r, s, i, &more)) == OLY_OK && more; i++) {
        if ((st = set_counter(r, s, i)) == OLY_OK)
            st = oly_run_block(r, s->loop.body);
        turn_buffers(r, s, true);
        if (s->loop.predicate >= 0 && oly_run_failure() != OLY_OK)
            return OLY_OK; /* the job is ending: a condition need not come true any more */
    }
    if (s->loop.result_slot && st == OLY_OK)
        st = copy_results(r, s);
    if (i % 2) /* as it was, for the next time round an outer loop */
        turn_buffers(r, s, false);
    return st;
}

static oly_status run_branch(oly_run *r, const oly_step *s)
{
    int32_t index;
    bool here;
    OLY_TRY(read_common(r, s->branch.index_slot, sizeof index, &index, &here));
    if (!here)
        return OLY_OK;
    int last = s->branch.n - 1, k = index < 0 ? 0 : index > last ? last : index;
    return oly_run_block(r, s->branch.blocks[k]);
}

void oly_settle_loops(oly_run *r)
{
    const oly_plan *plan = r->plan;
    for (int j = 0; j < plan->main->n_steps; j++) {
        const oly_step *s = &plan->main->steps[j];
        for (int k = 0; s->kind == OLY_STEP_LOOP && !s->loop.result_slot && k < s->loop.n_carry; k++)
            for (int d = 0; d < plan->n_devices; d++) {
                bool stays = s->loop.count == 0 || s->loop.out_slot[k] == s->loop.in_slot[k];
                int last = stays               ? s->loop.init_slot[k]
                           : s->loop.count % 2 ? s->loop.out_slot[k]
                                               : s->loop.spare_slot[k];
                r->owner[oly_cell(plan, d, s->loop.in_slot[k])] = r->owner[oly_cell(plan, d, last)];
            }
    }
}

/* -- steps -------------------------------------------------------------------------------------------------------------------- */

static oly_status use_memory(oly_run *r, const oly_step *s)
{
    switch (s->kind) {
    case OLY_STEP_TILE: run_spread(r, s, 0); return OLY_OK;
    case OLY_STEP_GEMM: return run_product(r, s);
    case OLY_STEP_REDUCE:
        run_spread(r, s, 0);
        run_spread(r, s, 1);
        return OLY_OK;
    case OLY_STEP_LOCAL:
        for (int phase = 0; phase < s->local.phases; phase++)
            run_spread(r, s, phase);
        return OLY_OK;
    case OLY_STEP_MOVE: return run_move(r, s);
    case OLY_STEP_REDUCTION: return run_fold(r, s);
    case OLY_STEP_STENCIL: return s->stencil.march ? oly_run_march(r, s) : oly_run_stencil(r, s);
    case OLY_STEP_WAIT: return s->from < 0 ? oly_exchange_join(s->awaited) : oly_exchange_await(s->awaited, s->from);
    default: return OLY_OK;
    }
}

/* Control flow reads values as the host does, through the platform. */
static oly_status run_step(oly_run *r, const oly_step *s)
{
    if (s->kind == OLY_STEP_LOOP)
        return run_loop(r, s);
    if (s->kind == OLY_STEP_BRANCH)
        return run_branch(r, s);
    if (!oly_platform_get()->open)
        return use_memory(r, s);
    for_buffers(r, oly_platform_get()->open);
    oly_status st = use_memory(r, s);
    for_buffers(r, oly_platform_get()->close);
    return st;
}

oly_status oly_run_block(oly_run *r, const oly_block *b)
{
    for (int k = 0; k < b->n_steps; k++) {
        OLY_TRY(run_step(r, &b->steps[k]));
        if (is_under_way(r)) {
            oly_advance_exchanges(r);
            OLY_TRY(r->advance);
        }
    }
    return OLY_OK;
}

void oly_run_fail_in(oly_status status, oly_site site)
{
    oly_site here = oly_current_site();
    oly_restore_site(site);
    if (status == OLY_MEMORY)
        oly_run_give_up(status);
    oly_run_fail(status);
    oly_raise(status);
    oly_restore_site(here);
}

void oly_interpret(oly_job *job)
{
    oly_run *r = (oly_run *)job;
    if (oly_run_failure() != OLY_OK)
        return;
    r->thread = pthread_self();
    r->advance = OLY_OK;
    oly_status st = OLY_OK;
    if (r->together.set)
        st = oly_together_count(&r->together, r->plan, oly_run_copy_of, r, &r->ticket);
    if (st == OLY_OK)
        st = oly_run_block(r, r->plan->main);
    if (st != OLY_OK)
        oly_run_fail_in(st, r->site);
}
