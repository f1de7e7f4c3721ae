/* SPDX-License-Identifier: BSD-3-Clause */
/* See narrow_reads.h. The group's box says which element of the load each element of the store is converted from. */
#include "plan/schedule/narrow_reads.h"
#include <olympus.h>

typedef struct mapping {
    const oly_tile_box *box;
    const int64_t *from, *to;   /* strides of the store and of the load in the box */
    int64_t last[OLY_MAX_RANK]; /* of all elements that are read, in each dimension of the box */
    bool fails;
} mapping;

/* The dimension of the box with the longest stride that divides a distance, or is not longer than it; -1: none. */
static int dimension_of(const mapping *m, int64_t distance, bool divides)
{
    int best = -1;
    for (int d = 0; d < m->box->rank; d++) {
        int64_t s = m->from[d];
        if (m->box->extent[d] > 1 && s > 0 && s <= distance && (!divides || distance % s == 0) &&
            (best < 0 || s > m->from[best]))
            best = d;
    }
    return best;
}

/* The stride in the load that is `stride` in the store, over so many elements. */
static void map_stride(mapping *m, int64_t extent, int64_t *stride)
{
    if (extent <= 1 || *stride == 0)
        return;
    const int d = dimension_of(m, *stride, true);
    if (d < 0) {
        m->fails = true;
        return;
    }
    const int64_t steps = *stride / m->from[d];
    m->last[d] += (extent - 1) * steps;
    *stride = steps * m->to[d];
}

static int64_t map_offset(mapping *m, int64_t offset)
{
    int64_t to = 0;
    while (offset > 0) {
        const int d = dimension_of(m, offset, false);
        if (d < 0)
            break;
        m->last[d] += offset / m->from[d];
        to += offset / m->from[d] * m->to[d];
        offset %= m->from[d];
    }
    m->fails |= offset != 0;
    return to;
}

static int store_of(const oly_tile_program *p, const oly_tile_work *group, int base)
{
    int store = 0;
    while (store < p->n_stores - 1 && group->stores[store].base != base)
        store++;
    return store;
}

static int load_of(const oly_tile_program *p, int store)
{
    int convert = 0, load = 0;
    while (p->instructions[convert].out != p->store_register[store])
        convert++;
    while (p->load_register[load] != p->instructions[convert].in[0])
        load++;
    return load;
}

bool oly_read_narrow(const oly_gemm_work *product, int o, const oly_tile_program *p, const oly_tile_work *group,
                     oly_gemm_task *task, oly_narrow_read *read)
{
    const oly_place *wide = o == 0 ? &product->a : &product->b;
    const int store = store_of(p, group, wide->base);
    read->load = load_of(p, store);
    mapping m = {&group->box, group->stores[store].stride, group->loads[read->load].stride, {0}, false};
    const int64_t bytes = wide->offset - group->stores[store].offset;
    read->offset = map_offset(&m, bytes / (int64_t)oly_dtype_size(p->store_dtype[store]));
    map_stride(&m, task->batch, o == 0 ? &task->a_batch : &task->b_batch);
    map_stride(&m, o == 0 ? task->m : task->n, o == 0 ? &task->a_row : &task->b_column);
    map_stride(&m, task->k, o == 0 ? &task->a_column : &task->b_row);
    for (int k = 0; k < task->n_outer; k++)
        map_stride(&m, task->outer[k], o == 0 ? &task->a_outer[k] : &task->b_outer[k]);
    for (int d = 0; d < m.box->rank; d++)
        m.fails |= m.last[d] >= m.box->extent[d]; /* no element, or another one than the store has there */
    return !m.fails && bytes >= 0;
}
