/* SPDX-License-Identifier: BSD-3-Clause */
/* Every spelling of lists, options and operands once, in the common subset of C11 and C++17: test_headers.sh compiles
 * it as both, without a warning, and runs it. Its values are checked, so that a truncated list, or one whose lifetime
 * is too short, is detected. */
#include <olympus.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
#include <complex>
#define COMPLEX(re, im) std::complex<double>(re, im)
#else
#include <complex.h>
#define COMPLEX(re, im) ((re) + (im)*I)
#endif

enum { ROWS = 4, COLUMNS = 8 };
#define SHAPE ROWS, COLUMNS /* a macro that is several arguments */

static int failures;

static void check(int line, bool holds)
{
    if (!holds)
        fprintf(stderr, "tests/project/headers/spellings.c:%d: not as it should be\n", line);
    failures += !holds;
}
#define CHECK(condition)  check(__LINE__, (condition))
#define IS(array, number) CHECK(oly_item(array) == (number))

static void double_it(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], 2);
}

static void nothing_in(const oly_array *in, oly_array *out, void *user)
{
    (void)in;
    (void)user;
    out[0] = oly_full(7, OLY_FLOAT32);
}

static void total(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_mul(in[0], in[1]));
}

static void both(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0], in[1]);
    out[1] = oly_psum(oly_sum(in[0], .keepdims = true), "i");
}

static void add_step(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_add(carry[0], i);
}

static void operands(oly_array x)
{
    signed char c = 1;
    unsigned char uc = 2;
    short s = 3;
    unsigned short us = 4;
    unsigned int u = 5;
    long l = 6;
    unsigned long ul = 7;
    long long ll = 8;
    unsigned long long ull = 9;
    float f = 0.5f;
    const int constant = 10;
    bool truth = true;
    size_t size = 11;
    oly_array y = oly_add(oly_add(oly_add(oly_add(x, c), uc), s), us);
    y = oly_add(oly_add(oly_add(oly_add(y, u), l), ul), ll);
    y = oly_add(oly_add(oly_add(oly_add(y, ull), f), constant), size);
    y = oly_add(oly_add(y, ROWS), 'A');
    IS(oly_max(y), 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 0.5 + 10 + 11 + 4 + 65 + 1);
    IS(oly_max(oly_where(truth, y, 0.25L)), 136.5);
    IS(oly_sum(oly_imag(oly_mul(x, COMPLEX(1.0, 2.0)))), 64);
    IS(oly_max(oly_clamp(0, y, 100.0)), 100);
}

static void lists(oly_array x)
{
    int rows = 4;
    size_t columns = 8;
    IS(oly_sum(oly_zeros(OLY_FLOAT32)), 0);
    CHECK(oly_size(oly_ones(OLY_INT32, rows, columns)) == 32);
    CHECK(oly_size(oly_full(1, OLY_INT32, SHAPE)) == 32);
    CHECK(oly_dim(oly_reshape(x, 2, -1), 1) == 16);
    CHECK(oly_dim(oly_transpose(x), 0) == 8 && oly_dim(oly_transpose(x, 0, 1), 0) == 4);
    CHECK(oly_rank(oly_squeeze(oly_expand_dims(x, 0, -1))) == 2);
    CHECK(oly_size(oly_concatenate(0, x, x, oly_neg(x))) == 96 && oly_rank(oly_stack(0, x, x)) == 3);
    IS(oly_einsum("ij,ij->", x, x), 32);
    IS(oly_sum(oly_einsum_options("ij,kj->ik", (.preferred_element_type = OLY_FLOAT32), x, x)), 128);
    IS(oly_at_get(x, OLY_INDEXES(1, 2)), 1);
    IS(oly_sum(oly_at_add(x, OLY_INDEXES(oly_arange(2, OLY_INT32)), 1, .mode = "drop")), 48);
    IS(oly_sum(oly_dynamic_slice(x, OLY_INDEXES(0, oly_scalar(1, OLY_INT32)), OLY_EXTENTS(2, 3))), 6);
    IS(oly_dynamic_slice(oly_full(3, OLY_FLOAT32), OLY_INDEXES(), OLY_EXTENTS()), 3);
}

