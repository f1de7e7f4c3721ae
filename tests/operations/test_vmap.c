/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8  oly_vmap: values against the function element by element, loops and branches on which
 * elements disagree, nesting, errors. */
#include "check_session.h"
#include <math.h>

/* Equal, element by element. */
static void expect_same(oly_array got, oly_array wanted)
{
    if (!got || !wanted)
        fail_msg("%s", oly_last_error());
    float difference = 1;
    oly_array apart = oly_max(oly_abs(oly_sub(oly_astype(got, OLY_FLOAT32), oly_astype(wanted, OLY_FLOAT32))));
    assert_int_equal(oly_process_allgather(apart, &difference, sizeof difference), OLY_OK);
    assert_true(difference <= 1e-5F);
}

static oly_array numbers(int64_t n)
{
    return oly_sin(oly_mul(oly_arange(n, OLY_FLOAT32), 0.7));
}

/* -- the same as element by element ---------------------------------------------------------------------------------- */

/* One operation of nearly every rule: from [4,6] and [6,3]. */
static void many(const oly_array *in, oly_array *out, void *user)
{
    static const int64_t low[] = {1, 0}, high[] = {0, 2};
    (void)user;
    oly_array x = in[0], w = in[1];
    oly_array y = oly_tanh(oly_matmul(x, w)); /* [4,3] */
    oly_array z =
        oly_concatenate(1, y, oly_slice(oly_transpose(x), "1:5, :3"), oly_broadcast_to(oly_sum(x), 4, 2)); /* [4,8] */
    z = oly_update(z, "1:3, 2:4", oly_mul(2, oly_slice(x, "1:3, ::3")));
    z = oly_where(oly_gt(z, 0.1), z, oly_reshape(oly_arange(32, OLY_FLOAT32), 4, 8));
    out[0] = oly_reshape(z, 2, 16);
    out[1] = oly_add(oly_max(z, .axes = "0"), oly_mean(z));
    out[2] = oly_pad(z, oly_sum(w), low, high, NULL);
    out[3] = oly_rev(oly_cumsum(z, 1), 0);
}

static void elements(int64_t n, oly_array x, int dx, oly_array w, int dw, oly_array *out)
{
    oly_array one[4][8];
    for (int64_t k = 0; k < n; k++) {
        oly_array in[2] = {x, w}, results[4];
        int d[2] = {dx, dw};
        for (int j = 0; j < 2; j++) {
            if (d[j] < 0)
                continue;
            int64_t start[3] = {0}, limit[3], shape[2];
            for (int e = 0, m = 0; e < 3; e++) {
                limit[e] = oly_dim(in[j], e);
                if (e != d[j])
                    shape[m++] = limit[e];
            }
            start[d[j]] = k;
            limit[d[j]] = k + 1;
            in[j] = oly_reshape_shape(oly_slice_ranges(in[j], start, limit, NULL), 2, shape);
        }
        many(in, results, NULL);
        for (int j = 0; j < 4; j++) {
            int64_t shape[4] = {1};
            for (int e = 0; e < oly_rank(results[j]); e++)
                shape[e + 1] = oly_dim(results[j], e);
            one[j][k] = oly_reshape_shape(results[j], oly_rank(results[j]) + 1, shape);
        }
    }
    for (int j = 0; j < 4; j++)
        out[j] = oly_concatenate_n((int)n, one[j], 0);
}

