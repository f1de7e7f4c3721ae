/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2,4,5 devices=40  The documented order in which partial results of 40 devices are combined, bit for bit,
 * however they are distributed over processes: reductions in adjacent pairs, last axis first; products one after the
 * other within 16 positions and then over those groups, first axis first. */
#include "check.h"
#include <math.h>
#include <olympus.h>

enum { DEVICES = 40 };

static const struct {
    const char *mesh, *spec;
    int n_axes, size[3];
} rows[] = {{"x=40", "x", 1, {40}},
            {"x=5, y=8", "(x,y)", 2, {5, 8}},
            {"x=8, y=5", "(x,y)", 2, {8, 5}},
            {"x=2, y=20", "(x,y)", 2, {2, 20}},
            {"x=20, y=2", "(x,y)", 2, {20, 2}},
            {"x=2, y=4, z=5", "(x,y,z)", 3, {2, 4, 5}}};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

static float one_after_the_other(const float *x, int n, int stride)
{
    float sum = x[0];
    for (int i = 1; i < n; i++)
        sum += x[i * stride];
    return sum;
}

static float in_groups(const float *x, int n, int stride)
{
    float groups[DEVICES] = {0};
    int n_groups = 0;
    for (int i = 0; i < n; i += 16)
        groups[n_groups++] = one_after_the_other(x + i * stride, n - i < 16 ? n - i : 16, stride);
    return one_after_the_other(groups, n_groups, 1);
}

static float in_pairs(const float *x, int n, int stride)
{
    float level[DEVICES];
    for (int i = 0; i < n; i++)
        level[i] = x[i * stride];
    for (; n > 1; n = (n + 1) / 2) {
        for (int i = 0; i < n / 2; i++)
            level[i] = level[2 * i] + level[2 * i + 1];
        if (n % 2)
            level[n / 2] = level[n - 1];
    }
    return level[0];
}

/* Reduces a row-major grid one axis after the other, in place. */
static float expected(const float *partials, int row, bool product)
{
    float x[DEVICES];
    int n = DEVICES, n_axes = rows[row].n_axes;
    memcpy(x, partials, sizeof x);
    for (int k = 0; k < n_axes; k++) {
        int size = rows[row].size[product ? k : n_axes - 1 - k], stride = product ? n / size : 1;
        for (int i = 0; i < n / size; i++)
            x[i] = product ? in_groups(x + i, size, stride) : in_pairs(x + i * size, size, 1);
        n /= size;
    }
    return x[0];
}

static void the_order_is_the_documented_one(void **state)
{
    float partials[DEVICES];
    (void)state;
    oly_init(NULL, NULL);
    for (int i = 0; i < DEVICES; i++)
        partials[i] = (float)(sin(i * 1.7) * (i % 7 ? 1 : 100));
    for (int row = 0; row < N_ROWS; row++)
        OLY_SCOPE
        {
            oly_array x = oly_from_host(partials, OLY_FLOAT32, 1, (int64_t[]){DEVICES});
            x = oly_device_put(x, oly_named(oly_make_mesh(rows[row].mesh), rows[row].spec));
            assert_true((float)oly_item(oly_sum(x)) == expected(partials, row, false));
            oly_array ones = oly_ones(OLY_FLOAT32, DEVICES);
            assert_true((float)oly_item(oly_dot(x, ones)) == expected(partials, row, true));
        }
    assert_int_equal(oly_finalize(), 0);
}

/* Partial results large enough for every process to reduce a slice of them. */
static void slices_are_reduced_in_the_same_order(void **state)
{
    enum { LENGTH = 12000 };
    static float data[DEVICES * LENGTH], sums[LENGTH], partials[DEVICES];
    (void)state;
    oly_init(NULL, NULL);
    for (int i = 0; i < DEVICES * LENGTH; i++)
        data[i] = (float)(sin(i * 1.7) * (i % 7 ? 1 : 100));
    for (int row = 0; row < N_ROWS; row++)
        OLY_SCOPE
        {
            oly_array x = oly_from_host(data, OLY_FLOAT32, 2, (int64_t[]){DEVICES, LENGTH});
            x = oly_device_put(x, oly_named(oly_make_mesh(rows[row].mesh), rows[row].spec));
            oly_process_allgather(oly_sum(x, .axes = "0"), sums, sizeof sums);
            for (int i = 0; i < LENGTH; i += 7) {
                for (int d = 0; d < DEVICES; d++)
                    partials[d] = data[d * LENGTH + i];
                assert_true(sums[i] == expected(partials, row, false));
            }
        }
    assert_int_equal(oly_finalize(), 0);
}

static oly_mesh mesh;
static const char *spec;

static void scattered_sum(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_with_sharding_constraint(oly_sum(in[0], .axes = "0"), oly_named(mesh, spec));
}

