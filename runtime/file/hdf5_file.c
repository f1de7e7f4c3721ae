/* SPDX-License-Identifier: BSD-3-Clause */
/* Files and data sets of HDF5. See hdf5_file.h. */
#include "file/hdf5_types.h"
#include <string.h>

enum { OLY_HDF5_NAME = 1024 }; /* of a name, with its end */

oly_status oly_hdf5_need(void)
{
    const char *reason;
    if (!oly_hdf5_late_open(&reason))
        return oly_fail(OLY_IO,
                        "this library is built with HDF5, which is not on this machine: %s; install it (Debian and "
                        "Ubuntu: libhdf5-openmpi-103-1 or libhdf5-mpich-103-1)",
                        reason);
    oly_hdf5_quiet();
    return OLY_OK;
}

/* -- files -------------------------------------------------------------------------------------------------------- */

oly_status oly_hdf5_create(const char *path, const char *shown, oly_hdf5_id *file)
{
    *file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    return *file < 0 ? oly_hdf5_failed("write", shown) : OLY_OK;
}

oly_status oly_hdf5_open(const char *path, const char *shown, bool change, oly_hdf5_id *file)
{
    *file = H5Fopen(path, change ? H5F_ACC_RDWR : H5F_ACC_RDONLY, H5P_DEFAULT);
    return *file < 0 ? oly_hdf5_failed(change ? "write" : "read", shown) : OLY_OK;
}

oly_status oly_hdf5_close(oly_hdf5_id file, const char *shown)
{
    return file >= 0 && H5Fclose((hid_t)file) < 0 ? oly_hdf5_failed("write", shown) : OLY_OK;
}

/* -- names -------------------------------------------------------------------------------------------------------- */

/* Is it a group, a data set, ...? H5I_BADID: a link that leads nowhere. */
static H5I_type_t kind_of(hid_t file, const char *name)
{
    hid_t object = H5Oopen(file, name, H5P_DEFAULT);
    H5I_type_t kind = object < 0 ? H5I_BADID : H5Iget_type(object);
    if (object >= 0)
        H5Oclose(object);
    H5Eclear2(H5E_DEFAULT);
    return kind;
}