static void as_element_by_element(void **state)
{
    (void)state;
    oly_array a = NULL, b = NULL, c = NULL, d = NULL, wanted[4];
    check_begin();
    oly_array x = oly_reshape(numbers(5 * 24), 5, 4, 6), xt = oly_transpose(x, 1, 2, 0), w = numbers(18), ws;
    w = oly_reshape(w, 6, 3);
    ws = oly_reshape(numbers(5 * 18), 6, 5, 3);
    elements(5, x, 0, w, -1, wanted);
    oly_vmap(many, NULL, OLY_IN(x, w), OLY_AXES_OF(0, OLY_UNMAPPED), OLY_OUT(a, b, c, d), OLY_AXES_OF(0, 0, 0, 0));
    oly_array got[4] = {a, b, c, d};
    for (int k = 0; k < 4; k++)
        expect_same(got[k], wanted[k]);
    oly_vmap(many, NULL, OLY_IN(xt, w), OLY_AXES_OF(-1, OLY_UNMAPPED), OLY_OUT(a, b, c, d), OLY_AXES_OF(1, -1, 2, 0));
    check_type(a, "float32[2,5,16]");
    check_type(b, "float32[8,5]");
    check_type(c, "float32[5,10,5]");
    expect_same(oly_transpose(a, 1, 0, 2), wanted[0]);
    expect_same(oly_transpose(b), wanted[1]);
    expect_same(oly_transpose(c, 2, 0, 1), wanted[2]);
    elements(5, x, 0, ws, 1, wanted);
    oly_vmap(many, NULL, OLY_IN(x, ws), OLY_AXES_OF(0, 1), OLY_OUT(a, b, c, d), OLY_AXES_OF(0, 0, 0, 0));
    oly_array both[4] = {a, b, c, d};
    for (int k = 0; k < 4; k++)
        expect_same(both[k], wanted[k]);
    check_end();
}

/* -- loops and branches ---------------------------------------------------------------------------------------------- */
static oly_array goes_on(const oly_array *carry, void *user)
{
    (void)user;
    return oly_lt(carry[0], 100);
}

static void doubles(oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_mul(carry[0], 2);
    carry[1] = oly_add(carry[1], 1);
}

static void until_100(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    out[1] = oly_scalar(0, OLY_INT32);
    oly_while(goes_on, doubles, 2, out, user);
}

static void adds_counter(oly_array i, oly_array *carry, void *user)
{
    carry[0] = oly_add(carry[0], oly_mul(i, *(oly_array *)user));
}

static void counted(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = in[0];
    out[0] = oly_scalar(0, OLY_INT32);
    oly_fori(0, 5, adds_counter, 1, out, &x);
}

static void twice(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], 2);
}
static void negated(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_neg(in[0]);
}
static void constant(const oly_array *in, oly_array *out, void *user)
{
    (void)user, (void)in;
    out[0] = oly_scalar(7, OLY_INT32);
}

static void chosen(const oly_array *in, oly_array *out, void *user) /* index, value */
{
    oly_switch(in[0], 3, (oly_function[]){twice, negated, constant}, 1, &in[1], 1, out, user);
}

/* Selected by and among values that are equal for all elements, beside one that differs. */
static void chosen_for_all(const oly_array *in, oly_array *out, void *user) /* element, index, value */
{
    chosen(in + 1, out, user);
    out[0] = oly_add(out[0], in[0]);
}

static void loops_and_branches(void **state)
{
    (void)state;
    oly_array a = NULL, b = NULL;
    check_begin();
    oly_array x = oly_add(oly_mul(oly_arange(6, OLY_INT32), 30), 1); /* 1 31 61 91 121 151 */
    oly_vmap(until_100, NULL, OLY_IN(x), OLY_AXES_OF(0), OLY_OUT(a, b), OLY_AXES_OF(0, 0));
    CHECK_NEAR(a, 128, 124, 122, 182, 121, 151);
    CHECK_NEAR(b, 7, 2, 1, 1, 0, 0);
    oly_vmap(counted, NULL, OLY_IN(x), OLY_AXES_OF(0), OLY_OUT(a), OLY_AXES_OF(0));
    CHECK_NEAR(a, 10, 310, 610, 910, 1210, 1510);
    oly_array index = oly_sub(oly_arange(6, OLY_INT32), 1);
    oly_vmap(chosen, NULL, OLY_IN(index, x), OLY_AXES_OF(0, 0), OLY_OUT(a), OLY_AXES_OF(0));
    CHECK_NEAR(a, 2, 62, -61, 7, 7, 7);
    oly_vmap(chosen, NULL, OLY_IN(oly_scalar(1, OLY_INT32), x), OLY_AXES_OF(OLY_UNMAPPED, 0), OLY_OUT(a),
             OLY_AXES_OF(0));
    CHECK_NEAR(a, -1, -31, -61, -91, -121, -151);
    oly_vmap(chosen, NULL, OLY_IN(oly_scalar(2, OLY_INT32), x), OLY_AXES_OF(OLY_UNMAPPED, 0), OLY_OUT(a),
             OLY_AXES_OF(0));
    CHECK_NEAR(a, 7, 7, 7, 7, 7, 7);
    oly_vmap(chosen_for_all, NULL, OLY_IN(x, oly_scalar(1, OLY_INT32), oly_scalar(5, OLY_INT32)),
             OLY_AXES_OF(0, OLY_UNMAPPED, OLY_UNMAPPED), OLY_OUT(a), OLY_AXES_OF(0));
    CHECK_NEAR(a, -4, 26, 56, 86, 116, 146);
    check_end();
}

