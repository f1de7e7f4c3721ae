/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8  Where only a slice of an elementwise result is read, only that is computed, and no halo comes that nobody
 * reads. Values are those of the plain evaluation. DEMAND_SEED=n: of the first random program. */
#include "check.h"
#include "check_session.h"
#include "compare_pass.h"
#include <olympus.h>

enum { LENGTH = 2048, VALUES = 8, PROGRAMS = 16 };

static void odd(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_slice(oly_add(in[0], oly_add(oly_roll(in[0], 1, 0), oly_roll(in[0], -1, 0))), "1::2");
}

/* Random programs: each value is drawn from few operations on few values, so that many are equal. */
static uint64_t seed;

static int draw(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)(seed >> 33) % n;
}

/* A part of x, which is not shorter than LENGTH / 4, brought back to its length. */
static oly_array part(oly_array x)
{
    static const char *const parts[] = {"1::2", "::2", ":512", "1024:", "100:1100:2", "3::4", "-700:", "5:900"};
    oly_array y = oly_slice(x, parts[draw(8)]);
    int64_t n = oly_size(y);
    return oly_pad(y, 1.0, (int64_t[]){0}, (int64_t[]){LENGTH - n}, NULL);
}

static oly_array drawn(const oly_array *values, int n)
{
    oly_array x = values[draw(n)], y = values[draw(n)];
    switch (draw(6)) {
    case 0: return part(oly_add(x, oly_mul(y, 2.0)));
    case 1: return part(oly_sub(x, oly_roll(y, 1 - 2 * draw(2), 0)));
    case 2: return part(oly_where(oly_lt(x, y), oly_mul(x, x), oly_flip(y, 0)));
    case 3: return oly_add(x, part(oly_neg(part(oly_fmax(x, 0.5)))));
    case 4: return part(oly_mul(oly_max(x), oly_exp(y)));
    default: return oly_add(x, oly_broadcast_to(oly_sum(oly_slice(oly_abs(oly_sub(x, y)), ":1")), LENGTH));
    }
}

static void random_program(const oly_array *in, oly_array *out, void *user)
{
    oly_array values[VALUES] = {in[0], in[1]};
    uint64_t before = seed;
    seed = *(const uint64_t *)user;
    for (int k = 2; k < VALUES; k++)
        values[k] = drawn(values, k);
    out[0] = values[VALUES - 1];
    out[1] = oly_fmin(values[VALUES - 2], values[3]);
    seed = before;
}

/* With and without the pass. */
static void both(oly_function function, void *user, const oly_array *in, int n_in, int n_out, pass_outcome *with,
                 pass_outcome *without)
{
    compare_pass(OLY_OPTIMISATION_DEMAND, function, user, in, n_in, n_out, with, without);
}

static oly_array numbers(const char *spec, double from)
{
    return compare_pass_numbers(spec, from, LENGTH);
}

static void no_halo_comes_that_nobody_reads(void **state)
{
    (void)state;
    pass_outcome with, without;
    oly_array in = numbers("x", -1);
    both(odd, NULL, &in, 1, 1, &with, &without);
    assert_true(2 * with.costs.wire_bytes == without.costs.wire_bytes);
}

static void random_programs_have_the_values_of_plain_ones(void **state)
{
    (void)state;
    static const char *const specs[] = {"x", "y", "(x,y)", ""};
    int fewer = 0;
    seed = getenv("DEMAND_SEED") ? strtoull(getenv("DEMAND_SEED"), NULL, 10) : 1;
    for (int k = 0; k < PROGRAMS; k++)
        OLY_SCOPE
        {
            pass_outcome with, without;
            oly_array in[2] = {numbers(specs[draw(4)], -1), numbers(specs[draw(4)], 2)};
            uint64_t program = (uint64_t)draw(1 << 30);
            both(random_program, &program, in, 2, 2, &with, &without);
            fewer += with.costs.scratch_bytes < without.costs.scratch_bytes;
        }
    assert_true(fewer > PROGRAMS / 10);
}

/* Slices of slices that have nothing left, beyond the array that the first one is of. */
static void nothing_left(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_slice(oly_slice(in[0], "1::2"), "1024:");
    out[1] = oly_slice(oly_slice(oly_slice(in[0], "::-3"), "600:"), "83:");
}

static void slices_may_be_empty(void **state)
{
    (void)state;
    OLY_SCOPE
    {
        oly_array out[2] = {NULL}, in = numbers("x", 1);
        assert_int_equal(oly_call(oly_jit(nothing_left, 1, 2), OLY_IN(in), OLY_OUT(out[0], out[1])), OLY_OK);
        assert_int_equal(oly_dim(out[0], 0), 0);
        assert_int_equal(oly_dim(out[1], 0), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_halo_comes_that_nobody_reads, check_start, check_finish),
        cmocka_unit_test_setup_teardown(random_programs_have_the_values_of_plain_ones, check_start, check_finish),
        cmocka_unit_test_setup_teardown(slices_may_be_empty, check_start, check_finish),
    };
    return CHECK_MAIN(tests);
}
