/* SPDX-License-Identifier: BSD-3-Clause */
/* A strict reader of JSON (RFC 8259) for tests: one document, followed by nothing but white space. */
#ifndef CHECK_JSON_H
#define CHECK_JSON_H
/* NULL if the text is one valid document, else the position of the first error. */
const char *check_json(const char *text);
/* The number at a path of member names and list indexes, "totals.bytes" or "steps.0.seconds"; NAN if there is none. */
double check_json_number(const char *text, const char *path);
/* The string at a path, copied, to be freed; NULL if there is none. Escapes stay as they are. */
char *check_json_string(const char *text, const char *path);
/* Entries of the list at a path; -1: there is none. */
int check_json_count(const char *text, const char *path);
#endif
