/* SPDX-License-Identifier: BSD-3-Clause */
/* HDF5 files: data sets, boxes of them, attributes. Two implementations: hdf5_file.c and its neighbours where the library is built with
 * HDF5 (which is opened at the first use), and hdf5_none.c, which fails with how to build it so. Ids are HDF5's; negative: none. Failures have the text of HDF5's error
 * stack. Called by runtime/array/files. */
#ifndef OLY_FILE_HDF5_FILE_H
#define OLY_FILE_HDF5_FILE_H
#include "core/text.h"
#include "layout/layout.h"
#include <olympus/array.h>

typedef int64_t oly_hdf5_id;

/* OLY_IO in a build without HDF5, or where it cannot be opened. Before all others. */
oly_status oly_hdf5_need(void);

/* By this process alone; a file that is changed is open nowhere else. shown: the path in messages. fail OLY_IO. */
oly_status oly_hdf5_create(const char *path, const char *shown, oly_hdf5_id *file);
oly_status oly_hdf5_open(const char *path, const char *shown, bool change, oly_hdf5_id *file);
/* Closes what is >= 0. */
oly_status oly_hdf5_close(oly_hdf5_id file, const char *shown);

/* A data set. */
typedef struct oly_hdf5_set {
    oly_hdf5_id id;
    const char *path, *name; /* for messages; borrowed */
    oly_dtype dtype;
    int rank;
    int64_t shape[OLY_MAX_RANK];
    bool grows; /* along its first dimension */
    bool plain; /* its bytes are those of an array here: no other byte order, no compression */
} oly_hdf5_set;

/* *there: is there something of that name? fails OLY_INVALID: the name leads through a data set. */
oly_status oly_hdf5_look(oly_hdf5_id file, const char *path, const char *name, bool *there);
/* Opens it. fails OLY_IO: it is not there, OLY_DTYPE: its type is none of ours. */
oly_status oly_hdf5_set_open(oly_hdf5_id file, const char *path, const char *name, oly_hdf5_set *s);
/* Makes s as its members say, with the groups of its name, in place of a data set that is there. fails OLY_INVALID: a group is there. chunk: [rank], or NULL: in one piece. */
oly_status oly_hdf5_set_make(oly_hdf5_id file, const int64_t *chunk, oly_hdf5_set *s);
/* Gives its first dimension that many rows. */
oly_status oly_hdf5_set_resize(oly_hdf5_set *s, int64_t rows);
void oly_hdf5_set_close(oly_hdf5_set *s);
void oly_hdf5_remove(oly_hdf5_id file, const char *name);

/* Where the bytes of a plain set are: of the block of elements that has this one, its first element, extents, and offset in the file. Its
 * elements are there row-major. fails OLY_IO: it has no place yet. */
typedef struct oly_hdf5_block {
    int64_t start[OLY_MAX_RANK], shape[OLY_MAX_RANK], offset;
} oly_hdf5_block;
oly_status oly_hdf5_place(const oly_hdf5_set *s, const int64_t *element, oly_hdf5_block *block);

/* Reads the elements lo <= i < hi to memory for just these, row-major, as dtype. */
oly_status oly_hdf5_read(const oly_hdf5_set *s, const int64_t *lo, const int64_t *hi, void *memory);

/* Attributes of an object, by this process alone. "/" is the file's root. */
oly_status oly_hdf5_write_text(oly_hdf5_id file, const char *path, const char *object, const char *name,
                               const char *text);
oly_status oly_hdf5_write_numbers(oly_hdf5_id file, const char *path, const char *object, const char *name, int n,
                                  const double *numbers);
oly_status oly_hdf5_read_text(oly_hdf5_id file, const char *path, const char *object, const char *name, oly_text *text);
/* At most `room` of them are stored; *n: how many there are. */
oly_status oly_hdf5_read_numbers(oly_hdf5_id file, const char *path, const char *object, const char *name, int room,
                                 double *numbers, int *n);
#endif
