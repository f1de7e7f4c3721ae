/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Derivatives of products and convolutions, which are linear in each operand; and both over a batch. */
#include "contract_cases.h"
#include <inttypes.h>

/* -- derivatives: of functions that are linear in each operand ---- */
static apply *applied;

static void weighted(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_mul(applied(in), in[2]));
}

static double loss(const tensor *a, const tensor *b, const tensor *c)
{
    double sum = 0;
    oly_array in[3] = {contract_upload(a), contract_upload(b), contract_upload(c)}, y;
    weighted(in, &y, NULL);
    assert_int_equal(oly_process_allgather(y, &sum, sizeof sum), OLY_OK);
    return sum;
}

static void check_gradients(apply *f)
{
    static tensor weight, other[2];
    contract_fill(&weight, contract_expected.rank, contract_expected.shape);
    for (int o = 0; o < 2; o++)
        contract_fill(&other[o], contract_operand[o].rank, contract_operand[o].shape);
    applied = f;
    OLY_SCOPE
    {
        oly_array in[3] = {contract_upload(&contract_operand[0]), contract_upload(&contract_operand[1]),
                           contract_upload(&weight)},
                  gradient[2], *wanted[2] = {&gradient[0], &gradient[1]};
        for (int round = 0; round < 2; round++) {
            for (int k = 0; k < 3 && round; k++)
                in[k] = oly_device_put(in[k], contract_some_sharding(oly_rank(in[k])));
            oly_fn fn = oly_grad(oly_jit(weighted, 3, 1), .argnums = "0, 1");
            oly_call(fn, 3, in, 2, wanted);
            if (!gradient[0] || !gradient[1])
                fail_msg("%s: %s", contract_what, oly_last_error());
            double a = contract_inner(&other[0], gradient[0]), want_a = loss(&other[0], &contract_operand[1], &weight);
            double b = contract_inner(&other[1], gradient[1]), want_b = loss(&contract_operand[0], &other[1], &weight);
            if (a != want_a || b != want_b)
                fail_msg("%s: gradients give %g and %g, must be %g and %g", contract_what, a, b, want_a, want_b);
        }
    }
}

static void gradients(void **state)
{
    (void)state;
    contract_only_shapes = true;
    for (int k = 0; k < CONTRACT_CASES; k++) {
        contract_seed = 5000 + (uint64_t)k;
        contract_dtype = OLY_FLOAT64;
        if (contract_one_conv())
            check_gradients(contract_apply_conv);
        contract_one_dot();
        check_gradients(contract_apply_dot);
    }
    contract_only_shapes = false;
}

/* -- over a batch ---- */
static void mapped(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = applied(in);
}

static void check_batches(apply *f)
{
    enum { BATCH = 3 };
    static tensor part[2][BATCH], many;
    applied = f;
    for (int which = 1; which <= 3; which++)
        OLY_SCOPE
        {
            oly_array in[2], one[2][BATCH], y;
            int axes[2], back[1] = {0};
            oly_array *wanted[1] = {&y};
            for (int o = 0; o < 2; o++) {
                for (int j = 0; j < BATCH; j++) {
                    contract_fill(&part[o][j], contract_operand[o].rank, contract_operand[o].shape);
                    one[o][j] = contract_upload(&part[o][j]);
                }
                axes[o] = which >> o & 1 ? 0 : OLY_UNMAPPED;
                in[o] = which >> o & 1 ? oly_stack_n(BATCH, one[o], 0) : one[o][0];
            }
            oly_vmap(mapped, NULL, 2, in, axes, 1, wanted, back);
            if (!y)
                fail_msg("%s, mapped over %d: %s", contract_what, which, oly_last_error());
            memcpy(many.shape + 1, contract_expected.shape, sizeof *many.shape * (OLY_MAX_RANK - 1));
            many.shape[0] = BATCH;
            many.rank = contract_expected.rank + 1;
            int64_t shape[OLY_MAX_RANK];
            memcpy(shape, many.shape, sizeof shape);
            contract_fill(&many, many.rank, shape);
            static double bytes[BATCH * CONTRACT_MOST_ELEMENTS];
            static tensor keep;
            for (int j = 0; j < BATCH; j++) {
                oly_array x[2] = {one[0][which & 1 ? j : 0], one[1][which & 2 ? j : 0]};
                assert_int_equal(
                    oly_process_allgather(f(x), keep.element, (size_t)contract_expected.size * sizeof(double)), OLY_OK);
                memcpy(many.element + j * contract_expected.size, keep.element,
                       (size_t)contract_expected.size * sizeof(double));
            }
            assert_int_equal(oly_process_allgather(y, bytes, (size_t)many.size * sizeof(double)), OLY_OK);
            for (int64_t i = 0; i < many.size; i++)
                if (bytes[i] != many.element[i])
                    fail_msg("%s, mapped over %d: element %" PRId64 " is %g, must be %g", contract_what, which, i,
                             bytes[i], many.element[i]);
        }
}

static void batches(void **state)
{
    (void)state;
    contract_only_shapes = true;
    for (int k = 0; k < CONTRACT_CASES / 4; k++) {
        contract_seed = 6000 + (uint64_t)k;
        contract_dtype = OLY_FLOAT64;
        if (contract_one_conv())
            check_batches(contract_apply_conv);
        contract_one_dot();
        check_batches(contract_apply_dot);
    }
    contract_only_shapes = false;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, contract_start, check_finish)
static const struct CMUnitTest tests[] = {TEST(gradients), TEST(batches)};

int main(void)
{
    return CHECK_MAIN(tests);
}
