/* SPDX-License-Identifier: BSD-3-Clause */
/* A strict reader of JSON (RFC 8259) for files that anybody may have written: UTF-8 only, no duplicate keys, bounded depth. Nothing is
 * trusted: whatever is not JSON is refused with the line where it goes wrong. Callable from every layer that reads files, and by the
 * tool of launch/oly. */
#ifndef OLY_FILE_JSON_H
#define OLY_FILE_JSON_H
#include "core/arena.h"
#include "core/error.h"

typedef enum oly_json_kind {
    OLY_JSON_NULL,
    OLY_JSON_FALSE,
    OLY_JSON_TRUE,
    OLY_JSON_NUMBER,
    OLY_JSON_STRING,
    OLY_JSON_LIST,
    OLY_JSON_OBJECT
} oly_json_kind;

enum { OLY_JSON_DEEPEST = 64 };

/* A value, in the arena. Texts are terminated; a string may contain zeros (then `length` is more than strlen). */
typedef struct oly_json {
    oly_json_kind kind;
    bool whole;       /* of a number: written without fraction or exponent and within int64_t */
    int count;        /* of a list or an object: entries */
    const char *key;  /* in an object; else NULL */
    const char *text; /* of a string, decoded */
    size_t length;
    double number;
    int64_t integer; /* if whole */
    const struct oly_json *first, *next;
} oly_json;

/* Reads one value, with nothing but white space around it. `name` is for messages. fails OLY_PARSE ("FILE:LINE: ..."), OLY_MEMORY. */
oly_status oly_json_read(oly_arena *arena, const char *name, const char *text, size_t length, const oly_json **value);
/* Reads the value that begins at text[*at] (after white space) and moves *at behind it: for texts of several values, and for long
 * lists, entry by entry. *value is NULL at the end of the text. */
oly_status oly_json_next(oly_arena *arena, const char *name, const char *text, size_t length, size_t *at,
                         const oly_json **value);

/* The member of an object; NULL: none, or no object. */
const oly_json *oly_json_get(const oly_json *object, const char *key);
/* Its text, number, or integer; `otherwise` if it is missing or of another kind. */
const char *oly_json_text(const oly_json *object, const char *key, const char *otherwise);
double oly_json_number(const oly_json *object, const char *key, double otherwise);
int64_t oly_json_integer(const oly_json *object, const char *key, int64_t otherwise);
#endif
