/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Plans for simulated machines (OLYMPUS_SIMULATE): rank 0's plan is the one it makes in a real job of
 * that size; for 100,000 devices plans have the steps, the bytes and the memory of those for eight, and are as much work
 * to make (count_work.h: times vary with what else runs); arrays have types and no values; wrong options are reported. */
#include "array/function.h"
#include "check.h"
#include "core/machine.h"
#include "core/option.h"
#include "core/simulate.h"
#include "count_work.h"
#include "layout/node.h"
#include <limits.h>
#include <malloc.h>
#include <olympus.h>

static void start(const char *size)
{
    if (size)
        setenv("OLYMPUS_SIMULATE", size, 1);
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    assert_int_equal(oly_simulated(), size != NULL);
}

static void finish(void)
{
    oly_clear_error();
    assert_int_equal(oly_finalize(), 0);
    unsetenv("OLYMPUS_SIMULATE");
    unsetenv("OLYMPUS_SIMULATE_NODE");
}

/* -- programs as large as the machine: so much per device ---------------------------------------------------------- */

typedef struct program {
    const char *name;
    oly_fn f;
    int n_in;
    oly_array in[4];
} program;

/* examples/matmul.c */
static void product(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_relu(oly_matmul(in[0], in[1]));
}

static program matmul(void)
{
    char axes[64];
    int rows = oly_device_count() / 2;
    snprintf(axes, sizeof axes, "a=%d, b=2", rows);
    oly_mesh mesh = oly_make_mesh(axes);
    oly_array x = oly_device_put(oly_ones(OLY_FLOAT32, 64 * rows, 128), oly_named(mesh, "a, b"));
    oly_array y = oly_device_put(oly_ones(OLY_FLOAT32, 128, 64), oly_named(mesh, "b, None"));
    return (program){"matmul", oly_jit(product, 2, 1), 2, {x, y}};
}

/* examples/train.c */
static void mean_square(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array predicted = oly_sigmoid(oly_add(oly_matmul(in[2], in[0]), in[1]));
    out[0] = oly_mean(oly_square(oly_sub(predicted, in[3])));
}

static void train_step(const oly_array *in, oly_array *out, void *user)
{
    oly_array w_slope = NULL, b_slope = NULL;
    oly_call(*(oly_fn *)user, 4, in, OLY_OUT(w_slope, b_slope));
    out[0] = oly_sub(in[0], oly_mul(0.01, w_slope));
    out[1] = oly_sub(in[1], oly_mul(0.01, b_slope));
}

static program train(void)
{
    static oly_fn slope;
    char axes[64];
    int n = oly_device_count();
    snprintf(axes, sizeof axes, "X=%d", n);
    oly_mesh mesh = oly_make_mesh(axes);
    oly_sharding whole = oly_named(mesh, ""), rows = oly_named(mesh, "X, None");
    oly_array x = oly_device_put(oly_ones(OLY_FLOAT32, 128 * n, 32), rows);
    oly_array y = oly_device_put(oly_ones(OLY_FLOAT32, 128 * n, 1), rows);
    oly_array w = oly_device_put(oly_zeros(OLY_FLOAT32, 32, 1), whole),
              b = oly_device_put(oly_zeros(OLY_FLOAT32, 1), whole);
    slope = oly_grad(oly_jit(mean_square, 4, 1), .argnums = "0, 1");
    oly_fn f = oly_jit(train_step, 4, 2, .user = &slope, .in_shardings = ((oly_sharding[]){whole, whole, rows, rows}),
                       .out_shardings = ((oly_sharding[]){whole, whole}));
    return (program){"train", f, 4, {w, b, x, y}};
}

static void heat_step(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    oly_array u = carry[0], around = oly_mul(0.4, oly_slice(u, "1:-1, 1:-1, 1:-1"));
    static const char *const sides[] = {":-2, 1:-1, 1:-1", "2:, 1:-1, 1:-1",  "1:-1, :-2, 1:-1",
                                        "1:-1, 2:, 1:-1",  "1:-1, 1:-1, :-2", "1:-1, 1:-1, 2:"};
    for (int k = 0; k < 6; k++)
        around = oly_add(around, oly_mul(0.1, oly_slice(u, sides[k])));
    carry[0] = oly_update(u, "1:-1, 1:-1, 1:-1", around);
}

static void heat_steps(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, 100, heat_step, 1, out, user);
}

/* As close to a cube as the number of devices allows. */
static void shape_mesh(int n, int *size)
{
    int left = n;
    for (int d = 0; d < 3; d++) {
        int root = 1;
        while ((d == 0 ? root * root * root : d == 1 ? root * root : root) < left)
            root++;
        while (left % root != 0)
            root++;
        size[d] = root;
        left /= root;
    }
}

