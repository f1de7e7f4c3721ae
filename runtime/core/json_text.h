/* SPDX-License-Identifier: BSD-3-Clause */
/* Strings of JSON (RFC 8259). Callable from every layer. */
#ifndef OLY_CORE_JSON_TEXT_H
#define OLY_CORE_JSON_TEXT_H
#include "core/text.h"

/* Adds the text in quotation marks, escaped; bytes that are not UTF-8 become U+FFFD. */
void oly_json_quote(oly_text *t, const char *text);
#endif
