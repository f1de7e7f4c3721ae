/* SPDX-License-Identifier: BSD-3-Clause */
/* Convolutions: as cpu/convolve.c, each element summed in the order of the kernel's elements (features, then taps) by fused multiply-adds.
 * Groups of many features: products of tiles of 64 features by 64 places, which a block holds in shared memory 16 elements of depth at a
 * time; else a thread for each element. */
#include "windows.h"

enum { SIDE = 64, DEPTH = 16, EACH = 4, ACROSS = SIDE / EACH };

/* -- sum + x * y ----------------------------------------------------------------------------------------------------------------------- */
OLY_DEVICE int64_t added(int64_t sum, int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)sum + (uint64_t)x * (uint64_t)y);
}
OLY_DEVICE uint64_t added(uint64_t sum, uint64_t x, uint64_t y)
{
    return sum + x * y;
}
OLY_DEVICE float added(float sum, float x, float y)
{
    return oly_fma(x, y, sum);
}
OLY_DEVICE double added(double sum, double x, double y)
{
    return oly_fma(x, y, sum);
}
OLY_DEVICE oly_c64 added(oly_c64 s, oly_c64 x, oly_c64 y)
{
    return oly_w_of(oly_fma(-x.im, y.im, oly_fma(x.re, y.re, s.re)), oly_fma(x.im, y.re, oly_fma(x.re, y.im, s.im)));
}
OLY_DEVICE oly_c128 added(oly_c128 s, oly_c128 x, oly_c128 y)
{
    return oly_z_of(oly_fma(-x.im, y.im, oly_fma(x.re, y.re, s.re)), oly_fma(x.im, y.re, oly_fma(x.re, y.im, s.im)));
}
OLY_DEVICE void set_zero(int64_t *x) { *x = 0; }
OLY_DEVICE void set_zero(uint64_t *x) { *x = 0; }
OLY_DEVICE void set_zero(float *x) { *x = 0; }
OLY_DEVICE void set_zero(double *x) { *x = 0; }
OLY_DEVICE void set_zero(oly_c64 *x) { *x = oly_w_of(0, 0); }
OLY_DEVICE void set_zero(oly_c128 *x) { *x = oly_z_of(0, 0); }

/* -- groups ------------------------------------------------------------------------------------------------------------------------------ */
OLY_DEVICE int64_t features_of_group(const oly_cuda_local_task &t)
{
    int64_t each = t.out.size[1] / (t.window.groups * t.window.batch_groups);
    return each > 0 ? each : 1;
}
/* The offset in operand 0 of the feature that the kernel's feature 0 meets, at batch element `batch` of the result's box. */
OLY_DEVICE int64_t group_offset(const oly_cuda_local_task &t, int64_t group, int64_t batch)
{
    const oly_cuda_box &x = t.in[0], &w = t.in[1];
    bool of_batch = t.window.batch_groups > 1;
    int64_t at = (of_batch ? group * (x.size[0] / t.window.batch_groups) : 0) + t.out.origin[0] + batch - x.origin[0];
    int64_t feature = (of_batch ? 0 : group * w.size[1]) + w.origin[1] - x.origin[1];
    return at * x.stride[0] + feature * x.stride[1];
}
OLY_DEVICE int64_t kernel_offset(const oly_cuda_local_task &t, const int *tap)
{
    int64_t offset = 0;
    for (int d = 0; d < (int)t.window.rank; d++)
        offset += tap[d] * t.in[1].stride[2 + d];
    return offset;
}

/* -- a thread for each element -------------------------------------------------------------------------------------------------------------- */
template <class A> OLY_DEVICE void convolve_each(const oly_cuda_local_task &t)
{
    const oly_cuda_box &x = t.in[0], &w = t.in[1];
    int64_t taps = oly_taps(t), depth = w.base ? w.extent[1] : 0, each = features_of_group(t);
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        int64_t at[OLY_MAX_RANK], position[OLY_MAX_WINDOW], offset;
        oly_unravel(t.out.rank, t.out.extent, i, at);
        oly_first_tap(t, at + 2, position);
        int64_t from = group_offset(t, (t.out.origin[1] + at[1]) / each, at[0]);
        A sum;
        set_zero(&sum);
        for (int64_t f = 0; f < depth; f++) {
            int tap[OLY_MAX_WINDOW] = {0};
            for (int64_t k = 0; k < taps; k++) {
                A a, b;
                oly_load(w.dtype, w.base, at[1] * w.stride[0] + f * w.stride[1] + kernel_offset(t, tap), &a);
                set_zero(&b);
                if (oly_tap_offset(t, position, tap, &offset))
                    oly_load(x.dtype, x.base, from + f * x.stride[1] + offset, &b);
                sum = added(sum, a, b);
                oly_next_tap(t, tap);
            }
        }
        oly_store(t.out.dtype, t.out.base, i, sum);
    }
}
OLY_KERNEL(oly_convolve_each, oly_cuda_local_task)
{
    OLY_BY_TYPE(task.out.dtype, convolve_each, task)
}

