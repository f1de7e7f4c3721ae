/* SPDX-License-Identifier: BSD-3-Clause */
/* Text that grows, and sizes in words. Callable from every layer. */
#include "core/text.h"
#include "core/error.h"
#include "core/raw_text.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* -- decimal points ------------------------------------------------------------------------------------------------ */

static locale_t with_point; /* for ever; NULL: out of memory, and texts are the locale's */

static void make_with_point(void)
{
    with_point = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
}

locale_t oly_numbers_with_point(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_with_point);
    return uselocale(with_point);
}

void oly_numbers_as_before(locale_t before)
{
    uselocale(before);
}

/* -- text ------------------------------------------------------------------------------------------------------------ */

/* Ensures room for n more characters and the terminator. */
static bool reserve(oly_text *text, size_t n)
{
    if (text->failed)
        return false;
    size_t needed = text->length + n + 1;
    if (needed <= text->capacity)
        return true;
    size_t capacity = text->capacity ? text->capacity * 2 : 64;
    if (capacity < needed)
        capacity = needed;
    char *chars = oly_realloc(text->chars, capacity);
    if (!chars) {
        text->failed = true;
        return false;
    }
    text->chars = chars;
    text->capacity = capacity;
    return true;
}

void oly_text_add_chars(oly_text *text, const char *chars, size_t n)
{
    if (!reserve(text, n))
        return;
    if (n)
        memcpy(text->chars + text->length, chars, n);
    text->length += n;
    text->chars[text->length] = 0;
}

void oly_text_add_string(oly_text *text, const char *chars)
{
    oly_text_add_chars(text, chars, strlen(chars));
}

void oly_text_add_int(oly_text *text, int64_t value)
{
    char digits[24];
    oly_text_add_chars(text, digits, oly_raw_digits(digits, value));
}

static void add(oly_text *text, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    size_t room = text->failed ? 0 : text->capacity - text->length;
    int length = vsnprintf(room ? text->chars + text->length : NULL, room, format, arguments);
    if (length < 0)
        text->failed = true;
    if (length >= 0 && (size_t)length >= room) {
        if (reserve(text, (size_t)length))
            vsnprintf(text->chars + text->length, (size_t)length + 1, format, again);
        else if (room)
            text->chars[text->length] = 0; /* it keeps its contents */
    }
    if (!text->failed)
        text->length += (size_t)length;
    va_end(again);
}

void oly_text_add_v(oly_text *text, const char *format, va_list arguments)
{
    locale_t before = oly_numbers_with_point();
    add(text, format, arguments);
    oly_numbers_as_before(before);
}

void oly_text_add_local(oly_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add(text, format, arguments);
    va_end(arguments);
}

void oly_text_add(oly_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    oly_text_add_v(text, format, arguments);
    va_end(arguments);
}

void oly_text_repeat(oly_text *text, const char *chars, int n)
{
    size_t length = strlen(chars);
    for (int i = 0; i < n; i++)
        oly_text_add_chars(text, chars, length);
}

void oly_text_free(oly_text *text)
{
    oly_release(text->chars);
    *text = (oly_text){0};
}

const char *oly_text_chars(const oly_text *text)
{
    return text->chars ? text->chars : "";
}

int oly_text_take(oly_text *text, char *buffer, size_t size)
{
    int length = text->failed ? -1 : (int)text->length;
    if (size && buffer)
        snprintf(buffer, size, "%s", oly_text_chars(text));
    oly_text_free(text);
    return length;
}

oly_size_text oly_size_text_of(size_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    oly_size_text text;
    if (bytes < 1024) {
        snprintf(text.chars, sizeof text.chars, "%zu bytes", bytes);
        return text;
    }
    double value = (double)bytes / 1024;
    int unit = 0;
    while (value >= 1023.95 && unit < 5) {
        value /= 1024;
        unit++;
    }
    locale_t before = oly_numbers_with_point();
    snprintf(text.chars, sizeof text.chars, "%.1f %s", value, units[unit]);
    oly_numbers_as_before(before);
    return text;
}
