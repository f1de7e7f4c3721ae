/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_save_hdf5: a data set to which every process writes its own boxes.
 *
 *   the first process   makes the file's structure by HDF5: the data set, with a place for each of its chunks, and closes the file
 *   every process       asks HDF5 where its chunks are, and writes its elements there
 *
 * So no process waits for another one inside HDF5, where one whose disk is full would leave the others for ever.
 *
 *   a new file    under another name beside its own until everything is on the disk (replace.h)
 *   an old file   in place; a data set or a row that could not be written is removed again */
#include "array/arguments.h"
#include "array/files/parts.h"
#include "array/files/replace.h"
#include "core/hash.h"
#include "core/min_max.h"
#include "file/file.h"
#include "file/hdf5_file.h"
#include "run/execute.h"
#include <fcntl.h>
#include <inttypes.h>
#include <olympus/formats.h>
#include <string.h>

typedef struct saving {
    const oly_crew *crew;
    const char *path, *name;
    oly_array x;
    const oly_hdf5_options *o;
    oly_hdf5_id file;
    oly_hdf5_set set;
    int64_t chunk[OLY_MAX_RANK];
    bool is_new; /* the file */
    bool made;   /* the data set, by this call */
    int64_t row; /* appending: where */
} saving;

/* -- what the data set looks like ------------------------------------------------------------------------------------- */

enum { LARGEST_CHUNK = 1 << 30 /* bytes; HDF5's limit is 4 GiB */, ROWS_OF_NUMBERS = 512 };

/* The chunk: as given, or the largest shard, with the first dimensions halved while it is too large. */
static oly_status choose_chunk(saving *s)
{
    const oly_type *type = &s->x->type;
    int64_t *chunk = s->chunk, bytes = (int64_t)oly_dtype_size(type->dtype);
    if (s->o->append)
        *chunk++ = type->rank == 0 ? ROWS_OF_NUMBERS : 1;
    oly_layout l = oly_layout_canonical(s->x->sharding, type->rank, type->shape);
    for (int d = 0; d < type->rank; d++) {
        int64_t parts = l.split[d].parts, largest = (type->shape[d] + parts - 1) / parts;
        chunk[d] = oly_larger(1, s->o->chunks ? s->o->chunks[d] : largest);
        if (s->o->chunks && s->o->chunks[d] < 1)
            return oly_fail(OLY_INVALID, "a chunk has at least one element along each dimension, not %" PRId64,
                            s->o->chunks[d]);
        if (!s->o->append)
            chunk[d] = oly_larger(1, oly_smaller(chunk[d], type->shape[d]));
        bytes *= chunk[d];
    }
    for (int d = 0; d < type->rank && bytes > LARGEST_CHUNK; d++)
        while (bytes > LARGEST_CHUNK && chunk[d] > 1) {
            bytes = bytes / chunk[d] * ((chunk[d] + 1) / 2);
            chunk[d] = (chunk[d] + 1) / 2;
        }
    return OLY_OK;
}

/* A name has no empty part, and no dots for one. */
static oly_status check_name(const char *name)
{
    if (!name || !*name || strlen(name) > 1000)
        return oly_fail(OLY_INVALID, "the name of the data set is %s", !name ? "NULL" : *name ? "too long" : "empty");
    for (const char *part = name + (*name == '/'); part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t n = strcspn(part, "/");
        if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.'))
            return oly_fail(OLY_INVALID, "\"%.200s\" is no name of a data set: write GROUP/NAME", name);
    }
    return OLY_OK;
}

static oly_status check(saving *s)
{
    if (!s->path)
        return oly_fail(OLY_INVALID, "the path is NULL");
    OLY_TRY(oly_hdf5_need());
    OLY_TRY(check_name(s->name));
    oly_dtype dtype = s->x->type.dtype;
    if (dtype == OLY_FLOAT8_E4M3FN || dtype == OLY_FLOAT8_E5M2)
        return oly_fail(OLY_DTYPE, "HDF5 has no numbers of the type of %s; save oly_astype(x, OLY_FLOAT16)",
                        oly_type_short(&s->x->type));
    if (s->o->append && s->x->type.rank == OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE, "%s has no room for a dimension of time: %d dimensions are the most",
                        oly_type_short(&s->x->type), OLY_MAX_RANK);
    if (s->o->rows < 0 || (s->o->rows > 0 && !s->o->append))
        return oly_fail(OLY_INVALID, ".rows = %" PRId64 " says how many rows to keep when appending", s->o->rows);
    return choose_chunk(s);
}

