/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Operations that rearrange elements, and those built on reductions: what the oracle's cases do not
 * cover. Values on uneven shardings, extremes of rank and size, bytes sent, errors. */
#include "check_communication.h"
#include "check_session.h"
#include "core/error.h"

/* int32 elements in row-major order. */
static void expect_values(oly_array x, int n, const int32_t *want)
{
    int32_t got[64];
    assert_non_null(x);
    assert_int_equal(oly_size(x), n);
    assert_int_equal(oly_process_allgather(x, got, (size_t)n * sizeof *got), OLY_OK);
    for (int i = 0; i < n; i++)
        assert_int_equal(got[i], want[i]);
}
#define VALUES(x, ...)                                                                                                 \
    expect_values(x, (int)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)), (const int32_t[]){__VA_ARGS__})

static oly_array line(int64_t n, oly_sharding sharding)
{
    return sharding ? oly_device_put(oly_arange(n, OLY_INT32), sharding) : oly_arange(n, OLY_INT32);
}

/* -- values ---------------------------------------------------------------------------------------------------------- */
static void check_rearrangements(oly_array x) /* 0 to 5 */
{
    const int64_t two = 2, one = 1, minus = -1, minus_two = -2, none = 0;
    VALUES(oly_pad(x, 9, &two, &one, NULL), 9, 9, 0, 1, 2, 3, 4, 5, 9);
    VALUES(oly_pad(x, 9, &minus, &two, &one), 9, 1, 9, 2, 9, 3, 9, 4, 9, 5, 9, 9);
    VALUES(oly_pad(x, 9, &minus_two, &minus, &none), 2, 3, 4);
    const int64_t many = 11;
    oly_array y = oly_arange(3, OLY_INT32), one_only = oly_full(4, OLY_INT32, 1);
    VALUES(oly_pad_mode(y, "wrap", NULL, &many), 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1);
    VALUES(oly_pad_mode(y, "wrap", &many, NULL), 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2);
    VALUES(oly_pad_mode(y, "reflect", NULL, &many), 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1);
    VALUES(oly_pad_mode(y, "reflect", &many, NULL), 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2);
    VALUES(oly_pad_mode(y, "symmetric", &two, &many), 1, 0, 0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1);
    VALUES(oly_pad_mode(y, "edge", &two, &one), 0, 0, 0, 1, 2, 2);
    VALUES(oly_pad_mode(one_only, "reflect", &two, &one), 4, 4, 4, 4);
    VALUES(oly_pad(x, 9, (int64_t[]){-7}, &two, NULL), 9);
    VALUES(oly_pad(x, x ? oly_sum(x) : NULL, &one, &none, NULL), 15, 0, 1, 2, 3, 4, 5);
    VALUES(oly_flip(x), 5, 4, 3, 2, 1, 0);
    VALUES(oly_flip(oly_slice(x, "1::2")), 5, 3, 1);
    VALUES(oly_slice(oly_flip(x), "1::2"), 4, 2, 0);
    VALUES(oly_add(x, oly_flip(x)), 5, 5, 5, 5, 5, 5);
    VALUES(oly_roll(x, 2, 0), 4, 5, 0, 1, 2, 3);
    VALUES(oly_roll(x, -7, -1), 1, 2, 3, 4, 5, 0);
    VALUES(oly_tile(x, 2), 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5);
    VALUES(oly_repeat(x, 2, 0), 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5);
    VALUES(oly_diff(x, 1, -1), 1, 1, 1, 1, 1);
    VALUES(oly_diff(oly_mul(x, x), 2, 0), 2, 2, 2, 2);
    VALUES(oly_stack(1, x, oly_flip(x)), 0, 5, 1, 4, 2, 3, 3, 2, 4, 1, 5, 0);
    VALUES(oly_diag(oly_slice(x, "4:"), -1), 0, 0, 0, 4, 0, 0, 0, 5, 0);
    oly_array matrix = oly_reshape(x, 2, 3);
    VALUES(oly_diagonal(matrix), 0, 4);
    VALUES(oly_diag(matrix, 1), 1, 5);
    VALUES(oly_diagonal_of(matrix, -1, 1, 0), 1, 5);
    VALUES(oly_trace(matrix), 4);
    VALUES(oly_trace_of(matrix, 5, 0, 1), 0);
    VALUES(oly_tril(matrix, 0), 0, 0, 0, 3, 4, 0);
    VALUES(oly_triu(matrix, 1), 0, 1, 2, 0, 0, 5);
    VALUES(oly_swapaxes(matrix, 0, 1), 0, 3, 1, 4, 2, 5);
    VALUES(oly_moveaxis(oly_reshape(x, 1, 2, 3), 2, 0), 0, 3, 1, 4, 2, 5);
    VALUES(oly_roll_axes(matrix, 1, (int64_t[]){1}, NULL), 5, 0, 1, 2, 3, 4);
    VALUES(oly_ravel(oly_rev(matrix, 1)), 2, 1, 0, 5, 4, 3);
    VALUES(oly_squeeze(oly_expand_dims(x, 0, -1)), 0, 1, 2, 3, 4, 5);
    VALUES(oly_sum(oly_flip(x)), 15);
}

