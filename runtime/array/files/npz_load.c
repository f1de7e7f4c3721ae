/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_load_npz, oly_npz_names. Of stored members every process reads its own boxes, and a share of the bytes for the crc; deflated
 * members are streams, which every process unpacks, keeping its own boxes. */
#include "array/arguments.h"
#include "array/files/load.h"
#include "array/files/npy_array.h"
#include "array/files/npz.h"
#include "array/files/parts.h"
#include "core/hash.h"
#include "core/min_max.h"
#include "core/text.h"
#include "device/platform.h"
#include "file/deflated.h"
#include "file/file.h"
#include "file/zip.h"
#include "file/zlib_late.h"
#include <inttypes.h>
#include <olympus/files.h>
#include <string.h>

typedef struct wanted {
    const oly_zip_member *member;
    int64_t begin; /* of its bytes */
    oly_npy_header header;
} wanted;

typedef struct request {
    const char *path;
    int n;
    const char *const *names;
    const oly_sharding *shardings; /* NULL: all uncommitted */
    oly_array *x;                  /* [n] */
    wanted *wanted;                /* [n] */
    oly_zip zip;
} request;

/* -- names ----------------------------------------------------------------------------------------------------------------------- */

/* "a, b, c": names of members without ".npy". */
static void list_names(oly_text *t, const oly_zip *zip)
{
    for (int k = 0; k < zip->n; k++) {
        const char *name = zip->member[k].name;
        size_t n = strlen(name);
        bool npy = n > 4 && strcmp(name + n - 4, ".npy") == 0;
        oly_text_add(t, "%s%.*s", k ? ", " : "", (int)(npy ? n - 4 : n), name);
    }
}

int oly_npz_names(const char *path, char *buffer, size_t size)
{
    OLY_ENTER(-1);
    int file = -1;
    oly_file_facts facts;
    oly_zip zip = {0};
    oly_text t = {0};
    oly_status st = path ? oly_file_open(path, &file, &facts) : oly_fail(OLY_INVALID, "the path is NULL");
    if (st == OLY_OK)
        st = oly_zip_read(file, facts.size, path, &zip);
    oly_file_close(file, path ? path : "");
    if (oly_raise(st) != OLY_OK)
        return -1;
    list_names(&t, &zip);
    oly_zip_free(&zip);
    return oly_text_take(&t, buffer, size);
}

static oly_status not_there(const request *r, const char *name)
{
    oly_text t = {0};
    list_names(&t, &r->zip);
    oly_status st = oly_fail(OLY_INVALID, "%s has no array \"%s\"; it has %.200s", r->path, name,
                             r->zip.n ? oly_text_chars(&t) : "none");
    oly_text_free(&t);
    return st;
}

/* -- what is in the file ----------------------------------------------------------------------------------------------------------- */

/* The header of a deflated member: the beginning of its stream. */
static oly_status read_deflated_header(oly_deflated *s, const request *r, wanted *w)
{
    char prefix[OLY_NPY_PREFIX];
    size_t n = (size_t)oly_smaller(w->member->size, OLY_NPY_PREFIX), length;
    OLY_TRY(oly_deflated_read(s, prefix, n));
    OLY_TRY(oly_npy_header_length(prefix, n, r->path, &length));
    length = (size_t)oly_smaller((int64_t)length, w->member->size);
    char *bytes = oly_malloc(length);
    if (!bytes)
        return oly_out_of_memory(length, "the header of a file");
    memcpy(bytes, prefix, n);
    oly_status st = oly_deflated_read(s, bytes + n, length - n);
    if (st == OLY_OK)
        st = oly_npy_header_read(bytes, length, r->path, &w->header);
    oly_release(bytes);
    if (st == OLY_OK && w->member->size != w->header.data + oly_npy_bytes(&w->header))
        st = oly_fail(OLY_IO, "cannot read %s: %s has %" PRId64 " bytes, and its header says %" PRId64, r->path,
                      w->member->name, w->member->size, w->header.data + oly_npy_bytes(&w->header));
    return st;
}

static oly_status find_array(request *r, int file, int k, uint64_t *hash)
{
    char name[OLY_ZIP_NAME_MOST];
    wanted *w = &r->wanted[k];
    OLY_TRY(oly_npz_member_name(r->names ? r->names[k] : NULL, name));
    w->member = oly_zip_member_named(&r->zip, name);
    if (!w->member)
        w->member = oly_zip_member_named(&r->zip, r->names[k]);
    if (!w->member)
        return not_there(r, r->names[k]);
    OLY_TRY(oly_zip_data(file, &r->zip, w->member, r->path, &w->begin));
    if (w->member->method == OLY_ZIP_STORED)
        return oly_npy_read(file, r->path, w->begin, w->begin + w->member->size, &w->header, hash);
    oly_deflated *stream;
    OLY_TRY(oly_deflated_open(file, r->path, w->begin, w->member->packed, &stream));
    oly_status st = read_deflated_header(stream, r, w);
    oly_deflated_close(stream);
    return st;
}

