/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing elements, or combining them with others, at positions known only at run time. Compiled once per instruction
 * set; gives oly_scatter_run_<isa>, called through local.c. Every chunk owns a part of the result, split along one
 * dimension (oly_scatter_cut): it copies that part of the operand, then visits all positions in order and applies those
 * in its part. So an element gets its updates in their order, for any number of chunks or devices. */
#include "local_index.h"
#include "two_elements.h"
#include <string.h>
#ifdef __AVX2__
#include "cpu/lane_orders.h"
#include <immintrin.h>
#endif

#define SET(A, x, y) (y)
/* complex numbers: by the real part, then the imaginary one */
#define BEFORE(x, y)             (__real__(x) < __real__(y) || (__real__(x) == __real__(y) && __imag__(x) < __imag__(y)))
#define LARGER_COMPLEX(A, x, y)  (BEFORE(y, x) ? (x) : (y))
#define SMALLER_COMPLEX(A, x, y) (BEFORE(x, y) ? (x) : (y))

/* to[i] = to[i] op from[i], i < n */
typedef void combine(int64_t n, void *to, int64_t to_stride, const void *from, int64_t from_stride);
/* The updates which[k] of `step` elements each, in order: to[offset[k] + i] op from[which[k] * step + i], i < n. */
typedef void combine_rows(int64_t rows, const int64_t *offset, const int16_t *which, int64_t n, void *to,
                          const void *from, int64_t step);

enum { ELEMENTS_AHEAD = 32 }; /* fetched ahead: more than a processor reads at a time by itself */

/* Do many rows have the offset of the row before? Of the first ones. */
static bool repeat(int64_t rows, const int64_t *offset)
{
    enum { LOOKED_AT = 17 };
    int64_t same = 0, n = rows < LOOKED_AT ? rows : LOOKED_AT;
    for (int64_t k = 1; k < n; k++)
        same += offset[k] == offset[k - 1];
    return 4 * same >= n;
}

/* Is the loop faster that reads and writes each element? Not where a compiler makes a branch of the choice of one of two. */
#define IN_MEMORY_add true
#define IN_MEMORY_mul true
#define IN_MEMORY_min false
#define IN_MEMORY_max false
#define IN_MEMORY_set false

/* A row is an element, or consecutive elements on both sides. Where elements take several updates in a row, they stay in a
 * register, rounded after each; rows elsewhere are fetched ahead of time. */
