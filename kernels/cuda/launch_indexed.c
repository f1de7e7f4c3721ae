/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of gathers, of slices and updates at computed positions, and of the places of a scatter's positions: indexed.cu. */
#include "cuda/local_launches.h"
#include "core/dtype_list.h"
#include "core/error.h"
#include "core/min_max.h"
#include "local_table.h"
#include "special_values.h"
#include <math.h>
#include <string.h>

bool oly_cuda_is_indexed(const oly_local_task *t, int d)
{
    bool indexed = d < t->n_batch;
    for (int a = 0; a < t->n_axes; a++)
        indexed = indexed || t->axes[a] == d;
    return indexed;
}

/* -- boxes that are visited --------------------------------------------------------------------------------------------------- */

/* A dimension of the box: its distance in the box and in the array, and, for those of the positions, in the indexes. */
typedef struct dimension {
    int64_t extent, stride, at_stride;
    const oly_local_operand *index; /* the first of n_axes operands; NULL: no dimension of the positions */
    int number;                     /* of them, in the positions */
    bool apart;                     /* not merged with others */
} dimension;

static int64_t index_stride(const dimension *d, int axis)
{
    return d->index ? d->index[axis].stride[d->number] : 0;
}

static bool merges(const oly_cuda_indexed_task *t, const dimension *d)
{
    int last = t->rank - 1;
    bool even = last >= 0 && !d->apart && t->stride[last] == d->stride * d->extent &&
                t->at_stride[last] == d->at_stride * d->extent;
    for (int a = 0; a < t->n_axes; a++)
        even = even && t->axis[a].along != last && t->axis[a].stride[last] == index_stride(d, a) * d->extent;
    return even;
}

/* Returns its number; -1: it has only one index. */
static int add_dimension(oly_cuda_indexed_task *t, dimension d)
{
    int last = t->rank - 1;
    t->n *= d.extent;
    if (d.extent == 1)
        return -1;
    if (merges(t, &d))
        t->extent[last] *= d.extent;
    else
        t->extent[last = t->rank++] = d.extent;
    t->stride[last] = d.stride;
    t->at_stride[last] = d.at_stride;
    for (int a = 0; a < t->n_axes; a++)
        t->axis[a].stride[last] = index_stride(&d, a);
    return last;
}

static oly_cuda_axis axis_of(const oly_local_operand *index, const void *base, const oly_local_operand *array, int d)
{
    return (oly_cuda_axis){.index = base,
                           .wide = index->dtype == OLY_INT64,
                           .along = -1,
                           .size = array->size[d],
                           .low = array->origin[d],
                           .high = array->origin[d] + array->extent[d],
                           .step = array->stride[d]};
}

static oly_status start(const oly_cuda_launcher *l, const char *kernel, const oly_cuda_indexed_task *t)
{
    return t->n == 0 ? OLY_OK
                     : oly_cuda_start(l, "indexed", kernel, oly_cuda_blocks(l, t->n, OLY_CUDA_THREADS),
                                      OLY_CUDA_THREADS, t, sizeof *t);
}

/* -- values that are read where there is no element ------------------------------------------------------------------------------ */

/* Repeated, for kernels that move several elements at a time. */
static void set_value(uint64_t value[2], oly_dtype dtype, void (*of)(oly_dtype dtype, void *value))
{
    char *to = (char *)value;
    of(dtype, to);
    for (size_t bytes = oly_element_bytes[dtype]; bytes < 16; bytes *= 2)
        memcpy(to + bytes, to, bytes);
}

/* Is this the part that gives the result of indexes outside the array? The first one that has elements. */
static bool is_first_part(const oly_local_task *t)
{
    for (int a = 0; a < t->n_axes; a++)
        if (t->in[0].origin[t->axes[a]] != 0 || t->in[0].extent[t->axes[a]] == 0)
            return false;
    return true;
}

/* -- reading ---------------------------------------------------------------------------------------------------------------------- */

/* Two adjacent elements as one of twice the size, if all there are can be paired. */
static bool pair_elements(oly_cuda_indexed_task *t)
{
    int last = t->rank - 1, bytes = 2 * t->bytes;
    if (bytes > 16 || last < 0 || t->at_stride[last] != 1 || t->extent[last] % 2 != 0 ||
        ((uintptr_t)t->to | (uintptr_t)t->from) % (uintptr_t)bytes != 0)
        return false;
    for (int d = 0; d < last; d++)
        if (t->at_stride[d] % 2 != 0)
            return false;
    for (int a = 0; a < t->n_axes; a++)
        if (t->axis[a].stride[last] != 0 || t->axis[a].along >= 0 || t->axis[a].step % 2 != 0)
            return false;
    for (int d = 0; d < last; d++)
        t->at_stride[d] /= 2;
    for (int a = 0; a < t->n_axes; a++)
        t->axis[a].step /= 2;
    t->extent[last] /= 2;
    t->n /= 2;
    t->bytes = bytes;
    return true;
}

