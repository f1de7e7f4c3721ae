/* SPDX-License-Identifier: BSD-3-Clause */
/* The emulated cuBLASLt: D = epilogue(alpha op(A) op(B) + beta C), in plain loops, batch by batch, both orders of elements. Each element of
 * the product is one sum over k from 0 upwards, in the compute type (float: every product and sum rounded to float, not contracted;
 * 16-bit operands likewise; int32 for bytes), then alpha, C, bias and activation in the same type. Large products, before their epilogue, are
 * the program's OpenBLAS's, if it has one: real libraries sum in other orders, too. What an algorithm was told of buffers' alignment
 * and of workspace must be so when it is used, and rows aligned like those it was chosen for. Work of a stream, like a kernel. */
#include "driver.h"
#include <complex.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#pragma GCC visibility push(default)
#include <cublasLt.h>
#pragma GCC visibility pop

typedef struct layout { /* in a cublasLtMatrixLayoutOpaque_t */
    int32_t type, order;
    uint64_t rows, columns;
    int64_t leading, batch_stride;
    int32_t batches;
} layout;

typedef struct product { /* in a cublasLtMatmulDescOpaque_t */
    int32_t compute, scale, pointers, transpose[3], epilogue, bias_type;
    const void *bias;
    int64_t bias_stride;
} product;
typedef struct preference { /* in a cublasLtMatmulPreferenceOpaque_t */
    uint64_t workspace;
    uint32_t aligned[4], reductions; /* A, B, C, D */
} preference;

/* In a cublasLtMatmulAlgo_t. Of A, B, C, D in bytes: alignment of where the buffer begins, and of the rows it was chosen for. */
typedef struct algorithm {
    uint64_t magic, workspace;
    uint32_t aligned[4], spaced[4];
} algorithm;
enum { MAGIC = 0x656d75 };
_Static_assert(sizeof(preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t) &&
                   sizeof(algorithm) <= sizeof(cublasLtMatmulAlgo_t),
               "fits");
_Static_assert(sizeof(layout) <= sizeof(cublasLtMatrixLayoutOpaque_t) &&
                   sizeof(product) <= sizeof(cublasLtMatmulDescOpaque_t),
               "fits");

static const layout *layout_of(cublasLtMatrixLayout_t l)
{
    return (const layout *)l;
}

/* -- handles and descriptions ------------------------------------------------------------------------------------------------------------ */

