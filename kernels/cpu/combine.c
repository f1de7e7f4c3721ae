/* The combiners (sum, product, largest, smallest, bitwise and, or) on contiguous elements, and oly_combine, which folds whole
 * arrays. Compiled once per instruction set; gives oly_combiners_<isa>, used by reduce.c. */
#include "table.h"
#include "cpu/vector_math.h"
#include <string.h>

/* -- one pair of elements; integers wrap, NaN wins ------------------------------------------------------------------ */
#define ADD(T, U, a, b)           ((T)((U)(a) + (U)(b)))
#define MULTIPLY(T, U, a, b)      ((T)((U)(a) * (U)(b)))
#define LARGER(T, U, a, b)        ((a) > (b) ? (a) : (b))
#define SMALLER(T, U, a, b)       ((a) < (b) ? (a) : (b))
#define LARGER_FLOAT(T, U, a, b)  (((a) != (a)) | ((a) > (b)) ? (a) : (b))
#define SMALLER_FLOAT(T, U, a, b) (((a) != (a)) | ((a) < (b)) ? (a) : (b))
#define OR(T, U, a, b)            ((T)((a) | (b)))
#define AND(T, U, a, b)           ((T)((a) & (b)))

/* Complex numbers are ordered by the real part, then by the imaginary one; what is not a number wins, wherever it stands. */
#define MULTIPLY_c64(T, U, a, b)    COMPLEX_PRODUCT(a, b, FMAF)
#define MULTIPLY_c128(T, U, a, b)   COMPLEX_PRODUCT(a, b, FMA)
#define BEFORE(a, b)                (__real__(a) == __real__(b) ? __imag__(a) < __imag__(b) : __real__(a) < __real__(b))
#define LARGER_COMPLEX(T, U, a, b)  ((a) != (a) || ((b) == (b) && BEFORE(b, a)) ? (a) : (b))
#define SMALLER_COMPLEX(T, U, a, b) ((a) != (a) || ((b) == (b) && BEFORE(a, b)) ? (a) : (b))

#define LANES 64

