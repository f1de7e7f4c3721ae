/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading elements and slices at positions known only at run time. Compiled once per instruction set; gives
 * oly_gather_run_<isa>, oly_dynamic_slice_run_<isa> and oly_dynamic_update_run_<isa>, called through local.c. */
#include "local_index.h"
#include "cpu/transpose.h"
#include "special_values.h"
#include <math.h>
#include <string.h>

/* -- windows: the dimensions of the operand that are not indexed --------------------------------------------------- */

/* Copies a window to a dense one. */
#define COPY(size, T)                                                                                                  \
    static void copy_##size(const oly_window *w, char *to, const char *from)                                           \
    {                                                                                                                  \
        int64_t n = w->extent[w->rank - 1], stride = w->stride[w->rank - 1];                                           \
        for (int64_t k = 0; k < w->count; k++) {                                                                       \
            const T *x = (const T *)from + oly_window_offset(w, k);                                                    \
            T *y = (T *)to + k * n;                                                                                    \
            if (stride == 1)                                                                                           \
                memcpy(y, x, sizeof(T) * (size_t)n);                                                                   \
            else                                                                                                       \
                for (int64_t i = 0; i < n; i++)                                                                        \
                    y[i] = x[i * stride];                                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    static void fill_##size(const oly_window *w, char *to, const void *value)                                          \
    {                                                                                                                  \
        T *y = (T *)to;                                                                                                \
        T x;                                                                                                           \
        memcpy(&x, value, sizeof x);                                                                                   \
        for (int64_t k = 0; k < w->count * w->extent[w->rank - 1]; k++)                                                \
            y[k] = x;                                                                                                  \
    }
/* Elements [begin, end) of n windows that are columns: rows are read while they are in cache. */
#define COPY_COLUMNS(size, T)                                                                                          \
    static void copy_columns_##size(const oly_window *w, int64_t begin, int64_t end, int64_t n, const int64_t *offset, \
                                    const int8_t *state, void *to, const void *from, const void *const *others)        \
    {                                                                                                                  \
        int64_t stride = w->stride[0];                                                                                 \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            T *y = (T *)to + j * w->extent[0];                                                                         \
            T other;                                                                                                   \
            memcpy(&other, others[state[j] < 0], sizeof other);                                                        \
            if (state[j] > 0)                                                                                          \
                for (int64_t i = begin; i < end; i++)                                                                  \
                    y[i] = ((const T *)from + offset[j])[i * stride];                                                  \
            else                                                                                                       \
                for (int64_t i = begin; i < end; i++)                                                                  \
                    y[i] = other;                                                                                      \
        }                                                                                                              \
    }
typedef struct pair {
    uint64_t half[2];
} pair;
COPY_COLUMNS(1, uint8_t)
COPY_COLUMNS(2, uint16_t)
COPY_COLUMNS(4, uint32_t)
COPY_COLUMNS(8, uint64_t)
COPY_COLUMNS(16, pair)
COPY(1, uint8_t)
COPY(2, uint16_t)
COPY(4, uint32_t)
COPY(8, uint64_t)
COPY(16, pair)

/* Windows of one element: n of them, evenly spaced in the result. */
#define LOOK_UP(size, T)                                                                                               \
    static void look_up_##size(int64_t n, void *to, const void *from, const int64_t *offset, const int8_t *state,      \
                               const void *outside, const void *unseen)                                                \
    {                                                                                                                  \
        T *y = to;                                                                                                     \
        const T *x = from;                                                                                             \
        T other[2];                                                                                                    \
        memcpy(&other[0], outside, sizeof(T));                                                                         \
        memcpy(&other[1], unseen, sizeof(T));                                                                          \
        for (int64_t j = 0; j < n; j++)                                                                                \
            y[j] = state[j] > 0 ? x[offset[j]] : other[-state[j]];                                                     \
    }
