/* SPDX-License-Identifier: BSD-3-Clause */
/* The combiners (sum, product, largest, smallest, bitwise and, or) on contiguous elements, and oly_combine, which
 * reduces whole arrays with them. Compiled once per instruction set; gives oly_combiners_<isa>, used by reduce.c. */
#include "table.h"
#include "cpu/vector_math.h"
#include <string.h>

/* -- one pair of elements; integers wrap, NaN wins ------------------------------------------------------------------ */
/* <op>_INTEGER, <op>_FLOAT, and <op>_<suffix> for complex numbers, of each op of combiner_list.h; U: the type of the
 * arithmetic. */
#define ADD_INTEGER(T, U, a, b)      ((T)((U)(a) + (U)(b)))
#define ADD_FLOAT(T, U, a, b)        ((T)((a) + (b)))
#define MULTIPLY_INTEGER(T, U, a, b) ((T)((U)(a) * (U)(b)))
#define MULTIPLY_FLOAT(T, U, a, b)   ((T)((a) * (b)))
#define LARGER_INTEGER(T, U, a, b)   ((a) > (b) ? (a) : (b))
#define LARGER_FLOAT(T, U, a, b)     (((a) != (a)) | ((a) > (b)) ? (a) : (b))
#define SMALLER_INTEGER(T, U, a, b)  ((a) < (b) ? (a) : (b))
#define SMALLER_FLOAT(T, U, a, b)    (((a) != (a)) | ((a) < (b)) ? (a) : (b))
#define AND_INTEGER(T, U, a, b)      ((T)((a) & (b)))
#define OR_INTEGER(T, U, a, b)       ((T)((a) | (b)))

/* Complex numbers are ordered by the real part, then by the imaginary one; a NaN wins in either part. */
#define BEFORE(a, b)                (__real__(a) == __real__(b) ? __imag__(a) < __imag__(b) : __real__(a) < __real__(b))
#define LARGER_COMPLEX(T, U, a, b)  ((a) != (a) || ((b) == (b) && BEFORE(b, a)) ? (a) : (b))
#define SMALLER_COMPLEX(T, U, a, b) ((a) != (a) || ((b) == (b) && BEFORE(a, b)) ? (a) : (b))
#define ADD_c64                     ADD_FLOAT
#define ADD_c128                    ADD_FLOAT
#define MULTIPLY_c64(T, U, a, b)    COMPLEX_PRODUCT(a, b, FMAF)
#define MULTIPLY_c128(T, U, a, b)   COMPLEX_PRODUCT(a, b, FMA)
#define LARGER_c64                  LARGER_COMPLEX
#define LARGER_c128                 LARGER_COMPLEX
#define SMALLER_c64                 SMALLER_COMPLEX
#define SMALLER_c128                SMALLER_COMPLEX

#define LANES        64
#define ACROSS       64 /* results of eight rows at a time; pair by pair, as compilers do not vectorise a tree of choices */
#define FEW          16 /* at a time, where there are fewer; and half of these, and: */
#define FEWEST       4
#define MOST_COLUMNS 8  /* of narrow rows, combined in registers, */
#define SLIDING      64 /* results of sliding groups at a time */
#define TOGETHER     4  /* for several groups of results at once: one alone would wait for each operation */

static inline void fetch(const void *at, int64_t ahead, size_t bytes)
{
    if (ahead == 0)
        return;
    for (size_t k = 0; k < bytes; k += 64)
        __builtin_prefetch((const char *)at + ahead + k);
}

/* In vectors as wide as those that read the copy: loads of what narrower stores wrote would wait for them. As a plain loop it would become a
 * call of memcpy, in narrower ones. */
typedef char line __attribute__((vector_size(64), aligned(1), may_alias));
static inline __attribute__((always_inline)) void copy_lanes(void *to, const void *from, size_t bytes)
{
    const char *x = from;
    for (size_t k = 0; k < bytes; k += sizeof(line)) {
        __asm__("" : "+r"(x));
        *(line *)((char *)to + k) = *(const line *)(x + k);
    }
}

