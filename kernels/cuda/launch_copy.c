/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of copies: dense ones, transposes (copy.cu), and boxes, several of them in one launch (copy_boxes.cu). */
#include "core/error.h"
#include "core/min_max.h"
#include "core/optimisation.h"
#include "cuda/copy_boxes.h"
#include "cuda/fused_text.h"
#include "cuda/launching.h"
#include <stdlib.h>

bool oly_cuda_has_copy(const oly_copy_task *t)
{
    return t->element_bytes == 1 || t->element_bytes == 2 || t->element_bytes == 4 || t->element_bytes == 8 ||
           t->element_bytes == 16;
}

/* Merges dimensions along which both sides are evenly spaced. */
static void merge(const oly_copy_task *t, oly_cuda_copy_task *c)
{
    c->rank = 0;
    for (int d = 0; d < t->rank; d++) {
        int last = c->rank - 1;
        if (t->extent[d] == 1)
            continue;
        if (last >= 0 && c->to_stride[last] == t->to_stride[d] * t->extent[d] &&
            c->from_stride[last] == t->from_stride[d] * t->extent[d]) {
            c->extent[last] *= t->extent[d];
        } else {
            last = c->rank++;
            c->extent[last] = t->extent[d];
        }
        c->to_stride[last] = t->to_stride[d];
        c->from_stride[last] = t->from_stride[d];
    }
    if (c->rank == 0) {
        c->rank = 1;
        c->extent[0] = c->to_stride[0] = c->from_stride[0] = 1;
    }
}

/* The dimension in which the source is dense where the result is dense in the last; -1: that is no transpose. */
static int across(const oly_cuda_copy_task *c)
{
    int last = c->rank - 1;
    if (c->to_stride[last] != 1 || c->from_stride[last] == 1 || c->from_stride[last] == 0 || c->extent[last] < 8)
        return -1;
    for (int d = 0; d < last; d++)
        if (c->from_stride[d] == 1 && c->extent[d] >= 8)
            return d;
    return -1;
}

static oly_cuda_copy_task task_of(const oly_copy_task *t, void *to, const void *from)
{
    oly_cuda_copy_task c = {.to = to, .from = from, .n = 1};
    for (int d = 0; d < t->rank; d++)
        c.n *= t->extent[d];
    if (c.n > 0) {
        merge(t, &c);
        c.tile = across(&c);
    }
    return c;
}

static bool is_dense(const oly_cuda_copy_task *c, size_t bytes)
{
    return c->rank == 1 && c->to_stride[0] == 1 && c->from_stride[0] == 1 && c->n * (int64_t)bytes % 16 == 0 &&
           (uintptr_t)c->to % 16 == 0 && (uintptr_t)c->from % 16 == 0;
}

/* One element, everywhere. */
static bool is_spread(const oly_cuda_copy_task *c, size_t bytes)
{
    return c->rank == 1 && c->to_stride[0] == 1 && c->from_stride[0] == 0 && bytes <= 8 &&
           ((uintptr_t)c->to | (uintptr_t)c->from) % bytes == 0;
}

static oly_status transpose(const oly_cuda_launcher *l, const oly_cuda_copy_task *c, size_t bytes)
{
    enum { SIDE = 32, WIDE_SIDE = 64 };
    bool wide = bytes <= 4 && c->extent[c->tile] >= WIDE_SIDE && c->extent[c->rank - 1] >= WIDE_SIDE;
    const char *kernel =
        oly_cuda_sized(wide ? OLY_CUDA_SIZED("oly_transpose_wide_") : OLY_CUDA_SIZED("oly_transpose_"), bytes);
    return oly_cuda_start(l, "copy", kernel, oly_cuda_blocks(l, c->n, wide ? WIDE_SIDE * WIDE_SIDE : SIDE * SIDE),
                          OLY_CUDA_THREADS, c, sizeof *c);
}

