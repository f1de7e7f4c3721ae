/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  What the planner removes before it plans: rearrangements that cancel across elementwise operations, and
 * the transfer of masks that every device can compute. Bytes, and values: those of one device. */
#include "check_communication.h"
#include "check_session.h"
#include "compare_pass.h"
#include "core/optimisation.h"
#include "plan/plan.h"
#include <stdlib.h>
#include <string.h>

static void backwards_and_back(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_rev(in[0], 0);
    out[0] = oly_rev(oly_add(oly_mul(x, oly_sin(x)), 2), 0);
}

static void regrouped_and_back(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_reshape(in[0], 16, 4, 8);
    out[0] = oly_reshape(oly_mul(x, oly_exp(x)), 16, 32);
}

static void turned_and_back(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_transpose(in[0]);
    out[0] = oly_transpose(oly_div(oly_reshape(oly_transpose(oly_square(oly_transpose(x))), 32, 16), 3));
}

static void rearrangements_that_cancel_move_nothing(void **state)
{
    (void)state;
    assert_int_equal(check_steps_with(CHECK_MOVES, backwards_and_back, "x=8", "x", 64, 4), 0);
    assert_int_equal(check_steps_with(CHECK_MOVES, regrouped_and_back, "x=8", "None, x", 16, 32), 0);
    assert_int_equal(check_steps_with(CHECK_MOVES, turned_and_back, "x=8", "x", 16, 32), 0);
}

/* The same, in the body of a loop. */
static void twice(oly_array k, oly_array *carry, void *user)
{
    (void)k;
    oly_array x = carry[0];
    backwards_and_back(&x, carry, user);
}

static void in_a_loop(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, 2, twice, 1, out, NULL);
}

static void loops_too(void **state)
{
    (void)state;
    assert_int_equal(check_steps_with(CHECK_MOVES, in_a_loop, "x=8", "x", 64, 4), 0);
}

/* Not with other readers, nor along other dimensions, nor in another order. */
static void partly_cancelled(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_rev(in[0], 0, 1), y = oly_exp(oly_rev(in[0], 0)), z = oly_mul(y, 2);
    out[0] = oly_add(oly_add(oly_rev(oly_mul(x, 2), 0), oly_rev(z, 0)), oly_add(z, y));
}

static void regrouped_otherwise(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_reshape(in[0], 32, 16);
    out[0] = oly_transpose(oly_add(x, oly_square(x)));
}

static void others_stay(void **state)
{
    (void)state;
    assert_true(check_steps_with(CHECK_MOVES, partly_cancelled, "x=8", "x", 64, 4) > 0);
    assert_true(check_steps_with(CHECK_MOVES, regrouped_otherwise, "x=8", "None, x", 16, 32) > 0);
}

/* -- numbers with dimensions ------------------------------------------------------------------------------------------------- */

/* Of three numbers with dimensions, which are read several times, and become numbers again. */
static void numbers_with_dimensions(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array sum = oly_sum(in[0]), a = oly_reshape(sum, 1), b = oly_reshape(oly_max(in[0]), 1);
    oly_array c = oly_sub(oly_mul(a, b), 2), d = oly_add(oly_mul(0.5, c), a);
    oly_array shape[] = {oly_squeeze(c, 0), oly_squeeze(d, 0)};
    oly_array e = oly_where(oly_gt(shape[0], 0), oly_mul(shape[1], shape[0]), oly_sub(shape[1], sum));
    out[0] = oly_concatenate(0, oly_add(oly_reshape(e, 1), d), c, oly_slice(d, "0:1"));
    out[1] = oly_mul(e, shape[0]);
}

static void numbers_with_dimensions_are_numbers(void **state)
{
    (void)state;
    static pass_outcome with, without;
    static const char *const specs[] = {"", "x", "(x,y)"};
    for (int k = 0; k < 3; k++) {
        oly_array in = compare_pass_numbers(specs[k], -1, 64);
        compare_pass(OLY_OPTIMISATION_CANCEL_REARRANGEMENTS, numbers_with_dimensions, NULL, &in, 1, 2, &with, &without);
        assert_true(with.costs.steps < without.costs.steps);
    }
}

/* -- reductions of transposed arrays -------------------------------------------------------------------------------------------- */

enum { REDUCTIONS = 120, MOST = 1 << 14 };
static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
static int
    transposes; /* of arrays of three dimensions, in the plan with the fewest since it was MOST (verified calls have a second one) */

static void count_transposes(oly_plan *plan)
{
    int n = 0;
    for (int k = 0; k < plan->graph->n_nodes; k++)
        n += plan->graph->nodes[k]->op == OLY_OP_transpose && plan->graph->nodes[k]->type.rank == 3;
    transposes = n < transposes ? n : transposes;
}

