/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Data sets of HDF5 files on any sharding, series of rows, attributes, XDMF beside them; what fails fails on all ranks and
 * leaves nothing. h5py reads such files, and writes others, in test_programs.sh. */
#include "check.h"
#include "check_folder.h"
#include "core/error.h"
#include "file/hdf5_file.h"
#include <olympus.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static bool built_with_hdf5(void)
{
    bool built = oly_hdf5_need() == OLY_OK;
    oly_drop_message();
    return built;
}

static int start(void **state)
{
    return check_folder_start(state);
}
#define SKIP_WITHOUT_HDF5()                                                                                            \
    if (!built_with_hdf5()) {                                                                                          \
        print_message("built without HDF5\n");                                                                         \
        skip();                                                                                                        \
    }

static oly_array numbers(oly_dtype dtype, int rank, const int64_t *shape, const char *spec)
{
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= shape[d];
    oly_array x = oly_astype(oly_reshape_shape(oly_arange(n, OLY_INT32), rank, shape), dtype);
    return oly_device_put(x, oly_named(oly_make_mesh("i=4, j=2"), spec));
}
#define SHAPE(...)                                                                                                     \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[])                                       \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static void check_equal(oly_array got, oly_array wanted)
{
    if (!got)
        fail_msg("%s", oly_last_error());
    assert_int_equal(oly_rank(got), oly_rank(wanted));
    assert_int_equal(oly_dtype_of(got), oly_dtype_of(wanted));
    oly_array same = oly_device_put(got, oly_sharding_of(wanted));
    assert_true(oly_item(oly_all(oly_eq(same, wanted))) == 1);
}

#define CHECK_WORKS(call)                                                                                              \
    if ((call) != OLY_OK)                                                                                              \
    fail_msg("%s", oly_last_error())

/* -- tests --------------------------------------------------------------------------------------------------------- */

static void without_hdf5_calls_say_how_to_get_it(void **state)
{
    (void)state;
    if (built_with_hdf5())
        skip();
    oly_array x = numbers(OLY_FLOAT32, SHAPE(4, 4), "i");
    CHECK_FAILS(oly_save_hdf5(check_path("a.h5"), "x", x), OLY_IO, "libhdf5-openmpi-dev");
    CHECK_REFUSED(oly_load_hdf5(check_path("a.h5"), "x", NULL), OLY_IO, "HDF5=0");
    CHECK_FAILS(oly_hdf5_set_text(check_path("a.h5"), "", "a", "b"), OLY_IO, "libhdf5");
    assert_int_equal(oly_hdf5_get_numbers(check_path("a.h5"), "", "a", 0, NULL), -1);
    oly_clear_error();
    assert_int_equal(check_files_there(), 0);
}

static void any_sharding_writes_and_reads(void **state)
{
    (void)state;
    SKIP_WITHOUT_HDF5();
    static const char *const shardings[] = {"i, j", "j", "None, i", "(i,j)", ""};
    const char *path = check_path("a.h5");
    for (int k = 0; k < 5; k++)
        OLY_SCOPE
        {
            char name[16];
            snprintf(name, sizeof name, "fields/s%d/x", k);
            oly_array x = numbers(OLY_FLOAT32, SHAPE(11, 7), shardings[k]);
            CHECK_WORKS(oly_save_hdf5(path, name, x));
            check_equal(oly_load_hdf5(path, name, oly_named(oly_make_mesh("i=4, j=2"), shardings[(k + 1) % 5])), x);
        }
    oly_array cube = numbers(OLY_INT64, SHAPE(3, 4, 5), "j, i"), one = numbers(OLY_INT16, SHAPE(13), "i");
    oly_array number = oly_device_put(oly_astype(oly_sum(cube), OLY_FLOAT64), oly_named(oly_make_mesh("x=8"), ""));
    oly_array empty = numbers(OLY_FLOAT32, SHAPE(0, 3), "i");
    CHECK_WORKS(oly_save_hdf5(path, "cube", cube, .chunks = (int64_t[]){2, 2, 5}));
    CHECK_WORKS(oly_save_hdf5(path, "/one", one));
    CHECK_WORKS(oly_save_hdf5(path, "number", number));
    CHECK_WORKS(oly_save_hdf5(path, "empty", empty));
    check_equal(oly_load_hdf5(path, "/cube", NULL), cube);
    check_equal(oly_load_hdf5(path, "one", oly_named(oly_make_mesh("x=3"), "x")), one);
    check_equal(oly_load_hdf5(path, "number", NULL), number);
    assert_int_equal(oly_size(oly_load_hdf5(path, "empty", oly_sharding_of(empty))), 0);
    /* in place of what is there, of the same shape or not */
    CHECK_WORKS(oly_save_hdf5(path, "one", oly_neg(one)));
    CHECK_WORKS(oly_save_hdf5(path, "cube", one));
    check_equal(oly_load_hdf5(path, "one", NULL), oly_neg(one));
    check_equal(oly_load_hdf5(path, "cube", NULL), one);
    CHECK_WORKS(oly_save_hdf5(path, "one", one, .fresh = true));
    CHECK_REFUSED(oly_load_hdf5(path, "cube", NULL), OLY_IO, "no data set named");
    assert_int_equal(check_files_there(), 1);
}

