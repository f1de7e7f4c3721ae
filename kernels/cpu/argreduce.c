/* SPDX-License-Identifier: BSD-3-Clause */
/* Positions of the largest or smallest element over the reduced dimensions. Compiled once per instruction set; gives
 * oly_argreduce_run_<isa>, called through local.c. Elements are taken in row-major order, so the first of equal ones
 * wins; nothing is larger or smaller than a NaN. Adjacent results are computed together. */
#include "local_table.h"
#include "cpu/transpose.h"
#include <string.h>

enum {
    WIDTH = 512,
    BLOCK = 64,
    LANES = 16,
    AHEAD = 8,
    SHORT =
        64, /* at most so many elements of a result, which lie one after the other: results are computed side by side */
};

#define SAME(x) (x)

/* A row of `width` candidates, `column` apart, all numbered `number`: takes those that are better. first: takes all. */
typedef void take_row(int64_t width, void *best, int64_t *number, const void *in, int64_t column, int64_t at,
                      bool first);
/* The same for n elements of one result, with numbers from `at` on. */
typedef void take_run(int64_t n, void *best, int64_t *number, const void *in, int64_t stride, int64_t at, bool first);

/* All n elements of BLOCK results, of which the first has the number `first`: in[k * BLOCK + j]. */
typedef void take_short(int64_t n, void *best, int64_t *number, const void *in, int64_t first);

/* Is x better than y? */
typedef bool beats(const void *x, const void *y);

