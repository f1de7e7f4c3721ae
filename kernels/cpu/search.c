/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding positions in sorted lines by bisection. Compiled once per instruction set; gives oly_search_run_<isa>, called
 * through local.c. Zeros of both signs are equal, NaNs come after everything else and are equal to each other, as in
 * sort.c; complex elements compare by the real part, then by the imaginary one. */
#include "local_table.h"
#include <complex.h>
#include <string.h>

/* Signed integers in the order of floating-point numbers: comparing those needs no branches, which would be mispredicted half of
 * the time, and no case for NaN, which is the largest here. */
#define ORDERED(k, R, I, infinity)                                                                                     \
    static inline __attribute__((always_inline)) I ordered_##k(R x)                                                    \
    {                                                                                                                  \
        const I most = (I)(((uint64_t)1 << (8 * sizeof(I) - 1)) - 1);                                                  \
        I bits, magnitude;                                                                                             \
        memcpy(&bits, &x, sizeof bits);                                                                                \
        magnitude = bits & most;                                                                                       \
        bits = magnitude > (infinity) ? most : magnitude == 0 ? 0 : bits;                                              \
        return bits ^ (bits >> (8 * sizeof(I) - 1) & most);                                                            \
    }
ORDERED(f32, float, int32_t, 0x7f800000)
ORDERED(f64, double, int64_t, 0x7ff0000000000000)
#define SAME(x) (x)

/* Whether a complex element m comes before v; last: by the imaginary part. */
#define BY_PARTS(last, o, re, im, m, v) ((o(re(m)) < o(re(v))) | ((o(re(m)) == o(re(v))) & (o(im(m)) last o(im(v)))))
#define BEFORE(m, v)                    ((m) < (v))
#define UP_TO(m, v)                     ((m) <= (v))
#define BEFORE_c64(m, v)                BY_PARTS(<, ordered_f32, crealf, cimagf, m, v)
#define UP_TO_c64(m, v)                 BY_PARTS(<=, ordered_f32, crealf, cimagf, m, v)
#define BEFORE_c128(m, v)               BY_PARTS(<, ordered_f64, creal, cimag, m, v)
#define UP_TO_c128(m, v)                BY_PARTS(<=, ordered_f64, creal, cimag, m, v)

enum { TOGETHER = 32, FEW = 8 }; /* searches whose reads overlap; so many are done for up to FEW elements */

/* For each of `m` (at most TOGETHER) elements, one after the other in memory, how many of the n of a line come before it;
 * after: also those equal to it. Room for TOGETHER in `found`. */
typedef void search(int64_t n, const void *line, int64_t stride, int m, const void *sought, bool after, int64_t *found);

/* T: an element; A: what is compared, `of` an element; I: an integer as wide, which is enough where lines are that short. Of the
 * elements from `at` on, `left` may still come before. The step is masked: as a choice GCC makes a branch of some comparisons. */
#define BISECT(name, T, A, I, of, before, up_to)                                                                       \
    static inline __attribute__((always_inline)) void bisect_##name(                                                   \
        int64_t n, const T *x, const int64_t stride, const int together, const A *v, const bool after, int64_t *found) \
    {                                                                                                                  \
        I at[TOGETHER];                                                                                                \
        for (int j = 0; j < together; j++)                                                                             \
            at[j] = 0;                                                                                                 \
        for (I left = (I)n; left > 0;) {                                                                               \
            const I half = (left + 1) / 2;                                                                             \
            for (int j = 0; j < together; j++) {                                                                       \
                const A middle = of(x[(at[j] + half - 1) * (I)stride]);                                                \
                at[j] += half & -(I)(after ? up_to(middle, v[j]) : before(middle, v[j]));                              \
            }                                                                                                          \
            left -= half;                                                                                              \
        }                                                                                                              \
        for (int j = 0; j < together; j++)                                                                             \
            found[j] = at[j];                                                                                          \
    }
