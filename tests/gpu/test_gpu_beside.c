/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  CPU devices beside GPUs: which there are, arrays on them, oly_device_put between them and GPUs, meshes of one platform. Without a
 * GPU it tests what programs for both see there; test_platform.sh runs it on emulated GPUs, on 1, 2 and 4 ranks. */
#include "check_session.h"
#include <olympus.h>
#include <string.h>

enum { N = 24 };

static bool has_gpus(void)
{
    return oly_platform_device_count("cuda") > 0;
}

static void devices_are_listed_by_platform(void **state)
{
    (void)state;
    int gpus = oly_platform_device_count("gpu"), cpus = oly_platform_device_count("cpu");
    char text[32];
    assert_int_equal(oly_device_count(), gpus ? gpus : cpus);
    assert_true(cpus >= oly_process_count());
    for (int k = 0; k < cpus; k++) {
        oly_device d = oly_platform_device("cpu", k);
        assert_string_equal(oly_device_platform(d), "cpu");
        assert_ptr_equal(d, oly_get_device(oly_device_id(d)));
        oly_device_str(d, text, sizeof text);
        char wanted[32];
        snprintf(wanted, sizeof wanted, "CPU_%d", k);
        assert_string_equal(text, wanted);
    }
    if (has_gpus())
        assert_int_equal(oly_device_id(oly_platform_device("cpu", 0)), gpus);
    oly_error_mode mode = oly_set_error_mode(OLY_ERRORS_RETURN);
    assert_null(oly_platform_device("cpu", cpus));
    assert_int_equal(oly_last_status(), OLY_INVALID);
    oly_clear_error();
    assert_null(oly_platform_device("tpu", 0));
    assert_int_equal(oly_last_status(), OLY_INVALID);
    oly_clear_error();
    oly_set_error_mode(mode);
}

static oly_array numbers(void)
{
    return oly_reshape(oly_arange(N * N, OLY_FLOAT32), N, N);
}

static oly_mesh cpu_mesh(void)
{
    int n = oly_platform_device_count("cpu"), ids[64];
    for (int k = 0; k < n; k++)
        ids[k] = oly_device_id(oly_platform_device("cpu", k));
    return oly_mesh_from_devices(1, (const char *[]){"c"}, &n, ids);
}

static void same_numbers(oly_array x, float factor)
{
    static float got[N * N];
    assert_non_null(x);
    assert_int_equal(oly_process_allgather(x, got, sizeof got), OLY_OK);
    for (int k = 0; k < N * N; k++)
        if (got[k] != factor * (float)k)
            fail_msg("element %d is %g, not %g", k, (double)got[k], (double)(factor * (float)k));
}

static void arrays_move_between_platforms(void **state)
{
    (void)state;
    oly_mesh cpus = cpu_mesh(), all = oly_make_mesh("i=-1");
    oly_array there = oly_device_put(numbers(), oly_named(all, "i"));
    oly_array here = oly_device_put(there, oly_named(cpus, "c"));
    oly_array doubled = oly_mul(here, 2);
    same_numbers(here, 1);
    same_numbers(doubled, 2);
    OLY_FOR_EACH_SHARD(s, doubled)
    {
        assert_string_equal(oly_device_platform(s.device), "cpu");
        assert_true(oly_device_is_local(s.device));
        const float *values = s.memory;
        for (int64_t k = 0; k < s.extent[0] * N; k++)
            assert_true(values[k] == 2 * (float)(s.start[0] * N + k));
    }
    oly_array back = oly_device_put(doubled, oly_named(all, "None, i"));
    same_numbers(oly_mul(back, 0.5), 1);
    OLY_FOR_EACH_SHARD(s, back)
    assert_string_equal(oly_device_platform(s.device), has_gpus() ? "cuda" : "cpu");
}

static oly_array several(oly_array x)
{
    oly_array product = oly_matmul(x, oly_transpose(x));
    return oly_add(oly_sum(oly_sort(oly_cumsum(oly_sin(x), 1), 0), .axes = "0"), oly_max(product, .axes = "1"));
}

/* The CPU devices compute what GPUs compute, to rounding. */
static void they_compute_the_same(void **state)
{
    (void)state;
    float a[N], b[N];
    oly_array x = oly_mul(numbers(), 0.01);
    oly_array on_cpus = several(oly_device_put(x, oly_named(cpu_mesh(), "c")));
    oly_array on_all = several(oly_device_put(x, oly_named(oly_make_mesh("i=-1"), "i")));
    assert_int_equal(oly_process_allgather(on_cpus, a, sizeof a), OLY_OK);
    assert_int_equal(oly_process_allgather(on_all, b, sizeof b), OLY_OK);
    for (int k = 0; k < N; k++)
        assert_true(a[k] - b[k] < 1e-4f * (1 + b[k]) && b[k] - a[k] < 1e-4f * (1 + b[k]));
}

static void a_default_device_may_be_a_cpu(void **state)
{
    (void)state;
    oly_device cpu = oly_platform_device("cpu", 0);
    oly_device before = oly_set_default_device(cpu);
    oly_array x = oly_ones(OLY_FLOAT32, 3);
    OLY_FOR_EACH_SHARD(s, x)
    assert_string_equal(oly_device_platform(s.device), "cpu");
    oly_set_default_device(before);
}

static void a_mesh_is_of_one_platform(void **state)
{
    (void)state;
    if (!has_gpus())
        skip();
    int ids[] = {0, oly_device_id(oly_platform_device("cpu", 0))}, n = 2;
    oly_error_mode mode = oly_set_error_mode(OLY_ERRORS_RETURN);
    assert_null(oly_mesh_from_devices(1, (const char *[]){"i"}, &n, ids));
    assert_int_equal(oly_last_status(), OLY_DEVICES);
    assert_non_null(strstr(oly_last_error(), "different platforms"));
    oly_clear_error();
    oly_set_error_mode(mode);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(devices_are_listed_by_platform, check_open, check_close),
        cmocka_unit_test_setup_teardown(arrays_move_between_platforms, check_open, check_close),
        cmocka_unit_test_setup_teardown(they_compute_the_same, check_open, check_close),
        cmocka_unit_test_setup_teardown(a_default_device_may_be_a_cpu, check_open, check_close),
        cmocka_unit_test_setup_teardown(a_mesh_is_of_one_platform, check_open, check_close),
    };
    return CHECK_MAIN(tests);
}
