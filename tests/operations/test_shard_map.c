/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8  oly_shard_map and collectives: values, types inside, communication, errors. */
#include "check_session.h"
#include <math.h>

static oly_mesh row, grid; /* i=8; x=2, y=4 */

static void start(void)
{
    check_begin();
    assert_int_equal(oly_device_count(), 8);
    row = oly_make_mesh("i=8");
    grid = oly_make_mesh("x=2, y=4");
}

static oly_array count(int64_t n)
{
    return oly_arange(n, OLY_INT32);
}

/* One input, one output. */
static oly_array map(oly_function f, oly_mesh mesh, oly_array x, const char *in, const char *out)
{
    oly_array y = NULL;
    oly_shard_map(f, NULL, mesh, OLY_IN(x), OLY_SPECS(in), OLY_OUT(y), OLY_SPECS(out));
    return y;
}

#define BODY(name, expression)                                                                                         \
    static void name(const oly_array *in, oly_array *out, void *user)                                                  \
    {                                                                                                                  \
        (void)user, (void)in;                                                                                          \
        out[0] = (expression);                                                                                         \
    }

/* -- the table of docs/semantics.md, section 7 ----------------------------------------------------------------------- */
BODY(shard_sum, oly_sum(in[0], .keepdims = true))
BODY(total, oly_psum(oly_sum(in[0]), "i"))
BODY(same, in[0])
BODY(sum_x, oly_psum(in[0], "x"))
BODY(sum_i, oly_psum(in[0], "i"))
BODY(mean_i, oly_pmean(in[0], "i"))
BODY(max_i, oly_pmax(in[0], "i"))
BODY(min_i, oly_pmin(in[0], "i"))
BODY(index_i, oly_reshape(oly_axis_index("i"), 1))
BODY(index_xy, oly_reshape(oly_axis_index("x, y"), 1, 1))
BODY(index_yx, oly_reshape(oly_axis_index("(y, x)"), 1, 1))

static void sums_and_indexes(void **state)
{
    (void)state;
    start();
    CHECK_NEAR(map(shard_sum, row, count(32), "i", "i"), 6, 22, 38, 54, 70, 86, 102, 118);
    CHECK_NEAR(map(total, row, count(32), "i", ""), 496);
    CHECK_NEAR(map(same, row, count(4), "", "i"), 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2,
               3, 0, 1, 2, 3, 0, 1, 2, 3);
    CHECK_NEAR(map(sum_x, grid, oly_reshape(count(32), 4, 8), "x, y", "None, y"), 16, 18, 20, 22, 24, 26, 28, 30, 32,
               34, 36, 38, 40, 42, 44, 46);
    CHECK_NEAR(map(sum_i, row, count(3), "", ""), 0, 8, 16);
    CHECK_NEAR(map(mean_i, row, oly_arange(8, OLY_FLOAT32), "i", ""), 3.5);
    CHECK_NEAR(map(max_i, row, oly_arange(8, OLY_FLOAT32), "i", ""), 7);
    CHECK_NEAR(map(min_i, row, oly_arange(8, OLY_FLOAT32), "i", ""), 0);
    check_type(map(mean_i, row, count(8), "i", ""), "float32[1]");
    CHECK_NEAR(map(sum_i, row, oly_gt(count(8), 2), "i", ""), 5);
    check_type(map(sum_i, row, oly_gt(count(8), 2), "i", ""), "int32[1]");
    CHECK_NEAR(map(index_i, row, count(8), "i", "i"), 0, 1, 2, 3, 4, 5, 6, 7);
    CHECK_NEAR(map(index_xy, grid, count(8), "", "x, y"), 0, 1, 2, 3, 4, 5, 6, 7);
    CHECK_NEAR(map(index_yx, grid, count(8), "", "x, y"), 0, 2, 4, 6, 1, 3, 5, 7);
    check_end();
}

