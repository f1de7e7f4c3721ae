/* SPDX-License-Identifier: BSD-3-Clause */
/* Inflating by zlib. See deflated.h. */
#include "file/deflated.h"
#include "core/min_max.h"
#include "file/file.h"
#include "file/zlib_late.h"
#include <string.h>

enum { PACKED = 256 << 10, LARGEST = 1 << 30 };

struct oly_deflated {
    int file;
    const char *path;
    int64_t at, end;
    z_stream z;
    bool ended;
    unsigned char packed[PACKED];
};

static oly_status damaged(const oly_deflated *s, const char *what)
{
    return oly_fail(OLY_IO, "cannot read %s: a deflated member is damaged: %s", s->path, what);
}

oly_status oly_deflated_open(int file, const char *path, int64_t begin, int64_t packed, oly_deflated **stream)
{
    *stream = NULL;
    OLY_TRY(oly_zlib_need());
    oly_deflated *s = *stream = oly_calloc(1, sizeof *s);
    if (!s)
        return oly_out_of_memory(sizeof *s, "unpacking a file");
    s->file = file;
    s->path = path;
    s->at = begin;
    s->end = begin + packed;
    if (oly_zlib.inflateInit2_(&s->z, -MAX_WBITS, ZLIB_VERSION, sizeof s->z) ==
        Z_OK) /* without a header: that is the zip file's */
        return OLY_OK;
    oly_release(s);
    *stream = NULL;
    return oly_out_of_memory(sizeof *s, "unpacking a file");
}

static oly_status refill(oly_deflated *s)
{
    size_t n = (size_t)oly_smaller(PACKED, s->end - s->at);
    if (n == 0)
        return damaged(s, "it ends too early");
    OLY_TRY(oly_file_read(s->file, s->path, s->packed, n, s->at));
    s->at += (int64_t)n;
    s->z.next_in = s->packed;
    s->z.avail_in = (uInt)n;
    return OLY_OK;
}

oly_status oly_deflated_read(oly_deflated *s, void *bytes, size_t n)
{
    s->z.next_out = bytes;
    for (size_t left = n; left > 0; left = n - (size_t)(s->z.next_out - (unsigned char *)bytes)) {
        if (s->ended)
            return damaged(s, "it has fewer bytes than the file says");
        if (s->z.avail_in == 0)
            OLY_TRY(refill(s));
        s->z.avail_out = (uInt)(left < LARGEST ? left : LARGEST);
        int result = oly_zlib.inflate(&s->z, Z_NO_FLUSH);
        s->ended = result == Z_STREAM_END;
        if (result == Z_MEM_ERROR)
            return oly_out_of_memory(n, "unpacking a file");
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return damaged(s, s->z.msg ? s->z.msg : "no deflated data");
    }
    return OLY_OK;
}

oly_status oly_deflated_end(oly_deflated *s)
{
    unsigned char more;
    s->z.next_out = &more;
    s->z.avail_out = 1;
    while (!s->ended && s->z.avail_out == 1) {
        if (s->z.avail_in == 0)
            OLY_TRY(refill(s));
        int result = oly_zlib.inflate(&s->z, Z_NO_FLUSH);
        s->ended = result == Z_STREAM_END;
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return damaged(s, s->z.msg ? s->z.msg : "no deflated data");
    }
    return s->z.avail_out == 1 ? OLY_OK : damaged(s, "it has more bytes than the file says");
}

void oly_deflated_close(oly_deflated *s)
{
    if (s)
        oly_zlib.inflateEnd(&s->z);
    oly_release(s);
}
