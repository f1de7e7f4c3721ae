/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Operations along one dimension: values against plain loops for short and long lines, the same bits in
 * every layout (sizes that do not divide, of 1 and of 0; the dimension itself split), and errors. */
#include "check_layouts.h"
#include "check_session.h"
#include <complex.h>
#include <math.h>

static oly_mesh mesh;

/* -- against plain loops --------------------------------------------------------------------------------------------- */

static const int64_t lengths[] = {0, 1, 2, 24, 25, 49, 200, 769, 5000};
enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

/* A stable order of n doubles; NaN last. */
static void reference_order(int64_t n, const double *x, bool descending, int *order)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t j = i;
        for (; j > 0; j--) {
            double a = x[order[j - 1]], b = x[i];
            bool before = descending ? (isnan(b) && !isnan(a)) || b > a : (isnan(a) && !isnan(b)) || b < a;
            if (!before)
                break;
            order[j] = order[j - 1];
        }
        order[j] = (int)i;
    }
}

static void test_sort_values(void **state)
{
    (void)state;
    static const oly_dtype types[] = {OLY_BOOL,     OLY_INT8,    OLY_INT16,  OLY_INT32,  OLY_INT64,
                                      OLY_UINT8,    OLY_UINT16,  OLY_UINT32, OLY_UINT64, OLY_FLOAT16,
                                      OLY_BFLOAT16, OLY_FLOAT32, OLY_FLOAT64};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (int l = 0; l < N_LENGTHS; l++)
            OLY_SCOPE
            {
                int64_t n = lengths[l];
                oly_array x = check_numbers(types[t], 1, &n, -60, 60, (uint32_t)(t * 100 + (size_t)l));
                double *values = check_fetch(oly_astype(x, OLY_FLOAT64));
                int *order = malloc(sizeof *order * (size_t)n + 1);
                for (int descending = 0; descending < 2; descending++) {
                    reference_order(n, values, descending, order);
                    double *sorted = check_fetch(oly_astype(oly_sort(x, 0, .descending = descending), OLY_FLOAT64));
                    int32_t *where = check_fetch(oly_argsort(x, 0, .descending = descending));
                    for (int64_t i = 0; i < n; i++) {
                        assert_true(sorted[i] == values[order[i]]);
                        assert_int_equal(where[i], order[i]);
                    }
                    free(sorted);
                    free(where);
                }
                free(values);
                free(order);
            }
}

/* NaN, zeros of both signs and infinities in a long line: at their sorted positions, with their bits. */
static void test_sort_special(void **state)
{
    (void)state;
    enum { N = 3000 };
    static float x[N], kinds[] = {NAN, 0.f, -0.f, INFINITY, -INFINITY, 1.f, -1.f};
    static double as_double[N];
    static int order[N];
    for (int i = 0; i < N; i++) {
        x[i] = i % 3 ? kinds[i * 7919 % 7] : (float)(i * 31 % 17) - 8;
        as_double[i] = (double)x[i];
    }
    oly_array a = oly_from_host(x, OLY_FLOAT32, CHECK_SHAPE(N));
    float *sorted = check_fetch(oly_sort(a, 0));
    reference_order(N, as_double, false, order);
    for (int i = 0; i < N; i++) {
        assert_true(isnan(sorted[i]) ? isnan(x[order[i]]) : sorted[i] == x[order[i]]);
        assert_int_equal(signbit(sorted[i]) != 0, signbit(x[order[i]]) != 0);
    }
    free(sorted);
}

static void test_sort_complex(void **state)
{
    (void)state;
    enum { N = 400 };
    static double _Complex x[N];
    for (int i = 0; i < N; i++)
        x[i] = (i * 7 % 5) + I * (i * 13 % 11);
    oly_array a = oly_from_host(x, OLY_COMPLEX128, CHECK_SHAPE(N));
    double _Complex *sorted = check_fetch(oly_sort(a, -1)), *back = check_fetch(oly_sort(a, -1, .descending = true));
    for (int i = 1; i < N; i++) {
        bool ordered = creal(sorted[i - 1]) < creal(sorted[i]) ||
                       (creal(sorted[i - 1]) == creal(sorted[i]) && cimag(sorted[i - 1]) <= cimag(sorted[i]));
        assert_true(ordered);
        assert_true(back[N - 1 - i] == sorted[i]);
    }
    free(sorted);
    free(back);
}

