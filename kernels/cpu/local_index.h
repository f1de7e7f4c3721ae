/* What gather.c and scatter.c share: reading indexes, and windows (the dimensions of an operand that are not indexed). */
#ifndef OLY_LOCAL_INDEX_H
#define OLY_LOCAL_INDEX_H
#include "local_table.h"

static inline int64_t oly_index_at(const oly_local_operand *x, const void *base, int64_t offset)
{
    return x->dtype == OLY_INT64 ? ((const int64_t *)base)[offset] : ((const int32_t *)base)[offset];
}

/* -- the positions that are indexed ---------------------------------------------------------------------------------- */

/* The index operands: dimensions shared by all, the first n_batch of them also with the array. */
typedef struct oly_indexes {
    int rank;
    int64_t extent[OLY_MAX_RANK];
    int64_t count;               /* positions */
    int64_t per_batch;           /* positions with the same batch */
    const oly_local_operand *at; /* [n_axes] */
    const void *const *base;     /* [n_axes] */
} oly_indexes;

static inline oly_indexes oly_indexes_of(const oly_local_task *t, const void *const *in, int rank)
{
    oly_indexes i = {.rank = rank, .count = 1, .per_batch = 1, .at = t->in + 1, .base = in + 1};
    for (int d = 0; d < rank; d++) {
        i.extent[d] = t->in[1].extent[d];
        i.count *= i.extent[d];
        i.per_batch *= d < t->n_batch ? 1 : i.extent[d];
    }
    return i;
}

/* Offset of the batch that position k belongs to, in an array with these strides. */
static inline int64_t oly_index_batch_offset(const oly_local_task *t, const int64_t *stride, const oly_indexes *i,
                                             int64_t k)
{
    return t->n_batch == 0 ? 0 : oly_local_offset(t->n_batch, i->extent, stride, -1, k / i->per_batch);
}

/* An index outside [0, n) as the mode has it; false: it does not count. */
static inline bool oly_index_inside(oly_index_mode mode, int64_t n, int64_t *index)
{
    if (*index >= 0 && *index < n)
        return true;
    if (mode == OLY_INDEX_FILL || n == 0)
        return false;
    if (mode == OLY_INDEX_WRAP)
        *index = (*index % n + n) % n;
    else
        *index = *index < 0 ? 0 : n - 1;
    return true;
}

/* Where position k leads in operand 0: adds to the offset. 1: inside its box; 0: outside the array; -1: in another part. */
static inline int oly_index_offset(const oly_local_task *t, const oly_indexes *i, int64_t k, int64_t *offset)
{
    const oly_local_operand *x = &t->in[0];
    bool elsewhere = false;
    for (int a = 0; a < t->n_axes; a++) {
        int d = t->axes[a];
        int64_t from = oly_local_offset(i->rank, i->extent, i->at[a].stride, -1, k);
        int64_t index = oly_index_at(&i->at[a], i->base[a], from);
        if (!oly_index_inside(t->mode, x->size[d], &index))
            return 0;
        index -= x->origin[d];
        elsewhere = elsewhere || index < 0 || index >= x->extent[d];
        *offset += index * x->stride[d];
    }
    return elsewhere ? -1 : 1;
}

/* -- windows --------------------------------------------------------------------------------------------------------- */

/* Dimensions merged where they are evenly spaced; always at least one. `count`: runs along the last one. */
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

/* The window of operand 0 whose elements are the trailing dimensions of `box`. */
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
