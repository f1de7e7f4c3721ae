/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Stencil loops over blocks that are hardly larger than what taps reach in a pass, some further on one side than on the other: the
 * values of an array that is not divided. On GPUs and CPUs, whose parts before and after the messages differ. */
#include "check_session.h"
#include <stdlib.h>
#include <string.h>

static int steps;

static void plate(oly_array i, oly_array *u, void *user)
{
    (void)i, (void)user;
    oly_array a = oly_slice(*u, "2:-2, 2:-2"), b = oly_slice(*u, ":-4, 3:-1"), c = oly_slice(*u, "4:, :-4");
    *u = oly_update(*u, "2:-2, 2:-2", oly_add(oly_mul(a, 0.5), oly_add(oly_mul(b, 0.25), oly_mul(c, -0.125))));
}

static void block(oly_array i, oly_array *u, void *user)
{
    (void)i, (void)user;
    oly_array a = oly_slice(*u, "1:-1, 1:-1, 1:-1"), b = oly_slice(*u, ":-2, 1:-1, 1:-1");
    oly_array c = oly_slice(*u, "1:-1, 2:, :-2");
    *u = oly_update(*u, "1:-1, 1:-1, 1:-1", oly_add(oly_mul(a, 0.5), oly_add(oly_mul(b, 0.25), oly_mul(c, 0.25))));
}

static void advance(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, steps, oly_rank(in[0]) == 2 ? plate : block, 1, out, NULL);
}

static void compare(int rank, const int64_t *shape, const char *spec)
{
    int64_t n = 1;
    char axes[20];
    for (int d = 0; d < rank; d++)
        n *= shape[d];
    snprintf(axes, sizeof axes, "x=%d", oly_device_count());
    oly_array whole =
        oly_astype(oly_reshape_shape(oly_rem(oly_mul(oly_arange(n, OLY_INT32), 79), 97), rank, shape), OLY_FLOAT32);
    oly_array divided = oly_device_put(whole, oly_named(oly_make_mesh(axes), spec));
    size_t bytes = (size_t)n * 4;
    float *one = malloc(bytes), *many = calloc(1, bytes);
    assert_int_equal(oly_process_allgather(oly_apply(oly_jit(advance, 1, 1), whole), one, bytes), OLY_OK);
    assert_int_equal(oly_process_allgather(oly_apply(oly_jit(advance, 1, 1), divided), many, bytes), OLY_OK);
    if (memcmp(one, many, bytes) != 0)
        fail_msg("%d dimensions, %d steps: other values than undivided", rank, steps);
    free(one), free(many);
}

static void blocks_have_the_values_of_the_whole(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        steps = (int[]){1, 7, 23}[k];
        compare(2, (int64_t[]){200, 131}, "x, None");
        compare(3, (int64_t[]){40, 37, 51}, "x, None, None");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(blocks_have_the_values_of_the_whole, check_open, check_close)};
    return CHECK_MAIN(tests);
}
