/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the elements of data sets lie in their file. See hdf5_file.h. */
#include "file/hdf5_types.h"
#include <string.h>

static oly_status nowhere(const oly_hdf5_set *s)
{
    H5Eclear2(H5E_DEFAULT);
    return oly_fail(OLY_IO, "cannot write \"%s\" of %s: it has no place in the file yet; save it under another name",
                    s->name, s->path);
}

static oly_status place_chunk(const oly_hdf5_set *s, hid_t layout, const int64_t *element, oly_hdf5_block *block)
{
    hsize_t extent[OLY_MAX_RANK], start[OLY_MAX_RANK], bytes;
    unsigned filters;
    haddr_t offset = HADDR_UNDEF;
    if (H5Pget_chunk(layout, s->rank, extent) != s->rank)
        return oly_hdf5_failed("look into", s->path);
    for (int d = 0; d < s->rank; d++) {
        block->shape[d] = (int64_t)extent[d];
        block->start[d] = element[d] / block->shape[d] * block->shape[d];
        start[d] = (hsize_t)block->start[d];
    }
    if (H5Dget_chunk_info_by_coord((hid_t)s->id, start, &filters, &offset, &bytes) < 0 || offset == HADDR_UNDEF)
        return nowhere(s);
    block->offset = (int64_t)offset;
    return OLY_OK;
}

oly_status oly_hdf5_place(const oly_hdf5_set *s, const int64_t *element, oly_hdf5_block *block)
{
    hid_t layout = H5Dget_create_plist((hid_t)s->id);
    *block = (oly_hdf5_block){.offset = -1};
    oly_status st = layout < 0 ? oly_hdf5_failed("look into", s->path) : OLY_OK;
    if (st == OLY_OK && H5Pget_layout(layout) == H5D_CHUNKED) {
        st = place_chunk(s, layout, element, block);
    } else if (st == OLY_OK) {
        haddr_t offset = H5Dget_offset((hid_t)s->id);
        memcpy(block->shape, s->shape, sizeof s->shape);
        block->offset = (int64_t)offset;
        st = offset == HADDR_UNDEF ? nowhere(s) : OLY_OK;
    }
    if (layout >= 0)
        H5Pclose(layout);
    return st;
}
