/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes whose start follows a loop's counter: row i of the results of oly_scan. Where an elementwise group has computed the rows that an
 * update writes into a carry, the group writes them there, into a slot that the interpreter binds to these rows in every iteration
 * (oly_loop_row), and the update is not a step any more. If nothing else uses the carry, and all of its rows are written, the constant
 * that it begins with is not written, either. Only on devices whose memory the host can address, as lower_counted.c. Called by plan.c
 * after direct_writes.c. */
#include "core/facts.h"
#include "core/optimisation.h"
#include "graph/counters.h"
#include "plan/schedule/schedule.h"
#include "plan/schedule/scheduler.h"
#include <string.h>

/* An update of a loop's body, and the group that computes what it writes. */
typedef struct counted {
    oly_planner *p;
    oly_step *loop, *update, *group;
    int carry, made; /* slots: the array, and what is written into it */
    int store;       /* of the group */
    int64_t rows;
    oly_counted form;
} counted;

static bool uses(const oly_plan *plan, const oly_step *s, int slot)
{
    oly_effect x = oly_effect_on(plan, s, slot);
    return x.reads || x.writes;
}

/* -- the update -------------------------------------------------------------------------------------------------------------- */

/* Does it write whole rows, all of which are in the array, in place on every device? */
static bool writes_rows(counted *c)
{
    const oly_plan *plan = c->p->plan;
    const oly_node *n = c->update->node, *loop = c->loop->node;
    if (n->n_in < 3 || oly_ops[n->op].lowering != OLY_LOWER_LOCAL ||
        oly_ops[n->op].detail != OLY_LOCAL_DYNAMIC_UPDATE || n->params.n_batch > 0 ||
        !oly_counted_of(loop, n->in[2], &c->form))
        return false;
    c->rows = n->in[1]->type.shape[0];
    c->carry = c->made = -1;
    for (int d = 1; d < n->type.rank; d++)
        if (n->in[1]->type.shape[d] != n->type.shape[d])
            return false;
    for (int d = 0; d < plan->n_devices; d++) {
        const oly_local_work *w = &c->update->local.device[d];
        if (!w->has_work)
            continue;
        const oly_local_operand *to = &w->task.out, *part = &w->task.in[1];
        int carry = oly_cell_slot(plan, w->out_base), made = oly_cell_slot(plan, w->in[1].base);
        if ((c->carry >= 0 && (carry != c->carry || made != c->made)) || w->in[0].base != w->out_base ||
            w->task.partial || w->in[0].offset != 0 || w->out_base != oly_cell(plan, d, carry) ||
            w->in[1].base != oly_cell(plan, d, made) || to->extent[0] != n->type.shape[0] || part->extent[0] != c->rows)
            return false;
        for (int k = 1; k < to->rank; k++)
            if (to->extent[k] != part->extent[k])
                return false;
        c->carry = carry;
        c->made = made;
    }
    int64_t end = c->form.first + c->form.step * (c->form.count - 1), most = n->type.shape[0] - c->rows;
    return c->carry >= 0 && c->form.first >= 0 && c->form.first <= most && end >= 0 && end <= most;
}

/* Is the array a carry that keeps its memory, which no other step of the body uses? */
static bool is_own(const counted *c)
{
    const oly_plan *plan = c->p->plan;
    const oly_block *b = c->loop->loop.body;
    bool stays = false;
    for (int k = 0; k < c->loop->loop.n_carry; k++)
        stays = stays || (c->loop->loop.in_slot[k] == c->carry && c->loop->loop.out_slot[k] == c->carry);
    for (int k = 0; k < b->n_steps; k++)
        if (&b->steps[k] != c->update && uses(plan, &b->steps[k], c->carry))
            return false;
    return stays;
}

/* -- the group --------------------------------------------------------------------------------------------------------------- */

/* Does the group store, on each device, just what the update writes? */
static bool stores_rows(counted *c)
{
    const oly_plan *plan = c->p->plan;
    const oly_node *n = c->update->node;
    c->store = oly_store_into(plan, c->group, c->made);
    for (int d = 0; c->store >= 0 && d < plan->n_devices; d++) {
        const oly_tile_work *g = &c->group->tile.device[d];
        const oly_local_work *w = &c->update->local.device[d];
        const oly_place *store = g->has_work ? &g->stores[c->store] : NULL;
        if (g->has_work != w->has_work)
            return false;
        if (store && (store->base != w->in[1].base || store->offset != w->in[1].offset ||
                      !oly_stores_box(&g->box, store, w->task.in[1].rank, w->task.in[1].extent, w->in[1].stride)))
            return false;
    }
    return c->store >= 0 && c->group->tile.program.store_dtype[c->store] == n->type.dtype;
}

