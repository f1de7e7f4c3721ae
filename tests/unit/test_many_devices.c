/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Eight thousand devices in one process: the work of planning grows linearly, so it takes moments. */
#include "check.h"
#include <olympus.h>
#include <time.h>

enum { DEVICES = 8192, N = 60000 };

static double seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC; /* CPU time: other load on the machine matters little */
}

static void sums_over_thousands_of_devices(void **state)
{
    (void)state;
    char axes[20];
    snprintf(axes, sizeof axes, "x=%d", DEVICES);
    setenv("OLYMPUS_NUM_CPU_DEVICES", axes + 2, 1);
    double begin = seconds();
    oly_init(NULL, NULL);
    assert_int_equal(oly_device_count(), DEVICES);
    oly_sharding s = oly_named(oly_make_mesh(axes), "x");
    oly_array x = oly_device_put(oly_arange(N, OLY_INT32), s);
    assert_true(oly_item(oly_sum(x)) == N * (N - 1.) / 2);
    assert_true(oly_item(oly_max(oly_add(x, 1))) == N);
    assert_true(oly_item(oly_sum(oly_add(oly_roll(x, 1, 0), oly_mul(x, -1)))) == 0);
    assert_int_equal(oly_finalize(), 0);
    double took = seconds() - begin;
    if (took > 10) /* 2 or 3; when it grew with the cube of the devices, minutes */
        fail_msg("%.1f s", took);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_over_thousands_of_devices)};
    return CHECK_MAIN(tests);
}
