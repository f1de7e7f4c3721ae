/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains of steps that are one kernel. See row_chains.h. A chain is as long as its steps fit one kernel, from the first step that begins one; what only
 * its own steps read is not written. Memory is compared when the chain is launched: plans may give a result the memory of an
 * operand. */
#include "run/cuda/row_chains.h"
#include "cuda/row_chain.h"
#include "core/error.h"
#include "core/optimisation.h"
#include "device/cuda/gpus.h"
#include "run/device_counts.h"
#include "run/cuda/row_pads.h"
#include "run/prepare_cpu.h"
#include "run/prepared_steps.h"
#include <string.h>

/* -- steps as parts of a kernel ---------------------------------------------------------------------------------------------------- */

typedef struct operands {
    oly_tile_operand loads[OLY_TILE_REGISTERS], stores[OLY_TILE_REGISTERS];
} operands;

/* Without base pointers: addresses that differ for different cells. */
static char *address(void *const *base, int cell, int64_t offset)
{
    return base ? (char *)base[cell] + offset : (char *)(uintptr_t)(((uint64_t)(unsigned)cell + 1) << 40) + offset;
}

static void take(void *const *base, const oly_place *p, int rank, oly_tile_operand *o)
{
    o->base = address(base, p->base, p->offset);
    memcpy(o->stride, p->stride, sizeof(int64_t) * (size_t)rank);
}

static oly_cuda_row_part part_of(void *const *base, const oly_step *s, int device, uint64_t needed, operands *o)
{
    oly_cuda_row_part p = {.needed = needed};
    if (s->kind == OLY_STEP_REDUCE) {
        const oly_reduce_work *w = &s->reduce.device[device];
        p.task = &w->task;
        p.in = address(base, w->in.base, w->in.offset);
        p.out = address(base, w->out_base, w->out_offset);
        return p;
    }
    const oly_tile_work *w = &s->tile.device[device];
    p.program = &s->tile.program;
    p.box = &w->box;
    p.loads = o->loads;
    p.stores = o->stores;
    for (int k = 0; k < p.program->n_loads; k++)
        take(base, &w->loads[k], w->box.rank, &o->loads[k]);
    for (int k = 0; k < p.program->n_stores; k++)
        take(base, &w->stores[k], w->box.rank, &o->stores[k]);
    return p;
}

/* -- which steps ---------------------------------------------------------------------------------------------------------------------- */

static bool is_own(const oly_plan *plan, int cell, int device)
{
    return cell >= 0 && oly_cell_device(plan, cell) == device;
}

static bool has_work(const oly_plan *plan, const oly_step *s, int device)
{
    if (s->kind == OLY_STEP_MOVE)
        return oly_cuda_has_copies(plan, s, device);
    return s->kind == OLY_STEP_REDUCE ? s->reduce.device[device].has_work : s->tile.device[device].has_work;
}

/* Everything that the device reads and writes is its own. */
static bool uses_own(const oly_plan *plan, const oly_step *s, int d)
{
    if (s->kind == OLY_STEP_MOVE)
        return true; /* oly_cuda_is_own_copy */
    if (s->kind == OLY_STEP_REDUCE)
        return is_own(plan, s->reduce.device[d].in.base, d) && is_own(plan, s->reduce.device[d].out_base, d);
    for (int k = 0; k < s->tile.program.n_loads; k++)
        if (!is_own(plan, s->tile.device[d].loads[k].base, d))
            return false;
    for (int k = 0; k < s->tile.program.n_stores; k++)
        if (!is_own(plan, s->tile.device[d].stores[k].base, d))
            return false;
    return true;
}

static bool may_join(const oly_plan *plan, const oly_step *s)
{
    bool kind = s->kind == OLY_STEP_REDUCE || oly_cuda_is_own_copy(plan, s) ||
                (s->kind == OLY_STEP_TILE && (s->tile.compiles || s->tile.program.n_loads == 0) &&
                 s->tile.program.n_stores <= 64 && oly_cuda_has_tile(&s->tile.program));
    if (!kind || s->exchange || s->second || s->awaited ||
        (s->prepared && (s->prepared->epilogue || s->prepared->with_next)))
        return false;
    for (int d = 0; d < plan->n_devices; d++)
        if (has_work(plan, s, d) && (!uses_own(plan, s, d) || plan->devices[d] >= oly_cuda_device_count()))
            return false;
    return true;
}

/* Is store k of step number i of n read by others than those? */
static bool is_needed(const oly_plan *plan, const oly_block *b, const oly_step *steps, int n, int i, int k, int d)
{
    const oly_step *s = &steps[i];
    int cell = s->kind == OLY_STEP_REDUCE ? s->reduce.device[d].out_base : s->tile.device[d].stores[k].base;
    const oly_slot *slot = &plan->slots[oly_cell_slot(plan, cell)];
    return slot->kind != OLY_SLOT_SCRATCH || slot->claimed || slot->block != b || slot->first != s->number ||
           slot->last > steps[n - 1].number;
}

static uint64_t needed_of(const oly_plan *plan, const oly_block *b, const oly_step *steps, int n, int i)
{
    uint64_t needed = 0;
    int stores = steps[i].kind == OLY_STEP_MOVE     ? 0
                 : steps[i].kind == OLY_STEP_REDUCE ? 1
                                                    : steps[i].tile.program.n_stores;
    for (int d = 0; d < plan->n_devices; d++)
        for (int k = 0; has_work(plan, &steps[i], d) && k < stores; k++)
            needed |= (uint64_t)is_needed(plan, b, steps, n, i, k, d) << k;
    return needed;
}

