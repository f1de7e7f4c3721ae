/* SPDX-License-Identifier: BSD-3-Clause */
/* The bits of floating elements narrower than float32 (float16, bfloat16 and the 8-bit ones) to and from float, rounding to
 * nearest even. Without branches, so that loops over them become vector code. dtype_list.h says which functions belong to which
 * type. Callable by all, kernels included. */
#ifndef OLY_CORE_NARROW_H
#define OLY_CORE_NARROW_H
#ifndef __CUDACC_RTC__ /* which has no headers, and knows what is used of these */
#include <stdint.h>
#include <string.h>
#endif

#ifndef OLY_NARROW_INLINE /* kernels/cuda has other qualifiers */
#define OLY_NARROW_INLINE static inline
#endif

OLY_NARROW_INLINE uint32_t oly_float_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}
OLY_NARROW_INLINE float oly_float_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* GPUs have instructions, but for the bits of NaN, which are the CPU's. */
OLY_NARROW_INLINE float oly_float_of_half(uint16_t h)
{
#ifdef __CUDA_ARCH__
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    if ((h & 0x7fff) <= 0x7c00)
        return f;
#endif
    uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13;
    uint32_t bits =
        oly_float_bits(oly_float_of_bits(magnitude) * 0x1p112f);      /* the exponent's new bias; subnormals too */
    bits = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : bits; /* infinite, NaN */
    return oly_float_of_bits(bits | (uint32_t)(h & 0x8000) << 16);
}

OLY_NARROW_INLINE uint16_t oly_half_of_float(float f)
{
#ifdef __CUDA_ARCH__
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    if (f == f)
        return h;
#endif
    uint32_t bits = oly_float_bits(f), sign = bits & 0x80000000u, magnitude = bits ^ sign;
    /* Adding 0.5 leaves a subnormal's bits, rounded, at the end of the fraction. */
    uint32_t subnormal = oly_float_bits(oly_float_of_bits(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t normal = (magnitude + 0xc8000fffu + (magnitude >> 13 & 1)) >> 13;
    uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
    half = magnitude >= 0x47800000u ? special : half;
    return (uint16_t)(half | sign >> 16);
}

OLY_NARROW_INLINE float oly_float_of_bfloat(uint16_t b)
{
    return oly_float_of_bits((uint32_t)b << 16);
}

OLY_NARROW_INLINE uint16_t oly_bfloat_of_float(float f)
{
    uint32_t bits = oly_float_bits(f), rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 | 0x40) : rounded);
}

/* float8_e4m3fn: 4 bits of exponent, 3 of fraction, no infinities. What rounds beyond 448 becomes NaN. */
OLY_NARROW_INLINE float oly_float_of_e4m3fn(uint8_t b)
{
    uint32_t magnitude = (uint32_t)(b & 0x7f) << 20;
    uint32_t bits =
        oly_float_bits(oly_float_of_bits(magnitude) * 0x1p120f); /* the exponent's new bias; subnormals too */
    bits = magnitude == 0x07f00000u ? 0x7fc00000u : bits;
    return oly_float_of_bits(bits | (uint32_t)(b & 0x80) << 24);
}

OLY_NARROW_INLINE uint8_t oly_e4m3fn_of_float(float f)
{
    uint32_t bits = oly_float_bits(f), sign = bits & 0x80000000u, magnitude = bits ^ sign;
    /* Adding 2^14 leaves a subnormal's bits, rounded, at the end of the fraction. */
    uint32_t subnormal = oly_float_bits(oly_float_of_bits(magnitude) + 0x1p14f) - 0x46800000u;
    uint32_t normal = (magnitude + 0xc407ffffu + (magnitude >> 20 & 1)) >> 20;
    uint32_t byte = magnitude < 0x3c800000u ? subnormal : normal;
    byte = magnitude > 0x43e80000u ? 0x7fu : byte; /* beyond 464, halfway to what would be 480 */
    return (uint8_t)(byte | sign >> 24);
}

/* float8_e5m2: 5 bits of exponent, 2 of fraction: the upper byte of a float16. */
OLY_NARROW_INLINE float oly_float_of_e5m2(uint8_t b)
{
    return oly_float_of_half((uint16_t)(b << 8));
}

OLY_NARROW_INLINE uint8_t oly_e5m2_of_float(float f)
{
    uint32_t bits = oly_float_bits(f), sign = bits & 0x80000000u, magnitude = bits ^ sign;
    uint32_t subnormal = oly_float_bits(oly_float_of_bits(magnitude) + 0x1p7f) - 0x43000000u;
    uint32_t normal = (magnitude + 0xc80fffffu + (magnitude >> 21 & 1)) >> 21;
    uint32_t special = magnitude > 0x7f800000u ? 0x7eu : 0x7cu;
    uint32_t byte = magnitude < 0x38800000u ? subnormal : normal;
    byte = magnitude >= 0x47800000u ? special : byte;
    return (uint8_t)(byte | sign >> 24);
}

/* From double without rounding twice: what float cannot hold of the fraction is kept as an odd last bit. */
OLY_NARROW_INLINE float oly_float_rounded_to_odd(double d)
{
    float f = (float)d;
    uint32_t bits = oly_float_bits(f);
    uint32_t beyond = (double)f > d ? (d > 0) : (double)f < d ? (d < 0) : 0; /* rounded away from zero */
    uint32_t inexact = (double)f != d && d == d;
    return oly_float_of_bits((bits - beyond) | inexact);
}
#endif
