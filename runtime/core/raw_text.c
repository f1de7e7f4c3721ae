/* SPDX-License-Identifier: BSD-3-Clause */
/* See raw_text.h. Everything here is async-signal-safe. */
#include "core/raw_text.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void oly_raw_begin(oly_raw *raw, int file, bool socket)
{
    raw->file = file;
    raw->socket = socket;
    raw->failed = false;
    raw->sum = OLY_RAW_SUM;
    raw->n = 0;
}

void oly_raw_flush(oly_raw *raw)
{
    for (size_t at = 0; at < raw->n && !raw->failed;) {
        ssize_t n = raw->socket ? send(raw->file, raw->buffer + at, raw->n - at, MSG_NOSIGNAL)
                                : write(raw->file, raw->buffer + at, raw->n - at);
        if (n > 0)
            at += (size_t)n;
        else if (errno != EINTR)
            raw->failed = true;
    }
    raw->sum = oly_raw_sum(raw->sum, raw->buffer, raw->n);
    raw->n = 0;
}

static void put(oly_raw *raw, char c)
{
    if (raw->n == sizeof raw->buffer)
        oly_raw_flush(raw);
    raw->buffer[raw->n++] = c;
}

void oly_raw_chars(oly_raw *raw, const char *chars, size_t n)
{
    for (size_t k = 0; k < n; k++)
        put(raw, chars[k]);
}

void oly_raw_text(oly_raw *raw, const char *text)
{
    for (; *text; text++)
        put(raw, *text);
}

void oly_raw_field(oly_raw *raw, const char *text, size_t most)
{
    for (size_t k = 0; k < most && text[k]; k++)
        put(raw, (unsigned char)text[k] < 0x20 || text[k] == 0x7f ? '?' : text[k]);
}

size_t oly_raw_digits(char *to, int64_t value)
{
    char reversed[24];
    size_t n = 0, length = 0;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        reversed[n++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (value < 0)
        to[length++] = '-';
    while (n > 0)
        to[length++] = reversed[--n];
    to[length] = 0;
    return length;
}

void oly_raw_int(oly_raw *raw, int64_t value)
{
    char digits[24];
    oly_raw_chars(raw, digits, oly_raw_digits(digits, value));
}

void oly_raw_hex(oly_raw *raw, uint64_t value)
{
    oly_raw_text(raw, "0x");
    for (int shift = 60; shift >= 0; shift -= 4)
        if (value >> shift || shift == 0)
            put(raw, "0123456789abcdef"[value >> shift & 15]);
}

void oly_raw_seconds(oly_raw *raw, int64_t ns)
{
    char digits[24];
    if (ns < 0) {
        put(raw, '-');
        ns = ns == INT64_MIN ? INT64_MAX : -ns;
    }
    oly_raw_int(raw, ns / 1000000000);
    put(raw, '.');
    size_t n = oly_raw_digits(digits, ns % 1000000000);
    for (size_t k = n; k < 9; k++)
        put(raw, '0');
    oly_raw_chars(raw, digits, n);
}

size_t oly_raw_read(const char *path, char *to, size_t size)
{
    size_t length = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    while (file >= 0 && length + 1 < size) {
        ssize_t n = read(file, to + length, size - 1 - length);
        if (n <= 0 && !(n < 0 && errno == EINTR))
            break;
        length += n > 0 ? (size_t)n : 0;
    }
    if (file >= 0)
        close(file);
    to[length] = 0;
    return length;
}
