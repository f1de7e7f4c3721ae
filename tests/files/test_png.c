/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Pictures of matrices (oly_write_png): sizes, colours, averages, and that nothing but a regular file is replaced,
 * and that only by a complete picture. */
#include "check_session.h"
#include <dirent.h>
#include <math.h>
#include <png.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int start(void **state)
{
    int status = check_open(state);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    return status;
}

static oly_status written(const char *path, int64_t height, int64_t width, const float *values, double low, double high)
{
    return oly_write_png(path, oly_from_host(values, OLY_FLOAT32, OLY_EXTENTS(height, width)), low, high);
}

static void expect_failure(oly_status status, oly_status wanted, const char *text)
{
    assert_int_equal(status, wanted);
    if (!strstr(oly_last_error(), text))
        fail_msg("no \"%s\" in: %s", text, oly_last_error());
    oly_clear_error();
}

typedef struct image {
    int height, width;
    unsigned char *rgb;
} image;

static char folder[] = "/tmp/test_show.XXXXXX";
static char picture_path[64], temporary_path[64];

static void make_folder(void)
{
    if (!picture_path[0]) {
        assert_non_null(mkdtemp(folder));
        snprintf(picture_path, sizeof picture_path, "%s/a.png", folder);
        snprintf(temporary_path, sizeof temporary_path, "%s/a.png.tmp", folder);
    }
}