static oly_status copy_one(const oly_cuda_launcher *l, oly_cuda_copy_task *c, size_t bytes)
{
    if (is_dense(c, bytes)) {
        c->n = c->n * (int64_t)bytes / 16;
        return oly_cuda_start(l, "copy", "oly_copy_dense", oly_cuda_blocks(l, c->n, 4 * OLY_CUDA_THREADS),
                              OLY_CUDA_THREADS, c, sizeof *c);
    }
    if (is_spread(c, bytes))
        return oly_cuda_start(l, "copy", oly_cuda_sized(OLY_CUDA_SIZED("oly_spread_"), bytes),
                              oly_cuda_blocks(l, c->n * (int64_t)bytes, 16 * OLY_CUDA_THREADS), OLY_CUDA_THREADS, c,
                              sizeof *c);
    if (c->tile >= 0)
        return transpose(l, c, bytes);
    return oly_cuda_start(l, "copy", oly_cuda_sized(OLY_CUDA_SIZED("oly_copy_"), bytes),
                          oly_cuda_blocks(l, c->n, OLY_CUDA_THREADS), OLY_CUDA_THREADS, c, sizeof *c);
}

/* -- boxes ------------------------------------------------------------------------------------------------------------------ */

/* Can it be one of several boxes? Offsets must fit 31 bits. LEAST_SPREAD: so many equal elements are worth a launch of their own. */
enum { LEAST_SPREAD = 1 << 16 };
static bool is_box(const oly_cuda_copy_task *c, size_t bytes)
{
    int64_t to = 0, from = 0;
    for (int d = 0; d < c->rank; d++) {
        to += llabs(c->to_stride[d]) * (c->extent[d] - 1);
        from += llabs(c->from_stride[d]) * (c->extent[d] - 1);
    }
    return oly_enabled(OLY_OPTIMISATION_BOX_COPIES) && bytes <= 8 && c->rank <= OLY_CUDA_BOX_DIMS && c->tile < 0 &&
           c->n < 1 << 30 && to < INT32_MAX && from < INT32_MAX && !is_dense(c, bytes) &&
           (!is_spread(c, bytes) || c->n < LEAST_SPREAD);
}

static void add_box(oly_cuda_boxes_task *t, const oly_cuda_copy_task *c)
{
    oly_cuda_copied_box *b = &t->box[t->n_boxes++];
    *b = (oly_cuda_copied_box){.to = c->to, .from = c->from, .first = t->chunks, .n = (int32_t)c->n, .rank = c->rank};
    for (int d = 0; d < c->rank; d++) {
        b->extent[d] = (int32_t)c->extent[d];
        b->to_stride[d] = (int32_t)c->to_stride[d];
        b->from_stride[d] = (int32_t)c->from_stride[d];
        b->divisor[d] = oly_cuda_divisor(c->extent[d]);
    }
    t->chunks += (c->n + OLY_CUDA_BOX_CHUNK - 1) / OLY_CUDA_BOX_CHUNK;
}

static oly_status copy_boxes(const oly_cuda_launcher *l, oly_cuda_boxes_task *t, size_t bytes)
{
    oly_status st = OLY_OK;
    if (t->n_boxes > 0)
        st = oly_cuda_start(l, "copy_boxes", oly_cuda_sized(OLY_CUDA_SIZED("oly_copy_boxes_"), bytes),
                            oly_cuda_blocks(l, t->chunks, 1), OLY_CUDA_THREADS, t, sizeof *t);
    t->n_boxes = t->chunks = 0;
    return st;
}

oly_status oly_cuda_copies(const oly_cuda_launcher *l, int n, const oly_cuda_copied *copies)
{
    oly_cuda_boxes_task boxes = {0};
    size_t bytes = 0;
    for (int k = 0; k < n; k++) {
        oly_cuda_copy_task c = task_of(copies[k].task, copies[k].to, copies[k].from);
        size_t here = copies[k].task->element_bytes;
        if (c.n == 0)
            continue;
        if (!is_box(&c, here)) {
            OLY_TRY(copy_one(l, &c, here));
            continue;
        }
        if (boxes.n_boxes == OLY_CUDA_BOXES || here != bytes)
            OLY_TRY(copy_boxes(l, &boxes, bytes));
        add_box(&boxes, &c);
        bytes = here;
    }
    return copy_boxes(l, &boxes, bytes);
}

oly_status oly_cuda_copy(const oly_cuda_launcher *l, const oly_copy_task *t, void *to, const void *from)
{
    return oly_cuda_copies(l, 1, &(oly_cuda_copied){t, to, from});
}
