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

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shards_have_memory_of_host_and_device, check_open, check_close)};
    return CHECK_MAIN(tests);
}
