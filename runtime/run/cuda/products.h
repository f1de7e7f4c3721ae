/* SPDX-License-Identifier: BSD-3-Clause */
/* Products by cuBLASLt, which computes large ones of floating-point and complex numbers; all others are for gemm.cu. Private to
 * runtime/run/cuda. */
#ifndef OLY_RUN_CUDA_PRODUCTS_H
#define OLY_RUN_CUDA_PRODUCTS_H
#include "run/cuda/launcher.h"

/* As oly_cuda_gemm. bias: a dense vector of one element for each column, added to the result; NULL: none. False: the library cannot; the result has yet to be computed. */
bool oly_cuda_library_product(oly_cuda_launching *l, const oly_gemm_task *t, const oly_gemm_part *parts, int n_parts,
                              const void *a, const void *b, const void *bias, void *c, oly_status *st);
#endif
