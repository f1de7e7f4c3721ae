/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading and writing manifests. See manifest.h. */
#define _GNU_SOURCE /* qsort_r */
#include "file/manifest.h"
#include "file/manifest_boxes.h"
#include "file/zlib_late.h"
#include "core/dtype_list.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char magic[] = "olympus-checkpoint";

uint32_t oly_checksum(uint32_t before, const void *bytes, size_t n)
{
    return oly_zlib_need() == OLY_OK ? (uint32_t)oly_zlib.crc32_z(before, bytes, n) : 0;
}

/* -- element types ------------------------------------------------------------------------------------------------------- */

#define TYPE_NAME(a, number, name, ...)       [OLY_##number] = (name),
#define TYPE_SIZE(a, number, name, s, T, ...) [OLY_##number] = sizeof(T),
static const char *const type_names[] = {OLY_EVERY_TYPE(TYPE_NAME, )};
static const uint8_t type_sizes[] = {OLY_EVERY_TYPE(TYPE_SIZE, )};

int64_t oly_manifest_element(oly_dtype dtype)
{
    return type_sizes[dtype];
}

/* -- reading ------------------------------------------------------------------------------------------------------------- */

typedef struct reader {
    const char *at, *end;
    int line;
    oly_manifest *m;
} reader;

static oly_status refuse(const reader *r, const char *what)
{
    return oly_fail(OLY_IO, "the manifest is malformed in line %d: %s", r->line, what);
}

static oly_status no_memory(const reader *r, size_t bytes)
{
    (void)r;
    return oly_out_of_memory(bytes, "the manifest of a checkpoint");
}

/* The next word of the line: up to a blank or the end of the line. */
static bool word(reader *r, const char **begin, size_t *n)
{
    *begin = r->at;
    while (r->at < r->end && *r->at != ' ' && *r->at != '\n')
        r->at++;
    *n = (size_t)(r->at - *begin);
    return *n > 0;
}

/* A blank and another word. */
static bool blank(reader *r)
{
    if (r->at == r->end || *r->at != ' ')
        return false;
    r->at++;
    return true;
}

static oly_status end_line(reader *r)
{
    if (r->at == r->end || *r->at != '\n')
        return refuse(r, "there is more, or less, in it than belongs there");
    r->at++;
    r->line++;
    return OLY_OK;
}

static oly_status keyword(reader *r, const char *expected)
{
    const char *begin;
    size_t n;
    if (word(r, &begin, &n) && n == strlen(expected) && memcmp(begin, expected, n) == 0)
        return OLY_OK;
    return oly_fail(OLY_IO, "the manifest is malformed in line %d: \"%s\" is missing", r->line, expected);
}

