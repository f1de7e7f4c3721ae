/* SPDX-License-Identifier: BSD-3-Clause */
/* Zip files. See zip.h. All numbers in them are little-endian; those that do not fit are all ones, and stand in a zip64 record. */
#include "file/zip.h"
#include "core/hash.h"
#include "file/file.h"
#include <inttypes.h>
#include <string.h>

enum { END = 22, LOCATOR = 20, END_64 = 56, ENTRY = 46, LOCAL = 30, EXTRA_64 = 1, UTF_8 = 1 << 11, ENCRYPTED = 1 };
enum { DIRECTORY_MOST = 256 << 20, DATE_1980 = 1 << 5 | 1 };
static const uint32_t full = 0xffffffff;

static uint64_t get(const unsigned char *at, int n)
{
    uint64_t value = 0;
    for (int k = n - 1; k >= 0; k--)
        value = value << 8 | at[k];
    return value;
}

static oly_status damaged(const char *path, const char *what)
{
    return oly_fail(OLY_IO, "cannot read %s: it is damaged, or not a .npz file: %s", path, what);
}

/* -- the end of the file ---------------------------------------------------------------------------------------------------- */

/* The last record that could be the end: its comment reaches to the end of the file. */
static const unsigned char *find_end(const unsigned char *tail, size_t n)
{
    for (size_t k = END; k <= n; k++) {
        const unsigned char *at = tail + n - k;
        if (memcmp(at, "PK\5\6", 4) == 0 && get(at + 20, 2) == k - END)
            return at;
    }
    return NULL;
}

/* The zip64 record, if there is one; it lies just before its locator in all files that we know. */
static const unsigned char *find_end_64(const unsigned char *tail, const unsigned char *end)
{
    if (end - tail < LOCATOR + END_64)
        return NULL;
    const unsigned char *locator = end - LOCATOR, *at = locator - END_64;
    return memcmp(locator, "PK\6\7", 4) == 0 && memcmp(at, "PK\6\6", 4) == 0 ? at : NULL;
}

oly_status oly_zip_find(const void *tail, size_t n, int64_t size, const char *path, int64_t *begin, int64_t *bytes,
                        int64_t *count)
{
    const unsigned char *end = find_end(tail, n);
    if (!end)
        return damaged(path, "it has no directory at its end; was it truncated?");
    const unsigned char *wide = find_end_64(tail, end);
    uint64_t entries = wide ? get(wide + 32, 8) : get(end + 10, 2);
    uint64_t length = wide ? get(wide + 40, 8) : get(end + 12, 4), at = wide ? get(wide + 48, 8) : get(end + 16, 4);
    uint64_t limit = (uint64_t)size - n + (uint64_t)((wide ? wide : end) - (const unsigned char *)tail);
    if (get(end + 4, 2) != 0 && !wide)
        return damaged(path, "it is one of several volumes");
    if (at > limit || length != limit - at || entries > length / ENTRY)
        return damaged(path, "its directory is not where its end says");
    if (length > DIRECTORY_MOST)
        return damaged(path, "its directory has more than 256 MiB");
    *begin = (int64_t)at;
    *bytes = (int64_t)length;
    *count = (int64_t)entries;
    return OLY_OK;
}

/* -- entries ------------------------------------------------------------------------------------------------------------------ */

/* Replaces a number that did not fit by the next one of the zip64 record. */
static bool widen(uint64_t *value, const unsigned char **at, const unsigned char *end)
{
    if (*value != full)
        return true;
    if (end - *at < 8)
        return false;
    *value = get(*at, 8);
    *at += 8;
    return true;
}

static bool read_numbers(const unsigned char *entry, oly_zip_member *m)
{
    uint64_t packed = get(entry + 20, 4), size = get(entry + 24, 4), header = get(entry + 42, 4);
    const unsigned char *at = entry + ENTRY + get(entry + 28, 2), *end = at + get(entry + 30, 2);
    while (end - at >= 4) {
        uint64_t id = get(at, 2), n = get(at + 2, 2);
        at += 4;
        if ((uint64_t)(end - at) < n)
            return false;
        const unsigned char *number = at;
        if (id == EXTRA_64 &&
            !(widen(&size, &number, at + n) && widen(&packed, &number, at + n) && widen(&header, &number, at + n)))
            return false;
        at += n;
    }
    if (packed > INT64_MAX || size > INT64_MAX || header > INT64_MAX)
        return false;
    m->packed = (int64_t)packed;
    m->size = (int64_t)size;
    m->header = (int64_t)header;
    return true;
}

