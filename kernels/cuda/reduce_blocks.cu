/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of blocks of a run (reducing.h): a warp for each result, row and block; a lane has the CPU's lanes l and l + 32. */
#include "reducing.h"

enum { WARPS = OLY_CUDA_THREADS / OLY_WARP, BLOCK = 4096, LANES = 64 };

/* Elements [begin, end) of a run, at least 64 of them, by a warp; the result is the first lane's. */
template <class X>
OLY_DEVICE typename X::value by_lanes(const oly_cuda_reduce_task &t, int64_t base, int64_t begin, int64_t end)
{
    typedef typename X::value A;
    const int64_t row_stride = t.run.rank == 1 ? t.run.stride[0] : 0;
    int64_t i = begin + oly_lane();
    A low = X::at(t, base + offset_at(t.run, i)), high = X::at(t, base + offset_at(t.run, i + OLY_WARP));
    i += LANES;
    enum { N = sizeof(A) > 4 ? 8 : 16 };
    if (t.run.rank == 1 && X::AHEAD > 1) /* N loads before they are used */
        OLY_NO_UNROLL
        for (; i + (N - 1) * OLY_WARP < end; i += N * OLY_WARP) {
            A x[N];
            OLY_UNROLL
            for (int j = 0; j < N; j++)
                x[j] = X::at(t, base + (i + j * OLY_WARP) * row_stride);
            OLY_UNROLL
            for (int j = 0; j < N; j += 2) {
                low = X::join(t.combiner, low, x[j]);
                high = X::join(t.combiner, high, x[j + 1]);
            }
        }
    OLY_NO_UNROLL
    for (; i < end; i += LANES) {
        low = X::join(t.combiner, low, X::at(t, base + offset_at(t.run, i)));
        if (i + OLY_WARP < end)
            high = X::join(t.combiner, high, X::at(t, base + offset_at(t.run, i + OLY_WARP)));
    }
    low = X::join(t.combiner, low, high);
    for (int half = OLY_WARP / 2; half > 0; half /= 2)
        low = X::join(t.combiner, low, down(low, half));
    return low;
}
template <class X> OLY_DEVICE void blocks(const oly_cuda_reduce_task &t)
{
    const int lane = oly_lane();
    const int64_t n = t.n_kept * t.n_outer * t.pieces;
    OLY_NO_UNROLL
    for (int64_t number = oly_block() * WARPS + oly_warp(); number < n; number += oly_blocks() * WARPS) {
        const int64_t block = number % t.pieces, rest = number / t.pieces, outer = rest % t.n_outer;
        const int64_t base = offset_at(t.kept, rest / t.n_outer) + offset_at(t.outer, outer), begin = block * BLOCK;
        const int64_t end = begin + BLOCK < t.n_run ? begin + BLOCK : t.n_run;
        typename X::value sum;
        if (end - begin < LANES) { /* one after the other, by the first lane */
            sum = X::at(t, base + offset_at(t.run, begin));
            OLY_NO_UNROLL
            for (int64_t i = begin + 1; i < end && lane == 0; i++)
                sum = X::join(t.combiner, sum, X::at(t, base + offset_at(t.run, i)));
        } else {
            sum = by_lanes<X>(t, base, begin, end);
        }
        if (lane == 0)
            X::write(t, number, sum);
    }
}
#define BLOCKS(name) OLY_KERNEL_BLOCK_BOUNDED(name, oly_cuda_reduce_task, OLY_CUDA_THREADS, 2)
OLY_REDUCE_KERNELS(BLOCKS, blocks)
