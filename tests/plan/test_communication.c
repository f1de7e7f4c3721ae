/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Communication is minimal, starts as early as possible and is waited for as late as possible: counts and
 * bytes of plans, their order, and the values of one device. */
#include "check_communication.h"
#include "check_session.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/option.h"

/* -- early and late ------------------------------------------------------------------------------------------------------ */

/* A product summed over devices, and computation that does not need it. */
static void independent(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array product = oly_matmul(in[0], in[1]);
    oly_array other = oly_sin(oly_cumsum(in[2], 1));
    out[0] = oly_add(product, other);
}

static void independent_work_overlaps_messages(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array plain[] = {check_matrix(64, 64), check_matrix(64, 64), check_matrix(64, 64)};
    oly_array in[] = {oly_device_put(plain[0], oly_named(mesh, "None, x")),
                      oly_device_put(plain[1], oly_named(mesh, "x, None")),
                      oly_device_put(plain[2], oly_named(mesh, "None, None"))};
    oly_fn f = oly_jit_with(independent, "f", 3, 1, (oly_jit_options){.user = NULL});
    char *text = check_steps(f, 3, in);
    const char *start = strstr(text, "send of partial results"), *wait = strstr(text, "wait: for step");
    if (oly_process_count() == 1) {
        assert_null(start);
        assert_null(wait);
    } else {
        const char *between = strstr(text, "cumsum"), *reduce = strstr(text, "all-reduce");
        assert_non_null(start);
        assert_non_null(wait);
        assert_true(start < between && between < wait && wait < reduce);
    }
    free(text);
    check_same_values(independent, 3, plain, in, 64 * 64, 1e-4);
}

/* Two independent exchanges are in flight together, in a loop too. */
static void two_exchanges(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    (void)user;
    oly_array turned =
        oly_with_sharding_constraint(oly_transpose(carry[0]), oly_named(oly_make_mesh("x=8"), "x, None"));
    oly_array rolled = oly_roll(carry[1], 1, 0);
    carry[0] = oly_add(oly_mul(0.5, turned), oly_mul(0.25, carry[1]));
    carry[1] = oly_add(oly_mul(0.5, rolled), oly_mul(0.25, oly_sin(carry[0])));
}

static void looped(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array c[2] = {in[0], in[1]};
    oly_fori(0, 7, two_exchanges, 2, c, NULL);
    out[0] = oly_add(c[0], c[1]);
}

static void exchanges_of_a_loop_overlap(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array plain[] = {check_matrix(40, 40), check_matrix(40, 40)};
    oly_array in[] = {oly_device_put(plain[0], oly_named(mesh, "x, None")),
                      oly_device_put(plain[1], oly_named(mesh, "x, None"))};
    for (int overlap = 0; overlap < 2; overlap++) {
        oly_option.overlap = overlap;
        check_same_values(looped, 2, plain, in, 1600, 1e-5);
    }
}

/* A general stencil: the interior is computed during the halo exchange. */
static void stencil_body(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    (void)user;
    oly_array u = carry[0];
    oly_array next = oly_add(oly_mul(0.5, oly_slice(u, "1:-1, 1:-1")),
                             oly_mul(0.125, oly_add(oly_add(oly_slice(u, ":-2, 1:-1"), oly_slice(u, "2:, 1:-1")),
                                                    oly_add(oly_slice(u, "1:-1, :-2"), oly_slice(u, "1:-1, 2:")))));
    oly_array scale = oly_max(carry[1]); /* prevents time tiling */
    carry[0] = oly_update(u, "1:-1, 1:-1", oly_mul(oly_sin(next), scale));
    carry[1] = oly_mul(0.5, carry[1]);
}

static void stencil(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array carry[] = {in[0], oly_ones(OLY_FLOAT32, 3)};
    oly_fori(0, 5, stencil_body, 2, carry, NULL);
    out[0] = carry[0];
}

