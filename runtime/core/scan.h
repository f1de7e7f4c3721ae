/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the small notations (meshes, specs, slices, axes) with a column for messages. */
#ifndef OLY_CORE_SCAN_H
#define OLY_CORE_SCAN_H
#include <olympus/base.h>

typedef struct oly_scanner {
    const char *start, *at; /* borrowed text and position; spaces are skipped before each token */
} oly_scanner;

oly_scanner oly_scan_begin(const char *text);
bool oly_scan_end(oly_scanner *s);                           /* nothing left but spaces */
char oly_scan_peek(oly_scanner *s);                          /* next character that is no space; 0 at the end */
bool oly_scan_take(oly_scanner *s, char c);                  /* takes it if it comes next */
bool oly_scan_word(oly_scanner *s, char *word, size_t size); /* [A-Za-z_][A-Za-z0-9_]*; false: none here, or too long */
bool oly_scan_integer(oly_scanner *s, int64_t *value);       /* optional sign; false: none here or it overflows */
int oly_scan_column(const oly_scanner *s);                   /* from 1 */
/* Fails OLY_PARSE with text, column and a marker: expected WHAT at column 5 of "i=4, =2". */
oly_status oly_scan_expected(oly_scanner *s, const char *what);
#endif
