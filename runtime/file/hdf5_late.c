/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of HDF5. See hdf5_late.h. OLY_HDF5_FILE is the name of the shared library that the headers belong to (Makefile). */
#define OLY_HDF5_NAMES /* by their own names here */
#include "file/hdf5_late.h"
#include "core/late_library.h"

oly_hdf5_symbols oly_hdf5;

#define NAME(name) #name,
static const char *const symbols[] = {OLY_HDF5_SYMBOLS(NAME)};
_Static_assert(sizeof oly_hdf5 == sizeof symbols, "one pointer for each name");

bool oly_hdf5_late_open(const char **reason)
{
    static const char *const files[] = {OLY_HDF5_FILE, OLY_HDF5_PATH, NULL};
    static oly_late_library library = {
        .files = files, .symbols = symbols, .addresses = (void **)&oly_hdf5, .n = sizeof symbols / sizeof *symbols};
    *reason = library.reason;
    return oly_late_library_open(&library);
}
