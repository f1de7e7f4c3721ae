/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8.  The explanation of a plan names what moves and nothing else: the heat equation written as
 * three slices costs one halo exchange. */
#include "check.h"
#include "check_session.h"
#include <olympus.h>
#include <stdlib.h>
#include <string.h>
#include "core/option.h"

static oly_array heat_step(oly_array u)
{
    oly_array mid = oly_slice(u, "1:-1"), left = oly_slice(u, ":-2"), right = oly_slice(u, "2:");
    oly_array next = oly_add(oly_mul(0.5, mid), oly_add(oly_mul(0.25, left), oly_mul(0.25, right)));
    return oly_update(u, "1:-1", next);
}

static void linear_body(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    (void)user;
    carry[0] = heat_step(carry[0]);
}

/* Carries of two shapes: not a stencil. */
static void other_body(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    (void)user;
    carry[0] = oly_sin(heat_step(carry[0]));
    carry[1] = oly_mul(2, carry[1]);
}

static void linear(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, 100, linear_body, 1, out, user);
}

static void other(const oly_array *in, oly_array *out, void *user)
{
    oly_array carry[] = {in[0], oly_ones(OLY_FLOAT32, 3)};
    oly_fori(0, 100, other_body, 2, carry, user);
    out[0] = carry[0];
}

static void product(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_relu(oly_matmul(in[0], in[1]));
}

static char *explained(oly_function function, int n, const oly_array *in)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    oly_fn f = oly_jit_with(function, "f", n, 1, (oly_jit_options){.user = NULL});
    assert_int_equal(oly_explain_n(file, f, n, in), OLY_OK);
    fclose(file);
    return text;
}

static int count(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

static oly_array field(int64_t n)
{
    return oly_device_put(oly_zeros(OLY_FLOAT32, n), oly_named(oly_make_mesh("x=8"), "x"));
}

static void heat_costs_one_exchange_of_one_element_a_step(void **state)
{
    (void)state;
    oly_option.halo_steps = 1;
    oly_array u = field(104);
    char *text = explained(linear, 1, &u);
    oly_option.halo_steps = 0;
    assert_non_null(strstr(text, "100 steps in 100 passes of up to 1"));
    assert_non_null(strstr(text, "1 element each way along dimension 0"));
    assert_non_null(strstr(text, "[8 bytes per device in 2 messages, 8 members]"));
    assert_int_equal(count(text, "all-"), 0);
    assert_null(strstr(text, "times:\n"));
    free(text);
}

static void deep_halos_take_fewer_exchanges(void **state)
{
    (void)state;
    oly_array u = field(102);
    char *text = explained(linear, 1, &u);
    assert_non_null(strstr(text, "in 8 passes of up to 13"));
    assert_int_equal(count(text, "all-"), 0);
    free(text);
}

static void a_general_body_has_one_exchange_in_its_loop(void **state)
{
    (void)state;
    oly_array u = field(102);
    char *text = explained(other, 1, &u);
    assert_int_equal(count(text, "halo exchange: "), 1);
    assert_non_null(strstr(text, "halo exchange: 1 element from the left, 1 from the right"));
    assert_non_null(strstr(text, "times:\n"));
    assert_int_equal(count(text, "all-"), 0);
    assert_int_equal(count(text, " members]"), 1);
    free(text);
}

static void a_product_over_a_split_dimension_is_one_reduction(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("a=4, b=2");
    oly_array in[] = {oly_device_put(oly_ones(OLY_FLOAT32, 64, 32), oly_named(mesh, "a, b")),
                      oly_device_put(oly_ones(OLY_FLOAT32, 32, 64), oly_named(mesh, "b, None"))};
    char *text = explained(product, 2, in);
    assert_int_equal(count(text, " members]"), 1);
    assert_non_null(strstr(text, "all-reduce: sum over 2 devices"));
    assert_non_null(strstr(text, "4.0 KiB per device"));
    assert_non_null(strstr(text, "output 0  float32[64,64]  P('a',)"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(heat_costs_one_exchange_of_one_element_a_step, check_open, check_close),
        cmocka_unit_test_setup_teardown(deep_halos_take_fewer_exchanges, check_open, check_close),
        cmocka_unit_test_setup_teardown(a_general_body_has_one_exchange_in_its_loop, check_open, check_close),
        cmocka_unit_test_setup_teardown(a_product_over_a_split_dimension_is_one_reduction, check_open, check_close),
    };
    return CHECK_MAIN(tests);
}
