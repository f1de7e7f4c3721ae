/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8  Derivatives through oly_shard_map and oly_vmap, and inside them. */
#include "check_session.h"
#include <math.h>

static oly_mesh row;

static void start(void)
{
    check_begin();
    row = oly_make_mesh("i=8");
}

#define BODY(name, expression)                                                                                         \
    static void name(const oly_array *in, oly_array *out, void *user)                                                  \
    {                                                                                                                  \
        (void)user, (void)in;                                                                                          \
        out[0] = (expression);                                                                                         \
    }

/* -- through a map: the gradient of the weighted sum of a map's result --------------------------------------------- */
typedef struct mapped {
    oly_function body;
    const char *in, *out;
    int64_t n_weights, first;
} mapped;

static void loss(const oly_array *in, oly_array *out, void *user)
{
    const mapped *m = user;
    oly_array y = NULL;
    oly_shard_map(m->body, NULL, row, OLY_IN(in[0]), &m->in, OLY_OUT(y), &m->out);
    oly_array weights = oly_add(oly_arange(m->n_weights, OLY_FLOAT32), m->first);
    out[0] = oly_sum(m->n_weights ? oly_mul(oly_reshape(y, -1), weights) : y);
}

static oly_array slope(oly_function body, const char *in, const char *out, int64_t n_weights, int64_t first,
                       oly_array x)
{
    mapped m = {body, in, out, n_weights, first};
    return oly_apply(oly_grad(oly_jit(loss, 1, 1, .user = &m)), x);
}

BODY(sum, oly_psum(in[0], "i"))
BODY(mean, oly_pmean(in[0], "i"))
BODY(most, oly_pmax(in[0], "i"))
BODY(gather, oly_all_gather(in[0], "i", .tiled = true))
BODY(gather_invariant, oly_all_gather(in[0], "i", .tiled = true, .invariant = true))
BODY(scatter, oly_psum_scatter(in[0], "i", .tiled = true))
BODY(turn, oly_all_to_all(in[0], "i", 0, 0, false))
BODY(ring, oly_ppermute(in[0], "i", OLY_PAIRS({0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 0})))
BODY(partial, oly_ppermute(in[0], "i", OLY_PAIRS({0, 1}, {1, 2})))
BODY(scaled, oly_psum(oly_sum(oly_mul(in[0], oly_astype(oly_axis_index("i"), OLY_FLOAT32))), "i"))

static void collectives_have_their_transposes(void **state)
{
    (void)state;
    double eight[64], turned[64];
    for (int k = 0; k < 64; k++) {
        eight[k] = k % 8 + 1;
        turned[k] = k % 8 * 8 + k / 8;
    }
    start();
    oly_array x = oly_arange(8, OLY_FLOAT32), x64 = oly_arange(64, OLY_FLOAT32);
    CHECK_NEAR(slope(sum, "i", "", 0, 0, x), 1, 1, 1, 1, 1, 1, 1, 1);
    CHECK_NEAR(slope(scaled, "", "", 0, 0, oly_scalar(3, OLY_FLOAT32)), 28);
    CHECK_NEAR(slope(gather, "i", "i", 64, 0, x), 224, 232, 240, 248, 256, 264, 272, 280);
    CHECK_NEAR(slope(gather_invariant, "i", "", 8, 1, x), 1, 2, 3, 4, 5, 6, 7, 8);
    check_near(slope(scatter, "i", "i", 8, 1, x64), 64, eight);
    CHECK_NEAR(slope(ring, "i", "i", 8, 1, x), 2, 3, 4, 5, 6, 7, 8, 1);
    CHECK_NEAR(slope(partial, "i", "i", 8, 1, x), 2, 3, 0, 0, 0, 0, 0, 0);
    check_near(slope(turn, "i", "i", 64, 0, x64), 64, turned);
    CHECK_NEAR(slope(mean, "i", "", 0, 0, x), 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125);
    CHECK_NEAR(slope(most, "i", "", 0, 0, x), 0, 0, 0, 0, 0, 0, 0, 1);
    CHECK_NEAR(slope(most, "i", "", 0, 0, oly_mul(x, 0)), .125, .125, .125, .125, .125, .125, .125, .125);
    check_end();
}

