/* SPDX-License-Identifier: BSD-3-Clause */
/* The text that a running plan makes of values: the formats of oly_debug_print and oly_check. Private to runtime/array/inside. */
#ifndef OLY_ARRAY_INSIDE_TEXT_H
#define OLY_ARRAY_INSIDE_TEXT_H
#include "graph/call.h"
#include "core/text.h"

/* fails OLY_INVALID unless the format is well formed and names n values. */
oly_status oly_inside_check_format(const char *format, int n);
/* Appends the format with its values, row by row; device: of %D. fails OLY_MEMORY. */
oly_status oly_inside_format(oly_text *text, const char *format, int n, const oly_shard_part *values, int device);
/* A value without the dimension of what is on one device only. */
void oly_inside_drop_first(oly_shard_part *part);
oly_shard_part oly_inside_value(const oly_call_frame *frame, int k);
#endif