static program heat3d(void)
{
    char axes[64];
    int size[3];
    shape_mesh(oly_device_count(), size);
    snprintf(axes, sizeof axes, "x=%d, y=%d, z=%d", size[0], size[1], size[2]);
    oly_array u = oly_device_put(oly_zeros(OLY_FLOAT32, 32 * size[0], 32 * size[1], 32 * size[2]),
                                 oly_named(oly_make_mesh(axes), "x, y, z"));
    return (program){"heat3d", oly_jit(heat_steps, 1, 1), 1, {u}};
}

static program (*const programs[])(void) = {matmul, train, heat3d};
enum { N_PROGRAMS = sizeof programs / sizeof *programs };

typedef struct measured {
    oly_plan_costs costs;
    size_t arena, heap; /* bytes of the plan itself; and of all allocations for it */
    long work;
    uint64_t fingerprint;
} measured;

static measured plan(int k)
{
    measured m = {0};
    for (int repeat = 0; repeat < 2; repeat++) /* the first one makes meshes, too */
        OLY_SCOPE
        {
            const oly_plan *made = NULL;
            program p = programs[k]();
            oly_arena_trim(); /* memory kept for later plans is counted again */
            size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
            work_done();
            assert_int_equal(oly_function_plan(p.f, p.n_in, p.in, &made), OLY_OK);
            m.work = work_done();
            m.heap = mallinfo2().uordblks + mallinfo2().hblkhd - before;
            m.arena = made->arena.used; /* blocks begin where malloc places them */
            m.fingerprint = made->fingerprint;
            assert_int_equal(oly_costs_n(&m.costs, p.f, p.n_in, p.in), OLY_OK);
        }
    return m;
}

/* -- tests ------------------------------------------------------------------------------------------------------------------ */

static void a_simulated_plan_is_that_of_rank_0(void **state)
{
    (void)state;
    measured real[N_PROGRAMS];
    char size[32];
    start(NULL);
    int rank = oly_process_index();
    snprintf(size, sizeof size, "%dx%d", oly_process_count(), oly_local_device_count());
    for (int k = 0; k < N_PROGRAMS; k++)
        real[k] = plan(k);
    finish();
    start(size);
    for (int k = 0; k < N_PROGRAMS && rank == 0; k++) {
        measured m = plan(k);
        assert_memory_equal(&m.costs, &real[k].costs, sizeof m.costs);
        assert_int_equal(m.fingerprint, real[k].fingerprint);
        assert_in_range(real[k].arena - m.arena, 0,
                        m.arena /
                            30); /* what the executor prepares where steps run: 200 bytes a step and 24 a device */
    }
    finish();
}

/* Steps and bytes grow with the logarithm for the reduction over all devices, not at all for everything else. */
static void plans_for_many_devices_are_those_for_few(void **state)
{
    (void)state;
    static const char *const sizes[] = {"1x8", "64x8", "12500x8"};
    measured m[3][N_PROGRAMS];
    for (int j = 0; j < 3; j++) {
        start(sizes[j]);
        for (int k = 0; k < N_PROGRAMS; k++) {
            m[j][k] = plan(k);
            print_message(
                "program %d, %s: %lld steps, %lld bytes, a plan of %zu bytes, %zu in all, %ld calls and lines\n", k,
                sizes[j], (long long)m[j][k].costs.steps, (long long)m[j][k].costs.wire_bytes, m[j][k].arena,
                m[j][k].heap, m[j][k].work);
        }
        finish();
    }
    const measured *few = m[0], *some = m[1], *many = m[2];
    assert_int_equal(many[0].costs.steps, few[0].costs.steps);
    assert_int_equal(many[0].costs.wire_bytes, few[0].costs.wire_bytes);
    assert_in_range(many[1].costs.steps, few[1].costs.steps, few[1].costs.steps + 5);
    assert_in_range(many[1].costs.wire_bytes, few[1].costs.wire_bytes, 5 * few[1].costs.wire_bytes);
    assert_int_equal(many[2].costs.steps, few[2].costs.steps);
    assert_int_equal(many[2].costs.collectives, few[2].costs.collectives);
    assert_in_range(many[2].costs.wire_bytes, few[2].costs.wire_bytes,
                    3 * few[2].costs.wire_bytes); /* not all are corners */
    for (int k = 0; k < N_PROGRAMS; k++) { /* of eight devices in one process none has neighbours in other processes */
        assert_in_range(many[k].arena, 1, 3 * few[k].arena);
        assert_in_range(many[k].arena, 1, 2 * some[k].arena);
        assert_in_range(few[k].work, 1, LONG_MAX);
        assert_in_range(many[k].work, 1, 2 * few[k].work);
        assert_in_range(many[k].costs.scratch_bytes, 0, 2 * few[k].costs.scratch_bytes + 16384);
        if (few[k].heap == 0) { /* sanitizers and valgrind have a malloc of their own without statistics */
            print_message("what programs allocate is not counted here: not checked\n");
            continue;
        }
        assert_in_range(many[k].heap, 1, 4 * few[k].heap + 200000);
        assert_in_range(many[k].heap, 1, 2 * some[k].heap + 16384); /* the exchanges of a reduction: logarithmic */
    }
}

