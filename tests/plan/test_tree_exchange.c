/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Gathers and broadcasts in stages, also between few processes, beside other transfers, products and
 * sums: the values of one device, and the same bits however steps overlap. */
#include "check_communication.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int setup(void **state)
{
    (void)state;
    setenv("OLYMPUS_DIRECT_PROCESSES", "1", 1);
    oly_init(NULL, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unsetenv("OLYMPUS_DIRECT_PROCESSES");
    return oly_finalize();
}

static oly_array everywhere(oly_array x)
{
    return oly_with_sharding_constraint(x, oly_named(oly_make_mesh("x=8"), ""));
}

static oly_array by_columns(oly_array x)
{
    return oly_with_sharding_constraint(x, oly_named(oly_make_mesh("x=8"), "None, x"));
}

/* A gather, an all-to-all and another gather are in flight together; each is then read. */
static void several_at_once(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array rows = everywhere(oly_mul(in[0], 2)), columns = by_columns(in[1]);
    oly_array others = everywhere(oly_sin(in[1])), product = oly_matmul(in[1], in[0]);
    out[0] = by_columns(oly_add(oly_add(rows, oly_mul(columns, 3)), oly_sub(others, product)));
}

static void stages_run_beside_other_exchanges(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array plain[] = {check_matrix(264, 264), check_matrix(264, 264)};
    oly_array in[] = {oly_device_put(plain[0], oly_named(mesh, "x")), oly_device_put(plain[1], oly_named(mesh, "x"))};
    check_same_values(several_at_once, 2, plain, in, 264 * 264, 1e-3);
    check_same_bits(several_at_once, 2, in, 264 * 264);
}

/* In every iteration the gathered value is used and split again: the exchange of a plan runs many times. */
static void gather_in_rounds(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    oly_array all = everywhere(carry[0]);
    carry[0] = oly_mul(0.5, oly_add(carry[0], oly_rev(all, 0)));
}

static void rounds(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, 20, gather_in_rounds, 1, out, NULL);
}

static void stages_run_again(void **state)
{
    (void)state;
    oly_array plain[] = {check_matrix(83, 40)};
    oly_array in[] = {oly_device_put(plain[0], oly_named(oly_make_mesh("x=8"), "x"))};
    check_same_values(rounds, 1, plain, in, 83 * 40, 1e-5);
    check_same_bits(rounds, 1, in, 83 * 40);
}

static void spread(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_device_put(in[0], oly_named(oly_make_mesh("x=8"), ""));
}

static void explanations_count_the_stages(void **state)
{
    (void)state;
    oly_array one[] = {oly_device_put(check_matrix(64, 64), oly_single_device(oly_get_device(7)))};
    char *text = check_steps(oly_jit_with(spread, "f", 1, 1, (oly_jit_options){.user = NULL}), 1, one);
    assert_int_equal(strstr(text, "in 2 stages") != NULL,
                     oly_process_count() == 4); /* between two, stages save nothing */
    assert_int_equal(strstr(text, "in 3 stages") != NULL, oly_process_count() == 8);
    free(text);
    oly_array y = oly_apply(oly_jit(spread, 1, 1), one[0]);
    float *got = malloc(64 * 64 * sizeof *got), *wanted = malloc(64 * 64 * sizeof *wanted);
    oly_get(check_matrix(64, 64), wanted, 64 * 64 * sizeof *wanted);
    OLY_FOR_EACH_SHARD(s, y)
    {
        oly_get(s.data, got, 64 * 64 * sizeof *got);
        assert_memory_equal(got, wanted, 64 * 64 * sizeof *got);
    }
    free(got);
    free(wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stages_run_beside_other_exchanges, setup, teardown),
        cmocka_unit_test_setup_teardown(stages_run_again, setup, teardown),
        cmocka_unit_test_setup_teardown(explanations_count_the_stages, setup, teardown),
    };
    return CHECK_MAIN(tests);
}