/* Can the kernels for one index for each element read them? */
static bool reads_by_one(const oly_cuda_indexed_task *t)
{
    return t->from && t->n > 0 && t->n < INT32_MAX && t->n_axes == 1 && t->rank >= 1 && t->rank <= OLY_CUDA_FEW &&
           t->axis[0].along < 0 && t->mode != OLY_CUDA_START &&
           ((uintptr_t)t->to | (uintptr_t)t->from) % (uintptr_t)t->bytes == 0;
}

/* Blocks of 16 elements for each thread, or of fewer where the device would have nothing to do. */
static oly_status start_by_one(const oly_cuda_launcher *l, const oly_cuda_indexed_task *t)
{
    enum { EACH = 16, BUSY = 8 };
    static const char *const kernels[] = {"oly_indexed_read_1", "oly_indexed_read_2", "oly_indexed_read_4",
                                          "oly_indexed_read_8", "oly_indexed_read_16"};
    int64_t all = (t->n + OLY_CUDA_THREADS - 1) / OLY_CUDA_THREADS, few = (all + EACH - 1) / EACH;
    int64_t blocks = oly_larger(few, oly_smaller(all, (int64_t)l->processors * BUSY));
    int size = 0;
    while (1 << size < t->bytes)
        size++;
    return oly_cuda_start(l, "indexed", kernels[size], oly_cuda_blocks(l, blocks, 1), OLY_CUDA_THREADS, t, sizeof *t);
}

/* One position for all of a slice, of rows that are long enough for a block. */
static bool reads_slice(const oly_cuda_indexed_task *t)
{
    enum { LONG = 64 };
    bool one = t->from && t->n > 0 && t->mode == OLY_CUDA_START && t->extent[t->rank - 1] >= LONG &&
               ((uintptr_t)t->to | (uintptr_t)t->from) % (uintptr_t)t->bytes == 0;
    for (int a = 0; one && a < t->n_axes; a++) {
        one = t->axis[a].along < 0;
        for (int d = 0; d < t->rank; d++)
            one = one && t->axis[a].stride[d] == 0;
    }
    return one;
}

static oly_status start_slice(const oly_cuda_launcher *l, const oly_cuda_indexed_task *t)
{
    const int64_t length = t->extent[t->rank - 1], part = 8 * OLY_CUDA_THREADS;
    return oly_cuda_start(l, "indexed", oly_cuda_sized(OLY_CUDA_SIZED("oly_indexed_slice_"), (size_t)t->bytes),
                          oly_cuda_blocks(l, t->n / length * ((length + part - 1) / part), 1), OLY_CUDA_THREADS, t,
                          sizeof *t);
}

static oly_status read_elements(const oly_cuda_launcher *l, oly_cuda_indexed_task *t)
{
    while (t->from && t->n > 0 && pair_elements(t))
        ;
    if (t->rank > 0 && reads_slice(t))
        return start_slice(l, t);
    return reads_by_one(t) ? start_by_one(l, t) : start(l, "oly_indexed_read", t);
}

oly_status oly_cuda_gather(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                           void *scratch)
{
    (void)scratch;
    const oly_local_operand *x = &t->in[0], *index = &t->in[1];
    oly_cuda_indexed_task g = {.to = out,
                               .from = in[0],
                               .n = 1,
                               .n_axes = t->n_axes,
                               .mode = (int32_t)t->mode,
                               .bytes = (int32_t)oly_element_bytes[x->dtype]};
    bool outside = !t->partial || is_first_part(t);
    set_value(g.value[0], x->dtype, outside ? oly_outside_value : oly_unseen_value);
    set_value(g.value[1], x->dtype, oly_unseen_value);
    for (int a = 0; a < t->n_axes; a++)
        g.axis[a] = axis_of(&index[a], in[1 + a], x, t->axes[a]);
    for (int d = 0; d < index->rank; d++)
        add_dimension(&g, (dimension){.extent = index->extent[d],
                                      .at_stride = d < t->n_batch ? x->stride[d] : 0,
                                      .index = index,
                                      .number = d});
    int window = index->rank;
    for (int d = 0; d < x->rank; d++)
        if (!oly_cuda_is_indexed(t, d))
            add_dimension(&g, (dimension){.extent = t->out.extent[window++], .at_stride = x->stride[d]});
    return read_elements(l, &g);
}

/* The axis of a slice of `extent` elements at a computed position: the position is moved so that all of it is inside. */
static oly_cuda_axis slice_axis(const oly_local_operand *start, const void *base, const oly_local_operand *array, int d,
                                int64_t extent)
{
    oly_cuda_axis a = axis_of(start, base, array, d);
    a.size -= extent;
    return a;
}

