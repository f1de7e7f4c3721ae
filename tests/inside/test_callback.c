/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts.  Host functions in the middle of plans: called once, in order, with whole arrays or for every shard; errors on all ranks.
 * Functions with derivatives of their own. */
#include "check_session.h"

static oly_mesh mesh;
static oly_array x; /* 0..15, 4 x 4 over both axes */
static int n_called, order[64];

static void begins(void **state)
{
    check_start(state);
    mesh = oly_make_mesh("i=4, j=2");
    x = oly_device_put(oly_reshape(oly_astype(oly_arange(16, OLY_INT32), OLY_FLOAT32), 4, 4), oly_named(mesh, "i, j"));
}

static void ends(void **state)
{
    check_finish(state);
}

static int64_t size_of(const oly_shard_part *part)
{
    int64_t n = 1;
    for (int d = 0; d < part->rank; d++)
        n *= part->shape[d];
    return n;
}

/* Twice the values, and their sum; fails where that exceeds 1000. */
static int twice(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    const float *from = in[0].data;
    float *to = out[0].data, sum = 0;
    (void)user;
    n_called++;
    for (int64_t k = 0; k < size_of(in); k++) {
        to[k] = 2 * from[k];
        sum += from[k];
    }
    if (sum > 1000)
        snprintf(called->message, called->message_size, "the sum %g is too large", sum);
    return sum > 1000;
}

static int note(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    (void)called, (void)in, (void)out;
    order[n_called++] = *(int *)user;
    return 0;
}

static const double doubled[] = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
#define SAME OLY_TYPES(OLY_TYPE(OLY_FLOAT32, 4, 4))

static void whole_arrays_once(void **state)
{
    (void)state;
    oly_array y = NULL;
    n_called = 0;
    assert_int_equal(oly_callback(twice, NULL, OLY_IN(x), SAME, OLY_OUT(y)), OLY_OK);
    check_near(y, 16, doubled);
    assert_int_equal(n_called, oly_process_index() == 0);
}

/* Outside of functions: the second call on a line has the plan of the first, but its own numbers and message. */
static void calls_at_once_keep_their_plans(void **state)
{
    (void)state;
    oly_plan_cache before, after;
    oly_array z = NULL;
    int64_t made[3];
    oly_clear_error();
    for (int k = 0; k < 6; k++) {
        assert_int_equal(oly_plan_cache_state(&before), OLY_OK);
        assert_int_equal(oly_callback(twice, NULL, OLY_IN(x), SAME, OLY_OUT(z)), OLY_OK);
        assert_int_equal(oly_check(x, "not {}", k % 2), OLY_CHECK);
        assert_non_null(strstr(oly_last_error(), k % 2 ? "not 1" : "not 0"));
        oly_clear_error();
        assert_int_equal(oly_plan_cache_state(&after), OLY_OK);
        made[k % 3] = after.made - before.made;
    }
    assert_int_equal(made[0] + made[1] + made[2], 0);
}

static int numbers[] = {0, 1, 2};

static void step(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    oly_callback(note, &numbers[1], OLY_IN(), NULL, OLY_NOTHING);
    oly_callback(twice, NULL, OLY_IN(carry[0]), SAME, OLY_OUT(carry[0]));
}

static void several(const oly_array *in, oly_array *out, void *user)
{
    oly_callback(note, &numbers[0], OLY_IN(), NULL, OLY_NOTHING);
    out[0] = in[0];
    oly_fori(0, 2, step, 1, out, user);
    oly_callback(note, &numbers[2], OLY_IN(in[0]), NULL, OLY_NOTHING);
}

