/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditions and bodies of loops that tests of both ways to run oly_while on GPUs have: test_gpu_while (iterations that begin early),
 * test_gpu_loops (graphs). */
#ifndef OLY_TESTS_GPU_LOOP_BODIES_H
#define OLY_TESTS_GPU_LOOP_BODIES_H
#include "olympus.h"

static oly_array below(const oly_array *carry, void *user)
{
    (void)user;
    return oly_lt(carry[0], carry[1]);
}

/* A counted loop of products, and a sum over devices on which the condition depends. */
static void product(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_add(oly_mul(oly_matmul(carry[0], oly_transpose(carry[0])), 0.05), oly_mul(0.01, i));
}

static void products(oly_array *carry, void *user)
{
    (void)user;
    oly_array inner[] = {carry[2]};
    oly_fori(1, 4, product, 1, inner, NULL);
    oly_array largest = oly_max(oly_abs(inner[0]));
    carry[2] = oly_div(inner[0], oly_add(1, largest));
    carry[0] = oly_add(carry[0], oly_astype(oly_add(1, oly_mul(0, largest)), OLY_INT32));
}

static void nested(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array carry[] = {oly_zeros(OLY_INT32), in[1], in[0]};
    oly_while(below, products, 3, carry, NULL);
    out[0] = carry[2];
    out[1] = carry[0];
}
#endif
