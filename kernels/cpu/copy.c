/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between strided boxes. Compiled once per instruction set; gives oly_copy_run_<isa>. Dimensions are sorted in
 * the order of the destination's memory and merged; then rows are copied, or blocks transposed where the source is
 * dense in another dimension. */
#include "table.h"
#include "cpu/short_rows.h"
#include "cpu/transpose.h"
#include <string.h>

#define SIDE 64 /* of a transposed block: 16 and 32 were half as fast */

typedef struct copy {
    int rank;
    int64_t extent[OLY_MAX_RANK], to[OLY_MAX_RANK], from[OLY_MAX_RANK];
    size_t bytes;
} copy;

static int64_t size_of_stride(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

static void arrange(copy *c, const oly_copy_task *t)
{
    c->rank = 0;
    c->bytes = t->element_bytes;
    for (int d = 0; d < t->rank; d++) { /* insertion sort: largest stride of the destination first */
        if (t->extent[d] == 1)
            continue;
        int at = c->rank++;
        for (; at > 0 && size_of_stride(c->to[at - 1]) < size_of_stride(t->to_stride[d]); at--) {
            c->extent[at] = c->extent[at - 1];
            c->to[at] = c->to[at - 1];
            c->from[at] = c->from[at - 1];
        }
        c->extent[at] = t->extent[d];
        c->to[at] = t->to_stride[d];
        c->from[at] = t->from_stride[d];
    }
    int kept = 0;
    for (int d = 0; d < c->rank; d++) {
        bool merges =
            kept > 0 && c->to[kept - 1] == c->to[d] * c->extent[d] && c->from[kept - 1] == c->from[d] * c->extent[d];
        if (merges)
            c->extent[kept - 1] *= c->extent[d];
        else
            c->extent[kept++] = c->extent[d];
        c->to[kept - 1] = c->to[d];
        c->from[kept - 1] = c->from[d];
    }
    c->rank = kept;
    if (kept == 0) {
        c->rank = 1;
        c->extent[0] = c->to[0] = c->from[0] = 1;
    }
}

/* Restricts the copy to part `chunk` of the best dimension to split: the outermost that is long enough, else the
 * longest. */
static bool take_chunk(copy *c, const char **from, char **to, int chunk, int n_chunks)
{
    int cut = 0;
    for (int d = 1; d < c->rank; d++)
        if (c->extent[cut] < 2 * n_chunks && c->extent[d] > c->extent[cut])
            cut = d;
    int64_t begin = c->extent[cut] * chunk / n_chunks, end = c->extent[cut] * (chunk + 1) / n_chunks;
    *from += begin * c->from[cut] * (int64_t)c->bytes;
    *to += begin * c->to[cut] * (int64_t)c->bytes;
    c->extent[cut] = end - begin;
    return end > begin;
}

/* Rows of a few lines of cache, with others between them: the processor does not guess where the next one is. */
enum { LINE = 64, MOST_LINES = 16, ROWS_AHEAD = 8 };

static bool lie_apart(int64_t columns, int64_t from_row, size_t bytes)
{
    int64_t row = columns * (int64_t)bytes;
    return row >= LINE && row <= MOST_LINES * LINE && size_of_stride(from_row) * (int64_t)bytes >= row + LINE;
}

static void copy_apart(int64_t rows, size_t bytes, char *to, int64_t to_row, const char *from, int64_t from_row)
{
    for (int64_t r = 0; r < rows; r++, to += to_row, from += from_row) {
        if (r + ROWS_AHEAD < rows)
            for (size_t b = 0; b < bytes; b += LINE)
                __builtin_prefetch(from + ROWS_AHEAD * from_row + b, 0);
        memcpy(to, from, bytes);
    }
}

/* Two dimensions: rows and columns. */
#define PLANES(size, T)                                                                                                \
    static void row_##size(int64_t columns, T *to, int64_t to_stride, const T *from, int64_t from_stride)              \
    {                                                                                                                  \
        if (to_stride == 1 && from_stride == 1)                                                                        \
            memcpy(to, from, sizeof(T) * (size_t)columns);                                                             \
        else if (to_stride == 1 && from_stride == 0) {                                                                 \
            const T repeated = *from;                                                                                  \
            for (int64_t i = 0; i < columns; i++)                                                                      \
                to[i] = repeated;                                                                                      \
        } else if (to_stride == 1)                                                                                     \
            switch (from_stride) {                                                                                     \
                EVERY_NTH(-1)                                                                                          \
                EVERY_NTH(2)                                                                                           \
                EVERY_NTH(3)                                                                                           \
                EVERY_NTH(4)                                                                                           \
            default:                                                                                                   \
                for (int64_t i = 0; i < columns; i++)                                                                  \
                    to[i] = from[i * from_stride];                                                                     \
            }                                                                                                          \
        else                                                                                                           \
            for (int64_t i = 0; i < columns; i++)                                                                      \
                to[i * to_stride] = from[i * from_stride];                                                             \
    }                                                                                                                  \
    static void rows_##size(int64_t rows, int64_t columns, T *to, int64_t to_row, int64_t to_column, const T *from,    \
                            int64_t from_row, int64_t from_column)                                                     \
    {                                                                                                                  \
        if (to_column == 1 && from_column == 1 && lie_apart(columns, from_row, sizeof(T))) {                           \
            copy_apart(rows, (size_t)columns * sizeof(T), (char *)to, to_row * (int64_t)sizeof(T), (const char *)from, \
                       from_row * (int64_t)sizeof(T));                                                                 \
            return;                                                                                                    \
        }                                                                                                              \
        if (to_column == 1 && from_column == 1)                                                                        \
            switch (columns) {                                                                                         \
                EACH_FEW(FEW_ELEMENTS, to_row, from_row)                                                               \
            default: break;                                                                                            \
            }                                                                                                          \
        else if (to_column == 1 && from_column == 0)                                                                   \
            switch (columns) {                                                                                         \
                EACH_FEW(FEW_TIMES, to_row, from_row)                                                                  \
            default: break;                                                                                            \
            }                                                                                                          \
        for (int64_t r = 0; r < rows; r++)                                                                             \
            row_##size(columns, to + r * to_row, to_column, from + r * from_row, from_column);                         \
    }                                                                                                                  \
    /* A block of the source goes through `block`: far apart rows share few places in the cache. */                    \
    static void transpose_##size(int64_t rows, int64_t columns, T *to, int64_t to_row, const T *from,                  \
                                 int64_t from_column)                                                                  \
    {                                                                                                                  \
        T block[SIDE * SIDE];                                                                                          \
        for (int64_t r = 0; r < rows; r += SIDE)                                                                       \
            for (int64_t c = 0; c < columns; c += SIDE) {                                                              \
                int64_t height = rows - r < SIDE ? rows - r : SIDE;                                                    \
                int64_t width = columns - c < SIDE ? columns - c : SIDE;                                               \
                for (int64_t j = 0; j < width; j++)                                                                    \
                    memcpy(block + j * SIDE, from + r + (c + j) * from_column, sizeof(T) * (size_t)height);            \
                for (int64_t i = 0; i < height; i++)                                                                   \
                    for (int64_t j = 0; j < width; j++)                                                                \
                        to[(r + i) * to_row + c + j] = block[j * SIDE + i];                                            \
            }                                                                                                          \
    }
