/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 devices=8  A training step over a batch cut over 2, 4, 8 devices divides the work: no device computes whole products, even
 * where that would move fewer bytes. */
#include "check.h"
#include "check_session.h"
#include "check_plans.h"
#include <olympus.h>

enum { PARAMETERS = 6, BATCH = 512, INPUTS = 784, WIDE = 2048, OUTPUTS = 10 };

static oly_array layer(oly_array x, oly_array w, oly_array b)
{
    return oly_add(oly_matmul(x, w), b);
}

static void loss(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array h = oly_relu(layer(in[6], in[0], in[1]));
    h = oly_relu(layer(h, in[2], in[3]));
    out[0] = oly_mean(oly_square(oly_sub(layer(h, in[4], in[5]), in[7])));
}

static void step(const oly_array *in, oly_array *out, void *user)
{
    oly_array slope[PARAMETERS] = {NULL}, *wanted[PARAMETERS];
    for (int k = 0; k < PARAMETERS; k++)
        wanted[k] = &slope[k];
    oly_call(*(oly_fn *)user, PARAMETERS + 2, in, PARAMETERS, wanted);
    for (int k = 0; k < PARAMETERS; k++)
        out[k] = oly_sub(in[k], oly_mul(0.01, slope[k]));
}

/* What the products of the step are predicted to take on all devices together. */
static double product_seconds(int devices, bool asked)
{
    static const int64_t shapes[PARAMETERS + 2][2] = {{INPUTS, WIDE},  {WIDE, 0},    {WIDE, WIDE},    {WIDE, 0},
                                                      {WIDE, OUTPUTS}, {OUTPUTS, 0}, {BATCH, INPUTS}, {BATCH, OUTPUTS}};
    char axes[16];
    double seconds = 0;
    snprintf(axes, sizeof axes, "x=%d", devices);
    oly_sharding whole = oly_named(oly_make_mesh(axes), ""), rows = oly_named(oly_sharding_mesh(whole), "x");
    oly_sharding out[PARAMETERS] = {whole, whole, whole, whole, whole, whole};
    oly_array in[PARAMETERS + 2];
    for (int k = 0; k < PARAMETERS + 2; k++)
        in[k] = oly_device_put(oly_zeros_shape(OLY_FLOAT32, shapes[k][1] ? 2 : 1, shapes[k]),
                               k < PARAMETERS ? whole : rows);
    oly_fn value = oly_jit(loss, PARAMETERS + 2, 1), slope = oly_grad(value, .argnums = "0, 1, 2, 3, 4, 5");
    oly_fn f = asked ? oly_jit(step, PARAMETERS + 2, PARAMETERS, .user = &slope, .out_shardings = out)
                     : oly_jit(step, PARAMETERS + 2, PARAMETERS, .user = &slope);
    FILE *json = check_plan_begin();
    assert_int_equal(oly_explain_as_n(json, OLY_EXPLAIN_JSON, f, PARAMETERS + 2, in), OLY_OK);
    char *text = check_plan_end(json);
    for (char *at = text; (at = strstr(at, "\"kind\": \"gemm\"")); at++)
        seconds += strtod(strstr(at, "\"seconds\":") + strlen("\"seconds\":"), NULL);
    free(text);
    return devices * seconds;
}

static void no_device_computes_whole_products(void **state)
{
    (void)state;
    for (int asked = 0; asked < 2; asked++) {
        double one = product_seconds(1, asked);
        for (int devices = 2; devices <= 8; devices *= 2)
            OLY_SCOPE
            {
                double all = product_seconds(devices, asked);
                if (all > 1.05 * one || all <= 0)
                    fail_msg("products take %g s on one device, %g s on %d together", one, all, devices);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_device_computes_whole_products, check_start, check_finish),
    };
    return CHECK_MAIN(tests);
}
