/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers of .npy and the arrays they describe; the header may be anywhere in a file, as in .npz. Callable by runtime/array. */
#ifndef OLY_ARRAY_FILES_NPY_ARRAY_H
#define OLY_ARRAY_FILES_NPY_ARRAY_H
#include "file/box.h"
#include "file/npy_header.h"
#include "graph/type.h"

oly_npy_header oly_npy_header_of(const oly_type *type);
oly_type oly_npy_type_of(const oly_npy_header *h);
/* The elements behind the header at byte `begin` of a file. */
oly_file_array oly_npy_elements(const oly_npy_header *h, int file, const char *path, int64_t begin);
/* Reads the header at byte `begin` of a part of a file that ends at byte `end`, which must have room for all elements. hash: of the
 * header's bytes is mixed into it. */
oly_status oly_npy_read(int file, const char *path, int64_t begin, int64_t end, oly_npy_header *h, uint64_t *hash);
#endif
