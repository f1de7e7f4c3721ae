/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the expected values of tests/oracle (check_oracle.h). A family is read as a whole, and its text split in place,
 * into lines and then into words. */
#include "check_oracle.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef OLY_SOURCE_DIR
#define OLY_SOURCE_DIR "."
#endif

static bool complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "oracle: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    return false;
}

static void *must_allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory) {
        fprintf(stderr, "oracle: no memory for %zu x %zu bytes\n", count, bytes);
        exit(1);
    }
    return memory;
}

/* -- files ---------------------------------------------------------------------------------------------- */

/* A whole file, zero-terminated; NULL if it cannot be read. */
static void *read_file(const char *folder, const char *name, size_t *bytes)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *content = must_allocate((size_t)(size < 0 ? 0 : size) + 1, 1);
    *bytes = fread(content, 1, (size_t)(size < 0 ? 0 : size), file);
    fclose(file);
    return content;
}

/* -- cases ---------------------------------------------------------------------------------------------- */

/* Splits a keyword line at its spaces; the words are added to `words`. */
static int cut_words(char *line, char **words)
{
    int n = 0;
    char *rest;
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        words[n++] = word;
    return n;
}

typedef struct cursor {
    oracle_family *family;
    oracle_case *open; /* NULL between cases */
    int n_lines, n_words, number;
    char *literal; /* where the next literal text goes */
} cursor;

static void add_literal(cursor *at, const char *line)
{
    if (!at->open || at->open->n_lines == 0)
        return;
    const char *text = line[1] == ' ' ? line + 2 : line + 1;
    oracle_line *owner = &at->open->lines[at->open->n_lines - 1];
    if (owner->text[0] == 0) {
        at->literal++; /* keeps the zero after the previous text */
        owner->text = at->literal;
    }
    at->literal += sprintf(at->literal, "%s\n", text);
}

static bool add_line(cursor *at, char *line)
{
    char **words = at->family->words + at->n_words;
    int n = cut_words(line, words);
    if (n == 0)
        return true;
    if (strcmp(words[0], "case") == 0) {
        if (at->open || n < 2)
            return complain("%s, line %d: a case without an id, or inside another", at->family->name, at->number);
        at->open = &at->family->cases[at->family->n_cases++];
        *at->open = (oracle_case){.id = words[1], .number = at->number, .lines = at->family->lines + at->n_lines};
        at->n_words += n;
        return true;
    }
    if (!at->open)
        return complain("%s, line %d: \"%s\" outside of a case", at->family->name, at->number, words[0]);
    if (strcmp(words[0], "end") == 0) {
        at->open = NULL;
        return true;
    }
    at->open->lines[at->open->n_lines++] =
        (oracle_line){.number = at->number, .n_words = n, .words = words, .text = ""};
    at->n_words += n;
    at->n_lines++;
    return true;
}

static bool cut_cases(oracle_family *family)
{
    cursor at = {.family = family, .literal = family->literal};
    for (char *line = family->text; *line;) {
        char *next = line + strcspn(line, "\n");
        if (*next)
            *next++ = 0;
        at.number++;
        if (line[0] == '|')
            add_literal(&at, line);
        else if (line[0] != '#' && !add_line(&at, line))
            return false;
        line = next;
    }
    return at.open ? complain("%s: case %s has no end", family->name, at.open->id) : true;
}

