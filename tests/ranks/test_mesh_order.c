/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  The order of devices in meshes of jobs on several nodes, which ranks pretend to be on (OLYMPUS_NODES): node by node and
 * socket by socket, with the last axes inside nodes; that of the ids on one node, or where it is turned off. Meshes of two levels. Values do
 * not depend on any of it. */
#include "check_session.h"
#include "device/platform.h"

static void begin(const char *nodes, const char *order)
{
    setenv("OLYMPUS_NODES", nodes, 1);
    setenv("OLYMPUS_MESH_ORDER", order, 1);
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
}

static void end(void)
{
    assert_string_equal(oly_last_error(), "");
    assert_int_equal(oly_finalize(), 0);
    unsetenv("OLYMPUS_NODES");
    unsetenv("OLYMPUS_MESH_ORDER");
}

static int id_at(oly_mesh mesh, int position)
{
    return oly_device_id(oly_mesh_device(mesh, position));
}

static int count_processes(void)
{
    oly_init(NULL, NULL);
    int n = oly_process_count();
    oly_finalize();
    return n;
}

/* Ranks in turn on two nodes; one alone is on one. */
static const char *nodes_in_turn(void)
{
    return count_processes() == 1 ? "0" : "0,1,0,1,0,1,0,1";
}

static void nodes_come_one_after_the_other(void **state)
{
    (void)state;
    begin(nodes_in_turn(), "1");
    int n = oly_process_count(), each = 8 / n;
    oly_mesh mesh = oly_make_mesh("i=2, j=4");
    assert_int_equal(oly_node_count(), n == 1 ? 1 : 2);
    for (int k = 0; k < 8; k++) {
        int process = oly_device_process(oly_mesh_device(mesh, k));
        assert_int_equal(oly_device_node(oly_mesh_device(mesh, k)), n == 1 ? 0 : k / 4);
        if (n > 1)
            assert_int_equal(process, k / each % (n / 2) * 2 + k / 4); /* by rank on each node */
        assert_int_equal(id_at(mesh, k), process * each + k % each);
    }
    /* a part of the devices is the same part, in that order */
    oly_mesh part = oly_make_mesh("i=6");
    for (int k = 0, sum = 0; k < 6; k++)
        assert_true(id_at(part, k) < 6 && (sum += id_at(part, k)) <= 15);
    OLY_SCOPE
    {
        oly_array x = oly_device_put(oly_arange(24, OLY_FLOAT32), oly_named(mesh, "(i,j)"));
        CHECK_NEAR(oly_sum(x), 276);
        CHECK_NEAR(oly_slice(oly_add(x, 1), "3:6"), 4, 5, 6);
        CHECK_NEAR(oly_sum(oly_device_put(x, oly_named(part, "i"))), 276);
    }
    end();
}

static void it_can_be_turned_off(void **state)
{
    (void)state;
    begin(nodes_in_turn(), "0");
    oly_mesh mesh = oly_make_mesh("i=2, j=4");
    for (int k = 0; k < 8; k++)
        assert_int_equal(id_at(mesh, k), k);
    end();
}

static void one_node_and_nodes_in_a_row_keep_the_order_of_ids(void **state)
{
    (void)state;
    static const char *const nodes[] = {"", "0,0,0,0,1,1,1,1", "0/1,0/0,0/1,0/0,0/1,0/0,0/1,0/0"};
    int n = count_processes();
    for (int k = 0; k < 3; k++) {
        begin(n == 8 || k != 1 ? nodes[k] : n == 4 ? "0,0,1,1" : n == 2 ? "0,1" : "0", "1");
        oly_mesh mesh = oly_make_mesh("i=2, j=4"),
                 listed = oly_mesh_from_devices(2, (const char *[]){"i", "j"}, (int[]){2, 4}, NULL);
        assert_ptr_equal(mesh, listed);
        end();
    }
}

static void sockets_of_a_node_come_one_after_the_other(void **state)
{
    (void)state;
    int n = count_processes();
    if (n != 4)
        return;
    begin("1/1,1/0,0/3,0/0", "1"); /* nodes count in the order of their first ranks: 0 and 1, then 2 and 3 */
    oly_mesh mesh = oly_make_mesh("i=8");
    int by_rank[] = {1, 0, 3, 2};
    for (int k = 0; k < 8; k++)
        assert_int_equal(oly_device_process(oly_mesh_device(mesh, k)), by_rank[k / 2]);
    assert_int_equal(oly_device_node(oly_get_device(0)), 0);
    end();
}

/* -- meshes of two levels ------------------------------------------------------------------------------------------------------ */

