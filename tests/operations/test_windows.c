/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Convolutions and windows: the values of plain loops, for random shapes and parameters, eager and
 * compiled, of operands that are views, and over a mesh x=2, y=4 with any sharding; and gradients of windows. */
#include "contract_cases.h"

static void convolutions(void **state)
{
    (void)state;
    for (int k = 0; k < CONTRACT_CASES; k++) {
        contract_seed = 3000 + (uint64_t)k;
        do
            contract_choose_dtype();
        while (contract_dtype == OLY_BOOL);
        contract_one_conv();
    }
}

static void windows(void **state)
{
    (void)state;
    for (int k = 0; k < CONTRACT_CASES; k++) {
        contract_seed = 4000 + (uint64_t)k;
        contract_dtype = contract_below(2) ? OLY_FLOAT32 : OLY_INT32;
        contract_one_window();
    }
}

/* -- derivatives ------------------------------------------------------------------------------------------------------- */
static void pooled(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_mul(contract_apply_window(in), in[1]));
}

/* Sums and maxima of windows inside x: the derivative by x, times x, is the value. */
static void gradients_of_windows(void **state)
{
    (void)state;
    contract_only_shapes = true;
    for (int k = 0; k < CONTRACT_CASES; k++) {
        contract_seed = 7000 + (uint64_t)k;
        contract_dtype = OLY_FLOAT64;
        if (!contract_one_window() || *contract_window_reduction() == 'p' || contract_expected.size == 0)
            continue;
        if (!contract_window_is_inside() && *contract_window_reduction() == 'm')
            continue;
        static tensor weight;
        contract_fill(&weight, contract_expected.rank, contract_expected.shape);
        OLY_SCOPE
        {
            oly_array in[2] = {contract_upload(&contract_operand[0]), contract_upload(&weight)}, gradient, value;
            in[0] = oly_device_put(in[0], contract_some_sharding(contract_operand[0].rank));
            oly_call(oly_value_and_grad(oly_jit(pooled, 2, 1)), OLY_IN(in[0], in[1]), OLY_OUT(value, gradient));
            if (!gradient)
                fail_msg("%s: %s", contract_what, oly_last_error());
            double sum = contract_inner(&contract_operand[0], gradient), want;
            assert_int_equal(oly_process_allgather(value, &want, sizeof want), OLY_OK);
            if (sum != want)
                fail_msg("%s: the gradient gives %g, must be %g", contract_what, sum, want);
        }
    }
    contract_only_shapes = false;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, contract_start, check_finish)
static const struct CMUnitTest tests[] = {TEST(convolutions), TEST(windows), TEST(gradients_of_windows)};

int main(void)
{
    return CHECK_MAIN(tests);
}
