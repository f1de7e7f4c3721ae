/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Images of VTK: what is written is read back on any sharding, and byte by byte what the headers say; pieces; series;
 * what fails fails on all ranks and leaves nothing. VTK itself reads such files in test_programs.sh. */
#define _GNU_SOURCE /* memmem */
#include "check.h"
#include "check_folder.h"
#include "core/error.h"
#include "faulty_storage.h"
#include <errno.h>
#include <olympus.h>
#include <unistd.h>

/* -- files --------------------------------------------------------------------------------------------------------- */

/* The bytes of a file, terminated. */
static char *contents(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s is not there", path);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*n + 1);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    bytes[*n] = 0;
    fclose(f);
    return bytes;
}

static void check_text(const char *path, const char *text, bool there)
{
    size_t n;
    char *bytes = contents(path, &n);
    if (!strstr(bytes, text) == there)
        fail_msg("\"%s\" is %sin %s:\n%.900s", text, there ? "not " : "", path, bytes);
    free(bytes);
}

/* Field k of a file lies k * `stride` bytes after its '_', and has the numbers 0, 1, 2, ... of 4 bytes. */
static void check_numbers(const char *path, size_t begin, int count, bool floating)
{
    size_t n;
    char *bytes = contents(path, &n), *mark = memmem(bytes, n, "\n   _", 5);
    assert_non_null(mark);
    uint64_t size;
    memcpy(&size, mark + 5 + begin, sizeof size);
    assert_int_equal(size, 4 * count);
    for (int k = 0; k < count; k++) {
        float f;
        int32_t i;
        memcpy(&f, mark + 13 + begin + 4 * k, sizeof f);
        memcpy(&i, mark + 13 + begin + 4 * k, sizeof i);
        if (floating ? f != (float)k : i != k)
            fail_msg("element %d of %s is %g, %d", k, path, f, i);
    }
    free(bytes);
}

/* -- arrays -------------------------------------------------------------------------------------------------------- */

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
    assert_non_null(got);
    assert_int_equal(oly_rank(got), oly_rank(wanted));
    assert_int_equal(oly_dtype_of(got), oly_dtype_of(wanted));
    oly_array same = oly_device_put(got, oly_sharding_of(wanted));
    assert_true(oly_item(oly_all(oly_eq(same, wanted))) == 1);
}

/* -- tests --------------------------------------------------------------------------------------------------------- */

static void the_last_dimension_is_x(void **state)
{
    (void)state;
    const double origin[] = {10, 20}, spacing[] = {0.5, 0.25};
    oly_array u = numbers(OLY_FLOAT32, SHAPE(11, 7), "i, j"), v = numbers(OLY_INT32, SHAPE(11, 7, 3), "j");
    const char *path = check_path("a.vti");
    assert_int_equal(oly_save_vti(path, "u, velocity", OLY_IN(u, v), .origin = origin, .spacing = spacing, .time = 1.5),
                     OLY_OK);
    check_text(path, "WholeExtent=\"0 6 0 10 0 0\" Origin=\"20 10 0\" Spacing=\"0.25 0.5 1\"", true);
    check_text(path, "<PointData Scalars=\"u\" Vectors=\"velocity\">", true);
    check_text(path, ">1.5</DataArray>", true);
    check_numbers(path, 0, 77, true);
    check_numbers(path, 8 + 77 * 4, 231, false);
    check_equal(oly_load_vti(path, "u", oly_named(oly_make_mesh("x=8"), "x")), u);
    check_equal(oly_load_vti(path, NULL, NULL), u);
    check_equal(oly_load_vti(path, "velocity", oly_named(oly_make_mesh("a=3"), "None, a")), v);
}

static void one_to_three_dimensions_points_and_cells(void **state)
{
    (void)state;
    static const struct {
        int rank;
        int64_t shape[3];
        const char *spec, *points, *cells;
    } grids[] = {
        {1, {13}, "(i,j)", "0 12 0 0 0 0", "0 13 0 0 0 0"},      {1, {1}, "i", "0 0 0 0 0 0", "0 1 0 0 0 0"},
        {2, {1, 5}, "i, j", "0 4 0 0 0 0", "0 5 0 1 0 0"},       {3, {3, 4, 5}, "j, i", "0 4 0 3 0 2", "0 5 0 4 0 3"},
        {3, {2, 1, 1}, "None, i", "0 0 0 0 0 1", "0 1 0 1 0 2"},
    };
    for (size_t k = 0; k < sizeof grids / sizeof grids[0]; k++)
        for (int cells = 0; cells < 2; cells++)
            OLY_SCOPE
            {
                char extent[64];
                const char *path = check_path("grid.vti");
                oly_array x = numbers(k % 2 ? OLY_INT64 : OLY_FLOAT64, grids[k].rank, grids[k].shape, grids[k].spec);
                assert_int_equal(oly_save_vti(path, "x", OLY_IN(x), .cells = cells), OLY_OK);
                snprintf(extent, sizeof extent, "Piece Extent=\"%s\"", cells ? grids[k].cells : grids[k].points);
                check_text(path, extent, true);
                check_equal(oly_load_vti(path, "x", oly_sharding_of(x)), x);
            }
}

