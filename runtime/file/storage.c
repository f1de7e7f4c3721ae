/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's files. See storage.h. */
#include "file/storage.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int result_of(int returned)
{
    return returned < 0 ? -errno : returned;
}

static int open_file(const char *path, int flags, unsigned mode)
{
    int file;
    do
        file = open(path, flags | O_CLOEXEC, (mode_t)mode);
    while (file < 0 && errno == EINTR);
    return result_of(file);
}

static int close_file(int file)
{
    return result_of(close(file));
}

static int64_t read_at(int file, void *bytes, size_t n, int64_t offset)
{
    ssize_t got;
    do
        got = pread(file, bytes, n, offset);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

static int64_t write_at(int file, const void *bytes, size_t n, int64_t offset)
{
    ssize_t put;
    do
        put = pwrite(file, bytes, n, offset);
    while (put < 0 && errno == EINTR);
    return put < 0 ? -errno : put;
}

static int truncate_file(int file, int64_t size)
{
    int returned;
    do
        returned = ftruncate(file, size);
    while (returned < 0 && errno == EINTR);
    return result_of(returned);
}

/* Not every file can be synchronised: a pipe, or a file of a file system that keeps nothing. */
static int sync_file(int file)
{
    int returned;
    do
        returned = fsync(file);
    while (returned < 0 && errno == EINTR);
    return returned < 0 && errno != EINVAL && errno != ENOTSUP ? -errno : 0;
}

static int sync_folder(const char *path)
{
    int folder = open_file(path, O_RDONLY | O_DIRECTORY, 0);
    if (folder < 0)
        return folder;
    int status = sync_file(folder);
    close(folder);
    return status;
}

static int rename_file(const char *from, const char *to)
{
    return result_of(rename(from, to));
}

static int unlink_file(const char *path)
{
    return result_of(unlink(path));
}

static int make_folder(const char *path, unsigned mode)
{
    return result_of(mkdir(path, (mode_t)mode));
}

static int remove_folder(const char *path)
{
    return result_of(rmdir(path));
}

static oly_file_facts facts_of(const struct stat *found)
{
    return (oly_file_facts){.size = found->st_size,
                            .seconds = found->st_mtim.tv_sec,
                            .nanoseconds = found->st_mtim.tv_nsec,
                            .device = found->st_dev,
                            .inode = found->st_ino,
                            .regular = S_ISREG(found->st_mode),
                            .folder = S_ISDIR(found->st_mode)};
}

static int facts_at(const char *path, oly_file_facts *facts)
{
    struct stat found;
    if (lstat(path, &found) != 0)
        return -errno;
    *facts = facts_of(&found);
    return 0;
}

static int facts_of_open(int file, oly_file_facts *facts)
{
    struct stat found;
    if (fstat(file, &found) != 0)
        return -errno;
    *facts = facts_of(&found);
    return 0;
}

static int list(const char *path, int (*visit)(void *context, const char *name), void *context)
{
    DIR *folder = opendir(path);
    if (!folder)
        return -errno;
    int status = 0;
    const struct dirent *entry;
    while (status == 0 && (errno = 0, entry = readdir(folder)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = visit(context, entry->d_name);
    if (status == 0 && errno != 0)
        status = -errno;
    closedir(folder);
    return status;
}

const oly_storage oly_storage_kernel = {
    .open = open_file,
    .close = close_file,
    .read_at = read_at,
    .write_at = write_at,
    .truncate = truncate_file,
    .fsync = sync_file,
    .fsync_folder = sync_folder,
    .rename = rename_file,
    .unlink = unlink_file,
    .mkdir = make_folder,
    .rmdir = remove_folder,
    .lstat = facts_at,
    .fstat = facts_of_open,
    .list = list,
};

static const oly_storage *in_use = &oly_storage_kernel;

const oly_storage *oly_storage_get(void)
{
    return in_use;
}

void oly_storage_set(const oly_storage *storage)
{
    in_use = storage ? storage : &oly_storage_kernel;
}
