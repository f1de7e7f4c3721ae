/* SPDX-License-Identifier: BSD-3-Clause */
/* Mathematical functions: elementwise arithmetic, logical and bit operations; reductions; running results; complex numbers;
 * functions for neural networks.
 *
 * Every line of output is an expression of this file and its value. x is split over all devices; operations run where their
 * operands are, and a C number may replace an array.
 *
 * Run:    launch/olyrun -n 2 -d 4 build/examples/math      (any ranks, any devices)
 * Prints: from process 0, expressions and their values. */
#include <complex.h>
#include <olympus.h>

static oly_mesh mesh;

/* Prints an expression and its value, gathered on every process. */
#define SHOW(...) show(#__VA_ARGS__, __VA_ARGS__)
static void show(const char *what, oly_array x)
{
    oly_array whole = oly_device_put(x, oly_named(mesh, ""));
    if (oly_process_index() == 0)
        oly_printf(oly_rank(x) > 1 ? "%s =\n%A\n" : "%s = %A\n", what, whole);
}

static void title(const char *text)
{
    if (oly_process_index() == 0)
        printf("-- %s\n", text);
}

static void functions(oly_array x)
{
    title("functions of one number");
    SHOW(x);
    SHOW(oly_tan(x));
    SHOW(oly_asin(x)); /* NaN outside of the domain */
    SHOW(oly_acos(x));
    SHOW(oly_atan(x));
    SHOW(oly_sinh(x));
    SHOW(oly_cosh(x));
    SHOW(oly_asinh(x));
    SHOW(oly_acosh(x));
    SHOW(oly_atanh(x));
    SHOW(oly_exp2(x));
    SHOW(oly_expm1(1e-10));
    SHOW(oly_log1p(x));
    SHOW(oly_log2(8.0));
    SHOW(oly_log10(1000.0));
    SHOW(oly_cbrt(x));
    SHOW(oly_rsqrt(4.0));
    SHOW(oly_square(x));
    SHOW(oly_integer_pow(x, 3));
    SHOW(oly_reciprocal(x));
    SHOW(oly_sinc(x));
    SHOW(oly_deg2rad(180.0));
    SHOW(oly_rad2deg(x));
    SHOW(oly_erf(x));
    SHOW(oly_erfc(x));
    SHOW(oly_erf_inv(oly_erf(x)));
    SHOW(oly_lgamma(5.0)); /* log of 1 * 2 * 3 * 4 */
    SHOW(oly_digamma(1.0));

    title("to whole numbers");
    SHOW(oly_floor(x));
    SHOW(oly_ceil(x));
    SHOW(oly_trunc(x));
    SHOW(oly_round(x)); /* ties to even */
    SHOW(oly_round_away(x));
    SHOW(oly_round_to(oly_exp(x), 2));

    title("kinds of numbers");
    oly_array odd = oly_log(oly_sub(x, 1)); /* NaN, -inf and a number */
    SHOW(odd);
    SHOW(oly_isfinite(odd));
    SHOW(oly_isinf(odd));
    SHOW(oly_isposinf(odd));
    SHOW(oly_isneginf(odd));
    SHOW(oly_isnan(odd));
    SHOW(oly_nan_to_num(odd));
    SHOW(oly_signbit(x));

    title("functions of two numbers");
    SHOW(oly_atan2(x, -1.0));
    SHOW(oly_hypot(x, 2.0));
    SHOW(oly_logaddexp(x, x));
    SHOW(oly_copysign(3.0, x));
    SHOW(oly_nextafter(1.0, x));
    SHOW(oly_fmax(odd, 0.0)); /* the other one where one is NaN; oly_max2 gives NaN */
    SHOW(oly_fmin(odd, 0.0));
    SHOW(oly_clip(x, -1.0, 1.0));
    SHOW(oly_clamp(-1.0, x, 1.0));
}

