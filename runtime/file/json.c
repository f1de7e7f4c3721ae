/* SPDX-License-Identifier: BSD-3-Clause */
/* The reader of json.h: recursive descent over bytes, values in an arena. */
#include "file/json.h"
#include "core/text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    oly_arena *arena;
    const char *name, *text, *at, *end;
    int depth;
} reader;

static int line_of(const reader *r)
{
    int line = 1;
    for (const char *p = r->text; p < r->at; p++)
        line += *p == '\n';
    return line;
}

static oly_status wrong(const reader *r, const char *what)
{
    return oly_fail(OLY_PARSE, "%s:%d: not JSON: %s", r->name, line_of(r), what);
}

static oly_status no_memory(const reader *r)
{
    return oly_out_of_memory((size_t)(r->end - r->text), "a JSON text");
}

static void skip_space(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool take(reader *r, char c)
{
    bool there = r->at < r->end && *r->at == c;
    r->at += there;
    return there;
}

/* -- strings --------------------------------------------------------------------------------------------------- */

/* Bytes of the UTF-8 character at s, of which n bytes are there; 0: invalid. */
static size_t character(const unsigned char *s, size_t n)
{
    size_t bytes = *s < 0x80 ? 1 : *s < 0xc2 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf5 ? 4 : 0;
    if (bytes > n)
        return 0;
    for (size_t k = 1; k < bytes; k++)
        if ((s[k] & 0xc0) != 0x80)
            return 0;
    bool overlong = (*s == 0xe0 && s[1] < 0xa0) || (*s == 0xf0 && s[1] < 0x90);
    bool outside = (*s == 0xed && s[1] >= 0xa0) || (*s == 0xf4 && s[1] >= 0x90);
    return overlong || outside ? 0 : bytes;
}

/* Four hexadecimal digits; -1: not. */
static int32_t hex(reader *r)
{
    int32_t value = 0;
    if (r->end - r->at < 4)
        return -1;
    for (int k = 0; k < 4; k++) {
        char c = r->at[k];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    r->at += 4;
    return value;
}

/* After "\u"; a pair of surrogates is one character. -1: wrong. */
static int32_t escaped_character(reader *r)
{
    int32_t first = hex(r);
    if (first < 0xd800 || first > 0xdfff)
        return first;
    if (first > 0xdbff || r->end - r->at < 2 || r->at[0] != '\\' || r->at[1] != 'u')
        return -1;
    r->at += 2;
    int32_t second = hex(r);
    return second < 0xdc00 || second > 0xdfff ? -1 : 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
}

static char *put_character(char *to, int32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    }
    return to;
}

static oly_status escape(reader *r, char **to)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (r->at == r->end)
        return wrong(r, "a string has no end");
    char c = *r->at++;
    const char *known = c ? strchr(names, c) : NULL;
    if (known) {
        *(*to)++ = meanings[known - names];
        return OLY_OK;
    }
    int32_t value = c == 'u' ? escaped_character(r) : -1;
    if (value < 0)
        return wrong(r, "a string has an unknown escape");
    *to = put_character(*to, value);
    return OLY_OK;
}

/* The bytes between the quotes, at least as many as the string has. */
static size_t raw_length(const reader *r)
{
    const char *p = r->at;
    while (p < r->end && *p != '"')
        p += *p == '\\' && p + 1 < r->end ? 2 : 1;
    return (size_t)(p - r->at);
}

static oly_status read_string(reader *r, const char **text, size_t *length)
{
    if (!take(r, '"'))
        return wrong(r, "a string is expected");
    char *to = oly_arena_take_raw(r->arena, raw_length(r) + 1), *begin = to;
    if (!to)
        return no_memory(r);
    while (!take(r, '"')) {
        if (r->at == r->end)
            return wrong(r, "a string has no end");
        if (take(r, '\\')) {
            OLY_TRY(escape(r, &to));
            continue;
        }
        size_t n = character((const unsigned char *)r->at, (size_t)(r->end - r->at));
        if (n == 0 || (unsigned char)*r->at < 0x20)
            return wrong(r, n ? "a string has a control character" : "a string is not UTF-8");
        memcpy(to, r->at, n);
        to += n;
        r->at += n;
    }
    *to = 0;
    *text = begin;
    *length = (size_t)(to - begin);
    return OLY_OK;
}

/* -- numbers --------------------------------------------------------------------------------------------------- */

static size_t digits(reader *r)
{
    const char *begin = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return (size_t)(r->at - begin);
}

/* Moves behind a number; false: it is none. */
static bool pass_number(reader *r, bool *whole)
{
    take(r, '-');
    *whole = true;
    const char *begin = r->at;
    size_t n = digits(r);
    if (n == 0 || (n > 1 && *begin == '0'))
        return false;
    if (take(r, '.')) {
        *whole = false;
        if (digits(r) == 0)
            return false;
    }
    if (take(r, 'e') || take(r, 'E')) {
        *whole = false;
        if (!take(r, '-'))
            take(r, '+');
        return digits(r) > 0;
    }
    return true;
}

static oly_status read_number(reader *r, oly_json *v)
{
    enum { LONGEST = 200 };
    char copy[LONGEST + 1];
    const char *begin = r->at;
    bool good = pass_number(r, &v->whole);
    size_t n = (size_t)(r->at - begin);
    if (!good || n > LONGEST)
        return wrong(r, good ? "a number is too long" : "a value is expected");
    memcpy(copy, begin, n);
    copy[n] = 0;
    locale_t before = oly_numbers_with_point();
    v->kind = OLY_JSON_NUMBER;
    v->number = strtod(copy, NULL);
    oly_numbers_as_before(before);
    if (v->whole) {
        errno = 0;
        v->integer = strtoll(copy, NULL, 10);
        v->whole = errno == 0;
    }
    return OLY_OK;
}

