/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Random programs around loops that read views of arrays from outside, in loops, branches and maps (capture_program.h):
 * compiled, on arrays sharded at random, they give the bits of the same calls on one device, one by one.
 *   CAPTURES_SEED=n      seed of the first program; program k has seed n + k
 *   CAPTURES_PROGRAMS=n  how many
 *   CAPTURES_PRINT=1     print each program before it runs */
#include "capture_program.h"
#include "check_session.h"
#include "core/option.h"
#include <inttypes.h>
#include <math.h>

enum { MOST_ELEMENTS = 200000 };
static const double largest_exact = 1 << 24; /* in units of 1/1024 */

typedef struct reference {
    oly_dtype dtype;
    int64_t size;
    void *data;
} reference;

static uint64_t setting(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : fallback;
}

static void fail_program(capture_program *p, const char *why)
{
    char text[600];
    snprintf(text, sizeof text, "CAPTURES_SEED=%" PRIu64 " CAPTURES_PROGRAMS=1, %d devices: %s", p->seed,
             oly_device_count(), why);
    fail_msg("%s", text);
}

static double element_of(const void *data, oly_dtype dtype, int64_t i)
{
    return dtype == OLY_FLOAT32 ? (double)((const float *)data)[i]
           : dtype == OLY_INT32 ? (double)((const int32_t *)data)[i]
                                : (double)((const uint8_t *)data)[i];
}

static oly_array input(const capture_program *p, int k)
{
    static float floats[MOST_ELEMENTS];
    static int32_t numbers[MOST_ELEMENTS];
    static uint8_t bools[MOST_ELEMENTS];
    const capture_input *in = &p->input[k];
    capture_random r = {p->seed + 77 * (uint64_t)k};
    int64_t n = 1;
    for (int d = 0; d < in->rank; d++)
        n *= in->shape[d];
    assert_true(n <= MOST_ELEMENTS);
    for (int64_t i = 0; i < n; i++) {
        numbers[i] = (int32_t)capture_draw(&r, 19) - 9;
        floats[i] = (float)numbers[i];
        bools[i] = numbers[i] % 3 == 0;
    }
    const void *data = in->dtype == OLY_FLOAT32 ? (void *)floats : in->dtype == OLY_INT32 ? (void *)numbers : bools;
    return oly_from_host(data, in->dtype, in->rank, in->shape);
}

/* -- call by call --------------------------------------------------------------------------------------------------- */

static int results_of(const capture_program *p)
{
    return p->slope ? 1 + p->n_out : p->n_out;
}

static oly_fn slopes_of(capture_program *p)
{
    int all[CAPTURE_CARRIES] = {0, 1, 2};
    oly_fn f = oly_jit(capture_program_run, p->n_in, 1, .user = p);
    return oly_value_and_grad(f, .n_argnum_list = p->n_out, .argnum_list = all);
}

/* False: numbers get too large to be exact. */
static bool make_reference(capture_program *p, reference *wanted)
{
    oly_array in[CAPTURE_INPUTS], out[CAPTURE_CARRIES + 1] = {NULL};
    bool exact = true;
    for (int k = 0; k < p->n_in; k++)
        in[k] = input(p, k);
    p->plain = true;
    if (p->slope)
        oly_call_arrays(slopes_of(p), p->n_in, in, results_of(p), out);
    else
        capture_program_run(in, out, p);
    p->plain = false;
    for (int k = 0; k < results_of(p); k++) {
        if (!out[k])
            fail_program(p, oly_last_error());
        wanted[k] = (reference){oly_dtype_of(out[k]), oly_size(out[k]), NULL};
        size_t bytes = (size_t)wanted[k].size * oly_dtype_size(wanted[k].dtype);
        wanted[k].data = malloc(bytes + 1);
        assert_int_equal(oly_get(out[k], wanted[k].data, bytes), OLY_OK);
        for (int64_t i = 0; wanted[k].dtype == OLY_FLOAT32 && i < wanted[k].size; i++) {
            double x = 1024 * element_of(wanted[k].data, OLY_FLOAT32, i);
            exact = exact && fabs(x) <= largest_exact && x == rint(x);
        }
    }
    return exact;
}

/* -- compiled --------------------------------------------------------------------------------------------------------- */

static oly_mesh any_mesh(capture_random *r)
{
    int n = oly_device_count(), parts;
    char axes[40];
    if (capture_draw(r, 6) == 0) /* of some devices */
        n = 1 + (int)capture_draw(r, n);
    parts = 1 + (int)capture_draw(r, n);
    while (n % parts)
        parts--;
    if (parts == 1 || parts == n)
        snprintf(axes, sizeof axes, "x=%d", n);
    else
        snprintf(axes, sizeof axes, "x=%d,y=%d", parts, n / parts);
    return oly_make_mesh(axes);
}

