/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Many updates of long and short rows, in any order and in sorted order, some outside the array, columns by
 * index, and positions of the largest and smallest elements of long rows and columns: bit for bit against plain loops, of whole and split arrays. */
#include "check_layouts.h"
#include "check_session.h"
#include <complex.h>
#include <math.h>

static oly_mesh mesh;

enum { MOST = 6000 * 70 };

static int start(void **state)
{
    int status = check_start(state);
    mesh = oly_make_mesh("i=8");
    return status;
}

/* -- updates --------------------------------------------------------------------------------------------------------- */

typedef enum combination { ADD, SET, MAX, MIN, N_COMBINATIONS } combination;
static const char *const combination_names[] = {"add", "set", "max", "min"};

static oly_array combined(combination how, oly_array x, oly_array at, oly_array updates, const char *mode)
{
    oly_operand indexes[] = {OLY_ARG(at)};
    switch (how) {
    case ADD: return oly_at_add(x, 1, indexes, updates, .mode = mode);
    case SET: return oly_at_set(x, 1, indexes, updates, .mode = mode);
    case MAX: return oly_at_max(x, 1, indexes, updates, .mode = mode);
    default: return oly_at_min(x, 1, indexes, updates, .mode = mode);
    }
}

static float combined_float(combination how, float x, float y)
{
    switch (how) {
    case ADD: return x + y;
    case SET: return y;
    case MAX: return x > y ? x : y;
    default: return x < y ? x : y;
    }
}

/* `many` indexes of `rows` rows: in any order or ascending, about one in nine outside. */
static void draw_indexes(int32_t *at, int many, int rows, bool ascending)
{
    for (int k = 0; k < many; k++) {
        at[k] = ascending ? (int32_t)((int64_t)k * rows / many) : (int32_t)((uint32_t)k * 2654435761u % (uint32_t)rows);
        if (k % 9 == 4)
            at[k] = k % 2 ? rows + k : -rows - 1 - k;
    }
}

static void check_updates(combination how, int rows, int many, int n, bool ascending, const char *spec,
                          const char *mode)
{
    static float x[MOST], updates[MOST];
    static int32_t at[6000];
    draw_indexes(at, many, rows, ascending);
    for (int i = 0; i < rows * n; i++)
        x[i] = (float)(i % 97) / 7;
    for (int i = 0; i < many * n; i++)
        updates[i] = (float)(i * 31 % 1001) / 13 - 30;
    oly_array a = oly_from_host(x, OLY_FLOAT32, CHECK_SHAPE(rows, n)),
              indexes = oly_from_host(at, OLY_INT32, CHECK_SHAPE(many));
    oly_array u = oly_from_host(updates, OLY_FLOAT32, CHECK_SHAPE(many, n));
    float *got = check_fetch(combined(how, oly_device_put(a, oly_named(mesh, spec)), indexes, u, mode));
    for (int k = 0; k < many; k++) {
        int row = at[k];
        if (mode && !strcmp(mode, "clip"))
            row = row < 0 ? 0 : row >= rows ? rows - 1 : row;
        if (row < 0 || row >= rows)
            continue;
        for (int j = 0; j < n; j++)
            x[row * n + j] = combined_float(how, x[row * n + j], updates[k * n + j]);
    }
    for (int i = 0; i < rows * n; i++)
        if (got[i] != x[i])
            fail_msg("%s of %d rows of %d into %d, %s, \"%s\", %s: element %d is %a, not %a", combination_names[how],
                     many, n, rows, ascending ? "ascending" : "any order", spec, mode ? mode : "drop", i,
                     (double)got[i], (double)x[i]);
    free(got);
}

static void test_updates(void **state)
{
    (void)state;
    static const int rows[] = {1, 7, 900}, many[] = {3, 600, 6000}, lengths[] = {1, 3, 17, 70};
    static const char *const specs[] = {"", "i", "None, i"}, *const modes[] = {NULL, "clip"};
    int k = 0;
    for (int r = 0; r < 3; r++)
        for (int m = 0; m < 3; m++)
            for (int n = 0; n < 4; n++, k++)
                for (int s = 0; s < 3; s++)
                    OLY_SCOPE
                    {
                        check_updates((combination)((k + s) % N_COMBINATIONS), rows[r], many[m], lengths[n],
                                      (k + s) % 3 == 0, specs[s], modes[k % 5 == 0]);
                    }
}

