/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of the operations of local.h: which family computes what, and those that need one launch. */
#include "cuda/local_launches.h"
#include "core/dtype_list.h"
#include "core/error.h"
#include "local_table.h"
#include "special_values.h"
#include <math.h>
#include <string.h>

static oly_cuda_family *const families[OLY_N_LOCAL_OPS] = {
    [OLY_LOCAL_ARGMAX] = oly_cuda_find,         [OLY_LOCAL_ARGMIN] = oly_cuda_find,
    [OLY_LOCAL_PICK] = oly_cuda_pick,           [OLY_LOCAL_SEARCHSORTED] = oly_cuda_search,
    [OLY_LOCAL_GATHER] = oly_cuda_gather,       [OLY_LOCAL_SCATTER] = oly_cuda_scatter,
    [OLY_LOCAL_SCATTER_ADD] = oly_cuda_scatter, [OLY_LOCAL_SCATTER_MUL] = oly_cuda_scatter,
    [OLY_LOCAL_SCATTER_MIN] = oly_cuda_scatter, [OLY_LOCAL_SCATTER_MAX] = oly_cuda_scatter,
    [OLY_LOCAL_DYNAMIC_SLICE] = oly_cuda_slice, [OLY_LOCAL_DYNAMIC_UPDATE] = oly_cuda_update,
    [OLY_LOCAL_LENGTHEN] = oly_cuda_arrange,    [OLY_LOCAL_NUMBER] = oly_cuda_arrange,
    [OLY_LOCAL_TAKE] = oly_cuda_arrange,        [OLY_LOCAL_SORT] = oly_cuda_sort,
    [OLY_LOCAL_CONVOLVE] = oly_cuda_convolve,   [OLY_LOCAL_WINDOW_SUM] = oly_cuda_window,
    [OLY_LOCAL_WINDOW_PROD] = oly_cuda_window,  [OLY_LOCAL_WINDOW_MAX] = oly_cuda_window,
    [OLY_LOCAL_WINDOW_MIN] = oly_cuda_window,   [OLY_LOCAL_ARGSORT] = oly_cuda_sort,
    [OLY_LOCAL_TOP_K] = oly_cuda_sort,          [OLY_LOCAL_CUMSUM] = oly_cuda_scan,
    [OLY_LOCAL_CUMPROD] = oly_cuda_scan,        [OLY_LOCAL_CUMMAX] = oly_cuda_scan,
    [OLY_LOCAL_CUMMIN] = oly_cuda_scan,         [OLY_LOCAL_CUMLOGSUMEXP] = oly_cuda_scan,
};

bool oly_cuda_has_local(const oly_local_task *t)
{
    return families[t->op] && (families[t->op] != oly_cuda_sort || oly_cuda_can_sort(t));
}

oly_status oly_cuda_local(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                          void *scratch)
{
    return oly_local_count(&t->out, -1) == 0 ? OLY_OK : families[t->op](l, t, in, out, scratch);
}

/* -- descriptions ------------------------------------------------------------------------------------------------------- */

oly_cuda_box oly_cuda_box_of(const oly_local_operand *x, const void *base)
{
    oly_cuda_box b = {.base = (char *)(uintptr_t)base, .dtype = (int32_t)x->dtype, .rank = x->rank};
    size_t bytes = sizeof *b.extent * (size_t)x->rank;
    memcpy(b.size, x->size, bytes);
    memcpy(b.origin, x->origin, bytes);
    memcpy(b.extent, x->extent, bytes);
    memcpy(b.stride, x->stride, bytes);
    return b;
}

oly_cuda_local_task oly_cuda_describe(const oly_local_task *t, const void *const *in, void *out, void *scratch)
{
    oly_cuda_local_task d = {.op = (int32_t)t->op,
                             .n_in = t->n_in,
                             .dimension = t->dimension,
                             .reverse = t->reverse,
                             .n_batch = t->n_batch,
                             .n_axes = t->n_axes,
                             .part = t->part,
                             .partial = t->partial,
                             .scratch = scratch,
                             .n = oly_local_count(&t->out, -1),
                             .out = oly_cuda_box_of(&t->out, out)};
    for (int a = 0; a < t->n_axes; a++)
        d.axes[a] = t->axes[a];
    for (int k = 0; k < t->n_in && k < 2; k++)
        d.in[k] = oly_cuda_box_of(&t->in[k], in[k]);
    if (t->window)
        d.window = *t->window;
    return d;
}

oly_status oly_cuda_start_local(const oly_cuda_launcher *l, const char *module, const char *kernel,
                                const oly_cuda_local_task *t)
{
    if (t->n == 0)
        return OLY_OK;
    return oly_cuda_start(l, module, kernel, oly_cuda_blocks(l, t->n, OLY_CUDA_THREADS), OLY_CUDA_THREADS, t,
                          sizeof *t);
}

void oly_cuda_add_dimension(oly_cuda_dims *d, int64_t extent, int64_t stride)
{
    if (extent == 1)
        return;
    if (d->rank > 0 && d->stride[d->rank - 1] == stride * extent) {
        d->extent[d->rank - 1] *= extent;
        d->stride[d->rank - 1] = stride;
        return;
    }
    d->extent[d->rank] = extent;
    d->stride[d->rank++] = stride;
}

/* -- rearranging ---------------------------------------------------------------------------------------------------------- */

oly_status oly_cuda_arrange(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                            void *scratch)
{
    oly_cuda_local_task d = oly_cuda_describe(t, in, out, scratch);
    oly_last_value(t->in[0].dtype, d.value);
    return oly_cuda_start_local(l, "arrange", "oly_arrange", &d);
}
