/* SPDX-License-Identifier: BSD-3-Clause */
/* Clocks of different hosts, compared by what their ranks did together. Called by report.c. */
#ifndef OLY_TOOL_CLOCKS_H
#define OLY_TOOL_CLOCKS_H
#include "verdict.h"

/* Moves the calendars of all recorders to that of the first one's host where the order of meetings and exchanges contradicts them, and
 * says in *told (lines) by how much. */
oly_status clocks_correct(recorded_job *job, oly_text *told);
#endif
