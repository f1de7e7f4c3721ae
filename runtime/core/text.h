/* SPDX-License-Identifier: BSD-3-Clause */
/* Text that grows. On running out of memory it keeps what it has and sets `failed`. */
#ifndef OLY_CORE_TEXT_H
#define OLY_CORE_TEXT_H
#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct oly_text {
    char *chars; /* owned; NULL when empty, else terminated */
    size_t length, capacity;
    bool failed;
} oly_text;

void oly_text_add(oly_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void oly_text_add_v(oly_text *text, const char *format, va_list arguments);
/* Like the program's own printf, with the decimal point of its locale. All others write "0.5" in every locale. */
void oly_text_add_local(oly_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void oly_text_add_chars(oly_text *text, const char *chars, size_t n);
/* Without printf, for texts of millions of parts. */
void oly_text_add_string(oly_text *text, const char *chars);
void oly_text_add_int(oly_text *text, int64_t value);
void oly_text_repeat(oly_text *text, const char *chars, int n);
void oly_text_free(oly_text *text);
/* "" for empty. */
const char *oly_text_chars(const oly_text *text);
/* Copies into buffer as snprintf does; returns the whole length (-1 if failed). Frees the text. */
int oly_text_take(oly_text *text, char *buffer, size_t size);

/* Until oly_numbers_as_before(its result) this thread's printf and strtod use a decimal point, whatever the program's locale. */
locale_t oly_numbers_with_point(void);
void oly_numbers_as_before(locale_t before);

/* "64.0 MiB", for messages: oly_size_text_of(n).chars. Needs no memory. */
typedef struct oly_size_text {
    char chars[24];
} oly_size_text;
oly_size_text oly_size_text_of(size_t bytes);
#endif
