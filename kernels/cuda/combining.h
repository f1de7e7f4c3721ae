/* SPDX-License-Identifier: BSD-3-Clause */
/* Combining two elements, for the kernels of reductions, scans, scatters and windows. An accumulator is of one of six C++ types:
 * int64_t and uint64_t (also of narrower integers and bools: what is stored has the same bits), float (also of narrow types), double,
 * oly_c64, oly_c128. Kernels for one type may use int32_t (int32) and uint32_t (uint32, bools). NaN wins in max and min, complex numbers are ordered by their real part first: as cpu/combine.c. */
#ifndef OLY_CUDA_COMBINING_H
#define OLY_CUDA_COMBINING_H
#include "tasks.h" /* before device.h, whose OLY_DEVICE is a macro */

#include "element.h"

#define OLY_COMBINE_INTEGERS(T)                                                                                        \
    OLY_DEVICE T oly_combined(int c, T a, T b)                                                                         \
    {                                                                                                                  \
        switch (c) {                                                                                                   \
        case OLY_COMBINE_SUM: return (T)((uint64_t)a + (uint64_t)b);                                                   \
        case OLY_COMBINE_PROD: return (T)((uint64_t)a * (uint64_t)b);                                                  \
        case OLY_COMBINE_MAX: return a > b ? a : b;                                                                    \
        case OLY_COMBINE_MIN: return a < b ? a : b;                                                                    \
        case OLY_COMBINE_AND: return a & b;                                                                            \
        default: return a | b;                                                                                         \
        }                                                                                                              \
    }
OLY_COMBINE_INTEGERS(int32_t)
OLY_COMBINE_INTEGERS(uint32_t)
OLY_COMBINE_INTEGERS(int64_t)
OLY_COMBINE_INTEGERS(uint64_t)
#define OLY_COMBINE_FLOATS(T)                                                                                          \
    OLY_DEVICE T oly_combined(int c, T a, T b)                                                                         \
    {                                                                                                                  \
        switch (c) {                                                                                                   \
        case OLY_COMBINE_SUM: return a + b;                                                                            \
        case OLY_COMBINE_PROD: return a * b;                                                                           \
        case OLY_COMBINE_MAX: return (a != a) | (a > b) ? a : b;                                                       \
        default: return (a != a) | (a < b) ? a : b;                                                                    \
        }                                                                                                              \
    }
OLY_COMBINE_FLOATS(float)
OLY_COMBINE_FLOATS(double)
#define OLY_IS_NAN(x) ((x).re != (x).re || (x).im != (x).im)
#define OLY_COMBINE_COMPLEX(T, of, times)                                                                              \
    OLY_DEVICE T oly_combined(int c, T a, T b)                                                                         \
    {                                                                                                                  \
        switch (c) {                                                                                                   \
        case OLY_COMBINE_SUM: return of(a.re + b.re, a.im + b.im);                                                     \
        case OLY_COMBINE_PROD: return times(a, b);                                                                     \
        case OLY_COMBINE_MAX: return OLY_IS_NAN(a) || (!OLY_IS_NAN(b) && OLY_BEFORE(b, a)) ? a : b;                    \
        default: return OLY_IS_NAN(a) || (!OLY_IS_NAN(b) && OLY_BEFORE(a, b)) ? a : b;                                 \
        }                                                                                                              \
    }
OLY_COMBINE_COMPLEX(oly_c64, oly_w_of, oly_w_times)
OLY_COMBINE_COMPLEX(oly_c128, oly_z_of, oly_z_times)

