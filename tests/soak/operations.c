/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of operations, and the call of each. */
#include "program.h"
#include "inside_functions.h"
#include <math.h>
#include <string.h>

const operation operations[N_OPS] = {
#define SOAK_OP(name, family, arity, weight, format) {#name, family, arity, weight, format},
#include "operations.def"
#undef SOAK_OP
};

static const char *const axis_name[MOST_AXES] = {"x", "y", "z"};

const char *axes_text(const mesh_text *m, int n, const int *axes)
{
    static char text[4][40];
    static int turn;
    char *t = text[turn++ % 4];
    int at = 0;
    (void)m;
    t[0] = 0;
    for (int k = 0; k < n; k++)
        at += snprintf(t + at, 40 - (size_t)at, "%s%s", k ? ", " : "", axis_name[axes[k]]);
    return t;
}

const char *spec_text(const placement *place, int rank)
{
    static char text[16][80];
    static int turn;
    char *t = text[turn++ % 16];
    int at = 0, last = rank - 1;
    t[0] = 0;
    while (last >= 0 && place->n[last] == 0)
        last--;
    for (int d = 0; d <= last; d++) {
        at += snprintf(t + at, 80 - (size_t)at, "%s%s", d ? ", " : "",
                       place->n[d] == 0  ? "None"
                       : place->n[d] > 1 ? "("
                                         : "");
        for (int k = 0; k < place->n[d]; k++)
            at += snprintf(t + at, 80 - (size_t)at, "%s%s", k ? "," : "", axis_name[place->axis[d][k]]);
        if (place->n[d] > 1)
            at += snprintf(t + at, 80 - (size_t)at, ")");
    }
    for (int a = 0, n = 0; a < MOST_AXES && place->unreduced; a++)
        if (place->unreduced >> a & 1)
            at += snprintf(t + at, 80 - (size_t)at, "%s%s",
                           n++         ? ","
                           : last >= 0 ? ", unreduced={"
                                       : "unreduced={",
                           axis_name[a]);
    if (place->unreduced)
        snprintf(t + at, 80 - (size_t)at, "}");
    return t;
}

oly_sharding sharding_of(const program *p, const placement *place, int rank, const oly_mesh *mesh)
{
    (void)p;
    return place->mesh < 0 ? NULL : oly_named(mesh[place->mesh], spec_text(place, rank));
}

const char *slices_text(const statement *s)
{
    static char text[200];
    int at = 0;
    text[0] = 0;
    for (int d = 0; d < s->rank; d++) {
        at += snprintf(text + at, 200 - (size_t)at, "%s", d ? ", " : "");
        if (s->step[d] == 0)
            at += snprintf(text + at, 200 - (size_t)at, "%d", (int)s->low[d]);
        else if (s->step[d] == 1)
            at += snprintf(text + at, 200 - (size_t)at, "%d:%d", (int)s->low[d], (int)s->high[d]);
        else if (s->high[d] < 0)
            at += snprintf(text + at, 200 - (size_t)at, "%d::%d", (int)s->low[d], (int)s->step[d]);
        else
            at += snprintf(text + at, 200 - (size_t)at, "%d:%d:%d", (int)s->low[d], (int)s->high[d], (int)s->step[d]);
    }
    return text;
}

const char *einsum_text(const statement *s)
{
    static char text[3 * MOST_RANK + 4];
    int n = 0;
    for (int part = 0; part < 3; part++) {
        const int64_t *letters = part == 0 ? s->low : part == 1 ? s->high : s->step;
        n += snprintf(text + n, sizeof text - (size_t)n, "%s", part == 0 ? "" : part == 1 ? "," : "->");
        for (int d = 0; d < MOST_RANK && letters[d]; d++)
            text[n++] = (char)letters[d];
    }
    text[n] = 0;
    return text;
}

static oly_operand number_of(const statement *s)
{
    return s->number == floor(s->number) ? oly_operand_int((int64_t)s->number) : oly_operand_float(s->number);
}

