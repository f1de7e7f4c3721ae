/* SPDX-License-Identifier: BSD-3-Clause */
/* The characters of numbers as dots, for the colour bars of pictures. Called by frame.c. */
#ifndef OLY_FILE_DIGITS_FONT_H
#define OLY_FILE_DIGITS_FONT_H
#include <stdbool.h>

/* A character is 5 dots wide and 7 high; the next one begins 6 dots further. */
enum { OLY_GLYPH_WIDTH = 5, OLY_GLYPH_HEIGHT = 7, OLY_GLYPH_STEP = 6 };

/* Whether the dot in that row and column of a line of text is set. Only "0123456789+-.e" have any. */
bool oly_text_dot(const char *text, int row, int column);
#endif
