/* SPDX-License-Identifier: BSD-3-Clause */
/* What row chains (row_chains.h) take: one kernel, which reads what comes from elsewhere once and writes what others read. See forecast_gpu.h. */
#include "run/cuda/forecast_gpu.h"
#include "run/measured_units.h"
#include <math.h>

static bool is_cell(const oly_step *s, int device, int cell)
{
    if (s->kind ==
        OLY_STEP_MOVE) /* a padded array, which the kernel reads in its operand: in whole, as the steps that read it say */
        return false;
    if (s->kind == OLY_STEP_REDUCE)
        return s->reduce.device[device].in.base == cell || s->reduce.device[device].out_base == cell;
    const oly_tile_work *w = &s->tile.device[device];
    for (int k = 0; k < s->tile.program.n_loads; k++)
        if (w->loads[k].base == cell)
            return true;
    for (int k = 0; k < s->tile.program.n_stores; k++)
        if (w->stores[k].base == cell)
            return true;
    return false;
}

/* Has one of the first n steps read it or made it? */
static bool is_at_hand(const oly_row_steps *rows, int n, int device, int cell)
{
    bool found = false;
    for (int k = 0; k < n && !found; k++)
        found = is_cell(&rows->steps[k], device, cell);
    return found;
}

static double group_bytes(const oly_row_steps *rows, int i, int device)
{
    const oly_tile_program *p = &rows->steps[i].tile.program;
    const oly_tile_work *w = &rows->steps[i].tile.device[device];
    double bytes = 0;
    for (int k = 0; k < p->n_loads; k++)
        if (!is_at_hand(rows, i, device, w->loads[k].base))
            bytes += oly_gpu_place_bytes(&w->box, &w->loads[k], p->load_dtype[k]);
    for (int k = 0; k < p->n_stores; k++)
        if (rows->needed[i] >> k & 1)
            bytes += oly_gpu_place_bytes(&w->box, &w->stores[k], p->store_dtype[k]);
    return bytes;
}

double oly_gpu_chain_seconds(const oly_gpu_rates *r, const oly_row_steps *rows, int device)
{
    enum { REDUCED = 2 }; /* lane clocks of an element */
    double bytes = 0, clocks = 0, least = INFINITY;
    for (int i = 0; i < rows->n; i++) {
        const oly_step *s = &rows->steps[i];
        if (s->kind == OLY_STEP_MOVE)
            continue;
        if (s->kind == OLY_STEP_TILE) {
            const oly_tile_work *w = &s->tile.device[device];
            if (!w->has_work)
                return 0;
            bytes += group_bytes(rows, i, device);
            clocks += oly_box_elements(w->box.rank, w->box.extent) * oly_gpu_program_clocks(&s->tile.program);
            continue;
        }
        const oly_reduce_work *w = &s->reduce.device[device];
        const oly_reduce_task *t = &w->task;
        double n = oly_box_elements(t->rank, t->extent), kept = 1;
        if (!w->has_work)
            return 0;
        for (int d = 0; d < t->rank; d++)
            kept *= t->reduced[d] ? 1 : (double)t->extent[d];
        bytes +=
            is_at_hand(rows, i, device, w->in.base) ? 0 : n * (double)oly_dtype_size(t->converts ? t->from : t->dtype);
        bytes += rows->needed[i] & 1 ? kept * (double)oly_dtype_size(t->dtype) : 0;
        clocks += REDUCED * n;
        least = fmin(least, kept);
    }
    double share = least < OLY_REDUCE_PARTS ? OLY_GPU_REDUCE_WHOLE : OLY_GPU_ROW_CHAIN;
    return oly_gpu_kernel_seconds(r, bytes / share, 0) + clocks / r->lanes;
}
