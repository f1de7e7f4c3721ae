/* SPDX-License-Identifier: BSD-3-Clause */
/* Encoding of PNG. See png_stream.h. libpng returns from errors by longjmp, so what must survive one is in `stream`. */
#include "file/png_stream.h"
#include "core/error.h"
#include <png.h>
#include <setjmp.h>
#include <stdio.h>

typedef struct stream {
    const oly_png_source *source;
    oly_status (*sink)(void *context, const void *bytes, size_t n);
    void *sink_context;
    unsigned char *pixels; /* one row */
    png_structp png;
    png_infop info;
    jmp_buf out;
    oly_status status; /* of the sink */
    bool out_of_memory;
    size_t bytes; /* of the allocation that failed */
    char reason[128];
} stream;

static void *take_memory(png_structp png, png_alloc_size_t bytes)
{
    void *memory = oly_malloc(bytes);
    if (!memory) {
        stream *s = png_get_mem_ptr(png);
        s->out_of_memory = true;
        s->bytes = bytes;
    }
    return memory;
}

static void give_memory(png_structp png, void *memory)
{
    (void)png;
    oly_release(memory);
}

static void leave(png_structp png, const char *reason)
{
    stream *s = png_get_error_ptr(png);
    snprintf(s->reason, sizeof s->reason, "%s", reason);
    longjmp(s->out, 1);
}

static void ignore_warning(png_structp png, const char *reason)
{
    (void)png;
    (void)reason;
}

static void write_bytes(png_structp png, png_bytep bytes, size_t n)
{
    stream *s = png_get_io_ptr(png);
    s->status = s->sink(s->sink_context, bytes, n);
    if (s->status != OLY_OK)
        png_error(png, "not written");
}

static void flush_bytes(png_structp png)
{
    (void)png; /* the sink's owner does */
}

static void write_rows(stream *s)
{
    const oly_png_source *p = s->source;
    png_set_write_fn(s->png, s, write_bytes, flush_bytes);
    png_set_IHDR(s->png, s->info, (png_uint_32)p->width, (png_uint_32)p->height, 8, PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(s->png, s->info);
    for (int64_t y = 0; y < p->height; y++) {
        p->row(p->context, y, s->pixels);
        png_write_row(s->png, s->pixels);
    }
    png_write_end(s->png, s->info);
}

static bool encode(stream *s)
{
    if (setjmp(s->out))
        return false;
    s->png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, s, leave, ignore_warning, s, take_memory, give_memory);
    if (s->png)
        s->info = png_create_info_struct(s->png);
    if (!s->png || !s->info)
        return false;
    write_rows(s);
    return true;
}

oly_status oly_png_encode(const oly_png_source *source, oly_status (*sink)(void *context, const void *bytes, size_t n),
                          void *context)
{
    size_t row_bytes = (size_t)source->width * 3;
    stream s = {.source = source, .sink = sink, .sink_context = context, .pixels = oly_malloc(row_bytes)};
    if (!s.pixels)
        return oly_out_of_memory(row_bytes, "writing a picture");
    bool encoded = encode(&s);
    png_destroy_write_struct(&s.png, &s.info);
    oly_release(s.pixels);
    if (encoded)
        return OLY_OK;
    if (s.status != OLY_OK)
        return s.status;
    if (s.out_of_memory)
        return oly_out_of_memory(s.bytes, "writing a picture");
    return oly_fail(OLY_IO, "libpng: %s", s.reason[0] ? s.reason : "it does not start");
}
