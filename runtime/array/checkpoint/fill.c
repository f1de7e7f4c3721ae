/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading an array of a checkpoint: each device's box is filled from the files of the parts that it meets, chunk by chunk. Every chunk
 * that is read is checked; all ranks together read all of them. Nothing is sent. See checkpoint.h.
 *
 *      parts in files            a device's box              the file of part 2
 *      ┌────┬────┐                                           header  row 0 ....  row 1 ....
 *      │ 0  │ 1  │                 ┌────┐                    ├── chunk 0 ──┼── chunk 1 ──┼─ ...
 *      ├────┼────┤                 │░░░░│                              ^^^      ^^^    rows of the box: chunks 0 and 1
 *      │ 2 ░│░3  │                 └────┘
 *      └────┴────┘                                                                                                     */
#include "array/checkpoint/fill.h"
#include "device/platform.h"
#include "file/file.h"
#include "file/npy_header.h"
#include <inttypes.h>
#include <string.h>

/* -- a file and its chunks ----------------------------------------------------------------------------------------------- */

typedef struct part_file {
    char path[OLY_CHECKPOINT_PATH];
    const oly_manifest_part *part;
    int64_t chunk;
    int file;
    char *bytes;    /* one chunk */
    int64_t loaded; /* its number; -1: none */
} part_file;

static size_t chunk_bytes(const part_file *f, int64_t c)
{
    int64_t left = f->part->bytes - c * f->chunk;
    return (size_t)(left < f->chunk ? left : f->chunk);
}

static oly_status read_chunk(part_file *f, int64_t c, char *to)
{
    size_t n = chunk_bytes(f, c);
    OLY_TRY(oly_file_read(f->file, f->path, to, n, c * f->chunk));
    if (oly_checksum(0, to, n) == f->part->checksum[c])
        return OLY_OK;
    return oly_fail(OLY_IO,
                    "%s is damaged: bytes %" PRId64 " to %" PRId64 " have another checksum than the manifest has",
                    f->path, c * f->chunk, c * f->chunk + (int64_t)n - 1);
}

/* Copies n bytes of the file; a whole chunk goes to its place at once. */
static oly_status read_bytes(part_file *f, int64_t from, char *to, size_t n)
{
    while (n > 0) {
        int64_t c = from / f->chunk;
        size_t begin = (size_t)(from % f->chunk), whole = chunk_bytes(f, c);
        size_t taken = n < whole - begin ? n : whole - begin;
        if (taken == whole && f->loaded != c) {
            OLY_TRY(read_chunk(f, c, to));
        } else {
            oly_status st = f->loaded == c ? OLY_OK : (f->loaded = -1, read_chunk(f, c, f->bytes));
            if (st != OLY_OK)
                return st;
            f->loaded = c;
            memcpy(to, f->bytes + begin, taken);
        }
        from += (int64_t)taken;
        to += taken;
        n -= taken;
    }
    return OLY_OK;
}

/* The header must say what the manifest says; *data: where the elements begin. */
static oly_status check_header(part_file *f, const oly_manifest_array *saved, int64_t *data)
{
    char bytes[OLY_NPY_WRITTEN_MOST];
    oly_npy_header h = {0};
    size_t n = 0, have = chunk_bytes(f, 0);
    have = have < sizeof bytes ? have : sizeof bytes;
    OLY_TRY(read_bytes(f, 0, bytes, have));
    OLY_TRY(oly_npy_header_length(bytes, have, f->path, &n));
    bool good = n <= have;
    if (good)
        OLY_TRY(oly_npy_header_read(bytes, n, f->path, &h));
    good = good && h.dtype == saved->dtype && !h.fortran && !h.swapped && h.rank == saved->rank &&
           h.data + oly_npy_bytes(&h) == f->part->bytes;
    for (int d = 0; d < saved->rank && good; d++)
        good = h.shape[d] == f->part->extent[d];
    *data = h.data;
    return good ? OLY_OK : oly_fail(OLY_IO, "%s does not hold what the manifest says", f->path);
}

/* -- from a part to a box ------------------------------------------------------------------------------------------------ */

/* The intersection of a part and a device's box; both are stored row-major. */
typedef struct overlap {
    int rank;
    int64_t extent[OLY_MAX_RANK];
    int64_t from_stride[OLY_MAX_RANK], to_stride[OLY_MAX_RANK]; /* elements */
    int64_t from, to;                                           /* the first element */
} overlap;