static oly_array call_one(const program *p, const statement *s, oly_array x, const oly_mesh *mesh)
{
    switch ((int)s->op) {
    case OP_neg: return oly_neg(x);
    case OP_abs: return oly_abs(x);
    case OP_sign: return oly_sign(x);
    case OP_square: return oly_square(x);
    case OP_relu: return oly_relu(x);
    case OP_floor: return oly_floor(x);
    case OP_ceil: return oly_ceil(x);
    case OP_logical_not: return oly_logical_not(x);
    case OP_bitwise_not: return oly_bitwise_not(x);
    case OP_convert: return oly_astype(x, s->dtype);
    case OP_real: return oly_real(x);
    case OP_imag: return oly_imag(x);
    case OP_conj: return oly_conj(x);
    case OP_stop_gradient: return oly_stop_gradient(x);
    case OP_sin: return oly_sin(x);
    case OP_cos: return oly_cos(x);
    case OP_tanh: return oly_tanh(x);
    case OP_sigmoid: return oly_sigmoid(x);
    case OP_exp: return oly_exp(x);
    case OP_sqrt: return oly_sqrt(x);
    case OP_log1p: return oly_log1p(x);
    case OP_reshard: return oly_reshard(x, sharding_of(p, &s->place[0], oly_rank(x), mesh));
    case OP_pvary: return oly_pvary(x, axes_text(&p->mesh[s->place[0].mesh], s->n_axes, s->axes));
    default: return oly_with_sharding_constraint(x, sharding_of(p, &s->place[0], oly_rank(x), mesh));
    }
}

static oly_array call_two(const statement *s, const oly_operand *x)
{
    switch ((int)s->op) {
    case OP_add: return oly_add(x[0], x[1]);
    case OP_sub: return oly_sub(x[0], x[1]);
    case OP_mul: return oly_mul(x[0], x[1]);
    case OP_max2: return oly_max2(x[0], x[1]);
    case OP_min2: return oly_min2(x[0], x[1]);
    case OP_eq: return oly_eq(x[0], x[1]);
    case OP_ne: return oly_ne(x[0], x[1]);
    case OP_lt: return oly_lt(x[0], x[1]);
    case OP_le: return oly_le(x[0], x[1]);
    case OP_gt: return oly_gt(x[0], x[1]);
    case OP_ge: return oly_ge(x[0], x[1]);
    case OP_logical_and: return oly_logical_and(x[0], x[1]);
    case OP_logical_or: return oly_logical_or(x[0], x[1]);
    case OP_logical_xor: return oly_logical_xor(x[0], x[1]);
    case OP_bitwise_and: return oly_bitwise_and(x[0], x[1]);
    case OP_bitwise_or: return oly_bitwise_or(x[0], x[1]);
    case OP_bitwise_xor: return oly_bitwise_xor(x[0], x[1]);
    case OP_fmod: return oly_fmod(x[0], x[1]);
    case OP_div: return oly_div(x[0], x[1]);
    case OP_complex: return oly_complex(x[0], x[1]);
    case OP_where: return oly_where(x[0], x[1], x[2]);
    default: return oly_clip(x[0], s->low[0], s->high[0]);
    }
}

static oly_array call_reduction(const program *p, const statement *s, oly_array x, const oly_mesh *mesh)
{
    oly_reduce_options options = {.keepdims = s->flag};
    if (!s->other_flag) {
        options.n_axis_list = s->n_axes;
        options.axis_list = s->axes;
        options.axes_given = true;
    }
    static oly_array (*const calls[])(oly_operand, oly_reduce_options) = {
        oly_sum_with, oly_max_with, oly_min_with,    oly_prod_with,  oly_mean_with,
        oly_any_with, oly_all_with, oly_argmax_with, oly_argmin_with};
    if (s->op == OP_sum_unreduced) {
        options.out_sharding = sharding_of(p, &s->place[0], MOST_RANK, mesh);
        return oly_sum_with(oly_operand_array(x), options);
    }
    return calls[s->op - OP_sum](oly_operand_array(x), options);
}

static oly_array call_running(const statement *s, oly_array x)
{
    switch ((int)s->op) {
    case OP_cumsum: return oly_cumsum(x, s->k, .reverse = s->flag);
    case OP_cummax: return oly_cummax(x, s->k, .reverse = s->flag);
    case OP_cummin: return oly_cummin(x, s->k, .reverse = s->flag);
    case OP_cumprod: return oly_cumprod(x, s->k, .reverse = s->flag);
    case OP_sort: return oly_sort(x, s->k, .descending = s->flag);
    default: return oly_argsort(x, s->k, .descending = s->flag);
    }
}

