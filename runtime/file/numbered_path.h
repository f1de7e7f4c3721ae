/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths of files in a series: "frame-%05d.png" and a number. Called by runtime/array/files. */
#ifndef OLY_FILE_NUMBERED_PATH_H
#define OLY_FILE_NUMBERED_PATH_H
#include <olympus/base.h>

/* The path with the number in place of its %d, %5d or %05d, of which it may have one, and % in place of %%; owned by the caller.
 * fails OLY_PARSE: another %; OLY_MEMORY */
oly_status oly_numbered_path(const char *pattern, int64_t number, char **path);
/* Whether the pattern, which oly_numbered_path accepts, has a place for a number. */
bool oly_path_is_numbered(const char *pattern);
#endif