static void every_type(void **state)
{
    (void)state;
    SKIP_WITHOUT_HDF5();
    const char *path = check_path("types.h5");
    for (int k = 0; k < OLY_N_DTYPES; k++)
        OLY_SCOPE
        {
            oly_array x = numbers(OLY_INT32, SHAPE(5, 3), "i");
            x = k == OLY_BOOL ? oly_ne(oly_mod(x, 2), 0) : oly_astype(x, (oly_dtype)k);
            if (k == OLY_FLOAT8_E4M3FN || k == OLY_FLOAT8_E5M2) {
                CHECK_FAILS(oly_save_hdf5(path, oly_dtype_name((oly_dtype)k), x), OLY_DTYPE, "oly_astype");
                continue;
            }
            if (k == OLY_COMPLEX64)
                x = oly_mul(x, oly_complex(1, 0.5));
            CHECK_WORKS(oly_save_hdf5(path, oly_dtype_name((oly_dtype)k), x));
            check_equal(oly_load_hdf5(path, oly_dtype_name((oly_dtype)k), oly_sharding_of(x)), x);
        }
}

static void rows_are_appended_and_dropped_after_a_restart(void **state)
{
    (void)state;
    SKIP_WITHOUT_HDF5();
    const char *path = check_path("run.h5");
    oly_array x = numbers(OLY_FLOAT32, SHAPE(6, 5), "i, j");
    for (int k = 0; k < 4; k++)
        OLY_SCOPE
        {
            oly_array t = oly_device_put(oly_add(oly_zeros(OLY_FLOAT64), 0.5 * k), oly_named(oly_make_mesh("x=8"), ""));
            CHECK_WORKS(oly_save_hdf5(path, "u", oly_add(x, 100 * k), .append = true));
            CHECK_WORKS(oly_save_hdf5(path, "time", t, .append = true));
        }
    oly_array all = oly_load_hdf5(path, "u", oly_named(oly_make_mesh("i=4, j=2"), "None, i, j"));
    assert_int_equal(oly_dim(all, 0), 4);
    check_equal(oly_slice(all, "2"), oly_add(x, 200));
    CHECK_WORKS(oly_save_hdf5(path, "u", oly_add(x, 7), .append = true, .rows = 2));
    all = oly_load_hdf5(path, "u", oly_named(oly_make_mesh("i=4, j=2"), "None, i, j"));
    assert_int_equal(oly_dim(all, 0), 3);
    check_equal(oly_slice(all, "1"), oly_add(x, 100));
    check_equal(oly_slice(all, "2"), oly_add(x, 7));
    CHECK_NEAR(oly_load_hdf5(path, "time", NULL), 0, 0.5, 1, 1.5);
    oly_array other = numbers(OLY_FLOAT32, SHAPE(5, 6), "i, j");
    CHECK_FAILS(oly_save_hdf5(path, "u", other, .append = true), OLY_SHAPE, "another shape");
    CHECK_FAILS(oly_save_hdf5(path, "u", x, .append = true, .rows = 9), OLY_INVALID, ".rows");
    CHECK_FAILS(oly_save_hdf5(path, "v", x, .append = true, .rows = 1), OLY_INVALID, ".rows");
    CHECK_FAILS(oly_save_hdf5(path, "v", x, .rows = 1), OLY_INVALID, ".rows");
    CHECK_WORKS(oly_save_hdf5(path, "fixed", x));
    CHECK_FAILS(oly_save_hdf5(path, "fixed", x, .append = true), OLY_SHAPE, "does not grow");
    check_equal(oly_load_hdf5(path, "fixed", NULL), x);
}