static void test_top_k_values(void **state)
{
    (void)state;
    for (int64_t k = 0; k <= 100; k += 20)
        OLY_SCOPE
        {
            oly_array x = check_numbers(OLY_FLOAT32, CHECK_SHAPE(3, 2000), -500, 500, 5), values, where;
            assert_int_equal(oly_top_k(x, k, &values, &where), OLY_OK);
            float *all = check_fetch(x), *v = check_fetch(values);
            int32_t *w = check_fetch(where), *order = check_fetch(oly_argsort(x, 1, .descending = true));
            for (int64_t row = 0; row < 3; row++)
                for (int64_t i = 0; i < k; i++) {
                    assert_int_equal(w[row * k + i], order[row * 2000 + i]);
                    assert_true(v[row * k + i] == all[row * 2000 + w[row * k + i]]);
                }
            free(all);
            free(v);
            free(w);
            free(order);
        }
}

/* The largest of long lines, which a sample looks for: random, with few values, in order, and with a period that the sample has, too. */
static void test_top_k_long(void **state)
{
    (void)state;
    enum { N = 60000, LINES = 6 };
    static double x[N];
    static const oly_dtype dtypes[] = {OLY_FLOAT32, OLY_FLOAT64, OLY_INT32, OLY_INT16};
    static const int64_t counts[] = {33, 100, 3000};
    for (int line = 0; line < LINES; line++)
        for (int k = 0; k < 12; k++)
            OLY_SCOPE
            {
                for (int i = 0; i < N; i++)
                    x[i] = line == 0   ? (i * 7919LL + 1) % 30011
                           : line == 1 ? (i * 7919LL) % 3
                           : line == 2 ? i / 2
                           : line == 3 ? (N - i) / 2
                           : line == 4 ? (i % (N / 1024) == 0 ? 20000 : i % 100)
                                       : (i % (N / 1024) == 0 ? -20000 : i % 9999);
                oly_array all = oly_astype(oly_from_host(x, OLY_FLOAT64, CHECK_SHAPE(N)), dtypes[k % 4]), where;
                assert_int_equal(oly_top_k(all, counts[k / 4], NULL, &where), OLY_OK);
                int32_t *w = check_fetch(where), *order = check_fetch(oly_argsort(all, 0, .descending = true));
                assert_memory_equal(w, order, sizeof *w * (size_t)counts[k / 4]);
                free(w);
                free(order);
            }
}

static void test_long_scan(void **state)
{
    (void)state;
    enum { N = 200001 };
    oly_array x = check_numbers(OLY_INT32, CHECK_SHAPE(2, N), -9, 9, 3);
    int32_t *data = check_fetch(x);
    for (int reverse = 0; reverse < 2; reverse++) {
        int32_t *sum = check_fetch(oly_cumsum(x, 1, .reverse = reverse));
        int32_t *most = check_fetch(oly_cummax(x, 1, .reverse = reverse));
        float *logs = check_fetch(oly_cumlogsumexp(oly_mul(x, 0.0), 1, .reverse = reverse));
        for (int64_t row = 0; row < 2; row++) {
            int32_t s = 0, m = INT32_MIN;
            for (int64_t i = 0; i < N; i++) {
                int64_t at = row * N + (reverse ? N - 1 - i : i);
                s += data[at];
                m = data[at] > m ? data[at] : m;
                assert_int_equal(sum[at], s);
                assert_int_equal(most[at], m);
                assert_true(fabs((double)logs[at] - log((double)(i + 1))) < 1e-5);
            }
        }
        free(sum);
        free(most);
        free(logs);
    }
    free(data);
}

static void test_searchsorted_values(void **state)
{
    (void)state;
    static const float line[] = {-INFINITY, -1, -0.f, 0.f, 2, 2, 2, INFINITY, NAN, NAN},
                       sought[] = {-1, 0, 2, 5, NAN, -9};
    static const int32_t left[] = {1, 2, 4, 7, 8, 1}, right[] = {2, 4, 7, 7, 10, 1};
    oly_array a = oly_from_host(line, OLY_FLOAT32, CHECK_SHAPE(10)),
              v = oly_from_host(sought, OLY_FLOAT32, CHECK_SHAPE(6));
    int32_t *l = check_fetch(oly_searchsorted(a, v, NULL)), *r = check_fetch(oly_searchsorted(a, v, "right"));
    assert_memory_equal(l, left, sizeof left);
    assert_memory_equal(r, right, sizeof right);
    free(l);
    free(r);
    l = check_fetch(oly_searchsorted(oly_zeros(OLY_FLOAT32, 0), v, NULL));
    for (int i = 0; i < 6; i++)
        assert_int_equal(l[i], 0);
    free(l);
}