BODY(gather, oly_all_gather(in[0], "i"))
BODY(gather_1, oly_all_gather(in[0], "i", .axis = 1))
BODY(gather_last, oly_all_gather(in[0], "i", .axis = -1))
BODY(to_all_last, oly_all_to_all(in[0], "i", -1, -2, true))
BODY(gather_tiled, oly_all_gather(in[0], "i", .tiled = true))
BODY(gather_invariant, oly_all_gather(in[0], "i", .tiled = true, .invariant = true))
BODY(gather_yx, oly_all_gather(in[0], "y, x", .tiled = true, .invariant = true))
BODY(scatter, oly_psum_scatter(in[0], "i"))
BODY(regroup, oly_psum(oly_reshape(oly_reshape(in[0], 3, 8), 24), "x"))
BODY(scatter_tiled, oly_psum_scatter(in[0], "i", .tiled = true))
BODY(scatter_yx, oly_psum_scatter(in[0], "y, x", .tiled = true))
BODY(to_all, oly_all_to_all(in[0], "i", 0, 0, false))
BODY(to_all_tiled, oly_all_to_all(in[0], "i", 1, 0, true))
BODY(ring, oly_ppermute(in[0], "i", OLY_PAIRS({0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 0})))
BODY(partial, oly_ppermute(in[0], "i", OLY_PAIRS({0, 1}, {1, 2})))
BODY(backwards_xy,
     oly_ppermute(in[0], "x, y", OLY_PAIRS({0, 7}, {1, 6}, {2, 5}, {3, 4}, {4, 3}, {5, 2}, {6, 1}, {7, 0})))
BODY(ring_y, oly_ppermute(in[0], "y", OLY_PAIRS({0, 1}, {1, 2}, {2, 3}, {3, 0})))

BODY(scatter_last_of_seven, oly_psum_scatter(oly_reshape(in[0], 1, 1, 1, 1, 1, 2, 16), "i", .axis = 6, .tiled = true))

static void exchanges(void **state)
{
    (void)state;
    double all[64], turned[64];
    for (int k = 0; k < 64; k++) {
        all[k] = k;
        turned[k] = k % 8 * 8 + k / 8;
    }
    start();
    oly_array x = map(gather, row, count(8), "i", "i");
    assert_int_equal(oly_rank(x), 2);
    assert_int_equal(oly_dim(x, 0), 64);
    x = map(gather_1, row, oly_reshape(count(48), 16, 3), "i", "i");
    assert_int_equal(oly_rank(x), 3);
    assert_int_equal(oly_dim(x, 0), 16);
    assert_int_equal(oly_dim(x, 1), 8);
    x = map(gather_last, row, oly_reshape(count(48), 16, 3), "i", "i"); /* from the end */
    assert_int_equal(oly_rank(x), 3);
    assert_int_equal(oly_dim(x, 1), 3);
    assert_int_equal(oly_dim(x, 2), 8);
    check_near(map(to_all_last, row, oly_reshape(count(64), 8, 8), "i", "None, i"), 64, all);
    x = map(gather_tiled, row, count(8), "i", "i");
    assert_int_equal(oly_dim(x, 0), 64);
    CHECK_NEAR(oly_slice(x, "5:13"), 5, 6, 7, 0, 1, 2, 3, 4);
    CHECK_NEAR(map(gather_invariant, row, count(8), "i", ""), 0, 1, 2, 3, 4, 5, 6, 7);
    CHECK_NEAR(map(gather_yx, grid, count(8), "(x, y)", ""), 0, 4, 1, 5, 2, 6, 3, 7);
    CHECK_NEAR(map(scatter_tiled, row, count(64), "i", "i"), 224, 232, 240, 248, 256, 264, 272, 280);
    double sums[32];
    for (int k = 0; k < 32; k++) /* device k / 4, row k / 2 % 2 */
        sums[k] = 32 * 28 + 8 * (k / 2 % 2 * 16 + k / 4 * 2 + k % 2);
    check_near(map(scatter_last_of_seven, row, count(256), "i", "i"), 32, sums);
    x = map(scatter, row, oly_reshape(count(64), 64), "i", "");
    assert_null(x); /* varies */
    oly_clear_error();
    CHECK_NEAR(map(scatter_yx, grid, count(8), "", "(x, y)"), 0, 16, 32, 48, 8, 24, 40, 56);
    check_near(map(to_all, row, count(64), "i", "i"), 64, turned);
    x = map(to_all_tiled, row, oly_reshape(count(64), 8, 8), "i", "None, i");
    check_near(x, 64, all);
    CHECK_NEAR(map(ring, row, oly_add(count(8), 1), "i", "i"), 8, 1, 2, 3, 4, 5, 6, 7);
    CHECK_NEAR(map(partial, row, oly_add(count(8), 1), "i", "i"), 0, 1, 2, 0, 0, 0, 0, 0);
    CHECK_NEAR(map(backwards_xy, grid, count(8), "(x, y)", "(x, y)"), 7, 6, 5, 4, 3, 2, 1, 0);
    CHECK_NEAR(map(backwards_xy, grid, count(8), "(y, x)", "(y, x)"), 7, 6, 5, 4, 3, 2, 1, 0);
    CHECK_NEAR(map(ring_y, grid, count(8), "(x, y)", "(x, y)"), 3, 0, 1, 2, 7, 4, 5, 6);
    check_end();
}