#define SEARCH(d, T, A, of, before, up_to)                                                                             \
    BISECT(d##_short, T, A, int32_t, of, before, up_to)                                                                \
    BISECT(d##_long, T, A, int64_t, of, before, up_to)                                                                 \
    static inline __attribute__((always_inline)) void search_some_##d(                                                 \
        int64_t n, const T *line, int64_t stride, const int together, const A *v, bool after, int64_t *found)          \
    {                                                                                                                  \
        if (sizeof(A) <= 4 && stride == 1 && n < INT32_MAX && after)                                                   \
            bisect_##d##_short(n, line, 1, together, v, true, found);                                                  \
        else if (sizeof(A) <= 4 && stride == 1 && n < INT32_MAX)                                                       \
            bisect_##d##_short(n, line, 1, together, v, false, found);                                                 \
        else if (stride == 1 && after)                                                                                 \
            bisect_##d##_long(n, line, 1, together, v, true, found);                                                   \
        else if (stride == 1)                                                                                          \
            bisect_##d##_long(n, line, 1, together, v, false, found);                                                  \
        else                                                                                                           \
            bisect_##d##_long(n, line, stride, together, v, after, found);                                             \
    }                                                                                                                  \
    static void search_##d(int64_t n, const void *line, int64_t stride, int m, const void *sought, bool after,         \
                           int64_t *found)                                                                             \
    {                                                                                                                  \
        const T *elements = sought;                                                                                    \
        A v[TOGETHER];                                                                                                 \
        for (int j = 0; j < m; j++)                                                                                    \
            v[j] = of(elements[j]);                                                                                    \
        for (int j = m; j < TOGETHER; j++)                                                                             \
            v[j] = v[0];                                                                                               \
        if (m > FEW)                                                                                                   \
            search_some_##d(n, line, stride, TOGETHER, v, after, found);                                               \
        else                                                                                                           \
            search_some_##d(n, line, stride, FEW, v, after, found);                                                    \
    }
#define SEARCH_INTEGERS(a, number, name, s, T, ...) SEARCH(s, T, T, SAME, BEFORE, UP_TO)
#define SEARCH_NARROW(a, number, name, s, T, of, to, ...)                                                              \
    NARROW(s, T, of) SEARCH(s, T, int32_t, ordered_##s, BEFORE, UP_TO)
#define NARROW(s, T, of)                                                                                               \
    static inline __attribute__((always_inline)) int32_t ordered_##s(T x)                                              \
    {                                                                                                                  \
        return ordered_f32(of(x));                                                                                     \
    }
#define SEARCH_COMPLEX(a, number, name, s, T, ...) SEARCH(s, T, T, SAME, BEFORE_##s, UP_TO_##s)
SEARCH(b8, uint8_t, uint8_t, SAME, BEFORE, UP_TO)
OLY_INTEGER_TYPES(SEARCH_INTEGERS, )
OLY_NARROW_TYPES(SEARCH_NARROW, )
SEARCH(f32, float, int32_t, ordered_f32, BEFORE, UP_TO)
SEARCH(f64, double, int64_t, ordered_f64, BEFORE, UP_TO)
OLY_COMPLEX_TYPES(SEARCH_COMPLEX, )

static search *const search_of[OLY_N_DTYPES] = {OLY_EVERY_TYPE(OLY_CELL, search)};

/* The sought elements k, ..., k + m - 1, one after the other: where they lie, or copied to `block`. */
static const void *elements_at(const oly_local_task *t, const char *sought, int64_t k, int m, char *block)
{
    const oly_local_operand *x = &t->in[1];
    const int64_t bytes = oly_element_bytes[x->dtype];
    const int last = x->rank - 1;
    if (m == 1 || (x->stride[last] == 1 && k % t->out.extent[last] + m <= t->out.extent[last]))
        return sought + oly_local_offset(x->rank, t->out.extent, x->stride, -1, k) * bytes;
    for (int j = 0; j < m; j++)
        memcpy(block + j * bytes, sought + oly_local_offset(x->rank, t->out.extent, x->stride, -1, k + j) * bytes,
               (size_t)bytes);
    return block;
}

static void store_places(int m, const int64_t *found, oly_dtype dtype, void *out, int64_t k)
{
    if (dtype == OLY_INT64)
        memcpy((int64_t *)out + k, found, sizeof *found * (size_t)m);
    else
        for (int j = 0; j < m; j++)
            ((int32_t *)out)[k + j] = (int32_t)found[j];
}

void OLY_ISA_NAME(oly_search_run)(const oly_local_task *t, const void *const *in, void *out, void *scratch, int phase,
                                  int chunk, int n_chunks)
{
    (void)scratch, (void)phase;
    const oly_local_operand *lines = &t->in[0];
    int64_t bytes = oly_element_bytes[lines->dtype], n = oly_local_count(&t->out, -1), per_line = 1;
    for (int d = t->n_batch; d < t->out.rank; d++)
        per_line *= t->out.extent[d];
    for (int64_t k = n * chunk / n_chunks, end = n * (chunk + 1) / n_chunks; k < end;) {
        int64_t line = oly_local_offset(t->n_batch, t->out.extent, lines->stride, -1, k / per_line);
        int64_t left = per_line - k % per_line, found[TOGETHER];
        char block[TOGETHER * sizeof(double _Complex)] __attribute__((aligned(16)));
        left = left < end - k ? left : end - k;
        int m = left < TOGETHER ? (int)left : TOGETHER;
        const void *sought = elements_at(t, in[1], k, m, block);
        search_of[lines->dtype](lines->extent[t->n_batch], (const char *)in[0] + line * bytes,
                                lines->stride[t->n_batch], m, sought, t->reverse, found);
        store_places(m, found, t->out.dtype, out, k);
        k += m;
    }
}