/* So many that threads share them. */
static void test_many_are_sought(void **state)
{
    (void)state;
    enum { LINE = 1000, SOUGHT = 300000 };
    float *line = malloc(sizeof *line * LINE), *sought = malloc(sizeof *sought * SOUGHT);
    for (int i = 0; i < LINE; i++)
        line[i] = (float)(i / 3);
    for (int i = 0; i < SOUGHT; i++)
        sought[i] = (float)(i * 7919LL % 800) / 2 - 10;
    int32_t *found = check_fetch(oly_searchsorted(oly_from_host(line, OLY_FLOAT32, CHECK_SHAPE(LINE)),
                                                  oly_from_host(sought, OLY_FLOAT32, CHECK_SHAPE(SOUGHT)), NULL));
    for (int i = 0; i < SOUGHT; i++) {
        int first = (int)ceilf(sought[i]) * 3;
        assert_int_equal(found[i], first < 0 ? 0 : first > LINE ? LINE : first);
    }
    free(found);
    free(line);
    free(sought);
}

/* -- layouts --------------------------------------------------------------------------------------------------------- */

#define ALONG(name, expression)                                                                                        \
    static oly_array name##_0(const oly_array *in)                                                                     \
    {                                                                                                                  \
        oly_array x = in[0];                                                                                           \
        int axis = 0;                                                                                                  \
        return expression;                                                                                             \
    }                                                                                                                  \
    static oly_array name##_1(const oly_array *in)                                                                     \
    {                                                                                                                  \
        oly_array x = in[0];                                                                                           \
        int axis = -1;                                                                                                 \
        return expression;                                                                                             \
    }                                                                                                                  \
    static oly_array name##_flat(const oly_array *in)                                                                  \
    {                                                                                                                  \
        oly_array x = in[0];                                                                                           \
        int axis = OLY_FLAT;                                                                                           \
        return expression;                                                                                             \
    }
ALONG(sort, oly_sort(x, axis))
ALONG(sort_down, oly_sort(x, axis, .descending = true))
ALONG(argsort, oly_argsort(x, axis, .descending = true))
ALONG(cumsum, oly_cumsum(x, axis))
ALONG(cumprod, oly_cumprod(oly_sub(oly_mul(2, oly_gt(x, 0)), 1), axis, .reverse = true))
ALONG(cummax, oly_cummax(x, axis))
ALONG(cummin, oly_cummin(x, axis, .reverse = true))
ALONG(argmax, axis == OLY_FLAT ? oly_argmax(x) : oly_argmax(x, OLY_AXES(axis), .keepdims = true))
ALONG(argmin, axis == OLY_FLAT ? oly_argmin(x) : oly_argmin(x, OLY_AXES(axis)))

static oly_array together(const oly_array *in)
{
    oly_array results[2];
    oly_sort_together(2, (oly_array[]){in[0], oly_neg(in[0])}, 0, 1, results);
    return results[1];
}
static oly_array largest(const oly_array *in)
{
    oly_array values;
    oly_top_k(in[0], oly_dim(in[0], -1) / 2, &values, NULL);
    return values;
}
static oly_array where_largest(const oly_array *in)
{
    oly_array where;
    oly_top_k(in[0], oly_dim(in[0], -1) / 2, NULL, &where);
    return where;
}
static oly_array places(const oly_array *in)
{
    return oly_searchsorted(oly_sort(in[0], OLY_FLAT), in[0], "right");
}

