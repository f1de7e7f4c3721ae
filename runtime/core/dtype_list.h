/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of element types: one row each, in the order of oly_dtype (olympus/array.h), in five families. Whatever is done for
 * every element type, tables of names and kernels alike, is an expansion of these lists; nothing else enumerates types. A new type
 * is a row here, its name in oly_dtype and, for a narrow one, its two conversions in narrow.h (docs/extending.md).
 *
 * A list takes a macro X and one argument `a` that it hands on, and expands to X(a, number, name, s, T, ...) for each row:
 *   number  the type is OLY_<number>
 *   name    as users and JAX write it
 *   s       suffix of the functions for it; as text its short name in messages ("f32"), but for bool
 *   T       C type that holds an element
 * and further columns by family, which X may leave to its "...". Rows end without separators: X brings its own.
 * A list inside a macro that another list, or the same one, expands is written OLY_LATER(list)(X, a), and the outermost list stands
 * in OLY_AGAIN(...): a macro is not expanded inside itself.
 *
 * Callable by all, kernels included. */
#ifndef OLY_CORE_DTYPE_LIST_H
#define OLY_CORE_DTYPE_LIST_H
#include "core/narrow.h"
#include <float.h>
#include <olympus/array.h>
#include <stdbool.h>

#define OLY_BOOL_TYPES(X, a) X(a, BOOL, "bool", b8, bool)

/* U, S: the unsigned and the signed type of the same size. W: the unsigned type in which arithmetic wraps (narrower ones would
 * become int). least, most: what it holds. */
#define OLY_SIGNED_TYPES(X, a)                                                                                         \
    X(a, INT8, "int8", i8, int8_t, uint8_t, int8_t, uint32_t, INT8_MIN, INT8_MAX)                                      \
    X(a, INT16, "int16", i16, int16_t, uint16_t, int16_t, uint32_t, INT16_MIN, INT16_MAX)                              \
    X(a, INT32, "int32", i32, int32_t, uint32_t, int32_t, uint32_t, INT32_MIN, INT32_MAX)                              \
    X(a, INT64, "int64", i64, int64_t, uint64_t, int64_t, uint64_t, INT64_MIN, INT64_MAX)
#define OLY_UNSIGNED_TYPES(X, a)                                                                                       \
    X(a, UINT8, "uint8", u8, uint8_t, uint8_t, int8_t, uint32_t, 0, UINT8_MAX)                                         \
    X(a, UINT16, "uint16", u16, uint16_t, uint16_t, int16_t, uint32_t, 0, UINT16_MAX)                                  \
    X(a, UINT32, "uint32", u32, uint32_t, uint32_t, int32_t, uint32_t, 0, UINT32_MAX)                                  \
    X(a, UINT64, "uint64", u64, uint64_t, uint64_t, int64_t, uint64_t, 0, UINT64_MAX)

/* Floating types narrower than float32, held as their bits T. Every operation widens its operands to float32 and rounds its
 * result once; reductions round once at the end. of, to: the conversions to and from float (narrow.h). top: bits of the largest
 * element, infinity where the type has one: what is larger is NaN. digits: bits of the fraction. least: exponent of the
 * smallest normal number. most: the largest finite number. meets: PROMOTES, or ALONE where it meets no other floating type
 * without a conversion that the program asks for. */
#define OLY_NARROW_TYPES(X, a)                                                                                         \
    X(a, FLOAT8_E4M3FN, "float8_e4m3fn", f8_e4m3fn, uint8_t, oly_float_of_e4m3fn, oly_e4m3fn_of_float, 0x7e, 3, -6,    \
      448, ALONE)                                                                                                      \
    X(a, FLOAT8_E5M2, "float8_e5m2", f8_e5m2, uint8_t, oly_float_of_e5m2, oly_e5m2_of_float, 0x7c, 2, -14, 57344,      \
      ALONE)                                                                                                           \
    X(a, FLOAT16, "float16", f16, uint16_t, oly_float_of_half, oly_half_of_float, 0x7c00, 10, -14, 65504, PROMOTES)    \
    X(a, BFLOAT16, "bfloat16", bf16, uint16_t, oly_float_of_bfloat, oly_bfloat_of_float, 0x7f80, 7, -126, 0x1.fep127,  \
      PROMOTES)

/* U: an unsigned type of the same size. top: bits of infinity. digits, least, most: as above. */
#define OLY_WIDE_TYPES(X, a)                                                                                           \
    X(a, FLOAT32, "float32", f32, float, uint32_t, 0x7f800000u, 23, -126, (double)FLT_MAX)                             \
    X(a, FLOAT64, "float64", f64, double, uint64_t, 0x7ff0000000000000u, 52, -1022, DBL_MAX)

/* real, r, R: the type of the parts, its suffix and its C type. */
#define OLY_COMPLEX_TYPES(X, a)                                                                                        \
    X(a, COMPLEX64, "complex64", c64, float _Complex, FLOAT32, f32, float)                                             \
    X(a, COMPLEX128, "complex128", c128, double _Complex, FLOAT64, f64, double)

#define OLY_INTEGER_TYPES(X, a) OLY_SIGNED_TYPES(X, a) OLY_UNSIGNED_TYPES(X, a)
#define OLY_REAL_TYPES(X, a)    OLY_INTEGER_TYPES(X, a) OLY_NARROW_TYPES(X, a) OLY_WIDE_TYPES(X, a)
#define OLY_EVERY_TYPE(X, a)    OLY_BOOL_TYPES(X, a) OLY_REAL_TYPES(X, a) OLY_COMPLEX_TYPES(X, a)

#define OLY_EMPTY()
#define OLY_LATER(list)           list##_LATER OLY_EMPTY()()
#define OLY_AGAIN(...)            __VA_ARGS__
#define OLY_INTEGER_TYPES_LATER() OLY_INTEGER_TYPES
#define OLY_NARROW_TYPES_LATER()  OLY_NARROW_TYPES
#define OLY_WIDE_TYPES_LATER()    OLY_WIDE_TYPES
#define OLY_COMPLEX_TYPES_LATER() OLY_COMPLEX_TYPES
#define OLY_EVERY_TYPE_LATER()    OLY_EVERY_TYPE

/* Bits of the NaN that operations make, and of 1, of a floating type with these columns. */
#define OLY_NAN_BITS(top)           ((top) | (top) >> 1)
#define OLY_ONE_BITS(digits, least) ((int64_t)(1 - (least)) << (digits))

/* Cells of a table by element type: [OLY_<number>] = a_<s>, and for tables by kinds of numbers. */
#define OLY_CELL(a, number, name, s, ...) [OLY_##number] = a##_##s,

/* Is arithmetic done in float32? */
static inline bool oly_is_narrow(oly_dtype d)
{
#define OLY_IS(a, number, ...) || d == OLY_##number
    return false OLY_NARROW_TYPES(OLY_IS, );
#undef OLY_IS
}
#endif