static void interiors_overlap_the_halo_exchange(void **state)
{
    static const char *const meshes[][2] = {{"x=8, y=1", "x, y"}, {"x=4, y=2", "x, y"}, {"x=2, y=4", "y, x"}};
    (void)state;
    for (int k = 0; k < 3; k++) {
        oly_array plain = check_matrix(515, 301);
        oly_array in = oly_device_put(plain, oly_named(oly_make_mesh(meshes[k][0]), meshes[k][1]));
        check_same_values(stencil, 1, &plain, &in, 515 * 301, 0);
        check_same_bits(stencil, 1, &in, 515 * 301);
        char *text = check_steps(oly_jit_with(stencil, "f", 1, 1, (oly_jit_options){.user = NULL}), 1, &in);
        assert_int_equal(check_count(text, " members]"), 1);
        if (k == 0)
            assert_true(oly_process_count() == 1 ? check_count(text, "elementwise") == 1
                                                 : check_count(text, "elementwise") > 1);
        free(text);
    }
}

/* -- hoisting ------------------------------------------------------------------------------------------------------ */

/* A table that every iteration computes from captured values, gathered for the product. */
static void table_body(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    const oly_array *in = user;
    oly_array table = oly_tanh(oly_add(in[1], oly_mean(in[1])));
    carry[0] = oly_mul(oly_matmul(carry[0], table), 0.125);
}

static void table_loop(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, 6, table_body, 1, out, (void *)(uintptr_t)in);
}

static oly_array table_goes_on(const oly_array *carry, void *user)
{
    (void)user;
    return oly_lt(carry[1], 6);
}

static void table_step(oly_array *carry, void *user)
{
    table_body(carry[1], carry, user);
    carry[1] = oly_add(carry[1], 1);
}

static void table_while(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array c[2] = {in[0], oly_zeros(OLY_INT32)};
    oly_while(table_goes_on, table_step, 2, c, (void *)(uintptr_t)in);
    out[0] = c[0];
}

static void nested_body(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    oly_fori(0, 3, table_body, 1, carry, user);
}

static void nested(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, 2, nested_body, 1, out, (void *)(uintptr_t)in);
}

/* In a branch of a loop. */
static void with_table(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    table_body(in[0], out, user);
}

static void without(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], 0.5);
}

static void branch_body(oly_array i, oly_array *carry, void *user)
{
    oly_array now = carry[0];
    oly_cond(oly_lt(i, 4), with_table, without, 1, &now, 1, carry, user);
}

static void branched(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, 6, branch_body, 1, out, (void *)(uintptr_t)in);
}

static void what_stays_the_same_leaves_loops(void **state)
{
    static const oly_function functions[] = {table_loop, table_while, nested, branched};
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array plain[] = {check_matrix(64, 64), check_matrix(64, 64)};
    oly_array in[] = {oly_device_put(plain[0], oly_named(mesh, "x, None")),
                      oly_device_put(plain[1], oly_named(mesh, "x, None"))};
    for (int k = 0; k < 4; k++) {
        oly_plan_costs costs;
        oly_fn f = oly_jit_with(functions[k], "f", 2, 1, (oly_jit_options){.user = NULL});
        assert_int_equal(oly_costs_n(&costs, f, 2, in), OLY_OK);
        /* the table, and the mean: within processes, then between them */
        assert_in_range(costs.collectives, 2, 3);
        char *text = check_steps(f, 2, in);
        const char *loop = strstr(text, "times:");
        loop = loop ? loop : strstr(text, "holds:");
        assert_non_null(loop);
        assert_int_equal(check_count(loop, " members]"), 0);
        free(text);
        check_same_values(functions[k], 2, plain, in, 64 * 64, 1e-4);
    }
}

/* -- deferred and combined reductions ------------------------------------------------------------------------------ */

static void one_sum(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(in[0], .axes = "0");
}

static void sum_of_sums(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array a = oly_sum(in[0], .axes = "0"), b = oly_sum(in[1], .axes = "0"),
              c = oly_sum(oly_abs(in[1]), .axes = "0");
    out[0] = oly_sub(oly_add(a, oly_mul(0.5, b)), c);
}

static void total(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(in[0]);
}

static void sum_again(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_sum(in[0], .axes = "0"));
}

static void part_first(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_slice(in[0], ":, 3:11"), .axes = "0");
}

static void part_of_sum(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_slice(oly_sum(in[0], .axes = "0"), "3:11");
}

/* Products over the devices, and their sum. */
static void one_product(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_matmul(oly_transpose(in[0]), in[1]);
}

