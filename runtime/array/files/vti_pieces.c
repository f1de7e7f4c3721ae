/* SPDX-License-Identifier: BSD-3-Clause */
/* A .vti for each shard, and the .pvti that names them. See vti_save.h.
 *
 * Neighbouring pieces of points share the points between them, so that the cells there belong to one of them: a piece has the
 * points of its shard, and the first of the next one along each dimension. Whoever holds these writes them into the piece's file.
 *
 *      shards      0 1 2 | 3 4 5 | 6 7          pieces      0 1 2 3 | 3 4 5 6 | 6 7
 *
 * The process of a shard makes its file, under a temporary name, and all write what they have of it. When everything is on the disk, the
 * files take their names, the .pvti last. */
#include "array/files/one_writer.h"
#include "array/files/parts.h"
#include "array/files/vti_save.h"
#include "core/hash.h"
#include "core/min_max.h"
#include "file/file.h"
#include "file/leftovers.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct piece {
    oly_box box; /* of points or cells: what the file holds */
    int member;  /* of the crew: who makes the file */
    bool made;   /* by this process, under its temporary name; renamed: under its own */
    bool renamed;
    char *temporary, *name; /* owned */
    size_t head;            /* bytes before its data; and these bytes */
    char *head_text;        /* owned; of those that this process makes */
    int64_t data;
} piece;

typedef struct pieces {
    const oly_crew *crew;
    const oly_grid *g;
    const char *path;
    int n;
    piece *piece; /* owned */
} pieces;

/* -- which pieces there are --------------------------------------------------------------------------------------------- */

static int by_box(const void *a, const void *b)
{
    const piece *p = a, *q = b;
    for (int d = 0; d < p->box.rank; d++)
        if (p->box.lo[d] != q->box.lo[d])
            return p->box.lo[d] < q->box.lo[d] ? -1 : 1;
    return p->member - q->member;
}

static int member_of(const oly_crew *crew, int process)
{
    for (int m = 0; crew->process && m < crew->n; m++)
        if (crew->process[m] == process)
            return m;
    return 0;
}

/* The box of a shard of the first array on the grid, without the dimension of its components. */
static oly_box grid_box(const oly_grid *g, const oly_layout *l, int position)
{
    oly_box box = oly_layout_box(l, position);
    box.rank = g->vti.rank;
    return box;
}

/* One for each different box that has elements, in the order of the grid. */
static oly_status find_pieces(pieces *p)
{
    const oly_grid *g = p->g;
    oly_array x = g->arrays[0];
    oly_mesh mesh = x->sharding->mesh;
    p->piece = oly_calloc((size_t)mesh->n_devices, sizeof *p->piece);
    if (!p->piece)
        return oly_out_of_memory((size_t)mesh->n_devices * sizeof *p->piece, "the pieces of a file");
    oly_layout l = oly_layout_canonical(x->sharding, x->type.rank, x->type.shape);
    for (int position = 0; position < mesh->n_devices; position++) {
        oly_box box = grid_box(g, &l, position);
        int process = mesh->everywhere ? 0 : oly_mesh_process_of(oly_mesh_device_id(mesh, position));
        if (oly_box_count(&box) > 0)
            p->piece[p->n++] = (piece){.box = box, .member = member_of(p->crew, process)};
    }
    qsort(p->piece, (size_t)p->n, sizeof *p->piece, by_box);
    int kept = 0;
    for (int k = 0; k < p->n; k++)
        if (kept == 0 || !oly_box_equal(&p->piece[kept - 1].box, &p->piece[k].box))
            p->piece[kept++] = p->piece[k];
    p->n = kept;
    return OLY_OK;
}

/* "folder/wave.pvti": "folder/wave_3.vti", and a name for it while it is written. */
static oly_status name_piece(const pieces *p, int k, uint64_t number)
{
    oly_text name = {0};
    int length = (int)(strlen(p->path) - strlen(".pvti"));
    oly_text_add(&name, "%.*s_%d.vti", length, p->path, k);
    size_t room = name.length + 32;
    p->piece[k].name = name.failed ? NULL : oly_strdup(oly_text_chars(&name));
    p->piece[k].temporary = p->piece[k].name ? oly_malloc(room) : NULL;
    oly_text_free(&name);
    if (p->piece[k].temporary)
        oly_temporary_name(p->piece[k].temporary, room, p->piece[k].name, number);
    return p->piece[k].name && p->piece[k].temporary ? OLY_OK : oly_out_of_memory(strlen(p->path), "a path");
}