static void attributes(void **state)
{
    (void)state;
    SKIP_WITHOUT_HDF5();
    const char *path = check_path("a.h5");
    char text[8];
    double got[3] = {0};
    oly_array x = numbers(OLY_FLOAT32, SHAPE(6, 5), "i, j");
    CHECK_WORKS(oly_save_hdf5(path, "g/x", x));
    CHECK_WORKS(oly_hdf5_set_text(path, "", "title", "a wave, näher"));
    CHECK_WORKS(oly_hdf5_set_text(path, "g/x", "unit", "m"));
    CHECK_WORKS(oly_hdf5_set_text(path, "g/x", "unit", "mm"));
    CHECK_WORKS(oly_hdf5_set_numbers(path, "g", "spacing", 3, (double[]){0.5, 2, -1}));
    CHECK_WORKS(oly_hdf5_set_numbers(path, "/", "step", 1, (double[]){12}));
    assert_int_equal(oly_hdf5_get_text(path, "", "title", text, sizeof text), (int)strlen("a wave, näher"));
    assert_string_equal(text, "a wave,");
    assert_int_equal(oly_hdf5_get_text(path, "g/x", "unit", text, sizeof text), 2);
    assert_string_equal(text, "mm");
    assert_int_equal(oly_hdf5_get_numbers(path, "g", "spacing", 2, got), 3);
    assert_true(got[0] == 0.5 && got[1] == 2 && got[2] == 0);
    assert_int_equal(oly_hdf5_get_numbers(path, "", "step", 3, got), 1);
    assert_true(got[0] == 12);
    CHECK_FAILS(oly_hdf5_set_text(path, "none", "a", "b"), OLY_IO, "named \"none\"");
    CHECK_FAILS(oly_hdf5_set_text(check_path("none.h5"), "", "a", "b"), OLY_IO, "none.h5");
    CHECK_FAILS(oly_hdf5_set_text(path, "", "", "b"), OLY_INVALID, "empty");
    CHECK_FAILS(oly_hdf5_set_numbers(path, "", "a", 0, got), OLY_INVALID, "1 to 4096");
    assert_int_equal(oly_hdf5_get_numbers(path, "g/x", "unit", 3, got), -1);
    CHECK_FAILS(oly_last_status(), OLY_DTYPE, "no numbers");
    assert_int_equal(oly_hdf5_get_text(path, "g", "spacing", text, sizeof text), -1);
    CHECK_FAILS(oly_last_status(), OLY_DTYPE, "no text");
    assert_int_equal(oly_hdf5_get_text(path, "g", "colour", text, sizeof text), -1);
    CHECK_FAILS(oly_last_status(), OLY_IO, "no attribute named");
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    SKIP_WITHOUT_HDF5();
    const char *path = check_path("none.h5");
    oly_array x = numbers(OLY_FLOAT32, SHAPE(6, 5), "i, j");
    CHECK_FAILS(oly_save_hdf5(NULL, "x", x), OLY_INVALID, "path is NULL");
    CHECK_FAILS(oly_save_hdf5(path, NULL, x), OLY_INVALID, "NULL");
    CHECK_FAILS(oly_save_hdf5(path, "", x), OLY_INVALID, "empty");
    CHECK_FAILS(oly_save_hdf5(path, "a//b", x), OLY_INVALID, "GROUP/NAME");
    CHECK_FAILS(oly_save_hdf5(path, "a/../b", x), OLY_INVALID, "GROUP/NAME");
    CHECK_FAILS(oly_save_hdf5(path, "x", x, .chunks = (int64_t[]){0, 1}), OLY_INVALID, "chunk");
    CHECK_FAILS(oly_save_hdf5(check_path("no/such.h5"), "x", x), OLY_IO, "such.h5");
    CHECK_REFUSED(oly_load_hdf5(path, "x", NULL), OLY_IO, "none.h5");
    assert_int_equal(check_files_there(), 0);
    oly_sync("none");
    if (oly_process_index() == 0) {
        FILE *f = fopen(path, "w");
        fputs("no HDF5", f);
        fclose(f);
    }
    oly_sync("one");
    CHECK_REFUSED(oly_load_hdf5(path, "x", NULL), OLY_IO, "HDF5: ");
    CHECK_FAILS(oly_save_hdf5(path, "x", x), OLY_IO, "HDF5: ");
    CHECK_WORKS(oly_save_hdf5(path, "x", x, .fresh = true));
    CHECK_REFUSED(oly_load_hdf5(path, "x", oly_named(oly_make_mesh("x=2"), "None, None, x")), OLY_SHARDING, "");
    CHECK_REFUSED(oly_load_hdf5(path, "", NULL), OLY_INVALID, "empty");
    CHECK_WORKS(oly_save_hdf5(path, "fields/u", x));
    CHECK_FAILS(oly_save_hdf5(path, "fields", x), OLY_INVALID, "is a group");
    CHECK_FAILS(oly_save_hdf5(path, "fields", x, .append = true), OLY_IO, "is a group");
    CHECK_FAILS(oly_save_hdf5(path, "fields/u/w", x), OLY_INVALID, "is no group");
    CHECK_REFUSED(oly_load_hdf5(path, "fields", NULL), OLY_IO, "fields/NAME");
    oly_array u = oly_load_hdf5(path, "fields/u", NULL);
    assert_non_null(u);
}

