/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats of values printed by running plans: {} and the letters of oly_printf. See inside_text.h. */
#include "array/inside/inside_text.h"
#include "array/format.h"
#include "core/element.h"
#include "core/error.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct writer {
    oly_text *text; /* NULL: the format is only checked */
    const char *format;
    int n, next;
    const oly_shard_part *values;
    int device;
} writer;

static oly_status malformed(const writer *w, const char *at, const char *why)
{
    return oly_fail(OLY_INVALID,
                    "format \"%s\", column %d: %s; values are written {}, {name}, {:.3f} or %%A, %%R their repr, %%T "
                    "their type, %%D the "
                    "device, {{ }} %%%% the characters",
                    w->format, (int)(at - w->format) + 1, why);
}

static void add(const writer *w, const char *chars, size_t n)
{
    if (w->text)
        oly_text_add_chars(w->text, chars, n);
}

static oly_status too_few(const writer *w)
{
    return oly_fail(OLY_INVALID, "format \"%s\" names more than the %d values given; give one for each {} and %%A",
                    w->format, w->n);
}

/* -- one value ----------------------------------------------------------------------------------------------------- */

/* printf's conversion after the colon: "+08.3f". A number in it is bounded, so that the text is. */
static bool reads_as_number(const char *spec, size_t n)
{
    size_t k = 0, digits;
    while (k < n && strchr("-+ 0", spec[k]))
        k++;
    for (digits = 0; k < n && isdigit((unsigned char)spec[k]); k++)
        digits++;
    if (digits > 2)
        return false;
    if (k < n && spec[k] == '.')
        for (digits = 0, k++; k < n && isdigit((unsigned char)spec[k]); k++)
            digits++;
    return digits <= 2 && k + 1 == n && strchr("dfFeEgGxX", spec[k]);
}

static oly_status add_number(const writer *w, const oly_shard_part *v, const char *spec, size_t n)
{
    char format[16], text[512];
    bool integer = strchr("dxX", spec[n - 1]) != NULL;
    if (oly_dtype_kind(v->dtype) == OLY_KIND_COMPLEX || v->rank > 0)
        return oly_format_str(w->text, v->dtype, v->rank, v->shape, v->data);
    double value = oly_real_at(v->dtype, v->data);
    snprintf(format, sizeof format, integer ? "%%%.*sll%c" : "%%%.*s%c", (int)n - 1, spec, spec[n - 1]);
    locale_t before = oly_numbers_with_point();
    int length =
        integer ? snprintf(text, sizeof text, format, (long long)value) : snprintf(text, sizeof text, format, value);
    oly_numbers_as_before(before);
    oly_text_add_chars(w->text, text, length < (int)sizeof text ? (size_t)length : sizeof text - 1);
    return OLY_OK;
}

static oly_status add_value(writer *w, char letter, const char *spec, size_t n)
{
    if (w->next == w->n)
        return too_few(w);
    const oly_shard_part *v = w->text ? &w->values[w->next] : NULL;
    w->next++;
    if (!v)
        return OLY_OK;
    if (n)
        return add_number(w, v, spec, n);
    if (letter == 'T') {
        oly_type type = {.dtype = v->dtype, .rank = v->rank};
        memcpy(type.shape, v->shape, sizeof type.shape);
        oly_type_text(w->text, &type);
        return OLY_OK;
    }
    if (letter == 'R')
        return oly_format_repr(w->text, v->dtype, false, v->rank, v->shape, v->data);
    return v->rank ? oly_format_str(w->text, v->dtype, v->rank, v->shape, v->data)
                   : oly_format_scalar(w->text, v->dtype, v->data);
}

/* -- the format ---------------------------------------------------------------------------------------------------- */

/* `at` is behind the opening brace. */
static oly_status read_brace(writer *w, const char **at)
{
    const char *start = *at - 1, *end = strchr(*at, '}'), *spec;
    size_t name = 0;
    if (!end)
        return malformed(w, start, "a { without }");
    while (isalnum((unsigned char)(*at)[name]) || (*at)[name] == '_')
        name++;
    spec = *at + name;
    *at = end + 1;
    if (spec == end)
        return add_value(w, 'A', NULL, 0);
    if (*spec != ':' || !reads_as_number(spec + 1, (size_t)(end - spec - 1)))
        return malformed(w, start, "this is not a value");
    return add_value(w, 'A', spec + 1, (size_t)(end - spec - 1));
}

static oly_status read_letter(writer *w, const char **at)
{
    char letter = *(*at)++;
    if (letter == '%') {
        add(w, "%", 1);
        return OLY_OK;
    }
    if (letter == 'D') {
        char name[32] = "";
        if (w->text && oly_device_str(oly_get_device(w->device), name, sizeof name) > 0)
            oly_text_add(w->text, "%s", name);
        return OLY_OK;
    }
    if (letter == 'A' || letter == 'R' || letter == 'T')
        return add_value(w, letter, NULL, 0);
    return malformed(w, *at - 2, "this is not a value");
}

static oly_status walk(writer *w)
{
    for (const char *at = w->format; *at;) {
        size_t plain = strcspn(at, "{}%");
        add(w, at, plain);
        at += plain;
        if (!*at)
            break;
        char c = *at++;
        if (c != '%' && *at == c)
            add(w, at++, 1);
        else if (c == '{')
            OLY_TRY(read_brace(w, &at));
        else if (c == '%' && *at)
            OLY_TRY(read_letter(w, &at));
        else
            return malformed(w, at - 1, c == '}' ? "a } without {" : "a % at the end");
    }
    return OLY_OK;
}

oly_status oly_inside_check_format(const char *format, int n)
{
    writer w = {.format = format, .n = n};
    if (!format)
        return oly_fail(OLY_INVALID, "the format is NULL; give a text with {} for every value");
    OLY_TRY(walk(&w));
    return w.next == n ? OLY_OK
                       : oly_fail(OLY_INVALID, "format \"%s\" names %d of the %d values given; write {} for each",
                                  format, w.next, n);
}

oly_status oly_inside_format(oly_text *text, const char *format, int n, const oly_shard_part *values, int device)
{
    writer w = {.text = text, .format = format, .n = n, .values = values, .device = device};
    OLY_TRY(walk(&w));
    return text->failed ? oly_out_of_memory(text->length, "printing values") : OLY_OK;
}

void oly_inside_drop_first(oly_shard_part *part)
{
    size_t n = sizeof *part->shape * (size_t)--part->rank;
    memmove(part->shape, part->shape + 1, n);
    memmove(part->whole, part->whole + 1, n);
    memmove(part->origin, part->origin + 1, n);
    memmove(part->stride, part->stride + 1, n);
    memmove(part->before, part->before + 1, n);
    memmove(part->after, part->after + 1, n);
}

oly_shard_part oly_inside_value(const oly_call_frame *frame, int k)
{
    oly_shard_part v = frame->in[k];
    if (k < frame->call->n_in && oly_call_letter(&frame->call->in[k], 0) == OLY_CALL_ONCE)
        oly_inside_drop_first(&v);
    return v;
}
