/* SPDX-License-Identifier: BSD-3-Clause */
/* The slots that a step, including the blocks inside it, reads and writes on this process. */
#include "plan/model/effects.h"
#include "plan/model/time_tiling.h"

typedef struct visitor {
    const oly_plan *plan;
    oly_effect_visit *visit;
    void *context;
} visitor;

/* Who uses rows of a slot uses the slot. */
static void use_slot(const visitor *v, int slot, bool writes)
{
    for (; slot >= 0; slot = v->plan->slots[slot].row_of - 1)
        v->visit(v->context, slot, writes);
}

static void use_cell(const visitor *v, int base, bool writes)
{
    if (base >= 0)
        use_slot(v, oly_cell_slot(v->plan, base), writes);
}

static void use_buffer(void *context, int buffer, bool receives)
{
    use_cell(context, buffer, receives);
}

static void exchange_uses(const visitor *v, const oly_exchange *x)
{
    if (x)
        oly_exchange_buffers(x, use_buffer, (void *)(uintptr_t)v);
}

static void copy_uses(const visitor *v, const oly_copy_work *copies, int n)
{
    for (int k = 0; k < n; k++) {
        use_cell(v, copies[k].from.base, false);
        use_cell(v, copies[k].to.base, true);
    }
}

static void tile_uses(const visitor *v, const oly_step *s, const oly_tile_work *w)
{
    for (int k = 0; w->has_work && k < s->tile.program.n_loads; k++)
        use_cell(v, w->loads[k].base, false);
    for (int k = 0; w->has_work && k < s->tile.program.n_stores; k++)
        use_cell(v, w->stores[k].base, true);
}

static void reduce_uses(const visitor *v, const oly_reduce_work *w)
{
    if (!w->has_work)
        return;
    use_cell(v, w->in.base, false);
    use_cell(v, w->out_base, true);
    use_cell(v, w->scratch_base, true);
}

static void local_uses(const visitor *v, const oly_local_work *w)
{
    if (!w->has_work)
        return;
    for (int k = 0; k < w->task.n_in; k++)
        use_cell(v, w->in[k].base, false);
    use_cell(v, w->out_base, true);
    use_cell(v, w->scratch_base, true);
}

static void call_uses(const visitor *v, const oly_step *s, const oly_call_work *w)
{
    for (int k = 0; w->has_work && k < s->call.n_in; k++)
        use_cell(v, w->in_place[k].base, false);
    for (int k = 0; w->has_work && k < s->call.call->n_out; k++)
        use_cell(v, w->out_base[k], true);
    if (w->has_work)
        use_cell(v, w->scratch_base, true);
}

static void device_uses(const visitor *v, const oly_step *s, int d)
{
    if (s->kind == OLY_STEP_TILE)
        tile_uses(v, s, &s->tile.device[d]);
    else if (s->kind == OLY_STEP_REDUCE)
        reduce_uses(v, &s->reduce.device[d]);
    else if (s->kind == OLY_STEP_LOCAL)
        local_uses(v, &s->local.device[d]);
    else if (s->kind == OLY_STEP_CALL)
        call_uses(v, s, &s->call.device[d]);
    else if (s->kind == OLY_STEP_GEMM && s->gemm.device[d].has_work) {
        use_cell(v, s->gemm.device[d].a.base, false);
        use_cell(v, s->gemm.device[d].b.base, false);
        use_cell(v, s->gemm.device[d].out_base, true);
    }
}

static void reduction_effects(const visitor *v, const oly_step *s)
{
    for (int k = 0; s->reduction.slots && (s->reduction.n_groups > 0 || s->reduction.levels) &&
                    k < s->reduction.n_read + s->reduction.n_written;
         k++)
        use_slot(v, s->reduction.slots[k], k >= s->reduction.n_read);
    for (int g = 0; !s->reduction.slots && g < s->reduction.n_groups; g++) {
        const oly_reduction_work *w = &s->reduction.groups[g];
        for (int k = 0; k < w->n_sources; k++)
            if (k == 0 || w->source_base[k] != w->source_base[k - 1])
                use_cell(v, w->source_base[k], false);
        for (int k = 0; k < w->n_outs; k++)
            use_cell(v, w->out_base[k], true);
    }
}

