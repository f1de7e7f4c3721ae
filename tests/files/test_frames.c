/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Pictures of sharded matrices: every pixel, on any sharding; orientation, ranges, colours, the bar; what fails fails
 * on all ranks and leaves nothing. Read back by libpng. */
#include "check.h"
#include "check_folder.h"
#include "core/error.h"
#include "faulty_storage.h"
#include <errno.h>
#include <math.h>
#include <olympus.h>
#include <png.h>
#include <unistd.h>

/* -- reading ------------------------------------------------------------------------------------------------------- */

typedef struct image {
    int width, height;
    unsigned char *rgb;
} image;

static image read_image(const char *path)
{
    png_image png = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_file(&png, path))
        fail_msg("%s: %s", path, png.message);
    png.format = PNG_FORMAT_RGB;
    image i = {(int)png.width, (int)png.height, malloc(PNG_IMAGE_SIZE(png))};
    if (!png_image_finish_read(&png, NULL, i.rgb, 0, NULL))
        fail_msg("%s: %s", path, png.message);
    return i;
}

static const unsigned char *pixel(const image *i, int y, int x)
{
    return i->rgb + 3 * (y * i->width + x);
}

static void check_pixel(const image *i, int y, int x, int red, int green, int blue)
{
    const unsigned char *p = pixel(i, y, x);
    if (abs(p[0] - red) > 1 || abs(p[1] - green) > 1 || abs(p[2] - blue) > 1)
        fail_msg("pixel (%d, %d) is (%d, %d, %d) instead of (%d, %d, %d)", y, x, p[0], p[1], p[2], red, green, blue);
}

/* -- matrices ------------------------------------------------------------------------------------------------------ */

static double value_at(int64_t i, int64_t j)
{
    return sin(0.1 * (double)(i * 3 + j)) + 0.01 * (double)i;
}

static oly_array matrix(int64_t rows, int64_t columns, oly_dtype dtype, const char *mesh, const char *spec)
{
    double *data = malloc(sizeof *data * (size_t)(rows * columns));
    for (int64_t k = 0; k < rows * columns; k++)
        data[k] = value_at(k / columns, k % columns);
    oly_array x = oly_from_host(data, OLY_FLOAT64, 2, (int64_t[]){rows, columns});
    free(data);
    return oly_device_put(oly_astype(x, dtype), oly_named(oly_make_mesh(mesh), spec));
}

static oly_array numbers(int64_t rows, int64_t columns)
{
    oly_array x = oly_reshape(oly_arange(rows * columns, OLY_FLOAT32), rows, columns);
    return oly_device_put(x, oly_named(oly_make_mesh("i=4, j=2"), "i, j"));
}

/* -- tests --------------------------------------------------------------------------------------------------------- */

static void every_element_is_a_pixel(void **state)
{
    (void)state;
    const char *path = check_path("a.png");
    for (int lower = 0; lower < 2; lower++) {
        assert_int_equal(oly_write_frame(path, numbers(3, 5), .colours = "grey", .scale = 1, .low = 0, .high = 14,
                                         .origin = lower ? "lower" : "upper"),
                         OLY_OK);
        image got = read_image(path);
        assert_int_equal(got.height, 3);
        assert_int_equal(got.width, 5);
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 5; j++) {
                int grey = (int)lround(255 * (5. * i + j) / 14);
                check_pixel(&got, lower ? 2 - i : i, j, grey, grey, grey);
            }
        free(got.rgb);
        oly_sync("read");
    }
}

static void check_means(const image *got, int64_t rows, int64_t columns)
{
    for (int i = 0; i < got->height; i++)
        for (int j = 0; j < got->width; j++) {
            int64_t top = i * rows / got->height, bottom = (i + 1) * rows / got->height;
            int64_t left = j * columns / got->width, right = (j + 1) * columns / got->width;
            double sum = 0;
            for (int64_t y = top; y < bottom; y++)
                for (int64_t x = left; x < right; x++)
                    sum += value_at(y, x);
            double mean = sum / (double)((bottom - top) * (right - left));
            int grey = (int)lround(255 * fmin(1, fmax(0, (mean + 1) / 4)));
            check_pixel(got, i, j, grey, grey, grey);
        }
}

static void large_matrices_are_averaged_on_any_sharding(void **state)
{
    (void)state;
    static const char *const meshes[][2] = {
        {"x=8", "x"},         {"x=8", "None, x"},    {"i=4, j=2", "i, j"},
        {"i=4, j=2", "j, i"}, {"i=4, j=2", "(j,i)"}, {"i=2, j=4", "None, i"},
        {"x=8", ""},          {"x=1", ""},           {"x=3", "x"},
    };
    unsigned char *first = NULL;
    for (size_t k = 0; k < sizeof meshes / sizeof meshes[0]; k++)
        OLY_SCOPE
        {
            const char *path = check_path("mean.png");
            oly_array x = matrix(101, 67, k % 2 ? OLY_FLOAT64 : OLY_FLOAT32, meshes[k][0], meshes[k][1]);
            assert_int_equal(oly_write_frame(path, x, .colours = "grey", .largest = 32, .low = -1, .high = 3), OLY_OK);
            oly_sync("written");
            image got = read_image(path);
            assert_int_equal(got.height, 32);
            assert_int_equal(got.width, 21);
            check_means(&got, 101, 67);
            free(first);
            first = got.rgb;
            oly_sync("read");
        }
    free(first);
}