/* Gradients have the sharding of the arguments, also where axes are Explicit. */
static void explicit_gradients(void **state)
{
    (void)state;
    char type[64];
    oly_mesh automatic;
    start();
    automatic = row;
    row = oly_make_mesh("i=8:explicit");
    oly_array x = oly_device_put(oly_arange(8, OLY_FLOAT32), oly_named(row, "i"));
    oly_array g = slope(ring, "i", "i", 0, 0, x);
    CHECK_NEAR(g, 1, 1, 1, 1, 1, 1, 1, 1);
    oly_typeof(g, type, sizeof type);
    assert_non_null(strstr(type, "float32[8@i]"));
    g = slope(sum, "i", "", 0, 0, x);
    oly_typeof(g, type, sizeof type);
    assert_non_null(strstr(type, "float32[8@i]"));
    CHECK_NEAR(g, 1, 1, 1, 1, 1, 1, 1, 1);
    CHECK_NEAR(slope(gather_invariant, "i", "", 8, 1, x), 1, 2, 3, 4, 5, 6, 7, 8);
    row = automatic;
    check_end();
}

/* -- inside a map ---------------------------------------------------------------------------------------------------- */
static void slope_inside(const oly_array *in, oly_array *out, void *user) /* w, x */
{
    (void)user;
    oly_array total = oly_psum(oly_sum(oly_mul(in[0], in[1])), "i"), g = NULL;
    oly_gradients(total, OLY_IN(in[0]), OLY_OUT(g));
    out[0] = oly_broadcast_to(g, 1);
}

static void slope_of_most(const oly_array *in, oly_array *out, void *user) /* w, x */
{
    (void)user;
    oly_array g = NULL;
    oly_gradients(oly_pmax(oly_sum(oly_mul(in[0], in[1])), "i"), OLY_IN(in[0]), OLY_OUT(g));
    out[0] = oly_broadcast_to(g, 1);
}

static void slope_of_own(const oly_array *in, oly_array *out, void *user) /* w, x: of each device's own part */
{
    (void)user;
    oly_array mine = oly_sum(oly_mul(in[0], in[1])), g = NULL;
    oly_gradients(mine, OLY_IN(in[0]), OLY_OUT(g));
    out[0] = oly_broadcast_to(g, 1);
}

static void slopes_inside(void **state)
{
    (void)state;
    oly_array y = NULL, w, x;
    start();
    w = oly_scalar(2, OLY_FLOAT32);
    x = oly_arange(8, OLY_FLOAT32);
    oly_shard_map(slope_inside, NULL, row, OLY_IN(w, x), OLY_SPECS("", "i"), OLY_OUT(y), OLY_SPECS(""));
    CHECK_NEAR(y, 28);
    oly_shard_map(slope_of_most, NULL, row, OLY_IN(w, x), OLY_SPECS("", "i"), OLY_OUT(y), OLY_SPECS(""));
    CHECK_NEAR(y, 7);
    oly_shard_map(slope_of_own, NULL, row, OLY_IN(w, x), OLY_SPECS("", "i"), OLY_OUT(y), OLY_SPECS(""));
    CHECK_NEAR(y, 28); /* w is one value: every device's use of it counts */
    oly_shard_map_with(slope_inside, NULL, row, OLY_MANUAL(.unchecked = true), OLY_IN(w, x), OLY_SPECS("", "i"),
                       OLY_OUT(y), OLY_SPECS("i"));
    CHECK_NEAR(y, 0, 8, 16, 24, 32, 40, 48, 56); /* without checks sums are their own transposes, as in JAX */
    oly_shard_map_with(slope_of_own, NULL, row, OLY_MANUAL(.unchecked = true), OLY_IN(w, x), OLY_SPECS("", "i"),
                       OLY_OUT(y), OLY_SPECS("i"));
    CHECK_NEAR(y, 0, 1, 2, 3, 4, 5, 6, 7);
    check_end();
}

/* -- maps of derivatives ------------------------------------------------------------------------------------------- */
static void cube(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], oly_mul(in[0], in[1]));
}

static void cube_slope(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_apply_n(oly_grad(oly_jit(cube, 2, 1, .user = user)), 2, in);
}

