/* SPDX-License-Identifier: BSD-3-Clause */
/* See gradient_samples.h. */
#include "gradient_samples.h"

#define M43                                                                                                            \
    {                                                                                                                  \
        2,                                                                                                             \
        {                                                                                                              \
            4, 3                                                                                                       \
        }                                                                                                              \
    }
#define UNARY_SAMPLE(row)                                                                                              \
    static oly_array row##_of(const oly_array *x)                                                                      \
    {                                                                                                                  \
        return oly_##row(x[0]);                                                                                        \
    }
#define BINARY_SAMPLE(row, function)                                                                                   \
    static oly_array row##_of(const oly_array *x)                                                                      \
    {                                                                                                                  \
        return function(x[0], x[1]);                                                                                   \
    }

UNARY_SAMPLE(neg)
UNARY_SAMPLE(abs)
UNARY_SAMPLE(exp)
UNARY_SAMPLE(log)
UNARY_SAMPLE(sqrt)
UNARY_SAMPLE(sin)
UNARY_SAMPLE(cos)
UNARY_SAMPLE(tanh)
UNARY_SAMPLE(sigmoid)
UNARY_SAMPLE(tan)
UNARY_SAMPLE(asin)
UNARY_SAMPLE(acos)
UNARY_SAMPLE(atan)
UNARY_SAMPLE(sinh)
UNARY_SAMPLE(cosh)
UNARY_SAMPLE(asinh)
UNARY_SAMPLE(acosh)
UNARY_SAMPLE(atanh)
UNARY_SAMPLE(exp2)
UNARY_SAMPLE(expm1)
UNARY_SAMPLE(log1p)
UNARY_SAMPLE(rsqrt)
UNARY_SAMPLE(cbrt)
UNARY_SAMPLE(square)
UNARY_SAMPLE(erf)
UNARY_SAMPLE(erfc)
UNARY_SAMPLE(erf_inv)
UNARY_SAMPLE(lgamma)
UNARY_SAMPLE(digamma)
UNARY_SAMPLE(relu)
BINARY_SAMPLE(add, oly_add)
BINARY_SAMPLE(sub, oly_sub)
BINARY_SAMPLE(mul, oly_mul)
BINARY_SAMPLE(div, oly_div)
BINARY_SAMPLE(pow, oly_pow)
BINARY_SAMPLE(max, oly_max2)
BINARY_SAMPLE(min, oly_min2)
BINARY_SAMPLE(dot_general, oly_matmul)
BINARY_SAMPLE(atan2, oly_atan2)
BINARY_SAMPLE(logaddexp, oly_logaddexp)
BINARY_SAMPLE(rem, oly_rem)

static oly_array clamp_of(const oly_array *x)
{
    return oly_clamp(oly_mul(x[1], 0.3), oly_mul(x[0], 2.0), oly_add(oly_mul(x[1], x[1]), 0.5));
}

static oly_array select_of(const oly_array *x)
{
    return oly_where(oly_gt(x[0], 0.5), oly_mul(x[0], x[1]), oly_sin(x[1]));
}

static oly_array convert_of(const oly_array *x)
{
    return oly_mul(oly_astype(oly_astype(oly_sin(x[0]), OLY_COMPLEX128), OLY_FLOAT64), x[0]);
}

static oly_array complex_of(const oly_array *x)
{
    oly_array z = oly_complex(oly_sin(x[0]), x[1]), w = oly_mul(oly_exp(oly_conj(z)), z);
    return oly_add(oly_mul(oly_real(w), oly_imag(oly_mul(z, z))), oly_abs(w));
}

/* Random numbers between bounds, by the bounds. */
static oly_array fma_of(const oly_array *x)
{
    oly_array low = oly_sin(x[0]), high = oly_add(oly_square(x[1]), 2.0);
    return oly_random_uniform_shape(oly_random_key(3), OLY_FLOAT64, oly_operand_array(low), oly_operand_array(high),
                                    NULL, 2, (int64_t[]){4, 3});
}