/* Sums of single elements: runs of equal ascending indexes, with some outside between them, and blocks of which a device or a thread
 * has a part. */
static void test_sums(void **state)
{
    (void)state;
    static const int rows[] = {1, 7, 90, 900, 5000};
    static const char *const specs[] = {"", "i"}, *const modes[] = {NULL, "clip"};
    for (int r = 0; r < 5; r++)
        for (int k = 0; k < 8; k++)
            OLY_SCOPE
            {
                check_updates(ADD, rows[r], k & 1 ? 6000 : 500, 1, k & 2, specs[k / 4], modes[(k + r) % 3 == 0]);
            }
}

/* Wide elements, and types that are rounded after every update. */
static void test_types(void **state)
{
    (void)state;
    enum { ROWS = 50, MANY = 3000 };
    static int32_t at[MANY];
    static double _Complex z[MANY];
    static double _Complex wanted[ROWS];
    static float v[MANY], sums[ROWS];
    for (int k = 0; k < MANY; k++) {
        at[k] = k * 7919 % (ROWS + 5);
        z[k] = k % 100 + I * (k % 7);
        v[k] = (float)(k % 128);
        if (at[k] < ROWS)
            wanted[at[k]] = z[k];
    }
    oly_array indexes = oly_from_host(at, OLY_INT32, CHECK_SHAPE(MANY));
    oly_array a = oly_zeros(OLY_COMPLEX128, ROWS), b = oly_zeros(OLY_BFLOAT16, ROWS);
    double _Complex *got =
        check_fetch(combined(SET, a, indexes, oly_from_host(z, OLY_COMPLEX128, CHECK_SHAPE(MANY)), NULL));
    for (int i = 0; i < ROWS; i++)
        assert_true(got[i] == wanted[i]);
    free(got);
    /* 256 + 1 is 256 in bfloat16: a sum in a wider register would differ */
    oly_array narrow = oly_astype(oly_from_host(v, OLY_FLOAT32, CHECK_SHAPE(MANY)), OLY_BFLOAT16);
    float *rounded = check_fetch(oly_astype(combined(ADD, b, indexes, narrow, NULL), OLY_FLOAT32));
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < MANY; k++)
            if (at[k] == i) {
                float sum = sums[i] + v[k];
                uint32_t bits;
                memcpy(&bits, &sum, sizeof bits);
                bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
                memcpy(&sums[i], &bits, sizeof bits);
            }
    for (int i = 0; i < ROWS; i++)
        assert_true(rounded[i] == sums[i]);
    free(rounded);
}

/* -- positions ------------------------------------------------------------------------------------------------------- */

static int best_of(const float *x, int n, int stride, bool smallest)
{
    int best = 0;
    for (int k = 1; k < n; k++) {
        float a = x[k * stride], b = x[best * stride];
        if (!isnan(b) && (isnan(a) || (smallest ? a < b : a > b)))
            best = k;
    }
    return best;
}

/* `rising`: of 16 elements one is better than all before. With NaNs at most one line in three has one. */
static void check_positions(int rows, int columns, const char *spec, bool rising)
{
    static float x[MOST];
    for (int i = 0; i < rows * columns; i++)
        x[i] = (float)((uint32_t)i * 2654435761u >> 12) + (rising && i % 16 == 3 ? (float)i * 1e4f : 0);
    for (int i = 5; i < rows * columns; i += 3 * columns + 11)
        x[i] = i % 2 ? NAN : -1e9f;
    oly_array a = oly_device_put(oly_from_host(x, OLY_FLOAT32, CHECK_SHAPE(rows, columns)), oly_named(mesh, spec));
    for (int axis = 0; axis < 2; axis++)
        for (int smallest = 0; smallest < 2; smallest++) {
            oly_array found = smallest ? oly_argmin(a, OLY_AXES(axis)) : oly_argmax(a, OLY_AXES(axis));
            int32_t *got = check_fetch(found);
            for (int k = 0; k < (axis ? rows : columns); k++) {
                int wanted =
                    axis ? best_of(x + k * columns, columns, 1, smallest) : best_of(x + k, rows, columns, smallest);
                if (got[k] != wanted)
                    fail_msg("%s along %d of %dx%d, \"%s\": line %d has %d, not %d", smallest ? "argmin" : "argmax",
                             axis, rows, columns, spec, k, got[k], wanted);
            }
            free(got);
        }
}

