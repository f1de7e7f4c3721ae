/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 devices=8  Ten thousand queued reductions complete with the right value, on one thread and on four. */
#include "check.h"
#include <olympus.h>

enum { DEVICES = 8, EACH = 4, N = DEVICES * EACH, CALLS = 10000 };

/* The sum of y is 32 times its mean, so a call keeps the mean and adds a step to it: a call that is lost, doubled or
 * reads a stale sum changes the last value. All products are exact. */
static const double step = 1. / 1024;

static oly_array next(oly_array y)
{
    return oly_add(oly_add(oly_mul(y, 0.5), oly_mul(oly_sum(y), 0.5 / N)), step);
}

static void traced_next(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = next(in[0]);
}

/* The documented order: one after the other within a device, then adjacent pairs of devices. */
static float reference_sum(const float *y)
{
    float sum[DEVICES];
    for (int d = 0; d < DEVICES; d++) {
        const float *part = &y[EACH * d];
        sum[d] = ((part[0] + part[1]) + part[2]) + part[3];
    }
    for (int n = DEVICES; n > 1; n /= 2)
        for (int d = 0; d < n / 2; d++)
            sum[d] = sum[2 * d] + sum[2 * d + 1];
    return sum[0];
}

static void reference(float *y)
{
    for (int k = 0; k < CALLS; k++) {
        float share = reference_sum(y) * (0.5f / N);
        for (int i = 0; i < N; i++)
            y[i] = (y[i] * 0.5f + share) + (float)step;
    }
}

static void start(const char *threads)
{
    setenv("OLYMPUS_NUM_CPU_DEVICES", "8", 1);
    setenv("OLYMPUS_NUM_THREADS", threads, 1);
    oly_init(NULL, NULL);
    assert_int_equal(oly_device_count(), DEVICES);
}

/* Primes, so that all elements differ. */
static const float first[N] = {2,  3,  5,  7,  11, 13, 17, 19, 23, 29,  31,  37,  41,  43,  47,  53,
                               59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113, 127, 131};

static oly_array first_array(void)
{
    oly_array x = oly_from_host(first, OLY_FLOAT32, 1, (int64_t[]){N});
    return oly_device_put(x, oly_named(oly_make_mesh("x=8"), "x"));
}

static void finish(oly_array y)
{
    float got[N], expected[N];
    memcpy(expected, first, sizeof first);
    reference(expected);
    oly_get(y, got, sizeof got);
    assert_memory_equal(got, expected, sizeof got);
    assert_true(got[0] > CALLS * (float)step); /* the reference itself advanced */
    assert_int_equal(oly_finalize(), 0);
}

static void compiled(const char *threads)
{
    start(threads);
    oly_array y = first_array();
    oly_fn f = oly_jit(traced_next, 1, 1);
    for (int k = 0; k < CALLS; k++)
        oly_call(f, OLY_IN(y), OLY_OUT(y));
    finish(y);
}

static void eager(const char *threads)
{
    start(threads);
    oly_array y = first_array();
    for (int k = 0; k < CALLS; k++)
        OLY_SCOPE
        {
            oly_assign(&y, next(y));
        }
    finish(y);
}

static void compiled_on_one_thread(void **state)
{
    (void)state;
    compiled("1");
}

static void compiled_on_four_threads(void **state)
{
    (void)state;
    compiled("4");
}

static void eager_on_one_thread(void **state)
{
    (void)state;
    eager("1");
}

static void eager_on_four_threads(void **state)
{
    (void)state;
    eager("4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiled_on_one_thread),
        cmocka_unit_test(compiled_on_four_threads),
        cmocka_unit_test(eager_on_one_thread),
        cmocka_unit_test(eager_on_four_threads),
    };
    return CHECK_MAIN(tests);
}