static void twice(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], 2);
}

static void arrays_have_types_and_no_values(void **state)
{
    (void)state;
    start("1000x16");
    assert_int_equal(oly_process_count(), 1000);
    assert_int_equal(oly_process_index(), 0);
    assert_int_equal(oly_device_count(), 16000);
    assert_int_equal(oly_local_device_count(), 16);
    assert_int_equal(oly_device_process(oly_get_device(15999)), 999);
    oly_mesh mesh = oly_make_mesh("x=16000");
    float number = 1;
    /* 400 TB, which no machine has */
    oly_array x = oly_device_put(oly_zeros(OLY_FLOAT32, 1000000, 100000000), oly_named(mesh, "x"));
    oly_array y = oly_apply(oly_jit(twice, 1, 1), oly_add(x, oly_from_host(&number, OLY_FLOAT32, 0, NULL)));
    assert_non_null(y);
    assert_int_equal(oly_shard_count(y), 16);
    assert_int_equal(oly_get_shard(y, 15).start[0], 15 * 63); /* 62.5 rows per device, the larger parts first */
    assert_int_equal(oly_block_until_ready(y), OLY_OK);
    oly_array small = oly_sum(oly_slice(y, "0, :10"));
    assert_int_equal(oly_last_status(), OLY_OK);
    assert_int_equal(oly_get(small, &number, sizeof number), OLY_STATE);
    assert_non_null(strstr(oly_last_error(), "OLYMPUS_SIMULATE"));
    oly_clear_error();
    assert_int_equal(oly_process_allgather(small, &number, sizeof number), OLY_STATE);
    oly_clear_error();
    assert_true(oly_item(small) == 0);
    assert_int_equal(oly_last_status(), OLY_STATE);
    finish();
}

static void nodes_are_as_the_option_says(void **state)
{
    (void)state;
    setenv("OLYMPUS_SIMULATE_NODE", "4", 1);
    start("100x2");
    assert_int_equal(oly_node_of(3), oly_node_of(0));
    assert_int_not_equal(oly_node_of(4), oly_node_of(0));
    finish();
    setenv("OLYMPUS_SIMULATE_NODE", "numa:2 l3:1(size=64MB) core:12 l2:1(size=2097152) l1d:1(size=48KB) pu:2", 1);
    start("100x12");
    assert_int_equal(oly_node_of(1), oly_node_of(0));
    assert_int_not_equal(oly_node_of(2), oly_node_of(0));
    assert_int_equal(oly_machine_get()->cores, 24);
    assert_int_equal(oly_machine_get()->l2_bytes, 2 << 20);
    finish();
    start("3x2"); /* each rank on a node of its own */
    assert_int_not_equal(oly_node_of(1), oly_node_of(0));
    finish();
}

static void wrong_options_are_told(void **state)
{
    (void)state;
    static const char *const sizes[] = {"12500", "8x", "x8", "0x8", "2x-1", "2x2x2", "2000000x2000", "many"};
    oly_set_error_mode(OLY_ERRORS_RETURN);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        strcpy(oly_option.simulate, sizes[k]);
        assert_int_not_equal(oly_simulation_read(), OLY_OK);
        assert_false(oly_simulated());
    }
    strcpy(oly_option.simulate, "2x2");
    strcpy(oly_option.simulate_node, "sockets:2");
    assert_int_equal(oly_simulation_read(), OLY_PARSE);
    strcpy(oly_option.simulate_node, "0");
    assert_int_equal(oly_simulation_read(), OLY_PARSE);
    oly_option.simulate[0] = oly_option.simulate_node[0] = 0;
    assert_int_equal(oly_simulation_read(), OLY_OK);
    assert_false(oly_simulated());
    oly_clear_error();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_simulated_plan_is_that_of_rank_0),
        cmocka_unit_test(plans_for_many_devices_are_those_for_few),
        cmocka_unit_test(arrays_have_types_and_no_values),
        cmocka_unit_test(nodes_are_as_the_option_says),
        cmocka_unit_test(wrong_options_are_told),
    };
    return CHECK_MAIN(tests);
}
