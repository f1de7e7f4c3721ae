/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Operations by value (take, x.at[...], dynamic slices, segment sums): values against plain loops, the same bits in
 * every layout of operands and indexes, modes, element types, and errors. */
#include "check_layouts.h"
#include "check_session.h"
#include <math.h>

static oly_mesh mesh;

/* -- modes ----------------------------------------------------------------------------------------------------------- */

static const int32_t wild[] = {0, 4, -1, -5, -6, 5, 100, -100, 2, 2};
enum { N_WILD = sizeof wild / sizeof wild[0], N = 5 };

/* The element an index refers to; -1: out of range. */
static int led(int64_t i, const char *mode, bool wraps)
{
    if (mode && !strcmp(mode, "wrap"))
        return (int)((i % N + N) % N);
    i = wraps && i < 0 ? i + N : i;
    if (i >= 0 && i < N)
        return (int)i;
    return mode && !strcmp(mode, "clip") ? (i < 0 ? 0 : N - 1) : -1;
}

static void test_modes(void **state)
{
    (void)state;
    static const char *const modes[] = {NULL, "fill", "clip", "wrap"};
    static const oly_dtype index_types[] = {OLY_INT8, OLY_INT16, OLY_INT32, OLY_INT64};
    oly_array x = oly_arange(N, OLY_FLOAT32), wild_index = oly_from_host(wild, OLY_INT32, CHECK_SHAPE(N_WILD));
    for (int m = 0; m < 4; m++)
        for (int t = 0; t < 4; t++)
            OLY_SCOPE
            {
                oly_array index = oly_astype(wild_index, index_types[t]);
                bool clip = m == 2;
                float *took = check_fetch(oly_take(x, index, 0, modes[m]));
                float *along = check_fetch(oly_take_along_axis(x, index, 0, modes[m]));
                float *got = check_fetch(oly_at_get(x, OLY_INDEXES(index), .mode = m ? modes[m] : "fill"));
                for (int k = 0; k < N_WILD; k++) {
                    int a = led(wild[k], modes[m], !clip), b = led(wild[k], modes[m], true);
                    assert_true(a < 0 ? isnan(took[k]) : took[k] == (float)a);
                    assert_true(b < 0 ? isnan(along[k]) : along[k] == (float)b);
                    assert_true(b < 0 ? isnan(got[k]) : got[k] == (float)b);
                }
                free(took);
                free(along);
                free(got);
            }
    float *clipped = check_fetch(oly_at_get(x, OLY_INDEXES(wild_index)));
    for (int k = 0; k < N_WILD; k++)
        assert_true(clipped[k] == (float)led(wild[k], "clip", true));
    free(clipped);
}

static void test_unsigned_indexes(void **state)
{
    (void)state;
    static const uint8_t far[] = {4, 5, 255};
    oly_array x = oly_arange(N, OLY_INT32), index = oly_from_host(far, OLY_UINT8, CHECK_SHAPE(3));
    static const oly_dtype types[] = {OLY_UINT8, OLY_UINT16, OLY_UINT32, OLY_UINT64};
    for (int t = 0; t < 4; t++) {
        int32_t *got = check_fetch(oly_take(x, oly_astype(index, types[t]), 0, NULL));
        assert_int_equal(got[0], 4);
        assert_int_equal(got[1], INT32_MIN);
        assert_int_equal(got[2], INT32_MIN);
        free(got);
    }
}

/* The values of elements that do not exist. */
static void test_fill_values(void **state)
{
    (void)state;
    static const int32_t one[] = {9};
    static const struct {
        oly_dtype dtype;
        uint64_t bits;
    } fills[] = {{OLY_BOOL, 1},
                 {OLY_INT8, 0x80},
                 {OLY_INT16, 0x8000},
                 {OLY_INT32, 1u << 31},
                 {OLY_INT64, 1ull << 63},
                 {OLY_UINT8, 0xff},
                 {OLY_UINT16, 0xffff},
                 {OLY_UINT32, 0xffffffffu},
                 {OLY_UINT64, UINT64_MAX},
                 {OLY_FLOAT16, 0x7e00},
                 {OLY_BFLOAT16, 0x7fc0},
                 {OLY_FLOAT32, 0x7fc00000u},
                 {OLY_FLOAT64, 0x7ff8000000000000u}};
    for (size_t k = 0; k < sizeof fills / sizeof fills[0]; k++)
        OLY_SCOPE
        {
            uint64_t bits = 0;
            oly_array x = oly_zeros(fills[k].dtype, 3), index = oly_from_host(one, OLY_INT32, CHECK_SHAPE(1));
            void *got = check_fetch(oly_take(x, index, 0, NULL));
            memcpy(&bits, got, oly_dtype_size(fills[k].dtype));
            assert_true(bits == fills[k].bits);
            free(got);
        }
}

