/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Distributed sorting of lines: the same bits as on one device for every element type, ties, NaN and
 * zeros of both signs, ascending and descending, several keys, uneven parts, several lines, any number of devices; no
 * device gathers a line, fewer bytes move, memory stays that of a few parts, replays allocate nothing; searches in a
 * sorted line that is distributed. */
#include "check_communication.h"
#include "device/memory.h"
#include <inttypes.h>

static uint64_t state;

static uint64_t next(void)
{
    state += 0x9e3779b97f4a7c15;
    uint64_t x = state;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/* Few different values, with NaN (of both signs, some with other bits), infinities and zeros of both signs; or many. */
static oly_array drawn(oly_dtype dtype, int rank, const int64_t *shape, bool many)
{
    int64_t n = 1, size = (int64_t)oly_dtype_size(dtype);
    for (int d = 0; d < rank; d++)
        n *= shape[d];
    char *data = calloc((size_t)(n + 1), (size_t)size);
    static const float f32[] = {0, -0.0f, 1, -1, 2.5f, -3, __builtin_inff(), -__builtin_inff(), 7, 8};
    static const double f64[] = {0, -0.0, 1, -1, 2.5, -3, __builtin_inf(), -__builtin_inf(), 7, 8};
    for (int64_t k = 0; k < n; k++) {
        uint64_t bits = next();
        char *to = data + k * size;
        bool of_few = !many || bits % 7 == 0;
        if (dtype == OLY_BOOL) {
            *to = bits & 1;
        } else if (!of_few || (dtype != OLY_FLOAT32 && dtype != OLY_FLOAT64 && dtype != OLY_COMPLEX64)) {
            if (!many)
                bits = (bits % 6) * 0x4b4b4b4b4b4b4b4bu; /* of float16: 0x4b4b..., some NaN with wider steps */
            memcpy(to, &bits, (size_t)(size < 8 ? size : 8));
            if (size == 16)
                memcpy(to + 8, data + next() % (uint64_t)(k + 1) * 16, 8);
        } else if (dtype == OLY_FLOAT64) {
            memcpy(to, &f64[bits % 10], 8);
        } else {
            for (int64_t at = 0; at < size; at += 4)
                memcpy(to + at, &f32[(bits >> at) % 10], 4);
        }
        if (dtype == OLY_FLOAT32 && bits % 31 == 5)
            memcpy(to, &(uint32_t){bits & 1 ? 0x7fc00000u + (uint32_t)(bits >> 60) : 0xffc00001u}, 4);
    }
    oly_array x = oly_from_host(data, dtype, rank, shape);
    free(data);
    return x;
}

static void check_same(oly_array split, oly_array plain, const char *what)
{
    size_t bytes = (size_t)oly_size(plain) * oly_dtype_size(oly_dtype_of(plain));
    char *a = malloc(bytes + 1), *b = malloc(bytes + 1);
    assert_int_equal(oly_process_allgather(split, a, bytes), OLY_OK);
    assert_int_equal(oly_process_allgather(plain, b, bytes), OLY_OK);
    if (memcmp(a, b, bytes) != 0)
        fail_msg("%s of %s differs from one device's", what, oly_dtype_name(oly_dtype_of(plain)));
    free(a);
    free(b);
}

static void check_sorts(oly_array x, oly_sharding where, int axis, const char *what)
{
    oly_array split = oly_device_put(x, where);
    for (int down = 0; down < 2; down++) {
        check_same(oly_sort(split, axis, .descending = down), oly_sort(x, axis, .descending = down), what);
        check_same(oly_argsort(split, axis, .descending = down), oly_argsort(x, axis, .descending = down), what);
    }
}

static void every_type_is_sorted_as_on_one_device(void **unused)
{
    (void)unused;
    static const oly_dtype types[] = {OLY_BOOL,     OLY_INT8,    OLY_INT16,   OLY_INT32,     OLY_INT64,
                                      OLY_UINT8,    OLY_UINT16,  OLY_UINT32,  OLY_UINT64,    OLY_FLOAT16,
                                      OLY_BFLOAT16, OLY_FLOAT32, OLY_FLOAT64, OLY_COMPLEX64, OLY_COMPLEX128};
    oly_init(NULL, NULL);
    oly_enable_x64(true);
    state = 1;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        OLY_SCOPE
        {
            bool many = t % 2;
            int64_t n = 6000 + (int64_t)(next() % 1500);
            char what[64];
            snprintf(what, sizeof what, "%" PRId64 " elements (%s)", n, many ? "many values" : "few values");
            check_sorts(drawn(types[t], 1, &n, many), oly_named(oly_make_mesh("x=8"), "x"), 0, what);
        }
    oly_enable_x64(false);
    oly_finalize();
}

static void any_number_of_devices_and_elements(void **unused)
{
    (void)unused;
    oly_init(NULL, NULL);
    state = 2;
    for (int k = 0; k < 18; k++)
        OLY_SCOPE
        {
            static const char *const meshes[] = {"x=3", "x=5", "x=6", "x=7", "x=8", "x=4,y=2"};
            oly_mesh mesh = oly_make_mesh(meshes[k % 6]);
            int64_t n = k < 6 ? (int64_t)(next() % 300) : 7000 + (int64_t)(next() % 2000);
            char what[64];
            snprintf(what, sizeof what, "%" PRId64 " elements on %s", n, meshes[k % 6]);
            check_sorts(drawn(k % 2 ? OLY_INT16 : OLY_FLOAT32, 1, &n, k % 3 == 0),
                        oly_named(mesh, k % 6 < 5 ? "x" : "(y,x)"), 0, what);
        }
    oly_finalize();
}

/* Lines in the first, a middle and the last dimension; the others too small to be split instead, or split, too. */
static void several_lines(void **unused)
{
    (void)unused;
    oly_init(NULL, NULL);
    state = 3;
    OLY_SCOPE
    {
        oly_mesh one = oly_make_mesh("x=8"), two = oly_make_mesh("x=6");
        check_sorts(drawn(OLY_FLOAT32, 2, (const int64_t[]){3, 5500}, false), oly_named(one, "None, x"), 1,
                    "[3, 5500]");
        check_sorts(drawn(OLY_INT32, 2, (const int64_t[]){9001, 2}, false), oly_named(one, "x"), 0, "[9001, 2]");
        check_sorts(drawn(OLY_INT32, 3, (const int64_t[]){2, 4777, 3}, false), oly_named(two, "None, x"), 1,
                    "[2, 4777, 3]");
    }
    oly_finalize();
}

static void several_keys(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_sort_together(3, in, 0, 2, out);
}

/* Sorted by other keys, reversed; and by an order that has other uses, too. */
static void arranged(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array order = oly_argsort(in[0], 0, .descending = true);
    out[0] = oly_take_along_axis(in[1], order, 0, NULL);
    out[1] = oly_take(in[0], order, 0, NULL);
    out[2] = oly_add(order, 1);
}

static void what_follows_the_keys_is_not_gathered(void **unused)
{
    (void)unused;
    oly_init(NULL, NULL);
    state = 9;
    OLY_SCOPE
    {
        int64_t n = 12345;
        oly_sharding where = oly_named(oly_make_mesh("x=8"), "x");
        oly_array x = drawn(OLY_FLOAT32, 1, &n, false), y = drawn(OLY_FLOAT32, 1, &n, true), a[3] = {NULL},
                  b[3] = {NULL};
        oly_array split[2] = {oly_device_put(x, where), oly_device_put(y, where)};
        oly_fn f = oly_jit(arranged, 2, 3);
        oly_call(f, OLY_IN(x, y), 3, (oly_array *[]){&a[0], &a[1], &a[2]});
        oly_call(f, OLY_IN(split[0], split[1]), 3, (oly_array *[]){&b[0], &b[1], &b[2]});
        for (int k = 0; k < 3; k++)
            check_same(b[k], a[k], "what follows the keys");
        char *steps = check_steps(f, 2, split);
        assert_int_equal(check_count(steps, "all-gather"), 0);
        free(steps);
    }
    oly_finalize();
}

/* A sort, its indexes, and a gradient through both. */
static void weighed(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_mul(oly_sort(in[0], 0), in[1]));
}