size_t cublasLtGetVersion(void)
{
    return 130000;
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS         ? "CUBLAS_STATUS_SUCCESS"
           : status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
           : status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                                   : "CUBLAS_STATUS_EXECUTION_FAILED";
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return cublasLtGetStatusName(status);
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = calloc(1, 64);
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t l, size_t size, cudaDataType type,
                                                 uint64_t rows, uint64_t columns, int64_t leading)
{
    layout made = {.type = (int32_t)type,
                   .order = CUBLASLT_ORDER_COL,
                   .rows = rows,
                   .columns = columns,
                   .leading = leading,
                   .batches = 1};
    memset(l, 0, size);
    memcpy(l, &made, sizeof made);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, cudaDataType type, uint64_t rows, uint64_t columns,
                                          int64_t leading)
{
    *l = malloc(sizeof **l);
    return *l ? cublasLtMatrixLayoutInit_internal(*l, sizeof **l, type, rows, columns, leading)
              : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
    free(l);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set(void *field, size_t size, const void *value, size_t given)
{
    if (given != size)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(field, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

#define FIELD(attribute, field)                                                                                        \
    case attribute: return set(&(field), sizeof(field), value, bytes)

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes)
{
    layout *m = (layout *)l;
    switch (attribute) {
        FIELD(CUBLASLT_MATRIX_LAYOUT_TYPE, m->type);
        FIELD(CUBLASLT_MATRIX_LAYOUT_ORDER, m->order);
        FIELD(CUBLASLT_MATRIX_LAYOUT_ROWS, m->rows);
        FIELD(CUBLASLT_MATRIX_LAYOUT_COLS, m->columns);
        FIELD(CUBLASLT_MATRIX_LAYOUT_LD, m->leading);
        FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, m->batches);
        FIELD(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, m->batch_stride);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t d, size_t size, cublasComputeType_t compute,
                                               cudaDataType_t scale)
{
    product made = {
        .compute = (int32_t)compute, .scale = (int32_t)scale, .epilogue = CUBLASLT_EPILOGUE_DEFAULT, .bias_type = -1};
    memset(d, 0, size);
    memcpy(d, &made, sizeof made);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t compute, cudaDataType_t scale)
{
    *d = malloc(sizeof **d);
    return *d ? cublasLtMatmulDescInit_internal(*d, sizeof **d, compute, scale) : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
    free(d);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    product *p = (product *)d;
    switch (attribute) {
        FIELD(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, p->compute);
        FIELD(CUBLASLT_MATMUL_DESC_SCALE_TYPE, p->scale);
        FIELD(CUBLASLT_MATMUL_DESC_POINTER_MODE, p->pointers);
        FIELD(CUBLASLT_MATMUL_DESC_TRANSA, p->transpose[0]);
        FIELD(CUBLASLT_MATMUL_DESC_TRANSB, p->transpose[1]);
        FIELD(CUBLASLT_MATMUL_DESC_TRANSC, p->transpose[2]);
        FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE, p->epilogue);
        FIELD(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p->bias);
        FIELD(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, p->bias_stride);
        FIELD(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, p->bias_type);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t p, size_t size)
{
    const preference made = {.aligned = {256, 256, 256, 256}, .reductions = CUBLASLT_REDUCTION_SCHEME_MASK};
    memset(p, 0, size);
    memcpy(p, &made, sizeof made);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
    *p = malloc(sizeof **p);
    return *p ? cublasLtMatmulPreferenceInit_internal(*p, sizeof **p) : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
    free(p);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t opaque,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t bytes)
{
    preference *p = (preference *)opaque;
    switch (attribute) {
        FIELD(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, p->workspace);
        FIELD(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, p->reductions);
        FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p->aligned[0]);
        FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p->aligned[1]);
        FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p->aligned[2]);
        FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p->aligned[3]);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

/* -- elements: complex double holds each exactly ------------------------------------------------------------------------------------------ */

static size_t element_bytes(int type)
{
    return type == CUDA_R_8I                           ? 1
           : type == CUDA_R_16F || type == CUDA_R_16BF ? 2
           : type == CUDA_R_32F || type == CUDA_R_32I  ? 4
           : type == CUDA_R_64F || type == CUDA_C_32F  ? 8
           : type == CUDA_C_64F                        ? 16
                                                       : 0;
}

static float of_half(uint16_t h)
{
    int exponent = h >> 10 & 31;
    float value = exponent == 0    ? ldexpf((float)(h & 1023), -24)
                  : exponent == 31 ? (h & 1023 ? NAN : INFINITY)
                                   : ldexpf((float)(1024 + (h & 1023)), exponent - 25);
    return h & 0x8000 ? -value : value;
}

/* To the nearest, ties to even. */
static uint16_t to_half(float f)
{
    uint16_t sign = signbit(f) ? 0x8000 : 0;
    float a = fabsf(f);
    if (isnan(f))
        return sign | 0x7e00;
    if (a >= 65520)
        return sign | 0x7c00;
    int exponent;
    frexpf(a, &exponent);
    exponent = exponent < -13 ? -13 : exponent;
    uint32_t bits = (uint32_t)nearbyintf(ldexpf(a, 11 - exponent)); /* up to 2048 */
    return (uint16_t)(sign | (bits < 1024 ? bits : (uint32_t)(exponent + 13) * 1024 + bits));
}

