/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  What CPU devices of one process would compute alike is computed by one of them: random numbers, lookups, scatters, running
 * results, windows, convolutions and products of replicated arrays have the same bits on every device as without, and explanations say so; what
 * differs by device, or is faster computed than copied, is computed by each. */
#include "check_communication.h"
#include "array/array.h"

static oly_array grid, line, places, key, image, taps, bands;
static oly_mesh mesh;

static oly_array replicated(oly_array x)
{
    return oly_device_put(x, oly_named(mesh, ""));
}

static void begin(const char *disabled)
{
    if (disabled)
        setenv("OLYMPUS_DISABLE", disabled, 1);
    else
        unsetenv("OLYMPUS_DISABLE");
    setenv("OLYMPUS_COMPUTE_ONCE", "0", 1);
    oly_init(NULL, NULL);
    mesh = oly_make_mesh("x=8");
    key = replicated(oly_random_key(7));
    grid = replicated(oly_reshape(oly_sin(oly_arange(96 * 40, OLY_FLOAT32)), 96, 40));
    line = replicated(oly_cos(oly_arange(2000, OLY_FLOAT32)));
    places = replicated(oly_random_randint(oly_random_key(3), OLY_INT32, -5, 90, 300));
    image = replicated(oly_reshape(oly_sin(oly_arange(2 * 3 * 20 * 20, OLY_FLOAT32)), 2, 3, 20, 20));
    bands = oly_device_put(oly_reshape(oly_sin(oly_arange(64 * 40, OLY_FLOAT32)), 64, 40),
                           oly_named(oly_make_mesh("i=4, j=2"), "i"));
    taps = replicated(oly_reshape(oly_cos(oly_arange(4 * 3 * 3 * 3, OLY_FLOAT32)), 4, 3, 3, 3));
}

static int end(void **state)
{
    (void)state;
    unsetenv("OLYMPUS_DISABLE");
    unsetenv("OLYMPUS_COMPUTE_ONCE");
    return 0;
}

#define FUNCTION(name, ...)                                                                                            \
    static void name(const oly_array *in, oly_array *out, void *user)                                                  \
    {                                                                                                                  \
        (void)in, (void)user;                                                                                          \
        out[0] = __VA_ARGS__;                                                                                          \
    }
FUNCTION(integers, oly_random_randint(in[0], OLY_INT32, 0, 1000, 500))
FUNCTION(normals, oly_mul(oly_random_normal(in[0], OLY_FLOAT32, 300, 7), 2))
FUNCTION(rows, oly_take(in[0], in[1], 0, NULL))
FUNCTION(columns, oly_take(in[0], oly_rem(in[1], 40), 1, NULL))
FUNCTION(largest, oly_at_max(oly_zeros(OLY_FLOAT32, 96), OLY_INDEXES(in[0]), oly_take(in[1], in[0], 0, NULL)))
FUNCTION(sums, oly_at_add(in[0], OLY_INDEXES(in[1]), oly_take(in[0], in[1], 0, NULL)))
FUNCTION(running, oly_cumsum(in[0], 0))
FUNCTION(positions, oly_argmax(in[0], OLY_AXES(1)))
FUNCTION(found, oly_searchsorted(oly_sort(in[0], 0), oly_mul(in[0], 1.5), NULL))
FUNCTION(total, oly_sum(in[0], OLY_AXES(1)))
FUNCTION(drawn_total, oly_sum(oly_random_normal(in[0], OLY_FLOAT32, 50, 40)))
/* The sums of squares are computed with the differences, which the quotients need as well. */
static void unit_columns(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array rows = oly_take(in[0], in[1], 0, NULL), x = oly_sub(rows, oly_mean(rows, OLY_AXES(0), .keepdims = true));
    out[0] = oly_div(x, oly_sqrt(oly_sum(oly_mul(x, x), OLY_AXES(0), .keepdims = true)));
}
FUNCTION(pooled, oly_max_pool(in[0], .window = "3, 3"))
FUNCTION(convolved, oly_conv(in[0], in[1]))
FUNCTION(product, oly_matmul(in[0], oly_transpose(in[0])))
FUNCTION(with_vector, oly_matmul(in[0], oly_slice(in[1], ":40")))
FUNCTION(of_integers, oly_einsum("bij,bjk->bik", oly_astype(oly_mul(oly_reshape(in[0], 4, 24, 40), 9), OLY_INT32),
                                 oly_astype(oly_mul(oly_reshape(in[0], 4, 40, 24), 9), OLY_INT32)))

/* A scatter of updates that are split over the devices: each adds its own, and their sums differ until they are reduced. */
FUNCTION(partial_sums,
         oly_take(oly_at_add(oly_zeros(OLY_FLOAT32, 96), OLY_INDEXES(oly_mod(in[0], 96)), in[1]), in[2], 0, NULL))