/* -- writing --------------------------------------------------------------------------------------------------------- */

static void test_updates(void **state)
{
    (void)state;
    static const oly_dtype types[] = {OLY_INT8,    OLY_INT16,   OLY_INT32,     OLY_INT64,     OLY_UINT8,
                                      OLY_UINT16,  OLY_UINT32,  OLY_UINT64,    OLY_FLOAT16,   OLY_BFLOAT16,
                                      OLY_FLOAT32, OLY_FLOAT64, OLY_COMPLEX64, OLY_COMPLEX128};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (int clip = 0; clip < 2; clip++)
            OLY_SCOPE
            {
                oly_array x = check_numbers(types[t], CHECK_SHAPE(N, 3), 1, 3, 1),
                          index = oly_from_host(wild, OLY_INT32, CHECK_SHAPE(N_WILD));
                oly_array u = check_numbers(types[t], CHECK_SHAPE(N_WILD, 3), 1, 2, 2);
                const char *mode = clip ? "clip" : NULL;
                double *before = check_fetch(oly_astype(x, OLY_FLOAT64)),
                       *updates = check_fetch(oly_astype(u, OLY_FLOAT64));
                oly_array after[5] = {oly_at_set(x, OLY_INDEXES(index), u, .mode = mode),
                                      oly_at_add(x, OLY_INDEXES(index), u, .mode = mode),
                                      oly_at_mul(x, OLY_INDEXES(index), u, .mode = mode),
                                      oly_at_min(x, OLY_INDEXES(index), u, .mode = mode),
                                      oly_at_max(x, OLY_INDEXES(index), u, .mode = mode)};
                for (int op = 0; op < 5; op++) {
                    double expected[N * 3], *got = check_fetch(oly_astype(after[op], OLY_FLOAT64));
                    memcpy(expected, before, sizeof expected);
                    for (int k = 0; k < N_WILD; k++)
                        for (int j = 0, i = led(wild[k], mode, true); j < 3 && i >= 0; j++) {
                            double *e = &expected[i * 3 + j], v = updates[k * 3 + j];
                            *e = op == 0   ? v
                                 : op == 1 ? *e + v
                                 : op == 2 ? *e * v
                                 : op == 3 ? fmin(*e, v)
                                           : fmax(*e, v);
                        }
                    for (int i = 0; i < N * 3; i++)
                        assert_true(got[i] == expected[i]);
                    free(got);
                }
                free(before);
                free(updates);
            }
}

static void test_mixed_updates(void **state)
{
    (void)state;
    oly_array x = oly_arange(4, OLY_INT32);
    int32_t *added = check_fetch(oly_at_add(x, OLY_INDEXES(1), 2.75)),
            *set = check_fetch(oly_at_set(x, OLY_INDEXES(-1), 7.9));
    assert_int_equal(added[1], 3); /* 1 + 2.75, truncated */
    assert_int_equal(set[3], 7);
    free(added);
    free(set);
    bool *any = check_fetch(oly_at_add(oly_zeros(OLY_BOOL, 3), OLY_INDEXES(2), true));
    assert_true(any[2] && !any[0]);
    free(any);
}

/* -- slices at computed positions ---------------------------------------------------------------------------------- */