#define ROWS(name, d, T, A, op, of, to_element)                                                                        \
    static void rows_##name##_##d(int64_t rows, const int64_t *offset, const int16_t *which, int64_t n, void *to,      \
                                  const void *from, int64_t step)                                                      \
    {                                                                                                                  \
        T *y = to;                                                                                                     \
        const T *x = from;                                                                                             \
        if (n == 1 && IN_MEMORY_##name && !repeat(rows, offset)) {                                                     \
            for (int64_t k = 0; k < rows; k++) {                                                                       \
                if (k + ELEMENTS_AHEAD < rows)                                                                         \
                    __builtin_prefetch(y + offset[k + ELEMENTS_AHEAD], 1);                                             \
                y[offset[k]] = (T)to_element(op(A, of(y[offset[k]]), of(x[which[k] * step])));                         \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        if (n == 1) {                                                                                                  \
            for (int64_t k = 0; k < rows;) {                                                                           \
                int64_t at = offset[k];                                                                                \
                if (k + ELEMENTS_AHEAD < rows)                                                                         \
                    __builtin_prefetch(y + offset[k + ELEMENTS_AHEAD], 1);                                             \
                T value = y[at];                                                                                       \
                do                                                                                                     \
                    value = (T)to_element(op(A, of(value), of(x[which[k] * step])));                                   \
                while (++k < rows && offset[k] == at);                                                                 \
                y[at] = value;                                                                                         \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t k = 0; k < rows; k++) {                                                                           \
            T *at = y + offset[k];                                                                                     \
            const T *value = x + which[k] * step;                                                                      \
            fetch_ahead(rows, offset, which, k, n *(int64_t)sizeof(T), (const char *)to, (const char *)from,           \
                        (int64_t)sizeof(T), step);                                                                     \
            _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) at[i] =                                               \
                (T)to_element(op(A, of(at[i]), of(value[i])));                                                         \
        }                                                                                                              \
    }

enum { AHEAD = 6, LINE = 64, MOST_AHEAD = 512 }; /* rows; bytes: of a cache line, of a row fetched ahead */

/* The row AHEAD of row k: processors do not guess where it is. */
static inline void fetch_ahead(int64_t rows, const int64_t *offset, const int16_t *which, int64_t k, int64_t bytes,
                               const char *to, const char *from, int64_t element, int64_t step)
{
    if (k + AHEAD >= rows)
        return;
    for (int64_t b = 0; b < bytes && b < MOST_AHEAD; b += LINE) {
        __builtin_prefetch(to + offset[k + AHEAD] * element + b, 1);
        __builtin_prefetch(from + which[k + AHEAD] * step * element + b, 0);
    }
}

#define COMBINE(name, d, T, A, op, of, to_element)                                                                     \
    static void name##_##d(int64_t n, void *to, int64_t to_stride, const void *from, int64_t from_stride)              \
    {                                                                                                                  \
        T *y = to;                                                                                                     \
        const T *x = from;                                                                                             \
        if (to_stride == 1 && from_stride == 1)                                                                        \
            _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) y[i] = (T)to_element(op(A, of(y[i]), of(x[i])));      \
        else                                                                                                           \
            for (int64_t i = 0; i < n; i++)                                                                            \
                y[i * to_stride] = (T)to_element(op(A, of(y[i * to_stride]), of(x[i * from_stride])));                 \
    }                                                                                                                  \
    ROWS(name, d, T, A, op, of, to_element)
/* U: integers wrap */
#define INTEGERS(a, number, name, s, T, U, ...)                                                                        \
    COMBINE(add, s, U, U, ADD, SAME, SAME)                                                                             \
    COMBINE(mul, s, U, U, MULTIPLY, SAME, SAME)                                                                        \
    COMBINE(min, s, T, T, SMALLER, SAME, SAME)                                                                         \
    COMBINE(max, s, T, T, LARGER, SAME, SAME)
#define FLOATS(s, T, A, of, to)                                                                                        \
    COMBINE(add, s, T, A, ADD, of, to)                                                                                 \
    COMBINE(mul, s, T, A, MULTIPLY, of, to)                                                                            \
    COMBINE(min, s, T, A, SMALLER, of, to)                                                                             \
    COMBINE(max, s, T, A, LARGER, of, to)
#define NARROW(a, number, name, s, T, of, to, ...) FLOATS(s, T, float, of, to)
#define WIDE(a, number, name, s, T, ...)           FLOATS(s, T, T, SAME, SAME)
#define COMPLEX(a, number, name, s, T, ...)                                                                            \
    COMBINE(add, s, T, T, ADD, SAME, SAME)                                                                             \
    COMBINE(mul, s, T, T, MULTIPLY, SAME, SAME)                                                                        \
    COMBINE(min, s, T, T, SMALLER_COMPLEX, SAME, SAME)                                                                 \
    COMBINE(max, s, T, T, LARGER_COMPLEX, SAME, SAME)
COMBINE(add, b8, uint8_t, uint8_t, OR, SAME, SAME)
COMBINE(mul, b8, uint8_t, uint8_t, AND, SAME, SAME)
OLY_INTEGER_TYPES(INTEGERS, )
OLY_NARROW_TYPES(NARROW, )
OLY_WIDE_TYPES(WIDE, )
OLY_COMPLEX_TYPES(COMPLEX, )

#include "cpu/scatter_direct.h"

/* -- sums of ascending positions ------------------------------------------------------------------------------------- */

enum { FIRST = 16 }; /* of many, are usually enough to see that they do not ascend */

static bool ascend(int64_t rows, const int64_t *offset)
{
    if (rows > 2 * FIRST && !ascend(FIRST, offset))
        return false;
    int64_t falls = 0;
    for (int64_t k = 1; k < rows; k++)
        falls |= offset[k] - offset[k - 1];
    return falls >= 0;
}

/* Updates of one element each at ascending offsets, in order. Where a run of equal offsets ends
 * cannot be predicted, so there is no branch: each sum begins with `other`, the element before, or goes on with `value`. A
 * register of one lane holds it, since masks of scalars go through memory. A sum waits for the one before, so two chains of them run side by
 * side, of which the second begins where a run does. */
#define ASCENDING_SUMS(d, T, U)                                                                                        \
    typedef T lanes_##d __attribute__((vector_size(16)));                                                              \
    typedef U bits_##d __attribute__((vector_size(16)));                                                               \
    static inline void add_next_##d(bits_##d *value, U same, U other, T x, T *y)                                       \
    {                                                                                                                  \
        lanes_##d sum = (lanes_##d)((*value & (bits_##d){same}) | (bits_##d){other}) + (lanes_##d){x};                 \
        *y = sum[0];                                                                                                   \
        *value = (bits_##d)sum;                                                                                        \
    }                                                                                                                  \
    static void sums_##d(int64_t rows, const int64_t *offset, const int16_t *which, void *to, const void *from,        \
                         int64_t step)                                                                                 \
    {                                                                                                                  \
        T *y = to;                                                                                                     \
        const T *x = (const T *)from + which[0] * step;                                                                \
        U same[OLY_POSITIONS], other[OLY_POSITIONS];                                                                   \
        T gathered[OLY_POSITIONS];                                                                                     \
        if (step != 1 || which[rows - 1] - which[0] != rows - 1) {                                                     \
            for (int64_t k = 0; k < rows; k++)                                                                         \
                gathered[k] = x[(which[k] - which[0]) * step];                                                         \
            x = gathered;                                                                                              \
        }                                                                                                              \
        for (int64_t k = 0; k < rows; k++) {                                                                           \
            same[k] = k > 0 && offset[k] == offset[k - 1] ? (U)-1 : 0;                                                 \
            memcpy(&other[k], &y[offset[k]], sizeof(U));                                                               \
            other[k] &= ~same[k];                                                                                      \
        }                                                                                                              \
        int64_t second = rows / 2, k = 0, m;                                                                           \
        while (second < rows && same[second])                                                                          \
            second++;                                                                                                  \
        bits_##d value = {0}, beside = {0};                                                                            \
        for (m = second; k < second && m < rows; k++, m++) {                                                           \
            add_next_##d(&value, same[k], other[k], x[k], &y[offset[k]]);                                              \
            add_next_##d(&beside, same[m], other[m], x[m], &y[offset[m]]);                                             \
        }                                                                                                              \
        for (; k < second; k++)                                                                                        \
            add_next_##d(&value, same[k], other[k], x[k], &y[offset[k]]);                                              \
        for (; m < rows; m++)                                                                                          \
            add_next_##d(&beside, same[m], other[m], x[m], &y[offset[m]]);                                             \
    }
typedef void ascending_sums(int64_t rows, const int64_t *offset, const int16_t *which, void *to, const void *from,
                            int64_t step);
ASCENDING_SUMS(f32, float, uint32_t)
ASCENDING_SUMS(f64, double, uint64_t)

/* -- sums of long runs ------------------------------------------------------------------------------------------------ */

/* Where ascending indexes repeat many times (rows of a sparse matrix), the ends of runs are predicted, or rare: each run's sum is in a register,
 * in order, and processors begin the next runs while they wait for it. The n indexes, of one dimension and one batch, are side by side, as are
 * the updates. `low`, `high`: of those in this part. False: they are not such, and nothing is done. */
enum { LONG_RUN = 6 };
#define RUN_SUMS(d, T, I)                                                                                              \
    static bool run_sums_##d##_##I(const I *index, int64_t n, int64_t low, int64_t high, int64_t stride, T *y,         \
                                   const T *x)                                                                         \
    {                                                                                                                  \
        I falls = 0, runs = 0;                                                                                         \
        int64_t k = 0;                                                                                                 \
        if (n < 2 * LONG_RUN || index[FIRST < n ? FIRST - 1 : n - 1] < index[0])                                       \
            return false;                                                                                              \
        for (int64_t j = 1; j < n; j++) {                                                                              \
            falls |= index[j] < index[j - 1];                                                                          \
            runs += index[j] != index[j - 1];                                                                          \
        }                                                                                                              \
        if (falls || (int64_t)runs * LONG_RUN > n)                                                                     \
            return false;                                                                                              \
        while (k < n && index[k] < low)                                                                                \
            k++;                                                                                                       \
        while (n > k && index[n - 1] >= high)                                                                          \
            n--;                                                                                                       \
        while (k < n) {                                                                                                \
            const I at = index[k];                                                                                     \
            T value = y[(at - low) * stride];                                                                          \
            do                                                                                                         \
                value += x[k];                                                                                         \
            while (++k < n && index[k] == at);                                                                         \
            y[(at - low) * stride] = value;                                                                            \
        }                                                                                                              \
        return true;                                                                                                   \
    }