/* Adds the neighbours' first points. False: its points are all in others then. */
static bool overlap(const oly_vti *v, piece *p)
{
    bool needed = true;
    for (int d = 0; d < v->rank && !v->cells; d++) {
        p->box.hi[d] = oly_smaller(p->box.hi[d] + 1, v->shape[d]);
        needed = needed && (v->shape[d] == 1 || p->box.hi[d] - p->box.lo[d] > 1);
    }
    return needed;
}

static void overlap_all(pieces *p)
{
    int kept = 0;
    for (int k = 0; k < p->n; k++)
        if (overlap(&p->g->vti, &p->piece[k]))
            p->piece[kept++] = p->piece[k];
    p->n = kept;
}

/* The piece as an image of its own, with fields[] to be placed. */
static oly_vti image_of(const oly_grid *g, const piece *p, oly_vti_field *fields)
{
    oly_vti v = g->vti;
    v.field = fields;
    memcpy(fields, g->vti.field, sizeof *fields * (size_t)g->n);
    for (int d = 0; d < v.rank; d++) {
        v.start[d] = p->box.lo[d];
        v.shape[d] = p->box.hi[d] - p->box.lo[d];
    }
    return v;
}

static oly_status make_head(const oly_grid *g, piece *p, oly_vti_field *fields)
{
    oly_text t = {0};
    oly_vti v = image_of(g, p, fields);
    p->data = oly_vti_place(&v);
    oly_vti_head(&t, &v);
    p->head = t.length;
    p->head_text = t.failed ? NULL : t.chars;
    if (t.failed)
        oly_text_free(&t);
    return p->head_text ? OLY_OK : oly_out_of_memory(p->head, "the header of a file");
}

static oly_status describe(pieces *p, uint64_t number)
{
    oly_vti_field *fields = oly_malloc(sizeof *fields * (size_t)p->g->n);
    if (!fields)
        return oly_out_of_memory(sizeof *fields * (size_t)p->g->n, "the pieces of a file");
    oly_status st = OLY_OK;
    overlap_all(p);
    for (int k = 0; k < p->n && st == OLY_OK; k++) {
        st = name_piece(p, k, number);
        if (st == OLY_OK)
            st = make_head(p->g, &p->piece[k], fields);
    }
    oly_release(fields);
    return st;
}

/* -- writing ------------------------------------------------------------------------------------------------------------ */

static bool is_mine(const pieces *p, int k)
{
    return p->piece[k].member == p->crew->me;
}

static oly_status create(const pieces *p, int k, oly_vti_field *fields)
{
    piece *q = &p->piece[k];
    const char *tail = oly_vti_tail();
    int file;
    bool exists;
    OLY_TRY(oly_file_may_replace(q->name, &exists));
    oly_leftovers_remove(q->name);
    OLY_TRY(oly_file_create(q->temporary, q->name, 0666, &file));
    q->made = true;
    oly_vti v = image_of(p->g, q, fields);
    oly_vti_place(&v);
    oly_status st = oly_file_write(file, q->name, q->head_text, q->head, 0);
    if (st == OLY_OK)
        st = oly_vti_write_counts(file, q->name, &v, (int64_t)q->head);
    if (st == OLY_OK)
        st = oly_file_write(file, q->name, tail, strlen(tail), (int64_t)q->head + q->data);
    oly_status closed = oly_file_close(file, q->name);
    return st == OLY_OK ? closed : st;
}

static oly_status create_mine(const pieces *p)
{
    bool exists;
    oly_vti_field *fields = oly_malloc(sizeof *fields * (size_t)p->g->n);
    if (!fields)
        return oly_out_of_memory(sizeof *fields * (size_t)p->g->n, "the pieces of a file");
    oly_status st = oly_file_may_replace(p->path, &exists);
    for (int k = 0; k < p->n && st == OLY_OK; k++)
        if (is_mine(p, k))
            st = create(p, k, fields);
    oly_release(fields);
    return st;
}