static void options(oly_array x, oly_mesh mesh)
{
    IS(oly_sum(x), 32);
    IS(oly_max(oly_sum(x, .keepdims = true, OLY_AXES(0))), 4); /* in any order */
    CHECK(oly_size(oly_sum(x, OLY_AXES(), .keepdims = false)) == 32);
    CHECK(oly_size(oly_max(x, OLY_AXES(1, -2), .keepdims = true)) == 1);
    /* options in the value of an option, and in two arguments of one call */
    oly_array inner =
        oly_sum(x, .out_sharding = oly_named(mesh, oly_size(oly_sum(x, OLY_AXES(0))) == 8 ? "" : "no"), OLY_AXES(1));
    CHECK(oly_size(inner) == 4);
    IS(oly_sub(oly_max(oly_sum(x, OLY_AXES(0))), oly_max(oly_sum(x, OLY_AXES(1)))), -4);
    CHECK(oly_dtype_of(oly_matmul(x, oly_transpose(x), .preferred_element_type = OLY_FLOAT64)) == OLY_FLOAT64);
    IS(oly_slice(oly_sort(oly_arange(3, OLY_INT32), 0, .descending = true), "0"), 2);
    IS(oly_max(oly_max_pool(oly_reshape(oly_arange(16, OLY_FLOAT32), 4, 4), .window = "2, 2", .strides = "2, 2")), 15);
    CHECK(oly_size(oly_random_normal(oly_random_key(1), OLY_FLOAT32, 2, 3)) == 6);
    CHECK(oly_size(oly_random_uniform_between(oly_random_key(1), OLY_FLOAT32, 1, 2.5)) == 1);
}

static void functions(oly_array x, oly_mesh mesh)
{
    oly_array y = NULL, z = NULL;
    oly_plan_costs costs;
    oly_sharding split = oly_named(mesh, "i");
    oly_fn f = oly_jit(double_it, 1, 1), g = oly_jit(double_it, 1, 1, .name = "again", .in_shardings = &split);
    oly_fn placed = oly_jit(double_it, 1, 1, .out_shardings = OLY_SHARDINGS(split));
    oly_call(f, OLY_IN(x), OLY_OUT(y));
    oly_call(g, OLY_IN(y), OLY_OUT(y));
    IS(oly_sum(y), 128);
    IS(oly_sum(oly_apply(placed, x)), 64);
    IS(oly_apply(oly_jit(nothing_in, 0, 1)), 7);
    IS(oly_sum(oly_apply(oly_grad(oly_jit(total, 2, 1), OLY_ARGNUMS(1)), x, y)), 32);
    oly_call(oly_value_and_grad(oly_jit(total, 2, 1), .argnums = "0"), OLY_IN(x, y), OLY_OUT(z, y));
    IS(z, 128);
    oly_costs(&costs, f, x);
    CHECK(costs.steps > 0);
    oly_shard_map(both, NULL, mesh, OLY_IN(x, x), OLY_SPECS("i, None", "i"), OLY_OUT(y, z), OLY_SPECS("i", ""));
    IS(oly_sum(y), 64);
    IS(z, 32);
    oly_shard_map_with(both, NULL, mesh, OLY_MANUAL(.axis_names = "i"), OLY_IN(x, x), OLY_SPECS("i", "i"),
                       OLY_OUT(y, z), OLY_SPECS("i", ""));
    oly_vmap(double_it, NULL, OLY_IN(x), OLY_AXES_OF(0), OLY_OUT(y), OLY_AXES_OF(1));
    CHECK(oly_dim(y, 0) == 8);
    oly_vmap_with(double_it, NULL, OLY_BATCH(.axis_name = "b"), OLY_IN(x), OLY_AXES_OF(1), OLY_OUT(y), OLY_AXES_OF(0));
    oly_array carry[] = {oly_scalar(0, OLY_INT32)};
    oly_fori(0, 5, add_step, 1, carry, NULL);
    IS(carry[0], 10);
}

static void shift(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_ppermute(in[0], "i", OLY_PAIRS({0, 1}, {1, 0}));
    out[1] = oly_all_gather(in[0], "i", .tiled = true, .axis = 0);
}

int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    oly_mesh mesh = oly_make_mesh("i=2");
    oly_array x = oly_ones(OLY_FLOAT32, SHAPE), y, z;
    int shards = 0;
    operands(x);
    lists(x);
    options(x, mesh);
    functions(x, mesh);
    x = oly_device_put(oly_arange(2, OLY_INT32), oly_named(mesh, "i"));
    oly_shard_map_with(shift, NULL, mesh, OLY_MANUAL(.unchecked = true), OLY_IN(x), OLY_SPECS("i"), OLY_OUT(y, z),
                       OLY_SPECS("i", ""));
    IS(oly_slice(y, "0"), 1);
    CHECK(oly_size(z) == 2);
    OLY_FOR_EACH_SHARD(s, x)
    shards += s.replica == 0;
    CHECK(shards == 2);
    OLY_SCOPE
    {
        y = oly_keep(oly_neg(x));
    }
    oly_printf("%A %T %S\n", y, y, oly_sharding_of(x));
    oly_explain(stdout, oly_jit(double_it, 1, 1), x);
    oly_explain_as(stdout, OLY_EXPLAIN_TEXT, oly_jit(nothing_in, 0, 1));
    int status = oly_finalize();
    return failures ? EXIT_FAILURE : status;
}