/* -- types inside ---------------------------------------------------------------------------------------------------- */
static void look(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    check_type(in[0], "int32[4]{V:i}");
    check_type(in[1], "int32[16]");
    check_type(oly_psum(oly_sum(in[0]), "i"), "int32[]");
    check_type(oly_axis_index("i"), "int32[]{V:i}");
    check_type(oly_pvary(in[1], "i"), "int32[16]{V:i}");
    check_type(oly_zeros_like(in[0]), "int32[4]{V:i}");
    check_type(oly_full_like(in[1], 2), "int32[16]");
    check_type(oly_add(in[1], oly_axis_index("i")), "int32[16]{V:i}");
    check_type(oly_ppermute(in[1], "i", OLY_PAIRS({0, 1})), "int32[16]{V:i}");
    check_type(oly_all_gather(in[0], "i"), "int32[8,4]{V:i}");
    check_type(oly_all_gather(in[0], "i", .invariant = true, .axis = 1), "int32[4,8]");
    check_type(oly_pmax(in[0], "i"), "int32[4]");
    assert_int_equal(oly_axis_size("i"), 8);
    out[0] = oly_psum(1, "i");
}

static void look_at_both(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    check_type(in[0], "int32[2,2]{V:(x,y)}");
    check_type(in[1], "int32[2]{V:(x,y)}");
    check_type(oly_psum(in[0], "x"), "int32[2,2]{V:y}");
    assert_int_equal(oly_axis_size("x"), 2);
    assert_int_equal(oly_axis_size("x, y"), 8);
    out[0] = oly_psum(in[0], "x, y");
}

static void types_tell_what_varies(void **state)
{
    (void)state;
    oly_array y = NULL;
    start();
    oly_shard_map(look, NULL, row, OLY_IN(count(32), count(16)), OLY_SPECS("i", ""), OLY_OUT(y), OLY_SPECS(""));
    CHECK_NEAR(y, 8);
    oly_shard_map(look_at_both, NULL, grid, OLY_IN(oly_reshape(count(32), 4, 8), count(16)),
                  OLY_SPECS("x, y", "(x, y)"), OLY_OUT(y), OLY_SPECS(""));
    CHECK_NEAR(y, 88, 96, 152, 160);
    check_end();
}

/* -- checks -------------------------------------------------------------------------------------------------------- */
static void fails(oly_array y, oly_status status, const char *words)
{
    assert_null(y);
    assert_int_equal(oly_last_status(), status);
    if (!strstr(oly_last_error(), words))
        fail_msg("\"%s\" is not in: %s", words, oly_last_error());
    oly_clear_error();
}

BODY(sum_unknown, oly_psum(in[0], "k"))
BODY(twice_from, oly_ppermute(in[0], "i", OLY_PAIRS({0, 1}, {0, 2})))
BODY(twice_to, oly_ppermute(in[0], "i", OLY_PAIRS({0, 1}, {2, 1})))
BODY(out_of_range, oly_ppermute(in[0], "i", OLY_PAIRS({0, 8})))
BODY(uneven_scatter, oly_psum_scatter(in[0], "i", .tiled = true))
BODY(gather_nowhere, oly_all_gather(in[0], "i", .axis = 3))
BODY(gather_before, oly_all_gather(in[0], "i", .axis = -3))
BODY(sum_twice, oly_psum(in[0], "x, x"))