/* What shard s of the array has of the piece. */
static oly_status write_part(const piece *q, const oly_vti *v, int k, oly_array x, int s, int file)
{
    int position;
    void *host;
    oly_box held = oly_array_box(x, s, &position), box = held;
    for (int d = 0; d < v->rank; d++) {
        box.lo[d] = oly_larger(box.lo[d], q->box.lo[d]) - q->box.lo[d];
        box.hi[d] = oly_smaller(box.hi[d], q->box.hi[d]) - q->box.lo[d];
        held.lo[d] -= q->box.lo[d];
        held.hi[d] -= q->box.lo[d];
        if (box.hi[d] <= box.lo[d])
            return OLY_OK;
    }
    oly_file_array to = {.file = file,
                         .path = q->name,
                         .offset = (int64_t)q->head + v->field[k].offset,
                         .dtype = x->type.dtype,
                         .rank = x->type.rank};
    memcpy(to.shape, x->type.shape, sizeof to.shape);
    memcpy(to.shape, v->shape, sizeof v->shape[0] * (size_t)v->rank);
    size_t bytes = (size_t)oly_box_count(&held) * oly_dtype_size(x->type.dtype);
    OLY_TRY(oly_buffer_map(x->shard[s], OLY_ACCESS_READ, bytes, &host));
    oly_status st = oly_file_write_box(&to, &box, &held, host);
    oly_status unmapped = oly_buffer_unmap(x->shard[s], OLY_ACCESS_READ, bytes, host);
    return st == OLY_OK ? unmapped : st;
}

/* Does this process write anything of the piece? */
static bool has_part(const pieces *p, const piece *q)
{
    for (int k = 0; k < p->g->n; k++) {
        oly_array x = p->g->arrays[k];
        for (int s = 0; s < x->n_shards; s++) {
            int position;
            oly_box box = oly_array_box(x, s, &position);
            box.rank = p->g->vti.rank;
            oly_box both = oly_box_intersect(&box, &q->box);
            if (oly_box_count(&both) > 0 && oly_parts_writes(x, s))
                return true;
        }
    }
    return false;
}

static oly_status write_piece(const pieces *p, const piece *q, const oly_vti *v, int file)
{
    for (int k = 0; k < p->g->n; k++) {
        oly_array x = p->g->arrays[k];
        for (int s = 0; s < x->n_shards; s++)
            if (oly_parts_writes(x, s))
                OLY_TRY(write_part(q, v, k, x, s, file));
    }
    return oly_file_sync(file, q->name);
}

static oly_status fill_piece(const pieces *p, const piece *q, oly_vti_field *fields)
{
    oly_vti v = image_of(p->g, q, fields);
    oly_vti_place(&v);
    int file = oly_storage_get()->open(q->temporary, O_RDWR | O_NOFOLLOW, 0);
    if (file < 0)
        return oly_fail(
            OLY_IO,
            "cannot write %s: %s; its rank has begun it, and this one cannot open it: is it on a file system "
            "that all hosts share?",
            q->name, strerror(-file));
    oly_status st = write_piece(p, q, &v, file);
    oly_status closed = oly_file_close(file, q->name);
    return st == OLY_OK ? closed : st;
}

static oly_status fill_all(const pieces *p)
{
    oly_vti_field *fields = oly_malloc(sizeof *fields * (size_t)p->g->n);
    if (!fields)
        return oly_out_of_memory(sizeof *fields * (size_t)p->g->n, "the pieces of a file");
    oly_status st = OLY_OK;
    for (int k = 0; k < p->g->n; k++)
        oly_array_wait(p->g->arrays[k]);
    for (int k = 0; k < p->n && st == OLY_OK; k++)
        if (is_mine(p, k) || has_part(p, &p->piece[k]))
            st = fill_piece(p, &p->piece[k], fields);
    oly_release(fields);
    return st;
}

/* -- the end ------------------------------------------------------------------------------------------------------------ */

