/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole reads and writes, and messages. See file.h. */
#include "file/file.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The kernel moves less than 2 GiB in a call. */
enum { LARGEST_CALL = 1 << 30 };

oly_status oly_file_fail(const char *what, const char *path, int error)
{
    return oly_fail(OLY_IO, "cannot %s %s: %s", what, path, strerror(error < 0 ? -error : error));
}

oly_status oly_file_fail_to_name(const char *temporary, const char *path, int error)
{
    oly_file_facts facts;
    if (oly_storage_get()->lstat(temporary, &facts) != -ENOENT)
        return oly_file_fail("write", path, error);
    return oly_fail(OLY_IO,
                    "cannot write %s: what was written is gone: does another program save this file? Only one may at a "
                    "time",
                    path);
}

static oly_status checked(int returned, const char *what, const char *path)
{
    return returned < 0 ? oly_file_fail(what, path, returned) : OLY_OK;
}

oly_status oly_file_open(const char *path, int *file, oly_file_facts *facts)
{
    const oly_storage *s = oly_storage_get();
    *file = s->open(path, O_RDONLY | O_NONBLOCK, 0); /* a pipe without a writer must not block */
    if (*file < 0)
        return oly_file_fail("open", path, *file);
    int returned = s->fstat(*file, facts);
    oly_status st = checked(returned, "look at", path);
    if (st == OLY_OK && !facts->regular)
        st = oly_fail(OLY_IO, "cannot open %s: it is %s, not a regular file", path,
                      facts->folder ? "a folder" : "a device, a pipe or a socket");
    if (st != OLY_OK) {
        s->close(*file);
        *file = -1;
    }
    return st;
}

oly_status oly_file_create(const char *path, const char *shown, unsigned mode, int *file)
{
    *file = oly_storage_get()->open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    return checked(*file, shown == path ? "create" : "write", shown);
}

oly_status oly_file_read(int file, const char *path, void *bytes, size_t n, int64_t offset)
{
    char *to = bytes;
    while (n > 0) {
        int64_t got = oly_storage_get()->read_at(file, to, n < LARGEST_CALL ? n : LARGEST_CALL, offset);
        if (got < 0)
            return oly_file_fail("read", path, (int)got);
        if (got == 0)
            return oly_fail(OLY_IO,
                            "cannot read %s: it ends at byte %" PRId64 ", %zu bytes too early; was it truncated?", path,
                            offset, n);
        to += got;
        offset += got;
        n -= (size_t)got;
    }
    return OLY_OK;
}

oly_status oly_file_write(int file, const char *path, const void *bytes, size_t n, int64_t offset)
{
    const char *from = bytes;
    while (n > 0) {
        int64_t put = oly_storage_get()->write_at(file, from, n < LARGEST_CALL ? n : LARGEST_CALL, offset);
        if (put <= 0)
            return oly_file_fail("write", path, put < 0 ? (int)put : ENOSPC);
        from += put;
        offset += put;
        n -= (size_t)put;
    }
    return OLY_OK;
}

oly_status oly_file_truncate(int file, const char *path, int64_t size)
{
    return checked(oly_storage_get()->truncate(file, size), "set the size of", path);
}

oly_status oly_file_sync(int file, const char *path)
{
    return checked(oly_storage_get()->fsync(file), "write", path);
}

oly_status oly_file_close(int file, const char *path)
{
    return file < 0 ? OLY_OK : checked(oly_storage_get()->close(file), "write", path);
}

bool oly_file_folder_of(const char *path, char *folder, size_t size)
{
    const char *last = strrchr(path, '/');
    int length = !last ? snprintf(folder, size, ".")
                       : snprintf(folder, size, "%.*s", last == path ? 1 : (int)(last - path), path);
    return length >= 0 && (size_t)length < size;
}

oly_status oly_file_sync_folder_of(const char *path)
{
    char folder[PATH_MAX];
    if (!oly_file_folder_of(path, folder, sizeof folder))
        return oly_file_fail("write", path, ENAMETOOLONG);
    return checked(oly_storage_get()->fsync_folder(folder), "write the folder", folder);
}

oly_status oly_file_may_replace(const char *path, bool *exists)
{
    oly_file_facts facts;
    int found = oly_storage_get()->lstat(path, &facts);
    *exists = found == 0;
    if (found == -ENOENT)
        return OLY_OK;
    if (found < 0)
        return oly_file_fail("write", path, found);
    if (facts.regular)
        return OLY_OK;
    return oly_fail(OLY_IO, "cannot write %s: it is there, and %s", path,
                    facts.folder ? "a folder" : "no regular file; only regular files are replaced");
}

oly_status oly_file_read_all(const char *path, size_t most, char **bytes, size_t *n)
{
    int file;
    oly_file_facts facts;
    *bytes = NULL;
    OLY_TRY(oly_file_open(path, &file, &facts));
    oly_status st = OLY_OK;
    *n = (size_t)facts.size;
    if (*n > most)
        st = oly_fail(OLY_IO, "cannot read %s: it has %zu bytes, and such a file at most %zu", path, *n, most);
    if (st == OLY_OK && !(*bytes = oly_malloc(*n + 1)))
        st = oly_out_of_memory(*n + 1, "reading a file");
    if (st == OLY_OK)
        st = oly_file_read(file, path, *bytes, *n, 0);
    oly_storage_get()->close(file);
    if (st == OLY_OK) {
        (*bytes)[*n] = '\0';
        return OLY_OK;
    }
    oly_release(*bytes);
    *bytes = NULL;
    return st;
}
