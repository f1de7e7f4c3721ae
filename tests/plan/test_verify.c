/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2,4 devices=8 timeout=240  OLYMPUS_VERIFY: a plan that computes something else is found, with the
 * operation, the element and the optimisation; a correct plan is never reported, whatever it reorders. */
#include "check.h"
#include "check_session.h"
#include "core/error.h"
#include "core/option.h"
#include "core/optimisation.h"
#include "plan/model/time_tiling.h"
#include "plan/plan.h"

static oly_mesh mesh;

static oly_array sharded(int64_t rows, int64_t columns)
{
    oly_array x = oly_reshape(oly_arange(rows * columns, OLY_FLOAT32), rows, columns);
    x = oly_add(oly_mul(oly_sin(x), 3), 0.25);
    return oly_device_put(x, oly_named(mesh, "x, y"));
}

/* -- planted faults ------------------------------------------------------------------------------------------------------ */

static void for_each_step(oly_block *b, void (*damage)(oly_step *s))
{
    for (int k = 0; k < b->n_steps; k++) {
        damage(&b->steps[k]);
        if (b->steps[k].kind == OLY_STEP_LOOP)
            for_each_step(b->steps[k].loop.body, damage);
    }
}

/* A wrong fusion: sums become differences in fused operations. */
static void subtract(oly_step *s)
{
    if (s->kind == OLY_STEP_TILE && s->tile.program.n_instructions > 2)
        for (int k = 0; k < s->tile.program.n_instructions; k++) {
            oly_tile_instruction *i = (oly_tile_instruction *)&s->tile.program.instructions[k];
            if (i->op == OLY_TILE_add)
                i->op = OLY_TILE_sub;
        }
}
static void wrong_fusion(oly_plan *plan)
{
    if (oly_enabled(OLY_OPTIMISATION_FUSION))
        for_each_step(plan->main, subtract);
}

/* A wrong exchange: neighbours give their first element again and again. (Giving nothing would leave what the memory
 * held before, which may be right.) */
static void damage_copies(oly_step *s)
{
    for (int k = 0; s->kind == OLY_STEP_MOVE && k < s->move.n_copies; k++) {
        oly_copy_task *task = (oly_copy_task *)&s->move.copies[k].task;
        memset(task->from_stride, 0, sizeof task->from_stride);
    }
}
static void wrong_exchange(oly_plan *plan)
{
    if (oly_enabled(OLY_OPTIMISATION_EXCHANGE_MERGING) && plan->n_inputs == 1)
        for_each_step(plan->main, damage_copies);
}

/* A wrong loop over fields: magnitudes become negative, whether stages are computed one by one or in groups. */
static void negate_in(const oly_tile_program *p)
{
    for (int i = 0; i < p->n_instructions; i++)
        if (p->instructions[i].op == OLY_TILE_abs)
            ((oly_tile_instruction *)&p->instructions[i])->op = OLY_TILE_neg;
}
static void negate(oly_step *s)
{
    const oly_tiling *m = s->kind == OLY_STEP_STENCIL ? s->stencil.tiling : NULL;
    for (int k = 0; m && k < m->form.n_stages; k++)
        for (int j = 0; j < m->form.stages[k].n_pieces; j++)
            negate_in(&m->form.stages[k].pieces[j].program);
    for (int k = 0; m && k < m->form.n_groups; k++)
        for (int j = 0; j < m->form.groups[k].n_pieces && m->form.groups[k].n_stored > 0; j++)
            negate_in(&m->form.groups[k].pieces[j].program);
}
static void wrong_loop(oly_plan *plan)
{
    if (oly_enabled(OLY_OPTIMISATION_FIELD_LOOPS))
        for_each_step(plan->main, negate);
}

static void no_fault(oly_plan *plan)
{
    (void)plan;
}

static void with_fault(void (*fault)(oly_plan *))
{
    oly_option.verify = 1;
    oly_plan_damage = fault;
    mesh = oly_make_mesh("x=4, y=2");
}

static void has(const char *text)
{
    if (!strstr(oly_last_error(), text))
        fail_msg("expected \"%s\" in \"%s\"", text, oly_last_error());
}

/* -- functions ------------------------------------------------------------------------------------------------------------ */

static int line_of_sum;

static void polynomial(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array twice = oly_mul(in[0], 2), whole;
    line_of_sum = __LINE__ + 1;
    whole = oly_add(twice, in[0]);
    out[0] = oly_exp(oly_neg(oly_abs(whole)));
    out[1] = oly_transpose(in[0]);
}

static void neighbours(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array sum = oly_add(oly_slice(in[0], ":-2, 1:-1"), oly_slice(in[0], "2:, 1:-1"));
    out[0] = oly_add(sum, oly_mul(oly_slice(in[0], "1:-1, 1:-1"), 2));
}

