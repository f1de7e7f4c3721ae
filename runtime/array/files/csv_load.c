/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_load_csv. The file is cut into pieces; the processes count the rows of some each, and then know in which pieces their rows are,
 * whatever the sharding. */
#include "array/arguments.h"
#include "array/files/csv_form.h"
#include "array/files/load.h"
#include "array/files/parts.h"
#include "core/min_max.h"
#include "core/text.h"
#include "device/platform.h"
#include "file/file.h"

enum { LEAST_PIECE = 1 << 20, MOST_PIECES = 4096 };

typedef struct table {
    oly_csv_form form;
    const oly_csv_options *options;
    oly_type type;
    oly_shared_file file;
    int64_t begin, first_line; /* behind the header: byte, and number of the line, from 0 */
    int64_t piece;             /* bytes of each */
    int pieces;
    int64_t *lines, *rows; /* [pieces] owned: how many begin in each */
} table;

/* -- what is in the file ------------------------------------------------------------------------------------------------------- */

static oly_status open_piece(const table *t, int k, oly_csv_lines *l)
{
    int64_t at = t->begin + k * t->piece;
    return oly_csv_open(t->file.file, t->file.path, at, at + t->piece, t->file.facts.size, k == 0, l);
}

/* Skips the header, and counts the columns of the first row. */
static oly_status look(table *t)
{
    oly_csv_lines l;
    char *line, mark[3] = {0};
    int64_t size = t->file.facts.size;
    if (size >= 3)
        OLY_TRY(oly_file_read(t->file.file, t->file.path, mark, 3, 0));
    t->begin = memcmp(mark, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* that the text is UTF-8 */
    OLY_TRY(oly_csv_open(t->file.file, t->file.path, t->begin, size, size, true, &l));
    oly_status st = OLY_OK;
    for (; t->first_line < t->options->header_lines && st == OLY_OK; t->first_line++)
        st = oly_csv_next(&l, &line);
    t->begin = l.at;
    int64_t columns = 0;
    while (st == OLY_OK && columns == 0 && (st = oly_csv_next(&l, &line)) == OLY_OK && line) {
        const char *content = oly_csv_content(&t->form, line);
        columns = content[0] ? oly_csv_fields(&t->form, content) : 0;
    }
    oly_csv_close(&l);
    if (st == OLY_OK && columns == 0)
        st = oly_fail(OLY_IO, "cannot read %s: it has no line with numbers", t->file.path);
    t->type.shape[1] = columns;
    t->piece = oly_larger(LEAST_PIECE, (size - t->begin) / MOST_PIECES + 1);
    t->pieces = (int)((size - t->begin + t->piece - 1) / t->piece);
    return st;
}

static oly_status count_piece(const table *t, int k, int64_t *lines, int64_t *rows)
{
    oly_csv_lines l;
    char *line;
    OLY_TRY(open_piece(t, k, &l));
    oly_status st = oly_csv_next(&l, &line);
    for (; st == OLY_OK && line; st = oly_csv_next(&l, &line)) {
        ++*lines;
        *rows += oly_csv_content(&t->form, line)[0] != '\0';
    }
    oly_csv_close(&l);
    return st;
}

/* Every member counts every n-th piece. */
static oly_status count(const oly_crew *crew, table *t)
{
    int each = (t->pieces + crew->n - 1) / crew->n;
    int64_t *mine = oly_calloc((size_t)each * 2 * (size_t)(crew->n + 1) + 1, sizeof *mine),
            *all = mine ? mine + (int64_t)each * 2 : NULL;
    t->lines = oly_calloc((size_t)t->pieces + 1, sizeof *t->lines);
    t->rows = oly_calloc((size_t)t->pieces + 1, sizeof *t->rows);
    oly_status st =
        mine && t->lines && t->rows ? OLY_OK : oly_out_of_memory(sizeof *mine * (size_t)each * 2, "the rows of a file");
    for (int k = crew->me; k < t->pieces && st == OLY_OK; k += crew->n)
        st = count_piece(t, k, &mine[k / crew->n * 2], &mine[k / crew->n * 2 + 1]);
    st = oly_crew_agree_on(crew, st, each * 2, mine ? mine : (int64_t[1]){0}, all);
    for (int k = 0; k < t->pieces && st == OLY_OK && all && t->lines && t->rows; k++) {
        const int64_t *theirs = all + ((int64_t)(k % crew->n) * each + k / crew->n) * 2;
        t->lines[k] = theirs[0];
        t->rows[k] = theirs[1];
        t->type.shape[0] += theirs[1];
    }
    oly_release(mine);
    return st;
}

/* -- reading -------------------------------------------------------------------------------------------------------------------- */

static oly_status wrong_number(const table *t, int64_t line, int64_t column, const char *field)
{
    return oly_fail(OLY_PARSE, "cannot read %s: line %" PRId64 ", column %" PRId64 ": \"%.40s\" is no %s", t->file.path,
                    line + 1, column + 1, field, oly_dtype_name(t->type.dtype));
}

static oly_status parse_row(const table *t, int64_t line, char *content, char *elements)
{
    int64_t columns = t->type.shape[1], have = oly_csv_fields(&t->form, content);
    size_t element = oly_dtype_size(t->type.dtype);
    if (have != columns)
        return oly_fail(OLY_PARSE, "cannot read %s: line %" PRId64 " has %" PRId64 " columns, the first row %" PRId64,
                        t->file.path, line + 1, have, columns);
    for (int64_t k = 0; k < columns; k++) {
        char *rest, *field = oly_csv_field(&t->form, content, &rest);
        if (!oly_csv_number(field, t->type.dtype, elements + (size_t)k * element))
            return wrong_number(t, line, k, field);
        content = rest;
    }
    return OLY_OK;
}

static bool has_rows(const oly_parts_mapped *m, int s, int64_t lo, int64_t hi)
{
    return m->memory[s] && m->box[s].lo[0] < hi && lo < m->box[s].hi[0];
}

static void keep_row(const table *t, const oly_parts_mapped *m, int64_t row, const char *elements)
{
    size_t element = oly_dtype_size(t->type.dtype);
    for (int s = 0; s < m->n; s++)
        if (has_rows(m, s, row, row + 1)) {
            const oly_box *b = &m->box[s];
            int64_t width = b->hi[1] - b->lo[1];
            memcpy((char *)m->memory[s] + (size_t)((row - b->lo[0]) * width) * element,
                   elements + (size_t)b->lo[1] * element, (size_t)width * element);
        }
}

/* The rows of piece k, which begins with that line and row, that this process holds. */
static oly_status read_piece(const table *t, const oly_parts_mapped *m, int k, int64_t at_line, int64_t row,
                             char *elements)
{
    oly_csv_lines l;
    char *line;
    OLY_TRY(open_piece(t, k, &l));
    oly_status st = oly_csv_next(&l, &line);
    for (; st == OLY_OK && line; at_line++) {
        char *content = oly_csv_content(&t->form, line);
        bool wanted = false;
        for (int s = 0; s < m->n && content[0]; s++)
            wanted = wanted || has_rows(m, s, row, row + 1);
        if (wanted) {
            st = parse_row(t, at_line, content, elements);
            if (st == OLY_OK)
                keep_row(t, m, row, elements);
        }
        row += content[0] != '\0';
        st = st == OLY_OK ? oly_csv_next(&l, &line) : st;
    }
    oly_csv_close(&l);
    return st;
}

static oly_status read_rows(const table *t, const oly_parts_mapped *m)
{
    int64_t line = t->first_line, row = 0;
    size_t bytes = (size_t)t->type.shape[1] * oly_dtype_size(t->type.dtype);
    char *elements = oly_malloc(bytes + 1);
    oly_status st = elements ? OLY_OK : oly_out_of_memory(bytes, "a row of a file");
    locale_t before = oly_numbers_with_point();
    for (int k = 0; k < t->pieces && st == OLY_OK; k++) {
        bool wanted = false;
        for (int s = 0; s < m->n; s++)
            wanted = wanted || has_rows(m, s, row, row + t->rows[k]);
        if (wanted)
            st = read_piece(t, m, k, line, row, elements);
        line += t->lines[k];
        row += t->rows[k];
    }
    oly_numbers_as_before(before);
    oly_release(elements);
    return st;
}

static oly_status read_table(const table *t, oly_sharding sharding, oly_array *x)
{
    oly_parts_mapped m;
    OLY_TRY(oly_parts_make(&t->type, sharding, x));
    if (!oly_platform_get()->computes)
        return OLY_OK;
    OLY_TRY(oly_parts_map(*x, &m));
    oly_status st = read_rows(t, &m), unmapped = oly_parts_unmap(*x, &m);
    return st == OLY_OK ? unmapped : st;
}

static oly_status load_members(const oly_crew *crew, oly_status mine, const char *path, table *t, oly_sharding sharding,
                               oly_array *x)
{
    uint64_t arguments = oly_csv_arguments(path, t->options, t->type.dtype, 11);
    arguments = oly_hash_mix(arguments, sharding ? sharding->hash : 0);
    oly_status st = oly_shared_open(mine, path, &t->file);
    if (st == OLY_OK && (unsigned)t->type.dtype >= OLY_N_DTYPES)
        st = oly_fail(OLY_INVALID, "element type %d does not exist", (int)t->type.dtype);
    if (st == OLY_OK)
        st = oly_csv_form_of(t->options, t->type.dtype, &t->form);
    if (st == OLY_OK)
        st = look(t);
    if (st != OLY_OK)
        t->pieces = 0;
    OLY_TRY(oly_shared_agree(crew, st, arguments, (uint64_t)t->type.shape[1], &t->file));
    st = count(crew, t);
    if (st == OLY_OK)
        return oly_shared_end(crew, read_table(t, sharding, x), &t->file);
    oly_shared_close(&t->file);
    return st;
}

oly_array oly_load_csv_with(const char *path, oly_dtype dtype, oly_sharding sharding, oly_csv_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_or_null(sharding, OLY_HANDLE_SHARDING) != OLY_OK)
        return NULL;
    oly_crew crew;
    oly_array x = NULL;
    table t = {.options = &options, .type = {.dtype = dtype, .rank = 2}};
    oly_status st = oly_files_need_no_trace();
    if (st == OLY_OK) {
        st = oly_crew_begin(sharding ? sharding->mesh : NULL, 8, &crew);
        if (crew.me >= 0)
            st = load_members(&crew, st, path, &t, sharding, &x);
        st = oly_load_finish(&crew, st, &t.type, sharding, &x);
        oly_crew_end(&crew);
    }
    oly_release(t.lines);
    oly_release(t.rows);
    oly_raise(st);
    return st == OLY_OK ? x : NULL;
}
