/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by gather.c and scatter.c: reading indexes, and windows (the dimensions of an operand that are not
 * indexed). */
#ifndef OLY_LOCAL_INDEX_H
#define OLY_LOCAL_INDEX_H
#include "local_table.h"

static inline int64_t oly_index_at(const oly_local_operand *x, const void *base, int64_t offset)
{
    return x->dtype == OLY_INT64 ? ((const int64_t *)base)[offset] : ((const int32_t *)base)[offset];
}

/* -- indexed positions --------------------------------------------------------------------------------------------- */

enum { OLY_POSITIONS = 512 }; /* read at a time */

/* One index operand and the dimension of the array that it indexes: `size` elements, of which [low, high) are here. */
typedef struct oly_index_axis {
    const oly_local_operand *at;
    const void *base;
    int64_t size, low, high;
    int64_t stride; /* of the array, whose element `origin` is at offset 0 */
    int64_t origin;
} oly_index_axis;

typedef struct oly_positions {
    oly_index_mode mode;
    int rank, n_batch, n_axes;
    int64_t extent[OLY_MAX_RANK];
    int64_t count, per_batch;    /* positions; those of one batch */
    const int64_t *batch_stride; /* of the array */
    bool even;                   /* positions of a batch are evenly spaced in all operands that have them */
    oly_index_axis axis[OLY_MAX_RANK];
} oly_positions;

/* Distance of consecutive positions; *even becomes false where they are not evenly spaced. */
static inline int64_t oly_position_step(const oly_positions *p, const int64_t *stride, bool *even)
{
    int64_t step = 0, next = 0;
    bool first = true;
    for (int d = p->rank - 1; d >= p->n_batch; d--) {
        if (p->extent[d] == 1)
            continue;
        if (first)
            step = stride[d];
        else if (stride[d] != next)
            *even = false;
        next = stride[d] * p->extent[d];
        first = false;
    }
    return step;
}

/* Positions in `array`, the box of operand 0 or of the result. updates: an operand whose leading dimensions they are,
 * or NULL. */
static inline oly_positions oly_positions_of(const oly_local_task *t, const void *const *in,
                                             const oly_local_operand *array, const oly_local_operand *updates)
{
    oly_positions p = {.mode = updates && t->mode == OLY_INDEX_PROMISE ? OLY_INDEX_FILL : t->mode,
                       .rank = t->in[1].rank,
                       .n_batch = t->n_batch,
                       .n_axes = t->n_axes,
                       .count = 1,
                       .per_batch = 1,
                       .batch_stride = array->stride,
                       .even = true};
    for (int d = 0; d < p.rank; d++) {
        p.extent[d] = t->in[1].extent[d];
        p.count *= p.extent[d];
        p.per_batch *= d < t->n_batch ? 1 : p.extent[d];
    }
    for (int a = 0; a < t->n_axes; a++) {
        int d = t->axes[a];
        p.axis[a] = (oly_index_axis){
            &t->in[1 + a],    in[1 + a],       array->size[d], array->origin[d], array->origin[d] + array->extent[d],
            array->stride[d], array->origin[d]};
        oly_position_step(&p, t->in[1 + a].stride, &p.even);
    }
    if (updates)
        oly_position_step(&p, updates->stride, &p.even);
    return p;
}

/* How many positions from k on, at most `most`, belong to one batch and are evenly spaced in each operand; *step in one
 * of them. */
static inline int64_t oly_positions_length(const oly_positions *p, int64_t k, int64_t most)
{
    int64_t run = p->even || p->rank == p->n_batch ? p->per_batch : p->extent[p->rank - 1], left = run - k % run;
    left = left < most ? left : most;
    return left < OLY_POSITIONS ? left : OLY_POSITIONS;
}
static inline int64_t oly_positions_step(const oly_positions *p, const int64_t *stride)
{
    bool unused;
    if (!p->even)
        return stride[p->rank - 1];
    return oly_position_step(p, stride, &unused);
}

/* An index outside [0, n) by the mode. */
static inline int64_t oly_index_inside(oly_index_mode mode, int64_t n, int64_t index)
{
    if (mode == OLY_INDEX_WRAP)
        return (index % n + n) % n;
    return index < 0 ? 0 : n - 1;
}

