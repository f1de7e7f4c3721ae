/* SPDX-License-Identifier: BSD-3-Clause */
/* See fused_reduction.h. */
#include "run/fused_reduction.h"
#include "device/platform.h"
#include "reduce_computed.h"
#include "run/compiled_groups.h"
#include <string.h>

enum { ENOUGH_CHUNKS = 16 };       /* of the reduction, whatever the group by itself would have */
static const double MOSTLY = 0.75; /* of the operand, where parts of the group, its margins, are columns */

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

static double volume_of(const oly_step *group, int device)
{
    const oly_tile_work *w = &group->tile.device[device];
    double n = w->has_work ? 1 : 0;
    for (int d = 0; d < w->box.rank; d++)
        n *= (double)w->box.extent[d];
    return n;
}

bool oly_is_fused(const oly_plan *plan, const oly_step *reduce)
{
    int separate = 0, together = 0;
    if (!reduce->reduce.operand || oly_platform_is_late())
        return false;
    for (int d = 0; d < plan->n_devices; d++) {
        const oly_reduce_work *w = &reduce->reduce.device[d];
        double all = 0, by_rows = 0;
        if (!w->has_work)
            continue;
        for (int k = 0; k < oly_operand_steps(reduce); k++) {
            const oly_step *group = oly_operand_step(reduce, k);
            if (volume_of(group, d) == 0)
                continue;
            all += volume_of(group, d);
            by_rows += reads_rows(group, d) ? volume_of(group, d) : 0;
            separate += oly_tile_chunks(&group->tile.program, &group->tile.device[d].box);
        }
        if (!oly_reduce_may_compute(&w->task) || by_rows < MOSTLY * all)
            return false;
        together += oly_reduce_chunks(&w->task);
    }
    return together >= ENOUGH_CHUNKS || 2 * together >= separate;
}

/* The group, or one of its parts, on one device. */
typedef struct group_here {
    const oly_step *step;
    const oly_tile_work *work;
    int64_t begin[OLY_MAX_RANK]; /* of its box in that of the reduction */
    int operand;                 /* the store that the reduction reads */
} group_here;

typedef struct groups_here {
    void *const *base; /* of every buffer */
    int n;
    group_here group[OLY_MOST_OPERAND_STEPS];
} groups_here;

/* The operands where the box begins at `low`. */
static void take_places(void *const *base, int n, const oly_place *places, const uint8_t *dtype, int rank,
                        const int64_t *low, oly_tile_operand *operands)
{
    for (int k = 0; k < n; k++) {
        int64_t by = 0;
        for (int d = 0; d < rank; d++)
            by += low[d] * places[k].stride[d];
        operands[k].base =
            (char *)base[places[k].base] + places[k].offset + by * (int64_t)oly_dtype_size((oly_dtype)dtype[k]);
        memcpy(operands[k].stride, places[k].stride, sizeof(int64_t) * (size_t)rank);
    }
}

/* What a box of the reduction has of the group's box, relative to that. False: nothing. */
static bool shared_box(const group_here *g, const int64_t *low, const int64_t *extent, int64_t *first, int64_t *n)
{
    const oly_tile_box *box = &g->work->box;
    for (int d = 0; d < box->rank; d++) {
        int64_t end = low[d] + extent[d] - g->begin[d];
        first[d] = low[d] > g->begin[d] ? low[d] - g->begin[d] : 0;
        n[d] = (end < box->extent[d] ? end : box->extent[d]) - first[d];
        if (n[d] <= 0)
            return false;
    }
    return true;
}

