/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of several boxes with any strides, such as the borders of a padded array, in one launch: a block copies chunks of 1024 elements, four of
 * them in a thread. */
#include "copy_boxes.h" /* before device.h, whose OLY_DEVICE is a macro */

#include "device.h"

OLY_DEVICE void box_offsets(const oly_cuda_copied_box &b, int32_t i, int32_t *to, int32_t *from)
{
    int32_t a = 0, f = 0;
    for (int d = b.rank - 1; d > 0; d--) {
        const uint32_t high = (uint32_t)((uint64_t)(uint32_t)i * (uint32_t)b.divisor[d] >> 32);
        const int32_t next = (int32_t)((high + (uint32_t)i) >> (int)(b.divisor[d] >> 32)), at = i - next * b.extent[d];
        a += at * b.to_stride[d];
        f += at * b.from_stride[d];
        i = next;
    }
    *to = a + i * b.to_stride[0];
    *from = f + i * b.from_stride[0];
}

template <class T> OLY_DEVICE void copy_boxes(const oly_cuda_boxes_task &t)
{
    int k = 0;
    OLY_NO_UNROLL
    for (int64_t chunk = oly_block(); chunk < t.chunks; chunk += oly_blocks()) {
        OLY_NO_UNROLL
        while (k + 1 < t.n_boxes && chunk >= t.box[k + 1].first)
            k++;
        const oly_cuda_copied_box &b = t.box[k];
        const int32_t first = (int32_t)(chunk - b.first) * OLY_CUDA_BOX_CHUNK + oly_thread();
        int32_t to[4] = {};
        T x[4] = {};
        OLY_UNROLL
        for (int j = 0; j < 4; j++) {
            const int32_t i = first + j * OLY_CUDA_THREADS;
            int32_t from = 0;
            if (i < b.n) {
                box_offsets(b, i, &to[j], &from);
                x[j] = ((const T *)b.from)[from];
            }
        }
        OLY_UNROLL
        for (int j = 0; j < 4; j++)
            if (first + j * OLY_CUDA_THREADS < b.n)
                ((T *)b.to)[to[j]] = x[j];
    }
}
OLY_KERNEL(oly_copy_boxes_1, oly_cuda_boxes_task)
{
    copy_boxes<uint8_t>(task);
}
OLY_KERNEL(oly_copy_boxes_2, oly_cuda_boxes_task)
{
    copy_boxes<uint16_t>(task);
}
OLY_KERNEL(oly_copy_boxes_4, oly_cuda_boxes_task)
{
    copy_boxes<uint32_t>(task);
}
OLY_KERNEL(oly_copy_boxes_8, oly_cuda_boxes_task)
{
    copy_boxes<uint64_t>(task);
}
