/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8  The 8-bit floating types: every value and rounding against ml_dtypes
 * (tests/operations/float8); arithmetic through float32, promotion, printing, reductions, derivatives, collectives and
 * random numbers against JAX 0.10.2. */
#include "check_element.h"
#include "check_session.h"
#include "graph/type.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef OLY_SOURCE_DIR
#define OLY_SOURCE_DIR "."
#endif

enum { MOST_LINES = 3000 };

static const struct {
    oly_dtype dtype;
    const char *name;
} types[] = {{OLY_FLOAT8_E4M3FN, "e4m3fn"}, {OLY_FLOAT8_E5M2, "e5m2"}};
enum { N_TYPES = sizeof types / sizeof *types };

static oly_mesh row; /* i=8 */

static void start(void)
{
    check_begin();
    row = oly_make_mesh("i=8");
}

/* -- the files ------------------------------------------------------------------------------------------------------- */

/* The lines of one kind: bits of operands and results, NaN separately. */
typedef struct lines {
    int n;
    uint64_t from[MOST_LINES], to[MOST_LINES];
    bool nan[MOST_LINES];
} lines;

static lines read_lines(const char *name, const char *kind, int base)
{
    static lines found;
    char path[600], line[200], word[20], from[40], to[40];
    snprintf(path, sizeof path, "%s/tests/operations/float8/%s.txt", OLY_SOURCE_DIR, name);
    FILE *file = fopen(path, "r");
    found.n = 0;
    if (!file)
        fail_msg("cannot open %s", path);
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%19s %39s %39s", word, from, to) != 3 || strcmp(word, kind) != 0)
            continue;
        assert_true(found.n < MOST_LINES);
        found.from[found.n] = base == 10 ? (uint64_t)strtoll(from, NULL, 10) : strtoull(from, NULL, base);
        found.nan[found.n] = strcmp(to, "nan") == 0;
        found.to[found.n] = found.nan[found.n] ? 0 : strtoull(to, NULL, 16);
        found.n++;
    }
    fclose(file);
    return found;
}

/* n elements of `bytes` bytes each from the low bytes of words, split over the devices. */
static oly_array split(int n, const uint64_t *words, oly_dtype dtype)
{
    size_t bytes = oly_dtype_size(dtype);
    char *data = malloc((size_t)n * bytes);
    for (int k = 0; k < n; k++)
        memcpy(data + (size_t)k * bytes, &words[k], bytes);
    oly_array x = oly_device_put(oly_from_host(data, dtype, 1, (int64_t[]){n}), oly_named(row, "i"));
    free(data);
    return x;
}

static void check_bits(const char *what, oly_array got, const lines *l)
{
    oly_dtype dtype = oly_dtype_of(got);
    size_t bytes = oly_dtype_size(dtype);
    char *data = malloc((size_t)l->n * bytes);
    assert_int_equal(oly_process_allgather(got, data, (size_t)l->n * bytes), OLY_OK);
    for (int k = 0; k < l->n; k++) {
        uint64_t bits = 0;
        memcpy(&bits, data + (size_t)k * bytes, bytes);
        bool right = l->nan[k] ? isnan(element_part(dtype, data, k, 0)) : bits == l->to[k];
        if (!right)
            fail_msg("%s of %" PRIx64 ": got %" PRIx64 ", expected %" PRIx64 "%s", what, l->from[k], bits, l->to[k],
                     l->nan[k] ? " (NaN)" : "");
    }
    free(data);
}

