/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of numbers as text: the lines of a part of a file, and the numbers of a line. Callable by runtime/file and above. */
#ifndef OLY_FILE_CSV_H
#define OLY_FILE_CSV_H
#include "core/error.h"
#include <olympus/array.h>

typedef struct oly_csv_form {
    char delimiter;       /* ' ': any number of spaces and tabs */
    const char *comments; /* text that begins a comment; "": none */
} oly_csv_form;

/* The lines that begin in [at, end) of a file of `size` bytes. A part that does not begin with a line begins with the next one. */
typedef struct oly_csv_lines {
    int file;
    const char *path;
    int64_t at, end, size; /* of the next line */
    char *bytes;           /* owned: of the file, from `from` on */
    size_t room, have;
    int64_t from;
} oly_csv_lines;
/* after_line: a line begins at `at`. */
oly_status oly_csv_open(int file, const char *path, int64_t at, int64_t end, int64_t size, bool after_line,
                        oly_csv_lines *l);
/* The next line, terminated, without its end; *line NULL: there is none. It may be changed, and is valid until the next call. fails
 * OLY_IO, also for a line of more than 64 MiB; OLY_PARSE for a byte 0; OLY_MEMORY. */
oly_status oly_csv_next(oly_csv_lines *l, char **line);
void oly_csv_close(oly_csv_lines *l);

/* Cuts the comment and spaces off; "" if nothing is left. */
char *oly_csv_content(const oly_csv_form *form, char *line);
/* The fields of a line with content. */
int64_t oly_csv_fields(const oly_csv_form *form, const char *content);
/* Cuts off the first field, without spaces around it; *rest: what follows, NULL: nothing. */
char *oly_csv_field(const oly_csv_form *form, char *content, char **rest);
/* Writes the number as an element; false: the text is none of this type. Under oly_numbers_with_point (core/text.h). */
bool oly_csv_number(const char *field, oly_dtype dtype, void *element);
#endif
