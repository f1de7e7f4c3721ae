/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Meshes over some of the devices: processes that own none of them plan the same shardings as the others,
 * and need not take part in what concerns only the others. */
#include "check_session.h"

static oly_array captured;

static void uses_it_twice(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_min2(in[0], captured);
    out[1] = captured;
    out[2] = oly_update(in[0], "..., 11:13:4, 1:", 1);
}

static void a_capture_is_one_input_on_every_process(void **state)
{
    (void)state;
    int64_t shape[] = {17, 13, 2}, host[17 * 13 * 2];
    oly_mesh mesh = oly_make_mesh("x=5");
    oly_array out[3] = {0};
    captured = oly_full_sharded(oly_operand_int(1), OLY_INT64, oly_named(mesh, "x, None, None"), 3, shape);
    oly_array b = oly_full_sharded(oly_operand_int(1), OLY_BOOL, oly_named(mesh, "None, x"), 3, shape);
    oly_call(oly_jit(uses_it_twice, 1, 3), OLY_IN(b), OLY_OUT(out[0], out[1], out[2]));
    char sharding[100];
    oly_sharding_str(oly_sharding_of(out[0]), sharding, sizeof sharding);
    assert_string_equal(sharding, "NamedSharding(mesh=Mesh('x': 5), spec=P(None, 'x'))");
    assert_int_equal(oly_process_allgather(out[0], host, sizeof host), OLY_OK);
    for (int k = 0; k < 17 * 13 * 2; k++)
        assert_int_equal(host[k], 1);
}

static void five(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_full_like(in[0], 5);
}

static void seven(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_full_like(in[0], 7);
}

static oly_array is_set(const oly_array *carry, void *user)
{
    (void)user;
    return carry[1];
}

static void add_once(oly_array *carry, void *user)
{
    carry[0] = oly_add(carry[0], *(oly_array *)user);
    carry[1] = oly_logical_not(carry[1]);
}

/* A predicate that each process has; the first device is not in the mesh, and does not have it. */
static void branches_and_loops_without_the_first_device(void **state)
{
    (void)state;
    oly_mesh mesh = oly_mesh_from_devices(1, (const char *[]){"x"}, (int[]){2}, (int[]){7, 2});
    oly_array x = oly_device_put(oly_arange(4, OLY_INT32), oly_named(mesh, "x"));
    for (int k = 0; k < 2; k++) {
        oly_array holds = oly_full(k, OLY_BOOL), y = NULL;
        oly_block_until_ready(holds);
        oly_cond(holds, five, seven, OLY_IN(x), 1, &y, NULL);
        CHECK_NEAR(y, k ? 5 : 7, k ? 5 : 7, k ? 5 : 7, k ? 5 : 7);
        oly_array carry[] = {x, holds};
        oly_while(is_set, add_once, 2, carry, &x);
        CHECK_NEAR(carry[0], 0, 1 + k, 2 + 2 * k, 3 + 3 * k);
    }
}

/* The default device belongs to one process; the others have the data, and no array. */
static void data_moves_from_a_default_device(void **state)
{
    (void)state;
    float data[] = {1, 2, 3, 4};
    oly_set_default_device(oly_get_device(5));
    oly_array x = oly_from_host(data, OLY_FLOAT32, 1, (int64_t[]){4}), y = oly_mul(x, 2);
    oly_set_default_device(NULL);
    oly_sharding rows = oly_named(oly_make_mesh("x=8"), "x"), some = oly_named(oly_make_mesh("x=3"), "x");
    CHECK_NEAR(oly_device_put(y, rows), 2, 4, 6, 8);
    CHECK_NEAR(oly_device_put(y, some), 2, 4, 6, 8);
    CHECK_NEAR(oly_add(oly_device_put(y, rows), x), 3, 6, 9, 12);
}

#define STARTED(test) cmocka_unit_test_setup_teardown(test, check_start_wide, check_close)
static const struct CMUnitTest tests[] = {
    STARTED(a_capture_is_one_input_on_every_process),
    STARTED(branches_and_loops_without_the_first_device),
    STARTED(data_moves_from_a_default_device),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
