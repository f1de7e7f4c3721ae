/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine of oly_printf (printf.h): hands one conversion at a time to the C library, with an argument of its
 * type. */
#include "array/printf.h"
#include "core/error.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

/* A va_list that can be passed on and then read further by the caller. */
typedef struct reader {
    va_list list;
} reader;

/* In matching order: hh before h. */
typedef enum length { CHAR, SHORT, LONG_LONG, LONG, SIZE, INTMAX, POINTER_DIFFERENCE, LONG_DOUBLE, PLAIN } length;
static const char *const length_text[] = {"hh", "h", "ll", "l", "z", "j", "t", "L", ""};

typedef struct conversion {
    char flags[8];        /* each at most once */
    int width, precision; /* -1: not given */
    length length;
    char letter;
} conversion;

/* -- reading a conversion --------------------------------------------------------------------------------- */

static void add_flag(conversion *c, char flag)
{
    size_t n = strlen(c->flags);
    if (!strchr(c->flags, flag))
        c->flags[n] = flag;
}

/* Digits or a star; false when the number is too large for printf. */
static bool read_number(const char **at, reader *arguments, int *number)
{
    if (**at == '*') {
        ++*at;
        *number = va_arg(arguments->list, int);
        return *number > INT_MIN;
    }
    int64_t value = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        value = value * 10 + (**at - '0');
        if (value > INT_MAX)
            return false;
    }
    *number = (int)value;
    return true;
}

static length read_length(const char **at)
{
    length l = CHAR;
    while (strncmp(*at, length_text[l], strlen(length_text[l])) != 0)
        l++;
    *at += strlen(length_text[l]);
    return l;
}

/* Reads what follows a '%'; false when a number is too large. */
static bool read_conversion(const char **at, reader *arguments, conversion *c)
{
    *c = (conversion){.width = -1, .precision = -1};
    for (; **at && strchr("-+ #0'", **at); ++*at)
        add_flag(c, **at);
    if (**at == '*' || (**at >= '1' && **at <= '9')) {
        if (!read_number(at, arguments, &c->width))
            return false;
        if (c->width < 0) {
            add_flag(c, '-'); /* a negative width from a star means left-aligned */
            c->width = -c->width;
        }
    }
    if (**at == '.') {
        ++*at;
        if (!read_number(at, arguments, &c->precision))
            return false;
        if (c->precision < 0)
            c->precision = -1; /* a negative precision from a star means none given */
    }
    c->length = read_length(at);
    c->letter = **at;
    if (c->letter)
        ++*at;
    return true;
}

/* -- writing it --------------------------------------------------------------------------------------- */

/* Writes the conversion for printf, stars replaced. */
static void spell(const conversion *c, char *out, size_t size)
{
    int n = snprintf(out, size, "%%%s", c->flags);
    if (c->width >= 0)
        n += snprintf(out + n, size - (size_t)n, "%d", c->width);
    if (c->precision >= 0)
        n += snprintf(out + n, size - (size_t)n, ".%d", c->precision);
    snprintf(out + n, size - (size_t)n, "%s%c", length_text[c->length], c->letter);
}

static void add_integer(oly_text *text, const char *format, length l, reader *arguments)
{
    switch (l) {
    case LONG: oly_text_add_local(text, format, va_arg(arguments->list, long)); break;
    case LONG_LONG: oly_text_add_local(text, format, va_arg(arguments->list, long long)); break;
    case SIZE: oly_text_add_local(text, format, va_arg(arguments->list, size_t)); break;
    case INTMAX: oly_text_add_local(text, format, va_arg(arguments->list, intmax_t)); break;
    case POINTER_DIFFERENCE: oly_text_add_local(text, format, va_arg(arguments->list, ptrdiff_t)); break;
    default:
        oly_text_add_local(text, format, va_arg(arguments->list, int));
        break; /* char and short are passed as int */
    }
}

/* False for an unknown conversion, or a length that it does not take. */
static bool add_conversion(oly_text *text, const conversion *c, reader *arguments)
{
    char format[64];
    spell(c, format, sizeof format);
    bool plain = c->length == PLAIN, wide = c->length == LONG;
    if (c->letter && strchr("diuxXo", c->letter) && c->length != LONG_DOUBLE)
        add_integer(text, format, c->length, arguments);
    else if (c->letter && strchr("fFeEgGa", c->letter) && c->length == LONG_DOUBLE)
        oly_text_add_local(text, format, va_arg(arguments->list, long double));
    else if (c->letter && strchr("fFeEgGa", c->letter) && (plain || wide))
        oly_text_add_local(text, format, va_arg(arguments->list, double));
    else if (c->letter == 'c' && plain)
        oly_text_add_local(text, format, va_arg(arguments->list, int));
    else if (c->letter == 'c' && wide)
        oly_text_add_local(text, format, va_arg(arguments->list, wint_t));
    else if ((c->letter == 's' && (plain || wide)) || (c->letter == 'p' && plain))
        oly_text_add_local(text, format, va_arg(arguments->list, void *));
    else
        return false;
    return true;
}

static bool is_bare(const conversion *c)
{
    return !c->flags[0] && c->width < 0 && c->precision < 0 && c->length == PLAIN;
}

/* `at` points behind the '%'. */
static oly_status format_one(oly_text *text, const char *format, const char **at, reader *arguments,
                             oly_print_handler handler)
{
    const char *start = *at - 1;
    conversion c;
    if (read_conversion(at, arguments, &c)) {
        bool is_object = c.letter && strchr(OLY_PRINT_LETTERS, c.letter);
        if (is_object && is_bare(&c))
            return handler(text, c.letter, va_arg(arguments->list, void *));
        if (c.letter == '%' && is_bare(&c)) {
            oly_text_add_chars(text, "%", 1);
            return OLY_OK;
        }
        if (!is_object && add_conversion(text, &c, arguments))
            return OLY_OK;
    }
    return oly_fail(
        OLY_INVALID,
        "format \"%s\", column %d: \"%.*s\" is not a conversion; there are those of printf (without %%n and "
        "%%m), and %%A %%D %%M %%R %%S %%T without width or flags",
        format, (int)(start - format) + 1, (int)(*at - start), start);
}

oly_status oly_text_format(oly_text *text, const char *format, va_list arguments, oly_print_handler handler)
{
    reader rest;
    va_copy(rest.list, arguments);
    oly_status status = OLY_OK;
    for (const char *at = format; *at && status == OLY_OK;) {
        size_t plain = strcspn(at, "%");
        oly_text_add_chars(text, at, plain);
        at += plain;
        if (*at == '%') {
            at++;
            status = format_one(text, format, &at, &rest, handler);
        }
    }
    va_end(rest.list);
    if (status == OLY_OK && text->failed)
        status = oly_out_of_memory(text->length, "formatting text");
    return status;
}