/* A: the type in which elements are compared; of NaN both comparisons are false */
#define BETTER(name, op, no_better, d, T, A, of)                                                                       \
    /* Is any of BLOCK adjacent candidates better than its best, or than the only one? Most blocks have none. */       \
    static bool name##_any_##d(const T *x, const A *held, int64_t each)                                                \
    {                                                                                                                  \
        int any = 0;                                                                                                   \
        if (each == 0) {                                                                                               \
            const A best = *held;                                                                                      \
            for (int j = 0; j < BLOCK; j++) {                                                                          \
                const A next = of(x[j]);                                                                               \
                any |= !(next no_better best);                                                                         \
            }                                                                                                          \
        } else {                                                                                                       \
            for (int j = 0; j < BLOCK; j++) {                                                                          \
                const A next = of(x[j]);                                                                               \
                any |= (next op held[j]) | (next != next);                                                             \
            }                                                                                                          \
        }                                                                                                              \
        return any;                                                                                                    \
    }                                                                                                                  \
    static void name##_row_##d(int64_t width, void *best, int64_t *number, const void *in, int64_t column, int64_t at, \
                               bool first)                                                                             \
    {                                                                                                                  \
        A *held = best;                                                                                                \
        const T *x = in;                                                                                               \
        for (int64_t begin = 0; begin < width; begin += BLOCK) {                                                       \
            int64_t end = width - begin < BLOCK ? width : begin + BLOCK;                                               \
            if (!first && column == 1 && end - begin == BLOCK && !name##_any_##d(x + begin, held + begin, 1))          \
                continue;                                                                                              \
            for (int64_t j = begin; j < end; j++) {                                                                    \
                const A next = of(x[j * column]);                                                                      \
                const bool better = first || next op held[j] || (next != next && held[j] == held[j]);                  \
                held[j] = better ? next : held[j];                                                                     \
                number[j] = better ? at : number[j];                                                                   \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    /* The best of BLOCK candidates, without NaN; *nan: there is one. */                                               \
    static A name##_of_block_##d(const T *x, bool *nan)                                                                \
    {                                                                                                                  \
        A lane[LANES];                                                                                                 \
        int any = 0;                                                                                                   \
        for (int j = 0; j < LANES; j++)                                                                                \
            lane[j] = of(x[j]);                                                                                        \
        for (int i = 0; i < BLOCK; i += LANES)                                                                         \
            for (int j = 0; j < LANES; j++) {                                                                          \
                const A next = of(x[i + j]);                                                                           \
                any |= next != next;                                                                                   \
                lane[j] = next op lane[j] ? next : lane[j];                                                            \
            }                                                                                                          \
        for (int half = LANES / 2; half > 0; half /= 2) /* no branches, which would be guessed wrong */                \
            for (int j = 0; j < half; j++)                                                                             \
                lane[j] = lane[j + half] op lane[j] ? lane[j + half] : lane[j];                                        \
        *nan = any;                                                                                                    \
        return lane[0];                                                                                                \
    }                                                                                                                  \
    /* Of whole blocks only the best is found out; where in its block it is, at the end. */                            \
    static void name##_run_##d(int64_t n, void *best, int64_t *number, const void *in, int64_t stride, int64_t at,     \
                               bool first)                                                                             \
    {                                                                                                                  \
        const T *x = in;                                                                                               \
        A held = first ? of(x[0]) : *(A *)best;                                                                        \
        int64_t where = first ? at : *number, block = -1;                                                              \
        for (int64_t begin = 0; begin < n && held == held; begin += BLOCK) {                                           \
            int64_t end = n - begin < BLOCK ? n : begin + BLOCK;                                                       \
            if (stride == 1 && end - begin == BLOCK) {                                                                 \
                bool nan;                                                                                              \
                if (!name##_any_##d(x + begin, &held, 0))                                                              \
                    continue;                                                                                          \
                const A most = name##_of_block_##d(x + begin, &nan);                                                   \
                if (!nan) {                                                                                            \
                    held = most;                                                                                       \
                    block = begin;                                                                                     \
                    continue;                                                                                          \
                }                                                                                                      \
            }                                                                                                          \
            for (int64_t k = begin; k < end && held == held; k++) {                                                    \
                const A next = of(x[k * stride]);                                                                      \
                if (next op held || next != next) {                                                                    \
                    held = next;                                                                                       \
                    where = at + k;                                                                                    \
                    block = -1;                                                                                        \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        if (block >= 0) {                                                                                              \
            while (!(of(x[block]) == held))                                                                            \
                block++;                                                                                               \
            where = at + block;                                                                                        \
        }                                                                                                              \
        *(A *)best = held;                                                                                             \
        *number = where;                                                                                               \
    }                                                                                                                  \
    /* The first BLOCK results of n elements each, which are in columns. */                                            \
    static void name##_short_##d(int64_t n, void *best, int64_t *number, const void *in, int64_t first)                \
    {                                                                                                                  \
        A held[BLOCK];                                                                                                 \
        int32_t where[BLOCK] = {0};                                                                                    \
        const T *x = in;                                                                                               \
        for (int j = 0; j < BLOCK; j++)                                                                                \
            held[j] = of(x[j]);                                                                                        \
        for (int32_t k = 1; k < n; k++) {                                                                              \
            x += BLOCK;                                                                                                \
            for (int j = 0; j < BLOCK; j++) {                                                                          \
                const A next = of(x[j]), before = held[j];                                                             \
                const bool better = (next op before) | ((next != next) & (before == before));                          \
                held[j] = better ? next : before;                                                                      \
                where[j] = better ? k : where[j];                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        memcpy(best, held, sizeof held);                                                                               \
        for (int j = 0; j < BLOCK; j++)                                                                                \
            number[j] = first + where[j];                                                                              \
    }                                                                                                                  \
    static bool name##_beats_##d(const void *px, const void *py)                                                       \
    {                                                                                                                  \
        const A x = of(*(const T *)px), y = of(*(const T *)py);                                                        \
        return x op y || (x != x && y == y);                                                                           \
    }
#define BOTH(d, T, A, of)                                                                                              \
    BETTER(largest, >, <=, d, T, A, of)                                                                                \
    BETTER(smallest, <, >=, d, T, A, of)
#define BOTH_OF_PLAIN(a, number, name, s, T, ...)      BOTH(s, T, T, SAME)
#define BOTH_OF_NARROW(a, number, name, s, T, of, ...) BOTH(s, T, float, of)
BOTH(b8, uint8_t, uint8_t, SAME)
OLY_INTEGER_TYPES(BOTH_OF_PLAIN, )
OLY_NARROW_TYPES(BOTH_OF_NARROW, )
OLY_WIDE_TYPES(BOTH_OF_PLAIN, )

#define CELLS(form)                                                                                                    \
    {                                                                                                                  \
        OLY_BOOL_TYPES(OLY_CELL, form) OLY_REAL_TYPES(OLY_CELL, form)                                                  \
    }
static take_row *const rows[2][OLY_N_DTYPES] = {CELLS(largest_row), CELLS(smallest_row)};
static beats *const beating[2][OLY_N_DTYPES] = {CELLS(largest_beats), CELLS(smallest_beats)};
static take_short *const shorts[2][OLY_N_DTYPES] = {CELLS(largest_short), CELLS(smallest_short)};
static take_run *const runs[2][OLY_N_DTYPES] = {CELLS(largest_run), CELLS(smallest_run)};

/* The dimensions of the operand, separated into kept and reduced. */
typedef struct box {
    int n_kept, n_reduced;
    int64_t kept[OLY_MAX_RANK], kept_stride[OLY_MAX_RANK];
    int64_t reduced[OLY_MAX_RANK], reduced_stride[OLY_MAX_RANK];
    int64_t weight[OLY_MAX_RANK]; /* of the reduced ones, in the number of an element */
    int64_t first;                /* number of the box's first element */
} box;

static box box_of(const oly_local_task *t)
{
    const oly_local_operand *x = &t->in[0];
    box b = {0};
    for (int d = 0, k = 0; d < x->rank; d++) {
        if (k < t->n_axes && t->axes[k] == d) {
            b.reduced[b.n_reduced] = x->extent[d];
            b.reduced_stride[b.n_reduced++] = x->stride[d];
            k++;
        } else {
            b.kept[b.n_kept] = x->extent[d];
            b.kept_stride[b.n_kept++] = x->stride[d];
        }
    }
    int64_t weight = 1;
    for (int k = t->n_axes - 1; k >= 0; k--) {
        b.weight[k] = weight;
        b.first += x->origin[t->axes[k]] * weight;
        weight *= x->size[t->axes[k]];
    }
    return b;
}

/* Kept dimensions that follow each other evenly are one, so that more results are side by side. */
static void merge_kept(box *b)
{
    int n = 0;
    for (int d = 0; d < b->n_kept; d++) {
        if (n > 0 && b->kept_stride[n - 1] == b->kept_stride[d] * b->kept[d]) {
            b->kept[n - 1] *= b->kept[d];
            b->kept_stride[n - 1] = b->kept_stride[d];
        } else {
            b->kept[n] = b->kept[d];
            b->kept_stride[n++] = b->kept_stride[d];
        }
    }
    b->n_kept = n;
}

/* Rows are usually far apart: processors do not guess the next. */
static void fetch_row(const char *row, int64_t bytes)
{
    for (int64_t b = 0; b < bytes; b += 64)
        __builtin_prefetch(row + b);
}

/* Finds one or more results, the first at `in`: iterates over all reduced dimensions but the last. */
static void find(const oly_local_task *t, const box *b, int64_t width, int64_t column, const char *in, double *best,
                 int64_t *number)
{
    int smallest = t->op == OLY_LOCAL_ARGMIN, last = b->n_reduced - 1;
    int64_t bytes = oly_element_bytes[t->in[0].dtype], outer = 1, at[OLY_MAX_RANK] = {0};
    for (int d = 0; d < last; d++)
        outer *= b->reduced[d];
    for (int64_t o = 0; o < outer; o++) {
        int64_t offset = 0, first = b->first;
        for (int d = 0; d < last; d++) {
            offset += at[d] * b->reduced_stride[d];
            first += at[d] * b->weight[d];
        }
        if (width == 1)
            runs[smallest][t->in[0].dtype](b->reduced[last], best, number, in + offset * bytes, b->reduced_stride[last],
                                           first, o == 0);
        else
            for (int64_t k = 0; k < b->reduced[last]; k++) {
                if (k + AHEAD < b->reduced[last])
                    fetch_row(in + (offset + (k + AHEAD) * b->reduced_stride[last]) * bytes, width * bytes);
                rows[smallest][t->in[0].dtype](width, best, number, in + (offset + k * b->reduced_stride[last]) * bytes,
                                               column, first + k, o == 0 && k == 0);
            }
        for (int d = last - 1; d >= 0 && ++at[d] == b->reduced[d]; d--)
            at[d] = 0;
    }
}

/* BLOCK results, side by side, of elements of 4 or 8 bytes that lie one after the other; few, or they would be read at once. */
static bool is_short(const oly_local_task *t, const box *b)
{
    const int bytes = oly_element_bytes[t->in[0].dtype];
    return (bytes == 4 || bytes == 8) && b->n_reduced == 1 && b->reduced_stride[0] == 1 && b->reduced[0] <= SHORT;
}
static void find_short(const oly_local_task *t, const box *b, int64_t column, const char *in, double *best,
                       int64_t *number)
{
    uint64_t turned[SHORT * BLOCK] __attribute__((aligned(64)));
    const int n = (int)b->reduced[0];
    const void *from = in;
    if (oly_element_bytes[t->in[0].dtype] == 4)
        transpose_w4(BLOCK, n, (uint32_t *)turned, BLOCK, from, column);
    else
        transpose_w8(BLOCK, n, turned, BLOCK, from, column);
    shorts[t->op == OLY_LOCAL_ARGMIN][t->in[0].dtype](b->reduced[0], best, number, turned, b->first);
}

static void store_numbers(const oly_local_task *t, void *out, int64_t at, int64_t n, const int64_t *number)
{
    for (int64_t j = 0; j < n; j++)
        if (t->out.dtype == OLY_INT64)
            ((int64_t *)out)[at + j] = number[j];
        else
            ((int32_t *)out)[at + j] = (int32_t)number[j];
}

/* Converts the elements found back to their type. */
static void store_elements(oly_dtype dtype, void *out, int64_t at, int64_t n, const void *best)
{
    size_t bytes = oly_element_bytes[dtype];
    char *to = (char *)out + (size_t)at * bytes;
    if (!oly_is_narrow(dtype))
        memcpy(to, best, (size_t)n * bytes);
    else
        OLY_ISA_NAME(oly_convert).convert[OLY_FLOAT32][dtype]((int)n, to, best, NULL, NULL);
}

void OLY_ISA_NAME(oly_argreduce_run)(const oly_local_task *t, const void *const *in, void *out, void *scratch,
                                     int phase, int chunk, int n_chunks)
{
    (void)phase;
    box b = box_of(t);
    merge_kept(&b);
    int64_t n = oly_local_count(&t->out, -1), bytes = oly_element_bytes[t->in[0].dtype];
    int last = b.n_kept - 1;
    int64_t columns = last >= 0 ? b.kept[last] : 1, column = last >= 0 ? b.kept_stride[last] : 0;
    bool nothing = oly_local_count(&t->in[0], -1) == 0;
    for (int64_t k = n * chunk / n_chunks, end = n * (chunk + 1) / n_chunks; k < end;) {
        double best[WIDTH];
        int64_t number[WIDTH], left = nothing ? 1 : columns - k % columns, width = end - k < left ? end - k : left;
        width = width < WIDTH ? width : WIDTH;
        bool turned = column != 1 && width >= BLOCK && is_short(t, &b);
        if (turned)
            width = BLOCK;
        else if (column != 1) /* results far apart gain nothing from each other */
            width = 1;
        if (nothing) {
            number[0] = -1;
            best[0] = 0;
        } else {
            int64_t offset = oly_local_offset(b.n_kept, b.kept, b.kept_stride, -1, k);
            if (turned)
                find_short(t, &b, column, (const char *)in[0] + offset * bytes, best, number);
            else
                find(t, &b, width, column, (const char *)in[0] + offset * bytes, best, number);
        }
        store_numbers(t, out, k, width, number);
        if (t->partial)
            store_elements(t->in[0].dtype, scratch, k, width, best);
        k += width;
    }
}

/* -- over several devices ------------------------------------------------------------------------------------------ */

/* The better of the devices' results: of equal elements the one with the smaller number. */
void OLY_ISA_NAME(oly_pick_run)(const oly_local_task *t, const void *const *in, void *out, void *scratch, int phase,
                                int chunk, int n_chunks)
{
    (void)scratch, (void)phase;
    const oly_local_operand *x = &t->in[0], *numbers = &t->in[1];
    box b = box_of(t);
    beats *wins = beating[t->reverse][x->dtype];
    int64_t n = oly_local_count(&t->out, -1), parts = 1, bytes = oly_element_bytes[x->dtype];
    for (int k = 0; k < b.n_reduced; k++)
        parts *= b.reduced[k];
    int64_t number_kept[OLY_MAX_RANK], number_reduced[OLY_MAX_RANK], kept = 0;
    for (int d = 0, k = 0; d < x->rank; d++)
        if (k < t->n_axes && t->axes[k] == d)
            number_reduced[k++] = numbers->stride[d];
        else
            number_kept[kept++] = numbers->stride[d];
    for (int64_t k = n * chunk / n_chunks; k < n * (chunk + 1) / n_chunks; k++) {
        int64_t from = oly_local_offset(b.n_kept, b.kept, b.kept_stride, -1, k), found = -1;
        int64_t number_from = oly_local_offset(b.n_kept, b.kept, number_kept, -1, k);
        const char *best = NULL;
        for (int64_t p = 0; p < parts; p++) {
            int64_t at = number_from + oly_local_offset(b.n_reduced, b.reduced, number_reduced, -1, p);
            int64_t number = numbers->dtype == OLY_INT64 ? ((const int64_t *)in[1])[at] : ((const int32_t *)in[1])[at];
            const char *next = (const char *)in[0] +
                               (from + oly_local_offset(b.n_reduced, b.reduced, b.reduced_stride, -1, p)) * bytes;
            if (number >= 0 && (!best || wins(next, best) || (number < found && !wins(best, next)))) {
                best = next;
                found = number;
            }
        }
        store_numbers(t, out, k, 1, &found);
    }
}