RUN_SUMS(f32, float, int32_t)
RUN_SUMS(f32, float, int64_t)
RUN_SUMS(f64, double, int32_t)
RUN_SUMS(f64, double, int64_t)

/* `to`: the part, whose element p->axis[0].low is at its offset from `origin`; from: the first update. */
static bool sum_runs(const oly_positions *p, int64_t k, int64_t n, oly_dtype dtype, void *to, const void *from)
{
    const oly_index_axis *x = &p->axis[0];
    int64_t room[OLY_POSITIONS], first = oly_positions_batch(p, k) + (x->low - x->origin) * x->stride;
    const void *index = oly_positions_read(p, x, k, n, room);
    if (x->at->dtype == OLY_INT64)
        return dtype == OLY_FLOAT64
                   ? run_sums_f64_int64_t(index, n, x->low, x->high, x->stride, (double *)to + first, from)
                   : run_sums_f32_int64_t(index, n, x->low, x->high, x->stride, (float *)to + first, from);
    return dtype == OLY_FLOAT64 ? run_sums_f64_int32_t(index, n, x->low, x->high, x->stride, (double *)to + first, from)
                                : run_sums_f32_int32_t(index, n, x->low, x->high, x->stride, (float *)to + first, from);
}

/* -- counts --------------------------------------------------------------------------------------------------------- */

/* Integers, to each of which the same number is added at each of its positions, of one dimension and one batch. The first elements of the part
 * have tables of their own, so that equal indexes that follow each other do not wait for each other: their counts are multiplied by
 * the number in the end, which gives the same integers. */
enum { COUNTED = 1024, TABLES = 4, WORTH_COUNTING = 64 };
#define COUNT_INTO(I)                                                                                                  \
    /* Of n indexes those in [low, low + here). */                                                                     \
    static void count_##I(const I *index, int64_t n, int64_t low, int64_t here, uint32_t(*counts)[COUNTED + 1])        \
    {                                                                                                                  \
        int64_t j = 0;                                                                                                 \
        for (; j + TABLES <= n; j += TABLES)                                                                           \
            _Pragma("GCC unroll 4") for (int t = 0; t < TABLES; t++)                                                   \
            {                                                                                                          \
                uint64_t at = (uint64_t)index[j + t] - (uint64_t)low;                                                  \
                counts[t][at < (uint64_t)here ? at : (uint64_t)here]++;                                                \
            }                                                                                                          \
        for (; j < n; j++) {                                                                                           \
            uint64_t at = (uint64_t)index[j] - (uint64_t)low;                                                          \
            counts[0][at < (uint64_t)here ? at : (uint64_t)here]++;                                                    \
        }                                                                                                              \
    }
COUNT_INTO(int32_t)
COUNT_INTO(int64_t)