static uint16_t to_brain(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    if (isnan(f))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static complex double get(int type, const void *at, int64_t k)
{
    uint32_t bits;
    float f;
    switch (type) {
    case CUDA_R_8I: return ((const int8_t *)at)[k];
    case CUDA_R_32I: return ((const int32_t *)at)[k];
    case CUDA_R_16F: return of_half(((const uint16_t *)at)[k]);
    case CUDA_R_16BF:
        bits = (uint32_t)((const uint16_t *)at)[k] << 16;
        memcpy(&f, &bits, 4);
        return f;
    case CUDA_R_32F: return ((const float *)at)[k];
    case CUDA_R_64F: return ((const double *)at)[k];
    case CUDA_C_32F: return ((const complex float *)at)[k];
    default: return ((const complex double *)at)[k];
    }
}

static void put(int type, void *at, int64_t k, complex double v)
{
    switch (type) {
    case CUDA_R_8I: ((int8_t *)at)[k] = (int8_t)(long)creal(v); break;
    case CUDA_R_32I: ((int32_t *)at)[k] = (int32_t)(long)creal(v); break;
    case CUDA_R_16F: ((uint16_t *)at)[k] = to_half((float)creal(v)); break;
    case CUDA_R_16BF: ((uint16_t *)at)[k] = to_brain((float)creal(v)); break;
    case CUDA_R_32F: ((float *)at)[k] = (float)creal(v); break;
    case CUDA_R_64F: ((double *)at)[k] = creal(v); break;
    case CUDA_C_32F: ((complex float *)at)[k] = (complex float)v; break;
    default: ((complex double *)at)[k] = v;
    }
}

static int64_t place(const layout *l, int64_t row, int64_t column)
{
    return l->order == CUBLASLT_ORDER_ROW ? row * l->leading + column : column * l->leading + row;
}

/* -- products ------------------------------------------------------------------------------------------------------------------------------ */

typedef struct product_work {
    emulated_work work;
    product p;
    layout a, b, c, d;
    const void *A, *B, *C;
    void *D, *workspace;
    size_t workspace_bytes;
    complex double alpha, beta;
} product_work;

static bool is_wide(const product *p)
{
    return p->compute == CUBLAS_COMPUTE_64F || p->compute == CUBLAS_COMPUTE_64F_PEDANTIC ||
           p->compute == CUBLAS_COMPUTE_32I || p->compute == CUBLAS_COMPUTE_32I_PEDANTIC;
}

/* To the type in which is computed. */
static complex double narrow(const product *p, complex double v)
{
    return is_wide(p) ? v : (complex double)(complex float)v;
}

static complex double times(const product *p, complex double x, complex double y)
{
    double re = creal(x) * creal(y), im = 0;
    if (cimag(x) == 0 && cimag(y) == 0)
        return narrow(p, re);
    if (is_wide(p))
        return CMPLX(re - cimag(x) * cimag(y), creal(x) * cimag(y) + cimag(x) * creal(y));
    re = (float)((float)re - (float)(cimag(x) * cimag(y)));
    im = (float)((float)(creal(x) * cimag(y)) + (float)(cimag(x) * creal(y)));
    return CMPLX(re, im);
}

static complex double operand(const layout *l, int operation, const void *at, int64_t row, int64_t column)
{
    complex double v = get(l->type, at, operation == CUBLAS_OP_N ? place(l, row, column) : place(l, column, row));
    return operation == CUBLAS_OP_C ? conj(v) : v;
}

static double activate(int epilogue, double v)
{
    if (epilogue & CUBLASLT_EPILOGUE_RELU)
        return v > 0 ? v : 0;
    if (epilogue & CUBLASLT_EPILOGUE_GELU)
        return 0.5 * v * (1 + tanh(0.79788456080286535588 * (v + 0.044715 * v * v * v)));
    return v;
}

static const void *batch(const layout *l, const void *at, int64_t k)
{
    return (const char *)at + k * l->batch_stride * (int64_t)element_bytes(l->type);
}

/* Bias and activation of an element of the product. */
static complex double finish(const product_work *w, complex double sum, int64_t i, int64_t k)
{
    const product *p = &w->p;
    int bias_type = p->bias_type >= 0 ? p->bias_type : w->d.type;
    if (p->epilogue & CUBLASLT_EPILOGUE_BIAS)
        sum = narrow(p, sum + get(bias_type, p->bias, i + k * p->bias_stride));
    if (p->epilogue != CUBLASLT_EPILOGUE_DEFAULT && p->epilogue != CUBLASLT_EPILOGUE_BIAS)
        sum = narrow(p, activate(p->epilogue, creal(sum)));
    return sum;
}

static void multiply(const product_work *w, int64_t k)
{
    const product *p = &w->p;
    const void *A = batch(&w->a, w->A, k), *B = batch(&w->b, w->B, k), *C = batch(&w->c, w->C, k);
    void *D = (void *)(uintptr_t)batch(&w->d, w->D, k);
    int64_t inner = (int64_t)(p->transpose[0] == CUBLAS_OP_N ? w->a.columns : w->a.rows);
    for (int64_t i = 0; i < (int64_t)w->d.rows; i++)
        for (int64_t j = 0; j < (int64_t)w->d.columns; j++) {
            complex double sum = 0;
            for (int64_t n = 0; n < inner; n++)
                sum = narrow(p, sum + times(p, operand(&w->a, p->transpose[0], A, i, n),
                                            operand(&w->b, p->transpose[1], B, n, j)));
            sum = times(p, w->alpha, sum);
            if (w->beta != 0)
                sum = narrow(p, sum + times(p, w->beta, get(w->c.type, C, place(&w->c, i, j))));
            put(w->d.type, D, place(&w->d, i, j), finish(w, sum, i, k));
        }
}

/* What OpenBLAS has computed is in D. */
static void finish_all(const product_work *w, int64_t k)
{
    void *D = (void *)(uintptr_t)batch(&w->d, w->D, k);
    for (int64_t i = 0; i < (int64_t)w->d.rows && w->p.epilogue != CUBLASLT_EPILOGUE_DEFAULT; i++)
        for (int64_t j = 0; j < (int64_t)w->d.columns; j++) {
            int64_t at = place(&w->d, i, j);
            put(w->d.type, D, at, finish(w, get(w->d.type, D, at), i, k));
        }
}

/* -- large ones ---------------------------------------------------------------------------------------------------------------------------- */

/* CBLAS's constants: columns dense; without and with transposition. */
enum { COLUMN_MAJOR = 102, PLAIN = 111, TRANSPOSED = 112, CONJUGATED = 113, LARGE = 1 << 16 };
typedef void real_single(int, int, int, int, int, int, float, const void *, int, const void *, int, float, void *, int);
typedef void real_double(int, int, int, int, int, int, double, const void *, int, const void *, int, double, void *,
                         int);
typedef void of_complex(int, int, int, int, int, int, const void *, const void *, int, const void *, int, const void *,
                        void *, int);

static int transposition(int operation)
{
    return operation == CUBLAS_OP_N ? PLAIN : operation == CUBLAS_OP_T ? TRANSPOSED : CONJUGATED;
}

static bool is_plain(const product_work *w)
{
    const layout *all[] = {&w->a, &w->b, &w->c, &w->d};
    for (int k = 0; k < 4; k++)
        if (all[k]->order != CUBLASLT_ORDER_COL || all[k]->type != w->d.type || all[k]->leading > INT32_MAX)
            return false;
    return w->beta == 0;
}

/* False: not a large product, or the program has no OpenBLAS. */
static bool multiply_large(const product_work *w, int64_t k)
{
    const product *p = &w->p;
    int inner = (int)(p->transpose[0] == CUBLAS_OP_N ? w->a.columns : w->a.rows), rows = (int)w->d.rows;
    int columns = (int)w->d.columns, ta = transposition(p->transpose[0]), tb = transposition(p->transpose[1]);
    const char *name = w->d.type == CUDA_R_32F   ? "cblas_sgemm"
                       : w->d.type == CUDA_R_64F ? "cblas_dgemm"
                       : w->d.type == CUDA_C_32F ? "cblas_cgemm"
                       : w->d.type == CUDA_C_64F ? "cblas_zgemm"
                                                 : NULL;
    void *found = name && is_plain(w) && (double)rows * columns * inner >= LARGE ? dlsym(RTLD_DEFAULT, name) : NULL;
    const void *A = batch(&w->a, w->A, k), *B = batch(&w->b, w->B, k);
    void *D = (void *)(uintptr_t)batch(&w->d, w->D, k);
    int la = (int)w->a.leading, lb = (int)w->b.leading, ld = (int)w->d.leading;
    const complex float single[] = {(complex float)w->alpha, 0};
    const complex double zero = 0;
    if (!found)
        return false;
    switch (w->d.type) {
    case CUDA_R_32F:
        (*(real_single **)&found)(COLUMN_MAJOR, ta, tb, rows, columns, inner, (float)creal(w->alpha), A, la, B, lb, 0,
                                  D, ld);
        break;
    case CUDA_R_64F:
        (*(real_double **)&found)(COLUMN_MAJOR, ta, tb, rows, columns, inner, creal(w->alpha), A, la, B, lb, 0, D, ld);
        break;
    case CUDA_C_32F:
        (*(of_complex **)&found)(COLUMN_MAJOR, ta, tb, rows, columns, inner, &single[0], A, la, B, lb, &single[1], D,
                                 ld);
        break;
    default:
        (*(of_complex **)&found)(COLUMN_MAJOR, ta, tb, rows, columns, inner, &w->alpha, A, la, B, lb, &zero, D, ld);
    }
    return true;
}

static bool run_product(emulated_work *work, CUcontext context)
{
    if (emulated_is_idle())
        return true;
    const product_work *w = (product_work *)work;
    if (emulated_fails("gemm")) {
        context->error = CUDA_ERROR_LAUNCH_FAILED;
        return true;
    }
    emulated_memory_open(context);
    if (w->workspace_bytes)
        memset(w->workspace, 0x5a, w->workspace_bytes);
    for (int64_t k = 0; k < w->d.batches; k++)
        if (multiply_large(w, k))
            finish_all(w, k);
        else
            multiply(w, k);
    emulated_memory_close();
    return true;
}

/* What the real one refuses, too. */
static cublasStatus_t check(const product *p, const layout *a, const layout *b, const layout *c, const layout *d)
{
    bool ta = p->transpose[0] != CUBLAS_OP_N, tb = p->transpose[1] != CUBLAS_OP_N;
    uint64_t m = ta ? a->columns : a->rows, k = ta ? a->rows : a->columns, k2 = tb ? b->columns : b->rows,
             n = tb ? b->rows : b->columns;
    const layout *all[] = {a, b, c, d};
    const int known =
        CUBLASLT_EPILOGUE_RELU | CUBLASLT_EPILOGUE_GELU | CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_DEFAULT;
    for (int i = 0; i < 4; i++)
        if (!element_bytes(all[i]->type) ||
            (all[i]->order != CUBLASLT_ORDER_COL && all[i]->order != CUBLASLT_ORDER_ROW) ||
            all[i]->leading < (int64_t)(all[i]->order == CUBLASLT_ORDER_ROW ? all[i]->columns : all[i]->rows))
            return CUBLAS_STATUS_INVALID_VALUE;
    if (m != d->rows || n != d->columns || k != k2 || c->rows != d->rows || c->columns != d->columns ||
        a->batches != d->batches || b->batches != d->batches || m == 0 || n == 0 || k == 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (p->epilogue & ~known ||
        (p->epilogue & CUBLASLT_EPILOGUE_BIAS && (!p->bias || d->order == CUBLASLT_ORDER_ROW)) ||
        p->pointers != CUBLASLT_POINTER_MODE_HOST)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return CUBLAS_STATUS_SUCCESS;
}

/* The alignment of the distances between rows and between the matrices of a batch, in bytes, at most `most`. */
static uint32_t spacing(const layout *l, uint32_t most)
{
    size_t element = element_bytes(l->type);
    while (most > 1 && ((size_t)l->leading * element % most != 0 ||
                        (l->batches != 1 && (size_t)l->batch_stride * element % most != 0)))
        most /= 2;
    return most;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preferred, int asked,
                                              cublasLtMatmulHeuristicResult_t *results, int *n)
{
    const preference *p = (const preference *)preferred;
    const product *of = (const product *)desc;
    cublasStatus_t status = check(of, layout_of(a), layout_of(b), layout_of(c), layout_of(d));
    *n = 0;
    if (!handle || status != CUBLAS_STATUS_SUCCESS || asked < 1)
        return handle ? status : CUBLAS_STATUS_INVALID_VALUE;
    uint64_t inner = of->transpose[0] == CUBLAS_OP_N ? layout_of(a)->columns : layout_of(a)->rows;
    uint64_t wanted = inner >= 64 ? inner * 64 : 0;
    algorithm made = {.magic = MAGIC, .workspace = wanted < p->workspace ? wanted : p->workspace};
    const layout *const layouts[] = {layout_of(a), layout_of(b), layout_of(c), layout_of(d)};
    for (int k = 0; k < 4; k++) {
        made.aligned[k] = p->aligned[k];
        made.spaced[k] = spacing(layouts[k], p->aligned[k]);
    }
    memset(results, 0, sizeof *results);
    memcpy(&results->algo, &made, sizeof made);
    results->workspaceSize = made.workspace;
    results->state = CUBLAS_STATUS_SUCCESS;
    results->wavesCount = 1;
    *n = 1;
    return status;
}

/* All algorithms have all epilogues, unless a fault says that one has no bias. */
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result)
{
    const algorithm *x = (const algorithm *)algo;
    const product *of = (const product *)desc;
    if (!handle || x->magic != MAGIC)
        return CUBLAS_STATUS_INVALID_VALUE;
    cublasStatus_t status = check(of, layout_of(a), layout_of(b), layout_of(c), layout_of(d));
    if (status == CUBLAS_STATUS_SUCCESS && of->epilogue & CUBLASLT_EPILOGUE_BIAS && emulated_fails("bias"))
        status = CUBLAS_STATUS_NOT_SUPPORTED;
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    memset(result, 0, sizeof *result);
    result->algo = *algo;
    result->workspaceSize = x->workspace;
    return status;
}

static bool is_aligned(const void *at, const layout *l, const algorithm *x, int operand)
{
    return (uintptr_t)at % x->aligned[operand] == 0 && spacing(l, x->spaced[operand]) == x->spaced[operand];
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *A,
                              cublasLtMatrixLayout_t a, const void *B, cublasLtMatrixLayout_t b, const void *beta,
                              const void *C, cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes, cudaStream_t stream)
{
    const product *p = (const product *)desc;
    const algorithm *x = (const algorithm *)algo;
    if (!handle || (x && x->magic != MAGIC))
        return CUBLAS_STATUS_INVALID_VALUE;
    cublasStatus_t status = check(p, layout_of(a), layout_of(b), layout_of(c), layout_of(d));
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (x && (!is_aligned(A, layout_of(a), x, 0) || !is_aligned(B, layout_of(b), x, 1) ||
              !is_aligned(C, layout_of(c), x, 2) || !is_aligned(D, layout_of(d), x, 3)))
        emulated_violation("a product whose operands are aligned worse than its algorithm was told");
    if (x && bytes < x->workspace)
        emulated_violation("a product with %zu bytes of workspace; its algorithm needs %zu", bytes,
                           (size_t)x->workspace);
    product_work *w = calloc(1, sizeof *w);
    if (!w)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *w = (product_work){.work = {.name = "a product", .run = run_product, .bytes = sizeof *w},
                        .p = *p,
                        .a = *layout_of(a),
                        .b = *layout_of(b),
                        .c = *layout_of(c),
                        .d = *layout_of(d),
                        .A = A,
                        .B = B,
                        .C = C,
                        .D = D,
                        .workspace = workspace,
                        .workspace_bytes = x ? (size_t)x->workspace : 0,
                        .alpha = get(p->scale, alpha, 0),
                        .beta = get(p->scale, beta, 0)};
    emulated_lock();
    CUresult r = emulated_submit((CUstream)stream, &w->work);
    emulated_unlock();
    return r == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
