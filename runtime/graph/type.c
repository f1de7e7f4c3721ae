/* SPDX-License-Identifier: BSD-3-Clause */
/* Global types: size, equality, text, promotion with weak types, and the check that a shape is possible at all. */
#include "graph/type.h"
#include "core/error.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int64_t oly_type_size(const oly_type *t)
{
    int64_t n = 1;
    for (int d = 0; d < t->rank; d++)
        n *= t->shape[d];
    return n;
}

bool oly_type_equal(const oly_type *a, const oly_type *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (a->shape[d] != b->shape[d])
            return false;
    return true;
}

void oly_type_text(oly_text *t, const oly_type *type)
{
    oly_text_add(t, "%s", oly_type_short(type));
}

/* Appends to the text in buffer[0..size), truncated to what fits. */
static void append(char *buffer, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void append(char *buffer, size_t size, const char *format, ...)
{
    size_t used = strlen(buffer);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(buffer + used, size - used, format, arguments);
    va_end(arguments);
}

/* Without oly_text, as messages must not allocate. 12 extents of 20 characters and a mesh's 12 names of 31 fit. */
const char *oly_type_short(const oly_type *t)
{
    static __thread char buffers[8][1024];
    static __thread unsigned turn;
    char *text = buffers[turn++ % 8];
    size_t size = sizeof buffers[0];
    text[0] = 0;
    append(text, size, "%s%s[", t->weak ? "~" : "", oly_dtype_name(t->dtype));
    for (int d = 0; d < t->rank; d++) {
        const oly_axis_list *axes = &t->axes[d];
        append(text, size, "%s%" PRId64 "%s", d ? "," : "", t->shape[d], axes->n == 0 ? "" : axes->n == 1 ? "@" : "@(");
        for (int k = 0; k < axes->n; k++)
            append(text, size, "%s%s", k ? "," : "", t->mesh->name[axes->axis[k]]);
        append(text, size, "%s", axes->n > 1 ? ")" : "");
    }
    append(text, size, "]");
    oly_type_marks(text + strlen(text), size - strlen(text), t);
    return text;
}

/* JAX's lattice: bool < weak int < ints < weak float < floats. A weak type gives way to a type that is not weak, or to
 * one of a higher kind; against a lower kind it decides the kind, and the result stays weak. Weak floating point and
 * int64 give float64, as float32 could not hold the integers. */
oly_dtype oly_promote(const oly_type *a, const oly_type *b, bool *weak)
{
    const oly_type *number = a->weak ? a : b, *other = a->weak ? b : a;
    bool both = a->weak == b->weak;
    bool decides = !both && oly_dtype_kind(number->dtype) > oly_dtype_kind(other->dtype);
    *weak = both ? a->weak : decides; /* last: it may be a member of one of the types */
    if (both)
        return oly_dtype_meet(a->dtype, b->dtype);
    if (!decides)
        return other->dtype;
    if (oly_dtype_kind(other->dtype) == OLY_KIND_FLOAT) { /* a complex number takes the width of the float it meets */
        *weak = false;
        return oly_dtype_meet(OLY_COMPLEX64, other->dtype);
    }
    bool large = other->dtype == OLY_INT64 || other->dtype == OLY_UINT64 || oly_types_are_wide();
    if (!large)
        return number->dtype;
    return number->dtype == OLY_FLOAT32 ? OLY_FLOAT64 : number->dtype == OLY_COMPLEX64 ? OLY_COMPLEX128 : number->dtype;
}

oly_status oly_type_check(const oly_type *t)
{
    if ((unsigned)t->dtype >= OLY_N_DTYPES)
        return oly_fail(OLY_INVALID, "element type %d does not exist; use OLY_BOOL to OLY_COMPLEX128", (int)t->dtype);
    if (t->rank < 0 || t->rank > OLY_MAX_RANK)
        return oly_fail(OLY_INVALID, "%d dimensions asked for; arrays have 0 to %d, merge some with a reshape", t->rank,
                        OLY_MAX_RANK);
    int64_t bytes = (int64_t)oly_dtype_size(t->dtype); /* extents of 0 left out: strides must fit too */
    bool fits = true;
    for (int d = 0; d < t->rank; d++) {
        if (t->shape[d] < 0)
            return oly_fail(OLY_INVALID, "dimension %d of %s is negative; extents are 0 or more", d, oly_type_short(t));
        if (t->shape[d] > 0)
            fits = fits && !__builtin_mul_overflow(bytes, t->shape[d], &bytes);
    }
    if (!fits)
        return oly_fail(OLY_OVERFLOW, "%s has more than 2^63 bytes; use smaller extents", oly_type_short(t));
    return OLY_OK;
}
