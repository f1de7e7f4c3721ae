/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Random numbers: JAX's, bit for bit, on any sharding and any number of processes, without
 * communication. */
#include "check_session.h"
#include "core/error.h"
#include <inttypes.h>
#include <math.h>

static void fetch(oly_array x, void *buffer, size_t bytes)
{
    assert_non_null(x);
    assert_int_equal((size_t)oly_size(x) * oly_dtype_size(oly_dtype_of(x)), bytes);
    assert_int_equal(oly_process_allgather(x, buffer, bytes), OLY_OK);
}

static oly_array key_of(uint32_t first, uint32_t second)
{
    return oly_from_host((uint32_t[]){first, second}, OLY_UINT32, 1, (int64_t[]){2});
}

/* -- values of JAX --------------------------------------------------------------------------------------------------- */
static void check_words(oly_array x, int n, const uint32_t *want)
{
    uint32_t got[16];
    fetch(x, got, (size_t)n * sizeof *got);
    for (int i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("word %d is %" PRIu32 ", not %" PRIu32, i, got[i], want[i]);
}
#define WORDS(x, ...)                                                                                                  \
    check_words(x, (int)(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)), (const uint32_t[]){__VA_ARGS__})

static void check_floats(oly_array x, int n, const double *want)
{
    float got[16];
    fetch(x, got, (size_t)n * sizeof *got);
    for (int i = 0; i < n; i++)
        if (got[i] != (float)want[i])
            fail_msg("number %d is %.9g, not %.9g", i, (double)got[i], want[i]);
}
#define FLOATS(x, ...)                                                                                                 \
    check_floats(x, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (const double[]){__VA_ARGS__})

static void the_numbers_are_those_of_jax(void **state)
{
    (void)state;
    oly_array seed = oly_random_key(1701), key = key_of(85238482, 2594297577u);
    WORDS(oly_random_key(-1), 0, 0xffffffffu);
    WORDS(oly_random_split(seed, 4), 741045208, 1847055613, 85238482, 2594297577u, 56197195, 961309823, 927208350,
          676898860);
    WORDS(oly_random_split(oly_random_key(0), 2), 1797259609, 2579123966u, 928981903, 3453687069u);
    WORDS(oly_random_fold_in(seed, 1), 85238482, 2594297577u);
    WORDS(oly_random_fold_in(seed, (bool)1), 85238482, 2594297577u);
    WORDS(oly_threefry2x32(key_of(0, 0), oly_zeros(OLY_UINT32, 2)), 1797259609, 2579123966u);
    WORDS(oly_threefry2x32(key_of(0, 0), oly_zeros(OLY_UINT32, 1)), 1797259609);
    WORDS(oly_random_bits(key, OLY_UINT32, 4), 3492257524u, 1454871358, 3814313625u, 4123422230u);
    WORDS(oly_astype(oly_random_bits(key, OLY_UINT8, 4), OLY_UINT32), 244, 62, 153, 22);
    FLOATS(oly_random_uniform(key, OLY_FLOAT32, 4), 0.813104510307312, 0.3387385606765747, 0.8880890607833862,
           0.9600590467453003);
    FLOATS(oly_astype(oly_random_uniform(key, OLY_BFLOAT16, 1), OLY_FLOAT32), 0.953125);
    FLOATS(oly_random_normal(key, OLY_FLOAT32, 2, 2), 0.8893947601318359, -0.41590824723243713, 1.216428279876709,
           1.7513717412948608);
    FLOATS(oly_random_normal(seed, OLY_FLOAT32, 5), -0.6472411155700684, 0.3156411051750183, -0.7491047382354736,
           -1.167362093925476, -0.01169903390109539);
    FLOATS(oly_random_normal(oly_random_key(0), OLY_FLOAT32, 4), 1.622642159461975, 2.0252647399902344,
           -0.4335944354534149, -0.07861734926700592);
    WORDS(oly_astype(oly_random_randint(seed, OLY_INT32, 0, 10, 5), OLY_UINT32), 2, 8, 7, 4, 2);
    WORDS(oly_astype(oly_random_permutation(key, 8), OLY_UINT32), 5, 1, 0, 4, 3, 7, 6, 2);
    uint64_t words[2];
    fetch(oly_random_bits(seed, OLY_UINT64, 2), words, sizeof words);
    assert_true(words[0] == 0x2c2b73d86e17d4fd && words[1] == 0x0514a2d29aa1d6e9);
    double fractions[2];
    fetch(oly_random_uniform(seed, OLY_FLOAT64, 2), fractions, sizeof fractions);
    assert_true(fractions[0] == 0.17253803285538472 && fractions[1] == 0.019846130768775838);
    oly_enable_x64(true);
    WORDS(oly_random_key(-1), 0xffffffffu, 0xffffffffu);
    assert_int_equal(oly_dtype_of(oly_random_permutation(key, 3)), OLY_INT64);
    oly_enable_x64(false);
}

