/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Values that repeat others are expanded where they are read: their operand is transferred. Steps and
 * values. */
#include "check_communication.h"
#include "check_session.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Elements received by a device: the sum over the lines of transfers. */
static long received(const char *text)
{
    long bytes = 0;
    for (const char *at = text; (at = strstr(at, " per device in")); at++) {
        const char *open = at;
        char unit[8];
        double n;
        while (*open != '[')
            open--;
        assert_int_equal(sscanf(open, "[%lf %7s", &n, unit), 2);
        bytes += (long)(strcmp(unit, "KiB") == 0 ? n * 1024 : n);
    }
    return bytes / 4;
}

static long moved(oly_function function, int n_in, const char *const *specs, int64_t rows, int64_t columns)
{
    oly_array plain[2], split[2];
    for (int k = 0; k < n_in; k++) {
        plain[k] = check_matrix(rows, columns * (1 + k));
        split[k] = oly_device_put(plain[k], oly_named(oly_make_mesh("x=8"), specs[k]));
    }
    char *text = check_steps(oly_jit_with(function, "f", n_in, 1, (oly_jit_options){.user = NULL}), n_in, split);
    long n = received(text);
    free(text);
    check_same_values(function, n_in, plain, split, rows * columns * 2, 1e-6);
    return n;
}

static void repeated(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_repeat(in[0], 2, 1), in[1]);
}

static void tiled(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_sharding columns = oly_named(oly_make_mesh("x=8"), "None, x");
    out[0] = oly_sin(oly_with_sharding_constraint(oly_tile(in[0], 2, 1), columns));
}

static void constrained(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_sharding rows = oly_named(oly_make_mesh("x=8"), "x, None");
    out[0] = oly_sin(oly_with_sharding_constraint(oly_repeat(in[0], 2, 1), rows));
}

static void what_is_repeated_moves(void **state)
{
    (void)state;
    const char *crossed[] = {"x, None", "None, x"};
    const char *alike[] = {"x, None", "x, None"};
    const char *columns[] = {"None, x"};
    assert_in_range(moved(repeated, 2, crossed, 64, 64), 1, 64 * 64 / 8);
    assert_in_range(moved(tiled, 1, crossed, 64, 64), 1, 64 * 64 / 8);
    assert_in_range(moved(constrained, 1, columns, 64, 64), 1, 64 * 64 / 8);
    assert_int_equal(moved(repeated, 2, alike, 64, 64), 0);
}

/* Readers that need different layouts: as before, and right. */
static void read_twice(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array x = oly_repeat(in[0], 2, 1);
    oly_array rows = oly_with_sharding_constraint(oly_sin(x), oly_named(mesh, "x, None"));
    oly_array columns = oly_with_sharding_constraint(oly_cos(x), oly_named(mesh, "None, x"));
    out[0] = oly_sub(rows, columns);
}

static void readers_may_differ(void **state)
{
    (void)state;
    const char *columns[] = {"None, x"};
    assert_true(moved(read_twice, 1, columns, 64, 64) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_repeated_moves),
        cmocka_unit_test(readers_may_differ),
    };
    return cmocka_run_group_tests(tests, check_open, check_close);
}
