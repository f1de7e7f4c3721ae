/* SPDX-License-Identifier: BSD-3-Clause */
/* The widest vectors of the instruction set being compiled for, for the stencil kernels. Included once for float and
 * once for double by each of them, with REAL, REAL_BYTES and SUFFIX defined. Multiplication and addition are fused if
 * the instruction set has that; if not, they are two operations, everywhere. */

#define JOIN_(a, b) a##_##b
#define JOIN(a, b)  JOIN_(a, b)
#define NAME(x)     JOIN(x, SUFFIX)

#ifndef STENCIL_VECTOR_BYTES
typedef int32_t bits_4;
typedef int64_t bits_8;
#if defined(__AVX512F__)
#include <immintrin.h>
#define STENCIL_VECTOR_BYTES  64
#define FUSED_float(a, b, c)  _mm512_fmadd_ps(a, b, c)
#define FUSED_double(a, b, c) _mm512_fmadd_pd(a, b, c)
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define STENCIL_VECTOR_BYTES  32
#define FUSED_float(a, b, c)  _mm256_fmadd_ps(a, b, c)
#define FUSED_double(a, b, c) _mm256_fmadd_pd(a, b, c)
#elif defined(__aarch64__)
#include <arm_neon.h>
#define STENCIL_VECTOR_BYTES  16
#define FUSED_float(a, b, c)  vfmaq_f32(c, a, b)
#define FUSED_double(a, b, c) vfmaq_f64(c, a, b)
#else /* no fused multiply-add: product, then sum, everywhere */
#define STENCIL_VECTOR_BYTES  16
#define FUSED_float(a, b, c)  ((a) * (b) + (c))
#define FUSED_double(a, b, c) ((a) * (b) + (c))
#endif
#endif

#define LANES (STENCIL_VECTOR_BYTES / REAL_BYTES)
#define V     NAME(vector)

typedef REAL V __attribute__((vector_size(STENCIL_VECTOR_BYTES), may_alias));
typedef REAL NAME(loose) __attribute__((vector_size(STENCIL_VECTOR_BYTES), aligned(REAL_BYTES), may_alias));

static inline __attribute__((always_inline)) V NAME(fused)(V a, V b, V c)
{
    return JOIN(FUSED, REAL)(a, b, c);
}

static inline V NAME(spread)(REAL x)
{
    return x - (V){0}; /* subtraction keeps -0 */
}