/* The seed's layer of weights, in one step with its keys. */
static void layer(const oly_array *in, oly_array *out, void *user)
{
    (void)in, (void)user;
    oly_array keys = oly_random_split(oly_random_key(1701), 4);
    oly_array x = oly_random_normal(oly_slice(keys, "1"), OLY_FLOAT32, 32);
    oly_array w = oly_random_normal(oly_slice(keys, "2"), OLY_FLOAT32, 32, 4);
    oly_array b = oly_random_normal(oly_slice(keys, "3"), OLY_FLOAT32, 4);
    out[0] = oly_sigmoid(oly_add(oly_matmul(x, w), b));
}

static void random_numbers_in_functions(void **state)
{
    (void)state;
    static const double want[] = {0.01422223, 0.9701333, 0.00124826, 0.08572861};
    float got[4];
    oly_array result = NULL;
    oly_call(oly_jit(layer, 0, 1), 0, NULL, OLY_OUT(result));
    fetch(result, got, sizeof got);
    for (int k = 0; k < 4; k++)
        assert_float_equal(got[k], want[k], 1e-7);
}

/* -- on meshes ------------------------------------------------------------------------------------------------------- */
static void the_sharding_does_not_show(void **state)
{
    (void)state;
    enum { ROWS = 13, COLUMNS = 7, N = ROWS * COLUMNS };
    static const char *const shardings[] = {"x", "-, y", "y, x", "(x,y)", "-, (y,x)"};
    static const int64_t shape[] = {ROWS, COLUMNS};
    oly_mesh mesh = oly_make_mesh("x=4, y=2");
    oly_array key = oly_random_key(42);
    float alone[N], together[N];
    int32_t whole[N], parts[N];
    bool before[N], after[N];
    fetch(oly_random_normal(key, OLY_FLOAT32, ROWS, COLUMNS), alone, sizeof alone);
    fetch(oly_random_randint(key, OLY_INT32, -5, 100, ROWS, COLUMNS), whole, sizeof whole);
    fetch(oly_random_bernoulli(key, 0.3, ROWS, COLUMNS), before, sizeof before);
    for (int k = 0; k < 5; k++) {
        oly_sharding out = oly_named(mesh, shardings[k]);
        oly_array x = oly_random_normal_sharded(key, OLY_FLOAT32, out, ROWS, COLUMNS);
        fetch(x, together, sizeof together);
        assert_memory_equal(alone, together, sizeof alone);
        fetch(oly_random_randint_sharded(key, OLY_INT32, -5, 100, out, ROWS, COLUMNS), parts, sizeof parts);
        assert_memory_equal(whole, parts, sizeof whole);
        fetch(oly_random_bernoulli_sharded(key, 0.3, out, ROWS, COLUMNS), after, sizeof after);
        assert_memory_equal(before, after, sizeof before);
        /* the same rows, whatever precedes them */
        fetch(oly_random_uniform_sharded(key, OLY_FLOAT32, out, ROWS, COLUMNS), together, sizeof together);
        fetch(oly_random_uniform_shape(key, OLY_FLOAT32, oly_operand_int(0), oly_operand_int(1), NULL, 2, shape), alone,
              sizeof alone);
        assert_memory_equal(alone, together, sizeof alone);
        fetch(oly_random_normal(key, OLY_FLOAT32, ROWS, COLUMNS), alone, sizeof alone);
    }
}

