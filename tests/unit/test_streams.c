/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 devices=4.  Order of work on devices that compute late: events, and that a forgotten wait is noticed. */
#include "check.h"
#include "check_session.h"
#include "core/error.h"
#include "late_streams.h"
#include "platform_protected.h"
#include "run/device_order.h"

enum { SEEDS = 24 };

/* -- the streams of the test platform ----------------------------------------------------------------------------------- */

typedef struct note {
    int *list, *n, what;
} note;

static void write_down(void *argument)
{
    note *x = argument;
    x->list[(*x->n)++] = x->what;
}

static void one_device_keeps_order(void **state)
{
    int list[8], n = 0;
    note notes[8];
    (void)state;
    for (int k = 0; k < 8; k++) {
        notes[k] = (note){list, &n, k};
        assert_true(late_submit(2, write_down, &notes[k]));
    }
    assert_int_equal(n, 0); /* nothing runs before it is drained */
    assert_int_equal(late_drain(0), OLY_OK);
    assert_int_equal(n, 0);
    assert_int_equal(late_drain(2), OLY_OK);
    assert_int_equal(n, 8);
    for (int k = 0; k < 8; k++)
        assert_int_equal(list[k], k);
}

/* Device 0 does 0 and 1, device 1 does 2 after 0 if it waits, and 3. Position of each in the order. */
static void run_two(unsigned seed, bool waits, int *position)
{
    int list[4], n = 0;
    note notes[4];
    oly_event event;
    late_set_seed(seed);
    for (int k = 0; k < 4; k++)
        notes[k] = (note){list, &n, k};
    assert_true(late_submit(0, write_down, &notes[0]));
    assert_true(late_record(0, &event));
    assert_true(late_submit(0, write_down, &notes[1]));
    if (waits)
        assert_true(late_wait(1, event));
    assert_true(late_submit(1, write_down, &notes[2]));
    assert_true(late_submit(1, write_down, &notes[3]));
    assert_int_equal(late_drain(1), OLY_OK);
    assert_int_equal(late_drain(0), OLY_OK);
    assert_int_equal(n, 4);
    for (int k = 0; k < 4; k++)
        position[list[k]] = k;
}

static void a_wait_orders_two_devices_and_nothing_more(void **state)
{
    int early = 0, ahead = 0, position[4];
    (void)state;
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        run_two(seed, true, position);
        assert_true(position[0] < position[2]);
        ahead += position[2] < position[1];
        run_two(seed, false, position);
        early += position[2] < position[0];
    }
    assert_true(ahead > 0 && ahead < SEEDS); /* after the event only, in either order */
    assert_true(early > SEEDS / 8);          /* without a wait */
}

static void an_event_may_be_waited_for_after_draining(void **state)
{
    int list[1], n = 0;
    note x = {list, &n, 7};
    oly_event event;
    (void)state;
    assert_true(late_submit(3, write_down, &x));
    assert_true(late_record(3, &event));
    assert_int_equal(late_drain(3), OLY_OK);
    assert_true(late_wait(1, event));
    assert_true(late_wait(1, (oly_event){.device = 2}));
    assert_int_equal(late_drain(1), OLY_OK);
    assert_int_equal(n, 1);
}

/* -- programs ----------------------------------------------------------------------------------------------------------- */

/* What of the platform's does not work: a wait that is forgotten, or what has no memory. -1: nothing. */
static struct {
    int dropped_wait, waits, submits, refused_submit, refused_record, refused_wait;
    bool fails;
} fault;

static bool wait(int device, oly_event event)
{
    int number = fault.waits++;
    if (number == fault.refused_wait)
        return false;
    return number == fault.dropped_wait || late_wait(device, event);
}

static bool submit(int device, void (*run)(void *argument), void *argument)
{
    return fault.submits++ != fault.refused_submit && late_submit(device, run, argument);
}

static bool record(int device, oly_event *event)
{
    static int number;
    number = fault.waits == 0 && fault.submits == 0 ? 0 : number;
    return number++ != fault.refused_record && late_record(device, event);
}

