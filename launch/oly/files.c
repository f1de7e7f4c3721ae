/* SPDX-License-Identifier: BSD-3-Clause */
/* Files and programs of the subcommands. See oly.h. */
#define _GNU_SOURCE
#include "oly.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

bool tool_is_timeline_name(const char *path)
{
    return ends_with(path, ".json") || ends_with(path, ".json.gz");
}

bool tool_is_timeline(const char *path)
{
    struct stat s;
    return tool_is_timeline_name(path) && stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

static oly_status no_memory(size_t bytes, const char *path)
{
    return oly_fail(OLY_MEMORY, "%s: no memory for %s", path, oly_size_text_of(bytes).chars);
}

/* zlib reads files that are not compressed, too. */
static oly_status read_unpacked(gzFile file, const char *path, size_t most, char **text, size_t *length)
{
    size_t room = 1 << 16;
    char *all = malloc(room + 1);
    *length = 0;
    for (int n = 1; all && n > 0;) {
        if (*length == room) {
            char *more = room < most ? realloc(all, 2 * room + 1) : NULL;
            if (!more) {
                free(all);
                return room < most
                           ? no_memory(2 * room, path)
                           : oly_fail(OLY_PARSE, "%s: it is longer than %s", path, oly_size_text_of(most).chars);
            }
            all = more;
            room *= 2;
        }
        size_t rest = room - *length;
        n = gzread(file, all + *length, rest > 1 << 20 ? 1 << 20 : (unsigned)rest);
        if (n < 0) {
            free(all);
            return oly_fail(OLY_IO, "%s: it cannot be read, or is no whole compressed file", path);
        }
        *length += (size_t)n;
    }
    if (!all)
        return no_memory(room, path);
    all[*length] = 0;
    *text = all;
    return OLY_OK;
}

oly_status tool_read(const char *path, size_t most, char **text, size_t *length)
{
    struct stat s;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 || fstat(file, &s) != 0)
        return oly_fail(OLY_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(s.st_mode)) {
        close(file);
        return oly_fail(OLY_IO, "%s: this is no file", path);
    }
    gzFile unpacked = gzdopen(file, "rb");
    if (!unpacked) {
        close(file);
        return no_memory(1 << 15, path);
    }
    oly_status st = read_unpacked(unpacked, path, most, text, length);
    if (gzclose_r(unpacked) != Z_OK && st == OLY_OK) {
        free(*text);
        return oly_fail(OLY_IO, "%s: the compressed file is cut short", path);
    }
    return st;
}

oly_status tool_write(const char *path, const oly_text *text)
{
    if (text->failed)
        return no_memory(text->length, path);
    if (strcmp(path, "-") == 0)
        return fwrite(oly_text_chars(text), 1, text->length, stdout) == text->length && fflush(stdout) == 0
                   ? OLY_OK
                   : oly_fail(OLY_IO, "standard output: %s", strerror(errno));
    struct stat there;
    if (lstat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return oly_fail(OLY_IO, "%s: %s", path,
                        S_ISDIR(there.st_mode) ? "this is a folder" : "only a regular file is replaced");
    char *other = NULL;
    if (asprintf(&other, "%s.new.%ld", path, (long)getpid()) < 0)
        return no_memory(strlen(path), path);
    FILE *file = fopen(other, "wxe");
    bool good = file && fwrite(oly_text_chars(text), 1, text->length, file) == text->length;
    int code = good ? 0 : errno;
    if (file && fclose(file) != 0 && good) {
        code = errno;
        good = false;
    }
    if (good && rename(other, path) != 0) {
        code = errno;
        good = false;
    }
    if (!good)
        unlink(other);
    free(other);
    return good ? OLY_OK : oly_fail(OLY_IO, "%s: %s", path, strerror(code));
}

static void __attribute__((noreturn)) become(char **command, int out, int err)
{
    if (out >= 0)
        dup2(out, STDOUT_FILENO);
    if (err >= 0)
        dup2(err, STDERR_FILENO);
    execvp(command[0], command);
    fprintf(stderr, "oly: cannot run %s: %s\n", command[0], strerror(errno));
    _exit(127);
}

int tool_run(char **command, int out, int err)
{
    fflush(NULL);
    pid_t child = fork();
    int status;
    if (child == 0)
        become(command, out, err);
    if (child < 0)
        return tool_fail("cannot start a process: %s", strerror(errno)), 127;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