static void test_starts(void **state)
{
    (void)state;
    oly_array x = oly_reshape(oly_arange(30, OLY_INT32), 5, 6);
    for (int at = -9; at < 9; at++)
        OLY_SCOPE
        {
            int start = at < 0 ? at + 6 : at;
            start = start < 0 ? 0 : start > 2 ? 2 : start;
            oly_array i = oly_scalar(at, OLY_INT32);
            int32_t *part = check_fetch(oly_dynamic_slice(x, OLY_INDEXES(2, i), OLY_EXTENTS(2, 4)));
            int32_t *known = check_fetch(oly_dynamic_slice(x, OLY_INDEXES(2, at), OLY_EXTENTS(2, 4)));
            oly_array put = oly_dynamic_update_slice(x, oly_zeros(OLY_INT32, 2, 4), OLY_INDEXES(2, i));
            int32_t *whole = check_fetch(put);
            for (int k = 0; k < 8; k++) {
                assert_int_equal(part[k], (2 + k / 4) * 6 + start + k % 4);
                assert_int_equal(known[k], part[k]);
            }
            for (int k = 0; k < 30; k++) {
                bool inside = k / 6 >= 2 && k / 6 < 4 && k % 6 >= start && k % 6 < start + 4;
                assert_int_equal(whole[k], inside ? 0 : k);
            }
            free(part);
            free(known);
            free(whole);
        }
}

static void fill_rows(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    oly_array row = oly_dynamic_slice(carry[0], OLY_INDEXES(i, 0), OLY_EXTENTS(1, 6));
    carry[0] = oly_dynamic_update_slice(carry[0], oly_add(row, i), OLY_INDEXES(i, 0));
    carry[1] = oly_at_add(carry[1], OLY_INDEXES(oly_sub(4, i)), i);
}

static void loop(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    out[1] = oly_zeros(OLY_INT32, 5);
    oly_fori(0, 5, fill_rows, 2, out, NULL);
}

static void test_in_loops(void **state)
{
    (void)state;
    oly_array x = oly_reshape(oly_arange(30, OLY_INT32), 5, 6), rows = NULL, counts = NULL;
    oly_fn f = oly_jit(loop, 1, 2);
    static const char *const specs[] = {"", "x, y", "y", "None, x"};
    for (int s = 0; s < 4; s++) {
        assert_int_equal(oly_call(f, OLY_IN(oly_device_put(x, oly_named(mesh, specs[s]))), OLY_OUT(rows, counts)),
                         OLY_OK);
        int32_t *r = check_fetch(rows), *c = check_fetch(counts);
        for (int k = 0; k < 30; k++)
            assert_int_equal(r[k], k + k / 6);
        for (int k = 0; k < 5; k++)
            assert_int_equal(c[k], 4 - k);
        free(r);
        free(c);
    }
}

/* -- layouts --------------------------------------------------------------------------------------------------------- */

static oly_array take_0(const oly_array *in)
{
    return oly_take(in[0], in[1], 0, NULL);
}
static oly_array take_1(const oly_array *in)
{
    return oly_take(in[0], in[1], 1, "wrap");
}
static oly_array take_flat(const oly_array *in)
{
    return oly_take(in[0], in[1], OLY_FLAT, "clip");
}
static oly_array get_0(const oly_array *in)
{
    return oly_at_get(in[0], OLY_INDEXES(in[1]), .mode = "fill");
}
static oly_array get_both(const oly_array *in)
{
    return oly_at_get(in[0], OLY_INDEXES(in[1], oly_neg(in[1])), .mode = "fill");
}
static oly_array set_0(const oly_array *in)
{
    return oly_at_set(in[0], OLY_INDEXES(in[1]), in[2]);
}
static oly_array add_0(const oly_array *in)
{
    return oly_at_add(in[0], OLY_INDEXES(in[1]), in[2]);
}
static oly_array max_clip(const oly_array *in)
{
    return oly_at_max(in[0], OLY_INDEXES(in[1]), in[2], .mode = "clip");
}
static oly_array add_both(const oly_array *in)
{
    return oly_at_add(in[0], OLY_INDEXES(in[1], oly_neg(in[1])), 1.5);
}
static oly_array segments(const oly_array *in)
{
    return oly_segment_sum(in[2], in[1], 6);
}
static oly_array bins(const oly_array *in)
{
    return oly_bincount(oly_reshape(in[1], -1), 5);
}

static const struct {
    const char *name;
    check_call *call;
    bool reads;
} calls[] = {
    {"take_0", take_0, true},      {"take_1", take_1, true},      {"take_flat", take_flat, true},
    {"get_0", get_0, true},        {"get_both", get_both, true},  {"set_0", set_0, false},
    {"add_0", add_0, false},       {"max_clip", max_clip, false}, {"add_both", add_both, false},
    {"segments", segments, false}, {"bins", bins, false},
};

