/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Several arrays in one .npz file: saved and loaded with any sharding; NumPy's, stored and deflated; damaged ones are
 * refused; a failure leaves nothing. */
#include "check_files.h"
#include "check_session.h"
#include "faulty_storage.h"
#include "file/zip.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void check_sum(oly_array x, const char *type, double sum)
{
    check_type(x, type);
    assert_float_equal(oly_item(oly_sum(x)), sum, 0);
}

static void arrays_come_back(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("i=4, j=2");
    oly_array a = oly_device_put(oly_reshape(oly_arange(63, OLY_FLOAT32), 9, 7), oly_named(mesh, "i, j"));
    oly_array b = oly_device_put(oly_arange(5, OLY_INT64), oly_named(mesh, "j")), c = oly_full(7, OLY_UINT8, 2, 2);
    assert_int_equal(oly_save_npz(check_files_path("x.npz"), OLY_NAMES("a", "long name", "c/d"), OLY_IN(a, b, c)),
                     OLY_OK);
    char names[64];
    assert_int_equal(oly_npz_names(check_files_path("x.npz"), names, sizeof names), 17);
    assert_string_equal(names, "a, long name, c/d");
    oly_array x = NULL, y = NULL, z = NULL;
    oly_sharding shardings[] = {oly_named(mesh, "None, i"), NULL, oly_named(mesh, "(i,j)")};
    assert_int_equal(oly_load_npz(check_files_path("x.npz"), OLY_NAMES("c/d", "long name", "a"), OLY_OUT(z, y, x),
                                  .shardings = shardings),
                     OLY_OK);
    check_sum(x, "float32[9,7]", 63 * 62 / 2);
    check_sum(y, "int64[5]", 10);
    check_sum(z, "uint8[2,2]", 28);
    assert_true(oly_is_committed(x) && !oly_is_committed(y));
    assert_int_equal(oly_load_npz(check_files_path("x.npz"), OLY_NAMES("a.npy"), OLY_OUT(x)), OLY_OK);
    assert_int_equal(oly_save_npz(check_files_path("none.npz"), 0, NULL, 0, NULL), OLY_OK);
    assert_int_equal(oly_npz_names(check_files_path("none.npz"), names, sizeof names), 0);
    CHECK_FAILS(oly_load_npz(check_files_path("x.npz"), OLY_NAMES("b"), OLY_OUT(x)), OLY_INVALID,
                "has no array \"b\"; it has a, long name, c/d");
    assert_null(x);
    CHECK_FAILS(oly_save_npz(check_files_path("y.npz"), OLY_NAMES("a", "a"), OLY_IN(a, b)), OLY_INVALID, "two arrays");
    CHECK_FAILS(oly_save_npz(check_files_path("y.npz"), OLY_NAMES("a"), OLY_IN(a, b)), OLY_INVALID,
                "1 names and 2 arrays");
    assert_string_equal(check_files_names(), "none.npz x.npz");
}

static void numpys_files_are_read(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("i=4, j=2");
    static const char *const files[] = {"tests/files/data/stored.npz", "tests/files/data/deflated.npz"};
    static const char *const specs[] = {"i, j", "None, i", "", "(j,i)"};
    for (int k = 0; k<8; k += oly_process_count()> 2 ? 3 : 1)
        OLY_SCOPE
        {
            oly_array a = NULL, b = NULL, c = NULL, empty = NULL;
            oly_sharding s = oly_named(mesh, specs[k / 2]), shardings[] = {s, s, k < 4 ? NULL : oly_named(mesh, ""), s};
            assert_int_equal(oly_load_npz(files[k % 2], OLY_NAMES("a", "b", "c", "empty"), OLY_OUT(a, b, c, empty),
                                          .shardings = shardings),
                             OLY_OK);
            check_sum(a, "float32[5,6]", 30 * 29 / 8.0);
            double values[12];
            for (int i = 0; i < 12; i++)
                values[i] = i;
            check_near(b, 12, values);
            check_sum(empty, "uint16[0,3]", 0);
            check_type(c, "complex128[]");
            CHECK_FAILS(oly_load_npz(files[k % 2], OLY_NAMES("texts"), OLY_OUT(a)), OLY_DTYPE, "texts");
        }
}

static char image[8192];

static size_t read_image(const char *path)
{
    int file = open(path, O_RDONLY);
    ssize_t n = read(file, image, sizeof image);
    close(file);
    assert_in_range(n, 100, sizeof image - 1);
    return (size_t)n;
}

static void put(const char *name, size_t n)
{
    if (oly_process_index() == 0) {
        int file = open(check_files_path(name), O_WRONLY | O_CREAT | O_TRUNC, 0666);
        assert_int_equal(write(file, image, n), n);
        close(file);
    }
    assert_int_equal(oly_sync(name), OLY_OK);
}

