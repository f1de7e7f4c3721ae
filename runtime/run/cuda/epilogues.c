/* SPDX-License-Identifier: BSD-3-Clause */
/* Products whose bias is added in the library's epilogue. See epilogues.h.
 *
 * The bits are those of two steps: the sum is rounded to float32 or float64, in which it was accumulated, then the bias is added and
 * rounded. Of 16-bit types the epilogue would round once less, so they keep two steps. So do activations: the library does not say what
 * becomes of NaN in its ReLU, and its GELU is another formula than ours. */
#include "run/cuda/epilogues.h"
#include "cuda/launch.h"
#include "core/error.h"
#include "core/optimisation.h"
#include "device/cuda/gpus.h"
#include "run/cuda/steps.h"
#include "run/prepare_cpu.h"
#include "run/prepared_steps.h"

enum { ALIGNED = 16 };

/* -- the pattern ------------------------------------------------------------------------------------------------------------------- */

/* One addition of two loads of a type whose sums are rounded the same way in the epilogue. */
static bool is_addition(const oly_tile_program *p)
{
    const oly_tile_instruction *i = p->instructions;
    return oly_cuda_has_tile(p) && p->n_loads == 2 && p->n_stores == 1 && p->n_instructions == 1 &&
           i->op == OLY_TILE_add && i->to == i->dtype && (i->dtype == OLY_FLOAT32 || i->dtype == OLY_FLOAT64) &&
           p->store_register[0] == i->out && p->load_dtype[0] == i->dtype && p->load_dtype[1] == i->dtype &&
           p->store_dtype[0] == i->dtype && p->load_register[0] != p->load_register[1] &&
           ((i->in[0] == p->load_register[0] && i->in[1] == p->load_register[1]) ||
            (i->in[0] == p->load_register[1] && i->in[1] == p->load_register[0]));
}

static bool is_dense(const oly_tile_box *box, const oly_place *at)
{
    int64_t dense = 1;
    for (int d = box->rank - 1; d >= 0; d--) {
        if (box->extent[d] != 1 && at->stride[d] != dense)
            return false;
        dense *= box->extent[d];
    }
    return true;
}

/* A vector along the last dimension of n elements, the same for all others. */
static bool is_bias(const oly_tile_box *box, const oly_place *at, int64_t n)
{
    int last = box->rank - 1;
    if (last < 0 || box->extent[last] != n || (n > 1 && at->stride[last] != 1))
        return false;
    for (int d = 0; d < last; d++)
        if (box->extent[d] != 1 && at->stride[d] != 0)
            return false;
    return true;
}

/* Elements of the result; -1: not dense. */
static int64_t dense_result(const oly_gemm_task *t)
{
    int64_t dense = t->m * t->n;
    if ((t->m > 1 && t->c_row != t->n) || (t->batch > 1 && t->c_batch != dense))
        return -1;
    dense *= t->batch;
    for (int k = t->n_outer - 1; k >= 0; k--) {
        if (t->outer[k] > 1 && t->c_outer[k] != dense)
            return -1;
        dense *= t->outer[k];
    }
    return dense;
}

static int64_t elements(const oly_tile_box *box)
{
    int64_t n = 1;
    for (int d = 0; d < box->rank; d++)
        n *= box->extent[d];
    return n;
}

/* Is load k the whole product, and the other its bias, on this device? */
static bool adds_bias(const oly_plan *plan, const oly_gemm_work *p, const oly_tile_work *w, oly_dtype dtype, int k,
                      int device)
{
    const oly_place *product = &w->loads[k], *bias = &w->loads[1 - k];
    return p->has_work && w->has_work && !p->parts && p->task.dtype == dtype && product->base == p->out_base &&
           product->offset == 0 && bias->base != p->out_base && is_dense(&w->box, product) &&
           is_dense(&w->box, &w->stores[0]) && is_bias(&w->box, bias, p->task.n) &&
           elements(&w->box) == dense_result(&p->task) && oly_cuda_has_gemm(&p->task) &&
           oly_cell_device(plan, p->out_base) == device && oly_cell_device(plan, p->a.base) == device &&
           oly_cell_device(plan, p->b.base) == device && oly_cell_device(plan, bias->base) == device &&
           oly_cell_device(plan, w->stores[0].base) == device;
}