/* Where in the array the batch of position k begins. */
static inline int64_t oly_positions_batch(const oly_positions *p, int64_t k)
{
    return p->n_batch == 0 ? 0 : oly_local_offset(p->n_batch, p->extent, p->batch_stride, -1, k / p->per_batch);
}

#define OLY_FOLLOW(I)                                                                                                  \
    for (int64_t j = 0; j < n; j++) {                                                                                  \
        int64_t index = ((const I *)x->base)[from + j * step];                                                         \
        if ((uint64_t)index >= (uint64_t)x->size) {                                                                    \
            if (p->mode == OLY_INDEX_FILL || x->size == 0) {                                                           \
                state[j] = 0;                                                                                          \
                continue;                                                                                              \
            }                                                                                                          \
            index = oly_index_inside(p->mode, x->size, index);                                                         \
        }                                                                                                              \
        if (index < x->low || index >= x->high)                                                                        \
            state[j] = state[j] == 0 ? 0 : -1;                                                                         \
        offset[j] += (index - x->origin) * x->stride;                                                                  \
    }

/* Resolves n positions (oly_positions_length) from k on. state: 1 with an offset, 0 outside the array, -1 in another
 * part. */
static inline void oly_positions_follow(const oly_positions *p, int64_t k, int64_t n, int64_t *offset, int8_t *state)
{
    int64_t batch = oly_positions_batch(p, k);
    for (int64_t j = 0; j < n; j++) {
        offset[j] = batch;
        state[j] = 1;
    }
    for (int a = 0; a < p->n_axes; a++) {
        const oly_index_axis *x = &p->axis[a];
        int64_t from = oly_local_offset(p->rank, p->extent, x->at->stride, -1, k);
        int64_t step = oly_positions_step(p, x->at->stride);
        if (x->at->dtype == OLY_INT64) {
            OLY_FOLLOW(int64_t)
        } else {
            OLY_FOLLOW(int32_t)
        }
    }
}

/* The indexes from position k on where one dimension is indexed; else NULL. */
static inline const void *oly_positions_indexes(const oly_positions *p, int64_t k)
{
    const oly_index_axis *x = &p->axis[0];
    if (p->n_axes != 1)
        return NULL;
    return (const char *)x->base +
           oly_local_offset(p->rank, p->extent, x->at->stride, -1, k) * (x->at->dtype == OLY_INT64 ? 8 : 4);
}

/* -- windows --------------------------------------------------------------------------------------------------------- */

/* The window's dimensions, merged where evenly spaced; always at least one. `count`: rows along the last one. */
typedef struct oly_window {
    int rank;
    int64_t extent[OLY_MAX_RANK], stride[OLY_MAX_RANK];
    int64_t count;
} oly_window;

static inline bool oly_is_indexed(const oly_local_task *t, int d)
{
    bool indexed = d < t->n_batch;
    for (int a = 0; a < t->n_axes; a++)
        indexed = indexed || t->axes[a] == d;
    return indexed;
}

static inline void oly_window_add(oly_window *w, int64_t extent, int64_t stride)
{
    if (extent == 1)
        return;
    if (w->rank > 0 && w->stride[w->rank - 1] == stride * extent) {
        w->extent[w->rank - 1] *= extent;
        w->stride[w->rank - 1] = stride;
        return;
    }
    w->extent[w->rank] = extent;
    w->stride[w->rank++] = stride;
}

static inline void oly_window_end(oly_window *w)
{
    if (w->rank == 0) {
        w->extent[0] = w->stride[0] = 1;
        w->rank = 1;
    }
    w->count = 1;
    for (int d = 0; d < w->rank - 1; d++)
        w->count *= w->extent[d];
}

/* The window of operand 0 that consists of the trailing dimensions of `box`. */
static inline oly_window oly_window_of(const oly_local_task *t, const int64_t *stride, const oly_local_operand *box)
{
    oly_window w = {0};
    int rest = t->in[0].rank - t->n_batch - t->n_axes;
    for (int d = 0, e = box->rank - rest; d < t->in[0].rank; d++)
        if (!oly_is_indexed(t, d))
            oly_window_add(&w, box->extent[e++], stride[d]);
    oly_window_end(&w);
    return w;
}

static inline int64_t oly_window_offset(const oly_window *w, int64_t run)
{
    return oly_local_offset(w->rank - 1, w->extent, w->stride, -1, run);
}
#endif
