/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions over the devices of many processes as one step, whose levels are listed when it first runs
 * (reduction_tree.h). So planning time and a plan's size do not depend on the number of devices: the step says what
 * is reduced and how much; who sends what to whom is in the pattern that all reductions over these axes share. Called
 * by reduction_steps.c. */
#include "plan/reduce/reduction_room.h"
#include "plan/reduce/reduction_tree.h"
#include "core/optimisation.h"
#include "core/option.h"
#include <string.h>

enum { SMALL = 1 << 17 }; /* bytes of the results of all levels */

typedef struct later {
    oly_planner *p; /* what is kept of it after planning */
    int n, most, n_rounds, staging;
    oly_reduction_item *items;
    int *aside; /* [n] slots of the copies that a stage reads; -1: none */
    oly_axis_list axes;
    oly_reduction_levels levels;
} later;

bool oly_reduces_lazily(const oly_planner *p, const oly_axis_list *axes)
{
    bool local = true;
    for (int k = 0; k < axes->n; k++)
        local = local && p->mesh->together[axes->axis[k]] >= p->mesh->size[axes->axis[k]];
    return oly_enabled(OLY_OPTIMISATION_STAGED_REDUCTION) && p->plan->distributed && !local && !p->reduction_share &&
           oly_mesh_processes() > oly_option.direct_processes;
}

bool oly_reduction_is_small(const folder *f, int n_items, int stages)
{
    int64_t bytes = 0;
    for (int k = 0; k < n_items; k++)
        bytes += f->room->values[k].largest * stages;
    return bytes < SMALL;
}

/* Sets the level's round: its values, and where they are read. */
static void begin_level(folder *f, const later *l, int number)
{
    f->n_rounds = l->n_rounds;
    f->round = number % l->n_rounds;
    f->staging = l->staging;
    oly_reduction_stage_of(f, l->n, l->items, l->most - number / l->n_rounds);
    for (int k = 0; k < f->n; k++)
        if (oly_reduction_reads_copies(f, f->values[k]))
            f->values[k]->read = l->aside[f->values[k]->of - l->items];
}

static oly_status copy_aside(const folder *f, oly_reduction_level *made)
{
    int n = f->p->plan->n_devices;
    oly_copy_work *copies = OLY_PLAN_NEW(f->p, oly_copy_work, n * f->n + 1);
    OLY_PLAN_CHECK(copies);
    made->copies = copies;
    for (int k = 0; k < f->n && f->round == 0; k++)
        if (f->values[k]->read != f->values[k]->from)
            made->n_copies += oly_reduction_copies(f, f->values[k], f->values[k]->read, copies + made->n_copies);
    return OLY_OK;
}

static oly_status list_level(const void *context, int number, oly_reduction_level *made)
{
    const later *l = context;
    folder f;
    int most, n_staged;
    OLY_TRY(oly_reduction_values(&f, l->p, &l->axes, l->n, l->items, &most));
    f.once = true;
    begin_level(&f, l, number);
    OLY_TRY(oly_reduction_place(&f, &made->n_groups, &n_staged));
    OLY_TRY(oly_reduction_fill(&f, made->n_groups, n_staged));
    OLY_TRY(copy_aside(&f, made));
    OLY_TRY(oly_reduction_exchange(&f, false, &made->exchange));
    OLY_TRY(oly_reduction_exchange(&f, true, &made->second));
    made->groups = f.groups;
    for (int g = 0; g < made->n_groups; g++)
        made->work += (double)(made->groups[g].end - made->groups[g].begin) * made->groups[g].n_sources;
    return OLY_OK;
}

oly_planner *oly_reduction_kept_planner(oly_planner *p)
{
    if (!p->kept)
        p->kept = OLY_PLAN_NEW(p, oly_planner, 1);
    if (p->kept)
        *p->kept = (oly_planner){.plan = p->plan, .mesh = p->mesh, .position = p->position};
    return p->kept;
}

/* Allocates the slots, with enough room for every level. */
static oly_status plan_levels(later *l, folder *f, oly_block *b, oly_step *said)
{
    oly_planner *p = f->p;
    int n_groups, n_staged, members;
    for (int left = l->most; left > 0; left--) {
        oly_reduction_stage_of(f, l->n, l->items, left);
        int rounds = oly_reduction_rounds_at_most(f);
        l->n_rounds = rounds > l->n_rounds ? rounds : l->n_rounds;
        for (int k = 0; k < f->n; k++) {
            int item = (int)(f->values[k]->of - l->items);
            if (l->aside[item] >= 0 || !oly_reduction_reads_copies(f, f->values[k]))
                continue;
            oly_region r = oly_region_of_layout(f->values[k]->of->layout);
            l->aside[item] = oly_slot_new(p, &r, (size_t)f->element);
            if (l->aside[item] < 0)
                return OLY_MEMORY;
            p->plan->slots[l->aside[item]].block = b;
        }
    }
    for (int number = 0; number < l->most * l->n_rounds; number++) {
        begin_level(f, l, number);
        OLY_TRY(oly_reduction_place(f, &n_groups, &n_staged));
        oly_reduction_describe(f, said, &members);
        said->messages += members - 1;
    }
    return OLY_OK;
}