static bool meet(const oly_manifest_part *part, const oly_box *box, overlap *o)
{
    int64_t from = 1, to = 1;
    *o = (overlap){.rank = box->rank};
    for (int d = box->rank - 1; d >= 0; d--) {
        int64_t lo = part->start[d] > box->lo[d] ? part->start[d] : box->lo[d];
        int64_t end = part->start[d] + part->extent[d], hi = end < box->hi[d] ? end : box->hi[d];
        if (hi <= lo)
            return false;
        o->extent[d] = hi - lo;
        o->from += (lo - part->start[d]) * from;
        o->to += (lo - box->lo[d]) * to;
        o->from_stride[d] = from;
        o->to_stride[d] = to;
        from *= part->extent[d];
        to *= box->hi[d] - box->lo[d];
    }
    return true;
}

/* Trailing dimensions that are consecutive in both become one run; *run: its elements. */
static int outer_dimensions(const overlap *o, int64_t *run)
{
    int d = o->rank;
    *run = 1;
    while (d > 0 && o->from_stride[d - 1] == *run && o->to_stride[d - 1] == *run)
        *run *= o->extent[--d];
    return d;
}

static oly_status copy_overlap(part_file *f, const overlap *o, int64_t data, size_t element, char *to)
{
    int64_t run, index[OLY_MAX_RANK] = {0}, from_at = o->from, to_at = o->to;
    int outer = outer_dimensions(o, &run);
    for (;;) {
        OLY_TRY(read_bytes(f, data + from_at * (int64_t)element, to + to_at * (int64_t)element, (size_t)run * element));
        int d = outer - 1;
        for (; d >= 0; d--) {
            from_at += o->from_stride[d];
            to_at += o->to_stride[d];
            if (++index[d] < o->extent[d])
                break;
            from_at -= o->from_stride[d] * o->extent[d];
            to_at -= o->to_stride[d] * o->extent[d];
            index[d] = 0;
        }
        if (d < 0)
            return OLY_OK;
    }
}

static oly_status open_part(part_file *f)
{
    oly_file_facts facts;
    int status = oly_storage_get()->lstat(f->path, &facts);
    if (status < 0)
        return oly_file_fail("read", f->path, status);
    if (!facts.regular)
        return oly_fail(OLY_IO, "%s is no regular file", f->path);
    OLY_TRY(oly_file_open(f->path, &f->file, &facts));
    if (facts.size == f->part->bytes)
        return OLY_OK;
    oly_storage_get()->close(f->file);
    return oly_fail(OLY_IO, "%s has %" PRId64 " bytes, and the manifest says %" PRId64 ": it is %s", f->path,
                    facts.size, f->part->bytes, facts.size < f->part->bytes ? "truncated" : "another file");
}

static oly_status read_part(const oly_fill *fill, const oly_manifest_part *part, const overlap *o, char *to)
{
    part_file f = {.part = part, .chunk = fill->manifest->chunk, .bytes = fill->chunk, .loaded = -1};
    int64_t data;
    OLY_TRY(oly_checkpoint_file(fill->path, part->file, f.path));
    OLY_TRY(open_part(&f));
    oly_status st = check_header(&f, fill->saved, &data);
    if (st == OLY_OK)
        st = copy_overlap(&f, o, data, (size_t)oly_manifest_element(fill->saved->dtype), to);
    oly_storage_get()->close(f.file);
    return st;
}

static oly_status fill_box(const oly_fill *fill, const oly_box *box, char *to)
{
    for (int k = 0; k < fill->saved->n_parts; k++) {
        overlap o;
        if (meet(&fill->saved->part[k], box, &o))
            OLY_TRY(read_part(fill, &fill->saved->part[k], &o, to));
    }
    return OLY_OK;
}

/* -- all boxes of this process ------------------------------------------------------------------------------------------- */

