/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the expected values of tests/oracle (its README.md has the grammar): cases, their keyword lines, the literal
 * text below a line, and arrays. Linked with every test program. */
#ifndef CHECK_ORACLE_H
#define CHECK_ORACLE_H
#include <olympus/array.h>

/* A keyword line and the literal text below it. */
typedef struct oracle_line {
    int number;       /* in its file, from 1 */
    int n_words;      /* at least 1 */
    char **words;     /* words[0] is the keyword */
    const char *text; /* the "| " lines without that prefix, each ending in a newline; "" if there are none */
} oracle_line;

typedef struct oracle_case {
    const char *id; /* "print.00" */
    int number;     /* of its first line */
    int n_lines;    /* between `case` and `end` */
    oracle_line *lines;
} oracle_case;

typedef struct oracle_family {
    char name[32];
    int n_cases;
    oracle_case *cases;
    oracle_line *lines; /* those of all cases */
    char **words;       /* those of all lines */
    char *text, *literal;
    unsigned char *arrays; /* arrays.npys; NULL when the family has none */
    size_t array_bytes;
} oracle_family;

/* One array, decoded. */
typedef struct oracle_array {
    char dtype[8];   /* as in the file: "f32" */
    int known_dtype; /* the oly_dtype, or -1 if Olympus does not have it */
    int rank;
    int64_t shape[OLY_MAX_RANK];
    int64_t size;     /* elements */
    size_t item_size; /* bytes of an element */
    void *data;       /* owned; aligned; NULL if the line has no data (@-) */
} oracle_array;

/* Reads tests/oracle/NAME below the source root. NULL: the reason is printed to standard error. */
oracle_family *check_oracle_open(const char *name);
/* The same for any folder that holds a cases.txt. */
oracle_family *check_oracle_open_folder(const char *folder);
void check_oracle_close(oracle_family *family);

/* The nth (from 0) line with a keyword; NULL if there is none. */
const oracle_line *check_oracle_line(const oracle_case *c, const char *keyword, int nth);

/* The array of a line "KEYWORD NAME DTYPE [SHAPE] SPEC @OFFSET ...". False: the reason is printed to standard error. */
bool check_oracle_array(const oracle_family *family, const oracle_line *line, oracle_array *array);
void check_oracle_array_free(oracle_array *array);

/* The oly_dtype of a name in the files ("f32"); -1 if Olympus does not have it. */
int check_oracle_dtype(const char *name);

/* The value of a word "KEY=VALUE" of a line; NULL if there is none. */
const char *check_oracle_value(const oracle_line *line, const char *key);
/* Reads "[2,3]" (or "[]") into at most `most` numbers; returns how many, -1 when malformed. */
int check_oracle_list(const char *word, int64_t *numbers, int most);
#endif