static void scattered_product(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_with_sharding_constraint(oly_matmul(in[1], in[0]), oly_named(mesh, spec));
}

static void whole_product(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_with_sharding_constraint(oly_matmul(in[1], in[0]), oly_named(mesh, ""));
}

/* Every device has the same result, also where processes reduce for several groups of which the last is short. */
static void every_device_has_the_result(void **state)
{
    enum { LENGTH = 101 };
    static float data[DEVICES * LENGTH], first[LENGTH];
    (void)state;
    setenv("OLYMPUS_CHOOSE", "0", 1);
    oly_init(NULL, NULL);
    for (int i = 0; i < DEVICES * LENGTH; i++)
        data[i] = (float)(sin(i * 1.7) * (i % 7 ? 1 : 100));
    for (int row = 0; row < N_ROWS; row++)
        OLY_SCOPE
        {
            mesh = oly_make_mesh(rows[row].mesh);
            oly_sharding split = oly_named(mesh, rows[row].spec);
            oly_array y, x = oly_from_host(data, OLY_FLOAT32, 2, (int64_t[]){DEVICES, LENGTH});
            x = oly_device_put(x, split);
            oly_array ones = oly_device_put(oly_ones(OLY_FLOAT32, DEVICES), split);
            oly_fn f = oly_jit(whole_product, 2, 1);
            oly_call(f, OLY_IN(x, ones), 1, (oly_array *[]){&y});
            for (int i = 0; i < LENGTH; i++) {
                float partials[DEVICES];
                for (int d = 0; d < DEVICES; d++)
                    partials[d] = data[d * LENGTH + i];
                first[i] = expected(partials, row, true);
            }
            for (int k = 0; k < oly_shard_count(y); k++)
                assert_memory_equal(oly_get_shard(y, k).memory, first, sizeof first);
        }
    assert_int_equal(oly_finalize(), 0);
    unsetenv("OLYMPUS_CHOOSE");
}

/* Results that stay split over all devices: each reduces its own part, of 40 partial results. */
static void scattered_parts_are_reduced_in_the_same_order(void **state)
{
    enum { LENGTH = 4001 };
    static float data[DEVICES * LENGTH], got[LENGTH], partials[DEVICES];
    (void)state;
    oly_init(NULL, NULL);
    for (int i = 0; i < DEVICES * LENGTH; i++)
        data[i] = (float)(sin(i * 1.7) * (i % 7 ? 1 : 100));
    for (int row = 0; row < N_ROWS; row++)
        for (int product = 0; product < 2; product++)
            OLY_SCOPE
            {
                char steps[20000] = "";
                mesh = oly_make_mesh(rows[row].mesh);
                spec = rows[row].spec;
                oly_sharding split = oly_named(mesh, spec);
                oly_array y, x = oly_from_host(data, OLY_FLOAT32, 2, (int64_t[]){DEVICES, LENGTH});
                x = oly_device_put(x, split);
                oly_array ones = oly_device_put(oly_ones(OLY_FLOAT32, DEVICES), split);
                oly_fn f = oly_jit(product ? scattered_product : scattered_sum, 2, 1);
                oly_call(f, OLY_IN(x, ones), 1, (oly_array *[]){&y});
                oly_process_allgather(y, got, sizeof got);
                for (int i = 0; i < LENGTH; i += 7) {
                    for (int d = 0; d < DEVICES; d++)
                        partials[d] = data[d * LENGTH + i];
                    assert_true(got[i] == expected(partials, row, product));
                }
                if (oly_process_count() > 1) /* there processes may combine their own devices' partial results first */
                    continue;
                FILE *text = fmemopen(steps, sizeof steps - 1, "w");
                oly_explain_n(text, f, 2, (oly_array[]){x, ones});
                fclose(text);
                assert_non_null(strstr(steps, "reduce-scatter"));
                assert_null(strstr(steps, "all-reduce"));
            }
    assert_int_equal(oly_finalize(), 0);
}

/* As between many processes: one step for all levels, listed by the first run. */
static void listed_by_the_first_run_it_is_the_same(void **state)
{
    setenv("OLYMPUS_DIRECT_PROCESSES", "1", 1);
    the_order_is_the_documented_one(state);
    slices_are_reduced_in_the_same_order(state);
    every_device_has_the_result(state);
    scattered_parts_are_reduced_in_the_same_order(state);
    unsetenv("OLYMPUS_DIRECT_PROCESSES");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_is_the_documented_one),
        cmocka_unit_test(slices_are_reduced_in_the_same_order),
        cmocka_unit_test(every_device_has_the_result),
        cmocka_unit_test(scattered_parts_are_reduced_in_the_same_order),
        cmocka_unit_test(listed_by_the_first_run_it_is_the_same),
    };
    return CHECK_MAIN(tests);
}