static void in_the_order_of_the_program(void **state)
{
    (void)state;
    oly_array y = NULL, four = oly_mul(x, 4);
    oly_fn f = oly_jit(several, 1, 1);
    for (int k = 0; k < 2; k++) {
        n_called = 0;
        memset(order, -1, sizeof order);
        assert_int_equal(oly_call(f, OLY_IN(x), OLY_OUT(y)), OLY_OK);
        CHECK_NEAR(oly_sub(y, four), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        if (oly_process_index() == 0) {
            static const int wanted[] = {0, 1, -1, 1, -1, 2}; /* -1: twice */
            assert_int_equal(n_called, 6);
            assert_memory_equal(order, wanted, sizeof wanted);
        }
    }
}

static void unused(const oly_array *in, oly_array *out, void *user)
{
    oly_array y = NULL;
    oly_callback_with(twice, NULL, OLY_CALLBACK_OF(.pure = *(bool *)user), OLY_IN(in[0]), SAME, OLY_OUT(y));
    out[0] = oly_mul(in[0], 2);
}

static void only_pure_ones_are_dropped(void **state)
{
    (void)state;
    oly_array y = NULL;
    for (int pure = 0; pure < 2; pure++) {
        bool is_pure = pure;
        n_called = 0;
        assert_int_equal(oly_call(oly_jit(unused, 1, 1, .user = &is_pure), OLY_IN(x), OLY_OUT(y)), OLY_OK);
        assert_int_equal(n_called, oly_process_index() == 0 && !pure);
    }
}

static void mapped(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_callback(twice, NULL, OLY_IN(in[0]), OLY_TYPES(OLY_TYPE_LIKE(in[0])), OLY_OUT(out[0]));
}

/* The index differs between elements, but there is only one branch, which all take. */
static void one_way(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array way = oly_astype(oly_sum(in[0]), OLY_INT32);
    oly_switch(way, 1, (oly_function[]){mapped}, 1, in, 1, out, NULL);
}

static void the_only_branch_for_every_element(void **state)
{
    (void)state;
    oly_array y = NULL;
    n_called = 0;
    assert_int_equal(oly_vmap(one_way, NULL, OLY_IN(x), OLY_AXES_OF(0), OLY_OUT(y), OLY_AXES_OF(0)), OLY_OK);
    check_near(y, 16, doubled);
    assert_int_equal(n_called, oly_process_index() == 0 ? 4 : 0);
}

static void for_every_device_and_element(void **state)
{
    (void)state;
    oly_array y = NULL;
    n_called = 0;
    assert_int_equal(oly_shard_map(mapped, NULL, mesh, OLY_IN(x), OLY_SPECS("i, j"), OLY_OUT(y), OLY_SPECS("i, j")),
                     OLY_OK);
    check_near(y, 16, doubled);
    assert_int_equal(n_called, 8 / oly_process_count());
    n_called = 0;
    assert_int_equal(oly_vmap(mapped, NULL, OLY_IN(x), OLY_AXES_OF(0), OLY_OUT(y), OLY_AXES_OF(0)), OLY_OK);
    check_near(y, 16, doubled);
    assert_int_equal(n_called, oly_process_index() == 0 ? 4 : 0);
    n_called = 0;
    assert_int_equal(oly_callback_with(twice, NULL, OLY_CALLBACK_OF(.factors = "ij->ij"), OLY_IN(x), SAME, OLY_OUT(y)),
                     OLY_OK);
    check_near(y, 16, doubled);
    assert_int_equal(n_called, 8 / oly_process_count());
}

static void fails_with(oly_status st, oly_status wanted, const char *text)
{
    if (st != wanted || !strstr(oly_last_error(), text))
        fail_msg("%s; wanted %s: \"%s\"", oly_last_error(), oly_status_name(wanted), text);
    oly_clear_error();
}

static int calls_olympus(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    (void)called, (void)in, (void)out, (void)user;
    assert_true(oly_process_index() >= 0); /* allowed */
    return oly_arange(3, OLY_INT32) ? 0 : 0;
}

static int returns_7(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    (void)called, (void)in, (void)out, (void)user;
    return 7;
}

static void errors_reach_all_ranks(void **state)
{
    (void)state;
    oly_array y = x, large = oly_mul(x, 100);
    fails_with(oly_callback(twice, NULL, OLY_IN(large), SAME, OLY_OUT(y)), OLY_CALLBACK,
               "twice failed: the sum 12000 is too large");
    assert_null(y);
    fails_with(oly_callback(returns_7, NULL, OLY_IN(x), SAME, OLY_OUT(y)), OLY_CALLBACK,
               "returns_7 failed: it returned 7");
    fails_with(oly_callback_with(twice, NULL, OLY_CALLBACK_OF(.factors = "ij->ij"), OLY_IN(large), SAME, OLY_OUT(y)),
               OLY_CALLBACK, "the sum 1300 is too large"); /* the first device whose shard fails */
    fails_with(oly_shard_map(mapped, NULL, mesh, OLY_IN(large), OLY_SPECS("i, j"), OLY_OUT(y), OLY_SPECS("i, j")),
               OLY_CALLBACK, "the sum 1300 is too large");
    assert_true(oly_callback(calls_olympus, NULL, OLY_IN(x), NULL, OLY_NOTHING) != OLY_OK);
    assert_non_null(strstr(oly_last_error(), "which a running plan calls"));
    oly_clear_error();
    assert_int_equal(oly_callback(twice, NULL, OLY_IN(x), SAME, OLY_OUT(y)), OLY_OK); /* the session goes on */
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    oly_array y = NULL;
    fails_with(oly_callback(NULL, NULL, OLY_IN(x), SAME, OLY_OUT(y)), OLY_INVALID, "NULL");
    fails_with(oly_callback(twice, NULL, OLY_IN(x), NULL, OLY_OUT(y)), OLY_INVALID, "types");
    static const struct {
        const char *factors, *whole, *text;
        oly_status status;
    } wrong[] = {{"ij", NULL, "expected", OLY_PARSE},          {"ij->i?", NULL, "expected", OLY_PARSE},
                 {"ij,k->ij", NULL, "operands", OLY_PARSE},    {"i->i", NULL, "dimensions", OLY_SHAPE},
                 {"ij->ik", NULL, "no operand", OLY_SHAPE},    {"ii->i", NULL, "letter", OLY_PARSE},
                 {"ij->i", NULL, "type of result", OLY_SHAPE}, {"ij->ij", "I", "letter", OLY_PARSE},
                 {"ij->ij,i", NULL, "results", OLY_PARSE}};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        fails_with(oly_callback_with(twice, NULL, OLY_CALLBACK_OF(.factors = wrong[k].factors, .whole = wrong[k].whole),
                                     OLY_IN(x), SAME, OLY_OUT(y)),
                   wrong[k].status, wrong[k].text);
}

/* -- custom derivatives --------------------------------------------------------------------------------------------- */

static void sine(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sin(in[0]);
    out[1] = oly_mul(in[0], in[1]);
}

static void sine_forward(const oly_array *in, oly_array *out, void *user)
{
    sine(in, out, user);
    out[2] = oly_cos(in[0]);
    out[3] = in[1];
}

/* Ten times the derivative of the sine; none by in[1]. */
static void sine_backward(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_mul(oly_mul(10, in[0]), in[2]), oly_mul(in[3], in[1]));
    out[1] = NULL;
}