static oly_status find_arrays(request *r, const oly_shared_file *f, uint64_t *hash)
{
    OLY_TRY(oly_zip_read(f->file, f->facts.size, r->path, &r->zip));
    *hash = r->zip.hash;
    for (int k = 0; k < r->n; k++)
        OLY_TRY(find_array(r, f->file, k, hash));
    return OLY_OK;
}

/* -- reading ------------------------------------------------------------------------------------------------------------------------ */

static oly_status wrong_checksum(const request *r, int k)
{
    return oly_fail(OLY_IO, "cannot read %s: the checksum of %s is not the one that the file says: it is damaged",
                    r->path, r->wanted[k].member->name);
}

/* All of the stream, in pieces, to the boxes of this process. */
static oly_status unpack(oly_deflated *stream, const request *r, int k, const oly_parts_mapped *parts)
{
    const wanted *w = &r->wanted[k];
    oly_file_array a = oly_npy_elements(&w->header, -1, r->path, 0);
    int64_t element = (int64_t)oly_dtype_size(w->header.dtype), n = oly_npy_count(&w->header);
    int64_t room = (1 << 20) / element, piece;
    unsigned char *bytes = oly_malloc(1 << 20), *copy = oly_malloc(1 << 20);
    oly_status st = bytes && copy ? OLY_OK : oly_out_of_memory(1 << 20, "unpacking a file");
    uLong crc = oly_zlib.crc32(0, NULL, 0);
    for (int64_t at = 0; at < w->header.data && st == OLY_OK; at += piece) { /* the header once more */
        piece = oly_smaller(1 << 20, w->header.data - at);
        st = oly_deflated_read(stream, bytes, (size_t)piece);
        crc = st == OLY_OK ? oly_zlib.crc32(crc, bytes, (uInt)piece) : crc;
    }
    for (int64_t first = 0; first < n && st == OLY_OK; first += piece) {
        piece = oly_smaller(room, n - first);
        st = oly_deflated_read(stream, bytes, (size_t)(piece * element));
        crc = st == OLY_OK ? oly_zlib.crc32(crc, bytes, (uInt)(piece * element)) : crc;
        for (int s = 0; s < parts->n && st == OLY_OK; s++)
            if (parts->memory[s]) {
                memcpy(copy, bytes, (size_t)(piece * element)); /* scattering changes it */
                oly_file_scatter(&a, first, piece, copy, &parts->box[s], parts->memory[s]);
            }
    }
    oly_release(bytes);
    oly_release(copy);
    if (st == OLY_OK)
        st = oly_deflated_end(stream);
    return st == OLY_OK && (uint32_t)crc != w->member->crc ? wrong_checksum(r, k) : st;
}

static oly_status read_deflated(const request *r, int file, int k)
{
    oly_parts_mapped parts;
    oly_deflated *stream;
    OLY_TRY(oly_deflated_open(file, r->path, r->wanted[k].begin, r->wanted[k].member->packed, &stream));
    oly_status st = oly_parts_map(r->x[k], &parts);
    if (st == OLY_OK) {
        st = unpack(stream, r, k, &parts);
        oly_status unmapped = oly_parts_unmap(r->x[k], &parts);
        st = st == OLY_OK ? unmapped : st;
    }
    oly_deflated_close(stream);
    return st;
}

static oly_status read_array(const oly_crew *crew, request *r, int file, int k, int64_t *share)
{
    const wanted *w = &r->wanted[k];
    oly_type type = oly_npy_type_of(&w->header);
    OLY_TRY(oly_parts_make(&type, r->shardings ? r->shardings[k] : NULL, &r->x[k]));
    if (!oly_platform_get()->computes)
        return OLY_OK;
    if (w->member->method == OLY_ZIP_DEFLATED)
        return read_deflated(r, file, k);
    oly_file_array region = oly_npy_elements(&w->header, file, r->path, w->begin);
    OLY_TRY(oly_parts_read(r->x[k], &region));
    return oly_npz_share_of_crc(crew, file, r->path, w->begin, w->member->size, share);
}

static oly_status check_stored(const oly_crew *crew, const request *r, const int64_t *shares)
{
    for (int k = 0; k < r->n && oly_platform_get()->computes; k++) {
        const oly_zip_member *m = r->wanted[k].member;
        if (m->method == OLY_ZIP_STORED && oly_npz_crc_of_shares(crew, m->size, shares + k, r->n) != m->crc)
            return wrong_checksum(r, k);
    }
    return OLY_OK;
}