static oly_array broadcast_of(const oly_array *x)
{
    return oly_mul(oly_broadcast_to(x[0], 2, 4, 3), x[1]);
}

static oly_array reduce_sum_of(const oly_array *x)
{
    return oly_sum(oly_sin(x[0]), .axes = "0");
}

static oly_array reduce_prod_of(const oly_array *x)
{
    return oly_prod(x[0], .axes = "0,2");
}

static oly_array reduce_max_of(const oly_array *x)
{
    return oly_mul(oly_max(oly_sin(x[0]), .axes = "1"), oly_max(x[0]));
}

static oly_array reduce_min_of(const oly_array *x)
{
    return oly_min(oly_mul(x[0], x[0]), .axes = "0");
}

static oly_array reshape_of(const oly_array *x)
{
    return oly_sin(oly_reshape(oly_mul(x[0], x[0]), 2, 6));
}

static oly_array transpose_of(const oly_array *x)
{
    return oly_mul(oly_transpose(oly_sin(x[0])), x[1]);
}

static oly_array slice_of(const oly_array *x)
{
    return oly_mul(oly_slice(x[0], "1:, ::2"), oly_slice(x[0], ":-1, 0:2"));
}

static oly_array update_of(const oly_array *x)
{
    return oly_update(oly_sin(x[0]), "1:3, :2", oly_mul(x[1], x[1]));
}

static oly_array concatenate_of(const oly_array *x)
{
    return oly_sin(oly_concatenate(0, x[0], oly_mul(x[1], x[1]), x[0]));
}

static oly_array pad_of(const oly_array *x)
{
    static const int64_t low[] = {1, -1}, high[] = {-2, 2}, between[] = {1, 0};
    return oly_pad(oly_sin(x[0]), oly_mul(x[1], x[1]), low, high, between);
}

/* Nothing of the array is left. */
static oly_array pad_away_of(const oly_array *x)
{
    static const int64_t low[] = {-5, 0}, high[] = {4, 1};
    return oly_pad(oly_sin(x[0]), oly_mul(x[1], x[1]), low, high, NULL);
}

static oly_array rev_of(const oly_array *x)
{
    return oly_mul(oly_rev(oly_sin(x[0]), 0), x[0]);
}

/* -- by value, and along a dimension ------ */
static oly_array sort_of(const oly_array *x)
{
    return oly_mul(oly_sort(oly_sin(x[0]), 0), oly_sort(x[0], 1, .descending = true));
}

