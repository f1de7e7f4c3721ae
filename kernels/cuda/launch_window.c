/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of sliding windows and convolutions: window.cu, convolve.cu; most convolutions are those of launch_convolve.c. */
#include "cuda/local_launches.h"
#include "core/dtype_list.h"
#include "core/error.h"
#include "core/optimisation.h"
#include "cuda/window_task.h"
#include "local_table.h"
#include <string.h>

enum { SIDE = 64, DEPTH = 16, FEW_FEATURES = 8 }; /* of tiles; in a group, worth no tiles */
enum { FAR = 1 << 29 };                           /* two of which 32 bits hold */

/* Of elements that are read as they are; NULL: there is none. */
static const char *columns_of(oly_dtype dtype)
{
    switch (dtype) {
    case OLY_FLOAT32: return "oly_window_columns_f32";
    case OLY_FLOAT64: return "oly_window_columns_f64";
    case OLY_INT32: return "oly_window_columns_i32";
    default: return NULL;
    }
}
static bool is_near(int64_t x)
{
    return x > -FAR && x < FAR;
}
/* Dimensions but the last two, merged where the operand is evenly spaced along both. */
static void merge_outer(oly_cuda_box *x, oly_cuda_box *out)
{
    int n = 0, down = out->rank - 2;
    for (int d = 0; d < down; d++) {
        if (out->extent[d] == 1)
            continue;
        if (n > 0 && x->stride[n - 1] == x->stride[d] * out->extent[d]) {
            out->extent[n - 1] *= out->extent[d];
            x->stride[n - 1] = x->stride[d];
            continue;
        }
        out->extent[n] = out->extent[d];
        x->stride[n++] = x->stride[d];
    }
    for (int d = down; d < down + 2; d++, n++) {
        out->extent[n] = out->extent[d], out->origin[n] = out->origin[d];
        x->extent[n] = x->extent[d], x->origin[n] = x->origin[d], x->stride[n] = x->stride[d];
    }
    x->rank = out->rank = n;
}
/* As a window over the last two dimensions whose numbers 32 bits hold: a thread for some results below each other. */
static bool by_columns(oly_cuda_local_task *d)
{
    oly_sliding_window *w = &d->window;
    const oly_cuda_box *x = &d->in[0];
    int across = d->out.rank - 1, down = across - 1;
    if (across < 1 || w->rank > 2 || w->rank < 1 || !x->base || !is_near(d->n))
        return false;
    if (w->rank == 1) { /* a row of it: the element itself */
        w->size[1] = w->size[0], w->stride[1] = w->stride[0], w->lo[1] = w->lo[0];
        w->dilation[1] = w->dilation[0], w->base_dilation[1] = w->base_dilation[0];
        w->size[0] = w->stride[0] = w->dilation[0] = w->base_dilation[0] = 1;
        w->lo[0] = d->out.origin[down] - x->origin[down];
        w->rank = 2;
    }
    for (int k = 0; k < 2; k++) {
        int64_t most = d->out.origin[down + k] + d->out.extent[down + k] + OLY_CUDA_WINDOW_DOWN;
        if (w->base_dilation[k] != 1 || !is_near(most) || !is_near(w->stride[k]) || !is_near(w->size[k]) ||
            !is_near(w->dilation[k]) || !is_near(w->lo[k]) || !is_near(x->origin[down + k]) ||
            !is_near(x->extent[down + k]) || !is_near(most * w->stride[k] + w->size[k] * w->dilation[k]))
            return false;
    }
    int64_t height = d->out.extent[down], strips = (height + OLY_CUDA_WINDOW_DOWN - 1) / OLY_CUDA_WINDOW_DOWN;
    if (height > 0)
        d->n = d->n / height * strips;
    merge_outer(&d->in[0], &d->out);
    return true;
}

oly_status oly_cuda_window(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                           void *scratch)
{
    static const oly_combiner combiners[] = {OLY_COMBINE_SUM, OLY_COMBINE_PROD, OLY_COMBINE_MAX, OLY_COMBINE_MIN};
    oly_combiner c = combiners[t->op - OLY_LOCAL_WINDOW_SUM];
    oly_cuda_local_task d = oly_cuda_describe(t, in, out, scratch);
    oly_combine_identity(c, t->out.dtype, d.value, 1);
    d.part = (int32_t)oly_cuda_combiner(c, t->out.dtype);
    const char *columns = columns_of(t->out.dtype);
    oly_cuda_local_task some = d;
    if (oly_enabled(OLY_OPTIMISATION_CONVOLUTION_TILES) && columns && by_columns(&some))
        return oly_cuda_start_local(l, "window", columns, &some);
    return oly_cuda_start_local(l, "window", "oly_window", &d);
}

static const char *tiles_of(oly_dtype dtype)
{
    switch (dtype) {
    case OLY_FLOAT64: return "oly_convolve_tiles_f64";
    case OLY_COMPLEX64: return "oly_convolve_tiles_c64";
    case OLY_COMPLEX128: return "oly_convolve_tiles_c128";
    case OLY_INT8:
    case OLY_INT16:
    case OLY_INT32:
    case OLY_INT64: return "oly_convolve_tiles_signed";
    default:
        return dtype == OLY_FLOAT32 || oly_is_narrow(dtype) ? "oly_convolve_tiles_f32" : "oly_convolve_tiles_unsigned";
    }
}
/* Bytes of an element as kernels compute with it. */
static unsigned computed_bytes(oly_dtype dtype)
{
    return dtype == OLY_COMPLEX128 ? 16 : dtype == OLY_FLOAT32 || oly_is_narrow(dtype) ? 4 : 8;
}

oly_status oly_cuda_convolve(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                             void *scratch)
{
    oly_cuda_local_task d = oly_cuda_describe(t, in, out, scratch);
    oly_convolve_blocks b = oly_convolve_divide(t);
    bool launched;
    OLY_TRY(oly_cuda_convolve_blocks(l, t, in, out, &launched));
    if (launched)
        return OLY_OK;
    int64_t depth = t->in[1].extent[1];
    for (int k = 0; k < t->window->rank; k++)
        depth *= t->window->size[k];
    if (b.per_group < FEW_FEATURES || depth > INT32_MAX - DEPTH)
        return oly_cuda_start_local(l, "convolve", "oly_convolve_each", &d);
    int64_t strips = (b.batch * b.places + SIDE - 1) / SIDE;
    oly_cuda_launch launch = {.module = "convolve",
                              .kernel = tiles_of(t->out.dtype),
                              .blocks = oly_cuda_blocks(l, b.groups * ((b.per_group + SIDE - 1) / SIDE) * strips, 1),
                              .threads = OLY_CUDA_THREADS,
                              .shared = 2 * SIDE * DEPTH * computed_bytes(t->out.dtype),
                              .task_bytes = sizeof d};
    memcpy(launch.task, &d, sizeof d);
    return l->launch(l->context, &launch);
}
