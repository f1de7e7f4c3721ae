/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_save_npz: stored members at offsets that are known beforehand, which all processes write at once. The crc of each is combined of
 * those of its parts, which the processes read again when everything is written. */
#include "array/arguments.h"
#include "array/files/npy_array.h"
#include "array/files/npz.h"
#include "array/files/parts.h"
#include "array/files/replace.h"
#include "core/hash.h"
#include "core/min_max.h"
#include "file/file.h"
#include "file/zip.h"
#include "file/zlib_late.h"
#include <olympus/files.h>
#include <string.h>

/* -- shared with loading ------------------------------------------------------------------------------------------------------- */

oly_status oly_npz_member_name(const char *name, char member[])
{
    if (!name || !name[0])
        return oly_fail(OLY_INVALID, "an array in a .npz file has a name, and one of these is %s",
                        name ? "empty" : "NULL");
    int n = snprintf(member, OLY_ZIP_NAME_MOST, "%s.npy", name);
    if (n < 0 || n >= OLY_ZIP_NAME_MOST)
        return oly_fail(OLY_INVALID, "the name %.40s... is longer than %d bytes", name, OLY_ZIP_NAME_MOST - 5);
    return OLY_OK;
}

oly_status oly_npz_other_count(int names, int arrays)
{
    return oly_fail(OLY_INVALID, "%d names and %d arrays; each array has a name", names, arrays);
}

uint64_t oly_npz_arguments(uint64_t seed, const char *path, int n, const char *const *names)
{
    uint64_t h = oly_hash_mix(oly_hash_text(seed, path ? path : ""), (uint64_t)n);
    for (int k = 0; k < n; k++)
        h = oly_hash_text(h, names && names[k] ? names[k] : "");
    return h;
}

static int64_t cut(int64_t n, int part, int parts)
{
    return n / parts * part + n % parts * part / parts;
}

oly_status oly_npz_share_of_crc(const oly_crew *crew, int file, const char *path, int64_t begin, int64_t n,
                                int64_t *share)
{
    int64_t at = cut(n, crew->me, crew->n), end = cut(n, crew->me + 1, crew->n);
    uLong crc = oly_zlib.crc32(0, NULL, 0);
    size_t room = (size_t)oly_smaller(end - at, OLY_FILE_CHUNK) + 1;
    unsigned char *bytes = oly_malloc(room);
    oly_status st = bytes ? OLY_OK : oly_out_of_memory(room, "the checksum of a file");
    while (at < end && st == OLY_OK) {
        size_t piece = (size_t)oly_smaller(end - at, OLY_FILE_CHUNK);
        st = oly_file_read(file, path, bytes, piece, begin + at);
        crc = st == OLY_OK ? oly_zlib.crc32(crc, bytes, (uInt)piece) : crc;
        at += (int64_t)piece;
    }
    oly_release(bytes);
    *share = (int64_t)crc;
    return st;
}

uint32_t oly_npz_crc_of_shares(const oly_crew *crew, int64_t n, const int64_t *shares, int stride)
{
    uLong crc = oly_zlib.crc32(0, NULL, 0);
    for (int m = 0; m < crew->n; m++)
        crc = oly_zlib.crc32_combine(crc, (uLong)shares[(int64_t)m * stride],
                                     (z_off_t)(cut(n, m + 1, crew->n) - cut(n, m, crew->n)));
    return (uint32_t)crc;
}

/* -- the plan of the file -------------------------------------------------------------------------------------------------------- */

typedef struct entry {
    oly_npy_header header;
    char text[OLY_NPY_WRITTEN_MOST]; /* of it */
    int64_t begin;                   /* of the text; the elements follow */
} entry;

typedef struct plan {
    oly_zip zip;
    entry *entry; /* owned: [zip.n] */
} plan;

static void free_plan(plan *p)
{
    oly_zip_free(&p->zip);
    oly_release(p->entry);
}

static oly_status add_member(plan *p, const char *name, oly_array x)
{
    char member[OLY_ZIP_NAME_MOST];
    OLY_TRY(oly_npz_member_name(name, member));
    if (oly_zip_member_named(&p->zip, member))
        return oly_fail(OLY_INVALID, "two arrays have the name \"%s\"", name);
    oly_zip_member *m = &p->zip.member[p->zip.n];
    entry *e = &p->entry[p->zip.n];
    if (!(m->name = oly_strdup(member)))
        return oly_out_of_memory(strlen(member), "the members of a file");
    p->zip.n++;
    e->header = oly_npy_header_of(&x->type);
    m->size = m->packed = (int64_t)oly_npy_header_write(&e->header, 1, e->text) + oly_npy_bytes(&e->header);
    m->header = p->zip.directory;
    e->begin = m->header + (int64_t)oly_zip_write_header(m, NULL);
    if (__builtin_add_overflow(e->begin, m->size, &p->zip.directory))
        return oly_fail(OLY_OVERFLOW, "the arrays have more than 2^63 bytes together");
    return OLY_OK;
}

static oly_status make_plan(plan *p, int n, const char *const *names, const oly_array *arrays)
{
    *p = (plan){0};
    p->zip.member = oly_calloc((size_t)n + 1, sizeof *p->zip.member);
    p->entry = oly_calloc((size_t)n + 1, sizeof *p->entry);
    if (!p->zip.member || !p->entry)
        return oly_out_of_memory((size_t)n * sizeof *p->entry, "the members of a file");
    for (int k = 0; k < n; k++)
        OLY_TRY(add_member(p, names ? names[k] : NULL, arrays[k]));
    return OLY_OK;
}

/* -- writing ------------------------------------------------------------------------------------------------------------------- */

