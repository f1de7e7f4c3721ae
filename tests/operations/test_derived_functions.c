/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8  Functions derived from functions: arguments and results, corners, Explicit axes, errors. */
#include "check_session.h"
#include <math.h>

/* -- the functions --------------------------------------------------------------------------------------------------- */
static void squares(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_mul(in[0], in[0]));
    out[1] = oly_mul(in[0], 3.0);
}

static void product_with_outside(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_sum(oly_mul(in[0], *(oly_array *)user));
}

static oly_array ramp(int64_t n)
{
    return oly_arange(n, OLY_FLOAT32);
}

static void values_and_other_results_come_along(void **state)
{
    (void)state;
    oly_fn f = oly_jit(squares, 1, 2);
    oly_array x = ramp(4), value = NULL, gradient = NULL, other = NULL;
    oly_call(oly_value_and_grad(f), OLY_IN(x), OLY_OUT(value, gradient, other));
    assert_float_equal(oly_item(value), 14, 0);
    assert_float_equal(oly_item(oly_slice(gradient, "3")), 6, 0);
    assert_float_equal(oly_item(oly_slice(other, "2")), 6, 0);
    oly_call(oly_grad(f), OLY_IN(x), OLY_OUT(gradient, other));
    assert_float_equal(oly_item(oly_slice(gradient, "2")), 4, 0);
}

/* An argument is a value of its own: other uses of the same array count as constant. */
static void arguments_are_values_of_their_own(void **state)
{
    (void)state;
    oly_array x = ramp(4);
    oly_fn f = oly_jit(product_with_outside, 1, 1, .user = &x);
    oly_array g = oly_apply(oly_grad(f), x);
    assert_float_equal(oly_item(oly_slice(g, "3")), 3, 0);
}

static void gradient_inside(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_mul(in[0], 2.0), unused = oly_sin(in[0]);
    oly_array y = oly_sum(oly_mul(x, x));
    oly_gradients(y, OLY_IN(in[0], x, unused), OLY_OUT(out[0], out[1], out[2]));
}

static void intermediate_values_have_gradients(void **state)
{
    (void)state;
    oly_array a = NULL, b = NULL, c = NULL;
    oly_call(oly_jit(gradient_inside, 1, 3), OLY_IN(ramp(4)), OLY_OUT(a, b, c));
    assert_float_equal(oly_item(oly_slice(a, "3")), 24, 0);
    assert_float_equal(oly_item(oly_slice(b, "3")), 12, 0);
    assert_float_equal(oly_item(oly_slice(c, "3")), 0, 0);
}

/* A derived function may outlive the one it comes from. */
static void derived_functions_keep_what_they_come_from(void **state)
{
    (void)state;
    oly_array g = NULL, other = NULL;
    oly_fn second;
    oly_fn first = oly_grad(oly_jit(squares, 1, 2));
    second = oly_jvp(first);
    (void)second;
    oly_call(first, OLY_IN(ramp(3)), OLY_OUT(g, other));
    assert_float_equal(oly_item(oly_slice(g, "2")), 4, 0);
}

static void element_types_stay(void **state)
{
    (void)state;
    oly_fn f = oly_grad(oly_jit(squares, 1, 2));
    oly_array g = NULL, other = NULL;
    oly_call(f, OLY_IN(oly_astype(ramp(4), OLY_BFLOAT16)), OLY_OUT(g, other));
    assert_int_equal(oly_dtype_of(g), OLY_BFLOAT16);
    oly_call(f, OLY_IN(oly_astype(ramp(4), OLY_FLOAT64)), OLY_OUT(g, other));
    assert_int_equal(oly_dtype_of(g), OLY_FLOAT64);
}

static void real_part_of_square(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array z = oly_add(in[0], oly_mul(in[1], in[2]));
    out[0] = oly_astype(oly_sum(oly_mul(z, z)), OLY_FLOAT32);
}

