/* SPDX-License-Identifier: BSD-3-Clause */
/* Prepares plans for the CPU executor: the numbers of chunks of every step, in the plan's arena. See executor.h and prepare_cpu.h. */
#include "run/prepare_cpu.h"
#include "device/workers.h"
#include "gemm_bfloat.h"
#include "run/compiled_groups.h"
#include "run/executor.h"
#include "run/fused_reduction.h"
#include "run/held_once.h"
#include "run/loop_by_device.h"
#include "run/loop_once.h"
#include "run/narrow_product.h"
#include "run/repeated_work.h"
#include "run/row_blocks.h"

/* -- chunks of a device's share, by phase -------------------------------------------------------------------------- */

static int tile_chunks(const oly_step *s, int device)
{
    const oly_tile_work *w = &s->tile.device[device];
    return w->has_work ? oly_tile_chunks(&s->tile.program, &w->box) : 0;
}

/* A second phase combines the partial results that the first left in scratch memory. */
static int reduce_chunks(const oly_step *s, int device, int phase)
{
    const oly_reduce_work *w = &s->reduce.device[device];
    if (phase == 1)
        return w->scratch_base >= 0;
    return w->has_work ? oly_reduce_chunks(&w->task) : 0;
}

/* Chunks that all read the same are not more than the threads that a device has for itself. */
static int local_chunks(const oly_step *s, int device, int phase, int computing)
{
    const oly_local_work *w = &s->local.device[device];
    int n = w->has_work ? oly_local_chunks(&w->task, phase) : 0;
    return n > 1 ? oly_local_chunks_worth(&w->task, n, (oly_workers_count() + computing - 1) / computing) : n;
}

static int gemm_chunks(const oly_gemm_work *w)
{
    return !w->has_work ? 0 : w->parts ? w->n_parts : oly_gemm_chunks(&w->task);
}

int oly_chunks_of_share(const oly_step *s, int device, int phase, int computing)
{
    switch (s->kind) {
    case OLY_STEP_TILE: return tile_chunks(s, device);
    case OLY_STEP_REDUCE: return reduce_chunks(s, device, phase);
    case OLY_STEP_LOCAL: return local_chunks(s, device, phase, computing);
    case OLY_STEP_CALL: return s->call.device[device].has_work;
    case OLY_STEP_GEMM: return gemm_chunks(&s->gemm.device[device]);
    default: return 0;
    }
}

/* -- tables ----------------------------------------------------------------------------------------------------------- */

static oly_status no_memory(void)
{
    return oly_out_of_memory(0, "a program");
}

static oly_status prepare_chunks(oly_plan *plan, const oly_step *s, oly_prepared *made)
{
    int computing = made->repeats ? made->repeats->n_first : plan->n_devices;
    int most = s->kind == OLY_STEP_REDUCE ? 2 : s->kind == OLY_STEP_LOCAL ? OLY_MOST_PHASES : 1;
    for (int phase = 0; phase < most; phase++) {
        int *chunks = OLY_ARENA_NEW(&plan->arena, int, plan->n_devices + 1);
        if (!chunks)
            return no_memory();
        for (int d = 0; d < plan->n_devices; d++)
            if (!made->repeats || made->repeats->first[d] == d)
                made->total[phase] += chunks[d] = oly_chunks_of_share(s, d, phase, computing);
        made->chunks[phase] = chunks;
        made->phases = made->total[phase] > 0 ? phase + 1 : made->phases;
        if (phase > 0 && made->total[phase] == 0)
            break;
    }
    return OLY_OK;
}

/* The chunks of the parts that each device computes. */
static oly_status prepare_parts(oly_plan *plan, const oly_gemm_work *work, oly_prepared *made)
{
    int **only = OLY_ARENA_NEW(&plan->arena, int *, plan->n_devices + 1);
    int *of = OLY_ARENA_NEW(&plan->arena, int, plan->n_devices + 1);
    if (!only || !of)
        return no_memory();
    for (int d = 0; d < plan->n_devices; d++) {
        const oly_gemm_work *w = &work[d];
        if (!w->has_work)
            continue;
        only[d] = OLY_ARENA_NEW(&plan->arena, int, w->n_parts + 1);
        if (!only[d])
            return no_memory();
        for (int k = 0; k < w->n_parts; k++)
            only[d][k] = oly_gemm_chunk_of(&w->task, &w->parts[k]);
        of[d] = oly_gemm_chunks(&w->task);
    }
    made->only = (const int *const *)only;
    made->of = of;
    return OLY_OK;
}

static bool has_parts(const oly_plan *plan, const oly_gemm_work *work)
{
    for (int d = 0; d < plan->n_devices; d++)
        if (work[d].parts)
            return true;
    return false;
}