static void filled(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_random_normal_sharded(in[0], OLY_FLOAT32, *(oly_sharding *)user, 1000, 30);
}

static void nothing_is_sent(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=4, y=2");
    oly_array key = oly_device_put(oly_random_key(3), oly_named(mesh, ""));
    oly_sharding out = oly_named(mesh, "y, x");
    oly_fn f = oly_jit(filled, 1, 1, .user = &out);
    oly_plan_costs costs;
    assert_int_equal(oly_costs(&costs, f, key), OLY_OK);
    assert_int_equal(costs.wire_bytes, 0);
}

/* -- the formulas of semantics 9, implemented independently -------------------------------------------------------- */
static float log_of(float x)
{
    int e;
    float m = frexpf(x, &e);
    if (m < 0.707106781f) {
        e--;
        m = (m - 1) + m;
    } else {
        m = m - 1;
    }
    float z = m * m, q = z * m;
    float a = fmaf(fmaf(7.0376836292e-2f, m, -1.1514610310e-1f), m, 1.1676998740e-1f);
    float b = fmaf(fmaf(-1.2420140846e-1f, m, 1.4249322787e-1f), m, -1.6668057665e-1f);
    float c = fmaf(fmaf(2.0000714765e-1f, m, -2.4999993993e-1f), m, 3.3333331174e-1f);
    float y = fmaf(fmaf(a, q, b), q, c) * 1;
    y = fmaf(y, q, -2.12194440e-4f * (float)e);
    return fmaf(0.693359375f, (float)e, fmaf(-0.5f, z, m) + y);
}

static float log1p_of(float x)
{
    static const float over[] = {4.5270000862445199635e-5f, 0.49854102823193375972f, 6.5787325942061044847f,
                                 29.911919328553073277f,    60.949667980987787058f,  57.112963590585538103f,
                                 20.039553499201281259f};
    static const float under[] = {1,
                                  15.062909083469192043f,
                                  83.047565967967209469f,
                                  221.76239823732856465f,
                                  309.09872225312059774f,
                                  216.42788614495947685f,
                                  60.118660497603843919f};
    if (fabsf(x) > 0.41421356f)
        return log_of(1 + x);
    float n = over[0], d = under[0], x2 = x * x;
    for (int i = 1; i < 7; i++) {
        n = fmaf(n, x, over[i]);
        d = fmaf(d, x, under[i]);
    }
    return x + fmaf(-0.5f, x2, (x * x2) * (n / d));
}

static float erf_inv_of(float x)
{
    static const float a[] = {2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f, 0.00021858087f,
                              -0.00125372503f, -0.00417768164f, 0.246640727f,    1.50140941f};
    static const float b[] = {-0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
                              -0.0076224613f,   0.00943887047f,  1.00167406f,    2.83297682f};
    float w = -log1p_of(x * -x);
    const float *of = w < 5 ? a : b;
    w = w < 5 ? w - 2.5f : sqrtf(w) - 3;
    float p = of[0];
    for (int i = 1; i < 9; i++)
        p = fmaf(p, w, of[i]);
    return p * x;
}

static void normals_and_gumbels_follow_the_formulas(void **state)
{
    (void)state;
    enum { N = 200000 };
    static float unit[N], got[N];
    oly_array key = oly_random_key(2024);
    fetch(oly_random_uniform(key, OLY_FLOAT32, N), unit, sizeof unit);
    fetch(oly_random_normal(key, OLY_FLOAT32, N), got, sizeof got);
    float low = nextafterf(-1, 0);
    for (int i = 0; i < N; i++) {
        float u = fmaf(unit[i], 1 - low, low);
        float want = 1.41421356f * erf_inv_of(u > low ? u : low);
        if (got[i] != want)
            fail_msg("number %d is %.9g, not %.9g", i, (double)got[i], (double)want);
    }
    fetch(oly_random_gumbel(key, OLY_FLOAT32, N), got, sizeof got);
    for (int i = 0; i < N; i++) {
        float u = unit[i] + 0x1p-126f, want = -log_of(-log_of(u));
        if (got[i] != want)
            fail_msg("Gumbel number %d is %.9g, not %.9g", i, (double)got[i], (double)want);
    }
}