/* Array, indexes, updates. */
static const char *const layouts[][3] = {{"x, y", "", ""},
                                         {"None, y", "x", "x, y"},
                                         {"(x, y)", "", "x"},
                                         {"y, x", "y", "y, x"},
                                         {"", "(y, x)", ""},
                                         {"x", "x", "None, x"},
                                         {"None, (x, y)", NULL, "(x, y)"}};

static void test_layouts(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{7, 11, 13}, {16, 8, 8}, {70, 3, 40}, {1, 5, 3},
                                       {5, 6, 0},   {6, 0, 4},  {0, 3, 4}};
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            OLY_SCOPE
            {
                int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
                if (m * n == 0 && calls[c].reads) /* nothing to take */
                    continue;
                oly_array in[3] = {check_numbers(OLY_FLOAT32, CHECK_SHAPE(m, n), -9, 9, 1),
                                   check_numbers(OLY_INT32, CHECK_SHAPE(k), -12, 12, 2),
                                   check_numbers(OLY_FLOAT32, CHECK_SHAPE(k, n), -9, 9, 3)};
                check_layouts(calls[c].name, calls[c].call, 3, in, mesh, 7, layouts);
            }
}

static oly_array along_0(const oly_array *in)
{
    return oly_take_along_axis(in[0], in[1], 0, NULL);
}
static oly_array along_1(const oly_array *in)
{
    return oly_take_along_axis(in[0], oly_transpose(in[1]), 1, "clip");
}
static oly_array part_anywhere(const oly_array *in)
{
    oly_array i = oly_at_get(in[1], OLY_INDEXES(0, 0)), j = oly_at_get(in[1], OLY_INDEXES(1, 2));
    return oly_dynamic_slice(in[0], OLY_INDEXES(i, j), OLY_EXTENTS(4, 7));
}
static oly_array put_anywhere(const oly_array *in)
{
    oly_array i = oly_at_get(in[1], OLY_INDEXES(0, 0)), j = oly_at_get(in[1], OLY_INDEXES(1, 2));
    return oly_dynamic_update_slice(in[0], oly_slice(in[0], "1:5, :"), OLY_INDEXES(i, j));
}

/* Many columns, looked up in blocks: sizes that are no multiples of these, indexes outside, every size of an element, batches in front. */
static void test_many_columns(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{64, 64, 64}, {150, 130, 70}, {65, 200, 129}, {5, 90, 300}};
    static const char *const modes[] = {NULL, "clip", "wrap"}, *const spread[][3] = {{"x, y", ""},
                                                                                     {"None, (x, y)", "x"},
                                                                                     {"y", "None, x"}};
    static const oly_dtype types[] = {OLY_FLOAT32, OLY_INT8, OLY_FLOAT16, OLY_FLOAT64, OLY_COMPLEX128};
    for (int s = 0; s < 4; s++)
        OLY_SCOPE
        {
            int64_t rows = shapes[s][0], taken = shapes[s][1], columns = shapes[s][2];
            oly_array x = check_numbers(OLY_FLOAT32, CHECK_SHAPE(rows, columns), -100, 100, 1);
            oly_array index = check_numbers(OLY_INT32, CHECK_SHAPE(taken, columns), (int)-rows - 9, (int)rows + 9, 2);
            check_layouts("many columns", along_0, 2, (oly_array[]){x, index}, mesh, 3, spread);
            float *values = check_fetch(x);
            int32_t *at = check_fetch(index);
            for (int m = 0; m < 3; m++)
                for (int t = 0; t < 5; t++) {
                    oly_array typed = oly_astype(x, types[t]), wide = m == 1 ? oly_astype(index, OLY_INT64) : index;
                    oly_array y = oly_take_along_axis(typed, wide, 0, modes[m]);
                    oly_array z =
                        oly_take_along_axis(oly_stack(0, typed, oly_neg(typed)), oly_stack(0, wide, wide), 1, modes[m]);
                    float *got = check_fetch(oly_astype(oly_real(y), OLY_FLOAT32)),
                          *both = check_fetch(oly_astype(oly_real(z), OLY_FLOAT32));
                    for (int64_t k = 0; k < taken * columns; k++) {
                        int64_t i = at[k], n = rows;
                        i = m == 2 ? (i % n + n) % n : i < 0 ? i + n : i;
                        bool inside = i >= 0 && i < n;
                        i = m == 1 && !inside ? (i < 0 ? 0 : n - 1) : i;
                        float wanted =
                            m == 0 && !inside ? types[t] == OLY_INT8 ? -128 : NAN : values[i * columns + k % columns];
                        float turned = m == 0 && !inside ? wanted : -wanted;
                        if (!(got[k] == wanted || (wanted != wanted && got[k] != got[k])) ||
                            !(both[k] == wanted || (wanted != wanted && both[k] != both[k])) ||
                            !(both[taken * columns + k] == turned ||
                              (turned != turned && both[taken * columns + k] != both[taken * columns + k])))
                            fail_msg("shape %d, mode %d, type %d: element %d is %g, %g and %g instead of %g", s, m, t,
                                     (int)k, got[k], both[k], both[taken * columns + k], wanted);
                    }
                    free(got);
                    free(both);
                }
            free(values);
            free(at);
        }
}