static oly_status prepare_product(oly_plan *plan, const oly_step *s, oly_prepared *made)
{
    OLY_TRY(prepare_chunks(plan, s, made));
    made->bfloats = oly_multiplies_bfloats(plan, s);
    return has_parts(plan, s->gemm.device) ? prepare_parts(plan, s->gemm.device, made) : OLY_OK;
}

/* The phases of a product whose result is sent in parts. */
static oly_status prepare_phases(oly_plan *plan, const oly_step *s, oly_prepared *made)
{
    oly_prepared *parts = OLY_ARENA_NEW(&plan->arena, oly_prepared, s->gemm.n_phases + 1);
    if (!parts)
        return no_memory();
    for (int k = 0; k < s->gemm.n_phases; k++) {
        oly_step phase = *s;
        phase.gemm.device = s->gemm.phases[k].device;
        OLY_TRY(prepare_product(plan, &phase, &parts[k]));
    }
    made->parts = parts;
    return OLY_OK;
}

static oly_status prepare_copies(oly_plan *plan, const oly_copy_work *copies, int n, oly_prepared *made)
{
    int *chunks = OLY_ARENA_NEW(&plan->arena, int, n + 1);
    if (!chunks)
        return no_memory();
    for (int k = 0; k < n; k++)
        made->total_copied += chunks[k] = oly_copy_chunks(&copies[k].task);
    made->copies = chunks;
    return OLY_OK;
}

/* -- steps ------------------------------------------------------------------------------------------------------------ */

static oly_status prepare_block(oly_plan *plan, const oly_block *b);

static oly_status prepare_inner(oly_plan *plan, const oly_step *s)
{
    if (s->kind == OLY_STEP_LOOP)
        return prepare_block(plan, s->loop.body);
    for (int k = 0; s->kind == OLY_STEP_BRANCH && k < s->branch.n; k++)
        OLY_TRY(prepare_block(plan, s->branch.blocks[k]));
    for (int k = 0; s->kind == OLY_STEP_STENCIL && k < 2; k++)
        OLY_TRY(prepare_block(plan, s->stencil.margins[k]));
    return OLY_OK;
}

static oly_status prepare_code(oly_plan *plan, const oly_step *s, oly_prepared *made)
{
    made->known = OLY_ARENA_NEW(&plan->arena, oly_group_known, plan->n_devices + 1);
    if (!made->known)
        return no_memory();
    for (int d = 0; d < plan->n_devices; d++)
        made->known[d].program = &s->tile.program;
    return OLY_OK;
}

static oly_status prepare_step(oly_plan *plan, oly_step *s)
{
    OLY_TRY(prepare_inner(plan, s));
    if (s->kind == OLY_STEP_REDUCTION && s->reduction.staged)
        s->reduction.staged->outline.between = oly_compute_level;
    bool computes =
        s->kind == OLY_STEP_TILE || s->kind == OLY_STEP_REDUCE || s->kind == OLY_STEP_LOCAL || s->kind == OLY_STEP_CALL;
    if (!computes && s->kind != OLY_STEP_GEMM && s->kind != OLY_STEP_MOVE)
        return OLY_OK;
    oly_prepared *made = OLY_ARENA_NEW(&plan->arena, oly_prepared, 1);
    if (!made)
        return no_memory();
    s->prepared = made;
    if (computes) {
        OLY_TRY(oly_find_repeats(plan, s, &made->repeats));
        if (s->kind == OLY_STEP_TILE && s->tile.compiles)
            OLY_TRY(prepare_code(plan, s, made));
        return prepare_chunks(plan, s, made);
    }
    if (s->kind == OLY_STEP_MOVE)
        return prepare_copies(plan, s->move.copies, s->move.n_copies, made);
    OLY_TRY(prepare_copies(plan, s->gemm.copies, s->gemm.n_copies, made));
    OLY_TRY(oly_find_repeats(plan, s, &made->repeats));
    return s->gemm.n_phases ? prepare_phases(plan, s, made) : prepare_product(plan, s, made);
}

static void leave_out(const oly_plan *plan, const oly_step *s)
{
    oly_prepared *none = (oly_prepared *)(uintptr_t)s->prepared;
    for (int d = 0; d < plan->n_devices; d++)
        ((int *)(uintptr_t)none->chunks[0])[d] = 0;
    none->total[0] = none->phases = 0;
    none->repeats = NULL;
}

/* The reduction computes what the group before it would have. */
static void fuse(const oly_plan *plan, const oly_step *reduce)
{
    for (int k = 0; k < oly_operand_steps(reduce); k++)
        leave_out(plan, oly_operand_step(reduce, k));
    ((oly_prepared *)(uintptr_t)reduce->prepared)->fused = true;
}

