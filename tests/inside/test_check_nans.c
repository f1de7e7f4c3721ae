/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8.  OLYMPUS_CHECK_NANS: the operation that makes the first NaN, wherever it is, and not those that only pass one on. */
#include "check_session.h"

static oly_mesh mesh;
static oly_array x; /* 3..18 */

static void begin(const char *option)
{
    setenv("OLYMPUS_CHECK_NANS", option, 1);
    check_begin();
    mesh = oly_make_mesh("i=4, j=2");
    x = oly_device_put(oly_add(oly_astype(oly_arange(16, OLY_INT32), OLY_FLOAT32), 3), oly_named(mesh, "i"));
}

static void end(void)
{
    check_end();
    unsetenv("OLYMPUS_CHECK_NANS");
}

static void fails(oly_status st, const char *text)
{
    if (st != OLY_CHECK || !strstr(oly_last_error(), text))
        fail_msg("%s; wanted \"%s\"", oly_last_error(), text);
    oly_clear_error();
}

static void step(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    carry[0] = oly_sub(carry[0], 1);
    carry[1] = oly_log(carry[0]);
}

static void logarithms(const oly_array *in, oly_array *out, void *user)
{
    oly_array c[2] = {in[0], in[0]};
    oly_fori(0, 10, step, 2, c, user);
    out[0] = oly_sqrt(c[1]);
}

static void quotient(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_mul(2, oly_div(oly_sub(in[0], 4), oly_sub(in[0], 4))));
}

static void names_the_operation(void **state)
{
    (void)state;
    oly_array y = NULL;
    begin("1");
    fails(oly_call(oly_jit(logarithms, 1, 1), OLY_IN(x), OLY_OUT(y)),
          "(log) makes the first NaN at index (0,), of -1.0");
    fails(oly_call(oly_jit(quotient, 1, 1), OLY_IN(x), OLY_OUT(y)),
          "(div) makes the first NaN at index (1,), of 0.0 and 0.0");
    assert_null(oly_div(oly_sub(x, 5), 0));
    fails(oly_last_status(), "index (2,)");
    assert_non_null(oly_div(x, 0)); /* infinities */
    assert_int_equal(oly_call(oly_jit(quotient, 1, 1), OLY_IN(oly_mul(x, 1.5)), OLY_OUT(y)), OLY_OK);
    assert_true(oly_item(y) == 32);
    end();
}

static void infinities_too(void **state)
{
    (void)state;
    oly_array y = NULL;
    begin("2");
    fails(oly_call(oly_jit(logarithms, 1, 1), OLY_IN(x), OLY_OUT(y)),
          "(log) makes the first NaN or infinity at index (0,), of 0.0");
    assert_non_null(oly_max(x));
    end();
}

static int count(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    (void)called, (void)in, (void)out;
    ++*(int *)user;
    return 0;
}

/* One effect before the NaN, two behind it. */
static void effects(const oly_array *in, oly_array *out, void *user)
{
    int *counts = user;
    oly_callback(count, &counts[0], OLY_IN(in[0]), NULL, OLY_NOTHING);
    oly_array y = oly_log(oly_sub(in[0], 10));
    oly_callback(count, &counts[1], OLY_IN(y), NULL, OLY_NOTHING);
    oly_check(oly_all(oly_eq(y, y)), "the check of the program");
    out[0] = oly_mul(y, 2);
}

static void no_effect_comes_after_a_nan(void **state)
{
    (void)state;
    int counts[2] = {0, 0};
    oly_array y = NULL;
    begin("1");
    fails(oly_call(oly_jit(effects, 1, 1, .user = counts), OLY_IN(x), OLY_OUT(y)), "(log) makes the first NaN");
    assert_int_equal(counts[0], oly_process_index() == 0);
    assert_int_equal(counts[1], 0);
    assert_int_equal(oly_call(oly_jit(effects, 1, 1, .user = counts), OLY_IN(oly_add(x, 10)), OLY_OUT(y)), OLY_OK);
    assert_int_equal(counts[1], oly_process_index() == 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_the_operation), cmocka_unit_test(infinities_too),
                                       cmocka_unit_test(no_effect_comes_after_a_nan)};
    return CHECK_MAIN(tests);
}
