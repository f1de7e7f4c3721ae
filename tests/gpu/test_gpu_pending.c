/* SPDX-License-Identifier: BSD-3-Clause */
/* run: devices=4  Calls that end before GPUs have done their work: who looks at a result waits for it, whatever memory it is in, and sees
 * the bits of calls that are waited for; memory stays what it is over thousands of calls; a device that fails meanwhile is an error that
 * says so. tests/gpu/test_gpu_pending.sh runs it on emulated GPUs, which do nothing before somebody waits. */
#include "check.h"
#include "check_files.h"
#include "check_session.h"
#include "core/optimisation.h"
#include "core/timeline.h"
#include "device/pending.h"
#include "run/device_counts.h"
#include <string.h>

enum { N = 64, SIDE = 48 };
static oly_mesh mesh;

static bool on_gpus(void)
{
    return strcmp(oly_device_platform(oly_local_device(0)), "cuda") == 0;
}

static bool is_on(void)
{
    return on_gpus() && oly_enabled(OLY_OPTIMISATION_PENDING_RUNS) && !oly_times_steps();
}

/* Some calls of the driver fail. */
static bool faults(void)
{
    const char *fail = getenv("EMULATED_FAIL");
    return fail && *fail;
}

static int begins(void **state)
{
    int st = check_open(state);
    mesh = oly_make_mesh("x=4");
    return st;
}

static void next(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_mul(in[0], 2), 1);
}

/* Several steps, which are replayed as a graph; sums over devices. */
static void mixed(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array y = oly_matmul(oly_sin(in[0]), oly_transpose(in[0]));
    out[0] = oly_add(oly_mul(in[0], 0.5), oly_div(oly_sum(y, OLY_AXES(0)), SIDE));
}

static oly_array on_device(int k)
{
    return oly_device_put(oly_arange(N, OLY_FLOAT32), oly_single_device(oly_local_device(k)));
}

static oly_array split(double scale)
{
    oly_array x = oly_mul(oly_reshape(oly_arange(SIDE * SIDE, OLY_FLOAT32), SIDE, SIDE), scale);
    return oly_device_put(oly_cos(x), oly_named(mesh, "x"));
}

static void read(oly_array x, float *values, int64_t n)
{
    oly_array all = oly_device_put(x, oly_named(mesh, ""));
    assert_int_equal(oly_get(all, values, sizeof(float) * (size_t)n), OLY_OK);
}

/* -- chains --------------------------------------------------------------------------------------------------------------------- */

static void a_call_ends_before_its_work(void **state)
{
    (void)state;
    oly_fn f = oly_jit(next, 1, 1);
    oly_array x = on_device(0), y;
    oly_block_until_ready(oly_apply(f, x));
    assert_true(atomic_load(&oly_pending_devices) == 0);
    y = oly_apply(f, x);
    assert_int_equal(oly_is_pending(0), is_on());
    oly_block_until_ready(y);
    assert_true(atomic_load(&oly_pending_devices) == 0);
    x = oly_device_put(oly_arange(1 << 18, OLY_FLOAT32), oly_single_device(oly_local_device(1)));
    oly_block_until_ready(oly_apply(f, x));
    y = oly_apply(f, x); /* a large one, too */
    assert_int_equal(oly_is_pending(1), is_on() && oly_enabled(OLY_OPTIMISATION_INLINE_RUNS));
    oly_block_until_ready(y);
}

/* Far more calls than the host may be ahead; every seventh result is kept, and the others give their memory on. */
static void chain(oly_function function, oly_array x, int calls, int64_t n, float *values)
{
    enum { EVERY = 7, KEPT = 30 };
    oly_array kept[KEPT], y = oly_mul(x, 1);
    oly_fn f = oly_jit(function, 1, 1);
    int n_kept = 0;
    for (int k = 0; k < calls; k++)
        if (k % EVERY || n_kept == KEPT) {
            oly_call(f, OLY_IN(y), OLY_OUT(y)); /* which is donated */
        } else {
            kept[n_kept++] = y;
            y = oly_apply(f, y);
        }
    read(y, values, n);
    for (int k = 0; k < n_kept; k++)
        read(kept[k], &values[(k + 1) * n], n);
}

