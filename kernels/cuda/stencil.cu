/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps of a linear stencil (kernel.h, oly_stencil) in one to three dimensions, several in one launch: a block loads the window of a tile
 * into shared memory, computes the steps there, on a box that shrinks by the stencil's reach with each, and writes the last to memory.
 * Taps are added in their order, each with a fused multiply-add, so the bits are the CPU's. launch_stencil.c divides the
 * field. */
#include "stencil_task.h" /* before device.h, whose OLY_DEVICE is a macro */

#include "device.h"

struct box {
    int64_t lo[3], hi[3];
};

/* Calls f(slab, row, column) for every point: a warp takes a row, its lanes adjacent columns. */
template <class F> OLY_DEVICE void each_point(const box &b, F f)
{
    const int64_t n = b.hi[1] - b.lo[1], rows = n * (b.hi[0] - b.lo[0]);
    for (int64_t r = oly_warp(); r < rows; r += oly_threads() / OLY_WARP) {
        const int64_t slab = b.lo[0] + (int)r / (int)n, row = b.lo[1] + (int)r % (int)n;
        for (int64_t column = b.lo[2] + oly_lane(); column < b.hi[2]; column += OLY_WARP)
            f(slab, row, column);
    }
}

OLY_DEVICE int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
OLY_DEVICE int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The points of the update region that are computed `more` steps before the tile is. */
OLY_DEVICE box computed(const oly_cuda_stencil_task &t, const box &update, int more)
{
    box b;
    for (int d = 0; d < 3; d++) {
        b.lo[d] = larger(update.lo[d] - (int64_t)more * t.below[d], t.fixed_lo[d]);
        b.hi[d] = smaller(update.hi[d] + (int64_t)more * t.above[d], t.fixed_hi[d]);
    }
    return b;
}

template <class R> OLY_DEVICE void sweep(const oly_cuda_stencil_task &t, R *memory)
{
    const R *source = (const R *)t.source;
    R *destination = (R *)t.destination;
    for (int64_t number = oly_block(); number < (int64_t)t.tiles[0] * t.tiles[1] * t.tiles[2]; number += oly_blocks()) {
        const int64_t at[3] = {number / ((int64_t)t.tiles[1] * t.tiles[2]), number / t.tiles[2] % t.tiles[1],
                               number % t.tiles[2]};
        box tile, update, window;
        bool any = true;
        for (int d = 0; d < 3; d++) {
            tile.lo[d] = t.lo[d] + at[d] * t.tile[d];
            tile.hi[d] = smaller(tile.lo[d] + t.tile[d], t.hi[d]);
            update.lo[d] = larger(tile.lo[d], t.fixed_lo[d]);
            update.hi[d] = smaller(tile.hi[d], t.fixed_hi[d]);
            window.lo[d] = larger(update.lo[d] - (int64_t)t.steps * t.below[d], t.fixed_lo[d] - t.below[d]);
            window.hi[d] = smaller(update.hi[d] + (int64_t)t.steps * t.above[d], t.fixed_hi[d] + t.above[d]);
            any = any && update.lo[d] < update.hi[d];
        }
        each_point(tile, [&](int64_t slab, int64_t row, int64_t column) { /* points that keep their value */
            const bool inside = any && slab >= update.lo[0] && slab < update.hi[0] && row >= update.lo[1] &&
                                row < update.hi[1] && column >= update.lo[2] && column < update.hi[2];
            if (!inside)
                destination[slab * t.destination_stride[0] + row * t.destination_stride[1] + column] =
                    source[slab * t.source_stride[0] + row * t.source_stride[1] + column];
        });
        if (!any)
            continue;
        oly_barrier(); /* the tile before has been computed */
        const int64_t origin = window.lo[0] * t.pitch[0] + window.lo[1] * t.pitch[1] + window.lo[2];
        each_point(window, [&](int64_t slab, int64_t row, int64_t column) {
            const int64_t i = slab * t.pitch[0] + row * t.pitch[1] + column - origin;
            const R v = source[slab * t.source_stride[0] + row * t.source_stride[1] + column];
            memory[i] = v;
            if (t.steps > 1) /* for points that no step computes */
                memory[t.points + i] = v;
        });
        for (int step = 1; step <= t.steps; step++) {
            const R *from = memory + (step % 2 ? 0 : t.points);
            R *to = memory + (step % 2 ? t.points : 0);
            const bool last = step == t.steps;
            oly_barrier();
            each_point(computed(t, update, t.steps - step), [&](int64_t slab, int64_t row, int64_t column) {
                const int64_t i = slab * t.pitch[0] + row * t.pitch[1] + column - origin;
                R sum = (R)t.coefficient[0] * from[i + t.offset[0]];
                for (int k = 1; k < t.n_taps; k++)
                    sum = oly_fma((R)t.coefficient[k], from[i + t.offset[k]], sum);
                if (last)
                    destination[slab * t.destination_stride[0] + row * t.destination_stride[1] + column] = sum;
                else
                    to[i] = sum;
            });
        }
    }
}
OLY_KERNEL_BLOCK_BOUNDED(oly_stencil_f32, oly_cuda_stencil_task, OLY_CUDA_THREADS, 2)
{
    OLY_SHARED_DYNAMIC(float, memory);
    sweep<float>(task, memory);
}
OLY_KERNEL_BLOCK_BOUNDED(oly_stencil_f64, oly_cuda_stencil_task, OLY_CUDA_THREADS, 2)
{
    OLY_SHARED_DYNAMIC(double, memory);
    sweep<double>(task, memory);
}
