/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8  Reductions, products and counts of ravelled arrays take the arrays where they are: no bytes but those of
 * the result move, and values are those of the plain evaluation. RAVEL_SEED=n: of the first random program. */
#include "check.h"
#include "check_session.h"
#include "core/optimisation.h"
#include <olympus.h>

enum { PROGRAMS = 40, BINS = 5, KINDS = 8 };

static uint64_t seed;

static int draw(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)(seed >> 33) % n;
}

/* kind: of the operation; deep: reshaped twice; sliced: a part of the array. */
typedef struct program {
    int kind;
    bool deep, sliced;
} program;

static oly_array line(oly_array x, const program *p)
{
    if (p->sliced)
        x = oly_slice(x, "1:");
    if (p->deep)
        x = oly_reshape(x, 2, oly_size(x) / 2);
    return oly_ravel(x);
}

static oly_array of_small(oly_array x)
{
    return oly_add(oly_mul(oly_astype(oly_gt(x, 1), OLY_INT32), 2), oly_astype(oly_gt(x, 0), OLY_INT32));
}

static void run(const oly_array *in, oly_array *out, void *user)
{
    const program *p = user;
    oly_array x = line(in[0], p), y = line(in[1], p);
    switch (p->kind) {
    case 0: out[0] = oly_sum(x); break;
    case 1: out[0] = oly_max(x, OLY_AXES(0)); break;
    case 2: out[0] = oly_sum(x, .keepdims = true); break;
    case 3: out[0] = oly_mean(x); break;
    case 4: out[0] = oly_vdot(x, y); break;
    case 5: out[0] = oly_bincount(of_small(x), BINS); break;
    case 6: out[0] = oly_bincount(oly_ravel(of_small(p->sliced ? oly_slice(in[0], "1:") : in[0])), BINS); break;
    default: out[0] = oly_vdot(in[0], in[1]); break;
    }
}

static void slope(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_ravel(in[0]);
    out[0] = oly_add(oly_vdot(in[0], in[1]), oly_sum(oly_mul(x, x)));
}

/* Whole numbers from -3 to 3: sums of them are exact in any order. */
static oly_array drawn(int64_t a, int64_t b, int64_t c, oly_dtype dtype, oly_sharding s)
{
    oly_array x = oly_random_randint(oly_random_key(draw(1000)), OLY_INT32, -3, 4, a, b, c);
    return oly_device_put(oly_astype(x, dtype), s);
}

static int64_t result_of(oly_fn f, const oly_array *in, int n, double *value, oly_plan_costs *costs)
{
    oly_array out = NULL;
    assert_int_equal(oly_costs_n(costs, f, 2, in), OLY_OK);
    assert_int_equal(oly_call_arrays(f, 2, in, 1, &out), OLY_OK);
    int64_t size = oly_size(out);
    assert_true(size <= n);
    assert_int_equal(oly_process_allgather(oly_astype(out, OLY_FLOAT32), (float *)value, (size_t)size * 4), OLY_OK);
    return size;
}

static void random_programs_have_the_values_of_plain_ones(void **state)
{
    (void)state;
    const oly_optimisations one = (oly_optimisations)1 << OLY_OPTIMISATION_RAVELLED_REDUCTIONS;
    static const char *const specs[] = {"x,y", "x,,y", ",x,y", "(x,y)", "y,x", ",y", ""};
    seed = getenv("RAVEL_SEED") ? strtoull(getenv("RAVEL_SEED"), NULL, 10) : 1;
    oly_mesh mesh = oly_make_mesh("x=4,y=2");
    for (int k = 0; k < PROGRAMS; k++)
        OLY_SCOPE
        {
            program p = {.kind = k % KINDS, .deep = draw(2), .sliced = draw(3) == 0};
            oly_dtype dtype = draw(2) ? OLY_FLOAT32 : OLY_INT32;
            int64_t a = 2 + draw(12), b = 2 * (1 + draw(12)), c = 1 + draw(20);
            const char *spec = specs[draw(7)];
            oly_array in[2] = {drawn(a, b, c, dtype, oly_named(mesh, spec)),
                               drawn(a, b, c, dtype, oly_named(mesh, spec))};
            double got[64], wanted[64];
            oly_plan_costs fast, slow;
            int64_t n = result_of(oly_jit(run, 2, 1, .user = &p), in, 64, got, &fast);
            oly_optimisations before = oly_disable(one);
            int64_t m = result_of(oly_jit(run, 2, 1, .user = &p), in, 64, wanted, &slow);
            oly_disable(before);
            if (n != m || memcmp(got, wanted, (size_t)n * 4) != 0)
                fail_msg("program %d: kind %d of [%d,%d,%d] as \"%s\"%s%s differs", k, p.kind, (int)a, (int)b, (int)c,
                         spec, p.deep ? ", reshaped" : "", p.sliced ? ", sliced" : "");
        }
}

static void nothing_but_results_moves(void **state)
{
    (void)state;
    oly_sharding s = oly_named(oly_make_mesh("x=4,y=2"), "x,y");
    static const int kinds[] = {0, 1, 3, 4, 6, 7};
    oly_array in[2] = {drawn(64, 32, 6, OLY_FLOAT32, s), drawn(64, 32, 6, OLY_FLOAT32, s)};
    for (int k = 0; k < 6; k++) {
        program p = {.kind = kinds[k], .deep = k % 2};
        double value[64];
        oly_plan_costs costs;
        result_of(oly_jit(run, 2, 1, .user = &p), in, 64, value, &costs);
        assert_true(costs.wire_bytes <= 8 * 2 * 8 * BINS);
    }
}

static void gradients_pass(void **state)
{
    (void)state;
    oly_sharding s = oly_named(oly_make_mesh("x=4,y=2"), "x,y");
    oly_array x = drawn(8, 6, 2, OLY_FLOAT32, s), y = drawn(8, 6, 2, OLY_FLOAT32, s), g = NULL;
    assert_int_equal(oly_call(oly_grad(oly_jit(slope, 2, 1)), OLY_IN(x, y), OLY_OUT(g)), OLY_OK);
    CHECK_NEAR(oly_sum(oly_abs(oly_sub(g, oly_add(y, oly_mul(2, x))))), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_programs_have_the_values_of_plain_ones, check_start, check_finish),
        cmocka_unit_test_setup_teardown(nothing_but_results_moves, check_start, check_finish),
        cmocka_unit_test_setup_teardown(gradients_pass, check_start, check_finish),
    };
    return CHECK_MAIN(tests);
}
