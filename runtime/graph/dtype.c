/* SPDX-License-Identifier: BSD-3-Clause */
/* Element types: names, sizes, kinds, and where two of them meet. Everything is read from core/dtype_list.h. Callable
 * by all. */
#include "core/dtype_list.h"
#include "core/error.h"
#include "graph/type.h"
#include <math.h>

typedef struct dtype_row {
    const char *name, *brief;
    size_t bytes;
    oly_kind kind;
    bool is_signed; /* of integers */
    bool alone;     /* meets no other floating type */
    oly_dtype real;
    int digits, least; /* of floating numbers: of the fraction; exponent of the smallest normal one */
    double most;       /* the largest finite one */
} dtype_row;

enum { PROMOTES = false, ALONE = true };

#define ROW(number, text, s, T, of_kind, ...)                                                                          \
    [OLY_##                                                                                                            \
        number] = {.name = text, .brief = #s, .bytes = sizeof(T), .kind = of_kind, .real = OLY_##number, __VA_ARGS__},
#define SIGNED_ROW(a, number, name, s, T, ...)   ROW(number, name, s, T, OLY_KIND_INTEGER, .is_signed = true)
#define UNSIGNED_ROW(a, number, name, s, T, ...) ROW(number, name, s, T, OLY_KIND_INTEGER, )
#define NARROW_ROW(a, number, name, s, T, of, to, top, fraction, exponent, largest, meets)                             \
    ROW(number, name, s, T, OLY_KIND_FLOAT, .alone = meets, .digits = fraction, .least = exponent, .most = largest)
#define WIDE_ROW(a, number, name, s, T, U, top, fraction, exponent, largest)                                           \
    ROW(number, name, s, T, OLY_KIND_FLOAT, .digits = fraction, .least = exponent, .most = largest)
#define COMPLEX_ROW(a, number, text, s, T, part, ...)                                                                  \
    [OLY_##number] = {.name = text, .brief = #s, .bytes = sizeof(T), .kind = OLY_KIND_COMPLEX, .real = OLY_##part},

static const dtype_row rows[OLY_N_DTYPES] = {
    [OLY_BOOL] = {.name = "bool", .brief = "bool", .bytes = sizeof(bool), .real = OLY_BOOL},
    OLY_SIGNED_TYPES(SIGNED_ROW, ) OLY_UNSIGNED_TYPES(UNSIGNED_ROW, ) OLY_NARROW_TYPES(NARROW_ROW, )
        OLY_WIDE_TYPES(WIDE_ROW, ) OLY_COMPLEX_TYPES(COMPLEX_ROW, )};

/* The list has every type of oly_dtype, in its order. */
#define PLACE(a, number, ...) place_##number,
enum { OLY_EVERY_TYPE(PLACE, ) n_places };
#define IS_IN_PLACE(a, number, name, ...)                                                                              \
    _Static_assert((int)OLY_##number == (int)place_##number, "dtype_list.h: place of " name);
OLY_EVERY_TYPE(IS_IN_PLACE, )
_Static_assert((int)OLY_N_DTYPES == (int)n_places, "dtype_list.h: types without a row");

static bool known(oly_dtype d)
{
    return (unsigned)d < OLY_N_DTYPES;
}

const char *oly_dtype_name(oly_dtype dtype)
{
    oly_pass(__func__);
    return known(dtype) ? rows[dtype].name : "unknown";
}

size_t oly_dtype_size(oly_dtype dtype)
{
    oly_pass(__func__);
    return known(dtype) ? rows[dtype].bytes : 0;
}

oly_kind oly_dtype_kind(oly_dtype d)
{
    return known(d) ? rows[d].kind : OLY_KIND_BOOL;
}

const char *oly_dtype_short(oly_dtype d)
{
    return known(d) ? rows[d].brief : "unknown";
}

bool oly_dtype_is_signed(oly_dtype d)
{
    return known(d) && rows[d].is_signed;
}

oly_dtype oly_dtype_real(oly_dtype d)
{
    return known(d) ? rows[d].real : d;
}

double oly_dtype_epsilon(oly_dtype d)
{
    return ldexp(1, -rows[oly_dtype_real(d)].digits);
}

double oly_dtype_smallest_normal(oly_dtype d)
{
    return ldexp(1, rows[oly_dtype_real(d)].least);
}

double oly_dtype_largest(oly_dtype d)
{
    return rows[oly_dtype_real(d)].most;
}

/* -- 64-bit results ------------------------------------------------------------------------------------- */
static bool wide;

bool oly_types_are_wide(void)
{
    return wide;
}

void oly_enable_x64(bool on)
{
    OLY_ENTER();
    wide = on;
}
bool oly_x64_enabled(void)
{
    oly_pass(__func__);
    return wide;
}
oly_dtype oly_default_int(void)
{
    return wide ? OLY_INT64 : OLY_INT32;
}
oly_dtype oly_default_float(void)
{
    return wide ? OLY_FLOAT64 : OLY_FLOAT32;
}

oly_dtype oly_default_complex(void)
{
    return wide ? OLY_COMPLEX128 : OLY_COMPLEX64;
}

oly_dtype oly_dtype_summed(oly_dtype d)
{
    oly_dtype whole = oly_default_int();
    if (oly_dtype_kind(d) == OLY_KIND_BOOL)
        return whole;
    if (oly_dtype_kind(d) != OLY_KIND_INTEGER || rows[d].bytes >= rows[whole].bytes)
        return d;
    return oly_dtype_is_signed(d) ? whole : wide ? OLY_UINT64 : OLY_UINT32;
}

oly_dtype oly_dtype_computed(oly_dtype d)
{
    return oly_is_narrow(d) ? OLY_FLOAT32 : d;
}

/* 64-bit integers, which float32 could not hold, become float64; the others float32, whatever the default is. */
oly_dtype oly_dtype_inexact(oly_dtype d)
{
    if (oly_dtype_kind(d) >= OLY_KIND_FLOAT)
        return d;
    return d == OLY_INT64 || d == OLY_UINT64 ? OLY_FLOAT64 : OLY_FLOAT32;
}

/* -- where two meet ------------------------------------------------------------------------------------- */

static oly_dtype integer_of(size_t bytes, bool is_signed)
{
    for (int d = 0; d < OLY_N_DTYPES; d++)
        if (rows[d].kind == OLY_KIND_INTEGER && rows[d].bytes == bytes &&
            oly_dtype_is_signed((oly_dtype)d) == is_signed)
            return (oly_dtype)d;
    return OLY_FLOAT64; /* nothing holds uint64 and negative numbers */
}

static oly_dtype meet_integers(oly_dtype a, oly_dtype b)
{
    if (oly_dtype_is_signed(a) == oly_dtype_is_signed(b))
        return rows[a].bytes > rows[b].bytes ? a : b;
    oly_dtype s = oly_dtype_is_signed(a) ? a : b, u = oly_dtype_is_signed(a) ? b : a;
    if (rows[s].bytes > rows[u].bytes)
        return s;
    if (rows[u].bytes == 4 && !wide)
        return OLY_INT32; /* int64, as the narrow mode has it */
    return integer_of(2 * rows[u].bytes, true);
}

static oly_dtype meet_floats(oly_dtype a, oly_dtype b)
{
    if (rows[a].alone || rows[b].alone)
        return OLY_N_DTYPES;
    return oly_is_narrow(a) && oly_is_narrow(b) ? OLY_FLOAT32 : rows[a].bytes > rows[b].bytes ? a : b;
}

/* The higher kind wins whole (int64 and float32 meet in float32, as in JAX). Within a kind the wider type holds both; where
 * none of the two does (signed and unsigned, two narrow types), the next wider one. source: JAX's type lattice */
oly_dtype oly_dtype_meet(oly_dtype a, oly_dtype b)
{
    oly_kind ka = oly_dtype_kind(a), kb = oly_dtype_kind(b);
    if (a == b)
        return a;
    if (ka < kb)
        return oly_dtype_meet(b, a);
    if (ka == OLY_KIND_COMPLEX) {
        if (known(b) && rows[b].alone)
            return OLY_N_DTYPES;
        return b == OLY_FLOAT64 || b == OLY_COMPLEX128 ? OLY_COMPLEX128 : a;
    }
    if (ka > kb)
        return a;
    return ka == OLY_KIND_INTEGER ? meet_integers(a, b) : meet_floats(a, b);
}

oly_status oly_dtypes_do_not_meet(oly_dtype a, oly_dtype b)
{
    return oly_fail(OLY_DTYPE,
                    "%s and %s have no common type: 8-bit floating types are not promoted; convert one with oly_astype",
                    oly_dtype_name(a), oly_dtype_name(b));
}

oly_dtype oly_promote_types(oly_dtype a, oly_dtype b)
{
    OLY_ENTER_ANY_TIME();
    if ((unsigned)a >= OLY_N_DTYPES || (unsigned)b >= OLY_N_DTYPES) {
        (void)oly_raise(
            oly_fail(OLY_INVALID, "element type %d does not exist", (int)((unsigned)a >= OLY_N_DTYPES ? a : b)));
        return OLY_N_DTYPES;
    }
    oly_dtype meet = oly_dtype_meet(a, b);
    if (meet == OLY_N_DTYPES)
        (void)oly_raise(oly_dtypes_do_not_meet(a, b));
    return meet;
}