static oly_sharding any_sharding(capture_random *r, oly_mesh mesh, int rank)
{
    char spec[80] = "";
    int x = (int)capture_draw(r, 2 * rank + 1) - rank, y = (int)capture_draw(r, 2 * rank + 1) - rank;
    x = x < 0 ? -x - 1 : x;
    y = oly_mesh_axis_count(mesh) < 2 ? rank : y;
    for (int d = 0; d < rank; d++)
        sprintf(spec + strlen(spec), "%s%s", d ? ", " : "",
                d == x && d == y ? "(x,y)"
                : d == x         ? "x"
                : d == y         ? "y"
                                 : "None");
    return oly_named(mesh, spec);
}

static void compare(capture_program *p, const reference *wanted, oly_array got, int k, const char *how)
{
    char text[300];
    size_t bytes = (size_t)wanted->size * oly_dtype_size(wanted->dtype);
    if (!got)
        fail_program(p, oly_last_error());
    if (oly_dtype_of(got) != wanted->dtype || oly_size(got) != wanted->size) {
        snprintf(text, sizeof text, "%s: result %d has another type", how, k);
        fail_program(p, text);
    }
    void *data = calloc(bytes + 1, 1);
    if (oly_process_allgather(got, data, bytes) != OLY_OK)
        fail_program(p, oly_last_error());
    for (int64_t i = 0; i < wanted->size; i++) {
        double a = element_of(data, wanted->dtype, i), b = element_of(wanted->data, wanted->dtype, i);
        if (a != b && !(isnan(a) && isnan(b)) && !(p->slope && fabs(a - b) <= 1e-5 * (1 + fabs(b)))) {
            snprintf(text, sizeof text, "%s: element %" PRId64 " of result %d is %.9g, not %.9g", how, i, k, a, b);
            fail_program(p, text);
        }
    }
    free(data);
}

static void check_program(capture_program *p)
{
    static const int halo_steps[] = {0, 0, 0, 1, 2, 3, 5};
    reference wanted[CAPTURE_CARRIES + 1];
    oly_array in[CAPTURE_INPUTS], out[CAPTURE_CARRIES + 1] = {NULL};
    capture_random r = {p->seed * 31};
    oly_mesh mesh = any_mesh(&r);
    p->mesh = mesh;
    p->parts = (int)oly_mesh_axis_size(mesh, 0);
    bool exact = make_reference(p, wanted);
    int n_out = results_of(p);
    if (exact) {
        for (int k = 0; k < p->n_in; k++) {
            in[k] = input(p, k);
            if (capture_draw(&r, 5))
                in[k] = oly_device_put(in[k], any_sharding(&r, mesh, p->input[k].rank));
        }
        oly_option.halo_steps = halo_steps[capture_draw(&r, 7)];
        p->places = capture_draw(&r, 2);
        oly_fn f = p->slope ? slopes_of(p) : oly_jit(capture_program_run, p->n_in, n_out, .user = p);
        if (oly_call_arrays(f, p->n_in, in, n_out, out) != OLY_OK || oly_last_status() != OLY_OK)
            fail_program(p, oly_last_error());
        for (int k = 0; k < n_out; k++)
            compare(p, &wanted[k], out[k], k, "compiled");
        oly_array again[CAPTURE_CARRIES + 1] = {NULL};
        if (!p->slope) /* donated */
            memcpy(again, in, sizeof *in * (size_t)(n_out > 1 ? n_out - 1 : 1));
        if (oly_call_arrays(f, p->n_in, in, n_out, again) != OLY_OK)
            fail_program(p, oly_last_error());
        for (int k = 0; k < n_out; k++)
            compare(p, &wanted[k], again[k], k, "compiled, again");
        oly_option.halo_steps = 0;
    }
    for (int k = 0; k < n_out; k++)
        free(wanted[k].data);
}

static void compiled_loops_give_the_values_of_single_calls(void **state)
{
    (void)state;
    uint64_t seed = setting("CAPTURES_SEED", 1), programs = setting("CAPTURES_PROGRAMS", 100);
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    for (uint64_t k = 0; k < programs; k++) {
        capture_program p;
        OLY_SCOPE
        {
            capture_program_make(&p, seed + k);
            p.print = setting("CAPTURES_PRINT", 0) && oly_process_index() == 0;
            check_program(&p);
        }
        if (oly_last_status() != OLY_OK)
            fail_program(&p, oly_last_error());
    }
    assert_int_equal(oly_finalize(), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(compiled_loops_give_the_values_of_single_calls),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
