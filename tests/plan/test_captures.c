/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Loops whose bodies read slices, cyclic shifts and reversals of arrays from outside: the values of the
 * same steps call by call. Each of these programs once had wrong values: elements outside a view were read where
 * margins extend beyond its ends. */
#include "check_session.h"

enum { LONG = 12 };

static oly_sharding over_devices(void)
{
    char axes[20];
    snprintf(axes, sizeof axes, "i=%d", oly_device_count());
    return oly_named(oly_make_mesh(axes), "i");
}

static oly_array numbers(int64_t n, double times)
{
    return oly_mul(oly_sub(oly_mod(oly_mul(oly_arange(n, OLY_FLOAT32), 7), 23), 5), times);
}

typedef oly_array (*step_function)(oly_array carry, oly_array captured);

static oly_array rolled_sum(oly_array c, oly_array w)
{
    return oly_roll(oly_add(c, w), -1, 0);
}

static oly_array sum_of_rolled(oly_array c, oly_array w)
{
    return oly_add(oly_roll(c, -1, 0), w);
}

static oly_array kept_edges(oly_array c, oly_array w)
{
    return oly_concatenate(0, oly_slice(c, ":1"), oly_add(oly_slice(c, ":-2"), oly_slice(w, ":10")),
                           oly_slice(c, "-1:"));
}

static oly_array inner_sum(oly_array c, oly_array w)
{
    return oly_update(c, "1:-1", oly_add(oly_slice(c, "2:"), oly_slice(w, "1:-1")));
}

static oly_array inner_product(oly_array c, oly_array w)
{
    return oly_update(c, "1:-1", oly_mul(oly_slice(c, "2:"), oly_slice(w, "2:")));
}

static oly_array heat_and_source(oly_array c, oly_array w)
{
    return oly_add(oly_update(c, "1:-1", oly_add(oly_slice(c, "2:"), oly_slice(c, ":-2"))), w);
}

static oly_array masked(oly_array c, oly_array w)
{
    return oly_where(oly_gt(w, 2), c, oly_roll(c, -3, 0));
}

static oly_array rolled_both(oly_array c, oly_array w)
{
    return oly_sub(oly_roll(w, 2, 0), oly_roll(c, 1, 0));
}

static oly_array padded(oly_array c, oly_array w)
{
    return oly_add(oly_pad(oly_slice(c, "2:"), 1, (const int64_t[]){2}, NULL, NULL), w);
}

/* The part after the point where as many elements would end without gaps. */
static oly_array with_gaps(oly_array c, oly_array w)
{
    oly_array apart = oly_pad(w, 2, (const int64_t[]){1}, (const int64_t[]){1}, (const int64_t[]){1});
    return oly_add(oly_roll(c, 1, 0), oly_slice(apart, "13:"));
}

static const step_function steps[] = {rolled_sum,      sum_of_rolled, kept_edges,  inner_sum, inner_product,
                                      heat_and_source, masked,        rolled_both, padded,    with_gaps};

/* What the loop captures of an array of 60 elements: 12 of them. */
static oly_array captured(int how, oly_array x)
{
    switch (how) {
    case 0: return oly_slice(x, "1:13");
    case 1: return oly_slice(x, "48:");
    case 2: return oly_slice(x, "3:27:2");
    case 3: return oly_slice(x, "20:8:-1");
    case 4: return oly_slice(oly_roll(x, 3, 0), "1:13");
    case 5: return oly_flip(oly_slice(x, ":12"));
    case 6: return oly_slice(oly_slice(x, "2:30"), "5:17");
    case 7: return oly_roll(oly_slice(x, "7:19"), 5, 0);
    case 8: return oly_slice(oly_reshape(x, 5, 12), "3");
    case 9: return oly_slice(oly_transpose(oly_reshape(x, 12, 5)), "2");
    default: return oly_flip(oly_roll(oly_slice(x, "::5"), 4, 0));
    }
}
enum { WAYS = 11 };

typedef struct one_field {
    step_function step;
    int how;
    oly_array captured;
} one_field;

