/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding positions in sorted lines by bisection. Compiled once per instruction set; gives oly_search_run_<isa>, called
 * through local.c. Zeros of both signs are equal, NaNs come after everything else and are equal to each other, as in
 * sort.c; complex elements compare by the real part, then by the imaginary one. */
#include "local_table.h"
#include <complex.h>

/* x < y */
#define BEFORE(x, y)       ((x) < (y))
#define BEFORE_FLOAT(x, y) ((x) < (y) || ((x) == (x) && (y) != (y)))
#define EQUAL_FLOAT(x, y)  ((x) == (y) || ((x) != (x) && (y) != (y)))
#define BEFORE_COMPLEX(x, y, re, im)                                                                                   \
    (BEFORE_FLOAT(re(x), re(y)) || (EQUAL_FLOAT(re(x), re(y)) && BEFORE_FLOAT(im(x), im(y))))
#define BEFORE_c64(x, y)  BEFORE_COMPLEX(x, y, crealf, cimagf)
#define BEFORE_c128(x, y) BEFORE_COMPLEX(x, y, creal, cimag)
#define SAME(x)           (x)

enum { TOGETHER = 8 }; /* searches whose reads overlap */

/* For each of `m` (at most TOGETHER) elements, how many of the n of a line come before it; after: also those equal to
 * it. */
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
#define SEARCH_INTEGERS(a, number, name, s, T, ...)       SEARCH(s, T, T, SAME, BEFORE)
#define SEARCH_NARROW(a, number, name, s, T, of, to, ...) SEARCH(s, T, float, of, BEFORE_FLOAT)
#define SEARCH_WIDE(a, number, name, s, T, ...)           SEARCH(s, T, T, SAME, BEFORE_FLOAT)
#define SEARCH_COMPLEX(a, number, name, s, T, ...)        SEARCH(s, T, T, SAME, BEFORE_##s)
SEARCH(b8, uint8_t, uint8_t, SAME, BEFORE)
OLY_INTEGER_TYPES(SEARCH_INTEGERS, )
OLY_NARROW_TYPES(SEARCH_NARROW, )
OLY_WIDE_TYPES(SEARCH_WIDE, )
OLY_COMPLEX_TYPES(SEARCH_COMPLEX, )

static search *const search_of[OLY_N_DTYPES] = {OLY_EVERY_TYPE(OLY_CELL, search)};

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