static void test_more_layouts(void **state)
{
    (void)state;
    static const char *const more[][3] = {{"x, y", ""},     {"None, y", "None, y"}, {"(x, y)", "x"},
                                          {"y, x", "x, y"}, {"None, (y, x)"},       {""}};
    oly_array in[2] = {check_numbers(OLY_FLOAT32, CHECK_SHAPE(9, 11), -9, 9, 1),
                       check_numbers(OLY_INT32, CHECK_SHAPE(5, 11), -12, 12, 2)};
    check_layouts("along 0", along_0, 2, in, mesh, 6, more);
    check_layouts("part anywhere", part_anywhere, 2, in, mesh, 6, more);
    check_layouts("put anywhere", put_anywhere, 2, in, mesh, 6, more);
    in[1] = check_numbers(OLY_INT32, CHECK_SHAPE(4, 9), -12, 12, 2);
    check_layouts("along 1", along_1, 2, in, mesh, 6, more);
}

/* Few elements of many: each device looks in its own part. Zeros of both signs and NaN keep their bits. */
static oly_array few(const oly_array *in)
{
    return oly_take(in[0], in[1], 0, NULL);
}
static oly_array few_of_slice(const oly_array *in)
{
    return oly_take(oly_slice(in[0], "41:"), in[1], 0, NULL);
}
static oly_array few_rows(const oly_array *in)
{
    return oly_at_get(oly_reshape(in[0], 13, 7), OLY_INDEXES(in[1]), .mode = "fill");
}

static void test_parts(void **state)
{
    (void)state;
    static const char *const specs[][3] = {{"(x, y)", ""}, {"y", "x"}, {"(y, x)", ""}, {"x", "y"}, {"x", "x"}};
    static const float special[] = {-0.f, 0.f, NAN, INFINITY, -INFINITY, 1e-42f, -1.5f};
    float data[91];
    for (int i = 0; i < 91; i++)
        data[i] = special[i * 5 % 7];
    for (int t = 0; t < OLY_N_DTYPES; t++)
        OLY_SCOPE
        {
            oly_array x = oly_astype(oly_from_host(data, OLY_FLOAT32, CHECK_SHAPE(91)), (oly_dtype)t);
            oly_array index = check_numbers(OLY_INT32, CHECK_SHAPE(9), -100, 100, (uint32_t)t), in[2] = {x, index};
            check_layouts("few", few, 2, in, mesh, 5, specs);
            check_layouts("few of a slice", few_of_slice, 2, in, mesh, 5, specs);
            in[1] = check_numbers(OLY_INT32, CHECK_SHAPE(2), -14, 14, 7);
            check_layouts("few rows", few_rows, 2, in, mesh, 5, specs);
        }
}