#define ADD_NUMBER(U, I)                                                                                               \
    static void add_number_##U##_##I(const void *indexes, int64_t n, int64_t low, int64_t here, int64_t stride,        \
                                     void *to, const void *number)                                                     \
    {                                                                                                                  \
        const I *index = indexes;                                                                                      \
        U *y = to, x;                                                                                                  \
        memcpy(&x, number, sizeof x);                                                                                  \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            uint64_t at = (uint64_t)index[j] - (uint64_t)low;                                                          \
            if (at < (uint64_t)here)                                                                                   \
                y[(int64_t)at * stride] = (U)(y[(int64_t)at * stride] + x);                                            \
        }                                                                                                              \
    }
#define ADD_NUMBERS(U)                                                                                                 \
    ADD_NUMBER(U, int32_t)                                                                                             \
    ADD_NUMBER(U, int64_t)                                                                                             \
    static void add_counts_##U(const uint32_t(*counts)[COUNTED + 1], int64_t here, int64_t stride, void *to,           \
                               const void *number)                                                                     \
    {                                                                                                                  \
        U *y = to, x;                                                                                                  \
        memcpy(&x, number, sizeof x);                                                                                  \
        for (int64_t b = 0; b < here; b++) {                                                                           \
            uint64_t sum = 0;                                                                                          \
            for (int t = 0; t < TABLES; t++)                                                                           \
                sum += counts[t][b];                                                                                   \
            y[b * stride] = (U)(y[b * stride] + sum * x);                                                              \
        }                                                                                                              \
    }
ADD_NUMBERS(uint8_t)
ADD_NUMBERS(uint16_t)
ADD_NUMBERS(uint32_t)
ADD_NUMBERS(uint64_t)
typedef void add_number(const void *, int64_t, int64_t, int64_t, int64_t, void *, const void *);
typedef void add_counts(const uint32_t (*)[COUNTED + 1], int64_t, int64_t, void *, const void *);
typedef uint64_t pair __attribute__((vector_size(16), aligned(8)));
COMBINE(set, 1, uint8_t, uint8_t, SET, SAME, SAME)
COMBINE(set, 2, uint16_t, uint16_t, SET, SAME, SAME)
COMBINE(set, 4, uint32_t, uint32_t, SET, SAME, SAME)
COMBINE(set, 8, uint64_t, uint64_t, SET, SAME, SAME)
COMBINE(set, 16, pair, pair, SET, SAME, SAME)

