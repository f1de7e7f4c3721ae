/* SPDX-License-Identifier: BSD-3-Clause */
/* run: devices=2  Shards of arrays where the host and where CUDA code of the program finds them, and the list of devices; tests/gpu/test_platform.sh
 * runs it on an emulated GPU. */
#include "check.h"
#include "check_session.h"
#include <string.h>

static void shards_have_memory_of_host_and_device(void **state)
{
    int n = 0;
    (void)state;
    oly_array x = oly_device_put(oly_arange(8, OLY_FLOAT32), oly_named(oly_make_mesh("x=2"), "x"));
    OLY_FOR_EACH_SHARD(s, x)
    {
        bool on_cpu = strcmp(oly_device_platform(s.device), "cpu") == 0;
        const float *elements = s.memory;
        for (int k = 0; k < 4; k++)
            assert_true(elements[k] == (float)(s.start[0] + k));
        assert_non_null(s.device_memory);
        assert_int_equal(s.device_memory == s.memory, on_cpu);
        n++;
    }
    assert_int_equal(n, 2);
    oly_print_devices();
}

/* What arrays take is counted, on all GPUs of the process together. */
static void memory_is_counted(void **state)
{
    oly_device_counts before, during;
    (void)state;
    bool on_gpus = strcmp(oly_device_platform(oly_get_device(0)), "cuda") == 0;
    assert_int_equal(oly_get_device_counts(&before), OLY_OK);
    oly_array x = oly_device_put(oly_zeros(OLY_FLOAT32, 1 << 20), oly_named(oly_make_mesh("x=2"), "x"));
    oly_block_until_ready(x);
    assert_int_equal(oly_get_device_counts(&during), OLY_OK);
    assert_int_equal(during.memory - before.memory >= 4 << 20, on_gpus);
    assert_true(during.memory_peak >= during.memory && during.memory_limit >= during.memory_peak);
    assert_int_equal(during.memory_limit > 0, on_gpus);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shards_have_memory_of_host_and_device, check_open, check_close),
        cmocka_unit_test_setup_teardown(memory_is_counted, check_open, check_close)};
    return CHECK_MAIN(tests);
}
