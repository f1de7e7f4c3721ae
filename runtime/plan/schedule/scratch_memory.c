/* SPDX-License-Identifier: BSD-3-Clause */
/* Scratch memory: slots with disjoint lifetimes share memory. A slot that is written outside a loop and used inside
 * lives as long as the loop; one that is written inside lives within an iteration. First fit, in order of first use. */
#define _GNU_SOURCE /* qsort_r */
#include "plan/schedule/schedule.h"
#include "core/optimisation.h"
#include <stdlib.h>

static bool is_inside(const oly_plan *plan, const oly_slot *slot, const oly_block *b, const oly_block *body)
{
    return slot->block == body || (slot->block && slot->block != b && slot->block->begin >= body->begin &&
                                   slot->block->end <= body->end && slot->block != plan->main);
}

/* Extends the lives of outer slots that the steps from `begin` to number `number` use, to before and after those
 * steps: what is written outside is written before, whatever its number, and a loop's body runs again. */
static void extend_over(oly_plan *plan, const oly_block *b, int n_bodies, oly_block *const *bodies, int number,
                        bool again)
{
    int begin = bodies[0]->begin;
    for (int j = 0; j < plan->n_slots; j++) {
        oly_slot *slot = &plan->slots[j];
        bool inside = false;
        for (int k = 0; k < n_bodies; k++)
            inside = inside || is_inside(plan, slot, b, bodies[k]);
        if (inside || slot->last < begin || slot->first > number)
            continue;
        if (again && slot->last >= begin && slot->last < number)
            slot->last = number;
        if (slot->first > begin && slot->first <= number)
            slot->first = begin;
    }
}

/* Extends lives of outer slots over the loops and branches that use them. */
static void extend_lives(oly_plan *plan, const oly_block *b)
{
    for (int k = 0; k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++)
            extend_lives(plan, s->branch.blocks[j]);
        if (s->kind == OLY_STEP_BRANCH)
            extend_over(plan, b, s->branch.n, s->branch.blocks, s->number, false);
        if (s->kind == OLY_STEP_LOOP) {
            extend_lives(plan, s->loop.body);
            extend_over(plan, b, 1, &s->loop.body, s->number, true);
        }
    }
}

/* From this step on its memory is its own. */
static int birth(const oly_slot *s)
{
    return s->first - s->early;
}

static int by_birth(const void *a, const void *b, void *slots)
{
    const oly_slot *s = slots;
    int x = *(const int *)a, y = *(const int *)b;
    int d = birth(&s[x]) - birth(&s[y]);
    return d ? d : x - y;
}

static size_t rounded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* The lowest offset at which `slot` overlaps no placed slot that is live at the same time. */
static size_t first_fit(const oly_plan *plan, const int *placed, int n, const oly_slot *slot)
{
    size_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int k = 0; k < n; k++) {
            const oly_slot *o = &plan->slots[placed[k]];
            bool together = birth(o) <= slot->last && birth(slot) <= o->last;
            if (together && offset < o->offset + rounded(o->bytes) && o->offset < offset + rounded(slot->bytes)) {
                offset = o->offset + rounded(o->bytes);
                moved = true;
            }
        }
    }
    return offset;
}

/* Devices that hold nothing of a slot need no memory for it; tiny slots (loop counters) are on all devices. */
static void note_devices(const oly_plan *plan, const oly_slot *s, size_t *scratch)
{
    for (int d = 0; d < plan->n_devices; d++) {
        size_t bytes = rounded(s->bytes) == rounded(1) ? s->bytes : s->device_bytes[d];
        if (bytes && s->offset + rounded(bytes) > scratch[d])
            scratch[d] = s->offset + rounded(bytes);
    }
}

/* -- donated inputs ------------------------------------------------------------------------------------------------ */

static const oly_step *step_numbered(const oly_block *b, int number)
{
    for (int k = 0; k < b->n_steps; k++)
        if (b->steps[k].number == number)
            return &b->steps[k];
    return NULL;
}