static oly_array call_product(const program *p, const statement *s, const oly_array *x, const oly_mesh *mesh)
{
    static const char *const padding[] = {"", "SAME", "VALID"};
    char window[24];
    snprintf(window, sizeof window, "%d", (int)s->shape[0]);
    switch ((int)s->op) {
    case OP_matmul: return oly_matmul(x[0], x[1]);
    case OP_product_unreduced:
        return oly_matmul(x[0], x[1], .out_sharding = sharding_of(p, &s->place[0], MOST_RANK, mesh));
    case OP_dot: return oly_dot(x[0], x[1]);
    case OP_outer: return oly_outer(x[0], x[1]);
    case OP_vdot: return oly_vdot(x[0], x[1]);
    case OP_batched: return oly_einsum("bij,bjk->bik", x[0], x[1]);
    case OP_contract: return oly_einsum(einsum_text(s), x[0], x[1]);
    case OP_crossed: return oly_einsum("ij,kj->ki", x[0], x[1]);
    case OP_correlate: return oly_correlate(x[0], x[1], modes[s->mode]);
    case OP_convolve: return oly_convolve(x[0], x[1], modes[s->mode]);
    case OP_conv: return oly_conv(x[0], x[1], .padding = padding[s->mode]);
    case OP_conv_many:
        return oly_conv(x[0], x[1], .padding = padding[s->mode], .n_list = (int)s->shape[0], .stride_list = s->low,
                        .lhs_dilation_list = s->high, .rhs_dilation_list = s->step, .feature_group_count = s->k);
    default:
        return oly_reduce_window(x[0], s->op == OP_window_sum ? "sum" : "max", .window = window,
                                 .padding = padding[s->mode]);
    }
}

static oly_array call_rearrangement(const statement *s, const oly_array *x, const oly_operand *o)
{
    switch ((int)s->op) {
    case OP_slice: return oly_slice(x[0], slices_text(s));
    case OP_update: return oly_update(x[0], slices_text(s), o[1]);
    case OP_roll: return oly_roll(x[0], (int64_t)s->number, s->k);
    case OP_flip: return oly_flip_n(x[0], s->n_axes, s->axes);
    case OP_transpose: return oly_transpose_axes(x[0], s->n_axes, s->axes);
    case OP_reshape: return oly_reshape_shape(x[0], s->rank, s->shape);
    case OP_broadcast: return oly_broadcast_shape(o[0], s->rank, s->shape);
    case OP_concatenate: return oly_concatenate_n(s->n_in, x, s->k);
    case OP_stack: return oly_stack_n(s->n_in, x, s->k);
    case OP_pad: return oly_pad(x[0], number_of(s), s->low, s->high, s->step);
    case OP_pad_mode: return oly_pad_mode(x[0], modes[s->mode], s->low, s->high);
    case OP_tile: return oly_tile_n(x[0], s->rank, s->shape);
    case OP_repeat: return oly_repeat(x[0], s->shape[0], s->k);
    case OP_tril: return oly_tril(x[0], (int64_t)s->number);
    case OP_triu: return oly_triu(x[0], (int64_t)s->number);
    default: return oly_diagonal_of(x[0], (int64_t)s->number, 0, 1);
    }
}

static oly_array call_indexing(const statement *s, const oly_array *x, const oly_operand *o)
{
    oly_array values = NULL;
    switch ((int)s->op) {
    case OP_take: return oly_take(x[0], o[1], s->k, modes[s->mode]);
    case OP_take_along: return oly_take_along_axis(x[0], x[1], s->k, modes[s->mode]);
    case OP_at_get: return oly_at_get_with(x[0], 1, o + 1, (oly_at_options){0});
    case OP_at_set: return oly_at_set_with(x[0], 1, o + 1, o[2], (oly_at_options){0});
    case OP_at_add: return oly_at_add_with(x[0], 1, o + 1, o[2], (oly_at_options){0});
    case OP_at_max: return oly_at_max_with(x[0], 1, o + 1, o[2], (oly_at_options){0});
    case OP_dynamic_slice: return oly_dynamic_slice(x[0], s->n_in - 1, o + 1, s->rank, s->shape);
    case OP_dynamic_update: return oly_dynamic_update_slice(x[0], x[1], s->n_in - 2, o + 2);
    case OP_segment_sum: return oly_segment_sum(x[0], x[1], s->shape[0]);
    case OP_one_hot: return oly_one_hot(x[0], s->shape[0], s->dtype, -1);
    case OP_searchsorted: return oly_searchsorted(x[0], o[1], modes[s->mode]);
    default: oly_top_k(x[0], s->shape[0], &values, NULL); return values;
    }
}

