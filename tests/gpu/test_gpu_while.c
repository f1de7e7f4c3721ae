/* SPDX-License-Identifier: BSD-3-Clause */
/* run: devices=8  Loops with conditions, whose iterations GPUs begin before they know whether there are any: the same values and bits as
 * without, however many iterations there are, and no trace of the one that there was not. tests/gpu/test_gpu_while.sh runs it on emulated
 * GPUs. */
#include "check.h"
#include "check_session.h"
#include "core/optimisation.h"
#include "loop_bodies.h"
#include "run/device_counts.h"
#include <string.h>

enum { SIDE = 16, CALLS = 6 };

static bool on_gpu(void)
{
    return strcmp(oly_device_platform(oly_local_device(0)), "cuda") == 0;
}

static bool faults(void)
{
    const char *fail = getenv("EMULATED_FAIL");
    return fail && *fail;
}

static int64_t speculated(void)
{
    return oly_counted(&oly_device_counted.speculated);
}

static oly_array placed(oly_array x)
{
    return oly_device_put(x, oly_named(oly_make_mesh("x=4, y=2"), oly_rank(x) == 2 ? "x, y" : ""));
}

static oly_array matrix(double scale)
{
    oly_array x = oly_reshape(oly_arange(SIDE * SIDE, OLY_FLOAT32), SIDE, SIDE);
    return placed(oly_sin(oly_mul(x, scale)));
}

static void read(oly_array x, void *values, size_t bytes)
{
    assert_int_equal(oly_get(oly_device_put(x, oly_named(oly_make_mesh("x=4, y=2"), "")), values, bytes), OLY_OK);
}

/* -- programs: every one runs as many iterations as its last input says --------------------------------------------------------- */

/* Two fields that change places, the count, and a field that stays. */
static void exchange(oly_array *carry, void *user)
{
    (void)user;
    oly_array a = carry[2];
    carry[0] = oly_add(carry[0], 1);
    carry[2] = oly_add(oly_mul(carry[3], 0.5), oly_mul(a, carry[0]));
    carry[3] = oly_sin(a);
}

static void fields(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array carry[] = {oly_zeros(OLY_INT32), in[1], in[0], oly_cos(in[0])};
    oly_while(below, exchange, 4, carry, NULL);
    out[0] = oly_sub(carry[2], carry[3]);
    out[1] = carry[0];
}

/* Stencil passes, on whose result the condition depends. */
static void diffuse(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    oly_array u = carry[0];
    oly_array mid = oly_slice(u, "1:-1, 1:-1"), left = oly_slice(u, "1:-1, :-2"), right = oly_slice(u, "1:-1, 2:");
    carry[0] =
        oly_update(u, "1:-1, 1:-1", oly_add(oly_mul(0.5, mid), oly_add(oly_mul(0.25, left), oly_mul(0.25, right))));
}

static void diffuse_often(oly_array *carry, void *user)
{
    (void)user;
    oly_array inner[] = {carry[2]};
    oly_fori(0, 6, diffuse, 1, inner, NULL);
    carry[2] = inner[0];
    carry[0] = oly_add(carry[0], 1);
}

static void diffusion(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array carry[] = {oly_zeros(OLY_INT32), in[1], in[0]};
    oly_while(below, diffuse_often, 3, carry, NULL);
    out[0] = carry[2];
    out[1] = carry[0];
}

/* A loop in a loop: the outer one's condition waits for the inner one's. */
static void both(oly_array *carry, void *user)
{
    (void)user;
    oly_array inner[] = {oly_zeros(OLY_INT32), carry[0], carry[2], oly_cos(carry[2])};
    oly_while(below, exchange, 4, inner, NULL);
    carry[2] = inner[3];
    carry[0] = oly_add(carry[0], 1);
}

static void loop_in_loop(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array carry[] = {oly_zeros(OLY_INT32), in[1], in[0]};
    oly_while(below, both, 3, carry, NULL);
    out[0] = carry[2];
    out[1] = carry[0];
}

/* A carry that is updated in place is the result of the iteration before: nothing may be computed beyond the end. */
static void write_row(oly_array *carry, void *user)
{
    (void)user;
    carry[2] = oly_dynamic_update_slice(carry[2], oly_full(-1, OLY_FLOAT32, 1, SIDE), OLY_INDEXES(carry[0], 0));
    carry[0] = oly_add(carry[0], 1);
}

static void rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array carry[] = {oly_zeros(OLY_INT32), in[1], in[0]};
    oly_while(below, write_row, 3, carry, NULL);
    out[0] = carry[2];
    out[1] = carry[0];
}

/* -- tests ------------------------------------------------------------------------------------------------------------------------ */

typedef struct results {
    float field[SIDE * SIDE];
    int32_t count;
} results;