static void xdmf_describes_a_series(void **state)
{
    (void)state;
    SKIP_WITHOUT_HDF5();
    const char *path = check_path("run.h5"), *description = check_path("run.xdmf");
    const double spacing[] = {0.5, 0.25};
    char text[8192] = "";
    oly_array x = numbers(OLY_FLOAT32, SHAPE(6, 5), "i, j"), v = numbers(OLY_INT8, SHAPE(6, 5, 3), "i, j");
    for (int k = 0; k < 3; k++)
        CHECK_WORKS(oly_save_hdf5(path, "fields/u", x, .append = true));
    CHECK_WORKS(oly_save_hdf5(path, "v", v));
    CHECK_WORKS(oly_save_xdmf(description, path, "fields/u, v", .spacing = spacing));
    FILE *f = fopen(description, "r");
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    assert_non_null(strstr(text, "<Time Value=\"2\"/>"));
    assert_null(strstr(text, "<Time Value=\"3\"/>"));
    assert_non_null(strstr(text, "Dimensions=\"1 6 5\""));
    assert_non_null(strstr(text, ">1 0.5 0.25</DataItem>"));
    assert_non_null(strstr(text, "2 0 0 1 1 1 1 6 5<"));
    assert_non_null(strstr(text, "Precision=\"1\" Dimensions=\"6 5 3\">run.h5:/v<"));
    oly_sync("read");
    CHECK_FAILS(oly_save_xdmf(description, path, "w"), OLY_IO, "named \"w\"");
    CHECK_FAILS(oly_save_xdmf(description, check_path("no.h5"), "u"), OLY_IO, "no.h5");
    CHECK_FAILS(oly_save_xdmf(check_path("no/a.xdmf"), path, "v"), OLY_IO, "a.xdmf");
    CHECK_FAILS(oly_save_xdmf(description, path, "v", .dimensions = 1), OLY_SHAPE, "does not fit");
    CHECK_FAILS(oly_save_xdmf(description, path, NULL), OLY_INVALID, "names");
    CHECK_FAILS(oly_save_xdmf(description, path, "v", .times = "none"), OLY_IO, "none");
    assert_int_equal(check_files_there(), 2);
}