static void forget(const oly_array *in, oly_array *out, void *user)
{
    (void)in, (void)out, (void)user;
}

static void bad_maps_are_errors(void **state)
{
    (void)state;
    start();
    fails(map(shard_sum, row, count(32), "i", ""), OLY_SHARDING,
          "require replication which can't be statically inferred");
    fails(map(total, row, count(32), "i", "i"), OLY_SHARDING, "1 entries");
    fails(map(same, row, count(12), "i", "i"), OLY_SHAPE, "dimension 0 of size 12");
    fails(map(same, row, count(12), "i", "i"), OLY_SHAPE, "argument 0 of f");
    fails(map(same, row, count(12), "i", "i"), OLY_SHAPE, "'i' of size 8");
    fails(map(same, row, count(8), "i, i", "i"), OLY_SHARDING, "duplicate");
    fails(map(same, row, count(8), "k", "i"), OLY_SHARDING, "'k' is not found");
    fails(map(same, row, count(8), "None, i", "i"), OLY_SHARDING, "2 entries");
    fails(map(sum_unknown, row, count(8), "i", "i"), OLY_SHARDING, "unbound axis name 'k'");
    fails(map(sum_twice, grid, count(8), "(x, y)", ""), OLY_SHARDING, "twice");
    fails(map(twice_from, row, count(8), "i", "i"), OLY_INVALID, "unique");
    fails(map(twice_to, row, count(8), "i", "i"), OLY_INVALID, "unique");
    fails(map(out_of_range, row, count(8), "i", "i"), OLY_INVALID, "out of range");
    fails(map(uneven_scatter, row, count(40), "i", "i"), OLY_SHAPE, "do not divide");
    fails(map(gather_nowhere, row, count(8), "i", "i"), OLY_SHAPE, "does not exist");
    fails(map(gather_before, row, count(8), "i", "i"), OLY_SHAPE, "does not exist");
    fails(map(forget, row, count(8), "i", "i"), OLY_INVALID, "did not store its output 0");
    fails(map(NULL, row, count(8), "i", "i"), OLY_INVALID, "a mapped function");
    fails(oly_psum(count(8), "i"), OLY_TRACE, "inside oly_shard_map only");
    oly_array one = oly_device_put(count(8), oly_single_device(oly_get_device(3)));
    fails(map(same, row, one, "i", "i"), OLY_DEVICES, "");
    assert_null(map(same, row, NULL, "i", "i"));
    oly_clear_error();
    check_end();
}

static void without_checks(void **state)
{
    (void)state;
    oly_array y = NULL;
    start();
    oly_shard_map_with(shard_sum, NULL, row, OLY_MANUAL(.unchecked = true), OLY_IN(count(32)), OLY_SPECS("i"),
                       OLY_OUT(y), OLY_SPECS(""));
    CHECK_NEAR(y, 6); /* the first device's */
    oly_shard_map_with(total, NULL, row, OLY_MANUAL(.unchecked = true), OLY_IN(count(32)), OLY_SPECS("i"), OLY_OUT(y),
                       OLY_SPECS(""));
    CHECK_NEAR(y, 496);
    check_end();
}

/* -- where maps may be --------------------------------------------------------------------------------------------- */
static void halo(const oly_array *in, oly_array *out, void *user) /* a periodic three-point sum */
{
    (void)user;
    oly_array left = oly_ppermute(oly_slice(in[0], "-1:"), "i",
                                  OLY_PAIRS({0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 0}));
    oly_array right = oly_ppermute(oly_slice(in[0], ":1"), "i",
                                   OLY_PAIRS({1, 0}, {2, 1}, {3, 2}, {4, 3}, {5, 4}, {6, 5}, {7, 6}, {0, 7}));
    oly_array wide = oly_concatenate(0, left, in[0], right);
    out[0] = oly_add(oly_add(oly_slice(wide, ":-2"), oly_slice(wide, "1:-1")), oly_slice(wide, "2:"));
}

static void step(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    halo(carry, carry, user);
}

static void many_steps(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, 3, step, 1, out, user);
}

static void keeps_adding(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_add(carry[0], oly_psum(oly_add(oly_axis_index("i"), i), "i"));
}

