/* SPDX-License-Identifier: BSD-3-Clause */
/* The header of NumPy's .npy format: what it says of the array, and writing one. Nothing here reads or writes files. Callable by
 * runtime/file and above.
 *
 *   "\x93NUMPY"  major minor  length (2 bytes in version 1, 4 later, little-endian)
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   spaces   newline
 *   the elements, from an offset that is a multiple of 64
 *
 * NumPy has no names for the floating types that ml_dtypes adds. They are written as bytes of that size ('<V2', '|V1'), which NumPy
 * reads (.view(ml_dtypes.bfloat16) makes numbers of them), with the name in a comment after the dictionary, which NumPy skips. */
#ifndef OLY_FILE_NPY_HEADER_H
#define OLY_FILE_NPY_HEADER_H
#include "core/error.h"
#include <olympus/array.h>

typedef struct oly_npy_header {
    oly_dtype dtype;
    bool fortran; /* the first index varies fastest */
    bool swapped; /* the bytes of each number are in the other order than this machine's */
    int rank;
    int64_t shape[OLY_MAX_RANK];
    int64_t data; /* bytes before the first element */
} oly_npy_header;

enum {
    OLY_NPY_PREFIX = 12,       /* bytes of a file that tell how long its header is; a shorter file has none */
    OLY_NPY_WRITTEN_MOST = 512 /* bytes of a header that oly_npy_header_write makes */
};

/* Bytes before the first element, from the first n bytes of a file; OLY_NPY_PREFIX suffice. path: for messages.
 * fails OLY_IO: not .npy, another version, a length that no header has. */
oly_status oly_npy_header_length(const void *bytes, size_t n, const char *path, size_t *length);

/* Reads a header of n bytes (oly_npy_header_length or more). fails OLY_IO: truncated or malformed; OLY_DTYPE: elements that Olympus
 * does not have (Python objects, structures, texts, dates, long double), or whose type is not certain; OLY_SHAPE: more than
 * OLY_MAX_RANK dimensions; OLY_OVERFLOW: 2^63 bytes or more. */
oly_status oly_npy_header_read(const void *bytes, size_t n, const char *path, oly_npy_header *header);

/* Writes the header of a row-major array of this machine's byte order: dtype, rank and shape of `header`, whose other members are
 * set. version 1 or 2. Returns its length, a multiple of 64. */
size_t oly_npy_header_write(oly_npy_header *header, int version, char bytes[OLY_NPY_WRITTEN_MOST]);

/* Elements, and bytes of all of them. */
int64_t oly_npy_count(const oly_npy_header *header);
int64_t oly_npy_bytes(const oly_npy_header *header);
#endif
