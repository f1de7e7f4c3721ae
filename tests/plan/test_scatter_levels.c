/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2,4,8 devices=128  Reduce-scatter over long groups, level by level: 127, 128, 1,000 and other positions,
 * over one axis and several, uneven groups and blocks, dimensions split further, meshes made of lists, rounds in little
 * memory, unreduced inputs: every element is the documented reduction of its terms, bit for bit, on every layout; and
 * the devices receive as many bytes as if all sent to all: a block less than the partial result. */
#include "check.h"
#include <math.h>
#include <olympus.h>

enum { MOST = 1024 };

/* Reduces a row-major grid of terms one axis after the other, in place: pairs from the last axis, sequentially from the
 * first. */
static float reduce(float *x, int n_axes, const int *size, bool product)
{
    int n = 1;
    for (int k = 0; k < n_axes; k++)
        n *= size[k];
    for (int k = 0; k < n_axes; k++) {
        int length = size[product ? k : n_axes - 1 - k], stride = product ? n / length : 1;
        for (int i = 0; i < n / length; i++) {
            float *line = x + (product ? i : i * length);
            int groups = product ? 16 : 2;
            for (int left = length, distance = stride; left > 1;
                 left = (left + groups - 1) / groups, distance *= groups)
                for (int j = 0; j < left; j += groups)
                    for (int g = 1; g < groups && j + g < left; g++)
                        line[j * distance] += line[(j + g) * distance];
        }
        if (!product)
            for (int i = 0; i < n / length; i++)
                x[i] = x[i * length];
        n /= length;
    }
    return x[0];
}

typedef struct row {
    const char *mesh, *from, *to; /* specs of [terms, rows, columns] and of [rows, columns] */
    int n_axes, size[3];          /* reduced axes */
    int rows, columns;
    bool backwards; /* a mesh made of a list */
} row;