static const struct {
    const char *name;
    check_call *call;
    bool needs_elements;
} calls[] = {
#define THREE(name)                                                                                                    \
    {#name "_0", name##_0, false}, {#name "_1", name##_1, false},                                                      \
    {                                                                                                                  \
#name "_flat", name##_flat, false                                                                              \
    }
    THREE(sort),
    THREE(sort_down),
    THREE(argsort),
    THREE(cumsum),
    THREE(cumprod),
    THREE(cummax),
    THREE(cummin),
#undef THREE
#define THREE(name)                                                                                                    \
    {#name "_0", name##_0, true}, {#name "_1", name##_1, true},                                                        \
    {                                                                                                                  \
#name "_flat", name##_flat, true                                                                               \
    }
    THREE(argmax),
    THREE(argmin),
    {"together", together, false},
    {"largest", largest, false},
    {"where_largest", where_largest, false},
    {"places", places, false},
};

static const char *const one_dimension[][3] = {{"x"}, {"y"}, {"(x, y)"}, {"(y, x)"}, {""}};
static const char *const two_dimensions[][3] = {
    {"x"}, {"None, y"}, {"x, y"}, {"y, x"}, {"None, (x, y)"}, {"(y, x), None"}, {""}};
static const char *const three_dimensions[][3] = {{"x, None, y"}, {"None, y, x"}, {"None, None, (y, x)"}, {"y"}};

static void test_layouts(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{7, 11, 0}, {16, 8, 0}, {3, 70, 0}, {1, 5, 0}, {0, 6, 0}, {6, 0, 0}};
    static const oly_dtype types[] = {OLY_FLOAT32, OLY_INT32};
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            OLY_SCOPE
            {
                if (calls[c].needs_elements && shapes[s][0] * shapes[s][1] == 0)
                    continue;
                oly_array x = check_numbers(types[(c + s) % 2], 2, shapes[s], -9, 9, (uint32_t)s);
                check_layouts(calls[c].name, calls[c].call, 1, &x, mesh, 7, two_dimensions);
            }
}

static void test_other_ranks(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++)
        OLY_SCOPE
        {
            oly_array line = check_numbers(OLY_FLOAT32, CHECK_SHAPE(43), -9, 9, 1);
            oly_array cube = check_numbers(OLY_FLOAT16, CHECK_SHAPE(5, 6, 7), -2, 2, 2);
            check_layouts(calls[c].name, calls[c].call, 1, &line, mesh, 5, one_dimension);
            check_layouts(calls[c].name, calls[c].call, 1, &cube, mesh, 4, three_dimensions);
        }
}

/* A line whose last parts are empty: the second half of a line over all devices. */
static oly_array half_sum(const oly_array *in)
{
    return oly_cumsum(oly_slice(in[0], "45:"), 0, .reverse = true);
}
static oly_array half_max(const oly_array *in)
{
    return oly_cummax(oly_slice(in[0], "45:"), 0);
}
static oly_array half_min(const oly_array *in)
{
    return oly_cummin(oly_slice(in[0], ":50"), 0, .reverse = true);
}
static oly_array half_logs(const oly_array *in) /* of zeros: logarithms of integers, to a few digits */
{
    oly_array logs = oly_cumlogsumexp(oly_mul(oly_astype(oly_slice(in[0], "45:"), OLY_FLOAT32), 0), 0);
    return oly_astype(oly_add(oly_exp(logs), 0.5), OLY_INT32);
}
static oly_array half_argmax(const oly_array *in)
{
    return oly_argmax(oly_slice(in[0], "45:"));
}
static oly_array half_argmin(const oly_array *in)
{
    return oly_argmin(oly_slice(in[0], ":50"));
}
static oly_array half_largest(const oly_array *in)
{
    oly_array values;
    oly_top_k(oly_slice(in[0], "45:"), 2, &values, NULL);
    return values;
}
static oly_array half_where(const oly_array *in)
{
    oly_array where;
    oly_top_k(oly_slice(in[0], ":50"), 40, NULL, &where);
    return where;
}
static oly_array half_sort(const oly_array *in)
{
    return oly_sort(oly_slice(in[0], "45:"), 0, .descending = true);
}

static void test_parts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        check_call *call;
    } halves[] = {{"half_sum", half_sum},         {"half_max", half_max},       {"half_min", half_min},
                  {"half_logs", half_logs},       {"half_argmax", half_argmax}, {"half_argmin", half_argmin},
                  {"half_largest", half_largest}, {"half_where", half_where},   {"half_sort", half_sort}};
    for (size_t c = 0; c < sizeof halves / sizeof halves[0]; c++)
        for (int t = 0; t < OLY_COMPLEX64; t++)
            OLY_SCOPE
            {
                oly_array x = check_numbers((oly_dtype)t, CHECK_SHAPE(93), -9, 9, (uint32_t)t);
                check_layouts(halves[c].name, halves[c].call, 1, &x, mesh, 5, one_dimension);
            }
}

static void test_special_parts(void **state)
{
    (void)state;
    static float x[90];
    for (int i = 0; i < 90; i++)
        x[i] = i % 5 ? -1.f : i % 2 ? 0.f : -0.f;
    for (int nans = 0; nans < 2; nans++) {
        oly_array a = oly_from_host(x, OLY_FLOAT32, CHECK_SHAPE(90));
        for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++)
            check_layouts(calls[c].name, calls[c].call, 1, &a, mesh, 5, one_dimension);
        x[37] = x[71] = NAN;
        x[52] = INFINITY;
    }
}