static void sum_of_products(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_matmul(oly_transpose(in[0]), in[1]), oly_matmul(oly_transpose(in[1]), in[0]));
}

/* Complete addends are added once, between deferred operations and before one that is not linear. */
static void complete_addends(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array a = oly_sum(in[0], .axes = "0"), b = oly_sum(in[1], .axes = "0");
    out[0] = oly_tanh(oly_mul(0.01, oly_add(oly_sub(in[2], a), oly_sub(b, oly_exp(in[2])))));
}

static void complete_factors(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array a = oly_sum(in[0], .axes = "0"), b = oly_sum(in[1], .axes = "0");
    out[0] = oly_add(oly_mul(a, in[2]), oly_neg(oly_div(b, oly_add(in[2], 3))));
}

static void turned_sums(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array a = oly_sum(oly_reshape(in[0], 64, 8, 12), .axes = "0");
    oly_array b = oly_sum(oly_reshape(in[1], 64, 12, 8), .axes = "0");
    out[0] = oly_sub(oly_transpose(a), oly_mul(0.5, b));
}

static void reshaped_sums(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array a = oly_reshape(oly_sum(in[0], .axes = "0"), 8, 12), b = oly_sum(in[1], .axes = "0");
    out[0] = oly_sub(a, oly_reshape(b, 8, 12));
}

static void repeated_sum(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array rows = oly_broadcast_to(oly_reshape(oly_sum(in[0], .axes = "0", .keepdims = true), 1, 96), 96, 96);
    out[0] = oly_cos(oly_add(oly_matmul(oly_transpose(in[0]), in[1]), rows));
}

static void weighted_total(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_mul(in[2], oly_neg(oly_sum(in[0], .axes = "0"))));
}

static void narrow_product(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_matmul(oly_transpose(in[0]), oly_slice(in[1], ":, :4"));
}

static void product_narrowed(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array w = oly_broadcast_to(oly_reshape(in[2], 96, 1), 96, 4);
    out[0] = oly_matmul(oly_matmul(oly_transpose(in[0]), in[1]), w);
}

static void wide_sum(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_astype(oly_sum(oly_astype(in[0], OLY_FLOAT64), .axes = "0"), OLY_FLOAT32);
}

static void widened_sum(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array a = oly_sum(in[0], .axes = "0"), b = oly_sum(oly_astype(in[1], OLY_FLOAT64), .axes = "0");
    out[0] = oly_astype(oly_add(oly_astype(a, OLY_FLOAT64), b), OLY_FLOAT32);
}

/* Two groups with further readers: their sums are still reduced together. */
static void two_sums(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array both = oly_concatenate(1, in[0], in[1]);
    out[0] = oly_sum(both, .axes = "0");
}

static void two_of_two(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array a = oly_sum(in[0], .axes = "0"), b = oly_sum(in[1], .axes = "0");
    oly_array c = oly_sum(oly_abs(in[0]), .axes = "0"), d = oly_sum(oly_abs(in[1]), .axes = "0");
    out[0] = oly_concatenate(0, oly_tanh(oly_add(a, b)), oly_cos(oly_sub(c, d)));
}

/* Not deferred: the result is larger than the deferred value, or that has another reader. */
static void repeated_alone(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array rows = oly_broadcast_to(oly_reshape(oly_sum(in[0], .axes = "0"), 1, 96), 96, 96);
    out[0] = oly_mul(2, rows);
}

static void also_read(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array a = oly_sum(in[0], .axes = "0");
    out[0] = oly_mul(oly_add(oly_mul(a, in[2]), 1), oly_tanh(a));
}