/* The same inside a shard_map: devices take different numbers of steps. */
static void map_until(const oly_array *in, oly_array *out, void *user)
{
    oly_array x = oly_reshape_shape(in[0], 0, NULL), results[2];
    results[0] = x;
    results[1] = oly_pvary(oly_scalar(0, OLY_INT32), "i");
    oly_while(goes_on, doubles, 2, results, user);
    out[0] = oly_reshape(results[0], 1);
    out[1] = oly_reshape(results[1], 1);
}

static void map_chosen(const oly_array *in, oly_array *out, void *user)
{
    oly_array pair[2] = {oly_axis_index("i"), oly_reshape_shape(in[0], 0, NULL)};
    chosen(pair, out, user);
    out[0] = oly_reshape(out[0], 1);
}

static void devices_that_disagree(void **state)
{
    (void)state;
    oly_array a = NULL, b = NULL;
    check_begin();
    oly_mesh mesh = oly_make_mesh("i=8");
    oly_array x = oly_add(oly_mul(oly_arange(8, OLY_INT32), 20), 1); /* 1 21 41 61 81 101 121 141 */
    oly_shard_map(map_until, NULL, mesh, OLY_IN(x), OLY_SPECS("i"), OLY_OUT(a, b), OLY_SPECS("i", "i"));
    CHECK_NEAR(a, 128, 168, 164, 122, 162, 101, 121, 141);
    CHECK_NEAR(b, 7, 3, 2, 1, 1, 0, 0, 0);
    oly_shard_map(map_chosen, NULL, mesh, OLY_IN(x), OLY_SPECS("i"), OLY_OUT(a), OLY_SPECS("i"));
    CHECK_NEAR(a, 2, -21, 7, 7, 7, 7, 7, 7);
    check_end();
}

static void running(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    carry[0] = oly_add(carry[0], x[0]);
    y[0] = oly_mul(carry[0], 2);
}

static void scanned(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[1];
    oly_scan(3, false, running, 1, &out[0], 1, &in[0], 1, &out[1], user);
}

static void map_scanned(const oly_array *in, oly_array *out, void *user)
{
    oly_array pair[2] = {in[0], oly_reshape_shape(in[1], 0, NULL)};
    scanned(pair, out, user);
    out[0] = oly_reshape(out[0], 1);
    out[1] = oly_reshape(out[1], 3, 1);
}

static void scans(void **state)
{
    (void)state;
    oly_array a = NULL, b = NULL;
    check_begin();
    oly_array xs = oly_reshape(oly_arange(6, OLY_INT32), 3, 2), first = oly_arange(2, OLY_INT32);
    oly_vmap(scanned, NULL, OLY_IN(xs, first), OLY_AXES_OF(1, 0), OLY_OUT(a, b), OLY_AXES_OF(0, 1));
    CHECK_NEAR(a, 6, 10);
    CHECK_NEAR(b, 0, 4, 4, 10, 12, 20);
    oly_shard_map(map_scanned, NULL, oly_make_mesh("i=8"), OLY_IN(oly_arange(3, OLY_INT32), oly_arange(8, OLY_INT32)),
                  OLY_SPECS("", "i"), OLY_OUT(a, b), OLY_SPECS("i", "None, i"));
    CHECK_NEAR(a, 3, 4, 5, 6, 7, 8, 9, 10);
    CHECK_NEAR(oly_slice(b, ":, 5"), 10, 12, 16);
    check_end();
}

