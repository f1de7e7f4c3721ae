/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress lines on standard error: of programs (oly_progress) and of long work of the library. Callable from every layer. */
#ifndef OLY_CORE_PROGRESS_LINE_H
#define OLY_CORE_PROGRESS_LINE_H
#include <stdint.h>

/* As oly_progress in <olympus/timeline.h>. note: NULL: none. */
void oly_progress_say(const char *what, int64_t done, int64_t total, const char *note);
/* Ends the line on the terminal, if there is one, so that something else can be printed. */
void oly_progress_line_end(void);
#endif
