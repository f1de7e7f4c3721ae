/* Element types: names, sizes, kinds, and where two of them meet. Everything is read from dtype.def. Callable
 * by all. */
#include "graph/type.h"

typedef struct dtype_row {
    const char *name;
    size_t bytes;
    oly_kind kind;
} dtype_row;

static const dtype_row rows[OLY_N_DTYPES] = {
#define OLY_DTYPE(number, name, c_type, bytes, kind) [OLY_##number] = {name, bytes, OLY_KIND_##kind},
#include "graph/dtype.def"
#undef OLY_DTYPE
};

#define OLY_DTYPE(number, name, c_type, bytes, kind)                                                                   \
    _Static_assert(sizeof(c_type) == (bytes), "dtype.def: bytes of " name);
#include "graph/dtype.def"
#undef OLY_DTYPE

static bool known(oly_dtype d)
{
    return (unsigned)d < OLY_N_DTYPES;
}

const char *oly_dtype_name(oly_dtype dtype)
{
    return known(dtype) ? rows[dtype].name : "unknown";
}

size_t oly_dtype_size(oly_dtype dtype)
{
    return known(dtype) ? rows[dtype].bytes : 0;
}

oly_kind oly_dtype_kind(oly_dtype d)
{
    return known(d) ? rows[d].kind : OLY_KIND_BOOL;
}

/* The higher kind wins whole (int64 and float32 meet in float32, as in JAX). Within a kind the wider type holds
 * both, and int64 is the narrowest that holds int32 and uint32. */
oly_dtype oly_promote_types(oly_dtype a, oly_dtype b)
{
    oly_kind ka = oly_dtype_kind(a), kb = oly_dtype_kind(b);
    if (a == b || ka > kb)
        return a;
    if (kb > ka)
        return b;
    return ka == OLY_KIND_INTEGER ? OLY_INT64 : OLY_FLOAT64;
}