/* -- making it -------------------------------------------------------------------------------------------------------- */

static void describe(saving *s, oly_hdf5_set *d)
{
    const oly_type *type = &s->x->type;
    bool append = s->o->append;
    *d = (oly_hdf5_set){
        .id = -1, .path = s->path, .name = s->name, .dtype = type->dtype, .rank = type->rank + append, .grows = append};
    memcpy(d->shape + append, type->shape, sizeof type->shape[0] * (size_t)type->rank);
    if (append)
        d->shape[0] = s->row + 1;
}

static bool same_shape(const oly_hdf5_set *a, const oly_hdf5_set *b, int from)
{
    return a->rank == b->rank && a->dtype == b->dtype &&
           memcmp(a->shape + from, b->shape + from, sizeof a->shape[0] * (size_t)(a->rank - from)) == 0;
}

/* One more row of an open data set. */
static oly_status add_row(saving *s, const oly_hdf5_set *wanted)
{
    if (!s->set.grows || !s->set.plain || !same_shape(&s->set, wanted, 1))
        return oly_fail(OLY_SHAPE, "cannot append %s to \"%s\" of %s: it is there, and %s", oly_type_short(&s->x->type),
                        s->name, s->path,
                        !s->set.grows   ? "does not grow"
                        : !s->set.plain ? "compressed, or in another byte order"
                                        : "its rows have another shape or type");
    s->row = s->o->rows > 0 ? s->o->rows : s->set.shape[0];
    if (s->row > s->set.shape[0])
        return oly_fail(OLY_INVALID, "\"%s\" of %s has %" PRId64 " rows, and .rows = %" PRId64 " are to be kept",
                        s->name, s->path, s->set.shape[0], s->o->rows);
    return oly_hdf5_set_resize(&s->set, s->row + 1);
}

/* Opens, extends or makes the data set; by the first process. */
static oly_status take_set(saving *s)
{
    bool there = false;
    oly_hdf5_set wanted;
    if (!s->is_new)
        OLY_TRY(oly_hdf5_look(s->file, s->path, s->name, &there));
    if (there) {
        oly_status st = oly_hdf5_set_open(s->file, s->path, s->name, &s->set);
        describe(s, &wanted);
        if (s->o->append)
            return st == OLY_OK ? add_row(s, &wanted) : st;
        if (st == OLY_OK && s->set.plain && same_shape(&s->set, &wanted, 0))
            return OLY_OK;
        oly_drop_message(); /* another one takes its place */
        oly_hdf5_set_close(&s->set);
    }
    if (s->o->rows > 0)
        return oly_fail(OLY_INVALID, "%s has no data set named \"%s\" of which .rows = %" PRId64 " could be kept",
                        s->path, s->name, s->o->rows);
    s->row = 0;
    describe(s, &s->set);
    bool chunked = s->set.grows || (s->set.rank > 0 && oly_type_size(&s->x->type) > 0);
    oly_status st = oly_hdf5_set_make(s->file, chunked ? s->chunk : NULL, &s->set);
    s->made = st == OLY_OK;
    return st;
}

/* -- filling it ------------------------------------------------------------------------------------------------------- */

/* The elements of the data set from `lo` on, in memory that holds those of `held`. */
static oly_status write_blocks(const saving *s, int file, const oly_box *held, const void *memory)
{
    int rank = held->rank;
    oly_box left = *held; /* the block of its first element comes next; then those to its right, and so on */
    int64_t at[OLY_MAX_RANK];
    memcpy(at, held->lo, sizeof at);
    for (;;) {
        oly_hdf5_block block;
        OLY_TRY(oly_hdf5_place(&s->set, at, &block));
        oly_file_array to = {
            .file = file, .path = s->path, .offset = block.offset, .dtype = s->set.dtype, .rank = rank};
        memcpy(to.shape, block.shape, sizeof to.shape);
        oly_box part = {.rank = rank}, all = *held;
        for (int d = 0; d < rank; d++) {
            part.lo[d] = at[d] - block.start[d];
            part.hi[d] = oly_smaller(held->hi[d], block.start[d] + block.shape[d]) - block.start[d];
            all.lo[d] -= block.start[d];
            all.hi[d] -= block.start[d];
        }
        OLY_TRY(oly_file_write_box(&to, &part, &all, memory));
        int d = rank - 1;
        for (; d >= 0; d--) {
            at[d] = block.start[d] + block.shape[d];
            if (at[d] < left.hi[d])
                break;
            at[d] = left.lo[d];
        }
        if (d < 0)
            return OLY_OK;
    }
}

