/* What the files of bool and integer formulas share: their element types and choice by type. */
#ifndef OLY_ELEMENTWISE_INTEGER_H
#define OLY_ELEMENTWISE_INTEGER_H
#include "table.h"

#define BOOL_TYPES(X, ...) X(b8, bool, OLY_BOOL, __VA_ARGS__)
#define INTEGER_TYPES(X, ...)                                                                                          \
    X(i8, int8_t, OLY_INT8, __VA_ARGS__)                                                                               \
    X(i16, int16_t, OLY_INT16, __VA_ARGS__)                                                                            \
    X(i32, int32_t, OLY_INT32, __VA_ARGS__)                                                                            \
    X(i64, int64_t, OLY_INT64, __VA_ARGS__)                                                                            \
    X(u8, uint8_t, OLY_UINT8, __VA_ARGS__)                                                                             \
    X(u16, uint16_t, OLY_UINT16, __VA_ARGS__)                                                                          \
    X(u32, uint32_t, OLY_UINT32, __VA_ARGS__)                                                                          \
    X(u64, uint64_t, OLY_UINT64, __VA_ARGS__)
#define FLOAT_TYPES(X, ...)
#define COMPLEX_TYPES(X, ...)
typedef bool part_b8;
typedef int8_t part_i8;
typedef int16_t part_i16;
typedef int32_t part_i32;
typedef int64_t part_i64;
typedef uint8_t part_u8;
typedef uint16_t part_u16;
typedef uint32_t part_u32;
typedef uint64_t part_u64;

#define BY_NUMBER(name, x)                                                                                             \
    _Generic((x), int8_t                                                                                               \
             : name##_i8, int16_t                                                                                      \
             : name##_i16, int32_t                                                                                     \
             : name##_i32, int64_t                                                                                     \
             : name##_i64, uint8_t                                                                                     \
             : name##_u8, uint16_t                                                                                     \
             : name##_u16, uint32_t                                                                                    \
             : name##_u32, uint64_t                                                                                    \
             : name##_u64)
#define BY_TYPE(name, x)                                                                                               \
    _Generic((x), bool                                                                                                 \
             : name##_b8, int8_t                                                                                       \
             : name##_i8, int16_t                                                                                      \
             : name##_i16, int32_t                                                                                     \
             : name##_i32, int64_t                                                                                     \
             : name##_i64, uint8_t                                                                                     \
             : name##_u8, uint16_t                                                                                     \
             : name##_u16, uint32_t                                                                                    \
             : name##_u32, uint64_t                                                                                    \
             : name##_u64)
#endif
