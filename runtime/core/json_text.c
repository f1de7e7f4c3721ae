/* SPDX-License-Identifier: BSD-3-Clause */
/* Strings of JSON. See json_text.h. */
#include "core/json_text.h"

/* Bytes of the UTF-8 character at s; 0: invalid. */
static int character(const unsigned char *s)
{
    int n = *s < 0x80 ? 1 : *s >= 0xc2 && *s < 0xe0 ? 2 : *s >= 0xe0 && *s < 0xf0 ? 3 : *s >= 0xf0 && *s < 0xf5 ? 4 : 0;
    for (int k = 1; k < n; k++)
        if ((s[k] & 0xc0) != 0x80)
            return 0;
    bool surrogate = n == 3 && s[0] == 0xed && s[1] >= 0xa0, tall = n == 4 && s[0] == 0xf4 && s[1] >= 0x90;
    bool overlong = (n == 3 && s[0] == 0xe0 && s[1] < 0xa0) || (n == 4 && s[0] == 0xf0 && s[1] < 0x90);
    return surrogate || tall || overlong ? 0 : n;
}

/* Bytes of the characters from s on that are written as they are. */
static size_t plain_bytes(const unsigned char *s)
{
    size_t n = 0;
    for (int more = 1; s[n] >= 0x20 && s[n] != '"' && s[n] != '\\' && more; n += (size_t)more)
        more = character(s + n);
    return n;
}

void oly_json_quote(oly_text *t, const char *text)
{
    oly_text_add_chars(t, "\"", 1);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t n = plain_bytes(s);
        oly_text_add_chars(t, (const char *)s, n);
        s += n;
        if (*s == '"' || *s == '\\')
            oly_text_add(t, "\\%c", *s++);
        else if (*s && *s < 0x20)
            oly_text_add(t, "\\u%04x", *s++);
        else if (*s)
            oly_text_add(t, "\\ufffd"), s++;
    }
    oly_text_add_chars(t, "\"", 1);
}