static void reduce_turned(const oly_array *in, oly_array *out, void *user)
{
    int drawn = *(int *)user, kind = drawn / 6 % 4, axes = drawn / 24 % 7 + 1; /* 1 to 7: bits */
    const int *order = orders[drawn % 6];
    oly_array x = oly_transpose_axes(in[0], 3, order), y = oly_transpose_axes(in[1], 3, order);
    oly_array z = kind == 0   ? oly_mul(x, 2)
                  : kind == 1 ? oly_add(oly_mul(x, y), 3)
                  : kind == 2 ? oly_where(oly_gt(x, y), x, oly_sub(1, y))
                              : oly_add(oly_mul(x, 2), oly_ones_like(y)); /* nothing to turn in the second */
    int chosen[3];
    oly_reduce_options options = {.axis_list = chosen, .axes_given = true};
    for (int d = 0; d < 3; d++)
        if (axes >> d & 1)
            chosen[options.n_axis_list++] = d;
    out[0] = drawn % 5 == 0 ? oly_max_with(OLY_ARG(z), options) : oly_sum_with(OLY_ARG(z), options);
    if (drawn % 7 == 0)
        out[0] = oly_add(oly_sum(x), out[0]); /* another reader of the transpose */
}

static void reductions_take_arrays_as_they_are(void **state)
{
    static float with[MOST], without[MOST];
    const oly_optimisations one = (oly_optimisations)1 << OLY_OPTIMISATION_CANCEL_REARRANGEMENTS;
    oly_mesh mesh = oly_make_mesh("x=4,y=2");
    int saved = 0;
    (void)state;
    oly_plan_damage = count_transposes;
    for (int drawn = 0; drawn < REDUCTIONS; drawn++)
        OLY_SCOPE
        {
            oly_array x =
                oly_reshape(oly_sub(oly_mod(oly_mul(oly_arange(8 * 6 * 4, OLY_FLOAT32), 7), 31), 15), 8, 6, 4);
            oly_array y = oly_sub(oly_mod(oly_mul(x, x), 13), 4), out = NULL, same = NULL;
            x = oly_device_put(x, oly_named(mesh, drawn % 2 ? "x, y, None" : "None, y, x"));
            transposes = MOST;
            oly_call(oly_jit(reduce_turned, 2, 1, .user = &drawn), OLY_IN(x, y), OLY_OUT(out));
            int n = transposes;
            oly_optimisations before = oly_disable(one);
            transposes = MOST;
            oly_call(oly_jit(reduce_turned, 2, 1, .user = &drawn), OLY_IN(x, y), OLY_OUT(same));
            saved += transposes - n;
            oly_disable(before);
            size_t size = (size_t)oly_size(out) * sizeof(float);
            assert_int_equal(oly_size(out), oly_size(same));
            assert_int_equal(oly_process_allgather(out, with, size), OLY_OK);
            assert_int_equal(oly_process_allgather(same, without, size), OLY_OK);
            if (memcmp(with, without, size) != 0) /* whole numbers: sums are exact in any order */
                fail_msg("reduction %d has other values", drawn);
        }
    oly_plan_damage = NULL;
    if (oly_process_index() == 0)
        printf("%d transposes less\n", saved);
    if (!getenv("OLYMPUS_VERIFY")) /* which plans every operation by itself, too */
        assert_true(saved > REDUCTIONS / 2);
}

/* A gradient through the sum of the diagonal: one number per device, and a mask of indexes. */
static void diagonal_loss(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_square(oly_trace(in[0]));
}

static void diagonal_gradient(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_fn loss = oly_jit_with(diagonal_loss, "loss", 1, 1, (oly_jit_options){.user = NULL});
    out[0] = oly_apply(oly_grad(loss), in[0]);
}

/* Row numbers counted from the end for a split reader and for a replicated one. */
static void shared_mask(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array rows = oly_arange(64, OLY_FLOAT32), mask = oly_lt(rows, 40);
    oly_array whole = oly_with_sharding_constraint(oly_where(mask, oly_sin(rows), rows), oly_named(mesh, "None"));
    oly_array wide = oly_broadcast_to(oly_reshape(mask, 64, 1), 64, 4);
    out[0] = oly_add(oly_where(wide, in[0], oly_neg(in[0])), oly_broadcast_to(oly_reshape(whole, 64, 1), 64, 4));
}

static void masks_are_computed_where_they_are_read(void **state)
{
    (void)state;
    assert_int_equal(check_steps_with("all-gather", diagonal_gradient, "x=8", "None, x", 32, 32), 0);
    assert_int_equal(check_steps_with("all-gather", diagonal_gradient, "x=8", "x", 32, 32), 0);
    assert_int_equal(check_steps_with(CHECK_MOVES, shared_mask, "x=8", "x", 64, 4), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rearrangements_that_cancel_move_nothing),
        cmocka_unit_test(loops_too),
        cmocka_unit_test(others_stay),
        cmocka_unit_test(numbers_with_dimensions_are_numbers),
        cmocka_unit_test(reductions_take_arrays_as_they_are),
        cmocka_unit_test(masks_are_computed_where_they_are_read),
    };
    return cmocka_run_group_tests(tests, check_open, check_close);
}