oly_status oly_cuda_slice(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                          void *scratch)
{
    (void)scratch;
    const oly_local_operand *x = &t->in[0], *y = &t->out;
    oly_cuda_indexed_task g = {.to = out,
                               .from = in[0],
                               .n = 1,
                               .n_axes = x->rank - t->n_batch,
                               .mode = OLY_CUDA_START,
                               .bytes = (int32_t)oly_element_bytes[x->dtype]};
    set_value(g.value[0], x->dtype, oly_unseen_value);
    set_value(g.value[1], x->dtype, oly_unseen_value);
    for (int a = 0; a < g.n_axes; a++) {
        int d = t->n_batch + a;
        g.axis[a] = slice_axis(&t->in[1 + a], in[1 + a], x, d, y->size[d]);
        g.axis[a].shift = y->origin[d];
    }
    for (int d = 0; d < t->n_batch; d++)
        add_dimension(&g,
                      (dimension){.extent = y->extent[d], .at_stride = x->stride[d], .index = &t->in[1], .number = d});
    for (int d = t->n_batch; d < x->rank; d++) { /* of a part, each element is here or not */
        int64_t stride = t->partial ? 0 : x->stride[d];
        int number = add_dimension(&g, (dimension){.extent = y->extent[d], .at_stride = stride, .apart = t->partial});
        if (t->partial)
            g.axis[d - t->n_batch].along = number;
    }
    return read_elements(l, &g);
}

/* -- writing ---------------------------------------------------------------------------------------------------------------------- */

oly_status oly_cuda_copy_operand(const oly_cuda_launcher *l, const oly_local_task *t, const void *in, void *out)
{
    const oly_local_operand *x = &t->in[0], *y = &t->out;
    oly_copy_task c = {.element_bytes = oly_element_bytes[x->dtype], .rank = x->rank};
    size_t bytes = sizeof *c.extent * (size_t)x->rank;
    memcpy(c.extent, y->extent, bytes);
    memcpy(c.to_stride, y->stride, bytes);
    memcpy(c.from_stride, x->stride, bytes);
    return in == out ? OLY_OK : oly_cuda_copy(l, &c, out, in);
}

oly_status oly_cuda_update(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                           void *scratch)
{
    (void)scratch;
    const oly_local_operand *x = &t->in[0], *part = &t->in[1], *y = &t->out;
    oly_cuda_indexed_task g = {.to = out,
                               .from = in[1],
                               .n = 1,
                               .n_axes = x->rank - t->n_batch,
                               .mode = OLY_CUDA_START,
                               .bytes = (int32_t)oly_element_bytes[x->dtype]};
    OLY_TRY(oly_cuda_copy_operand(l, t, in[0], out));
    for (int a = 0; a < g.n_axes; a++) {
        int d = t->n_batch + a;
        g.axis[a] = slice_axis(&t->in[2 + a], in[2 + a], y, d, part->size[d]);
        g.axis[a].shift = part->origin[d];
    }
    for (int d = 0; d < t->n_batch; d++)
        add_dimension(&g, (dimension){.extent = y->extent[d],
                                      .stride = part->stride[d],
                                      .at_stride = y->stride[d],
                                      .index = &t->in[2],
                                      .number = d});
    for (int d = t->n_batch; d < x->rank; d++)
        g.axis[d - t->n_batch].along =
            add_dimension(&g, (dimension){.extent = part->extent[d], .stride = part->stride[d], .apart = true});
    return start(l, "oly_indexed_write", &g);
}

oly_cuda_indexed_task oly_cuda_describe_places(const oly_local_task *t, const void *const *in)
{
    const oly_local_operand *index = &t->in[1], *y = &t->out;
    oly_cuda_indexed_task g = {
        .n = 1, .n_axes = t->n_axes, .mode = (int32_t)(t->mode == OLY_INDEX_PROMISE ? OLY_INDEX_FILL : t->mode)};
    for (int a = 0; a < t->n_axes; a++)
        g.axis[a] = axis_of(&index[a], in[1 + a], y, t->axes[a]);
    for (int d = 0; d < index->rank; d++)
        add_dimension(&g, (dimension){.extent = index->extent[d],
                                      .at_stride = d < t->n_batch ? y->stride[d] : 0,
                                      .index = index,
                                      .number = d});
    return g;
}

oly_status oly_cuda_find_places(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in,
                                int64_t *count, int64_t **places)
{
    oly_cuda_indexed_task g = oly_cuda_describe_places(t, in);
    void *at;
    OLY_TRY(l->scratch(l->context, (size_t)g.n * sizeof **places, &at));
    *count = g.n;
    *places = at;
    g.to = at;
    return start(l, "oly_indexed_places", &g);
}