/* A decimal number as it is printed: no sign but '-', no zeros before it. */
static bool parse_number(const char *begin, size_t n, int64_t *value)
{
    bool negative = n > 0 && *begin == '-';
    const char *at = begin + negative, *end = begin + n;
    uint64_t magnitude = 0, most = (uint64_t)INT64_MAX + negative;
    if (at == end || (*at == '0' && n > 1))
        return false;
    for (; at < end; at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (digit > 9 || magnitude > (most - digit) / 10)
            return false;
        magnitude = magnitude * 10 + digit;
    }
    *value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

static oly_status number(reader *r, int64_t low, int64_t high, int64_t *value, const char *what)
{
    const char *begin;
    size_t n;
    if (blank(r) && word(r, &begin, &n) && parse_number(begin, n, value) && *value >= low && *value <= high)
        return OLY_OK;
    return oly_fail(OLY_IO, "the manifest is malformed in line %d: %s must be a number from %" PRId64 " to %" PRId64,
                    r->line, what, low, high);
}

static int hexadecimal(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static oly_status checksum(reader *r, uint32_t *value)
{
    const char *begin;
    size_t n;
    bool good = blank(r) && word(r, &begin, &n) && n == 8;
    *value = 0;
    for (size_t k = 0; good && k < n; k++) {
        good = hexadecimal(begin[k]) >= 0;
        *value = *value << 4 | (uint32_t)hexadecimal(begin[k]);
    }
    return good ? OLY_OK : refuse(r, "a checksum has eight hexadecimal digits");
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}

/* One character, of %XX or as it is; -1: neither. */
static int decode(const char **at, const char *end)
{
    const char *c = (*at)++;
    if (*c != '%')
        return is_plain(*c) ? *c : -1;
    if (end - *at < 2 || hexadecimal(c[1]) < 0 || hexadecimal(c[2]) < 0)
        return -1;
    *at += 2;
    return hexadecimal(c[1]) << 4 | hexadecimal(c[2]);
}

/* A word with %XX, decoded; "-" is the empty one. */
static oly_status text(reader *r, size_t most, const char **value, const char *what)
{
    const char *begin;
    size_t n, length = 0;
    if (!blank(r) || !word(r, &begin, &n) || n > 3 * most)
        return oly_fail(OLY_IO, "the manifest is malformed in line %d: %s is missing or too long", r->line, what);
    char *to = oly_arena_take_raw(&r->m->arena, n + 1);
    if (!to)
        return no_memory(r, n + 1);
    bool empty = n == 1 && *begin == '-';
    for (const char *at = begin, *end = begin + n; at < end && !empty;) {
        int c = decode(&at, end);
        if (c <= 0)
            return oly_fail(OLY_IO,
                            "the manifest is malformed in line %d: %s has a character that must be written as %%XX",
                            r->line, what);
        to[length++] = (char)c;
    }
    to[length] = '\0';
    *value = to;
    return length <= most ? OLY_OK
                          : oly_fail(OLY_IO, "the manifest is malformed in line %d: %s is too long", r->line, what);
}

/* A file of the checkpoint's own folder: nothing that leads out of it. */
static oly_status file_name(reader *r, const char **value)
{
    const char *begin;
    size_t n;
    bool good = blank(r) && word(r, &begin, &n) && n <= OLY_MANIFEST_MOST_NAME && *begin != '.' && *begin != '-';
    for (size_t k = 0; good && k < n; k++)
        good = is_plain(begin[k]);
    if (!good)
        return refuse(r, "a file's name consists of letters, digits and \"._-\", and begins with none of these three");
    char *to = oly_arena_take_raw(&r->m->arena, n + 1);
    if (!to)
        return no_memory(r, n + 1);
    memcpy(to, begin, n);
    to[n] = '\0';
    *value = to;
    return OLY_OK;
}

static oly_status dtype(reader *r, oly_dtype *value)
{
    const char *begin;
    size_t n;
    if (blank(r) && word(r, &begin, &n))
        for (int k = 0; k < OLY_N_DTYPES; k++)
            if (strlen(type_names[k]) == n && memcmp(type_names[k], begin, n) == 0) {
                *value = (oly_dtype)k;
                return OLY_OK;
            }
    return refuse(r, "there is no such element type");
}

/* -- the lines ----------------------------------------------------------------------------------------------------------- */

static oly_status read_head(reader *r, int64_t *n_arrays)
{
    int64_t version = 0, n_values = 0;
    OLY_TRY(keyword(r, magic));
    OLY_TRY(number(r, 1, INT64_MAX, &version, "the version"));
    if (version > OLY_MANIFEST_VERSION)
        return oly_fail(OLY_IO,
                        "the manifest has version %" PRId64
                        ", and this Olympus (%d.%d) reads versions up to %d; use a newer "
                        "one",
                        version, OLY_VERSION_MAJOR, OLY_VERSION_MINOR, OLY_MANIFEST_VERSION);
    OLY_TRY(end_line(r));
    OLY_TRY(keyword(r, "step"));
    OLY_TRY(number(r, 0, INT64_MAX, &r->m->step, "the step"));
    OLY_TRY(end_line(r));
    OLY_TRY(keyword(r, "chunk"));
    OLY_TRY(number(r, OLY_MANIFEST_LEAST_CHUNK, OLY_MANIFEST_MOST_CHUNK, &r->m->chunk, "the size of chunks"));
    OLY_TRY(end_line(r));
    OLY_TRY(keyword(r, "text"));
    OLY_TRY(text(r, OLY_MANIFEST_MOST_TEXT, &r->m->text, "the text"));
    OLY_TRY(end_line(r));
    OLY_TRY(keyword(r, "values"));
    OLY_TRY(number(r, 0, OLY_MANIFEST_MOST_VALUES, &n_values, "the number of values"));
    r->m->n_values = (int)n_values;
    OLY_ARENA_LIST(&r->m->arena, r->m->value, n_values);
    for (int64_t k = 0; k < n_values; k++)
        OLY_TRY(number(r, INT64_MIN, INT64_MAX, &r->m->value[k], "a value"));
    OLY_TRY(end_line(r));
    OLY_TRY(keyword(r, "arrays"));
    OLY_TRY(
        number(r, 0, (r->end - r->at) / 16, n_arrays, "the number of arrays")); /* a line has more bytes than that */
    return end_line(r);
}

static oly_status read_array(reader *r, oly_manifest_array *a)
{
    int64_t rank, elements = 1, most;
    OLY_TRY(keyword(r, "array"));
    OLY_TRY(text(r, OLY_MANIFEST_MOST_NAME, &a->name, "the name of an array"));
    if (!a->name[0])
        return refuse(r, "the name of an array is empty");
    OLY_TRY(dtype(r, &a->dtype));
    OLY_TRY(number(r, 0, OLY_MAX_RANK, &rank, "the number of dimensions"));
    a->rank = (int)rank;
    most = INT64_MAX / oly_manifest_element(a->dtype);
    for (int d = 0; d < a->rank; d++) { /* also without the extents that are 0, as Olympus has it for its own arrays */
        OLY_TRY(number(r, 0, elements ? most / elements : most, &a->shape[d], "an extent"));
        elements *= a->shape[d];
    }
    OLY_TRY(text(r, 4096, &a->sharding, "the sharding"));
    return end_line(r);
}

static oly_status read_box(reader *r, const oly_manifest_array *a, oly_manifest_part *p)
{
    OLY_ARENA_LIST(&r->m->arena, p->start, a->rank);
    OLY_ARENA_LIST(&r->m->arena, p->extent, a->rank);
    for (int d = 0; d < a->rank; d++)
        OLY_TRY(number(r, 0, a->shape[d] - 1, &p->start[d], "the beginning of a part"));
    for (int d = 0; d < a->rank; d++)
        OLY_TRY(number(r, 1, a->shape[d] - p->start[d], &p->extent[d], "the extent of a part"));
    return OLY_OK;
}

/* The elements, and a header that is not absurdly long. */
static oly_status check_size(const reader *r, const oly_manifest_array *a, const oly_manifest_part *p)
{
    int64_t bytes = oly_manifest_element(a->dtype);
    for (int d = 0; d < a->rank; d++)
        bytes *= p->extent[d];
    return p->bytes > bytes && p->bytes - bytes <= (1 << 20) ? OLY_OK
                                                             : refuse(r, "a file's size does not fit the part in it");
}

static oly_status read_part(reader *r, oly_manifest_part *p)
{
    int64_t array;
    oly_manifest *m = r->m;
    OLY_TRY(keyword(r, "part"));
    OLY_TRY(number(r, 0, m->n_arrays - 1, &array, "the number of an array"));
    p->array = (int)array;
    OLY_TRY(file_name(r, &p->file));
    OLY_TRY(number(r, 1, INT64_MAX - m->chunk, &p->bytes, "the size of a file"));
    OLY_TRY(read_box(r, &m->array[array], p));
    OLY_TRY(check_size(r, &m->array[array], p));
    p->n_checksums = oly_manifest_chunks(p->bytes, m->chunk);
    if (p->n_checksums > (r->end - r->at) / 9)
        return refuse(r, "checksums are missing");
    OLY_ARENA_LIST(&m->arena, p->checksum, p->n_checksums);
    for (int64_t k = 0; k < p->n_checksums; k++)
        OLY_TRY(checksum(r, &p->checksum[k]));
    m->array[array].n_parts++;
    return end_line(r);
}

/* -- what holds between lines ---------------------------------------------------------------------------------------------- */

static int by_array_name(const void *a, const void *b, void *manifest)
{
    const oly_manifest *m = manifest;
    return strcmp(m->array[*(const int *)a].name, m->array[*(const int *)b].name);
}

static oly_status sort_names(reader *r)
{
    oly_manifest *m = r->m;
    OLY_ARENA_LIST(&m->arena, m->by_name, m->n_arrays);
    for (int k = 0; k < m->n_arrays; k++)
        m->by_name[k] = k;
    qsort_r(m->by_name, (size_t)m->n_arrays, sizeof *m->by_name, by_array_name, m);
    for (int k = 1; k < m->n_arrays; k++)
        if (strcmp(m->array[m->by_name[k]].name, m->array[m->by_name[k - 1]].name) == 0)
            return oly_fail(OLY_IO, "the manifest has two arrays named \"%s\"", m->array[m->by_name[k]].name);
    return OLY_OK;
}

static int by_file(const void *a, const void *b)
{
    return strcmp(((const oly_manifest_part *)a)->file, ((const oly_manifest_part *)b)->file);
}

static int by_array(const void *a, const void *b)
{
    const oly_manifest_part *p = a, *q = b;
    return p->array != q->array ? p->array - q->array : strcmp(p->file, q->file);
}

static oly_status check_files(oly_manifest *m)
{
    qsort(m->part, (size_t)m->n_parts, sizeof *m->part, by_file);
    for (int k = 1; k < m->n_parts; k++)
        if (strcmp(m->part[k].file, m->part[k - 1].file) == 0)
            return oly_fail(OLY_IO, "the manifest has the file %s twice", m->part[k].file);
    qsort(m->part, (size_t)m->n_parts, sizeof *m->part, by_array);
    return OLY_OK;
}

static oly_status check_cover(oly_manifest_array *a)
{
    const oly_manifest_part *first, *second;
    bool empty = false;
    for (int d = 0; d < a->rank; d++)
        empty = empty || a->shape[d] == 0;
    switch (empty && a->n_parts == 0 ? OLY_BOXES_COVER : oly_manifest_check_boxes(a, &first, &second)) {
    case OLY_BOXES_COVER: return OLY_OK;
    case OLY_BOXES_OVERLAP:
        return oly_fail(OLY_IO, "the manifest has parts of \"%s\" that overlap: %s and %s", a->name, first->file,
                        second->file);
    case OLY_BOXES_MISS: return oly_fail(OLY_IO, "the manifest has not all parts of \"%s\"", a->name);
    default: return oly_fail(OLY_IO, "the manifest cuts \"%s\" into parts in no order", a->name);
    }
}

static oly_status read_parts(reader *r)
{
    oly_manifest *m = r->m;
    int most = 0;
    for (const char *at = r->at; at < r->end && *at == 'p'; most++) { /* lines */
        const char *newline = memchr(at, '\n', (size_t)(r->end - at));
        at = newline ? newline + 1 : r->end;
    }
    OLY_ARENA_LIST(&m->arena, m->part, most);
    for (; m->n_parts < most; m->n_parts++)
        OLY_TRY(read_part(r, &m->part[m->n_parts]));
    OLY_TRY(check_files(m));
    for (int k = 0, at = 0; k < m->n_arrays; at += m->array[k++].n_parts) {
        m->array[k].part = m->part + at;
        OLY_TRY(check_cover(&m->array[k]));
    }
    return OLY_OK;
}

static oly_status read_end(reader *r, const char *begin)
{
    uint32_t found, computed = oly_checksum(0, begin, (size_t)(r->at - begin));
    OLY_TRY(keyword(r, "end"));
    OLY_TRY(checksum(r, &found));
    OLY_TRY(end_line(r));
    if (r->at != r->end)
        return refuse(r, "there is something after its end");
    return found == computed ? OLY_OK : oly_fail(OLY_IO, "the manifest is damaged: its checksum differs");
}

/* The last line first, so that damage is reported as such. What is no manifest of any version is left to read_head. */
static oly_status check_whole(const char *begin, size_t bytes)
{
    enum { LAST = sizeof "end 01234567\n" - 1 };
    size_t n = sizeof magic - 1;
    if (bytes < n || memcmp(begin, magic, n) != 0)
        return oly_fail(OLY_IO, "the manifest is not one of Olympus: it does not begin with \"%s\"", magic);
    if (memchr(begin, '\0', bytes))
        return oly_fail(OLY_IO, "the manifest is damaged: it has bytes that are no text");
    if (strncmp(begin + n, " 1\n", 3) != 0)
        return OLY_OK;
    const char *last = bytes < LAST + n ? begin : begin + bytes - LAST;
    reader r = {.at = last, .end = begin + bytes, .line = 1};
    for (const char *at = begin; at < last; at++)
        r.line += *at == '\n';
    if (last == begin || last[-1] != '\n' || memcmp(last, "end ", 4) != 0)
        return oly_fail(OLY_IO, "the manifest is incomplete: it has no last line");
    return read_end(&r, begin);
}

static oly_status read_all(reader *r, const char *begin, size_t bytes)
{
    int64_t n_arrays;
    oly_manifest *m = r->m;
    OLY_TRY(check_whole(begin, bytes));
    OLY_TRY(read_head(r, &n_arrays));
    OLY_ARENA_LIST(&m->arena, m->array, n_arrays);
    for (; m->n_arrays < n_arrays; m->n_arrays++)
        OLY_TRY(read_array(r, &m->array[m->n_arrays]));
    OLY_TRY(sort_names(r));
    OLY_TRY(read_parts(r));
    return read_end(r, begin);
}

oly_status oly_manifest_read(const char *begin, size_t bytes, oly_manifest *m)
{
    *m = (oly_manifest){0};
    OLY_TRY(oly_zlib_need());
    reader r = {.at = begin, .end = begin + bytes, .line = 1, .m = m};
    oly_status st = read_all(&r, begin, bytes);
    if (st != OLY_OK)
        oly_manifest_free(m);
    return st;
}

void oly_manifest_free(oly_manifest *m)
{
    oly_arena_free(&m->arena);
    *m = (oly_manifest){0};
}

int oly_manifest_find(const oly_manifest *m, const char *name)
{
    int low = 0, high = m->n_arrays;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = strcmp(name, m->array[m->by_name[middle]].name);
        if (order == 0)
            return m->by_name[middle];
        low = order > 0 ? middle + 1 : low;
        high = order > 0 ? high : middle;
    }
    return -1;
}

/* -- writing ------------------------------------------------------------------------------------------------------------- */

/* The empty text is "-", so that there is a word; and a "-" alone is written as %2d. */
static void add_text(oly_text *t, const char *value)
{
    bool dash = strcmp(value, "-") == 0;
    if (!value[0])
        oly_text_add_chars(t, "-", 1);
    for (const char *c = value; *c; c++)
        if (is_plain(*c) && !dash)
            oly_text_add_chars(t, c, 1);
        else
            oly_text_add(t, "%%%02x", (unsigned)(unsigned char)*c);
}

void oly_manifest_add_head(oly_text *t, int64_t step, int64_t chunk, const char *text, int n_values,
                           const int64_t *values, int n_arrays)
{
    oly_text_add(t, "%s %d\nstep %" PRId64 "\nchunk %" PRId64 "\ntext ", magic, OLY_MANIFEST_VERSION, step, chunk);
    add_text(t, text ? text : "");
    oly_text_add(t, "\nvalues %d", n_values);
    for (int k = 0; k < n_values; k++)
        oly_text_add(t, " %" PRId64, values[k]);
    oly_text_add(t, "\narrays %d\n", n_arrays);
}

static void add_numbers(oly_text *t, int n, const int64_t *number)
{
    for (int k = 0; k < n; k++)
        oly_text_add(t, " %" PRId64, number[k]);
}

void oly_manifest_add_array(oly_text *t, const char *name, oly_dtype dtype, int rank, const int64_t *shape,
                            const char *sharding)
{
    oly_text_add(t, "array ");
    add_text(t, name);
    oly_text_add(t, " %s %d", type_names[dtype], rank);
    add_numbers(t, rank, shape);
    oly_text_add(t, " ");
    add_text(t, sharding);
    oly_text_add(t, "\n");
}

void oly_manifest_add_part(oly_text *t, const oly_manifest_part *part, int rank)
{
    oly_text_add(t, "part %d %s %" PRId64, part->array, part->file, part->bytes);
    add_numbers(t, rank, part->start);
    add_numbers(t, rank, part->extent);
    for (int64_t k = 0; k < part->n_checksums; k++)
        oly_text_add(t, " %08x", part->checksum[k]);
    oly_text_add(t, "\n");
}

void oly_manifest_add_end(oly_text *t)
{
    oly_text_add(t, "end %08x\n", oly_checksum(0, oly_text_chars(t), t->length));
}
