/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by gather.c and scatter.c: reading indexes, and windows (the dimensions of an operand that are not
 * indexed). */
#ifndef OLY_LOCAL_INDEX_H
#define OLY_LOCAL_INDEX_H
#include "cpu/index_inside.h"
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
    int64_t step, row; /* of the indexes: to the next position of a run, to the next run */
} oly_index_axis;

/* Positions are numbered row-major. Consecutive ones form runs, and runs that follow each other are resolved together, since they may be
 * as short as one position (an element of each row of a matrix). */
typedef struct oly_positions {
    oly_index_mode mode;
    int rank, n_batch, n_axes;
    int64_t extent[OLY_MAX_RANK];
    int64_t count, per_batch;    /* positions; those of one batch */
    const int64_t *batch_stride; /* of the array */
    int64_t run;                 /* positions of one batch that are evenly spaced in all operands that have them */
    int last;                    /* the dimension whose stride is their distance; -1: a run is one position */
    int64_t runs;       /* that are evenly spaced in all operands; 1: those after a run have to be found anew */
    int row, first_row; /* the dimensions of these; the distance is the stride of `row` */
    int64_t array_row;  /* from one run's batch to the next one's, in the array */
    oly_index_axis axis[OLY_MAX_RANK];
} oly_positions;

/* Is dimension d, with `n` elements of dimension `after` for each of its own, spaced like that one in all indexes and in the updates, if any? */
static inline bool oly_positions_continue(const oly_positions *p, const int64_t *updates, int d, int after, int64_t n)
{
    bool even = !updates || updates[d] == updates[after] * n;
    for (int a = 0; a < p->n_axes; a++)
        even = even && p->axis[a].at->stride[d] == p->axis[a].at->stride[after] * n;
    return even;
}

static inline int64_t oly_positions_array_stride(const oly_positions *p, int d)
{
    return d < p->n_batch ? p->batch_stride[d] : 0;
}

/* The distance of consecutive positions in an operand. */
static inline int64_t oly_positions_step(const oly_positions *p, const int64_t *stride)
{
    return p->last >= 0 ? stride[p->last] : p->row >= 0 ? stride[p->row] : 0;
}

/* Finds the run: as many of the last dimensions as are evenly spaced. Gives the dimension before them. */
static inline int oly_positions_find_run(oly_positions *p, const int64_t *updates)
{
    int d = p->rank - 1;
    p->run = 1;
    p->last = -1;
    for (; d >= p->n_batch; d--) {
        if (p->extent[d] == 1)
            continue;
        if (p->last >= 0 && !oly_positions_continue(p, updates, d, p->last, p->run))
            break;
        p->last = p->last >= 0 ? p->last : d;
        p->run *= p->extent[d];
    }
    return d;
}

/* Finds the runs that follow each other: those of dimension d and before it, as far as they are evenly spaced, also in the array. */
static inline void oly_positions_find_runs(oly_positions *p, const int64_t *updates, int d)
{
    p->runs = 1;
    p->row = p->first_row = -1;
    for (; d >= 0; d--) {
        if (p->extent[d] == 1)
            continue;
        if (p->row < 0 && p->last >= 0 && updates && updates[d] != updates[p->last] * p->run)
            break;
        if (p->row >= 0 && (!oly_positions_continue(p, updates, d, p->row, p->runs) ||
                            oly_positions_array_stride(p, d) != oly_positions_array_stride(p, p->row) * p->runs))
            break;
        p->row = p->row >= 0 ? p->row : d;
        p->first_row = d;
        p->runs *= p->extent[d];
    }
    p->array_row = p->row >= 0 ? oly_positions_array_stride(p, p->row) : 0;
}

