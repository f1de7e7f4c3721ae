/* SPDX-License-Identifier: BSD-3-Clause */
/* run: devices=8  Values that move between devices, large enough for messages of their own, and their sums: test_gpu_ways.sh runs it on emulated
 * GPUs of several processes. It prints the devices, an explanation, and a number that shows in which order sums were added. With
 * an argument it does that a hundred times. */
#include "check.h"
#include "check_session.h"
#include <stdio.h>

enum { ROWS = 16, LONG = 12000 };

static int times = 1;

static void add_rows(const oly_array *in, oly_array *out, void *unused)
{
    (void)unused;
    out[0] = oly_sum(in[0], OLY_AXES(0));
}

/* Integers, so that sums are exact in any order; or values whose sum shows the order. */
static oly_array make_rows(oly_mesh mesh, bool exact)
{
    static float host[ROWS][LONG];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < LONG; j++)
            host[i][j] = exact ? (float)((i * 7 + j) % 1000) : 1.f / (float)(3 + 5 * i + j % 11);
    return oly_device_put(oly_from_host(host, OLY_FLOAT32, 2, (int64_t[]){ROWS, LONG}), oly_named(mesh, "d, None"));
}

static void columns_arrive(oly_mesh mesh, oly_array x)
{
    static float there[ROWS][LONG];
    oly_process_allgather(oly_device_put(x, oly_named(mesh, "None, d")), there, sizeof there);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < LONG; j++)
            if (there[i][j] != (float)((i * 7 + j) % 1000))
                fail_msg("[%d, %d] is %g", i, j, (double)there[i][j]);
}

static void sum_of(oly_fn add, oly_array x, float sums[LONG])
{
    oly_array sum = NULL;
    oly_call(add, OLY_IN(x), OLY_OUT(sum));
    oly_get(sum, sums, sizeof(float) * LONG);
}

static void sums_are_right(oly_fn add, oly_array x)
{
    static float sums[LONG];
    sum_of(add, x, sums);
    for (int j = 0; j < LONG; j++) {
        int right = 0;
        for (int i = 0; i < ROWS; i++)
            right += (i * 7 + j) % 1000;
        if (sums[j] != (float)right)
            fail_msg("sum %d is %g, not %d", j, (double)sums[j], right);
    }
}

static void print_order(oly_fn add, oly_array x)
{
    static float sums[LONG];
    double all = 0;
    sum_of(add, x, sums);
    for (int j = 0; j < LONG; j++)
        all += sums[j];
    if (oly_process_index() == 0)
        printf("order: %.17g\n", all);
}

static void values_and_sums_arrive(void **state)
{
    (void)state;
    char axes[32];
    snprintf(axes, sizeof axes, "d=%d", oly_device_count());
    oly_mesh mesh = oly_make_mesh(axes);
    oly_fn add = oly_jit(add_rows, 1, 1);
    oly_array x = make_rows(mesh, true), other = make_rows(mesh, false);
    oly_print_devices();
    for (int k = 0; k < times; k++)
        OLY_SCOPE
        {
            columns_arrive(mesh, x);
            sums_are_right(add, x);
        }
    print_order(add, other);
    if (oly_process_index() == 0)
        oly_explain(stdout, add, x);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_and_sums_arrive, check_open, check_close)};
    (void)argv;
    times = argc > 1 ? 100 : 1;
    return CHECK_MAIN(tests);
}
