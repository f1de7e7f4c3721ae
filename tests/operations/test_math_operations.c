/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Mathematical operations on arrays: the same bits on one device and split unevenly, for every element
 * type that the operation takes; empty arrays; values that are easily wrong; and errors. */
#include "check.h"
#include <math.h>
#include <olympus.h>

static oly_mesh mesh;

static int start(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    mesh = oly_make_mesh("x=2,y=4");
    return mesh && oly_device_count() == 8 ? 0 : -1;
}
static int finish(void **state)
{
    (void)state;
    oly_clear_error();
    return oly_finalize();
}

/* -- every function, on one device and split ----------------------------------------------------------------------- */
#define TWO(name)                                                                                                      \
    static oly_array name##_self(oly_operand x)                                                                        \
    {                                                                                                                  \
        return oly_##name(x, oly_add(oly_mul(x, x), 1));                                                               \
    }
TWO(atan2)
TWO(hypot)
TWO(logaddexp)
TWO(copysign)
TWO(nextafter)
TWO(truncate_divide)
TWO(floor_divide)
TWO(mod)
TWO(rem)
TWO(fmod)
TWO(fmax)
TWO(fmin)
TWO(logical_and)
TWO(logical_or)
TWO(logical_xor)
TWO(bitwise_and)
TWO(bitwise_or)
TWO(bitwise_xor)
TWO(left_shift)
TWO(right_shift)
TWO(shift_right_logical)
TWO(shift_right_arithmetic)
static oly_array rounded(oly_operand x)
{
    return oly_round_to(oly_div(x, 8), 1);
}
static oly_array whole(oly_operand x)
{
    return oly_round(oly_div(x, 8));
}
static oly_array cube(oly_operand x)
{
    return oly_integer_pow(x, 3);
}
static oly_array bounded(oly_operand x)
{
    return oly_clamp(1, x, 3);
}
static oly_array clipped(oly_operand x)
{
    return oly_clip(x, 1, oly_mul(x, x));
}
static oly_array bits(oly_operand x)
{
    return oly_bitcast_convert_type(x, oly_dtype_of(x.array) == OLY_FLOAT64 ? OLY_INT32 : OLY_UINT8);
}
static oly_array elu(oly_operand x)
{
    return oly_elu(x, 0.5);
}
static oly_array leaky(oly_operand x)
{
    return oly_leaky_relu(x, 0.1);
}
static oly_array gelu(oly_operand x)
{
    return oly_gelu(x, true);
}
static oly_array gelu_exact(oly_operand x)
{
    return oly_gelu(x, false);
}

static oly_array (*const functions[])(oly_operand) = {
    oly_tan,
    oly_asin,
    oly_acos,
    oly_atan,
    oly_sinh,
    oly_cosh,
    oly_asinh,
    oly_acosh,
    oly_atanh,
    oly_exp2,
    oly_expm1,
    oly_log1p,
    oly_log2,
    oly_log10,
    oly_rsqrt,
    oly_cbrt,
    oly_square,
    oly_reciprocal,
    oly_erf,
    oly_erfc,
    oly_erf_inv,
    oly_lgamma,
    oly_digamma,
    oly_sinc,
    oly_angle,
    oly_deg2rad,
    oly_rad2deg,
    oly_floor,
    oly_ceil,
    oly_trunc,
    oly_round_away,
    oly_isfinite,
    oly_isinf,
    oly_isnan,
    oly_isposinf,
    oly_isneginf,
    oly_signbit,
    oly_nan_to_num,
    oly_bitwise_not,
    oly_population_count,
    oly_clz,
    oly_relu6,
    oly_silu,
    oly_softplus,
    oly_log_sigmoid,
    rounded,
    whole,
    cube,
    bounded,
    clipped,
    bits,
    elu,
    leaky,
    gelu,
    gelu_exact,
    atan2_self,
    hypot_self,
    logaddexp_self,
    copysign_self,
    nextafter_self,
    truncate_divide_self,
    floor_divide_self,
    mod_self,
    rem_self,
    fmod_self,
    fmax_self,
    fmin_self,
    logical_and_self,
    logical_or_self,
    logical_xor_self,
    bitwise_and_self,
    bitwise_or_self,
    bitwise_xor_self,
    left_shift_self,
    right_shift_self,
    shift_right_logical_self,
    shift_right_arithmetic_self,
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions, ROWS = 9, COLUMNS = 7, MOST = ROWS * COLUMNS * 16 * 8 };

