/* SPDX-License-Identifier: BSD-3-Clause */
/* Boxes of an array in a file: reading and writing parts of it, in either order of the dimensions and of the bytes, with a few MiB
 * of memory. Callable by runtime/file and above. */
#ifndef OLY_FILE_BOX_H
#define OLY_FILE_BOX_H
#include "core/error.h"
#include "layout/layout.h"
#include <olympus/array.h>

/* Elements one after the other from `offset` on. */
typedef struct oly_file_array {
    int file;
    const char *path; /* for messages */
    int64_t offset;   /* bytes before the first element */
    oly_dtype dtype;
    int rank;
    int64_t shape[OLY_MAX_RANK];
    bool fortran; /* the first index varies fastest */
    bool swapped; /* the bytes of each number are in the other order than this machine's */
} oly_file_array;

enum { OLY_FILE_CHUNK = 4 << 20 }; /* bytes of memory for reading or writing at most */

/* Moves the elements of `box` between the file and memory, which holds those of `held`, row-major; it contains the box. Bools are 0
 * or 1 in memory, whatever the file has. fail OLY_IO, OLY_MEMORY. */
oly_status oly_file_read_box(const oly_file_array *a, const oly_box *box, const oly_box *held, void *memory);
oly_status oly_file_write_box(const oly_file_array *a, const oly_box *box, const oly_box *held, const void *memory);

/* For elements that come in the order of the file, as from a stream: takes n of them, from number `first` on, as the file has them
 * (the bytes are changed), and copies those of `held` to its memory. */
void oly_file_scatter(const oly_file_array *a, int64_t first, int64_t n, void *elements, const oly_box *held,
                      void *memory);

/* Exchanges the bytes of n numbers of this type; of complex ones, those of each part. */
void oly_swap_bytes(oly_dtype dtype, int64_t n, void *elements);
/* The box of a whole array. */
oly_box oly_box_whole(int rank, const int64_t *shape);
#endif
