/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing JSON. See oly.h. */
#include "oly.h"

/* Bytes of the UTF-8 character at s; 0: invalid. */
static size_t character(const unsigned char *s)
{
    size_t n = *s < 0x80                 ? 1
               : *s >= 0xc2 && *s < 0xe0 ? 2
               : *s >= 0xe0 && *s < 0xf0 ? 3
               : *s >= 0xf0 && *s < 0xf5 ? 4
                                         : 0;
    for (size_t k = 1; k < n; k++)
        if ((s[k] & 0xc0) != 0x80)
            return 0;
    bool beyond = (*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] >= 0xa0) || (*s == 0xf0 && s[1] < 0x90) ||
                  (*s == 0xf4 && s[1] >= 0x90);
    return beyond ? 0 : n;
}

void tool_quote(oly_text *to, const char *text)
{
    oly_text_add(to, "\"");
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t n = character(s);
        if (*s == '"' || *s == '\\')
            oly_text_add(to, "\\%c", *s);
        else if (n == 0)
            oly_text_add(to, "\\ufffd");
        else if (*s < 0x20 || *s == '<' || *s == '>' || *s == '&' || *s == 0x7f)
            oly_text_add(to, "\\u%04x", *s);
        else
            oly_text_add_chars(to, (const char *)s, n);
        s += n ? n : 1;
    }
    oly_text_add(to, "\"");
}

void tool_key(oly_text *to, bool *first, const char *key)
{
    if (!*first)
        oly_text_add(to, ", ");
    *first = false;
    tool_quote(to, key);
    oly_text_add(to, ": ");
}

void tool_member(oly_text *to, bool *first, const char *key, const char *value)
{
    tool_key(to, first, key);
    tool_quote(to, value);
}

void tool_member_int(oly_text *to, bool *first, const char *key, long long value)
{
    tool_key(to, first, key);
    oly_text_add(to, "%lld", value);
}

void tool_member_number(oly_text *to, bool *first, const char *key, double value)
{
    tool_key(to, first, key);
    oly_text_add(to, "%.9g", value);
}