/* n steps as a kernel's. base: NULL: without memory. False: there is a copy that is no part of one. */
static bool steps_of(const oly_plan *plan, void *const *base, const oly_step *steps, const uint64_t *needed, int n,
                     int device, operands *o, oly_cuda_row_steps *made)
{
    made->n = made->n_pads = 0;
    for (int i = 0; i < n; i++) {
        if (steps[i].kind != OLY_STEP_MOVE) {
            made->part[made->n++] = part_of(base, &steps[i], device, needed[i], &o[i]);
            continue;
        }
        oly_cuda_row_pad *p = &made->pad[made->n_pads];
        if (i + 1 >= n || made->n_pads == OLY_ROW_PADS ||
            !oly_cuda_row_pad_of(address, base, plan, &steps[i], device, p))
            return false;
        p->parts = made->n;
        made->n_pads++;
    }
    return true;
}

/* Are n steps a chain on every device that has work? */
static bool fits(const oly_plan *plan, const oly_block *b, const oly_step *steps, int n, operands *o)
{
    oly_cuda_row_steps made;
    uint64_t needed[OLY_ROW_PARTS];
    int working = 0;
    for (int i = 0; i < n; i++) {
        needed[i] = needed_of(plan, b, steps, n, i);
        if (steps[i].kind == OLY_STEP_MOVE &&
            (i + 1 == n || !oly_cuda_is_row_pad(plan, b, &steps[i], steps[n - 1].number)))
            return false;
    }
    for (int d = 0; d < plan->n_devices; d++) {
        for (int i = 1; i < n; i++)
            if (has_work(plan, &steps[i], d) != has_work(plan, &steps[0], d))
                return false;
        if (!has_work(plan, &steps[0], d))
            continue;
        working++;
        if (!steps_of(plan, NULL, steps, needed, n, d, o, &made) || !oly_cuda_row_chain_fits(&made))
            return false;
    }
    return working > 0;
}

/* -- plans ------------------------------------------------------------------------------------------------------------------------------ */

static oly_status join(oly_plan *plan, const oly_block *b, oly_step *steps, int n)
{
    oly_row_steps *rows = OLY_ARENA_NEW(&plan->arena, oly_row_steps, 1);
    uint64_t *needed = OLY_ARENA_NEW(&plan->arena, uint64_t, n);
    for (int i = 0; i < n; i++) {
        oly_prepared *p = oly_prepared_own(plan, &steps[i]);
        if (!rows || !needed || !p)
            return oly_out_of_memory(sizeof *rows, "a program");
        needed[i] = needed_of(plan, b, steps, n, i);
        p->with_next = i < n - 1 && steps[i].kind != OLY_STEP_MOVE;
        p->copied_later = steps[i].kind == OLY_STEP_MOVE;
        p->rows = i == n - 1 ? rows : NULL;
    }
    *rows = (oly_row_steps){n, steps, needed};
    return OLY_OK;
}

/* How many of the steps from k on are a chain: the most that fit; less than 2: none. */
static int length_at(const oly_plan *plan, const oly_block *b, int k, operands *o)
{
    int best = 0;
    for (int n = 1; n <= OLY_ROW_PARTS && k + n <= b->n_steps && may_join(plan, &b->steps[k + n - 1]); n++)
        if (n > 1 && fits(plan, b, &b->steps[k], n, o))
            best = n;
    return best;
}

typedef struct finding {
    oly_plan *plan;
    operands *room; /* [OLY_ROW_PARTS] */
} finding;

static oly_status find_in(const oly_block *b, void *context)
{
    const finding *f = context;
    for (int k = 0, n; k < b->n_steps; k += n) {
        n = length_at(f->plan, b, k, f->room);
        if (n > 1)
            OLY_TRY(join(f->plan, b, &b->steps[k], n));
        else
            n = 1;
    }
    return OLY_OK;
}

oly_status oly_cuda_find_row_chains(oly_plan *plan)
{
    if (!oly_enabled(OLY_OPTIMISATION_ROW_CHAINS) || !oly_enabled(OLY_OPTIMISATION_COMPILED_GROUPS))
        return OLY_OK;
    operands *o = oly_malloc(sizeof *o * OLY_ROW_PARTS);
    if (!o)
        return oly_out_of_memory(sizeof *o * OLY_ROW_PARTS, "a program");
    oly_status st = oly_each_block(plan->main, find_in, &(finding){plan, o});
    oly_release(o);
    return st;
}

oly_status oly_cuda_launch_row_chain(const oly_cuda_launcher *l, const oly_plan *plan, void *const *base,
                                     const oly_row_steps *rows, int device, bool *launched)
{
    oly_cuda_row_steps made;
    *launched = false;
    operands *o = oly_malloc(sizeof *o * (size_t)rows->n);
    if (!o)
        return oly_out_of_memory(sizeof *o * (size_t)rows->n, "a launch");
    oly_status st = steps_of(plan, base, rows->steps, rows->needed, rows->n, device, o, &made)
                        ? oly_cuda_row_chain(l, &made, launched)
                        : OLY_OK;
    oly_count(&oly_device_counted.row_chains, *launched);
    oly_release(o);
    return st;
}
