/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 devices=4  Forecasts: the file of what kernels take is read as written, and ignored if it is damaged or of another version; every
 * kernel has a rate, and more work takes longer; costs, by which plans are chosen, are the same whatever was measured; memory that runs out
 * is reported. */
#include "check.h"
#include "core/error.h"
#include "plan/cost/cost.h"
#include "plan/cost/forecast.h"
#include "run/forecast.h"
#include "run/kernel_rates.h"
#include "run/measured_units.h"
#include <olympus.h>
#include <stdlib.h>
#include <string.h>

static char folder[40];

static int start(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/olympus-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1);
    setenv("OLYMPUS_COSTS", "measure", 1);
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    assert_non_null(oly_kernel_rates_now());
    return 0;
}

static int finish(void **state)
{
    (void)state;
    char command[64];
    oly_clear_error();
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    unsetenv("OLYMPUS_COSTS");
    unsetenv("XDG_CACHE_HOME");
    return oly_finalize();
}

/* -- the file -------------------------------------------------------------------------------------------------------------- */

static void the_file_is_read_as_written_or_not_at_all(void **state)
{
    (void)state;
    static oly_kernel_rates again;
    oly_text t = {0};
    oly_kernel_rates_text(&t, oly_kernel_rates_now());
    assert_true(oly_kernel_rates_read(oly_text_chars(&t), &again));
    assert_memory_equal(&again, oly_kernel_rates_now(), sizeof again); /* those in use are as stored */
    char *text = oly_strdup(oly_text_chars(&t));
    size_t n = strlen(text);
    for (size_t length = 0; length < n; length += n / 97) { /* cut off */
        char before = text[length];
        text[length] = 0;
        assert_false(oly_kernel_rates_read(text, &again));
        text[length] = before;
    }
    text[n - 1] = 0; /* the end is whole */
    assert_false(oly_kernel_rates_read(text, &again));
    text[n - 1] = '\n';
    static const char *const wrong[] = {"kernels 1", "kernels 3"};
    for (int k = 0; k < 2; k++) { /* an older version and a newer one */
        memcpy(strstr(text, "kernels"), wrong[k], strlen(wrong[k]));
        assert_false(oly_kernel_rates_read(text, &again));
    }
    memcpy(strstr(text, "kernels"), "kernels 2", 9);
    assert_true(oly_kernel_rates_read(text, &again));
    *(strchr(text, '\n') + 1) = '-';
    assert_false(oly_kernel_rates_read(text, &again));
    oly_release(text);
    oly_text_free(&t);
}

/* -- forecasts --------------------------------------------------------------------------------------------------------------- */

static void takes_longer(double few, double many, const char *what, int a, int b)
{
    if (!(few > 0 && many > few && many < 1e6))
        fail_msg("%s %d, %d: %g s and, for more, %g s", what, a, b, few, many);
}

static void every_kernel_has_a_rate(void **state)
{
    (void)state;
    const oly_kernel_rates *r = oly_kernel_rates_now();
    for (int dtype = 0; dtype < OLY_N_DTYPES; dtype++) {
        for (int op = 0; op < OLY_N_TILE_OPS; op++) {
            oly_dtype to;
            int operands;
            if (oly_tile_op_takes((oly_tile_op)op, (oly_dtype)dtype, &to, &operands))
                takes_longer(r->tile[op][dtype], 10, "operation", op, dtype);
            takes_longer(r->convert[dtype][op % OLY_N_DTYPES], 10, "conversion", dtype, op % OLY_N_DTYPES);
        }
        for (int combiner = 0; combiner <= OLY_COMBINE_MIN; combiner++)
            for (int d = 0; d < OLY_N_DIRECTIONS; d++)
                takes_longer(r->reduce[combiner][dtype][d], 10, "reduction", combiner, dtype);
        for (int k = 0; k < OLY_N_PRODUCT_CLASSES && dtype != OLY_BOOL; k++)
            takes_longer(r->gemm[dtype][k], 10, "product", dtype, k);
        takes_longer(r->local[OLY_LOCAL_SORT][dtype][0], 10, "sort", dtype, 0);
        takes_longer(r->local[OLY_LOCAL_GATHER][dtype][0], 10, "gather", dtype, 0);
        takes_longer(r->local[OLY_LOCAL_SCATTER][dtype][1], 10, "scatter", dtype, 1);
    }
    for (int k = OLY_LOCAL_CONVOLVE; k < OLY_N_LOCAL_OPS; k++)
        takes_longer(r->local[k][OLY_FLOAT32][0], 10, "window", k, 0);
    for (int all = 0; all < 2; all++)
        for (int k = 0; k < OLY_N_STREAMS; k++)
            for (int set = 0; set < OLY_RATE_SETS; set++)
                takes_longer(r->stream[all][k][set], 10, "stream", k, set);
}

static double seconds_of(oly_kernel_work w, double threads)
{
    return oly_seconds_of_work(oly_kernel_rates_now(), &w, threads);
}

