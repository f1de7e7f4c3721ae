/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8
 * Gathers and scatters by indexes in every order that kernels treat differently: ascending, ascending in parts, in any order, outside
 * the array at either end. Values are thirds for float32 and float64 that every device has, so that only the order of the positions gives
 * these sums; else small whole numbers, as devices that hold parts of the updates add sums of their own. */
#include "check_session.h"

enum { LONGEST = 3000, MOST_TABLE = 700 };
typedef enum order { ASCENDING, EQUAL_RUNS, OUTSIDE, ONE_FALL, ANY, ORDERS } order;

static unsigned state;
static int64_t draw(int64_t below)
{
    state = state * 1664525u + 1013904223u;
    return (int64_t)((state >> 8) % (unsigned)below);
}

static void fill(order o, int64_t n, int64_t table, int64_t *index)
{
    for (int64_t k = 0; k < n; k++)
        switch (o) {
        case ASCENDING: index[k] = k * table / n; break;
        case EQUAL_RUNS: index[k] = k / 37 * 5 % table; break;
        case OUTSIDE: index[k] = k * (table + 8) / n - 4; break;
        case ONE_FALL: index[k] = (k == n / 2) ? 0 : k * table / n; break;
        default: index[k] = draw(table + 2) - 1;
        }
}

/* Scatters drop what is outside the array; negative indexes count from the end. */
static int64_t place_of(int64_t index, int64_t table)
{
    index += index < 0 ? table : 0;
    return index >= 0 && index < table ? index : -1;
}

static void scatter(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_at_add(in[0], OLY_INDEXES(in[1]), in[2]);
    out[1] = oly_at_max(in[0], OLY_INDEXES(in[1]), in[2]);
    out[2] = oly_segment_sum(in[2], in[1], oly_dim(in[0], 0));
    out[3] = oly_take(in[0], in[1], 0, "wrap");
    out[4] = oly_take(in[0], in[1], 0, "clip");
    out[5] = oly_mul(2, oly_segment_sum(oly_mul(in[2], oly_take(in[0], in[1], 0, "clip")), in[1], oly_dim(in[0], 0)));
}
enum { RESULTS = 6 };

static int64_t within(int64_t index, int64_t table, bool wraps)
{
    if (wraps)
        return (index % table + table) % table;
    return index < 0 ? 0 : index >= table ? table - 1 : index;
}

static double rounded(oly_dtype dtype, double value)
{
    return dtype == OLY_FLOAT32 ? (double)(float)value : value;
}

static void expect(oly_dtype dtype, int64_t n, int64_t table, const int64_t *index, const double *x, const double *u,
                   double *want[])
{
    for (int64_t i = 0; i < table; i++) {
        want[0][i] = want[1][i] = x[i];
        want[2][i] = want[5][i] = 0;
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t at = place_of(index[k], table), segment = index[k] >= 0 && index[k] < table ? index[k] : -1;
        if (at >= 0) {
            want[0][at] = rounded(dtype, want[0][at] + u[k]);
            want[1][at] = want[1][at] < u[k] ? u[k] : want[1][at];
        }
        want[3][k] = x[within(index[k], table, true)];
        want[4][k] = x[within(index[k], table, false)];
        if (segment >= 0) {
            want[2][segment] = rounded(dtype, want[2][segment] + u[k]);
            want[5][segment] = rounded(dtype, want[5][segment] + 2 * rounded(dtype, u[k] * want[4][k]));
        }
    }
}

static oly_array array_of(const double *x, int64_t n, oly_dtype dtype, oly_sharding where)
{
    return oly_device_put(oly_astype(oly_from_host(x, OLY_FLOAT64, 1, &n), dtype), where);
}

static void check_one(order o, int64_t n, int64_t table, oly_dtype dtype, oly_dtype index_dtype, const char *spec)
{
    static int64_t index[LONGEST];
    static double x[MOST_TABLE], u[LONGEST], results[RESULTS][LONGEST], i[LONGEST];
    double *want[RESULTS];
    for (int r = 0; r < RESULTS; r++)
        want[r] = results[r];
    double part = !*spec && (dtype == OLY_FLOAT32 || dtype == OLY_FLOAT64) ? 3 : 1;
    fill(o, n, table, index);
    for (int64_t k = 0; k < table; k++)
        x[k] = rounded(dtype, (double)draw(5) / part);
    for (int64_t k = 0; k < n; k++)
        u[k] = rounded(dtype, ((double)draw(4) - 1) / part), i[k] = (double)index[k];
    expect(dtype, n, table, index, x, u, want);
    OLY_SCOPE
    {
        oly_sharding where = oly_named(oly_make_mesh("x=8"), spec), whole = oly_named(oly_make_mesh("x=8"), "");
        oly_array in[] = {array_of(x, table, dtype, whole), array_of(i, n, index_dtype, where),
                          array_of(u, n, dtype, where)};
        oly_array out[RESULTS];
        oly_call_arrays(oly_jit(scatter, 3, RESULTS), 3, in, RESULTS, out);
        for (int r = 0; r < RESULTS; r++) {
            static double got[LONGEST];
            int64_t size = r == 3 || r == 4 ? n : table;
            assert_int_equal(oly_process_allgather(oly_astype(out[r], OLY_FLOAT64), got, (size_t)size * sizeof *got),
                             OLY_OK);
            for (int64_t k = 0; k < size; k++)
                if (got[k] != want[r][k])
                    fail_msg("order %d, %d indexes into %d, result %d: element %d is %g, not %g", (int)o, (int)n,
                             (int)table, r, (int)k, got[k], want[r][k]);
        }
    }
}

static void test_orders(void **unused)
{
    (void)unused;
    static const int64_t lengths[] = {1, 7, 512, 513, LONGEST}, tables[] = {1, 9, MOST_TABLE};
    for (order o = 0; o < ORDERS; o++)
        for (int l = 0; l < 5; l++)
            for (int t = 0; t < 3; t++)
                for (int wide = 0; wide < 2; wide++)
                    check_one(o, lengths[l], tables[t], wide ? OLY_FLOAT64 : OLY_FLOAT32, wide ? OLY_INT64 : OLY_INT32,
                              (l + t) % 2 ? "x" : "");
}

static void test_types(void **unused)
{
    (void)unused;
    static const oly_dtype types[] = {OLY_INT8, OLY_INT16, OLY_INT32, OLY_INT64, OLY_FLOAT16, OLY_BFLOAT16};
    for (int k = 0; k < 4; k++) /* sums that fit */
        check_one(ASCENDING, 600, 500, types[k], OLY_INT32, "");
    check_one(ASCENDING, 600, 500, OLY_FLOAT16, OLY_INT64, "x");
    check_one(ANY, 600, 500, OLY_BFLOAT16, OLY_INT32, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_orders, check_start_wide, check_finish),
        cmocka_unit_test_setup_teardown(test_types, check_start_wide, check_finish),
    };
    return CHECK_MAIN(tests);
}
