/* SPDX-License-Identifier: BSD-3-Clause */
/* Files by the table of storage.h, with failures as statuses: the message names the path and the reason. All of the bytes or an
 * error. Callable by runtime/file and above. */
#ifndef OLY_FILE_FILE_H
#define OLY_FILE_FILE_H
#include "core/error.h"
#include "file/storage.h"

/* fails OLY_IO "cannot WHAT PATH: REASON"; error: an errno, negative or not. */
oly_status oly_file_fail(const char *what, const char *path, int error);

/* The same where a file that is complete could not take its name: two programs that save one path remove each other's beginnings
 * (leftovers.h), so if this one is gone, the message says that. */
oly_status oly_file_fail_to_name(const char *temporary, const char *path, int error);

/* Opens an existing file for reading. fails OLY_IO, also unless it is a regular file. */
oly_status oly_file_open(const char *path, int *file, oly_file_facts *facts);
/* Creates a file; one that exists is an error. mode as open(2). shown: the name that the user knows, in messages. */
oly_status oly_file_create(const char *path, const char *shown, unsigned mode, int *file);
/* All n bytes. fails OLY_IO, also if the file ends before. */
oly_status oly_file_read(int file, const char *path, void *bytes, size_t n, int64_t offset);
oly_status oly_file_write(int file, const char *path, const void *bytes, size_t n, int64_t offset);
oly_status oly_file_truncate(int file, const char *path, int64_t size);
oly_status oly_file_sync(int file, const char *path);
/* Closes the file if it is >= 0; the status of a file that has been written. */
oly_status oly_file_close(int file, const char *path);
/* Makes the names in the folder of this path durable. */
oly_status oly_file_sync_folder_of(const char *path);
/* fails OLY_IO if something is there that a file may not replace: a folder, a device, a link. *exists: a regular file is there. */
oly_status oly_file_may_replace(const char *path, bool *exists);
/* The bytes of a small file, terminated by one 0 byte that is not counted; the caller releases them. fails OLY_IO, also if it has
 * more than `most` bytes; OLY_MEMORY. */
oly_status oly_file_read_all(const char *path, size_t most, char **bytes, size_t *n);

/* The part of a path before its last '/': "." if it has none. Written into the buffer; false: too small. */
bool oly_file_folder_of(const char *path, char *folder, size_t size);
#endif
