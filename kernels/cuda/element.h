/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements of any type for kernels: oly_value holds the bits of one, oly_convert converts between types as the CPU's convert.c does,
 * and the numbers of types are those of oly_dtype. Part of the text of generated kernels. */
#ifndef OLY_CUDA_ELEMENT_H
#define OLY_CUDA_ELEMENT_H
#include "complex.h"

/* As oly_dtype in olympus/array.h; checked in launch.c. */
enum {
    OLY_T_b8,
    OLY_T_i8,
    OLY_T_i16,
    OLY_T_i32,
    OLY_T_i64,
    OLY_T_u8,
    OLY_T_u16,
    OLY_T_u32,
    OLY_T_u64,
    OLY_T_f8_e4m3fn,
    OLY_T_f8_e5m2,
    OLY_T_f16,
    OLY_T_bf16,
    OLY_T_f32,
    OLY_T_f64,
    OLY_T_c64,
    OLY_T_c128,
};

typedef struct alignas(16) oly_value {
    uint64_t lo, hi; /* the element's bits, followed by zeros */
} oly_value;

/* -- between bits and C++ types --------------------------------------------------------------------------------------------------- */
OLY_DEVICE oly_value oly_bits_value(uint64_t lo)
{
    oly_value v;
    v.lo = lo, v.hi = 0;
    return v;
}
#define OLY_PLAIN_VALUE(s, T, U, V, ...)                                                                               \
    OLY_DEVICE oly_value oly_put(T x)                                                                                  \
    {                                                                                                                  \
        return oly_bits_value((uint64_t)(V)x);                                                                         \
    }                                                                                                                  \
    OLY_DEVICE void oly_take(oly_value v, T *x)                                                                        \
    {                                                                                                                  \
        *x = (T)(V)v.lo;                                                                                               \
    }
OLY_SIGNED_OF(OLY_PLAIN_VALUE, )
OLY_UNSIGNED_OF(OLY_PLAIN_VALUE, )
OLY_DEVICE oly_value oly_put(float x)
{
    return oly_bits_value(oly_bits(x));
}
OLY_DEVICE oly_value oly_put(double x)
{
    return oly_bits_value(oly_bits(x));
}
OLY_DEVICE oly_value oly_put(oly_c64 x)
{
    return oly_bits_value((uint64_t)oly_bits(x.im) << 32 | oly_bits(x.re));
}
OLY_DEVICE oly_value oly_put(oly_c128 x)
{
    oly_value v;
    v.lo = oly_bits(x.re), v.hi = oly_bits(x.im);
    return v;
}
OLY_DEVICE void oly_take(oly_value v, float *x)
{
    *x = oly_float_of((uint32_t)v.lo);
}
OLY_DEVICE void oly_take(oly_value v, double *x)
{
    *x = oly_double_of(v.lo);
}
OLY_DEVICE void oly_take(oly_value v, oly_c64 *x)
{
    x->re = oly_float_of((uint32_t)v.lo), x->im = oly_float_of((uint32_t)(v.lo >> 32));
}
OLY_DEVICE void oly_take(oly_value v, oly_c128 *x)
{
    x->re = oly_double_of(v.lo), x->im = oly_double_of(v.hi);
}
template <class T> OLY_DEVICE T oly_as(oly_value v)
{
    T x;
    oly_take(v, &x);
    return x;
}