/* Element type S(T, U), U the type of its arithmetic, under one combiner. */
#define COMBINER(name, s, T, U, op)                                                                                    \
    static void name##_pair_##s(int64_t n, void *out, const void *px, const void *py)                                  \
    {                                                                                                                  \
        T *result = out;                                                                                               \
        const T *x = px, *y = py;                                                                                      \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) result[i] = op(T, U, x[i], y[i]);                         \
    }                                                                                                                  \
    /* `count` results of eight rows, the last one at x7; constant. Unrolled too early, it would branch. */            \
    static inline __attribute__((always_inline)) void name##_eight_of_##s(const int count, T *result, const T *x0,     \
                                                                          int64_t stride, const T *x7)                 \
    {                                                                                                                  \
        const T *x1 = x0 + stride, *x2 = x1 + stride, *x3 = x2 + stride;                                               \
        const T *x4 = x3 + stride, *x5 = x4 + stride, *x6 = x5 + stride;                                               \
        T a[ACROSS], b[ACROSS], c[ACROSS];                                                                             \
        _Pragma("GCC unroll 1") for (int j = 0; j < count; j++) a[j] = op(T, U, x0[j], x1[j]);                         \
        _Pragma("GCC unroll 1") for (int j = 0; j < count; j++) b[j] = op(T, U, x2[j], x3[j]);                         \
        _Pragma("GCC unroll 1") for (int j = 0; j < count; j++) a[j] = op(T, U, a[j], b[j]);                           \
        _Pragma("GCC unroll 1") for (int j = 0; j < count; j++) b[j] = op(T, U, x4[j], x5[j]);                         \
        _Pragma("GCC unroll 1") for (int j = 0; j < count; j++) c[j] = op(T, U, x6[j], x7[j]);                         \
        _Pragma("GCC unroll 1") for (int j = 0; j < count; j++) b[j] = op(T, U, b[j], c[j]);                           \
        _Pragma("GCC unroll 1") for (int j = 0; j < count; j++) result[j] = op(T, U, a[j], b[j]);                      \
    }                                                                                                                  \
    /* n >= count of them; the last `count` may overlap those before, and are the same again. */                       \
    static inline __attribute__((always_inline)) void name##_eight_by_##s(const int count, int64_t n, T *result,       \
                                                                          const T *x, int64_t stride)                  \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i += count) {                                                                       \
            const int64_t at = i + count <= n ? i : n - count;                                                         \
            name##_eight_of_##s(count, result + at, x + at, stride, x + at + 7 * stride);                              \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_eight_##s(int64_t n, void *out, const void *px, int64_t stride)                                 \
    {                                                                                                                  \
        T *result = out;                                                                                               \
        const T *x = px;                                                                                               \
        if (n >= ACROSS)                                                                                               \
            name##_eight_by_##s(ACROSS, n, result, x, stride);                                                         \
        else if (n >= FEW)                                                                                             \
            name##_eight_by_##s(FEW, n, result, x, stride);                                                            \
        else if (n >= FEW / 2)                                                                                         \
            name##_eight_by_##s(FEW / 2, n, result, x, stride);                                                        \
        else if (n >= FEWEST)                                                                                          \
            name##_eight_by_##s(FEWEST, n, result, x, stride);                                                         \
        else { /* more than there are, of all rows but the last, which end behind it */                                \
            T rows[8 * FEWEST] = {0}, *last = rows + 7 * FEWEST, got[FEWEST];                                          \
            const bool in_place = stride >= (n == 1 ? FEWEST - 1 : n);                                                 \
            for (int k = in_place ? 7 : 0; k < 8; k++)                                                                 \
                for (int64_t j = 0; j < n; j++)                                                                        \
                    rows[k * FEWEST + j] = x[k * stride + j];                                                          \
            if (in_place)                                                                                              \
                name##_eight_of_##s(FEWEST, got, x, stride, last);                                                     \
            else                                                                                                       \
                name##_eight_of_##s(FEWEST, got, rows, FEWEST, last);                                                  \
            for (int64_t j = 0; j < n; j++)                                                                            \
                result[j] = got[j];                                                                                    \
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
    static inline __attribute__((always_inline)) void name##_columns_##s(                                              \
        int few, int together, int64_t n, int64_t rows, T *out, const T *x, int64_t stride, int64_t group, bool more)  \
    {                                                                                                                  \
        T so_far[TOGETHER][MOST_COLUMNS];                                                                              \
        const T *begin = more ? out : x;                                                                               \
        const int64_t apart = more ? n : group;                                                                        \
        for (int g = 0; g < together; g++)                                                                             \
            for (int j = 0; j < few; j++)                                                                              \
                so_far[g][j] = begin[g * apart + j];                                                                   \
        for (int64_t k = more ? 0 : 1; k < rows; k++)                                                                  \
            for (int g = 0; g < together; g++)                                                                         \
                for (int j = 0; j < few; j++)                                                                          \
                    so_far[g][j] = op(T, U, so_far[g][j], x[g * group + k * stride + j]);                              \
        for (int g = 0; g < together; g++)                                                                             \
            for (int j = 0; j < few; j++)                                                                              \
                out[g * n + j] = so_far[g][j];                                                                         \
    }                                                                                                                  \
    static inline __attribute__((always_inline)) void name##_groups_##s(int few, int64_t n, int64_t rows,              \
                                                                        int64_t groups, T *out, const T *x,            \
                                                                        int64_t stride, int64_t group, bool more)      \
    {                                                                                                                  \
        int64_t g = 0;                                                                                                 \
        for (; g + TOGETHER <= groups; g += TOGETHER)                                                                  \
            name##_columns_##s(few, TOGETHER, n, rows, out + g * n, x + g * group, stride, group, more);               \
        for (; g < groups; g++)                                                                                        \
            name##_columns_##s(few, 1, n, rows, out + g * n, x + g * group, stride, group, more);                      \
    }                                                                                                                  \
    /* Single elements of groups that slide along x one by one: `count` of them, in registers if it is constant. */    \
    static inline __attribute__((always_inline)) void name##_slide_by_##s(const int count, int64_t rows, T *out,       \
                                                                          const T *x, int64_t stride, bool more)       \
    {                                                                                                                  \
        T so_far[SLIDING];                                                                                             \
        for (int j = 0; j < count; j++)                                                                                \
            so_far[j] = more ? out[j] : x[j];                                                                          \
        for (int64_t k = more ? 0 : 1; k < rows; k++)                                                                  \
            _Pragma("GCC ivdep") for (int j = 0; j < count; j++) so_far[j] = op(T, U, so_far[j], x[k * stride + j]);   \
        for (int j = 0; j < count; j++)                                                                                \
            out[j] = so_far[j];                                                                                        \
    }                                                                                                                  \
    static inline __attribute__((always_inline)) void name##_slide_##s(int64_t n, int64_t rows, T *out, const T *x,    \
                                                                       int64_t stride, bool more)                      \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + SLIDING <= n; i += SLIDING)                                                                         \
            name##_slide_by_##s(SLIDING, rows, out + i, x + i, stride, more);                                          \
        for (; i + FEW <= n; i += FEW)                                                                                 \
            name##_slide_by_##s(FEW, rows, out + i, x + i, stride, more);                                              \
        if (i < n)                                                                                                     \
            name##_slide_by_##s((int)(n - i), rows, out + i, x + i, stride, more);                                     \
    }                                                                                                                  \
    static void name##_rows_##s(int64_t n, int64_t rows, int64_t groups, void *out, const void *px, int64_t stride,    \
                                int64_t group, bool more)                                                              \
    {                                                                                                                  \
        T *result = out;                                                                                               \
        const T *x = px;                                                                                               \
        int64_t i = 0;                                                                                                 \
        if (n == 1 && group == 1) {                                                                                    \
            name##_slide_##s(groups, rows, result, x, stride, more);                                                   \
            return;                                                                                                    \
        }                                                                                                              \
        for (; i + MOST_COLUMNS <= n; i += MOST_COLUMNS)                                                               \
            name##_groups_##s(MOST_COLUMNS, n, rows, groups, result + i, x + i, stride, group, more);                  \
        if (n - i >= 4) {                                                                                              \
            name##_groups_##s(4, n, rows, groups, result + i, x + i, stride, group, more);                             \
            i += 4;                                                                                                    \
        }                                                                                                              \
        switch (n - i) {                                                                                               \
        case 3: name##_groups_##s(3, n, rows, groups, result + i, x + i, stride, group, more); break;                  \
        case 2: name##_groups_##s(2, n, rows, groups, result + i, x + i, stride, group, more); break;                  \
        case 1: name##_groups_##s(1, n, rows, groups, result + i, x + i, stride, group, more); break;                  \
        default: break;                                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    static inline                                                                                                      \
        __attribute__((always_inline)) void name##_fold_##s(int64_t n, T *lane, const T *x, int64_t ahead, int until)  \
    {                                                                                                                  \
        int64_t i = LANES;                                                                                             \
        int half = LANES / 2;                                                                                          \
        if (n == LANES) {                                                                                              \
            for (int j = 0; j < LANES / 2; j++)                                                                        \
                lane[j] = op(T, U, x[j], x[j + LANES / 2]);                                                            \
            half = LANES / 4;                                                                                          \
        } else if (n < 2 * LANES) {                                                                                    \
            copy_lanes(lane, x, sizeof(T) * LANES);                                                                    \
        } else {                                                                                                       \
            for (int j = 0; j < LANES; j++)                                                                            \
                lane[j] = op(T, U, x[j], x[LANES + j]);                                                                \
            i += LANES;                                                                                                \
        }                                                                                                              \
        for (; i + LANES <= n; i += LANES) {                                                                           \
            fetch(x + i, ahead, LANES * sizeof(T));                                                                    \
            for (int j = 0; j < LANES; j++)                                                                            \
                lane[j] = op(T, U, lane[j], x[i + j]);                                                                 \
        }                                                                                                              \
        int rest = (int)(n - i), done = 0;                                                                             \
        for (; done + OLY_FOLDED <= rest; done += OLY_FOLDED)                                                          \
            for (int j = 0; j < OLY_FOLDED; j++)                                                                       \
                lane[done + j] = op(T, U, lane[done + j], x[i + done + j]);                                            \
        if (done < rest) { /* three loops that compilers vectorise with masks */                                       \
            T last[OLY_FOLDED];                                                                                        \
            for (int j = 0; j < OLY_FOLDED; j++)                                                                       \
                last[j] = j < rest - done ? x[i + done + j] : 0;                                                       \
            for (int j = 0; j < OLY_FOLDED; j++)                                                                       \
                last[j] = op(T, U, lane[done + j], last[j]);                                                           \
            for (int j = 0; j < OLY_FOLDED; j++)                                                                       \
                lane[done + j] = j < rest - done ? last[j] : lane[done + j];                                           \
        }                                                                                                              \
        for (; half >= until; half /= 2)                                                                               \
            for (int j = 0; j < half; j++)                                                                             \
                lane[j] = op(T, U, lane[j], lane[j + half]);                                                           \
    }                                                                                                                  \
    static void name##_lanes_##s(int64_t n, void *out, const void *px, int64_t ahead)                                  \
    {                                                                                                                  \
        T lane[LANES];                                                                                                 \
        name##_fold_##s(n, lane, px, ahead, 1);                                                                        \
        *(T *)out = lane[0];                                                                                           \
    }                                                                                                                  \
    static void name##_folded_##s(int64_t n, void *out, const void *px)                                                \
    {                                                                                                                  \
        T lane[LANES];                                                                                                 \
        name##_fold_##s(n, lane, px, 0, OLY_FOLDED);                                                                   \
        memcpy(out, lane, sizeof(T) * OLY_FOLDED);                                                                     \
    }

/* Narrow types are rounded after each pair; whole reductions of them are computed in float32 (reduce.c). */
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

/* Every combiner for every element type it has. `of`: (suffix, C type, ...) of the element type. */
#define REST(...)                                              __VA_ARGS__
#define APPLY(X, ...)                                          X(__VA_ARGS__)
#define INTEGER(of, number, name, as_bool, op, ...)            APPLY(COMBINER_OF, name, op##_INTEGER, REST of)
#define FLOATING(of, number, name, as_bool, op, ...)           APPLY(COMBINER_OF, name, op##_FLOAT, REST of)
#define NARROW(of, number, name, as_bool, op, ...)             APPLY(NARROW_OF, name, op##_FLOAT, REST of)
#define COMPLEX(of, number, name, as_bool, op, ...)            APPLY(COMPLEX_OF, name, op, REST of)
#define COMBINER_OF(name, op, s, T, U)                         COMBINER(name, s, T, U, op)
#define NARROW_OF(name, op, s, T, of, to)                      NARROW_PAIR(name, s, T, op, of, to)
#define COMPLEX_OF(name, op, s, T)                             COMBINER(name, s, T, T, op##_##s)
#define INTEGER_COMBINERS(a, number, type, s, T, U, S, W, ...) OLY_EVERY_COMBINER(INTEGER, (s, T, W))
#define WIDE_COMBINERS(a, number, type, s, T, ...)             OLY_NUMBER_COMBINERS(FLOATING, (s, T, T))
#define NARROW_COMBINERS(a, number, type, s, T, of, to, ...)   OLY_NUMBER_COMBINERS(NARROW, (s, T, of, to))
#define COMPLEX_COMBINERS(a, number, type, s, T, ...)          OLY_NUMBER_COMBINERS(COMPLEX, (s, T))
COMBINER(or, b8, uint8_t, uint8_t, OR_INTEGER)
COMBINER(and, b8, uint8_t, uint8_t, AND_INTEGER)
OLY_INTEGER_TYPES(INTEGER_COMBINERS, )
OLY_WIDE_TYPES(WIDE_COMBINERS, )
OLY_NARROW_TYPES(NARROW_COMBINERS, )
OLY_COMPLEX_TYPES(COMPLEX_COMBINERS, )

/* Narrow types have only `pair`. */
#define WIDE_CELLS(form, number, name, as_bool, ...)                                                                   \
    [OLY_COMBINE_##number] = {[OLY_BOOL] = as_bool##_##form##_b8,                                                      \
                              OLY_INTEGER_TYPES(OLY_CELL, name##_##form) OLY_WIDE_TYPES(OLY_CELL, name##_##form)       \
                                  OLY_COMPLEX_TYPES(OLY_CELL, name##_##form)},
#define PAIR_CELLS(a, number, name, as_bool, ...)                                                                      \
    [OLY_COMBINE_##number] = {[OLY_BOOL] = as_bool##_pair_b8,                                                          \
                              OLY_REAL_TYPES(OLY_CELL, name##_pair) OLY_COMPLEX_TYPES(OLY_CELL, name##_pair)},
#define BIT_CELLS(form, number, name, as_bool, ...)                                                                    \
    [OLY_COMBINE_##number] = {[OLY_BOOL] = as_bool##_##form##_b8, OLY_INTEGER_TYPES(OLY_CELL, name##_##form)},
#define CELLS(form)                                                                                                    \
    {                                                                                                                  \
        OLY_NUMBER_COMBINERS(WIDE_CELLS, form) OLY_BIT_COMBINERS(BIT_CELLS, form)                                      \
    }
const oly_combine_table OLY_ISA_NAME(oly_combiners) = {
    .pair = {OLY_NUMBER_COMBINERS(PAIR_CELLS, ) OLY_BIT_COMBINERS(BIT_CELLS, pair)},
    .eight = CELLS(eight),
    .rows = CELLS(rows),
    .chain = CELLS(chain),
    .lanes = CELLS(lanes),
    .folded = CELLS(folded)};

/* -- reductions of whole arrays ------------------------------------------------------------------------------------ */
#define GROUP 16  /* positions combined one after the other, if there are more: see kernel.h */
#define PIECE 512 /* elements at a time: one piece per level of the reduction stays in L1 */

typedef struct nested {
    void (*pair)(int64_t, void *, const void *, const void *);
    bool in_pairs;
    const int *counts;
    const void *const *sources;
    int stride[4]; /* sources from one position to the next of each level */
    int64_t at, n; /* the elements */
    size_t bytes;  /* of one */
} nested;

static const char *reduce_levels(const nested *f, int level, int first, char *out);

/* Reduces `count` positions of a level from `first` on. Returns where the result is: `out`, or a source if there is
 * only one. */
static const char *reduce_positions(const nested *f, int level, int first, int count, char *out)
{
    char other[PIECE * 16] __attribute__((aligned(64)));
    const char *left, *right;
    if (count == 1)
        return reduce_levels(f, level - 1, first, out);
    int span = 1; /* in pairs: the left subtree of a tree of adjacent pairs; else groups of 16, groups of these, ... */
    for (int of = f->in_pairs ? 2 : GROUP; span * of < count;)
        span *= of;
    left = reduce_positions(f, level, first, span, out);
    for (int i = span; i < count; i += span) {
        right = reduce_positions(f, level, first + i * f->stride[level], count - i < span ? count - i : span, other);
        f->pair(f->n, out, left, right);
        left = out;
    }
    return left;
}

/* Reduces all positions of levels 0..level of the sources that start at `first`. */
static const char *reduce_levels(const nested *f, int level, int first, char *out)
{
    if (level < 0)
        return (const char *)f->sources[first] + (size_t)f->at * f->bytes;
    return reduce_positions(f, level, first, f->counts[level], out);
}

void OLY_ISA_NAME(oly_combine)(oly_combiner c, oly_dtype dtype, bool in_pairs, int n_counts, const int *counts,
                               const void *const *sources, void *out, int64_t begin, int64_t end)
{
    nested f = {
        OLY_ISA_NAME(oly_combiners).pair[c][dtype], in_pairs, counts, sources, {0}, 0, 0, oly_element_bytes[dtype]};
    char result[PIECE * 16] __attribute__((aligned(64))); /* out may be one of the sources */
    for (int level = n_counts - 1, stride = 1; level >= 0; level--) {
        f.stride[level] = stride;
        stride *= counts[level];
    }
    for (f.at = begin; f.at < end; f.at += PIECE) {
        f.n = end - f.at < PIECE ? end - f.at : PIECE;
        memcpy((char *)out + (size_t)f.at * f.bytes, reduce_levels(&f, n_counts - 1, 0, result), (size_t)f.n * f.bytes);
    }
}