static void every_type(void **state)
{
    (void)state;
    static const oly_dtype types[] = {OLY_INT8,   OLY_INT16,  OLY_INT32,  OLY_INT64,   OLY_UINT8,
                                      OLY_UINT16, OLY_UINT32, OLY_UINT64, OLY_FLOAT32, OLY_FLOAT64};
    oly_array all[10];
    for (int k = 0; k < 10; k++)
        all[k] = numbers(types[k], SHAPE(5, 6), "i, j");
    assert_int_equal(oly_save_vti(check_path("types.vti"), "a,b,c,d,e,f,g,h,i,j", 10, all), OLY_OK);
    for (int k = 0; k < 10; k++)
        check_equal(oly_load_vti(check_path("types.vti"), (char[]){(char)('a' + k), 0}, oly_sharding_of(all[k])),
                    all[k]);
    oly_array b = oly_ne(oly_mod(all[2], 2), 0);
    assert_int_equal(oly_save_vti(check_path("bool.vti"), "b <&>\"'", OLY_IN(b)), OLY_OK);
    oly_array got = oly_load_vti(check_path("bool.vti"), "b <&>\"'", oly_sharding_of(b));
    check_equal(got, oly_astype(b, OLY_UINT8));
}

/* The whole again, on other meshes than it was written from. */
static void check_pieces(const char *path, const char *name, oly_array wanted)
{
    const char *const specs[] = {"", "x", "None, x", "x, None"};
    for (int k = 0; k < 4; k++) {
        oly_array got = oly_load_vti(path, name, oly_named(oly_make_mesh("x=8"), specs[k]));
        assert_non_null(got);
        check_equal(got, oly_device_put(wanted, oly_sharding_of(got)));
    }
}

static void pieces_of_points_share_their_borders(void **state)
{
    (void)state;
    oly_array u = numbers(OLY_FLOAT32, SHAPE(9, 7), "i, j"), v = numbers(OLY_FLOAT32, SHAPE(9, 7, 2), "j, i");
    assert_int_equal(oly_save_vti(check_path("p-%d.pvti"), "u, v", OLY_IN(u, v), .number = 3), OLY_OK);
    check_text(check_path("p-3.pvti"), "<Piece Extent=\"0 4 0 3 0 0\" Source=\"p-3_0.vti\"/>", true);
    check_text(check_path("p-3.pvti"), "<Piece Extent=\"4 6 7 8 0 0\" Source=\"p-3_7.vti\"/>", true);
    assert_int_equal(check_files_there(), 9);
    check_pieces(check_path("p-3.pvti"), "u", u);
    check_pieces(check_path("p-3.pvti"), "v", v);
    oly_array some = oly_load_vti(check_path("p-3_1.vti"), "u", oly_named(oly_make_mesh("x=8"), ""));
    check_equal(some, oly_device_put(oly_slice(u, ":4, 4:"), oly_sharding_of(some)));
    some = oly_load_vti(check_path("p-3_0.vti"), "v", oly_named(oly_make_mesh("x=8"), ""));
    check_equal(some, oly_device_put(oly_slice(v, ":4, :5"), oly_sharding_of(some)));
    /* a shard of one row at the end lies in its neighbour's piece */
    u = numbers(OLY_FLOAT32, SHAPE(5, 3), "i");
    assert_int_equal(oly_save_vti(check_path("thin.pvti"), "u", OLY_IN(u)), OLY_OK);
    assert_int_equal(check_files_there(), 9 + 1 + 3);
    check_pieces(check_path("thin.pvti"), NULL, u);
    assert_int_equal(oly_save_vti(check_path("cells.pvti"), "u", OLY_IN(u), .cells = true), OLY_OK);
    assert_int_equal(check_files_there(), 13 + 1 + 4);
    check_pieces(check_path("cells.pvti"), "u", u);
}

/* Writes a file of one process's. */
static void write_text(const char *path, const char *format, const char *name)
{
    oly_sync("before a file");
    if (oly_process_index() == 0) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fprintf(f, format, name);
        fclose(f);
    }
    oly_sync("after it");
}