static oly_status drain(int device)
{
    OLY_TRY(late_drain(device));
    return fault.fails ? oly_fail(OLY_STATE, "device %d is gone", device) : OLY_OK;
}

static void no_fault(void)
{
    fault.dropped_wait = fault.refused_submit = fault.refused_record = fault.refused_wait = -1;
    fault.waits = fault.submits = 0;
    fault.fails = false;
}

static int start(void **state)
{
    static oly_platform faulty;
    faulty = platform_protected;
    faulty.submit = submit;
    faulty.record = record;
    faulty.wait = wait;
    faulty.drain = drain;
    no_fault();
    (void)state;
    oly_platform_register(&faulty);
    check_begin();
    return 0;
}

static int finish(void **state)
{
    (void)state;
    no_fault();
    check_end();
    oly_platform_register(NULL);
    return 0;
}

/* A loop whose iterations read the neighbours' elements and the sum: copies, sums over devices and swapped buffers. */
static void body(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    (void)user;
    oly_array left = oly_concatenate(0, oly_slice(carry[0], "3:"), oly_slice(carry[0], ":3"));
    carry[0] = oly_sub(oly_mul(left, 2), oly_sin(oly_sum(carry[0])));
}

static void program(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, 3, body, 1, out, NULL);
    out[1] = oly_cumsum(oly_flip(out[0], 0), 0);
}

enum { N = 24 };

/* Results of a run with this seed; false after an error. */
static bool run_program(oly_fn f, oly_array x, unsigned seed, float *values)
{
    oly_array out[2] = {NULL};
    fault.waits = fault.submits = 0;
    late_set_seed(seed);
    if (oly_call(f, OLY_IN(x), OLY_OUT(out[0], out[1])) != OLY_OK)
        return false;
    bool got = oly_get(out[0], values, N * sizeof *values) == OLY_OK &&
               oly_get(out[1], values + N, N * sizeof *values) == OLY_OK;
    oly_free(out[0]);
    oly_free(out[1]);
    return got;
}

static oly_array operand(void)
{
    return oly_device_put(oly_arange(N, OLY_FLOAT32), oly_named(oly_make_mesh("x=4"), "x"));
}

static void every_order_gives_the_same_values(void **state)
{
    float wanted[2 * N], values[2 * N];
    (void)state;
    oly_array x = operand();
    oly_fn f = oly_jit(program, 1, 2);
    assert_true(run_program(f, x, 1, wanted));
    for (unsigned seed = 2; seed <= SEEDS; seed++) {
        assert_true(run_program(f, x, seed, values));
        assert_memory_equal(values, wanted, sizeof wanted);
    }
}

/* Each wait of the program is dropped in turn. More than half of them order only what others order, too. */
static void forgotten_waits_are_noticed(void **state)
{
    float wanted[2 * N], values[2 * N];
    int noticed = 0, waits;
    (void)state;
    oly_array x = operand();
    oly_fn f = oly_jit(program, 1, 2);
    assert_true(run_program(f, x, 1, wanted));
    waits = fault.waits;
    assert_true(waits > 0);
    for (int k = 0; k < waits; k++) {
        bool differs = false;
        fault.dropped_wait = k;
        for (unsigned seed = 1; seed <= SEEDS && !differs; seed++) {
            assert_true(run_program(f, x, seed, values));
            differs = memcmp(values, wanted, sizeof wanted) != 0;
        }
        noticed += differs;
    }
    if (3 * noticed < waits)
        fail_msg("only %d of %d forgotten waits were noticed", noticed, waits);
}