static void both(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sort(in[0], 0);
    out[1] = oly_argsort(in[0], 0);
}

static void one_array_is_sorted_once(void **unused)
{
    (void)unused;
    oly_init(NULL, NULL);
    state = 10;
    for (int k = 0; k < 2; k++)
        OLY_SCOPE
        {
            int64_t n = 13001;
            oly_sharding where = oly_named(oly_make_mesh("x=8"), "x");
            oly_array x = drawn(k ? OLY_INT32 : OLY_FLOAT32, 1, &n, k), a[2] = {NULL}, b[2] = {NULL},
                      split = oly_device_put(x, where);
            oly_fn f = oly_jit(both, 1, 2);
            oly_call(f, OLY_IN(x), 2, (oly_array *[]){&a[0], &a[1]});
            oly_call(f, OLY_IN(split), 2, (oly_array *[]){&b[0], &b[1]});
            check_same(b[0], a[0], "a sorted line");
            check_same(b[1], a[1], "its order");
            char *steps = check_steps(f, 1, &split);
            if (getenv("OLYMPUS_DISABLE"))
                assert_int_equal(check_count(steps, "all-to-all"), 2);
            assert_int_equal(check_count(steps, "all-gather"), 0);
            free(steps);
            if (k)
                continue;
            oly_array w = oly_arange(n, OLY_FLOAT32), w_split = oly_device_put(w, where);
            oly_fn df = oly_grad(oly_jit(weighed, 2, 1));
            oly_call(df, OLY_IN(x, w), 1, (oly_array *[]){&a[0]});
            oly_call(df, OLY_IN(split, w_split), 1, (oly_array *[]){&b[0]});
            check_same(b[0], a[0], "the gradient of a sum of sorted elements");
            steps = check_steps(df, 2, (oly_array[]){split, w_split});
            assert_int_equal(check_count(steps, "all-gather"), 0);
            free(steps);
        }
    oly_finalize();
}