/* -- statistics ---------------------------------------------------------------------------------------------------- */
static void moments(void **state)
{
    (void)state;
    enum { N = 40000 };
    oly_array key = oly_random_key(5);
    const struct {
        oly_array x;
        double mean, variance;
    } of[] = {
        {oly_random_exponential(key, OLY_FLOAT32, N), 1, 1},
        {oly_random_laplace(key, OLY_FLOAT32, N), 0, 2},
        {oly_random_logistic(key, OLY_FLOAT32, N), 0, 3.289868},
        {oly_random_truncated_normal(key, OLY_FLOAT32, -1, 1, N), 0, 0.291125},
        {oly_astype(oly_random_rademacher(key, OLY_INT8, N), OLY_FLOAT32), 0, 1},
        {oly_astype(oly_random_bernoulli(key, 0.25, N), OLY_FLOAT32), 0.25, 0.1875},
        {oly_random_uniform_between(key, OLY_FLOAT32, -2, 4, N), 1, 3},
        {oly_astype(oly_random_randint(key, OLY_INT16, -300, 300, N), OLY_FLOAT32), -0.5, 30000},
        {oly_abs(oly_random_normal(key, OLY_COMPLEX64, N)), 0.886227, 0.214602},
    };
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        float mean, variance;
        fetch(oly_mean(of[k].x), &mean, sizeof mean);
        fetch(oly_var(of[k].x), &variance, sizeof variance);
        assert_float_equal(mean, of[k].mean, 0.05 * sqrt(of[k].variance));
        assert_float_equal(variance, of[k].variance, 0.05 * of[k].variance);
    }
    float median;
    fetch(oly_mean(oly_astype(oly_lt(oly_abs(oly_random_cauchy(key, OLY_FLOAT32, N)), 1), OLY_FLOAT32)), &median,
          sizeof median);
    assert_float_equal(median, 0.5, 0.02);
}

/* A probability is a number of any kind, or an array. */
static void certain_events(void **state)
{
    (void)state;
    oly_array key = oly_random_key(3), half = oly_scalar(0.5, OLY_FLOAT16);
    char type[64];
    bool drawn[50];
    for (int sure = 0; sure < 2; sure++) {
        fetch(oly_random_bernoulli(key, sure, 50), drawn, sizeof drawn);
        for (int i = 0; i < 50; i++)
            assert_int_equal(drawn[i], sure);
    }
    oly_typeof(oly_random_bernoulli(key, half, 50), type, sizeof type);
    assert_string_equal(type, "bool[50]");
    CHECK_REFUSED(oly_random_bernoulli(key, oly_arange(50, OLY_INT32), 50), OLY_DTYPE, "floating");
}

/* The bounds of the interval are never drawn, though rounding leads there: here one number in three would be one. */
static void truncated_normals_are_in_range(void **state)
{
    (void)state;
    enum { N = 4000 };
    static float drawn[N];
    float low = 3, high = nextafterf(nextafterf(nextafterf(low, 4), 4), 4);
    fetch(oly_random_truncated_normal(oly_random_key(3), OLY_FLOAT32, low, high, N), drawn, sizeof drawn);
    for (int i = 0; i < N; i++)
        assert_true(drawn[i] > low && drawn[i] < high);
}