PLANES(1, uint8_t)
PLANES(2, uint16_t)
PLANES(4, uint32_t)
PLANES(8, uint64_t)

/* Elements by 16 x 16 or 8 x 8 of them in registers, block by block: each block's rows are read and written as whole lines. The few
 * columns of channels that become the last dimension are interleaved. */
#ifdef OLY_HAS_TRANSPOSE
#define WHOLE(columns, lanes) ((columns) / (lanes) * (lanes))
#else
#define WHOLE(columns, lanes) 0
#endif
#if defined(__SSE2__)
#define WHOLE_NARROW(columns, lanes) ((columns) / (lanes) * (lanes))
#else
#define WHOLE_NARROW(columns, lanes) 0
#endif
#define INTERLEAVED(size, T, columns)                                                                                  \
    static void interleave_##size##_##columns(int64_t rows, T *restrict to, const T *restrict from,                    \
                                              int64_t from_column)                                                     \
    {                                                                                                                  \
        for (int64_t r = 0; r < rows; r++)                                                                             \
            _Pragma("GCC unroll 4") for (int c = 0; c < (columns); c++) to[r * (columns) + c] =                        \
                from[r + c * from_column];                                                                             \
    }
#define TURNED(size, T, lanes, whole_of)                                                                               \
    INTERLEAVED(size, T, 2)                                                                                            \
    INTERLEAVED(size, T, 3)                                                                                            \
    INTERLEAVED(size, T, 4)                                                                                            \
    static bool interleave_##size(int64_t rows, int64_t columns, T *to, int64_t to_row, const T *from,                 \
                                  int64_t from_column)                                                                 \
    {                                                                                                                  \
        void (*const by[])(int64_t, T *, const T *, int64_t) = {NULL, NULL, interleave_##size##_2,                     \
                                                                interleave_##size##_3, interleave_##size##_4};         \
        if (columns > 4 || columns < 2 || to_row != columns)                                                           \
            return false;                                                                                              \
        by[columns](rows, to, from, from_column);                                                                      \
        return true;                                                                                                   \
    }                                                                                                                  \
    static void transpose_##size##_turned(int64_t rows, int64_t columns, T *to, int64_t to_row, const T *from,         \
                                          int64_t from_column)                                                         \
    {                                                                                                                  \
        int64_t whole = whole_of(columns, lanes);                                                                      \
        if (interleave_##size(rows, columns, to, to_row, from, from_column))                                           \
            return;                                                                                                    \
        for (int64_t r = 0; r < rows; r += SIDE)                                                                       \
            for (int64_t c = 0; c < whole; c += SIDE)                                                                  \
                transpose_w##size((int)(whole - c < SIDE ? whole - c : SIDE),                                          \
                                  (int)(rows - r < SIDE ? rows - r : SIDE), to + r * to_row + c, to_row,               \
                                  from + r + c * from_column, from_column);                                            \
        if (whole < columns)                                                                                           \
            transpose_##size(rows, columns - whole, to + whole, to_row, from + whole * from_column, from_column);      \
    }