#define ALONG_SAMPLE(row)                                                                                              \
    static oly_array row##_of(const oly_array *x)                                                                      \
    {                                                                                                                  \
        return oly_mul(oly_##row(oly_sin(x[0]), 0), oly_##row(x[0], 1, .reverse = true));                              \
    }
ALONG_SAMPLE(cumsum)
ALONG_SAMPLE(cumprod)
ALONG_SAMPLE(cummax)
ALONG_SAMPLE(cummin)
ALONG_SAMPLE(cumlogsumexp)

/* Row numbers: one twice, one out of range. */
static oly_array rows(void)
{
    return oly_from_host((int32_t[]){2, 0, 2, 7}, OLY_INT32, 1, (int64_t[]){4});
}

static oly_array gather_of(const oly_array *x)
{
    return oly_mul(oly_take(oly_sin(x[0]), rows(), 0, "clip"), oly_take(x[0], rows(), 0, "wrap"));
}

#define SCATTER_SAMPLE(row, function)                                                                                  \
    static oly_array row##_of(const oly_array *x)                                                                      \
    {                                                                                                                  \
        oly_array index = rows();                                                                                      \
        return oly_mul(function(oly_sin(x[0]), OLY_INDEXES(index), oly_mul(x[1], x[1]), .mode = "drop"), x[0]);        \
    }
SCATTER_SAMPLE(scatter, oly_at_set)
SCATTER_SAMPLE(scatter_add, oly_at_add)
SCATTER_SAMPLE(scatter_min, oly_at_min)
SCATTER_SAMPLE(scatter_max, oly_at_max)

static oly_array scatter_mul_of(const oly_array *x)
{
    oly_array index = rows();
    return oly_at_mul(oly_sin(x[0]), OLY_INDEXES(index), oly_stop_gradient(oly_full(1.5, OLY_FLOAT64, 4, 3)),
                      .mode = "drop");
}

/* Computed starts, one too large. */
static const oly_operand *starts(void)
{
    static oly_operand two[2];
    two[0] = oly_operand_array(oly_add(oly_from_host((int32_t[]){1}, OLY_INT32, 0, NULL), 0));
    two[1] = oly_operand_array(oly_add(oly_from_host((int32_t[]){9}, OLY_INT32, 0, NULL), 0));
    return two;
}

static oly_array dynamic_slice_of(const oly_array *x)
{
    return oly_sin(oly_dynamic_slice(oly_mul(x[0], x[0]), 2, starts(), 2, (int64_t[]){2, 2}));
}

static oly_array dynamic_update_slice_of(const oly_array *x)
{
    return oly_sin(oly_dynamic_update_slice(oly_mul(x[0], x[0]), oly_sin(x[1]), 2, starts()));
}

/* -- windows --------- */
static oly_array conv_of(const oly_array *x)
{
    return oly_conv(oly_sin(x[0]), x[1], .strides = "2", .padding = "(1, 2)", .rhs_dilation = "2");
}

static oly_array reduce_window_sum_of(const oly_array *x)
{
    return oly_reduce_window(oly_sin(x[0]), "sum", .window = "2, 2", .strides = "2, 1");
}

static oly_array reduce_window_max_of(const oly_array *x)
{
    return oly_max_pool(oly_sin(x[0]), .window = "2, 2", .strides = "1, 1");
}

static oly_array reduce_window_min_of(const oly_array *x)
{
    return oly_reduce_window(oly_sin(x[0]), "min", .window = "2, 2", .strides = "1, 1");
}

/* -- loops and branches --------- */
static void growing_sum(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    carry[0] = oly_add(carry[0], oly_mul(carry[1], *(oly_array *)user));
    carry[1] = oly_sin(oly_mul(carry[1], 1.1));
}

/* Carries that depend on each other, one of them integer, the counter, captures, a nested loop. */
static void busy(oly_array i, oly_array *carry, void *user)
{
    oly_array *outside = user, t = oly_mul(oly_add(oly_astype(i, OLY_FLOAT64), 1.0), 0.1), inner[2];
    inner[0] = oly_mul(carry[1], 0.5);
    inner[1] = oly_mul(carry[0], t);
    oly_fori(1, 4, growing_sum, 2, inner, &outside[1]);
    carry[0] = oly_add(oly_mul(carry[0], outside[0]), oly_sin(inner[0]));
    carry[1] = oly_mul(carry[1], oly_add(oly_astype(carry[2], OLY_FLOAT64), 0.25));
    carry[2] = oly_sub(1, carry[2]);
}

static oly_array loop_of(const oly_array *x)
{
    oly_array outside[] = {oly_cos(x[1]), oly_mul(x[0], 0.3)};
    oly_array carry[] = {oly_sin(x[0]), oly_mul(x[0], x[0]), oly_scalar(1, OLY_INT32)};
    oly_fori(-2, 8, busy, 3, carry, outside);
    return oly_add(carry[0], oly_mul(carry[1], 0.3));
}

static void scan_body(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    y[0] = oly_mul(carry[0], oly_sin(x[0]));
    y[1] = oly_mul(x[0], x[0]);
    carry[0] = oly_add(oly_mul(carry[0], *(oly_array *)user), x[0]);
}

static oly_array scan_of(const oly_array *x)
{
    oly_array carry = oly_slice(x[1], "0"), outside = oly_slice(x[1], "1"), ys[2], turned[2];
    oly_scan(4, false, scan_body, 1, &carry, 1, &x[0], 2, ys, &outside);
    oly_scan(4, true, scan_body, 1, &carry, 1, &ys[0], 2, turned, &outside);
    return oly_add(oly_add(oly_mul(ys[1], turned[0]), turned[1]), carry);
}

static void waves(const oly_array *in, oly_array *out, void *user)
{
    oly_array y = oly_sin(oly_mul(in[0], in[1]));
    out[0] = oly_mul(oly_exp(y), *(oly_array *)user);
    out[1] = oly_sum(oly_mul(y, y), .axes = "1");
}

static oly_array checkpoint_of(const oly_array *x)
{
    oly_array outside = oly_mul(x[1], 0.5), wave = NULL, sum = NULL;
    oly_call(oly_checkpoint(oly_jit(waves, 2, 2, .user = &outside)), OLY_IN(x[0], x[1]), OLY_OUT(wave, sum));
    return oly_mul(wave, oly_reshape(sum, 4, 1));
}

static void first_side(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_mul(oly_sin(in[0]), *(oly_array *)user);
    out[1] = in[1];
}

static void second_side(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], in[0]);
    out[1] = oly_mul(in[1], in[0]);
}