static void pieces_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const char list[] =
        "<VTKFile type=\"PImageData\"><!-- olympus: 2 dimensions --><PImageData WholeExtent=\"0 5 0 7 0 0\">%s"
        "</PImageData></VTKFile>";
    oly_array u = numbers(OLY_FLOAT32, SHAPE(8, 6), "i, j");
    oly_sharding rows = oly_named(oly_make_mesh("x=8"), "x");
    assert_int_equal(oly_save_vti(check_path("all.vti"), "u", OLY_IN(u)), OLY_OK);
    const char *path = check_path("list.pvti");
    write_text(path, list, "<Piece Extent=\"0 5 0 7 0 0\" Source=\"all.vti\"/>");
    check_pieces(path, "u", u);
    CHECK_REFUSED(oly_load_vti(path, "w", rows), OLY_INVALID, "no array named \"w\"");
    write_text(path, list, "<Piece Extent=\"0 5 0 6 0 0\" Source=\"all.vti\"/>");
    CHECK_REFUSED(oly_load_vti(path, "u", rows), OLY_IO, "");
    write_text(path, list, "<Piece Extent=\"0 5 0 7 0 0\" Source=\"none.vti\"/>");
    CHECK_REFUSED(oly_load_vti(path, "u", rows), OLY_IO, "none.vti");
    write_text(path, list, "<Piece Extent=\"0 5 0 7\" Source=\"all.vti\"/>");
    CHECK_REFUSED(oly_load_vti(path, "u", rows), OLY_IO, "not six numbers");
    write_text(path, list, "");
    CHECK_REFUSED(oly_load_vti(path, "u", rows), OLY_IO, "no pieces");
    write_text(path, "<VTKFile type=\"ImageData\">%s</VTKFile>", "");
    CHECK_REFUSED(oly_load_vti(path, "u", rows), OLY_IO, "(.pvti)");
    CHECK_REFUSED(oly_load_vti(check_path("nowhere.pvti"), "u", rows), OLY_IO, "nowhere.pvti");
    /* a piece of the right size that is elsewhere, and a file of a piece alone */
    assert_int_equal(
        oly_save_vti(check_path("two.pvti"), "u", OLY_IN(oly_device_put(u, oly_named(oly_make_mesh("x=2"), "x")))),
        OLY_OK);
    write_text(
        path, list,
        "<Piece Extent=\"0 5 0 4 0 0\" Source=\"two_1.vti\"/><Piece Extent=\"0 5 4 7 0 0\" Source=\"two_1.vti\"/>");
    CHECK_REFUSED(oly_load_vti(path, "u", rows), OLY_IO, "another extent");
    if (oly_process_index() == 0) {
        size_t n;
        char *text = contents(check_path("all.vti"), &n), *at = strstr(text, "WholeExtent=\"0 5 0 7");
        FILE *file = fopen(check_path("half.vti"), "wb");
        assert_true(at && file);
        at[strlen("WholeExtent=\"0 5 0 ")] = '9';
        assert_int_equal(fwrite(text, 1, n, file), n);
        fclose(file);
        free(text);
    }
    oly_sync("half");
    CHECK_REFUSED(oly_load_vti(check_path("half.vti"), "u", rows), OLY_IO, "only a part of the image");
    /* one of two pieces is missing in the list: its last columns are nowhere */
    assert_int_equal(oly_save_vti(check_path("part.vti"), "u", OLY_IN(oly_device_put(oly_slice(u, ":, :3"), rows))),
                     OLY_OK);
    write_text(path, list, "<Piece Extent=\"0 2 0 7 0 0\" Source=\"part.vti\"/>");
    CHECK_REFUSED(oly_load_vti(path, "u", rows), OLY_IO, "leave out a part");
}

