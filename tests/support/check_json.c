/* SPDX-License-Identifier: BSD-3-Clause */
/* A strict reader of JSON for tests. See check_json.h. */
#include "check_json.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 64 };

static const char *space(const char *s)
{
    return s + strspn(s, " \t\r\n");
}

/* Each returns what follows, or NULL; *bad is then the position of the error. */
static const char *value(const char *s, int depth, const char **bad);

static const char *fail(const char *s, const char **bad)
{
    if (!*bad)
        *bad = s;
    return NULL;
}

static const char *hexadecimal(const char *s, const char **bad)
{
    for (int k = 0; k < 4; k++, s++)
        if (!*s || !strchr("0123456789abcdefABCDEF", *s))
            return fail(s, bad);
    return s;
}

/* Bytes of the UTF-8 character; 0: none. */
static int utf8(const unsigned char *s)
{
    int n = *s < 0x80 ? 1 : *s >= 0xc2 && *s < 0xe0 ? 2 : *s >= 0xe0 && *s < 0xf0 ? 3 : *s >= 0xf0 && *s < 0xf5 ? 4 : 0;
    for (int k = 1; k < n; k++)
        if ((s[k] & 0xc0) != 0x80)
            return 0;
    return n;
}

static const char *string(const char *s, const char **bad)
{
    if (*s++ != '"')
        return fail(s - 1, bad);
    while (*s != '"') {
        if ((unsigned char)*s < 0x20)
            return fail(s, bad);
        if (*s == '\\') {
            s++;
            if (!*s || !strchr("\"\\/bfnrtu", *s))
                return fail(s, bad);
            if (*s++ == 'u' && !(s = hexadecimal(s, bad)))
                return NULL;
            continue;
        }
        int n = utf8((const unsigned char *)s);
        if (n == 0)
            return fail(s, bad);
        s += n;
    }
    return s + 1;
}

static const char *digits(const char *s, const char **bad)
{
    size_t n = strspn(s, "0123456789");
    return n ? s + n : fail(s, bad);
}

static const char *number(const char *s, const char **bad)
{
    s += *s == '-';
    s = *s == '0' ? s + 1 : digits(s, bad);
    if (s && *s == '.')
        s = digits(s + 1, bad);
    if (s && (*s == 'e' || *s == 'E')) {
        s++;
        s = digits(s + (*s == '+' || *s == '-'), bad);
    }
    return s;
}

static const char *list(const char *s, bool object, int depth, const char **bad)
{
    char end = object ? '}' : ']';
    s = space(s + 1);
    if (*s == end)
        return s + 1;
    for (;;) {
        if (object) {
            if (!(s = string(space(s), bad)))
                return NULL;
            s = space(s);
            if (*s++ != ':')
                return fail(s - 1, bad);
        }
        if (!(s = value(s, depth + 1, bad)))
            return NULL;
        s = space(s);
        if (*s == end)
            return s + 1;
        if (*s++ != ',')
            return fail(s - 1, bad);
    }
}

static const char *value(const char *s, int depth, const char **bad)
{
    static const char *const words[] = {"true", "false", "null"};
    s = space(s);
    if (depth > DEEPEST)
        return fail(s, bad);
    for (int k = 0; k < 3; k++)
        if (strncmp(s, words[k], strlen(words[k])) == 0)
            return s + strlen(words[k]);
    switch (*s) {
    case '{': return list(s, true, depth, bad);
    case '[': return list(s, false, depth, bad);
    case '"': return string(s, bad);
    default: return number(s, bad);
    }
}

const char *check_json(const char *text)
{
    const char *bad = NULL, *end = value(text, 0, &bad);
    if (!end)
        return bad;
    end = space(end);
    return *end ? end : NULL;
}

/* -- reading valid documents --------------------------------------------------------------------------------------- */

/* Entry `name` of the list or object at s; NULL: none. */
static const char *entry(const char *s, const char *name, size_t length)
{
    const char *bad = NULL;
    bool object = *s == '{';
    long place = object ? 0 : strtol(name, NULL, 10);
    if (*s != '{' && *s != '[')
        return NULL;
    s = space(s + 1);
    for (long k = 0; *s != '}' && *s != ']'; k++) {
        bool found = k == place;
        if (object) {
            const char *end = string(s, &bad);
            found = (size_t)(end - s) == length + 2 && strncmp(s + 1, name, length) == 0;
            s = space(end) + 1;
        }
        s = space(s);
        if (found)
            return s;
        s = space(value(s, 0, &bad));
        s = space(s + (*s == ','));
    }
    return NULL;
}

static const char *at(const char *text, const char *path)
{
    const char *s = space(text);
    while (s && *path) {
        size_t n = strcspn(path, ".");
        s = entry(s, path, n);
        path += n + (path[n] == '.');
    }
    return s;
}

double check_json_number(const char *text, const char *path)
{
    const char *s = at(text, path);
    return s && *s && strchr("-0123456789", *s) ? strtod(s, NULL) : NAN;
}

char *check_json_string(const char *text, const char *path)
{
    const char *s = at(text, path), *bad = NULL;
    return s && *s == '"' ? strndup(s + 1, (size_t)(string(s, &bad) - s - 2)) : NULL;
}

int check_json_count(const char *text, const char *path)
{
    const char *s = at(text, path), *bad = NULL;
    int n = 0;
    if (!s || (*s != '[' && *s != '{'))
        return -1;
    for (bool object = *s == '{'; *(s = space(s + 1)) != ']' && *s != '}' && *s; n++) {
        if (object)
            s = space(string(s, &bad)) + 1;
        s = space(value(s, 0, &bad));
        if (*s != ',')
            return n + 1;
    }
    return n;
}