static void reductions_move_past_what_is_linear(void **state)
{
    static const struct {
        oly_function function, as;
        int64_t count;
        double tolerance;
    } rows[] = {{sum_of_sums, one_sum, 96, 1e-4},
                {sum_again, total, 1, 1e-4},
                {part_of_sum, part_first, 8, 1e-4},
                {sum_of_products, one_product, 96 * 96, 1e-4},
                {complete_addends, one_sum, 96, 1e-4},
                {complete_factors, one_sum, 96, 1e-4},
                {turned_sums, one_sum, 96, 1e-4},
                {reshaped_sums, one_sum, 96, 1e-4},
                {repeated_sum, one_product, 96 * 96, 1e-4},
                {weighted_total, total, 1, 1e-4},
                {product_narrowed, narrow_product, 96 * 4, 1e-4},
                {widened_sum, wide_sum, 96, 1e-4},
                {two_of_two, two_sums, 192, 1e-4},
                {repeated_alone, one_sum, 96 * 96, 1e-4},
                {also_read, one_sum, 96, 1e-4}};
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array plain[] = {check_matrix(64, 96), oly_cos(check_matrix(64, 96)), oly_reshape(check_matrix(1, 96), 96)};
    oly_array in[] = {oly_device_put(plain[0], oly_named(mesh, "x, None")),
                      oly_device_put(plain[1], oly_named(mesh, "x, None")),
                      oly_device_put(plain[2], oly_named(mesh, "None"))};
    oly_option.choose = 0; /* sums over devices as written */
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        oly_plan_costs costs, as;
        oly_fn f = oly_jit_with(rows[k].function, "f", 3, 1, (oly_jit_options){.user = NULL});
        oly_fn g = oly_jit_with(rows[k].as, "g", 3, 1, (oly_jit_options){.user = NULL});
        assert_int_equal(oly_costs_n(&costs, f, 3, in), OLY_OK);
        assert_int_equal(oly_costs_n(&as, g, 3, in), OLY_OK);
        if (costs.wire_bytes != as.wire_bytes || costs.collectives != as.collectives)
            fail_msg("row %zu: %lld bytes in %d collectives, not %lld in %d", k, (long long)costs.wire_bytes,
                     (int)costs.collectives, (long long)as.wire_bytes, (int)as.collectives);
        check_same_values(rows[k].function, 3, plain, in, rows[k].count, rows[k].tolerance);
    }
    oly_option.choose = 1;
}

/* One row per device: the partial results are the rows, and only the first device has the complete addend. */
static void addend_and_rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array a = oly_sum(in[0], .axes = "0"), b = oly_sum(in[1], .axes = "0");
    out[0] = oly_abs(oly_add(oly_sub(in[2], a), oly_mul(b, in[2])));
}

static void deferred_sums_have_one_order_on_every_layout(void **state)
{
    enum { N = 96, DEVICES = 8 };
    float a[DEVICES * N], b[DEVICES * N], x[N], got[N];
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array plain[] = {check_matrix(DEVICES, N), oly_cos(check_matrix(DEVICES, N)),
                         oly_reshape(oly_exp(check_matrix(1, N)), N)},
              out;
    oly_process_allgather(plain[0], a, sizeof a);
    oly_process_allgather(plain[1], b, sizeof b);
    oly_process_allgather(plain[2], x, sizeof x);
    oly_array in[] = {oly_device_put(plain[0], oly_named(mesh, "x, None")),
                      oly_device_put(plain[1], oly_named(mesh, "x, None")),
                      oly_device_put(plain[2], oly_named(mesh, "None"))};
    oly_fn f = oly_jit_with(addend_and_rows, "f", 3, 1, (oly_jit_options){.user = NULL});
    assert_int_equal(oly_call_n(f, 3, in, 1, (oly_array *[]){&out}), OLY_OK);
    oly_process_allgather(out, got, sizeof got);
    for (int j = 0; j < N; j++) {
        float v[DEVICES];
        for (int d = 0; d < DEVICES; d++) {
            float product = b[d * N + j] * x[j];
            v[d] = ((d == 0 ? x[j] : 0) - a[d * N + j]) + product;
        }
        float wanted = fabsf(((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])));
        assert_memory_equal(&got[j], &wanted, sizeof wanted);
    }
}

/* -- reshapes ------------------------------------------------------------------------------------------------------------ */

static void flatten(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_reshape(in[0], 24 * 40 * 16);
}

static void merge(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_reshape(in[0], 24 * 40, 16), 1);
}

/* What a reshape cannot leave in place is sent once: no device gets the whole array, unless the result is
 * replicated. */
