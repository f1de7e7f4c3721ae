/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes in HDF5 files: the first process writes them, each reads them for itself. */
#include "array/files/crew.h"
#include "core/hash.h"
#include "core/text.h"
#include "file/hdf5_file.h"
#include <math.h>
#include <olympus/formats.h>
#include <string.h>

enum { MOST_NUMBERS = 4096 /* HDF5 keeps an attribute of up to 64 KiB in the header of its object */ };

typedef struct attribute {
    const char *path, *object, *name, *text; /* text NULL: numbers */
    int n;
    const double *numbers;
} attribute;

static oly_status check(const attribute *a)
{
    OLY_TRY(oly_hdf5_need());
    if (!a->path || !a->object || !a->name)
        return oly_fail(OLY_INVALID, "the %s is NULL",
                        !a->path     ? "path"
                        : !a->object ? "name of the data set"
                                     : "name");
    if (!*a->name)
        return oly_fail(OLY_INVALID, "the name of the attribute is empty");
    return OLY_OK;
}

/* "": the root. */
static const char *object_of(const char *object)
{
    return *object ? object : "/";
}

/* -- writing ---------------------------------------------------------------------------------------------------------- */

static oly_status check_value(const attribute *a)
{
    OLY_TRY(check(a));
    if (a->text && strlen(a->text) > 60000)
        return oly_fail(OLY_INVALID, "a text of %zu bytes is no attribute; they have up to 60000", strlen(a->text));
    if (!a->text && (a->n < 1 || a->n > MOST_NUMBERS || !a->numbers))
        return oly_fail(OLY_INVALID, "an attribute has 1 to %d numbers, not %d; save more as a data set", MOST_NUMBERS,
                        a->n);
    return OLY_OK;
}

static oly_status write(const attribute *a)
{
    oly_hdf5_id file;
    const char *object = object_of(a->object);
    OLY_TRY(oly_hdf5_open(a->path, a->path, true, &file));
    oly_status st = a->text ? oly_hdf5_write_text(file, a->path, object, a->name, a->text)
                            : oly_hdf5_write_numbers(file, a->path, object, a->name, a->n, a->numbers);
    oly_status closed = oly_hdf5_close(file, a->path);
    return st == OLY_OK ? closed : st;
}

static uint64_t arguments_of(const attribute *a)
{
    uint64_t h = oly_hash_text(37, a->path ? a->path : "");
    h = oly_hash_text(oly_hash_text(h, a->object ? a->object : ""), a->name ? a->name : "");
    h = oly_hash_text(h, a->text ? a->text : "");
    return a->numbers && a->n > 0 && a->n <= MOST_NUMBERS ? oly_hash(h, a->numbers, sizeof *a->numbers * (size_t)a->n)
                                                          : h;
}

static oly_status put(const attribute *a)
{
    oly_crew crew;
    OLY_TRY(oly_files_need_no_trace());
    oly_status st = oly_crew_begin(NULL, 37, &crew);
    if (st == OLY_OK)
        st = check_value(a);
    st = oly_crew_agree_same(&crew, st, arguments_of(a));
    if (st == OLY_OK)
        st = oly_crew_agree(&crew, oly_crew_leads(&crew) ? write(a) : OLY_OK);
    oly_crew_end(&crew);
    return st;
}

oly_status(oly_hdf5_set_text)(const char *path, const char *name, const char *attribute_name, const char *text)
{
    OLY_ENTER(OLY_STATE);
    attribute a = {.path = path, .object = name, .name = attribute_name, .text = text ? text : ""};
    return oly_raise(put(&a));
}

oly_status(oly_hdf5_set_numbers)(const char *path, const char *name, const char *attribute_name, int n,
                                 const double *numbers)
{
    OLY_ENTER(OLY_STATE);
    attribute a = {.path = path, .object = name, .name = attribute_name, .n = n, .numbers = numbers};
    return oly_raise(put(&a));
}

/* -- reading ---------------------------------------------------------------------------------------------------------- */

static oly_status get(const attribute *a, oly_text *text, int room, double *numbers, int *n)
{
    oly_hdf5_id file;
    OLY_TRY(check(a));
    OLY_TRY(oly_hdf5_open(a->path, a->path, false, &file));
    const char *object = object_of(a->object);
    oly_status st = text ? oly_hdf5_read_text(file, a->path, object, a->name, text)
                         : oly_hdf5_read_numbers(file, a->path, object, a->name, room, numbers, n);
    oly_hdf5_close(file, a->path);
    return st;
}

int(oly_hdf5_get_text)(const char *path, const char *name, const char *attribute_name, char *buffer, size_t size)
{
    OLY_ENTER(-1);
    oly_text t = {0};
    attribute a = {.path = path, .object = name, .name = attribute_name};
    oly_status st = buffer || size == 0 ? get(&a, &t, 0, NULL, NULL) : oly_fail(OLY_INVALID, "the buffer is NULL");
    if (oly_raise(st) != OLY_OK) {
        oly_text_free(&t);
        return -1;
    }
    return oly_text_take(&t, buffer, size);
}

int(oly_hdf5_get_numbers)(const char *path, const char *name, const char *attribute_name, int n, double *numbers)
{
    OLY_ENTER(-1);
    int count = 0;
    attribute a = {.path = path, .object = name, .name = attribute_name};
    oly_status st = n < 0 || (n > 0 && !numbers) ? oly_fail(OLY_INVALID, "there is no room for the numbers")
                                                 : get(&a, NULL, n, numbers, &count);
    return oly_raise(st) == OLY_OK ? count : -1;
}

bool(oly_hdf5_available)(void)
{
    OLY_ENTER_ANY_TIME();
    bool there = oly_hdf5_need() == OLY_OK;
    if (!there)
        oly_drop_message();
    return there;
}
