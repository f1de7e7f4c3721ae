/* SPDX-License-Identifier: BSD-3-Clause */
/* PNG by libpng, row by row, with the library's memory and errors. Called by runtime/array/files. */
#ifndef OLY_FILE_PNG_STREAM_H
#define OLY_FILE_PNG_STREAM_H
#include <olympus/base.h>

typedef struct oly_png_source {
    int64_t width, height;
    void (*row)(const void *context, int64_t y, unsigned char *rgb); /* fills 3 * width bytes; rows from the top */
    const void *context;
} oly_png_source;

/* Passes the file's bytes to `sink` as they are made. fails like the sink, OLY_MEMORY, OLY_IO (libpng's reason). */
oly_status oly_png_encode(const oly_png_source *source, oly_status (*sink)(void *context, const void *bytes, size_t n),
                          void *context);
#endif
