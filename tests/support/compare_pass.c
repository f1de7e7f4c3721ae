/* SPDX-License-Identifier: BSD-3-Clause */
#include "compare_pass.h"
#include "check.h"
#include <string.h>

static void run(oly_fn f, const oly_array *in, int n_in, int n_out, pass_outcome *o)
{
    oly_array out[COMPARE_PASS_RESULTS] = {NULL};
    assert_true(n_out <= COMPARE_PASS_RESULTS);
    memset(o, 0, sizeof *o);
    assert_int_equal(oly_costs_n(&o->costs, f, n_in, in), OLY_OK);
    assert_int_equal(oly_call_arrays(f, n_in, in, n_out, out), OLY_OK);
    for (int k = 0; k < n_out; k++) {
        assert_true(oly_size(out[k]) <= COMPARE_PASS_LENGTH);
        assert_int_equal(oly_process_allgather(out[k], o->value[k], (size_t)oly_size(out[k]) * sizeof(float)), OLY_OK);
    }
}

void compare_pass(int optimisation, oly_function function, void *user, const oly_array *in, int n_in, int n_out,
                  pass_outcome *with, pass_outcome *without)
{
    const oly_optimisations one = (oly_optimisations)1 << optimisation;
    run(oly_jit(function, n_in, n_out, .user = user), in, n_in, n_out, with);
    oly_optimisations before = oly_disable(one);
    run(oly_jit(function, n_in, n_out, .user = user), in, n_in, n_out, without);
    oly_disable(before);
    assert_memory_equal(with->value, without->value, sizeof with->value);
}

oly_array compare_pass_numbers(const char *spec, double from, int64_t length)
{
    oly_sharding s = oly_named(oly_make_mesh("x=4,y=2"), spec);
    return oly_device_put(oly_linspace(from, 1.0, length, OLY_FLOAT32), s);
}