static oly_array numbers(oly_dtype dtype, int64_t rows)
{
    float value[ROWS * COLUMNS];
    for (int k = 0; k < ROWS * COLUMNS; k++)
        value[k] = (float)(k % 11) * 0.75f - 3.0f;
    return oly_astype(oly_from_host(value, OLY_FLOAT32, 2, (int64_t[]){rows, COLUMNS}), dtype);
}

static void cuts_do_not_show(void **state)
{
    (void)state;
    static unsigned char a[MOST], b[MOST];
    int done = 0;
    for (int dtype = OLY_BOOL; dtype <= OLY_COMPLEX128; dtype++)
        for (int f = 0; f < N_FUNCTIONS; f++)
            OLY_SCOPE
            {
                oly_array x = numbers((oly_dtype)dtype, ROWS), y = functions[f](oly_operand_array(x));
                oly_array cut = oly_device_put(x, oly_named(mesh, f % 2 ? "x, y" : "y, -"));
                oly_array z = functions[f](oly_operand_array(cut));
                assert_true(!y == !z);
                oly_clear_error();
                if (y) {
                    size_t bytes = (size_t)oly_size(y) * oly_dtype_size(oly_dtype_of(y));
                    assert_int_equal(oly_dtype_of(y), oly_dtype_of(z));
                    assert_true(bytes <= sizeof a);
                    assert_int_equal(oly_process_allgather(y, a, bytes), OLY_OK);
                    assert_int_equal(oly_process_allgather(z, b, bytes), OLY_OK);
                    if (memcmp(a, b, bytes) != 0)
                        fail_msg("function %d of %s differs when its operand is cut", f,
                                 oly_dtype_name((oly_dtype)dtype));
                    done++;
                }
            }
    assert_true(done > 700);
}

static void nothing_gives_nothing(void **state)
{
    (void)state;
    for (int f = 0; f < N_FUNCTIONS; f++)
        OLY_SCOPE
        {
            oly_array x = oly_zeros(f % 3 ? OLY_FLOAT32 : OLY_INT32, 0, 5), y = functions[f](oly_operand_array(x));
            if (y)
                assert_int_equal(oly_size(y), 0);
            oly_clear_error();
            assert_null(functions[f](oly_operand_array(NULL)));
        }
}

/* -- values ------------------------------------------------------------------------------------------------------------- */
static double at(oly_array x)
{
    return oly_item(x);
}
#define NUMBER(value) oly_scalar(value, OLY_FLOAT32)
#define WHOLE(value)  oly_scalar(value, OLY_INT32)

static void values(void **state)
{
    (void)state;
    assert_float_equal(at(oly_round(NUMBER(2.5))), 2, 0);
    assert_float_equal(at(oly_round_away(NUMBER(2.5))), 3, 0);
    assert_float_equal(at(oly_round_to(NUMBER(1.2345), 2)), 1.23f, 0);
    assert_float_equal(at(oly_round_to(NUMBER(1234.0), -2)), 1200, 0);
    assert_true(signbit(at(oly_ceil(NUMBER(-0.5)))));
    assert_float_equal(at(oly_floor_divide(WHOLE(-7), 2)), -4, 0);
    assert_float_equal(at(oly_truncate_divide(WHOLE(-7), 2)), -3, 0);
    assert_float_equal(at(oly_mod(WHOLE(-7), 3)), 2, 0);
    assert_float_equal(at(oly_rem(WHOLE(-7), 3)), -1, 0);
    assert_float_equal(at(oly_fmod(WHOLE(-7), 3)), -1, 0);
    assert_float_equal(at(oly_mod(WHOLE(7), WHOLE(0))), 0, 0);
    assert_float_equal(at(oly_rem(WHOLE(7), WHOLE(0))), 7, 0);
    assert_float_equal(at(oly_left_shift(WHOLE(1), 32)), 0, 0);
    assert_float_equal(at(oly_right_shift(WHOLE(-8), 40)), -1, 0);
    assert_float_equal(at(oly_shift_right_logical(WHOLE(-1), 28)), 15, 0);
    assert_float_equal(at(oly_pow(NUMBER(3), -2)), 1.0f / 9, 0);
    assert_float_equal(at(oly_pow(WHOLE(-3), 3)), -27, 0);
    assert_float_equal(at(oly_fmax(NUMBER(NAN), 1)), 1, 0);
    assert_float_equal(at(oly_softplus(NUMBER(200))), 200, 0);
    assert_float_equal(at(oly_relu6(NUMBER(8))), 6, 0);
    assert_float_equal(at(oly_sinc(NUMBER(0))), 1, 0);
    assert_false(signbit(at(oly_max2(NUMBER(0.0), NUMBER(-0.0)))));
    assert_true(signbit(at(oly_min2(NUMBER(0.0), NUMBER(-0.0)))));
    oly_array cases[3] = {NUMBER(10), NUMBER(20), NUMBER(30)};
    assert_float_equal(at(oly_select_n(WHOLE(1), 3, cases)), 20, 0);
    assert_float_equal(at(oly_select_n(WHOLE(9), 3, cases)), 30, 0);
    assert_float_equal(at(oly_select_n(oly_scalar(true, OLY_BOOL), 2, cases)), 20, 0);
}