/* The group that writes what the update reads; no step between them writes it again. */
static bool find_group(counted *c)
{
    const oly_plan *plan = c->p->plan;
    for (oly_step *s = c->update - 1; s >= c->loop->loop.body->steps; s--) {
        if (!oly_effect_on(plan, s, c->made).writes)
            continue;
        c->group = s;
        return s->kind == OLY_STEP_TILE && !s->exchange && !s->second && !s->awaited && stores_rows(c);
    }
    return false;
}

/* Does nothing but the update read what the group has stored? */
static bool is_only_written(const counted *c)
{
    const oly_slot *made = &c->p->plan->slots[c->made];
    const oly_block *b = c->loop->loop.body;
    for (int k = 0; k < b->n_steps; k++)
        if (&b->steps[k] != c->update && &b->steps[k] != c->group && uses(c->p->plan, &b->steps[k], c->made))
            return false;
    return made->kind == OLY_SLOT_SCRATCH && !made->claimed && made->block == b &&
           !oly_effect_on(c->p->plan, c->group, c->made).reads;
}

/* -- the rows ---------------------------------------------------------------------------------------------------------------- */

static oly_status bind_slot(counted *c, int *slot)
{
    oly_plan *plan = c->p->plan;
    oly_step *loop = c->loop;
    *slot = oly_slot_new(c->p, NULL, 0);
    if (*slot < 0)
        return OLY_MEMORY;
    oly_slot *s = &plan->slots[*slot];
    for (int d = 0; d < plan->n_devices; d++) {
        const oly_local_work *w = &c->update->local.device[d];
        s->device_bytes[d] = w->has_work ? oly_dtype_size(c->update->node->type.dtype) * (size_t)c->rows : 0;
        for (int k = 1; w->has_work && k < w->task.out.rank; k++)
            s->device_bytes[d] *= (size_t)w->task.out.extent[k];
        s->bytes = s->device_bytes[d] > s->bytes ? s->device_bytes[d] : s->bytes;
    }
    oly_loop_row row = {*slot,         c->carry,     c->rows,
                        c->form.first, c->form.step, c->update->node->type.shape[0] - c->rows};
    return oly_bind_rows(c->p, &row, loop->loop.body, &loop->loop.n_rows, &loop->loop.rows);
}

/* A copy of a list with one more element at its end, that of index k. */
static void *with_copy(oly_planner *p, const void *list, int n, size_t size, int k)
{
    char *made = oly_arena_take(&p->plan->arena, size * (size_t)(n + 1));
    if (made) {
        memcpy(made, list, size * (size_t)n);
        memcpy(made + size * (size_t)n, (const char *)list + size * (size_t)k, size);
    }
    return made;
}

/* The group stores the rows: too, or instead. */
static oly_status store_rows(counted *c, int slot, bool instead)
{
    oly_planner *p = c->p;
    oly_tile_program *t = &c->group->tile.program;
    int n = t->n_stores, to = instead ? c->store : n;
    oly_tile_work *work = OLY_PLAN_NEW(p, oly_tile_work, p->plan->n_devices + 1);
    OLY_PLAN_CHECK(work);
    memcpy(work, c->group->tile.device, sizeof *work * (size_t)p->plan->n_devices);
    for (int d = 0; d < p->plan->n_devices; d++) {
        if (!work[d].has_work)
            continue;
        oly_place *stores = with_copy(p, work[d].stores, n, sizeof *stores, c->store);
        OLY_PLAN_CHECK(stores);
        stores[to] = (oly_place){.base = oly_cell(p->plan, d, slot)};
        const oly_local_task *writes = &c->update->local.device[d].task;
        oly_match_box(&work[d].box, writes->in[1].rank, writes->in[1].extent, writes->out.stride, stores[to].stride);
        work[d].stores = stores;
    }
    if (!instead) {
        t->store_register = with_copy(p, t->store_register, n, sizeof *t->store_register, c->store);
        t->store_dtype = with_copy(p, t->store_dtype, n, sizeof *t->store_dtype, c->store);
        OLY_PLAN_CHECK(t->store_register ? t->store_dtype : NULL);
        t->n_stores++;
    } else {
        oly_slot *unused = &p->plan->slots[c->made];
        unused->bytes = 0;
        memset(unused->device_bytes, 0, sizeof *unused->device_bytes * (size_t)p->plan->n_devices);
    }
    c->group->tile.device = work;
    return OLY_OK;
}

static void remove_step(oly_block *b, const oly_step *s)
{
    int k = (int)(s - b->steps);
    memmove(&b->steps[k], &b->steps[k + 1], sizeof *b->steps * (size_t)(b->n_steps - k - 1));
    b->n_steps--;
}

