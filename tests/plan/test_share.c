/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8  What a program computes twice from the same values is computed once, in loops too; effects are not, and
 * results keep buffers of their own. Values are those of the plain evaluation. SHARE_SEED=n: of the first random program. */
#include "check.h"
#include "check_session.h"
#include "compare_pass.h"
#include <olympus.h>

enum { LENGTH = 64, VALUES = 12, PROGRAMS = 40 };

static oly_array padded(oly_array x)
{
    return oly_pad(x, 0.0, ((int64_t[]){1}), ((int64_t[]){1}), NULL);
}

static void pads(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_slice(padded(in[0]), ":-2"), oly_slice(padded(in[0]), "2:"));
}

static void body(oly_array i, oly_array *carry, void *user)
{
    oly_array x = *(const oly_array *)user, total = carry[0], y = carry[1];
    (void)i;
    carry[0] = oly_add(total, oly_sum(oly_exp(oly_mul(y, x))));
    carry[1] = oly_div(oly_exp(oly_mul(y, x)), oly_sum(oly_exp(oly_mul(y, x))));
}

static void loop(const oly_array *in, oly_array *out, void *user)
{
    oly_array x = in[1];
    (void)user;
    out[0] = oly_sum(in[0]);
    out[1] = in[0];
    oly_fori(0, 3, body, 2, out, &x);
}

static void twice(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_cumsum(oly_mul(in[0], 2.0), 0);
    out[1] = oly_cumsum(oly_mul(in[0], 2.0), 0);
}

/* Random programs: each value is drawn from few operations on few values, so that many are equal. */
static uint64_t seed;

static int draw(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)(seed >> 33) % n;
}

static oly_array drawn(const oly_array *values, int n)
{
    oly_array x = values[draw(n)], y = values[draw(n)];
    switch (draw(8)) {
    case 0: return oly_add(x, y);
    case 1: return oly_sub(x, oly_roll(y, 1, 0));
    case 2: return oly_slice(padded(x), ":-2");
    case 3: return oly_broadcast_to(oly_max(x), LENGTH);
    case 4: return oly_cummax(x, 0);
    case 5: return oly_sort(y, 0);
    case 6: return oly_update(x, "3:9", oly_slice(y, "5:11"));
    default: return oly_where(oly_lt(x, y), x, oly_flip(y, 0));
    }
}

static void random_program(const oly_array *in, oly_array *out, void *user)
{
    oly_array values[VALUES] = {in[0], in[1]};
    uint64_t before = seed;
    seed = *(const uint64_t *)user;
    for (int k = 2; k < VALUES; k++)
        values[k] = drawn(values, k < 4 ? k : 4);
    out[0] = out[1] = values[2];
    for (int k = 3; k < VALUES; k++) {
        out[0] = oly_fmax(out[0], values[k]);
        out[1] = oly_fmin(values[k], out[1]);
    }
    seed = before;
}

/* With and without the pass. */
static void both(oly_function function, void *user, const oly_array *in, int n_in, int n_out, pass_outcome *with,
                 pass_outcome *without)
{
    compare_pass(OLY_OPTIMISATION_COMMON_SUBEXPRESSIONS, function, user, in, n_in, n_out, with, without);
}

static oly_array numbers(const char *spec, double from)
{
    return compare_pass_numbers(spec, from, LENGTH);
}

static void equal_values_are_computed_once(void **state)
{
    (void)state;
    pass_outcome with, without;
    oly_array in[2] = {numbers("x", -1), numbers("x", 0.25)};
    both(pads, NULL, in, 1, 1, &with, &without);
    assert_true(with.costs.steps < without.costs.steps);
    both(loop, NULL, in, 2, 2, &with, &without);
    assert_true(with.costs.steps < without.costs.steps);
    both(twice, NULL, in, 1, 2, &with, &without);
    assert_true(with.costs.steps <= without.costs.steps);
    assert_memory_equal(with.value[0], with.value[1], sizeof *with.value);
}

static void random_programs_have_the_values_of_plain_ones(void **state)
{
    (void)state;
    static const char *const specs[] = {"x", "y", "(x,y)", ""};
    int fewer = 0;
    seed = getenv("SHARE_SEED") ? strtoull(getenv("SHARE_SEED"), NULL, 10) : 1;
    for (int k = 0; k < PROGRAMS; k++)
        OLY_SCOPE
        {
            pass_outcome with, without;
            oly_array in[2] = {numbers(specs[draw(4)], -1), numbers(specs[draw(4)], 2)};
            uint64_t program = (uint64_t)draw(1 << 30);
            both(random_program, &program, in, 2, 2, &with, &without);
            fewer += with.costs.steps < without.costs.steps;
        }
    assert_true(fewer > PROGRAMS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(equal_values_are_computed_once, check_start, check_finish),
        cmocka_unit_test_setup_teardown(random_programs_have_the_values_of_plain_ones, check_start, check_finish),
    };
    return CHECK_MAIN(tests);
}
