/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_write_frame and oly_write_png: pictures of sharded matrices. Each device averages its part (picture_means.c); one process draws and writes. */
#include "array/arguments.h"
#include "array/files/one_writer.h"
#include "array/files/picture_means.h"
#include "array/unanimous.h"
#include "core/hash.h"
#include "file/numbered_path.h"
#include "file/png_stream.h"
#include <inttypes.h>
#include <math.h>
#include <olympus/formats.h>
#include <string.h>

/* -- what the options ask for ---------------------------------------------------------------------------- */

static oly_status check_matrix(oly_array x)
{
    OLY_TRY(oly_array_has_value(x));
    if (x->type.rank != 2)
        return oly_fail(OLY_SHAPE, "only a matrix can be written as a picture, not %s", oly_type_short(&x->type));
    if (oly_type_size(&x->type) == 0)
        return oly_fail(OLY_SHAPE, "%s has no elements, and its picture no pixels", oly_type_short(&x->type));
    if (oly_dtype_kind(x->type.dtype) == OLY_KIND_COMPLEX)
        return oly_fail(OLY_DTYPE,
                        "%s is complex, and a picture shows one real number for each pixel; take oly_abs of it",
                        oly_type_short(&x->type));
    return OLY_OK;
}

static bool is_automatic(const oly_frame_options *o)
{
    return o->low == 0 && o->high == 0;
}

static oly_status check_range(const oly_frame_options *o)
{
    if (!(isfinite(o->low) && isfinite(o->high) && o->low < o->high))
        return oly_fail(OLY_INVALID, "colours from %g to %g; the first must be less than the second, and both finite",
                        o->low, o->high);
    return OLY_OK;
}

static oly_status check_options(const oly_frame_options *o)
{
    if (!is_automatic(o))
        OLY_TRY(check_range(o));
    if (o->colours && !oly_colours_named(o->colours))
        return oly_fail(OLY_INVALID, "no colours are named \"%.80s\"; there are %s", o->colours, oly_colours_names());
    if (o->origin && strcmp(o->origin, "upper") != 0 && strcmp(o->origin, "lower") != 0)
        return oly_fail(OLY_INVALID,
                        "the origin is \"%.80s\"; it may be upper (row 0 is at the top) or lower (at the bottom)",
                        o->origin);
    if (o->number < 0)
        return oly_fail(OLY_INVALID, "the number of a frame is 0 or more, not %" PRId64, o->number);
    if (o->largest < 0 || o->largest > OLY_FRAME_LIMIT || o->scale < 0 || o->scale > OLY_FRAME_LIMIT)
        return oly_fail(OLY_INVALID, "a picture has 1 to %d pixels along a side, not largest = %d with scale = %d",
                        OLY_FRAME_LIMIT, o->largest, o->scale);
    return OLY_OK;
}

/* The array and the options must be the same on all processes. (The path may differ: processes may have folders of their own.) */
static oly_status note_call(oly_mesh mesh, oly_array x, const oly_frame_options *o)
{
    oly_identity noted;
    double numbers[] = {o->low + 0.0, o->high + 0.0, (double)o->number, o->scale, o->largest, o->bar};
    uint64_t event = oly_hash(oly_hash_mix(30, oly_together_digest_in(mesh, &x->identity)), numbers, sizeof numbers);
    event = oly_hash_text(event, o->colours ? o->colours : "");
    event = oly_hash_text(event, o->origin ? o->origin : "");
    return oly_together_note(mesh, event, oly_current_site(), &noted);
}

static oly_frame frame_of(oly_array x, const oly_frame_options *o)
{
    oly_frame f = {.height = x->type.shape[0],
                   .width = x->type.shape[1],
                   .bar = o->bar,
                   .upwards = o->origin && strcmp(o->origin, "lower") == 0,
                   .colours = oly_colours_named(o->colours ? o->colours : "magma"),
                   .low = o->low,
                   .high = o->high};
    oly_frame_choose_size(&f, o->largest ? o->largest : OLY_FRAME_LARGEST, o->scale);
    return f;
}

/* -- the file -------------------------------------------------------------------------------------------- */

static oly_status encode(void *frame, oly_status (*sink)(void *to, const void *bytes, size_t n), void *to)
{
    const oly_frame *f = frame;
    oly_png_source source = {
        .width = oly_frame_picture_width(f), .height = oly_frame_picture_height(f), .row = oly_frame_row, .context = f};
    return oly_png_encode(&source, sink, to);
}

/* On the process that draws. */
static oly_status draw(const char *path, oly_frame *f, const oly_picture_means *means, bool automatic)
{
    f->mean = means->mean;
    if (automatic) {
        f->low = means->low;
        f->high = means->high;
        oly_frame_automatic_range(&f->low, &f->high);
    }
    return oly_write_whole_file(path, encode, f);
}

/* The processes of the mesh. */
static oly_status average_and_draw(const char *path, oly_array x, const oly_frame_options *o, const oly_one_writer *w)
{
    oly_frame f = frame_of(x, o);
    oly_picture_means means;
    oly_status st = oly_picture_means_of(x, &f, w->agreeing, w->process, &means);
    if (st == OLY_OK && oly_process_index() == w->process)
        st = draw(path, &f, &means, is_automatic(o));
    oly_release(means.mean);
    return oly_unanimous(w->agreeing, st);
}

static oly_status write_path(const char *path, oly_array x, const oly_frame_options *o, const oly_one_writer *w)
{
    OLY_TRY(note_call(w->agreeing, x, o));
    oly_status st = w->takes_part ? average_and_draw(path, x, o, w) : OLY_OK;
    return oly_tell_outsiders(x, w, path, st, "writing the picture");
}

static oly_status write_frame(const char *pattern, oly_array x, const oly_frame_options *o)
{
    oly_one_writer writer;
    char *path;
    if (!pattern)
        return oly_fail(OLY_INVALID, "the path is NULL");
    OLY_TRY(check_matrix(x));
    OLY_TRY(check_options(o));
    OLY_TRY(oly_numbered_path(pattern, o->number, &path));
    oly_status st = oly_one_writer_of(x, &writer);
    if (st == OLY_OK)
        st = write_path(path, x, o, &writer);
    oly_release(path);
    return st;
}

oly_status oly_write_frame_with(const char *path, oly_array x, oly_frame_options options)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_array(x));
    return oly_raise(write_frame(path, x, &options));
}

/* Of an uncommitted array process 0 writes its own copy, and the others need not call. */
static oly_status write_png(const char *path, oly_array x, double low, double high)
{
    oly_one_writer writer;
    oly_frame_options o = {.low = low, .high = high};
    if (!path)
        return oly_fail(OLY_INVALID, "the path is NULL");
    OLY_TRY(check_matrix(x));
    OLY_TRY(check_range(&o));
    OLY_TRY(oly_one_writer_of(x, &writer));
    writer.agreeing = x->sharding->mesh;
    return write_path(path, x, &o, &writer);
}

oly_status(oly_write_png)(const char *path, oly_array x, double low, double high)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_array(x));
    return oly_raise(write_png(path, x, low, high));
}
