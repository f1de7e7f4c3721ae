/* SPDX-License-Identifier: BSD-3-Clause */
/* A disk with faults. See faulty_storage.h. Each change that a synchronisation has not made durable is a record that can be undone:
 * the bytes that a write replaced, the file that a rename or unlink removed (kept by another link). Reboot undoes them, newest first.
 */
#include "faulty_storage.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum kind { WROTE, RESIZED, CREATED, RENAMED, UNLINKED, MADE_FOLDER, REMOVED_FOLDER } kind;

enum { FILES = 1024, MOVES = 4 };

typedef struct change {
    kind kind;
    int file; /* WROTE, RESIZED: a descriptor of our own */
    dev_t device;
    ino_t inode;          /* of that file */
    int64_t offset, size; /* WROTE: where; both: the size before */
    char *bytes;
    size_t n;
    char path[PATH_MAX], from[PATH_MAX]; /* RENAMED: from `from` to `path` */
    char kept[PATH_MAX];                 /* another link of what was replaced or unlinked; "": nothing was there */
    bool durable;
    int n_moves, move[MOVES]; /* the renames of its folder that have changed its path */
} change;

static faulty_disk disk;
static long calls;
static bool cut;
static change *changes;
static int n_changes, room_for_changes, n_kept;
static char *path_of[FILES]; /* of open descriptors */

static const oly_storage *real(void)
{
    return &oly_storage_kernel;
}

/* -- which call fails ----------------------------------------------------------------------------------------------------- */

static int fault(unsigned kind_of_call, const char *path)
{
    if (cut)
        return -EIO;
    if (!(disk.calls & kind_of_call) || (disk.only && path && !strstr(path, disk.only)))
        return 0;
    calls++;
    if (disk.cut_at && calls >= disk.cut_at) {
        cut = true;
        return -EIO;
    }
    long count = disk.fail_count == 0 ? 1 : disk.fail_count;
    bool fails = disk.fail_at && calls >= disk.fail_at && (count < 0 || calls < disk.fail_at + count);
    return fails ? -(disk.error ? disk.error : EIO) : 0;
}

static const char *opened_as(int file)
{
    return file >= 0 && file < FILES && path_of[file] ? path_of[file] : "";
}

/* -- what has changed ------------------------------------------------------------------------------------------------------ */

static change *note(kind k)
{
    if (!disk.log && !disk.cut_at)
        return NULL;
    if (n_changes == room_for_changes) {
        room_for_changes = 2 * room_for_changes + 64;
        changes = realloc(changes, sizeof *changes * (size_t)room_for_changes);
        if (!changes)
            abort();
    }
    changes[n_changes] = (change){.kind = k, .file = -1};
    return &changes[n_changes++];
}

static void note_contents(kind k, int file, int64_t offset, size_t n)
{
    change *c = note(k);
    struct stat found;
    if (!c || fstat(file, &found) != 0)
        return;
    c->device = found.st_dev;
    c->inode = found.st_ino;
    c->size = found.st_size;
    c->offset = offset;
    c->file = dup(file);
    if (k == RESIZED) { /* what it cuts off */
        n = found.st_size > offset ? (size_t)(found.st_size - offset) : 0;
    }
    c->bytes = malloc(n + 1);
    ssize_t got = c->bytes ? pread(file, c->bytes, n, offset) : 0;
    c->n = got > 0 ? (size_t)got : 0;
}

