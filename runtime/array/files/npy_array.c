/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers of .npy and arrays. See npy_array.h. */
#include "array/files/npy_array.h"
#include "core/hash.h"
#include "core/min_max.h"
#include "file/file.h"
#include <inttypes.h>
#include <string.h>

oly_npy_header oly_npy_header_of(const oly_type *type)
{
    oly_npy_header h = {.dtype = type->dtype, .rank = type->rank};
    memcpy(h.shape, type->shape, sizeof h.shape);
    return h;
}

oly_type oly_npy_type_of(const oly_npy_header *h)
{
    oly_type type = {.dtype = h->dtype, .rank = h->rank};
    memcpy(type.shape, h->shape, sizeof h->shape);
    return type;
}

oly_file_array oly_npy_elements(const oly_npy_header *h, int file, const char *path, int64_t begin)
{
    oly_file_array a = {.file = file,
                        .path = path,
                        .offset = begin + h->data,
                        .dtype = h->dtype,
                        .rank = h->rank,
                        .fortran = h->fortran,
                        .swapped = h->swapped};
    memcpy(a.shape, h->shape, sizeof a.shape);
    return a;
}

oly_status oly_npy_read(int file, const char *path, int64_t begin, int64_t end, oly_npy_header *h, uint64_t *hash)
{
    char prefix[OLY_NPY_PREFIX];
    size_t n = (size_t)oly_smaller(end - begin, OLY_NPY_PREFIX), length;
    OLY_TRY(oly_file_read(file, path, prefix, n, begin));
    OLY_TRY(oly_npy_header_length(prefix, n, path, &length));
    length = (size_t)oly_smaller((int64_t)length, end - begin);
    char *bytes = oly_malloc(length);
    if (!bytes)
        return oly_out_of_memory(length, "the header of a file");
    oly_status st = oly_file_read(file, path, bytes, length, begin);
    if (st == OLY_OK)
        st = oly_npy_header_read(bytes, length, path, h);
    *hash = oly_hash(*hash, bytes, st == OLY_OK ? length : 0);
    oly_release(bytes);
    if (st == OLY_OK && end - begin < h->data + oly_npy_bytes(h))
        st = oly_fail(OLY_IO, "cannot read %s: it is truncated: it has %" PRId64 " bytes, and its header says %" PRId64,
                      path, end - begin, h->data + oly_npy_bytes(h));
    return st;
}
