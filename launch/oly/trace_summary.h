/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the time of a timeline went, as text. Called by trace.c. */
#ifndef OLY_TOOL_TRACE_SUMMARY_H
#define OLY_TOOL_TRACE_SUMMARY_H
#include "core/error.h"
#include "core/text.h"

/* fails OLY_IO, OLY_PARSE, OLY_MEMORY. */
oly_status trace_sum_up(const char *path, oly_text *to);
oly_status trace_sum_up_text(const char *name, const char *text, size_t length, oly_text *to);
#endif