/* Many updates of large arrays: several chunks. */
static void test_large(void **state)
{
    (void)state;
    enum { ROWS = 3000, COLUMNS = 100, UPDATES = 20000 };
    oly_array x = check_numbers(OLY_INT32, CHECK_SHAPE(ROWS, COLUMNS), -9, 9, 1),
              i = check_numbers(OLY_INT32, CHECK_SHAPE(UPDATES), 0, ROWS - 1, 2);
    oly_array flat = check_numbers(OLY_INT32, CHECK_SHAPE(UPDATES), 0, ROWS * COLUMNS - 1, 3);
    int32_t *data = check_fetch(x), *rows = check_fetch(i), *places = check_fetch(flat);
    int32_t *took = check_fetch(oly_take(x, i, 0, NULL)), *sums = check_fetch(oly_at_add(x, OLY_INDEXES(i), 1));
    int32_t *single = check_fetch(oly_at_set(oly_reshape(x, -1), OLY_INDEXES(flat), oly_arange(UPDATES, OLY_INT32)));
    int32_t *order = calloc(ROWS * COLUMNS, sizeof *order), counts[ROWS] = {0};
    for (int k = 0; k < UPDATES; k++) {
        counts[rows[k]]++;
        order[places[k]] = k + 1;
        assert_memory_equal(&took[k * COLUMNS], &data[rows[k] * COLUMNS], sizeof *took * COLUMNS);
    }
    for (int k = 0; k < ROWS * COLUMNS; k++) {
        assert_int_equal(sums[k], data[k] + counts[k / COLUMNS]);
        assert_int_equal(single[k], order[k] ? order[k] - 1 : data[k]);
    }
    free(data), free(rows), free(places), free(took), free(sums), free(single), free(order);
}

/* -- mapped ---------------------------------------------------------------------------------------------------------- */

static void by_row(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array at = oly_at_get(in[1], OLY_INDEXES(0));
    out[0] = oly_take(in[0], in[1], 0, "clip");
    out[1] = oly_at_add(in[0], OLY_INDEXES(in[1]), 1.0);
    out[2] = oly_dynamic_slice(in[0], OLY_INDEXES(at), OLY_EXTENTS(4));
    out[3] = oly_dynamic_update_slice(in[0], oly_zeros(OLY_FLOAT32, 2), OLY_INDEXES(at));
    out[4] = oly_searchsorted(oly_sort(in[0], 0), in[1], NULL);
}

static void by_shard(const oly_array *in, oly_array *out, void *user)
{
    oly_array row[2] = {oly_reshape(in[0], 9), oly_reshape(in[1], 3)};
    by_row(row, out, user);
    for (int k = 0; k < 5; k++)
        out[k] = oly_reshape(out[k], 1, oly_size(out[k]));
}

static void test_mapped(void **state)
{
    (void)state;
    oly_array x = check_numbers(OLY_FLOAT32, CHECK_SHAPE(8, 9), -9, 9, 1),
              i = check_numbers(OLY_INT32, CHECK_SHAPE(8, 3), -9, 9, 2);
    oly_array batch[5], shards[5], *to_batch[5], *to_shards[5];
    for (int k = 0; k < 5; k++) {
        to_batch[k] = &batch[k];
        to_shards[k] = &shards[k];
    }
    assert_int_equal(oly_vmap(by_row, NULL, OLY_IN(x, i), OLY_AXES_OF(0, 0), 5, to_batch, OLY_AXES_OF(0, 0, 0, 0, 0)),
                     OLY_OK);
    assert_int_equal(oly_shard_map(by_shard, NULL, mesh, OLY_IN(x, i), OLY_SPECS("(x, y)", "(x, y)"), 5, to_shards,
                                   OLY_SPECS("(x, y)", "(x, y)", "(x, y)", "(x, y)", "(x, y)")),
                     OLY_OK);
    for (int row = 0; row < 8; row++)
        OLY_SCOPE
        {
            oly_array in[2] = {oly_at_get(x, OLY_INDEXES(row)), oly_at_get(i, OLY_INDEXES(row))}, out[5];
            by_row(in, out, NULL);
            for (int k = 0; k < 5; k++) {
                void *expected = check_fetch(out[k]), *got = check_fetch(oly_at_get(batch[k], OLY_INDEXES(row)));
                void *shard = check_fetch(oly_at_get(shards[k], OLY_INDEXES(row)));
                assert_memory_equal(expected, got, (size_t)oly_size(out[k]) * 4);
                assert_memory_equal(expected, shard, (size_t)oly_size(out[k]) * 4);
                free(expected);
                free(got);
                free(shard);
            }
        }
}

