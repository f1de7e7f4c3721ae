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

void oly_json_quote(oly_text *t, const char *text)
{
    oly_text_add(t, "\"");
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        int n = character(s);
        if (*s == '"' || *s == '\\')
            oly_text_add(t, "\\%c", *s);
        else if (n == 0)
            oly_text_add(t, "\\ufffd");
        else if (*s < 0x20)
            oly_text_add(t, "\\u%04x", *s);
        else
            oly_text_add_chars(t, (const char *)s, (size_t)n);
        s += n ? n : 1;
    }
    oly_text_add(t, "\"");
}