static oly_fn custom;

static void through_both(const oly_array *in, oly_array *out, void *user)
{
    oly_array y[2] = {NULL, NULL};
    (void)user;
    oly_call(custom, OLY_IN(in[0], in[1]), OLY_OUT(y[0], y[1]));
    out[0] = oly_sum(oly_add(y[0], y[1]));
}

static void turn(oly_array i, oly_array *carry, void *user)
{
    oly_array y = NULL;
    (void)i, (void)user;
    oly_call(custom, OLY_IN(carry[0], carry[0]), OLY_OUT(carry[0], y));
}

static void through_a_loop(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, 2, turn, 1, out, user);
    out[0] = oly_sum(out[0]);
}

static void one_element(const oly_array *in, oly_array *out, void *user)
{
    through_both(in, out, user);
}

static void through_vmap(const oly_array *in, oly_array *out, void *user)
{
    oly_array y = NULL;
    oly_vmap(one_element, user, OLY_IN(in[0], in[1]), OLY_AXES_OF(0, OLY_UNMAPPED), OLY_OUT(y), OLY_AXES_OF(0));
    out[0] = oly_sum(y);
}

static void one_device(const oly_array *in, oly_array *out, void *user)
{
    oly_array y = NULL;
    (void)user;
    oly_call(custom, OLY_IN(in[0], in[0]), OLY_OUT(out[0], y));
}