/* Every group on the way must be there before the last name may be asked for. *part: as far as it got. */
static htri_t exists(hid_t file, const char *name, char part[OLY_HDF5_NAME])
{
    for (const char *slash = strchr(name + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t n = (size_t)(slash - name);
        if (n >= OLY_HDF5_NAME)
            return -1;
        memcpy(part, name, n);
        part[n] = 0;
        htri_t there = H5Lexists(file, part, H5P_DEFAULT);
        if (there <= 0)
            return there;
        if (kind_of(file, part) != H5I_GROUP)
            return -1;
    }
    part[0] = 0;
    return H5Lexists(file, name, H5P_DEFAULT);
}

oly_status oly_hdf5_look(oly_hdf5_id file, const char *path, const char *name, bool *there)
{
    char part[OLY_HDF5_NAME] = "";
    htri_t found = exists((hid_t)file, name, part);
    *there = found > 0;
    if (found < 0 && part[0])
        return oly_fail(OLY_INVALID, "\"%s\" of %s is no group, so there is no \"%s\" in it", part, path, name);
    return found < 0 ? oly_hdf5_failed("look into", path) : OLY_OK;
}

void oly_hdf5_remove(oly_hdf5_id file, const char *name)
{
    char part[OLY_HDF5_NAME];
    if (exists((hid_t)file, name, part) > 0)
        H5Ldelete((hid_t)file, name, H5P_DEFAULT);
    H5Eclear2(H5E_DEFAULT);
}

/* -- data sets ---------------------------------------------------------------------------------------------------- */

static oly_status take_shape(oly_hdf5_set *s, hid_t space)
{
    hsize_t shape[H5S_MAX_RANK], most[H5S_MAX_RANK];
    if (H5Sget_simple_extent_type(space) == H5S_NULL)
        return oly_fail(OLY_IO, "cannot read \"%s\" of %s: it is empty, without a shape", s->name, s->path);
    s->rank = H5Sget_simple_extent_dims(space, shape, most);
    if (s->rank < 0)
        return oly_hdf5_failed("read", s->path);
    if (s->rank > OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE, "cannot read \"%s\" of %s: it has %d dimensions, and arrays at most %d", s->name,
                        s->path, s->rank, OLY_MAX_RANK);
    for (int d = 0; d < s->rank; d++) {
        if (shape[d] > INT64_MAX)
            return oly_fail(OLY_OVERFLOW, "cannot read \"%s\" of %s: it is too large", s->name, s->path);
        s->shape[d] = (int64_t)shape[d];
    }
    s->grows = s->rank > 0 && most[0] == H5S_UNLIMITED;
    return OLY_OK;
}

static bool is_plain(const oly_hdf5_set *s, hid_t type)
{
    hid_t native = oly_hdf5_type_of(s->dtype), layout = H5Dget_create_plist((hid_t)s->id);
    bool plain = native >= 0 && layout >= 0 && H5Tequal(type, native) > 0 && H5Pget_nfilters(layout) == 0 &&
                 H5Pget_layout(layout) != H5D_COMPACT;
    if (native >= 0)
        H5Tclose(native);
    if (layout >= 0)
        H5Pclose(layout);
    return plain;
}

static oly_status take_type(oly_hdf5_set *s)
{
    hid_t type = H5Dget_type((hid_t)s->id), space = H5Dget_space((hid_t)s->id);
    oly_status st = type < 0 || space < 0 ? oly_hdf5_failed("read", s->path) : OLY_OK;
    if (st == OLY_OK && !oly_hdf5_dtype_of(type, &s->dtype))
        st =
            oly_fail(OLY_DTYPE,
                     "cannot read \"%s\" of %s: its elements are neither integers nor floats, bools or complex numbers "
                     "(texts, references and structures are not read)",
                     s->name, s->path);
    if (st == OLY_OK)
        st = take_shape(s, space);
    s->plain = st == OLY_OK && is_plain(s, type);
    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
    return st;
}

oly_status oly_hdf5_set_open(oly_hdf5_id file, const char *path, const char *name, oly_hdf5_set *s)
{
    bool there;
    *s = (oly_hdf5_set){.id = -1, .path = path, .name = name};
    OLY_TRY(oly_hdf5_look(file, path, name, &there));
    if (!there)
        return oly_fail(OLY_IO, "%s has no data set named \"%s\"", path, name);
    if (kind_of((hid_t)file, name) == H5I_GROUP)
        return oly_fail(OLY_IO, "\"%s\" of %s is a group, not a data set; name one of those in it, as \"%s/NAME\"",
                        name, path, name);
    s->id = H5Dopen2((hid_t)file, name, H5P_DEFAULT);
    if (s->id < 0)
        return oly_hdf5_failed("read", path);
    oly_status st = take_type(s);
    if (st != OLY_OK)
        oly_hdf5_set_close(s);
    return st;
}

static hid_t space_of(const oly_hdf5_set *s)
{
    hsize_t shape[OLY_MAX_RANK], most[OLY_MAX_RANK];
    for (int d = 0; d < s->rank; d++)
        most[d] = shape[d] = (hsize_t)s->shape[d];
    if (s->rank == 0)
        return H5Screate(H5S_SCALAR);
    if (s->grows)
        most[0] = H5S_UNLIMITED;
    return H5Screate_simple(s->rank, shape, most);
}

/* Chunks; all have their place at once, and nothing is written there before the elements are. */
static hid_t layout_of(const oly_hdf5_set *s, const int64_t *chunk)
{
    hsize_t extent[OLY_MAX_RANK];
    hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_fill_time(layout, H5D_FILL_TIME_NEVER);
    H5Pset_alloc_time(layout, H5D_ALLOC_TIME_EARLY);
    for (int d = 0; chunk && d < s->rank; d++)
        extent[d] = (hsize_t)chunk[d];
    if (chunk && s->rank > 0)
        H5Pset_chunk(layout, s->rank, extent);
    return layout;
}

oly_status oly_hdf5_set_make(oly_hdf5_id file, const int64_t *chunk, oly_hdf5_set *s)
{
    bool there;
    OLY_TRY(oly_hdf5_look(file, s->path, s->name, &there));
    if (there && kind_of((hid_t)file, s->name) == H5I_GROUP)
        return oly_fail(OLY_INVALID,
                        "\"%s\" of %s is a group, and all that is in it would be lost; choose another name for the "
                        "data set, or begin "
                        "the file again (.fresh = true)",
                        s->name, s->path);
    if (there && H5Ldelete((hid_t)file, s->name, H5P_DEFAULT) < 0)
        return oly_hdf5_failed("replace a data set of", s->path);
    hid_t type = oly_hdf5_type_of(s->dtype), space = space_of(s), layout = layout_of(s, chunk);
    hid_t names = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(names, 1);
    s->id = H5Dcreate2((hid_t)file, s->name, type, space, names, layout, H5P_DEFAULT);
    oly_status st = s->id < 0 ? oly_hdf5_failed("write", s->path) : OLY_OK;
    H5Pclose(names);
    H5Pclose(layout);
    H5Sclose(space);
    H5Tclose(type);
    return st;
}

oly_status oly_hdf5_set_resize(oly_hdf5_set *s, int64_t rows)
{
    hsize_t shape[OLY_MAX_RANK];
    for (int d = 0; d < s->rank; d++)
        shape[d] = (hsize_t)(d == 0 ? rows : s->shape[d]);
    if (H5Dset_extent((hid_t)s->id, shape) < 0)
        return oly_hdf5_failed("extend a data set of", s->path);
    s->shape[0] = rows;
    return OLY_OK;
}

void oly_hdf5_set_close(oly_hdf5_set *s)
{
    if (s->id >= 0)
        H5Dclose((hid_t)s->id);
    s->id = -1;
}

/* -- elements ----------------------------------------------------------------------------------------------------- */

/* The selection of a box, and memory for it. */
typedef struct selection {
    hid_t file, memory, type;
    bool ok;
} selection;

static selection select_box(const oly_hdf5_set *s, const int64_t *lo, const int64_t *hi)
{
    hsize_t start[OLY_MAX_RANK], count[OLY_MAX_RANK];
    for (int d = 0; d < s->rank; d++) {
        start[d] = (hsize_t)lo[d];
        count[d] = (hsize_t)(hi[d] - lo[d]);
    }
    selection r = {.file = H5Dget_space((hid_t)s->id), .type = oly_hdf5_type_of(s->dtype)};
    r.memory = s->rank > 0 ? H5Screate_simple(s->rank, count, NULL) : H5Screate(H5S_SCALAR);
    r.ok = r.file >= 0 && r.type >= 0 && r.memory >= 0;
    if (r.ok && s->rank > 0)
        r.ok = H5Sselect_hyperslab(r.file, H5S_SELECT_SET, start, NULL, count, NULL) >= 0;
    return r;
}

static void selection_end(const selection *r)
{
    if (r->file >= 0)
        H5Sclose(r->file);
    if (r->memory >= 0)
        H5Sclose(r->memory);
    if (r->type >= 0)
        H5Tclose(r->type);
}

oly_status oly_hdf5_read(const oly_hdf5_set *s, const int64_t *lo, const int64_t *hi, void *memory)
{
    selection r = select_box(s, lo, hi);
    bool ok = r.ok && H5Dread((hid_t)s->id, r.type, r.memory, r.file, H5P_DEFAULT, memory) >= 0;
    oly_status st = ok ? OLY_OK : oly_hdf5_failed("read", s->path);
    selection_end(&r);
    return st;
}