static void other_types(void **state)
{
    (void)state;
    static const oly_dtype types[] = {OLY_INT16, OLY_UINT8, OLY_FLOAT16, OLY_BOOL, OLY_INT64};
    for (int k = 0; k < 5; k++) {
        oly_array x = oly_astype(oly_mod(numbers(8, 8), 2), types[k]);
        const char *path = check_path("types.png");
        assert_int_equal(oly_write_frame(path, x, .colours = "grey", .scale = 2), OLY_OK);
        oly_sync("written");
        image got = read_image(path);
        check_pixel(&got, 0, 0, 0, 0, 0);
        check_pixel(&got, 0, 2, 255, 255, 255);
        assert_int_equal(got.width, 16);
        free(got.rgb);
        oly_sync("read");
    }
}

/* Eight elements in a column: the range comes from the finite ones. */
static image column_of(const char *colours, const double *value)
{
    const char *path = check_path("column.png");
    oly_array x = oly_from_host(value, OLY_FLOAT64, 2, (int64_t[]){8, 1});
    x = oly_device_put(x, oly_named(oly_make_mesh("x=8"), "x"));
    assert_int_equal(oly_write_frame(path, x, .colours = colours, .scale = 1), OLY_OK);
    oly_sync("written");
    image got = read_image(path);
    oly_sync("read");
    return got;
}

static void what_is_not_finite_has_its_colour(void **state)
{
    (void)state;
    const double value[8] = {-2, NAN, INFINITY, -INFINITY, 0, 2, 1, -1},
                 none[8] = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, INFINITY};
    const double same[8] = {5, 5, 5, 5, 5, 5, 5, 5};
    image grey = column_of("grey", value), magma = column_of("magma", value), empty = column_of("grey", none);
    image constant = column_of("grey", same), cool = column_of("coolwarm", value),
          viridis = column_of("viridis", value);
    check_pixel(&grey, 0, 0, 0, 0, 0);
    check_pixel(&grey, 1, 0, 255, 0, 0);
    check_pixel(&grey, 2, 0, 255, 255, 255);
    check_pixel(&grey, 3, 0, 0, 0, 0);
    check_pixel(&grey, 4, 0, 128, 128, 128);
    check_pixel(&grey, 5, 0, 255, 255, 255);
    check_pixel(&magma, 1, 0, 128, 128, 128);
    check_pixel(&magma, 5, 0, 252, 253, 191);
    check_pixel(&cool, 4, 0, 221, 221, 221);
    check_pixel(&viridis, 0, 0, 68, 1, 84);
    check_pixel(&viridis, 5, 0, 253, 231, 37);
    check_pixel(&empty, 0, 0, 255, 0, 0);
    check_pixel(&empty, 7, 0, 255, 255, 255);
    check_pixel(&constant, 3, 0, 128, 128, 128);
    image *all[] = {&grey, &magma, &empty, &constant, &cool, &viridis};
    for (int k = 0; k < 6; k++)
        free(all[k]->rgb);
}

static void frames_with_a_bar_have_one_size(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        double factor = k == 0 ? 1 : k == 1 ? -1.2345e-7 : 1e12;
        oly_array x = oly_mul(matrix(20, 30, OLY_FLOAT64, "i=4, j=2", "i, j"), factor);
        assert_int_equal(oly_write_frame(check_path("bar-%03d.png"), x, .number = k, .bar = true, .colours = "grey"),
                         OLY_OK);
        oly_sync("written");
        char name[32];
        snprintf(name, sizeof name, "bar-%03d.png", k);
        image got = read_image(check_path(name));
        assert_int_equal(got.height, 20 * 13);
        assert_int_equal(got.width, 30 * 13 + 8 + 16 + 8 + 60);
        int bar = 30 * 13 + 8, dark = 0;
        check_pixel(&got, 0, bar, 255, 255, 255);
        check_pixel(&got, 259, bar + 15, 0, 0, 0);
        for (int y = 0; y < got.height; y++)
            for (int c = bar + 24; c < got.width; c++)
                dark += pixel(&got, y, c)[0] == 0;
        assert_in_range(dark, 5 * 10, 5 * 10 * 20);
        free(got.rgb);
    }
}

static void names_may_have_a_number_and_percents(void **state)
{
    (void)state;
    oly_array x = numbers(2, 2);
    assert_int_equal(oly_write_frame(check_path("100%%-%d-x.png"), x, .number = 42), OLY_OK);
    oly_sync("written");
    assert_int_equal(access(check_path("100%-42-x.png"), R_OK), 0);
    static const char *const bad[] = {"a%s.png", "%d%d.png", "100%", "%-3d.png", "%99d.png"};
    for (int k = 0; k < 5; k++) {
        assert_int_equal(oly_write_frame(check_path(bad[k]), x), OLY_PARSE);
        assert_non_null(strstr(oly_last_error(), "frame-%05d.png"));
        oly_clear_error();
    }
}

