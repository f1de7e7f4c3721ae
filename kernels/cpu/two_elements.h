/* Two elements made one, and lists of functions by element type: what kernels that combine elements in order share (scan.c,
 * scatter.c). A: the type that is worked in. */
#ifndef OLY_TWO_ELEMENTS_H
#define OLY_TWO_ELEMENTS_H
#include "core/half.h"
#include <complex.h>

#define ADD(A, x, y)      ((A)((x) + (y)))
#define MULTIPLY(A, x, y) ((A)((x) * (y)))
#define OR(A, x, y)       ((A)((x) | (y)))
#define AND(A, x, y)      ((A)((x) & (y)))
#define LARGER(A, x, y)   ((x) > (y) || (x) != (x) ? (x) : (y))
#define SMALLER(A, x, y)  ((x) < (y) || (x) != (x) ? (x) : (y))
#define SAME(x)           (x)

/* MAKE(suffix, type, unsigned type): integers wrap in the latter. */
#define OLY_EACH_INTEGER(MAKE)                                                                                         \
    MAKE(i8, int8_t, uint8_t)                                                                                          \
    MAKE(i16, int16_t, uint16_t)                                                                                       \
    MAKE(i32, int32_t, uint32_t)                                                                                       \
    MAKE(i64, int64_t, uint64_t)                                                                                       \
    MAKE(u8, uint8_t, uint8_t)                                                                                         \
    MAKE(u16, uint16_t, uint16_t)                                                                                      \
    MAKE(u32, uint32_t, uint32_t)                                                                                      \
    MAKE(u64, uint64_t, uint64_t)
#define OLY_EACH_COMPLEX(MAKE)                                                                                         \
    MAKE(c64, float _Complex)                                                                                          \
    MAKE(c128, double _Complex)

/* Entries of a table by element type. */
#define OLY_INTEGER_CELLS(name)                                                                                        \
    [OLY_INT8] = name##_i8, [OLY_INT16] = name##_i16, [OLY_INT32] = name##_i32, [OLY_INT64] = name##_i64,              \
    [OLY_UINT8] = name##_u8, [OLY_UINT16] = name##_u16, [OLY_UINT32] = name##_u32, [OLY_UINT64] = name##_u64
#define OLY_FLOAT_CELLS(name)                                                                                          \
    [OLY_FLOAT16] = name##_f16, [OLY_BFLOAT16] = name##_bf16, [OLY_FLOAT32] = name##_f32, [OLY_FLOAT64] = name##_f64
#define OLY_COMPLEX_CELLS(name) [OLY_COMPLEX64] = name##_c64, [OLY_COMPLEX128] = name##_c128
#endif