/* -- memory, by size -------------------------------------------------------------------------------------------------------------- */
OLY_DEVICE int oly_bytes_of(int dtype)
{
    switch (dtype) {
    case OLY_T_b8:
    case OLY_T_i8:
    case OLY_T_u8:
    case OLY_T_f8_e4m3fn:
    case OLY_T_f8_e5m2: return 1;
    case OLY_T_i16:
    case OLY_T_u16:
    case OLY_T_f16:
    case OLY_T_bf16: return 2;
    case OLY_T_i32:
    case OLY_T_u32:
    case OLY_T_f32: return 4;
    case OLY_T_c128: return 16;
    default: return 8;
    }
}
/* complex128 is aligned to 8 bytes only: programs may place it so. */
OLY_DEVICE oly_value oly_load_bits(int bytes, const void *at)
{
    oly_value v = oly_bits_value(0);
    switch (bytes) {
    case 1: v.lo = *(const uint8_t *)at; break;
    case 2: v.lo = *(const uint16_t *)at; break;
    case 4: v.lo = *(const uint32_t *)at; break;
    case 8: v.lo = *(const uint64_t *)at; break;
    default: v.lo = ((const uint64_t *)at)[0], v.hi = ((const uint64_t *)at)[1]; break;
    }
    return v;
}
OLY_DEVICE void oly_store_bits(int bytes, void *at, oly_value v)
{
    switch (bytes) {
    case 1: *(uint8_t *)at = (uint8_t)v.lo; break;
    case 2: *(uint16_t *)at = (uint16_t)v.lo; break;
    case 4: *(uint32_t *)at = (uint32_t)v.lo; break;
    case 8: *(uint64_t *)at = v.lo; break;
    default: ((uint64_t *)at)[0] = v.lo, ((uint64_t *)at)[1] = v.hi; break;
    }
}

/* -- narrow types ------------------------------------------------------------------------------------------------------------------- */
OLY_DEVICE bool oly_is_narrow_type(int dtype)
{
    return dtype >= OLY_T_f8_e4m3fn && dtype <= OLY_T_bf16;
}
OLY_DEVICE float oly_widened(int dtype, uint64_t bits)
{
    switch (dtype) {
    case OLY_T_f8_e4m3fn: return oly_float_of_e4m3fn((uint8_t)bits);
    case OLY_T_f8_e5m2: return oly_float_of_e5m2((uint8_t)bits);
    case OLY_T_f16: return oly_float_of_half((uint16_t)bits);
    default: return oly_float_of_bfloat((uint16_t)bits);
    }
}
OLY_DEVICE uint64_t oly_narrowed(int dtype, float x)
{
    switch (dtype) {
    case OLY_T_f8_e4m3fn: return oly_e4m3fn_of_float(x);
    case OLY_T_f8_e5m2: return oly_e5m2_of_float(x);
    case OLY_T_f16: return oly_half_of_float(x);
    default: return oly_bfloat_of_float(x);
    }
}
/* The same for operands and results of sums and products of floating numbers, whose NaNs on a GPU are all the same, whatever those of the
 * operands: only what is a NaN matters here, not its bits. An instruction for each. */
OLY_DEVICE float oly_widened_number(int dtype, uint64_t bits)
{
#ifdef __CUDA_ARCH__
    if (dtype == OLY_T_f16) {
        float x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((uint16_t)bits));
        return x;
    }
#endif
    return oly_widened(dtype, bits);
}
OLY_DEVICE uint64_t oly_narrowed_number(int dtype, float x)
{
#ifdef __CUDA_ARCH__
    uint16_t bits;
    if (dtype == OLY_T_f16) {
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
        return bits;
    }
#if __CUDA_ARCH__ >= 800
    if (dtype == OLY_T_bf16) { /* of two: the instruction for one is slower */
        uint32_t pair;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(x));
        return (uint16_t)pair;
    }
#endif
#endif
    return oly_narrowed(dtype, x);
}

/* -- conversion ------------------------------------------------------------------------------------------------------------------- */
OLY_DEVICE int64_t oly_signed_of(int dtype, uint64_t bits)
{
    switch (dtype) {
    case OLY_T_i8: return (int8_t)bits;
    case OLY_T_i16: return (int16_t)bits;
    case OLY_T_i32: return (int32_t)bits;
    default: return (int64_t)bits;
    }
}
/* Truncates and saturates; NaN gives 0. */
#define OLY_SATURATED(T, least, most, beyond)                                                                          \
    (uint64_t)(x >= beyond ? most : x <= -beyond ? least : x != x ? (T)0 : (T)x)
