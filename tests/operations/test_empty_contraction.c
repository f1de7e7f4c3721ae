/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Products that sum over two dimensions, of which a split one is empty on some devices: their partial sum
 * is zero, not uninitialised memory. Here it is the derivative of a product by a vector. */
#include "check_session.h"

enum { FIRST = 6, LAST = 9 };
static oly_array matrices;

static void total(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array vector = oly_broadcast_shape(OLY_ARG(in[0]), 1, (const int64_t[]){LAST});
    out[0] = oly_sum(oly_matmul(matrices, vector));
}

static void slope(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    matrices = in[0];
    oly_call(oly_grad(oly_jit(total, 1, 1)), OLY_IN(oly_full(1, OLY_FLOAT32)), OLY_OUT(out[0]));
}

static void empty_parts_add_nothing(void **state)
{
    static const char *const specs[] = {"", "x", "None, x", "None, None, x"};
    static const oly_dtype types[] = {OLY_BOOL, OLY_INT32, OLY_FLOAT32};
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    for (int n = 1; n < 11; n++)
        for (int k = 0; k < 4; k++)
            for (int t = 0; t < 3; t++)
                OLY_SCOPE
                {
                    oly_array x = oly_device_put(oly_full(1, types[t], FIRST, n, LAST), oly_named(mesh, specs[k]));
                    oly_array y = NULL;
                    oly_call(oly_jit(slope, 1, 1), OLY_IN(x), OLY_OUT(y));
                    assert_true(oly_item(y) == FIRST * n * LAST);
                }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(empty_parts_add_nothing, check_start, check_finish),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