static oly_status read_arrays(const oly_crew *crew, request *r, oly_shared_file *f)
{
    size_t n = (size_t)r->n * (size_t)(crew->n + 1) + 1;
    int64_t *mine = oly_calloc(n, sizeof *mine), *all = mine ? mine + r->n : NULL;
    oly_status st = mine ? OLY_OK : oly_out_of_memory(sizeof *mine * n, "the checksums of a file");
    for (int k = 0; k < r->n && st == OLY_OK; k++)
        st = read_array(crew, r, f->file, k, &mine[k]);
    st = oly_crew_agree_on(crew, st, r->n, mine ? mine : (int64_t[1]){0}, all);
    if (st == OLY_OK && all)
        st = check_stored(crew, r, all); /* the same on all */
    oly_release(mine);
    if (st != OLY_OK) {
        oly_shared_close(f);
        return st;
    }
    return oly_shared_end(crew, st, f);
}

static oly_status load_members(const oly_crew *crew, oly_status mine, request *r)
{
    oly_shared_file f;
    uint64_t contents = 0, arguments = oly_npz_arguments(9, r->path, r->n, r->names);
    for (int k = 0; k < r->n; k++)
        arguments = oly_hash_mix(arguments, r->shardings && r->shardings[k] ? r->shardings[k]->hash : 0);
    oly_status st = oly_shared_open(mine, r->path, &f);
    if (st == OLY_OK)
        st = find_arrays(r, &f, &contents);
    OLY_TRY(oly_shared_agree(crew, st, arguments, contents, &f));
    return read_arrays(crew, r, &f);
}

/* All or none. */
static oly_status finish(oly_crew *crew, oly_status st, const request *r)
{
    uint64_t id = crew->id;
    for (int k = 0; k < (r->n ? r->n : 0) && (k == 0 || st == OLY_OK); k++) {
        oly_type type = oly_npy_type_of(&r->wanted[k].header);
        crew->id = oly_hash_mix(id, (uint64_t)k);
        st = oly_load_finish(crew, st, &type, r->shardings ? r->shardings[k] : NULL, &r->x[k]);
    }
    for (int k = 0; k < r->n && st != OLY_OK; k++)
        if (r->x[k]) {
            oly_free(r->x[k]);
            r->x[k] = NULL;
        }
    return st;
}

/* The mesh of all shardings; NULL: several, or none. */
static oly_mesh common_mesh(int n, const oly_sharding *shardings)
{
    oly_mesh mesh = n && shardings && shardings[0] ? shardings[0]->mesh : NULL;
    for (int k = 1; k < n; k++)
        if (mesh && (!shardings[k] || !oly_mesh_same_devices(mesh, shardings[k]->mesh)))
            mesh = NULL;
    return mesh;
}

static oly_status load(request *r)
{
    oly_crew crew;
    OLY_TRY(oly_files_need_no_trace());
    r->x = oly_calloc((size_t)r->n + 1, sizeof *r->x);
    r->wanted = oly_calloc((size_t)r->n + 1, sizeof *r->wanted);
    if (!r->x || !r->wanted)
        return oly_out_of_memory(sizeof *r->wanted * (size_t)r->n, "the arrays of a file");
    oly_status st = oly_crew_begin(common_mesh(r->n, r->shardings), 6, &crew);
    st = st == OLY_OK ? oly_zlib_need() : st;
    if (crew.me >= 0)
        st = load_members(&crew, st, r);
    st = finish(&crew, st, r);
    oly_crew_end(&crew);
    oly_zip_free(&r->zip);
    return st;
}

oly_status oly_load_npz_with(const char *path, int n_names, const char *const *names, int n_out, oly_array *const *out,
                             oly_npz_options options)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_places(n_out, out));
    oly_status st = oly_need_numbers(n_names, names);
    for (int k = 0; k < n_out && options.shardings && st == OLY_OK; k++)
        st = oly_need_or_null(options.shardings[k], OLY_HANDLE_SHARDING);
    if (st != OLY_OK)
        return oly_clear_after(st, n_out, out);
    request r = {.path = path, .n = n_out, .names = names, .shardings = options.shardings};
    st = oly_raise(n_names == n_out ? load(&r) : oly_npz_other_count(n_names, n_out));
    for (int k = 0; k < n_out; k++)
        *out[k] = st == OLY_OK ? r.x[k] : NULL;
    oly_release(r.x);
    oly_release(r.wanted);
    return st;
}
