/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of a sparse matrix times a vector: a lookup, a product and a scatter that adds, in one pass. Compiled once per instruction set; gives
 * oly_sparse_run_<isa>, called through local.c. Products and sums are rounded, and follow each other, as in the three kernels. */
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