static void a_series_goes_on_after_a_restart(void **state)
{
    (void)state;
    oly_array u = numbers(OLY_FLOAT32, SHAPE(4, 4), "i, j");
    const char *series = check_path("run.pvd");
    for (int k = 0; k < 4; k++)
        assert_int_equal(
            oly_save_vti(check_path("run-%03d.vti"), "u", OLY_IN(u), .number = k, .time = 0.5 * k, .series = series),
            OLY_OK);
    check_text(series, "timestep=\"1.5\" part=\"0\" file=\"run-003.vti\"", true);
    assert_int_equal(
        oly_save_vti(check_path("run-%03d.vti"), "u", OLY_IN(u), .number = 1, .time = 0.5, .series = series), OLY_OK);
    check_text(series, "file=\"run-000.vti\"", true);
    check_text(series, "file=\"run-001.vti\"", true);
    check_text(series, "file=\"run-003.vti\"", false);
    oly_sync("read");
    CHECK_FAILS(oly_save_vti(check_path("x.vti"), "u", OLY_IN(u), .series = check_path("run-000.vti")), OLY_INVALID,
                ".pvd");
    if (oly_process_index() == 0)
        assert_int_equal(rename(check_path("run-000.vti"), check_path("other.pvd")), 0);
    oly_sync("renamed");
    CHECK_FAILS(oly_save_vti(check_path("x.vti"), "u", OLY_IN(u), .series = check_path("other.pvd")), OLY_IO,
                "no collection");
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    const char *path = check_path("none.vti");
    const double zero[] = {1, 0};
    oly_array u = numbers(OLY_FLOAT32, SHAPE(4, 5), "i, j"), w = numbers(OLY_FLOAT32, SHAPE(5, 4), "i, j");
    CHECK_FAILS(oly_save_vti(NULL, "u", OLY_IN(u)), OLY_INVALID, "path is NULL");
    CHECK_FAILS(oly_save_vti(check_path("u.vtk"), "u", OLY_IN(u)), OLY_INVALID, ".pvti");
    CHECK_FAILS(oly_save_vti(path, NULL, OLY_IN(u)), OLY_INVALID, "names");
    CHECK_FAILS(oly_save_vti(path, "u, ", OLY_IN(u, w)), OLY_INVALID, "empty");
    CHECK_FAILS(oly_save_vti(path, "u", OLY_IN(u, u)), OLY_INVALID, "for 2 arrays");
    CHECK_FAILS(oly_save_vti(path, "u, v", OLY_IN(u)), OLY_INVALID, "more than");
    CHECK_FAILS(oly_save_vti(path, "u, u", OLY_IN(u, u)), OLY_INVALID, "two arrays");
    CHECK_FAILS(oly_save_vti(path, "u", 0, &u), OLY_INVALID, "no array");
    CHECK_FAILS(oly_save_vti(path, "u, w", OLY_IN(u, w)), OLY_SHAPE, "float32[5,4]");
    CHECK_FAILS(oly_save_vti(path, "u", OLY_IN(u), .dimensions = 3), OLY_SHAPE, "3 dimensions");
    CHECK_FAILS(oly_save_vti(path, "u", OLY_IN(u), .spacing = zero), OLY_INVALID, "spacing 0");
    CHECK_FAILS(oly_save_vti(path, "u", OLY_IN(oly_astype(u, OLY_COMPLEX64))), OLY_DTYPE, "oly_real");
    CHECK_FAILS(oly_save_vti(path, "u", OLY_IN(oly_astype(u, OLY_BFLOAT16))), OLY_DTYPE, "oly_astype");
    CHECK_FAILS(oly_save_vti(path, "u", OLY_IN(oly_slice(u, ":0"))), OLY_SHAPE, "no elements");
    CHECK_FAILS(oly_save_vti(check_path("no/such.vti"), "u", OLY_IN(u)), OLY_IO, "such.vti");
    CHECK_FAILS(oly_save_vti(check_path("no/such.pvti"), "u", OLY_IN(u)), OLY_IO, "such_0.vti");
    CHECK_FAILS(oly_save_vti(check_path("%s.vti"), "u", OLY_IN(u)), OLY_PARSE, "%");
    assert_int_equal(check_files_there(), 0);
    oly_sync("none");
    CHECK_REFUSED(oly_load_vti(path, "u", NULL), OLY_IO, "none.vti");
    assert_int_equal(oly_save_vti(path, "u", OLY_IN(u)), OLY_OK);
    CHECK_REFUSED(oly_load_vti(path, "v", NULL), OLY_INVALID, "it has u");
    CHECK_REFUSED(oly_load_vti(path, "u", oly_named(oly_make_mesh("x=2"), "None, None, x")), OLY_SHARDING, "");
    oly_sync("loaded");
    if (oly_process_index() == 0) {
        size_t n;
        free(contents(path, &n));
        assert_int_equal(truncate(path, (off_t)n - 60), 0);
    }
    oly_sync("cut");
    CHECK_REFUSED(oly_load_vti(path, "u", NULL), OLY_IO, "truncated");
}