static void conversions_are_those_of_ml_dtypes(void **state)
{
    (void)state;
    start();
    for (int t = 0; t < N_TYPES; t++)
        OLY_SCOPE
        {
            static lines l;
            l = read_lines(types[t].name, "value", 16);
            assert_int_equal(l.n, 256);
            check_bits("value", oly_astype(split(l.n, l.from, types[t].dtype), OLY_FLOAT32), &l);
            l = read_lines(types[t].name, "single", 16);
            assert_true(l.n > 900);
            check_bits("single", oly_astype(split(l.n, l.from, OLY_FLOAT32), types[t].dtype), &l);
            l = read_lines(types[t].name, "double", 16);
            assert_true(l.n > 900);
            check_bits("double", oly_astype(split(l.n, l.from, OLY_FLOAT64), types[t].dtype), &l);
            l = read_lines(types[t].name, "whole", 10);
            assert_int_equal(l.n, 40);
            check_bits("whole", oly_astype(split(l.n, l.from, OLY_INT32), types[t].dtype), &l);
            check_bits("whole", oly_astype(split(l.n, l.from, OLY_INT64), types[t].dtype), &l);
        }
    check_end();
}

/* -- arithmetic ------------------------------------------------------------------------------------------------------ */

/* All 256 elements. */
static oly_array every(oly_dtype dtype)
{
    uint64_t words[256];
    for (int k = 0; k < 256; k++)
        words[k] = (uint64_t)k;
    return split(256, words, dtype);
}

static uint64_t digest(oly_array x)
{
    oly_dtype dtype = oly_dtype_of(x);
    unsigned char *data = malloc(65536);
    uint64_t value = 0xcbf29ce484222325;
    assert_int_equal(oly_process_allgather(x, data, 65536), OLY_OK);
    for (int k = 0; k < 65536; k++) {
        uint64_t byte = isnan(element_part(dtype, data, k, 0)) ? 0xff : data[k];
        value = (value ^ byte) * 0x100000001b3;
    }
    free(data);
    return value;
}

static uint64_t expected_digest(const char *name, const char *operation)
{
    char path[600], line[200], word[20], of[20];
    uint64_t value = 0;
    snprintf(path, sizeof path, "%s/tests/operations/float8/%s.txt", OLY_SOURCE_DIR, name);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("cannot open %s", path);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "%19s %19s %" SCNx64, word, of, &value) == 3 && !strcmp(word, "pairs") &&
            !strcmp(of, operation))
            break;
    fclose(file);
    return value;
}

static void arithmetic_of_all_pairs_is_that_of_ml_dtypes(void **state)
{
    (void)state;
    start();
    for (int t = 0; t < N_TYPES; t++)
        OLY_SCOPE
        {
            oly_array x = oly_reshape(every(types[t].dtype), 256, 1), y = oly_reshape(every(types[t].dtype), 1, 256);
            assert_true(digest(oly_add(x, y)) == expected_digest(types[t].name, "add"));
            assert_true(digest(oly_sub(x, y)) == expected_digest(types[t].name, "sub"));
            assert_true(digest(oly_mul(x, y)) == expected_digest(types[t].name, "mul"));
            assert_true(digest(oly_div(x, y)) == expected_digest(types[t].name, "div"));
        }
    check_end();
}

/* The same elements, all NaNs being equal. */
static void check_same(const char *what, oly_array got, oly_array want)
{
    oly_dtype dtype = oly_dtype_of(want);
    size_t bytes = (size_t)oly_size(want) * oly_dtype_size(dtype);
    char *a = malloc(bytes), *b = malloc(bytes);
    assert_int_equal(oly_dtype_of(got), dtype);
    assert_int_equal(oly_process_allgather(got, a, bytes), OLY_OK);
    assert_int_equal(oly_process_allgather(want, b, bytes), OLY_OK);
    for (int64_t k = 0; k < oly_size(want); k++)
        for (int part = 0; part < element_parts(dtype); part++) {
            double x = element_part(dtype, a, k, part), y = element_part(dtype, b, k, part);
            if (!(x == y && signbit(x) == signbit(y)) && !(isnan(x) && isnan(y)))
                fail_msg("%s, element %d: got %g, expected %g", what, (int)k, x, y);
        }
    free(a);
    free(b);
}