static inline void oly_positions_divide(oly_positions *p, const int64_t *updates)
{
    oly_positions_find_runs(p, updates, oly_positions_find_run(p, updates));
    for (int a = 0; a < p->n_axes; a++) {
        oly_index_axis *x = &p->axis[a];
        x->step = oly_positions_step(p, x->at->stride);
        x->row = p->row >= 0 ? x->at->stride[p->row] : 0;
    }
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
                       .batch_stride = array->stride};
    for (int d = 0; d < p.rank; d++) {
        p.extent[d] = t->in[1].extent[d];
        p.count *= p.extent[d];
        p.per_batch *= d < t->n_batch ? 1 : p.extent[d];
    }
    for (int a = 0; a < t->n_axes; a++) {
        int d = t->axes[a];
        p.axis[a] = (oly_index_axis){.at = &t->in[1 + a],
                                     .base = in[1 + a],
                                     .size = array->size[d],
                                     .low = array->origin[d],
                                     .high = array->origin[d] + array->extent[d],
                                     .stride = array->stride[d],
                                     .origin = array->origin[d]};
    }
    oly_positions_divide(&p, updates ? updates->stride : NULL);
    return p;
}

/* How many positions from k on, at most `most`, are resolved together: some of a run, or several runs. They are evenly spaced in the
 * updates. */
static inline int64_t oly_positions_length(const oly_positions *p, int64_t k, int64_t most)
{
    int64_t at = k % p->run, left = p->run - at;
    most = most < OLY_POSITIONS ? most : OLY_POSITIONS;
    if (at > 0 || 2 * p->run > most)
        return left < most ? left : most;
    int64_t runs = p->runs - k / p->run % p->runs;
    return p->run * (runs < most / p->run ? runs : most / p->run);
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

/* Do n positions (oly_positions_length) belong to several batches? */
static inline bool oly_positions_differ(const oly_positions *p, int64_t n)
{
    return n > p->run && p->array_row != 0;
}

/* Not inline: once for many positions. */
#define OLY_POSITIONS_READ(I)                                                                                          \
    __attribute__((noinline)) static const I *oly_positions_read_##I(const oly_positions *p, const oly_index_axis *x,  \
                                                                     int64_t k, int64_t n, I *room)                    \
    {                                                                                                                  \
        const I *index = (const I *)x->base + oly_local_offset(p->rank, p->extent, x->at->stride, -1, k);              \
        bool even = n <= p->run || x->row == x->step * p->run;                                                         \
        if (even && x->step == 1)                                                                                      \
            return index;                                                                                              \
        int64_t run = even ? n : p->run;                                                                               \
        for (int64_t j = 0; j < n; j += run, index += x->row)                                                          \
            if (x->step == 1)                                                                                          \
                for (int64_t i = 0; i < run; i++)                                                                      \
                    room[j + i] = index[i];                                                                            \
            else                                                                                                       \
                for (int64_t i = 0; i < run; i++)                                                                      \
                    room[j + i] = index[i * x->step];                                                                  \
        return room;                                                                                                   \
    }
OLY_POSITIONS_READ(int32_t)
OLY_POSITIONS_READ(int64_t)

/* The indexes of n positions (oly_positions_length) from k on, side by side: where they are, or copied to `room`. */
static inline const void *oly_positions_read(const oly_positions *p, const oly_index_axis *x, int64_t k, int64_t n,
                                             int64_t *room)
{
    if (x->at->dtype == OLY_INT64)
        return oly_positions_read_int64_t(p, x, k, n, room);
    return oly_positions_read_int32_t(p, x, k, n, (int32_t *)(void *)room);
}

/* Adds the distances of indexes along one dimension. Usually all are here, which is tested first; else false, and states as in
 * oly_positions_follow. */
