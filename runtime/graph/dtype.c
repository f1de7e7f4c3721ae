/* Element types: names, sizes, kinds, and where two of them meet. Everything is read from dtype.def. Callable
 * by all. */
#include "graph/type.h"
#include "core/error.h"

typedef struct dtype_row {
    const char *name, *brief;
    size_t bytes;
    oly_kind kind;
} dtype_row;

static const dtype_row rows[OLY_N_DTYPES] = {
#define OLY_DTYPE(number, name, brief, c_type, bytes, kind) [OLY_##number] = {name, brief, bytes, OLY_KIND_##kind},
#include "graph/dtype.def"
#undef OLY_DTYPE
};

#define OLY_DTYPE(number, name, brief, c_type, bytes, kind)                                                            \
    _Static_assert(sizeof(c_type) == (bytes), "dtype.def: bytes of " name);
#include "graph/dtype.def"
#undef OLY_DTYPE

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
    return d >= OLY_INT8 && d <= OLY_INT64;
}

oly_dtype oly_dtype_real(oly_dtype d)
{
    return d == OLY_COMPLEX64 ? OLY_FLOAT32 : d == OLY_COMPLEX128 ? OLY_FLOAT64 : d;
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
    return d == OLY_FLOAT16 || d == OLY_BFLOAT16 ? OLY_FLOAT32 : d;
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

/* The higher kind wins whole (int64 and float32 meet in float32, as in JAX). Within a kind the wider type holds both; where
 * none of the two does (signed and unsigned, float16 and bfloat16), the next wider one. source: JAX's type lattice */
oly_dtype oly_promote_types(oly_dtype a, oly_dtype b)
{
    oly_pass(__func__);
    oly_kind ka = oly_dtype_kind(a), kb = oly_dtype_kind(b);
    if (a == b)
        return a;
    if (ka < kb)
        return oly_promote_types(b, a);
    if (ka == OLY_KIND_COMPLEX)
        return b == OLY_FLOAT64 || b == OLY_COMPLEX128 ? OLY_COMPLEX128 : a;
    if (ka > kb)
        return a;
    if (ka == OLY_KIND_INTEGER)
        return meet_integers(a, b);
    return rows[a].bytes == 2 && rows[b].bytes == 2 ? OLY_FLOAT32 : rows[a].bytes > rows[b].bytes ? a : b;
}
