/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of zlib. See zlib_late.h. */
#include "file/zlib_late.h"
#include "core/late_library.h"

oly_zlib_functions oly_zlib;

#define NAME(name) #name,
static const char *const symbols[] = {OLY_ZLIB_FUNCTIONS(NAME)};
_Static_assert(sizeof oly_zlib == sizeof symbols, "one pointer for each name");

oly_status oly_zlib_need(void)
{
    static const char *const files[] = {"libz.so.1", "libz.so", NULL};
    static oly_late_library library = {
        .files = files, .symbols = symbols, .addresses = (void **)&oly_zlib, .n = sizeof symbols / sizeof *symbols};
    return oly_late_library_open(&library) ? OLY_OK : oly_fail(OLY_IO, "zlib cannot be used here: %s", library.reason);
}
