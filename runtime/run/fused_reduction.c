/* SPDX-License-Identifier: BSD-3-Clause */
/* See fused_reduction.h. */
#include "run/fused_reduction.h"
#include "device/platform.h"
#include "reduce_computed.h"
#include "run/compiled_groups.h"
#include <string.h>

enum { ENOUGH_CHUNKS = 16 }; /* of the reduction, whatever the group by itself would have */

/* Does the group read by rows? What is transposed is read in blocks, which need a box that is large in both directions. */
static bool reads_rows(const oly_step *group, int device)
{
    const oly_tile_work *w = &group->tile.device[device];
    int last = w->box.rank - 1;
    while (last >= 0 && w->box.extent[last] == 1)
        last--;
    for (int k = 0; k < group->tile.program.n_loads && last >= 0; k++)
        if (w->loads[k].stride[last] > 1 || w->loads[k].stride[last] < -1)
            return false;
    return true;
}

bool oly_is_fused(const oly_plan *plan, const oly_step *reduce)
{
    const oly_step *group = reduce->reduce.operand;
    int separate = 0, together = 0;
    if (!group || oly_platform_is_late())
        return false;
    for (int d = 0; d < plan->n_devices; d++) {
        const oly_reduce_work *w = &reduce->reduce.device[d];
        if (!w->has_work)
            continue;
        if (!oly_reduce_may_compute(&w->task) || !reads_rows(group, d))
            return false;
        separate += oly_tile_chunks(&group->tile.program, &group->tile.device[d].box);
        together += oly_reduce_chunks(&w->task);
    }
    return together >= ENOUGH_CHUNKS || 2 * together >= separate;
}

/* The group, with its operands on one device. */
typedef struct group_here {
    const oly_step *step;
    const oly_tile_box *box;
    int operand; /* the store that the reduction reads */
    oly_tile_operand loads[OLY_TILE_REGISTERS], stores[OLY_TILE_REGISTERS];
} group_here;

static void take_places(void *const *base, int n, const oly_place *places, int rank, oly_tile_operand *operands)
{
    for (int k = 0; k < n; k++) {
        operands[k].base = (char *)base[places[k].base] + places[k].offset;
        memcpy(operands[k].stride, places[k].stride, sizeof(int64_t) * (size_t)rank);
    }
}

/* The operands where the box begins at `low`. */
static void move(int n, const oly_tile_operand *all, const uint8_t *dtype, int rank, const int64_t *low,
                 oly_tile_operand *moved)
{
    for (int k = 0; k < n; k++) {
        int64_t by = 0;
        for (int d = 0; d < rank; d++)
            by += low[d] * all[k].stride[d];
        moved[k].base = all[k].base + by * (int64_t)oly_dtype_size((oly_dtype)dtype[k]);
        memcpy(moved[k].stride, all[k].stride, sizeof(int64_t) * (size_t)rank);
    }
}

static void compute(const void *context, const int64_t *low, const int64_t *extent, void *out)
{
    const group_here *g = context;
    const oly_tile_program *p = &g->step->tile.program;
    oly_tile_operand loads[OLY_TILE_REGISTERS], stores[OLY_TILE_REGISTERS];
    oly_tile_box box = *g->box;
    int64_t stride = 1;
    move(p->n_loads, g->loads, p->load_dtype, box.rank, low, loads);
    move(p->n_stores, g->stores, p->store_dtype, box.rank, low, stores);
    stores[g->operand].base = out;
    for (int d = box.rank - 1; d >= 0; d--) {
        box.origin[d] += low[d];
        box.extent[d] = extent[d];
        stores[g->operand].stride[d] = stride;
        stride *= extent[d];
    }
    (g->step->tile.compiles ? oly_group_run : oly_tile_run)(p, &box, loads, stores, 0, 1);
}

/* Fetches what the group reads there row by row. */
static void expect(const void *context, const int64_t *low, const int64_t *extent)
{
    const group_here *g = context;
    const oly_tile_program *p = &g->step->tile.program;
    oly_tile_operand loads[OLY_TILE_REGISTERS];
    int last = g->box->rank - 1, rows = 0;
    while (last >= 0 && extent[last] == 1)
        last--;
    for (int d = 0; d < last; d++)
        rows = extent[d] > 1 ? d : rows;
    move(p->n_loads, g->loads, p->load_dtype, g->box->rank, low, loads);
    for (int k = 0; k < p->n_loads && last > 0; k++) {
        int64_t bytes = (int64_t)oly_dtype_size((oly_dtype)p->load_dtype[k]);
        if (loads[k].stride[last] != 1 || loads[k].stride[rows] == 0)
            continue;
        for (int64_t row = 0; row < extent[rows]; row++)
            for (int64_t b = 0; b < extent[last] * bytes; b += 64)
                __builtin_prefetch(loads[k].base + row * loads[k].stride[rows] * bytes + b, 0, 2);
    }
}

void oly_run_fused(void *const *base, const oly_step *reduce, int device, int chunk, int n_chunks)
{
    const oly_step *step = reduce->reduce.operand;
    const oly_tile_work *w = &step->tile.device[device];
    const oly_reduce_work *r = &reduce->reduce.device[device];
    group_here g = {.step = step, .box = &w->box};
    const oly_reduce_source source = {compute, expect, &g};
    while (w->stores[g.operand].base != r->in.base)
        g.operand++;
    take_places(base, step->tile.program.n_loads, w->loads, w->box.rank, g.loads);
    take_places(base, step->tile.program.n_stores, w->stores, w->box.rank, g.stores);
    oly_reduce_computed(&r->task, &source, (char *)base[r->out_base] + r->out_offset,
                        r->scratch_base >= 0 ? base[r->scratch_base] : NULL, chunk, n_chunks);
}
