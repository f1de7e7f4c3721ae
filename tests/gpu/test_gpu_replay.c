/* SPDX-License-Identifier: BSD-3-Clause */
/* run: devices=8  Segments of plans that GPUs replay as graphs: the bits of launches one by one, whatever the buffers; one launch a call.
 * tests/gpu/test_platform.sh runs it on emulated GPUs. */
#include "check.h"
#include "check_session.h"
#include "core/optimisation.h"
#include "run/device_counts.h"
#include <string.h>

enum { SIDE = 24, CALLS = 7 };

static bool on_gpu(void)
{
    return strcmp(oly_device_platform(oly_local_device(0)), "cuda") == 0;
}

/* Some graphs cannot be made. */
static bool faults(void)
{
    const char *fail = getenv("EMULATED_FAIL");
    return fail && *fail;
}

/* Elementwise, a product, sums over devices, a transfer between devices. */
static void mixed(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array y = oly_matmul(oly_sin(in[0]), in[1]);
    out[0] = oly_add(oly_mul(y, 0.5), oly_transpose(y));
    out[1] = oly_sum(y, OLY_AXES(0));
    out[2] = oly_max(out[0]);
}

static void body(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    oly_array u = carry[0];
    carry[0] = oly_mul(oly_add(u, oly_transpose(oly_matmul(u, u))), oly_add(oly_mul(0.001, i), 0.01));
}

static void loop(const oly_array *in, oly_array *out, void *user)
{
    oly_array carry[] = {in[0]};
    (void)user;
    oly_fori(0, 9, body, 1, carry, NULL);
    out[0] = oly_add(carry[0], in[1]);
    out[1] = oly_sum(carry[0], OLY_AXES(1));
    out[2] = oly_min(carry[0]);
}

static oly_array input(int k, const char *sharding)
{
    oly_array x = oly_reshape(oly_arange(SIDE * SIDE, OLY_FLOAT32), SIDE, SIDE);
    return oly_device_put(oly_cos(oly_add(oly_mul(x, 0.1), k)), oly_named(oly_make_mesh("x=4, y=2"), sharding));
}

static void read(oly_array x, float *values)
{
    oly_array all = oly_device_put(x, oly_named(oly_make_mesh("x=4, y=2"), ""));
    assert_int_equal(oly_get(all, values, sizeof(float) * (size_t)oly_size(all)), OLY_OK);
}

typedef struct results {
    float matrix[SIDE * SIDE], row[SIDE], number;
} results;

/* Calls with inputs of which some are new and some were used before, and results that are kept or dropped: buffers change. */
static void call_often(oly_function function, oly_optimisations off, results *found)
{
    oly_optimisations before = oly_disable(off);
    oly_fn f = oly_jit(function, 2, 3);
    oly_array right = input(100, "x, y"), first = input(0, "x, y"), kept[3 * CALLS];
    for (int k = 0; k < CALLS; k++) {
        oly_array left = k == 3 ? input(3, "x, y") : first;
        oly_array *out = &kept[3 * k];
        assert_int_equal(oly_call(f, OLY_IN(left, right), OLY_OUT(out[0], out[1], out[2])), OLY_OK);
        read(out[0], found[k].matrix);
        read(out[1], found[k].row);
        read(out[2], &found[k].number);
    }
    oly_disable(before);
}

static void compare(oly_function function)
{
    static results with[CALLS], without[CALLS];
    int64_t launches = oly_counted(&oly_device_counted.graph_launches);
    call_often(function, (oly_optimisations)1 << OLY_OPTIMISATION_GRAPH_REPLAY, without);
    assert_int_equal(oly_counted(&oly_device_counted.graph_launches), launches);
    call_often(function, 0, with);
    for (int k = 0; k < CALLS; k++)
        if (memcmp(&with[k], &without[k], sizeof with[k]))
            fail_msg("call %d has other bits when it is replayed", k);
    if (!faults())
        assert_int_equal(oly_counted(&oly_device_counted.graph_launches) > launches, on_gpu());
}

static void replays_have_the_same_bits(void **state)
{
    (void)state;
    compare(mixed);
}

static void loops_replay_their_bodies(void **state)
{
    (void)state;
    compare(loop);
}

/* Elementwise operations and a sum over devices: one launch for all of it. */
static void small(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_exp(oly_sin(in[0])));
}