static void count_down(oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_sub(carry[0], oly_mul(0.5, oly_mean(carry[0])));
}
static oly_array is_large(const oly_array *carry, void *user)
{
    (void)user;
    return oly_gt(oly_abs(oly_sum(carry[0])), 1);
}
static void spread_out(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    oly_array inside = oly_add(oly_slice(carry[0], ":-2, :"), oly_slice(carry[0], "2:, :"));
    carry[0] = oly_update(carry[0], "1:-1, :", oly_mul(inside, 0.5));
    carry[1] = oly_add(carry[1], oly_sum(oly_square(carry[0])));
}
/* No rounding anywhere, but steps that would magnify it. */
static void whole_numbers(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    carry[1] = oly_floor(oly_abs(oly_neg(oly_astype(carry[0], OLY_FLOAT32))));
    carry[0] = oly_roll(carry[0], 1, 0);
}
static void loop_of_whole_numbers(const oly_array *in, oly_array *out, void *user)
{
    memcpy(out, in, 2 * sizeof *in);
    oly_fori(0, 3, whole_numbers, 2, out, user);
}
static void as_is(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], 3);
}
static void turned(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_flip(oly_cumsum(in[0], 0), 0);
}
static void on_each(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0], oly_psum(oly_sum(in[0]), "x"));
}

/* Sums, all kinds of loops, a branch, a product, a map over the devices, a gradient. */
static void everything(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array carry[2] = {in[0], oly_sum(in[0])}, other = in[0];
    oly_fori(0, 5, spread_out, 2, carry, NULL);
    oly_while(is_large, count_down, 1, &other, NULL);
    oly_cond(oly_gt(oly_sum(in[0]), 0), as_is, turned, 1, in, 1, &out[0], NULL);
    out[1] = oly_matmul(carry[0], oly_transpose(other));
    out[2] = carry[1];
    out[3] = oly_sort(oly_reshape(carry[0], -1), 0);
    oly_shard_map(on_each, NULL, mesh, OLY_IN(in[0]), OLY_SPECS("x, y"), OLY_OUT(out[4]), OLY_SPECS("x, y"));
    out[5] = oly_softmax(oly_sub(in[0], oly_max(in[0])), 1);
}

/* -- tests ---------------------------------------------------------------------------------------------------------------- */

static void a_wrong_operation_is_named(void **state)
{
    (void)state;
    char line[96];
    with_fault(wrong_fusion);
    oly_array out[2] = {NULL};
    oly_fn f = oly_jit(polynomial, 1, 2);
    assert_int_equal(oly_call(f, OLY_IN(sharded(12, 8)), OLY_OUT(out[0], out[1])), OLY_VERIFY);
    assert_int_equal(oly_last_status(), OLY_VERIFY);
    has("result 0 of polynomial differs from its operations evaluated one by one: element [0, 0] on device 0 is ");
    snprintf(line, sizeof line, "the first operation that differs is add (tests/plan/test_verify.c:%d)", line_of_sum);
    has(line);
    has("it agrees with OLYMPUS_DISABLE=fusion");
    oly_clear_error();
}

/* Only devices with neighbours get something wrong: all processes report the same. */
static void a_wrong_exchange_is_found_on_every_process(void **state)
{
    (void)state;
    with_fault(NULL);
    oly_array x = sharded(17, 9); /* placed by copies, too */
    oly_plan_damage = wrong_exchange;
    oly_array y = oly_apply(oly_jit(neighbours, 1, 1), x);
    if (oly_process_count() == 1) { /* otherwise messages bring it, which are not damaged */
        assert_null(y);
        has("result 0 of neighbours differs");
        has("on device ");
        has("OLYMPUS_DISABLE=exchange-merging");
        oly_clear_error();
    }
    oly_plan_damage = NULL;
}

/* Conversions and negations are exact, beside fused sums too: they excuse nothing. */
static void a_wrong_loop_of_exact_values_is_found(void **state)
{
    (void)state;
    with_fault(wrong_loop);
    oly_array u = oly_sub(oly_mod(oly_arange(40, OLY_INT32), 7), 3), out[2] = {NULL};
    oly_fn f = oly_jit(loop_of_whole_numbers, 2, 2);
    assert_int_equal(oly_call(f, OLY_IN(u, oly_astype(u, OLY_FLOAT32)), OLY_OUT(out[0], out[1])), OLY_VERIFY);
    has("result 1 of loop_of_whole_numbers differs");
    has("it agrees with OLYMPUS_DISABLE=field-loops");
    oly_clear_error();
    oly_plan_damage = NULL;
}