#define FUNCTION(name)                                                                                                 \
    static oly_array f_##name(oly_array x)                                                                             \
    {                                                                                                                  \
        return oly_##name(x);                                                                                          \
    }
FUNCTION(neg)
FUNCTION(abs)
FUNCTION(sign)
FUNCTION(exp)
FUNCTION(log)
FUNCTION(sqrt)
FUNCTION(rsqrt)
FUNCTION(sin)
FUNCTION(cos)
FUNCTION(tan)
FUNCTION(tanh)
FUNCTION(sigmoid)
FUNCTION(floor)
FUNCTION(ceil)
FUNCTION(erf)
FUNCTION(expm1)
FUNCTION(log1p)
FUNCTION(square)
FUNCTION(isfinite)
FUNCTION(isnan)
static const struct {
    const char *name;
    oly_array (*function)(oly_array);
} functions[] = {{"neg", f_neg},     {"abs", f_abs},       {"sign", f_sign},         {"exp", f_exp},
                 {"log", f_log},     {"sqrt", f_sqrt},     {"rsqrt", f_rsqrt},       {"sin", f_sin},
                 {"cos", f_cos},     {"tan", f_tan},       {"tanh", f_tanh},         {"sigmoid", f_sigmoid},
                 {"floor", f_floor}, {"ceil", f_ceil},     {"erf", f_erf},           {"expm1", f_expm1},
                 {"log1p", f_log1p}, {"square", f_square}, {"isfinite", f_isfinite}, {"isnan", f_isnan}};

static void functions_go_through_float32(void **state)
{
    (void)state;
    start();
    for (int t = 0; t < N_TYPES; t++)
        OLY_SCOPE
        {
            oly_array x = every(types[t].dtype), wide = oly_astype(x, OLY_FLOAT32);
            for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
                oly_array want = functions[k].function(wide), got = functions[k].function(x);
                if (oly_dtype_of(want) == OLY_FLOAT32)
                    want = oly_astype(want, types[t].dtype);
                check_same(functions[k].name, got, want);
            }
            oly_array y = oly_flip(x), wide_y = oly_flip(wide);
            check_same("max", oly_max2(x, y), oly_astype(oly_max2(wide, wide_y), types[t].dtype));
            check_same("min", oly_min2(x, y), oly_astype(oly_min2(wide, wide_y), types[t].dtype));
            check_same("rem", oly_rem(x, y), oly_astype(oly_rem(wide, wide_y), types[t].dtype));
            check_same("pow", oly_pow(x, y), oly_astype(oly_pow(wide, wide_y), types[t].dtype));
            check_same("lt", oly_lt(x, y), oly_lt(wide, wide_y));
            check_same("eq", oly_eq(x, y), oly_eq(wide, wide_y));
            check_same("where", oly_where(oly_lt(x, y), x, y),
                       oly_astype(oly_where(oly_lt(wide, wide_y), wide, wide_y), types[t].dtype));
        }
    check_end();
}

static void other_types_convert_through_float32(void **state)
{
    (void)state;
    start();
    for (int t = 0; t < N_TYPES; t++)
        for (int other = 0; other < OLY_N_DTYPES; other++)
            OLY_SCOPE
            {
                oly_array x = every(types[t].dtype), wide = oly_astype(x, OLY_FLOAT32);
                oly_array there = oly_convert_element_type(x, (oly_dtype)other);
                check_same(oly_dtype_name((oly_dtype)other), there, oly_convert_element_type(wide, (oly_dtype)other));
                check_same(
                    oly_dtype_name((oly_dtype)other), oly_convert_element_type(there, types[t].dtype),
                    oly_convert_element_type(oly_convert_element_type(oly_real(there), OLY_FLOAT32), types[t].dtype));
            }
    check_end();
}

/* -- types ----------------------------------------------------------------------------------------------------------- */

