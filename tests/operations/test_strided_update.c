/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Updates of every second element or so: the elements in between stay, and threads that share the update
 * do not write both kinds in any order. Once the old elements could be written after the new ones, in arrays large
 * enough for several threads. */
#include "check_session.h"
#include <stdlib.h>

enum { N = 17012, ROWS = 130, COLUMNS = 150, TIMES = 20 };

static void every_second(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_update(in[0], "::-2", oly_broadcast_shape(OLY_ARG(in[1]), 1, (const int64_t[]){N / 2}));
}

/* One colour of a red-black sweep. */
static void one_colour(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = in[0];
    oly_array mean = oly_mul(0.5, oly_add(oly_slice(x, "0:-2:2, 1:-1"), oly_slice(x, "2::2, 1:-1")));
    out[0] = oly_update(x, "1:-1:2, 1:-1", mean);
}

static void updates_of_every_second_element(void **state)
{
    static const char *const specs[] = {"", "x"};
    float *got = malloc(sizeof *got * N);
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    for (int k = 0; k < 2; k++)
        OLY_SCOPE
        {
            oly_array x = oly_device_put(oly_iota(OLY_FLOAT32, 0, N), oly_named(mesh, specs[k]));
            oly_array s = oly_device_put(oly_full(-1, OLY_FLOAT32), oly_named(mesh, ""));
            oly_fn f = oly_jit(every_second, 2, 1);
            for (int times = 0; times < TIMES; times++) {
                oly_array y = NULL;
                oly_call(f, OLY_IN(x, s), OLY_OUT(y));
                oly_process_allgather(y, got, sizeof *got * N);
                for (int i = 0; i < N; i++)
                    assert_true(got[i] == (i % 2 ? -1 : (float)i));
            }
        }
    free(got);
}

static void one_colour_of_a_plate(void **state)
{
    static const char *const specs[] = {"", "x, None", "None, x"};
    static float got[ROWS][COLUMNS];
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    for (int k = 0; k < 3; k++)
        OLY_SCOPE
        {
            oly_array numbers = oly_reshape(oly_mod(oly_iota(OLY_FLOAT32, 0, ROWS * COLUMNS), 64), ROWS, COLUMNS);
            oly_array x = oly_device_put(numbers, oly_named(mesh, specs[k]));
            oly_fn f = oly_jit(one_colour, 1, 1);
            for (int times = 0; times < TIMES; times++) {
                oly_array y = NULL;
                oly_call(f, OLY_IN(x), OLY_OUT(y));
                oly_process_allgather(y, got, sizeof got);
                for (int i = 0; i < ROWS; i++)
                    for (int j = 0; j < COLUMNS; j++) {
                        bool inside = i % 2 && i < ROWS - 1 && j > 0 && j < COLUMNS - 1;
                        int above = (i - 1) * COLUMNS + j, below = (i + 1) * COLUMNS + j, here = i * COLUMNS + j;
                        double expected = inside ? 0.5 * (above % 64 + below % 64) : here % 64;
                        assert_true(got[i][j] == (float)expected);
                    }
            }
        }
}

static int start(void **state)
{
    setenv("OLYMPUS_NUM_THREADS", "3", 1); /* regardless of the number of cores */
    return check_start(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(updates_of_every_second_element, start, check_finish),
    cmocka_unit_test_setup_teardown(one_colour_of_a_plate, start, check_finish),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