static void a_call_is_one_launch(void **state)
{
    (void)state;
    oly_fn f = oly_jit(small, 1, 1);
    oly_array x = input(1, "x, y");
    double first = oly_item(oly_device_put(oly_apply(f, x), oly_named(oly_make_mesh("x=4, y=2"), "")));
    for (int k = 0; k < 3; k++)
        OLY_SCOPE
        {
            oly_block_until_ready(oly_apply(f, x));
        }
    int64_t replays = oly_counted(&oly_device_counted.graph_launches);
    int64_t graphs = oly_counted(&oly_device_counted.graphs);
    oly_array again = oly_apply(f, x);
    oly_block_until_ready(again);
    if (on_gpu() && !faults()) {
        assert_int_equal(oly_counted(&oly_device_counted.graph_launches), replays + 1);
        assert_int_equal(oly_counted(&oly_device_counted.graphs), graphs);
    }
    assert_true(oly_item(oly_device_put(again, oly_named(oly_make_mesh("x=4, y=2"), ""))) == first);
}

/* Results that are kept have buffers of their own: graphs are updated, not made again. */
static void graphs_are_updated(void **state)
{
    (void)state;
    oly_fn f = oly_jit(small, 1, 1);
    oly_array x = input(2, "x, y"), kept[8];
    kept[0] = oly_apply(f, x);
    oly_block_until_ready(kept[0]);
    int64_t graphs = oly_counted(&oly_device_counted.graphs);
    int64_t updates = oly_counted(&oly_device_counted.graph_updates);
    for (int k = 1; k < 8; k++)
        kept[k] = oly_apply(f, k % 2 ? x : input(k, "x, y"));
    oly_block_until_ready(kept[7]);
    if (on_gpu() && !faults()) {
        assert_true(oly_counted(&oly_device_counted.graph_updates) > updates);
        assert_true(oly_counted(&oly_device_counted.graphs) <= graphs + 20);
    }
    float same, values[8];
    for (int k = 0; k < 8; k++)
        read(kept[k], &values[k]);
    for (int k = 1; k < 8; k += 2)
        assert_true(values[k] == values[0]);
    read(oly_sum(oly_exp(oly_sin(input(4, "x, y")))), &same);
    assert_true(values[4] == same);
}

/* One step on one device: recorded once its buffers have come back some times, and not while they are always others. */
static void step(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_mul(in[0], 0.5), 1);
}

static void single_steps_are_replayed_with_buffers_that_return(void **state)
{
    enum { OFTEN = 24, LONG = 96 };
    (void)state;
    oly_fn f = oly_jit(step, 1, 1), g = oly_jit(step, 1, 1);
    oly_sharding one = oly_single_device(oly_local_device(0));
    oly_array x = oly_device_put(oly_arange(LONG, OLY_FLOAT32), one), kept[OFTEN];
    float want[LONG], got[LONG];
    int64_t replays = oly_counted(&oly_device_counted.graph_launches);
    kept[0] = oly_apply(f, x);
    for (int k = 1; k < OFTEN; k++)
        kept[k] = oly_apply(f, kept[k - 1]);
    assert_int_equal(oly_get(kept[OFTEN - 1], want, sizeof want), OLY_OK);
    assert_int_equal(oly_counted(&oly_device_counted.graph_launches), replays);
    oly_array y = oly_apply(g, x);
    for (int k = 1; k < OFTEN; k++)
        oly_call(g, OLY_IN(y), OLY_OUT(y)); /* which is donated */
    assert_int_equal(oly_get(y, got, sizeof got), OLY_OK);
    assert_memory_equal(got, want, sizeof got);
    if (!faults())
        assert_int_equal(oly_counted(&oly_device_counted.graph_launches) > replays, on_gpu());
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(replays_have_the_same_bits, check_open, check_close),
        cmocka_unit_test_setup_teardown(loops_replay_their_bodies, check_open, check_close),
        cmocka_unit_test_setup_teardown(a_call_is_one_launch, check_open, check_close),
        cmocka_unit_test_setup_teardown(graphs_are_updated, check_open, check_close),
        cmocka_unit_test_setup_teardown(single_steps_are_replayed_with_buffers_that_return, check_open, check_close)};
    return CHECK_MAIN(tests);
}
