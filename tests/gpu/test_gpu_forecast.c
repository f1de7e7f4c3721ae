/* SPDX-License-Identifier: BSD-3-Clause */
/* run: devices=2  Times predicted for GPUs: oly_explain names the card, steps of every kind have a time that follows from the card's facts and
 * grows with the work, and plans move the same bytes as without. tests/gpu/test_platform.sh runs it on an emulated GPU; on CPUs there is
 * nothing to see. */
#include "check.h"
#include "check_session.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool on_gpus(void)
{
    return strcmp(oly_device_platform(oly_get_device(0)), "cuda") == 0;
}

/* What oly_explain says of a call: the beginning. */
static void explain_to(oly_fn f, oly_array x, char *text, size_t room)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(oly_explain(file, f, x), OLY_OK);
    rewind(file);
    text[fread(text, 1, room - 1, file)] = 0;
    fclose(file);
}

/* The seconds behind "predicted time: " at the beginning of a line. */
static double seconds_of(const char *text)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
    double value = 0;
    char unit[8] = "";
    const char *at = strstr(text, "\n  predicted time: ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, " predicted time: %lf %7[a-z]", &value, unit), 2);
    for (size_t k = 0; k < sizeof units / sizeof *units; k++)
        if (strcmp(units[k].name, unit) == 0)
            return value * units[k].seconds;
    fail_msg("an unknown unit: %s", unit);
    return 0;
}

static double predicted(oly_function body, int64_t rows, int64_t columns)
{
    double seconds = 0;
    OLY_SCOPE
    {
        oly_mesh mesh = oly_make_mesh("x=2");
        oly_array x = oly_device_put(oly_zeros(OLY_FLOAT32, rows, columns), oly_named(mesh, "x, None"));
        oly_block_until_ready(x); /* no work is left when the test ends */
        static char text[20000];
        explain_to(oly_jit(body, 1, 1), x, text, sizeof text);
        assert_true(!strstr(text, "times predicted for Emulated GPU") == !on_gpus());
        seconds = seconds_of(text);
    }
    return seconds;
}

#define BODY(name, call)                                                                                               \
    static void name(const oly_array *in, oly_array *out, void *unused)                                                \
    {                                                                                                                  \
        (void)unused;                                                                                                  \
        oly_array x = in[0];                                                                                           \
        out[0] = call;                                                                                                 \
    }
BODY(negative, oly_neg(x))
BODY(logarithms, oly_lgamma(x))
BODY(sum_all, oly_sum(x))
BODY(sum_rows, oly_sum(x, OLY_AXES(1)))
BODY(sum_columns, oly_sum(x, OLY_AXES(0)))
BODY(largest, oly_argmax(x, OLY_AXES(1)))
BODY(turned, oly_transpose(x))
BODY(product, oly_matmul(x, oly_transpose(x)))
BODY(sorted, oly_sort(x, 1))
BODY(running, oly_cumsum(x, 1))
BODY(gathered, oly_take(x, oly_mod(oly_arange(64, OLY_INT32), 7), 1, "clip"))
BODY(scattered, oly_at_add(x, OLY_INDEXES(oly_mod(oly_arange(64, OLY_INT32), 7)), 1))
BODY(windows, oly_reduce_window(x, "sum", .window = "3, 3", .padding = "SAME"))
BODY(convolved, oly_conv(oly_reshape(x, 1, 1, oly_shape(x)[0], oly_shape(x)[1]), oly_ones(OLY_FLOAT32, 1, 1, 3, 3),
                         .padding = "SAME"))

BODY(softmax, oly_softmax(x, 1))

/* The kernel of the sum reads the padded array in x. */
static void padded(const oly_array *in, oly_array *out, void *unused)
{
    static const int64_t by[2] = {0, 1};
    (void)unused;
    oly_array p = oly_pad(in[0], 0, by, by, NULL);
    out[0] = oly_sum(oly_mul(in[0], oly_add(oly_slice(p, ":, 2:"), oly_slice(p, ":, :-2"))));
}

static void times_grow_with_the_work(void **state)
{
    static const struct {
        const char *name;
        oly_function body;
    } of[] = {{"negative", negative},   {"lgamma", logarithms}, {"sum", sum_all},      {"rows", sum_rows},
              {"columns", sum_columns}, {"argmax", largest},    {"transpose", turned}, {"product", product},
              {"sort", sorted},         {"cumsum", running},    {"gather", gathered},  {"scatter", scattered},
              {"windows", windows},     {"conv", convolved},    {"padded", padded}};
    (void)state;
    if (!on_gpus())
        return;
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        double small = predicted(of[k].body, 64, 64), large = predicted(of[k].body, 512, 2048);
        if (!(isfinite(small) && small > 1e-6 && small < 1e-3 && large > small && large < 1))
            fail_msg("%s: %g and %g s", of[k].name, small, large);
    }
}

/* The emulated card has four multiprocessors, a clock of 1 GHz and a memory of 64 GB/s. */
static void times_follow_from_the_cards_facts(void **state)
{
    (void)state;
    if (!on_gpus())
        return;
    double bytes = 2. * 1024 * 4096 * 4, seconds = predicted(negative, 1024, 4096);
    if (seconds < bytes / 64e9 || seconds > 1.5 * bytes / 64e9)
        fail_msg("%g s for %g bytes", seconds, bytes);
    double clocks = 500. * 1024 * 4096;
    seconds = predicted(logarithms, 1024, 4096);
    if (seconds < 0.9 * clocks / (4 * 128 * 1e9) || seconds > 1.5 * clocks / (4 * 128 * 1e9))
        fail_msg("%g s for %g clocks", seconds, clocks);
}

/* Reductions along rows with the groups around them are one kernel: x is read once, and the result is written. */
static void chains_of_rows_are_one_kernel(void **state)
{
    (void)state;
    if (!on_gpus())
        return;
    double copied = predicted(negative, 1024, 2048), seconds = predicted(softmax, 1024, 2048);
    if (seconds < copied || seconds > 2.5 * copied)
        fail_msg("%g s, and a copy takes %g s", seconds, copied);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(times_grow_with_the_work, check_open, check_close),
        cmocka_unit_test_setup_teardown(times_follow_from_the_cards_facts, check_open, check_close),
        cmocka_unit_test_setup_teardown(chains_of_rows_are_one_kernel, check_open, check_close)};
    (void)argc, (void)argv;
    return CHECK_MAIN(tests);
}
