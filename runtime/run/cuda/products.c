/* SPDX-License-Identifier: BSD-3-Clause */
/* Products by cuBLASLt. See products.h.
 *
 * The library's matrices have their columns dense, ours their rows: what it computes is the transposed product. Which algorithm computes
 * a product is found once for each shape on each GPU, by element type, sizes and which operands are transposed alone, as if operands
 * were dense: neither where operands lie nor whether a result is computed at once or in pieces changes it. Operands that are aligned
 * worse than dense ones are copied first, and so is such a result afterwards. */
#include "run/cuda/products.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/optimisation.h"
#include "device/cuda/cublaslt.h"
#include "run/device_counts.h"
#include <pthread.h>
#include <string.h>

#if OLY_HAS_CUBLASLT

/* SMALL: products with fewer multiplications than the library's call takes longer for; they have the CPU's bits. */
enum { SMALL = 32 * 32 * 32, WORKSPACE = 32 << 20, ALIGNED = 16, MOST_CALLS = 64, LISTS = 256 };

typedef struct arithmetic {
    bool known;
    cudaDataType element, scale;
    cublasComputeType_t compute;
} arithmetic;

/* Full precision: no tf32. */
static const arithmetic arithmetic_of[OLY_N_DTYPES] = {
    [OLY_FLOAT32] = {true, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    [OLY_FLOAT64] = {true, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},
    [OLY_FLOAT16] = {true, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    [OLY_BFLOAT16] = {true, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    [OLY_COMPLEX64] = {true, CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F},
    [OLY_COMPLEX128] = {true, CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F},
};

/* A matrix, or a batch of them; `rows` of `length` dense elements. */
typedef struct matrix {
    char *at;
    int64_t rows, length, lead, batch; /* lead: between rows; batch: between matrices, 0 if there is one */
    bool turned;                       /* its rows are columns of the operand */
    uint32_t aligned;                  /* what the algorithm relies on, in bytes */
} matrix;

typedef struct product {
    oly_dtype dtype;
    int64_t m, n, k, batches;
    matrix a, b, c;
    const void *bias; /* one element for each column, added to the result; NULL: none */
} product;

/* What an algorithm is chosen by. */
typedef struct shape {
    const oly_gpu *gpu;
    int64_t m, n, k, batches;
    int32_t dtype, a_turned, b_turned, one_a, one_b, unused; /* one_a: of all batches */
} shape;

typedef struct algorithm {
    struct algorithm *next;
    shape of;
    bool there;
    cublasLtMatmulAlgo_t algo;
    size_t workspace;
    bool adds_bias; /* can it? */
} algorithm;

static struct {
    pthread_mutex_t lock;
    cublasLtHandle_t handle[OLY_MOST_MEMORIES]; /* of GPUs, by their number in this process */
    algorithm *list[LISTS];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* -- descriptions ------------------------------------------------------------------------------------------------------------ */

typedef struct description {
    cublasLtMatmulDescOpaque_t product;
    cublasLtMatrixLayoutOpaque_t left, right, result; /* of the transposed product: b, a, c */
} description;

#define DO(function, ...)                                                                                              \
    do {                                                                                                               \
        if (oly_cublaslt.function(__VA_ARGS__) != CUBLAS_STATUS_SUCCESS)                                               \
            return false;                                                                                              \
    } while (0)

static bool describe_matrix(cublasLtMatrixLayoutOpaque_t *l, cudaDataType type, const matrix *x, int64_t batches)
{
    int32_t count = (int32_t)batches;
    DO(cublasLtMatrixLayoutInit_internal, l, sizeof *l, type, (uint64_t)x->length, (uint64_t)x->rows, x->lead);
    DO(cublasLtMatrixLayoutSetAttribute, l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
    DO(cublasLtMatrixLayoutSetAttribute, l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &x->batch, sizeof x->batch);
    return true;
}

static bool describe_bias(const product *p, description *d)
{
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    DO(cublasLtMatmulDescSetAttribute, &d->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    DO(cublasLtMatmulDescSetAttribute, &d->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias, sizeof p->bias);
    return true;
}

static bool describe(const product *p, description *d)
{
    const arithmetic *type = &arithmetic_of[p->dtype];
    int32_t left = p->b.turned ? CUBLAS_OP_T : CUBLAS_OP_N, right = p->a.turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    DO(cublasLtMatmulDescInit_internal, &d->product, sizeof d->product, type->compute, type->scale);
    DO(cublasLtMatmulDescSetAttribute, &d->product, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof left);
    DO(cublasLtMatmulDescSetAttribute, &d->product, CUBLASLT_MATMUL_DESC_TRANSB, &right, sizeof right);
    if (p->bias && !describe_bias(p, d))
        return false;
    return describe_matrix(&d->left, type->element, &p->b, p->batches) &&
           describe_matrix(&d->right, type->element, &p->a, p->batches) &&
           describe_matrix(&d->result, type->element, &p->c, p->batches);
}

/* -- algorithms ---------------------------------------------------------------------------------------------------------------- */

static bool is_aligned(const matrix *x, size_t element)
{
    return (uintptr_t)x->at % x->aligned == 0 && (size_t)x->lead * element % x->aligned == 0 &&
           (size_t)x->batch * element % x->aligned == 0;
}

/* Of a dense matrix of this shape. */
static uint32_t alignment_of(const matrix *x, size_t element)
{
    return (size_t)x->length * element % ALIGNED == 0 ? ALIGNED : (uint32_t)element;
}

/* As dense as its alignment allows. */
static matrix dense(const matrix *x, size_t element, char *at)
{
    matrix y = *x;
    size_t bytes = ((size_t)x->length * element + x->aligned - 1) / x->aligned * x->aligned;
    y.at = at;
    y.lead = (int64_t)(bytes / element);
    y.batch = x->batch ? x->rows * y.lead : 0;
    return y;
}

static product dense_product(const product *p)
{
    product q = *p;
    size_t element = oly_dtype_size(p->dtype);
    q.a = dense(&p->a, element, NULL);
    q.b = dense(&p->b, element, NULL);
    q.c = dense(&p->c, element, NULL);
    return q;
}

static bool set_preference(cublasLtMatmulPreferenceOpaque_t *preference, const product *p)
{
    static const cublasLtMatmulPreferenceAttributes_t of[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const matrix *const matrices[] = {&p->b, &p->a, &p->c, &p->c};
    size_t most = WORKSPACE;
    uint32_t in_order =
        CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE; /* parts of sums are added in a fixed order, unrounded */
    DO(cublasLtMatmulPreferenceInit_internal, preference, sizeof *preference);
    DO(cublasLtMatmulPreferenceSetAttribute, preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
    DO(cublasLtMatmulPreferenceSetAttribute, preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &in_order,
       sizeof in_order);
    for (int k = 0; k < 4; k++)
        DO(cublasLtMatmulPreferenceSetAttribute, preference, of[k], &matrices[k]->aligned, sizeof(uint32_t));
    return true;
}

/* Whether the same algorithm computes the product with a bias, so that the sums are the same. */
static bool can_add_bias(cublasLtHandle_t handle, const product *without, const algorithm *x)
{
    static const double somewhere[2]; /* not read */
    product p = *without;
    description d;
    cublasLtMatmulHeuristicResult_t found;
    p.bias = somewhere;
    if ((p.dtype != OLY_FLOAT32 && p.dtype != OLY_FLOAT64) || !describe(&p, &d))
        return false;
    DO(cublasLtMatmulAlgoCheck, handle, &d.product, &d.left, &d.right, &d.result, &d.result, &x->algo, &found);
    return found.workspaceSize <= x->workspace;
}

static bool choose(cublasLtHandle_t handle, const product *like, algorithm *x)
{
    product p = dense_product(like);
    p.bias = NULL;
    description d;
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t found;
    int n = 0;
    if (!describe(&p, &d) || !set_preference(&preference, &p))
        return false;
    DO(cublasLtMatmulAlgoGetHeuristic, handle, &d.product, &d.left, &d.right, &d.result, &d.result, &preference, 1,
       &found, &n);
    x->algo = found.algo;
    x->workspace = found.workspaceSize;
    bool there = n == 1 && found.state == CUBLAS_STATUS_SUCCESS;
    x->adds_bias = there && can_add_bias(handle, &p, x);
    return there;
}

static void stop(void)
{
    for (int k = 0; k < LISTS; k++)
        for (algorithm *x; (x = all.list[k]);) {
            all.list[k] = x->next;
            oly_release(x);
        }
    for (int k = 0; k < oly_gpu_count(); k++) {
        cublasLtHandle_t *handle = &all.handle[oly_gpu_at(k)->number % OLY_MOST_MEMORIES];
        if (*handle && oly_gpu_enter(oly_gpu_at(k)) == OLY_OK) {
            oly_cublaslt.cublasLtDestroy(*handle);
            oly_gpu_leave();
        }
        *handle = NULL;
    }
}

static cublasLtHandle_t handle_locked(const oly_gpu *g)
{
    const char *why;
    cublasLtHandle_t *handle = &all.handle[g->number % OLY_MOST_MEMORIES];
    oly_gpus_at_stop(stop);
    if (!*handle && (!oly_cublaslt_open(&why) || oly_cublaslt.cublasLtCreate(handle) != CUBLAS_STATUS_SUCCESS))
        *handle = NULL;
    return *handle;
}

/* NULL: the library has none. The GPU's context is current. */
static algorithm *algorithm_of(const oly_gpu *g, const product *p, cublasLtHandle_t *handle)
{
    shape of = {g,
                p->m,
                p->n,
                p->k,
                p->batches,
                (int32_t)p->dtype,
                p->a.turned,
                p->b.turned,
                p->batches > 1 && p->a.batch == 0,
                p->batches > 1 && p->b.batch == 0,
                0};
    uint64_t list = oly_hash(sizeof of, &of, sizeof of) % LISTS;
    algorithm *x;
    pthread_mutex_lock(&all.lock);
    *handle = handle_locked(g);
    for (x = all.list[list]; x && memcmp(&x->of, &of, sizeof of) != 0; x = x->next)
        ;
    if (!x && *handle && (x = oly_calloc(1, sizeof *x))) {
        x->of = of;
        x->there = choose(*handle, p, x);
        x->next = all.list[list];
        all.list[list] = x;
    }
    pthread_mutex_unlock(&all.lock);
    return x && x->there ? x : NULL;
}

/* -- operands ------------------------------------------------------------------------------------------------------------------ */

/* False: elements are dense in neither direction. */
static bool matrix_of(matrix *x, oly_dtype dtype, const void *at, int64_t rows, int64_t columns, int64_t row,
                      int64_t column)
{
    *x = (matrix){.at = (char *)(uintptr_t)at, .rows = rows, .length = columns, .lead = row};
    if (column != 1 && columns > 1)
        *x = (matrix){.at = x->at, .rows = columns, .length = rows, .lead = column, .turned = true};
    if (x->rows == 1)
        x->lead = x->length;
    x->aligned = alignment_of(x, oly_dtype_size(dtype));
    return !x->turned || row == 1 || rows == 1;
}

/* The loops around a product, the innermost of those that are evenly spaced merged into the batch. */
typedef struct loops {
    int n;
    int64_t calls, extent[2 * OLY_MAX_RANK], a[2 * OLY_MAX_RANK], b[2 * OLY_MAX_RANK], c[2 * OLY_MAX_RANK];
} loops;

static loops loops_of(const oly_gemm_task *t, product *p)
{
    loops l = {.n = t->n_outer, .calls = 1};
    p->batches = t->batch;
    p->a.batch = t->batch > 1 ? t->a_batch : 0;
    p->b.batch = t->batch > 1 ? t->b_batch : 0;
    p->c.batch = t->batch > 1 ? t->c_batch : 0;
    for (; l.n > 0; l.n--) {
        int k = l.n - 1;
        int64_t n = p->batches;
        if (t->outer[k] > 1 && n > 1 &&
            (t->a_outer[k] != n * p->a.batch || t->b_outer[k] != n * p->b.batch || t->c_outer[k] != n * p->c.batch))
            break;
        if (n == 1 && t->outer[k] > 1)
            p->a.batch = t->a_outer[k], p->b.batch = t->b_outer[k], p->c.batch = t->c_outer[k];
        p->batches *= t->outer[k];
    }
    for (int k = 0; k < l.n; k++) {
        l.extent[k] = t->outer[k];
        l.calls *= t->outer[k];
        l.a[k] = t->a_outer[k], l.b[k] = t->b_outer[k], l.c[k] = t->c_outer[k];
    }
    return l;
}

/* Can the library read rows so far apart? */
static bool is_matrix(const matrix *x)
{
    return x->lead >= x->length && x->lead < INT32_MAX && x->batch >= 0;
}

static oly_status copy_matrix(const oly_cuda_launcher *l, const product *p, const matrix *to, const matrix *from)
{
    oly_copy_task t = {.element_bytes = oly_dtype_size(p->dtype),
                       .rank = 3,
                       .extent = {to->batch ? p->batches : 1, to->rows, to->length},
                       .to_stride = {to->batch, to->lead, 1},
                       .from_stride = {from->batch, from->lead, 1}};
    return oly_cuda_copy(l, &t, to->at, from->at);
}

/* Where the library reads or writes `x`: itself, or a dense copy in scratch memory. */
static oly_status aligned(const oly_cuda_launcher *l, const product *p, const matrix *x, matrix *made)
{
    size_t element = oly_dtype_size(p->dtype);
    void *at;
    *made = *x;
    if (is_matrix(x) && is_aligned(x, element))
        return OLY_OK;
    *made = dense(x, element, NULL);
    int64_t elements = (x->batch ? p->batches : 1) * x->rows * made->lead;
    OLY_TRY(l->scratch(l->context, (size_t)elements * element, &at));
    made->at = at;
    return OLY_OK;
}

/* -- products ------------------------------------------------------------------------------------------------------------------ */

typedef struct call {
    oly_cuda_launching *l;
    algorithm *algorithm;
    cublasLtHandle_t handle;
    void *workspace;
    bool refused; /* the library cannot, although it said that it could */
} call;

static oly_status multiply(call *x, const product *p)
{
    static const double one[2] = {1, 0}, zero[2] = {0, 0};
    static const float one_single[2] = {1, 0}, zero_single[2] = {0, 0};
    bool doubled = arithmetic_of[p->dtype].compute == CUBLAS_COMPUTE_64F;
    const char *label = x->l->device->gpu->label;
    description d;
    if (!describe(p, &d)) {
        x->refused = true;
        return OLY_OK;
    }
    cublasStatus_t st = oly_cublaslt.cublasLtMatmul(
        x->handle, &d.product, doubled ? (const void *)one : one_single, p->b.at, &d.left, p->a.at, &d.right,
        doubled ? (const void *)zero : zero_single, p->c.at, &d.result, p->c.at, &d.result, &x->algorithm->algo,
        x->workspace, x->algorithm->workspace, (cudaStream_t)x->l->device->stream);
    x->refused = x->refused || st == CUBLAS_STATUS_NOT_SUPPORTED || st == CUBLAS_STATUS_INVALID_VALUE ||
                 st == CUBLAS_STATUS_ARCH_MISMATCH || st == CUBLAS_STATUS_ALLOC_FAILED;
    if (st != CUBLAS_STATUS_SUCCESS && !x->refused)
        return oly_fail(OLY_DEVICE_FAILED, "%s: cublasLtMatmul failed: %s", label,
                        oly_cublaslt.cublasLtGetStatusString(st));
    oly_count(&oly_device_counted.library_products, 1);
    oly_count(&oly_device_counted.epilogues, p->bias && !x->refused);
    return OLY_OK;
}

/* With copies of what is not aligned. */
static oly_status multiply_aligned(call *x, const product *p)
{
    const oly_cuda_launcher *l = &x->l->launcher;
    product q = *p;
    oly_cuda_mark before = oly_cuda_scratch_mark(x->l);
    OLY_TRY(aligned(l, p, &p->a, &q.a));
    OLY_TRY(aligned(l, p, &p->b, &q.b));
    OLY_TRY(aligned(l, p, &p->c, &q.c));
    if (q.a.at != p->a.at)
        OLY_TRY(copy_matrix(l, p, &q.a, &p->a));
    if (q.b.at != p->b.at)
        OLY_TRY(copy_matrix(l, p, &q.b, &p->b));
    OLY_TRY(multiply(x, &q));
    if (q.c.at != p->c.at)
        OLY_TRY(copy_matrix(l, p, &p->c, &q.c));
    oly_cuda_scratch_return(x->l, before);
    return OLY_OK;
}

static void move(matrix *x, int64_t elements, size_t element)
{
    x->at += elements * (int64_t)element;
}

/* A rectangle of the result. */
static product part_of(const product *p, const oly_gemm_part *part, const oly_gemm_task *t)
{
    product q = *p;
    size_t element = oly_dtype_size(p->dtype);
    q.m = part->rows, q.n = part->columns;
    *(q.a.turned ? &q.a.length : &q.a.rows) = q.m;
    *(q.b.turned ? &q.b.rows : &q.b.length) = q.n;
    q.c.rows = q.m, q.c.length = q.n;
    move(&q.a, part->row * t->a_row, element);
    move(&q.b, part->column * t->b_column, element);
    move(&q.c, part->row * t->c_row + part->column, element);
    return q;
}

static oly_status multiply_loops(call *x, const product *p, const loops *l)
{
    size_t element = oly_dtype_size(p->dtype);
    for (int64_t i = 0; i < l->calls; i++) {
        product q = *p;
        int64_t rest = i;
        for (int k = l->n - 1; k >= 0; k--) {
            int64_t at = rest % l->extent[k];
            rest /= l->extent[k];
            move(&q.a, at * l->a[k], element);
            move(&q.b, at * l->b[k], element);
            move(&q.c, at * l->c[k], element);
        }
        OLY_TRY(multiply_aligned(x, &q));
    }
    return OLY_OK;
}

static bool is_worth_it(const oly_gemm_task *t)
{
    double work = (double)t->m * (double)t->n * (double)t->k * (double)t->batch;
    for (int k = 0; k < t->n_outer; k++)
        work *= (double)t->outer[k];
    return arithmetic_of[t->dtype].known && t->k > 1 && work >= SMALL && t->m < INT32_MAX && t->n < INT32_MAX &&
           t->k < INT32_MAX;
}

bool oly_cuda_library_product(oly_cuda_launching *l, const oly_gemm_task *t, const oly_gemm_part *parts, int n_parts,
                              const void *a, const void *b, const void *bias, void *c, oly_status *st)
{
    if (!is_worth_it(t) || !oly_enabled(OLY_OPTIMISATION_LIBRARY_PRODUCTS))
        return false;
    product p = {.dtype = t->dtype, .m = t->m, .n = t->n, .k = t->k, .bias = bias};
    if (!matrix_of(&p.a, t->dtype, a, t->m, t->k, t->a_row, t->a_column) ||
        !matrix_of(&p.b, t->dtype, b, t->k, t->n, t->b_row, t->b_column) ||
        !matrix_of(&p.c, t->dtype, c, t->m, t->n, t->c_row, 1))
        return false;
    loops around = loops_of(t, &p);
    call x = {.l = l};
    if (around.calls > MOST_CALLS || p.batches > UINT16_MAX || p.batches == 0 ||
        !(x.algorithm = algorithm_of(l->device->gpu, &p, &x.handle)) || (bias && !x.algorithm->adds_bias))
        return false;
    *st = x.algorithm->workspace ? l->launcher.scratch(l->launcher.context, x.algorithm->workspace, &x.workspace)
                                 : OLY_OK;
    if (!parts && *st == OLY_OK)
        *st = multiply_loops(&x, &p, &around);
    for (int k = 0; k < n_parts && *st == OLY_OK; k++) {
        product q = part_of(&p, &parts[k], t);
        *st = multiply_aligned(&x, &q);
    }
    if (x.refused)
        *(bias ? &x.algorithm->adds_bias : &x.algorithm->there) = false;
    return !x.refused || *st != OLY_OK;
}
#else
bool oly_cuda_library_product(oly_cuda_launching *l, const oly_gemm_task *t, const oly_gemm_part *parts, int n_parts,
                              const void *a, const void *b, const void *bias, void *c, oly_status *st)
{
    (void)l, (void)t, (void)parts, (void)n_parts, (void)a, (void)b, (void)bias, (void)c, (void)st;
    return false;
}
#endif
