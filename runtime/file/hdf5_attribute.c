/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of objects in HDF5 files. See hdf5_file.h. */
#include "file/hdf5_types.h"
#include <string.h>

/* The object, or an error that names it. */
static oly_status open_object(oly_hdf5_id file, const char *path, const char *name, hid_t *object)
{
    bool there = true;
    *object = -1;
    if (strcmp(name, "/") != 0)
        OLY_TRY(oly_hdf5_look(file, path, name, &there));
    if (!there)
        return oly_fail(OLY_IO, "%s has no data set or group named \"%s\"", path, name);
    *object = H5Oopen((hid_t)file, name, H5P_DEFAULT);
    return *object < 0 ? oly_hdf5_failed("read", path) : OLY_OK;
}

/* In place of one of that name. */
static oly_status put(oly_hdf5_id file, const char *path, const char *object, const char *name, hid_t type, hid_t space,
                      const void *value)
{
    hid_t at, attribute = -1;
    OLY_TRY(open_object(file, path, object, &at));
    bool ok = H5Aexists(at, name) <= 0 || H5Adelete(at, name) >= 0;
    if (ok)
        attribute = H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    ok = ok && attribute >= 0 && H5Awrite(attribute, type, value) >= 0;
    oly_status st = ok ? OLY_OK : oly_hdf5_failed("write an attribute of", path);
    if (attribute >= 0)
        H5Aclose(attribute);
    H5Oclose(at);
    return st;
}

oly_status oly_hdf5_write_text(oly_hdf5_id file, const char *path, const char *object, const char *name,
                               const char *text)
{
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, H5T_VARIABLE); /* h5py takes texts of fixed length for bytes */
    H5Tset_cset(type, H5T_CSET_UTF8);
    oly_status st = put(file, path, object, name, type, space, &text);
    H5Sclose(space);
    H5Tclose(type);
    return st;
}

oly_status oly_hdf5_write_numbers(oly_hdf5_id file, const char *path, const char *object, const char *name, int n,
                                  const double *numbers)
{
    hsize_t count = (hsize_t)n;
    hid_t space = n == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, NULL);
    oly_status st = put(file, path, object, name, H5T_NATIVE_DOUBLE, space, numbers);
    H5Sclose(space);
    return st;
}

/* -- reading ------------------------------------------------------------------------------------------------------ */

typedef struct open_attribute {
    hid_t object, attribute, type, space;
} open_attribute;

static void end(open_attribute *a)
{
    if (a->space >= 0)
        H5Sclose(a->space);
    if (a->type >= 0)
        H5Tclose(a->type);
    if (a->attribute >= 0)
        H5Aclose(a->attribute);
    if (a->object >= 0)
        H5Oclose(a->object);
}

static oly_status begin(oly_hdf5_id file, const char *path, const char *object, const char *name, open_attribute *a)
{
    *a = (open_attribute){-1, -1, -1, -1};
    OLY_TRY(open_object(file, path, object, &a->object));
    if (H5Aexists(a->object, name) <= 0) {
        H5Eclear2(H5E_DEFAULT);
        return oly_fail(OLY_IO, "\"%s\" of %s has no attribute named \"%s\"", object, path, name);
    }
    a->attribute = H5Aopen(a->object, name, H5P_DEFAULT);
    if (a->attribute >= 0) {
        a->type = H5Aget_type(a->attribute);
        a->space = H5Aget_space(a->attribute);
    }
    return a->type < 0 || a->space < 0 ? oly_hdf5_failed("read an attribute of", path) : OLY_OK;
}

static oly_status read_fixed(const open_attribute *a, const char *path, oly_text *text)
{
    size_t bytes = H5Tget_size(a->type);
    char *chars = oly_calloc(bytes + 1, 1);
    if (!chars)
        return oly_out_of_memory(bytes + 1, "an attribute");
    oly_status st = H5Aread(a->attribute, a->type, chars) < 0 ? oly_hdf5_failed("read an attribute of", path) : OLY_OK;
    size_t length = strlen(chars);
    while (H5Tget_strpad(a->type) == H5T_STR_SPACEPAD && length > 0 && chars[length - 1] == ' ')
        length--;
    oly_text_add_chars(text, chars, length);
    oly_release(chars);
    return st;
}

static oly_status read_variable(const open_attribute *a, const char *path, oly_text *text)
{
    char *chars = NULL;
    if (H5Aread(a->attribute, a->type, &chars) < 0)
        return oly_hdf5_failed("read an attribute of", path);
    oly_text_add_chars(text, chars ? chars : "", chars ? strlen(chars) : 0);
    H5free_memory(chars);
    return OLY_OK;
}

oly_status oly_hdf5_read_text(oly_hdf5_id file, const char *path, const char *object, const char *name, oly_text *text)
{
    open_attribute a;
    oly_status st = begin(file, path, object, name, &a);
    if (st == OLY_OK && (H5Tget_class(a.type) != H5T_STRING || H5Sget_simple_extent_npoints(a.space) != 1))
        st = oly_fail(OLY_DTYPE, "the attribute \"%s\" of %s is no text", name, path);
    if (st == OLY_OK)
        st = H5Tis_variable_str(a.type) > 0 ? read_variable(&a, path, text) : read_fixed(&a, path, text);
    if (st == OLY_OK && text->failed)
        st = oly_out_of_memory(text->length, "an attribute");
    end(&a);
    return st;
}

static oly_status read_numbers(const open_attribute *a, const char *path, int room, double *numbers, int *n)
{
    hssize_t count = H5Sget_simple_extent_npoints(a->space);
    *n = count > INT32_MAX ? INT32_MAX : (int)count;
    size_t bytes = sizeof(double) * (size_t)(count > 0 ? count : 1);
    double *all = oly_malloc(bytes);
    if (!all)
        return oly_out_of_memory(bytes, "an attribute");
    oly_status st =
        H5Aread(a->attribute, H5T_NATIVE_DOUBLE, all) < 0 ? oly_hdf5_failed("read an attribute of", path) : OLY_OK;
    for (int k = 0; k < *n && k < room && st == OLY_OK; k++)
        numbers[k] = all[k];
    oly_release(all);
    return st;
}

oly_status oly_hdf5_read_numbers(oly_hdf5_id file, const char *path, const char *object, const char *name, int room,
                                 double *numbers, int *n)
{
    open_attribute a;
    oly_status st = begin(file, path, object, name, &a);
    H5T_class_t class = st == OLY_OK ? H5Tget_class(a.type) : H5T_NO_CLASS;
    if (st == OLY_OK && class != H5T_INTEGER && class != H5T_FLOAT)
        st = oly_fail(OLY_DTYPE, "the attribute \"%s\" of %s has no numbers", name, path);
    if (st == OLY_OK)
        st = read_numbers(&a, path, room, numbers, n);
    end(&a);
    return st;
}