static void call_often(oly_function function, oly_optimisations off, results *found)
{
    oly_optimisations before = oly_disable(off);
    oly_fn f = oly_jit(function, 2, 2);
    for (int k = 0; k < CALLS; k++)
        OLY_SCOPE
        {
            oly_array field, count, limit = placed(oly_scalar(k == 5 ? 11 : k, OLY_INT32));
            assert_int_equal(oly_call(f, OLY_IN(matrix(0.1 * k), limit), OLY_OUT(field, count)), OLY_OK);
            read(field, found[k].field, sizeof found[k].field);
            read(count, &found[k].count, sizeof found[k].count);
        }
    oly_disable(before);
}

/* The host reads every condition, and waits for it. */
static const oly_optimisations on_host =
    (oly_optimisations)1 << OLY_OPTIMISATION_SPECULATION | (oly_optimisations)1 << OLY_OPTIMISATION_CONDITIONAL_GRAPHS;

/* begun: iterations of a program with n of them that GPUs of one process launch early. */
static void compare(oly_function function, int64_t (*begun)(int n))
{
    static results with[CALLS], without[CALLS];
    int64_t wanted = 0;
    call_often(function, on_host, without);
    int64_t before = speculated();
    call_often(function, (oly_optimisations)1 << OLY_OPTIMISATION_CONDITIONAL_GRAPHS, with);
    for (int k = 0; k < CALLS; k++) {
        int n = k == 5 ? 11 : k;
        assert_int_equal(with[k].count, n);
        if (memcmp(&with[k], &without[k], sizeof with[k]))
            fail_msg("%d iterations have other bits when they begin early", n);
        wanted += begun(n);
    }
    if (on_gpu() && oly_process_count() == 1 && !faults())
        assert_int_equal(speculated() - before, wanted);
    if (!on_gpu())
        assert_int_equal(speculated(), 0);
}

static int64_t one_in_vain(int n)
{
    return n + 1;
}

static int64_t none(int n)
{
    (void)n;
    return 0;
}

/* The inner loop has 0, 1, ... n - 1 iterations. */
static int64_t of_inner_loops(int n)
{
    return (int64_t)n * (n + 1) / 2;
}

static void carries_that_change_places(void **state)
{
    (void)state;
    compare(fields, one_in_vain);
}

static void bodies_with_loops_and_sums_over_devices(void **state)
{
    (void)state;
    compare(nested, one_in_vain);
}

static void bodies_with_stencil_passes(void **state)
{
    (void)state;
    compare(diffusion, one_in_vain);
}

static void loops_in_loops(void **state)
{
    (void)state;
    compare(loop_in_loop, of_inner_loops);
}

static void carries_in_place_do_not_begin_early(void **state)
{
    (void)state;
    compare(rows, none);
}

/* The iteration that does not take place would fail its check. */
static void check_it(oly_array *carry, void *user)
{
    (void)user;
    oly_check(oly_lt(carry[0], carry[1]), "iteration {} does not take place", carry[0]);
    carry[0] = oly_add(carry[0], 1);
    carry[2] = oly_mul(carry[2], 0.5);
}

static void checked(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array carry[] = {oly_zeros(OLY_INT32), in[1], in[0]};
    oly_while(below, check_it, 3, carry, NULL);
    out[0] = carry[2];
    out[1] = carry[0];
}

static void checks_fail_only_in_iterations_that_take_place(void **state)
{
    (void)state;
    compare(checked, none);
}

/* Many tiny iterations: the limit of work lets all begin early; a large body waits until the loop has taken some time. */
static void large_bodies_begin_early_later(void **state)
{
    (void)state;
    enum { LARGE = 2048, N = 6 };
    oly_array x =
        oly_device_put(oly_full(0.5, OLY_FLOAT32, LARGE, LARGE), oly_named(oly_make_mesh("x=4, y=2"), "x, y"));
    oly_array field, count;
    int64_t before = speculated();
    oly_fn f = oly_jit(fields, 2, 2);
    assert_int_equal(oly_call(f, OLY_IN(x, placed(oly_scalar(N, OLY_INT32))), OLY_OUT(field, count)), OLY_OK);
    oly_block_until_ready(field);
    if (on_gpu() && oly_process_count() == 1)
        assert_true(speculated() - before < N); /* each is some 2 x 10^7 operations */
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(carries_that_change_places, check_open, check_close),
        cmocka_unit_test_setup_teardown(bodies_with_loops_and_sums_over_devices, check_open, check_close),
        cmocka_unit_test_setup_teardown(bodies_with_stencil_passes, check_open, check_close),
        cmocka_unit_test_setup_teardown(loops_in_loops, check_open, check_close),
        cmocka_unit_test_setup_teardown(carries_in_place_do_not_begin_early, check_open, check_close),
        cmocka_unit_test_setup_teardown(checks_fail_only_in_iterations_that_take_place, check_open, check_close),
        cmocka_unit_test_setup_teardown(large_bodies_begin_early_later, check_open, check_close)};
    return CHECK_MAIN(tests);
}
