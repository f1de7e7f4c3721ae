/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_save_xdmf: the first process looks into the HDF5 file and describes it. */
#include "array/files/crew.h"
#include "array/files/one_writer.h"
#include "array/files/vti_save.h"
#include "core/hash.h"
#include "core/min_max.h"
#include "file/xdmf.h"
#include <math.h>
#include <olympus/formats.h>
#include <string.h>

enum { MOST_FIELDS = 64 };

typedef struct describing {
    const char *path, *hdf5, *names;
    const oly_xdmf_options *o;
    oly_hdf5_id file;
    oly_vti_field field[MOST_FIELDS];
    oly_hdf5_set set[MOST_FIELDS]; /* closed: their shapes */
    bool has_rows[MOST_FIELDS];
    int64_t rows[MOST_FIELDS];
    double *times; /* owned */
    oly_xdmf x;
} describing;

/* -- the data sets ---------------------------------------------------------------------------------------------------- */

static oly_status open_sets(describing *d)
{
    int n = 0;
    for (const char *at = d->names; *at || n == 0; n++) {
        if (n == MOST_FIELDS)
            return oly_fail(OLY_INVALID, "\"%.80s...\" are more than %d names", d->names, MOST_FIELDS);
        OLY_TRY(oly_next_name(&at, d->field[n].name));
        OLY_TRY(oly_hdf5_set_open(d->file, d->hdf5, d->field[n].name, &d->set[n]));
        oly_hdf5_set_close(&d->set[n]);
        if (!oly_vti_type(d->set[n].dtype))
            return oly_fail(OLY_DTYPE, "\"%s\" of %s has elements of a type that XDMF does not have", d->field[n].name,
                            d->hdf5);
        d->field[n].dtype = d->set[n].dtype;
        d->has_rows[n] = d->set[n].grows;
        d->rows[n] = d->set[n].grows ? d->set[n].shape[0] : 1;
    }
    d->x.grid.n = n;
    return OLY_OK;
}

/* The grid's dimensions are those of the data set with the fewest, the time aside. */
static oly_status take_shapes(describing *d)
{
    oly_vti *g = &d->x.grid;
    int rank = OLY_VTI_DIMENSIONS, first = -1;
    for (int k = 0; k < g->n; k++)
        rank = (int)oly_smaller(rank, d->set[k].rank - d->has_rows[k]);
    g->rank = d->o->dimensions ? d->o->dimensions : rank;
    if (g->rank < 1 || g->rank > OLY_VTI_DIMENSIONS)
        return oly_fail(OLY_SHAPE, "a grid has 1 to %d dimensions, not %d", OLY_VTI_DIMENSIONS, g->rank);
    for (int k = 0; k < g->n; k++) {
        const int64_t *shape = d->set[k].shape + d->has_rows[k];
        int own = d->set[k].rank - d->has_rows[k];
        if (first < 0 && own >= g->rank) {
            first = k;
            memcpy(g->shape, shape, sizeof g->shape[0] * (size_t)g->rank);
        }
        if (own < g->rank || own > g->rank + 1 || memcmp(g->shape, shape, sizeof g->shape[0] * (size_t)g->rank) != 0)
            return oly_fail(OLY_SHAPE,
                            "\"%s\" of %s does not fit on the grid of %d dimensions of the others: all have its shape, "
                            "vectors one dimension more at the end",
                            d->field[k].name, d->hdf5, g->rank);
        d->field[k].components = own > g->rank ? (int)oly_smaller(shape[g->rank], INT32_MAX) : 0;
    }
    return OLY_OK;
}

static oly_status take_geometry(describing *d)
{
    oly_vti *g = &d->x.grid;
    for (int k = 0; k < g->rank; k++) {
        g->origin[k] = d->o->origin ? d->o->origin[k] : 0;
        g->spacing[k] = d->o->spacing ? d->o->spacing[k] : 1;
        if (!isfinite(g->origin[k]) || !isfinite(g->spacing[k]) || g->spacing[k] == 0)
            return oly_fail(OLY_INVALID,
                            "along dimension %d the origin is %g and the spacing %g; both must be finite, and "
                            "the spacing not 0",
                            k, g->origin[k], g->spacing[k]);
    }
    g->cells = d->o->cells;
    return OLY_OK;
}