static void loop_of_sums(const oly_array *in, oly_array *out, void *user)
{
    (void)in;
    out[0] = oly_scalar(0, OLY_INT32);
    oly_fori(0, 4, keeps_adding, 1, out, user);
}

static void turns_varying(oly_array i, oly_array *carry, void *user)
{
    (void)user, (void)i;
    carry[0] = oly_add(carry[0], oly_axis_index("i"));
}

static void loop_that_changes(const oly_array *in, oly_array *out, void *user)
{
    (void)in;
    out[0] = oly_scalar(0, OLY_INT32);
    oly_fori(0, 4, turns_varying, 1, out, user);
}

/* Whether a device continues differs along one axis at first, and along both later. */
static oly_array not_yet(const oly_array *carry, void *user)
{
    (void)user;
    return oly_lt(oly_add(carry[0], oly_mul(oly_max(carry[1]), 0)), 3);
}
static void count_and_swap(oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_add(carry[0], 1);
    carry[1] = carry[2];
}
static void loop_that_spreads(const oly_array *in, oly_array *out, void *user)
{
    oly_array carry[3] = {oly_scalar(0, OLY_INT32), oly_psum(in[0], "y"), in[0]};
    oly_while(not_yet, count_and_swap, 3, carry, user);
    out[0] = oly_add(carry[1], carry[0]);
}

static void loops_inside(void **state)
{
    (void)state;
    double u[32], v[32];
    start();
    for (int k = 0; k < 32; k++)
        u[k] = k;
    for (int n = 0; n < 3; n++) {
        for (int k = 0; k < 32; k++)
            v[k] = u[(k + 31) % 32] + u[k] + u[(k + 1) % 32];
        memcpy(u, v, sizeof u);
    }
    check_near(map(many_steps, row, count(32), "i", "i"), 32, u);
    CHECK_NEAR(map(loop_of_sums, row, count(8), "i", ""), 4 * 28 + 8 * 6);
    fails(map(loop_that_changes, row, count(8), "i", ""), OLY_SHARDING, "varies");
    oly_array spread = NULL;
    oly_shard_map_with(loop_that_spreads, NULL, grid, OLY_MANUAL(.unchecked = true),
                       OLY_IN(oly_reshape(count(8), 2, 4)), OLY_SPECS("x, y"), OLY_OUT(spread), OLY_SPECS("x, y"));
    CHECK_NEAR(spread, 3, 4, 5, 6, 7, 8, 9, 10);
    check_end();
}

static void jitted(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array y = oly_mul(in[0], 2);
    oly_shard_map(total, NULL, row, OLY_IN(y), OLY_SPECS("i"), OLY_OUT(y), OLY_SPECS(""));
    out[0] = oly_add(y, 1);
}

static oly_array outside;
BODY(uses_outside, oly_psum(oly_sum(oly_mul(in[0], oly_slice(outside, ":4"))), "i"))

static void inside_functions_and_with_captures(void **state)
{
    (void)state;
    start();
    CHECK_NEAR(oly_apply(oly_jit(jitted, 1, 1), count(32)), 993);
    outside = oly_device_put(oly_add(count(8), 1), oly_named(row, "i"));
    CHECK_NEAR(map(uses_outside, row, count(32), "i", ""), 112 * 1 + 120 * 2 + 128 * 3 + 136 * 4);
    check_end();
}

/* -- some axes Manual ---------------------------------------------------------------------------------------------- */
static void half_manual(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    check_type(in[0], "int32[2,8]{V:x}");
    assert_null(oly_psum(in[0], "y"));
    assert_non_null(strstr(oly_last_error(), "not manual here"));
    oly_clear_error();
    out[0] = oly_psum(oly_with_sharding_constraint(in[0], oly_named(grid, "None, y")), "x");
}

static void inner_body(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    check_type(in[0], "int32[2,2]{V:(x,y)}");
    out[0] = oly_psum(in[0], "x");
    out[1] = oly_psum(in[0], "x, y");
    out[2] = oly_add(oly_mul(oly_axis_index("x"), 10), oly_axis_index("y, x"));
    out[2] = oly_reshape(out[2], 1, 1);
}