static void step_of_loop(oly_array i, oly_array *carry, void *user)
{
    const one_field *p = user;
    (void)i;
    carry[0] = p->step(carry[0], p->captured);
}

static void loop_over_one_field(const oly_array *in, oly_array *out, void *user)
{
    one_field p = *(const one_field *)user;
    p.captured = captured(p.how, in[1]);
    out[0] = in[0];
    oly_fori(0, 3, step_of_loop, 1, out, &p);
}

static void expect_equal(oly_array got, oly_array wanted, const char *what, int a, int b)
{
    if (!oly_item(oly_all(oly_eq(oly_device_put(got, oly_sharding_of(wanted)), wanted))))
        fail_msg("%s %d, captured in way %d", what, a, b);
}

static void captured_in_any_way(void **state)
{
    (void)state;
    oly_sharding split = over_devices();
    oly_array c = oly_device_put(numbers(LONG, 1), split), x = oly_device_put(numbers(60, 0.5), split);
    for (int s = 0; s < (int)(sizeof steps / sizeof *steps); s++)
        for (int how = 0; how < WAYS; how++)
            OLY_SCOPE
            {
                one_field p = {steps[s], how, NULL};
                oly_array w = captured(how, x), wanted = c;
                for (int k = 0; k < 3; k++)
                    wanted = p.step(wanted, w);
                oly_array got = oly_apply(oly_jit(loop_over_one_field, 2, 1, .user = &p), c, x);
                expect_equal(got, wanted, "step", s, how);
            }
}

/* -- two dimensions ---------------------------------------------------------------------------------------------------- */

static oly_array heat(oly_array u, oly_array source)
{
    oly_array rows = oly_add(oly_slice(u, ":-2, 1:-1"), oly_slice(u, "2:, 1:-1"));
    oly_array columns = oly_add(oly_slice(u, "1:-1, :-2"), oly_slice(u, "1:-1, 2:"));
    oly_array next = oly_add(oly_mul(0.5, oly_slice(u, "1:-1, 1:-1")), oly_mul(0.125, oly_add(rows, columns)));
    return oly_add(oly_update(u, "1:-1, 1:-1", next), source);
}

static void heat_of_loop(oly_array i, oly_array *carry, void *source)
{
    (void)i;
    carry[0] = heat(carry[0], *(oly_array *)source);
}

static void heat_loop(const oly_array *in, oly_array *out, void *slices)
{
    oly_array source = oly_slice(in[1], slices);
    out[0] = in[0];
    oly_fori(0, 6, heat_of_loop, 1, out, &source);
}

static void the_heat_equation_with_a_source(void **state)
{
    (void)state;
    static char *const slices[] = {"1:-1, 1:-1", "2:, :-2", "20:0:-1, 2:", "1:-1, -2:0:-1"};
    oly_sharding split = over_devices();
    oly_array u = oly_device_put(oly_reshape(numbers(20 * 17, 1), 20, 17), split);
    oly_array f = oly_device_put(oly_reshape(numbers(22 * 19, 0.25), 22, 19), split);
    for (int k = 0; k < 4; k++) {
        oly_array source = oly_slice(f, slices[k]), wanted = u;
        for (int step = 0; step < 6; step++)
            wanted = heat(wanted, source);
        expect_equal(oly_apply(oly_jit(heat_loop, 2, 1, .user = slices[k]), u, f), wanted, "source", k, 0);
    }
}

/* -- two carries ------------------------------------------------------------------------------------------------------ */

static void exchange_and_mask(oly_array *c, oly_array w)
{
    oly_array a = c[0], b = c[1];
    c[0] = oly_concatenate(0, oly_slice(a, ":1"), oly_slice(b, "2:"), oly_slice(a, "-1:"));
    c[1] = oly_where(oly_gt(w, 2), b, oly_roll(a, -3, 0));
}

static void largest_of_other(oly_array *c, oly_array w)
{
    c[1] = oly_update(c[1], "2:-3", oly_max2(oly_slice(w, ":15"), oly_slice(c[0], "5:")));
}

