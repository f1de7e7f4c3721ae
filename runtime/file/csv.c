/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines and numbers. See csv.h. */
#include "file/csv.h"
#include "core/element.h"
#include "core/min_max.h"
#include "file/file.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 256 << 10, LONGEST = 64 << 20 };

/* -- lines ------------------------------------------------------------------------------------------------------------------- */

/* More of the file behind what is there. */
static oly_status read_more(oly_csv_lines *l)
{
    size_t keep = l->have - (size_t)(l->at - l->from);
    memmove(l->bytes, l->bytes + (l->at - l->from), keep);
    l->from = l->at;
    l->have = keep;
    if (l->room - keep <= PIECE) {
        size_t room = 2 * l->room;
        char *bytes = room <= LONGEST ? oly_realloc(l->bytes, room) : NULL;
        if (!bytes)
            return room > LONGEST
                       ? oly_fail(OLY_IO, "cannot read %s: the line at byte %" PRId64 " is longer than 32 MiB", l->path,
                                  l->at)
                       : oly_out_of_memory(room, "a line of a file");
        l->bytes = bytes;
        l->room = room;
    }
    size_t n = (size_t)oly_smaller(PIECE, l->size - l->from - (int64_t)keep);
    OLY_TRY(oly_file_read(l->file, l->path, l->bytes + keep, n, l->from + (int64_t)keep));
    l->have += n;
    return OLY_OK;
}

static oly_status take_line(oly_csv_lines *l, char **line)
{
    size_t seen = 0;
    for (;;) {
        char *begin = l->bytes + (l->at - l->from);
        size_t here = l->have - (size_t)(l->at - l->from);
        char *newline = here > seen ? memchr(begin + seen, '\n', here - seen) : NULL;
        if (newline || l->from + (int64_t)l->have == l->size) {
            size_t n = newline ? (size_t)(newline - begin) : here;
            const char *zero = memchr(begin, '\0', n);
            if (zero)
                return oly_fail(OLY_PARSE, "cannot read %s: byte %" PRId64 " is 0, so this is no text", l->path,
                                l->at + (zero - begin));
            l->at += (int64_t)n + (newline != NULL);
            begin[n] = '\0';
            *line = begin;
            return OLY_OK;
        }
        seen = here;
        OLY_TRY(read_more(l));
    }
}

oly_status oly_csv_open(int file, const char *path, int64_t at, int64_t end, int64_t size, bool after_line,
                        oly_csv_lines *l)
{
    *l = (oly_csv_lines){.file = file, .path = path, .end = oly_smaller(end, size), .size = size, .room = 3 * PIECE};
    l->at = l->from = after_line ? at : at - 1;
    if (!(l->bytes = oly_malloc(l->room)))
        return oly_out_of_memory(l->room, "the lines of a file");
    char *rest;
    return after_line || l->at >= size ? OLY_OK : take_line(l, &rest); /* of a line that began before */
}

oly_status oly_csv_next(oly_csv_lines *l, char **line)
{
    *line = NULL;
    return l->at < l->end ? take_line(l, line) : OLY_OK;
}

void oly_csv_close(oly_csv_lines *l)
{
    oly_release(l->bytes);
    l->bytes = NULL;
}

/* -- fields ------------------------------------------------------------------------------------------------------------------- */

static const char spaces[] = " \t\r\v\f";

static bool is_space(char c)
{
    return c && strchr(spaces, c);
}

static char *trim(const oly_csv_form *form, char *text)
{
    while (is_space(*text) && *text != form->delimiter)
        text++;
    size_t n = strlen(text);
    while (n > 0 && is_space(text[n - 1]) && text[n - 1] != form->delimiter)
        n--;
    text[n] = '\0';
    return text;
}

char *oly_csv_content(const oly_csv_form *form, char *line)
{
    static const oly_csv_form any = {.delimiter = ','};
    char *comment = form->comments[0] ? strstr(line, form->comments) : NULL;
    if (comment)
        *comment = '\0';
    return trim(form->delimiter == '\t' ? form : &any, line);
}

char *oly_csv_field(const oly_csv_form *form, char *content, char **rest)
{
    static const oly_csv_form any = {.delimiter = ','};
    char *end = form->delimiter == ' ' ? content + strcspn(content, spaces) : strchr(content, form->delimiter);
    *rest = NULL;
    if (end && *end) {
        *end++ = '\0';
        while (form->delimiter == ' ' && is_space(*end))
            end++;
        *rest = end;
    }
    return trim(&any, content);
}

int64_t oly_csv_fields(const oly_csv_form *form, const char *content)
{
    int64_t n = 1;
    if (form->delimiter != ' ') {
        for (; (content = strchr(content, form->delimiter)); content++)
            n++;
        return n;
    }
    for (; *(content += strcspn(content, spaces)); n++)
        content += strspn(content, spaces);
    return n;
}

/* -- numbers ------------------------------------------------------------------------------------------------------------------ */

static bool read_integer(const char *field, int bits, bool is_signed, void *element)
{
    char *end;
    errno = 0;
    if (!is_signed && field[0] == '-')
        return false;
    int64_t value = is_signed ? strtoll(field, &end, 10) : (int64_t)strtoull(field, &end, 10);
    if (end == field || *end || errno == ERANGE)
        return false;
    int64_t most = INT64_MAX >> (64 - bits);
    bool fits = is_signed ? value <= most && value >= -most - 1 : bits == 64 || (uint64_t)value >> bits == 0;
    memcpy(element, &value, (size_t)bits / 8); /* little-endian */
    return fits;
}

static bool read_bool(const char *field, void *element)
{
    bool yes = !strcmp(field, "1") || !strcmp(field, "True") || !strcmp(field, "true");
    memcpy(element, &yes, 1);
    return yes || !strcmp(field, "0") || !strcmp(field, "False") || !strcmp(field, "false");
}

/* C's hexadecimal numbers, which NumPy does not read either. */
static bool is_hexadecimal(const char *field)
{
    field += *field == '-' || *field == '+';
    return field[0] == '0' && (field[1] == 'x' || field[1] == 'X');
}

/* "inf", "-Infinity": not a number that is too large for the type. */
static bool names_infinity(const char *field)
{
    field += *field == '-' || *field == '+';
    return *field == 'i' || *field == 'I';
}

bool oly_csv_number(const char *field, oly_dtype dtype, void *element)
{
    char *end;
    int bits = 8 * (int)oly_dtype_size(dtype);
    if (!field[0] || is_space(field[0]) || is_hexadecimal(field))
        return false;
    if (dtype == OLY_BOOL)
        return read_bool(field, element);
    if (dtype <= OLY_UINT64)
        return read_integer(field, bits, dtype <= OLY_INT64, element);
    if (dtype == OLY_FLOAT32) { /* rounded once */
        float value = strtof(field, &end);
        memcpy(element, &value, sizeof value);
    } else {
        oly_set_real(dtype, element, strtod(field, &end));
    }
    bool fits = !isinf(oly_real_at(dtype, element)) || names_infinity(field);
    return end != field && !*end && fits;
}
