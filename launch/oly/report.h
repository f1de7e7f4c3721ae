/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank in words and as JSON, as `oly report` and `oly status` print it. */
#ifndef OLY_TOOL_REPORT_H
#define OLY_TOOL_REPORT_H
#include "core/text.h"
#include "recorder_read.h"

void report_rank(const recorder *r, oly_text *t);
void report_event(const recorder_event *e, oly_text *t);
void report_rank_json(const recorder *r, oly_text *t);
#endif