static void a_full_disk_leaves_nothing(void **state)
{
    (void)state;
    SKIP_WITHOUT_HDF5();
    oly_array small = numbers(OLY_FLOAT32, SHAPE(6, 5), "i, j"),
              large = oly_device_put(oly_ones(OLY_FLOAT64, 512, 512), oly_sharding_of(small));
    const char *path = check_path("full.h5"), *old = check_path("old.h5");
    CHECK_WORKS(oly_save_hdf5(old, "small", small));
    struct rlimit before, limit;
    getrlimit(RLIMIT_FSIZE, &before);
    limit = (struct rlimit){300000, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    oly_status fresh = oly_save_hdf5(path, "x", large);
    bool told = strstr(oly_last_error(), "full.h5") != NULL;
    oly_clear_error();
    oly_status added = oly_save_hdf5(old, "x", large);
    oly_clear_error();
    setrlimit(RLIMIT_FSIZE, &before);
    oly_sync("tried");
    assert_int_equal(fresh, OLY_IO);
    assert_true(told);
    assert_int_equal(added, OLY_IO);
    assert_int_equal(check_files_there(), 1);
    oly_sync("looked");
}

static void arrays_on_some_ranks_and_uncommitted_ones(void **state)
{
    (void)state;
    SKIP_WITHOUT_HDF5();
    oly_array few =
        oly_device_put(oly_reshape(oly_arange(12, OLY_FLOAT32), 3, 4), oly_named(oly_make_mesh("x=2"), "x"));
    CHECK_WORKS(oly_save_hdf5(check_path("few.h5"), "x", few));
    CHECK_FAILS(oly_save_hdf5(check_path("no/few.h5"), "x", few), OLY_IO, "few.h5");
    oly_array got = oly_load_hdf5(check_path("few.h5"), "x", oly_sharding_of(few));
    assert_int_equal(oly_dim(got, 1), 4);
    oly_array own = oly_reshape(oly_arange(12, OLY_FLOAT32), 3, 4);
    CHECK_WORKS(oly_save_hdf5(check_path("own.h5"), "x", own));
    assert_true(oly_item(oly_all(oly_eq(oly_load_hdf5(check_path("own.h5"), "x", NULL), own))) == 1);
    assert_int_equal(check_files_there(), 2);
}

/* -- a file of h5py (read_hdf5.py) ------------------------------------------------------------------------------------ */

static void check_name(const char *path, const char *name, oly_dtype dtype)
{
    oly_array x = numbers(OLY_INT32, SHAPE(11, 7), "i, j");
    x = dtype == OLY_BOOL ? oly_ne(oly_mod(x, 2), 0) : oly_astype(x, dtype);
    check_equal(oly_load_hdf5(path, name, oly_named(oly_make_mesh("i=4, j=2"), "j, i")), x);
}

static const char *foreign;

static void what_h5py_writes_is_read(void **state)
{
    (void)state;
    char text[64];
    double three[3];
    check_name(foreign, "types/i1", OLY_INT8);
    check_name(foreign, "types/u2", OLY_UINT16);
    check_name(foreign, "types/i4", OLY_INT32);
    check_name(foreign, "types/u8", OLY_UINT64);
    check_name(foreign, "types/f4", OLY_FLOAT32);
    check_name(foreign, "types/f8", OLY_FLOAT64);
    check_name(foreign, "types/f2", OLY_FLOAT16);
    check_name(foreign, "types/>i4", OLY_INT32);
    check_name(foreign, "types/>f8", OLY_FLOAT64);
    check_name(foreign, "types/c8", OLY_COMPLEX64);
    check_name(foreign, "types/c16", OLY_COMPLEX128);
    check_name(foreign, "types/?", OLY_BOOL);
    check_name(foreign, "packed", OLY_FLOAT32);
    check_name(foreign, "long", OLY_FLOAT64);
    CHECK_REFUSED(oly_load_hdf5(foreign, "text", NULL), OLY_DTYPE, "neither integers nor floats");
    CHECK_REFUSED(oly_load_hdf5(foreign, "types", NULL), OLY_IO, "is a group, not a data set");
    CHECK_NEAR(oly_load_hdf5(foreign, "number", NULL), 5);
    assert_int_equal(oly_hdf5_get_text(foreign, "", "title", text, sizeof text), 15);
    assert_string_equal(text, "written by h5py");
    assert_int_equal(oly_hdf5_get_numbers(foreign, "", "three", 3, three), 3);
    assert_true(three[0] == 1 && three[2] == 3);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, start, check_folder_finish)
int main(int argc, char **argv)
{
    const struct CMUnitTest of_h5py[] = {CHECK_LAST_FOLDER(what_h5py_writes_is_read)};
    foreign = argv[1];
    if (argc > 1)
        return CHECK_MAIN(of_h5py);
    const struct CMUnitTest tests[] = {
        IN_FOLDER(without_hdf5_calls_say_how_to_get_it),
        IN_FOLDER(any_sharding_writes_and_reads),
        IN_FOLDER(every_type),
        IN_FOLDER(rows_are_appended_and_dropped_after_a_restart),
        IN_FOLDER(attributes),
        IN_FOLDER(what_does_not_fit_is_refused),
        IN_FOLDER(xdmf_describes_a_series),
        IN_FOLDER(a_full_disk_leaves_nothing),
        CHECK_LAST_FOLDER(arrays_on_some_ranks_and_uncommitted_ones),
    };
    return CHECK_MAIN(tests);
}
