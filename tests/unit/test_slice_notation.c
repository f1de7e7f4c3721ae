/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Slice and axes notations: Python's meaning, and errors that name the column. */
#include "check_graph.h"
#include <inttypes.h>

/* -- slice notation ------------------------------------------------------------------------------------- */

/* "start+extent*step" for each dimension, "!" after dropped ones, "~" after reversed ones; or "OLY_PARSE: message". */
static const char *sliced(const char *slices, int rank, const int64_t *shape)
{
    static char text[600];
    oly_params p;
    memset(&p, 0, sizeof p);
    oly_drop_message();
    oly_status s = oly_slice_notation(slices, rank, shape, &p);
    int at = 0;
    text[0] = 0;
    if (s != OLY_OK)
        snprintf(text, sizeof text, "%s: %s", oly_status_name(s), oly_pending_message());
    for (int d = 0; s == OLY_OK && d < p.rank; d++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%" PRId64 "+%" PRId64 "*%" PRId64 "%s", d ? " " : "",
                       p.start[d], p.shape[d], p.step[d],
                       p.axes[d] == OLY_PART_DROPPED    ? "!"
                       : p.axes[d] == OLY_PART_REVERSED ? "~"
                                                        : "");
    return text;
}

static void slices_are_pythons(void **state)
{
    (void)state;
    static const int64_t shape[] = {8, 5};
    /* clang-format off */
    static const char *const cases[][2] = {
        {"1:-1, ::2", "1+6*1 0+3*2"}, {"3", "3+1*1! 0+5*1"}, {"-1,-5", "7+1*1! 0+1*1!"}, {"...", "0+8*1 0+5*1"},
        {"..., 1:3", "0+8*1 1+2*1"}, {"2, ...", "2+1*1! 0+5*1"}, {"1:3, ..., 0", "1+2*1 0+1*1!"},
        {"", "0+8*1 0+5*1"}, {":99, -99:", "0+8*1 0+5*1"}, {"6:2", "6+0*1 0+5*1"}, {"99:", "8+0*1 0+5*1"},
        {"1:8:3", "1+3*3 0+5*1"}, {"::", "0+8*1 0+5*1"},
        {":: 9223372036854775807", "0+1*9223372036854775807 0+5*1"}, {"1:-1;", "OLY_PARSE: "},
        {"1 2", "OLY_PARSE: "}, {"a", "OLY_PARSE: "}, {"1:-1,", "OLY_PARSE: "}, {",", "OLY_PARSE: "},
        {"..", "OLY_PARSE: "}, {"..., ...", "OLY_PARSE: "}, {"...x", "OLY_PARSE: "},
        {"0,0,0", "OLY_SHAPE: \"0,0,0\" names 3 dimensions, the array has 2"}, {"0,0,0,...", "OLY_SHAPE: "},
        {"8", "OLY_INVALID: index 8 at column 1"},
        {"0, -6", "OLY_INVALID: index -6 at column 4 of \"0, -6\" is out of range for dimension 1 of size 5"},
        {"::0", "OLY_INVALID: step 0 at column 3"},
        {"::-1", "0+8*1~ 0+5*1"}, {"6:1:-2", "2+3*2~ 0+5*1"}, {"-99::-1", "0+0*1~ 0+5*1"}, {"99:-99:-3", "1+3*3~ 0+5*1"},
        {"2:5:-1, 3", "0+0*1~ 3+1*1!"}, {":5:-9223372036854775808", "7+1*9223372036854775807~ 0+5*1"},
        {"99999999999999999999", "OLY_PARSE: "}
    };
    /* clang-format on */
    for (size_t k = 0; k < COUNT(cases); k++)
        check_outcome(sliced(cases[k][0], 2, shape), cases[k][1]);
    check_outcome(sliced("", 0, shape), "");
    check_outcome(sliced("...", 0, shape), "");
    check_outcome(sliced("0", 0, shape), "OLY_SHAPE: ");
    check_outcome(sliced("0", 1, (int64_t[]){0}), "OLY_INVALID: index 0");
}

static void malformed_slices_name_the_column(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"1:-1, x", "column 7"}, {"1:2;3", "column 4"}, {"1,..", "column"}};
    for (size_t k = 0; k < COUNT(cases); k++)
        assert_non_null(strstr(sliced(cases[k][0], 2, (int64_t[]){8, 5}), cases[k][1]));
}

static void slices_from_numbers(void **state)
{
    (void)state;
    oly_params p;
    memset(&p, 0, sizeof p);
    const int64_t shape[] = {8, 5}, start[] = {1, 0}, limit[] = {-1, 9}, step[] = {2, 1}, zero[] = {1, 0};
    assert_int_equal(oly_slice_numbers(2, shape, start, limit, step, &p), OLY_OK);
    assert_true(p.rank == 2 && p.start[0] == 1 && p.shape[0] == 3 && p.step[0] == 2 && p.shape[1] == 5);
    assert_int_equal(oly_slice_numbers(2, shape, NULL, NULL, NULL, &p), OLY_OK);
    assert_true(p.start[0] == 0 && p.shape[0] == 8 && p.step[0] == 1);
    assert_int_equal(oly_slice_numbers(2, shape, start, limit, zero, &p), OLY_INVALID);
}

static void axes_notation(void **state)
{
    (void)state;
    oly_params p;
    memset(&p, 0, sizeof p);
    assert_int_equal(oly_axes_notation(" 0, -1 ", &p), OLY_OK);
    assert_true(p.n_axes == 2 && p.axes[0] == 0 && p.axes[1] == -1);
    assert_int_equal(oly_axes_notation("0,", &p), OLY_PARSE);
    assert_int_equal(oly_axes_notation("0 1", &p), OLY_PARSE);
    assert_int_equal(oly_axes_notation("x", &p), OLY_PARSE);
    assert_int_equal(oly_axes_notation("0,1,2,3,4,5,6,7,8,9,10,11,0", &p), OLY_INVALID);
}

int main(void)
{
    /* clang-format off */
    const struct CMUnitTest tests[] = {
        TEST(slices_are_pythons), TEST(malformed_slices_name_the_column), TEST(slices_from_numbers),
        TEST(axes_notation)
    };
    /* clang-format on */
    return CHECK_MAIN(tests);
}
