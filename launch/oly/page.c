/* SPDX-License-Identifier: BSD-3-Clause */
/* See page.h. The page's frame is in this program; the data goes into it as JSON, in which every '<' is escaped, so that no text of a
 * program can end the script element that holds it. */
#include "page.h"
#include "file/json.h"
#include "oly.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 128 << 20 };

/* page.html, as it is. */
__asm__(".section .rodata\n"
        ".global oly_page_frame, oly_page_frame_end\n"
        "oly_page_frame:\n.incbin \"launch/oly/page.html\"\n"
        "oly_page_frame_end:\n.byte 0\n.previous\n");
extern const char oly_page_frame[], oly_page_frame_end[];

/* Outside strings JSON has no '<'. */
static void add_escaped(oly_text *to, const char *json, size_t length)
{
    size_t from = 0;
    for (size_t k = 0; k < length; k++)
        if (json[k] == '<') {
            oly_text_add_chars(to, json + from, k - from);
            oly_text_add(to, "\\u003c");
            from = k + 1;
        }
    oly_text_add_chars(to, json + from, length - from);
}

static bool is_plan(const oly_json *v)
{
    return oly_json_get(v, "steps") && oly_json_get(v, "mesh") && oly_json_get(v, "values");
}

static oly_status add_plan(oly_text *to, const char *name, const oly_json *v, const char *text, size_t length)
{
    if (!is_plan(v))
        return oly_fail(OLY_PARSE, "%s: neither a plan nor a timeline of Olympus", name);
    oly_text_add(to, to->length ? ",\n" : "");
    oly_text_add_chars(to, text, length);
    return OLY_OK;
}

/* Of "[ {...}, {...} ]" or "{...} {...}": the plans, without the brackets. */
static oly_status add_plan_list(oly_text *to, const char *name, const char *text, size_t length)
{
    oly_arena arena = {0};
    oly_status st = OLY_OK;
    const oly_json *v;
    size_t at = strspn(text, " \t\r\n");
    bool list = at < length && text[at] == '[';
    at += list;
    for (bool more = true; st == OLY_OK && more;) {
        at += strspn(text + at, list ? " \t\r\n," : " \t\r\n");
        if (at >= length || text[at] == ']')
            break;
        size_t begin = at;
        st = oly_json_next(&arena, name, text, length, &at, &v);
        more = v != NULL;
        if (st == OLY_OK && v)
            st = add_plan(to, name, v, text + begin, at - begin);
        oly_arena_free(&arena);
    }
    return st;
}

oly_status page_add_plans(oly_text *to, const char *name, const char *text, size_t length)
{
    oly_text list = {0};
    oly_status st = add_plan_list(&list, name, text, length);
    if (st == OLY_OK)
        oly_text_add_chars(to, oly_text_chars(&list), list.length);
    oly_text_free(&list);
    return st == OLY_OK && to->failed ? oly_fail(OLY_MEMORY, "no memory for plans") : st;
}

static oly_status add_parsed(page_parts *parts, const char *path, const char *text, size_t length)
{
    oly_arena arena = {0};
    const oly_json *v;
    oly_status st = oly_json_read(&arena, path, text, length, &v);
    const oly_json *events = st == OLY_OK ? oly_json_get(v, "traceEvents") : NULL;
    bool bare = st == OLY_OK && v->kind == OLY_JSON_LIST && v->first && oly_json_get(v->first, "ph");
    if (st == OLY_OK && events && events->kind == OLY_JSON_LIST) {
        oly_text_free(&parts->timeline);
        oly_text_add_chars(&parts->timeline, text, length);
    } else if (bare) {
        oly_text_free(&parts->timeline);
        oly_text_add(&parts->timeline, "{\"traceEvents\": ");
        oly_text_add_chars(&parts->timeline, text, length);
        oly_text_add(&parts->timeline, "}");
    } else if (st == OLY_OK) {
        st = page_add_plans(&parts->plans, path, text, length);
    }
    oly_arena_free(&arena);
    return st;
}

oly_status page_add_file(page_parts *parts, const char *path)
{
    char *text;
    size_t length;
    OLY_TRY(tool_read(path, MOST_BYTES, &text, &length));
    oly_status st = add_parsed(parts, path, text, length);
    free(text);
    return st;
}

static void add_part(oly_text *to, const char *name, const oly_text *part, const char *open, const char *close)
{
    oly_text_add(to, "\"%s\": ", name);
    if (part->length) {
        oly_text_add(to, "%s", open);
        add_escaped(to, part->chars, part->length);
        oly_text_add(to, "%s", close);
    } else {
        oly_text_add(to, "null");
    }
}

oly_status page_write(const char *path, page_parts *parts, const char *folder)
{
    static const char mark[] = "@DATA@";
    oly_text page = {0};
    OLY_TRY(page_add_sources(parts, folder ? folder : "."));
    const char *at = strstr(oly_page_frame, mark);
    oly_text_add_chars(&page, oly_page_frame, (size_t)(at - oly_page_frame));
    oly_text_add(&page, "{");
    add_part(&page, "plans", &parts->plans, "[", "]");
    oly_text_add(&page, ",\n");
    add_part(&page, "timeline", &parts->timeline, "", "");
    oly_text_add(&page, ",\n");
    add_part(&page, "report", &parts->report, "", "");
    oly_text_add(&page, ",\n");
    add_part(&page, "sources", &parts->sources, "", "");
    oly_text_add(&page, "}");
    at += strlen(mark);
    oly_text_add_chars(&page, at, (size_t)(oly_page_frame_end - at));
    oly_status st = page.failed ? oly_fail(OLY_MEMORY, "no memory for the page") : tool_write(path, &page);
    oly_text_free(&page);
    return st;
}

void page_free(page_parts *parts)
{
    oly_text_free(&parts->plans);
    oly_text_free(&parts->timeline);
    oly_text_free(&parts->report);
    oly_text_free(&parts->sources);
}
