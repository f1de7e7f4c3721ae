/* SPDX-License-Identifier: BSD-3-Clause */
/* See check_session.h. */
#include "check_session.h"
#include "core/simulate.h"
#include <math.h>

int check_open(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    return 0;
}

int check_close(void **state)
{
    (void)state;
    return oly_finalize();
}

int check_start(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    return oly_device_count() == 8 ? 0 : -1;
}

int check_start_wide(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_enable_x64(true);
    return 0;
}

int check_finish(void **state)
{
    (void)state;
    oly_clear_error();
    return oly_finalize();
}

static bool open;

void check_begin(void)
{
    if (open)
        oly_finalize();
    open = true;
    oly_clear_error();
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
}

void check_end(void)
{
    assert_string_equal(oly_last_error(), "");
    open = false;
    assert_int_equal(oly_finalize(), 0);
}

void check_simulate(const char *size)
{
    setenv("OLYMPUS_SIMULATE", size, 1);
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    assert_true(oly_simulated());
}

void check_simulate_end(void)
{
    assert_string_equal(oly_last_error(), "");
    assert_int_equal(oly_finalize(), 0);
    unsetenv("OLYMPUS_SIMULATE");
}

void check_refused(oly_array result, oly_status status, const char *text, const char *call)
{
    if (result || oly_last_status() != status || !strstr(oly_last_error(), text))
        fail_msg("%s: %s, %s: \"%s\"", call, result ? "accepted" : "refused", oly_status_name(oly_last_status()),
                 oly_last_error());
    oly_clear_error();
}

void check_near(oly_array got, int n, const double *wanted)
{
    float values[256];
    if (!got)
        fail_msg("%s", oly_last_error());
    assert_true(n <= 256);
    assert_int_equal(oly_size(got), n);
    assert_int_equal(oly_process_allgather(oly_astype(got, OLY_FLOAT32), values, 4 * (size_t)n), OLY_OK);
    for (int k = 0; k < n; k++)
        if (!(fabs((double)values[k] - wanted[k]) <= 1e-5 * fabs(wanted[k])))
            fail_msg("element %d is %g, expected %g", k, (double)values[k], wanted[k]);
}

size_t check_bytes_of(int n, const oly_array *x, char *bytes, size_t most)
{
    size_t total = 0;
    for (int k = 0; k < n; k++) {
        size_t size = (size_t)oly_size(x[k]) * oly_dtype_size(oly_dtype_of(x[k]));
        assert_true(total + size <= most);
        assert_int_equal(oly_process_allgather(x[k], bytes + total, size), OLY_OK);
        total += size;
    }
    return total;
}

void check_type(oly_array x, const char *wanted)
{
    char type[256];
    if (!x)
        fail_msg("%s", oly_last_error());
    oly_typeof(x, type, sizeof type);
    assert_string_equal(type, wanted);
}