static oly_array branch_of(const oly_array *x)
{
    oly_array both[] = {x[0], oly_exp(x[1])}, out[2], outside = oly_mul(x[1], 2.0);
    oly_array which = oly_gt(oly_sum(x[0]), 0.0), other[2];
    oly_cond(which, first_side, second_side, 2, both, 2, out, &outside);
    oly_cond(oly_logical_not(which), first_side, second_side, 2, both, 2, other, &outside);
    return oly_add(oly_add(out[0], out[1]), oly_mul(other[0], other[1]));
}

oly_mesh gradient_mesh(void)
{
    return oly_make_mesh("x=4, y=2");
}

static oly_array place_of(const oly_array *x)
{
    return oly_sin(oly_with_sharding_constraint(oly_mul(x[0], x[0]), oly_named(gradient_mesh(), "y, x")));
}

static void turned_product(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_matmul(in[0], oly_transpose(in[0]));
}

/* Over Explicit axes, with a region that the planner shards. */
static oly_array reshard_of(const oly_array *x)
{
    oly_mesh mesh = oly_make_mesh("x=4:explicit, y=2:explicit");
    oly_sharding rows = oly_named(mesh, "x");
    oly_array y = oly_sin(oly_reshard(oly_mul(x[0], x[0]), rows)), z = NULL;
    oly_auto_axes(turned_product, NULL, 1, &y, OLY_OUT(z), &rows);
    return oly_with_sharding_constraint(oly_reshard(z, oly_named(mesh, "y")), oly_named(mesh, "y"));
}

/* A device's part of a loss: x (8 elements, 2 here) differs along "x", w (2 elements) is the same everywhere. */
static oly_array device_loss(oly_array x, oly_array w)
{
    oly_array here = oly_astype(oly_axis_index("x"), OLY_FLOAT64), sum = oly_psum(oly_sum(oly_sin(x)), "x");
    oly_array all = oly_all_gather(x, "x", .tiled = true), same = oly_all_gather(oly_mul(x, x), "x", .invariant = true);
    oly_array scattered = oly_psum_scatter(oly_mul(all, oly_mul(all, here)), "x", .tiled = true);
    oly_array sent = oly_ppermute(oly_mul(x, w), "x", OLY_PAIRS({0, 1}, {1, 3}, {2, 0}));
    oly_array turned = oly_all_to_all(oly_mul(oly_reshape(all, 4, 2), oly_reshape(x, 1, 2)), "x", 0, 0, false);
    oly_array local = oly_add(oly_sum(oly_mul(scattered, x)), oly_sum(oly_mul(sent, oly_sin(x))));
    local = oly_add(local, oly_mul(here, oly_sum(oly_mul(turned, turned))));
    local = oly_mul(oly_add(local, oly_sum(oly_mul(w, x))), oly_add(sum, 1.0));
    return oly_add(oly_psum(local, "x"), oly_mul(sum, oly_sum(oly_mul(same, oly_sum(w)))));
}

static void loss_inside(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = device_loss(in[0], in[1]);
}

