/* SPDX-License-Identifier: BSD-3-Clause */
/* The form of a table, as the options say. Private to runtime/array/files. */
#ifndef OLY_ARRAY_FILES_CSV_FORM_H
#define OLY_ARRAY_FILES_CSV_FORM_H
#include "core/hash.h"
#include "file/csv.h"
#include <inttypes.h>
#include <olympus/files.h>
#include <string.h>

/* fails OLY_INVALID: a delimiter that is not one character, or one that numbers have; OLY_DTYPE: complex numbers. */
static inline oly_status oly_csv_form_of(const oly_csv_options *o, oly_dtype dtype, oly_csv_form *form)
{
    const char *delimiter = o->delimiter ? o->delimiter : ",";
    *form = (oly_csv_form){.delimiter = delimiter[0], .comments = o->comments ? o->comments : "#"};
    if (strlen(delimiter) != 1 || strchr("0123456789+-.eE\n\r", delimiter[0]))
        return oly_fail(OLY_INVALID,
                        "the delimiter \"%.20s\" is not one character that numbers and ends of lines do not have",
                        delimiter);
    if (dtype == OLY_COMPLEX64 || dtype == OLY_COMPLEX128)
        return oly_fail(OLY_DTYPE, "tables have real numbers; write oly_real and oly_imag, or use oly_save_npy");
    if (o->header_lines < 0)
        return oly_fail(OLY_INVALID, "%d lines of a header; there are 0 or more", o->header_lines);
    return OLY_OK;
}

static inline uint64_t oly_csv_arguments(const char *path, const oly_csv_options *o, oly_dtype dtype, uint64_t seed)
{
    uint64_t h = oly_hash_text(seed, path ? path : "");
    h = oly_hash_text(h, o->delimiter ? o->delimiter : ",");
    h = oly_hash_text(h, o->comments ? o->comments : "#");
    h = oly_hash_text(h, o->header ? o->header : "");
    return oly_hash_mix(h, (uint64_t)dtype << 32 | (uint32_t)o->header_lines);
}
#endif
