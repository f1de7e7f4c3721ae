/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of compiled kernels. See kernel_cache.h. A file has the key, too, which a reader compares, and a checksum of both. */
#include "device/cuda/kernel_cache.h"
#include "core/hash.h"
#include "core/option.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = 4096, MOST_BYTES = 64 << 20 };

typedef struct header {
    char magic[8];
    uint64_t key_bytes, image_bytes, checksum[2];
} header;
static const char magic[8] = {'O', 'L', 'Y', 'K', 'R', 'N', 'L', '1'};

static header header_of(const char *key, size_t key_bytes, const char *image, size_t bytes)
{
    header h = {.key_bytes = key_bytes, .image_bytes = bytes};
    memcpy(h.magic, magic, sizeof magic);
    for (uint64_t k = 0; k < 2; k++)
        h.checksum[k] = oly_hash(oly_hash(k + key_bytes, key, key_bytes), image, bytes);
    return h;
}

static bool find_folder(char *name, size_t size)
{
    const char *given = oly_option.kernel_cache, *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n;
    if (strcmp(given, "0") == 0)
        return false;
    if (*given)
        n = snprintf(name, size, "%s", given);
    else if (cache && cache[0] == '/')
        n = snprintf(name, size, "%s/olympus/kernels", cache);
    else if (home && home[0] == '/')
        n = snprintf(name, size, "%s/.cache/olympus/kernels", home);
    else
        return false;
    return n > 0 && (size_t)n < size;
}

static void make_folder(char *name)
{
    if (mkdir(name, 0700) == 0 || errno != ENOENT)
        return;
    for (char *slash = name + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(name, 0700);
        *slash = '/';
    }
    mkdir(name, 0700);
}

bool oly_kernel_cache_name(const char *key, size_t key_bytes, char *name, size_t size)
{
    char folder[PATH];
    if (!find_folder(folder, sizeof folder))
        return false;
    int n = snprintf(name, size, "%s/%016llx%016llx", folder, (unsigned long long)oly_hash(3, key, key_bytes),
                     (unsigned long long)oly_hash(4, key, key_bytes));
    return n > 0 && (size_t)n < size;
}

static bool read_all(int file, void *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = read(file, (char *)to + done, bytes - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

static bool write_all(int file, const void *from, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(file, (const char *)from + done, bytes - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* The key and the image, one after the other; NULL: the file is not this key's, or damaged. */
static char *read_contents(int file, const char *key, size_t key_bytes, header *h)
{
    struct stat s;
    if (fstat(file, &s) != 0 || s.st_size > MOST_BYTES || !read_all(file, h, sizeof *h) ||
        memcmp(h->magic, magic, sizeof magic) != 0 || h->key_bytes != key_bytes || h->image_bytes > MOST_BYTES ||
        (size_t)s.st_size != sizeof *h + key_bytes + h->image_bytes)
        return NULL;
    char *contents = malloc(key_bytes + h->image_bytes + 1);
    if (!contents)
        return NULL;
    if (read_all(file, contents, key_bytes + h->image_bytes) && memcmp(contents, key, key_bytes) == 0) {
        header right = header_of(key, key_bytes, contents + key_bytes, h->image_bytes);
        if (memcmp(&right, h, sizeof right) == 0)
            return contents;
    }
    free(contents);
    return NULL;
}

bool oly_kernel_cache_read(const char *key, size_t key_bytes, char **image, size_t *bytes)
{
    char name[PATH + 64];
    header h;
    *image = NULL;
    int file = oly_kernel_cache_name(key, key_bytes, name, sizeof name) ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return false;
    char *contents = read_contents(file, key, key_bytes, &h);
    close(file);
    if (!contents)
        return false;
    memmove(contents, contents + key_bytes, h.image_bytes);
    contents[h.image_bytes] = 0;
    *image = contents;
    *bytes = h.image_bytes;
    return true;
}

/* Under a name of this process's first: others see the file whole or not at all. */
void oly_kernel_cache_write(const char *key, size_t key_bytes, const char *image, size_t bytes)
{
    static _Atomic(unsigned) written;
    char name[PATH + 64], own[PATH + 128], folder[PATH];
    header h = header_of(key, key_bytes, image, bytes);
    if (!find_folder(folder, sizeof folder) || !oly_kernel_cache_name(key, key_bytes, name, sizeof name))
        return;
    make_folder(folder);
    snprintf(own, sizeof own, "%s.%ld-%u", name, (long)getpid(), atomic_fetch_add(&written, 1));
    int file = open(own, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    bool ok = write_all(file, &h, sizeof h) && write_all(file, key, key_bytes) && write_all(file, image, bytes);
    ok = close(file) == 0 && ok;
    if (!ok || rename(own, name) != 0)
        unlink(own);
}

void oly_kernel_cache_remove(const char *key, size_t key_bytes)
{
    char name[PATH + 64];
    if (oly_kernel_cache_name(key, key_bytes, name, sizeof name))
        unlink(name);
}
