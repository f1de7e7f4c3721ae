/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers in paths. See numbered_path.h. The path is never given to printf: it comes from outside. */
#include "file/numbered_path.h"
#include "core/error.h"
#include "core/text.h"
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { WIDEST = 18 };

/* The length of the conversion that begins here, with its width: 0 if it is none. */
static size_t conversion(const char *at, int *width, bool *zeros)
{
    const char *p = at + 1;
    *zeros = *p == '0';
    *width = 0;
    for (; isdigit((unsigned char)*p) && *width <= WIDEST; p++)
        *width = 10 * *width + (*p - '0');
    return *p == 'd' && *width <= WIDEST ? (size_t)(p - at) + 1 : 0;
}

static oly_status expand(oly_text *t, const char *pattern, int64_t number)
{
    int numbers = 0, width;
    bool zeros;
    for (const char *at = pattern; *at;) {
        size_t length = *at == '%' ? conversion(at, &width, &zeros) : 1;
        if (*at != '%') {
            length = strcspn(at, "%");
            oly_text_add_chars(t, at, length);
        } else if (at[1] == '%') {
            oly_text_add_chars(t, at, 1);
            length = 2;
        } else if (length && numbers++ == 0) {
            oly_text_add(t, zeros ? "%0*" PRId64 : "%*" PRId64, width, number);
        } else {
            return oly_fail(OLY_PARSE,
                            "the path \"%s\" has at column %d a %% that is not understood: it may have one place for "
                            "the number, as in frame-%%05d.png; write %%%% for a %% of the name",
                            pattern, (int)(at - pattern) + 1);
        }
        at += length;
    }
    return t->failed ? oly_out_of_memory(t->length, "a path") : OLY_OK;
}

oly_status oly_numbered_path(const char *pattern, int64_t number, char **path)
{
    oly_text t = {0};
    oly_status st = expand(&t, pattern, number);
    *path = st == OLY_OK ? oly_strdup(oly_text_chars(&t)) : NULL;
    if (st == OLY_OK && !*path)
        st = oly_out_of_memory(t.length, "a path");
    oly_text_free(&t);
    return st;
}

bool oly_path_is_numbered(const char *pattern)
{
    for (const char *at = strchr(pattern, '%'); at; at = strchr(at + 2, '%'))
        if (at[1] != '%')
            return true;
    return false;
}