/* The last component of a path, without trailing slashes. */
static void name_family(char *name, size_t size, const char *folder)
{
    size_t end = strlen(folder);
    while (end > 1 && folder[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && folder[begin - 1] != '/')
        begin--;
    snprintf(name, size, "%.*s", (int)(end - begin), folder + begin);
}

oracle_family *check_oracle_open_folder(const char *folder)
{
    oracle_family *family = must_allocate(1, sizeof *family);
    size_t bytes = 0, n_lines = 1, n_words = 1;
    name_family(family->name, sizeof family->name, folder);
    family->text = read_file(folder, "cases.txt", &bytes);
    if (!family->text) {
        complain("cannot read %s/cases.txt", folder);
        check_oracle_close(family);
        return NULL;
    }
    for (const char *c = family->text; *c; c++) {
        n_lines += *c == '\n';
        n_words += *c == '\n' || *c == ' ';
    }
    family->cases = must_allocate(n_lines, sizeof *family->cases);
    family->lines = must_allocate(n_lines, sizeof *family->lines);
    family->words = must_allocate(n_words + n_lines, sizeof *family->words);
    family->literal = must_allocate(bytes + n_lines + 2, 1);
    family->arrays = read_file(folder, "arrays.npys", &family->array_bytes);
    if (!cut_cases(family)) {
        check_oracle_close(family);
        return NULL;
    }
    return family;
}

oracle_family *check_oracle_open(const char *name)
{
    char folder[512];
    snprintf(folder, sizeof folder, "%s/tests/oracle/%s", OLY_SOURCE_DIR, name);
    return check_oracle_open_folder(folder);
}

void check_oracle_close(oracle_family *family)
{
    if (!family)
        return;
    free(family->arrays);
    free(family->literal);
    free(family->words);
    free(family->lines);
    free(family->cases);
    free(family->text);
    free(family);
}

/* -- lines ---------------------------------------------------------------------------------------------- */

const oracle_line *check_oracle_line(const oracle_case *c, const char *keyword, int nth)
{
    for (int k = 0; k < c->n_lines; k++)
        if (strcmp(c->lines[k].words[0], keyword) == 0 && nth-- == 0)
            return &c->lines[k];
    return NULL;
}

const char *check_oracle_value(const oracle_line *line, const char *key)
{
    size_t n = strlen(key);
    for (int k = 1; k < line->n_words; k++)
        if (strncmp(line->words[k], key, n) == 0 && line->words[k][n] == '=')
            return line->words[k] + n + 1;
    return NULL;
}

int check_oracle_list(const char *word, int64_t *numbers, int most)
{
    int n = 0;
    if (!word || *word++ != '[')
        return -1;
    while (*word && *word != ']') {
        char *end;
        if (n == most)
            return -1;
        numbers[n++] = strtoll(word, &end, 10);
        if (end == word || (*end != ',' && *end != ']'))
            return -1;
        word = end + (*end == ',');
    }
    return *word == ']' ? n : -1;
}

/* -- arrays --------------------------------------------------------------------------------------------- */

static const struct element {
    const char *name, *npy; /* here, and in the header of a record */
    size_t bytes;
    int known_dtype;
} elements[] = {
    {"bool", "|b1", 1, OLY_BOOL},   {"i8", "|i1", 1, OLY_INT8},       {"i16", "<i2", 2, OLY_INT16},
    {"i32", "<i4", 4, OLY_INT32},   {"i64", "<i8", 8, OLY_INT64},     {"u8", "|u1", 1, OLY_UINT8},
    {"u16", "<u2", 2, OLY_UINT16},  {"u32", "<u4", 4, OLY_UINT32},    {"u64", "<u8", 8, OLY_UINT64},
    {"f16", "<f2", 2, OLY_FLOAT16}, {"bf16", "<u2", 2, OLY_BFLOAT16}, {"f32", "<f4", 4, OLY_FLOAT32},
    {"f64", "<f8", 8, OLY_FLOAT64}, {"c64", "<c8", 8, OLY_COMPLEX64}, {"c128", "<c16", 16, OLY_COMPLEX128},
};

static const struct element *find_element(const char *name)
{
    for (size_t k = 0; k < sizeof elements / sizeof elements[0]; k++)
        if (strcmp(elements[k].name, name) == 0)
            return &elements[k];
    return NULL;
}

int check_oracle_dtype(const char *name)
{
    const struct element *element = find_element(name);
    return element ? element->known_dtype : -1;
}

/* Python's "(2, 3)" and "(4,)" against the shape of the line. */
static bool same_shape(const char *tuple, const oracle_array *array)
{
    int n = 0;
    for (char *end; *tuple && *tuple != ')'; tuple = end + strspn(end, ", ")) {
        int64_t extent = strtoll(tuple, &end, 10);
        if (end == tuple || n == array->rank || extent != array->shape[n++])
            return false;
    }
    return n == array->rank;
}

/* Copies the elements of the npy record at `offset`; false if it does not match the line. */
static bool read_record(const oracle_family *family, size_t offset, const struct element *element, oracle_array *array)
{
    char header[512], wanted[64];
    const unsigned char *record = family->arrays + offset;
    if (offset + 10 > family->array_bytes || memcmp(record, "\x93NUMPY\x01\x00", 8) != 0)
        return false;
    size_t length = record[8] | (size_t)record[9] << 8, bytes = (size_t)array->size * element->bytes;
    if (length >= sizeof header || offset + 10 + length + bytes > family->array_bytes)
        return false;
    memcpy(header, record + 10, length);
    header[length] = 0;
    snprintf(wanted, sizeof wanted, "'descr': '%s'", element->npy);
    const char *shape = strstr(header, "'shape': (");
    if (!strstr(header, wanted) || !strstr(header, "'fortran_order': False") || !shape)
        return false;
    if (!same_shape(shape + strlen("'shape': ("), array))
        return false;
    array->data = must_allocate(bytes, 1);
    memcpy(array->data, record + 10 + length, bytes);
    return true;
}

bool check_oracle_array(const oracle_family *family, const oracle_line *line, oracle_array *array)
{
    *array = (oracle_array){.size = 1};
    const struct element *element = line->n_words > 5 ? find_element(line->words[2]) : NULL;
    array->rank = element ? check_oracle_list(line->words[3], array->shape, OLY_MAX_RANK) : -1;
    if (array->rank < 0 || line->words[5][0] != '@')
        return complain("%s, line %d: not KEYWORD NAME DTYPE [SHAPE] SPEC @OFFSET", family->name, line->number);
    snprintf(array->dtype, sizeof array->dtype, "%s", element->name);
    array->known_dtype = element->known_dtype;
    array->item_size = element->bytes;
    for (int axis = 0; axis < array->rank; axis++)
        array->size *= array->shape[axis];
    if (line->words[5][1] == '-')
        return true;
    if (!family->arrays || !read_record(family, strtoul(line->words[5] + 1, NULL, 10), element, array))
        return complain("%s, line %d: no such record in arrays.npys", family->name, line->number);
    return true;
}

void check_oracle_array_free(oracle_array *array)
{
    free(array->data);
    array->data = NULL;
}