/* -- values ---------------------------------------------------------------------------------------------------- */

static oly_status read_value(reader *r, const oly_json **value, const char *key);

static oly_status read_key(reader *r, const char **key)
{
    size_t length;
    skip_space(r);
    OLY_TRY(read_string(r, key, &length));
    if (strlen(*key) != length)
        return wrong(r, "a key contains a zero");
    skip_space(r);
    return take(r, ':') ? OLY_OK : wrong(r, "after a key a colon is expected");
}

static oly_status refuse_duplicate(const reader *r, const oly_json *object, const char *key)
{
    enum { COMPARED = 256 }; /* of longer objects, as of a million names, only the first */
    int n = 0;
    for (const oly_json *m = object->first; m && n < COMPARED; m = m->next, n++)
        if (strcmp(m->key, key) == 0)
            return wrong(r, "an object has a key twice");
    return OLY_OK;
}

/* After the opening bracket. */
static oly_status read_entries(reader *r, oly_json *v, char closing)
{
    const oly_json **link = &v->first;
    skip_space(r);
    if (take(r, closing))
        return OLY_OK;
    for (;;) {
        const char *key = NULL;
        if (v->kind == OLY_JSON_OBJECT) {
            OLY_TRY(read_key(r, &key));
            OLY_TRY(refuse_duplicate(r, v, key));
        }
        OLY_TRY(read_value(r, link, key));
        link = &((oly_json *)*link)->next;
        v->count++;
        skip_space(r);
        if (take(r, closing))
            return OLY_OK;
        if (!take(r, ','))
            return wrong(r, "a comma or the end of a list is expected");
    }
}

static bool take_word(reader *r, const char *word)
{
    size_t n = strlen(word);
    bool there = (size_t)(r->end - r->at) >= n && memcmp(r->at, word, n) == 0;
    r->at += there ? n : 0;
    return there;
}

static oly_status read_word(reader *r, oly_json *v)
{
    v->kind = take_word(r, "null")    ? OLY_JSON_NULL
              : take_word(r, "true")  ? OLY_JSON_TRUE
              : take_word(r, "false") ? OLY_JSON_FALSE
                                      : OLY_JSON_OBJECT;
    return v->kind == OLY_JSON_OBJECT ? wrong(r, "a value is expected") : OLY_OK;
}

static oly_status read_list(reader *r, oly_json *v, char closing)
{
    if (++r->depth > OLY_JSON_DEEPEST)
        return wrong(r, "it is nested too deeply");
    r->at++;
    v->kind = closing == ']' ? OLY_JSON_LIST : OLY_JSON_OBJECT;
    OLY_TRY(read_entries(r, v, closing));
    r->depth--;
    return OLY_OK;
}

static oly_status read_value(reader *r, const oly_json **value, const char *key)
{
    oly_json *v = oly_arena_take(r->arena, sizeof *v);
    if (!v)
        return no_memory(r);
    *value = v;
    v->key = key;
    skip_space(r);
    switch (r->at < r->end ? *r->at : 0) {
    case '{': return read_list(r, v, '}');
    case '[': return read_list(r, v, ']');
    case '"': v->kind = OLY_JSON_STRING; return read_string(r, &v->text, &v->length);
    case 'n':
    case 't':
    case 'f': return read_word(r, v);
    default: return read_number(r, v);
    }
}

oly_status oly_json_next(oly_arena *arena, const char *name, const char *text, size_t length, size_t *at,
                         const oly_json **value)
{
    reader r = {arena, name, text, text + *at, text + length, 0};
    *value = NULL;
    skip_space(&r);
    oly_status st = r.at < r.end ? read_value(&r, value, NULL) : OLY_OK;
    if (st != OLY_OK)
        *value = NULL;
    *at = (size_t)(r.at - text);
    return st;
}

oly_status oly_json_read(oly_arena *arena, const char *name, const char *text, size_t length, const oly_json **value)
{
    size_t at = 0;
    OLY_TRY(oly_json_next(arena, name, text, length, &at, value));
    reader r = {arena, name, text, text + at, text + length, 0};
    skip_space(&r);
    if (!*value || r.at < r.end) {
        oly_status st = wrong(&r, *value ? "there is something after the value" : "the text is empty");
        *value = NULL;
        return st;
    }
    return OLY_OK;
}

/* -- reading values -------------------------------------------------------------------------------------------- */

const oly_json *oly_json_get(const oly_json *object, const char *key)
{
    if (!object || object->kind != OLY_JSON_OBJECT)
        return NULL;
    const oly_json *m = object->first;
    while (m && strcmp(m->key, key) != 0)
        m = m->next;
    return m;
}

const char *oly_json_text(const oly_json *object, const char *key, const char *otherwise)
{
    const oly_json *m = oly_json_get(object, key);
    return m && m->kind == OLY_JSON_STRING ? m->text : otherwise;
}

double oly_json_number(const oly_json *object, const char *key, double otherwise)
{
    const oly_json *m = oly_json_get(object, key);
    return m && m->kind == OLY_JSON_NUMBER ? m->number : otherwise;
}

int64_t oly_json_integer(const oly_json *object, const char *key, int64_t otherwise)
{
    const oly_json *m = oly_json_get(object, key);
    return m && m->kind == OLY_JSON_NUMBER && m->whole ? m->integer : otherwise;
}