static void outer_body(const oly_array *in, oly_array *out, void *user)
{
    oly_array a = NULL, b = NULL, c = NULL;
    check_type(in[0], "int32[2,8]{V:x}");
    oly_shard_map(inner_body, user, grid, OLY_IN(in[0]), OLY_SPECS("None, y"), OLY_OUT(a, b, c),
                  OLY_SPECS("None, y", "", "None, y"));
    check_type(a, "int32[2,8]");
    check_type(c, "int32[1,4]{V:x}");
    out[0] = a;
    out[1] = b;
    out[2] = c;
}

static void partial_and_nested(void **state)
{
    (void)state;
    oly_array x, y = NULL, z = NULL, w = NULL;
    start();
    x = oly_device_put(oly_reshape(count(32), 4, 8), oly_named(grid, "x, y"));
    oly_shard_map_with(half_manual, NULL, grid, OLY_MANUAL(.axis_names = "x"), OLY_IN(x), OLY_SPECS("x"), OLY_OUT(y),
                       OLY_SPECS(""));
    CHECK_NEAR(y, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46);
    oly_shard_map_with(half_manual, NULL, grid, OLY_MANUAL(.axis_names = "x"), OLY_IN(x), OLY_SPECS("x, y"), OLY_OUT(y),
                       OLY_SPECS(""));
    fails(y, OLY_SHARDING, "not among the manual axes");
    oly_shard_map_with(outer_body, NULL, grid, OLY_MANUAL(.axis_names = "x"), OLY_IN(x), OLY_SPECS("x"),
                       OLY_OUT(y, z, w), OLY_SPECS("", "", "x"));
    CHECK_NEAR(y, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46);
    CHECK_NEAR(z, 88, 96, 152, 160);
    CHECK_NEAR(w, 0, 2, 4, 6, 11, 13, 15, 17);
    check_end();
}

/* -- Explicit axes --------------------------------------------------------------------------------------------------- */
static void explicit_body(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    check_type(in[0], "int32[2,8@y]{V:x}");
    out[0] = oly_psum(in[0], "x");
    check_type(out[0], "int32[2,8@y]");
    oly_mesh mesh = oly_make_mesh("x=2:explicit, y=4:explicit");
    oly_array moved = oly_reshard(in[0], oly_named(mesh, "None, None"));
    check_type(moved, "int32[2,8]{V:x}");
    moved = oly_reshard(moved, oly_named(mesh, "None, y"));
    check_type(moved, "int32[2,8@y]{V:x}");
    assert_null(oly_reshard(in[0], oly_named(mesh, "x")));
    assert_non_null(strstr(oly_last_error(), "manual in this oly_shard_map"));
    oly_clear_error();
    out[1] = oly_mul(moved, 2);
}

static void explicit_axes(void **state)
{
    (void)state;
    oly_array x, y = NULL, z = NULL;
    start();
    oly_mesh mesh = oly_make_mesh("x=2:explicit, y=4:explicit");
    x = oly_device_put(oly_reshape(count(32), 4, 8), oly_named(mesh, "x, y"));
    oly_shard_map_with(explicit_body, NULL, mesh, OLY_MANUAL(.axis_names = "x"), OLY_IN(x), OLY_SPECS("x"),
                       OLY_OUT(y, z), OLY_SPECS("", "x"));
    CHECK_NEAR(y, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46);
    check_type(y, "int32[2,8@y]");
    check_type(z, "int32[4@x,8@y]");
    y = map(look_at_both, mesh, x, "y, x", "");
    fails(y, OLY_SHARDING, "in_specs[0]");
    y = map(regroup, mesh, oly_device_put(oly_reshape(count(48), 8, 6), oly_named(mesh, "x")), "x", "");
    assert_int_equal(oly_size(y), 24); /* shards may be reshaped freely */
    y = map(scatter_yx, mesh, oly_device_put(count(64), oly_named(mesh, "(x, y)")), "(x, y)", "(x, y)");
    check_type(y, "int32[8@(x,y)]");
    y = map(gather_yx, mesh, oly_device_put(count(8), oly_named(mesh, "(x, y)")), "(x, y)", "");
    CHECK_NEAR(y, 0, 4, 1, 5, 2, 6, 3, 7);
    check_end();
}

