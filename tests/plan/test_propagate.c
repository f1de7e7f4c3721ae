/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8.  How results are sharded where the program leaves it open: each case names the rule of
 * docs/semantics.md 9 (Shardy's) that decides. Mesh {x: 2, y: 4}, all Auto. */
#include "check.h"
#include <olympus.h>

static oly_mesh mesh;

static oly_array constrain(oly_array x, const char *spec)
{
    return oly_with_sharding_constraint(x, oly_named(mesh, spec));
}

/* -- programs -------------------------------------------------------------------------------------------------------- */

#define PROGRAM(name, ...)                                                                                             \
    static void name(const oly_array *in, oly_array *out, void *user)                                                  \
    {                                                                                                                  \
        (void)in;                                                                                                      \
        (void)user;                                                                                                    \
        __VA_ARGS__;                                                                                                   \
    }

PROGRAM(sine, out[0] = oly_add(oly_mul(oly_sin(in[0]), 2), 1))
PROGRAM(add, out[0] = oly_add(in[0], in[1]))
PROGRAM(product, out[0] = oly_matmul(in[0], in[1]))
PROGRAM(sum_0, out[0] = oly_sum(in[0], .axes = "0"))
PROGRAM(sum_0_2, out[0] = oly_sum(in[0], .axes = "0,2"))
PROGRAM(turn, out[0] = oly_transpose(in[0]))
PROGRAM(host_turned, out[0] = constrain(oly_transpose(in[0]), "x, y"); out[1] = oly_add(in[0], 1))
PROGRAM(host_product, out[0] = constrain(oly_matmul(in[0], in[1]), "x, y"); out[1] = oly_add(in[0], 1);
        out[2] = oly_add(in[1], 1))
PROGRAM(half_open, out[0] = constrain(oly_sin(in[0]), "UNCONSTRAINED, y"))
PROGRAM(half_closed, out[0] = constrain(oly_sin(in[0]), "None, y"))
PROGRAM(open_then_used, out[0] = oly_add(constrain(in[0], "UNCONSTRAINED, None"), in[1]))
PROGRAM(half_sum, out[0] = oly_sum(oly_sin(in[0]), .axes = "1"))
PROGRAM(bias, out[0] = oly_add(in[0], in[1]); out[1] = oly_mul(in[1], 2))
PROGRAM(rows_added, out[0] = oly_add(oly_sum(in[0], .axes = "1"), in[1]); out[1] = oly_mul(in[1], 2))
PROGRAM(product_then_added, out[0] = oly_add(oly_matmul(in[0], in[1]), in[2]))
PROGRAM(constrained_input, out[0] = oly_add(constrain(in[0], "y"), 1); out[1] = oly_add(in[0], 1))

PROGRAM(regroup, out[0] = oly_reshape(in[0], 24, 4))
PROGRAM(merge, out[0] = oly_reshape(in[0], 128))
PROGRAM(split, out[0] = oly_reshape(in[0], 4, 4, 16))
PROGRAM(split_major, out[0] = oly_reshape(in[0], 2, 8, 16))
PROGRAM(unit_dims, out[0] = oly_reshape(in[0], 1, 8, 1, 16))

PROGRAM(ones_shared, oly_array ones = oly_iota_shape(OLY_FLOAT32, 0, 2, (int64_t[]){8, 16});
        out[0] = oly_add(in[0], ones); out[1] = oly_add(ones, in[1]))
PROGRAM(constant_given, oly_array ones = oly_ones(OLY_FLOAT32, 8, 16); out[0] = oly_add(in[0], ones); out[1] = ones)
PROGRAM(constant_wanted, out[0] = oly_add(oly_iota_shape(OLY_FLOAT32, 0, 2, (int64_t[]){8, 16}), in[0]))

PROGRAM(side_by_side, out[0] = oly_concatenate(1, in[0], in[1]))
PROGRAM(one_below_other, out[0] = oly_concatenate(0, in[0], in[1]))
PROGRAM(padded, int64_t low[] = {1, 0}, high[] = {7, 0}; out[0] = oly_pad(in[0], 0, low, high, NULL))
PROGRAM(sliced, out[0] = oly_slice(in[0], "2:6"))
PROGRAM(sorted, out[0] = oly_sort(in[0], 1))
PROGRAM(summed_along, out[0] = oly_cumsum(in[0], 0))
PROGRAM(taken, out[0] = oly_take(in[0], oly_astype(in[1], OLY_INT32), 0, NULL))
PROGRAM(reversed, out[0] = oly_flip(in[0], 0))
PROGRAM(batched, out[0] = oly_einsum("bij,bjk->bik", in[0], in[1]))
PROGRAM(heads, out[0] = oly_einsum("bthd,bshd->bhts", in[0], in[1]))
PROGRAM(biggest, out[0] = oly_argmax(in[0], .axes = "1"))
PROGRAM(top, oly_top_k(in[0], 4, &out[0], &out[1]))

static void add_capture(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    carry[0] = oly_add(carry[0], *(const oly_array *)user);
}

PROGRAM(from_zeros, oly_array a = in[0]; out[0] = oly_zeros(OLY_FLOAT32, 8, 16);
        oly_fori(0, 3, add_capture, 1, out, &a))

static void add_row(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    carry[0] = oly_add(carry[0], x[0]);
    y[0] = oly_mul(carry[0], 2);
}

PROGRAM(scanned, out[0] = oly_zeros(OLY_FLOAT32, 8, 16); oly_scan(4, false, add_row, 1, out, 1, in, 1, &out[1], NULL))

static oly_array is_small(const oly_array *carry, void *user)
{
    (void)user;
    return oly_lt(oly_sum(carry[0]), -1); /* never */
}

static void grow(oly_array *carry, void *user)
{
    carry[0] = oly_add(carry[0], *(const oly_array *)user);
}

PROGRAM(until_large, oly_array a = in[1]; out[0] = in[0]; oly_while(is_small, grow, 1, out, &a); out[1] = oly_mul(a, 2))

PROGRAM(chosen, oly_cond(oly_lt(oly_sum(in[0]), 1), add, sine, 2, in, 1, out, NULL); out[1] = oly_mul(in[1], 2))

static void constrained_row(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = constrain(oly_sin(in[0]), "x");
}

PROGRAM(mapped, oly_vmap(constrained_row, NULL, OLY_IN(in[0]), OLY_AXES_OF(0), OLY_OUT(out[0]), OLY_AXES_OF(0)))

/* -- cases ----------------------------------------------------------------------------------------------------------- */

/* Inputs: extents and spec, without a spec from the host (uncommitted). */
static const struct {
    oly_function program;
    const char *name;
    const char *in[3], *out[3];
} cases[] = {
#define CASE(program, ...)                                                                                             \
    {                                                                                                                  \
        program, #program, __VA_ARGS__                                                                                 \
    }
    /* forward, no conflict */
    CASE(sine, {"8x16 x,y"}, {"x,y"}),
    CASE(turn, {"8x16 x,y"}, {"y,x"}),
    CASE(reversed, {"8x16 x,y"}, {"x,y"}),
    /* axes of reduced dimensions are dropped, the others stay */
    CASE(sum_0, {"8x16 x,y"}, {"y"}),
    CASE(sum_0_2, {"8x16x4 x,None,y"}, {""}),
    CASE(sum_0_2, {"8x16x4 None,x,y"}, {"x"}),
    CASE(biggest, {"8x16 x,y"}, {"x"}),
    CASE(top, {"8x16 x,y"}, {"x", "x"}),
    /* sideways: different dimensions, and a prefix, do not conflict */
    CASE(add, {"8x16 x", "8x16 None,y"}, {"x,y"}),
    CASE(add, {"8x16 (x,y)", "8x16 x"}, {"(x,y)"}),
    CASE(add, {"8x16 x", "8x16 (x,y)"}, {"(x,y)"}),
    /* one dimension, two axes: of two of one size the one split into more parts, then the first (Shardy gathers
     * both) */
    CASE(add, {"8x16 x", "8x16 y"}, {"y"}),
    CASE(add, {"8x16 y", "8x16 x"}, {"y"}),
    CASE(add, {"8x16 x", "8x16 y,x"}, {"y,x"}),
    /* one axis, two dimensions: the earlier operand, but the more finely split first; of products the larger first */
    CASE(add, {"8x16 x", "8x16 None,x"}, {"x"}),
    CASE(add, {"8x16 None,x", "8x16 x"}, {"None,x"}),
    CASE(add, {"8x16 x", "8x16 None,(x,y)"}, {"None,(x,y)"}),
    CASE(add, {"8x16 None,(x,y)", "8x16 x"}, {"None,(x,y)"}),
    CASE(product, {"64x16 x", "16x8 None,x"}, {"x"}),
    CASE(product, {"8x16 x", "16x64 None,x"}, {"None,x"}),
    /* products: free dimensions keep their axes, contracted ones are summed over */
    CASE(product, {"8x16 x,y", "16x8"}, {"x"}),
    CASE(product, {"8x16 x,y", "16x8 y"}, {"x"}),
    CASE(product, {"8x16 x", "16x8 None,y"}, {"x,y"}),
    CASE(product, {"8x16 x", "16x8 x"}, {"x"}),
    /* the axis of the contracted dimension of a larger operand can still be used in the result: there they do not
     * conflict */
    CASE(product, {"64x16 None,x", "16x8 None,x"}, {"None,x"}),
    CASE(batched, {"8x4x4 x", "8x4x4 None,None,y"}, {"x,None,y"}),
    CASE(heads, {"8x4x4x4 x,None,y", "8x4x4x4"}, {"x,y"}),
    /* backward, into what comes from the host */
    CASE(host_turned, {"8x16"}, {"x,y", "y,x"}),
    CASE(host_product, {"8x16", "16x8"}, {"x,y", "x", "None,y"}),
    CASE(constrained_input, {"8x16"}, {"y", "y"}),
    CASE(bias, {"8x16 None,y", "16"}, {"None,y", "y"}),
    CASE(rows_added, {"8x16 x,y", "8"}, {"x", "x"}),
    /* rounds: an addition before the product whose result it reads */
    CASE(product_then_added, {"64x16 x", "16x32", "64x32 None,x"}, {"None,x"}),
    /* constraints: open dimensions are refined, closed ones are not */
    CASE(half_open, {"8x16 x"}, {"x,y"}),
    CASE(half_open, {"8x16"}, {"None,y"}),
    CASE(half_open, {"8x16 y"}, {"None,y"}),
    CASE(half_closed, {"8x16 x"}, {"None,y"}),
    CASE(open_then_used, {"8x16", "8x16 x"}, {"x"}),
    CASE(mapped, {"4x8 y"}, {"y,x"}),
    CASE(mapped, {"4x8"}, {"None,x"}),
    /* reshapes: shared factors, major first; a minor one only when the major ones are used up */
    CASE(regroup, {"16x6 x"}, {"x"}),
    CASE(regroup, {"16x6 (x,y)"}, {"(x,y)"}),
    CASE(merge, {"8x16 x,y"}, {"x"}),
    CASE(merge, {"8x16 (x,y)"}, {"(x,y)"}),
    CASE(merge, {"2x64 x,y"}, {"(x,y)"}),
    CASE(merge, {"8x16 None,y"}, {""}),
    CASE(split, {"16x16 y,x"}, {"y,None,x"}),
    CASE(split_major, {"16x16 (x,y)"}, {"x,y"}),
    CASE(unit_dims, {"8x16 x,y"}, {"None,x,None,y"}),
    /* constants carry no axes from one user to another: each user has its own */
    CASE(ones_shared, {"8x16 x", "8x16 None,y"}, {"x", "None,y"}),
    CASE(constant_given, {"8x16 x"}, {"x", ""}),
    CASE(constant_wanted, {"8x16 x,y"}, {"x,y"}),
    /* shifted dimensions, and those that are not split, keep their axes */
    CASE(side_by_side, {"8x16 x", "8x16"}, {"x"}),
    CASE(side_by_side, {"8x16 x,y", "8x16 x,y"}, {"x,y"}),
    CASE(one_below_other, {"8x16 x,y", "8x16"}, {"x,y"}),
    CASE(padded, {"8x16 x,y"}, {"x,y"}),
    CASE(sliced, {"8x16 x,y"}, {"x,y"}),
    CASE(sorted, {"8x16 x,y"}, {"x,y"}),
    CASE(summed_along, {"8x16 x,y"}, {"x,y"}),
    /* the indexed operand does not count; the index and the other dimensions do */
    CASE(taken, {"16x8 None,y", "8 x"}, {"x,y"}),
    CASE(taken, {"16x8 y", "8 x"}, {"x"}),
    /* loops, branches: inputs, the body's values and results have one sharding */
    CASE(from_zeros, {"8x16 x,y"}, {"x,y"}),
    CASE(scanned, {"4x8x16 None,x,y"}, {"x,y", "None,x,y"}),
    CASE(until_large, {"8x16 x", "8x16"}, {"x", "x"}),
    CASE(chosen, {"8x16 x", "8x16"}, {"x", "x"}),
};

/* "8x16 x,y": an array with this sharding; of zeros, which are also valid indexes. */
static oly_array make(const char *text)
{
    int64_t shape[OLY_MAX_RANK];
    int rank = 0;
    char *end = NULL;
    do
        shape[rank++] = strtoll(end ? end + 1 : text, &end, 10);
    while (*end == 'x');
    oly_array x = oly_zeros_shape(OLY_FLOAT32, rank, shape);
    return *end ? oly_device_put(x, oly_named(mesh, end)) : x;
}

static bool check_case(int k)
{
    bool right = true;
    oly_array in[3], out[3] = {NULL}, *wanted[3];
    int n_in = 0, n_out = 0;
    for (; n_in < 3 && cases[k].in[n_in]; n_in++)
        in[n_in] = make(cases[k].in[n_in]);
    for (; n_out < 3 && cases[k].out[n_out]; n_out++)
        wanted[n_out] = &out[n_out];
    oly_call_n(oly_jit_with(cases[k].program, cases[k].name, n_in, n_out, (oly_jit_options){.user = NULL}), n_in, in,
               n_out, wanted);
    for (int j = 0; j < n_out; j++) {
        char is[256];
        oly_sharding s = oly_sharding_of(out[j]);
        oly_spec_str(s, is, sizeof is);
        if (!oly_sharding_equivalent(s, oly_named(mesh, cases[k].out[j]), oly_rank(out[j]), oly_shape(out[j])))
            right = false, print_error("%s of %s and %s: result %d is %s, not %s\n", cases[k].name, cases[k].in[0],
                                       n_in > 1 ? cases[k].in[1] : "nothing", j, is, cases[k].out[j]);
    }
    return right;
}

static int setup(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    mesh = oly_make_mesh("x=2, y=4");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    oly_finalize();
    return 0;
}

static void results_are_placed_as_the_rules_say(void **state)
{
    (void)state;
    int wrong = 0;
    for (int k = 0; k < (int)(sizeof cases / sizeof cases[0]); k++)
        OLY_SCOPE
        {
            wrong += !check_case(k);
        }
    assert_int_equal(wrong, 0);
}

/* A conflict that the operands' sizes leave open is decided by the requested results. */
static void wanted_results_decide(void **state)
{
    (void)state;
    oly_array out, in[] = {make("8x16 x"), make("8x16 None,x")};
    oly_sharding wanted[] = {oly_named(mesh, "None, x")};
    oly_call(oly_jit(add, 2, 1, .out_shardings = wanted), OLY_IN(in[0], in[1]), OLY_OUT(out));
    assert_true(oly_sharding_of(out) == wanted[0]);
}

/* Inside an automatic program the Explicit axis stays where the type has it, and no other value gets it unless
 * requested. */
static void explicit_axes_stay(void **state)
{
    (void)state;
    oly_mesh mixed = oly_make_mesh("x=2:explicit, y=4");
    oly_array x = oly_device_put(make("8x16"), oly_named(mixed, "x, y"));
    char is[256];
    oly_spec_str(oly_sharding_of(oly_apply(oly_jit(half_sum, 1, 1), x)), is, sizeof is);
    assert_string_equal(is, "P('x',)");
}

/* -- several meshes -------------------------------------------------------------------------------------------------- */

PROGRAM(doubled, out[0] = oly_mul(in[0], 2))
PROGRAM(summed, out[0] = oly_psum(in[0], "q"))
PROGRAM(line_then_grid, const oly_mesh *m = user; oly_array t;
        oly_shard_map(doubled, NULL, m[0], OLY_IN(in[0]), OLY_SPECS("x"), OLY_OUT(t), OLY_SPECS("x"));
        oly_shard_map(summed, NULL, m[1], OLY_IN(t), OLY_SPECS("(p,q)"), OLY_OUT(out[0]), OLY_SPECS("p")))
PROGRAM(grid_then_grid, const oly_mesh *m = user; oly_array t = oly_add(in[0], 1);
        out[0] = oly_with_sharding_constraint(t, oly_named(m[2], "(u,v)"));
        out[1] = oly_with_sharding_constraint(t, oly_named(m[2], "u")))

/* Meshes of the same devices are read as one grid: values with equal placements do not move, and results have the
 * program's meshes. {x: 8} is a run of {p: 2, q: 4}; {p: 2, q: 4} and {u: 4, v: 2} share {2, 2, 2}. */
static void meshes_of_the_same_devices_share_a_grid(void **state)
{
    (void)state;
    oly_mesh m[] = {oly_make_mesh("x=8"), oly_make_mesh("p=2, q=4"), oly_make_mesh("u=4, v=2")};
    oly_array x = oly_device_put(oly_arange(16, OLY_FLOAT32), oly_named(m[0], "x")), y, z;
    oly_plan_costs costs;
    float sums[4], all[16];
    oly_fn f = oly_jit(line_then_grid, 1, 1, .user = m);
    assert_int_equal(oly_costs(&costs, f, x), OLY_OK);
    assert_int_equal(costs.collectives, 1); /* the sum over q */
    y = oly_apply(f, x);
    assert_true(oly_sharding_of(y) == oly_named(m[1], "p"));
    assert_int_equal(oly_process_allgather(y, sums, sizeof sums), OLY_OK);
    assert_true(sums[0] == 24 && sums[1] == 32 && sums[2] == 88 && sums[3] == 96);

    x = oly_device_put(x, oly_named(m[1], "(p,q)"));
    f = oly_jit(grid_then_grid, 1, 2, .user = m);
    assert_int_equal(oly_costs(&costs, f, x), OLY_OK);
    assert_int_equal(costs.collectives, 1); /* the second constraint's gather */
    oly_call(f, OLY_IN(x), OLY_OUT(y, z));
    assert_true(oly_sharding_of(y) == oly_named(m[2], "(u,v)") && oly_sharding_of(z) == oly_named(m[2], "u"));
    for (int k = 0; k < 2; k++) {
        assert_int_equal(oly_process_allgather(k ? z : y, all, sizeof all), OLY_OK);
        for (int j = 0; j < 16; j++)
            assert_true(all[j] == (float)(j + 1));
    }
}

static void open_dimensions_are_for_constraints_only(void **state)
{
    (void)state;
    char is[256];
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_sharding open = oly_named(mesh, "UNCONSTRAINED, y");
    oly_spec_str(open, is, sizeof is);
    assert_string_equal(is, "P(UNCONSTRAINED, 'y')");
    assert_true(open != oly_named(mesh, "None, y"));
    assert_null(oly_device_put(make("8x16"), open));
    assert_non_null(strstr(oly_last_error(), "UNCONSTRAINED"));
    oly_clear_error();
    assert_null(oly_jit(sine, 1, 1, .out_shardings = &open));
    oly_clear_error();
    assert_null(oly_named(oly_make_mesh("x=8:explicit"), "UNCONSTRAINED"));
    assert_non_null(strstr(oly_last_error(), "Auto"));
    oly_clear_error();
    oly_set_error_mode(OLY_ERRORS_ABORT);
    oly_spec_str(oly_sharding_of(oly_with_sharding_constraint(make("8x16 x"), open)), is, sizeof is); /* eager */
    assert_string_equal(is, "P('x', 'y')");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(results_are_placed_as_the_rules_say, setup, teardown),
        cmocka_unit_test_setup_teardown(wanted_results_decide, setup, teardown),
        cmocka_unit_test_setup_teardown(explicit_axes_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(meshes_of_the_same_devices_share_a_grid, setup, teardown),
        cmocka_unit_test_setup_teardown(open_dimensions_are_for_constraints_only, setup, teardown),
    };
    return CHECK_MAIN(tests);
}