FUNCTION(one_row, oly_dynamic_update_slice(in[0], in[1], OLY_INDEXES(in[2], in[3])))

typedef struct kind {
    const char *name;
    oly_function f;
    oly_array *in[3];
    bool once;
} kind;
static const kind kinds[] = {{"random integers", integers, {&key}, true},
                             {"normal numbers", normals, {&key}, true},
                             {"rows at indexes", rows, {&grid, &places}, true},
                             {"columns at indexes", columns, {&grid, &places}, true},
                             {"largest by index", largest, {&places, &line}, true},
                             {"sums by index", sums, {&line, &places}, true},
                             {"running sums", running, {&grid}, true},
                             {"positions", positions, {&grid}, true},
                             {"places in a sorted line", found, {&line}, true},
                             {"sums of rows", total, {&grid}, true},
                             {"a sum of random numbers", drawn_total, {&key}, true},
                             {"columns of length one", unit_columns, {&grid, &places}, true},
                             {"pooling", pooled, {&image}, true},
                             {"convolution", convolved, {&image, &taps}, true},
                             {"a product", product, {&grid}, true},
                             {"a product with a vector", with_vector, {&grid, &line}, true},
                             {"products of integers", of_integers, {&grid}, true},
                             {"a product by four bands", with_vector, {&bands, &line}, true}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Every shard of the result one after the other; to be freed. */
static char *shards_of(const kind *k, size_t *bytes, bool *once)
{
    int n = 0;
    oly_array in[3], out = NULL;
    while (n < 3 && k->in[n])
        in[n] = *k->in[n], n++;
    oly_fn f = oly_jit(k->f, n, 1);
    char *steps = check_steps(f, n, in), *all = NULL;
    *once = strstr(steps, "computed once, shared with") != NULL;
    free(steps);
    *bytes = 0;
    for (int times = 0; times < 2; times++) /* the second call takes the memory of the first */
        assert_int_equal(oly_call_n(f, n, in, 1, (oly_array *[]){&out}), OLY_OK);
    OLY_FOR_EACH_SHARD(s, out)
    {
        size_t size = oly_dtype_size(oly_dtype_of(out));
        for (int d = 0; d < s.rank; d++)
            size *= (size_t)s.extent[d];
        all = realloc(all, *bytes + size);
        memcpy(all + *bytes, s.memory, size);
        *bytes += size;
    }
    return all;
}

/* First what is computed once: afterwards memory holds the right values, where they may be missing. */
static void every_device_has_the_same(void **state)
{
    (void)state;
    char *shards[KINDS];
    size_t bytes[KINDS], size;
    bool once;
    begin(NULL);
    int here = oly_local_device_count();
    OLY_SCOPE
    for (int k = 0; k < KINDS; k++) {
        shards[k] = shards_of(&kinds[k], &bytes[k], &once);
        if (once != (here > 1))
            fail_msg("%s: %s", kinds[k].name, once ? "computed once" : "computed by each device");
    }
    oly_finalize();
    begin("compute-once");
    OLY_SCOPE
    for (int k = 0; k < KINDS; k++) {
        char *plain = shards_of(&kinds[k], &size, &once);
        assert_false(once);
        assert_int_equal(size, bytes[k]);
        if (memcmp(shards[k], plain, size) != 0)
            fail_msg("%s differ", kinds[k].name);
        free(shards[k]);
        free(plain);
    }
    oly_finalize();
}

/* Random numbers times sums over devices that are reduced only after the second sum: each device has its own part of them. */
FUNCTION(waiting_sums,
         oly_sum(oly_mul(oly_sum(in[0], OLY_AXES(0)), oly_random_normal(oly_random_key(7), OLY_FLOAT32, 40))))

/* Products whose contracted dimension is split, and of such sums. */
FUNCTION(split_product, oly_matmul(oly_transpose(in[0]), in[0]))
FUNCTION(waiting_product,
         oly_sum(oly_matmul(oly_sum(in[0], OLY_AXES(0)), oly_reshape(oly_arange(1600, OLY_FLOAT32), 40, 40))))

static void sums_that_are_not_complete(void **state)
{
    (void)state;
    begin(NULL);
    OLY_SCOPE
    {
        int64_t n = 800;
        oly_array i = oly_random_randint(oly_random_key(5), OLY_INT32, 0, 96, n),
                  x = oly_sin(oly_arange(n, OLY_FLOAT32));
        oly_array split[] = {oly_device_put(i, oly_named(mesh, "x")), oly_device_put(x, oly_named(mesh, "x")), places};
        oly_array plain[] = {i, x, places};
        check_same_values(partial_sums, 3, plain, split, 300, 1e-5);
        oly_array rows = oly_device_put(grid, oly_named(mesh, "x"));
        check_same_values(waiting_sums, 1, &grid, &rows, 1, 1e-4);
        check_same_values(split_product, 1, &grid, &rows, 1600, 1e-4);
        check_same_values(waiting_product, 1, &grid, &rows, 1, 1e-2);
    }
    oly_finalize();
}

static void what_is_copied_is_as_much_as_is_computed(void **state)
{
    (void)state;
    begin(NULL);
    unsetenv("OLYMPUS_COMPUTE_ONCE");
    oly_finalize();
    oly_init(NULL, NULL);
    OLY_SCOPE
    {
        mesh = oly_make_mesh("x=8");
        oly_array in[] = {replicated(oly_zeros(OLY_FLOAT32, 20, 500)), replicated(oly_ones(OLY_FLOAT32, 1, 500)),
                          replicated(oly_full(5, OLY_INT32)), replicated(oly_full(0, OLY_INT32))};
        oly_array many[] = {replicated(oly_zeros(OLY_FLOAT32, 1000)),
                            replicated(oly_random_randint(oly_random_key(3), OLY_INT32, 0, 1000, 100000))};
        char *steps = check_steps(oly_jit(one_row, 4, 1), 4, in), *scatter = check_steps(oly_jit(sums, 2, 1), 2, many);
        assert_null(strstr(steps, "computed once"));
        assert_true(oly_local_device_count() == 1 || strstr(scatter, "computed once"));
        free(steps);
        free(scatter);
    }
    oly_finalize();
}

/* -- held once ---------------------------------------------------------------------------------------------------------------- */

enum { ROWS = 700, COLUMNS = 60 }; /* more than 64 KiB */

static oly_array table_of(double start)
{
    return replicated(oly_reshape(oly_sin(oly_add(oly_arange(ROWS * COLUMNS, OLY_FLOAT32), start)), ROWS, COLUMNS));
}

static oly_status fill_shard(const oly_index_box *box, void *memory, void *user)
{
    (void)box;
    memcpy(memory, user, sizeof(float) * ROWS * COLUMNS);
    return OLY_OK;
}

/* The same, in memory of each device's own. */
static oly_array on_each(double start)
{
    int64_t shape[] = {ROWS, COLUMNS};
    float *values = malloc(sizeof *values * ROWS * COLUMNS);
    oly_get(table_of(start), values, sizeof *values * ROWS * COLUMNS);
    oly_array x = oly_from_callback(oly_named(mesh, ""), OLY_FLOAT32, 2, shape, fill_shard, values);
    free(values);
    return x;
}

/* Have all devices of this process the same memory of the array? (A shard of OLY_FOR_EACH_SHARD would hold it.) */
static bool is_held_once(oly_array x)
{
    bool same = oly_block_until_ready(x) == OLY_OK;
    for (int k = 1; k < x->n_shards; k++)
        same = same && x->shard[k]->data == x->shard[0]->data;
    return same;
}

FUNCTION(gathered, oly_take(in[0], in[1], 0, NULL))
FUNCTION(marked, oly_at_add(in[0], OLY_INDEXES(in[1]), oly_take(in[0], in[1], 0, NULL)))
FUNCTION(from_zeros,
         oly_at_add(oly_zeros(OLY_FLOAT32, ROWS, COLUMNS), OLY_INDEXES(in[1]), oly_take(in[0], in[1], 0, NULL)))
FUNCTION(swept, oly_sin(oly_add(in[0], oly_slice(in[1], ":60"))))
FUNCTION(doubled, oly_add(oly_mul(in[0], 2), 1))
FUNCTION(chained, oly_mul(oly_at_set(oly_sub(oly_take(in[0], in[1], 0, NULL), 3), OLY_INDEXES(in[1]), 1),
                          oly_take(in[0], in[1], 0, NULL)))

static void halve(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    c[0] = oly_add(oly_mul(c[0], 0.5), 1);
}
/* The loop has the memory of what it begins with. */
static void in_loop(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array c[] = {oly_mul(in[0], 2)};
    oly_fori(0, 5, halve, 1, c, NULL);
    out[0] = c[0];
}

typedef struct held_case {
    const char *name;
    oly_function f;
    bool once;
} held_case;

static void values_are_held_once(void **state)
{
    (void)state;
    static const held_case cases[] = {
        {"rows", gathered, true},   {"sums", marked, true},     {"sums from zeros", from_zeros, true},
        {"numbers", doubled, true}, {"a chain", chained, true}, {"a loop", in_loop, false}};
    enum { CASES = sizeof cases / sizeof *cases };
    float *plain[CASES] = {NULL};
    for (int way = 0; way < 2; way++) {
        begin(way ? NULL : "compute-once");
        unsetenv("OLYMPUS_COMPUTE_ONCE");
        oly_finalize();
        oly_init(NULL, NULL);
        mesh = oly_make_mesh("x=8");
        OLY_SCOPE
        {
            bool several = oly_local_device_count() > 1;
            oly_array table = table_of(0),
                      rows = replicated(oly_random_randint(oly_random_key(3), OLY_INT32, 0, ROWS, ROWS));
            assert_true(is_held_once(table) == (way || !several));
            for (int k = 0; k < CASES; k++) {
                oly_array out = NULL;
                oly_fn f = oly_jit(cases[k].f, 2, 1);
                for (int times = 0; times < 3; times++)
                    assert_int_equal(oly_call(f, OLY_IN(table, rows), OLY_OUT(out)), OLY_OK);
                assert_true(is_held_once(out) == ((way && cases[k].once) || !several));
                plain[k] = plain[k] ? plain[k] : malloc(sizeof **plain * ROWS * COLUMNS);
                OLY_FOR_EACH_SHARD(s, out)
                {
                    if (way == 0)
                        memcpy(plain[k], s.memory, sizeof **plain * ROWS * COLUMNS);
                    else if (memcmp(plain[k], s.memory, sizeof **plain * ROWS * COLUMNS) != 0)
                        fail_msg("%s differ", cases[k].name);
                }
            }
        }
        oly_finalize();
    }
    for (int k = 0; k < CASES; k++)
        free(plain[k]);
}

/* Memory that all devices hold together is taken over by all of them, unless somebody else has it, too; and that of each device by itself. */
static void donated_values(void **state)
{
    (void)state;
    begin(NULL);
    unsetenv("OLYMPUS_COMPUTE_ONCE");
    oly_finalize();
    oly_init(NULL, NULL);
    mesh = oly_make_mesh("x=8");
    OLY_SCOPE
    {
        float *a = malloc(sizeof *a * ROWS * COLUMNS), *b = malloc(sizeof *b * ROWS * COLUMNS);
        oly_array table = table_of(1), kept = table_of(1), rows = replicated(oly_mod(oly_arange(ROWS, OLY_INT32), 50));
        oly_fn f = oly_jit(swept, 2, 1);
        oly_array x = kept, own = on_each(1);
        bool several = oly_local_device_count() > 1;
        assert_true(!several || !is_held_once(own));
        for (int times = 0; times < 4; times++) {
            oly_array next = NULL;
            const void *before = table->shard[0]->data;
            assert_int_equal(oly_call(f, OLY_IN(x, rows), OLY_OUT(next)), OLY_OK);
            assert_int_equal(oly_call(f, OLY_IN(table, rows), OLY_OUT(table)), OLY_OK);
            assert_int_equal(oly_call(f, OLY_IN(own, rows), OLY_OUT(own)), OLY_OK);
            assert_true(is_held_once(table) && is_held_once(next));
            assert_true(!several || !is_held_once(own));
            assert_ptr_equal(table->shard[0]->data, before);
            x = next;
            if (times == 1) { /* a second handle of every device */
                oly_array more = oly_device_put(table, oly_named(mesh, ""));
                oly_get(more, a, sizeof *a * ROWS * COLUMNS);
                assert_int_equal(oly_call(f, OLY_IN(table, rows), OLY_OUT(table)), OLY_OK);
                oly_get(more, b, sizeof *b * ROWS * COLUMNS);
                assert_memory_equal(a, b, sizeof *a * ROWS * COLUMNS);
                assert_int_equal(oly_call(f, OLY_IN(x, rows), OLY_OUT(x)), OLY_OK);
                assert_int_equal(oly_call(f, OLY_IN(own, rows), OLY_OUT(own)), OLY_OK);
            }
        }
        oly_get(x, a, sizeof *a * ROWS * COLUMNS);
        OLY_FOR_EACH_SHARD(s, table) assert_memory_equal(a, s.memory, sizeof *a * ROWS * COLUMNS);
        OLY_FOR_EACH_SHARD(s, own) assert_memory_equal(a, s.memory, sizeof *a * ROWS * COLUMNS);
        oly_get(kept, b, sizeof *b * ROWS * COLUMNS);
        oly_get(table_of(1), a, sizeof *a * ROWS * COLUMNS);
        assert_memory_equal(a, b, sizeof *a * ROWS * COLUMNS);
        free(a);
        free(b);
    }
    oly_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_device_has_the_same, end),
        cmocka_unit_test_teardown(sums_that_are_not_complete, end),
        cmocka_unit_test_teardown(what_is_copied_is_as_much_as_is_computed, end),
        cmocka_unit_test_teardown(values_are_held_once, end),
        cmocka_unit_test_teardown(donated_values, end),
    };
    return CHECK_MAIN(tests);
}
