/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Tables of numbers as text: saved and loaded by any number of ranks and with any sharding; errors with line and column. */
#include "check_files.h"
#include "check_session.h"
#include "faulty_storage.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

static void put(const char *name, const char *text)
{
    if (oly_process_index() == 0) {
        int file = open(check_files_path(name), O_WRONLY | O_CREAT | O_TRUNC, 0666);
        assert_int_equal(write(file, text, strlen(text)), strlen(text));
        close(file);
    }
    assert_int_equal(oly_sync(name), OLY_OK);
}

static void has_text(const char *name, const char *wanted)
{
    char text[512] = {0};
    int file = open(check_files_path(name), O_RDONLY);
    assert_true(file >= 0 && read(file, text, sizeof text - 1) >= 0);
    close(file);
    assert_string_equal(text, wanted);
}

static void refused(const char *text, oly_dtype dtype, oly_status status, const char *part)
{
    put("wrong.csv", text);
    assert_null(oly_load_csv(check_files_path("wrong.csv"), dtype, oly_named(oly_make_mesh("i=8"), "i")));
    CHECK_FAILS(oly_last_status(), status, part);
}

/* A hole in a file, for example; as the end of a text it would hide the rest of the line. */
static void bytes_0_are_refused(void **state)
{
    (void)state;
    assert_int_equal(check_files_there(), 0);
    if (oly_process_index() == 0) {
        int file = open(check_files_path("zero.csv"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
        assert_true(file >= 0 && write(file, "1,2\n3\0,4\n", 9) == 9);
        close(file);
    }
    oly_sync("written");
    assert_null(oly_load_csv(check_files_path("zero.csv"), OLY_FLOAT32, oly_named(oly_make_mesh("i=8"), "i")));
    CHECK_FAILS(oly_last_status(), OLY_PARSE, "byte 5 is 0");
}

static void tables_come_back(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("i=4, j=2");
    const int64_t shape[] = {3, 3};
    const float values[] = {0.1F, -2, 1e-7F, 3, NAN, INFINITY, 16777216, -0.0F, 1.0F / 3};
    const double wide[] = {0.1F, -2, 1e-7F, 3, 1.0 / 3, -1e-300, 1e300, 0, 5};
    static const char *const specs[] = {"i, j", "None, (j,i)", "(i,j)", ""};
    for (int k = 0; k < 4; k++) {
        oly_array x = oly_device_put(oly_from_host(values, OLY_FLOAT32, 2, shape), oly_named(mesh, specs[k]));
        assert_int_equal(oly_save_csv(check_files_path("x.csv"), x, .header = "a,b,c"), OLY_OK);
        has_text("x.csv", "a,b,c\n0.1,-2.0,1e-07\n3.0,nan,inf\n16777216.0,-0.0,0.33333334\n");
        oly_array y =
            oly_load_csv(check_files_path("x.csv"), OLY_FLOAT32, oly_named(mesh, specs[3 - k]), .header_lines = 1);
        float back[9];
        assert_int_equal(oly_process_allgather(y, back, sizeof back), OLY_OK);
        for (int i = 0; i < 9; i++)
            assert_true(memcmp(&back[i], &values[i], sizeof(float)) == 0 || (isnan(back[i]) && isnan(values[i])));
    }
    oly_array x = oly_from_host(wide, OLY_FLOAT64, 2, shape); /* uncommitted */
    assert_int_equal(oly_save_csv(check_files_path("x.csv"), x, .delimiter = " "), OLY_OK);
    double wide_back[9];
    x = oly_load_csv(check_files_path("x.csv"), OLY_FLOAT64, NULL, .delimiter = " ");
    assert_int_equal(oly_process_allgather(x, wide_back, sizeof wide_back), OLY_OK);
    assert_memory_equal(wide_back, wide, sizeof wide);
    const int64_t large[] = {INT64_MIN, INT64_MAX, 0, -1, 5}, five = 5;
    x = oly_device_put(oly_from_host(large, OLY_INT64, 1, &five), oly_named(mesh, "i"));
    assert_int_equal(oly_save_csv(check_files_path("x.csv"), x), OLY_OK);
    has_text("x.csv", "-9223372036854775808\n9223372036854775807\n0\n-1\n5\n");
    x = oly_load_csv(check_files_path("x.csv"), OLY_INT64, oly_named(mesh, "(i,j)"));
    check_type(x, "int64[5,1]");
    int64_t back[5];
    assert_int_equal(oly_process_allgather(x, back, sizeof back), OLY_OK);
    assert_memory_equal(back, large, sizeof large);
    assert_string_equal(check_files_names(), "x.csv");
}

static void what_others_write_is_read(void **state)
{
    (void)state;
    oly_sharding split = oly_named(oly_make_mesh("i=8"), "i");
    put("a.csv", "\xef\xbb\xbf# a comment\r\n\r\n 1 ,\t2.5,-3e2 # more\r\n\r\n+4,  .5 , 6.\r\n7,8,9");
    CHECK_NEAR(oly_load_csv(check_files_path("a.csv"), OLY_FLOAT64, split), 1, 2.5, -300, 4, 0.5, 6, 7, 8, 9);
    put("a.txt", "x y\nunits\n  1   2\n\t3 \t 4  \n% no\n");
    CHECK_NEAR(
        oly_load_csv(check_files_path("a.txt"), OLY_INT16, split, .delimiter = " ", .header_lines = 2, .comments = "%"),
        1, 2, 3, 4);
    put("r.txt", "1 \r 2\n3\v4\n"); /* any blanks */
    CHECK_NEAR(oly_load_csv(check_files_path("r.txt"), OLY_INT16, split, .delimiter = " "), 1, 2, 3, 4);
    put("b.csv", "True;0\n1;false\n");
    CHECK_NEAR(oly_load_csv(check_files_path("b.csv"), OLY_BOOL, NULL, .delimiter = ";"), 1, 0, 1, 0);
}

static void errors_have_line_and_column(void **state)
{
    (void)state;
    refused("1,2\n3,4\n# c\n5,x6\n", OLY_FLOAT32, OLY_PARSE, "line 4, column 2: \"x6\" is no float32");
    refused("1,2\n3\n", OLY_FLOAT32, OLY_PARSE, "line 2 has 1 columns, the first row 2");
    refused("1,2\n3,4,5\n", OLY_FLOAT32, OLY_PARSE, "line 2 has 3 columns");
    refused("1,2,\n", OLY_FLOAT32, OLY_PARSE, "line 1, column 3: \"\" is no");
    refused("1\n2.5\n", OLY_INT32, OLY_PARSE, "line 2, column 1: \"2.5\" is no int32");
    refused("255\n256\n", OLY_UINT8, OLY_PARSE, "line 2");
    refused("-1\n", OLY_UINT64, OLY_PARSE, "\"-1\" is no uint64");
    refused("9223372036854775808\n", OLY_INT64, OLY_PARSE, "is no int64");
    refused("1\n70000\n", OLY_FLOAT16, OLY_PARSE, "\"70000\" is no float16");
    refused("0x10\n", OLY_FLOAT32, OLY_PARSE, "\"0x10\" is no float32");
    refused("1e39\n", OLY_FLOAT32, OLY_PARSE, "\"1e39\" is no float32");
    refused("-1e400\n", OLY_FLOAT64, OLY_PARSE, "\"-1e400\" is no float64");
    refused("", OLY_FLOAT32, OLY_IO, "no line with numbers");
    refused("# only this\n\n", OLY_FLOAT32, OLY_IO, "no line with numbers");
    refused("1\n", OLY_COMPLEX64, OLY_DTYPE, "oly_real");
    oly_array x = oly_arange(4, OLY_INT32);
    CHECK_FAILS(oly_save_csv(check_files_path("x.csv"), x, .delimiter = "ab"), OLY_INVALID, "delimiter");
    CHECK_FAILS(oly_save_csv(check_files_path("x.csv"), x, .delimiter = "-"), OLY_INVALID, "delimiter");
    CHECK_FAILS(oly_save_csv(check_files_path("x.csv"), oly_full(1, OLY_INT32)), OLY_SHAPE, "rows and columns");
    CHECK_FAILS(oly_save_csv(check_files_path("no/x.csv"), x), OLY_IO, "No such file");
    int last = oly_process_count() - 1;
    faulty_storage_begin(&(faulty_disk){.calls = FAULTY_SYNC, .fail_at = oly_process_index() == last, .error = ENOSPC});
    CHECK_FAILS(oly_save_csv(check_files_path("x.csv"), x), OLY_IO, "No space left");
    faulty_storage_end();
    assert_string_equal(check_files_names(), "wrong.csv");
}

/* Several pieces, lines of different lengths, one that is longer than a piece. */
static void large_tables(void **state)
{
    (void)state;
    enum { ROWS = 150000 };
    if (oly_process_index() == 0) {
        FILE *file = fopen(check_files_path("large.csv"), "w");
        for (int k = 0; k < ROWS; k++) {
            fprintf(file, k % 7 != 3 ? "%d,%d\n" : "%d,%d,\n", k, -2 * k);
        }
        fclose(file);
    }
    oly_sync("large");
    oly_sharding split = oly_named(oly_make_mesh("i=4, j=2"), "i, j");
    assert_null(oly_load_csv(check_files_path("large.csv"), OLY_INT32, split));
    CHECK_FAILS(oly_last_status(), OLY_PARSE, "columns");
    if (oly_process_index() == 0) {
        FILE *file = fopen(check_files_path("large.csv"), "w");
        for (int k = 0; k < ROWS; k++) {
            fprintf(file, k % 7 ? "%d,%d\n" : "%d,      %d   \n", k, -2 * k);
            if (k == ROWS / 3)
                fprintf(file, "#%*s\n", 1500000, "a long comment");
        }
        fclose(file);
    }
    oly_sync("large again");
    oly_array x = oly_load_csv(check_files_path("large.csv"), OLY_INT64, split);
    check_type(x, "int64[150000,2]");
    assert_float_equal(oly_item(oly_sum(x)), -(double)ROWS * (ROWS - 1) / 2, 0);
    OLY_FOR_EACH_SHARD(s, x)
    for (int64_t i = 0; i < s.extent[0]; i += 1009)
        assert_int_equal(((const int64_t *)s.memory)[i], (s.start[0] + i) * (s.start[1] ? -2 : 1));
    assert_int_equal(oly_save_csv(check_files_path("back.csv"), x), OLY_OK);
    x = oly_load_csv(check_files_path("back.csv"), OLY_FLOAT64, NULL);
    assert_float_equal(oly_item(oly_sum(x)), -(double)ROWS * (ROWS - 1) / 2, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, check_files_set_up, check_files_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tables_come_back),
        TEST(bytes_0_are_refused),
        TEST(what_others_write_is_read),
        TEST(errors_have_line_and_column),
        TEST(large_tables),
    };
    return CHECK_MAIN(tests);
}
