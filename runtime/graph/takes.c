/* SPDX-License-Identifier: BSD-3-Clause */
/* Which element types an operation accepts, by the elementwise.def row of its tile operation. Called by type rules and
 * compositions (ops.h). */
#include "graph/ops.h"
#include "core/error.h"

enum { BOOLS = 1 << OLY_KIND_BOOL, INTEGERS = 1 << OLY_KIND_INTEGER, FLOATS = 1 << OLY_KIND_FLOAT };
enum { COMPLEX = 1 << OLY_KIND_COMPLEX, EVERYTHING = BOOLS | INTEGERS | FLOATS | COMPLEX };
#define OLY_BOOLS       BOOLS
#define OLY_INTEGERS    INTEGERS
#define OLY_FLOATS      FLOATS
#define OLY_COMPLEX     COMPLEX
#define OLY_NUMBERS     (INTEGERS | FLOATS)
#define OLY_ANY         (BOOLS | INTEGERS | FLOATS)
#define OLY_BITS        (BOOLS | INTEGERS)
#define OLY_EVERY_FLOAT FLOATS
#define OLY_INEXACT     (FLOATS | COMPLEX)
#define OLY_ALL_NUMBERS (INTEGERS | FLOATS | COMPLEX)
#define OLY_ALL         EVERYTHING

#define ROW(name, types, ...) [OLY_TILE_##name] = types,
static const uint8_t tile_takes[OLY_N_TILE_OPS] = {
#define OLY_TILE_UNARY      ROW
#define OLY_TILE_PART       ROW
#define OLY_TILE_TEST       ROW
#define OLY_TILE_BINARY     ROW
#define OLY_TILE_FAR_BINARY ROW
#define OLY_TILE_COMPARE    ROW
#define OLY_TILE_JOIN       ROW
#include "elementwise.def"
#include "elementwise_math.def"
    [OLY_TILE_copy] = EVERYTHING,      [OLY_TILE_select] = EVERYTHING, [OLY_TILE_convert] = EVERYTHING,
    [OLY_TILE_iota] = OLY_ALL_NUMBERS, [OLY_TILE_splat] = EVERYTHING,  [OLY_TILE_threefry2x32] = INTEGERS,
    [OLY_TILE_random_bits] = INTEGERS, [OLY_TILE_fma] = FLOATS,
};

static const char *const words[EVERYTHING + 1] = {
    [BOOLS] = "bools",
    [INTEGERS] = "integers",
    [BOOLS | INTEGERS] = "bools and integers",
    [FLOATS] = "floating numbers",
    [INTEGERS | FLOATS] = "real numbers",
    [BOOLS | INTEGERS | FLOATS] = "bools and real numbers",
    [COMPLEX] = "complex numbers",
    [FLOATS | COMPLEX] = "floating and complex numbers",
    [INTEGERS | FLOATS | COMPLEX] = "numbers",
};

static int taken(oly_op op)
{
    const oly_op_row *row = &oly_ops[op];
    if (row->lowering == OLY_LOWER_TILE)
        return tile_takes[oly_tile_first(row->detail)];
#define IS(a, number, ...) || row->detail == OLY_COMBINE_##number
    bool bitwise = row->lowering == OLY_LOWER_REDUCE && (false OLY_BIT_COMBINERS(IS, ));
    return bitwise ? BOOLS | INTEGERS : EVERYTHING;
}

oly_status oly_op_takes(oly_op op, const oly_type *x)
{
    int kinds = taken(op);
    if (kinds >> oly_dtype_kind(x->dtype) & 1)
        return OLY_OK;
    const char *to = kinds & INTEGERS ? "OLY_INT32"
                     : kinds & FLOATS ? "OLY_FLOAT32"
                     : kinds & BOOLS  ? "OLY_BOOL"
                                      : "OLY_COMPLEX64";
    return oly_fail(OLY_DTYPE, "%s of %s is not defined: it takes %s; convert with oly_astype(x, %s)", oly_ops[op].name,
                    oly_type_short(x), words[kinds] ? words[kinds] : "other types", to);
}
