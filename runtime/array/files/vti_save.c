/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_save_vti: images of VTK in one file, to which every process writes its own boxes; collections of them (.pvd). */
#include "array/arguments.h"
#include "array/files/one_writer.h"
#include "array/files/parts.h"
#include "array/files/replace.h"
#include "array/files/vti_save.h"
#include "core/hash.h"
#include "file/file.h"
#include "file/numbered_path.h"
#include <math.h>
#include <olympus/formats.h>
#include <stdlib.h>
#include <string.h>

/* -- one file --------------------------------------------------------------------------------------------------------- */

oly_status oly_vti_write_counts(int file, const char *path, const oly_vti *v, int64_t head)
{
    for (int k = 0; k < v->n; k++) {
        uint64_t bytes = (uint64_t)oly_vti_field_bytes(v, &v->field[k]);
        OLY_TRY(oly_file_write(file, path, &bytes, sizeof bytes, head + v->field[k].offset - (int64_t)sizeof bytes));
    }
    return OLY_OK;
}

/* What is no array: by the first member. */
static oly_status write_frame(const oly_new_file *f, const oly_vti *v, const oly_text *head, int64_t data)
{
    const char *tail = oly_vti_tail();
    int64_t begin = (int64_t)head->length;
    OLY_TRY(oly_file_write(f->file, f->path, head->chars, head->length, 0));
    OLY_TRY(oly_vti_write_counts(f->file, f->path, v, begin));
    return oly_file_write(f->file, f->path, tail, strlen(tail), begin + data);
}

static oly_status write_fields(const oly_new_file *f, const oly_grid *g, int64_t begin)
{
    for (int k = 0; k < g->n; k++) {
        const oly_type *type = &g->arrays[k]->type;
        oly_file_array to = {.file = f->file,
                             .path = f->path,
                             .offset = begin + g->vti.field[k].offset,
                             .dtype = type->dtype,
                             .rank = type->rank};
        memcpy(to.shape, type->shape, sizeof to.shape);
        OLY_TRY(oly_parts_write(g->arrays[k], &to));
    }
    return OLY_OK;
}

static oly_status save_whole(const oly_crew *crew, oly_status mine, uint64_t arguments, const char *path, oly_grid *g)
{
    oly_new_file f;
    oly_text head = {0};
    int64_t data = 0;
    if (mine == OLY_OK) {
        data = oly_vti_place(&g->vti);
        oly_vti_head(&head, &g->vti);
        mine = head.failed ? oly_out_of_memory(head.length, "the header of a file") : OLY_OK;
    }
    int64_t begin = (int64_t)head.length, size = begin + data + (int64_t)strlen(oly_vti_tail());
    oly_status st = oly_replace_begin(crew, mine, arguments, path, size, &f);
    if (st == OLY_OK) {
        if (oly_crew_leads(crew))
            st = write_frame(&f, &g->vti, &head, data);
        if (st == OLY_OK)
            st = write_fields(&f, g, begin);
        st = oly_replace_end(crew, st, &f);
    }
    oly_text_free(&head);
    return st;
}

/* -- series ----------------------------------------------------------------------------------------------------------- */

enum { LARGEST_SERIES = 64 << 20 };

char *oly_path_seen_from(const char *file, const char *path)
{
    const char *slash = strrchr(file, '/');
    size_t folder = slash ? (size_t)(slash - file) + 1 : 0;
    if (strncmp(file, path, folder) == 0)
        return oly_strdup(path + folder);
    char *whole = realpath(path, NULL), *copy = oly_strdup(whole ? whole : path);
    free(whole);
    return copy;
}

static oly_status put_text(void *text, oly_status (*sink)(void *to, const void *bytes, size_t n), void *to)
{
    const oly_text *t = text;
    return sink(to, t->chars, t->length);
}

static oly_status add_to_series(const char *series, const char *path, double time)
{
    bool exists;
    char *old = NULL, *file = oly_path_seen_from(series, path);
    size_t n;
    oly_text t = {0};
    oly_status st = file ? oly_file_may_replace(series, &exists) : oly_out_of_memory(strlen(path), "a path");
    if (st == OLY_OK && exists)
        st = oly_file_read_all(series, LARGEST_SERIES, &old, &n);
    if (st == OLY_OK)
        st = oly_pvd_text(&t, old, series, file, time);
    if (st == OLY_OK)
        st = oly_write_whole_file(series, put_text, &t);
    oly_text_free(&t);
    oly_release(old);
    oly_release(file);
    return st;
}

/* -- the call --------------------------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static oly_status check(const char *path, const oly_vti_options *o)
{
    if (!path)
        return oly_fail(OLY_INVALID, "the path is NULL");
    if (!ends_with(path, ".vti") && !ends_with(path, ".pvti"))
        return oly_fail(OLY_INVALID,
                        "the path \"%.200s\" ends neither in .vti (one file) nor in .pvti (a file for each shard)",
                        path);
    if (o->series && !ends_with(o->series, ".pvd"))
        return oly_fail(OLY_INVALID, "the path of the series, \"%.200s\", does not end in .pvd", o->series);
    if (o->number < 0 || !isfinite(o->time))
        return oly_fail(OLY_INVALID, "the number of a file is 0 or more, and its time finite");
    return OLY_OK;
}

static oly_status save(const oly_crew *crew, oly_status mine, const char *pattern, oly_grid *g,
                       const oly_vti_options *o)
{
    char *path = NULL;
    if (mine == OLY_OK)
        mine = check(pattern, o);
    if (mine == OLY_OK)
        mine = oly_numbered_path(pattern, o->number, &path);
    uint64_t arguments = oly_hash_text(oly_hash_text(oly_grid_hash(g), path ? path : ""), o->series ? o->series : "");
    bool pieces = path && ends_with(path, ".pvti");
    oly_status st =
        pieces ? oly_vti_save_pieces(crew, mine, arguments, path, g) : save_whole(crew, mine, arguments, path, g);
    if (st == OLY_OK && o->series) {
        st = oly_crew_leads(crew) ? add_to_series(o->series, path, o->time) : OLY_OK;
        st = oly_crew_agree(crew, st);
    }
    oly_release(path);
    return st;
}

static oly_status save_vti(const char *path, const char *names, int n, const oly_array *arrays,
                           const oly_vti_options *o)
{
    oly_grid g;
    oly_crew crew;
    OLY_TRY(oly_files_need_no_trace());
    oly_status filled = oly_grid_of(names, n, arrays, o->dimensions, o->origin, o->spacing, &g);
    if (filled != OLY_OK && filled != OLY_MEMORY) {
        oly_grid_end(&g);
        return filled;
    }
    g.vti.cells = o->cells;
    g.vti.time = o->time;
    g.vti.timed = o->series || o->time != 0;
    oly_status st = oly_crew_begin(g.mesh, 32, &crew);
    if (crew.me >= 0)
        st = save(&crew, st == OLY_OK ? filled : st, path, &g, o);
    st = oly_crew_tell(&crew, st, NULL, 0);
    oly_crew_end(&crew);
    oly_grid_end(&g);
    return st;
}

oly_status oly_save_vti_with(const char *path, const char *names, int n, const oly_array *arrays,
                             oly_vti_options options)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_arrays(n, arrays));
    return oly_raise(save_vti(path, names, n, arrays, &options));
}