static void samples(void **state)
{
    (void)state;
    oly_array key = oly_random_key(9), items = oly_mul(oly_arange(10, OLY_INT32), 10);
    oly_array p = oly_from_host((float[]){0, 0, 1, 0, 3, 0, 0, 0, 0, 0}, OLY_FLOAT32, 1, (int64_t[]){10});
    int32_t drawn[200], seen[10] = {0};
    fetch(oly_random_choice_of(key, items, 0, false, NULL, 10), drawn, 40);
    for (int i = 0; i < 10; i++)
        seen[drawn[i] / 10]++;
    for (int i = 0; i < 10; i++)
        assert_int_equal(seen[i], 1);
    fetch(oly_random_choice(key, 10, true, p, 20, 10), drawn, sizeof drawn);
    int fours = 0;
    for (int i = 0; i < 200; i++) {
        assert_true(drawn[i] == 2 || drawn[i] == 4);
        fours += drawn[i] == 4;
    }
    assert_in_range(fours, 120, 180);
    fetch(oly_sort(oly_random_choice(key, 10, false, p, 2), 0), drawn, 8);
    assert_true(drawn[0] == 2 && drawn[1] == 4);
    oly_array logits = oly_log(oly_broadcast_to(p, 50, 10));
    fetch(oly_random_categorical(key, logits, -1), drawn, 50 * 4);
    for (int i = 0; i < 50; i++)
        assert_true(drawn[i] == 2 || drawn[i] == 4);
    const int64_t shape[] = {2, 50};
    fetch(oly_random_categorical_shape(key, logits, 1, 2, shape), drawn, 100 * 4);
    oly_array rows = oly_random_permutation_of(key, oly_reshape(oly_arange(200, OLY_INT32), 20, 10), 1);
    fetch(rows, drawn, sizeof drawn);
    for (int i = 0; i < 200; i++)
        assert_int_equal(drawn[i] / 10, i / 10);
}

/* -- errors ---------------------------------------------------------------------------------------------------------- */
static void mistakes_are_told(void **state)
{
    (void)state;
    oly_array key = oly_random_key(1), keys = oly_random_split(key, 3), x = oly_arange(4, OLY_FLOAT32);
    CHECK_REFUSED(oly_random_normal(keys, OLY_FLOAT32, 3), OLY_DTYPE, "uint32[3,2] is not a key");
    CHECK_REFUSED(oly_random_normal(x, OLY_FLOAT32, 3), OLY_DTYPE, "oly_random_key");
    CHECK_REFUSED(oly_random_normal(key, OLY_INT32, 3), OLY_DTYPE, "floating");
    CHECK_REFUSED(oly_random_bits(key, OLY_INT32, 3), OLY_DTYPE, "unsigned");
    CHECK_REFUSED(oly_random_randint(key, OLY_FLOAT32, 0, 1, 3), OLY_DTYPE, "integer");
    CHECK_REFUSED(oly_random_uniform_between(key, OLY_FLOAT32, 0, x, 3), OLY_SHAPE, "float32[4]");
    CHECK_REFUSED(oly_random_uniform(key, OLY_FLOAT32, -3), OLY_INVALID, "-3");
    CHECK_REFUSED(oly_random_split(key, -1), OLY_INVALID, "-1 keys");
    CHECK_REFUSED(oly_random_fold_in(key, 1.5), OLY_DTYPE, "one integer");
    CHECK_REFUSED(oly_random_permutation(key, -2), OLY_INVALID, "-2 numbers");
    CHECK_REFUSED(oly_random_permutation_of(key, x, 1), OLY_SHAPE, "axis 1");
    CHECK_REFUSED(oly_random_choice(key, 3, false, NULL, 4), OLY_INVALID, "at most once");
    CHECK_REFUSED(oly_random_choice(key, 0, true, NULL, 4), OLY_INVALID, "of nothing");
    CHECK_REFUSED(oly_random_choice(key, 3, true, x, 4), OLY_SHAPE, "one for each");
    CHECK_REFUSED(oly_random_categorical(key, oly_arange(3, OLY_INT32), 0), OLY_DTYPE, "floating");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_numbers_are_those_of_jax, check_start, check_finish),
        cmocka_unit_test_setup_teardown(random_numbers_in_functions, check_start, check_finish),
        cmocka_unit_test_setup_teardown(the_sharding_does_not_show, check_start, check_finish),
        cmocka_unit_test_setup_teardown(nothing_is_sent, check_start, check_finish),
        cmocka_unit_test_setup_teardown(normals_and_gumbels_follow_the_formulas, check_start, check_finish),
        cmocka_unit_test_setup_teardown(moments, check_start, check_finish),
        cmocka_unit_test_setup_teardown(certain_events, check_start, check_finish),
        cmocka_unit_test_setup_teardown(truncated_normals_are_in_range, check_start, check_finish),
        cmocka_unit_test_setup_teardown(samples, check_start, check_finish),
        cmocka_unit_test_setup_teardown(mistakes_are_told, check_start, check_finish),
    };
    return CHECK_MAIN(tests);
}