/* -- corner cases of meshes and arrays ----------------------------------------------------------------------------- */
BODY(sum_k, oly_psum(in[0], "k"))
BODY(index_k, oly_add(in[0], oly_axis_index("k")))
BODY(everything_k, oly_all_gather(oly_ppermute(in[0], "k", OLY_PAIRS({0, 0})), "k", .tiled = true))

static void edges(void **state)
{
    (void)state;
    start();
    oly_mesh four = oly_make_mesh("i=4"), thin = oly_make_mesh("k=1, i=8"), last;
    last = oly_mesh_from_devices(1, (const char *[]){"i"}, (int[]){4}, (int[]){4, 5, 6, 7});
    oly_array y = map(sum_i, four, count(32), "i", "");
    int32_t sums[8] = {48, 52, 56, 60, 64, 68, 72, 76}, got[8];
    if (oly_process_index() == 0) { /* has all four devices */
        assert_int_equal(oly_get(y, got, sizeof got), OLY_OK);
        assert_memory_equal(got, sums, sizeof got);
    }
    y = map(sum_i, last, count(32), "i", "");
    if (oly_process_index() == oly_process_count() - 1)
        assert_int_equal(oly_shard_count(y), 4);
    y = map(sum_k, thin, count(8), "k", "");
    CHECK_NEAR(y, 0, 1, 2, 3, 4, 5, 6, 7);
    CHECK_NEAR(map(everything_k, thin, count(8), "k", "k"), 0, 1, 2, 3, 4, 5, 6, 7);
    CHECK_NEAR(map(index_k, thin, count(3), "", "k"), 0, 1, 2);
    y = map(sum_i, row, oly_reshape(count(0), 0, 3), "i", "");
    check_type(y, "int32[0,3]");
    y = map(gather_tiled, row, oly_reshape(count(0), 8, 0), "i", "i");
    check_type(y, "int32[64,0]");
    y = map(to_all_tiled, row, oly_reshape(count(0), 0, 8), "i", "None, i");
    check_type(y, "int32[0,8]");
    y = map(total, row, oly_reshape(count(64), 8, 8), "None, i", "");
    CHECK_NEAR(y, 2016);
    check_near(map(shard_sum, row, oly_reshape(count(64), 8, 8), "None, i", "None, i"), 8,
               (double[8]){224, 232, 240, 248, 256, 264, 272, 280});
    y = map(same, grid, oly_reshape_shape(count(64), 11, (int64_t[]){2, 4, 8, 1, 1, 1, 1, 1, 1, 1, 1}), "x, y", "x, y");
    fails(y, OLY_SHAPE, "more than 12 dimensions");
    y = map(same, row, oly_reshape_shape(count(64), 11, (int64_t[]){8, 8, 1, 1, 1, 1, 1, 1, 1, 1, 1}), "i", "None, i");
    assert_int_equal(oly_dim(y, 1), 64);
    check_end();
}

/* 134, eight times: 1072. Partial sums like 670 have more bits than bfloat16. */
BODY(narrow_scatter, oly_psum_scatter(oly_psum(in[0], "i"), "i", .axis = 0, .tiled = true))
static void narrow_sums_are_computed_in_float32(void **state)
{
    (void)state;
    start();
    oly_array x = oly_astype(oly_full(OLY_ARG(134), OLY_FLOAT32, 8), OLY_BFLOAT16);
    check_type(map(sum_i, row, x, "i", ""), "bfloat16[1]");
    CHECK_NEAR(map(sum_i, row, x, "i", ""), 1072);
    CHECK_NEAR(map(sum_i, row, oly_astype(oly_full(OLY_ARG(1031), OLY_FLOAT32, 8), OLY_FLOAT16), "i", ""), 8248);
    CHECK_NEAR(map(narrow_scatter, row, x, "", "i"), 8576, 8576, 8576, 8576, 8576, 8576, 8576, 8576);
    check_end();
}

/* Sums over devices one after the other, as partial products: the same bits for every distribution over processes. */
BODY(sum_of_sines, oly_psum(oly_sum(oly_sin(in[0])), "i"))