static void compare(oly_function function, oly_array x, int calls)
{
    static float with[31 * SIDE * SIDE], without[31 * SIDE * SIDE];
    memset(with, 0, sizeof with);
    memset(without, 0, sizeof without);
    chain(function, x, calls, oly_size(x), with);
    oly_optimisations before = oly_disable((oly_optimisations)1 << OLY_OPTIMISATION_PENDING_RUNS);
    chain(function, x, calls, oly_size(x), without);
    oly_disable(before);
    assert_memory_equal(with, without, sizeof with);
}

static void chains_have_the_same_bits(void **state)
{
    (void)state;
    compare(next, on_device(0), 300);
    compare(next, on_device(3), 40);
    compare(next, oly_device_put(oly_arange(N, OLY_FLOAT32), oly_named(mesh, "x")), 100);
    compare(mixed, split(0.01), 40);
}

/* Results of large calls are looked at by this thread while others submit, and record graphs. */
static void wide(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array y = oly_cumsum(in[0], 0);
    out[0] = oly_sub(oly_mul(in[0], 0.5), oly_mul(oly_cos(y), 0.25));
    out[1] = oly_max(out[0]);
}

static void results_are_read_while_others_are_submitted(void **state)
{
    enum { CALLS = 60, LONG = 30000, BEHIND = 3 };
    static float most[2][CALLS];
    (void)state;
    for (int off = 0; off < 2; off++) {
        oly_optimisations before = oly_disable((oly_optimisations)1 << OLY_OPTIMISATION_INLINE_RUNS |
                                               (oly_optimisations)off << OLY_OPTIMISATION_PENDING_RUNS);
        oly_fn f = oly_jit(wide, 1, 2), g = oly_jit(next, 1, 1);
        oly_array y = oly_device_put(oly_sin(oly_arange(LONG, OLY_FLOAT32)), oly_single_device(oly_local_device(1)));
        oly_array kept[CALLS], top[CALLS], z[CALLS];
        for (int k = 0; k < CALLS + BEHIND; k++) {
            if (k < CALLS) {
                oly_call(f, OLY_IN(y), OLY_OUT(kept[k], top[k]));
                z[k] = oly_apply(g, top[k]);
                y = kept[k];
            }
            if (k >= BEHIND) {
                most[off][k - BEHIND] = (float)oly_item(top[k - BEHIND]);
                assert_true((float)oly_item(z[k - BEHIND]) == 2 * most[off][k - BEHIND] + 1);
            }
        }
        oly_disable(before);
    }
    assert_memory_equal(most[0], most[1], sizeof most[0]);
}

/* An array is complete on all devices that it was computed on, also when one of them was waited for alone. */
static void all_devices_of_an_array_are_waited_for(void **state)
{
    (void)state;
    oly_fn f = oly_jit(next, 1, 1);
    oly_array x = oly_device_put(oly_arange(N, OLY_FLOAT32), oly_named(mesh, "x")), y = oly_apply(f, x);
    float here[N];
    assert_int_equal(oly_is_pending(3), is_on());
    assert_int_equal(oly_get(on_device(0), here, sizeof here), OLY_OK);
    oly_block_until_ready(y);
    assert_true(atomic_load(&oly_pending_devices) == 0);
    y = oly_apply(f, oly_device_put(oly_from_host(here, OLY_FLOAT32, 1, &(int64_t){N}), oly_named(mesh, "x")));
    oly_array z = oly_apply(f, on_device(2));
    oly_block_until_ready(y);
    oly_block_until_ready(z);
    assert_true(atomic_load(&oly_pending_devices) == 0);
}

/* -- memory ----------------------------------------------------------------------------------------------------------------------- */

/* What the host writes next must not be where an operand of pending work was. */
static void memory_is_not_written_too_early(void **state)
{
    (void)state;
    oly_fn f = oly_jit(next, 1, 1);
    oly_array results[40];
    for (int k = 0; k < 40; k++) {
        float values[N];
        int64_t n = N;
        for (int i = 0; i < N; i++)
            values[i] = (float)(k * N + i);
        oly_array x =
            oly_device_put(oly_from_host(values, OLY_FLOAT32, 1, &n), oly_single_device(oly_local_device(k % 2)));
        results[k] = oly_apply(f, oly_apply(f, x));
        oly_free(x);
    }
    for (int k = 0; k < 40; k++) {
        float values[N];
        assert_int_equal(oly_get(results[k], values, sizeof values), OLY_OK);
        for (int i = 0; i < N; i++)
            assert_true(values[i] == (float)(4 * (k * N + i) + 3));
    }
}