/* Where there is no memory to queue work, the devices are drained and the values are the same. */
static void without_memory_nothing_changes(void **state)
{
    float wanted[2 * N], values[2 * N];
    (void)state;
    oly_array x = operand();
    oly_fn f = oly_jit(program, 1, 2);
    assert_true(run_program(f, x, 1, wanted));
    int waits = fault.waits, submits = fault.submits;
    int *const refused[] = {&fault.refused_submit, &fault.refused_wait, &fault.refused_record};
    for (int j = 0; j < 3; j++)
        for (int k = 0; k < (waits > submits ? waits : submits); k += 3) {
            no_fault();
            *refused[j] = k;
            assert_true(run_program(f, x, (unsigned)k + 1, values));
            assert_memory_equal(values, wanted, sizeof wanted);
        }
    no_fault();
    int same = 0;
    for (int k = 0; k < 40; k++) { /* of what is queued, and of the call itself, which then fails */
        oly_array out[2] = {NULL};
        oly_fail_allocation(k);
        oly_status st = oly_call(f, OLY_IN(x), OLY_OUT(out[0], out[1]));
        oly_fail_allocation(-1);
        oly_clear_error();
        if (st != OLY_OK)
            continue;
        assert_int_equal(oly_get(out[0], values, N * sizeof *values), OLY_OK);
        assert_memory_equal(values, wanted, N * sizeof *values);
        same++;
    }
    assert_true(same > 20);
}

static void what_a_device_fails_with_is_told(void **state)
{
    float values[2 * N];
    (void)state;
    oly_array x = operand();
    oly_fn f = oly_jit(program, 1, 2);
    assert_true(run_program(f, x, 1, values));
    fault.fails = true;
    assert_false(run_program(f, x, 1, values));
    assert_int_equal(oly_last_status(), OLY_STATE);
    assert_non_null(strstr(oly_last_error(), "device 0 is gone"));
    oly_clear_error();
}

/* -- facts -------------------------------------------------------------------------------------------------------------- */

static const oly_facts *few_steps(void)
{
    static oly_facts facts;
    facts = (oly_facts){.memory = 1e9, .gemm = 1e9, .operations = 1e9, .copy_latency = 1e-6, .copy_bandwidth = 1e9};
    facts.tile_bytes = 1 << 18;
    facts.stencil_steps = 3;
    return &facts;
}

static int start_with_facts(void **state)
{
    static oly_platform other;
    (void)state;
    other = platform_protected;
    other.facts = few_steps;
    oly_platform_register(&other);
    check_begin();
    return 0;
}

static void heat_step(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    (void)user;
    oly_array u = carry[0], sides = oly_add(oly_slice(u, ":-2"), oly_slice(u, "2:"));
    carry[0] = oly_update(u, "1:-1", oly_add(oly_mul(sides, 0.25), oly_mul(oly_slice(u, "1:-1"), 0.5)));
}

static void heat(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, 30, heat_step, 1, out, NULL);
}

static void a_pass_has_no_more_steps_than_the_platform_says(void **state)
{
    char text[4000] = "";
    (void)state;
    oly_array x = oly_device_put(oly_arange(4000, OLY_FLOAT32), oly_named(oly_make_mesh("x=4"), "x"));
    FILE *file = fmemopen(text, sizeof text - 1, "w");
    assert_non_null(file);
    assert_int_equal(oly_explain(file, oly_jit(heat, 1, 1), x), OLY_OK);
    fclose(file);
    if (!strstr(text, "3 elements from the left, 3 from the right"))
        fail_msg("%s", text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_device_keeps_order),
        cmocka_unit_test(a_wait_orders_two_devices_and_nothing_more),
        cmocka_unit_test(an_event_may_be_waited_for_after_draining),
        cmocka_unit_test_setup_teardown(every_order_gives_the_same_values, start, finish),
        cmocka_unit_test_setup_teardown(forgotten_waits_are_noticed, start, finish),
        cmocka_unit_test_setup_teardown(without_memory_nothing_changes, start, finish),
        cmocka_unit_test_setup_teardown(what_a_device_fails_with_is_told, start, finish),
        cmocka_unit_test_setup_teardown(a_pass_has_no_more_steps_than_the_platform_says, start_with_facts, finish),
    };
    return CHECK_MAIN(tests);
}