/* -- elements of memory as accumulators, and back ------------------------------------------------------------------------------------ */
OLY_DEVICE void oly_read(int dtype, const char *base, int64_t i, int64_t *x)
{
    switch (dtype) {
    case OLY_T_i8: *x = ((const int8_t *)base)[i]; break;
    case OLY_T_i16: *x = ((const int16_t *)base)[i]; break;
    case OLY_T_i32: *x = ((const int32_t *)base)[i]; break;
    default: *x = ((const int64_t *)base)[i]; break;
    }
}
OLY_DEVICE void oly_read(int dtype, const char *base, int64_t i, uint64_t *x)
{
    switch (dtype) {
    case OLY_T_b8:
    case OLY_T_u8: *x = ((const uint8_t *)base)[i]; break;
    case OLY_T_u16: *x = ((const uint16_t *)base)[i]; break;
    case OLY_T_u32: *x = ((const uint32_t *)base)[i]; break;
    default: *x = ((const uint64_t *)base)[i]; break;
    }
}
OLY_DEVICE void oly_read(int dtype, const char *base, int64_t i, float *x)
{
    switch (dtype) {
    case OLY_T_f32: *x = ((const float *)base)[i]; break;
    case OLY_T_bf16: *x = oly_float_of_bfloat(((const uint16_t *)base)[i]); break;
    case OLY_T_f16: *x = oly_float_of_half(((const uint16_t *)base)[i]); break;
    case OLY_T_f8_e5m2: *x = oly_float_of_e5m2(((const uint8_t *)base)[i]); break;
    default: *x = oly_float_of_e4m3fn(((const uint8_t *)base)[i]); break;
    }
}
OLY_DEVICE void oly_read(int, const char *base, int64_t i, int32_t *x)
{
    *x = ((const int32_t *)base)[i];
}
OLY_DEVICE void oly_read(int dtype, const char *base, int64_t i, uint32_t *x)
{
    *x = dtype == OLY_T_u32 ? ((const uint32_t *)base)[i] : ((const uint8_t *)base)[i];
}
OLY_DEVICE void oly_read(int, const char *base, int64_t i, double *x)
{
    *x = ((const double *)base)[i];
}
OLY_DEVICE void oly_read(int, const char *base, int64_t i, oly_c64 *x)
{
    *x = ((const oly_c64 *)base)[i];
}
OLY_DEVICE void oly_read(int, const char *base, int64_t i, oly_c128 *x)
{
    x->re = ((const double *)base)[2 * i], x->im = ((const double *)base)[2 * i + 1];
}
OLY_DEVICE oly_value oly_stored(int, int32_t x)
{
    return oly_bits_value((uint32_t)x);
}
OLY_DEVICE oly_value oly_stored(int, uint32_t x)
{
    return oly_bits_value(x);
}
OLY_DEVICE oly_value oly_stored(int, int64_t x)
{
    return oly_bits_value((uint64_t)x);
}
OLY_DEVICE oly_value oly_stored(int, uint64_t x)
{
    return oly_bits_value(x);
}
OLY_DEVICE oly_value oly_stored(int dtype, float x)
{
    return dtype == OLY_T_f32 ? oly_put(x) : oly_bits_value(oly_narrowed(dtype, x));
}
OLY_DEVICE oly_value oly_stored(int, double x)
{
    return oly_put(x);
}
OLY_DEVICE oly_value oly_stored(int, oly_c64 x)
{
    return oly_put(x);
}
OLY_DEVICE oly_value oly_stored(int, oly_c128 x)
{
    return oly_put(x);
}
template <class A> OLY_DEVICE void oly_write(int dtype, char *base, int64_t i, A x)
{
    int bytes = oly_bytes_of(dtype);
    oly_store_bits(bytes, base + i * bytes, oly_stored(dtype, x));
}

/* Calls f<A>(...) with the accumulator of a type. */
#define OLY_BY_TYPE(dtype, f, ...)                                                                                     \
    switch (dtype) {                                                                                                   \
    case OLY_T_i8:                                                                                                     \
    case OLY_T_i16:                                                                                                    \
    case OLY_T_i32:                                                                                                    \
    case OLY_T_i64: f<int64_t>(__VA_ARGS__); break;                                                                    \
    case OLY_T_b8:                                                                                                     \
    case OLY_T_u8:                                                                                                     \
    case OLY_T_u16:                                                                                                    \
    case OLY_T_u32:                                                                                                    \
    case OLY_T_u64: f<uint64_t>(__VA_ARGS__); break;                                                                   \
    case OLY_T_f64: f<double>(__VA_ARGS__); break;                                                                     \
    case OLY_T_c64: f<oly_c64>(__VA_ARGS__); break;                                                                    \
    case OLY_T_c128: f<oly_c128>(__VA_ARGS__); break;                                                                  \
    default: f<float>(__VA_ARGS__); break;                                                                             \
    }
#endif