/* An element type S(T, U), U the type arithmetic is done in, under one combiner. */
#define COMBINER(name, s, T, U, op)                                                                                    \
    static void name##_pair_##s(int64_t n, void *out, const void *px, const void *py)                                  \
    {                                                                                                                  \
        T *result = out;                                                                                               \
        const T *x = px, *y = py;                                                                                      \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) result[i] = op(T, U, x[i], y[i]);                         \
    }                                                                                                                  \
    static void name##_eight_##s(int64_t n, void *out, const void *px, int64_t stride)                                 \
    {                                                                                                                  \
        T *result = out;                                                                                               \
        const T *x0 = px, *x1 = x0 + stride, *x2 = x1 + stride, *x3 = x2 + stride;                                     \
        const T *x4 = x3 + stride, *x5 = x4 + stride, *x6 = x5 + stride, *x7 = x6 + stride;                            \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                                           \
        {                                                                                                              \
            const T a = op(T, U, x0[i], x1[i]), b = op(T, U, x2[i], x3[i]);                                            \
            const T c = op(T, U, x4[i], x5[i]), d = op(T, U, x6[i], x7[i]);                                            \
            const T ab = op(T, U, a, b), cd = op(T, U, c, d);                                                          \
            result[i] = op(T, U, ab, cd);                                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_chain_##s(int64_t n, void *out, const void *px)                                                 \
    {                                                                                                                  \
        const T *x = px;                                                                                               \
        T so_far = x[0];                                                                                               \
        for (int64_t i = 1; i < n; i++)                                                                                \
            so_far = op(T, U, so_far, x[i]);                                                                           \
        *(T *)out = so_far;                                                                                            \
    }                                                                                                                  \
    static void name##_lanes_##s(int64_t n, void *out, const void *px)                                                 \
    {                                                                                                                  \
        const T *x = px;                                                                                               \
        T lane[LANES];                                                                                                 \
        memcpy(lane, x, sizeof lane);                                                                                  \
        int64_t i = LANES;                                                                                             \
        for (; i + LANES <= n; i += LANES)                                                                             \
            for (int j = 0; j < LANES; j++)                                                                            \
                lane[j] = op(T, U, lane[j], x[i + j]);                                                                 \
        for (int j = 0; j < n - i; j++)                                                                                \
            lane[j] = op(T, U, lane[j], x[i + j]);                                                                     \
        for (int half = LANES / 2; half > 0; half /= 2)                                                                \
            for (int j = 0; j < half; j++)                                                                             \
                lane[j] = op(T, U, lane[j], lane[j + half]);                                                           \
        *(T *)out = lane[0];                                                                                           \
    }

/* Narrow types are rounded after each pair; whole reductions of them are worked in float32 (reduce.c). */
#define NARROW_PAIR(name, s, T, op, to_float, of_float)                                                                \
    static void name##_pair_##s(int64_t n, void *out, const void *px, const void *py)                                  \
    {                                                                                                                  \
        T *result = out;                                                                                               \
        const T *x = px, *y = py;                                                                                      \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                                                           \
        {                                                                                                              \
            const float a = to_float(x[i]), b = to_float(y[i]);                                                        \
            result[i] = of_float(op(float, float, a, b));                                                              \
        }                                                                                                              \
    }

#define INTEGER_COMBINERS(a, number, type, s, T, U, S, W, ...)                                                         \
    COMBINER(sum, s, T, W, ADD)                                                                                        \
    COMBINER(prod, s, T, W, MULTIPLY)                                                                                  \
    COMBINER(max, s, T, W, LARGER)                                                                                     \
    COMBINER(min, s, T, W, SMALLER)                                                                                    \
    COMBINER(and, s, T, W, AND)                                                                                        \
    COMBINER(or, s, T, W, OR)
#define WIDE_COMBINERS(a, number, type, s, T, ...)                                                                     \
    COMBINER(sum, s, T, T, ADD)                                                                                        \
    COMBINER(prod, s, T, T, MULTIPLY)                                                                                  \
    COMBINER(max, s, T, T, LARGER_FLOAT)                                                                               \
    COMBINER(min, s, T, T, SMALLER_FLOAT)
#define NARROW_COMBINERS(a, number, type, s, T, of, to, ...)                                                           \
    NARROW_PAIR(sum, s, T, ADD, of, to)                                                                                \
    NARROW_PAIR(prod, s, T, MULTIPLY, of, to)                                                                          \
    NARROW_PAIR(max, s, T, LARGER_FLOAT, of, to)                                                                       \
    NARROW_PAIR(min, s, T, SMALLER_FLOAT, of, to)
#define COMPLEX_COMBINERS(a, number, type, s, T, ...)                                                                  \
    COMBINER(sum, s, T, T, ADD)                                                                                        \
    COMBINER(prod, s, T, T, MULTIPLY_##s)                                                                              \
    COMBINER(max, s, T, T, LARGER_COMPLEX)                                                                             \
    COMBINER(min, s, T, T, SMALLER_COMPLEX)
COMBINER(or, b8, uint8_t, uint8_t, OR)
COMBINER(and, b8, uint8_t, uint8_t, AND)
OLY_INTEGER_TYPES(INTEGER_COMBINERS, )
OLY_WIDE_TYPES(WIDE_COMBINERS, )
OLY_NARROW_TYPES(NARROW_COMBINERS, )
OLY_COMPLEX_TYPES(COMPLEX_COMBINERS, )

/* bool: sum and max are or, product and min are and. */
#define NO_TYPES(X, a)
#define NUMBER_CELLS(f, NARROW_TYPES)                                                                                  \
    OLY_INTEGER_TYPES(OLY_CELL, f)                                                                                     \
    OLY_WIDE_TYPES(OLY_CELL, f) OLY_COMPLEX_TYPES(OLY_CELL, f) NARROW_TYPES(OLY_CELL, f)
#define CELLS(form, NARROW_TYPES)                                                                                      \
    {                                                                                                                  \
        [OLY_COMBINE_SUM] = {[OLY_BOOL] = or_##form##_b8, NUMBER_CELLS(sum_##form, NARROW_TYPES)},                     \
        [OLY_COMBINE_PROD] = {[OLY_BOOL] = and_##form##_b8, NUMBER_CELLS(prod_##form, NARROW_TYPES)},                  \
        [OLY_COMBINE_MAX] = {[OLY_BOOL] = or_##form##_b8, NUMBER_CELLS(max_##form, NARROW_TYPES)},                     \
        [OLY_COMBINE_MIN] = {[OLY_BOOL] = and_##form##_b8, NUMBER_CELLS(min_##form, NARROW_TYPES)},                    \
        [OLY_COMBINE_AND] = {[OLY_BOOL] = and_##form##_b8, OLY_INTEGER_TYPES(OLY_CELL, and_##form)},                   \
        [OLY_COMBINE_OR] = {[OLY_BOOL] = or_##form##_b8, OLY_INTEGER_TYPES(OLY_CELL, or_##form)},                      \
    }
const oly_combine_table OLY_ISA_NAME(oly_combiners) = {.pair = CELLS(pair, OLY_NARROW_TYPES),
                                                       .eight = CELLS(eight, NO_TYPES),
                                                       .chain = CELLS(chain, NO_TYPES),
                                                       .lanes = CELLS(lanes, NO_TYPES)};

/* -- folds of whole arrays ------------------------------------------------------------------------------------------ */
#define GROUP 16  /* of positions that are folded one after the other, where there are more: see kernel.h */
#define PIECE 512 /* elements worked at a time: one piece for each level of folding stays in L1 */

typedef struct fold {
    void (*pair)(int64_t, void *, const void *, const void *);
    bool in_pairs;
    const int *counts;
    const void *const *sources;
    int stride[4]; /* sources from one position to the next of each level */
    int64_t at, n; /* the elements */
    size_t bytes;  /* of one */
} fold;

static const char *fold_level(const fold *f, int level, int first, char *out);

/* `count` positions of a level from `first` on: where the result is. It is made in `out` unless it is a source's own. */
static const char *fold_some(const fold *f, int level, int first, int count, char *out)
{
    char other[PIECE * 16] __attribute__((aligned(64)));
    const char *left, *right;
    if (count == 1)
        return fold_level(f, level - 1, first, out);
    int span =
        1; /* in pairs: what a tree of adjacent pairs puts together first; else groups of 16, groups of these, ... */
    for (int of = f->in_pairs ? 2 : GROUP; span * of < count;)
        span *= of;
    left = fold_some(f, level, first, span, out);
    for (int i = span; i < count; i += span) {
        right = fold_some(f, level, first + i * f->stride[level], count - i < span ? count - i : span, other);
        f->pair(f->n, out, left, right);
        left = out;
    }
    return left;
}

/* All positions of levels 0..level of the sources that start at `first`. */
static const char *fold_level(const fold *f, int level, int first, char *out)
{
    if (level < 0)
        return (const char *)f->sources[first] + (size_t)f->at * f->bytes;
    return fold_some(f, level, first, f->counts[level], out);
}

void OLY_ISA_NAME(oly_combine)(oly_combiner c, oly_dtype dtype, bool in_pairs, int n_counts, const int *counts,
                               const void *const *sources, void *out, int64_t begin, int64_t end)
{
    fold f = {
        OLY_ISA_NAME(oly_combiners).pair[c][dtype], in_pairs, counts, sources, {0}, 0, 0, oly_element_bytes[dtype]};
    char result[PIECE * 16] __attribute__((aligned(64))); /* out may be one of the sources */
    for (int level = n_counts - 1, stride = 1; level >= 0; level--) {
        f.stride[level] = stride;
        stride *= counts[level];
    }
    for (f.at = begin; f.at < end; f.at += PIECE) {
        f.n = end - f.at < PIECE ? end - f.at : PIECE;
        memcpy((char *)out + (size_t)f.at * f.bytes, fold_level(&f, n_counts - 1, 0, result), (size_t)f.n * f.bytes);
    }
}
