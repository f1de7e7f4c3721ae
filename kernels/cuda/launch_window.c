/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of sliding windows and convolutions: window.cu, convolve.cu; most convolutions are those of launch_convolve.c. */
#include "cuda/local_launches.h"
#include "core/dtype_list.h"
#include "core/error.h"
#include "local_table.h"
#include <string.h>

enum { SIDE = 64, DEPTH = 16, FEW_FEATURES = 8 }; /* of tiles; in a group, worth no tiles */

oly_status oly_cuda_window(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                           void *scratch)
{
    static const oly_combiner combiners[] = {OLY_COMBINE_SUM, OLY_COMBINE_PROD, OLY_COMBINE_MAX, OLY_COMBINE_MIN};
    oly_combiner c = combiners[t->op - OLY_LOCAL_WINDOW_SUM];
    oly_cuda_local_task d = oly_cuda_describe(t, in, out, scratch);
    oly_combine_identity(c, t->out.dtype, d.value, 1);
    d.part = (int32_t)oly_cuda_combiner(c, t->out.dtype);
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