static void bits_there_and_back(void **state)
{
    (void)state;
    float value[24], back[24];
    for (int k = 0; k < 24; k++)
        value[k] = (float)k - 3.5f;
    oly_array x = oly_device_put(oly_from_host(value, OLY_FLOAT32, 2, (int64_t[]){6, 4}), oly_named(mesh, "x, y"));
    oly_array bytes = oly_bitcast_convert_type(x, OLY_UINT8);
    assert_int_equal(oly_rank(bytes), 3);
    oly_array again = oly_bitcast_convert_type(oly_bitcast_convert_type(bytes, OLY_INT8), OLY_FLOAT32);
    assert_int_equal(oly_process_allgather(again, back, sizeof back), OLY_OK);
    assert_memory_equal(value, back, sizeof back);
}

/* -- errors --------------------------------------------------------------------------------------------------------------- */
static void refused(oly_array result, oly_status status, const char *part)
{
    assert_null(result);
    if (oly_last_status() != status || !strstr(oly_last_error(), part))
        fail_msg("%s, without \"%s\": %s", oly_status_name(oly_last_status()), part, oly_last_error());
    oly_clear_error();
}

static void bad_input(void **state)
{
    (void)state;
    oly_array x = oly_ones(OLY_FLOAT32, 4), y = oly_ones(OLY_FLOAT32, 5), i = oly_ones(OLY_INT32, 4);
    oly_array z = oly_ones(OLY_COMPLEX64, 4), cases[2] = {x, y}, mixed[2] = {x, i};
    refused(oly_erf(z), OLY_DTYPE, "complex64[4]");
    refused(oly_hypot(z, 1), OLY_DTYPE, "complex64[4]");
    refused(oly_bitwise_and(x, i), OLY_DTYPE, "float32[4]");
    refused(oly_left_shift(x, 1), OLY_DTYPE, "float32[4]");
    refused(oly_clz(x), OLY_DTYPE, "float32[4]");
    refused(oly_round_away(i), OLY_DTYPE, "int32[4]");
    refused(oly_round_to(i, -1), OLY_INVALID, "-1");
    refused(oly_integer_pow(i, -2), OLY_DTYPE, "int32[4]");
    refused(oly_pow(i, -2), OLY_DTYPE, "negative");
    refused(oly_atan2(x, y), OLY_SHAPE, "float32[5]");
    refused(oly_clamp(0, x, i), OLY_DTYPE, "int32[4]");
    refused(oly_clamp(0, x, y), OLY_SHAPE, "float32[5]");
    refused(oly_clip(z, 0, 1), OLY_DTYPE, "complex64[4]");
    refused(oly_select_n(i, 2, cases), OLY_SHAPE, "float32[5]");
    refused(oly_select_n(i, 2, mixed), OLY_DTYPE, "int32[4]");
    refused(oly_select_n(x, 2, mixed), OLY_DTYPE, "float32[4]");
    refused(oly_select_n(i, 0, cases), OLY_INVALID, "0");
    refused(oly_bitcast_convert_type(z, OLY_FLOAT32), OLY_DTYPE, "complex64[4]");
    refused(oly_bitcast_convert_type(i, OLY_BOOL), OLY_DTYPE, "bool");
    refused(oly_bitcast_convert_type(i, OLY_INT64), OLY_SHAPE, "2");
    refused(oly_isposinf(z), OLY_DTYPE, "complex64[4]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cuts_do_not_show, start, finish),
        cmocka_unit_test_setup_teardown(nothing_gives_nothing, start, finish),
        cmocka_unit_test_setup_teardown(values, start, finish),
        cmocka_unit_test_setup_teardown(bits_there_and_back, start, finish),
        cmocka_unit_test_setup_teardown(bad_input, start, finish),
    };
    return CHECK_MAIN(tests);
}