static oly_status read_entry(const unsigned char *entry, int64_t begin, const char *path, oly_zip_member *m)
{
    size_t length = get(entry + 28, 2);
    m->flags = (int)get(entry + 8, 2);
    m->method = (int)get(entry + 10, 2);
    m->crc = (uint32_t)get(entry + 16, 4);
    if (!read_numbers(entry, m))
        return damaged(path, "a size in its directory is malformed");
    if (m->header > begin || m->packed > begin - m->header)
        return damaged(path, "a member lies beyond its directory");
    if (memchr(entry + ENTRY, '\0', length))
        return damaged(path, "the name of a member contains a 0");
    m->name = oly_malloc(length + 1);
    if (!m->name)
        return oly_out_of_memory(length + 1, "the members of a file");
    memcpy(m->name, entry + ENTRY, length);
    m->name[length] = '\0';
    return OLY_OK;
}

oly_status oly_zip_parse(const void *directory, size_t n, int64_t begin, int64_t count, const char *path, oly_zip *zip)
{
    const unsigned char *at = directory, *end = at + n;
    *zip = (oly_zip){.directory = begin, .hash = oly_hash(7, directory, n)};
    zip->member = oly_calloc((size_t)count + 1, sizeof *zip->member);
    oly_status st =
        zip->member ? OLY_OK : oly_out_of_memory(sizeof *zip->member * (size_t)count, "the members of a file");
    while (st == OLY_OK && zip->n < count) {
        size_t length = end - at < ENTRY ? 0 : ENTRY + get(at + 28, 2) + get(at + 30, 2) + get(at + 32, 2);
        if (length == 0 || length > (size_t)(end - at) || memcmp(at, "PK\1\2", 4) != 0)
            st = damaged(path, "its directory is malformed");
        else
            st = read_entry(at, begin, path, &zip->member[zip->n++]);
        at += length;
    }
    if (st != OLY_OK)
        oly_zip_free(zip);
    return st;
}

void oly_zip_free(oly_zip *zip)
{
    for (int k = 0; k < zip->n; k++)
        oly_release(zip->member[k].name);
    oly_release(zip->member);
    *zip = (oly_zip){0};
}

oly_status oly_zip_read(int file, int64_t size, const char *path, oly_zip *zip)
{
    int64_t begin, bytes, count;
    size_t n = size < OLY_ZIP_TAIL ? (size_t)size : OLY_ZIP_TAIL;
    *zip = (oly_zip){0};
    unsigned char *tail = oly_malloc(n + 1), *directory = NULL;
    oly_status st =
        tail ? oly_file_read(file, path, tail, n, size - (int64_t)n) : oly_out_of_memory(n, "the end of a file");
    if (st == OLY_OK)
        st = oly_zip_find(tail, n, size, path, &begin, &bytes, &count);
    if (st == OLY_OK && !(directory = oly_malloc((size_t)bytes + 1)))
        st = oly_out_of_memory((size_t)bytes, "the directory of a file");
    if (st == OLY_OK)
        st = oly_file_read(file, path, directory, (size_t)bytes, begin);
    if (st == OLY_OK)
        st = oly_zip_parse(directory, (size_t)bytes, begin, count, path, zip);
    oly_release(tail);
    oly_release(directory);
    return st;
}

const oly_zip_member *oly_zip_member_named(const oly_zip *zip, const char *name)
{
    for (int k = zip->n - 1; k >= 0; k--) /* of several the last, as Python's */
        if (strcmp(zip->member[k].name, name) == 0)
            return &zip->member[k];
    return NULL;
}

oly_status oly_zip_data(int file, const oly_zip *zip, const oly_zip_member *m, const char *path, int64_t *begin)
{
    unsigned char local[LOCAL];
    if (m->flags & ENCRYPTED)
        return oly_fail(OLY_IO, "cannot read %s: its member %s is encrypted", path, m->name);
    if (m->method != OLY_ZIP_STORED && m->method != OLY_ZIP_DEFLATED)
        return oly_fail(OLY_IO,
                        "cannot read %s: its member %s is packed by method %d; stored and deflated ones are known",
                        path, m->name, m->method);
    OLY_TRY(oly_file_read(file, path, local, sizeof local, m->header));
    *begin = m->header + LOCAL + (int64_t)get(local + 26, 2) + (int64_t)get(local + 28, 2);
    if (memcmp(local, "PK\3\4", 4) != 0 || (int)get(local + 8, 2) != m->method || *begin > zip->directory - m->packed)
        return damaged(path, "a member is not where its directory says");
    if (m->method == OLY_ZIP_STORED && m->packed != m->size)
        return damaged(path, "a stored member has two sizes");
    return OLY_OK;
}