static void compute_group(void *const *base, const group_here *g, const int64_t *low, const int64_t *extent, char *out)
{
    const oly_tile_program *p = &g->step->tile.program;
    oly_tile_operand loads[OLY_TILE_REGISTERS], stores[OLY_TILE_REGISTERS];
    oly_tile_box box = g->work->box;
    int64_t stride = 1, first[OLY_MAX_RANK], n[OLY_MAX_RANK];
    if (!shared_box(g, low, extent, first, n))
        return;
    take_places(base, p->n_loads, g->work->loads, p->load_dtype, box.rank, first, loads);
    take_places(base, p->n_stores, g->work->stores, p->store_dtype, box.rank, first, stores);
    for (int d = box.rank - 1; d >= 0; d--) {
        out +=
            (g->begin[d] + first[d] - low[d]) * stride * (int64_t)oly_dtype_size((oly_dtype)p->store_dtype[g->operand]);
        box.origin[d] += first[d];
        box.extent[d] = n[d];
        stores[g->operand].stride[d] = stride;
        stride *= extent[d];
    }
    stores[g->operand].base = out;
    (g->step->tile.compiles ? oly_group_run : oly_tile_run)(p, &box, loads, stores, 0, 1);
}

static void compute(const void *context, const int64_t *low, const int64_t *extent, void *out)
{
    const groups_here *all = context;
    for (int k = 0; k < all->n; k++)
        compute_group(all->base, &all->group[k], low, extent, out);
}

/* Fetches what the group reads there row by row. */
static void expect_group(void *const *base, const group_here *g, const int64_t *low, const int64_t *extent)
{
    const oly_tile_program *p = &g->step->tile.program;
    oly_tile_operand loads[OLY_TILE_REGISTERS];
    int64_t first[OLY_MAX_RANK], n[OLY_MAX_RANK];
    int last = g->work->box.rank - 1, rows = 0;
    if (!shared_box(g, low, extent, first, n))
        return;
    while (last >= 0 && n[last] == 1)
        last--;
    for (int d = 0; d < last; d++)
        rows = n[d] > 1 ? d : rows;
    take_places(base, p->n_loads, g->work->loads, p->load_dtype, g->work->box.rank, first, loads);
    for (int k = 0; k < p->n_loads && last > 0; k++) {
        int64_t bytes = (int64_t)oly_dtype_size((oly_dtype)p->load_dtype[k]);
        if (loads[k].stride[last] != 1 || loads[k].stride[rows] == 0)
            continue;
        for (int64_t row = 0; row < n[rows]; row++)
            for (int64_t b = 0; b < n[last] * bytes; b += 64)
                __builtin_prefetch(loads[k].base + row * loads[k].stride[rows] * bytes + b, 0, 2);
    }
}

static void expect(const void *context, const int64_t *low, const int64_t *extent)
{
    const groups_here *all = context;
    for (int k = 0; k < all->n; k++)
        expect_group(all->base, &all->group[k], low, extent);
}

void oly_run_fused(void *const *base, const oly_step *reduce, int device, int chunk, int n_chunks)
{
    const oly_reduce_work *r = &reduce->reduce.device[device];
    groups_here all = {.base = base};
    int64_t origin[OLY_MAX_RANK] = {0};
    const oly_reduce_source source = {compute, expect, &all};
    for (int k = 0; k < oly_operand_steps(reduce); k++) {
        const oly_step *step = oly_operand_step(reduce, k);
        const oly_tile_work *w = &step->tile.device[device];
        if (!w->has_work)
            continue;
        group_here *g = &all.group[all.n++];
        *g = (group_here){.step = step, .work = w};
        while (w->stores[g->operand].base != r->in.base)
            g->operand++;
        for (int d = 0; d < w->box.rank; d++)
            origin[d] = all.n == 1 || w->box.origin[d] < origin[d] ? w->box.origin[d] : origin[d];
    }
    for (int k = 0; k < all.n; k++)
        for (int d = 0; d < r->task.rank; d++)
            all.group[k].begin[d] = all.group[k].work->box.origin[d] - origin[d];
    oly_reduce_computed(&r->task, &source, (char *)base[r->out_base] + r->out_offset,
                        r->scratch_base >= 0 ? base[r->scratch_base] : NULL, chunk, n_chunks);
}