static int entries_of(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* Reads the picture with libpng and removes it. */
static image read_picture(void)
{
    png_image png = {.version = PNG_IMAGE_VERSION};
    assert_int_not_equal(png_image_begin_read_from_file(&png, picture_path), 0);
    png.format = PNG_FORMAT_RGB;
    image i = {.height = (int)png.height, .width = (int)png.width, .rgb = malloc(PNG_IMAGE_SIZE(png))};
    assert_non_null(i.rgb);
    assert_int_not_equal(png_image_finish_read(&png, NULL, i.rgb, 0, NULL), 0);
    assert_int_equal(unlink(picture_path), 0);
    assert_int_equal(entries_of(folder), 0); /* nothing else is left */
    return i;
}

static const unsigned char *pixel(const image *i, int row, int column)
{
    return i->rgb + 3 * ((size_t)row * (size_t)i->width + (size_t)column);
}

static double lightness(const unsigned char *rgb)
{
    return 0.2126 * pow(rgb[0] / 255.0, 2.2) + 0.7152 * pow(rgb[1] / 255.0, 2.2) + 0.0722 * pow(rgb[2] / 255.0, 2.2);
}

static void small_matrices_are_enlarged(void **state)
{
    (void)state;
    make_folder();
    const float values[6] = {0, 1, NAN, -5, 7, 0.5f};
    assert_int_equal(written(picture_path, 2, 3, values, 0, 1), OLY_OK);
    image i = read_picture();
    assert_int_equal(i.height, 256);
    assert_int_equal(i.width, 384);
    for (int row = 0; row < i.height; row++)
        for (int column = 0; column < i.width; column++)
            assert_memory_equal(pixel(&i, row, column), pixel(&i, row / 128 * 128, column / 128 * 128), 3);
    const unsigned char *low = pixel(&i, 0, 0), *high = pixel(&i, 0, 128), *middle = pixel(&i, 128, 256);
    assert_memory_equal(pixel(&i, 0, 256), "\x80\x80\x80", 3);
    assert_memory_equal(pixel(&i, 128, 0), low, 3);    /* below the range */
    assert_memory_equal(pixel(&i, 128, 128), high, 3); /* above it */
    assert_true(lightness(low) < 0.01 && lightness(high) > 0.9);
    assert_true(lightness(middle) > lightness(low) + 0.1 && lightness(middle) < lightness(high) - 0.1);
    free(i.rgb);
}

static void larger_values_are_brighter(void **state)
{
    (void)state;
    make_folder();
    float values[1024];
    for (int k = 0; k < 1024; k++)
        values[k] = (float)k;
    assert_int_equal(written(picture_path, 1, 1024, values, 0, 1023), OLY_OK);
    image i = read_picture();
    assert_int_equal(i.height, 1);
    assert_int_equal(i.width, 1024);
    for (int k = 8; k < 1024; k += 8)
        assert_true(lightness(pixel(&i, 0, k)) > lightness(pixel(&i, 0, k - 8)));
    free(i.rgb);
}

static void large_matrices_are_averaged(void **state)
{
    (void)state;
    make_folder();
    const int height = 3000, width = 1501;
    float *values = malloc((size_t)height * (size_t)width * sizeof *values);
    assert_non_null(values);
    for (int row = 0; row < height; row++)
        for (int column = 0; column < width; column++)
            values[row * width + column] = row < height / 2 ? 1 : 0;
    values[0] = NAN;
    assert_int_equal(written(picture_path, height, width, values, 0, 1), OLY_OK);
    image i = read_picture();
    assert_int_equal(i.height, 1024);
    assert_int_equal(i.width, 512);
    assert_memory_equal(pixel(&i, 0, 0), "\x80\x80\x80", 3);
    assert_true(lightness(pixel(&i, 511, 511)) > 0.9);
    assert_true(lightness(pixel(&i, 512, 0)) < 0.01);
    free(i.rgb);
    free(values);
}

static void bad_pictures_are_refused(void **state)
{
    (void)state;
    make_folder();
    const float one = 1;
    expect_failure(written(picture_path, 0, 3, &one, 0, 1), OLY_SHAPE, "has no elements");
    expect_failure(written(picture_path, 1, 1, &one, 1, 1), OLY_INVALID, "from 1 to 1");
    expect_failure(written(picture_path, 1, 1, &one, 0, INFINITY), OLY_INVALID, "from 0 to inf");
    expect_failure(written("/nowhere/at/all.png", 1, 1, &one, 0, 1), OLY_IO, "No such file or directory");
    assert_int_equal(mkdir(picture_path, 0700), 0);
    expect_failure(written(picture_path, 1, 1, &one, 0, 1), OLY_IO, "a folder");
    assert_int_equal(rmdir(picture_path), 0);
    assert_int_equal(mkfifo(picture_path, 0600), 0); /* a device is treated the same */
    expect_failure(written(picture_path, 1, 1, &one, 0, 1), OLY_IO, "no regular file");
    assert_int_equal(unlink(picture_path), 0);
    assert_int_equal(entries_of(folder), 0);
}

/* Links placed where the picture will be, or where it is written first: their targets are not changed. */
static void planted_links_are_not_followed(void **state)
{
    (void)state;
    make_folder();
    const float one = 1;
    char victim[sizeof folder + 20], text[8] = "";
    snprintf(victim, sizeof victim, "%s/victim", folder);
    FILE *file = fopen(victim, "w");
    assert_non_null(file);
    fputs("precious", file);
    fclose(file);
    assert_int_equal(symlink(victim, picture_path), 0);
    expect_failure(written(picture_path, 1, 1, &one, 0, 1), OLY_IO, "no regular file");
    assert_int_equal(unlink(picture_path), 0);
    assert_int_equal(symlink(victim, temporary_path), 0);
    assert_int_equal(written(picture_path, 1, 1, &one, 0, 1), OLY_OK);
    file = fopen(victim, "r");
    assert_int_equal(fread(text, 1, sizeof text, file), 8);
    fclose(file);
    assert_memory_equal(text, "precious", 8);
    struct stat made;
    assert_int_equal(stat(picture_path, &made), 0);
    assert_true(S_ISREG(made.st_mode));
    assert_int_equal(made.st_mode & 0600, 0600);
    assert_int_equal(entries_of(folder), 3);
    assert_int_equal(unlink(victim) | unlink(temporary_path) | unlink(picture_path), 0);
}

/* Incompressible noise, and files limited to 4 kB: as on a full disk. The previous picture stays. */
static void full_disks_leave_the_old_picture(void **state)
{
    (void)state;
    make_folder();
    struct rlimit before, small;
    static float noise[300 * 300];
    for (int k = 0; k < 300 * 300; k++)
        noise[k] = (float)((uint32_t)k * 2654435761u >> 8 & 0xFF);
    assert_int_equal(written(picture_path, 1, 1, noise, 0, 1), OLY_OK);
    getrlimit(RLIMIT_FSIZE, &before);
    small = (struct rlimit){4096, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    oly_status status = written(picture_path, 300, 300, noise, 0, 255);
    setrlimit(RLIMIT_FSIZE, &before);
    expect_failure(status, OLY_IO, "File too large");
    image i = read_picture();
    assert_int_equal(i.width, 256);
    free(i.rgb);
}

static int finish(void **state)
{
    return rmdir(folder) | check_finish(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(small_matrices_are_enlarged, start),
        cmocka_unit_test(larger_values_are_brighter),
        cmocka_unit_test(large_matrices_are_averaged),
        cmocka_unit_test(bad_pictures_are_refused),
        cmocka_unit_test(planted_links_are_not_followed),
        cmocka_unit_test_teardown(full_disks_leave_the_old_picture, finish),
    };
    return CHECK_MAIN(tests);
}