/* Nothing else reads the product. */
static bool is_read_once(const oly_plan *plan, int cell, const oly_step *reader)
{
    const oly_slot *s = &plan->slots[oly_cell_slot(plan, cell)];
    return s->kind == OLY_SLOT_SCRATCH && !s->claimed && !s->shared && s->last == reader->number;
}

/* The load that is the bias; -1: it is no such pair. */
static int bias_load(const oly_plan *plan, const oly_step *product, const oly_step *add)
{
    if (product->kind != OLY_STEP_GEMM || product->exchange || product->gemm.n_phases || add->kind != OLY_STEP_TILE ||
        !is_addition(&add->tile.program))
        return -1;
    for (int k = 0; k < 2; k++) {
        int fitting = 0, working = 0;
        for (int d = 0; d < plan->n_devices; d++) {
            const oly_gemm_work *p = &product->gemm.device[d];
            const oly_tile_work *w = &add->tile.device[d];
            if (!p->has_work && !w->has_work)
                continue;
            working++;
            fitting += adds_bias(plan, p, w, (oly_dtype)add->tile.program.load_dtype[0], k, d) &&
                       is_read_once(plan, p->out_base, add) && plan->devices[d] < oly_cuda_device_count();
        }
        if (working > 0 && fitting == working)
            return 1 - k;
    }
    return -1;
}

/* -- plans ------------------------------------------------------------------------------------------------------------------------- */

static oly_status join(oly_plan *plan, oly_step *product, oly_step *add, int bias)
{
    oly_epilogue *e = OLY_ARENA_NEW(&plan->arena, oly_epilogue, 1);
    oly_prepared *first = oly_prepared_own(plan, product), *second = oly_prepared_own(plan, add);
    if (!e || !first || !second)
        return oly_out_of_memory(sizeof *first, "a program");
    *e = (oly_epilogue){product, bias};
    first->with_next = true;
    second->epilogue = e;
    return OLY_OK;
}

static oly_status find_in(const oly_block *b, void *context)
{
    oly_plan *plan = context;
    for (int k = 0; k < b->n_steps; k++) {
        oly_step *s = &b->steps[k];
        int bias = k + 1 < b->n_steps ? bias_load(plan, s, s + 1) : -1;
        if (bias >= 0)
            OLY_TRY(join(plan, s, s + 1, bias));
    }
    return OLY_OK;
}

oly_status oly_cuda_find_epilogues(oly_plan *plan)
{
    bool on = oly_enabled(OLY_OPTIMISATION_PRODUCT_EPILOGUES) && oly_enabled(OLY_OPTIMISATION_LIBRARY_PRODUCTS);
    return on ? oly_each_block(plan->main, find_in, plan) : OLY_OK;
}

/* -- memory ------------------------------------------------------------------------------------------------------------------------ */

/* The result is written before all is read: plans may give it the memory of an operand of the product, which the addition does not read. */
const void *oly_cuda_bias_of(const oly_plan *plan, const oly_epilogue *e, const oly_step *add, void *const *base,
                             int device)
{
    const oly_gemm_work *p = &e->product->gemm.device[device];
    const oly_tile_work *w = &add->tile.device[device];
    const oly_place *bias = &w->loads[e->bias];
    const int reads[] = {p->a.base, p->b.base, bias->base};
    const char *at = (const char *)base[bias->base] + bias->offset;
    for (int k = 0; k < 3; k++)
        if (oly_cells_overlap(plan, base, reads[k], w->stores[0].base))
            return NULL;
    return (uintptr_t)at % ALIGNED == 0 ? at : NULL;
}
