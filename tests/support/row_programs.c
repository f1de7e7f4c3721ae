/* SPDX-License-Identifier: BSD-3-Clause */
/* See row_programs.h. */
#include "row_programs.h"

static uint64_t state;

int row_draw(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

void row_draw_from(int k)
{
    state = (uint64_t)k * 7919;
    for (int skip = 0; skip < 4; skip++)
        row_draw(2);
}

int row_draw_value(int n)
{
    return row_draw(3) ? n - 1 - row_draw(n < 4 ? n : 4) : row_draw(n);
}

oly_array row_array(oly_dtype dtype, int seed, int rank, const int64_t *shape, const char *sharding)
{
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= shape[d];
    oly_array x = oly_mul(3, oly_sin(oly_add(oly_mul(oly_arange(n, OLY_FLOAT32), 0.37 + seed), seed)));
    return oly_device_put(oly_astype(oly_reshape_shape(x, rank, shape), dtype),
                          oly_named(oly_make_mesh("x=4, y=2"), sharding));
}

static oly_array like(oly_array x, oly_array a)
{
    return oly_astype(x, oly_dtype_of(a));
}

oly_array row_apply(int op, oly_array a, oly_array b)
{
    switch (op) {
    case ROW_ADD: return oly_add(a, b);
    case ROW_SUB: return oly_sub(a, b);
    case ROW_MUL: return oly_mul(a, b);
    case ROW_LARGER: return oly_max2(a, b);
    case ROW_DIV: return like(oly_div(a, oly_add(oly_abs(b), 2)), a);
    case ROW_TANH: return like(oly_tanh(a), a);
    case ROW_ROOT: return like(oly_sqrt(oly_abs(a)), a);
    case ROW_SUM: return like(oly_sum(a, OLY_AXES(-1), .keepdims = true), a);
    case ROW_MAX: return oly_max(a, OLY_AXES(-1), .keepdims = true);
    case ROW_MIN: return oly_min(a, OLY_AXES(-1), .keepdims = true);
    case ROW_PROD: return like(oly_prod(a, OLY_AXES(-1), .keepdims = true), a);
    case ROW_MEAN: return like(oly_mean(a, OLY_AXES(-1), .keepdims = true), a);
    default: return like(oly_sum(a, OLY_AXES(), .keepdims = true), a);
    }
}

void row_softmax(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_softmax(in[0], -1);
}

void row_layernorm(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = in[0], mean = oly_mean(x, OLY_AXES(-1), .keepdims = true);
    oly_array var = oly_var(x, OLY_AXES(-1), .keepdims = true);
    out[0] = oly_add(oly_mul(oly_mul(oly_sub(x, mean), oly_rsqrt(oly_add(var, 1e-5))), in[1]), 0.5);
}

void row_logsumexp(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_logsumexp(in[0], OLY_AXES(-1));
}

void row_moments(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(in[0], OLY_AXES(-1));
    out[1] = oly_sum(oly_mul(in[0], in[0]), OLY_AXES(-1));
    out[2] = oly_var(in[0], OLY_AXES(-1));
}
