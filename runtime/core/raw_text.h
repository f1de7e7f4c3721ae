/* SPDX-License-Identifier: BSD-3-Clause */
/* Text for a file or a socket, written where nothing else works: in signal handlers, without memory, beside threads that hang. Only
 * write(2) and send(2) into and from a buffer of the caller's. Callable from every layer. */
#ifndef OLY_CORE_RAW_TEXT_H
#define OLY_CORE_RAW_TEXT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct oly_raw {
    int file;
    bool socket;  /* no SIGPIPE when the other side is gone */
    bool failed;  /* nothing more is written */
    uint32_t sum; /* of all bytes so far: oly_raw_sum */
    size_t n;
    char buffer[4096];
} oly_raw;

void oly_raw_begin(oly_raw *raw, int file, bool socket);
void oly_raw_flush(oly_raw *raw);
void oly_raw_chars(oly_raw *raw, const char *chars, size_t n);
void oly_raw_text(oly_raw *raw, const char *text); /* as it is */
/* At most this many bytes of a text from elsewhere: control characters, which would end a line or a field, become '?'. */
void oly_raw_field(oly_raw *raw, const char *text, size_t most);
void oly_raw_int(oly_raw *raw, int64_t value);
void oly_raw_hex(oly_raw *raw, uint64_t value);
void oly_raw_seconds(oly_raw *raw, int64_t ns); /* "12.000345678" */

/* The digits of a number, terminated, in `to` (at least 24 bytes); returns their count. */
size_t oly_raw_digits(char *to, int64_t value);
/* FNV-1a, continued from `sum` (first: OLY_RAW_SUM). */
#define OLY_RAW_SUM 2166136261u
static inline uint32_t oly_raw_sum(uint32_t sum, const char *bytes, size_t n)
{
    for (size_t k = 0; k < n; k++)
        sum = (sum ^ (unsigned char)bytes[k]) * 16777619u;
    return sum;
}
/* The first bytes of a small file such as /proc/self/stat, terminated. Returns their count, 0 if it cannot be read. */
size_t oly_raw_read(const char *path, char *to, size_t size);
#endif