LOOK_UP(1, uint8_t)
LOOK_UP(2, uint16_t)
LOOK_UP(4, uint32_t)
LOOK_UP(8, uint64_t)
LOOK_UP(16, pair)
/* The same where all n are here. */
#define LOOK_UP_ALL(size, T)                                                                                           \
    static void look_up_all_##size(int64_t n, void *to, const void *from, const int64_t *offset)                       \
    {                                                                                                                  \
        T *y = to;                                                                                                     \
        const T *x = from;                                                                                             \
        _Pragma("GCC unroll 8") for (int64_t j = 0; j < n; j++)                                                        \
        {                                                                                                              \
            y[j] = x[offset[j]];                                                                                       \
            OLY_BY_ONE;                                                                                                \
        }                                                                                                              \
    }
LOOK_UP_ALL(1, uint8_t)
LOOK_UP_ALL(2, uint16_t)
LOOK_UP_ALL(4, uint32_t)
LOOK_UP_ALL(8, uint64_t)
LOOK_UP_ALL(16, pair)
static void (*const look_up_all_of[17])(int64_t, void *, const void *, const int64_t *) = {
    [1] = look_up_all_1, [2] = look_up_all_2, [4] = look_up_all_4, [8] = look_up_all_8, [16] = look_up_all_16};

static void (*const look_up_of[17])(int64_t, void *, const void *, const int64_t *, const int8_t *, const void *,
                                    const void *) = {
    [1] = look_up_1, [2] = look_up_2, [4] = look_up_4, [8] = look_up_8, [16] = look_up_16};