/* source: jax.numpy.promote_types, JAX 0.10.2 */
static void only_numbers_and_integers_meet_them(void **state)
{
    (void)state;
    start();
    assert_string_equal(oly_dtype_name(OLY_FLOAT8_E4M3FN), "float8_e4m3fn");
    assert_string_equal(oly_dtype_name(OLY_FLOAT8_E5M2), "float8_e5m2");
    for (int t = 0; t < N_TYPES; t++)
        for (int other = 0; other < OLY_N_DTYPES; other++) {
            oly_dtype a = types[t].dtype, b = (oly_dtype)other;
            bool meets = a == b || oly_dtype_kind(b) < OLY_KIND_FLOAT;
            for (int turn = 0; turn < 2; turn++) {
                oly_dtype meet = turn ? oly_promote_types(b, a) : oly_promote_types(a, b);
                assert_int_equal(meet, meets ? a : OLY_N_DTYPES);
                assert_int_equal(oly_last_status(), meets ? OLY_OK : OLY_DTYPE);
                oly_clear_error();
            }
        }
    OLY_SCOPE
    {
        oly_array x = oly_ones(OLY_FLOAT8_E4M3FN, 3), y = oly_ones(OLY_FLOAT8_E5M2, 3), f = oly_ones(OLY_FLOAT32, 3);
        check_type(oly_add(x, 1), "float8_e4m3fn[3]");
        check_type(oly_mul(2.5, y), "float8_e5m2[3]");
        check_type(oly_add(x, oly_arange(3, OLY_INT32)), "float8_e4m3fn[3]");
        check_type(oly_add(x, true), "float8_e4m3fn[3]");
        check_type(oly_eq(x, 1), "bool[3]");
        check_type(oly_concatenate(0, x, oly_arange(2, OLY_INT32)), "float8_e4m3fn[5]");
        const char *text = "8-bit floating types are not promoted";
        CHECK_REFUSED(oly_add(x, f), OLY_DTYPE, text);
        CHECK_REFUSED(oly_add(x, y), OLY_DTYPE, "float8_e4m3fn and float8_e5m2 have no common type");
        CHECK_REFUSED(oly_mul(oly_ones(OLY_BFLOAT16, 3), y), OLY_DTYPE, text);
        CHECK_REFUSED(oly_mul(x, __builtin_complex(1.0, 2.0)), OLY_DTYPE, text);
        CHECK_REFUSED(oly_lt(x, f), OLY_DTYPE, text);
        CHECK_REFUSED(oly_where(true, x, y), OLY_DTYPE, text);
        CHECK_REFUSED(oly_concatenate(0, x, y), OLY_DTYPE, text);
        CHECK_REFUSED(oly_matmul(oly_reshape(x, 1, 3), oly_reshape(y, 3, 1)), OLY_DTYPE, text);
        CHECK_REFUSED(oly_einsum("i,i->", x, f), OLY_DTYPE, text);
        CHECK_REFUSED(oly_update(x, "1:", oly_slice(f, "1:")), OLY_DTYPE, text);
        CHECK_REFUSED(oly_update(f, "1:", oly_slice(x, "1:")), OLY_DTYPE, text);
        CHECK_REFUSED(oly_at_set(x, OLY_INDEXES(1), oly_scalar(2.5, OLY_FLOAT32)), OLY_DTYPE, text);
        CHECK_REFUSED(oly_at_add(x, OLY_INDEXES(1), oly_scalar(2.5, OLY_FLOAT32)), OLY_DTYPE, text);
        CHECK_REFUSED(oly_dynamic_update_slice(x, oly_slice(f, "1:"), OLY_INDEXES(1)), OLY_DTYPE, text);
        check_type(oly_update(x, "1:", 2.5), "float8_e4m3fn[3]");
        check_type(oly_update(x, "1:", oly_arange(2, OLY_INT32)), "float8_e4m3fn[3]");
        check_type(oly_update(oly_arange(3, OLY_INT32), "1:", oly_slice(x, "1:")), "int32[3]");
    }
    check_end();
}

