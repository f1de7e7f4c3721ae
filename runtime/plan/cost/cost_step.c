/* SPDX-License-Identifier: BSD-3-Clause */
/* Predicted time of a plan's steps. See cost.h. Assumes that the devices of a process share its work evenly and have
 * a core each. */
#include "plan/cost/cost.h"
#include "plan/model/time_tiling.h"

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double block_cost(const oly_plan *plan, const oly_block *b)
{
    double seconds = 0;
    for (int k = 0; b && k < b->n_steps; k++)
        seconds += oly_cost_step(plan, &b->steps[k]);
    return seconds;
}

/* Bytes from other processes cost the mesh's most distant level; bytes between devices of one process, the process
 * level. */
static double transfer_cost(const oly_plan *plan, const oly_step *s)
{
    if (s->messages == 0 || s->bytes == 0)
        return 0;
    oly_level level = s->exchange || s->second || s->begun ? oly_mesh_level(plan->mesh) : OLY_LEVEL_PROCESS;
    return oly_cost_transfer(level, (double)s->bytes, s->messages);
}

static double box_elements(const oly_tile_box *b)
{
    double n = 1;
    for (int d = 0; d < b->rank; d++)
        n *= (double)b->extent[d];
    return n;
}

/* Elementwise steps are limited by memory or by arithmetic. */
static double tile_cost(const oly_plan *plan, const oly_step *s)
{
    double bytes = 0, elements = 0;
    const oly_tile_program *program = &s->tile.program;
    for (int d = 0; d < plan->n_devices; d++)
        elements = larger(elements, s->tile.device[d].has_work ? box_elements(&s->tile.device[d].box) : 0);
    for (int k = 0; k < program->n_loads; k++)
        bytes += (double)oly_dtype_size((oly_dtype)program->load_dtype[k]);
    for (int k = 0; k < program->n_stores; k++)
        bytes += (double)oly_dtype_size((oly_dtype)program->store_dtype[k]);
    return larger(oly_cost_memory(bytes * elements), oly_cost_operations(elements * program->n_instructions));
}

static double of_a_device(const oly_plan *plan, double work)
{
    return work / (plan->n_devices > 0 ? plan->n_devices : 1);
}

static double stencil_cost(const oly_plan *plan, const oly_step *s)
{
    const oly_slot *field = &plan->slots[s->stencil.field_slot[0]];
    int64_t pass = s->stencil.pass > 0 ? s->stencil.pass : 1, passes = (s->stencil.count + pass - 1) / pass;
    if (s->stencil.tiling)
        return (double)passes * (s->stencil.tiling->seconds + block_cost(plan, s->stencil.margins[0]));
    double cells = (double)field->bytes / (double)oly_dtype_size(s->stencil.stencil->dtype);
    double once = larger(2 * oly_cost_memory((double)field->bytes),
                         oly_cost_operations(cells * s->stencil.stencil->n_taps * s->stencil.pass));
    double margins = block_cost(plan, s->stencil.margins[0]), meanwhile = s->stencil.early * once;
    return (double)passes * (once + larger(margins - meanwhile, 0));
}

/* Windows with a kernel are sums of products; others only combine elements. */
static bool is_convolution(const oly_step *s)
{
    return s->node && oly_ops[s->node->op].lowering == OLY_LOWER_WINDOW && s->node->n_in == 2;
}

double oly_cost_step(const oly_plan *plan, const oly_step *s)
{
    oly_dtype dtype = s->node ? s->node->type.dtype : OLY_FLOAT64;
    double longest = 0, element = (double)oly_dtype_size(dtype);
    switch (s->kind) {
    case OLY_STEP_TILE: return tile_cost(plan, s);
    case OLY_STEP_REDUCE: /* limited by reading its operand */
        return oly_cost_memory(of_a_device(plan, s->work) * (double)oly_dtype_size(s->node->in[0]->type.dtype));
    case OLY_STEP_GEMM: return oly_cost_gemm(dtype, of_a_device(plan, s->work));
    case OLY_STEP_MOVE: return transfer_cost(plan, s);
    case OLY_STEP_REDUCTION: return transfer_cost(plan, s) + oly_cost_memory(of_a_device(plan, s->work) * element);
    case OLY_STEP_CALL:
        return larger(oly_cost_operations(of_a_device(plan, s->work)),
                      oly_cost_memory(of_a_device(plan, s->call.bytes)));
    case OLY_STEP_LOCAL:
        return is_convolution(s) ? oly_cost_gemm(dtype, of_a_device(plan, s->work))
                                 : oly_cost_operations(of_a_device(plan, s->work));
    case OLY_STEP_LOOP: return (double)(s->loop.predicate < 0 ? s->loop.count : 1) * block_cost(plan, s->loop.body);
    case OLY_STEP_BRANCH:
        for (int k = 0; k < s->branch.n; k++)
            longest = larger(longest, block_cost(plan, s->branch.blocks[k]));
        return longest;
    case OLY_STEP_STENCIL: return stencil_cost(plan, s);
    case OLY_STEP_WAIT: return 0; /* counted with the step that started the exchange */
    }
    return 0;
}

double oly_cost_plan(const oly_plan *plan)
{
    return block_cost(plan, plan->main);
}
