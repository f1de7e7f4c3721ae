/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs along rows, drawn ones and those that people write, for the tests of chains of rows on CPUs (plan/test_row_chains.c) and on GPUs
 * (gpu/test_gpu_rows.c). */
#ifndef ROW_PROGRAMS_H
#define ROW_PROGRAMS_H
#include <olympus.h>

/* Numbers from 0 below n; of programs number k. */
int row_draw(int n);
void row_draw_from(int k);
/* A value below n: recent ones are read more often, so that chains are long. */
int row_draw_value(int n);
/* On the mesh x=4, y=2. */
oly_array row_array(oly_dtype dtype, int seed, int rank, const int64_t *shape, const char *sharding);

/* One operation of a drawn program, of values of one type, whose result has that type. */
enum {
    ROW_ADD,
    ROW_SUB,
    ROW_MUL,
    ROW_LARGER,
    ROW_DIV,
    ROW_TANH,
    ROW_ROOT,
    ROW_SUM,
    ROW_MAX,
    ROW_MIN,
    ROW_PROD,
    ROW_MEAN,
    ROW_WHOLE_SUM,
    ROW_OPS
};
oly_array row_apply(int op, oly_array a, oly_array b);

/* Functions of (x, a row of factors). */
void row_softmax(const oly_array *in, oly_array *out, void *user);
void row_layernorm(const oly_array *in, oly_array *out, void *user);
void row_logsumexp(const oly_array *in, oly_array *out, void *user);
/* Three results: sums, sums of squares, variances. */
void row_moments(const oly_array *in, oly_array *out, void *user);
#endif