/* -- writing ------------------------------------------------------------------------------------------------------------------ */

static unsigned char *put(unsigned char *at, int n, uint64_t value)
{
    for (int k = 0; k < n; k++)
        at[k] = (unsigned char)(value >> 8 * k);
    return at + n;
}

static uint64_t narrow(int64_t value)
{
    return (uint64_t)value >= full ? full : (uint64_t)value;
}

static int flags_of(const char *name)
{
    while (*name > 0)
        name++;
    return *name ? UTF_8 : 0;
}

/* From the version needed to the crc: the same in both kinds of headers. */
static unsigned char *put_common(unsigned char *at, const oly_zip_member *m, bool wide)
{
    at = put(at, 2, wide ? 45 : 20);
    at = put(at, 2, (uint64_t)flags_of(m->name));
    at = put(at, 2, OLY_ZIP_STORED);
    at = put(put(at, 2, 0), 2, DATE_1980);
    return put(at, 4, m->crc);
}

size_t oly_zip_write_header(const oly_zip_member *m, unsigned char *bytes)
{
    size_t length = strlen(m->name);
    bool wide = (uint64_t)m->size >= full;
    if (!bytes)
        return LOCAL + length + (wide ? 20 : 0);
    unsigned char *at = put_common(put(bytes, 4, 0x04034b50), m, wide);
    at = put(put(at, 4, narrow(m->size)), 4, narrow(m->size));
    at = put(put(at, 2, length), 2, wide ? 20 : 0);
    memcpy(at, m->name, length);
    at += length;
    if (wide)
        at = put(put(put(put(at, 2, EXTRA_64), 2, 16), 8, (uint64_t)m->size), 8, (uint64_t)m->size);
    return (size_t)(at - bytes);
}

static size_t write_entry(const oly_zip_member *m, unsigned char *bytes)
{
    size_t length = strlen(m->name);
    bool large = (uint64_t)m->size >= full, far = (uint64_t)m->header >= full;
    size_t extra = large || far ? 4 + (large ? 16u : 0) + (far ? 8u : 0) : 0;
    if (!bytes)
        return ENTRY + length + extra;
    unsigned char *at = put(put(bytes, 4, 0x02014b50), 2, 3 << 8 | 45);
    at = put_common(at, m, extra > 0);
    at = put(put(at, 4, narrow(m->size)), 4, narrow(m->size));
    at = put(put(put(at, 2, length), 2, extra), 2, 0);
    at = put(put(put(at, 2, 0), 2, 0), 4, UINT64_C(0100644) << 16);
    at = put(at, 4, narrow(m->header));
    memcpy(at, m->name, length);
    at += length;
    if (extra)
        at = put(put(at, 2, EXTRA_64), 2, extra - 4);
    if (large)
        at = put(put(at, 8, (uint64_t)m->size), 8, (uint64_t)m->size);
    if (far)
        at = put(at, 8, (uint64_t)m->header);
    return (size_t)(at - bytes);
}

size_t oly_zip_write_directory(const oly_zip *zip, unsigned char *bytes)
{
    size_t n = 0;
    for (int k = 0; k < zip->n; k++)
        n += write_entry(&zip->member[k], bytes ? bytes + n : NULL);
    int64_t end = zip->directory + (int64_t)n;
    bool wide = zip->n >= 0xffff || (uint64_t)end >= full;
    if (!bytes)
        return n + END + (wide ? END_64 + LOCATOR : 0);
    unsigned char *at = bytes + n;
    if (wide) {
        at = put(put(put(put(at, 4, 0x06064b50), 8, END_64 - 12), 2, 45), 2, 45);
        at = put(put(put(put(at, 4, 0), 4, 0), 8, (uint64_t)zip->n), 8, (uint64_t)zip->n);
        at = put(put(at, 8, n), 8, (uint64_t)zip->directory);
        at = put(put(put(put(at, 4, 0x07064b50), 4, 0), 8, (uint64_t)end), 4, 1);
    }
    at = put(put(put(at, 4, 0x06054b50), 2, 0), 2, 0);
    uint64_t count = zip->n >= 0xffff ? 0xffff : (uint64_t)zip->n;
    at = put(put(at, 2, count), 2, count);
    at = put(put(put(at, 4, n), 4, narrow(zip->directory)), 2, 0);
    return (size_t)(at - bytes);
}