static void reshapes_gather_nothing(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array plain = oly_reshape(oly_arange(24 * 40 * 16, OLY_FLOAT32), 24, 40, 16);
    static const char *const specs[] = {"None, x", "None, None, x"};
    static const oly_function functions[] = {flatten, merge};
    for (int k = 0; k < 4; k++) {
        oly_sharding result = oly_named(mesh, "x");
        oly_array x = oly_device_put(plain, oly_named(mesh, specs[k % 2]));
        oly_fn f = oly_jit_with(functions[k / 2], "f", 1, 1, (oly_jit_options){.out_shardings = &result});
        oly_plan_costs costs;
        char *text = check_steps(f, 1, &x);
        assert_null(strstr(text, "all-gather"));
        free(text);
        assert_int_equal(oly_costs(&costs, f, x), OLY_OK);
        assert_in_range(costs.scratch_bytes, 0, 24 * 40 * 16 * sizeof(float) / 4);
        oly_array y = oly_apply(f, x);
        OLY_FOR_EACH_SHARD(s, y)
        for (int64_t i = 0, width = s.rank == 2 ? s.extent[1] : 1; i < s.extent[0] * width; i++)
            if (((const float *)s.memory)[i] != (float)(s.start[0] * width + i + k / 2))
                fail_msg("element %lld is wrong", (long long)i);
    }
}

/* Deferred sums and maxima are reduced separately, and so are those along other axes. */
static void sum_and_largest(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_sum(in[0], OLY_AXES(0)), oly_max(in[1], OLY_AXES(0)));
}

static void three_reductions(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array sum = oly_sum(in[0], OLY_AXES(0)), most = oly_max(in[1], OLY_AXES(0)),
              least = oly_min(in[0], OLY_AXES(0));
    out[0] = oly_sub(oly_add(oly_max2(most, least), oly_mul(2, sum)), oly_sum(in[1], OLY_AXES(0)));
}

static void different_reductions_are_deferred_separately(void **state)
{
    (void)state;
    static const char *const specs[][2] = {{"x", "x"},         {"x", "y"},    {"(x,y)", "x"},
                                           {"(x,y)", "(y,x)"}, {"y", "x, y"}, {"x, y", "x"}};
    static const oly_function functions[] = {sum_and_largest, three_reductions};
    oly_mesh mesh = oly_make_mesh("x=4, y=2");
    oly_array plain[] = {check_matrix(40, 24), check_matrix(40, 24)};
    for (int k = 0; k < 12; k++) {
        oly_array in[] = {oly_device_put(plain[0], oly_named(mesh, specs[k % 6][0])),
                          oly_device_put(plain[1], oly_named(mesh, specs[k % 6][1]))};
        check_same_values(functions[k / 6], 2, plain, in, 24, 1e-4);
    }
}

static void two_sums_of_rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_mul(2, oly_sum(in[0], OLY_AXES(1))), oly_sum(in[1], OLY_AXES(1)));
}

static void one_sum_of_rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(in[0], OLY_AXES(1));
}

/* Two sums that are added move as much as one, along the first axis of the mesh and along the second. */
static void sums_are_deferred_along_any_axis(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=4, y=2");
    static const char *const specs[] = {"x, y", "y, x"};
    oly_array plain[] = {check_matrix(40, 24), check_matrix(40, 24)};
    for (int k = 0; k < 2; k++) {
        oly_array in[] = {oly_device_put(plain[0], oly_named(mesh, specs[k])),
                          oly_device_put(plain[1], oly_named(mesh, specs[k]))};
        oly_plan_costs two, one;
        assert_int_equal(oly_costs(&two, oly_jit(two_sums_of_rows, 2, 1), in[0], in[1]), OLY_OK);
        assert_int_equal(oly_costs(&one, oly_jit(one_sum_of_rows, 1, 1), in[0]), OLY_OK);
        assert_int_equal(two.wire_bytes, one.wire_bytes);
        assert_int_equal(two.collectives, one.collectives);
        check_same_values(two_sums_of_rows, 2, plain, in, 40, 1e-4);
    }
}

static oly_sharding wanted;

static void product_with_itself(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_with_sharding_constraint(oly_matmul(in[0], oly_transpose(in[0])), wanted);
}

static void sums_of_rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_with_sharding_constraint(oly_sum(in[0], OLY_AXES(1)), wanted);
}