/* Copies between devices, of values that are still to be computed, into memory that has been read by pending work. */
static void arrays_go_from_device_to_device(void **state)
{
    (void)state;
    oly_fn f = oly_jit(next, 1, 1);
    oly_array x = on_device(0);
    float values[N], want = 5;
    for (int k = 0; k < 24; k++, want = 2 * want + 1) {
        oly_array y = oly_apply(f, x);
        oly_free(x);
        x = oly_device_put(y, oly_single_device(oly_local_device((k + 1) % 4)));
        oly_free(y);
    }
    assert_int_equal(oly_get(x, values, sizeof values), OLY_OK);
    assert_true(values[5] == want);
    oly_array all = oly_device_put(x, oly_named(mesh, "x"));
    OLY_FOR_EACH_SHARD(s, all)
    {
        assert_true(atomic_load(&oly_pending_devices) == 0); /* so s.device_memory is complete */
        assert_true(((const float *)s.memory)[0] == values[s.start[0]]);
    }
}

static void memory_stays_what_it_is(void **state)
{
    oly_device_counts before, after;
    (void)state;
    oly_fn f = oly_jit(next, 1, 1), g = oly_jit(mixed, 1, 1);
    oly_array x = on_device(0), y = split(0.02);
    for (int k = 0; k < 3000; k++) {
        if (k == 200)
            assert_int_equal(oly_get_device_counts(&before), OLY_OK);
        OLY_SCOPE
        {
            oly_apply(f, oly_apply(f, x));
            if (k % 20 == 0)
                oly_apply(g, oly_apply(g, y));
        }
    }
    oly_block_until_ready(oly_apply(g, y)); /* after all others */
    assert_int_equal(oly_get_device_counts(&after), OLY_OK);
    assert_int_equal(after.memory, before.memory);
    assert_int_equal(after.memory_peak, before.memory_peak);
}

/* -- files ------------------------------------------------------------------------------------------------------------------------ */

static void files_have_the_results(void **state)
{
    float values[N];
    (void)state;
    check_files_begin();
    oly_fn f = oly_jit(next, 1, 1);
    oly_array x = on_device(2), y = oly_apply(f, oly_apply(f, x));
    assert_int_equal(oly_save_npy(check_files_path("y.npy"), y), OLY_OK);
    assert_int_equal(oly_get(oly_load_npy(check_files_path("y.npy"), NULL), values, sizeof values), OLY_OK);
    for (int i = 0; i < N; i++)
        assert_true(values[i] == (float)(4 * i + 3));
    check_files_end();
}

/* -- failures --------------------------------------------------------------------------------------------------------------------- */

/* EMULATED_FAIL lets a kernel or the device fail during the calls: the end of the program is told which device, and why. */
static void a_fault_is_seen_when_a_result_is(void **state)
{
    (void)state;
    check_begin();
    oly_fn f = oly_jit(next, 1, 1);
    oly_array y = on_device(0);
    for (int k = 0; k < 400 && oly_last_status() == OLY_OK; k++)
        y = oly_apply(f, y);
    if (oly_last_status() == OLY_OK)
        oly_block_until_ready(y);
    assert_int_equal(oly_last_status(), OLY_DEVICE_FAILED);
    print_message("%s\n", oly_last_error());
    assert_non_null(strstr(oly_last_error(), "CUDA device 0 (Emulated GPU): "));
    assert_non_null(strstr(oly_last_error(), "CUDA_ERROR_"));
    assert_non_null(strstr(oly_last_error(), "test_gpu_pending.c:"));
    oly_clear_error();
    assert_null(oly_apply(f, y));
    oly_clear_error();
    oly_finalize();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_call_ends_before_its_work, begins, check_close),
        cmocka_unit_test_setup_teardown(chains_have_the_same_bits, begins, check_close),
        cmocka_unit_test_setup_teardown(results_are_read_while_others_are_submitted, begins, check_close),
        cmocka_unit_test_setup_teardown(all_devices_of_an_array_are_waited_for, begins, check_close),
        cmocka_unit_test_setup_teardown(memory_is_not_written_too_early, begins, check_close),
        cmocka_unit_test_setup_teardown(arrays_go_from_device_to_device, begins, check_close),
        cmocka_unit_test_setup_teardown(memory_stays_what_it_is, begins, check_close),
        cmocka_unit_test_setup_teardown(files_have_the_results, begins, check_close)};
    static const struct CMUnitTest failing[] = {cmocka_unit_test(a_fault_is_seen_when_a_result_is)};
    return faults() ? CHECK_MAIN(failing) : CHECK_MAIN(tests);
}