/* The steps that only compute where the update began are not needed any more. */
static void remove_starts(const oly_plan *plan, oly_block *b, const oly_step *update)
{
    for (int d = 0; d < plan->n_devices; d++)
        for (int k = 2; update->local.device[d].has_work && k < update->local.device[d].task.n_in; k++) {
            int slot = oly_cell_slot(plan, update->local.device[d].in[k].base), n = 0, last = -1;
            const oly_slot *s = &plan->slots[slot];
            for (int j = 0; j < b->n_steps; j++)
                if (uses(plan, &b->steps[j], slot)) {
                    last = j;
                    n++;
                }
            if (n == 1 && s->kind == OLY_SLOT_SCRATCH && !s->claimed && s->block == b &&
                b->steps[last].kind == OLY_STEP_TILE && b->steps[last].tile.program.n_stores == 1 &&
                !oly_effect_on(plan, &b->steps[last], slot).reads)
                remove_step(b, &b->steps[last]);
        }
}

/* -- the pass ---------------------------------------------------------------------------------------------------------------- */

/* Are all rows written? */
static bool covers(const counted *c)
{
    int64_t size = c->update->node->type.shape[0];
    int64_t end = c->form.first + c->form.step * (c->form.count - 1);
    int64_t low = c->form.step < 0 ? end : c->form.first, high = c->form.step < 0 ? c->form.first : end;
    int64_t step = c->form.step < 0 ? -c->form.step : c->form.step;
    return low == 0 && high == size - c->rows && step <= c->rows;
}

/* The constant that the carry begins with, if only the loop uses it, is not needed. */
static void drop_fill(oly_planner *p, oly_block *b, int *loop, int carry)
{
    const oly_plan *plan = p->plan;
    const oly_step *s = &b->steps[*loop];
    int fill = -1, init = -1;
    for (int k = 0; k < s->loop.n_carry; k++)
        init = s->loop.in_slot[k] == carry ? s->loop.init_slot[k] : init;
    if (init < 0 || plan->slots[init].kind == OLY_SLOT_INPUT || plan->slots[init].kind == OLY_SLOT_BOUND)
        return;
    for (int k = 0; k < s->loop.n_carry; k++)
        if (s->loop.in_slot[k] != carry && s->loop.init_slot[k] == init)
            return;
    for (int k = *loop - 1; k >= 0; k--) {
        const oly_step *x = &b->steps[k];
        if (!uses(plan, x, init))
            continue;
        if (fill >= 0 || x->kind != OLY_STEP_TILE || x->tile.program.n_loads > 0 || x->tile.program.n_stores != 1)
            return;
        fill = k;
    }
    if (fill < 0 || plan->slots[init].block != b)
        return;
    remove_step(b, &b->steps[fill]);
    --*loop;
}

static oly_status write_rows(oly_planner *p, oly_block *b, int *loop, int k, bool *done)
{
    counted c = {.p = p, .loop = &b->steps[*loop], .update = &b->steps[*loop].loop.body->steps[k]};
    int slot;
    bool instead = false;
    *done = c.update->kind == OLY_STEP_LOCAL && !c.update->exchange && !c.update->awaited && writes_rows(&c) &&
            is_own(&c) && find_group(&c);
    if (*done) {
        instead = is_only_written(&c);
        *done = instead || c.group->tile.program.n_stores < OLY_TILE_REGISTERS; /* which kernels have room for */
    }
    if (!*done)
        return OLY_OK;
    bool all = covers(&c);
    OLY_TRY(bind_slot(&c, &slot));
    OLY_TRY(store_rows(&c, slot, instead));
    oly_step update = *c.update;
    remove_step(c.loop->loop.body, c.update);
    remove_starts(p->plan, c.loop->loop.body, &update);
    if (all)
        drop_fill(p, b, loop, c.carry);
    return OLY_OK;
}

static oly_status visit(oly_planner *p, oly_block *b, bool *changed)
{
    for (int k = 0; k < b->n_steps; k++) {
        if (b->steps[k].kind != OLY_STEP_LOOP || b->steps[k].loop.predicate >= 0)
            continue;
        for (int j = 0; j < b->steps[k].loop.body->n_steps;) {
            bool done;
            OLY_TRY(write_rows(p, b, &k, j, &done));
            *changed = *changed || done;
            j = done ? 0 : j + 1;
        }
    }
    return OLY_OK;
}

oly_status oly_write_counted(oly_planner *p)
{
    return oly_enabled(OLY_OPTIMISATION_LOOP_ROWS) && oly_facts_now()->one_memory ? oly_pass_over_blocks(p, visit)
                                                                                  : OLY_OK;
}