static void elements_are_where_they_belong(void **state)
{
    (void)state;
    static const char *const shardings[] = {"x", "y", "(x,y)", "(y,x)", "-"};
    oly_mesh mesh = oly_make_mesh("x=4, y=2");
    check_rearrangements(line(6, NULL));
    for (int k = 0; k < 5; k++)
        check_rearrangements(line(6, oly_named(mesh, shardings[k])));
}

/* No dimension of one side is made of those of the other; the result must be split all the same. */
static void reshape_across(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_reshape(in[0], 4, 3);
}

static void reshapes_keep_the_order_where_nothing_fits(void **state)
{
    (void)state;
    static const char *const meshes[] = {"x=8", "x=4", "x=2"};
    for (int k = 0; k < 3; k++) {
        oly_sharding split = oly_named(oly_make_mesh(meshes[k]), "x");
        oly_fn f = oly_jit(reshape_across, 1, 1, .out_shardings = &split);
        oly_array x = oly_device_put(oly_reshape(oly_arange(12, OLY_INT32), 3, 4), split);
        VALUES(oly_apply(f, x), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    }
}

static void slices_run_backwards(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=4, y=2");
    static const char *const shardings[] = {"", "x", "(x,y)", "None, y", "y, x"};
    for (int k = 0; k < 5; k++) {
        oly_array x = oly_device_put(oly_reshape(oly_arange(10, OLY_INT32), 5, 2), oly_named(mesh, shardings[k]));
        VALUES(oly_slice(x, "::-1, ::-1"), 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
        VALUES(oly_slice(x, "3:0:-2, 1"), 7, 3);
        VALUES(oly_slice(x, "1:-1:-1"), );
        VALUES(oly_slice(oly_slice(x, "::-2, 0"), "::-1"), 0, 4, 8);
        VALUES(oly_update(x, "::-2, 0", oly_arange(3, OLY_INT32)), 2, 1, 2, 3, 1, 5, 6, 7, 0, 9);
        VALUES(oly_slice_ranges(x, NULL, NULL, (const int64_t[]){-3, 1}), 8, 9, 2, 3);
    }
}

/* Steps as large as the number type allows take one element. */
static void the_longest_steps(void **state)
{
    (void)state;
    oly_array x = oly_reshape(oly_arange(60, OLY_INT32), 5, 4, 3);
    expect_values(oly_slice(x, "1::999999999999999999, 2::9223372036854775807, 1::4611686018427387904"), 1,
                  (const int32_t[]){19});
    expect_values(oly_slice(oly_slice(oly_arange(9, OLY_INT32), "1::4"), "1::9223372036854775807"), 1,
                  (const int32_t[]){5});
}

static void numbers_in_a_row(void **state)
{
    (void)state;
    VALUES(oly_arange_range(2, 11, 3, OLY_INT32), 2, 5, 8);
    VALUES(oly_arange_range(3, 0, -1, OLY_INT32), 3, 2, 1);
    VALUES(oly_astype(oly_mul(oly_arange_range(0.5, 2, 0.5, OLY_FLOAT32), 4), OLY_INT32), 2, 4, 6);
    VALUES(oly_astype(oly_mul(oly_linspace(0, 1, 5, OLY_FLOAT32), 4), OLY_INT32), 0, 1, 2, 3, 4);
    VALUES(oly_astype(oly_linspace(7, 3, 1, OLY_FLOAT32), OLY_INT32), 7);
    VALUES(oly_iota(OLY_INT32, 1, 2, 3), 0, 1, 2, 0, 1, 2);
    VALUES(oly_iota(OLY_INT32, -2, 2, 3), 0, 0, 0, 1, 1, 1);
    VALUES(oly_eye(2, 3, 1, OLY_INT32), 0, 1, 0, 0, 0, 1);
    VALUES(oly_tri(2, 3, 0, OLY_INT32), 1, 0, 0, 1, 1, 0);
    VALUES(oly_eye(2, 2, INT64_MAX, OLY_INT32), 0, 0, 0, 0);
    oly_array grid = oly_reshape(oly_arange(12, OLY_INT32), 3, 4);
    VALUES(oly_index_in_dim(grid, 1, 0), 4, 5, 6, 7);
    VALUES(oly_index_in_dim(grid, -1, -1), 3, 7, 11);
    VALUES(oly_slice_in_dim(grid, 1, 3, 1, 0), 4, 5, 6, 7, 8, 9, 10, 11);
    VALUES(oly_slice_in_dim(grid, -1, 0, -2, 1), 3, 1, 7, 5, 11, 9);
    VALUES(oly_full_like(oly_arange(3, OLY_INT32), 7), 7, 7, 7);
    VALUES(oly_add(oly_ones_like(oly_arange(2, OLY_INT32)), oly_zeros_like(oly_arange(2, OLY_INT32))), 1, 1);
    VALUES(oly_broadcast_in_dim(oly_arange(2, OLY_INT32), 2, ((int64_t[]){2, 2}), 1, (int[]){0}), 0, 0, 1, 1);
    assert_int_equal(oly_rank(oly_atleast_1d(oly_scalar(1, OLY_INT32))), 1);
    assert_int_equal(oly_shape(oly_atleast_2d(oly_arange(5, OLY_INT32)))[1], 5);
    assert_int_equal(oly_shape(oly_atleast_3d(oly_arange(5, OLY_INT32)))[1], 5);
    oly_array parts[3];
    assert_int_equal(oly_split_evenly(oly_arange(6, OLY_INT32), 3, 0, parts), OLY_OK);
    VALUES(parts[1], 2, 3);
}

static void no_elements_and_many_dimensions(void **state)
{
    (void)state;
    oly_array none = oly_zeros(OLY_INT32, 0, 3);
    const int64_t low[2] = {1, 0}, high[2] = {1, -2};
    VALUES(oly_pad(none, 4, low, high, NULL), 4, 4);
    assert_int_equal(oly_size(oly_tile(none, 2, 2)), 0);
    assert_int_equal(oly_size(oly_tile(oly_arange(3, OLY_INT32), 0)), 0);
    assert_int_equal(oly_size(oly_repeat(none, 5, 0)), 0);
    assert_int_equal(oly_size(oly_roll(none, 1, 0)), 0);
    assert_int_equal(oly_size(oly_flip(none)), 0);
    assert_int_equal(oly_size(oly_diff(oly_arange(1, OLY_INT32), 3, 0)), 0);
    assert_int_equal(oly_size(oly_diagonal(none)), 0);
    VALUES(oly_trace(none), 0);
    VALUES(oly_astype(oly_stack(0, oly_any(none), oly_all(none)), OLY_INT32), 0, 1);
    oly_array deep = oly_reshape(oly_arange(2, OLY_INT32), 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2);
    assert_int_equal(oly_rank(deep), OLY_MAX_RANK);
    VALUES(oly_repeat(deep, 2, -1), 0, 0, 1, 1);
    VALUES(oly_tile(deep, 2), 0, 1, 0, 1);
    VALUES(oly_flip(deep), 1, 0);
    int32_t many[600], *at = many;
    assert_int_equal(oly_process_allgather(oly_tile(oly_arange(3, OLY_INT32), 200), many, sizeof many), OLY_OK);
    for (int k = 0; k < 600; k++)
        assert_int_equal(*at++, k % 3);
}

/* -- reductions ------------------------------------------------------------------------------------------------------ */
static void near(oly_array x, double want)
{
    float got;
    assert_non_null(x);
    oly_array one = oly_astype(x, OLY_FLOAT32);
    assert_int_equal(oly_process_allgather(one, &got, sizeof got), OLY_OK);
    assert_float_equal(got, want, 1e-5);
}

static void statistics_on_uneven_parts(void **state)
{
    (void)state;
    static const char *const shardings[] = {"x", "(x,y)", "-"};
    oly_mesh mesh = oly_make_mesh("x=4, y=2");
    for (int k = 0; k < 3; k++) {
        oly_array x = oly_astype(line(5, oly_named(mesh, shardings[k])), OLY_FLOAT32);
        near(oly_var(x), 2);
        near(oly_var(x, .ddof = 1), 2.5);
        near(oly_std(x), 1.41421356);
        near(oly_logsumexp(x), 4.45191440);
        near(oly_sum(oly_softmax(x, 0)), 1);
        near(oly_max(oly_log_softmax(x, -1)), -0.45191440);
        VALUES(oly_astype(oly_any(oly_gt(x, 3.5)), OLY_INT32), 1);
        VALUES(oly_astype(oly_all(x), OLY_INT32), 0);
        VALUES(oly_argmax(oly_one_hot(oly_astype(x, OLY_INT32), 5, OLY_INT32, 0), .axes = "0"), 0, 1, 2, 3, 4);
    }
    float nan;
    oly_get(oly_var(oly_zeros(OLY_FLOAT32, 1), .ddof = 1), &nan, sizeof nan);
    assert_true(nan != nan);
}

/* Elements are converted as they are summed: no array of the wider type is stored. */
static void counted(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_gt(in[0], 2));
    out[1] = oly_sum(oly_astype(in[0], OLY_INT8), OLY_AXES(0));
    out[2] = oly_sum(oly_astype(in[0], OLY_BFLOAT16), OLY_AXES(0));
    out[3] = oly_mean(oly_lt(in[0], 3), OLY_AXES(1));
    out[4] = oly_prod(oly_astype(oly_add(in[0], 1), OLY_UINT8), OLY_AXES(1));
}

static void sums_convert_as_they_read(void **state)
{
    (void)state;
    oly_array x = oly_device_put(oly_reshape(oly_arange(6, OLY_FLOAT32), 3, 2), oly_named(oly_make_mesh("x=8"), "x"));
    oly_array bools = oly_gt(x, 2), out[5] = {NULL};
    VALUES(oly_sum(bools), 3);
    VALUES(oly_sum(bools, OLY_AXES(1)), 0, 1, 2);
    VALUES(oly_sum(oly_broadcast_to(oly_full(200, OLY_UINT8), 300)), 60000);
    assert_int_equal(oly_call(oly_jit(counted, 1, 5), OLY_IN(x), OLY_OUT(out[0], out[1], out[2], out[3], out[4])),
                     OLY_OK);
    VALUES(out[0], 3);
    VALUES(out[1], 6, 9);
    VALUES(oly_astype(out[2], OLY_INT32), 6, 9);
    VALUES(oly_astype(oly_mul(out[3], 2), OLY_INT32), 2, 1, 0);
    VALUES(out[4], 2, 12, 30);
    char *steps = check_steps(oly_jit(counted, 1, 5), 1, &x);
    assert_null(strstr(steps, "convert -> int32[3,2]"));
    assert_null(strstr(steps, "convert -> float32[3,2]"));
    free(steps);
}

/* -- communication ------------------------------------------------------------------------------------------------- */
static void pad_and_back(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    const int64_t one = 1;
    out[0] = oly_add(oly_slice(oly_pad(in[0], 0, &one, &one, NULL), "1:-1"), in[0]);
}

static void turned_columns(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0], oly_flip(in[0], 1));
}