/* A set depends on sizes only; bool: add and max are or, multiply and min are and. */
#define BY_SIZE(f, T)                                                                                                  \
    (sizeof(T) == 1 ? f##_1 : sizeof(T) == 2 ? f##_2 : sizeof(T) == 4 ? f##_4 : sizeof(T) == 8 ? f##_8 : f##_16)
#define SET_CELL(f, number, name, s, T, ...) [OLY_##number] = BY_SIZE(f, T),
#define ROW(bool_f, f)                                                                                                 \
    {                                                                                                                  \
        OLY_BOOL_TYPES(OLY_CELL, bool_f) OLY_REAL_TYPES(OLY_CELL, f) OLY_COMPLEX_TYPES(OLY_CELL, f)                    \
    }
#define CELLS(form)                                                                                                    \
    {                                                                                                                  \
        {OLY_EVERY_TYPE(SET_CELL, form##set)}, ROW(form##add, form##add), ROW(form##mul, form##mul),                   \
            ROW(form##mul, form##min), ROW(form##add, form##max)                                                       \
    }
static combine *const combine_of[5][OLY_N_DTYPES] = CELLS();
static combine_rows *const combine_rows_of[5][OLY_N_DTYPES] = CELLS(rows_);

/* -- one chunk's part ------------------------------------------------------------------------------------------------ */

/* The result's box, split along one dimension: elements [low, high) of it, numbered within the box. */
typedef struct part {
    int dimension;
    int64_t low, high;
} part;

static part part_of(const oly_local_task *t, int chunk, int n_chunks)
{
    part p = {.dimension = oly_scatter_cut(t), .high = 1};
    if (p.dimension >= 0) {
        int64_t n = t->out.extent[p.dimension];
        p.low = n * chunk / n_chunks;
        p.high = n * (chunk + 1) / n_chunks;
    }
    return p;
}

static void copy_part(const oly_local_task *t, const part *p, const void *in, void *out)
{
    const oly_local_operand *x = &t->in[0], *y = &t->out;
    oly_copy_task c = {.element_bytes = oly_element_bytes[x->dtype], .rank = x->rank};
    int64_t from = 0, to = 0;
    for (int d = 0; d < x->rank; d++) {
        c.extent[d] = y->extent[d];
        c.from_stride[d] = x->stride[d];
        c.to_stride[d] = y->stride[d];
        if (d == p->dimension) {
            c.extent[d] = p->high - p->low;
            from = p->low * x->stride[d];
            to = p->low * y->stride[d];
        }
    }
    OLY_ISA_NAME(oly_copy_run)
    (&c, (char *)out + to * (int64_t)c.element_bytes, (const char *)in + from * (int64_t)c.element_bytes, 0, 1);
}

/* Initialises a part of the result: with operand 0's elements where its box is, elsewhere with values that do not
 * change a sum. */
static void begin_part(const oly_local_task *t, const part *p, const void *in, void *out)
{
    const oly_local_operand *x = &t->in[0], *y = &t->out;
    oly_copy_task c = {.element_bytes = oly_element_bytes[x->dtype], .rank = x->rank};
    int64_t from = 0, to = 0, runs = 1, run = 1, bytes = (int64_t)c.element_bytes;
    int cut = p->dimension; /* none in rank 0 */
    int64_t low = p->low, high = p->high;
    for (int d = 0; d < y->rank; d++)
        *(d < cut ? &runs : &run) *= d == cut ? high - low : y->extent[d];
    for (int64_t k = 0; k < runs; k++)
        oly_combine_identity(
            OLY_COMBINE_SUM, x->dtype,
            (char *)out + (y->rank ? k * y->extent[cut] + low : 0) * (y->rank ? y->stride[cut] : 1) * bytes, run);
    for (int d = 0; d < x->rank; d++) {
        int64_t begin = y->origin[d] + (d == cut ? low : 0), end = y->origin[d] + (d == cut ? high : y->extent[d]);
        begin = begin > x->origin[d] ? begin : x->origin[d];
        end = end < x->origin[d] + x->extent[d] ? end : x->origin[d] + x->extent[d];
        if (end <= begin)
            return;
        c.extent[d] = end - begin;
        c.from_stride[d] = x->stride[d];
        c.to_stride[d] = y->stride[d];
        from += (begin - x->origin[d]) * x->stride[d];
        to += (begin - y->origin[d]) * y->stride[d];
    }
    if (in)
        OLY_ISA_NAME(oly_copy_run)(&c, (char *)out + to * bytes, (const char *)in + from * bytes, 0, 1);
}

/* Does position k belong to a batch of the part? Of a part of the first dimension only such positions are visited. */
static bool has_batch(const part *p, const oly_positions *positions, int64_t k)
{
    if (p->dimension <= 0 || p->dimension >= positions->n_batch)
        return true;
    int64_t batch = k / positions->per_batch;
    for (int d = positions->n_batch - 1; d > p->dimension; d--)
        batch /= positions->extent[d];
    batch %= positions->extent[p->dimension];
    return batch >= p->low && batch < p->high;
}

/* Two windows at once, of the dimensions that are not indexed: where updates are read and where they go. */
typedef struct windows {
    int rank;
    int64_t extent[OLY_MAX_RANK], to[OLY_MAX_RANK], from[OLY_MAX_RANK];
    int64_t count;
} windows;

static windows windows_of(const oly_local_task *t, const part *p, int64_t *to_offset, int64_t *from_offset)
{
    const oly_local_operand *y = &t->out, *u = &t->in[t->n_in - 1];
    windows w = {.count = 1};
    int e = u->rank - (y->rank - t->n_batch - t->n_axes);
    *to_offset = *from_offset = 0;
    for (int d = 0; d < y->rank; d++) {
        if (oly_is_indexed(t, d))
            continue;
        int64_t n = y->extent[d], to = y->stride[d], from = u->stride[e++];
        if (d == p->dimension) {
            *to_offset = p->low * to;
            *from_offset = p->low * from;
            n = p->high - p->low;
        }
        if (w.rank > 0 && w.to[w.rank - 1] == to * n && w.from[w.rank - 1] == from * n) {
            w.extent[w.rank - 1] *= n;
        } else if (n != 1) {
            w.extent[w.rank++] = n;
        } else {
            continue;
        }
        w.to[w.rank - 1] = to;
        w.from[w.rank - 1] = from;
    }
    if (w.rank == 0) {
        w.extent[0] = w.to[0] = w.from[0] = 1;
        w.rank = 1;
    }
    for (int d = 0; d < w.rank - 1; d++)
        w.count *= w.extent[d];
    return w;
}

/* Those of n positions (oly_positions_length) from k on that are in this part, in order: how many, the offset of each,
 * and which[]: its number from k on. */
static int64_t select_positions(const oly_positions *p, int64_t k, int64_t n, int64_t *offset, int16_t *which)
{
    int8_t state[OLY_POSITIONS];
    int64_t rows = 0;
    if (oly_positions_follow(p, k, n, offset, state)) {
        for (int64_t j = 0; j < n; j++)
            which[j] = (int16_t)j;
        return n;
    }
    for (int64_t j = 0; j < n; j++) { /* no branch: the chunks' parts are visited in no order */
        offset[rows] = offset[j];
        which[rows] = (int16_t)j;
        rows += state[j] > 0;
    }
    return rows;
}

/* Of n indexes next to each other, those in [low, low + here), in order: how many, `start` plus the distance of each from `low`, and its
 * number. `offset` and `which` have room for SELECTED more. */
enum { SELECTED = 16 };
#define SELECT_DENSE(name, I)                                                                                          \
    static int64_t name(const I *index, int64_t n, int64_t low, int64_t here, int64_t start, int64_t *offset,          \
                        int16_t *which)                                                                                \
    {                                                                                                                  \
        int64_t rows = 0;                                                                                              \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            uint64_t at = (uint64_t)index[j] - (uint64_t)low;                                                          \
            offset[rows] = start + (int64_t)at;                                                                        \
            which[rows] = (int16_t)j;                                                                                  \
            rows += at < (uint64_t)here;                                                                               \
        }                                                                                                              \
        return rows;                                                                                                   \
    }
SELECT_DENSE(select_dense_int64_t, int64_t)
#ifdef __AVX512F__
/* 16 at a time. A negative index is beyond them all as an unsigned number, also after `low` is subtracted. */
static int64_t select_dense_int32_t(const int32_t *index, int64_t n, int64_t low, int64_t here, int64_t start,
                                    int64_t *offset, int16_t *which)
{
    const __m512i from = _mm512_set1_epi32((int32_t)low), length = _mm512_set1_epi32((int32_t)here),
                  first = _mm512_set1_epi64(start), step = _mm512_set1_epi32(SELECTED);
    __m512i number = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    int64_t rows = 0;
    for (int64_t j = 0; j < n; j += SELECTED) {
        __mmask16 any = n - j < SELECTED ? (__mmask16)((1u << (n - j)) - 1) : (__mmask16)0xffff;
        __m512i at = _mm512_sub_epi32(_mm512_maskz_loadu_epi32(any, index + j), from);
        __mmask16 in = _mm512_mask_cmplt_epu32_mask(any, at, length);
        at = _mm512_maskz_compress_epi32(in, at);
        __m512i near = _mm512_cvtepi32_epi64(_mm512_castsi512_si256(at)),
                far = _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(at, 1));
        _mm512_storeu_si512(offset + rows, _mm512_add_epi64(near, first));
        _mm512_storeu_si512(offset + rows + SELECTED / 2, _mm512_add_epi64(far, first));
        _mm256_storeu_si256((__m256i *)(void *)(which + rows),
                            _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(in, number)));
        number = _mm512_add_epi32(number, step);
        rows += __builtin_popcount(in);
    }
    return rows;
}
#elif defined(__AVX2__)
SELECT_DENSE(select_rest, int32_t)

/* Eight at a time; compared as unsigned numbers, as above. */
static int64_t select_dense_int32_t(const int32_t *index, int64_t n, int64_t low, int64_t here, int64_t start,
                                    int64_t *offset, int16_t *which)
{
    enum { VECTOR = 8 };
    const __m256i from = _mm256_set1_epi32((int32_t)low), sign = _mm256_set1_epi32(INT32_MIN),
                  length = _mm256_xor_si256(_mm256_set1_epi32((int32_t)here), sign), first = _mm256_set1_epi64x(start);
    int64_t rows = 0, j = 0;
    for (; j + VECTOR <= n; j += VECTOR) {
        __m256i at = _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(index + j)), from);
        __m256i in = _mm256_cmpgt_epi32(length, _mm256_xor_si256(at, sign));
        int mask = _mm256_movemask_ps(_mm256_castsi256_ps(in));
        __m128i taken = _mm_loadl_epi64((const __m128i *)(const void *)&lane_orders[mask]);
        at = _mm256_permutevar8x32_epi32(at, _mm256_cvtepu8_epi32(taken));
        __m256i near = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(at)),
                far = _mm256_cvtepi32_epi64(_mm256_extracti128_si256(at, 1));
        _mm256_storeu_si256((__m256i *)(void *)(offset + rows), _mm256_add_epi64(near, first));
        _mm256_storeu_si256((__m256i *)(void *)(offset + rows + 4), _mm256_add_epi64(far, first));
        _mm_storeu_si128((__m128i *)(void *)(which + rows),
                         _mm_add_epi16(_mm_cvtepu8_epi16(taken), _mm_set1_epi16((int16_t)j)));
        rows += __builtin_popcount((unsigned)mask);
    }
    int64_t rest = select_rest(index + j, n - j, low, here, start, offset + rows, which + rows);
    for (int64_t k = 0; k < rest; k++)
        which[rows + k] = (int16_t)(which[rows + k] + j);
    return rows + rest;
}
#else
SELECT_DENSE(select_dense_int32_t, int32_t)
#endif

