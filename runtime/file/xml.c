/* SPDX-License-Identifier: BSD-3-Clause */
/* Escaping and tags. See xml.h. */
#define _GNU_SOURCE /* memmem */
#include "file/xml.h"
#include <string.h>

static const struct {
    char character;
    const char *entity;
} entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&apos;"}};
enum { ENTITIES = sizeof entities / sizeof entities[0] };

static const char *entity_of(char c)
{
    for (int k = 0; k < ENTITIES; k++)
        if (entities[k].character == c)
            return entities[k].entity;
    return NULL;
}

void oly_xml_escape(oly_text *t, const char *text)
{
    for (; *text; text++) {
        const char *entity = entity_of(*text);
        if (entity)
            oly_text_add(t, "%s", entity);
        else if ((unsigned char)*text < ' ')
            oly_text_add(t, "&#%d;", *text);
        else
            oly_text_add_chars(t, text, 1);
    }
}

/* -- tags ----------------------------------------------------------------------------------------------------- */

static const char *find(const char *at, const char *end, const char *what)
{
    return at < end ? memmem(at, (size_t)(end - at), what, strlen(what)) : NULL;
}

/* The '>' of a tag, outside of quotation marks. */
static const char *tag_end(const char *at, const char *end)
{
    char quote = 0;
    for (; at < end && (quote || *at != '>'); at++)
        if (quote ? *at == quote : *at == '"' || *at == '\'')
            quote = quote ? 0 : *at;
    return at < end ? at : NULL;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void split(oly_xml_tag *tag, const char *begin, const char *close)
{
    tag->ends = begin < close && *begin == '/';
    begin += tag->ends;
    tag->next = close + 1;
    if (begin < close && close[-1] == '/')
        close--;
    tag->name = begin;
    while (begin < close && !is_space(*begin))
        begin++;
    tag->name_length = (size_t)(begin - tag->name);
    tag->inside = begin;
    tag->inside_length = (size_t)(close - begin);
}

bool oly_xml_next(const char *at, const char *end, oly_xml_tag *tag)
{
    while ((at = find(at, end, "<"))) {
        const char *begin = at + 1, *close;
        if (end - begin >= 3 && memcmp(begin, "!--", 3) == 0) {
            if (!(close = find(begin + 3, end, "-->")))
                return false;
            at = close + 3;
            continue;
        }
        if (!(close = tag_end(begin, end)))
            return false;
        if (*begin == '?' || *begin == '!') {
            at = close + 1;
            continue;
        }
        split(tag, begin, close);
        return true;
    }
    return false;
}

bool oly_xml_is(const oly_xml_tag *tag, const char *name)
{
    return tag->name_length == strlen(name) && memcmp(tag->name, name, tag->name_length) == 0;
}

/* -- attributes -------------------------------------------------------------------------------------------------- */

/* Copies a value, resolving entities. */
static bool resolve(const char *from, const char *end, char *to, size_t size)
{
    size_t n = 0;
    while (from < end) {
        char c = *from;
        size_t length = 1;
        for (int k = 0; c == '&' && k < ENTITIES; k++) {
            size_t l = strlen(entities[k].entity);
            if ((size_t)(end - from) >= l && memcmp(from, entities[k].entity, l) == 0) {
                c = entities[k].character;
                length = l;
                break;
            }
        }
        if (n + 1 >= size || !c)
            return false;
        to[n++] = c;
        from += length;
    }
    to[n] = 0;
    return true;
}

bool oly_xml_attribute(const oly_xml_tag *tag, const char *name, char *value, size_t size)
{
    const char *at = tag->inside, *end = at + tag->inside_length;
    while (at < end) {
        while (at < end && is_space(*at))
            at++;
        const char *key = at;
        while (at < end && *at != '=' && !is_space(*at))
            at++;
        size_t length = (size_t)(at - key);
        while (at < end && *at != '"' && *at != '\'')
            at++;
        if (at >= end)
            return false;
        const char *close = memchr(at + 1, *at, (size_t)(end - at - 1));
        if (!close)
            return false;
        if (length == strlen(name) && memcmp(key, name, length) == 0)
            return resolve(at + 1, close, value, size);
        at = close + 1;
    }
    return false;
}