/* What moves does not depend on the order of a mesh's axes. */
static void axes_have_no_rank(void **state)
{
    (void)state;
    static const char *const meshes[] = {"x=4, y=2", "y=2, x=4"},
                             *const specs[] = {"None, y", "None, x", "x, y", "y, x"},
                             *const targets[] = {"x", "y", "(x,y)", "(y,x)", ""};
    static const oly_function functions[] = {sums_of_rows, product_with_itself};
    oly_array plain = check_matrix(64, 64);
    for (int k = 0; k < 40; k++) {
        oly_plan_costs costs[2];
        for (int m = 0; m < 2; m++) {
            oly_mesh mesh = oly_make_mesh(meshes[m]);
            oly_array x = oly_device_put(plain, oly_named(mesh, specs[k % 4]));
            wanted = oly_named(mesh, targets[k / 4 % 5]);
            assert_int_equal(
                oly_costs(&costs[m], oly_jit_with(functions[k / 20], "f", 1, 1, (oly_jit_options){.user = NULL}), x),
                OLY_OK);
        }
        if (oly_process_count() == 1 && costs[0].wire_bytes != costs[1].wire_bytes)
            fail_msg("from %s to %s: %lld bytes, and %lld where y comes first", specs[k % 4], targets[k / 4 % 5],
                     (long long)costs[0].wire_bytes, (long long)costs[1].wire_bytes);
    }
}

static void sums_of_shifted_rows(const oly_array *in, oly_array *out, void *user)
{
    int d = oly_rank(in[0]) - 2;
    (void)user;
    out[0] = oly_sum(oly_add(oly_sin(oly_slice_in_dim(in[0], 30, 800, 1, d)), oly_slice_in_dim(in[0], 0, 770, 1, d)),
                     OLY_AXES(-1));
}

/* Leading dimensions beside the split and the reduced ones: as many times as much moves, for the same reasons. */
static void dimensions_in_front_change_nothing(void **state)
{
    (void)state;
    enum { IN_FRONT = 4 };
    oly_mesh mesh = oly_make_mesh("x=8");
    for (int n = 1; n < 4; n++) {
        oly_array plain = check_matrix(800, n);
        oly_array many = oly_add(oly_zeros(OLY_FLOAT32, IN_FRONT, 800, n), plain);
        oly_array x[2] = {oly_device_put(plain, oly_named(mesh, "x")),
                          oly_device_put(many, oly_named(mesh, "None, x"))};
        oly_plan_costs costs[2];
        for (int k = 0; k < 2; k++)
            assert_int_equal(oly_costs(&costs[k],
                                       oly_jit_with(sums_of_shifted_rows, "f", 1, 1, (oly_jit_options){.user = NULL}),
                                       x[k]),
                             OLY_OK);
        assert_int_equal(costs[1].wire_bytes, IN_FRONT * costs[0].wire_bytes);
        assert_int_equal(costs[1].collectives, costs[0].collectives);
        check_same_values(sums_of_shifted_rows, 1, &many, &x[1], IN_FRONT * 770, 1e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(independent_work_overlaps_messages, check_open, check_close),
        cmocka_unit_test_setup_teardown(exchanges_of_a_loop_overlap, check_open, check_close),
        cmocka_unit_test_setup_teardown(interiors_overlap_the_halo_exchange, check_open, check_close),
        cmocka_unit_test_setup_teardown(what_stays_the_same_leaves_loops, check_open, check_close),
        cmocka_unit_test_setup_teardown(reductions_move_past_what_is_linear, check_open, check_close),
        cmocka_unit_test_setup_teardown(deferred_sums_have_one_order_on_every_layout, check_open, check_close),
        cmocka_unit_test_setup_teardown(reshapes_gather_nothing, check_open, check_close),
        cmocka_unit_test_setup_teardown(different_reductions_are_deferred_separately, check_open, check_close),
        cmocka_unit_test_setup_teardown(sums_are_deferred_along_any_axis, check_open, check_close),
        cmocka_unit_test_setup_teardown(axes_have_no_rank, check_open, check_close),
        cmocka_unit_test_setup_teardown(dimensions_in_front_change_nothing, check_open, check_close),
    };
    return CHECK_MAIN(tests);
}