/* Two elements of the other carry, a captured value and numbers: more elements than a carry has, read in two places. */
static void parts_of_what_is_joined(oly_array *c, oly_array w)
{
    oly_array all = oly_concatenate(0, oly_slice(c[1], "15:17"), w, oly_full(7, OLY_FLOAT32, 3));
    oly_array part = oly_slice(oly_add(all, 1), "2:22");
    c[0] = oly_fmod(part, 5);
    c[1] = oly_mul(part, 0.5);
}

static void ends_of_what_is_joined(oly_array *c, oly_array w)
{
    oly_array all = oly_add(oly_concatenate(0, oly_slice(c[1], "17:"), c[0], oly_slice(w, "3:9")), 1);
    c[0] = oly_slice(all, ":20");
    c[1] = oly_slice(all, "9:");
}

/* A periodic boundary: the concatenation has more elements than the carry, but no other values. */
static void around_the_ends(oly_array *c, oly_array w)
{
    oly_array all = oly_mul(oly_concatenate(0, oly_slice(c[0], "-1:"), c[0], oly_slice(c[0], ":1")), 0.5);
    c[1] = oly_sub(w, oly_slice(all, ":-2"));
    c[0] = oly_add(oly_slice(all, ":-2"), oly_slice(all, "2:"));
}

/* The same of numbers that count the elements of the concatenation, and so differ. */
static void numbered_around_the_ends(oly_array *c, oly_array w)
{
    oly_array all = oly_concatenate(0, oly_slice(c[0], "-1:"), c[0], oly_slice(c[0], ":1"));
    all = oly_mul(all, oly_arange(22, OLY_FLOAT32));
    c[1] = oly_sub(w, oly_slice(all, ":-2"));
    c[0] = oly_mul(0.125, oly_add(oly_slice(all, ":-2"), oly_slice(all, "2:")));
}

typedef struct two_fields {
    void (*step)(oly_array *carry, oly_array captured);
    oly_array captured;
} two_fields;

static void step_of_two(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    (void)x;
    (void)y;
    ((two_fields *)user)->step(carry, ((two_fields *)user)->captured);
}

static void loop_over_two_fields(const oly_array *in, oly_array *out, void *user)
{
    two_fields p = *(const two_fields *)user;
    p.captured = oly_slice(in[2], "1:21");
    out[0] = in[0];
    out[1] = in[1];
    oly_scan(3, false, step_of_two, 2, out, 0, NULL, 0, NULL, &p);
}

static void loops_with_two_carries(void **state)
{
    (void)state;
    oly_sharding split = over_devices();
    oly_array a = oly_device_put(numbers(20, 1), split), b = oly_device_put(numbers(20, -1), split);
    oly_array x = oly_device_put(numbers(23, 0.5), split);
    two_fields programs[] = {{exchange_and_mask, NULL},       {largest_of_other, NULL},
                             {parts_of_what_is_joined, NULL}, {ends_of_what_is_joined, NULL},
                             {around_the_ends, NULL},         {numbered_around_the_ends, NULL}};
    for (int k = 0; k < 6; k++) {
        oly_array wanted[] = {a, b}, got[2] = {NULL};
        for (int step = 0; step < 3; step++)
            programs[k].step(wanted, oly_slice(x, "1:21"));
        oly_call(oly_jit(loop_over_two_fields, 3, 2, .user = &programs[k]), OLY_IN(a, b, x), OLY_OUT(got[0], got[1]));
        expect_equal(got[0], wanted[0], "program", k, 0);
        expect_equal(got[1], wanted[1], "program", k, 1);
    }
}

/* -- three carries of few rows ------------------------------------------------------------------------------------------- */

static void join_rows(oly_array i, oly_array *c, void *user)
{
    (void)i;
    (void)user;
    oly_array rows = oly_slice(c[1], "1:3");
    oly_array first = oly_slice(oly_abs(oly_concatenate(0, rows, c[2], rows)), "0:3");
    c[0] = oly_floor(first);
    c[1] = oly_astype(first, OLY_INT32);
    c[2] = oly_full_like(first, 1);
}

static void loop_that_joins_rows(const oly_array *in, oly_array *out, void *user)
{
    memcpy(out, in, 3 * sizeof *in);
    oly_fori(0, 2, join_rows, 3, out, user);
}