static void keys_in_turn(void **unused)
{
    (void)unused;
    oly_init(NULL, NULL);
    state = 4;
    OLY_SCOPE
    {
        int64_t n = 13333;
        oly_sharding where = oly_named(oly_make_mesh("x=8"), "x");
        oly_array x[3] = {drawn(OLY_INT8, 1, &n, false), drawn(OLY_FLOAT32, 1, &n, false),
                          drawn(OLY_BOOL, 1, &n, false)};
        oly_array split[3], a[3] = {NULL}, b[3] = {NULL};
        for (int k = 0; k < 3; k++)
            split[k] = oly_device_put(x[k], where);
        oly_fn f = oly_jit(several_keys, 3, 3);
        oly_call(f, OLY_IN(x[0], x[1], x[2]), 3, (oly_array *[]){&a[0], &a[1], &a[2]});
        oly_call(f, OLY_IN(split[0], split[1], split[2]), 3, (oly_array *[]){&b[0], &b[1], &b[2]});
        for (int k = 0; k < 3; k++)
            check_same(b[k], a[k], "arrays sorted together");
        char *steps = check_steps(f, 3, split);
        assert_int_equal(check_count(steps, "all-gather"), 0);
        if (getenv("OLYMPUS_DISABLE"))
            assert_int_equal(check_count(steps, "all-to-all"),
                             4); /* elements of one and of four bytes move separately */
        free(steps);
    }
    oly_finalize();
}

/* -- costs --------------------------------------------------------------------------------------------------------- */

static void sorted(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sort(in[0], 0);
}

/* What the steps transfer to a device. */
static int64_t most_of_a_device(const char *steps)
{
    double bytes = 0;
    for (const char *at = steps; (at = strchr(at, '[')); at++) {
        double number = 0;
        char unit = 0;
        int end = 0;
        if (sscanf(at, "[%lf %c%*[a-zA-Z] per device%n", &number, &unit, &end) == 2 && end > 0)
            bytes += number * (unit == 'K' ? 1024 : unit == 'M' ? 1048576 : 1);
    }
    return (int64_t)bytes;
}

static void nobody_gathers_a_line(void **unused)
{
    (void)unused;
    oly_init(NULL, NULL);
    state = 5;
    OLY_SCOPE
    {
        enum { N = 1 << 18, BLOCK = N / 8 };
        int64_t n = N;
        oly_array y = NULL, x = oly_device_put(drawn(OLY_FLOAT32, 1, &n, true), oly_named(oly_make_mesh("x=8"), "x"));
        oly_fn f = oly_jit(sorted, 1, 1);
        char *steps = check_steps(f, 1, &x);
        assert_int_equal(check_count(steps, "all-gather"), 0);
        assert_int_equal(check_count(steps, "all-to-all"), 2);
        assert_int_equal(check_count(steps, "halo exchange"), 1);
        /* twice 7/8 of a block, and 49 elements from both sides, each of 8 bytes; gathered: 7 blocks of 4 */
        assert_in_range(most_of_a_device(steps), 1, 2 * 7 * BLOCK + 2 * 49 * 8 + 4096);
        free(steps);
        oly_block_until_ready(x);
        oly_pool_stop();
        oly_call(f, OLY_IN(x), 1, (oly_array *[]){&y});
        oly_block_until_ready(y);
        oly_pool_statistics s = oly_pool_statistics_get();
        int64_t extra = (int64_t)s.peak_bytes - (int64_t)s.in_use_bytes, local = oly_local_device_count();
        assert_in_range(extra, 1, local * BLOCK * 4 * 16); /* gathered: 4 lines of a device, 32 blocks */
    }
    oly_finalize();
}

static void place_of(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_argsort(in[0], 0);
}

