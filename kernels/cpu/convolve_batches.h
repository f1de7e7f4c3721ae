/* SPDX-License-Identifier: BSD-3-Clause */
/* Convolutions with few positions, a large kernel and a large batch, as derivatives with respect to kernels are: blocks of batch elements at one
 * position instead of positions of one batch element, so that vectors are full and parts of the operand are copied once for many results. The
 * order of every sum is that of convolve.c. For it alone; empty where the instruction set has no such vectors. */
#ifndef OLY_CPU_CONVOLVE_BATCHES_H
#define OLY_CPU_CONVOLVE_BATCHES_H
#include "cpu/convolve_block.h"
#include "cpu/gemm_real_tiles.h"
#include "cpu/transpose.h"

#ifdef OLY_HAS_TILES
enum { BATCHES = 48, BATCH_LINE = BATCHES + 16, FEW_PLACES = 32, FEWEST_BATCHES = 16 };

static bool are_batches(const oly_local_task *t, const oly_convolve_blocks *d, int64_t depth)
{
    const oly_sliding_window *w = t->window;
    bool dilated = false;
    for (int k = 0; k < w->rank; k++)
        dilated = dilated || w->base_dilation[k] != 1;
    return (t->out.dtype == OLY_FLOAT32 || t->out.dtype == OLY_FLOAT64) && d->places <= FEW_PLACES &&
           d->batch >= FEWEST_BATCHES && depth >= DEPTH && w->groups * w->batch_groups == 1 && !dilated;
}

static int64_t batch_strips(const oly_convolve_blocks *d)
{
    return (d->batch + BATCHES - 1) / BATCHES;
}

#define OLY_CONVOLVE_BATCHES(s, T)                                                                                        \
    /* Row l of `seen`, for the depth l from `from` on: what tap and feature l read at the place, of n batch elements. */ \
    static void see_batches_##s(const block *b, const int64_t *place, int64_t from, int64_t depth, int n, const T *x,     \
                                T *seen)                                                                                  \
    {                                                                                                                     \
        const oly_slide *v = &b->slide;                                                                                   \
        const int d = v->rank - 1;                                                                                        \
        const int64_t batch = b->t->in[0].stride[0], feature = b->t->in[0].stride[1],                                     \
                      by = v->dilation[d] * v->step[d];                                                                   \
        for (int64_t done = 0, length; done < depth; done += length) {                                                    \
            int64_t tap[OLY_MAX_WINDOW] = {0}, row, number = from + done;                                                 \
            oly_slide_indexes(v, v->size, number % v->taps, tap);                                                         \
            length = v->size[d] - tap[d] < depth - done ? v->size[d] - tap[d] : depth - done;                             \
            const bool any = oly_slide_row(v, place, tap, &row);                                                          \
            const int64_t at = (v->origin[d] + place[d]) * v->stride[d] - v->lo[d] + tap[d] * v->dilation[d];             \
            const int64_t low = any ? oly_slide_until(at, v->dilation[d], v->begin[d], length) : length;                  \
            const int64_t high = any ? oly_slide_until(at, v->dilation[d], v->end[d], length) : length;                   \
            const T *of = x + number / v->taps * feature + (any ? row + (at - v->begin[d]) * v->step[d] : 0);             \
            T *line = seen + done * BATCH_LINE;                                                                           \
            for (int64_t l = 0; l < length; l++)                                                                          \
                if (l < low || l >= high)                                                                                 \
                    memset(line + l * BATCH_LINE, 0, sizeof(T) * (size_t)n);                                              \
                else if (by != 1)                                                                                         \
                    for (int j = 0; j < n; j++)                                                                           \
                        line[l * BATCH_LINE + j] = of[l * by + j * batch];                                                \
            if (by == 1 && high > low)                                                                                    \
                turn_##s(n, high - low, line + low * BATCH_LINE, BATCH_LINE, of + low, batch);                            \
        }                                                                                                                 \
    }                                                                                                                     \
    /* Rows [b->row, b->row + b->rows) of n batch elements from b->batch on, at place b->place. */                        \
    static void convolve_batches_##s(const block *b, int n, const T *x, const T *w, T *out)                               \
    {                                                                                                                     \
        T seen[DEPTH * BATCH_LINE] __attribute__((aligned(64))), sums[ROWS * BATCHES], rows[ROWS * DEPTH];                \
        int64_t offset[DEPTH], place[OLY_MAX_WINDOW] = {0};                                                               \
        memset(sums, 0, sizeof sums);                                                                                     \
        oly_slide_indexes(&b->slide, b->slide.extent, b->place, place);                                                   \
        for (int64_t from = 0; from < b->depth; from += DEPTH) {                                                          \
            int64_t depth = b->depth - from < DEPTH ? b->depth - from : DEPTH;                                            \
            kernel_offsets(b, from, depth, offset);                                                                       \
            see_batches_##s(b, place, from, depth, n, x, seen);                                                           \
            for (int64_t i = 0; i < b->rows; i++)                                                                         \
                for (int64_t l = 0; l < depth; l++)                                                                       \
                    rows[i * DEPTH + l] = w[i * b->t->in[1].stride[0] + offset[l]];                                       \
            const tiles all = {b->rows, n, depth, DEPTH, 1, BATCH_LINE, BATCHES, false, 0, true};                         \
            tiles_##s(&all, rows, seen, sums);                                                                            \
        }                                                                                                                 \
        for (int64_t i = 0; i < b->rows; i++)                                                                             \
            for (int j = 0; j < n; j++)                                                                                   \
                out[(j * b->t->out.extent[1] + i) * b->slide.places] = sums[i * BATCHES + j];                             \
    }
OLY_TURN(f32, float, 16, transpose_16, uint32_t)
OLY_TURN(f64, double, 8, transpose_8x8, uint64_t)
OLY_CONVOLVE_BATCHES(f32, float)
OLY_CONVOLVE_BATCHES(f64, double)
#endif
#endif