/* Re(z z) at 1 + 2i: 2 + 4j, from d/dx - i d/dy. */
static void complex_gradients_follow_the_convention(void **state)
{
    (void)state;
    float i[2] = {0, 1}, g[2] = {0};
    int64_t none = 0;
    oly_array unit = oly_from_host(i, OLY_COMPLEX64, 0, &none), z = NULL;
    oly_fn f = oly_jit(real_part_of_square, 3, 1);
    oly_array x = oly_astype(oly_scalar(1, OLY_FLOAT32), OLY_COMPLEX64);
    oly_array y = oly_astype(oly_scalar(2, OLY_FLOAT32), OLY_COMPLEX64);
    z = oly_apply(oly_grad(f), x, y, unit);
    assert_int_equal(oly_dtype_of(z), OLY_COMPLEX64);
    oly_process_allgather(z, g, sizeof g);
    assert_float_equal(g[0], 2, 0);
    assert_float_equal(g[1], 4, 0);
}

/* -- corners --------------------------------------------------------------------------------------------------------- */
static void corner(const oly_array *in, oly_array *out, void *user)
{
    switch (*(int *)user) {
    case 0: out[0] = oly_sum(oly_max2(in[0], 1.0)); break;
    case 1: out[0] = oly_max(in[0]); break;
    case 2: out[0] = oly_sum(oly_abs(in[0])); break;
    case 3: out[0] = oly_sum(oly_relu(in[0])); break;
    case 4: out[0] = oly_prod(in[0]); break;
    case 5: out[0] = oly_sum(oly_pow(in[0], 2.0)); break;
    case 6: out[0] = oly_sum(oly_mul(oly_stop_gradient(in[0]), in[0])); break;
    default: out[0] = oly_sum(oly_where(oly_gt(in[0], 0.0), oly_log(in[0]), 0.0)); break;
    }
}

static void check_corner(int which, int n, const float *x, const float *want)
{
    float got[8];
    oly_array at = oly_from_host(x, OLY_FLOAT32, 1, (int64_t[]){n});
    oly_array g = oly_apply(oly_grad(oly_jit(corner, 1, 1, .user = &which)), at);
    oly_process_allgather(g, got, sizeof(float) * (size_t)n);
    for (int k = 0; k < n; k++)
        if (!(got[k] == want[k] || (isnan(got[k]) && isnan(want[k]))))
            fail_msg("corner %d: element %d is %g, not %g", which, k, (double)got[k], (double)want[k]);
}

static void corners_have_the_agreed_slopes(void **state)
{
    (void)state;
    check_corner(0, 2, (float[]){1, 2}, (float[]){0.5F, 1});
    check_corner(1, 3, (float[]){3, 1, 3}, (float[]){0.5F, 0, 0.5F});
    check_corner(2, 3, (float[]){0, -2, 2}, (float[]){1, -1, 1});
    check_corner(3, 3, (float[]){0, -2, 2}, (float[]){0, 0, 1});
    check_corner(4, 3, (float[]){2, 0, 4}, (float[]){0, 8, 0});
    check_corner(5, 2, (float[]){0, 3}, (float[]){0, 6});
    check_corner(6, 2, (float[]){5, 3}, (float[]){5, 3});
    check_corner(7, 2, (float[]){0, 2}, (float[]){NAN, 0.5F});
}

/* A typed number made in the function, converted: values computed from it depend on it. */
static void by_a_number(const oly_array *in, oly_array *out, void *user)
{
    oly_array number = oly_full_shape(OLY_ARG(2), OLY_FLOAT32, 0, NULL), wide = oly_astype(number, OLY_FLOAT64);
    (void)user;
    oly_gradients(oly_sum(oly_mul(in[0], oly_mul(wide, wide))), OLY_IN(number), OLY_OUT(out[0]));
}

static void converted_numbers_have_gradients(void **state)
{
    (void)state;
    oly_array slope = oly_apply(oly_jit(by_a_number, 1, 1), ramp(5));
    assert_int_equal(oly_dtype_of(slope), OLY_FLOAT32);
    assert_float_equal(oly_item(slope), 4 * oly_item(oly_sum(ramp(5))), 1e-6);
}

/* -- explicit axes --------------------------------------------------------------------------------------------------- */
static void explicit_loss(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_mul(oly_sin(in[0]), in[1]));
}

