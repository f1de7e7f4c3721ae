/* SPDX-License-Identifier: BSD-3-Clause */
/* The sources that a page names ("heat.c:40"), as far as they are in one folder and those below it: only C, C++ and CUDA files, which a
 * page may show to others. Called by page.c. */
#define _GNU_SOURCE /* nftw, FTW_ACTIONRETVAL */
#include "page.h"
#include "oly.h"
#include <ftw.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILES = 60, MOST_BYTES = 1 << 20, DEEPEST = 6, MOST_LOOKED_AT = 50000, LONGEST = 300 };

/* nftw passes no context. */
static struct {
    int n, looked_at;
    char named[MOST_FILES][LONGEST + 1]; /* as the page names them */
    char *found[MOST_FILES];             /* owned paths */
} sources;

static bool is_source(const char *name)
{
    static const char *const endings[] = {".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".cu", ".cuh", NULL};
    const char *dot = strrchr(name, '.');
    for (int k = 0; dot && endings[k]; k++)
        if (strcmp(dot, endings[k]) == 0)
            return true;
    return false;
}

/* One string of the JSON. */
static void consider(const char *text, size_t n)
{
    char name[LONGEST + 1];
    if (n < 3 || n > LONGEST || sources.n == MOST_FILES || memchr(text, '\\', n) || memchr(text, ' ', n))
        return;
    memcpy(name, text, n);
    name[n] = 0;
    char *colon = strrchr(name, ':');
    if (colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1))
        *colon = 0;
    if (!is_source(name))
        return;
    for (int k = 0; k < sources.n; k++)
        if (strcmp(sources.named[k], name) == 0)
            return;
    memcpy(sources.named[sources.n++], name, strlen(name) + 1);
}

static void collect(const oly_text *json)
{
    const char *end = oly_text_chars(json) + json->length;
    for (const char *at = oly_text_chars(json); at < end; at++) {
        if (*at != '"')
            continue;
        const char *begin = ++at;
        while (at < end && *at != '"')
            at += *at == '\\' ? 2 : 1;
        if (at < end)
            consider(begin, (size_t)(at - begin));
    }
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* How many characters two paths have in common at their ends. */
static size_t common_end(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), same = 0;
    while (same < n && same < m && a[n - 1 - same] == b[m - 1 - same])
        same++;
    return same;
}

static int visit(const char *path, const struct stat *s, int kind, struct FTW *where)
{
    const char *base = base_of(path);
    bool hidden = base[0] == '.' && where->level > 0, built = strncmp(base, "build", 5) == 0 && where->level > 0;
    if (++sources.looked_at > MOST_LOOKED_AT)
        return FTW_STOP;
    if (kind == FTW_D || kind == FTW_DNR)
        return hidden || built || where->level >= DEEPEST ? FTW_SKIP_SUBTREE : FTW_CONTINUE;
    for (int k = 0; kind == FTW_F && k < sources.n; k++) {
        if (strcmp(base_of(sources.named[k]), base) != 0 || s->st_size > MOST_BYTES)
            continue;
        if (sources.found[k] && common_end(sources.found[k], sources.named[k]) >= common_end(path, sources.named[k]))
            continue;
        free(sources.found[k]);
        sources.found[k] = strdup(path);
    }
    return FTW_CONTINUE;
}

oly_status page_add_sources(page_parts *parts, const char *folder)
{
    bool first = true;
    memset(&sources, 0, sizeof sources);
    collect(&parts->plans);
    collect(&parts->timeline);
    collect(&parts->report);
    if (sources.n > 0)
        nftw(folder, visit, 16, FTW_PHYS | FTW_ACTIONRETVAL);
    oly_text_add(&parts->sources, "{");
    for (int k = 0; k < sources.n; k++) {
        char *text;
        size_t length;
        if (sources.found[k] && tool_read(sources.found[k], MOST_BYTES, &text, &length) == OLY_OK) {
            tool_member(&parts->sources, &first, sources.named[k], text);
            free(text);
        }
        oly_drop_message();
        free(sources.found[k]);
    }
    oly_text_add(&parts->sources, "}");
    return parts->sources.failed ? oly_fail(OLY_MEMORY, "no memory for the sources") : OLY_OK;
}