static bool same_place(const oly_tile_work *w, const oly_place *load, const oly_place *store)
{
    if (load->offset != store->offset)
        return false;
    for (int d = 0; d < w->box.rank; d++)
        if (load->stride[d] != store->stride[d] && w->box.extent[d] > 1)
            return false;
    return true;
}

/* Does the tile program read the input only at the element that it writes? */
static bool overwrites_in_order(const oly_plan *plan, const oly_step *s, int input, int output)
{
    for (int d = 0; d < plan->n_devices; d++) {
        const oly_tile_work *w = &s->tile.device[d];
        const oly_place *store = NULL;
        for (int k = 0; w->stores && k < s->tile.program.n_stores; k++)
            if (w->stores[k].base == oly_cell(plan, d, output))
                store = &w->stores[k];
        for (int k = 0; w->loads && k < s->tile.program.n_loads; k++)
            if (oly_cell_slot(plan, w->loads[k].base) == input &&
                (!store || oly_cell_device(plan, w->loads[k].base) != d || !same_place(w, &w->loads[k], store)))
                return false;
    }
    return true;
}

bool oly_output_may_take(const oly_plan *plan, int input, int output)
{
    int in_slot = plan->input_slot[input], out_slot = plan->output_slot[output];
    const oly_slot *in = &plan->slots[in_slot], *out = &plan->slots[out_slot];
    if (out->kind != OLY_SLOT_POOL || out->block != plan->main || !oly_enabled(OLY_OPTIMISATION_DONATION))
        return false;
    for (int d = 0; d < plan->n_devices; d++)
        if (in->device_bytes[d] < out->device_bytes[d])
            return false;
    if (in->last < out->first)
        return true;
    if (in->last > out->first ||
        oly_dtype_size(plan->inputs[input].type.dtype) != oly_dtype_size(plan->outputs[output].type.dtype))
        return false;
    const oly_step *s = step_numbered(plan->main, in->last);
    if (s && s->kind == OLY_STEP_STENCIL) /* the first pass reads the input, the last one writes the result */
        return !s->stencil.tiling && s->out_slot == out_slot && s->stencil.count > s->stencil.pass;
    return s && s->kind == OLY_STEP_TILE && overwrites_in_order(plan, s, in_slot, out_slot);
}

oly_status oly_assign_memory(oly_planner *p)
{
    oly_plan *plan = p->plan;
    int *order = OLY_PLAN_NEW(p, int, plan->n_slots + 1), *placed = OLY_PLAN_NEW(p, int, plan->n_slots + 1), n = 0,
        n_placed = 0;
    size_t *scratch = OLY_PLAN_NEW(p, size_t, plan->n_devices);
    OLY_PLAN_CHECK(order);
    OLY_PLAN_CHECK(placed);
    OLY_PLAN_CHECK(scratch);
    plan->device_scratch = scratch;
    extend_lives(plan, plan->main);
    for (int k = 0; k < plan->n_slots; k++)
        if (plan->slots[k].kind == OLY_SLOT_SCRATCH && plan->slots[k].bytes)
            order[n++] = k;
    qsort_r(order, (size_t)n, sizeof *order, by_birth, plan->slots);
    for (int k = 0; k < n; k++) {
        oly_slot *s = &plan->slots[order[k]];
        int alive = 0;
        for (int j = 0; j < n_placed; j++) /* drop slots that are dead: first uses only increase */
            if (plan->slots[placed[j]].last >= birth(s) || !oly_enabled(OLY_OPTIMISATION_MEMORY_REUSE))
                placed[alive++] = placed[j];
        n_placed = alive;
        s->offset = first_fit(plan, placed, n_placed, s);
        placed[n_placed++] = order[k];
        if (s->offset + rounded(s->bytes) > plan->scratch_bytes)
            plan->scratch_bytes = s->offset + rounded(s->bytes);
        note_devices(plan, s, scratch);
    }
    return OLY_OK;
}
