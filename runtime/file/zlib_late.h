/* SPDX-License-Identifier: BSD-3-Clause */
/* zlib, opened at its first use (core/late_library.h). After oly_zlib_need has succeeded, its functions are oly_zlib.NAME. Every machine
 * with libpng has it. For all files that would include its header; in the tool `oly`, which links zlib, not needed. */
#ifndef OLY_FILE_ZLIB_LATE_H
#define OLY_FILE_ZLIB_LATE_H
#include "core/error.h"
#include <zlib.h>

#define OLY_ZLIB_FUNCTIONS(x)                                                                                          \
    x(crc32) x(crc32_z) x(crc32_combine) x(inflateInit2_) x(inflate) x(inflateEnd) x(gzopen) x(gzwrite) x(gzclose)

#define OLY_ZLIB_POINTER(name) __typeof__(name) *name;
typedef struct oly_zlib_functions {
    OLY_ZLIB_FUNCTIONS(OLY_ZLIB_POINTER)
} oly_zlib_functions;
#undef OLY_ZLIB_POINTER

extern oly_zlib_functions oly_zlib;

/* fails OLY_IO: there is no zlib on this machine. Any thread; cheap after the first call. */
oly_status oly_zlib_need(void);
#endif