static void outer_axes_are_over_nodes(void **state)
{
    (void)state;
    begin(nodes_in_turn(), "1");
    int n = oly_process_count(), nodes = n == 1 ? 1 : 2;
    oly_mesh mesh = oly_make_hybrid_mesh("data=-1", "model=-1");
    char text[80];
    assert_non_null(mesh);
    oly_mesh_str(mesh, text, sizeof text);
    assert_string_equal(text, nodes == 1 ? "Mesh('data': 1, 'model': 8)" : "Mesh('data': 2, 'model': 4)");
    for (int k = 0; k < 8; k++)
        assert_int_equal(oly_device_node(oly_mesh_device(mesh, k)), k / (8 / nodes));
    if (nodes == 2) {
        oly_mesh inner_first = oly_make_hybrid_mesh("x=1, data=2:explicit", "x=2, model=2");
        oly_mesh_str(inner_first, text, sizeof text);
        assert_string_equal(text, "Mesh('x': 2, 'data': 2, 'model': 2, axis_types=(Auto, Explicit, Auto))");
        for (int k = 0; k < 8; k++) /* data is the second of three axes of 2 */
            assert_int_equal(oly_device_node(oly_mesh_device(inner_first, k)), k / 2 % 2);
        oly_mesh both = oly_make_hybrid_mesh("x=2", "x=2");
        assert_int_equal(oly_mesh_axis_size(both, 0), 4);
        for (int k = 0; k < 4; k++) /* nodes are the major part */
            assert_int_equal(oly_device_node(oly_mesh_device(both, k)), k / 2);
        CHECK_NEAR(oly_sum(oly_device_put(oly_arange(9, OLY_INT32), oly_named(both, "x"))), 36);
    }
    oly_mesh processes = oly_make_hybrid_mesh("p=-1", "d=-1", .by_process = true);
    assert_int_equal(oly_mesh_axis_size(processes, 0), n);
    for (int k = 0; k < 8; k++)
        assert_int_equal(oly_device_process(oly_mesh_device(processes, k)), k / (8 / n));
    end();
}

static int by_parity(int device)
{
    return device % 2;
}

/* A platform says which devices of a process are linked directly: they come one after the other, on any number of nodes. */
static void linked_devices_are_neighbours(void **state)
{
    (void)state;
    static const int wanted[] = {0, 2, 1, 3, 4, 6, 5, 7};
    if (count_processes() != 2)
        return;
    oly_platform linked = oly_platform_cpu;
    linked.link_group = by_parity;
    oly_platform_register(&linked);
    for (int nodes = 1; nodes <= 2; nodes++) {
        begin(nodes == 1 ? "" : "0,1", "1");
        oly_mesh mesh = oly_make_mesh("i=8");
        for (int k = 0; k < 8; k++)
            assert_int_equal(id_at(mesh, k), wanted[k]);
        CHECK_NEAR(oly_sum(oly_device_put(oly_arange(20, OLY_INT32), oly_named(mesh, "i"))), 190);
        end();
    }
    oly_platform_register(NULL);
}

static void check_mesh_refused(oly_mesh mesh, oly_status status, const char *text)
{
    assert_null(mesh);
    assert_int_equal(oly_last_status(), status);
    if (!strstr(oly_last_error(), text))
        fail_msg("\"%s\" is not in: %s", text, oly_last_error());
    oly_clear_error();
}

static void impossible_levels_are_refused(void **state)
{
    (void)state;
    begin("", "1");
    check_mesh_refused(oly_make_hybrid_mesh("data=2", "model=4"), OLY_INVALID, "need 2 nodes, but the job runs on 1");
    check_mesh_refused(oly_make_hybrid_mesh("data=1", "model=9"), OLY_INVALID, "need 9 devices of each node");
    check_mesh_refused(oly_make_hybrid_mesh("data=1", "model=-1, x=3"), OLY_INVALID, "does not divide all 8");
    check_mesh_refused(oly_make_hybrid_mesh("data=1", "model"), OLY_PARSE, "column");
    check_mesh_refused(oly_make_hybrid_mesh("data=1", "a=1, a=2"), OLY_INVALID, "twice");
    check_mesh_refused(oly_make_hybrid_mesh(NULL, "a=1"), OLY_INVALID, "outer axes are NULL");
    check_mesh_refused(oly_make_hybrid_mesh("p=9", "d=1", .by_process = true), OLY_INVALID, "need 9 processes");
    end();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nodes_come_one_after_the_other),
    cmocka_unit_test(it_can_be_turned_off),
    cmocka_unit_test(one_node_and_nodes_in_a_row_keep_the_order_of_ids),
    cmocka_unit_test(sockets_of_a_node_come_one_after_the_other),
    cmocka_unit_test(outer_axes_are_over_nodes),
    cmocka_unit_test(linked_devices_are_neighbours),
    cmocka_unit_test(impossible_levels_are_refused),
};

/* For tests/cluster/test_mesh_hosts.sh: the order of the devices where the job really runs. */
static int print_order(int *argc, char ***argv)
{
    oly_init(argc, argv);
    oly_mesh mesh = oly_make_mesh("i=-1");
    if (oly_process_index() == 0) {
        printf("%d nodes, devices", oly_node_count());
        for (int k = 0; k < oly_mesh_device_count(mesh); k++)
            printf(" %d", id_at(mesh, k));
        printf("\n");
    }
    return oly_finalize();
}

int main(int argc, char **argv)
{
    return getenv("PRINT_ORDER") ? print_order(&argc, &argv) : CHECK_MAIN(tests);
}