static void gradients_have_the_sharding_of_their_values(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=4:explicit, y=2:explicit");
    oly_array a = oly_device_put(oly_reshape(ramp(32), 8, 4), oly_named(mesh, "x, y"));
    oly_array b = oly_device_put(ramp(4), oly_named(mesh, "y")), ga = NULL, gb = NULL;
    char text[64];
    oly_call(oly_grad(oly_jit(explicit_loss, 2, 1), .argnums = "0, 1"), OLY_IN(a, b), OLY_OUT(ga, gb));
    oly_typeof(ga, text, sizeof text);
    assert_string_equal(text, "float32[8@x,4@y]");
    oly_typeof(gb, text, sizeof text);
    assert_string_equal(text, "float32[4@y]");
}

/* -- errors ---------------------------------------------------------------------------------------------------------- */
static void expect_error(oly_status status, const char *part)
{
    assert_int_equal(oly_last_status(), status);
    if (!strstr(oly_last_error(), part))
        fail_msg("\"%s\" is not in \"%s\"", part, oly_last_error());
    oly_clear_error();
}

static void not_a_number(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], 2.0);
}

static oly_array below_ten(const oly_array *carry, void *user)
{
    (void)user;
    return oly_lt(carry[0], 10.0);
}

static void twice(oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_mul(carry[0], 2.0);
}

static void open_loop(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_while(below_ten, twice, 1, out, NULL);
}

static void mistakes_are_explained(void **state)
{
    (void)state;
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_fn f = oly_jit(not_a_number, 1, 1), g = oly_jit(squares, 1, 2);
    oly_apply(oly_grad(f), ramp(3));
    expect_error(OLY_SHAPE, "Gradient only defined for scalar-output functions");
    oly_array a = NULL, b = NULL;
    oly_call(oly_grad(g), OLY_IN(oly_arange(3, OLY_INT32)), OLY_OUT(a, b));
    expect_error(OLY_DTYPE, "int32[3]");
    assert_null(oly_grad(f, .argnums = "1"));
    expect_error(OLY_INVALID, "no argument 1");
    assert_null(oly_grad(f, .argnums = "0, 0"));
    expect_error(OLY_INVALID, "named twice");
    assert_null(oly_grad(f, .argnums = "first"));
    expect_error(OLY_PARSE, "the number of an argument");
    oly_call(oly_vjp(f), OLY_IN(ramp(3), ramp(4)), OLY_OUT(a, b));
    expect_error(OLY_SHAPE, "cotangent");
    oly_call(oly_jvp(f), OLY_IN(ramp(3), oly_arange(3, OLY_INT32)), OLY_OUT(a, b));
    expect_error(OLY_DTYPE, "tangent");
    oly_apply(oly_grad(oly_jit(open_loop, 1, 1)), oly_scalar(1, OLY_FLOAT32));
    expect_error(OLY_INVALID, "oly_fori");
    oly_gradients(ramp(1), OLY_IN(ramp(1)), OLY_OUT(a));
    expect_error(OLY_TRACE, "oly_grad");
    oly_set_error_mode(OLY_ERRORS_ABORT);
}

/* -- running --------------------------------------------------------------------------------------------------------- */
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_and_other_results_come_along, check_start_wide, check_finish),
        cmocka_unit_test_setup_teardown(arguments_are_values_of_their_own, check_start_wide, check_finish),
        cmocka_unit_test_setup_teardown(intermediate_values_have_gradients, check_start_wide, check_finish),
        cmocka_unit_test_setup_teardown(derived_functions_keep_what_they_come_from, check_start_wide, check_finish),
        cmocka_unit_test_setup_teardown(element_types_stay, check_start_wide, check_finish),
        cmocka_unit_test_setup_teardown(complex_gradients_follow_the_convention, check_start_wide, check_finish),
        cmocka_unit_test_setup_teardown(corners_have_the_agreed_slopes, check_start_wide, check_finish),
        cmocka_unit_test_setup_teardown(gradients_have_the_sharding_of_their_values, check_start_wide, check_finish),
        cmocka_unit_test_setup_teardown(converted_numbers_have_gradients, check_start_wide, check_finish),
        cmocka_unit_test_setup_teardown(mistakes_are_explained, check_start_wide, check_finish),
    };
    return CHECK_MAIN(tests);
}
