/* SPDX-License-Identifier: BSD-3-Clause */
/* Products in registers (gemm_registers.h) of float32 and float64. For gemm_tile.h, gemm_few.h and convolve.c. */
#ifndef OLY_CPU_GEMM_REAL_TILES_H
#define OLY_CPU_GEMM_REAL_TILES_H
#include "cpu/gemm_registers.h"

/* X(s, T, V, M, lanes, SET, LOAD, STORE, MADD) for each of the two, see OLY_TILES. */
#ifdef OLY_HAS_LONG_TILES
#define TILE_FUSED_F32(sum, x, y) _mm512_fmadd_ps(x, y, sum)
#define TILE_FUSED_F64(sum, x, y) _mm512_fmadd_pd(x, y, sum)
#define OLY_REAL_VECTORS(X)                                                                                            \
    X(f32, float, __m512, __mmask16, 16, _mm512_set1_ps, _mm512_maskz_loadu_ps, _mm512_mask_storeu_ps, TILE_FUSED_F32) \
    X(f64, double, __m512d, __mmask8, 8, _mm512_set1_pd, _mm512_maskz_loadu_pd, _mm512_mask_storeu_pd, TILE_FUSED_F64)
#elif defined(OLY_HAS_TILES)
#define TILE_FUSED_F32(sum, x, y) _mm256_fmadd_ps(x, y, sum)
#define TILE_FUSED_F64(sum, x, y) _mm256_fmadd_pd(x, y, sum)
#define OLY_REAL_VECTORS(X)                                                                                            \
    X(f32, float, __m256, uint8_t, 8, _mm256_set1_ps, tile_load_f32, tile_store_f32, TILE_FUSED_F32)                   \
    X(f64, double, __m256d, uint8_t, 4, _mm256_set1_pd, tile_load_f64, tile_store_f64, TILE_FUSED_F64)
#endif
#ifdef OLY_HAS_TILES
OLY_REAL_VECTORS(OLY_TILES)
#endif
#endif
