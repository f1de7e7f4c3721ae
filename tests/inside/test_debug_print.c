/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts.  Values printed and conditions checked by running plans: once, in the order of the program, where they are; errors on all
 * ranks with the same message. */
#include "check_session.h"
#include <unistd.h>

static oly_mesh mesh;
static oly_array x; /* 0..15, 4 x 4 over both axes */

static void begins(void **state)
{
    check_start(state);
    mesh = oly_make_mesh("i=4, j=2");
    x = oly_device_put(oly_reshape(oly_astype(oly_arange(16, OLY_INT32), OLY_FLOAT32), 4, 4), oly_named(mesh, "i, j"));
}

static void ends(void **state)
{
    check_finish(state);
}

/* -- what this process prints --------------------------------------------------------------------------------------- */

static FILE *file;
static int before;
static char text[1 << 16];

static void begin(void)
{
    fflush(stdout);
    file = tmpfile();
    assert_non_null(file);
    before = dup(1);
    dup2(fileno(file), 1);
}

/* The text so far; what follows is printed as before. */
static const char *end(void)
{
    fflush(stdout);
    dup2(before, 1);
    close(before);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

/* On process 0 the text, on others nothing. */
static void expect_once(const char *wanted)
{
    assert_string_equal(end(), oly_process_index() == 0 ? wanted : "");
    assert_string_equal(oly_last_error(), "");
}

/* The lines that this process should print: of its own devices. */
static void expect_of_devices(const char *const *line)
{
    char wanted[4096] = "";
    for (int d = 0; d < 8; d++)
        if (oly_device_is_local(oly_get_device(d)))
            strcat(strcat(wanted, line[d]), "\n");
    assert_string_equal(end(), wanted);
    assert_string_equal(oly_last_error(), "");
}

/* -- printing ------------------------------------------------------------------------------------------------------- */

static void prints_at_once(void **state)
{
    (void)state;
    begin();
    oly_debug_print("nothing");
    oly_debug_print("{{}} %% x={x} and {:+.2f} and {:5d}|%T %D", oly_slice(x, "0"), oly_sum(x), 7, 2.5);
    oly_debug_print("%R {}", oly_arange(3, OLY_INT32), oly_mul(oly_slice(x, "1"), 0.5));
    expect_once("nothing\n{} % x=[0. 1. 2. 3.] and +120.00 and     7|float32[] CPU_0\nArray([0, 1, 2], dtype=int32) "
                "[2.  2.5 3.  3.5]\n");
}

static void step(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    oly_array u = carry[0];
    carry[0] = oly_update(u, "1:-1", oly_mul(0.5, oly_add(oly_slice(u, ":-2"), oly_slice(u, "2:"))));
    oly_debug_print("{} {}", i, oly_sum(carry[0]));
    oly_debug_print("again {}", i);
}

static void nothing_reads(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array c[1] = {in[0]};
    oly_debug_print("first {}", oly_sum(in[0]));
    oly_fori(0, 2, step, 1, c, NULL);
    out[0] = oly_mul(in[0], 2); /* the loop's result is not used */
    oly_debug_print("last");
}

static const char *const nothing_reads_prints = "first 120.0\n0 120.0\nagain 0\n1 120.0\nagain 1\nlast\n";

static void is_never_dropped_and_stays_in_order(void **state)
{
    (void)state;
    oly_fn f = oly_jit(nothing_reads, 1, 1);
    oly_array y = NULL;
    for (int k = 0; k < 2; k++) { /* planned, replayed */
        begin();
        oly_call(f, OLY_IN(x), OLY_OUT(y));
        expect_once(nothing_reads_prints);
    }
}

static void loss(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array c[1] = {in[0]};
    oly_fori(0, 2, step, 1, c, NULL);
    oly_debug_print("loss");
    out[0] = oly_sum(oly_square(c[0]));
}

static void prints_once_in_derivatives(void **state)
{
    (void)state;
    oly_array g = NULL;
    begin();
    oly_call(oly_grad(oly_jit(loss, 1, 1)), OLY_IN(x), OLY_OUT(g));
    expect_once("0 120.0\nagain 0\n1 120.0\nagain 1\nloss\n");
    begin();
    oly_call(oly_grad(oly_checkpoint(oly_jit(loss, 1, 1))), OLY_IN(x), OLY_OUT(g));
    expect_once("0 120.0\nagain 0\n1 120.0\nagain 1\nloss\n");
}

static void element(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_debug_print("{} on %D", in[0]);
    out[0] = oly_mul(in[0], in[0]);
}

static void every_device_prints_its_shards(void **state)
{
    (void)state;
    static const char *const lines[] = {"[[0. 1.]] on CPU_0",   "[[2. 3.]] on CPU_1",  "[[4. 5.]] on CPU_2",
                                        "[[6. 7.]] on CPU_3",   "[[8. 9.]] on CPU_4",  "[[10. 11.]] on CPU_5",
                                        "[[12. 13.]] on CPU_6", "[[14. 15.]] on CPU_7"};
    oly_array y = NULL;
    begin();
    oly_shard_map(element, NULL, mesh, OLY_IN(x), OLY_SPECS("i, j"), OLY_OUT(y), OLY_SPECS("i, j"));
    expect_of_devices(lines);
    begin();
    oly_debug_print_shards("{} on %D", x);
    expect_of_devices(lines);
}

static void every_element_of_a_batch_prints(void **state)
{
    (void)state;
    oly_array y = NULL;
    begin();
    oly_vmap(element, NULL, OLY_IN(x), OLY_AXES_OF(0), OLY_OUT(y), OLY_AXES_OF(0));
    expect_once(
        "[0. 1. 2. 3.] on CPU_0\n[4. 5. 6. 7.] on CPU_0\n[ 8.  9. 10. 11.] on CPU_0\n[12. 13. 14. 15.] on CPU_0\n");
}

static void taken(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_debug_print("taken {}", in[0]);
    oly_check(oly_lt(in[0], 3), "too large: {}", in[0]);
    out[0] = in[0];
}

static void not_taken(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_debug_print("not taken {}", in[0]);
    out[0] = in[0];
}

static void branch(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_cond(oly_lt(in[0], 2), taken, not_taken, 1, in, 1, out, NULL);
}

static void only_branches_that_are_taken(void **state)
{
    (void)state;
    oly_array y = NULL, v = oly_device_put(oly_arange(4, OLY_INT32), oly_named(mesh, "i"));
    oly_fn f = oly_jit(branch, 1, 1);
    begin();
    oly_call(f, OLY_IN(oly_sum(v)), OLY_OUT(y));
    oly_call(f, OLY_IN(oly_min(v)), OLY_OUT(y));
    oly_vmap(branch, NULL, OLY_IN(v), OLY_AXES_OF(0), OLY_OUT(y), OLY_AXES_OF(0));
    /* elements go different ways: the last branch is computed first */
    expect_once("not taken 6\ntaken 0\ntaken 0\ntaken 1\nnot taken 2\nnot taken 3\n");
}

static oly_array small(const oly_array *carry, void *user)
{
    (void)user;
    return oly_lt(carry[0], 8);
}

static void twice(oly_array *carry, void *user)
{
    (void)user;
    oly_debug_print("{}", carry[0]);
    oly_check(oly_lt(carry[0], 8), "an element that has ended: {}", carry[0]);
    carry[0] = oly_mul(carry[0], 2);
}

static void until_large(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_while(small, twice, 1, out, user);
}

static void only_elements_that_go_on(void **state)
{
    (void)state;
    oly_array y = NULL, v = oly_device_put(oly_add(oly_arange(3, OLY_INT32), 2), oly_named(mesh, ""));
    begin();
    oly_vmap(until_large, NULL, OLY_IN(v), OLY_AXES_OF(0), OLY_OUT(y), OLY_AXES_OF(0));
    expect_once("2\n3\n4\n4\n6\n");
    CHECK_NEAR(y, 8, 12, 8);
}

static void formats_are_checked_when_traced(void **state)
{
    (void)state;
    static const char *const wrong[] = {"{} {}", "", "{", "}", "{:q}", "{:.500f}", "%", "%Q {}", "{a b}"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        assert_int_equal(oly_debug_print(wrong[k], x), OLY_INVALID);
        assert_non_null(strstr(oly_last_error(), "format"));
        oly_clear_error();
    }
    assert_int_equal(oly_debug_print(NULL, x), OLY_INVALID);
    oly_clear_error();
}

/* -- checking ------------------------------------------------------------------------------------------------------- */

#define CHECK_FAILS(call, wanted) check_fails((call), wanted, #call)
static void check_fails(oly_status st, const char *wanted, const char *call)
{
    if (st != OLY_CHECK || !strstr(oly_last_error(), wanted))
        fail_msg("%s: %s; wanted \"%s\"", call, oly_last_error(), wanted);
    oly_clear_error();
}

static void names_the_first_index_and_the_values(void **state)
{
    (void)state;
    assert_int_equal(oly_check(oly_lt(x, 16), "fine"), OLY_OK);
    CHECK_FAILS(oly_check(oly_logical_and(oly_ne(x, 13), oly_ne(x, 14)), "is {}, row {}, all {}", x, oly_slice(x, "0"),
                          oly_arange(2, OLY_INT32)),
                "the condition does not hold at index (3, 1): is 13.0, row 1.0, all [0 1]");
    CHECK_FAILS(oly_check(oly_lt(oly_sum(x), 100), "sum {:.1f}", oly_sum(x)), "the condition does not hold: sum 120.0");
    CHECK_FAILS(oly_check(oly_arange(2, OLY_INT32), "zero"), "at index (0,): zero");
    CHECK_FAILS(oly_check(false, "never"), "never");
}

static void shrink(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    oly_debug_print("iteration {}", i);
    carry[0] = oly_sub(carry[0], 1);
    oly_check(oly_gt(carry[0], -3), "{} in iteration {}", carry[0], i);
    oly_debug_print("checked {}", i);
}

static void shrinks(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, 1000000000, shrink, 1, out, user);
    oly_debug_print("not reached");
}

