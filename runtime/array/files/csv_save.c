/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_save_csv: every process gets some of the rows, whole ones, counts the bytes that they take as text, and writes them behind those
 * of the processes before it. */
#include "array/arguments.h"
#include "array/digits.h"
#include "array/files/csv_form.h"
#include "array/files/parts.h"
#include "array/files/replace.h"
#include "core/element.h"
#include "device/platform.h"
#include "file/file.h"
#include "run/execute.h"
#include <math.h>

typedef struct rows {
    oly_csv_form form;
    oly_dtype dtype;
    int64_t columns;
    int file;
    const char *path;
    int64_t at; /* where the next bytes go */
    char *text; /* NULL: they are only counted */
    size_t n;
} rows;

enum { ROOM = 1 << 20, NUMBER = OLY_DIGITS_TEXT + 2 };

static size_t number_text(char *text, oly_dtype dtype, const void *element)
{
    uint64_t whole = 0;
    if (dtype == OLY_BOOL || (dtype >= OLY_UINT8 && dtype <= OLY_UINT64)) {
        memcpy(&whole, element, oly_dtype_size(dtype)); /* little-endian */
        return (size_t)snprintf(text, NUMBER, "%" PRIu64, whole);
    }
    if (dtype == OLY_INT64) {
        memcpy(&whole, element, sizeof whole);
        return (size_t)snprintf(text, NUMBER, "%" PRId64, (int64_t)whole);
    }
    double value = oly_real_at(dtype, element);
    if (dtype < OLY_UINT8)
        return (size_t)snprintf(text, NUMBER, "%d", (int)value);
    if (isnan(value))
        return (size_t)snprintf(text, NUMBER, "nan");
    oly_digits_alone(text, value,
                     dtype == OLY_FLOAT64   ? OLY_PRECISION_DOUBLE
                     : dtype == OLY_FLOAT16 ? OLY_PRECISION_HALF
                                            : OLY_PRECISION_SINGLE,
                     1e16);
    return strlen(text);
}

static oly_status flush(rows *r)
{
    oly_status st = r->text && r->n ? oly_file_write(r->file, r->path, r->text, r->n, r->at) : OLY_OK;
    r->at += (int64_t)r->n;
    r->n = 0;
    return st;
}

static oly_status write_rows(rows *r, int64_t n, const char *elements)
{
    char number[NUMBER];
    size_t element = oly_dtype_size(r->dtype);
    for (int64_t row = 0; row < n; row++)
        for (int64_t k = 0; k < r->columns || (r->columns == 0 && k == 0); k++) {
            size_t length = r->columns ? number_text(number, r->dtype, elements) : 0;
            elements += r->columns ? element : 0;
            number[length++] = k + 1 < r->columns ? r->form.delimiter : '\n';
            if (r->text)
                memcpy(r->text + r->n, number, length);
            r->n += length;
            if (r->n > ROOM - NUMBER)
                OLY_TRY(flush(r));
        }
    return flush(r);
}

/* All rows of this process, in order. */
static oly_status write_parts(rows *r, oly_array x, bool writes)
{
    for (int s = 0; s < x->n_shards && writes; s++) {
        int position;
        void *host;
        oly_box box = oly_array_box(x, s, &position);
        size_t bytes = (size_t)oly_box_count(&box) * oly_dtype_size(r->dtype);
        int64_t n = x->type.rank ? box.hi[0] - box.lo[0] : 1;
        if (bytes == 0 && r->columns)
            continue;
        OLY_TRY(oly_buffer_map(x->shard[s], OLY_ACCESS_READ, bytes, &host));
        oly_status st = write_rows(r, n, host);
        oly_status unmapped = oly_buffer_unmap(x->shard[s], OLY_ACCESS_READ, bytes, host);
        OLY_TRY(st == OLY_OK ? unmapped : st);
    }
    return OLY_OK;
}

