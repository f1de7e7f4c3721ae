/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Every file in tests/files/data, which NumPy has written (make-data), loaded with many shardings, or refused.
 * NUMPY_FILES=folder: those in that folder, each of which is also saved again there, as back-NAME (test_numpy_live.sh). */
#include "check_session.h"
#include "core/element.h"
#include <dirent.h>

static int set_up(void **state)
{
    (void)state;
    check_begin();
    oly_enable_x64(true);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    check_end();
    return 0;
}

static const char *folder(void)
{
    const char *given = getenv("NUMPY_FILES");
    return given ? given : "tests/files/data";
}

static const char *data_path(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder(), name);
    return path;
}

static double value(oly_dtype dtype, int64_t k)
{
    return dtype == OLY_BOOL ? (double)(k % 2) : dtype >= OLY_FLOAT8_E4M3FN ? (double)k / 4 : (double)k;
}

/* All elements, as make-data says they are. */
static void check_values(oly_array x, const char *name)
{
    static char bytes[4096];
    oly_dtype dtype = oly_dtype_of(x);
    size_t size = oly_dtype_size(dtype);
    bool complex = dtype == OLY_COMPLEX64 || dtype == OLY_COMPLEX128;
    assert_int_equal(oly_process_allgather(x, bytes, sizeof bytes), OLY_OK);
    for (int64_t k = 0; k < oly_size(x); k++) {
        const char *at = bytes + (size_t)k * size;
        oly_dtype part = dtype == OLY_COMPLEX64 ? OLY_FLOAT32 : dtype == OLY_COMPLEX128 ? OLY_FLOAT64 : dtype;
        if (oly_real_at(part, at) != value(dtype, k) || (complex && oly_real_at(part, at + size / 2) != -(double)k / 8))
            fail_msg("%s: element %ld is %g", name, (long)k, oly_real_at(part, at));
    }
}

static const char *const specs[] = {"i, j", "None, (j,i)", "(i,j)", "", "j"};

static void save_again(const char *name, oly_array x)
{
    char back[300];
    snprintf(back, sizeof back, "back-%s", name);
    assert_int_equal(oly_save_npy(data_path(back), x), OLY_OK);
}

static void check_file(const char *name, oly_mesh mesh, int step)
{
    bool refused = strncmp(name, "refused", 7) == 0;
    for (int k = step % 5; k<5; k += oly_process_count()> 2 ? 2 : 1)
        OLY_SCOPE
        {
            oly_array x = oly_load_npy(data_path(name), NULL);
            if (refused) {
                assert_null(x);
                assert_true(oly_last_status() == OLY_DTYPE || oly_last_status() == OLY_IO);
                assert_non_null(strstr(oly_last_error(), name));
                oly_clear_error();
            } else if (oly_rank(x) >= 2 || (oly_rank(x) == 1 && k >= 2) || k == 3) {
                check_values(x, name);
                oly_array y = oly_load_npy(data_path(name), oly_named(mesh, specs[k]));
                check_values(y, name);
                if (getenv("NUMPY_FILES"))
                    save_again(name, y);
            }
        }
}

static void every_file_of_numpy(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("i=4, j=2");
    struct dirent **entries;
    int n = scandir(folder(), &entries, NULL, alphasort), files = 0;
    for (int k = 0; k < n; k++) {
        const char *dot = strrchr(entries[k]->d_name, '.');
        if (dot && strcmp(dot, ".npy") == 0 && strncmp(entries[k]->d_name, "back-", 5) != 0) {
            check_file(entries[k]->d_name, mesh, 3 * k);
            files++;
        }
        free(entries[k]);
    }
    free(entries);
    assert_in_range(files, 50, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_file_of_numpy, set_up, tear_down),
    };
    return CHECK_MAIN(tests);
}