static void gradient_of_loss_inside(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_gradients(device_loss(in[0], in[1]), OLY_IN(in[0], in[1]), OLY_OUT(out[0], out[1]));
}

static const char *const specs[] = {"x", ""};

static oly_array permute_of(const oly_array *x)
{
    oly_array y = NULL;
    oly_shard_map(loss_inside, NULL, gradient_mesh(), 2, x, specs, OLY_OUT(y), specs + 1);
    return y;
}

void gradient_inside_map(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array *wanted[] = {&out[0], &out[1]};
    oly_shard_map(gradient_of_loss_inside, NULL, gradient_mesh(), 2, in, specs, 2, wanted, specs);
}

const gradient_sample gradient_samples[] = {
    {"neg", neg_of, 1, {M43}, -1, 1},
    {"abs", abs_of, 1, {M43}, -1.03, 1},
    {"exp", exp_of, 1, {M43}, -1, 1},
    {"log", log_of, 1, {M43}, 0.2, 3},
    {"sqrt", sqrt_of, 1, {M43}, 0.2, 3},
    {"sin", sin_of, 1, {M43}, -3, 3},
    {"cos", cos_of, 1, {M43}, -3, 3},
    {"tanh", tanh_of, 1, {M43}, -2, 2},
    {"sigmoid", sigmoid_of, 1, {M43}, -2, 2},
    {"tan", tan_of, 1, {M43}, -1, 1},
    {"asin", asin_of, 1, {M43}, -0.8, 0.8},
    {"acos", acos_of, 1, {M43}, -0.8, 0.8},
    {"atan", atan_of, 1, {M43}, -2, 2},
    {"sinh", sinh_of, 1, {M43}, -2, 2},
    {"cosh", cosh_of, 1, {M43}, -2, 2},
    {"asinh", asinh_of, 1, {M43}, -2, 2},
    {"acosh", acosh_of, 1, {M43}, 1.3, 3},
    {"atanh", atanh_of, 1, {M43}, -0.8, 0.8},
    {"exp2", exp2_of, 1, {M43}, -2, 2},
    {"expm1", expm1_of, 1, {M43}, -1, 1},
    {"log1p", log1p_of, 1, {M43}, -0.5, 2},
    {"rsqrt", rsqrt_of, 1, {M43}, 0.3, 2},
    {"cbrt", cbrt_of, 1, {M43}, 0.3, 2},
    {"square", square_of, 1, {M43}, -2, 2},
    {"erf", erf_of, 1, {M43}, -2, 2},
    {"erfc", erfc_of, 1, {M43}, -2, 2},
    {"erf_inv", erf_inv_of, 1, {M43}, -0.8, 0.8},
    {"lgamma", lgamma_of, 1, {M43}, 0.4, 5},
    {"digamma", digamma_of, 1, {M43}, 0.2, 3},
    {"digamma", digamma_of, 1, {M43}, -0.8, -0.2},
    {"atan2", atan2_of, 2, {M43, M43}, 0.2, 1},
    {"logaddexp", logaddexp_of, 2, {M43, M43}, -1, 1},
    {"rem", rem_of, 2, {{2, {4, 3}}, {2, {4, 3}}}, 0.21, 1.9},
    {"clamp", clamp_of, 2, {M43, M43}, -1, 1},
    {"select", relu_of, 1, {M43}, -1.03, 1},
    {"add", add_of, 2, {M43, M43}, -1, 1},
    {"sub", sub_of, 2, {M43, {1, {3}}}, -1, 1},
    {"mul", mul_of, 2, {M43, {2, {4, 1}}}, -1, 1},
    {"div", div_of, 2, {M43, {1, {1}}}, 0.3, 1},
    {"pow", pow_of, 2, {M43, {0}}, 0.3, 2},
    {"max", max_of, 2, {M43, {2, {4, 1}}}, -1, 1},
    {"min", min_of, 2, {M43, M43}, -1, 1},
    {"select", select_of, 2, {M43, M43}, 0.03, 1},
    {"convert", convert_of, 1, {M43}, -1, 1},
    {"complex", complex_of, 2, {M43, {2, {4, 1}}}, 0.2, 1},
    {"conj", complex_of, 2, {M43, M43}, -1, 1},
    {"real", complex_of, 2, {M43, M43}, -1, 1},
    {"imag", complex_of, 2, {M43, M43}, -1, 1},
    {"fma", fma_of, 2, {M43, M43}, -1, 1},
    {"broadcast", broadcast_of, 2, {{2, {4, 1}}, M43}, -1, 1},
    {"reduce_sum", reduce_sum_of, 1, {M43}, -1, 1},
    {"reduce_prod", reduce_prod_of, 1, {{3, {4, 3, 2}}}, 0.5, 1.5},
    {"reduce_max", reduce_max_of, 1, {M43}, -1, 1},
    {"reduce_min", reduce_min_of, 1, {M43}, 0, 1},
    {"dot_general", dot_general_of, 2, {M43, {2, {3, 5}}}, -1, 1},
    {"reshape", reshape_of, 1, {M43}, -1, 1},
    {"transpose", transpose_of, 2, {M43, {2, {3, 4}}}, -1, 1},
    {"slice", slice_of, 1, {M43}, -1, 1},
    {"update", update_of, 2, {M43, {2, {2, 1}}}, -1, 1},
    {"concatenate", concatenate_of, 2, {M43, M43}, -1, 1},
    {"pad", pad_of, 2, {M43, {0}}, -1, 1},
    {"pad", pad_away_of, 2, {M43, {0}}, -1, 1},
    {"rev", rev_of, 1, {M43}, -1, 1},
    {"sort", sort_of, 1, {M43}, -1, 1},
    {"cumsum", cumsum_of, 1, {M43}, -1, 1},
    {"cumprod", cumprod_of, 1, {{2, {5, 7}}}, -1.1, 1},
    {"cummax", cummax_of, 1, {{2, {5, 7}}}, -1, 1},
    {"cummin", cummin_of, 1, {{2, {5, 7}}}, -1, 1},
    {"cumlogsumexp", cumlogsumexp_of, 1, {{2, {5, 7}}}, -1, 1},
    {"gather", gather_of, 1, {M43}, -1, 1},
    {"scatter", scatter_of, 2, {M43, M43}, -1, 1},
    {"scatter_add", scatter_add_of, 2, {M43, M43}, -1, 1},
    {"scatter_mul", scatter_mul_of, 1, {M43}, -1, 1},
    {"scatter_min", scatter_min_of, 2, {M43, M43}, 0, 1},
    {"scatter_max", scatter_max_of, 2, {M43, M43}, 0, 1},
    {"dynamic_slice", dynamic_slice_of, 1, {M43}, -1, 1},
    {"dynamic_update_slice", dynamic_update_slice_of, 2, {M43, {2, {2, 2}}}, -1, 1},
    {"conv", conv_of, 2, {{3, {2, 3, 8}}, {3, {4, 3, 3}}}, -1, 1},
    {"reduce_window_sum", reduce_window_sum_of, 1, {{2, {5, 6}}}, -1, 1},
    {"reduce_window_max", reduce_window_max_of, 1, {{2, {5, 6}}}, -1, 1},
    {"reduce_window_min", reduce_window_min_of, 1, {{2, {5, 6}}}, -1, 1},
    {"loop", loop_of, 2, {M43, M43}, -1, 1},
    {"loop", scan_of, 2, {M43, {2, {2, 3}}}, -1, 1},
    {"loop", checkpoint_of, 2, {M43, M43}, -1, 1},
    {"branch", branch_of, 2, {M43, M43}, -1, 1},
    {"permute", permute_of, 2, {{1, {8}}, {1, {2}}}, -1, 1},
    {"place", place_of, 1, {M43}, -1, 1},
    {NULL},
};

const gradient_sample gradient_sample_of_reshard = {"reshard", reshard_of, 1, {M43}, -1, 1};
const gradient_sample gradient_sample_of_maps = {"permute", permute_of, 2, {{1, {8}}, {1, {2}}}, -1, 1};