static oly_status write_shard(const saving *s, int file, int shard)
{
    int position, append = s->o->append;
    oly_box box = oly_array_box(s->x, shard, &position), held = {.rank = box.rank + append};
    size_t bytes = (size_t)oly_box_count(&box) * oly_dtype_size(s->x->type.dtype);
    void *host = NULL;
    if (bytes == 0)
        return OLY_OK;
    held.lo[0] = s->row;
    held.hi[0] = s->row + 1;
    memcpy(held.lo + append, box.lo, sizeof box.lo[0] * (size_t)box.rank);
    memcpy(held.hi + append, box.hi, sizeof box.hi[0] * (size_t)box.rank);
    OLY_TRY(oly_buffer_map(s->x->shard[shard], OLY_ACCESS_READ, bytes, &host));
    oly_status st = write_blocks(s, file, &held, host);
    oly_status unmapped = oly_buffer_unmap(s->x->shard[shard], OLY_ACCESS_READ, bytes, host);
    return st == OLY_OK ? unmapped : st;
}

static oly_status write_shards(const saving *s, int file)
{
    for (int shard = 0; shard < s->x->n_shards; shard++)
        if (oly_parts_writes(s->x, shard))
            OLY_TRY(write_shard(s, file, shard));
    return OLY_OK;
}

/* Opens the file that the first process has made, asks where the chunks are, and writes. */
static oly_status fill(saving *s, const char *actual, int file)
{
    oly_array_wait(s->x);
    OLY_TRY(oly_run_refused());
    OLY_TRY(oly_hdf5_open(actual, s->path, false, &s->file));
    oly_status st = oly_hdf5_set_open(s->file, s->path, s->name, &s->set);
    if (st == OLY_OK)
        st = write_shards(s, file);
    oly_hdf5_set_close(&s->set);
    oly_status closed = oly_hdf5_close(s->file, s->path);
    s->file = -1;
    return st == OLY_OK ? closed : st;
}

/* -- the file --------------------------------------------------------------------------------------------------------- */

/* Bytes that a new data set, or a row, takes, with its last chunks in whole. */
static int64_t bytes_wanted(const saving *s)
{
    const oly_type *type = &s->x->type;
    int append = s->o->append;
    int64_t bytes = (int64_t)oly_dtype_size(type->dtype) * (append ? s->chunk[0] : 1);
    for (int d = 0; d < type->rank; d++) {
        int64_t chunk = s->chunk[d + append];
        bytes *= (type->shape[d] + chunk - 1) / chunk * chunk;
    }
    return bytes;
}

/* Is there room behind the file for the elements, and on the disk for what HDF5 itself writes? HDF5 1.10 crashes at the program's end after a
 * close that failed, so it is asked before. */
static oly_status check_room(const saving *s, int file)
{
    static const char zeros[65536];
    oly_file_facts facts;
    int looked = oly_storage_get()->fstat(file, &facts);
    if (looked < 0)
        return oly_file_fail("write", s->path, looked);
    oly_status st = oly_file_write(file, s->path, zeros, sizeof zeros, facts.size + bytes_wanted(s));
    oly_status cut = oly_file_truncate(file, s->path, facts.size);
    return st == OLY_OK ? cut : st;
}

/* By the first process: the structure of the file. */
static oly_status make_structure(saving *s, const char *actual, int file)
{
    OLY_TRY(check_room(s, file));
    OLY_TRY(s->is_new ? oly_hdf5_create(actual, s->path, &s->file) : oly_hdf5_open(actual, s->path, true, &s->file));
    oly_status st = take_set(s);
    oly_hdf5_set_close(&s->set);
    oly_status closed = oly_hdf5_close(s->file, s->path);
    s->file = -1;
    return st == OLY_OK ? closed : st;
}

/* After a failure in a file that was there: as many rows as before, or no data set. By the first process; the message stays. */
static void undo(saving *s)
{
    if (s->is_new || oly_hdf5_open(s->path, s->path, true, &s->file) != OLY_OK)
        return;
    if (s->made)
        oly_hdf5_remove(s->file, s->name);
    else if (s->o->append && oly_hdf5_set_open(s->file, s->path, s->name, &s->set) == OLY_OK)
        oly_hdf5_set_resize(&s->set, s->row);
    oly_hdf5_set_close(&s->set);
    oly_hdf5_close(s->file, s->path);
}