static void a_failed_write_leaves_what_was_there(void **state)
{
    (void)state;
    static const char *const names[] = {"lost.vti", "lost.pvti"};
    oly_array u = numbers(OLY_FLOAT32, SHAPE(16, 16), "i, j");
    for (int form = 0; form < 2; form++)
        for (long k = 1;; k += 1 + k / 4) {
            bool last = oly_process_index() == oly_process_count() - 1;
            faulty_storage_begin(&(faulty_disk){
                .calls = FAULTY_CHANGES | FAULTY_OPEN | FAULTY_CLOSE, .fail_at = last ? k : 0, .error = ENOSPC});
            oly_status st = oly_save_vti(check_path(names[form]), "u", OLY_IN(u));
            faulty_storage_end();
            if (st == OLY_OK) {
                assert_true(k > 2);
                break;
            }
            /* the file has its name already when that cannot be put on the disk */
            int there = strstr(oly_last_error(), "write the folder") && form == 0;
            if (oly_process_count() > 1)
                CHECK_FAILS(st, OLY_IO, "on rank");
            else
                CHECK_FAILS(st, OLY_IO, "No space left");
            assert_int_equal(check_files_there(), form + there);
            oly_sync("looked");
            if (there && oly_process_index() == 0)
                unlink(check_path(names[form]));
            if (k > 300)
                fail_msg("it never succeeds");
        }
    assert_int_equal(check_files_there(), 1 + 1 + 8);
}

static void without_memory_nothing_is_left(void **state)
{
    (void)state;
    if (oly_process_count() > 1)
        skip();
    static const char *const names[] = {"lost.vti", "lost.pvti"};
    oly_array u = numbers(OLY_FLOAT32, SHAPE(6, 6), "i, j");
    for (int form = 0; form < 2; form++) {
        int failures = 0;
        for (long k = 0;; k++) {
            oly_fail_allocation(k);
            oly_status st =
                oly_save_vti(check_path(names[form]), "u", OLY_IN(u), .time = 2, .series = check_path("s.pvd"));
            oly_fail_allocation(-1);
            oly_clear_error();
            if (st == OLY_OK)
                break;
            assert_int_equal(st, OLY_MEMORY);
            failures++;
        }
        assert_true(failures > 5);
    }
    int failures = 0;
    for (long k = 0;; k++) {
        oly_fail_allocation(k);
        oly_array x = oly_load_vti(check_path("lost.vti"), "u", NULL);
        oly_fail_allocation(-1);
        if (x)
            break;
        assert_int_equal(oly_last_status(), OLY_MEMORY);
        oly_clear_error();
        failures++;
    }
    assert_true(failures > 2);
    assert_int_equal(check_files_there(), 1 + 7 + 1); /* the last rows are in the pieces before them */
}

static void arrays_on_some_ranks_and_uncommitted_ones(void **state)
{
    (void)state;
    oly_array few = oly_device_put(oly_reshape(oly_arange(12, OLY_FLOAT32), 3, 4), oly_named(oly_make_mesh("x=1"), ""));
    assert_int_equal(oly_save_vti(check_path("few.vti"), "x", OLY_IN(few)), OLY_OK);
    CHECK_FAILS(oly_save_vti(check_path("no/few.vti"), "x", OLY_IN(few)), OLY_IO, "few.vti");
    oly_array got = oly_load_vti(check_path("few.vti"), NULL, oly_sharding_of(few));
    assert_int_equal(oly_dim(got, 1), 4);
    oly_array own = oly_reshape(oly_arange(12, OLY_FLOAT32), 3, 4);
    assert_int_equal(oly_save_vti(check_path("own.pvti"), "x", OLY_IN(own)), OLY_OK);
    oly_array all = oly_load_vti(check_path("own_0.vti"), "x", NULL);
    assert_true(oly_item(oly_all(oly_eq(all, own))) == 1);
    assert_int_equal(oly_save_vti(check_path("both.vti"), "x, y", OLY_IN(own, numbers(OLY_INT8, SHAPE(3, 4), "i"))),
                     OLY_OK);
    assert_int_equal(check_files_there(), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_IN_FOLDER(the_last_dimension_is_x),
        CHECK_IN_FOLDER(one_to_three_dimensions_points_and_cells),
        CHECK_IN_FOLDER(every_type),
        CHECK_IN_FOLDER(pieces_of_points_share_their_borders),
        CHECK_IN_FOLDER(pieces_that_do_not_fit_are_refused),
        CHECK_IN_FOLDER(a_series_goes_on_after_a_restart),
        CHECK_IN_FOLDER(what_does_not_fit_is_refused),
        CHECK_IN_FOLDER(a_failed_write_leaves_what_was_there),
        CHECK_IN_FOLDER(without_memory_nothing_is_left),
        CHECK_LAST_FOLDER(arrays_on_some_ranks_and_uncommitted_ones),
    };
    return CHECK_MAIN(tests);
}
