/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the small notations token by token. Used by layout (meshes, specs) and array (slices, axes). */
#include "core/scan.h"
#include "core/error.h"
#include <ctype.h>
#include <string.h>

oly_scanner oly_scan_begin(const char *text)
{
    return (oly_scanner){.start = text, .at = text};
}

static const char *next_token(const oly_scanner *s)
{
    const char *at = s->at;
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

bool oly_scan_end(oly_scanner *s)
{
    return oly_scan_peek(s) == 0;
}

char oly_scan_peek(oly_scanner *s)
{
    s->at = next_token(s);
    return *s->at;
}

bool oly_scan_take(oly_scanner *s, char c)
{
    if (c == 0 || oly_scan_peek(s) != c)
        return false;
    s->at++;
    return true;
}

static bool in_word(char c)
{
    return c == '_' || isalnum((unsigned char)c);
}

bool oly_scan_word(oly_scanner *s, char *word, size_t size)
{
    char first = oly_scan_peek(s);
    size_t length = 0;
    while (in_word(s->at[length]))
        length++;
    if (length == 0 || isdigit((unsigned char)first) || length >= size)
        return false;
    memcpy(word, s->at, length);
    word[length] = 0;
    s->at += length;
    return true;
}

bool oly_scan_integer(oly_scanner *s, int64_t *value)
{
    oly_scan_peek(s);
    const char *at = s->at;
    bool negative = *at == '-';
    if (*at == '-' || *at == '+')
        at++;
    if (!isdigit((unsigned char)*at))
        return false;
    int64_t sum = 0; /* of the given sign, so that the lowest value fits */
    for (; isdigit((unsigned char)*at); at++) {
        int digit = negative ? '0' - *at : *at - '0';
        if (__builtin_mul_overflow(sum, 10, &sum) || __builtin_add_overflow(sum, digit, &sum))
            return false;
    }
    s->at = at;
    *value = sum;
    return true;
}

int oly_scan_column(const oly_scanner *s)
{
    return (int)(next_token(s) - s->start) + 1;
}

oly_status oly_scan_expected(oly_scanner *s, const char *what)
{
    const char *here = next_token(s);
    int column = oly_scan_column(s);
    if (*here == 0)
        return oly_fail(OLY_PARSE, "expected %s at the end (column %d) of \"%s\"", what, column, s->start);
    return oly_fail(OLY_PARSE, "expected %s at column %d of \"%s\", before \"%s\"", what, column, s->start, here);
}