/* -- mapped ---------------------------------------------------------------------------------------------------------- */

static void sort_rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sort(in[0], 0);
    out[1] = oly_argmax(in[0]);
    out[2] = oly_cumsum(in[0], 0);
}

static void test_mapped(void **state)
{
    (void)state;
    oly_array x = check_numbers(OLY_FLOAT32, CHECK_SHAPE(6, 9), -9, 9, 4), got[3];
    assert_int_equal(
        oly_vmap(sort_rows, NULL, OLY_IN(x), OLY_AXES_OF(0), OLY_OUT(got[0], got[1], got[2]), OLY_AXES_OF(0, 0, 0)),
        OLY_OK);
    oly_array expected[] = {oly_sort(x, 1), oly_argmax(x, .axes = "1"), oly_cumsum(x, 1)};
    for (int k = 0; k < 3; k++) {
        void *a = check_fetch(expected[k]), *b = check_fetch(got[k]);
        assert_int_equal(oly_size(got[k]), oly_size(expected[k]));
        assert_memory_equal(a, b, (size_t)oly_size(expected[k]) * 4);
        free(a);
        free(b);
    }
}

/* -- errors ---------------------------------------------------------------------------------------------------------- */

static void test_errors(void **state)
{
    (void)state;
    oly_array x = oly_zeros(OLY_FLOAT32, 3, 4), c = oly_astype(x, OLY_COMPLEX64), none = oly_zeros(OLY_FLOAT32, 0, 4),
              v, i;
    CHECK_REFUSED(oly_sort(x, 2), OLY_SHAPE, "axis 2");
    CHECK_REFUSED(oly_sort(oly_scalar(1, OLY_FLOAT32), -1), OLY_SHAPE, "no dimensions");
    CHECK_REFUSED(oly_argsort(x, -3), OLY_SHAPE, "axis -3");
    CHECK_REFUSED(oly_cummax(c, 0), OLY_DTYPE, "complex");
    CHECK_REFUSED(oly_cumsum(x, 5), OLY_SHAPE, "axis 5");
    CHECK_REFUSED(oly_argmax(c), OLY_DTYPE, "complex");
    CHECK_REFUSED(oly_argmin(none, .axes = "0"), OLY_SHAPE, "no elements");
    CHECK_REFUSED(oly_argmax(x, .axes = "0, 0"), OLY_INVALID, "twice");
    CHECK_REFUSED(oly_searchsorted(x, 1, NULL), OLY_SHAPE, "one dimension");
    CHECK_REFUSED(oly_searchsorted(oly_zeros(OLY_FLOAT32, 3), 1, "middle"), OLY_PARSE, "middle");
    assert_int_equal(oly_top_k(x, 5, &v, &i), OLY_SHAPE);
    CHECK_REFUSED(v, OLY_SHAPE, "5 largest");
    assert_int_equal(oly_top_k(c, 1, &v, &i), OLY_DTYPE);
    oly_clear_error();
    oly_array two[] = {x, oly_zeros(OLY_FLOAT32, 3)}, results[2];
    assert_int_equal(oly_sort_together(2, two, 0, 1, results), OLY_SHAPE);
    oly_clear_error();
    assert_int_equal(oly_sort_together(2, two, 0, 3, results), OLY_INVALID);
    CHECK_REFUSED(results[0], OLY_INVALID, "keys");
    assert_null(oly_sort(oly_operand_array(NULL), 0));
    oly_clear_error();
    assert_int_equal(oly_size(oly_sort(none, 0)), 0);
    assert_int_equal(oly_size(oly_argmax(none, .axes = "1")), 0);
}

static int start(void **state)
{
    int ready = check_start(state);
    mesh = oly_make_mesh("x=2, y=4");
    return mesh ? ready : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_sort_values, start),
        cmocka_unit_test(test_sort_special),
        cmocka_unit_test(test_sort_complex),
        cmocka_unit_test(test_top_k_values),
        cmocka_unit_test(test_top_k_long),
        cmocka_unit_test(test_long_scan),
        cmocka_unit_test(test_searchsorted_values),
        cmocka_unit_test(test_many_are_sought),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_other_ranks),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_special_parts),
        cmocka_unit_test(test_mapped),
        cmocka_unit_test_teardown(test_errors, check_finish),
    };
    return CHECK_MAIN(tests);
}