/* The same as select_positions, of one batch, by one dimension, of which indexes outside are dropped: the usual case, without branches. Where
 * the indexes ascend, which takes a fraction of the time to see, those of this part are consecutive. */
#define SELECT(I)                                                                                                      \
    static bool ascend_##I(const I *index, int64_t n)                                                                  \
    {                                                                                                                  \
        if (n > 2 * FIRST && !ascend_##I(index, FIRST))                                                                \
            return false;                                                                                              \
        I falls = 0;                                                                                                   \
        for (int64_t j = 1; j < n; j++)                                                                                \
            falls |= index[j] < index[j - 1];                                                                          \
        return !falls;                                                                                                 \
    }                                                                                                                  \
    static int64_t first_##I(const I *index, int64_t n, int64_t value)                                                 \
    {                                                                                                                  \
        int64_t low = 0;                                                                                               \
        while (low < n) {                                                                                              \
            int64_t mid = (low + n) / 2;                                                                               \
            if (index[mid] < value)                                                                                    \
                low = mid + 1;                                                                                         \
            else                                                                                                       \
                n = mid;                                                                                               \
        }                                                                                                              \
        return low;                                                                                                    \
    }                                                                                                                  \
    static int64_t select_ascending_##I(const oly_index_axis *x, const I *index, int64_t n, int64_t batch,             \
                                        int64_t *offset, int16_t *which)                                               \
    {                                                                                                                  \
        int64_t begin = first_##I(index, n, x->low), end = first_##I(index, n, x->high);                               \
        int64_t first = batch - x->origin * x->stride, stride = x->stride;                                             \
        for (int64_t j = begin; stride == 1 && j < end; j++)                                                           \
            offset[j - begin] = first + index[j];                                                                      \
        for (int64_t j = begin; stride != 1 && j < end; j++)                                                           \
            offset[j - begin] = first + index[j] * stride;                                                             \
        for (int64_t j = begin; j < end; j++)                                                                          \
            which[j - begin] = (int16_t)j;                                                                             \
        return end > begin ? end - begin : 0;                                                                          \
    }                                                                                                                  \
    static int64_t select_##I(const oly_positions *p, int64_t k, int64_t n, int64_t *offset, int16_t *which)           \
    {                                                                                                                  \
        const oly_index_axis *x = &p->axis[0];                                                                         \
        I room[OLY_POSITIONS];                                                                                         \
        const I *index = oly_positions_read_##I(p, x, k, n, room);                                                     \
        int64_t batch = oly_positions_batch(p, k), rows = 0;                                                           \
        int64_t here = x->high > x->low ? x->high - x->low : 0;                                                        \
        if (ascend_##I(index, n))                                                                                      \
            return select_ascending_##I(x, index, n, batch, offset, which);                                            \
        int64_t start = batch + (x->low - x->origin) * x->stride;                                                      \
        if (x->stride == 1 && x->high <= INT32_MAX)                                                                    \
            return select_dense_##I(index, n, x->low, here, start, offset, which);                                     \
        if (x->high <= INT32_MAX) {                                                                                    \
            rows = select_dense_##I(index, n, x->low, here, 0, offset, which);                                         \
            for (int64_t j = 0; j < rows; j++)                                                                         \
                offset[j] = start + offset[j] * x->stride;                                                             \
            return rows;                                                                                               \
        }                                                                                                              \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            int64_t at = index[j];                                                                                     \
            offset[rows] = batch + (at - x->origin) * x->stride;                                                       \
            which[rows] = (int16_t)j;                                                                                  \
            rows += (uint64_t)at - (uint64_t)x->low < (uint64_t)here;                                                  \
        }                                                                                                              \
        return rows;                                                                                                   \
    }                                                                                                                  \
    /* Of `rows` positions, selected by other dimensions, those that are in this part by this one, too. */             \
    static int64_t select_further_##I(const oly_positions *p, const oly_index_axis *x, int64_t k, int64_t n,           \
                                      int64_t rows, int64_t *offset, int16_t *which)                                   \
    {                                                                                                                  \
        I room[OLY_POSITIONS];                                                                                         \
        const I *index = oly_positions_read_##I(p, x, k, n, room);                                                     \
        const int64_t origin = x->origin, stride = x->stride;                                                          \
        int64_t left = 0;                                                                                              \
        if (oly_all_inside_##I(n, index, x->low, x->high)) {                                                           \
            for (int64_t j = 0; j < rows; j++)                                                                         \
                offset[j] += (index[which[j]] - origin) * stride;                                                      \
            return rows;                                                                                               \
        }                                                                                                              \
        for (int64_t j = 0; j < rows; j++) {                                                                           \
            int64_t at = index[which[j]];                                                                              \
            offset[left] = offset[j] + (at - origin) * stride;                                                         \
            which[left] = which[j];                                                                                    \
            left += at >= x->low && at < x->high;                                                                      \
        }                                                                                                              \
        return left;                                                                                                   \
    }
