/* Finding places in sorted lines by bisection. Compiled once per instruction set; gives oly_search_run_<isa>, called through
 * local.c. Zeros of both signs are equal, NaN come after everything else and are equal to each other, as sort.c has them; of
 * complex elements the real part decides, then the imaginary one. */
#include "local_table.h"
#include "core/half.h"
#include <complex.h>

/* x < y */
#define BEFORE(x, y)       ((x) < (y))
#define BEFORE_FLOAT(x, y) ((x) < (y) || ((x) == (x) && (y) != (y)))
#define EQUAL_FLOAT(x, y)  ((x) == (y) || ((x) != (x) && (y) != (y)))
#define BEFORE_COMPLEX(x, y, re, im)                                                                                   \
    (BEFORE_FLOAT(re(x), re(y)) || (EQUAL_FLOAT(re(x), re(y)) && BEFORE_FLOAT(im(x), im(y))))
#define BEFORE_C64(x, y)  BEFORE_COMPLEX(x, y, crealf, cimagf)
#define BEFORE_C128(x, y) BEFORE_COMPLEX(x, y, creal, cimag)
#define SAME(x)           (x)

enum { TOGETHER = 8 }; /* searches whose reads overlap */

/* For each of `m` (at most TOGETHER) elements sought, how many of the n of a line come before it; after: also those equal to it. */
typedef void search(int64_t n, const void *line, int64_t stride, int m, const void *const *sought, bool after,
                    int64_t *found);

#define SEARCH(d, T, A, of, before)                                                                                    \
    static void search_##d(int64_t n, const void *line, int64_t stride, int m, const void *const *sought, bool after,  \
                           int64_t *found)                                                                             \
    {                                                                                                                  \
        const T *x = line;                                                                                             \
        A v[TOGETHER];                                                                                                 \
        for (int j = 0; j < TOGETHER; j++) {                                                                           \
            v[j] = of(*(const T *)sought[j < m ? j : 0]);                                                              \
            found[j] = 0;                                                                                              \
        }                                                                                                              \
        /* of elements from `found` on, `left` may still come before */                                                \
        for (int64_t left = n; left > 0;) {                                                                            \
            int64_t half = (left + 1) / 2;                                                                             \
            for (int j = 0; j < TOGETHER; j++) {                                                                       \
                const A middle = of(x[(found[j] + half - 1) * stride]);                                                \
                const bool belongs = after ? !(before(v[j], middle)) : before(middle, v[j]);                           \
                found[j] += belongs ? half : 0;                                                                        \
            }                                                                                                          \
            left -= half;                                                                                              \
        }                                                                                                              \
    }
SEARCH(u8, uint8_t, uint8_t, SAME, BEFORE)
SEARCH(i8, int8_t, int8_t, SAME, BEFORE)
SEARCH(i16, int16_t, int16_t, SAME, BEFORE)
SEARCH(i32, int32_t, int32_t, SAME, BEFORE)
SEARCH(i64, int64_t, int64_t, SAME, BEFORE)
SEARCH(u16, uint16_t, uint16_t, SAME, BEFORE)
SEARCH(u32, uint32_t, uint32_t, SAME, BEFORE)
SEARCH(u64, uint64_t, uint64_t, SAME, BEFORE)
SEARCH(f16, uint16_t, float, oly_float_of_half, BEFORE_FLOAT)
SEARCH(bf16, uint16_t, float, oly_float_of_bfloat, BEFORE_FLOAT)
SEARCH(f32, float, float, SAME, BEFORE_FLOAT)
SEARCH(f64, double, double, SAME, BEFORE_FLOAT)
SEARCH(c64, float _Complex, float _Complex, SAME, BEFORE_C64)
SEARCH(c128, double _Complex, double _Complex, SAME, BEFORE_C128)

static search *const search_of[OLY_N_DTYPES] = {
    [OLY_BOOL] = search_u8,     [OLY_INT8] = search_i8,       [OLY_INT16] = search_i16,
    [OLY_INT32] = search_i32,   [OLY_INT64] = search_i64,     [OLY_UINT8] = search_u8,
    [OLY_UINT16] = search_u16,  [OLY_UINT32] = search_u32,    [OLY_UINT64] = search_u64,
    [OLY_FLOAT16] = search_f16, [OLY_BFLOAT16] = search_bf16, [OLY_FLOAT32] = search_f32,
    [OLY_FLOAT64] = search_f64, [OLY_COMPLEX64] = search_c64, [OLY_COMPLEX128] = search_c128,
};

void OLY_ISA_NAME(oly_search_run)(const oly_local_task *t, const void *const *in, void *out, void *scratch, int phase,
                                  int chunk, int n_chunks)
{
    (void)scratch, (void)phase;
    const oly_local_operand *lines = &t->in[0], *sought = &t->in[1];
    int64_t bytes = oly_element_bytes[lines->dtype], n = oly_local_count(&t->out, -1), per_line = 1;
    for (int d = t->n_batch; d < t->out.rank; d++)
        per_line *= t->out.extent[d];
    for (int64_t k = n * chunk / n_chunks, end = n * (chunk + 1) / n_chunks; k < end;) {
        int64_t line = oly_local_offset(t->n_batch, t->out.extent, lines->stride, -1, k / per_line);
        int64_t left = per_line - k % per_line, found[TOGETHER];
        const void *elements[TOGETHER];
        left = left < end - k ? left : end - k;
        int m = left < TOGETHER ? (int)left : TOGETHER;
        for (int j = 0; j < m; j++)
            elements[j] =
                (const char *)in[1] + oly_local_offset(sought->rank, t->out.extent, sought->stride, -1, k + j) * bytes;
        search_of[lines->dtype](lines->extent[t->n_batch], (const char *)in[0] + line * bytes,
                                lines->stride[t->n_batch], m, elements, t->reverse, found);
        for (int j = 0; j < m; j++, k++)
            if (t->out.dtype == OLY_INT64)
                ((int64_t *)out)[k] = found[j];
            else
                ((int32_t *)out)[k] = (int32_t)found[j];
    }
}