static void integers(void)
{
    title("whole numbers");
    oly_array n = oly_arange_range(-7, 8, 3, OLY_INT32);
    SHOW(n);
    SHOW(oly_floor_divide(n, 3));
    SHOW(oly_truncate_divide(n, 3));
    SHOW(oly_mod(n, 3)); /* the sign of the divisor */
    SHOW(oly_rem(n, 3)); /* the sign of the dividend */
    SHOW(oly_fmod(n, 3));

    title("truths and bits");
    oly_array small = oly_gt(n, -5), even = oly_eq(oly_mod(n, 2), 0);
    SHOW(oly_logical_and(small, even));
    SHOW(oly_logical_or(small, even));
    SHOW(oly_logical_xor(small, even));
    SHOW(oly_bitwise_and(n, 12));
    SHOW(oly_bitwise_or(n, 1));
    SHOW(oly_bitwise_xor(n, -1));
    SHOW(oly_bitwise_not(n));
    SHOW(oly_left_shift(n, 2));
    SHOW(oly_right_shift(n, 1)); /* the sign is shifted in, as below; logical: zeros */
    SHOW(oly_shift_right_arithmetic(n, 1));
    SHOW(oly_shift_right_logical(n, 28));
    SHOW(oly_population_count(n));
    SHOW(oly_clz(n));
    SHOW(oly_bitcast_convert_type(oly_ones(OLY_FLOAT32, 1), OLY_INT32));
    const oly_array cases[] = {n, oly_full_like(n, 100), oly_zeros_like(n)};
    SHOW(oly_select_n(n, 3, cases)); /* the first for negative, the last for large numbers */
}

static void reductions(oly_array x)
{
    title("reductions; .axes says over which dimensions");
    oly_array m = oly_reshape(oly_arange(6, OLY_FLOAT32), 2, 3);
    SHOW(oly_any(oly_gt(x, 2), .axes = "0"));
    SHOW(oly_all(oly_lt(m, 3), .axes = "1"));
    SHOW(oly_var(m, .axes = "1"));
    SHOW(oly_std(m, .axes = "0", .ddof = 1));
    SHOW(oly_logsumexp(m, .axes = "1"));

    title("running results");
    SHOW(oly_cumsum(x, 0));
    SHOW(oly_cumsum(x, 0, .reverse = true));
    SHOW(oly_cumprod(oly_add(oly_arange(5, OLY_INT32), 1), 0));
    SHOW(oly_cummax(oly_sin(x), 0));
    SHOW(oly_cummin(oly_sin(x), 0));
    SHOW(oly_cumlogsumexp(x, 0));
}

static void complex_numbers(void)
{
    title("complex numbers");
    oly_array z = oly_complex(oly_arange(3, OLY_FLOAT32), 1.0);
    SHOW(z);
    SHOW(oly_mul(z, 2.0 * I));
    SHOW(oly_real(z));
    SHOW(oly_imag(z));
    SHOW(oly_conj(z));
    SHOW(oly_abs(z));
    SHOW(oly_angle(z));
    SHOW(oly_exp(oly_mul(z, I)));
    SHOW(oly_convert_element_type(z, OLY_FLOAT32)); /* the real parts */
}

static void networks(oly_array x)
{
    title("activations");
    SHOW(oly_relu6(oly_mul(x, 4)));
    SHOW(oly_silu(x));
    SHOW(oly_softplus(x));
    SHOW(oly_log_sigmoid(x));
    SHOW(oly_elu(x, 1.0));
    SHOW(oly_leaky_relu(x, 0.1));
    SHOW(oly_gelu(x, true));
    SHOW(oly_gelu(x, false));
    SHOW(oly_softmax(x, 0));
    SHOW(oly_log_softmax(x, 0));
}

/* Types that are not named have 32 bits, unless 64-bit types are enabled; arrays of any type are always possible. */
static void widths(void)
{
    title("64-bit types");
    bool before = oly_x64_enabled();
    oly_enable_x64(true);
    SHOW(oly_sqrt(2)); /* a float64 */
    oly_enable_x64(before);
    SHOW(oly_sqrt(2)); /* a float32 */
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    char axis[32];
    snprintf(axis, sizeof axis, "x=%d", oly_device_count());
    mesh = oly_make_mesh(axis);

    oly_array x = oly_device_put(oly_arange_range(-2, 3, 1.5, OLY_FLOAT32), oly_named(mesh, "x"));
    functions(x);
    integers();
    reductions(x);
    complex_numbers();
    networks(x);
    widths();
    return oly_finalize();
}
