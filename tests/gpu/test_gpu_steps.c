/* SPDX-License-Identifier: BSD-3-Clause */
/* run: devices=2  What GPUs have kernels for is not computed on the host: every operation of kernels/local.h, and random bits, on arrays that are
 * whole or divided. tests/gpu/test_platform.sh runs it on an emulated GPU; on CPUs nothing is computed in another way. */
#include "check.h"
#include "check_session.h"
#include "run/device_counts.h"

static oly_array places;      /* int32[12]: indexes, some outside */
static oly_array kernels;     /* float32[2, 1, 3, 3] */
static oly_array zero, three; /* int32[] on the device */

#define OPERATIONS(X)                                                                                                  \
    X(sort, oly_sort(x, 0))                                                                                            \
    X(sort_columns, oly_sort(x, 1, .descending = true))                                                                \
    X(argsort, oly_argsort(x, 0, .descending = true))                                                                  \
    X(argsort_columns, oly_argsort(x, 1))                                                                              \
    X(argmax, oly_argmax(x))                                                                                           \
    X(argmin, oly_argmin(x, .axes = "0"))                                                                              \
    X(cumsum, oly_cumsum(x, 0))                                                                                        \
    X(cumprod, oly_cumprod(x, 1, .reverse = true))                                                                     \
    X(cummax, oly_cummax(x, 0))                                                                                        \
    X(cummin, oly_cummin(x, 0))                                                                                        \
    X(cumlogsumexp, oly_cumlogsumexp(x, 0))                                                                            \
    X(searchsorted, oly_searchsorted(oly_sort(oly_ravel(x), 0), x, "right"))                                           \
    X(take, oly_take(x, places, 0, "fill"))                                                                            \
    X(take_clipped, oly_take(x, places, 1, "clip"))                                                                    \
    X(at_set, oly_at_set(x, OLY_INDEXES(places), 7))                                                                   \
    X(at_add, oly_at_add(x, OLY_INDEXES(places), 1))                                                                   \
    X(at_mul, oly_at_mul(x, OLY_INDEXES(places), 2))                                                                   \
    X(at_min, oly_at_min(x, OLY_INDEXES(places), 2))                                                                   \
    X(at_max, oly_at_max(x, OLY_INDEXES(places), 2))                                                                   \
    X(segment_sum, oly_segment_sum(oly_slice(x, ":, 0"), oly_slice(places, ":8"), 5))                                  \
    X(dynamic_slice, oly_dynamic_slice(x, OLY_INDEXES(three, zero), OLY_EXTENTS(4, 2)))                                \
    X(dynamic_update, oly_dynamic_update_slice(x, oly_zeros(OLY_FLOAT32, 2, 4), OLY_INDEXES(three, zero)))             \
    X(conv, oly_conv(oly_reshape(x, 1, 1, 8, 4), kernels, .padding = "SAME"))                                          \
    X(max_pool, oly_max_pool(x, .window = "2, 2", .strides = "2, 2"))                                                  \
    X(sums, oly_reduce_window(x, "sum", .window = "3, 3", .padding = "SAME"))                                          \
    X(random, oly_random_uniform(oly_random_key(3), OLY_FLOAT32, 8, 4))

typedef oly_array operation(oly_array x);
#define DEFINE(name, value)                                                                                            \
    static oly_array name##_of(oly_array x)                                                                            \
    {                                                                                                                  \
        (void)x;                                                                                                       \
        return value;                                                                                                  \
    }
OPERATIONS(DEFINE)

static void nothing_takes_the_detour(void **state)
{
    (void)state;
#define ROW(name, value) {#name, name##_of},
    static const struct {
        const char *name;
        operation *f;
    } operations[] = {OPERATIONS(ROW)};
    oly_mesh mesh = oly_make_mesh("x=2");
    OLY_SCOPE
    {
        places = oly_sub(oly_mod(oly_mul(oly_arange(12, OLY_INT32), 7), 11), 1);
        kernels = oly_reshape(oly_arange(18, OLY_FLOAT32), 2, 1, 3, 3);
        zero = oly_sum(oly_zeros(OLY_INT32, 2));
        three = oly_add(zero, 3);
        oly_array x = oly_sub(oly_reshape(oly_mod(oly_mul(oly_arange(32, OLY_FLOAT32), 5), 23), 8, 4), 6);
        oly_array xs[] = {x, oly_device_put(x, oly_named(mesh, "x")), oly_device_put(x, oly_named(mesh, "None, x"))};
        for (size_t k = 0; k < sizeof operations / sizeof *operations; k++)
            for (int layout = 0; layout < 3; layout++) {
                int64_t before = atomic_load(&oly_device_counted.on_host);
                oly_array y = operations[k].f(xs[layout]);
                assert_non_null(y);
                assert_int_equal(oly_block_until_ready(y), OLY_OK);
                int64_t shares = atomic_load(&oly_device_counted.on_host) - before;
                if (shares)
                    fail_msg("%s, layout %d: %d shares of steps were computed on the host", operations[k].name, layout,
                             (int)shares);
            }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_takes_the_detour, check_open, check_close)};
    return CHECK_MAIN(tests);
}