/* Few devices, small elements: gathering would move less, but a line exceeds what exchanges may hold. */
static void large_lines_are_never_gathered(void **unused)
{
    (void)unused;
    static const struct {
        oly_dtype dtype;
        int64_t n;
        const char *mesh;
    } cases[] = {{OLY_INT8, 1100007, "x=8"},
                 {OLY_FLOAT32, 300001, "x=2"},
                 {OLY_COMPLEX64, 150001, "x=3"},
                 {OLY_FLOAT16, 600000, "x=4"}};
    setenv("OLYMPUS_EXCHANGE_MEMORY", "1", 1);
    oly_init(NULL, NULL);
    state = 8;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        OLY_SCOPE
        {
            oly_array x = drawn(cases[k].dtype, 1, &cases[k].n, k % 2), a = NULL, b = NULL;
            oly_array split = oly_device_put(x, oly_named(oly_make_mesh(cases[k].mesh), "x"));
            oly_fn f = oly_jit(place_of, 1, 1);
            oly_call(f, OLY_IN(x), 1, (oly_array *[]){&a});
            oly_call(f, OLY_IN(split), 1, (oly_array *[]){&b});
            check_same(b, a, "order of a large line");
            char *steps = check_steps(f, 1, &split);
            assert_int_equal(check_count(steps, "all-gather"), 0);
            free(steps);
        }
    oly_finalize();
    unsetenv("OLYMPUS_EXCHANGE_MEMORY");
}

/* Replicated results: the line is gathered once. */
static void replicated(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_with_sharding_constraint(oly_sort(in[0], 0), oly_named((oly_mesh)user, ""));
}

static void what_is_wanted_whole(void **unused)
{
    (void)unused;
    oly_init(NULL, NULL);
    state = 6;
    OLY_SCOPE
    {
        int64_t n = 14000;
        oly_mesh mesh = oly_make_mesh("x=8");
        oly_array x = drawn(OLY_INT32, 1, &n, true), split = oly_device_put(x, oly_named(mesh, "x")), y = NULL;
        oly_fn f = oly_jit(replicated, 1, 1, .user = (void *)mesh);
        oly_call(f, OLY_IN(split), 1, (oly_array *[]){&y});
        check_same(y, oly_sort(x, 0), "a sorted line on every device");
        oly_array whole = oly_device_put(x, oly_named(mesh, ""));
        check_same(oly_argsort(whole, 0), oly_argsort(x, 0), "the order of a line that every device has");
    }
    oly_finalize();
}

static void counted(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_searchsorted(in[0], in[1], "left");
}

static void counting_in_a_line_that_is_spread(void **unused)
{
    (void)unused;
    oly_init(NULL, NULL);
    state = 7;
    OLY_SCOPE
    {
        int64_t n = 5001, m = 37;
        oly_mesh mesh = oly_make_mesh("x=8");
        oly_array line = oly_sort(drawn(OLY_FLOAT32, 1, &n, true), 0), sought = drawn(OLY_FLOAT32, 1, &m, false),
                  a = NULL, b = NULL;
        oly_array split = oly_device_put(line, oly_named(mesh, "x")),
                  here = oly_device_put(sought, oly_named(mesh, ""));
        oly_fn f = oly_jit(counted, 2, 1);
        oly_call(f, OLY_IN(line, sought), 1, (oly_array *[]){&a});
        oly_call(f, OLY_IN(split, here), 1, (oly_array *[]){&b});
        check_same(b, a, "places in a sorted line");
        char *steps = check_steps(f, 2, (oly_array[]){split, here});
        assert_int_equal(check_count(steps, "all-gather"), 0);
        free(steps);
    }
    oly_finalize();
}

/* Between processes and, where one process has all devices, at one of them. */
static int apart(void **unused)
{
    (void)unused;
    return setenv("OLYMPUS_DISABLE", "compute-once", 1);
}
static int at_one(void **unused)
{
    (void)unused;
    return unsetenv("OLYMPUS_DISABLE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_type_is_sorted_as_on_one_device, apart),
        cmocka_unit_test_setup(any_number_of_devices_and_elements, apart),
        cmocka_unit_test_setup(several_lines, apart),
        cmocka_unit_test_setup(keys_in_turn, apart),
        cmocka_unit_test_setup(one_array_is_sorted_once, apart),
        cmocka_unit_test_setup(what_follows_the_keys_is_not_gathered, apart),
        cmocka_unit_test_setup(nobody_gathers_a_line, apart),
        cmocka_unit_test_setup(large_lines_are_never_gathered, apart),
        cmocka_unit_test_setup(what_is_wanted_whole, apart),
        cmocka_unit_test_setup(counting_in_a_line_that_is_spread, apart),
        cmocka_unit_test_setup(every_type_is_sorted_as_on_one_device, at_one),
        cmocka_unit_test_setup(any_number_of_devices_and_elements, at_one),
        cmocka_unit_test_setup(several_lines, at_one),
        cmocka_unit_test_setup(keys_in_turn, at_one),
        cmocka_unit_test_setup(one_array_is_sorted_once, at_one),
        cmocka_unit_test_setup(what_follows_the_keys_is_not_gathered, at_one),
        cmocka_unit_test_setup(what_is_wanted_whole, at_one),
    };
    return CHECK_MAIN(tests);
}