/* The same array with whole rows on each device of the crew. */
static oly_array by_rows(const oly_crew *crew, oly_array x)
{
    if (crew->line)
        return (oly_device_put)(x, (oly_named)(crew->line, "device"));
    return (oly_device_put)(x, (oly_single_device)(oly_get_device(oly_mesh_first_local())));
}

static oly_status write_table(const oly_crew *crew, oly_status mine, const char *path, oly_array x,
                              const oly_csv_options *o, rows *r)
{
    int64_t bytes = 0, size = 0, *all = oly_malloc(sizeof *all * (size_t)crew->n);
    oly_new_file f;
    if (mine == OLY_OK && !all)
        mine = oly_out_of_memory(sizeof *all * (size_t)crew->n, "writing a table");
    r->at = o->header && oly_crew_leads(crew) ? (int64_t)strlen(o->header) + 1 : 0;
    if (mine == OLY_OK)
        mine = write_parts(r, x, true);
    bytes = r->at;
    oly_status st = oly_crew_agree_on(crew, mine, 1, &bytes, all ? all : &bytes);
    r->at = 0;
    for (int m = 0; m < crew->n && st == OLY_OK && all; m++) {
        r->at += m < crew->me ? all[m] : 0;
        size += all[m];
    }
    oly_release(all);
    OLY_TRY(st);
    OLY_TRY(oly_replace_begin(crew, OLY_OK, oly_csv_arguments(path, o, r->dtype, 10), path, size, &f));
    r->file = f.file;
    r->text = oly_malloc(ROOM);
    st = r->text ? OLY_OK : oly_out_of_memory(ROOM, "writing a table");
    if (st == OLY_OK && o->header && oly_crew_leads(crew)) {
        size_t n = strlen(o->header);
        st = oly_file_write(f.file, path, o->header, n, 0);
        st = st == OLY_OK ? oly_file_write(f.file, path, "\n", 1, (int64_t)n) : st;
        r->at = (int64_t)n + 1;
    }
    if (st == OLY_OK)
        st = write_parts(r, x, true);
    oly_release(r->text);
    return oly_replace_end(crew, st, &f);
}

static oly_status save_members(const oly_crew *crew, oly_status mine, const char *path, oly_array x,
                               const oly_csv_options *o)
{
    rows r = {.dtype = x->type.dtype, .columns = x->type.rank == 2 ? x->type.shape[1] : 1, .path = path};
    oly_status st = mine == OLY_OK && !path ? oly_fail(OLY_INVALID, "the path is NULL") : mine;
    if (st == OLY_OK)
        st = oly_csv_form_of(o, r.dtype, &r.form);
    OLY_TRY(oly_crew_agree(crew, st));
    oly_scope_open();
    oly_array whole = by_rows(crew, x);
    st = whole ? OLY_OK : oly_kept_status() != OLY_OK ? oly_kept_status() : OLY_MEMORY;
    if (whole) {
        oly_array_wait(whole);
        st = write_table(crew, oly_run_refused(), path, whole, o, &r);
    }
    oly_scope_close();
    return st;
}

oly_status oly_save_csv_with(const char *path, oly_array x, oly_csv_options options)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_array(x));
    oly_status st = oly_files_need_no_trace();
    if (st == OLY_OK)
        st = oly_parts_check(x);
    if (st == OLY_OK && (x->type.rank < 1 || x->type.rank > 2))
        st = oly_fail(OLY_SHAPE, "a table has rows and columns, or one number a row; %s has neither",
                      oly_type_short(&x->type));
    if (st != OLY_OK)
        return oly_raise(st);
    oly_crew crew;
    st = oly_crew_begin(x->sharding->mesh, 7, &crew);
    if (crew.me >= 0)
        st = save_members(&crew, st, path, x, &options);
    st = oly_crew_tell(&crew, st, NULL, 0);
    oly_crew_end(&crew);
    return oly_raise(st);
}