/* As many steps as every data set with rows, and the times, have. */
static oly_status take_times(describing *d)
{
    bool there = false, any = false;
    oly_hdf5_set time;
    d->x.steps = INT64_MAX;
    for (int k = 0; k < d->x.grid.n; k++)
        if (d->has_rows[k]) {
            d->x.steps = oly_smaller(d->x.steps, d->rows[k]);
            any = true;
        }
    d->x.steps = any ? d->x.steps : 1;
    const char *name = d->o->times ? d->o->times : "time";
    OLY_TRY(oly_hdf5_look(d->file, d->hdf5, name, &there));
    if (!there && !d->o->times)
        return OLY_OK;
    OLY_TRY(oly_hdf5_set_open(d->file, d->hdf5, name, &time));
    oly_status st = OLY_OK;
    if (time.rank != 1 || oly_dtype_size(time.dtype) > 8)
        st = oly_fail(OLY_SHAPE, "the times \"%s\" of %s are no list of numbers", name, d->hdf5);
    int64_t zero = 0;
    d->x.steps = st == OLY_OK ? oly_smaller(d->x.steps, time.shape[0]) : 0;
    time.dtype = OLY_FLOAT64; /* HDF5 converts */
    d->times = oly_malloc(sizeof *d->times * (size_t)(d->x.steps + 1));
    if (st == OLY_OK && !d->times)
        st = oly_out_of_memory(sizeof *d->times * (size_t)d->x.steps, "the times of a series");
    if (st == OLY_OK && d->x.steps > 0)
        st = oly_hdf5_read(&time, &zero, &d->x.steps, d->times);
    oly_hdf5_set_close(&time);
    d->x.times = d->times;
    return st;
}

/* -- the description -------------------------------------------------------------------------------------------------- */

static oly_status put_text(void *text, oly_status (*sink)(void *to, const void *bytes, size_t n), void *to)
{
    const oly_text *t = text;
    return sink(to, t->chars, t->length);
}

static oly_status write_text(describing *d)
{
    oly_text t = {0};
    char *hdf5 = oly_path_seen_from(d->path, d->hdf5);
    d->x.hdf5 = hdf5;
    if (hdf5)
        oly_xdmf_text(&t, &d->x);
    oly_status st = hdf5 && !t.failed ? oly_write_whole_file(d->path, put_text, &t)
                                      : oly_out_of_memory(t.length, "the description of a file");
    oly_text_free(&t);
    oly_release(hdf5);
    return st;
}

static oly_status look_into(describing *d)
{
    OLY_TRY(open_sets(d));
    OLY_TRY(take_shapes(d));
    OLY_TRY(take_geometry(d));
    return take_times(d);
}

/* By one process. */
static oly_status describe(const char *path, const char *hdf5, const char *names, const oly_xdmf_options *o)
{
    describing *d = oly_calloc(1, sizeof *d);
    if (!d)
        return oly_out_of_memory(sizeof *d, "the description of a file");
    *d = (describing){.path = path, .hdf5 = hdf5, .names = names, .o = o, .file = -1};
    d->x = (oly_xdmf){.has_rows = d->has_rows, .rows = d->rows, .grid.field = d->field};
    oly_status st = oly_hdf5_open(hdf5, hdf5, false, &d->file);
    if (st == OLY_OK)
        st = look_into(d);
    if (d->file >= 0)
        oly_hdf5_close(d->file, hdf5);
    if (st == OLY_OK)
        st = write_text(d);
    oly_release(d->times);
    oly_release(d);
    return st;
}

static oly_status check(const char *path, const char *hdf5, const char *names)
{
    OLY_TRY(oly_hdf5_need());
    if (!path || !hdf5 || !names)
        return oly_fail(OLY_INVALID, "the %s NULL",
                        !path   ? "path is"
                        : !hdf5 ? "path of the HDF5 file is"
                                : "names are");
    return OLY_OK;
}

static oly_status save_xdmf(const char *path, const char *hdf5, const char *names, const oly_xdmf_options *o)
{
    oly_crew crew;
    OLY_TRY(oly_files_need_no_trace());
    oly_status st = oly_crew_begin(NULL, 38, &crew);
    if (st == OLY_OK)
        st = check(path, hdf5, names);
    uint64_t arguments = oly_hash_text(oly_hash_text(38, path ? path : ""), hdf5 ? hdf5 : "");
    st = oly_crew_agree_same(&crew, st, oly_hash_text(arguments, names ? names : ""));
    if (st == OLY_OK)
        st = oly_crew_agree(&crew, oly_crew_leads(&crew) ? describe(path, hdf5, names, o) : OLY_OK);
    oly_crew_end(&crew);
    return st;
}

oly_status oly_save_xdmf_with(const char *path, const char *hdf5, const char *names, oly_xdmf_options options)
{
    OLY_ENTER(OLY_STATE);
    return oly_raise(save_xdmf(path, hdf5, names, &options));
}
