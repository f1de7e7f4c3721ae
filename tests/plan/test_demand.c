/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8  Where only a slice of an elementwise result is read, only that is computed, and no halo comes that nobody
 * reads. Values are those of the plain evaluation. DEMAND_SEED=n: of the first random program. */
#include "check.h"
#include "check_session.h"
#include "core/optimisation.h"
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
    return oly_pad(y, 1.0, ((int64_t[]){0}), ((int64_t[]){LENGTH - n}), NULL);
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

typedef struct outcome {
    float value[2][LENGTH];
    oly_plan_costs costs;
} outcome;

static void run(oly_fn f, const oly_array *in, int n_in, int n_out, outcome *o)
{
    oly_array out[2] = {NULL};
    memset(o, 0, sizeof *o);
    assert_int_equal(oly_costs_n(&o->costs, f, n_in, in), OLY_OK);
    assert_int_equal(oly_call_arrays(f, n_in, in, n_out, out), OLY_OK);
    for (int k = 0; k < n_out; k++)
        assert_int_equal(oly_process_allgather(out[k], o->value[k], (size_t)oly_size(out[k]) * sizeof(float)), OLY_OK);
}

/* With and without the pass. */
static void both(oly_function function, void *user, const oly_array *in, int n_in, int n_out, outcome *with,
                 outcome *without)
{
    const oly_optimisations one = (oly_optimisations)1 << OLY_OPTIMISATION_DEMAND;
    run(oly_jit(function, n_in, n_out, .user = user), in, n_in, n_out, with);
    oly_optimisations before = oly_disable(one);
    run(oly_jit(function, n_in, n_out, .user = user), in, n_in, n_out, without);
    oly_disable(before);
    assert_memory_equal(with->value, without->value, sizeof with->value);
}

static oly_array numbers(const char *spec, double from)
{
    oly_sharding s = oly_named(oly_make_mesh("x=4,y=2"), spec);
    return oly_device_put(oly_linspace(from, 1.0, LENGTH, OLY_FLOAT32), s);
}

static void no_halo_comes_that_nobody_reads(void **state)
{
    (void)state;
    outcome with, without;
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
            outcome with, without;
            oly_array in[2] = {numbers(specs[draw(4)], -1), numbers(specs[draw(4)], 2)};
            uint64_t program = (uint64_t)draw(1 << 30);
            both(random_program, &program, in, 2, 2, &with, &without);
            fewer += with.costs.scratch_bytes < without.costs.scratch_bytes;
        }
    assert_true(fewer > PROGRAMS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_halo_comes_that_nobody_reads, check_start, check_finish),
        cmocka_unit_test_setup_teardown(random_programs_have_the_values_of_plain_ones, check_start, check_finish),
    };
    return CHECK_MAIN(tests);
}