static void sum_of_cubes(const oly_array *in, oly_array *out, void *user)
{
    oly_array y = NULL;
    oly_vmap(cube, user, 2, in, OLY_AXES_OF(0, OLY_UNMAPPED), OLY_OUT(y), OLY_AXES_OF(0));
    out[0] = oly_sum(y);
}

static void batches(void **state)
{
    (void)state;
    oly_array y = NULL, a = NULL, b = NULL;
    start();
    oly_array x = oly_arange(4, OLY_FLOAT32), c = oly_scalar(3, OLY_FLOAT32);
    oly_vmap(cube_slope, NULL, OLY_IN(x, c), OLY_AXES_OF(0, OLY_UNMAPPED), OLY_OUT(y), OLY_AXES_OF(0));
    CHECK_NEAR(y, 0, 6, 12, 18);
    oly_call(oly_grad(oly_jit(sum_of_cubes, 2, 1), .argnums = "0, 1"), OLY_IN(x, c), OLY_OUT(a, b));
    CHECK_NEAR(a, 0, 6, 12, 18);
    CHECK_NEAR(b, 14);
    check_end();
}

/* -- parts whose position varies: a matrix product that passes shards around, and its gradients -------------------- */
static oly_mesh pair;

static void own_rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array me = oly_axis_index("x"), other = oly_sub(1, me);
    oly_array a0 = oly_dynamic_slice(in[0], OLY_INDEXES(0, oly_mul(me, 2)), OLY_EXTENTS(2, 2));
    oly_array a1 = oly_dynamic_slice(in[0], OLY_INDEXES(0, oly_mul(other, 2)), OLY_EXTENTS(2, 2));
    out[0] = oly_add(oly_matmul(a0, in[1]), oly_matmul(a1, oly_ppermute(in[1], "x", OLY_PAIRS({0, 1}, {1, 0}))));
    out[0] = oly_dynamic_update_slice(out[0], oly_mul(oly_slice(in[1], ":, :2"), 3), OLY_INDEXES(0, me));
}

static void in_pieces(const oly_array *in, oly_array *out, void *user)
{
    oly_shard_map(own_rows, user, pair, OLY_IN(in[0], in[1]), OLY_SPECS("x", "x"), OLY_OUT(out[0]), OLY_SPECS("x"));
    out[0] = oly_sum(oly_sin(out[0]));
}

static void at_once(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array y = oly_matmul(in[0], in[1]);
    y = oly_update(y, ":2, :2", oly_mul(oly_slice(in[1], ":2, :2"), 3));
    y = oly_update(y, "2:, 1:3", oly_mul(oly_slice(in[1], "2:, :2"), 3));
    out[0] = oly_sum(oly_sin(y));
}

static void parts_at_places_that_vary(void **state)
{
    (void)state;
    start();
    pair = oly_make_mesh("x=2");
    oly_array a = oly_mul(oly_reshape(oly_arange(16, OLY_FLOAT32), 4, 4), 0.125),
              b = oly_mul(oly_reshape(oly_arange(24, OLY_FLOAT32), 4, 6), 0.0625);
    for (int k = 0; k < 2; k++) {
        double wanted[24];
        float values[24];
        const char *of = k ? "1" : "0";
        oly_array slope = oly_apply(oly_grad(oly_jit(at_once, 2, 1), .argnums = of), a, b);
        int n = (int)oly_size(slope);
        assert_int_equal(oly_get(slope, values, sizeof(float) * (size_t)n), OLY_OK);
        for (int j = 0; j < n; j++)
            wanted[j] = (double)values[j];
        check_near(oly_apply(oly_grad(oly_jit(in_pieces, 2, 1), .argnums = of), oly_device_put(a, oly_named(pair, "x")),
                             oly_device_put(b, oly_named(pair, "x"))),
                   n, wanted);
    }
    check_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_have_their_transposes),
        cmocka_unit_test(explicit_gradients),
        cmocka_unit_test(slopes_inside),
        cmocka_unit_test(batches),
        cmocka_unit_test(parts_at_places_that_vary),
    };
    return CHECK_MAIN(tests);
}