#define OLY_FOLLOW(I)                                                                                                  \
    static inline bool oly_follow_##I(const oly_positions *p, const oly_index_axis *x, int64_t n, const I *indexes,    \
                                      int64_t *offset, int8_t *state)                                                  \
    {                                                                                                                  \
        const int64_t origin = x->origin, stride = x->stride;                                                          \
        if (oly_all_inside_##I(n, indexes, x->low, x->high)) {                                                         \
            for (int64_t j = 0; j < n && stride == 1; j++)                                                             \
                offset[j] += indexes[j] - origin;                                                                      \
            for (int64_t j = 0; j < n && stride != 1; j++)                                                             \
                offset[j] += (indexes[j] - origin) * stride;                                                           \
            return true;                                                                                               \
        }                                                                                                              \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            int64_t index = indexes[j];                                                                                \
            if ((uint64_t)index >= (uint64_t)x->size) {                                                                \
                if (p->mode == OLY_INDEX_FILL || x->size == 0) {                                                       \
                    state[j] = 0;                                                                                      \
                    continue;                                                                                          \
                }                                                                                                      \
                index = oly_index_inside(p->mode, x->size, index);                                                     \
            }                                                                                                          \
            if (index < x->low || index >= x->high)                                                                    \
                state[j] = state[j] == 0 ? 0 : -1;                                                                     \
            offset[j] += (index - origin) * stride;                                                                    \
        }                                                                                                              \
        return false;                                                                                                  \
    }
OLY_FOLLOW(int32_t)
OLY_FOLLOW(int64_t)

/* Where in the array the batches of n positions (oly_positions_length) from k on begin: of the first run, and from those known of as many
 * again, so that the loops are long. */
static inline void oly_positions_batches(const oly_positions *p, int64_t k, int64_t n, int64_t *offset)
{
    int64_t batch = oly_positions_batch(p, k), first = oly_positions_differ(p, n) ? p->run : n, distance = p->array_row;
    for (int64_t j = 0; j < first; j++)
        offset[j] = batch;
    for (int64_t known = first; known < n; known *= 2, distance *= 2)
        for (int64_t j = 0; j < (known < n - known ? known : n - known); j++)
            offset[known + j] = offset[j] + distance;
}

/* Resolves n positions (oly_positions_length) from k on. state: 1 with an offset, 0 outside the array, -1 in another
 * part. True: all are here. */
static inline bool oly_positions_follow(const oly_positions *p, int64_t k, int64_t n, int64_t *offset, int8_t *state)
{
    int64_t room[OLY_POSITIONS];
    bool here = true;
    oly_positions_batches(p, k, n, offset);
    for (int64_t j = 0; j < n; j++)
        state[j] = 1;
    for (int a = 0; a < p->n_axes; a++) {
        const oly_index_axis *x = &p->axis[a];
        const void *index = oly_positions_read(p, x, k, n, room);
        here = (x->at->dtype == OLY_INT64 ? oly_follow_int64_t(p, x, n, index, offset, state)
                                          : oly_follow_int32_t(p, x, n, index, offset, state)) &&
               here;
    }
    return here;
}

/* -- fetching ahead --------------------------------------------------------------------------------------------------- */

enum { OLY_WORTH_FETCHING = 64, OLY_CACHE_LINE = 64 }; /* positions; bytes */

/* Memory that is needed soon, but long after what is before it, so that processors do not fetch it by themselves. */
static inline void oly_fetch_lines(const char *from, int64_t bytes)
{
    for (int64_t b = 0; b < bytes; b += OLY_CACHE_LINE)
        __builtin_prefetch(from + b, 0);
}

/* The indexes of n positions from k on, if they are enough and side by side. */
static inline void oly_positions_fetch(const oly_positions *p, int64_t k, int64_t n)
{
    for (int a = 0; a < p->n_axes && n >= OLY_WORTH_FETCHING; a++) {
        const oly_index_axis *x = &p->axis[a];
        int64_t bytes = x->at->dtype == OLY_INT64 ? 8 : 4;
        if (x->step == 1)
            oly_fetch_lines((const char *)x->base + oly_local_offset(p->rank, p->extent, x->at->stride, -1, k) * bytes,
                            n * bytes);
    }
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
