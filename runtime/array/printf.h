/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine of oly_printf: printf conversions, and letters for the library's own objects. Callable from
 * runtime/array and above; knows nothing of what the letters stand for. */
#ifndef OLY_ARRAY_PRINTF_H
#define OLY_ARRAY_PRINTF_H
#include <olympus/base.h>
#include "core/text.h"

/* Letters of objects; each takes one pointer. (%A replaces hexadecimal floats, which %a still prints, and %S wide
 * strings, which %ls prints.) */
#define OLY_PRINT_LETTERS "ADMRST"

/* Appends the text of a letter's object, which may be NULL. */
typedef oly_status (*oly_print_handler)(oly_text *text, char letter, void *object);

/* Appends `format` with its conversions replaced: d i u x X o c s p f F e E g G a with flags, width, precision
 * (both may be *) and the lengths hh h l ll z j t L; %%; and OLY_PRINT_LETTERS through `handler`, without any
 * of these. fails  OLY_INVALID for another conversion (with its column, from 1), OLY_MEMORY, or what the
 * handler fails with; `text` then holds what came before */
oly_status oly_text_format(oly_text *text, const char *format, va_list arguments, oly_print_handler handler);
#endif