static void ends_loops_and_other_effects(void **state)
{
    (void)state;
    oly_array y = NULL;
    begin();
    CHECK_FAILS(oly_call(oly_jit(shrinks, 1, 1), OLY_IN(x), OLY_OUT(y)), "at index (0, 0): -3.0 in iteration 2");
    assert_null(y);
    expect_once("iteration 0\nchecked 0\niteration 1\nchecked 1\niteration 2\n");
    begin(); /* the session goes on */
    oly_debug_print("{}", oly_sum(x));
    expect_once("120.0\n");
}

static void small_only(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_check(oly_lt(in[0], 9), "too big: {}", in[0]);
    out[0] = oly_square(in[0]);
}

static void checks_in_maps_name_the_first_element(void **state)
{
    (void)state;
    oly_array y = NULL;
    CHECK_FAILS(oly_shard_map(small_only, NULL, mesh, OLY_IN(x), OLY_SPECS("i, j"), OLY_OUT(y), OLY_SPECS("i, j")),
                "at index (0, 1), element 4 of the map: too big: 9.0");
    CHECK_FAILS(oly_vmap(small_only, NULL, OLY_IN(x), OLY_AXES_OF(1), OLY_OUT(y), OLY_AXES_OF(1)),
                "at index (3,), element 0 of the map: too big: 12.0");
}

