/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of a sparse matrix times a vector: a lookup, a product and a scatter that adds, or a sum over rows of equal length, in one pass. Compiled once
 * per instruction set; gives oly_sparse_run_<isa> and oly_gathered_sum_run_<isa>, called through local.c. Products and sums are rounded, and
 * follow each other, as in the three kernels. */
#include "cpu/index_inside.h"
#include "local_table.h"

enum { LONG_RUN = 4 }; /* elements of a row, on average, from which on where it ends is predicted, or rare */

/* Do the rows ascend, and are they long, and they and the columns inside? */
static bool fits(const oly_sparse_task *t)
{
    const int32_t *row = t->row, *column = t->column;
    int32_t falls = 0, runs = 0, least = column[0], most = column[0];
    for (int64_t k = 1; k < t->n; k++) {
        falls |= row[k] < row[k - 1];
        runs += row[k] != row[k - 1];
    }
    if (falls || row[0] < t->low || row[t->n - 1] >= t->high || (int64_t)runs * LONG_RUN > t->n)
        return false;
    for (int64_t k = 1; k < t->n; k++) {
        least = column[k] < least ? column[k] : least;
        most = column[k] > most ? column[k] : most;
    }
    return least >= 0 && most < t->n_x;
}

#define ROWS(name, T)                                                                                                  \
    static void name(const oly_sparse_task *t)                                                                         \
    {                                                                                                                  \
        const int32_t *row = t->row, *column = t->column;                                                              \
        const T *value = t->value, *x = t->x;                                                                          \
        T *y = t->y;                                                                                                   \
        for (int64_t k = 0; k < t->n;) {                                                                               \
            const int32_t at = row[k];                                                                                 \
            T sum = y[at - t->low];                                                                                    \
            do                                                                                                         \
                sum += value[k] * x[column[k]];                                                                        \
            while (++k < t->n && row[k] == at);                                                                        \
            y[at - t->low] = sum;                                                                                      \
        }                                                                                                              \
    }
ROWS(rows_f32, float)
ROWS(rows_f64, double)

bool OLY_ISA_NAME(oly_sparse_run)(const oly_sparse_task *t)
{
    if (t->n == 0 || !fits(t))
        return false;
    (t->dtype == OLY_FLOAT64 ? rows_f64 : rows_f32)(t);
    return true;
}

/* -- rows of equal length ---------------------------------------------------------------------------------------------- */

enum {
    AT_ONCE = 128,      /* bytes of a line whose sums are in registers */
    LINES_AHEAD = 16,   /* positions whose lines are fetched before they are needed, */
    LONG_LINE = 64,     /* if they have so many bytes: */
    FETCHED_LINE = 1024 /* the most of one that is fetched */
};

#define GATHERED(s, T)                                                                                                 \
    /* One element for each position. */                                                                               \
    static inline __attribute__((always_inline)) void elements_##s(const oly_gathered_sum_task *t, bool weighs)        \
    {                                                                                                                  \
        const int32_t *column = t->column;                                                                             \
        const T *value = t->value, *x = t->x;                                                                          \
        const int64_t step = t->x_row, width = t->width;                                                               \
        for (int64_t i = 0; i < t->n; i++, column += width) {                                                          \
            T sum = weighs ? value[0] * x[column[0] * step] : x[column[0] * step];                                     \
            for (int64_t k = 1; k < width; k++) {                                                                      \
                sum += weighs ? value[k] * x[column[k] * step] : x[column[k] * step];                                  \
                OLY_BY_ONE;                                                                                            \
            }                                                                                                          \
            ((T *)t->y)[i] = sum;                                                                                      \
            value += weighs ? width : 0;                                                                               \
        }                                                                                                              \
    }                                                                                                                  \
    /* n elements of the line of each position, from `from` on. */                                                     \
    static inline __attribute__((always_inline)) void part_##s(const oly_gathered_sum_task *t, int64_t row,            \
                                                               int64_t from, int n, bool weighs)                       \
    {                                                                                                                  \
        const int32_t *column = t->column + row * t->width;                                                            \
        const T *value = weighs ? (const T *)t->value + row * t->width : NULL, *x = (const T *)t->x + from;            \
        T sum[AT_ONCE / sizeof(T)];                                                                                    \
        for (int j = 0; j < n; j++)                                                                                    \
            sum[j] = weighs ? value[0] * x[column[0] * t->x_row + j] : x[column[0] * t->x_row + j];                    \
        for (int64_t k = 1; k < t->width; k++) {                                                                       \
            const T *line = x + column[k] * t->x_row;                                                                  \
            for (int j = 0; j < n; j++)                                                                                \
                sum[j] += weighs ? value[k] * line[j] : line[j];                                                       \
            OLY_BY_ONE;                                                                                                \
        }                                                                                                              \
        for (int j = 0; j < n; j++)                                                                                    \
            ((T *)t->y)[row * t->line + from + j] = sum[j];                                                            \
    }                                                                                                                  \
    static inline __attribute__((always_inline)) void lines_##s(const oly_gathered_sum_task *t, bool weighs)           \
    {                                                                                                                  \
        enum { MANY = AT_ONCE / sizeof(T), FEW = MANY / 4 };                                                           \
        const int64_t bytes = t->line * (int64_t)sizeof(T), positions = t->n * t->width;                               \
        const int64_t fetched = bytes < LONG_LINE ? 0 : bytes < FETCHED_LINE ? bytes : FETCHED_LINE;                   \
        for (int64_t i = 0; i < t->n; i++) {                                                                           \
            int64_t from = 0, ahead = i * t->width + LINES_AHEAD;                                                      \
            for (int64_t k = ahead; fetched && k < ahead + t->width && k < positions; k++)                             \
                for (int64_t b = 0; b < fetched; b += 64)                                                              \
                    __builtin_prefetch((const char *)((const T *)t->x + t->column[k] * t->x_row) + b);                 \
            for (; from + MANY <= t->line; from += MANY)                                                               \
                part_##s(t, i, from, MANY, weighs);                                                                    \
            for (; from + FEW <= t->line; from += FEW)                                                                 \
                part_##s(t, i, from, FEW, weighs);                                                                     \
            if (from < t->line && t->line >= FEW) { /* some a second time, with the same sums */                       \
                part_##s(t, i, t->line - FEW, FEW, weighs);                                                            \
                from = t->line;                                                                                        \
            }                                                                                                          \
            for (; from < t->line; from++)                                                                             \
                part_##s(t, i, from, 1, weighs);                                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    static void gathered_##s(const oly_gathered_sum_task *t)                                                           \
    {                                                                                                                  \
        if (t->line > 1 && t->value)                                                                                   \
            lines_##s(t, true);                                                                                        \
        else if (t->line > 1)                                                                                          \
            lines_##s(t, false);                                                                                       \
        else if (t->value)                                                                                             \
            elements_##s(t, true);                                                                                     \
        else                                                                                                           \
            elements_##s(t, false);                                                                                    \
    }
GATHERED(f32, float)
GATHERED(f64, double)

bool OLY_ISA_NAME(oly_gathered_sum_run)(const oly_gathered_sum_task *t)
{
    if (t->n == 0 || t->width == 0 || !oly_all_inside_int32_t(t->n * t->width, t->column, 0, t->n_x))
        return false;
    (t->dtype == OLY_FLOAT64 ? gathered_f64 : gathered_f32)(t);
    return true;
}