/* Every byte that is changed is noticed by the checksum or a check, or does not matter (dates, permissions, ...). */
static void damaged_files_are_refused(void **state)
{
    (void)state;
    static const char *const files[] = {"tests/files/data/stored.npz", "tests/files/data/deflated.npz"};
    int wrong = 0, refused = 0, step = oly_process_count() == 1 ? 7 : 97;
    for (int f = 0; f < 2; f++) {
        size_t n = read_image(files[f]);
        for (size_t at = 0; at < n; at += (size_t)step) {
            image[at] ^= 0x55;
            put("damaged.npz", n);
            image[at] ^= 0x55;
            oly_array a = NULL;
            if (oly_load_npz(check_files_path("damaged.npz"), OLY_NAMES("a"), OLY_OUT(a)) != OLY_OK)
                refused++;
            else
                wrong += oly_item(oly_sum(a)) != 30 * 29 / 8.0;
            oly_clear_error();
        }
        for (size_t length = 0; length < n; length += n / (oly_process_count() == 1 ? 9 : 2)) {
            put("damaged.npz", length);
            oly_array a = NULL;
            CHECK_FAILS(oly_load_npz(check_files_path("damaged.npz"), OLY_NAMES("a"), OLY_OUT(a)), OLY_IO, "damaged");
        }
    }
    assert_int_equal(wrong, 0);
    assert_true(refused > 5);
}

static void failures_leave_nothing(void **state)
{
    (void)state;
    int last = oly_process_count() - 1;
    oly_array x = oly_device_put(oly_arange(400, OLY_FLOAT32), oly_named(oly_make_mesh("i=8"), "i"));
    /* First: the calls that are counted next find the folder known (leftovers.h). */
    assert_int_equal(oly_save_npz(check_files_path("y.npz"), OLY_NAMES("x"), OLY_IN(oly_arange(3, OLY_INT32))), OLY_OK);
    faulty_storage_begin(&(faulty_disk){.calls = FAULTY_ANY});
    assert_int_equal(oly_save_npz(check_files_path("x.npz"), OLY_NAMES("x"), OLY_IN(x)), OLY_OK);
    long calls = faulty_storage_calls();
    bool renames = oly_process_index() == 0;
    for (long k = 1; k < 6 + (last == 0 ? calls - 6 : 0); k++) {
        faulty_storage_begin(&(faulty_disk){.calls = FAULTY_ANY,
                                            .fail_at = oly_process_index() == last && k <= calls - renames ? k : 0,
                                            .error = ENOSPC});
        CHECK_FAILS(oly_save_npz(check_files_path("y.npz"), OLY_NAMES("x"), OLY_IN(x)), OLY_IO, "No space left");
        faulty_storage_end();
        assert_string_equal(check_files_names(), "x.npz y.npz");
        oly_array y = NULL;
        assert_int_equal(oly_load_npz(check_files_path("y.npz"), OLY_NAMES("x"), OLY_OUT(y)), OLY_OK);
        check_sum(y, "int32[3]", 3);
    }
}

/* Records of sizes and places beyond 4 GiB. */
static void zip64(void **state)
{
    (void)state;
    oly_zip_member members[] = {
        {.name = "a.npy", .size = 12, .packed = 12, .crc = 7, .header = 0},
        {.name = "large.npy", .size = INT64_C(5) << 30, .packed = INT64_C(5) << 30, .header = 53},
        {.name = "b.npy", .size = 1, .packed = 1, .header = (INT64_C(5) << 30) + 112}};
    oly_zip zip = {.n = 3, .member = members, .directory = (INT64_C(5) << 30) + 148}, again;
    unsigned char bytes[512];
    size_t n = oly_zip_write_directory(&zip, bytes);
    assert_int_equal(n, oly_zip_write_directory(&zip, NULL));
    int64_t begin, length, count;
    assert_int_equal(oly_zip_find(bytes, n, zip.directory + (int64_t)n, "x", &begin, &length, &count), OLY_OK);
    assert_int_equal(begin, zip.directory);
    assert_int_equal(count, 3);
    assert_int_equal(oly_zip_parse(bytes, (size_t)length, begin, count, "x", &again), OLY_OK);
    for (int k = 0; k < 3; k++) {
        assert_string_equal(again.member[k].name, members[k].name);
        assert_int_equal(again.member[k].size, members[k].size);
        assert_int_equal(again.member[k].header, members[k].header);
    }
    oly_zip_free(&again);
    assert_int_equal(oly_zip_write_header(&members[1], bytes), 30 + 9 + 20);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, check_files_set_up, check_files_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(arrays_come_back),
        TEST(numpys_files_are_read),
        TEST(damaged_files_are_refused),
        TEST(failures_leave_nothing),
        TEST(zip64),
    };
    return CHECK_MAIN(tests);
}