static void more_work_takes_longer(void **state)
{
    (void)state;
    const oly_kernel_rates *r = oly_kernel_rates_now();
    for (int threads = 1; threads <= 2; threads++) {
        double before[5] = {0};
        for (int64_t n = 64; n <= 4096; n *= 4) {
            oly_tile_instruction c = {
                .op = OLY_TILE_exp, .dtype = OLY_FLOAT32, .to = OLY_FLOAT32, .in = {0, -1, -1}, .out = 1};
            const int16_t in = 0, out = 1;
            const uint8_t dtype = OLY_FLOAT32;
            oly_tile_program program = {1, &c, 1, 1, &in, &dtype, &out, &dtype, 2};
            oly_tile_box box = {.rank = 2, .extent = {n, n}};
            oly_place place = {.stride = {n, 1}};
            oly_reduce_task reduce = {.combiner = OLY_COMBINE_SUM,
                                      .dtype = OLY_FLOAT64,
                                      .rank = 2,
                                      .extent = {n, n},
                                      .stride = {n, 1},
                                      .reduced = {false, true}};
            oly_gemm_task product = {.dtype = OLY_FLOAT32, .batch = 1, .m = n, .n = n, .k = n};
            oly_copy_task copy = {
                .element_bytes = 4, .rank = 2, .extent = {n, n}, .to_stride = {n, 1}, .from_stride = {1, n}};
            oly_local_operand line = {.dtype = OLY_INT32, .rank = 1, .extent = {n * n}, .stride = {1}};
            oly_local_task sort = {.op = OLY_LOCAL_SORT, .n_in = 1, .in = &line, .out = line};
            double now[] = {seconds_of(oly_work_of_tiles(r, &program, &box, &place, &place, false), threads),
                            seconds_of(oly_work_of_reduction(r, &reduce), threads),
                            seconds_of(oly_work_of_product(r, &product), threads),
                            seconds_of(oly_work_of_copy(r, &copy), threads),
                            seconds_of(oly_work_of_local(r, &sort), threads)};
            for (int k = 0; k < 5; k++) {
                if (n > 64)
                    takes_longer(before[k], now[k], "family", k, (int)n);
                before[k] = now[k];
            }
        }
    }
}

/* -- plans ------------------------------------------------------------------------------------------------------------------- */

static double forecasts, costs;

static double forecast_beside_cost(const oly_plan *plan, const oly_step *step)
{
    double forecast = oly_kernel_rates_now() ? oly_forecast_measured(plan, step) : 1;
    assert_true(forecast > 0);
    forecasts += forecast;
    costs += oly_cost_step(plan, step);
    return forecast;
}

static void layer(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_exp(oly_matmul(in[0], in[1])));
}

/* What is measured of kernels changes what is said of steps, not what they cost where plans are chosen. */
static void costs_are_the_same(void **state)
{
    (void)state;
    double cost[2];
    oly_plan_costs counts[2];
    for (int k = 0; k < 2; k++)
        OLY_SCOPE
        {
            oly_mesh mesh = oly_make_mesh("x=4");
            oly_array x = oly_device_put(oly_zeros(OLY_FLOAT32, 512, 512), oly_named(mesh, "x")),
                      w = oly_device_put(oly_zeros(OLY_FLOAT32, 512, 512), oly_named(mesh, "None"));
            oly_fn f = oly_jit_with(layer, "layer", 2, 1, (oly_jit_options){.user = NULL});
            FILE *file = tmpfile();
            assert_non_null(file);
            if (k == 1)
                oly_kernel_rates_forget();
            forecasts = costs = 0;
            oly_forecast_by(&(const oly_forecast_model){.step = forecast_beside_cost});
            assert_int_equal(oly_costs(&counts[k], f, x, w), OLY_OK);
            assert_int_equal(oly_explain(file, f, x, w), OLY_OK);
            assert_true(ftell(file) > 0);
            fclose(file);
            oly_forecast_by(NULL);
            cost[k] = costs;
            assert_true(forecasts > 0 && costs > 0);
        }
    assert_memory_equal(&counts[0], &counts[1], sizeof counts[0]);
    assert_true(cost[0] == cost[1]);
    assert_int_equal(oly_kernel_rates_settle(false), OLY_OK);
}

/* -- memory ------------------------------------------------------------------------------------------------------------------- */

static void memory_that_runs_out_is_reported(void **state)
{
    (void)state;
    oly_fail_allocation(0);
    assert_int_equal(oly_kernel_rates_settle(false), OLY_MEMORY);
    oly_fail_allocation(-1);
    oly_drop_message();
    assert_null(oly_kernel_rates_now());
    char command[80];
    snprintf(command, sizeof command, "rm %s/olympus/costs-*-kernels-*", folder);
    assert_int_equal(system(command), 0);
    oly_fail_allocation(2); /* that of measuring */
    assert_int_equal(oly_kernel_rates_settle(false), OLY_MEMORY);
    oly_fail_allocation(-1);
    oly_drop_message();
    assert_int_equal(oly_kernel_rates_settle(false), OLY_OK);
    assert_non_null(oly_kernel_rates_now());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_is_read_as_written_or_not_at_all),
        cmocka_unit_test(every_kernel_has_a_rate),
        cmocka_unit_test(more_work_takes_longer),
        cmocka_unit_test(costs_are_the_same),
        cmocka_unit_test(memory_that_runs_out_is_reported),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