/* The step's slots: those that it reads, then those that it writes. */
static oly_status list_slots(const later *l, oly_step *step)
{
    int n = 0, *slots = OLY_PLAN_NEW(l->p, int, 3 * l->n + 1);
    OLY_PLAN_CHECK(slots);
    for (int k = 0; k < l->n; k++)
        slots[n++] = l->items[k].from;
    step->reduction.n_read = n;
    for (int k = 0; k < l->n; k++) {
        slots[n++] = l->items[k].slot;
        if (l->aside[k] >= 0)
            slots[n++] = l->aside[k];
    }
    slots[n++] = l->staging;
    step->reduction.n_written = n - step->reduction.n_read;
    step->reduction.slots = slots;
    return OLY_OK;
}

/* The outline needs two lists of one length: the buffers sent from and those received into. */
static oly_status make_exchange(const later *l, bool small, oly_step *step)
{
    oly_plan *plan = l->p->plan;
    int n_read = step->reduction.n_read, n_written = step->reduction.n_written, n = n_written * plan->n_devices,
        *buffers = OLY_PLAN_NEW(l->p, int, 2 * n + 1);
    OLY_PLAN_CHECK(buffers);
    for (int k = 0; k < n; k++) {
        int slot = k / plan->n_devices, device = k % plan->n_devices;
        buffers[k] = oly_cell(plan, device, step->reduction.slots[slot < n_read ? slot : 0]);
        buffers[n + k] = oly_cell(plan, device, step->reduction.slots[n_read + slot]);
    }
    return oly_reduction_levels_exchange(plan, step, small ? OLY_LEVELS_ALL : OLY_LEVELS_FIRST, n, buffers);
}

oly_status oly_reduction_in_levels(oly_planner *p, oly_block *b, const oly_axis_list *axes, int n_items,
                                   const oly_reduction_item *items, int stages)
{
    later *l = OLY_PLAN_NEW(p, later, 1);
    oly_reduction_item *kept = OLY_PLAN_NEW(p, oly_reduction_item, n_items);
    int *aside = OLY_PLAN_NEW(p, int, n_items);
    OLY_PLAN_CHECK(l && kept ? aside : NULL);
    memcpy(kept, items, sizeof *kept * (size_t)n_items);
    for (int k = 0; k < n_items; k++)
        aside[k] = -1;
    *l = (later){.p = oly_reduction_kept_planner(p),
                 .n = n_items,
                 .n_rounds = 1,
                 .staging = oly_reduction_staging(p, b),
                 .items = kept,
                 .aside = aside,
                 .axes = *axes};
    OLY_PLAN_CHECK(l->p);
    if (l->staging < 0)
        return OLY_MEMORY;
    folder f;
    oly_step said = {0};
    OLY_TRY(oly_reduction_values(&f, p, axes, n_items, kept, &l->most));
    l->most = stages;
    OLY_TRY(plan_levels(l, &f, b, &said));
    l->levels = (oly_reduction_levels){.n = l->most * l->n_rounds, .list = list_level, .context = l};
    oly_step *step = oly_step_add(p, b, OLY_STEP_REDUCTION, items[0].node, "all-reduce");
    OLY_PLAN_CHECK(step);
    step->over = *axes;
    step->work = said.work;
    step->wire = said.wire;
    step->bytes = said.bytes;
    step->messages = said.messages;
    step->members = oly_axis_list_parts(p->mesh, axes);
    step->reduction.combiner = items[0].rule.combiner;
    step->reduction.dtype = items[0].node->type.dtype;
    step->reduction.sliced = said.reduction.sliced;
    step->reduction.levels = &l->levels;
    step->reduction.n_levels_run = l->levels.n;
    step->detail = oly_reduction_detail(&f, step->reduction.combiner, step->members, l->levels.n);
    OLY_TRY(list_slots(l, step));
    for (int k = 0; k < step->reduction.n_read + step->reduction.n_written; k++)
        oly_slot_use(p, step->reduction.slots[k]);
    return make_exchange(l, oly_reduction_is_small(&f, n_items, l->most), step);
}