static void what_cannot_be_a_picture_is_refused(void **state)
{
    (void)state;
    const char *path = check_path("none.png");
    oly_array x = numbers(4, 4);
    CHECK_FAILS(oly_write_frame(NULL, x), OLY_INVALID, "path is NULL");
    CHECK_FAILS(oly_write_frame(path, oly_ones(OLY_FLOAT32, 3)), OLY_SHAPE, "only a matrix");
    CHECK_FAILS(oly_write_frame(path, oly_ones(OLY_FLOAT32, 3, 0)), OLY_SHAPE, "no pixels");
    CHECK_FAILS(oly_write_frame(path, oly_astype(x, OLY_COMPLEX64)), OLY_DTYPE, "oly_abs");
    CHECK_FAILS(oly_write_frame(path, x, .colours = "jet"), OLY_INVALID, "viridis");
    CHECK_FAILS(oly_write_frame(path, x, .origin = "left"), OLY_INVALID, "lower");
    CHECK_FAILS(oly_write_frame(path, x, .low = 1, .high = -1), OLY_INVALID, "less than");
    CHECK_FAILS(oly_write_frame(path, x, .low = 1, .high = INFINITY), OLY_INVALID, "finite");
    CHECK_FAILS(oly_write_frame(path, x, .number = -1), OLY_INVALID, "number");
    CHECK_FAILS(oly_write_frame(path, x, .largest = 1 << 20), OLY_INVALID, "pixels");
    CHECK_FAILS(oly_write_frame(check_path("no/such/folder.png"), x), OLY_IO, "folder.png: No such file");
    CHECK_FAILS(oly_write_frame("/dev/null", x), OLY_IO, "/dev/null");
    oly_sync("all refused");
    assert_int_equal(check_files_there(), 0);
}

static void a_failed_write_leaves_nothing(void **state)
{
    (void)state;
    oly_array x = numbers(40, 40);
    for (long k = 1; k < 20; k++) {
        faulty_storage_begin(
            &(faulty_disk){.calls = FAULTY_CHANGES | FAULTY_OPEN | FAULTY_CLOSE, .fail_at = k, .error = ENOSPC});
        oly_status st = oly_write_frame(check_path("lost.png"), x);
        faulty_storage_end();
        oly_sync("tried");
        if (st == OLY_OK) {
            assert_int_equal(check_files_there(), 1);
            assert_true(k > 4);
            return;
        }
        assert_int_equal(st, OLY_IO);
        oly_clear_error();
        assert_int_equal(check_files_there(), 0);
        oly_sync("looked");
    }
    fail_msg("it never succeeds");
}

static void without_memory_nothing_is_left(void **state)
{
    (void)state;
    if (oly_process_count() > 1)
        skip();
    oly_array x = numbers(40, 40);
    int failures = 0;
    for (long k = 0;; k++) {
        oly_fail_allocation(k);
        oly_status st = oly_write_frame(check_path("lost.png"), x, .bar = true);
        oly_fail_allocation(-1);
        oly_clear_error();
        if (st == OLY_OK)
            break;
        assert_int_equal(st, OLY_MEMORY);
        assert_int_equal(check_files_there(), 0);
        failures++;
    }
    assert_true(failures > 5);
    assert_int_equal(check_files_there(), 1);
}

static void arrays_on_some_ranks_and_uncommitted_ones(void **state)
{
    (void)state;
    oly_array few = oly_device_put(oly_reshape(oly_arange(12, OLY_FLOAT32), 3, 4), oly_named(oly_make_mesh("x=1"), ""));
    assert_int_equal(oly_write_frame(check_path("few.png"), few), OLY_OK);
    CHECK_FAILS(oly_write_frame(check_path("no/few.png"), few), OLY_IO, "few.png: No such file");
    oly_array own = oly_reshape(oly_arange(12, OLY_FLOAT32), 3, 4);
    assert_int_equal(oly_write_frame(check_path("own.png"), own), OLY_OK);
    CHECK_FAILS(oly_write_frame(check_path("no/own.png"), own), OLY_IO, "own.png: No such file");
    oly_sync("written");
    assert_int_equal(check_files_there(), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_IN_FOLDER(every_element_is_a_pixel),
        CHECK_IN_FOLDER(large_matrices_are_averaged_on_any_sharding),
        CHECK_IN_FOLDER(other_types),
        CHECK_IN_FOLDER(what_is_not_finite_has_its_colour),
        CHECK_IN_FOLDER(frames_with_a_bar_have_one_size),
        CHECK_IN_FOLDER(names_may_have_a_number_and_percents),
        CHECK_IN_FOLDER(what_cannot_be_a_picture_is_refused),
        CHECK_IN_FOLDER(a_failed_write_leaves_nothing),
        CHECK_IN_FOLDER(without_memory_nothing_is_left),
        CHECK_LAST_FOLDER(arrays_on_some_ranks_and_uncommitted_ones),
    };
    return CHECK_MAIN(tests);
}