static void through_shard_map(const oly_array *in, oly_array *out, void *user)
{
    oly_array y = NULL;
    oly_shard_map(one_device, user, mesh, OLY_IN(in[0]), OLY_SPECS("i"), OLY_OUT(y), OLY_SPECS("i"));
    out[0] = oly_sum(y);
}

static int count_elements(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    (void)called, (void)user;
    n_called++;
    for (int64_t k = 0; k < size_of(out); k++)
        ((int32_t *)out[0].data)[k] = 1;
    return in[0].rank < 0;
}

/* Wherever some devices, or all, have no elements: a function for whole arrays is called once all the same, one by factors only
 * where there is a shard, and neither fails. */
static void arrays_without_elements(void **state)
{
    (void)state;
    oly_sharding split = oly_named(mesh, "(i,j)");
    const int64_t sizes[] = {0, 3, 13};
    for (int k = 0; k < 3; k++)
        for (int again = 0; again < 3; again++) {
            int32_t called, all[64], total = 0;
            oly_array y = NULL, z = oly_device_put(oly_zeros(OLY_INT32, sizes[k]), split);
            n_called = 0;
            assert_int_equal(oly_callback_with(count_elements, NULL, OLY_CALLBACK_OF(.factors = "a->a"), OLY_IN(z),
                                               OLY_TYPES(OLY_TYPE_LIKE(z)), OLY_OUT(y)),
                             OLY_OK);
            assert_true(oly_item(oly_sum(y)) == (double)sizes[k]);
            called = n_called;
            assert_int_equal(oly_allgather_host(&called, sizeof called, all), OLY_OK);
            for (int r = 0; r < oly_process_count(); r++)
                total += all[r];
            assert_int_equal(total, sizes[k] < 8 ? sizes[k] : 8);
            n_called = 0;
            assert_int_equal(oly_callback(count_elements, NULL, OLY_IN(z), OLY_TYPES(OLY_TYPE_LIKE(z)), OLY_OUT(y)),
                             OLY_OK);
            assert_int_equal(n_called, oly_process_index() == 0);
        }
}

static void counted(const oly_array *in, oly_array *out, void *user)
{
    if (user)
        oly_callback_with(count_elements, NULL, OLY_CALLBACK_OF(.factors = "ab->ab"), OLY_IN(in[0]),
                          OLY_TYPES(OLY_TYPE_LIKE(in[0])), OLY_OUT(out[0]));
    else
        oly_callback(count_elements, NULL, OLY_IN(in[0]), OLY_TYPES(OLY_TYPE_LIKE(in[0])), OLY_OUT(out[0]));
}

static void batches_without_elements(void **state)
{
    (void)state;
    int by_factors;
    oly_array y = NULL, z = oly_device_put(oly_zeros(OLY_INT32, 0, 3, 13), oly_named(mesh, "i"));
    oly_vmap(counted, &by_factors, OLY_IN(z), OLY_AXES_OF(2), OLY_OUT(y), OLY_AXES_OF(2));
    assert_true(y && oly_size(y) == 0 && oly_shape(y)[2] == 13);
    oly_vmap(counted, NULL, OLY_IN(z), OLY_AXES_OF(2), OLY_OUT(y), OLY_AXES_OF(2));
    assert_true(y && oly_size(y) == 0 && oly_shape(y)[2] == 13);
}

/* Their results may be taken as equal on all devices, as everything in such maps. */
static void in_unchecked_maps(void **state)
{
    (void)state;
    oly_array y = NULL, z = oly_full(7, OLY_INT32, 2, 2);
    n_called = 0;
    oly_shard_map_with(counted, NULL, mesh, OLY_MANUAL(.unchecked = true), OLY_IN(z), OLY_SPECS(""), OLY_OUT(y),
                       OLY_SPECS(""));
    assert_true(y && oly_item(oly_sum(y)) == 4);
    oly_sync("counted");
    assert_int_equal(n_called, 8 / oly_process_count());
}