/* The chain's last step computes blocks of rows of all of them. */
static oly_status run_by_rows(oly_plan *plan, const oly_step *last)
{
    const struct oly_row_blocks *blocks;
    OLY_TRY(oly_row_blocks_prepare(plan, last, &blocks));
    if (!blocks)
        return OLY_OK;
    for (const oly_step *s = last - (last->chain - 1); s <= last; s++) {
        leave_out(plan, s);
        ((oly_prepared *)(uintptr_t)s->prepared)->fused = false;
        ((oly_prepared *)(uintptr_t)s->prepared)->blocks = NULL; /* a shorter chain without the scatter */
    }
    oly_prepared *made = (oly_prepared *)(uintptr_t)last->prepared;
    made->blocks = blocks;
    made->phases = 1;
    for (int d = 0; d < plan->n_devices; d++)
        made->total[0] += ((int *)(uintptr_t)made->chunks[0])[d] = oly_row_blocks_on(blocks, d);
    return OLY_OK;
}

/* The product reads what the groups before it would have converted. */
static void read_narrow(const oly_plan *plan, const oly_step *product, oly_byte_way way)
{
    oly_prepared *made = (oly_prepared *)(uintptr_t)product->prepared;
    for (int o = 0; o < 2; o++)
        leave_out(plan, product->gemm.converted[o]);
    made->reads_narrow = true;
    made->bytes = (int)way;
    made->total[0] = 0;
    for (int d = 0; d < plan->n_devices; d++) {
        const oly_gemm_work *w = &product->gemm.device[d];
        int n = !w->has_work ? 0 : made->bytes ? oly_gemm_bytes_chunks(&w->task) : oly_gemm_bfloat_chunks(&w->task);
        ((int *)(uintptr_t)made->chunks[0])[d] = n;
        made->total[0] += n;
    }
}

static oly_status prepare_block(oly_plan *plan, const oly_block *b)
{
    for (int k = 0; b && k < b->n_steps; k++) {
        oly_step *s = &b->steps[k];
        OLY_TRY(prepare_step(plan, s));
        if (s->kind == OLY_STEP_REDUCE && oly_is_fused(plan, s))
            fuse(plan, s);
        oly_byte_way way = oly_byte_way_of(s);
        if (way != OLY_BYTES_NONE || (s->kind == OLY_STEP_GEMM && s->gemm.converted[0] && s->prepared->bfloats))
            read_narrow(plan, s, way);
        if (s->chain && !oly_platform_is_late())
            OLY_TRY(run_by_rows(plan, s));
    }
    return OLY_OK;
}

/* Only where devices read all of an array alike are chunks fewer if more devices compute (local_chunks). */
oly_status oly_prepare_first(oly_plan *plan, const oly_step *s, oly_prepared *first)
{
    int n_copies = s->kind == OLY_STEP_MOVE ? s->move.n_copies : s->kind == OLY_STEP_GEMM ? s->gemm.n_copies : 0;
    int *copies = n_copies ? OLY_ARENA_NEW(&plan->arena, int, n_copies) : NULL;
    if (n_copies && !copies)
        return no_memory();
    first->repeats = NULL;
    first->once = NULL;
    first->first_only = true;
    for (int phase = 0; phase < first->phases; phase++) {
        int *chunks = OLY_ARENA_NEW(&plan->arena, int, plan->n_devices + 1);
        if (!chunks)
            return no_memory();
        bool whole = s->kind == OLY_STEP_LOCAL && !first->blocks;
        chunks[0] = whole ? oly_chunks_of_share(s, 0, phase, 1) : first->chunks[phase][0];
        first->total[phase] = chunks[0];
        first->chunks[phase] = chunks;
    }
    if (n_copies == 0)
        return OLY_OK;
    first->total_copied = 0;
    for (int k = 0; k < n_copies / plan->n_devices; k++)
        first->total_copied += copies[k] = first->copies[k];
    first->copies = copies;
    return OLY_OK;
}

oly_status oly_executor_prepare(oly_plan *plan)
{
    if (!oly_platform_get()->computes)
        return OLY_OK;
    OLY_TRY(prepare_block(plan, plan->main));
    OLY_TRY(oly_find_loops_once(plan));
    OLY_TRY(oly_find_held_once(plan));
    return oly_find_loops_by_device(plan);
}

oly_status oly_executor_prepare_level(const oly_plan *plan, oly_reduction_level *level)
{
    oly_plan *lists = (oly_plan *)(uintptr_t)plan; /* safe: only the communication queue lists levels */
    if (level->prepared)
        return OLY_OK;
    oly_prepared *made = OLY_ARENA_NEW(&lists->arena, oly_prepared, 1);
    if (!made)
        return no_memory();
    OLY_TRY(prepare_copies(lists, level->copies, level->n_copies, made));
    level->prepared = made;
    return OLY_OK;
}
