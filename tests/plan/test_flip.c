/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Reversals move through what commutes with them before a program is planned: bytes, and values, which
 * are those of the operations called one by one. */
#include "check_communication.h"
#include "check_session.h"
#include <math.h>
#include <stdlib.h>

/* Transfers of reversed blocks in the plan of a function of float32[64,4] with that spec; its values are those of its
 * operations, exactly except for `tolerance`. */
static int moves_of(oly_function function, const char *spec, double tolerance)
{
    enum { N = 64 * 4 };
    float values[2][N];
    oly_array x = oly_device_put(check_matrix(64, 4), oly_named(oly_make_mesh("x=8"), spec)), out = NULL;
    oly_fn f = oly_jit_with(function, "f", 1, 1, (oly_jit_options){.user = NULL});
    char *text = check_steps(f, 1, &x);
    int n = check_count(text, "permute ->");
    free(text);
    function(&x, &out, NULL);
    assert_int_equal(oly_process_allgather(out, values[0], sizeof values[0]), OLY_OK);
    assert_int_equal(oly_process_allgather(oly_apply(f, x), values[1], sizeof values[1]), OLY_OK);
    for (int k = 0; k < N; k++)
        if (!(fabs((double)values[0][k] - (double)values[1][k]) <= tolerance))
            fail_msg("element %d is %.9g, not %.9g", k, (double)values[1][k], (double)values[0][k]);
    return n;
}

/* Slices, and updates with them. */
static void parts(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_rev(in[0], 0), even = oly_slice(x, "::2"), odd = oly_slice(x, "1::2");
    oly_array y = oly_pad(oly_mul(even, 2), 0, (int64_t[]){0, 0}, (int64_t[]){1, 0}, (int64_t[]){1, 0});
    out[0] = oly_rev(oly_update(y, "1::2", oly_neg(odd)), 0);
}

/* Single rows, in which order does not matter, beside others; one of them is read in both orders. */
static void rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_rev(in[0], 0), first = oly_exp(oly_slice(x, "5:6")),
              two = oly_concatenate(0, first, oly_mul(first, 3));
    oly_array y = oly_concatenate(0, two, oly_slice(x, "2:"));
    out[0] = oly_add(oly_rev(y, 0), oly_update(in[0], "7:9", two));
}

static void pairs(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_reshape(oly_rev(in[0], 0, 1), 256);
    out[0] = oly_rev(oly_reshape(oly_square(x), 64, 4), 0, 1);
}

static void largest(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_rev(in[0], 0);
    out[0] = oly_rev(oly_sub(x, oly_max(x, OLY_AXES(0))), 0);
}

static void running(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_rev(oly_mul(oly_cumsum(oly_rev(in[0], 0), 0), 2), 0);
}

static void sorted_rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_rev(oly_sort(oly_rev(in[0], 0), 1), 0);
}

/* A mask of indexes is computed in reverse order. */
static void masked(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_rev(oly_mul(oly_tril(oly_rev(in[0], 0), 0), 2), 0);
}

static void nothing_is_reversed(void **state)
{
    (void)state;
    assert_int_equal(moves_of(pairs, "x", 0), 0);
    assert_int_equal(moves_of(masked, "x", 0), 0);
    assert_int_equal(moves_of(sorted_rows, "x", 0), 0);
    assert_int_equal(moves_of(largest, "x", 0), 0);
    assert_int_equal(moves_of(running, "x", 1e-4), 0);
    assert_int_equal(moves_of(parts, "x", 0), 0);
    moves_of(rows, "x", 0);
}

/* What is read in both orders is reversed once, as without the pass. */
static void both(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_exp(oly_rev(in[0], 0));
    out[0] = oly_add(x, oly_mul(in[0], x));
}

static void what_others_read_is_reversed_once(void **state)
{
    (void)state;
    assert_int_equal(moves_of(both, "x", 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_reversed),
        cmocka_unit_test(what_others_read_is_reversed_once),
    };
    return cmocka_run_group_tests(tests, check_open, check_close);
}