static void block_uses(const visitor *v, const oly_block *b)
{
    for (int k = 0; b && k < b->n_steps; k++)
        oly_step_effects(v->plan, &b->steps[k], v->visit, v->context);
}

static void loop_uses(const visitor *v, const oly_step *s)
{
    use_slot(v, s->loop.counter_slot, true);
    for (int k = 0; k < s->loop.n_carry; k++) {
        use_slot(v, s->loop.init_slot[k], s->loop.out_slot[k] == s->loop.in_slot[k]); /* updated in place */
        use_slot(v, s->loop.in_slot[k], true);
        use_slot(v, s->loop.out_slot[k], true);
        use_slot(v, s->loop.spare_slot[k], true);
        for (int j = 0; s->loop.passed && j < s->loop.passed[k].n_more; j++)
            use_slot(v, s->loop.passed[k].more_slot[j], true);
        if (s->loop.result_slot)
            use_slot(v, s->loop.result_slot[k], true);
    }
    for (int k = 0; k < s->loop.n_rows; k++)
        use_slot(v, s->loop.rows[k].of, false);
    block_uses(v, s->loop.body);
}

static void tiling_effects(const visitor *v, const oly_tiling *m)
{
    for (int j = 0; j < m->form.n_fields; j++) {
        use_slot(v, m->first_slot[j], false);
        use_slot(v, m->field_slot[0][j], true);
        use_slot(v, m->field_slot[1][j], true);
        use_slot(v, m->out_slot[j], true);
    }
    for (int d = 0; d < v->plan->n_devices; d++)
        for (int k = 0; m->device[d].here && k < m->form.n_fixed; k++)
            use_cell(v, m->device[d].fixed[k].base, false);
}

static void stencil_uses(const visitor *v, const oly_step *s)
{
    if (s->stencil.tiling)
        tiling_effects(v, s->stencil.tiling);
    use_slot(v, s->stencil.first_slot, false);
    for (int k = 0; k < 2; k++) {
        use_slot(v, s->stencil.field_slot[k], true);
        block_uses(v, s->stencil.margins[k]);
    }
    use_slot(v, s->out_slot, true);
}

void oly_step_effects(const oly_plan *plan, const oly_step *s, oly_effect_visit *visit, void *context)
{
    const visitor v = {plan, visit, context};
    exchange_uses(&v, s->exchange);
    exchange_uses(&v, s->second);
    if (s->from < 0)
        exchange_uses(&v, s->awaited);
    switch (s->kind) {
    case OLY_STEP_TILE:
    case OLY_STEP_REDUCE:
    case OLY_STEP_LOCAL:
    case OLY_STEP_CALL:
    case OLY_STEP_GEMM:
        for (int d = 0; d < plan->n_devices; d++)
            device_uses(&v, s, d);
        if (s->kind == OLY_STEP_GEMM)
            copy_uses(&v, s->gemm.copies, s->gemm.n_copies);
        break;
    case OLY_STEP_MOVE: copy_uses(&v, s->move.copies, s->move.n_copies); break;
    case OLY_STEP_REDUCTION: reduction_effects(&v, s); break;
    case OLY_STEP_LOOP: loop_uses(&v, s); break;
    case OLY_STEP_BRANCH:
        use_slot(&v, s->branch.index_slot, false);
        for (int k = 0; k < s->branch.n; k++)
            block_uses(&v, s->branch.blocks[k]);
        break;
    case OLY_STEP_STENCIL: stencil_uses(&v, s); break;
    case OLY_STEP_WAIT: break;
    }
}

typedef struct search {
    int slot;
    oly_effect found;
} search;

static void look(void *context, int slot, bool writes)
{
    search *x = context;
    x->found.reads = x->found.reads || (slot == x->slot && !writes);
    x->found.writes = x->found.writes || (slot == x->slot && writes);
}

oly_effect oly_effect_on(const oly_plan *plan, const oly_step *s, int slot)
{
    search x = {.slot = slot};
    oly_step_effects(plan, s, look, &x);
    return x.found;
}
