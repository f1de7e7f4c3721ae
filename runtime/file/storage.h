/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations on files that everything in Olympus uses that keeps data: a table, so that tests can replace it by a disk that is
 * full, fails, or loses what was not synchronised (tests/support/faulty_storage.h). Callable by runtime/file and above; what a user
 * sees of a failure is made by file.h. */
#ifndef OLY_FILE_STORAGE_H
#define OLY_FILE_STORAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is known of a file without reading it. */
typedef struct oly_file_facts {
    int64_t size;                 /* bytes */
    int64_t seconds, nanoseconds; /* when its contents were last changed */
    uint64_t device, inode;
    bool regular, folder;
} oly_file_facts;

/* Every function returns 0 or a result of at least 0, and on failure the negative errno, as -ENOSPC. */
typedef struct oly_storage {
    /* flags and mode as open(2); returns a descriptor. O_CLOEXEC is added. */
    int (*open)(const char *path, int flags, unsigned mode);
    int (*close)(int file);
    /* Bytes read, at most n; 0 at the end of the file. */
    int64_t (*read_at)(int file, void *bytes, size_t n, int64_t offset);
    /* Bytes written, at most n. */
    int64_t (*write_at)(int file, const void *bytes, size_t n, int64_t offset);
    int (*truncate)(int file, int64_t size); /* or extends, with zeros */
    int (*fsync)(int file);                  /* contents and size are on the disk */
    int (*fsync_folder)(const char *path);   /* the names in it are */
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
    int (*mkdir)(const char *path, unsigned mode);
    int (*rmdir)(const char *path);
    int (*lstat)(const char *path, oly_file_facts *facts); /* of a link itself */
    int (*fstat)(int file, oly_file_facts *facts);
    /* Visits the names in a folder, but "." and "..", in any order, until visit returns other than 0; returns that. */
    int (*list)(const char *path, int (*visit)(void *context, const char *name), void *context);
} oly_storage;

/* The table in use, and the kernel's. */
const oly_storage *oly_storage_get(void);
extern const oly_storage oly_storage_kernel;
/* Replaces it; NULL: the kernel's again. Not while files are open. */
void oly_storage_set(const oly_storage *storage);
#endif