static oly_status rename_mine(const pieces *p)
{
    for (int k = 0; k < p->n; k++) {
        piece *q = &p->piece[k];
        int renamed = is_mine(p, k) ? oly_storage_get()->rename(q->temporary, q->name) : 0;
        if (renamed < 0)
            return oly_file_fail_to_name(q->temporary, q->name, renamed);
        q->renamed = is_mine(p, k);
    }
    return oly_file_sync_folder_of(p->path);
}

/* After a failure: those that this process has made. */
static void remove_mine(const pieces *p)
{
    for (int k = 0; k < p->n; k++)
        if (p->piece[k].made)
            oly_storage_get()->unlink(p->piece[k].renamed ? p->piece[k].name : p->piece[k].temporary);
}

static oly_status put_index(void *context, oly_status (*sink)(void *to, const void *bytes, size_t n), void *to)
{
    const pieces *p = context;
    oly_text t = {0};
    oly_vti_piece *list = oly_calloc((size_t)p->n, sizeof *list);
    const char *slash = strrchr(p->path, '/');
    size_t folder = slash ? (size_t)(slash - p->path) + 1 : 0;
    for (int k = 0; list && k < p->n; k++) {
        snprintf(list[k].name, sizeof list[k].name, "%s", p->piece[k].name + folder);
        list[k].box = p->piece[k].box;
    }
    if (list)
        oly_pvti_text(&t, &p->g->vti, p->n, list);
    oly_status st = list && !t.failed ? sink(to, t.chars, t.length) : oly_out_of_memory(t.length, "a list of pieces");
    oly_text_free(&t);
    oly_release(list);
    return st;
}

static void forget(pieces *p)
{
    for (int k = 0; p->piece && k < p->n; k++) {
        oly_release(p->piece[k].name);
        oly_release(p->piece[k].temporary);
        oly_release(p->piece[k].head_text);
    }
    oly_release(p->piece);
}

/* Makes, fills and renames; each step when all members have done the one before. */
static oly_status write_all(pieces *p)
{
    const oly_crew *crew = p->crew;
    OLY_TRY(oly_crew_agree(crew, create_mine(p)));
    OLY_TRY(oly_crew_agree(crew, fill_all(p)));
    OLY_TRY(oly_crew_agree(crew, rename_mine(p)));
    return oly_crew_agree(crew, oly_crew_leads(crew) ? oly_write_whole_file(p->path, put_index, p) : OLY_OK);
}

/* The first member's number for temporary names. */
static oly_status agree_on_number(const oly_crew *crew, oly_status mine, uint64_t *number)
{
    static uint64_t made;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *number = oly_hash_mix(oly_hash_mix((uint64_t)now.tv_sec, (uint64_t)now.tv_nsec), ++made + (uint64_t)getpid());
    int64_t own = (int64_t)*number, *all = oly_malloc(sizeof *all * (size_t)crew->n);
    if (!all && mine == OLY_OK)
        mine = oly_out_of_memory(sizeof *all * (size_t)crew->n, "agreeing on a file");
    oly_status st = oly_crew_agree_on(crew, mine, 1, &own, all ? all : &own);
    if (st == OLY_OK && all)
        *number = (uint64_t)all[0];
    oly_release(all);
    return st;
}

oly_status oly_vti_save_pieces(const oly_crew *crew, oly_status mine, uint64_t arguments, const char *path,
                               const oly_grid *g)
{
    pieces p = {.crew = crew, .g = g, .path = path};
    uint64_t number;
    int64_t done = 0;
    OLY_TRY(oly_crew_agree_same(crew, mine, arguments));
    OLY_TRY(agree_on_number(crew, OLY_OK, &number));
    oly_status st = find_pieces(&p);
    if (st == OLY_OK)
        st = describe(&p, number);
    st = oly_crew_agree(crew, st);
    if (st == OLY_OK)
        st = write_all(&p);
    if (st != OLY_OK) { /* nobody returns before all is removed */
        remove_mine(&p);
        int64_t *all = oly_malloc(sizeof *all * (size_t)crew->n);
        if (all)
            oly_crew_gather(crew, 1, &done, all);
        oly_release(all);
    }
    forget(&p);
    return st;
}
