/* The bits of floating elements narrower than float32 (float16, bfloat16) to and from float, rounding to
 * nearest even. Without branches, so that loops over them become vector code. dtype_list.h says which functions belong to which
 * type. Callable by all, kernels included. */
#ifndef OLY_CORE_NARROW_H
#define OLY_CORE_NARROW_H
#include <stdint.h>
#include <string.h>

static inline uint32_t oly_float_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}
static inline float oly_float_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline float oly_float_of_half(uint16_t h)
{
    uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13;
    uint32_t bits =
        oly_float_bits(oly_float_of_bits(magnitude) * 0x1p112f);      /* the exponent's new bias; subnormals too */
    bits = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : bits; /* infinite, NaN */
    return oly_float_of_bits(bits | (uint32_t)(h & 0x8000) << 16);
}

static inline uint16_t oly_half_of_float(float f)
{
    uint32_t bits = oly_float_bits(f), sign = bits & 0x80000000u, magnitude = bits ^ sign;
    /* Adding 0.5 leaves a subnormal's bits, rounded, at the end of the fraction. */
    uint32_t subnormal = oly_float_bits(oly_float_of_bits(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t normal = (magnitude + 0xc8000fffu + (magnitude >> 13 & 1)) >> 13;
    uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
    half = magnitude >= 0x47800000u ? special : half;
    return (uint16_t)(half | sign >> 16);
}

static inline float oly_float_of_bfloat(uint16_t b)
{
    return oly_float_of_bits((uint32_t)b << 16);
}

static inline uint16_t oly_bfloat_of_float(float f)
{
    uint32_t bits = oly_float_bits(f), rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 | 0x40) : rounded);
}

/* From double without rounding twice: what float cannot hold of the fraction is kept as an odd last bit. */
static inline float oly_float_rounded_to_odd(double d)
{
    float f = (float)d;
    uint32_t bits = oly_float_bits(f);
    uint32_t beyond = (double)f > d ? (d > 0) : (double)f < d ? (d < 0) : 0; /* rounded away from zero */
    uint32_t inexact = (double)f != d && d == d;
    return oly_float_of_bits((bits - beyond) | inexact);
}
#endif