#define OLY_SATURATED_UP(T, most, beyond) (uint64_t)(x >= beyond ? most : x > 0 ? (T)x : (T)0)
template <class F> OLY_CALLED oly_value oly_of_float(F x, int to)
{
    uint64_t bits = 0;
    switch (to) {
    case OLY_T_b8: bits = x != 0; break;
    case OLY_T_i8: bits = (uint8_t)OLY_SATURATED(int8_t, (int8_t)-128, (int8_t)127, 0x1p7f); break;
    case OLY_T_i16: bits = (uint16_t)OLY_SATURATED(int16_t, (int16_t)-32768, (int16_t)32767, 0x1p15f); break;
    case OLY_T_i32: bits = (uint32_t)OLY_SATURATED(int32_t, INT32_MIN, INT32_MAX, 0x1p31f); break;
    case OLY_T_i64: bits = OLY_SATURATED(int64_t, INT64_MIN, INT64_MAX, 0x1p63f); break;
    case OLY_T_u8: bits = OLY_SATURATED_UP(uint8_t, (uint8_t)255, 0x1p8f); break;
    case OLY_T_u16: bits = OLY_SATURATED_UP(uint16_t, (uint16_t)65535, 0x1p16f); break;
    case OLY_T_u32: bits = OLY_SATURATED_UP(uint32_t, UINT32_MAX, 0x1p32f); break;
    case OLY_T_u64: bits = OLY_SATURATED_UP(uint64_t, UINT64_MAX, 0x1p64f); break;
    case OLY_T_f32: return oly_put((float)x);
    case OLY_T_f64: return oly_put((double)x);
    case OLY_T_c64: return oly_put(oly_w_of((float)x, 0));
    case OLY_T_c128: return oly_put(oly_z_of((double)x, 0));
    default: bits = oly_narrowed(to, sizeof(F) == 8 ? oly_float_rounded_to_odd((double)x) : (float)x);
    }
    return oly_bits_value(bits);
}
template <class I> OLY_CALLED oly_value oly_of_integer(I x, int to)
{
    switch (to) {
    case OLY_T_b8: return oly_bits_value(x != 0);
    case OLY_T_i8:
    case OLY_T_u8: return oly_bits_value((uint8_t)x);
    case OLY_T_i16:
    case OLY_T_u16: return oly_bits_value((uint16_t)x);
    case OLY_T_i32:
    case OLY_T_u32: return oly_bits_value((uint32_t)x);
    case OLY_T_i64:
    case OLY_T_u64: return oly_bits_value((uint64_t)x);
    case OLY_T_f32: return oly_put((float)x);
    case OLY_T_f64: return oly_put((double)x);
    case OLY_T_c64: return oly_put(oly_w_of((float)x, 0));
    case OLY_T_c128: return oly_put(oly_z_of((double)x, 0));
    default: return oly_bits_value(oly_narrowed(to, (float)x));
    }
}
OLY_DEVICE oly_value oly_convert(int from, int to, oly_value v)
{
    if (from == to)
        return v;
    switch (from) {
    case OLY_T_i8:
    case OLY_T_i16:
    case OLY_T_i32:
    case OLY_T_i64: return oly_of_integer<int64_t>(oly_signed_of(from, v.lo), to);
    case OLY_T_b8:
    case OLY_T_u8:
    case OLY_T_u16:
    case OLY_T_u32:
    case OLY_T_u64: return oly_of_integer<uint64_t>(v.lo, to);
    case OLY_T_f32: return oly_of_float<float>(oly_as<float>(v), to);
    case OLY_T_f64: return oly_of_float<double>(oly_as<double>(v), to);
    case OLY_T_c64:
        if (to == OLY_T_c128)
            return oly_put(oly_z_widened(oly_as<oly_c64>(v)));
        return oly_of_float<float>(oly_as<oly_c64>(v).re, to);
    case OLY_T_c128:
        if (to == OLY_T_c64)
            return oly_put(oly_z_as_c64(oly_as<oly_c128>(v)));
        return oly_of_float<double>(oly_as<oly_c128>(v).re, to);
    default: return oly_of_float<float>(oly_widened(from, v.lo), to);
    }
}
#endif