/* actual: the path under which it is written, which `file` is open on. The same status on all. */
static oly_status write_file(saving *s, const char *actual, int file)
{
    const oly_crew *crew = s->crew;
    int64_t *rows = oly_malloc(sizeof *rows * (size_t)crew->n);
    s->file = s->set.id = -1;
    oly_status st = rows ? OLY_OK : oly_out_of_memory(sizeof *rows * (size_t)crew->n, "writing a file");
    if (st == OLY_OK && oly_crew_leads(crew))
        st = make_structure(s, actual, file);
    bool changed = st == OLY_OK;
    st = oly_crew_agree_on(crew, st, 1, &s->row, rows ? rows : &s->row);
    if (st == OLY_OK) {
        s->row = rows[0];
        st = oly_crew_agree(crew, oly_type_size(&s->x->type) > 0 ? fill(s, actual, file) : OLY_OK);
    }
    oly_release(rows);
    if (st != OLY_OK && changed && oly_crew_leads(crew))
        undo(s);
    return st;
}

/* In place. */
static oly_status change_file(saving *s)
{
    int file = oly_storage_get()->open(s->path, O_RDWR, 0);
    oly_status st = oly_crew_agree(s->crew, file < 0 ? oly_file_fail("write", s->path, file) : OLY_OK);
    if (st == OLY_OK)
        st = write_file(s, s->path, file);
    oly_status synced = st == OLY_OK ? oly_file_sync(file, s->path) : OLY_OK;
    oly_status closed = oly_file_close(file, s->path);
    return st != OLY_OK ? st : oly_crew_agree(s->crew, synced != OLY_OK ? synced : closed);
}

static uint64_t arguments_of(const saving *s)
{
    const oly_type *type = &s->x->type;
    uint64_t h = oly_hash_text(oly_hash_text(35, s->path ? s->path : ""), s->name ? s->name : "");
    h = oly_hash(h, type->shape, sizeof type->shape[0] * (size_t)type->rank);
    h = oly_hash(h, s->chunk, sizeof s->chunk);
    h = oly_hash_mix(h, (uint64_t)s->o->rows * 8 + s->o->append * 2 + s->o->fresh);
    h = oly_hash_mix(h, oly_together_digest_in(s->x->sharding->mesh, &s->x->identity));
    return oly_hash_mix(h, type->dtype);
}

/* The first member says whether there is a file. */
static oly_status decide(saving *s, oly_status mine)
{
    bool exists = false;
    if (mine == OLY_OK)
        mine = oly_file_may_replace(s->path, &exists);
    int64_t number = !exists || s->o->fresh, *all = oly_malloc(sizeof *all * (size_t)s->crew->n);
    if (!all && mine == OLY_OK)
        mine = oly_out_of_memory(sizeof *all * (size_t)s->crew->n, "writing a file");
    oly_status st = oly_crew_agree_on(s->crew, mine, 1, &number, all ? all : &number);
    s->is_new = st == OLY_OK && all[0];
    oly_release(all);
    return st;
}

static oly_status save_members(saving *s, oly_status mine)
{
    oly_new_file f;
    if (mine == OLY_OK)
        mine = check(s);
    uint64_t arguments = arguments_of(s);
    OLY_TRY(oly_crew_agree_same(s->crew, mine, arguments));
    OLY_TRY(decide(s, OLY_OK));
    if (!s->is_new)
        return change_file(s);
    OLY_TRY(oly_replace_begin(s->crew, OLY_OK, arguments, s->path, 0, &f));
    return oly_replace_end(s->crew, write_file(s, f.temporary, f.file), &f);
}

oly_status oly_save_hdf5_with(const char *path, const char *name, oly_array x, oly_hdf5_options options)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_array(x));
    oly_status st = oly_files_need_no_trace();
    if (st == OLY_OK)
        st = oly_parts_check(x);
    if (st != OLY_OK)
        return oly_raise(st);
    oly_crew crew;
    saving s = {.crew = &crew, .path = path, .name = name, .x = x, .o = &options};
    st = oly_crew_begin(x->sharding->mesh, 35, &crew);
    if (crew.me >= 0)
        st = save_members(&s, st);
    st = oly_crew_tell(&crew, st, NULL, 0);
    oly_crew_end(&crew);
    return oly_raise(st);
}
