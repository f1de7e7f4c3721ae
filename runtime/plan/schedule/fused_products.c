/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of converted operands: an operand of a product of 32-bit integers that has just been converted from bytes, or of a product of
 * float32 from bfloat16, and that nothing else reads, need not be written to memory. The product is given the conversion
 * (oly_step.gemm.converted), and the narrow elements live as long as the product, so that an executor may read those; one that does not
 * runs both steps. Products of bytes have the same bits. Called by plan.c, after the order of steps is final and before memory is
 * assigned. */
#include "core/optimisation.h"
#include "plan/schedule/fused_groups.h"
#include "plan/schedule/narrow_reads.h"
#include "plan/schedule/schedule.h"

static const oly_place *operand_at(const oly_step *product, int o, int d)
{
    const oly_gemm_work *w = &product->gemm.device[d];
    return o == 0 ? &w->a : &w->b;
}

/* The slot of an operand on the devices; -1: none, or not the same everywhere. */
static int slot_of(const oly_plan *plan, const oly_step *product, int o)
{
    int slot = -1;
    for (int d = 0; d < plan->n_devices; d++) {
        const oly_gemm_work *w = &product->gemm.device[d];
        if (!w->has_work)
            continue;
        int here = oly_cell_slot(plan, operand_at(product, o, d)->base);
        if ((slot >= 0 && slot != here) || w->parts || w->task.k == 0 ||
            operand_at(product, o, d)->base != oly_cell(plan, d, here))
            return -1;
        slot = here;
    }
    return slot;
}

static bool is_narrow(oly_dtype from, oly_dtype to)
{
    return to == OLY_FLOAT32 ? from == OLY_BFLOAT16
                             : (to == OLY_INT32 || to == OLY_UINT32) && (from == OLY_INT8 || from == OLY_UINT8);
}

/* The load, of narrow elements, that store k, of 32-bit ones, is converted from; -1: it is something else. */
static int converted_load(const oly_tile_program *p, int k)
{
    for (int i = 0; i < p->n_instructions; i++) {
        const oly_tile_instruction *x = &p->instructions[i];
        if (x->out != p->store_register[k])
            continue;
        if (x->op != OLY_TILE_convert || x->to != p->store_dtype[k] || !is_narrow(x->dtype, x->to))
            return -1;
        for (int j = 0; j < p->n_loads; j++)
            if (p->load_register[j] == x->in[0] && p->load_dtype[j] == x->dtype)
                return j;
    }
    return -1;
}

/* Are the narrow elements where the wide ones would be, one by one? */
static bool same_places(const oly_tile_work *w, int load, int store)
{
    for (int k = 0; k < w->box.rank; k++)
        if (w->box.extent[k] > 1 && w->loads[load].stride[k] != w->stores[store].stride[k])
            return false;
    return true;
}

/* Products of bfloat16 may read them with other strides, as before a transpose; rows or columns are dense, as every operand's. */
static bool has_strides(const oly_gemm_work *w, int o, const oly_tile_program *p, const oly_tile_work *group)
{
    oly_gemm_task t = w->task;
    oly_narrow_read read;
    if (!oly_read_narrow(w, o, p, group, &t, &read))
        return false;
    return o == 0 ? t.a_column == 1 || t.a_row == 1 || t.m == 1 : t.b_row == 1 || t.b_column == 1 || t.n == 1;
}

/* Does the group nothing but convert what the product reads? */
static bool converts(const oly_plan *plan, const oly_step *group, const oly_step *product, const int *slots,
                     oly_step *const *of)
{
    const oly_tile_program *p = &group->tile.program;
    for (int d = 0; d < plan->n_devices; d++) {
        const oly_tile_work *w = &group->tile.device[d];
        if (w->has_work != product->gemm.device[d].has_work)
            return false;
        for (int k = 0; w->has_work && k < p->n_stores; k++) {
            int load = converted_load(p, k), slot = oly_cell_slot(plan, w->stores[k].base);
            bool read = (of[0] == group && slot == slots[0]) || (of[1] == group && slot == slots[1]);
            if (load < 0 || !read || w->stores[k].base != oly_cell(plan, d, slot) ||
                (p->store_dtype[k] != OLY_FLOAT32 && !same_places(w, load, k)))
                return false;
        }
        for (int o = 0; w->has_work && o < 2; o++)
            if (of[o] == group && !has_strides(&product->gemm.device[d], o, p, w))
                return false;
    }
    return true;
}

static void fuse(oly_plan *plan, const oly_block *b, int k)
{
    oly_step *product = &b->steps[k];
    if (product->kind != OLY_STEP_GEMM || product->exchange || product->gemm.n_phases || product->gemm.n_copies)
        return;
    oly_step *group[2];
    int slots[2];
    for (int o = 0; o < 2; o++) {
        slots[o] = slot_of(plan, product, o);
        const oly_slot *s = slots[o] >= 0 ? &plan->slots[slots[o]] : NULL;
        if (!s || s->kind != OLY_SLOT_SCRATCH || s->block != b || s->last != product->number)
            return;
        group[o] = oly_group_before(plan, b, k, s);
        if (!group[o])
            return;
    }
    for (int o = 0; o < 2; o++)
        if (!converts(plan, group[o], product, slots, group) || !oly_group_may_wait(plan, group[o], product))
            return;
    for (int o = 0; o < 2; o++) {
        product->gemm.converted[o] = group[o];
        oly_group_take(plan, group[o], product->number);
    }
}

void oly_fuse_products(oly_plan *plan)
{
    if (oly_enabled(OLY_OPTIMISATION_BYTE_PRODUCTS))
        oly_for_steps(plan, plan->main, fuse);
}
