/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of several arrays, as partial results of devices are: element by element in the order of cpu/combine.c, which the host has
 * written as a program for a small stack. Narrow types are rounded after each pair, as on the CPU. */
#define OLY_SHORT_CODE
#include "combining.h"

template <class A> OLY_DEVICE void combine(const oly_cuda_combine_task &t)
{
    for (int64_t i = t.begin + oly_index(); i < t.end; i += oly_stride()) {
        A stack[OLY_CUDA_STACK];
        int top = 0;
        for (int k = 0; k < t.n_steps; k++) {
            if (t.step[k] < OLY_CUDA_SOURCES) {
                oly_read(t.dtype, t.source[t.step[k]], i, &stack[top++]);
                continue;
            }
            top--;
            stack[top - 1] = oly_combined(t.combiner, stack[top - 1], stack[top]);
            if (oly_is_narrow_type(t.dtype)) {
                uint64_t bits = oly_stored(t.dtype, stack[top - 1]).lo;
                oly_read(t.dtype, (const char *)&bits, 0, &stack[top - 1]);
            }
        }
        for (int k = 0; k < t.n_outs; k++)
            oly_write(t.dtype, t.out[k], i, stack[0]);
    }
}
OLY_KERNEL(oly_combine_arrays, oly_cuda_combine_task)
{
    OLY_BY_TYPE(task.dtype, combine, task)
}
