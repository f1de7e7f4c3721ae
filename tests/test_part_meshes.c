/* run: layouts  Meshes over some of the devices: processes that have none of them plan the same shardings as the others, and need not
 * take part in what concerns the others alone. */
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

#define STARTED(test) cmocka_unit_test_setup_teardown(test, check_start_wide, check_close)
static const struct CMUnitTest tests[] = {
    STARTED(a_capture_is_one_input_on_every_process),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
