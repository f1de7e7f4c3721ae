/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of elementwise.def and families.def: one operation, or a small group of them, of every kernel family. */
#include "families.h"

/* -- what the tables compute with ---------------------------------------------------------------------------------- */

/* Six products and six sums. */
static oly_array twelve(oly_array x, oly_array y)
{
    for (int k = 1; k <= 6; k++)
        x = oly_add(oly_mul(x, y), k);
    return x;
}

static oly_array twelve_bits(oly_array x, oly_array y)
{
    for (int k = 0; k < 4; k++)
        x = oly_logical_xor(oly_logical_and(oly_logical_or(x, y), oly_logical_not(y)), x);
    return x;
}

static oly_array layernorm(oly_array x, int axis)
{
    oly_array mean = oly_mean(x, OLY_AXES(axis), .keepdims = true);
    oly_array var = oly_var(x, OLY_AXES(axis), .keepdims = true);
    return oly_mul(oly_sub(x, mean), oly_rsqrt(oly_add(var, 1e-5)));
}

static oly_array padded(oly_array x)
{
    int64_t low[] = {1, 2}, high[] = {3, 4};
    return oly_pad(x, 0, low, high, NULL);
}

/* Half of the rows and columns from `start` on. */
static oly_array middle(oly_array x, oly_array start)
{
    int64_t half[] = {oly_dim(x, 0) / 2, oly_dim(x, 1) / 2};
    return oly_dynamic_slice(x, OLY_INDEXES(start, start), 2, half);
}

static oly_array largest(oly_array x)
{
    oly_array values, positions;
    oly_top_k(x, 8, &values, &positions);
    return oly_add(values, oly_astype(positions, OLY_FLOAT32));
}

/* -- the rows ---------------------------------------------------------------------------------------------------------- */

#define X in[0]
#define Y in[1]
#define Z in[2]
/* The text of what a row computes is made before its macros are expanded. */
#define OLY_ROW(name, size, quick, inputs, amount, limit, ...)                                                         \
    OLY_ROW_SHOWN(name, size, quick, inputs, amount, limit, #__VA_ARGS__, __VA_ARGS__)
#define OLY_ROW_SHOWN(name, size, quick, inputs, amount, limit, shown, ...)                                            \
    static void work_##name(const oly_array *in, oly_array *out, void *user)                                           \
    {                                                                                                                  \
        int64_t n = *(int64_t *)user;                                                                                  \
        (void)n;                                                                                                       \
        out[0] = __VA_ARGS__;                                                                                          \
    }                                                                                                                  \
    static void run_##name(const bench_row *row)                                                                       \
    {                                                                                                                  \
        double n = (double)bench_size(row);                                                                            \
        bench_measure(row, work_##name, #name, amount);                                                                \
    }
#include "elementwise.def"
#include "families.def"
#undef OLY_OF_ONE
#undef OLY_SLOW
#undef OLY_ROWS_OF
#undef OLY_ROW_SHOWN

#define OLY_ROW_SHOWN(name, size, quick, inputs, amount, limit, shown, ...)                                            \
    {#name, shown " of " inputs ", n = " #size, run_##name, size, quick, #limit, inputs},
const bench_row bench_elementwise_rows[] = {
#include "elementwise.def"
    {0},
};
const bench_row bench_family_rows[] = {
#include "families.def"
    {0},
};
