/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the subcommands of `oly`: each is a file with one function, listed in oly.c. */
#ifndef OLY_TOOL_H
#define OLY_TOOL_H
#include "core/arena.h"
#include "core/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* argv[0] is the subcommand's name. Returns the exit status: 0, 1 (it could not be done), 2 (wrong arguments). */
typedef int tool_main(int argc, char **argv);
tool_main plan_main, devices_main, options_main, trace_main, report_main, status_main;

enum { TOOL_FAILED = 1, TOOL_USAGE = 2 };

/* Prints the help of a subcommand. */
void tool_help(const char *subcommand, FILE *to);
/* "oly report: message" on standard error; returns TOOL_FAILED or TOOL_USAGE. The first without text prints the pending message. */
int tool_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int tool_fail_pending(void);
int tool_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Takes an option out of the arguments: "--mesh 4x2", "--mesh=4x2". NULL: it is not there. Arguments after "--" are not looked at.
 * A missing value is an empty one. */
const char *tool_option(int *argc, char **argv, const char *name);
bool tool_flag(int *argc, char **argv, const char *name);
/* Takes the first "--" out. */
void tool_end_of_options(int *argc, char **argv);
/* The first argument that looks like an option; NULL: none. */
const char *tool_unknown_option(int argc, char **argv);

/* -- files and programs (files.c) ------------------------------------------------------------------------------------- */
/* Is it a timeline that is there: a regular file NAME.json or NAME.json.gz? */
bool tool_is_timeline(const char *path);
bool tool_is_timeline_name(const char *path);
/* A whole file, unpacked if it is compressed, at most this long; fails OLY_IO, OLY_PARSE, OLY_MEMORY. The caller frees *text. */
oly_status tool_read(const char *path, size_t most, char **text, size_t *length);
/* Writes a file in one go: all of it or nothing is there. "-": standard output. */
oly_status tool_write(const char *path, const oly_text *text);
/* Runs a command; its standard output goes to `out` (-1: as ours), its errors to `err`. The status as a shell would say it; 127: it
 * cannot be started (said). */
int tool_run(char **command, int out, int err);

/* -- JSON (quote.c) ----------------------------------------------------------------------------------------------------- */
/* A string in quotes; '<' is escaped, so that a page may contain it. Bytes that are not UTF-8 become U+FFFD. */
void tool_quote(oly_text *to, const char *text);
/* ", " unless it is the first; then "key": */
void tool_key(oly_text *to, bool *first, const char *key);
void tool_member(oly_text *to, bool *first, const char *key, const char *value);
void tool_member_int(oly_text *to, bool *first, const char *key, long long value);
void tool_member_number(oly_text *to, bool *first, const char *key, double value);
#endif