static void three_carries_of_few_rows(void **state)
{
    (void)state;
    oly_array u = oly_reshape(numbers(3 * 5 * 16, 1), 3, 5, 16);
    oly_array in[] = {u, oly_astype(u, OLY_INT32), oly_mul(u, 0.5)}, wanted[] = {in[0], in[1], in[2]}, got[3] = {NULL};
    for (int k = 0; k < 2; k++)
        join_rows(NULL, wanted, NULL);
    oly_call_n(oly_jit(loop_that_joins_rows, 3, 3), 3, in, 3, (oly_array *[]){&got[0], &got[1], &got[2]});
    for (int k = 0; k < 3; k++)
        expect_equal(got[k], wanted[k], "carry", k, 0);
}

/* -- a function called in the body returns a captured value -------------------------------------------------------- */

static void hand_on(const oly_array *in, oly_array *out, void *outside)
{
    (void)in;
    out[0] = *(oly_array *)outside;
}

static void add_what_is_handed_on(oly_array i, oly_array *carry, void *outside)
{
    (void)i;
    carry[0] = oly_add(carry[0], oly_apply(oly_jit(hand_on, 1, 1, .user = outside), carry[0]));
}

static void loop_that_calls(const oly_array *in, oly_array *out, void *user)
{
    oly_array outside = oly_slice(in[1], "1:13");
    (void)user;
    out[0] = in[0];
    oly_fori(0, 3, add_what_is_handed_on, 1, out, &outside);
}

static void a_function_called_in_the_body_hands_on_a_value(void **state)
{
    (void)state;
    oly_sharding split = over_devices();
    oly_array c = oly_device_put(numbers(LONG, 1), split), x = oly_device_put(numbers(60, 0.5), split);
    oly_array got = oly_apply(oly_jit(loop_that_calls, 2, 1), c, x);
    expect_equal(got, oly_add(c, oly_mul(3, oly_slice(x, "1:13"))), "call", 0, 0);
}

/* -- a carry of which the body makes two copies -------------------------------------------------------------------- */

/* The first copy is read together with the carry itself, whose memory the second may take. */
static oly_array two_copies(int how, oly_array u)
{
    oly_array other = how == 0   ? oly_update(u, "0", 9)
                      : how == 1 ? oly_at_add(u, OLY_INDEXES(0), 5)
                                 : oly_dynamic_update_slice(u, oly_slice(u, "3:5"), OLY_INDEXES(1));
    return oly_update(u, "1:-1",
                      oly_max2(oly_slice(u, ":-2"), oly_sub(oly_slice(oly_flip(other), "2:"), oly_slice(u, "1:-1"))));
}

static void two_copies_of_loop(oly_array i, oly_array *carry, void *how)
{
    (void)i;
    carry[0] = two_copies(*(int *)how, carry[0]);
}

static void loop_of_two_copies(const oly_array *in, oly_array *out, void *how)
{
    out[0] = in[0];
    oly_fori(0, 3, two_copies_of_loop, 1, out, how);
}

static void a_carry_of_which_two_copies_are_written(void **state)
{
    (void)state;
    oly_sharding split = over_devices();
    for (int how = 0; how < 3; how++) {
        oly_array u = oly_device_put(numbers(20, 1), split), wanted = u;
        for (int k = 0; k < 3; k++)
            wanted = two_copies(how, wanted);
        expect_equal(oly_apply(oly_jit(loop_of_two_copies, 1, 1, .user = &how), u), wanted, "copy", how, 0);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(captured_in_any_way, check_open, check_close),
    cmocka_unit_test_setup_teardown(the_heat_equation_with_a_source, check_open, check_close),
    cmocka_unit_test_setup_teardown(loops_with_two_carries, check_open, check_close),
    cmocka_unit_test_setup_teardown(three_carries_of_few_rows, check_open, check_close),
    cmocka_unit_test_setup_teardown(a_carry_of_which_two_copies_are_written, check_open, check_close),
    cmocka_unit_test_setup_teardown(a_function_called_in_the_body_hands_on_a_value, check_open, check_close),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
