/* SPDX-License-Identifier: BSD-3-Clause */
/* Boxes of messages, to consecutive bytes and back (core/gpu_pack.h). The packed bytes may be pinned memory of the host: neighbouring threads
 * take neighbouring units of them. */
#include "tasks.h" /* before device.h */

#include "core/gpu_pack.h"
#include "device.h"

struct oly_pack_sixteen {
    uint64_t half[2];
};

/* Index: of 32 bits where they are enough, as divisions of 64 bits take several times as long. */
template <class T, class Index> OLY_DEVICE void pack_units(const oly_gpu_pack_task &t)
{
    T *box = (T *)t.box, *packed = (T *)t.packed;
    for (int64_t i = oly_index(); i < t.n; i += oly_stride()) {
        Index at = (Index)(t.begin + i), point = at / (Index)t.run;
        int64_t offset = (int64_t)(at - point * (Index)t.run);
        for (int d = t.loops - 1; d >= 0; d--) {
            Index next = point / (Index)t.extent[d];
            offset += (int64_t)(point - next * (Index)t.extent[d]) * t.stride[d];
            point = next;
        }
        if (t.unpacks)
            box[offset] = packed[i];
        else
            packed[i] = box[offset];
    }
}

template <class T> OLY_DEVICE void pack(const oly_gpu_pack_task &t)
{
    if (t.begin + t.n <= INT32_MAX)
        pack_units<T, uint32_t>(t);
    else
        pack_units<T, uint64_t>(t);
}
OLY_KERNEL(oly_pack_1, oly_gpu_pack_task)
{
    pack<uint8_t>(task);
}
OLY_KERNEL(oly_pack_2, oly_gpu_pack_task)
{
    pack<uint16_t>(task);
}
OLY_KERNEL(oly_pack_4, oly_gpu_pack_task)
{
    pack<uint32_t>(task);
}
OLY_KERNEL(oly_pack_8, oly_gpu_pack_task)
{
    pack<uint64_t>(task);
}
OLY_KERNEL(oly_pack_16, oly_gpu_pack_task)
{
    pack<oly_pack_sixteen>(task);
}