/* 0.1, 1.5, -3, 448 and 0.001 */
static oly_array some(oly_dtype dtype)
{
    const float x[] = {0.1f, 1.5f, -3, 448, 1e-3f};
    return oly_astype(oly_from_host(x, OLY_FLOAT32, 1, (int64_t[]){5}), dtype);
}

static void check_text(oly_array x, const char *wanted)
{
    char text[400];
    oly_array_str(x, text, sizeof text);
    assert_string_equal(text, wanted);
}

static void texts_and_results_are_those_of_jax(void **state)
{
    (void)state;
    start();
    OLY_SCOPE
    {
        oly_array x = some(OLY_FLOAT8_E4M3FN), y = oly_astype(x, OLY_FLOAT8_E5M2);
        check_text(x, "[0.101562 1.5 -3 448 0.00195312]");
        check_text(y, "[0.09375 1.5 -3 448 0.00195312]");
        char text[100];
        oly_array_repr(oly_astype(oly_arange(2, OLY_INT32), OLY_FLOAT8_E4M3FN), text, sizeof text);
        assert_string_equal(text, "Array([0, 1], dtype=float8_e4m3fn)");
        check_text(oly_add(x, 1), "[1.125 2.5 -2 448 1]");
        check_text(oly_mul(x, 2.5), "[0.25 3.75 -7.5 nan 0.00390625]");
        check_text(oly_div(x, 3), "[0.0351562 0.5 -1 144 0]");
        check_text(oly_exp(x), "[1.125 4.5 0.0507812 nan 1]");
        check_text(oly_sin(y), "[0.09375 1 -0.15625 1 0.00195312]");
        check_text(oly_sum(x), "448");
        check_text(oly_mean(x), "88");
        check_text(oly_max(x), "448");
        check_text(oly_prod(x), "-0.40625");
        check_text(oly_cumsum(x, 0), "[0.101562 1.625 -1.375 448 448]");
        check_text(oly_sort(x, 0), "[-3 0.00195312 0.101562 1.5 448]");
        check_text(oly_argsort(x, 0), "[2 4 0 1 3]");
        check_text(oly_argmax(x), "3");
        check_text(oly_argmax(y), "3");
        check_text(oly_nan_to_num(oly_div(x, 0)), "[0 0 0 0 0]");
        check_text(oly_take(x, oly_full(9, OLY_INT32, 1), 0, "fill"), "[nan]");
        check_text(oly_nextafter(x, some(OLY_FLOAT8_E4M3FN)), "[0.101562 1.5 -3 448 0.00195312]");
        check_text(oly_bitcast_convert_type(x, OLY_UINT8), "[ 29  60 196 126   1]");
        check_text(oly_full(0.3, OLY_FLOAT8_E4M3FN, 2), "[0.3125 0.3125]");
        check_text(oly_arange(5, OLY_FLOAT8_E5M2), "[0 1 2 3 4]");
        check_text(oly_matmul(oly_reshape(x, 1, 5), oly_reshape(x, 5, 1)), "[[nan]]");
        check_text(oly_matmul(oly_slice(x, ":3"), oly_slice(x, ":3")), "11");
        assert_true(oly_item(oly_full(-448, OLY_FLOAT8_E4M3FN, 1)) == -448);
        check_text(oly_random_uniform(oly_random_key(0), OLY_FLOAT8_E4M3FN, 4), "[0.625 0.5 0.125 0.125]");
        check_text(oly_random_normal(oly_random_key(0), OLY_FLOAT8_E5M2, 4), "[0.15625 0.15625 -1.5 -1.5]");
    }
    check_end();
}

/* -- many devices ---------------------------------------------------------------------------------------------------- */

/* Small integers: all sums are exact. */
static oly_array waves(oly_dtype dtype, int64_t n)
{
    oly_array x = oly_sub(oly_rem(oly_arange(n, OLY_INT32), 5), 2);
    return oly_device_put(oly_astype(x, dtype), oly_named(row, "i"));
}