static void same_bits(void **state)
{
    (void)state;
    float mapped, expected = 0;
    start();
    oly_array x = oly_device_put(oly_arange(32, OLY_FLOAT32), oly_named(row, "i"));
    oly_get(map(sum_of_sines, row, x, "i", ""), &mapped, sizeof mapped);
    for (int d = 0; d < 8; d++) {
        float own = (float)sin(4.0 * d);
        for (int k = 1; k < 4; k++)
            own += (float)sin(4.0 * d + k);
        expected = d == 0 ? own : expected + own;
    }
    assert_true(memcmp(&mapped, &expected, sizeof expected) == 0);
    check_end();
}

/* -- communication ---------------------------------------------------------------------------------------------------- */
typedef struct wanted {
    oly_function body;
    oly_mesh mesh;
    const char *in, *out;
} wanted;

static void mapped(const oly_array *in, oly_array *out, void *user)
{
    const wanted *w = user;
    oly_shard_map(w->body, NULL, w->mesh, 1, in, &w->in, 1, (oly_array *[]){&out[0]}, &w->out);
}

/* Searches `words` in the explanation of a plan: "total: 1 collective, ..." */
static void expect_plan(oly_function body, oly_mesh mesh, oly_array x, const char *in, const char *out,
                        const char *words, int collectives)
{
    wanted w = {body, mesh, in, out};
    char text[8192] = "", total[64] = "";
    FILE *file = tmpfile();
    oly_array placed = oly_device_put(x, oly_named(mesh, in));
    assert_int_equal(oly_explain(file, oly_jit(mapped, 1, 1, .user = &w), placed), OLY_OK);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    if (oly_process_count() == 1) /* on more, sums take a step within each and one between them */
        snprintf(total, sizeof total, "total: %d collective%s,", collectives, collectives == 1 ? "" : "s");
    if (!strstr(text, words) || !strstr(text, total))
        fail_msg("expected \"%s\" and \"%s\" in\n%s", words, total, text);
}

BODY(local_work, oly_add(oly_mul(oly_sin(in[0]), 2), oly_astype(oly_axis_index("i"), OLY_FLOAT32)))
BODY(local_product, oly_matmul(in[0], oly_transpose(in[0])))

static void plans_are_what_one_would_write(void **state)
{
    (void)state;
    start();
    oly_array x = oly_arange(4096, OLY_FLOAT32), m = oly_reshape(x, 64, 64);
    expect_plan(local_work, row, x, "i", "i", "", 0);
    expect_plan(local_product, row, m, "i", "i", "", 0);
    expect_plan(local_product, row, m, "None, i", "i", "", 0);
    expect_plan(sum_i, row, x, "i", "", "all-reduce", 1);
    expect_plan(sum_x, grid, m, "x, y", "None, y", "all-reduce", 1);
    expect_plan(gather_tiled, row, x, "i", "i", "all-gather", 1);
    expect_plan(gather_invariant, row, x, "i", "", "all-gather", 1);
    expect_plan(gather_yx, grid, x, "(x, y)", "", "all-gather", 1);
    expect_plan(scatter_tiled, row, x, "i", "i", "reduce-scatter", 1);
    expect_plan(scatter_yx, grid, x, "", "(x, y)", "reduce-scatter", 1);
    expect_plan(to_all_tiled, row, m, "i", "None, i", "all-to-all", 1);
    expect_plan(ring, row, x, "i", "i", "permute", 1);
    expect_plan(backwards_xy, grid, x, "(x, y)", "(x, y)", "permute", 1);
    expect_plan(halo, row, x, "i", "i", "permute", 2);
    check_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_indexes),
        cmocka_unit_test(exchanges),
        cmocka_unit_test(types_tell_what_varies),
        cmocka_unit_test(bad_maps_are_errors),
        cmocka_unit_test(without_checks),
        cmocka_unit_test(loops_inside),
        cmocka_unit_test(inside_functions_and_with_captures),
        cmocka_unit_test(partial_and_nested),
        cmocka_unit_test(explicit_axes),
        cmocka_unit_test(edges),
        cmocka_unit_test(narrow_sums_are_computed_in_float32),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(plans_are_what_one_would_write),
    };
    return CHECK_MAIN(tests);
}
