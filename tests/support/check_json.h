/* A strict reader of JSON (RFC 8259) for tests: one document, nothing after it but white space. */
#ifndef CHECK_JSON_H
#define CHECK_JSON_H
/* NULL when the text is one valid document, else where it ceases to be. */
const char *check_json(const char *text);
/* The number at a path of member names and list places, "totals.bytes" or "steps.0.seconds"; NAN when there is none. */
double check_json_number(const char *text, const char *path);
/* The string there, copied, to be freed; NULL when there is none. Escapes stay as they are. */
char *check_json_string(const char *text, const char *path);
/* Entries of the list there; -1: there is none. */
int check_json_count(const char *text, const char *path);
#endif
