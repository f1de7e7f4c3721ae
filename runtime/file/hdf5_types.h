/* SPDX-License-Identifier: BSD-3-Clause */
/* Element types in HDF5, and its errors. For the files runtime/file/hdf5_*.c only, where the library is built with HDF5. */
#ifndef OLY_FILE_HDF5_TYPES_H
#define OLY_FILE_HDF5_TYPES_H
#include "core/error.h"
#include "file/hdf5_file.h"
#include "file/hdf5_late.h"

/* What HDF5 calls these elements in memory and in files: bools as h5py has them (an enumeration of FALSE and TRUE), complex numbers as
 * pairs {r, i}, 16-bit floats by their bits. The caller closes it. Negative: it has none. */
hid_t oly_hdf5_type_of(oly_dtype dtype);
/* The type that such elements of a file are read as. */
bool oly_hdf5_dtype_of(hid_t type, oly_dtype *dtype);

/* OLY_IO "cannot WHAT PATH: HDF5: its reasons". */
oly_status oly_hdf5_failed(const char *what, const char *path);
/* HDF5 does not print its errors itself. Before any other call. */
void oly_hdf5_quiet(void);
#endif