static void derived(const oly_array *in, oly_array *out, void *user)
{
    small_only(in, out, user);
    out[0] = oly_sum(out[0]);
}

static void checks_in_derivatives(void **state)
{
    (void)state;
    oly_array y = NULL;
    oly_fn g = oly_grad(oly_jit(derived, 1, 1));
    CHECK_FAILS(oly_call(g, OLY_IN(x), OLY_OUT(y)), "at index (2, 1): too big: 9.0");
    assert_int_equal(oly_call(g, OLY_IN(oly_mul(x, 0.5)), OLY_OUT(y)), OLY_OK);
}

static void prints_and_checks(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_debug_print("{}", oly_slice(in[0], "3"));
    oly_check(oly_lt(in[0], 15), "is {}", in[0]);
    out[0] = in[0];
}

static void over_explicit_axes(void **state)
{
    (void)state;
    oly_array y = NULL, e = oly_device_put(oly_device_put(x, oly_named(mesh, "")),
                                           oly_named(oly_make_mesh("i=4:explicit, j=2:explicit"), "i, j"));
    begin();
    CHECK_FAILS(oly_call(oly_jit(prints_and_checks, 1, 1), OLY_IN(e), OLY_OUT(y)), "at index (3, 3): is 15.0");
    expect_once("[12. 13. 14. 15.]\n");
}

static void failing_allocations_are_errors(void **state)
{
    (void)state;
    extern void oly_fail_allocation(long n);
    oly_array y = NULL;
    if (oly_process_count() > 1)
        return; /* a rank without memory ends the session of all: tests/operations */
    oly_fn f = oly_jit(derived, 1, 1);
    oly_array half = oly_mul(x, 0.5);
    for (long n = 0;; n++) {
        oly_fail_allocation(n);
        oly_status st = oly_check(oly_lt(half, 9), "{}", half);
        oly_fail_allocation(-1);
        assert_true(st == OLY_OK || st == OLY_MEMORY);
        oly_clear_error();
        if (st == OLY_OK)
            break;
    }
    assert_int_equal(oly_call(f, OLY_IN(half), OLY_OUT(y)), OLY_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test(f)
        TEST(begins),
        TEST(prints_at_once),
        TEST(is_never_dropped_and_stays_in_order),
        TEST(prints_once_in_derivatives),
        TEST(every_device_prints_its_shards),
        TEST(every_element_of_a_batch_prints),
        TEST(only_branches_that_are_taken),
        TEST(only_elements_that_go_on),
        TEST(formats_are_checked_when_traced),
        TEST(names_the_first_index_and_the_values),
        TEST(ends_loops_and_other_effects),
        TEST(checks_in_maps_name_the_first_element),
        TEST(checks_in_derivatives),
        TEST(over_explicit_axes),
        TEST(failing_allocations_are_errors),
        TEST(ends),
    };
    return CHECK_MAIN(tests);
}