int ring_pairs(const program *p, const statement *s, int pairs[][2])
{
    int n = 1, count = 0;
    for (int k = 0; k < s->n_axes; k++)
        n *= p->mesh[s->place[0].mesh].size[s->axes[k]];
    for (int k = 0; k < n; k++) {
        int to = k + s->k % n;
        if (s->flag && to >= n)
            continue;
        pairs[count][0] = k;
        pairs[count++][1] = to % n;
    }
    return count;
}

static oly_array call_collective(const program *p, const statement *s, oly_array x)
{
    const char *axes = axes_text(&p->mesh[s->place[0].mesh], s->n_axes, s->axes);
    int pairs[MOST_DEVICES][2];
    switch ((int)s->op) {
    case OP_psum: return oly_psum(x, axes);
    case OP_pmax: return oly_pmax(x, axes);
    case OP_all_gather: return oly_all_gather(x, axes, .axis = s->k, .tiled = s->flag);
    case OP_psum_scatter: return oly_psum_scatter(x, axes, .axis = s->k, .tiled = s->flag);
    case OP_ppermute: {
        int n = ring_pairs(p, s, pairs);
        return oly_ppermute(x, axes, n, (const int(*)[2])pairs);
    }
    case OP_all_to_all: return oly_all_to_all(x, axes, s->k, (int)s->shape[0], true);
    default: return oly_axis_index(axes);
    }
}

static oly_array call_random(const program *p, const statement *s, const oly_array *x, const oly_operand *o,
                             const oly_mesh *mesh)
{
    if (s->op == OP_random_key)
        return oly_random_key(s->k);
    oly_sharding to = sharding_of(p, &s->place[0], s->rank, mesh);
    switch ((int)s->op) {
    case OP_random_split: return oly_random_split(x[0], s->shape[0]);
    case OP_random_fold_in: return oly_random_fold_in(x[0], o[1]);
    case OP_random_bits: return oly_random_bits_shape(x[0], s->dtype, to, s->rank, s->shape);
    case OP_random_uniform:
        return oly_random_uniform_shape(x[0], s->dtype, OLY_ARG(0), OLY_ARG(1), to, s->rank, s->shape);
    case OP_random_randint:
        return oly_random_randint_shape(x[0], s->dtype, OLY_ARG(s->low[0]), OLY_ARG(s->high[0]), to, s->rank, s->shape);
    case OP_random_bernoulli: return oly_random_bernoulli_shape(x[0], OLY_ARG(s->number), to, s->rank, s->shape);
    default: return oly_random_permutation_of(x[0], x[1], 0);
    }
}

static oly_array call_inside(const statement *s, const oly_array *x)
{
    switch ((int)s->op) {
    case OP_printed: return inside_printed(x[0]);
    case OP_checked: return inside_checked(x[0]);
    case OP_reversed: return inside_reversed(x[0], s->flag);
    case OP_numbered: return inside_numbered(x[0]);
    case OP_custom: return inside_custom(x[0]);
    case OP_neighbours: return inside_neighbours(x[0], s->k);
    default: return inside_product(x[0], x[1]);
    }
}

oly_array call_operation(const program *p, const statement *s, oly_array const *env, const oly_mesh *mesh)
{
    oly_array x[MOST_IN];
    oly_operand o[MOST_IN];
    for (int k = 0; k < s->n_in; k++) {
        x[k] = s->in[k] == NUMBER ? NULL : env[s->in[k]];
        o[k] = s->in[k] == NUMBER ? number_of(s) : oly_operand_array(x[k]);
    }
    switch (operations[s->op].family) {
    case ONE: return call_one(p, s, x[0], mesh);
    case TWO:
    case THREE: return call_two(s, o);
    case REDUCTION: return call_reduction(p, s, x[0], mesh);
    case RUNNING: return call_running(s, x[0]);
    case PRODUCT: return call_product(p, s, x, mesh);
    case REARRANGE: return call_rearrangement(s, x, o);
    case INDEXING: return call_indexing(s, x, o);
    case RANDOM: return call_random(p, s, x, o, mesh);
    case INSIDE: return call_inside(s, x);
    case COLLECTIVE: return call_collective(p, s, s->n_in ? x[0] : NULL);
    case SOURCE:
        if (s->op == OP_iota)
            return oly_iota_shape(s->dtype, s->k, s->rank, s->shape);
        if (s->op == OP_full)
            return oly_full_shape(number_of(s), s->dtype, s->rank, s->shape);
        return oly_eye(s->shape[0], s->shape[1], s->k, s->dtype);
    }
    return NULL;
}