static void nothing_moves_without_need(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array x = line(100, oly_named(mesh, "x")),
              rows = oly_device_put(oly_zeros(OLY_FLOAT32, 16, 6), oly_named(mesh, "x"));
    oly_plan_costs costs;
    assert_int_equal(oly_costs(&costs, oly_jit(pad_and_back, 1, 1), x), OLY_OK);
    assert_int_equal(costs.wire_bytes, 0);
    assert_int_equal(oly_costs(&costs, oly_jit(turned_columns, 1, 1), rows), OLY_OK);
    assert_int_equal(costs.wire_bytes, 0);
}

/* -- errors ---------------------------------------------------------------------------------------------------------- */
static void mistakes_are_told(void **state)
{
    (void)state;
    oly_array x = oly_arange(6, OLY_INT32), matrix = oly_reshape(x, 2, 3);
    const int64_t minus[2] = {-4, -3}, negative[1] = {-1};
    CHECK_REFUSED(oly_pad(x, 0, minus, minus, NULL), OLY_SHAPE, "leaves -2");
    CHECK_REFUSED(oly_pad(x, 0, NULL, NULL, negative), OLY_SHAPE, "-1 elements between");
    CHECK_REFUSED(oly_pad(x, x, negative, NULL, NULL), OLY_SHAPE, "rank 0");
    CHECK_REFUSED(oly_flip(x, 1), OLY_SHAPE, "axis 1");
    CHECK_REFUSED(oly_index_in_dim(x, 0, 2), OLY_SHAPE, "axis 2");
    CHECK_REFUSED(oly_index_in_dim(x, 99, 0), OLY_INVALID, "99");
    CHECK_REFUSED(oly_rev(matrix, 0, -2), OLY_INVALID, "twice");
    CHECK_REFUSED(oly_squeeze(matrix, 0), OLY_SHAPE, "size 1");
    CHECK_REFUSED(oly_expand_dims(x, 0, 0), OLY_INVALID, "twice");
    CHECK_REFUSED(oly_stack(0, x, matrix), OLY_SHAPE, "one shape");
    CHECK_REFUSED(oly_tile(x, -1), OLY_INVALID, "-1 copies");
    CHECK_REFUSED(oly_repeat(x, INT64_MAX, 0), OLY_OVERFLOW, "2^63");
    CHECK_REFUSED(oly_diff(oly_scalar(1, OLY_INT32), 1, 0), OLY_SHAPE, "dimensions");
    CHECK_REFUSED(oly_tril(x, 0), OLY_SHAPE, "two dimensions");
    CHECK_REFUSED(oly_diagonal_of(matrix, 0, 1, -1), OLY_INVALID, "name two");
    CHECK_REFUSED(oly_eye(-1, 2, 0, OLY_INT32), OLY_INVALID, "-1");
    CHECK_REFUSED(oly_arange_range(0, 1, 0, OLY_INT32), OLY_INVALID, "step");
    CHECK_REFUSED(oly_broadcast_in_dim(x, 1, (const int64_t[]){7}, 1, (int[]){0}), OLY_SHAPE, "does not broadcast");
    CHECK_REFUSED(oly_softmax(x, 1), OLY_SHAPE, "axis 1");
    CHECK_REFUSED(oly_pad_mode(x, "mirror", NULL, NULL), OLY_PARSE, "mirror");
    CHECK_REFUSED(oly_pad_mode(x, "wrap", (int64_t[OLY_MAX_RANK]){-1}, NULL), OLY_INVALID, "0 or more");
    CHECK_REFUSED(oly_pad_mode(oly_zeros(OLY_INT32, 0), "edge", (int64_t[]){1}, NULL), OLY_SHAPE, "no elements");
    CHECK_REFUSED(oly_one_hot(x, -2, OLY_INT32, -1), OLY_INVALID, "-2 classes");
    CHECK_REFUSED(oly_moveaxis(x, 0, 3), OLY_SHAPE, "axis 3");
    oly_array parts[4];
    assert_int_equal(oly_split_evenly(x, 4, 0, parts), OLY_SHAPE);
    assert_null(parts[3]);
    oly_clear_error();
}

