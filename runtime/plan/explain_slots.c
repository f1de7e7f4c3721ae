/* Which buffers a step touches: read off its work lists. For explanations only; the interpreter does not come here. */
#include "plan/explain.h"
#include <string.h>

/* Slots seen so far, ascending. */
typedef struct seen {
    const oly_plan *plan;
    int n, room;
    int *slots;
} seen;

static void see_slot(seen *s, int slot)
{
    int at = 0;
    if (slot < 0 || slot >= s->plan->n_slots)
        return;
    while (at < s->n && s->slots[at] < slot)
        at++;
    if ((at < s->n && s->slots[at] == slot) || s->n == s->room)
        return;
    memmove(s->slots + at + 1, s->slots + at, sizeof *s->slots * (size_t)(s->n - at));
    s->slots[at] = slot;
    s->n++;
}

static void see(seen *s, int base)
{
    if (base >= 0)
        see_slot(s, base % s->plan->slot_capacity);
}

static void see_all(seen *s, int n, const int *slots)
{
    for (int k = 0; k < n && slots; k++)
        see_slot(s, slots[k]);
}

static void see_places(seen *s, int n, const oly_place *places)
{
    for (int k = 0; k < n && places; k++)
        see(s, places[k].base);
}

static void see_copies(seen *s, int n, const oly_copy_work *copies, bool writes)
{
    for (int k = 0; k < n; k++)
        see(s, writes ? copies[k].to.base : copies[k].from.base);
}

/* What other processes send and receive is not listed in copies: the value's own buffer, and the step's. */
static void see_move(seen *s, const oly_step *step, bool writes)
{
    see_copies(s, step->move.n_copies, step->move.copies, writes);
    if (writes)
        see_slot(s, step->out_slot);
}

static void see_device(seen *s, const oly_step *step, int d, bool writes)
{
    if (step->kind == OLY_STEP_TILE) {
        const oly_tile_work *w = &step->tile.device[d];
        see_places(s, writes ? step->tile.program.n_stores : step->tile.program.n_loads, writes ? w->stores : w->loads);
    } else if (step->kind == OLY_STEP_REDUCE && step->reduce.device[d].chunks > 0) {
        const oly_reduce_work *w = &step->reduce.device[d];
        see(s, writes ? w->out_base : w->in.base);
    } else if (step->kind == OLY_STEP_GEMM && step->gemm.device[d].chunks > 0) {
        const oly_gemm_work *w = &step->gemm.device[d];
        see(s, writes ? w->out_base : w->a.base);
        see(s, writes ? w->out_base : w->b.base);
    } else if (step->kind == OLY_STEP_LOCAL && step->local.device[d].chunks[0] > 0) {
        const oly_local_work *w = &step->local.device[d];
        if (writes)
            see(s, w->out_base);
        else
            see_places(s, w->task.n_in, w->in);
    }
}

static void see_stencil(seen *s, const oly_step *step, bool writes)
{
    see_slot(s, writes ? step->out_slot : step->stencil.first_slot);
    if (writes)
        see_all(s, 2, step->stencil.field_slot);
}

int oly_step_slots(const oly_plan *plan, const oly_step *step, bool writes, int *slots, int room)
{
    seen s = {.plan = plan, .room = room, .slots = slots};
    for (int d = 0; d < plan->n_devices; d++)
        see_device(&s, step, d, writes);
    if (step->kind == OLY_STEP_GEMM && !writes)
        see_copies(&s, step->gemm.n_copies, step->gemm.copies, writes);
    if (step->kind == OLY_STEP_MOVE)
        see_move(&s, step, writes);
    for (int g = 0; step->kind == OLY_STEP_FOLD && g < step->fold.n_groups; g++) {
        const oly_fold_work *w = &step->fold.groups[g];
        for (int k = 0; k < (writes ? w->n_outs : w->n_sources); k++)
            see(&s, writes ? w->out_base[k] : w->source_base[k]);
    }
    if (step->kind == OLY_STEP_LOOP) {
        see_all(&s, step->loop.n_carry, writes ? step->loop.in_slot : step->loop.init_slot);
        see_all(&s, writes ? step->loop.n_carry : 0, step->loop.result_slot);
    }
    if (step->kind == OLY_STEP_BRANCH && !writes)
        see_slot(&s, step->branch.index_slot);
    if (step->kind == OLY_STEP_STENCIL)
        see_stencil(&s, step, writes);
    return s.n;
}