/* -- nesting --------------------------------------------------------------------------------------------------------- */
static void product(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], in[1]);
}

static void row_of_products(const oly_array *in, oly_array *out, void *user)
{
    oly_vmap(product, user, 2, in, OLY_AXES_OF(OLY_UNMAPPED, 0), OLY_OUT(out[0]), OLY_AXES_OF(0));
}

static oly_array row;
static void sum_over_devices(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_psum(oly_sum(in[0]), "i"), oly_sum(row));
}

static void map_of(const oly_array *in, oly_array *out, void *user)
{
    oly_shard_map(sum_over_devices, user, oly_make_mesh("i=8"), 1, in, OLY_SPECS("i"), OLY_OUT(out[0]), OLY_SPECS(""));
}

static void shifted_rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_ppermute(in[0], "i", OLY_PAIRS({0, 1}, {1, 0}));
}

static void vmap_in_map(const oly_array *in, oly_array *out, void *user)
{
    oly_vmap(shifted_rows, user, 1, in, OLY_AXES_OF(1), OLY_OUT(out[0]), OLY_AXES_OF(0));
}

static void in_each_other(void **state)
{
    (void)state;
    oly_array a = NULL;
    check_begin();
    oly_array x = oly_arange(3, OLY_INT32), y = oly_add(oly_arange(4, OLY_INT32), 1);
    oly_vmap(row_of_products, NULL, OLY_IN(x, y), OLY_AXES_OF(0, OLY_UNMAPPED), OLY_OUT(a), OLY_AXES_OF(0));
    check_type(a, "int32[3,4]");
    CHECK_NEAR(a, 0, 0, 0, 0, 1, 2, 3, 4, 2, 4, 6, 8);
    row = y;
    oly_vmap(map_of, NULL, OLY_IN(oly_reshape(oly_arange(32, OLY_INT32), 16, 2)), OLY_AXES_OF(1), OLY_OUT(a),
             OLY_AXES_OF(0));
    CHECK_NEAR(a, 240 + 10, 256 + 10);
    oly_shard_map(vmap_in_map, NULL, oly_make_mesh("i=2"), OLY_IN(oly_reshape(oly_arange(8, OLY_INT32), 4, 2)),
                  OLY_SPECS("i"), OLY_OUT(a), OLY_SPECS("None, i"));
    CHECK_NEAR(a, 4, 6, 0, 2, 5, 7, 1, 3);
    check_end();
}

/* -- collectives over a named batch ---------------------------------------------------------------------------------- */
static void over_batch(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_psum(in[0], "b");
    out[1] = oly_sub(in[0], oly_pmean(in[0], "b"));
    out[2] = oly_all_gather(in[0], "b");
    out[3] = oly_add(oly_mul(oly_axis_index("b"), 10), oly_axis_size("b"));
}

static void over_both(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_psum(oly_add(in[0], oly_psum(in[0], "b")), "i");
}

static void batch_on_devices(const oly_array *in, oly_array *out, void *user)
{
    oly_vmap_with(over_both, user, OLY_BATCH(.axis_name = "b"), 1, in, OLY_AXES_OF(0), OLY_OUT(out[0]), OLY_AXES_OF(0));
}

static void sum_of_squares_around_mean(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array apart = oly_sub(in[0], oly_pmean(in[0], "b"));
    out[0] = oly_mul(apart, apart);
}

static void variance(const oly_array *in, oly_array *out, void *user)
{
    oly_array y = NULL;
    oly_vmap_with(sum_of_squares_around_mean, user, OLY_BATCH(.axis_name = "b"), 1, in, OLY_AXES_OF(0), OLY_OUT(y),
                  OLY_AXES_OF(0));
    out[0] = oly_sum(y);
}

