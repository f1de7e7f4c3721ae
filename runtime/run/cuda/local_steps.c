/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of the operations of kernels/local.h: a device's share of a step. See steps.h. */
#include "run/cuda/launcher.h"
#include "run/cuda/steps.h"

bool oly_cuda_has_local_step(const oly_step *step, int device)
{
    const oly_local_work *w = &step->local.device[device];
    return !w->has_work || oly_cuda_has_local(&w->task);
}

oly_status oly_cuda_launch_local(const oly_cuda_launcher *l, void *const *base, const oly_step *step, int device)
{
    const oly_local_work *w = &step->local.device[device];
    const void *in[OLY_LOCAL_MOST];
    if (!w->has_work)
        return OLY_OK;
    for (int k = 0; k < w->task.n_in; k++)
        in[k] = w->in[k].base < 0 ? NULL : (char *)base[w->in[k].base] + w->in[k].offset;
    void *scratch = w->scratch_base < 0 ? NULL : base[w->scratch_base];
    return oly_cuda_local(l, &w->task, in, base[w->out_base], scratch);
}