static const row rows[] = {
    {"x=128", "x", "x", 1, {128}, 1024, 2, false},
    {"x=128", "x", "None, x", 1, {128}, 3, 515, false},
    {"x=127", "x", "x", 1, {127}, 130, 3, false},
    {"x=100", "x", "x", 1, {100}, 1030, 1, false},
    {"x=100", "x", "x", 1, {100}, 1030, 1, true},
    {"x=65", "x", "None, x", 1, {65}, 2, 200, false},
    {"x=17, y=7", "(x, y)", "(x, y)", 2, {17, 7}, 300, 2, false},
    {"x=8, y=16", "(x, y)", "(y, x)", 2, {8, 16}, 500, 2, false},
    {"x=8, y=16", "(x, y)", "x, y", 2, {8, 16}, 30, 50, true},
    {"x=40, y=3", "(x, y)", "y, x", 2, {40, 3}, 7, 100, false},
    {"x=2, y=33", "(x, y)", "(x, y)", 2, {2, 33}, 133, 2, false},
    {"x=33, y=2", "(x, y)", "(x, y)", 2, {33, 2}, 133, 2, false},
    {"x=32, z=4", "x, z", "(z, x)", 1, {32}, 256, 3, false},
    {"z=3, x=41", "x, z", "(z, x)", 1, {41}, 246, 3, false},
    {"z=3, x=41", "x, None, z", "x, z", 1, {41}, 290, 7, true},
    {"x=4, y=5, z=6", "(x, y, z)", "(x, z), y", 3, {4, 5, 6}, 100, 11, false},
    {"x=24, y=5", "(x, y)", "(y, x)", 2, {24, 5}, 50, 4, false}, /* some have no elements */
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static oly_sharding wanted;

static void sums(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_with_sharding_constraint(oly_sum(in[0], .axes = "0"), wanted);
}

static void products(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_with_sharding_constraint(oly_einsum("d,dij->ij", in[1], in[0]), wanted);
}

static void finished(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_reshard(in[0], wanted);
}

static int terms_of(const row *r)
{
    int n = 1;
    for (int k = 0; k < r->n_axes; k++)
        n *= r->size[k];
    return n;
}

static oly_mesh mesh_of(const row *r)
{
    oly_mesh m = oly_make_mesh(r->mesh);
    int n_axes = oly_mesh_axis_count(m), size[3], n = 1, ids[MOST];
    const char *names[3];
    if (!r->backwards)
        return m;
    for (int k = 0; k < n_axes; k++) {
        size[k] = oly_mesh_axis_size(m, k);
        names[k] = oly_mesh_axis_name(m, k);
        n *= size[k];
    }
    for (int k = 0; k < n; k++)
        ids[k] = oly_device_count() - 1 - k;
    return oly_mesh_from_devices(n_axes, names, size, ids);
}

static float *numbers(int64_t n)
{
    float *data = malloc(sizeof *data * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)(sin((double)i * 1.7) * (i % 7 ? 1 : 100));
    return data;
}

/* Is `got` the reduction of the terms in `data`? */
static void check(const row *r, const float *data, const float *got, bool product)
{
    int64_t n = (int64_t)r->rows * r->columns;
    float terms[MOST];
    for (int64_t i = 0; i < n; i++) {
        for (int d = 0; d < terms_of(r); d++)
            terms[d] = data[d * n + i];
        assert_true(got[i] == reduce(terms, r->n_axes, r->size, product));
    }
}

static void check_row(const row *r, bool product)
{
    int64_t n = (int64_t)r->rows * r->columns;
    int terms = terms_of(r);
    float *data = numbers(terms * n), *got = malloc(sizeof *got * (size_t)n);
    OLY_SCOPE
    {
        oly_mesh mesh = mesh_of(r);
        oly_array y = NULL, x = oly_from_host(data, OLY_FLOAT32, 3, (int64_t[]){terms, r->rows, r->columns});
        x = oly_device_put(x, oly_named(mesh, r->from));
        const char *axes = r->from[0] == '(' ? r->from : "x";
        char first[32];
        snprintf(first, sizeof first, "%.*s", r->from[0] == '(' ? (int)strcspn(axes, ")") + 1 : 1, axes);
        oly_array ones = oly_device_put(oly_ones(OLY_FLOAT32, terms), oly_named(mesh, first));
        wanted = oly_named(mesh, r->to);
        oly_fn f = oly_jit(product ? products : sums, 2, 1);
        oly_plan_costs costs;
        char *text = NULL;
        size_t length = 0;
        FILE *file = open_memstream(&text, &length);
        oly_explain(file, f, x, ones);
        fclose(file);
        *strstr(text, "total:") = 0; /* hints follow */
        assert_non_null(strstr(text, "reduce-scatter"));
        assert_null(strstr(text, "all-reduce"));
        free(text);
        assert_int_equal(oly_costs(&costs, f, x, ones), OLY_OK);
        assert_int_equal(costs.collectives, 1);
        for (int repeat = 0; repeat < 2; repeat++) { /* the first one lists the messages */
            oly_call(f, OLY_IN(x, ones), 1, (oly_array *[]){&y});
            oly_process_allgather(y, got, sizeof *got * (size_t)n);
            check(r, data, got, product);
            oly_free(y);
            y = NULL;
        }
        if (oly_process_count() == 1) /* what all devices receive: of every block all terms but their own */
            assert_int_equal(costs.wire_bytes, (int64_t)(terms - 1) * n * 4);
    }
    free(data);
    free(got);
}

static void every_element_is_the_documented_reduction(void **state)
{
    (void)state;
    setenv("OLYMPUS_CHOOSE", "0", 1);
    oly_init(NULL, NULL);
    for (int k = 0; k < N_ROWS; k++)
        for (int product = 0; product < 2; product++)
            check_row(&rows[k], product);
    assert_int_equal(oly_finalize(), 0);
}

/* A process may hold one mebibyte of boxes and partial results: each of 128 devices has more. */
static void rounds_change_nothing(void **state)
{
    (void)state;
    static const row large[] = {{"x=128", "x", "x", 1, {128}, 1500, 3, false},
                                {"x=127", "x", "x", 1, {127}, 129, 24, false},
                                {"x=100", "x", "None, x", 1, {100}, 40, 130, true},
                                {"x=8, y=12", "(x, y)", "y, x", 2, {8, 12}, 61, 70, false}};
    setenv("OLYMPUS_EXCHANGE_MEMORY", "1", 1);
    oly_init(NULL, NULL);
    for (int k = 0; k < 4; k++)
        check_row(&large[k], k % 2);
    assert_int_equal(oly_finalize(), 0);
    unsetenv("OLYMPUS_EXCHANGE_MEMORY");
}

/* A value unreduced over Explicit axes that another function reduces, of which each process may hold 64 KiB at a time:
 * in parts, each of every k-th row or column. Blocks of such parts are less balanced than others. */
static void sums_from_outside_go_in_parts(void **state)
{
    (void)state;
    static const struct {
        row r;
        const char *unfinished;
    } cases[] = {
        {{"x=33:explicit, y=2:explicit", "x", "(x, y), None", 1, {33}, 62, 84, false}, "None, None, unreduced={x}"},
        {{"x=40:explicit, y=3:explicit", "x", "(x, y), None", 1, {40}, 130, 47, false}, "None, None, unreduced={x}"},
        {{"x=32:explicit, z=4:explicit", "x, z", "z, x", 1, {32}, 75, 200, false}, "z, None, unreduced={x}"},
    };
    setenv("OLYMPUS_EXCHANGE_MEMORY", "1", 1);
    oly_init(NULL, NULL);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        OLY_SCOPE
        {
            const row *r = &cases[k].r;
            int64_t n = (int64_t)r->rows * r->columns;
            float *data = numbers(r->size[0] * n), *got = malloc(sizeof *got * (size_t)n);
            oly_mesh mesh = mesh_of(r);
            oly_array x = oly_from_host(data, OLY_FLOAT32, 3, (int64_t[]){r->size[0], r->rows, r->columns}), y = NULL;
            x = oly_device_put(x, oly_named(mesh, r->from));
            x = oly_sum(x, .axes = "0", .out_sharding = oly_named(mesh, cases[k].unfinished));
            wanted = oly_named(mesh, r->to);
            oly_call(oly_jit(finished, 1, 1), OLY_IN(x), 1, (oly_array *[]){&y});
            oly_process_allgather(oly_reshard(y, oly_named(mesh, "")), got, sizeof *got * (size_t)n);
            check(r, data, got, false);
            free(data);
            free(got);
        }
    assert_int_equal(oly_finalize(), 0);
    unsetenv("OLYMPUS_EXCHANGE_MEMORY");
}

/* Eight times as many devices; not all in two processes, where placing so many takes long. */
static void a_thousand_positions(void **state)
{
    (void)state;
    static const row long_ones[] = {
        {"x=1000", "x", "x", 1, {1000}, 2500, 1, false},
        {"x=1024", "x", "None, x", 1, {1024}, 2, 1030, false},
        {"x=273", "x", "x", 1, {273}, 600, 2, false}, /* 256, then one run of 16, then one */
        {"x=8, y=125", "(x, y)", "(x, y)", 2, {8, 125}, 2500, 1, false}};
    char before[32], devices[32];
    snprintf(before, sizeof before, "%s", getenv("OLYMPUS_NUM_CPU_DEVICES"));
    if (atoi(before) > 32)
        skip();
    snprintf(devices, sizeof devices, "%d", atoi(before) * 8);
    setenv("OLYMPUS_NUM_CPU_DEVICES", devices, 1);
    oly_init(NULL, NULL);
    for (int k = 0; k < 4; k++)
        check_row(&long_ones[k], k % 2);
    assert_int_equal(oly_finalize(), 0);
    setenv("OLYMPUS_NUM_CPU_DEVICES", before, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_is_the_documented_reduction),
        cmocka_unit_test(rounds_change_nothing),
        cmocka_unit_test(sums_from_outside_go_in_parts),
        cmocka_unit_test(a_thousand_positions),
    };
    return CHECK_MAIN(tests);
}