#define BODY(name, expression)                                                                                         \
    static void name(const oly_array *in, oly_array *out, void *user)                                                  \
    {                                                                                                                  \
        (void)user;                                                                                                    \
        out[0] = (expression);                                                                                         \
    }
BODY(total, oly_psum(oly_sum(in[0]), "i"))
BODY(largest, oly_pmax(oly_max(in[0]), "i"))
BODY(gathered, oly_all_gather(in[0], "i", .tiled = true, .invariant = true))
BODY(sum_of_squares, oly_sum(oly_mul(in[0], in[0])))

static oly_array map(oly_function f, oly_array x)
{
    oly_array y = NULL;
    oly_shard_map(f, NULL, row, OLY_IN(x), OLY_SPECS("i"), OLY_OUT(y), OLY_SPECS(""));
    return y;
}

static void reductions_and_collectives_round_once(void **state)
{
    (void)state;
    start();
    for (int t = 0; t < N_TYPES; t++)
        OLY_SCOPE
        {
            oly_dtype d = types[t].dtype;
            /* 1,000 elements of 17/256: in float8 alone the sum would stop growing */
            oly_array x = oly_device_put(oly_full(17.0 / 256, d, 1000), oly_named(row, "i"));
            oly_array wide = oly_astype(x, OLY_FLOAT32);
            check_same("sum", oly_sum(x), oly_astype(oly_sum(wide), d));
            check_same("cumsum", oly_cumsum(x, 0), oly_astype(oly_cumsum(wide, 0), d));
            check_same("mean", oly_mean(x), oly_astype(oly_mean(wide), d));
            oly_array w = waves(d, 400), v = oly_astype(w, OLY_FLOAT32);
            check_same("prod", oly_prod(oly_slice(w, "3:5")), oly_astype(oly_prod(oly_slice(v, "3:5")), d));
            check_same("max", oly_max(w), oly_astype(oly_max(v), d));
            check_same("sort", oly_sort(w, 0), oly_astype(oly_sort(v, 0), d));
            check_same("psum", map(total, x), oly_astype(oly_sum(wide), d));
            check_same("pmax", map(largest, w), oly_astype(oly_max(v), d));
            check_same("all_gather", map(gathered, w), w);
            check_same("matmul", oly_matmul(oly_reshape(w, 8, 50), oly_reshape(w, 50, 8)),
                       oly_astype(oly_matmul(oly_reshape(v, 8, 50), oly_reshape(v, 50, 8)), d));
            oly_array places = oly_rem(oly_arange(400, OLY_INT32), 7);
            check_same("segments", oly_segment_sum(w, places, 7), oly_astype(oly_segment_sum(v, places, 7), d));
            check_same("reversed", oly_flip(w), oly_astype(oly_flip(v), d));
        }
    check_end();
}

static void derivatives_have_their_type(void **state)
{
    (void)state;
    start();
    OLY_SCOPE
    {
        oly_fn f = oly_jit(sum_of_squares, 1, 1), slope = oly_grad(f);
        check_text(oly_apply(slope, some(OLY_FLOAT8_E4M3FN)), "[0.203125 3 -6 nan 0.00390625]");
        oly_array x = waves(OLY_FLOAT8_E5M2, 40);
        check_same("slope", oly_apply(slope, x), oly_mul(x, 2));
    }
    check_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conversions_are_those_of_ml_dtypes),
        cmocka_unit_test(arithmetic_of_all_pairs_is_that_of_ml_dtypes),
        cmocka_unit_test(functions_go_through_float32),
        cmocka_unit_test(other_types_convert_through_float32),
        cmocka_unit_test(only_numbers_and_integers_meet_them),
        cmocka_unit_test(texts_and_results_are_those_of_jax),
        cmocka_unit_test(reductions_and_collectives_round_once),
        cmocka_unit_test(derivatives_have_their_type),
    };
    return CHECK_MAIN(tests);
}