/* -- errors ---------------------------------------------------------------------------------------------------------- */

static void test_errors(void **state)
{
    (void)state;
    oly_array x = oly_zeros(OLY_FLOAT32, 3, 4), i = oly_zeros(OLY_INT32, 2), f = oly_zeros(OLY_FLOAT32, 2);
    oly_array empty = oly_zeros(OLY_FLOAT32, 0, 4);
    CHECK_REFUSED(oly_take(x, f, 0, NULL), OLY_DTYPE, "indexes are integers");
    CHECK_REFUSED(oly_take(x, i, 2, NULL), OLY_SHAPE, "axis 2");
    CHECK_REFUSED(oly_take(x, i, 0, "raise"), OLY_PARSE, "raise");
    CHECK_REFUSED(oly_take(empty, i, 0, NULL), OLY_INVALID, "no elements to take");
    CHECK_REFUSED(oly_take_along_axis(x, i, 0, NULL), OLY_SHAPE, "as many dimensions");
    CHECK_REFUSED(oly_take_along_axis(x, oly_zeros(OLY_INT32, 2, 3), 0, NULL), OLY_SHAPE, "dimension 1");
    CHECK_REFUSED(oly_at_get(x, OLY_INDEXES(i, i, i)), OLY_SHAPE, "3 indexes");
    CHECK_REFUSED(oly_at_set(x, OLY_INDEXES(i), oly_zeros(OLY_FLOAT32, 3, 4)), OLY_SHAPE, "does not broadcast");
    CHECK_REFUSED(oly_segment_sum(x, i, 2), OLY_SHAPE, "segments");
    CHECK_REFUSED(oly_bincount(x, 2), OLY_SHAPE, "one dimension");
    CHECK_REFUSED(oly_bincount(f, 2), OLY_DTYPE, "integers");
    CHECK_REFUSED(oly_dynamic_slice(x, OLY_INDEXES(0), OLY_EXTENTS(1, 1)), OLY_SHAPE, "1 starts");
    CHECK_REFUSED(oly_dynamic_slice(x, OLY_INDEXES(0, 0), OLY_EXTENTS(1, 5)), OLY_SHAPE, "not a part");
    CHECK_REFUSED(oly_dynamic_slice(x, OLY_INDEXES(0, i), OLY_EXTENTS(1, 1)), OLY_SHAPE, "no dimensions");
    CHECK_REFUSED(oly_dynamic_update_slice(x, oly_zeros(OLY_FLOAT32, 4, 4), OLY_INDEXES(0, 0)), OLY_SHAPE,
                  "not a part");
    assert_int_equal(oly_size(oly_take(empty, oly_zeros(OLY_INT32, 0), 0, NULL)), 0);
    assert_null(oly_take(NULL, i, 0, NULL));
    oly_clear_error();
}

/* Array and updates split in any way, over axes some of which the other uses: the array's elements stay, and every
 * update is applied. */
static void test_added_parts(void **state)
{
    (void)state;
    static const char *const specs[] = {"", "x", "y", "(x,y)", "(y,x)", "None,x", "None,(x,y)", "x,y", "y,x"};
    enum { SPECS = sizeof specs / sizeof *specs };
    for (int trial = 0; trial < 6 * SPECS * SPECS; trial++)
        OLY_SCOPE
        {
            int a = trial % SPECS, b = trial / SPECS % SPECS, rows = (int[]){1, 2, 3, 5, 9, 13}[trial / SPECS / SPECS],
                m = 1 + trial % 7;
            int32_t index[8], wanted[13][3];
            for (int k = 0; k < rows * 3; k++)
                wanted[k / 3][k % 3] = 100 + k;
            for (int k = 0; k < m; k++) {
                index[k] = (k * 5 + trial) % rows;
                for (int j = 0; j < 3; j++)
                    wanted[index[k]][j] += 1000 * (3 * k + j);
            }
            oly_array x = oly_add(oly_reshape(oly_arange((int64_t)rows * 3, OLY_INT32), rows, 3), 100),
                      u = oly_mul(oly_reshape(oly_arange((int64_t)m * 3, OLY_INT32), m, 3), 1000);
            oly_array got = oly_at_add(oly_device_put(x, oly_named(mesh, specs[a])),
                                       OLY_INDEXES(oly_from_host(index, OLY_INT32, CHECK_SHAPE(m))),
                                       oly_device_put(u, oly_named(mesh, specs[b])));
            int32_t *values = check_fetch(got);
            for (int k = 0; k < rows * 3; k++)
                if (values[k] != wanted[k / 3][k % 3])
                    fail_msg("%d updates as %s into %d rows as %s: element %d is %d, must be %d", m, specs[b], rows,
                             specs[a], k, values[k], wanted[k / 3][k % 3]);
            free(values);
        }
}