static void test_positions(void **state)
{
    (void)state;
    static const int sizes[][2] = {{1, 64}, {3, 65}, {70, 5000}, {600, 700}, {3000, 63}, {2000, 129}};
    static const char *const specs[] = {"", "i", "None, i"};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        for (int s = 0; s < 3; s++)
            OLY_SCOPE
            {
                check_positions(sizes[k][0], sizes[k][1], specs[s], (k + (size_t)s) % 2);
            }
}

/* -- largest of columns ---------------------------------------------------------------------------------------------- */

/* A NaN in any of eight rows at a time wins; zeros of both signs are not compared. */
static void test_largest_of_columns(void **state)
{
    (void)state;
    enum { ROWS = 203, COLUMNS = 200 };
    static float x[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = i % COLUMNS < 150 && i * 13 % 4001 == 0 ? NAN : (float)((uint32_t)i * 2654435761u >> 12) - 3e5f;
    oly_array a = oly_from_host(x, OLY_FLOAT32, CHECK_SHAPE(ROWS, COLUMNS));
    float *largest = check_fetch(oly_max(a, OLY_AXES(0))), *smallest = check_fetch(oly_min(a, OLY_AXES(0)));
    for (int c = 0; c < COLUMNS; c++) {
        float most = x[c + COLUMNS * best_of(x + c, ROWS, COLUMNS, false)];
        float least = x[c + COLUMNS * best_of(x + c, ROWS, COLUMNS, true)];
        assert_true(largest[c] == most || (isnan(largest[c]) && isnan(most)));
        assert_true(smallest[c] == least || (isnan(smallest[c]) && isnan(least)));
    }
    free(largest);
    free(smallest);
}

/* Columns by index, of elements of every size: rows are read together. */
static void check_columns(oly_dtype dtype, int rows, const char *spec, const char *mode)
{
    enum { COLUMNS = 40, MANY = 700 };
    static float x[200 * COLUMNS];
    static int32_t at[MANY];
    for (int i = 0; i < rows * COLUMNS; i++)
        x[i] = (float)(i * 31 % 97);
    for (int k = 0; k < MANY; k++)
        at[k] = k % 50 == 7 ? COLUMNS + k : k * 17 % COLUMNS;
    oly_array a = oly_astype(oly_from_host(x, OLY_FLOAT32, CHECK_SHAPE(rows, COLUMNS)), dtype);
    oly_array took =
        oly_take(oly_device_put(a, oly_named(mesh, spec)), oly_from_host(at, OLY_INT32, CHECK_SHAPE(MANY)), 1, mode);
    float *got = check_fetch(oly_astype(dtype == OLY_COMPLEX128 ? oly_real(took) : took, OLY_FLOAT32));
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < MANY; k++) {
            bool outside = at[k] >= COLUMNS && strcmp(mode, "clip") != 0;
            float wanted = outside && dtype == OLY_INT8 ? -128
                           : outside                    ? NAN
                                                        : x[i * COLUMNS + (at[k] < COLUMNS ? at[k] : COLUMNS - 1)];
            if (got[i * MANY + k] != wanted && !(isnan(wanted) && isnan(got[i * MANY + k])))
                fail_msg("%s[%d, %d], \"%s\", %s: row %d of column %d is %g, not %g", oly_dtype_name(dtype), rows,
                         COLUMNS, spec, mode, i, (int)at[k], (double)got[i * MANY + k], (double)wanted);
        }
    free(got);
}

static void test_columns(void **state)
{
    static const oly_dtype dtypes[] = {OLY_INT8, OLY_FLOAT16, OLY_FLOAT32, OLY_FLOAT64, OLY_COMPLEX128};
    static const char *const specs[] = {"", "i", "None, i"};
    (void)state;
    for (int t = 0; t < 5; t++)
        for (int s = 0; s < 3; s++)
            OLY_SCOPE
            {
                check_columns(dtypes[t], 131, specs[s], "fill");
                check_columns(dtypes[t], s == 1 ? 199 : 64, specs[s], "clip");
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_updates, start),
        cmocka_unit_test_setup(test_sums, start),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_columns),
        cmocka_unit_test_teardown(test_largest_of_columns, check_finish),
    };
    return CHECK_MAIN(tests);
}