SELECT(int32_t)
SELECT(int64_t)

/* The same for any number of dimensions, of which the first selects best. */
static int64_t select_dropping(const oly_positions *p, int64_t k, int64_t n, int64_t *offset, int16_t *which)
{
    int64_t rows = (p->axis[0].at->dtype == OLY_INT64 ? select_int64_t : select_int32_t)(p, k, n, offset, which);
    for (int a = 1; a < p->n_axes && rows > 0; a++)
        rows = (p->axis[a].at->dtype == OLY_INT64 ? select_further_int64_t
                                                  : select_further_int32_t)(p, &p->axis[a], k, n, rows, offset, which);
    return rows;
}

/* Those of the part; the dimension along which it is one comes first. */
static oly_positions positions_of(const oly_local_task *t, const void *const *in, const part *of)
{
    oly_positions p = oly_positions_of(t, in, &t->out, &t->in[t->n_in - 1]);
    for (int a = 0; a < t->n_axes; a++)
        if (t->axes[a] == of->dimension) {
            oly_index_axis cut = p.axis[a];
            cut.high = cut.low + of->high;
            cut.low += of->low;
            p.axis[a] = p.axis[0];
            p.axis[0] = cut;
        }
    if (of->dimension > 0 && of->dimension >= p.first_row && of->dimension < p.n_batch)
        p.runs = 1; /* some of which are of the part (has_batch) */
    return p;
}