static void named_batches(void **state)
{
    (void)state;
    oly_array a = NULL, b = NULL, c = NULL, d = NULL;
    check_begin();
    oly_array x = oly_arange(4, OLY_FLOAT32);
    oly_vmap_with(over_batch, NULL, OLY_BATCH(.axis_name = "b"), OLY_IN(x), OLY_AXES_OF(0), OLY_OUT(a, b, c, d),
                  OLY_AXES_OF(OLY_UNMAPPED, 0, OLY_UNMAPPED, 0));
    CHECK_NEAR(a, 6);
    CHECK_NEAR(b, -1.5, -.5, .5, 1.5);
    CHECK_NEAR(c, 0, 1, 2, 3);
    CHECK_NEAR(d, 4, 14, 24, 34);
    oly_shard_map(batch_on_devices, NULL, oly_make_mesh("i=8"), OLY_IN(oly_arange(16, OLY_FLOAT32)), OLY_SPECS("i"),
                  OLY_OUT(a), OLY_SPECS(""));
    CHECK_NEAR(a, 56 + 120, 64 + 120);
    CHECK_NEAR(oly_apply(oly_grad(oly_jit(variance, 1, 1)), x), -3, -1, 1, 3);
    oly_vmap(over_batch, NULL, OLY_IN(x), OLY_AXES_OF(0), OLY_OUT(a, b, c, d), OLY_AXES_OF(0, 0, 0, 0));
    assert_null(a);
    assert_non_null(strstr(oly_last_error(), "unbound axis name 'b'"));
    oly_clear_error();
    check_end();
}

/* -- errors ---------------------------------------------------------------------------------------------------------- */
static void fails(oly_array y, oly_status status, const char *words)
{
    assert_null(y);
    assert_int_equal(oly_last_status(), status);
    if (!strstr(oly_last_error(), words))
        fail_msg("\"%s\" is not in: %s", words, oly_last_error());
    oly_clear_error();
}

static void bad_maps(void **state)
{
    (void)state;
    oly_array a = NULL;
    check_begin();
    oly_array x = oly_arange(3, OLY_INT32), y = oly_arange(4, OLY_INT32);
    oly_vmap(product, NULL, OLY_IN(x, y), OLY_AXES_OF(0, 0), OLY_OUT(a), OLY_AXES_OF(0));
    fails(a, OLY_SHAPE, "must have one size");
    oly_vmap(product, NULL, OLY_IN(x, x), OLY_AXES_OF(0, 1), OLY_OUT(a), OLY_AXES_OF(0));
    fails(a, OLY_SHAPE, "does not exist");
    oly_vmap(product, NULL, OLY_IN(x, x), OLY_AXES_OF(0, 0), OLY_OUT(a), OLY_AXES_OF(1));
    fails(a, OLY_SHAPE, "does not exist");
    oly_vmap(product, NULL, OLY_IN(x, x), OLY_AXES_OF(0, 0), OLY_OUT(a), OLY_AXES_OF(OLY_UNMAPPED));
    fails(a, OLY_SHAPE, "depends on the batch");
    oly_vmap(product, NULL, OLY_IN(x, x), OLY_AXES_OF(OLY_UNMAPPED, OLY_UNMAPPED), OLY_OUT(a), OLY_AXES_OF(0));
    fails(a, OLY_INVALID, "no argument");
    oly_vmap(product, NULL, OLY_IN(x, NULL), OLY_AXES_OF(0, 0), OLY_OUT(a), OLY_AXES_OF(0));
    assert_null(a);
    oly_clear_error();
    oly_vmap(constant, NULL, OLY_IN(x), OLY_AXES_OF(0), OLY_OUT(a), OLY_AXES_OF(OLY_UNMAPPED));
    CHECK_NEAR(a, 7);
    oly_vmap(constant, NULL, OLY_IN(x), OLY_AXES_OF(0), OLY_OUT(a), OLY_AXES_OF(0));
    CHECK_NEAR(a, 7, 7, 7);
    check_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_element_by_element),
        cmocka_unit_test(loops_and_branches),
        cmocka_unit_test(devices_that_disagree),
        cmocka_unit_test(in_each_other),
        cmocka_unit_test(scans),
        cmocka_unit_test(named_batches),
        cmocka_unit_test(bad_maps),
    };
    return CHECK_MAIN(tests);
}
