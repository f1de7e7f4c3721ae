/* SPDX-License-Identifier: BSD-3-Clause */
/* Types and errors of HDF5. See hdf5_types.h. */
#include "file/hdf5_types.h"
#include <stdio.h>
#include <string.h>

/* -- errors ------------------------------------------------------------------------------------------------------- */

typedef struct reasons {
    char text[600];
    size_t length;
} reasons;

/* From the call that failed to its causes; the last ones say most, so repeated ones are left out. */
static herr_t add_reason(unsigned n, const H5E_error2_t *error, void *context)
{
    reasons *r = context;
    (void)n;
    if (!error->desc || !error->desc[0] || strstr(r->text, error->desc))
        return 0;
    int more = snprintf(r->text + r->length, sizeof r->text - r->length, "%s%s", r->length ? "; " : "", error->desc);
    size_t end = r->length + (more > 0 ? (size_t)more : 0);
    end = end < sizeof r->text ? end : sizeof r->text - 1;
    for (; r->length < end; r->length++)
        if (r->text[r->length] == '\n') /* ends the time of day in some */
            r->text[r->length] = ' ';
    return 0;
}

oly_status oly_hdf5_failed(const char *what, const char *path)
{
    reasons r = {.length = 0};
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, add_reason, &r);
    H5Eclear2(H5E_DEFAULT);
    return oly_fail(OLY_IO, "cannot %s %s: HDF5: %s", what, path, r.length ? r.text : "it says no more");
}

void oly_hdf5_quiet(void)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5Eclear2(H5E_DEFAULT);
}

/* -- types -------------------------------------------------------------------------------------------------------- */

/* A float of 16 bits with that many bits of exponent. */
static hid_t small_float(size_t exponent_bits)
{
    hid_t type = H5Tcopy(H5T_NATIVE_FLOAT);
    size_t fraction = 15 - exponent_bits;
    H5Tset_fields(type, 15, fraction, exponent_bits, 0, fraction);
    H5Tset_size(type, 2);
    H5Tset_ebias(type, ((size_t)1 << (exponent_bits - 1)) - 1);
    return type;
}

static hid_t boolean(void)
{
    hid_t type = H5Tenum_create(H5T_NATIVE_INT8);
    const int8_t no = 0, yes = 1;
    H5Tenum_insert(type, "FALSE", &no);
    H5Tenum_insert(type, "TRUE", &yes);
    return type;
}

static hid_t complex_of(hid_t real)
{
    size_t bytes = H5Tget_size(real);
    hid_t type = H5Tcreate(H5T_COMPOUND, 2 * bytes);
    H5Tinsert(type, "r", 0, real);
    H5Tinsert(type, "i", bytes, real);
    return type;
}

hid_t oly_hdf5_type_of(oly_dtype dtype)
{
    switch (dtype) {
    case OLY_BOOL: return boolean();
    case OLY_INT8: return H5Tcopy(H5T_NATIVE_INT8);
    case OLY_INT16: return H5Tcopy(H5T_NATIVE_INT16);
    case OLY_INT32: return H5Tcopy(H5T_NATIVE_INT32);
    case OLY_INT64: return H5Tcopy(H5T_NATIVE_INT64);
    case OLY_UINT8: return H5Tcopy(H5T_NATIVE_UINT8);
    case OLY_UINT16: return H5Tcopy(H5T_NATIVE_UINT16);
    case OLY_UINT32: return H5Tcopy(H5T_NATIVE_UINT32);
    case OLY_UINT64: return H5Tcopy(H5T_NATIVE_UINT64);
    case OLY_FLOAT16: return small_float(5);
    case OLY_BFLOAT16: return small_float(8);
    case OLY_FLOAT32: return H5Tcopy(H5T_NATIVE_FLOAT);
    case OLY_FLOAT64: return H5Tcopy(H5T_NATIVE_DOUBLE);
    case OLY_COMPLEX64: return complex_of(H5T_NATIVE_FLOAT);
    case OLY_COMPLEX128: return complex_of(H5T_NATIVE_DOUBLE);
    default: return -1;
    }
}

static bool integer_of(hid_t type, oly_dtype *dtype)
{
    bool with_sign = H5Tget_sign(type) == H5T_SGN_2;
    switch (H5Tget_size(type)) {
    case 1: *dtype = with_sign ? OLY_INT8 : OLY_UINT8; return true;
    case 2: *dtype = with_sign ? OLY_INT16 : OLY_UINT16; return true;
    case 4: *dtype = with_sign ? OLY_INT32 : OLY_UINT32; return true;
    case 8: *dtype = with_sign ? OLY_INT64 : OLY_UINT64; return true;
    default: return false;
    }
}

/* Wider floats than float64 are rounded to that. */
static bool float_of(hid_t type, oly_dtype *dtype)
{
    size_t bytes = H5Tget_size(type), sign, exponent, exponent_bits = 0, fraction, fraction_bits;
    H5Tget_fields(type, &sign, &exponent, &exponent_bits, &fraction, &fraction_bits);
    *dtype = bytes > 4 ? OLY_FLOAT64 : bytes > 2 ? OLY_FLOAT32 : exponent_bits == 8 ? OLY_BFLOAT16 : OLY_FLOAT16;
    return bytes >= 2;
}

static bool enumeration_of(hid_t type, oly_dtype *dtype)
{
    hid_t base = H5Tget_super(type);
    bool known = integer_of(base, dtype);
    int8_t value = -1;
    if (known && H5Tget_size(type) == 1 && H5Tget_nmembers(type) == 2 && H5Tenum_valueof(type, "TRUE", &value) >= 0 &&
        value == 1)
        *dtype = OLY_BOOL;
    H5Tclose(base);
    H5Eclear2(H5E_DEFAULT);
    return known;
}

/* A pair of equal floats named r and i. */
static bool complex_parts(hid_t type, oly_dtype *dtype)
{
    if (H5Tget_nmembers(type) != 2)
        return false;
    char *first = H5Tget_member_name(type, 0), *second = H5Tget_member_name(type, 1);
    hid_t real = H5Tget_member_type(type, 0), imaginary = H5Tget_member_type(type, 1);
    oly_dtype part = OLY_BOOL;
    bool known = first && second && strcmp(first, "r") == 0 && strcmp(second, "i") == 0 &&
                 H5Tget_class(real) == H5T_FLOAT && H5Tequal(real, imaginary) > 0 && float_of(real, &part);
    *dtype = part == OLY_FLOAT64 ? OLY_COMPLEX128 : OLY_COMPLEX64;
    H5free_memory(first);
    H5free_memory(second);
    H5Tclose(real);
    H5Tclose(imaginary);
    return known;
}

bool oly_hdf5_dtype_of(hid_t type, oly_dtype *dtype)
{
    switch (H5Tget_class(type)) {
    case H5T_INTEGER: return integer_of(type, dtype);
    case H5T_FLOAT: return float_of(type, dtype);
    case H5T_ENUM: return enumeration_of(type, dtype);
    case H5T_COMPOUND: return complex_parts(type, dtype);
    default: return false;
    }
}