static void what_is_right_passes(void **state)
{
    (void)state;
    with_fault(no_fault);
    oly_array out[6] = {NULL};
    oly_fn f = oly_jit(everything, 1, 6);
    for (int again = 0; again < 2; again++) {
        oly_status st = oly_call(f, OLY_IN(sharded(12, 8)), OLY_OUT(out[0], out[1], out[2], out[3], out[4], out[5]));
        if (st != OLY_OK)
            fail_msg("%s", oly_last_error());
    }
}

static void halved(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(oly_add(in[0], 1), 0.5);
}

static void first_columns(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_exp(oly_slice(in[0], ":, :2"));
}

/* A donated operand is copied before it is donated. */
static void donated_operands_are_compared_too(void **state)
{
    (void)state;
    with_fault(no_fault);
    oly_array x = oly_device_put(oly_zeros(OLY_FLOAT32, 16), oly_named(mesh, "x"));
    oly_fn f = oly_jit(halved, 1, 1);
    for (int k = 0; k < 3; k++)
        assert_int_equal(oly_call(f, OLY_IN(x), OLY_OUT(x)), OLY_OK);
    assert_true(oly_item(oly_sum(x)) == 16 * 0.875);
    x = oly_device_put(oly_zeros(OLY_FLOAT32, 16, 64), oly_named(mesh, "x"));
    f = oly_jit(first_columns, 1, 1); /* a smaller result in memory of the larger operand */
    assert_int_equal(oly_call(f, OLY_IN(x), OLY_OUT(x)), OLY_OK);
    assert_true(oly_item(oly_sum(x)) == 32);
}

static void negated(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_neg(in[0]);
}

/* A value that leaves a region of Explicit axes meets one that is placed over another mesh. */
static void beside_a_region(const oly_array *in, oly_array *out, void *user)
{
    const oly_mesh *meshes = user;
    oly_array inside = NULL;
    oly_explicit_axes(negated, NULL, OLY_IN(oly_mul(in[0], 1)), OLY_SHARDINGS(oly_named(meshes[0], "y, x")),
                      OLY_OUT(inside));
    out[0] =
        oly_concatenate(0, oly_slice(inside, "1:, :"), oly_with_sharding_constraint(in[0], oly_named(meshes[1], "x")));
}

static void regions_end_before_other_meshes(void **state)
{
    (void)state;
    with_fault(no_fault);
    oly_axis_type types[] = {OLY_AXIS_EXPLICIT, OLY_AXIS_EXPLICIT};
    oly_mesh meshes[] = {oly_mesh_with_types(oly_make_mesh("x=2, y=4"), types), mesh};
    oly_array y = oly_apply(oly_jit(beside_a_region, 1, 1, .user = meshes), oly_ones(OLY_FLOAT32, 8, 4));
    if (!y)
        fail_msg("%s", oly_last_error());
    assert_true(oly_item(oly_sum(y)) == 32 - 28);
}

/* Only the first run is verified. */
static void later_runs_are_not_compared(void **state)
{
    (void)state;
    with_fault(no_fault);
    oly_array x = oly_device_put(oly_ones(OLY_FLOAT32, 16), oly_named(mesh, "x"));
    oly_fn f = oly_jit(halved, 1, 1);
    oly_apply(f, x);
    oly_plan_damage = wrong_fusion; /* whatever is planned now is wrong */
    assert_true(oly_item(oly_sum(oly_apply(f, x))) == 16);
}

static void memory_may_run_out(void **state)
{
    (void)state;
    with_fault(no_fault);
    bool failed = true;
    if (oly_process_count() > 1)
        skip(); /* others would wait */
    for (long k = 0; failed; k += 1 + k / 16)
        OLY_SCOPE
        {
            oly_array x = oly_device_put(oly_ones(OLY_FLOAT32, 16), oly_named(mesh, "x"));
            oly_fn f = oly_jit(halved, 1, 1);
            oly_fail_allocation(k);
            oly_array y = oly_apply(f, x);
            failed = oly_last_status() != OLY_OK;
            oly_fail_allocation(-1);
            if (failed ? oly_last_status() != OLY_MEMORY : !y)
                fail_msg("after %ld allocations: %s", k, oly_last_error());
            oly_clear_error();
        }
}

static int finish(void **state)
{
    oly_option.verify = 0;
    oly_plan_damage = NULL;
    return check_finish(state);
}

#define STARTED(name) cmocka_unit_test_setup_teardown(name, check_start, finish)
static const struct CMUnitTest tests[] = {
    STARTED(a_wrong_operation_is_named),
    STARTED(a_wrong_exchange_is_found_on_every_process),
    STARTED(a_wrong_loop_of_exact_values_is_found),
    STARTED(what_is_right_passes),
    STARTED(donated_operands_are_compared_too),
    STARTED(regions_end_before_other_meshes),
    STARTED(later_runs_are_not_compared),
    STARTED(memory_may_run_out),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