static int start(void **state)
{
    int ready = check_start(state);
    mesh = oly_make_mesh("x=2, y=4");
    return mesh ? ready : -1;
}

static void add_and_sum(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_at_add(in[0], OLY_INDEXES(oly_full(1, OLY_INT32, 6)), oly_slice(in[1], "1:7")));
}

/* The array is split over more axes than those its updates are summed over. */
static void test_sum_of_scattered(void **state)
{
    (void)state;
    oly_mesh meshes[] = {oly_make_mesh("x=4, y=2"), oly_make_mesh("x=2, y=4")};
    static const char *const specs[] = {"", "x", "y", "(x,y)", "(y,x)"};
    oly_array x = oly_mod(oly_arange(8, OLY_FLOAT32), 5);
    for (int k = 0; k < 50; k++) {
        oly_array a = oly_device_put(x, oly_named(meshes[0], specs[k % 5])), sum = NULL;
        oly_array b = oly_device_put(x, oly_named(meshes[k / 25], specs[k / 5 % 5]));
        oly_call(oly_jit(add_and_sum, 2, 1), OLY_IN(a, b), OLY_OUT(sum));
        float got = 0;
        assert_int_equal(oly_process_allgather(sum, &got, sizeof got), OLY_OK);
        if (got != 24)
            fail_msg("%s and %s: %g, not 24", specs[k % 5], specs[k / 5 % 5], (double)got);
    }
}

static void take_rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_take(in[0], in[1], 0, NULL);
}
static void take_columns(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_take(in[0], in[1], 1, NULL);
}
static int64_t moved(oly_function f, oly_array x, oly_array index)
{
    oly_plan_costs costs;
    assert_int_equal(oly_costs_n(&costs, oly_jit(f, 2, 1), 2, (oly_array[]){x, index}), OLY_OK);
    return costs.wire_bytes;
}

/* Columns are looked up row by row by the same indexes, which are not moved once for each row. */
static void test_columns_move_as_rows_do(void **state)
{
    (void)state;
    static const char *const specs[][2] = {{"", ""},
                                           {"x", "None, x"},
                                           {"None, x", "x"},
                                           {"y, x", "x, y"},
                                           {"None, (x,y)", "(x,y)"}},
                             *const of_index[] = {"", "x", "y", "(x,y)"};
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 4; b++)
            for (int64_t n = 8; n <= 64; n *= 2)
                OLY_SCOPE
                {
                    oly_array x = oly_zeros(OLY_FLOAT32, 64, 64);
                    oly_array index = oly_device_put(oly_zeros(OLY_INT32, n), oly_named(mesh, of_index[b]));
                    int64_t rows = moved(take_rows, oly_device_put(x, oly_named(mesh, specs[a][0])), index);
                    int64_t columns = moved(take_columns, oly_device_put(x, oly_named(mesh, specs[a][1])), index);
                    if (columns > rows)
                        fail_msg("%d columns of %s by indexes %s move %d bytes, rows %d", (int)n, specs[a][1],
                                 of_index[b], (int)columns, (int)rows);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_modes, start),
        cmocka_unit_test(test_unsigned_indexes),
        cmocka_unit_test(test_fill_values),
        cmocka_unit_test(test_updates),
        cmocka_unit_test(test_mixed_updates),
        cmocka_unit_test(test_starts),
        cmocka_unit_test(test_in_loops),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_more_layouts),
        cmocka_unit_test(test_many_columns),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_added_parts),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_sum_of_scattered),
        cmocka_unit_test(test_columns_move_as_rows_do),
        cmocka_unit_test(test_mapped),
        cmocka_unit_test_teardown(test_errors, check_finish),
    };
    return CHECK_MAIN(tests);
}
