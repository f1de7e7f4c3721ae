/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of hdf5_file.c and its neighbours where the library is built without HDF5: every call fails, and says how to build it so. */
#include "core/error.h"
#include "file/hdf5_file.h"

oly_status oly_hdf5_need(void)
{
    return oly_fail(OLY_IO, "this library is built without HDF5: install it (Debian and Ubuntu: "
                            "libhdf5-openmpi-dev or libhdf5-mpich-dev) and build it again, without HDF5=0");
}

#define ABSENT(name, ...)                                                                                              \
    oly_status name(__VA_ARGS__)                                                                                       \
    {                                                                                                                  \
        return oly_hdf5_need();                                                                                        \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
ABSENT(oly_hdf5_create, const char *path, const char *shown, oly_hdf5_id *file)
ABSENT(oly_hdf5_open, const char *path, const char *shown, bool change, oly_hdf5_id *file)
ABSENT(oly_hdf5_close, oly_hdf5_id file, const char *shown)
ABSENT(oly_hdf5_look, oly_hdf5_id file, const char *path, const char *name, bool *there)
ABSENT(oly_hdf5_set_open, oly_hdf5_id file, const char *path, const char *name, oly_hdf5_set *s)
ABSENT(oly_hdf5_set_make, oly_hdf5_id file, const int64_t *chunk, oly_hdf5_set *s)
ABSENT(oly_hdf5_set_resize, oly_hdf5_set *s, int64_t rows)
ABSENT(oly_hdf5_place, const oly_hdf5_set *s, const int64_t *element, oly_hdf5_block *block)
ABSENT(oly_hdf5_read, const oly_hdf5_set *s, const int64_t *lo, const int64_t *hi, void *memory)
ABSENT(oly_hdf5_write_text, oly_hdf5_id file, const char *path, const char *object, const char *name, const char *text)
ABSENT(oly_hdf5_write_numbers, oly_hdf5_id file, const char *path, const char *object, const char *name, int n,
       const double *numbers)
ABSENT(oly_hdf5_read_text, oly_hdf5_id file, const char *path, const char *object, const char *name, oly_text *text)
ABSENT(oly_hdf5_read_numbers, oly_hdf5_id file, const char *path, const char *object, const char *name, int room,
       double *numbers, int *n)

void oly_hdf5_set_close(oly_hdf5_set *s) {}
void oly_hdf5_remove(oly_hdf5_id file, const char *name) {}
