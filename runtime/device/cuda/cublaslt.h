/* SPDX-License-Identifier: BSD-3-Clause */
/* cuBLASLt's functions, found in libcublasLt.so.13 or .12 when products first need them: the library is not linked with it and runs without
 * it. After oly_cublaslt_open has succeeded, they are oly_cublaslt.NAME. For runtime/run/cuda only. */
#ifndef OLY_DEVICE_CUDA_CUBLASLT_H
#define OLY_DEVICE_CUDA_CUBLASLT_H
#include <stdbool.h>

#if __has_include(<cublasLt.h>)
#define OLY_HAS_CUBLASLT 1
#include <cublasLt.h>
/* Descriptions are filled in place (..._internal, which the inline functions of the header call). */
#define OLY_CUBLASLT_FUNCTIONS(x)                                                                                      \
    x(cublasLtCreate) x(cublasLtDestroy) x(cublasLtGetStatusString) x(cublasLtMatmulDescInit_internal)                 \
        x(cublasLtMatmulDescSetAttribute) x(cublasLtMatrixLayoutInit_internal) x(cublasLtMatrixLayoutSetAttribute)     \
            x(cublasLtMatmulPreferenceInit_internal) x(cublasLtMatmulPreferenceSetAttribute)                           \
                x(cublasLtMatmulAlgoGetHeuristic) x(cublasLtMatmulAlgoCheck) x(cublasLtMatmul)
#define OLY_CUBLASLT_POINTER(name) __typeof__(name) *name;
typedef struct oly_cublaslt_functions {
    OLY_CUBLASLT_FUNCTIONS(OLY_CUBLASLT_POINTER)
} oly_cublaslt_functions;
#undef OLY_CUBLASLT_POINTER
extern oly_cublaslt_functions oly_cublaslt;
#else
#define OLY_HAS_CUBLASLT 0
#endif

/* Opens it at the first call. False: there is none, and why. Any thread. */
bool oly_cublaslt_open(const char **why);
#endif
