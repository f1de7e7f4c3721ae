/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 devices=8  Programs with another rounding mode, or with floating-point exceptions that trap: Olympus
 * computes the same bits on all its threads, does not trap, and does not change the program's mode. */
#define _GNU_SOURCE
#include "check_session.h"
#include <fenv.h>

enum { SIZE = 300000 };

static void sines(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_div(oly_sin(oly_mul(in[0], 0.1)), 3.0);
    out[1] = oly_sum(out[0]);
}

/* Large enough to be shared by threads, and small enough to be computed at once. */
static void compute(float *numbers, float *sum, float *small)
{
    OLY_SCOPE
    {
        oly_array y = NULL, s = NULL;
        oly_call(oly_jit(sines, 1, 2), OLY_IN(oly_arange(SIZE, OLY_FLOAT32)), OLY_OUT(y, s));
        oly_get(y, numbers, SIZE * sizeof *numbers);
        oly_get(s, sum, sizeof *sum);
        oly_get(oly_div(oly_arange(4, OLY_FLOAT32), 3.0), small, 4 * sizeof *small);
    }
}

static void results_do_not_depend_on_the_mode(void **state)
{
    (void)state;
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    static float expected[SIZE], numbers[SIZE];
    float sum, small[4], got, few[4];
    compute(expected, &sum, small);
    for (int k = 0; k < 6; k++) {
        fesetround(modes[k % 3]);
        compute(numbers, &got, few);
        assert_int_equal(fegetround(), modes[k % 3]);
        fesetround(FE_TONEAREST);
        assert_memory_equal(numbers, expected, sizeof expected);
        assert_memory_equal(few, small, sizeof few);
        assert_true(got == sum);
    }
}

static void nothing_traps(void **state)
{
    (void)state;
#ifdef __x86_64__
    float host[3];
    feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
    oly_array x = oly_div(oly_arange(3, OLY_FLOAT32), 0.0);
    oly_get(oly_sub(x, x), host, sizeof host);
    assert_true(fegetexcept() == (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW));
    fedisableexcept(FE_ALL_EXCEPT);
    for (int k = 0; k < 3; k++)
        assert_true(host[k] != host[k]);
#else
    skip();
#endif
}

#define STARTED(test) cmocka_unit_test_setup_teardown(test, check_start, check_finish)
static const struct CMUnitTest tests[] = {
    STARTED(results_do_not_depend_on_the_mode),
    STARTED(nothing_traps),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
