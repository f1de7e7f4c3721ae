/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 devices=8  Element types of public functions: every type into arrays and back, complex numbers and their
 * parts, and 64-bit types enabled after calls were planned. */
#include "check.h"
#include "check_element.h"
#include <olympus.h>
#include <string.h>

static void start(void)
{
    static bool started;
    if (!started)
        oly_init(NULL, NULL);
    started = true;
    oly_set_error_mode(OLY_ERRORS_RETURN);
}

/* Seven numbers of a type, split over eight devices. */
static oly_array seven(oly_dtype dtype)
{
    double _Complex data[7];
    for (int i = 0; i < 7; i++)
        set_element(dtype, data, i, __builtin_complex(i % 2 ? 1.0 : 0.0, i > 3 ? 1.0 : 0.0));
    return oly_device_put(oly_from_host(data, dtype, 1, (int64_t[]){7}), oly_named(oly_make_mesh("x=8"), "x"));
}

static void every_type_goes_in_and_out(void **state)
{
    (void)state;
    start();
    for (int dtype = 0; dtype < OLY_N_DTYPES; dtype++)
        OLY_SCOPE
        {
            oly_array x = seven((oly_dtype)dtype), one = oly_ones((oly_dtype)dtype, 1);
            double _Complex back[7];
            assert_int_equal(oly_dtype_of(x), dtype);
            assert_int_equal(oly_process_allgather(x, back, sizeof back), OLY_OK);
            for (int i = 0; i < 7; i++)
                assert_true(element_part((oly_dtype)dtype, back, i, 0) == i % 2);
            if (element_parts((oly_dtype)dtype) == 1)
                assert_true(oly_item(one) == 1);
            assert_true(oly_item(oly_sum(oly_real(x))) == 3);
            assert_true(oly_item(oly_sum(oly_imag(x))) == (element_parts((oly_dtype)dtype) == 2 ? 3 : 0));
        }
}

static void complex_numbers_and_parts(void **state)
{
    (void)state;
    start();
    OLY_SCOPE
    {
        oly_array parts = oly_arange(4, OLY_FLOAT32), z = oly_complex(parts, oly_neg(parts));
        float _Complex back[4];
        assert_int_equal(oly_dtype_of(z), OLY_COMPLEX64);
        assert_int_equal(oly_get(oly_conj(z), back, sizeof back), OLY_OK);
        assert_true(__real__ back[3] == 3 && __imag__ back[3] == 3);
        assert_true(oly_item(oly_sum(oly_abs(oly_mul(z, __builtin_complex(0.0f, 1.0f))))) > 8.48);
        assert_int_equal(oly_dtype_of(oly_add(oly_ones(OLY_INT32, 2), __builtin_complex(1.0, 2.0))), OLY_COMPLEX64);
        assert_int_equal(oly_dtype_of(oly_complex(oly_ones(OLY_FLOAT64, 2), 1)), OLY_COMPLEX128);
        /* only the imaginary part is not zero: true for jnp.astype, false for lax.convert_element_type */
        oly_array i = oly_full(__builtin_complex(0.0, 1.0), OLY_COMPLEX64, 1);
        assert_true(oly_item(oly_astype(i, OLY_BOOL)) == 1);
        assert_true(oly_item(oly_convert_element_type(i, OLY_BOOL)) == 0);
        assert_true(oly_item(oly_where(i, 5, 6)) == 5);
        assert_true(oly_item(oly_logical_not(i)) == 0);
        /* what JAX 0.10.2 returns for arrays and for numbers */
        oly_array no = oly_zeros(OLY_BOOL, 1), first = oly_zeros(OLY_INT32, 1);
        double _Complex number = __builtin_complex(0.0, 1.0);
        assert_true(oly_item(oly_update(no, ":", i)) == 0 && oly_item(oly_update(no, "0", number)) == 0);
        assert_true(oly_item(oly_update(no, ":", oly_add(i, 2))) == 1 && oly_item(oly_update(no, "0", 0.5)) == 1);
        assert_true(oly_item(oly_at_set(no, 1, (oly_operand[]){oly_operand_array(first)}, i)) == 0);
        assert_true(oly_item(oly_any(i)) == 0 && oly_item(oly_all(i)) == 0);
        assert_true(oly_item(oly_full(i, OLY_BOOL, 1)) == 0 && oly_item(oly_full(number, OLY_BOOL, 1)) == 1);
        assert_true(oly_item(oly_convert_element_type(number, OLY_BOOL)) == 1);
        assert_true(oly_item(oly_convert_element_type(2.9, OLY_UINT8)) == 2);
    }
    assert_int_equal(oly_last_status(), OLY_OK);
}

static void check_refused(oly_status wanted, const char *part)
{
    assert_int_equal(oly_last_status(), wanted);
    if (!strstr(oly_last_error(), part))
        fail_msg("\"%s\" is not in \"%s\"", part, oly_last_error());
    oly_clear_error();
}

static void what_has_no_meaning_is_refused(void **state)
{
    (void)state;
    start();
    OLY_SCOPE
    {
        oly_array z = oly_ones(OLY_COMPLEX64, 2, 2);
        assert_true(oly_item(oly_sum(z)) == 0);
        check_refused(OLY_DTYPE, "oly_real");
        assert_null(oly_complex(z, z));
        check_refused(OLY_DTYPE, "complex64[2,2]");
        assert_int_equal(oly_write_png("/dev/null", z, 0, 1), OLY_DTYPE);
        check_refused(OLY_DTYPE, "oly_abs");
    }
}

static void double_it(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_add(in[0], in[0]));
}

static void results_follow_the_mode_of_the_call(void **state)
{
    (void)state;
    start();
    OLY_SCOPE
    {
        oly_array x = oly_ones(OLY_INT8, 100), y = NULL;
        oly_fn f = oly_jit(double_it, 1, 1);
        for (int k = 0; k < 4; k++) {
            oly_enable_x64(k % 2);
            oly_dtype wanted = k % 2 ? OLY_INT64 : OLY_INT32;
            assert_int_equal(oly_dtype_of(oly_sum(x)), wanted);
            assert_int_equal(oly_call(f, OLY_IN(x), OLY_OUT(y)), OLY_OK);
            assert_int_equal(oly_dtype_of(y), wanted);
            assert_true(oly_item(y) == 200);
        }
        oly_enable_x64(false);
    }
    assert_int_equal(oly_finalize(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_goes_in_and_out),
        cmocka_unit_test(complex_numbers_and_parts),
        cmocka_unit_test(what_has_no_meaning_is_refused),
        cmocka_unit_test(results_follow_the_mode_of_the_call),
    };
    return CHECK_MAIN(tests);
}