/* The same where all n indexes are in [low, high) and side by side, which is tested first: the usual case. False: they are not. */
#define LOOK_UP_INSIDE(size, T, I)                                                                                     \
    static bool look_up_##size##_##I(int64_t n, void *to, const void *from, const void *indexes, int64_t low,          \
                                     int64_t high, int64_t origin, int64_t stride)                                     \
    {                                                                                                                  \
        const I *index = indexes;                                                                                      \
        const T *x = from;                                                                                             \
        T *y = to;                                                                                                     \
        if (!oly_all_inside_##I(n, index, low, high))                                                                  \
            return false;                                                                                              \
        if (stride == 1)                                                                                               \
            _Pragma("GCC unroll 8") for (int64_t j = 0; j < n; j++)                                                    \
            {                                                                                                          \
                y[j] = x[index[j] - origin];                                                                           \
                OLY_BY_ONE;                                                                                            \
            }                                                                                                          \
        else                                                                                                           \
            _Pragma("GCC unroll 8") for (int64_t j = 0; j < n; j++)                                                    \
            {                                                                                                          \
                y[j] = x[(index[j] - origin) * stride];                                                                \
                OLY_BY_ONE;                                                                                            \
            }                                                                                                          \
        return true;                                                                                                   \
    }
#define LOOK_UP_BOTH(size, T) LOOK_UP_INSIDE(size, T, int32_t) LOOK_UP_INSIDE(size, T, int64_t)
LOOK_UP_BOTH(1, uint8_t)
LOOK_UP_BOTH(2, uint16_t)
LOOK_UP_BOTH(4, uint32_t)
LOOK_UP_BOTH(8, uint64_t)
LOOK_UP_BOTH(16, pair)
typedef bool look_up_inside(int64_t, void *, const void *, const void *, int64_t, int64_t, int64_t, int64_t);
#define INSIDE_CELL(size) [size] = {look_up_##size##_int32_t, look_up_##size##_int64_t}
static look_up_inside *const look_up_inside_of[17][2] = {INSIDE_CELL(1), INSIDE_CELL(2), INSIDE_CELL(4), INSIDE_CELL(8),
                                                         INSIDE_CELL(16)};

static void (*const copy_of[17])(const oly_window *, char *, const char *) = {
    [1] = copy_1, [2] = copy_2, [4] = copy_4, [8] = copy_8, [16] = copy_16};
static void (*const fill_of[17])(const oly_window *, char *, const void *) = {
    [1] = fill_1, [2] = fill_2, [4] = fill_4, [8] = fill_8, [16] = fill_16};

/* Is this the part that provides the result of indexes outside the array? The first one that has elements. */
static bool is_first_part(const oly_local_task *t)
{
    for (int a = 0; a < t->n_axes; a++)
        if (t->in[0].origin[t->axes[a]] != 0 || t->in[0].extent[t->axes[a]] == 0)
            return false;
    return true;
}

/* Looks up n elements from position k on if one dimension is indexed, in one batch, and all are here; false: nothing is done. */
static bool look_up(const oly_positions *p, int64_t k, int64_t n, int64_t bytes, char *to, const void *from)
{
    const oly_index_axis *x = &p->axis[0];
    int64_t room[OLY_POSITIONS];
    if (p->n_axes != 1 || oly_positions_differ(p, n))
        return false;
    const void *index = oly_positions_read(p, x, k, n, room);
    from = (const char *)from + oly_positions_batch(p, k) * bytes;
    return look_up_inside_of[bytes][x->at->dtype == OLY_INT64](n, to, from, index, x->low, x->high, x->origin,
                                                               x->stride);
}

/* elements of a column, and columns, from which on rows are read together; bytes of a cache line */
enum { TALL = 64, MANY = 16, LINE = 64 };

/* Are the n windows columns, each element of which is in a row of its own, and do they share rows? */
static bool are_columns(const oly_window *w, int64_t n, int64_t bytes)
{
    return w->rank == 1 && n >= MANY && w->extent[0] >= TALL && w->stride[0] * bytes >= LINE;
}

/* Positions [begin, end) of windows that are columns: as many rows at a time as fill a line of the result. */
static void gather_columns(const oly_positions *p, const oly_window *w, int64_t begin, int64_t end, int64_t bytes,
                           char *out, const char *in, const void *const *others)
{
    static void (*const copy_columns_of[17])(const oly_window *, int64_t, int64_t, int64_t, const int64_t *,
                                             const int8_t *, void *, const void *, const void *const *) = {
        [1] = copy_columns_1, [2] = copy_columns_2, [4] = copy_columns_4, [8] = copy_columns_8, [16] = copy_columns_16};
    int64_t offset[OLY_POSITIONS], rows = LINE / bytes;
    int8_t state[OLY_POSITIONS];
    for (int64_t i = 0; i < w->extent[0]; i += rows)
        for (int64_t k = begin, n; k < end; k += n) {
            n = oly_positions_length(p, k, end - k);
            oly_positions_follow(p, k, n, offset, state);
            copy_columns_of[bytes](w, i, i + rows < w->extent[0] ? i + rows : w->extent[0], n, offset, state,
                                   out + k * w->extent[0] * bytes, in, others);
        }
}

/* -- single elements whose indexes are side by side across batches ---------------------------------------------------------------- */

enum {
    ACROSS = 64,      /* batches and positions of a block: parts of the array's rows that stay in the second cache */
    INDEXES_AHEAD = 4 /* rows of indexes that are fetched before they are needed: they are far apart */
};

/* Is each batch a column of the array, the indexes and the result a row, as in take_along_axis of dimension 0? Then rows of indexes, and of the array,
 * are read in parts, block by block, rather than column after column. */
static bool are_across(const oly_positions *p, int64_t dense)
{
    const oly_index_axis *x = &p->axis[0];
    int batch = p->n_batch - 1;
    return dense == 1 && p->n_axes == 1 && batch >= 0 && p->run == p->per_batch && p->count > 0 &&
           p->extent[batch] >= ACROSS && p->per_batch >= ACROSS && x->at->stride[batch] == 1 &&
           p->batch_stride[batch] == 1 && x->step != 1;
}

#define LOOK_ACROSS(width, T, I)                                                                                       \
    /* n indexes side by side, of as many batches. */                                                                  \
    static void look_row_##width##_##I(const oly_positions *p, int64_t n, const I *index, const T *from, T *to,        \
                                       const void *const *others)                                                      \
    {                                                                                                                  \
        const oly_index_axis *x = &p->axis[0];                                                                         \
        const int64_t low = x->low, high = x->high, origin = x->origin, stride = x->stride;                            \
        if (oly_all_inside_##I(n, index, low, high)) {                                                                 \
            _Pragma("GCC unroll 8") for (int64_t j = 0; j < n; j++)                                                    \
            {                                                                                                          \
                to[j] = from[(index[j] - origin) * stride + j];                                                        \
                OLY_BY_ONE;                                                                                            \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            int64_t at = index[j];                                                                                     \
            bool inside = (uint64_t)at < (uint64_t)x->size;                                                            \
            if (!inside && p->mode != OLY_INDEX_FILL && x->size > 0) {                                                 \
                at = oly_index_inside(p->mode, x->size, at);                                                           \
                inside = true;                                                                                         \
            }                                                                                                          \
            if (inside && at >= low && at < high)                                                                      \
                to[j] = from[(at - origin) * stride + j];                                                              \
            else                                                                                                       \
                memcpy(&to[j], others[inside], sizeof(T));                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    static void look_across_##width##_##I(const oly_positions *p, int64_t first, int64_t last, void *out,              \
                                          const void *in, const void *const *others)                                   \
    {                                                                                                                  \
        const oly_index_axis *x = &p->axis[0];                                                                         \
        const int64_t step = x->step, row = p->extent[p->n_batch - 1];                                                 \
        T block[ACROSS * ACROSS];                                                                                      \
        for (int64_t b = first, n; b < last; b += n) { /* batches in one row */                                        \
            n = row - b % row < last - b ? row - b % row : last - b;                                                   \
            n = n < ACROSS ? n : ACROSS;                                                                               \
            const int64_t k = b * p->per_batch;                                                                        \
            const I *index = (const I *)x->base + oly_local_offset(p->rank, p->extent, x->at->stride, -1, k);          \
            const T *from = (const T *)in + oly_positions_batch(p, k);                                                 \
            for (int64_t i = 0, m; i < p->per_batch; i += m) {                                                         \
                m = p->per_batch - i < ACROSS ? p->per_batch - i : ACROSS;                                             \
                for (int64_t e = 0; e < m; e++) {                                                                      \
                    const I *row_of_indexes = index + (i + e) * step;                                                  \
                    if (i + e + INDEXES_AHEAD < p->per_batch)                                                          \
                        for (int64_t c = 0; c < n; c += LINE / (int64_t)sizeof(I))                                     \
                            __builtin_prefetch(row_of_indexes + INDEXES_AHEAD * step + c, 0);                          \
                    look_row_##width##_##I(p, n, row_of_indexes, from, block + e * ACROSS, others);                    \
                }                                                                                                      \
                transpose_w##width((int)m, (int)n, (T *)out + k + i, p->per_batch, block, ACROSS);                     \
            }                                                                                                          \
        }                                                                                                              \
    }
static void transpose_w16(int rows, int columns, pair *to, int64_t to_row, const pair *from, int64_t from_row)
{
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = 0; r < rows; r++)
            to[c * to_row + r] = from[r * from_row + c];
}
#define LOOK_ACROSS_BOTH(size, T) LOOK_ACROSS(size, T, int32_t) LOOK_ACROSS(size, T, int64_t)
LOOK_ACROSS_BOTH(1, uint8_t)
LOOK_ACROSS_BOTH(2, uint16_t)
LOOK_ACROSS_BOTH(4, uint32_t)
LOOK_ACROSS_BOTH(8, uint64_t)
LOOK_ACROSS_BOTH(16, pair)
typedef void look_across(const oly_positions *, int64_t, int64_t, void *, const void *, const void *const *);
#define ACROSS_CELL(size) [size] = {look_across_##size##_int32_t, look_across_##size##_int64_t}
static look_across *const look_across_of[17][2] = {ACROSS_CELL(1), ACROSS_CELL(2), ACROSS_CELL(4), ACROSS_CELL(8),
                                                   ACROSS_CELL(16)};

/* -- windows that are rows ----------------------------------------------------------------------------------------------------- */

enum {
    ROWS_AHEAD = 8,
    BYTES_AHEAD = 512,
    SHORT_ROWS_AHEAD = 24,
    SHORT_ROW_BYTES = 64
}; /* that are fetched before they are needed: processors do not guess where they are */

/* n bytes, at least one T and at most two: the ranges may overlap. */
#define COPY_ENDS(T, to, from, n)                                                                                      \
    do {                                                                                                               \
        T low, high;                                                                                                   \
        memcpy(&low, from, sizeof low);                                                                                \
        memcpy(&high, (from) + (n) - sizeof high, sizeof high);                                                        \
        memcpy(to, &low, sizeof low);                                                                                  \
        memcpy((to) + (n) - sizeof high, &high, sizeof high);                                                          \
    } while (0)

/* n bytes, at most 64, without a call. */
static inline void copy_few(char *to, const char *from, int64_t n)
{
    if (n > 32) {
        COPY_ENDS(pair, to, from, 32);
        COPY_ENDS(pair, to + n - 32, from + n - 32, 32);
    } else if (n >= 16) {
        COPY_ENDS(pair, to, from, n);
    } else if (n >= 8) {
        COPY_ENDS(uint64_t, to, from, n);
    } else if (n >= 4) {
        COPY_ENDS(uint32_t, to, from, n);
    } else {
        for (int64_t i = 0; i < n; i++)
            to[i] = from[i];
    }
}

/* Rows of at most 64 bytes where all n indexes are in [low, high) and side by side, which is tested first. stride: bytes between rows of the
 * array. False: they are not. */
#define COPY_ROWS(bytes)                                                                                               \
    for (int64_t j = 0; j < n; j++, to += (bytes)) {                                                                   \
        int64_t ahead = j + SHORT_ROWS_AHEAD < n ? j + SHORT_ROWS_AHEAD : n - 1;                                       \
        __builtin_prefetch(from + (index[ahead] - origin) * stride, 0);                                                \
        memcpy(to, from + (index[j] - origin) * stride, bytes);                                                        \
    }                                                                                                                  \
    return true
#define LOOK_ROWS(I)                                                                                                   \
    static bool look_rows_##I(int64_t n, char *to, const char *from, const void *indexes, int64_t low, int64_t high,   \
                              int64_t origin, int64_t stride, int64_t row)                                             \
    {                                                                                                                  \
        const I *index = indexes;                                                                                      \
        if (!oly_all_inside_##I(n, index, low, high))                                                                  \
            return false;                                                                                              \
        switch (row) {                                                                                                 \
        case 2: COPY_ROWS(2);                                                                                          \
        case 4: COPY_ROWS(4);                                                                                          \
        case 8: COPY_ROWS(8);                                                                                          \
        case 12: COPY_ROWS(12);                                                                                        \
        case 16: COPY_ROWS(16);                                                                                        \
        case 24: COPY_ROWS(24);                                                                                        \
        case 32: COPY_ROWS(32);                                                                                        \
        case 48: COPY_ROWS(48);                                                                                        \
        case 64: COPY_ROWS(64);                                                                                        \
        default: break;                                                                                                \
        }                                                                                                              \
        for (int64_t j = 0; j < n; j++, to += row)                                                                     \
            copy_few(to, from + (index[j] - origin) * stride, row);                                                    \
        return true;                                                                                                   \
    }
LOOK_ROWS(int32_t)
LOOK_ROWS(int64_t)

/* Short rows from position k on, if all are here; false: nothing is done. */
static bool look_rows(const oly_positions *p, int64_t k, int64_t n, int64_t row, int64_t bytes, char *to,
                      const char *from)
{
    const oly_index_axis *x = &p->axis[0];
    int64_t room[OLY_POSITIONS];
    if (p->n_axes != 1 || row > SHORT_ROW_BYTES || oly_positions_differ(p, n))
        return false;
    const void *index = oly_positions_read(p, x, k, n, room);
    return (x->at->dtype == OLY_INT64 ? look_rows_int64_t : look_rows_int32_t)(
        n, to, from + oly_positions_batch(p, k) * bytes, index, x->low, x->high, x->origin, x->stride * bytes, row);
}

/* n rows of consecutive elements; others: what is written where there is none. */
static void gather_rows(const oly_window *w, int64_t n, const int64_t *offset, const int8_t *state, int64_t bytes,
                        char *to, const char *from, const void *const *others)
{
    int64_t row = w->extent[0] * bytes, fetched = row < BYTES_AHEAD ? row : BYTES_AHEAD;
    for (int64_t j = 0; j < n; j++, to += row) {
        const char *next = from + offset[j + ROWS_AHEAD < n ? j + ROWS_AHEAD : j] * bytes;
        if (j + ROWS_AHEAD < n && state[j + ROWS_AHEAD] > 0)
            for (int64_t b = 0; b < fetched; b += LINE)
                __builtin_prefetch(next + b, 0);
        if (state[j] <= 0)
            fill_of[bytes](w, to, others[state[j] < 0]);
        else if (row <= 64)
            copy_few(to, from + offset[j] * bytes, row);
        else
            memcpy(to, from + offset[j] * bytes, (size_t)row);
    }
}

/* Windows of one element that are here; the others of the result stay as they are. */
#define LOOK_UP_HERE(size, T)                                                                                          \
    static void look_up_here_##size(int64_t n, void *to, const void *from, const int64_t *offset, const int8_t *state) \
    {                                                                                                                  \
        T *y = to;                                                                                                     \
        const T *x = from;                                                                                             \
        for (int64_t j = 0; j < n; j++)                                                                                \
            y[j] = *(state[j] > 0 ? x + offset[j] : y + j);                                                            \
    }
LOOK_UP_HERE(1, uint8_t)
LOOK_UP_HERE(2, uint16_t)
LOOK_UP_HERE(4, uint32_t)
LOOK_UP_HERE(8, uint64_t)
LOOK_UP_HERE(16, pair)
static void (*const look_up_here_of[17])(int64_t, void *, const void *, const int64_t *, const int8_t *) = {
    [1] = look_up_here_1, [2] = look_up_here_2, [4] = look_up_here_4, [8] = look_up_here_8, [16] = look_up_here_16};

/* Windows that are here; outside: what is written for indexes outside the whole array, NULL: nothing. */
static void look_up_here(const oly_window *w, int64_t n, const int64_t *offset, const int8_t *state, int64_t bytes,
                         char *to, const char *from, const void *outside)
{
    int64_t dense = w->count * w->extent[w->rank - 1];
    if (dense == 1)
        look_up_here_of[bytes](n, to, from, offset, state);
    for (int64_t j = 0; j < n && dense > 1; j++)
        if (state[j] > 0)
            copy_of[bytes](w, to + j * dense * bytes, from + offset[j] * bytes);
    for (int64_t j = 0; j < n && outside; j++)
        if (state[j] == 0)
            fill_of[bytes](w, to + j * dense * bytes, outside);
}

void OLY_ISA_NAME(oly_gather_run)(const oly_local_task *t, const void *const *in, void *out, void *scratch, int phase,
                                  int chunk, int n_chunks)
{
    (void)scratch, (void)phase;
    const oly_local_operand *x = &t->in[0];
    int64_t bytes = oly_element_bytes[x->dtype];
    oly_positions positions = oly_positions_of(t, in, x, NULL);
    oly_window window = oly_window_of(t, x->stride, &t->out);
    int64_t dense = window.count * window.extent[window.rank - 1], offset[OLY_POSITIONS];
    int8_t state[OLY_POSITIONS];
    char outside[16], unseen[16];
    oly_unseen_value(x->dtype, unseen);
    if (t->partial && !is_first_part(t))
        oly_unseen_value(x->dtype, outside);
    else
        oly_outside_value(x->dtype, outside);
    int64_t begin = positions.count * chunk / n_chunks, end = positions.count * (chunk + 1) / n_chunks;
    const void *const others[] = {outside, unseen};
    bool rows = window.rank == 1 && window.stride[0] == 1;
    if (!t->keeps && are_across(&positions, dense)) {
        int64_t batches = positions.count / positions.per_batch;
        look_across_of[bytes][positions.axis[0].at->dtype == OLY_INT64](
            &positions, batches * chunk / n_chunks, batches * (chunk + 1) / n_chunks, out, in[0], others);
        return;
    }
    if (!t->keeps && are_columns(&window, end - begin, bytes)) {
        gather_columns(&positions, &window, begin, end, bytes, out, in[0], others);
        return;
    }
    for (int64_t k = begin; k < end;) {
        int64_t n = oly_positions_length(&positions, k, end - k);
        char *to = (char *)out + k * dense * bytes;
        oly_positions_fetch(&positions, k + n, n < end - k - n ? n : end - k - n);
        if (dense == 1 && look_up(&positions, k, n, bytes, to, in[0])) {
            k += n;
            continue;
        }
        if (dense > 1 && rows && look_rows(&positions, k, n, dense * bytes, bytes, to, in[0])) {
            k += n;
            continue;
        }
        bool here = oly_positions_follow(&positions, k, n, offset, state);
        if (t->keeps) {
            look_up_here(&window, n, offset, state, bytes, to, in[0], is_first_part(t) ? outside : NULL);
            k += n;
            continue;
        }
        if (dense == 1 && here)
            look_up_all_of[bytes](n, to, in[0], offset);
        else if (dense == 1)
            look_up_of[bytes](n, to, in[0], offset, state, outside, unseen);
        else if (rows)
            gather_rows(&window, n, offset, state, bytes, to, in[0], others);
        for (int64_t j = 0; j < n && dense > 1 && !rows; j++, to += dense * bytes)
            if (state[j] > 0)
                copy_of[bytes](&window, to, (const char *)in[0] + offset[j] * bytes);
            else
                fill_of[bytes](&window, to, state[j] < 0 ? unseen : outside);
        k += n;
    }
}

/* -- slices at computed positions ---------------------------------------------------------------------------------- */

/* Start of the slice of `extent` elements whose start is element `offset` of the starts, clamped so that it is inside
 * [0, size). */
static int64_t start_of(const oly_local_operand *x, const void *start, int64_t offset, int64_t size, int64_t extent)
{
    int64_t at = oly_index_at(x, start, offset);
    at = at > size - extent ? size - extent : at;
    return at < 0 ? 0 : at;
}

/* Batches of the result's box; a chunk takes some of them, or a part of the only one. */
typedef struct batches {
    int64_t begin, end;
    int chunk, n_chunks; /* of each */
} batches;

static batches batches_of(const oly_local_task *t, int chunk, int n_chunks)
{
    int64_t n = 1;
    for (int d = 0; d < t->n_batch; d++)
        n *= t->out.extent[d];
    return n == 1 ? (batches){0, 1, chunk, n_chunks}
                  : (batches){n * chunk / n_chunks, n * (chunk + 1) / n_chunks, 0, 1};
}

/* Writes the part of the result that comes from this part of in[0], and elsewhere, if anything, values that do not change a sum. */
static void slice_part(const oly_local_task *t, const void *const *in, void *out, int phase, int chunk, int n_chunks)
{
    const oly_local_operand *x = &t->in[0];
    int64_t bytes = oly_element_bytes[x->dtype], n = oly_local_count(&t->out, -1);
    char unseen[16];
    if (phase == 0 && !t->keeps) {
        oly_unseen_value(x->dtype, unseen);
        int64_t begin = n * chunk / n_chunks, end = n * (chunk + 1) / n_chunks;
        OLY_ISA_NAME(oly_convert).fill[bytes](end - begin, (char *)out + begin * bytes, unseen);
        return;
    }
    oly_copy_task c = {.element_bytes = (size_t)bytes, .rank = x->rank - t->n_batch};
    batches b = batches_of(t, chunk, n_chunks);
    for (int64_t k = b.begin; k < b.end; k++) {
        int64_t from = oly_local_offset(t->n_batch, t->out.extent, x->stride, -1, k);
        int64_t to = oly_local_offset(t->n_batch, t->out.extent, t->out.stride, -1, k);
        bool any = true;
        for (int d = t->n_batch, i = 0; d < x->rank; d++, i++) {
            const oly_local_operand *start = &t->in[1 + i];
            int64_t at = oly_local_offset(t->n_batch, t->out.extent, start->stride, -1, k);
            at = start_of(start, in[1 + i], at, x->size[d], t->out.size[d]) + t->out.origin[d];
            int64_t low = at > x->origin[d] ? at : x->origin[d], high = at + t->out.extent[d];
            high = high < x->origin[d] + x->extent[d] ? high : x->origin[d] + x->extent[d];
            any = any && low < high;
            from += (low - x->origin[d]) * x->stride[d];
            to += (low - at) * t->out.stride[d];
            c.extent[i] = high - low;
            c.from_stride[i] = x->stride[d];
            c.to_stride[i] = t->out.stride[d];
        }
        if (any)
            OLY_ISA_NAME(oly_copy_run)
        (&c, (char *)out + to * bytes, (const char *)in[0] + from * bytes, b.chunk, b.n_chunks);
    }
}

void OLY_ISA_NAME(oly_dynamic_slice_run)(const oly_local_task *t, const void *const *in, void *out, void *scratch,
                                         int phase, int chunk, int n_chunks)
{
    (void)scratch;
    if (t->partial) {
        slice_part(t, in, out, phase, chunk, n_chunks);
        return;
    }
    const oly_local_operand *x = &t->in[0];
    oly_copy_task c = {.element_bytes = oly_element_bytes[x->dtype], .rank = x->rank - t->n_batch};
    batches b = batches_of(t, chunk, n_chunks);
    for (int64_t k = b.begin; k < b.end; k++) {
        int64_t from = oly_local_offset(t->n_batch, t->out.extent, x->stride, -1, k);
        int64_t to = oly_local_offset(t->n_batch, t->out.extent, t->out.stride, -1, k);
        for (int d = t->n_batch, i = 0; d < x->rank; d++, i++) {
            const oly_local_operand *start = &t->in[1 + i];
            int64_t at = oly_local_offset(t->n_batch, t->out.extent, start->stride, -1, k);
            at = start_of(start, in[1 + i], at, x->size[d], t->out.size[d]) + t->out.origin[d];
            from += (at - x->origin[d]) * x->stride[d];
            c.extent[i] = t->out.extent[d];
            c.from_stride[i] = x->stride[d];
            c.to_stride[i] = t->out.stride[d];
        }
        OLY_ISA_NAME(oly_copy_run)
        (&c, (char *)out + to * (int64_t)c.element_bytes, (const char *)in[0] + from * (int64_t)c.element_bytes,
         b.chunk, b.n_chunks);
    }
}

/* The intersection of the part's box of batch k with the result's box, as a copy; false: empty. */
static bool shared_part(const oly_local_task *t, const void *const *in, int64_t k, oly_copy_task *c,
                        int64_t *from_offset, int64_t *to_offset)
{
    const oly_local_operand *x = &t->in[0], *part = &t->in[1], *to = &t->out;
    *from_offset = oly_local_offset(t->n_batch, to->extent, part->stride, -1, k);
    *to_offset = oly_local_offset(t->n_batch, to->extent, to->stride, -1, k);
    for (int d = t->n_batch, i = 0; d < x->rank; d++, i++) {
        int64_t at = oly_local_offset(t->n_batch, to->extent, t->in[2 + i].stride, -1, k);
        int64_t start = start_of(&t->in[2 + i], in[2 + i], at, x->size[d], part->size[d]);
        int64_t low = start + part->origin[d], high = low + part->extent[d];
        low = low < to->origin[d] ? to->origin[d] : low;
        high = high > to->origin[d] + to->extent[d] ? to->origin[d] + to->extent[d] : high;
        if (high <= low)
            return false;
        c->extent[i] = high - low;
        c->to_stride[i] = to->stride[d];
        c->from_stride[i] = part->stride[d];
        *to_offset += (low - to->origin[d]) * to->stride[d];
        *from_offset += (low - start - part->origin[d]) * part->stride[d];
    }
    return true;
}

void OLY_ISA_NAME(oly_dynamic_update_run)(const oly_local_task *t, const void *const *in, void *out, void *scratch,
                                          int phase, int chunk, int n_chunks)
{
    (void)scratch;
    const oly_local_operand *x = &t->in[0], *to = &t->out;
    int64_t bytes = oly_element_bytes[x->dtype], from_offset, to_offset;
    oly_copy_task c = {.element_bytes = (size_t)bytes, .rank = x->rank};
    if (phase == 0) {
        memcpy(c.extent, to->extent, sizeof c.extent);
        memcpy(c.to_stride, to->stride, sizeof c.to_stride);
        memcpy(c.from_stride, x->stride, sizeof c.from_stride);
        if (out != in[0])
            OLY_ISA_NAME(oly_copy_run)(&c, out, in[0], chunk, n_chunks);
        return;
    }
    c.rank = x->rank - t->n_batch;
    batches b = batches_of(t, chunk, n_chunks);
    for (int64_t k = b.begin; k < b.end; k++)
        if (shared_part(t, in, k, &c, &from_offset, &to_offset))
            OLY_ISA_NAME(oly_copy_run)
    (&c, (char *)out + to_offset * bytes, (const char *)in[1] + from_offset * bytes, b.chunk, b.n_chunks);
}