static void derivatives_of_its_own(void **state)
{
    (void)state;
    const double c[] = {1, 0.5403023, -0.41614684, -0.9899925};
    custom = oly_custom_vjp(sine, sine_forward, sine_backward, 2, 2, 2);
    oly_array v = oly_device_put(oly_astype(oly_arange(4, OLY_INT32), OLY_FLOAT32), oly_named(mesh, "i")),
              two = oly_full(2.0, OLY_FLOAT32);
    oly_array g = NULL, h = NULL, s = NULL, t = NULL;
    assert_int_equal(oly_call(custom, OLY_IN(v, two), OLY_OUT(s, t)), OLY_OK);
    CHECK_NEAR(t, 0, 2, 4, 6);
    oly_fn both = oly_grad(oly_jit(through_both, 2, 1), .argnums = "0, 1");
    assert_int_equal(oly_call(both, OLY_IN(v, two), OLY_OUT(g, h)), OLY_OK);
    CHECK_NEAR(oly_sub(g, 2), 10 * c[0], 10 * (float)c[1], 10 * (float)c[2], 10 * (float)c[3]);
    CHECK_NEAR(h, 0);
    oly_array by_map = oly_apply(oly_grad(oly_jit(through_vmap, 2, 1)), v, two);
    CHECK_NEAR(oly_sub(by_map, g), 0, 0, 0, 0);
    oly_array by_devices = oly_apply(oly_grad(oly_jit(through_shard_map, 1, 1)), v);
    CHECK_NEAR(oly_sub(by_devices, oly_sub(g, 2)), 0, 0, 0, 0);
    oly_array by_loop = oly_apply(oly_grad(oly_jit(through_a_loop, 1, 1)), oly_mul(v, 0));
    CHECK_NEAR(by_loop, 100, 100, 100, 100);
    fails_with(oly_custom_vjp(sine, NULL, sine_backward, 1, 1, 0) ? OLY_OK : oly_last_status(), OLY_INVALID, "NULL");
    oly_fn wrong = oly_custom_vjp(sine, sine, sine_backward, 2, 2, 2); /* stores no residuals */
    assert_true(oly_call(wrong, OLY_IN(v, two), OLY_OUT(g, h)) != OLY_OK);
    oly_clear_error();
}

static void failing_allocations_are_errors(void **state)
{
    (void)state;
    extern void oly_fail_allocation(long n);
    oly_array y = NULL;
    for (long n = 0, failed = 1; failed && oly_process_count() == 1; n++) {
        oly_fail_allocation(n);
        oly_status st = oly_callback(twice, NULL, OLY_IN(x), SAME, OLY_OUT(y));
        oly_fail_allocation(-1);
        assert_true(st == OLY_OK || st == OLY_MEMORY);
        oly_clear_error();
        failed = st != OLY_OK;
    }
    oly_fn f = oly_grad(oly_jit(through_both, 2, 1));
    oly_array v = oly_full(0.5, OLY_FLOAT32, 4), two = oly_full(2.0, OLY_FLOAT32);
    for (long n = 0, failed = 1; failed && oly_process_count() == 1; n++) {
        oly_fail_allocation(n);
        oly_status st = oly_call(f, OLY_IN(v, two), OLY_OUT(y));
        oly_fail_allocation(-1);
        assert_true(st == OLY_OK || st == OLY_MEMORY);
        oly_clear_error();
        failed = st != OLY_OK;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins),
        cmocka_unit_test(whole_arrays_once),
        cmocka_unit_test(calls_at_once_keep_their_plans),
        cmocka_unit_test(in_the_order_of_the_program),
        cmocka_unit_test(only_pure_ones_are_dropped),
        cmocka_unit_test(for_every_device_and_element),
        cmocka_unit_test(the_only_branch_for_every_element),
        cmocka_unit_test(arrays_without_elements),
        cmocka_unit_test(batches_without_elements),
        cmocka_unit_test(in_unchecked_maps),
        cmocka_unit_test(errors_reach_all_ranks),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(derivatives_of_its_own),
        cmocka_unit_test(failing_allocations_are_errors),
        cmocka_unit_test(ends),
    };
    return CHECK_MAIN(tests);
}
