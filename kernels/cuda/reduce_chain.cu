/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of few elements (reducing.h): one after the other; a thread for each result. */
#include "reducing.h"

template <class X> OLY_DEVICE void chain(const oly_cuda_reduce_task &t)
{
    OLY_NO_UNROLL
    for (int64_t k = oly_index(); k < t.n_kept; k += oly_stride()) {
        const int64_t base = offset_at(t.kept, k);
        typename X::value sum = X::at(t, base);
        OLY_NO_UNROLL
        for (int64_t row = 0; row < t.n_outer; row++) {
            const int64_t at = base + offset_at(t.outer, row);
            OLY_NO_UNROLL
            for (int64_t i = row == 0; i < t.n_run; i++)
                sum = X::join(t.combiner, sum, X::at(t, at + offset_at(t.run, i)));
        }
        X::write(t, k, sum);
    }
}
#define CHAIN(name) OLY_KERNEL(name, oly_cuda_reduce_task)
OLY_REDUCE_KERNELS(CHAIN, chain)
