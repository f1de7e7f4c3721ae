/* SPDX-License-Identifier: BSD-3-Clause */
/* See check_layouts.h. */
#include "check_layouts.h"

void *check_fetch(oly_array x)
{
    assert_non_null(x);
    size_t bytes = (size_t)oly_size(x) * oly_dtype_size(oly_dtype_of(x));
    void *data = malloc(bytes + 1);
    assert_non_null(data);
    assert_int_equal(oly_process_allgather(x, data, bytes), OLY_OK);
    return data;
}

oly_array check_numbers(oly_dtype dtype, int rank, const int64_t *shape, int low, int high, uint32_t seed)
{
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= shape[d];
    double *data = malloc(sizeof *data * (size_t)n + 1);
    assert_non_null(data);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = low + (double)(seed >> 8) / (double)(1 << 24) * (high - low + 1);
        data[i] = (double)(int64_t)(data[i] < 0 ? data[i] - 1 : data[i]); /* rounded to an integer */
    }
    oly_array x = oly_astype(oly_from_host(data, OLY_FLOAT64, rank, shape), dtype);
    free(data);
    return x;
}

static void compare(const char *name, const char *how, const char *const *specs, oly_array expected, oly_array got)
{
    size_t bytes = (size_t)oly_size(expected) * oly_dtype_size(oly_dtype_of(expected));
    if (!got)
        fail_msg("%s (%s, %s %s): %s", name, how, specs[0] ? specs[0] : "-", specs[1] ? specs[1] : "-",
                 oly_last_error());
    assert_int_equal(oly_dtype_of(got), oly_dtype_of(expected));
    assert_int_equal(oly_size(got), oly_size(expected));
    void *a = check_fetch(expected), *b = check_fetch(got);
    if (memcmp(a, b, bytes) != 0)
        fail_msg("%s (%s, %s %s): differs from one device", name, how, specs[0] ? specs[0] : "-",
                 specs[1] ? specs[1] : "-");
    free(a);
    free(b);
}

typedef struct traced {
    check_call *call;
} traced;

static void run_traced(const oly_array *in, oly_array *out, void *user)
{
    out[0] = ((traced *)user)->call(in);
}

void check_layouts(const char *name, check_call *call, int n_in, const oly_array *in, oly_mesh mesh, int n_sets,
                   const char *const (*specs)[3])
{
    oly_array expected = call(in);
    traced t = {call};
    if (!expected)
        fail_msg("%s: %s", name, oly_last_error());
    for (int s = 0; s < n_sets; s++)
        OLY_SCOPE
        {
            oly_array placed[3], compiled = NULL, *wanted[1] = {&compiled};
            for (int k = 0; k < n_in; k++) {
                bool fits = specs[s][k] != NULL;
                placed[k] = fits ? oly_device_put(in[k], oly_named(mesh, specs[s][k])) : in[k];
                if (!placed[k])
                    fail_msg("%s: %s", specs[s][k], oly_last_error());
            }
            compare(name, "call by call", specs[s], expected, call(placed));
            oly_fn f = oly_jit(run_traced, n_in, 1, .user = &t, .name = name);
            oly_call_n(f, n_in, placed, 1, wanted);
            compare(name, "compiled", specs[s], expected, compiled);
        }
}