/* The headers, and at last the crcs and the directory, by the first member. */
static oly_status write_headers(const plan *p, int file, const char *path)
{
    unsigned char local[OLY_ZIP_HEADER_MOST];
    for (int k = 0; k < p->zip.n; k++) {
        const entry *e = &p->entry[k];
        size_t n = oly_zip_write_header(&p->zip.member[k], local);
        OLY_TRY(oly_file_write(file, path, local, n, p->zip.member[k].header));
        OLY_TRY(oly_file_write(file, path, e->text, (size_t)e->header.data, e->begin));
    }
    return OLY_OK;
}

static oly_status write_directory(const plan *p, int file, const char *path)
{
    size_t n = oly_zip_write_directory(&p->zip, NULL);
    unsigned char *bytes = oly_malloc(n);
    if (!bytes)
        return oly_out_of_memory(n, "the directory of a file");
    oly_zip_write_directory(&p->zip, bytes);
    oly_status st = oly_file_write(file, path, bytes, n, p->zip.directory);
    oly_release(bytes);
    return st;
}

static oly_status write_arrays(const plan *p, const oly_array *arrays, int file, const char *path)
{
    for (int k = 0; k < p->zip.n; k++) {
        oly_file_array region = oly_npy_elements(&p->entry[k].header, file, path, p->entry[k].begin);
        OLY_TRY(oly_parts_write(arrays[k], &region));
    }
    return OLY_OK;
}

/* Each member's crc, from what is in the file. */
static oly_status add_checksums(const oly_crew *crew, plan *p, int file, const char *path)
{
    int n = p->zip.n;
    int64_t *mine = oly_calloc((size_t)n * (size_t)(crew->n + 1) + 1, sizeof *mine), *all = mine ? mine + n : NULL;
    oly_status st = mine ? OLY_OK : oly_out_of_memory(sizeof *mine * (size_t)n, "the checksums of a file");
    for (int k = 0; k < n && st == OLY_OK; k++)
        st = oly_npz_share_of_crc(crew, file, path, p->entry[k].begin, p->zip.member[k].size, &mine[k]);
    st = oly_crew_agree_on(crew, st, n, mine ? mine : (int64_t[1]){0}, all);
    for (int k = 0; k < n && st == OLY_OK && all; k++)
        p->zip.member[k].crc = oly_npz_crc_of_shares(crew, p->zip.member[k].size, all + k, n);
    oly_release(mine);
    return st;
}

static oly_status save_members(const oly_crew *crew, oly_status mine, const char *path, int n, const char *const *names,
                               const oly_array *arrays)
{
    plan p;
    oly_new_file f;
    oly_status st = mine, planned = make_plan(&p, n, names, arrays);
    if (st == OLY_OK)
        st = path ? planned : oly_fail(OLY_INVALID, "the path is NULL");
    uint64_t arguments = oly_npz_arguments(8, path, n, names);
    for (int k = 0; k < p.zip.n; k++)
        arguments = oly_hash(arguments, p.entry[k].text, (size_t)p.entry[k].header.data);
    int64_t size = st == OLY_OK ? p.zip.directory + (int64_t)oly_zip_write_directory(&p.zip, NULL) : 0;
    st = oly_replace_begin(crew, st, arguments, path ? path : "", size, &f);
    if (st != OLY_OK) {
        free_plan(&p);
        return st;
    }
    st = oly_crew_leads(crew) ? write_headers(&p, f.file, path) : OLY_OK;
    if (st == OLY_OK)
        st = write_arrays(&p, arrays, f.file, path);
    if (st == OLY_OK) /* so that others see it, wherever they are */
        st = oly_file_sync(f.file, path);
    st = oly_crew_agree(crew, st);
    bool agreed = st != OLY_OK;
    if (st == OLY_OK) {
        st = add_checksums(crew, &p, f.file, path);
        agreed = st != OLY_OK;
    }
    if (st == OLY_OK && oly_crew_leads(crew)) {
        st = write_headers(&p, f.file, path);
        st = st == OLY_OK ? write_directory(&p, f.file, path) : st;
    }
    free_plan(&p);
    if (!agreed)
        return oly_replace_end(crew, st, &f);
    oly_replace_abandon(crew, &f);
    return st;
}

/* The mesh of all arrays; NULL: several, or uncommitted ones. */
static oly_mesh common_mesh(int n, const oly_array *arrays)
{
    oly_mesh mesh = n ? arrays[0]->sharding->mesh : NULL;
    for (int k = 1; k < n; k++)
        if (mesh && !oly_mesh_same_devices(mesh, arrays[k]->sharding->mesh))
            mesh = NULL;
    return mesh;
}

oly_status(oly_save_npz)(const char *path, int n_names, const char *const *names, int n_arrays, const oly_array *arrays)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_arrays(n_arrays, arrays));
    OLY_TRY(oly_need_numbers(n_names, names));
    oly_status st = oly_files_need_no_trace();
    if (st == OLY_OK && n_names != n_arrays)
        st = oly_npz_other_count(n_names, n_arrays);
    st = st == OLY_OK ? oly_zlib_need() : st;
    for (int k = 0; k < n_arrays && st == OLY_OK; k++)
        st = oly_parts_check(arrays[k]);
    if (st != OLY_OK)
        return oly_raise(st);
    oly_crew crew;
    st = oly_crew_begin(common_mesh(n_arrays, arrays), 5, &crew);
    if (crew.me >= 0)
        st = save_members(&crew, st, path, n_arrays, names, arrays);
    st = oly_crew_tell(&crew, st, NULL, 0);
    oly_crew_end(&crew);
    return oly_raise(st);
}