static oly_status fill_shard(const oly_fill *fill, const oly_layout *l, const int *positions, int s)
{
    oly_box box = oly_layout_shard(l, positions[s]);
    size_t bytes = (size_t)oly_box_count(&box) * (size_t)oly_manifest_element(fill->saved->dtype);
    oly_buffer *b = fill->shard[s] = oly_buffer_take(oly_mesh_local_device(l->mesh, s), bytes);
    if (!b)
        return oly_buffer_fail(bytes, "an array of a checkpoint");
    if (bytes == 0)
        return OLY_OK;
    for (int j = 0; j < s; j++) {
        oly_box other = oly_layout_shard(l, positions[j]);
        if (oly_box_equal(&other, &box))
            return oly_buffer_copy(b, fill->shard[j], bytes);
    }
    void *host;
    OLY_TRY(oly_buffer_map(b, OLY_ACCESS_WRITE, bytes, &host));
    oly_status st = fill_box(fill, &box, host), unmapped = oly_buffer_unmap(b, OLY_ACCESS_WRITE, bytes, host);
    return st != OLY_OK ? st : unmapped;
}

oly_status oly_fill_read(oly_fill *fill)
{
    const int *positions;
    const oly_manifest_array *a = fill->saved;
    OLY_TRY(oly_sharding_check_rank(fill->sharding, a->rank));
    int n = oly_mesh_local_positions(fill->sharding->mesh, &positions);
    fill->shard = oly_calloc((size_t)n + 1, sizeof(oly_buffer *));
    fill->chunk = oly_malloc((size_t)fill->manifest->chunk);
    oly_status st =
        fill->shard && fill->chunk ? OLY_OK : oly_out_of_memory((size_t)fill->manifest->chunk, "reading a checkpoint");
    oly_layout l = oly_layout_canonical(fill->sharding, a->rank, a->shape);
    fill->n = fill->shard ? n : 0;
    for (int s = 0; s < n && st == OLY_OK; s++)
        st = fill_shard(fill, &l, positions, s);
    oly_release(fill->chunk);
    fill->chunk = NULL;
    return st;
}

void oly_fill_drop(oly_fill *fill)
{
    if (fill->shard)
        oly_buffers_drop(fill->n, fill->shard);
    oly_release(fill->shard);
    fill->shard = NULL;
    fill->n = 0;
}

/* -- the array ----------------------------------------------------------------------------------------------------------- */

/* The buffer of shard s as an array on its device. */
static oly_array part_array(oly_fill *fill, const oly_layout *l, int position, int s)
{
    oly_box box = oly_layout_shard(l, position);
    oly_type type = {.dtype = fill->saved->dtype, .rank = box.rank};
    for (int d = 0; d < box.rank; d++)
        type.shape[d] = box.hi[d] - box.lo[d];
    oly_sharding one = (oly_single_device)(oly_get_device(oly_mesh_device_id(l->mesh, position)));
    oly_array x = one ? oly_array_new(&type, one, true, 1) : NULL;
    if (x) {
        x->shard[0] = fill->shard[s];
        fill->shard[s] = NULL;
    }
    return x;
}

static oly_array committed(oly_fill *fill)
{
    const int *positions;
    const oly_manifest_array *a = fill->saved;
    int n = oly_mesh_local_positions(fill->sharding->mesh, &positions);
    oly_layout l = oly_layout_canonical(fill->sharding, a->rank, a->shape);
    oly_array whole = NULL, *parts = oly_calloc((size_t)n + 1, sizeof *parts);
    bool good = parts != NULL;
    oly_scope_open();
    for (int s = 0; s < n && good; s++)
        good = (parts[s] = part_array(fill, &l, positions[s], s)) != NULL;
    if (good)
        whole = (oly_from_shards)(fill->sharding, a->dtype, a->rank, a->shape, n, parts);
    oly_keep(whole);
    oly_scope_close();
    oly_release(parts);
    return whole;
}

/* As from host memory: the same on every process. */
static oly_array uncommitted(oly_fill *fill)
{
    oly_type type = {.dtype = fill->saved->dtype, .rank = fill->saved->rank};
    memcpy(type.shape, fill->saved->shape, sizeof type.shape);
    oly_array x = oly_array_new(&type, fill->sharding, false, fill->n);
    for (int s = 0; x && s < fill->n; s++) {
        x->shard[s] = fill->shard[s];
        fill->shard[s] = NULL;
    }
    return x;
}

oly_status oly_fill_array(oly_fill *fill, oly_array *x)
{
    unsigned before = oly_raised_count();
    *x = fill->sharding->mesh->everywhere ? uncommitted(fill) : committed(fill);
    if (*x)
        return OLY_OK;
    oly_status raised = oly_raised_since(before);
    return raised != OLY_OK ? raised : oly_out_of_memory(sizeof **x, "an array of a checkpoint");
}
