/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Explicit axes across boundaries: moves to another mesh, scans, derivatives of requested shardings, partly manual functions.
 * Types and values as in JAX. */
#include "check_explicit.h"
#include <math.h>

#define F(name) static void name(const oly_array *in, oly_array *out, void *user)

/* Over axes of other names and sizes, of which the old mesh may not have as many. */
static void arrays_move_to_another_mesh(void **state)
{
    (void)state;
    check_begin_on("X=2:explicit, Y=4:explicit");
    oly_mesh other = oly_make_mesh("a=2:explicit, b=2:explicit, c=2:explicit");
    oly_array x = CHECK_NUMBERS_AT("X, Y", 8, 16), moved = oly_reshard(x, oly_named(other, "a, (b, c)"));
    check_type(oly_reshard(x, oly_named(other, "b")), "float32[8@b,16]");
    check_type(oly_reshard(x, oly_named(other, "c")), "float32[8@c,16]");
    check_type(moved, "float32[8@a,16@(b,c)]");
    check_type(oly_add(moved, oly_reshard(x, oly_named(other, "a, (b, c)"))), "float32[8@a,16@(b,c)]");
    OLY_FOR_EACH_SHARD(s, moved)
    {
        assert_int_equal(s.extent[0], 4);
        assert_int_equal(s.extent[1], 4);
    }
    float got[128], wanted[128];
    assert_int_equal(oly_process_allgather(moved, got, sizeof got), OLY_OK);
    assert_int_equal(oly_process_allgather(x, wanted, sizeof wanted), OLY_OK);
    assert_memory_equal(got, wanted, sizeof got);
    check_end();
}

static void add_up(oly_array *c, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    y[0] = c[0] = oly_add(c[0], x[0]);
}

static void scans_do_not_go_along_split_dimensions(void **state)
{
    (void)state;
    check_begin_on("X=2:explicit, Y=4:explicit");
    oly_array x = CHECK_NUMBERS_AT("X", 4, 8), c = oly_zeros(OLY_FLOAT32, 8), y = NULL;
    assert_int_equal(oly_scan(4, false, add_up, 1, &c, 1, &x, 1, &y, NULL), OLY_SHARDING);
    assert_non_null(strstr(oly_last_error(), "[scan_split]"));
    oly_clear_error();
    check_end();
}

F(some_rows)
{
    (void)user;
    int32_t rows[] = {1, 3, 3};
    out[0] = oly_at_get(in[0], OLY_INDEXES(oly_from_host(rows, OLY_INT32, 1, (int64_t[]){3})),
                        .out_sharding = check_at("None, Y"));
}
F(sum_of_some_rows)
{
    some_rows(in, out, user);
    out[0] = oly_sum(oly_mul(out[0], oly_sin(out[0])));
}

/* Rows of a dimension that is split are read where the program says, also by derivatives of derivatives. */
static void derivatives_keep_requested_shardings(void **state)
{
    (void)state;
    check_begin_on("X=2:explicit, Y=4:explicit");
    oly_array x = CHECK_NUMBERS_AT("X, Y", 8, 16), y = NULL, slope = NULL;
    oly_fn gradient = oly_grad(oly_jit(sum_of_some_rows, 1, 1));
    oly_call(oly_jvp(oly_jit(some_rows, 1, 1)), OLY_IN(x, x), OLY_OUT(y, slope));
    check_type(slope, "float32[3,16@Y]");
    slope = NULL;
    oly_call(oly_jvp(gradient), OLY_IN(x, x), OLY_OUT(y, slope));
    check_type(slope, "float32[8@X,16@Y]");
    check_end();
}

F(squares_of_products)
{
    (void)user;
    oly_array weights = oly_reshard(in[1], check_at("None, None, reduced={X}"));
    out[0] = oly_sum(oly_square(oly_matmul(in[0], weights)));
}

/* A reduced value's cotangent is unreduced, but not that of the argument that it was made of. */
static void gradients_of_arrays_without_a_mesh_are_reduced(void **state)
{
    (void)state;
    check_begin_on("X=2:explicit, Y=4:explicit");
    oly_array x = CHECK_NUMBERS_AT("X", 8, 16), w = oly_cos(oly_reshape(oly_arange(128, OLY_FLOAT32), 16, 8)),
              slope = NULL;
    oly_call(oly_grad(oly_jit(squares_of_products, 2, 1), .argnums = "1"), OLY_IN(x, w), OLY_OUT(slope));
    check_type(slope, "float32[16,8]");
    float got[128], wanted[128];
    assert_int_equal(oly_process_allgather(slope, got, sizeof got), OLY_OK);
    oly_set_mesh(NULL);
    x = oly_device_put(x, oly_named(oly_make_mesh("X=2, Y=4"), ""));
    assert_int_equal(
        oly_process_allgather(oly_mul(2, oly_matmul(oly_transpose(x), oly_matmul(x, w))), wanted, sizeof wanted),
        OLY_OK);
    for (int k = 0; k < 128; k++)
        assert_true(fabsf(got[k] - wanted[k]) <= 1e-4F * (1 + fabsf(wanted[k])));
    check_end();
}

F(doubled)
{
    (void)user;
    out[0] = oly_mul(in[0], 2);
}

/* A dimension that both an outer Explicit axis and the manual one split. */
static void manual_and_explicit_axes_may_meet(void **state)
{
    (void)state;
    check_begin_on("a=2:explicit, b=2:explicit, c=2:explicit");
    oly_array x = CHECK_NUMBERS_AT("c", 8, 8), y = NULL;
    float got[128], given[64];
    oly_shard_map_with(doubled, NULL, check_mesh, OLY_MANUAL(.axis_names = "a"), OLY_IN(x), OLY_SPECS(""), OLY_OUT(y),
                       OLY_SPECS("a"));
    check_type(y, "float32[16@(a,c),8]");
    assert_int_equal(oly_process_allgather(y, got, sizeof got), OLY_OK);
    assert_int_equal(oly_process_allgather(x, given, sizeof given), OLY_OK);
    for (int k = 0; k < 128; k++)
        assert_true(got[k] == 2 * given[k % 64]);
    check_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_move_to_another_mesh),
        cmocka_unit_test(scans_do_not_go_along_split_dimensions),
        cmocka_unit_test(derivatives_keep_requested_shardings),
        cmocka_unit_test(gradients_of_arrays_without_a_mesh_are_reduced),
        cmocka_unit_test(manual_and_explicit_axes_may_meet),
    };
    return CHECK_MAIN(tests);
}