static void keep_link(change *c, const char *path)
{
    char kept[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(kept, sizeof kept, "%.*s.faulty-%d-%d", slash ? (int)(slash - path + 1) : 0, path, (int)getpid(),
             n_kept++);
    if (link(path, kept) == 0)
        snprintf(c->kept, sizeof c->kept, "%s", kept);
}

static void note_name(kind k, const char *path, const char *from)
{
    change *c = note(k);
    if (!c)
        return;
    snprintf(c->path, sizeof c->path, "%s", path);
    snprintf(c->from, sizeof c->from, "%s", from ? from : "");
    if (k == RENAMED || k == UNLINKED)
        keep_link(c, path);
}

static bool of_contents(const change *c)
{
    return c->kind == WROTE || c->kind == RESIZED;
}

static void contents_are_durable(int file)
{
    struct stat found;
    if (fstat(file, &found) == 0)
        for (int k = 0; k < n_changes; k++)
            if (of_contents(&changes[k]) && changes[k].device == found.st_dev && changes[k].inode == found.st_ino)
                changes[k].durable = true;
}

static bool is_in(const char *path, const char *folder)
{
    const char *slash = strrchr(path, '/');
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    if (!slash)
        return strcmp(folder, ".") == 0;
    size_t length = slash == path ? 1 : (size_t)(slash - path);
    return length == n && memcmp(path, folder, n) == 0;
}

static void names_are_durable(const char *folder)
{
    for (int k = 0; k < n_changes; k++)
        if (!of_contents(&changes[k]) && is_in(changes[k].path, folder))
            changes[k].durable = true;
}

/* -- the table ------------------------------------------------------------------------------------------------------------- */

static int open_faulty(const char *path, int flags, unsigned mode)
{
    struct stat found;
    bool fresh = (flags & O_CREAT) && lstat(path, &found) != 0;
    int status = fault(FAULTY_OPEN, path), file = status ? status : real()->open(path, flags, mode);
    if (file >= 0 && fresh)
        note_name(CREATED, path, NULL);
    if (file >= 0 && (flags & O_TRUNC) && !fresh)
        note_contents(RESIZED, file, 0, 0);
    if (file >= 0 && file < FILES) {
        free(path_of[file]);
        path_of[file] = strdup(path);
    }
    return file;
}

/* A failing close still closes. */
static int close_faulty(int file)
{
    int status = fault(FAULTY_CLOSE, opened_as(file)), closed = real()->close(file);
    if (file >= 0 && file < FILES) {
        free(path_of[file]);
        path_of[file] = NULL;
    }
    return status ? status : closed;
}

static size_t at_most(size_t n)
{
    return disk.longest_write && n > disk.longest_write ? disk.longest_write : n;
}

static int64_t read_faulty(int file, void *bytes, size_t n, int64_t offset)
{
    int status = fault(FAULTY_READ, opened_as(file));
    return status ? status : real()->read_at(file, bytes, at_most(n), offset);
}

static int64_t write_faulty(int file, const void *bytes, size_t n, int64_t offset)
{
    int status = fault(FAULTY_WRITE, opened_as(file));
    if (status)
        return status;
    n = at_most(n);
    if (disk.room && offset >= disk.room)
        return -ENOSPC;
    if (disk.room && offset + (int64_t)n > disk.room)
        n = (size_t)(disk.room - offset);
    note_contents(WROTE, file, offset, n);
    return real()->write_at(file, bytes, n, offset);
}

static int truncate_faulty(int file, int64_t size)
{
    int status = fault(FAULTY_SIZE, opened_as(file));
    if (!status)
        note_contents(RESIZED, file, size, 0);
    return status ? status : real()->truncate(file, size);
}

static int fsync_faulty(int file)
{
    int status = fault(FAULTY_SYNC, opened_as(file));
    if (!status)
        contents_are_durable(file);
    return status;
}

static int fsync_folder_faulty(const char *path)
{
    int status = fault(FAULTY_SYNC, path);
    if (status)
        return status;
    struct stat found;
    if (stat(path, &found) != 0)
        return -errno;
    names_are_durable(path);
    return 0;
}

static void replace_folder(char path[PATH_MAX], const char *from, const char *to)
{
    char moved[2 * PATH_MAX];
    snprintf(moved, sizeof moved, "%s%s", to, path + strlen(from));
    snprintf(path, PATH_MAX, "%.*s", PATH_MAX - 1, moved);
}

/* Change `by` has given a folder another name: names in it that have changed before are known by that. */
static void folder_moves(int by)
{
    const char *from = changes[by].from;
    size_t n = strlen(from);
    for (int k = 0; k < by; k++) {
        change *c = &changes[k];
        if (strncmp(c->path, from, n) != 0 || c->path[n] != '/' || c->n_moves == MOVES)
            continue;
        c->move[c->n_moves++] = by;
        replace_folder(c->path, from, changes[by].path);
    }
}

static void folder_moves_back(int by)
{
    for (int k = 0; k < by; k++) {
        change *c = &changes[k];
        if (c->n_moves == 0 || c->move[c->n_moves - 1] != by)
            continue;
        c->n_moves--;
        replace_folder(c->path, changes[by].path, changes[by].from);
    }
}

static int rename_faulty(const char *from, const char *to)
{
    int status = fault(FAULTY_RENAME, to);
    if (!status)
        note_name(RENAMED, to, from);
    status = status ? status : real()->rename(from, to);
    if (status == 0 && n_changes > 0 && changes[n_changes - 1].kind == RENAMED)
        folder_moves(n_changes - 1);
    return status;
}

static int unlink_faulty(const char *path)
{
    int status = fault(FAULTY_REMOVE, path);
    if (!status)
        note_name(UNLINKED, path, NULL);
    return status ? status : real()->unlink(path);
}

static int mkdir_faulty(const char *path, unsigned mode)
{
    int status = fault(FAULTY_MKDIR, path);
    if (!status)
        status = real()->mkdir(path, mode);
    if (!status)
        note_name(MADE_FOLDER, path, NULL);
    return status;
}

static int rmdir_faulty(const char *path)
{
    int status = fault(FAULTY_REMOVE, path);
    if (!status)
        status = real()->rmdir(path);
    if (!status)
        note_name(REMOVED_FOLDER, path, NULL);
    return status;
}

static int lstat_faulty(const char *path, oly_file_facts *facts)
{
    int status = fault(FAULTY_LOOK, path);
    return status ? status : real()->lstat(path, facts);
}

static int fstat_faulty(int file, oly_file_facts *facts)
{
    int status = fault(FAULTY_LOOK, opened_as(file));
    return status ? status : real()->fstat(file, facts);
}

typedef struct visitor {
    int (*visit)(void *context, const char *name);
    void *context;
} visitor;

static int visit_real(void *context, const char *name)
{
    const visitor *v = context;
    return strncmp(name, ".faulty-", 8) == 0 ? 0 : v->visit(v->context, name);
}

static int list_faulty(const char *path, int (*visit)(void *context, const char *name), void *context)
{
    int status = fault(FAULTY_LOOK, path);
    visitor v = {visit, context};
    return status ? status : real()->list(path, visit_real, &v);
}

static const oly_storage faulty = {
    .open = open_faulty,
    .close = close_faulty,
    .read_at = read_faulty,
    .write_at = write_faulty,
    .truncate = truncate_faulty,
    .fsync = fsync_faulty,
    .fsync_folder = fsync_folder_faulty,
    .rename = rename_faulty,
    .unlink = unlink_faulty,
    .mkdir = mkdir_faulty,
    .rmdir = rmdir_faulty,
    .lstat = lstat_faulty,
    .fstat = fstat_faulty,
    .list = list_faulty,
};

/* -- the power fails ------------------------------------------------------------------------------------------------------- */

static void undo_contents(const change *c)
{
    if (c->n && pwrite(c->file, c->bytes, c->n, c->offset) != (ssize_t)c->n)
        abort();
    if (ftruncate(c->file, c->size) != 0)
        abort();
}

static void undo_name(const change *c)
{
    switch (c->kind) {
    case CREATED: unlink(c->path); break;
    case RENAMED:
        rename(c->path, c->from);
        if (c->kept[0])
            rename(c->kept, c->path);
        break;
    case UNLINKED:
        if (c->kept[0])
            rename(c->kept, c->path);
        break;
    case MADE_FOLDER: rmdir(c->path); break;
    default: mkdir(c->path, 0777); break;
    }
}

static uint64_t random_after(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    return (z ^ (z >> 27)) >> 17;
}

static void forget(void)
{
    for (int k = 0; k < n_changes; k++) {
        if (changes[k].kept[0])
            unlink(changes[k].kept);
        if (changes[k].file >= 0)
            close(changes[k].file);
        free(changes[k].bytes);
    }
    free(changes);
    changes = NULL;
    n_changes = room_for_changes = 0;
}

void faulty_storage_reboot(uint64_t which)
{
    int names = 0, kept_names = 0;
    uint64_t state = which;
    for (int k = 0; k < n_changes; k++)
        names += !of_contents(&changes[k]) && !changes[k].durable;
    kept_names = which == 0 ? 0 : which == 1 ? names : (int)(random_after(&state) % (uint64_t)(names + 1));
    for (int k = n_changes - 1; k >= 0; k--) {
        const change *c = &changes[k];
        if (c->durable)
            continue;
        if (!of_contents(c)) {
            if (names-- > kept_names) {
                undo_name(c);
                if (c->kind == RENAMED)
                    folder_moves_back(k);
            }
        } else if (c->file >= 0 && (which < 2 || random_after(&state) % 2)) {
            undo_contents(c);
        }
    }
    faulty_storage_end();
}

void faulty_storage_begin(const faulty_disk *new_disk)
{
    faulty_storage_end();
    disk = *new_disk;
    calls = 0;
    cut = false;
    oly_storage_set(&faulty);
}

long faulty_storage_calls(void)
{
    return calls;
}

void faulty_storage_end(void)
{
    forget();
    for (int k = 0; k < FILES; k++) {
        free(path_of[k]);
        path_of[k] = NULL;
    }
    cut = false;
    oly_storage_set(NULL);
}
