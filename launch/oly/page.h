/* SPDX-License-Identifier: BSD-3-Clause */
/* Web pages of plans, timelines and reports: one file each, with everything in it (page.html is the frame, its program and its style).
 * Called by plan.c, trace.c, report.c. */
#ifndef OLY_TOOL_PAGE_H
#define OLY_TOOL_PAGE_H
#include "core/error.h"
#include "core/text.h"

/* JSON, or empty. */
typedef struct page_parts {
    oly_text plans;    /* an array of plans (docs/explain.md) */
    oly_text timeline; /* an object with traceEvents */
    oly_text report;   /* of report.c */
    oly_text sources;  /* an object: the text of each source that they name */
} page_parts;

/* Adds what the file holds: a timeline, also compressed, or plans. fails OLY_IO, OLY_PARSE, OLY_MEMORY. */
oly_status page_add_file(page_parts *parts, const char *path);
/* Several plans, one after the other or in an array, as one array in `to`; fails OLY_PARSE if they are none. */
oly_status page_add_plans(oly_text *to, const char *name, const char *text, size_t length);
/* Adds the sources that the parts name, from this folder and those below it. */
oly_status page_add_sources(page_parts *parts, const char *folder);
/* With the sources of `folder`; NULL: of the current one. */
oly_status page_write(const char *path, page_parts *parts, const char *folder);
void page_free(page_parts *parts);
#endif