TURNED(1, uint8_t, 16, WHOLE_NARROW)
TURNED(2, uint16_t, 8, WHOLE_NARROW)
TURNED(4, uint32_t, 16, WHOLE)
TURNED(8, uint64_t, 8, WHOLE)

/* Any element size: complex128, which C code need not align to its 16 bytes. */
static void rows_any(size_t bytes, int64_t rows, int64_t columns, char *to, int64_t to_row, int64_t to_column,
                     const char *from, int64_t from_row, int64_t from_column)
{
    int64_t size = (int64_t)bytes;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            memcpy(to + (r * to_row + c * to_column) * size, from + (r * from_row + c * from_column) * size, bytes);
}

/* Copies the plane of dimension `row` and the last one. */
static void copy_plane(const copy *c, int row, char *to, const char *from)
{
    int last = c->rank - 1;
    bool alone = row == last;
    int64_t rows = alone ? 1 : c->extent[row], columns = c->extent[last];
    int64_t to_row = alone ? 0 : c->to[row], from_row = alone ? 0 : c->from[row];
    bool turned = c->to[last] == 1 && from_row == 1 && c->from[last] != 1 && c->from[last] != 0 && rows > 1;
#define COPY_PLANE(size, T)                                                                                            \
    case size:                                                                                                         \
        if (turned)                                                                                                    \
            transpose_##size##_turned(rows, columns, (T *)to, to_row, (const T *)from, c->from[last]);                 \
        else                                                                                                           \
            rows_##size(rows, columns, (T *)to, to_row, c->to[last], (const T *)from, from_row, c->from[last]);        \
        break;
    switch (c->bytes) {
        COPY_PLANE(1, uint8_t)
        COPY_PLANE(2, uint16_t)
        COPY_PLANE(4, uint32_t)
        COPY_PLANE(8, uint64_t)
    default: rows_any(c->bytes, rows, columns, to, to_row, c->to[last], from, from_row, c->from[last]); break;
    }
#undef COPY_PLANE
}

void OLY_ISA_NAME(oly_copy_run)(const oly_copy_task *t, void *to, const void *from, int chunk, int n_chunks)
{
    for (int d = 0; d < t->rank; d++)
        if (t->extent[d] == 0)
            return;
    copy c;
    char *target = to;
    const char *source = from;
    arrange(&c, t);
    if (!take_chunk(&c, &source, &target, chunk, n_chunks))
        return;
    int last = c.rank - 1, row = last > 0 ? last - 1 : last;
    for (int d = 0; d < last; d++) /* the dimension in which the source is dense makes the better plane */
        if (c.from[d] == 1 && c.from[last] != 1)
            row = d;
    if (last > 0 && c.extent[last] <= MOST_FEW && c.from[row] != 1) /* and of short rows that with most of them */
        for (int d = 0; d < last; d++)
            if (c.extent[d] > MOST_FEW * c.extent[row])
                row = d;
    int64_t at[OLY_MAX_RANK] = {0};
    for (;;) {
        int64_t to_offset = 0, from_offset = 0;
        for (int d = 0; d < last; d++) {
            to_offset += at[d] * c.to[d];
            from_offset += at[d] * c.from[d];
        }
        copy_plane(&c, row, target + to_offset * (int64_t)c.bytes, source + from_offset * (int64_t)c.bytes);
        int d = last - 1;
        for (; d >= 0; d--) {
            if (d == row)
                continue;
            if (++at[d] < c.extent[d])
                break;
            at[d] = 0;
        }
        if (d < 0)
            return;
    }
}