/* -- tiles: a block for each, of features of one group by places (of all batch elements) ------------------------------------------------------ */
/* Element l of the depth: its feature, and its tap. */
OLY_DEVICE int depth_at(const oly_cuda_local_task &t, int l, int *tap)
{
    for (int d = (int)t.window.rank - 1; d >= 0; d--) {
        int size = (int)t.window.size[d], next = l / size;
        tap[d] = l - next * size;
        l = next;
    }
    return l;
}
template <class A>
OLY_DEVICE void convolve_tile(const oly_cuda_local_task &t, int64_t group, int64_t row, int rows, int64_t column, int64_t columns)
{
    OLY_SHARED_DYNAMIC(A, kernel);
    A *seen = kernel + DEPTH * SIDE; /* [DEPTH][SIDE] both */
    const oly_cuda_box &x = t.in[0], &w = t.in[1];
    int thread = oly_thread(), rank = (int)t.window.rank, n = (int)(oly_taps(t) * (w.base ? w.extent[1] : 0));
    int64_t places = 1, position[OLY_MAX_WINDOW], place[OLY_MAX_WINDOW], own = column + thread % SIDE, from = 0;
    for (int d = 0; d < rank; d++)
        places *= t.out.extent[2 + d];
    if (own < columns) {
        oly_unravel(rank, t.out.extent + 2, own % places, place);
        oly_first_tap(t, place, position);
        from = group_offset(t, group, own / places);
    }
    A sum[EACH][EACH];
    OLY_UNROLL
    for (int r = 0; r < EACH; r++) {
        OLY_UNROLL
        for (int c = 0; c < EACH; c++)
            set_zero(&sum[r][c]);
    }
    for (int base = 0; base < n; base += DEPTH) {
        int tap[OLY_MAX_WINDOW], l = thread % DEPTH, f = depth_at(t, base + l, tap);
        int64_t offset = f * w.stride[1] + kernel_offset(t, tap);
        for (int r = thread / DEPTH; r < SIDE; r += OLY_CUDA_THREADS / DEPTH) {
            A a;
            set_zero(&a);
            if (r < rows && base + l < n)
                oly_load(w.dtype, w.base, (row + r) * w.stride[0] + offset, &a);
            kernel[l * SIDE + r] = a;
        }
        for (l = thread / SIDE; l < DEPTH; l += OLY_CUDA_THREADS / SIDE) {
            A b;
            set_zero(&b);
            f = depth_at(t, base + l, tap);
            if (own < columns && base + l < n && oly_tap_offset(t, position, tap, &offset))
                oly_load(x.dtype, x.base, from + f * x.stride[1] + offset, &b);
            seen[l * SIDE + thread % SIDE] = b;
        }
        oly_barrier();
        int most = n - base < DEPTH ? n - base : (int)DEPTH;
        for (l = 0; l < most; l++) {
            A a[EACH], b[EACH];
            OLY_UNROLL
            for (int k = 0; k < EACH; k++) {
                a[k] = kernel[l * SIDE + thread / ACROSS + ACROSS * k];
                b[k] = seen[l * SIDE + thread % ACROSS + ACROSS * k];
            }
            OLY_UNROLL
            for (int r = 0; r < EACH; r++) {
                OLY_UNROLL
                for (int c = 0; c < EACH; c++)
                    sum[r][c] = added(sum[r][c], a[r], b[c]);
            }
        }
        oly_barrier();
    }
    OLY_UNROLL
    for (int c = 0; c < EACH; c++) {
        int64_t to = column + thread % ACROSS + ACROSS * c, batch = to / places;
        OLY_UNROLL
        for (int r = 0; r < EACH; r++) {
            int k = thread / ACROSS + ACROSS * r;
            if (k < rows && to < columns)
                oly_store(t.out.dtype, t.out.base, (batch * t.out.extent[1] + row + k) * places + to % places, sum[r][c]);
        }
    }
}
template <class A> OLY_DEVICE void convolve_tiles(const oly_cuda_local_task &t)
{
    int64_t each = features_of_group(t), begin = t.out.origin[1], end = begin + t.out.extent[1];
    int64_t first = begin / each, groups = (end - 1) / each - first + 1, row_blocks = (each + SIDE - 1) / SIDE;
    int64_t columns = t.n / t.out.extent[1], strips = (columns + SIDE - 1) / SIDE;
    for (int64_t k = oly_block(); k < groups * row_blocks * strips; k += oly_blocks()) {
        int64_t strip = k % strips, group = first + k / strips / row_blocks;
        int64_t row = group * each + k / strips % row_blocks * SIDE, last = row + SIDE;
        last = last < (group + 1) * each ? last : (group + 1) * each;
        row = row > begin ? row : begin;
        last = last < end ? last : end;
        if (row < last)
            convolve_tile<A>(t, group, row - begin, (int)(last - row), strip * SIDE, columns);
    }
}
/* Each with the registers that its type needs. */
#define TILES_OF(s, A)                                                                                                 \
    OLY_KERNEL_BLOCK_BOUNDED(oly_convolve_tiles_##s, oly_cuda_local_task, OLY_CUDA_THREADS, 1)                         \
    {                                                                                                                  \
        convolve_tiles<A>(task);                                                                                       \
    }
TILES_OF(signed, int64_t)
TILES_OF(unsigned, uint64_t)
TILES_OF(f32, float)
TILES_OF(f64, double)
TILES_OF(c64, oly_c64)
TILES_OF(c128, oly_c128)
