/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Products and einsum: the values of plain loops, for random shapes and parameters, eager and compiled,
 * of operands that are views, and over a mesh x=2, y=4 with any sharding. */
#include "contract_cases.h"

/* -- dot_general ------------------------------------------------------------------------------------------------------- */
static void products(void **state)
{
    (void)state;
    for (int k = 0; k < CONTRACT_CASES; k++) {
        contract_seed = 1000 + (uint64_t)k;
        contract_choose_dtype();
        contract_one_dot();
    }
}

/* -- einsum ---- */
static char equation[80];
static oly_array apply_einsum(const oly_array *in)
{
    return oly_einsum_with(equation, contract_n_operands, in, (oly_product_options){0});
}

static void one_einsum(void)
{
    int n = 1 + contract_below(3), used = 0;
    int64_t size[5];
    char *text = equation;
    for (int k = 0; k < 5; k++)
        size[k] = 1 + contract_below(5);
    for (int o = 0; o < n; o++) {
        int64_t shape[OLY_MAX_RANK];
        int rank = contract_below(4);
        for (int d = 0; d < rank; d++) {
            int letter = contract_below(5);
            used |= 1 << letter;
            shape[d] = size[letter];
            *text++ = (char)('a' + letter);
        }
        contract_fill(&contract_operand[o], rank, shape);
        *text++ = ',';
    }
    text[-1] = '-';
    *text++ = '>';
    char *result = text;
    int order[5];
    contract_shuffle(5, order);
    contract_expected.rank = 0;
    contract_expected.size = 1;
    for (int k = 0; k < 5; k++)
        if ((used >> order[k] & 1) && contract_below(2)) {
            *text++ = (char)('a' + order[k]);
            contract_expected.size *= contract_expected.shape[contract_expected.rank++] = size[order[k]];
        }
    *text = 0;
    int64_t index[5] = {0}, all[5];
    memset(contract_expected.element, 0, sizeof contract_expected.element);
    for (int k = 0; k < 5; k++)
        all[k] = used >> k & 1 ? size[k] : 1;
    do {
        double product = 1;
        const char *letter = equation;
        int64_t where[OLY_MAX_RANK], to = 0;
        for (int o = 0; o < n; o++, letter++) {
            for (int d = 0; d < contract_operand[o].rank; d++)
                where[d] = index[*letter++ - 'a'];
            product *= contract_get(&contract_operand[o], where);
        }
        for (int d = 0; result[d]; d++)
            to = to * size[result[d] - 'a'] + index[result[d] - 'a'];
        contract_expected.element[to] += product;
    } while (contract_next(5, all, index));
    snprintf(contract_what, sizeof contract_what, "einsum %s", equation);
    contract_run(n, apply_einsum);
}

static void einsums(void **state)
{
    (void)state;
    for (int k = 0; k < CONTRACT_CASES; k++) {
        contract_seed = 2000 + (uint64_t)k;
        contract_choose_dtype();
        one_einsum();
    }
}

/* Operands reversed along a dimension, compiled, so that the product sees the view: too large for the small kernels. */
static void reversed_rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_matmul(oly_slice(in[0], "::-1"), in[1]);
    out[1] = oly_matmul(oly_slice(in[0], ":, ::-1"), oly_slice(in[1], "::-1"));
    out[2] = oly_matmul(in[0], oly_slice(in[1], ":, ::-1"));
}
static void reversed_operands(void **state)
{
    (void)state;
    oly_array x = oly_iota_shape(OLY_FLOAT32, 0, 2, (int64_t[]){128, 96}), out[3] = {NULL};
    oly_array y = oly_iota_shape(OLY_FLOAT32, 1, 2, (int64_t[]){96, 64});
    oly_call(oly_jit(reversed_rows, 2, 3), OLY_IN(x, y), OLY_OUT(out[0], out[1], out[2]));
    assert_true(oly_item(oly_slice(out[0], "3, 5")) == 96.0 * 124 * 5);
    assert_true(oly_item(oly_slice(out[1], "3, 5")) == 96.0 * 3 * 5);
    assert_true(oly_item(oly_slice(out[2], "3, 5")) == 96.0 * 3 * 58);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, contract_start, check_finish)
static const struct CMUnitTest tests[] = {TEST(products), TEST(reversed_operands), TEST(einsums)};

int main(void)
{
    return CHECK_MAIN(tests);
}