/* Positions [begin, end) of updates that are one integer; false: they are not such. */
static bool add_one_number(const oly_local_task *t, const oly_positions *p, int64_t begin, int64_t end, void *to,
                           const void *number)
{
    static add_number *const add_of[9][2] = {[1] = {add_number_uint8_t_int32_t, add_number_uint8_t_int64_t},
                                             [2] = {add_number_uint16_t_int32_t, add_number_uint16_t_int64_t},
                                             [4] = {add_number_uint32_t_int32_t, add_number_uint32_t_int64_t},
                                             [8] = {add_number_uint64_t_int32_t, add_number_uint64_t_int64_t}};
    static add_counts *const counts_of[9] = {
        [1] = add_counts_uint8_t, [2] = add_counts_uint16_t, [4] = add_counts_uint32_t, [8] = add_counts_uint64_t};
#define IS_INTEGER(a, number, ...) [OLY_##number] = true,
    static const bool is_integer[OLY_N_DTYPES] = {OLY_INTEGER_TYPES(IS_INTEGER, )};
    const oly_index_axis *x = &p->axis[0];
    const oly_local_operand *u = &t->in[t->n_in - 1];
    bool one = t->op == OLY_LOCAL_SCATTER_ADD && is_integer[u->dtype] && p->n_axes == 1 && p->n_batch == 0 &&
               p->mode == OLY_INDEX_FILL;
    for (int d = 0; d < u->rank; d++)
        one = one && (u->stride[d] == 0 || u->extent[d] == 1);
    if (!one)
        return false;
    uint32_t counts[TABLES][COUNTED + 1];
    int64_t room[OLY_POSITIONS], here = x->high > x->low ? x->high - x->low : 0;
    size_t bytes = oly_element_bytes[u->dtype];
    bool wide = x->at->dtype == OLY_INT64,
         counted = here <= COUNTED && end - begin >= TABLES * (here + WORTH_COUNTING) && end - begin < UINT32_MAX;
    to = (char *)to + (x->low - x->origin) * x->stride * (int64_t)bytes;
    for (int table = 0; table < TABLES && counted; table++)
        memset(counts[table], 0, sizeof(uint32_t) * (size_t)(here + 1));
    for (int64_t k = begin, n; k < end; k += n) {
        n = oly_positions_length(p, k, end - k);
        const void *index = oly_positions_read(p, x, k, n, room);
        if (!counted)
            add_of[bytes][wide](index, n, x->low, here, x->stride, to, number);
        else if (wide)
            count_int64_t(index, n, x->low, here, counts);
        else
            count_int32_t(index, n, x->low, here, counts);
    }
    if (counted)
        counts_of[bytes](counts, here, x->stride, to, number);
    return true;
}

void OLY_ISA_NAME(oly_scatter_run)(const oly_local_task *t, const void *const *in, void *out, void *scratch, int phase,
                                   int chunk, int n_chunks)
{
    (void)scratch, (void)phase;
    const oly_local_operand *u = &t->in[t->n_in - 1];
    int64_t bytes = oly_element_bytes[u->dtype], to_offset, from_offset;
    combine *apply = combine_of[t->op - OLY_LOCAL_SCATTER][u->dtype];
    ascending_sums *sums = t->op != OLY_LOCAL_SCATTER_ADD ? NULL
                           : u->dtype == OLY_FLOAT32      ? sums_f32
                           : u->dtype == OLY_FLOAT64      ? sums_f64
                                                          : NULL;
    part p = part_of(t, chunk, n_chunks);
    if (t->partial)
        begin_part(t, &p, in[0], out);
    else if (in[0] != out)
        copy_part(t, &p, in[0], out);
    windows w = windows_of(t, &p, &to_offset, &from_offset);
    oly_positions positions = positions_of(t, in, &p);
    int last = w.rank - 1;
    int64_t step = oly_positions_step(&positions, u->stride), offset[OLY_POSITIONS + SELECTED];
    int16_t which[OLY_POSITIONS + SELECTED];
    int64_t begin = 0, end = positions.count;
    if (p.dimension == 0 && positions.n_batch > 0) { /* the positions of its batches are consecutive */
        int64_t each = positions.extent[0] > 0 ? positions.count / positions.extent[0] : 0;
        begin = each * p.low;
        end = each * p.high;
    }
    bool single = w.count == 1 && w.extent[last] == 1;
    if (single && end > begin &&
        add_one_number(t, &positions, begin, end, (char *)out + to_offset * bytes,
                       (const char *)in[t->n_in - 1] + from_offset * bytes))
        return;
    for (int64_t k = begin, n; k < end && w.extent[last] > 0; k += n) {
        n = oly_positions_length(&positions, k, end - k);
        if (!has_batch(&p, &positions, k))
            continue;
        bool drops = positions.mode == OLY_INDEX_FILL && !oly_positions_differ(&positions, n);
        const char *from = (const char *)in[t->n_in - 1] +
                           (oly_local_offset(positions.rank, positions.extent, u->stride, -1, k) + from_offset) * bytes;
        char *to = (char *)out + to_offset * bytes;
        if (drops && single && sums && step == 1 && positions.n_axes == 1 &&
            sum_runs(&positions, k, n, u->dtype, to, from))
            continue;
        if (drops && single && step == 1 && positions.n_axes == 1 &&
            combine_from_indexes(&positions, k, n, t->op, u->dtype, to, from))
            continue;
        int64_t rows = (drops ? select_dropping : select_positions)(&positions, k, n, offset, which);
        int64_t next = n < end - k - n ? n : end - k - n;
        oly_positions_fetch(&positions, k + n, next);
        if (next >= OLY_WORTH_FETCHING && step == 1 && single)
            oly_fetch_lines(from + n * bytes, next * bytes);
        if (single && sums && rows > 1 && ascend(rows, offset)) {
            sums(rows, offset, which, to, from, step);
            continue;
        }
        if (w.count == 1 && (single || (w.to[last] == 1 && w.from[last] == 1))) {
            combine_rows_of[t->op - OLY_LOCAL_SCATTER][u->dtype](rows, offset, which, w.extent[last], to, from, step);
            continue;
        }
        for (int64_t j = 0; j < rows; j++)
            for (int64_t run = 0; run < w.count; run++)
                apply(w.extent[last], to + (offset[j] + oly_local_offset(last, w.extent, w.to, -1, run)) * bytes,
                      w.to[last], from + (which[j] * step + oly_local_offset(last, w.extent, w.from, -1, run)) * bytes,
                      w.from[last]);
    }
}