/* Negative padding, with gaps: [0 1 ..] of n elements, against an explicit list. */
static void padding_of_both_signs(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    for (int trial = 0; trial < 3 * 4 * 7 * 7; trial++)
        OLY_SCOPE
        {
            int64_t between = trial % 3, n = trial / 3 % 4, low = trial / 12 % 7 - 4, high = trial / 84 - 4;
            int64_t covered = n ? (n - 1) * (between + 1) + 1 : 0, size = low + covered + high;
            int32_t wanted[32], got[32];
            if (size < 0)
                continue;
            for (int64_t k = 0; k < size; k++) {
                int64_t at = k - low;
                bool element = at >= 0 && at < covered && at % (between + 1) == 0;
                wanted[k] = element ? (int32_t)(at / (between + 1)) : 77;
            }
            oly_array x = oly_device_put(oly_arange(n, OLY_INT32), oly_named(mesh, trial % 2 ? "x" : ""));
            oly_array y = oly_pad(x, 77, &low, &high, &between);
            assert_int_equal(oly_size(y), size);
            assert_int_equal(oly_process_allgather(y, got, sizeof *got * (size_t)size), OLY_OK);
            if (memcmp(got, wanted, sizeof *got * (size_t)size) != 0)
                fail_msg("%d elements padded by %d, %d, with %d between", (int)n, (int)low, (int)high, (int)between);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(elements_are_where_they_belong, check_start, check_finish),
        cmocka_unit_test_setup_teardown(reshapes_keep_the_order_where_nothing_fits, check_start, check_finish),
        cmocka_unit_test_setup_teardown(padding_of_both_signs, check_start, check_finish),
        cmocka_unit_test_setup_teardown(slices_run_backwards, check_start, check_finish),
        cmocka_unit_test_setup_teardown(the_longest_steps, check_start, check_finish),
        cmocka_unit_test_setup_teardown(numbers_in_a_row, check_start, check_finish),
        cmocka_unit_test_setup_teardown(no_elements_and_many_dimensions, check_start, check_finish),
        cmocka_unit_test_setup_teardown(sums_convert_as_they_read, check_start, check_finish),
        cmocka_unit_test_setup_teardown(statistics_on_uneven_parts, check_start, check_finish),
        cmocka_unit_test_setup_teardown(nothing_moves_without_need, check_start, check_finish),
        cmocka_unit_test_setup_teardown(mistakes_are_told, check_start, check_finish),
    };
    return CHECK_MAIN(tests);
}
